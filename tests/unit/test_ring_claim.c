/* SPDX-License-Identifier: Apache-2.0 */
/* test_ring_claim.c - how a large request gets through (claims), and when none is needed (the
 * bound), on regions of a few pages, with exact offsets. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/ring_fixture.h"

/* ---- claims ---- */

static void expect_claim_plan(uint32_t cnt, const uint32_t *victims)
{
	ck_assert_uint_eq(stoup_ring_claim_plan(ring, &plan), cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		ck_assert_uint_eq(plan.evict[i], victims[i]);
		ck_assert_int_eq(state_of(victims[i]), STOUP_RING_DRAINING);
	}
	sound();
}

START_TEST(a_buffer_of_a_closed_volume_drains_outside_of_any_claim)
{
	uint32_t idx[6], victims[1];

	make(12, 4, 16, 0);
	fill_read(idx, 6, 2);
	stoup_ring_drain(ring, idx[1]);
	stoup_ring_drain(ring, idx[4]);
	ck_assert_int_eq(state_of(idx[1]), STOUP_RING_DRAINING);
	ck_assert_uint_eq(stoup_ring_draining_cnt(ring), 2);
	sound();
	stoup_ring_evicted(ring, idx[1]);
	stoup_ring_kept(ring, idx[4], 2);
	ck_assert_uint_eq(stoup_ring_draining_cnt(ring), 1);
	sound();
	/* No plan names it, a claim of its window waits for it, and it goes with its last lease. */
	for (uint32_t i = 0; i < 6; i++)
		if (i != 1 && i != 4)
			stoup_ring_leased(ring, idx[i], 1);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, 4 * PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_NONE);
	ck_assert_int_eq(stoup_ring_claim(ring, 4 * PAGE), 0);
	victims[0] = stoup_ring_claim_plan(ring, &plan);
	for (uint32_t i = 0; i < victims[0]; i++) {
		ck_assert_uint_ne(plan.evict[i], idx[4]);
		stoup_ring_kept(ring, plan.evict[i], 1);
	}
	stoup_ring_evicted(ring, idx[4]);
	sound();
	stoup_ring_claim_cancel(ring);
	ck_assert_uint_eq(usage().free_len, 4 * PAGE);
}
END_TEST

START_TEST(a_claim_goes_round_what_is_pinned)
{
	uint32_t idx[6];
	uint64_t off, len;

	make(12, 4, 16, 0);
	fill_read(idx, 6, 2);
	/* Pinned are pages 0-1 and 6-7, leased is all but them: the claim waits rather than to go over a pin. */
	stoup_ring_pin(ring, idx[0]);
	stoup_ring_pin(ring, idx[3]);
	for (uint32_t i = 0; i < 6; i++)
		if (i != 0 && i != 3)
			stoup_ring_leased(ring, idx[i], 1);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, 4 * PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_NONE);
	ck_assert_int_eq(stoup_ring_claim(ring, 4 * PAGE), 0);
	ck_assert_int_eq(stoup_ring_claim_window(ring, &off, &len), 1);
	ck_assert_uint_eq(off, 2 * PAGE);
	ck_assert_uint_eq(stoup_ring_claim_pinned(ring), STOUP_RING_IDX_NONE);
	sound();
	stoup_ring_claim_cancel(ring);
	sound();
}
END_TEST

START_TEST(a_claim_takes_pinned_buffers_where_there_is_no_other_window)
{
	uint32_t idx[6];
	uint64_t off, len;

	make(12, 4, 16, 0);
	fill_read(idx, 6, 2);
	/* Between pins there are two pages at most: pages 4-5 are leased, the other windows have a pin more. */
	stoup_ring_pin(ring, idx[1]);
	stoup_ring_pin(ring, idx[3]);
	stoup_ring_pin(ring, idx[5]);
	stoup_ring_leased(ring, idx[2], 1);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, 4 * PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_NONE);
	ck_assert_int_eq(stoup_ring_claim(ring, 4 * PAGE), 0);
	ck_assert_int_eq(stoup_ring_claim_window(ring, &off, &len), 1);
	ck_assert_uint_eq(off, 0);
	ck_assert_uint_eq(len, 4 * PAGE);
	ck_assert_uint_eq(stoup_ring_claim_pinned(ring), idx[1]);
	/* With its pin gone it drains like any other. */
	stoup_ring_unpin(ring, idx[1]);
	ck_assert_uint_eq(stoup_ring_claim_pinned(ring), STOUP_RING_IDX_NONE);
	ck_assert_uint_eq(stoup_ring_claim_plan(ring, &plan), 2);
	stoup_ring_evicted(ring, idx[0]);
	stoup_ring_evicted(ring, idx[1]);
	ck_assert_int_eq(stoup_ring_claim_ready(ring), 1);
	stoup_ring_claim_take(ring, STOUP_RING_DEMAND, &plan);
	ck_assert_uint_eq(plan.off, 0);
	sound();
}
END_TEST

START_TEST(a_claim_for_anything_prefers_idle_pins_to_leases_and_others_to_pins)
{
	uint32_t idx[6];
	uint64_t off, len;

	make(12, 2, 16, 0);
	fill_read(idx, 6, 2);
	for (uint32_t i = 0; i < 6; i++)
		if (i != 2)
			stoup_ring_leased(ring, idx[i], 1);
	stoup_ring_pin(ring, idx[2]);
	ck_assert_int_eq(stoup_ring_claim_any(ring, 2 * PAGE), 0);
	ck_assert_int_eq(stoup_ring_claim_any(ring, 2 * PAGE), -EBUSY);
	ck_assert_int_eq(stoup_ring_claim_window(ring, &off, &len), 1);
	ck_assert_uint_eq(off, 4 * PAGE);
	ck_assert_uint_eq(stoup_ring_claim_pinned(ring), idx[2]);
	stoup_ring_claim_cancel(ring);
	stoup_ring_leased(ring, idx[4], 0);
	ck_assert_int_eq(stoup_ring_claim_any(ring, 2 * PAGE), 0);
	ck_assert_int_eq(stoup_ring_claim_window(ring, &off, &len), 1);
	ck_assert_uint_eq(off, 8 * PAGE);
	stoup_ring_claim_cancel(ring);
	sound();
}
END_TEST

START_TEST(a_claim_takes_the_window_with_the_fewest_leased_bytes)
{
	uint32_t idx[6], victims[2];
	uint64_t off, len;

	make(12, 4, 16, 0);
	fill_read(idx, 6, 2);
	for (uint32_t i = 0; i < 6; i++)
		if (i != 3)
			stoup_ring_leased(ring, idx[i], 1);
	stoup_ring_free(ring, idx[3]);
	idx[3] = put_read(1);
	ck_assert_int_eq(
		stoup_ring_alloc(ring, 4 * PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_NONE);
	/* Leased are pages 0-5 and 8-11; a page of buffer 3 and a free page lie between. */
	ck_assert_int_eq(stoup_ring_claim(ring, 4 * PAGE), 0);
	ck_assert_int_eq(stoup_ring_claim(ring, 4 * PAGE), -EBUSY);
	ck_assert_int_eq(stoup_ring_claim_window(ring, &off, &len), 1);
	ck_assert_uint_eq(off, 4 * PAGE);
	ck_assert_uint_eq(len, 4 * PAGE);
	sound();
	victims[0] = idx[2];
	victims[1] = idx[3];
	expect_claim_plan(2, victims);
	stoup_ring_kept(ring, idx[2], 1);
	stoup_ring_evicted(ring, idx[3]);
	sound();
	ck_assert_int_eq(stoup_ring_claim_ready(ring), 0);
	ck_assert_uint_eq(usage().reserved_len, 2 * PAGE);
	ck_assert_uint_eq(stoup_ring_draining_cnt(ring), 1);
	ck_assert_uint_eq(stoup_ring_claim_plan(ring, &plan), 0);
	stoup_ring_evicted(ring, idx[2]);
	ck_assert_int_eq(stoup_ring_claim_ready(ring), 1);
	stoup_ring_claim_take(ring, STOUP_RING_DEMAND, &plan);
	ck_assert_uint_eq(plan.off, 4 * PAGE);
	ck_assert_uint_eq(plan.len, 4 * PAGE);
	ck_assert_int_eq(stoup_ring_claim_active(ring), 0);
	ck_assert_int_eq(stoup_ring_claim_window(ring, &off, &len), 0);
}
END_TEST

START_TEST(smaller_requests_go_on_outside_the_claimed_window)
{
	uint32_t idx[4], small;
	uint64_t off, len;

	make(8, 4, 16, 0);
	fill_read(idx, 4, 2);
	stoup_ring_leased(ring, idx[1], 1);
	stoup_ring_leased(ring, idx[2], 1);
	ck_assert_int_eq(stoup_ring_claim(ring, 4 * PAGE), 0);
	ck_assert_int_eq(stoup_ring_claim_window(ring, &off, &len), 1);
	ck_assert_uint_eq(off, 0);
	ck_assert_uint_eq(stoup_ring_claim_plan(ring, &plan), 2);
	stoup_ring_evicted(ring, idx[0]);
	stoup_ring_kept(ring, idx[1], 1);
	/* Two pages are free, but reserved: the small request gets buffer 3's. */
	expect_evict_one(1, STOUP_RING_DEMAND, idx[3]);
	evict_all();
	small = put(1, STOUP_RING_DEMAND);
	ck_assert_uint_eq(off_of(small), 6);
	stoup_ring_evicted(ring, idx[1]);
	ck_assert_uint_eq(off_of(put(1, STOUP_RING_DEMAND)), 7);
	ck_assert_int_eq(stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_NONE);
	stoup_ring_claim_take(ring, STOUP_RING_DEMAND, &plan);
	ck_assert_uint_eq(plan.off, 0);
}
END_TEST

START_TEST(a_claim_cuts_surplus_from_a_free_end_and_gives_back_the_rest)
{
	uint32_t a, b;
	uint64_t off, len;

	make(16, 8, 16, 0);
	a = put_read(6);
	b = put_read(5);
	stoup_ring_leased(ring, b, 1);
	stoup_ring_free(ring, a);
	/* Six pages free, five leased, five free. The window: the last page of the first gap. */
	ck_assert_int_eq(stoup_ring_claim(ring, 8 * PAGE), 0);
	ck_assert_int_eq(stoup_ring_claim_window(ring, &off, &len), 1);
	ck_assert_uint_eq(len, 8 * PAGE);
	ck_assert_uint_eq(off, 3 * PAGE);
	ck_assert_uint_eq(usage().free_len, 8 * PAGE);
	sound();
	ck_assert_uint_eq(stoup_ring_claim_plan(ring, &plan), 1);
	stoup_ring_kept(ring, b, 1);
	stoup_ring_evicted(ring, b);
	stoup_ring_claim_take(ring, STOUP_RING_DEMAND, &plan);
	ck_assert_uint_eq(plan.off, 3 * PAGE);
	ck_assert_uint_eq(usage().free_len, 8 * PAGE);
}
END_TEST

START_TEST(a_claim_cuts_surplus_from_the_right_end_if_the_left_one_is_leased)
{
	uint32_t a;
	uint64_t off, len;

	make(16, 8, 16, 0);
	a = put_read(11);
	stoup_ring_leased(ring, a, 1);
	ck_assert_int_eq(stoup_ring_claim(ring, 12 * PAGE), 0);
	ck_assert_int_eq(stoup_ring_claim_window(ring, &off, &len), 1);
	ck_assert_uint_eq(off, 0);
	ck_assert_uint_eq(len, 12 * PAGE);
	ck_assert_uint_eq(usage().free_len, 4 * PAGE);
	ck_assert_uint_eq(off_of(put(4, STOUP_RING_DEMAND)), 12);
}
END_TEST

START_TEST(a_buffer_that_loads_in_the_window_is_drained_when_it_is_loaded)
{
	uint32_t a, b;

	make(8, 8, 16, 0);
	a = put(4, STOUP_RING_DEMAND);
	b = put_read(4);
	ck_assert_int_eq(stoup_ring_claim(ring, 8 * PAGE), 0);
	expect_claim_plan(1, &b);
	stoup_ring_evicted(ring, b);
	ck_assert_int_eq(stoup_ring_claim_ready(ring), 0);
	stoup_ring_loaded(ring, a);
	stoup_ring_granted(ring, a, 3);
	expect_claim_plan(1, &a);
	stoup_ring_kept(ring, a, 1);
	ck_assert_int_eq(stoup_ring_claim_ready(ring), 0);
	stoup_ring_evicted(ring, a);
	ck_assert_int_eq(stoup_ring_claim_ready(ring), 1);
	stoup_ring_claim_take(ring, STOUP_RING_READAHEAD, &plan);
	ck_assert_uint_eq(stoup_ring_unread_len(ring), 8 * PAGE);
}
END_TEST

START_TEST(a_cancelled_claim_gives_its_room_back)
{
	uint32_t idx[4];

	make(8, 8, 16, 0);
	fill_read(idx, 4, 2);
	stoup_ring_leased(ring, idx[2], 1);
	ck_assert_int_eq(stoup_ring_claim(ring, 8 * PAGE), 0);
	ck_assert_uint_eq(stoup_ring_claim_plan(ring, &plan), 4);
	stoup_ring_evicted(ring, idx[0]);
	stoup_ring_evicted(ring, idx[1]);
	stoup_ring_kept(ring, idx[2], 1);
	stoup_ring_evicted(ring, idx[3]);
	stoup_ring_claim_cancel(ring);
	sound();
	ck_assert_uint_eq(usage().free_len, 6 * PAGE);
	ck_assert_uint_eq(usage().reserved_len, 0);
	ck_assert_int_eq(state_of(idx[2]), STOUP_RING_DRAINING);
	ck_assert_uint_eq(off_of(put(4, STOUP_RING_DEMAND)), 0);
	stoup_ring_evicted(ring, idx[2]);
	ck_assert_uint_eq(usage().free_max_len, 4 * PAGE);
}
END_TEST

START_TEST(the_last_index_is_kept_for_the_claim)
{
	uint32_t idx[3];

	make(12, 8, 3, 0);
	fill_read(idx, 3, 4);
	stoup_ring_leased(ring, idx[1], 1);
	ck_assert_int_eq(stoup_ring_claim(ring, 8 * PAGE), 0);
	ck_assert_uint_eq(stoup_ring_claim_plan(ring, &plan), 2);
	stoup_ring_evicted(ring, idx[0]);
	stoup_ring_kept(ring, idx[1], 1);
	expect_evict_one(4, STOUP_RING_DEMAND, idx[2]);
	evict_all();
	put(4, STOUP_RING_DEMAND);
	ck_assert_int_eq(stoup_ring_alloc(ring, PAGE, STOUP_RING_DEMAND, &plan), STOUP_RING_NONE);
	stoup_ring_evicted(ring, idx[1]);
	ck_assert_int_eq(stoup_ring_claim_ready(ring), 1);
	stoup_ring_claim_take(ring, STOUP_RING_DEMAND, &plan);
	ck_assert_uint_eq(plan.off, 0);
}
END_TEST

/* ---- what is certain ---- */

#define SMALL 13u /* pages: all 2^13 patterns of used pages are tried */

/* blocked[longest][leased][cnt]: some pattern of `leased` pages in `cnt` extents of at most
 * `longest` leaves no gap of `longest`. */
static uint8_t blocked[SMALL + 1][SMALL + 1][SMALL + 1];

static void try_pattern(uint32_t pattern, uint32_t pages, uint32_t longest)
{
	uint32_t used = 0, run = 0, gap = 0, gap_max = 0, extents = 0;

	for (uint32_t i = 0; i < pages; i++) {
		if (pattern >> i & 1) {
			extents += run % longest == 0;
			run++;
			used++;
			gap = 0;
			continue;
		}
		run = 0;
		if (++gap > gap_max)
			gap_max = gap;
	}
	for (uint32_t cnt = extents; gap_max < longest && cnt <= used; cnt++)
		blocked[longest][used][cnt] = 1;
}

static void compare_bound(uint32_t pages)
{
	memset(blocked, 0, sizeof(blocked));
	for (uint32_t pattern = 0; pattern < 1u << pages; pattern++)
		for (uint32_t longest = 1; longest <= pages; longest++)
			try_pattern(pattern, pages, longest);
	for (uint32_t longest = 1; longest <= pages; longest++)
		for (uint32_t used = 0; used <= pages; used++)
			for (uint32_t cnt = (used + longest - 1) / longest; cnt <= used; cnt++)
				ck_assert_int_eq(stoup_ring_fits_certain(pages * PAGE,
							 longest * PAGE, used * PAGE, cnt),
					!blocked[longest][used][cnt]);
}

START_TEST(the_bound_is_exact)
{
	for (uint32_t pages = 1; pages <= SMALL; pages++)
		compare_bound(pages);
	/* The sketch frag.pml: five pages, extents of up to two, one holder. */
	ck_assert_int_eq(stoup_ring_fits_certain(5 * PAGE, 2 * PAGE, 2 * PAGE, 1), 1);
	ck_assert_int_eq(stoup_ring_fits_certain(4 * PAGE, 2 * PAGE, 2 * PAGE, 1), 0);
	ck_assert_int_eq(stoup_ring_fits_certain(4 * PAGE, 2 * PAGE, 5 * PAGE, 1), 0);
	ck_assert_int_eq(stoup_ring_fits_certain(4 * PAGE, 5 * PAGE, 0, 0), 0);
}
END_TEST

START_TEST(promises_that_fit_can_all_be_held_at_once)
{
	/* n extents of M fit while S > (n-1) x M + n x (M-1) pages. */
	ck_assert_uint_eq(stoup_ring_promise_cap(128 * PAGE, 16 * PAGE), 4);
	ck_assert_uint_eq(stoup_ring_promise_cap(109 * PAGE, 16 * PAGE), 4);
	ck_assert_uint_eq(stoup_ring_promise_cap(108 * PAGE, 16 * PAGE), 3);
	ck_assert_uint_eq(stoup_ring_promise_cap(16 * PAGE, 16 * PAGE), 1);
	ck_assert_uint_eq(stoup_ring_promise_cap(15 * PAGE, 16 * PAGE), 0);
	ck_assert_uint_eq(stoup_ring_promise_cap(7 * PAGE, 1), 7);
	for (uint64_t pages = 1; pages < 60; pages++)
		for (uint64_t largest = 1; largest <= pages; largest++)
			for (uint64_t n = 1; n < 20; n++)
				ck_assert_int_eq(
					stoup_ring_promise_certain(pages * PAGE, largest * PAGE, n),
					stoup_ring_fits_certain(pages * PAGE, largest * PAGE,
						(n - 1) * largest * PAGE, n - 1));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_claim");
	TCase *tcase = tcase_create("rules");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, a_buffer_of_a_closed_volume_drains_outside_of_any_claim);
	tcase_add_test(tcase, a_claim_goes_round_what_is_pinned);
	tcase_add_test(tcase, a_claim_takes_pinned_buffers_where_there_is_no_other_window);
	tcase_add_test(tcase, a_claim_for_anything_prefers_idle_pins_to_leases_and_others_to_pins);
	tcase_add_test(tcase, a_claim_takes_the_window_with_the_fewest_leased_bytes);
	tcase_add_test(tcase, smaller_requests_go_on_outside_the_claimed_window);
	tcase_add_test(tcase, a_claim_cuts_surplus_from_a_free_end_and_gives_back_the_rest);
	tcase_add_test(tcase, a_claim_cuts_surplus_from_the_right_end_if_the_left_one_is_leased);
	tcase_add_test(tcase, a_buffer_that_loads_in_the_window_is_drained_when_it_is_loaded);
	tcase_add_test(tcase, a_cancelled_claim_gives_its_room_back);
	tcase_add_test(tcase, the_last_index_is_kept_for_the_claim);
	tcase_add_test(tcase, the_bound_is_exact);
	tcase_add_test(tcase, promises_that_fit_can_all_be_held_at_once);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
