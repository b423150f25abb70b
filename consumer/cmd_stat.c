/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stat.c - `stoup stat`, `stoup holders` and `stoup log`: a pool's control object in words or JSON.
 *
 * They read the named control object alone: so they work while the daemon hangs, is stopped, or is dead and its
 * object still lies there, and say which of these it is. Who may not read it by name, or finds its name removed, gets
 * it from the daemon as a monitor.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "consumer/tool_args.h"
#include "consumer/tool_choose.h"
#include "consumer/tool_pool.h"
#include "consumer/tool_stat.h"
#include "consumer/tools.h"
#include "shm/format.h"

#define INTERVAL_LEAST 0.01
#define INTERVAL_CAP   86400.0
#define HEAD_LINES     20 /* lines of --watch between two heads */

/* ---- arguments -------------------------------------------------------------------------------- */

static const struct option options[] = {
	{"json", no_argument, NULL, 'j'},
	{"all", no_argument, NULL, 'a'},
	{"counters", no_argument, NULL, 'c'},
	{"histograms", no_argument, NULL, 'g'},
	{"watch", optional_argument, NULL, 'w'},
	{"count", required_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* argv[0] is "stoup COMMAND". */
static const char *command_of(const char *argv0)
{
	const char *blank = strchr(argv0, ' ');

	return blank ? blank + 1 : argv0;
}

static int wrong(const char *argv0, const char *what)
{
	fprintf(stderr, "%s: %s; see `stoup help %s`\n", argv0, what, command_of(argv0));
	return 3;
}

static int option_take(const char *command, int which, struct stoup_stat_args *args)
{
	switch (which) {
	case 'j':
		args->json = 1;
		return 0;
	case 'a':
		args->all = args->counters = args->histograms = 1;
		return 0;
	case 'c':
		args->counters = 1;
		return 0;
	case 'g':
		args->histograms = 1;
		return 0;
	case 'w':
		args->watch = 1;
		if (optarg &&
			!stoup_tool_seconds(optarg, INTERVAL_LEAST, INTERVAL_CAP, &args->interval))
			return wrong(
				command, "--watch: a number of seconds is wanted, 0.01 to 86400");
		return 0;
	default:
		if (!stoup_tool_number(optarg, 1, UINT64_MAX, &args->count))
			return wrong(command, "--count: a number of lines is wanted");
		return 0;
	}
}

static int is_pool(const char *name)
{
	const struct stoup_control *control;
	struct stoup_error err;
	size_t len;
	int rc = stoup_pool_resolve(name, &control, &len, &err);

	if (rc == 0)
		stoup_control_close(control, len);
	return rc != -ENOENT;
}

/* `--watch 2`, `--watch 2 POOL`: the seconds stand among the operands. Alone they are the seconds, unless a pool is called
 * so. */
static void interval_take(int argc, char **argv, struct stoup_stat_args *args)
{
	int cnt = argc - optind;

	if (!args->watch || args->interval > 0)
		return;
	if ((cnt == 1 || cnt == 2) &&
		stoup_tool_seconds(argv[optind], INTERVAL_LEAST, INTERVAL_CAP, &args->interval) &&
		(cnt == 2 || !is_pool(argv[optind])))
		optind++;
	else
		args->interval = 1;
}

/* A series' name or a pattern, and neither a pool's name nor the path of a store: `stoup holders XNAS/AAPL/trades`. */
static int is_series(const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || text[0] == '/' || text[0] == '.' || text[len - 1] == '/')
		return 0;
	return strpbrk(text, "*?[") || (strchr(text, '/') && access(text, F_OK) < 0);
}

int stoup_stat_parse(int argc, char **argv, const char *usage, const char *allowed, int operand_max,
	struct stoup_stat_args *ret)
{
	int which, rc, cnt;

	*ret = (struct stoup_stat_args){.json = 0};
	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (which == '?') {
			fprintf(stderr, "See `stoup help %s`.\n", command_of(argv[0]));
			return 3;
		}
		if (!strchr(allowed, which))
			return wrong(argv[0], "no such option here");
		rc = option_take(argv[0], which, ret);
		if (rc)
			return rc;
	}
	interval_take(argc, argv, ret);
	cnt = argc - optind;
	if (cnt > 1 + operand_max)
		return wrong(argv[0], operand_max ? "one POOL is wanted, and at most one SERIES"
						  : "one POOL is wanted");
	if (ret->count > 0 && !ret->watch)
		return wrong(argv[0], "--count: only with --watch");
	if (ret->watch && (ret->counters || ret->histograms))
		return wrong(
			argv[0], "--watch shows rates: not with --counters, --histograms or --all");
	if (cnt == 1 + operand_max && operand_max)
		ret->operand = argv[optind + cnt - 1];
	else if (cnt == 1 && operand_max && is_series(argv[optind]))
		ret->operand = argv[optind];
	if (cnt == (ret->operand != NULL)) {
		ret->pool = ret->chosen;
		return stoup_tool_choose_pool(argv[0], ret->chosen);
	}
	ret->pool = argv[optind];
	return stoup_tool_pool_valid(argv[0], ret->pool);
}

int stoup_stat_look(const char *command, const char *pool, struct stoup_watch *ret)
{
	struct stoup_watcher watcher = {.pool = pool};
	struct stoup_error err = {0};
	int rc = stoup_watcher_look(&watcher, ret, &err);

	stoup_watcher_fini(&watcher);
	if (rc < 0)
		fprintf(stderr, "%s: %s\n", command, err.text);
	return rc < 0;
}

/* ---- stat ------------------------------------------------------------------------------------- */

/* A line for each look, until --count of them are there or nobody reads them any more. */
static int watch_pool(const struct stoup_stat_args *args)
{
	struct stoup_watcher watcher = {.pool = args->pool};
	struct stoup_watch looks[2] = {{0}};
	struct stoup_error err = {0};
	char problem[512];
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && (args->count == 0 || i < args->count); i++) {
		struct stoup_watch *now = &looks[i % 2], *before = &looks[(i + 1) % 2];

		if (i > 0)
			stoup_tool_nap(args->interval);
		rc = stoup_watcher_look(&watcher, now, &err);
		if (rc < 0) {
			fprintf(stderr, "stoup stat: %s\n", err.text);
			break;
		}
		if (args->json) {
			stoup_stat_json(stdout, now, 1);
		} else {
			stoup_stat_words_rates(stdout, before, now, i % HEAD_LINES == 0);
			stoup_watch_state_text(now, problem, sizeof(problem));
			/* Once for each state that is not well. */
			if (problem[0] && (before->taken_ns == 0 || before->state != now->state))
				printf("  %s\n", problem);
		}
		if (fflush(stdout) != 0)
			break;
	}
	stoup_watch_fini(&looks[0]);
	stoup_watch_fini(&looks[1]);
	stoup_watcher_fini(&watcher);
	return rc < 0;
}

static void print_once(const struct stoup_stat_args *args, const struct stoup_watch *watch)
{
	if (args->json) {
		stoup_stat_json(stdout, watch, 0);
		return;
	}
	/* --counters and --histograms alone: that table, and what is wrong. */
	if (args->all || !(args->counters || args->histograms))
		stoup_stat_words(stdout, watch);
	else
		stoup_stat_words_state(stdout, watch);
	if (args->counters)
		stoup_stat_words_counters(stdout, watch);
	if (args->histograms)
		stoup_stat_words_histograms(stdout, watch);
	if (args->all || !(args->counters || args->histograms))
		stoup_stat_words_errors(stdout, watch);
}

int stoup_cmd_stat(int argc, char **argv)
{
	static const char usage[] =
		"usage: stoup stat [options] [POOL]\n"
		"Show a pool: state, use, consumers, errors. POOL may be the path of a store with a slash: its automatic\n"
		"daemon, which is not started. Without a POOL: the only one whose daemon lives; of more, they are listed.\n"
		"Works while the daemon hangs, is stopped or dead, and says so. Exit status 1 when there is no such pool.\n"
		"  --json            all of it as JSON (docs/stat-json.md)\n"
		"  --counters        each counter with its unit and what it means\n"
		"  --histograms      latencies: count, mean, quantiles, maximum\n"
		"  --all             everything in words\n"
		"  --watch[=SECONDS] a line of rates each second or SECONDS; with --json an object on a line\n"
		"  --count N         with --watch: N lines\n";
	struct stoup_stat_args args;
	struct stoup_watch watch = {0};
	int rc = stoup_stat_parse(argc, argv, usage, "jacgwn", 0, &args);

	if (rc)
		return rc - 1;
	if (args.watch)
		return watch_pool(&args);
	rc = stoup_stat_look(argv[0], args.pool, &watch);
	if (rc == 0)
		print_once(&args, &watch);
	stoup_watch_fini(&watch);
	return rc;
}

/* ---- holders ---------------------------------------------------------------------------------- */

static void print_holder(const struct stoup_watch_holder *h)
{
	char time[STOUP_STAT_TIME_CAP], more[48] = "";

	if (h->shared_cnt > 1)
		snprintf(more, sizeof(more), " (a block of %u series)", h->shared_cnt);
	printf("%8u %-16s %-9s %7u %12" PRIu64 " %10s  %s%s\n", h->pid, h->command,
		h->suspended                      ? "suspended"
		: h->state == STOUP_CONSUMER_NONE ? "ended"
						  : stoup_watch_consumer_name(h->state),
		h->lease_cnt, h->bytes, stoup_stat_time(h->oldest_ns, time),
		h->series[0] ? h->series : "(several series)", more);
}

static void print_holders(const struct stoup_watch *watch, const char *series)
{
	uint32_t cnt = 0;

	stoup_stat_words_state(stdout, watch);
	printf("  %" PRIu64 " lease%s on %" PRIu64 " bytes\n", watch->sums.leases,
		STOUP_PLURAL(watch->sums.leases), watch->sums.leased_bytes);
	for (uint32_t i = 0; i < watch->holder_cnt; i++) {
		if (!stoup_stat_holds(&watch->holders[i], series))
			continue;
		if (cnt++ == 0)
			printf("\n%8s %-16s %-9s %7s %12s %10s  %s\n", "pid", "command", "state",
				"leases", "bytes", "oldest", "series");
		print_holder(&watch->holders[i]);
	}
	if (cnt > 0)
		return;
	if (watch->holder_cnt == 0 && watch->sums.leases > 0)
		printf("  by whom is not told: the daemon is of an older release\n");
	else if (series)
		printf("  nobody holds a block of %s\n", series);
	else
		printf("  nobody holds anything\n");
}

int stoup_cmd_holders(int argc, char **argv)
{
	static const char usage[] =
		"usage: stoup holders [--json] [POOL] [SERIES]\n"
		"Show who holds blocks, of all series or of SERIES (a name, or a pattern: '*/AAPL/*'), the oldest lease first:\n"
		"process, command, leases, bytes, age of the oldest lease, series. A worker that forgets to release is\n"
		"on top.\n";
	struct stoup_stat_args args;
	struct stoup_watch watch = {0};
	int rc = stoup_stat_parse(argc, argv, usage, "j", 1, &args);

	if (rc)
		return rc - 1;
	rc = stoup_stat_look(argv[0], args.pool, &watch);
	if (rc == 0 && args.json)
		stoup_stat_json_holders(stdout, &watch, args.operand);
	else if (rc == 0)
		print_holders(&watch, args.operand);
	stoup_watch_fini(&watch);
	return rc;
}

/* ---- log -------------------------------------------------------------------------------------- */

static void print_log(const struct stoup_watch *watch)
{
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];

	stoup_stat_words_state(stdout, watch);
	if (watch->error_cnt == 0)
		printf("  no errors\n");
	for (uint32_t i = 0; i < watch->error_cnt; i++) {
		const struct stoup_watch_error *e = &watch->errors[i];

		stoup_format_time(e->first_ns, first);
		stoup_format_time(e->last_ns, last);
		if (e->count > 1)
			printf("%s  %" PRIu64 " times since %s\n  %s\n", last, e->count, first,
				e->text);
		else
			printf("%s  once\n  %s\n", last, e->text);
	}
}

int stoup_cmd_log(int argc, char **argv)
{
	static const char usage[] =
		"usage: stoup log [--json] [POOL]\n"
		"Show the daemon's errors, the latest first: when it was last, how often and since when, and what to do.\n"
		"The same text is kept once; 48 texts of the daemon's own and 16 that consumers brought about are kept.\n";
	struct stoup_stat_args args;
	struct stoup_watch watch = {0};
	int rc = stoup_stat_parse(argc, argv, usage, "j", 0, &args);

	if (rc)
		return rc - 1;
	rc = stoup_stat_look(argv[0], args.pool, &watch);
	if (rc == 0 && args.json)
		stoup_stat_json_log(stdout, &watch);
	else if (rc == 0)
		print_log(&watch);
	stoup_watch_fini(&watch);
	return rc;
}
