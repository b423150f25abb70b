/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - the pool's allocator and its eviction policy: one region cut into page-aligned extents
 * of any length, in address order, each free or belonging to a buffer index.
 *
 * The ring knows neither memory nor time: it is a function of the calls made to it. The conductor
 * feeds it what the consumers' cells show, asks it for room, and does what it says.
 *
 *      region  [ b7 ][ free ][ b2  ][b9][b4 ][ free       ][ b1 ][ b3   ]
 *                              ^hand   `-window-'
 *
 *      (no extent) --alloc: FIT--> LOADING --loaded--> READY --alloc: EVICT--> CANDIDATE
 *           ^                        | free              ^                      |     |
 *           |<-----------------------'                   `--------kept----------'     |
 *           |<-----------------------------evicted------------------------------------'
 *           |<---evicted--- DRAINING <---claim_plan--- READY, inside a claimed window
 *                                    <---drain-------- READY, of a volume that is closed
 *
 * Two phases, because only the conductor's clear, fence and scan can tell whether a buffer is
 * leased:
 *
 *      for (;;) {
 *              outcome = stoup_ring_alloc(ring, len, class, &plan);
 *              if (outcome != STOUP_RING_EVICT)
 *                      break;                 FIT: load into plan.off; NONE: wait, then claim
 *              clear the residency words of plan.evict[0..cnt), fence, scan all cells
 *              for each: a cell names it ? word back, stoup_ring_kept : gen + 1, stoup_ring_evicted
 *      }
 *
 * The loop ends: a kept candidate counts as held until a scan says otherwise, so each round either
 * finds room or leaves fewer buffers to try.
 *
 * Invariant: extents cover the region without gap or overlap, no two free extents are neighbours,
 * and no byte of a buffer is given out again before stoup_ring_evicted or stoup_ring_free was
 * called on it.
 *
 * What goes first. The hand goes round in address order. It passes by what may not go (leased,
 * loading, pinned, claimed), weighs up to STOUP_RING_LOOK_CAP extents and takes the first window
 * that costs nothing, else the cheapest. A buffer costs nothing when it was used once and no cursor
 * is known to come: a newly loaded buffer starts like that, so a scan replaces its own track. It
 * costs more the more often it was used again (heat, up to three; each lasts for one turnover, in
 * which as much is loaded as the region holds), more still the nearer the next cursor is (next_use,
 * within two turnovers), and most while it was read ahead and not read (for one turnover: then it
 * is stale).
 *
 * Concurrency: none inside. One thread, the conductor, makes every call. If it dies the ring dies.
 *
 * Limits: region below 2^44 bytes (extents are counted in 32-bit pages); 256 consumers (one bit
 * each per buffer); buffers as given at creation, one extent each. Memory: about 200 bytes per
 * buffer, all allocated at creation. Every call is at worst linear in the number of extents.
 */
#ifndef STOUP_RING_H
#define STOUP_RING_H

#include <stdint.h>

#define STOUP_RING_PAGE_LEN     4096u
#define STOUP_RING_CONSUMER_CAP 256u
#define STOUP_RING_IDX_NONE     UINT32_MAX
#define STOUP_RING_USE_UNKNOWN  UINT64_MAX /* next_use: no known cursor is on its way */

/* Extents that one plan weighs before it settles for the cheapest window: a plan stays below ten
 * microseconds or so, and pools of up to that many extents are judged as a whole. */
#define STOUP_RING_LOOK_CAP 128u

/* Read-ahead nobody has read yet may fill this part of the region (1/N), and a pool of fewer than
 * this many largest extents gets none: it would crowd out what is being read. */
#define STOUP_RING_UNREAD_PART     4u
#define STOUP_RING_READAHEAD_FLOOR 8u

struct stoup_ring;

enum stoup_ring_class {
	STOUP_RING_DEMAND,   /* somebody waits: anything unleased may go, unread read-ahead last */
	STOUP_RING_READAHEAD /* nobody waits: spares unread, hot and soon needed ones as well */
};

enum stoup_ring_outcome {
	STOUP_RING_FIT,   /* plan.idx, plan.off, plan.len: yours, in state LOADING */
	STOUP_RING_EVICT, /* plan.evict[0..evict_cnt): find out who may go, tell, and ask again */
	STOUP_RING_NONE   /* nothing evictable now; read-ahead: not now, or over its limit */
};

enum stoup_ring_state {
	STOUP_RING_FREE,      /* no buffer */
	STOUP_RING_RESERVED,  /* free, but kept for the claim */
	STOUP_RING_LOADING,   /* bytes are being written */
	STOUP_RING_READY,     /* decoded: residency word published */
	STOUP_RING_CANDIDATE, /* named by a plan that is not settled yet */
	STOUP_RING_DRAINING /* for a claim, or of a closed volume: residency word cleared for good */
};

struct stoup_ring_config {
	uint64_t region_len;  /* bytes, a positive multiple of the page, below 2^44 */
	uint64_t largest_len; /* the longest extent that will be asked for, at most region_len */
	uint32_t buffer_cap;  /* buffers, 1 to 2^24 - 1 */
	uint64_t reserve_len; /* free bytes that batches aim for; UINT64_MAX: region_len / 32 */
	/* Bytes that the nearest known cursor has to go through before it reaches the block in
	 * buffer `idx`: 0 it stands on it, STOUP_RING_USE_UNKNOWN nobody comes. NULL: never known.
	 * Called up to STOUP_RING_LOOK_CAP times per plan; must not call the ring. */
	uint64_t (*next_use)(void *arg, uint32_t idx);
	void *next_use_arg;
};

struct stoup_ring_plan {
	uint32_t idx;          /* FIT: the buffer index, stable while the extent lives */
	uint32_t evict_cnt;    /* EVICT: how many */
	uint64_t off;          /* FIT: bytes from the start of the region */
	uint64_t len;          /* FIT: bytes, the request rounded up to pages */
	const uint32_t *evict; /* EVICT: the ring's memory, valid until the next plan or claim */
};

/* All counts are totals since creation. */
struct stoup_ring_counters {
	uint64_t alloc_cnt;         /* extents given out */
	uint64_t alloc_len;         /* bytes given out: the ring's clock */
	uint64_t evict_cnt;         /* buffers evicted */
	uint64_t evict_len;         /* bytes evicted */
	uint64_t plan_cnt;          /* plans that asked for evictions */
	uint64_t kept_cnt;          /* candidates that turned out leased */
	uint64_t look_cnt;          /* extents weighed by all plans */
	uint64_t pass_cnt;          /* times that the hand went round */
	uint64_t none_cnt;          /* demands that found nothing evictable */
	uint64_t readahead_cnt;     /* extents given to read-ahead */
	uint64_t readahead_refused; /* turned away: over the limit, or nothing cheap enough */
	uint64_t readahead_wasted;  /* read ahead and evicted unread */
	uint64_t claim_cnt;         /* claims begun */
	uint64_t claim_taken_cnt;   /* claims that got their extent */
	uint64_t claim_drain_cnt;   /* buffers drained for claims */
};

/* What the region looks like now. */
struct stoup_ring_usage {
	uint64_t free_len;     /* free bytes, without those reserved for a claim */
	uint64_t free_max_len; /* the largest free extent: far below free_len means fragmented */
	uint64_t reserved_len; /* bytes kept for the claim */
	uint64_t leased_len;   /* bytes in buffers with leases or pins, as last seen */
	uint64_t unread_len;   /* bytes of read-ahead, loading or ready, that nobody has read */
	uint64_t loading_len;  /* bytes being loaded */
	uint32_t free_cnt;     /* free extents */
	uint32_t buffer_cnt;   /* buffers that have an extent */
	uint32_t leased_cnt;   /* of these, with leases or pins, as last seen */
	uint32_t unread_cnt;   /* of these, unread read-ahead */
	uint32_t loading_cnt;  /* of these, being loaded */
	uint32_t zero;
};

/* One extent, for the pool map. */
struct stoup_ring_extent {
	uint64_t off;
	uint64_t len;
	uint32_t idx;      /* STOUP_RING_IDX_NONE: free or reserved */
	uint32_t refs;     /* leases as last seen */
	uint32_t used_cnt; /* distinct consumers that used it since it was loaded */
	enum stoup_ring_state state;
	uint8_t heat;   /* turnovers that its re-use is worth, 0 to 3 */
	uint8_t unread; /* 1: read ahead and not read */
	uint8_t pins;
};

/* ---- life ------------------------------------------------------------------------------------ */

/* Make a ring with one free extent. All memory is allocated here. 0, -EINVAL (a config value is out
 * of the range given above) or -ENOMEM; `ret` is untouched on failure. */
int stoup_ring_create(const struct stoup_ring_config *config, struct stoup_ring **ret);

/* Accepts NULL. */
void stoup_ring_destroy(struct stoup_ring *ring);

/* A rescan brought longer blocks, or removed them: at most region_len. Read-ahead depends on it. */
void stoup_ring_largest_set(struct stoup_ring *ring, uint64_t largest_len);

/* ---- room ------------------------------------------------------------------------------------ */

/* Room for `len` bytes (1 to region_len), rounded up to pages. The outcome is one of the three
 * above. A plan with candidates must be settled, every one, before the next alloc, reserve or
 * claim. The evict list holds more than the request needs while free bytes are below the reserve:
 * whatever costs nothing, or, where all has a cost, a quarter of that, of what is as cheap. */
enum stoup_ring_outcome stoup_ring_alloc(struct stoup_ring *ring, uint64_t len,
	enum stoup_ring_class class, struct stoup_ring_plan *plan);

/* From which end of a free extent the next ones are cut, until it is said anew: `upper` 0 the lower one, as
 * at creation. The blocks of a scan then lie in memory in the order of its records, forward or backward, and
 * whoever walks them has the processor's prefetcher with it over their borders. */
void stoup_ring_upper_set(struct stoup_ring *ring, int upper);

/* Refill the free reserve when there is time: EVICT, or NONE when there is enough or nothing that
 * costs nothing to evict. Never FIT. */
enum stoup_ring_outcome stoup_ring_reserve(struct stoup_ring *ring, struct stoup_ring_plan *plan);

/* A candidate, or a draining buffer, that no cell names: its extent is free, the index unused. */
void stoup_ring_evicted(struct stoup_ring *ring, uint32_t idx);

/* A candidate, or a draining buffer, that `refs` (> 0) cells name. A candidate is READY again and
 * passed by until a scan or stoup_ring_leased finds it unleased; a draining one stays draining. */
void stoup_ring_kept(struct stoup_ring *ring, uint32_t idx, uint32_t refs);

/* A READY buffer takes no new leases any more: its word is being cleared for good (retired volume). It is
 * DRAINING; tell evicted or kept. No plan may be open. */
void stoup_ring_drain(struct stoup_ring *ring, uint32_t idx);

/* The bytes are there: LOADING becomes READY. */
void stoup_ring_loaded(struct stoup_ring *ring, uint32_t idx);

/* The load failed, or the block is gone for good (retired volume), and no cell names the buffer:
 * its extent is free. Any state but CANDIDATE; pins must be gone. */
void stoup_ring_free(struct stoup_ring *ring, uint32_t idx);

/* ---- what the consumers do ------------------------------------------------------------------- */

/* Consumer `consumer` (below 256) used buffer `idx`: leases it or did. A consumer counts once, and
 * again only after a sixteenth of the region was loaded since: reading on in the same block is no
 * re-use. Feed changes, not states: a cell that still shows the word of the last scan is no new
 * use. The first use ends "unread". */
void stoup_ring_used(struct stoup_ring *ring, uint32_t idx, uint32_t consumer);

/* The conductor granted a lease by itself: one lease more, and used. Any state but CANDIDATE. */
void stoup_ring_granted(struct stoup_ring *ring, uint32_t idx, uint32_t consumer);

/* Set what is known about the leases of one buffer. */
void stoup_ring_leased(struct stoup_ring *ring, uint32_t idx, uint32_t refs);

/* Scan of all cells: begin forgets all leases (pins stay) at once; then stoup_ring_scan_lease for
 * each cell that holds a lease (generation and index equal, IDLE not set). No alloc between begin
 * and the last of them. */
void stoup_ring_scan_begin(struct stoup_ring *ring);
void stoup_ring_scan_lease(struct stoup_ring *ring, uint32_t idx);

/* Leases as last seen; 0 for an index without extent. */
uint32_t stoup_ring_refs(const struct stoup_ring *ring, uint32_t idx);

/* A hold of the conductor itself (waiters not granted); at most 255 each; counts as one lease. */
void stoup_ring_pin(struct stoup_ring *ring, uint32_t idx);
void stoup_ring_unpin(struct stoup_ring *ring, uint32_t idx);

/* Whoever asked for this read-ahead will not come (cursor closed or moved, consumer gone). */
void stoup_ring_unwanted(struct stoup_ring *ring, uint32_t idx);

/* Forget who consumer number `consumer` was, before the number is given to another. */
void stoup_ring_consumer_gone(struct stoup_ring *ring, uint32_t consumer);

/* ---- the claim: how a large request gets through --------------------------------------------- */

/* Reserve the window with the fewest leased bytes for the oldest request that found NONE. At most
 * one claim at a time. Free extents in it are kept from everybody else at once; then
 *
 *      stoup_ring_claim_plan   lists buffers of the window that are READY, and makes them DRAINING:
 *                              clear their words for good, fence, scan, tell evicted or kept. A
 *                              miss on one loads a second copy elsewhere. Call it again after each
 *                              load that ends (some were LOADING) and after unpins, until it says 0
 *      each scan               a draining buffer that no cell names any more: stoup_ring_evicted
 *      stoup_ring_claim_ready  1 once the whole window is free
 *      stoup_ring_claim_take   the extent, as in FIT; the rest of the window is free again
 *      stoup_ring_claim_cancel the requester timed out or died: what is free is free for all; a
 *                              buffer that is draining stays so until its leases are gone
 *
 * A window without pinned buffers is taken if there is one; stoup_ring_claim_any looks at them as at others, but the
 * dearest. Pins inside of the window are to be taken away before it is planned: stoup_ring_claim_pinned names one.
 *
 * stoup_ring_claim: 0, or -EBUSY (there is a claim), or -ENOBUFS (len is above region_len). */
int stoup_ring_claim(struct stoup_ring *ring, uint64_t len);
int stoup_ring_claim_any(struct stoup_ring *ring, uint64_t len);
uint32_t stoup_ring_claim_pinned(const struct stoup_ring *ring);
uint32_t stoup_ring_claim_plan(struct stoup_ring *ring, struct stoup_ring_plan *plan);
int stoup_ring_claim_active(const struct stoup_ring *ring);
int stoup_ring_claim_ready(const struct stoup_ring *ring);
void stoup_ring_claim_take(
	struct stoup_ring *ring, enum stoup_ring_class class, struct stoup_ring_plan *plan);
void stoup_ring_claim_cancel(struct stoup_ring *ring);

/* The claimed window, for the pool map: 1 and bytes from the region's start, or 0: no claim. */
int stoup_ring_claim_window(const struct stoup_ring *ring, uint64_t *off, uint64_t *len);

/* Buffers in state DRAINING: of the claim, left over from a cancelled one, of closed volumes. */
uint32_t stoup_ring_draining_cnt(const struct stoup_ring *ring);

/* ---- what is certain ------------------------------------------------------------------------- */

/* 1 if an extent of up to `largest_len` bytes is certain to be found wherever the leased extents
 * lie: they cut the region into leased_cnt + 1 gaps, and all of these can be too short only if
 * together they have at most (leased_cnt + 1) x (largest_len - 1 page). Exact: one byte of lease
 * more and there is a placement without room. Lengths are rounded up to pages. */
int stoup_ring_fits_certain(
	uint64_t region_len, uint64_t largest_len, uint64_t leased_len, uint64_t leased_cnt);

/* 1 if `promised_cnt` extents of up to `largest_len` bytes can all be held at once, in whatever
 * order they come and go, with nothing else leased: the last finds promised_cnt - 1 in its way. */
int stoup_ring_promise_certain(uint64_t region_len, uint64_t largest_len, uint64_t promised_cnt);

/* The largest promised_cnt for which that holds. */
uint64_t stoup_ring_promise_cap(uint64_t region_len, uint64_t largest_len);

/* ---- looking at it --------------------------------------------------------------------------- */

/* The extents in address order: start with *pos = 0; 1 and the extent, or 0 at the end. Valid while
 * nothing is allocated or freed. */
int stoup_ring_next(const struct stoup_ring *ring, uint64_t *pos, struct stoup_ring_extent *ret);

/* One buffer. 0, or -ENOENT for an index that has no extent. */
int stoup_ring_buffer(const struct stoup_ring *ring, uint32_t idx, struct stoup_ring_extent *ret);

void stoup_ring_usage(const struct stoup_ring *ring, struct stoup_ring_usage *ret);
uint64_t stoup_ring_unread_len(const struct stoup_ring *ring);

/* Is it only what was read ahead and is not read yet that keeps len bytes of read-ahead out? Then readers make
 * room for them, and they are better kept than dropped. */
int stoup_ring_ahead_waits(const struct stoup_ring *ring, uint64_t len);
const struct stoup_ring_counters *stoup_ring_counters(const struct stoup_ring *ring);

/* Full consistency check, linear in the extents. 0, or -EBADMSG when an invariant is broken, with
 * the rule in `rule` (may be NULL; a static text). For tests and daemons built for debugging. */
int stoup_ring_verify(const struct stoup_ring *ring, const char **rule);

#endif
