/* SPDX-License-Identifier: Apache-2.0 */
/* rescan.c - the stores are read again: volumes are born and retired, and nothing is renumbered.
 *
 *      read each store --compare--> born: catalogs made in empty places  \
 *                               \-> retired                              +--> snapshot + 1, once
 *
 *      a store that can not be read, a volume that finds no place or no memory:
 *      what was served is served on, no snapshot is made, the log says why
 *
 * All or nothing, because a batch of volumes is one ingest, and because what a new volume supersedes must
 * not go while that one does not come.
 *
 * All of it happens on the conductor: volumes that did not change are shared with the snapshot before and
 * cost an open and a stat each, the index of a new one is read and its catalog made. Misses wait meanwhile;
 * hits do not.
 *
 * If the daemon dies in the middle: consumers know only snapshots that they were given whole.
 */
#include "producer/rescan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "shm/format.h"
#include "shm/futex.h"

#define QUIET_NS UINT64_C(1000000000) /* after a failure, before a hello may try the same again */

/* ---- comparing -------------------------------------------------------------------------------- */

struct key {
	uint64_t dev, ino;
	uint32_t store_idx, place_idx;
	const uint8_t *id;
};

static int key_cmp(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->store_idx != y->store_idx)
		return x->store_idx < y->store_idx ? -1 : 1;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return memcmp(x->id, y->id, sizeof(((struct stoup_vol_header *)NULL)->id));
}

static struct key key_of(const struct stoup_store_volume *file, uint32_t store_idx)
{
	return (struct key){.dev = file->dev,
		.ino = file->ino,
		.store_idx = store_idx,
		.id = file->index->header.id};
}

/* Those of the newest snapshot whose store was read, sorted. */
static uint32_t keys_make(const struct stoup_volume *places, uint32_t place_cnt,
	struct stoup_store *const *stores, struct key *keys)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < place_cnt; i++) {
		const struct stoup_volume *v = &places[i];

		if (!v->file || v->retired_seq != 0 || !stores[v->store_idx])
			continue;
		keys[cnt] = key_of(v->file, v->store_idx);
		keys[cnt++].place_idx = i;
	}
	if (cnt > 1)
		qsort(keys, cnt, sizeof(keys[0]), key_cmp);
	return cnt;
}

int stoup_rescan_compare(const struct stoup_volume *places, uint32_t place_cnt,
	struct stoup_store *const *stores, uint32_t store_cnt, struct stoup_rescan_diff *ret)
{
	struct stoup_rescan_diff diff = {0};
	struct key *keys = calloc((size_t)place_cnt + 1, sizeof(*keys));
	uint8_t *seen = calloc((size_t)place_cnt + 1, 1);
	uint32_t key_cnt, all = 0;

	for (uint32_t s = 0; s < store_cnt; s++)
		all += stores[s] ? stores[s]->volume_cnt : 0;
	diff.born = calloc((size_t)all + 1, sizeof(*diff.born));
	diff.retired = calloc((size_t)place_cnt + 1, sizeof(*diff.retired));
	if (!keys || !seen || !diff.born || !diff.retired) {
		stoup_rescan_diff_fini(&diff);
		free(keys);
		free(seen);
		return -ENOMEM;
	}
	key_cnt = keys_make(places, place_cnt, stores, keys);
	for (uint32_t s = 0; s < store_cnt; s++)
		for (uint32_t v = 0; stores[s] && v < stores[s]->volume_cnt; v++) {
			struct stoup_store_volume *file = stores[s]->volumes[v];
			struct key key = key_of(file, s);
			const struct key *found =
				bsearch(&key, keys, key_cnt, sizeof(keys[0]), key_cmp);

			if (found)
				seen[found->place_idx] = 1;
			else
				diff.born[diff.born_cnt++] =
					(struct stoup_rescan_born){file, s, STOUP_IDX_NONE};
		}
	for (uint32_t i = 0; i < key_cnt; i++)
		if (!seen[keys[i].place_idx])
			diff.retired[diff.retired_cnt++] = keys[i].place_idx;
	free(keys);
	free(seen);
	*ret = diff;
	return 0;
}

void stoup_rescan_diff_fini(struct stoup_rescan_diff *diff)
{
	free(diff->born);
	free(diff->retired);
	*diff = (struct stoup_rescan_diff){0};
}

/* ---- making the next snapshot ----------------------------------------------------------------- */

static int places_short(const struct stoup_daemon *d, uint32_t born_cnt, struct stoup_error *err)
{
	uint32_t old = 0;

	for (uint32_t i = 0; i < d->volume_cnt; i++)
		old += d->volumes[i].retired_seq != 0;
	return stoup_error_set(err, -E2BIG,
		"of %u new volume%s not all find a place among %u (%u are kept for consumers of older snapshots); "
		"mend: end what uses older snapshots or holds their blocks, or restart the daemon",
		born_cnt, STOUP_PLURAL(born_cnt), d->volume_cap, old);
}

static void born_undo(struct stoup_daemon *d, const struct stoup_rescan_diff *diff, uint32_t cnt)
{
	while (cnt-- > 0) {
		uint32_t idx = diff->born[cnt].place_idx;

		(void)stoup_volume_unmake(d, idx);
		d->volumes[idx].born_seq = 0;
	}
}

/* Catalogs of all new volumes, in empty places, not in any snapshot yet. */
static int born_make(
	struct stoup_daemon *d, struct stoup_rescan_diff *diff, struct stoup_error *err)
{
	uint32_t idx = 0, i = 0;
	int rc = stoup_snapshot_make_room(d, diff->born_cnt);

	if (rc == -E2BIG)
		return places_short(d, diff->born_cnt, err);
	if (rc < 0)
		return rc;
	for (; i < diff->born_cnt; i++) {
		struct stoup_rescan_born *born = &diff->born[i];

		idx = stoup_place_find(d, idx);
		rc = stoup_volume_make(
			d, idx, born->file, born->store_idx, d->snapshot_seq + 1, err);
		if (rc < 0)
			break;
		born->place_idx = idx;
		if (idx >= d->volume_cnt)
			d->volume_cnt = idx + 1;
	}
	if (rc < 0)
		born_undo(d, diff, i);
	return rc;
}

static void retire(struct stoup_daemon *d, uint32_t idx, uint64_t seq)
{
	struct stoup_control_volume *entry = &stoup_control_volumes(d->control)[idx];

	d->volumes[idx].retired_seq = seq;
	atomic_store_explicit(&entry->retired_seq, seq, memory_order_relaxed);
	atomic_store_explicit(&entry->state, STOUP_VOLUME_RETIRED, memory_order_release);
}

/* The ring's read-ahead depends on the longest block there is. */
static void lengths_set(struct stoup_daemon *d)
{
	uint32_t max = 0;

	for (uint32_t i = 0; i < d->volume_cnt; i++)
		if (d->volumes[i].file && d->volumes[i].block_len_max > max)
			max = d->volumes[i].block_len_max;
	d->block_len_max = max;
	if (max > d->control->block_len_max)
		max = d->control->block_len_max;
	stoup_ring_largest_set(d->ring, max ? max : STOUP_OS_PAGE_LEN);
}

static void publish(struct stoup_daemon *d, const struct stoup_rescan_diff *diff)
{
	uint64_t seq = d->snapshot_seq + 1;

	for (uint32_t i = 0; i < diff->born_cnt; i++)
		stoup_volume_show(d, diff->born[i].place_idx);
	atomic_store_explicit(&d->control->volume_cnt, d->volume_cnt, memory_order_release);
	STOUP_HOOK("rescan.born");
	for (uint32_t i = 0; i < diff->retired_cnt; i++)
		retire(d, diff->retired[i], seq);
	STOUP_HOOK("rescan.retired");
	d->snapshot_seq = seq;
	atomic_store_explicit(&d->control->snapshot_seq, seq, memory_order_release);
	/* stoup_wait_news sleeps on the low half. */
	stoup_futex_wake((_Atomic uint32_t *)(uintptr_t)&d->control->snapshot_seq, UINT32_MAX);
	lengths_set(d);
	/* Those first that make room. */
	for (uint32_t i = 0; i < diff->retired_cnt; i++)
		stoup_pins_retired(d, diff->retired[i]);
	for (uint32_t i = 0; i < diff->born_cnt; i++)
		stoup_pins_born(d, diff->born[i].place_idx);
	stoup_volumes_say_large(d, seq);
	stoup_log_info(d, "snapshot %llu: volumes: %u new, %u retired, %u served",
		(unsigned long long)seq, diff->born_cnt, diff->retired_cnt,
		stoup_snapshot_cnt(d, seq));
}

/* ---- reading the stores ----------------------------------------------------------------------- */

/* What one rescan reads. */
struct reading {
	struct stoup_store *stores[STOUP_STORE_CAP]; /* NULL: could not be read */
	struct stoup_store_mark marks[STOUP_STORE_CAP];
	uint32_t failed_cnt;
};

static void stores_read(struct stoup_daemon *d, struct reading *r)
{
	for (uint32_t i = 0; i < d->opt.store_cnt; i++) {
		struct stoup_error err = {0};

		/* Before it is read: what comes later makes another mark. */
		(void)stoup_store_mark(d, i, &r->marks[i]);
		if (stoup_store_rescan(d->stores[i], d->home_fd, &r->stores[i], &err) == 0)
			continue;
		r->failed_cnt++;
		stoup_log_error(
			d, err.code, "rescan: %.180s; what was served is served on", err.text);
	}
}

static int fault_known(const struct stoup_store *store, const char *text)
{
	for (uint32_t i = 0; i < store->fault_cnt; i++)
		if (strcmp(store->faults[i].text, text) == 0)
			return 1;
	return 0;
}

/* The stores that were read take the place of those before. */
static void stores_take(struct stoup_daemon *d, struct reading *r)
{
	for (uint32_t i = 0; i < d->opt.store_cnt; i++) {
		struct stoup_store *now = r->stores[i], *old = d->stores[i];

		if (!now)
			continue;
		for (uint32_t f = 0; f < now->fault_cnt; f++)
			if (!fault_known(old, now->faults[f].text))
				stoup_log_error(
					d, -EBADMSG, "volume refused: %s", now->faults[f].text);
		stoup_store_close(old);
		d->stores[i] = now;
		d->store_marks[i] = r->marks[i];
		r->stores[i] = NULL;
	}
}

static void rescan(struct stoup_daemon *d)
{
	struct stoup_rescan_diff diff = {0};
	struct stoup_error err = {0};
	struct reading r = {0};
	int rc;

	d->rescan_due_ns = d->rescan_asked_ns = 0;
	d->places_wanted = 0;
	if (d->stopping)
		return;
	stores_read(d, &r);
	rc = stoup_rescan_compare(d->volumes, d->volume_cnt, r.stores, d->opt.store_cnt, &diff);
	if (rc < 0)
		stoup_error_set(&err, rc, "out of memory for a rescan");
	else
		rc = born_make(d, &diff, &err);
	if (rc == 0) {
		if (diff.born_cnt > 0 || diff.retired_cnt > 0)
			publish(d, &diff);
		stores_take(d, &r);
		stoup_snapshot_gauges(d);
		stoup_watch_follow(d);
	} else {
		/* Later, when the reads have come that keep a place: no failure. */
		if (rc != -EAGAIN)
			stoup_log_error(d, rc, "rescan: %.200s", err.text);
		d->places_wanted = rc == -E2BIG || rc == -EAGAIN ? diff.born_cnt : 0;
		d->places_coming = rc == -EAGAIN;
	}
	stoup_rescan_diff_fini(&diff);
	for (uint32_t i = 0; i < d->opt.store_cnt; i++)
		stoup_store_close(r.stores[i]);
	d->rescan_quiet_ns = 0;
	if ((rc < 0 && rc != -EAGAIN) || r.failed_cnt > 0) {
		stoup_counter_add(d, STOUP_COUNTER_RESCANS_FAILED, 1);
		d->rescan_quiet_ns = d->now_ns + QUIET_NS;
		memcpy(d->failed_marks, r.marks, sizeof(r.marks));
	}
	/* Last: who waits for it to count sees what it did. */
	stoup_counter_add(d, STOUP_COUNTER_RESCANS, 1);
}

void stoup_rescan_fresh(struct stoup_daemon *d)
{
	if (!stoup_stores_changed(d, d->store_marks))
		return;
	/* What failed a moment ago fails again, unless something has changed. */
	if (d->now_ns < d->rescan_quiet_ns && !stoup_stores_changed(d, d->failed_marks))
		return;
	rescan(d);
}

void stoup_rescan_tick(struct stoup_daemon *d)
{
	if (d->rescan_due_ns > 0 && d->now_ns >= d->rescan_due_ns)
		rescan(d);
	stoup_watch_look(d);
	stoup_snapshot_tick(d);
}
