/* SPDX-License-Identifier: Apache-2.0 */
/* timestamp.h - texts of points in time to nanoseconds since 1970-01-01T00:00:00Z, exactly.
 *
 *      2013-01-01 22:00:00.295000+00:00      iso      offset in the text, else the zone that is set
 *      2013-01-01T22:00:00Z, 2013-01-01      iso
 *      20200101 170000065                    iso      date, blank, HHMMSS and a fraction
 *      20200101-17:00:00.065, 20200101       iso      FIX
 *      1585699200.245                        s        epoch, an exact fraction down to 1 ns
 *      1585699200245000                      us       epoch; or by magnitude: epoch
 *      31/12/2020 17:00                      %d/%m/%Y %H:%M
 *
 * Invariant: the result is exact or an error; nothing is rounded and nothing goes through a double.
 * More than nine digits of a fraction are refused unless the rest is zeros. Days and times that do
 * not exist (30 February, 24:00, a leap second :60) are refused.
 *
 * The unit of an epoch by magnitude: under 10^11 seconds, under 10^14 milliseconds, under 10^17
 * microseconds, else nanoseconds; all four windows begin in 1973, and numbers under 10^8 are
 * refused.
 *
 * Concurrency: pure functions.
 * Limits: i64 nanoseconds reach from 1677-09-21 to 2262-04-11.
 */
#ifndef STOUP_TIMESTAMP_H
#define STOUP_TIMESTAMP_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

enum stoup_timestamp_kind {
	STOUP_TIMESTAMP_AUTO, /* digits: EPOCH, but for dates of 8 digits; else ISO */
	STOUP_TIMESTAMP_ISO,
	STOUP_TIMESTAMP_EPOCH, /* unit by magnitude */
	STOUP_TIMESTAMP_S,
	STOUP_TIMESTAMP_MS,
	STOUP_TIMESTAMP_US,
	STOUP_TIMESTAMP_NS,
	STOUP_TIMESTAMP_PATTERN,
};

#define STOUP_TIMESTAMP_PATTERN_CAP 64

struct stoup_timestamp_format {
	enum stoup_timestamp_kind kind;
	int32_t zone_s; /* seconds east of UTC, for texts without an offset of their own */
	char pattern[STOUP_TIMESTAMP_PATTERN_CAP];
};

/* Read a format's name (auto, iso, epoch, s, ms, us, ns) or a pattern, which has a '%': %Y (4
 * digits) %m %d %H %M %S (2 digits each), %f (1 to 9 digits of a fraction), %z (Z, +hh:mm, +hhmm,
 * +hh), %%, everything else as it stands. Sets kind and pattern, leaves zone_s. 0, or -EINVAL with
 * text. */
int stoup_timestamp_format_parse(
	const char *text, struct stoup_timestamp_format *ret, struct stoup_error *err);

/* Read an offset from UTC: UTC, Z, +hh:mm, -hhmm, +hh; at most 18 hours. 0, or -EINVAL with
 * text. */
int stoup_timestamp_zone_parse(const char *text, int32_t *ret_s, struct stoup_error *err);

/* Read the time in text[0..len), without blanks around it. 0; -EINVAL for a text that is no such
 * time or does not exist, -ERANGE outside the i64, -EDOM for more than nine digits of a fraction.
 * `*ret_why` is then a static text that follows the quoted value ("has no day 30 in that
 * month"). */
int stoup_timestamp_parse(const struct stoup_timestamp_format *format, const char *text, size_t len,
	int64_t *ret_ns, const char **ret_why);

/* Days from 1970-01-01 to a date of the proleptic Gregorian calendar; the date must be valid. */
int64_t stoup_timestamp_days(int64_t year, unsigned month, unsigned day);

#endif
