/* SPDX-License-Identifier: Apache-2.0 */
/* evict.c - buffers in and out of use: the clear-fence-scan pass, the look at all cells, the claim.
 *
 *      plan (ring)  -->  clear residency [E1]  -->  fence  -->  scan all cells  -->  kept: word back
 *                                                                              \->  gone: generation + 1
 *
 * An attach is never answered inside a pass: the conductor does one thing at a time, so that no page
 * can appear between the clears and the scan.
 */
#include "producer/daemon.h"

#include "shm/lease.h"

#define PIN_YIELD_NS                                                                               \
	UINT64_C(250000000) /* so long a request waits for leases before pins yield to it */
#define VOLUME_BATCH 1024u  /* buffers of a closed volume in one pass: bounds the stack */

static _Atomic uint64_t *residency_of(const struct stoup_daemon *d, const struct stoup_buffer *b)
{
	return &d->volumes[b->volume_idx].residency[b->block_idx];
}

/* ---- one buffer ------------------------------------------------------------------------------- */

static void show_state(struct stoup_daemon *d, uint32_t idx)
{
	atomic_store_explicit(&d->table[idx].state, d->buffers[idx].state, memory_order_relaxed);
}

void stoup_buffer_fill(struct stoup_daemon *d, uint32_t idx, uint64_t off, uint32_t len,
	uint32_t volume_idx, uint32_t block_idx)
{
	struct stoup_control_buffer *entry = &d->table[idx];
	struct stoup_buffer *b = &d->buffers[idx];

	d->volumes[volume_idx].buffer_cnt++;
	b->volume_idx = volume_idx;
	b->block_idx = block_idx;
	b->state = STOUP_BUFFER_LOADING;
	b->ahead = 0;
	/* No cell names this index with the present generation: nobody relies on these fields yet. They
	 * reach readers through the release of the residency word [L2]. */
	atomic_store_explicit(&entry->off, off, memory_order_relaxed);
	atomic_store_explicit(&entry->len, len, memory_order_relaxed);
	atomic_store_explicit(&entry->gen, b->gen, memory_order_relaxed);
	atomic_store_explicit(&entry->volume_idx, volume_idx, memory_order_relaxed);
	atomic_store_explicit(&entry->block_idx, block_idx, memory_order_relaxed);
	atomic_store_explicit(&entry->refs, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->used_cnt, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->flags, 0, memory_order_relaxed);
	show_state(d, idx);
}

void stoup_buffer_publish(struct stoup_daemon *d, uint32_t idx, int ahead)
{
	struct stoup_buffer *b = &d->buffers[idx];

	b->state = STOUP_BUFFER_RESIDENT;
	b->ahead = (uint32_t)ahead;
	atomic_store_explicit(&d->table[idx].loaded_ns, d->now_ns, memory_order_relaxed);
	show_state(d, idx);
	stoup_ring_loaded(d->ring, idx);
	stoup_pin_buffer_loaded(d, idx);
	STOUP_HOOK("load.decoded");
	stoup_residency_publish(residency_of(d, b), stoup_word(b->gen, idx)); /* [L2] */
}

/* The extent is free again: raise the generation first, so that no old word can match. */
static void retire(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_buffer *b = &d->buffers[idx];

	if (b->ahead)
		stoup_counter_add(d, STOUP_COUNTER_AHEAD_WASTED, 1);
	d->volumes[b->volume_idx].buffer_cnt--;
	b->gen = stoup_gen_next(b->gen);
	b->state = STOUP_BUFFER_FREE;
	b->ahead = 0;
	atomic_store_explicit(&d->table[idx].gen, b->gen, memory_order_relaxed);
	atomic_store_explicit(&d->table[idx].refs, 0, memory_order_relaxed);
	show_state(d, idx);
}

void stoup_buffer_abandon(struct stoup_daemon *d, uint32_t idx)
{
	retire(d, idx);
	stoup_ring_free(d->ring, idx);
}

/* ---- looking at the cells --------------------------------------------------------------------- */

/* A cell changed since the last look: its consumer used that buffer. */
static void note_use(struct stoup_daemon *d, uint32_t consumer_idx, uint64_t v)
{
	uint32_t idx = stoup_word_idx(v);

	if (v & STOUP_WORD_TICKET || v == 0 || idx >= d->buffer_cap)
		return;
	if (d->buffers[idx].gen != stoup_word_gen(v) ||
		d->buffers[idx].state < STOUP_BUFFER_RESIDENT)
		return;
	d->buffers[idx].ahead = 0;
	stoup_ring_used(d->ring, idx, consumer_idx);
	stoup_streams_note(d->consumers[consumer_idx].streams, d->buffers[idx].volume_idx,
		d->buffers[idx].block_idx, d->now_ns);
}

uint64_t stoup_evict_next_use(void *arg, uint32_t idx)
{
	const struct stoup_daemon *d = arg;
	const struct stoup_buffer *b = &d->buffers[idx];
	uint64_t best = STOUP_STREAM_FAR;

	for (uint32_t i = 0; i < d->opt.consumer_cap && best > 0; i++) {
		uint64_t distance;

		if (d->consumers[i].state != STOUP_CONSUMER_ATTACHED)
			continue;
		distance = stoup_streams_distance(
			d->consumers[i].streams, b->volume_idx, b->block_idx, d->now_ns);
		if (distance < best)
			best = distance;
	}
	/* Blocks of one schema are of about one length. */
	return best == STOUP_STREAM_FAR
	               ? STOUP_RING_USE_UNKNOWN
	               : best * atomic_load_explicit(&d->table[idx].len, memory_order_relaxed);
}

/* The consumer writes its page as it likes: an index or generation that does not fit is no lease. */
static int lease_of(const struct stoup_daemon *d, uint64_t v)
{
	uint32_t idx = stoup_word_idx(v);

	return stoup_cell_leased(v) && idx < d->buffer_cap &&
	       d->buffers[idx].gen == stoup_word_gen(v) &&
	       d->buffers[idx].state >= STOUP_BUFFER_RESIDENT;
}

int stoup_evict_leased(const struct stoup_daemon *d, uint64_t value)
{
	return lease_of(d, value);
}

/* How long cell i has held what it holds: begins, goes on, or ends at this look. */
static void note_age(
	struct stoup_daemon *d, struct stoup_consumer *c, uint32_t i, int held, int same)
{
	if (c->since_ns[i] != 0 && !(held && same)) {
		stoup_time(d, STOUP_HISTOGRAM_LEASE, d->now_ns - c->since_ns[i]);
		c->since_ns[i] = 0;
	}
	if (!held)
		return;
	if (c->since_ns[i] == 0)
		c->since_ns[i] = d->now_ns;
	if (c->oldest_ns == 0 || c->since_ns[i] < c->oldest_ns)
		c->oldest_ns = c->since_ns[i];
}

static void scan_consumer(struct stoup_daemon *d, uint32_t consumer_idx)
{
	struct stoup_consumer *c = &d->consumers[consumer_idx];
	struct stoup_page *page = c->page.base;
	uint32_t high = stoup_cell_high(page, d->opt.cell_cap); /* [L4] */
	/* Said by an orderly detach: the cells are void. Only the consumer itself can say it. */
	int void_cells =
		atomic_load_explicit(&page->state, memory_order_acquire) == STOUP_PAGE_DETACHED;

	c->lease_cnt = 0;
	c->leased_bytes = 0;
	c->oldest_ns = 0;
	for (uint32_t i = 0; i < high; i++) {
		uint64_t v = stoup_cell_read(&page->cells[i]); /* [E1] [R2] */
		int held = !void_cells && lease_of(d, v);

		note_age(d, c, i, held, v == c->seen[i]);

		/* A release is no new use: only the IDLE bit came. */
		if ((v | STOUP_WORD_IDLE) != (c->seen[i] | STOUP_WORD_IDLE))
			note_use(d, consumer_idx, v);
		c->seen[i] = v;
		if (!held)
			continue;
		if (d->refs[stoup_word_idx(v)]++ == 0)
			d->leased[d->leased_cnt++] = stoup_word_idx(v);
		stoup_ring_scan_lease(d->ring, stoup_word_idx(v));
		c->lease_cnt++;
		c->leased_bytes += atomic_load_explicit(
			&d->table[stoup_word_idx(v)].len, memory_order_relaxed);
	}
	if (c->asked_bytes > c->leased_bytes)
		c->asked_bytes = c->leased_bytes;
}

void stoup_evict_look(struct stoup_daemon *d, uint32_t consumer_idx)
{
	struct stoup_consumer *c = &d->consumers[consumer_idx];
	struct stoup_page *page = c->page.base;
	uint32_t high = page ? stoup_cell_high(page, d->opt.cell_cap) : 0;

	for (uint32_t i = 0; i < high; i++) {
		uint64_t v = stoup_cell_read(&page->cells[i]);

		note_age(d, c, i, lease_of(d, v), v == c->seen[i]);
		if ((v | STOUP_WORD_IDLE) != (c->seen[i] | STOUP_WORD_IDLE))
			note_use(d, consumer_idx, v);
		c->seen[i] = v;
	}
}

/* All cells of all consumers, into d->refs and the ring. */
static void scan_all(struct stoup_daemon *d)
{
	/* Only what the last look found, not the whole table: a pass must not cost by the pool's size. */
	while (d->leased_cnt > 0)
		d->refs[d->leased[--d->leased_cnt]] = 0;
	stoup_ring_scan_begin(d->ring);
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (d->consumers[i].page.base)
			scan_consumer(d, i);
}

/* Takes no new leases from now on; goes with its last one. */
static void drain(struct stoup_daemon *d, uint32_t idx)
{
	d->buffers[idx].state = STOUP_BUFFER_DRAINING;
	d->draining[d->draining_cnt++] = idx;
	show_state(d, idx);
}

static void settle_draining(struct stoup_daemon *d)
{
	for (uint32_t i = 0; i < d->draining_cnt;) {
		uint32_t idx = d->draining[i];

		if (d->refs[idx] > 0) {
			i++;
			continue;
		}
		d->draining[i] = d->draining[--d->draining_cnt];
		retire(d, idx);
		stoup_ring_evicted(d->ring, idx);
		stoup_counter_add(d, STOUP_COUNTER_EVICTIONS, 1);
	}
}

void stoup_evict_scan(struct stoup_daemon *d)
{
	/* Draining buffers may be freed by this look: their words were cleared long ago, and the fence
	 * orders those clears before it [E1]. */
	stoup_evict_fence();
	scan_all(d);
	settle_draining(d);
}

/* ---- a pass ----------------------------------------------------------------------------------- */

/* Find out who of these buffers may go. `for_good`: those that are held take no new leases from now on. */
static void evict_pass(struct stoup_daemon *d, const uint32_t *evict, uint32_t cnt, int for_good)
{
	for (uint32_t i = 0; i < cnt; i++)
		stoup_residency_clear(residency_of(d, &d->buffers[evict[i]])); /* [E1] */
	STOUP_HOOK("evict.cleared");
	stoup_evict_fence(); /* [E1] */
	scan_all(d);
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t idx = evict[i];
		struct stoup_buffer *b = &d->buffers[idx];

		if (d->refs[idx] == 0) {
			retire(d, idx);
			STOUP_HOOK("evict.retired");
			stoup_ring_evicted(d->ring, idx);
			stoup_counter_add(d, STOUP_COUNTER_EVICTIONS, 1);
			continue;
		}
		if (for_good) {
			drain(d, idx);
		} else {
			/* Whoever met the zero in between asks by request and is granted. */
			stoup_residency_publish(residency_of(d, b), stoup_word(b->gen, idx));
		}
		stoup_ring_kept(d->ring, idx, d->refs[idx]);
		stoup_counter_add(d, STOUP_COUNTER_EVICT_KEPT, 1);
	}
	settle_draining(d);
	stoup_counter_add(d, STOUP_COUNTER_EVICT_PASSES, 1);
}

int stoup_evict_room(struct stoup_daemon *d, uint64_t len, enum stoup_ring_class class,
	struct stoup_ring_plan *plan)
{
	int looked = class == STOUP_RING_READAHEAD;

	/* Each round finds room or leaves fewer buffers to try: at most buffer_cap rounds, twice. */
	for (uint32_t round = 0; round <= 2 * d->buffer_cap; round++) {
		enum stoup_ring_outcome outcome = stoup_ring_alloc(d->ring, len, class, plan);

		if (outcome == STOUP_RING_FIT)
			return 1;
		if (outcome == STOUP_RING_EVICT) {
			evict_pass(d, plan->evict, plan->evict_cnt, 0);
			continue;
		}
		/* What the ring knows of leases is as old as the last look: somebody waits, so look again
		 * before that is believed. */
		if (looked)
			return 0;
		looked = 1;
		stoup_evict_scan(d);
	}
	return 0;
}

/* ---- a volume that is closed ------------------------------------------------------------------ */

void stoup_evict_volume(struct stoup_daemon *d, uint32_t volume_idx)
{
	const struct stoup_volume *v = &d->volumes[volume_idx];
	uint32_t evict[VOLUME_BATCH], cnt = 0;

	/* What loads has no word yet and is abandoned when it comes; what drains has none any more. */
	for (uint32_t b = 0; b < v->file->index->block_cnt; b++) {
		uint64_t w = atomic_load_explicit(&v->residency[b], memory_order_relaxed);

		if (w == 0)
			continue;
		stoup_ring_drain(d->ring, stoup_word_idx(w));
		evict[cnt++] = stoup_word_idx(w);
		if (cnt < VOLUME_BATCH)
			continue;
		evict_pass(d, evict, cnt, 1);
		cnt = 0;
	}
	if (cnt > 0)
		evict_pass(d, evict, cnt, 1);
}

/* ---- the claim -------------------------------------------------------------------------------- */

int stoup_claim_room(
	struct stoup_daemon *d, uint32_t load_idx, uint64_t len, struct stoup_ring_plan *plan)
{
	uint32_t cnt, idx;

	/* It has waited for others' leases: what is pinned is nobody's, and must keep nobody from reading. */
	if (d->claim_load == load_idx && !d->claim_any && d->pinned_blocks > 0 &&
		d->now_ns - d->loads[load_idx].queued_ns >= PIN_YIELD_NS)
		stoup_claim_cancel(d);
	if (d->claim_load == STOUP_IDX_NONE) {
		d->claim_any = d->now_ns - d->loads[load_idx].queued_ns >= PIN_YIELD_NS;
		if ((d->claim_any ? stoup_ring_claim_any(d->ring, len)
				  : stoup_ring_claim(d->ring, len)) < 0)
			return 0;
		d->claim_load = load_idx;
		stoup_counter_add(d, STOUP_COUNTER_CLAIMS, 1);
	}
	if (d->claim_load != load_idx)
		return 0;
	/* Also what was loaded into the window since. */
	while ((idx = stoup_ring_claim_pinned(d->ring)) != STOUP_RING_IDX_NONE) {
		stoup_pin_buffer_end(d, idx);
		stoup_counter_add(d, STOUP_COUNTER_PINS_YIELDED, 1);
	}
	while ((cnt = stoup_ring_claim_plan(d->ring, plan)) > 0)
		evict_pass(d, plan->evict, cnt, 1);
	if (!stoup_ring_claim_ready(d->ring))
		return 0;
	stoup_ring_claim_take(d->ring, STOUP_RING_DEMAND, plan);
	d->claim_load = STOUP_IDX_NONE;
	return 1;
}

void stoup_claim_cancel(struct stoup_daemon *d)
{
	if (d->claim_load == STOUP_IDX_NONE)
		return;
	stoup_ring_claim_cancel(d->ring);
	d->claim_load = STOUP_IDX_NONE;
}
