/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench.h - what `stoup bench` measures of one series, and how.
 *
 *      STORE: a stoupd of its own, three times, so that the first scan finds an empty pool
 *      POOL:  the running one, as it is found: what its first scan misses is told
 *
 *      attach, detach    many times
 *      first scan        every byte is summed; from a daemon without any block, where it is our own
 *      warm, in turn     scan of the pool | the same loop over a private copy; then memcpy of the bytes
 *      lone misses       no read-ahead, a rest between two (an own daemon only)
 *      a worker          a child that attaches and scans: the memory that this adds
 *      private decode    the same blocks, read and decoded by this process (producer)
 *
 * Only the first `limit` decoded bytes of the series are used, so that it takes about ten seconds.
 *
 * Concurrency: one thread. Whoever else uses the machine or the pool shows in the numbers.
 */
#ifndef STOUP_CONSUMER_TOOL_BENCH_H
#define STOUP_CONSUMER_TOOL_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include "consumer/stoup.h"
#include "consumer/tool_daemon.h"

#define STOUP_BENCH_PAIR_CAP 41u /* rounds of the warm contenders */

struct stoup_bench_rate { /* of one pass, median over the passes */
	uint64_t ns;
	uint32_t pass_cnt;
};

struct stoup_bench_latency {
	uint64_t p50_ns, p99_ns, max_ns;
	uint32_t cnt; /* 0: not measured */
};

struct stoup_bench {
	/* what to measure */
	const char *store; /* a daemon of its own serves it; NULL: a running pool */
	const char *pool;
	const char *decode_store; /* for the private decoding; NULL: not known */
	const char *series;       /* NULL: the largest */
	uint64_t limit;           /* decoded bytes */
	/* results */
	char name[512]; /* of the series */
	uint64_t record_cnt, len, series_len, stride;
	double waited_part; /* of the first scan's segments; the others were there or read ahead */
	struct stoup_bench_rate first, warm, copy, array;
	double warm_ratio; /* warm / private array, median of the pairs */
	struct stoup_bench_latency attach, miss;
	uint64_t worker_len, page_table_len; /* bytes that a worker adds */
	uint64_t decode_len, decode_ns;      /* private decode; 0: not measured */
	struct stoup_error decode_err;
	/* private */
	struct stoup_tool_daemon daemon;
	uint64_t pool_len;
	uint8_t *copy_base;
};

/* Measure everything. 0, or a negative errno with text. */
int stoup_bench_run(struct stoup_bench *bench, struct stoup_error *err);

#endif
