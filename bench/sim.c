/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - the symbols of a simulated market and the merge of their streams. */
#include "bench/sim.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/sim_flow.h"

/* Books of a market of many symbols are small, so that 8,000 of them fit into 300 MiB. */
#define BIG_MARKET_CNT  64u
#define BOOK_ORDER_CAP  4096u
#define BOOK_TICK_CNT   4096u
#define SMALL_ORDER_CAP 512u
#define SMALL_TICK_CNT  1024u

/* Idle gaps of symbol 0 are this many 256ths of the measured day's (a quiet one), and symbol i is
 * i + 1 times as slow. Mean nanoseconds from one record of symbol 0 to the next: measured. */
#define BUSIEST_SLOWNESS 64u
#define SLOWNESS_CAP     (1u << 20)
#define BUSIEST_MEAN_NS  15000000

/* The opening snapshot shows orders that were entered while the market was closed. */
#define SNAPSHOT_AGE_NS 39594756074693

struct sim_contract {
	const char *name;
	int64_t price, tick; /* 1e-9 units */
};

static const struct sim_contract contracts[] = {
	{"ESM5", 4800000000000, 250000000},
	{"NQM5", 17200000000000, 250000000},
	{"CLM5", 78350000000, 10000000},
	{"ZNM5", 110500000000, 15625000},
	{"GCM5", 2321500000000, 100000000},
	{"6EM5", 1084500000, 50000},
	{"RTYM5", 2051000000000, 100000000},
	{"YMM5", 38920000000000, 1000000000},
	{"ESM5-ESU5", 52500000000, 50000000},
	{"BTC/USD", 68125000000000, 5000000000},
};
#define CONTRACT_CNT ((uint32_t)(sizeof(contracts) / sizeof(contracts[0])))

struct stoup_sim {
	struct stoup_sim_laws laws;
	struct stoup_sim_symbol *symbols;
	uint32_t *heap; /* symbol indices, the earliest next record first */
	uint32_t symbol_cnt;
	uint32_t snapshot_symbol; /* the opening snapshot: where it stands */
	uint32_t snapshot_tick, snapshot_slot;
};

const char *stoup_sim_symbol(uint32_t symbol_idx)
{
	static char name[24];

	if (symbol_idx < CONTRACT_CNT)
		return contracts[symbol_idx].name;
	snprintf(name, sizeof(name), "SIM%05u", symbol_idx);
	return name;
}

int64_t stoup_sim_span(uint32_t symbol_cnt, uint64_t record_cnt)
{
	uint64_t rate = 0; /* of all symbols, in 2^-20 of symbol 0's */

	for (uint32_t i = 0; i < symbol_cnt; i++)
		rate += (1u << 20) / (i + 1);
	return (int64_t)((double)record_cnt * BUSIEST_MEAN_NS * (1u << 20) / (double)rate);
}

/* ---- merge: a binary heap over the symbols' next records ------------------------------------ */

static const struct stoup_sim_mbo *next_of(const struct stoup_sim *sim, uint32_t symbol_idx)
{
	const struct stoup_sim_symbol *symbol = &sim->symbols[symbol_idx];

	return &symbol->pending[symbol->pending_at];
}

/* Earlier ts_recv first, ties by symbol: a total order, so that the merge is deterministic. */
static int earlier(const struct stoup_sim *sim, uint32_t a, uint32_t b)
{
	uint64_t at = next_of(sim, a)->ts_recv, bt = next_of(sim, b)->ts_recv;

	return at != bt ? at < bt : a < b;
}

static void sift_down(struct stoup_sim *sim, uint32_t at)
{
	uint32_t moving = sim->heap[at];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= sim->symbol_cnt)
			break;
		if (child + 1 < sim->symbol_cnt &&
			earlier(sim, sim->heap[child + 1], sim->heap[child]))
			child++;
		if (!earlier(sim, sim->heap[child], moving))
			break;
		sim->heap[at] = sim->heap[child];
		at = child;
	}
	sim->heap[at] = moving;
}

/* ---- life ----------------------------------------------------------------------------------- */

static int symbol_init(struct stoup_sim *sim, uint32_t idx, const struct stoup_sim_options *options)
{
	int big = options->symbol_cnt <= BIG_MARKET_CNT;
	struct stoup_sim_symbol *symbol = &sim->symbols[idx];
	uint32_t tick_cnt = big ? BOOK_TICK_CNT : SMALL_TICK_CNT;
	int rc = stoup_sim_book_init(
		&symbol->book, big ? BOOK_ORDER_CAP : SMALL_ORDER_CAP, tick_cnt);
	int64_t middle;

	if (rc)
		return rc;
	symbol->rng.state = options->seed * 0x9e3779b97f4a7c15u + idx * 0xd1b54a32d192ed03u;
	symbol->now_ns = (uint64_t)(options->start_ns - SNAPSHOT_AGE_NS);
	symbol->recv_ns = (uint64_t)options->start_ns;
	symbol->last_id = 6412777160000u + ((uint64_t)idx << 32);
	symbol->instrument_id = STOUP_SIM_FIRST_ID + idx;
	symbol->sequence = 600 + stoup_sim_below(&symbol->rng, 1000);
	symbol->slowness = BUSIEST_SLOWNESS * (idx + 1);
	if (symbol->slowness > SLOWNESS_CAP)
		symbol->slowness = SLOWNESS_CAP;
	symbol->target_cnt = big ? 1500 : 150;
	if (idx < CONTRACT_CNT) {
		symbol->tick_price = contracts[idx].tick;
		middle = contracts[idx].price;
	} else {
		symbol->tick_price = 10000000;
		middle = symbol->tick_price * (1200 + stoup_sim_below(&symbol->rng, 40000));
	}
	symbol->base_price = middle - (int64_t)(tick_cnt / 2) * symbol->tick_price;
	stoup_sim_flow_open(symbol, &sim->laws);
	return 0;
}

int stoup_sim_create(const struct stoup_sim_options *options, struct stoup_sim **ret)
{
	struct stoup_sim *sim;

	if (options->symbol_cnt < 1 || options->symbol_cnt > STOUP_SIM_SYMBOL_CAP ||
		options->start_ns <= SNAPSHOT_AGE_NS)
		return -EINVAL;
	sim = calloc(1, sizeof(*sim));
	if (!sim)
		return -ENOMEM;
	stoup_sim_laws_init(&sim->laws);
	sim->symbols = calloc(options->symbol_cnt, sizeof(*sim->symbols));
	sim->heap = calloc(options->symbol_cnt, sizeof(*sim->heap));
	if (!sim->symbols || !sim->heap)
		goto out_destroy;
	for (uint32_t i = 0; i < options->symbol_cnt; i++) {
		if (symbol_init(sim, i, options))
			goto out_destroy;
		sim->symbol_cnt++;
		sim->heap[i] = i;
	}
	sim->snapshot_tick = UINT32_MAX; /* the walk through the first book has not begun */
	*ret = sim;
	return 0;
out_destroy:
	stoup_sim_destroy(sim);
	return -ENOMEM;
}

void stoup_sim_destroy(struct stoup_sim *sim)
{
	if (!sim)
		return;
	for (uint32_t i = 0; i < sim->symbol_cnt; i++)
		stoup_sim_book_fini(&sim->symbols[i].book);
	free(sim->symbols);
	free(sim->heap);
	free(sim);
}

/* ---- stream --------------------------------------------------------------------------------- */

/* The day begins: event times go on from the snapshot's receive time, and the heap is made. */
static void market_open(struct stoup_sim *sim)
{
	for (uint32_t i = 0; i < sim->symbol_cnt; i++) {
		struct stoup_sim_symbol *symbol = &sim->symbols[i];

		symbol->now_ns = symbol->recv_ns;
		stoup_sim_flow_event(symbol, &sim->laws);
	}
	for (uint32_t i = sim->symbol_cnt / 2; i-- > 0;)
		sift_down(sim, i);
}

/* One record of the opening snapshot: symbol after symbol, tick after tick, in time order inside a
 * tick. Returns 0 when it was shown whole. */
static int snapshot_next(struct stoup_sim *sim, struct stoup_sim_mbo *dst)
{
	while (sim->snapshot_symbol < sim->symbol_cnt) {
		struct stoup_sim_symbol *symbol = &sim->symbols[sim->snapshot_symbol];
		struct stoup_sim_book *book = &symbol->book;

		if (sim->snapshot_tick == UINT32_MAX)
			sim->snapshot_slot = STOUP_SIM_NONE;
		while (sim->snapshot_slot == STOUP_SIM_NONE &&
			++sim->snapshot_tick < book->tick_cnt)
			sim->snapshot_slot = book->levels[sim->snapshot_tick].head;
		if (sim->snapshot_slot != STOUP_SIM_NONE) {
			stoup_sim_flow_snapshot(symbol, sim->snapshot_slot, dst);
			sim->snapshot_slot = book->orders[sim->snapshot_slot].next;
			return 1;
		}
		sim->snapshot_symbol++;
		sim->snapshot_tick = UINT32_MAX;
	}
	return 0;
}

void stoup_sim_next(struct stoup_sim *sim, struct stoup_sim_mbo *dst, uint64_t cnt)
{
	uint64_t done = 0;

	if (sim->snapshot_symbol < sim->symbol_cnt) {
		while (done < cnt && snapshot_next(sim, &dst[done]))
			done++;
		if (sim->snapshot_symbol == sim->symbol_cnt)
			market_open(sim);
	}
	for (; done < cnt; done++) {
		struct stoup_sim_symbol *symbol = &sim->symbols[sim->heap[0]];

		dst[done] = symbol->pending[symbol->pending_at++];
		if (symbol->pending_at == symbol->pending_cnt)
			stoup_sim_flow_event(symbol, &sim->laws);
		sift_down(sim, 0);
	}
}
