/* SPDX-License-Identifier: Apache-2.0 */
/* tool_blocks.c - see tool_blocks.h. */
#include "consumer/tool_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stoup_tool_blocks_init(
	struct stoup_tool_blocks *set, const struct stoup_snapshot *snap, struct stoup_error *err)
{
	*set = (struct stoup_tool_blocks){.snap = snap};
	set->seen = calloc(snap->volume_cnt + 1, sizeof(*set->seen));
	if (!set->seen)
		return stoup_error_set(err, -ENOMEM, "no memory for %u volumes", snap->volume_cnt);
	return 0;
}

void stoup_tool_blocks_fini(struct stoup_tool_blocks *set)
{
	for (uint32_t i = 0; set->seen && i < set->snap->volume_cnt; i++)
		free(set->seen[i]);
	free(set->seen);
	free(set->blocks);
	*set = (struct stoup_tool_blocks){.snap = NULL};
}

static const struct stoup_catalog_block *block_of(const struct stoup_tool_blocks *set, size_t idx)
{
	const struct stoup_tool_block *b = &set->blocks[idx];

	return &set->snap->volumes[b->volume].blocks[b->block_idx];
}

uint64_t stoup_tool_block_bytes(const struct stoup_tool_blocks *set, size_t idx)
{
	return ((uint64_t)block_of(set, idx)->raw_len + STOUP_OS_PAGE_LEN - 1) &
	       ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
}

/* 1: it is new; 0: it was there; -ENOMEM. */
static int see(struct stoup_tool_blocks *set, uint32_t volume, uint32_t block_idx)
{
	uint32_t cnt = set->snap->volumes[volume].catalog->block_cnt;
	uint8_t **bits = &set->seen[volume], bit = (uint8_t)(1u << (block_idx & 7));

	if (!*bits)
		*bits = calloc(cnt / 8 + 1, 1);
	if (!*bits)
		return -ENOMEM;
	if ((*bits)[block_idx / 8] & bit)
		return 0;
	(*bits)[block_idx / 8] |= bit;
	return 1;
}

static int add(struct stoup_tool_blocks *set, uint32_t volume, uint32_t block_idx)
{
	int rc = see(set, volume, block_idx);
	size_t cap = set->cap ? set->cap * 2 : 1024;
	void *room;

	if (rc <= 0)
		return rc;
	if (set->cnt == set->cap) {
		room = reallocarray(set->blocks, cap, sizeof(*set->blocks));
		if (!room)
			return -ENOMEM;
		set->blocks = room;
		set->cap = cap;
	}
	set->blocks[set->cnt] = (struct stoup_tool_block){.volume = volume, .block_idx = block_idx};
	set->bytes += stoup_tool_block_bytes(set, set->cnt++);
	return 0;
}

static int add_part(struct stoup_tool_blocks *set, const struct stoup_part *part, int64_t from_ns,
	int64_t to_ns)
{
	const struct stoup_catalog_segment *seg = part->vol->segments + part->series->segment_first;
	uint32_t volume = (uint32_t)(part->vol - set->snap->volumes);
	int rc = 0;

	for (uint32_t i = 0; i < part->series->segment_cnt && rc == 0; i++)
		if ((from_ns == 0 || seg[i].last_key >= from_ns) &&
			(to_ns == 0 || seg[i].first_key < to_ns))
			rc = add(set, volume, seg[i].block_idx);
	return rc;
}

int stoup_tool_blocks_add(struct stoup_tool_blocks *set, const struct stoup_series *series,
	int64_t from_ns, int64_t to_ns, struct stoup_error *err)
{
	struct stoup_part *parts = NULL;
	uint32_t cnt = 0;
	int rc = stoup_series_parts(set->snap, series->name, series->schema, &parts, &cnt);

	for (uint32_t i = 0; i < cnt && rc == 0; i++)
		rc = add_part(set, &parts[i], from_ns, to_ns);
	free(parts);
	if (rc == -ENOMEM)
		return stoup_error_set(err, rc, "no memory for the list of blocks");
	if (rc < 0)
		return stoup_error_set(err, rc, "%.150s is no longer there", series->name);
	return 0;
}

int stoup_tool_block_resident(const struct stoup_tool_blocks *set, size_t idx)
{
	const struct stoup_tool_block *b = &set->blocks[idx];

	return atomic_load_explicit(&set->snap->volumes[b->volume].residency[b->block_idx],
		       memory_order_relaxed) != 0;
}

size_t stoup_tool_blocks_resident(const struct stoup_tool_blocks *set, uint64_t *ret_bytes)
{
	size_t cnt = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < set->cnt; i++)
		if (stoup_tool_block_resident(set, i)) {
			*ret_bytes += stoup_tool_block_bytes(set, i);
			cnt++;
		}
	return cnt;
}
