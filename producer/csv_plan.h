/* SPDX-License-Identifier: Apache-2.0 */
/* csv_plan.h - which column fills which field: the options and the header row, worked out once.
 *
 *      columns    0: timestamp   1: open   2: high   3: low   4: close   5: tick count
 *                     |             |         |         |         |
 *      binds      -> ts         -> open   -> high   -> low    -> close
 *      blank          .             .         .         .         .      volume: its null value
 *
 * Two steps: stoup_csv_plan_create needs only the options and makes the schema; stoup_csv_plan_bind
 * looks at the first row, decides whether it is a header and binds columns to fields.
 *
 * Invariant: once bound, every field is filled by one column, or has a null value, is text or
 * hidden, or was given up by the user ("field=-"); and the key field is filled by a column.
 *
 * Concurrency: a plan is immutable once bound.
 */
#ifndef STOUP_PRODUCER_CSV_PLAN_H
#define STOUP_PRODUCER_CSV_PLAN_H

#include <stdint.h>
#include "producer/csv.h"
#include "producer/ingest_csv.h"
#include "producer/schema_file.h"

/* One entry of --columns or --map, and the column of --time. */
struct stoup_csv_item {
	char field[STOUP_FIELD_NAME_CAP]; /* empty: the column is skipped */
	char *column; /* header name or "#3"; NULL: by position, or "-" was given */
	uint32_t field_idx;
	uint32_t column_idx;
};

struct stoup_csv_bind;

/* Reads the text of a cell as stoup_csv_value_parse does, where a preset has a way of its own. */
typedef int stoup_csv_read_value(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why);

struct stoup_csv_bind {
	const struct stoup_field *field; /* as which the text is read */
	const struct stoup_timestamp_format *format;
	stoup_csv_read_value *read; /* NULL: stoup_csv_value_parse */
	uint32_t column_idx;
	uint32_t field_idx;
	/* For `read`: */
	const struct stoup_preset_column *column;
	int64_t base_ns; /* midnight */
};

struct stoup_csv_plan {
	const struct stoup_csv_options *options;
	const struct stoup_schema *schema;
	struct stoup_schema_draft *draft; /* the schema's owner; NULL: a built-in one */
	struct stoup_preset_use *use;     /* what a preset adds; NULL: none */
	uint8_t *blank;                   /* a record of schema->stride bytes */
	char *text;                       /* copies of columns, map and time: items point into it */
	struct stoup_csv_item *items;
	uint32_t item_cnt;
	uint32_t column_cnt; /* of every row */
	uint32_t bind_cnt;
	uint32_t key_bind; /* the one of the key */
	struct stoup_csv_bind binds[STOUP_SCHEMA_FIELD_CAP];
};

/* Read the options and make the schema. 0; -EINVAL with text for options that are wrong in
 * themselves, -ENOMEM, or what reading a schema file gives. `options` must outlive the plan. */
int stoup_csv_plan_create(const struct stoup_csv_options *options, struct stoup_csv_plan **ret,
	struct stoup_error *err);

/* Bind the columns of a table whose first row is `row`. 1: the row is a header; 0: it is data;
 * -EINVAL with text where options and row do not fit. */
int stoup_csv_plan_bind(
	struct stoup_csv_plan *plan, const struct stoup_csv_row *row, struct stoup_error *err);

/* An empty plan, which a preset fills. 0 or -ENOMEM. */
int stoup_csv_plan_alloc(const struct stoup_csv_options *options, struct stoup_csv_plan **ret,
	struct stoup_error *err);

/* Make the blank record, once the schema is known. 0 or -ENOMEM. */
int stoup_csv_plan_blank(struct stoup_csv_plan *plan, struct stoup_error *err);

/* NULL is allowed. */
void stoup_csv_plan_destroy(struct stoup_csv_plan *plan);

#endif
