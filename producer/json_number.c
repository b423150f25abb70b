/* SPDX-License-Identifier: Apache-2.0 */
/* json_number.c - see json_number.h. */
#include "producer/json_number.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include "shm/format.h"

#define DIGITS_EXACT 15 /* decimal digits that a double always keeps (DBL_DIG) */
#define DIGITS_TRIED 17 /* more are never the shortest that reads back */
#define POWER_CAP    22 /* 10^22 is the last power of ten that is a double */

struct scan {
	const char *text;
	size_t len; /* of the number */
	int negative;
	uint64_t mantissa; /* of an integer, or of a decimal of at most 19 digits */
	int overflow;      /* the mantissa did not fit */
	int digit_cnt;     /* from the first to the last that is not zero, of a decimal */
	int64_t exp10;     /* value = mantissa * 10^exp10, of a decimal */
	int decimal;       /* it has a point or an exponent */
};

/* ---- writing -------------------------------------------------------------------------------------- */

static void put_head(uint8_t **out, uint32_t len, uint32_t type)
{
	uint32_t tag = len << 3 | type;

	while (tag >= 0x80) {
		*(*out)++ = (uint8_t)(tag | 0x80);
		tag >>= 7;
	}
	*(*out)++ = (uint8_t)tag;
}

static void put_wide(uint8_t **out, uint64_t value, uint8_t kind)
{
	put_head(out, 9, STOUP_DOC_EXTENDED);
	*(*out)++ = kind;
	memcpy(*out, &value, sizeof(value));
	*out += sizeof(value);
}

static void put_double(uint8_t **out, double value)
{
	put_head(out, sizeof(value), STOUP_DOC_DOUBLE);
	memcpy(*out, &value, sizeof(value));
	*out += sizeof(value);
}

static void put_text(uint8_t **out, const struct scan *scan)
{
	put_head(out, (uint32_t)scan->len + 1, STOUP_DOC_EXTENDED);
	*(*out)++ = STOUP_DOC_EXTENDED_DECIMAL;
	memcpy(*out, scan->text, scan->len);
	*out += scan->len;
}

static void put_integer(uint8_t **out, const struct scan *scan)
{
	uint64_t magnitude = scan->mantissa;

	if (scan->overflow || (scan->negative && magnitude > (uint64_t)INT64_MAX + 1)) {
		put_text(out, scan);
	} else if (scan->negative && magnitude == 0) {
		put_double(out, -0.0);
	} else if (!scan->negative && magnitude > INT64_MAX) {
		put_wide(out, magnitude, STOUP_DOC_EXTENDED_U64);
	} else {
		int64_t value = (int64_t)(scan->negative ? -magnitude : magnitude);
		int32_t narrow = (int32_t)value;

		if (narrow != value) {
			put_wide(out, (uint64_t)value, STOUP_DOC_EXTENDED_I64);
			return;
		}
		put_head(out, sizeof(narrow), STOUP_DOC_INT);
		memcpy(*out, &narrow, sizeof(narrow));
		*out += sizeof(narrow);
	}
}

/* ---- decimals --------------------------------------------------------------------------------------- */

/* Is the value a double whose shortest printing, by whatever correct printer, has this value? */
static int double_of(const struct scan *scan, double *ret)
{
	static const double powers[POWER_CAP + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8,
		1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	char room[STOUP_FORMAT_CAP];
	uint64_t bits;
	double value;

	if (scan->digit_cnt == 0) {
		*ret = scan->negative ? -0.0 : 0.0;
		return 1;
	}
	if (scan->digit_cnt > DIGITS_TRIED)
		return 0;
	/* Both operands exact, so that the one operation rounds once. */
	if (!scan->overflow && scan->mantissa <= UINT64_C(1) << 53 && scan->exp10 >= -POWER_CAP &&
		scan->exp10 <= POWER_CAP) {
		value = (double)scan->mantissa;
		value = scan->exp10 < 0 ? value / powers[-scan->exp10]
		                        : value * powers[scan->exp10];
		value = scan->negative ? -value : value;
	} else {
		value = stoup_doc_nearest(scan->text, scan->len);
	}
	*ret = value;
	if (scan->digit_cnt <= DIGITS_EXACT)
		return isnormal(value);
	/* Next to a power of two the neighbours are not equally far: printers differ there. */
	memcpy(&bits, &value, sizeof(bits));
	return isnormal(value) && bits << 12 != 0 &&
	       stoup_doc_decimal_compare(
		       scan->text, scan->len, room, stoup_format_double(value, room)) == 0;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

/* Digits from `*at` on into the mantissa. Returns how many. */
static size_t digits(const char **at, const char *end, struct scan *scan)
{
	const char *from = *at;
	uint64_t mantissa = scan->mantissa;

	while (*at < end && *(*at) >= '0' && **at <= '9') {
		uint64_t digit = (uint64_t)(**at - '0');

		if (mantissa < UINT64_MAX / 10) {
			mantissa = mantissa * 10 + digit;
		} else if (__builtin_mul_overflow(mantissa, 10u, &mantissa) ||
			   __builtin_add_overflow(mantissa, digit, &mantissa)) {
			scan->overflow = 1;
			mantissa = 1;
		}
		++*at;
	}
	scan->mantissa = mantissa;
	return (size_t)(*at - from);
}

/* Count the digits from the first to the last that is not zero. */
static int digit_cnt(const char *text, const char *end)
{
	int cnt = 0, zero_cnt = 0;

	for (; text < end; text++) {
		if (*text == '0')
			zero_cnt += cnt > 0;
		else if (*text != '.' && *text != '-') {
			cnt += zero_cnt + 1;
			zero_cnt = 0;
		}
		if (cnt > DIGITS_TRIED)
			break;
	}
	return cnt;
}

static int exponent(const char **at, const char *end, struct scan *scan)
{
	int negative = 0;
	int64_t value = 0;
	const char *from;

	++*at;
	if (*at < end && (**at == '+' || **at == '-'))
		negative = *(*at)++ == '-';
	from = *at;
	for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
		if (value < INT64_C(1) << 40)
			value = value * 10 + (**at - '0');
	scan->exp10 += negative ? -value : value;
	return *at > from ? 0 : -EBADMSG;
}

/* The parts of a number; at a fault `*at` stands where it is. */
static const char *parts(const char **at, const char *end, struct scan *scan)
{
	const char *from = *at, *first, *digits_end;
	size_t n;

	scan->negative = **at == '-';
	*at += scan->negative;
	first = *at;
	n = digits(at, end, scan);
	if (n == 0)
		return "a digit is missing";
	if (n > 1 && *first == '0') {
		*at = first;
		return "a number of JSON has no leading zero";
	}
	digits_end = *at;
	if (*at < end && **at == '.') {
		++*at;
		n = digits(at, end, scan);
		if (n == 0)
			return "a digit is missing behind the point";
		scan->exp10 = -(int64_t)n;
		scan->decimal = 1;
		digits_end = *at;
	}
	if (*at < end && (**at == 'e' || **at == 'E')) {
		scan->decimal = 1;
		if (exponent(at, end, scan) < 0)
			return "a digit is missing in the exponent";
	}
	scan->digit_cnt = scan->decimal ? digit_cnt(from, digits_end) : 0;
	return NULL;
}

int64_t stoup_json_number(
	const char *text, size_t len, uint8_t **out, size_t *ret_off, const char **ret_what)
{
	struct scan scan = {.text = text};
	const char *at = text, *what = parts(&at, text + len, &scan);
	double value;

	if (what) {
		*ret_off = (size_t)(at - text);
		*ret_what = what;
		return -EBADMSG;
	}
	scan.len = (size_t)(at - text);
	if (!scan.decimal)
		put_integer(out, &scan);
	else if (double_of(&scan, &value))
		put_double(out, value);
	else
		put_text(out, &scan);
	return at - text;
}
