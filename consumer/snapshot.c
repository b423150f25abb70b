/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - the volumes of a snapshot: map their catalogs, order them, share their schemas.
 *
 *      descriptors in the daemon's order --map, verify--> volumes --sort by ingest--> snapshot
 *                                                            \--one object per layout--> registry
 *
 *      page->snapshot_seq = the oldest snapshot that a cursor has, or the newest one
 *
 * Invariant: once made, a snapshot does not change, so series and cursors read it without a lock.
 * The page names a snapshot as long as anybody may read its catalogs: afterwards the daemon gives
 * their places to other volumes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "consumer/client.h"

/* Room for one more, doubling; NULL (and nothing changed) without memory. */
static void *grow(void *items, uint32_t cnt, size_t item_len)
{
	if (cnt & (cnt - 1) || (cnt > 0 && cnt < 8))
		return items;
	return realloc(items, (cnt ? (size_t)cnt * 2 : 8) * item_len);
}

int stoup_snapshot_make(struct stoup_session *ses, uint64_t seq, struct stoup_snapshot **ret,
	struct stoup_error *err)
{
	struct stoup_snapshot *snap = calloc(1, sizeof(*snap));

	if (!snap)
		return stoup_error_set(err, -ENOMEM, "no memory for a snapshot");
	snap->session = ses;
	snap->seq = seq;
	snap->refs = 1;
	*ret = snap;
	return 0;
}

int stoup_snapshot_add(struct stoup_snapshot *snap, int fd, struct stoup_error *err)
{
	struct stoup_snapshot_volume *more, *vol;
	struct stoup_region region;
	const struct stoup_catalog *catalog;
	int rc;

	rc = stoup_region_map(fd, sizeof(struct stoup_catalog), 0, 0, &region, err);
	close(fd);
	if (rc < 0)
		return rc;
	catalog = region.base;
	rc = stoup_catalog_verify(catalog, region.len, err);
	if (rc < 0)
		goto out_unmap;
	if (catalog->volume_idx >= snap->session->control->volume_cap) {
		rc = stoup_error_set(err, -EPROTO, "the daemon's catalog names volume %u of %u",
			catalog->volume_idx, snap->session->control->volume_cap);
		goto out_unmap;
	}
	more = grow(snap->volumes, snap->volume_cnt, sizeof(*more));
	if (!more) {
		rc = stoup_error_set(
			err, -ENOMEM, "no memory for %u volumes", snap->volume_cnt + 1);
		goto out_unmap;
	}
	snap->volumes = more;
	vol = &snap->volumes[snap->volume_cnt++];
	*vol = (struct stoup_snapshot_volume){
		.catalog = catalog,
		.map_len = region.len,
		.series = stoup_catalog_series(catalog),
		.segments = stoup_catalog_segments(catalog),
		.blocks = stoup_catalog_blocks(catalog),
		.residency = stoup_catalog_residency_ro(catalog),
	};
	return 0;
out_unmap:
	munmap(region.base, region.len);
	return rc;
}

static int by_ingest(const void *a, const void *b)
{
	const struct stoup_catalog *x = ((const struct stoup_snapshot_volume *)a)->catalog;
	const struct stoup_catalog *y = ((const struct stoup_snapshot_volume *)b)->catalog;

	if (x->ingest_seq != y->ingest_seq)
		return x->ingest_seq < y->ingest_seq ? -1 : 1;
	if (x->batch_idx != y->batch_idx)
		return x->batch_idx < y->batch_idx ? -1 : 1;
	return x->volume_idx < y->volume_idx ? -1 : x->volume_idx > y->volume_idx;
}

int stoup_snapshot_finish(struct stoup_snapshot *snap, struct stoup_error *err)
{
	struct stoup *st = snap->session->client;
	int rc;

	if (snap->volume_cnt > 1)
		qsort(snap->volumes, snap->volume_cnt, sizeof(*snap->volumes), by_ingest);
	for (uint32_t v = 0; v < snap->volume_cnt; v++) {
		struct stoup_snapshot_volume *vol = &snap->volumes[v];
		uint32_t cnt = vol->catalog->schema_cnt;

		vol->schemas = calloc(cnt ? cnt : 1, sizeof(const struct stoup_schema *));
		if (!vol->schemas)
			return stoup_error_set(err, -ENOMEM, "no memory for %u schemas", cnt);
		for (uint32_t i = 0; i < cnt; i++) {
			rc = stoup_registry_schema(st, vol->catalog, i, &vol->schemas[i], err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

void stoup_snapshot_destroy(struct stoup_snapshot *snap)
{
	if (!snap)
		return;
	for (uint32_t v = 0; v < snap->volume_cnt; v++) {
		free(snap->volumes[v].schemas);
		munmap((void *)(uintptr_t)snap->volumes[v].catalog, snap->volumes[v].map_len);
	}
	free(snap->volumes);
	free(snap->listing);
	free(snap);
}

/* ---- which ones are in use ------------------------------------------------------------------- */

void stoup_snapshot_publish(struct stoup_session *ses)
{
	uint64_t oldest = UINT64_MAX;

	for (const struct stoup_snapshot *snap = ses->snapshots; snap; snap = snap->next)
		oldest = snap->seq < oldest ? snap->seq : oldest;
	/* Release: our last looks at older catalogs come before the daemon's reuse of their
	 * places. */
	if (ses->page && oldest != UINT64_MAX)
		atomic_store_explicit(&ses->page->snapshot_seq, oldest, memory_order_release);
}

void stoup_snapshot_install(struct stoup_session *ses, struct stoup_snapshot *snap)
{
	struct stoup_snapshot *old;

	pthread_mutex_lock(&ses->client->mutex);
	old = ses->newest;
	snap->next = ses->snapshots;
	ses->snapshots = ses->newest = snap;
	stoup_snapshot_publish(ses);
	pthread_mutex_unlock(&ses->client->mutex);
	stoup_snapshot_release(old);
}

struct stoup_snapshot *stoup_snapshot_current(struct stoup *st)
{
	struct stoup_snapshot *snap;

	pthread_mutex_lock(&st->mutex);
	snap = st->current->newest;
	snap->refs++;
	snap->session->refs++;
	pthread_mutex_unlock(&st->mutex);
	return snap;
}

void stoup_snapshot_release(struct stoup_snapshot *snap)
{
	struct stoup_session *ses = snap ? snap->session : NULL;
	struct stoup_snapshot **at;
	int last;

	if (!snap)
		return;
	pthread_mutex_lock(&ses->client->mutex);
	last = --snap->refs == 0;
	if (last) {
		for (at = &ses->snapshots; *at != snap;)
			at = &(*at)->next;
		*at = snap->next;
		stoup_snapshot_publish(ses);
	}
	pthread_mutex_unlock(&ses->client->mutex);
	if (last)
		stoup_snapshot_destroy(snap);
}
