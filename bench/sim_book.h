/* SPDX-License-Identifier: Apache-2.0 */
/* sim_book.h - the limit order book of one simulated symbol.
 *
 *      tick  ... 2043   2044   2045 | 2047   2048 ...      levels: FIFO of orders per tick
 *                bids    bids   ^best_bid ^best_ask
 *      live      [o7][o2][o9]...                            dense, for a uniform pick
 *      recent    ring of the latest adds and modifies       for a pick by age
 *
 * Orders are numbered slots; links are slot numbers. Prices are ticks inside a fixed window.
 *
 * Invariant: every live order is in exactly one level and once in `live`; best_bid < best_ask; each
 * side keeps at least STOUP_SIM_SIDE_MIN orders once it had them (the flow asks before it removes).
 *
 * Concurrency: a book belongs to one thread.
 */
#ifndef STOUP_BENCH_SIM_BOOK_H
#define STOUP_BENCH_SIM_BOOK_H

#include <stdint.h>
#include "bench/sim_dist.h"

#define STOUP_SIM_BID      0u
#define STOUP_SIM_ASK      1u
#define STOUP_SIM_SIDE_MIN 8u /* orders: below, a best price may have no successor */
#define STOUP_SIM_NONE     0xffffu

struct stoup_sim_order {
	uint64_t id; /* 0: the slot is free */
	uint32_t tick;
	uint32_t size;
	uint16_t prev, next; /* in the level */
	uint16_t live_idx;
	uint16_t side;
};

struct stoup_sim_level {
	uint16_t head, tail;
};

struct stoup_sim_recent {
	uint64_t id;
	uint32_t slot;
};

struct stoup_sim_book {
	struct stoup_sim_order *orders;
	struct stoup_sim_level *levels;
	struct stoup_sim_recent *recent;
	uint16_t *live;                           /* [0, live_cnt) live slots, the rest free ones */
	uint32_t order_cap, tick_cnt, recent_cap; /* recent_cap: a power of two */
	uint32_t live_cnt, side_cnt[2];
	uint32_t recent_cnt;
	uint32_t best_bid, best_ask; /* ticks; valid where the side has orders */
};

/* Make an empty book. 0 or -ENOMEM (then nothing is owed). */
int stoup_sim_book_init(struct stoup_sim_book *book, uint32_t order_cap, uint32_t tick_cnt);
void stoup_sim_book_fini(struct stoup_sim_book *book);

/* Add an order at the back of its level. The caller has checked that a slot is free and that the
 * price does not cross. Returns the slot. */
uint32_t stoup_sim_book_add(
	struct stoup_sim_book *book, uint64_t id, uint32_t side, uint32_t tick, uint32_t size);

/* Take an order out; its slot keeps side, tick and size until the next add. */
void stoup_sim_book_remove(struct stoup_sim_book *book, uint32_t slot);

/* Move an order to the back of another level (or of its own), with a new size. */
void stoup_sim_book_move(struct stoup_sim_book *book, uint32_t slot, uint32_t tick, uint32_t size);

/* Pick a live order: the one added or modified `age` steps ago, or one near that, or any. */
uint32_t stoup_sim_book_pick(
	const struct stoup_sim_book *book, uint32_t age, struct stoup_sim_rng *rng);

#endif
