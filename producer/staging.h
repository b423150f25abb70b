/* SPDX-License-Identifier: Apache-2.0 */
/* staging.h - the memory that stored bytes pass through on their way from a file to a decoder.
 *
 * One private anonymous region, cut into slots of equal length that are used again and again:
 *
 *      region   |<-------------- 2 MiB aligned, MADV_HUGEPAGE, MADV_DONTDUMP ------------->|
 *      slots    [ slot 0          ][ slot 1          ][ slot 2          ] ... [ slot n-1  ]
 *      a slot   [head|  stored bytes of one block  |tail]
 *                ^ a direct read begins at an aligned file offset, so the block's bytes begin up to
 *                  one alignment into the slot, and the read may run one alignment beyond them
 *
 * 2 MiB pages matter more to O_DIRECT than any flag of io_uring: 3.6 GB/s at 33 ms/GiB of processor
 * time against 0.65-1.0 GB/s at 77 ms/GiB into 4 KiB pages. Free slots are kept as a stack, so that
 * the slot that was used last, still in the cache, is used next.
 *
 * Invariant: a slot is free or has one user, who took it and will put it back.
 *
 * Concurrency: take and put belong to one thread (the conductor). The bytes of a slot belong to
 * whoever it was handed to: the kernel while a read is in flight, then one decode worker.
 *
 * Limits: a slot must hold the largest stored block, so with 16 MiB blocks the slots are few:
 * `region_len_cap` bounds the memory, and at least one slot is made whatever it says.
 */
#ifndef STOUP_PRODUCER_STAGING_H
#define STOUP_PRODUCER_STAGING_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

/* The largest alignment of file offset, length and buffer that a direct read is done with. Block
 * devices ask for 512 or 4096; a file that asks for more is read through the page cache. */
#define STOUP_READ_ALIGN_CAP 4096u

#define STOUP_STAGING_SLOT_CAP   1024u       /* slots; far more than a device has use for */
#define STOUP_STAGING_REGION_CAP (64u << 20) /* default of region_len_cap */

struct stoup_staging_options {
	uint32_t slot_cnt; /* wanted: reads in flight + jobs that wait for a decoder; 1 to 1024 */
	size_t stored_len_cap; /* bytes of the largest stored block; at most STOUP_BLOCK_RAW_CAP */
	size_t region_len_cap; /* bytes; 0 = STOUP_STAGING_REGION_CAP: fewer slots, not less */
};

struct stoup_staging;

/* Map and touch the region. 0; -EINVAL (a limit above, named in the text); -ENOMEM. */
int stoup_staging_create(const struct stoup_staging_options *opt, struct stoup_staging **ret,
	struct stoup_error *err);

/* Unmap. No read may be in flight into it (destroy the reader first). NULL is allowed. */
void stoup_staging_destroy(struct stoup_staging *staging);

/* Take a free slot: its index, or -EAGAIN when all are in use. Never blocks. */
int32_t stoup_staging_take(struct stoup_staging *staging);

/* Give a slot back. A slot that is not taken is a bug of the caller: the process aborts. */
void stoup_staging_put(struct stoup_staging *staging, int32_t slot_idx);

/* The first byte of a slot, aligned to STOUP_READ_ALIGN_CAP. */
uint8_t *stoup_staging_bytes(const struct stoup_staging *staging, int32_t slot_idx);

/* Bytes of one slot: the largest stored block and two alignments. */
size_t stoup_staging_slot_len(const struct stoup_staging *staging);

/* Bytes of the longest stored block that fits a slot. */
size_t stoup_staging_stored_cap(const struct stoup_staging *staging);

uint32_t stoup_staging_slot_cnt(const struct stoup_staging *staging);
uint32_t stoup_staging_free_cnt(const struct stoup_staging *staging);

/* The whole region, for the registration of buffers. */
uint8_t *stoup_staging_region(const struct stoup_staging *staging, size_t *ret_len);

/* Whether the kernel accepted MADV_HUGEPAGE for the region (1) or not (0): a hint for `stat`. */
int stoup_staging_huge(const struct stoup_staging *staging);

#endif
