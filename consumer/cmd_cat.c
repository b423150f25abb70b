/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cat.c - `stoup cat POOL SERIES`: records as CSV or JSON lines, or as a NumPy file.
 *
 *      pool or store/ --attach--> series --scan--> span --field by field--> text on stdout
 *
 * Numbers are exact decimals, times ISO 8601 with nanoseconds, undefined values print as nothing (CSV) or
 * null (JSON). Reserved bytes are not printed.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "consumer/stoup.h"
#include "consumer/tool_args.h"
#include "consumer/tool_docs.h"
#include "consumer/tool_npy.h"
#include "consumer/tool_text.h"
#include "consumer/tools.h"

#define OUT_LEN (1u << 18) /* bytes that stdout collects before a write */

static const char usage[] =
	"usage: stoup cat [options] POOL SERIES\n"
	"Print the records of a series. POOL is the name of a pool, or the path of a store with a "
	"slash\n"
	"(joins its automatic daemon, which is started when there is none).\n"
	"\n"
	"  --from TIME      first key (inclusive): ISO 8601, or ns since the epoch\n"
	"  --to TIME        last key (exclusive)\n"
	"  --backward       the last record first\n"
	"  --limit N        print at most N records\n"
	"  --format KIND    csv (default), jsonl; npy, npz: a NumPy array of the records, with all\n"
	"                   fields (redirect it: > a.npy)\n"
	"                   messages: key and text, or hexadecimal digits where they are no text;\n"
	"                   lines: NANOSECONDS JSON, as `stoup ingest` reads it\n"
	"  --where FILTER   documents: those of which it holds, such as\n"
	"                   'data.e = \"trade\" and (data.p >= 61800 or data.m exists)'\n"
	"  --path PATH      documents: the value there instead of the whole; may be said again\n"
	"  --no-header      CSV without the line of names\n"
	"  --skip-damaged   go on behind a damaged block: told on stderr, exit status 1\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 usage.\n";

struct cat {
	const char *pool, *series;
	struct stoup_range range;
	uint64_t limit;
	int json, header, skip;
	int npy, npz;                /* an array instead; npz: in a zip */
	int lines;                   /* of JSON, with their keys */
	struct stoup_tool_docs docs; /* what was said; then the text's */
	struct stoup_text text;
};

static const struct option options[] = {
	{"from", required_argument, NULL, 'f'},
	{"to", required_argument, NULL, 't'},
	{"backward", no_argument, NULL, 'b'},
	{"limit", required_argument, NULL, 'l'},
	{"format", required_argument, NULL, 'o'},
	{"no-header", no_argument, NULL, 'n'},
	{"where", required_argument, NULL, 'w'},
	{"path", required_argument, NULL, 'p'},
	{"skip-damaged", no_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* ---- options ---------------------------------------------------------------------------------- */

static int limit_option(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (!errno && end != text && !*end && text[0] != '-')
		return 0;
	fprintf(stderr, "stoup cat: --limit %s: a number is wanted\n", text);
	return -EINVAL;
}

static int format_option(const char *text, struct cat *cat)
{
	cat->json = strcmp(text, "jsonl") == 0;
	cat->npz = strcmp(text, "npz") == 0;
	cat->npy = cat->npz || strcmp(text, "npy") == 0;
	cat->lines = strcmp(text, "lines") == 0;
	if (cat->json || cat->npy || cat->lines || strcmp(text, "csv") == 0)
		return 0;
	fprintf(stderr, "stoup cat: --format %s: none of csv, jsonl, lines, npy and npz\n", text);
	return -EINVAL;
}

static int docs_option(struct cat *cat, int where, const char *text)
{
	struct stoup_error err = {0};
	int rc = where ? stoup_tool_docs_where(&cat->docs, text, &err)
	               : stoup_tool_docs_path(&cat->docs, text, &err);

	if (rc < 0)
		fprintf(stderr, "stoup cat: --%s: %s\n", where ? "where" : "path", err.text);
	return rc;
}

static int set_option(struct cat *cat, int which)
{
	switch (which) {
	case 'f':
		return stoup_tool_time("stoup cat", optarg, &cat->range.from_ns);
	case 't':
		return stoup_tool_time("stoup cat", optarg, &cat->range.to_ns);
	case 'b':
		cat->range.flags |= STOUP_BACKWARD;
		return 0;
	case 'l':
		return limit_option(optarg, &cat->limit);
	case 'o':
		return format_option(optarg, cat);
	case 'w':
	case 'p':
		return docs_option(cat, which == 'w', optarg);
	case 'n':
		cat->header = 0;
		return 0;
	case 's':
		cat->skip = 1;
		return 0;
	default:
		return -EINVAL;
	}
}

static int parse(int argc, char **argv, struct cat *cat)
{
	int which;

	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (set_option(cat, which) < 0)
			return -EINVAL;
	}
	if (optind == argc - 1) {
		fprintf(stderr, "stoup cat: SERIES is missing; `stoup ls STORE` lists them\n");
		return -EINVAL;
	}
	if (optind != argc - 2) {
		fprintf(stderr, "stoup cat: POOL and SERIES are needed, and nothing else\n");
		return -EINVAL;
	}
	if (cat->npy && (cat->skip || isatty(STDOUT_FILENO))) {
		fprintf(stderr,
			cat->skip
				? "stoup cat: an array has no gaps: --skip-damaged is for csv and jsonl\n"
				: "stoup cat: an array is no text: redirect it (> a.npy)\n");
		return -EINVAL;
	}
	if (cat->lines && cat->docs.path_cnt > 0) {
		fprintf(stderr,
			"stoup cat: --path is for csv and jsonl: lines are whole messages\n");
		return -EINVAL;
	}
	cat->pool = argv[optind];
	cat->series = argv[optind + 1];
	return stoup_tool_range_valid("stoup cat", &cat->range);
}

/* ---- printing --------------------------------------------------------------------------------- */

/* At most *left records, which count down. 0 or -ENOMEM. */
static int print_span(struct cat *cat, const struct stoup_span *span, uint64_t *left)
{
	int backward = (cat->range.flags & STOUP_BACKWARD) != 0;

	for (uint64_t i = 0; i<span->record_cnt && * left> 0; i++) {
		uint64_t at = backward ? span->record_cnt - 1 - i : i;
		int rc = stoup_text_span(&cat->text, span, at);

		if (rc < 0)
			return rc;
		*left -= (uint64_t)rc;
	}
	return 0;
}

/* ---- the scan --------------------------------------------------------------------------------- */

/* A failure of stoup_next: 1 = it was stepped over, 0 = the end. */
static int step_over(const struct cat *cat, struct stoup_cursor *cur, int rc)
{
	fflush(stdout);
	fprintf(stderr, "stoup cat: %s\n", stoup_cursor_error(cur)->text);
	if (!cat->skip || (rc != -EBADMSG && rc != -EIO && rc != -ENOTSUP))
		return 0;
	fprintf(stderr, "stoup cat: %s%" PRId64 " records left out\n",
		cat->range.from_ns || cat->range.to_ns ? "at most " : "", stoup_cursor_skip(cur));
	return 1;
}

static int print_all(struct cat *cat, struct stoup_cursor *cur)
{
	uint64_t left = cat->limit;
	struct stoup_span span;
	int rc, status = 0;

	while (left > 0 && (rc = stoup_next(cur, &span)) != 0) {
		if (rc < 0) {
			status = 1;
			if (!step_over(cat, cur, rc))
				break;
			continue;
		}
		if (print_span(cat, &span, &left) < 0) {
			fprintf(stderr, "stoup cat: no memory to print a message\n");
			return 1;
		}
		if (ferror(stdout))
			break;
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		/* A reader that went away, such as `head`, is not a failure to talk about. */
		if (errno != EPIPE)
			fprintf(stderr, "stoup cat: standard output: %s\n", strerror(errno));
		status = 1;
	}
	return status;
}

/* Can what was asked for be had of this series? */
static int series_check(
	const struct cat *cat, const struct stoup_series *series, struct stoup_error *err)
{
	int are_docs = stoup_tool_docs_are(series->schema);

	if ((cat->docs.filter || cat->docs.path_cnt) && !are_docs)
		return stoup_error_set(err, -ENOTSUP,
			"%.150s has no documents that --where and --path could look into: its schema is %s",
			series->name, series->schema->name);
	if (cat->lines && !are_docs && strcmp(series->schema->name, "json") != 0)
		return stoup_error_set(err, -ENOTSUP,
			"%.150s holds no JSON that --format lines could print: its schema is %s",
			series->name, series->schema->name);
	if (cat->npy && (series->schema->flags & STOUP_SCHEMA_VARIABLE))
		return stoup_error_set(err, -ENOTSUP,
			"%.150s holds messages of variable length, which are no array: --format csv or jsonl",
			series->name);
	return 0;
}

static int scan(struct cat *cat, struct stoup *st, struct stoup_error *err)
{
	struct stoup_series series;
	struct stoup_cursor *cur;
	int status;

	if (stoup_series_find(st, cat->series, &series, err) < 0)
		return -1;
	if (series_check(cat, &series, err) < 0)
		return -1;
	if (cat->npy)
		return stoup_tool_npy(st, &series, &cat->range, cat->limit, cat->npz, stdout, err) <
		                       0
		               ? -1
		               : 0;
	if (stoup_text_init(&cat->text, stdout, cat->json, series.schema) < 0 ||
		stoup_scan(st, &series, &cat->range, &cur, err) < 0)
		return -1;
	cat->text.lines = cat->lines;
	cat->text.docs = cat->docs;
	cat->docs = (struct stoup_tool_docs){0};
	if (cat->header)
		stoup_text_header(&cat->text);
	status = print_all(cat, cur);
	stoup_cursor_close(cur);
	if (cat->text.docs.broken_cnt == 0)
		return status;
	fprintf(stderr, "stoup cat: %" PRIu64 " messages are no documents and were left out\n",
		cat->text.docs.broken_cnt);
	return 1;
}

int stoup_cmd_cat(int argc, char **argv)
{
	struct cat cat = {.limit = UINT64_MAX, .header = 1};
	struct stoup_error err = {0};
	struct stoup *st;
	int rc = parse(argc, argv, &cat);

	if (rc < 0)
		fputs("See `stoup help cat`.\n", stderr);
	if (rc) {
		stoup_tool_docs_fini(&cat.docs);
		return rc < 0 ? 2 : 0;
	}
	if (stoup_tool_attach(cat.pool, 0, &st, &err) < 0) {
		fprintf(stderr, "stoup cat: %s\n", err.text);
		stoup_tool_docs_fini(&cat.docs);
		return 1;
	}
	setvbuf(stdout, NULL, _IOFBF, OUT_LEN);
	rc = scan(&cat, st, &err);
	if (rc < 0)
		fprintf(stderr, "stoup cat: %s\n", err.text);
	stoup_detach(st);
	stoup_text_fini(&cat.text);
	stoup_tool_docs_fini(&cat.docs);
	return rc != 0;
}
