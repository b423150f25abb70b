/* SPDX-License-Identifier: Apache-2.0 */
/* doc_number.c - the numbers of documents: four forms, one value, one order (see stoup_doc.h).
 *
 *      int, i64, u64  --digits-----------\
 *      double         --shortest decimal--> decimal text --> exact integer, nearest double, order
 *      decimal        --its text---------/
 *
 * Forms that both fit 53 bits are compared as such; all else by their decimals, digit by digit, so that
 * the order is total and what JSON's texts say.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "shm/decimal.h"
#include "shm/doc_read.h"
#include "shm/format.h"

#define EXACT_CAP (INT64_C(1) << 53) /* integers up to here are doubles */

void stoup_doc_number(const struct stoup_doc *value, struct stoup_doc_number *ret)
{
	const uint8_t *payload = value->payload;
	uint32_t len = value->payload_len;

	*ret = (struct stoup_doc_number){.form = STOUP_DOC_FORM_NONE};
	if (value->type == STOUP_DOC_INT && len == 4) {
		ret->form = STOUP_DOC_FORM_I64;
		ret->i64 = stoup_doc_load32(payload);
	} else if (value->type == STOUP_DOC_DOUBLE && len == 8) {
		ret->form = STOUP_DOC_FORM_F64;
		memcpy(&ret->f64, payload, sizeof(ret->f64));
	} else if (value->type == STOUP_DOC_EXTENDED && len > 1) {
		if (payload[0] == STOUP_DOC_EXTENDED_I64 && len == 9) {
			ret->form = STOUP_DOC_FORM_I64;
			ret->i64 = (int64_t)stoup_doc_load64(payload + 1);
		} else if (payload[0] == STOUP_DOC_EXTENDED_U64 && len == 9) {
			ret->u64 = stoup_doc_load64(payload + 1);
			ret->i64 = (int64_t)ret->u64;
			ret->form = ret->u64 > INT64_MAX ? STOUP_DOC_FORM_U64 : STOUP_DOC_FORM_I64;
		} else if (payload[0] == STOUP_DOC_EXTENDED_DECIMAL) {
			ret->form = STOUP_DOC_FORM_TEXT;
			ret->text = (const char *)payload + 1;
			ret->text_len = len - 1;
		}
	}
}

void stoup_doc_number_text(struct stoup_doc_number *number, char *room)
{
	size_t len = number->text_len;

	switch (number->form) {
	case STOUP_DOC_FORM_I64:
		len = (size_t)snprintf(room, STOUP_DOC_NUMBER_CAP, "%" PRId64, number->i64);
		break;
	case STOUP_DOC_FORM_U64:
		len = (size_t)snprintf(room, STOUP_DOC_NUMBER_CAP, "%" PRIu64, number->u64);
		break;
	case STOUP_DOC_FORM_F64:
		len = stoup_format_double(number->f64, room);
		if (!memchr(room, '.', len) && !memchr(room, 'e', len)) {
			room[len++] = '.';
			room[len++] = '0';
		}
		break;
	case STOUP_DOC_FORM_TEXT:
	case STOUP_DOC_FORM_NONE:
	default:
		return;
	}
	number->text = room;
	number->text_len = len;
}

/* ---- the grammar --------------------------------------------------------------------------------- */

static size_t digits_len(const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && text[i] >= '0' && text[i] <= '9')
		i++;
	return i;
}

int stoup_doc_number_is(const char *text, size_t len)
{
	size_t at = len > 0 && text[0] == '-', n = digits_len(text + at, len - at);

	if (n == 0 || (n > 1 && text[at] == '0'))
		return 0;
	at += n;
	if (at < len && text[at] == '.') {
		n = digits_len(text + at + 1, len - at - 1);
		if (n == 0)
			return 0;
		at += 1 + n;
	}
	if (at < len && (text[at] == 'e' || text[at] == 'E')) {
		at++;
		at += at < len && (text[at] == '+' || text[at] == '-');
		n = digits_len(text + at, len - at);
		if (n == 0)
			return 0;
		at += n;
	}
	return at == len;
}

int stoup_doc_decimal_is(const char *text, size_t len)
{
	size_t at = len > 0 && (text[0] == '-' || text[0] == '+'),
	       n = digits_len(text + at, len - at);

	at += n;
	if (at < len && text[at] == '.') {
		size_t behind = digits_len(text + at + 1, len - at - 1);

		n += behind;
		at += 1 + behind;
	}
	if (n > 0 && at < len && (text[at] == 'e' || text[at] == 'E')) {
		at++;
		at += at < len && (text[at] == '+' || text[at] == '-');
		n = digits_len(text + at, len - at);
		at += n;
	}
	return n > 0 && at == len;
}

/* ---- decimals by value ---------------------------------------------------------------------------- */

/* Digits of a decimal from its first to its last that is not zero, the point wherever it stands among
 * them; value = 0.DIGITS * 10^exponent. */
struct digits {
	const char *first, *end;
	int64_t exponent;
	int sign; /* 0: the value is zero */
};

#define EXPONENT_CAP (INT64_C(1) << 60) /* an exponent of more digits is as good as this */

static int64_t exponent_of(const char *at, const char *end)
{
	int negative = at < end && *at == '-';
	int64_t value = 0;

	at += at < end && (*at == '-' || *at == '+');
	for (; at < end; at++)
		if (value < EXPONENT_CAP / 16)
			value = value * 10 + (*at - '0');
	return negative ? -value : value;
}

static struct digits digits_of(const char *text, size_t len)
{
	const char *end = text + len, *exponent = text, *point,
		   *at = text + (len && (*text == '-' || *text == '+'));
	struct digits ret = {.sign = len && *text == '-' ? -1 : 1};

	while (exponent < end && *exponent != 'e' && *exponent != 'E')
		exponent++;
	point = memchr(text, '.', (size_t)(exponent - text));
	ret.end = exponent;
	while (at < ret.end && (*at == '0' || *at == '.'))
		at++;
	while (ret.end > at && (ret.end[-1] == '0' || ret.end[-1] == '.'))
		ret.end--;
	ret.first = at;
	if (at == ret.end) {
		ret.sign = 0;
		return ret;
	}
	if (!point)
		point = exponent;
	/* Digits before the point count up, zeros behind it down. */
	ret.exponent = point > at ? point - at : point + 1 - at;
	if (exponent < end)
		ret.exponent += exponent_of(exponent + 1, end);
	return ret;
}

/* The next digit, or -1 at the end. */
static int digit_next(const char **at, const char *end)
{
	if (*at < end && **at == '.')
		++*at;
	return *at < end ? *(*at)++ - '0' : -1;
}

int stoup_doc_decimal_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	struct digits x = digits_of(a, a_len), y = digits_of(b, b_len);
	int p, q;

	if (x.sign != y.sign)
		return x.sign < y.sign ? -1 : 1;
	if (x.sign == 0)
		return 0;
	if (x.exponent != y.exponent)
		return (x.exponent < y.exponent ? -1 : 1) * x.sign;
	do {
		p = digit_next(&x.first, x.end);
		q = digit_next(&y.first, y.end);
	} while (p == q && p >= 0);
	return p == q ? 0 : (p < q ? -1 : 1) * x.sign;
}

/* ---- readers --------------------------------------------------------------------------------------- */

/* The decimal text of a number, or of a string that is one. 0 or -EINVAL. */
static int text_of(
	const struct stoup_doc *value, char *room, const char **ret_text, size_t *ret_len)
{
	struct stoup_doc_number number;

	if (value->type == STOUP_DOC_STRING) {
		*ret_text = (const char *)value->payload;
		*ret_len = value->payload_len;
		return 0;
	}
	stoup_doc_number(value, &number);
	if (number.form == STOUP_DOC_FORM_NONE ||
		(number.form == STOUP_DOC_FORM_F64 && !isfinite(number.f64)))
		return -EINVAL;
	stoup_doc_number_text(&number, room);
	*ret_text = number.text;
	*ret_len = number.text_len;
	return 0;
}

int stoup_doc_decimal(const struct stoup_doc *value, int exp10, int64_t *ret)
{
	char room[STOUP_DOC_NUMBER_CAP];
	const char *text;
	size_t len;
	int rc;

	if (exp10 < -18 || exp10 > 18)
		return -EINVAL;
	rc = text_of(value, room, &text, &len);
	return rc ? rc : stoup_decimal_parse(text, len, exp10, ret);
}

int stoup_doc_int(const struct stoup_doc *value, int64_t *ret)
{
	struct stoup_doc_number number;

	stoup_doc_number(value, &number);
	if (number.form == STOUP_DOC_FORM_NONE)
		return -EINVAL;
	if (number.form == STOUP_DOC_FORM_I64) {
		*ret = number.i64;
		return 0;
	}
	return stoup_doc_decimal(value, 0, ret);
}

/* strtod, whatever the locale's decimal point: digits without a point, and the exponent that makes up
 * for it. A text of more digits than the room takes is cut behind digits that no double can tell apart,
 * with a last digit that says whether all that was cut is zero. */
#define DOUBLE_DIGITS_CAP 800 /* a double's exact decimal has at most 767 */

#define DOUBLE_TEXT_CAP (DOUBLE_DIGITS_CAP + 32)

/* Leaves 0, and infinity, to be found by the reader. */
static void plain_text(const char *text, size_t len, char room[DOUBLE_TEXT_CAP])
{
	struct digits digits = digits_of(text, len);
	size_t n = 0;
	int digit;

	if (digits.sign == 0 || digits.exponent > 400 || digits.exponent < -400) {
		snprintf(room, DOUBLE_TEXT_CAP, "%s%s",
			digits.sign < 0 || text[0] == '-' ? "-" : "",
			digits.sign == 0 || digits.exponent < 0 ? "0" : "1e999");
		return;
	}
	if (digits.sign < 0)
		room[n++] = '-';
	while ((digit = digit_next(&digits.first, digits.end)) >= 0) {
		room[n++] = (char)('0' + digit);
		digits.exponent--;
		if (n == DOUBLE_DIGITS_CAP) {
			room[n++] = '1'; /* the last digit of all is not zero */
			digits.exponent--;
			break;
		}
	}
	snprintf(room + n, DOUBLE_TEXT_CAP - n, "e%" PRId64, digits.exponent);
}

double stoup_doc_nearest(const char *text, size_t len)
{
	char room[DOUBLE_TEXT_CAP];

	plain_text(text, len, room);
	return strtod(room, NULL);
}

float stoup_doc_nearest_f32(const char *text, size_t len)
{
	char room[DOUBLE_TEXT_CAP];

	plain_text(text, len, room);
	return strtof(room, NULL);
}

int stoup_doc_double(const struct stoup_doc *value, double *ret)
{
	struct stoup_doc_number number;
	double found;

	stoup_doc_number(value, &number);
	switch (number.form) {
	case STOUP_DOC_FORM_I64:
		*ret = (double)number.i64;
		return 0;
	case STOUP_DOC_FORM_U64:
		*ret = (double)number.u64;
		return 0;
	case STOUP_DOC_FORM_F64:
		if (!isfinite(number.f64))
			return -EINVAL;
		*ret = number.f64;
		return 0;
	case STOUP_DOC_FORM_NONE:
		if (value->type != STOUP_DOC_STRING)
			return -EINVAL;
		number.text = (const char *)value->payload;
		number.text_len = value->payload_len;
		break;
	case STOUP_DOC_FORM_TEXT:
	default:
		break;
	}
	if (!stoup_doc_decimal_is(number.text, number.text_len))
		return -EINVAL;
	found = stoup_doc_nearest(number.text, number.text_len);
	if (!isfinite(found))
		return -ERANGE;
	*ret = found;
	return 0;
}

/* ---- order ------------------------------------------------------------------------------------------ */

/* Reads a double of the two as a number that both may be compared in; 0: not exact. */
static int as_double(const struct stoup_doc_number *number, double *ret)
{
	if (number->form == STOUP_DOC_FORM_F64) {
		*ret = number->f64;
		return 1;
	}
	*ret = (double)number->i64;
	return number->form == STOUP_DOC_FORM_I64 && number->i64 <= EXACT_CAP &&
	       number->i64 >= -EXACT_CAP;
}

static int number_compare(struct stoup_doc_number *a, struct stoup_doc_number *b)
{
	char a_room[STOUP_DOC_NUMBER_CAP], b_room[STOUP_DOC_NUMBER_CAP];
	double x, y;

	if (a->form == STOUP_DOC_FORM_I64 && b->form == STOUP_DOC_FORM_I64)
		return (a->i64 > b->i64) - (a->i64 < b->i64);
	if (as_double(a, &x) & as_double(b, &y))
		/* What is no number (no document has it) is below all that are. */
		return isnan(x) || isnan(y) ? (isnan(y) != 0) - (isnan(x) != 0) : (x > y) - (x < y);
	if (a->form == STOUP_DOC_FORM_F64 && !isfinite(a->f64))
		return a->f64 > 0 ? 1 : -1;
	if (b->form == STOUP_DOC_FORM_F64 && !isfinite(b->f64))
		return b->f64 > 0 ? -1 : 1;
	stoup_doc_number_text(a, a_room);
	stoup_doc_number_text(b, b_room);
	return stoup_doc_decimal_compare(a->text, a->text_len, b->text, b->text_len);
}

/* Where a type stands in the order. */
static int rank(const struct stoup_doc *value, const struct stoup_doc_number *number)
{
	if (!value)
		return -2;
	if (value->type == STOUP_DOC_ATOM && value->payload_len == 0)
		return -1;
	if (value->type == STOUP_DOC_ATOM && value->payload_len == 1 && value->payload[0] == 2)
		return 9;
	return number->form != STOUP_DOC_FORM_NONE ? (int)STOUP_DOC_INT : value->type;
}

static int bytes_compare(const struct stoup_doc *a, const struct stoup_doc *b)
{
	uint32_t len = a->payload_len < b->payload_len ? a->payload_len : b->payload_len;
	int rc = len ? memcmp(a->payload, b->payload, len) : 0;

	return rc ? rc : (a->payload_len > b->payload_len) - (a->payload_len < b->payload_len);
}

int stoup_doc_compare(const struct stoup_doc *a, const struct stoup_doc *b)
{
	struct stoup_doc_number x = {0}, y = {0};
	int p, q;

	if (a)
		stoup_doc_number(a, &x);
	if (b)
		stoup_doc_number(b, &y);
	p = rank(a, &x);
	q = rank(b, &y);
	if (p != q)
		return p < q ? -1 : 1;
	if (x.form != STOUP_DOC_FORM_NONE)
		/* A text that is none of JSON's: by its bytes, which is an order too. */
		return (x.form == STOUP_DOC_FORM_TEXT &&
			       !stoup_doc_number_is(x.text, x.text_len)) ||
		                       (y.form == STOUP_DOC_FORM_TEXT &&
					       !stoup_doc_number_is(y.text, y.text_len))
		               ? bytes_compare(a, b)
		               : number_compare(&x, &y);
	return p < 0 || p == 9 ? 0 : bytes_compare(a, b);
}
