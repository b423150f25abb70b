/* SPDX-License-Identifier: Apache-2.0 */
/* new_york.h - midnights of New York in UTC, by the rules of the law instead of the machine's tables.
 *
 *      since 2007     second Sunday of March      to first Sunday of November     02:00 local
 *      1987 to 2006   first Sunday of April       to last Sunday of October       02:00 local
 *
 *      midnight --- 24 h (23 h in spring, 25 h in autumn) --- next midnight
 *
 * A feed that counts nanoseconds since midnight counts time that has passed, so that its UTC time is the
 * midnight plus the count on every day, those of a change included.
 *
 * Concurrency: pure functions.
 * Limits: years 1987 to 2262; before, the rules changed year by year.
 */
#ifndef STOUP_PRODUCER_NEW_YORK_H
#define STOUP_PRODUCER_NEW_YORK_H

#include <stdint.h>

/* The midnight (ns since the epoch) with which a day begins there, and the length of the day in ns. 0,
 * -EINVAL for a date that does not exist, -ERANGE for a year outside the limits. */
int stoup_new_york_day(
	unsigned year, unsigned month, unsigned day, int64_t *ret_midnight_ns, int64_t *ret_len_ns);

/* The same for a day that is counted since 1970-01-01. 0 or -ERANGE. */
int stoup_new_york_midnight(int64_t day, int64_t *ret_midnight_ns);

/* Read a date: 20190130 or 2019-01-30. 0 or -EINVAL (also for a day that does not exist). */
int stoup_date_parse(const char *text, unsigned *ret_year, unsigned *ret_month, unsigned *ret_day);

/* Days of a month, 1 to 12. */
unsigned stoup_month_days(unsigned year, unsigned month);

#endif
