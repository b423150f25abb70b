/* SPDX-License-Identifier: Apache-2.0 */
/* b1_iterate.c - B1: records per second of a resident series, against what else one could do.
 *
 *      records --+-- private array   own memory, 2 MiB pages: the limit
 *                +-- stoup pool      a cursor over a pool that holds all of it
 *                +-- stoup direct    a cursor over the volume itself (where this version has it)
 *                +-- mmap            the raw file in the page cache
 *                +-- lmdb, rocksdb   their cursors, data in memory
 *                +-- heap objects    one malloc per record, an array of pointers
 *                +-- zstd -3         decoded privately on each pass
 */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "bench/b1_peers.h"
#include "bench/harness.h"
#include "bench/rig.h"

#define CONTENDER_CAP 8
#define ROUNDS        101u /* the ratio that is asked for is some percent: more pairs than the least */
#define SLOW_ROUNDS   20u /* contenders of the slow kind take part in each of so many rounds */
#define SERIES        "BENCH/ONE/records"

/* One size of one kind of records. */
struct size_case {
	enum bench_kind kind;
	uint64_t cnt, quick_cnt;
	uint32_t pass_cnt; /* of one sample */
	const char *name;
	int backward;
};

static const struct size_case cases[] = {
	{BENCH_KEYS, 100000, 20000, 25, "keys 0.1 M forward", 0},
	{BENCH_KEYS, 1000000, 40000, 3, "keys 1 M forward", 0},
	{BENCH_KEYS, 10000000, 60000, 1, "keys 10 M forward", 0},
	{BENCH_TRADES, 1000000, 10000, 1, "trades 1 M forward", 0},
	{BENCH_MBO, 1000000, 10000, 1, "mbo 1 M forward", 0},
	{BENCH_KEYS, 1000000, 40000, 3, "keys 1 M backward", 1},
	{BENCH_TRADES, 1000000, 10000, 1, "trades 1 M backward", 1},
	{BENCH_MBO, 1000000, 10000, 1, "mbo 1 M backward", 1},
};

struct array {
	const void *base;
	uint64_t cnt;
	bench_loop_fn *loop;
	int backward;
};

struct heap {
	enum bench_kind kind;
	void **objects;
	uint64_t cnt;
	int backward;
};

static uint64_t array_pass(void *arg)
{
	const struct array *a = arg;
	struct bench_loop loop = bench_loop_begin(a->backward);

	a->loop(&loop, a->base, a->cnt);
	return bench_loop_result(&loop);
}

static void heap_make(struct heap *heap, const struct bench_records *records)
{
	uint32_t stride = bench_stride(records->kind);

	*heap = (struct heap){.kind = records->kind,
		.cnt = records->cnt,
		.objects = malloc(records->cnt * sizeof(void *))};
	for (uint64_t i = 0; heap->objects && i < records->cnt; i++) {
		heap->objects[i] = malloc(stride);
		if (!heap->objects[i])
			bench_die("no memory for objects");
		memcpy(heap->objects[i], records->bytes + i * stride, stride);
	}
	if (!heap->objects)
		bench_die("no memory for objects");
}

static void heap_free(struct heap *heap)
{
	for (uint64_t i = 0; i < heap->cnt; i++)
		free(heap->objects[i]);
	free(heap->objects);
}

static uint64_t heap_pass(void *arg)
{
	const struct heap *heap = arg;
	struct bench_loop loop = bench_loop_begin(0);
	enum bench_kind kind = heap->kind;

	for (uint64_t i = 0; i < heap->cnt; i++)
		bench_step(kind, &loop, heap->objects[i]);
	return bench_loop_result(&loop);
}

/* ---- one case -------------------------------------------------------------------------------- */

struct stand {
	struct bench_records records;
	struct array array, map;
	struct bench_daemon daemon;
	struct bench_scan pool, direct;
	struct bench_pieces pieces;
	struct heap heap;
	struct bench_peer *lmdb, *rocksdb;
	struct bench_contender contenders[CONTENDER_CAP];
	size_t cnt;
};

static void add(struct stand *s, const char *name, bench_pass pass, void *arg, uint32_t every,
	uint32_t pass_cnt, const char *absent)
{
	s->contenders[s->cnt++] = (struct bench_contender){.name = name,
		.pass = pass,
		.arg = arg,
		.every = bench_settings.quick ? 0 : every,
		.pass_cnt = bench_settings.quick ? 1 : pass_cnt,
		.absent = absent};
}

static void stand_scans(struct stand *s, const struct size_case *c, bench_loop_fn *loop)
{
	const char *store = bench_path("b1.store");

	bench_store_make(store, SERIES, "none", 0, &s->records);
	bench_daemon_start(
		&s->daemon, store, s->records.len + (s->records.len >> 3) + (32u << 20), NULL);
	s->pool = (struct bench_scan){.loop = loop, .backward = c->backward};
	s->pool.st = bench_attach(s->daemon.pool, NULL, SERIES, &s->pool.series);
	s->direct = s->pool;
#ifdef STOUP_BACKWARD
	if (c->backward) {
		s->pool.range.flags |= STOUP_BACKWARD;
		s->direct.range.flags |= STOUP_BACKWARD;
	}
#endif
#ifdef STOUP_DIRECT
	s->direct.range.flags |= STOUP_DIRECT;
#endif
	/* A raw file as users have it beside their programs. */
	bench_write_file(bench_path("b1.raw"), s->records.bytes, s->records.len);
	s->map = s->array;
	s->map.base = bench_map_file(bench_path("b1.raw"), &s->records.len);
}

static void stand_contenders(struct stand *s, const struct size_case *c)
{
	uint32_t n = c->pass_cnt;
	bench_pass direct = NULL, pool = bench_scan_pass;
	const char *why_pool = NULL;

#ifdef STOUP_DIRECT
	direct = bench_scan_pass;
#endif
#ifndef STOUP_BACKWARD
	if (c->backward) {
		pool = NULL;
		direct = NULL;
		why_pool = "not built: this version scans forward only";
	}
#endif
	add(s, "private array", array_pass, &s->array, 0, n, NULL);
	add(s, "stoup pool", pool, &s->pool, 0, n, why_pool);
	add(s, "stoup direct", direct, &s->direct, 0, n,
		"not built: this version has no direct mode");
	add(s, "mmap of the raw file", array_pass, &s->map, 0, n, NULL);
	if (c->backward)
		return;
	add(s, "LMDB cursor", bench_lmdb_pass, s->lmdb, SLOW_ROUNDS, 1,
		"liblmdb-dev was not there when this was built");
	add(s, "RocksDB iterator", bench_rocksdb_pass, s->rocksdb, SLOW_ROUNDS, 1,
		"librocksdb-dev was not there when this was built");
	add(s, "heap object per record", heap_pass, &s->heap, SLOW_ROUNDS, 1, NULL);
	add(s, "private zstd -3 each pass", bench_pieces_pass, &s->pieces, SLOW_ROUNDS, 1, NULL);
}

static void stand_peers(struct stand *s, const struct size_case *c)
{
	char name[64];

	if (c->backward)
		return;
	heap_make(&s->heap, &s->records);
	bench_pieces_make(&s->pieces, &s->records, 0, bench_loop_of(c->kind, 0));
	snprintf(name, sizeof(name), "b1.lmdb.%u", (unsigned)(c - cases));
	s->lmdb = bench_lmdb_make(bench_path(name), &s->records);
	snprintf(name, sizeof(name), "b1.rocksdb.%u", (unsigned)(c - cases));
	s->rocksdb = bench_rocksdb_make(bench_path(name), &s->records);
}

static void stand_end(struct stand *s, const struct size_case *c)
{
	stoup_detach(s->pool.st);
	bench_daemon_stop(&s->daemon);
	bench_unmap(s->map.base, s->records.len);
	bench_remove(bench_path("b1.store"));
	bench_remove(bench_path("b1.raw"));
	if (!c->backward) {
		heap_free(&s->heap);
		bench_pieces_free(&s->pieces);
		if (s->lmdb)
			bench_lmdb_close(s->lmdb);
		if (s->rocksdb)
			bench_rocksdb_close(s->rocksdb);
	}
	bench_free(s->records.bytes, s->records.len);
}

static void run_case(const struct size_case *c)
{
	bench_loop_fn *loop = bench_loop_of(c->kind, c->backward);
	struct stand s = {0};
	struct bench_case what = {.row = "B1",
		.name = c->name,
		.reference = "private array",
		.data = c->kind == BENCH_KEYS     ? "keys 1 ms apart, prev < cur checked"
	                : c->kind == BENCH_TRADES ? "simulated trades, price x size summed"
	                                          : "simulated orders, price x size summed"};

	s.records = bench_records_make(c->kind, bench_scale(c->cnt, c->quick_cnt));
	what.record_cnt = s.records.cnt;
	what.byte_cnt = s.records.len;
	s.array = (struct array){s.records.bytes, s.records.cnt, loop, c->backward};
	stand_peers(&s, c);
	stand_scans(&s, c, loop);
	stand_contenders(&s, c);
	bench_interleave(
		&what, s.contenders, s.cnt, (uint32_t)bench_scale(ROUNDS, BENCH_QUICK_CNT));
	stand_end(&s, c);
}

void bench_b1_iterate(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_case(&cases[i]);
	bench_note("B1",
		"Passes: each sample is the mean of the passes shown, and contenders of the slow kind "
		"(LMDB, RocksDB, heap objects, zstd) take part in each %uth round, so that the row fits "
		"its time; the published runs made 1000, 100 and 10 passes over 0.1, 1 and 10 M keys.",
		SLOW_ROUNDS);
}
