/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ingest.c - `stoup ingest`: files into a store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "producer/cmd.h"
#include "producer/import_state.h"
#include "producer/ingest_run.h"
#include "producer/stop.h"

static const char usage_head[] =
	"usage: stoup ingest --store DIR [options] FILE|DIRECTORY...\n"
	"\n"
	"Read files of market data, plain or packed (zstd, gzip, xz, lz4, zip), and add their records to\n"
	"the store. Several files are one ingest: a series may go on from file to file. Either all is\n"
	"stored, or nothing.\n"
	"\n"
	"  --store DIR         the store; made where it is absent\n"
	"  --format F          auto (default: by each file's bytes), or one of those below\n"
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
	"  --replace           put the new records in the place of the store's in their range of time\n"
	"  --symbols LIST      only these symbols: names or patterns (* ? []) with commas between them\n"
	"  --from T, --to T    only records from T on, and before T\n"
	"  --threads N         readers and encoders (default: one per core)\n"
	"  --memory SIZE       for partitioning, 256K to 2G (default 64M)\n"
	"  --include LIST      of directories only files of these names, or paths below them:\n"
	"                      patterns (* ? []) with commas between them\n"
	"  --exclude LIST      of directories leave out files of these names, or paths\n"
	"  --again             read files that the store has already (else they are left out), and copies\n"
	"  --dry-run           read and check everything, show what would be stored, store nothing\n"
	"  --quiet             no summary, no progress\n"
	"\n"
	"The summary has for each series, exactly, the \"sum of price\" (of the field price, else close)\n"
	"and the \"sum of size\" (of size, volume, qty, quantity or amount). Undefined values are left out;\n"
	"- says that there is no such field, or no value. The ratio is decoded bytes / stored bytes.\n";

static const char usage_event64[] =
	"hftbacktest's events out of DBN (mbo, trades, tbbo, mbp-1, mbp-10), Tardis (trades,\n"
	"incremental_book_L2) and Binance (trades, aggTrades, bookTicker), trades before depth:\n"
	"  --to event64        make events of the files, in the two orders that hftbacktest needs\n"
	"  --feed-latency T    local times of files without: the exchange's and so much (5ms)\n"
	"  --max-shift T       where local times are before the exchange's, move those of the series by\n"
	"                      at most so much (default 1s), else refuse\n"
	"  --base-latency T    and by so much more (default 0)\n";

struct args {
	struct stoup_ingest ingest;
	const char *codec, *level;
	int event64_option;
	int importer_option; /* one that an importer alone has was given */
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

static int format_option(const char *value, const char **ret, struct stoup_error *err)
{
	if (strcmp(value, "auto") != 0 && !stoup_importer_named(value))
		return stoup_error_set(
			err, -EINVAL, "--format %.40s: auto, %s", value, stoup_importer_names());
	*ret = strcmp(value, "auto") == 0 ? NULL : value;
	return 0;
}

/* An option that only some formats have: it is for files of those. */
static void importer_given(struct args *args, const char *name)
{
	struct stoup_ingest *ingest = &args->ingest;
	const char *option = stoup_importer_option(name);

	args->importer_option = 1;
	for (size_t i = 0; i < ingest->given_cnt && option; i++)
		if (strcmp(ingest->given[i], option) == 0)
			return;
	if (option && ingest->given_cnt < STOUP_GIVEN_CAP)
		ingest->given[ingest->given_cnt++] = option;
}

/* Is it a flag of one of the importers? */
static int importer_flag(struct args *args, const char *name)
{
	for (size_t i = 0; stoup_importers[i]; i++) {
		if (stoup_importers[i]->flag &&
			stoup_importers[i]->flag(&args->ingest.options, name)) {
			importer_given(args, name);
			return 1;
		}
	}
	return 0;
}

/* Is it an option of one of the importers? 0, -ENOENT, or -EINVAL with text. */
static int importer_option(
	struct args *args, const char *name, const char *value, struct stoup_error *err)
{
	for (size_t i = 0; stoup_importers[i]; i++) {
		int rc = stoup_importers[i]->option
		                 ? stoup_importers[i]->option(
					   &args->ingest.options, name, value, err)
		                 : -ENOENT;

		if (rc != -ENOENT) {
			importer_given(args, name);
			return rc;
		}
	}
	return -ENOENT;
}

/* Options without a value. 1: it was one. */
static int flag_option(struct args *args, const char *name)
{
	if (strcmp(name, "sort") == 0) {
		args->ingest.import.order = STOUP_ORDER_SORT;
		args->ingest.import.order_given = 1;
	} else if (strcmp(name, "dry-run") == 0)
		args->ingest.import.dry_run = 1;
	else if (strcmp(name, "again") == 0)
		args->ingest.again = 1;
	else if (strcmp(name, "replace") == 0)
		args->ingest.import.replace = 1;
	else if (strcmp(name, "quiet") == 0)
		args->ingest.import.quiet = 1;
	else if (strcmp(name, "allow-partial") == 0)
		args->ingest.options.allow_partial = 1;
	else
		return importer_flag(args, name);
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
	struct args *args, const char *name, const char *value, struct stoup_error *err)
{
	int64_t *ns =
		strcmp(name, "feed-latency") == 0   ? &args->ingest.options.event64.feed_latency_ns
		: strcmp(name, "base-latency") == 0 ? &args->ingest.options.event64.base_latency_ns
		: strcmp(name, "max-shift") == 0    ? &args->ingest.options.event64.max_shift_ns
						    : NULL;

	/* --to also ends a range of time: no time is written so. */
	if (strcmp(name, "to") == 0 && strcmp(value, "event64") == 0) {
		args->ingest.to_event64 = 1;
		return 0;
	}
	if (!ns)
		return -ENOENT;
	args->event64_option = 1;
	return latency_option(name, value, ns, err);
}

/* Options with a value. 0, -ENOENT for an unknown name, -EINVAL with text. */
static int value_option(
	struct args *args, const char *name, const char *value, struct stoup_error *err)
{
	uint64_t len = 0;
	int rc;

	if (strcmp(name, "store") == 0)
		args->ingest.import.store_path = value;
	else if (strcmp(name, "series") == 0)
		args->ingest.options.series = value;
	else if (strcmp(name, "codec") == 0)
		args->codec = value;
	else if (strcmp(name, "level") == 0)
		args->level = value;
	else if (strcmp(name, "order") == 0) {
		args->ingest.import.order_given = 1;
		return order_option(value, &args->ingest.import.order, err);
	} else if (strcmp(name, "format") == 0)
		return format_option(value, &args->ingest.options.format, err);
	else if (strcmp(name, "include") == 0 || strcmp(name, "exclude") == 0) {
		*(name[0] == 'i' ? &args->ingest.include : &args->ingest.exclude) = value;
		return stoup_intake_list_check(name, "names of files", value, err);
	} else if (strcmp(name, "volume") == 0)
		return size_option(name, value, 1, INT64_MAX, &args->ingest.import.volume_len, err);
	else if (strcmp(name, "memory") == 0)
		return size_option(name, value, STOUP_IMPORT_MEMORY_LEN_MIN,
			STOUP_IMPORT_MEMORY_LEN_MAX, &args->ingest.import.memory_len, err);
	else if (strcmp(name, "block") == 0) {
		rc = size_option(name, value, STOUP_IMPORT_BLOCK_LEN_MIN,
			STOUP_IMPORT_BLOCK_LEN_MAX, &len, err);
		args->ingest.import.block_len = rc == 0 ? (uint32_t)len : 0;
		return rc;
	} else if (strcmp(name, "threads") == 0) {
		rc = size_option(name, value, 1, 1024, &len, err);
		args->ingest.import.threads = rc == 0 ? (uint32_t)len : 0;
		return rc;
	} else {
		rc = event64_option(args, name, value, err);
		if (rc == -ENOENT)
			rc = stoup_intake_option(&args->ingest.options.filter, name, value, err);
		return rc == -ENOENT ? importer_option(args, name, value, err) : rc;
	}
	return 0;
}

static void hash_add(uint64_t *hash, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		*hash = (*hash ^ p[i]) * 0x100000001b3ull;
}

/* A schema file means what it holds. */
static void schema_file_add(uint64_t *hash, const char *path)
{
	char buf[4096];
	FILE *file = fopen(path, "re");
	size_t n;

	if (!file)
		return;
	while ((n = fread(buf, 1, sizeof(buf), file)) > 0)
		hash_add(hash, buf, n);
	fclose(file);
}

/* Options that change what a file's records are make it another source; how they are stored does not. */
static void meaning_add(struct args *args, const char *name, const char *value)
{
	static const char *const others[] = {"store", "codec", "level", "block", "volume", "memory",
		"threads", "quiet", "dry-run", "again", "replace", "include", "exclude"};
	uint64_t *hash = &args->ingest.options_hash;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(name, others[i]) == 0)
			return;
	hash_add(hash, name, strlen(name) + 1);
	hash_add(hash, value, strlen(value) + 1);
	if (strcmp(name, "schema") == 0)
		schema_file_add(hash, value);
}

/* One argument that begins with "--". Returns how many arguments it took, or -EINVAL. */
static int option_parse(
	struct args *args, const char *arg, const char *next, struct stoup_error *err)
{
	char name[32];
	const char *equals = strchr(arg + 2, '='), *value = equals ? equals + 1 : next;
	size_t len = equals ? (size_t)(equals - arg - 2) : strlen(arg + 2);
	int rc;

	if (len >= sizeof(name))
		return stoup_error_set(err, -EINVAL, "unknown option %s", arg);
	memcpy(name, arg + 2, len);
	name[len] = '\0';
	if (!equals && flag_option(args, name)) {
		meaning_add(args, name, "");
		return 1;
	}
	/* An unknown name is told as such, also as the last argument. */
	rc = value_option(args, name, value ? value : "", err);
	if (rc == -ENOENT)
		return stoup_error_set(err, -EINVAL, "unknown option --%s", name);
	if (!value)
		return stoup_error_set(err, -EINVAL, "option --%s needs a value", name);
	if (rc == 0)
		meaning_add(args, name, value);
	return rc < 0 ? -EINVAL : equals ? 1 : 2;
}

static int encoding_option(struct args *args, struct stoup_error *err)
{
	struct stoup_encoding *encoding = &args->ingest.import.encoding;

	if (stoup_encoding_parse(args->codec, NULL, encoding) < 0)
		return stoup_error_set(err, -EINVAL,
			"--codec %s: not one of default, fast, small, none, lz4, lz4hc, zstd",
			args->codec);
	if (stoup_encoding_parse(args->codec, args->level, encoding) < 0)
		return stoup_error_set(err, -EINVAL,
			"--level %s: no level of %s (default and lz4hc have 1 to 12, small and "
			"zstd 1 to 22, lz4 1 to 65537)",
			args->level, args->codec);
	return 0;
}

static int args_parse(struct args *args, int argc, char **argv, struct stoup_error *err)
{
	int i = 1, rc;

	while (i < argc && strcmp(argv[i], "--") != 0) {
		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			args->ingest.args[args->ingest.arg_cnt++] = argv[i++];
			continue;
		}
		if (argv[i][1] != '-')
			return stoup_error_set(err, -EINVAL, "unknown option %s", argv[i]);
		rc = option_parse(args, argv[i], i + 1 < argc ? argv[i + 1] : NULL, err);
		if (rc < 0)
			return rc;
		i += rc;
	}
	for (i++; i < argc; i++)
		args->ingest.args[args->ingest.arg_cnt++] = argv[i];
	if (!args->ingest.import.store_path)
		return stoup_error_set(err, -EINVAL, "--store DIR is missing");
	if (args->ingest.arg_cnt == 0)
		return stoup_error_set(err, -EINVAL, "no FILE is given");
	if (args->ingest.options.filter.from_ns > 0 && args->ingest.options.filter.to_ns > 0 &&
		args->ingest.options.filter.from_ns >= args->ingest.options.filter.to_ns)
		return stoup_error_set(err, -EINVAL,
			"--from is not before --to: no record is there (--to is the first time that is left out)");
	if (args->event64_option && !args->ingest.to_event64)
		return stoup_error_set(err, -EINVAL,
			"--feed-latency, --base-latency and --max-shift are for --to event64");
	if (args->ingest.to_event64 && args->importer_option)
		return stoup_error_set(err, -EINVAL,
			"--to event64 knows the columns of its files, and makes a series of each symbol: of the "
			"options of CSV and DBN it takes --series and --allow-partial");
	if (args->ingest.to_event64 && args->ingest.import.order == STOUP_ORDER_SORT)
		return stoup_error_set(err, -EINVAL,
			"--to event64 makes the two orders that hftbacktest needs: leave --sort out");
	return encoding_option(args, err);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void usage(void)
{
	printf("%s\n", usage_head);
	for (size_t i = 0; stoup_importers[i]; i++)
		if (stoup_importers[i]->usage)
			printf("%s\n", stoup_importers[i]->usage());
	printf("%s", usage_event64);
}

/* What several importers take. */
static void options_share(struct stoup_ingest *ingest)
{
	struct stoup_ingest_options *options = &ingest->options;

	options->csv.series = options->series;
	options->event64.series = options->series;
	options->event64.allow_partial = options->allow_partial;
	options->allow_steps = ingest->import.order != STOUP_ORDER_REFUSE;
	ingest->import.filter = options->filter;
}

int stoup_cmd_ingest(int argc, char **argv)
{
	struct args args = {.codec = "default", .ingest.options_hash = 0xcbf29ce484222325ull};
	struct stoup_error err = {0};
	int rc;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		usage();
		return STOUP_EXIT_OK;
	}
	stoup_csv_options_init(&args.ingest.options.csv);
	stoup_event64_options_init(&args.ingest.options.event64);
	args.ingest.args = calloc((size_t)argc + 1, sizeof(*args.ingest.args));
	if (!args.ingest.args) {
		fprintf(stderr, "stoup ingest: no memory\n");
		return STOUP_EXIT_FAIL;
	}
	if (args_parse(&args, argc, argv, &err) < 0) {
		fprintf(stderr, "stoup ingest: %s; see `stoup help ingest`\n", err.text);
		rc = STOUP_EXIT_USAGE;
	} else {
		options_share(&args.ingest);
		stoup_stop_catch();
		rc = stoup_ingest_run(&args.ingest, &err) < 0 ? STOUP_EXIT_FAIL : STOUP_EXIT_OK;
		if (rc != STOUP_EXIT_OK)
			fprintf(stderr, "stoup ingest: %s\n", err.text);
	}
	free(args.ingest.args);
	stoup_stop_raise();
	return rc;
}
