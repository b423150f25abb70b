/* SPDX-License-Identifier: Apache-2.0 */
/* sim_flow.h - the order flow of one simulated symbol: when events come and what they do.
 *
 *      gap since the last event:  near (a child of the burst, about a microsecond to 200 us)
 *                                 idle (200 us to seconds, times the symbol's slowness)
 *      event:  add 43 %   modify 24 %   cancel 27 %   trade 6 %  (steered to the book's target)
 *      trade:  [T F F ... | C C M]  two packets: the match, then what it does to the book
 *
 * Invariant: `pending` holds one event's records, ts_recv never falls from one record of a symbol
 * to the next, and the book is as those records leave it.
 *
 * Concurrency: a symbol belongs to one thread; the laws are shared and immutable.
 */
#ifndef STOUP_BENCH_SIM_FLOW_H
#define STOUP_BENCH_SIM_FLOW_H

#include <stdint.h>
#include "bench/sim.h"
#include "bench/sim_book.h"
#include "bench/sim_dist.h"

/* The most records of one event: a trade, its fills, and a cancel or modify for each fill. */
#define STOUP_SIM_FILL_CAP    24u
#define STOUP_SIM_PENDING_CAP (1u + 2u * STOUP_SIM_FILL_CAP)

/* The longest gap inside a burst, ns. Longer ones grow with a symbol's slowness. */
#define STOUP_SIM_NEAR_NS 171000u

/* Measured distributions; the units are in the names. */
struct stoup_sim_laws {
	struct stoup_sim_dist near_ns;    /* gap inside a burst */
	struct stoup_sim_dist idle_ns;    /* gap between bursts, above STOUP_SIM_NEAR_NS */
	struct stoup_sim_dist latency_ns; /* ts_recv - ts_event of a lone packet */
	struct stoup_sim_dist service_ns; /* least distance of two packets' ts_recv */
	struct stoup_sim_dist delta_ns;   /* ts_in_delta */
	struct stoup_sim_dist depth_tick; /* distance of a new order from the best price */
	struct stoup_sim_dist age_cnt;  /* adds and modifies since the order that a cancel names */
	struct stoup_sim_dist size_cnt; /* contracts of an order */
	struct stoup_sim_dist take_cnt; /* contracts that a trade takes */
	struct stoup_sim_dist id_step;  /* between two new order ids */
	struct stoup_sim_dist seq_step; /* between two packets */
};

void stoup_sim_laws_init(struct stoup_sim_laws *laws);

struct stoup_sim_symbol {
	struct stoup_sim_rng rng;
	struct stoup_sim_book book;
	uint64_t now_ns;    /* ts_event of the last event */
	uint64_t recv_ns;   /* ts_recv of the last packet */
	uint64_t last_id;   /* order id */
	int64_t base_price; /* of tick 0 */
	int64_t tick_price;
	uint32_t instrument_id;
	uint32_t sequence;
	uint32_t slowness;                /* idle gaps are multiplied by this / 256 */
	uint32_t target_cnt;              /* orders that the book tends to */
	uint32_t fair_tick;               /* where trades pull the price */
	uint32_t last_tick[2];            /* placed last, by side */
	uint32_t last_dice;               /* 0 to 999: what the last event did */
	uint32_t near;                    /* the last gap was inside a burst */
	int32_t in_delta;                 /* of the packet under way */
	uint32_t pending_cnt, pending_at; /* pending_at: the next to hand out */
	struct stoup_sim_mbo pending[STOUP_SIM_PENDING_CAP];
};

/* Make the next event. Before: pending_at == pending_cnt; after: pending_cnt > 0, pending_at 0. */
void stoup_sim_flow_event(struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws);

/* Fill an empty book with target_cnt orders around the fair price. */
void stoup_sim_flow_open(struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws);

/* The record of a resting order as the opening snapshot shows it. */
void stoup_sim_flow_snapshot(
	const struct stoup_sim_symbol *symbol, uint32_t slot, struct stoup_sim_mbo *dst);

#endif
