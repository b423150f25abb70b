/* SPDX-License-Identifier: Apache-2.0 */
/* test_snapshot.c - which volumes a snapshot has, what becomes of a retired one, and what a rescan finds:
 * on places that are made by hand, without a daemon. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "producer/rescan.h"

#define PLACE_CNT 6u

static struct stoup_vol_index indexes[16];
static struct stoup_store_volume files[16];
static struct stoup_volume places[PLACE_CNT];
static struct stoup_consumer consumers[3];
static struct stoup_page *pages[3]; /* without cells */
static struct stoup_daemon d;

static void setup(void)
{
	memset(indexes, 0, sizeof(indexes));
	memset(files, 0, sizeof(files));
	memset(places, 0, sizeof(places));
	memset(consumers, 0, sizeof(consumers));
	memset(&d, 0, sizeof(d));
	for (uint32_t i = 0; i < 3; i++)
		pages[i] = calloc(1, sizeof(struct stoup_page));
	for (uint32_t i = 0; i < 16; i++) {
		indexes[i].header.id[0] = (uint8_t)i;
		files[i].index = &indexes[i];
		files[i].dev = 1;
		files[i].ino = 100 + i;
	}
	for (uint32_t i = 0; i < PLACE_CNT; i++)
		places[i].catalog.ro_fd = (int)(1000 + i);
	d.volumes = places;
	d.volume_cnt = d.volume_cap = PLACE_CNT;
	d.consumers = consumers;
	d.opt.consumer_cap = 3;
}

static void teardown(void)
{
	for (uint32_t i = 0; i < 3; i++)
		free(pages[i]);
}

static void put(uint32_t idx, uint32_t file, uint64_t born_seq, uint64_t retired_seq)
{
	places[idx].file = &files[file];
	places[idx].born_seq = born_seq;
	places[idx].retired_seq = retired_seq;
}

static void attach(uint32_t idx, uint64_t given_seq, uint64_t page_seq)
{
	consumers[idx].state = STOUP_CONSUMER_ATTACHED;
	consumers[idx].snapshot_seq = given_seq;
	consumers[idx].page.base = pages[idx];
	atomic_store(&pages[idx]->snapshot_seq, page_seq);
}

/* ---- membership ------------------------------------------------------------------------------- */

START_TEST(a_snapshot_has_the_volumes_that_lived_at_its_time)
{
	int fds[4] = {0, 0, 0, 0};

	put(0, 0, 1, 0);
	put(1, 1, 1, 3);
	put(3, 3, 3, 0);
	put(4, 4, 4, 5);
	ck_assert_uint_eq(stoup_snapshot_cnt(&d, 1), 2);
	ck_assert_uint_eq(stoup_snapshot_cnt(&d, 2), 2);
	ck_assert_uint_eq(stoup_snapshot_cnt(&d, 3), 2);
	ck_assert_uint_eq(stoup_snapshot_cnt(&d, 4), 3);
	ck_assert_uint_eq(stoup_snapshot_cnt(&d, 5), 2);
	ck_assert_uint_eq(stoup_snapshot_next(&d, 2, 0), 0);
	ck_assert_uint_eq(stoup_snapshot_next(&d, 2, 1), 1);
	ck_assert_uint_eq(stoup_snapshot_next(&d, 2, 2), STOUP_IDX_NONE);
	ck_assert_uint_eq(stoup_snapshot_next(&d, 3, 1), 3);
	ck_assert_uint_eq(stoup_snapshot_fds(&d, 4, 1, 4, fds), 2);
	ck_assert_int_eq(fds[0], 1003);
	ck_assert_int_eq(fds[1], 1004);
	ck_assert_uint_eq(stoup_snapshot_fds(&d, 4, 0, 2, fds), 2);
	ck_assert_int_eq(fds[0], 1000);
	ck_assert_uint_eq(stoup_snapshot_fds(&d, 4, 3, 4, fds), 0);
}
END_TEST

START_TEST(a_snapshot_is_stale_when_its_first_volume_may_be_closed)
{
	struct stoup_volume v = {.file = &files[0], .born_seq = 1, .retired_seq = 11};

	/* Snapshot 10 has it, and is the last one. */
	for (d.snapshot_seq = 11; d.snapshot_seq < 30; d.snapshot_seq++)
		ck_assert_int_eq(stoup_snapshot_stale(&d, 10),
			stoup_volume_step(&v, d.snapshot_seq, 10) == STOUP_VOLUME_CLOSE);
}
END_TEST

/* ---- what is in use --------------------------------------------------------------------------- */

START_TEST(the_oldest_snapshot_is_what_pages_say_within_what_was_given)
{
	d.snapshot_seq = 9;
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 9);
	attach(0, 7, 5);
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 5);
	attach(1, 6, 6);
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 5);
	/* No page says more than its consumer was given, nor less than there is. */
	attach(0, 7, UINT64_MAX);
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 6);
	attach(1, 6, 0);
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 1);
	/* Who hung up and lives may still read; a child may still come. */
	consumers[1].state = STOUP_CONSUMER_DEAF;
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 1);
	consumers[1].state = STOUP_CONSUMER_TICKET;
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 1);
	/* Who was cut off asks no more. */
	consumers[1].cut = 1;
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 7);
	consumers[1].cut = 0;
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 1);
	consumers[1].state = STOUP_CONSUMER_NONE;
	ck_assert_uint_eq(stoup_snapshot_oldest(&d), 7);
}
END_TEST

START_TEST(a_new_consumer_gets_the_newest_and_its_page_says_so)
{
	d.snapshot_seq = 4;
	attach(2, 0, 0);
	stoup_snapshot_give(&d, &consumers[2]);
	ck_assert_uint_eq(consumers[2].snapshot_seq, 4);
	ck_assert_uint_eq(atomic_load(&pages[2]->snapshot_seq), 4);
}
END_TEST

START_TEST(a_retired_volume_is_closed_emptied_and_its_place_freed_in_this_order)
{
	struct stoup_volume v = {.file = &files[0], .born_seq = 1, .buffer_cnt = 2};

	ck_assert_int_eq(stoup_volume_step(&v, 50, 1), STOUP_VOLUME_STAY);
	v.retired_seq = 5;
	/* In use by snapshot 4, and eight snapshots are served. */
	ck_assert_int_eq(stoup_volume_step(&v, 5, 4), STOUP_VOLUME_STAY);
	ck_assert_int_eq(stoup_volume_step(&v, 12, 4), STOUP_VOLUME_STAY);
	ck_assert_int_eq(stoup_volume_step(&v, 13, 4), STOUP_VOLUME_CLOSE);
	ck_assert_int_eq(stoup_volume_step(&v, 5, 5), STOUP_VOLUME_CLOSE);
	v.closed = 1;
	ck_assert_int_eq(stoup_volume_step(&v, 13, 13), STOUP_VOLUME_STAY);
	v.buffer_cnt = 0;
	ck_assert_int_eq(stoup_volume_step(&v, 13, 4), STOUP_VOLUME_EMPTY);
	v.file = NULL;
	/* However old the snapshot is: its consumer may still say the place's number. */
	ck_assert_int_eq(stoup_volume_step(&v, 1000, 4), STOUP_VOLUME_STAY);
	ck_assert_int_eq(stoup_volume_step(&v, 1000, 5), STOUP_VOLUME_FREE);
}
END_TEST

START_TEST(only_a_place_that_nobody_can_name_is_given_again)
{
	put(0, 0, 1, 0);
	put(1, 1, 1, 2);
	places[2].closed = 1; /* empty, and named by an old snapshot */
	places[2].retired_seq = 2;
	ck_assert_uint_eq(stoup_place_find(&d, 0), 3);
	ck_assert_uint_eq(stoup_place_find(&d, 4), 4);
	put(3, 3, 3, 0);
	put(4, 4, 3, 0);
	put(5, 5, 3, 0);
	ck_assert_uint_eq(stoup_place_find(&d, 0), STOUP_IDX_NONE);
}
END_TEST

/* ---- what a rescan finds ---------------------------------------------------------------------- */

static struct stoup_rescan_diff diff;

static void compare(struct stoup_store *first, struct stoup_store *second)
{
	struct stoup_store *stores[2] = {first, second};

	ck_assert_int_eq(stoup_rescan_compare(places, PLACE_CNT, stores, 2, &diff), 0);
}

START_TEST(a_rescan_tells_what_came_and_what_went)
{
	struct stoup_store_volume *list[3] = {&files[0], &files[2], &files[4]};
	struct stoup_store store = {.volume_cnt = 3, .volumes = list};

	put(0, 0, 1, 0);
	put(2, 1, 1, 0);
	put(3, 2, 2, 0);
	put(5, 4, 1, 3); /* retired before, and there again: it is another life */
	compare(&store, NULL);
	ck_assert_uint_eq(diff.born_cnt, 1);
	ck_assert_ptr_eq(diff.born[0].file, &files[4]);
	ck_assert_uint_eq(diff.born[0].store_idx, 0);
	ck_assert_uint_eq(diff.retired_cnt, 1);
	ck_assert_uint_eq(diff.retired[0], 2);
	stoup_rescan_diff_fini(&diff);
}
END_TEST

START_TEST(a_volume_is_the_same_when_its_id_and_its_file_are)
{
	struct stoup_store_volume *list[3] = {&files[8], &files[9], &files[10]};
	struct stoup_store store = {.volume_cnt = 3, .volumes = list};

	put(0, 0, 1, 0);
	put(1, 1, 1, 0);
	put(2, 2, 1, 0);
	/* 8 is volume 0 read anew (its time was touched), 9 a copy of volume 1, 10 another volume in the
	 * file of volume 2. */
	files[8].ino = files[0].ino;
	indexes[8] = indexes[0];
	files[8].mtime_ns = 77;
	indexes[9] = indexes[1];
	files[10].ino = files[2].ino;
	compare(&store, NULL);
	ck_assert_uint_eq(diff.born_cnt, 2);
	ck_assert_ptr_eq(diff.born[0].file, &files[9]);
	ck_assert_ptr_eq(diff.born[1].file, &files[10]);
	ck_assert_uint_eq(diff.retired_cnt, 2);
	stoup_rescan_diff_fini(&diff);
}
END_TEST

START_TEST(a_store_that_could_not_be_read_keeps_its_volumes)
{
	struct stoup_store_volume *list[1] = {&files[3]};
	struct stoup_store store = {.volume_cnt = 1, .volumes = list};

	put(0, 0, 1, 0);
	put(1, 1, 1, 0);
	places[1].store_idx = 1;
	compare(NULL, &store);
	ck_assert_uint_eq(diff.retired_cnt, 1);
	ck_assert_uint_eq(diff.retired[0], 1);
	ck_assert_uint_eq(diff.born_cnt, 1);
	ck_assert_uint_eq(diff.born[0].store_idx, 1);
	stoup_rescan_diff_fini(&diff);
	compare(NULL, NULL);
	ck_assert_uint_eq(diff.retired_cnt + diff.born_cnt, 0);
	stoup_rescan_diff_fini(&diff);
}
END_TEST

START_TEST(one_file_in_two_stores_is_two_volumes)
{
	struct stoup_store_volume *list[1] = {&files[0]};
	struct stoup_store store = {.volume_cnt = 1, .volumes = list};

	put(0, 0, 1, 0);
	compare(&store, &store);
	ck_assert_uint_eq(diff.born_cnt, 1);
	ck_assert_uint_eq(diff.born[0].store_idx, 1);
	ck_assert_uint_eq(diff.retired_cnt, 0);
	stoup_rescan_diff_fini(&diff);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("snapshot");
	TCase *tc = tcase_create("snapshot");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_snapshot_has_the_volumes_that_lived_at_its_time);
	tcase_add_test(tc, a_snapshot_is_stale_when_its_first_volume_may_be_closed);
	tcase_add_test(tc, the_oldest_snapshot_is_what_pages_say_within_what_was_given);
	tcase_add_test(tc, a_new_consumer_gets_the_newest_and_its_page_says_so);
	tcase_add_test(tc, a_retired_volume_is_closed_emptied_and_its_place_freed_in_this_order);
	tcase_add_test(tc, only_a_place_that_nobody_can_name_is_given_again);
	tcase_add_test(tc, a_rescan_tells_what_came_and_what_went);
	tcase_add_test(tc, a_volume_is_the_same_when_its_id_and_its_file_are);
	tcase_add_test(tc, a_store_that_could_not_be_read_keeps_its_volumes);
	tcase_add_test(tc, one_file_in_two_stores_is_two_volumes);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
