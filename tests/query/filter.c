/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - filters over fields, against an evaluation of the same tree by plain integers.
 *
 *      tree --text--> stoup_filter_create --> stoup_filter_span, stoup_filter_match, stoup_scan_where
 *        \--true, false or unknown for each record--> the same records
 *
 * Unknown is what SQL makes of an undefined value: `not` leaves it, `and` and `or` are Kleene's, and what is unknown at
 * the end does not match. Numbers are compared doubled, so that a value half a step beside each record's can be asked for.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/stoup_filter.h"
#include "query/query.h"

#define NODE_CAP  64
#define FIELD_CAP 64
#define TEXT_CAP  96
#define IDX_CAP   4096

enum op {
	OP_AND,
	OP_OR,
	OP_NOT,
	OP_LESS,
	OP_LESS_EQUAL,
	OP_EQUAL,
	OP_UNEQUAL,
	OP_GREATER_EQUAL,
	OP_GREATER,
	OP_NULL,
	OP_IN,
	OP_BETWEEN
};

struct value {
	query_wide twice; /* a number, doubled: of a price in steps of its scale */
	double f64;
	char bytes[TEXT_CAP]; /* a text */
	uint32_t len;
};

struct node {
	enum op op;
	int negated; /* is not null, not in, not between */
	uint32_t kids[2];
	const struct stoup_field *field;
	struct value values[3];
	uint32_t value_cnt;
};

struct tree {
	const struct query_series *s;
	const struct stoup_field *fields[FIELD_CAP];
	uint32_t field_cnt, node_cnt;
	struct node nodes[NODE_CAP];
	char text[8192];
	size_t len;
};

/* ---- values of records ----------------------------------------------------------------------- */

static int is_float(const struct stoup_field *f)
{
	return f->type == STOUP_TYPE_F32 || f->type == STOUP_TYPE_F64;
}

static int is_signed(const struct stoup_field *f)
{
	return f->type == STOUP_TYPE_I8 || f->type == STOUP_TYPE_I16 || f->type == STOUP_TYPE_I32 ||
	       f->type == STOUP_TYPE_I64;
}

/* 1, or 0 where it is undefined. */
static int field_value(const struct stoup_field *f, const uint8_t *record, struct value *ret)
{
	uint32_t len = stoup_type_len(f->type);
	uint64_t bits = 0;
	float f32;

	*ret = (struct value){0};
	if (f->type == STOUP_TYPE_CHAR) {
		memcpy(ret->bytes, record + f->off, f->cnt);
		while (ret->len < f->cnt && ret->bytes[ret->len])
			ret->len++;
		return 1;
	}
	memcpy(&bits, record + f->off, len);
	if ((f->flags & STOUP_FIELD_NULL) && bits == f->null_bits)
		return 0;
	if (is_float(f)) {
		memcpy(&ret->f64, &bits, sizeof(ret->f64));
		if (f->type == STOUP_TYPE_F32) {
			memcpy(&f32, &bits, sizeof(f32));
			ret->f64 = (double)f32;
		}
		return !isnan(ret->f64);
	}
	if (is_signed(f) && len < 8)
		bits = (uint64_t)((int64_t)(bits << (64 - 8 * len)) >> (64 - 8 * len));
	ret->twice = is_signed(f) ? (query_wide)(int64_t)bits * 2 : (query_wide)bits * 2;
	return 1;
}

static int compare(const struct stoup_field *f, const struct value *a, const struct value *b)
{
	uint32_t len = a->len < b->len ? a->len : b->len;
	int rc;

	if (is_float(f))
		return a->f64 < b->f64 ? -1 : a->f64 > b->f64;
	if (f->type != STOUP_TYPE_CHAR)
		return a->twice < b->twice ? -1 : a->twice > b->twice;
	rc = memcmp(a->bytes, b->bytes, len);
	if (rc == 0)
		return a->len < b->len ? -1 : a->len > b->len;
	return rc < 0 ? -1 : 1;
}

/* ---- evaluating ------------------------------------------------------------------------------ */

#define UNKNOWN (-1)

static int among(const struct node *n, const struct value *value)
{
	int found = 0;

	for (uint32_t i = 0; i < n->value_cnt; i++)
		found |= compare(n->field, value, &n->values[i]) == 0;
	return found;
}

static int compares(const struct node *n, const struct value *value)
{
	int order = compare(n->field, value, &n->values[0]);

	switch (n->op) {
	case OP_LESS:
		return order < 0;
	case OP_LESS_EQUAL:
		return order <= 0;
	case OP_EQUAL:
		return order == 0;
	case OP_UNEQUAL:
		return order != 0;
	case OP_GREATER_EQUAL:
		return order >= 0;
	case OP_GREATER:
		return order > 0;
	case OP_IN:
		return among(n, value) != n->negated;
	case OP_BETWEEN:
		return (order >= 0 && compare(n->field, value, &n->values[1]) <= 0) != n->negated;
	case OP_AND:
	case OP_OR:
	case OP_NOT:
	case OP_NULL:
		break;
	}
	abort();
}

static int evaluate(const struct tree *tree, uint32_t at, const uint8_t *record)
{
	const struct node *n = &tree->nodes[at];
	struct value value;
	int a, b;

	if (n->op == OP_NOT) {
		a = evaluate(tree, n->kids[0], record);
		return a == UNKNOWN ? UNKNOWN : !a;
	}
	if (n->op == OP_AND || n->op == OP_OR) {
		a = evaluate(tree, n->kids[0], record);
		b = evaluate(tree, n->kids[1], record);
		if (n->op == OP_AND)
			return a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : UNKNOWN;
		return a == 1 || b == 1 ? 1 : a == 0 && b == 0 ? 0 : UNKNOWN;
	}
	a = field_value(n->field, record, &value);
	if (n->op == OP_NULL)
		return (a == 0) != n->negated;
	return a ? compares(n, &value) : UNKNOWN;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static int usable(const struct stoup_field *f)
{
	if ((f->flags & STOUP_FIELD_HIDDEN) || f->type == STOUP_TYPE_BYTES)
		return 0;
	if (f->type == STOUP_TYPE_CHAR)
		return !(f->flags & STOUP_FIELD_NULL) && f->cnt < TEXT_CAP / 2;
	return f->exp10 <= 0;
}

static void number_pick(struct query_run *run, const struct stoup_field *f, struct value *v)
{
	int whole = (f->flags & (STOUP_FIELD_TIME | STOUP_FIELD_DURATION)) != 0;

	if (query_one_in(run, 3))
		v->twice += query_one_in(run, 2) ? 2 : -2;
	if (!whole && query_one_in(run, 5))
		v->twice += 1;
	if (!whole && query_one_in(run, 20))
		v->twice = ((query_wide)query_bits(run) - (query_wide)INT64_MAX) * 4;
	/* A time is an epoch by its magnitude: only of nanoseconds is it the same number. */
	if ((f->flags & STOUP_FIELD_TIME) &&
		(v->twice < 2 * (query_wide)INT64_C(100000000000000000) ||
			v->twice > 2 * (query_wide)INT64_MAX))
		v->twice = 2 * (query_wide)INT64_C(1700000000000001000);
	if ((f->flags & STOUP_FIELD_DURATION) && v->twice < 0 && !is_signed(f))
		v->twice = 0;
}

static void value_pick(struct query_run *run, const struct tree *tree, const struct stoup_field *f,
	struct value *ret)
{
	uint64_t len;
	const uint8_t *record = query_record(tree->s, query_below(run, tree->s->cnt), &len);

	if (!field_value(f, record, ret))
		*ret = (struct value){.twice = 2 * (query_wide)query_below(run, 100)};
	if (f->type == STOUP_TYPE_CHAR) {
		for (uint32_t i = 0; i < ret->len; i++)
			if (ret->bytes[i] < 0x21 || ret->bytes[i] > 0x7e || ret->bytes[i] == '\\')
				ret->bytes[i] = 'M';
		if (query_one_in(run, 4) && ret->len > 0)
			ret->bytes[ret->len - 1]++;
		if (query_one_in(run, 8))
			ret->len = ret->len > 0 ? ret->len - 1 : 0;
	} else if (is_float(f)) {
		ret->f64 = (double)(int64_t)query_below(run, 200) / 8.0 - 5.0;
	} else {
		number_pick(run, f, ret);
	}
}

static uint32_t leaf_pick(struct query_run *run, struct tree *tree)
{
	uint32_t at = tree->node_cnt++;
	struct node *n = &tree->nodes[at];

	*n = (struct node){.op = (enum op)(OP_LESS + query_below(run, 9))};
	n->field = tree->fields[query_below(run, tree->field_cnt)];
	n->negated = query_one_in(run, 2);
	n->value_cnt = n->op == OP_NULL ? 0 : n->op == OP_BETWEEN ? 2 : n->op == OP_IN ? 3 : 1;
	for (uint32_t i = 0; i < n->value_cnt; i++)
		value_pick(run, tree, n->field, &n->values[i]);
	return at;
}

static uint32_t node_pick(struct query_run *run, struct tree *tree, int depth)
{
	uint32_t at;
	enum op op;

	if (depth == 0 || tree->node_cnt + 4 > NODE_CAP || query_one_in(run, 3))
		return leaf_pick(run, tree);
	at = tree->node_cnt++;
	op = (enum op)(OP_AND + query_below(run, 3));
	tree->nodes[at] = (struct node){.op = op};
	tree->nodes[at].kids[0] = node_pick(run, tree, depth - 1);
	if (op != OP_NOT)
		tree->nodes[at].kids[1] = node_pick(run, tree, depth - 1);
	return at;
}

/* ---- the text -------------------------------------------------------------------------------- */

static void put(struct tree *tree, const char *text)
{
	int len = snprintf(tree->text + tree->len, sizeof(tree->text) - tree->len, "%s", text);

	tree->len += (size_t)len;
	if (tree->len >= sizeof(tree->text))
		abort();
}

/* twice / 2 * 10^exp10 as a decimal. */
static void put_number(struct tree *tree, query_wide twice, int exp10)
{
	char digits[64], out[80];
	int minus = twice < 0, len = 0, at = 0, places = -exp10;

	twice = minus ? -twice : twice;
	if (twice % 2) {
		twice = twice / 2 * 10 + 5;
		places++;
	} else {
		twice /= 2;
	}
	do
		digits[len++] = (char)('0' + (int)(twice % 10));
	while ((twice /= 10) > 0);
	while (len <= places)
		digits[len++] = '0';
	if (minus)
		out[at++] = '-';
	while (len > 0) {
		if (len == places)
			out[at++] = '.';
		out[at++] = digits[--len];
	}
	out[at] = 0;
	put(tree, out);
}

static void put_value(struct tree *tree, const struct stoup_field *f, const struct value *v)
{
	char text[2 * TEXT_CAP + 4];
	size_t at = 0;

	if (is_float(f)) {
		snprintf(text, sizeof(text), "%.17g", v->f64);
		put(tree, text);
	} else if (f->type != STOUP_TYPE_CHAR) {
		put_number(tree, v->twice, f->exp10);
	} else {
		text[at++] = '\'';
		for (uint32_t i = 0; i < v->len; i++) {
			text[at++] = v->bytes[i];
			if (v->bytes[i] == '\'')
				text[at++] = '\'';
		}
		text[at++] = '\'';
		text[at] = 0;
		put(tree, text);
	}
}

static void put_leaf(struct tree *tree, const struct node *n)
{
	static const char *const signs[] = {[OP_LESS] = " < ",
		[OP_LESS_EQUAL] = " <= ",
		[OP_EQUAL] = " = ",
		[OP_UNEQUAL] = " != ",
		[OP_GREATER_EQUAL] = " >= ",
		[OP_GREATER] = " > "};

	put(tree, n->field->name);
	if (n->op == OP_NULL) {
		put(tree, n->negated ? " is not null" : " is null");
		return;
	}
	if (n->op == OP_IN || n->op == OP_BETWEEN) {
		put(tree, n->negated ? " not" : "");
		put(tree, n->op == OP_IN ? " in (" : " between ");
	} else {
		put(tree, signs[n->op]);
	}
	for (uint32_t i = 0; i < n->value_cnt; i++) {
		put(tree, i == 0 ? "" : n->op == OP_IN ? ", " : " and ");
		put_value(tree, n->field, &n->values[i]);
	}
	put(tree, n->op == OP_IN ? ")" : "");
}

/* Parentheses only where the grammar needs them: `not` before `and` before `or`. */
static void put_node(struct tree *tree, uint32_t at, enum op outer)
{
	const struct node *n = &tree->nodes[at];
	int wrap = (n->op == OP_OR && outer != OP_OR) || (n->op == OP_AND && outer == OP_NOT);

	if (n->op > OP_NOT) {
		put_leaf(tree, n);
		return;
	}
	put(tree, wrap ? "(" : "");
	put(tree, n->op == OP_NOT ? "not " : "");
	put_node(tree, n->kids[0], n->op);
	if (n->op != OP_NOT) {
		put(tree, n->op == OP_AND ? " and " : " or ");
		put_node(tree, n->kids[1], n->op);
	}
	put(tree, wrap ? ")" : "");
}

/* ---- the query ------------------------------------------------------------------------------- */

/* Records of a span: exactly those that match are chosen, in pieces of any length. */
static void span_check(struct query_run *run, const struct tree *tree,
	const struct stoup_filter *filter, const struct stoup_span *span)
{
	uint32_t idx[IDX_CAP];
	size_t cap = query_one_in(run, 3) ? 1 + query_below(run, 5) : IDX_CAP;
	uint64_t from = 0, len, next = 0;
	int64_t cnt;

	query_span_check(run, tree->s, span);
	while (from < span->record_cnt) {
		cnt = stoup_filter_span(filter, span, from, idx, cap);
		if (cnt < 0 || (uint64_t)cnt > cap)
			query_fail(run, "stoup_filter_span: %" PRId64, cnt);
		for (int64_t i = 0; i <= cnt; i++) {
			uint64_t end = i < cnt                ? idx[i]
			               : (uint64_t)cnt == cap ? next
			                                      : span->record_cnt;

			if (i < cnt && (idx[i] < next || idx[i] >= span->record_cnt))
				query_fail(
					run, "places of a span: %u after %" PRIu64, idx[i], next);
			for (; next < end; next++)
				if (evaluate(tree, 0,
					    query_record(tree->s, span->ordinal + next, &len)) == 1)
					query_fail(run,
						"record %" PRIu64 " matches and is not chosen",
						span->ordinal + next);
			if (i == cnt)
				break;
			if (evaluate(tree, 0, query_record(tree->s, span->ordinal + next, &len)) !=
				1)
				query_fail(run, "record %" PRIu64 " is chosen and does not match",
					span->ordinal + next);
			next++;
		}
		from = (uint64_t)cnt == cap ? idx[cap - 1] + UINT64_C(1) : span->record_cnt;
	}
}

static void matches_check(
	struct query_run *run, const struct tree *tree, const struct stoup_filter *filter)
{
	for (int i = 0; i < 8; i++) {
		uint64_t len, at = query_below(run, tree->s->cnt);
		const uint8_t *record = query_record(tree->s, at, &len);

		if (stoup_filter_match(filter, record) != (evaluate(tree, 0, record) == 1))
			query_fail(run, "record %" PRIu64 ": stoup_filter_match is %d", at,
				stoup_filter_match(filter, record));
	}
}

/* Records that were left out must not match. */
static void left_out(struct query_run *run, const struct tree *tree, uint64_t from, uint64_t to)
{
	uint64_t len;

	for (uint64_t i = from; i < to; i++)
		if (evaluate(tree, 0, query_record(tree->s, i, &len)) == 1)
			query_fail(run, "record %" PRIu64 " matches, and was left out", i);
}

static void scan(struct query_run *run, const struct tree *tree, struct stoup_filter *filter)
{
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_range range;
	struct stoup_span span;
	struct query_found found;
	int backward, rc;

	query_say(run, " over ");
	query_range_pick(run, tree->s, &range);
	if (query_one_in(run, 2))
		range = (struct stoup_range){
			.flags = range.flags & (STOUP_BACKWARD | STOUP_DIRECT_OR_POOL)};
	range.limit = 0; /* of what is yielded, which is not what matches */
	range.flags &= ~STOUP_LAST;
	backward = (range.flags & STOUP_BACKWARD) != 0;
	found = query_bounds(run, tree->s, &range);
	if (stoup_scan_where(run->st, &tree->s->series, &range, filter, &cur, &err) < 0)
		query_fail(run, "stoup_scan_where: %s", err.text);
	while ((rc = stoup_next(cur, &span)) > 0) {
		if (span.ordinal < found.low || span.ordinal + span.record_cnt > found.high)
			query_fail(run,
				"a span [%" PRIu64 ", +%" PRIu64 ") outside of [%" PRIu64
				", %" PRIu64 ")",
				span.ordinal, span.record_cnt, found.low, found.high);
		span_check(run, tree, filter, &span);
		if (backward) {
			left_out(run, tree, span.ordinal + span.record_cnt, found.high);
			found.high = span.ordinal;
		} else {
			left_out(run, tree, found.low, span.ordinal);
			found.low = span.ordinal + span.record_cnt;
		}
	}
	if (rc < 0)
		query_fail(run, "stoup_next: %d %s", rc, stoup_cursor_error(cur)->text);
	left_out(run, tree, found.low, found.high);
	run->empty_cnt += stoup_cursor_left_out(cur);
	stoup_cursor_close(cur);
}

void query_filter(struct query_run *run)
{
	static struct tree tree;
	const struct stoup_schema *schema;
	struct stoup_filter *filter;
	struct stoup_error err = {0};

	memset(&tree, 0, sizeof(tree));
	do
		tree.s = query_filled_pick(run);
	while (tree.s->stride == 0);
	schema = tree.s->series.schema;
	for (uint32_t i = 0; i < schema->field_cnt && tree.field_cnt < FIELD_CAP; i++)
		if (usable(&schema->fields[i]))
			tree.fields[tree.field_cnt++] = &schema->fields[i];
	node_pick(run, &tree, (int)query_below(run, 5));
	put_node(&tree, 0, OP_OR);
	query_say(run, "%s where %s", tree.s->series.name, tree.text);
	if (stoup_filter_create(schema, tree.text, &filter, &err) < 0)
		query_fail(run, "stoup_filter_create: %s", err.text);
	matches_check(run, &tree, filter);
	scan(run, &tree, filter);
	stoup_filter_destroy(filter);
}
