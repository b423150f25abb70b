/* SPDX-License-Identifier: Apache-2.0 */
/* csv_table.h - a delimited text as a stream of records.
 *
 *      bytes --csv--> row --plan--> record, key, where it came from
 *
 * Invariant: a record that comes out is complete: each of its bytes comes from the row, from a null
 * value, or is zero. A row that is not is an error that names file, line, column, field and text.
 *
 * Concurrency: one table, one thread.
 */
#ifndef STOUP_PRODUCER_CSV_TABLE_H
#define STOUP_PRODUCER_CSV_TABLE_H

#include <stdint.h>
#include "producer/csv.h"
#include "producer/ingest_csv.h"

struct stoup_csv_table;

struct stoup_csv_record {
	const void *bytes; /* schema stride; aligned to 64; valid until the next call */
	int64_t key;       /* positive */
	struct stoup_where where;
	const char *series; /* its name, valid as long as the table; NULL: that of the options */
	uint32_t slot;      /* number of the series in this table, from 0 */
};

/* Open a table over a source of bytes. `name` is the file's, for messages and for presets; it, the
 * options and the source must outlive the table. Reads nothing yet. 0, or as stoup_csv_plan_create. */
int stoup_csv_table_create(stoup_csv_read_fn *read, void *source, const char *name,
	const struct stoup_csv_options *options, struct stoup_csv_table **ret,
	struct stoup_error *err);

/* Open another table of the same text over the plan of one that is bound: for parts of it, by another
 * thread. `bound` must outlive it. 0 or -ENOMEM. */
int stoup_csv_table_share(const struct stoup_csv_table *bound, stoup_csv_read_fn *read,
	void *source, struct stoup_csv_table **ret, struct stoup_error *err);

/* Go on with another part of the text: as stoup_csv_restart. What is told of rows beside each other (other
 * units of time, the same row again) is told within a part. */
void stoup_csv_table_restart(struct stoup_csv_table *table, uint64_t line, uint64_t file_off);

/* Has it a plan, which its first rows make? */
int stoup_csv_table_bound(const struct stoup_csv_table *table);

/* Where notes go; must outlive the table. NULL (as made): they are not told. */
void stoup_csv_table_sink(struct stoup_csv_table *table, const struct stoup_sink *sink);

/* Read the first rows and make the plan, unless that was done: 1; 0 where there are no rows of data (in
 * this part: another may follow); errors as stoup_csv_table_next. */
int stoup_csv_table_bind(struct stoup_csv_table *table, struct stoup_error *err);

/* The schema of the records; valid as long as the table. With a preset only once bound. */
const struct stoup_schema *stoup_csv_table_schema(const struct stoup_csv_table *table);

/* The next record: 1; 0 at the end; -EBADMSG for a mangled row, -EINVAL for options that do not fit
 * the columns, or what csv and source give. After an error only destroy is allowed. */
int stoup_csv_table_next(
	struct stoup_csv_table *table, struct stoup_csv_record *ret, struct stoup_error *err);

/* What a table gave out so far. */
struct stoup_csv_seen {
	uint64_t row_cnt;
	int skipped; /* there were rows of symbols that were not asked for */
};

struct stoup_csv_seen stoup_csv_table_seen(const struct stoup_csv_table *table);

/* The whole text was read, by this table and by others: where no row came of it, that is told. */
void stoup_csv_table_finish(
	const struct stoup_csv_table *table, const struct stoup_csv_seen *others);

/* NULL is allowed. */
void stoup_csv_table_destroy(struct stoup_csv_table *table);

#endif
