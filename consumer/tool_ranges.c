/* SPDX-License-Identifier: Apache-2.0 */
/* tool_ranges.c - see tool_ranges.h. */
#include "consumer/tool_ranges.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_args.h"
#include "consumer/tool_series.h"

static const struct option options[] = {
	{"from", required_argument, NULL, 'f'},
	{"to", required_argument, NULL, 't'},
	{"pin", no_argument, NULL, 'p'},
	{"best-effort", no_argument, NULL, 'b'},
	{"force", no_argument, NULL, 'b'},
	{"all", no_argument, NULL, 'a'},
	{"list", no_argument, NULL, 'l'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* argv[0] is "stoup COMMAND". */
static int wrong(const char *argv0, const char *what)
{
	const char *blank = strchr(argv0, ' ');

	fprintf(stderr, "%s: %s; see `stoup help %s`\n", argv0, what, blank ? blank + 1 : argv0);
	return 3;
}

static int option_take(int which, struct stoup_ranges_args *args)
{
	switch (which) {
	case 'f':
		return stoup_tool_time(args->tool, optarg, &args->range.from_ns);
	case 't':
		return stoup_tool_time(args->tool, optarg, &args->range.to_ns);
	case 'p':
		args->pin = 1;
		return 0;
	case 'b':
		args->best_effort = 1;
		return 0;
	case 'a':
		args->all = 1;
		return 0;
	case 'l':
		args->list = 1;
		return 0;
	default:
		args->json = 1;
		return 0;
	}
}

/* Operands and options that go together. */
static int shape_check(const char *argv0, const struct stoup_ranges_args *args)
{
	if (!args->pool)
		return wrong(argv0, "a POOL is wanted");
	if ((args->list || args->all) && args->name_cnt > 0)
		return wrong(
			argv0, args->list ? "--list takes no SERIES" : "--all takes no SERIES");
	if (!args->list && !args->all && args->name_cnt == 0)
		return wrong(argv0, "a POOL and at least one SERIES are wanted");
	if (args->json && !args->list)
		return wrong(argv0, "--json: only with --list");
	if (args->list && (args->range.from_ns || args->range.to_ns))
		return wrong(argv0, "--list takes no range");
	return 0;
}

int stoup_ranges_parse(int argc, char **argv, const char *usage, const char *allowed,
	struct stoup_ranges_args *ret)
{
	int which;

	*ret = (struct stoup_ranges_args){.tool = argv[0]};
	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (which == '?')
			return wrong(argv[0], "the command line is not understood");
		if (!strchr(allowed, which))
			return wrong(argv[0], "no such option here");
		if (option_take(which, ret) < 0)
			return 3;
	}
	if (stoup_tool_range_valid(argv[0], &ret->range) < 0)
		return 3;
	ret->pool = optind < argc ? argv[optind] : NULL;
	ret->names = argv + optind + 1;
	ret->name_cnt = argc > optind + 1 ? (size_t)(argc - optind - 1) : 0;
	return shape_check(argv[0], ret);
}

int stoup_ranges_begin(
	const struct stoup_ranges_args *args, struct stoup_ranges *ret, struct stoup_error *err)
{
	int named, rc;

	*ret = (struct stoup_ranges){.st = NULL};
	/* A daemon that ends takes with it what was done: nothing is gone on with in another one. */
	rc = stoup_tool_attach(args->pool, STOUP_NO_RECONNECT, &ret->st, err);
	if (rc == 0)
		rc = stoup_tool_series(ret->st, args->names, args->name_cnt, &ret->series,
			&ret->series_cnt, &named, err);
	if (rc < 0)
		return rc;
	ret->snap = stoup_snapshot_current(ret->st);
	ret->ses = ret->snap->session;
	rc = stoup_session_enter(ret->ses);
	if (rc < 0)
		return stoup_session_explain(ret->ses, NULL, err);
	ret->entered = 1;
	rc = stoup_tool_blocks_init(&ret->blocks, ret->snap, err);
	for (size_t i = 0; i < ret->series_cnt && rc == 0; i++)
		rc = stoup_tool_blocks_add(
			&ret->blocks, &ret->series[i], args->range.from_ns, args->range.to_ns, err);
	return rc;
}

void stoup_ranges_end(struct stoup_ranges *ranges)
{
	if (ranges->blocks.snap)
		stoup_tool_blocks_fini(&ranges->blocks);
	if (ranges->entered)
		stoup_session_leave(ranges->ses);
	if (ranges->snap) {
		stoup_snapshot_release(ranges->snap);
		stoup_session_release(ranges->ses);
	}
	free(ranges->series);
	if (ranges->st)
		stoup_detach(ranges->st);
}
