/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - many series in one order of time, against a sort of all their records.
 *
 * The order is written down from the header: by the time at which a record stands (of bars the close, unless
 * STOUP_AT_OPEN; of a kept order the greatest key so far), equal ones in the order of the series as given, then in that
 * of the series itself. Backward it is read from its end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "query/query.h"

#define SOURCE_CAP 64

struct entry {
	query_wide stands;
	uint64_t ordinal;
	uint32_t source;
};

struct merge {
	const struct query_series *sources[SOURCE_CAP];
	struct stoup_series given[SOURCE_CAP];
	uint32_t cnt;
	struct stoup_range range;
	struct entry *all;
	uint64_t all_cnt, low, high;
};

static int by_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->stands != y->stands)
		return x->stands < y->stands ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static void sources_pick(struct query_run *run, struct merge *m)
{
	uint64_t cnt = 2 + query_below(run, query_one_in(run, 3) ? SOURCE_CAP - 1 : 6);
	const struct query_series *first = query_series_pick(run);

	for (uint64_t i = 0; i < cnt; i++) {
		const struct query_series *s = query_series_pick(run);

		if (query_one_in(run, 8)) /* the same one again */
			s = first;
		m->sources[m->cnt] = s;
		m->given[m->cnt++] = s->series;
	}
	query_say(run, "%u series:", m->cnt);
	for (uint32_t i = 0; i < m->cnt && i < 8; i++)
		query_say(run, " %s", m->given[i].name);
	query_say(run, "%s; the range of ", m->cnt > 8 ? " ..." : "");
}

static void range_pick(struct query_run *run, struct merge *m)
{
	const struct query_series *s = m->sources[query_below(run, m->cnt)];

	query_range_pick(run, s, &m->range);
	if (query_one_in(run, 4))
		m->range = (struct stoup_range){.flags = m->range.flags & STOUP_BACKWARD};
	m->range.flags &= STOUP_BACKWARD | STOUP_FROM_AFTER | STOUP_TO_INCLUDED | STOUP_ORDINALS |
	                  STOUP_DIRECT_OR_POOL;
	if (run->direct)
		m->range.flags |= STOUP_DIRECT_OR_POOL;
	if (query_one_in(run, 3))
		m->range.flags |= STOUP_AT_OPEN;
	query_say(run, "; so from %" PRId64 " to %" PRId64 " limit %u flags %#x", m->range.from_ns,
		m->range.to_ns, m->range.limit, m->range.flags);
}

/* Where a record stands. Times end at INT64_MAX: closes beyond it stand there. */
static query_wide stands(const struct query_series *s, uint64_t i, int at_open)
{
	query_wide at = query_known_at(s, i, !at_open);

	return at < INT64_MAX ? at : INT64_MAX;
}

static void all_make(struct query_run *run, struct merge *m)
{
	struct stoup_range range = m->range;
	struct query_found found[SOURCE_CAP], limited;
	int at_open = (m->range.flags & STOUP_AT_OPEN) != 0;

	range.flags &= ~STOUP_AT_OPEN;
	if (!at_open)
		range.flags |= STOUP_AVAILABLE;
	for (uint32_t i = 0; i < m->cnt; i++) {
		found[i] = query_bounds(run, m->sources[i], &range);
		m->all_cnt += found[i].high - found[i].low;
	}
	m->all = calloc(m->all_cnt + 1, sizeof(*m->all));
	if (!m->all)
		abort();
	m->all_cnt = 0;
	for (uint32_t i = 0; i < m->cnt; i++)
		for (uint64_t o = found[i].low; o < found[i].high; o++)
			m->all[m->all_cnt++] =
				(struct entry){stands(m->sources[i], o, at_open), o, i};
	qsort(m->all, m->all_cnt, sizeof(*m->all), by_order);
	limited = query_limit(&m->range, (struct query_found){0, m->all_cnt});
	m->low = limited.low;
	m->high = limited.high;
}

/* A run: the next records of [*low, *high), all of one source. */
static void run_check(struct query_run *run, const struct merge *m, uint64_t *low, uint64_t *high,
	const struct stoup_span *span, uint32_t source)
{
	int backward = (m->range.flags & STOUP_BACKWARD) != 0;
	uint64_t cnt = span->record_cnt, at;

	if (source >= m->cnt)
		query_fail(run, "a run of source %u of %u", source, m->cnt);
	if (cnt == 0 || cnt > *high - *low)
		query_fail(run,
			"a run of %" PRIu64 " records of source %u from %" PRIu64 ", %" PRIu64
			" are to come",
			cnt, source, span->ordinal, *high - *low);
	at = backward ? *high - cnt : *low;
	for (uint64_t i = 0; i < cnt; i++) {
		const struct entry *want = &m->all[at + i];

		if (want->source != source || want->ordinal != span->ordinal + i)
			query_fail(run,
				"record %" PRIu64 " of a run of %" PRIu64 ": record %" PRIu64
				" of source %u, expected record %" PRIu64 " of source %u (%" PRIu64
				" of %" PRIu64 ")",
				i, cnt, span->ordinal + i, source, want->ordinal, want->source,
				at + i, m->all_cnt);
	}
	query_span_check(run, m->sources[source], span);
	if (backward)
		*high -= cnt;
	else
		*low += cnt;
}

/* A pool that is too small says so at once, with numbers. */
static int refused(struct query_run *run, int rc, const struct stoup_error *err)
{
	if (!run->small || (rc != -EDQUOT && rc != -ENOBUFS && rc != -EMFILE))
		query_fail(run, "stoup_merge: %d %s", rc, err->text);
	if (err->code != rc || strcspn(err->text, "0123456789") == strlen(err->text) ||
		!strstr(err->text, "--"))
		query_fail(run, "a merge is refused (%d) without number or option: '%s'", rc,
			err->text);
	run->empty_cnt++;
	return 0;
}

/* Where an entry stands, beyond INT64_MAX as well: what is there is at or before no time. */
static query_wide exact(const struct merge *m, uint64_t i)
{
	const struct entry *entry = &m->all[i];

	return query_known_at(
		m->sources[entry->source], entry->ordinal, (m->range.flags & STOUP_AT_OPEN) == 0);
}

/* The next record is the first that stands at or behind a time (backward: the last at or before it). */
static void seek(struct query_run *run, const struct merge *m, struct stoup_cursor *cur,
	uint64_t *low, uint64_t *high)
{
	int64_t key = query_key_pick(run, m->sources[query_below(run, m->cnt)]);
	struct query_found found = {0, m->all_cnt};
	int rc;

	query_say(run, "; seek %" PRId64, key);
	rc = stoup_seek(cur, key);
	if (rc < 0)
		query_fail(run, "stoup_seek: %d %s", rc, stoup_cursor_error(cur)->text);
	if (m->range.flags & STOUP_BACKWARD)
		while (found.high > found.low && exact(m, found.high - 1) > key)
			found.high--;
	else
		while (found.low < found.high && exact(m, found.low) < key)
			found.low++;
	found = query_limit(&m->range, found);
	*low = found.low;
	*high = found.high;
}

static int pass(struct query_run *run, const struct merge *m, uint64_t steps, int seeks)
{
	struct stoup_error err = {0};
	uint64_t low = m->low, high = m->high;
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc = stoup_merge(run->st, m->given, m->cnt, &m->range, &cur, &err);

	if (rc < 0)
		return refused(run, rc, &err);
	for (rc = 1; steps > 0 && rc > 0; steps--) {
		if (seeks && query_one_in(run, 100))
			seek(run, m, cur, &low, &high);
		rc = stoup_next(cur, &span);
		if (rc < 0)
			query_fail(run,
				"stoup_next: %d %s (%" PRIu64 " of %" PRIu64 " are to come)", rc,
				stoup_cursor_error(cur)->text, high - low, m->all_cnt);
		if (rc > 0)
			run_check(run, m, &low, &high, &span, stoup_cursor_source(cur));
	}
	if (rc == 0 && low < high)
		query_fail(run, "the end, but %" PRIu64 " of %" PRIu64 " records are to come",
			high - low, m->all_cnt);
	if (rc == 0 && (rc = stoup_next(cur, &span)) != 0)
		query_fail(run, "stoup_next after the end: %d", rc);
	stoup_cursor_close(cur);
	return 1;
}

/* What a merge does not take is told. */
static void not_taken(struct query_run *run, const struct merge *m)
{
	const struct stoup_range last = {.limit = 1, .flags = STOUP_LAST};
	const struct stoup_range follow = {.flags = STOUP_FOLLOW};
	struct stoup_cursor *cur = NULL;
	struct stoup_error err = {0};
	int rc = stoup_merge(
		run->st, m->given, m->cnt, query_one_in(run, 2) ? &last : &follow, &cur, &err);

	if (rc != -EINVAL || cur || !err.text[0])
		query_fail(run, "STOUP_LAST or STOUP_FOLLOW in a merge: %d '%s'", rc, err.text);
}

void query_merge(struct query_run *run)
{
	struct merge m = {0};
	uint64_t steps = query_one_in(run, 4) ? UINT64_MAX : query_below(run, 400);

	sources_pick(run, &m);
	if (query_one_in(run, 64))
		not_taken(run, &m);
	range_pick(run, &m);
	all_make(run, &m);
	run->empty_cnt += m.low == m.high;
	if (pass(run, &m, steps, 1) && query_one_in(run, 4))
		pass(run, &m, steps, 1); /* the same again */
	free(m.all);
}

/* The first SOURCE_CAP series that have records, each way, twice. */
static int all_of_them(struct query_run *run, struct merge *m, uint32_t flags)
{
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	int rc;

	*m = (struct merge){.range.flags = flags};
	for (uint32_t i = 0; i < run->series_cnt && m->cnt < SOURCE_CAP; i++)
		if (run->all[i].cnt > 0) {
			m->sources[m->cnt] = &run->all[i];
			m->given[m->cnt++] = run->all[i].series;
		}
	rc = stoup_merge(run->st, m->given, m->cnt, &m->range, &cur, &err);
	if (rc < 0) {
		printf("refused: %s\n", err.text);
		return 3;
	}
	stoup_cursor_close(cur);
	all_make(run, m);
	pass(run, m, UINT64_MAX, 0);
	pass(run, m, UINT64_MAX, 0);
	free(m->all);
	return 0;
}

int query_merge_all(struct query_run *run)
{
	static struct merge m;
	int rc;

	run->form = "merge all";
	rc = all_of_them(run, &m, 0);
	if (rc == 0)
		rc = all_of_them(run, &m, STOUP_BACKWARD);
	if (rc == 0)
		printf("merged: %u series, %" PRIu64 " records, each way, twice\n", m.cnt,
			m.all_cnt);
	return rc;
}
