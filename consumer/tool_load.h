/* SPDX-License-Identifier: Apache-2.0 */
/* tool_load.h - load blocks into a pool as any consumer does: ask ahead, lease, release.
 *
 *      blocks  [done][leased][ asked ahead ----- window -----> ][ not yet ]
 *
 * One block is leased at a time, so that a pool of any size serves it; what is asked ahead stays within the share that
 * the daemon has for that.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_LOAD_H
#define STOUP_CONSUMER_TOOL_LOAD_H

#include "consumer/tool_blocks.h"

struct stoup_tool_load {
	/* in */
	struct stoup_session *ses; /* entered */
	const struct stoup_tool_blocks *set;
	size_t cnt;                                   /* the first so many blocks of the set */
	int missing_only;                             /* leave those alone that are in the pool */
	void (*step)(void *arg, uint64_t done_bytes); /* after each block, or NULL */
	void *arg;
	/* out */
	size_t resident_cnt, loaded_cnt, failed_cnt;
	uint64_t resident_bytes, loaded_bytes; /* decoded */
	struct stoup_error first;              /* why the first of those that failed did */
};

/* A block that is damaged, can not be read or is too long is counted, and the next one follows. 0, or a negative errno with
 * text: the daemon is gone, or nothing moves. */
int stoup_tool_load_run(struct stoup_tool_load *load, struct stoup_error *err);

#endif
