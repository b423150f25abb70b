/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - series over all volumes: by name, in a listing, and the parts that a cursor walks.
 *
 *      volume 0   A/x  B/x         id of B/x = (first volume that has it, index there)
 *      volume 1        B/x  C/x    listing   = A/x B/x C/x, by name, made at its first use
 *
 * Invariant: an id names one (name, layout); names that stand for several layouts are several
 * series. Catalogs never change, so an id and all texts stay valid until stoup_detach.
 *
 * Concurrency: everything reads immutable catalogs; the listing is made once, under the mutex.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/client.h"

#define NEAR_CNT 3u /* names that the text of -ENOENT offers */

static uint64_t id_make(uint32_t vol_idx, uint32_t series_idx)
{
	return ((uint64_t)vol_idx << 32 | series_idx) + 1;
}

static const struct stoup_snapshot_volume *id_volume(const struct stoup *st, uint64_t id)
{
	return &st->volumes[(id - 1) >> 32];
}

static const struct stoup_catalog_series *id_series(const struct stoup *st, uint64_t id)
{
	return &id_volume(st, id)->series[(uint32_t)(id - 1)];
}

static int id_valid(const struct stoup *st, uint64_t id)
{
	return id != 0 && (id - 1) >> 32 < st->volume_cnt &&
	       (uint32_t)(id - 1) < id_volume(st, id)->catalog->series_cnt;
}

static const char *series_name(
	const struct stoup_snapshot_volume *vol, const struct stoup_catalog_series *series)
{
	return stoup_catalog_string(vol->catalog, series->name_off);
}

static const char *id_name(const struct stoup *st, uint64_t id)
{
	return series_name(id_volume(st, id), id_series(st, id));
}

static const struct stoup_schema *id_schema(const struct stoup *st, uint64_t id)
{
	return id_volume(st, id)->schemas[id_series(st, id)->schema_idx];
}

/* The first series of volume `v` named `name` whose layout is `schema` (NULL: any); 0 = none. */
static uint64_t find_in(
	const struct stoup *st, uint32_t v, const char *name, const struct stoup_schema *schema)
{
	const struct stoup_snapshot_volume *vol = &st->volumes[v];
	int64_t at = stoup_catalog_find(vol->catalog, name);

	for (; at >= 0 && at < vol->catalog->series_cnt; at++) {
		if (strcmp(series_name(vol, &vol->series[at]), name) != 0)
			break;
		if (!schema || vol->schemas[vol->series[at].schema_idx] == schema)
			return id_make(v, (uint32_t)at);
	}
	return 0;
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

int stoup_series_parts(struct stoup *st, uint64_t id, struct stoup_part **ret, uint32_t *ret_cnt)
{
	const struct stoup_schema *schema;
	struct stoup_part *parts;
	uint64_t ordinal = 0;
	uint32_t cnt = 0;
	const char *name;

	if (!id_valid(st, id))
		return -ENOENT;
	name = id_name(st, id);
	schema = id_schema(st, id);
	parts = calloc(st->volume_cnt, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	for (uint32_t v = (uint32_t)((id - 1) >> 32); v < st->volume_cnt; v++) {
		uint64_t part_id = find_in(st, v, name, schema);

		if (part_id == 0 || id_series(st, part_id)->segment_cnt == 0)
			continue;
		parts[cnt].vol = &st->volumes[v];
		parts[cnt++].series = id_series(st, part_id);
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

static int series_fill(struct stoup *st, uint64_t id, struct stoup_series *ret)
{
	struct stoup_series series = {
		.id = id, .name = id_name(st, id), .schema = id_schema(st, id)};
	struct stoup_part *parts;
	uint32_t cnt;
	int rc = stoup_series_parts(st, id, &parts, &cnt);

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

static int by_name(const void *a, const void *b, void *client)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	int order = strcmp(id_name(client, x), id_name(client, y));
	uint64_t xhash, yhash;

	if (order != 0)
		return order;
	xhash = id_schema(client, x)->hash;
	yhash = id_schema(client, y)->hash;
	if (xhash != yhash)
		return xhash < yhash ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Under the mutex. */
static int listing_make(struct stoup *st)
{
	uint64_t cnt = 0, kept = 0, *ids;

	for (uint32_t v = 0; v < st->volume_cnt; v++)
		cnt += st->volumes[v].catalog->series_cnt;
	ids = malloc((cnt ? cnt : 1) * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	cnt = 0;
	for (uint32_t v = 0; v < st->volume_cnt; v++) {
		for (uint32_t s = 0; s < st->volumes[v].catalog->series_cnt; s++)
			ids[cnt++] = id_make(v, s);
	}
	qsort_r(ids, cnt, sizeof(*ids), by_name, st);
	/* The same series in later volumes sorts behind its first one. */
	for (uint64_t i = 0; i < cnt; i++) {
		if (kept > 0 && id_schema(st, ids[kept - 1]) == id_schema(st, ids[i]) &&
			strcmp(id_name(st, ids[kept - 1]), id_name(st, ids[i])) == 0)
			continue;
		ids[kept++] = ids[i];
	}
	st->listing = ids;
	st->listing_cnt = kept;
	st->listing_made = 1;
	return 0;
}

int64_t stoup_series_cnt(struct stoup *st)
{
	int64_t rc = 0;

	if (!stoup_client_own(st))
		return -ECHILD;
	pthread_mutex_lock(&st->mutex);
	if (!st->listing_made)
		rc = listing_make(st);
	if (rc == 0)
		rc = (int64_t)st->listing_cnt;
	pthread_mutex_unlock(&st->mutex);
	return rc;
}

int stoup_series_at(struct stoup *st, uint64_t idx, struct stoup_series *ret)
{
	int64_t cnt = stoup_series_cnt(st);

	if (cnt < 0)
		return (int)cnt;
	/* The listing does not change once it is made; the mutex above ordered it. */
	return idx < (uint64_t)cnt ? series_fill(st, st->listing[idx], ret) : -ENOENT;
}

/* ---- by name --------------------------------------------------------------------------------- */

/* How near is `name` to what was asked for? Containing it, whatever the case, beats any common
 * prefix. */
static uint32_t nearness(const char *asked, const char *name)
{
	uint32_t prefix = 0;

	if (strcasestr(name, asked))
		return 1000;
	while (asked[prefix] &&
		tolower((unsigned char)asked[prefix]) == tolower((unsigned char)name[prefix]))
		prefix++;
	return prefix;
}

static int explain_missing(struct stoup *st, const char *asked, struct stoup_error *err)
{
	uint64_t best[NEAR_CNT] = {0};
	uint32_t score[NEAR_CNT] = {0};
	int64_t cnt = stoup_series_cnt(st);
	char text[STOUP_ERROR_TEXT_CAP] = "";
	size_t used = 0;

	for (int64_t i = 0; i < cnt; i++) {
		uint32_t near = nearness(asked, id_name(st, st->listing[i])), at = NEAR_CNT;

		while (at > 0 && near > score[at - 1])
			at--;
		if (at == NEAR_CNT)
			continue;
		for (uint32_t j = NEAR_CNT - 1; j > at; j--) {
			best[j] = best[j - 1];
			score[j] = score[j - 1];
		}
		best[at] = st->listing[i];
		score[at] = near;
	}
	for (uint32_t i = 0; i < NEAR_CNT && best[i]; i++) {
		const char *name = id_name(st, best[i]);
		size_t len = strlen(name);

		if (used + len + 3 > 150)
			break;
		if (used > 0) {
			memcpy(text + used, ", ", 2);
			used += 2;
		}
		memcpy(text + used, name, len + 1);
		used += len;
	}
	if (used == 0)
		return stoup_error_set(err, -ENOENT,
			"pool '%s' has no series '%.60s'; stoup ls lists its %lld series", st->pool,
			asked, (long long)cnt);
	return stoup_error_set(
		err, -ENOENT, "pool '%s' has no series '%.60s'; near: %s", st->pool, asked, text);
}

int stoup_series_find(
	struct stoup *st, const char *name, struct stoup_series *ret, struct stoup_error *err)
{
	uint64_t id = 0;
	int rc;

	if (!stoup_client_own(st))
		return stoup_client_inherited(err);
	for (uint32_t v = 0; v < st->volume_cnt; v++) {
		const struct stoup_snapshot_volume *vol = &st->volumes[v];
		int64_t at = stoup_catalog_find(vol->catalog, name);

		for (; at >= 0 && at < vol->catalog->series_cnt; at++) {
			if (strcmp(series_name(vol, &vol->series[at]), name) != 0)
				break;
			if (id == 0)
				id = id_make(v, (uint32_t)at);
			else if (vol->schemas[vol->series[at].schema_idx] != id_schema(st, id))
				return stoup_error_set(err, -ENOTUNIQ,
					"'%.100s' stands for several layouts: pick one by "
					"stoup_series_at",
					name);
		}
	}
	if (id == 0)
		return explain_missing(st, name, err);
	rc = series_fill(st, id, ret);
	return rc < 0 ? stoup_error_set(err, rc, "no memory for the parts of '%.100s'", name) : 0;
}
