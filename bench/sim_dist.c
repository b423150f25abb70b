/* SPDX-License-Identifier: Apache-2.0 */
/* sim_dist.c - from knots to a table of quantiles. */
#include "bench/sim_dist.h"

void stoup_sim_dist_init(
	struct stoup_sim_dist *dist, const struct stoup_sim_knot *knots, size_t knot_cnt)
{
	size_t at = 0;

	for (uint32_t i = 0; i <= STOUP_SIM_QUANTILE_CNT; i++) {
		uint64_t ppm = (uint64_t)i * 1000000u / STOUP_SIM_QUANTILE_CNT;
		uint64_t span, rise;

		while (at + 2 < knot_cnt && knots[at + 1].ppm < ppm)
			at++;
		span = knots[at + 1].ppm - knots[at].ppm;
		rise = knots[at + 1].value - knots[at].value;
		dist->quantile[i] = knots[at].value +
		                    (uint32_t)(span ? rise * (ppm - knots[at].ppm) / span : rise);
	}
}
