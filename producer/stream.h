/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - where the scans of all consumers stand: a pure core that guesses from what they use.
 *
 *      blocks of a volume   0 1 2 3 4 5 6 7 8 9 ...
 *      consumer A                 ^ at 3      -> block 7 is 4 blocks away from its next use
 *      consumer B                           ^ at 8       -> it has passed block 7
 *
 * A use that lies a little ahead of a known position moves it, one a little behind is of the same scan
 * (one look finds uses in any order); any other use begins a new stream in place of the one that moved
 * longest ago. A request tells which way its scan goes; a use that a look finds does not, and is of the
 * stream's own way, which is up until a request says otherwise. The eviction asks for the distance to the
 * nearest stream that is on its way to a block: farms of workers that run one behind the other keep what the
 * last of them still needs.
 *
 * A guess, never a promise: a wrong one costs a load.
 *
 * Concurrency: none inside; the conductor's.
 * Limits: STOUP_STREAM_CNT positions per consumer (a merge of more series is seen in part); a position
 * that did not move for STOUP_STREAM_STALE_NS is not counted: its consumer does something else.
 */
#ifndef STOUP_PRODUCER_STREAM_H
#define STOUP_PRODUCER_STREAM_H

#include <stdint.h>

#define STOUP_STREAM_CNT 8u
#define STOUP_STREAM_NEAR                                                                          \
	32u /* blocks: cells are looked at now and then, so a scan moves in leaps */
#define STOUP_STREAM_STALE_NS UINT64_C(5000000000)
#define STOUP_STREAM_FAR      UINT64_MAX

struct stoup_stream {
	uint32_t volume_idx, block_idx; /* the foremost block that was used */
	uint32_t live;
	int32_t step; /* 1: towards higher blocks, -1: towards lower ones */
	uint64_t moved_ns;
};

/* Forget all (a new consumer has this number). */
void stoup_streams_init(struct stoup_stream streams[STOUP_STREAM_CNT]);

/* A consumer used a block. */
void stoup_streams_note(struct stoup_stream streams[STOUP_STREAM_CNT], uint32_t volume_idx,
	uint32_t block_idx, uint64_t now_ns);

/* It asked for a block, in a scan that goes up (step 1) or down (-1). */
void stoup_streams_ask(struct stoup_stream streams[STOUP_STREAM_CNT], uint32_t volume_idx,
	uint32_t block_idx, int32_t step, uint64_t now_ns);

/* Blocks between the nearest of these streams that is on its way to the block and that block: 0 it stands
 * on it; STOUP_STREAM_FAR nobody comes. */
uint64_t stoup_streams_distance(const struct stoup_stream streams[STOUP_STREAM_CNT],
	uint32_t volume_idx, uint32_t block_idx, uint64_t now_ns);

#endif
