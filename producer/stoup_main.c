/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_main.c - the `stoup` executable: a table of commands. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/cmd.h"

#ifndef STOUP_VERSION
#define STOUP_VERSION "0.1.0"
#endif

struct command {
	const char *name;
	const char *line;
	int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
	{"ingest", "add files of market data to a store", stoup_cmd_ingest},
	{"ls", "list the series of a store", stoup_cmd_ls},
	{"verify", "check every byte of a store or a volume", stoup_cmd_verify},
	{"info", "show volumes, series and segments of a store or a volume", stoup_cmd_info},
	{"compact", "merge volumes, store their blocks anew", stoup_cmd_compact},
	{"rm", "remove series, or a range of them", stoup_cmd_rm},
	{"diff", "compare two stores by their records", stoup_cmd_diff},
	{"cat", "print records of a store or a pool", stoup_cmd_cat},
	{"replay", "print records as they fall due by the clock", stoup_cmd_replay},
	{"export", "write series as CSV, JSON, DBN or NumPy files", stoup_cmd_export},
	{"definition", "print tick, expiry... of an instrument at a time", stoup_cmd_definition},
	{"stat", "show a pool's state, counters and consumers", stoup_cmd_stat},
	{"top", "show a pool live: map, rates, who holds what", stoup_cmd_top},
	{"holders", "show who holds blocks of which series, and since when", stoup_cmd_holders},
	{"log", "show the daemon's last errors, with counts", stoup_cmd_log},
	{"exporter", "serve metrics of pools for Prometheus, and a page", stoup_cmd_exporter},
	{"warm", "load series into a pool before its workers come", stoup_cmd_warm},
	{"pin", "keep series in a pool though nobody reads them", stoup_cmd_pin},
	{"unpin", "keep them no longer", stoup_cmd_unpin},
	{"check", "is this machine fit for a pool, and what mends it", stoup_cmd_check},
	{"bench", "measure scans of a store or a pool on this machine", stoup_cmd_bench},
};

#define COMMAND_CNT (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_find(const char *name)
{
	size_t i;

	for (i = 0; i < COMMAND_CNT; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static void usage(FILE *out)
{
	size_t i;

	fprintf(out, "usage: stoup COMMAND [options] [arguments]\n\n");
	for (i = 0; i < COMMAND_CNT; i++)
		fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].line);
	fprintf(out, "\n`stoup help COMMAND` tells its options; the daemon is stoupd(8).\n");
}

static int help(const char *name)
{
	const struct command *command = name ? command_find(name) : NULL;
	char option[] = "--help", *argv[3] = {NULL, option, NULL};

	if (!name) {
		usage(stdout);
		return STOUP_EXIT_OK;
	}
	if (!command) {
		fprintf(stderr, "stoup: there is no command '%s'; see `stoup help`\n", name);
		return STOUP_EXIT_USAGE;
	}
	argv[0] = strdup(command->name);
	if (!argv[0])
		return STOUP_EXIT_FAIL;
	command->run(2, argv);
	free(argv[0]);
	return STOUP_EXIT_OK;
}

/* Results that could not be written are no success: a full disk behind a pipe must be seen. */
static int finish(int status)
{
	errno = 0; /* of an earlier failure the reason is not known any more */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "stoup: writing the output failed%s%s\n", errno ? ": " : "",
			errno ? strerror(errno) : "");
		return status == STOUP_EXIT_OK ? STOUP_EXIT_FAIL : status;
	}
	return status;
}

int main(int argc, char **argv)
{
	const struct command *command;
	char name[32];

	stoup_process_prepare();
	if (argc < 2) {
		usage(stderr);
		return STOUP_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
		printf("stoup %s\n", STOUP_VERSION);
		return finish(STOUP_EXIT_OK);
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
		strcmp(argv[1], "-h") == 0)
		return finish(help(argc > 2 ? argv[2] : NULL));
	command = command_find(argv[1]);
	if (!command) {
		fprintf(stderr, "stoup: there is no command '%s'; see `stoup help`\n", argv[1]);
		return STOUP_EXIT_USAGE;
	}
	/* What getopt tells begins with it. */
	snprintf(name, sizeof(name), "stoup %s", command->name);
	argv[1] = name;
	return finish(command->run(argc - 1, argv + 1));
}
