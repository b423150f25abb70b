/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_number.c - texts of numbers and times against a slow reference that shares nothing with them.
 *
 *      bytes[0]   what: 0 decimal, 1 ISO, 2 pattern, 3 epoch of a unit, 4 auto
 *      bytes[1]   decimal: scale + 18; pattern: its length; epoch: the unit
 *      then       times: minutes east of UTC (i16); pattern: the pattern
 *      the rest   the text
 *
 * The reference knows decimals as strings of digits, times as templates that are tried one after the
 * other, and counts days year by year. Both must agree on what is accepted and on the value.
 */
#include <errno.h>
#include "shm/decimal.h"
#include "shm/format.h"
#include "shm/timestamp.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_CAP 4096

__extension__ typedef __int128 wide;

/* ---- decimals --------------------------------------------------------------------------------- */

struct digits {
	char text[TEXT_CAP];
	size_t len;
	long exponent;
	int negative;
};

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Split [+-]digits[.digits][e[+-]digits]; 0 or -1. */
static int digits_split(const char *text, size_t len, struct digits *ret)
{
	size_t at = 0, digit_cnt = 0;
	int point = 0, negative = 0;
	long exponent = 0;

	memset(ret, 0, sizeof(*ret));
	if (at < len && (text[at] == '+' || text[at] == '-'))
		ret->negative = text[at++] == '-';
	for (; at < len && (is_digit(text[at]) || (text[at] == '.' && !point)); at++) {
		if (text[at] == '.') {
			point = 1;
			continue;
		}
		ret->text[digit_cnt++] = text[at];
		ret->exponent -= point;
	}
	ret->len = digit_cnt;
	if (digit_cnt == 0)
		return -1;
	if (at == len)
		return 0;
	if (text[at] != 'e' && text[at] != 'E')
		return -1;
	at++;
	if (at < len && (text[at] == '+' || text[at] == '-'))
		negative = text[at++] == '-';
	if (at == len)
		return -1;
	for (; at < len; at++) {
		if (!is_digit(text[at]))
			return -1;
		exponent = exponent * 10 + (text[at] - '0');
		if (exponent > 1000000000)
			exponent = 1000000000;
	}
	ret->exponent += negative ? -exponent : exponent;
	return 0;
}

/* The value in units of 10^exp10; 0, -EINVAL, -EDOM, -ERANGE (beyond any 64 bits). */
static int decimal_reference(const char *text, size_t len, int exp10, wide *ret)
{
	struct digits d;
	size_t first = 0;
	wide value = 0;

	if (digits_split(text, len, &d) < 0)
		return -EINVAL;
	while (first < d.len && d.text[first] == '0')
		first++;
	while (d.len > first && d.text[d.len - 1] == '0') {
		d.len--;
		d.exponent++;
	}
	*ret = 0;
	if (first == d.len)
		return 0;
	if (d.exponent < exp10)
		return -EDOM;
	if (d.exponent - exp10 > 20 || d.len - first > 20 ||
		(long)(d.len - first) + d.exponent - exp10 > 20)
		return -ERANGE;
	for (; first < d.len; first++)
		value = value * 10 + (d.text[first] - '0');
	for (long i = d.exponent; i > exp10; i--)
		value *= 10;
	*ret = d.negative ? -value : value;
	return 0;
}

static void try_decimal(const char *text, size_t len, int exp10)
{
	char printed[STOUP_FORMAT_CAP];
	uint64_t unsigned_value = 7;
	int64_t value = 7, again;
	wide expected;
	int rc = decimal_reference(text, len, exp10, &expected);
	int fits = rc == 0 && expected >= INT64_MIN && expected <= INT64_MAX;
	int fits_u64 = rc == 0 && expected >= 0 && expected <= UINT64_MAX;

	MUST(stoup_decimal_parse(text, len, exp10, &value) == (rc ? rc : fits ? 0 : -ERANGE));
	MUST(fits ? value == expected : value == 7);
	MUST(stoup_decimal_parse_u64(text, len, exp10, &unsigned_value) ==
		(rc                ? rc
			: fits_u64 ? 0
				   : -ERANGE));
	MUST(fits_u64 ? unsigned_value == expected : unsigned_value == 7);
	if (!fits)
		return;
	len = stoup_format_decimal(value, exp10, printed);
	MUST(len == strlen(printed) && len < sizeof(printed));
	MUST(stoup_decimal_parse(printed, len, exp10, &again) == 0 && again == value);
}

/* ---- times by templates ----------------------------------------------------------------------- */

struct moment {
	long year, month, day, hour, minute, second, ns, zone_s;
};

static int take_digits(const char **at, const char *end, int cnt, long *ret)
{
	long value = 0;

	for (int i = 0; i < cnt; i++) {
		if (*at == end || !is_digit(**at))
			return 0;
		value = value * 10 + (*(*at)++ - '0');
	}
	*ret = value;
	return 1;
}

static int take_zone(const char **at, const char *end, long *ret)
{
	long hours, minutes = 0, sign;

	if (*at < end && (**at == 'Z' || **at == 'z')) {
		(*at)++;
		*ret = 0;
		return 1;
	}
	if (end - *at >= 3 && strncmp(*at, "UTC", 3) == 0) {
		*at += 3;
		*ret = 0;
		return 1;
	}
	if (*at == end || (**at != '+' && **at != '-'))
		return 0;
	sign = *(*at)++ == '-' ? -1 : 1;
	if (!take_digits(at, end, 2, &hours))
		return 0;
	if (*at < end && (**at == ':' || is_digit(**at))) {
		*at += **at == ':';
		if (!take_digits(at, end, 2, &minutes))
			return 0;
	}
	*ret = sign * (hours * 60 + minutes) * 60;
	return minutes < 60 && hours * 60 + minutes <= 18 * 60;
}

static int take_fraction(const char **at, const char *end, long *ret)
{
	int cnt = 0;

	for (*ret = 0; *at < end && is_digit(**at); (*at)++, cnt++) {
		if (cnt < 9)
			*ret = *ret * 10 + (**at - '0');
		else if (**at != '0')
			return 0;
	}
	for (int i = cnt; i < 9; i++)
		*ret *= 10;
	return cnt > 0;
}

/* Match all of a text with a pattern of %Y %m %d %H %M %S %f %z %% and literal bytes. */
static int matches(const char *pattern, const char *at, const char *end, struct moment *m)
{
	for (; *pattern; pattern++) {
		int fine;

		if (*pattern != '%') {
			fine = at < end && *at++ == *pattern;
		} else {
			switch (*++pattern) {
			case 'Y':
				fine = take_digits(&at, end, 4, &m->year);
				break;
			case 'f':
				fine = take_fraction(&at, end, &m->ns);
				break;
			case 'z':
				fine = take_zone(&at, end, &m->zone_s);
				break;
			case '%':
				fine = at < end && *at++ == '%';
				break;
			default:
				fine = take_digits(&at, end, 2,
					*pattern == 'm'   ? &m->month
					: *pattern == 'd' ? &m->day
					: *pattern == 'H' ? &m->hour
					: *pattern == 'M' ? &m->minute
							  : &m->second);
			}
		}
		if (!fine)
			return 0;
	}
	return at == end;
}

static int leap(long year)
{
	return year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
}

static int moment_exists(const struct moment *m)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return m->year >= 1 && m->month >= 1 && m->month <= 12 && m->day >= 1 &&
	       m->day <= lengths[m->month - 1] + (m->month == 2 && leap(m->year)) && m->hour < 24 &&
	       m->minute < 60 && m->second < 60;
}

static wide moment_ns(const struct moment *m)
{
	static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	wide days = before[m->month - 1] + (m->month > 2 && leap(m->year)) + m->day - 1;

	for (long year = 1970; year < m->year; year++)
		days += 365 + leap(year);
	for (long year = 1970; year > m->year; year--)
		days -= 365 + leap(year - 1);
	return ((days * 24 + m->hour) * 3600 + m->minute * 60 + m->second - m->zone_s) *
	               1000000000 +
	       m->ns;
}

/* 1 and the value where the text is a time that exists and fits. */
static int pattern_reference(
	const char *pattern, const char *text, size_t len, long zone_s, int64_t *ret)
{
	struct moment m = {.zone_s = zone_s};
	wide ns;

	if (!matches(pattern, text, text + len, &m) || !moment_exists(&m))
		return 0;
	ns = moment_ns(&m);
	if (ns < INT64_MIN || ns > INT64_MAX)
		return 0;
	*ret = (int64_t)ns;
	return 1;
}

static int iso_reference(const char *text, size_t len, long zone_s, int64_t *ret)
{
	static const char *const dates[] = {"%Y-%m-%d", "%Y%m%d"};
	static const char *const marks[] = {"T", "t", " ", "-"};
	static const char *const times[] = {"%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f",
		"%H%M", "%H%M%S", "%H%M%S.%f", "%H%M%S,%f", "%H%M%S%f"};
	static const char *const zones[] = {"", "%z", " %z"};
	char pattern[64];

	for (int date = 0; date < 2; date++) {
		if (pattern_reference(dates[date], text, len, zone_s, ret))
			return 1;
		for (int i = 0; i < 4 * 9 * 3; i++) {
			if (i % 4 == 3 && date == 0)
				continue;
			snprintf(pattern, sizeof(pattern), "%s%s%s%s", dates[date], marks[i % 4],
				times[i / 4 % 9], zones[i / 36]);
			if (pattern_reference(pattern, text, len, zone_s, ret))
				return 1;
		}
	}
	return 0;
}

/* ---- times ------------------------------------------------------------------------------------ */

static int epoch_reference(const char *text, size_t len, int exp10, int64_t *ret)
{
	wide value;

	if (decimal_reference(text, len, exp10, &value) || value < INT64_MIN || value > INT64_MAX)
		return 0;
	*ret = (int64_t)value;
	return 1;
}

/* Whatever was accepted prints as a time that reads back. */
static void prints_back(int64_t ns)
{
	const struct stoup_timestamp_format iso = {.kind = STOUP_TIMESTAMP_ISO};
	char printed[STOUP_FORMAT_CAP];
	const char *why;
	int64_t again;

	MUST(stoup_format_time(ns, printed) == 30 && strlen(printed) == 30);
	MUST(stoup_timestamp_parse(&iso, printed, 30, &again, &why) == 0 && again == ns);
}

static void try_time(const struct stoup_timestamp_format *format, const char *text, size_t len)
{
	static const int unit_exp10[] = {-9, -6, -3, 0};
	int64_t ns = 7, expected = 0;
	const char *why = NULL;
	int rc = stoup_timestamp_parse(format, text, len, &ns, &why), fine = 0;

	MUST(rc == 0 ? 1 : ns == 7 && why && why[0]);
	MUST(rc == 0 || rc == -EINVAL || rc == -ERANGE || rc == -EDOM);
	if (format->kind == STOUP_TIMESTAMP_AUTO || format->kind == STOUP_TIMESTAMP_EPOCH) {
		/* One of its readings, and never another one. */
		for (int i = 0; rc == 0 && i < 4 && !fine; i++)
			fine = epoch_reference(text, len, unit_exp10[i], &expected) &&
			       expected == ns;
		if (rc == 0 && !fine && format->kind == STOUP_TIMESTAMP_AUTO)
			fine = iso_reference(text, len, format->zone_s, &expected) &&
			       expected == ns;
		MUST(rc != 0 || fine);
	} else {
		if (format->kind == STOUP_TIMESTAMP_ISO)
			fine = iso_reference(text, len, format->zone_s, &expected);
		else if (format->kind == STOUP_TIMESTAMP_PATTERN)
			fine = pattern_reference(
				format->pattern, text, len, format->zone_s, &expected);
		else
			fine = epoch_reference(
				text, len, unit_exp10[format->kind - STOUP_TIMESTAMP_S], &expected);
		MUST(fine == (rc == 0) && (!fine || expected == ns));
	}
	if (rc == 0)
		prints_back(ns);
}

static void try_pattern(struct fuzz_in *in, uint8_t pattern_len, int32_t zone_s)
{
	struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_AUTO, .zone_s = zone_s};
	char *pattern = fuzz_text(in, pattern_len);
	struct stoup_error err = {0};
	int rc = stoup_timestamp_format_parse(pattern, &format, &err);

	MUST(rc == 0 || (rc == -EINVAL && err.code == rc && err.text[0]));
	if (rc == 0)
		try_time(&format, (const char *)in->at, in->left);
	rc = stoup_timestamp_zone_parse(pattern, &zone_s, &err);
	MUST(rc == -EINVAL || (zone_s >= -18 * 3600 && zone_s <= 18 * 3600));
	free(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len < TEXT_CAP ? len : TEXT_CAP};
	uint8_t what = fuzz_u8(&in) % 5, choice = fuzz_u8(&in);
	struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_AUTO};

	if (what == 0) {
		try_decimal((const char *)in.at, in.left, choice % 37 - 18);
		return 0;
	}
	format.zone_s = (int16_t)fuzz_u16(&in) % (18 * 60) * 60;
	if (what == 1)
		format.kind = STOUP_TIMESTAMP_ISO;
	else if (what == 3)
		format.kind = STOUP_TIMESTAMP_EPOCH + choice % 5;
	if (what == 2)
		try_pattern(&in, choice % 72, format.zone_s);
	else
		try_time(&format, (const char *)in.at, in.left);
	return 0;
}
