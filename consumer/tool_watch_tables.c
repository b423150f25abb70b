/* SPDX-License-Identifier: Apache-2.0 */
/* tool_watch_tables.c - the tables of a control object, row by row: see tool_watch.h.
 *
 * Rows are found by the checked copy of the superblock. Words that only an index, a state or a length may be are bounded
 * before they are used; what is out of bounds is left out.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_watch_private.h"

#define HISTOGRAM_CAP 64u /* more than any release has: not shown */
#define HOLDER_CAP    65536u
#define QUOTA_CAP     1024u

/* ---- tables ----------------------------------------------------------------------------------- */

static const void *table_at(const struct stoup_control *control, uint64_t off)
{
	return (const char *)control + off;
}

int stoup_watch_counters_read(const struct stoup_control *control, const struct stoup_control *head,
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

	/* Also where /proc hides others' processes. */
	consumer->gone = kill((pid_t)consumer->pid, 0) < 0 && errno == ESRCH;
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

int stoup_watch_consumers_read(const struct stoup_control *control,
	const struct stoup_control *head, struct stoup_watch *watch)
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
		if (seen && to->pid > 0 && to->pid <= INT32_MAX)
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

int stoup_watch_extents_read(const struct stoup_control *control, const struct stoup_control *head,
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
		extent.pinned = (LOAD(rows[i].flags) & STOUP_BUFFER_PINNED) != 0;
		extent.loaded_ns = age_ns(watch, LOAD(rows[i].loaded_ns));
		if (extent_add(watch, &cap, &extent) < 0)
			return -ENOMEM;
	}
	if (watch->extent_cnt > 1)
		qsort(watch->extents, watch->extent_cnt, sizeof(*watch->extents), by_off);
	return 0;
}

int stoup_watch_volumes_read(const struct stoup_control *control, const struct stoup_control *head,
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

int stoup_watch_errors_read(const struct stoup_control *control, const struct stoup_control *head,
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

int stoup_watch_histograms_read(const struct stoup_control *control,
	const struct stoup_control *head, struct stoup_watch *watch)
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

int stoup_watch_holders_read(const struct stoup_control *control, const struct stoup_control *head,
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
		to->state = consumer && !consumer->gone ? consumer->state : STOUP_CONSUMER_NONE;
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

int stoup_watch_quotas_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch)
{
	size_t step = head->quota_len;
	uint32_t cnt = head->quota_cap;

	if (step < sizeof(struct stoup_control_quota) || step % 8 != 0 || cnt > QUOTA_CAP ||
		!fits(head->quota_off, cnt, step, watch->mapped_len))
		cnt = 0;
	watch->quotas = calloc(cnt + 1, sizeof(*watch->quotas));
	if (!watch->quotas)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct stoup_control_quota *row =
			table_at(control, head->quota_off + i * step);
		struct stoup_watch_quota *to = &watch->quotas[watch->quota_cnt];

		if (row->bytes_cap == 0)
			continue;
		TEXT(to->name, row->name);
		to->kind = row->kind;
		to->id = row->id;
		to->bytes_cap = row->bytes_cap;
		to->leased_bytes = LOAD(row->leased_bytes);
		to->limit_cnt = LOAD(row->limit_cnt);
		to->consumer_cnt = LOAD(row->consumer_cnt);
		to->waiting_cnt = LOAD(row->waiting_cnt);
		watch->quota_cnt++;
	}
	return 0;
}
