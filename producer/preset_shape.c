/* SPDX-License-Identifier: Apache-2.0 */
/* preset_shape.c - see preset_shape.h. */
#include "producer/preset_shape.h"

#include <stdio.h>
#include <string.h>
#include "producer/csv_value.h"
#include "producer/preset_value.h"

#define COLUMNS_CAP 120

/* ---- fields ------------------------------------------------------------------------------------- */

static void field_number(struct stoup_field *field, uint8_t type, int scale, int nullable)
{
	uint32_t bits = 8 * stoup_type_len(type);
	int is_signed = type == STOUP_TYPE_I64 || type == STOUP_TYPE_I8;

	field->type = type;
	field->cnt = 1;
	field->exp10 = (int8_t)-scale;
	if (!nullable)
		return;
	field->flags |= STOUP_FIELD_NULL;
	field->null_bits = UINT64_MAX >> (64 - bits + (uint32_t)is_signed);
}

static void field_name(
	const struct stoup_preset_column *column, uint32_t level, struct stoup_field *ret)
{
	const char *own = column->field ? column->field : column->names;
	size_t len = strcspn(own, "|");
	const char *mark = memchr(own, '%', len);

	if (mark)
		snprintf(ret->name, sizeof(ret->name), "%.*s%u%.*s", (int)(mark - own), own, level,
			(int)(own + len - mark - 2), mark + 2);
	else
		snprintf(ret->name, sizeof(ret->name), "%.*s", (int)len, own);
}

static int scale_of(const struct stoup_preset_column *column, int option, int otherwise)
{
	return column->scale ? column->scale : option >= 0 ? option : otherwise;
}

void stoup_preset_field(const struct stoup_csv_options *options,
	const struct stoup_preset_column *column, uint32_t level, struct stoup_field *ret)
{
	int nullable = !(column->flags & STOUP_PRESET_FULL);
	int optional = column->flags & STOUP_PRESET_OPTIONAL;

	*ret = (struct stoup_field){.off = 0};
	field_name(column, level, ret);
	switch (column->type) {
	case STOUP_PRESET_KEY:
	case STOUP_PRESET_TIME:
		field_number(ret, STOUP_TYPE_I64, 0, nullable);
		ret->flags |= STOUP_FIELD_TIME;
		break;
	case STOUP_PRESET_PRICE:
		field_number(ret, STOUP_TYPE_I64,
			scale_of(column, options->scale, STOUP_CSV_SCALE_DEFAULT), nullable);
		break;
	case STOUP_PRESET_SIZE:
		field_number(ret, STOUP_TYPE_U64,
			scale_of(column, options->size_scale, STOUP_CSV_SIZE_SCALE_DEFAULT),
			nullable);
		break;
	case STOUP_PRESET_ID:
		field_number(ret, STOUP_TYPE_U64, 0, optional);
		break;
	case STOUP_PRESET_SIGN:
		field_number(ret, STOUP_TYPE_I8, 0, optional);
		break;
	case STOUP_PRESET_BYTE:
	case STOUP_PRESET_BOOL:
		field_number(ret, STOUP_TYPE_U8, 0, optional);
		break;
	default:
		ret->type = STOUP_TYPE_CHAR;
		ret->cnt = column->type == STOUP_PRESET_TEXT ? column->len : 1;
	}
}

/* ---- reading ------------------------------------------------------------------------------------ */

struct stoup_timestamp_format stoup_preset_format(
	const struct stoup_preset *preset, const struct stoup_csv_options *options)
{
	struct stoup_timestamp_format format = options->time_format;

	if (!options->zone_given)
		format.zone_s = preset->zone_s;
	return format;
}

/* Times have the reader of the preset's clock, but where the user says how they are written. */
static stoup_csv_read_value *time_reader(
	const struct stoup_preset *preset, const struct stoup_csv_options *options)
{
	if (preset->clock == STOUP_PRESET_CLOCK_DAY)
		return stoup_preset_read_day;
	if (preset->clock == STOUP_PRESET_CLOCK_TEXT ||
		options->time_format.kind != STOUP_TIMESTAMP_AUTO)
		return NULL;
	return preset->units == STOUP_PRESET_UNIT_US ? stoup_preset_read_us
	                                             : stoup_preset_read_ms_us;
}

void stoup_preset_bind(const struct stoup_preset *preset, const struct stoup_csv_options *options,
	const struct stoup_preset_column *column, const struct stoup_field *field,
	const struct stoup_timestamp_format *format, struct stoup_field *as,
	struct stoup_csv_bind *ret)
{
	*ret = (struct stoup_csv_bind){.field = field, .format = format, .column = column};
	if (column->type == STOUP_PRESET_KEY || column->type == STOUP_PRESET_TIME)
		ret->read = time_reader(preset, options);
	else if (column->type == STOUP_PRESET_WORD)
		ret->read = stoup_preset_read_word;
	else if (column->type == STOUP_PRESET_BOOL)
		ret->read = stoup_preset_read_bool;
	else if (column->flags & STOUP_PRESET_DUMMY)
		ret->read = stoup_preset_read_dummy;
	if (column->flags & STOUP_PRESET_COUNTS) {
		*as = *field;
		as->exp10 = 0;
		ret->field = as;
	}
}

/* ---- rows without a header ------------------------------------------------------------------------ */

static uint32_t column_cnt(const struct stoup_preset *preset, uint32_t *ret_level_off)
{
	uint32_t cnt = 0;

	*ret_level_off = UINT32_MAX;
	for (; preset->columns[cnt].names; cnt++)
		if (preset->columns[cnt].flags & STOUP_PRESET_LEVEL && *ret_level_off > cnt)
			*ret_level_off = cnt;
	return cnt;
}

/* Columns of levels stand last, again and again. */
uint32_t stoup_preset_column_at(
	const struct stoup_preset *preset, uint32_t place, uint32_t *ret_level)
{
	uint32_t level_off, cnt = column_cnt(preset, &level_off);

	*ret_level = preset->level_base;
	if (place < level_off || cnt <= level_off)
		return place;
	*ret_level += (place - level_off) / (cnt - level_off);
	return level_off + (place - level_off) % (cnt - level_off);
}

static int cell_fits(const struct stoup_csv_options *options, const struct stoup_preset *preset,
	const struct stoup_preset_column *column, const struct stoup_csv_field *cell,
	const char **ret_why)
{
	const struct stoup_timestamp_format format = stoup_preset_format(preset, options);
	struct stoup_field field, as;
	struct stoup_csv_bind bind;
	uint8_t record[256] = {0};

	*ret_why = "is no name of a symbol";
	if (column->type == STOUP_PRESET_SYMBOL || column->type == STOUP_PRESET_EXCHANGE)
		return cell->len > 0 && !memchr("0123456789.+-", cell->text[0], 13);
	if (column->type == STOUP_PRESET_LEFT)
		return 1;
	stoup_preset_field(options, column, 0, &field);
	stoup_preset_bind(preset, options, column, &field, &format, &as, &bind);
	if (bind.read)
		return bind.read(&bind, cell->text, cell->len, record, ret_why) == 0;
	return stoup_csv_value_parse(
		       bind.field, bind.format, cell->text, cell->len, record, ret_why) == 0;
}

uint32_t stoup_preset_shape(const struct stoup_csv_options *options,
	const struct stoup_preset *preset, const struct stoup_csv_row *row, const char **ret_why)
{
	for (uint32_t i = 0; i < row->field_cnt; i++) {
		uint32_t level;
		const struct stoup_preset_column *column =
			&preset->columns[stoup_preset_column_at(preset, i, &level)];

		if (!cell_fits(options, preset, column, &row->fields[i], ret_why))
			return i;
	}
	return UINT32_MAX;
}

const char *stoup_preset_columns(const struct stoup_preset *preset)
{
	static _Thread_local char text[COLUMNS_CAP];
	size_t len = 0;

	text[0] = '\0';
	for (const struct stoup_preset_column *column = preset->columns; column->names; column++) {
		int name_len = (int)strcspn(column->names, "|");

		if (len + (size_t)name_len + sizeof(", ...") >= sizeof(text)) {
			snprintf(text + len, sizeof(text) - len, ", ...");
			break;
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", len ? ", " : "",
			name_len, column->names);
	}
	return text;
}
