/* SPDX-License-Identifier: Apache-2.0 */
/* csv_table.c - a delimited text as a stream of records (see csv_table.h).
 *
 *      first row --generic--> plan_bind                  \
 *      first two --preset---> choose, preset_plan, route  |--> pending rows, then those of the reader
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "producer/csv_hint.h"
#include "producer/csv_hint_time.h"
#include "producer/csv_plan.h"
#include "producer/csv_route.h"
#include "producer/csv_table.h"
#include "producer/csv_value.h"
#include "producer/preset_plan.h"
#include "producer/preset_value.h"
#include "shm/format.h"

#define QUOTE_LEN_CAP 40 /* bytes of an offending text in a message */
#define NAME_LEN_CAP  96 /* bytes of a path in a message: the end of a path says most */
#define NAME_LEN_MIN  24 /* bytes of it at least */
#define UNIT_NOTE_CAP 3  /* switches of units that are told */

struct stoup_csv_table {
	struct stoup_csv *csv;
	struct stoup_csv_plan *plan;   /* NULL: of a preset, before the first row */
	struct stoup_csv_route *route; /* NULL: the series is that of the options */
	const struct stoup_csv_options *options;
	const struct stoup_sink *sink;
	const char *name;
	uint8_t *record, *record_before; /* swapped where repeated rows are looked for */
	struct stoup_csv_bind key;       /* once bound */
	struct stoup_csv_row *first;     /* the first row, kept */
	struct stoup_csv_row pending[2]; /* rows that were read and not given out yet */
	uint32_t pending_idx, pending_cnt;
	int bound;
	int shared;       /* plan and first row are another table's */
	int at_end;       /* this part of the text came to its end */
	int header;       /* `first` is one */
	int skipped;      /* rows of symbols that were not asked for */
	int uniques;      /* look for repeated rows */
	uint32_t key_len; /* of the text of the key in the row before */
	uint32_t unit_note_cnt;
	uint8_t unit; /* of the key, STOUP_PRESET_UNIT_*; 0: not known */
	int has_before, repeat_told;
	int64_t bar_key; /* of the bar before; 0: none yet */
	uint64_t row_cnt;
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

/* As much of the end of the path as the text leaves room for. */
static void name_prefix(const struct stoup_csv_table *table, struct stoup_error *err)
{
	size_t len = strlen(table->name), used, cap = NAME_LEN_CAP;

	/* What the source says names the file itself. */
	if (!err || strncmp(err->text, table->name, len) == 0)
		return;
	used = strlen(err->text) + sizeof("...: ");
	if (used + cap > sizeof(err->text))
		cap = used + NAME_LEN_MIN > sizeof(err->text) ? NAME_LEN_MIN
		                                              : sizeof(err->text) - used;
	if (len <= cap)
		stoup_error_prefix(err, "%s", table->name);
	else
		stoup_error_prefix(err, "...%s", table->name + len - cap);
}

/* Is a row the header once more? */
static int is_header_again(const struct stoup_csv_table *table, const struct stoup_csv_row *row)
{
	const struct stoup_csv_row *header = table->first;

	if (!table->header || row->field_cnt != header->field_cnt)
		return 0;
	for (uint32_t i = 0; i < row->field_cnt; i++)
		if (row->fields[i].len != header->fields[i].len ||
			memcmp(row->fields[i].text, header->fields[i].text, row->fields[i].len) !=
				0)
			return 0;
	return 1;
}

static int value_error(const struct stoup_csv_table *table, const struct stoup_csv_row *row,
	const struct stoup_csv_bind *bind, int code, const char *why, struct stoup_error *err)
{
	const struct stoup_csv_field *cell = &row->fields[bind->column_idx];
	char text[QUOTE_LEN_CAP + 4], form[STOUP_CSV_HINT_CAP], hint[STOUP_CSV_HINT_CAP];

	if (is_header_again(table, row))
		return stoup_error_set(err, -EBADMSG,
			"line %llu: the header again: were files put together? take this line out, or "
			"ingest them one by one",
			(unsigned long long)row->line);
	quote_text(cell, text);
	if (code == -EINVAL && bind->field->flags & STOUP_FIELD_TIME && !bind->read) {
		stoup_csv_hint_time(bind->format, cell->text, cell->len, form);
		why = form[0] ? form : why;
	}
	stoup_csv_hint_value(table->plan, bind, cell, code, hint);
	return stoup_error_set(err, -EBADMSG, "line %llu, column %u (%s): \"%s\" %s%s",
		(unsigned long long)row->line, bind->column_idx + 1, bind->field->name, text, why,
		hint);
}

static int columns_error(const struct stoup_csv_table *table, const struct stoup_csv_row *row,
	struct stoup_error *err)
{
	char hint[STOUP_CSV_HINT_CAP];

	stoup_csv_hint_columns(row, table->plan->column_cnt, table->options->delimiter,
		stoup_csv_unended(table->csv), hint);
	return stoup_error_set(err, -EBADMSG, "line %llu: %u columns instead of %u%s",
		(unsigned long long)row->line, row->field_cnt, table->plan->column_cnt, hint);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* The text of the key has another length than in the row before: does it have another unit? */
static void unit_look(struct stoup_csv_table *table, const struct stoup_csv_row *row)
{
	const struct stoup_csv_field *cell = &row->fields[table->key.column_idx];
	enum stoup_timestamp_kind kind = table->key.format->kind;
	uint8_t unit;

	table->key_len = cell->len;
	if (kind != STOUP_TIMESTAMP_AUTO && kind != STOUP_TIMESTAMP_EPOCH)
		return;
	unit = stoup_preset_unit(cell->text, cell->len);
	if (unit && table->unit && unit != table->unit && table->sink &&
		table->unit_note_cnt++ < UNIT_NOTE_CAP)
		stoup_sink_note(table->sink, "%s: line %llu: times go on in %s, %s before",
			table->name, (unsigned long long)row->line, stoup_preset_unit_name(unit),
			stoup_preset_unit_name(table->unit));
	table->unit = unit ? unit : table->unit;
}

/* A row that has a number of its own is the same as the one before. */
static void repeat_look(struct stoup_csv_table *table, const struct stoup_csv_row *row)
{
	uint8_t *before = table->record;

	if (table->has_before && !table->repeat_told && table->sink &&
		memcmp(table->record, table->record_before, table->plan->schema->stride) == 0) {
		table->repeat_told = 1;
		stoup_sink_note(table->sink,
			"%s: line %llu: the same row as before it: kept (more such rows may follow)",
			table->name, (unsigned long long)row->line);
	}
	table->has_before = 1;
	table->record = table->record_before;
	table->record_before = before;
}

/* A bar of the same time as the one before: most often the column of the time of day was left out. */
static void same_bar_look(
	struct stoup_csv_table *table, const struct stoup_csv_row *row, int64_t key)
{
	if (key == table->bar_key && !table->repeat_told && table->sink) {
		table->repeat_told = 1;
		stoup_sink_note(table->sink,
			"%s: line %llu: the same time as the bar before it: kept (more may follow; does "
			"the time of day stand in another column? join the two)",
			table->name, (unsigned long long)row->line);
	}
	table->bar_key = key;
}

struct stoup_csv_seen stoup_csv_table_seen(const struct stoup_csv_table *table)
{
	return (struct stoup_csv_seen){table->row_cnt, table->skipped};
}

void stoup_csv_table_finish(
	const struct stoup_csv_table *table, const struct stoup_csv_seen *others)
{
	if (!table->sink || table->row_cnt > 0 || others->row_cnt > 0)
		return;
	stoup_sink_note(table->sink, "%s: %s", table->name,
		table->skipped || others->skipped ? "holds no row of the symbols asked for"
		: table->first                    ? "a header, and no rows"
						  : "holds no rows");
}

/* This part of the text is at its end. */
static void end_notes(const struct stoup_csv_table *table)
{
	if (!table->sink)
		return;
	if (table->row_cnt > 0 && stoup_csv_unended(table->csv) &&
		!(table->plan->use && table->plan->use->preset->clock == STOUP_PRESET_CLOCK_DAY))
		stoup_sink_note(table->sink,
			"%s: the last line has no line end: is the file whole?", table->name);
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

static int row_convert(struct stoup_csv_table *table, const struct stoup_csv_row *row,
	struct stoup_csv_record *ret, struct stoup_error *err)
{
	const struct stoup_csv_plan *plan = table->plan;
	const struct stoup_schema *schema = plan->schema;
	const char *why = "";

	memcpy(table->record, plan->blank, schema->stride);
	for (uint32_t i = 0; i < plan->bind_cnt; i++) {
		const struct stoup_csv_bind *bind = &plan->binds[i];
		const struct stoup_csv_field *field = &row->fields[bind->column_idx];
		int rc;

		if (bind->read)
			rc = bind->read(bind, field->text, field->len, table->record, &why);
		else
			rc = stoup_csv_value_parse(bind->field, bind->format, field->text,
				field->len, table->record, &why);
		if (rc)
			return value_error(table, row, bind, rc, why, err);
	}
	if (key_read(table, &ret->key))
		return value_error(table, row, &table->key, 0,
			"is not a time between 1970 and 2262, as a key must be", err);
	if (row->fields[table->key.column_idx].len != table->key_len)
		unit_look(table, row);
	ret->bytes = table->record;
	ret->where = (struct stoup_where){table->name, row->line, row->file_off};
	table->row_cnt++;
	if (table->uniques)
		repeat_look(table, row);
	else if (schema->interval_ns && !table->route)
		same_bar_look(table, row, ret->key);
	return 1;
}

/* The next row that is asked for, as a record: 1; 0 at the end. */
static int record_next(
	struct stoup_csv_table *table, struct stoup_csv_record *ret, struct stoup_error *err)
{
	struct stoup_csv_row row;
	int rc = 0;

	ret->series = NULL;
	ret->slot = 0;
	while (rc == 0) {
		if (table->pending_idx < table->pending_cnt)
			row = table->pending[table->pending_idx++];
		else if ((rc = stoup_csv_next(table->csv, &row, err)) <= 0)
			return rc;
		if (row.field_cnt != table->plan->column_cnt)
			return columns_error(table, &row, err);
		rc = table->route ? stoup_csv_route_row(
					    table->route, &row, &ret->series, &ret->slot, err)
		                  : 1;
		table->skipped |= rc == 0;
	}
	return rc < 0 ? rc : row_convert(table, &row, ret, err);
}

int stoup_csv_table_next(
	struct stoup_csv_table *table, struct stoup_csv_record *ret, struct stoup_error *err)
{
	int rc = table->bound ? 1 : stoup_csv_table_bind(table, err);

	if (rc <= 0)
		return rc;
	rc = record_next(table, ret, err);
	if (rc == 0 && !table->at_end++)
		end_notes(table);
	if (rc == -EBADMSG || rc == -EMSGSIZE || rc == -EINVAL)
		name_prefix(table, err);
	return rc;
}

/* ---- the first rows -------------------------------------------------------------------------- */

static int record_alloc(struct stoup_csv_table *table, struct stoup_error *err)
{
	size_t len = (table->plan->schema->stride + 63u) & ~(size_t)63;

	table->record = aligned_alloc(64, len);
	table->record_before = aligned_alloc(64, len);
	return table->record && table->record_before
	               ? 0
	               : stoup_error_set(err, -ENOMEM, "out of memory");
}

static void pend(struct stoup_csv_table *table, const struct stoup_csv_row *row)
{
	table->pending[table->pending_cnt++] = *row;
}

/* What fits no preset, and has no columns told. */
static int unknown(const struct stoup_csv_row *row, struct stoup_error *err)
{
	char list[48];

	stoup_preset_list(row, list, sizeof(list));
	return stoup_error_set(err, -EINVAL,
		"line %llu: not the columns of a feed that is known (%s): say which it is (--format), or "
		"what they are (--columns, --map or --schema)",
		(unsigned long long)row->line, list);
}

static int preset_bind(struct stoup_csv_table *table, struct stoup_error *err)
{
	const struct stoup_preset *preset;
	struct stoup_csv_row second;
	int rc = stoup_preset_choose(
		table->options, table->name, table->first, &preset, &table->header, err);
	int more;

	if (rc == -ENOENT)
		return unknown(table->first, err);
	if (rc < 0)
		return rc;
	more = stoup_csv_next(table->csv, &second, err);
	if (more < 0)
		return more;
	if (table->header && more == 0)
		return 0;
	rc = stoup_preset_plan(preset, table->options, table->name, table->first,
		more ? &second : NULL, table->header, table->sink, &table->plan, err);
	if (rc == 0)
		rc = stoup_csv_route_create(table->plan, &table->route, err);
	if (rc == 0)
		rc = record_alloc(table, err);
	if (rc < 0)
		return rc;
	table->uniques = (preset->flags & STOUP_PRESET_UNIQUE) != 0;
	if (!table->header)
		pend(table, table->first);
	if (more)
		pend(table, &second);
	return 1;
}

static int plan_bind(struct stoup_csv_table *table, struct stoup_error *err)
{
	int rc = stoup_csv_plan_bind(table->plan, table->first, err);

	if (rc < 0)
		return rc;
	table->header = rc;
	if (!table->header)
		pend(table, table->first);
	return 1;
}

/* 0: this part of the text has not enough of them. */
static int first_rows(struct stoup_csv_table *table, struct stoup_error *err)
{
	char hint[STOUP_CSV_HINT_CAP];
	struct stoup_csv_row row;
	int rc;

	if (!table->first) {
		rc = stoup_csv_next(table->csv, &row, err);
		if (rc <= 0)
			return rc;
		table->first = stoup_csv_row_copy(&row);
		if (!table->first)
			return stoup_error_set(err, -ENOMEM, "out of memory");
	}
	rc = table->plan ? plan_bind(table, err) : preset_bind(table, err);
	if (rc == -EINVAL && err) {
		stoup_csv_hint_delimiter(table->first, table->options->delimiter, hint);
		strncat(err->text, hint, sizeof(err->text) - strlen(err->text) - 1);
	}
	if (rc <= 0)
		return rc;
	table->key = table->plan->binds[table->plan->key_bind];
	table->bound = 1;
	return 1;
}

int stoup_csv_table_bind(struct stoup_csv_table *table, struct stoup_error *err)
{
	int rc = table->bound ? 1 : first_rows(table, err);

	if (rc == -EBADMSG || rc == -EMSGSIZE || rc == -EINVAL)
		name_prefix(table, err);
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

const struct stoup_schema *stoup_csv_table_schema(const struct stoup_csv_table *table)
{
	return table->plan->schema;
}

void stoup_csv_table_sink(struct stoup_csv_table *table, const struct stoup_sink *sink)
{
	table->sink = sink;
}

/* A preset that was named, by --format or by the file, may have a delimiter of its own. */
static char delimiter_of(const struct stoup_csv_options *options, const char *file)
{
	if (options->delimiter_given || !stoup_preset_wanted(options))
		return options->delimiter;
	for (size_t i = 0; stoup_presets[i]; i++) {
		const struct stoup_preset *preset = stoup_presets[i];

		if (preset->delimiter &&
			(options->format ? strcmp(options->format, preset->name) == 0
					 : stoup_preset_path_is(preset, file)))
			return preset->delimiter;
	}
	return options->delimiter;
}

int stoup_csv_table_create(stoup_csv_read_fn *read, void *source, const char *name,
	const struct stoup_csv_options *options, struct stoup_csv_table **ret,
	struct stoup_error *err)
{
	struct stoup_csv_table *table = calloc(1, sizeof *table);
	int rc = 0;

	if (!table)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	table->name = name;
	table->options = options;
	if (!stoup_preset_wanted(options)) {
		rc = stoup_csv_plan_create(options, &table->plan, err);
		if (rc == 0)
			rc = record_alloc(table, err);
	}
	if (rc == 0)
		rc = stoup_csv_create(read, source, delimiter_of(options, name), &table->csv, err);
	if (rc < 0) {
		stoup_csv_table_destroy(table);
		return rc;
	}
	*ret = table;
	return 0;
}

int stoup_csv_table_share(const struct stoup_csv_table *bound, stoup_csv_read_fn *read,
	void *source, struct stoup_csv_table **ret, struct stoup_error *err)
{
	struct stoup_csv_table *table = calloc(1, sizeof *table);
	int rc;

	if (!table)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	*table = (struct stoup_csv_table){.plan = bound->plan,
		.options = bound->options,
		.name = bound->name,
		.key = bound->key,
		.first = bound->first,
		.header = bound->header,
		.uniques = bound->uniques,
		.bound = 1,
		.shared = 1};
	rc = stoup_csv_create(
		read, source, delimiter_of(table->options, table->name), &table->csv, err);
	if (rc == 0 && bound->route)
		rc = stoup_csv_route_create(table->plan, &table->route, err);
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
	table->at_end = table->has_before = 0;
	table->unit = 0;
	table->key_len = 0;
	table->bar_key = 0;
}

void stoup_csv_table_destroy(struct stoup_csv_table *table)
{
	if (!table)
		return;
	stoup_csv_route_destroy(table->route);
	stoup_csv_destroy(table->csv);
	if (!table->shared) {
		stoup_csv_plan_destroy(table->plan);
		free(table->first);
	}
	free(table->record);
	free(table->record_before);
	free(table);
}
