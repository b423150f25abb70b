/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_replay.c - `stoup replay POOL SERIES...`: records as they fall due, in one order of time.
 *
 *      series --stoup_merge--> cursor --stoup_replay--> spans that are due --tool_table--> stdout
 *                                          `- lateness --> a line on stderr
 *
 * What is printed is flushed before each wait, so that a reader of the pipe has a record when it is due. Ctrl-C and
 * SIGTERM end the replay after the span in work, with the line about lateness, and then the program by the signal; a
 * second one ends it at once.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "consumer/stoup.h"
#include "consumer/tool_args.h"
#include "consumer/tool_query.h"
#include "consumer/tool_series.h"
#include "consumer/tool_table.h"
#include "consumer/tools.h"
#include "shm/format.h"

#define OUT_LEN (1u << 18) /* bytes that stdout collects before a write */

static const char usage[] =
	"usage: stoup replay [options] POOL SERIES|PATTERN...\n"
	"Print the records of series as they fall due: each as long after the first one as its time is, divided by\n"
	"the speed. Several series come in one order of time, those of one time in the order of the series, and each\n"
	"line begins with the name of its series; bars come at their close. POOL is the name of a pool, or the path of\n"
	"a store with a slash. A PATTERN (* ? []) stands for all series whose names it matches; * goes over slashes.\n"
	"\n"
	"  --speed X          seconds of the data to one of the clock, 0.001 to 1e9 (default 1), or max: as\n"
	"                     fast as can be\n"
	"  --from TIME        records whose time is TIME or later: ISO 8601, or a count since 1970\n"
	"  --to TIME          records whose time is earlier than TIME\n"
	"  --max-gap DURATION where the data has nothing for longer, nights and weekends, wait only so long\n"
	"                     (of the data's time: 500ms, 60s, 5m, 1h)\n"
	"  --format KIND      csv (default), jsonl (a JSON object each line), json (an array of them)\n"
	"  --no-header        CSV without the line of names\n"
	"\n"
	"At the end a line on stderr says how late the records were. Ctrl-C ends a replay the same way.\n"
	"Exit status: 0 done, 1 failed, 2 usage.\n";

struct replay {
	const char *pool;
	char **names;
	size_t cnt;
	struct stoup_range range;
	struct stoup_replay_options opt;
	struct stoup_table_options table;
};

static const struct option options[] = {
	{"speed", required_argument, NULL, 's'},
	{"from", required_argument, NULL, 'f'},
	{"to", required_argument, NULL, 't'},
	{"max-gap", required_argument, NULL, 'g'},
	{"format", required_argument, NULL, 'o'},
	{"no-header", no_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* ---- options ---------------------------------------------------------------------------------- */

static int speed_option(const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	if (strcmp(text, "max") == 0)
		*ret = INFINITY;
	else if (end == text || *end || !(*ret >= 0.001 && *ret <= 1e9)) {
		fprintf(stderr, "stoup replay: --speed %s: a number from 0.001 to 1e9, or max\n",
			text);
		return -EINVAL;
	}
	return 0;
}

static int duration_option(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9},
		{"d", 86400e9}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != text && strcmp(end, units[i].name) == 0 && value > 0 &&
			value * units[i].ns >= 1 && value * units[i].ns < 9e18) {
			*ret = (uint64_t)(value * units[i].ns);
			return 0;
		}
	fprintf(stderr,
		"stoup replay: --max-gap %s: a time with its unit, such as 500ms, 60s, 5m, 1h\n",
		text);
	return -EINVAL;
}

static int format_option(const char *text, struct stoup_table_options *table)
{
	static const struct {
		const char *name;
		enum stoup_table_kind kind;
	} kinds[] = {
		{"csv", STOUP_TABLE_CSV}, {"jsonl", STOUP_TABLE_JSONL}, {"json", STOUP_TABLE_JSON}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(text, kinds[i].name) == 0) {
			table->kind = kinds[i].kind;
			return 0;
		}
	fprintf(stderr, "stoup replay: --format %s: none of csv, jsonl and json\n", text);
	return -EINVAL;
}

static int set_option(struct replay *replay, int which)
{
	switch (which) {
	case 's':
		return speed_option(optarg, &replay->opt.speed);
	case 'f':
		return stoup_tool_time("stoup replay", optarg, &replay->range.from_ns);
	case 't':
		return stoup_tool_time("stoup replay", optarg, &replay->range.to_ns);
	case 'g':
		return duration_option(optarg, &replay->opt.max_gap_ns);
	case 'o':
		return format_option(optarg, &replay->table);
	case 'n':
		replay->table.header = 0;
		return 0;
	default:
		return -EINVAL;
	}
}

/* 1: the help was asked for. */
static int parse(int argc, char **argv, struct replay *replay)
{
	int which;

	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (set_option(replay, which) < 0)
			return -EINVAL;
	}
	if (optind > argc - 2) {
		fprintf(stderr,
			optind == argc
				? "stoup replay: POOL and SERIES are missing\n"
				: "stoup replay: SERIES is missing; `stoup ls STORE` lists them\n");
		return -EINVAL;
	}
	replay->pool = argv[optind];
	replay->names = argv + optind + 1;
	replay->cnt = (size_t)(argc - optind - 1);
	return stoup_tool_range_valid("stoup replay", &replay->range);
}

/* ---- signals ----------------------------------------------------------------------------------- */

static volatile sig_atomic_t stopped; /* the signal */
static int stop_fd = -1;

static void stop(int signal_no)
{
	const uint64_t one = 1;
	int saved = errno;

	stopped = signal_no;
	/* Whoever is about to wait wakes at once. */
	if (write(stop_fd, &one, sizeof(one)) < 0)
		stopped = signal_no;
	errno = saved;
}

/* Without SA_RESTART: a write into a pipe that nobody reads ends as well. */
static int signals_begin(struct stoup_error *err)
{
	struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};

	stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stop_fd < 0)
		return stoup_error_set(
			err, -errno, "no descriptor for signals: %s", strerror(errno));
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return 0;
}

/* ---- printing ---------------------------------------------------------------------------------- */

static int print_span(struct stoup_table *table, const struct stoup_span *span, size_t source,
	struct stoup_error *err)
{
	struct stoup_run run = {.source = source, .span = span, .step = 1};
	uint64_t used;

	while (run.from < span->record_cnt) {
		int64_t rc;

		run.cnt = span->record_cnt - run.from;
		rc = stoup_table_take(table, &run, &used, err);
		if (rc < 0)
			return (int)rc;
		run.from += used;
	}
	return 0;
}

/* Until records are due, a signal comes, or the reader goes. */
static void wait_due(const struct stoup_replay *replay)
{
	struct pollfd p[3] = {{.fd = stoup_replay_fd(replay), .events = POLLIN},
		{.fd = stop_fd, .events = POLLIN}, {.fd = STDOUT_FILENO}};

	fflush(stdout);
	if (!ferror(stdout))
		poll(p, 3, -1);
}

/* 0 at the end, or a negative errno with text; -ECANCELED where the stream has failed. */
static int print_all(struct stoup_replay *replay, struct stoup_cursor *cur,
	struct stoup_table *table, struct stoup_error *err)
{
	struct stoup_span span;
	int rc = 1;

	while (!stopped && (rc = stoup_replay_next(replay, 0, &span)) != 0) {
		if (rc < 0)
			return stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
		if (rc == STOUP_REPLAY_LATER) {
			wait_due(replay);
			if (ferror(stdout) || stoup_tool_reader_gone())
				return -ECANCELED;
			continue;
		}
		rc = print_span(table, &span, stoup_cursor_source(cur), err);
		if (rc < 0)
			return rc;
		if (ferror(stdout))
			return -ECANCELED;
	}
	return 0;
}

static const char *in_words(uint64_t ns, char dst[static 32])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = (double)ns;
	size_t unit = 0;

	for (; unit < 3 && value >= 1000; unit++)
		value /= 1000;
	snprintf(dst, 32, "%.3g %s", value >= 1000 ? (double)(uint64_t)value : value, units[unit]);
	return dst;
}

static void report(struct stoup_replay *replay)
{
	struct stoup_replay_state s = {.struct_len = sizeof(s)};
	char p50[32], p99[32], max[32];

	if (stoup_replay_stats(replay, &s) < 0)
		return;
	fprintf(stderr, "stoup replay: %" PRIu64 " record%s", s.record_cnt,
		STOUP_PLURAL(s.record_cnt));
	if (s.late_cnt > 0)
		fprintf(stderr, "; late: p50 %s, p99 %s, max %s", in_words(s.late_p50_ns, p50),
			in_words(s.late_p99_ns, p99), in_words(s.late_max_ns, max));
	if (s.skipped_ns > 0)
		fprintf(stderr, "; %.3f s of the data's gaps left out", (double)s.skipped_ns / 1e9);
	fprintf(stderr, "%s\n", stopped ? "; ended by a signal" : "");
}

/* ---- the command ------------------------------------------------------------------------------- */

/* Replay the cursor. 0 or a negative errno with text; -ECANCELED: told already. */
static int run(const struct replay *how, struct stoup_cursor *cur,
	const struct stoup_source *sources, size_t cnt, struct stoup_error *err)
{
	struct stoup_table *table = NULL;
	struct stoup_replay *replay = NULL;
	uint64_t broken_cnt;
	int rc = stoup_replay_open(cur, &how->opt, &replay, err);

	if (rc < 0)
		return rc;
	rc = stoup_table_begin(&how->table, sources, cnt, &table, err);
	if (rc == 0)
		rc = print_all(replay, cur, table, err);
	broken_cnt = stoup_table_end(table, rc < 0);
	if (stoup_tool_stdout("stoup replay") < 0)
		rc = -ECANCELED;
	if (table)
		report(replay);
	if (rc == 0 && broken_cnt > 0)
		rc = stoup_error_set(err, -EBADMSG, "%" PRIu64 " message%s left out: no documents",
			broken_cnt, STOUP_PLURAL(broken_cnt));
	stoup_replay_close(replay);
	return rc;
}

static int replay_all(struct replay *replay, struct stoup *st, struct stoup_error *err)
{
	struct stoup_series *series = NULL;
	struct stoup_source *sources = NULL;
	struct stoup_cursor *cur = NULL;
	size_t cnt = 0;
	int rc = stoup_tool_series(
		st, replay->names, replay->cnt, &series, &cnt, &replay->table.names_series, err);

	if (rc == 0) {
		sources = calloc(cnt, sizeof(*sources));
		if (!sources)
			rc = stoup_error_set(err, -ENOMEM, "no memory for %zu series", cnt);
	}
	for (size_t i = 0; i < cnt && rc == 0; i++)
		sources[i] = (struct stoup_source){.series = series[i], .schema = series[i].schema};
	if (rc == 0)
		rc = signals_begin(err);
	if (rc == 0)
		rc = stoup_merge(st, series, cnt, &replay->range, &cur, err);
	if (rc == 0) {
		rc = run(replay, cur, sources, cnt, err);
		stoup_cursor_close(cur);
	}
	free(sources);
	free(series);
	return rc;
}

int stoup_cmd_replay(int argc, char **argv)
{
	struct replay replay = {.opt = {.struct_len = sizeof(replay.opt), .speed = 1},
		.table = {.out = stdout, .kind = STOUP_TABLE_CSV, .header = 1}};
	struct stoup_error err = {0};
	struct stoup *st;
	int rc = parse(argc, argv, &replay);

	if (rc < 0)
		fputs("See `stoup help replay`.\n", stderr);
	if (rc)
		return rc < 0 ? 2 : 0;
	if (stoup_tool_attach(replay.pool, 0, &st, &err) < 0) {
		fprintf(stderr, "stoup replay: %s\n", err.text);
		return 1;
	}
	setvbuf(stdout, NULL, _IOFBF, OUT_LEN);
	rc = replay_all(&replay, st, &err);
	if (stopped && rc == -ECANCELED)
		rc = 0;
	if (rc < 0 && rc != -ECANCELED)
		fprintf(stderr, "stoup replay: %s\n", err.text);
	stoup_detach(st);
	if (stopped)
		raise(stopped);
	return rc < 0;
}
