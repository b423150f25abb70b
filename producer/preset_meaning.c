/* SPDX-License-Identifier: Apache-2.0 */
/* preset_meaning.c - see preset_meaning.h. */
#include "producer/preset_meaning.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/lobster_book.h"
#include "producer/preset.h"
#include "producer/preset_path.h"
#include "producer/preset_plan.h"
#include "producer/source.h"

struct text {
	char *dst;
	size_t cap, len;
};

static void add(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What does not fit is left out: the caller has room for all that a path may hold. */
static void add(struct text *text, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(text->dst + text->len, text->cap - text->len, fmt, args);
	va_end(args);
	if (len > 0)
		text->len += (size_t)len;
	if (text->len >= text->cap)
		text->len = text->cap - 1;
}

/* A column that every such file has. */
static int has_column(const struct stoup_preset *preset, uint8_t type)
{
	const struct stoup_preset_column *column = preset->columns;

	for (; column->names; column++)
		if (column->type == type && !(column->flags & STOUP_PRESET_OPTIONAL))
			return 1;
	return 0;
}

static int path_match(
	const struct stoup_preset *preset, const char *path, struct stoup_preset_path *ret)
{
	*ret = (struct stoup_preset_path){0};
	for (size_t i = 0; preset->paths[i]; i++)
		if (stoup_preset_path_match(preset->paths[i], path, ret))
			return 1;
	return 0;
}

/* Where the name alone decides which preset it is. */
static int name_decides(const struct stoup_preset *preset)
{
	return preset->flags & STOUP_PRESET_BY_NAME ||
	       preset == &stoup_preset_tardis_liquidations || preset == &stoup_preset_truefx;
}

/* The times of a book are those of the messages beside it. */
static void messages_add(struct text *text, const char *path)
{
	char *messages = stoup_lobster_book_messages(path);
	struct stoup_source source;

	if (messages && stoup_source_of(messages, 0, &source, NULL) > 0)
		for (size_t i = 0; i < sizeof(source.entry.hash); i++)
			add(text, "%02x", source.entry.hash[i]);
	free(messages);
}

static void dbn_add(const struct stoup_ingest_options *options, const char *path, struct text *text)
{
	char dataset[STOUP_PRESET_TEXT_CAP] = "";

	if (!options->series && !options->csv.exchange)
		stoup_preset_dbn_dataset(path, dataset);
	add(text, " %s %s", dataset, options->csv.schema ? "" : stoup_preset_dbn_kind(path));
}

static void preset_add(const struct stoup_ingest_options *options,
	const struct stoup_preset *preset, const char *path, struct text *text)
{
	struct stoup_preset_path says;

	if (!path_match(preset, path, &says) && !options->format)
		return;
	if (!options->format && name_decides(preset))
		add(text, " %s", preset->name);
	if (!options->series && !options->symbol && !has_column(preset, STOUP_PRESET_SYMBOL))
		add(text, " %s", says.symbol);
	if (preset->clock == STOUP_PRESET_CLOCK_DAY && !options->date && says.has_day)
		add(text, " %" PRId64, says.day);
	if (preset->flags & STOUP_PRESET_BARS && options->csv.interval_ns < 0)
		add(text, " %" PRId64, says.interval_ns);
	if (preset == &stoup_preset_binance_klines && !options->series)
		add(text, " %s", stoup_preset_binance_klines_kind(path));
	if (preset->flags & STOUP_PRESET_DBN)
		dbn_add(options, path, text);
	if (preset == &stoup_preset_lobster_book)
		messages_add(text, path);
}

int stoup_preset_meaning(
	const struct stoup_ingest_options *options, const char *path, char *dst, size_t cap)
{
	struct stoup_csv_options csv = options->csv;
	struct text text = {dst, cap, 0};

	csv.format = options->format;
	dst[0] = '\0';
	if (!stoup_preset_wanted(&csv))
		return 0;
	add(&text, "%s", options->series ? "" : stoup_preset_binance_folder(path));
	for (size_t i = 0; stoup_presets[i]; i++)
		if (!options->format || strcmp(options->format, stoup_presets[i]->name) == 0)
			preset_add(options, stoup_presets[i], path, &text);
	return text.len > 0;
}
