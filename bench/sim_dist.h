/* SPDX-License-Identifier: Apache-2.0 */
/* sim_dist.h - random numbers of the simulator: a generator and distributions given by quantiles.
 *
 *      knots {ppm, value} --linear--> 257 quantiles --one draw, interpolated--> sample
 *
 * A distribution is the list of its measured quantiles; between them it is linear. Sampling costs
 * one random number and no branch, and is the same on every machine: it uses integers alone.
 *
 * Concurrency: a table is immutable once made; a generator belongs to one thread.
 */
#ifndef STOUP_BENCH_SIM_DIST_H
#define STOUP_BENCH_SIM_DIST_H

#include <stddef.h>
#include <stdint.h>

struct stoup_sim_rng {
	uint64_t state;
};

/* SplitMix64: 64 good bits from an add and two multiplications. */
static inline uint64_t stoup_sim_rand(struct stoup_sim_rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 to bound - 1; bound below 2^32. The bias is below bound / 2^32. */
static inline uint32_t stoup_sim_below(struct stoup_sim_rng *rng, uint32_t bound)
{
	return (uint32_t)(((stoup_sim_rand(rng) >> 32) * bound) >> 32);
}

/* True with probability permille / 1000. */
static inline int stoup_sim_chance(struct stoup_sim_rng *rng, uint32_t permille)
{
	return stoup_sim_below(rng, 1000) < permille;
}

struct stoup_sim_knot {
	uint32_t ppm;   /* of the samples are at or below ... */
	uint32_t value; /* ... this */
};

#define STOUP_SIM_QUANTILE_CNT 256u

struct stoup_sim_dist {
	uint32_t quantile[STOUP_SIM_QUANTILE_CNT + 1];
};

/* Fill a table. Knots start at ppm 0, end at 1000000, and never fall in either number. */
void stoup_sim_dist_init(
	struct stoup_sim_dist *dist, const struct stoup_sim_knot *knots, size_t knot_cnt);

static inline uint32_t stoup_sim_sample(
	const struct stoup_sim_dist *dist, struct stoup_sim_rng *rng)
{
	uint64_t bits = stoup_sim_rand(rng);
	uint32_t low = dist->quantile[bits >> 56];
	uint64_t width = dist->quantile[(bits >> 56) + 1] - low;

	return low + (uint32_t)((width * ((bits >> 24) & 0xffffffffu)) >> 32);
}

#endif
