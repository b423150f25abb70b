/* SPDX-License-Identifier: Apache-2.0 */
/* b5_miss.c - B5: from the request for a block that is not in the pool to its first record.
 *
 *      jump to a random block --stoup_next--> request, wake, read, grant, wake --> record    timed
 *      then the same bytes by pread into a warm buffer                             subtracted
 *
 * The blocks are small, uncompressed and in the page cache, so that what is left is the way between
 * the processes. Read-ahead is off; the pool is an eighth of the data, so that nearly each jump
 * misses, and only those that did are counted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench/b5_wake.h"
#include "bench/harness.h"
#include "bench/rig.h"
#include "producer/store.h"
#include "producer/volume_file.h"

#define SERIES     "BENCH/ONE/keys"
#define BLOCK_LEN  65536u
#define BLOCK_KEYS (BLOCK_LEN / 8)
#define REST_US    2000 /* between two misses: the daemon goes to sleep after some microseconds */

struct miss {
	const char *name;
	uint32_t wait; /* STOUP_WAIT_* */
	uint32_t rest_us;
	const char *const *daemon_options;
};

struct row {
	struct bench_daemon daemon;
	struct stoup_store *store;
	struct stoup *st;
	struct stoup_series series;
	uint64_t block_cnt, seed;
	uint8_t *buffer;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static uint64_t missed(struct stoup *st)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};

	stoup_stats(st, &stats);
	return stats.miss_cnt;
}

/* One jump: ns from the call to the first key, or 0 for a hit. */
static uint64_t jump(struct row *row, uint64_t block)
{
	struct stoup_range range = {
		.from_ns = BENCH_KEY_0 + (int64_t)(block * BLOCK_KEYS) * BENCH_KEY_STEP};
	uint64_t misses = missed(row->st), began, ns;
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_span span;

	if (stoup_scan(row->st, &row->series, &range, &cur, &err) < 0)
		bench_die("B5: %s", err.text);
	began = bench_now();
	if (stoup_next(cur, &span) != 1)
		bench_die("B5: %s", stoup_cursor_error(cur)->text);
	if (*(const int64_t *)span.base != range.from_ns)
		bench_die("B5: block %llu begins with another key", (unsigned long long)block);
	ns = bench_now() - began;
	stoup_cursor_close(cur);
	return missed(row->st) == misses ? 0 : ns;
}

/* Reading the same block, without anybody else. */
static uint64_t read_alone(const struct row *row, uint64_t block)
{
	const struct stoup_store_volume *volume = row->store->volumes[0];
	uint64_t began = bench_now();

	if (stoup_file_read(volume->fd, row->buffer, BLOCK_LEN,
		    volume->index->blocks[block].stored_off) < 0)
		bench_die("B5: %s cannot be read", volume->path);
	return bench_now() - began;
}

static void measure(struct row *row, const struct miss *miss)
{
	size_t want = bench_scale(1500, 60), cnt = 0, tries = 0;
	uint64_t *whole = calloc(want, sizeof(*whole)), *read = calloc(want, sizeof(*read));
	uint64_t *rest = calloc(want, sizeof(*rest));
	char name[128];

	if (!whole || !read || !rest)
		bench_die("no memory for samples");
	while (cnt < want && tries++ < want * 4) {
		uint64_t block = next_random(&row->seed) % row->block_cnt, ns;

		if (miss->rest_us)
			usleep(miss->rest_us);
		ns = jump(row, block);
		if (ns == 0)
			continue;
		whole[cnt] = ns;
		read[cnt] = read_alone(row, block);
		rest[cnt] = ns > read[cnt] ? ns - read[cnt] : 0;
		cnt++;
	}
	snprintf(name, sizeof(name), "%s: whole miss", miss->name);
	bench_latency("B5", name, whole, cnt);
	snprintf(name, sizeof(name), "%s: the read alone", miss->name);
	bench_latency("B5", name, read, cnt);
	snprintf(name, sizeof(name), "%s: less read and decode", miss->name);
	bench_latency("B5", name, rest, cnt);
	free(whole);
	free(read);
	free(rest);
}

static void run(struct row *row, const struct miss *miss)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.wait = miss->wait;
	opt.ahead_cnt = UINT32_MAX;
	bench_daemon_start(&row->daemon, bench_path("b5.store"), row->block_cnt * BLOCK_LEN / 8,
		miss->daemon_options);
	row->st = bench_attach(row->daemon.pool, &opt, SERIES, &row->series);
	measure(row, miss);
	stoup_detach(row->st);
	bench_daemon_stop(&row->daemon);
}

void bench_b5_miss(void)
{
	static const char *const spin_options[] = {"--spin", "1s", NULL};
	static const struct miss asleep = {"both asleep", STOUP_WAIT_SLEEP, REST_US, NULL};
	static const struct miss half = {
		"consumer spinning, daemon asleep", STOUP_WAIT_SPIN, REST_US, NULL};
	static const struct miss spinning = {"both spinning", STOUP_WAIT_SPIN, 0, spin_options};
	struct row row = {.block_cnt = bench_scale(2048, 512), .seed = 88172645463325252u};
	struct bench_records records = bench_records_make(BENCH_KEYS, row.block_cnt * BLOCK_KEYS);
	struct stoup_error err = {0};

	bench_store_make(bench_path("b5.store"), SERIES, "none", BLOCK_LEN, &records);
	bench_free(records.bytes, records.len);
	if (stoup_store_open(bench_path("b5.store"), &row.store, &err) < 0)
		bench_die("%s", err.text);
	row.buffer = bench_alloc(BLOCK_LEN);
	bench_wake_floor(REST_US);
	run(&row, &asleep);
	run(&row, &half);
	if (bench_daemon_option_known("--spin"))
		run(&row, &spinning);
	else
		bench_absent("B5", "both spinning", "not built: stoupd has no option to spin");
	stoup_store_close(row.store);
	bench_free(row.buffer, BLOCK_LEN);
	bench_remove(bench_path("b5.store"));
}
