/* SPDX-License-Identifier: Apache-2.0 */
/* holders.c - who holds blocks of which series, for monitors: rows of (consumer, series) in the control object.
 *
 *      cells of a consumer --lease--> buffer --> block of a volume --> its series --> a row of that name
 *
 * A block may hold several small series, or the end of one and the begin of the next: its consumer tells which it reads,
 * in its page. An older one does not; then it is the first of them, and the row says how many there are.
 *
 * Made anew at each publish, from the cells as the last look saw them, and written where it changed. A consumer's rows
 * are bounded, and so are all: what finds none goes into a row without a name, so that leases and bytes add up.
 *
 * If the daemon dies: rows stay as they were; one that it was writing is odd, and is not shown.
 */
#include "producer/daemon.h"

#include <string.h>
#include "shm/lease.h"

#define ROWS_CAP 32u /* of one consumer */

struct rows {
	struct stoup_control_holder row[ROWS_CAP];
	const char *name
		[ROWS_CAP]; /* that last led to the row: a look must not compare texts for each cell */
	uint32_t cnt;
};

/* ---- which series a block holds --------------------------------------------------------------- */

void stoup_holders_index(struct stoup_volume *v)
{
	const struct stoup_vol_index *index = v->file->index;
	uint32_t last;

	/* Segments are sorted by series: those of one block that belong together come one after the other. */
	for (uint32_t i = 0; i < index->segment_cnt; i++) {
		uint32_t block = index->segments[i].block_idx;

		last = v->block_last[block];
		if (v->block_shared[block] > 0 && last == index->segments[i].series_idx)
			continue;
		if (v->block_shared[block]++ == 0)
			v->block_series[block] = index->segments[i].series_idx;
		v->block_last[block] = index->segments[i].series_idx;
	}
}

/* Of a lease on a block: `told` is what its consumer wrote, which is not believed further than it goes. */
static const char *series_of(const struct stoup_daemon *d, const struct stoup_buffer *b,
	uint32_t told, uint32_t *ret_shared)
{
	const struct stoup_volume *v = &d->volumes[b->volume_idx];

	*ret_shared = 1;
	if (v->file && told > 0 && told <= v->file->index->series_cnt)
		return v->file->index->series[told - 1].name;
	if (!v->file || b->block_idx >= v->file->index->block_cnt ||
		v->block_shared[b->block_idx] == 0)
		return "";
	*ret_shared = v->block_shared[b->block_idx];
	return v->file->index->series[v->block_series[b->block_idx]].name;
}

/* ---- the rows of one consumer ----------------------------------------------------------------- */

/* The row of a series; the last one where they run out. */
static struct stoup_control_holder *row_of(struct rows *rows, const char *name)
{
	struct stoup_control_holder *row;
	size_t len, cap = sizeof(row->series) - 1;
	const char *key = name;

	for (uint32_t i = 0; i < rows->cnt; i++)
		if (rows->name[i] == key)
			return &rows->row[i];
	len = strlen(name);
	if (len > cap)
		name += len - cap;
	for (uint32_t i = 0; i < rows->cnt; i++)
		if (strcmp(rows->row[i].series, name) == 0) {
			rows->name[i] = key;
			return &rows->row[i];
		}
	if (rows->cnt == ROWS_CAP) {
		/* Others than the last one's series from here on. */
		rows->row[ROWS_CAP - 1].series[0] = 0;
		rows->name[ROWS_CAP - 1] = key;
		return &rows->row[ROWS_CAP - 1];
	}
	rows->name[rows->cnt] = key;
	row = &rows->row[rows->cnt++];
	*row = (struct stoup_control_holder){.seq = 0};
	memcpy(row->series, name, strlen(name));
	return row;
}

static void rows_make(struct stoup_daemon *d, uint32_t consumer_idx, struct rows *rows)
{
	const struct stoup_consumer *c = &d->consumers[consumer_idx];
	uint32_t high = stoup_cell_high(c->page.base, d->opt.cell_cap);
	_Atomic uint32_t *told = stoup_page_series(c->page.base, c->page.len, d->opt.cell_cap);

	rows->cnt = 0;
	for (uint32_t i = 0; i < high; i++) {
		struct stoup_control_holder *row;
		uint32_t idx = stoup_word_idx(c->seen[i]), shared;

		if (c->since_ns[i] == 0 || idx >= d->buffer_cap)
			continue;
		row = row_of(rows,
			series_of(d, &d->buffers[idx],
				atomic_load_explicit(&told[i], memory_order_relaxed), &shared));
		row->consumer_idx = consumer_idx;
		row->pid = c->pid;
		row->attach_no = c->attach_no;
		row->lease_cnt++;
		row->bytes += atomic_load_explicit(&d->table[idx].len, memory_order_relaxed);
		if (row->oldest_ns == 0 || c->since_ns[i] < row->oldest_ns)
			row->oldest_ns = c->since_ns[i];
		if (shared > row->shared_cnt)
			row->shared_cnt = shared;
	}
}

/* ---- publishing ------------------------------------------------------------------------------- */

/* All behind `seq`. */
static int same(const struct stoup_control_holder *a, const struct stoup_control_holder *b)
{
	return memcmp(&a->consumer_idx, &b->consumer_idx,
		       sizeof(*a) - offsetof(struct stoup_control_holder, consumer_idx)) == 0;
}

static void row_write(struct stoup_control_holder *to, const struct stoup_control_holder *from)
{
	uint32_t seq = atomic_load_explicit(&to->seq, memory_order_relaxed);

	if (same(to, from))
		return;
	/* [K1] odd while in work, as in the error log. */
	atomic_store_explicit(&to->seq, seq | 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy(&to->consumer_idx, &from->consumer_idx,
		sizeof(*to) - offsetof(struct stoup_control_holder, consumer_idx));
	atomic_store_explicit(&to->seq, (seq | 1) + 1, memory_order_release);
}

/* What finds no row any more is added to the last one. */
static void row_merge(struct stoup_control_holder *last, const struct stoup_control_holder *row)
{
	last->series[0] = 0;
	last->lease_cnt += row->lease_cnt;
	last->bytes += row->bytes;
	if (row->oldest_ns < last->oldest_ns)
		last->oldest_ns = row->oldest_ns;
}

void stoup_holders_publish(struct stoup_daemon *d)
{
	static const struct stoup_control_holder none;
	struct stoup_control_holder *table = stoup_control_holders(d->control), last = none;
	uint32_t used = 0, cap = d->control->holder_cap;
	struct rows rows;

	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		if (!d->consumers[i].page.base || d->consumers[i].lease_cnt == 0)
			continue;
		rows_make(d, i, &rows);
		for (uint32_t r = 0; r < rows.cnt; r++) {
			if (used + 1 < cap)
				row_write(&table[used++], &rows.row[r]);
			else if (last.lease_cnt == 0)
				last = rows.row[r];
			else
				row_merge(&last, &rows.row[r]);
		}
	}
	for (uint32_t i = used; i + 1 < cap && i < d->holders_used; i++)
		row_write(&table[i], &none);
	row_write(&table[cap - 1], &last);
	d->holders_used = used;
}
