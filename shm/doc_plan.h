/* SPDX-License-Identifier: Apache-2.0 */
/* doc_plan.h - a compiled filter: its tests and what joins them, and the plan of the walk that asks all
 * of them at once.
 *
 *      data.e = "trade" and (data.p >= 61800 or data.p < 9)
 *
 *      nodes    AND (TEST e, OR (TEST p, TEST p))      each node's sides have lower numbers than itself,
 *                                                      the last one made is the whole
 *      places   [.] -> [data] -> [e]: the test of e    the paths as a tree: what begins alike is walked
 *                            \-> [p]: both tests of p  once, and an object is walked once for all tests
 *
 * Children of a place stand side by side, names before elements. A test below nothing but `and` decides
 * that the whole does not hold as soon as it does not; below nothing but `or`, that it does.
 *
 * Invariant: immutable once made.
 */
#ifndef STOUP_SHM_DOC_PLAN_H
#define STOUP_SHM_DOC_PLAN_H

#include "shm/doc_path.h"

#define STOUP_DOC_NODE_CAP 256u /* parts of one filter */
#define STOUP_DOC_PLACE_CAP                                                                        \
	1024u /* names and elements of its paths, of those that begin alike once */
#define STOUP_DOC_NODE_WORDS (STOUP_DOC_NODE_CAP / 64)

enum stoup_doc_op {
	STOUP_DOC_AND,
	STOUP_DOC_OR,
	STOUP_DOC_NOT,
	STOUP_DOC_EXISTS,
	STOUP_DOC_EQ,
	STOUP_DOC_NE,
	STOUP_DOC_LT,
	STOUP_DOC_LE,
	STOUP_DOC_GT,
	STOUP_DOC_GE,
};

/* How a test's value is compared with one that is of the same form, without looking further. */
enum stoup_doc_fast {
	STOUP_DOC_FAST_NONE,
	STOUP_DOC_FAST_TEXT,    /* = or != and a text: length, word, the rest */
	STOUP_DOC_FAST_INTEGER, /* an integer of 64 bits */
};

struct stoup_doc_node {
	enum stoup_doc_op op;
	uint32_t left, right;
	uint32_t next;               /* the next test at the same place, NODE_CAP: none */
	struct stoup_doc_path *path; /* of a test, like the rest */
	struct stoup_doc value;
	uint8_t *bytes; /* of the value */
	const char *text;
	size_t text_len; /* of a number */
	uint64_t word, mask;
	int64_t integer;
	enum stoup_doc_fast fast;
	uint8_t orders; /* of value and test that hold: bit 0 below, 1 equal, 2 above */
	uint8_t decides_no, decides_yes; /* the whole, where this does not hold, or does */
	uint8_t zero[1];
};

struct stoup_doc_place {
	uint64_t word, mask;               /* the step's, beside those of its neighbours */
	const struct stoup_doc_step *step; /* NULL: the document */
	uint32_t test;                     /* the first of those that ask here, NODE_CAP: none */
	uint32_t kid, kid_cnt;             /* places[kid] and on */
	uint32_t name_cnt;                 /* of them, the first ones */
};

struct stoup_doc_filter {
	uint32_t node_cnt, place_cnt;
	struct stoup_doc_node nodes[STOUP_DOC_NODE_CAP];
	struct stoup_doc_place *places;
};

/* Make the plan of a filter whose nodes are there. 0; -EINVAL for too many places, or a path of more steps
 * than documents are deep; -ENOMEM. */
int stoup_doc_plan(struct stoup_doc_filter *filter, struct stoup_error *err);

#endif
