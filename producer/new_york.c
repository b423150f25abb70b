/* SPDX-License-Identifier: Apache-2.0 */
/* new_york.c - see new_york.h. */
#include "producer/new_york.h"

#include <errno.h>
#include <string.h>
#include "shm/timestamp.h"

#define HOUR_NS    INT64_C(3600000000000)
#define DAY_NS     (24 * HOUR_NS)
#define FIRST_YEAR 1987u
#define LAST_YEAR  2261u

#define MARCH    3u
#define APRIL    4u
#define OCTOBER  10u
#define NOVEMBER 11u

unsigned stoup_month_days(unsigned year, unsigned month)
{
	static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	unsigned leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 ? leap : 0);
}

/* The day number of the n-th Sunday of a month (n from 1), or of the last one (n = 0). */
static int64_t sunday(unsigned year, unsigned month, unsigned n)
{
	unsigned of_month = n > 0 ? 7 * n : stoup_month_days(year, month);
	int64_t day = stoup_timestamp_days(year, month, of_month);

	/* 1970-01-01 was a Thursday; the Sunday on or before that day of the month. */
	return day - (day + 4) % 7;
}

/* Clocks change at 02:00: the midnight of that day still has the old offset. */
static int rule(unsigned year, int64_t date, int64_t *ret_midnight_ns, int64_t *ret_len_ns)
{
	int64_t spring, autumn;

	if (year < FIRST_YEAR || year > LAST_YEAR)
		return -ERANGE;
	spring = year >= 2007 ? sunday(year, MARCH, 2) : sunday(year, APRIL, 1);
	autumn = year >= 2007 ? sunday(year, NOVEMBER, 1) : sunday(year, OCTOBER, 0);
	*ret_midnight_ns = date * DAY_NS + (date > spring && date <= autumn ? 4 : 5) * HOUR_NS;
	*ret_len_ns = DAY_NS - (date == spring ? HOUR_NS : 0) + (date == autumn ? HOUR_NS : 0);
	return 0;
}

int stoup_new_york_day(
	unsigned year, unsigned month, unsigned day, int64_t *ret_midnight_ns, int64_t *ret_len_ns)
{
	if (month < 1 || month > 12 || day < 1 || day > stoup_month_days(year, month))
		return -EINVAL;
	return rule(year, stoup_timestamp_days(year, month, day), ret_midnight_ns, ret_len_ns);
}

int stoup_new_york_midnight(int64_t day, int64_t *ret_midnight_ns)
{
	unsigned year = FIRST_YEAR;
	int64_t len_ns;

	if (day < stoup_timestamp_days(FIRST_YEAR, 1, 1))
		return -ERANGE;
	while (year <= LAST_YEAR && stoup_timestamp_days(year + 1, 1, 1) <= day)
		year++;
	return rule(year, day, ret_midnight_ns, &len_ns);
}

/* `len` digits, or -1. */
static int number(const char *text, size_t len)
{
	int value = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

int stoup_date_parse(const char *text, unsigned *ret_year, unsigned *ret_month, unsigned *ret_day)
{
	size_t len = strlen(text), dash = len == 10;
	int year, month, day;

	if (len != 8 + 2 * dash || (dash && (text[4] != '-' || text[7] != '-')))
		return -EINVAL;
	year = number(text, 4);
	month = number(text + 4 + dash, 2);
	day = number(text + 6 + 2 * dash, 2);
	if (year < 0 || month < 1 || month > 12 || day < 1 ||
		(unsigned)day > stoup_month_days((unsigned)year, (unsigned)month))
		return -EINVAL;
	*ret_year = (unsigned)year;
	*ret_month = (unsigned)month;
	*ret_day = (unsigned)day;
	return 0;
}
