/* SPDX-License-Identifier: Apache-2.0 */
/* import_encode.h - blocks to encoded blocks on several cores, in order.
 *
 *      slots   [ 7 retiring ][ 8 encoding ][ 9 encoding ][ 10 ready ][ 11 being filled ]
 *                ^ oldest                                               ^ next
 *
 * A ring of slots: the caller fills the next one and submits it; workers encode; the caller retires
 * the oldest when it needs its slot. So blocks come out in the order in which they went in, and the
 * memory is that of the slots, whoever is slower.
 *
 * Invariant: a slot belongs to the caller, or to one worker, never to both.
 *
 * Concurrency: one caller; the workers are inside. A worker that can not encode says so in the
 * slot's rc.
 */
#ifndef STOUP_PRODUCER_IMPORT_ENCODE_H
#define STOUP_PRODUCER_IMPORT_ENCODE_H

#include <stddef.h>
#include <stdint.h>
#include "codec/block.h"
#include "producer/volume_file.h"

struct stoup_encode_segment {
	uint32_t series_idx; /* the import's */
	uint32_t raw_off;
	uint32_t record_cnt;
	int64_t first_key, last_key;
	/* Filled by a worker: where the zone map begins in the slot's zones, plus 1; 0: none. */
	uint32_t zone_at, zone_len;
};

struct stoup_encode_slot {
	/* Filled by the caller. */
	uint8_t *raw;
	uint32_t raw_len;
	uint32_t schema_idx;              /* the import's */
	struct stoup_block_layout layout; /* stride 0: messages, which have none */
	uint32_t volume_idx;
	struct stoup_encode_segment *segments;
	uint32_t segment_cnt, segment_cap;
	int is_encoded; /* the caller filled what stands below, too: it is only passed on */
	/* Filled by a worker. */
	uint8_t *stored;
	size_t stored_len;
	uint32_t codec, transform;
	uint64_t stored_hash, raw_hash;
	uint8_t *zones; /* rows of the segments */
	uint32_t zones_len, zones_cap;
	int rc;
	int state;
};

struct stoup_encode;

/* Start `threads` workers with slots for blocks of up to raw_cap bytes. 0, -ENOMEM, -EAGAIN (no
 * more threads: with at least one it goes on with fewer). */
int stoup_encode_create(const struct stoup_encoding *encoding, uint32_t threads, size_t raw_cap,
	struct stoup_encode **ret);

/* Stop and free; unfinished blocks are dropped. NULL is allowed. */
void stoup_encode_destroy(struct stoup_encode *encode);

/* The slot to fill next, emptied, or NULL while it holds a block that was not retired. */
struct stoup_encode_slot *stoup_encode_next(struct stoup_encode *encode);

/* Hand the filled slot to the workers. */
void stoup_encode_submit(struct stoup_encode *encode);

/* Wait for the oldest submitted block and return its slot, which stays valid until the next call of
 * stoup_encode_next; NULL when none is outstanding. */
struct stoup_encode_slot *stoup_encode_retire(struct stoup_encode *encode);

/* Make the zone maps of all segments of a slot, whose records are at `raw`: what a worker does, and the caller of a block
 * that is passed on. 0, -ENOMEM. */
int stoup_encode_zones(struct stoup_encode_slot *slot, const uint8_t *raw);

/* The zone map of a segment of a retired slot to the writer that the segment was added to last: 0, -ENOMEM, -EINVAL. */
int stoup_encode_zone_write(const struct stoup_encode_slot *slot,
	const struct stoup_encode_segment *segment, struct stoup_vol_writer *writer);

/* The block of a retired slot, as a volume takes it (schema_idx is the caller's to set): 0, or what a worker could
 * not do, with text. */
int stoup_encode_block(const struct stoup_encode_slot *slot, struct stoup_volume_block *ret,
	struct stoup_error *err);

#endif
