/* SPDX-License-Identifier: Apache-2.0 */
/* ring_extent.c - the extents: one list in address order, and bins of free extents by length. Knows
 * nothing of leases, heat or the hand, but for keeping the hand on a node that exists. */
#include <stddef.h>

#include "producer/ring_impl.h"

/* Entries of its own bin that a request looks at before it takes from a larger bin: blocks of one
 * store have about the same length, so the first entries usually fit. */
#define BIN_LOOK_CAP 8u

uint32_t stoup_bin_of(uint64_t len)
{
	uint64_t pages = len / STOUP_RING_PAGE_LEN;
	uint32_t log;

	if (pages < 8)
		return (uint32_t)pages;
	log = 63u - (uint32_t)__builtin_clzll(pages);
	return (log - 2u) * 8u + (uint32_t)((pages >> (log - 3u)) & 7u);
}

static void bin_insert(struct stoup_ring *ring, uint32_t id)
{
	struct stoup_node *n = &ring->node[id];
	uint32_t bin = stoup_bin_of(n->len);

	n->bin_prev = STOUP_NODE_NONE;
	n->bin_next = ring->bin[bin];
	if (n->bin_next != STOUP_NODE_NONE)
		ring->node[n->bin_next].bin_prev = id;
	ring->bin[bin] = id;
	ring->bin_map[bin / 64] |= UINT64_C(1) << (bin % 64);
	ring->usage.free_len += n->len;
	ring->usage.free_cnt++;
}

static void bin_remove(struct stoup_ring *ring, uint32_t id)
{
	struct stoup_node *n = &ring->node[id];
	uint32_t bin = stoup_bin_of(n->len);

	if (n->bin_next != STOUP_NODE_NONE)
		ring->node[n->bin_next].bin_prev = n->bin_prev;
	if (n->bin_prev != STOUP_NODE_NONE)
		ring->node[n->bin_prev].bin_next = n->bin_next;
	else
		ring->bin[bin] = n->bin_next;
	if (ring->bin[bin] == STOUP_NODE_NONE)
		ring->bin_map[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
	ring->usage.free_len -= n->len;
	ring->usage.free_cnt--;
}

/* The lowest bin from `bin` on that has an entry; STOUP_BIN_CNT if none has. */
static uint32_t bin_above(const struct stoup_ring *ring, uint32_t bin)
{
	uint32_t word = bin / 64;
	uint64_t map;

	if (bin >= STOUP_BIN_CNT)
		return STOUP_BIN_CNT;
	map = ring->bin_map[word] & (UINT64_MAX << (bin % 64));
	while (!map) {
		if (++word == STOUP_BIN_WORD_CNT)
			return STOUP_BIN_CNT;
		map = ring->bin_map[word];
	}
	return word * 64 + (uint32_t)__builtin_ctzll(map);
}

uint32_t stoup_extent_find(const struct stoup_ring *ring, uint64_t len)
{
	uint32_t bin = stoup_bin_of(len), look = 0, above, id;

	for (id = ring->bin[bin]; id != STOUP_NODE_NONE; id = ring->node[id].bin_next) {
		if (ring->node[id].len >= len)
			return id;
		if (++look == BIN_LOOK_CAP)
			break;
	}
	above = bin_above(ring, bin + 1);
	if (above < STOUP_BIN_CNT)
		return ring->bin[above];
	while (id != STOUP_NODE_NONE && ring->node[id].len < len)
		id = ring->node[id].bin_next;
	return id;
}

uint64_t stoup_extent_free_max(const struct stoup_ring *ring)
{
	uint32_t word = STOUP_BIN_WORD_CNT, id;
	uint64_t max = 0;

	while (word && !ring->bin_map[word - 1])
		word--;
	if (!word)
		return 0;
	word--;
	id = ring->bin[word * 64 + 63u - (uint32_t)__builtin_clzll(ring->bin_map[word])];
	for (; id != STOUP_NODE_NONE; id = ring->node[id].bin_next)
		if (ring->node[id].len > max)
			max = ring->node[id].len;
	return max;
}

/* ---- the list ---- */

static void list_insert(struct stoup_ring *ring, uint32_t id, uint32_t prev, uint32_t next)
{
	ring->node[id].prev = prev;
	ring->node[id].next = next;
	if (prev != STOUP_NODE_NONE)
		ring->node[prev].next = id;
	else
		ring->first = id;
	if (next != STOUP_NODE_NONE)
		ring->node[next].prev = id;
	ring->node_cnt++;
}

static void list_remove(struct stoup_ring *ring, uint32_t id)
{
	const struct stoup_node *n = &ring->node[id];

	if (n->prev != STOUP_NODE_NONE)
		ring->node[n->prev].next = n->next;
	else
		ring->first = n->next;
	if (n->next != STOUP_NODE_NONE)
		ring->node[n->next].prev = n->prev;
	ring->node_cnt--;
}

/* Put `id` in the place of `old`, hand included. */
static void list_replace(struct stoup_ring *ring, uint32_t id, uint32_t old)
{
	uint32_t prev = ring->node[old].prev, next = ring->node[old].next;

	list_remove(ring, old);
	list_insert(ring, id, prev, next);
	if (ring->hand == old)
		ring->hand = id;
}

static uint32_t spare_pop(struct stoup_ring *ring, uint32_t *stack)
{
	uint32_t id = *stack;

	assert(id != STOUP_NODE_NONE);
	*stack = ring->node[id].bin_next;
	return id;
}

static void spare_push(struct stoup_ring *ring, uint32_t *stack, uint32_t id)
{
	ring->node[id].state = STOUP_RING_FREE;
	ring->node[id].len = 0;
	ring->node[id].bin_next = *stack;
	*stack = id;
}

/* ---- free and reserved extents ---- */

static void gap_enter(struct stoup_ring *ring, uint32_t id)
{
	if (ring->node[id].state == STOUP_RING_FREE) {
		bin_insert(ring, id);
		return;
	}
	ring->claim.free_len += ring->node[id].len;
	ring->claim.node = id;
}

static void gap_leave(struct stoup_ring *ring, uint32_t id)
{
	if (ring->node[id].state == STOUP_RING_FREE)
		bin_remove(ring, id);
	else
		ring->claim.free_len -= ring->node[id].len;
}

/* A gap node that is in the list and in no bin: it swallows equal neighbours, and is entered. */
static void gap_settle(struct stoup_ring *ring, uint32_t id)
{
	struct stoup_node *n = &ring->node[id];
	uint32_t side[2] = {n->prev, n->next};

	for (int i = 0; i < 2; i++) {
		const struct stoup_node *m;

		if (side[i] == STOUP_NODE_NONE || ring->node[side[i]].state != n->state)
			continue;
		m = &ring->node[side[i]];
		gap_leave(ring, side[i]);
		if (i == 0)
			n->off = m->off;
		n->len += m->len;
		list_remove(ring, side[i]);
		if (ring->hand == side[i])
			ring->hand = id;
		spare_push(ring, &ring->spare_free, side[i]);
	}
	gap_enter(ring, id);
}

/* A new gap of `len` bytes at `off` between two nodes of the list. */
static uint32_t gap_insert(struct stoup_ring *ring, uint64_t off, uint64_t len, uint32_t prev,
	uint32_t next, uint8_t state)
{
	uint32_t id = spare_pop(ring, &ring->spare_free);

	ring->node[id].off = off;
	ring->node[id].len = len;
	ring->node[id].state = state;
	list_insert(ring, id, prev, next);
	return id;
}

void stoup_extent_init(struct stoup_ring *ring)
{
	uint32_t id = ring->node_cap;

	for (uint32_t i = 0; i < STOUP_BIN_CNT; i++)
		ring->bin[i] = STOUP_NODE_NONE;
	ring->spare_free = STOUP_NODE_NONE;
	ring->spare_buf = STOUP_NODE_NONE;
	while (id > ring->config.buffer_cap)
		spare_push(ring, &ring->spare_free, --id);
	while (id > 0)
		spare_push(ring, &ring->spare_buf, --id);
	ring->spare_buf_cnt = ring->config.buffer_cap;
	ring->first = STOUP_NODE_NONE;
	ring->hand = gap_insert(ring, 0, ring->config.region_len, STOUP_NODE_NONE, STOUP_NODE_NONE,
		STOUP_RING_FREE);
	gap_enter(ring, ring->hand);
}

uint32_t stoup_extent_carve(struct stoup_ring *ring, uint32_t from, uint64_t len)
{
	struct stoup_node *n = &ring->node[from];
	uint32_t idx = spare_pop(ring, &ring->spare_buf);

	ring->spare_buf_cnt--;
	gap_leave(ring, from);
	ring->node[idx].off = n->off;
	ring->node[idx].len = len;
	ring->node[idx].state = STOUP_RING_LOADING;
	if (n->len == len) {
		list_replace(ring, idx, from);
		spare_push(ring, &ring->spare_free, from);
		/* The newest buffer is the last that the hand shall come to. */
		if (ring->hand == idx)
			ring->hand = ring->node[idx].next;
		if (ring->hand == STOUP_NODE_NONE)
			ring->hand = ring->first;
		return idx;
	}
	if (ring->upper) {
		ring->node[idx].off = n->off + n->len - len;
		list_insert(ring, idx, from, n->next);
		if (ring->hand == from)
			ring->hand = ring->node[idx].next;
		if (ring->hand == STOUP_NODE_NONE)
			ring->hand = ring->first;
	} else {
		list_insert(ring, idx, n->prev, from);
		n->off += len;
	}
	n->len -= len;
	n->state = STOUP_RING_FREE;
	gap_settle(ring, from);
	return idx;
}

void stoup_extent_release(struct stoup_ring *ring, uint32_t idx)
{
	const struct stoup_node *b = &ring->node[idx];
	uint32_t id = spare_pop(ring, &ring->spare_free);
	struct stoup_node *n = &ring->node[id];

	n->off = b->off;
	n->len = b->len;
	n->state = b->off >= ring->claim.off && b->off < ring->claim.end ? STOUP_RING_RESERVED
	                                                                 : STOUP_RING_FREE;
	list_replace(ring, id, idx);
	spare_push(ring, &ring->spare_buf, idx);
	ring->spare_buf_cnt++;
	gap_settle(ring, id);
}

void stoup_extent_reserve(struct stoup_ring *ring, uint32_t node, uint64_t skip, uint64_t keep)
{
	struct stoup_node *n = &ring->node[node];
	uint64_t rest = n->len - skip - keep;

	gap_leave(ring, node);
	if (skip)
		gap_enter(ring, gap_insert(ring, n->off, skip, n->prev, node, STOUP_RING_FREE));
	if (rest)
		gap_enter(ring, gap_insert(ring, n->off + skip + keep, rest, node, n->next,
					STOUP_RING_FREE));
	n->off += skip;
	n->len = keep;
	n->state = STOUP_RING_RESERVED;
	gap_settle(ring, node);
}

void stoup_extent_unreserve(struct stoup_ring *ring, uint32_t node)
{
	gap_leave(ring, node);
	ring->node[node].state = STOUP_RING_FREE;
	gap_settle(ring, node);
}
