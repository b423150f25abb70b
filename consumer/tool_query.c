/* SPDX-License-Identifier: Apache-2.0 */
/* tool_query.c - see tool_query.h.
 *
 * The last rows of an order are had by the opposite one: its first rows are kept, and handed on from the end. Where the
 * library finds them itself (STOUP_LAST), nothing is kept.
 */
#include "consumer/tool_query.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "consumer/stoup_filter.h"
#include "consumer/tool_args.h"
#include "consumer/tool_docs.h"
#include "consumer/tool_pick.h"
#include "consumer/tool_sink.h"
#include "consumer/tool_stash.h"

#define NEWS_NS UINT64_C(1000000000) /* of one wait for what is added; the daemon wakes it */

/* ---- spans ------------------------------------------------------------------------------------ */

int stoup_sink_put(struct stoup_sink *sink, size_t source, const struct stoup_span *span,
	uint64_t from, uint64_t cnt, int step, struct stoup_error *err)
{
	struct stoup_run run = {.source = source,
		.span = span,
		.from = from,
		.step = step,
		.asof_ns = sink->asof_ns};

	while (cnt > 0 && sink->left > 0) {
		uint64_t used = 0;
		int64_t rows;

		run.cnt = cnt < sink->left ? cnt : sink->left;
		rows = sink->take(sink->arg, &run, &used, err);
		if (rows < 0)
			return (int)rows;
		sink->left -= (uint64_t)rows;
		cnt -= used;
		run.from = step > 0 ? run.from + used : run.from - used;
	}
	return 0;
}

/* Those of [from, from + cnt) that are meant; runs of neighbours go together. */
static int chunk_put(struct stoup_sink *sink, size_t source, const struct stoup_span *span,
	uint64_t from, uint64_t cnt, int step, struct stoup_error *err)
{
	uint64_t idx[STOUP_PICK_CAP];
	const struct stoup_pick *pick = sink->query->sources[source].pick;
	int64_t found = stoup_pick_span(pick, span, from, cnt, idx, &sink->query->broken_cnt);
	int rc = found < 0 ? stoup_error_set(err, (int)found, "the filter does not fit the records")
	                   : 0;

	for (int64_t i = 0; i < found && rc == 0 && sink->left > 0;) {
		int64_t at = step > 0 ? i : found - 1 - i, end = i + 1;

		while (end < found &&
			(step > 0 ? idx[end] == idx[at] + (uint64_t)(end - i)
				  : idx[found - 1 - end] + (uint64_t)(end - i) == idx[at]))
			end++;
		rc = stoup_sink_put(sink, source, span, idx[at], (uint64_t)(end - i), step, err);
		i = end;
	}
	return rc;
}

static int span_put(struct stoup_sink *sink, size_t source, const struct stoup_span *span,
	struct stoup_error *err)
{
	int step = sink->query->range.flags & STOUP_BACKWARD ? -1 : 1, rc = 0;
	uint64_t cnt = span->record_cnt;

	if (!sink->query->sources[source].pick)
		return stoup_sink_put(sink, source, span, step > 0 ? 0 : cnt - 1, cnt, step, err);
	for (uint64_t done = 0; done < cnt && rc == 0 && sink->left > 0; done += STOUP_PICK_CAP) {
		uint64_t len = cnt - done < STOUP_PICK_CAP ? cnt - done : STOUP_PICK_CAP;

		rc = chunk_put(
			sink, source, span, step > 0 ? done : cnt - done - len, len, step, err);
	}
	return rc;
}

/* ---- cursors ---------------------------------------------------------------------------------- */

/* stoup_next failed: 0 when the block was stepped over, else the error with text. */
static int step_over(
	struct stoup_query *query, struct stoup_cursor *cur, int rc, struct stoup_error *err)
{
	const struct stoup_range *range = &query->range;
	int is_part = range->from_ns || range->to_ns;

	if (!query->skip_damaged || (rc != -EBADMSG && rc != -EIO && rc != -ENOTSUP))
		return stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	fflush(stdout);
	fprintf(stderr, "stoup cat: %s\n", stoup_cursor_error(cur)->text);
	fprintf(stderr, "stoup cat: %s%" PRId64 " records left out\n", is_part ? "at most " : "",
		stoup_cursor_skip(cur));
	query->was_damaged = 1;
	return 0;
}

/* All that the cursor has, as far as the sink takes it. */
static int drain(
	struct stoup_sink *sink, size_t source, struct stoup_cursor *cur, struct stoup_error *err)
{
	struct stoup_span span;
	int rc = 0;

	while (sink->left > 0 && rc >= 0 && (rc = stoup_next(cur, &span)) != 0)
		rc = rc < 0 ? step_over(sink->query, cur, rc, err)
		            : span_put(sink, sink->query->merge ? stoup_cursor_source(cur) : source,
				      &span, err);
	return rc;
}

/* All series in one order. */
static int merge_open(const struct stoup_query *query, const struct stoup_range *range,
	struct stoup_cursor **ret, struct stoup_error *err)
{
	struct stoup_series *series = calloc(query->source_cnt, sizeof(*series));
	int rc;

	if (!series)
		return stoup_error_set(err, -ENOMEM, "no memory for %zu series", query->source_cnt);
	for (size_t i = 0; i < query->source_cnt; i++)
		series[i] = query->sources[i].series;
	rc = stoup_merge(query->st, series, query->source_cnt, range, ret, err);
	free(series);
	return rc;
}

static int scan_open(const struct stoup_query *query, size_t source,
	const struct stoup_range *range, struct stoup_cursor **ret, struct stoup_error *err)
{
	struct stoup_filter *filter = stoup_pick_filter(query->sources[source].pick);

	if (query->merge)
		return merge_open(query, range, ret, err);
	if (filter && !query->follow)
		return stoup_scan_where(
			query->st, &query->sources[source].series, range, filter, ret, err);
	return stoup_scan(query->st, &query->sources[source].series, range, ret, err);
}

/* One series, or with `merge` all. */
static int scan(struct stoup_sink *sink, size_t source, const struct stoup_range *range,
	struct stoup_error *err)
{
	struct stoup_cursor *cur;
	int rc = scan_open(sink->query, source, range, &cur, err);

	if (rc < 0)
		return rc;
	rc = drain(sink, source, cur, err);
	stoup_cursor_close(cur);
	return rc;
}

/* ---- the ends of an order ----------------------------------------------------------------------- */

/* Does the library count the rows itself? Not where a record may be none, and, from the end, not where one that can not
 * be read would count. */
static int is_native(const struct stoup_query *query, size_t source)
{
	size_t begin = query->merge ? 0 : source,
	       end = query->merge ? query->source_cnt : source + 1;

	if (query->limit > UINT32_MAX || (query->tail && (query->merge || query->skip_damaged)))
		return 0;
	for (size_t i = begin; i < end; i++)
		if (query->sources[i].pick || stoup_tool_docs_are(query->sources[i].schema))
			return 0;
	return 1;
}

/* Rows that were kept, from the end. */
static int stash_put(
	const struct stoup_stash *stash, struct stoup_sink *sink, struct stoup_error *err)
{
	int rc = 0;

	for (size_t i = stash->cnt; i-- > 0 && rc == 0;) {
		struct stoup_span span;
		struct stoup_run run = stoup_stash_at(stash, i, &span);

		rc = stoup_sink_put(sink, run.source, &span, 0, 1, 1, err);
	}
	return rc;
}

/* The last rows: the first ones of the opposite order are kept. */
static int scan_tail(struct stoup_sink *sink, size_t source, struct stoup_error *err)
{
	struct stoup_query opposite = *sink->query;
	struct stoup_stash stash = {0};
	struct stoup_sink keep = {
		.query = &opposite, .take = stoup_stash_take, .arg = &stash, .left = sink->left};
	int rc;

	opposite.range.flags ^= STOUP_BACKWARD;
	rc = scan(&keep, source, &opposite.range, err);
	sink->query->was_damaged |= opposite.was_damaged;
	sink->query->broken_cnt = opposite.broken_cnt + stash.broken_cnt;
	if (rc == 0)
		rc = stash_put(&stash, sink, err);
	stoup_stash_fini(&stash);
	return rc;
}

static int scan_source(struct stoup_sink *sink, size_t source, struct stoup_error *err)
{
	const struct stoup_query *query = sink->query;
	struct stoup_range range = query->range;

	if (query->limit == 0)
		return 0;
	if (query->tail && !is_native(query, source))
		return scan_tail(sink, source, err);
	if (is_native(query, source))
		range.limit = (uint32_t)query->limit;
	if (query->tail)
		range.flags |= STOUP_LAST;
	return scan(sink, source, &range, err);
}

/* ---- as of a time --------------------------------------------------------------------------------- */

#define LOOKUP_CAP 16u /* series that are looked up: each keeps a block leased from time to time */

/* The last record of a source that was known at `asof_ns`, scanned backward: a filter asks on, and of many series each
 * gives its block back. */
static int asof_scan(
	struct stoup_sink *one, size_t source, int64_t asof_ns, struct stoup_error *err)
{
	struct stoup_query *query = one->query;

	query->range = (struct stoup_range){.to_ns = asof_ns,
		.flags = STOUP_BACKWARD | STOUP_TO_INCLUDED | STOUP_AVAILABLE,
		.limit = query->sources[source].pick ? 0 : 1};
	return scan(one, source, &query->range, err);
}

/* The same by a cursor that stays, for times by the thousand: 0, 1 where the process may lease no more, or a negative
 * errno with text. */
static int asof_look_up(
	struct stoup_sink *one, size_t source, struct stoup_cursor **cur, struct stoup_error *err)
{
	const struct stoup_query *query = one->query;
	const struct stoup_range all = {0};
	struct stoup_span span;
	int rc = 0;

	if (!*cur)
		rc = stoup_scan(query->st, &query->sources[source].series, &all, cur, err);
	if (rc < 0)
		return rc;
	rc = stoup_asof(*cur, one->asof_ns, &span);
	if (rc == -EDQUOT || rc == -EMFILE)
		return 1;
	if (rc < 0)
		return stoup_error_set(err, rc, "%s", stoup_cursor_error(*cur)->text);
	return rc > 0 ? stoup_sink_put(one, source, &span, 0, 1, 1, err) : 0;
}

/* The cursors that look series up, each made at its first time; once `few` is 0 all is scanned. */
struct lookups {
	struct stoup_cursor *curs[LOOKUP_CAP];
	int few;
};

static void lookups_end(struct lookups *lookups)
{
	for (size_t i = 0; i < LOOKUP_CAP; i++) {
		stoup_cursor_close(lookups->curs[i]);
		lookups->curs[i] = NULL;
	}
	lookups->few = 0;
}

static int asof_source(struct stoup_sink *sink, size_t source, struct lookups *lookups,
	int64_t asof_ns, struct stoup_error *err)
{
	struct stoup_query query = *sink->query;
	struct stoup_sink one = {.query = &query,
		.take = sink->take,
		.arg = sink->arg,
		.left = 1,
		.asof_ns = asof_ns};
	struct stoup_run none = {.source = source, .cnt = 1, .step = 1, .asof_ns = asof_ns};
	uint64_t used;
	int64_t rows;
	int rc = 1;

	if (lookups->few && !query.sources[source].pick) {
		rc = asof_look_up(&one, source, &lookups->curs[source], err);
		/* Their blocks fill this process's share: a scan needs room as well. */
		if (rc == 1)
			lookups_end(lookups);
	}
	if (rc == 1)
		rc = asof_scan(&one, source, asof_ns, err);
	sink->query->broken_cnt = query.broken_cnt;
	if (rc < 0 || one.left == 0)
		return rc;
	rows = sink->take(sink->arg, &none, &used, err);
	return rows < 0 ? (int)rows : 0;
}

static int asof_all(struct stoup_query *query, stoup_take take, void *arg, struct stoup_error *err)
{
	struct lookups lookups = {.few = query->source_cnt <= LOOKUP_CAP};
	int rc = 0;

	for (size_t t = 0; t < query->asof_cnt && rc == 0; t++)
		for (size_t i = 0; i < query->source_cnt && rc == 0; i++) {
			struct stoup_sink sink = {.query = query, .take = take, .arg = arg};

			rc = asof_source(&sink, i, &lookups, query->asof[t], err);
		}
	lookups_end(&lookups);
	return rc;
}

/* ---- what is added later --------------------------------------------------------------------------- */

/* A series that is followed. */
struct followed {
	struct stoup_sink sink;
	struct stoup_cursor *cur;
	struct stoup_bars *bars; /* NULL: its records */
};

static int follow_all(struct stoup_query *query, struct followed *all, struct stoup_error *err)
{
	int rc = 0, goes_on = 1;

	while (rc >= 0 && goes_on) {
		goes_on = 0;
		for (size_t i = 0; i < query->source_cnt && rc >= 0; i++) {
			rc = all[i].bars ? stoup_tool_bars_drain(&all[i].sink, i, all[i].bars, err)
			                 : drain(&all[i].sink, i, all[i].cur, err);
			goes_on |= all[i].sink.left > 0;
		}
		if (fflush(stdout) != 0 || ferror(stdout) || (goes_on && stoup_tool_reader_gone()))
			rc = -ECANCELED;
		if (rc >= 0 && goes_on)
			rc = stoup_wait_news(query->st, NEWS_NS, err);
	}
	return rc < 0 ? rc : 0;
}

static int follow_open(const struct stoup_query *query, size_t source, struct followed *ret,
	struct stoup_error *err)
{
	struct stoup_range range = query->range;

	range.flags |= STOUP_FOLLOW;
	if (query->bars)
		return stoup_tool_bars_begin(
			query, &query->sources[source].series, &range, &ret->cur, &ret->bars, err);
	if (query->tail) {
		range.flags |= STOUP_LAST;
		range.limit = query->limit < UINT32_MAX ? (uint32_t)query->limit : UINT32_MAX;
		ret->sink.left = UINT64_MAX; /* the limit is of what is there already */
	}
	return scan_open(query, source, &range, &ret->cur, err);
}

static int follow(struct stoup_query *query, stoup_take take, void *arg, struct stoup_error *err)
{
	struct followed *all = calloc(query->source_cnt, sizeof(*all));
	int rc = all ? 0 : stoup_error_set(err, -ENOMEM, "no memory for cursors");

	for (size_t i = 0; i < query->source_cnt && rc == 0; i++) {
		all[i].sink = (struct stoup_sink){
			.query = query, .take = take, .arg = arg, .left = query->limit};
		rc = follow_open(query, i, &all[i], err);
	}
	if (rc == 0)
		rc = follow_all(query, all, err);
	for (size_t i = 0; all && i < query->source_cnt; i++) {
		stoup_bars_close(all[i].bars);
		stoup_cursor_close(all[i].cur);
	}
	free(all);
	return rc;
}

void stoup_source_fini(struct stoup_source *source)
{
	stoup_pick_destroy(source->pick);
	stoup_bars_close(source->bars);
	stoup_cursor_close(source->bars_cur);
}

/* ---- all of it ------------------------------------------------------------------------------------ */

int stoup_query_run(struct stoup_query *query, stoup_take take, void *arg, struct stoup_error *err)
{
	int rc = 0;

	if (query->follow)
		return follow(query, take, arg, err);
	if (query->asof_cnt > 0)
		return asof_all(query, take, arg, err);
	/* With `merge` the first one stands for all. */
	for (size_t i = 0; i < (query->merge ? 1 : query->source_cnt) && rc == 0; i++) {
		struct stoup_sink sink = {
			.query = query, .take = take, .arg = arg, .left = query->limit};

		rc = query->bars ? stoup_tool_bars_source(&sink, i, err)
		                 : scan_source(&sink, i, err);
	}
	return rc;
}

/* ---- counts ---------------------------------------------------------------------------------------- */

struct counter {
	struct stoup_query *query;
	uint64_t *cnts;
};

static int64_t count_take(
	void *arg, const struct stoup_run *run, uint64_t *used, struct stoup_error *err)
{
	const struct counter *counter = arg;
	uint64_t broken_cnt = 0;

	(void)err;
	if (stoup_tool_docs_are(run->span->schema)) /* as many as are printed */
		for (uint64_t i = 0; i < run->cnt; i++)
			broken_cnt += (uint64_t)stoup_tool_docs_broken(
				run->span, run->step > 0 ? run->from + i : run->from - i);
	counter->query->broken_cnt += broken_cnt;
	counter->cnts[counter->query->merge ? 0 : run->source] += run->cnt - broken_cnt;
	*used = run->cnt;
	return (int64_t)(run->cnt - broken_cnt);
}

/* Is a row a record, so that the index can tell how many there are? */
static int is_plain(const struct stoup_query *query)
{
	int ret = !query->skip_damaged && query->asof_cnt == 0;

	for (size_t i = 0; i < query->source_cnt; i++)
		ret &= !query->sources[i].pick &&
		       query->sources[i].schema == query->sources[i].series.schema;
	return ret;
}

int stoup_query_count(struct stoup_query *query, uint64_t *ret, struct stoup_error *err)
{
	struct counter counter = {.query = query, .cnts = ret};
	struct stoup_range range = query->range;
	int rc = 0;

	if (query->merge)
		range.flags |= STOUP_AVAILABLE; /* as stoup_merge has it */

	for (size_t i = 0; i < (query->merge ? 1 : query->source_cnt); i++)
		ret[i] = 0;
	if (!is_plain(query))
		return stoup_query_run(query, count_take, &counter, err);
	for (size_t i = 0; i < query->source_cnt && rc == 0; i++) {
		size_t at = query->merge ? 0 : i;
		struct stoup_count count;

		rc = stoup_count(query->st, &query->sources[i].series, &range, 1, &count, err);
		if (rc == 0)
			ret[at] += count.record_min;
		if (ret[at] > query->limit)
			ret[at] = query->limit;
	}
	return rc;
}
