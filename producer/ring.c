/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - the ring's life, what it knows of the consumers (leases, uses, heat), what is certain,
 * and how to look at it. Extents are in ring_extent.c, plans and claims in ring_evict.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/ring_impl.h"

#define REGION_LEN_END (UINT64_C(1) << 44)
#define BUFFER_CAP_MAX ((UINT32_C(1) << 24) - 1) /* the index field of a lease word */
#define RESERVE_PART   32u
#define HEAT_MAX       3u
#define REUSE_PART     16u /* of the region loaded in between: then a use is a re-use */

static uint64_t round_up(uint64_t len)
{
	return (len + STOUP_RING_PAGE_LEN - 1) / STOUP_RING_PAGE_LEN * STOUP_RING_PAGE_LEN;
}

/* ---- life ---- */

static int config_valid(const struct stoup_ring_config *c)
{
	return c->region_len && c->region_len < REGION_LEN_END &&
	       c->region_len % STOUP_RING_PAGE_LEN == 0 && c->largest_len &&
	       c->largest_len <= c->region_len && c->buffer_cap && c->buffer_cap <= BUFFER_CAP_MAX;
}

int stoup_ring_create(const struct stoup_ring_config *config, struct stoup_ring **ret)
{
	struct stoup_ring *ring;

	if (!config_valid(config))
		return -EINVAL;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	ring->config = *config;
	ring->config.largest_len = round_up(config->largest_len);
	if (config->reserve_len == UINT64_MAX)
		ring->config.reserve_len = config->region_len / RESERVE_PART;
	ring->node_cap = 2 * config->buffer_cap + 1 + STOUP_NODE_SPARE;
	ring->node = calloc(ring->node_cap, sizeof(*ring->node));
	ring->buf = aligned_alloc(64, config->buffer_cap * sizeof(*ring->buf));
	ring->evict = calloc(config->buffer_cap, sizeof(*ring->evict));
	if (!ring->node || !ring->buf || !ring->evict) {
		stoup_ring_destroy(ring);
		return -ENOMEM;
	}
	memset(ring->buf, 0, config->buffer_cap * sizeof(*ring->buf));
	ring->epoch = 1;
	stoup_extent_init(ring);
	*ret = ring;
	return 0;
}

void stoup_ring_destroy(struct stoup_ring *ring)
{
	if (!ring)
		return;
	free(ring->evict);
	free(ring->buf);
	free(ring->node);
	free(ring);
}

void stoup_ring_largest_set(struct stoup_ring *ring, uint64_t largest_len)
{
	assert(largest_len && largest_len <= ring->config.region_len);
	ring->config.largest_len = round_up(largest_len);
}

/* ---- leases ---- */

static int has_extent(const struct stoup_ring *ring, uint32_t idx)
{
	return idx < ring->config.buffer_cap && ring->node[idx].len;
}

uint32_t stoup_ring_refs(const struct stoup_ring *ring, uint32_t idx)
{
	if (!has_extent(ring, idx) || ring->buf[idx].refs_epoch != ring->epoch)
		return 0;
	return ring->buf[idx].refs;
}

int stoup_ring_held(const struct stoup_ring *ring, uint32_t idx)
{
	return stoup_ring_refs(ring, idx) || ring->buf[idx].pins;
}

static void held_changed(struct stoup_ring *ring, uint32_t idx, int before)
{
	int after = stoup_ring_held(ring, idx);

	if (after && !before) {
		ring->usage.leased_len += ring->node[idx].len;
		ring->usage.leased_cnt++;
	} else if (before && !after) {
		ring->usage.leased_len -= ring->node[idx].len;
		ring->usage.leased_cnt--;
	}
}

void stoup_ring_leased(struct stoup_ring *ring, uint32_t idx, uint32_t refs)
{
	int before;

	assert(has_extent(ring, idx));
	before = stoup_ring_held(ring, idx);
	ring->buf[idx].refs = refs;
	ring->buf[idx].refs_epoch = ring->epoch;
	held_changed(ring, idx, before);
}

void stoup_ring_scan_begin(struct stoup_ring *ring)
{
	ring->epoch++;
	ring->usage.leased_len = ring->pinned_len;
	ring->usage.leased_cnt = ring->pinned_cnt;
}

void stoup_ring_scan_lease(struct stoup_ring *ring, uint32_t idx)
{
	stoup_ring_leased(ring, idx, stoup_ring_refs(ring, idx) + 1);
}

void stoup_ring_pin(struct stoup_ring *ring, uint32_t idx)
{
	int before;

	assert(has_extent(ring, idx) && ring->buf[idx].pins < UINT8_MAX);
	before = stoup_ring_held(ring, idx);
	if (!ring->buf[idx].pins++) {
		ring->pinned_len += ring->node[idx].len;
		ring->pinned_cnt++;
	}
	held_changed(ring, idx, before);
}

void stoup_ring_unpin(struct stoup_ring *ring, uint32_t idx)
{
	assert(has_extent(ring, idx) && ring->buf[idx].pins);
	if (!--ring->buf[idx].pins) {
		ring->pinned_len -= ring->node[idx].len;
		ring->pinned_cnt--;
	}
	held_changed(ring, idx, 1);
}

/* ---- uses ---- */

void stoup_ring_unread_end(struct stoup_ring *ring, uint32_t idx)
{
	if (!ring->buf[idx].unread)
		return;
	ring->buf[idx].unread = 0;
	ring->usage.unread_len -= ring->node[idx].len;
	ring->usage.unread_cnt--;
}

void stoup_ring_unwanted(struct stoup_ring *ring, uint32_t idx)
{
	assert(has_extent(ring, idx));
	stoup_ring_unread_end(ring, idx);
}

static void heat_up(struct stoup_ring *ring, struct stoup_ring_buf *b)
{
	uint64_t clock = ring->counters.alloc_len;
	uint64_t lost = (clock - b->heat_clock) / ring->config.region_len;

	b->heat = lost < b->heat ? (uint8_t)(b->heat - lost) : 0;
	if (b->heat < HEAT_MAX)
		b->heat++;
	b->heat_clock = clock;
}

void stoup_ring_used(struct stoup_ring *ring, uint32_t idx, uint32_t consumer)
{
	struct stoup_ring_buf *b;
	uint64_t bit = UINT64_C(1) << (consumer % 64);
	int is_new;

	assert(has_extent(ring, idx) && consumer < STOUP_RING_CONSUMER_CAP);
	b = &ring->buf[idx];
	is_new = !(b->used[consumer / 64] & bit);
	b->used[consumer / 64] |= bit;
	b->used_cnt += (uint32_t)is_new;
	stoup_ring_unread_end(ring, idx);
	if (is_new && b->used_cnt == 1)
		b->heat_clock = ring->counters.alloc_len;
	else if (ring->counters.alloc_len - b->heat_clock >= ring->config.region_len / REUSE_PART)
		heat_up(ring, b);
	else if (is_new && !b->heat)
		heat_up(ring, b);
}

void stoup_ring_granted(struct stoup_ring *ring, uint32_t idx, uint32_t consumer)
{
	stoup_ring_scan_lease(ring, idx);
	stoup_ring_used(ring, idx, consumer);
}

void stoup_ring_consumer_gone(struct stoup_ring *ring, uint32_t consumer)
{
	uint64_t bit = UINT64_C(1) << (consumer % 64);

	assert(consumer < STOUP_RING_CONSUMER_CAP);
	for (uint32_t i = 0; i < ring->config.buffer_cap; i++)
		ring->buf[i].used[consumer / 64] &= ~bit;
}

/* ---- states ---- */

void stoup_ring_begin(struct stoup_ring *ring, uint32_t idx, enum stoup_ring_class class,
	struct stoup_ring_plan *plan)
{
	struct stoup_ring_buf *b = &ring->buf[idx];
	uint64_t len = ring->node[idx].len;

	ring->counters.alloc_cnt++;
	ring->counters.alloc_len += len;
	ring->usage.buffer_cnt++;
	ring->usage.loading_cnt++;
	ring->usage.loading_len += len;
	memset(b, 0, sizeof(*b));
	b->heat_clock = ring->counters.alloc_len;
	if (class == STOUP_RING_READAHEAD) {
		b->unread = 1;
		ring->usage.unread_cnt++;
		ring->usage.unread_len += len;
		ring->counters.readahead_cnt++;
	}
	plan->idx = idx;
	plan->off = ring->node[idx].off;
	plan->len = len;
	plan->evict = NULL;
	plan->evict_cnt = 0;
}

static void loading_end(struct stoup_ring *ring, uint32_t idx)
{
	ring->usage.loading_cnt--;
	ring->usage.loading_len -= ring->node[idx].len;
}

void stoup_ring_loaded(struct stoup_ring *ring, uint32_t idx)
{
	assert(has_extent(ring, idx) && ring->node[idx].state == STOUP_RING_LOADING);
	loading_end(ring, idx);
	ring->node[idx].state = STOUP_RING_READY;
}

void stoup_ring_drain(struct stoup_ring *ring, uint32_t idx)
{
	assert(!ring->open_cnt && has_extent(ring, idx));
	assert(ring->node[idx].state == STOUP_RING_READY && !ring->buf[idx].pins);
	ring->node[idx].state = STOUP_RING_DRAINING;
	ring->draining_cnt++;
}

void stoup_ring_free(struct stoup_ring *ring, uint32_t idx)
{
	assert(has_extent(ring, idx) && ring->node[idx].state != STOUP_RING_CANDIDATE);
	assert(!ring->buf[idx].pins);
	if (ring->node[idx].state == STOUP_RING_LOADING)
		loading_end(ring, idx);
	if (ring->node[idx].state == STOUP_RING_DRAINING)
		ring->draining_cnt--;
	stoup_ring_leased(ring, idx, 0);
	stoup_ring_unread_end(ring, idx);
	ring->usage.buffer_cnt--;
	stoup_extent_release(ring, idx);
}

void stoup_ring_evicted(struct stoup_ring *ring, uint32_t idx)
{
	assert(has_extent(ring, idx));
	if (ring->node[idx].state == STOUP_RING_CANDIDATE) {
		ring->open_cnt--;
		ring->node[idx].state = STOUP_RING_READY;
	} else {
		assert(ring->node[idx].state == STOUP_RING_DRAINING);
	}
	ring->counters.evict_cnt++;
	ring->counters.evict_len += ring->node[idx].len;
	ring->counters.readahead_wasted += ring->buf[idx].unread;
	stoup_ring_free(ring, idx);
}

void stoup_ring_kept(struct stoup_ring *ring, uint32_t idx, uint32_t refs)
{
	assert(has_extent(ring, idx) && refs);
	if (ring->node[idx].state == STOUP_RING_CANDIDATE) {
		ring->open_cnt--;
		ring->node[idx].state = STOUP_RING_READY;
		ring->counters.kept_cnt++;
	} else {
		assert(ring->node[idx].state == STOUP_RING_DRAINING);
	}
	stoup_ring_leased(ring, idx, refs);
}

/* ---- what is certain ---- */

int stoup_ring_fits_certain(
	uint64_t region_len, uint64_t largest_len, uint64_t leased_len, uint64_t leased_cnt)
{
	uint64_t pages = region_len / STOUP_RING_PAGE_LEN;
	uint64_t leased = round_up(leased_len) / STOUP_RING_PAGE_LEN;
	uint64_t largest = round_up(largest_len) / STOUP_RING_PAGE_LEN;
	uint64_t gaps;

	if (!largest || leased > pages || largest > pages)
		return 0;
	if (__builtin_mul_overflow(leased_cnt + 1, largest - 1, &gaps))
		return 0;
	return pages - leased > gaps;
}

uint64_t stoup_ring_promise_cap(uint64_t region_len, uint64_t largest_len)
{
	uint64_t pages = region_len / STOUP_RING_PAGE_LEN;
	uint64_t largest = round_up(largest_len) / STOUP_RING_PAGE_LEN;

	if (!largest || largest > pages)
		return 0;
	/* pages - (n-1) x largest > n x (largest-1), solved for n */
	return (pages + largest - 1) / (2 * largest - 1);
}

int stoup_ring_promise_certain(uint64_t region_len, uint64_t largest_len, uint64_t promised_cnt)
{
	return promised_cnt <= stoup_ring_promise_cap(region_len, largest_len);
}

/* ---- looking at it ---- */

static void describe(const struct stoup_ring *ring, uint32_t id, struct stoup_ring_extent *ret)
{
	const struct stoup_node *n = &ring->node[id];

	memset(ret, 0, sizeof(*ret));
	ret->off = n->off;
	ret->len = n->len;
	ret->state = (enum stoup_ring_state)n->state;
	ret->idx = STOUP_RING_IDX_NONE;
	if (id >= ring->config.buffer_cap)
		return;
	ret->idx = id;
	ret->refs = stoup_ring_refs(ring, id);
	ret->used_cnt = ring->buf[id].used_cnt;
	ret->heat = ring->buf[id].heat;
	ret->unread = ring->buf[id].unread;
	ret->pins = ring->buf[id].pins;
}

int stoup_ring_next(const struct stoup_ring *ring, uint64_t *pos, struct stoup_ring_extent *ret)
{
	uint32_t id = *pos ? (uint32_t)(*pos - 1) : ring->first;

	if (id == STOUP_NODE_NONE)
		return 0;
	describe(ring, id, ret);
	*pos = (uint64_t)ring->node[id].next + 1;
	return 1;
}

int stoup_ring_buffer(const struct stoup_ring *ring, uint32_t idx, struct stoup_ring_extent *ret)
{
	if (!has_extent(ring, idx))
		return -ENOENT;
	describe(ring, idx, ret);
	return 0;
}

void stoup_ring_usage(const struct stoup_ring *ring, struct stoup_ring_usage *ret)
{
	*ret = ring->usage;
	ret->free_max_len = stoup_extent_free_max(ring);
	ret->reserved_len = ring->claim.free_len;
}

uint64_t stoup_ring_unread_len(const struct stoup_ring *ring)
{
	return ring->usage.unread_len;
}

const struct stoup_ring_counters *stoup_ring_counters(const struct stoup_ring *ring)
{
	return &ring->counters;
}

uint32_t stoup_ring_draining_cnt(const struct stoup_ring *ring)
{
	return ring->draining_cnt;
}
