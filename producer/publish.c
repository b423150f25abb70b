/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - what monitors see: gauges, consumers, heartbeat, the error log.
 *
 * All of it is written by the conductor into the control object, several times a second; a monitor
 * reads it without asking anybody.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include "shm/clock.h"

#define PATH_TEXT_CAP 100u
#define PEER_SLOT_CNT 16u /* of the log: for what peers bring about */

uint64_t stoup_now_ns(void)
{
	return stoup_clock_ns();
}

static int64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- the error log ---------------------------------------------------------------------------- */

/* Of the slots from `first` to before `end`: that of this text, else an empty one, else the one that was quiet
 * longest. */
static uint32_t error_slot(
	const struct stoup_daemon *d, const char *text, uint32_t first, uint32_t end)
{
	const struct stoup_control_error *log = stoup_control_errors(d->control);
	uint32_t best = first;

	for (uint32_t i = first; i < end; i++) {
		if (log[i].count == 0 || strcmp(log[i].text, text) == 0)
			return i;
		if (log[i].last_ns < log[best].last_ns)
			best = i;
	}
	return best;
}

const char *stoup_path_tail(const char *path)
{
	size_t len = strlen(path);

	return len <= PATH_TEXT_CAP ? path : path + len - PATH_TEXT_CAP;
}

/* Count an error in slot idx. 1 = it is new, or was quiet for a second: worth a line. */
static int error_note(struct stoup_daemon *d, uint32_t idx, int code, const char *text)
{
	struct stoup_control_error *slot = &stoup_control_errors(d->control)[idx];
	int64_t now = wall_ns(), quiet_ns;
	uint32_t seq;
	int fresh;

	fresh = slot->count == 0 || strcmp(slot->text, text) != 0;
	quiet_ns = fresh ? INT64_MAX : now - slot->last_ns;
	/* [K1] odd while in work; readers that saw it odd, or another number afterwards, copy again. */
	seq = atomic_load_explicit(&slot->seq, memory_order_relaxed);
	atomic_store_explicit(&slot->seq, seq | 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	if (fresh) {
		memcpy(slot->text, text, sizeof(slot->text));
		slot->count = 0;
		slot->first_ns = now;
	}
	slot->code = code;
	slot->count++;
	slot->last_ns = now;
	atomic_store_explicit(&slot->seq, (seq | 1) + 1, memory_order_release);
	stoup_counter_add(d, STOUP_COUNTER_ERRORS, 1);
	/* Below 0: the wall clock was set back. */
	return quiet_ns > 1000000000 || quiet_ns < 0;
}

uint64_t stoup_log_error(struct stoup_daemon *d, int code, const char *fmt, ...)
{
	char text[STOUP_ERROR_TEXT_CAP] = {0};
	uint32_t idx;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!d->control) {
		stoup_log_line(d->log, STOUP_LOG_ERROR, stoup_now_ns(), text);
		return 0;
	}
	idx = error_slot(d, text, 0, STOUP_ERROR_CAP - PEER_SLOT_CNT);
	if (error_note(d, idx, code, text))
		stoup_log_line(d->log, STOUP_LOG_ERROR, stoup_now_ns(), text);
	return (uint64_t)idx + 1;
}

uint64_t stoup_log_peer(struct stoup_daemon *d, int code, const char *fmt, ...)
{
	char text[STOUP_ERROR_TEXT_CAP] = {0};
	uint32_t idx;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	idx = error_slot(d, text, STOUP_ERROR_CAP - PEER_SLOT_CNT, STOUP_ERROR_CAP);
	if (error_note(d, idx, code, text))
		stoup_log_line(d->log, STOUP_LOG_WARNING, stoup_now_ns(), text);
	return (uint64_t)idx + 1;
}

void stoup_log_info(const struct stoup_daemon *d, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (d->log->level < STOUP_LOG_INFO)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	stoup_log_line(d->log, STOUP_LOG_INFO, stoup_now_ns(), text);
}

void stoup_log_debug(const struct stoup_daemon *d, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (d->log->level < STOUP_LOG_DEBUG)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	stoup_log_line(d->log, STOUP_LOG_DEBUG, stoup_now_ns(), text);
}

/* ---- gauges ----------------------------------------------------------------------------------- */

static void publish_buffers(struct stoup_daemon *d)
{
	uint64_t leases = 0, leased = 0, blocks = 0, bytes = 0;
	struct stoup_ring_extent extent;

	for (uint32_t i = 0; i < d->buffer_cap; i++) {
		const struct stoup_buffer *b = &d->buffers[i];
		uint32_t len;

		if (b->state < STOUP_BUFFER_RESIDENT)
			continue;
		len = atomic_load_explicit(&d->table[i].len, memory_order_relaxed);
		blocks++;
		bytes += len;
		leases += d->refs[i];
		leased += d->refs[i] ? len : 0;
		atomic_store_explicit(&d->table[i].refs, d->refs[i], memory_order_relaxed);
		if (stoup_ring_buffer(d->ring, i, &extent) == 0)
			atomic_store_explicit(
				&d->table[i].used_cnt, extent.used_cnt, memory_order_relaxed);
	}
	stoup_gauge(d, STOUP_COUNTER_LEASES, leases);
	stoup_gauge(d, STOUP_COUNTER_LEASED_BYTES, leased);
	stoup_gauge(d, STOUP_COUNTER_RESIDENT_BLOCKS, blocks);
	stoup_gauge(d, STOUP_COUNTER_RESIDENT_BYTES, bytes);
}

/* A page counts what it likes: so much of it is believed. */
static uint32_t narrow(uint64_t cnt)
{
	return cnt < UINT32_MAX ? (uint32_t)cnt : UINT32_MAX;
}

void stoup_publish_refused(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];
	const struct stoup_page *page = c->page.base;
	uint32_t now =
		narrow(atomic_load_explicit(&page->requests_refused_cnt, memory_order_relaxed));

	if (now > c->refused_seen)
		stoup_counter_add(d, STOUP_COUNTER_LIMIT_REQUESTS, now - c->refused_seen);
	c->refused_seen = now;
}

/* What it met of its limits; added up in *cells and *bytes. */
static void publish_limits(struct stoup_daemon *d, uint32_t idx, uint64_t *cells, uint64_t *bytes)
{
	struct stoup_control_consumer *entry = &stoup_control_consumers(d->control)[idx];
	struct stoup_consumer *c = &d->consumers[idx];
	const struct stoup_page *page = c->page.base;
	uint32_t cell_cnt =
		narrow(atomic_load_explicit(&page->cells_refused_cnt, memory_order_relaxed));
	uint32_t byte_cnt =
		narrow(atomic_load_explicit(&page->bytes_refused_cnt, memory_order_relaxed));

	stoup_publish_refused(d, idx);
	atomic_store_explicit(&entry->cells_refused_cnt, cell_cnt, memory_order_relaxed);
	atomic_store_explicit(&entry->bytes_refused_cnt, byte_cnt, memory_order_relaxed);
	atomic_store_explicit(
		&entry->requests_refused_cnt, (uint32_t)c->refused_seen, memory_order_relaxed);
	*cells += cell_cnt;
	*bytes += byte_cnt;
}

static void publish_consumer(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_control_consumer *entry = &stoup_control_consumers(d->control)[idx];
	const struct stoup_consumer *c = &d->consumers[idx];
	struct stoup_page *page = c->page.base;

	atomic_store_explicit(&entry->lease_cnt, c->lease_cnt, memory_order_relaxed);
	atomic_store_explicit(&entry->leased_bytes, c->leased_bytes, memory_order_relaxed);
	atomic_store_explicit(&entry->oldest_lease_ns, c->oldest_ns, memory_order_relaxed);
	atomic_store_explicit(&entry->waiting_cnt, c->waiting_cnt, memory_order_relaxed);
#define COPY(name)                                                                                 \
	atomic_store_explicit(&entry->name,                                                        \
		atomic_load_explicit(&page->name, memory_order_relaxed), memory_order_relaxed)
	COPY(hit_cnt);
	COPY(miss_cnt);
	COPY(timeout_cnt);
	COPY(wait_ns);
	COPY(record_cnt);
#undef COPY
}

/* ---- what all consumers counted together ------------------------------------------------------ */

/* In the order of d->past. */
static const enum stoup_counter past_ids[STOUP_PAST_CNT] = {STOUP_COUNTER_HITS,
	STOUP_COUNTER_MISSES, STOUP_COUNTER_TIMEOUTS, STOUP_COUNTER_RECORDS, STOUP_COUNTER_WAIT_NS};

/* Add what a page counts. */
static void past_add(const struct stoup_page *page, uint64_t sums[STOUP_PAST_CNT])
{
	const _Atomic uint64_t *const words[STOUP_PAST_CNT] = {&page->hit_cnt, &page->miss_cnt,
		&page->timeout_cnt, &page->record_cnt, &page->wait_ns};

	for (uint32_t i = 0; i < STOUP_PAST_CNT; i++)
		sums[i] += atomic_load_explicit(words[i], memory_order_relaxed);
}

void stoup_publish_past(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];

	if (!c->page.base)
		return;
	past_add(c->page.base, d->past);
	stoup_requests_samples(d, idx);
	for (uint32_t i = 0; i < d->opt.cell_cap; i++)
		if (c->since_ns[i] != 0)
			stoup_time(d, STOUP_HISTOGRAM_LEASE, d->now_ns - c->since_ns[i]);
	memset(c->since_ns, 0, d->opt.cell_cap * sizeof(c->since_ns[0]));
}

static void publish_sums(struct stoup_daemon *d)
{
	uint64_t sums[STOUP_PAST_CNT];

	memcpy(sums, d->past, sizeof(sums));
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (d->consumers[i].page.base) {
			past_add(d->consumers[i].page.base, sums);
			stoup_requests_samples(d, i);
		}
	for (uint32_t i = 0; i < STOUP_PAST_CNT; i++)
		stoup_gauge(d, past_ids[i], sums[i]);
}

static void publish_reader(struct stoup_daemon *d)
{
	const struct stoup_reader_counters *r = stoup_reader_counters(d->reader);
	struct stoup_ring_usage usage;

	stoup_gauge(d, STOUP_COUNTER_READS, r->reads);
	stoup_gauge(d, STOUP_COUNTER_READ_BYTES, r->bytes);
	stoup_gauge(d, STOUP_COUNTER_READS_CACHED, r->cached_reads);
	stoup_gauge(d, STOUP_COUNTER_READS_DIRECT, r->direct_reads);
	stoup_gauge(d, STOUP_COUNTER_READS_IN_FLIGHT_MAX, r->in_flight_max);
	stoup_ring_usage(d->ring, &usage);
	stoup_gauge(d, STOUP_COUNTER_FREE_BYTES, usage.free_len);
	stoup_gauge(d, STOUP_COUNTER_LARGEST_FREE, usage.free_max_len);
	stoup_gauge(d, STOUP_COUNTER_UNREAD_BYTES, usage.unread_len);
}

void stoup_publish(struct stoup_daemon *d)
{
	uint64_t cells = 0, bytes = 0;

	stoup_evict_scan(d);
	publish_buffers(d);
	publish_reader(d);
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (d->consumers[i].page.base) {
			publish_consumer(d, i);
			publish_limits(d, i, &cells, &bytes);
		}
	publish_sums(d);
	stoup_quotas_publish(d);
	stoup_holders_publish(d);
	stoup_gauge(d, STOUP_COUNTER_LIMIT_CELLS, cells);
	stoup_gauge(d, STOUP_COUNTER_LIMIT_BYTES, bytes);
	atomic_store_explicit(&d->control->heartbeat_ns, d->now_ns, memory_order_release);
}
