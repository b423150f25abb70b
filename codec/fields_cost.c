/* SPDX-License-Identifier: Apache-2.0 */
/* fields_cost.c - what planes will take when they are packed, without packing them.
 *
 *      plane --histogram--> n log2(n) - sum of c log2(c)    bits of the order-0 entropy
 *
 * For a codec that has no entropy coding, a plane of n bytes and an entropy of h bits per byte
 * counts as min(8, 3/2 h) bits: what lz4 makes of planes of ticks, sizes and sides.
 *
 * Only integers are used, so that each machine chooses the same.
 *
 * Concurrency: pure functions.
 */
#include "codec/fields.h"

/* log2(1 + i / 256), in 2^-12. */
static const uint16_t log2_table[256] = {
	0,
	23,
	46,
	69,
	92,
	114,
	137,
	159,
	182,
	204,
	226,
	249,
	271,
	293,
	315,
	336,
	358,
	380,
	402,
	423,
	445,
	466,
	487,
	508,
	530,
	551,
	572,
	593,
	613,
	634,
	655,
	675,
	696,
	716,
	737,
	757,
	778,
	798,
	818,
	838,
	858,
	878,
	898,
	918,
	937,
	957,
	977,
	996,
	1016,
	1035,
	1054,
	1074,
	1093,
	1112,
	1131,
	1150,
	1169,
	1188,
	1207,
	1226,
	1244,
	1263,
	1282,
	1300,
	1319,
	1337,
	1355,
	1374,
	1392,
	1410,
	1428,
	1446,
	1465,
	1483,
	1500,
	1518,
	1536,
	1554,
	1572,
	1589,
	1607,
	1624,
	1642,
	1659,
	1677,
	1694,
	1712,
	1729,
	1746,
	1763,
	1780,
	1797,
	1814,
	1831,
	1848,
	1865,
	1882,
	1899,
	1915,
	1932,
	1949,
	1965,
	1982,
	1998,
	2015,
	2031,
	2047,
	2064,
	2080,
	2096,
	2112,
	2128,
	2145,
	2161,
	2177,
	2192,
	2208,
	2224,
	2240,
	2256,
	2272,
	2287,
	2303,
	2319,
	2334,
	2350,
	2365,
	2381,
	2396,
	2411,
	2427,
	2442,
	2457,
	2472,
	2488,
	2503,
	2518,
	2533,
	2548,
	2563,
	2578,
	2593,
	2608,
	2622,
	2637,
	2652,
	2667,
	2681,
	2696,
	2711,
	2725,
	2740,
	2754,
	2769,
	2783,
	2798,
	2812,
	2826,
	2841,
	2855,
	2869,
	2883,
	2897,
	2911,
	2926,
	2940,
	2954,
	2968,
	2982,
	2995,
	3009,
	3023,
	3037,
	3051,
	3065,
	3078,
	3092,
	3106,
	3119,
	3133,
	3146,
	3160,
	3174,
	3187,
	3200,
	3214,
	3227,
	3241,
	3254,
	3267,
	3280,
	3294,
	3307,
	3320,
	3333,
	3346,
	3359,
	3373,
	3386,
	3399,
	3412,
	3424,
	3437,
	3450,
	3463,
	3476,
	3489,
	3502,
	3514,
	3527,
	3540,
	3552,
	3565,
	3578,
	3590,
	3603,
	3615,
	3628,
	3640,
	3653,
	3665,
	3678,
	3690,
	3702,
	3715,
	3727,
	3739,
	3751,
	3764,
	3776,
	3788,
	3800,
	3812,
	3824,
	3836,
	3849,
	3861,
	3873,
	3885,
	3896,
	3908,
	3920,
	3932,
	3944,
	3956,
	3968,
	3979,
	3991,
	4003,
	4015,
	4026,
	4038,
	4050,
	4061,
	4073,
	4084,
};

/* n * log2(n): exact to 2^-12 for up to 8 significant bits, else low by at most 0.006 n. */
static uint64_t entropy_sum(uint64_t cnt)
{
	unsigned exponent;

	if (cnt < 2)
		return 0;
	exponent = 63 - (unsigned)__builtin_clzll(cnt);
	return cnt * ((uint64_t)exponent << STOUP_FIELDS_COST_SHIFT |
			     log2_table[cnt << (63 - exponent) >> 55 & 0xff]);
}

static uint64_t histogram_cost(const uint32_t histogram[256], uint32_t cnt)
{
	uint64_t cost = entropy_sum(cnt);

	for (int i = 0; i < 256; i++)
		cost -= histogram[i] > 1 ? entropy_sum(histogram[i]) : 0;
	return cost;
}

uint64_t stoup_fields_plane_cost(const uint8_t *plane, uint32_t cnt)
{
	uint32_t histogram[256] = {0};

	for (uint32_t i = 0; i < cnt; i++)
		histogram[plane[i]]++;
	return histogram_cost(histogram, cnt);
}

uint64_t stoup_fields_cost(const uint64_t *residuals, uint32_t cnt, uint64_t varying, int costly)
{
	uint64_t cost = 0, full = (uint64_t)cnt * 8 << STOUP_FIELDS_COST_SHIFT;

	for (int byte = 0; byte < 8; byte++) {
		uint32_t histogram[256] = {0};
		uint64_t plane;

		if (!(varying >> (8 * byte) & 0xff))
			continue;
		for (uint32_t i = 0; i < cnt; i++)
			histogram[residuals[i] >> (8 * byte) & 0xff]++;
		plane = histogram_cost(histogram, cnt);
		if (costly)
			plane += plane / 2;
		cost += plane < full ? plane : full;
	}
	return cost;
}
