/* SPDX-License-Identifier: Apache-2.0 */
/* handover.pml - a miss: ticket, request, grant, error, time-out, slots used again, death.
 *
 *      Consumer                                   Conductor
 *      ask    slot: block, cell, WAIT             take_from, wait_for    pending -> waiter
 *             cell = TICKET(slot, sequence)       load, evict            room for the block
 *             pending |= bit                      grant                  CAS(cell, TICKET -> W)
 *      DONE    cell == W: a lease                                        slot = DONE
 *      FAILED  CAS(cell, TICKET -> 0)             stoup_waiters_fail     slot = FAILED
 *      time-out: CAS(cell, TICKET -> 0)
 *         won:  over; the slot is left until it is DONE
 *         lost: a lease
 *      die anywhere, any number of times          consumer_drop: page and waiters fall away
 *
 * Follows stoup_wait_grant, result, slot_take and slots_sweep of consumer/wait.c, and take_from, demand,
 * wait_for, grant, stoup_waiters_grant, stoup_waiters_fail of producer/request.c. When the conductor reads a
 * request, loads, evicts, grants or fails is left open.
 *
 * Holds (assertions): who is told DONE has a lease, of the block that was asked for; who is told FAILED
 * has none; a cell that is not waited for is never written; a lease stays until it is released, and its
 * buffer with it; a slot that waits is in the bitmap or with the conductor, so that each is answered.
 *
 * Every word here changes by a locked operation, or before the pending bit that hands it over; only with
 * -DBUFFERED are the stores before that bit separate and late. A consumer is one thread with CELLS 2: it
 * may hold one lease and ask for the next.
 *
 * The sequence in a ticket tells uses of one slot apart. As long as no slot is used before DONE there is
 * never more than one, so the sequence is left out where it makes no difference (-DF_SLOT_REUSE has it).
 * Slot state FAILED stands for DONE with an error. Who died is forgotten by the conductor at once: its
 * waiters carry an attach number that fits no page, and waiter_consumer passes them by.
 *
 * Sizes:   BUFFERS, BLOCKS (more than BUFFERS: else nothing is evicted), SLOTS, CONSUMERS (1 or 2)
 * Parts:   BUFFERED  the stores of a request are seen late     NODEATH  nobody dies     PSO
 * Faults:  F_GRANT_STORE   the grant looks, then stores
 *          F_DONE_FIRST    the slot is DONE before the cell is granted
 *          F_NO_ACK        a grant that lost does not end its slot
 *          F_SLOT_REUSE    a slot is used again before it is DONE
 *          F_NO_ATTACH_NO  a waiter names consumer and slot, not the attachment
 *          F_RELAXED_POST  the pending bit does not release the request    (BUFFERED)
 */
#ifndef BUFFERS
#define BUFFERS 1
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef CONSUMERS
#define CONSUMERS 2
#endif
#define CELLS   2
#define WRITERS CONSUMERS
#define DEPTH   3

/* shared words: all in the consumers' pages */
#define CELL(c, i)    ((c) * CELLS + (i))
#define REQUEST(c, s) (CONSUMERS * CELLS + (c) * SLOTS + (s))
#define STATE(c, s)   (CONSUMERS * (CELLS + SLOTS) + (c) * SLOTS + (s))
#define PENDING(c)    (CONSUMERS * (CELLS + 2 * SLOTS) + (c))
#define ADDRESSES     (CONSUMERS * (CELLS + 2 * SLOTS + 1))
#include "store_buffer.inc"

/* cell: 0, a word, a word of an older generation, or a ticket */
#define WORD(b)      (1 + (b))
#define STALE        (1 + BUFFERS)
#define FRESH(v)     ((v) != 0 && (v) <= BUFFERS)
#define INDEX(v)     ((v) - 1)
#define TICKET(s, q) (10 + 2 * (s) + (q))
/* request: block, cell, sequence */
#define ASK(b, i, q) (1 + (q) + 2 * (i) + 4 * (b))
#define ASK_SEQ(r)   (((r) - 1) % 2)
#define ASK_CELL(r)  (((r) - 1) / 2 % 2)
#define ASK_BLOCK(r) (((r) - 1) / 4)
/* slot state: free slots are DONE */
#define DONE   0
#define FAILED 1
#define WAIT   2

#define NONE 255
byte block[BUFFERS] = NONE;            /* conductor: what each buffer holds */
byte waiter[CONSUMERS * SLOTS];        /* conductor: the request taken from each slot, or 0 */
byte held[CONSUMERS * CELLS];          /* consumer: the word that each cell leases, or 0 */
bit sequence[CONSUMERS * SLOTS];       /* consumer: of the latest use of each slot */
bit gone[CONSUMERS];
#define WAITER(c, s) waiter[(c) * SLOTS + (s)]
#define HELD(c, i)   held[(c) * CELLS + (i)]
#define SEQ(c, s)    sequence[(c) * SLOTS + (s)]

/* ---- consumer --------------------------------------------------------------------------------- */

#ifdef NODEATH
#define OR_DIE
#else
#define OR_DIE :: goto dead
#endif
#ifdef F_SLOT_REUSE
#define AVAILABLE(s) true
#else
#define AVAILABLE(s) (mem[STATE(c, s)] != WAIT)
#endif
#ifdef F_RELAXED_POST
#define POSTED(c) true
#else
#define POSTED(c) LOCKED(c)
#endif

/* the lowest free cell, any free slot */
#define TAKE(s_) \
	AVAILABLE(s_) && HELD(c, 0) == 0 -> s = s_; i = 0 \
	:: AVAILABLE(s_) && HELD(c, 0) != 0 && HELD(c, 1) == 0 -> s = s_; i = 1

#define GRANTED \
	assert(FRESH(mem[CELL(c, i)])); \
	assert(block[INDEX(mem[CELL(c, i)])] == b); \
	HELD(c, i) = mem[CELL(c, i)]

#define RELEASE(i_) atomic { HELD(c, i_) != 0 && LOCKED(c) -> \
	assert(mem[CELL(c, i_)] == HELD(c, i_)); \
	mem[CELL(c, i_)] = 0; \
	HELD(c, i_) = 0 }

inline ask()
{
#ifdef BUFFERED
	PUSH(c, REQUEST(c, s), ASK(b, i, SEQ(c, s)), 0);
	PUSH(c, STATE(c, s), WAIT, 0);
	PUSH(c, CELL(c, i), TICKET(s, SEQ(c, s)), 1)
#else
	mem[REQUEST(c, s)] = ASK(b, i, SEQ(c, s));
	mem[STATE(c, s)] = WAIT;
	mem[CELL(c, i)] = TICKET(s, SEQ(c, s));
	mem[PENDING(c)] = mem[PENDING(c)] | (1 << s)
#endif
}

proctype Consumer(byte c)
{
	byte s, i, b;

life:	do
	:: atomic {
		if
		:: TAKE(0)
#if SLOTS > 1
		:: TAKE(1)
#endif
		fi;
		assert(mem[CELL(c, i)] == 0);
		if
		:: b = 0
		:: b = 1
#if BLOCKS > 2
		:: b = 2
#endif
		fi;
#ifdef F_SLOT_REUSE
		SEQ(c, s) = 1 - SEQ(c, s);
#endif
		LOCKED(c);
		ask();
		goto posting }
	:: RELEASE(0)
	:: RELEASE(1)
	OR_DIE
	od;
posting:
#ifdef BUFFERED
	if
	:: atomic { POSTED(c) -> mem[PENDING(c)] = mem[PENDING(c)] | (1 << s) }
	OR_DIE
	fi;
#endif
	if
	:: atomic { LD(c, STATE(c, s)) == DONE -> GRANTED }
	:: atomic { LD(c, STATE(c, s)) == FAILED ->
		assert(mem[CELL(c, i)] == TICKET(s, SEQ(c, s)));
		mem[CELL(c, i)] = 0;
		mem[STATE(c, s)] = DONE }
	:: atomic { LOCKED(c) ->
		if
		:: mem[CELL(c, i)] == TICKET(s, SEQ(c, s)) ->
			mem[CELL(c, i)] = 0;
			/* nobody will look at the error */
			if
			:: mem[STATE(c, s)] == FAILED -> mem[STATE(c, s)] = DONE
			:: else
			fi
		:: else -> GRANTED
		fi }
	OR_DIE
	fi;
	atomic { s = 0; i = 0; b = 0; goto life };
#ifndef NODEATH
dead:	atomic { LOCKED(c) ->
		s = 0;
		i = 0;
		b = 0;
		HELD(c, 0) = 0;
		HELD(c, 1) = 0;
		gone[c] = 1 };
	atomic { !gone[c] -> goto life }
#endif
}

/* ---- conductor -------------------------------------------------------------------------------- */

#define LAST (BUFFERS - 1)
#define HAS(b) (block[0] == (b) || block[LAST] == (b))
#define WHERE(b) (block[0] == (b) -> 0 : LAST)
#if CONSUMERS > 1
#define ANY(words, w) (words[0] == w || words[1] == w || words[2] == w || words[3] == w)
#else
#define ANY(words, w) (words[0] == w || words[1] == w)
#endif
#define AGE(x) if :: x == WORD(k) -> x = STALE :: else fi

/* Of an ended attachment: kept only by the fault. */
#ifdef F_NO_ATTACH_NO
byte ended[CONSUMERS * SLOTS];
#define ENDED(c, s) ended[(c) * SLOTS + (s)]
#define OR_ENDED(c_, s_) \
	:: ENDED(c_, s_) != 0 -> c = c_; s = s_; r = ENDED(c_, s_); ENDED(c_, s_) = 0
#else
#define ENDED(c, s) 0
#define OR_ENDED(c_, s_)
#endif

#define REQUEST_READ(c_, s_) atomic { mem[PENDING(c_)] & (1 << s_) -> \
	mem[PENDING(c_)] = mem[PENDING(c_)] - (1 << s_); \
	WAITER(c_, s_) = mem[REQUEST(c_, s_)]; \
	mem[REQUEST(c_, s_)] = 0 }

#define WAITING(c_, s_) \
	WAITER(c_, s_) != 0 -> c = c_; s = s_; r = WAITER(c_, s_) \
	OR_ENDED(c_, s_)

#define FORGOTTEN(c_, s_) (mem[STATE(c_, s_)] == WAIT && WAITER(c_, s_) == 0 && \
	(mem[PENDING(c_)] & (1 << s_)) == 0)

#define TICKETED (mem[CELL(c, ASK_CELL(r))] == TICKET(s, ASK_SEQ(r)))

/* DONE with an error, for who still waits; else nobody looks at the error. */
inline fail()
{
	if
	:: TICKETED -> mem[STATE(c, s)] = FAILED
	:: else -> mem[STATE(c, s)] = DONE
	fi
}

/* Room for r's block: a free buffer, else one that no cell names. */
inline room()
{
	if
	:: block[0] == NONE -> block[0] = ASK_BLOCK(r)
	:: block[0] != NONE && block[LAST] == NONE -> block[LAST] = ASK_BLOCK(r)
	:: block[0] != NONE && block[LAST] != NONE ->
		if
		:: k = 0
#if BUFFERS > 1
		:: k = LAST
#endif
		fi;
		if
		:: ANY(mem, WORD(k))
		:: else ->
			assert(!ANY(held, WORD(k)));
			AGE(mem[0]);
			AGE(mem[1]);
#if CONSUMERS > 1
			AGE(mem[2]);
			AGE(mem[3]);
#endif
			block[k] = NONE
		fi
	fi
}

/* The slot's end is one step with what follows: nothing is left to do but to forget the request. */
inline grant()
{
#ifdef F_DONE_FIRST
	mem[STATE(c, s)] = DONE;
#endif
#ifdef F_GRANT_STORE
	won = TICKETED;
	if
	:: won -> mem[CELL(c, ASK_CELL(r))] = WORD(WHERE(ASK_BLOCK(r)))
	:: else
	fi
#else
	atomic {
		if
		:: TICKETED -> mem[CELL(c, ASK_CELL(r))] = WORD(WHERE(ASK_BLOCK(r)))
		:: else
#ifdef F_NO_ACK
			; r = 0
#endif
		fi }
#endif
}

inline grant_end()
{
#ifdef F_DONE_FIRST
	skip
#else
	if
	:: r != 0 -> mem[STATE(c, s)] = DONE
	:: else
	fi
#endif
}

inline drop_slot(s_)
{
#ifdef F_NO_ATTACH_NO
	ENDED(c, s_) = WAITER(c, s_);
#endif
	WAITER(c, s_) = 0;
	SEQ(c, s_) = 0;
	mem[REQUEST(c, s_)] = 0;
	mem[STATE(c, s_)] = DONE
}

inline drop()
{
	drop_slot(0);
#if SLOTS > 1
	drop_slot(1);
#endif
	mem[CELL(c, 0)] = 0;
	mem[CELL(c, 1)] = 0;
	mem[PENDING(c)] = 0;
	gone[c] = 0;
	c = 0
}

proctype Conductor()
{
	byte c, s, r, k;
#ifdef F_GRANT_STORE
	bit won;
#endif

	do
	:: REQUEST_READ(0, 0)
#if SLOTS > 1
	:: REQUEST_READ(0, 1)
#endif
#if CONSUMERS > 1
	:: REQUEST_READ(1, 0)
#endif
	:: atomic {
		if
		:: WAITING(0, 0)
#if SLOTS > 1
		:: WAITING(0, 1)
#endif
#if CONSUMERS > 1
		:: WAITING(1, 0)
#endif
		fi;
		if
		:: HAS(ASK_BLOCK(r)) -> WAITER(c, s) = 0; goto granting
		:: !HAS(ASK_BLOCK(r)) -> room()
		:: WAITER(c, s) = 0; fail()
		fi;
		goto over };
granting:
	   grant();
	   atomic {
		grant_end();
over:
#ifndef BUFFERED
		assert(!FORGOTTEN(c, s));
#endif
		c = 0;
		s = 0;
		r = 0;
		k = 0 }
#ifndef NODEATH
	:: atomic { gone[0] && ENDED(0, 0) == 0 -> drop() }
#if CONSUMERS > 1
	:: atomic { gone[1] && ENDED(1, 0) == 0 -> c = 1; drop() }
#endif
#endif
	od
}

init {
	atomic {
		run Drain(0);
		run Conductor();
		run Consumer(0);
#if CONSUMERS > 1
		run Drain(1);
		run Consumer(1)
#endif
	}
}
