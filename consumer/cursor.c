/* SPDX-License-Identifier: Apache-2.0 */
/* cursor.c - scans: segment by segment over the parts of a series, trimmed to a range of keys.
 *
 *      part 0 (volume a)          part 1 (volume b)
 *      [seg][seg][seg][seg]       [seg][seg][seg]
 *            ^pos          ^asked: up to here blocks were resident or asked for
 *            |<- window ->|
 *
 *      next: release the grip -> hit, else request and wait -> cut to [from, to) -> pos + 1
 *
 * Backward, places run from the last segment of the last part to the first of the first; pos counts up
 * all the same, so that the window, the cut and the steps of a call are one code for both directions.
 *
 * Invariant: pos is the segment that the next call tries; it moves only when that segment's span
 * was handed out, found empty, or skipped. So a failed call may be repeated, and nothing comes
 * twice.
 *
 * Read-ahead: the window grows from 2 segments to options.ahead_cnt, so that a look at one block
 * loads little, and never beyond what the pool keeps unread for all: more would be turned away. A request goes out when less than half of the window lies ahead; when everything is
 * resident, only residency words are read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "consumer/cursor.h"
#include "consumer/asof.h"
#include "consumer/direct.h"
#include "consumer/merge.h"
#include "consumer/stoup_filter.h"
#include "shm/message.h"

#define WINDOW_FIRST 2u

/* ---- places ---------------------------------------------------------------------------------- */

static const struct stoup_catalog_segment *part_segments(const struct stoup_part *part)
{
	return part->vol->segments + part->series->segment_first;
}

uint32_t stoup_part_begin(const struct stoup_part *part, int64_t from_ns)
{
	const struct stoup_catalog_segment *segments = part_segments(part);
	uint32_t low = 0, high = part->series->segment_cnt;

	while (from_ns != 0 && low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (segments[mid].last_key < from_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return from_ns != 0 ? low : 0;
}

uint32_t stoup_part_end(const struct stoup_part *part, int64_t to_ns)
{
	const struct stoup_catalog_segment *segments = part_segments(part);
	uint32_t low = 0, high = part->series->segment_cnt;

	while (to_ns != 0 && low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (segments[mid].first_key < to_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return to_ns != 0 ? low : high;
}

uint32_t stoup_part_holds(const struct stoup_part *part, uint64_t ordinal)
{
	const struct stoup_catalog_segment *segments = part_segments(part);
	uint32_t low = 0, high = part->series->segment_cnt;

	if (ordinal < part->ordinal)
		return 0;
	ordinal -= part->ordinal;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (segments[mid].ordinal + segments[mid].record_cnt <= ordinal)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The first segment with records from `ordinal` on. */
static uint32_t part_from(const struct stoup_part *part, uint64_t ordinal)
{
	return ordinal == 0 ? 0 : stoup_part_holds(part, ordinal);
}

/* The one behind the last that has records before `ordinal`. */
static uint32_t part_until(const struct stoup_part *part, uint64_t ordinal)
{
	uint32_t last;

	if (ordinal == UINT64_MAX)
		return part->series->segment_cnt;
	if (ordinal <= part->ordinal)
		return 0;
	last = stoup_part_holds(part, ordinal - 1);
	return last < part->series->segment_cnt ? last + 1 : last;
}

void stoup_part_range(const struct stoup_cursor *cur, const struct stoup_part *part,
	uint32_t *begin, uint32_t *end)
{
	/* Ordinals of another snapshot say nothing yet. */
	int known = !(cur->pending & STOUP_PENDING_ANCHOR);
	uint32_t by_key = stoup_part_begin(part, cur->range.from_ns);
	uint32_t by_ordinal = known ? part_from(part, cur->low) : 0;

	*begin = by_key > by_ordinal ? by_key : by_ordinal;
	by_key = stoup_part_end(part, cur->range.to_ns);
	by_ordinal = known ? part_until(part, cur->high) : by_key;
	*end = by_key < by_ordinal ? by_key : by_ordinal;
	/* A range between two records. */
	if (*end < *begin)
		*end = *begin;
}

/* Where a scan enters a part; no segment of it when the part has nothing of the range. */
static uint32_t part_enter(const struct stoup_cursor *cur, const struct stoup_part *part)
{
	uint32_t by_key, by_ordinal;

	if (cur->step > 0) {
		by_key = stoup_part_begin(part, cur->from_ns);
		by_ordinal = part_from(part, cur->begin_ordinal);
		return by_key > by_ordinal ? by_key : by_ordinal;
	}
	by_key = stoup_part_end(part, cur->to_ns);
	by_ordinal = part_until(part, cur->end_ordinal);
	return (by_key < by_ordinal ? by_key : by_ordinal) - 1;
}

/* The window begins anew: blocks of one series are of about one length. */
static void window_begin(struct stoup_cursor *cur)
{
	const struct stoup_catalog_segment *seg = stoup_place_segment(cur, &cur->at);
	uint64_t fit = 0, len;

	if (seg && !cur->no_ahead) {
		len = cur->parts[cur->at.part].vol->blocks[seg->block_idx].raw_len;
		len = (len + STOUP_OS_PAGE_LEN - 1) & ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
		fit = len > 0 ? cur->ses->control->ahead_bytes_cap / len : 0;
	}
	cur->window_cap = fit < cur->st->opt.ahead_cnt ? (uint32_t)fit : cur->st->opt.ahead_cnt;
	cur->window = cur->window_cap < WINDOW_FIRST ? cur->window_cap : WINDOW_FIRST;
}

void stoup_cursor_rewind(struct stoup_cursor *cur)
{
	cur->left_out += cur->at.left_out;
	cur->at = cur->asked = (struct stoup_place){0};
	cur->begin_ordinal = cur->low;
	cur->end_ordinal = cur->high;
	stoup_cursor_edge(cur);
	if (cur->step < 0)
		cur->at.part = cur->part_cnt - 1;
	if (cur->part_cnt > 0)
		cur->at.seg = part_enter(cur, &cur->parts[cur->at.part]);
	window_begin(cur);
}

/* Does the range end before the segment, in the direction of the scan? */
static int beyond(const struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg)
{
	uint64_t ordinal = part->ordinal + seg->ordinal;

	if (cur->step > 0)
		return ordinal >= cur->end_ordinal ||
		       (cur->to_ns != 0 && seg->first_key >= cur->to_ns);
	return ordinal + seg->record_cnt <= cur->begin_ordinal ||
	       (cur->from_ns != 0 && seg->last_key < cur->from_ns);
}

const struct stoup_catalog_segment *stoup_place_segment(
	const struct stoup_cursor *cur, struct stoup_place *place)
{
	while (place->part < cur->part_cnt) {
		const struct stoup_part *part = &cur->parts[place->part];
		const struct stoup_catalog_segment *seg;

		if (place->seg >= part->series->segment_cnt) {
			/* In front of part 0 lies no part, as behind the last. */
			place->part += (uint32_t)cur->step;
			if (place->part < cur->part_cnt)
				place->seg = part_enter(cur, &cur->parts[place->part]);
			continue;
		}
		seg = part_segments(part) + place->seg;
		if (seg->record_cnt > 0) {
			if (cur->bounded && beyond(cur, part, seg))
				return NULL;
			if (!cur->where || !stoup_where_excludes(cur, part, seg))
				return seg;
			place->left_out++;
		}
		place->seg += (uint32_t)cur->step;
	}
	return NULL;
}

static void place_advance(const struct stoup_cursor *cur, struct stoup_place *place)
{
	place->seg += (uint32_t)cur->step;
	place->pos++;
}

/* ---- read-ahead ------------------------------------------------------------------------------ */

/* The ordinal at which a scan enters the segment at a place. */
static uint64_t border_of(const struct stoup_cursor *cur, struct stoup_place place)
{
	const struct stoup_part *part = &cur->parts[place.part];
	const struct stoup_catalog_segment *seg = part_segments(part) + place.seg;

	return part->ordinal + seg->ordinal + (cur->step > 0 ? 0 : seg->record_cnt);
}

/* Does the limit reach as far? The segment in work counts whole: where the range cuts it, a little less is read
 * ahead than could be. */
static int within(const struct stoup_cursor *cur)
{
	uint64_t from = border_of(cur, cur->at), border = border_of(cur, cur->asked);

	return (cur->step > 0 ? border - from : from - border) < cur->limit;
}

/* The next run of consecutive blocks within the window that are neither resident nor asked for. */
static void ahead_collect(struct stoup_cursor *cur, struct stoup_ahead *run)
{
	const struct stoup_catalog_segment *seg;
	uint64_t end = cur->at.pos + 1 + cur->window;

	run->cnt = 0;
	run->step = cur->step;
	if (cur->asked.pos <= cur->at.pos) {
		cur->asked = cur->at;
		place_advance(cur, &cur->asked);
	}
	while (cur->asked.pos < end && (seg = stoup_place_segment(cur, &cur->asked)) != NULL &&
		(cur->limit == UINT64_MAX || within(cur))) {
		const struct stoup_snapshot_volume *vol = cur->parts[cur->asked.part].vol;
		int absent = atomic_load_explicit(
				     &vol->residency[seg->block_idx], memory_order_relaxed) == 0;
		int64_t off = ((int64_t)seg->block_idx - run->block_idx) * cur->step;
		int follows = run->cnt > 0 && run->volume_idx == vol->catalog->volume_idx &&
		              off == run->cnt;

		if (absent && run->cnt > 0 && !follows)
			return;
		if (absent) {
			if (run->cnt == 0) {
				run->volume_idx = vol->catalog->volume_idx;
				run->block_idx = seg->block_idx;
			}
			if (++run->cnt == STOUP_AHEAD_CAP)
				end = 0;
		} else if (run->cnt > 0) {
			return;
		}
		place_advance(cur, &cur->asked);
	}
}

static int ahead_due(const struct stoup_cursor *cur)
{
	uint64_t next = cur->at.pos + 1;
	uint64_t lead = cur->asked.pos > next ? cur->asked.pos - next : 0;

	return cur->window > 0 && lead * 2 < cur->window;
}

/* After a hit. */
static void ahead_post(struct stoup_cursor *cur)
{
	struct stoup_place before = cur->asked;
	struct stoup_ahead run;

	ahead_collect(cur, &run);
	if (run.cnt > 0 && !stoup_wait_ahead(cur->ses, &run))
		cur->asked = before;
}

/* ---- one segment ----------------------------------------------------------------------------- */

size_t stoup_record_copy_len(const struct stoup_schema *schema)
{
	return schema->stride ? schema->stride
	                      : sizeof(struct stoup_message_head) + sizeof(uint64_t);
}

void stoup_record_copy(
	const uint8_t *base, uint64_t idx, const struct stoup_schema *schema, uint8_t *dst)
{
	const struct stoup_message_head *head;
	uint64_t hash;

	if (schema->stride) {
		memcpy(dst, base + idx * schema->stride, schema->stride);
		return;
	}
	head = stoup_message_head_of(base + idx * STOUP_MESSAGE_STRIDE);
	hash = stoup_message_hash(head);
	memcpy(dst, head, sizeof(*head));
	memcpy(dst + sizeof(*head), &hash, sizeof(hash));
}

uint64_t stoup_record_bound(
	const uint8_t *base, uint64_t cnt, const struct stoup_schema *schema, int64_t key_ns)
{
	uint64_t low = 0, high = cnt;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (stoup_record_key(base, mid, schema) < key_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint64_t stoup_record_above(
	const uint8_t *base, uint64_t cnt, const struct stoup_schema *schema, int64_t key_ns)
{
	return key_ns == INT64_MAX ? cnt : stoup_record_bound(base, cnt, schema, key_ns + 1);
}

/* The same where records kept their order: a record's key is the greatest so far, beginning with
 * the segment's first. Values beyond the segment's last key are undefined times, not keys. */
static uint64_t lower_bound_kept(const uint8_t *base, const struct stoup_catalog_segment *seg,
	const struct stoup_schema *schema, int64_t key_ns)
{
	int64_t highest = seg->first_key, key;
	uint64_t i;

	for (i = 0; i < seg->record_cnt && highest < key_ns; i++) {
		key = stoup_record_key(base, i, schema);
		if (key > highest && key <= seg->last_key)
			highest = key;
		if (highest >= key_ns)
			break;
	}
	return i;
}

uint64_t stoup_segment_bound(const struct stoup_part *part, const uint8_t *base,
	const struct stoup_catalog_segment *seg, const struct stoup_schema *schema, int64_t key_ns)
{
	if (part->series->flags & STOUP_CATALOG_KEEP_ORDER)
		return lower_bound_kept(base, seg, schema, key_ns);
	return stoup_record_bound(base, seg->record_cnt, schema, key_ns);
}

void stoup_segment_cut(const struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg, const uint8_t *base, uint64_t *low, uint64_t *high)
{
	*low = 0;
	*high = seg->record_cnt;
	if (cur->from_ns != 0 && seg->first_key < cur->from_ns)
		*low = stoup_segment_bound(part, base, seg, cur->schema, cur->from_ns);
	if (cur->to_ns != 0 && seg->last_key >= cur->to_ns)
		*high = stoup_segment_bound(part, base, seg, cur->schema, cur->to_ns);
}

int stoup_segment_base(
	struct stoup_cursor *cur, const struct stoup_catalog_segment *seg, const uint8_t **ret)
{
	const uint8_t *base = cur->grip.base + seg->raw_off;

	if (seg->raw_off > cur->grip.raw_len ||
		(uint64_t)seg->record_cnt * cur->stride > cur->grip.raw_len - seg->raw_off ||
		((uintptr_t)base & (stoup_cursor_align(cur) - 1)) != 0)
		return stoup_error_set(&cur->error, -EPROTO,
			"pool '%s': a segment at byte %u of block %u does not lie within it, or "
			"not aligned",
			cur->ses->pool, seg->raw_off, seg->block_idx);
	*ret = base;
	return 0;
}

/* Cut the leased segment to the range: 1 with *ret, 0 nothing of it is in the range. */
static int segment_cut(
	struct stoup_cursor *cur, const struct stoup_catalog_segment *seg, struct stoup_span *ret)
{
	const struct stoup_schema *schema = cur->schema;
	const struct stoup_part *part = &cur->parts[cur->at.part];
	uint64_t low, high, ordinal = part->ordinal + seg->ordinal;
	const uint8_t *base = NULL;
	int rc = stoup_segment_base(cur, seg, &base);

	if (rc < 0)
		return rc;
	stoup_segment_cut(cur, part, seg, base, &low, &high);
	stoup_cursor_clip(cur, ordinal, &low, &high);
	if (low >= high)
		return 0;
	stoup_cursor_count(cur, ordinal, &low, &high);
	*ret = (struct stoup_span){
		.base = base + low * cur->stride,
		.record_cnt = high - low,
		.stride = cur->stride,
		.ordinal = ordinal + low,
		.first_key = seg->first_key,
		.last_key = seg->last_key,
		.schema = schema,
		.client = cur->st,
		.cell_use = cur->grip.use,
		.cell_idx = cur->grip.cell_idx,
		.session_no = cur->ses->no,
	};
	cur->span_base = ret->base;
	cur->span_cnt = ret->record_cnt;
	cur->span_ordinal = ret->ordinal;
	cur->span_low = low;
	return 1;
}

int stoup_segment_lease(struct stoup_cursor *cur, const struct stoup_catalog_segment *seg)
{
	const struct stoup_snapshot_volume *vol = cur->parts[cur->at.part].vol;
	struct stoup_ahead run = {.step = cur->step};
	int rc;

	rc = stoup_grip_hit(cur->ses, &cur->hand, vol, seg->block_idx, &cur->grip, &cur->error);
	if (rc != 0) {
		cur->hit_cnt += rc > 0;
		if (rc > 0)
			stoup_grip_tell(cur->ses, &cur->grip, seg->series_idx);
		if (rc > 0 && ahead_due(cur))
			ahead_post(cur);
		return rc;
	}
	if (cur->hasty)
		return -EAGAIN;
	if (ahead_due(cur))
		ahead_collect(cur, &run);
	rc = stoup_grip_wait(
		cur->ses, &cur->hand, vol, seg->block_idx, &run, &cur->grip, &cur->error);
	if (rc == 0)
		stoup_grip_tell(cur->ses, &cur->grip, seg->series_idx);
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* Bring the counters into the page. */
void stoup_cursor_flush(struct stoup_cursor *cur)
{
	struct stoup_page *page = cur->ses->page;

	if (cur->hit_cnt > 0)
		atomic_fetch_add_explicit(&page->hit_cnt, cur->hit_cnt, memory_order_relaxed);
	if (cur->record_cnt > 0)
		atomic_fetch_add_explicit(&page->record_cnt, cur->record_cnt, memory_order_relaxed);
	cur->hit_cnt = cur->record_cnt = 0;
}

/* Is the daemon still there? Its words are loaded at each call, where the kernel marks its end; whether it
 * still serves this process is looked for at most a hundred times a second, which a look at the clock decides.
 * Fast callers look every STOUP_LOOK_CALLS calls, slow ones at each: so the news is never older than a few
 * milliseconds or one call. */
int stoup_cursor_pulse(struct stoup_cursor *cur)
{
	struct stoup_session *ses = cur->ses;
	struct timespec ts;
	uint64_t now, last;

	if (cur->look_in-- > 1)
		return stoup_session_check(ses, STOUP_LOOK_STATE);
	stoup_cursor_flush(cur);
	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	if (now - cur->look_ns >= STOUP_PULSE_NS)
		cur->look_every = 1;
	else if (now == cur->look_ns && cur->look_every < STOUP_LOOK_CALLS)
		cur->look_every *= 2;
	cur->look_in = cur->look_every;
	cur->look_ns = now;
	last = atomic_load_explicit(&ses->pulse_ns, memory_order_relaxed);
	if (now < last + STOUP_PULSE_NS)
		return stoup_session_check(ses, STOUP_LOOK_STATE);
	atomic_store_explicit(&ses->pulse_ns, now, memory_order_relaxed);
	return stoup_session_check(ses, STOUP_LOOK_PULSE);
}

/* Past the segment at `at`; the window doubles. */
static void advance(struct stoup_cursor *cur)
{
	place_advance(cur, &cur->at);
	if (cur->window < cur->window_cap)
		cur->window = cur->window * 2 < cur->window_cap ? cur->window * 2 : cur->window_cap;
}

/* Find and lease the next span: 1, 0, or a negative errno with text. `ret` NULL: only do what is pending. */
static int find(struct stoup_cursor *cur, struct stoup_span *ret)
{
	const struct stoup_catalog_segment *seg;
	int rc = stoup_cursor_pulse(cur);

	if (rc == 0 && cur->pending)
		rc = stoup_cursor_settle(cur);
	/* Also where nothing is pending any more: files that could not be had, and nothing to find again. */
	if (!ret)
		return rc;
	while (rc == 0 && (seg = stoup_place_segment(cur, &cur->at)) != NULL) {
		rc = stoup_segment_lease(cur, seg);
		if (rc < 0)
			break;
		rc = segment_cut(cur, seg, ret);
		if (rc <= 0)
			stoup_grip_release(cur->ses, &cur->hand, &cur->grip);
		if (rc >= 0)
			advance(cur);
	}
	return rc;
}

/* One try in the session that the cursor has. */
static int step(struct stoup_cursor *cur, struct stoup_span *ret)
{
	int rc;

	if (!cur->active && stoup_session_enter(cur->ses) < 0)
		return -EPIPE;
	cur->active = 1;
	rc = find(cur, ret);
	if (rc > 0) {
		cur->record_cnt += ret->record_cnt;
		return 1;
	}
	stoup_cursor_flush(cur);
	if (rc == 0 || rc == -EDQUOT || rc == -EPIPE)
		stoup_hand_fini(cur->ses, &cur->hand);
	cur->active = 0;
	stoup_session_leave(cur->ses);
	return rc;
}

void stoup_cursor_let_go(struct stoup_cursor *cur)
{
	if (cur->span_cnt > 0)
		stoup_anchor_take(cur);
	stoup_grip_release(cur->ses, &cur->hand, &cur->grip);
}

int stoup_cursor_ready(struct stoup_cursor *cur)
{
	return cur->pending ? stoup_next(cur, NULL) : 0;
}

/* Map the files of a newer snapshot: 0; 1, some are compressed, and the pool has them; a negative errno. */
static int reopen(struct stoup_cursor *cur)
{
	int rc = stoup_cursor_files(cur, &cur->error);

	if (rc == 0)
		return !cur->direct;
	/* The next call tries again. */
	cur->direct = 1;
	return rc;
}

int stoup_next(struct stoup_cursor *cur, struct stoup_span *ret)
{
	uint64_t deadline_ns = 0;
	int rc;

	if (!cur)
		return -EINVAL;
	if (!stoup_client_own(cur->st)) {
		cur->error.text[0] = 0;
		return stoup_client_refused(cur->st, &cur->error);
	}
	if (cur->failed)
		return cur->error.code;
	cur->error.code = 0;
	cur->error.text[0] = 0;
	cur->lookup_failed = 0;
	if (cur->owed) {
		cur->owed = 0;
		*ret = cur->owed_span;
		return 1;
	}
	if (cur->merge)
		return stoup_merge_next(cur, ret);
	if (cur->direct) {
		if ((cur->pending & STOUP_PENDING_FILES) && (rc = reopen(cur)) != 0)
			return rc < 0 ? rc : stoup_next(cur, ret);
		rc = stoup_direct_next(cur, ret);
	} else {
		stoup_cursor_let_go(cur);
		while ((rc = step(cur, ret)) == -EPIPE && !cur->hasty) {
			/* One deadline for the call, also when the next daemon ends as well. */
			if (deadline_ns == 0)
				deadline_ns = stoup_client_now() + cur->st->opt.reconnect_ns;
			rc = stoup_cursor_renew(cur, deadline_ns);
			if (rc < 0)
				break;
		}
	}
	if (rc == 0 && (cur->range.flags & STOUP_FOLLOW)) {
		rc = stoup_follow(cur);
		/* Once for each newer snapshot. */
		if (rc > 0)
			return stoup_next(cur, ret);
	}
	if (rc >= 0)
		cur->error.code = 0;
	return rc;
}

int64_t stoup_cursor_skip(struct stoup_cursor *cur)
{
	const struct stoup_catalog_segment *seg;
	uint64_t begin, end;
	int64_t cnt;

	if (!cur)
		return -EINVAL;
	if (!stoup_client_own(cur->st))
		return -ECHILD;
	if (cur->error.code == 0 || cur->failed || cur->pending || cur->lookup_failed)
		return -EINVAL;
	if (cur->owed) {
		cur->owed = 0;
		cur->error.code = 0;
		return (int64_t)cur->owed_span.record_cnt;
	}
	if (cur->merge)
		return stoup_merge_skip(cur);
	seg = stoup_place_segment(cur, &cur->at);
	if (!seg)
		return 0;
	cnt = seg->record_cnt;
	begin = cur->parts[cur->at.part].ordinal + seg->ordinal;
	end = begin + seg->record_cnt;
	/* Where the range cuts, the index knows only that the record at that end lies outside. What was
	 * handed out before a restart is known. */
	if (begin < cur->begin_ordinal)
		cnt -= (int64_t)(cur->begin_ordinal - begin);
	else if (cur->from_ns != 0 && seg->first_key < cur->from_ns)
		cnt--;
	if (end > cur->end_ordinal)
		cnt -= (int64_t)(end - cur->end_ordinal);
	else if (cur->to_ns != 0 && seg->last_key >= cur->to_ns)
		cnt--;
	stoup_anchor_skip(cur, seg);
	advance(cur);
	cur->error.code = 0;
	return cnt;
}

const struct stoup_error *stoup_cursor_error(const struct stoup_cursor *cur)
{
	static const struct stoup_error nobody = {
		-EINVAL, "no cursor was given: NULL, or an object that was moved from"};

	return cur ? &cur->error : &nobody;
}

void stoup_cursor_close(struct stoup_cursor *cur)
{
	struct stoup *st;
	int last = 0;

	if (!cur)
		return;
	if (cur->merge) {
		stoup_merge_close(cur);
		return;
	}
	st = cur->st;
	stoup_lookup_fini(cur);
	if (stoup_client_own(st)) {
		stoup_grip_release(cur->ses, &cur->hand, &cur->grip);
		stoup_hand_fini(cur->ses, &cur->hand);
		if (cur->active) {
			stoup_cursor_flush(cur);
			stoup_session_leave(cur->ses);
		}
		stoup_snapshot_release(cur->snap);
		stoup_session_release(cur->ses);
		pthread_mutex_lock(&st->mutex);
		st->cursor_cnt--;
		last = stoup_client_idle(st) && st->leaving;
		pthread_mutex_unlock(&st->mutex);
	}
	stoup_filter_destroy(cur->where);
	free(cur->anchor.bytes);
	free(cur->parts);
	free(cur);
	if (last)
		stoup_client_destroy(st);
}
