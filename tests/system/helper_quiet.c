/* SPDX-License-Identifier: Apache-2.0 */
/* helper_quiet.c - scans a series again and again and says what each pass cost the kernel: page faults by
 * getrusage, system calls by getppid before and after it, which a trace shows.
 *
 * usage: helper_quiet POOL SERIES PASSES [populate] [direct] [backward] [wait]
 *
 * One JSON line per pass; `wait` keeps it attached until standard input ends.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "consumer/stoup.h"

struct cost {
	uint64_t minor, major, ns;
};

static struct cost now(void)
{
	struct rusage usage;
	struct timespec ts;

	getrusage(RUSAGE_SELF, &usage);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct cost){(uint64_t)usage.ru_minflt, (uint64_t)usage.ru_majflt,
		(uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec};
}

struct found {
	uint64_t sum, records;
	uint64_t spans, above; /* those that lie above the span before */
};

/* Reads the first 8 bytes of each record, and so each page. 0 or a negative errno. */
static int pass(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, struct found *found)
{
	const char *before = NULL;
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc = stoup_scan(st, series, range, &cur, NULL);

	if (rc < 0)
		return rc;
	while ((rc = stoup_next(cur, &span)) > 0) {
		const char *at = span.base;

		found->above += before && at > before;
		found->spans++;
		before = at;

		for (uint64_t i = 0; i < span.record_cnt; i++, at += span.stride) {
			uint64_t word;

			memcpy(&word, at, sizeof(word));
			found->sum += word;
		}
		found->records += span.record_cnt;
	}
	stoup_cursor_close(cur);
	return rc;
}

static int measure(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, long passes)
{
	for (long i = 0; i < passes; i++) {
		struct found found = {0};
		struct cost before = now(), after;
		int rc;

		(void)getppid();
		rc = pass(st, series, range, &found);
		(void)getppid();
		after = now();
		if (rc < 0)
			return rc;
		printf("{\"records\": %" PRIu64 ", \"sum\": %" PRIu64 ", \"minor\": %" PRIu64
		       ", \"major\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"spans\": %" PRIu64
		       ", \"above\": %" PRIu64 "}\n",
			found.records, found.sum, after.minor - before.minor,
			after.major - before.major, after.ns - before.ns, found.spans, found.above);
	}
	printf("done\n");
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	struct stoup_range range = {0};
	struct stoup_series series;
	struct stoup_options opt;
	struct stoup_error err = {0};
	struct stoup *st = NULL;
	int rc, wait = 0;
	char byte;

	stoup_options_init(&opt);
	for (int i = 4; i < argc; i++) {
		if (strcmp(argv[i], "populate") == 0)
			opt.flags |= STOUP_POPULATE;
		else if (strcmp(argv[i], "direct") == 0)
			range.flags |= STOUP_DIRECT;
		else if (strcmp(argv[i], "backward") == 0)
			range.flags |= STOUP_BACKWARD;
		else
			wait = 1;
	}
	if (argc < 4)
		return 2;
	rc = stoup_attach(argv[1], &opt, &st, &err);
	if (rc == 0)
		rc = stoup_series_find(st, argv[2], &series, &err);
	if (rc < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	rc = measure(st, &series, &range, strtol(argv[3], NULL, 10));
	while (wait && read(STDIN_FILENO, &byte, 1) > 0)
		;
	return stoup_detach(st) < 0 || rc < 0;
}
