/* SPDX-License-Identifier: Apache-2.0 */
/* filter_model.h - random records of all field types, random filters as text, and what those filters say, worked out
 * slowly: a tree of comparisons in three-valued logic, over decimals as integers of 128 bits and a common exponent.
 *
 *      model_filter   node tree + its text     --stoup_filter_create--> what is tested
 *           |
 *      model_truth    1, 0, -1 (unknown): a record is in where it is 1
 *
 * Nothing here is shared with the tested code but the field descriptions.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_TEST_FILTER_MODEL_H
#define STOUP_TEST_FILTER_MODEL_H

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/stoup_filter.h"

__extension__ typedef __int128 model_wide;

#define MODEL_MUST(claim)                                                                          \
	do {                                                                                       \
		if (!(claim)) {                                                                    \
			fprintf(stderr, "filter_model.h:%d: not so: %s\n", __LINE__, #claim);      \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t model_state = 88172645463325252u;

static inline uint64_t model_random(void)
{
	model_state ^= model_state << 13;
	model_state ^= model_state >> 7;
	model_state ^= model_state << 17;
	return model_state * UINT64_C(2685821657736338717);
}

static inline uint32_t model_below(uint32_t cnt)
{
	return (uint32_t)((model_random() >> 32) * cnt >> 32);
}

/* ---- records --------------------------------------------------------------------------------- */

#define MODEL_STRIDE 104u

#define MODEL_FIELD(n, o, t, f, e, null)                                                           \
	{                                                                                          \
		.name = n, .off = o, .cnt = 1, .type = STOUP_TYPE_##t, .flags = f, .exp10 = e,     \
		.null_bits = null                                                                  \
	}

/* Most fields lie at odd offsets. */
static const struct stoup_field model_fields[] = {
	MODEL_FIELD("key", 0, I64, STOUP_FIELD_KEY | STOUP_FIELD_TIME, 0, 0),
	MODEL_FIELD("u8", 8, U8, 0, 0, 0),
	MODEL_FIELD("i8", 9, I8, STOUP_FIELD_NULL, -1, 0x80),
	MODEL_FIELD("u16", 11, U16, STOUP_FIELD_NULL, 0, 0xffff),
	MODEL_FIELD("i16", 13, I16, 0, 3, 0),
	MODEL_FIELD("u32", 15, U32, STOUP_FIELD_NULL, -2, UINT32_MAX),
	MODEL_FIELD("i32", 19, I32, STOUP_FIELD_NULL, 0, INT32_MAX),
	MODEL_FIELD("u64", 23, U64, STOUP_FIELD_NULL, 0, UINT64_MAX),
	MODEL_FIELD("price", 31, I64, STOUP_FIELD_NULL, -9, INT64_MAX),
	MODEL_FIELD("f32", 39, F32, 0, 0, 0),
	MODEL_FIELD("f64", 43, F64, STOUP_FIELD_NULL, 0, UINT64_C(0x4197d78400000000)), /* 1e8 */
	MODEL_FIELD("side", 51, CHAR, STOUP_FIELD_NULL, 0, 'N'),
	{.name = "sym.bol[0]", .off = 52, .cnt = 5, .type = STOUP_TYPE_CHAR},
	MODEL_FIELD("ts_event", 57, U64, STOUP_FIELD_NULL | STOUP_FIELD_TIME, 0, UINT64_MAX),
	MODEL_FIELD("delta", 65, I32, STOUP_FIELD_DURATION, 0, 0),
	{.name = "spare",
		.off = 69,
		.cnt = 3,
		.type = STOUP_TYPE_BYTES,
		.flags = STOUP_FIELD_HIDDEN},
	{.name = "opaque", .off = 72, .cnt = 4, .type = STOUP_TYPE_BYTES},
	MODEL_FIELD("wide", 76, I64, 0, -18, 0),
	MODEL_FIELD("nan", 84, F32, STOUP_FIELD_NULL, 0, 0x7fc00000),
};

#define MODEL_FIELD_CNT (sizeof(model_fields) / sizeof(model_fields[0]))

static inline struct stoup_schema model_schema(void)
{
	struct stoup_schema schema = {.name = "model",
		.stride = MODEL_STRIDE,
		.align = 8,
		.field_cnt = (uint32_t)MODEL_FIELD_CNT,
		.fields = model_fields};

	schema.hash = stoup_schema_hash(&schema);
	MODEL_MUST(stoup_schema_valid(&schema, NULL) == 0);
	return schema;
}

static inline uint32_t model_len(const struct stoup_field *field)
{
	return stoup_type_len(field->type) * field->cnt;
}

/* Bits of a value: often near the ends of the type, near zero, or few in number, so that values meet. */
static inline uint64_t model_bits(const struct stoup_field *field)
{
	static const double doubles[] = {0.0, -0.0, 1.5, -1.5, 1e8, 0.1, -0.1, 1e300, -1e300,
		DBL_MAX, DBL_MIN, 5e-324, -5e-324, INFINITY, -INFINITY, NAN, -NAN, 16777217.0};
	uint64_t bits = model_random();
	uint32_t kind = model_below(10);
	double f64;
	float f32;

	if (kind == 0 && (field->flags & STOUP_FIELD_NULL))
		return field->null_bits;
	if (field->type == STOUP_TYPE_F64 || field->type == STOUP_TYPE_F32) {
		if (kind < 2)
			return bits;
		f64 = kind < 6 ? doubles[model_below(18)] : (double)(int32_t)model_below(9) - 4;
		f32 = (float)f64;
		bits = 0;
		if (field->type == STOUP_TYPE_F64)
			memcpy(&bits, &f64, 8);
		else
			memcpy(&bits, &f32, 4);
		return bits;
	}
	if (field->flags & STOUP_FIELD_TIME)
		return kind < 2 ? bits
		                : UINT64_C(1700000000000000000) + model_below(5) * 1000000000;
	if (field->type == STOUP_TYPE_CHAR)
		return kind == 1 ? 0 : kind == 2 ? bits : 'A' + model_below(3);
	if (kind < 3)
		return bits;
	if (kind < 5) /* the ends of signed and of unsigned types */
		return (UINT64_C(1) << (8 * stoup_type_len(field->type) - 1)) - 2 + model_below(4);
	if (kind == 5)
		return (uint64_t)0 - model_below(3);
	return (uint64_t)((int64_t)model_below(9) - 4) * (field->exp10 == -9 ? 250000000 : 1);
}

static inline void model_record(uint8_t *record)
{
	memset(record, 0xa5, MODEL_STRIDE);
	for (size_t i = 0; i < MODEL_FIELD_CNT; i++) {
		const struct stoup_field *field = &model_fields[i];
		uint32_t len = stoup_type_len(field->type);

		for (uint32_t j = 0; j < field->cnt; j++) {
			uint64_t bits = model_bits(field);

			memcpy(record + field->off + j * len, &bits, len);
		}
	}
}

/* ---- filters --------------------------------------------------------------------------------- */

enum model_op {
	MODEL_EQ,
	MODEL_NE,
	MODEL_LT,
	MODEL_LE,
	MODEL_GT,
	MODEL_GE,
	MODEL_NULL,
	MODEL_IN,
	MODEL_BETWEEN,
	MODEL_AND,
	MODEL_OR,
	MODEL_NOT
};

struct model_value {
	char text[64];     /* as it stands in the filter */
	model_wide digits; /* integers: digits * 10^exp10 */
	int exp10;
	double f64; /* of floats; of f32 a float */
	char chars[16];
};

struct model_node {
	enum model_op op;
	int negate; /* NULL, IN, BETWEEN: with `not` */
	const struct stoup_field *field;
	uint32_t value_cnt;
	struct model_value values[3];
	struct model_node *left, *right;
};

struct model_text {
	char at[STOUP_ERROR_TEXT_CAP * 32];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static inline void model_put(
	struct model_text *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	text->len +=
		(size_t)vsnprintf(text->at + text->len, sizeof(text->at) - text->len, fmt, args);
	va_end(args);
	MODEL_MUST(text->len < sizeof(text->at));
}

/* The number as a decimal text, with exponents and zeros that change nothing. */
static inline void model_digits(struct model_value *value)
{
	char digits[64];
	model_wide rest = value->digits < 0 ? -value->digits : value->digits;
	int len = 0, point = -value->exp10;
	char *at = value->text;

	do {
		digits[len++] = (char)('0' + (int)(rest % 10));
		rest /= 10;
	} while (rest || (point > 0 && point < 25 && len <= point));
	at += sprintf(at, "%s", value->digits < 0 ? "-" : model_below(8) == 0 ? "+" : "");
	for (int i = len; i-- > 0;) {
		*at++ = digits[i];
		if (i == point && i > 0 && point < 25)
			*at++ = '.';
	}
	*at = 0;
	if (point < 0 || point >= 25)
		sprintf(at, "e%d", value->exp10);
	else if (point > 0 && model_below(4) == 0)
		sprintf(at, "000");
}

static inline void model_int_value(
	const struct stoup_field *field, uint64_t bits, struct model_value *ret)
{
	uint32_t len = stoup_type_len(field->type);

	ret->digits = bits;
	if (field->type % 2 == 0) /* i8 ... i64 have even numbers */
		ret->digits = len == 1   ? (int8_t)bits
		              : len == 2 ? (int16_t)bits
		              : len == 4 ? (int32_t)bits
		                         : (int64_t)bits;
	else if (len < 8)
		ret->digits = bits & ((UINT64_C(1) << (8 * len)) - 1);
	ret->exp10 = field->exp10;
	if (field->exp10 == -18)
		ret->digits /= 7; /* room for what follows */
	/* Sometimes a bit off what the field can hold, or beyond its ends. */
	if (model_below(4) == 0) {
		uint32_t more = 1 + model_below(3);

		for (uint32_t i = 0; i < more; i++)
			ret->digits *= 10;
		ret->digits += (int)model_below(21) - 10;
		ret->exp10 -= (int)more;
	} else if (model_below(4) == 0) {
		ret->digits += ret->digits < 0 ? -3 : 3;
	}
	model_digits(ret);
}

static inline void model_text_value(const struct stoup_field *field, struct model_value *ret)
{
	uint32_t len = model_below(field->cnt + 2u), at = 0;
	char quote = model_below(2) ? '\'' : '"';

	for (uint32_t i = 0; i < len; i++) {
		uint32_t kind = model_below(12);

		ret->chars[i] = kind == 0   ? quote
		                : kind == 1 ? '\\'
		                : kind == 2 ? (char)(128 + model_below(128))
		                            : (char)('A' + model_below(3));
	}
	ret->chars[len] = 0;
	ret->text[at++] = quote;
	for (uint32_t i = 0; i < len; i++) {
		if (ret->chars[i] == quote || ret->chars[i] == '\\')
			ret->text[at++] = ret->chars[i] == quote && model_below(2) ? quote : '\\';
		ret->text[at++] = ret->chars[i];
	}
	ret->text[at++] = quote;
	ret->text[at] = 0;
}

static inline void model_float_value(const struct stoup_field *field, struct model_value *ret)
{
	uint64_t bits = model_bits(field);
	double f64;
	float f32;

	if (field->type == STOUP_TYPE_F64) {
		memcpy(&f64, &bits, 8);
	} else {
		memcpy(&f32, &bits, 4);
		f64 = (double)f32;
	}
	if (f64 != f64)
		f64 = 0.1;
	snprintf(ret->text, sizeof(ret->text), "%.*g", model_below(2) ? 17 : 3, f64);
	ret->f64 = field->type == STOUP_TYPE_F64 ? strtod(ret->text, NULL)
	                                         : (double)strtof(ret->text, NULL);
}

static inline void model_value(const struct stoup_field *field, struct model_value *ret)
{
	uint64_t bits = model_bits(field);

	memset(ret, 0, sizeof(*ret));
	if (field->type == STOUP_TYPE_CHAR) {
		model_text_value(field, ret);
	} else if (field->type == STOUP_TYPE_F32 || field->type == STOUP_TYPE_F64) {
		model_float_value(field, ret);
	} else if (field->flags & STOUP_FIELD_TIME) {
		static const char *const texts[] = {"2023-11-14", "2023-11-14T22:13:20Z",
			"'2023-11-14 22:13:21.000000001+00:00'", "1700000002", "1970-01-01",
			"1700000003000000000", "2262-04-11T23:47:16.854775807Z"};
		static const int64_t times[] = {1699920000000000000, 1700000000000000000,
			1700000001000000001, 1700000002000000000, 0, 1700000003000000000,
			INT64_MAX};
		uint32_t i = model_below(7);

		strcpy(ret->text, texts[i]);
		ret->digits = times[i];
	} else {
		model_int_value(field, bits, ret);
	}
}

static inline struct model_node *model_filter(struct model_text *text, uint32_t depth)
{
	static const char *const ops[] = {"=", "!=", "<", "<=", ">", ">="};
	struct model_node *node = calloc(1, sizeof(*node));
	uint32_t kind = model_below(depth > 0 ? 12 : 6);
	const char *gap = model_below(3) ? " " : "";

	MODEL_MUST(node != NULL);
	if (kind >= 6) {
		node->op = kind < 8 ? MODEL_AND : kind < 10 ? MODEL_OR : MODEL_NOT;
		model_put(text, node->op == MODEL_NOT ? "not (" : "(");
		node->left = model_filter(text, depth - 1);
		if (node->op != MODEL_NOT) {
			model_put(text, node->op == MODEL_AND ? ") and (" : ") OR (");
			node->right = model_filter(text, depth - 1);
		}
		model_put(text, ")");
		return node;
	}
	do
		node->field = &model_fields[model_below((uint32_t)MODEL_FIELD_CNT)];
	while (node->field->type == STOUP_TYPE_BYTES);
	for (uint32_t i = 0; i < 3; i++)
		model_value(node->field, &node->values[i]);
	node->negate = (int)model_below(2);
	model_put(text, model_below(8) ? "%s%s" : "\"%s\"%s", node->field->name, gap);
	if (kind < 3) {
		node->op = (enum model_op)model_below(6);
		node->negate = 0;
		model_put(text, "%s%s%s",
			node->op == MODEL_EQ && model_below(2) ? "==" : ops[node->op], gap,
			node->values[0].text);
	} else if (kind == 3) {
		node->op = MODEL_NULL;
		model_put(text, " is %snull", node->negate ? "not " : "");
	} else if (kind == 4) {
		node->op = MODEL_IN;
		node->value_cnt = 1 + model_below(3);
		model_put(text, " %sin (", node->negate ? "not " : "");
		for (uint32_t i = 0; i < node->value_cnt; i++)
			model_put(
				text, "%s%s", i ? gap[0] ? " , " : "," : "", node->values[i].text);
		model_put(text, ")");
	} else {
		node->op = MODEL_BETWEEN;
		model_put(text, " %sbetween %s and %s", node->negate ? "NOT " : "",
			node->values[0].text, node->values[1].text);
	}
	return node;
}

static inline void model_free(struct model_node *node)
{
	if (!node)
		return;
	model_free(node->left);
	model_free(node->right);
	free(node);
}

/* ---- truth ----------------------------------------------------------------------------------- */

/* -1, 0, 1; 2: the field is undefined. */
static inline int model_order(
	const struct stoup_field *field, const uint8_t *record, const struct model_value *value)
{
	struct model_value own = {.exp10 = field->exp10};
	uint64_t bits = 0;
	double f64;
	float f32;

	if (field->type == STOUP_TYPE_CHAR && field->cnt > 1) {
		char mine[16] = "";

		memcpy(mine, record + field->off, field->cnt);
		return (strcmp(mine, value->chars) > 0) - (strcmp(mine, value->chars) < 0);
	}
	memcpy(&bits, record + field->off, stoup_type_len(field->type));
	if ((field->flags & STOUP_FIELD_NULL) && bits == field->null_bits)
		return 2;
	if (field->type == STOUP_TYPE_CHAR) {
		char mine[2] = {(char)bits, 0};

		return (strcmp(mine, value->chars) > 0) - (strcmp(mine, value->chars) < 0);
	}
	if (field->type == STOUP_TYPE_F64 || field->type == STOUP_TYPE_F32) {
		memcpy(&f64, &bits, 8);
		memcpy(&f32, &bits, 4);
		if (field->type == STOUP_TYPE_F32)
			f64 = (double)f32;
		return f64 != f64 ? 2 : (f64 > value->f64) - (f64 < value->f64);
	}
	own.digits = bits;
	if (field->type % 2 == 0)
		own.digits = field->type == STOUP_TYPE_I8    ? (int8_t)bits
		             : field->type == STOUP_TYPE_I16 ? (int16_t)bits
		             : field->type == STOUP_TYPE_I32 ? (int32_t)bits
		                                             : (int64_t)bits;
	if (!(field->flags & STOUP_FIELD_TIME)) {
		model_wide other = value->digits;

		for (int e = own.exp10; e > value->exp10; e--)
			own.digits *= 10;
		for (int e = value->exp10; e > own.exp10; e--)
			other *= 10;
		return (own.digits > other) - (own.digits < other);
	}
	return (own.digits > value->digits) - (own.digits < value->digits);
}

static inline int model_test(enum model_op op, int order)
{
	return op == MODEL_EQ   ? order == 0
	       : op == MODEL_NE ? order != 0
	       : op == MODEL_LT ? order < 0
	       : op == MODEL_LE ? order <= 0
	       : op == MODEL_GT ? order > 0
	                        : order >= 0;
}

/* 1, 0, or -1 for unknown. */
static inline int model_truth(const struct model_node *node, const uint8_t *record)
{
	int left, right, found = 0;

	if (node->op == MODEL_AND || node->op == MODEL_OR) {
		left = model_truth(node->left, record);
		right = model_truth(node->right, record);
		if (node->op == MODEL_AND)
			return left == 0 || right == 0 ? 0 : left < 0 || right < 0 ? -1 : 1;
		return left == 1 || right == 1 ? 1 : left < 0 || right < 0 ? -1 : 0;
	}
	if (node->op == MODEL_NOT) {
		left = model_truth(node->left, record);
		return left < 0 ? -1 : !left;
	}
	left = model_order(node->field, record, &node->values[0]);
	right = model_order(node->field, record, &node->values[1]);
	if (node->op == MODEL_NULL)
		return (left == 2) != node->negate;
	if (left == 2)
		return -1;
	if (node->op == MODEL_IN) {
		for (uint32_t i = 0; i < node->value_cnt; i++)
			found |= model_order(node->field, record, &node->values[i]) == 0;
		return found != node->negate;
	}
	if (node->op == MODEL_BETWEEN)
		return (left >= 0 && right <= 0) != node->negate;
	return model_test(node->op, left);
}

#endif
