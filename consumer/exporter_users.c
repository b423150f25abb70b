/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_users.c - who uses a pool as metrics: each consumer, and what is leased of which series. */
#include <stdlib.h>
#include <string.h>
#include "consumer/exporter_metrics.h"

/* ---- consumers -------------------------------------------------------------------------------- */

#define VALUE(name, member)                                                                        \
	static uint64_t name(const struct stoup_watch_consumer *c)                                 \
	{                                                                                          \
		return c->member;                                                                  \
	}
VALUE(leases, lease_cnt)
VALUE(leased, leased_bytes)
VALUE(oldest, oldest_ns)
VALUE(waiting, waiting_cnt)
VALUE(page_tables, page_table_bytes)
VALUE(hits, hit_cnt)
VALUE(misses, miss_cnt)
VALUE(timeouts, timeout_cnt)
VALUE(records, record_cnt)
VALUE(wait_time, wait_ns)
VALUE(cells, cells_refused_cnt)
VALUE(bytes, bytes_refused_cnt)
VALUE(requests, requests_refused_cnt)

static const struct {
	struct stoup_metric metric;
	uint64_t (*value)(const struct stoup_watch_consumer *);
} rows[] = {
	{{"stoup_consumer_leases", "", STOUP_METRIC_GAUGE, "Blocks that it holds."}, leases},
	{{"stoup_consumer_leased_bytes", "bytes", STOUP_METRIC_GAUGE,
		 "Bytes of the blocks that it holds."},
		leased},
	{{"stoup_consumer_oldest_lease_seconds", "seconds", STOUP_METRIC_GAUGE,
		 "Age of what it holds longest; 0 = it holds nothing."},
		oldest},
	{{"stoup_consumer_waiting_requests", "", STOUP_METRIC_GAUGE, "Requests that it waits for."},
		waiting},
	{{"stoup_consumer_page_table_bytes", "bytes", STOUP_METRIC_GAUGE,
		 "Kernel memory to map its memory; 0 = not known."},
		page_tables},
	{{"stoup_consumer_hits", "", STOUP_METRIC_COUNTER,
		 "Blocks that it found in the pool by itself."},
		hits},
	{{"stoup_consumer_misses", "", STOUP_METRIC_COUNTER, "Blocks that it had to ask for."},
		misses},
	{{"stoup_consumer_timeouts", "", STOUP_METRIC_COUNTER,
		 "Requests that it gave up at their deadline."},
		timeouts},
	{{"stoup_consumer_records", "", STOUP_METRIC_COUNTER, "Records that it was handed out."},
		records},
	{{"stoup_consumer_wait_time_seconds", "seconds", STOUP_METRIC_COUNTER,
		 "Time that it spent waiting for blocks, summed over threads."},
		wait_time},
	{{"stoup_consumer_limit_cells", "", STOUP_METRIC_COUNTER,
		 "Times that it had no free lease cell (--cells)."},
		cells},
	{{"stoup_consumer_limit_share", "", STOUP_METRIC_COUNTER,
		 "Times that it held its share of the pool (--lease-bytes)."},
		bytes},
	{{"stoup_consumer_limit_requests", "", STOUP_METRIC_COUNTER,
		 "Times that it had as many requests in flight as it may (--requests)."},
		requests},
};

/* `consumer`, its place in the pool, keeps two attachments of one process apart. */
static void labels(struct stoup_metrics *to, const struct stoup_exporter_pool *pool,
	const struct stoup_watch_consumer *c)
{
	stoup_sample_label(to, "pool", pool->label);
	stoup_sample_label_number(to, "consumer", c->idx);
	stoup_sample_label_number(to, "pid", c->pid);
	stoup_sample_label_number(to, "uid", c->uid);
	stoup_sample_label(to, "command", c->command);
}

static void consumer_states(struct stoup_metrics *to, const struct stoup_exporter *exporter)
{
	static const struct stoup_metric metric = {"stoup_consumer_state", "", STOUP_METRIC_GAUGE,
		"1; the label tells: attached, deaf, forking, suspended or ended."};

	stoup_metric_head(to, &metric);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		const struct stoup_exporter_pool *pool = &exporter->pools[i];

		for (uint32_t c = 0; c < pool->watch.consumer_cnt; c++) {
			stoup_sample_begin(to, &metric, NULL);
			labels(to, pool, &pool->watch.consumers[c]);
			stoup_sample_label(
				to, "state", stoup_watch_consumer_word(&pool->watch.consumers[c]));
			stoup_sample_number(to, 1);
		}
	}
}

void stoup_metrics_consumers(struct stoup_metrics *to, const struct stoup_exporter *exporter)
{
	consumer_states(to, exporter);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		stoup_metric_head(to, &rows[r].metric);
		for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
			const struct stoup_exporter_pool *pool = &exporter->pools[i];

			for (uint32_t c = 0; c < pool->watch.consumer_cnt; c++) {
				const struct stoup_watch_consumer *one = &pool->watch.consumers[c];

				stoup_sample_begin(to, &rows[r].metric, NULL);
				labels(to, pool, one);
				stoup_sample_value(to, &rows[r].metric, rows[r].value(one));
			}
		}
	}
}

/* ---- series ----------------------------------------------------------------------------------- */

#define OTHER "other"

struct series {
	char *label; /* NULL: other */
	uint64_t leases, bytes, oldest_ns;
};

/* Of one pool: those shown, and the others at the end. */
struct series_list {
	struct series *at;
	uint32_t cnt, left_out;
};

static int by_label(const void *a, const void *b)
{
	const struct series *x = a, *y = b;

	return x->label && y->label ? strcmp(x->label, y->label) : !x->label - !y->label;
}

/* The most bytes first, what has no name last. */
static int by_bytes(const void *a, const void *b)
{
	const struct series *x = a, *y = b;

	if (!x->label != !y->label)
		return !x->label - !y->label;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return by_label(a, b);
}

static void add_up(struct series *to, const struct series *from)
{
	to->leases += from->leases;
	to->bytes += from->bytes;
	to->oldest_ns = from->oldest_ns > to->oldest_ns ? from->oldest_ns : to->oldest_ns;
}

/* Rows of equal labels become one. What has no name, or no memory for it, or is called as the rest is, has none. */
static void series_gather(const struct stoup_watch *watch, struct series_list *list)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < watch->holder_cnt; i++) {
		const struct stoup_watch_holder *h = &watch->holders[i];
		struct series *s = &list->at[list->cnt++];

		*s = (struct series){NULL, h->lease_cnt, h->bytes, h->oldest_ns};
		if (h->series[0] && strcmp(h->series, OTHER) != 0)
			s->label = stoup_label_utf8(h->series);
	}
	if (list->cnt > 1)
		qsort(list->at, list->cnt, sizeof(*list->at), by_label);
	for (uint32_t i = 0; i < list->cnt; i++) {
		if (kept > 0 && by_label(&list->at[kept - 1], &list->at[i]) == 0) {
			add_up(&list->at[kept - 1], &list->at[i]);
			free(list->at[i].label);
		} else {
			list->at[kept++] = list->at[i];
		}
	}
	list->cnt = kept;
}

/* At most `max` by name. */
static void series_cut(struct series_list *list, uint32_t max)
{
	struct series other = {NULL, 0, 0, 0};
	uint32_t kept = 0;
	int any = 0;

	if (list->cnt > 1)
		qsort(list->at, list->cnt, sizeof(*list->at), by_bytes);
	for (uint32_t i = 0; i < list->cnt; i++) {
		if (list->at[i].label && kept < max) {
			kept++;
			continue;
		}
		add_up(&other, &list->at[i]);
		list->left_out += list->at[i].label != NULL;
		free(list->at[i].label);
		any = 1;
	}
	if (any)
		list->at[kept++] = other;
	list->cnt = kept;
}

static const struct stoup_metric series_metrics[] = {
	{"stoup_series_leases", "", STOUP_METRIC_GAUGE,
		"Leases on blocks of the series, those of all consumers."},
	{"stoup_series_leased_bytes", "bytes", STOUP_METRIC_GAUGE,
		"Bytes of these blocks; a block that two consumers hold counts twice."},
	{"stoup_series_oldest_lease_seconds", "seconds", STOUP_METRIC_GAUGE,
		"Age of the oldest lease on the series."},
};

static void series_row(struct stoup_metrics *to, const struct stoup_exporter *exporter,
	const struct series_list *lists, uint32_t m)
{
	const struct stoup_metric *metric = &series_metrics[m];

	stoup_metric_head(to, metric);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++)
		for (uint32_t s = 0; s < lists[i].cnt; s++) {
			const struct series *one = &lists[i].at[s];

			stoup_sample_begin(to, metric, NULL);
			stoup_sample_label(to, "pool", exporter->pools[i].label);
			stoup_sample_label(to, "series", one->label ? one->label : OTHER);
			stoup_sample_value(to, metric,
				m == 0   ? one->leases
				: m == 1 ? one->bytes
					 : one->oldest_ns);
		}
}

static void series_left_out(struct stoup_metrics *to, const struct stoup_exporter *exporter,
	const struct series_list *lists)
{
	static const struct stoup_metric metric = {"stoup_series_left_out", "", STOUP_METRIC_GAUGE,
		"Series that are not shown by name but together as \"other\" (--series-max)."};

	stoup_metric_head(to, &metric);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		if (exporter->pools[i].rc < 0)
			continue;
		stoup_sample_begin(to, &metric, NULL);
		stoup_sample_label(to, "pool", exporter->pools[i].label);
		stoup_sample_number(to, lists[i].left_out);
	}
}

void stoup_metrics_series(struct stoup_metrics *to, const struct stoup_exporter *exporter)
{
	struct series_list *lists = calloc(exporter->pool_cnt + 1, sizeof(*lists));

	if (!lists)
		return;
	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		const struct stoup_watch *watch = &exporter->pools[i].watch;

		lists[i].at = calloc(watch->holder_cnt + 1, sizeof(*lists[i].at));
		if (!lists[i].at)
			continue;
		series_gather(watch, &lists[i]);
		series_cut(&lists[i], exporter->series_max);
	}
	for (uint32_t m = 0; m < 3; m++)
		series_row(to, exporter, lists, m);
	series_left_out(to, exporter, lists);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		for (uint32_t s = 0; lists[i].at && s < lists[i].cnt; s++)
			free(lists[i].at[s].label);
		free(lists[i].at);
	}
	free(lists);
}
