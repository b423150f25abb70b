/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

int64_t sum_mbo(struct stoup *st, const struct stoup_series *series)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	int64_t sum = 0;
	int rc;

	if (stoup_scan(st, series, NULL, &cur, NULL) < 0)
		return -1;
	while ((rc = stoup_next(cur, &span)) > 0) {
		const struct stoup_mbo *mbo = span.base;

		for (uint64_t i = 0; i < span.record_cnt; i++)
			sum += mbo[i].price * mbo[i].size;
	}
	stoup_cursor_close(cur);
	return rc < 0 ? -1 : sum;
}

int64_t sum_tick(struct stoup *st, const struct stoup_series *series)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	int64_t sum = 0;
	int rc;

	if (stoup_scan(st, series, NULL, &cur, NULL) < 0)
		return -1;
	while ((rc = stoup_next(cur, &span)) > 0) {
		const struct stoup_tick *tick = span.base;

		for (uint64_t i = 0; i < span.record_cnt; i++)
			sum += tick[i].price * tick[i].size;
	}
	stoup_cursor_close(cur);
	return rc < 0 ? -1 : sum;
}

int64_t sum_backward(struct stoup *st, const struct stoup_series *series)
{
	const struct stoup_range latest_first = {.flags = STOUP_BACKWARD};
	struct stoup_cursor *cur;
	struct stoup_span span;
	int64_t sum = 0;
	int rc;

	if (stoup_scan(st, series, &latest_first, &cur, NULL) < 0)
		return -1;
	while ((rc = stoup_next(cur, &span)) > 0) {
		const struct stoup_mbo *mbo = span.base;

		for (uint64_t i = span.record_cnt; i-- > 0;)
			sum = sum * 3 + mbo[i].price * mbo[i].size;
	}
	stoup_cursor_close(cur);
	return rc < 0 ? -1 : sum;
}

int64_t sum_spread(struct stoup *st, const struct stoup_series *series)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	int64_t sum = 0;
	int rc;

	if (stoup_scan(st, series, NULL, &cur, NULL) < 0)
		return -1;
	while ((rc = stoup_next(cur, &span)) > 0) {
		const struct stoup_mbp1 *mbp = span.base;

		for (uint64_t i = 0; i < span.record_cnt; i++) {
			const struct stoup_level *l = &mbp[i].levels[0];

			sum += (l->ask_px - l->bid_px) * (int64_t)(l->bid_sz ^ l->ask_sz) *
			       mbp[i].depth;
		}
	}
	stoup_cursor_close(cur);
	return rc < 0 ? -1 : sum;
}
