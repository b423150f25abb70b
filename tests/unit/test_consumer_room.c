/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_room.c - what a merge holds at once: promised before it begins, refused where it does not fit, whole at the
 * end; over forks and restarts; and what it has read ahead.
 *
 *      A/1 [10][13]   A/2 [11 12]   A/3 [12]      each in blocks of its own
 *      B/1 [10]       B/2 [11]      B/3 [12]      in one block
 */
#include <sys/wait.h>
#include "consumer/cursor.h"
#include "tests/unit/test_consumer_fake.h"

static struct fake fake;
static struct stoup *st;
static struct stoup_series series[6];

static const struct stoup_options quick = {.struct_len = sizeof(struct stoup_options),
	.timeout_ns = 60000000000,
	.reconnect_ns = 60000000000};

static void end(void)
{
	ck_assert_int_eq(stoup_use_cnt(st), 0);
	ck_assert_uint_eq(st->current->reserved_bytes, 0);
	ck_assert_uint_eq(st->current->shared_bytes, 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

/* Three series with a block each, and three that share one. */
static void six(uint64_t lease_cap, uint32_t cell_cap)
{
	static const struct fake_series two[] = {
		{.name = "A/1",
			.schema = "pair",
			.segment_cnt = 2,
			.segments = {{0, 1, {10}}, {1, 1, {13}}}},
		{.name = "A/2", .schema = "pair", .segment_cnt = 1, .segments = {{2, 2, {11, 12}}}},
		{.name = "A/3", .schema = "pair", .segment_cnt = 1, .segments = {{3, 1, {12}}}},
		{.name = "B/1", .schema = "pair", .segment_cnt = 1, .segments = {{4, 1, {10}}}},
		{.name = "B/2", .schema = "pair", .segment_cnt = 1, .segments = {{4, 1, {11}}}},
		{.name = "B/3", .schema = "pair", .segment_cnt = 1, .segments = {{4, 1, {12}}}},
	};
	struct stoup_error err;

	fake_init_cells(&fake, lease_cap, cell_cap);
	fake_volume(&fake, 1, 0, 5, two, 6);
	fake_start(&fake, "p");
	st = fake_attach("p", &quick);
	for (uint32_t i = 0; i < 6; i++) {
		int rc = stoup_series_find(st, two[i].name, &series[i], &err);

		fake_check(rc, &err);
	}
}

static uint64_t count(struct stoup_cursor *cur)
{
	struct stoup_span span;
	uint64_t cnt = 0;
	int rc;

	while ((rc = stoup_next(cur, &span)) > 0)
		cnt += span.record_cnt;
	ck_assert_msg(rc == 0, "%d: %s", rc, stoup_cursor_error(cur)->text);
	return cnt;
}

START_TEST(what_cannot_be_held_at_once_is_refused_at_once_with_the_numbers)
{
	struct stoup_cursor *cur = NULL, *other = NULL;
	struct stoup_error err;

	six(3 * 4096 - 1, STOUP_CELL_CAP);
	ck_assert_int_eq(stoup_merge(st, series, 3, NULL, &cur, &err), -EDQUOT);
	ck_assert_ptr_nonnull(strstr(err.text, "12288"));
	ck_assert_ptr_nonnull(strstr(err.text, "12287"));
	ck_assert_ptr_nonnull(strstr(err.text, "--lease-bytes 12288"));
	ck_assert_ptr_null(cur);
	ck_assert_uint_eq(fake_log_cnt(&fake), 0);
	/* What was refused keeps nothing. */
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(stoup_merge(st, series, 2, NULL, &cur, &err), 0);
		ck_assert_int_eq(stoup_use_cnt(st), 1);
		ck_assert_int_eq(stoup_merge(st, series, 2, NULL, &other, &err), -EDQUOT);
		ck_assert_ptr_nonnull(strstr(err.text, "8192 in use"));
		ck_assert_uint_eq(count(cur), 4);
		stoup_cursor_close(cur);
	}
	end();
}
END_TEST

START_TEST(what_can_just_be_held_is_merged_while_nothing_else_fits)
{
	struct stoup_cursor *cur = NULL, *scan = NULL;
	struct stoup_span span, mine;
	struct stoup_lease lease;
	struct stoup_error err;

	six(3 * 4096, STOUP_CELL_CAP);
	ck_assert_int_eq(stoup_merge(st, series, 3, NULL, &cur, &err), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(fake_leased(&fake), 3);
	/* A scan has no room, and what it would take is the merge's. */
	ck_assert_int_eq(stoup_scan(st, &series[3], NULL, &scan, &err), 0);
	ck_assert_int_eq(stoup_next(scan, &mine), -EDQUOT);
	ck_assert_int_eq(stoup_hold(&span, &lease), -EDQUOT);
	stoup_cursor_close(scan);
	ck_assert_uint_eq(span.record_cnt + count(cur), 5);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(a_run_that_is_held_stays_when_the_merge_is_closed_and_pays_for_itself)
{
	struct stoup_cursor *cur = NULL;
	struct stoup_span span;
	struct stoup_lease lease;
	struct stoup_error err;

	six(4 * 4096, STOUP_CELL_CAP);
	ck_assert_int_eq(stoup_merge(st, series, 3, NULL, &cur, &err), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_hold(&span, &lease), 0);
	ck_assert_uint_eq(count(cur), 4);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	stoup_cursor_close(cur);
	ck_assert_int_eq(((const struct pair *)span.base)->key, 10);
	ck_assert_int_eq(stoup_merge(st, series, 3, NULL, &cur, &err), 0);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_release(&lease), 0);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	end();
}
END_TEST

START_TEST(a_block_that_several_series_lie_in_counts_once)
{
	struct stoup_cursor *cur = NULL;
	struct stoup_error err;

	six(2 * 4096, 2);
	ck_assert_int_eq(stoup_merge(st, series + 2, 4, NULL, &cur, &err), 0);
	ck_assert_uint_eq(count(cur), 4);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_merge(st, series + 1, 5, NULL, &cur, &err), -EMFILE);
	ck_assert_ptr_nonnull(strstr(err.text, "--cells"));
	ck_assert_ptr_nonnull(strstr(err.text, "needs 3 "));
	end();
}
END_TEST

START_TEST(a_new_daemon_with_too_small_a_share_says_so_and_the_merge_stays)
{
	static const struct fake_series three[] = {
		{.name = "A/1",
			.schema = "pair",
			.segment_cnt = 2,
			.segments = {{0, 1, {10}}, {1, 1, {13}}}},
		{.name = "A/2", .schema = "pair", .segment_cnt = 1, .segments = {{2, 2, {11, 12}}}},
		{.name = "A/3", .schema = "pair", .segment_cnt = 1, .segments = {{3, 1, {12}}}},
	};
	struct stoup_cursor *cur = NULL;
	struct stoup_error err;
	struct stoup_span span;
	int64_t keys[8];
	int cnt = 0, rc, refused = 0;

	six(3 * 4096, STOUP_CELL_CAP);
	ck_assert_int_eq(stoup_merge(st, series, 3, NULL, &cur, &err), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	keys[cnt++] = ((const struct pair *)span.base)->key;
	fake_kill(&fake);
	fake.control->daemon_start = 1;
	fake_reset(&fake);
	fake.control->lease_bytes_cap = 2 * 4096;
	fake_volume(&fake, 1, 0, 4, three, 3);
	fake_start(&fake, "p");
	while ((rc = stoup_next(cur, &span)) != 0) {
		if (rc < 0) {
			ck_assert_int_eq(rc, -EDQUOT);
			ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "12288"));
			refused++;
			fake.control->lease_bytes_cap = 3 * 4096;
			/* It was read at attach. */
			st->current->lease_bytes_cap = 3 * 4096;
			continue;
		}
		for (uint64_t i = 0; i < span.record_cnt; i++)
			keys[cnt++] = ((const struct pair *)span.base)[i].key;
	}
	ck_assert_int_eq(refused, 1);
	ck_assert_int_eq(cnt, 5);
	for (int i = 1; i < cnt; i++)
		ck_assert_int_ge(keys[i], keys[i - 1]);
	stoup_cursor_close(cur);
	end();
}
END_TEST

/* What a child sees, as its exit status: 0 all was well. */
static int in_child(struct stoup_fork *fork_state, struct stoup_cursor *cur)
{
	uint64_t cnt = 0;
	struct stoup_span span;
	int rc;

	if (fork_state && stoup_fork_child(fork_state, NULL) != 0)
		return 1;
	while ((rc = stoup_next(cur, &span)) > 0)
		cnt += span.record_cnt;
	stoup_cursor_close(cur);
	if (!fork_state)
		return rc != -ECHILD;
	/* Its share is its own, and whole again. */
	if (rc != 0 || cnt != 4 || stoup_merge(st, series, 3, NULL, &cur, NULL) != 0)
		return 2;
	stoup_cursor_close(cur);
	return stoup_detach(st) != 0;
}

START_TEST(a_child_goes_on_with_the_merge_of_its_parent_and_so_does_the_parent)
{
	for (int prepared = 0; prepared < 2; prepared++) {
		struct stoup_cursor *cur = NULL;
		struct stoup_fork fork_state;
		struct stoup_error err;
		struct stoup_span span;
		int rc, status;
		pid_t pid;

		six(3 * 4096, STOUP_CELL_CAP);
		ck_assert_int_eq(stoup_merge(st, series, 3, NULL, &cur, &err), 0);
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		if (prepared) {
			rc = stoup_fork_prepare(st, &fork_state, &err);
			fake_check(rc, &err);
		}
		pid = fork();
		if (pid == 0)
			_exit(in_child(prepared ? &fork_state : NULL, cur));
		if (prepared)
			ck_assert_int_eq(stoup_fork_parent(&fork_state, pid > 0), 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
		ck_assert_uint_eq(count(cur), 4);
		stoup_cursor_close(cur);
		end();
	}
}
END_TEST

START_TEST(wrong_use_is_refused)
{
	struct stoup_range range = {.flags = 0x4000};
	struct stoup_cursor *cur = NULL;
	struct stoup_error err;
	struct stoup_span span;

	six(1 << 20, STOUP_CELL_CAP);
	ck_assert_int_eq(stoup_merge(st, series, 0, NULL, &cur, &err), -EINVAL);
	ck_assert_int_eq(stoup_merge(st, NULL, 2, NULL, &cur, &err), -EINVAL);
	ck_assert_int_eq(stoup_merge(NULL, series, 2, NULL, &cur, &err), -EINVAL);
	ck_assert_int_eq(stoup_merge(st, series, STOUP_MERGE_CAP + 1, NULL, &cur, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "65536"));
	ck_assert_int_eq(stoup_merge(st, series, 2, &range, &cur, &err), -EINVAL);
	range = (struct stoup_range){.flags = STOUP_LAST, .limit = 3};
	ck_assert_int_eq(stoup_merge(st, series, 2, &range, &cur, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "STOUP_BACKWARD"));
	range = (struct stoup_range){.flags = STOUP_FOLLOW};
	ck_assert_int_eq(stoup_merge(st, series, 2, &range, &cur, &err), -EINVAL);
	ck_assert_int_eq(stoup_merge(st, series, 2, NULL, &cur, &err), 0);
	ck_assert_int_eq(stoup_asof(cur, 12, &span), -EINVAL);
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "stoup_asof_all"));
	ck_assert_int_eq(stoup_asof_all(&cur, 1, 12, &span), -EINVAL);
	stoup_cursor_close(cur);
	cur = NULL;
	series[1].id = 99;
	ck_assert_int_eq(stoup_merge(st, series, 2, NULL, &cur, &err), -ENOENT);
	ck_assert_ptr_null(cur);
	ck_assert_uint_eq(stoup_cursor_source(NULL), 0);
	ck_assert_int_eq(stoup_use_cnt(st), 0);
	end();
}
END_TEST

/* Wait until the conductor has done all that was asked: it takes what has come meanwhile in the order of the slots, which
 * are used anew. */
static void all_done(void)
{
	struct stoup_page *page = st->current->page;

	for (uint32_t i = 0, waits = 0; i < STOUP_SLOT_CNT; i++)
		while (atomic_load(&page->slots[i].state) == STOUP_SLOT_WAIT) {
			ck_assert_uint_lt(waits++, 60000);
			usleep(1000);
		}
}

START_TEST(read_ahead_follows_the_order_in_which_blocks_are_wanted)
{
	/* A/1 wants block 1 after 10, block 2 after 90; A/2 wants block 4 after 20, block 5 after 21. */
	static const struct fake_series two[] = {
		{.name = "A/1",
			.schema = "pair",
			.segment_cnt = 3,
			.segments = {{0, 1, {10}}, {1, 2, {80, 90}}, {2, 1, {95}}}},
		{.name = "A/2",
			.schema = "pair",
			.segment_cnt = 4,
			.segments = {{3, 1, {20}}, {4, 1, {21}}, {5, 1, {22}}, {6, 1, {91}}}},
	};
	const uint32_t wanted[] = {0, 3, 1, 4, 5, 6, 2};
	struct stoup_options opt = quick;
	struct stoup_cursor *cur = NULL;
	struct stoup_error err;
	uint32_t got[16], cnt = 0, record_cnt = 0;
	struct stoup_span span;

	fake_init(&fake);
	fake_volume(&fake, 1, 0, 7, two, 2);
	fake_start(&fake, "p");
	opt.ahead_cnt = 2;
	st = fake_attach("p", &opt);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_int_eq(stoup_series_find(st, two[i].name, &series[i], &err), 0);
	atomic_store(&fake.load_ahead, 1);
	ck_assert_int_eq(stoup_merge(st, series, 2, NULL, &cur, &err), 0);
	while (stoup_next(cur, &span) > 0) {
		record_cnt += (uint32_t)span.record_cnt;
		all_done();
	}
	ck_assert_uint_eq(record_cnt, 8);
	stoup_cursor_close(cur);
	for (uint32_t i = 0; i < fake_log_cnt(&fake); i++) {
		struct fake_request r = fake_log(&fake, i);

		if (r.kind == STOUP_REQUEST_AHEAD) {
			ck_assert_uint_eq(r.ahead_cnt, 1);
			got[cnt++] = r.ahead_block_idx;
		} else if (i == 0) {
			got[cnt++] = r.block_idx;
		}
	}
	ck_assert_uint_eq(cnt, 7);
	for (uint32_t i = 0; i < cnt; i++)
		ck_assert_uint_eq(got[i], wanted[i]);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("room");
	TCase *tcase = tcase_create("room");

	tcase_set_timeout(tcase, 100);
	tcase_add_test(tcase, what_cannot_be_held_at_once_is_refused_at_once_with_the_numbers);
	tcase_add_test(tcase, what_can_just_be_held_is_merged_while_nothing_else_fits);
	tcase_add_test(
		tcase, a_run_that_is_held_stays_when_the_merge_is_closed_and_pays_for_itself);
	tcase_add_test(tcase, a_block_that_several_series_lie_in_counts_once);
	tcase_add_test(tcase, a_new_daemon_with_too_small_a_share_says_so_and_the_merge_stays);
	tcase_add_test(tcase, a_child_goes_on_with_the_merge_of_its_parent_and_so_does_the_parent);
	tcase_add_test(tcase, wrong_use_is_refused);
	tcase_add_test(tcase, read_ahead_follows_the_order_in_which_blocks_are_wanted);
	suite_add_tcase(suite, tcase);
	return fake_main(suite);
}
