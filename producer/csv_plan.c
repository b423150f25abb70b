/* SPDX-License-Identifier: Apache-2.0 */
/* csv_plan.c - from options to a schema and a list of items (see csv_plan.h).
 *
 *      --columns "ts:time,bid:price,-"       items by position; "flags=-" gives a field up
 *      --map "bid:price=Bid,ask:price=#3"    items by header name or number; "flags=-" as well
 *
 * Without --schema the items' types make the schema, which is called "csv".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "producer/csv_plan.h"
#include "producer/csv_value.h"
#include "producer/preset_plan.h"

#define MADE_SCHEMA_NAME "csv"
#define MADE_KEY_NAME    "ts" /* of the column of --time */

/* ---- lists ----------------------------------------------------------------------------------- */

static char *trim(char *text)
{
	size_t len;

	while (*text == ' ' || *text == '\t')
		text++;
	len = strlen(text);
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		text[--len] = '\0';
	return text;
}

static int item_error(
	const char *option, const char *entry, const char *what, struct stoup_error *err)
{
	return stoup_error_set(err, -EINVAL, "--%s: \"%.60s\" %s", option, entry, what);
}

/* Append the field of an item to the schema that is being made. `type` may be NULL. */
static int item_add_field(struct stoup_csv_plan *plan, const char *option,
	const struct stoup_csv_item *item, const char *type, struct stoup_error *err)
{
	struct stoup_field field = {.off = STOUP_FIELD_OFF_NATURAL};
	int scale = plan->options->scale;

	if (!type)
		return item_error(option, item->field,
			"has no type; write name:type with time, price, u8 to u64, i8 to i64, f32, "
			"f64 or "
			"char[N]",
			err);
	if (stoup_schema_type_parse(type, strlen(type), &field) || field.type == STOUP_TYPE_BYTES)
		return item_error(option, type,
			"is not a type: time, price, u8 to u64, i8 to i64, f32, f64, char[N]", err);
	if (strcmp(type, "price") == 0 && scale >= 0)
		field.exp10 = (int8_t)-scale;
	memcpy(field.name, item->field, sizeof field.name);
	return stoup_schema_draft_add(plan->draft, &field, err);
}

/* Read "name[:type]" into an item; with a schema being made, add the field. */
static int item_field(struct stoup_csv_plan *plan, const char *option, char *name,
	struct stoup_csv_item *item, struct stoup_error *err)
{
	char *colon = strchr(name, ':');
	char *type = NULL;

	if (colon) {
		*colon = '\0';
		type = trim(colon + 1);
		name = trim(name);
	}
	if (*name == '\0' || strlen(name) >= sizeof item->field)
		return item_error(option, name, "is not a field's name (1 to 35 characters)", err);
	memcpy(item->field, name, strlen(name));
	if (!plan->options->schema)
		return item_add_field(plan, option, item, type, err);
	if (type)
		return item_error(option, name, "has a type, but --schema says the types", err);
	return 0;
}

/* One entry of a list; `by_name` for --map. */
static int item_parse(
	struct stoup_csv_plan *plan, char *entry, int by_name, struct stoup_error *err)
{
	const char *option = by_name ? "map" : "columns";
	struct stoup_csv_item *item = &plan->items[plan->item_cnt];
	char *equals = strchr(entry, '=');
	int given_up;

	item->column_idx = UINT32_MAX;
	if (by_name && !equals)
		return item_error(option, entry, "is not of the form field=column", err);
	if (equals) {
		*equals = '\0';
		item->column = trim(equals + 1);
		entry = trim(entry);
	}
	given_up = equals && strcmp(item->column, "-") == 0;
	if (equals && !given_up && !by_name)
		return item_error(option, entry, "has a column; by position only field=- may", err);
	if (given_up) {
		item->column = NULL;
		if (!plan->options->schema)
			return item_error(option, entry, "=- makes sense only with --schema", err);
	} else if (!by_name) {
		item->column_idx = plan->column_cnt++;
	}
	plan->item_cnt++;
	if (!by_name && !given_up && strcmp(entry, "-") == 0)
		return 0;
	return item_field(plan, option, entry, item, err);
}

static int list_parse(struct stoup_csv_plan *plan, char *list, int by_name, struct stoup_error *err)
{
	char *entry;

	while ((entry = strsep(&list, ",")) != NULL) {
		int rc = item_parse(plan, trim(entry), by_name, err);

		if (rc)
			return rc;
	}
	return 0;
}

/* ---- schema ---------------------------------------------------------------------------------- */

/* Levenshtein distance of two names shorter than STOUP_SCHEMA_NAME_CAP: a row of the usual table. */
static size_t name_distance(const char *a, const char *b)
{
	size_t row[STOUP_SCHEMA_NAME_CAP + 1], a_len = strlen(a), b_len = strlen(b);

	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[b_len];
}

/* A name is near when a third of it, and one letter at least, is mistyped at most, or when it is the
 * beginning of a built-in one. */
static int name_near(const char *name, const char *builtin, size_t *ret_distance)
{
	size_t len = strlen(name);

	if (len == 0 || len >= STOUP_SCHEMA_NAME_CAP)
		return 0;
	*ret_distance = name_distance(name, builtin);
	if (len >= 2 && strncmp(name, builtin, len) == 0)
		*ret_distance = 1;
	return *ret_distance <= (len < 6 ? 1 : len / 3);
}

/* The two nearest of the built-in names; all of them are too many for one line. */
static int schema_unknown(const char *name, struct stoup_error *err)
{
	const char *near[2] = {NULL, NULL};
	size_t near_distance[2] = {SIZE_MAX, SIZE_MAX}, distance;

	for (size_t i = 0; stoup_schema_builtin(i); i++) {
		const char *builtin = stoup_schema_builtin(i)->name;

		if (!name_near(name, builtin, &distance) || distance >= near_distance[1])
			continue;
		near[1] = builtin;
		near_distance[1] = distance;
		if (distance < near_distance[0]) {
			near[1] = near[0];
			near_distance[1] = near_distance[0];
			near[0] = builtin;
			near_distance[0] = distance;
		}
	}
	if (!near[0] && stoup_preset_named(name))
		return stoup_error_set(err, -EINVAL,
			"schema %.64s is that of a feed: its files are read by --format %.64s",
			name, name);
	if (!near[0])
		return stoup_error_set(err, -EINVAL,
			"schema %.64s: no such file, nor built in: mbo, trades, tick, bar and what "
			"else docs/schemas.md lists",
			name);
	return stoup_error_set(err, -EINVAL,
		"schema %.64s: no such file, nor built in: did you mean %s%s%s?", name, near[0],
		near[1] ? " or " : "", near[1] ? near[1] : "");
}

/* A private copy of a built-in schema, to be changed. */
static int schema_copy(struct stoup_csv_plan *plan, struct stoup_error *err)
{
	struct stoup_schema_draft *draft;
	int rc = stoup_schema_draft_create(plan->schema->name, &draft, err);

	if (rc)
		return rc;
	memcpy(draft->fields, plan->schema->fields,
		plan->schema->field_cnt * sizeof draft->fields[0]);
	draft->schema = *plan->schema;
	draft->schema.fields = draft->fields;
	plan->draft = draft;
	plan->schema = &draft->schema;
	return 0;
}

/* Bars need their length, and only bars have one. */
static int schema_interval(struct stoup_csv_plan *plan, struct stoup_error *err)
{
	const struct stoup_schema *schema = plan->schema;
	int64_t interval_ns = plan->options->interval_ns;

	if (!(schema->flags & STOUP_SCHEMA_BAR)) {
		if (interval_ns < 0)
			return 0;
		return stoup_error_set(err, -EINVAL,
			"--interval is for bars, and schema %s has none; leave it out",
			schema->name);
	}
	if (interval_ns < 0 && schema->interval_ns)
		return 0;
	if (interval_ns < 0)
		return stoup_error_set(err, -EINVAL,
			"schema %s: say how long the bars are (--interval 1m), since a bar is "
			"known only at "
			"its end (0: the times are the ends)",
			schema->name);
	if (schema->interval_ns && schema->interval_ns != (uint64_t)interval_ns)
		return stoup_error_set(err, -EINVAL,
			"schema %s has bars of another length than --interval", schema->name);
	if (!plan->draft) {
		int rc = schema_copy(plan, err);

		if (rc)
			return rc;
	}
	plan->draft->schema.interval_ns = (uint64_t)interval_ns;
	plan->draft->schema.hash = stoup_schema_hash(&plan->draft->schema);
	return 0;
}

static int schema_named(struct stoup_csv_plan *plan, struct stoup_error *err)
{
	const char *name = plan->options->schema;
	int rc;

	if (plan->options->scale >= 0)
		return stoup_error_set(err, -EINVAL,
			"--scale is for columns with a type of their own; schema %.64s has its "
			"scales",
			name);
	plan->schema = stoup_schema_by_name(name);
	if (!plan->schema) {
		if (!strchr(name, '/') && access(name, F_OK) != 0)
			return schema_unknown(name, err);
		rc = stoup_schema_file_load(name, &plan->draft, err);
		if (rc)
			return rc;
		plan->schema = &plan->draft->schema;
	}
	if (plan->schema->flags & STOUP_SCHEMA_VARIABLE)
		return stoup_error_set(err, -EINVAL, "schema %s holds messages, not rows", name);
	return schema_interval(plan, err);
}

/* The key of a schema that was made from typed columns: --time, or the only time. */
static const char *made_key(const struct stoup_csv_plan *plan, struct stoup_error *err)
{
	const struct stoup_schema *schema = &plan->draft->schema;
	const char *key = NULL;

	if (plan->options->columns && plan->options->time)
		return plan->options->time;
	if (plan->options->time)
		return MADE_KEY_NAME;
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		if (!(schema->fields[i].flags & STOUP_FIELD_TIME))
			continue;
		if (key) {
			(void)stoup_error_set(err, -EINVAL,
				"both %s and %s are times: say which is the key (--time)", key,
				schema->fields[i].name);
			return NULL;
		}
		key = schema->fields[i].name;
	}
	if (!key)
		(void)stoup_error_set(err, -EINVAL,
			"no column is the key: give one the type time, or name it with --time");
	return key;
}

static int schema_made(struct stoup_csv_plan *plan, struct stoup_error *err)
{
	const char *key = made_key(plan, err);
	int rc;

	if (!key)
		return -EINVAL;
	if (plan->options->interval_ns >= 0) {
		plan->draft->schema.flags |= STOUP_SCHEMA_BAR;
		plan->draft->schema.interval_ns = (uint64_t)plan->options->interval_ns;
	}
	rc = stoup_schema_draft_finish(plan->draft, key, err);
	plan->schema = &plan->draft->schema;
	return rc;
}

/* --time names the column of the key: an item of its own, in front of those of --map. */
static int time_item(struct stoup_csv_plan *plan, char *column, struct stoup_error *err)
{
	struct stoup_csv_item *item = &plan->items[plan->item_cnt++];
	const char *field = MADE_KEY_NAME;

	if (plan->options->schema)
		field = plan->schema->fields[0].name;
	for (uint32_t i = 0; plan->options->schema && i < plan->schema->field_cnt; i++) {
		if (plan->schema->fields[i].flags & STOUP_FIELD_KEY)
			field = plan->schema->fields[i].name;
	}
	memcpy(item->field, field, strlen(field));
	item->column = column;
	item->column_idx = UINT32_MAX;
	return plan->options->schema ? 0 : item_add_field(plan, "time", item, "time", err);
}

/* Find the field of every item; each may be named once. */
static int items_resolve(struct stoup_csv_plan *plan, struct stoup_error *err)
{
	uint8_t seen[STOUP_SCHEMA_FIELD_CAP] = {0};

	for (uint32_t i = 0; i < plan->item_cnt; i++) {
		struct stoup_csv_item *item = &plan->items[i];
		const struct stoup_field *field;

		item->field_idx = UINT32_MAX;
		if (item->field[0] == '\0')
			continue;
		field = stoup_schema_field(plan->schema, item->field);
		if (!field)
			return stoup_error_set(err, -EINVAL, "schema %s has no field %s",
				plan->schema->name, item->field);
		item->field_idx = (uint32_t)(field - plan->schema->fields);
		if (seen[item->field_idx]++)
			return stoup_error_set(
				err, -EINVAL, "two columns for the field %s", item->field);
	}
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static size_t text_len(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Copy the texts that items point into, and make room for the items. */
static int plan_alloc(struct stoup_csv_plan *plan, struct stoup_error *err)
{
	const struct stoup_csv_options *options = plan->options;
	const char *list = options->columns ? options->columns : options->map ? options->map : "";
	size_t item_cnt = 2; /* the last of the list, and --time */

	for (const char *at = list; *at; at++)
		item_cnt += *at == ',';
	if (item_cnt > STOUP_CSV_COLUMN_CAP)
		return stoup_error_set(err, -EINVAL, "more than %u columns", STOUP_CSV_COLUMN_CAP);
	plan->items = calloc(item_cnt, sizeof *plan->items);
	plan->text = malloc(strlen(list) + 1 + text_len(options->time) + 1);
	if (!plan->items || !plan->text)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	memcpy(plan->text, list, strlen(list) + 1);
	if (options->time)
		memcpy(plan->text + strlen(list) + 1, options->time, text_len(options->time));
	return 0;
}

static int plan_fill(struct stoup_csv_plan *plan, struct stoup_error *err)
{
	const struct stoup_csv_options *options = plan->options;
	char *list = plan->text, *time = plan->text + strlen(plan->text) + 1;
	int rc;

	rc = options->schema ? schema_named(plan, err)
	                     : stoup_schema_draft_create(MADE_SCHEMA_NAME, &plan->draft, err);
	if (!rc && options->time && !options->columns)
		rc = time_item(plan, time, err);
	if (!rc && *list)
		rc = list_parse(plan, list, options->columns == NULL, err);
	if (!rc && !options->schema)
		rc = schema_made(plan, err);
	if (!rc)
		rc = items_resolve(plan, err);
	return rc ? rc : stoup_csv_plan_blank(plan, err);
}

/* DBN's records begin with their own length in words, which no CSV has. */
static void length_set(const struct stoup_schema *schema, uint8_t *record)
{
	const struct stoup_field *field = stoup_schema_field(schema, "length");

	if (field && field->off == 0 && field->type == STOUP_TYPE_U8 &&
		(field->flags & STOUP_FIELD_HIDDEN) && stoup_schema_field(schema, "rtype"))
		record[0] = (uint8_t)(schema->stride / 4);
}

int stoup_csv_plan_blank(struct stoup_csv_plan *plan, struct stoup_error *err)
{
	plan->blank = calloc(1, plan->schema->stride);
	if (!plan->blank)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	stoup_csv_value_blank(plan->schema, plan->blank);
	length_set(plan->schema, plan->blank);
	return 0;
}

int stoup_csv_plan_alloc(const struct stoup_csv_options *options, struct stoup_csv_plan **ret,
	struct stoup_error *err)
{
	struct stoup_csv_plan *plan = calloc(1, sizeof *plan);

	if (!plan)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	plan->options = options;
	*ret = plan;
	return 0;
}

static int options_check(const struct stoup_csv_options *options, struct stoup_error *err)
{
	if (options->columns && options->map)
		return stoup_error_set(err, -EINVAL,
			"--columns names columns by position and --map by header: give one of "
			"them");
	if (!options->columns && !options->map && !options->schema)
		return stoup_error_set(err, -EINVAL,
			"say what the columns are: --columns \"ts:time,bid:price,ask:price\" by "
			"position, "
			"--map \"bid:price=Bid\" by header name, or --schema");
	if (options->columns && options->schema && options->time)
		return stoup_error_set(err, -EINVAL,
			"--time is of no use with --schema and --columns: the schema says which "
			"field is the "
			"key");
	return 0;
}

int stoup_csv_plan_create(const struct stoup_csv_options *options, struct stoup_csv_plan **ret,
	struct stoup_error *err)
{
	struct stoup_csv_plan *plan = NULL;
	int rc = options_check(options, err);

	if (rc)
		return rc;
	rc = stoup_csv_plan_alloc(options, &plan, err);
	if (rc)
		return rc;
	rc = plan_alloc(plan, err);
	if (!rc)
		rc = plan_fill(plan, err);
	if (rc) {
		stoup_csv_plan_destroy(plan);
		return rc;
	}
	*ret = plan;
	return 0;
}

void stoup_csv_plan_destroy(struct stoup_csv_plan *plan)
{
	if (!plan)
		return;
	stoup_schema_draft_destroy(plan->draft);
	stoup_preset_use_destroy(plan->use);
	free(plan->blank);
	free(plan->items);
	free(plan->text);
	free(plan);
}
