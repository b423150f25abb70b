/* SPDX-License-Identifier: Apache-2.0 */
/* helper_query.c - asks a running daemon, for ranges.py:
 *
 *      helper_query POOL SERIES follow N      reads N records of a series that grows; says when it waits
 *      helper_query POOL SERIES random N      N random queries against the keys of one plain scan
 *
 * Prints one object of JSON per line. Ends with 1 and the text of an error, or of a difference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "stoup.h"

static struct stoup *st;
static struct stoup_series series;
static struct stoup_error err;
static int64_t
	*keys; /* of all records, in order; of a series that kept its order, the greatest so far */
static uint64_t state = 1;

static int fail(const char *what, const char *text)
{
	printf("{\"failed\": \"%s\", \"text\": \"%s\"}\n", what, text);
	exit(1);
}

static int64_t key_of(const struct stoup_span *span, uint64_t i)
{
	int64_t key;

	if (span->schema->stride == 0)
		return stoup_message_at(span, i).key;
	memcpy(&key, (const char *)span->base + i * span->stride + span->schema->key_off,
		sizeof(key));
	return key;
}

static struct stoup_cursor *scan(const struct stoup_range *range)
{
	struct stoup_cursor *cur;

	if (stoup_scan(st, &series, range, &cur, &err) < 0)
		fail("scan", err.text);
	return cur;
}

static void follow(uint64_t cnt)
{
	const struct stoup_range range = {.flags = STOUP_FOLLOW};
	struct stoup_cursor *cur = scan(&range);
	struct stoup_span span;
	uint64_t at = 0;
	int64_t last = 0;
	int rc;

	while (at < cnt) {
		rc = stoup_next(cur, &span);
		if (rc < 0)
			fail("next", stoup_cursor_error(cur)->text);
		if (rc == 0) {
			printf("{\"end\": %llu}\n", (unsigned long long)at);
			fflush(stdout);
			/* As long as it takes: the test ends a broken one. */
			if (stoup_wait_news(st, UINT64_MAX, &err) < 0)
				fail("wait", err.text);
			continue;
		}
		if (span.ordinal != at || key_of(&span, 0) < last)
			fail("order", "a span does not follow the one before");
		at += span.record_cnt;
		last = key_of(&span, span.record_cnt - 1);
	}
	printf("{\"records\": %llu, \"last_key\": %lld}\n", (unsigned long long)at,
		(long long)last);
	stoup_cursor_close(cur);
}

static void copy_keys(void)
{
	struct stoup_cursor *cur = scan(NULL);
	struct stoup_span span;
	uint64_t at = 0;
	int64_t high = 0;

	keys = calloc(series.record_cnt + 1, sizeof(*keys));
	if (!keys)
		exit(2);
	while (stoup_next(cur, &span) > 0)
		for (uint64_t i = 0; i < span.record_cnt; i++) {
			int64_t key = key_of(&span, i);

			high = key > high ? key : high;
			keys[at++] = high;
		}
	if (at != series.record_cnt)
		fail("copy", "not all records came");
	stoup_cursor_close(cur);
}

static uint64_t below(uint64_t cap)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 20) % cap;
}

/* Records [*low, *high) are those of the range without its limit: by linear search. */
static void bounds(const struct stoup_range *range, uint64_t *low, uint64_t *high)
{
	uint64_t cnt = series.record_cnt;

	*low = 0;
	*high = cnt;
	while (*low < cnt && range->from_ns > 0 &&
		(range->flags & STOUP_FROM_AFTER ? keys[*low] <= range->from_ns
						 : keys[*low] < range->from_ns))
		++*low;
	while (*high > 0 && range->to_ns > 0 &&
		(range->flags & STOUP_TO_INCLUDED ? keys[*high - 1] > range->to_ns
						  : keys[*high - 1] >= range->to_ns))
		--*high;
	if (*high < *low)
		*high = *low;
	if (range->limit == 0 || *high - *low <= range->limit)
		return;
	if (!(range->flags & STOUP_LAST) != !(range->flags & STOUP_BACKWARD))
		*low = *high - range->limit;
	else
		*high = *low + range->limit;
}

/* One query is right, or the program ends. */
static void check(const struct stoup_range *range)
{
	struct stoup_cursor *cur = scan(range);
	struct stoup_count count;
	struct stoup_span span;
	uint64_t low, high, cnt = 0, next;
	char text[160];
	int rc, back = (range->flags & STOUP_BACKWARD) != 0;

	bounds(range, &low, &high);
	snprintf(text, sizeof(text), "from %lld to %lld flags %#x limit %u: records %llu to %llu",
		(long long)range->from_ns, (long long)range->to_ns, range->flags, range->limit,
		(unsigned long long)low, (unsigned long long)high);
	next = back ? high : low;
	while ((rc = stoup_next(cur, &span)) > 0) {
		if ((back ? span.ordinal + span.record_cnt : span.ordinal) != next)
			fail("place", text);
		next = back ? span.ordinal : span.ordinal + span.record_cnt;
		cnt += span.record_cnt;
	}
	if (rc < 0)
		fail("next", stoup_cursor_error(cur)->text);
	if (cnt != high - low || next != (back ? low : high))
		fail("records", text);
	stoup_cursor_close(cur);
	if (stoup_count(st, &series, range, 1, &count, &err) < 0)
		fail("count", err.text);
	if (count.record_min != cnt || count.record_max != cnt)
		fail("count", text);
}

static void ask(uint64_t cnt)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};

	copy_keys();
	for (uint64_t i = 0; i < cnt; i++) {
		struct stoup_range range = {.flags = (uint32_t)below(4) * STOUP_FROM_AFTER,
			.limit = below(2) ? (uint32_t)below(2000) + 1 : 0};
		int64_t a = keys[below(series.record_cnt)] + (int64_t)below(3) - 1;
		int64_t b = keys[below(series.record_cnt)] + (int64_t)below(3) - 1;

		if (below(2))
			range.flags |= STOUP_BACKWARD;
		if (range.limit && below(2))
			range.flags |= STOUP_LAST;
		if (below(4))
			range.flags |= STOUP_DIRECT_OR_POOL;
		range.from_ns = below(4) ? (a < b ? a : b) : 0;
		range.to_ns = below(4) ? (a < b ? b : a) : 0;
		check(&range);
	}
	stoup_stats(st, &stats);
	printf("{\"queries\": %llu, \"records\": %llu, \"mapped\": %d}\n", (unsigned long long)cnt,
		(unsigned long long)series.record_cnt, stats.direct_cnt > 0);
	free(keys);
}

int main(int argc, char **argv)
{
	uint64_t cnt;

	if (argc != 5)
		return 2;
	cnt = strtoull(argv[4], NULL, 10);
	if (stoup_attach(argv[1], NULL, &st, &err) < 0 ||
		stoup_series_find(st, argv[2], &series, &err) < 0)
		fail("attach", err.text);
	if (strcmp(argv[3], "follow") == 0)
		follow(cnt);
	else
		ask(cnt);
	return stoup_detach(st) < 0 ? 3 : 0;
}
