/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.h - every histogram of a pool, declared once, and the log-linear form that all have.
 *
 *      value   0 1 2 .. 7 | 8 9 .. 15 | 16 18 .. 30 | 32 36 .. 60 | ...   2^42
 *      bucket  0 1 2 .. 7 | 8 9 .. 15 | 16 17 .. 23 | 24 25 .. 31 | ...   319
 *
 * Eight buckets to each power of two, so that a value is known to within an eighth; no bounds to be set, no array to
 * be sorted, and two histograms add up by their buckets. What is above goes into the last one, and `max` tells.
 *
 * Concurrency: the conductor alone writes, with relaxed stores and no locked instruction; readers load relaxed. A reader
 * counts by adding up the buckets it read, so that its quantiles fit what it has. Hits are not timed: nothing here
 * is on their way.
 *
 * If the daemon dies: what was counted stays, at worst with one value in a bucket that is not in `sum` yet.
 */
#ifndef STOUP_SHM_HISTOGRAM_H
#define STOUP_SHM_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

/* clang-format off */
#define STOUP_HISTOGRAMS(X) \
	X(MISS,   "miss_latency", "ns", "From asking for a block that is not in the pool to having it, as the consumer saw it.") \
	X(QUEUE,  "queue_wait",   "ns", "From a request's arrival to the begin of the load that it waits for; 0 where others had begun it.") \
	X(READ,   "read",         "ns", "Reading the stored bytes of a block, from the page cache or the device.") \
	X(DECODE, "decode",       "ns", "Checking and decoding a block.") \
	X(WAKEUP, "wake_up",      "ns", "From the daemon's answer to its consumer going on, whether that spun or slept.") \
	X(LEASE,  "lease_age",    "ns", "How long leases were held that ended; those shorter than from look to look (0.2 s) are not all seen.")
/* clang-format on */

enum stoup_histogram {
#define STOUP_HISTOGRAM_ENUM(id, name, unit, text) STOUP_HISTOGRAM_##id,
	STOUP_HISTOGRAMS(STOUP_HISTOGRAM_ENUM)
#undef STOUP_HISTOGRAM_ENUM
	STOUP_HISTOGRAM_CNT
};

#define STOUP_HISTOGRAM_SUB_BITS 3u
#define STOUP_HISTOGRAM_SUB      (1u << STOUP_HISTOGRAM_SUB_BITS)
#define STOUP_HISTOGRAM_BUCKETS  320u

struct stoup_control_histogram {
	char name[32];
	char unit[16];
	char text[128];
	_Atomic uint64_t sum, max;
	_Atomic uint64_t buckets[STOUP_HISTOGRAM_BUCKETS];
};

/* The bucket of a value. */
static inline uint32_t stoup_histogram_bucket(uint64_t value)
{
	uint32_t high, idx;

	if (value < STOUP_HISTOGRAM_SUB)
		return (uint32_t)value;
	high = 63u - (uint32_t)__builtin_clzll(value);
	idx = (high - STOUP_HISTOGRAM_SUB_BITS + 1) * STOUP_HISTOGRAM_SUB +
	      (uint32_t)(value >> (high - STOUP_HISTOGRAM_SUB_BITS) & (STOUP_HISTOGRAM_SUB - 1));
	return idx < STOUP_HISTOGRAM_BUCKETS ? idx : STOUP_HISTOGRAM_BUCKETS - 1;
}

/* The smallest value of a bucket (idx up to STOUP_HISTOGRAM_BUCKETS). */
static inline uint64_t stoup_histogram_low(uint32_t idx)
{
	uint32_t shift = idx / STOUP_HISTOGRAM_SUB;

	if (shift == 0)
		return idx;
	return (uint64_t)(STOUP_HISTOGRAM_SUB + idx % STOUP_HISTOGRAM_SUB) << (shift - 1);
}

/* Count a value. One writer. */
static inline void stoup_histogram_add(struct stoup_control_histogram *h, uint64_t value)
{
	_Atomic uint64_t *bucket = &h->buckets[stoup_histogram_bucket(value)];

	atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1,
		memory_order_relaxed);
	atomic_store_explicit(&h->sum, atomic_load_explicit(&h->sum, memory_order_relaxed) + value,
		memory_order_relaxed);
	if (value > atomic_load_explicit(&h->max, memory_order_relaxed))
		atomic_store_explicit(&h->max, value, memory_order_relaxed);
}

_Static_assert(sizeof(struct stoup_control_histogram) == 176 + 16 + 8 * STOUP_HISTOGRAM_BUCKETS,
	"histogram");

#endif
