/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bars.c - rows of a query that are bars of its records (tool_sink.h). */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "consumer/stoup_bars.h"
#include "consumer/tool_sink.h"
#include "consumer/tool_stash.h"

/* What the range says of the bars: it is over where it ends, if that is past. */
static struct stoup_bars_spec bars_spec(const struct stoup_query *query)
{
	struct stoup_bars_spec spec = *query->bars;
	const struct stoup_range *range = &query->range;
	struct timespec now;
	int64_t end_ns = range->to_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	if (end_ns < INT64_MAX && (range->flags & STOUP_TO_INCLUDED))
		end_ns++;
	if (spec.kind == STOUP_BARS_TIME && !(range->flags & STOUP_ORDINALS) &&
		end_ns / 1000000000 < now.tv_sec)
		spec.end_ns = end_ns;
	if (!query->follow)
		spec.flags |= STOUP_BARS_LAST;
	return spec;
}

int stoup_tool_bars_begin(const struct stoup_query *query, const struct stoup_series *series,
	const struct stoup_range *range, struct stoup_cursor **ret_cur, struct stoup_bars **ret,
	struct stoup_error *err)
{
	struct stoup_bars_spec spec = bars_spec(query);
	struct stoup_cursor *cur;
	int rc = stoup_scan(query->st, series, range, &cur, err);

	if (rc < 0)
		return rc;
	rc = stoup_bars_open(cur, &spec, ret, err);
	if (rc < 0) {
		stoup_error_prefix(err, "%.100s", series->name);
		stoup_cursor_close(cur);
		return rc;
	}
	*ret_cur = cur;
	return 0;
}

int stoup_source_bars(
	const struct stoup_query *query, struct stoup_source *source, struct stoup_error *err)
{
	int rc = stoup_tool_bars_begin(
		query, &source->series, NULL, &source->bars_cur, &source->bars, err);

	if (rc == 0)
		source->schema = stoup_bars_schema(source->bars);
	return rc;
}

int stoup_tool_bars_drain(
	struct stoup_sink *sink, size_t source, struct stoup_bars *bars, struct stoup_error *err)
{
	struct stoup_span span;
	int rc = 0;

	while (sink->left > 0 && rc >= 0 && (rc = stoup_bars_next_span(bars, &span)) != 0)
		rc = rc < 0 ? stoup_error_set(err, rc, "%s", stoup_bars_error(bars)->text)
		            : stoup_sink_put(sink, source, &span, 0, 1, 1, err);
	return rc;
}

/* Bars are made forward alone. */
static int bars_order(
	const struct stoup_stash *stash, struct stoup_sink *sink, struct stoup_error *err)
{
	int backward = (sink->query->range.flags & STOUP_BACKWARD) != 0, rc = 0;

	for (size_t i = 0; i < stash->cnt && rc == 0; i++) {
		struct stoup_span span;
		struct stoup_run run =
			stoup_stash_at(stash, backward ? stash->cnt - 1 - i : i, &span);

		rc = stoup_sink_put(sink, run.source, &span, 0, 1, 1, err);
	}
	return rc;
}

int stoup_tool_bars_source(struct stoup_sink *sink, size_t source, struct stoup_error *err)
{
	const struct stoup_query *query = sink->query;
	int backward = (query->range.flags & STOUP_BACKWARD) != 0;
	int is_ordered = !query->tail && !backward;
	struct stoup_range range = query->range;
	struct stoup_stash stash = {0};
	struct stoup_sink keep = {
		.query = sink->query, .take = stoup_stash_take, .arg = &stash, .left = UINT64_MAX};
	struct stoup_cursor *cur;
	struct stoup_bars *bars;
	int rc;

	if (query->limit == 0)
		return 0;
	/* No more is kept than is printed: the first bars, or the last ones. */
	if (backward == query->tail)
		keep.left = query->limit;
	else if (query->limit < UINT64_MAX)
		stash.max = query->limit;
	range.flags &= ~STOUP_BACKWARD;
	rc = stoup_tool_bars_begin(query, &query->sources[source].series, &range, &cur, &bars, err);
	if (rc < 0)
		return rc;
	rc = stoup_tool_bars_drain(is_ordered ? sink : &keep, source, bars, err);
	if (rc == 0 && !is_ordered)
		rc = bars_order(&stash, sink, err);
	stoup_stash_fini(&stash);
	stoup_bars_close(bars);
	stoup_cursor_close(cur);
	return rc;
}
