/* SPDX-License-Identifier: Apache-2.0 */
/* doc_match.c - a filter asked: one walk over a document, by the plan (see doc_plan.h).
 *
 *      object  [key value][key value][key value] ...
 *               |          \ a place: its tests are asked, what lies inside is walked
 *               \ none: passed over, whatever it holds
 *
 * The walk of a container ends with the last place that the filter has there, the walk of the document
 * where one test decides. Nothing is allocated, and nothing is kept from one document to the next.
 *
 * Invariant: a test holds at most once a document: of a key that is there twice the first counts.
 */
#include "shm/doc_match.h"

#include "shm/doc_plan.h"

/* What a walk comes to. */
#define GO_ON   2 /* nothing is decided yet */
#define DECIDED 1 /* the whole holds */
#define DENIED  0 /* it does not */

struct ask {
	const struct stoup_doc_filter *filter;
	const uint8_t *end; /* of the document */
	uint64_t held[STOUP_DOC_NODE_WORDS];
};

/* ---- one test ---------------------------------------------------------------------------------- */

/* The order of a value of a document and that of a test. 0 where they are of kinds that have none. */
static int compare(const struct stoup_doc_node *node, const struct stoup_doc *value, int *ret)
{
	struct stoup_doc_number number;

	if (node->text && value->type == STOUP_DOC_STRING) {
		const char *text = (const char *)value->payload;

		if (!stoup_doc_decimal_is(text, value->payload_len))
			return 0;
		*ret = stoup_doc_decimal_compare(
			text, value->payload_len, node->text, node->text_len);
		return 1;
	}
	if (node->text) {
		stoup_doc_number(value, &number);
		if (number.form == STOUP_DOC_FORM_NONE)
			return 0;
	} else if (value->type != node->value.type) {
		return 0;
	}
	*ret = stoup_doc_compare(value, &node->value);
	return 1;
}

static int holds(enum stoup_doc_op op, int order)
{
	switch ((int)op) {
	case STOUP_DOC_EQ:
		return order == 0;
	case STOUP_DOC_NE:
		return order != 0;
	case STOUP_DOC_LT:
		return order < 0;
	case STOUP_DOC_LE:
		return order <= 0;
	case STOUP_DOC_GT:
		return order > 0;
	case STOUP_DOC_GE:
		return order >= 0;
	default:
		return 1; /* exists */
	}
}

/* An integer that is stored as one of at most 64 bits. */
static inline int integer_of(const struct stoup_doc *value, int64_t *ret)
{
	if (value->type == STOUP_DOC_EXTENDED && value->payload_len == 9 &&
		value->payload[0] == STOUP_DOC_EXTENDED_I64)
		*ret = (int64_t)stoup_doc_load64(value->payload + 1);
	else if (value->type == STOUP_DOC_INT && value->payload_len == 4)
		*ret = stoup_doc_load32(value->payload);
	else
		return 0;
	return 1;
}

static inline int test(
	const struct ask *ask, const struct stoup_doc_node *node, const struct stoup_doc *value)
{
	int64_t integer;
	int order;

	if (node->fast == STOUP_DOC_FAST_TEXT) {
		int same = value->type == STOUP_DOC_STRING &&
		           value->payload_len == node->value.payload_len &&
		           stoup_doc_same(value->payload, ask->end, value->payload_len, node->word,
				   node->mask, (const char *)node->value.payload);

		return same == (node->op == STOUP_DOC_EQ);
	}
	if (node->fast == STOUP_DOC_FAST_INTEGER && integer_of(value, &integer))
		return holds(node->op, (integer > node->integer) - (integer < node->integer));
	if (node->op == STOUP_DOC_EXISTS)
		return 1;
	return compare(node, value, &order) ? holds(node->op, order) : node->op == STOUP_DOC_NE;
}

/* ---- the walk ------------------------------------------------------------------------------------ */

static int walk(
	struct ask *ask, const struct stoup_doc_place *place, const struct stoup_doc *container);

/* A value that the filter asks for: its tests, and what lies inside. */
static inline int visit(
	struct ask *ask, const struct stoup_doc_place *place, const struct stoup_doc *value)
{
	uint32_t next;

	for (uint32_t idx = place->test; idx != STOUP_DOC_NODE_CAP; idx = next) {
		const struct stoup_doc_node *node = &ask->filter->nodes[idx];
		int yes = test(ask, node, value);

		next = node->next;
		if (yes && node->decides_yes)
			return DECIDED;
		if (!yes && node->decides_no)
			return DENIED;
		ask->held[idx / 64] |= (uint64_t)yes << idx % 64;
	}
	return place->kid_cnt ? walk(ask, place, value) : GO_ON;
}

/* Which places of a container were come by. */
struct seen {
	uint64_t bits[STOUP_DOC_NODE_WORDS];
	uint32_t left;
};

static inline int seen_take(struct seen *seen, uint32_t idx)
{
	uint64_t bit = UINT64_C(1) << idx % 64;

	if (seen->bits[idx / 64] & bit)
		return 0;
	seen->bits[idx / 64] |= bit;
	seen->left--;
	return 1;
}

static int walk_object(
	struct ask *ask, const struct stoup_doc_place *place, const struct stoup_doc *object)
{
	const struct stoup_doc_place *kids = ask->filter->places + place->kid;
	const uint8_t *at = object->payload, *end = stoup_doc_end(object);
	uint32_t name_cnt = place->name_cnt;
	struct seen seen = {.left = name_cnt};

	while (seen.left > 0 && at < end) {
		struct stoup_doc name, value;

		if (stoup_doc_read(at, end, &name) || name.type != STOUP_DOC_STRING ||
			stoup_doc_read(stoup_doc_end(&name), end, &value))
			return -EBADMSG;
		at = stoup_doc_end(&value);
		for (uint32_t i = 0; i < name_cnt; i++) {
			int rc;

			if (!stoup_doc_step_is(kids[i].step, &name, ask->end))
				continue;
			rc = seen_take(&seen, i) ? visit(ask, &kids[i], &value) : GO_ON;
			if (rc != GO_ON)
				return rc;
			break;
		}
	}
	return GO_ON;
}

static int walk_array(
	struct ask *ask, const struct stoup_doc_place *place, const struct stoup_doc *array)
{
	const struct stoup_doc_place *kids = ask->filter->places + place->kid + place->name_cnt;
	const uint8_t *at = array->payload, *end = stoup_doc_end(array);
	uint32_t left = place->kid_cnt - place->name_cnt, cnt = left;

	for (uint32_t idx = 0; left > 0 && at < end; idx++) {
		struct stoup_doc value;

		if (stoup_doc_read(at, end, &value))
			return -EBADMSG;
		at = stoup_doc_end(&value);
		for (uint32_t i = 0; i < cnt; i++) {
			int rc;

			if (kids[i].step->idx != idx)
				continue;
			left--;
			rc = visit(ask, &kids[i], &value);
			if (rc != GO_ON)
				return rc;
			break;
		}
	}
	return GO_ON;
}

static int walk(
	struct ask *ask, const struct stoup_doc_place *place, const struct stoup_doc *container)
{
	if (container->type == STOUP_DOC_OBJECT)
		return walk_object(ask, place, container);
	if (container->type == STOUP_DOC_ARRAY)
		return walk_array(ask, place, container);
	return GO_ON;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

/* What the tests that held come to. */
static int join(struct ask *ask)
{
	const struct stoup_doc_filter *filter = ask->filter;
	uint64_t yes = 0;

	for (uint32_t i = 0; i < filter->node_cnt; i++) {
		const struct stoup_doc_node *node = &filter->nodes[i];
		uint64_t left = ask->held[node->left / 64] >> node->left % 64,
			 right = ask->held[node->right / 64] >> node->right % 64;

		if (node->op == STOUP_DOC_AND)
			yes = left & right;
		else if (node->op == STOUP_DOC_OR)
			yes = left | right;
		else if (node->op == STOUP_DOC_NOT)
			yes = ~left;
		else
			yes = ask->held[i / 64] >> i % 64;
		ask->held[i / 64] |= (yes & 1) << i % 64;
	}
	return yes & 1;
}

static inline int match(const struct stoup_doc_filter *filter, const struct stoup_doc *doc)
{
	struct ask ask = {.filter = filter, .end = stoup_doc_end(doc)};
	int rc = visit(&ask, filter->places, doc);

	return rc == GO_ON ? join(&ask) : rc;
}

int stoup_doc_match(const struct stoup_doc_filter *filter, const struct stoup_doc *doc)
{
	return match(filter, doc);
}

uint32_t stoup_doc_match_run(const struct stoup_doc_filter *filter, const uint32_t *table,
	uint32_t from, uint32_t end, uint32_t *idx, uint32_t cap, uint64_t *broken_cnt)
{
	uint32_t found_cnt = 0;

	for (uint32_t i = from; i < end && found_cnt < cap; i++) {
		const struct stoup_message_head *head =
			(const void *)((const uint8_t *)(table + i) - table[i]);
		const uint8_t *at = (const uint8_t *)(head + 1), *behind = at + head->len;
		struct stoup_doc doc;
		int rc = stoup_doc_read(at, behind, &doc);

		if (rc == 0)
			rc = stoup_doc_end(&doc) == behind ? match(filter, &doc) : -EBADMSG;
		if (rc > 0)
			idx[found_cnt++] = i;
		else if (rc < 0)
			++*broken_cnt;
	}
	return found_cnt;
}
