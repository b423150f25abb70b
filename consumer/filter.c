/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - a filter's life, and its run over records.
 *
 *      records (strided)  --compare, 1024 at a time--> a byte each --pack--> 1024 bits
 *                                                                              | and, or on the stack
 *                                              numbers <--bits that are set-- 1024 bits
 *
 * A comparison is one subtraction and one unsigned comparison in the width of the field: value - low <= high - low.
 * Signed and unsigned integers and the keys of floats are alike in that. The loops have no branch and no call; a
 * column is first brought together, since the loads have a stride and what follows is done by vectors.
 *
 * Concurrency: a filter is only read.
 */
#include "consumer/filter.h"
#include <errno.h>
#include <stdlib.h>

#define CHUNK      1024u /* records at a time */
#define CHUNK_BITS (CHUNK / 64)

/* What a comparison looks at. */
struct column {
	const uint8_t *at; /* the field in the first record */
	size_t stride;
	uint32_t cnt; /* records, at most CHUNK */
};

/* ---- comparisons ----------------------------------------------------------------------------- */

/* On the stack of a run; `keep` is where all CHUNK places are filled, so that loops have a fixed length. */
#define GATHER(type)                                                                               \
	type values[CHUNK];                                                                        \
                                                                                                   \
	for (uint32_t i = 0; i < column->cnt; i++)                                                 \
		memcpy(&values[i], column->at + i * column->stride, sizeof(type));                 \
	for (uint32_t i = column->cnt; i < CHUNK; i++)                                             \
	values[i] = 0

#define RANGE_INT(name, type)                                                                      \
	static void name(                                                                          \
		const struct stoup_filter_node *node, const struct column *column, uint8_t *mask)  \
	{                                                                                          \
		const type low = (type)node->low, reach = (type)(node->high - node->low);          \
		const type undefined = (type)node->null_bits;                                      \
		const uint8_t flip = node->flip, any = !node->has_null;                            \
		GATHER(type);                                                                      \
		for (uint32_t i = 0; i < CHUNK; i++)                                               \
			mask[i] = (uint8_t)((((type)(values[i] - low) <= reach) ^ flip) &          \
					    ((values[i] != undefined) | any));                     \
	}

#define RANGE_FLOAT(name, type, signed_type, infinity)                                             \
	static void name(                                                                          \
		const struct stoup_filter_node *node, const struct column *column, uint8_t *mask)  \
	{                                                                                          \
		const type low = (type)node->low, reach = (type)(node->high - node->low);          \
		const type undefined = (type)node->null_bits;                                      \
		const type sign = (type)1 << (8 * sizeof(type) - 1);                               \
		const uint8_t flip = node->flip, any = !node->has_null;                            \
		GATHER(type);                                                                      \
		for (uint32_t i = 0; i < CHUNK; i++) {                                             \
			type bits = values[i],                                                     \
			     negative = (type)0 - (bits >> (8 * sizeof(type) - 1));                \
			type key = bits ^ (negative & (type)~sign);                                \
                                                                                                   \
			mask[i] = (uint8_t)((((type)(key - low) <= reach) ^ flip) &                \
					    ((bits & (type)~sign) <= (infinity)) &                 \
					    ((bits != undefined) | any));                          \
		}                                                                                  \
	}

RANGE_INT(range_8, uint8_t)
RANGE_INT(range_16, uint16_t)
RANGE_INT(range_32, uint32_t)
RANGE_INT(range_64, uint64_t)
RANGE_FLOAT(range_f32, uint32_t, int32_t, UINT32_C(0x7f800000))
RANGE_FLOAT(range_f64, uint64_t, int64_t, UINT64_C(0x7ff0000000000000))

static void range(const struct stoup_filter_node *node, const struct column *column, uint8_t *mask)
{
	switch (node->type) {
	case STOUP_TYPE_U16:
	case STOUP_TYPE_I16:
		range_16(node, column, mask);
		return;
	case STOUP_TYPE_U32:
	case STOUP_TYPE_I32:
		range_32(node, column, mask);
		return;
	case STOUP_TYPE_U64:
	case STOUP_TYPE_I64:
		range_64(node, column, mask);
		return;
	case STOUP_TYPE_F32:
		range_f32(node, column, mask);
		return;
	case STOUP_TYPE_F64:
		range_f64(node, column, mask);
		return;
	default:
		range_8(node, column, mask);
	}
}

/* The values that are defined are those of all there are; the rest is undefined. */
static void undefined(
	const struct stoup_filter_node *node, const struct column *column, uint8_t *mask)
{
	const struct stoup_field field = {.type = node->type};
	struct stoup_filter_node all = *node;
	int is_f64 = field.type == STOUP_TYPE_F64, is_f32 = field.type == STOUP_TYPE_F32;

	all.low = is_f64   ? (stoup_wide)stoup_filter_f64_key(UINT64_C(0xfff0000000000000))
	          : is_f32 ? (stoup_wide)stoup_filter_f32_key(0xff800000u)
	                   : 0;
	all.high = is_f64   ? (stoup_wide)INT64_C(0x7ff0000000000000)
	           : is_f32 ? (stoup_wide)0x7f800000
	                    : UINT64_MAX;
	all.flip = 0;
	range(&all, column, mask);
	if (!node->flip)
		for (uint32_t i = 0; i < CHUNK; i++)
			mask[i] ^= 1;
}

/* Up to the field's first NUL: which order matches. */
static void text(const struct stoup_filter *filter, const struct stoup_filter_node *node,
	const struct column *column, uint8_t *mask)
{
	const uint8_t *wanted = (const uint8_t *)filter->texts + node->text_off;
	uint32_t cnt = node->cnt, len = node->text_len;

	for (uint32_t i = 0; i < column->cnt; i++) {
		const uint8_t *at = column->at + i * column->stride;
		uint32_t j = 0;
		uint8_t order;

		while (j < cnt && j < len && at[j] && at[j] == wanted[j])
			j++;
		if (j < len)
			order = j < cnt && at[j] > wanted[j] ? STOUP_FILTER_GREATER
			                                     : STOUP_FILTER_LESS;
		else
			order = j < cnt && at[j] ? STOUP_FILTER_GREATER : STOUP_FILTER_EQUAL;
		mask[i] = (node->orders & order) != 0;
	}
	memset(mask + column->cnt, 0, CHUNK - column->cnt);
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Bytes of 0 and 1 to bits, eight by one multiplication: byte i comes to bit 56 + i. */
static void pack(const uint8_t *mask, uint64_t *bits)
{
	for (uint32_t i = 0; i < CHUNK_BITS; i++) {
		uint64_t word = 0;

		for (uint32_t j = 0; j < 8; j++) {
			uint64_t eight;

			memcpy(&eight, mask + 64 * i + 8 * j, sizeof(eight));
			word |= (eight * UINT64_C(0x0102040810204080) >> 56) << (8 * j);
		}
		bits[i] = word;
	}
}

static void compare(const struct stoup_filter *filter, const struct stoup_filter_node *node,
	const uint8_t *base, size_t stride, uint32_t cnt, uint64_t *bits)
{
	const struct column column = {base + node->off, stride, cnt};
	uint8_t mask[CHUNK];

	if (node->op == STOUP_FILTER_NEVER || node->op == STOUP_FILTER_ALWAYS) {
		memset(bits, node->op == STOUP_FILTER_ALWAYS ? 0xff : 0, CHUNK / 8);
		return;
	}
	if (node->op == STOUP_FILTER_RANGE)
		range(node, &column, mask);
	else if (node->op == STOUP_FILTER_NULL)
		undefined(node, &column, mask);
	else
		text(filter, node, &column, mask);
	pack(mask, bits);
}

/* Which of cnt records match: the bits of *ret, those from cnt on mean nothing. */
static void run(const struct stoup_filter *filter, const uint8_t *base, size_t stride, uint32_t cnt,
	uint64_t ret[CHUNK_BITS])
{
	uint64_t stack[STOUP_FILTER_STACK][CHUNK_BITS];
	uint32_t top = 0;

	for (uint32_t i = 0; i < filter->node_cnt; i++) {
		const struct stoup_filter_node *node = &filter->nodes[i];
		uint64_t *left, *right;

		if (node->op != STOUP_FILTER_AND && node->op != STOUP_FILTER_OR) {
			compare(filter, node, base, stride, cnt, stack[top++]);
			continue;
		}
		right = stack[--top];
		left = stack[top - 1];
		for (uint32_t j = 0; j < CHUNK_BITS; j++)
			left[j] = node->op == STOUP_FILTER_AND ? left[j] & right[j]
			                                       : left[j] | right[j];
	}
	memcpy(ret, stack[0], CHUNK / 8);
}

/* The numbers of set bits, from `number` on, of the first cnt: how many were written. */
static size_t numbers(
	const uint64_t *bits, uint32_t cnt, uint64_t number, uint32_t *idx, size_t cap)
{
	size_t found = 0;

	for (uint32_t i = 0; i < cnt && found < cap; i += 64) {
		uint64_t word = bits[i / 64];

		if (cnt - i < 64)
			word &= (UINT64_C(1) << (cnt - i)) - 1;
		for (; word && found < cap; word &= word - 1)
			idx[found++] = (uint32_t)(number + i + (uint32_t)__builtin_ctzll(word));
	}
	return found;
}

int64_t stoup_filter_span(const struct stoup_filter *filter, const struct stoup_span *span,
	uint64_t from, uint32_t *idx, size_t cap)
{
	const uint8_t *base = span->base;
	uint64_t bits[CHUNK_BITS];
	size_t found = 0;

	if (span->stride != filter->stride || span->schema->hash != filter->hash ||
		span->schema->stride != filter->stride)
		return -EINVAL;
	if (span->record_cnt > UINT64_C(1) << 32)
		return -EFBIG;
	while (from < span->record_cnt && found < cap) {
		uint64_t left = span->record_cnt - from;
		uint32_t cnt = left < CHUNK ? (uint32_t)left : CHUNK;

		run(filter, base + from * span->stride, span->stride, cnt, bits);
		found += numbers(bits, cnt, from, idx + found, cap - found);
		from += cnt;
	}
	return (int64_t)found;
}

int stoup_filter_match(const struct stoup_filter *filter, const void *record)
{
	uint64_t bits[CHUNK_BITS];

	run(filter, record, 0, 1, bits);
	return (int)(bits[0] & 1);
}

/* ---- life ------------------------------------------------------------------------------------ */

int stoup_filter_create(const struct stoup_schema *schema, const char *text,
	struct stoup_filter **ret, struct stoup_error *err)
{
	struct stoup_filter *filter;
	int rc;

	if (!schema || !text)
		return stoup_error_set(err, -EINVAL, "no schema or no filter was given");
	if (schema->flags & STOUP_SCHEMA_VARIABLE)
		return stoup_error_set(err, -EINVAL,
			"schema %s holds messages, which have no fields: documents are asked by "
			"stoup_doc_filter_create",
			schema->name);
	if (strnlen(text, STOUP_FILTER_TEXT_CAP) == STOUP_FILTER_TEXT_CAP)
		return stoup_error_set(err, -EINVAL, "the filter is longer than %u bytes",
			STOUP_FILTER_TEXT_CAP - 1);
	filter = calloc(1, sizeof(*filter));
	if (filter) {
		filter->nodes = calloc(STOUP_FILTER_NODE_CAP, sizeof(*filter->nodes));
		filter->texts = malloc(STOUP_FILTER_TEXT_CAP);
	}
	if (filter)
		atomic_init(&filter->users, 1);
	if (!filter || !filter->nodes || !filter->texts) {
		stoup_filter_destroy(filter);
		return stoup_error_set(err, -ENOMEM, "no memory for a filter");
	}
	filter->hash = schema->hash;
	filter->stride = schema->stride;
	rc = stoup_filter_parse(filter, schema, text, err);
	if (rc < 0) {
		stoup_filter_destroy(filter);
		return rc;
	}
	stoup_filter_zone_bind(filter, schema);
	*ret = filter;
	return 0;
}

struct stoup_filter *stoup_filter_acquire(struct stoup_filter *filter)
{
	atomic_fetch_add_explicit(&filter->users, 1, memory_order_relaxed);
	return filter;
}

void stoup_filter_destroy(struct stoup_filter *filter)
{
	/* Acquire and release: what others read of it comes before it is freed. */
	if (!filter || atomic_fetch_sub_explicit(&filter->users, 1, memory_order_acq_rel) > 1)
		return;
	free(filter->nodes);
	free(filter->texts);
	free(filter);
}
