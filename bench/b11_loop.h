/* SPDX-License-Identifier: Apache-2.0 */
/* b11_loop.h - the moving-average strategy of B11: the same code whatever the records came from.
 *
 *      trade price --> ring of the last SLOW prices --> sum of FAST, sum of SLOW
 *      fast average above slow: long one; below: short one; a change of side trades at the price
 *
 * All integers: the profit (modulo 2^64) and the number of orders are the sink and the check.
 */
#ifndef STOUP_BENCH_B11_LOOP_H
#define STOUP_BENCH_B11_LOOP_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_records.h"

#define BENCH_WINDOW_CAP 256u /* a power of two; the longest average */

struct bench_strategy {
	uint32_t fast, slow; /* trades; fast < slow <= BENCH_WINDOW_CAP */
	int64_t prices[BENCH_WINDOW_CAP];
	int64_t fast_sum, slow_sum;
	int64_t position, cash;
	uint64_t cnt, order_cnt;
};

void bench_strategy_begin(struct bench_strategy *s, uint32_t fast, uint32_t slow);

/* One trade; inline for those who get single records. */
static inline void bench_strategy_step(struct bench_strategy *s, const struct stoup_trade *trade)
{
	const uint64_t mask = BENCH_WINDOW_CAP - 1;
	int64_t price = trade->price, side;

	s->fast_sum += price - s->prices[(s->cnt - s->fast) & mask];
	s->slow_sum += price - s->prices[(s->cnt - s->slow) & mask];
	s->prices[s->cnt & mask] = price;
	if (++s->cnt < s->slow)
		return;
	/* fast_sum / fast > slow_sum / slow, without a division */
	side = s->fast_sum / 1000000 * s->slow > s->slow_sum / 1000000 * s->fast ? 1 : -1;
	if (side != s->position) {
		s->cash -= (side - s->position) * (price / 1000000);
		s->position = side;
		s->order_cnt++;
	}
}

/* A run of trades: one copy of the code. */
void bench_strategy_run(struct bench_strategy *s, const struct stoup_trade *trades, size_t cnt);

uint64_t bench_strategy_result(const struct bench_strategy *s);

#endif
