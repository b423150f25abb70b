/* SPDX-License-Identifier: Apache-2.0 */
/* test_timestamp.c - texts of times to nanoseconds, exactly; expected numbers are from date(1). */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shm/timestamp.h"
#include "shm/format.h"

#define S INT64_C(1000000000)

struct sample {
	const char *format;
	const char *text;
	int64_t ns;
};

static const struct sample good[] = {
	{"iso", "1970-01-01T00:00:00Z", 0},
	{"iso", "2013-01-01 22:00:00.295000+00:00", 1357077600 * S + 295000000},
	{"iso", "2012-02-01 00:00:00+00:00", 1328054400 * S},
	{"iso", "2012-02-01T01:00:00+01:00", 1328054400 * S},
	{"iso", "2012-01-31 18:30:00-0530", 1328054400 * S},
	{"iso", "2012-02-01T05:00+05", 1328054400 * S},
	{"iso", "2024-02-29", 1709164800 * S},
	{"iso", "20240229", 1709164800 * S},
	{"iso", "2024-02-29 12:34", 1709210040 * S},
	{"iso", "2024-02-29T12:34:56.1Z", 1709210096 * S + 100000000},
	{"iso", "2024-02-29T12:34:56,123456789z", 1709210096 * S + 123456789},
	{"iso", "2024-02-29T12:34:56.12345678900000Z", 1709210096 * S + 123456789},
	{"iso", "2024-02-29 12:34:56 UTC", 1709210096 * S},
	{"iso", "20200101 170000065", 1577898000 * S + 65000000},
	{"iso", "20200101-17:00:00.065", 1577898000 * S + 65000000},
	{"iso", "20200101 170000", 1577898000 * S},
	{"iso", "20200101T1700Z", 1577898000 * S},
	{"iso", "1969-12-31T23:59:59.999999999Z", -1},
	{"iso", "2262-04-11T23:47:16.854775807Z", INT64_MAX},
	{"iso", "1677-09-21T00:12:43.145224192Z", INT64_MIN},
	{"iso", "1677-09-21T00:12:43.5Z", INT64_MIN + 354775808},
	{"iso", "1969-12-31T23:59:59.999999999Z", -1},
	{"iso", "2000-02-29T00:00:00Z", 951782400 * S},
	{"s", "1585699200", 1585699200 * S},
	{"s", "1585699200.245", 1585699200 * S + 245000000},
	{"s", "1585699200.000000001", 1585699200 * S + 1},
	{"s", "1.5856992e9", 1585699200 * S},
	{"s", "-1.5", -1500000000},
	{"ms", "1585699200245", 1585699200 * S + 245000000},
	{"ms", "1585699200245.000001", 1585699200 * S + 245000001},
	{"us", "1585699200245000", 1585699200 * S + 245000000},
	{"us", "1585699200245000.001", 1585699200 * S + 245000001},
	{"ns", "1585699200245000001", 1585699200 * S + 245000001},
	{"ns", "0", 0},
	{"epoch", "1585699200.5", 1585699200 * S + 500000000},
	{"epoch", "100000000", 100000000 * S},
	{"epoch", "100000000000", 100000000 * S},
	{"epoch", "1585699200245", 1585699200 * S + 245000000},
	{"epoch", "1585699200245000", 1585699200 * S + 245000000},
	{"epoch", "1585699200245000001", 1585699200 * S + 245000001},
	{"auto", "1585699200245", 1585699200 * S + 245000000},
	{"auto", "2012-02-01T00:00:00Z", 1328054400 * S},
	{"auto", "20240229", 1709164800 * S},
	{"auto", "20200101 170000065", 1577898000 * S + 65000000},
	{"%d/%m/%Y %H:%M", "31/12/2020 17:00", 1609434000 * S},
	{"%Y%m%d %H%M%S%f", "20200101 170000065", 1577898000 * S + 65000000},
	{"%Y-%m-%dT%H:%M:%S.%f%z", "2012-02-01T05:00:00.25+0500", 1328054400 * S + 250000000},
	{"%Y%m%d%H%M", "202001011700", 1577898000 * S},
	{"%Y.%m.%d 100%%", "2020.01.01 100%", 1577836800 * S},
};

START_TEST(good_texts_are_exact)
{
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		const struct sample *sample = &good[i];
		struct stoup_timestamp_format format = {0};
		struct stoup_error err;
		int64_t ns = -2;
		const char *why = "";
		int rc;

		ck_assert_msg(stoup_timestamp_format_parse(sample->format, &format, &err) == 0,
			"%s", err.text);
		rc = stoup_timestamp_parse(&format, sample->text, strlen(sample->text), &ns, &why);
		ck_assert_msg(rc == 0, "%s: \"%s\" %s", sample->format, sample->text, why);
		ck_assert_msg(ns == sample->ns, "%s: \"%s\" is %lld", sample->format, sample->text,
			(long long)ns);
	}
}
END_TEST

static const struct {
	const char *format;
	const char *text;
	int rc;
	const char *why;
} bad[] = {
	{"iso", "", -EINVAL, "is not a time"},
	{"iso", "2012-02-30T00:00:00Z", -EINVAL, "date that does not exist"},
	{"iso", "2023-02-29", -EINVAL, "date that does not exist"},
	{"iso", "1900-02-29", -EINVAL, "date that does not exist"},
	{"iso", "2012-13-01", -EINVAL, "date that does not exist"},
	{"iso", "2012-00-01", -EINVAL, "date that does not exist"},
	{"iso", "2012-01-00", -EINVAL, "date that does not exist"},
	{"iso", "0000-01-01", -EINVAL, "date that does not exist"},
	{"iso", "2016-12-31T23:59:60Z", -EINVAL, "leap second"},
	{"iso", "2016-12-31T24:00:00Z", -EINVAL, "time of day"},
	{"iso", "2016-12-31T23:60:00Z", -EINVAL, "time of day"},
	{"iso", "2016-12-31T23:59:61Z", -EINVAL, "time of day"},
	{"iso", "2016-12-31T23:59:59.1234567891Z", -EDOM, "below one nanosecond"},
	{"iso", "2016-12-31T23:59:59.Z", -EINVAL, "is not a time"},
	{"iso", "2016-12-31T23:59:59+24:00", -EINVAL, "is not a time"},
	{"iso", "2016-12-31T23:59:59+01:60", -EINVAL, "is not a time"},
	{"iso", "2016-12-31T23:59:59+1", -EINVAL, "is not a time"},
	{"iso", "2016-12-31T23:59:59Zx", -EINVAL, "is not a time"},
	{"iso", "2016-12-31x23:59:59", -EINVAL, "is not a time"},
	{"iso", "2016-1-31", -EINVAL, "is not a time"},
	{"iso", "2016-12-31T", -EINVAL, "is not a time"},
	{"iso", "1585699200", -EINVAL, "is not a time"},
	{"iso", "2012-02-01 05+05", -EINVAL, "is not a time"},
	{"epoch", "99999999999", -ERANGE, "outside"},
	{"iso", "1677-09-20T00:00:00Z", -ERANGE, "outside"},
	{"iso", "1677-09-21T00:12:43.145224191Z", -ERANGE, "outside"},
	{"iso", "2262-04-11T23:47:16.854775808Z", -ERANGE, "outside"},
	{"iso", "9999-12-31T23:59:59Z", -ERANGE, "outside"},
	{"s", "1585699200.0000000001", -EDOM, "below one nanosecond"},
	{"ns", "1.5", -EDOM, "below one nanosecond"},
	{"s", "99999999999", -ERANGE, "outside"},
	{"s", "12:00", -EINVAL, "not a number"},
	{"ns", "", -EINVAL, "not a number"},
	{"epoch", "34200.004241176", -EINVAL, "unit can be told"},
	{"epoch", "99999999", -EINVAL, "unit can be told"},
	{"epoch", "-1585699200", -EINVAL, "unit can be told"},
	{"epoch", "1.5e18", -EINVAL, "unit can be told"},
	{"epoch", "0000000001585", -EINVAL, "unit can be told"},
	{"epoch", "20200101170000", -ERANGE, "outside"},
	{"auto", "202001011700", -EINVAL, "may be a date and time or an epoch"},
	{"auto", "20201301", -EINVAL, "date that does not exist"},
	{"auto", "1.5", -EINVAL, "unit can be told"},
	{"auto", "hello", -EINVAL, "is not a time"},
	{"%Y-%m-%d", "2020-01-01 ", -EINVAL, "does not match"},
	{"%Y-%m-%d", "2020/01/01", -EINVAL, "does not match"},
	{"%Y-%m-%d", "2020-02-31", -EINVAL, "date that does not exist"},
	{"%Y-%m-%d %f", "2020-01-01 1234567891", -EDOM, "below one nanosecond"},
};

START_TEST(bad_texts_are_refused_with_the_reason)
{
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct stoup_timestamp_format format = {0};
		struct stoup_error err;
		int64_t ns = 4711;
		const char *why = "";
		int rc;

		ck_assert_msg(stoup_timestamp_format_parse(bad[i].format, &format, &err) == 0, "%s",
			err.text);
		rc = stoup_timestamp_parse(&format, bad[i].text, strlen(bad[i].text), &ns, &why);
		ck_assert_msg(
			rc == bad[i].rc, "%s: \"%s\": %d %s", bad[i].format, bad[i].text, rc, why);
		ck_assert_msg(strstr(why, bad[i].why) != NULL, "%s: \"%s\": %s", bad[i].format,
			bad[i].text, why);
		ck_assert_int_eq(ns, 4711);
	}
}
END_TEST

START_TEST(the_zone_shifts_texts_without_an_offset_only)
{
	struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_ISO};
	const char *why;
	int64_t ns;

	ck_assert_int_eq(stoup_timestamp_zone_parse("+01:00", &format.zone_s, NULL), 0);
	ck_assert_int_eq(stoup_timestamp_parse(&format, "2012-02-01 01:00", 16, &ns, &why), 0);
	ck_assert_int_eq(ns, 1328054400 * S);
	ck_assert_int_eq(stoup_timestamp_parse(&format, "2012-02-01 00:00Z", 17, &ns, &why), 0);
	ck_assert_int_eq(ns, 1328054400 * S);
	format.kind = STOUP_TIMESTAMP_EPOCH;
	ck_assert_int_eq(stoup_timestamp_parse(&format, "1328054400", 10, &ns, &why), 0);
	ck_assert_int_eq(ns, 1328054400 * S);
}
END_TEST

START_TEST(zones_are_offsets)
{
	static const struct {
		const char *text;
		int rc;
		int32_t zone_s;
	} zones[] = {
		{"UTC", 0, 0},
		{"Z", 0, 0},
		{"+00:00", 0, 0},
		{"-0530", 0, -19800},
		{"+14", 0, 50400},
		{"Europe/Berlin", -EINVAL, 0},
		{"01:00", -EINVAL, 0},
		{"+19", -EINVAL, 0},
		{"+01:00x", -EINVAL, 0},
		{"", -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
		struct stoup_error err;
		int32_t zone_s = 9;

		ck_assert_int_eq(
			stoup_timestamp_zone_parse(zones[i].text, &zone_s, &err), zones[i].rc);
		ck_assert_int_eq(zone_s, zones[i].rc ? 9 : zones[i].zone_s);
	}
}
END_TEST

START_TEST(bad_formats_are_refused)
{
	static const char *const formats[] = {"", "rfc", "%Y-%m", "%Y-%m-%d %q", "%Y-%m-%d %",
		"%Y-%m-%d %Y", "%Y%m%d%H%M%S%Y%m%d%H%M%S%Y%m%d%H%M%S%Y%m%d%H%M%S%Y%m%d%H%M%S%Y"};

	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		struct stoup_timestamp_format format = {0};
		struct stoup_error err = {0};

		ck_assert_int_eq(stoup_timestamp_format_parse(formats[i], &format, &err), -EINVAL);
		ck_assert_uint_gt(strlen(err.text), 10);
	}
}
END_TEST

/* Every day that an i64 of nanoseconds reaches, against the C library's calendar. */
START_TEST(every_day_agrees_with_the_c_library)
{
	const struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_ISO};

	for (int64_t day = -106750; day <= 106750; day++) {
		time_t seconds = (time_t)(day * 86400 + 86399);
		struct tm tm;
		char expected[64], text[STOUP_FORMAT_CAP];
		int64_t ns = 0;
		const char *why = "";
		size_t len;

		int rc;

		/* One comparison a day: an assertion of Check costs more than all the rest. */
		(void)gmtime_r(&seconds, &tm);
		len = strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S", &tm);
		(void)snprintf(expected + len, sizeof expected - len, ".%09dZ", 987654321);
		rc = stoup_timestamp_parse(&format, expected, strlen(expected), &ns, &why);
		(void)stoup_format_time(ns, text);
		if (rc || ns != seconds * S + 987654321 || strcmp(text, expected) != 0)
			ck_abort_msg("%s: %d %s, %lld, %s", expected, rc, why, (long long)ns, text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("timestamp");
	TCase *tcase = tcase_create("timestamp");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, good_texts_are_exact);
	tcase_add_test(tcase, bad_texts_are_refused_with_the_reason);
	tcase_add_test(tcase, the_zone_shifts_texts_without_an_offset_only);
	tcase_add_test(tcase, zones_are_offsets);
	tcase_add_test(tcase, bad_formats_are_refused);
	tcase_add_test(tcase, every_day_agrees_with_the_c_library);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
