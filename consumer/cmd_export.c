/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `stoup export POOL|STORE/ SERIES|PATTERN...`: series as files of other programs.
 *
 * A tool over cursors: of a store whose daemon runs it takes the decoded blocks from there.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "consumer/stoup.h"
#include "consumer/tool_args.h"
#include "consumer/tool_docs.h"
#include "consumer/tool_export.h"
#include "consumer/tools.h"

#define TOOL "stoup export"

static const char usage[] =
	"usage: stoup export [options] POOL|STORE/ SERIES|PATTERN...\n"
	"Write series as files. A PATTERN (* ? []) stands for all series whose names it matches; * goes over\n"
	"slashes.\n"
	"\n"
	"  --format KIND    csv, jsonl, dbn, npy, npz, or lines (NANOSECONDS JSON, as `stoup ingest` reads\n"
	"                   it); default: as the ending of the file says\n"
	"  -o, --output FILE\n"
	"                   the file; default: standard output\n"
	"  --directory DIR  a file for each series, DIR/DATASET/SYMBOL/schema.KIND; DBN: one for each\n"
	"                   dataset, DIR/DATASET.dbn\n"
	"  --from TIME      first key (inclusive): ISO 8601, or a count since 1970\n"
	"  --to TIME        last key (exclusive)\n"
	"  --compress zstd|none\n"
	"                   of csv, jsonl, lines and dbn; default: zstd where the file ends in .zst\n"
	"  --force          replace files that are there\n"
	"  --no-header      CSV without the line of names\n"
	"  --dbn-version N  1, 2 or 3; default: the newest that has the records' layouts\n"
	"  --quiet          tell nothing but failures\n"
	"\n"
	"DBN: all series of one dataset in one file, in order of time; records byte for byte as they were\n"
	"ingested, with metadata that name their symbols day by day.\n"
	"A file gets its name when it is whole; of an export that fails no file is left.\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 usage.\n";

static const struct option options[] = {
	{"format", required_argument, NULL, 'F'},
	{"output", required_argument, NULL, 'o'},
	{"directory", required_argument, NULL, 'd'},
	{"from", required_argument, NULL, 'f'},
	{"to", required_argument, NULL, 't'},
	{"compress", required_argument, NULL, 'c'},
	{"force", no_argument, NULL, 'w'},
	{"no-header", no_argument, NULL, 'n'},
	{"dbn-version", required_argument, NULL, 'v'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* ---- options ---------------------------------------------------------------------------------- */

static int format_option(const char *text, size_t len, enum stoup_export_format *ret)
{
	for (int i = STOUP_EXPORT_CSV; i <= STOUP_EXPORT_LINES; i++) {
		const char *ending = stoup_export_ending((enum stoup_export_format)i);

		if (strlen(ending) == len + 1 && strncmp(ending + 1, text, len) == 0) {
			*ret = (enum stoup_export_format)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_option(struct stoup_export *export, int which)
{
	switch (which) {
	case 'F':
		if (format_option(optarg, strlen(optarg), &export->format) == 0)
			return 0;
		fprintf(stderr, TOOL ": --format %s: none of csv, jsonl, lines, dbn, npy and npz\n",
			optarg);
		return -EINVAL;
	case 'o':
		export->output = optarg;
		return 0;
	case 'd':
		export->directory = optarg;
		return 0;
	case 'f':
		return stoup_tool_time(TOOL, optarg, &export->range.from_ns);
	case 't':
		return stoup_tool_time(TOOL, optarg, &export->range.to_ns);
	case 'c':
		export->zstd = strcmp(optarg, "zstd") == 0;
		if (export->zstd || strcmp(optarg, "none") == 0)
			return 0;
		fprintf(stderr, TOOL ": --compress %s: zstd or none\n", optarg);
		return -EINVAL;
	case 'v':
		export->dbn_version = optarg[0] - '0';
		if (optarg[0] >= '1' && optarg[0] <= '3' && !optarg[1])
			return 0;
		fprintf(stderr, TOOL ": --dbn-version %s: 1, 2 or 3\n", optarg);
		return -EINVAL;
	case 'w':
		export->force = 1;
		return 0;
	case 'n':
		export->header = 0;
		return 0;
	case 'q':
		export->quiet = 1;
		return 0;
	default:
		return -EINVAL;
	}
}

/* Format and compression by the ending of the file, where they were not said. */
static void guess(struct stoup_export *export, int zstd_given)
{
	const char *path = export->output;
	size_t len = path ? strlen(path) : 0;
	const char *dot;

	if (len > 4 && strcmp(path + len - 4, ".zst") == 0) {
		if (!zstd_given)
			export->zstd = 1;
		len -= 4;
	}
	dot = len ? memrchr(path, '.', len) : NULL;
	if (dot && export->format == STOUP_EXPORT_NONE)
		format_option(dot + 1, len - (size_t)(dot + 1 - path), &export->format);
}

static int complain(const char *text)
{
	fprintf(stderr, TOOL ": %s\n", text);
	return -EINVAL;
}

static int ends(const char *text, const char *ending)
{
	size_t len = text ? strlen(text) : 0, ending_len = strlen(ending);

	return len > ending_len && strcmp(text + len - ending_len, ending) == 0;
}

static int check(const struct stoup_export *export)
{
	int is_array = export->format == STOUP_EXPORT_NPY || export->format == STOUP_EXPORT_NPZ;

	if (export->output && export->directory)
		return complain("--output and --directory exclude each other");
	if (export->format == STOUP_EXPORT_NONE && ends(export->output, ".gz"))
		return complain(
			"gzip is not written: say --compress zstd, and a name such as x.csv.zst");
	if (export->format == STOUP_EXPORT_NONE)
		return complain(
			"--format is missing: csv, jsonl, lines, dbn, npy or npz (an --output whose "
			"name ends so says it as well, in .zst too)");
	if (is_array && export->zstd)
		return complain(
			"--compress is for csv, jsonl, lines and dbn: programs map arrays as they are");
	if (export->dbn_version && export->format != STOUP_EXPORT_DBN)
		return complain("--dbn-version is for --format dbn");
	if (!export->header && export->format != STOUP_EXPORT_CSV)
		return complain("--no-header is for --format csv");
	if (!export->output && !export->directory && isatty(STDOUT_FILENO) &&
		(is_array || export->zstd || export->format == STOUP_EXPORT_DBN))
		return complain("what is written is no text: say -o FILE, or redirect it");
	return stoup_tool_range_valid(TOOL, &export->range);
}

static int parse(int argc, char **argv, struct stoup_export *export)
{
	int which, zstd_given = 0;

	optind = 1;
	while ((which = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (which == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		zstd_given |= which == 'c';
		if (set_option(export, which) < 0)
			return -EINVAL;
	}
	if (argc - optind < 2)
		return complain(
			"a pool or store, and one series or pattern at least, are needed; `stoup ls "
			"STORE` lists series");
	guess(export, zstd_given);
	return check(export);
}

/* ---- which series ----------------------------------------------------------------------------- */

/* By its name, else by the pattern. */
static int is_meant(const char *name, char *const *patterns, int cnt, int *hits)
{
	int any = 0;

	for (int i = 0; i < cnt; i++) {
		int hit = strcmp(patterns[i], name) == 0 ||
		          fnmatch(patterns[i], name, FNM_NOESCAPE) == 0;

		hits[i] |= hit;
		any |= hit;
	}
	return any;
}

static int choose(
	struct stoup_export *export, char *const *patterns, int cnt, struct stoup_error *err)
{
	int64_t all = stoup_series_cnt(export->st);
	int *hits = calloc((size_t)cnt, sizeof(*hits)), rc = 0;

	export->series = all >= 0 ? calloc((size_t)all + 1, sizeof(*export->series)) : NULL;
	if (!hits || !export->series) {
		free(hits);
		return stoup_error_set(
			err, all < 0 ? (int)all : -ENOMEM, "the series can not be listed");
	}
	for (uint64_t i = 0; i < (uint64_t)all; i++) {
		struct stoup_series *at = &export->series[export->series_cnt];

		if (stoup_series_at(export->st, i, at) == 0 &&
			is_meant(at->name, patterns, cnt, hits))
			export->series_cnt++;
	}
	for (int i = 0; i < cnt && rc == 0; i++) {
		struct stoup_series series;

		if (hits[i])
			continue;
		rc = strpbrk(patterns[i], "*?[")
		             ? -ENOENT
		             : stoup_series_find(export->st, patterns[i], &series, err);
		if (rc == -ENOENT && strpbrk(patterns[i], "*?["))
			stoup_error_set(err, rc, "no series matches '%.150s'", patterns[i]);
	}
	free(hits);
	if (export->format == STOUP_EXPORT_CSV || export->format == STOUP_EXPORT_JSONL)
		return rc;
	for (size_t i = 0; i < export->series_cnt && rc == 0; i++)
		if (export->format == STOUP_EXPORT_LINES &&
			!stoup_tool_json_is(export->series[i].schema))
			rc = stoup_error_set(err, -ENOTSUP,
				"%.150s holds no JSON that --format lines could write: its schema is %s",
				export->series[i].name, export->series[i].schema->name);
	if (export->format == STOUP_EXPORT_LINES)
		return rc;
	for (size_t i = 0; i < export->series_cnt && rc == 0; i++)
		if (export->series[i].schema->flags & STOUP_SCHEMA_VARIABLE)
			rc = stoup_error_set(err, -ENOTSUP,
				"%.150s holds messages of variable length: --format csv or jsonl writes them%s",
				export->series[i].name,
				stoup_tool_json_is(export->series[i].schema)
					? ", and lines so that `stoup ingest` reads them again"
					: "");
	return rc;
}

/* ---- the command ------------------------------------------------------------------------------ */

int stoup_cmd_export(int argc, char **argv)
{
	struct stoup_export export = {.header = 1};
	struct stoup_error err = {0};
	int rc = parse(argc, argv, &export);

	if (rc < 0)
		fputs("See `stoup help export`.\n", stderr);
	if (rc)
		return rc < 0 ? 2 : 0;
	signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error with a text */
	/* Another daemon may serve another state of the store: half of each is no export. */
	rc = stoup_tool_attach(argv[optind], STOUP_NO_RECONNECT, &export.st, &err);
	if (rc == 0) {
		rc = choose(&export, argv + optind + 1, argc - optind - 1, &err);
		if (rc == 0)
			rc = stoup_export_run(&export, &err);
		free(export.series);
		stoup_detach(export.st);
	}
	if (rc < 0)
		fprintf(stderr, TOOL ": %s\n", err.text);
	return rc < 0;
}
