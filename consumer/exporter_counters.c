/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_counters.c - the counters and histograms of shm/counters.h and shm/histogram.h as metrics.
 *
 *      unit     kind     name in the table   metric
 *      bytes    C        read_bytes          stoup_read_bytes_total
 *      bytes    G        largest_free        stoup_largest_free_bytes
 *      ns       C        decode_ns           stoup_decode_time_seconds_total
 *      times    G        limit_bytes         stoup_limit_bytes_times    (not bytes: times)
 *      others   C, G     loads, volumes      stoup_loads_total, stoup_volumes
 *
 * `_time` keeps a sum of times apart from the histogram of the same name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "consumer/exporter_metrics.h"
#include "shm/counters.h"
#include "shm/histogram.h"

#define NAME_CAP 64u
/* Bounds of buckets: powers of two from 256 ns to 68.7 s. */
#define BOUND_FIRST 8u
#define BOUND_LAST  36u

/* ---- counters --------------------------------------------------------------------------------- */

static int ends(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* The metric of a counter; its name goes into `name`. */
static struct stoup_metric metric_of(
	const char *counter, const char *unit, char kind, const char *text, char name[NAME_CAP])
{
	struct stoup_metric metric = {
		name, "", kind == 'C' ? STOUP_METRIC_COUNTER : STOUP_METRIC_GAUGE, text};
	int len = (int)strlen(counter);

	if (strcmp(unit, "ns") == 0) {
		metric.unit = "seconds";
		snprintf(name, NAME_CAP, "stoup_%.*s_time_seconds",
			ends(counter, "_ns") ? len - 3 : len, counter);
	} else if (strcmp(unit, "bytes") == 0) {
		metric.unit = "bytes";
		snprintf(name, NAME_CAP, "stoup_%s%s", counter,
			ends(counter, "_bytes") ? "" : "_bytes");
	} else {
		snprintf(name, NAME_CAP, "stoup_%s%s", counter,
			kind == 'G' && strcmp(unit, "times") == 0 ? "_times" : "");
	}
	return metric;
}

void stoup_metrics_counters(struct stoup_metrics *to, const struct stoup_exporter *exporter)
{
	static const struct {
		const char *name, *unit;
		char kind;
		const char *text;
	} table[] = {
#define ROW(id, name, unit, kind, text) {name, unit, #kind[0], text},
		STOUP_COUNTERS(ROW)
#undef ROW
	};
	char name[NAME_CAP];

	for (uint32_t c = 0; c < STOUP_COUNTER_CNT; c++) {
		const struct stoup_metric metric =
			metric_of(table[c].name, table[c].unit, table[c].kind, table[c].text, name);

		stoup_metric_head(to, &metric);
		for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
			const struct stoup_exporter_pool *pool = &exporter->pools[i];

			if (pool->rc < 0 || c >= pool->watch.counter_cnt)
				continue;
			stoup_sample_begin(to, &metric, NULL);
			stoup_sample_label(to, "pool", pool->label);
			stoup_sample_value(to, &metric, pool->watch.counters[c].value);
		}
	}
}

/* ---- histograms ------------------------------------------------------------------------------- */

/* Never below the one before it, whatever the buckets hold. */
static uint64_t sum_capped(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void bucket(struct stoup_metrics *to, const struct stoup_metric *metric,
	const struct stoup_exporter_pool *pool, const char *bound, uint64_t value)
{
	stoup_sample_begin(to, metric, "_bucket");
	stoup_sample_label(to, "pool", pool->label);
	stoup_sample_label(to, "le", bound);
	stoup_sample_number(to, value);
}

/* Values are whole nanoseconds: those of the buckets below 2^k are at most 2^k - 1, which is the bound that is told. */
static void histogram(struct stoup_metrics *to, const struct stoup_metric *metric,
	const struct stoup_exporter_pool *pool, const struct stoup_watch_histogram *h)
{
	uint64_t cnt = 0;
	uint32_t idx = 0;
	char bound[32];

	for (uint32_t k = BOUND_FIRST; k <= BOUND_LAST; k++) {
		uint64_t high = UINT64_C(1) << k;

		for (; idx < stoup_histogram_bucket(high); idx++)
			cnt = sum_capped(cnt, h->buckets[idx]);
		snprintf(bound, sizeof(bound), "%.12g", (double)(high - 1) / 1e9);
		bucket(to, metric, pool, bound, cnt);
	}
	for (; idx < STOUP_HISTOGRAM_BUCKETS; idx++)
		cnt = sum_capped(cnt, h->buckets[idx]);
	bucket(to, metric, pool, "+Inf", cnt);
	stoup_sample_begin(to, metric, "_sum");
	stoup_sample_label(to, "pool", pool->label);
	stoup_sample_time(to, h->sum);
	stoup_sample_begin(to, metric, "_count");
	stoup_sample_label(to, "pool", pool->label);
	stoup_sample_number(to, cnt);
}

void stoup_metrics_histograms(struct stoup_metrics *to, const struct stoup_exporter *exporter)
{
	static const char *const table[][2] = {
#define ROW(id, name, unit, text) {"stoup_" name "_seconds", text},
		STOUP_HISTOGRAMS(ROW)
#undef ROW
	};

	for (uint32_t h = 0; h < STOUP_HISTOGRAM_CNT; h++) {
		const struct stoup_metric metric = {
			table[h][0], "seconds", STOUP_METRIC_HISTOGRAM, table[h][1]};

		stoup_metric_head(to, &metric);
		for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
			const struct stoup_exporter_pool *pool = &exporter->pools[i];

			if (pool->rc == 0 && h < pool->watch.histogram_cnt)
				histogram(to, &metric, pool, &pool->watch.histograms[h]);
		}
	}
}
