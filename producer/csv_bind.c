/* SPDX-License-Identifier: Apache-2.0 */
/* csv_bind.c - the first row of a table meets the plan (see csv_plan.h).
 *
 *      a named column is used?  yes -> the row is a header, find the names
 *                               no  -> bind by number; is it a header? (--header, or: nothing in
 *                                      it parses as a number or time)
 *      header and schema?       -> fields named like columns bind too
 *      every field filled, or allowed to be empty?
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/csv_plan.h"
#include "producer/csv_value.h"
#include "shm/decimal.h"

#define HEADER_LIST_CAP 120 /* bytes of a header in a message */
#define HEADER_PART_CAP 64  /* where the message says more besides */

static int header_is(const struct stoup_csv_field *field, const char *name)
{
	const char *text = field->text;
	size_t len = field->len;

	while (len && (text[0] == ' ' || text[0] == '\t')) {
		text++;
		len--;
	}
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	return len == strlen(name) && memcmp(text, name, len) == 0;
}

/* Index of the column with that header; UINT32_MAX where there is none, `*ret_twice` where two. */
static uint32_t header_find(const struct stoup_csv_row *row, const char *name, int *ret_twice)
{
	uint32_t found = UINT32_MAX;

	*ret_twice = 0;
	for (uint32_t i = 0; i < row->field_cnt; i++) {
		if (!header_is(&row->fields[i], name))
			continue;
		*ret_twice = found != UINT32_MAX;
		found = i;
	}
	return found;
}

/* The header as it stands, as far as it fits into a message. */
static void header_list(const struct stoup_csv_row *row, char *dst, size_t cap)
{
	size_t len = 0;

	for (uint32_t i = 0; i < row->field_cnt; i++) {
		const struct stoup_csv_field *field = &row->fields[i];

		if (len + field->len + 2 >= cap)
			break;
		if (i)
			dst[len++] = ',';
		for (uint32_t j = 0; j < field->len; j++)
			dst[len++] = (unsigned char)field->text[j] < 0x20 ? '?' : field->text[j];
	}
	dst[len] = '\0';
}

static int is_number(const char *column)
{
	return column[0] == '#' && column[1] >= '1' && column[1] <= '9';
}

static int number_bind(
	const struct stoup_csv_row *row, struct stoup_csv_item *item, struct stoup_error *err)
{
	uint64_t number;

	if (stoup_decimal_parse_u64(item->column + 1, strlen(item->column + 1), 0, &number) ||
		number > row->field_cnt)
		return stoup_error_set(err, -EINVAL, "line %llu: there is no column %s, only %u",
			(unsigned long long)row->line, item->column, row->field_cnt);
	item->column_idx = (uint32_t)number - 1;
	return 0;
}

static int name_bind(
	const struct stoup_csv_row *row, struct stoup_csv_item *item, struct stoup_error *err)
{
	char list[HEADER_LIST_CAP];
	int twice;

	item->column_idx = header_find(row, item->column, &twice);
	if (twice)
		return stoup_error_set(err, -EINVAL,
			"line %llu: two columns are named %s; name it by its number, such as #%u",
			(unsigned long long)row->line, item->column, item->column_idx + 1);
	if (item->column_idx != UINT32_MAX)
		return 0;
	header_list(row, list, sizeof list);
	return stoup_error_set(err, -EINVAL,
		"line %llu: no column is named %.40s; the first row is: %s",
		(unsigned long long)row->line, item->column, list);
}

static void bind_add(struct stoup_csv_plan *plan, uint32_t column_idx, uint32_t field_idx)
{
	const struct stoup_field *field = &plan->schema->fields[field_idx];

	if (field->flags & STOUP_FIELD_KEY)
		plan->key_bind = plan->bind_cnt;
	plan->binds[plan->bind_cnt++] = (struct stoup_csv_bind){.field = field,
		.format = &plan->options->time_format,
		.column_idx = column_idx,
		.field_idx = field_idx};
}

/* Bind what the items say. Sets `*ret_named` if a header name was needed. */
static int bind_items(struct stoup_csv_plan *plan, const struct stoup_csv_row *row, int *ret_named,
	struct stoup_error *err)
{
	*ret_named = 0;
	for (uint32_t i = 0; i < plan->item_cnt; i++) {
		struct stoup_csv_item *item = &plan->items[i];
		int rc = 0;

		if (item->column && is_number(item->column)) {
			rc = number_bind(row, item, err);
		} else if (item->column) {
			*ret_named = 1;
			rc = name_bind(row, item, err);
		}
		if (rc)
			return rc;
		if (item->column_idx != UINT32_MAX && item->field_idx != UINT32_MAX)
			bind_add(plan, item->column_idx, item->field_idx);
	}
	return 0;
}

/* A header has no number and no time in the columns that are to hold them. 1, 0 or -ENOMEM. */
static int looks_like_header(
	const struct stoup_csv_plan *plan, const struct stoup_csv_row *row, struct stoup_error *err)
{
	uint8_t *record = calloc(1, plan->schema->stride);
	int header = 0;

	if (!record)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < plan->bind_cnt; i++) {
		const struct stoup_field *field = &plan->schema->fields[plan->binds[i].field_idx];
		const struct stoup_csv_field *text = &row->fields[plan->binds[i].column_idx];
		const char *why;

		if (field->type == STOUP_TYPE_CHAR || text->len == 0)
			continue;
		header = stoup_csv_value_parse(field, &plan->options->time_format, text->text,
				 text->len, record, &why) != 0;
		if (!header)
			break;
	}
	free(record);
	return header;
}

static int is_header(const struct stoup_csv_plan *plan, const struct stoup_csv_row *row, int named,
	struct stoup_error *err)
{
	enum stoup_csv_header option = plan->options->header;

	if (option == STOUP_CSV_HEADER_NO && (named || plan->bind_cnt == 0))
		return stoup_error_set(err, -EINVAL,
			"without a header (--header no) columns have no names: use --columns, or "
			"numbers "
			"(--map field=#3)");
	if (named || plan->bind_cnt == 0 || option == STOUP_CSV_HEADER_YES)
		return 1;
	if (option == STOUP_CSV_HEADER_NO)
		return 0;
	return looks_like_header(plan, row, err);
}

/* With a schema, columns named as fields fill them. */
static int bind_same_names(
	struct stoup_csv_plan *plan, const struct stoup_csv_row *row, struct stoup_error *err)
{
	for (uint32_t i = 0; i < plan->schema->field_cnt; i++) {
		struct stoup_csv_item same = {.column_idx = UINT32_MAX};
		uint32_t item_idx = 0;
		int twice, rc;

		while (item_idx < plan->item_cnt && plan->items[item_idx].field_idx != i)
			item_idx++;
		memcpy(same.field, plan->schema->fields[i].name, sizeof same.field);
		if (item_idx < plan->item_cnt ||
			plan->schema->fields[i].flags & STOUP_FIELD_HIDDEN ||
			header_find(row, same.field, &twice) == UINT32_MAX)
			continue;
		same.column = same.field;
		rc = name_bind(row, &same, err);
		if (rc)
			return rc;
		bind_add(plan, same.column_idx, i);
	}
	return 0;
}

/* Every field has a column, or an empty value, or was given up. */
static int check_complete(const struct stoup_csv_plan *plan, const struct stoup_csv_row *row,
	int header, struct stoup_error *err)
{
	char list[HEADER_PART_CAP] = "";

	if (header)
		header_list(row, list, sizeof(list));
	for (uint32_t i = 0; i < plan->schema->field_cnt; i++) {
		const struct stoup_field *field = &plan->schema->fields[i];
		int is_key = field->flags & STOUP_FIELD_KEY, bound = 0, given_up = 0;

		for (uint32_t j = 0; j < plan->bind_cnt; j++)
			bound |= plan->binds[j].field_idx == i;
		for (uint32_t j = 0; j < plan->item_cnt; j++)
			given_up |= plan->items[j].field_idx == i;
		if (bound || (!is_key && (given_up ||
						 field->flags &
							 (STOUP_FIELD_NULL | STOUP_FIELD_HIDDEN) ||
						 field->type == STOUP_TYPE_CHAR)))
			continue;
		if (is_key)
			return stoup_error_set(err, -EINVAL,
				"no column holds the key %s of schema %s: name it (--time COLUMN)%s%s",
				field->name, plan->schema->name,
				header ? "; the first row is: " : "", list);
		return stoup_error_set(err, -EINVAL,
			"no column holds %s of schema %s, which cannot be undefined: name it "
			"(--map %s=COLUMN), or leave it zero (%s=-)",
			field->name, plan->schema->name, field->name, field->name);
	}
	return 0;
}

int stoup_csv_plan_bind(
	struct stoup_csv_plan *plan, const struct stoup_csv_row *row, struct stoup_error *err)
{
	int named, header, rc;

	if (plan->options->columns && plan->column_cnt != row->field_cnt)
		return stoup_error_set(err, -EINVAL,
			"line %llu has %u columns, but --columns names %u (use - for one to skip)",
			(unsigned long long)row->line, row->field_cnt, plan->column_cnt);
	plan->column_cnt = row->field_cnt;
	if (plan->options->header == STOUP_CSV_HEADER_NO && !plan->options->columns) {
		for (uint32_t i = 0; i < plan->item_cnt; i++) {
			if (plan->items[i].column && !is_number(plan->items[i].column))
				return is_header(plan, row, 1, err);
		}
	}
	rc = bind_items(plan, row, &named, err);
	if (rc)
		return rc;
	header = is_header(plan, row, named, err);
	if (header < 0)
		return header;
	if (header && plan->options->schema && !plan->options->columns) {
		rc = bind_same_names(plan, row, err);
		if (rc)
			return rc;
	}
	rc = check_complete(plan, row, header, err);
	return rc ? rc : header;
}
