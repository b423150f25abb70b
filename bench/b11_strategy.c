/* SPDX-License-Identifier: Apache-2.0 */
/* b11_strategy.c - B11: a moving-average strategy over trades in six forms.
 *
 *      form                      where the records are                    the seed's name
 *      objects made ahead        malloc each, by a thread, freed          None
 *      private buffer            decoded (zstd -3) on each run            OnHeap
 *      private buffer, cached    decoded once, kept                       OnHeapCached
 *      off-heap                  a mapping of the raw file                OffHeap, OffHeapCached
 *      stoup pool                the pool                                 Flyweight
 *      stoup direct              the volume itself                        FlyweightNoCompression
 *
 * First one run, then 64 parameter sets, which as many threads as there are cores take in turn; each
 * thread has a reader or cursor of its own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench/b11_loop.h"
#include "bench/b11_objects.h"
#include "bench/harness.h"
#include "bench/rig.h"

#define SERIES      "BENCH/ONE/trades"
#define SET_CNT     64u
#define THREAD_CAP  64
#define SLOW_ROUNDS 8u

struct market { /* the same trades in all forms */
	struct bench_records records;
	const void *mapped;
	struct bench_pieces pieces;
	struct bench_daemon daemon;
	struct stoup *st;
	struct stoup_series series;
	struct stoup_range range, direct_range;
};

static struct market market;

static const struct parameters {
	uint32_t fast, slow;
} single = {12, 120};

/* ---- forms: one run of one parameter set ----------------------------------------------------- */

typedef void form_run(struct bench_strategy *strategy);

static void take(void *arg, const void *base, size_t cnt)
{
	bench_strategy_run(arg, base, cnt);
}

static void run_objects(struct bench_strategy *strategy)
{
	bench_objects_run(strategy, &market.pieces);
}

static void run_private(struct bench_strategy *strategy)
{
	struct bench_piece_reader reader;

	bench_piece_reader_make(&reader);
	reader.take = take;
	reader.arg = strategy;
	bench_pieces_walk(&market.pieces, &reader);
	bench_piece_reader_free(&reader);
}

static void run_cached(struct bench_strategy *strategy)
{
	take(strategy, market.records.bytes, market.records.cnt);
}

static void run_mapped(struct bench_strategy *strategy)
{
	take(strategy, market.mapped, market.records.cnt);
}

static void run_range(struct bench_strategy *strategy, const struct stoup_range *range)
{
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc;

	if (stoup_scan(market.st, &market.series, range, &cur, &err) < 0)
		bench_die("B11: %s", err.text);
	while ((rc = stoup_next(cur, &span)) > 0)
		take(strategy, span.base, span.record_cnt);
	if (rc < 0)
		bench_die("B11: %s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
}

static void run_pool(struct bench_strategy *strategy)
{
	run_range(strategy, &market.range);
}

#ifdef STOUP_DIRECT
static void run_direct(struct bench_strategy *strategy)
{
	run_range(strategy, &market.direct_range);
}
#endif

/* ---- one run, and many ----------------------------------------------------------------------- */

struct sweep {
	form_run *run;
	_Atomic uint32_t next;
	uint32_t set_cnt;
	uint64_t results[SET_CNT];
};

static uint64_t run_one(form_run *run, uint32_t fast, uint32_t slow)
{
	struct bench_strategy strategy;

	bench_strategy_begin(&strategy, fast, slow);
	run(&strategy);
	return bench_strategy_result(&strategy);
}

static uint64_t single_pass(void *arg)
{
	const struct sweep *sweep = arg;

	return run_one(sweep->run, single.fast, single.slow);
}

/* Eight fast averages times eight slow ones. */
static void *sweep_thread(void *arg)
{
	struct sweep *sweep = arg;
	uint32_t i;

	while ((i = atomic_fetch_add(&sweep->next, 1)) < sweep->set_cnt)
		sweep->results[i] = run_one(sweep->run, 4 + 2 * (i % 8), 40 + 20 * (i / 8));
	return NULL;
}

static uint64_t sweep_pass(void *arg)
{
	long cpu_cnt = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[THREAD_CAP];
	struct sweep *sweep = arg;
	uint64_t sum = 0;
	int cnt = cpu_cnt < 1 ? 1 : cpu_cnt > THREAD_CAP ? THREAD_CAP : (int)cpu_cnt;

	atomic_store(&sweep->next, 0);
	for (int i = 0; i < cnt; i++)
		if (pthread_create(&threads[i], NULL, sweep_thread, sweep) != 0)
			bench_die("no thread");
	for (int i = 0; i < cnt; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < sweep->set_cnt; i++)
		sum = sum * 31 + sweep->results[i];
	return sum;
}

/* ---- the row --------------------------------------------------------------------------------- */

static void market_make(void)
{
	const char *store = bench_path("b11.store"), *raw = bench_path("b11.raw");
	size_t len;

	market.records = bench_records_make(BENCH_TRADES, bench_scale(500000, 10000));
	bench_write_file(raw, market.records.bytes, market.records.len);
	market.mapped = bench_map_file(raw, &len);
	bench_pieces_make(&market.pieces, &market.records, 0, bench_loop_of(BENCH_TRADES, 0));
	bench_store_make(store, SERIES, "none", 0, &market.records);
	bench_daemon_start(&market.daemon, store, market.records.len * 2 + (32u << 20), NULL);
	market.st = bench_attach(market.daemon.pool, NULL, SERIES, &market.series);
#ifdef STOUP_DIRECT
	market.direct_range.flags = STOUP_DIRECT;
#endif
}

static void market_end(void)
{
	stoup_detach(market.st);
	bench_daemon_stop(&market.daemon);
	bench_unmap(market.mapped, market.records.len);
	bench_pieces_free(&market.pieces);
	bench_free(market.records.bytes, market.records.len);
	bench_remove(bench_path("b11.store"));
	bench_remove(bench_path("b11.raw"));
}

static void run_case(const char *name, bench_pass pass, uint32_t set_cnt)
{
	static struct sweep sweeps[] = {
		{.run = run_objects},
		{.run = run_private},
		{.run = run_cached},
		{.run = run_mapped},
		{.run = run_pool},
#ifdef STOUP_DIRECT
		{.run = run_direct},
#else
		{.run = NULL},
#endif
	};
	static const char *const names[] = {"objects made ahead by a thread", "private buffer",
		"private buffer, cached", "off-heap (mmap)", "stoup pool", "stoup direct"};
	struct bench_contender contenders[6];
	struct bench_case what = {.row = "B11",
		.name = name,
		.data = "simulated trades, two moving averages",
		.record_cnt = market.records.cnt * set_cnt,
		.byte_cnt = market.records.len * set_cnt,
		.reference = "private buffer, cached"};

	for (size_t i = 0; i < 6; i++) {
		sweeps[i].set_cnt = set_cnt;
		contenders[i] = (struct bench_contender){.name = names[i],
			.pass = sweeps[i].run ? pass : NULL,
			.arg = &sweeps[i],
			.every = i < 2 && !bench_settings.quick ? SLOW_ROUNDS : 0,
			.absent = "not built: this version has no direct mode"};
	}
	bench_interleave(&what, contenders, 6, bench_rounds());
}

void bench_b11_strategy(void)
{
	market_make();
	run_case("one run", single_pass, 1);
	run_case("64 parameter sets on all cores", sweep_pass, (uint32_t)bench_scale(SET_CNT, 8));
	bench_note("B11",
		"The pool holds all records and was filled by a run that is not timed. The two "
		"slow forms take part in each %uth round.",
		SLOW_ROUNDS);
	market_end();
}
