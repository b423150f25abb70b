/* SPDX-License-Identifier: Apache-2.0 */
/* loops.h - the loops that all contenders run over records: one source, one copy of the code.
 *
 *      spans (array, pool, direct, mmap, decoded pieces)  --pointer, count-->  loop function
 *      single records (LMDB, RocksDB, heap objects)       --pointer-------->  the same step, inline
 *
 * The loop functions are never inlined: contenders that have runs of records execute the very same
 * instructions at the same addresses, since an inlined copy's alignment alone is worth some percent.
 * Contenders that get one record at a time have the step inline in their own loop, which is the
 * best that they can do.
 *
 * The step of `keys` checks prev < cur, that of trades and orders sums price x size (modulo 2^64).
 * The state is the sink: it is printed by way of the result, so nothing is optimised away.
 */
#ifndef STOUP_BENCH_LOOPS_H
#define STOUP_BENCH_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "shm/stoup_records.h"

enum bench_kind {
	BENCH_KEYS,   /* 8 bytes: a key, nothing else */
	BENCH_TRADES, /* struct stoup_trade, 48 bytes */
	BENCH_MBO,    /* struct stoup_mbo, 56 bytes */
	BENCH_KIND_CNT
};

struct bench_loop {
	int64_t prev;
	uint64_t bad, sum, cnt;
};

static inline uint32_t bench_stride(enum bench_kind kind)
{
	return kind == BENCH_KEYS ? 8 : kind == BENCH_TRADES ? 48 : 56;
}

/* The state before a scan: forward every key is above 0, backward below INT64_MAX. */
static inline struct bench_loop bench_loop_begin(int backward)
{
	return (struct bench_loop){.prev = backward ? INT64_MAX : 0};
}

static inline uint64_t bench_loop_result(const struct bench_loop *loop)
{
	return loop->sum * 31 + loop->cnt + loop->bad * 1000003;
}

static inline void bench_step_key(struct bench_loop *loop, const int64_t *key)
{
	loop->bad += *key <= loop->prev;
	loop->prev = *key;
}

static inline void bench_step_key_back(struct bench_loop *loop, const int64_t *key)
{
	loop->bad += *key >= loop->prev;
	loop->prev = *key;
}

static inline void bench_step_trade(struct bench_loop *loop, const struct stoup_trade *trade)
{
	loop->sum += (uint64_t)trade->price * trade->size;
}

static inline void bench_step_mbo(struct bench_loop *loop, const struct stoup_mbo *mbo)
{
	loop->sum += (uint64_t)mbo->price * mbo->size;
}

/* One record of a kind, forward. */
static inline void bench_step(enum bench_kind kind, struct bench_loop *loop, const void *record)
{
	if (kind == BENCH_KEYS)
		bench_step_key(loop, record);
	else if (kind == BENCH_TRADES)
		bench_step_trade(loop, record);
	else
		bench_step_mbo(loop, record);
	loop->cnt++;
}

/* A run of records, in ascending or descending order of addresses. */
typedef void bench_loop_fn(struct bench_loop *loop, const void *base, size_t cnt);

bench_loop_fn *bench_loop_of(enum bench_kind kind, int backward);

/* Sum of all 8-byte words of a run of bytes: every byte is read. */
uint64_t bench_sum_words(const void *bytes, size_t len);

#endif
