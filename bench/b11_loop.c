/* SPDX-License-Identifier: Apache-2.0 */
/* b11_loop.c - the one copy of the strategy's loop. */
#include "bench/b11_loop.h"

#include <string.h>

void bench_strategy_begin(struct bench_strategy *s, uint32_t fast, uint32_t slow)
{
	memset(s, 0, sizeof(*s));
	s->fast = fast;
	s->slow = slow;
}

__attribute__((noinline)) void bench_strategy_run(
	struct bench_strategy *s, const struct stoup_trade *trades, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		bench_strategy_step(s, &trades[i]);
}

uint64_t bench_strategy_result(const struct bench_strategy *s)
{
	return (uint64_t)s->cash * 31 + s->order_cnt * 1000003 + s->cnt;
}
