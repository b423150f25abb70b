/* SPDX-License-Identifier: Apache-2.0 */
/* format.c - values of records to text (see format.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/format.h"

#define SECOND_NS  1000000000u
#define DAY_S      86400
#define EPOCH_DAY  719162 /* days from 0001-01-01 to 1970-01-01 */
#define DIGITS_CAP 20     /* of a u64 */
#define TIME_LEN   30

#define YEAR_DAYS     365
#define FOUR_DAYS     1461   /* 4 years */
#define CENTURY_DAYS  36524  /* 100 years whose last is no leap year */
#define CALENDAR_DAYS 146097 /* 400 years: the calendar repeats */

/* ---- decimals -------------------------------------------------------------------------------- */

/* Decimal digits of `value`, right-aligned in a buffer that ends at `end`; returns the first. */
static char *digits_before(uint64_t value, char *end)
{
	do {
		*--end = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return end;
}

static size_t format_magnitude(uint64_t value, int exp10, char *dst)
{
	char digits[DIGITS_CAP + 1];
	char *end = digits + DIGITS_CAP;
	char *at = digits_before(value, end);
	char *out = dst;
	int len, whole;

	while (value && exp10 < 0 && end[-1] == '0') {
		end--;
		exp10++;
	}
	len = (int)(end - at);
	if (value == 0)
		exp10 = 0;
	whole = exp10 < 0 ? len + exp10 : len; /* digits in front of the point, maybe negative */
	if (whole <= 0)
		*out++ = '0';
	for (int i = 0; i < whole; i++)
		*out++ = *at++;
	if (exp10 < 0)
		*out++ = '.';
	for (int i = whole; i < 0; i++)
		*out++ = '0';
	while (at < end)
		*out++ = *at++;
	for (int i = 0; i < exp10; i++)
		*out++ = '0';
	*out = '\0';
	return (size_t)(out - dst);
}

size_t stoup_format_decimal(int64_t integer, int exp10, char *dst)
{
	if (integer >= 0)
		return format_magnitude((uint64_t)integer, exp10, dst);
	dst[0] = '-';
	return 1 + format_magnitude(-(uint64_t)integer, exp10, dst + 1);
}

size_t stoup_format_decimal_u64(uint64_t integer, int exp10, char *dst)
{
	return format_magnitude(integer, exp10, dst);
}

/* ---- times ----------------------------------------------------------------------------------- */

static void put_digits(char *dst, unsigned value, int cnt)
{
	for (int i = cnt - 1; i >= 0; i--) {
		dst[i] = (char)('0' + value % 10);
		value /= 10;
	}
}

/* The date `day` days after 0001-01-01, as YYYY-MM-DD. */
static void put_date(char *dst, unsigned day)
{
	static const uint16_t before[12] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	unsigned year, century, rest, month = 12, leap;

	year = 1 + day / CALENDAR_DAYS * 400;
	rest = day % CALENDAR_DAYS;
	century = rest / CENTURY_DAYS < 3 ? rest / CENTURY_DAYS : 3;
	rest -= century * CENTURY_DAYS;
	year += century * 100 + rest / FOUR_DAYS * 4;
	rest %= FOUR_DAYS;
	leap = rest / YEAR_DAYS >= 3; /* the last of four years, leap unless it ends a century */
	if (leap) {
		year += 3;
		rest -= 3 * YEAR_DAYS;
		leap = year % 100 != 0 || year % 400 == 0;
	} else {
		year += rest / YEAR_DAYS;
		rest %= YEAR_DAYS;
	}
	while (rest < before[month - 1] + (leap && month > 2 ? 1u : 0u))
		month--;
	rest -= before[month - 1] + (leap && month > 2 ? 1u : 0u);
	put_digits(dst, year, 4);
	dst[4] = '-';
	put_digits(dst + 5, month, 2);
	dst[7] = '-';
	put_digits(dst + 8, rest + 1, 2);
}

static size_t format_clock(int64_t second_cnt, unsigned ns, char *dst)
{
	int64_t day = second_cnt / DAY_S;
	int64_t rest = second_cnt % DAY_S;
	unsigned second;

	if (rest < 0) {
		rest += DAY_S;
		day--;
	}
	second = (unsigned)rest;
	put_date(dst, (unsigned)(day + EPOCH_DAY));
	dst[10] = 'T';
	put_digits(dst + 11, second / 3600, 2);
	dst[13] = ':';
	put_digits(dst + 14, second / 60 % 60, 2);
	dst[16] = ':';
	put_digits(dst + 17, second % 60, 2);
	dst[19] = '.';
	put_digits(dst + 20, ns, 9);
	dst[29] = 'Z';
	dst[TIME_LEN] = '\0';
	return TIME_LEN;
}

size_t stoup_format_time(int64_t ns, char *dst)
{
	int64_t second_cnt = ns / SECOND_NS;
	int64_t rest = ns % SECOND_NS;

	if (rest < 0) {
		rest += SECOND_NS;
		second_cnt--;
	}
	return format_clock(second_cnt, (unsigned)rest, dst);
}

size_t stoup_format_time_u64(uint64_t ns, char *dst)
{
	return format_clock((int64_t)(ns / SECOND_NS), (unsigned)(ns % SECOND_NS), dst);
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Copy a printed float; whatever the locale has for a decimal point becomes '.'. */
static size_t copy_number(const char *src, char *dst)
{
	char *out = dst;

	for (; *src; src++) {
		if (strchr("0123456789+-einfa", *src))
			*out++ = *src;
		else if (out == dst || out[-1] != '.')
			*out++ = '.';
	}
	*out = '\0';
	return (size_t)(out - dst);
}

/* 15 digits always survive text -> double -> text, 17 always tell two doubles apart. */
size_t stoup_format_double(double value, char *dst)
{
	char text[STOUP_FORMAT_CAP];

	for (int digits = 15; digits <= 17; digits++) {
		double again;

		(void)snprintf(text, sizeof text, "%.*g", digits, value);
		again = strtod(text, NULL);
		if (memcmp(&again, &value, sizeof value) == 0)
			break;
	}
	return copy_number(text, dst);
}

/* The same for a float: 6 and 9 digits. */
static size_t format_float(float value, char *dst)
{
	char text[STOUP_FORMAT_CAP];

	for (int digits = 6; digits <= 9; digits++) {
		float again;

		(void)snprintf(text, sizeof text, "%.*g", digits, (double)value);
		again = strtof(text, NULL);
		if (memcmp(&again, &value, sizeof value) == 0)
			break;
	}
	return copy_number(text, dst);
}

/* ---- fields ---------------------------------------------------------------------------------- */

uint64_t stoup_field_bits(const struct stoup_field *field, const void *record)
{
	const uint8_t *bytes = (const uint8_t *)record + field->off;
	uint64_t bits = 0;

	memcpy(&bits, bytes, stoup_type_len(field->type));
	return bits;
}

size_t stoup_format_cap(const struct stoup_field *field)
{
	size_t cap = field->type == STOUP_TYPE_CHAR    ? 4 * (size_t)field->cnt + 1
	             : field->type == STOUP_TYPE_BYTES ? 2 * (size_t)field->cnt + 1
	                                               : 0;

	return cap > STOUP_FORMAT_CAP ? cap : STOUP_FORMAT_CAP;
}

int stoup_field_is_null(const struct stoup_field *field, const void *record)
{
	return (field->flags & STOUP_FIELD_NULL) &&
	       stoup_field_bits(field, record) == field->null_bits;
}

static int64_t format_text(
	const struct stoup_field *field, const uint8_t *bytes, char *dst, size_t cap)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = 0;

	for (uint32_t i = 0; i < field->cnt && bytes[i]; i++) {
		int plain = bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '\\';

		if (cap - len < (plain ? 2u : 5u))
			return -ENOSPC;
		if (plain) {
			dst[len++] = (char)bytes[i];
			continue;
		}
		dst[len++] = '\\';
		dst[len++] = 'x';
		dst[len++] = hex[bytes[i] >> 4];
		dst[len++] = hex[bytes[i] & 15];
	}
	dst[len] = '\0';
	return (int64_t)len;
}

static int64_t format_bytes(
	const struct stoup_field *field, const uint8_t *bytes, char *dst, size_t cap)
{
	static const char hex[] = "0123456789abcdef";

	if (cap < 2 * (size_t)field->cnt + 1)
		return -ENOSPC;
	for (uint32_t i = 0; i < field->cnt; i++) {
		dst[2 * i] = hex[bytes[i] >> 4];
		dst[2 * i + 1] = hex[bytes[i] & 15];
	}
	dst[2 * field->cnt] = '\0';
	return 2 * (int64_t)field->cnt;
}

static size_t format_integer(const struct stoup_field *field, uint64_t bits, char *dst)
{
	int is_time = field->flags & STOUP_FIELD_TIME;
	int64_t value = (int64_t)bits;

	switch (field->type) {
	case STOUP_TYPE_I8:
		value = (int8_t)bits;
		break;
	case STOUP_TYPE_I16:
		value = (int16_t)bits;
		break;
	case STOUP_TYPE_I32:
		value = (int32_t)bits;
		break;
	case STOUP_TYPE_I64:
		break;
	default:
		return is_time ? stoup_format_time_u64(bits, dst)
		               : stoup_format_decimal_u64(bits, field->exp10, dst);
	}
	return is_time ? stoup_format_time(value, dst)
	               : stoup_format_decimal(value, field->exp10, dst);
}

int64_t stoup_format_field(
	const struct stoup_field *field, const void *record, char *dst, size_t cap)
{
	const uint8_t *bytes = (const uint8_t *)record + field->off;
	double f64;
	float f32;

	if (cap == 0)
		return -ENOSPC;
	if (stoup_field_is_null(field, record)) {
		dst[0] = '\0';
		return 0;
	}
	if (field->type == STOUP_TYPE_CHAR)
		return format_text(field, bytes, dst, cap);
	if (field->type == STOUP_TYPE_BYTES)
		return format_bytes(field, bytes, dst, cap);
	if (cap < STOUP_FORMAT_CAP)
		return -ENOSPC;
	if (field->type == STOUP_TYPE_F64) {
		memcpy(&f64, bytes, sizeof f64);
		return (int64_t)stoup_format_double(f64, dst);
	}
	if (field->type == STOUP_TYPE_F32) {
		memcpy(&f32, bytes, sizeof f32);
		return (int64_t)format_float(f32, dst);
	}
	return (int64_t)format_integer(field, stoup_field_bits(field, record), dst);
}
