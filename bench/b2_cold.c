/* SPDX-License-Identifier: Apache-2.0 */
/* b2_cold.c - B2: a series that is not in the pool, its file in the page cache, one consumer.
 *
 *      before each sample: a daemon with an empty pool, an attached consumer     (not timed)
 *      the sample:         one scan, the loop over every span
 *
 * Against: the decoder alone (the same stored blocks, one core, one buffer, no loop): the limit of
 * one core; and what a private reader does, zstd -3 or lz4 piece by piece, with the same loop. The daemon has
 * the workers that it starts by default, or one that has a core of its own, as for isolated cores.
 */
#include <sched.h>
#include <stdio.h>
#include "bench/harness.h"
#include "bench/rig.h"

#define SERIES    "BENCH/ONE/mbo"
#define CODEC_CAP 3

struct cold {
	const char *role; /* "none", "default", "small" */
	char store[4096];
	uint64_t pool_len;
	struct bench_daemon daemon;
	struct bench_scan scan;
	struct bench_blocks blocks;
	char cold_name[64], one_name[64], alone_name[64];
	int one;                              /* a single decode worker */
	uint64_t scan_ns, decode_ns, raw_len; /* sums over all samples */
};

/* This process to all processors but one, or (SIZE_MAX) to all again. */
static void keep_off(size_t cpu)
{
	static cpu_set_t all;
	cpu_set_t set;

	if (CPU_COUNT(&all) == 0)
		sched_getaffinity(0, sizeof(all), &all);
	set = all;
	if (cpu < CPU_SETSIZE && CPU_COUNT(&set) > 1)
		CPU_CLR(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static size_t last_cpu(void)
{
	cpu_set_t set;
	size_t last = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			last = i;
	return last;
}

static void cold_before(void *arg)
{
	static char cpu[24];
	static const char *const one_worker[] = {
		"--threads", "1", "--cpus", cpu, "--spin", "100us", NULL};
	struct cold *c = arg;
	size_t last = last_cpu();

	snprintf(cpu, sizeof(cpu), "%zu", last);
	bench_daemon_start(&c->daemon, c->store, c->pool_len, c->one ? one_worker : NULL);
	if (c->one)
		keep_off(last);
	c->scan.st = bench_attach(c->daemon.pool, NULL, SERIES, &c->scan.series);
}

static uint64_t cold_pass(void *arg)
{
	struct cold *c = arg;
	uint64_t began = bench_now(), result = bench_scan_pass(&c->scan);

	c->scan_ns += bench_now() - began;
	return result;
}

static void cold_after(void *arg)
{
	struct cold *c = arg;
	uint64_t loads = bench_counter(c->daemon.pool, "loads");

	if (loads != c->blocks.cnt)
		bench_die("B2: %llu blocks loaded of %zu: not a cold scan",
			(unsigned long long)loads, c->blocks.cnt);
	c->decode_ns += bench_counter(c->daemon.pool, "decode_ns");
	c->raw_len += bench_counter(c->daemon.pool, "load_raw_bytes");
	stoup_detach(c->scan.st);
	bench_daemon_stop(&c->daemon);
	keep_off(SIZE_MAX);
}

static void cold_make(
	struct cold *c, const char *role, const char *codec, const struct bench_records *records)
{
	char name[64];

	c->role = role;
	snprintf(name, sizeof(name), "b2.store.%s", role);
	snprintf(c->store, sizeof(c->store), "%s", bench_path(name));
	snprintf(c->cold_name, sizeof(c->cold_name), "stoup cold, %s", role);
	snprintf(c->one_name, sizeof(c->one_name), "stoup cold, %s, one worker", role);
	snprintf(c->alone_name, sizeof(c->alone_name), "decoder alone, %s", role);
	bench_store_make(c->store, SERIES, codec, 0, records);
	bench_blocks_read(&c->blocks, c->store);
	c->pool_len = records->len + (records->len >> 3) + (32u << 20);
	c->scan.loop = bench_loop_of(records->kind, 0);
	bench_note("B2", "%s: `--codec %s`, %.3g bytes per record stored, ratio %.3g.", role, codec,
		(double)c->blocks.file_len / (double)records->cnt,
		(double)records->len / (double)c->blocks.stored_len);
}

/* How busy decoding was while the scan ran, and how fast into the pool: what the rates are made of. */
static void cold_report(const struct cold *c)
{
	struct bench_value values[] = {
		{"decode busy / scan", (double)c->decode_ns / (double)c->scan_ns},
		{"GB/s into the pool", (double)c->raw_len / (double)c->decode_ns},
	};

	bench_values("B2", c->one ? c->one_name : c->cold_name, values,
		sizeof(values) / sizeof(values[0]));
}

static struct bench_contender scan_of(struct cold *c)
{
	return (struct bench_contender){.name = c->one ? c->one_name : c->cold_name,
		.pass = cold_pass,
		.arg = c,
		.before = cold_before,
		.after = cold_after};
}

/* `one`: the same store under a daemon with a single worker, or NULL. */
static size_t add_codec(struct bench_contender *dst, struct cold *c, struct cold *one)
{
	size_t cnt = 0;

	dst[cnt++] = (struct bench_contender){.name = c->alone_name,
		.pass = bench_blocks_pass,
		.arg = &c->blocks,
		.unchecked = 1};
	dst[cnt++] = scan_of(c);
	if (one) {
		*one = *c;
		one->one = 1;
		dst[cnt++] = scan_of(one);
	}
	return cnt;
}

void bench_b2_cold(void)
{
	static struct cold colds[CODEC_CAP], ones[CODEC_CAP];
	struct bench_records records = bench_records_make(BENCH_MBO, bench_scale(1200000, 60000));
	bench_loop_fn *loop = bench_loop_of(BENCH_MBO, 0);
	struct bench_pieces zstd, lz4;
	struct bench_contender contenders[3 * CODEC_CAP + 2];
	struct bench_case what = {.row = "B2",
		.name = "cold scan",
		.data = "simulated orders of one symbol, price x size summed",
		.record_cnt = records.cnt,
		.byte_cnt = records.len,
		.reference = "private zstd -3"};
	size_t cnt = 0;

	cold_make(&colds[0], "none", "none", &records);
	cold_make(&colds[1], "default", bench_codec_default(), &records);
	cnt += add_codec(contenders + cnt, &colds[0], NULL);
	cnt += add_codec(contenders + cnt, &colds[1], &ones[1]);
	if (bench_codec_known("small")) {
		cold_make(&colds[2], "small", "small", &records);
		cnt += add_codec(contenders + cnt, &colds[2], &ones[2]);
	} else {
		contenders[cnt++] = (struct bench_contender){.name = "stoup cold, small",
			.absent = "not built: `stoup ingest` has no codec small"};
	}
	bench_pieces_make(&zstd, &records, 0, loop);
	bench_pieces_make(&lz4, &records, 1, loop);
	contenders[cnt++] = (struct bench_contender){
		.name = "private zstd -3", .pass = bench_pieces_pass, .arg = &zstd};
	contenders[cnt++] = (struct bench_contender){
		.name = "private lz4", .pass = bench_pieces_pass, .arg = &lz4};
	bench_interleave(&what, contenders, cnt, bench_rounds());
	bench_note("B2",
		"One worker: `stoupd --threads 1 --cpus N --spin 100us`, the consumer kept off that "
		"processor; else the daemon's defaults, a worker for each processor: their time in "
		"decoding is summed.");
	bench_note("B2",
		"Each cold sample has a daemon of its own, with an empty pool; its start and the "
		"attach are not timed.");
	for (size_t i = 0; i < CODEC_CAP; i++) {
		if (!colds[i].role)
			continue;
		if (i > 0) { /* without a codec nothing is decoded */
			cold_report(&colds[i]);
			cold_report(&ones[i]);
		}
		bench_blocks_free(&colds[i].blocks);
		bench_remove(colds[i].store);
	}
	bench_pieces_free(&zstd);
	bench_pieces_free(&lz4);
	bench_free(records.bytes, records.len);
}
