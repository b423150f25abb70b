/* SPDX-License-Identifier: Apache-2.0 */
/* resume.c - a scan goes on at the same record after its daemon ended.
 *
 *      old snapshot   [a a b][b c c|C d d][e ...]        C: anchor, the third c
 *      new snapshot   [x x][a a b b c][c C d][d e ...]   other volumes, blocks and ordinals
 *                                 ^first c of the series --2 further--> the same bytes? go on behind
 *
 * Ordered series: the anchor is found by its key and its number among equal keys, since a store may
 * have been compacted, or extended by earlier days, so that ordinals moved. Series that kept their
 * order have no such index: there the ordinal counts. Either way the bytes must be those that were
 * handed out, else the store is another one and the cursor fails for good.
 *
 * A backward scan has seen the records behind its anchor, not those in front of it:
 *
 *      old snapshot   ... [a b b][b b|B C][d]       B: anchor, the first record of the last span
 *                                      ^---- counted from the last b down: 1
 *
 * Counted from the last one down, later data that begins with the same key would move the number. So
 * the number is counted from the first one up where the old index tells it: where the segments in
 * front end in another key, as nearly always, or are of this one key throughout.
 *
 * Where a damaged block was left out, the number among equal keys may not be known; then the ordinal
 * counts as well.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/asof.h"
#include "consumer/cursor.h"

/* A series may have parts of both kinds. */
static int keeps_order(const struct stoup_part *part)
{
	return (part->series->flags & STOUP_CATALOG_KEEP_ORDER) != 0;
}

/* ---- places -------------------------------------------------------------------------------- */

/* The place of the segment that has the record `ordinal`; at the end when there is none. */
static struct stoup_place place_of(const struct stoup_cursor *cur, uint64_t ordinal)
{
	struct stoup_place place = {0};

	while (place.part < cur->part_cnt &&
		ordinal >=
			cur->parts[place.part].ordinal + cur->parts[place.part].series->record_cnt)
		place.part++;
	if (place.part < cur->part_cnt)
		place.seg = stoup_part_holds(&cur->parts[place.part], ordinal);
	return place;
}

/* To the next segment, up (1) or down (-1), over the ends of parts: 0 there is none. */
static int place_step(const struct stoup_cursor *cur, struct stoup_place *place, int32_t step)
{
	do {
		place->seg += (uint32_t)step;
		while (place->part < cur->part_cnt &&
			place->seg >= cur->parts[place->part].series->segment_cnt) {
			place->part += (uint32_t)step;
			if (place->part >= cur->part_cnt)
				return 0;
			place->seg = step > 0 ? 0 : cur->parts[place->part].series->segment_cnt - 1;
		}
	} while (stoup_segment_at(cur, *place)->record_cnt == 0);
	return 1;
}

/* ---- the anchor ------------------------------------------------------------------------------ */

/* Records [begin, end) were passed: those nearest to what comes next, `ties` of them, have `key`; all of them
 * do (`whole`), so that they go on with the key that was passed before. 1: they do not, nothing passed counts. */
static int tail_set(struct stoup_cursor *cur, int64_t key, uint64_t ties, uint64_t begin,
	uint64_t end, int whole)
{
	uint64_t from = cur->step > 0 ? begin : end;
	int fresh = 0;

	if (whole && cur->tail_next != 0 && cur->tail_next == from && cur->tail_key == key) {
		cur->tail_ties += ties;
	} else {
		cur->tail_ties = ties;
		cur->tail_exact = fresh = 1;
	}
	cur->tail_key = key;
	cur->tail_next = cur->step > 0 ? end : begin;
	return fresh;
}

/* Records of a span that have the key of the one at `at`, its last (backward: its first). */
static uint64_t ties_of(const struct stoup_cursor *cur, uint64_t at, int64_t key)
{
	const struct stoup_schema *schema = cur->schema;
	const uint8_t *base = cur->span_base;
	uint64_t cnt = cur->span_cnt;

	if (cnt == 1 || stoup_record_key(base, at - (uint64_t)cur->step, schema) != key)
		return 1;
	return cur->step > 0 ? cnt - stoup_record_bound(base, cnt, schema, key)
	                     : stoup_record_above(base, cnt, schema, key);
}

/* Records of `key` that lie in front of a span which begins with that key (backward: behind one that ends with it), and
 * were not passed: where ordinals or a limit cut between ties. *ret_exact 0: the index does not tell all. */
static uint64_t ties_passed_by(const struct stoup_cursor *cur, int64_t key, int *ret_exact)
{
	const struct stoup_schema *schema = cur->schema;
	uint64_t low = cur->span_low, ordinal = cur->span_ordinal - low, end, ret;
	const uint8_t *base = cur->span_base - low * cur->stride;
	struct stoup_place place = place_of(cur, ordinal);
	const struct stoup_catalog_segment *seg = stoup_segment_at(cur, place);
	int whole;

	if (!seg)
		return 0;
	if (cur->step > 0) {
		ret = low - stoup_record_bound(base, low, schema, key);
		whole = ret == low;
	} else {
		low += cur->span_cnt;
		end = cur->parts[place.part].ordinal + seg->ordinal + seg->record_cnt - ordinal;
		ret = stoup_record_above(base + low * cur->stride, end - low, schema, key);
		whole = ret == end - low;
	}
	while (whole && place_step(cur, &place, -cur->step)) {
		seg = stoup_segment_at(cur, place);
		if (cur->step > 0 ? seg->last_key < key : seg->first_key > key)
			break;
		whole = seg->first_key == seg->last_key;
		if (!whole || keeps_order(&cur->parts[place.part])) {
			*ret_exact = 0;
			break;
		}
		ret += seg->record_cnt;
	}
	return ret;
}

/* Backward: records of the anchor's key in front of it in its segment. */
static uint64_t ties_in_front(const struct stoup_cursor *cur, int64_t key)
{
	const uint8_t *base = cur->span_base - cur->span_low * cur->stride;

	if (cur->span_low == 0 || stoup_record_key(base, cur->span_low - 1, cur->schema) != key)
		return 0;
	return cur->span_low - stoup_record_bound(base, cur->span_low, cur->schema, key);
}

void stoup_anchor_take(struct stoup_cursor *cur)
{
	const struct stoup_schema *schema = cur->schema;
	uint64_t cnt = cur->span_cnt, ties = 1, at = cur->step > 0 ? cnt - 1 : 0;
	int64_t key = stoup_record_key(cur->span_base, at, schema);
	int keeps, fresh, exact = 1;

	if (cur->anchor.bytes) {
		/* The place is still in the part that the span was cut from. */
		keeps = keeps_order(&cur->parts[cur->at.part]);
		if (!keeps)
			ties = ties_of(cur, at, key);
		fresh = tail_set(
			cur, key, ties, cur->span_ordinal, cur->span_ordinal + cnt, ties == cnt);
		if (fresh && !keeps && ties == cnt)
			cur->tail_ties += ties_passed_by(cur, key, &exact);
		if (keeps || !exact)
			cur->tail_exact = 0;
		cur->anchor.valid = 1;
		cur->anchor.exact = cur->tail_exact;
		cur->anchor.from_end = cur->step < 0;
		cur->anchor.key = key;
		cur->anchor.ties = cur->tail_ties;
		if (cur->step < 0)
			cur->anchor.front = keeps ? 0 : ties_in_front(cur, key);
		cur->anchor.ordinal = cur->span_ordinal + at;
		stoup_record_copy(cur->span_base, at, schema, cur->anchor.bytes);
	}
	cur->span_cnt = 0;
}

void stoup_anchor_skip(struct stoup_cursor *cur, const struct stoup_catalog_segment *seg)
{
	uint64_t begin = cur->parts[cur->at.part].ordinal + seg->ordinal;
	uint64_t end = begin + seg->record_cnt;

	/* What was resumed within the segment is left out from there on. */
	if (begin < cur->begin_ordinal)
		begin = cur->begin_ordinal;
	if (end > cur->end_ordinal)
		end = cur->end_ordinal;
	(void)tail_set(cur, cur->step > 0 ? seg->last_key : seg->first_key, end - begin, begin, end,
		seg->first_key == seg->last_key);
	if (seg->first_key != seg->last_key || keeps_order(&cur->parts[cur->at.part]))
		cur->tail_exact = 0;
}

/* ---- going over ------------------------------------------------------------------------------ */

/* The cursor is of no use any more; its error has a text. */
static int fail(struct stoup_cursor *cur)
{
	cur->failed = 1;
	return cur->error.code;
}

/* What the newer snapshot is. */
static const char *since(const struct stoup_cursor *cur)
{
	return cur->followed ? "was rescanned" : "was attached to anew";
}

static int gone(struct stoup_cursor *cur, int why)
{
	if (why == -ENOMEM)
		return stoup_error_set(
			&cur->error, why, "no memory for the parts of '%.100s'", cur->name);
	stoup_error_set(&cur->error, -ESTALE,
		why == -ENOTUNIQ ? "the layout of series '%.100s' is another one since pool "
				   "'%s' %s: attach anew"
				 : "series '%.100s' is gone from the store since pool '%s' %s",
		cur->name, cur->ses->pool, since(cur));
	return fail(cur);
}

/* The ordinal between what was passed and what comes next: that of the next record, or (backward) the one
 * behind it. */
static uint64_t border(const struct stoup_cursor *cur)
{
	const struct stoup_part *last = &cur->parts[cur->part_cnt - 1];
	struct stoup_place at = cur->at;
	const struct stoup_catalog_segment *seg;
	uint64_t ordinal = cur->step > 0 ? last->ordinal + last->series->record_cnt : 0;

	/* NULL at the end of the range as well, where the place is that of the first one beyond. */
	if (!stoup_place_segment(cur, &at) && at.part >= cur->part_cnt)
		seg = NULL;
	else
		seg = stoup_segment_at(cur, at);
	if (seg)
		ordinal = cur->parts[at.part].ordinal + seg->ordinal;
	if (cur->step > 0)
		return ordinal > cur->begin_ordinal ? ordinal : cur->begin_ordinal;
	if (seg)
		ordinal += seg->record_cnt;
	return ordinal < cur->end_ordinal ? ordinal : cur->end_ordinal;
}

/* Backward, in the old snapshot: count the anchor among equal keys from the first one up, if the index tells
 * how many lie in front of it. */
static void anchor_from_begin(struct stoup_cursor *cur)
{
	struct stoup_anchor *anchor = &cur->anchor;
	struct stoup_place place = place_of(cur, anchor->ordinal);
	const struct stoup_catalog_segment *seg = stoup_segment_at(cur, place);
	uint64_t ties = 1 + anchor->front;

	if (!seg || keeps_order(&cur->parts[place.part]))
		return;
	while (cur->parts[place.part].ordinal + seg->ordinal == anchor->ordinal - (ties - 1)) {
		if (!place_step(cur, &place, -1))
			break;
		seg = stoup_segment_at(cur, place);
		if (seg->last_key < anchor->key)
			break;
		if (seg->first_key < anchor->key || keeps_order(&cur->parts[place.part]))
			return;
		ties += seg->record_cnt;
	}
	anchor->ties = ties;
	anchor->exact = 1;
	anchor->from_end = 0;
}

int stoup_cursor_renew(struct stoup_cursor *cur, uint64_t deadline_ns)
{
	int rc;

	/* Before the wait: a machine may have no room for two pools. */
	stoup_lookup_drop(cur);
	rc = stoup_renew(cur->st, cur->ses, deadline_ns, &cur->error);
	if (rc < 0)
		return rc;
	return stoup_cursor_move(cur, stoup_snapshot_current(cur->st));
}

int stoup_cursor_move(struct stoup_cursor *cur, struct stoup_snapshot *snap)
{
	struct stoup_session *ses;
	struct stoup_part *parts;
	uint32_t part_cnt;
	int rc;

	stoup_lookup_drop(cur);
	cur->followed = snap->session == cur->ses;
	if (!(cur->pending & STOUP_PENDING_ANCHOR) && cur->anchor.valid) {
		cur->next_off = cur->step > 0 ? border(cur) - cur->anchor.ordinal
		                              : cur->anchor.ordinal - border(cur);
		if (cur->step < 0)
			anchor_from_begin(cur);
	}
	/* What was left out before the first record has no place in the next snapshot. */
	if (!cur->anchor.valid)
		cur->tail_next = 0;
	stoup_hand_fini(cur->ses, &cur->hand);
	rc = stoup_series_parts(snap, cur->name, cur->schema, &parts, &part_cnt);
	if (rc < 0) {
		ses = snap->session;
		stoup_snapshot_release(snap);
		stoup_session_release(ses);
		return gone(cur, rc);
	}
	stoup_snapshot_release(cur->snap);
	stoup_session_release(cur->ses);
	free(cur->parts);
	cur->snap = snap;
	cur->ses = snap->session;
	cur->parts = parts;
	cur->part_cnt = part_cnt;
	cur->look_in = cur->look_every = 1;
	if (cur->direct)
		cur->pending |= STOUP_PENDING_FILES;
	stoup_cursor_again(cur);
	return 0;
}

/* ---- finding the anchor ---------------------------------------------------------------------- */

static int differs(struct stoup_cursor *cur, const char *what)
{
	stoup_error_set(&cur->error, -ESTALE,
		"'%.80s': record %llu (key %lld), the last one read, %s since pool "
		"'%s' %s: open a new cursor",
		cur->name, (unsigned long long)cur->anchor.ordinal, (long long)cur->anchor.key,
		what, cur->ses->pool, since(cur));
	return fail(cur);
}

/* The segment at `place`: 0 with its first record and that one's ordinal. */
static int look_at(struct stoup_cursor *cur, struct stoup_place place,
	const struct stoup_catalog_segment *seg, const uint8_t **ret, uint64_t *ret_ordinal)
{
	*ret_ordinal = cur->parts[place.part].ordinal + seg->ordinal;
	return stoup_cursor_look(cur, place, seg, ret);
}

/* Where the anchor must be by its key, counted from the first record that has it: 0 with *ret, which had its
 * ordinal; -ESTALE, or as stoup_next. */
static int target_of_key(struct stoup_cursor *cur, uint64_t *ret)
{
	const struct stoup_anchor *anchor = &cur->anchor;
	const struct stoup_catalog_segment *seg;
	struct stoup_place place = {0};
	const uint8_t *base;
	uint64_t ordinal, i;
	int rc;

	while (place.part < cur->part_cnt &&
		(cur->parts[place.part].series->record_cnt == 0 ||
			cur->parts[place.part].series->last_key < anchor->key))
		place.part++;
	if (place.part == cur->part_cnt)
		return differs(cur, "is gone");
	/* No index there: *ret is the ordinal. */
	if (keeps_order(&cur->parts[place.part]))
		return 0;
	place.seg = stoup_part_begin(&cur->parts[place.part], anchor->key);
	seg = stoup_segment_at(cur, place);
	if (!seg || seg->first_key > anchor->key)
		return differs(cur, "is gone");
	/* It begins there: no need to read it, and it may be damaged. */
	if (seg->first_key == anchor->key) {
		*ret = cur->parts[place.part].ordinal + seg->ordinal + anchor->ties - 1;
		return 0;
	}
	rc = look_at(cur, place, seg, &base, &ordinal);
	if (rc < 0)
		return rc;
	i = stoup_record_bound(base, seg->record_cnt, cur->schema, anchor->key);
	if (i == seg->record_cnt || stoup_record_key(base, i, cur->schema) != anchor->key)
		rc = differs(cur, "is gone");
	*ret = ordinal + i + anchor->ties - 1;
	stoup_grip_release(cur->ses, &cur->hand, &cur->grip);
	return rc;
}

/* The same, counted from the last record that has the key. */
static int target_of_last_key(struct stoup_cursor *cur, uint64_t *ret)
{
	const struct stoup_anchor *anchor = &cur->anchor;
	const struct stoup_catalog_segment *seg;
	struct stoup_place place = {.part = cur->part_cnt};
	const uint8_t *base;
	uint64_t ordinal, end, i;
	int rc = 0;

	while (place.part > 0 &&
		(cur->parts[place.part - 1].series->record_cnt == 0 ||
			cur->parts[place.part - 1].series->first_key > anchor->key))
		place.part--;
	if (place.part-- == 0)
		return differs(cur, "is gone");
	if (keeps_order(&cur->parts[place.part]))
		return 0;
	place.seg = stoup_part_end(&cur->parts[place.part],
			    anchor->key == INT64_MAX ? 0 : anchor->key + 1) -
	            1;
	seg = stoup_segment_at(cur, place);
	if (!seg || seg->last_key < anchor->key)
		return differs(cur, "is gone");
	end = cur->parts[place.part].ordinal + seg->ordinal + seg->record_cnt;
	if (seg->last_key > anchor->key) {
		rc = look_at(cur, place, seg, &base, &ordinal);
		if (rc < 0)
			return rc;
		i = stoup_record_above(base, seg->record_cnt, cur->schema, anchor->key);
		if (i == 0 || stoup_record_key(base, i - 1, cur->schema) != anchor->key)
			rc = differs(cur, "is gone");
		end = ordinal + i;
		stoup_grip_release(cur->ses, &cur->hand, &cur->grip);
	}
	if (rc == 0 && end < anchor->ties)
		rc = differs(cur, "is gone");
	if (rc == 0)
		*ret = end - anchor->ties;
	return rc;
}

static int is_anchor(const struct stoup_cursor *cur, const uint8_t *base, uint64_t idx)
{
	uint8_t copy[sizeof(struct stoup_message_head) + sizeof(uint64_t)];

	if (cur->schema->stride)
		return memcmp(base + idx * cur->stride, cur->anchor.bytes, cur->stride) == 0;
	stoup_record_copy(base, idx, cur->schema, copy);
	return memcmp(copy, cur->anchor.bytes, sizeof(copy)) == 0;
}

/* Is the record `target` the anchor? 0; -ESTALE, or as stoup_next. */
static int compare(struct stoup_cursor *cur, uint64_t target)
{
	struct stoup_place place = place_of(cur, target);
	const struct stoup_catalog_segment *seg = stoup_segment_at(cur, place);
	const uint8_t *base;
	uint64_t ordinal;
	int rc;

	if (!seg)
		return differs(cur, "is gone");
	rc = look_at(cur, place, seg, &base, &ordinal);
	if (rc < 0)
		return rc;
	if (target < ordinal || target - ordinal >= seg->record_cnt ||
		!is_anchor(cur, base, target - ordinal))
		rc = differs(cur, "is another one");
	stoup_grip_release(cur->ses, &cur->hand, &cur->grip);
	return rc;
}

int stoup_cursor_locate(struct stoup_cursor *cur)
{
	uint64_t target = cur->anchor.ordinal;
	int rc = 0;

	if (cur->anchor.exact)
		rc = cur->anchor.from_end ? target_of_last_key(cur, &target)
		                          : target_of_key(cur, &target);
	if (rc == 0)
		rc = compare(cur, target);
	if (rc < 0)
		return rc;
	cur->tail_next += target - cur->anchor.ordinal;
	stoup_cursor_shift(cur, target - cur->anchor.ordinal);
	cur->anchor.ordinal = target;
	if (cur->step > 0) {
		cur->begin_ordinal = target + cur->next_off;
		cur->at = place_of(cur, cur->begin_ordinal);
	} else {
		cur->end_ordinal = target > cur->next_off ? target - cur->next_off : 0;
		cur->at = cur->end_ordinal > 0 ? place_of(cur, cur->end_ordinal - 1)
		                               : (struct stoup_place){.part = cur->part_cnt};
	}
	cur->asked = (struct stoup_place){0};
	cur->pending &= ~STOUP_PENDING_ANCHOR;
	return 0;
}
