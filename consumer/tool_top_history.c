/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top_history.c - what the last minutes were: marks of equal length, and the misses of the last one. See tool_top.h. */
#include <string.h>
#include "consumer/tool_top.h"
#include "shm/histogram.h"

static void value_add(struct stoup_top_mark *mark, enum stoup_top_line line, double value)
{
	mark->sum[line] += value;
	mark->cnt[line]++;
}

static void values_add(struct stoup_top_mark *mark, const struct stoup_watch *before,
	const struct stoup_watch *now)
{
	static const struct {
		enum stoup_top_line line;
		enum stoup_counter id;
	} rates[] = {{STOUP_TOP_LINE_DECODE, STOUP_COUNTER_LOAD_RAW_BYTES},
		{STOUP_TOP_LINE_MISSES, STOUP_COUNTER_MISSES},
		{STOUP_TOP_LINE_READ, STOUP_COUNTER_READ_BYTES},
		{STOUP_TOP_LINE_EVICTIONS, STOUP_COUNTER_EVICTIONS},
		{STOUP_TOP_LINE_HITS, STOUP_COUNTER_HITS}};
	double hits, misses;

	value_add(mark, STOUP_TOP_LINE_LEASED, (double)now->sums.leased_bytes);
	value_add(mark, STOUP_TOP_LINE_WAITING, (double)now->sums.waiting);
	if (stoup_watch_seconds(before, now) <= 0)
		return;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		value_add(mark, rates[i].line, stoup_watch_rate(before, now, rates[i].id));
	hits = stoup_watch_rate(before, now, STOUP_COUNTER_HITS);
	misses = stoup_watch_rate(before, now, STOUP_COUNTER_MISSES);
	if (hits + misses > 0)
		value_add(mark, STOUP_TOP_LINE_RATIO, hits / (hits + misses));
}

/* The miss latencies of a look, or NULL from an older daemon. */
static const struct stoup_watch_histogram *misses_of(const struct stoup_watch *watch)
{
	return watch->histogram_cnt > STOUP_HISTOGRAM_MISS
	               ? &watch->histograms[STOUP_HISTOGRAM_MISS]
	               : NULL;
}

static void misses_keep(struct stoup_top_history *history, const struct stoup_watch *now)
{
	uint32_t at = (uint32_t)(history->newest % STOUP_TOP_MISSES);

	if (memcmp(history->instance, now->instance, sizeof(now->instance)) != 0) {
		memcpy(history->instance, now->instance, sizeof(now->instance));
		memset(history->misses_ns, 0, sizeof(history->misses_ns));
	}
	if (!misses_of(now) ||
		(history->misses_ns[at] && history->misses_number[at] == history->newest))
		return;
	history->misses[at] = *misses_of(now);
	history->misses_number[at] = history->newest;
	history->misses_ns[at] = now->taken_ns;
}

void stoup_top_history_add(struct stoup_top_history *history, uint64_t interval_ns,
	const struct stoup_watch *before, const struct stoup_watch *now)
{
	uint64_t mark_ns = interval_ns > STOUP_TOP_MARK_NS ? interval_ns : STOUP_TOP_MARK_NS;
	uint64_t number = now->taken_ns / mark_ns;
	struct stoup_top_mark *mark = &history->marks[number % STOUP_TOP_MARKS];

	if (history->mark_ns != mark_ns) {
		memset(history, 0, sizeof(*history));
		history->mark_ns = mark_ns;
	}
	if (mark->number != number) {
		memset(mark, 0, sizeof(*mark));
		mark->number = number;
	}
	history->newest = number;
	values_add(mark, before, now);
	misses_keep(history, now);
}

double stoup_top_history_value(
	const struct stoup_top_history *history, enum stoup_top_line line, uint32_t back)
{
	const struct stoup_top_mark *mark;

	if (history->mark_ns == 0 || back >= STOUP_TOP_MARKS || back > history->newest)
		return -1;
	mark = &history->marks[(history->newest - back) % STOUP_TOP_MARKS];
	if (mark->number != history->newest - back || mark->cnt[line] == 0)
		return -1;
	return mark->sum[line] / mark->cnt[line];
}

double stoup_top_history_misses(const struct stoup_top_history *history,
	const struct stoup_watch *now, struct stoup_watch_histogram *ret)
{
	const struct stoup_watch_histogram *all = misses_of(now), *then = NULL;
	uint64_t then_ns = now->taken_ns;

	memset(ret, 0, sizeof(*ret));
	if (!all)
		return 0;
	*ret = *all;
	for (uint32_t i = 0; i < STOUP_TOP_MISSES; i++) {
		uint64_t at = history->misses_ns[i];

		if (at == 0 || at >= then_ns || now->taken_ns - at > STOUP_TOP_RECENT_NS)
			continue;
		then = &history->misses[i];
		then_ns = at;
	}
	if (!then || then->count >= all->count ||
		memcmp(history->instance, now->instance, sizeof(now->instance)) != 0)
		return 0;
	ret->count = 0;
	for (uint32_t b = 0; b < STOUP_HISTOGRAM_BUCKETS; b++) {
		ret->buckets[b] =
			all->buckets[b] > then->buckets[b] ? all->buckets[b] - then->buckets[b] : 0;
		ret->count += ret->buckets[b];
	}
	return (double)(now->taken_ns - then_ns) / 1e9;
}

/* ---- sparklines ------------------------------------------------------------------------------- */

void stoup_top_spark(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t width,
	const struct stoup_top_history *history, enum stoup_top_line line)
{
	static const char ascii[] = "_.:-=+*#";
	double highest = line == STOUP_TOP_LINE_RATIO ? 1 : 0, value;

	for (uint32_t i = 0; i < width; i++) {
		value = stoup_top_history_value(history, line, i);
		if (value > highest)
			highest = value;
	}
	for (uint32_t i = 0; i < width; i++) {
		uint32_t level = 0;

		value = stoup_top_history_value(history, line, width - 1 - i);
		if (value < 0)
			continue;
		if (highest > 0)
			level = (uint32_t)(value / highest * 7 + 0.5);
		level = level > 7 ? 7 : level;
		stoup_top_glyph(screen, row, col + i,
			screen->utf8 ? 0x2581 + level : (uint32_t)ascii[level], STOUP_TOP_CYAN);
	}
}
