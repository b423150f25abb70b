/* SPDX-License-Identifier: Apache-2.0 */
/* doc_plan.c - the tree of a filter's paths, and what one test decides (see doc_plan.h). */
#include "shm/doc_plan.h"

#include <stdlib.h>

/* The tests whose paths lead through one place. */
struct group {
	uint8_t tests[STOUP_DOC_NODE_CAP];
	uint32_t cnt;
};

static const struct stoup_doc_step *step_of(
	const struct stoup_doc_filter *filter, uint8_t test, uint32_t depth)
{
	const struct stoup_doc_path *path = filter->nodes[test].path;

	return depth < path->step_cnt ? &path->steps[depth] : NULL;
}

static int step_same(const struct stoup_doc_step *a, const struct stoup_doc_step *b)
{
	if (!a->name || !b->name)
		return !a->name && !b->name && a->idx == b->idx;
	return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}

/* Those of a group that go on by `step`. */
static void narrow(const struct stoup_doc_filter *filter, const struct group *group, uint32_t depth,
	const struct stoup_doc_step *step, struct group *ret)
{
	ret->cnt = 0;
	for (uint32_t i = 0; i < group->cnt; i++) {
		const struct stoup_doc_step *one = step_of(filter, group->tests[i], depth);

		if (one && step_same(one, step))
			ret->tests[ret->cnt++] = group->tests[i];
	}
}

/* Make a place for each step that the group's tests take from here and that has none yet: names, or
 * elements. */
static int kids_add(struct stoup_doc_filter *filter, uint32_t idx, const struct group *group,
	uint32_t depth, int names)
{
	struct stoup_doc_place *place = &filter->places[idx];

	for (uint32_t i = 0; i < group->cnt; i++) {
		const struct stoup_doc_step *step = step_of(filter, group->tests[i], depth);
		uint32_t kid = 0;

		if (!step || !!step->name != names)
			continue;
		while (kid < place->kid_cnt &&
			!step_same(filter->places[place->kid + kid].step, step))
			kid++;
		if (kid < place->kid_cnt)
			continue;
		if (filter->place_cnt == STOUP_DOC_PLACE_CAP)
			return -E2BIG;
		filter->places[filter->place_cnt++] = (struct stoup_doc_place){.word = step->word,
			.mask = step->mask,
			.step = step,
			.test = STOUP_DOC_NODE_CAP};
		place->kid_cnt++;
		place->name_cnt += names != 0;
	}
	return 0;
}

/* The place and all below it; as deep as the longest path. */
static int fill(
	struct stoup_doc_filter *filter, uint32_t idx, const struct group *group, uint32_t depth)
{
	struct stoup_doc_place *place = &filter->places[idx];
	struct group inner;
	int rc;

	for (uint32_t i = group->cnt; i-- > 0;) {
		if (step_of(filter, group->tests[i], depth))
			continue;
		filter->nodes[group->tests[i]].next = place->test;
		place->test = group->tests[i];
	}
	place->kid = filter->place_cnt;
	rc = kids_add(filter, idx, group, depth, 1);
	if (rc == 0)
		rc = kids_add(filter, idx, group, depth, 0);
	for (uint32_t i = 0; rc == 0 && i < place->kid_cnt; i++) {
		narrow(filter, group, depth, filter->places[place->kid + i].step, &inner);
		rc = fill(filter, place->kid + i, &inner, depth + 1);
	}
	return rc;
}

/* From the whole down: sides of an `and` that decides decide likewise, and those of an `or`. */
static void decide(struct stoup_doc_filter *filter)
{
	struct stoup_doc_node *nodes = filter->nodes;

	nodes[filter->node_cnt - 1].decides_no = nodes[filter->node_cnt - 1].decides_yes = 1;
	for (uint32_t i = filter->node_cnt; i-- > 0;) {
		if (nodes[i].op == STOUP_DOC_AND)
			nodes[nodes[i].left].decides_no = nodes[nodes[i].right].decides_no =
				nodes[i].decides_no;
		else if (nodes[i].op == STOUP_DOC_OR)
			nodes[nodes[i].left].decides_yes = nodes[nodes[i].right].decides_yes =
				nodes[i].decides_yes;
	}
}

static void fast_of(struct stoup_doc_node *node)
{
	static const uint8_t orders[] = {[STOUP_DOC_EXISTS] = 7,
		[STOUP_DOC_EQ] = 2,
		[STOUP_DOC_NE] = 5,
		[STOUP_DOC_LT] = 1,
		[STOUP_DOC_LE] = 3,
		[STOUP_DOC_GT] = 4,
		[STOUP_DOC_GE] = 6};
	struct stoup_doc_number number;

	node->orders = orders[node->op];
	if (node->op == STOUP_DOC_EXISTS)
		return;
	stoup_doc_number(&node->value, &number);
	if (number.form == STOUP_DOC_FORM_I64) {
		node->fast = STOUP_DOC_FAST_INTEGER;
		node->integer = number.i64;
	} else if (node->value.type == STOUP_DOC_STRING &&
		   (node->op == STOUP_DOC_EQ || node->op == STOUP_DOC_NE)) {
		node->fast = STOUP_DOC_FAST_TEXT;
		node->word = stoup_doc_word(node->value.payload, node->value.payload_len);
		node->mask = stoup_doc_mask(node->value.payload_len);
	}
}

int stoup_doc_plan(struct stoup_doc_filter *filter, struct stoup_error *err)
{
	struct group all = {.cnt = 0};

	for (uint32_t i = 0; i < filter->node_cnt; i++) {
		struct stoup_doc_node *node = &filter->nodes[i];

		if (node->op <= STOUP_DOC_NOT)
			continue;
		if (node->path->step_cnt > STOUP_DOC_DEPTH_CAP)
			return stoup_error_set(err, -EINVAL,
				"filter: a path of %u steps; documents are at most %d deep",
				node->path->step_cnt, STOUP_DOC_DEPTH_CAP);
		all.tests[all.cnt++] = (uint8_t)i;
		fast_of(node);
	}
	filter->places = malloc(STOUP_DOC_PLACE_CAP * sizeof(*filter->places));
	if (!filter->places)
		return stoup_error_set(err, -ENOMEM, "no memory for a filter");
	filter->places[0] = (struct stoup_doc_place){.test = STOUP_DOC_NODE_CAP};
	filter->place_cnt = 1;
	if (fill(filter, 0, &all, 0) < 0)
		return stoup_error_set(err, -EINVAL, "filter: more than %u names in its paths",
			STOUP_DOC_PLACE_CAP - 1);
	decide(filter);
	return 0;
}
