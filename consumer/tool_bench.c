/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench.c - the measuring of `stoup bench`. */
#include "consumer/tool_bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "consumer/tools.h"
#include "shm/clock.h"

#define FIRST_CNT  3u /* daemons, each scanned once */
#define ATTACH_CNT 21u
#define MISS_CNT   200u
#define REST_US    1500                 /* between two misses: the daemon goes to sleep */
#define WARM_NS    UINT64_C(3000000000) /* of the warm contenders together */
#define WARM_MIN   5u
#define POOL_SLACK (32u << 20)
#define SAMPLE_CAP 256u

static int cmp_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int cmp_double(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct stoup_bench_latency latency_of(uint64_t *samples, uint32_t cnt)
{
	if (cnt == 0)
		return (struct stoup_bench_latency){0};
	qsort(samples, cnt, sizeof(*samples), cmp_u64);
	return (struct stoup_bench_latency){
		samples[cnt / 2], samples[cnt * 99 / 100], samples[cnt - 1], cnt};
}

static struct stoup_bench_rate rate_of(uint64_t *samples, uint32_t cnt)
{
	qsort(samples, cnt, sizeof(*samples), cmp_u64);
	return (struct stoup_bench_rate){samples[cnt / 2], cnt};
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Sum of all bytes in words of 8: one copy of the code for the pool and for a private array. Records
 * need not be aligned. */
__attribute__((noinline)) static uint64_t sum_words(const uint8_t *bytes, uint64_t len)
{
	uint64_t sum = 0, word, i;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, bytes + i, 8);
		sum += word;
	}
	return sum;
}

/* What is done with each span. */
enum action {
	ACTION_SUM,
	ACTION_COPY
};

struct pass {
	struct stoup *st;
	const struct stoup_series *series;
	enum action action;
	uint8_t *dst; /* ACTION_COPY */
	uint64_t limit;
	/* results */
	uint64_t len, record_cnt, sum, ns;
};

/* One scan of the first `limit` bytes. */
static int pass_run(struct pass *pass, struct stoup_error *err)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint64_t began = stoup_clock_ns();
	int rc = stoup_scan(pass->st, pass->series, NULL, &cur, err);

	if (rc < 0)
		return rc;
	pass->len = pass->record_cnt = pass->sum = 0;
	while (pass->len < pass->limit && (rc = stoup_next(cur, &span)) > 0) {
		uint64_t cnt = (pass->limit - pass->len + span.stride - 1) / span.stride, len;

		cnt = cnt < span.record_cnt ? cnt : span.record_cnt;
		len = cnt * span.stride;
		if (pass->action == ACTION_COPY)
			memcpy(pass->dst + pass->len, span.base, len);
		else
			pass->sum += sum_words(span.base, len);
		pass->len += len;
		pass->record_cnt += cnt;
	}
	if (rc < 0)
		stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	pass->ns = stoup_clock_ns() - began;
	return rc < 0 ? rc : 0;
}

/* ---- attaching ------------------------------------------------------------------------------- */

static const char *pool_of(const struct stoup_bench *b)
{
	return b->store ? b->daemon.pool : b->pool;
}

/* The series that was asked for, or the one with the most bytes of fixed-length records. */
static int series_choose(
	struct stoup *st, const char *name, struct stoup_series *ret, struct stoup_error *err)
{
	struct stoup_series series;
	uint64_t most = 0;

	if (name) {
		int rc = stoup_series_find(st, name, ret, err);

		if (rc == 0 && (ret->schema->flags & STOUP_SCHEMA_VARIABLE))
			return stoup_error_set(err, -ENOTSUP,
				"%s holds messages of variable length, which are not measured",
				name);
		return rc;
	}
	for (uint64_t i = 0; stoup_series_at(st, i, &series) == 0; i++) {
		if (series.record_cnt * series.schema->stride <= most)
			continue;
		most = series.record_cnt * series.schema->stride;
		*ret = series;
	}
	return most ? 0
	            : stoup_error_set(err, -ENOENT,
			      "there are no records (messages of variable length are not measured)");
}

static int attach(const struct stoup_bench *b, uint32_t ahead_cnt, struct stoup **ret,
	struct stoup_series *series, struct stoup_error *err)
{
	struct stoup_options opt;
	struct stoup *st;
	int rc;

	stoup_options_init(&opt);
	opt.ahead_cnt = ahead_cnt;
	rc = stoup_attach(pool_of(b), &opt, &st, err);
	if (rc < 0)
		return rc;
	rc = series_choose(st, b->series, series, err);
	if (rc < 0)
		stoup_detach(st);
	else
		*ret = st;
	return rc;
}

/* Room for what is measured and what is read ahead behind it; no more than the store can fill. */
static int pool_choose(struct stoup_bench *b, struct stoup_error *err)
{
	uint64_t len;
	int rc = stoup_store_decoded_len(b->store, &len, err);

	if (rc < 0)
		return rc;
	len = len < b->limit ? len : b->limit;
	b->pool_len = len + len / 8 + POOL_SLACK;
	return 0;
}

static int daemon_fresh(struct stoup_bench *b, struct stoup_error *err)
{
	if (!b->store)
		return 0;
	stoup_tool_daemon_stop(&b->daemon);
	return stoup_tool_daemon_start(b->store, b->pool_len, &b->daemon, err);
}

static int measure_attach(struct stoup_bench *b, struct stoup_error *err)
{
	uint64_t samples[ATTACH_CNT];

	for (uint32_t i = 0; i < ATTACH_CNT; i++) {
		uint64_t began = stoup_clock_ns();
		struct stoup *st;
		int rc = stoup_attach(pool_of(b), NULL, &st, err);

		samples[i] = stoup_clock_ns() - began;
		if (rc < 0)
			return rc;
		stoup_detach(st);
	}
	b->attach = latency_of(samples, ATTACH_CNT);
	return 0;
}

/* ---- the first scan -------------------------------------------------------------------------- */

static int first_scan(struct stoup_bench *b, uint64_t *ret_ns, struct stoup_error *err)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct pass pass = {.limit = b->limit};
	struct stoup_series series;
	int rc = attach(b, 0, &pass.st, &series, err);

	if (rc < 0)
		return rc;
	pass.series = &series;
	rc = pass_run(&pass, err);
	stoup_stats(pass.st, &stats);
	if (rc == 0) {
		snprintf(b->name, sizeof(b->name), "%s", series.name);
		b->stride = series.schema->stride;
		b->series_len = series.record_cnt * series.schema->stride;
		b->record_cnt = pass.record_cnt;
		b->len = pass.len;
		b->waited_part =
			(double)stats.miss_cnt / (double)(stats.miss_cnt + stats.hit_cnt
								  ? stats.miss_cnt + stats.hit_cnt
								  : 1);
		*ret_ns = pass.ns;
	}
	stoup_detach(pass.st);
	return rc;
}

static int measure_first(struct stoup_bench *b, struct stoup_error *err)
{
	uint32_t cnt = b->store ? FIRST_CNT : 1;
	uint64_t samples[FIRST_CNT];
	int rc = 0;

	for (uint32_t i = 0; i < cnt && rc == 0; i++) {
		rc = daemon_fresh(b, err);
		if (rc == 0)
			rc = first_scan(b, &samples[i], err);
	}
	if (rc == 0)
		b->first = rate_of(samples, cnt);
	return rc;
}

/* ---- warm, in turn --------------------------------------------------------------------------- */

struct samples {
	uint64_t warm[STOUP_BENCH_PAIR_CAP], array[STOUP_BENCH_PAIR_CAP],
		copy[STOUP_BENCH_PAIR_CAP];
	double ratio[STOUP_BENCH_PAIR_CAP];
	uint32_t pair_cnt, copy_cnt;
};

/* One pair. Always in this order: each then finds as little of its own bytes in the caches as the other. */
static int warm_pair(
	struct stoup_bench *b, struct pass *pass, struct samples *s, struct stoup_error *err)
{
	uint64_t began = stoup_clock_ns(), sum = sum_words(b->copy_base, b->len);
	uint32_t i = s->pair_cnt;
	int rc;

	s->array[i] = stoup_clock_ns() - began;
	rc = pass_run(pass, err);
	if (rc < 0)
		return rc;
	if (sum != pass->sum)
		return stoup_error_set(
			err, -EBADMSG, "the bytes of %s changed while they were scanned", b->name);
	s->warm[i] = pass->ns;
	s->ratio[i] = (double)s->array[i] / (double)s->warm[i];
	s->pair_cnt++;
	return 0;
}

/* Pairs for most of the time, then copies: memcpy writes where the private copy lies. */
static int warm_all(
	struct stoup_bench *b, struct pass *pass, struct samples *s, struct stoup_error *err)
{
	uint64_t until = stoup_clock_ns() + WARM_NS;
	int rc = 0;

	pass->action = ACTION_SUM;
	while (rc == 0 && s->pair_cnt < STOUP_BENCH_PAIR_CAP &&
		(s->pair_cnt < WARM_MIN || stoup_clock_ns() < until))
		rc = warm_pair(b, pass, s, err);
	until = stoup_clock_ns() + WARM_NS / 3;
	pass->action = ACTION_COPY;
	while (rc == 0 && s->copy_cnt < STOUP_BENCH_PAIR_CAP &&
		(s->copy_cnt < WARM_MIN || stoup_clock_ns() < until)) {
		rc = pass_run(pass, err);
		s->copy[s->copy_cnt++] = pass->ns;
	}
	return rc;
}

static int measure_warm(struct stoup_bench *b, struct stoup_error *err)
{
	struct pass pass = {.limit = b->limit, .action = ACTION_COPY, .dst = b->copy_base};
	struct samples s = {.pair_cnt = 0};
	struct stoup_series series;
	int rc = attach(b, 0, &pass.st, &series, err);

	if (rc < 0)
		return rc;
	pass.series = &series;
	rc = pass_run(&pass, err); /* the private copy, and every page touched */
	if (rc == 0)
		rc = warm_all(b, &pass, &s, err);
	if (rc == 0) {
		qsort(s.ratio, s.pair_cnt, sizeof(s.ratio[0]), cmp_double);
		b->warm_ratio = s.ratio[s.pair_cnt / 2];
		b->warm = rate_of(s.warm, s.pair_cnt);
		b->array = rate_of(s.array, s.pair_cnt);
		b->copy = rate_of(s.copy, s.copy_cnt);
	}
	stoup_detach(pass.st);
	return rc;
}

/* ---- lone misses ----------------------------------------------------------------------------- */

static uint64_t miss_cnt_of(struct stoup *st)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};

	stoup_stats(st, &stats);
	return stats.miss_cnt;
}

static int measure_misses(struct stoup_bench *b, struct stoup_error *err)
{
	uint64_t samples[MISS_CNT], began, misses;
	struct stoup_series series;
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint32_t cnt = 0;
	struct stoup *st;
	int rc = daemon_fresh(b, err);

	if (rc == 0)
		rc = attach(b, UINT32_MAX, &st, &series, err);
	if (rc < 0)
		return rc;
	rc = stoup_scan(st, &series, NULL, &cur, err);
	if (rc < 0) {
		stoup_detach(st);
		return rc;
	}
	for (uint64_t len = 0; rc >= 0 && cnt < MISS_CNT && len < b->limit;) {
		usleep(REST_US);
		misses = miss_cnt_of(st);
		began = stoup_clock_ns();
		rc = stoup_next(cur, &span);
		samples[cnt] = stoup_clock_ns() - began;
		if (rc <= 0)
			break;
		cnt += miss_cnt_of(st) > misses;
		len += span.record_cnt * span.stride;
	}
	if (rc < 0)
		stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	stoup_detach(st);
	b->miss = latency_of(samples, cnt);
	return rc < 0 ? rc : 0;
}

/* ---- the memory of a worker ------------------------------------------------------------------ */

/* Sum of lines of a file of /proc that begin so, in bytes. */
static uint64_t proc_bytes(const char *path, const char *prefix)
{
	FILE *file = fopen(path, "r");
	unsigned long long kib;
	uint64_t sum = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		const char *colon = strchr(line, ':');

		if (colon && strncmp(line, prefix, strlen(prefix)) == 0 &&
			sscanf(colon + 1, "%llu", &kib) == 1)
			sum += kib << 10;
	}
	if (file)
		fclose(file);
	return sum;
}

static uint64_t own_private(void)
{
	return proc_bytes("/proc/self/smaps_rollup", "Private_");
}

/* In the child: attach, scan, and what that added. */
static int worker(const struct stoup_bench *b, uint64_t ret[2])
{
	uint64_t private = own_private(), tables = proc_bytes("/proc/self/status", "VmPTE:");
	struct pass pass = {.limit = b->limit};
	struct stoup_series series;

	if (attach(b, 0, &pass.st, &series, NULL) < 0)
		return 1;
	pass.series = &series;
	if (pass_run(&pass, NULL) < 0)
		return 1;
	ret[0] = own_private();
	ret[0] = ret[0] > private ? ret[0] - private : 0;
	ret[1] = proc_bytes("/proc/self/status", "VmPTE:");
	ret[1] = ret[1] > tables ? ret[1] - tables : 0;
	return 0;
}

static int measure_worker(struct stoup_bench *b, struct stoup_error *err)
{
	uint64_t *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 1;
	pid_t pid;

	if (shared == MAP_FAILED)
		return stoup_error_set(err, -errno, "shared memory: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(worker(b, shared));
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	b->worker_len = shared[0];
	b->page_table_len = shared[1];
	munmap(shared, 4096);
	return status == 0 ? 0
	                   : stoup_error_set(err, -EIO, "a child that attached and scanned failed");
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Memory for the private copy, in 2 MiB pages where the kernel gives them: the contender gets its best. */
static int copy_make(struct stoup_bench *b, struct stoup_error *err)
{
	void *base = mmap(NULL, b->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return stoup_error_set(err, -ENOMEM,
			"no memory for a private copy of %llu bytes; a smaller --limit needs less",
			(unsigned long long)b->len);
	madvise(base, b->len, MADV_HUGEPAGE);
	b->copy_base = base;
	return 0;
}

/* Of a running pool the store may be out of reach: then `decode_err` says why there is no number. */
static void measure_decode(struct stoup_bench *b)
{
	if (b->decode_store)
		stoup_private_decode(b->decode_store, b->name, b->limit, &b->decode_len,
			&b->decode_ns, &b->decode_err);
	else
		stoup_error_set(
			&b->decode_err, -ENOENT, "the pool does not say where its store is");
}

int stoup_bench_run(struct stoup_bench *b, struct stoup_error *err)
{
	int rc = b->store ? pool_choose(b, err) : 0;

	if (rc == 0)
		rc = measure_first(b, err);
	if (rc == 0)
		rc = measure_attach(b, err);
	if (rc == 0)
		rc = copy_make(b, err);
	if (rc == 0)
		rc = measure_worker(b, err);
	if (rc == 0)
		rc = measure_warm(b, err);
	if (b->copy_base)
		munmap(b->copy_base, b->len);
	if (rc == 0 && b->store)
		rc = measure_misses(b, err);
	stoup_tool_daemon_stop(&b->daemon);
	if (rc == 0)
		measure_decode(b);
	return rc;
}
