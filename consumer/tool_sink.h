/* SPDX-License-Identifier: Apache-2.0 */
/* tool_sink.h - the inside of a query: where its rows go, shared by records (tool_query.c) and bars (tool_bars.c).
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_SINK_H
#define STOUP_CONSUMER_TOOL_SINK_H

#include "consumer/stoup_bars.h"
#include "consumer/tool_query.h"

/* Where rows go, and how many may still go there. */
struct stoup_sink {
	struct stoup_query *query;
	stoup_take take;
	void *arg;
	uint64_t left;
	int64_t asof_ns;
};

/* Records from, from + step, ... of a span, of which the sink takes what it may. 0 or a negative errno with text. */
int stoup_sink_put(struct stoup_sink *sink, size_t source, const struct stoup_span *span,
	uint64_t from, uint64_t cnt, int step, struct stoup_error *err);

/* ---- tool_bars.c ------------------------------------------------------------------------------------- */

/* Begin the bars of a range of a series; both are the caller's to close, the bars first. 0, or a negative errno with
 * text. */
int stoup_tool_bars_begin(const struct stoup_query *query, const struct stoup_series *series,
	const struct stoup_range *range, struct stoup_cursor **ret_cur, struct stoup_bars **ret,
	struct stoup_error *err);

/* All bars that are there, as far as the sink takes them. 0 or a negative errno with text. */
int stoup_tool_bars_drain(
	struct stoup_sink *sink, size_t source, struct stoup_bars *bars, struct stoup_error *err);

/* Those of one source, in the order that was asked for. */
int stoup_tool_bars_source(struct stoup_sink *sink, size_t source, struct stoup_error *err);

#endif
