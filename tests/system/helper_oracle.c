/* SPDX-License-Identifier: Apache-2.0 */
/* helper_oracle.c - random queries of every form against a naive reference; tests/query has the forms.
 *
 * usage: helper_oracle [option...] POOL
 *   --seed N          of all choices (default 1)
 *   --count N         queries of each form (default 1000)
 *   --form A,B,...    only these forms
 *   --only FORM:N     only this query, as a failed one says
 *   --repeat N        that one so often: where it depends on when a daemon died
 *   --seconds S       go on with more queries until S seconds are over
 *   --direct          map what is not compressed
 *   --small           the pool holds little: leases may be refused by the share
 *   --store DIR       what the pool serves: series may be added
 *   --expect DIR      what the generator wrote, a file for each series
 *   --ahead N         options.ahead_cnt (-1: none)
 *   --merge-all       nothing but a merge of 64 whole series, each way, twice; exit status 3 and the text where it is
 *                     refused
 *   --verbose         say each query before it is made
 *
 * Exit status 1, with the query and how to make it again, where something else was found.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "query/query.h"

static const struct form {
	const char *name;
	void (*run)(struct query_run *);
	uint32_t part; /* of the queries asked for: one in so many */
} forms[] = {
	{"scan", query_scan, 1},
	{"weave", query_weave, 4},
	{"count", query_count, 1},
	{"asof", query_asof, 1},
	{"merge", query_merge, 4},
	{"filter", query_filter, 1},
	{"bars", query_bars, 1},
	{"follow", query_follow, 50},
};

#define FORM_CNT (sizeof(forms) / sizeof(forms[0]))

struct options {
	const char *forms, *only, *expect;
	uint64_t count, repeat;
	long seconds, ahead;
	int verbose, merge_all;
};

static void one(struct query_run *run, const struct form *form, uint64_t no)
{
	uint64_t salt = 0;

	for (const char *at = form->name; *at; at++)
		salt = salt * 131 + (uint8_t)*at;
	run->form = form->name;
	run->no = no;
	run->state = run->seed;
	run->state = query_bits(run) ^ salt;
	run->state = query_bits(run) ^ no;
	run->what[0] = 0;
	form->run(run);
	run->query_cnt++;
}

static int wanted(const char *list, const char *name)
{
	size_t len = strlen(name);

	if (!list)
		return 1;
	for (const char *at = list; (at = strstr(at, name)) != NULL; at += len)
		if ((at == list || at[-1] == ',') && (at[len] == 0 || at[len] == ','))
			return 1;
	return 0;
}

static void some(
	struct query_run *run, const struct form *form, uint64_t from, uint64_t to, int verbose)
{
	struct query_run before = *run;

	for (uint64_t no = from; no < to; no++) {
		one(run, form, no);
		if (verbose)
			fprintf(stderr, "%s:%" PRIu64 ": %s\n", form->name, no, run->what);
	}
	if (verbose || from == 0)
		printf("%-6s %7" PRIu64 " queries, %9" PRIu64 " records in %7" PRIu64
		       " spans compared, %" PRIu64 " without records\n",
			form->name, run->query_cnt - before.query_cnt,
			run->record_cnt - before.record_cnt, run->span_cnt - before.span_cnt,
			run->empty_cnt - before.empty_cnt);
	fflush(stdout);
}

static int only(struct query_run *run, const char *text, uint64_t repeat, int verbose)
{
	const char *colon = strchr(text, ':');
	uint64_t no = colon ? strtoull(colon + 1, NULL, 10) : 0;

	for (size_t f = 0; colon && f < FORM_CNT; f++)
		if (strncmp(forms[f].name, text, (size_t)(colon - text)) == 0) {
			while (repeat-- > 0)
				some(run, &forms[f], no, no + 1, verbose);
			return 0;
		}
	fprintf(stderr, "--only %s: FORM:NUMBER, as scan:17\n", text);
	return 2;
}

static void all(struct query_run *run, const struct options *o)
{
	time_t until = time(NULL) + o->seconds;
	uint64_t from = 0;

	do {
		for (size_t f = 0; f < FORM_CNT; f++)
			if (wanted(o->forms, forms[f].name))
				some(run, &forms[f], from / forms[f].part,
					(from + o->count) / forms[f].part, o->verbose);
		from += o->count;
	} while (time(NULL) < until);
	if (run->query_cnt == 0)
		query_fail(run, "no query was made: --form %s", o->forms ? o->forms : "");
	printf("seed %" PRIu64 ": %" PRIu64 " queries, %" PRIu64
	       " records compared, no difference\n",
		run->seed, run->query_cnt, run->record_cnt);
}

static int options_read(int argc, char **argv, struct options *o, struct query_run *run)
{
	static const struct option table[] = {{"seed", 1, NULL, 's'}, {"count", 1, NULL, 'c'},
		{"form", 1, NULL, 'f'}, {"only", 1, NULL, 'o'}, {"repeat", 1, NULL, 'r'},
		{"seconds", 1, NULL, 't'}, {"direct", 0, NULL, 'd'}, {"small", 0, NULL, 'S'},
		{"expect", 1, NULL, 'e'}, {"ahead", 1, NULL, 'a'}, {"verbose", 0, NULL, 'v'},
		{"merge-all", 0, NULL, 'M'}, {"store", 1, NULL, 'R'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (c) {
		case 's':
			run->seed = strtoull(optarg, NULL, 10);
			break;
		case 'c':
			o->count = strtoull(optarg, NULL, 10);
			break;
		case 'f':
			o->forms = optarg;
			break;
		case 'o':
			o->only = optarg;
			break;
		case 't':
			o->seconds = strtol(optarg, NULL, 10);
			break;
		case 'd':
			run->direct = 1;
			break;
		case 'S':
			run->small = 1;
			break;
		case 'e':
			o->expect = optarg;
			break;
		case 'a':
			o->ahead = strtol(optarg, NULL, 10);
			break;
		case 'r':
			o->repeat = strtoull(optarg, NULL, 10);
			break;
		case 'v':
			o->verbose = 1;
			break;
		case 'M':
			o->merge_all = 1;
			break;
		case 'R':
			run->store = optarg;
			break;
		default:
			return -1;
		}
	}
	return argc - optind == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct query_run run = {.seed = 1};
	struct options o = {.count = 1000, .repeat = 1};
	struct stoup_options opt;
	struct stoup_error err = {0};
	int rc = 0;

	if (options_read(argc, argv, &o, &run) < 0) {
		fprintf(stderr, "usage: helper_oracle [--seed N] [--count N] [option...] POOL\n");
		return 2;
	}
	run.pool = argv[optind];
	stoup_options_init(&opt);
	opt.ahead_cnt = (uint32_t)o.ahead;
	printf("seed %" PRIu64 "\n", run.seed);
	if (stoup_attach(run.pool, &opt, &run.st, &err) < 0) {
		fprintf(stderr, "helper_oracle: %s\n", err.text);
		return 1;
	}
	query_copy(&run, o.expect);
	if (o.merge_all)
		rc = query_merge_all(&run);
	else if (o.only)
		rc = only(&run, o.only, o.repeat, o.verbose);
	else
		all(&run, &o);
	run.form = "end";
	run.what[0] = 0;
	if (stoup_use_cnt(run.st) != 0)
		query_fail(&run, "%" PRId64 " cursors and leases are left", stoup_use_cnt(run.st));
	return stoup_detach(run.st) == 0 ? rc : 1;
}
