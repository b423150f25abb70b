/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - series over all volumes of a snapshot: by name, in a listing, and the parts that a
 * cursor walks.
 *
 *      volume 0   A/x  B/x         (volume, index there) --name, layout--> id (registry.c)
 *      volume 1        B/x  C/x    listing = A/x B/x C/x, by name, made at its first use
 *
 * Invariant: an id names one (name, layout); names that stand for several layouts are several
 * series. What a snapshot holds of a series is found anew by name and layout, so that ids outlive
 * the volumes.
 *
 * Concurrency: everything reads a snapshot that is referenced; its listing is made once, under the
 * mutex. Nothing here waits or asks the daemon.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/client.h"
#include "consumer/near.h"

/* A series of one volume: (volume, index there). */
static uint64_t place_make(uint32_t vol_idx, uint32_t series_idx)
{
	return (uint64_t)vol_idx << 32 | series_idx;
}

static const struct stoup_snapshot_volume *place_volume(
	const struct stoup_snapshot *snap, uint64_t place)
{
	return &snap->volumes[place >> 32];
}

static const struct stoup_catalog_series *place_series(
	const struct stoup_snapshot *snap, uint64_t place)
{
	return &place_volume(snap, place)->series[(uint32_t)place];
}

static const char *series_name(
	const struct stoup_snapshot_volume *vol, const struct stoup_catalog_series *series)
{
	return stoup_catalog_string(vol->catalog, series->name_off);
}

static const char *place_name(const struct stoup_snapshot *snap, uint64_t place)
{
	return series_name(place_volume(snap, place), place_series(snap, place));
}

static const struct stoup_schema *place_schema(const struct stoup_snapshot *snap, uint64_t place)
{
	return place_volume(snap, place)->schemas[place_series(snap, place)->schema_idx];
}

/* The series of a volume named `name` whose layout is `schema`, or NULL; *others: there are such in
 * other layouts. */
static const struct stoup_catalog_series *find_in(const struct stoup_snapshot_volume *vol,
	const char *name, const struct stoup_schema *schema, int *others)
{
	int64_t at = stoup_catalog_find(vol->catalog, name);

	for (; at >= 0 && at < vol->catalog->series_cnt; at++) {
		if (strcmp(series_name(vol, &vol->series[at]), name) != 0)
			break;
		if (vol->schemas[vol->series[at].schema_idx] == schema)
			return &vol->series[at];
		*others = 1;
	}
	return NULL;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Key order; parts that only touch in one key keep the order of their ingest (index breaks the
 * tie). */
static int by_key(const void *a, const void *b)
{
	const struct stoup_part *x = a, *y = b;

	if (x->series->first_key != y->series->first_key)
		return x->series->first_key < y->series->first_key ? -1 : 1;
	if (x->series->last_key != y->series->last_key)
		return x->series->last_key < y->series->last_key ? -1 : 1;
	return x->vol < y->vol ? -1 : x->vol > y->vol;
}

int stoup_series_parts(const struct stoup_snapshot *snap, const char *name,
	const struct stoup_schema *schema, struct stoup_part **ret, uint32_t *ret_cnt)
{
	struct stoup_part *parts = calloc(snap->volume_cnt + 1, sizeof(*parts));
	const struct stoup_catalog_series *series;
	uint64_t ordinal = 0;
	uint32_t cnt = 0;
	int found = 0, others = 0;

	if (!parts)
		return -ENOMEM;
	for (uint32_t v = 0; v < snap->volume_cnt; v++) {
		series = find_in(&snap->volumes[v], name, schema, &others);
		found |= series != NULL;
		if (!series || series->segment_cnt == 0)
			continue;
		parts[cnt].vol = &snap->volumes[v];
		parts[cnt++].series = series;
	}
	if (!found) {
		free(parts);
		return others ? -ENOTUNIQ : -ENOENT;
	}
	if (cnt > 1)
		qsort(parts, cnt, sizeof(*parts), by_key);
	for (uint32_t i = 0; i < cnt; i++) {
		parts[i].ordinal = ordinal;
		ordinal += parts[i].series->record_cnt;
	}
	*ret = parts;
	*ret_cnt = cnt;
	return 0;
}

static int series_fill(const struct stoup_snapshot *snap, uint64_t place, struct stoup_series *ret)
{
	struct stoup_series series = {.schema = place_schema(snap, place)};
	struct stoup_part *parts;
	uint32_t cnt;
	int rc = stoup_registry_id(snap->session->client, place_name(snap, place), series.schema,
		&series.id, &series.name);

	if (rc == 0)
		rc = stoup_series_parts(snap, series.name, series.schema, &parts, &cnt);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct stoup_catalog_series *s = parts[i].series;

		if (s->flags & STOUP_CATALOG_KEEP_ORDER)
			series.flags |= STOUP_SERIES_KEEP_ORDER;
		if (s->record_cnt == 0)
			continue;
		if (series.record_cnt == 0)
			series.first_key = s->first_key;
		if (series.record_cnt == 0 || s->last_key > series.last_key)
			series.last_key = s->last_key;
		series.record_cnt += s->record_cnt;
	}
	series.volume_cnt = cnt;
	free(parts);
	*ret = series;
	return 0;
}

/* ---- listing --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b, void *snapshot)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	int order = strcmp(place_name(snapshot, x), place_name(snapshot, y));
	uint64_t xhash, yhash;

	if (order != 0)
		return order;
	xhash = place_schema(snapshot, x)->hash;
	yhash = place_schema(snapshot, y)->hash;
	if (xhash != yhash)
		return xhash < yhash ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Under the mutex. */
static int listing_make(struct stoup_snapshot *snap)
{
	uint64_t cnt = 0, kept = 0, *places;

	for (uint32_t v = 0; v < snap->volume_cnt; v++)
		cnt += snap->volumes[v].catalog->series_cnt;
	places = malloc((cnt ? cnt : 1) * sizeof(*places));
	if (!places)
		return -ENOMEM;
	cnt = 0;
	for (uint32_t v = 0; v < snap->volume_cnt; v++) {
		for (uint32_t s = 0; s < snap->volumes[v].catalog->series_cnt; s++)
			places[cnt++] = place_make(v, s);
	}
	qsort_r(places, cnt, sizeof(*places), by_name, snap);
	/* The same series in later volumes sorts behind its first one. */
	for (uint64_t i = 0; i < cnt; i++) {
		if (kept > 0 &&
			place_schema(snap, places[kept - 1]) == place_schema(snap, places[i]) &&
			strcmp(place_name(snap, places[kept - 1]), place_name(snap, places[i])) ==
				0)
			continue;
		places[kept++] = places[i];
	}
	snap->listing = places;
	snap->listing_cnt = kept;
	snap->listing_made = 1;
	return 0;
}

static int64_t listing_cnt(struct stoup_snapshot *snap)
{
	struct stoup *st = snap->session->client;
	int64_t rc = 0;

	pthread_mutex_lock(&st->mutex);
	if (!snap->listing_made)
		rc = listing_make(snap);
	if (rc == 0)
		rc = (int64_t)snap->listing_cnt;
	pthread_mutex_unlock(&st->mutex);
	return rc;
}

/* The references of stoup_snapshot_current. */
static void put(struct stoup_snapshot *snap)
{
	struct stoup_session *ses = snap->session;

	stoup_snapshot_release(snap);
	stoup_session_release(ses);
}

int64_t stoup_series_cnt(struct stoup *st)
{
	struct stoup_snapshot *snap;
	int64_t cnt;

	if (!stoup_client_own(st))
		return stoup_client_refused(st, NULL);
	snap = stoup_snapshot_current(st);
	cnt = listing_cnt(snap);
	put(snap);
	return cnt;
}

int stoup_series_at(struct stoup *st, uint64_t idx, struct stoup_series *ret)
{
	struct stoup_snapshot *snap;
	int64_t cnt;
	int rc;

	if (!stoup_client_own(st))
		return stoup_client_refused(st, NULL);
	snap = stoup_snapshot_current(st);
	cnt = listing_cnt(snap);
	/* The listing does not change once it is made; the mutex ordered it. */
	if (cnt < 0)
		rc = (int)cnt;
	else
		rc = idx < (uint64_t)cnt ? series_fill(snap, snap->listing[idx], ret) : -ENOENT;
	put(snap);
	return rc;
}

/* ---- by name --------------------------------------------------------------------------------- */

static int explain_missing(struct stoup_snapshot *snap, const char *asked, struct stoup_error *err)
{
	struct stoup_near near = {.asked = asked};
	int64_t cnt = listing_cnt(snap);
	char text[150];

	for (int64_t i = 0; i < cnt; i++)
		stoup_near_offer(&near, place_name(snap, snap->listing[i]));
	if (stoup_near_text(&near, text, sizeof(text)) == 0)
		return stoup_error_set(err, -ENOENT,
			"pool '%s' has no series '%.60s'; stoup ls lists its %lld series",
			snap->session->pool, asked, (long long)cnt);
	return stoup_error_set(err, -ENOENT, "pool '%s' has no series '%.60s'; near: %s",
		snap->session->pool, asked, text);
}

/* The place of the series named `name`: 1; 0 there is none; -ENOTUNIQ. */
static int find(const struct stoup_snapshot *snap, const char *name, uint64_t *ret_place)
{
	int found = 0;

	for (uint32_t v = 0; v < snap->volume_cnt; v++) {
		const struct stoup_snapshot_volume *vol = &snap->volumes[v];
		int64_t at = stoup_catalog_find(vol->catalog, name);

		for (; at >= 0 && at < vol->catalog->series_cnt; at++) {
			if (strcmp(series_name(vol, &vol->series[at]), name) != 0)
				break;
			if (!found)
				*ret_place = place_make(v, (uint32_t)at);
			else if (vol->schemas[vol->series[at].schema_idx] !=
				 place_schema(snap, *ret_place))
				return -ENOTUNIQ;
			found = 1;
		}
	}
	return found;
}

int stoup_series_find(
	struct stoup *st, const char *name, struct stoup_series *ret, struct stoup_error *err)
{
	struct stoup_snapshot *snap;
	uint64_t place = 0;
	int rc;

	if (!stoup_client_own(st))
		return stoup_client_refused(st, err);
	if (!name)
		return stoup_error_set(err, -EINVAL, "no name of a series was given");
	snap = stoup_snapshot_current(st);
	rc = find(snap, name, &place);
	if (rc < 0)
		stoup_error_set(err, rc,
			"'%.100s' stands for several layouts, which were ingested under one name: a program picks one "
			"by stoup_series_at; `stoup export --directory` writes them all",
			name);
	else if (rc == 0)
		rc = err ? explain_missing(snap, name, err) : -ENOENT; /* near names cost a walk */
	else if ((rc = series_fill(snap, place, ret)) < 0)
		stoup_error_set(err, rc, "no memory for the parts of '%.100s'", name);
	put(snap);
	return rc;
}
