/* SPDX-License-Identifier: Apache-2.0 */
/* import_write.c - the final pass: all runs of the spill file, series by series, into volumes.
 *
 *      series s:   old slices before the new range | new slices, run by run or merged by key |
 *                  old slices behind it
 *
 * Every run is in the order of series, so that the slices of a series stand at the heads of their
 * runs when its turn comes. New slices follow each other in the order of arrival; where --sort was
 * asked for and their keys are out of order, they are merged (each slice is sorted in itself).
 * Equal keys come out in the order of runs, which is the order of arrival: the sort is stable.
 *
 * Old parts touch at most. They are put one after the other as readers saw them
 * (stoup_store_part_cmp): by the keys of slices alone, those of one key could not be told apart.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "producer/import_block.h"
#include "producer/import_state.h"

struct writer {
	struct stoup_import *import;
	struct stoup_import_builder builder;
	uint32_t series_idx;
	uint32_t stride;
	uint32_t *heap; /* runs that are being merged, the one with the smallest key on top */
	int64_t *keys;  /* by run: its next key */
	uint32_t heap_cnt;
	struct old_part *olds; /* of the current series, in the order of reading */
	uint32_t old_cnt;
};

/* A part of a series that is kept, and the run that holds what is kept of it. */
struct old_part {
	const struct stoup_vol_index *index;
	const struct stoup_vol_series *part;
	uint32_t run_idx;
};

/* ---- slices ---------------------------------------------------------------------------------- */

/* The slice at the head of a run, where it is one of the current series, old or new as asked. */
static const struct stoup_spill_slice *slice_at(
	const struct writer *writer, uint32_t run_idx, uint32_t flags)
{
	const struct stoup_spill_slice *head = stoup_spill_head(writer->import->spill, run_idx);

	return head && head->series_idx == writer->series_idx && head->flags == flags ? head : NULL;
}

/* Bytes of cnt records in view: of messages one is seen at a time. */
static uint64_t records_len(const struct writer *writer, const uint8_t *records, uint64_t cnt)
{
	const struct stoup_import_series *series = &writer->import->series[writer->series_idx];

	return cnt * stoup_import_record_len(
			     &writer->import->schemas[series->schema_idx].schema, records);
}

/* Put a whole slice. */
static int slice_put(struct writer *writer, uint32_t run_idx, struct stoup_error *err)
{
	struct stoup_spill *spill = writer->import->spill;
	uint64_t left = stoup_spill_head(spill, run_idx)->record_cnt;
	int rc = 0;

	while (left > 0 && rc == 0) {
		const uint8_t *records;
		uint64_t cnt, len;

		rc = stoup_spill_view(spill, run_idx, writer->stride, &records, &cnt, err);
		if (rc < 0)
			return rc;
		len = records_len(writer, records, cnt);
		rc = stoup_import_builder_put(&writer->builder, records, cnt, err);
		if (rc == 0)
			rc = stoup_spill_take(spill, run_idx, cnt, len, err);
		if (rc == 0)
			left -= cnt;
	}
	return rc;
}

static int old_part_cmp(const void *pa, const void *pb)
{
	const struct old_part *a = pa, *b = pb;

	return stoup_store_part_cmp(a->index, a->part, b->index, b->part);
}

/* Find the old parts of the current series. */
static void old_find(struct writer *writer)
{
	const struct stoup_import *import = writer->import;
	const struct stoup_import_series *series = &import->series[writer->series_idx];
	uint32_t i;

	writer->old_cnt = 0;
	for (i = 0; i < import->affected_cnt; i++) {
		const struct stoup_vol_index *index =
			import->store->volumes[import->affected[i]]->index;
		struct old_part old = {.index = index, .run_idx = import->old_run_first + i};

		if (!slice_at(writer, old.run_idx, STOUP_SPILL_OLD))
			continue;
		old.part = stoup_store_series_find(
			index, series->name, import->schemas[series->schema_idx].schema.hash);
		if (old.part)
			writer->olds[writer->old_cnt++] = old;
	}
	qsort(writer->olds, writer->old_cnt, sizeof(*writer->olds), old_part_cmp);
}

/* Put the old slices that begin before `limit`, part by part. */
static int old_put(struct writer *writer, int64_t limit, struct stoup_error *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < writer->old_cnt; i++) {
		uint32_t run_idx = writer->olds[i].run_idx;
		const struct stoup_spill_slice *slice;

		while (rc == 0 && (slice = slice_at(writer, run_idx, STOUP_SPILL_OLD)) &&
			slice->first_key < limit)
			rc = slice_put(writer, run_idx, err);
	}
	return rc;
}

/* ---- merging --------------------------------------------------------------------------------- */

static int run_before(const struct writer *writer, uint32_t a, uint32_t b)
{
	return writer->keys[a] != writer->keys[b] ? writer->keys[a] < writer->keys[b] : a < b;
}

static void heap_down(struct writer *writer, uint32_t at)
{
	uint32_t *heap = writer->heap;

	for (;;) {
		uint32_t child = 2 * at + 1, run = heap[at];

		if (child >= writer->heap_cnt)
			return;
		if (child + 1 < writer->heap_cnt &&
			run_before(writer, heap[child + 1], heap[child]))
			child++;
		if (!run_before(writer, heap[child], run))
			return;
		heap[at] = heap[child];
		heap[child] = run;
		at = child;
	}
}

/* The run that comes next after the top one, or -1. */
static int64_t heap_second(const struct writer *writer)
{
	if (writer->heap_cnt < 2)
		return -1;
	if (writer->heap_cnt > 2 && run_before(writer, writer->heap[2], writer->heap[1]))
		return writer->heap[2];
	return writer->heap[1];
}

/* How many of the records in view come before the second run's next one. */
static uint64_t leading_cnt(
	const struct writer *writer, uint32_t run, const uint8_t *records, uint64_t cnt)
{
	const struct stoup_import_series *series = &writer->import->series[writer->series_idx];
	const struct stoup_schema *schema = &writer->import->schemas[series->schema_idx].schema;
	int64_t second = heap_second(writer);
	uint64_t n;

	if (second < 0)
		return cnt;
	for (n = 1; n < cnt; n++) {
		int64_t key = stoup_import_key(schema, records + n * writer->stride);
		int64_t other = writer->keys[second];

		if (key > other || (key == other && run > (uint32_t)second))
			break;
	}
	return n;
}

static int merge_step(struct writer *writer, struct stoup_error *err)
{
	struct stoup_spill *spill = writer->import->spill;
	const struct stoup_import_series *series = &writer->import->series[writer->series_idx];
	const struct stoup_schema *schema = &writer->import->schemas[series->schema_idx].schema;
	uint32_t run = writer->heap[0];
	const uint8_t *records;
	uint64_t cnt, len;
	int rc = stoup_spill_view(spill, run, writer->stride, &records, &cnt, err);

	if (rc < 0)
		return rc;
	cnt = leading_cnt(writer, run, records, cnt);
	len = records_len(writer, records, cnt);
	rc = stoup_import_builder_put(&writer->builder, records, cnt, err);
	if (rc == 0)
		rc = stoup_spill_take(spill, run, cnt, len, err);
	if (rc < 0)
		return rc;
	if (slice_at(writer, run, 0)) {
		rc = stoup_spill_view(spill, run, writer->stride, &records, &cnt, err);
		if (rc < 0)
			return rc;
		writer->keys[run] = stoup_import_key(schema, records);
	} else {
		writer->heap[0] = writer->heap[--writer->heap_cnt];
	}
	heap_down(writer, 0);
	return 0;
}

static int new_merge(struct writer *writer, struct stoup_error *err)
{
	uint32_t run_cnt = stoup_spill_run_cnt(writer->import->spill), i;
	int rc = 0;

	writer->heap_cnt = 0;
	for (i = 0; i < run_cnt; i++) {
		const struct stoup_spill_slice *slice = slice_at(writer, i, 0);

		if (!slice)
			continue;
		writer->keys[i] = slice->first_key;
		writer->heap[writer->heap_cnt++] = i;
	}
	for (i = writer->heap_cnt / 2; i > 0; i--)
		heap_down(writer, i - 1);
	while (writer->heap_cnt > 0 && rc == 0)
		rc = merge_step(writer, err);
	return rc;
}

/* ---- series ---------------------------------------------------------------------------------- */

/* Put the new slices: one after the other where that is in order, else merged. */
static int new_put(struct writer *writer, struct stoup_error *err)
{
	uint32_t run_cnt = stoup_spill_run_cnt(writer->import->spill), i;
	int64_t last_key = 0;
	int rc = 0;

	for (i = 0; i < run_cnt && writer->import->options.order == STOUP_ORDER_SORT; i++) {
		const struct stoup_spill_slice *slice = slice_at(writer, i, 0);

		if (slice && slice->first_key < last_key)
			return new_merge(writer, err);
		last_key = slice ? slice->last_key : last_key;
	}
	for (i = 0; i < run_cnt && rc == 0; i++) {
		if (slice_at(writer, i, 0))
			rc = slice_put(writer, i, err);
	}
	return rc;
}

static int series_put(struct writer *writer, uint32_t series_idx, struct stoup_error *err)
{
	const struct stoup_import_series *series = &writer->import->series[series_idx];
	int rc;

	if (series->record_cnt + series->kept_cnt == 0)
		return 0;
	writer->series_idx = series_idx;
	writer->stride = writer->import->schemas[series->schema_idx].schema.stride;
	stoup_import_builder_series(&writer->builder, series_idx);
	old_find(writer);
	rc = old_put(writer, series->record_cnt ? series->first_key : INT64_MAX, err);
	if (rc == 0)
		rc = new_put(writer, err);
	if (rc == 0)
		rc = old_put(writer, INT64_MAX, err);
	return rc;
}

static int publish(struct writer *writer, struct stoup_error *err)
{
	struct stoup_import *import = writer->import;
	struct stoup_vol_header *headers = calloc(import->volume_cnt, sizeof(*headers));
	uint32_t i;
	int rc;

	if (!headers)
		return stoup_error_set(err, -ENOMEM, "no memory to publish the volumes");
	for (i = 0; i < import->volume_cnt; i++)
		headers[i] = import->volumes[i].header;
	rc = stoup_store_publish(&import->lock, headers, import->volume_cnt, err);
	free(headers);
	return rc;
}

static size_t record_cap(const struct stoup_import *import)
{
	size_t cap = sizeof(struct stoup_spill_slice);
	uint32_t i;

	for (i = 0; i < import->schema_cnt; i++) {
		const struct stoup_import_schema *schema = &import->schemas[i];
		size_t len = schema->schema.stride ? schema->schema.stride : schema->unit_max;

		cap = len > cap ? len : cap;
	}
	return cap;
}

int stoup_import_write(struct stoup_import *import, struct stoup_error *err)
{
	struct writer writer = {.import = import};
	uint32_t *order = NULL, run_cnt = stoup_spill_run_cnt(import->spill), i;
	int rc;

	if (import->record_cnt == 0)
		return 0;
	rc = stoup_import_builder_init(&writer.builder, import, err);
	if (rc == 0)
		rc = stoup_spill_rewind(
			import->spill, STOUP_IMPORT_WINDOW_LEN, record_cap(import), err);
	if (rc < 0)
		goto out_fini;
	stoup_progress_begin(
		&import->progress, "writing", writer.builder.raw_total, import->options.quiet);
	writer.heap = calloc(run_cnt + 1u, sizeof(*writer.heap));
	writer.keys = calloc(run_cnt + 1u, sizeof(*writer.keys));
	writer.olds = calloc(import->affected_cnt + 1u, sizeof(*writer.olds));
	order = stoup_import_series_sorted(import);
	if (!writer.heap || !writer.keys || !writer.olds || !order) {
		rc = stoup_error_set(err, -ENOMEM, "no memory for the order of the series");
		goto out_fini;
	}
	for (i = 0; i < import->series_cnt && rc == 0; i++)
		rc = series_put(&writer, order[i], err);
	if (rc == 0)
		rc = stoup_import_builder_finish(&writer.builder, err);
	stoup_progress_end(&import->progress);
	if (rc == 0)
		rc = publish(&writer, err);
out_fini:
	stoup_import_builder_fini(&writer.builder, rc == 0);
	free(writer.heap);
	free(writer.keys);
	free(writer.olds);
	free(order);
	return rc;
}
