/* SPDX-License-Identifier: Apache-2.0 */
/* ring_verify.c - counts everything in the ring again, from the list of extents alone, and
 * compares: every number that the ring keeps while it works must come out the same. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "producer/ring_impl.h"

struct recount {
	struct stoup_ring_usage usage;
	uint64_t claim_free_len;
	uint64_t pinned_len;
	uint64_t end; /* of the extent before */
	uint32_t pinned_cnt;
	uint32_t node_cnt;
	uint32_t draining_cnt;
	uint32_t open_cnt;
	uint32_t prev;
	uint8_t prev_state;
	uint8_t hand_seen;
};

static const char *verify_gap(const struct stoup_ring *ring, uint32_t id, struct recount *c)
{
	const struct stoup_node *n = &ring->node[id];
	int inside = n->off >= ring->claim.off && n->off + n->len <= ring->claim.end;

	if (c->prev_state == n->state && c->prev != STOUP_NODE_NONE)
		return "two free extents are neighbours";
	if (n->state == STOUP_RING_RESERVED) {
		c->claim_free_len += n->len;
		return inside ? NULL : "a reserved extent lies outside the claimed window";
	}
	if (n->state != STOUP_RING_FREE)
		return "a node without buffer is in a buffer's state";
	if (n->off < ring->claim.end && n->off + n->len > ring->claim.off)
		return "a free extent lies in the claimed window";
	c->usage.free_len += n->len;
	c->usage.free_cnt++;
	return NULL;
}

static const char *verify_state(uint32_t state, uint64_t len, struct recount *c)
{
	switch (state) {
	case STOUP_RING_LOADING:
		c->usage.loading_cnt++;
		c->usage.loading_len += len;
		return NULL;
	case STOUP_RING_READY:
		return NULL;
	case STOUP_RING_CANDIDATE:
		c->open_cnt++;
		return NULL;
	case STOUP_RING_DRAINING:
		c->draining_cnt++;
		return NULL;
	default:
		return "a buffer with an extent is free";
	}
}

static const char *verify_buffer(const struct stoup_ring *ring, uint32_t id, struct recount *c)
{
	const struct stoup_node *n = &ring->node[id];
	const struct stoup_ring_buf *b = &ring->buf[id];

	c->usage.buffer_cnt++;
	if (stoup_ring_held(ring, id)) {
		c->usage.leased_cnt++;
		c->usage.leased_len += n->len;
	}
	if (b->pins) {
		c->pinned_cnt++;
		c->pinned_len += n->len;
	}
	if (b->unread) {
		c->usage.unread_cnt++;
		c->usage.unread_len += n->len;
	}
	if (n->off < ring->claim.off && n->off + n->len > ring->claim.off)
		return "a buffer crosses the start of the claimed window";
	if (n->off < ring->claim.end && n->off + n->len > ring->claim.end)
		return "a buffer crosses the end of the claimed window";
	return verify_state(n->state, n->len, c);
}

static const char *verify_list(const struct stoup_ring *ring, struct recount *c)
{
	const char *broken;

	for (uint32_t id = ring->first; id != STOUP_NODE_NONE; id = ring->node[id].next) {
		const struct stoup_node *n = &ring->node[id];

		if (++c->node_cnt > ring->node_cap)
			return "the list of extents has a loop";
		if (n->prev != c->prev)
			return "an extent's way back leads elsewhere";
		if (n->off != c->end || !n->len || n->len % STOUP_RING_PAGE_LEN)
			return "extents leave a gap, overlap or are no whole pages";
		broken = id < ring->config.buffer_cap ? verify_buffer(ring, id, c)
		                                      : verify_gap(ring, id, c);
		if (broken)
			return broken;
		c->end += n->len;
		c->prev = id;
		c->prev_state = n->state;
		c->hand_seen |= id == ring->hand;
	}
	if (c->end != ring->config.region_len)
		return "extents do not end where the region ends";
	return NULL;
}

/* Every entry of a bin is free and of its length, and every free extent is in a bin. */
static const char *verify_bins(const struct stoup_ring *ring, uint32_t free_cnt)
{
	uint32_t cnt = 0;

	for (uint32_t bin = 0; bin < STOUP_BIN_CNT; bin++) {
		uint32_t prev = STOUP_NODE_NONE, id = ring->bin[bin];
		int marked = ring->bin_map[bin / 64] >> (bin % 64) & 1;

		if (marked != (id != STOUP_NODE_NONE))
			return "the map of bins is wrong";
		for (; id != STOUP_NODE_NONE && cnt <= free_cnt; id = ring->node[id].bin_next) {
			if (ring->node[id].state != STOUP_RING_FREE ||
				stoup_bin_of(ring->node[id].len) != bin ||
				ring->node[id].bin_prev != prev)
				return "a bin holds what does not belong there";
			prev = id;
			cnt++;
		}
	}
	return cnt == free_cnt ? NULL : "a free extent is in no bin";
}

static const char *verify_counts(const struct stoup_ring *ring, const struct recount *c)
{
	if (memcmp(&c->usage, &ring->usage, sizeof(c->usage)) != 0)
		return "the usage kept differs from the usage counted";
	if (c->claim_free_len != ring->claim.free_len)
		return "the claim's free bytes are miscounted";
	if (c->pinned_len != ring->pinned_len || c->pinned_cnt != ring->pinned_cnt)
		return "pins are miscounted";
	if (c->draining_cnt != ring->draining_cnt || c->open_cnt != ring->open_cnt)
		return "draining buffers or candidates are miscounted";
	if (c->node_cnt != ring->node_cnt)
		return "extents are miscounted";
	if (c->usage.buffer_cnt + ring->spare_buf_cnt != ring->config.buffer_cap)
		return "a buffer index is lost";
	if (!c->hand_seen)
		return "the hand stands on no extent";
	return NULL;
}

int stoup_ring_verify(const struct stoup_ring *ring, const char **rule)
{
	struct recount c;
	const char *broken;

	memset(&c, 0, sizeof(c));
	c.prev = STOUP_NODE_NONE;
	broken = verify_list(ring, &c);
	if (!broken)
		broken = verify_bins(ring, c.usage.free_cnt);
	if (!broken)
		broken = verify_counts(ring, &c);
	if (!broken)
		return 0;
	if (rule)
		*rule = broken;
	return -EBADMSG;
}
