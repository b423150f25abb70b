/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c - which lease cell a cursor uses, and what it may hold.
 *
 *      cursor:  hand [c0 c1 .. c15]  --each hit takes the next cell, round robin-->  no lock
 *      few cells free, or half of the share reserved by hands:  shared cells, under the mutex
 *
 * A released cell keeps its word with the IDLE bit, which is how the daemon learns who used what.
 * The hand goes round robin so that the last STOUP_HAND_CAP uses stay visible.
 *
 * Private and shared: a cursor's own cell needs no count, since one thread has it. stoup_hold turns
 * it into a shared one (rule 2 of lease.h: the lease stays in its cell, only our record changes),
 * and the cursor takes another for its next block. A shared cell is found by its word, so that any
 * number of holders and cursors of one block cost one cell and its bytes once.
 *
 * What may be leased: hands reserve the longest block that they have leased; those reservations
 * reach at most half of lease_bytes_cap. Shared cells count their bytes. The sum stays within the
 * cap, so that the lock-free path needs no count of its own.
 *
 * A merge leases one block per series at once, and must not be refused in the middle: all of it is promised before
 * it begins, cells and bytes. Its cursors use shared cells, since series that are small lie in one block; such a
 * cell draws its bytes from the promise and gives them back with its last reference. Whoever else joins a cell of
 * that kind pays for it from the share, so that the promise stays whole; another merge does not join it, but has a
 * cell of its own promise for the same block.
 *
 *      reserved_bytes  [ hands | promised, not drawn ]     shared_bytes  [ drawn | others ]
 *                                   `--draw-->-----------------------------^
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/client.h"
#include "shm/lease.h"

/* ---- the free list (under the mutex) --------------------------------------------------------- */

/* Oldest first: never used ones, then those idle for longest. */
static uint32_t cell_take(struct stoup_session *ses)
{
	uint32_t idx = ses->free_first;

	if (idx == STOUP_CELL_NONE)
		return idx;
	ses->free_first = ses->cells[idx].next;
	if (ses->free_first == STOUP_CELL_NONE)
		ses->free_last = STOUP_CELL_NONE;
	atomic_fetch_sub_explicit(&ses->free_cnt, 1, memory_order_relaxed);
	stoup_lease_cell_reach(ses->page, idx);
	return idx;
}

static void cell_give(struct stoup_session *ses, uint32_t idx)
{
	ses->cells[idx].next = STOUP_CELL_NONE;
	if (ses->free_last == STOUP_CELL_NONE)
		ses->free_first = idx;
	else
		ses->cells[ses->free_last].next = idx;
	ses->free_last = idx;
	atomic_fetch_add_explicit(&ses->free_cnt, 1, memory_order_relaxed);
}

int stoup_cells_init(struct stoup_session *ses, struct stoup_error *err)
{
	void *cells;

	if (posix_memalign(&cells, 64, (size_t)ses->cell_cap * sizeof(struct stoup_cell)) != 0)
		return stoup_error_set(err, -ENOMEM, "no memory for %u lease cells", ses->cell_cap);
	memset(cells, 0, (size_t)ses->cell_cap * sizeof(struct stoup_cell));
	ses->cells = cells;
	ses->free_first = ses->free_last = STOUP_CELL_NONE;
	for (uint32_t i = 0; i < STOUP_BUCKET_CNT; i++)
		ses->buckets[i] = STOUP_CELL_NONE;
	for (uint32_t i = 0; i < ses->cell_cap; i++)
		cell_give(ses, i);
	return 0;
}

void stoup_cells_fini(struct stoup_session *ses)
{
	free(ses->cells);
	ses->cells = NULL;
}

/* ---- shared cells (under the mutex) ---------------------------------------------------------- */

static uint32_t *bucket_of(struct stoup_session *ses, uint64_t word)
{
	return &ses->buckets[(word ^ word >> STOUP_WORD_IDX_BITS) % STOUP_BUCKET_CNT];
}

/* A cell that leases `word`: one of `own` or of the share. Of another merge only where `own` is NULL; who has a promise
 * takes a cell of it instead, since the share may be too small to join. */
static uint32_t shared_find(
	struct stoup_session *ses, uint64_t word, const struct stoup_promise *own)
{
	uint32_t idx = *bucket_of(ses, word), other = STOUP_CELL_NONE;

	for (; idx != STOUP_CELL_NONE; idx = ses->cells[idx].next) {
		const struct stoup_cell *cell = &ses->cells[idx];

		if (cell->word != word)
			continue;
		if (!cell->promise || cell->promise == own)
			return idx;
		if (!own)
			other = idx;
	}
	return other;
}

static void shared_insert(struct stoup_session *ses, uint32_t idx, uint32_t refs)
{
	struct stoup_cell *cell = &ses->cells[idx];
	uint32_t *bucket = bucket_of(ses, cell->word);

	cell->shared = 1;
	cell->refs = refs;
	cell->next = *bucket;
	*bucket = idx;
}

static void use_next(struct stoup_cell *cell)
{
	uint64_t use = atomic_load_explicit(&cell->use, memory_order_relaxed);

	atomic_store_explicit(&cell->use, use + 1, memory_order_relaxed);
}

/* ---- promises (under the mutex) -------------------------------------------------------------- */

static void promise_put(struct stoup_session *ses, struct stoup_promise *promise, uint32_t idx)
{
	ses->cells[idx].next = STOUP_CELL_NONE;
	if (promise->last == STOUP_CELL_NONE)
		promise->first = idx;
	else
		ses->cells[promise->last].next = idx;
	promise->last = idx;
}

static uint32_t promise_take(struct stoup_session *ses, struct stoup_promise *promise)
{
	uint32_t idx = promise->first;

	promise->first = ses->cells[idx].next;
	if (promise->first == STOUP_CELL_NONE)
		promise->last = STOUP_CELL_NONE;
	return idx;
}

static int promise_refused(struct stoup_session *ses, const struct stoup_promise *promise,
	uint64_t held, struct stoup_error *err)
{
	uint32_t free_cnt = atomic_load_explicit(&ses->free_cnt, memory_order_relaxed);
	const struct stoup_control_quota *quota = stoup_explain_quota(ses);

	if (promise->cell_cnt > free_cnt) {
		atomic_fetch_add_explicit(&ses->page->cells_refused_cnt, 1, memory_order_relaxed);
		return stoup_error_set(err, -EMFILE,
			"a merge of %u series needs %u lease cells, %u of %u are free: close cursors, "
			"merge fewer, or start stoupd with more --cells (at most %u)",
			promise->series_cnt, promise->cell_cnt, free_cnt, ses->cell_cap,
			STOUP_CELL_CAP);
	}
	/* One lease is always possible, whatever its length. */
	if (held == 0 && promise->cell_cnt == 1)
		return 0;
	/* It would wait for itself. */
	if (quota && promise->bytes > quota->bytes_cap)
		return stoup_error_set(err, -EDQUOT,
			"a merge of %u series holds %llu bytes at once, quota '%.40s' of pool '%.48s' "
			"is %llu: merge fewer, or stoupd --quota %.40s=%llu",
			promise->series_cnt, (unsigned long long)promise->bytes, quota->name,
			ses->pool, (unsigned long long)quota->bytes_cap, quota->name,
			(unsigned long long)promise->bytes);
	if (held + promise->bytes <= ses->lease_bytes_cap)
		return 0;
	atomic_fetch_add_explicit(&ses->page->bytes_refused_cnt, 1, memory_order_relaxed);
	return stoup_error_set(err, -EDQUOT,
		"a merge of %u series holds %llu bytes at once, one consumer of '%.48s' %llu "
		"(%llu in use): release, merge fewer, or stoupd --lease-bytes %llu",
		promise->series_cnt, (unsigned long long)promise->bytes, ses->pool,
		(unsigned long long)ses->lease_bytes_cap, (unsigned long long)held,
		(unsigned long long)(held + promise->bytes));
}

static int promise_keep(
	struct stoup_session *ses, struct stoup_promise *promise, struct stoup_error *err)
{
	int rc = promise_refused(ses, promise, ses->reserved_bytes + ses->shared_bytes, err);

	if (rc < 0)
		return rc;
	promise->session_no = ses->no;
	promise->drawn = 0;
	promise->first = promise->last = STOUP_CELL_NONE;
	for (uint32_t i = 0; i < promise->cell_cnt; i++)
		promise_put(ses, promise, cell_take(ses));
	ses->reserved_bytes += promise->bytes;
	return 0;
}

/* 1 with a cell whose bytes are drawn; 0: beyond what was promised, take it as others do. */
static int promise_draw(struct stoup_session *ses, struct stoup_promise *promise, uint64_t bytes,
	uint32_t *ret, struct stoup_error *err)
{
	int rc = promise->session_no == ses->no ? 0 : promise_keep(ses, promise, err);

	if (rc < 0)
		return rc;
	if (promise->drawn + bytes > promise->bytes || promise->first == STOUP_CELL_NONE)
		return 0;
	*ret = promise_take(ses, promise);
	ses->cells[*ret].promise = promise;
	promise->drawn += bytes;
	ses->reserved_bytes -= bytes;
	return 1;
}

/* A cell of the promise becomes one of the share; the promise is whole again. */
static void promise_undraw(struct stoup_session *ses, struct stoup_cell *cell)
{
	struct stoup_promise *promise = cell->promise;

	cell->promise = NULL;
	/* The merge went over to another session, with all of its promise. */
	if (promise->session_no != ses->no)
		return;
	promise->drawn -= cell->bytes;
	ses->reserved_bytes += cell->bytes;
}

/* Nobody leases by the cell any more: its bytes are free. */
static void cell_return(struct stoup_session *ses, uint32_t idx)
{
	struct stoup_cell *cell = &ses->cells[idx];
	struct stoup_promise *promise = cell->promise;

	ses->shared_bytes -= cell->bytes;
	if (promise)
		promise_undraw(ses, cell);
	if (promise && promise->session_no == ses->no)
		promise_put(ses, promise, idx);
	else
		cell_give(ses, idx);
}

static int over_quota(struct stoup_session *ses, uint64_t bytes, struct stoup_error *err);

/* One that is not of the merge joins a cell: 0; -EDQUOT when the share cannot pay for it. */
static int promise_join(struct stoup_session *ses, struct stoup_cell *cell,
	const struct stoup_promise *own, struct stoup_error *err)
{
	struct stoup_promise *promise = cell->promise;
	uint32_t spare;
	int rc;

	if (!promise || promise == own)
		return 0;
	rc = over_quota(ses, cell->bytes, err);
	if (rc < 0)
		return rc;
	promise_undraw(ses, cell);
	if (promise->session_no == ses->no && (spare = cell_take(ses)) != STOUP_CELL_NONE)
		promise_put(ses, promise, spare);
	return 0;
}

int stoup_promise_make(
	struct stoup_session *ses, struct stoup_promise *promise, struct stoup_error *err)
{
	int rc = -EPIPE;

	pthread_mutex_lock(&ses->client->mutex);
	if (ses->page)
		rc = promise_keep(ses, promise, err);
	pthread_mutex_unlock(&ses->client->mutex);
	return rc;
}

void stoup_promise_end(struct stoup *st, struct stoup_promise *promise)
{
	pthread_mutex_lock(&st->mutex);
	for (struct stoup_session *ses = st->sessions; ses; ses = ses->next) {
		if (!ses->cells)
			continue;
		/* Cells that others joined stay theirs, paid for with what was drawn. */
		for (uint32_t i = 0; i < ses->cell_cap; i++)
			if (ses->cells[i].promise == promise)
				ses->cells[i].promise = NULL;
		if (promise->session_no != ses->no)
			continue;
		while (promise->first != STOUP_CELL_NONE)
			cell_give(ses, promise_take(ses, promise));
		ses->reserved_bytes -= promise->bytes - promise->drawn;
	}
	promise->session_no = 0;
	pthread_mutex_unlock(&st->mutex);
}

/* ---- shared cells, again --------------------------------------------------------------------- */

int stoup_cell_drop(struct stoup_session *ses, uint32_t idx)
{
	struct stoup_cell *cell = &ses->cells[idx];
	uint32_t *at = bucket_of(ses, cell->word);
	int ring;

	if (--cell->refs > 0)
		return 0;
	while (*at != idx)
		at = &ses->cells[*at].next;
	*at = cell->next;
	cell->shared = 0;
	use_next(cell);
	ring = stoup_lease_release(&ses->page->cells[idx], cell->word, &ses->control->starving);
	cell_return(ses, idx);
	return ring;
}

static int over_quota(struct stoup_session *ses, uint64_t bytes, struct stoup_error *err)
{
	uint64_t held = ses->reserved_bytes + ses->shared_bytes;

	/* One lease is always possible, whatever its length. */
	if (held == 0 || held + bytes <= ses->lease_bytes_cap)
		return 0;
	atomic_fetch_add_explicit(&ses->page->bytes_refused_cnt, 1, memory_order_relaxed);
	return stoup_error_set(err, -EDQUOT,
		"this process holds %llu of the %llu bytes that pool '%s' lets one consumer lease, "
		"and needs "
		"%llu more: release leases, close cursors, or start stoupd with a larger --size or "
		"--lease-bytes",
		(unsigned long long)held, (unsigned long long)ses->lease_bytes_cap, ses->pool,
		(unsigned long long)bytes);
}

/* A free cell for a shared lease, its bytes counted. */
static int shared_take(struct stoup_session *ses, struct stoup_promise *promise, uint64_t bytes,
	uint32_t *ret, struct stoup_error *err)
{
	uint32_t idx = STOUP_CELL_NONE;
	int rc = promise ? promise_draw(ses, promise, bytes, &idx, err) : 0;

	if (rc == 0)
		rc = over_quota(ses, bytes, err);
	if (rc < 0)
		return rc;
	if (idx == STOUP_CELL_NONE)
		idx = cell_take(ses);
	if (idx == STOUP_CELL_NONE) {
		atomic_fetch_add_explicit(&ses->page->cells_refused_cnt, 1, memory_order_relaxed);
		return stoup_error_set(err, -EMFILE,
			"all %u lease cells of this process are in use: release leases, close "
			"cursors, or start stoupd with more --cells (at most %u)",
			ses->cell_cap, STOUP_CELL_CAP);
	}
	ses->cells[idx].bytes = bytes;
	ses->shared_bytes += bytes;
	*ret = idx;
	return 0;
}

/* Cell idx leases `word`: make it shared, or count on the cell that has the word already. Returns
 * the cell that counts. A merge whose cell is joined here by another, for which the share is too small, goes on
 * paying for it: the lease is taken already. */
static uint32_t shared_settle(
	struct stoup_session *ses, const struct stoup_promise *own, uint32_t idx, uint64_t word)
{
	uint32_t other = shared_find(ses, word, own);

	if (other == STOUP_CELL_NONE) {
		ses->cells[idx].word = word;
		use_next(&ses->cells[idx]);
		shared_insert(ses, idx, 1);
		return idx;
	}
	ses->cells[other].refs++;
	if (stoup_lease_release(&ses->page->cells[idx], word, &ses->control->starving))
		stoup_wait_ring(ses);
	cell_return(ses, idx);
	promise_join(ses, &ses->cells[other], own, NULL);
	return other;
}

/* ---- hands ----------------------------------------------------------------------------------- */

/* A cell of the hand is still leased although its grip is gone: in the child of a fork, whose parent's
 * thread was just taking it. Nobody else knows of it. */
static void stray_release(struct stoup_session *ses, uint32_t idx)
{
	struct stoup_cell *cell = &ses->cells[idx];

	if (!(atomic_load_explicit(&cell->use, memory_order_relaxed) & 1) || cell->shared)
		return;
	use_next(cell);
	if (ses->page)
		stoup_lease_release(&ses->page->cells[idx], cell->word, &ses->control->starving);
}

static void hand_empty(struct stoup_session *ses, struct stoup_hand *hand)
{
	for (uint32_t i = 0; i < hand->cnt; i++) {
		stray_release(ses, hand->cells[i]);
		cell_give(ses, hand->cells[i]);
	}
	hand->cnt = hand->at = 0;
	ses->reserved_bytes -= hand->reserved;
	hand->reserved = 0;
}

void stoup_hand_fini(struct stoup_session *ses, struct stoup_hand *hand)
{
	if (hand->cnt == 0 && hand->reserved == 0)
		return;
	pthread_mutex_lock(&ses->client->mutex);
	hand_empty(ses, hand);
	pthread_mutex_unlock(&ses->client->mutex);
}

/* A cell of the hand became shared: it leaves the hand. */
static void hand_drop(struct stoup_hand *hand, uint32_t idx)
{
	for (uint32_t i = 0; i < hand->cnt; i++) {
		if (hand->cells[i] != idx)
			continue;
		hand->cells[i] = hand->cells[--hand->cnt];
		if (hand->at > hand->cnt)
			hand->at = hand->cnt;
		return;
	}
}

static int cells_plenty(const struct stoup_session *ses)
{
	return atomic_load_explicit(&ses->free_cnt, memory_order_relaxed) > ses->cell_cap / 4;
}

/* Grow the hand: one cell for the many cursors over one block, then a line of cells at a time. */
static void hand_grow(struct stoup_session *ses, struct stoup_hand *hand)
{
	uint32_t want = hand->cnt == 0 ? 1 : hand->cnt < 8 ? 8 : STOUP_HAND_CAP;

	while (hand->cnt < want && cells_plenty(ses))
		hand->cells[hand->cnt++] = cell_take(ses);
}

/* May the hand count `bytes` as its reservation? Hands stay within half of the share. */
static int hand_reserve(struct stoup_session *ses, struct stoup_hand *hand, uint64_t bytes)
{
	uint64_t others = ses->reserved_bytes - hand->reserved;

	if (bytes <= hand->reserved)
		return 1;
	if (others + bytes > ses->lease_bytes_cap / 2 ||
		others + bytes + ses->shared_bytes > ses->lease_bytes_cap)
		return 0;
	ses->reserved_bytes = others + bytes;
	hand->reserved = bytes;
	return 1;
}

static int hand_prepare(struct stoup_session *ses, struct stoup_hand *hand, uint64_t bytes)
{
	int ready;

	if (hand->promise)
		return 0;
	pthread_mutex_lock(&ses->client->mutex);
	if (hand->at == hand->cnt)
		hand_grow(ses, hand);
	if (hand->at == hand->cnt)
		hand->at = 0;
	ready = hand->cnt > 0 && hand_reserve(ses, hand, bytes);
	if (!ready)
		hand_empty(ses, hand);
	pthread_mutex_unlock(&ses->client->mutex);
	return ready;
}

/* 1: the cell hand->cells[hand->at] may lease `bytes`. 0: use a shared cell. */
static inline int hand_ready(struct stoup_session *ses, struct stoup_hand *hand, uint64_t bytes)
{
	if (bytes > hand->reserved)
		return hand_prepare(ses, hand, bytes);
	if (hand->at < hand->cnt)
		return 1;
	if (hand->cnt == 0 || (hand->cnt < STOUP_HAND_CAP && cells_plenty(ses)))
		return hand_prepare(ses, hand, bytes);
	hand->at = 0;
	return 1;
}

/* ---- grips ----------------------------------------------------------------------------------- */

/* Bytes of the pool that a block occupies: extents are whole pages. */
static inline uint64_t block_bytes(const struct stoup_snapshot_volume *vol, uint32_t block_idx)
{
	return ((uint64_t)vol->blocks[block_idx].raw_len + STOUP_OS_PAGE_LEN - 1) &
	       ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
}

/* The cell leases grip->word: find the bytes. The daemon's table is checked like any input; what
 * does not fit is given back. */
static int grip_place(struct stoup_session *ses, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx, struct stoup_grip *grip,
	struct stoup_error *err)
{
	uint32_t raw_len = vol->blocks[block_idx].raw_len, idx = stoup_word_idx(grip->word),
		 len = 0;
	uint64_t off = 0;

	if (idx < ses->control->buffer_cap) {
		off = atomic_load_explicit(&ses->buffers[idx].off, memory_order_relaxed);
		len = atomic_load_explicit(&ses->buffers[idx].len, memory_order_relaxed);
	}
	if (len != raw_len || off > ses->data_region.len || len > ses->data_region.len - off) {
		stoup_grip_release(ses, hand, grip);
		return stoup_error_set(err, -EPROTO,
			"the daemon of pool '%s' granted block %u of volume %u in buffer %u "
			"(offset %llu, %u "
			"bytes), which does not fit its %u bytes: restart the daemon",
			ses->pool, block_idx, vol->catalog->volume_idx, idx,
			(unsigned long long)off, len, raw_len);
	}
	grip->base = (const uint8_t *)ses->data_region.base + off;
	grip->raw_len = raw_len;
	return 1;
}

static void grip_private(struct stoup_session *ses, uint32_t idx, uint64_t word, uint64_t bytes,
	struct stoup_grip *grip)
{
	struct stoup_cell *cell = &ses->cells[idx];

	cell->word = word;
	cell->bytes = bytes;
	use_next(cell);
	grip->cell_idx = idx;
	grip->word = word;
	grip->use = atomic_load_explicit(&cell->use, memory_order_relaxed);
}

static void grip_shared(struct stoup_session *ses, uint32_t idx, struct stoup_grip *grip)
{
	grip->cell_idx = idx;
	grip->word = ses->cells[idx].word;
	grip->use = atomic_load_explicit(&ses->cells[idx].use, memory_order_relaxed);
}

/* Under the mutex: 1 leased, 0 miss, or an error. */
static int shared_hit(struct stoup_session *ses, struct stoup_promise *promise,
	const _Atomic uint64_t *residency, uint64_t bytes, struct stoup_grip *grip,
	struct stoup_error *err)
{
	/* A word that one of our cells leases cannot be evicted: joining it needs no exchange. */
	uint64_t word = atomic_load_explicit(residency, memory_order_acquire);
	uint32_t idx;
	int rc;

	if (word == 0)
		return 0;
	idx = shared_find(ses, word, promise);
	if (idx != STOUP_CELL_NONE) {
		rc = promise_join(ses, &ses->cells[idx], promise, err);
		if (rc < 0)
			return rc;
		ses->cells[idx].refs++;
		grip_shared(ses, idx, grip);
		return 1;
	}
	rc = shared_take(ses, promise, bytes, &idx, err);
	if (rc < 0)
		return rc;
	word = stoup_lease_acquire(residency, &ses->page->cells[idx]);
	if (word == 0) {
		cell_return(ses, idx);
		return 0;
	}
	grip_shared(ses, shared_settle(ses, promise, idx, word), grip);
	return 1;
}

/* Under a quota only what is leased here already may be taken without asking. Under the mutex, as shared_hit. */
static int joined_hit(struct stoup_session *ses, struct stoup_promise *promise,
	const _Atomic uint64_t *residency, struct stoup_grip *grip, struct stoup_error *err)
{
	uint64_t word = atomic_load_explicit(residency, memory_order_acquire);
	uint32_t idx = word ? shared_find(ses, word, promise) : STOUP_CELL_NONE;
	int rc;

	if (idx == STOUP_CELL_NONE)
		return 0;
	rc = promise_join(ses, &ses->cells[idx], promise, err);
	if (rc < 0)
		return rc;
	ses->cells[idx].refs++;
	grip_shared(ses, idx, grip);
	return 1;
}

int stoup_grip_hit(struct stoup_session *ses, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx, struct stoup_grip *grip,
	struct stoup_error *err)
{
	const _Atomic uint64_t *residency = &vol->residency[block_idx];
	uint64_t bytes = block_bytes(vol, block_idx), word;
	uint32_t idx;
	int rc;

	if (atomic_load_explicit(residency, memory_order_relaxed) == 0)
		return 0;
	if (!ses->asks && hand_ready(ses, hand, bytes)) {
		idx = hand->cells[hand->at];
		word = stoup_lease_acquire(residency, &ses->page->cells[idx]);
		if (word == 0)
			return 0;
		hand->at++;
		grip_private(ses, idx, word, bytes, grip);
		return grip_place(ses, hand, vol, block_idx, grip, err);
	}
	pthread_mutex_lock(&ses->client->mutex);
	rc = ses->asks ? joined_hit(ses, hand->promise, residency, grip, err)
	               : shared_hit(ses, hand->promise, residency, bytes, grip, err);
	pthread_mutex_unlock(&ses->client->mutex);
	return rc <= 0 ? rc : grip_place(ses, hand, vol, block_idx, grip, err);
}

static int shared_wait(struct stoup_session *ses, struct stoup_promise *promise,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx,
	const struct stoup_ahead *ahead, struct stoup_grip *grip, struct stoup_error *err)
{
	uint64_t word = 0;
	uint32_t idx = 0;
	int rc;

	pthread_mutex_lock(&ses->client->mutex);
	rc = shared_take(ses, promise, block_bytes(vol, block_idx), &idx, err);
	pthread_mutex_unlock(&ses->client->mutex);
	if (rc < 0)
		return rc;
	rc = stoup_wait_grant(ses, vol, block_idx, idx, ahead, &word, err);
	pthread_mutex_lock(&ses->client->mutex);
	if (rc < 0)
		cell_return(ses, idx);
	else
		grip_shared(ses, shared_settle(ses, promise, idx, word), grip);
	pthread_mutex_unlock(&ses->client->mutex);
	return rc;
}

int stoup_grip_wait(struct stoup_session *ses, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx,
	const struct stoup_ahead *ahead, struct stoup_grip *grip, struct stoup_error *err)
{
	uint64_t bytes = block_bytes(vol, block_idx), word;
	uint32_t idx;
	int rc;

	if (hand_ready(ses, hand, bytes)) {
		idx = hand->cells[hand->at];
		rc = stoup_wait_grant(ses, vol, block_idx, idx, ahead, &word, err);
		if (rc < 0)
			return rc;
		hand->at++;
		grip_private(ses, idx, word, bytes, grip);
	} else {
		rc = shared_wait(ses, hand->promise, vol, block_idx, ahead, grip, err);
		if (rc < 0)
			return rc;
	}
	rc = grip_place(ses, hand, vol, block_idx, grip, err);
	return rc < 0 ? rc : 0;
}

void stoup_grip_release(struct stoup_session *ses, struct stoup_hand *hand, struct stoup_grip *grip)
{
	uint32_t idx = grip->cell_idx;
	struct stoup_cell *cell;
	int ring;

	if (idx == STOUP_CELL_NONE)
		return;
	grip->cell_idx = STOUP_CELL_NONE;
	cell = &ses->cells[idx];
	/* Differs only in the child of a fork, for cursors that other threads of the parent had. */
	if (atomic_load_explicit(&cell->use, memory_order_relaxed) != grip->use)
		return;
	if (!cell->shared) {
		use_next(cell);
		ring = stoup_lease_release(
			&ses->page->cells[idx], grip->word, &ses->control->starving);
	} else {
		pthread_mutex_lock(&ses->client->mutex);
		hand_drop(hand, idx);
		ring = stoup_cell_drop(ses, idx);
		pthread_mutex_unlock(&ses->client->mutex);
	}
	if (ring)
		stoup_wait_ring(ses);
}

/* ---- for hold.c and fork.c ------------------------------------------------------------------- */

int stoup_cell_share(
	struct stoup_session *ses, uint32_t idx, const struct stoup_promise *own, uint32_t *ret)
{
	struct stoup_cell *cell = &ses->cells[idx];
	uint32_t other;
	int rc;

	if (!cell->shared) {
		other = shared_find(ses, cell->word, NULL);
		if (other == STOUP_CELL_NONE) {
			rc = over_quota(ses, cell->bytes, NULL);
			if (rc < 0)
				return rc;
			ses->shared_bytes += cell->bytes;
			shared_insert(ses, idx, 1); /* the cursor's own reference */
			other = idx;
		}
		idx = other;
	}
	rc = promise_join(ses, &ses->cells[idx], own, NULL);
	if (rc < 0)
		return rc;
	ses->cells[idx].refs++;
	*ret = idx;
	return 0;
}

void stoup_cells_settle(struct stoup_session *ses, uint32_t cell_high)
{
	for (uint32_t i = 0; i < cell_high && i < ses->cell_cap; i++) {
		struct stoup_cell *cell = &ses->cells[i];
		_Atomic uint64_t *word = &ses->page->cells[i];
		uint64_t has = atomic_load_explicit(word, memory_order_relaxed);
		int leased = (int)(atomic_load_explicit(&cell->use, memory_order_relaxed) & 1);

		/* Another thread of the parent went on after the copy: what it let go here is
		 * nobody's, what it took since is not ours. */
		if (leased && has == cell->word)
			continue;
		if (leased && !cell->shared)
			use_next(cell);
		atomic_store_explicit(word, stoup_cell_leased(has) ? has | STOUP_WORD_IDLE : 0,
			memory_order_release);
	}
	if (atomic_load_explicit(&ses->page->cell_high, memory_order_relaxed) < cell_high)
		atomic_store_explicit(&ses->page->cell_high, cell_high, memory_order_seq_cst);
}
