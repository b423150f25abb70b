/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_csv.c - text tables into a sink (see ingest_csv.h). */
#include <errno.h>
#include <stdlib.h>

#include "producer/csv_table.h"
#include "producer/ingest_csv.h"
#include "producer/input.h"
#include "producer/lobster_book.h"
#include "producer/preset.h"

static int64_t read_input(void *source, void *dst, size_t len, struct stoup_error *err)
{
	return stoup_input_read(source, dst, len, err);
}

/* Series of a table by their slots, opened as their first records come. */
struct slots {
	uint32_t *idx;
	uint32_t cnt, cap;
};

/* Slots come in order: a new one is the next. */
static int slot_open(struct slots *slots, const struct stoup_sink *sink, const char *series,
	const struct stoup_schema *schema, struct stoup_error *err)
{
	int64_t idx;

	if (slots->cnt == slots->cap) {
		uint32_t cap = slots->cap ? slots->cap * 2 : 16;
		uint32_t *grown = realloc(slots->idx, cap * sizeof(*grown));

		if (!grown)
			return stoup_error_set(err, -ENOMEM, "out of memory");
		slots->idx = grown;
		slots->cap = cap;
	}
	idx = sink->series(sink->arg, series, schema, err);
	if (idx < 0)
		return (int)idx;
	slots->idx[slots->cnt++] = (uint32_t)idx;
	return 0;
}

static int put_all(const struct stoup_sink *sink, struct stoup_csv_table *table,
	const struct stoup_csv_options *options, struct slots *slots, struct stoup_error *err)
{
	const struct stoup_schema *schema = stoup_csv_table_schema(table);
	struct stoup_csv_record record;
	int rc;

	while ((rc = stoup_csv_table_next(table, &record, err)) > 0) {
		if (record.slot == slots->cnt) {
			rc = slot_open(slots, sink, record.series ? record.series : options->series,
				schema, err);
			if (rc)
				return rc;
		}
		rc = sink->put(sink->arg, slots->idx[record.slot], record.key, record.bytes,
			&record.where, err);
		if (rc)
			return rc;
	}
	return rc;
}

static int ingest_table(const struct stoup_sink *sink, stoup_csv_read_fn *read, void *source,
	const char *name, const struct stoup_csv_options *options, struct stoup_error *err)
{
	struct stoup_csv_table *table = NULL;
	struct slots slots = {0};
	int rc = stoup_csv_table_create(read, source, name, options, &table, err);

	if (rc)
		return rc;
	stoup_csv_table_sink(table, sink);
	rc = stoup_csv_table_bind(table, err);
	if (rc > 0)
		rc = put_all(sink, table, options, &slots, err);
	stoup_csv_table_destroy(table);
	free(slots.idx);
	return rc;
}

/* What the rest of CSV needs, and has not. */
static int plain_check(const struct stoup_input *input, const struct stoup_csv_options *options,
	struct stoup_error *err)
{
	if (options->filter && options->filter->symbols)
		return stoup_error_set(err, -EINVAL,
			"%s: CSV has no symbols that --symbols could choose, unless it is of a feed "
			"(--format)",
			stoup_input_name(input));
	if (!options->series)
		return stoup_error_set(err, -EINVAL,
			"%s: a CSV file needs the name of its series (--series NAME)",
			stoup_input_name(input));
	return 0;
}

int stoup_ingest_csv(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_csv_options *options, struct stoup_error *err)
{
	struct stoup_lobster_book *book;
	int rc = 0;

	if (!stoup_preset_wanted(options))
		rc = plain_check(input, options, err);
	if (rc)
		return rc;
	if (!stoup_lobster_book_is(options, stoup_input_name(input)))
		return ingest_table(sink, read_input, input, stoup_input_name(input), options, err);
	rc = stoup_lobster_book_open(input, &book, err);
	if (rc)
		return rc;
	rc = ingest_table(
		sink, stoup_lobster_book_read, book, stoup_input_name(input), options, err);
	stoup_lobster_book_close(book);
	return rc;
}
