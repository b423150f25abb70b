/* SPDX-License-Identifier: Apache-2.0 */
/* range.c - which records a scan has: bounds by key and by ordinal, limits, and seeking within them.
 *
 *      user's range --keys, half open--> bounds --ordinals of this snapshot--> [low, high)
 *                                                  |            |  seek, what was handed out
 *                                                  v            v
 *                                     STOUP_LAST: counted    [begin_ordinal, end_ordinal)
 *                                     from the other end
 *
 * All bounds of keys become one form, [from_ns, to_ns) with 0 for open, so that the steps of a scan know no
 * flags. A range that can have no record is one of no ordinals.
 *
 * Invariant: `low` and `high` are of the cursor's snapshot: where another one counts otherwise, they move with the
 * anchor; without one they are as asked, and what STOUP_LAST means is settled anew.
 */
#include <errno.h>
#include "consumer/cursor.h"
#include "consumer/direct.h"
#include "consumer/merge.h"

#define RANGE_FLAGS                                                                                \
	(STOUP_BACKWARD | STOUP_DIRECT | STOUP_DIRECT_OR_POOL | STOUP_FROM_AFTER |                 \
		STOUP_TO_INCLUDED | STOUP_ORDINALS | STOUP_LAST | STOUP_FOLLOW | STOUP_AVAILABLE)

/* ---- what was asked for ---------------------------------------------------------------------- */

static int flags_check(const struct stoup_range *range, struct stoup_error *err)
{
	uint32_t flags = range->flags;

	if (flags & ~RANGE_FLAGS)
		return stoup_error_set(err, -EINVAL,
			"range.flags %#x are unknown: set the whole struct, unused members to 0",
			flags & ~RANGE_FLAGS);
	if ((flags & STOUP_LAST) && range->limit == 0)
		return stoup_error_set(
			err, -EINVAL, "STOUP_LAST needs range.limit: how many of the last records");
	if ((flags & STOUP_FOLLOW) && (flags & STOUP_BACKWARD))
		return stoup_error_set(err, -EINVAL,
			"STOUP_FOLLOW goes on with later records: not with STOUP_BACKWARD");
	if ((flags & STOUP_ORDINALS) && (flags & (STOUP_FROM_AFTER | STOUP_TO_INCLUDED)))
		return stoup_error_set(err, -EINVAL,
			"STOUP_ORDINALS means records [from, to): add 1 instead of STOUP_FROM_AFTER or "
			"STOUP_TO_INCLUDED, which are for ties of keys");
	return 0;
}

int stoup_bounds_check(const struct stoup_range *range, struct stoup_error *err)
{
	int rc;

	if (!range)
		return 0;
	rc = flags_check(range, err);
	if (rc < 0)
		return rc;
	if ((range->flags & STOUP_ORDINALS) && range->from_ns < 0)
		return stoup_error_set(err, -EINVAL,
			"the range begins at ordinal %lld: the first one is 0",
			(long long)range->from_ns);
	if (range->to_ns < 0 || (range->to_ns != 0 && range->to_ns < range->from_ns))
		return stoup_error_set(err, -EINVAL,
			"the range ends at %lld, before it begins at %lld", (long long)range->to_ns,
			(long long)(range->from_ns > 0 ? range->from_ns : 0));
	return 0;
}

/* The first key that is at (or `after`) a time, seen from later_ns before it; 0: all keys are, INT64_MAX with
 * *none: no key is. */
static int64_t first_key_at(int64_t time_ns, int after, int64_t later_ns, int *none)
{
	*none = after && time_ns - later_ns == INT64_MAX;
	if (*none)
		return INT64_MAX;
	time_ns += after - later_ns;
	return time_ns > 0 ? time_ns : 0;
}

void stoup_bounds_make(const struct stoup_range *range, const struct stoup_schema *schema,
	struct stoup_bounds *ret)
{
	struct stoup_bounds bounds = {.end = UINT64_MAX, .limit = UINT64_MAX};
	int none, all, after, included;

	*ret = bounds;
	if (!range)
		return;
	bounds.flags = range->flags;
	if (range->limit)
		bounds.limit = range->limit;
	if (range->flags & STOUP_LAST)
		bounds.settle = STOUP_SETTLE_LIMIT;
	if ((range->flags & STOUP_AVAILABLE) && (schema->flags & STOUP_SCHEMA_BAR))
		bounds.later_ns =
			schema->interval_ns < INT64_MAX ? (int64_t)schema->interval_ns : INT64_MAX;
	if (range->flags & STOUP_ORDINALS) {
		bounds.begin = (uint64_t)range->from_ns;
		if (range->to_ns != 0)
			bounds.end = (uint64_t)range->to_ns;
		*ret = bounds;
		return;
	}
	after = (range->flags & STOUP_FROM_AFTER) != 0;
	included = (range->flags & STOUP_TO_INCLUDED) != 0;
	if (range->from_ns > 0) {
		bounds.from_ns = first_key_at(range->from_ns, after, bounds.later_ns, &none);
		if (none)
			bounds.end = 0;
	}
	if (range->to_ns > 0) {
		bounds.to_ns = first_key_at(range->to_ns, included, bounds.later_ns, &all);
		/* Keys are positive. */
		if (all)
			bounds.to_ns = 0;
		else if (bounds.to_ns == 0)
			bounds.end = 0;
	}
	/* Between a key and itself: after it, and before it. */
	if (bounds.to_ns != 0 && bounds.from_ns > bounds.to_ns)
		bounds.end = 0;
	*ret = bounds;
}

/* ---- a scan begins --------------------------------------------------------------------------- */

/* The limit counts from the next record. */
static void limit_anew(struct stoup_cursor *cur)
{
	cur->limit = cur->range.limit;
	cur->limited = 0;
	/* What follows the last ones is not counted. */
	if ((cur->range.flags & STOUP_LAST) && (cur->range.flags & STOUP_FOLLOW))
		cur->limit = UINT64_MAX;
}

/* The limit, and the range's ordinals as they were asked for. */
static void count_anew(struct stoup_cursor *cur)
{
	limit_anew(cur);
	cur->low = cur->range.begin;
	cur->high = cur->range.end;
	if (cur->range.settle != STOUP_SETTLE_NONE)
		cur->pending |= STOUP_PENDING_EDGES;
}

void stoup_cursor_bound(struct stoup_cursor *cur)
{
	cur->step = cur->range.flags & STOUP_BACKWARD ? -1 : 1;
	cur->from_ns = cur->range.from_ns;
	cur->to_ns = cur->range.to_ns;
	count_anew(cur);
	stoup_cursor_rewind(cur);
}

void stoup_cursor_again(struct stoup_cursor *cur)
{
	if (cur->anchor.valid)
		cur->pending |= STOUP_PENDING_ANCHOR;
	else if (!cur->followed || (cur->pending & STOUP_PENDING_EDGES))
		count_anew(cur);
	/* Nothing was there: whatever the range has now is later, and what STOUP_LAST means was settled. */
	if (!cur->anchor.valid && cur->bare)
		cur->pending &= ~STOUP_PENDING_EDGES;
	/* Else which ones were the last is settled, though none was handed out: what follows is not among them. */
	stoup_cursor_rewind(cur);
}

static uint64_t shifted(uint64_t ordinal, uint64_t by)
{
	uint64_t ret = ordinal + by;

	/* Down to before the first record. */
	return by >> 63 && ret > ordinal ? 0 : ret;
}

/* Nothing comes after the limit. */
static void limit_bound(struct stoup_cursor *cur)
{
	uint64_t until = cur->until > 0 ? (uint64_t)cur->until : 0;

	if (cur->step > 0 && until < cur->end_ordinal)
		cur->end_ordinal = until;
	if (cur->step < 0 && until > cur->begin_ordinal)
		cur->begin_ordinal = until;
	stoup_cursor_edge(cur);
}

void stoup_cursor_shift(struct stoup_cursor *cur, uint64_t by)
{
	if (cur->range.flags & (STOUP_ORDINALS | STOUP_LAST))
		cur->low = shifted(cur->low, by);
	if (cur->high != UINT64_MAX)
		cur->high = shifted(cur->high, by);
	cur->begin_ordinal = cur->low;
	cur->end_ordinal = cur->high;
	stoup_cursor_edge(cur);
	if (!cur->limited)
		return;
	cur->until += (int64_t)by;
	limit_bound(cur);
}

void stoup_cursor_limit(struct stoup_cursor *cur, uint64_t ordinal, uint64_t *low, uint64_t *high)
{
	int64_t first = (int64_t)(ordinal + (cur->step > 0 ? *low : *high));

	cur->until = first + cur->step * (int64_t)cur->limit;
	cur->limited = 1;
	cur->limit = UINT64_MAX;
	limit_bound(cur);
	stoup_cursor_clip(cur, ordinal, low, high);
}

/* ---- edges ----------------------------------------------------------------------------------- */

int stoup_cursor_look(struct stoup_cursor *cur, struct stoup_place place,
	const struct stoup_catalog_segment *seg, const uint8_t **ret)
{
	uint32_t window = cur->window;
	int rc;

	cur->at = place;
	if (cur->direct)
		return stoup_direct_look(cur, &cur->parts[place.part], seg, ret);
	/* Nothing is to be read from here on. */
	cur->window = 0;
	rc = stoup_segment_lease(cur, seg);
	cur->window = window;
	if (rc < 0)
		return rc;
	rc = stoup_segment_base(cur, seg, ret);
	if (rc < 0)
		stoup_grip_release(cur->ses, &cur->hand, &cur->grip);
	return rc;
}

int stoup_cursor_key_place(const struct stoup_cursor *cur, int64_t key_ns, struct stoup_place *ret,
	uint64_t *ret_ordinal)
{
	const struct stoup_catalog_segment *seg;
	struct stoup_place place = {0};
	uint64_t ordinal = 0;

	for (; place.part < cur->part_cnt; place.part++) {
		const struct stoup_part *part = &cur->parts[place.part];

		ordinal = part->ordinal + part->series->record_cnt;
		if (part->series->record_cnt == 0 || part->series->last_key < key_ns)
			continue;
		place.seg = stoup_part_begin(part, key_ns);
		if (!(seg = stoup_segment_at(cur, place)))
			continue;
		*ret = place;
		*ret_ordinal = part->ordinal + seg->ordinal;
		return seg->first_key < key_ns;
	}
	*ret = place;
	*ret_ordinal = ordinal;
	return 0;
}

int stoup_cursor_key_ordinal(struct stoup_cursor *cur, int64_t key_ns, uint64_t *ret)
{
	const struct stoup_catalog_segment *seg;
	struct stoup_place place;
	const uint8_t *base;
	uint64_t ordinal;
	int rc = stoup_cursor_key_place(cur, key_ns, &place, &ordinal);

	if (rc > 0) {
		seg = stoup_segment_at(cur, place);
		rc = stoup_cursor_look(cur, place, seg, &base);
		if (rc < 0)
			return rc;
		ordinal += stoup_segment_bound(
			&cur->parts[place.part], base, seg, cur->schema, key_ns);
		stoup_grip_release(cur->ses, &cur->hand, &cur->grip);
	}
	*ret = ordinal;
	return 0;
}

int stoup_cursor_begin_edge(struct stoup_cursor *cur, uint64_t *ret)
{
	uint64_t ordinal = 0;
	int rc = 0;

	if (cur->range.from_ns != 0)
		rc = stoup_cursor_key_ordinal(cur, cur->range.from_ns, &ordinal);
	if (rc == 0)
		*ret = ordinal > cur->low ? ordinal : cur->low;
	return rc;
}

int stoup_cursor_end_edge(struct stoup_cursor *cur, uint64_t *ret)
{
	uint64_t ordinal = stoup_cursor_total(cur);
	int rc = 0;

	if (cur->range.to_ns != 0)
		rc = stoup_cursor_key_ordinal(cur, cur->range.to_ns, &ordinal);
	if (rc == 0)
		*ret = ordinal < cur->high ? ordinal : cur->high;
	return rc;
}

static int both_settle(struct stoup_cursor *cur)
{
	uint64_t begin = 0, end = 0;
	int rc = stoup_cursor_begin_edge(cur, &begin);

	if (rc == 0)
		rc = stoup_cursor_end_edge(cur, &end);
	if (rc < 0)
		return rc;
	cur->low = begin;
	cur->high = end;
	cur->pending &= ~STOUP_PENDING_EDGES;
	return 0;
}

/* Which records the limit leaves, counted from the range's end or from its begin. */
static int edges_settle(struct stoup_cursor *cur)
{
	int at_end = (cur->range.flags & STOUP_LAST) && cur->step > 0, rc;
	uint64_t limit = cur->range.limit, edge = 0;

	/* Nothing is in the range, and a segment that has its edges need not be. */
	if (cur->high == 0) {
		cur->pending &= ~STOUP_PENDING_EDGES;
		return 0;
	}
	if (cur->range.settle == STOUP_SETTLE_BOTH)
		return both_settle(cur);
	rc = at_end ? stoup_cursor_end_edge(cur, &edge) : stoup_cursor_begin_edge(cur, &edge);
	if (rc < 0)
		return rc;
	if (at_end) {
		if (edge > limit && edge - limit > cur->low)
			cur->low = edge - limit;
		if (!(cur->range.flags & STOUP_FOLLOW))
			cur->high = edge;
	} else {
		cur->low = edge;
		if (edge < UINT64_MAX - limit && edge + limit < cur->high)
			cur->high = edge + limit;
	}
	cur->pending &= ~STOUP_PENDING_EDGES;
	stoup_cursor_rewind(cur);
	return 0;
}

int stoup_cursor_settle(struct stoup_cursor *cur)
{
	int rc = 0;

	if (cur->pending & STOUP_PENDING_ANCHOR)
		rc = stoup_cursor_locate(cur);
	if (rc == 0 && (cur->pending & STOUP_PENDING_EDGES))
		rc = edges_settle(cur);
	return rc;
}

/* ---- seeking --------------------------------------------------------------------------------- */

/* From where on (backward: up to where) keys are still to come. */
static void seek_key(struct stoup_cursor *cur, int64_t key_ns)
{
	int unbound = 0;
	int64_t key =
		first_key_at(key_ns < 0 ? 0 : key_ns, cur->step < 0, cur->range.later_ns, &unbound);

	cur->from_ns = cur->range.from_ns;
	cur->to_ns = cur->range.to_ns;
	if (cur->step > 0) {
		if (key > cur->from_ns)
			cur->from_ns = key;
		return;
	}
	/* Keys are positive: none is below 1. */
	if (key < 1)
		key = 1;
	if (!unbound && (cur->to_ns == 0 || key < cur->to_ns))
		cur->to_ns = key;
}

int stoup_seek(struct stoup_cursor *cur, int64_t key_ns)
{
	if (!cur)
		return -EINVAL;
	if (!stoup_client_own(cur->st)) {
		cur->error.text[0] = 0;
		return stoup_client_refused(cur->st, &cur->error);
	}
	if (cur->failed)
		return cur->error.code;
	if (cur->merge)
		return stoup_merge_seek(cur, key_ns);
	cur->error.code = 0;
	cur->error.text[0] = 0;
	cur->owed = 0;
	cur->span_cnt = 0;
	stoup_grip_release(cur->ses, &cur->hand, &cur->grip);
	/* Nothing was passed; what was asked for is all that another snapshot needs. */
	cur->anchor.valid = 0;
	cur->bare = 0;
	cur->tail_next = 0;
	if (cur->pending & STOUP_PENDING_ANCHOR) {
		cur->pending &= ~STOUP_PENDING_ANCHOR;
		count_anew(cur);
	}
	limit_anew(cur);
	seek_key(cur, key_ns);
	stoup_cursor_rewind(cur);
	return 0;
}
