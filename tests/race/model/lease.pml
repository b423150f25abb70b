/* SPDX-License-Identifier: Apache-2.0 */
/* lease.pml - hit, release, eviction, claim, refill and death.
 *
 *      Consumer                                 Conductor
 *      LOOK     w = residency[b]                clear residency of the candidates   evict_pass
 *      REACH    cell_high                       fence, then every cell of every     stoup_evict_fence,
 *      exchange(cell, w)                          page, one load each               scan_consumer
 *      residency[b] == w ? held : clear cell    unnamed: retire; else put back, or
 *      READ, RELEASE                              drain for a claim
 *                                               fill a free buffer, publish
 *      die anywhere, any number of times        drop the page, make a fresh one     consumer_drop
 *
 * Follows stoup_lease_acquire, stoup_lease_release and stoup_lease_cell_reach of shm/lease.h, and
 * evict_pass, scan_consumer, settle_draining, retire, stoup_buffer_publish of producer/evict.c, and
 * consumer_drop of producer/attach.c. What the conductor chooses (whom to evict, what to load, whether
 * to drain) is left open, so every policy of the ring is covered.
 *
 * Holds (assertions): a buffer is retired only when nobody holds it; READ meets the bytes of its block;
 * a cell that leases nothing names nothing.
 *
 * Generations: 40 bits do not come round, so all words of older generations behave alike: retire turns
 * every copy of the buffer's word into STALE. A released cell (W | IDLE) is 0 here: the scan counts
 * neither, and who used what is the ring's concern.
 *
 * Sizes:   BUFFERS, CELLS; cell i takes block i, or -DANYCELL any block
 * Parts:   REACHED  cell_high is in the model        CLAIM    held candidates may drain
 *          BYTES    the bytes are in the model       NODEATH  nobody dies        PSO
 * Faults:  F_NO_RELOAD       acquire does not load residency again
 *          F_PLAIN_ACQUIRE   the cell is stored plainly: the re-load may come first
 *          F_INDEX_ONLY      the re-load compares the buffer index, not the generation
 *          F_HIGH_LATE       cell_high is raised after the cell's use     (REACHED)
 *          F_MOVE            a lease moves to another cell by copy and clear
 *          F_NO_EVICT_FENCE  no fence between clearing and scan
 *          F_SCAN_FIRST      scan, then clear
 *          F_PLAIN_PUBLISH   residency is published without release       (BYTES, PSO)
 *          F_DROP_AT_KILL    the page is dropped when the kill is sent
 */
#ifndef BUFFERS
#define BUFFERS 2
#endif
#ifndef CELLS
#define CELLS 2
#endif
#define BLOCKS    2
#define CONSUMERS 2
#define CONDUCTOR CONSUMERS
#define WRITERS   (CONSUMERS + 1)
#ifdef BYTES
#define DEPTH 3
#else
#define DEPTH 2
#endif

/* shared words */
#define RESIDENCY(s) (s)
#define CELL(c, i)   (BLOCKS + (c) * CELLS + (i))
#define HIGH(c)      (BLOCKS + CONSUMERS * CELLS + (c))
#define DATA(b)      (BLOCKS + CONSUMERS * CELLS + CONSUMERS + (b))
#ifdef BYTES
#define ADDRESSES DATA(BUFFERS)
#else
#define ADDRESSES DATA(0)
#endif
#include "store_buffer.inc"

#define WORD(b)  (1 + (b))
#ifdef F_INDEX_ONLY
#define STALE(b) (1 + BUFFERS + (b))
#else
#define STALE(b) (1 + BUFFERS)
#endif
#define INDEX(w) (((w) - 1) % BUFFERS)
#define FRESH(w) ((w) != 0 && (w) <= BUFFERS)

/* what the conductor knows of the buffers, and whose page it scans */
#define FREE     0
#define RESIDENT 1
#define DRAINING 2
byte state[BUFFERS], block[BUFFERS];
bit page[CONSUMERS];

/* what the consumers know: the word between LOOK and the re-load; what each cell's lease covers */
byte word[CONSUMERS];
byte held[CONSUMERS * CELLS];
bit gone[CONSUMERS];
#define HELD(c, i)     held[(c) * CELLS + (i)]
#define HOLD(s, b)     (1 + (s) * BUFFERS + (b))
#define HOLD_BUFFER(h) (((h) - 1) % BUFFERS)
#define HOLD_BLOCK(h)  (((h) - 1) / BUFFERS)

/* ---- consumer --------------------------------------------------------------------------------- */

#ifdef F_NO_RELOAD
#define SAME(v, w) true
#else
#ifdef F_INDEX_ONLY
#define SAME(v, w) ((v) != 0 && INDEX(v) == INDEX(w))
#else
#define SAME(v, w) ((v) == (w))
#endif
#endif

#ifdef NODEATH
#define OR_DIE(step) step
#else
#define OR_DIE(step) if :: step :: goto dead fi
#endif

#define LOOK(s_, i_) atomic { \
	HELD(c, i_) == 0 && LD(c, RESIDENCY(s_)) != 0 -> \
		assert(!FRESH(LD(c, CELL(c, i_)))); \
		word[c] = LD(c, RESIDENCY(s_)); \
		s = s_; \
		i = i_ }

#define REACH \
	if \
	:: mem[HIGH(c)] > i \
	:: atomic { mem[HIGH(c)] <= i && LOCKED(c) -> mem[HIGH(c)] = i + 1 } \
	fi

#define READ(i_) atomic { HELD(c, i_) != 0 -> \
	assert(LD(c, DATA(HOLD_BUFFER(HELD(c, i_)))) == 1 + HOLD_BLOCK(HELD(c, i_))) }

#define RELEASE(i_) atomic { HELD(c, i_) != 0 && LOCKED(c) -> mem[CELL(c, i_)] = 0; HELD(c, i_) = 0 }

proctype Consumer(byte c)
{
	byte s, i;

life:	do
	:: LOOK(0, 0) -> goto looked
#if CELLS > 1 && !defined(ANYCELL)
	:: LOOK(1, 1) -> goto looked
#else
	:: LOOK(1, 0) -> goto looked
#if CELLS > 1
	:: LOOK(0, 1) -> goto looked
	:: LOOK(1, 1) -> goto looked
#endif
#endif
	:: RELEASE(0)
#ifdef BYTES
	:: READ(0)
#endif
#if CELLS > 1
	:: RELEASE(1)
#ifdef BYTES
	:: READ(1)
#endif
#ifdef F_MOVE
	:: atomic { HELD(c, 1) != 0 && HELD(c, 0) == 0 && LOCKED(c) ->
		mem[CELL(c, 0)] = mem[CELL(c, 1)];
		HELD(c, 0) = HELD(c, 1);
		HELD(c, 1) = 0 };
	   atomic { LOCKED(c) -> mem[CELL(c, 1)] = 0 }
#endif
#endif
#ifndef NODEATH
	:: goto dead
#endif
	od;
looked:
#if defined(REACHED) && !defined(F_HIGH_LATE)
	OR_DIE(REACH);
#endif
#ifdef F_PLAIN_ACQUIRE
	OR_DIE(ST(c, CELL(c, i), word[c]));
#else
	OR_DIE(atomic { LOCKED(c) -> mem[CELL(c, i)] = word[c] });
#endif
	OR_DIE(atomic { true ->
		if
		:: SAME(LD(c, RESIDENCY(s)), word[c]) -> HELD(c, i) = HOLD(s, INDEX(word[c]))
		:: else -> STR(c, CELL(c, i), 0)
		fi;
		word[c] = 0 });
#ifdef F_HIGH_LATE
	OR_DIE(REACH);
#endif
	atomic { s = 0; i = 0; goto life };
#ifndef NODEATH
	/* Its stores become visible, its process ends: from now on the kernel says so. */
dead:	atomic { LOCKED(c) ->
		word[c] = 0;
		s = 0;
		i = 0;
		HELD(c, 0) = 0;
		HELD(c, CELLS - 1) = 0;
		gone[c] = 1 };
	atomic { !gone[c] -> goto life }
#endif
}

/* ---- conductor -------------------------------------------------------------------------------- */

#define LAST (BUFFERS - 1)
#define HOLDS(h, b) (held[h] != 0 && HOLD_BUFFER(held[h]) == b)
#if CELLS > 1
#define HOLDERS(b) (HOLDS(0, b) || HOLDS(1, b) || HOLDS(2, b) || HOLDS(3, b))
#else
#define HOLDERS(b) (HOLDS(0, b) || HOLDS(1, b))
#endif
#define PUBLISHED(s) \
	((state[0] == RESIDENT && block[0] == s) || (state[LAST] == RESIDENT && block[LAST] == s))

#define AGE(x) if :: x == WORD(b) -> x = STALE(b) :: else fi

inline retire(b)
{
	assert(!HOLDERS(b));
	state[b] = FREE;
	block[b] = 0;
	i = 0;
	do
	:: i < CONSUMERS * CELLS -> AGE(mem[CELL(0, i)]); i++
	:: else -> break
	od;
	AGE(word[0]);
	AGE(word[1]);
#ifdef F_PLAIN_ACQUIRE
	i = 0;
	do
	:: i < CONSUMERS -> AGE(buffer[i].value[0]); AGE(buffer[i].value[1]); i++
	:: else -> break
	od;
#endif
#ifdef BYTES
	ST(CONDUCTOR, DATA(b), 0); /* another block's bytes begin to arrive */
#endif
	i = 0
}

#ifdef F_NO_EVICT_FENCE
#define FENCE true
#else
#define FENCE LOCKED(CONDUCTOR)
#endif
#ifdef REACHED
#define BOUND high
#else
#define BOUND CELLS
#endif

inline scan_cell(c, i)
{
	atomic { FENCE ->
		if
		:: page[c] && i < BOUND && FRESH(mem[CELL(c, i)]) -> refs[INDEX(mem[CELL(c, i)])] = 1
		:: else
		fi }
}

inline scan_page(c)
{
#ifdef REACHED
	atomic { FENCE -> high = mem[HIGH(c)] };
#endif
	scan_cell(c, 0);
#if CELLS > 1
	scan_cell(c, 1);
#endif
#ifdef REACHED
	high = 0
#endif
}

inline clear(b)
{
	if
	:: candidate[b] -> STR(CONDUCTOR, RESIDENCY(block[b]), 0)
	:: else
	fi
}

inline choose()
{
	if
	:: state[0] == RESIDENT -> candidate[0] = 1
	:: state[0] == DRAINING || state[LAST] == DRAINING /* stoup_evict_scan: nobody new */
#if BUFFERS > 1
	:: state[LAST] == RESIDENT -> candidate[LAST] = 1
	:: state[0] == RESIDENT && state[LAST] == RESIDENT -> candidate[0] = 1; candidate[LAST] = 1
#endif
	fi
}

inline clear_all()
{
	clear(0);
#if BUFFERS > 1
	clear(LAST)
#endif
}

inline settle(b)
{
	if
	:: (candidate[b] || state[b] == DRAINING) && !refs[b] -> retire(b)
	:: candidate[b] && refs[b] && drain -> state[b] = DRAINING
	:: candidate[b] && refs[b] && !drain -> STR(CONDUCTOR, RESIDENCY(block[b]), WORD(b))
	:: !candidate[b] && !(state[b] == DRAINING && !refs[b])
	fi;
	candidate[b] = 0;
	refs[b] = 0
}

inline fresh_page(c)
{
	mem[CELL(c, 0)] = 0;
	mem[CELL(c, CELLS - 1)] = 0;
	mem[HIGH(c)] = 0;
	page[c] = 1;
	gone[c] = 0
}

proctype Conductor()
{
	byte s, k, high, i;
	bit candidate[BUFFERS], refs[BUFFERS], drain;

	do
	:: atomic { /* load_done */
		(state[0] == FREE || state[LAST] == FREE) && (!PUBLISHED(0) || !PUBLISHED(1)) ->
		if
		:: !PUBLISHED(0) -> s = 0
		:: !PUBLISHED(1) -> s = 1
		fi;
		if
		:: state[0] == FREE -> k = 0
#if BUFFERS > 1
		:: state[LAST] == FREE -> k = LAST
#endif
		fi;
		state[k] = RESIDENT;
		block[k] = s;
#ifdef BYTES
		ST(CONDUCTOR, DATA(k), s + 1);
#endif
#ifdef F_PLAIN_PUBLISH
		ST(CONDUCTOR, RESIDENCY(s), WORD(k));
#else
		STR(CONDUCTOR, RESIDENCY(s), WORD(k));
#endif
		s = 0;
		k = 0 }
	:: atomic { /* evict_pass, stoup_evict_scan */
		choose();
#ifndef F_SCAN_FIRST
		clear_all()
#endif
	   };
	   scan_page(0);
	   scan_page(1);
#ifdef F_SCAN_FIRST
	   clear_all();
	   LOCKED(CONDUCTOR);
#endif
	   atomic {
#ifdef CLAIM
		if
		:: drain = 0
		:: drain = 1
		fi;
#endif
		settle(0);
#if BUFFERS > 1
		settle(LAST);
#endif
		drain = 0 }
#ifndef NODEATH
	/* Between two passes: the page falls away as a whole, and a new attachment gets a fresh one. */
	:: atomic { gone[0] -> fresh_page(0) }
	:: atomic { gone[1] -> fresh_page(1) }
#ifdef F_DROP_AT_KILL
	:: atomic { page[0] && !gone[0] -> page[0] = 0 }
	:: atomic { page[1] && !gone[1] -> page[1] = 0 }
#endif
#endif
	od
}

init {
	atomic {
		page[0] = 1;
		page[1] = 1;
		run Drain(0);
		run Drain(1);
		run Drain(CONDUCTOR);
		run Conductor();
		run Consumer(0);
		run Consumer(1)
	}
}
