/* SPDX-License-Identifier: Apache-2.0 */
/* bars_feed.h - spans that a test hands out itself, in the place of stoup_next (--wrap).
 *
 *      records --cut at random--> __wrap_stoup_next --> stoup_bars_next
 *
 * Each span is a block of its own, freed with the next call, so that a read outside of it, or of a span before, is
 * seen by the sanitizers.
 *
 * Include in one file of a test program. Concurrency: one thread.
 */
#ifndef STOUP_TEST_BARS_FEED_H
#define STOUP_TEST_BARS_FEED_H

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/cursor.h"
#include "consumer/stoup_bars.h"

int __wrap_stoup_next(struct stoup_cursor *cur, struct stoup_span *ret);
int64_t __wrap_stoup_span_place(const struct stoup_cursor *cur, const struct stoup_span *span);

static uint64_t seed = 77;

static inline uint64_t rnd(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return below ? (seed >> 11) % below : 0;
}

static inline int64_t between(int64_t low, int64_t high)
{
	return low + (int64_t)rnd((uint64_t)(high - low) + 1);
}

static struct stoup_cursor cursor;
static uint32_t feed_cnt;          /* records there are */
static uint32_t feed_at, feed_end; /* at the end 0 is returned */
static uint32_t span_cap;
static uint8_t *feed_bytes;
static int feed_error; /* returned once */
static const struct stoup_schema *feed_schema;
static const uint8_t *feed_records;
static int64_t first_key, last_key; /* of the segment that all of it is */

int __wrap_stoup_next(struct stoup_cursor *cur, struct stoup_span *ret)
{
	uint32_t cnt = (uint32_t)between(1, span_cap);

	free(feed_bytes);
	feed_bytes = NULL;
	if (feed_error) {
		stoup_error_set(&cur->error, feed_error, "as the test wants");
		feed_error = 0;
		return cur->error.code;
	}
	if (feed_at == feed_end)
		return 0;
	cnt = cnt < feed_end - feed_at ? cnt : feed_end - feed_at;
	feed_bytes = malloc((size_t)cnt * feed_schema->stride);
	if (!feed_bytes)
		abort();
	memcpy(feed_bytes, feed_records + (size_t)feed_at * feed_schema->stride,
		(size_t)cnt * feed_schema->stride);
	*ret = (struct stoup_span){.base = feed_bytes,
		.record_cnt = cnt,
		.stride = feed_schema->stride,
		.ordinal = 1000 + feed_at,
		.first_key = first_key,
		.last_key = last_key,
		.schema = feed_schema};
	feed_at += cnt;
	return 1;
}

/* All of it is one segment, and a span never begins behind a greater key than the cursor has yielded. */
int64_t __wrap_stoup_span_place(const struct stoup_cursor *cur, const struct stoup_span *span)
{
	return cur == &cursor ? span->first_key : INT64_MIN;
}

/* A cursor of cnt records, in spans of at most `cap`. */
static inline struct stoup_cursor *feed(
	const struct stoup_schema *schema, const void *records, uint32_t cnt, uint32_t cap)
{
	cursor = (struct stoup_cursor){.schema = schema, .step = 1};
	feed_schema = schema;
	feed_records = records;
	feed_cnt = feed_end = cnt;
	feed_at = 0;
	span_cap = cap;
	return &cursor;
}

static inline struct stoup_bars *open_bars(
	struct stoup_cursor *cur, const struct stoup_bars_spec *spec)
{
	struct stoup_error err = {0};
	struct stoup_bars *bars = NULL;
	int rc = stoup_bars_open(cur, spec, &bars, &err);

	ck_assert_msg(rc == 0, "%d: %s", rc, err.text);
	return bars;
}

static inline void close_bars(struct stoup_bars *bars)
{
	stoup_bars_close(bars);
	free(feed_bytes);
	feed_bytes = NULL;
}

/* One program: its cases, in one process. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

#endif
