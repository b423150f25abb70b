/* SPDX-License-Identifier: Apache-2.0 */
/* tool_stat.c - a look in words: state, use, limits met, consumers, errors; counters and histograms as tables. */
#include "consumer/tool_stat.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "shm/format.h"

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

const char *stoup_stat_time(uint64_t ns, char dst[STOUP_STAT_TIME_CAP])
{
	static const struct {
		double from, unit;
		const char *name;
	} units[] = {{3.6e12, 3.6e12, "h"}, {1e9, 1e9, "s"}, {1e6, 1e6, "ms"}, {1e3, 1e3, "us"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if ((double)ns >= units[i].from) {
			snprintf(dst, STOUP_STAT_TIME_CAP, "%.1f %s", (double)ns / units[i].unit,
				units[i].name);
			return dst;
		}
	snprintf(dst, STOUP_STAT_TIME_CAP, "%u ns", (unsigned int)ns);
	return dst;
}

int stoup_stat_holds(const struct stoup_watch_holder *holder, const char *series)
{
	if (!series || strcmp(holder->series, series) == 0)
		return 1;
	if (strpbrk(series, "*?[") && fnmatch(series, holder->series, 0) == 0)
		return 1;
	return holder->shared_cnt > 1 || holder->series[0] == 0 ? 2 : 0;
}

/* ---- state and use ---------------------------------------------------------------------------- */

void stoup_stat_words_state(FILE *out, const struct stoup_watch *watch)
{
	char problem[512];

	fprintf(out, "pool %s: %s (pid %u, version %s), store %s\n", watch->pool_name,
		stoup_watch_state_name(watch->state), watch->daemon_pid, watch->version,
		watch->store_path);
	stoup_watch_state_text(watch, problem, sizeof(problem));
	if (problem[0])
		fprintf(out, "  %s\n", problem);
}

static void print_summary(FILE *out, const struct stoup_watch *w)
{
	const uint64_t hits = stoup_watch_value(w, STOUP_COUNTER_HITS),
		       misses = stoup_watch_value(w, STOUP_COUNTER_MISSES);

	fprintf(out,
		"  size %.1f MiB (%s, pages of %" PRIu64
		" KiB, %.1f in 2 MiB pages%s%s%s): %.1f used by %" PRIu64 " block%s, %.1f leased\n",
		mib(w->data_len), w->backing, w->page_len / 1024, mib(w->huge_len),
		w->huge_reason[0] ? ": " : "", w->huge_reason, w->locked_len ? ", locked" : "",
		mib(stoup_watch_value(w, STOUP_COUNTER_RESIDENT_BYTES)),
		stoup_watch_value(w, STOUP_COUNTER_RESIDENT_BLOCKS),
		STOUP_PLURAL(stoup_watch_value(w, STOUP_COUNTER_RESIDENT_BLOCKS)),
		mib(stoup_watch_value(w, STOUP_COUNTER_LEASED_BYTES)));
	fprintf(out,
		"  loads %" PRIu64 " (%" PRIu64 " different block%s, each at most %" PRIu64
		" time%s), evictions %" PRIu64 ", errors %" PRIu64 "\n",
		stoup_watch_value(w, STOUP_COUNTER_LOADS),
		stoup_watch_value(w, STOUP_COUNTER_LOADS_DISTINCT),
		STOUP_PLURAL(stoup_watch_value(w, STOUP_COUNTER_LOADS_DISTINCT)),
		stoup_watch_value(w, STOUP_COUNTER_LOADS_MAX),
		STOUP_PLURAL(stoup_watch_value(w, STOUP_COUNTER_LOADS_MAX)),
		stoup_watch_value(w, STOUP_COUNTER_EVICTIONS),
		stoup_watch_value(w, STOUP_COUNTER_ERRORS));
	fprintf(out,
		"  consumers %" PRIu64 " now, %" PRIu64 " waiting; blocks of all so far: %" PRIu64
		" found in the pool, %" PRIu64 " asked for",
		stoup_watch_value(w, STOUP_COUNTER_CONSUMERS), w->sums.waiting, hits, misses);
	if (hits + misses > 0)
		fprintf(out, " (%.2f%% hits)", 100 * stoup_watch_ratio(hits, misses));
	fprintf(out, "; starved %" PRIu64 "\n", stoup_watch_value(w, STOUP_COUNTER_STARVED_FAILED));
	fprintf(out,
		"  reads by %s, depth %u; %u decode thread%s%s%s; blocks of at most %.1f MiB; at most %.1f MiB held by "
		"one consumer\n",
		w->reader_kind, w->reader_depth, w->decode_threads, STOUP_PLURAL(w->decode_threads),
		w->decode_cpus[0] ? " on processors " : "", w->decode_cpus, mib(w->block_len_max),
		mib(w->lease_bytes_cap));
	if (stoup_watch_value(w, STOUP_COUNTER_PINS) > 0)
		fprintf(out,
			"  pins: %" PRIu64 ", which keep %" PRIu64
			" block%s (%.1f MiB) in the pool; %.1f of at most %.1f MiB are pinned\n",
			stoup_watch_value(w, STOUP_COUNTER_PINS),
			stoup_watch_value(w, STOUP_COUNTER_PINNED_BLOCKS),
			STOUP_PLURAL(stoup_watch_value(w, STOUP_COUNTER_PINNED_BLOCKS)),
			mib(stoup_watch_value(w, STOUP_COUNTER_PINNED_BYTES)),
			mib(stoup_watch_value(w, STOUP_COUNTER_PIN_BYTES)), mib(w->pin_bytes_cap));
	if (w->spin_ns > 0)
		fprintf(out, "  the conductor polls for %.1f us before it sleeps\n",
			(double)w->spin_ns / 1e3);
	if (strcmp(w->reader_kind, "io_uring") != 0)
		fprintf(out, "  not io_uring: %s\n", w->reader_reason);
}

/* Only where somebody met one: which, how often, and the option that raises it. */
static void print_limits(FILE *out, const struct stoup_watch *w)
{
	const struct {
		enum stoup_counter id;
		const char *what, *option;
		uint64_t value;
	} limits[] = {{STOUP_COUNTER_LIMIT_CONSUMERS, "consumers", "--consumers", w->consumer_cap},
		{STOUP_COUNTER_LIMIT_CELLS, "leases of one consumer", "--cells", w->cell_cap},
		{STOUP_COUNTER_LIMIT_BYTES, "bytes held by one consumer", "--lease-bytes",
			w->lease_bytes_cap},
		{STOUP_COUNTER_LIMIT_REQUESTS, "requests of one consumer", "--requests",
			w->request_cap}};

	for (uint32_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (stoup_watch_value(w, limits[i].id) > 0)
			fprintf(out,
				"  limit met %" PRIu64 " time%s: %s, %" PRIu64 " (stoupd %s)\n",
				stoup_watch_value(w, limits[i].id),
				STOUP_PLURAL(stoup_watch_value(w, limits[i].id)), limits[i].what,
				limits[i].value, limits[i].option);
}

static void print_quotas(FILE *out, const struct stoup_watch *w)
{
	for (uint32_t i = 0; i < w->quota_cnt; i++) {
		const struct stoup_watch_quota *q = &w->quotas[i];

		fprintf(out,
			"  quota of %s%s: %.1f of %.1f MiB leased by %u consumer%s, requests that wait: %u, that found it "
			"used up: %" PRIu64 "\n",
			strncmp(q->name, "user:", 5) == 0 || strncmp(q->name, "group:", 6) == 0
				? ""
				: "group ",
			q->name, mib(q->leased_bytes), mib(q->bytes_cap), q->consumer_cnt,
			STOUP_PLURAL(q->consumer_cnt), q->waiting_cnt, q->limit_cnt);
	}
}

static void print_consumers(FILE *out, const struct stoup_watch *w)
{
	for (uint32_t i = 0; i < w->consumer_cnt; i++) {
		const struct stoup_watch_consumer *c = &w->consumers[i];

		if (i == 0)
			fprintf(out, "\n%8s %-16s %-9s %7s %12s %10s %8s %12s %10s %14s %10s\n",
				"pid", "command", "state", "leases", "held bytes", "oldest s",
				"waiting", "hits", "misses", "records", "tables KiB");
		fprintf(out,
			"%8u %-16s %-9s %7u %12" PRIu64 " %10.1f %8u %12" PRIu64 " %10" PRIu64
			" %14" PRIu64 " %10" PRIu64 "\n",
			c->pid, c->command, stoup_watch_consumer_word(c), c->lease_cnt,
			c->leased_bytes, (double)c->oldest_ns / 1e9, c->waiting_cnt, c->hit_cnt,
			c->miss_cnt, c->record_cnt, c->page_table_bytes / 1024);
	}
	/* Which of them met their limits. */
	for (uint32_t i = 0; i < w->consumer_cnt; i++) {
		const struct stoup_watch_consumer *c = &w->consumers[i];

		if ((c->cells_refused_cnt | c->bytes_refused_cnt | c->requests_refused_cnt) != 0)
			fprintf(out,
				"%8u met its limits, of leases: %u, of bytes: %u, of requests: %u times\n",
				c->pid, c->cells_refused_cnt, c->bytes_refused_cnt,
				c->requests_refused_cnt);
	}
}

void stoup_stat_words_errors(FILE *out, const struct stoup_watch *watch)
{
	char last[STOUP_FORMAT_CAP];

	for (uint32_t i = 0; i < watch->error_cnt; i++) {
		stoup_format_time(watch->errors[i].last_ns, last);
		fprintf(out, "\nerror, %" PRIu64 " time%s, last %s\n  %s\n", watch->errors[i].count,
			STOUP_PLURAL(watch->errors[i].count), last, watch->errors[i].text);
	}
}

void stoup_stat_words(FILE *out, const struct stoup_watch *watch)
{
	stoup_stat_words_state(out, watch);
	print_summary(out, watch);
	print_limits(out, watch);
	print_quotas(out, watch);
	print_consumers(out, watch);
}

/* ---- tables ----------------------------------------------------------------------------------- */

void stoup_stat_words_counters(FILE *out, const struct stoup_watch *watch)
{
	fprintf(out, "\nreads by %s: %s\n\n", watch->reader_kind, watch->reader_reason);
	for (uint32_t i = 0; i < watch->counter_cnt; i++) {
		const struct stoup_watch_counter *c = &watch->counters[i];

		fprintf(out, "%-20s %16" PRIu64 " %-10s %s\n", c->name, c->value, c->unit, c->text);
	}
}

void stoup_stat_words_histograms(FILE *out, const struct stoup_watch *watch)
{
	static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
	char time[STOUP_STAT_TIME_CAP];

	if (watch->histogram_cnt == 0) {
		fprintf(out, "\nthis daemon keeps no histograms: it is of an older release\n");
		return;
	}
	fprintf(out, "\n%-14s %12s %10s %10s %10s %10s %10s %10s\n", "time", "count", "mean", "p50",
		"p90", "p99", "p99.9", "max");
	for (uint32_t i = 0; i < watch->histogram_cnt; i++) {
		const struct stoup_watch_histogram *h = &watch->histograms[i];

		fprintf(out, "%-14s %12" PRIu64 " %10s", h->name, h->count,
			stoup_stat_time(h->count ? h->sum / h->count : 0, time));
		for (size_t q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++)
			fprintf(out, " %10s",
				stoup_stat_time(stoup_watch_quantile(h, quantiles[q]), time));
		fprintf(out, " %10s\n", stoup_stat_time(h->max, time));
	}
	fprintf(out, "\n");
	for (uint32_t i = 0; i < watch->histogram_cnt; i++)
		fprintf(out, "%-14s %s\n", watch->histograms[i].name, watch->histograms[i].text);
}

static double rate(
	const struct stoup_watch *before, const struct stoup_watch *now, enum stoup_counter id)
{
	return stoup_watch_rate(before, now, id);
}

void stoup_stat_words_rates(
	FILE *out, const struct stoup_watch *before, const struct stoup_watch *now, int head)
{
	uint64_t hits = stoup_watch_value(now, STOUP_COUNTER_HITS),
		 misses = stoup_watch_value(now, STOUP_COUNTER_MISSES), old_hits, old_misses;
	time_t wall = time(NULL);
	struct tm tm;
	double ratio;
	char clock[16] = "";

	if (localtime_r(&wall, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (head)
		fprintf(out, "%-8s %-9s %5s %7s %9s %9s %6s %10s %9s %9s %9s %7s %7s %6s\n", "time",
			"state", "users", "leases", "held MiB", "used MiB", "hits%", "hits/s",
			"loads/s", "dec MiB/s", "read MiB/s", "evict/s", "waiting", "errors");
	old_hits = stoup_watch_seconds(before, now) > 0
	                   ? stoup_watch_value(before, STOUP_COUNTER_HITS)
	                   : 0;
	old_misses = stoup_watch_seconds(before, now) > 0
	                     ? stoup_watch_value(before, STOUP_COUNTER_MISSES)
	                     : 0;
	ratio = hits >= old_hits && misses >= old_misses
	                ? stoup_watch_ratio(hits - old_hits, misses - old_misses)
	                : -1;
	fprintf(out, "%-8s %-9s %5u %7" PRIu64 " %9.1f %9.1f ", clock,
		stoup_watch_state_name(now->state), now->consumer_cnt,
		stoup_watch_value(now, STOUP_COUNTER_LEASES),
		mib(stoup_watch_value(now, STOUP_COUNTER_LEASED_BYTES)),
		mib(stoup_watch_value(now, STOUP_COUNTER_RESIDENT_BYTES)));
	if (ratio < 0)
		fprintf(out, "%6s", "-");
	else
		fprintf(out, "%6.2f", 100 * ratio);
	fprintf(out, " %10.0f %9.0f %9.1f %10.1f %7.0f %7" PRIu64 " %6" PRIu64 "\n",
		rate(before, now, STOUP_COUNTER_HITS), rate(before, now, STOUP_COUNTER_LOADS),
		rate(before, now, STOUP_COUNTER_LOAD_RAW_BYTES) / (1 << 20),
		rate(before, now, STOUP_COUNTER_READ_BYTES) / (1 << 20),
		rate(before, now, STOUP_COUNTER_EVICTIONS), now->sums.waiting,
		stoup_watch_value(now, STOUP_COUNTER_ERRORS));
}
