/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - cursors that go on when the store grows: a series is made, followed by many cursors, and added to.
 *
 *      ingest --> N records --> cursors with STOUP_FOLLOW, some drained, some not begun
 *      ingest --> more, beginning with the last key --> stoup_wait_news --> the cursors go on
 *
 * What is there is what was written: the reference does not come out of the pool. An end (0) may come early, since the
 * daemon needs a moment to see a volume; after the last ingest each cursor must have come to its own end in time.
 */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "query/query.h"

#define CURSOR_CAP 24
#define ROUND_CAP  4 /* a cursor that does not move falls behind by fewer snapshots than are kept */
#define PATIENCE   60

extern char **environ;

struct follower {
	struct stoup_cursor *cur;
	struct stoup_range range;
	uint64_t next, begun_cnt; /* next ordinal; records that were there when it was opened */
	int settled;              /* `next` is known */
};

struct growing {
	struct query_series s;
	char name[64], csv[64];
	int64_t key;
	int keep, direct;
	struct follower followers[CURSOR_CAP];
	uint32_t follower_cnt;
};

/* ---- adding ---------------------------------------------------------------------------------- */

static void stoup_run(struct query_run *run, const char *const *argv)
{
	char path[4096], dir[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int status = 0, rc;
	pid_t pid;

	path[len > 0 ? len : 0] = 0;
	snprintf(dir, sizeof(dir), "%.4000s/stoup", dirname(path));
	rc = posix_spawn(&pid, dir, NULL, NULL, (char *const *)(uintptr_t)argv, environ);
	if (rc != 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		query_fail(run, "%s %s: %d, status %d", dir, argv[1], rc, status);
}

static int64_t key_next(struct query_run *run, int64_t key)
{
	static const int64_t steps[] = {0, 0, 0, 1, 1, 1000, 1000000, INT64_C(1000000000000)};

	return key + steps[query_below(run, sizeof(steps) / sizeof(steps[0]))];
}

static void records_make(
	struct query_run *run, struct growing *g, struct stoup_tick *ticks, uint64_t cnt)
{
	for (uint64_t i = 0; i < cnt; i++) {
		/* The last key stands alone: two volumes of one key are taken for one given twice. */
		g->key = i + 1 == cnt ? g->key + 1 : key_next(run, g->key);
		ticks[i] = (struct stoup_tick){.ts = g->key,
			.price = (int64_t)query_below(run, 100000) * 10000000,
			.size = (uint32_t)query_below(run, 1000),
			.flags = (uint32_t)(g->s.cnt + i)};
	}
	for (uint64_t i = 1; g->keep && i + 4 < cnt; i += 1 + query_below(run, 5)) {
		struct stoup_tick swap = ticks[i];

		ticks[i] = ticks[i + 2];
		ticks[i + 2] = swap;
	}
}

static void grow(struct query_run *run, struct growing *g)
{
	const char *argv[] = {"stoup", "ingest", "--quiet", "--store", run->store, "--series",
		g->name, "--schema", "tick", "--columns", "ts,price,size,flags", "--time-format",
		"ns", "--header", "no", "--block", "64K", "--codec", g->direct ? "none" : "lz4",
		"--order", g->keep ? "keep" : "refuse", g->csv, NULL};
	uint64_t cnt = 1 + query_below(run, query_one_in(run, 3) ? 6000 : 40);
	struct stoup_tick *ticks = calloc(cnt, sizeof(*ticks));
	FILE *out = fopen(g->csv, "w");

	if (!ticks || !out)
		query_fail(run, "%s cannot be written", g->csv);
	records_make(run, g, ticks, cnt);
	for (uint64_t i = 0; i < cnt; i++) {
		fprintf(out, "%" PRId64 ",%" PRId64 ".%02" PRId64 ",%u,%u\n", ticks[i].ts,
			ticks[i].price / 1000000000, ticks[i].price / 10000000 % 100, ticks[i].size,
			ticks[i].flags);
		query_add(&g->s, ticks[i].ts, &ticks[i], sizeof(ticks[i]), i == 0);
	}
	if (fclose(out) != 0)
		query_fail(run, "%s cannot be written", g->csv);
	query_say(run, "; +%" PRIu64 " to %" PRId64, cnt, g->key);
	stoup_run(run, argv);
	unlink(g->csv);
	free(ticks);
}

static void forget(struct query_run *run, struct growing *g)
{
	const char *argv[] = {"stoup", "rm", "--quiet", "--yes", run->store, g->name, NULL};

	stoup_run(run, argv);
	free(g->s.keys);
	free(g->s.order);
	free(g->s.offs);
	free(g->s.begins);
	free(g->s.bytes);
}

/* ---- following ------------------------------------------------------------------------------- */

/* The records that a follower yields in the end, of those that are there now. */
static struct query_found wanted(struct query_run *run, struct growing *g, const struct follower *f)
{
	struct query_found all = query_bounds(run, &g->s, &f->range), then;
	uint64_t cnt = g->s.cnt;

	if (!(f->range.flags & STOUP_LAST))
		return query_limit(&f->range, all);
	/* The limit counts what was there. */
	g->s.cnt = f->begun_cnt;
	then = query_bounds(run, &g->s, &f->range);
	g->s.cnt = cnt;
	if (then.low < then.high)
		all.low = query_limit(&f->range, then).low;
	return all;
}

/* One step of a follower: 1, 0 at an end. */
static int step(struct query_run *run, struct growing *g, struct follower *f)
{
	struct query_found want = wanted(run, g, f);
	struct stoup_span span;
	int rc = stoup_next(f->cur, &span);

	if (rc == -EDQUOT && run->small)
		return 1;
	if (rc < 0)
		query_fail(run, "follower %td: stoup_next: %d %s", f - g->followers, rc,
			stoup_cursor_error(f->cur)->text);
	if (rc == 0)
		return 0;
	if (!f->settled)
		f->next = want.low;
	f->settled = 1;
	if (span.ordinal != f->next || span.ordinal + span.record_cnt > want.high)
		query_fail(run,
			"follower %td: records [%" PRIu64 ", %" PRIu64 "), expected from [%" PRIu64
			", %" PRIu64 ")",
			f - g->followers, span.ordinal, span.ordinal + span.record_cnt, f->next,
			want.high);
	query_span_check(run, &g->s, &span);
	f->next += span.record_cnt;
	return 1;
}

static void follower_open(struct query_run *run, struct growing *g)
{
	struct follower *f = &g->followers[g->follower_cnt++];
	struct stoup_error err = {0};

	query_say(run, " | ");
	query_range_pick(run, &g->s, &f->range);
	f->range.flags &= ~(STOUP_BACKWARD | STOUP_DIRECT | STOUP_DIRECT_OR_POOL);
	f->range.flags |= STOUP_FOLLOW | (g->direct && query_one_in(run, 2) ? STOUP_DIRECT : 0);
	if (query_one_in(run, 2))
		f->range.to_ns = 0;
	if (query_one_in(run, 4)) /* what is only to come */
		f->range.from_ns = f->range.flags & STOUP_ORDINALS ? (int64_t)g->s.cnt : g->key + 1;
	if (f->range.to_ns != 0 && f->range.to_ns < f->range.from_ns)
		f->range.to_ns = 0;
	f->begun_cnt = g->s.cnt;
	query_say(run, " (follows from %" PRId64 " to %" PRId64 ")", f->range.from_ns,
		f->range.to_ns);
	if (stoup_scan(run->st, &g->s.series, &f->range, &f->cur, &err) < 0)
		query_fail(run, "stoup_scan: %s", err.text);
	/* Which are the last ones is settled when the first is asked for: now. */
	if (f->range.flags & STOUP_LAST)
		step(run, g, f);
}

static int ended(struct query_run *run, struct growing *g, struct follower *f)
{
	struct query_found want = wanted(run, g, f);

	return want.low >= want.high || (f->settled && f->next == want.high);
}

/* All that was written comes, and then the end. */
static void finish(struct query_run *run, struct growing *g)
{
	time_t until = time(NULL) + PATIENCE;
	struct stoup_error err = {0};

	for (uint32_t i = 0; i < g->follower_cnt; i++) {
		struct follower *f = &g->followers[i];

		for (;;) {
			while (step(run, g, f) > 0)
				;
			if (ended(run, g, f))
				break;
			if (time(NULL) > until)
				query_fail(run,
					"follower %u: stands before record %" PRIu64 " of %" PRIu64,
					i, f->next, wanted(run, g, f).high);
			if (stoup_wait_news(run->st, 200000000, &err) < 0)
				query_fail(run, "stoup_wait_news: %d %s", err.code, err.text);
		}
		stoup_cursor_close(f->cur);
	}
}

static void find(struct query_run *run, struct growing *g)
{
	time_t until = time(NULL) + PATIENCE;
	struct stoup_error err = {0};

	while (stoup_series_find(run->st, g->name, &g->s.series, &err) < 0 ||
		g->s.series.record_cnt < g->s.cnt) {
		if (time(NULL) > until)
			query_fail(run, "%s did not appear: %s", g->name, err.text);
		if (stoup_wait_news(run->st, 200000000, &err) < 0 ||
			stoup_refresh(run->st, &err) < 0)
			query_fail(run, "waiting for %s: %d %s", g->name, err.code, err.text);
	}
}

void query_follow(struct query_run *run)
{
	static struct growing g;
	uint64_t cursors = 1 + query_below(run, run->small ? 4 : CURSOR_CAP);

	if (!run->store)
		query_fail(run, "--store says where to add series");
	memset(&g, 0, sizeof(g));
	g.key = INT64_C(1700000000000000000);
	g.direct = run->direct;
	g.keep = query_one_in(run, 4);
	snprintf(g.name, sizeof(g.name), "F/%d.%" PRIu64 "/tick", (int)getpid(), run->no);
	snprintf(g.csv, sizeof(g.csv), "/tmp/helper_oracle.%d.csv", (int)getpid());
	g.s.stride = sizeof(struct stoup_tick);
	g.s.keep = g.keep;
	grow(run, &g);
	find(run, &g);
	while (g.follower_cnt < cursors)
		follower_open(run, &g);
	for (uint64_t rounds = 1 + query_below(run, ROUND_CAP); rounds > 0; rounds--) {
		for (uint64_t steps = query_below(run, 80); steps > 0; steps--)
			step(run, &g, &g.followers[query_below(run, g.follower_cnt)]);
		grow(run, &g);
	}
	finish(run, &g);
	forget(run, &g);
}
