/* SPDX-License-Identifier: Apache-2.0 */
/* harness.h - how the benchmarks measure: contenders in turn, every sample kept, JSON lines out.
 *
 *      round 0:  array  pool  direct  mmap  lmdb  rocksdb  heap  zstd
 *      round 1:  array  pool  direct  mmap                 heap          (slow ones: each n-th round)
 *      round 2:  array  pool  ...
 *                  \______/ a pair: the same moment of the same machine
 *
 * A round's samples belong together: what is reported is the median of their ratios, so that a
 * slow moment of the machine slows both. Statistics are made elsewhere (verdict.py), from every
 * sample.
 *
 * Invariant: all contenders of a case come to the same result, or the run ends with an error: a
 * number of a loop that computed something else is never printed.
 *
 * Concurrency: one benchmark is one thread, but for what a contender starts itself. Whatever fails
 * ends the process with one line on stderr: a benchmark has nothing to save.
 */
#ifndef STOUP_BENCH_HARNESS_H
#define STOUP_BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>

/* What the command line said; set before a row runs, constant afterwards. */
struct bench_settings {
	const char *work; /* directory for files; the caller removes it */
	const char *bin;  /* directory of stoupd and stoup */
	int quick;        /* smoke run: small data, few rounds */
};
extern struct bench_settings bench_settings;

/* full, or quick under --quick. */
static inline uint64_t bench_scale(uint64_t full, uint64_t quick)
{
	return bench_settings.quick ? quick : full;
}

/* The least number of pairs behind a ratio that decides (docs/benchmarks.md); odd. */
#define BENCH_PAIR_CNT  41u
#define BENCH_QUICK_CNT 5u

static inline uint32_t bench_rounds(void)
{
	return bench_settings.quick ? BENCH_QUICK_CNT : BENCH_PAIR_CNT;
}

/* CLOCK_MONOTONIC, ns. */
uint64_t bench_now(void);

/* CPU time of this process, all threads, ns. */
uint64_t bench_cpu(void);

/* Say why on stderr and end with status 1. */
_Noreturn void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Memory of `len` bytes in 2 MiB pages where the kernel gives them, touched. */
void *bench_alloc(size_t len);
void bench_free(void *at, size_t len);

/* WORK/name; static storage, four texts deep. */
const char *bench_path(const char *name);

/* Write a whole file; map one shared and read-only; remove a file, or a directory with all in it. */
void bench_write_file(const char *path, const void *bytes, size_t len);
const void *bench_map_file(const char *path, size_t *ret_len);
void bench_unmap(const void *base, size_t len);
void bench_remove(const char *path);

/* ---- contenders in turn ---------------------------------------------------------------------- */

/* The value that a pass computed: equal for all contenders of a case. */
typedef uint64_t (*bench_pass)(void *arg);

struct bench_contender {
	const char *name;
	bench_pass pass; /* NULL: absent, with the reason */
	void *arg;
	uint32_t every;            /* takes part in each every-th round; 0 = each */
	uint32_t pass_cnt;         /* passes of one sample; 0 = 1 */
	const char *absent;        /* why it takes no part */
	int unchecked;             /* its result is another one: a decoder alone runs no loop */
	void (*before)(void *arg); /* before each sample, not timed; may be NULL */
	void (*after)(void *arg);
};

struct bench_case {
	const char *row;               /* "B1" */
	const char *name;              /* "keys 1 M forward" */
	const char *data;              /* what the records are, for the document */
	uint64_t record_cnt, byte_cnt; /* of one pass */
	const char *reference;         /* contender that ratios are taken to */
};

/* Run all contenders `rounds` times in turn after one warm-up pass each, and print the case. The
 * order is the same in each round: between two samples of a contender all the others run, so that
 * nobody finds more of its own bytes in the caches than the others do. (An order that turns round
 * lets the first and the last one follow themselves, which is worth some percent.) */
void bench_interleave(const struct bench_case *what, const struct bench_contender *contenders,
	size_t cnt, uint32_t rounds);

/* ---- other results --------------------------------------------------------------------------- */

/* Percentiles of `cnt` samples (sorted here): p50, p99, p99.9, max. */
void bench_latency(const char *row, const char *name, uint64_t *samples, size_t cnt);

struct bench_value {
	const char *name;
	double value;
};

/* Named numbers of a case. */
void bench_values(
	const char *row, const char *name, const struct bench_value *values, size_t value_cnt);

/* A part of a row that cannot be measured here, or is not built: shown with the reason. */
void bench_absent(const char *row, const char *name, const char *why);

/* A sentence for the document. */
void bench_note(const char *row, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- rows ------------------------------------------------------------------------------------ */

void bench_b1_iterate(void);
void bench_b2_cold(void);
void bench_b3_workers(void);
void bench_b4_lease(void); /* leases, then as-of lookups */
void bench_b4_asof(void);
void bench_b5_miss(void);
void bench_b7_ingest(void);
void bench_b8_text(void);
void bench_b9_documents(void);
void bench_b10_log(void);
void bench_b11_strategy(void);
void bench_b13_look(void);

#endif
