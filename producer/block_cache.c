/* SPDX-License-Identifier: Apache-2.0 */
/* block_cache.c - a list of decoded blocks, least recently used out first. */
#include "producer/block_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codec/block.h"
#include "producer/volume_file.h"

struct entry {
	const struct stoup_store_volume *volume;
	uint32_t block_idx;
	uint32_t pin_cnt;
	uint64_t used_seq;
	uint8_t *raw;
	size_t raw_len;
};

struct stoup_block_cache {
	struct entry *entries;
	size_t cnt, cap,
		last; /* last: the entry of the last hit, which is mostly the next one, too */
	uint64_t memory_len, used_len, seq;
	uint8_t *stored; /* bytes of stored_volume's block stored_idx */
	size_t stored_cap;
	const struct stoup_store_volume *stored_volume;
	uint32_t stored_idx;
	void *scratch;
};

int stoup_block_cache_create(uint64_t memory_len, struct stoup_block_cache **ret)
{
	struct stoup_block_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	cache->memory_len = memory_len;
	cache->scratch = aligned_alloc(64, (stoup_block_scratch_len() + 63) / 64 * 64 + 64);
	if (!cache->scratch) {
		free(cache);
		return -ENOMEM;
	}
	stoup_block_scratch_init(cache->scratch);
	*ret = cache;
	return 0;
}

void stoup_block_cache_destroy(struct stoup_block_cache *cache)
{
	size_t i;

	if (!cache)
		return;
	for (i = 0; i < cache->cnt; i++)
		free(cache->entries[i].raw);
	free(cache->entries);
	free(cache->stored);
	free(cache->scratch);
	free(cache);
}

void stoup_block_cache_budget(struct stoup_block_cache *cache, uint64_t memory_len)
{
	cache->memory_len = memory_len;
}

static struct entry *find(struct stoup_block_cache *cache, const struct stoup_store_volume *volume,
	uint32_t block_idx)
{
	size_t i;

	for (i = 0; i < cache->cnt; i++) {
		size_t at = (cache->last + i) % cache->cnt;
		struct entry *entry = &cache->entries[at];

		if (entry->volume == volume && entry->block_idx == block_idx) {
			cache->last = at;
			return entry;
		}
	}
	return NULL;
}

static void drop(struct stoup_block_cache *cache, size_t at)
{
	cache->used_len -= cache->entries[at].raw_len;
	free(cache->entries[at].raw);
	cache->entries[at] = cache->entries[--cache->cnt];
	cache->last = 0;
}

/* Have room for len bytes more, as far as unpinned blocks can go. */
static void make_room(struct stoup_block_cache *cache, size_t len)
{
	while (cache->used_len + len > cache->memory_len) {
		size_t oldest = cache->cnt, i;

		for (i = 0; i < cache->cnt; i++) {
			if (cache->entries[i].pin_cnt == 0 &&
				(oldest == cache->cnt || cache->entries[i].used_seq <
								 cache->entries[oldest].used_seq))
				oldest = i;
		}
		if (oldest == cache->cnt)
			return;
		drop(cache, oldest);
	}
}

static int no_memory(struct stoup_vol_fault *fault, uint32_t block_idx)
{
	*fault = (struct stoup_vol_fault){
		.code = -ENOMEM, .region = STOUP_VOL_REGION_BLOCK, .block_idx = block_idx};
	snprintf(fault->what, sizeof(fault->what), "no memory to decode it");
	return -ENOMEM;
}

int stoup_block_cache_stored(struct stoup_block_cache *cache,
	const struct stoup_store_volume *volume, uint32_t block_idx, const uint8_t **ret_stored,
	struct stoup_vol_fault *fault)
{
	size_t len = volume->index->blocks[block_idx].stored_len;
	int rc;

	if (cache->stored_volume != volume || cache->stored_idx != block_idx) {
		cache->stored_volume = NULL;
		if (len > cache->stored_cap) {
			free(cache->stored);
			cache->stored = malloc(len);
			cache->stored_cap = cache->stored ? len : 0;
			if (!cache->stored)
				return no_memory(fault, block_idx);
		}
		rc = stoup_volume_block_read(
			volume->fd, volume->index, block_idx, cache->stored, fault);
		if (rc < 0)
			return rc;
		cache->stored_volume = volume;
		cache->stored_idx = block_idx;
	}
	*ret_stored = cache->stored;
	return 0;
}

/* A place for one more entry. */
static struct entry *entry_add(struct stoup_block_cache *cache)
{
	if (cache->cnt == cache->cap) {
		size_t cap = cache->cap ? cache->cap * 2 : 16;
		struct entry *grown = realloc(cache->entries, cap * sizeof(*grown));

		if (!grown)
			return NULL;
		cache->entries = grown;
		cache->cap = cap;
	}
	return &cache->entries[cache->cnt];
}

int stoup_block_cache_get(struct stoup_block_cache *cache, const struct stoup_store_volume *volume,
	uint32_t block_idx, const uint8_t **ret_raw, struct stoup_vol_fault *fault)
{
	struct entry *entry = find(cache, volume, block_idx);
	size_t len = volume->index->blocks[block_idx].raw_len;
	const uint8_t *stored;
	uint8_t *raw;
	int rc;

	if (!entry) {
		rc = stoup_block_cache_stored(cache, volume, block_idx, &stored, fault);
		if (rc < 0)
			return rc;
		make_room(cache, len);
		entry = entry_add(cache);
		raw = malloc(len);
		if (!entry || !raw) {
			free(raw);
			return no_memory(fault, block_idx);
		}
		rc = stoup_vol_block_decode(
			volume->index, block_idx, stored, raw, cache->scratch, fault);
		if (rc < 0) {
			free(raw);
			return rc;
		}
		*entry = (struct entry){
			.volume = volume, .block_idx = block_idx, .raw = raw, .raw_len = len};
		cache->last = cache->cnt++;
		cache->used_len += len;
	}
	entry->used_seq = ++cache->seq;
	entry->pin_cnt++;
	*ret_raw = entry->raw;
	return 0;
}

void stoup_block_cache_put(struct stoup_block_cache *cache, const struct stoup_store_volume *volume,
	uint32_t block_idx)
{
	struct entry *entry = find(cache, volume, block_idx);

	if (entry)
		entry->pin_cnt--;
}

void stoup_block_cache_forget(
	struct stoup_block_cache *cache, const struct stoup_store_volume *volume)
{
	size_t i = 0;

	while (i < cache->cnt) {
		if (cache->entries[i].volume == volume)
			drop(cache, i);
		else
			i++;
	}
	if (cache->stored_volume == volume)
		cache->stored_volume = NULL;
}
