/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_csv.c - text tables into a sink (see ingest_csv.h). */
#include <errno.h>
#include <stdlib.h>

#include "producer/csv_parallel.h"
#include "producer/ingest_csv.h"
#include "producer/input.h"
#include "producer/lobster_book.h"
#include "producer/preset.h"

static int64_t read_input(void *source, void *dst, size_t len, struct stoup_error *err)
{
	return stoup_input_read(source, dst, len, err);
}

/* Series of a table by their slots, opened in a sink as their first records come. */
struct slots {
	int64_t *idx; /* -1: not opened */
	uint32_t cap;
};

static int slot_open(struct slots *slots, const struct stoup_sink *sink, uint32_t slot,
	const char *series, const struct stoup_schema *schema, struct stoup_error *err)
{
	uint32_t cap = slots->cap ? slots->cap : 16;

	while (cap <= slot)
		cap *= 2;
	if (cap > slots->cap) {
		int64_t *grown = realloc(slots->idx, cap * sizeof(*grown));

		if (!grown)
			return stoup_error_set(err, -ENOMEM, "out of memory");
		for (uint32_t i = slots->cap; i < cap; i++)
			grown[i] = -1;
		slots->idx = grown;
		slots->cap = cap;
	}
	slots->idx[slot] = sink->series(sink->arg, series, schema, err);
	return slots->idx[slot] < 0 ? (int)slots->idx[slot] : 0;
}

/* Put what is left of a table; its series are opened anew in each sink. */
static int put_all(const void *arg, struct stoup_csv_table *table, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	const struct stoup_csv_options *options = arg;
	struct stoup_csv_record record;
	struct slots slots = {0};
	int rc;

	stoup_csv_table_sink(table, sink);
	while ((rc = stoup_csv_table_next(table, &record, err)) > 0) {
		if (record.slot >= slots.cap || slots.idx[record.slot] < 0) {
			rc = slot_open(&slots, sink, record.slot,
				record.series ? record.series : options->series,
				stoup_csv_table_schema(table), err);
			if (rc)
				break;
		}
		rc = sink->put(sink->arg, (uint32_t)slots.idx[record.slot], record.key,
			record.bytes, &record.where, err);
		if (rc)
			break;
	}
	free(slots.idx);
	return rc;
}

static int ingest_table(const struct stoup_sink *sink, stoup_csv_read_fn *read, void *source,
	const char *name, const struct stoup_csv_options *options, struct stoup_error *err)
{
	const struct stoup_csv_parallel parallel = {.read = read,
		.source = source,
		.name = name,
		.options = options,
		.threads = options->threads ? options->threads : 1,
		.put = put_all,
		.arg = options};

	return stoup_csv_parallel(&parallel, sink, err);
}

/* What the rest of CSV needs, and has not. */
static int plain_check(const struct stoup_input *input, const struct stoup_csv_options *options,
	struct stoup_error *err)
{
	const char *of_feeds = options->exchange          ? "exchange"
	                       : options->symbol          ? "symbol"
	                       : options->day >= 0        ? "date"
	                       : options->size_scale >= 0 ? "size-scale"
	                                                  : NULL;

	if (of_feeds)
		return stoup_error_set(err, -EINVAL,
			"%s: --%s is for CSV of a feed (--format): here --series names the series, and "
			"columns are told",
			stoup_input_name(input), of_feeds);
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
