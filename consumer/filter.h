/* SPDX-License-Identifier: Apache-2.0 */
/* filter.h - the inside of a filter: a program of comparisons, shared by its making (filter_parse.c, filter_bind.c) and
 * its use (filter.c).
 *
 *      price > 100.25 and (side = 'B' or size in (1, 2))
 *
 *      nodes   RANGE price   RANGE side   RANGE size   RANGE size   OR   OR   AND
 *              ------------------------- postfix --------------------------------> run on a stack of bitmaps
 *
 * Whatever is compared with whatever, what remains is a range of integers: of the values themselves, or for floats of
 * their keys, which are integers in the same order (stoup_filter_f64_key). A comparison with a decimal that the field
 * can not hold has moved to the next value that it can. `not` was pushed down to the comparisons, so that none is left: a
 * value that is undefined matches neither a comparison nor its opposite.
 *
 * Invariant: nodes are in postfix order, and never need more than STOUP_FILTER_STACK places; every field named lies
 * inside `stride`.
 *
 * Concurrency: immutable once it is made.
 */
#ifndef STOUP_CONSUMER_FILTER_H
#define STOUP_CONSUMER_FILTER_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include "consumer/stoup_filter.h"
#include "shm/decimal.h"

#define STOUP_FILTER_TEXT_CAP 16384u
#define STOUP_FILTER_TEST_CAP 512u /* comparisons; values of `in` count */
#define STOUP_FILTER_NODE_CAP (2 * STOUP_FILTER_TEST_CAP)
#define STOUP_FILTER_NEST_CAP 64u
/* Each level may have the left sides of an `or` and an `and` wait, and that of the pair that `in` or `between` is. */
#define STOUP_FILTER_STACK (2 * STOUP_FILTER_NEST_CAP + 4)

enum stoup_filter_op {
	STOUP_FILTER_NEVER,
	STOUP_FILTER_ALWAYS,
	STOUP_FILTER_RANGE, /* low <= value <= high (flip: not so), and the value is defined */
	STOUP_FILTER_NULL,  /* undefined (flip: defined) */
	STOUP_FILTER_TEXT,  /* of several bytes */
	STOUP_FILTER_AND,
	STOUP_FILTER_OR,
};

/* Which orders of (field, text) match: bits of stoup_filter_node.orders. */
#define STOUP_FILTER_LESS    1u
#define STOUP_FILTER_EQUAL   2u
#define STOUP_FILTER_GREATER 4u

struct stoup_filter_node {
	uint8_t op, type, flip;
	uint8_t has_null; /* null_bits stand for undefined */
	uint8_t orders;   /* TEXT */
	uint8_t zero;
	uint16_t cnt;       /* of the field */
	uint32_t off;       /* of the field */
	uint32_t field_idx; /* in the schema */
	uint32_t text_off, text_len;
	uint32_t zone_off, zone_flag; /* of the field in a row of zone maps; 0: it has none */
	stoup_wide low, high;         /* RANGE; low <= high */
	uint64_t null_bits;
};

struct stoup_filter {
	char name[STOUP_SCHEMA_NAME_CAP];
	uint64_t hash;
	uint32_t stride, node_cnt;
	uint32_t zone_len;      /* bytes of a row that are looked at */
	_Atomic uint32_t users; /* its maker, and cursors */
	struct stoup_filter_node *nodes;
	char *texts;
};

/* A decimal, a time or a text that a field is compared with. */
struct stoup_filter_word {
	const char *text;
	size_t len;
};

enum stoup_filter_compare {
	STOUP_FILTER_EQ,
	STOUP_FILTER_NE,
	STOUP_FILTER_LT,
	STOUP_FILTER_LE,
	STOUP_FILTER_GT,
	STOUP_FILTER_GE,
};

/* ---- filter_bind.c --------------------------------------------------------------------------- */

/* One comparison as a node; of a text of several bytes, node->text_off stays the caller's. 0; -EINVAL with a text that
 * begins with the field's name. */
int stoup_filter_bind(const struct stoup_field *field, enum stoup_filter_compare compare,
	const struct stoup_filter_word *word, struct stoup_filter_node *ret,
	struct stoup_error *err);

/* `between`: 1 and a node, or 0: these are two comparisons of texts. */
int stoup_filter_bind_between(const struct stoup_field *field, int negate,
	const struct stoup_filter_node *low, const struct stoup_filter_node *high,
	struct stoup_filter_node *ret);

/* `is null`, `is not null`. */
void stoup_filter_bind_null(
	const struct stoup_field *field, int negate, struct stoup_filter_node *ret);

/* ---- filter_zone.c --------------------------------------------------------------------------- */

/* Where the filter's fields are in rows of zone maps; after the filter was made. */
void stoup_filter_zone_bind(struct stoup_filter *filter, const struct stoup_schema *schema);

/* Does a row of `len` bytes (or more) rule out that any record of its segment matches? `row` may be NULL, and may say
 * anything: it comes from another process. */
int stoup_filter_zone_excludes(const struct stoup_filter *filter, const uint8_t *row, uint64_t len);

/* One user more; stoup_filter_destroy is one less. */
struct stoup_filter *stoup_filter_acquire(struct stoup_filter *filter);

/* Integers in the order of floats; -0 and 0 differ by 1, NaNs lie beyond the infinities. */
static inline int64_t stoup_filter_f64_key(uint64_t bits)
{
	int64_t key = (int64_t)bits;

	return key < 0 ? (int64_t)(~bits | UINT64_C(1) << 63) : key;
}

static inline int32_t stoup_filter_f32_key(uint32_t bits)
{
	int32_t key = (int32_t)bits;

	return key < 0 ? (int32_t)(~bits | UINT32_C(1) << 31) : key;
}

/* ---- filter_parse.c -------------------------------------------------------------------------- */

/* Fill filter->nodes and texts, which are allocated. 0, -EINVAL or -ENOMEM with text. */
int stoup_filter_parse(struct stoup_filter *filter, const struct stoup_schema *schema,
	const char *text, struct stoup_error *err);

#endif
