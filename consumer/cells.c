/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c - which lease cell a cursor uses, what it may hold, and leases that outlive a cursor's
 * step.
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
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/client.h"
#include "shm/lease.h"

/* ---- the free list (under the mutex) --------------------------------------------------------- */

/* Oldest first: never used ones, then those idle for longest. */
static uint32_t cell_take(struct stoup *st)
{
	uint32_t idx = st->free_first;

	if (idx == STOUP_CELL_NONE)
		return idx;
	st->free_first = st->cells[idx].next;
	if (st->free_first == STOUP_CELL_NONE)
		st->free_last = STOUP_CELL_NONE;
	atomic_fetch_sub_explicit(&st->free_cnt, 1, memory_order_relaxed);
	stoup_lease_cell_reach(st->page, idx);
	return idx;
}

static void cell_give(struct stoup *st, uint32_t idx)
{
	st->cells[idx].next = STOUP_CELL_NONE;
	if (st->free_last == STOUP_CELL_NONE)
		st->free_first = idx;
	else
		st->cells[st->free_last].next = idx;
	st->free_last = idx;
	atomic_fetch_add_explicit(&st->free_cnt, 1, memory_order_relaxed);
}

int stoup_cells_init(struct stoup *st, struct stoup_error *err)
{
	void *cells;

	if (posix_memalign(&cells, 64, (size_t)st->cell_cap * sizeof(struct stoup_cell)) != 0)
		return stoup_error_set(err, -ENOMEM, "no memory for %u lease cells", st->cell_cap);
	memset(cells, 0, (size_t)st->cell_cap * sizeof(struct stoup_cell));
	st->cells = cells;
	st->free_first = st->free_last = STOUP_CELL_NONE;
	for (uint32_t i = 0; i < STOUP_BUCKET_CNT; i++)
		st->buckets[i] = STOUP_CELL_NONE;
	for (uint32_t i = 0; i < st->cell_cap; i++)
		cell_give(st, i);
	st->hold_free = STOUP_CELL_NONE;
	return 0;
}

void stoup_cells_fini(struct stoup *st)
{
	free(st->cells);
	free(st->holds);
	st->cells = NULL;
	st->holds = NULL;
}

/* ---- shared cells (under the mutex) ---------------------------------------------------------- */

static uint32_t *bucket_of(struct stoup *st, uint64_t word)
{
	return &st->buckets[(word ^ word >> STOUP_WORD_IDX_BITS) % STOUP_BUCKET_CNT];
}

static uint32_t shared_find(struct stoup *st, uint64_t word)
{
	uint32_t idx = *bucket_of(st, word);

	while (idx != STOUP_CELL_NONE && st->cells[idx].word != word)
		idx = st->cells[idx].next;
	return idx;
}

static void shared_insert(struct stoup *st, uint32_t idx, uint32_t refs)
{
	struct stoup_cell *cell = &st->cells[idx];
	uint32_t *bucket = bucket_of(st, cell->word);

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

/* One reference less; the last one ends the lease. Returns 1 when the doorbell must ring. */
static int shared_drop(struct stoup *st, uint32_t idx)
{
	struct stoup_cell *cell = &st->cells[idx];
	uint32_t *at = bucket_of(st, cell->word);
	int ring;

	if (--cell->refs > 0)
		return 0;
	while (*at != idx)
		at = &st->cells[*at].next;
	*at = cell->next;
	cell->shared = 0;
	use_next(cell);
	st->shared_bytes -= cell->bytes;
	ring = stoup_lease_release(&st->page->cells[idx], cell->word, &st->control->starving);
	cell_give(st, idx);
	return ring;
}

static int over_quota(const struct stoup *st, uint64_t bytes, struct stoup_error *err)
{
	uint64_t held = st->reserved_bytes + st->shared_bytes;

	/* One lease is always possible, whatever its length. */
	if (held == 0 || held + bytes <= st->lease_bytes_cap)
		return 0;
	return stoup_error_set(err, -EDQUOT,
		"this process holds %llu of the %llu bytes that pool '%s' lets one consumer lease, "
		"and needs "
		"%llu more: release leases, close cursors, or start stoupd with a larger --size or "
		"--lease-bytes",
		(unsigned long long)held, (unsigned long long)st->lease_bytes_cap, st->pool,
		(unsigned long long)bytes);
}

/* A free cell for a shared lease, its bytes counted. */
static int shared_take(struct stoup *st, uint64_t bytes, uint32_t *ret, struct stoup_error *err)
{
	int rc = over_quota(st, bytes, err);
	uint32_t idx;

	if (rc < 0)
		return rc;
	idx = cell_take(st);
	if (idx == STOUP_CELL_NONE)
		return stoup_error_set(err, -EMFILE,
			"all %u lease cells of this process are in use: release leases or close "
			"cursors",
			st->cell_cap);
	st->cells[idx].bytes = bytes;
	st->shared_bytes += bytes;
	*ret = idx;
	return 0;
}

static void shared_untake(struct stoup *st, uint32_t idx)
{
	st->shared_bytes -= st->cells[idx].bytes;
	cell_give(st, idx);
}

/* Cell idx leases `word`: make it shared, or count on the cell that has the word already. Returns
 * the cell that counts. */
static uint32_t shared_settle(struct stoup *st, uint32_t idx, uint64_t word)
{
	uint32_t other = shared_find(st, word);

	if (other == STOUP_CELL_NONE) {
		st->cells[idx].word = word;
		use_next(&st->cells[idx]);
		shared_insert(st, idx, 1);
		return idx;
	}
	st->cells[other].refs++;
	if (stoup_lease_release(&st->page->cells[idx], word, &st->control->starving))
		stoup_wait_ring(st);
	shared_untake(st, idx);
	return other;
}

/* ---- hands ----------------------------------------------------------------------------------- */

static void hand_empty(struct stoup *st, struct stoup_hand *hand)
{
	for (uint32_t i = 0; i < hand->cnt; i++)
		cell_give(st, hand->cells[i]);
	hand->cnt = hand->at = 0;
	st->reserved_bytes -= hand->reserved;
	hand->reserved = 0;
}

void stoup_hand_fini(struct stoup *st, struct stoup_hand *hand)
{
	if (hand->cnt == 0 && hand->reserved == 0)
		return;
	pthread_mutex_lock(&st->mutex);
	hand_empty(st, hand);
	pthread_mutex_unlock(&st->mutex);
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

static int cells_plenty(const struct stoup *st)
{
	return atomic_load_explicit(&st->free_cnt, memory_order_relaxed) > st->cell_cap / 4;
}

/* Grow the hand: one cell for the many cursors over one block, then a line of cells at a time. */
static void hand_grow(struct stoup *st, struct stoup_hand *hand)
{
	uint32_t want = hand->cnt == 0 ? 1 : hand->cnt < 8 ? 8 : STOUP_HAND_CAP;

	while (hand->cnt < want && cells_plenty(st))
		hand->cells[hand->cnt++] = cell_take(st);
}

/* May the hand count `bytes` as its reservation? Hands stay within half of the share. */
static int hand_reserve(struct stoup *st, struct stoup_hand *hand, uint64_t bytes)
{
	uint64_t others = st->reserved_bytes - hand->reserved;

	if (bytes <= hand->reserved)
		return 1;
	if (others + bytes > st->lease_bytes_cap / 2 ||
		others + bytes + st->shared_bytes > st->lease_bytes_cap)
		return 0;
	st->reserved_bytes = others + bytes;
	hand->reserved = bytes;
	return 1;
}

static int hand_prepare(struct stoup *st, struct stoup_hand *hand, uint64_t bytes)
{
	int ready;

	pthread_mutex_lock(&st->mutex);
	if (hand->at == hand->cnt)
		hand_grow(st, hand);
	if (hand->at == hand->cnt)
		hand->at = 0;
	ready = hand->cnt > 0 && hand_reserve(st, hand, bytes);
	if (!ready)
		hand_empty(st, hand);
	pthread_mutex_unlock(&st->mutex);
	return ready;
}

/* 1: the cell hand->cells[hand->at] may lease `bytes`. 0: use a shared cell. */
static inline int hand_ready(struct stoup *st, struct stoup_hand *hand, uint64_t bytes)
{
	if (bytes > hand->reserved)
		return hand_prepare(st, hand, bytes);
	if (hand->at < hand->cnt)
		return 1;
	if (hand->cnt == 0 || (hand->cnt < STOUP_HAND_CAP && cells_plenty(st)))
		return hand_prepare(st, hand, bytes);
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
static int grip_place(struct stoup *st, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx, struct stoup_grip *grip,
	struct stoup_error *err)
{
	uint32_t raw_len = vol->blocks[block_idx].raw_len, idx = stoup_word_idx(grip->word),
		 len = 0;
	uint64_t off = 0;

	if (idx < st->control->buffer_cap) {
		off = atomic_load_explicit(&st->buffers[idx].off, memory_order_relaxed);
		len = atomic_load_explicit(&st->buffers[idx].len, memory_order_relaxed);
	}
	if (len != raw_len || off > st->data_region.len || len > st->data_region.len - off) {
		stoup_grip_release(st, hand, grip);
		return stoup_error_set(err, -EPROTO,
			"the daemon of pool '%s' granted block %u of volume %u in buffer %u "
			"(offset %llu, %u "
			"bytes), which does not fit its %u bytes: restart the daemon",
			st->pool, block_idx, vol->catalog->volume_idx, idx, (unsigned long long)off,
			len, raw_len);
	}
	grip->base = (const uint8_t *)st->data_region.base + off;
	grip->raw_len = raw_len;
	return 1;
}

static void grip_private(
	struct stoup *st, uint32_t idx, uint64_t word, uint64_t bytes, struct stoup_grip *grip)
{
	struct stoup_cell *cell = &st->cells[idx];

	cell->word = word;
	cell->bytes = bytes;
	use_next(cell);
	grip->cell_idx = idx;
	grip->word = word;
	grip->use = atomic_load_explicit(&cell->use, memory_order_relaxed);
}

static void grip_shared(struct stoup *st, uint32_t idx, struct stoup_grip *grip)
{
	grip->cell_idx = idx;
	grip->word = st->cells[idx].word;
	grip->use = atomic_load_explicit(&st->cells[idx].use, memory_order_relaxed);
}

/* Under the mutex: 1 leased, 0 miss, or an error. */
static int shared_hit(struct stoup *st, const _Atomic uint64_t *residency, uint64_t bytes,
	struct stoup_grip *grip, struct stoup_error *err)
{
	/* A word that one of our cells leases cannot be evicted: joining it needs no exchange. */
	uint64_t word = atomic_load_explicit(residency, memory_order_acquire);
	uint32_t idx;
	int rc;

	if (word == 0)
		return 0;
	idx = shared_find(st, word);
	if (idx != STOUP_CELL_NONE) {
		st->cells[idx].refs++;
		grip_shared(st, idx, grip);
		return 1;
	}
	rc = shared_take(st, bytes, &idx, err);
	if (rc < 0)
		return rc;
	word = stoup_lease_acquire(residency, &st->page->cells[idx]);
	if (word == 0) {
		shared_untake(st, idx);
		return 0;
	}
	grip_shared(st, shared_settle(st, idx, word), grip);
	return 1;
}

int stoup_grip_hit(struct stoup *st, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx, struct stoup_grip *grip,
	struct stoup_error *err)
{
	const _Atomic uint64_t *residency = &vol->residency[block_idx];
	uint64_t bytes = block_bytes(vol, block_idx), word;
	uint32_t idx;
	int rc;

	if (atomic_load_explicit(residency, memory_order_relaxed) == 0)
		return 0;
	if (hand_ready(st, hand, bytes)) {
		idx = hand->cells[hand->at];
		word = stoup_lease_acquire(residency, &st->page->cells[idx]);
		if (word == 0)
			return 0;
		hand->at++;
		grip_private(st, idx, word, bytes, grip);
		return grip_place(st, hand, vol, block_idx, grip, err);
	}
	pthread_mutex_lock(&st->mutex);
	rc = shared_hit(st, residency, bytes, grip, err);
	pthread_mutex_unlock(&st->mutex);
	return rc <= 0 ? rc : grip_place(st, hand, vol, block_idx, grip, err);
}

static int shared_wait(struct stoup *st, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, const struct stoup_ahead *ahead, struct stoup_grip *grip,
	struct stoup_error *err)
{
	uint64_t word = 0;
	uint32_t idx = 0;
	int rc;

	pthread_mutex_lock(&st->mutex);
	rc = shared_take(st, block_bytes(vol, block_idx), &idx, err);
	pthread_mutex_unlock(&st->mutex);
	if (rc < 0)
		return rc;
	rc = stoup_wait_grant(st, vol, block_idx, idx, ahead, &word, err);
	pthread_mutex_lock(&st->mutex);
	if (rc < 0)
		shared_untake(st, idx);
	else
		grip_shared(st, shared_settle(st, idx, word), grip);
	pthread_mutex_unlock(&st->mutex);
	return rc;
}

int stoup_grip_wait(struct stoup *st, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx,
	const struct stoup_ahead *ahead, struct stoup_grip *grip, struct stoup_error *err)
{
	uint64_t bytes = block_bytes(vol, block_idx), word;
	uint32_t idx;
	int rc;

	if (hand_ready(st, hand, bytes)) {
		idx = hand->cells[hand->at];
		rc = stoup_wait_grant(st, vol, block_idx, idx, ahead, &word, err);
		if (rc < 0)
			return rc;
		hand->at++;
		grip_private(st, idx, word, bytes, grip);
	} else {
		rc = shared_wait(st, vol, block_idx, ahead, grip, err);
		if (rc < 0)
			return rc;
	}
	rc = grip_place(st, hand, vol, block_idx, grip, err);
	return rc < 0 ? rc : 0;
}

void stoup_grip_release(struct stoup *st, struct stoup_hand *hand, struct stoup_grip *grip)
{
	uint32_t idx = grip->cell_idx;
	struct stoup_cell *cell;
	int ring;

	if (idx == STOUP_CELL_NONE)
		return;
	cell = &st->cells[idx];
	if (!cell->shared) {
		use_next(cell);
		ring = stoup_lease_release(
			&st->page->cells[idx], grip->word, &st->control->starving);
	} else {
		pthread_mutex_lock(&st->mutex);
		hand_drop(hand, idx);
		ring = shared_drop(st, idx);
		pthread_mutex_unlock(&st->mutex);
	}
	grip->cell_idx = STOUP_CELL_NONE;
	if (ring)
		stoup_wait_ring(st);
}

/* ---- holds ----------------------------------------------------------------------------------- */

/* Under the mutex: room for one more entry. */
static int hold_take(struct stoup *st, uint32_t *ret)
{
	uint32_t cap = st->hold_cap ? st->hold_cap * 2 : 64;
	struct stoup_hold *more;

	if (st->hold_free == STOUP_CELL_NONE) {
		if (st->hold_cap > UINT32_MAX / 4)
			return -ENOMEM;
		more = realloc(st->holds, (size_t)cap * sizeof(*more));
		if (!more)
			return -ENOMEM;
		for (uint32_t i = st->hold_cap; i < cap; i++)
			more[i] =
				(struct stoup_hold){.next = i + 1 < cap ? i + 1 : STOUP_CELL_NONE};
		st->hold_free = st->hold_cap;
		st->holds = more;
		st->hold_cap = cap;
	}
	*ret = st->hold_free;
	st->hold_free = st->holds[*ret].next;
	return 0;
}

static void hold_give(struct stoup *st, uint32_t idx)
{
	st->holds[idx].use = 0;
	st->holds[idx].next = st->hold_free;
	st->hold_free = idx;
}

/* Under the mutex: one reference more on the bytes that cell idx leases. */
static int hold_count(struct stoup *st, uint32_t idx, uint32_t *ret)
{
	struct stoup_cell *cell = &st->cells[idx];
	uint32_t other;
	int rc;

	if (!cell->shared) {
		other = shared_find(st, cell->word);
		if (other == STOUP_CELL_NONE) {
			rc = over_quota(st, cell->bytes, NULL);
			if (rc < 0)
				return rc;
			st->shared_bytes += cell->bytes;
			shared_insert(st, idx, 1); /* the cursor's own reference */
			other = idx;
		}
		idx = other;
	}
	st->cells[idx].refs++;
	*ret = idx;
	return 0;
}

int stoup_hold(const struct stoup_span *span, struct stoup_lease *ret)
{
	struct stoup *st = span ? span->client : NULL;
	uint32_t hold_idx, cell_idx;
	int rc;

	if (!st || !ret || span->cell_idx >= st->cell_cap)
		return -EINVAL;
	if (!stoup_client_own(st))
		return -ECHILD;
	pthread_mutex_lock(&st->mutex);
	rc = -EINVAL;
	if (!(span->cell_use & 1) || atomic_load_explicit(&st->cells[span->cell_idx].use,
					     memory_order_relaxed) != span->cell_use)
		goto out_unlock;
	rc = hold_take(st, &hold_idx);
	if (rc < 0)
		goto out_unlock;
	rc = hold_count(st, span->cell_idx, &cell_idx);
	if (rc < 0) {
		hold_give(st, hold_idx);
		goto out_unlock;
	}
	st->holds[hold_idx].use = ++st->hold_seq;
	st->holds[hold_idx].cell_idx = cell_idx;
	st->hold_cnt++;
	*ret = (struct stoup_lease){.client = st, .use = st->hold_seq, .idx = hold_idx};
out_unlock:
	pthread_mutex_unlock(&st->mutex);
	return rc;
}

int stoup_release(struct stoup_lease *lease)
{
	struct stoup *st;
	int rc = -EINVAL, ring = 0;

	if (!lease)
		return 0;
	st = lease->client;
	if (!st)
		return -EINVAL;
	if (!stoup_client_own(st))
		return -ECHILD;
	pthread_mutex_lock(&st->mutex);
	if (lease->idx < st->hold_cap && lease->use != 0 &&
		st->holds[lease->idx].use == lease->use) {
		ring = shared_drop(st, st->holds[lease->idx].cell_idx);
		hold_give(st, lease->idx);
		st->hold_cnt--;
		rc = 0;
	}
	/* Before the mutex goes: it may have been the last lease, after which another thread may detach. */
	if (ring)
		stoup_wait_ring(st);
	pthread_mutex_unlock(&st->mutex);
	if (rc == 0)
		*lease = (struct stoup_lease){0};
	return rc;
}
