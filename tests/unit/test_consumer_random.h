/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_random.h - random series that make a query hard, and what one knows of them without a library.
 *
 *      volume      [10 10 10][10 12][12]   [30]            keys repeat over segments and volumes, segments of one
 *      naive       every record in order: key, greatest key so far, value, segment, volume
 *
 * Series: "A/x" pairs, "B/x" bars, "J/x" messages, "K/x" pairs that kept their order, "Z/x" without a record.
 * Concurrency: one thread. All follows from the seed that a failure prints.
 */
#ifndef STOUP_TEST_CONSUMER_RANDOM_H
#define STOUP_TEST_CONSUMER_RANDOM_H

#include "tests/unit/test_consumer_fake.h"

#define NAIVE_CAP   2048
#define RANDOM_KEYS 160 /* keys are about 10 to this */

struct naive_record {
	int64_t key, high; /* `high`: the greatest key so far */
	uint64_t value;
	uint32_t segment, volume; /* numbers over all volumes */
};

struct naive {
	const char *name;
	int64_t later; /* of bars */
	uint32_t cnt, segment_cnt;
	struct naive_record records[NAIVE_CAP];
};

#define RANDOM_SERIES_CNT 5

static struct naive naives[RANDOM_SERIES_CNT];
static uint64_t random_state, random_seed;
static int random_gap; /* volumes do not touch in a key */

static inline uint32_t random_below(uint32_t cap)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % cap;
}

static inline void random_begin(uint64_t seed)
{
	random_seed = seed;
	random_state = seed * 2654435761u + 1;
	memset(naives, 0, sizeof(naives));
}

/* The next key of a series: mostly the same again, or one more; seldom far away. */
static inline int64_t random_step(void)
{
	uint32_t kind = random_below(10);

	return kind < 5 ? 0 : kind < 9 ? random_below(3) : random_below(20);
}

/* Fill segments of one series, whose keys go on from *high. */
static inline void random_series(struct fake_series *series, uint32_t series_idx, uint32_t volume,
	uint32_t segment_cnt, uint32_t block, int64_t *high, uint64_t *value)
{
	struct naive *naive = &naives[series_idx];

	series->segment_cnt = segment_cnt;
	for (uint32_t s = 0; s < segment_cnt; s++) {
		struct fake_segment *seg = &series->segments[s];

		seg->block = block + s;
		seg->cnt = random_below(3) == 0 ? 1 : 1 + random_below(10);
		for (uint32_t i = 0; i < seg->cnt; i++) {
			struct naive_record *r = &naive->records[naive->cnt++];

			/* A segment begins with its series' greatest key so far, as ingested ones do. */
			int back = (series->flags & STOUP_CATALOG_KEEP_ORDER) && i > 0 &&
			           random_below(3) == 0;

			*high += back ? 0 : random_step();
			seg->keys[i] = back ? *high - random_below(8) : *high;
			*r = (struct naive_record){
				seg->keys[i], *high, (*value)++, naive->segment_cnt, volume};
		}
		naive->segment_cnt++;
	}
}

/* Add volumes to a pool that was not started; keys go on from *highs (0: from the start). With files, if asked for:
 * then gaps lie between some blocks. */
static inline void random_volumes(
	struct fake *f, uint32_t cnt, int with_files, int64_t highs[RANDOM_SERIES_CNT])
{
	static const char *const names[RANDOM_SERIES_CNT][2] = {
		{"A/x", "pair"}, {"B/x", "bar"}, {"J/x", "json"}, {"K/x", "pair"}, {"Z/x", "pair"}};
	static struct fake_series series[RANDOM_SERIES_CNT];

	for (uint32_t v = 0; v < cnt; v++) {
		uint64_t value = (uint64_t)f->volume_cnt * 1000000;
		uint32_t volume = f->volume_cnt;

		memset(series, 0, sizeof(series));
		for (uint32_t s = 0; s < RANDOM_SERIES_CNT; s++) {
			uint32_t segment_cnt = random_below(9);

			series[s].name = names[s][0];
			series[s].schema = names[s][1];
			series[s].flags = s == 3 ? STOUP_CATALOG_KEEP_ORDER : 0;
			naives[s].name = names[s][0];
			naives[s].later = s == 1 ? FAKE_INTERVAL : 0;
			/* Volumes touch in a key, or do not. */
			highs[s] += highs[s] == 0 ? 10 : random_step() + random_gap;
			random_series(&series[s], s, volume, s == 4 ? 0 : segment_cnt,
				random_below(FAKE_BLOCK_CAP - 8), &highs[s], &value);
		}
		fake_volume(f, volume + 1, 0, FAKE_BLOCK_CAP, series, RANDOM_SERIES_CNT);
		if (with_files)
			fake_file(f, volume, random_below(3) == 0 ? random_below(1 << 16) : 0);
	}
}

/* ---- the naive answer ------------------------------------------------------------------------ */

static inline int naive_has(const struct naive *n, const struct stoup_range *range, uint32_t i)
{
	int64_t from = range->from_ns, to = range->to_ns, at = n->records[i].high;

	if (range->flags & STOUP_ORDINALS)
		return i >= from && (to == 0 || i < to);
	if (range->flags & STOUP_AVAILABLE)
		at += n->later;
	if (from > 0 && (range->flags & STOUP_FROM_AFTER ? at <= from : at < from))
		return 0;
	return to == 0 || (range->flags & STOUP_TO_INCLUDED ? at <= to : at < to);
}

/* The records that a scan hands out, in its order: their numbers. */
static inline uint32_t naive_scan(
	const struct naive *n, const struct stoup_range *range, uint32_t *ret)
{
	uint32_t cnt = 0, left;

	for (uint32_t i = 0; i < n->cnt; i++) {
		uint32_t at = range->flags & STOUP_BACKWARD ? n->cnt - 1 - i : i;

		if (naive_has(n, range, at))
			ret[cnt++] = at;
	}
	if (range->limit == 0 || range->limit >= cnt)
		return cnt;
	left = range->limit;
	if (range->flags & STOUP_LAST)
		memmove(ret, ret + cnt - left, left * sizeof(*ret));
	return left;
}

/* The same after a seek. */
static inline uint32_t naive_seek(
	const struct naive *n, const struct stoup_range *range, int64_t key, uint32_t *ret)
{
	struct stoup_range open = *range;
	uint32_t cnt, kept = 0;

	/* A limit without STOUP_LAST counts from the seek. */
	if (!(range->flags & STOUP_LAST))
		open.limit = 0;
	cnt = naive_scan(n, &open, ret);
	for (uint32_t i = 0; i < cnt; i++) {
		int64_t at = n->records[ret[i]].high;

		if (range->flags & STOUP_AVAILABLE)
			at += n->later;
		if (range->flags & STOUP_BACKWARD ? at <= key : at >= key)
			ret[kept++] = ret[i];
	}
	return range->limit != 0 && range->limit < kept ? range->limit : kept;
}

/* The same series without the records of volumes whose bits are set. */
static inline struct naive *naive_without(const struct naive *n, uint32_t volumes)
{
	static struct naive ret;

	ret = *n;
	ret.cnt = 0;
	for (uint32_t i = 0; i < n->cnt; i++)
		if (!(volumes >> n->records[i].volume & 1))
			ret.records[ret.cnt++] = n->records[i];
	return &ret;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* A key near those that there are, below or above them now and then. */
static inline int64_t random_key(const struct naive *n)
{
	int64_t key;

	if (n->cnt == 0 || random_below(8) == 0)
		return 1 + random_below(RANDOM_KEYS);
	key = n->records[random_below(n->cnt)].high + random_below(3) - 1;
	return random_below(4) == 0 ? key + n->later : key;
}

static inline struct stoup_range random_range(const struct naive *n)
{
	static const uint32_t ways[] = {0, 0, STOUP_DIRECT_OR_POOL};
	struct stoup_range range = {.flags = ways[random_below(3)]};
	int64_t swap;

	if (random_below(2))
		range.flags |= STOUP_BACKWARD;
	if (random_below(4) == 0)
		range.flags |= STOUP_ORDINALS;
	else
		range.flags |=
			random_below(8) * STOUP_FROM_AFTER & (STOUP_FROM_AFTER | STOUP_TO_INCLUDED);
	if (random_below(2))
		range.flags |= STOUP_AVAILABLE;
	if (random_below(3) == 0)
		range.limit = 1 + random_below(random_below(2) ? 4 : 60);
	if (range.limit && random_below(2))
		range.flags |= STOUP_LAST;
	if (random_below(4))
		range.from_ns =
			range.flags & STOUP_ORDINALS ? random_below(n->cnt + 2) : random_key(n);
	if (random_below(4))
		range.to_ns =
			range.flags & STOUP_ORDINALS ? random_below(n->cnt + 2) : random_key(n);
	if (range.to_ns != 0 && range.to_ns < range.from_ns) {
		swap = range.to_ns;
		range.to_ns = range.from_ns;
		range.from_ns = swap;
	}
	return range;
}

static inline const char *random_text(const struct naive *n, const struct stoup_range *range)
{
	static char text[256];

	snprintf(text, sizeof(text), "seed %llu %s: from %lld to %lld flags %#x limit %u",
		(unsigned long long)random_seed, n->name, (long long)range->from_ns,
		(long long)range->to_ns, range->flags, range->limit);
	return text;
}

static inline uint64_t value_at(const struct stoup_span *span, uint64_t i)
{
	uint64_t value;

	if (span->schema->stride)
		return ((const struct pair *)span->base)[i].value;
	memcpy(&value, stoup_message_at(span, i).bytes, sizeof(value));
	return value;
}

/* A span has the records `expected` from *at on, which moves behind them. Record 0 is ordinal `first`. */
static inline void expect_part_from(const struct naive *n, uint64_t first,
	const struct stoup_range *range, const struct stoup_span *span, const uint32_t *expected,
	uint32_t cnt, uint32_t *at)
{
	ck_assert_msg(span->record_cnt >= 1, "%s: an empty span", random_text(n, range));
	for (uint64_t i = 0; i < span->record_cnt; i++, ++*at) {
		uint64_t in = range->flags & STOUP_BACKWARD ? span->record_cnt - 1 - i : i;

		ck_assert_msg(*at < cnt, "%s: more than %u records: ordinal %llu",
			random_text(n, range), cnt, (unsigned long long)(span->ordinal + in));
		ck_assert_msg(span->ordinal + in == first + expected[*at] &&
				      value_at(span, in) == n->records[expected[*at]].value,
			"%s: record %u is ordinal %llu (value %llu), not %u", random_text(n, range),
			*at, (unsigned long long)(span->ordinal + in),
			(unsigned long long)value_at(span, in), expected[*at]);
	}
}

static inline void expect_part(const struct naive *n, const struct stoup_range *range,
	const struct stoup_span *span, const uint32_t *expected, uint32_t cnt, uint32_t *at)
{
	expect_part_from(n, 0, range, span, expected, cnt, at);
}

#endif
