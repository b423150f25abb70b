/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top.c - `stoup top`: a pool, live on a terminal, or once as plain text.
 *
 * Like `stoup stat` it reads the control object alone: it works while the daemon hangs, is stopped, or dead, and says so.
 */
#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "consumer/tool_args.h"
#include "consumer/tool_choose.h"
#include "consumer/tool_top.h"
#include "consumer/tools.h"

#define INTERVAL_LEAST 0.05
#define INTERVAL_CAP   3600.0
#define ONCE_INTERVAL                                                                              \
	0.5 /* between the two looks that rates want; the answer comes within a second */

static const struct option options[] = {
	{"interval", required_argument, NULL, 'i'},
	{"colour", no_argument, NULL, 'c'},
	{"color", no_argument, NULL, 'c'},
	{"no-colour", no_argument, NULL, 'n'},
	{"no-color", no_argument, NULL, 'n'},
	{"once", no_argument, NULL, 'o'},
	{"count", required_argument, NULL, 'k'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"usage: stoup top [options] [POOL]\n"
	"Show a pool live: what is wrong, rates, a map of its memory, who holds what; press h for the keys. POOL may be the\n"
	"path of a store with a slash, or left out where one alone lives, as for `stoup stat`. Works while the daemon hangs,\n"
	"is stopped or dead, and goes over to its successor.\n"
	"  --interval SECONDS look that often, 0.05 to 3600 (default 1)\n"
	"  --once             print one screen as plain text, for which no terminal is needed: $COLUMNS (80) by $LINES (24),\n"
	"                     rates are of half a second, or of --interval\n"
	"  --count N          end after N looks; with --once print N screens\n"
	"  --colour, --color  colours also where $NO_COLOR is set\n"
	"  --no-colour, --no-color no colours: letters tell the same\n";

static int wrong(const char *what)
{
	fprintf(stderr, "stoup top: %s; see `stoup help top`\n", what);
	return 3;
}

static int option_take(int which, struct stoup_top_args *args)
{
	switch (which) {
	case 'i':
		if (!stoup_tool_seconds(optarg, INTERVAL_LEAST, INTERVAL_CAP, &args->interval))
			return wrong("--interval: a number of seconds is wanted, 0.05 to 3600");
		return 0;
	case 'k':
		if (!stoup_tool_number(optarg, 1, UINT64_MAX, &args->count))
			return wrong("--count: a number of looks is wanted");
		return 0;
	case 'o':
		args->once = 1;
		return 0;
	case 'c':
		args->colour = 1;
		return 0;
	case 'n':
		args->colour = 0;
		return 0;
	case 'h':
		fputs(usage, stdout);
		return 1;
	default:
		fprintf(stderr, "See `stoup help top`.\n");
		return 3;
	}
}

/* 0, or exit status + 1. */
static int parse(int argc, char **argv, struct stoup_top_args *args)
{
	const char *without = getenv("NO_COLOR");
	int which, rc;

	*args = (struct stoup_top_args){.colour = !(without && *without)};
	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		rc = option_take(which, args);
		if (rc)
			return rc;
	}
	if (argc - optind > 1)
		return wrong("one POOL is wanted");
	args->pool = argc > optind ? argv[optind] : args->chosen;
	return argc > optind ? stoup_tool_pool_valid(argv[0], args->pool)
	                     : stoup_tool_choose_pool(argv[0], args->chosen);
}

int stoup_top_look(struct stoup_top *top, struct stoup_watcher *watcher, struct stoup_error *err)
{
	time_t wall = time(NULL);
	struct tm tm;
	int rc;

	/* The older look becomes the new one. */
	rc = stoup_watcher_look(watcher, &top->looks[1 - top->now], err);
	if (rc < 0)
		return rc;
	top->now = 1 - top->now;
	if (localtime_r(&wall, &tm))
		strftime(top->clock, sizeof(top->clock), "%H:%M:%S", &tm);
	stoup_top_looked(top);
	stoup_top_store_look(top->names.arg, &top->looks[top->now]);
	return 0;
}

/* ---- once ------------------------------------------------------------------------------------- */

/* A size from the environment, as shells and pagers have it. */
static uint32_t size_of(const char *name, uint32_t otherwise, uint32_t least)
{
	const char *text = getenv(name);
	uint64_t value;

	if (!text || !stoup_tool_number(text, least, STOUP_TOP_COLS_CAP, &value))
		return otherwise;
	return (uint32_t)value;
}

static int print_screen(struct stoup_top *top, int utf8)
{
	struct stoup_top_screen screen;

	if (stoup_top_screen_init(&screen, size_of("LINES", 24, STOUP_TOP_ROWS_MIN),
		    size_of("COLUMNS", 80, STOUP_TOP_COLS_MIN), utf8) < 0) {
		fprintf(stderr, "stoup top: no memory for a screen\n");
		return 1;
	}
	stoup_top_draw(top, &screen);
	stoup_top_screen_print(&screen, stdout);
	stoup_top_screen_fini(&screen);
	return fflush(stdout) != 0;
}

static int print_once(
	struct stoup_top *top, struct stoup_watcher *watcher, const struct stoup_top_args *args)
{
	int utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0, rc = 0;
	struct stoup_error err = {0};
	uint64_t cnt = args->count ? args->count : 1;

	top->interval = args->interval > 0 ? args->interval : ONCE_INTERVAL;
	top->plain = 1;
	for (uint64_t i = 0; i <= cnt && rc == 0; i++) {
		if (i > 0)
			stoup_tool_nap(top->interval);
		if (stoup_top_look(top, watcher, &err) < 0) {
			fprintf(stderr, "stoup top: %s\n", err.text);
			return 1;
		}
		if (i > 0)
			rc = print_screen(top, utf8);
	}
	return rc;
}

int stoup_cmd_top(int argc, char **argv)
{
	struct stoup_watcher watcher = {0};
	struct stoup_top_store *store = NULL;
	struct stoup_top_args args;
	struct stoup_top *top;
	int rc = parse(argc, argv, &args);

	if (rc)
		return rc - 1;
	top = calloc(1, sizeof(*top));
	if (!top || stoup_top_store_create(&store) < 0) {
		fprintf(stderr, "stoup top: no memory\n");
		free(top);
		return 1;
	}
	top->names = (struct stoup_top_names){stoup_top_store_series, store};
	setlocale(LC_CTYPE, "");
	watcher.pool = args.pool;
	top->interval = args.interval > 0 ? args.interval : 1;
	rc = args.once ? print_once(top, &watcher, &args)
	               : stoup_top_terminal(top, &watcher, &args);
	stoup_watcher_fini(&watcher);
	stoup_watch_fini(&top->looks[0]);
	stoup_watch_fini(&top->looks[1]);
	stoup_top_store_destroy(store);
	free(top);
	return rc;
}
