/* SPDX-License-Identifier: Apache-2.0 */
/* b3_workers.c - B3: 1 to 64 processes over the same data.
 *
 *      records --+-- store --> daemon: a pool that holds all, or a quarter --> workers
 *                +-- raw file --mmap--> workers
 *                +-- zstd -3 file --> workers, each decodes: streaming, or resident
 *
 * One run of each size: what counts here is memory and how often a block is decoded, which do not
 * spread; times are shown. Resident copies are bounded by the machine's memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>
#include "bench/b3_crowd.h"
#include "bench/harness.h"
#include "bench/rig.h"

#define SERIES   "BENCH/ONE/mbo"
#define POOL_MIN (8u << 20)
#define STAGGER_NUM                                                                                \
	2u /* from the first start to the last: two fifths of a lone cold scan, so that all overlap */
#define STAGGER_DEN 5u
#define FURTHER_CNT 41u /* further workers, one after the other */
#define WINDOW_LOG  21  /* of zstd: what its level 3 takes for large inputs */

static char store[4096], raw[4096], packed[4096];
static uint64_t record_cnt, raw_len, block_cnt;

/* ---- data ------------------------------------------------------------------------------------ */

/* One zstd frame that says how long it decodes to. */
static void pack(const struct bench_records *records)
{
	size_t cap = ZSTD_compressBound(records->len), len;
	void *dst = bench_alloc(cap);
	ZSTD_CCtx *context = ZSTD_createCCtx();

	if (!context)
		bench_die("no memory");
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 3);
	ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, WINDOW_LOG);
	ZSTD_CCtx_setParameter(context, ZSTD_c_nbWorkers, 2);
	len = ZSTD_compress2(context, dst, cap, records->bytes, records->len);
	if (ZSTD_isError(len))
		bench_die("zstd: %s", ZSTD_getErrorName(len));
	bench_write_file(packed, dst, len);
	ZSTD_freeCCtx(context);
	bench_free(dst, cap);
}

static void make_data(void)
{
	struct bench_records records = bench_records_make(BENCH_MBO, bench_scale(20000000, 100000));
	struct bench_blocks blocks;

	record_cnt = records.cnt;
	raw_len = records.len;
	snprintf(store, sizeof(store), "%s", bench_path("b3.store"));
	snprintf(raw, sizeof(raw), "%s", bench_path("b3.raw"));
	snprintf(packed, sizeof(packed), "%s", bench_path("b3.zst"));
	bench_write_file(raw, records.bytes, records.len);
	pack(&records);
	bench_store_make(store, SERIES, bench_codec_default(), 0, &records);
	bench_free(records.bytes, records.len);
	bench_blocks_read(&blocks, store);
	block_cnt = blocks.cnt;
	bench_blocks_free(&blocks);
}

/* ---- pools ------------------------------------------------------------------------------------- */

struct pool {
	struct bench_daemon daemon;
	uint64_t objects_kib; /* its shared objects as announced: data, control, catalogs */
};

static void pool_start(struct pool *pool, uint64_t len)
{
	bench_daemon_start(&pool->daemon, store, len, NULL);
	pool->objects_kib = bench_memory_of(pool->daemon.pid).objects;
}

/* ---- one crowd ------------------------------------------------------------------------------- */

static int cmp_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double mib(uint64_t kib)
{
	return (double)kib / 1024;
}

/* The numbers of one crowd; those of the pool where there is one. */
static void report(const char *label, struct bench_crowd *crowd, const struct pool *pool)
{
	struct bench_value values[16];
	size_t cnt = 0;
	char name[96];

	qsort(crowd->first_ns, crowd->cnt, sizeof(crowd->first_ns[0]), cmp_u64);
	values[cnt++] = (struct bench_value){"workers", crowd->cnt};
	values[cnt++] = (struct bench_value){"pss_mib", mib(crowd->workers.pss)};
	values[cnt++] = (struct bench_value){"private_mib", mib(crowd->workers.private)};
	values[cnt++] = (struct bench_value){"page_table_mib", mib(crowd->workers.pte)};
	values[cnt++] = (struct bench_value){"cpu_s", (double)crowd->cpu_ns / 1e9};
	values[cnt++] = (struct bench_value){"wall_s", (double)crowd->wall_ns / 1e9};
	values[cnt++] =
		(struct bench_value){"first_ms_p50", (double)crowd->first_ns[crowd->cnt / 2] / 1e6};
	values[cnt++] =
		(struct bench_value){"first_ms_max", (double)crowd->first_ns[crowd->cnt - 1] / 1e6};
	values[cnt++] = (struct bench_value){"raw_mib", (double)raw_len / 1048576};
	if (pool) {
		values[cnt++] =
			(struct bench_value){"daemon_pss_mib", mib(crowd->daemon_memory.pss)};
		values[cnt++] = (struct bench_value){
			"daemon_pool_pss_mib", mib(crowd->daemon_memory.objects)};
		values[cnt++] = (struct bench_value){"pool_mib", mib(pool->objects_kib)};
		values[cnt++] = (struct bench_value){"decodes_per_block",
			(double)bench_counter(pool->daemon.pool, "loads") / (double)block_cnt};
	}
	snprintf(name, sizeof(name), "%s, %u worker%s", label, crowd->cnt,
		crowd->cnt > 1 ? "s" : "");
	bench_values("B3", name, values, cnt);
}

static void check_result(const struct bench_crowd *crowd)
{
	static uint64_t expected;
	static int known;

	if (known && crowd->result != expected)
		bench_die("B3: workers in mode %s computed another result", crowd->mode);
	expected = crowd->result;
	known = 1;
}

static void run_private(const char *label, const char *mode, const char *path, uint32_t cnt)
{
	struct bench_crowd crowd = {.mode = mode, .path = path, .series = "-", .cnt = cnt};

	bench_crowd_run(&crowd);
	check_result(&crowd);
	report(label, &crowd, NULL);
}

/* Returns the time of the whole. */
static uint64_t run_pool(const char *label, uint32_t cnt, uint64_t pool_len, uint32_t apart_us)
{
	struct pool pool;
	struct bench_crowd crowd = {
		.mode = "pool", .series = SERIES, .cnt = cnt, .apart_us = apart_us};

	pool_start(&pool, pool_len);
	crowd.path = pool.daemon.pool;
	crowd.daemon = pool.daemon.pid;
	bench_crowd_run(&crowd);
	check_result(&crowd);
	report(label, &crowd, &pool);
	bench_daemon_stop(&pool.daemon);
	return crowd.wall_ns;
}

/* A pool that others have filled, and one more worker at a time: exec to first record. */
static void run_further(uint64_t pool_len)
{
	uint64_t samples[FURTHER_CNT];
	struct bench_crowd crowd = {.mode = "pool", .series = SERIES, .cnt = 1};
	struct pool pool;
	uint32_t cnt = (uint32_t)bench_scale(FURTHER_CNT, 5);

	pool_start(&pool, pool_len);
	crowd.path = pool.daemon.pool;
	crowd.daemon = pool.daemon.pid;
	bench_crowd_run(&crowd);
	for (uint32_t i = 0; i < cnt; i++) {
		bench_crowd_run(&crowd);
		samples[i] = crowd.first_ns[0];
	}
	bench_latency("B3", "a further worker: exec to first record", samples, cnt);
	bench_daemon_stop(&pool.daemon);
}

void bench_b3_workers(void)
{
	static const uint32_t counts[] = {1, 2, 4, 8, 16, 32, 64};
	static const uint32_t staggered[] = {2, 8, 32};
	size_t count_cnt = bench_settings.quick ? 2 : sizeof(counts) / sizeof(counts[0]);
	uint64_t pool_len, fits, wall_ns, lone_us = 0;

	make_data();
	pool_len = raw_len + (raw_len >> 4) + (32u << 20);
	fits = bench_memory_free() * 7 / 10 / (raw_len + (16u << 20));
	for (size_t i = 0; i < count_cnt; i++) {
		wall_ns = run_pool("stoup, pool holds all", counts[i], pool_len, 0);
		if (counts[i] == 1)
			lone_us = wall_ns / 1000;
		run_private("mmap of the raw file", "mmap", raw, counts[i]);
		run_private("private zstd -3, streaming", "stream", packed, counts[i]);
		if (counts[i] <= fits)
			run_private("private zstd -3, resident", "resident", packed, counts[i]);
	}
	for (size_t i = 0;
		i < (bench_settings.quick ? 1 : sizeof(staggered) / sizeof(staggered[0])); i++)
		run_pool("stoup, pool of a quarter, staggered", staggered[i],
			raw_len / 4 < POOL_MIN ? POOL_MIN : raw_len / 4,
			(uint32_t)(lone_us * STAGGER_NUM / STAGGER_DEN / staggered[i]));
	run_further(pool_len);
	bench_note("B3",
		"%.3g M simulated orders, %.3g MiB decoded, %llu blocks. One run of each size: memory and "
		"decodes do not spread, times are only shown. The machine's free memory holds %llu resident "
		"copies; more are left out. `pool` is all of its shared memory as announced: data, control, "
		"catalogs.",
		(double)record_cnt / 1e6, (double)raw_len / 1048576, (unsigned long long)block_cnt,
		(unsigned long long)fits);
	bench_remove(store);
	bench_remove(raw);
	bench_remove(packed);
}
