/* SPDX-License-Identifier: Apache-2.0 */
/* tool_query.h - what `stoup cat` was asked, and the rows that answer it.
 *
 *      series, range, filter, as-of times, merge, bars --stoup_query_run--> runs of rows --take--> text, array, count
 *
 * A run is some records of one span, in the order asked for; a span is handed on as a whole where nothing is chosen
 * from it.
 *
 * Invariant: a query can be run again, and yields the same rows unless the store changed.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_QUERY_H
#define STOUP_CONSUMER_TOOL_QUERY_H

#include <stddef.h>
#include <stdint.h>
#include "consumer/stoup.h"
#include "consumer/stoup_bars.h"

struct stoup_pick;

/* A series that is asked, and what its rows are: its records, or bars made of them. */
struct stoup_source {
	struct stoup_series series;
	const struct stoup_schema *schema;
	struct stoup_pick *pick; /* NULL: all of them */
	/* Bars: what `schema` belongs to; nothing is read by it. */
	struct stoup_cursor *bars_cur;
	struct stoup_bars *bars;
};

struct stoup_query {
	struct stoup *st;
	struct stoup_source *sources; /* each one once, in the order that lines and ties have */
	size_t source_cnt;
	struct stoup_range range; /* limit 0, without STOUP_LAST and STOUP_FOLLOW */
	uint64_t limit;           /* rows of each series, with `merge` of all; UINT64_MAX: all */
	int tail;                 /* of the rows in their order the last ones, not the first */
	int merge;                /* all series in one order of time */
	int follow;               /* go on with what is added later */
	int skip_damaged;         /* step over blocks that cannot be read: told on stderr */
	const int64_t *asof; /* times, in their order: the last record of each series at each */
	size_t asof_cnt;     /* 0: not asked as of times */
	const struct stoup_bars_spec *bars; /* rows are bars of the records; NULL: the records */
	int was_damaged;                    /* out: a block was stepped over */
	uint64_t broken_cnt;                /* out: messages that a filter could not look into */
};

/* Records from, from + step, ... of a span, cnt of them; or, as of a time, that there is none: span is NULL. */
struct stoup_run {
	size_t source;
	const struct stoup_span *span;
	uint64_t from, cnt; /* cnt is at least 1 */
	int step;           /* 1 or -1 */
	int64_t asof_ns;    /* the time that was asked for, else 0 */
};

/* Take a run, or some of its first rows: how many count as rows (one that is left out does not), and in *used how many
 * records that took, at least 1; a negative errno ends the query. */
typedef int64_t (*stoup_take)(
	void *arg, const struct stoup_run *run, uint64_t *used, struct stoup_error *err);

/* Rows of a source are to be bars by query->bars: find their schema. 0, or a negative errno with text: its records are
 * no trades. Ended by stoup_source_fini. */
int stoup_source_bars(
	const struct stoup_query *query, struct stoup_source *source, struct stoup_error *err);

/* Free what a source has. */
void stoup_source_fini(struct stoup_source *source);

/* Hand all rows to `take`. 0, or a negative errno with text, -ECANCELED of `take` without. */
int stoup_query_run(struct stoup_query *query, stoup_take take, void *arg, struct stoup_error *err);

/* How many rows each source has (with `merge`: ret[0], all of them), from the index where that can say it. 0, or a
 * negative errno with text. */
int stoup_query_count(struct stoup_query *query, uint64_t *ret, struct stoup_error *err);

#endif
