/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_csv.c - text tables into a sink (see ingest_csv.h). */
#include <errno.h>

#include "producer/csv_table.h"
#include "producer/ingest_csv.h"
#include "producer/input.h"

static int64_t read_input(void *source, void *dst, size_t len, struct stoup_error *err)
{
	return stoup_input_read(source, dst, len, err);
}

static int put_all(const struct stoup_sink *sink, struct stoup_csv_table *table,
	uint32_t series_idx, struct stoup_error *err)
{
	struct stoup_csv_record record;
	int rc;

	while ((rc = stoup_csv_table_next(table, &record, err)) > 0) {
		rc = sink->put(sink->arg, series_idx, record.key, record.bytes, &record.where, err);
		if (rc)
			return rc;
	}
	return rc;
}

int stoup_ingest_csv(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_csv_options *options, struct stoup_error *err)
{
	struct stoup_csv_table *table = NULL;
	int64_t series_idx;
	int rc;

	if (!options->series)
		return stoup_error_set(err, -EINVAL,
			"%s: a CSV file needs the name of its series (--series NAME)",
			stoup_input_name(input));
	rc = stoup_csv_table_create(
		read_input, input, stoup_input_name(input), options, &table, err);
	if (rc)
		return rc;
	series_idx = sink->series(sink->arg, options->series, stoup_csv_table_schema(table), err);
	if (series_idx < 0) {
		rc = (int)series_idx;
		goto out_destroy;
	}
	rc = put_all(sink, table, (uint32_t)series_idx, err);
out_destroy:
	stoup_csv_table_destroy(table);
	return rc;
}
