/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - a market simulator: an endless, seeded stream of MBO records of many symbols.
 *
 *      symbol 0: gaps -> orders on a book -> event [T F F C C] --+
 *      symbol 1: gaps -> orders on a book -> event [A]         --+-> merge by ts_recv -> records
 *      ...                                                       |
 *      symbol n: (Zipf: symbol i is 1/(i+1) as busy as 0)      --+
 *
 * Orders live: they are added, modified, filled in price-time order by trades and cancelled, each
 * under its own id, on a tick grid. Times cluster (an event is likely to be followed by another
 * within microseconds) and carry nanosecond noise; ts_recv lags by a latency and queues behind the
 * packet before. The distributions are quantiles measured on one day of ES futures, so that bytes
 * per record under a general compressor are those of real data (tests/unit/test_sim.c).
 *
 * Invariant: ts_recv never steps back in the merged stream; every cancel, modify and fill names an
 * order that lives in the book at that moment, with its price and side; bids are below asks.
 * Equal options give equal bytes on every machine: integers only, no floating point.
 *
 * Concurrency: one simulator belongs to one thread.
 */
#ifndef STOUP_BENCH_SIM_H
#define STOUP_BENCH_SIM_H

#include <stdint.h>

#define STOUP_SIM_SYMBOL_CAP 65535u /* above, an instrument id would not be symbol index + 1000 */
#define STOUP_SIM_FIRST_ID   1000u  /* instrument id of symbol 0 */

/* One MBO record as DBN lays it out (56 bytes, little-endian). */
struct stoup_sim_mbo {
	uint8_t length; /* in 4-byte words */
	uint8_t rtype;
	uint16_t publisher_id;
	uint32_t instrument_id;
	uint64_t ts_event;
	uint64_t order_id;
	int64_t price; /* 1e-9 units */
	uint32_t size;
	uint8_t flags;
	uint8_t channel_id;
	char action;
	char side;
	uint64_t ts_recv;
	int32_t ts_in_delta;
	uint32_t sequence;
};

_Static_assert(sizeof(struct stoup_sim_mbo) == 56, "a DBN MBO record is 56 bytes");

#define STOUP_SIM_RTYPE_MBO     0xa0u
#define STOUP_SIM_FLAG_LAST     0x80u
#define STOUP_SIM_FLAG_SNAPSHOT 0x20u

struct stoup_sim_options {
	uint64_t seed;
	uint32_t symbol_cnt; /* 1 to STOUP_SIM_SYMBOL_CAP */
	int64_t start_ns;    /* since the epoch: ts_recv of the opening snapshot */
};

struct stoup_sim;

/* Make a simulator. -EINVAL for options out of range, -ENOMEM. Memory: about 340 KiB a symbol up to
 * 64 symbols, about 30 KiB a symbol beyond (smaller books). */
int stoup_sim_create(const struct stoup_sim_options *options, struct stoup_sim **ret);

/* Write the next `cnt` records to `dst`. The stream has no end. */
void stoup_sim_next(struct stoup_sim *sim, struct stoup_sim_mbo *dst, uint64_t cnt);

/* Name of a symbol, as in a file's mapping: at most 21 bytes, valid until the next call. */
const char *stoup_sim_symbol(uint32_t symbol_idx);

/* Nanoseconds that `record_cnt` records of this many symbols take on average. */
int64_t stoup_sim_span(uint32_t symbol_cnt, uint64_t record_cnt);

/* NULL is allowed. */
void stoup_sim_destroy(struct stoup_sim *sim);

#endif
