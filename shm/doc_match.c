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

static inline int holds(const struct stoup_doc_node *node, int order)
{
	return node->orders >> (order < 0 ? 0 : order > 0 ? 2 : 1) & 1;
}

/* An integer that is stored as one of at most 64 bits. */
static inline int integer_of(struct stoup_doc_spot value, int64_t *ret)
{
	if (value.type == STOUP_DOC_EXTENDED && value.len == 9 &&
		value.payload[0] == STOUP_DOC_EXTENDED_I64)
		*ret = (int64_t)stoup_doc_load64(value.payload + 1);
	else if (value.type == STOUP_DOC_INT && value.len == 4)
		*ret = stoup_doc_load32(value.payload);
	else
		return 0;
	return 1;
}

/* A test of any kind. */
static int test_slow(const struct stoup_doc_node *node, struct stoup_doc_spot spot)
{
	struct stoup_doc value = stoup_doc_of_spot(spot);
	int order;

	if (node->op == STOUP_DOC_EXISTS)
		return 1;
	return compare(node, &value, &order) ? holds(node, order) : node->op == STOUP_DOC_NE;
}

__attribute__((always_inline)) static inline int test(
	const struct ask *ask, const struct stoup_doc_node *node, struct stoup_doc_spot value)
{
	int64_t integer;

	if (node->fast == STOUP_DOC_FAST_TEXT) {
		int same = value.type == STOUP_DOC_STRING && value.len == node->value.payload_len &&
		           stoup_doc_same(value.payload, ask->end, value.len, node->word,
				   node->mask, (const char *)node->value.payload);

		return same == (node->op == STOUP_DOC_EQ);
	}
	if (node->fast == STOUP_DOC_FAST_INTEGER && integer_of(value, &integer))
		return holds(node, (integer > node->integer) - (integer < node->integer));
	return test_slow(node, value);
}

/* ---- the walk ------------------------------------------------------------------------------------ */

static int walk(
	struct ask *ask, const struct stoup_doc_place *place, struct stoup_doc_spot container);

/* The tests at one place. */
__attribute__((always_inline)) static inline int tests(
	struct ask *ask, const struct stoup_doc_place *place, struct stoup_doc_spot value)
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
	return GO_ON;
}

/* A value that the filter asks for: its tests, and what lies inside. As long as there is one way on it is
 * followed here. */
__attribute__((always_inline)) static inline int visit(
	struct ask *ask, const struct stoup_doc_place *place, struct stoup_doc_spot value)
{
	int rc = tests(ask, place, value);

	while (rc == GO_ON && place->kid_cnt == 1) {
		place = ask->filter->places + place->kid;
		rc = stoup_doc_step_take(value, place->step, ask->end, &value);
		if (rc <= 0)
			return rc == 0 ? GO_ON : rc;
		rc = tests(ask, place, value);
	}
	return rc == GO_ON && place->kid_cnt > 1 ? walk(ask, place, value) : rc;
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

/* The place of a short member among `cnt` ones, cnt: none. */
static inline uint32_t kid_of(
	const struct stoup_doc_place *kids, uint32_t cnt, const struct stoup_doc_short *member)
{
	uint32_t i = 0;

	while (i < cnt && (member->word & kids[i].mask) != kids[i].word)
		i++;
	return i;
}

/* A member whose key is not short, or that ends near the end of the document: its length, 0 where it does not
 * lie inside its object. */
static size_t long_member(const struct stoup_doc_place *kids, uint32_t cnt, const uint8_t *at,
	const uint8_t *end, const uint8_t *limit, uint32_t *ret_kid, struct stoup_doc *ret_value)
{
	struct stoup_doc key, value;
	size_t len = stoup_doc_long(at, end, &key, &value);
	uint32_t i = 0;

	while (len > 0 && i < cnt && !stoup_doc_key_is(&key, kids[i].step, limit))
		i++;
	*ret_kid = i;
	if (len > 0)
		*ret_value = value;
	return len;
}

static int walk_object(
	struct ask *ask, const struct stoup_doc_place *place, struct stoup_doc_spot object)
{
	const struct stoup_doc_place *kids = ask->filter->places + place->kid;
	const uint8_t *at = object.payload, *end = at + object.len, *limit = ask->end;
	uint32_t name_cnt = place->name_cnt, kid;
	struct seen seen = {.left = name_cnt};
	size_t len;

	for (; at < end; at += len) {
		struct stoup_doc_short brief;
		struct stoup_doc_spot value;
		struct stoup_doc any;
		int rc;

		len = stoup_doc_short(at, limit, &brief);
		if (len > 0) {
			if (len > (size_t)(end - at))
				return -EBADMSG;
			kid = kid_of(kids, name_cnt, &brief);
			if (kid == name_cnt)
				continue;
			value = stoup_doc_short_value(brief, at);
		} else {
			len = long_member(kids, name_cnt, at, end, limit, &kid, &any);
			if (len == 0)
				return -EBADMSG;
			value = stoup_doc_spot_of(&any);
		}
		if (kid == name_cnt || !seen_take(&seen, kid))
			continue;
		rc = visit(ask, &kids[kid], value);
		if (rc != GO_ON)
			return rc;
		if (seen.left == 0)
			break;
	}
	return GO_ON;
}

static int walk_array(
	struct ask *ask, const struct stoup_doc_place *place, struct stoup_doc_spot array)
{
	const struct stoup_doc_place *kids = ask->filter->places + place->kid + place->name_cnt;
	const uint8_t *at = array.payload, *end = at + array.len;
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
			rc = visit(ask, &kids[i], stoup_doc_spot_of(&value));
			if (rc != GO_ON)
				return rc;
			break;
		}
	}
	return GO_ON;
}

static int walk(
	struct ask *ask, const struct stoup_doc_place *place, struct stoup_doc_spot container)
{
	if (container.type == STOUP_DOC_OBJECT && place->name_cnt > 0)
		return walk_object(ask, place, container);
	if (container.type == STOUP_DOC_ARRAY)
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

__attribute__((always_inline)) static inline int match(
	const struct stoup_doc_filter *filter, struct stoup_doc_spot doc)
{
	struct ask ask = {.filter = filter, .end = doc.payload + doc.len};
	int rc = visit(&ask, filter->places, doc);

	return rc == GO_ON ? join(&ask) : rc;
}

int stoup_doc_match(const struct stoup_doc_filter *filter, const struct stoup_doc *doc)
{
	return match(filter, stoup_doc_spot_of(doc));
}

/* Documents are walked in jumps, so that the processor does not see by itself that it is to read on: ask for
 * the lines that a message or two will come to some messages later. What lies there is not looked at. */
#define AHEAD_LEN 2048
#define LINE_LEN  64

static inline void ahead(const uint8_t *at)
{
	for (uintptr_t line = 0; line < 4; line++)
		__builtin_prefetch((const void *)((uintptr_t)at + AHEAD_LEN + line * LINE_LEN));
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
		int rc;

		ahead(at);
		rc = stoup_doc_read(at, behind, &doc);
		if (rc == 0)
			rc = stoup_doc_end(&doc) == behind ? match(filter, stoup_doc_spot_of(&doc))
			                                   : -EBADMSG;
		if (rc > 0)
			idx[found_cnt++] = i;
		else if (rc < 0)
			++*broken_cnt;
	}
	return found_cnt;
}
