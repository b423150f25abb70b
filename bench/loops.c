/* SPDX-License-Identifier: Apache-2.0 */
/* loops.c - the one copy of each loop.
 *
 * Seen in the code that gcc 12 -O2 makes of them: the loop over orders is six instructions a record (load of
 * the size, multiplication with the price out of memory, add 56 to the pointer, add, compare, jump), that over
 * trades the same with 48, that over keys nine (the check of the order is a setle and an addition, no jump).
 * Backward differs in the sign of the step alone. Nothing of the library is in them: a span is a pointer and a
 * count, so that the loop over the pool is the loop over an array.
 */
#include "bench/loops.h"

/* The state lives in registers while a loop runs: a local copy, written back at the end. */
#define LOOP(name, type, step, first, last, next)                                                  \
	__attribute__((noinline)) static void name(                                                \
		struct bench_loop *loop, const void *base, size_t cnt)                             \
	{                                                                                          \
		const type *records = base;                                                        \
		struct bench_loop local = *loop;                                                   \
                                                                                                   \
		for (size_t i = first; i != last; next)                                            \
			step(&local, &records[i]);                                                 \
		local.cnt += cnt;                                                                  \
		*loop = local;                                                                     \
	}

LOOP(keys, int64_t, bench_step_key, 0, cnt, i++)
LOOP(trades, struct stoup_trade, bench_step_trade, 0, cnt, i++)
LOOP(orders, struct stoup_mbo, bench_step_mbo, 0, cnt, i++)
LOOP(keys_back, int64_t, bench_step_key_back, cnt - 1, (size_t)-1, i--)
LOOP(trades_back, struct stoup_trade, bench_step_trade, cnt - 1, (size_t)-1, i--)
LOOP(orders_back, struct stoup_mbo, bench_step_mbo, cnt - 1, (size_t)-1, i--)

bench_loop_fn *bench_loop_of(enum bench_kind kind, int backward)
{
	static bench_loop_fn *const loops[BENCH_KIND_CNT][2] = {
		{keys, keys_back}, {trades, trades_back}, {orders, orders_back}};

	return loops[kind][backward != 0];
}

__attribute__((noinline)) uint64_t bench_sum_words(const void *bytes, size_t len)
{
	const uint64_t *words = bytes;
	uint64_t sum = 0;

	for (size_t i = 0; i < len / 8; i++)
		sum += words[i];
	return sum;
}
