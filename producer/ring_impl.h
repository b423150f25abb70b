/* SPDX-License-Identifier: Apache-2.0 */
/* ring_impl.h - what the three files of the ring share; nobody else includes it.
 *
 * Nodes are numbers into one array. The first buffer_cap nodes are the buffers (node = buffer
 * index), the rest are free extents; all that are in use form one list in address order:
 *
 *      node   0 .. buffer_cap-1             buffer_cap .. node_cap-1
 *             buffers                       free or reserved extents
 *
 * Free extents are also in a bin of their length (eight bins for each power of two, in pages), so
 * that room is found without a walk. Reserved ones are in no bin: only the claim may have them.
 */
#ifndef STOUP_RING_IMPL_H
#define STOUP_RING_IMPL_H

#include "producer/ring.h"

/* An assertion guards against our own bugs and stays on in every build. */
#undef NDEBUG
#include <assert.h>

#define STOUP_NODE_NONE UINT32_MAX

/* Pages are below 2^32: 7 bins for 1 to 7 pages, then 8 for each power of two. */
#define STOUP_BIN_CNT      240u
#define STOUP_BIN_WORD_CNT 4u

/* A claim puts two more borders between free extents than buffers do; two spare for splits. */
#define STOUP_NODE_SPARE 4u

struct stoup_node {
	uint64_t off;
	uint64_t len;
	uint32_t prev; /* in address order */
	uint32_t next;
	uint32_t bin_prev; /* FREE only; a spare node: bin_next chains it */
	uint32_t bin_next;
	uint32_t weight; /* scratch of the window search */
	uint8_t state;   /* enum stoup_ring_state */
	uint8_t zero[3];
};

/* One cache line: the hand looks at many. */
struct stoup_ring_buf {
	uint64_t heat_clock; /* alloc_len when a use last counted, at first when it was given out */
	uint64_t refs_epoch; /* the scan that refs belongs to; an older one means 0 */
	uint32_t refs;
	uint32_t used_cnt;
	uint8_t heat;
	uint8_t unread;
	uint8_t pins;
	uint8_t zero[5];
	uint64_t used[STOUP_RING_CONSUMER_CAP / 64];
};
_Static_assert(sizeof(struct stoup_ring_buf) == 64, "one cache line per buffer");

struct stoup_ring_claim {
	uint64_t off;
	uint64_t end;      /* 0: no claim */
	uint64_t need_len; /* what the claimant gets */
	uint64_t free_len; /* reserved bytes so far */
	uint32_t node; /* the reserved node that changed last: the whole window once that is free */
	uint32_t zero;
};

struct stoup_ring {
	struct stoup_ring_config config;
	struct stoup_node *node;
	struct stoup_ring_buf *buf;
	uint32_t *evict; /* buffer_cap entries: the plan that is open */
	uint32_t node_cap;
	uint32_t first; /* lowest address */
	uint32_t hand;
	uint32_t node_cnt;  /* nodes in the address list */
	uint32_t spare_buf; /* stacks of unused nodes, chained by bin_next */
	uint32_t spare_free;
	uint32_t spare_buf_cnt;
	uint32_t open_cnt; /* candidates not settled */
	int upper;         /* cut from the upper end of a free extent */
	uint64_t bin_map[STOUP_BIN_WORD_CNT];
	uint32_t bin[STOUP_BIN_CNT];
	uint64_t epoch; /* of the scan of cells */
	uint64_t pinned_len;
	uint32_t pinned_cnt;
	uint32_t draining_cnt;
	struct stoup_ring_claim claim;
	struct stoup_ring_usage usage; /* free_max_len is computed when asked for */
	struct stoup_ring_counters counters;
};

/* ---- ring_extent.c ---- */

/* The whole region becomes one free extent. */
void stoup_extent_init(struct stoup_ring *ring);

/* A free extent of at least `len` bytes, or STOUP_NODE_NONE. */
uint32_t stoup_extent_find(const struct stoup_ring *ring, uint64_t len);

/* Length of the largest free extent. */
uint64_t stoup_extent_free_max(const struct stoup_ring *ring);

/* Take a buffer node and give it the first `len` bytes (ring->upper: the last) of the free (or reserved)
 * extent `from`; what is left of it is free. Returns the buffer index, in state LOADING. */
uint32_t stoup_extent_carve(struct stoup_ring *ring, uint32_t from, uint64_t len);

/* The extent of buffer `idx` is free, or reserved inside the claimed window, and merged. */
void stoup_extent_release(struct stoup_ring *ring, uint32_t idx);

/* Turn a free extent into a reserved one, without its first `skip` and beyond `keep` more bytes. */
void stoup_extent_reserve(struct stoup_ring *ring, uint32_t node, uint64_t skip, uint64_t keep);

/* Turn a reserved extent into a free one; the node stays, and swallows free neighbours. */
void stoup_extent_unreserve(struct stoup_ring *ring, uint32_t node);

uint32_t stoup_bin_of(uint64_t len);

/* ---- ring.c ---- */

int stoup_ring_held(const struct stoup_ring *ring, uint32_t idx);

/* A new buffer's bookkeeping, after its extent was carved. */
void stoup_ring_begin(struct stoup_ring *ring, uint32_t idx, enum stoup_ring_class class,
	struct stoup_ring_plan *plan);

/* Nobody has to read it any more, or somebody did. */
void stoup_ring_unread_end(struct stoup_ring *ring, uint32_t idx);

#endif
