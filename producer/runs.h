/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - the message runs of a volume's blocks: found by block, and checked (shm/message.h).
 *
 *      block 0          block 1               order   [0, 3 | 1, 4 | ...]   segments by block
 *      seg 0, seg 3     seg 1, seg 4          first   [0,     2,      4 ...]
 *
 * Segments of a volume's index are sorted by series; whoever has decoded a block asks for those of the
 * block.
 *
 * Invariant: of a block that was checked, a reader of any of its messages stays inside it.
 *
 * Concurrency: immutable after create; the index must outlive it.
 */
#ifndef STOUP_PRODUCER_RUNS_H
#define STOUP_PRODUCER_RUNS_H

#include <stdint.h>
#include "codec/volume.h"
#include "shm/stoup_types.h"

struct stoup_runs {
	const struct stoup_vol_index *index;
	uint32_t *order; /* numbers of segments, by block */
	uint32_t *first; /* by block, and one behind the last: place in order */
};

/* Does the volume hold messages? */
int stoup_runs_needed(const struct stoup_vol_index *index);

/* Sort the segments of a volume. *ret is NULL where it holds no messages. 0 or -ENOMEM. */
int stoup_runs_create(const struct stoup_vol_index *index, struct stoup_runs **ret);
void stoup_runs_destroy(struct stoup_runs *runs);

/* Check one segment, of messages, in its decoded block. 0, or -EBADMSG with a text. */
int stoup_run_check(const struct stoup_vol_index *index, uint32_t segment_idx, const void *raw,
	struct stoup_error *err);

/* Check all runs of a decoded block; 0 at once where `runs` is NULL or the block holds records. */
int stoup_runs_block_check(const struct stoup_runs *runs, uint32_t block_idx, const void *raw,
	struct stoup_error *err);

#endif
