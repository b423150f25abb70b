/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.c - decimal texts to integers of a fixed scale, and those to doubles (see decimal.h).
 *
 * A text is read as mantissa * 10^exponent. Up to 18 digits the mantissa simply accumulates; longer
 * texts go digit by digit with trailing zeros held back, so that only significant digits count
 * against the 64 bits. The last step shifts the decimal point to the wanted scale.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "shm/decimal.h"

#define FAST_DIGITS 18 /* 10^18 - 1 fits 64 bits whatever the digits */
/* Saturates: no mantissa can make up for it, since a text has at most half as many digits. */
#define EXPONENT_CAP (INT32_MAX / 2)

struct decimal {
	uint64_t mantissa;
	int exponent;
	int negative;
	int too_long; /* significant digits beyond 64 bits */
};

static const uint64_t powers[20] = {
	UINT64_C(1),
	UINT64_C(10),
	UINT64_C(100),
	UINT64_C(1000),
	UINT64_C(10000),
	UINT64_C(100000),
	UINT64_C(1000000),
	UINT64_C(10000000),
	UINT64_C(100000000),
	UINT64_C(1000000000),
	UINT64_C(10000000000),
	UINT64_C(100000000000),
	UINT64_C(1000000000000),
	UINT64_C(10000000000000),
	UINT64_C(100000000000000),
	UINT64_C(1000000000000000),
	UINT64_C(10000000000000000),
	UINT64_C(100000000000000000),
	UINT64_C(1000000000000000000),
	UINT64_C(10000000000000000000),
};

static unsigned digit_of(char c)
{
	return (unsigned)(unsigned char)c - '0';
}

/* Read the significant digits of [text, end) anew, which is known to be digits and one point at
 * most: zeros wait in `zero_cnt` until a digit behind them shows that they are not trailing. */
static void long_mantissa(const char *text, const char *end, struct decimal *ret)
{
	uint64_t mantissa = 0;
	int zero_cnt = 0;

	ret->too_long = 0;
	for (const char *at = text; at < end; at++) {
		unsigned digit = digit_of(*at);

		if (*at == '.')
			continue;
		if (digit == 0) {
			zero_cnt += mantissa != 0;
			continue;
		}
		for (int i = 0; i <= zero_cnt && !ret->too_long; i++)
			ret->too_long = __builtin_mul_overflow(mantissa, 10u, &mantissa);
		if (!ret->too_long)
			ret->too_long = __builtin_add_overflow(mantissa, digit, &mantissa);
		if (ret->too_long)
			mantissa = 1; /* not zero: zeros behind it are trailing ones */
		zero_cnt = 0;
	}
	ret->mantissa = mantissa;
	ret->exponent += zero_cnt;
}

static int parse_exponent(const char *at, const char *end, int *ret)
{
	int negative = 0;
	int64_t value = 0;

	if (at < end && (*at == '+' || *at == '-'))
		negative = *at++ == '-';
	if (at == end)
		return -EINVAL;
	for (; at < end; at++) {
		if (digit_of(*at) > 9)
			return -EINVAL;
		value = value * 10 + digit_of(*at);
		if (value > EXPONENT_CAP)
			value = EXPONENT_CAP;
	}
	*ret = negative ? -(int)value : (int)value;
	return 0;
}

static int parse(const char *text, size_t len, struct decimal *ret)
{
	const char *at = text, *end = text + len, *digits;
	struct decimal value = {0};
	const char *point = NULL;
	int exponent = 0, rc;

	if (at < end && (*at == '+' || *at == '-'))
		value.negative = *at++ == '-';
	digits = at;
	for (; at < end; at++) {
		unsigned digit = digit_of(*at);

		if (digit <= 9)
			value.mantissa = value.mantissa * 10 + digit;
		else if (*at == '.' && !point)
			point = at;
		else
			break;
	}
	if (at - digits - (point != NULL) < 1)
		return -EINVAL;
	if (at - digits > EXPONENT_CAP / 2)
		return -ERANGE;
	if (point)
		value.exponent = -(int)(at - point - 1);
	if (at - digits - (point != NULL) > FAST_DIGITS)
		long_mantissa(digits, at, &value);
	if (at < end) {
		if (*at != 'e' && *at != 'E')
			return -EINVAL;
		rc = parse_exponent(at + 1, end, &exponent);
		if (rc)
			return rc;
		value.exponent += exponent;
	}
	*ret = value;
	return 0;
}

/* Shift the point to `exp10`; the sign is left to the caller. */
static int magnitude(const struct decimal *value, int exp10, uint64_t *ret)
{
	int shift = value->exponent - exp10;

	if (value->mantissa == 0) {
		*ret = 0;
		return 0;
	}
	if (value->too_long)
		return shift < 0 ? -EDOM : -ERANGE;
	if (shift >= 0) {
		if (shift > 19 || __builtin_mul_overflow(value->mantissa, powers[shift], ret))
			return -ERANGE;
		return 0;
	}
	if (shift < -19 || value->mantissa % powers[-shift])
		return -EDOM;
	*ret = value->mantissa / powers[-shift];
	return 0;
}

int stoup_decimal_parse(const char *text, size_t len, int exp10, int64_t *ret)
{
	struct decimal value;
	uint64_t abs_value = 0;
	int rc = parse(text, len, &value);

	if (!rc)
		rc = magnitude(&value, exp10, &abs_value);
	if (rc)
		return rc;
	if (abs_value > (uint64_t)INT64_MAX + (uint64_t)value.negative)
		return -ERANGE;
	/* Negating in 64 unsigned bits reaches INT64_MIN as well. */
	*ret = (int64_t)(value.negative ? -abs_value : abs_value);
	return 0;
}

int stoup_decimal_parse_u64(const char *text, size_t len, int exp10, uint64_t *ret)
{
	struct decimal value;
	uint64_t abs_value = 0;
	int rc = parse(text, len, &value);

	if (!rc)
		rc = magnitude(&value, exp10, &abs_value);
	if (rc)
		return rc;
	if (value.negative && abs_value)
		return -ERANGE;
	*ret = abs_value;
	return 0;
}

/* ---- to a floor ------------------------------------------------------------------------------- */

/* The digits again, one by one, since `parse` keeps 64 bits of them: those above 10^exp10 make the number, the others
 * only say whether something is left. `exponent` is that of the last digit. */
int stoup_decimal_floor(const char *text, size_t len, int exp10, stoup_wide *ret, int *ret_exact)
{
	const char *at = text, *end = text + len;
	int64_t whole = 0; /* digits of the number, negative where zeros come before the first */
	stoup_wide value = 0;
	struct decimal parts;
	int rest = 0, rc = parse(text, len, &parts), exponent = 0;

	if (rc == -ERANGE) /* longer than any filter or file has them */
		return -EINVAL;
	if (rc)
		return rc;
	at += *at == '+' || *at == '-';
	for (const char *digit = at; digit < end && *digit != '.' && digit_of(*digit) <= 9; digit++)
		whole++;
	for (const char *mark = at; mark < end; mark++)
		if (*mark == 'e' || *mark == 'E') {
			rc = parse_exponent(mark + 1, end, &exponent);
			end = mark;
		}
	whole += (int64_t)exponent - exp10;
	for (; at < end; at++) {
		if (*at == '.')
			continue;
		if (whole > 0 && value < STOUP_DECIMAL_FLOOR_CAP)
			value = value * 10 + digit_of(*at);
		else if (whole <= 0)
			rest |= digit_of(*at) != 0;
		whole--;
	}
	for (; whole > 0 && value > 0 && value < STOUP_DECIMAL_FLOOR_CAP; whole--)
		value *= 10;
	if (value > STOUP_DECIMAL_FLOOR_CAP)
		value = STOUP_DECIMAL_FLOOR_CAP;
	if (parts.negative && value < STOUP_DECIMAL_FLOOR_CAP)
		value += rest;
	*ret = parts.negative ? -value : value;
	*ret_exact = !rest;
	return rc;
}

/* ---- to double -------------------------------------------------------------------------------- */

double stoup_decimal_double_u64(uint64_t integer, int exp10)
{
	/* Powers of ten up to 10^22 are doubles. */
	static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
		1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
	char text[32];

	/* Both operands exact, so that the one operation rounds once. */
	if (integer <= UINT64_C(1) << 53)
		return exp10 < 0 ? (double)integer / tens[-exp10] : (double)integer * tens[exp10];
	/* Without a decimal point, which a locale could change. */
	snprintf(text, sizeof(text), "%llue%d", (unsigned long long)integer, exp10);
	return strtod(text, NULL);
}

double stoup_decimal_double(int64_t integer, int exp10)
{
	if (integer >= 0)
		return stoup_decimal_double_u64((uint64_t)integer, exp10);
	return -stoup_decimal_double_u64(-(uint64_t)integer, exp10);
}
