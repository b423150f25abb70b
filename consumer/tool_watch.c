/* SPDX-License-Identifier: Apache-2.0 */
/* tool_watch.c - see tool_watch.h.
 *
 * The superblock is copied first, and only the copy is believed: whoever writes the object can change it between a check
 * and a use. Tables are then read row by row at places that the copy gave and that lie within the mapping.
 */
#include "consumer/tool_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "shm/alive.h"
#include "shm/clock.h"

#define COUNTER_CAP   1024u /* more than any release has: refused */
#define HISTOGRAM_CAP 64u   /* likewise, not shown */
#define HOLDER_CAP    65536u

/* Age of a CLOCK_MONOTONIC moment; 0 for one that is not known or lies ahead. */
static uint64_t age_ns(const struct stoup_watch *watch, uint64_t then)
{
	return then == 0 || then > watch->taken_ns ? 0 : watch->taken_ns - then;
}

#define LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* Copy a text whose NUL may be missing, and which a process may have given itself: no terminal is commanded by it. */
#define TEXT(dst, src) text_copy(dst, sizeof(dst), src, sizeof(src))

static void text_copy(char *dst, size_t dst_cap, const char *src, size_t src_len)
{
	size_t len = src_len < dst_cap - 1 ? src_len : dst_cap - 1;

	memcpy(dst, src, len);
	memset(dst + len, 0, dst_cap - len);
	for (len = 0; dst[len]; len++)
		if ((unsigned char)dst[len] < ' ' || dst[len] == 127)
			dst[len] = '?';
	/* What lies behind its end is nobody's text. */
	memset(dst + len, 0, dst_cap - len);
}

/* ---- superblock ------------------------------------------------------------------------------- */

static int fits(uint64_t off, uint32_t cnt, size_t row, size_t len)
{
	return off % 8 == 0 && off <= len && (uint64_t)cnt * row <= len - off;
}

static int head_check(const struct stoup_control *head, size_t len)
{
	return head->consumer_cap <= STOUP_CONSUMER_CAP && head->buffer_cap <= STOUP_BUFFER_CAP &&
	       head->volume_cap <= STOUP_VOLUME_CAP && head->error_cap <= STOUP_ERROR_CAP &&
	       head->counter_cnt <= COUNTER_CAP &&
	       fits(head->consumer_off, head->consumer_cap, sizeof(struct stoup_control_consumer),
		       len) &&
	       fits(head->buffer_off, head->buffer_cap, sizeof(struct stoup_control_buffer), len) &&
	       fits(head->volume_off, head->volume_cap, sizeof(struct stoup_control_volume), len) &&
	       fits(head->counter_off, head->counter_cnt, sizeof(struct stoup_control_counter),
		       len) &&
	       fits(head->error_off, head->error_cap, sizeof(struct stoup_control_error), len);
}

/* A copy of the superblock that was checked. 0 or -EPROTO. */
static int head_read(const struct stoup_control *control, size_t len, struct stoup_control *ret,
	struct stoup_error *err)
{
	if (len < sizeof(*ret))
		return stoup_error_set(
			err, -EPROTO, "the control object has %zu bytes, too few", len);
	memcpy(ret, control, sizeof(*ret));
	/* Nothing below may be read from the shared one again. */
	__asm__ volatile("" : : "r"(ret) : "memory");
	if (LOAD(ret->magic) != STOUP_CONTROL_MAGIC || ret->abi_major != STOUP_ABI_MAJOR ||
		ret->fingerprint != stoup_abi_fingerprint())
		return stoup_error_set(err, -EPROTO, "not a control object of this release");
	if (!head_check(ret, len))
		return stoup_error_set(err, -EPROTO, "the control object is malformed");
	return 0;
}

static void head_show(const struct stoup_control *head, struct stoup_watch *watch)
{
	struct timespec ts;
	int64_t wall_ns;

	clock_gettime(CLOCK_REALTIME, &ts);
	wall_ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	watch->uptime_ns = head->created_ns > 0 && wall_ns > head->created_ns
	                           ? (uint64_t)(wall_ns - head->created_ns)
	                           : 0;
	memcpy(watch->instance, head->instance, sizeof(watch->instance));
	watch->daemon_pid = head->daemon_pid;
	watch->uid = head->uid;
	TEXT(watch->pool_name, head->pool_name);
	TEXT(watch->store_path, head->store_path);
	TEXT(watch->version, head->version);
	TEXT(watch->backing, head->backing);
	TEXT(watch->reader_kind, head->reader_kind);
	TEXT(watch->reader_reason, head->reader_reason);
	TEXT(watch->huge_reason, head->huge_reason);
	TEXT(watch->lock_reason, head->lock_reason);
	TEXT(watch->decode_cpus, head->decode_cpus);
	watch->data_len = head->data_len;
	watch->page_len = head->page_len;
	watch->huge_len = head->huge_len;
	watch->locked_len = head->locked_len;
	watch->lease_bytes_cap = head->lease_bytes_cap;
	watch->ahead_bytes_cap = head->ahead_bytes_cap;
	watch->request_timeout_ns = head->request_timeout_ns;
	watch->spin_ns = head->spin_ns;
	watch->block_len_max = head->block_len_max;
	watch->consumer_cap = head->consumer_cap;
	watch->cell_cap = head->cell_cap;
	watch->request_cap = head->request_cap;
	watch->buffer_cap = head->buffer_cap;
	watch->volume_cap = head->volume_cap;
	watch->decode_threads = head->decode_threads;
	watch->reader_depth = head->reader_depth;
	watch->snapshot_seq = LOAD(head->snapshot_seq);
}

/* ---- state ------------------------------------------------------------------------------------ */

/* The letter of a process's state in /proc, or 0. */
static char process_letter(uint32_t pid)
{
	char path[64], text[512];
	const char *at;
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = 0;
	at = strrchr(text, ')');
	return at && at[1] == ' ' ? at[2] : 0;
}

static enum stoup_watch_state state_of(const struct stoup_watch *watch, uint32_t state)
{
	char letter;

	if (state == STOUP_STATE_STOPPED)
		return STOUP_WATCH_STOPPED;
	if (watch->life == 0)
		return STOUP_WATCH_DEAD;
	letter = watch->life == 1 ? process_letter(watch->daemon_pid) : 0;
	if (letter == 'T' || letter == 't')
		return STOUP_WATCH_SUSPENDED;
	if (state == STOUP_STATE_STARTING)
		return STOUP_WATCH_STARTING;
	return watch->heartbeat_ns > STOUP_WATCH_SILENT_NS ? STOUP_WATCH_SILENT
	                                                   : STOUP_WATCH_RUNNING;
}

/* ---- tables ----------------------------------------------------------------------------------- */

static const void *table_at(const struct stoup_control *control, uint64_t off)
{
	return (const char *)control + off;
}

static int counters_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch)
{
	const struct stoup_control_counter *rows = table_at(control, head->counter_off);

	watch->counters = calloc(head->counter_cnt + 1, sizeof(*watch->counters));
	if (!watch->counters)
		return -ENOMEM;
	for (uint32_t i = 0; i < head->counter_cnt; i++) {
		struct stoup_watch_counter *to = &watch->counters[watch->counter_cnt++];

		TEXT(to->name, rows[i].name);
		TEXT(to->unit, rows[i].unit);
		TEXT(to->text, rows[i].text);
		to->kind = rows[i].kind == 'G' ? 'G' : 'C';
		to->value = LOAD(rows[i].value);
	}
	return 0;
}

/* What /proc tells of a process: whether it is stopped, and what the kernel keeps to map memory for it (VmPTE). The
 * pool is most of that, with 8 bytes for each page that was read. */
static void process_read(struct stoup_watch_consumer *consumer)
{
	unsigned long long kib = 0;
	char path[64], line[128], letter = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%u/status", consumer->pid);
	status = fopen(path, "re");
	if (!status)
		return;
	while (kib == 0 && fgets(line, sizeof(line), status))
		if (sscanf(line, "State: %c", &letter) != 1 &&
			sscanf(line, "VmPTE: %llu kB", &kib) != 1)
			kib = 0;
	fclose(status);
	consumer->suspended = letter == 'T' || letter == 't';
	consumer->page_table_bytes = kib * 1024;
}

static void consumer_read(const struct stoup_control_consumer *from, uint32_t state,
	const struct stoup_watch *watch, struct stoup_watch_consumer *to)
{
	uint64_t comm[2] = {LOAD(from->comm[0]), LOAD(from->comm[1])};

	to->state = state;
	to->pid = LOAD(from->pid);
	to->uid = LOAD(from->uid);
	to->attach_no = LOAD(from->attach_no);
	to->attached_ns = age_ns(watch, LOAD(from->attach_ns));
	text_copy(to->command, sizeof(to->command), (const char *)comm, sizeof(comm));
	to->lease_cnt = LOAD(from->lease_cnt);
	to->waiting_cnt = LOAD(from->waiting_cnt);
	to->leased_bytes = LOAD(from->leased_bytes);
	to->oldest_ns = to->lease_cnt ? age_ns(watch, LOAD(from->oldest_lease_ns)) : 0;
	to->hit_cnt = LOAD(from->hit_cnt);
	to->miss_cnt = LOAD(from->miss_cnt);
	to->timeout_cnt = LOAD(from->timeout_cnt);
	to->wait_ns = LOAD(from->wait_ns);
	to->record_cnt = LOAD(from->record_cnt);
	to->cells_refused_cnt = LOAD(from->cells_refused_cnt);
	to->bytes_refused_cnt = LOAD(from->bytes_refused_cnt);
	to->requests_refused_cnt = LOAD(from->requests_refused_cnt);
}

static int consumers_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch)
{
	const struct stoup_control_consumer *rows = table_at(control, head->consumer_off);
	int seen = stoup_proc_ours() && (head->pid_ns == 0 || head->pid_ns == stoup_pid_ns());

	watch->consumers = calloc(head->consumer_cap + 1, sizeof(*watch->consumers));
	if (!watch->consumers)
		return -ENOMEM;
	for (uint32_t i = 0; i < head->consumer_cap; i++) {
		uint32_t state = atomic_load_explicit(&rows[i].state, memory_order_acquire);
		struct stoup_watch_consumer *to = &watch->consumers[watch->consumer_cnt];

		if (state == STOUP_CONSUMER_NONE || state > STOUP_CONSUMER_TICKET)
			continue;
		consumer_read(&rows[i], state, watch, to);
		to->idx = i;
		if (seen && to->pid)
			process_read(to);
		watch->consumer_cnt++;
	}
	return 0;
}

static int by_off(const void *a, const void *b)
{
	const struct stoup_watch_extent *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return x->buffer_idx < y->buffer_idx ? -1 : x->buffer_idx > y->buffer_idx;
}

/* One extent more; 0 or -ENOMEM. */
static int extent_add(
	struct stoup_watch *watch, uint32_t *cap, const struct stoup_watch_extent *extent)
{
	if (watch->extent_cnt == *cap) {
		uint32_t wanted = *cap ? *cap * 2 : 256;
		void *room = realloc(watch->extents, wanted * sizeof(*watch->extents));

		if (!room)
			return -ENOMEM;
		watch->extents = room;
		*cap = wanted;
	}
	watch->extents[watch->extent_cnt++] = *extent;
	return 0;
}

static int extents_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch)
{
	const struct stoup_control_buffer *rows = table_at(control, head->buffer_off);
	uint32_t cap = 0;

	for (uint32_t i = 0; i < head->buffer_cap; i++) {
		struct stoup_watch_extent extent = {.state = LOAD(rows[i].state), .buffer_idx = i};

		if (extent.state == STOUP_BUFFER_FREE || extent.state > STOUP_BUFFER_DRAINING)
			continue;
		extent.off = LOAD(rows[i].off);
		extent.len = LOAD(rows[i].len);
		if (extent.off > head->data_len || extent.len > head->data_len - extent.off)
			continue;
		extent.refs = LOAD(rows[i].refs);
		extent.used_cnt = LOAD(rows[i].used_cnt);
		extent.volume_idx = LOAD(rows[i].volume_idx);
		extent.block_idx = LOAD(rows[i].block_idx);
		extent.loaded_ns = age_ns(watch, LOAD(rows[i].loaded_ns));
		if (extent_add(watch, &cap, &extent) < 0)
			return -ENOMEM;
	}
	if (watch->extent_cnt > 1)
		qsort(watch->extents, watch->extent_cnt, sizeof(*watch->extents), by_off);
	return 0;
}

static int volumes_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch)
{
	const struct stoup_control_volume *rows = table_at(control, head->volume_off);
	uint32_t cnt = LOAD(head->volume_cnt);

	if (cnt > head->volume_cap)
		cnt = head->volume_cap;
	watch->volumes = calloc(cnt + 1, sizeof(*watch->volumes));
	if (!watch->volumes)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t state = atomic_load_explicit(&rows[i].state, memory_order_acquire);
		struct stoup_watch_volume *to = &watch->volumes[watch->volume_cnt];

		if (state != STOUP_VOLUME_SERVED && state != STOUP_VOLUME_RETIRED)
			continue;
		*to = (struct stoup_watch_volume){.idx = i,
			.state = state,
			.block_cnt = rows[i].block_cnt,
			.series_cnt = rows[i].series_cnt,
			.record_cnt = rows[i].record_cnt,
			.raw_len = rows[i].raw_len,
			.stored_len = rows[i].stored_len,
			.born_seq = LOAD(rows[i].born_seq),
			.retired_seq = LOAD(rows[i].retired_seq)};
		TEXT(to->path, rows[i].path);
		watch->volume_cnt++;
	}
	return 0;
}

static int latest_first(const void *a, const void *b)
{
	const struct stoup_watch_error *x = a, *y = b;

	return x->last_ns > y->last_ns ? -1 : x->last_ns < y->last_ns;
}

static int errors_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch)
{
	const struct stoup_control_error *rows = table_at(control, head->error_off);
	struct stoup_control_error row;

	watch->errors = calloc(head->error_cap + 1, sizeof(*watch->errors));
	if (!watch->errors)
		return -ENOMEM;
	for (uint32_t i = 0; i < head->error_cap; i++) {
		struct stoup_watch_error *to = &watch->errors[watch->error_cnt];

		if (!stoup_control_error_copy(&rows[i], &row))
			continue;
		to->code = row.code;
		to->count = row.count;
		to->first_ns = row.first_ns;
		to->last_ns = row.last_ns;
		TEXT(to->text, row.text);
		watch->error_cnt++;
	}
	if (watch->error_cnt > 1)
		qsort(watch->errors, watch->error_cnt, sizeof(*watch->errors), latest_first);
	return 0;
}

static int histograms_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch)
{
	size_t step = head->histogram_len;
	uint32_t cnt = head->histogram_cnt;

	/* None from an older daemon; what does not lie in the mapping is none either. */
	if (step < sizeof(struct stoup_control_histogram) || step % 8 != 0 || cnt > HISTOGRAM_CAP ||
		!fits(head->histogram_off, cnt, step, watch->mapped_len))
		cnt = 0;
	watch->histograms = calloc(cnt + 1, sizeof(*watch->histograms));
	if (!watch->histograms)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct stoup_control_histogram *from =
			table_at(control, head->histogram_off + i * step);
		struct stoup_watch_histogram *to = &watch->histograms[watch->histogram_cnt++];

		TEXT(to->name, from->name);
		TEXT(to->unit, from->unit);
		TEXT(to->text, from->text);
		for (uint32_t b = 0; b < STOUP_HISTOGRAM_BUCKETS; b++) {
			to->buckets[b] = LOAD(from->buckets[b]);
			to->count += to->buckets[b];
		}
		to->sum = LOAD(from->sum);
		to->max = LOAD(from->max);
	}
	return 0;
}

static int oldest_first(const void *a, const void *b)
{
	const struct stoup_watch_holder *x = a, *y = b;

	if (x->oldest_ns != y->oldest_ns)
		return x->oldest_ns < y->oldest_ns ? 1 : -1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* The consumer of a row, as it is at this look; NULL: it ended since. */
static const struct stoup_watch_consumer *row_consumer(
	const struct stoup_watch *watch, const struct stoup_control_holder *row)
{
	const struct stoup_watch_consumer wanted = {
		.idx = row->consumer_idx, .attach_no = row->attach_no};

	return stoup_watch_same(watch, &wanted);
}

static int holders_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch)
{
	size_t step = head->holder_len;
	uint32_t cnt = head->holder_cap;

	if (step < sizeof(struct stoup_control_holder) || step % 8 != 0 || cnt > HOLDER_CAP ||
		!fits(head->holder_off, cnt, step, watch->mapped_len))
		cnt = 0;
	watch->holders = calloc(cnt + 1, sizeof(*watch->holders));
	if (!watch->holders)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		struct stoup_watch_holder *to = &watch->holders[watch->holder_cnt];
		const struct stoup_watch_consumer *consumer;
		struct stoup_control_holder row;

		if (!stoup_control_holder_copy(
			    table_at(control, head->holder_off + i * step), &row))
			continue;
		consumer = row_consumer(watch, &row);
		to->consumer_idx = row.consumer_idx;
		to->pid = row.pid;
		to->lease_cnt = row.lease_cnt;
		to->bytes = row.bytes;
		to->shared_cnt = row.shared_cnt;
		to->oldest_ns = age_ns(watch, row.oldest_ns);
		to->state = consumer ? consumer->state : STOUP_CONSUMER_NONE;
		to->suspended = consumer ? consumer->suspended : 0;
		if (consumer)
			memcpy(to->command, consumer->command, sizeof(to->command));
		TEXT(to->series, row.series);
		watch->holder_cnt++;
	}
	if (watch->holder_cnt > 1)
		qsort(watch->holders, watch->holder_cnt, sizeof(*watch->holders), oldest_first);
	return 0;
}

static void sum_up(struct stoup_watch *watch)
{
	struct stoup_watch_sums *sums = &watch->sums;

	for (uint32_t i = 0; i < watch->extent_cnt; i++) {
		const struct stoup_watch_extent *e = &watch->extents[i];

		if (e->state < STOUP_BUFFER_RESIDENT)
			continue;
		sums->resident_blocks++;
		sums->resident_bytes += e->len;
		sums->leases += e->refs;
		sums->leased_bytes += e->refs ? e->len : 0;
	}
	for (uint32_t i = 0; i < watch->consumer_cnt; i++) {
		const struct stoup_watch_consumer *c = &watch->consumers[i];

		sums->hits += c->hit_cnt;
		sums->misses += c->miss_cnt;
		sums->records += c->record_cnt;
		sums->waiting += c->waiting_cnt;
		if (c->oldest_ns > sums->oldest_ns) {
			sums->oldest_ns = c->oldest_ns;
			sums->oldest_pid = c->pid;
		}
	}
}

/* ---- a look ----------------------------------------------------------------------------------- */

void stoup_watch_fini(struct stoup_watch *watch)
{
	free(watch->counters);
	free(watch->consumers);
	free(watch->extents);
	free(watch->volumes);
	free(watch->errors);
	free(watch->histograms);
	free(watch->holders);
	memset(watch, 0, sizeof(*watch));
}

int stoup_watch_read(const struct stoup_control *control, size_t len, struct stoup_watch *ret,
	struct stoup_error *err)
{
	static int (*const parts[])(const struct stoup_control *, const struct stoup_control *,
		struct stoup_watch *) = {counters_read, consumers_read, extents_read, volumes_read,
		errors_read, histograms_read, holders_read};
	struct stoup_control head;
	int rc;

	stoup_watch_fini(ret);
	rc = head_read(control, len, &head, err);
	if (rc < 0)
		return rc;
	ret->taken_ns = stoup_clock_ns();
	ret->mapped_len = len;
	head_show(&head, ret);
	ret->heartbeat_ns = age_ns(ret, LOAD(head.heartbeat_ns));
	ret->life = stoup_control_life(&head);
	ret->state = state_of(ret, LOAD(head.state));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i](control, &head, ret) < 0) {
			stoup_watch_fini(ret);
			return stoup_error_set(err, -ENOMEM, "no memory for what the pool shows");
		}
	sum_up(ret);
	return 0;
}
