/* SPDX-License-Identifier: Apache-2.0 */
/* test_ring_recency.c - what stays and what goes first: re-use, cursors that are on their way, and
 * read-ahead. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/ring_fixture.h"

/* ---- recency ---- */

START_TEST(what_a_second_consumer_used_outlives_what_one_read)
{
	uint32_t idx[4];

	make(8, 2, 8, 0);
	fill_read(idx, 4, 2);
	stoup_ring_used(ring, idx[1], 255);
	for (uint32_t i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		expect_evict_one(2, STOUP_RING_DEMAND, idx[i]);
		evict_all();
		put_read(2);
	}
	ck_assert_uint_eq(off_of(idx[1]), 2);
}
END_TEST

START_TEST(a_consumer_counts_again_only_after_a_sixteenth_of_the_region)
{
	struct stoup_ring_extent extent;
	uint32_t idx;

	make(64, 4, 64, 0);
	idx = put_read(4);
	stoup_ring_used(ring, idx, 0);
	put_read(3);
	stoup_ring_used(ring, idx, 0);
	ck_assert_int_eq(stoup_ring_buffer(ring, idx, &extent), 0);
	ck_assert_uint_eq(extent.heat, 0);
	put_read(1);
	stoup_ring_used(ring, idx, 0);
	stoup_ring_used(ring, idx, 0);
	ck_assert_int_eq(stoup_ring_buffer(ring, idx, &extent), 0);
	ck_assert_uint_eq(extent.heat, 1);
	ck_assert_uint_eq(extent.used_cnt, 1);
	for (uint32_t i = 0; i < 8; i++) {
		put_read(4);
		stoup_ring_used(ring, idx, 0);
	}
	ck_assert_int_eq(stoup_ring_buffer(ring, idx, &extent), 0);
	ck_assert_uint_eq(extent.heat, 3);
}
END_TEST

START_TEST(a_long_scan_does_not_flush_what_is_used_again)
{
	uint32_t hot[4], hits = 0;

	make(64, 1, 64, 2);
	fill_read(hot, 4, 1);
	for (uint32_t i = 0; i < 4000; i++) {
		while (stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan) == STOUP_RING_EVICT)
			evict_all();
		stoup_ring_loaded(ring, plan.idx);
		stoup_ring_used(ring, plan.idx, 1);
		if (i % 16 == 0)
			for (uint32_t h = 0; h < 4; h++)
				stoup_ring_used(ring, hot[h], 0);
	}
	for (uint32_t h = 0; h < 4; h++)
		hits += off_of(hot[h]) == h;
	ck_assert_uint_eq(hits, 4);
}
END_TEST

START_TEST(what_is_used_no_more_cools_down)
{
	uint32_t hot;
	struct stoup_ring_extent extent;

	make(16, 1, 16, 0);
	hot = put_read(1);
	for (uint32_t i = 0; i < 15; i++)
		put_read(1);
	stoup_ring_used(ring, hot, 1);
	/* One re-use is worth one turnover: 16 pages loaded from then on. */
	for (uint32_t i = 0; i < 16; i++) {
		ck_assert_int_eq(
			stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_EVICT);
		ck_assert_uint_ne(plan.evict[0], hot);
		evict_all();
		put_read(1);
	}
	for (uint32_t i = 0; i < 16; i++) {
		ck_assert_int_eq(
			stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_EVICT);
		if (plan.evict[0] == hot)
			break;
		evict_all();
		put_read(1);
	}
	ck_assert_uint_eq(plan.evict[0], hot);
	ck_assert_int_eq(stoup_ring_buffer(ring, hot, &extent), 0);
	ck_assert_uint_eq(extent.heat, 1);
	evict_all();
}
END_TEST

START_TEST(heat_that_has_lapsed_does_not_come_back_with_the_next_use)
{
	struct stoup_ring_extent extent;
	uint32_t idx;

	make(8, 1, 8, 0);
	idx = put_read(1);
	for (uint32_t i = 0; i < 3; i++) {
		put_read(1);
		stoup_ring_used(ring, idx, 0);
	}
	ck_assert_int_eq(stoup_ring_buffer(ring, idx, &extent), 0);
	ck_assert_uint_eq(extent.heat, 3);
	for (uint32_t i = 0; i < 16; i++)
		stoup_ring_free(ring, put_read(1));
	stoup_ring_used(ring, idx, 0);
	ck_assert_int_eq(stoup_ring_buffer(ring, idx, &extent), 0);
	ck_assert_uint_eq(extent.heat, 2); /* 3, less two turnovers, plus this use */
}
END_TEST

START_TEST(a_gone_consumers_number_counts_again_for_its_successor)
{
	struct stoup_ring_extent extent;
	uint32_t idx;

	make(8, 2, 8, 0);
	idx = put_read(2);
	stoup_ring_used(ring, idx, 0);
	ck_assert_int_eq(stoup_ring_buffer(ring, idx, &extent), 0);
	ck_assert_uint_eq(extent.used_cnt, 1);
	stoup_ring_consumer_gone(ring, 0);
	stoup_ring_used(ring, idx, 0);
	ck_assert_int_eq(stoup_ring_buffer(ring, idx, &extent), 0);
	ck_assert_uint_eq(extent.used_cnt, 2);
	ck_assert_uint_eq(extent.heat, 1);
}
END_TEST

START_TEST(of_blocks_that_cursors_will_reach_the_farthest_goes)
{
	uint32_t idx[4];

	make(8, 2, 8, 0);
	fill_read(idx, 4, 2);
	next_use_of[idx[0]] = 3 * PAGE;
	next_use_of[idx[1]] = 9 * PAGE;
	next_use_of[idx[2]] = 5 * PAGE;
	next_use_of[idx[3]] = 0;
	expect_evict_one(2, STOUP_RING_DEMAND, idx[1]);
	keep_all();
	expect_evict_one(2, STOUP_RING_DEMAND, idx[2]);
	keep_all();
	expect_evict_one(2, STOUP_RING_DEMAND, idx[0]);
	keep_all();
	expect_evict_one(2, STOUP_RING_DEMAND, idx[3]);
	evict_all();
}
END_TEST

START_TEST(a_block_that_all_have_used_goes_before_one_that_a_cursor_will_reach)
{
	uint32_t idx[2];

	make(8, 4, 8, 0);
	fill_read(idx, 2, 4);
	for (uint32_t consumer = 0; consumer < 8; consumer++)
		stoup_ring_used(ring, idx[1], consumer);
	next_use_of[idx[0]] = 8 * PAGE;
	expect_evict_one(4, STOUP_RING_DEMAND, idx[1]);
	evict_all();
}
END_TEST

/* ---- read-ahead ---- */

START_TEST(read_ahead_fills_at_most_a_quarter_of_the_region)
{
	uint32_t idx[4];

	make(32, 4, 32, 0);
	for (int i = 0; i < 2; i++)
		idx[i] = put(4, STOUP_RING_READAHEAD);
	ck_assert_uint_eq(stoup_ring_unread_len(ring), 8 * PAGE);
	ck_assert_int_eq(stoup_ring_alloc(ring, 1, STOUP_RING_READAHEAD, &plan), STOUP_RING_NONE);
	ck_assert_uint_eq(stoup_ring_counters(ring)->readahead_refused, 1);
	stoup_ring_loaded(ring, idx[0]);
	ck_assert_uint_eq(stoup_ring_unread_len(ring), 8 * PAGE);
	stoup_ring_used(ring, idx[0], 7);
	ck_assert_uint_eq(stoup_ring_unread_len(ring), 4 * PAGE);
	idx[2] = put(4, STOUP_RING_READAHEAD);
	stoup_ring_unwanted(ring, idx[1]);
	ck_assert_uint_eq(stoup_ring_unread_len(ring), 4 * PAGE);
	stoup_ring_free(ring, idx[2]);
	ck_assert_uint_eq(stoup_ring_unread_len(ring), 0);
}
END_TEST

START_TEST(a_pool_of_a_few_blocks_has_no_read_ahead)
{
	make(31, 4, 32, 0);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, PAGE, STOUP_RING_READAHEAD, &plan), STOUP_RING_NONE);
	stoup_ring_largest_set(ring, 3 * PAGE);
	ck_assert_int_eq(stoup_ring_alloc(ring, PAGE, STOUP_RING_READAHEAD, &plan), STOUP_RING_FIT);
}
END_TEST

START_TEST(read_ahead_spares_unread_hot_and_soon_needed_blocks)
{
	uint32_t idx[8];

	make(16, 2, 16, 0);
	idx[0] = put(2, STOUP_RING_READAHEAD);
	stoup_ring_loaded(ring, idx[0]);
	fill_read(idx + 1, 7, 2);
	for (uint32_t i = 2; i < 8; i++)
		next_use_of[idx[i]] = 4 * PAGE;
	stoup_ring_leased(ring, idx[1], 1);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, 2 * PAGE, STOUP_RING_READAHEAD, &plan), STOUP_RING_NONE);
	next_use_of[idx[5]] = 4 * PAGE + 1;
	expect_evict_one(2, STOUP_RING_READAHEAD, idx[5]);
	evict_all();
	ck_assert_uint_eq(off_of(put(2, STOUP_RING_READAHEAD)), 10);
}
END_TEST

START_TEST(read_ahead_spares_what_was_used_often_and_lately)
{
	uint32_t idx[16];

	make(16, 1, 16, 0);
	fill_read(idx, 15, 1);
	for (uint32_t i = 1; i < 15; i++)
		stoup_ring_leased(ring, idx[i], 1);
	for (uint32_t use = 0; use < 3; use++) {
		stoup_ring_used(ring, idx[0], 0);
		stoup_ring_free(ring, put_read(1));
	}
	idx[15] = put(1, STOUP_RING_DEMAND);
	/* Heat 3 and two sixteenths of a turnover old: worth more than two and a half. */
	ck_assert_int_eq(
		stoup_ring_alloc(ring, PAGE, STOUP_RING_READAHEAD, &plan), STOUP_RING_NONE);
	expect_evict_one(1, STOUP_RING_DEMAND, idx[0]);
	keep_all();
	stoup_ring_leased(ring, idx[0], 0);
	for (uint32_t i = 0; i < 7; i++) {
		if (i < 6)
			ck_assert_int_eq(stoup_ring_alloc(ring, PAGE, STOUP_RING_READAHEAD, &plan),
				STOUP_RING_NONE);
		stoup_ring_free(ring, idx[15]);
		idx[15] = put(1, STOUP_RING_DEMAND);
	}
	expect_evict_one(1, STOUP_RING_READAHEAD, idx[0]);
	evict_all();
}
END_TEST

START_TEST(refused_read_ahead_looks_elsewhere_next_time)
{
	struct stoup_ring_config config = {512 * PAGE, PAGE, 512, 0, NULL, NULL};
	uint32_t idx[512];

	ck_assert_int_eq(stoup_ring_create(&config, &ring), 0);
	fill_read(idx, 512, 1);
	for (uint32_t i = 0; i < 512; i++)
		stoup_ring_leased(ring, idx[i], i != 200);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, PAGE, STOUP_RING_READAHEAD, &plan), STOUP_RING_NONE);
	ck_assert_uint_eq(stoup_ring_counters(ring)->look_cnt, STOUP_RING_LOOK_CAP);
	expect_evict_one(1, STOUP_RING_READAHEAD, idx[200]);
	keep_all();
}
END_TEST

START_TEST(large_read_ahead_finds_a_window_of_many_small_extents)
{
	struct stoup_ring_config config = {4096 * PAGE, 300 * PAGE, 4096, 0, NULL, NULL};
	uint32_t idx[4096];

	ck_assert_int_eq(stoup_ring_create(&config, &ring), 0);
	for (uint32_t i = 0; i < 4096; i++) {
		ck_assert_int_eq(
			stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_FIT);
		idx[i] = plan.idx;
		stoup_ring_loaded(ring, idx[i]);
	}
	stoup_ring_leased(ring, idx[100], 1);
	expect_evict(300, STOUP_RING_READAHEAD, 300, idx + 101);
	keep_all();
}
END_TEST

START_TEST(demand_takes_unread_blocks_last_of_all)
{
	uint32_t idx[8];

	make(8, 1, 8, 0);
	idx[0] = put(1, STOUP_RING_READAHEAD);
	stoup_ring_loaded(ring, idx[0]);
	fill_read(idx + 1, 7, 1);
	for (uint32_t i = 1; i < 8; i++)
		next_use_of[idx[i]] = 0;
	for (uint32_t i = 1; i < 8; i++) {
		expect_evict_one(1, STOUP_RING_DEMAND, idx[i]);
		keep_all();
	}
	expect_evict_one(1, STOUP_RING_DEMAND, idx[0]);
	evict_all();
	ck_assert_uint_eq(stoup_ring_counters(ring)->readahead_wasted, 1);
	ck_assert_uint_eq(stoup_ring_unread_len(ring), 0);
}
END_TEST

START_TEST(read_ahead_that_a_whole_turnover_left_unread_is_stale)
{
	uint32_t stale, idx;

	make(8, 1, 8, 0);
	stale = put(1, STOUP_RING_READAHEAD);
	stoup_ring_loaded(ring, stale);
	for (uint32_t i = 0; i < 7; i++)
		put_read(1);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_int_eq(
			stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_EVICT);
		idx = plan.evict[0];
		ck_assert_uint_ne(idx, stale);
		evict_all();
		put_read(1);
	}
	for (uint32_t i = 0; i < 7; i++) {
		ck_assert_int_eq(
			stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_EVICT);
		idx = plan.evict[0];
		evict_all();
		if (idx == stale)
			break;
		put_read(1);
	}
	ck_assert_uint_eq(idx, stale);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_recency");
	TCase *tcase = tcase_create("rules");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, what_a_second_consumer_used_outlives_what_one_read);
	tcase_add_test(tcase, a_consumer_counts_again_only_after_a_sixteenth_of_the_region);
	tcase_add_test(tcase, a_long_scan_does_not_flush_what_is_used_again);
	tcase_add_test(tcase, what_is_used_no_more_cools_down);
	tcase_add_test(tcase, heat_that_has_lapsed_does_not_come_back_with_the_next_use);
	tcase_add_test(tcase, a_gone_consumers_number_counts_again_for_its_successor);
	tcase_add_test(tcase, of_blocks_that_cursors_will_reach_the_farthest_goes);
	tcase_add_test(tcase, a_block_that_all_have_used_goes_before_one_that_a_cursor_will_reach);
	tcase_add_test(tcase, read_ahead_fills_at_most_a_quarter_of_the_region);
	tcase_add_test(tcase, a_pool_of_a_few_blocks_has_no_read_ahead);
	tcase_add_test(tcase, read_ahead_spares_unread_hot_and_soon_needed_blocks);
	tcase_add_test(tcase, read_ahead_spares_what_was_used_often_and_lately);
	tcase_add_test(tcase, refused_read_ahead_looks_elsewhere_next_time);
	tcase_add_test(tcase, large_read_ahead_finds_a_window_of_many_small_extents);
	tcase_add_test(tcase, demand_takes_unread_blocks_last_of_all);
	tcase_add_test(tcase, read_ahead_that_a_whole_turnover_left_unread_is_stale);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
