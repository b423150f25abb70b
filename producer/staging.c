/* SPDX-License-Identifier: Apache-2.0 */
#include "producer/staging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "codec/block.h"

#define HUGE_LEN ((size_t)2 << 20)
#define PAGE_LEN ((size_t)STOUP_READ_ALIGN_CAP)

struct stoup_staging {
	void *map; /* what was mapped: region and what alignment left over before and behind */
	size_t map_len;
	uint8_t *region;
	size_t region_len;
	size_t slot_len;
	uint32_t slot_cnt;
	uint32_t free_cnt;
	int huge;
	int32_t *stack; /* stack[0 .. free_cnt): free slots, the last one put on top */
	uint8_t *taken; /* one byte per slot */
};

static size_t round_up(size_t len, size_t align)
{
	return (len + align - 1) / align * align;
}

static int options_valid(const struct stoup_staging_options *opt, struct stoup_error *err)
{
	if (opt->slot_cnt == 0 || opt->slot_cnt > STOUP_STAGING_SLOT_CAP)
		return stoup_error_set(err, -EINVAL, "staging: %u slots, must be 1 to %u",
			opt->slot_cnt, STOUP_STAGING_SLOT_CAP);
	if (opt->stored_len_cap == 0 || opt->stored_len_cap > STOUP_BLOCK_RAW_CAP)
		return stoup_error_set(err, -EINVAL,
			"staging: largest stored block of %zu bytes, must be 1 to %u",
			opt->stored_len_cap, STOUP_BLOCK_RAW_CAP);
	return 0;
}

/* Map 2 MiB more than needed to find a 2 MiB boundary inside, ask for huge pages, then touch: the
 * memory is there from the start or the daemon says so at its start. */
static int region_map(struct stoup_staging *staging, struct stoup_error *err)
{
	staging->map_len = staging->region_len + HUGE_LEN;
	staging->map = mmap(
		NULL, staging->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (staging->map == MAP_FAILED) {
		staging->map = NULL;
		return stoup_error_set(err, -ENOMEM,
			"staging: no memory for %u slots of %zu bytes (%zu in all)",
			staging->slot_cnt, staging->slot_len, staging->map_len);
	}
	uintptr_t skip = (HUGE_LEN - (uintptr_t)staging->map % HUGE_LEN) % HUGE_LEN;
	staging->region = (uint8_t *)staging->map + skip;
	/* Both are wishes: a kernel without them serves the same bytes from 4 KiB pages. */
	staging->huge = madvise(staging->region, staging->region_len, MADV_HUGEPAGE) == 0;
	(void)madvise(staging->map, staging->map_len, MADV_DONTDUMP);
	for (size_t off = 0; off < staging->region_len; off += PAGE_LEN)
		((volatile uint8_t *)staging->region)[off] = 0;
	return 0;
}

int stoup_staging_create(const struct stoup_staging_options *opt, struct stoup_staging **ret,
	struct stoup_error *err)
{
	int rc = options_valid(opt, err);
	if (rc < 0)
		return rc;
	struct stoup_staging *staging = calloc(1, sizeof(*staging));
	if (!staging)
		return stoup_error_set(err, -ENOMEM, "staging: no memory");
	size_t region_cap = opt->region_len_cap ? opt->region_len_cap : STOUP_STAGING_REGION_CAP;
	staging->slot_len = round_up(opt->stored_len_cap, PAGE_LEN) + 2 * PAGE_LEN;
	size_t slot_cnt = region_cap / staging->slot_len;
	if (slot_cnt > opt->slot_cnt)
		slot_cnt = opt->slot_cnt;
	staging->slot_cnt = slot_cnt ? (uint32_t)slot_cnt : 1;
	staging->region_len = round_up(staging->slot_len * staging->slot_cnt, HUGE_LEN);
	staging->stack = calloc(staging->slot_cnt, sizeof(*staging->stack));
	staging->taken = calloc(staging->slot_cnt, 1);
	if (!staging->stack || !staging->taken) {
		rc = stoup_error_set(err, -ENOMEM, "staging: no memory");
		goto out_destroy;
	}
	rc = region_map(staging, err);
	if (rc < 0)
		goto out_destroy;
	for (uint32_t i = 0; i < staging->slot_cnt; i++)
		staging->stack[i] = (int32_t)(staging->slot_cnt - 1 - i);
	staging->free_cnt = staging->slot_cnt;
	*ret = staging;
	return 0;

out_destroy:
	stoup_staging_destroy(staging);
	return rc;
}

void stoup_staging_destroy(struct stoup_staging *staging)
{
	if (!staging)
		return;
	if (staging->map)
		munmap(staging->map, staging->map_len);
	free(staging->taken);
	free(staging->stack);
	free(staging);
}

int32_t stoup_staging_take(struct stoup_staging *staging)
{
	if (staging->free_cnt == 0)
		return -EAGAIN;
	int32_t slot_idx = staging->stack[--staging->free_cnt];
	staging->taken[slot_idx] = 1;
	return slot_idx;
}

void stoup_staging_put(struct stoup_staging *staging, int32_t slot_idx)
{
	/* A slot put twice would be given to two reads: two blocks in one buffer. Stop instead. */
	if (slot_idx < 0 || (uint32_t)slot_idx >= staging->slot_cnt || !staging->taken[slot_idx])
		abort();
	staging->taken[slot_idx] = 0;
	staging->stack[staging->free_cnt++] = slot_idx;
}

uint8_t *stoup_staging_bytes(const struct stoup_staging *staging, int32_t slot_idx)
{
	return staging->region + (size_t)slot_idx * staging->slot_len;
}

size_t stoup_staging_slot_len(const struct stoup_staging *staging)
{
	return staging->slot_len;
}

size_t stoup_staging_stored_cap(const struct stoup_staging *staging)
{
	return staging->slot_len - 2 * PAGE_LEN;
}

uint32_t stoup_staging_slot_cnt(const struct stoup_staging *staging)
{
	return staging->slot_cnt;
}

uint32_t stoup_staging_free_cnt(const struct stoup_staging *staging)
{
	return staging->free_cnt;
}

uint8_t *stoup_staging_region(const struct stoup_staging *staging, size_t *ret_len)
{
	*ret_len = staging->region_len;
	return staging->region;
}

int stoup_staging_huge(const struct stoup_staging *staging)
{
	return staging->huge;
}
