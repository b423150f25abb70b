/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c - see merge.h.
 *
 * Keys lie in the records, at a stride. Of a segment that kept its order the greatest key so far is the place, and
 * nothing but a walk from the segment's first record finds it: the walk is done once per segment, into an array of
 * 8 bytes per record, which is then read like keys at a stride of 8. A span in direct mode may reach over many
 * segments, hence the pieces.
 */
#include <errno.h>
#include <stdlib.h>
#include "consumer/merge.h"

int64_t stoup_lane_add(const struct stoup_schema *schema, int at_open)
{
	return (schema->flags & STOUP_SCHEMA_BAR) && !at_open ? (int64_t)schema->interval_ns : 0;
}

/* The part and segment of a record of the series. */
static const struct stoup_catalog_segment *segment_of(
	const struct stoup_cursor *cur, uint64_t ordinal, const struct stoup_part **ret)
{
	const struct stoup_part *part = cur->parts;
	const struct stoup_catalog_segment *segments;
	uint32_t low = 0, high;

	while (ordinal - part->ordinal >= part->series->record_cnt)
		part++;
	segments = part->vol->segments + part->series->segment_first;
	ordinal -= part->ordinal;
	high = part->series->segment_cnt;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (segments[mid].ordinal + segments[mid].record_cnt <= ordinal)
			low = mid + 1;
		else
			high = mid;
	}
	*ret = part;
	return segments + low;
}

/* Places of records [from, to) of the span, which lie in one segment whose first record is record `first` of the
 * span: it may lie in front of it. */
static void kept_fill(
	struct stoup_lane *lane, const struct stoup_catalog_segment *seg, int64_t first)
{
	const uint8_t *base = lane->span.base;
	int64_t highest = seg->first_key, key;

	for (int64_t i = first; i < (int64_t)lane->to; i++) {
		key = stoup_record_key(base + i * (int64_t)lane->span.stride, 0, lane->span.schema);
		/* Beyond the segment's last key: an undefined time. */
		if (key > highest && key <= seg->last_key)
			highest = key;
		if (i >= (int64_t)lane->from)
			lane->kept[i - (int64_t)lane->from] = highest;
	}
	lane->keys = (const uint8_t *)lane->kept;
	lane->key_first = lane->from;
	lane->key_stride = sizeof(*lane->kept);
}

int64_t stoup_span_place(const struct stoup_cursor *cur, const struct stoup_span *span)
{
	const struct stoup_catalog_segment *seg = NULL;
	const struct stoup_part *part;
	int64_t highest, key;

	if (cur->merge)
		return stoup_merge_place(cur, span);
	seg = segment_of(cur, span->ordinal, &part);
	highest = seg->first_key;
	if (!(part->series->flags & STOUP_CATALOG_KEEP_ORDER))
		return highest;
	/* Those in front of the span lie in the same segment, whose bytes are as good as its own. */
	for (uint64_t back = span->ordinal - part->ordinal - seg->ordinal; back > 0; back--) {
		key = stoup_record_key(
			(const uint8_t *)span->base - back * span->stride, 0, span->schema);
		if (key > highest && key <= seg->last_key)
			highest = key;
	}
	return highest;
}

static int kept_room(struct stoup_lane *lane, uint64_t cnt)
{
	int64_t *room;

	if (cnt <= lane->kept_cap)
		return 0;
	room = realloc(lane->kept, cnt * sizeof(*room));
	if (!room)
		return -ENOMEM;
	lane->kept = room;
	lane->kept_cap = cnt;
	return 0;
}

static int kept_piece(struct stoup_lane *lane)
{
	uint64_t next = lane->step > 0 ? lane->low : lane->high - 1;
	const struct stoup_catalog_segment *seg;
	const struct stoup_part *part;
	int64_t first, end;
	int rc;

	seg = segment_of(lane->cur, lane->span.ordinal + next, &part);
	if (!(part->series->flags & STOUP_CATALOG_KEEP_ORDER))
		return 0;
	first = (int64_t)(part->ordinal + seg->ordinal - lane->span.ordinal);
	end = first + (int64_t)seg->record_cnt;
	if (first > (int64_t)lane->low)
		lane->from = (uint64_t)first;
	if (end < (int64_t)lane->high)
		lane->to = (uint64_t)end;
	rc = kept_room(lane, lane->to - lane->from);
	if (rc < 0)
		return rc;
	kept_fill(lane, seg, first);
	return 1;
}

int stoup_lane_piece(struct stoup_lane *lane)
{
	int rc;

	lane->from = lane->low;
	lane->to = lane->high;
	rc = kept_piece(lane);
	if (rc < 0) {
		lane->to = lane->from; /* no piece: the next call tries again */
		return rc;
	}
	if (rc == 0) {
		lane->keys = lane->span.schema->stride
		                     ? (const uint8_t *)lane->span.base + lane->span.schema->key_off
		                     : NULL;
		lane->key_first = 0;
		lane->key_stride = lane->span.stride;
	}
	lane->last = stoup_lane_place(lane, lane->to - lane->from - 1);
	return 0;
}

int stoup_lane_load(struct stoup_lane *lane, const struct stoup_span *span)
{
	lane->span = *span;
	lane->low = 0;
	lane->high = span->record_cnt;
	return stoup_lane_piece(lane);
}

void stoup_lane_fini(struct stoup_lane *lane)
{
	stoup_cursor_close(lane->cur);
	free(lane->kept);
}

uint64_t stoup_lane_run(const struct stoup_lane *lane, int64_t bound)
{
	uint64_t cnt = stoup_lane_left(lane), in = 0, out = 1, mid;

	if (lane->last <= bound)
		return cnt;
	while (out < cnt - 1 && stoup_lane_place(lane, out) <= bound) {
		in = out;
		out *= 2;
	}
	if (out > cnt - 1)
		out = cnt - 1;
	while (out - in > 1) {
		mid = in + (out - in) / 2;
		if (stoup_lane_place(lane, mid) <= bound)
			in = mid;
		else
			out = mid;
	}
	return out;
}

void stoup_lane_cut(struct stoup_lane *lane, uint64_t cnt, struct stoup_span *ret)
{
	uint64_t at = lane->step > 0 ? lane->from : lane->to - cnt;

	*ret = lane->span;
	ret->base = (const uint8_t *)lane->span.base + at * lane->span.stride;
	ret->record_cnt = cnt;
	ret->ordinal += at;
	if (lane->step > 0)
		lane->low = lane->from += cnt;
	else
		lane->high = lane->to -= cnt;
}
