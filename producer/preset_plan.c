/* SPDX-License-Identifier: Apache-2.0 */
/* preset_plan.c - schema and binds of a file whose preset is known (see preset_plan.h).
 *
 *      entries    one per column that the preset has, a book's levels one after the other
 *      schema     a field per entry: 8 bytes wide first, then the narrow ones, then texts
 *      binds      the entries whose column is in the file
 */
#include "producer/preset_plan.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/preset_shape.h"

#define NOTE_LIST_CAP 200
#define DAY_NS        INT64_C(86400000000000)

struct entry {
	const struct stoup_preset_column *column;
	uint32_t level;
	uint32_t column_idx; /* UINT32_MAX: not in the file */
	uint32_t field_idx;  /* UINT32_MAX: no field */
};

struct making {
	const struct stoup_preset *preset;
	const struct stoup_csv_options *options;
	const struct stoup_csv_row *first, *row; /* the first row, and the first of data */
	int header;
	struct stoup_csv_plan *plan;
	struct stoup_preset_use *use;
	struct entry entries[STOUP_SCHEMA_FIELD_CAP + 16];
	uint32_t entry_cnt;
	uint8_t used[STOUP_CSV_COLUMN_CAP]; /* columns of the file */
};

void stoup_preset_use_destroy(struct stoup_preset_use *use)
{
	if (use)
		free(atomic_load_explicit(&use->one_symbol, memory_order_relaxed));
	free(use);
}

/* ---- entries ------------------------------------------------------------------------------------ */

static int twice_error(const struct making *m, uint32_t a, uint32_t b, struct stoup_error *err)
{
	return stoup_error_set(err, -EINVAL,
		"line %llu: columns %u and %u are both named %.*s: rename the one that does not count",
		(unsigned long long)m->first->line, a + 1, b + 1, (int)m->first->fields[a].len,
		m->first->fields[a].text);
}

/* Of Date and Time, which is the time? */
static int either_error(
	const struct making *m, uint32_t a, uint32_t b, const char *field, struct stoup_error *err)
{
	const struct stoup_csv_field *fields = m->first->fields;

	return stoup_error_set(err, -EINVAL,
		"line %llu: columns %u (%.*s) and %u (%.*s) may both be %s of %s: rename or leave out the one "
		"that is not, or say what the columns are (--columns or --map); a date and a time of day must be "
		"joined in one column",
		(unsigned long long)m->first->line, a + 1, (int)fields[a].len, fields[a].text,
		b + 1, (int)fields[b].len, fields[b].text, field, m->preset->name);
}

/* The column of a header that an entry has. */
static int entry_find(struct making *m, struct entry *entry, struct stoup_error *err)
{
	const char *names = entry->column->names;
	uint32_t at = stoup_preset_find(m->first, names, entry->level);

	entry->column_idx = at;
	if (at == UINT32_MAX)
		return 0;
	for (uint32_t i = at + 1; i < m->first->field_cnt; i++) {
		const struct stoup_csv_field *other = &m->first->fields[i];
		struct stoup_field field;

		if (!stoup_preset_name_is(names, entry->level, other->text, other->len))
			continue;
		if (other->len == m->first->fields[at].len &&
			memcmp(other->text, m->first->fields[at].text, other->len) == 0)
			return twice_error(m, at, i, err);
		stoup_preset_field(m->options, entry->column, entry->level, &field);
		return either_error(m, at, i, field.name, err);
	}
	return 0;
}

static int entry_add(struct making *m, const struct stoup_preset_column *column, uint32_t level,
	uint32_t place, struct stoup_error *err)
{
	struct entry *entry = &m->entries[m->entry_cnt];
	int rc = 0;

	if (m->entry_cnt == sizeof(m->entries) / sizeof(m->entries[0]))
		return stoup_error_set(err, -EINVAL,
			"line %llu: more levels than fit into a record (127)",
			(unsigned long long)m->first->line);
	*entry = (struct entry){column, level, UINT32_MAX, UINT32_MAX};
	if (m->header)
		rc = entry_find(m, entry, err);
	else if (place < m->first->field_cnt)
		entry->column_idx = place;
	if (entry->column_idx != UINT32_MAX)
		m->used[entry->column_idx] = 1;
	m->entry_cnt++;
	return rc;
}

/* Levels of a header: as many as have the first column of a level. */
static uint32_t header_levels(const struct making *m, const struct stoup_preset_column *column)
{
	uint32_t cnt = 0;

	while (cnt < STOUP_CSV_COLUMN_CAP && stoup_preset_find(m->first, column->names,
						     m->preset->level_base + cnt) != UINT32_MAX)
		cnt++;
	return cnt;
}

static int levels_add(struct making *m, const struct stoup_preset_column *column, uint32_t place,
	struct stoup_error *err)
{
	const struct stoup_preset_column *end = column;
	uint32_t per_level, cnt;
	int rc = 0;

	while (end->names)
		end++;
	per_level = (uint32_t)(end - column);
	cnt = m->header ? header_levels(m, column) : (m->first->field_cnt - place) / per_level;
	if (!m->header && place + cnt * per_level != m->first->field_cnt)
		return stoup_error_set(err, -EINVAL,
			"line %llu: %u columns, which are no whole levels of %u",
			(unsigned long long)m->first->line, m->first->field_cnt, per_level);
	m->use->level_cnt = cnt;
	for (uint32_t i = 0; i < cnt * per_level && rc == 0; i++)
		rc = entry_add(m, &column[i % per_level], m->preset->level_base + i / per_level,
			place + i, err);
	return rc;
}

static int entries_make(struct making *m, struct stoup_error *err)
{
	const struct stoup_preset_column *column = m->preset->columns;
	int rc = 0;

	for (uint32_t place = 0; column->names && rc == 0; column++, place++) {
		if (column->flags & STOUP_PRESET_LEVEL)
			return levels_add(m, column, place, err);
		rc = entry_add(m, column, 0, place, err);
	}
	return rc;
}

/* Of a level all columns must be there; of the rest what is not optional was looked for before. */
static int entries_check(const struct making *m, struct stoup_error *err)
{
	for (uint32_t i = 0; i < m->entry_cnt; i++) {
		const struct entry *entry = &m->entries[i];
		struct stoup_field field;

		if (entry->column_idx != UINT32_MAX || entry->column->flags & STOUP_PRESET_OPTIONAL)
			continue;
		stoup_preset_field(m->options, entry->column, entry->level, &field);
		return stoup_error_set(err, -EINVAL, "line %llu: the column %s of %s is missing",
			(unsigned long long)m->first->line, field.name, m->preset->name);
	}
	return 0;
}

/* ---- length of bars ------------------------------------------------------------------------------- */

static const struct entry *entry_named(const struct making *m, const char *name)
{
	for (uint32_t i = 0; i < m->entry_cnt; i++)
		if (m->entries[i].column_idx != UINT32_MAX &&
			stoup_preset_name_is(m->entries[i].column->names, 0, name, strlen(name)))
			return &m->entries[i];
	return NULL;
}

static int time_of(const struct making *m, const struct entry *entry, int64_t *ret)
{
	const struct stoup_csv_field *cell = &m->row->fields[entry->column_idx];
	struct stoup_field field, as;
	struct stoup_csv_bind bind;
	uint8_t bytes[8];
	const char *why;

	stoup_preset_field(m->options, entry->column, 0, &field);
	stoup_preset_bind(
		m->preset, m->options, entry->column, &field, &m->use->format, &as, &bind);
	if (!bind.read || bind.read(&bind, cell->text, cell->len, bytes, &why) < 0)
		return -EINVAL;
	memcpy(ret, bytes, sizeof(bytes));
	return 0;
}

/* Klines say their length themselves: the close time is one unit before the next bar's open. */
static int64_t row_interval(const struct making *m)
{
	const struct entry *open = entry_named(m, "open_time"),
			   *close = entry_named(m, "close_time");
	int64_t open_ns, close_ns;

	if (!open || !close || m->row->field_cnt <= close->column_idx ||
		time_of(m, open, &open_ns) < 0 || time_of(m, close, &close_ns) < 0 ||
		close_ns <= open_ns)
		return 0;
	close_ns += close_ns % 1000000 ? 1000 : 1000000;
	return close_ns - open_ns;
}

/* Months have no length that all have. Klines of 28 to 31 days are months, whatever the name says. */
static int is_month(const struct making *m, int64_t of_row)
{
	return (m->use->path.has_interval && m->use->path.interval_ns == 0) ||
	       (of_row >= 28 * DAY_NS && of_row <= 31 * DAY_NS);
}

static int month_find(struct making *m, struct stoup_error *err)
{
	m->use->interval_ns = m->options->interval_ns;
	if (m->options->interval_ns >= 0)
		return 0;
	return stoup_error_set(err, -EINVAL,
		"line %llu: %s: months are not of one length: say the longest (--interval 31d), after "
		"which each of them is known",
		(unsigned long long)m->first->line, m->preset->name);
}

static int interval_find(struct making *m, struct stoup_error *err)
{
	int64_t of_row = row_interval(m);
	char a[STOUP_PRESET_INTERVAL_CAP], b[STOUP_PRESET_INTERVAL_CAP];

	if (is_month(m, of_row))
		return month_find(m, err);
	m->use->interval_ns = m->options->interval_ns >= 0 ? m->options->interval_ns
	                      : m->use->path.interval_ns   ? m->use->path.interval_ns
	                                                   : of_row;
	if (m->options->interval_ns < 0 && m->use->interval_ns == 0)
		return stoup_error_set(err, -EINVAL,
			"line %llu: %s: say how long the bars are (--interval 1m), since a bar is known only at "
			"its end (0: the times are the ends)",
			(unsigned long long)m->first->line, m->preset->name);
	if (of_row && m->use->interval_ns && of_row != m->use->interval_ns) {
		stoup_preset_interval(of_row, a);
		stoup_preset_interval(m->use->interval_ns, b);
		return stoup_error_set(err, -EINVAL,
			"line %llu: open and close time make a bar of %s, and %s says %s",
			(unsigned long long)m->row->line, a,
			m->options->interval_ns >= 0 ? "--interval" : "the file's name", b);
	}
	return 0;
}

/* ---- schema -------------------------------------------------------------------------------------- */

static int width_class(const struct stoup_field *field)
{
	return field->type == STOUP_TYPE_CHAR && field->cnt > 1 ? 2
	       : stoup_type_len(field->type) < 8                ? 1
	                                                        : 0;
}

static int has_field(const struct stoup_preset_column *column)
{
	return column->type != STOUP_PRESET_LEFT && column->type != STOUP_PRESET_EXCHANGE &&
	       column->type != STOUP_PRESET_SYMBOL;
}

static const char *fields_add(struct making *m, struct stoup_error *err)
{
	static _Thread_local char key[STOUP_FIELD_NAME_CAP];

	for (int class = 0; class < 3; class ++) {
		for (uint32_t i = 0; i < m->entry_cnt; i++) {
			struct entry *entry = &m->entries[i];
			struct stoup_field field;

			if (!has_field(entry->column))
				continue;
			stoup_preset_field(m->options, entry->column, entry->level, &field);
			if (width_class(&field) != class)
				continue;
			field.off = STOUP_FIELD_OFF_NATURAL;
			entry->field_idx = m->plan->draft->schema.field_cnt;
			if (entry->column->type == STOUP_PRESET_KEY)
				memcpy(key, field.name, sizeof(key));
			if (stoup_schema_draft_add(m->plan->draft, &field, err) < 0)
				return NULL;
		}
	}
	return key;
}

/* Books of different depth are different records: the name says so. */
static int schema_make(struct making *m, struct stoup_error *err)
{
	char name[STOUP_SCHEMA_NAME_CAP];
	const char *key;
	int rc;

	if (m->use->level_cnt)
		snprintf(name, sizeof(name), "%s-%u", m->preset->schema, m->use->level_cnt);
	else
		snprintf(name, sizeof(name), "%s", m->preset->schema);
	rc = stoup_schema_draft_create(name, &m->plan->draft, err);
	if (rc < 0)
		return rc;
	key = fields_add(m, err);
	if (!key)
		return -EINVAL;
	if (m->preset->flags & STOUP_PRESET_BARS) {
		m->plan->draft->schema.flags |= STOUP_SCHEMA_BAR;
		m->plan->draft->schema.interval_ns = (uint64_t)m->use->interval_ns;
	}
	rc = stoup_schema_draft_finish(m->plan->draft, key, err);
	m->plan->schema = &m->plan->draft->schema;
	return rc;
}

static int schema_builtin(struct making *m, struct stoup_error *err)
{
	const struct stoup_schema *builtin = stoup_schema_by_name(m->preset->schema);
	struct stoup_schema_draft *draft;
	int rc;

	if (m->options->scale >= 0 || m->options->size_scale >= 0)
		return stoup_error_set(err, -EINVAL,
			"--scale and --size-scale are not for %s: its schema, %s, has its scales",
			m->preset->name, builtin->name);
	rc = stoup_schema_draft_create(builtin->name, &draft, err);
	if (rc < 0)
		return rc;
	m->plan->draft = draft;
	memcpy(draft->fields, builtin->fields, builtin->field_cnt * sizeof(draft->fields[0]));
	draft->schema = *builtin;
	draft->schema.fields = draft->fields;
	if (m->preset->flags & STOUP_PRESET_BARS) {
		draft->schema.interval_ns = (uint64_t)m->use->interval_ns;
		draft->schema.hash = stoup_schema_hash(&draft->schema);
	}
	m->plan->schema = &draft->schema;
	for (uint32_t i = 0; i < m->entry_cnt; i++) {
		struct stoup_field made;
		const struct stoup_field *field;

		stoup_preset_field(m->options, m->entries[i].column, 0, &made);
		field = stoup_schema_field(builtin, made.name);
		if (field)
			m->entries[i].field_idx = (uint32_t)(field - builtin->fields);
	}
	return 0;
}

/* ---- binds --------------------------------------------------------------------------------------- */

static void binds_make(struct making *m)
{
	struct stoup_csv_plan *plan = m->plan;

	for (uint32_t i = 0; i < m->entry_cnt; i++) {
		const struct entry *entry = &m->entries[i];
		struct stoup_csv_bind *bind = &plan->binds[plan->bind_cnt];

		if (entry->column_idx == UINT32_MAX || entry->field_idx == UINT32_MAX)
			continue;
		stoup_preset_bind(m->preset, m->options, entry->column,
			&plan->schema->fields[entry->field_idx], &m->use->format,
			&m->use->as[plan->bind_cnt], bind);
		bind->column_idx = entry->column_idx;
		bind->field_idx = entry->field_idx;
		bind->base_ns = m->use->midnight_ns;
		if (entry->column->type == STOUP_PRESET_KEY)
			plan->key_bind = plan->bind_cnt;
		plan->bind_cnt++;
	}
}

static void names_columns(struct making *m)
{
	m->use->exchange_column = m->use->symbol_column = m->use->symbol_else_column = UINT32_MAX;
	for (uint32_t i = 0; i < m->entry_cnt; i++) {
		if (m->entries[i].column->type == STOUP_PRESET_EXCHANGE)
			m->use->exchange_column = m->entries[i].column_idx;
		if (m->entries[i].column->type == STOUP_PRESET_SYMBOL)
			m->use->symbol_column = m->entries[i].column_idx;
	}
}

/* Columns that the preset does not know are told: they are not stored. */
void stoup_preset_left_note(const struct stoup_csv_row *header, const uint8_t *used,
	const char *file, const struct stoup_sink *sink)
{
	char list[NOTE_LIST_CAP] = "", more[32] = "";
	uint32_t more_cnt = 0;
	size_t len = 0;

	for (uint32_t i = 0; i < header->field_cnt; i++) {
		const struct stoup_csv_field *name = &header->fields[i];

		if (used[i])
			continue;
		if (len + name->len + 16 > sizeof(list))
			more_cnt++;
		else if (name->len == 0)
			len += (size_t)snprintf(
				list + len, sizeof(list) - len, "%s#%u", len ? ", " : "", i + 1);
		else
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%.*s",
				len ? ", " : "", (int)name->len, name->text);
	}
	if (more_cnt)
		snprintf(more, sizeof(more), "%s%u more", len ? " and " : "", more_cnt);
	if (sink && (len || more_cnt))
		stoup_sink_note(sink, "%s: columns left out: %s%s", file, list, more);
}

/* ---- the plan -------------------------------------------------------------------------------------- */

static int options_check(const struct making *m, struct stoup_error *err)
{
	const char *name = m->options->columns ? "columns"
	                   : m->options->map   ? "map"
	                   : m->options->time  ? "time"
	                   : m->options->schema && !(m->preset->flags & STOUP_PRESET_DBN) ? "schema"
	                                                                                  : NULL;

	if (name)
		return stoup_error_set(err, -EINVAL,
			"--%s is not for --format %s, which knows its columns: leave one of them out",
			name, m->preset->name);
	if (m->options->interval_ns >= 0 && !(m->preset->flags & STOUP_PRESET_BARS))
		return stoup_error_set(err, -EINVAL,
			"--interval is for bars, and %s has none: leave it out", m->preset->name);
	if (m->options->day >= 0 && m->preset->clock != STOUP_PRESET_CLOCK_DAY)
		return stoup_error_set(err, -EINVAL,
			"--date is for times that count from midnight, and those of %s do not: leave it out",
			m->preset->name);
	if (m->options->time_format.kind != STOUP_TIMESTAMP_AUTO &&
		m->preset->clock == STOUP_PRESET_CLOCK_DAY)
		return stoup_error_set(err, -EINVAL,
			"--time-format is not for %s, whose times are seconds after midnight: leave it out",
			m->preset->name);
	return 0;
}

static int columns_plan(
	struct making *m, const char *file, const struct stoup_sink *sink, struct stoup_error *err)
{
	int rc = entries_make(m, err);

	if (rc == 0)
		rc = entries_check(m, err);
	if (rc < 0)
		return rc;
	names_columns(m);
	rc = stoup_preset_file(m->plan, file, m->first, m->header, sink, err);
	if (rc == 0 && m->preset->flags & STOUP_PRESET_BARS)
		rc = interval_find(m, err);
	if (rc == 0)
		rc = m->preset->flags & STOUP_PRESET_BUILTIN ? schema_builtin(m, err)
		                                             : schema_make(m, err);
	if (rc < 0)
		return rc;
	binds_make(m);
	if (m->header)
		stoup_preset_left_note(m->first, m->used, file, sink);
	return 0;
}

static void kind_set(struct making *m, const char *file)
{
	struct stoup_preset_use *use = m->use;
	const char *kind = m->preset->kind;
	char interval[STOUP_PRESET_INTERVAL_CAP];

	if (m->preset == &stoup_preset_binance_klines)
		kind = stoup_preset_binance_klines_kind(file);
	snprintf(use->kind, sizeof(use->kind), "%s", kind ? kind : m->plan->schema->name);
	if (use->level_cnt)
		snprintf(use->kind, sizeof(use->kind), "%s_%u", kind, use->level_cnt);
	if (use->interval_ns > 0 && kind) {
		stoup_preset_interval(use->interval_ns, interval);
		snprintf(use->kind, sizeof(use->kind), "%s-%s", kind, interval);
	}
}

static int plan_fill(
	struct making *m, const char *file, const struct stoup_sink *sink, struct stoup_error *err)
{
	int rc = options_check(m, err);

	m->use->preset = m->preset;
	m->use->format = stoup_preset_format(m->preset, m->options);
	m->plan->column_cnt = m->first->field_cnt;
	if (rc == 0)
		rc = m->preset->flags & STOUP_PRESET_DBN
		             ? stoup_preset_dbn_plan(m->plan, file, m->first, m->row, sink, err)
		             : columns_plan(m, file, sink, err);
	if (rc == 0)
		rc = stoup_csv_plan_blank(m->plan, err);
	if (rc < 0)
		return rc;
	kind_set(m, file);
	return 0;
}

int stoup_preset_plan(const struct stoup_preset *preset, const struct stoup_csv_options *options,
	const char *file, const struct stoup_csv_row *first, const struct stoup_csv_row *second,
	int header, const struct stoup_sink *sink, struct stoup_csv_plan **ret,
	struct stoup_error *err)
{
	struct making *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	*m = (struct making){.preset = preset,
		.options = options,
		.first = first,
		.row = header ? second : first,
		.header = header};
	rc = stoup_csv_plan_alloc(options, &m->plan, err);
	if (rc < 0)
		goto out_free;
	m->plan->use = m->use = calloc(1, sizeof(*m->use));
	rc = m->use ? plan_fill(m, file, sink, err)
	            : stoup_error_set(err, -ENOMEM, "out of memory");
	if (rc < 0)
		stoup_csv_plan_destroy(m->plan);
	else
		*ret = m->plan;
out_free:
	free(m);
	return rc;
}
