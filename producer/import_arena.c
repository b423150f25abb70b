/* SPDX-License-Identifier: Apache-2.0 */
/* import_arena.c - records in memory until the budget is used up, then sorted into a run.
 *
 * Sorting is a counting sort of offsets by series (stable, one pass), and only for --sort and only
 * for the series that need it a sort by key. The records themselves are moved once, into the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "producer/import_state.h"

#define RECORD_ALIGN 8u
#define ARENA_SPARE  (STOUP_MESSAGE_LEN_CAP + 4096u)

/* ---- life ------------------------------------------------------------------------------------ */

int stoup_import_arena_create(struct stoup_import *import, struct stoup_error *err)
{
	struct stoup_import_arena *arena = &import->arena;

	/* Room for the longest message beside it: what is not touched costs nothing. */
	arena->cap =
		((size_t)import->options.memory_len + ARENA_SPARE) / RECORD_ALIGN * RECORD_ALIGN;
	arena->base = mmap(NULL, arena->cap, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena->base != MAP_FAILED)
		return 0;
	arena->base = NULL;
	return stoup_error_set(
		err, -ENOMEM, "no memory for the import's buffer of %zu bytes", arena->cap);
}

void stoup_import_arena_destroy(struct stoup_import *import)
{
	if (import->arena.base)
		munmap(import->arena.base, import->arena.cap);
	free(import->arena.active);
	import->arena = (struct stoup_import_arena){0};
}

/* ---- putting --------------------------------------------------------------------------------- */

/* The entry of the idx-th record: they grow down from the arena's end. */
static struct stoup_import_entry *entry_of(const struct stoup_import_arena *arena, uint32_t idx)
{
	return (struct stoup_import_entry *)(void *)(arena->base + arena->cap) - 1 - idx;
}

/* Note that a series has records in the arena. */
static int activate(struct stoup_import_arena *arena, uint32_t series_idx)
{
	if (arena->active_cnt == arena->active_cap) {
		uint32_t cap = arena->active_cap ? arena->active_cap * 2 : 256;
		uint32_t *grown = realloc(arena->active, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		arena->active = grown;
		arena->active_cap = cap;
	}
	arena->active[arena->active_cnt++] = series_idx;
	return 0;
}

/* Room for one more record of `len` bytes, noted as the series' next one; a full arena is written first. */
static int arena_room(struct stoup_import *import, uint32_t series_idx, int64_t key, uint32_t len,
	uint8_t **ret, struct stoup_error *err)
{
	struct stoup_import_arena *arena = &import->arena;
	struct stoup_import_series *series = &import->series[series_idx];
	size_t step = ((size_t)len + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
	size_t per_record = sizeof(struct stoup_import_entry) + sizeof(uint32_t);
	int rc;

	/* RECORD_ALIGN more: the sorted offsets begin aligned. A record that is larger than the budget is
	 * alone in the arena. */
	if (arena->record_cnt > 0 &&
		arena->used + step + (arena->record_cnt + 1) * per_record + RECORD_ALIGN >
			import->options.memory_len) {
		rc = stoup_import_arena_flush(import, err);
		if (rc < 0)
			return rc;
	}
	if (series->part_cnt == 0) {
		if (activate(arena, series_idx) < 0)
			return stoup_error_set(err, -ENOMEM, "no memory for the list of series");
		series->part_first_key = key;
	}
	*entry_of(arena, arena->record_cnt++) = (struct stoup_import_entry){
		.off = (uint32_t)arena->used,
		.series_idx = series_idx,
	};
	*ret = arena->base + arena->used;
	arena->used += step;
	series->part_cnt++;
	series->part_last_key = key;
	return 0;
}

int stoup_import_arena_put(struct stoup_import *import, uint32_t series_idx, int64_t key,
	const void *record, struct stoup_error *err)
{
	uint32_t stride = import->schemas[import->series[series_idx].schema_idx].schema.stride;
	uint8_t *at = NULL;
	int rc = arena_room(import, series_idx, key, stride, &at, err);

	if (rc == 0)
		memcpy(at, record, stride);
	return rc;
}

int stoup_import_arena_put_message(struct stoup_import *import, uint32_t series_idx, int64_t place,
	int64_t key, const void *bytes, uint32_t len, struct stoup_error *err)
{
	uint8_t *at = NULL;
	int rc = arena_room(import, series_idx, place, stoup_message_unit_len(len), &at, err);

	if (rc == 0)
		stoup_message_write(at, key, bytes, len);
	return rc;
}

/* ---- sorting --------------------------------------------------------------------------------- */

static int active_cmp(const void *a, const void *b, void *import)
{
	const uint32_t *ia = a, *ib = b;

	return stoup_import_series_cmp(import, *ia, *ib);
}

struct key_context {
	const uint8_t *base;
	const struct stoup_schema *schema;
};

/* Equal keys stay in the order of arrival, which is that of the offsets. */
static int key_cmp(const void *a, const void *b, void *arg)
{
	const struct key_context *context = arg;
	const uint32_t *oa = a, *ob = b;
	int64_t ka = stoup_import_key(context->schema, context->base + *oa);
	int64_t kb = stoup_import_key(context->schema, context->base + *ob);

	if (ka != kb)
		return ka < kb ? -1 : 1;
	return *oa < *ob ? -1 : *oa > *ob;
}

static void sort_by_key(
	const struct stoup_import *import, const struct stoup_import_series *series, uint32_t *offs)
{
	struct key_context context = {
		.base = import->arena.base,
		.schema = &import->schemas[series->schema_idx].schema,
	};
	uint32_t i;

	for (i = 1; i < series->part_cnt; i++) {
		if (key_cmp(&offs[i - 1], &offs[i], &context) > 0)
			break;
	}
	if (i < series->part_cnt)
		qsort_r(offs, series->part_cnt, sizeof(*offs), key_cmp, &context);
}

/* Group the offsets by series, in the order of `active`. */
static uint32_t *sort_by_series(struct stoup_import *import)
{
	struct stoup_import_arena *arena = &import->arena;
	uint32_t *offs = (uint32_t *)(void *)(arena->base + arena->used), i, at = 0;

	qsort_r(arena->active, arena->active_cnt, sizeof(*arena->active), active_cmp, import);
	for (i = 0; i < arena->active_cnt; i++) {
		struct stoup_import_series *series = &import->series[arena->active[i]];

		series->part_first = at;
		at += series->part_cnt;
	}
	for (i = 0; i < arena->record_cnt; i++) {
		struct stoup_import_entry *entry = entry_of(arena, i);

		offs[import->series[entry->series_idx].part_first++] = entry->off;
	}
	return offs;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static uint64_t slice_len(
	const struct stoup_schema *schema, const uint8_t *base, const uint32_t *offs, uint32_t cnt)
{
	uint64_t len = 0;
	uint32_t i;

	if (schema->stride)
		return (uint64_t)cnt * schema->stride;
	for (i = 0; i < cnt; i++)
		len += stoup_import_record_len(schema, base + offs[i]);
	return len;
}

static int slice_write(
	struct stoup_import *import, uint32_t series_idx, uint32_t *offs, struct stoup_error *err)
{
	struct stoup_import_series *series = &import->series[series_idx];
	const struct stoup_schema *schema = &import->schemas[series->schema_idx].schema;
	const uint8_t *base = import->arena.base;
	struct stoup_spill_slice slice = {
		.series_idx = series_idx,
		.record_cnt = series->part_cnt,
		.len = slice_len(schema, base, offs, series->part_cnt),
		.first_key = series->part_first_key,
		.last_key = series->part_last_key,
	};
	uint32_t i;
	int rc;

	if (import->options.order == STOUP_ORDER_SORT) {
		sort_by_key(import, series, offs);
		slice.first_key = stoup_import_key(schema, base + offs[0]);
		slice.last_key = stoup_import_key(schema, base + offs[series->part_cnt - 1]);
	}
	rc = stoup_spill_slice_begin(import->spill, &slice, err);
	for (i = 0; i < series->part_cnt && rc == 0; i++)
		rc = stoup_spill_write(import->spill, base + offs[i],
			stoup_import_record_len(schema, base + offs[i]), err);
	series->part_cnt = 0;
	return rc;
}

int stoup_import_arena_flush(struct stoup_import *import, struct stoup_error *err)
{
	struct stoup_import_arena *arena = &import->arena;
	uint32_t *offs, i, at = 0;
	int rc;

	if (arena->record_cnt == 0)
		return 0;
	rc = stoup_spill_run_begin(import->spill, err);
	if (rc < 0)
		return rc;
	offs = sort_by_series(import);
	for (i = 0; i < arena->active_cnt && rc == 0; i++) {
		uint32_t cnt = import->series[arena->active[i]].part_cnt;

		rc = slice_write(import, arena->active[i], offs + at, err);
		at += cnt;
	}
	arena->used = 0;
	arena->record_cnt = 0;
	arena->active_cnt = 0;
	return rc;
}
