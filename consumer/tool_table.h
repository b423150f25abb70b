/* SPDX-License-Identifier: Apache-2.0 */
/* tool_table.h - rows of a query as one table of text: CSV, JSON lines, a JSON array, or lines for `stoup ingest`.
 *
 *      asof,series,ts_recv,price,size,key,message       asof and series where they are wanted
 *      ^lead^open  ^records           ^messages
 *
 * Columns of records come first (tool_columns.h), then those of messages; a row leaves the others empty. A JSON object
 * has the columns of its own series alone, or those that were chosen.
 *
 * Concurrency: one thread. A failure to write is left to the stream.
 */
#ifndef STOUP_CONSUMER_TOOL_TABLE_H
#define STOUP_CONSUMER_TOOL_TABLE_H

#include <stdio.h>
#include "consumer/tool_columns.h"
#include "consumer/tool_docs.h"
#include "consumer/tool_query.h"

enum stoup_table_kind {
	STOUP_TABLE_CSV,
	STOUP_TABLE_JSONL,
	STOUP_TABLE_JSON, /* one array of the objects */
	STOUP_TABLE_LINES,
};

struct stoup_table_options {
	FILE *out;
	enum stoup_table_kind kind;
	int header;       /* CSV's line of names */
	int names_series; /* a column for the series' name */
	int names_time;   /* one for the time that was asked for */
	struct stoup_select select;
	const char *const *paths; /* of documents */
	size_t path_cnt;
};

struct stoup_table;

/* Begin a table of the rows of these sources, which stay the caller's, and print its head. 0, or a negative errno with
 * text: as of stoup_columns_make and stoup_doc_path_create. */
int stoup_table_begin(const struct stoup_table_options *options, const struct stoup_source *sources,
	size_t cnt, struct stoup_table **ret, struct stoup_error *err);

/* Print a run: a stoup_take, with the table as its argument. -ECANCELED when the stream has failed. */
int64_t stoup_table_take(
	void *arg, const struct stoup_run *run, uint64_t *used, struct stoup_error *err);

/* Print what stands at the end, and free the table: how many messages were no documents and were left out. `failed`: not
 * all rows were printed, and an array of JSON stays open, so that no reader takes it for whole. NULL is allowed. */
uint64_t stoup_table_end(struct stoup_table *table, int failed);

/* Numbers of rows, one for each source, or one of all (`names_series` 0): a table of its own. */
void stoup_table_counts(const struct stoup_table_options *options,
	const struct stoup_source *sources, size_t cnt, const uint64_t *cnts);

#endif
