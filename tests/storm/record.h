/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - records that prove themselves: every byte follows from (series, ordinal, edition).
 *
 *      series 2:   n = 0 ...  6   |  7 ...   13   |  14 ...
 *      key         T0+2 (7 times)    T0+2+S (7)      T0+2+2S
 *      order_id    series << 48 | n
 *      flags       edition          sequence = check of all the other bytes
 *
 * Invariant: two records of a store differ in their order_id, so that a reader who knows how many he
 * has seen tells a damaged record from one that is missing and from one that comes twice.
 *
 * Equal keys cross the borders of blocks and volumes, and in every fourth series they fill whole blocks:
 * there, going on "at the same record" is more than going on at the same key.
 */
#ifndef STOUP_TESTS_STORM_RECORD_H
#define STOUP_TESTS_STORM_RECORD_H

#include <stdint.h>
#include <string.h>
#include "shm/stoup_records.h"

#define STORM_T0        INT64_C(1700000000000000000)
#define STORM_STEP_NS   INT64_C(3000)
#define STORM_TIE_CNT   7u    /* records with the same key: blocks have 1170 or 2340 */
#define STORM_TIE_LONG  2600u /* ... of every fourth series */
#define STORM_DATASET   "STORM"
#define STORM_SHIFT_IDX 900u /* series from here on are replaced while they are read */

static inline uint64_t storm_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The next number of a run that a seed began. */
static inline uint64_t storm_random(uint64_t *state)
{
	return storm_mix(++*state);
}

/* 0 to cnt - 1. */
static inline uint64_t storm_below(uint64_t *state, uint64_t cnt)
{
	return cnt ? storm_random(state) % cnt : 0;
}

static inline uint64_t storm_tie(uint32_t series)
{
	return series % 4 == 3 ? STORM_TIE_LONG : STORM_TIE_CNT;
}

static inline int64_t storm_key(uint32_t series, uint64_t n)
{
	return STORM_T0 + series + (int64_t)(n / storm_tie(series)) * STORM_STEP_NS;
}

static inline uint32_t storm_check(const struct stoup_mbo *r)
{
	uint64_t words[6], sum = 0;

	memcpy(words, r, sizeof(words));
	for (unsigned i = 0; i < 6; i++)
		sum = (sum ^ words[i]) * UINT64_C(0x100000001b3) + (sum >> 29);
	return (uint32_t)(sum ^ sum >> 32);
}

static inline void storm_record(uint32_t series, uint64_t n, uint32_t edition, struct stoup_mbo *r)
{
	uint64_t noise = storm_mix((uint64_t)series << 40 ^ (uint64_t)edition << 56 ^ n);
	int64_t key = storm_key(series, n);

	*r = (struct stoup_mbo){
		.hd = {.length = sizeof(*r) / 4,
			.rtype = 160,
			.publisher_id = 1,
			.instrument_id = series + 1,
			.ts_event = (uint64_t)key - 1000},
		.order_id = (uint64_t)series << 48 | n,
		.price = (int64_t)(noise >> 40) * 250000000,
		.size = (uint32_t)(noise & 0x3ff),
		.flags = (uint8_t)edition,
		.channel_id = (uint8_t)(noise >> 32),
		.action = 'A',
		.side = noise & 0x400 ? 'B' : 'A',
		.ts_recv = (uint64_t)key,
		.ts_in_delta = 1000,
	};
	r->sequence = storm_check(r);
}

static inline uint64_t storm_ordinal(const struct stoup_mbo *r)
{
	return r->order_id & ((UINT64_C(1) << 48) - 1);
}

#endif
