/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_days.h - two volumes with all that makes a scan hard, and what a scan of them hands out.
 *
 * fake_volume takes the first series of each as it needs them: A/x and K/x are in both.
 */
#ifndef STOUP_TESTS_CONSUMER_DAYS_H
#define STOUP_TESTS_CONSUMER_DAYS_H

#include "tests/unit/test_consumer_fake.h"

#define SEEN_CAP 64

/* Ties inside a segment, across segments and across volumes; small series that share blocks; an order that
 * was kept; the later volume ingested first. */
static const struct fake_series late[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 2, {40, 50}}, {1, 2, {60, 60}}}},
	{.name = "K/x",
		.schema = "pair",
		.flags = STOUP_CATALOG_KEEP_ORDER,
		.segment_cnt = 2,
		.segments = {{2, 6, {40, 43, 41, 44, 42, 45}}, {1, 3, {45, 60, 50}}}},
	{.name = "S/2", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {55}}}},
};
static const struct fake_series early[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 4,
		.segments = {{0, 2, {10, 20}}, {1, 3, {20, 20, 30}}, {2, 1, {40}},
			{3, 2, {40, 40}}}},
	{.name = "K/x",
		.schema = "pair",
		.flags = STOUP_CATALOG_KEEP_ORDER,
		.segment_cnt = 1,
		.segments = {{0, 6, {10, 30, 20, 40, 35, 40}}}},
	{.name = "S/1",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 3, {11, 12, 13}}, {1, 2, {14, 15}}}},
	{.name = "S/2", .schema = "pair", .segment_cnt = 1, .segments = {{1, 2, {50, 51}}}},
};

struct seen {
	uint64_t values[SEEN_CAP], ordinals[SEEN_CAP];
	uint32_t cnt;
};

static inline void collect(struct stoup *st, const char *name, int64_t from, int64_t to,
	uint32_t flags, struct seen *seen)
{
	struct stoup_cursor *own = fake_scan_flags(st, name, from, to, flags);
	struct stoup_span s;
	int rc;

	seen->cnt = 0;
	while ((rc = stoup_next(own, &s)) > 0) {
		const struct pair *pairs = s.base;

		ck_assert_uint_ge(s.record_cnt, 1);
		for (uint64_t i = 0; i < s.record_cnt; i++) {
			uint64_t at = flags & STOUP_BACKWARD ? s.record_cnt - 1 - i : i;

			ck_assert_uint_lt(seen->cnt, SEEN_CAP);
			seen->values[seen->cnt] = pairs[at].value;
			seen->ordinals[seen->cnt++] = s.ordinal + at;
		}
	}
	ck_assert_msg(rc == 0, "%d: %s", rc, stoup_cursor_error(own)->text);
	stoup_cursor_close(own);
}

#endif
