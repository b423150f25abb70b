/* SPDX-License-Identifier: Apache-2.0 */
/* csv_hint.c - see csv_hint.h. */
#include "producer/csv_hint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "producer/preset.h"

/* ---- values --------------------------------------------------------------------------------------- */

/* The option that says how many decimals a field keeps, or NULL. */
static const char *scale_option(
	const struct stoup_csv_plan *plan, const struct stoup_csv_bind *bind)
{
	const struct stoup_preset_column *column = bind->column;

	if (column && (column->scale || (plan->draft && stoup_schema_by_name(plan->schema->name))))
		return NULL;
	if (column)
		return column->type == STOUP_PRESET_PRICE  ? "scale"
		       : column->type == STOUP_PRESET_SIZE ? "size-scale"
		                                           : NULL;
	/* Of columns with a type of their own only those of the type price have a scale. */
	return !plan->options->schema && bind->field->exp10 != 0 ? "scale" : NULL;
}

static int is_word(const struct stoup_csv_field *cell, const char *const *words)
{
	const char *text = cell->text;
	size_t len = cell->len;

	while (len && strchr(" \t+-", *text)) {
		text++;
		len--;
	}
	while (len && strchr(" \t", text[len - 1]))
		len--;
	for (; *words; words++)
		if (strlen(*words) == len && strncasecmp(*words, text, len) == 0)
			return 1;
	return 0;
}

static const char *text_hint(const struct stoup_csv_field *cell)
{
	static const char *const undefined[] = {
		"nan", "null", "none", "na", "n/a", "#n/a", "nil", "undefined", NULL};
	static const char *const infinite[] = {"inf", "infinity", NULL};
	const char *comma = memchr(cell->text, ',', cell->len);
	size_t behind = comma ? cell->len - (size_t)(comma - cell->text) - 1 : 0;

	if (is_word(cell, undefined))
		return " (what is undefined has an empty cell)";
	if (is_word(cell, infinite))
		return " (no field holds infinity)";
	if (memchr(cell->text, '\r', cell->len))
		return " (a CR inside the line: do lines end with CR alone? tr '\\r' '\\n')";
	if (comma && (memchr(cell->text, '.', cell->len) || memchr(comma + 1, ',', behind)))
		return " (commas between thousands? take them out)";
	if (comma)
		return " (a decimal comma, or one between thousands? write 1234.5)";
	if (memchr(cell->text, ';', cell->len))
		return " (is ';' the delimiter? --delimiter ';')";
	return "";
}

/* Does the cell begin as `shape` does? There a 0 is any digit, all else itself. */
static int is_shaped(const struct stoup_csv_field *cell, const char *shape)
{
	if (cell->len < strlen(shape))
		return 0;
	for (size_t i = 0; shape[i]; i++) {
		const char c = cell->text[i];

		if (shape[i] == '0' ? c < '0' || c > '9' : c != shape[i])
			return 0;
	}
	return 1;
}

/* Times as people write them, which no form that is found by itself has. */
static void time_hint(const struct stoup_csv_field *cell, char dst[STOUP_CSV_HINT_CAP])
{
	static const char *const days[] = {"00.00.0000", "00/00/0000", "00-00-0000", NULL};

	for (const char *const *day = days; *day; day++)
		if (is_shaped(cell, *day))
			snprintf(dst, STOUP_CSV_HINT_CAP,
				" (as text: --time-format '%%d%c%%m%c%%Y %%H:%%M:%%S', in the order that stands there)",
				(*day)[2], (*day)[2]);
	if (is_shaped(cell, "0000/00/00") || is_shaped(cell, "0000.00.00"))
		snprintf(dst, STOUP_CSV_HINT_CAP,
			" (as text: --time-format '%%Y%c%%m%c%%d %%H:%%M:%%S', as it stands there)",
			cell->text[4], cell->text[4]);
	else if (is_shaped(cell, "00:00") || is_shaped(cell, "0:00"))
		snprintf(dst, STOUP_CSV_HINT_CAP,
			" (a time of day: date and time belong into one column; docs/schemas.md, Times)");
}

void stoup_csv_hint_value(const struct stoup_csv_plan *plan, const struct stoup_csv_bind *bind,
	const struct stoup_csv_field *cell, int code, char dst[STOUP_CSV_HINT_CAP])
{
	const char *option = scale_option(plan, bind);

	dst[0] = '\0';
	if (bind->field->flags & STOUP_FIELD_TIME && code == -EINVAL)
		time_hint(cell, dst);
	if (bind->field->flags & STOUP_FIELD_TIME || bind->field->type == STOUP_TYPE_CHAR)
		return;
	if (code == -EDOM && option)
		snprintf(dst, STOUP_CSV_HINT_CAP, " (%d decimals; more: --%s N)",
			-bind->field->exp10, option);
	else if (code == -ERANGE && option && cell->len && cell->text[0] != '-')
		snprintf(dst, STOUP_CSV_HINT_CAP, " (with %d decimals; fewer: --%s N)",
			-bind->field->exp10, option);
	else if (code == -EINVAL)
		snprintf(dst, STOUP_CSV_HINT_CAP, "%s", text_hint(cell));
}

/* ---- rows ----------------------------------------------------------------------------------------- */

void stoup_csv_hint_columns(const struct stoup_csv_row *row, uint32_t column_cnt, char delimiter,
	int ends, char dst[STOUP_CSV_HINT_CAP])
{
	dst[0] = '\0';
	if (row->field_cnt == column_cnt + 1 && row->fields[column_cnt].len == 0)
		snprintf(dst, STOUP_CSV_HINT_CAP,
			": the last is empty, a '%c' at the end of the line", delimiter);
	else if (row->field_cnt < column_cnt && ends)
		snprintf(dst, STOUP_CSV_HINT_CAP, ": the file is cut there");
	else if (row->field_cnt > column_cnt)
		snprintf(dst, STOUP_CSV_HINT_CAP, ": is there a '%c' inside a value?", delimiter);
}

void stoup_csv_hint_delimiter(
	const struct stoup_csv_row *row, char delimiter, char dst[STOUP_CSV_HINT_CAP])
{
	static const struct {
		char c;
		const char *option;
	} others[] = {{';', "';'"}, {'\t', "tab"}, {'|', "'|'"}, {',', "','"}};
	const char *found = NULL;
	size_t best = 0;

	dst[0] = '\0';
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && row->field_cnt <= 2; i++) {
		size_t cnt = 0;

		for (uint32_t f = 0; f < row->field_cnt; f++)
			for (uint32_t j = 0; j < row->fields[f].len; j++)
				cnt += row->fields[f].text[j] == others[i].c;
		if (others[i].c == delimiter || cnt < row->field_cnt || cnt <= best)
			continue;
		best = cnt;
		found = others[i].option;
	}
	if (found)
		snprintf(dst, STOUP_CSV_HINT_CAP,
			"; the columns seem to have another delimiter (--delimiter %s)", found);
}
