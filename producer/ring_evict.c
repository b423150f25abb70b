/* SPDX-License-Identifier: Apache-2.0 */
/* ring_evict.c - the hand: which window of consecutive extents goes when there is no room; and the
 * claim, for a request that finds no window at all.
 *
 * The search slides a window over the extents, in address order from the hand:
 *
 *      weight   0   0  [0  30   0   7] blocked  0  [0   0   0   0]
 *                      `- long enough, cost > 0     `- long enough, cost 0: taken at once
 *
 * Weights are in 1/256 of a turnover, the time in which as many bytes are loaded as the region has:
 * for how long the buffer is expected to be worth its room. Both kinds of knowledge come in that
 * unit: a re-used buffer is kept for `heat` turnovers after its last use, and one that a cursor
 * will reach within a turnover is the dearer the nearer the cursor is. Nothing is aged by the hand
 * itself, so a large request that looks at many extents does not wear down what others re-use. */
#include <errno.h>
#include <stddef.h>

#include "producer/ring_impl.h"

#define BLOCKED       UINT32_MAX
#define WEIGHT_UNIT   256u
#define WEIGHT_UNREAD (UINT32_C(1) << 16) /* above all others */
#define WEIGHT_PINNED (UINT32_C(1) << 20) /* of a claim over which pins yield: the last that goes */

/* Chosen with bench/evict_sim: a cursor that comes outweighs re-use in the past, from two turnovers
 * away on (farms of workers then decode least), and read-ahead spares what is needed within a
 * quarter of the region and what was re-used often and within half a turnover. Stricter, it stands
 * still in a convoy, where all has just been used by several. */
#define NEAR_TURNOVERS 2u
#define NEAR_FACTOR    3u
#define NEAR_READAHEAD 4u
#define HEAT_READAHEAD (WEIGHT_UNIT * 5 / 2)

#define COSTLY_PART 4u /* of the reserve, when each eviction has a cost */

/* ---- weights ---- */

/* Scale bytes (at most a few regions) to the unit of weights, at least 1. */
static uint32_t turnovers(const struct stoup_ring *ring, uint64_t len)
{
	return (uint32_t)(len / (ring->config.region_len / WEIGHT_UNIT + 1)) + 1;
}

static uint32_t weigh_heat(const struct stoup_ring *ring, const struct stoup_ring_buf *b)
{
	uint64_t worth = b->heat * ring->config.region_len;
	uint64_t age = ring->counters.alloc_len - b->heat_clock;

	return worth > age ? turnovers(ring, worth - age) : 0;
}

static uint32_t weigh_near(const struct stoup_ring *ring, uint64_t next)
{
	uint64_t horizon = NEAR_TURNOVERS * ring->config.region_len;

	return next < horizon ? NEAR_FACTOR * turnovers(ring, horizon - next) : 0;
}

static uint32_t weigh_buffer(struct stoup_ring *ring, uint32_t idx, enum stoup_ring_class class)
{
	const struct stoup_ring_buf *b = &ring->buf[idx];
	uint64_t region_len = ring->config.region_len, next = STOUP_RING_USE_UNKNOWN;
	uint32_t heat, near;

	if (ring->node[idx].state != STOUP_RING_READY || stoup_ring_held(ring, idx))
		return BLOCKED;
	/* Read-ahead that a whole turnover left unread was asked for in vain. */
	if (b->unread && ring->counters.alloc_len - b->heat_clock >= region_len)
		stoup_ring_unread_end(ring, idx);
	heat = weigh_heat(ring, b);
	if (class == STOUP_RING_READAHEAD && (b->unread || heat > HEAT_READAHEAD))
		return BLOCKED;
	if (ring->config.next_use)
		next = ring->config.next_use(ring->config.next_use_arg, idx);
	if (class == STOUP_RING_READAHEAD && next <= region_len / NEAR_READAHEAD)
		return BLOCKED;
	near = weigh_near(ring, next);
	return (heat > near ? heat : near) + (b->unread ? WEIGHT_UNREAD : 0);
}

static uint32_t weigh(struct stoup_ring *ring, uint32_t id, enum stoup_ring_class class)
{
	if (id < ring->config.buffer_cap)
		return weigh_buffer(ring, id, class);
	return ring->node[id].state == STOUP_RING_FREE ? 0 : BLOCKED;
}

/* ---- the window ---- */

struct window {
	uint64_t len;
	uint64_t cost;
	uint64_t held; /* claims: bytes that have to be waited for; else 0 */
	uint32_t left;
	uint32_t right; /* last extent in it */
	uint32_t buf_cnt;
};

static const struct window no_window = {
	0, UINT64_MAX, UINT64_MAX, STOUP_NODE_NONE, STOUP_NODE_NONE, 0};

static void window_clear(struct window *w)
{
	*w = (struct window){0, 0, 0, STOUP_NODE_NONE, STOUP_NODE_NONE, 0};
}

static uint64_t node_cost(const struct stoup_node *n)
{
	return n->len / STOUP_RING_PAGE_LEN * n->weight;
}

static void window_push(const struct stoup_ring *ring, struct window *w, uint32_t id, uint64_t held)
{
	if (w->left == STOUP_NODE_NONE)
		w->left = id;
	w->right = id;
	w->len += ring->node[id].len;
	w->cost += node_cost(&ring->node[id]);
	w->held += held;
	w->buf_cnt += id < ring->config.buffer_cap;
}

/* Drop the leftmost extent if the rest is still long enough and has buffers enough. */
static int window_shrink(
	const struct stoup_ring *ring, struct window *w, uint64_t len, uint32_t buf_min)
{
	const struct stoup_node *n = &ring->node[w->left];
	uint32_t is_buf = w->left < ring->config.buffer_cap;

	if (w->left == w->right || w->len - n->len < len || w->buf_cnt - is_buf < buf_min)
		return 0;
	w->len -= n->len;
	w->cost -= node_cost(n);
	w->buf_cnt -= is_buf;
	w->left = n->next;
	return 1;
}

/* Buffer indices that an ordinary request may take: the last one is the claim's. */
static uint32_t spare_cnt(const struct stoup_ring *ring)
{
	uint32_t owed = ring->claim.end ? 1 : 0;

	return ring->spare_buf_cnt > owed ? ring->spare_buf_cnt - owed : 0;
}

/* Beyond STOUP_RING_LOOK_CAP: is it enough? */
static int search_ends(
	const struct window *best, const struct window *open, enum stoup_ring_class class)
{
	return best->left != STOUP_NODE_NONE ||
	       (class == STOUP_RING_READAHEAD && open->left == STOUP_NODE_NONE);
}

/* The window to evict for `len` bytes. A demand goes on beyond STOUP_RING_LOOK_CAP while it has
 * found nothing, and past its start by one round, so that a window across the hand is found as
 * well; read-ahead gives up there, unless a window has begun, and leaves the hand where it came to,
 * to look elsewhere next time. */
static struct window search(struct stoup_ring *ring, uint64_t len, enum stoup_ring_class class)
{
	struct window best = no_window, w;
	uint32_t buf_min = spare_cnt(ring) ? 0 : 1, id = ring->hand;
	uint64_t look_cap = 2 * (uint64_t)ring->node_cnt;

	window_clear(&w);
	for (uint64_t look = 0; look < look_cap; look++) {
		if (id == STOUP_NODE_NONE) {
			id = ring->first;
			window_clear(&w);
		}
		ring->counters.look_cnt++;
		ring->node[id].weight = weigh(ring, id, class);
		if (ring->node[id].weight == BLOCKED)
			window_clear(&w);
		else
			window_push(ring, &w, id, 0);
		while (w.left != STOUP_NODE_NONE && window_shrink(ring, &w, len, buf_min))
			;
		if (w.len >= len && w.buf_cnt >= buf_min && w.cost < best.cost)
			best = w;
		id = ring->node[id].next;
		if (best.cost == 0 ||
			(look + 1 >= STOUP_RING_LOOK_CAP && search_ends(&best, &w, class)))
			break;
	}
	if (best.left == STOUP_NODE_NONE)
		ring->hand = id == STOUP_NODE_NONE ? ring->first : id;
	return best;
}

/* ---- plans ---- */

static void candidate(struct stoup_ring *ring, uint32_t id, struct stoup_ring_plan *plan)
{
	ring->node[id].state = STOUP_RING_CANDIDATE;
	ring->evict[plan->evict_cnt++] = id;
	ring->open_cnt++;
}

static void plan_clear(struct stoup_ring *ring, struct stoup_ring_plan *plan)
{
	plan->idx = STOUP_RING_IDX_NONE;
	plan->off = 0;
	plan->len = 0;
	plan->evict = ring->evict;
	plan->evict_cnt = 0;
}

static void hand_set(struct stoup_ring *ring, uint32_t id)
{
	if (id == STOUP_NODE_NONE) {
		id = ring->first;
		ring->counters.pass_cnt++;
	}
	ring->hand = id;
}

/* From the hand on, add what weighs at most `limit` until `want_len` bytes more will be free. */
static void plan_extend(struct stoup_ring *ring, uint64_t want_len, uint32_t limit,
	enum stoup_ring_class class, struct stoup_ring_plan *plan)
{
	uint64_t len = 0;
	uint32_t look_cap =
		ring->node_cnt < STOUP_RING_LOOK_CAP ? ring->node_cnt : STOUP_RING_LOOK_CAP;

	for (uint32_t look = 0; look < look_cap && len < want_len; look++) {
		uint32_t id = ring->hand;

		ring->counters.look_cnt++;
		if (id < ring->config.buffer_cap && weigh(ring, id, class) <= limit) {
			len += ring->node[id].len;
			candidate(ring, id, plan);
		}
		hand_set(ring, ring->node[id].next);
	}
}

static void plan_window(struct stoup_ring *ring, const struct window *w, uint64_t len,
	enum stoup_ring_class class, struct stoup_ring_plan *plan)
{
	uint64_t free_len = ring->usage.free_len;
	uint64_t want_len = len + ring->config.reserve_len;
	uint32_t id = w->left, end = ring->node[w->right].next;
	uint32_t limit = (uint32_t)(w->cost / (w->len / STOUP_RING_PAGE_LEN));

	/* In a pool where nothing is for free, a batch takes what is as cheap as the window was:
	 * else each miss would have a scan to itself. A small batch: all of it may be missed. */
	if (limit)
		want_len = len + ring->config.reserve_len / COSTLY_PART;
	if (limit >= WEIGHT_UNREAD)
		limit = 0;
	for (; id != end; id = ring->node[id].next) {
		if (id >= ring->config.buffer_cap)
			continue;
		free_len += ring->node[id].len;
		candidate(ring, id, plan);
	}
	hand_set(ring, end);
	ring->counters.plan_cnt++;
	if (free_len < want_len)
		plan_extend(ring, want_len - free_len, limit, class, plan);
}

/* A pool of a few blocks has no room for read-ahead at all. */
static int readahead_none(const struct stoup_ring *ring)
{
	return ring->config.region_len / STOUP_RING_READAHEAD_FLOOR < ring->config.largest_len;
}

static int share_full(const struct stoup_ring *ring, uint64_t len)
{
	return ring->usage.unread_len + len > ring->config.region_len / STOUP_RING_UNREAD_PART;
}

int stoup_ring_ahead_waits(const struct stoup_ring *ring, uint64_t len)
{
	return !readahead_none(ring) && share_full(ring, len) && ring->usage.unread_len > 0;
}

enum stoup_ring_outcome stoup_ring_alloc(struct stoup_ring *ring, uint64_t len,
	enum stoup_ring_class class, struct stoup_ring_plan *plan)
{
	struct window w;
	uint32_t from;

	assert(!ring->open_cnt && len && len <= ring->config.region_len);
	len = (len + STOUP_RING_PAGE_LEN - 1) / STOUP_RING_PAGE_LEN * STOUP_RING_PAGE_LEN;
	plan_clear(ring, plan);
	if (class == STOUP_RING_READAHEAD && (readahead_none(ring) || share_full(ring, len))) {
		ring->counters.readahead_refused++;
		return STOUP_RING_NONE;
	}
	from = stoup_extent_find(ring, len);
	if (from != STOUP_NODE_NONE && spare_cnt(ring)) {
		stoup_ring_begin(ring, stoup_extent_carve(ring, from, len), class, plan);
		return STOUP_RING_FIT;
	}
	/* Where there is room and only an index is missing, any one buffer will do. */
	w = search(ring, from == STOUP_NODE_NONE ? len : STOUP_RING_PAGE_LEN, class);
	if (w.left != STOUP_NODE_NONE) {
		plan_window(ring, &w, len, class, plan);
		return STOUP_RING_EVICT;
	}
	if (class == STOUP_RING_READAHEAD)
		ring->counters.readahead_refused++;
	else
		ring->counters.none_cnt++;
	return STOUP_RING_NONE;
}

void stoup_ring_upper_set(struct stoup_ring *ring, int upper)
{
	ring->upper = upper;
}

enum stoup_ring_outcome stoup_ring_reserve(struct stoup_ring *ring, struct stoup_ring_plan *plan)
{
	assert(!ring->open_cnt);
	plan_clear(ring, plan);
	if (ring->usage.free_len >= ring->config.reserve_len / 2)
		return STOUP_RING_NONE;
	plan_extend(ring, ring->config.reserve_len - ring->usage.free_len, 0, STOUP_RING_READAHEAD,
		plan);
	if (!plan->evict_cnt)
		return STOUP_RING_NONE;
	ring->counters.plan_cnt++;
	return STOUP_RING_EVICT;
}

/* ---- the claim ---- */

static int is_pinned(const struct stoup_ring *ring, uint32_t id)
{
	return id < ring->config.buffer_cap && ring->buf[id].pins > 0;
}

/* What stands in the way of a claim: everything that cannot go now. Pins can, where they are to yield. */
static uint64_t claim_held(const struct stoup_ring *ring, uint32_t id)
{
	if (id >= ring->config.buffer_cap)
		return 0;
	if (ring->node[id].state == STOUP_RING_READY && !stoup_ring_refs(ring, id))
		return 0;
	return ring->node[id].len;
}

static uint32_t claim_weight(struct stoup_ring *ring, uint32_t id, uint64_t held)
{
	if (held)
		return 0;
	return is_pinned(ring, id) ? WEIGHT_PINNED : weigh(ring, id, STOUP_RING_DEMAND);
}

static int claim_better(const struct window *a, const struct window *b)
{
	return a->held != b->held ? a->held < b->held : a->cost < b->cost;
}

static struct window claim_search(struct stoup_ring *ring, uint64_t len, int over_pins)
{
	struct window best = no_window, w;
	uint32_t buf_min = ring->spare_buf_cnt ? 0 : 1;

	window_clear(&w);
	for (uint32_t id = ring->first; id != STOUP_NODE_NONE; id = ring->node[id].next) {
		uint64_t held = claim_held(ring, id);
		uint32_t left;

		ring->counters.look_cnt++;
		if (!over_pins && is_pinned(ring, id)) {
			window_clear(&w);
			continue;
		}
		ring->node[id].weight = claim_weight(ring, id, held);
		window_push(ring, &w, id, held);
		for (left = w.left; window_shrink(ring, &w, len, buf_min); left = w.left)
			w.held -= claim_held(ring, left);
		if (w.len >= len && w.buf_cnt >= buf_min && claim_better(&w, &best))
			best = w;
	}
	return best;
}

/* Reserve the free extents of the window; what it has too much is cut from a free end. */
static void claim_reserve(struct stoup_ring *ring, const struct window *w, uint64_t len)
{
	uint64_t surplus = w->len - len, left_cut = 0, right_cut = 0;
	const struct stoup_node *left = &ring->node[w->left], *right = &ring->node[w->right];
	uint32_t id = w->left, next, end = right->next;

	if (left->state == STOUP_RING_FREE && left->len > surplus)
		left_cut = surplus;
	else if (right->state == STOUP_RING_FREE && right->len > surplus)
		right_cut = surplus;
	ring->claim.off = left->off + left_cut;
	ring->claim.end = right->off + right->len - right_cut;
	ring->claim.need_len = len;
	for (; id != end; id = next) {
		uint64_t skip = id == w->left ? left_cut : 0;
		uint64_t rest = id == w->right ? right_cut : 0;

		next = id == w->right ? end : ring->node[id].next;
		if (ring->node[id].state == STOUP_RING_FREE)
			stoup_extent_reserve(ring, id, skip, ring->node[id].len - skip - rest);
	}
}

static int claim_begin(struct stoup_ring *ring, uint64_t len, int over_pins)
{
	struct window w = no_window;

	assert(!ring->open_cnt && len);
	if (ring->claim.end)
		return -EBUSY;
	len = (len + STOUP_RING_PAGE_LEN - 1) / STOUP_RING_PAGE_LEN * STOUP_RING_PAGE_LEN;
	if (!over_pins)
		w = claim_search(ring, len, 0);
	if (w.left == STOUP_NODE_NONE)
		w = claim_search(ring, len, 1);
	if (w.left == STOUP_NODE_NONE)
		return -ENOBUFS;
	claim_reserve(ring, &w, len);
	ring->counters.claim_cnt++;
	return 0;
}

int stoup_ring_claim(struct stoup_ring *ring, uint64_t len)
{
	return claim_begin(ring, len, 0);
}

int stoup_ring_claim_any(struct stoup_ring *ring, uint64_t len)
{
	return claim_begin(ring, len, 1);
}

/* The first extent of the claimed window. */
static uint32_t claim_first(const struct stoup_ring *ring)
{
	uint32_t id = ring->first;

	while (ring->node[id].off < ring->claim.off)
		id = ring->node[id].next;
	return id;
}

uint32_t stoup_ring_claim_pinned(const struct stoup_ring *ring)
{
	uint32_t id = ring->claim.end ? claim_first(ring) : STOUP_NODE_NONE;

	for (; id != STOUP_NODE_NONE && ring->node[id].off < ring->claim.end;
		id = ring->node[id].next)
		if (is_pinned(ring, id))
			return id;
	return STOUP_RING_IDX_NONE;
}

uint32_t stoup_ring_claim_plan(struct stoup_ring *ring, struct stoup_ring_plan *plan)
{
	uint32_t id;

	assert(!ring->open_cnt && ring->claim.end);
	plan_clear(ring, plan);
	for (id = claim_first(ring); id != STOUP_NODE_NONE; id = ring->node[id].next) {
		if (ring->node[id].off >= ring->claim.end)
			break;
		if (ring->node[id].state != STOUP_RING_READY || ring->buf[id].pins)
			continue;
		ring->node[id].state = STOUP_RING_DRAINING;
		ring->draining_cnt++;
		ring->counters.claim_drain_cnt++;
		ring->evict[plan->evict_cnt++] = id;
	}
	return plan->evict_cnt;
}

int stoup_ring_claim_active(const struct stoup_ring *ring)
{
	return ring->claim.end != 0;
}

int stoup_ring_claim_window(const struct stoup_ring *ring, uint64_t *off, uint64_t *len)
{
	if (!ring->claim.end)
		return 0;
	*off = ring->claim.off;
	*len = ring->claim.end - ring->claim.off;
	return 1;
}

int stoup_ring_claim_ready(const struct stoup_ring *ring)
{
	return ring->claim.end && ring->claim.free_len == ring->claim.end - ring->claim.off;
}

void stoup_ring_claim_take(
	struct stoup_ring *ring, enum stoup_ring_class class, struct stoup_ring_plan *plan)
{
	uint32_t idx;

	assert(!ring->open_cnt && stoup_ring_claim_ready(ring));
	idx = stoup_extent_carve(ring, ring->claim.node, ring->claim.need_len);
	ring->claim = (struct stoup_ring_claim){0, 0, 0, 0, 0, 0};
	ring->counters.claim_taken_cnt++;
	stoup_ring_begin(ring, idx, class, plan);
}

void stoup_ring_claim_cancel(struct stoup_ring *ring)
{
	uint32_t id;
	uint64_t end = ring->claim.end;

	assert(!ring->open_cnt && end);
	id = claim_first(ring);
	while (id != STOUP_NODE_NONE && ring->node[id].off < end) {
		if (ring->node[id].state == STOUP_RING_RESERVED)
			stoup_extent_unreserve(ring, id);
		id = ring->node[id].next;
	}
	ring->claim = (struct stoup_ring_claim){0, 0, 0, 0, 0, 0};
}
