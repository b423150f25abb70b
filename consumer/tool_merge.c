/* SPDX-License-Identifier: Apache-2.0 */
/* tool_merge.c - see tool_merge.h. */
#include "consumer/tool_merge.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_LEN    (UINT64_C(96) << 20) /* of all pieces together */
#define PIECE_LEN_MAX (UINT64_C(2) << 20)
#define PIECE_LEN_MIN 4096u /* beyond 24,576 series memory grows with them */

struct source {
	const struct stoup_series *series;
	uint8_t *bytes; /* the piece */
	uint64_t cnt, pos;
	uint64_t next_ordinal; /* of the first record behind the piece */
	int64_t key;           /* of the record at pos: the running maximum, as the series has it */
	int64_t last_key;      /* of the last record of the piece */
	int has_begun, is_over;
};

struct stoup_tool_merge {
	struct stoup *st;
	struct stoup_range range;
	struct source *sources;
	size_t cnt;
	size_t *heap; /* indexes of sources that have a record, the least one first */
	size_t heap_cnt;
	uint64_t piece_len;
	int is_taken; /* the record of heap[0] was handed out */
};

/* ---- pieces ----------------------------------------------------------------------------------- */

static int64_t key_at(const struct source *source, uint64_t pos)
{
	const struct stoup_schema *schema = source->series->schema;
	int64_t key;

	memcpy(&key, source->bytes + pos * schema->stride + schema->key_off, sizeof(key));
	return key;
}

/* Copy what of the span lies behind the place where the series stands. */
static int take_span(
	struct source *source, const struct stoup_span *span, uint64_t cap, struct stoup_error *err)
{
	uint64_t skip = 0, cnt;

	if (source->has_begun && span->ordinal > source->next_ordinal)
		return stoup_error_set(err, -ESTALE, "%.150s changed while it was read: try again",
			source->series->name);
	if (source->has_begun)
		skip = source->next_ordinal - span->ordinal;
	if (skip >= span->record_cnt)
		return 0;
	cnt = span->record_cnt - skip;
	if (cnt > cap - source->cnt)
		cnt = cap - source->cnt;
	memcpy(source->bytes + source->cnt * span->stride,
		(const uint8_t *)span->base + skip * span->stride, cnt * span->stride);
	source->cnt += cnt;
	source->next_ordinal = span->ordinal + skip + cnt;
	source->has_begun = 1;
	return 0;
}

static int fill(struct stoup_tool_merge *merge, struct source *source, struct stoup_error *err)
{
	uint64_t stride = source->series->schema->stride, cap = merge->piece_len / stride;
	struct stoup_range range = merge->range;
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc;

	if (cap == 0)
		cap = 1;
	if (!source->bytes)
		source->bytes = malloc(cap * stride);
	if (!source->bytes)
		return stoup_error_set(err, -ENOMEM, "no memory to merge %zu series", merge->cnt);
	source->cnt = source->pos = 0;
	if (source->has_begun)
		range.from_ns = source->last_key;
	rc = stoup_scan(merge->st, source->series, &range, &cur, err);
	if (rc < 0)
		return rc;
	while (source->cnt < cap && (rc = stoup_next(cur, &span)) > 0) {
		rc = take_span(source, &span, cap, err);
		if (rc < 0)
			break;
	}
	if (rc < 0 && stoup_cursor_error(cur)->code)
		rc = stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	if (rc < 0)
		return rc;
	source->is_over = source->cnt == 0;
	for (uint64_t i = 0; i < source->cnt; i++)
		if (key_at(source, i) > source->last_key)
			source->last_key = key_at(source, i);
	if (!source->is_over && key_at(source, 0) > source->key)
		source->key = key_at(source, 0);
	return 0;
}

/* To the next record of a source; is_over at its end. */
static int step(struct stoup_tool_merge *merge, struct source *source, struct stoup_error *err)
{
	int64_t key;

	if (++source->pos == source->cnt)
		return fill(merge, source, err);
	key = key_at(source, source->pos);
	if (key > source->key)
		source->key = key;
	return 0;
}

/* ---- the heap --------------------------------------------------------------------------------- */

static int is_before(const struct stoup_tool_merge *merge, size_t a, size_t b)
{
	const struct source *x = &merge->sources[a], *y = &merge->sources[b];

	return x->key != y->key ? x->key < y->key : a < b;
}

static void sift(struct stoup_tool_merge *merge, size_t i)
{
	size_t *heap = merge->heap, at = heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < merge->heap_cnt && is_before(merge, heap[child + 1], heap[child]))
			child++;
		if (child >= merge->heap_cnt || !is_before(merge, heap[child], at))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = at;
}

int stoup_tool_merge_next(struct stoup_tool_merge *merge, const void **ret, size_t *ret_series,
	struct stoup_error *err)
{
	struct source *source;

	if (merge->is_taken && merge->heap_cnt > 0) {
		int rc;

		source = &merge->sources[merge->heap[0]];
		rc = step(merge, source, err);
		if (rc < 0)
			return rc;
		if (source->is_over) {
			free(source->bytes);
			source->bytes = NULL;
			merge->heap[0] = merge->heap[--merge->heap_cnt];
		}
		if (merge->heap_cnt > 0)
			sift(merge, 0);
	}
	if (merge->heap_cnt == 0)
		return 0;
	source = &merge->sources[merge->heap[0]];
	merge->is_taken = 1;
	*ret = source->bytes + source->pos * source->series->schema->stride;
	*ret_series = merge->heap[0];
	return 1;
}

/* ---- life ------------------------------------------------------------------------------------- */

int stoup_tool_merge_begin(struct stoup *st, const struct stoup_series *const *series, size_t cnt,
	const struct stoup_range *range, struct stoup_tool_merge **ret, struct stoup_error *err)
{
	struct stoup_tool_merge *merge = calloc(1, sizeof(*merge));
	int rc = 0;

	if (merge) {
		merge->sources = calloc(cnt, sizeof(*merge->sources));
		merge->heap = calloc(cnt, sizeof(*merge->heap));
	}
	if (!merge || !merge->sources || !merge->heap) {
		stoup_tool_merge_end(merge);
		return stoup_error_set(err, -ENOMEM, "no memory to merge %zu series", cnt);
	}
	merge->st = st;
	merge->range = *range;
	merge->cnt = cnt;
	merge->piece_len = MEMORY_LEN / cnt < PIECE_LEN_MAX ? MEMORY_LEN / cnt : PIECE_LEN_MAX;
	if (merge->piece_len < PIECE_LEN_MIN)
		merge->piece_len = PIECE_LEN_MIN;
	for (size_t i = 0; i < cnt && rc == 0; i++) {
		merge->sources[i].series = series[i];
		rc = fill(merge, &merge->sources[i], err);
		if (rc == 0 && !merge->sources[i].is_over)
			merge->heap[merge->heap_cnt++] = i;
	}
	if (rc < 0) {
		stoup_tool_merge_end(merge);
		return rc;
	}
	for (size_t i = merge->heap_cnt; i-- > 0;)
		sift(merge, i);
	*ret = merge;
	return 0;
}

void stoup_tool_merge_end(struct stoup_tool_merge *merge)
{
	if (!merge)
		return;
	for (size_t i = 0; i < merge->cnt; i++)
		free(merge->sources[i].bytes);
	free(merge->sources);
	free(merge->heap);
	free(merge);
}
