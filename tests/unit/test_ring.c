/* SPDX-License-Identifier: Apache-2.0 */
/* test_ring.c - extents, leases and the hand: each rule by itself, with the offsets and victims
 * that it asks for. Recency and read-ahead are in test_ring_recency.c, claims in test_ring_claim.c,
 * random sequences in test_ring_property.c. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/ring_fixture.h"

/* ---- extents ---- */

START_TEST(a_config_out_of_range_is_refused)
{
	struct stoup_ring_config good = {8 * PAGE, PAGE, 4, 0, NULL, NULL}, bad[7];
	struct stoup_ring *none = NULL;

	for (int i = 0; i < 7; i++)
		bad[i] = good;
	bad[0].region_len = 0;
	bad[1].region_len = 8 * PAGE + 1;
	bad[2].region_len = UINT64_C(1) << 44;
	bad[3].largest_len = 0;
	bad[4].largest_len = 8 * PAGE + 1;
	bad[5].buffer_cap = 0;
	bad[6].buffer_cap = UINT32_C(1) << 24;
	for (int i = 0; i < 7; i++)
		ck_assert_int_eq(stoup_ring_create(&bad[i], &none), -EINVAL);
	ck_assert_ptr_null(none);
	stoup_ring_destroy(NULL);
}
END_TEST

START_TEST(requests_are_rounded_up_to_pages_and_laid_side_by_side)
{
	make(8, 8, 8, 0);
	ck_assert_int_eq(stoup_ring_alloc(ring, 1, STOUP_RING_DEMAND, &plan), STOUP_RING_FIT);
	ck_assert_uint_eq(plan.off, 0);
	ck_assert_uint_eq(plan.len, PAGE);
	ck_assert_uint_eq(plan.idx, 0);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, PAGE + 1, STOUP_RING_DEMAND, &plan), STOUP_RING_FIT);
	ck_assert_uint_eq(plan.off, PAGE);
	ck_assert_uint_eq(plan.len, 2 * PAGE);
	ck_assert_uint_eq(plan.idx, 1);
	ck_assert_uint_eq(usage().free_len, 5 * PAGE);
	ck_assert_uint_eq(usage().loading_len, 3 * PAGE);
}
END_TEST

/* What a backward scan loads lies in memory in the order of its records, as what a forward scan loads does. */
START_TEST(from_the_upper_end_each_extent_lies_below_the_one_before)
{
	uint64_t at = 8 * PAGE;

	make(8, 8, 8, 0);
	stoup_ring_upper_set(ring, 1);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_int_eq(
			stoup_ring_alloc(ring, 2 * PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_FIT);
		at -= 2 * PAGE;
		ck_assert_uint_eq(plan.off, at);
	}
	sound();
	stoup_ring_upper_set(ring, 0);
	ck_assert_int_eq(stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_FIT);
	ck_assert_uint_eq(plan.off, 0);
	stoup_ring_upper_set(ring, 1);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, 3 * PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_FIT);
	ck_assert_uint_eq(plan.off, PAGE);
	sound();
	ck_assert_uint_eq(usage().free_len, 0);
}
END_TEST

START_TEST(a_released_extent_merges_with_its_neighbours)
{
	uint32_t idx[4];

	make(8, 8, 8, 0);
	fill_read(idx, 4, 2);
	stoup_ring_free(ring, idx[0]);
	stoup_ring_free(ring, idx[2]);
	sound();
	ck_assert_uint_eq(usage().free_cnt, 2);
	ck_assert_uint_eq(usage().free_max_len, 2 * PAGE);
	stoup_ring_free(ring, idx[1]);
	sound();
	ck_assert_uint_eq(usage().free_cnt, 1);
	ck_assert_uint_eq(usage().free_max_len, 6 * PAGE);
	ck_assert_uint_eq(off_of(idx[3]), 6);
	ck_assert_uint_eq(off_of(put(6, STOUP_RING_DEMAND)), 0);
}
END_TEST

START_TEST(a_gap_of_the_right_length_is_preferred_to_a_larger_one)
{
	uint32_t idx[5];

	make(32, 32, 8, 0);
	idx[0] = put_read(9);
	idx[1] = put_read(1);
	idx[2] = put_read(3);
	idx[3] = put_read(1);
	ck_assert_uint_eq(usage().free_max_len, 18 * PAGE);
	stoup_ring_free(ring, idx[0]);
	stoup_ring_free(ring, idx[2]);
	ck_assert_uint_eq(off_of(put(3, STOUP_RING_DEMAND)), 10);
	ck_assert_uint_eq(off_of(put(3, STOUP_RING_DEMAND)), 0);
}
END_TEST

START_TEST(a_gap_hidden_behind_shorter_ones_of_its_bin_is_found)
{
	uint32_t idx[25], last;

	/* 24 gaps of 16 pages in one bin with one of 17, which entered first. */
	make(24 * 17 + 18, 17, 64, 0);
	last = put_read(17);
	idx[24] = put_read(1);
	for (uint32_t i = 0; i < 24; i++) {
		idx[i] = put_read(16);
		stoup_ring_leased(ring, put_read(1), 1);
	}
	stoup_ring_free(ring, last);
	for (uint32_t i = 0; i < 24; i++)
		stoup_ring_free(ring, idx[i]);
	ck_assert_uint_eq(usage().free_cnt, 25);
	ck_assert_uint_eq(off_of(put(17, STOUP_RING_DEMAND)), 0);
	ck_assert_uint_eq(off_of(idx[24]), 17);
}
END_TEST

START_TEST(the_map_lists_extents_in_address_order)
{
	struct stoup_ring_extent extent;
	uint32_t idx[3];
	uint64_t pos = 0;

	make(8, 8, 8, 0);
	fill_read(idx, 3, 2);
	stoup_ring_free(ring, idx[1]);
	stoup_ring_leased(ring, idx[2], 3);
	ck_assert_int_eq(stoup_ring_next(ring, &pos, &extent), 1);
	ck_assert_uint_eq(extent.idx, idx[0]);
	ck_assert_int_eq(extent.state, STOUP_RING_READY);
	ck_assert_uint_eq(extent.used_cnt, 1);
	ck_assert_int_eq(stoup_ring_next(ring, &pos, &extent), 1);
	ck_assert_uint_eq(extent.idx, STOUP_RING_IDX_NONE);
	ck_assert_int_eq(extent.state, STOUP_RING_FREE);
	ck_assert_uint_eq(extent.off, 2 * PAGE);
	ck_assert_int_eq(stoup_ring_next(ring, &pos, &extent), 1);
	ck_assert_uint_eq(extent.idx, idx[2]);
	ck_assert_uint_eq(extent.refs, 3);
	ck_assert_int_eq(stoup_ring_next(ring, &pos, &extent), 1);
	ck_assert_uint_eq(extent.off + extent.len, 8 * PAGE);
	ck_assert_int_eq(stoup_ring_next(ring, &pos, &extent), 0);
	ck_assert_int_eq(stoup_ring_next(ring, &pos, &extent), 0);
	ck_assert_int_eq(stoup_ring_buffer(ring, idx[1], &extent), -ENOENT);
}
END_TEST

/* ---- leases ---- */

START_TEST(a_scan_forgets_old_leases_but_not_pins)
{
	uint32_t idx[3];

	make(8, 8, 8, 0);
	fill_read(idx, 3, 2);
	stoup_ring_leased(ring, idx[0], 2);
	stoup_ring_pin(ring, idx[1]);
	ck_assert_uint_eq(usage().leased_len, 4 * PAGE);
	stoup_ring_scan_begin(ring);
	stoup_ring_scan_lease(ring, idx[2]);
	stoup_ring_scan_lease(ring, idx[2]);
	ck_assert_uint_eq(stoup_ring_refs(ring, idx[0]), 0);
	ck_assert_uint_eq(stoup_ring_refs(ring, idx[2]), 2);
	ck_assert_uint_eq(usage().leased_cnt, 2);
	ck_assert_uint_eq(usage().leased_len, 4 * PAGE);
	sound();
	stoup_ring_unpin(ring, idx[1]);
	ck_assert_uint_eq(usage().leased_cnt, 1);
}
END_TEST

START_TEST(leased_loading_and_pinned_buffers_are_passed_by)
{
	uint32_t idx[4];

	make(8, 2, 8, 0);
	idx[0] = put(2, STOUP_RING_DEMAND);
	fill_read(idx + 1, 3, 2);
	stoup_ring_leased(ring, idx[1], 1);
	stoup_ring_pin(ring, idx[2]);
	expect_evict_one(2, STOUP_RING_DEMAND, idx[3]);
	evict_all();
	ck_assert_uint_eq(off_of(put(2, STOUP_RING_DEMAND)), 6);
	ck_assert_int_eq(stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_NONE);
	ck_assert_uint_eq(stoup_ring_counters(ring)->none_cnt, 1);
	stoup_ring_unpin(ring, idx[2]);
	expect_evict_one(1, STOUP_RING_DEMAND, idx[2]);
	evict_all();
}
END_TEST

START_TEST(a_kept_candidate_is_not_tried_again_until_it_is_released)
{
	uint32_t idx[4];

	make(8, 2, 8, 0);
	fill_read(idx, 4, 2);
	for (uint32_t i = 0; i < 4; i++) {
		expect_evict_one(2, STOUP_RING_DEMAND, idx[i]);
		ck_assert_int_eq(state_of(idx[i]), STOUP_RING_CANDIDATE);
		keep_all();
	}
	ck_assert_int_eq(
		stoup_ring_alloc(ring, 2 * PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_NONE);
	ck_assert_uint_eq(stoup_ring_counters(ring)->kept_cnt, 4);
	stoup_ring_scan_begin(ring);
	stoup_ring_scan_lease(ring, idx[0]);
	expect_evict_one(2, STOUP_RING_DEMAND, idx[1]);
	evict_all();
	ck_assert_uint_eq(off_of(put(2, STOUP_RING_DEMAND)), 2);
}
END_TEST

/* ---- the hand ---- */

START_TEST(the_hand_goes_round_in_address_order)
{
	uint32_t idx[4], again;

	make(8, 2, 8, 0);
	fill_read(idx, 4, 2);
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < 4; i++) {
			expect_evict_one(2, STOUP_RING_DEMAND, idx[i]);
			evict_all();
			again = put_read(2);
			ck_assert_uint_eq(off_of(again), 2 * i);
			idx[i] = again;
		}
	ck_assert_uint_eq(stoup_ring_counters(ring)->evict_len, 24 * PAGE);
	ck_assert_uint_eq(stoup_ring_counters(ring)->pass_cnt, 3);
}
END_TEST

START_TEST(a_window_takes_in_the_gaps_between_its_buffers)
{
	uint32_t idx[4], victims[2];

	make(8, 8, 8, 0);
	fill_read(idx, 4, 2);
	stoup_ring_leased(ring, idx[0], 1);
	stoup_ring_free(ring, idx[2]);
	victims[0] = idx[1];
	expect_evict(4, STOUP_RING_DEMAND, 1, victims);
	evict_all();
	ck_assert_uint_eq(off_of(put_read(4)), 2);
	victims[0] = plan.idx;
	victims[1] = idx[3];
	expect_evict(6, STOUP_RING_DEMAND, 2, victims);
	evict_all();
	ck_assert_uint_eq(off_of(put(6, STOUP_RING_DEMAND)), 2);
}
END_TEST

START_TEST(a_window_across_the_hand_is_found)
{
	uint32_t idx[4];

	make(8, 8, 8, 0);
	fill_read(idx, 4, 2);
	for (uint32_t i = 0; i < 2; i++) {
		expect_evict_one(2, STOUP_RING_DEMAND, idx[i]);
		keep_all();
	}
	/* The hand stands on idx[2], at page 4; only pages 0 to 5 can be had. */
	stoup_ring_leased(ring, idx[0], 0);
	stoup_ring_leased(ring, idx[1], 0);
	stoup_ring_leased(ring, idx[3], 1);
	expect_evict(6, STOUP_RING_DEMAND, 3, idx);
	evict_all();
	ck_assert_uint_eq(off_of(put(6, STOUP_RING_DEMAND)), 0);
}
END_TEST

START_TEST(no_window_goes_around_the_end_of_the_region)
{
	uint32_t idx[4];

	make(8, 8, 8, 0);
	fill_read(idx, 4, 2);
	stoup_ring_leased(ring, idx[1], 1);
	stoup_ring_leased(ring, idx[2], 1);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, 4 * PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_NONE);
}
END_TEST

START_TEST(a_window_drops_what_it_does_not_need)
{
	uint32_t idx[3];

	make(8, 8, 8, 0);
	idx[0] = put_read(1);
	idx[1] = put_read(6);
	idx[2] = put_read(1);
	expect_evict_one(4, STOUP_RING_DEMAND, idx[1]);
	evict_all();
}
END_TEST

START_TEST(a_batch_fills_the_reserve_with_what_costs_nothing)
{
	uint32_t idx[8], victims[3];

	make(8, 1, 8, 2);
	fill_read(idx, 8, 1);
	next_use_of[idx[1]] = 0;
	victims[0] = idx[0];
	victims[1] = idx[2];
	victims[2] = idx[3];
	expect_evict(1, STOUP_RING_DEMAND, 3, victims);
	evict_all();
	for (int i = 0; i < 3; i++)
		put_read(1);
	ck_assert_uint_eq(stoup_ring_counters(ring)->plan_cnt, 1);
}
END_TEST

START_TEST(where_each_eviction_costs_a_batch_takes_a_quarter_of_the_reserve_as_cheap)
{
	uint32_t idx[64], victims[3];

	make(64, 1, 64, 8);
	for (uint32_t i = 0; i < 64; i++) {
		next_use_of[i] = 64 * PAGE;
		idx[i] = i == 1 ? put(1, STOUP_RING_READAHEAD) : put_read(1);
	}
	stoup_ring_loaded(ring, idx[1]);
	next_use_of[idx[2]] = 32 * PAGE;
	/* One page is asked for, two more are a quarter of the reserve; the unread one and the one
	 * that is needed sooner stay. */
	victims[0] = idx[0];
	victims[1] = idx[3];
	victims[2] = idx[4];
	expect_evict(1, STOUP_RING_DEMAND, 3, victims);
	evict_all();
}
END_TEST

START_TEST(the_reserve_is_refilled_when_half_of_it_is_gone)
{
	uint32_t idx[8];

	make(8, 1, 8, 4);
	fill_read(idx, 6, 1);
	ck_assert_int_eq(stoup_ring_reserve(ring, &plan), STOUP_RING_NONE);
	idx[6] = put_read(1);
	ck_assert_int_eq(stoup_ring_reserve(ring, &plan), STOUP_RING_EVICT);
	ck_assert_uint_eq(plan.evict_cnt, 3);
	evict_all();
	ck_assert_uint_eq(usage().free_len, 4 * PAGE);
}
END_TEST

START_TEST(without_a_free_index_a_buffer_goes_though_there_is_room)
{
	uint32_t idx[3];

	make(64, 64, 3, 0);
	fill_read(idx, 3, 1);
	expect_evict_one(1, STOUP_RING_DEMAND, idx[0]);
	evict_all();
	ck_assert_uint_eq(put(1, STOUP_RING_DEMAND), idx[0]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring");
	TCase *tcase = tcase_create("rules");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, a_config_out_of_range_is_refused);
	tcase_add_test(tcase, requests_are_rounded_up_to_pages_and_laid_side_by_side);
	tcase_add_test(tcase, from_the_upper_end_each_extent_lies_below_the_one_before);
	tcase_add_test(tcase, a_released_extent_merges_with_its_neighbours);
	tcase_add_test(tcase, a_gap_of_the_right_length_is_preferred_to_a_larger_one);
	tcase_add_test(tcase, a_gap_hidden_behind_shorter_ones_of_its_bin_is_found);
	tcase_add_test(tcase, the_map_lists_extents_in_address_order);
	tcase_add_test(tcase, a_scan_forgets_old_leases_but_not_pins);
	tcase_add_test(tcase, leased_loading_and_pinned_buffers_are_passed_by);
	tcase_add_test(tcase, a_kept_candidate_is_not_tried_again_until_it_is_released);
	tcase_add_test(tcase, the_hand_goes_round_in_address_order);
	tcase_add_test(tcase, a_window_takes_in_the_gaps_between_its_buffers);
	tcase_add_test(tcase, a_window_across_the_hand_is_found);
	tcase_add_test(tcase, no_window_goes_around_the_end_of_the_region);
	tcase_add_test(tcase, a_window_drops_what_it_does_not_need);
	tcase_add_test(tcase, a_batch_fills_the_reserve_with_what_costs_nothing);
	tcase_add_test(
		tcase, where_each_eviction_costs_a_batch_takes_a_quarter_of_the_reserve_as_cheap);
	tcase_add_test(tcase, the_reserve_is_refilled_when_half_of_it_is_gone);
	tcase_add_test(tcase, without_a_free_index_a_buffer_goes_though_there_is_room);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
