/* SPDX-License-Identifier: Apache-2.0 */
/* tool_stat_json.c - a look as JSON: the schema is docs/stat-json.md. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_stat.h"
#include "shm/format.h"
#include "shm/json.h"

static void text(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\": ", name);
	stoup_json_string(out, value);
}

static const char *holder_state(const struct stoup_watch_holder *h)
{
	return h->suspended                      ? "suspended"
	       : h->state == STOUP_CONSUMER_NONE ? "ended"
	                                         : stoup_watch_consumer_name(h->state);
}

static void consumers(FILE *out, const struct stoup_watch *watch)
{
	fprintf(out, ",\n\"consumers\": [");
	for (uint32_t i = 0; i < watch->consumer_cnt; i++) {
		const struct stoup_watch_consumer *c = &watch->consumers[i];

		fprintf(out, "%s\n  {\"consumer\": %u, \"pid\": %u, \"uid\": %u, ", i ? "," : "",
			c->idx, c->pid, c->uid);
		text(out, "command", c->command);
		fprintf(out,
			", \"state\": \"%s\", \"suspended\": %s, \"attached_ns\": %" PRIu64
			", \"leases\": %u, \"leased_bytes\": %" PRIu64
			", \"oldest_lease_ns\": %" PRIu64 ", \"waiting\": %u, \"hits\": %" PRIu64
			", \"misses\": %" PRIu64 ", \"timeouts\": %" PRIu64
			", \"wait_ns\": %" PRIu64 ", \"records\": %" PRIu64
			", \"page_table_bytes\": %" PRIu64
			", \"limit_cells\": %u, \"limit_bytes\": %u, \"limit_requests\": %u}",
			c->gone ? "ended" : stoup_watch_consumer_name(c->state),
			c->suspended ? "true" : "false", c->attached_ns, c->lease_cnt,
			c->leased_bytes, c->oldest_ns, c->waiting_cnt, c->hit_cnt, c->miss_cnt,
			c->timeout_cnt, c->wait_ns, c->record_cnt, c->page_table_bytes,
			c->cells_refused_cnt, c->bytes_refused_cnt, c->requests_refused_cnt);
	}
	fprintf(out, "\n]");
}

/* Those of `series`, or all where it is NULL. */
static void holders(FILE *out, const struct stoup_watch *watch, const char *series)
{
	const char *sep = "";

	fprintf(out, ",\n\"holders\": [");
	for (uint32_t i = 0; i < watch->holder_cnt; i++) {
		const struct stoup_watch_holder *h = &watch->holders[i];

		if (!stoup_stat_holds(h, series))
			continue;
		fprintf(out, "%s\n  {\"consumer\": %u, \"pid\": %u, ", sep, h->consumer_idx,
			h->pid);
		sep = ",";
		text(out, "command", h->command);
		fprintf(out, ", \"state\": \"%s\", ", holder_state(h));
		text(out, "series", h->series);
		fprintf(out,
			", \"series_in_block\": %u, \"leases\": %u, \"bytes\": %" PRIu64
			", \"oldest_lease_ns\": %" PRIu64 "}",
			h->shared_cnt, h->lease_cnt, h->bytes, h->oldest_ns);
	}
	fprintf(out, "\n]");
}

static void quotas(FILE *out, const struct stoup_watch *watch)
{
	fprintf(out, ",\n\"quotas\": [");
	for (uint32_t i = 0; i < watch->quota_cnt; i++) {
		const struct stoup_watch_quota *q = &watch->quotas[i];

		fprintf(out, "%s\n  {", i ? "," : "");
		text(out, "name", q->name);
		fprintf(out,
			", \"kind\": \"%s\", \"id\": %u, \"bytes_max\": %" PRIu64
			", \"leased_bytes\": %" PRIu64
			", \"consumers\": %u, \"waiting\": %u, \"limit_quota\": %" PRIu64 "}",
			q->kind == STOUP_QUOTA_USER ? "user" : "group", q->id, q->bytes_cap,
			q->leased_bytes, q->consumer_cnt, q->waiting_cnt, q->limit_cnt);
	}
	fprintf(out, "\n]");
}

static void volumes(FILE *out, const struct stoup_watch *watch)
{
	fprintf(out, ",\n\"volumes\": [");
	for (uint32_t i = 0; i < watch->volume_cnt; i++) {
		const struct stoup_watch_volume *v = &watch->volumes[i];

		fprintf(out, "%s\n  {", i ? "," : "");
		text(out, "path", v->path);
		fprintf(out,
			", \"state\": \"%s\", \"born\": %" PRIu64 ", \"retired\": %" PRIu64
			", \"blocks\": %u, \"series\": %u, \"records\": %" PRIu64
			", \"raw_bytes\": %" PRIu64 ", \"stored_bytes\": %" PRIu64 "}",
			stoup_watch_volume_name(v->state), v->born_seq, v->retired_seq,
			v->block_cnt, v->series_cnt, v->record_cnt, v->raw_len, v->stored_len);
	}
	fprintf(out, "\n]");
}

static void counters(FILE *out, const struct stoup_watch *watch)
{
	const char *sep = "";

	fprintf(out, ",\n\"counters\": {");
	for (uint32_t i = 0; i < watch->counter_cnt; i++) {
		fprintf(out, "%s\n  ", sep);
		sep = ",";
		stoup_json_string(out, watch->counters[i].name);
		fprintf(out, ": %" PRIu64, watch->counters[i].value);
	}
	fprintf(out, "\n}");
}

static void histograms(FILE *out, const struct stoup_watch *watch)
{
	fprintf(out, ",\n\"histograms\": {");
	for (uint32_t i = 0; i < watch->histogram_cnt; i++) {
		const struct stoup_watch_histogram *h = &watch->histograms[i];

		fprintf(out, "%s\n  ", i ? "," : "");
		stoup_json_string(out, h->name);
		fprintf(out, ": {");
		text(out, "unit", h->unit);
		fprintf(out,
			", \"count\": %" PRIu64 ", \"sum\": %" PRIu64 ", \"p50\": %" PRIu64
			", \"p90\": %" PRIu64 ", \"p99\": %" PRIu64 ", \"p999\": %" PRIu64
			", \"max\": %" PRIu64 "}",
			h->count, h->sum, stoup_watch_quantile(h, 0.5),
			stoup_watch_quantile(h, 0.9), stoup_watch_quantile(h, 0.99),
			stoup_watch_quantile(h, 0.999), h->max);
	}
	fprintf(out, "\n}");
}

static void errors(FILE *out, const struct stoup_watch *watch)
{
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];

	fprintf(out, ",\n\"errors\": [");
	for (uint32_t i = 0; i < watch->error_cnt; i++) {
		const struct stoup_watch_error *e = &watch->errors[i];

		stoup_format_time(e->first_ns, first);
		stoup_format_time(e->last_ns, last);
		fprintf(out,
			"%s\n  {\"count\": %" PRIu64
			", \"code\": %d, \"first\": \"%s\", \"last\": \"%s\", ",
			i ? "," : "", e->count, e->code, first, last);
		text(out, "text", e->text);
		fprintf(out, "}");
	}
	fprintf(out, "\n]");
}

/* Who it is and how it is: all forms begin so. */
static void head(FILE *out, const struct stoup_watch *watch)
{
	char problem[512];

	fprintf(out, "{");
	text(out, "pool", watch->pool_name);
	fprintf(out, ", ");
	text(out, "state", stoup_watch_state_name(watch->state));
	fprintf(out, ", ");
	text(out, "problem", stoup_watch_state_text(watch, problem, sizeof(problem)));
	fprintf(out, ", \"pid\": %u, \"uid\": %u, ", watch->daemon_pid, watch->uid);
	text(out, "version", watch->version);
	fprintf(out, ", \"heartbeat_age_ns\": %" PRIu64 ", \"uptime_ns\": %" PRIu64,
		watch->heartbeat_ns, watch->uptime_ns);
}

static void pool(FILE *out, const struct stoup_watch *watch)
{
	fprintf(out, ", ");
	text(out, "store", watch->store_path);
	fprintf(out, ",\n\"size\": %" PRIu64 ", ", watch->data_len);
	text(out, "backing", watch->backing);
	fprintf(out, ", \"page_bytes\": %" PRIu64 ", \"huge_bytes\": %" PRIu64 ", ",
		watch->page_len, watch->huge_len);
	text(out, "huge_reason", watch->huge_reason);
	fprintf(out, ", \"locked_bytes\": %" PRIu64 ", ", watch->locked_len);
	text(out, "lock_reason", watch->lock_reason);
	fprintf(out, ",\n");
	text(out, "reader", watch->reader_kind);
	fprintf(out, ", ");
	text(out, "reader_reason", watch->reader_reason);
	fprintf(out, ", \"reader_depth\": %u, \"decode_threads\": %u, \"spin_ns\": %" PRIu64 ", ",
		watch->reader_depth, watch->decode_threads, watch->spin_ns);
	text(out, "decode_cpus", watch->decode_cpus);
	fprintf(out,
		",\n\"block_len_max\": %u, \"lease_bytes_max\": %" PRIu64
		", \"pin_bytes_max\": %" PRIu64
		", \"consumers_max\": %u, \"cells_max\": %u, \"requests_max\": %u",
		watch->block_len_max, watch->lease_bytes_cap, watch->pin_bytes_cap,
		watch->consumer_cap, watch->cell_cap, watch->request_cap);
}

static void whole(FILE *out, const struct stoup_watch *watch)
{
	head(out, watch);
	pool(out, watch);
	consumers(out, watch);
	holders(out, watch, NULL);
	quotas(out, watch);
	volumes(out, watch);
	counters(out, watch);
	histograms(out, watch);
	errors(out, watch);
	fprintf(out, "\n}\n");
}

void stoup_stat_json(FILE *out, const struct stoup_watch *watch, int line)
{
	char *bytes = NULL;
	size_t len = 0;
	FILE *memory = line ? open_memstream(&bytes, &len) : NULL;

	if (!memory) {
		whole(out, watch);
		return;
	}
	whole(memory, watch);
	fclose(memory);
	/* No string of JSON holds a line's end as it is. */
	for (size_t i = 0; i + 1 < len; i++)
		if (bytes[i] == '\n')
			bytes[i] = ' ';
	fwrite(bytes, 1, len, out);
	free(bytes);
}

void stoup_stat_json_holders(FILE *out, const struct stoup_watch *watch, const char *series)
{
	head(out, watch);
	fprintf(out, ", \"leases\": %" PRIu64 ", \"leased_bytes\": %" PRIu64, watch->sums.leases,
		watch->sums.leased_bytes);
	holders(out, watch, series);
	fprintf(out, "\n}\n");
}

void stoup_stat_json_log(FILE *out, const struct stoup_watch *watch)
{
	head(out, watch);
	errors(out, watch);
	fprintf(out, "\n}\n");
}
