/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - the lease protocol: each step that orders memory between a consumer and the conductor.
 *
 *      consumer                                   conductor
 *      w = residency[b]
 *      exchange(cell, w)          [L1]            residency[b] = 0           [E1]
 *      residency[b] == w ?        [L1]            fence                      [E1]
 *      ... reads the bytes ...                    any cell == w ?            [E1]
 *      exchange(cell, w | IDLE)   [R1]            no: the bytes may be overwritten
 *
 * The reference count of a buffer is the number of cells that name it. A consumer writes only its own
 * cells, so acquire and release never touch a line that another consumer writes, and the cells of a
 * dead consumer fall away as a whole.
 *
 * Access rules:
 *   1. Bytes of a buffer may be read only between a successful stoup_lease_acquire (or a grant) and the
 *      stoup_lease_release of the same cell.
 *   2. A lease is never moved from one cell to another: take a new one, release the old one.
 *   3. residency[] is written by the conductor alone. A cell is written by its consumer, and by the
 *      conductor only through stoup_lease_grant.
 *   4. A buffer's generation is raised before its bytes are overwritten.
 *   5. A cell below `cell_high` is scanned; `cell_high` is raised before the first use of a cell [L4].
 *
 * The tags name the pairs; docs/memory-model.md argues each and names what checks it.
 */
#ifndef STOUP_SHM_LEASE_H
#define STOUP_SHM_LEASE_H

#include <stdatomic.h>
#include <stdint.h>
#include "shm/abi.h"
#include "shm/hook.h"
#include "shm/page.h"

/* ---- consumer --------------------------------------------------------------------------------- */

/* Try to lease what residency word `residency` names, through the free or idle cell `cell`. Returns
 * the word leased, or 0: a miss, and the cell is 0. No system call, about 3 ns. A starving conductor
 * may have seen the cell of a miss and put the word back: the request that follows rings it; a caller
 * that makes none leaves it to the conductor's next look, 10 ms later. */
static inline uint64_t stoup_lease_acquire(
	const _Atomic uint64_t *residency, _Atomic uint64_t *cell)
{
	/* [L2] pairs with the release of the conductor's publish: the bytes behind w are complete. */
	uint64_t w = atomic_load_explicit(residency, memory_order_acquire);
	if (w == 0)
		return 0;
	/* [L1] Store buffering against [E1]: the cell must be visible before the re-load. seq_cst on both,
	 * since acquire alone on the re-load fails where exchanges are load-linked loops (arm64). */
	atomic_exchange_explicit(cell, w, memory_order_seq_cst);
	STOUP_HOOK("lease.named");
	if (atomic_load_explicit(residency, memory_order_seq_cst) == w)
		return w;
	/* Release is enough: nothing was read under this cell. */
	atomic_store_explicit(cell, 0, memory_order_release);
	return 0;
}

/* Give a lease back; the cell keeps the word with IDLE for the conductor's knowledge of use. Returns 1
 * when the conductor starves and the caller must ring the doorbell. */
static inline int stoup_lease_release(
	_Atomic uint64_t *cell, uint64_t w, const _Atomic uint32_t *starving)
{
	/* [R1] Store buffering against the conductor's `starving = 1; fence; scan`: a release store before
	 * the load would let both sides miss each other. Release semantics of the exchange also order the
	 * reads of the bytes before the conductor's reuse [R2]. */
	atomic_exchange_explicit(cell, w | STOUP_WORD_IDLE, memory_order_seq_cst);
	STOUP_HOOK("lease.idle");
	return atomic_load_explicit(starving, memory_order_seq_cst) != 0;
}

/* Make cell `cell_idx` known to the scan before its first use. */
static inline void stoup_lease_cell_reach(struct stoup_page *page, uint32_t cell_idx)
{
	/* [L4] The store is seq_cst, so it comes before the exchange [L1] of the cell in the one order of
	 * seq_cst operations: a scan that must see the cell sees the bound as well. */
	if (atomic_load_explicit(&page->cell_high, memory_order_relaxed) <= cell_idx)
		atomic_store_explicit(&page->cell_high, cell_idx + 1, memory_order_seq_cst);
	STOUP_HOOK("lease.high");
}

/* Put a ticket into a free cell, before the request is posted. */
static inline void stoup_lease_ticket(_Atomic uint64_t *cell, uint64_t ticket)
{
	/* Ordered before the conductor's CAS by the pending bit [M1]. */
	atomic_store_explicit(cell, ticket, memory_order_release);
	STOUP_HOOK("request.ticket");
}

/* Give up waiting: 1 = the request is dead, 0 = it was granted in this moment, use it or release it. */
static inline int stoup_lease_cancel(_Atomic uint64_t *cell, uint64_t ticket)
{
	/* [G1] against the grant's CAS on the same word: whoever wins decides. Acquire for the loser, who
	 * may now read the bytes [L2]. */
	return atomic_compare_exchange_strong_explicit(
		cell, &ticket, 0, memory_order_acq_rel, memory_order_acquire);
}

/* Post the request in slot `slot_idx` (already written). Returns 1 when the conductor sleeps and the
 * caller must ring the doorbell. */
static inline int stoup_request_post(
	struct stoup_page *page, uint32_t slot_idx, const _Atomic uint32_t *asleep)
{
	/* [M1] releases the slot's fields and the ticket to the conductor's exchange of `pending`.
	 * [S1] store buffering against `asleep = 1; fence; re-scan of pending`: seq_cst on both. */
	atomic_fetch_or_explicit(&page->pending, UINT64_C(1) << slot_idx, memory_order_seq_cst);
	STOUP_HOOK("request.pending");
	return atomic_load_explicit(asleep, memory_order_seq_cst) != 0;
}

/* ---- conductor -------------------------------------------------------------------------------- */

/* Publish a block's complete bytes. */
static inline void stoup_residency_publish(_Atomic uint64_t *residency, uint64_t w)
{
	/* [L2] everything written to the bytes, the buffer table and by decode workers (whose reports were
	 * acquired) is visible to who loads w. */
	atomic_store_explicit(residency, w, memory_order_release);
}

/* First step of an eviction pass, for each candidate. */
static inline void stoup_residency_clear(_Atomic uint64_t *residency)
{
	/* [E1] ordered before the scan by stoup_evict_fence. */
	atomic_store_explicit(residency, 0, memory_order_release);
}

/* Between the clears and the scan of the cells. */
static inline void stoup_evict_fence(void)
{
	/* [E1] Either the scan sees the consumer's cell, or the consumer's re-load sees the cleared word. */
	atomic_thread_fence(memory_order_seq_cst);
}

/* Read one cell in a scan. */
static inline uint64_t stoup_cell_read(const _Atomic uint64_t *cell)
{
	/* [R2] acquire: a cell seen IDLE or changed orders that consumer's reads before our writes. */
	return atomic_load_explicit(cell, memory_order_acquire);
}

/* How many cells of a page a scan must read, bounded by what the page was made for. */
static inline uint32_t stoup_cell_high(const struct stoup_page *page, uint32_t cell_cap)
{
	/* [L4] after the evict fence. */
	uint32_t high = atomic_load_explicit(&page->cell_high, memory_order_acquire);
	return high < cell_cap ? high : cell_cap;
}

/* Does cell value v hold a lease (not idle, not a ticket)? */
static inline int stoup_cell_leased(uint64_t v)
{
	return v != 0 && (v & (STOUP_WORD_IDLE | STOUP_WORD_TICKET)) == 0;
}

/* Grant: put W into the cell that waits with `ticket`. 1 = granted, 0 = the consumer gave up. */
static inline int stoup_lease_grant(_Atomic uint64_t *cell, uint64_t ticket, uint64_t w)
{
	/* [G1] against stoup_lease_cancel. Release: the bytes are complete for who sees W [L2]. */
	return atomic_compare_exchange_strong_explicit(
		cell, &ticket, w, memory_order_acq_rel, memory_order_acquire);
}

/* Take all new requests of a page. */
static inline uint64_t stoup_request_take(struct stoup_page *page)
{
	/* [M1] acquire of the slots; seq_cst because the last look before sleep relies on it [S1]. */
	if (atomic_load_explicit(&page->pending, memory_order_seq_cst) == 0)
		return 0;
	return atomic_exchange_explicit(&page->pending, 0, memory_order_seq_cst);
}

/* End a request: 1 = its waiter sleeps and must be woken by futex. */
static inline int stoup_request_done(struct stoup_slot *slot, int32_t error, uint64_t detail)
{
	atomic_store_explicit(&slot->detail, detail, memory_order_relaxed);
	atomic_store_explicit(&slot->error, error, memory_order_relaxed);
	/* [M2] releases the result; the exchanged value says whether the waiter sleeps. */
	return atomic_exchange_explicit(&slot->state, STOUP_SLOT_DONE, memory_order_acq_rel) ==
	       STOUP_SLOT_SLEEP;
}

/* Raise a flag (`asleep`, `starving`) before the last look. */
static inline void stoup_flag_raise(_Atomic uint32_t *flag)
{
	/* [S1] [R1] the fence orders the flag before the look at bitmaps and cells. */
	atomic_store_explicit(flag, 1, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void stoup_flag_lower(_Atomic uint32_t *flag)
{
	atomic_store_explicit(flag, 0, memory_order_relaxed);
}

#endif
