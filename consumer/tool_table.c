/* SPDX-License-Identifier: Apache-2.0 */
/* tool_table.c - see tool_table.h. */
#include "consumer/tool_table.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_text.h"
#include "shm/format.h"
#include "shm/json.h"

#define LEAD_CAP (STOUP_FORMAT_CAP + 16u)

struct stoup_table {
	struct stoup_table_options options;
	const struct stoup_source *sources;
	size_t cnt;
	struct stoup_columns columns;
	struct stoup_text *texts; /* one for each source */
	char **opens;             /* what stands in front of the columns of a source's rows */
	char *close;              /* behind those of records */
	char lead[LEAD_CAP];
	uint64_t row_cnt;
};

static int is_json(const struct stoup_table_options *options)
{
	return options->kind == STOUP_TABLE_JSONL || options->kind == STOUP_TABLE_JSON;
}

static int is_messages(const struct stoup_source *source)
{
	return (source->schema->flags & STOUP_SCHEMA_VARIABLE) != 0;
}

static void commas(FILE *out, size_t cnt)
{
	while (cnt-- > 0)
		fputc(',', out);
}

/* ---- what stands around the columns ----------------------------------------------------------------- */

/* CSV: how many columns messages have, 0 where there are none. */
static size_t message_columns(const struct stoup_table *table)
{
	for (size_t i = 0; i < table->cnt; i++)
		if (is_messages(&table->sources[i]))
			return table->options.path_cnt > 0 ? 1 + table->options.path_cnt : 2;
	return 0;
}

static void series_print(FILE *out, const char *name, int json)
{
	if (!json) {
		stoup_text_csv(out, name);
		fputc(',', out);
		return;
	}
	fputs("\"series\":", out);
	stoup_json_string(out, name);
	fputc(',', out);
}

/* A text made by `stoup_table` itself, for free(); NULL: no memory. */
static char *open_make(const struct stoup_table *table, const struct stoup_source *source)
{
	int json = is_json(&table->options);
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	if (table->options.names_series)
		series_print(out, source->series.name, json);
	if (!json && is_messages(source))
		commas(out, table->columns.cnt);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static char *close_make(const struct stoup_table *table)
{
	size_t cnt = message_columns(table);
	char *ret = calloc(1, cnt + 4);

	if (!ret)
		return NULL;
	if (is_json(&table->options))
		return strcpy(ret, table->options.kind == STOUP_TABLE_JSON ? "}" : "}\n");
	memset(ret, ',', cnt);
	ret[cnt] = '\n';
	return ret;
}

/* In front of the next row. */
static void lead_make(struct stoup_table *table, int64_t asof_ns)
{
	char time[STOUP_FORMAT_CAP] = "";

	if (table->options.names_time)
		stoup_format_time(asof_ns, time);
	if (!is_json(&table->options)) {
		snprintf(table->lead, LEAD_CAP, "%s%s", time, table->options.names_time ? "," : "");
		return;
	}
	snprintf(table->lead, LEAD_CAP, "%s{%s%s%s",
		table->options.kind == STOUP_TABLE_JSONL ? ""
		: table->row_cnt == 0                    ? "[\n"
							 : ",\n",
		table->options.names_time ? "\"asof\":\"" : "", time,
		table->options.names_time ? "\"," : "");
}

static void header_print(const struct stoup_table *table)
{
	FILE *out = table->options.out;
	const char *separator = "";

	if (table->options.names_time)
		fputs("asof,", out);
	if (table->options.names_series)
		fputs("series,", out);
	for (uint32_t i = 0; i < table->columns.cnt; i++) {
		fprintf(out, "%s%s", separator, table->columns.names[i]);
		separator = ",";
	}
	for (size_t i = 0; i < table->cnt; i++)
		if (is_messages(&table->sources[i])) {
			fputs(separator, out);
			stoup_text_names(&table->texts[i]);
			break;
		}
	fputc('\n', out);
}

/* ---- beginning ---------------------------------------------------------------------------------------- */

/* The columns that rows of a source have: all of the table, but of JSON without a choice its own alone. */
static int columns_set(struct stoup_table *table, size_t i)
{
	const struct stoup_schema *schema = table->sources[i].schema;
	struct stoup_text_column *columns;
	int rc;

	if (is_messages(&table->sources[i]) ||
		(is_json(&table->options) && table->options.select.cnt == 0))
		return 0;
	columns = calloc((size_t)table->columns.cnt + 1, sizeof(*columns));
	if (!columns)
		return -ENOMEM;
	for (uint32_t k = 0; k < table->columns.cnt; k++)
		columns[k] = (struct stoup_text_column){table->columns.names[k],
			stoup_columns_field(schema, table->columns.names[k])};
	rc = stoup_text_choose(&table->texts[i], columns, table->columns.cnt);
	free(columns);
	return rc;
}

static int text_begin(struct stoup_table *table, size_t i, struct stoup_error *err)
{
	const struct stoup_table_options *options = &table->options;
	struct stoup_text *text = &table->texts[i];
	int rc = stoup_text_init(text, options->out, is_json(options), table->sources[i].schema);

	if (rc == 0)
		rc = columns_set(table, i);
	table->opens[i] = open_make(table, &table->sources[i]);
	if (rc < 0 || !table->opens[i])
		return stoup_error_set(err, -ENOMEM, "no memory to print %zu series", table->cnt);
	text->lines = options->kind == STOUP_TABLE_LINES;
	text->frame.lead = table->lead;
	text->frame.open = table->opens[i];
	/* The columns of messages are the last ones. */
	text->frame.close =
		is_json(options) || !is_messages(&table->sources[i]) ? table->close : "\n";
	for (size_t k = 0; k < options->path_cnt && rc == 0; k++)
		rc = stoup_tool_docs_path(&text->docs, options->paths[k], err);
	return rc;
}

int stoup_table_begin(const struct stoup_table_options *options, const struct stoup_source *sources,
	size_t cnt, struct stoup_table **ret, struct stoup_error *err)
{
	struct stoup_table *table = calloc(1, sizeof(*table));
	int rc = 0;

	if (!table)
		return stoup_error_set(err, -ENOMEM, "no memory to print");
	table->options = *options;
	table->sources = sources;
	rc = stoup_columns_make(sources, cnt, &options->select, &table->columns, err);
	if (rc == 0) {
		table->texts = calloc(cnt, sizeof(*table->texts));
		table->opens = calloc(cnt, sizeof(*table->opens));
		table->cnt = table->texts && table->opens ? cnt : 0;
		table->close = close_make(table);
		if (table->cnt < cnt || !table->close)
			rc = stoup_error_set(err, -ENOMEM, "no memory to print %zu series", cnt);
	}
	for (size_t i = 0; i < cnt && rc == 0; i++)
		rc = text_begin(table, i, err);
	if (rc < 0) {
		stoup_table_end(table, 1);
		return rc;
	}
	if (options->kind == STOUP_TABLE_CSV && options->header)
		header_print(table);
	*ret = table;
	return 0;
}

/* ---- rows --------------------------------------------------------------------------------------------- */

int64_t stoup_table_take(
	void *arg, const struct stoup_run *run, uint64_t *used, struct stoup_error *err)
{
	struct stoup_table *table = arg;
	struct stoup_text *text = &table->texts[run->source];
	int64_t rows = 0;

	for (uint64_t i = 0; i < run->cnt; i++) {
		uint64_t at = run->step > 0 ? run->from + i : run->from - i;
		int rc;

		if (i == 0 || table->row_cnt == 1)
			lead_make(table, run->asof_ns);
		rc = stoup_text_span(text, run->span, at);
		if (rc < 0)
			return stoup_error_set(err, rc, "no memory to print a message");
		rows += rc;
		table->row_cnt += (uint64_t)rc;
		if (ferror(table->options.out))
			return -ECANCELED;
	}
	*used = run->cnt;
	return rows;
}

uint64_t stoup_table_end(struct stoup_table *table, int failed)
{
	uint64_t broken_cnt = 0;

	if (!table)
		return 0;
	if (table->options.kind == STOUP_TABLE_JSON && !failed)
		fputs(table->row_cnt ? "\n]\n" : "[]\n", table->options.out);
	for (size_t i = 0; i < table->cnt; i++) {
		broken_cnt += table->texts[i].docs.broken_cnt;
		stoup_text_fini(&table->texts[i]);
		free(table->opens[i]);
	}
	free(table->texts);
	free(table->opens);
	free(table->close);
	stoup_columns_fini(&table->columns);
	free(table);
	return broken_cnt;
}

/* ---- counts -------------------------------------------------------------------------------------------- */

void stoup_table_counts(const struct stoup_table_options *options,
	const struct stoup_source *sources, size_t cnt, const uint64_t *cnts)
{
	FILE *out = options->out;
	int json = is_json(options), is_array = options->kind == STOUP_TABLE_JSON;

	if (!json && options->header)
		fputs(options->names_series ? "series,records\n" : "records\n", out);
	for (size_t i = 0; i < cnt; i++) {
		if (is_array)
			fputs(i ? ",\n" : "[\n", out);
		if (json)
			fputc('{', out);
		if (options->names_series)
			series_print(out, sources[i].series.name, json);
		fprintf(out, json ? "\"records\":%" PRIu64 "}" : "%" PRIu64, cnts[i]);
		fputs(is_array ? "" : "\n", out);
	}
	if (is_array)
		fputs("\n]\n", out);
}
