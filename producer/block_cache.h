/* SPDX-License-Identifier: Apache-2.0 */
/* block_cache.h - decoded blocks of volumes, for whoever walks series by series.
 *
 *      get(volume, block) ---> decoded bytes, pinned ---> put       the least recently used go first
 *
 * Small series share blocks, and a walk by series comes to one block once per series and once per volume: what
 * was decoded is kept as long as the budget lasts, and decoded again after that.
 *
 * Invariant: a block's hashes, stored and decoded, were right when it is handed out.
 *
 * Concurrency: one thread. Volumes are told apart by their address: forget one before it ends.
 * Limits: the budget, or all that is pinned at once, whichever is more.
 */
#ifndef STOUP_PRODUCER_BLOCK_CACHE_H
#define STOUP_PRODUCER_BLOCK_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include "producer/store.h"

struct stoup_block_cache;

/* 0 or -ENOMEM. */
int stoup_block_cache_create(uint64_t memory_len, struct stoup_block_cache **ret);
void stoup_block_cache_destroy(struct stoup_block_cache *cache);

/* Another budget, from the next block on. */
void stoup_block_cache_budget(struct stoup_block_cache *cache, uint64_t memory_len);

/* The decoded block, pinned until stoup_block_cache_put. 0, -ENOMEM, or the code of `fault`. */
int stoup_block_cache_get(struct stoup_block_cache *cache, const struct stoup_store_volume *volume,
	uint32_t block_idx, const uint8_t **ret_raw, struct stoup_vol_fault *fault);
void stoup_block_cache_put(struct stoup_block_cache *cache, const struct stoup_store_volume *volume,
	uint32_t block_idx);

/* Its stored bytes, valid until the next call of get or this. Returns as stoup_block_cache_get. */
int stoup_block_cache_stored(struct stoup_block_cache *cache,
	const struct stoup_store_volume *volume, uint32_t block_idx, const uint8_t **ret_stored,
	struct stoup_vol_fault *fault);

/* Drop all blocks of a volume; none may be pinned. */
void stoup_block_cache_forget(
	struct stoup_block_cache *cache, const struct stoup_store_volume *volume);

#endif
