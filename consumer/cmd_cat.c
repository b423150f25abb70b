/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cat.c - `stoup cat POOL SERIES...`: what a store is asked, answered as text, or as a NumPy file.
 *
 *      command line --tool_ask--> series by name or pattern --tool_query--> rows --tool_table, tool_npy--> stdout
 *
 * Numbers are exact decimals, times ISO 8601 with nanoseconds, undefined values print as nothing (CSV) or
 * null (JSON). Reserved bytes are not printed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/stoup.h"
#include "consumer/tool_args.h"
#include "consumer/tool_ask.h"
#include "consumer/tool_npy.h"
#include "consumer/tool_pick.h"
#include "consumer/tool_query.h"
#include "consumer/tool_series.h"
#include "consumer/tool_table.h"
#include "consumer/tools.h"
#include "shm/format.h"

#define OUT_LEN (1u << 18) /* bytes that stdout collects before a write */

static const char usage[] =
	"usage: stoup cat [options] POOL SERIES|PATTERN...\n"
	"Print the records of series. POOL is the name of a pool, or the path of a store with a slash\n"
	"(joins its automatic daemon, which is started when there is none). A PATTERN (* ? []) stands for all\n"
	"series whose names it matches; * goes over slashes. Of several series each line begins with its name.\n"
	"\n"
	"which records:\n"
	"  --from TIME      those whose key is TIME or later: ISO 8601, or a count since 1970\n"
	"  --after TIME     those whose key is later than TIME\n"
	"  --to TIME        those whose key is earlier than TIME\n"
	"  --until TIME     those whose key is TIME or earlier\n"
	"  --at-ordinal A[:B]\n"
	"                   record A of the series, counted from 0; those from A on before B\n"
	"  --asof TIME|-    the last record of each series that was known at TIME, its key included; may be\n"
	"                   said again; -: times from standard input, one a line\n"
	"  --where FILTER   those of which it holds, such as \"price > 100.25 and side = 'B'\", of documents\n"
	"                   'data.e = \"trade\" and data.p >= 61800'; said again, both must hold\n"
	"  --first N        the first N of each series, or of all with --merge\n"
	"  --last N         the last N\n"
	"\n"
	"in which order:\n"
	"  --merge          all series in one order of time, those of one time in the order of the series\n"
	"  --reverse        the last record first; --backward is the same\n"
	"  --limit N        print at most N, in the order of printing\n"
	"  --follow         go on with what is added later, until Ctrl-C\n"
	"\n"
	"as what:\n"
	"  --select A,B     these columns of records, in this order; may be said again\n"
	"  --path PATH      documents: the value there instead of the whole; may be said again\n"
	"  --bars SPEC      bars made of trades: 1m, 1h+30m (time), 100t (trades), 5000v (volume), 1000000n\n"
	"                   (notional), instead of the records; the last one may be partial\n"
	"  --count          how many records there are, and no more\n"
	"  --format KIND    csv (default), jsonl (a JSON object each line), json (an array of them);\n"
	"                   npy, npz: a NumPy array of the records, with all fields (redirect it: > a.npy);\n"
	"                   lines: NANOSECONDS JSON, as `stoup ingest` reads messages that are JSON\n"
	"  --no-header      CSV without the line of names\n"
	"  --skip-damaged   go on behind a damaged block: told on stderr, exit status 1\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 usage.\n";

/* ---- which series ------------------------------------------------------------------------------- */

/* *ret_named: do lines name their series? */
static int find_all(const struct stoup_ask *ask, struct stoup_query *query, int *ret_named,
	struct stoup_error *err)
{
	struct stoup_series *series = NULL;
	size_t cnt = 0;
	int rc = stoup_tool_series(
		query->st, ask->names, ask->name_cnt, &series, &cnt, ret_named, err);

	*ret_named |= ask->merge || ask->asof_cnt > 0;
	if (rc == 0) {
		query->sources = calloc(cnt, sizeof(*query->sources));
		if (!query->sources)
			rc = stoup_error_set(err, -ENOMEM, "no memory for %zu series", cnt);
	}
	for (size_t i = 0; i < cnt && rc == 0; i++)
		query->sources[query->source_cnt++] =
			(struct stoup_source){.series = series[i], .schema = series[i].schema};
	free(series);
	return rc;
}

/* ---- can it be had? ----------------------------------------------------------------------------- */

static int source_check(
	const struct stoup_ask *ask, const struct stoup_source *source, struct stoup_error *err)
{
	const struct stoup_schema *schema = source->schema;

	if (ask->path_cnt > 0 && !stoup_tool_docs_are(schema))
		return stoup_error_set(err, -ENOTSUP,
			"%.150s has no documents that --path could look into: its schema is %s%s",
			source->series.name, schema->name,
			stoup_tool_json_is(schema)
				? "; `stoup ingest --as document` makes documents of JSON"
				: "");
	if (ask->kind == STOUP_TABLE_LINES && !stoup_tool_json_is(schema))
		return stoup_error_set(err, -ENOTSUP,
			"%.150s holds no JSON that --format lines could print: its schema is %s",
			source->series.name, schema->name);
	if (ask->npy && (schema->flags & STOUP_SCHEMA_VARIABLE))
		return stoup_error_set(err, -ENOTSUP,
			"%.150s holds messages of variable length, which are no array: --format csv or jsonl",
			source->series.name);
	return 0;
}

/* -EINVAL is a fault of the command line. */
static int prepare(const struct stoup_ask *ask, struct stoup_query *query, struct stoup_error *err)
{
	int is_one = ask->npy || ask->kind == STOUP_TABLE_LINES, rc = 0;

	if (is_one && query->source_cnt > 1)
		return stoup_error_set(err, -EINVAL,
			"--format %s is of one series, and these are %zu: `stoup export --directory` "
			"writes a file for each",
			ask->npz   ? "npz"
			: ask->npy ? "npy"
				   : "lines",
			query->source_cnt);
	for (size_t i = 0; i < query->source_cnt && rc == 0; i++) {
		struct stoup_source *source = &query->sources[i];

		rc = source_check(ask, source, err);
		if (rc == 0 && ask->where_cnt > 0)
			rc = stoup_pick_create(
				&source->series, ask->wheres, ask->where_cnt, &source->pick, err);
		if (rc == -EINVAL && query->source_cnt > 1)
			stoup_error_prefix(err, "--where: %.60s", source->series.name);
		else if (rc == -EINVAL)
			stoup_error_prefix(err, "--where");
		if (rc == 0 && query->bars && stoup_source_bars(query, source, err) < 0)
			rc = -ENOTSUP;
	}
	return rc;
}

/* ---- answers ------------------------------------------------------------------------------------ */

static int print_counts(const struct stoup_table_options *options, struct stoup_query *query,
	struct stoup_error *err)
{
	uint64_t *cnts = calloc(query->source_cnt, sizeof(*cnts));
	int rc = cnts ? stoup_query_count(query, cnts, err)
	              : stoup_error_set(err, -ENOMEM, "no memory for counts");
	struct stoup_table_options of_all = *options;

	of_all.names_series &= !query->merge;
	if (rc == 0)
		stoup_table_counts(
			&of_all, query->sources, query->merge ? 1 : query->source_cnt, cnts);
	free(cnts);
	return rc;
}

/* *ret_usage: as of print_table. */
static int print_array(const struct stoup_ask *ask, struct stoup_query *query, int *ret_usage,
	struct stoup_error *err)
{
	struct stoup_columns columns = {0};
	int64_t rc = stoup_columns_make(query->sources, 1, &ask->select, &columns, err);

	stoup_columns_fini(&columns);
	*ret_usage = rc == -EINVAL;
	if (rc == 0)
		rc = stoup_tool_npy_query(query, &ask->select, ask->npz, stdout, err);
	return rc < 0 ? (int)rc : 0;
}

/* Rows as text. *ret_usage: the failure is one of the command line. */
static int print_table(const struct stoup_table_options *options, struct stoup_query *query,
	int *ret_usage, struct stoup_error *err)
{
	struct stoup_table *table = NULL;
	int rc = stoup_table_begin(options, query->sources, query->source_cnt, &table, err);

	*ret_usage = rc == -EINVAL;
	if (rc == 0)
		rc = stoup_query_run(query, stoup_table_take, table, err);
	query->broken_cnt += stoup_table_end(table, rc < 0);
	return rc;
}

static int answer(
	const struct stoup_ask *ask, struct stoup_query *query, int named, struct stoup_error *err)
{
	struct stoup_table_options options = {.out = stdout,
		.kind = ask->kind,
		.header = ask->header,
		.names_series = named,
		.names_time = ask->asof_cnt > 0,
		.select = ask->select,
		.paths = ask->paths,
		.path_cnt = ask->path_cnt};
	int rc = prepare(ask, query, err), is_usage = rc == -EINVAL;

	if (rc == 0 && ask->count)
		rc = print_counts(&options, query, err);
	else if (rc == 0 && ask->npy)
		rc = print_array(ask, query, &is_usage, err);
	else if (rc == 0)
		rc = print_table(&options, query, &is_usage, err);
	if (stoup_tool_stdout("stoup cat") < 0)
		return 1;
	if (rc < 0 && rc != -ECANCELED)
		fprintf(stderr, "stoup cat: %s\n", err->text);
	if (query->broken_cnt > 0)
		fprintf(stderr, "stoup cat: %" PRIu64 " message%s left out: no documents\n",
			query->broken_cnt, STOUP_PLURAL(query->broken_cnt));
	if (is_usage)
		return 2;
	return rc < 0 || query->broken_cnt > 0 || query->was_damaged;
}

static int run(const struct stoup_ask *ask, struct stoup *st, struct stoup_error *err)
{
	struct stoup_query query = {.st = st,
		.range = ask->range,
		.limit = ask->limit,
		.merge = ask->merge,
		.follow = ask->follow,
		.skip_damaged = ask->skip_damaged,
		.bars = ask->bars.kind ? &ask->bars : NULL,
		.asof = ask->asof,
		.asof_cnt = ask->asof_cnt};
	int named, status = 1;

	query.tail = ask->is_tail;
	if (find_all(ask, &query, &named, err) < 0)
		fprintf(stderr, "stoup cat: %s\n", err->text);
	else
		status = answer(ask, &query, named, err);
	for (size_t i = 0; i < query.source_cnt; i++)
		stoup_source_fini(&query.sources[i]);
	free(query.sources);
	return status;
}

int stoup_cmd_cat(int argc, char **argv)
{
	struct stoup_error err = {0};
	struct stoup_ask ask;
	struct stoup *st;
	int rc = stoup_ask_parse(argc, argv, &ask), status = rc < 0 ? 2 : 0;

	if (rc == 1)
		fputs(usage, stdout);
	if (rc == 0 && stoup_tool_attach(ask.pool, 0, &st, &err) < 0) {
		fprintf(stderr, "stoup cat: %s\n", err.text);
		status = 1;
	} else if (rc == 0) {
		setvbuf(stdout, NULL, _IOFBF, OUT_LEN);
		status = run(&ask, st, &err);
		stoup_detach(st);
	}
	stoup_ask_fini(&ask);
	return status;
}
