/* SPDX-License-Identifier: Apache-2.0 */
/* filter_bind.c - a comparison of a field with a word, as a range of what the field can hold.
 *
 *      price (exp10 -9) > 0.1234567891      floor 123456789, not exact     price >= 123456790
 *                       = 0.1234567891                                     never
 *      side (char) < "Bx"                                                  side <= "B"
 *      x (f32) > 0.1                        nearest float                  key(x) >= key(nearest) + 1
 *
 * All of the arithmetic is on integers of 128 bits, so that no end of a 64-bit type needs care.
 *
 * Concurrency: pure functions. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include "consumer/filter.h"
#include "shm/doc_read.h"
#include "shm/timestamp.h"

/* What a word says: between `below` and the next value of the type, and whether it is `below` itself. */
struct point {
	stoup_wide floor;
	int exact;
};

/* ---- what a type can hold -------------------------------------------------------------------- */

static int is_float(const struct stoup_field *field)
{
	return field->type == STOUP_TYPE_F32 || field->type == STOUP_TYPE_F64;
}

static int is_signed(uint32_t type)
{
	return type == STOUP_TYPE_I8 || type == STOUP_TYPE_I16 || type == STOUP_TYPE_I32 ||
	       type == STOUP_TYPE_I64;
}

static int64_t infinity_key(const struct stoup_field *field)
{
	return field->type == STOUP_TYPE_F64 ? INT64_C(0x7ff0000000000000) : 0x7f800000;
}

static stoup_wide type_low(const struct stoup_field *field)
{
	uint32_t bits = 8 * stoup_type_len(field->type);

	if (is_float(field)) /* -infinity */
		return field->type == STOUP_TYPE_F64
		               ? stoup_filter_f64_key(UINT64_C(0xfff0000000000000))
		               : stoup_filter_f32_key(0xff800000u);
	return is_signed(field->type) ? -((stoup_wide)1 << (bits - 1)) : 0;
}

static stoup_wide type_high(const struct stoup_field *field)
{
	uint32_t bits = 8 * stoup_type_len(field->type);

	if (is_float(field))
		return infinity_key(field);
	return ((stoup_wide)1 << (bits - (is_signed(field->type) ? 1 : 0))) - 1;
}

/* ---- words to points ------------------------------------------------------------------------- */

static int float_point(
	const struct stoup_field *field, const struct stoup_filter_word *word, struct point *ret)
{
	int negative = word->len > 0 && word->text[0] == '-';
	size_t sign = word->len > 0 && (word->text[0] == '-' || word->text[0] == '+');
	union {
		double f64;
		uint64_t bits;
	} wide = {0};
	union {
		float f32;
		uint32_t bits;
	} narrow = {0};

	if (word->len - sign == 3 && strncasecmp(word->text + sign, "inf", 3) == 0) {
		wide.f64 = negative ? -HUGE_VAL : HUGE_VAL;
		narrow.f32 = negative ? -HUGE_VALF : HUGE_VALF;
	} else if (stoup_doc_decimal_is(word->text, word->len)) {
		wide.f64 = stoup_doc_nearest(word->text, word->len);
		narrow.f32 = stoup_doc_nearest_f32(word->text, word->len);
	} else {
		return -EINVAL;
	}
	ret->floor = field->type == STOUP_TYPE_F64 ? (stoup_wide)stoup_filter_f64_key(wide.bits)
	                                           : stoup_filter_f32_key(narrow.bits);
	ret->exact = 1;
	return 0;
}

static int time_point(const struct stoup_field *field, const struct stoup_filter_word *word,
	struct point *ret, struct stoup_error *err)
{
	const struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_AUTO};
	const char *why = NULL;
	int64_t ns;
	int rc = stoup_timestamp_parse(&format, word->text, word->len, &ns, &why);

	if (rc < 0)
		return stoup_error_set(err, -EINVAL, "%s is a time: '%.*s' %s", field->name,
			(int)(word->len < 40 ? word->len : 40), word->text, why);
	ret->floor = ns;
	ret->exact = 1;
	return 0;
}

static int number_point(const struct stoup_field *field, const struct stoup_filter_word *word,
	struct point *ret, struct stoup_error *err)
{
	int rc;

	if (field->flags & STOUP_FIELD_TIME)
		return time_point(field, word, ret, err);
	if (is_float(field))
		rc = float_point(field, word, ret);
	else
		rc = stoup_decimal_floor(
			word->text, word->len, field->exp10, &ret->floor, &ret->exact);
	if (rc == 0)
		return 0;
	return stoup_error_set(err, -EINVAL, "%s is a %s: '%.*s' is none", field->name,
		field->flags & STOUP_FIELD_DURATION ? "duration in nanoseconds" : "number",
		(int)(word->len < 40 ? word->len : 40), word->text);
}

/* A text of one byte at most: "Bx" lies between "B" and "C". */
static void char_point(const struct stoup_filter_word *word, struct point *ret)
{
	ret->floor = word->len ? (uint8_t)word->text[0] : 0;
	ret->exact = word->len <= 1;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void node_begin(const struct stoup_field *field, struct stoup_filter_node *ret)
{
	*ret = (struct stoup_filter_node){
		.op = STOUP_FILTER_RANGE,
		.type = field->type,
		.has_null = (field->flags & STOUP_FIELD_NULL) != 0,
		.cnt = field->cnt,
		.off = field->off,
		.null_bits = field->null_bits,
	};
}

/* The range with its ends moved into what the type holds. */
static void node_range(const struct stoup_field *field, stoup_wide low, stoup_wide high, int flip,
	struct stoup_filter_node *ret)
{
	stoup_wide least = type_low(field), most = type_high(field);

	low = low < least ? least : low;
	high = high > most ? most : high;
	ret->low = low;
	ret->high = high;
	ret->flip = flip != 0;
	if (low > high) { /* no value: all are outside */
		ret->low = least;
		ret->high = most;
		ret->flip = !flip;
	}
	if (ret->flip && ret->low == least && ret->high == most)
		ret->op = STOUP_FILTER_NEVER;
}

/* Zero has two keys. */
static void point_zero(const struct stoup_field *field, stoup_wide *low, stoup_wide *high)
{
	stoup_wide zeros[2] = {0, 0};

	if (!is_float(field))
		return;
	zeros[0] = field->type == STOUP_TYPE_F64
	                   ? (stoup_wide)stoup_filter_f64_key(UINT64_C(1) << 63)
	                   : stoup_filter_f32_key(UINT32_C(1) << 31);
	if (*low == 0 || *low == zeros[0]) {
		*low = zeros[0];
		*high = zeros[1];
	}
}

static void node_compare(const struct stoup_field *field, enum stoup_filter_compare compare,
	const struct point *point, struct stoup_filter_node *ret)
{
	stoup_wide low = point->floor, high = point->floor; /* the values that are equal */
	const stoup_wide least = type_low(field), most = type_high(field);

	point_zero(field, &low, &high);
	if (!point->exact) /* none: the point lies behind `high`, before `low` */
		low++;
	switch (compare) {
	case STOUP_FILTER_EQ:
	case STOUP_FILTER_NE:
		node_range(field, low, high, compare == STOUP_FILTER_NE, ret);
		break;
	case STOUP_FILTER_LT:
		node_range(field, least, low - 1, 0, ret);
		break;
	case STOUP_FILTER_LE:
		node_range(field, least, high, 0, ret);
		break;
	case STOUP_FILTER_GT:
		node_range(field, high + 1, most, 0, ret);
		break;
	case STOUP_FILTER_GE:
	default:
		node_range(field, low, most, 0, ret);
	}
}

int stoup_filter_bind(const struct stoup_field *field, enum stoup_filter_compare compare,
	const struct stoup_filter_word *word, struct stoup_filter_node *ret,
	struct stoup_error *err)
{
	static const uint8_t orders[] = {
		[STOUP_FILTER_EQ] = STOUP_FILTER_EQUAL,
		[STOUP_FILTER_NE] = STOUP_FILTER_LESS | STOUP_FILTER_GREATER,
		[STOUP_FILTER_LT] = STOUP_FILTER_LESS,
		[STOUP_FILTER_LE] = STOUP_FILTER_LESS | STOUP_FILTER_EQUAL,
		[STOUP_FILTER_GT] = STOUP_FILTER_GREATER,
		[STOUP_FILTER_GE] = STOUP_FILTER_GREATER | STOUP_FILTER_EQUAL,
	};
	struct point point = {0, 1};
	int rc = 0;

	node_begin(field, ret);
	if (field->type == STOUP_TYPE_BYTES)
		return stoup_error_set(
			err, -EINVAL, "%s holds opaque bytes, which are not compared", field->name);
	if (field->type == STOUP_TYPE_CHAR && field->cnt > 1) {
		ret->op = STOUP_FILTER_TEXT;
		ret->orders = orders[compare];
		ret->text_len = (uint32_t)word->len;
		return 0;
	}
	if (field->type == STOUP_TYPE_CHAR)
		char_point(word, &point);
	else
		rc = number_point(field, word, &point, err);
	if (rc == 0)
		node_compare(field, compare, &point, ret);
	return rc;
}

int stoup_filter_bind_between(const struct stoup_field *field, int negate,
	const struct stoup_filter_node *low, const struct stoup_filter_node *high,
	struct stoup_filter_node *ret)
{
	if (field->type == STOUP_TYPE_CHAR && field->cnt > 1)
		return 0;
	node_begin(field, ret);
	if (low->op == STOUP_FILTER_NEVER || high->op == STOUP_FILTER_NEVER)
		node_range(field, 1, 0, negate, ret);
	else
		node_range(field, low->low, high->high, negate, ret);
	return 1;
}

void stoup_filter_bind_null(
	const struct stoup_field *field, int negate, struct stoup_filter_node *ret)
{
	node_begin(field, ret);
	ret->op = STOUP_FILTER_NULL;
	ret->flip = negate != 0;
	if (!ret->has_null && !is_float(field))
		ret->op = negate ? STOUP_FILTER_ALWAYS : STOUP_FILTER_NEVER;
}
