/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_metrics.c - /metrics: states, what a look shows of a pool as a whole, and the exporter itself. */
#include "consumer/exporter_metrics.h"

#include <errno.h>
#include <string.h>
#include "shm/control.h"

#ifndef STOUP_VERSION
#define STOUP_VERSION "0.1.0"
#endif

/* ---- states ----------------------------------------------------------------------------------- */

static void states(struct stoup_metrics *to, const struct stoup_exporter *exporter)
{
	static const struct stoup_metric up = {"stoup_up", "", STOUP_METRIC_GAUGE,
		"1 = the pool's daemon runs and its heartbeat is at most 3 s old."};
	static const struct stoup_metric state = {"stoup_pool_state", "", STOUP_METRIC_GAUGE,
		"1 for the state that the pool is in, 0 for each other one."};
	const char *name;

	stoup_metric_head(to, &up);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		const struct stoup_exporter_pool *pool = &exporter->pools[i];

		stoup_sample_begin(to, &up, NULL);
		stoup_sample_label(to, "pool", pool->label);
		stoup_sample_number(to, pool->rc == 0 && pool->watch.state == STOUP_WATCH_RUNNING);
	}
	stoup_metric_head(to, &state);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		const struct stoup_exporter_pool *pool = &exporter->pools[i];

		for (uint32_t s = 0; (name = stoup_exporter_state_name(s)) != NULL; s++) {
			stoup_sample_begin(to, &state, NULL);
			stoup_sample_label(to, "pool", pool->label);
			stoup_sample_label(to, "state", name);
			stoup_sample_number(to, strcmp(name, stoup_exporter_state(pool)) == 0);
		}
	}
}

static void info(struct stoup_metrics *to, const struct stoup_exporter *exporter)
{
	static const struct stoup_metric metric = {"stoup_pool_info", "", STOUP_METRIC_GAUGE,
		"1; the labels tell the daemon's version, its memory and how it reads."};

	stoup_metric_head(to, &metric);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		const struct stoup_exporter_pool *pool = &exporter->pools[i];

		if (pool->rc < 0)
			continue;
		stoup_sample_begin(to, &metric, NULL);
		stoup_sample_label(to, "pool", pool->label);
		stoup_sample_label(to, "version", pool->watch.version);
		stoup_sample_label(to, "backing", pool->watch.backing);
		stoup_sample_label(to, "reader", pool->watch.reader_kind);
		stoup_sample_label(to, "store", pool->watch.store_path);
		stoup_sample_number(to, 1);
	}
}

/* ---- gauges of a pool -------------------------------------------------------------------------- */

static uint64_t served_sum(
	const struct stoup_watch *w, uint64_t (*of)(const struct stoup_watch_volume *))
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->volume_cnt; i++)
		if (w->volumes[i].state == STOUP_VOLUME_SERVED)
			sum += of(&w->volumes[i]);
	return sum;
}

#define VALUE(name, expression)                                                                    \
	static uint64_t name(const struct stoup_watch *w)                                          \
	{                                                                                          \
		return expression;                                                                 \
	}
#define SERVED(name, member)                                                                       \
	static uint64_t volume_##name(const struct stoup_watch_volume *v)                          \
	{                                                                                          \
		return v->member;                                                                  \
	}                                                                                          \
	VALUE(name, served_sum(w, volume_##name))

VALUE(heartbeat, w->heartbeat_ns)
VALUE(uptime, w->uptime_ns)
VALUE(pool_len, w->data_len)
VALUE(huge, w->huge_len)
VALUE(locked, w->locked_len)
VALUE(lease_cap, w->lease_bytes_cap)
VALUE(consumer_cap, w->consumer_cap)
VALUE(oldest, w->sums.oldest_ns)
VALUE(waiting, w->sums.waiting)
SERVED(served_records, record_cnt)
SERVED(served_raw, raw_len)
SERVED(served_stored, stored_len)

static const struct {
	struct stoup_metric metric;
	uint64_t (*value)(const struct stoup_watch *);
} gauges[] = {
	{{"stoup_heartbeat_age_seconds", "seconds", STOUP_METRIC_GAUGE,
		 "Age of the daemon's last heartbeat; it gives one at least each second."},
		heartbeat},
	{{"stoup_uptime_seconds", "seconds", STOUP_METRIC_GAUGE,
		 "Time since the daemon was started."},
		uptime},
	{{"stoup_pool_size_bytes", "bytes", STOUP_METRIC_GAUGE, "Bytes of the pool."}, pool_len},
	{{"stoup_pool_huge_bytes", "bytes", STOUP_METRIC_GAUGE, "Bytes of it in pages of 2 MiB."},
		huge},
	{{"stoup_pool_locked_bytes", "bytes", STOUP_METRIC_GAUGE, "Bytes of it locked in memory."},
		locked},
	{{"stoup_lease_limit_bytes", "bytes", STOUP_METRIC_GAUGE,
		 "Bytes that one consumer may hold."},
		lease_cap},
	{{"stoup_consumer_places", "", STOUP_METRIC_GAUGE,
		 "Consumers that the pool has places for."},
		consumer_cap},
	{{"stoup_oldest_lease_seconds", "seconds", STOUP_METRIC_GAUGE,
		 "Age of the oldest lease of all consumers; 0 = nothing is held."},
		oldest},
	{{"stoup_waiting_requests", "", STOUP_METRIC_GAUGE,
		 "Requests that consumers attached now wait for."},
		waiting},
	{{"stoup_served_records", "", STOUP_METRIC_GAUGE,
		 "Records of the volumes that are served."},
		served_records},
	{{"stoup_served_raw_bytes", "bytes", STOUP_METRIC_GAUGE,
		 "Bytes of the volumes that are served, decoded."},
		served_raw},
	{{"stoup_served_stored_bytes", "bytes", STOUP_METRIC_GAUGE,
		 "Bytes of the volumes that are served, as stored."},
		served_stored},
};

static void pool_gauges(struct stoup_metrics *to, const struct stoup_exporter *exporter)
{
	for (size_t g = 0; g < sizeof(gauges) / sizeof(gauges[0]); g++) {
		stoup_metric_head(to, &gauges[g].metric);
		for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
			const struct stoup_exporter_pool *pool = &exporter->pools[i];

			if (pool->rc < 0)
				continue;
			stoup_sample_begin(to, &gauges[g].metric, NULL);
			stoup_sample_label(to, "pool", pool->label);
			stoup_sample_value(to, &gauges[g].metric, gauges[g].value(&pool->watch));
		}
	}
}

/* ---- the exporter ------------------------------------------------------------------------------ */

static void own(struct stoup_metrics *to, const struct stoup_exporter *exporter)
{
	static const struct stoup_metric build = {"stoup_build_info", "", STOUP_METRIC_GAUGE,
		"1; the label tells the exporter's version."};
	static const struct {
		struct stoup_metric metric;
	} rows[] = {
		{{"stoup_exporter_pools", "", STOUP_METRIC_GAUGE, "Pools that are shown."}},
		{{"stoup_exporter_pools_left_out", "", STOUP_METRIC_GAUGE,
			"Pools that were found and are not shown: more than 256."}},
		{{"stoup_exporter_look_seconds", "seconds", STOUP_METRIC_GAUGE,
			"Time that looking at all pools took."}},
		{{"stoup_exporter_looks", "", STOUP_METRIC_COUNTER,
			"Looks since the exporter was started."}},
	};
	const uint64_t values[] = {
		exporter->pool_cnt, exporter->left_out, exporter->look_ns, exporter->look_total};

	stoup_metric_head(to, &build);
	stoup_sample_begin(to, &build, NULL);
	stoup_sample_label(to, "version", STOUP_VERSION);
	stoup_sample_number(to, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		stoup_metric_head(to, &rows[i].metric);
		stoup_sample_begin(to, &rows[i].metric, NULL);
		stoup_sample_value(to, &rows[i].metric, values[i]);
	}
}

void stoup_exporter_metrics(const struct stoup_exporter *exporter, FILE *out, int open)
{
	struct stoup_metrics to = {.out = out, .open = open};

	states(&to, exporter);
	info(&to, exporter);
	pool_gauges(&to, exporter);
	stoup_metrics_counters(&to, exporter);
	stoup_metrics_histograms(&to, exporter);
	if (exporter->consumers)
		stoup_metrics_consumers(&to, exporter);
	stoup_metrics_series(&to, exporter);
	own(&to, exporter);
	stoup_metrics_end(&to);
}
