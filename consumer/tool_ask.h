/* SPDX-License-Identifier: Apache-2.0 */
/* tool_ask.h - the command line of `stoup cat`, and which of its options exclude each other.
 *
 *      words --getopt--> each by itself --the table of refusals--> struct stoup_ask
 *
 * Invariant: two options that were both taken both have their effect.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_ASK_H
#define STOUP_CONSUMER_TOOL_ASK_H

#include <stddef.h>
#include <stdint.h>
#include "consumer/tool_columns.h"
#include "consumer/tool_table.h"

#define STOUP_ASK_CAP 32u /* filters, and paths */

struct stoup_ask {
	const char *pool;
	char *const *names; /* series and patterns */
	size_t name_cnt;
	uint64_t given;           /* options, 1 << each */
	struct stoup_range range; /* with STOUP_BACKWARD and those that bound it */
	uint64_t limit;           /* UINT64_MAX: all */
	int is_tail; /* of the rows in their order the last ones: --last, or --first with --reverse */
	int merge, follow, count, skip_damaged, header;
	enum stoup_table_kind kind;
	int npy, npz;                /* an array instead; npz: in a zip */
	struct stoup_bars_spec bars; /* kind 0: none */
	int64_t *asof;
	size_t asof_cnt;
	const char *wheres[STOUP_ASK_CAP];
	size_t where_cnt;
	const char *paths[STOUP_ASK_CAP];
	size_t path_cnt;
	struct stoup_select select;
};

/* Read a command line. 0; 1: help is wanted; -EINVAL, told on stderr. Ended by stoup_ask_fini in any case. */
int stoup_ask_parse(int argc, char **argv, struct stoup_ask *ret);

void stoup_ask_fini(struct stoup_ask *ask);

#endif
