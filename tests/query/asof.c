/* SPDX-License-Identifier: Apache-2.0 */
/* asof.c - the last record known at a time, of one series and of many, against a linear search.
 *
 * Times go up, down, here and there, or stay; scans of the same cursors go on in between, and answers are kept.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "query/query.h"

#define CURSOR_CAP 12
#define HOLD_CAP   6

/* How the times of a query follow each other. */
enum walk {
	WALK_UP,
	WALK_DOWN,
	WALK_ANY,
	WALK_CNT
};

struct look {
	const struct query_series *s;
	struct stoup_range range;
	struct stoup_cursor *cur;
	struct query_found found, scan; /* what is in range; what a scan has still to yield */
};

struct held {
	const struct query_series *s;
	struct stoup_span span;
	struct stoup_lease lease;
};

struct asof {
	struct look looks[CURSOR_CAP];
	uint32_t look_cnt;
	struct held held[HOLD_CAP];
	uint32_t held_cnt;
	enum walk walk;
	int64_t at;
};

/* A limit counts what a scan yields: lookups are not made in such a range. */
static void limit_refused(struct query_run *run, const struct look *look)
{
	struct stoup_cursor *cur;
	struct stoup_span span;

	if (stoup_scan(run->st, &look->s->series, &look->range, &cur, NULL) < 0)
		query_fail(run, "stoup_scan with a limit");
	if (stoup_asof(cur, INT64_MAX, &span) != -EINVAL || !stoup_cursor_error(cur)->text[0])
		query_fail(run, "a lookup in a range with a limit is not refused");
	stoup_cursor_close(cur);
}

static void look_open(struct query_run *run, struct asof *asof)
{
	struct look *look = &asof->looks[asof->look_cnt++];
	struct stoup_error err = {0};

	query_say(run, " | ");
	look->s = query_series_pick(run);
	query_range_pick(run, look->s, &look->range);
	if (look->range.limit)
		limit_refused(run, look);
	look->range.limit = 0;
	look->range.flags &= ~STOUP_LAST;
	look->found = query_bounds(run, look->s, &look->range);
	look->scan = look->found;
	if (stoup_scan(run->st, &look->s->series, &look->range, &look->cur, &err) < 0)
		query_fail(run, "stoup_scan: %s", err.text);
}

static int64_t time_next(struct query_run *run, struct asof *asof)
{
	const struct query_series *s = asof->looks[query_below(run, asof->look_cnt)].s;
	int64_t key = query_key_pick(run, s);

	if (query_one_in(run, 4)) /* one after the other, as in sequential use */
		for (uint64_t i = 0; i < s->cnt; i++)
			if (s->order[i] > asof->at) {
				key = s->order[i];
				break;
			}
	if (query_one_in(run, 8))
		key = asof->at;
	if ((asof->walk == WALK_UP && key < asof->at) ||
		(asof->walk == WALK_DOWN && key > asof->at))
		key = asof->at;
	asof->at = key;
	return key;
}

/* The last record at or before a time: 1 with its ordinal, or 0. */
static int expected(const struct look *look, int64_t time_ns, int before, uint64_t *ret)
{
	int found = 0;

	for (uint64_t i = look->found.low; i < look->found.high; i++) {
		query_wide known = query_known_at(look->s, i, 1);

		if (before ? known < time_ns : known <= time_ns) {
			*ret = i;
			found = 1;
		}
	}
	return found;
}

static void answer_check(struct query_run *run, struct asof *asof, const struct look *look,
	int64_t time_ns, int before, int found, const struct stoup_span *span)
{
	uint64_t want = 0;
	int is = expected(look, time_ns, before, &want);

	if (found && !is)
		query_fail(run, "%s %s %" PRId64 ": record %" PRIu64 ", expected none",
			look->s->series.name, before ? "before" : "at", time_ns, span->ordinal);
	if (!found && is)
		query_fail(run, "%s %s %" PRId64 ": none, expected record %" PRIu64,
			look->s->series.name, before ? "before" : "at", time_ns, want);
	if (!found)
		return;
	if (span->record_cnt != 1 || span->ordinal != want)
		query_fail(run,
			"%s %s %" PRId64 ": %" PRIu64 " records from %" PRIu64
			", expected record %" PRIu64,
			look->s->series.name, before ? "before" : "at", time_ns, span->record_cnt,
			span->ordinal, want);
	query_span_check(run, look->s, span);
	if (asof->held_cnt < HOLD_CAP && query_one_in(run, 16)) {
		struct held *held = &asof->held[asof->held_cnt];

		held->s = look->s;
		held->span = *span;
		if (stoup_hold(span, &held->lease) == 0)
			asof->held_cnt++;
		else if (!run->small)
			query_fail(run, "an answer could not be held");
	}
}

static void held_drop(struct query_run *run, struct asof *asof)
{
	while (asof->held_cnt > 0) {
		struct held *held = &asof->held[--asof->held_cnt];

		query_span_check(run, held->s, &held->span);
		if (stoup_release(&held->lease) != 0)
			query_fail(run, "an answer that was held could not be released");
	}
}

/* A small pool has a small share, which several blocks exceed. */
static int refused(const struct query_run *run, int64_t rc)
{
	return rc == -EDQUOT && run->small;
}

static void one(struct query_run *run, struct asof *asof, int64_t time_ns)
{
	struct look *look = &asof->looks[query_below(run, asof->look_cnt)];
	int before = query_one_in(run, 2), rc;
	struct stoup_span span;

	query_say(run, "; %s %" PRId64, before ? "before" : "at", time_ns);
	rc = before ? stoup_asof_before(look->cur, time_ns, &span)
	            : stoup_asof(look->cur, time_ns, &span);
	if (refused(run, rc)) {
		held_drop(run, asof);
		return;
	}
	if (rc < 0)
		query_fail(run, "stoup_asof: %d %s", rc, stoup_cursor_error(look->cur)->text);
	answer_check(run, asof, look, time_ns, before, rc, &span);
}

static void together(struct query_run *run, struct asof *asof, int64_t time_ns)
{
	struct stoup_cursor *curs[CURSOR_CAP];
	struct stoup_span spans[CURSOR_CAP];
	int64_t cnt, found = 0;

	for (uint32_t i = 0; i < asof->look_cnt; i++)
		curs[i] = asof->looks[i].cur;
	memset(spans, 0x55, sizeof(spans));
	query_say(run, "; all at %" PRId64, time_ns);
	cnt = stoup_asof_all(curs, asof->look_cnt, time_ns, spans);
	if (refused(run, cnt)) {
		held_drop(run, asof);
		for (uint32_t i = 0; i < asof->look_cnt; i++)
			if (spans[i].record_cnt > 0)
				answer_check(run, asof, &asof->looks[i], time_ns, 0, 1, &spans[i]);
		return;
	}
	if (cnt < 0)
		query_fail(run, "stoup_asof_all: %" PRId64, cnt);
	for (uint32_t i = 0; i < asof->look_cnt; i++) {
		answer_check(
			run, asof, &asof->looks[i], time_ns, 0, spans[i].record_cnt > 0, &spans[i]);
		found += spans[i].record_cnt > 0;
	}
	if (cnt != found)
		query_fail(run, "stoup_asof_all says %" PRId64 " of %" PRId64, cnt, found);
}

/* The scan of a cursor goes on, and does not see the lookups. */
static void scan_on(struct query_run *run, struct asof *asof)
{
	struct look *look = &asof->looks[query_below(run, asof->look_cnt)];
	int backward = (look->range.flags & STOUP_BACKWARD) != 0;
	struct stoup_span span;
	int rc = stoup_next(look->cur, &span);
	uint64_t at;

	query_say(run, "; next");
	if (refused(run, rc)) {
		held_drop(run, asof);
		return;
	}
	if (rc < 0)
		query_fail(run, "stoup_next: %d %s", rc, stoup_cursor_error(look->cur)->text);
	if (rc == 0 && look->scan.low < look->scan.high)
		query_fail(run,
			"%s: the end of the scan, but [%" PRIu64 ", %" PRIu64 ") is to come",
			look->s->series.name, look->scan.low, look->scan.high);
	if (rc == 0)
		return;
	at = backward ? look->scan.high - span.record_cnt : look->scan.low;
	if (span.record_cnt > look->scan.high - look->scan.low || span.ordinal != at)
		query_fail(run,
			"%s: the scan yields [%" PRIu64 ", +%" PRIu64 ") of [%" PRIu64 ", %" PRIu64
			")",
			look->s->series.name, span.ordinal, span.record_cnt, look->scan.low,
			look->scan.high);
	query_span_check(run, look->s, &span);
	if (backward)
		look->scan.high -= span.record_cnt;
	else
		look->scan.low += span.record_cnt;
}

void query_asof(struct query_run *run)
{
	struct asof asof = {.walk = (enum walk)query_below(run, WALK_CNT)};
	uint64_t cursors =
		query_one_in(run, 3) ? 1 + query_below(run, run->small ? 3 : CURSOR_CAP) : 1;
	uint64_t steps = 1 + query_below(run, query_one_in(run, 8) ? 200 : 12);
	int scans = query_one_in(run, 4);

	while (asof.look_cnt < cursors)
		look_open(run, &asof);
	asof.at = asof.walk == WALK_UP ? 0 : asof.walk == WALK_DOWN ? INT64_MAX : 1;
	for (; steps > 0; steps--) {
		int64_t time_ns = time_next(run, &asof);

		if (asof.look_cnt > 1 && query_one_in(run, 2))
			together(run, &asof, time_ns);
		else
			one(run, &asof, time_ns);
		if (scans && query_one_in(run, 4))
			scan_on(run, &asof);
		if (asof.held_cnt == HOLD_CAP || query_one_in(run, 32))
			held_drop(run, &asof);
	}
	held_drop(run, &asof);
	for (uint32_t i = 0; i < asof.look_cnt; i++)
		stoup_cursor_close(asof.looks[i].cur);
}
