/* SPDX-License-Identifier: Apache-2.0 */
/* test_format.c - values of records to text. Decimals are with their parser in test_decimal.c,
 * every day of the calendar in test_timestamp.c.
 */
#include <check.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "shm/format.h"

START_TEST(times_have_nine_digits_and_a_z)
{
	static const struct {
		int64_t ns;
		const char *text;
	} times[] = {
		{INT64_C(0), "1970-01-01T00:00:00.000000000Z"},
		{INT64_C(1703462400000000000), "2023-12-25T00:00:00.000000000Z"},
		{INT64_C(951782400000000000), "2000-02-29T00:00:00.000000000Z"},
		{INT64_C(951868799999999999), "2000-02-29T23:59:59.999999999Z"},
		{INT64_C(4102444799123456789), "2099-12-31T23:59:59.123456789Z"},
		{INT64_MAX, "2262-04-11T23:47:16.854775807Z"},
		{INT64_C(-1), "1969-12-31T23:59:59.999999999Z"},
		{INT64_MIN, "1677-09-21T00:12:43.145224192Z"},
		{INT64_C(-2208988800000000000), "1900-01-01T00:00:00.000000000Z"},
	};
	char text[STOUP_FORMAT_CAP];

	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		ck_assert_uint_eq(stoup_format_time(times[i].ns, text), 30);
		ck_assert_str_eq(text, times[i].text);
	}
	ck_assert_uint_eq(stoup_format_time_u64(UINT64_MAX, text), 30);
	ck_assert_str_eq(text, "2554-07-21T23:34:33.709551615Z");
}
END_TEST

START_TEST(doubles_are_as_short_as_they_can_be)
{
	static const struct {
		double value;
		const char *text;
	} doubles[] = {
		{0.1, "0.1"},
		{1.0 / 3, "0.3333333333333333"},
		{1e300, "1e+300"},
		{-2.5, "-2.5"},
		{0, "0"},
		{61234.5, "61234.5"},
		{5e-324, "4.94065645841247e-324"},
		{0.1 + 0.2, "0.30000000000000004"},
	};
	char text[STOUP_FORMAT_CAP];

	for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
		ck_assert_uint_eq(stoup_format_double(doubles[i].value, text), strlen(text));
		ck_assert_str_eq(text, doubles[i].text);
	}
}
END_TEST

START_TEST(the_locale_does_not_change_the_point)
{
	static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
	char text[STOUP_FORMAT_CAP];

	for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
		if (!setlocale(LC_ALL, locales[i]))
			continue;
		(void)stoup_format_double(-1234.5, text);
		ck_assert_str_eq(text, "-1234.5");
	}
	(void)setlocale(LC_ALL, "C");
}
END_TEST

/* ---- fields ---------------------------------------------------------------------------------- */

/* Format a field whose bytes are at the record's start. */
static const char *show(struct stoup_field field, const void *bytes)
{
	static char text[256];
	int64_t len = stoup_format_field(&field, bytes, text, sizeof text);

	ck_assert_int_eq(len, (int64_t)strlen(text));
	return text;
}

#define FIELD(...)                                                                                 \
	(struct stoup_field)                                                                       \
	{                                                                                          \
		.name = "f", __VA_ARGS__                                                           \
	}

START_TEST(integers_have_their_width_sign_and_scale)
{
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t low[8] = {0x40, 0xe2, 0x01, 0, 0, 0, 0, 0x80};

	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_U8), ones), "255");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_I8), ones), "-1");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_U16), ones), "65535");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_I16), ones), "-1");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_U32), ones), "4294967295");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_I32), ones), "-1");
	ck_assert_str_eq(
		show(FIELD(.cnt = 1, .type = STOUP_TYPE_U64), ones), "18446744073709551615");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_I64), ones), "-1");
	ck_assert_str_eq(
		show(FIELD(.cnt = 1, .type = STOUP_TYPE_U32, .exp10 = -3), low), "123.456");
	ck_assert_str_eq(
		show(FIELD(.cnt = 1, .type = STOUP_TYPE_I32, .exp10 = 2), low), "12345600");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_U64, .exp10 = -3), low),
		"9223372036854899.264");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_I64, .exp10 = -3), low),
		"-9223372036854652.352");
}
END_TEST

START_TEST(undefined_values_are_empty)
{
	static const uint8_t max[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
	struct stoup_field price = FIELD(.cnt = 1, .type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_NULL, .exp10 = -9, .null_bits = INT64_MAX);
	struct stoup_field size = FIELD(.cnt = 1, .type = STOUP_TYPE_U32, .flags = STOUP_FIELD_NULL,
		.null_bits = UINT32_MAX);
	struct stoup_field time = FIELD(.cnt = 1, .type = STOUP_TYPE_U64,
		.flags = STOUP_FIELD_NULL | STOUP_FIELD_TIME, .null_bits = UINT64_MAX);

	ck_assert_str_eq(show(price, max), "");
	ck_assert_int_ne(stoup_field_is_null(&price, max), 0);
	ck_assert_str_eq(show(size, max), "");
	ck_assert_str_eq(show(time, max), "2262-04-11T23:47:16.854775807Z");
	price.flags = 0;
	ck_assert_str_eq(show(price, max), "9223372036.854775807");
	ck_assert_int_eq(stoup_field_is_null(&price, max), 0);
}
END_TEST

START_TEST(texts_end_at_their_nul_and_hide_nothing)
{
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_CHAR), "B"), "B");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_CHAR), ""), "");
	ck_assert_str_eq(show(FIELD(.type = STOUP_TYPE_CHAR, .cnt = 4), "ESH4"), "ESH4");
	ck_assert_str_eq(show(FIELD(.type = STOUP_TYPE_CHAR, .cnt = 4), "ES\0x"), "ES");
	ck_assert_str_eq(show(FIELD(.type = STOUP_TYPE_CHAR, .cnt = 6), "a\nb\\\xc3\x1b"),
		"a\\x0ab\\x5c\\xc3\\x1b");
	ck_assert_str_eq(show(FIELD(.type = STOUP_TYPE_BYTES, .cnt = 3), "\x01\xab\0"), "01ab00");
}
END_TEST

START_TEST(floats_read_back_as_the_same_bits)
{
	float f32 = 0.1f;
	double f64 = 61234.56;

	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_F32), &f32), "0.1");
	ck_assert_str_eq(show(FIELD(.cnt = 1, .type = STOUP_TYPE_F64), &f64), "61234.56");
}
END_TEST

START_TEST(a_buffer_that_is_too_small_is_refused)
{
	const struct stoup_field text = FIELD(.type = STOUP_TYPE_CHAR, .cnt = 4);
	const struct stoup_field bytes = FIELD(.type = STOUP_TYPE_BYTES, .cnt = 4);
	const struct stoup_field number = FIELD(.cnt = 1, .type = STOUP_TYPE_I64);
	char dst[STOUP_FORMAT_CAP];

	ck_assert_int_eq(stoup_format_field(&text, "abcd", dst, 4), -ENOSPC);
	ck_assert_int_eq(stoup_format_field(&text, "abcd", dst, 5), 4);
	ck_assert_int_eq(stoup_format_field(&text, "abc\x80", dst, 7), -ENOSPC);
	ck_assert_int_eq(stoup_format_field(&text, "abc\x80", dst, 8), 7);
	ck_assert_int_eq(stoup_format_field(&bytes, "abcd", dst, 8), -ENOSPC);
	ck_assert_int_eq(stoup_format_field(&bytes, "abcd", dst, 9), 8);
	ck_assert_int_eq(stoup_format_field(&number, "12345678", dst, sizeof dst - 1), -ENOSPC);
	ck_assert_int_eq(stoup_format_field(&number, "12345678", dst, 0), -ENOSPC);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("format");
	TCase *tcase = tcase_create("format");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, times_have_nine_digits_and_a_z);
	tcase_add_test(tcase, doubles_are_as_short_as_they_can_be);
	tcase_add_test(tcase, the_locale_does_not_change_the_point);
	tcase_add_test(tcase, integers_have_their_width_sign_and_scale);
	tcase_add_test(tcase, undefined_values_are_empty);
	tcase_add_test(tcase, texts_end_at_their_nul_and_hide_nothing);
	tcase_add_test(tcase, floats_read_back_as_the_same_bits);
	tcase_add_test(tcase, a_buffer_that_is_too_small_is_refused);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
