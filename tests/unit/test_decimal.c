/* SPDX-License-Identifier: Apache-2.0 */
/* test_decimal.c - decimal texts to integers and back, exactly. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/decimal.h"
#include "shm/format.h"

struct sample {
	const char *text;
	int exp10;
	int rc;
	int64_t value;
};

static const struct sample samples[] = {
	{"0", 0, 0, 0},
	{"-0", -9, 0, 0},
	{"+7", 0, 0, 7},
	{"1.12170", -9, 0, 1121700000},
	{"1.12170", -5, 0, 112170},
	{"1.12170", -4, 0, 11217},
	{"1.12170", -3, -EDOM, 0},
	{"-0.5", -1, 0, -5},
	{".5", -1, 0, 5},
	{"5.", -1, 0, 50},
	{"1.5e-8", -9, 0, 15},
	{"1.5e-9", -9, -EDOM, 0},
	{"1.5E+3", 0, 0, 1500},
	{"1500", 2, 0, 15},
	{"1550", 2, -EDOM, 0},
	{"1e18", 0, 0, INT64_C(1000000000000000000)},
	{"1e19", 0, -ERANGE, 0},
	{"100e-2", 0, 0, 1},
	{"0e999999999999", 0, 0, 0},
	{"1e999999999999", 0, -ERANGE, 0},
	{"1e-999999999999", -18, -EDOM, 0},
	{"9223372036854775807", 0, 0, INT64_MAX},
	{"9223372036854775808", 0, -ERANGE, 0},
	{"-9223372036854775808", 0, 0, INT64_MIN},
	{"-9223372036854775809", 0, -ERANGE, 0},
	{"9223372036.854775807", -9, 0, INT64_MAX},
	{"9223372036.854775808", -9, -ERANGE, 0},
	{"92233720368.54775807", -9, -ERANGE, 0},
	{"1.0000000000000000000000000000000000000000", -9, 0, 1000000000},
	{"1.0000000000000000000000000000000000000001", -9, -EDOM, 0},
	{"0.0000000000000000000000000000000000000001", -9, -EDOM, 0},
	{"0000000000000000000000000000000000012.5", -1, 0, 125},
	{"1234567890123456789012345678901234567890", 0, -ERANGE, 0},
	{"1234567890123456789012345678901234567890e-30", 0, -EDOM, 0},
	{"100000000000000000000000000000e-20", 0, 0, 1000000000},
	{"0.000000000000000001234567890123456789e18", -18, 0, INT64_C(1234567890123456789)},
	{"1.234567890123456789", -18, 0, INT64_C(1234567890123456789)},
	{"", 0, -EINVAL, 0},
	{"-", 0, -EINVAL, 0},
	{".", 0, -EINVAL, 0},
	{"+-1", 0, -EINVAL, 0},
	{"1.2.3", 0, -EINVAL, 0},
	{"1,5", 0, -EINVAL, 0},
	{"1 ", 0, -EINVAL, 0},
	{" 1", 0, -EINVAL, 0},
	{"1e", 0, -EINVAL, 0},
	{"1e+", 0, -EINVAL, 0},
	{"1e1.5", 0, -EINVAL, 0},
	{"e5", 0, -EINVAL, 0},
	{"0x10", 0, -EINVAL, 0},
	{"nan", 0, -EINVAL, 0},
	{"inf", 0, -EINVAL, 0},
	{"1_000", 0, -EINVAL, 0},
	{"1/2", 0, -EINVAL, 0},
};

START_TEST(a_text_is_an_exact_integer_or_an_error)
{
	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		const struct sample *sample = &samples[i];
		int64_t value = 4711;
		int rc = stoup_decimal_parse(
			sample->text, strlen(sample->text), sample->exp10, &value);

		ck_assert_msg(
			rc == sample->rc, "\"%s\" at %d: %d", sample->text, sample->exp10, rc);
		ck_assert_msg(value == (rc ? 4711 : sample->value), "\"%s\" at %d: %lld",
			sample->text, sample->exp10, (long long)value);
	}
}
END_TEST

START_TEST(unsigned_numbers_reach_to_64_bits)
{
	uint64_t value = 1;

	ck_assert_int_eq(stoup_decimal_parse_u64("18446744073709551615", 20, 0, &value), 0);
	ck_assert_uint_eq(value, UINT64_MAX);
	ck_assert_int_eq(stoup_decimal_parse_u64("18446744073709551616", 20, 0, &value), -ERANGE);
	ck_assert_int_eq(stoup_decimal_parse_u64("184467440737095516150", 21, 1, &value), 0);
	ck_assert_uint_eq(value, UINT64_MAX);
	ck_assert_int_eq(stoup_decimal_parse_u64("-1", 2, 0, &value), -ERANGE);
	ck_assert_int_eq(stoup_decimal_parse_u64("-0", 2, 0, &value), 0);
	ck_assert_uint_eq(value, 0);
}
END_TEST

START_TEST(the_length_bounds_what_is_read)
{
	int64_t value;

	ck_assert_int_eq(stoup_decimal_parse("12345", 3, 0, &value), 0);
	ck_assert_int_eq(value, 123);
	ck_assert_int_eq(stoup_decimal_parse("12\0045", 5, 0, &value), -EINVAL);
	ck_assert_int_eq(stoup_decimal_parse("7", 0, 0, &value), -EINVAL);
}
END_TEST

START_TEST(printed_decimals_have_no_needless_zeros)
{
	static const struct {
		int64_t value;
		int exp10;
		const char *text;
	} prints[] = {
		{0, -9, "0"},
		{0, 5, "0"},
		{1121700000, -9, "1.1217"},
		{-1121700000, -9, "-1.1217"},
		{5, -1, "0.5"},
		{-5, -9, "-0.000000005"},
		{1000000000, -9, "1"},
		{1200, -2, "12"},
		{1200, 0, "1200"},
		{12, 3, "12000"},
		{INT64_MAX, 0, "9223372036854775807"},
		{INT64_MIN, -9, "-9223372036.854775808"},
		{INT64_MIN, 18, "-9223372036854775808000000000000000000"},
		{INT64_MAX, -18, "9.223372036854775807"},
		{1, -18, "0.000000000000000001"},
	};

	for (size_t i = 0; i < sizeof prints / sizeof prints[0]; i++) {
		char text[STOUP_FORMAT_CAP];
		size_t len = stoup_format_decimal(prints[i].value, prints[i].exp10, text);

		ck_assert_str_eq(text, prints[i].text);
		ck_assert_uint_eq(len, strlen(text));
	}
}
END_TEST

/* A generator of its own, so that a failure names a value that anybody can repeat. */
static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state ^ *state >> 29;
}

START_TEST(what_is_printed_reads_back_as_the_same_integer)
{
	uint64_t state = 20240808;

	for (int i = 0; i < 200000; i++) {
		int64_t value = (int64_t)(next_random(&state) >> (next_random(&state) % 64));
		uint64_t bits = (uint64_t)value;
		int exp10 = (int)(next_random(&state) % 37) - 18;
		char text[STOUP_FORMAT_CAP];
		int64_t again;
		uint64_t again_bits;
		size_t len;

		if (i & 1)
			value = (int64_t) - (uint64_t)value;
		len = stoup_format_decimal(value, exp10, text);
		ck_assert_msg(stoup_decimal_parse(text, len, exp10, &again) == 0 && again == value,
			"%lld at %d is \"%s\"", (long long)value, exp10, text);
		len = stoup_format_decimal_u64(bits, exp10, text);
		ck_assert_msg(stoup_decimal_parse_u64(text, len, exp10, &again_bits) == 0 &&
				      again_bits == bits,
			"%llu at %d is \"%s\"", (unsigned long long)bits, exp10, text);
	}
}
END_TEST

/* Against 128-bit arithmetic on the digits themselves. */
START_TEST(random_digits_agree_with_wide_arithmetic)
{
	__extension__ typedef __int128 wide;
	uint64_t state = 7;

	for (int i = 0; i < 200000; i++) {
		unsigned whole_cnt = (unsigned)(next_random(&state) % 12);
		unsigned part_cnt = (unsigned)(next_random(&state) % 12) + (whole_cnt == 0);
		int exp10 = -(int)(next_random(&state) % 13);
		wide scaled = 0;
		int shift = -(int)part_cnt - exp10, rc, expected = 0;
		char text[40];
		size_t len = 0;
		int64_t value = 0;

		for (unsigned j = 0; j < whole_cnt + part_cnt; j++) {
			unsigned digit =
				next_random(&state) % 4 ? (unsigned)(next_random(&state) % 10) : 0;

			if (j == whole_cnt)
				text[len++] = '.';
			text[len++] = (char)('0' + digit);
			scaled = scaled * 10 + digit;
		}
		for (; shift > 0; shift--)
			scaled *= 10;
		for (; shift < 0; shift++) {
			expected = scaled % 10 ? -EDOM : expected;
			scaled /= 10;
		}
		if (!expected && scaled > INT64_MAX)
			expected = -ERANGE;
		rc = stoup_decimal_parse(text, len, exp10, &value);
		ck_assert_msg(rc == expected && (rc || value == (int64_t)scaled),
			"\"%.*s\" at %d: %d, %lld", (int)len, text, exp10, rc, (long long)value);
	}
}
END_TEST

/* "0.000...0001e10009": thousands of zeros, which the exponent makes up for. */
START_TEST(an_exponent_makes_up_for_any_number_of_zeros)
{
	static const int zero_cnts[] = {9, 9999, 10000, 12345, 200000};
	static char text[200100];

	for (size_t i = 0; i < sizeof(zero_cnts) / sizeof(zero_cnts[0]); i++) {
		int zero_cnt = zero_cnts[i], end;
		int64_t value = 0;

		memset(text, '0', sizeof(text));
		text[1] = '.';
		end = 2 + zero_cnt + sprintf(text + 2 + zero_cnt, "1e%d", zero_cnt + 10);
		ck_assert_int_eq(stoup_decimal_parse(text, (size_t)end, 0, &value), 0);
		ck_assert_int_eq(value, 1000000000);
		text[1] = '0';
		text[0] = '1';
		end = 2 + zero_cnt + sprintf(text + 2 + zero_cnt, "e-%d", zero_cnt + 1);
		ck_assert_int_eq(stoup_decimal_parse(text, (size_t)end, 0, &value), 0);
		ck_assert_int_eq(value, 1);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("decimal");
	TCase *tcase = tcase_create("decimal");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_text_is_an_exact_integer_or_an_error);
	tcase_add_test(tcase, unsigned_numbers_reach_to_64_bits);
	tcase_add_test(tcase, the_length_bounds_what_is_read);
	tcase_add_test(tcase, printed_decimals_have_no_needless_zeros);
	tcase_add_test(tcase, what_is_printed_reads_back_as_the_same_integer);
	tcase_add_test(tcase, random_digits_agree_with_wide_arithmetic);
	tcase_add_test(tcase, an_exponent_makes_up_for_any_number_of_zeros);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
