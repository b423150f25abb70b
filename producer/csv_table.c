/* SPDX-License-Identifier: Apache-2.0 */
/* csv_table.c - a delimited text as a stream of records (see csv_table.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "producer/csv_plan.h"
#include "producer/csv_table.h"
#include "producer/csv_value.h"
#include "shm/format.h"

#define QUOTE_LEN_CAP 40 /* bytes of an offending text in a message */
#define NAME_LEN_CAP  96 /* bytes of a path in a message: the end of a path says most */

struct stoup_csv_table {
	struct stoup_csv *csv;
	struct stoup_csv_plan *plan;
	const char *name;
	uint8_t *record;
	struct stoup_csv_bind key; /* once bound */
	int bound;
	int shared; /* the plan is another table's */
};

/* ---- messages -------------------------------------------------------------------------------- */

/* Copy at most QUOTE_LEN_CAP bytes of a text that may hold anything; dst has room for them + 4. */
static void quote_text(const struct stoup_csv_field *field, char *dst)
{
	size_t len = field->len < QUOTE_LEN_CAP ? field->len : QUOTE_LEN_CAP;

	/* Not in the middle of a UTF-8 sequence. */
	while (len && len < field->len && ((unsigned char)field->text[len] & 0xc0) == 0x80)
		len--;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)field->text[i];

		dst[i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	memcpy(dst + len, len < field->len ? "..." : "", len < field->len ? 4 : 1);
}

static void name_prefix(const struct stoup_csv_table *table, struct stoup_error *err)
{
	size_t len = strlen(table->name);

	if (len <= NAME_LEN_CAP)
		stoup_error_prefix(err, "%s", table->name);
	else
		stoup_error_prefix(err, "...%s", table->name + len - NAME_LEN_CAP);
}

static int value_error(const struct stoup_csv_table *table, const struct stoup_csv_row *row,
	const struct stoup_csv_bind *bind, const char *why, struct stoup_error *err)
{
	char text[QUOTE_LEN_CAP + 4];

	quote_text(&row->fields[bind->column_idx], text);
	return stoup_error_set(err, -EBADMSG, "line %llu, column %u (%s): \"%s\" %s",
		(unsigned long long)row->line, bind->column_idx + 1,
		table->plan->schema->fields[bind->field_idx].name, text, why);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Read the key of the record; 0, or -ERANGE for one that is undefined, not positive or too
 * large. */
static int key_read(const struct stoup_csv_table *table, int64_t *ret)
{
	const struct stoup_schema *schema = table->plan->schema;
	int64_t key;

	memcpy(&key, table->record + schema->key_off, sizeof key);
	if (key <= 0 || stoup_field_is_null(&schema->fields[table->key.field_idx], table->record))
		return -ERANGE;
	*ret = key;
	return 0;
}

static void key_find(struct stoup_csv_table *table)
{
	const struct stoup_csv_plan *plan = table->plan;

	for (uint32_t i = 0; i < plan->bind_cnt; i++) {
		if (plan->schema->fields[plan->binds[i].field_idx].flags & STOUP_FIELD_KEY)
			table->key = plan->binds[i];
	}
}

static int row_convert(struct stoup_csv_table *table, const struct stoup_csv_row *row,
	struct stoup_csv_record *ret, struct stoup_error *err)
{
	const struct stoup_csv_plan *plan = table->plan;
	const struct stoup_schema *schema = plan->schema;
	const char *why = "";

	if (row->field_cnt != plan->column_cnt)
		return stoup_error_set(err, -EBADMSG, "line %llu: %u columns instead of %u",
			(unsigned long long)row->line, row->field_cnt, plan->column_cnt);
	memcpy(table->record, plan->blank, schema->stride);
	for (uint32_t i = 0; i < plan->bind_cnt; i++) {
		const struct stoup_csv_bind *bind = &plan->binds[i];
		const struct stoup_csv_field *field = &row->fields[bind->column_idx];
		int rc;

		rc = stoup_csv_value_parse(&schema->fields[bind->field_idx],
			&plan->options->time_format, field->text, field->len, table->record, &why);
		if (rc)
			return value_error(table, row, bind, why, err);
	}
	if (key_read(table, &ret->key))
		return value_error(table, row, &table->key,
			"is not a time between 1970 and 2262, as a key must be", err);
	ret->bytes = table->record;
	ret->where = (struct stoup_where){table->name, row->line, row->file_off};
	return 1;
}

/* The first row: bind the columns, and if it is the header go on to the next. */
static int first_row(
	struct stoup_csv_table *table, struct stoup_csv_row *row, struct stoup_error *err)
{
	int rc = stoup_csv_plan_bind(table->plan, row, err);

	if (rc < 0)
		return rc;
	key_find(table);
	table->bound = 1;
	return rc ? stoup_csv_next(table->csv, row, err) : 1;
}

int stoup_csv_table_next(
	struct stoup_csv_table *table, struct stoup_csv_record *ret, struct stoup_error *err)
{
	struct stoup_csv_row row;
	int rc = stoup_csv_next(table->csv, &row, err);

	if (rc > 0 && !table->bound)
		rc = first_row(table, &row, err);
	if (rc > 0)
		rc = row_convert(table, &row, ret, err);
	if (rc == -EBADMSG || rc == -EMSGSIZE || rc == -EINVAL)
		name_prefix(table, err);
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

const struct stoup_schema *stoup_csv_table_schema(const struct stoup_csv_table *table)
{
	return table->plan->schema;
}

static int record_alloc(struct stoup_csv_table *table, struct stoup_error *err)
{
	size_t len = (table->plan->schema->stride + 63u) & ~(size_t)63;

	table->record = aligned_alloc(64, len);
	return table->record ? 0 : stoup_error_set(err, -ENOMEM, "out of memory");
}

int stoup_csv_table_create(stoup_csv_read_fn *read, void *source, const char *name,
	const struct stoup_csv_options *options, struct stoup_csv_table **ret,
	struct stoup_error *err)
{
	struct stoup_csv_table *table = calloc(1, sizeof *table);
	int rc;

	if (!table)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	table->name = name;
	rc = stoup_csv_plan_create(options, &table->plan, err);
	if (rc)
		goto out_destroy;
	rc = stoup_csv_create(read, source, options->delimiter, &table->csv, err);
	if (rc)
		goto out_destroy;
	rc = record_alloc(table, err);
	if (rc)
		goto out_destroy;
	*ret = table;
	return 0;
out_destroy:
	stoup_csv_table_destroy(table);
	return rc;
}

int stoup_csv_table_share(const struct stoup_csv_table *bound, stoup_csv_read_fn *read,
	void *source, struct stoup_csv_table **ret, struct stoup_error *err)
{
	struct stoup_csv_table *table = malloc(sizeof *table);
	int rc;

	if (!table)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	*table = *bound;
	table->shared = 1;
	table->csv = NULL;
	table->record = NULL;
	rc = stoup_csv_create(read, source, table->plan->options->delimiter, &table->csv, err);
	if (rc == 0)
		rc = record_alloc(table, err);
	if (rc) {
		stoup_csv_table_destroy(table);
		return rc;
	}
	*ret = table;
	return 0;
}

int stoup_csv_table_bound(const struct stoup_csv_table *table)
{
	return table->bound;
}

void stoup_csv_table_restart(struct stoup_csv_table *table, uint64_t line, uint64_t file_off)
{
	stoup_csv_restart(table->csv, line, file_off);
}

void stoup_csv_table_destroy(struct stoup_csv_table *table)
{
	if (!table)
		return;
	stoup_csv_destroy(table->csv);
	if (!table->shared)
		stoup_csv_plan_destroy(table->plan);
	free(table->record);
	free(table);
}
