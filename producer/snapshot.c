/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - which volumes make up a snapshot, and how long a retired one lives.
 *
 *      snapshot         1   2   3   4   5
 *      volume A         +---+---+---+---+--     born 1
 *      volume B         +---+                   born 1, retired 3: in 1 and 2
 *      volume C                 +---+---+--     born 3
 *
 *      retired --nobody uses a snapshot that has it, or 8 newer ones exist--> closed: ESTALE, evicted
 *              --nothing of it in the pool--> empty: file and catalog let go
 *              --nobody uses a snapshot that had it--> free: the next volume may have the place
 *
 *      places run short --> who uses the oldest snapshot is cut off, and attaches again; nobody is where
 *                           leases keep so many places that it would be in vain
 *
 * A consumer says in its page which snapshot is the oldest that it uses, and asks for blocks by the number
 * of a place: so a place gets no other volume while such a snapshot may be in use, however old it is. One who
 * never lets go must not keep new data from all: where places run short, those with the oldest snapshot lose
 * the right to ask, and with it count no longer. What they have leased stays as it is.
 *
 * Invariant: a consumer that was told of a volume and has not let go of its snapshot gets blocks of that
 * volume under the volume's number, or -ESTALE; never blocks of another one.
 *
 * Concurrency: the conductor's. A page is read once per look and believed within bounds.
 * If the daemon dies: nothing of this outlives it.
 */
#include "producer/daemon.h"

#include <errno.h>

static int has(const struct stoup_volume *v, uint64_t seq)
{
	return v->file && v->born_seq <= seq && (v->retired_seq == 0 || v->retired_seq > seq);
}

uint32_t stoup_snapshot_cnt(const struct stoup_daemon *d, uint64_t seq)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < d->volume_cnt; i++)
		cnt += has(&d->volumes[i], seq) != 0;
	return cnt;
}

uint32_t stoup_snapshot_next(const struct stoup_daemon *d, uint64_t seq, uint32_t from)
{
	while (from < d->volume_cnt && !has(&d->volumes[from], seq))
		from++;
	return from < d->volume_cnt ? from : STOUP_IDX_NONE;
}

uint32_t stoup_snapshot_fds(
	const struct stoup_daemon *d, uint64_t seq, uint32_t first, uint32_t cap, int *fds)
{
	uint32_t cnt = 0, ordinal = 0;

	for (uint32_t i = stoup_snapshot_next(d, seq, 0); i != STOUP_IDX_NONE && cnt < cap;
		i = stoup_snapshot_next(d, seq, i + 1))
		if (ordinal++ >= first)
			fds[cnt++] = d->volumes[i].catalog.ro_fd;
	return cnt;
}

int stoup_snapshot_stale(const struct stoup_daemon *d, uint64_t seq)
{
	/* Its first volume to close is one that was retired right behind it. */
	return d->snapshot_seq - seq > STOUP_SNAPSHOT_CAP;
}

void stoup_snapshot_give(struct stoup_daemon *d, struct stoup_consumer *c)
{
	struct stoup_page *page = c->page.base;

	c->snapshot_seq = d->snapshot_seq;
	atomic_store_explicit(&page->snapshot_seq, d->snapshot_seq, memory_order_relaxed);
}

/* The oldest snapshot that a consumer uses, as far as its page is believed. */
static uint64_t oldest_of(const struct stoup_consumer *c)
{
	const struct stoup_page *page = c->page.base;
	/* [V1] what it read of older catalogs and asked of their places comes before. */
	uint64_t seq = atomic_load_explicit(&page->snapshot_seq, memory_order_acquire);

	if (seq > c->snapshot_seq)
		seq = c->snapshot_seq;
	return seq > 0 ? seq : 1;
}

uint64_t stoup_snapshot_oldest(const struct stoup_daemon *d)
{
	uint64_t oldest = d->snapshot_seq;

	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		const struct stoup_consumer *c = &d->consumers[i];
		uint64_t seq;

		/* Deaf ones may still read, and a child may still come for its copy. */
		if (c->state == STOUP_CONSUMER_NONE || !c->page.base || c->cut)
			continue;
		seq = oldest_of(c);
		if (seq < oldest)
			oldest = seq;
	}
	return oldest;
}

enum stoup_volume_step stoup_volume_step(
	const struct stoup_volume *v, uint64_t newest, uint64_t oldest)
{
	int unused = oldest >= v->retired_seq;

	if (v->retired_seq == 0)
		return STOUP_VOLUME_STAY;
	if (!v->closed)
		return unused || newest - v->retired_seq >= STOUP_SNAPSHOT_CAP ? STOUP_VOLUME_CLOSE
		                                                               : STOUP_VOLUME_STAY;
	if (v->file)
		return v->buffer_cnt == 0 ? STOUP_VOLUME_EMPTY : STOUP_VOLUME_STAY;
	return unused ? STOUP_VOLUME_FREE : STOUP_VOLUME_STAY;
}

uint32_t stoup_place_find(const struct stoup_daemon *d, uint32_t from)
{
	while (from < d->volume_cap && (d->volumes[from].file || d->volumes[from].closed))
		from++;
	return from < d->volume_cap ? from : STOUP_IDX_NONE;
}

/* One step of one place. 1 = another may follow. */
static int step(struct stoup_daemon *d, uint32_t idx, uint64_t oldest)
{
	struct stoup_volume *v = &d->volumes[idx];

	switch (stoup_volume_step(v, d->snapshot_seq, oldest)) {
	case STOUP_VOLUME_CLOSE:
		v->closed = 1;
		stoup_loads_close(d, idx);
		stoup_evict_volume(d, idx);
		STOUP_HOOK("volume.closed");
		return 1;
	case STOUP_VOLUME_EMPTY:
		if (stoup_volume_unmake(d, idx) < 0)
			return 0;
		STOUP_HOOK("volume.emptied");
		return 1;
	case STOUP_VOLUME_FREE:
		v->closed = 0;
		v->born_seq = v->retired_seq = 0;
		return 0;
	case STOUP_VOLUME_STAY:
	default:
		return 0;
	}
}

static uint32_t places_free(const struct stoup_daemon *d)
{
	uint32_t cnt = 0;

	for (uint32_t i = stoup_place_find(d, 0); i != STOUP_IDX_NONE;
		i = stoup_place_find(d, i + 1))
		cnt++;
	return cnt;
}

/* Of which volumes are blocks leased? */
static void leases_look(struct stoup_daemon *d)
{
	stoup_evict_scan(d);
	for (uint32_t i = 0; i < d->volume_cnt; i++)
		d->volumes[i].leased_cnt = 0;
	for (uint32_t i = 0; i < d->leased_cnt; i++)
		d->volumes[d->buffers[d->leased[i]].volume_idx].leased_cnt++;
}

/* Places that are free, or will be when reads under way have come, if no snapshot before `oldest` is used. */
static uint32_t places_reach(const struct stoup_daemon *d, uint64_t oldest)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->volume_cnt; i++) {
		const struct stoup_volume *v = &d->volumes[i];

		if (!v->file && !v->closed)
			continue;
		kept += v->retired_seq == 0 || v->retired_seq > oldest || v->leased_cnt > 0;
	}
	return d->volume_cap - kept;
}

/* A rescan that found no room: would another one? */
static int room_comes(struct stoup_daemon *d)
{
	if (d->places_coming)
		return places_free(d) >= d->places_wanted;
	leases_look(d);
	return places_reach(d, d->snapshot_seq) >= d->places_wanted;
}

void stoup_snapshot_tick(struct stoup_daemon *d)
{
	uint64_t oldest = stoup_snapshot_oldest(d);
	int moved = 0;

	for (uint32_t i = 0; i < d->volume_cnt; i++)
		while (step(d, i, oldest))
			moved = 1;
	if (moved)
		stoup_snapshot_gauges(d);
	if (d->places_wanted > 0 && d->rescan_due_ns == 0 && room_comes(d))
		d->rescan_due_ns = d->now_ns;
}

/* Cut off all whose oldest snapshot is `seq`. */
static void cut_all(struct stoup_daemon *d, uint64_t seq)
{
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		const struct stoup_consumer *c = &d->consumers[i];

		if (c->state != STOUP_CONSUMER_NONE && c->page.base && !c->cut &&
			oldest_of(c) == seq)
			stoup_consumer_cut(d, i);
	}
}

int stoup_snapshot_make_room(struct stoup_daemon *d, uint32_t cnt)
{
	uint64_t oldest;

	if (places_free(d) >= cnt)
		return 0;
	/* What nobody uses any more may wait for the tick. */
	stoup_snapshot_tick(d);
	leases_look(d);
	if (places_reach(d, d->snapshot_seq) < cnt)
		return places_free(d) < cnt ? -E2BIG : 0;
	for (;;) {
		if (places_free(d) >= cnt)
			return 0;
		oldest = stoup_snapshot_oldest(d);
		if (places_reach(d, oldest) >= cnt || oldest == d->snapshot_seq)
			return -EAGAIN;
		cut_all(d, oldest);
		stoup_snapshot_tick(d);
	}
}

void stoup_snapshot_gauges(struct stoup_daemon *d)
{
	uint32_t retired = 0, refused = 0;

	for (uint32_t i = 0; i < d->volume_cnt; i++)
		retired += d->volumes[i].file && d->volumes[i].retired_seq;
	for (uint32_t i = 0; i < d->opt.store_cnt; i++)
		refused += d->stores[i]->fault_cnt;
	stoup_gauge(d, STOUP_COUNTER_SNAPSHOT, d->snapshot_seq);
	stoup_gauge(d, STOUP_COUNTER_VOLUMES, stoup_snapshot_cnt(d, d->snapshot_seq));
	stoup_gauge(d, STOUP_COUNTER_VOLUMES_RETIRED, retired);
	stoup_gauge(d, STOUP_COUNTER_VOLUMES_REFUSED, refused);
}
