/* SPDX-License-Identifier: Apache-2.0 */
/* importer.c - the table of formats (see importer.h). */
#include "producer/importer.h"

#include <errno.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "producer/importer_binary.h"
#include "producer/ingest_npy.h"
#include "producer/npy.h"
#include "producer/preset.h"
#include "producer/preset_meaning.h"
#include "producer/preset_path.h"

/* Symbol and exchange of each preset whose pattern a path may match. */
#define STOUP_MEANING_CAP 4096

/* ---- names ------------------------------------------------------------------------------------- */

/* Where the last of these endings stands in a file's name, from 1; 0: none is in it. */
static size_t name_last(const char *path, const char *const *endings)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t last = 0;

	for (; *endings; endings++) {
		const char *at = base;

		while ((at = strcasestr(at, *endings))) {
			at++;
			if ((size_t)(at - base) > last)
				last = (size_t)(at - base);
		}
	}
	return last;
}

/* Does a file's name, not that of its directory, say that it is of these endings? The last ending that is
 * known counts, whatever stands behind it: a.dbn.csv is CSV, a.dbn.part.zst is DBN. */
static int name_says(const char *path, const char *const *endings)
{
	static const char *const known[] = {
		".dbn", ".dbz", ".jsonl", ".ndjson", ".csv", ".tsv", NULL};
	size_t last = name_last(path, endings);

	return last > 0 && last >= name_last(path, known);
}

/* ---- npy --------------------------------------------------------------------------------------- */

static int npy_is(const uint8_t *bytes, size_t len, const char *path)
{
	(void)path;
	return stoup_npy_is(bytes, len) ? STOUP_FORMAT_SURE : STOUP_FORMAT_NO;
}

static int npy_ingest(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_ingest_options *options, struct stoup_error *err)
{
	return stoup_ingest_npy(sink, input, &options->csv, err);
}

static const char *npy_usage(void)
{
	return "Arrays: --series, and --schema, --time and --interval as of CSV; hftbacktest's events are\n"
	       "known by their fields.\n";
}

static const char *const npy_suffixes[] = {".npy", ".npz", NULL};

static const char *const npy_takes[] = {
	"schema", "time", "interval", "columns", "map", "scale", NULL};

static const struct stoup_importer npy = {
	.name = "npy",
	.what = "a NumPy array",
	.suffixes = npy_suffixes,
	.takes = npy_takes,
	.is = npy_is,
	.usage = npy_usage,
	.ingest = npy_ingest,
};

/* ---- DBN --------------------------------------------------------------------------------------- */

static const char *const dbn_suffixes[] = {".dbn", ".dbz", NULL};

/* By its (unpacked) bytes, or by its name: a fragment has no magic. */
static int dbn_is(const uint8_t *bytes, size_t len, const char *path)
{
	return (len >= 3 && memcmp(bytes, "DBN", 3) == 0) || name_says(path, dbn_suffixes)
	               ? STOUP_FORMAT_SURE
	               : STOUP_FORMAT_NO;
}

static int dbn_option(struct stoup_ingest_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	return stoup_dbn_option(&options->dbn, name, value, err);
}

static int dbn_flag(struct stoup_ingest_options *options, const char *name)
{
	if (strcmp(name, "one-stream") != 0)
		return 0;
	options->dbn.one_stream = 1;
	return 1;
}

static int dbn_ingest(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_ingest_options *options, struct stoup_error *err)
{
	struct stoup_dbn_options dbn = options->dbn;

	dbn.series = options->series;
	dbn.allow_partial = options->allow_partial;
	dbn.filter = &options->filter;
	return stoup_ingest_dbn(sink, input, &dbn, err);
}

static const char *dbn_usage(void)
{
	return "DBN:\n"
	       "  --series NAME       put all records into this series (default: DATASET/SYMBOL/schema)\n"
	       "  --one-stream        all symbols of a schema in one series, DATASET/ALL/schema\n"
	       "  --allow-partial     of a file that is cut at its end take the whole records\n"
	       "  --dataset NAME      of records without metadata (a fragment): names their series\n"
	       "  --dbn-version N     of such records: 1, 2 or 3 (default: as their lengths say)\n";
}

static const char *const dbn_takes[] = {"one-stream", "dataset", "dbn-version", NULL};

static const struct stoup_importer dbn = {
	.name = "dbn",
	.what = "DBN",
	.suffixes = dbn_suffixes,
	.takes = dbn_takes,
	.has_symbols = 1,
	.is = dbn_is,
	.flag = dbn_flag,
	.option = dbn_option,
	.usage = dbn_usage,
	.ingest = dbn_ingest,
};

/* ---- JSON lines -------------------------------------------------------------------------------- */

static const char *const jsonl_suffixes[] = {".jsonl", ".ndjson", ".lines", NULL};
static const char *const csv_suffixes[] = {".csv", ".tsv", NULL};

/* A row of CSV may begin with a brace, too, in a file that is named so. */
static int jsonl_is(const uint8_t *bytes, size_t len, const char *path)
{
	if (name_says(path, jsonl_suffixes))
		return STOUP_FORMAT_SURE;
	if (name_says(path, csv_suffixes))
		return STOUP_FORMAT_NO;
	return stoup_jsonl_is(bytes, len) ? STOUP_FORMAT_GUESS : STOUP_FORMAT_NO;
}

static int jsonl_option(struct stoup_ingest_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	return stoup_jsonl_option(&options->jsonl, name, value, err);
}

static int jsonl_ingest(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_ingest_options *options, struct stoup_error *err)
{
	struct stoup_jsonl_options jsonl = options->jsonl;

	jsonl.series = options->series;
	jsonl.csv = &options->csv;
	jsonl.filter = &options->filter;
	jsonl.allow_partial = options->allow_partial;
	return stoup_ingest_jsonl(sink, input, &jsonl, err);
}

static const char *const jsonl_takes[] = {"series-path", "as", "time", "time-format", "time-zone",
	"schema", "columns", "map", "interval", "scale", "header", "delimiter", NULL};

static const struct stoup_importer jsonl = {
	.name = "jsonl",
	.what = "JSON lines",
	.suffixes = jsonl_suffixes,
	.takes = jsonl_takes,
	.has_symbols = 1,
	.is = jsonl_is,
	.option = jsonl_option,
	.usage = stoup_jsonl_usage,
	.ingest = jsonl_ingest,
};

/* ---- CSV --------------------------------------------------------------------------------------- */

static int csv_is(const uint8_t *bytes, size_t len, const char *path)
{
	(void)bytes;
	(void)len;
	(void)path;
	return STOUP_FORMAT_SURE;
}

static int csv_option(struct stoup_ingest_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	return stoup_csv_option(&options->csv, name, value, err);
}

static int csv_named(const char *format)
{
	return stoup_preset_named(format) != NULL;
}

/* Names of other formats say nothing to CSV. */
static int csv_meaning(
	const struct stoup_ingest_options *options, const char *path, char *dst, size_t cap)
{
	if (options->format && !csv_named(options->format))
		return 0;
	for (size_t i = 0; stoup_importers[i]; i++)
		if (stoup_importers[i]->meaning != csv_meaning && stoup_importers[i]->suffixes &&
			name_says(path, stoup_importers[i]->suffixes))
			return 0;
	return stoup_preset_meaning(options, path, dst, cap);
}

static int csv_ingest(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_ingest_options *options, struct stoup_error *err)
{
	struct stoup_csv_options csv = options->csv;

	csv.format = options->format;
	csv.filter = &options->filter;
	csv.symbol = options->symbol;
	if (options->date &&
		stoup_preset_date_parse(options->date, strlen(options->date), &csv.day) < 0)
		return stoup_error_set(err, -EINVAL,
			"--date %.40s: a day from 1970 on, such as 2012-06-21", options->date);
	return stoup_ingest_csv(sink, input, &csv, err);
}

static const char *const csv_takes[] = {"schema", "columns", "time", "map", "time-format",
	"time-zone", "interval", "scale", "header", "delimiter", "exchange", "size-scale", "date",
	"symbol", NULL};

static const struct stoup_importer csv = {
	.name = "csv",
	.what = "CSV",
	.suffixes = csv_suffixes,
	.takes = csv_takes,
	.takes_zip = 1,
	.has_symbols = 1, /* presets have; the rest refuses --symbols itself */
	.is = csv_is,
	.meaning = csv_meaning,
	.named = csv_named,
	.option = csv_option,
	.usage = stoup_csv_usage,
	.ingest = csv_ingest,
};

/* ---- the table --------------------------------------------------------------------------------- */

const struct stoup_importer *const stoup_importers[] = {&npy, &dbn, &stoup_importer_bi5,
	&stoup_importer_itch, &stoup_importer_frames, &jsonl, &csv, NULL};

const struct stoup_importer *stoup_importer_named(const char *format)
{
	for (size_t i = 0; stoup_importers[i]; i++) {
		const struct stoup_importer *importer = stoup_importers[i];

		if (strcmp(importer->name, format) == 0 ||
			(importer->named && importer->named(format)))
			return importer;
	}
	return NULL;
}

int stoup_importer_find(struct stoup_input *input, const struct stoup_ingest_options *options,
	const struct stoup_importer **ret, int *ret_guess, struct stoup_error *err)
{
	const uint8_t *bytes = NULL; /* at the end of the stream */
	int64_t n;

	*ret_guess = 0;
	if (options->format) {
		*ret = stoup_importer_named(options->format);
		return 0;
	}
	n = stoup_input_peek(input, STOUP_FORMAT_PEEK_LEN, &bytes, err);
	if (n < 0)
		return (int)n;
	for (size_t i = 0; stoup_importers[i]; i++) {
		int is = stoup_importers[i]->is
		                 ? stoup_importers[i]->is(bytes, (size_t)n, stoup_input_name(input))
		                 : STOUP_FORMAT_NO;

		if (is == STOUP_FORMAT_NO)
			continue;
		*ret = stoup_importers[i];
		*ret_guess = is == STOUP_FORMAT_GUESS;
		return 0;
	}
	return stoup_error_set(
		err, -EBADMSG, "%s: no format that is known", stoup_input_name(input));
}

/* ---- options ----------------------------------------------------------------------------------- */

/* The name in the importer's list, or NULL. */
static const char *taken(const struct stoup_importer *importer, const char *option)
{
	for (const char *const *name = importer->takes; name && *name; name++)
		if (strcmp(*name, option) == 0)
			return *name;
	return NULL;
}

int stoup_importer_takes(const struct stoup_importer *importer, const char *option)
{
	return taken(importer, option) != NULL;
}

const char *stoup_importer_option(const char *option)
{
	const char *name = NULL;

	for (size_t i = 0; stoup_importers[i] && !name; i++)
		name = taken(stoup_importers[i], option);
	return name;
}

void stoup_importer_takers(const char *option, char *dst, size_t cap)
{
	size_t at = 0;

	dst[0] = '\0';
	for (size_t i = 0; stoup_importers[i] && at < cap; i++)
		if (taken(stoup_importers[i], option))
			at += (size_t)snprintf(dst + at, cap - at, "%s%s", at ? ", " : "",
				stoup_importers[i]->what);
}

/* ---- texts ------------------------------------------------------------------------------------- */

uint64_t stoup_importer_meaning(
	const struct stoup_ingest_options *options, const char *path, uint64_t hash)
{
	char text[STOUP_MEANING_CAP];

	for (size_t i = 0; stoup_importers[i]; i++) {
		if (!stoup_importers[i]->meaning ||
			!stoup_importers[i]->meaning(options, path, text, sizeof(text)))
			continue;
		for (const char *p = text; *p; p++)
			hash = (hash ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
	}
	return hash;
}

const char *stoup_importer_names(void)
{
	static char text[256];
	size_t at = 0;

	if (text[0])
		return text;
	for (size_t i = 0; stoup_importers[i] && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
			i == 0                   ? ""
			: stoup_importers[i + 1] ? ", "
						 : " or ",
			stoup_importers[i]->name);
	return text;
}
