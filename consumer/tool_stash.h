/* SPDX-License-Identifier: Apache-2.0 */
/* tool_stash.h - copies of some rows, for an order other than that in which they are found.
 *
 *      forward scan ... --> [r1][r2][r3] --> taken from the end: r3 r2 r1
 *
 * Limit: the memory of the process; what is asked for (--last N) bounds it.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_STASH_H
#define STOUP_CONSUMER_TOOL_STASH_H

#include "consumer/tool_query.h"

struct stoup_stash {
	struct stoup_stash_row *rows;
	size_t cnt, cap;
	size_t begin; /* of the ring that the rows are once there are `max` */
	uint64_t max; /* the last so many rows are kept; 0: all. Set before the first one */
	uint64_t
		broken_cnt; /* messages that stoup_stash_take left out: no documents, as no row is one */
};

/* A copy of one record or message of a source. 0 or -ENOMEM with text. */
int stoup_stash_add(struct stoup_stash *stash, size_t source, const struct stoup_span *span,
	uint64_t idx, struct stoup_error *err);

/* Add all of a run that can be printed: a stoup_take, with the stash as its argument. */
int64_t stoup_stash_take(
	void *arg, const struct stoup_run *run, uint64_t *used, struct stoup_error *err);

/* Row idx of those that are kept as a run of one record, which lies in *span. */
struct stoup_run stoup_stash_at(
	const struct stoup_stash *stash, size_t idx, struct stoup_span *span);

/* All are gone; the stash can be used again. */
void stoup_stash_fini(struct stoup_stash *stash);

#endif
