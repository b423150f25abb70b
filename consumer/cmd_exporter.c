/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_exporter.c - `stoup exporter`: metrics of pools for Prometheus, over HTTP or once to stdout. See exporter.h. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/exporter.h"
#include "consumer/tool_args.h"
#include "consumer/tools.h"

#define SERIES_CAP 10000u

struct args {
	const char *listen;
	int once, remote, consumers;
	uint64_t series_max;
};

static const struct option options[] = {
	{"listen", required_argument, NULL, 'l'},
	{"allow-remote", no_argument, NULL, 'r'},
	{"once", no_argument, NULL, 'o'},
	{"series-max", required_argument, NULL, 's'},
	{"no-consumers", no_argument, NULL, 'c'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"usage: stoup exporter --listen HOST:PORT [options] [POOL...]\n"
	"       stoup exporter --once [options] [POOL...]\n"
	"Serve what pools show as metrics for Prometheus (/metrics), as JSON (/stat.json) and as a page (/), until\n"
	"SIGTERM. All pools of this user, found anew at each request, or those named. Works while their daemons hang, are\n"
	"stopped or dead, and says so: stoup_up, stoup_pool_state. docs/metrics.md lists the metrics.\n"
	"  --listen HOST:PORT  where: 127.0.0.1:9753, [::1]:9753; port 0 takes a free one. It is printed\n"
	"  --allow-remote      HOST may be one that other machines reach. There is no authentication\n"
	"  --once              print the metrics once, for the textfile collector of node_exporter\n"
	"  --series-max N      show the N series with most leased bytes, the others together (64)\n"
	"  --no-consumers      do not show each consumer: where workers come and go by the thousand\n";

static int wrong(const char *what)
{
	fprintf(stderr, "stoup exporter: %s; see `stoup help exporter`\n", what);
	return 2;
}

/* 0; 1: help was printed; 2: wrong usage, told. */
static int parse(int argc, char **argv, struct args *args)
{
	int which;

	*args = (struct args){.consumers = 1, .series_max = STOUP_EXPORTER_SERIES};
	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (which == '?') {
			fputs("See `stoup help exporter`.\n", stderr);
			return 2;
		}
		if (which == 's' && !stoup_tool_number(optarg, 0, SERIES_CAP, &args->series_max))
			return wrong("--series-max: a number is wanted, 0 to 10000");
		args->listen = which == 'l' ? optarg : args->listen;
		args->remote |= which == 'r';
		args->once |= which == 'o';
		args->consumers &= which != 'c';
	}
	if (args->once && (args->listen || args->remote))
		return wrong("--once prints to stdout: it does not listen");
	if (!args->once && !args->listen)
		return wrong("--listen HOST:PORT is wanted, or --once");
	return 0;
}

static int serve(const struct args *args, struct stoup_exporter *exporter)
{
	struct stoup_exporter_listen listen_at;
	struct stoup_error err = {0};
	int rc = stoup_exporter_listen_parse(args->listen, &listen_at, &err);

	if (rc < 0)
		return wrong(err.text);
	if (!listen_at.loopback && !args->remote) {
		fprintf(stderr,
			"stoup exporter: --listen %s: other machines reach this address, and there is no "
			"authentication: whoever connects sees pids, commands and series. To serve them all the "
			"same: --allow-remote; better: a loopback address behind a proxy that asks who it is\n",
			listen_at.shown);
		return 2;
	}
	if (!listen_at.loopback)
		fprintf(stderr,
			"stoup exporter: warning: %s has no authentication: whoever reaches it sees pids, commands "
			"and series\n",
			listen_at.shown);
	rc = stoup_exporter_serve(exporter, &listen_at, &err);
	if (rc < 0)
		fprintf(stderr, "stoup exporter: %s\n", err.text);
	return rc < 0;
}

int stoup_cmd_exporter(int argc, char **argv)
{
	struct stoup_exporter exporter;
	struct stoup_error err = {0};
	struct args args;
	int rc = parse(argc, argv, &args);

	if (rc)
		return rc == 1 ? 0 : rc;
	rc = stoup_exporter_init(&exporter, argv + optind, (uint32_t)(argc - optind), &err);
	if (rc < 0) {
		fprintf(stderr, "stoup exporter: %s\n", err.text);
		return rc == -EINVAL ? 2 : 1;
	}
	exporter.series_max = (uint32_t)args.series_max;
	exporter.consumers = args.consumers;
	if (args.once) {
		stoup_exporter_look(&exporter);
		if (exporter.find_rc < 0) {
			fprintf(stderr, "stoup exporter: which pools there are: %s\n",
				strerror(-exporter.find_rc));
			stoup_exporter_fini(&exporter);
			return 1;
		}
		stoup_exporter_metrics(&exporter, stdout, 0);
		rc = stoup_tool_stdout("stoup exporter") < 0;
	} else {
		rc = serve(&args, &exporter);
	}
	stoup_exporter_fini(&exporter);
	return rc;
}
