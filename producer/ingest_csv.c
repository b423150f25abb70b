/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_csv.c - text tables into a sink (see ingest_csv.h). */
#include <errno.h>

#include "producer/csv_parallel.h"
#include "producer/ingest_csv.h"
#include "producer/input.h"

static int64_t read_input(void *source, void *dst, size_t len, struct stoup_error *err)
{
	return stoup_input_read(source, dst, len, err);
}

/* Put what is left of a table; the series is opened anew in each sink. */
static int put_all(const void *arg, struct stoup_csv_table *table, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	const struct stoup_csv_options *options = arg;
	int64_t series_idx =
		sink->series(sink->arg, options->series, stoup_csv_table_schema(table), err);
	struct stoup_csv_record record;
	int rc;

	if (series_idx < 0)
		return (int)series_idx;
	while ((rc = stoup_csv_table_next(table, &record, err)) > 0) {
		rc = sink->put(sink->arg, (uint32_t)series_idx, record.key, record.bytes,
			&record.where, err);
		if (rc)
			return rc;
	}
	return rc;
}

int stoup_ingest_csv(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_csv_options *options, struct stoup_error *err)
{
	const struct stoup_csv_parallel parallel = {.read = read_input,
		.source = input,
		.name = stoup_input_name(input),
		.options = options,
		.threads = options->threads ? options->threads : 1,
		.put = put_all,
		.arg = options};

	if (!options->series)
		return stoup_error_set(err, -EINVAL,
			"%s: a CSV file needs the name of its series (--series NAME)",
			stoup_input_name(input));
	return stoup_csv_parallel(&parallel, sink, err);
}
