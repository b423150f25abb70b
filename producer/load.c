/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - a block's way into the pool: queued, room made, read, decoded, published, granted.
 *
 *      demand queue --+                                   codec none: read straight into the extent
 *                     +--> room --> read --> decode --> publish --> grant
 *      ahead queue  --+     |         |         |
 *                           |         +---------+--> failed: extent free, waiters told, logged
 *                           +--> nothing evictable: starving; the oldest claims a window
 *
 * A block has at most one load at a time, so that many waiters cause one read and one decode. Demand
 * goes first; read-ahead starts only when no demand waits for room.
 *
 * If the daemon dies in the middle: nothing was published, no cell names the extent.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <string.h>
#include "codec/block.h"

#define REAP_CAP 32u /* completions taken at once: bounds the stack, the loop goes on */

/* ---- queues ----------------------------------------------------------------------------------- */

void stoup_list_init(struct stoup_list *list)
{
	list->first = list->last = STOUP_IDX_NONE;
	list->cnt = 0;
}

void stoup_list_push(struct stoup_daemon *d, struct stoup_list *list, uint32_t load_idx)
{
	d->loads[load_idx].prev = list->last;
	d->loads[load_idx].next = STOUP_IDX_NONE;
	if (list->last == STOUP_IDX_NONE)
		list->first = load_idx;
	else
		d->loads[list->last].next = load_idx;
	list->last = load_idx;
	list->cnt++;
}

void stoup_list_remove(struct stoup_daemon *d, struct stoup_list *list, uint32_t load_idx)
{
	struct stoup_load *load = &d->loads[load_idx];

	if (load->prev == STOUP_IDX_NONE)
		list->first = load->next;
	else
		d->loads[load->prev].next = load->next;
	if (load->next == STOUP_IDX_NONE)
		list->last = load->prev;
	else
		d->loads[load->next].prev = load->prev;
	list->cnt--;
}

static struct stoup_list *queue_of(struct stoup_daemon *d, const struct stoup_load *load)
{
	return load->ahead ? &d->ahead : &d->demand;
}

uint32_t stoup_load_queue(
	struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx, int32_t step, int ahead)
{
	uint32_t idx = d->load_free;
	struct stoup_load *load;

	if (idx == STOUP_IDX_NONE || (ahead && d->ahead.cnt >= STOUP_AHEAD_QUEUE_CAP))
		return STOUP_IDX_NONE;
	load = &d->loads[idx];
	d->load_free = load->next;
	*load = (struct stoup_load){.state = STOUP_LOAD_QUEUED,
		.volume_idx = volume_idx,
		.block_idx = block_idx,
		.buffer_idx = STOUP_IDX_NONE,
		.waiter_first = STOUP_IDX_NONE,
		.waiter_last = STOUP_IDX_NONE,
		.staging_slot = -1,
		.ahead = (uint32_t)ahead,
		.step = step,
		.queued_ns = d->now_ns};
	d->volumes[volume_idx].load_idx[block_idx] = idx;
	stoup_list_push(d, queue_of(d, load), idx);
	return idx;
}

void stoup_load_promote(struct stoup_daemon *d, uint32_t load_idx)
{
	struct stoup_load *load = &d->loads[load_idx];

	if (!load->ahead)
		return;
	if (load->state == STOUP_LOAD_QUEUED) {
		stoup_list_remove(d, &d->ahead, load_idx);
		load->ahead = 0;
		stoup_list_push(d, &d->demand, load_idx);
	}
}

static void load_free(struct stoup_daemon *d, uint32_t load_idx)
{
	struct stoup_load *load = &d->loads[load_idx];

	if (load->staging_slot >= 0)
		stoup_staging_put(d->staging, load->staging_slot);
	if (d->claim_load == load_idx)
		stoup_claim_cancel(d);
	d->volumes[load->volume_idx].load_idx[load->block_idx] = STOUP_IDX_NONE;
	load->state = STOUP_LOAD_FREE;
	load->next = d->load_free;
	d->load_free = load_idx;
}

void stoup_load_drop(struct stoup_daemon *d, uint32_t load_idx)
{
	stoup_list_remove(d, queue_of(d, &d->loads[load_idx]), load_idx);
	load_free(d, load_idx);
}

/* ---- the end of a load ------------------------------------------------------------------------ */

static const struct stoup_vol_block *block_of(
	const struct stoup_daemon *d, const struct stoup_load *load)
{
	return &d->volumes[load->volume_idx].file->index->blocks[load->block_idx];
}

static void count_load(struct stoup_daemon *d, const struct stoup_load *load, int ahead)
{
	uint16_t *times = &d->volumes[load->volume_idx].load_cnt[load->block_idx];

	if (*times == 0)
		stoup_gauge(d, STOUP_COUNTER_LOADS_DISTINCT, ++d->distinct_loads);
	if (*times < UINT16_MAX)
		(*times)++;
	if (*times > d->loads_max)
		stoup_gauge(d, STOUP_COUNTER_LOADS_MAX, d->loads_max = *times);
	stoup_counter_add(d, STOUP_COUNTER_LOADS, 1);
	stoup_counter_add(d, STOUP_COUNTER_LOAD_RAW_BYTES, block_of(d, load)->raw_len);
	stoup_counter_add(d, STOUP_COUNTER_LOAD_STORED_BYTES, block_of(d, load)->stored_len);
	if (ahead)
		stoup_counter_add(d, STOUP_COUNTER_AHEAD_LOADED, 1);
}

/* Under way and over, without a block. */
static void load_end(struct stoup_daemon *d, uint32_t load_idx, int error, uint64_t detail)
{
	struct stoup_load *load = &d->loads[load_idx];

	stoup_buffer_abandon(d, load->buffer_idx);
	stoup_waiters_fail(d, load, error, detail);
	d->in_flight--;
	load_free(d, load_idx);
}

static void load_done(struct stoup_daemon *d, uint32_t load_idx)
{
	struct stoup_load *load = &d->loads[load_idx];
	int ahead = load->waiter_first == STOUP_IDX_NONE;

	if (d->volumes[load->volume_idx].closed) {
		load_end(d, load_idx, -ESTALE, 0);
		return;
	}
	count_load(d, load, ahead);
	stoup_buffer_publish(d, load->buffer_idx, ahead);
	stoup_waiters_grant(d, load);
	d->in_flight--;
	load_free(d, load_idx);
}

static void load_failed(struct stoup_daemon *d, uint32_t load_idx, int error, uint64_t detail)
{
	stoup_counter_add(d, STOUP_COUNTER_LOADS_FAILED, 1);
	load_end(d, load_idx, error, detail);
}

void stoup_loads_close(struct stoup_daemon *d, uint32_t volume_idx)
{
	struct stoup_list *queues[2] = {&d->demand, &d->ahead};
	uint32_t next;

	for (uint32_t q = 0; q < 2; q++)
		for (uint32_t i = queues[q]->first; i != STOUP_IDX_NONE; i = next) {
			next = d->loads[i].next;
			if (d->loads[i].volume_idx != volume_idx)
				continue;
			stoup_waiters_fail(d, &d->loads[i], -ESTALE, 0);
			stoup_load_drop(d, i);
		}
}

/* ---- decoding --------------------------------------------------------------------------------- */

static void job_of(const struct stoup_daemon *d, uint32_t load_idx, const void *src,
	struct stoup_decode_job *job)
{
	const struct stoup_load *load = &d->loads[load_idx];
	const struct stoup_vol_block *block = block_of(d, load);

	*job = (struct stoup_decode_job){.cookie = load_idx,
		.stored_hash = block->stored_hash,
		.src = src,
		.dst = (char *)d->data_region.base + load->off,
		.src_len = block->stored_len,
		.raw_len = block->raw_len,
		.codec = block->codec,
		.transform = block->transform,
		.block_idx = load->block_idx,
		.runs = d->volumes[load->volume_idx].runs,
		.flags = load->waiter_first == STOUP_IDX_NONE ? 0 : STOUP_DECODE_DEMAND};
}

static void decode_result(struct stoup_daemon *d, const struct stoup_decode_result *result)
{
	uint32_t load_idx = (uint32_t)result->cookie;
	const struct stoup_load *load = &d->loads[load_idx];
	struct stoup_error why = {0};
	uint64_t detail;

	stoup_counter_add(d, STOUP_COUNTER_DECODE_NS, result->busy_ns);
	stoup_time(d, STOUP_HISTOGRAM_DECODE, result->busy_ns);
	if (result->result == 0) {
		load_done(d, load_idx);
		return;
	}
	/* The decoded bytes are still there: what a worker found is found again, with words. */
	if (result->detail == STOUP_DECODE_RUN)
		(void)stoup_runs_block_check(d->volumes[load->volume_idx].runs, load->block_idx,
			(const char *)d->data_region.base + load->off, &why);
	detail = stoup_log_error(d, result->result,
		"%s: block %u at offset %llu: %s; mend: stoup verify %s",
		stoup_path_tail(d->volumes[load->volume_idx].file->path), load->block_idx,
		(unsigned long long)block_of(d, load)->stored_off,
		why.code ? why.text : stoup_decode_detail_text(result->detail),
		stoup_path_tail(d->volumes[load->volume_idx].file->path));
	load_failed(d, load_idx, result->result, detail);
}

/* Bytes have arrived: to a worker. Its queue has room for every load in flight. */
static void decode_start(struct stoup_daemon *d, uint32_t load_idx, const void *src)
{
	struct stoup_decode_job job;

	d->loads[load_idx].state = STOUP_LOAD_DECODING;
	job_of(d, load_idx, src, &job);
	if (stoup_decode_submit(d->decode, &job) < 0)
		load_failed(d, load_idx, -EAGAIN, 0);
}

/* ---- starting --------------------------------------------------------------------------------- */

static int straight(const struct stoup_vol_block *block)
{
	return block->codec == STOUP_CODEC_NONE && block->transform == STOUP_TRANSFORM_NONE;
}

/* Room in the pool: 1, or 0 when the load has to wait. */
static int load_room(struct stoup_daemon *d, uint32_t load_idx, struct stoup_ring_plan *plan)
{
	struct stoup_load *load = &d->loads[load_idx];
	uint64_t len = block_of(d, load)->raw_len;

	stoup_ring_upper_set(d->ring, load->step < 0);
	if (load->ahead)
		return stoup_evict_room(d, len, STOUP_RING_READAHEAD, plan);
	/* Also while a claim waits: whatever became free elsewhere is as good. */
	if (stoup_evict_room(d, len, STOUP_RING_DEMAND, plan)) {
		if (d->claim_load == load_idx)
			stoup_claim_cancel(d);
		return 1;
	}
	/* Only the oldest claims: what it waits for is then certain to come. */
	if (load_idx == d->demand.first || d->claim_load == load_idx)
		return stoup_claim_room(d, load_idx, len, plan);
	return 0;
}

/* A lone miss whose bytes are in the page cache: read, decoded and granted here, without any wake-up
 * but the waiter's. 1 = done (well or not). */
static int load_inline(struct stoup_daemon *d, uint32_t load_idx)
{
	struct stoup_load *load = &d->loads[load_idx];
	const struct stoup_vol_block *block = block_of(d, load);
	struct stoup_decode_job job;
	struct stoup_decode_result result;
	char *dst = (char *)d->data_region.base + load->off;
	void *src = load->staging_slot >= 0 ? stoup_staging_bytes(d->staging, load->staging_slot)
	                                    : (void *)dst;
	int64_t got = stoup_reader_try_cached(d->reader,
		(uint32_t)d->volumes[load->volume_idx].reader_idx, block->stored_off,
		block->stored_len, src);

	if (got != (int64_t)block->stored_len)
		return 0;
	stoup_time(d, STOUP_HISTOGRAM_READ, stoup_now_ns() - load->read_ns);
	job_of(d, load_idx, src, &job);
	stoup_decode_inline(d->decode, &job, &result);
	result.cookie = load_idx;
	stoup_counter_add(d, STOUP_COUNTER_LOADS_INLINE, 1);
	decode_result(d, &result);
	return 1;
}

static void read_start(struct stoup_daemon *d, uint32_t load_idx)
{
	struct stoup_load *load = &d->loads[load_idx];
	const struct stoup_vol_block *block = block_of(d, load);
	struct stoup_read req = {.cookie = load_idx,
		.file_off = block->stored_off,
		.len = block->stored_len,
		.file_idx = (uint32_t)d->volumes[load->volume_idx].reader_idx,
		.slot_idx = load->staging_slot};
	int rc;

	if (load->staging_slot < 0) {
		req.dst = (uint8_t *)d->data_region.base + load->off;
		/* The extent is whole pages, and so is a block's place in the file: a direct read may be
		 * widened inside it. */
		req.dst_cap =
			(block->raw_len + STOUP_OS_PAGE_LEN - 1) & ~(size_t)(STOUP_OS_PAGE_LEN - 1);
	}
	rc = stoup_reader_submit(d->reader, &req);
	if (rc < 0)
		load_failed(d, load_idx, rc,
			stoup_log_error(d, rc, "%s: block %u at offset %llu can not be read: %s",
				stoup_path_tail(d->volumes[load->volume_idx].file->path),
				load->block_idx, (unsigned long long)block->stored_off,
				strerror(-rc)));
}

/* Start one queued load: 1 started or ended, 0 it has to wait. */
static int load_start(struct stoup_daemon *d, uint32_t load_idx)
{
	struct stoup_load *load = &d->loads[load_idx];
	const struct stoup_vol_block *block = block_of(d, load);
	int lone = d->in_flight == 0 && !load->ahead && d->demand.cnt == 1;
	struct stoup_ring_plan plan;
	int32_t slot = -1;

	if (!straight(block) && (slot = stoup_staging_take(d->staging)) < 0)
		return 0;
	if (!load_room(d, load_idx, &plan)) {
		if (slot >= 0)
			stoup_staging_put(d->staging, slot);
		return 0;
	}
	stoup_list_remove(d, queue_of(d, load), load_idx);
	load->staging_slot = slot;
	load->buffer_idx = plan.idx;
	load->off = plan.off;
	load->state = STOUP_LOAD_READING;
	load->read_ns = stoup_now_ns();
	d->in_flight++;
	stoup_waiters_time(d, load);
	stoup_buffer_fill(d, plan.idx, plan.off, block->raw_len, load->volume_idx, load->block_idx);
	if (d->volumes[load->volume_idx].reader_idx < 0)
		load_failed(d, load_idx, -EIO, 0);
	else if (!lone || !load_inline(d, load_idx))
		read_start(d, load_idx);
	return 1;
}

/* Is it worth while to wait for room in the share? Not for ever: its cursor may be closed. */
static int ahead_waits(const struct stoup_daemon *d, const struct stoup_load *load)
{
	return d->now_ns - load->queued_ns < STOUP_STREAM_STALE_NS &&
	       stoup_ring_ahead_waits(d->ring, block_of(d, load)->raw_len);
}

static int pump_queue(struct stoup_daemon *d, struct stoup_list *queue)
{
	uint32_t depth = stoup_reader_depth(d->reader);
	int moved = 0;
	uint32_t next;

	/* Reads and decodes in flight together are bounded by the reader's depth, for which staging slots
	 * and the decode queue have room. */
	for (uint32_t i = queue->first; i != STOUP_IDX_NONE && d->in_flight < depth; i = next) {
		next = d->loads[i].next;
		if (load_start(d, i)) {
			moved = 1;
			continue;
		}
		/* Read-ahead beyond its share waits for readers to take what is there: dropped, each of
		 * these blocks would become a miss. Where the pool itself has no room it is dropped: a
		 * queue that waits for that would only grow old. */
		if (queue == &d->ahead) {
			if (ahead_waits(d, &d->loads[i]))
				break;
			stoup_load_drop(d, i);
			stoup_counter_add(d, STOUP_COUNTER_AHEAD_REFUSED, 1);
		}
	}
	return moved;
}

int stoup_loads_pump(struct stoup_daemon *d)
{
	uint32_t depth = stoup_reader_depth(d->reader);
	int moved = pump_queue(d, &d->demand);
	int starving;

	/* Staging and depth free themselves with the next completion; only room depends on releases. */
	starving =
		d->demand.cnt > 0 && d->in_flight < depth && stoup_staging_free_cnt(d->staging) > 0;
	if (starving && !d->starving)
		stoup_counter_add(d, STOUP_COUNTER_STARVED, 1);
	if (starving != d->starving)
		atomic_store_explicit(
			&d->control->starved, (uint32_t)starving, memory_order_relaxed);
	d->starving = starving;
	if (d->demand.cnt == 0)
		moved |= pump_queue(d, &d->ahead);
	stoup_reader_flush(d->reader);
	return moved;
}

/* ---- reaping ---------------------------------------------------------------------------------- */

static void read_result(struct stoup_daemon *d, const struct stoup_read_done *done)
{
	uint32_t load_idx = (uint32_t)done->cookie;
	const struct stoup_load *load = &d->loads[load_idx];
	const struct stoup_vol_block *block = block_of(d, load);
	const char *path = stoup_path_tail(d->volumes[load->volume_idx].file->path);
	uint64_t detail;
	int error;

	if (done->result == (int64_t)block->stored_len) {
		stoup_time(d, STOUP_HISTOGRAM_READ, stoup_now_ns() - load->read_ns);
		decode_start(d, load_idx, done->bytes);
		return;
	}
	error = done->result < 0 ? (int)done->result : -EIO;
	stoup_counter_add(d, STOUP_COUNTER_READ_ERRORS, 1);
	if (error == -ENODATA) {
		detail = stoup_log_error(d, -EIO,
			"%s: block %u at offset %llu: the file ends at %llu: it was truncated; "
			"mend: restore it",
			path, load->block_idx, (unsigned long long)block->stored_off,
			(unsigned long long)done->end_off);
		error = -EIO;
	} else {
		detail = stoup_log_error(d, error, "%s: block %u at offset %llu: read: %s", path,
			load->block_idx, (unsigned long long)block->stored_off, strerror(-error));
		/* Whatever it was, the log names it: to consumers it is a block that can not be read. */
		error = -EIO;
	}
	load_failed(d, load_idx, error, detail);
}

uint32_t stoup_loads_reap(struct stoup_daemon *d)
{
	struct stoup_decode_result results[REAP_CAP];
	struct stoup_read_done done[REAP_CAP];
	uint32_t cnt = 0;
	size_t n;

	while ((n = stoup_reader_reap(d->reader, done, REAP_CAP)) > 0) {
		for (size_t i = 0; i < n; i++)
			read_result(d, &done[i]);
		cnt += (uint32_t)n;
	}
	while ((n = stoup_decode_reap(d->decode, results, REAP_CAP)) > 0) {
		for (size_t i = 0; i < n; i++)
			decode_result(d, &results[i]);
		cnt += (uint32_t)n;
	}
	return cnt;
}
