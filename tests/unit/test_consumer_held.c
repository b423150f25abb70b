/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_held.c - spans in batches with their leases, and a handle that goes with its last use.
 *
 *      block 0   A/x [10 20]  B/x [11]      block 2   A/x [50]
 *      block 1   A/x [30 40]                block 3   A/x [60]
 */
#include <sys/wait.h>
#include "tests/unit/test_consumer_fake.h"

static const struct fake_series series[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 4,
		.segments = {{0, 2, {10, 20}}, {1, 2, {30, 40}}, {2, 1, {50}}, {3, 1, {60}}}},
	{.name = "B/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {11}}}},
};

static const struct stoup_options no_ahead = {.struct_len = sizeof(struct stoup_options),
	.ahead_cnt = UINT32_MAX,
	.timeout_ns = 60000000000};

static struct fake fake;
static struct stoup *st;
static struct stoup_held held[4];
static struct stoup_held *const places[4] = {&held[0], &held[1], &held[2], &held[3]};

static void begin(uint64_t lease_cap, uint32_t cell_cap)
{
	fake_init_cells(&fake, lease_cap, cell_cap);
	fake_volume(&fake, 1, 0, 4, series, 2);
	fake_start(&fake, "p");
	st = fake_attach("p", &no_ahead);
	memset(held, 0, sizeof(held));
}

static void end(void)
{
	ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_int_eq(stoup_use_cnt(st), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

/* All blocks into the pool. */
static void load_all(void)
{
	struct stoup_cursor *cur = fake_scan(st, "A/x", 0, 0);
	struct stoup_span span;
	int rc;

	while ((rc = stoup_next(cur, &span)) > 0)
		;
	ck_assert_int_eq(rc, 0);
	stoup_cursor_close(cur);
}

START_TEST(what_is_in_the_pool_comes_in_one_call_each_span_with_its_lease)
{
	static const int64_t first[4] = {10, 30, 50, 60};
	struct stoup_cursor *cur;

	begin(1 << 20, STOUP_CELL_CAP);
	load_all();
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next_held(cur, places, 4, 1 << 20), 4);
	ck_assert_uint_eq(fake_leased(&fake), 4);
	ck_assert_int_eq(stoup_use_cnt(st), 5);
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(((const struct pair *)held[i].span.base)->key, first[i]);
		ck_assert_ptr_eq(held[i].lease.client, st);
	}
	ck_assert_int_eq(stoup_next_held(cur, places, 4, 1 << 20), 0);
	/* In any order, and the cursor keeps none. */
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(stoup_release((struct stoup_lease *)&held[(i + 2) % 4]), 0);
		ck_assert_uint_eq(fake_leased(&fake), 3 - i);
	}
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(only_the_first_span_is_waited_for)
{
	struct stoup_cursor *cur;

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	/* Nothing is in the pool: each call waits for one block and hands it out. */
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(stoup_next_held(cur, places, 4, 1 << 20), 1);
		ck_assert_uint_eq(fake_leased(&fake), 1);
		ck_assert_int_eq(stoup_release(&held[0].lease), 0);
		ck_assert_uint_eq(held[1].span.record_cnt, 0);
	}
	ck_assert_int_eq(stoup_next_held(cur, places, 4, 1 << 20), 0);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(a_batch_ends_where_its_blocks_reach_the_bytes)
{
	struct stoup_cursor *cur;

	begin(1 << 20, STOUP_CELL_CAP);
	load_all();
	cur = fake_scan(st, "A/x", 0, 0);
	/* 48 bytes in block 0, 32 in block 1. */
	ck_assert_int_eq(stoup_next_held(cur, places, 4, 49), 2);
	ck_assert_int_eq(stoup_next_held(cur, &places[2], 2, 1), 1);
	ck_assert_int_eq(held[2].span.first_key, 50);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(stoup_release(&held[i].lease), 0);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(an_error_behind_the_first_span_comes_with_the_next_call)
{
	struct stoup_cursor *cur;

	begin(1 << 20, STOUP_CELL_CAP);
	load_all();
	/* Block 1 goes, and cannot be read any more. */
	atomic_store(&fake.volumes[0].residency[1], 0);
	atomic_store(&fake.volumes[0].blocks[1].error, -EBADMSG);
	atomic_store(&fake.volumes[0].blocks[1].act, FAKE_FAIL);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next_held(cur, places, 4, 1 << 20), 1);
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	ck_assert_int_eq(stoup_next_held(cur, &places[1], 3, 1 << 20), -EBADMSG);
	ck_assert_int_eq(stoup_cursor_error(cur)->code, -EBADMSG);
	ck_assert_int_eq(stoup_cursor_skip(cur), 2);
	ck_assert_int_eq(stoup_next_held(cur, &places[1], 3, 1 << 20), 2);
	ck_assert_int_eq(held[1].span.first_key, 50);
	ck_assert_int_eq(held[2].span.first_key, 60);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(stoup_release(&held[i].lease), 0);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(a_share_that_is_used_up_ends_a_batch_and_loses_no_span)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	int64_t rc, keys = 0;
	uint32_t cnt = 0;

	/* Three extents of one page each. */
	begin(3 * 4096, STOUP_CELL_CAP);
	load_all();
	cur = fake_scan(st, "A/x", 0, 0);
	while (cnt < 4 && (rc = stoup_next_held(cur, &places[cnt], 4 - cnt, 1 << 20)) > 0)
		cnt += (uint32_t)rc;
	ck_assert_int_eq(rc, -EDQUOT);
	ck_assert_uint_eq(cnt, 3);
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "--lease-bytes"));
	ck_assert_int_eq(stoup_next_held(cur, &places[cnt], 1, 0), -EDQUOT);
	for (uint32_t i = 0; i < cnt; i++) {
		keys += held[i].span.first_key;
		ck_assert_int_eq(stoup_release(&held[i].lease), 0);
	}
	while (stoup_next(cur, &span) > 0)
		keys += span.first_key;
	ck_assert_int_eq(keys, 10 + 30 + 50 + 60);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(a_cursor_between_two_calls_reserves_nothing_of_the_share)
{
	struct stoup_cursor *cursors[3];

	/* Three extents of one page each, for three cursors that each hold one. */
	begin(3 * 4096, STOUP_CELL_CAP);
	load_all();
	for (uint32_t i = 0; i < 3; i++) {
		cursors[i] = fake_scan(st, "A/x", 30 + 10 * (i + (i > 0)), 0);
		ck_assert_int_eq(stoup_next_held(cursors[i], &places[i], 1, 0), 1);
	}
	ck_assert_uint_eq(fake_leased(&fake), 3);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(stoup_release(&held[i].lease), 0);
		stoup_cursor_close(cursors[i]);
	}
	end();
}
END_TEST

START_TEST(a_span_that_cannot_be_held_may_be_skipped)
{
	struct stoup_cursor *cur, *other;
	struct stoup_span span;

	/* One cell, which another cursor's span keeps shared. */
	begin(1 << 20, 2);
	load_all();
	other = fake_scan(st, "A/x", 60, 61);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next_held(other, places, 1, 0), 1);
	ck_assert_int_eq(stoup_next_held(cur, &places[1], 1, 0), 1);
	ck_assert_int_eq(stoup_next_held(cur, &places[2], 1, 0), -EMFILE);
	ck_assert_int_eq(stoup_cursor_skip(cur), 2);
	ck_assert_int_eq(stoup_release(&held[0].lease), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(span.first_key, 50);
	ck_assert_int_eq(stoup_release(&held[1].lease), 0);
	stoup_cursor_close(other);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(a_span_for_whose_lease_there_is_no_memory_comes_again)
{
	struct stoup_cursor *cur;
	uint32_t cap;

	begin(1 << 20, STOUP_CELL_CAP);
	load_all();
	cur = fake_scan(st, "A/x", 0, 0);
	cap = st->hold_cap;
	st->hold_cap = UINT32_MAX / 2; /* the table cannot grow */
	ck_assert_int_eq(stoup_next_held(cur, places, 4, 0), -ENOMEM);
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "A/x"));
	st->hold_cap = cap;
	ck_assert_int_eq(stoup_next_held(cur, places, 1, 0), 1);
	ck_assert_int_eq(held[0].span.first_key, 10);
	st->hold_cap = UINT32_MAX / 2;
	st->hold_free = STOUP_CELL_NONE;
	ck_assert_int_eq(stoup_next_held(cur, &places[1], 1, 0), -ENOMEM);
	ck_assert_int_eq(stoup_cursor_skip(cur), 2);
	st->hold_cap = 64;
	st->hold_free = 1;
	ck_assert_int_eq(stoup_next_held(cur, &places[1], 3, 1), 1);
	ck_assert_int_eq(held[1].span.first_key, 50);
	ck_assert_int_eq(stoup_release(&held[0].lease), 0);
	ck_assert_int_eq(stoup_release(&held[1].lease), 0);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(no_room_is_an_error)
{
	struct stoup_cursor *cur;

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next_held(cur, places, 0, 0), -EINVAL);
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	ck_assert_int_eq(stoup_next_held(cur, NULL, 1, 0), -EINVAL);
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	stoup_cursor_close(cur);
	end();
}
END_TEST

/* ---- leaving --------------------------------------------------------------------------------- */

START_TEST(a_handle_that_is_left_goes_with_its_last_lease)
{
	const struct stoup_page *page;
	struct stoup_cursor *cur;

	begin(1 << 20, STOUP_CELL_CAP);
	page = fake.peers[0].page.base;
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next_held(cur, places, 1, 0), 1);
	ck_assert_int_eq(stoup_leave(st), 1);
	stoup_cursor_close(cur);
	ck_assert_uint_eq(atomic_load(&page->state), STOUP_PAGE_ATTACHED);
	ck_assert_int_eq(((const struct pair *)held[0].span.base)->key, 10);
	ck_assert_int_eq(stoup_release(&held[0].lease), 0);
	ck_assert_uint_eq(atomic_load(&page->state), STOUP_PAGE_DETACHED);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_handle_that_is_left_goes_with_its_last_cursor)
{
	const struct stoup_page *page;
	struct stoup_cursor *cur;

	begin(1 << 20, STOUP_CELL_CAP);
	page = fake.peers[0].page.base;
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next_held(cur, places, 1, 0), 1);
	ck_assert_int_eq(stoup_leave(st), 1);
	ck_assert_int_eq(stoup_release(&held[0].lease), 0);
	ck_assert_uint_eq(atomic_load(&page->state), STOUP_PAGE_ATTACHED);
	stoup_cursor_close(cur);
	ck_assert_uint_eq(atomic_load(&page->state), STOUP_PAGE_DETACHED);
	fake_stop(&fake);
}
END_TEST

START_TEST(an_idle_handle_goes_at_once)
{
	const struct stoup_page *page;

	begin(1 << 20, STOUP_CELL_CAP);
	page = fake.peers[0].page.base;
	ck_assert_int_eq(stoup_leave(st), 0);
	ck_assert_uint_eq(atomic_load(&page->state), STOUP_PAGE_DETACHED);
	ck_assert_int_eq(stoup_leave(NULL), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_child_without_leases_keeps_what_it_inherited_mapped)
{
	struct stoup_cursor *cur;
	int status;
	pid_t pid;

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next_held(cur, places, 1, 0), 1);
	pid = fork();
	if (pid == 0) {
		int fine = stoup_use_cnt(st) == -ECHILD && stoup_leave(st) == 1 &&
		           ((const struct pair *)held[0].span.base)->key == 10;

		_exit(fine ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(stoup_release(&held[0].lease), 0);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(lengths_of_structs_can_be_asked_for)
{
	ck_assert_uint_eq(stoup_struct_len("stoup_span"), sizeof(struct stoup_span));
	ck_assert_uint_eq(stoup_struct_len("stoup_held"),
		sizeof(struct stoup_span) + sizeof(struct stoup_lease));
	ck_assert_uint_eq(stoup_struct_len("stoup_schema"), sizeof(struct stoup_schema));
	ck_assert_uint_eq(stoup_struct_len("stoup_spam"), 0);
	ck_assert_uint_eq(stoup_struct_len(NULL), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer held");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, what_is_in_the_pool_comes_in_one_call_each_span_with_its_lease);
	tcase_add_test(tc, only_the_first_span_is_waited_for);
	tcase_add_test(tc, a_batch_ends_where_its_blocks_reach_the_bytes);
	tcase_add_test(tc, an_error_behind_the_first_span_comes_with_the_next_call);
	tcase_add_test(tc, a_share_that_is_used_up_ends_a_batch_and_loses_no_span);
	tcase_add_test(tc, a_cursor_between_two_calls_reserves_nothing_of_the_share);
	tcase_add_test(tc, a_span_that_cannot_be_held_may_be_skipped);
	tcase_add_test(tc, a_span_for_whose_lease_there_is_no_memory_comes_again);
	tcase_add_test(tc, no_room_is_an_error);
	tcase_add_test(tc, a_handle_that_is_left_goes_with_its_last_lease);
	tcase_add_test(tc, a_handle_that_is_left_goes_with_its_last_cursor);
	tcase_add_test(tc, an_idle_handle_goes_at_once);
	tcase_add_test(tc, a_child_without_leases_keeps_what_it_inherited_mapped);
	tcase_add_test(tc, lengths_of_structs_can_be_asked_for);
	suite_add_tcase(suite, tc);
	return fake_main(suite);
}
