/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "producer/staging.h"

static struct stoup_staging *make(uint32_t slot_cnt, size_t stored_len_cap, size_t region_len_cap)
{
	struct stoup_staging_options opt = {
		.slot_cnt = slot_cnt,
		.stored_len_cap = stored_len_cap,
		.region_len_cap = region_len_cap,
	};
	struct stoup_staging *staging = NULL;
	struct stoup_error err = {0};
	ck_assert_msg(stoup_staging_create(&opt, &staging, &err) == 0, "%s", err.text);
	return staging;
}

START_TEST(slots_are_aligned_disjoint_and_inside_the_region)
{
	struct stoup_staging *staging = make(7, 100001, 0);
	size_t region_len, slot_len = stoup_staging_slot_len(staging);
	uint8_t *region = stoup_staging_region(staging, &region_len);

	ck_assert_uint_eq(stoup_staging_slot_cnt(staging), 7);
	ck_assert_uint_eq(slot_len, 102400 + 8192); /* 25 pages hold 100001 bytes, and two more */
	ck_assert_uint_eq((uintptr_t)region % (2u << 20), 0);
	for (int32_t i = 0; i < 7; i++) {
		uint8_t *bytes = stoup_staging_bytes(staging, i);
		ck_assert_uint_eq((uintptr_t)bytes % 4096, 0);
		ck_assert(bytes == region + (size_t)i * slot_len);
		ck_assert(bytes + slot_len <= region + region_len);
		memset(bytes, i + 1, slot_len);
	}
	for (int32_t i = 0; i < 7; i++) {
		ck_assert_int_eq(stoup_staging_bytes(staging, i)[0], i + 1);
		ck_assert_int_eq(stoup_staging_bytes(staging, i)[slot_len - 1], i + 1);
	}
	stoup_staging_destroy(staging);
}
END_TEST

START_TEST(each_slot_is_given_once_until_it_is_put_back)
{
	struct stoup_staging *staging = make(5, 4096, 0);
	int seen[5] = {0};

	for (int i = 0; i < 5; i++) {
		int32_t slot = stoup_staging_take(staging);
		ck_assert_int_ge(slot, 0);
		ck_assert_int_lt(slot, 5);
		ck_assert_int_eq(seen[slot]++, 0);
	}
	ck_assert_uint_eq(stoup_staging_free_cnt(staging), 0);
	ck_assert_int_eq(stoup_staging_take(staging), -EAGAIN);
	stoup_staging_put(staging, 3);
	ck_assert_uint_eq(stoup_staging_free_cnt(staging), 1);
	ck_assert_int_eq(stoup_staging_take(staging), 3);
	stoup_staging_destroy(staging);
}
END_TEST

START_TEST(the_slot_that_was_used_last_is_used_next)
{
	struct stoup_staging *staging = make(4, 4096, 0);
	int32_t a = stoup_staging_take(staging);
	int32_t b = stoup_staging_take(staging);

	stoup_staging_put(staging, a);
	stoup_staging_put(staging, b);
	ck_assert_int_eq(stoup_staging_take(staging), b);
	ck_assert_int_eq(stoup_staging_take(staging), a);
	stoup_staging_destroy(staging);
}
END_TEST

START_TEST(a_region_cap_makes_fewer_slots_but_never_smaller_or_none)
{
	struct stoup_staging *staging = make(64, 1u << 20, 4u << 20);
	ck_assert_uint_eq(stoup_staging_slot_cnt(staging), 3); /* three of 1 MiB + 8 KiB in 4 MiB */
	stoup_staging_destroy(staging);

	staging = make(64, 16u << 20, 4u << 20);
	ck_assert_uint_eq(stoup_staging_slot_cnt(staging), 1);
	ck_assert_uint_eq(stoup_staging_slot_len(staging), (16u << 20) + 8192);
	stoup_staging_destroy(staging);
}
END_TEST

START_TEST(options_out_of_range_are_refused_with_the_limit_in_the_text)
{
	struct stoup_staging *staging = NULL;
	struct stoup_error err = {0};
	struct stoup_staging_options opt = {.slot_cnt = 0, .stored_len_cap = 4096};

	ck_assert_int_eq(stoup_staging_create(&opt, &staging, &err), -EINVAL);
	opt.slot_cnt = 1025;
	ck_assert_int_eq(stoup_staging_create(&opt, &staging, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "1024"));
	opt.slot_cnt = 1;
	opt.stored_len_cap = (16u << 20) + 1;
	ck_assert_int_eq(stoup_staging_create(&opt, &staging, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "16777216"));
	ck_assert_ptr_null(staging);
	stoup_staging_destroy(NULL);
}
END_TEST

START_TEST(a_slot_put_back_twice_stops_the_process)
{
	struct stoup_staging *staging = make(2, 4096, 0);
	int32_t slot = stoup_staging_take(staging);
	stoup_staging_put(staging, slot);
	stoup_staging_put(staging, slot);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("staging");
	TCase *tcase = tcase_create("staging");
	tcase_add_test(tcase, slots_are_aligned_disjoint_and_inside_the_region);
	tcase_add_test(tcase, each_slot_is_given_once_until_it_is_put_back);
	tcase_add_test(tcase, the_slot_that_was_used_last_is_used_next);
	tcase_add_test(tcase, a_region_cap_makes_fewer_slots_but_never_smaller_or_none);
	tcase_add_test(tcase, options_out_of_range_are_refused_with_the_limit_in_the_text);
	tcase_add_test_raise_signal(tcase, a_slot_put_back_twice_stops_the_process, SIGABRT);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
