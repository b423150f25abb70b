/* SPDX-License-Identifier: Apache-2.0 */
/* helper_merge.c - merges series of a pool and compares what comes with a stable sort of all their records.
 *
 * usage: helper_merge POOL [--mark N] [--backward] [--passes N] SERIES...
 *   --mark N      after N runs: print "mark" and wait for a line of standard input
 *   --backward    from the end to the begin
 *   --passes N    merge N times (default 2)
 * Prints {"records", "runs", "longest", "passes"}; exit status 3 where the merge is refused: the text on stderr;
 * 1 for anything else, such as a record out of its place.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/stoup.h"

struct ref {
	int64_t place;
	uint64_t ordinal;
	uint32_t source, hash;
};

static struct ref *refs;
static uint64_t ref_cnt, ref_cap, runs, longest;
static long mark = -1, passes = 2;
static struct stoup_range range;

static void die(const char *what, const char *text)
{
	fprintf(stderr, "helper_merge: %s: %s\n", what, text);
	exit(1);
}

static uint32_t hash_of(const struct stoup_span *span, uint64_t i)
{
	const uint8_t *bytes = (const uint8_t *)span->base + i * span->stride;
	uint64_t len = span->stride;
	uint32_t hash = 2166136261u;
	struct stoup_message message;

	if (span->schema->flags & STOUP_SCHEMA_VARIABLE) {
		message = stoup_message_at(span, i);
		bytes = message.bytes;
		len = message.len;
	}
	for (uint64_t b = 0; b < len; b++)
		hash = (hash ^ bytes[b]) * 16777619u;
	return hash;
}

static int64_t key_of(const struct stoup_span *span, uint64_t i)
{
	int64_t key;

	if (span->schema->flags & STOUP_SCHEMA_VARIABLE)
		return stoup_message_at(span, i).key;
	memcpy(&key, (const char *)span->base + i * span->stride + span->schema->key_off, 8);
	return key;
}

static void copy(struct stoup *st, const struct stoup_series *series, uint32_t source)
{
	int64_t highest = 0, key;
	struct stoup_cursor *cur;
	struct stoup_error err;
	struct stoup_span span;
	int rc;

	if (stoup_scan(st, series, NULL, &cur, &err) < 0)
		die("scan", err.text);
	while ((rc = stoup_next(cur, &span)) > 0)
		for (uint64_t i = 0; i < span.record_cnt; i++) {
			if (ref_cnt == ref_cap) {
				ref_cap = ref_cap ? 2 * ref_cap : 1 << 16;
				refs = realloc(refs, ref_cap * sizeof(*refs));
				if (!refs)
					die("memory", "none");
			}
			key = key_of(&span, i);
			if (series->schema->flags & STOUP_SCHEMA_BAR)
				key += (int64_t)series->schema->interval_ns;
			if (series->flags & STOUP_SERIES_KEEP_ORDER)
				key = highest = key > highest ? key : highest;
			refs[ref_cnt++] =
				(struct ref){key, span.ordinal + i, source, hash_of(&span, i)};
		}
	if (rc < 0)
		die("scan", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
}

static int compare(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static void check(const struct stoup_cursor *cur, const struct stoup_span *span, uint64_t at)
{
	int backward = range.flags & STOUP_BACKWARD;

	for (uint64_t j = 0; j < span->record_cnt; j++, at++) {
		uint64_t i = backward ? span->record_cnt - 1 - j : j;
		const struct ref *ref = &refs[backward ? ref_cnt - 1 - at : at];

		if (at >= ref_cnt || ref->source != stoup_cursor_source(cur) ||
			ref->ordinal != span->ordinal + i || ref->hash != hash_of(span, i)) {
			fprintf(stderr, "record %" PRIu64 ": series %u ordinal %" PRIu64 "\n", at,
				stoup_cursor_source(cur), span->ordinal + i);
			die("merge", "not what a sort has there");
		}
	}
}

static void merge(struct stoup *st, const struct stoup_series *series, uint32_t cnt)
{
	struct stoup_cursor *cur;
	struct stoup_error err;
	struct stoup_span span;
	uint64_t at = 0;
	int rc;

	rc = stoup_merge(st, series, cnt, &range, &cur, &err);
	if (rc < 0) {
		fprintf(stderr, "%d %s\n", rc, err.text);
		exit(3);
	}
	while ((rc = stoup_next(cur, &span)) > 0) {
		check(cur, &span, at);
		at += span.record_cnt;
		longest = span.record_cnt > longest ? span.record_cnt : longest;
		if (++runs == (uint64_t)mark) {
			puts("mark");
			fflush(stdout);
			if (getchar() == EOF)
				die("mark", "nobody goes on");
		}
	}
	if (rc < 0)
		die("merge", stoup_cursor_error(cur)->text);
	if (at != ref_cnt)
		die("merge", "records are missing at the end");
	stoup_cursor_close(cur);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"mark", required_argument, NULL, 'm'},
		{"backward", no_argument, NULL, 'b'}, {"passes", required_argument, NULL, 'p'},
		{NULL, 0, NULL, 0}};
	struct stoup_series *series;
	struct stoup_error err;
	struct stoup *st;
	uint32_t cnt;
	int which;

	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == 'm')
			mark = atol(optarg);
		else if (which == 'p')
			passes = atol(optarg);
		else if (which == 'b')
			range.flags = STOUP_BACKWARD;
		else
			return 2;
	}
	cnt = (uint32_t)(argc - optind - 1);
	series = calloc(cnt, sizeof(*series));
	if (!series || stoup_attach(argv[optind], NULL, &st, &err) < 0)
		die("attach", err.text);
	for (uint32_t i = 0; i < cnt; i++) {
		if (stoup_series_find(st, argv[optind + 1 + (int)i], &series[i], &err) < 0)
			die("series", err.text);
		copy(st, &series[i], i);
	}
	qsort(refs, ref_cnt, sizeof(*refs), compare);
	for (long i = 0; i < passes; i++)
		merge(st, series, cnt);
	printf("{\"records\": %" PRIu64 ", \"runs\": %" PRIu64 ", \"longest\": %" PRIu64
	       ", \"passes\": %ld}\n",
		ref_cnt, runs, longest, passes);
	free(refs);
	free(series);
	return stoup_detach(st) == 0 ? 0 : 1;
}
