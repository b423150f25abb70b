/* SPDX-License-Identifier: Apache-2.0 */
/* import_replace.c - overlaps of the new records with the store: refused, or replaced.
 *
 *      old volume A   X[1........20]  Y[5..9]        new: X[8..12]
 *      rewritten      X[1..7 + 13..20]  Y[5..9]  +  X[8..12]   in one batch that supersedes A
 *
 * A volume is immutable: to lose some of its records it is rewritten whole into the new batch.
 * Which volumes: those with a record of a new series inside its new range (ends included); and,
 * again and again, those whose part of any series lies within the span that this series will have
 * in the new batch, because the ranges of two volumes must not overlap.
 *
 * What is kept of a volume becomes one run of the spill file, marked old, so that the final pass
 * merges it like any other. Keys are compared here, so that the counts are exact afterwards.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "codec/volume.h"
#include "producer/import_state.h"
#include "producer/runs.h"
#include "producer/volume_file.h"
#include "shm/format.h"

/* ---- refusing -------------------------------------------------------------------------------- */

static const struct stoup_vol_series *part_of(
	const struct stoup_import *import, uint32_t series_idx, uint32_t volume_idx)
{
	const struct stoup_import_series *series = &import->series[series_idx];

	return stoup_store_series_find(import->store->volumes[volume_idx]->index, series->name,
		import->schemas[series->schema_idx].schema.hash);
}

int64_t stoup_import_overlap_key(
	const struct stoup_import *import, uint32_t series_idx, int64_t first_key)
{
	int64_t limit = INT64_MAX;
	uint32_t i;

	for (i = 0; i < import->store->volume_cnt; i++) {
		const struct stoup_vol_series *part = part_of(import, series_idx, i);

		/* Its first key belongs to it, see new_overlaps. */
		if (part && part->last_key > first_key && part->first_key <= limit)
			limit = part->first_key - 1;
	}
	return limit;
}

/* May new records of this range not be added to a part? They may begin at its last key, as records
 * of that key then stand in the order of ingest. They may not end at its first key: they would come
 * to stand before records of that key that were ingested earlier. */
static int new_overlaps(int64_t first_key, int64_t last_key, const struct stoup_vol_series *part)
{
	return stoup_store_range_overlaps(first_key, last_key, part->first_key, part->last_key) ||
	       (last_key == part->first_key && first_key < part->last_key);
}

int stoup_import_overlap_error(const struct stoup_import *import, uint32_t series_idx,
	int64_t first_key, int64_t last_key, struct stoup_error *err)
{
	const struct stoup_import_series *series = &import->series[series_idx];
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];
	char old_first[STOUP_FORMAT_CAP], old_last[STOUP_FORMAT_CAP];
	uint32_t i;

	for (i = 0; i < import->store->volume_cnt; i++) {
		const struct stoup_vol_series *part = part_of(import, series_idx, i);
		const char *name = strrchr(import->store->volumes[i]->path, '/');

		if (!part || !new_overlaps(first_key, last_key, part))
			continue;
		stoup_format_time(first_key, first);
		stoup_format_time(last_key, last);
		stoup_format_time(part->first_key, old_first);
		stoup_format_time(part->last_key, old_last);
		/* Each fits the text with names of usual length: the advice at its end is not cut. */
		return stoup_error_set(err, -EEXIST,
			first_key == part->first_key
				? "%.40s: %s to %s overlaps %s to %s in %s: the same file again? "
				  "Else --replace"
				: "%.50s: %s to %s overlaps %s to %s in %s; --replace puts it in "
				  "their place",
			series->name, first, last, old_first, old_last,
			name ? name + 1 : import->store->volumes[i]->path);
	}
	return 0;
}

/* ---- choosing what is rewritten -------------------------------------------------------------- */

static void schema_of(const struct stoup_vol_index *index, uint32_t schema_idx,
	struct stoup_schema *ret_schema, struct stoup_field *fields)
{
	const struct stoup_vol_schema *schema = &index->schemas[schema_idx];

	memset(ret_schema, 0, sizeof(*ret_schema));
	strncpy(ret_schema->name, schema->name, sizeof(ret_schema->name) - 1);
	ret_schema->stride = schema->stride;
	ret_schema->align = schema->align;
	ret_schema->key_off = schema->key_off;
	ret_schema->flags = schema->flags;
	ret_schema->interval_ns = schema->interval_ns;
	ret_schema->hash = schema->hash;
	ret_schema->field_cnt = schema->field_cnt;
	ret_schema->fields = fields;
	_Static_assert(sizeof(struct stoup_field) == sizeof(struct stoup_vol_field),
		"a field has one layout");
	memcpy(fields, &index->fields[schema->field_first], schema->field_cnt * sizeof(*fields));
}

/* Find or add the import's series of an old volume's series. */
static int64_t adopt(struct stoup_import *import, const struct stoup_vol_index *index,
	const struct stoup_vol_series *part, struct stoup_error *err)
{
	uint32_t schema_idx = part->schema_idx;
	int64_t idx =
		stoup_import_series_lookup(import, part->name, index->schemas[schema_idx].hash);
	struct stoup_schema schema;
	struct stoup_field *fields;

	if (idx >= 0)
		return idx;
	fields = calloc(index->schemas[schema_idx].field_cnt + 1u, sizeof(*fields));
	if (!fields)
		return stoup_error_set(err, -ENOMEM, "no memory for a schema");
	schema_of(index, schema_idx, &schema, fields);
	idx = stoup_import_series_add(import, part->name, &schema, err);
	/* Adopted, not new: it keeps what its volume says. */
	if (idx >= 0)
		import->series[idx].flags = 0;
	free(fields);
	return idx;
}

static void hull_widen(struct stoup_import_series *series, int64_t first_key, int64_t last_key)
{
	if (series->hull_first == 0 || first_key < series->hull_first)
		series->hull_first = first_key;
	if (last_key > series->hull_last)
		series->hull_last = last_key;
}

/* Take a volume into the set: each of its series will span its part, too. */
static int affect(struct stoup_import *import, uint32_t volume_idx, uint8_t *is_affected,
	struct stoup_error *err)
{
	const struct stoup_vol_index *index = import->store->volumes[volume_idx]->index;
	uint32_t i;

	is_affected[volume_idx] = 1;
	import->affected[import->affected_cnt++] = volume_idx;
	for (i = 0; i < index->series_cnt; i++) {
		const struct stoup_vol_series *part = &index->series[i];
		int64_t idx = adopt(import, index, part, err);

		if (idx < 0)
			return (int)idx;
		import->series[idx].flags |= part->flags;
		hull_widen(&import->series[idx], part->first_key, part->last_key);
	}
	return 0;
}

/* Is a part of this volume inside the span of a series that is rewritten? */
static int is_drawn_in(const struct stoup_import *import, uint32_t volume_idx)
{
	const struct stoup_vol_index *index = import->store->volumes[volume_idx]->index;
	uint32_t i;

	for (i = 0; i < index->series_cnt; i++) {
		const struct stoup_vol_series *part = &index->series[i];
		int64_t idx = stoup_import_series_lookup(
			import, part->name, index->schemas[part->schema_idx].hash);
		const struct stoup_import_series *series = idx < 0 ? NULL : &import->series[idx];

		if (!series || series->hull_first == 0)
			continue;
		if (stoup_store_range_overlaps(
			    part->first_key, part->last_key, series->hull_first, series->hull_last))
			return 1;
		/* A single key at the border: a volume of the new batch may end up with that key
		 * alone, too, and would then come after it, whichever came first before. */
		if (part->first_key == part->last_key && part->first_key >= series->hull_first &&
			part->last_key <= series->hull_last)
			return 1;
	}
	return 0;
}

/* The volumes with a record inside the new range of a new series. */
static int choose_direct(struct stoup_import *import, uint32_t new_cnt, uint8_t *is_affected,
	struct stoup_error *err)
{
	uint32_t s, v;
	int rc = 0;

	for (s = 0; s < new_cnt; s++) {
		if (import->series[s].record_cnt > 0)
			hull_widen(&import->series[s], import->series[s].first_key,
				import->series[s].last_key);
	}
	for (v = 0; v < import->store->volume_cnt; v++) {
		for (s = 0; s < new_cnt && !is_affected[v]; s++) {
			const struct stoup_import_series *series = &import->series[s];
			const struct stoup_vol_series *part =
				series->record_cnt ? part_of(import, s, v) : NULL;

			if (part && part->first_key <= series->last_key &&
				series->first_key <= part->last_key)
				rc = affect(import, v, is_affected, err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

static int choose_affected(struct stoup_import *import, struct stoup_error *err)
{
	uint32_t volume_cnt = import->store->volume_cnt, before, v;
	uint8_t *is_affected = calloc(volume_cnt + 1, 1);
	int rc = -ENOMEM;

	import->affected = calloc(volume_cnt + 1, sizeof(*import->affected));
	if (!is_affected || !import->affected) {
		stoup_error_set(err, rc, "no memory for the list of volumes");
		goto out_free;
	}
	rc = choose_direct(import, import->series_cnt, is_affected, err);
	do {
		before = import->affected_cnt;
		for (v = 0; v < volume_cnt && rc == 0 && before > 0; v++) {
			if (!is_affected[v] && is_drawn_in(import, v))
				rc = affect(import, v, is_affected, err);
		}
	} while (rc == 0 && import->affected_cnt > before);
out_free:
	free(is_affected);
	return rc;
}

/* What the store refuses of a series that will be in the new batch: 1 inside the new range, 0 outside
 * of all, -1 across its border. */
static int refused_place(const struct stoup_import *import, const struct stoup_vol_index *index,
	const struct stoup_vol_series *part)
{
	int64_t idx = stoup_import_series_lookup(
		import, part->name, index->schemas[part->schema_idx].hash);
	const struct stoup_import_series *series = idx < 0 ? NULL : &import->series[idx];

	if (!series || series->hull_first == 0)
		return 0;
	if (series->record_cnt > 0 && part->first_key >= series->first_key &&
		part->last_key <= series->last_key)
		return 1;
	return stoup_store_range_overlaps(
		       part->first_key, part->last_key, series->hull_first, series->hull_last)
	               ? -1
	               : 0;
}

/* Volumes that the store refuses because they overlap others: replaced whole, or in the way. Left
 * there, one would be served again without the volume that it overlaps, and the new one refused. */
static int choose_refused(struct stoup_import *import, struct stoup_error *err)
{
	const struct stoup_store *store = import->store;
	uint32_t v, i;

	import->refused = calloc(store->overlap_cnt + 1u, sizeof(*import->refused));
	if (!import->refused)
		return stoup_error_set(err, -ENOMEM, "no memory for the list of volumes");
	for (v = 0; v < store->overlap_cnt; v++) {
		const struct stoup_vol_index *index = store->overlaps[v]->index;
		uint32_t inside = 0, across = 0;

		for (i = 0; i < index->series_cnt; i++) {
			int place = refused_place(import, index, &index->series[i]);

			inside += place > 0;
			across += place < 0;
		}
		if (inside > 0 && inside == index->series_cnt)
			import->refused[import->refused_cnt++] = v;
		else if (inside + across > 0)
			return stoup_error_set(err, -EEXIST,
				"%.150s overlaps another volume and holds more than is replaced: "
				"remove it, or ingest all that it holds",
				store->overlaps[v]->path);
	}
	return 0;
}

/* ---- spilling what is kept ------------------------------------------------------------------- */

struct old_reader {
	const struct stoup_store_volume *volume;
	uint8_t *stored, *raw;
	void *scratch;
	int64_t block_idx; /* of what `raw` holds; -1: nothing */
};

static int old_reader_init(struct old_reader *reader, const struct stoup_store_volume *volume)
{
	const struct stoup_vol_index *index = volume->index;
	size_t stored_len = 1, raw_len = 1, scratch_len;
	uint32_t i;

	for (i = 0; i < index->block_cnt; i++) {
		if (index->blocks[i].stored_len > stored_len)
			stored_len = index->blocks[i].stored_len;
		if (index->blocks[i].raw_len > raw_len)
			raw_len = index->blocks[i].raw_len;
	}
	scratch_len = (stoup_block_scratch_len() + 63) / 64 * 64 + 64;
	*reader = (struct old_reader){.volume = volume,
		.stored = malloc(stored_len),
		.raw = malloc(raw_len),
		.scratch = aligned_alloc(64, scratch_len),
		.block_idx = -1};
	if (!reader->stored || !reader->raw || !reader->scratch)
		return -ENOMEM;
	stoup_block_scratch_init(reader->scratch);
	return 0;
}

static void old_reader_fini(struct old_reader *reader)
{
	free(reader->stored);
	free(reader->raw);
	free(reader->scratch);
}

/* A block that can not be read holds records that the new ones do not replace: say which. */
static int lost_error(const struct old_reader *reader, const struct stoup_vol_series *part,
	const struct stoup_vol_segment *segment, int code, struct stoup_error *err)
{
	const char *name = strrchr(reader->volume->path, '/');
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];

	stoup_format_time(segment->first_key, first);
	stoup_format_time(segment->last_key, last);
	return stoup_error_set(err, code,
		"can not rewrite %.30s: block %" PRIu32
		" is damaged, and %.30s from %s to %s would be lost: ingest this range, too, or "
		"remove the file and ingest all it held",
		name ? name + 1 : reader->volume->path, segment->block_idx, part->name, first,
		last);
}

/* Have the block of a segment decoded in reader->raw. */
static int old_block(struct old_reader *reader, const struct stoup_vol_series *part,
	const struct stoup_vol_segment *segment, struct stoup_error *err)
{
	const struct stoup_store_volume *volume = reader->volume;
	uint32_t block_idx = segment->block_idx;
	struct stoup_vol_fault fault;
	int rc;

	if (reader->block_idx == block_idx)
		return 0;
	reader->block_idx = -1;
	rc = stoup_volume_block_read(volume->fd, volume->index, block_idx, reader->stored, &fault);
	if (rc == 0)
		rc = stoup_vol_block_decode(volume->index, block_idx, reader->stored, reader->raw,
			reader->scratch, &fault);
	if (rc < 0)
		return lost_error(reader, part, segment, rc, err);
	reader->block_idx = block_idx;
	return 0;
}

/* Where a key lies: before, inside or behind the new range. Without new records all is before. */
static int place_of(const struct stoup_import_series *series, int64_t key)
{
	if (series->record_cnt == 0 || key < series->first_key)
		return -1;
	return key > series->last_key;
}

static void unit_note(struct stoup_import_schema *schema, const uint8_t *record)
{
	uint32_t len = stoup_import_record_len(&schema->schema, record);

	if (schema->schema.stride == 0 && len > schema->unit_max)
		schema->unit_max = len;
}

/* Where the next record of a segment begins. */
static const uint8_t *record_after(const struct stoup_schema *schema, const uint8_t *record)
{
	return record + stoup_import_record_len(schema, record);
}

/* Spill the records of one segment that lie outside the new range, as one slice or two. */
static int spill_segment(struct stoup_import *import, uint32_t series_idx,
	const struct stoup_vol_segment *segment, const uint8_t *records, struct stoup_error *err)
{
	struct stoup_import_series *series = &import->series[series_idx];
	const struct stoup_schema *schema = &import->schemas[series->schema_idx].schema;
	struct stoup_import_schema *counts = &import->schemas[series->schema_idx];
	int64_t key = segment->first_key; /* running maximum, as the segment's own keys are */
	const uint8_t *begin = records, *p;
	uint32_t at = 0, end;
	int rc = 0;

	while (at < segment->record_cnt && rc == 0) {
		int place = place_of(series, key);
		struct stoup_spill_slice slice = {
			.series_idx = series_idx, .flags = STOUP_SPILL_OLD, .first_key = key};

		for (end = at, p = begin; end < segment->record_cnt;
			end++, p = record_after(schema, p)) {
			int64_t next = stoup_import_key(schema, p);

			key = next > key ? next : key;
			if (place_of(series, key) != place)
				break;
			slice.last_key = key;
			unit_note(counts, p);
		}
		slice.record_cnt = end - at;
		slice.len = (uint64_t)(p - begin);
		if (place != 0 && slice.record_cnt > 0) {
			series->kept_cnt += slice.record_cnt;
			stoup_import_schema_count(counts, slice.record_cnt, slice.len);
			rc = stoup_spill_slice_begin(import->spill, &slice, err);
			if (rc == 0)
				rc = stoup_spill_write(import->spill, begin, slice.len, err);
		}
		at = end;
		begin = p;
	}
	return rc;
}

/* An old volume's series in the order of runs. */
struct old_series {
	uint32_t old_idx;
	uint32_t series_idx;
};

static int old_series_cmp(const void *a, const void *b, void *import)
{
	const struct old_series *sa = a, *sb = b;

	return stoup_import_series_cmp(import, sa->series_idx, sb->series_idx);
}

static int spill_series(struct stoup_import *import, struct old_reader *reader,
	const struct old_series *old, struct stoup_error *err)
{
	const struct stoup_vol_index *index = reader->volume->index;
	const struct stoup_vol_series *part = &index->series[old->old_idx];
	const struct stoup_import_series *series = &import->series[old->series_idx];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < part->segment_cnt && rc == 0; i++) {
		const struct stoup_vol_segment *segment = &index->segments[part->segment_first + i];

		/* Nothing is kept of it: a damaged block is mended by replacing its range. */
		if (place_of(series, segment->first_key) == 0 &&
			place_of(series, segment->last_key) == 0)
			continue;
		rc = old_block(reader, part, segment, err);
		if (rc == 0 && index->schemas[part->schema_idx].stride == 0 &&
			stoup_run_check(index, part->segment_first + i, reader->raw, NULL) < 0)
			rc = lost_error(reader, part, segment, -EBADMSG, err);
		if (rc == 0)
			rc = spill_segment(import, old->series_idx, segment,
				reader->raw + segment->raw_off, err);
	}
	return rc;
}

static int spill_volume(struct stoup_import *import, const struct stoup_store_volume *volume,
	struct stoup_error *err)
{
	const struct stoup_vol_index *index = volume->index;
	struct old_series *order = calloc(index->series_cnt + 1u, sizeof(*order));
	struct old_reader reader;
	uint32_t i;
	int rc = old_reader_init(&reader, volume);

	if (rc < 0 || !order) {
		rc = stoup_error_set(err, -ENOMEM, "%s: no memory to rewrite it", volume->path);
		goto out_free;
	}
	for (i = 0; i < index->series_cnt; i++) {
		uint64_t hash = index->schemas[index->series[i].schema_idx].hash;

		order[i].old_idx = i;
		order[i].series_idx =
			(uint32_t)stoup_import_series_lookup(import, index->series[i].name, hash);
	}
	qsort_r(order, index->series_cnt, sizeof(*order), old_series_cmp, import);
	rc = stoup_spill_run_begin(import->spill, err);
	for (i = 0; i < index->series_cnt && rc == 0; i++)
		rc = spill_series(import, &reader, &order[i], err);
out_free:
	old_reader_fini(&reader);
	free(order);
	return rc;
}

/* ---- the check ------------------------------------------------------------------------------- */

int stoup_import_overlap_check(struct stoup_import *import, struct stoup_error *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < import->series_cnt && !import->options.replace && rc == 0; i++) {
		const struct stoup_import_series *series = &import->series[i];

		if (series->record_cnt > 0)
			rc = stoup_import_overlap_error(
				import, i, series->first_key, series->last_key, err);
	}
	if (rc < 0 || !import->options.replace)
		return rc;
	rc = choose_affected(import, err);
	if (rc == 0)
		rc = choose_refused(import, err);
	import->old_run_first = stoup_spill_run_cnt(import->spill);
	for (i = 0; i < import->affected_cnt && rc == 0; i++)
		rc = spill_volume(import, import->store->volumes[import->affected[i]], err);
	return rc;
}
