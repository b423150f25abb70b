/* SPDX-License-Identifier: Apache-2.0 */
/* preset_databento.c - Databento's CSV into the built-in DBN schemas.
 *
 *      rtype of the first row --> schema (mbp-1 and tbbo share one: --schema, or the file's name, decides)
 *      header                 --> its fields, by name; `length`, which CSV has not, is the record's
 *      symbol                 --> name of the series; else the instrument's number, as with DBN
 *
 * Times are ISO or whole nanoseconds, prices have a point or count 1e-9: which, the first row tells, and
 * a row that has it otherwise is refused. In files that stoup wrote whole prices have no point.
 */
#include "producer/preset.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/csv_value.h"
#include "producer/preset_plan.h"
#include "producer/preset_value.h"
#include "producer/schema_file.h"
#include "shm/decimal.h"

static const struct stoup_preset_column columns[] = {
	{.names = "ts_event", .type = STOUP_PRESET_TIME},
	{.names = "rtype", .type = STOUP_PRESET_BYTE},
	{.names = "publisher_id", .type = STOUP_PRESET_ID},
	{.names = "instrument_id", .type = STOUP_PRESET_ID},
	{.names = "symbol", .type = STOUP_PRESET_SYMBOL, .flags = STOUP_PRESET_OPTIONAL},
	{.names = NULL},
};

static const char *const paths[] = {"*.mbo", "*.trades", "*.mbp-1", "*.tbbo", "*.mbp-10",
	"*.ohlcv-*", "*.bbo-*", "*.status", "*.imbalance", NULL};

const struct stoup_preset stoup_preset_databento_csv = {
	.name = "databento-csv",
	.what = "Databento CSV",
	.exchange = "databento",
	.columns = columns,
	.paths = paths,
	.clock = STOUP_PRESET_CLOCK_TEXT,
	.flags = STOUP_PRESET_DBN,
};

/* ---- schema -------------------------------------------------------------------------------------- */

static const struct {
	uint8_t rtype;
	const char *schema;
} kinds[] = {{0xa0, "mbo"}, {0x00, "trades"}, {0x01, "mbp-1"}, {0x01, "tbbo"}, {0x0a, "mbp-10"},
	{0x20, "ohlcv-1s"}, {0x21, "ohlcv-1m"}, {0x22, "ohlcv-1h"}, {0x23, "ohlcv-1d"},
	{0x24, "ohlcv-eod"}, {0xc3, "bbo-1s"}, {0xc4, "bbo-1m"}, {0xb1, "cmbp-1"}, {0xc2, "tcbbo"},
	{0xc0, "cbbo-1s"}, {0xc1, "cbbo-1m"}, {0x12, "status"}, {0x14, "imbalance"}};

#define KIND_CNT (sizeof(kinds) / sizeof(kinds[0]))

/* ".tbbo." or ".tbbo" at the end of a path. */
static int path_has(const char *file, const char *schema)
{
	const char *slash = strrchr(file, '/');
	size_t len = strlen(schema);

	for (const char *at = slash ? slash : file; (at = strchr(at, '.')) != NULL; at++)
		if (strncmp(at + 1, schema, len) == 0 &&
			(at[1 + len] == '.' || at[1 + len] == '\0'))
			return 1;
	return 0;
}

const char *stoup_preset_dbn_kind(const char *file)
{
	for (size_t i = 0; i < KIND_CNT; i++)
		if (path_has(file, kinds[i].schema))
			return kinds[i].schema;
	return "";
}

static int rtype_read(const struct stoup_csv_row *header, const struct stoup_csv_row *row,
	uint64_t *ret, struct stoup_error *err)
{
	static const struct stoup_field u8 = {.type = STOUP_TYPE_U8, .cnt = 1};
	static const struct stoup_timestamp_format unused;
	uint32_t at = stoup_preset_find(header, "rtype", 0);
	const char *why = "is missing";
	uint8_t rtype = 0;

	if (at >= row->field_cnt || stoup_csv_value_parse(&u8, &unused, row->fields[at].text,
					    row->fields[at].len, &rtype, &why) < 0)
		return stoup_error_set(err, -EINVAL,
			"line %llu: the cell of rtype %s, and the schema depends on it",
			(unsigned long long)row->line, why);
	*ret = rtype;
	return 0;
}

static int schema_find(struct stoup_csv_plan *plan, const char *file,
	const struct stoup_csv_row *header, const struct stoup_csv_row *row,
	struct stoup_error *err)
{
	const char *asked = plan->options->schema, *found = NULL, *other = NULL;
	uint64_t rtype = 0;
	int rc = rtype_read(header, row, &rtype, err);

	for (size_t i = 0; i < KIND_CNT && rc == 0; i++) {
		const char *name = kinds[i].schema;

		if (kinds[i].rtype != rtype || (asked && strcmp(asked, name) != 0))
			continue;
		if (found && path_has(file, found))
			continue;
		if (found && !path_has(file, name))
			other = name;
		if (!found || path_has(file, name))
			found = name;
	}
	if (rc < 0)
		return rc;
	if (!found)
		return stoup_error_set(err, -EINVAL,
			"line %llu: records of rtype %u are not read from CSV%s%s: ingest the DBN file",
			(unsigned long long)row->line, (unsigned)rtype,
			asked ? " as --schema " : "", asked ? asked : "");
	if (other)
		return stoup_error_set(err, -EINVAL,
			"line %llu: the columns are those of %s and of %s: say which (--schema %s)",
			(unsigned long long)row->line, found, other, found);
	plan->schema = stoup_schema_by_name(found);
	return 0;
}

/* ---- binds --------------------------------------------------------------------------------------- */

/* Have prices a point? Decided by the first row's first price that is not empty. */
static int has_point(const struct stoup_csv_plan *plan, const struct stoup_csv_row *row)
{
	for (uint32_t i = 0; i < plan->bind_cnt; i++) {
		const struct stoup_csv_bind *bind = &plan->binds[i];
		const struct stoup_csv_field *cell = &row->fields[bind->column_idx];

		if (bind->field->exp10 != 0 && bind->column_idx < row->field_cnt && cell->len > 0)
			return memchr(cell->text, '.', cell->len) != NULL;
	}
	return 1;
}

static int read_point(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	if (len > 0 && !memchr(text, '.', len)) {
		*ret_why =
			"has no point, and the first row's price has one: is it in units of 1e-9?";
		return -EINVAL;
	}
	return stoup_preset_read_dbn(bind, text, len, record, ret_why);
}

static int read_units(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	if (memchr(text, '.', len)) {
		*ret_why = "has a point, and the first row's price counts units of 1e-9";
		return -EINVAL;
	}
	return stoup_preset_read_dbn(bind, text, len, record, ret_why);
}

/* What `stoup export` and `stoup cat` write: fields in the order of the record, times as text, and
 * decimals without zeros at their end, so that a whole price has no point. Databento begins with a
 * time. A count of 1e-9 under the limit would be a price under 0.01. */
#define WHOLE_LIMIT INT64_C(10000000)

static int is_exported(const struct stoup_csv_plan *plan, const struct stoup_csv_row *header,
	const struct stoup_csv_row *row)
{
	uint32_t at = plan->binds[plan->key_bind].column_idx;

	return stoup_preset_find(header, "rtype", 0) == 0 && at < row->field_cnt &&
	       memchr(row->fields[at].text, 'T', row->fields[at].len) != NULL;
}

static int is_whole(const char *text, size_t len)
{
	int64_t value;

	return stoup_decimal_parse(text, len, 0, &value) == 0 && value > -WHOLE_LIMIT &&
	       value < WHOLE_LIMIT;
}

static int read_exported(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	if (is_whole(text, len))
		return stoup_preset_read_dbn(bind, text, len, record, ret_why);
	return read_point(bind, text, len, record, ret_why);
}

/* Are the prices of an exported file decimals? They are, but for counts that are beyond doubt. */
static int whole_first(const struct stoup_csv_plan *plan, const struct stoup_csv_row *row)
{
	for (uint32_t i = 0; i < plan->bind_cnt; i++) {
		const struct stoup_csv_bind *bind = &plan->binds[i];
		const struct stoup_csv_field *cell = &row->fields[bind->column_idx];

		if (bind->field->exp10 != 0 && bind->column_idx < row->field_cnt && cell->len > 0)
			return is_whole(cell->text, cell->len);
	}
	return 1;
}

static void prices_bind(struct stoup_csv_plan *plan, const struct stoup_csv_row *header,
	const struct stoup_csv_row *row)
{
	int exported = is_exported(plan, header, row);
	int point = has_point(plan, row) || (exported && whole_first(plan, row));

	for (uint32_t i = 0; i < plan->bind_cnt; i++) {
		struct stoup_csv_bind *bind = &plan->binds[i];
		struct stoup_field *as = &plan->use->as[i];

		if (bind->field->exp10 == 0)
			continue;
		bind->read = !point ? read_units : exported ? read_exported : read_point;
		if (point)
			continue;
		*as = *bind->field;
		as->exp10 = 0;
		bind->field = as;
	}
}

/* The rtype of all rows must be the schema's. */
static int read_rtype(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	int rc = stoup_csv_value_parse(bind->field, bind->format, text, len, record, ret_why);

	if (rc == 0 && record[bind->field->off] != (uint8_t)bind->base_ns) {
		*ret_why = "is another kind of record than in the first row: a file has one";
		return -EINVAL;
	}
	return rc;
}

static int field_bind(struct stoup_csv_plan *plan, uint32_t idx, const struct stoup_csv_row *header,
	uint8_t *used, struct stoup_error *err)
{
	const struct stoup_field *field = &plan->schema->fields[idx];
	struct stoup_csv_bind *bind = &plan->binds[plan->bind_cnt];
	uint32_t at = stoup_preset_find(header, field->name, 0);

	if (field->flags & STOUP_FIELD_HIDDEN)
		return 0;
	if (at == UINT32_MAX)
		return stoup_error_set(err, -EINVAL,
			"line %llu: the column %s of schema %s is missing",
			(unsigned long long)header->line, field->name, plan->schema->name);
	used[at] = 1;
	*bind = (struct stoup_csv_bind){.field = field,
		.format = &plan->use->format,
		.read = stoup_preset_read_dbn,
		.column_idx = at,
		.field_idx = idx};
	if (field->flags & STOUP_FIELD_KEY)
		plan->key_bind = plan->bind_cnt;
	plan->bind_cnt++;
	return 0;
}

static void rtype_bind(struct stoup_csv_plan *plan)
{
	for (uint32_t i = 0; i < plan->bind_cnt; i++) {
		if (strcmp(plan->binds[i].field->name, "rtype") != 0)
			continue;
		plan->binds[i].read = read_rtype;
		for (size_t k = 0; k < KIND_CNT; k++)
			if (strcmp(kinds[k].schema, plan->schema->name) == 0)
				plan->binds[i].base_ns = kinds[k].rtype;
	}
}

/* glbx-mdp3-20240101.mbo.csv is of GLBX.MDP3. */
void stoup_preset_dbn_dataset(const char *file, char dst[STOUP_PRESET_TEXT_CAP])
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	const char *dash = strchr(name, '-'), *end = dash ? strchr(dash + 1, '-') : NULL;
	size_t len = end ? (size_t)(end - name) : 0;

	if (!end || len >= STOUP_PRESET_TEXT_CAP || end[1] < '0' || end[1] > '9')
		return;
	for (size_t i = 0; i < len; i++)
		dst[i] = name[i] == '-' ? '.' : (char)toupper((unsigned char)name[i]);
	dst[len] = '\0';
}

int stoup_preset_dbn_plan(struct stoup_csv_plan *plan, const char *file,
	const struct stoup_csv_row *header, const struct stoup_csv_row *row,
	const struct stoup_sink *sink, struct stoup_error *err)
{
	struct stoup_preset_use *use = plan->use;
	uint8_t used[STOUP_CSV_COLUMN_CAP] = {0};
	int rc;

	if (plan->options->scale >= 0 || plan->options->size_scale >= 0)
		return stoup_error_set(err, -EINVAL,
			"--scale and --size-scale are not for databento-csv: DBN's prices have 9 decimals");
	rc = schema_find(plan, file, header, row, err);
	for (uint32_t i = 0; rc == 0 && i < plan->schema->field_cnt; i++)
		rc = field_bind(plan, i, header, used, err);
	if (rc < 0)
		return rc;
	prices_bind(plan, header, row);
	rtype_bind(plan);
	use->exchange_column = UINT32_MAX;
	use->symbol_column = stoup_preset_find(header, "symbol", 0);
	use->symbol_else_column = stoup_preset_find(header, "instrument_id", 0);
	if (use->symbol_column != UINT32_MAX)
		used[use->symbol_column] = 1;
	else
		use->symbol_column = use->symbol_else_column;
	rc = stoup_preset_file(plan, file, header, 1, sink, err);
	if (!plan->options->exchange)
		stoup_preset_dbn_dataset(file, use->exchange);
	stoup_preset_left_note(header, used, file, sink);
	return rc;
}
