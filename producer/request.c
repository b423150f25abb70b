/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - what consumers ask: taken from their bitmaps, checked, granted, joined to a load, or ended.
 *
 * Each field of a slot is read once into a local and bounded: the page belongs to a process that may
 * write anything into it at any time. Whatever it writes, the conductor grants only into a cell of that
 * page, only by compare-and-swap, and only a word of a resident block.
 */
#include "producer/request.h"

#include <errno.h>
#include "codec/block.h"
#include "shm/futex.h"
#include "shm/lease.h"
#include "shm/sample.h"

void stoup_requests_init(struct stoup_daemon *d)
{
	uint32_t cap = d->opt.consumer_cap * STOUP_SLOT_CNT;

	for (uint32_t i = 0; i < cap; i++)
		d->waiters[i].next = i + 1 < cap ? i + 1 : STOUP_IDX_NONE;
	d->waiter_free = 0;
	for (uint32_t i = 0; i < d->load_cap; i++)
		d->loads[i].next = i + 1 < d->load_cap ? i + 1 : STOUP_IDX_NONE;
	d->load_free = 0;
	stoup_list_init(&d->demand);
	stoup_list_init(&d->ahead);
	d->claim_load = STOUP_IDX_NONE;
}

static void slot_end(struct stoup_page *page, uint32_t slot_idx, int32_t error, uint64_t detail)
{
	int sleeps = stoup_request_done(&page->slots[slot_idx], error, detail);

	STOUP_HOOK("grant.done");
	if (sleeps)
		stoup_futex_wake(&page->slots[slot_idx].state, 1);
}

/* ---- granting --------------------------------------------------------------------------------- */

/* Put the word of a resident buffer into the waiter's cell and end its request. */
static void grant(struct stoup_daemon *d, uint32_t consumer_idx, uint32_t slot_idx,
	uint32_t cell_idx, uint64_t ticket, uint32_t buffer_idx)
{
	struct stoup_page *page = d->consumers[consumer_idx].page.base;
	uint64_t w = stoup_word(d->buffers[buffer_idx].gen, buffer_idx);
	uint32_t len;

	if (stoup_lease_grant(&page->cells[cell_idx], ticket, w)) { /* [G1] */
		STOUP_HOOK("grant.cell");
		d->buffers[buffer_idx].ahead = 0;
		stoup_ring_granted(d->ring, buffer_idx, consumer_idx);
		/* Until the next look finds it in the cell. */
		len = atomic_load_explicit(&d->table[buffer_idx].len, memory_order_relaxed);
		d->consumers[consumer_idx].leased_bytes += len;
		d->consumers[consumer_idx].asked_bytes += len;
		stoup_counter_add(d, STOUP_COUNTER_GRANTS, 1);
	} else {
		stoup_counter_add(d, STOUP_COUNTER_GRANTS_LOST, 1);
	}
	/* The time of the answer: its consumer tells how long it took from here, see sample.h. */
	slot_end(page, slot_idx, 0, stoup_now_ns()); /* [M2] */
}

struct stoup_consumer *stoup_waiter_consumer(struct stoup_daemon *d, const struct stoup_waiter *w)
{
	struct stoup_consumer *c = &d->consumers[w->consumer_idx];

	return c->page.base && c->attach_no == w->attach_no ? c : NULL;
}

int stoup_waiter_stands(struct stoup_daemon *d, const struct stoup_waiter *w)
{
	const struct stoup_consumer *c = stoup_waiter_consumer(d, w);
	struct stoup_page *page = c ? c->page.base : NULL;

	/* It may give up in the next moment: then the grant is lost [G1], as ever. */
	return page && stoup_cell_read(&page->cells[w->cell_idx]) == w->ticket;
}

void stoup_waiter_left(struct stoup_daemon *d, const struct stoup_waiter *w)
{
	const struct stoup_consumer *c = stoup_waiter_consumer(d, w);

	if (c)
		slot_end(c->page.base, w->slot_idx, -ETIMEDOUT, 0);
}

void stoup_waiter_put(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = stoup_waiter_consumer(d, &d->waiters[idx]);

	if (c) {
		c->waiting_cnt--;
		c->loading_bytes -= d->waiters[idx].loading_bytes;
	}
	d->waiter_cnt--;
	d->waiters[idx].next = d->waiter_free;
	d->waiter_free = idx;
}

void stoup_waiters_grant(struct stoup_daemon *d, struct stoup_load *load)
{
	uint32_t next;

	for (uint32_t i = load->waiter_first; i != STOUP_IDX_NONE; i = next) {
		const struct stoup_waiter *w = &d->waiters[i];

		next = w->next;
		if (stoup_waiter_consumer(d, w))
			grant(d, w->consumer_idx, w->slot_idx, w->cell_idx, w->ticket,
				load->buffer_idx);
		stoup_waiter_put(d, i);
	}
	load->waiter_first = load->waiter_last = STOUP_IDX_NONE;
}

void stoup_waiters_fail(struct stoup_daemon *d, struct stoup_load *load, int error, uint64_t detail)
{
	uint32_t next;

	for (uint32_t i = load->waiter_first; i != STOUP_IDX_NONE; i = next) {
		const struct stoup_waiter *w = &d->waiters[i];
		const struct stoup_consumer *c = stoup_waiter_consumer(d, w);

		next = w->next;
		if (c) {
			/* Before the answer: who has it finds it counted. */
			stoup_counter_add(d, STOUP_COUNTER_REQUESTS_FAILED, 1);
			stoup_counter_add(d, STOUP_COUNTER_STALE, error == -ESTALE);
			slot_end(c->page.base, w->slot_idx, error, detail);
		}
		stoup_waiter_put(d, i);
	}
	load->waiter_first = load->waiter_last = STOUP_IDX_NONE;
}

/* ---- taking ----------------------------------------------------------------------------------- */

/* What the consumer saw of the slot's last grant. */
static void sample_note(struct stoup_daemon *d, struct stoup_slot *slot)
{
	uint64_t sample = stoup_sample_take(&slot->detail);

	if (sample == 0)
		return;
	stoup_time(d, STOUP_HISTOGRAM_MISS, stoup_sample_wait_ns(sample));
	stoup_time(d, STOUP_HISTOGRAM_WAKEUP, stoup_sample_wake_ns(sample));
}

void stoup_requests_samples(struct stoup_daemon *d, uint32_t consumer_idx)
{
	struct stoup_page *page = d->consumers[consumer_idx].page.base;

	for (uint32_t i = 0; i < STOUP_SLOT_CNT; i++)
		sample_note(d, &page->slots[i]);
}

static void request_read(struct stoup_request *r, struct stoup_page *page, uint32_t slot_idx)
{
	struct stoup_slot *s = &page->slots[slot_idx];

	r->slot_idx = slot_idx;
	r->kind = atomic_load_explicit(&s->kind, memory_order_relaxed);
	r->cell_idx = atomic_load_explicit(&s->cell_idx, memory_order_relaxed);
	r->volume_idx = atomic_load_explicit(&s->volume_idx, memory_order_relaxed);
	r->block_idx = atomic_load_explicit(&s->block_idx, memory_order_relaxed);
	r->ahead_cnt = atomic_load_explicit(&s->ahead_cnt, memory_order_relaxed);
	r->ahead_volume_idx = atomic_load_explicit(&s->ahead_volume_idx, memory_order_relaxed);
	r->ahead_block_idx = atomic_load_explicit(&s->ahead_block_idx, memory_order_relaxed);
	r->ahead_step = atomic_load_explicit(&s->ahead_step, memory_order_relaxed);
	r->ticket = stoup_ticket(slot_idx, atomic_load_explicit(&s->seq, memory_order_relaxed));
	r->deadline_ns = atomic_load_explicit(&s->deadline_ns, memory_order_relaxed);
}

/* A block that came in a rescan may be longer than what staging was made for at start. */
static int too_long(const struct stoup_daemon *d, const struct stoup_vol_block *block)
{
	int straight = block->codec == STOUP_CODEC_NONE && block->transform == STOUP_TRANSFORM_NONE;

	return !straight && block->stored_len > stoup_staging_stored_cap(d->staging);
}

int stoup_request_check(struct stoup_daemon *d, const struct stoup_request *r, uint64_t *detail)
{
	const struct stoup_vol_block *block;
	const struct stoup_volume *v;

	*detail = 0;
	if (r->cell_idx >= d->opt.cell_cap || r->volume_idx >= d->volume_cnt)
		return -EINVAL;
	v = &d->volumes[r->volume_idx];
	/* Also of a place that is empty and still named by some snapshot. */
	if (v->closed)
		return -ESTALE;
	if (!v->file || r->block_idx >= v->file->index->block_cnt)
		return -EINVAL;
	block = &v->file->index->blocks[r->block_idx];
	if (too_long(d, block)) {
		*detail = stoup_log_error(d, -EFBIG,
			"%s: block %u has %u stored bytes, more than the %zu that the daemon has made room for "
			"at its start; mend: restart the daemon",
			stoup_path_tail(v->file->path), r->block_idx, block->stored_len,
			stoup_staging_stored_cap(d->staging));
		return -EFBIG;
	}
	if (block->raw_len > d->control->block_len_max) {
		*detail = stoup_log_error(d, -EFBIG,
			"%s: block %u decodes to %u bytes, but a pool of %llu bytes serves blocks "
			"of at most %u; mend: stoupd --size %llu or more",
			stoup_path_tail(v->file->path), r->block_idx, block->raw_len,
			(unsigned long long)d->data_region.len, d->control->block_len_max,
			(unsigned long long)block->raw_len * STOUP_POOL_PART);
		return -EFBIG;
	}
	if (d->stopping)
		return -ESHUTDOWN;
	return 0;
}

uint32_t stoup_waiter_take(
	struct stoup_daemon *d, uint32_t consumer_idx, const struct stoup_request *r)
{
	uint32_t idx = d->waiter_free;
	struct stoup_waiter *w = &d->waiters[idx];

	d->waiter_free = w->next;
	d->waiter_cnt++;
	*w = (struct stoup_waiter){.consumer_idx = consumer_idx,
		.slot_idx = r->slot_idx,
		.cell_idx = r->cell_idx,
		.next = STOUP_IDX_NONE,
		.attach_no = d->consumers[consumer_idx].attach_no,
		.ticket = r->ticket,
		.arrived_ns = d->now_ns,
		.deadline_ns = r->deadline_ns};
	d->consumers[consumer_idx].waiting_cnt++;
	return idx;
}

static void wait_for(struct stoup_daemon *d, uint32_t consumer_idx, const struct stoup_request *r,
	uint32_t load_idx)
{
	struct stoup_load *load = &d->loads[load_idx];
	uint32_t idx = stoup_waiter_take(d, consumer_idx, r);

	/* It is admitted: what comes for it counts already. */
	if (d->consumers[consumer_idx].quota != STOUP_IDX_NONE) {
		d->waiters[idx].loading_bytes =
			d->volumes[r->volume_idx].file->index->blocks[r->block_idx].raw_len;
		d->consumers[consumer_idx].loading_bytes += d->waiters[idx].loading_bytes;
	}
	if (load->waiter_first == STOUP_IDX_NONE) {
		load->waiter_first = idx;
	} else {
		d->waiters[load->waiter_last].next = idx;
		stoup_counter_add(d, STOUP_COUNTER_REQUESTS_JOINED, 1);
	}
	load->waiter_last = idx;
	/* Begun before it came. */
	if (load->state != STOUP_LOAD_QUEUED)
		stoup_time(d, STOUP_HISTOGRAM_QUEUE, 0);
}

void stoup_waiters_time(struct stoup_daemon *d, const struct stoup_load *load)
{
	for (uint32_t i = load->waiter_first; i != STOUP_IDX_NONE; i = d->waiters[i].next)
		stoup_time(d, STOUP_HISTOGRAM_QUEUE, load->read_ns - d->waiters[i].arrived_ns);
}

void stoup_request_fail(struct stoup_daemon *d, uint32_t consumer_idx, uint32_t slot_idx, int error,
	uint64_t detail)
{
	/* Before the answer: who has it finds it counted. */
	stoup_counter_add(d, STOUP_COUNTER_REQUESTS_FAILED, 1);
	stoup_counter_add(d, STOUP_COUNTER_STALE, error == -ESTALE);
	slot_end(d->consumers[consumer_idx].page.base, slot_idx, error, detail);
}

int stoup_request_serve(
	struct stoup_daemon *d, uint32_t consumer_idx, const struct stoup_request *r)
{
	const struct stoup_volume *volume = &d->volumes[r->volume_idx];
	uint64_t w = atomic_load_explicit(&volume->residency[r->block_idx], memory_order_relaxed);
	int32_t step = r->ahead_step == -1 ? -1 : 1;
	uint32_t load_idx;

	if (w != 0) {
		grant(d, consumer_idx, r->slot_idx, r->cell_idx, r->ticket, stoup_word_idx(w));
		return 0;
	}
	/* One waiter per slot: only a page that sets bits of requests which were not answered yet can want
	 * more. It is refused before it has queued anything, so that it takes nothing from others. */
	if (d->consumers[consumer_idx].waiting_cnt >= d->opt.request_cap) {
		stoup_counter_add(d, STOUP_COUNTER_LIMIT_REQUESTS, 1);
		return -EBUSY;
	}
	load_idx = volume->load_idx[r->block_idx];
	if (load_idx == STOUP_IDX_NONE)
		load_idx = stoup_load_queue(d, r->volume_idx, r->block_idx, step, 0);
	else
		stoup_load_promote(d, load_idx);
	if (load_idx == STOUP_IDX_NONE)
		return -EBUSY;
	wait_for(d, consumer_idx, r, load_idx);
	return 0;
}

static void demand(struct stoup_daemon *d, uint32_t consumer_idx, const struct stoup_request *r)
{
	uint64_t detail;
	int rc;

	stoup_counter_add(d, STOUP_COUNTER_REQUESTS, 1);
	rc = stoup_request_check(d, r, &detail);
	if (rc == 0) {
		stoup_streams_ask(d->consumers[consumer_idx].streams, r->volume_idx, r->block_idx,
			r->ahead_step == -1 ? -1 : 1, d->now_ns);
		if (stoup_quota_admits(d, consumer_idx,
			    d->volumes[r->volume_idx].file->index->blocks[r->block_idx].raw_len))
			rc = stoup_request_serve(d, consumer_idx, r);
		else
			rc = stoup_quota_wait(d, consumer_idx, r);
	}
	if (rc < 0)
		stoup_request_fail(d, consumer_idx, r->slot_idx, rc, detail);
}

static void read_ahead(struct stoup_daemon *d, const struct stoup_request *r)
{
	const struct stoup_volume *volume;
	int64_t block = r->ahead_block_idx;
	uint32_t cnt = r->ahead_cnt < STOUP_AHEAD_CAP ? r->ahead_cnt : STOUP_AHEAD_CAP;

	if (cnt == 0 || d->stopping || r->ahead_volume_idx >= d->volume_cnt ||
		(r->ahead_step != 1 && r->ahead_step != -1))
		return;
	volume = &d->volumes[r->ahead_volume_idx];
	if (volume->closed || !volume->file)
		return;
	for (uint32_t i = 0; i < cnt; i++, block += r->ahead_step) {
		if (block < 0 || block >= volume->file->index->block_cnt)
			return;
		stoup_counter_add(d, STOUP_COUNTER_AHEAD_ASKED, 1);
		if (atomic_load_explicit(&volume->residency[block], memory_order_relaxed) != 0 ||
			volume->load_idx[block] != STOUP_IDX_NONE)
			continue;
		if (volume->file->index->blocks[block].raw_len > d->control->block_len_max ||
			too_long(d, &volume->file->index->blocks[block]) ||
			stoup_load_queue(d, r->ahead_volume_idx, (uint32_t)block, r->ahead_step,
				1) == STOUP_IDX_NONE)
			stoup_counter_add(d, STOUP_COUNTER_AHEAD_REFUSED, 1);
	}
}

static uint32_t take_from(struct stoup_daemon *d, uint32_t consumer_idx)
{
	struct stoup_page *page = d->consumers[consumer_idx].page.base;
	uint64_t bits = stoup_request_take(page); /* [M1] */
	uint32_t cnt = 0;

	/* Before it asks for more: what it has read counts no longer as read-ahead that waits. */
	if (bits)
		stoup_evict_look(d, consumer_idx);
	for (; bits; bits &= bits - 1, cnt++) {
		struct stoup_request r;

		request_read(&r, page, (uint32_t)__builtin_ctzll(bits));
		sample_note(d, &page->slots[r.slot_idx]);
		if (r.kind == STOUP_REQUEST_DEMAND)
			demand(d, consumer_idx, &r);
		else
			slot_end(page, r.slot_idx, r.kind == STOUP_REQUEST_AHEAD ? 0 : -EINVAL, 0);
		read_ahead(d, &r);
	}
	return cnt;
}

uint32_t stoup_requests_take(struct stoup_daemon *d)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (d->consumers[i].page.base && !d->consumers[i].cut)
			cnt += take_from(d, i);
	return cnt;
}

int stoup_requests_pending(const struct stoup_daemon *d)
{
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		struct stoup_page *page = d->consumers[i].page.base;

		if (page && !d->consumers[i].cut &&
			atomic_load_explicit(&page->pending, memory_order_seq_cst) != 0) /* [S1] */
			return 1;
	}
	return 0;
}

/* ---- ending ----------------------------------------------------------------------------------- */

/* A starved request fails a little before its deadline, so that the consumer learns the reason instead
 * of timing out: 25 ms, or a quarter of a shorter wait. */
int stoup_waiter_expired(const struct stoup_daemon *d, const struct stoup_waiter *w)
{
	uint64_t whole = w->deadline_ns > w->arrived_ns ? w->deadline_ns - w->arrived_ns : 0;
	uint64_t margin = whole / 4 < 25000000 ? whole / 4 : 25000000;

	return d->now_ns + margin >= w->deadline_ns;
}

/* Take out of a queued load the waiters that ended, gave up or starve. */
static void expire_load(struct stoup_daemon *d, uint32_t load_idx)
{
	struct stoup_load *load = &d->loads[load_idx];
	uint32_t kept = STOUP_IDX_NONE, next;

	for (uint32_t i = load->waiter_first; i != STOUP_IDX_NONE; i = next) {
		struct stoup_waiter *w = &d->waiters[i];
		const struct stoup_consumer *c = stoup_waiter_consumer(d, w);
		int stands = stoup_waiter_stands(d, w);
		int expired = d->starving && stoup_waiter_expired(d, w);

		next = w->next;
		if (stands && !expired) {
			kept = i;
			continue;
		}
		if (!expired) {
			stoup_waiter_left(d, w);
		} else if (c) {
			stoup_counter_add(d, STOUP_COUNTER_STARVED_FAILED, 1);
			stoup_counter_add(d, STOUP_COUNTER_REQUESTS_FAILED, 1);
			slot_end(c->page.base, w->slot_idx, -ENOBUFS, 0);
		}
		if (kept == STOUP_IDX_NONE)
			load->waiter_first = next;
		else
			d->waiters[kept].next = next;
		stoup_waiter_put(d, i);
	}
	load->waiter_last = kept;
	if (load->waiter_first == STOUP_IDX_NONE)
		stoup_load_drop(d, load_idx);
}

void stoup_requests_expire(struct stoup_daemon *d)
{
	uint32_t next;

	for (uint32_t i = d->demand.first; i != STOUP_IDX_NONE; i = next) {
		next = d->loads[i].next;
		expire_load(d, i);
	}
}

void stoup_requests_forget(struct stoup_daemon *d, uint32_t consumer_idx)
{
	stoup_quota_forget(d, consumer_idx);
	for (uint32_t i = 0; i < d->load_cap; i++) {
		struct stoup_load *load = &d->loads[i];
		uint32_t kept = STOUP_IDX_NONE, next;

		if (load->state == STOUP_LOAD_FREE)
			continue;
		for (uint32_t w = load->waiter_first; w != STOUP_IDX_NONE; w = next) {
			next = d->waiters[w].next;
			if (d->waiters[w].consumer_idx != consumer_idx) {
				kept = w;
				continue;
			}
			if (kept == STOUP_IDX_NONE)
				load->waiter_first = next;
			else
				d->waiters[kept].next = next;
			stoup_waiter_put(d, w);
		}
		load->waiter_last = kept;
		if (load->state == STOUP_LOAD_QUEUED && !load->ahead && kept == STOUP_IDX_NONE)
			stoup_load_drop(d, i);
	}
}

void stoup_requests_fail_all(struct stoup_daemon *d, int error)
{
	uint32_t next;

	stoup_quota_fail_all(d, error);
	for (uint32_t i = d->demand.first; i != STOUP_IDX_NONE; i = next) {
		next = d->loads[i].next;
		stoup_waiters_fail(d, &d->loads[i], error, 0);
		stoup_load_drop(d, i);
	}
}
