/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream.c - positions of scans that go up and down: how far a block is from its next use. */
#include <check.h>
#include <stdlib.h>
#include "producer/stream.h"

#define NOW UINT64_C(1000)

static struct stoup_stream streams[STOUP_STREAM_CNT];

static uint64_t distance(uint32_t block_idx)
{
	return stoup_streams_distance(streams, 3, block_idx, NOW);
}

START_TEST(a_scan_that_goes_up_comes_to_the_blocks_above_it)
{
	stoup_streams_init(streams);
	stoup_streams_ask(streams, 3, 50, 1, NOW);
	ck_assert_uint_eq(distance(50), 0);
	ck_assert_uint_eq(distance(57), 7);
	ck_assert_uint_eq(distance(49), STOUP_STREAM_FAR);
	ck_assert_uint_eq(stoup_streams_distance(streams, 4, 57, NOW), STOUP_STREAM_FAR);
	stoup_streams_note(streams, 3, 54, NOW); /* found by a look */
	stoup_streams_note(streams, 3, 52, NOW); /* in any order */
	ck_assert_uint_eq(distance(57), 3);
	ck_assert_uint_eq(distance(53), STOUP_STREAM_FAR);
}
END_TEST

START_TEST(a_scan_that_goes_down_comes_to_the_blocks_below_it)
{
	stoup_streams_init(streams);
	stoup_streams_ask(streams, 3, 50, -1, NOW);
	ck_assert_uint_eq(distance(50), 0);
	ck_assert_uint_eq(distance(43), 7);
	ck_assert_uint_eq(distance(51), STOUP_STREAM_FAR);
	stoup_streams_note(streams, 3, 46, NOW);
	stoup_streams_note(streams, 3, 48, NOW);
	ck_assert_uint_eq(distance(43), 3);
	ck_assert_uint_eq(distance(47), STOUP_STREAM_FAR);
}
END_TEST

START_TEST(a_request_turns_a_stream_around_and_a_use_alone_does_not)
{
	stoup_streams_init(streams);
	stoup_streams_note(streams, 3, 50, NOW);
	stoup_streams_note(streams, 3, 45, NOW);
	ck_assert_uint_eq(distance(55), 5);
	ck_assert_uint_eq(distance(44), STOUP_STREAM_FAR);
	stoup_streams_ask(streams, 3, 44, -1, NOW);
	ck_assert_uint_eq(distance(40), 4);
	ck_assert_uint_eq(distance(45), STOUP_STREAM_FAR);
	stoup_streams_ask(streams, 3, 46, 1, NOW);
	ck_assert_uint_eq(distance(48), 2);
}
END_TEST

START_TEST(the_nearest_of_two_that_come_from_both_sides_counts)
{
	stoup_streams_init(streams);
	stoup_streams_ask(streams, 3, 100, 1, NOW);
	stoup_streams_ask(streams, 3, 200, -1, NOW);
	ck_assert_uint_eq(distance(110), 10);
	ck_assert_uint_eq(distance(190), 10);
	ck_assert_uint_eq(distance(99), 101);
	ck_assert_uint_eq(distance(201), 101);
	ck_assert_uint_eq(stoup_streams_distance(streams, 3, 110, NOW + STOUP_STREAM_STALE_NS + 1),
		STOUP_STREAM_FAR);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stream");
	TCase *tcase = tcase_create("stream");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, a_scan_that_goes_up_comes_to_the_blocks_above_it);
	tcase_add_test(tcase, a_scan_that_goes_down_comes_to_the_blocks_below_it);
	tcase_add_test(tcase, a_request_turns_a_stream_around_and_a_use_alone_does_not);
	tcase_add_test(tcase, the_nearest_of_two_that_come_from_both_sides_counts);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
