/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ingest.c - `stoup ingest`: files into a store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "producer/cmd.h"
#include "producer/event64_build.h"
#include "producer/import.h"
#include "producer/import_state.h"
#include "producer/ingest_csv.h"
#include "producer/ingest_dbn.h"
#include "producer/ingest_npy.h"
#include "producer/input.h"
#include "producer/npy.h"

static const char usage_head[] =
	"usage: stoup ingest --store DIR [options] FILE...\n"
	"\n"
	"Read DBN files (version 1 to 3), CSV, or structured NumPy arrays (.npy, .npz of one), plain "
	"or\n"
	"packed (zstd, gzip, xz, lz4, zip), and add their records to the store. Several files are one ingest: a series may go on from file "
	"to\n"
	"file. Either all is stored, or nothing.\n"
	"\n"
	"  --store DIR         the store; made where it is absent\n"
	"  --format F          auto (default), dbn, csv or npy\n"
	"  --codec NAME        default, fast (for data as it comes) or small (for the archive):\n"
	"                      records split by field; or none, lz4, lz4hc, zstd: the codec alone\n"
	"  --level N           of the codec: default and lz4hc 1 to 12, small and zstd 1 to 22,\n"
	"                      lz4 1 to 65537\n"
	"  --block SIZE        decoded bytes of a block, 64K to 2M (default 512K)\n"
	"  --volume SIZE       decoded bytes of a volume (default 4G)\n"
	"  --order refuse|sort|keep\n"
	"                      what to do with a time that steps back: refuse the file (default),\n"
	"                      sort stably, or keep the order of the records\n"
	"  --sort              the same as --order sort\n"
	"  --replace           put the new records in the place of the store's in their range of "
	"time\n"
	"  --threads N         encoders (default: one per core)\n"
	"  --memory SIZE       for partitioning, 256K to 2G (default 64M)\n"
	"  --quiet             no summary, no progress\n"
	"\n"
	"The summary has for each series, exactly, the \"sum of price\" (of the field price, else "
	"close)\n"
	"and the \"sum of size\" (of size, else volume). Undefined values are left out; - says that "
	"there\n"
	"is no such field, or no value. The ratio is decoded bytes / stored bytes.\n"
	"\n"
	"DBN:\n"
	"  --series NAME       put all records into this series (default: DATASET/SYMBOL/schema)\n"
	"  --one-stream        all symbols of a schema in one series, DATASET/ALL/schema\n"
	"  --allow-partial     of a file that is cut at its end take the whole records\n"
	"\n"
	"Arrays: --series, and --schema, --time and --interval as of CSV; hftbacktest's events are\n"
	"known by their fields.\n"
	"\n"
	"hftbacktest's events out of DBN (mbo, trades, tbbo, mbp-1, mbp-10), Tardis (trades,\n"
	"incremental_book_L2) and Binance (trades, aggTrades, bookTicker), trades before depth:\n"
	"  --to event64        make events of the files, in the two orders that hftbacktest needs\n"
	"  --feed-latency T    local times of files without: the exchange's and so much (5ms)\n"
	"  --max-shift T       where local times are before the exchange's, move those of the series "
	"by\n"
	"                      at most so much (default 1s), else refuse\n"
	"  --base-latency T    and by so much more (default 0)\n"
	"\n";

enum format {
	FORMAT_AUTO,
	FORMAT_DBN,
	FORMAT_CSV,
	FORMAT_NPY
};

struct ingest {
	struct stoup_import_options import;
	struct stoup_dbn_options dbn;
	struct stoup_csv_options csv;
	struct stoup_event64_options event64;
	int to_event64, event64_option;
	const char *codec, *level;
	enum format format;
	int csv_option; /* one that only CSV has was given */
	const char **files;
	size_t file_cnt;
};

/* ---- options --------------------------------------------------------------------------------- */

static int size_option(const char *name, const char *value, uint64_t min, uint64_t max,
	uint64_t *ret, struct stoup_error *err)
{
	char min_text[STOUP_SIZE_TEXT_CAP], max_text[STOUP_SIZE_TEXT_CAP];
	uint64_t len;

	if (stoup_size_parse(value, &len) == 0 && len >= min && len <= max) {
		*ret = len;
		return 0;
	}
	stoup_size_format(min, min_text);
	stoup_size_format(max, max_text);
	return stoup_error_set(
		err, -EINVAL, "--%s %s: a size from %s to %s", name, value, min_text, max_text);
}

static int order_option(const char *value, int *ret, struct stoup_error *err)
{
	static const char *const names[] = {"refuse", "sort", "keep"}; /* STOUP_ORDER_* */
	int i;

	for (i = 0; i < 3; i++) {
		if (strcmp(value, names[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	return stoup_error_set(err, -EINVAL, "--order %s: refuse, sort or keep", value);
}

static int format_option(const char *value, enum format *ret, struct stoup_error *err)
{
	if (strcmp(value, "auto") == 0)
		*ret = FORMAT_AUTO;
	else if (strcmp(value, "dbn") == 0)
		*ret = FORMAT_DBN;
	else if (strcmp(value, "csv") == 0)
		*ret = FORMAT_CSV;
	else if (strcmp(value, "npy") == 0)
		*ret = FORMAT_NPY;
	else
		return stoup_error_set(err, -EINVAL, "--format %s: auto, dbn, csv or npy", value);
	return 0;
}

/* Options without a value. 1: it was one. */
static int flag_option(struct ingest *ingest, const char *name)
{
	if (strcmp(name, "sort") == 0) {
		ingest->import.order = STOUP_ORDER_SORT;
		ingest->import.order_given = 1;
	} else if (strcmp(name, "replace") == 0)
		ingest->import.replace = 1;
	else if (strcmp(name, "quiet") == 0)
		ingest->import.quiet = 1;
	else if (strcmp(name, "one-stream") == 0)
		ingest->dbn.one_stream = 1;
	else if (strcmp(name, "allow-partial") == 0)
		ingest->dbn.allow_partial = 1;
	else
		return 0;
	return 1;
}

static int latency_option(
	const char *name, const char *value, int64_t *ret, struct stoup_error *err)
{
	int64_t ns;

	if (stoup_duration_parse(value, &ns) < 0 || ns < 0)
		return stoup_error_set(
			err, -EINVAL, "--%s %s: a time such as 5ms, 250us or 0", name, value);
	*ret = ns;
	return 0;
}

/* Those of --to event64. 0, -ENOENT for another name, -EINVAL with text. */
static int event64_option(
	struct ingest *ingest, const char *name, const char *value, struct stoup_error *err)
{
	int64_t *ns = strcmp(name, "feed-latency") == 0   ? &ingest->event64.feed_latency_ns
	              : strcmp(name, "base-latency") == 0 ? &ingest->event64.base_latency_ns
	              : strcmp(name, "max-shift") == 0    ? &ingest->event64.max_shift_ns
	                                                  : NULL;

	if (strcmp(name, "to") == 0) {
		ingest->to_event64 = strcmp(value, "event64") == 0;
		return ingest->to_event64
		               ? 0
		               : stoup_error_set(err, -EINVAL, "--to %s: event64", value);
	}
	if (!ns)
		return -ENOENT;
	ingest->event64_option = 1;
	return latency_option(name, value, ns, err);
}

/* Options with a value. 0, -ENOENT for an unknown name, -EINVAL with text. */
static int value_option(
	struct ingest *ingest, const char *name, const char *value, struct stoup_error *err)
{
	uint64_t len;
	int rc;

	if (strcmp(name, "store") == 0)
		ingest->import.store_path = value;
	else if (strcmp(name, "codec") == 0)
		ingest->codec = value;
	else if (strcmp(name, "level") == 0)
		ingest->level = value;
	else if (strcmp(name, "order") == 0) {
		ingest->import.order_given = 1;
		return order_option(value, &ingest->import.order, err);
	} else if (strcmp(name, "format") == 0)
		return format_option(value, &ingest->format, err);
	else if (strcmp(name, "volume") == 0)
		return size_option(name, value, 1, INT64_MAX, &ingest->import.volume_len, err);
	else if (strcmp(name, "memory") == 0)
		return size_option(name, value, STOUP_IMPORT_MEMORY_LEN_MIN,
			STOUP_IMPORT_MEMORY_LEN_MAX, &ingest->import.memory_len, err);
	else if (strcmp(name, "block") == 0) {
		rc = size_option(name, value, STOUP_IMPORT_BLOCK_LEN_MIN,
			STOUP_IMPORT_BLOCK_LEN_MAX, &len, err);
		ingest->import.block_len = rc == 0 ? (uint32_t)len : 0;
		return rc;
	} else if (strcmp(name, "threads") == 0) {
		rc = size_option(name, value, 1, 1024, &len, err);
		ingest->import.threads = rc == 0 ? (uint32_t)len : 0;
		return rc;
	} else {
		rc = event64_option(ingest, name, value, err);
		if (rc != -ENOENT)
			return rc;
		rc = stoup_csv_option(&ingest->csv, name, value, err);
		ingest->csv_option |= rc == 0 && strcmp(name, "series") != 0;
		if (strcmp(name, "series") == 0)
			ingest->dbn.series = value;
		return rc;
	}
	return 0;
}

/* One argument that begins with "--". Returns how many arguments it took, or -EINVAL. */
static int option_parse(
	struct ingest *ingest, const char *arg, const char *next, struct stoup_error *err)
{
	char name[32];
	const char *equals = strchr(arg + 2, '='), *value = equals ? equals + 1 : next;
	size_t len = equals ? (size_t)(equals - arg - 2) : strlen(arg + 2);
	int rc;

	if (len >= sizeof(name))
		return stoup_error_set(err, -EINVAL, "unknown option %s", arg);
	memcpy(name, arg + 2, len);
	name[len] = '\0';
	if (!equals && flag_option(ingest, name))
		return 1;
	/* An unknown name is told as such, also as the last argument. */
	rc = value_option(ingest, name, value ? value : "", err);
	if (rc == -ENOENT)
		return stoup_error_set(err, -EINVAL, "unknown option --%s", name);
	if (!value)
		return stoup_error_set(err, -EINVAL, "option --%s needs a value", name);
	return rc < 0 ? -EINVAL : equals ? 1 : 2;
}

static int encoding_option(struct ingest *ingest, struct stoup_error *err)
{
	struct stoup_encoding *encoding = &ingest->import.encoding;

	if (stoup_encoding_parse(ingest->codec, NULL, encoding) < 0)
		return stoup_error_set(err, -EINVAL,
			"--codec %s: not one of default, fast, small, none, lz4, lz4hc, zstd",
			ingest->codec);
	if (stoup_encoding_parse(ingest->codec, ingest->level, encoding) < 0)
		return stoup_error_set(err, -EINVAL,
			"--level %s: no level of %s (default and lz4hc have 1 to 12, small and "
			"zstd 1 to 22, lz4 1 to 65537)",
			ingest->level, ingest->codec);
	return 0;
}

static int args_parse(struct ingest *ingest, int argc, char **argv, struct stoup_error *err)
{
	int i = 1, rc;

	while (i < argc && strcmp(argv[i], "--") != 0) {
		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			ingest->files[ingest->file_cnt++] = argv[i++];
			continue;
		}
		if (argv[i][1] != '-')
			return stoup_error_set(err, -EINVAL, "unknown option %s", argv[i]);
		rc = option_parse(ingest, argv[i], i + 1 < argc ? argv[i + 1] : NULL, err);
		if (rc < 0)
			return rc;
		i += rc;
	}
	for (i++; i < argc; i++)
		ingest->files[ingest->file_cnt++] = argv[i];
	if (!ingest->import.store_path)
		return stoup_error_set(err, -EINVAL, "--store DIR is missing");
	if (ingest->file_cnt == 0)
		return stoup_error_set(err, -EINVAL, "no FILE is given");
	if (ingest->event64_option && !ingest->to_event64)
		return stoup_error_set(err, -EINVAL,
			"--feed-latency, --base-latency and --max-shift are for --to event64");
	if (ingest->to_event64 && (ingest->csv_option || ingest->dbn.one_stream))
		return stoup_error_set(err, -EINVAL,
			"--to event64 knows the columns of its files, and makes a series of each symbol: of the "
			"options of CSV and DBN it takes --series and --allow-partial");
	if (ingest->to_event64 && ingest->import.order == STOUP_ORDER_SORT)
		return stoup_error_set(err, -EINVAL,
			"--to event64 makes the two orders that hftbacktest needs: leave --sort out");
	return encoding_option(ingest, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A file is DBN when its (unpacked) bytes say so, or when its name does: a fragment has no magic,
 * and the DBN importer says what is wrong with it. An array has a magic, and all else is text. A format,
 * or a negative errno. */
static int format_of(const struct ingest *ingest, const char *path, struct stoup_input *input,
	struct stoup_error *err)
{
	const uint8_t *bytes;
	int64_t n;

	if (ingest->format != FORMAT_AUTO)
		return (int)ingest->format;
	n = stoup_input_peek(input, STOUP_NPY_PRELUDE_LEN, &bytes, err);
	if (n < 0)
		return (int)n;
	if (stoup_npy_is(bytes, (size_t)n))
		return FORMAT_NPY;
	if ((n >= 3 && memcmp(bytes, "DBN", 3) == 0) || strstr(path, ".dbn") != NULL)
		return FORMAT_DBN;
	return FORMAT_CSV;
}

/* Events are collected until all files were read. */
static int to_event64(const struct ingest *ingest, struct stoup_event64_build *build,
	struct stoup_input *input, int format, struct stoup_error *err)
{
	if (format == FORMAT_NPY)
		return stoup_error_set(err, -EINVAL,
			"%s: an array is not made into events: hftbacktest's own are known by their fields, "
			"without --to event64",
			stoup_input_name(input));
	if (format == FORMAT_DBN)
		return stoup_event64_dbn(build, input, &ingest->event64, err);
	return stoup_event64_csv(build, input, &ingest->event64, err);
}

static int to_records(const struct ingest *ingest, struct stoup_import *import,
	struct stoup_input *input, int format, struct stoup_error *err)
{
	if (format == FORMAT_NPY)
		return stoup_ingest_npy(import, input, &ingest->csv, err);
	if (format == FORMAT_DBN)
		return stoup_ingest_dbn(import, input, &ingest->dbn, err);
	if (ingest->csv.series)
		return stoup_ingest_csv(import, input, &ingest->csv, err);
	return stoup_error_set(err, -EINVAL,
		"%s: no DBN file; for CSV say the name of the series (--series) and what the columns "
		"are (see `stoup help ingest`)",
		stoup_input_name(input));
}

/* Opened once: what was looked at in a pipe can not be read again. */
static int file_ingest(const struct ingest *ingest, struct stoup_import *import,
	struct stoup_event64_build *build, const char *path, struct stoup_error *err)
{
	struct stoup_input *input;
	int rc = stoup_input_open(path, &input, err);

	if (rc < 0)
		return rc;
	rc = format_of(ingest, path, input, err);
	if (rc >= 0 && build)
		rc = to_event64(ingest, build, input, rc, err);
	else if (rc >= 0)
		rc = to_records(ingest, import, input, rc, err);
	stoup_input_close(input);
	return rc;
}

static int ingest_run(const struct ingest *ingest, struct stoup_error *err)
{
	struct stoup_import *import = NULL;
	struct stoup_event64_build *build = NULL;
	size_t i;
	int rc = stoup_import_begin(&ingest->import, &import, err);

	if (rc == 0 && ingest->to_event64)
		rc = stoup_event64_build_create(import, &ingest->event64, &build, err);
	for (i = 0; i < ingest->file_cnt && rc == 0; i++)
		rc = file_ingest(ingest, import, build, ingest->files[i], err);
	if (rc == 0 && build)
		rc = stoup_event64_build_finish(build, err);
	stoup_event64_build_destroy(build);
	if (rc == 0)
		rc = stoup_import_finish(import, err);
	stoup_import_destroy(import);
	return rc;
}

int stoup_cmd_ingest(int argc, char **argv)
{
	struct ingest ingest = {.codec = "default"};
	struct stoup_error err = {0};
	int rc;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		printf("%s%s", usage_head, stoup_csv_usage());
		return STOUP_EXIT_OK;
	}
	stoup_csv_options_init(&ingest.csv);
	stoup_event64_options_init(&ingest.event64);
	ingest.files = calloc((size_t)argc + 1, sizeof(*ingest.files));
	if (!ingest.files) {
		fprintf(stderr, "stoup ingest: no memory\n");
		return STOUP_EXIT_FAIL;
	}
	if (args_parse(&ingest, argc, argv, &err) < 0) {
		fprintf(stderr, "stoup ingest: %s; see `stoup help ingest`\n", err.text);
		rc = STOUP_EXIT_USAGE;
	} else {
		ingest.event64.series = ingest.csv.series;
		ingest.event64.allow_partial = ingest.dbn.allow_partial;
		rc = ingest_run(&ingest, &err) < 0 ? STOUP_EXIT_FAIL : STOUP_EXIT_OK;
		if (rc != STOUP_EXIT_OK)
			fprintf(stderr, "stoup ingest: %s\n", err.text);
	}
	free(ingest.files);
	return rc;
}
