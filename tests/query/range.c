/* SPDX-License-Identifier: Apache-2.0 */
/* range.c - ranges, limits, seeks and counts against a linear search.
 *
 * What a range has is found by asking each record whether it is in; the order keys never step back, so that those which
 * are in follow each other, which is checked as well.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "query/query.h"

#define HOLD_CAP  8
#define WEAVE_CAP 12

/* ---- ranges ---------------------------------------------------------------------------------- */

static uint32_t flags_pick(struct query_run *run, const struct query_series *s)
{
	uint32_t flags = query_one_in(run, 2) ? STOUP_BACKWARD : 0;

	if (run->direct && s->direct)
		flags |= query_one_in(run, 2) ? STOUP_DIRECT : STOUP_DIRECT_OR_POOL;
	else if (query_one_in(run, 8))
		flags |= STOUP_DIRECT_OR_POOL;
	if (query_one_in(run, 3))
		flags |= STOUP_AVAILABLE;
	if (!(flags & STOUP_BACKWARD) && query_one_in(run, 8))
		flags |= STOUP_FOLLOW;
	return flags;
}

static void ordinals_pick(
	struct query_run *run, const struct query_series *s, struct stoup_range *ret)
{
	uint64_t high = s->cnt + 3;

	ret->flags |= STOUP_ORDINALS;
	ret->from_ns = (int64_t)query_below(run, high);
	ret->to_ns = query_one_in(run, 4) ? 0 : (int64_t)query_below(run, high);
	if (query_one_in(run, 40))
		ret->to_ns = INT64_MAX;
}

static void keys_pick(struct query_run *run, const struct query_series *s, struct stoup_range *ret)
{
	if (!query_one_in(run, 4))
		ret->from_ns = query_key_pick(run, s);
	if (!query_one_in(run, 4))
		ret->to_ns = query_key_pick(run, s);
	if (query_one_in(run, 12))
		ret->to_ns = ret->from_ns;
	if (query_one_in(run, 2))
		ret->flags |= STOUP_FROM_AFTER;
	if (query_one_in(run, 2))
		ret->flags |= STOUP_TO_INCLUDED;
}

void query_range_pick(struct query_run *run, const struct query_series *s, struct stoup_range *ret)
{
	int64_t swap;

	*ret = (struct stoup_range){.flags = flags_pick(run, s)};
	if (query_one_in(run, 5))
		ordinals_pick(run, s, ret);
	else
		keys_pick(run, s, ret);
	if (ret->to_ns < 0)
		ret->to_ns = 0;
	if (ret->to_ns != 0 && ret->to_ns < ret->from_ns) {
		swap = ret->to_ns;
		ret->to_ns = ret->from_ns;
		ret->from_ns = swap;
	}
	if (query_one_in(run, 3))
		ret->limit =
			(uint32_t)(1 + query_below(run, query_one_in(run, 2) ? 4 : s->cnt + 2));
	if (ret->limit && query_one_in(run, 2))
		ret->flags |= STOUP_LAST;
	query_say(run, "%s%s from %" PRId64 " to %" PRId64 " limit %u flags %#x", s->series.name,
		s->keep ? " (kept order)" : "", ret->from_ns, ret->to_ns, ret->limit, ret->flags);
}

query_wide query_known_at(const struct query_series *s, uint64_t i, int available)
{
	return (query_wide)s->order[i] + (available ? s->later_ns : 0);
}

static int is_in(const struct query_series *s, uint64_t i, const struct stoup_range *range)
{
	query_wide key = query_known_at(s, i, (range->flags & STOUP_AVAILABLE) != 0);

	if (range->flags & STOUP_ORDINALS)
		return i >= (uint64_t)range->from_ns &&
		       (range->to_ns == 0 || i < (uint64_t)range->to_ns);
	if (range->from_ns > 0 &&
		(range->flags & STOUP_FROM_AFTER ? key <= range->from_ns : key < range->from_ns))
		return 0;
	if (range->to_ns > 0 &&
		(range->flags & STOUP_TO_INCLUDED ? key > range->to_ns : key >= range->to_ns))
		return 0;
	return 1;
}

struct query_found query_bounds(
	struct query_run *run, const struct query_series *s, const struct stoup_range *range)
{
	struct query_found ret = {0, 0};
	uint64_t cnt = 0;

	for (uint64_t i = 0; i < s->cnt; i++) {
		if (!is_in(s, i, range))
			continue;
		if (cnt++ == 0)
			ret.low = i;
		ret.high = i + 1;
	}
	if (cnt != ret.high - ret.low)
		query_fail(run, "%s: the reference itself is out of order", s->series.name);
	return ret;
}

struct query_found query_limit(const struct stoup_range *range, struct query_found found)
{
	int from_end = !(range->flags & STOUP_LAST) != !(range->flags & STOUP_BACKWARD);
	uint64_t cnt = found.high - found.low;

	if (range->limit == 0 || cnt <= range->limit)
		return found;
	if (from_end)
		found.low = found.high - range->limit;
	else
		found.high = found.low + range->limit;
	return found;
}

/* ---- scans ----------------------------------------------------------------------------------- */

/* A scan at work: [found.low, found.high) is what is still to come. */
struct scan {
	const struct query_series *s;
	struct stoup_range range;
	struct stoup_cursor *cur;
	struct query_found all, found; /* before the limit, and what comes */
	struct stoup_held held[HOLD_CAP];
	uint32_t held_cnt;
};

static void held_drop(struct query_run *run, struct scan *scan, int all)
{
	while (scan->held_cnt > 0 && (all || scan->held_cnt == HOLD_CAP || query_one_in(run, 2))) {
		struct stoup_held *held = &scan->held[--scan->held_cnt];

		query_span_check(run, scan->s, &held->span);
		if (stoup_release(&held->lease) != 0)
			query_fail(run, "a held span could not be released");
	}
}

static void bisect(
	struct query_run *run, const struct query_series *s, const struct stoup_span *span)
{
	int64_t key = query_key_pick(run, s);
	uint64_t bound = 0, above = 0;

	if (s->keep)
		return;
	while (bound < span->record_cnt && s->keys[span->ordinal + bound] < key)
		bound++;
	while (above < span->record_cnt && s->keys[span->ordinal + above] <= key)
		above++;
	if (stoup_span_bound(span, key) != bound)
		query_fail(run,
			"key %" PRId64 " in a span of %" PRIu64 " from %" PRIu64 ": bound %" PRIu64
			", expected %" PRIu64,
			key, span->record_cnt, span->ordinal, stoup_span_bound(span, key), bound);
	if (stoup_span_above(span, key) != above)
		query_fail(run,
			"key %" PRId64 " in a span of %" PRIu64 " from %" PRIu64 ": above %" PRIu64
			", expected %" PRIu64,
			key, span->record_cnt, span->ordinal, stoup_span_above(span, key), above);
	if (s->stride == 0 && stoup_message_bound(span, key) != bound)
		query_fail(run, "stoup_message_bound differs from stoup_span_bound");
}

static void segment_keys(
	struct query_run *run, const struct scan *scan, const struct stoup_span *span)
{
	int64_t first = scan->s->order[span->ordinal];
	int64_t last = scan->s->order[span->ordinal + span->record_cnt - 1];

	if (span->first_key > first || span->last_key < last)
		query_fail(run,
			"a span of keys %" PRId64 " to %" PRId64
			" says that its segment has %" PRId64 " to %" PRId64,
			first, last, span->first_key, span->last_key);
}

/* A span came: is it what comes next? */
static void take(struct query_run *run, struct scan *scan, const struct stoup_span *span)
{
	struct query_found *found = &scan->found;
	uint64_t cnt = span->record_cnt;
	int backward = (scan->range.flags & STOUP_BACKWARD) != 0;

	if (found->low >= found->high)
		query_fail(run,
			"a span of %" PRIu64 " records from %" PRIu64 " where nothing is to come",
			cnt, span->ordinal);
	if (cnt == 0 || cnt > found->high - found->low ||
		span->ordinal != (backward ? found->high - cnt : found->low))
		query_fail(run,
			"a span of records [%" PRIu64 ", %" PRIu64 "), expected from [%" PRIu64
			", %" PRIu64 ")",
			span->ordinal, span->ordinal + cnt, found->low, found->high);
	query_span_check(run, scan->s, span);
	segment_keys(run, scan, span);
	if (backward)
		found->high -= cnt;
	else
		found->low += cnt;
	if (query_one_in(run, 4))
		bisect(run, scan->s, span);
}

static int next_one(struct query_run *run, struct scan *scan)
{
	struct stoup_span span;
	int rc = stoup_next(scan->cur, &span);

	/* A small pool has a small share, of which this scan holds some. */
	if (rc == -EDQUOT && scan->held_cnt > 0) {
		held_drop(run, scan, 1);
		rc = stoup_next(scan->cur, &span);
	}
	if (rc < 0)
		query_fail(run, "stoup_next: %d %s", rc, stoup_cursor_error(scan->cur)->text);
	if (rc > 0) {
		take(run, scan, &span);
		held_drop(run, scan, 0);
		if (query_one_in(run, 8) && scan->held_cnt < HOLD_CAP) {
			scan->held[scan->held_cnt].span = span;
			rc = stoup_hold(&span, &scan->held[scan->held_cnt].lease);
			if (rc == 0)
				scan->held_cnt++;
			else if (rc != -EDQUOT)
				query_fail(run, "stoup_hold: %d", rc);
			rc = 1;
		}
	}
	return rc;
}

static int next_few(struct query_run *run, struct scan *scan)
{
	struct stoup_held held[4], *rets[4] = {&held[0], &held[1], &held[2], &held[3]};
	size_t cap = 1 + query_below(run, 4);
	int64_t cnt = stoup_next_held(scan->cur, rets, cap, 0);

	if (cnt == -EDQUOT && scan->held_cnt > 0) {
		held_drop(run, scan, 1);
		cnt = stoup_next_held(scan->cur, rets, cap, 0);
	}
	if (cnt < 0)
		query_fail(run, "stoup_next_held: %d %s", (int)cnt,
			stoup_cursor_error(scan->cur)->text);
	for (int64_t i = 0; i < cnt; i++)
		take(run, scan, &held[i].span);
	for (int64_t i = 0; i < cnt; i++) {
		query_span_check(run, scan->s, &held[i].span);
		if (stoup_release(&held[i].lease) != 0)
			query_fail(run, "a span of stoup_next_held could not be released");
	}
	return cnt > 0;
}

static void seek(struct query_run *run, struct scan *scan)
{
	const struct query_series *s = scan->s;
	struct query_found found =
		scan->range.flags & STOUP_LAST ? query_limit(&scan->range, scan->all) : scan->all;
	int64_t key = query_key_pick(run, s);
	int available = (scan->range.flags & STOUP_AVAILABLE) != 0, rc;

	query_say(run, "; seek %" PRId64, key);
	rc = stoup_seek(scan->cur, key);
	if (rc < 0)
		query_fail(run, "stoup_seek: %d %s", rc, stoup_cursor_error(scan->cur)->text);
	if (scan->range.flags & STOUP_BACKWARD)
		while (found.high > found.low && query_known_at(s, found.high - 1, available) > key)
			found.high--;
	else
		while (found.low < found.high && query_known_at(s, found.low, available) < key)
			found.low++;
	scan->found = scan->range.flags & STOUP_LAST ? found : query_limit(&scan->range, found);
}

static void refused(struct query_run *run, const struct query_series *s)
{
	static const struct stoup_range wrong[] = {
		{.flags = 0x80000000u},
		{.flags = STOUP_LAST},
		{.flags = STOUP_FOLLOW | STOUP_BACKWARD},
		{.flags = STOUP_ORDINALS | STOUP_FROM_AFTER, .from_ns = 1},
		{.flags = STOUP_ORDINALS | STOUP_TO_INCLUDED, .to_ns = 5},
		{.from_ns = 10, .to_ns = 9},
		{.from_ns = INT64_MAX, .to_ns = 1, .flags = STOUP_TO_INCLUDED},
		{.to_ns = -1},
		{.from_ns = -1, .flags = STOUP_ORDINALS},
		{.from_ns = 3, .to_ns = 2, .flags = STOUP_ORDINALS},
	};
	uint64_t i = query_below(run, sizeof(wrong) / sizeof(wrong[0]));
	struct stoup_cursor *cur = NULL;
	struct stoup_error err = {0};
	struct stoup_count count;
	int rc = stoup_scan(run->st, &s->series, &wrong[i], &cur, &err);

	if (rc != -EINVAL || cur || err.code != -EINVAL || !err.text[0])
		query_fail(run, "range %" PRIu64 " of the wrong ones: %d '%s'", i, rc, err.text);
	if (stoup_count(run->st, &s->series, &wrong[i], 0, &count, NULL) != -EINVAL)
		query_fail(run, "range %" PRIu64 " of the wrong ones was counted", i);
}

static void scan_open(struct query_run *run, struct scan *scan)
{
	struct stoup_error err = {0};

	*scan = (struct scan){.s = query_series_pick(run)};
	query_range_pick(run, scan->s, &scan->range);
	scan->all = query_bounds(run, scan->s, &scan->range);
	scan->found = query_limit(&scan->range, scan->all);
	run->empty_cnt += scan->found.low == scan->found.high;
	if (stoup_scan(run->st, &scan->s->series, &scan->range, &scan->cur, &err) < 0)
		query_fail(run, "stoup_scan: %s", err.text);
}

static void at_end(struct query_run *run, const struct scan *scan)
{
	if (scan->found.low < scan->found.high)
		query_fail(run, "%s: the end, but records [%" PRIu64 ", %" PRIu64 ") are to come",
			scan->s->series.name, scan->found.low, scan->found.high);
}

void query_scan(struct query_run *run)
{
	uint64_t steps = query_one_in(run, 4) ? UINT64_MAX : query_below(run, 24);
	struct scan scan;

	scan_open(run, &scan);
	if (query_one_in(run, 64))
		refused(run, scan.s);
	for (; steps > 0; steps--) {
		if (query_one_in(run, 12))
			seek(run, &scan);
		if (query_one_in(run, 6) ? next_few(run, &scan) : next_one(run, &scan))
			continue;
		at_end(run, &scan);
		if (query_one_in(run, 2))
			break;
	}
	held_drop(run, &scan, 1);
	stoup_cursor_close(scan.cur);
}

/* Many scans at once, each at another place: a daemon that ends under them has all to go on with. */
void query_weave(struct query_run *run)
{
	struct scan scans[WEAVE_CAP];
	uint64_t cnt = 2 + query_below(run, WEAVE_CAP - 1), steps = query_below(run, 40 * cnt);
	struct stoup_span span;
	int rc;

	for (uint64_t i = 0; i < cnt; i++) {
		query_say(run, " | ");
		scan_open(run, &scans[i]);
	}
	for (; steps > 0; steps--) {
		struct scan *scan = &scans[query_below(run, cnt)];

		if (query_one_in(run, 40))
			seek(run, scan);
		rc = stoup_next(scan->cur, &span);
		/* The others hold the share of a small pool; it has given back what it held. */
		if (rc == -EDQUOT && run->small)
			continue;
		if (rc < 0)
			query_fail(run, "%s: stoup_next: %d %s", scan->s->series.name, rc,
				stoup_cursor_error(scan->cur)->text);
		if (rc == 0)
			at_end(run, scan);
		else
			take(run, scan, &span);
	}
	for (uint64_t i = 0; i < cnt; i++)
		stoup_cursor_close(scans[i].cur);
}

/* ---- counts ---------------------------------------------------------------------------------- */

static void count_check(struct query_run *run, const struct query_series *s,
	struct query_found found, int exact, const struct stoup_count *count)
{
	uint64_t cnt = found.high - found.low;

	if (cnt < count->record_min || cnt > count->record_max)
		query_fail(run,
			"count %d says %" PRIu64 " to %" PRIu64 " records, there are %" PRIu64,
			exact, count->record_min, count->record_max, cnt);
	if ((count->record_min == count->record_max) != (count->exact == 1))
		query_fail(run, "count says %" PRIu64 " to %" PRIu64 " and exact %u",
			count->record_min, count->record_max, count->exact);
	if (exact && !count->exact)
		query_fail(run, "an exact count is not exact");
	if (cnt == 0)
		return;
	if (found.low < count->ordinal_min || found.low > count->ordinal_max)
		query_fail(run,
			"count %d says that the first ordinal is %" PRIu64 " to %" PRIu64
			", it is %" PRIu64,
			exact, count->ordinal_min, count->ordinal_max, found.low);
	if (exact && count->ordinal_min != count->ordinal_max)
		query_fail(run, "an exact count does not know the first ordinal");
	if (s->order[found.low] < count->first_key || s->order[found.high - 1] > count->last_key)
		query_fail(run,
			"count %d says keys %" PRId64 " to %" PRId64 ", there are %" PRId64
			" to %" PRId64,
			exact, count->first_key, count->last_key, s->order[found.low],
			s->order[found.high - 1]);
	if (count->volume_cnt == 0 || count->volume_cnt > s->series.volume_cnt ||
		count->raw_len < s->offs[found.high] - s->offs[found.low])
		query_fail(run, "count says %u volumes and %" PRIu64 " bytes", count->volume_cnt,
			count->raw_len);
}

void query_count(struct query_run *run)
{
	struct query_series *s = query_series_pick(run);
	struct stoup_error err = {0};
	struct stoup_count count;
	struct stoup_range range;
	struct query_found found;
	uint64_t segments = 0;
	int exact = query_one_in(run, 3);

	query_range_pick(run, s, &range);
	found = query_limit(&range, query_bounds(run, s, &range));
	if (stoup_count(run->st, &s->series, &range, exact, &count, &err) < 0)
		query_fail(run, "stoup_count: %s", err.text);
	count_check(run, s, found, exact, &count);
	for (uint64_t i = found.low; i < found.high; i++)
		segments += i == found.low || s->begins[i];
	if (segments > count.segment_cnt)
		query_fail(run, "count says at most %" PRIu64 " spans, there are %" PRIu64,
			count.segment_cnt, segments);
	run->empty_cnt += found.low == found.high;
}
