/* SPDX-License-Identifier: Apache-2.0 */
/* store_overlap.c - no two volumes of a store may hold the same stretch of a series.
 *
 *      accepted   S: [1....5][5..9]      [20..30]        U: [7..8]
 *      next       S:            [9...15]                 U: [8..9]     fits
 *      next       S:       [6.......12]                               refused
 *
 * No ingest makes such a volume; one that was copied in from another store, or brought back from a
 * backup after its range was ingested again, can be one. Served, its keys would step back. Volumes
 * are taken in the order of ingest, so that the later one of two is refused.
 *
 * The ranges of a series that were accepted are kept sorted. They do not overlap, so that a new one
 * is compared with its two neighbours only, and volumes that come in the order of time are
 * appended: the whole costs one look-up per series and volume.
 *
 * Concurrency: plain data of one call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/store_private.h"
#include "shm/format.h"

#define PART_CNT_FIRST   2u    /* most series of a small store are in few volumes */
#define BUCKET_CNT_FIRST 1024u /* a power of two */

struct part {
	int64_t first, last;
	const struct stoup_store_candidate *owner;
};

struct entry {
	const char *name;
	uint64_t schema_hash;
	struct part *parts; /* sorted by (first, last) */
	uint32_t cnt, cap;
};

struct table {
	struct entry *entries;
	uint32_t cnt, cap;
	uint32_t *buckets; /* index + 1; 0: empty; at most half are taken */
	uint32_t bucket_cnt;
};

/* ---- the table of series --------------------------------------------------------------------- */

static uint32_t *bucket_of(const struct table *table, const char *name, uint64_t schema_hash)
{
	uint32_t mask = table->bucket_cnt - 1;
	uint32_t at = (uint32_t)(stoup_vol_hash(name, strlen(name)) ^ schema_hash) & mask;

	for (;; at = (at + 1) & mask) {
		uint32_t idx = table->buckets[at];

		if (idx == 0 || (table->entries[idx - 1].schema_hash == schema_hash &&
					strcmp(table->entries[idx - 1].name, name) == 0))
			return &table->buckets[at];
	}
}

static int table_grow(struct table *table)
{
	uint32_t cnt = table->bucket_cnt ? table->bucket_cnt * 2 : BUCKET_CNT_FIRST, i;
	struct entry *entries;

	if (table->cnt < table->bucket_cnt / 2)
		return 0;
	entries = realloc(table->entries, cnt / 2 * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	table->entries = entries;
	free(table->buckets);
	table->buckets = calloc(cnt, sizeof(*table->buckets));
	table->bucket_cnt = cnt;
	if (!table->buckets)
		return -ENOMEM;
	for (i = 0; i < table->cnt; i++)
		*bucket_of(table, entries[i].name, entries[i].schema_hash) = i + 1;
	return 0;
}

/* The entry of a series, made where it is new. Returns its index or -ENOMEM. */
static int64_t table_find(struct table *table, const char *name, uint64_t schema_hash)
{
	int rc = table_grow(table);
	uint32_t *bucket;

	if (rc < 0)
		return rc;
	bucket = bucket_of(table, name, schema_hash);
	if (*bucket == 0) {
		table->entries[table->cnt] =
			(struct entry){.name = name, .schema_hash = schema_hash};
		*bucket = ++table->cnt;
	}
	return (int64_t)*bucket - 1;
}

static void table_fini(struct table *table)
{
	uint32_t i;

	for (i = 0; i < table->cnt; i++)
		free(table->entries[i].parts);
	free(table->entries);
	free(table->buckets);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Where a part goes: behind all that are not greater. */
static uint32_t part_place(const struct entry *entry, const struct part *part)
{
	uint32_t lo = 0, hi = entry->cnt;

	/* The usual case first: later in time than all. */
	if (hi > 0 && entry->parts[hi - 1].last <= part->first)
		return hi;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct part *other = &entry->parts[mid];

		if (other->first < part->first ||
			(other->first == part->first && other->last <= part->last))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Two parts of one single key: the same data again, unless one comes of an ingest of several
 * volumes, which may be cut inside a row of equal keys. */
static int part_overlaps(const struct part *a, const struct part *b)
{
	if (a->first < b->last && b->first < a->last)
		return 1;
	return a->first == b->first && a->last == b->last && a->owner->header.batch_cnt == 1 &&
	       b->owner->header.batch_cnt == 1;
}

static const struct part *part_clash(const struct entry *entry, const struct part *part)
{
	uint32_t at = part_place(entry, part);

	if (at > 0 && part_overlaps(&entry->parts[at - 1], part))
		return &entry->parts[at - 1];
	if (at < entry->cnt && part_overlaps(&entry->parts[at], part))
		return &entry->parts[at];
	return NULL;
}

static int part_add(struct entry *entry, const struct part *part)
{
	uint32_t at = part_place(entry, part);

	if (entry->cnt == entry->cap) {
		uint32_t cap = entry->cap ? entry->cap * 2 : PART_CNT_FIRST;
		struct part *parts = realloc(entry->parts, cap * sizeof(*parts));

		if (!parts)
			return -ENOMEM;
		entry->parts = parts;
		entry->cap = cap;
	}
	memmove(&entry->parts[at + 1], &entry->parts[at], (entry->cnt - at) * sizeof(*part));
	entry->parts[at] = *part;
	entry->cnt++;
	return 0;
}

/* ---- refusing -------------------------------------------------------------------------------- */

/* What to do stands before the ranges: a reader of the text with less room cuts those. */
static int refuse(struct stoup_store_candidate *candidate, const struct stoup_vol_series *series,
	const struct part *other)
{
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];
	char other_first[STOUP_FORMAT_CAP], other_last[STOUP_FORMAT_CAP];

	stoup_format_time(series->first_key, first);
	stoup_format_time(series->last_key, last);
	stoup_format_time(other->first, other_first);
	stoup_format_time(other->last, other_last);
	candidate->fate = STOUP_STORE_FAULTY;
	candidate->overlaps = 1;
	candidate->fault = (struct stoup_vol_fault){.code = -EEXIST};
	snprintf(candidate->fault.what, sizeof(candidate->fault.what),
		"left out: it overlaps %.60s; remove one of them", other->owner->name);
	free(candidate->advice);
	if (asprintf(&candidate->advice,
		    "left out: it overlaps %s; remove one of them, or ingest the range again with "
		    "--replace (series %s: %s to %s, there %s to %s)",
		    other->owner->name, series->name, first, last, other_first, other_last) >= 0)
		return 0;
	candidate->advice = NULL;
	return -ENOMEM;
}

/* Accept a volume, or refuse it whole. slots: room for the index of each of its series. */
static int judge(struct table *table, struct stoup_store_candidate *candidate, uint32_t *slots)
{
	const struct stoup_vol_index *index = candidate->volume->index;
	struct part part = {.owner = candidate};
	uint32_t i;
	int rc = 0;

	for (i = 0; i < index->series_cnt; i++) {
		const struct stoup_vol_series *series = &index->series[i];
		int64_t slot =
			table_find(table, series->name, index->schemas[series->schema_idx].hash);
		const struct part *other;

		if (slot < 0)
			return (int)slot;
		slots[i] = (uint32_t)slot;
		part.first = series->first_key;
		part.last = series->last_key;
		other = part_clash(&table->entries[slot], &part);
		if (other)
			return refuse(candidate, series, other);
	}
	for (i = 0; i < index->series_cnt && rc == 0; i++) {
		part.first = index->series[i].first_key;
		part.last = index->series[i].last_key;
		rc = part_add(&table->entries[slots[i]], &part);
	}
	return rc;
}

int stoup_store_refuse_overlaps(struct stoup_store_candidate *candidates, size_t cnt)
{
	struct table table = {0};
	uint32_t series_cnt = 0, *slots;
	size_t served = 0, i;
	int rc = 0;

	for (i = 0; i < cnt; i++) {
		if (candidates[i].fate != STOUP_STORE_SERVED)
			continue;
		served++;
		if (candidates[i].volume->index->series_cnt > series_cnt)
			series_cnt = candidates[i].volume->index->series_cnt;
	}
	if (served < 2)
		return 0;
	slots = calloc(series_cnt + 1u, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = 0; i < cnt && rc == 0; i++) {
		if (candidates[i].fate == STOUP_STORE_SERVED)
			rc = judge(&table, &candidates[i], slots);
	}
	free(slots);
	table_fini(&table);
	return rc;
}
