/* SPDX-License-Identifier: Apache-2.0 */
/* preset.c - the list of presets, their columns in a header, and which one a file is (see preset.h). */
#include "producer/preset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "producer/preset_path.h"
#include "producer/preset_shape.h"

#define LIST_CAP  100
#define NAMES_CAP 140

const struct stoup_preset *const stoup_presets[] = {&stoup_preset_binance_trades,
	&stoup_preset_binance_aggtrades, &stoup_preset_binance_klines,
	&stoup_preset_binance_bookticker, &stoup_preset_tardis_trades,
	&stoup_preset_tardis_liquidations, &stoup_preset_tardis_l2, &stoup_preset_tardis_quotes,
	&stoup_preset_tardis_book, &stoup_preset_tardis_derivative, &stoup_preset_lobster,
	&stoup_preset_lobster_book, &stoup_preset_databento_csv, &stoup_preset_truefx,
	&stoup_preset_histdata, &stoup_preset_histdata_bars, &stoup_preset_fxcm_bars,
	&stoup_preset_bars, &stoup_preset_quotes, NULL};

const struct stoup_preset *stoup_preset_named(const char *format)
{
	for (size_t i = 0; stoup_presets[i]; i++)
		if (strcmp(stoup_presets[i]->name, format) == 0)
			return stoup_presets[i];
	return NULL;
}

int stoup_preset_wanted(const struct stoup_csv_options *options)
{
	if (options->format)
		return stoup_preset_named(options->format) != NULL;
	return !options->columns && !options->map && !options->schema && !options->time;
}

int stoup_preset_path_is(const struct stoup_preset *preset, const char *path)
{
	struct stoup_preset_path ignored;

	for (size_t i = 0; preset->paths[i]; i++)
		if (stoup_preset_path_match(preset->paths[i], path, &ignored))
			return 1;
	return 0;
}

/* ---- columns ------------------------------------------------------------------------------------ */

int stoup_preset_name_is(const char *names, uint32_t level, const char *text, size_t len)
{
	char name[64];

	while (len && (*text == ' ' || *text == '\t')) {
		text++;
		len--;
	}
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	for (;;) {
		size_t name_len = strcspn(names, "|");
		const char *mark = memchr(names, '%', name_len);

		if (mark)
			snprintf(name, sizeof(name), "%.*s%u%.*s", (int)(mark - names), names,
				level, (int)(names + name_len - mark - 2), mark + 2);
		else
			snprintf(name, sizeof(name), "%.*s", (int)name_len, names);
		if (strlen(name) == len && memcmp(name, text, len) == 0)
			return 1;
		if (names[name_len] == '\0')
			return 0;
		names += name_len + 1;
	}
}

uint32_t stoup_preset_find(const struct stoup_csv_row *row, const char *names, uint32_t level)
{
	for (uint32_t i = 0; i < row->field_cnt; i++)
		if (stoup_preset_name_is(names, level, row->fields[i].text, row->fields[i].len))
			return i;
	return UINT32_MAX;
}

const char *stoup_preset_names(const struct stoup_preset *preset, const char *field)
{
	const struct stoup_preset_column *column = preset->columns;

	for (; column->names; column++) {
		const char *own = column->field ? column->field : column->names;
		size_t len = strcspn(own, "|");

		if (strlen(field) == len && memcmp(own, field, len) == 0)
			return column->names;
	}
	return NULL;
}

void stoup_preset_list(const struct stoup_csv_row *row, char *dst, size_t cap)
{
	size_t len = 0;

	dst[0] = '\0';
	for (uint32_t i = 0; i < row->field_cnt; i++) {
		const struct stoup_csv_field *field = &row->fields[i];

		if (len + field->len + sizeof(",...") >= cap) {
			snprintf(dst + len, cap - len, "%s", i ? ",..." : "...");
			return;
		}
		if (i)
			dst[len++] = ',';
		for (uint32_t j = 0; j < field->len; j++)
			dst[len++] = (unsigned char)field->text[j] < 0x20 ? '?' : field->text[j];
		dst[len] = '\0';
	}
}

/* ---- which one ----------------------------------------------------------------------------------- */

struct fit {
	uint32_t found;                            /* columns */
	uint32_t needed;                           /* columns that must be there */
	const struct stoup_preset_column *missing; /* the first of them that is not, or NULL */
};

static struct fit header_fit(const struct stoup_preset *preset, const struct stoup_csv_row *row)
{
	const struct stoup_preset_column *column = preset->columns;
	struct fit fit = {0};

	for (; column->names; column++) {
		int is = stoup_preset_find(row, column->names, preset->level_base) != UINT32_MAX;

		fit.found += (uint32_t)is;
		if (column->flags & STOUP_PRESET_OPTIONAL)
			continue;
		fit.needed++;
		if (!is && !fit.missing)
			fit.missing = column;
	}
	return fit;
}

static int first_name(const char *names)
{
	return (int)strcspn(names, "|");
}

static int missing_error(const struct stoup_preset *preset, const struct fit *fit,
	const struct stoup_csv_row *row, struct stoup_error *err)
{
	char list[LIST_CAP];

	stoup_preset_list(row, list, sizeof(list));
	return stoup_error_set(err, -EINVAL,
		"line %llu: the column %.*s of %s is missing; the first row is: %s",
		(unsigned long long)row->line, first_name(fit->missing->names), fit->missing->names,
		preset->name, list);
}

static int shape_error(const struct stoup_csv_options *options, const struct stoup_preset *preset,
	const struct stoup_csv_row *row, struct stoup_error *err)
{
	char list[LIST_CAP];
	const char *why = "", *names;
	uint32_t place, level;

	stoup_preset_list(row, list, sizeof(list));
	if (preset->bare_max == 0)
		return stoup_error_set(err, -EINVAL,
			"line %llu: no header of %s, which has the columns %s; the first row is: %s",
			(unsigned long long)row->line, preset->name, stoup_preset_columns(preset),
			list);
	if (row->field_cnt < preset->bare_min || row->field_cnt > preset->bare_max)
		return stoup_error_set(err, -EINVAL,
			"line %llu: %u columns, and %s has %u%s%s; the first row is: %s",
			(unsigned long long)row->line, row->field_cnt, preset->name,
			preset->bare_min, preset->bare_max > preset->bare_min ? " or more: " : ": ",
			stoup_preset_columns(preset), list);
	place = stoup_preset_shape(options, preset, row, &why);
	if (place == UINT32_MAX)
		return stoup_error_set(err, -EINVAL,
			"line %llu: a row of %s, and no header as --header yes says",
			(unsigned long long)row->line, preset->name);
	names = preset->columns[stoup_preset_column_at(preset, place, &level)].names;
	return stoup_error_set(err, -EINVAL,
		"line %llu, column %u (%.*s): \"%.*s\" %s; nor is the row a header of %s",
		(unsigned long long)row->line, place + 1, first_name(names), names,
		row->fields[place].len < 40 ? (int)row->fields[place].len : 40,
		row->fields[place].text, why, preset->name);
}

static int is_bare(const struct stoup_csv_options *options, const struct stoup_preset *preset,
	const struct stoup_csv_row *row)
{
	const char *why;

	return options->header != STOUP_CSV_HEADER_YES && preset->bare_max > 0 &&
	       row->field_cnt >= preset->bare_min && row->field_cnt <= preset->bare_max &&
	       stoup_preset_shape(options, preset, row, &why) == UINT32_MAX;
}

static int choose_named(const struct stoup_csv_options *options, const struct stoup_preset *preset,
	const struct stoup_csv_row *row, int *ret_header, struct stoup_error *err)
{
	struct fit fit = header_fit(preset, row);

	*ret_header = !fit.missing && options->header != STOUP_CSV_HEADER_NO;
	if (*ret_header || is_bare(options, preset, row))
		return 0;
	if (fit.missing && fit.found * 2 >= fit.needed)
		return missing_error(preset, &fit, row, err);
	return shape_error(options, preset, row, err);
}

struct choice {
	const struct stoup_preset *best;
	uint32_t score;
	uint32_t cnt; /* of presets with that score */
	int header;
	char names[NAMES_CAP]; /* of them */
};

/* A header outdoes the shape of a row; more columns outdo fewer; a name of the file decides between equals,
 * and then what is anyone's. */
static void consider(struct choice *choice, const struct stoup_csv_options *options,
	const struct stoup_preset *preset, const char *file, const struct stoup_csv_row *row)
{
	struct fit fit = header_fit(preset, row);
	int header = !fit.missing && options->header != STOUP_CSV_HEADER_NO;
	int named = stoup_preset_path_is(preset, file);
	uint32_t score;

	if ((!named && preset->flags & STOUP_PRESET_BY_NAME) ||
		(!header && !is_bare(options, preset, row)))
		return;
	score = (header ? 1000 + 2 * fit.found : 2) + (uint32_t)named;
	if (score < choice->score)
		return;
	if (score > choice->score || preset->flags & STOUP_PRESET_ANYONES) {
		choice->cnt = 0;
		choice->names[0] = '\0';
	}
	choice->score = score;
	choice->best = preset;
	choice->header = header;
	if (choice->cnt++)
		strncat(choice->names, " or ", sizeof(choice->names) - strlen(choice->names) - 1);
	strncat(choice->names, preset->name, sizeof(choice->names) - strlen(choice->names) - 1);
}

int stoup_preset_choose(const struct stoup_csv_options *options, const char *file,
	const struct stoup_csv_row *row, const struct stoup_preset **ret, int *ret_header,
	struct stoup_error *err)
{
	struct choice choice = {0};

	if (options->format) {
		*ret = stoup_preset_named(options->format);
		return choose_named(options, *ret, row, ret_header, err);
	}
	for (size_t i = 0; stoup_presets[i]; i++)
		consider(&choice, options, stoup_presets[i], file, row);
	if (choice.cnt > 1)
		return stoup_error_set(err, -EINVAL,
			"line %llu: the columns may be those of %s: say which (--format NAME)",
			(unsigned long long)row->line, choice.names);
	*ret = choice.best;
	*ret_header = choice.header;
	return choice.cnt ? 0 : -ENOENT;
}
