/* SPDX-License-Identifier: Apache-2.0 */
/* tool_blocks.h - the blocks that ranges of series lie in: what `stoup warm` loads and `stoup pin` keeps.
 *
 *      series, [from, to) --parts, segments--> blocks, each once, in the order of the series
 *
 * Promise: 8 bytes for each block and a bit for each block of the snapshot are all the memory it takes.
 *
 * Concurrency: one thread; the snapshot is the caller's, and stays.
 */
#ifndef STOUP_CONSUMER_TOOL_BLOCKS_H
#define STOUP_CONSUMER_TOOL_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include "consumer/client.h"

struct stoup_tool_block {
	uint32_t volume; /* of the snapshot */
	uint32_t block_idx;
};

struct stoup_tool_blocks {
	const struct stoup_snapshot *snap;
	struct stoup_tool_block *blocks;
	size_t cnt, cap;
	uint64_t bytes; /* of the pool that all of them take: whole pages */
	uint8_t **seen; /* per volume: a bit for each block */
};

/* 0, or -ENOMEM with text. Ended by stoup_tool_blocks_fini in any case. */
int stoup_tool_blocks_init(
	struct stoup_tool_blocks *set, const struct stoup_snapshot *snap, struct stoup_error *err);
void stoup_tool_blocks_fini(struct stoup_tool_blocks *set);

/* Add the blocks that hold records of the series whose keys lie in [from_ns, to_ns), as far as the index tells
 * (0: open on that side), without those that are there. 0, or a negative errno with text. */
int stoup_tool_blocks_add(struct stoup_tool_blocks *set, const struct stoup_series *series,
	int64_t from_ns, int64_t to_ns, struct stoup_error *err);

/* Bytes of the pool that a block takes. */
uint64_t stoup_tool_block_bytes(const struct stoup_tool_blocks *set, size_t idx);

/* Is it in the pool at this moment? */
int stoup_tool_block_resident(const struct stoup_tool_blocks *set, size_t idx);

/* How many of them are, and with how many bytes. */
size_t stoup_tool_blocks_resident(const struct stoup_tool_blocks *set, uint64_t *ret_bytes);

#endif
