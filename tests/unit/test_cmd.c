/* SPDX-License-Identifier: Apache-2.0 */
/* test_cmd.c - sizes, durations and decimals as users write and read them. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include "producer/cmd.h"

static uint64_t size_of(const char *text)
{
	uint64_t len = 12345;

	ck_assert_int_eq(stoup_size_parse(text, &len), 0);
	return len;
}

static int64_t duration_of(const char *text)
{
	int64_t ns = 12345;

	ck_assert_int_eq(stoup_duration_parse(text, &ns), 0);
	return ns;
}

START_TEST(sizes_have_units_of_1024)
{
	ck_assert_uint_eq(size_of("0"), 0);
	ck_assert_uint_eq(size_of("4096"), 4096);
	ck_assert_uint_eq(size_of("64K"), 65536);
	ck_assert_uint_eq(size_of("64k"), 65536);
	ck_assert_uint_eq(size_of("512M"), 536870912);
	ck_assert_uint_eq(size_of("4GiB"), 4294967296);
	ck_assert_uint_eq(size_of("1.5G"), 1610612736);
	ck_assert_uint_eq(size_of("1T"), 1099511627776);
	ck_assert_uint_eq(size_of("9223372036854775807"), INT64_MAX);
}
END_TEST

START_TEST(a_text_that_is_no_size_is_refused_and_changes_nothing)
{
	static const char *const bad[] = {"", "K", "-1", "1X", "1 K", "0x10", "1.", ".5K", "1.5",
		"1e3", "1KK", "1.0000000000001G"};
	uint64_t len = 77;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(stoup_size_parse(bad[i], &len), -EINVAL);
	ck_assert_int_eq(stoup_size_parse("9223372036854775808", &len), -ERANGE);
	ck_assert_int_eq(stoup_size_parse("8388608T", &len), -ERANGE);
	ck_assert_uint_eq(len, 77);
}
END_TEST

START_TEST(durations_need_a_unit)
{
	int64_t ns = 77;

	ck_assert_int_eq(duration_of("0"), 0);
	ck_assert_int_eq(duration_of("17ns"), 17);
	ck_assert_int_eq(duration_of("250ms"), 250000000);
	ck_assert_int_eq(duration_of("1.5h"), 5400000000000);
	ck_assert_int_eq(duration_of("1m"), 60000000000);
	ck_assert_int_eq(duration_of("1d"), 86400000000000);
	ck_assert_int_eq(stoup_duration_parse("5", &ns), -EINVAL);
	ck_assert_int_eq(stoup_duration_parse("5M", &ns), -EINVAL);
	ck_assert_int_eq(stoup_duration_parse("0.5ns", &ns), -EINVAL);
	ck_assert_int_eq(stoup_duration_parse("200000d", &ns), -ERANGE);
	ck_assert_int_eq(ns, 77);
}
END_TEST

static void check_decimal(stoup_int128 integer, int exp10, const char *expected)
{
	char text[STOUP_DECIMAL_TEXT_CAP];

	stoup_decimal_format(integer, exp10, text);
	ck_assert_str_eq(text, expected);
}

START_TEST(decimals_are_exact_and_without_needless_zeros)
{
	check_decimal(0, -9, "0");
	check_decimal(1234500, -4, "123.45");
	check_decimal(-5, -1, "-0.5");
	check_decimal(1, -9, "0.000000001");
	check_decimal(7000000000, -9, "7");
	check_decimal(12, 3, "12000");
	/* Two sums that no 64-bit integer holds. */
	check_decimal((stoup_int128)INT64_MAX * 1000, -9, "9223372036854.775807");
	check_decimal((stoup_int128)INT64_MIN * 4, 0, "-36893488147419103232");
}
END_TEST

START_TEST(lengths_are_shown_for_people)
{
	char text[STOUP_DURATION_TEXT_CAP];

	stoup_size_format(1023, text);
	ck_assert_str_eq(text, "1023 B");
	stoup_size_format(1536, text);
	ck_assert_str_eq(text, "1.5 KiB");
	stoup_duration_format(250000000, text);
	ck_assert_str_eq(text, "250 ms");
	stoup_duration_format(3 * 86400000000000 + 3661000000000, text);
	ck_assert_str_eq(text, "3 d 01:01:01");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cmd");
	TCase *tc = tcase_create("cmd");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, sizes_have_units_of_1024);
	tcase_add_test(tc, a_text_that_is_no_size_is_refused_and_changes_nothing);
	tcase_add_test(tc, durations_need_a_unit);
	tcase_add_test(tc, decimals_are_exact_and_without_needless_zeros);
	tcase_add_test(tc, lengths_are_shown_for_people);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
