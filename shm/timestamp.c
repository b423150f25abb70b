/* SPDX-License-Identifier: Apache-2.0 */
/* timestamp.c - texts of points in time to nanoseconds (see timestamp.h).
 *
 * Each reader fills a `struct clock` from a cursor; finish() alone checks that the date and the
 * time exist and does the arithmetic, so that no format can skip a check.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shm/decimal.h"
#include "shm/timestamp.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_S     86400
#define ZONE_CAP_S                                                                                 \
	(18 * 3600) /* the farthest zone in use is +14:00; 18 hours is ISO libraries' bound */
#define FRACTION_LEN  9
#define EPOCH_DAY     719162 /* days from 0001-01-01 to 1970-01-01 */
#define EPOCH_MIN_LEN 9      /* digits of 10^8, the least number whose unit can be told */

static const char not_iso[] = "is not a time such as 2024-01-31T09:30:00.5Z";
static const char not_pattern[] = "does not match the time format";
static const char not_epoch[] = "is not a number of an epoch";
static const char out_of_range[] = "is outside of 1677-09-21 to 2262-04-11";
static const char too_fine[] = "has digits below one nanosecond";

/* What the text says; finish() makes nanoseconds of it. */
struct clock {
	unsigned year, month, day, hour, minute, second, ns;
	int32_t zone_s;
};

struct cursor {
	const char *at, *end;
};

/* ---- calendar -------------------------------------------------------------------------------- */

static const uint16_t days_before[13] = {
	0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};

static int is_leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned month_days(unsigned year, unsigned month)
{
	return (unsigned)(days_before[month] - days_before[month - 1]) +
	       (month == 2 && is_leap(year));
}

int64_t stoup_timestamp_days(int64_t year, unsigned month, unsigned day)
{
	int64_t before = year - 1;

	return before * 365 + before / 4 - before / 100 + before / 400 + days_before[month - 1] +
	       (month > 2 && is_leap(year)) + day - 1 - EPOCH_DAY;
}

static int finish(const struct clock *clock, int64_t *ret_ns, const char **ret_why)
{
	int64_t second_cnt, ns, rest = clock->ns;

	*ret_why = "names a date that does not exist";
	if (clock->year == 0 || clock->month < 1 || clock->month > 12 || clock->day < 1 ||
		clock->day > month_days(clock->year, clock->month))
		return -EINVAL;
	*ret_why = "has a leap second (:60), which nanoseconds since 1970 cannot express";
	if (clock->second == 60)
		return -EINVAL;
	*ret_why = "names a time of day that does not exist";
	if (clock->hour > 23 || clock->minute > 59 || clock->second > 59)
		return -EINVAL;
	second_cnt = stoup_timestamp_days(clock->year, clock->month, clock->day) * DAY_S +
	             (int64_t)(clock->hour * 3600 + clock->minute * 60 + clock->second) -
	             clock->zone_s;
	/* The first second of the range begins before it: count down from its end instead. */
	if (second_cnt < 0 && rest > 0) {
		second_cnt++;
		rest -= SECOND_NS;
	}
	*ret_why = out_of_range;
	if (__builtin_mul_overflow(second_cnt, SECOND_NS, &ns) ||
		__builtin_add_overflow(ns, rest, &ns))
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int digits(struct cursor *in, unsigned cnt, unsigned *ret)
{
	unsigned value = 0;

	if (in->end - in->at < (ptrdiff_t)cnt)
		return -EINVAL;
	for (unsigned i = 0; i < cnt; i++) {
		if (!is_digit(in->at[i]))
			return -EINVAL;
		value = value * 10 + (unsigned)(in->at[i] - '0');
	}
	in->at += cnt;
	*ret = value;
	return 0;
}

static int accept(struct cursor *in, char c)
{
	if (in->at == in->end || *in->at != c)
		return 0;
	in->at++;
	return 1;
}

/* One digit or more of a fraction; -EDOM for anything but zeros behind the ninth. */
static int fraction(struct cursor *in, unsigned *ret_ns)
{
	unsigned value = 0;
	int cnt = 0;

	if (in->at == in->end || !is_digit(*in->at))
		return -EINVAL;
	for (; in->at < in->end && is_digit(*in->at); in->at++, cnt++) {
		if (cnt < FRACTION_LEN)
			value = value * 10 + (unsigned)(*in->at - '0');
		else if (*in->at != '0')
			return -EDOM;
	}
	for (; cnt < FRACTION_LEN; cnt++)
		value *= 10;
	*ret_ns = value;
	return 0;
}

/* Z, UTC, +hh, +hhmm, +hh:mm. */
static int zone(struct cursor *in, int32_t *ret_s)
{
	unsigned hours, minutes = 0;
	int negative;

	if (accept(in, 'Z') || accept(in, 'z')) {
		*ret_s = 0;
		return 0;
	}
	if (in->end - in->at >= 3 && memcmp(in->at, "UTC", 3) == 0) {
		in->at += 3;
		*ret_s = 0;
		return 0;
	}
	negative = accept(in, '-');
	if (!negative && !accept(in, '+'))
		return -EINVAL;
	if (digits(in, 2, &hours))
		return -EINVAL;
	if (accept(in, ':') || (in->at < in->end && is_digit(*in->at))) {
		if (digits(in, 2, &minutes))
			return -EINVAL;
	}
	if (minutes > 59 || hours * 3600 + minutes * 60 > ZONE_CAP_S)
		return -EINVAL;
	*ret_s = (int32_t)(hours * 3600 + minutes * 60);
	if (negative)
		*ret_s = -*ret_s;
	return 0;
}

/* ---- ISO 8601, FIX and the compact form
 * ------------------------------------------------------- */

/* HH:MM[:SS[.f]] or HHMM[SS[[.]f]] */
static int iso_time(struct cursor *in, struct clock *clock)
{
	int colons;

	if (digits(in, 2, &clock->hour))
		return -EINVAL;
	colons = accept(in, ':');
	if (digits(in, 2, &clock->minute))
		return -EINVAL;
	if (colons ? !accept(in, ':') : (in->at == in->end || !is_digit(*in->at)))
		return 0;
	if (digits(in, 2, &clock->second))
		return -EINVAL;
	if (accept(in, '.') || accept(in, ','))
		return fraction(in, &clock->ns);
	if (!colons && in->at < in->end && is_digit(*in->at))
		return fraction(in, &clock->ns);
	return 0;
}

static int iso(struct cursor in, int32_t zone_s, int64_t *ret_ns, const char **ret_why)
{
	struct clock clock = {.zone_s = zone_s};
	int dashes, rc;

	*ret_why = not_iso;
	if (digits(&in, 4, &clock.year))
		return -EINVAL;
	dashes = accept(&in, '-');
	if (digits(&in, 2, &clock.month) || (dashes && !accept(&in, '-')) ||
		digits(&in, 2, &clock.day))
		return -EINVAL;
	if (in.at == in.end)
		return finish(&clock, ret_ns, ret_why);
	if (!accept(&in, 'T') && !accept(&in, 't') && !accept(&in, ' ') &&
		!(!dashes && accept(&in, '-')))
		return -EINVAL;
	rc = iso_time(&in, &clock);
	if (rc == -EDOM)
		*ret_why = too_fine;
	if (rc)
		return rc;
	if (in.at < in.end) {
		(void)accept(&in, ' ');
		if (zone(&in, &clock.zone_s) || in.at != in.end)
			return -EINVAL;
	}
	return finish(&clock, ret_ns, ret_why);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static int epoch(struct cursor in, int exp10, int64_t *ret_ns, const char **ret_why)
{
	int rc = stoup_decimal_parse(in.at, (size_t)(in.end - in.at), exp10, ret_ns);

	*ret_why = rc == -EDOM ? too_fine : rc == -ERANGE ? out_of_range : not_epoch;
	return rc;
}

/* Whole digits in front of a point or the end; 0 where something else stands. */
static size_t whole_digits(struct cursor in)
{
	const char *at = in.at;

	while (at < in.end && is_digit(*at))
		at++;
	if (at < in.end && *at != '.')
		return 0;
	return (size_t)(at - in.at);
}

static int epoch_by_magnitude(struct cursor in, int64_t *ret_ns, const char **ret_why)
{
	size_t len;

	while (in.end - in.at > 1 && in.at[0] == '0' && is_digit(in.at[1]))
		in.at++;
	len = whole_digits(in);
	*ret_why = "is not an epoch whose unit can be told; set the time format to s, ms, us or ns";
	if (len < EPOCH_MIN_LEN)
		return -EINVAL;
	return epoch(in, len <= 11 ? -9 : len <= 14 ? -6 : len <= 17 ? -3 : 0, ret_ns, ret_why);
}

/* 202401310930: twelve digits that are a date and a time, and milliseconds of 1976 as well. */
static int is_ambiguous(struct cursor in)
{
	struct clock clock = {0};
	const char *why;
	int64_t ns;

	return in.end - in.at == 12 && !digits(&in, 4, &clock.year) &&
	       !digits(&in, 2, &clock.month) && !digits(&in, 2, &clock.day) &&
	       !digits(&in, 2, &clock.hour) && !digits(&in, 2, &clock.minute) &&
	       clock.year >= 1970 && clock.year < 2100 && !finish(&clock, &ns, &why);
}

static int by_shape(struct cursor in, int32_t zone_s, int64_t *ret_ns, const char **ret_why)
{
	size_t len = whole_digits(in);

	if (len == 0 || (len == 8 && in.end - in.at == 8))
		return iso(in, zone_s, ret_ns, ret_why);
	*ret_why = "may be a date and time or an epoch; set the time format to %Y%m%d%H%M or ms";
	if (is_ambiguous(in))
		return -EINVAL;
	return epoch_by_magnitude(in, ret_ns, ret_why);
}

/* ---- patterns -------------------------------------------------------------------------------- */

static int pattern_item(struct cursor *in, char item, struct clock *clock)
{
	switch (item) {
	case 'Y':
		return digits(in, 4, &clock->year);
	case 'm':
		return digits(in, 2, &clock->month);
	case 'd':
		return digits(in, 2, &clock->day);
	case 'H':
		return digits(in, 2, &clock->hour);
	case 'M':
		return digits(in, 2, &clock->minute);
	case 'S':
		return digits(in, 2, &clock->second);
	case 'f':
		return fraction(in, &clock->ns);
	case 'z':
		return zone(in, &clock->zone_s);
	case '%':
		return accept(in, '%') ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static int pattern(const struct stoup_timestamp_format *format, struct cursor in, int64_t *ret_ns,
	const char **ret_why)
{
	struct clock clock = {.zone_s = format->zone_s};

	*ret_why = not_pattern;
	for (const char *at = format->pattern; *at; at++) {
		int rc;

		if (*at == '%')
			rc = pattern_item(&in, *++at, &clock);
		else
			rc = accept(&in, *at) ? 0 : -EINVAL;
		if (rc == -EDOM)
			*ret_why = too_fine;
		if (rc)
			return rc;
	}
	if (in.at != in.end)
		return -EINVAL;
	return finish(&clock, ret_ns, ret_why);
}

/* ---- interface ------------------------------------------------------------------------------- */

int stoup_timestamp_parse(const struct stoup_timestamp_format *format, const char *text, size_t len,
	int64_t *ret_ns, const char **ret_why)
{
	struct cursor in = {text, text + len};

	switch (format->kind) {
	case STOUP_TIMESTAMP_AUTO:
		return by_shape(in, format->zone_s, ret_ns, ret_why);
	case STOUP_TIMESTAMP_ISO:
		return iso(in, format->zone_s, ret_ns, ret_why);
	case STOUP_TIMESTAMP_EPOCH:
		return epoch_by_magnitude(in, ret_ns, ret_why);
	case STOUP_TIMESTAMP_S:
		return epoch(in, -9, ret_ns, ret_why);
	case STOUP_TIMESTAMP_MS:
		return epoch(in, -6, ret_ns, ret_why);
	case STOUP_TIMESTAMP_US:
		return epoch(in, -3, ret_ns, ret_why);
	case STOUP_TIMESTAMP_NS:
		return epoch(in, 0, ret_ns, ret_why);
	case STOUP_TIMESTAMP_PATTERN:
		return pattern(format, in, ret_ns, ret_why);
	}
	*ret_why = not_pattern;
	return -EINVAL;
}

/* A pattern names year, month and day once each, and only items that pattern_item() knows. */
static int pattern_check(const char *text, struct stoup_error *err)
{
	static const char items[] = "YmdHMSfz";
	unsigned seen = 0;

	for (const char *at = text; *at; at++) {
		const char *item;

		if (*at != '%' || *++at == '%')
			continue;
		item = *at ? strchr(items, *at) : NULL;
		if (!item)
			return stoup_error_set(err, -EINVAL,
				"time format \"%s\": %%%c is not one of %%Y %%m %%d %%H %%M %%S "
				"%%f %%z",
				text, *at ? *at : ' ');
		if (seen & 1u << (item - items))
			return stoup_error_set(
				err, -EINVAL, "time format \"%s\" has %%%c twice", text, *at);
		seen |= 1u << (item - items);
	}
	if ((seen & 7) != 7)
		return stoup_error_set(err, -EINVAL,
			"time format \"%s\" lacks %%Y, %%m or %%d: the date must be in the text",
			text);
	return 0;
}

int stoup_timestamp_format_parse(
	const char *text, struct stoup_timestamp_format *ret, struct stoup_error *err)
{
	static const char *const names[] = {"auto", "iso", "epoch", "s", "ms", "us", "ns"};
	int rc;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(text, names[i]) == 0) {
			ret->kind = (enum stoup_timestamp_kind)i;
			ret->pattern[0] = '\0';
			return 0;
		}
	}
	if (!strchr(text, '%'))
		return stoup_error_set(err, -EINVAL,
			"time format \"%s\" is not auto, iso, epoch, s, ms, us, ns or a pattern "
			"such as "
			"%%Y-%%m-%%d %%H:%%M:%%S.%%f",
			text);
	if (strlen(text) >= sizeof ret->pattern)
		return stoup_error_set(err, -EINVAL, "time format of %zu characters; at most %d",
			strlen(text), STOUP_TIMESTAMP_PATTERN_CAP - 1);
	rc = pattern_check(text, err);
	if (rc)
		return rc;
	ret->kind = STOUP_TIMESTAMP_PATTERN;
	(void)snprintf(ret->pattern, sizeof ret->pattern, "%s", text);
	return 0;
}

int stoup_timestamp_zone_parse(const char *text, int32_t *ret_s, struct stoup_error *err)
{
	struct cursor in = {text, text + strlen(text)};
	int32_t zone_s;

	if (zone(&in, &zone_s) || in.at != in.end)
		return stoup_error_set(err, -EINVAL,
			"time zone \"%s\" is not an offset from UTC such as UTC, Z, +01:00 or "
			"-0530",
			text);
	*ret_s = zone_s;
	return 0;
}
