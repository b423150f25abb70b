/* SPDX-License-Identifier: Apache-2.0 */
/* wake.pml - nobody sleeps through what it waits for: doorbell, asleep, starving, futex.
 *
 *      Consumer                                  Conductor
 *      hit: exchange, re-load                    turn: drop the dead, take requests, serve
 *      miss: ticket; pending; asleep? ring             moved? epoll_wait(0), again
 *        spin, CAS(WAIT -> SLEEP), futex_wait    last_look: asleep = 1, fence, pending?
 *      release: exchange; starving? ring               somebody waits: starving = 1, fence,
 *      die anywhere (-DDEATH)                          scan and serve once more
 *      (-DCLAIM: what is held drains)            epoll_wait; both flags down
 *
 * Follows stoup_wait_grant, doze and stoup_wait_ring of consumer/wait.c, stoup_grip_hit and
 * stoup_grip_release of consumer/cells.c, and work, last_look and sleep_turn of producer/conductor.c with
 * stoup_requests_take, stoup_loads_pump and evict_pass. A doorbell is an edge: `event`, set by any ring
 * and taken by epoll_wait, never read. Death is level-triggered (pidfd).
 *
 * Holds: each consumer asks ROUNDS times and ends; no time-out, no slice of 20 ms and no starving tick of
 * 10 ms is in the model, so a lost wake-up is a consumer or a conductor that sleeps for ever (invalid end
 * state). With -DNP no run goes on for ever either: every request ends.
 *
 * A lease word of an older generation is STALE, as in lease.pml. A consumer releases before it acquires,
 * and its cells alternate. With -DHOLDING consumer 0 keeps its leases until its last round, while
 * consumer 1 does not: with BUFFERS 2 there is always one that comes free.
 *
 * With -DCLAIM whoever waits claims what is held: it takes no new lease, and goes with its last one. At the
 * end (timeout) nothing drains, nothing waits, no request is left.
 *
 * Sizes:   BUFFERS, BLOCKS (more than BUFFERS), ROUNDS, OTHER_ROUNDS (of consumer 1)
 * Parts:   DEATH     HOLDING (ROUNDS 2)     CLAIM     PSO
 * Faults:  F_PLAIN_POST     the pending bit is stored plainly before `asleep` is loaded
 *          F_PLAIN_RELEASE  the cell is stored plainly before `starving` is loaded
 *          F_GIVE_UP        a failed acquire is not followed by a request
 *          F_NO_LAST_LOOK   the conductor does not look at the bitmaps again before it sleeps
 *          F_NO_LAST_SCAN   a starving conductor does not look at the cells again
 *          F_NO_FLAG_FENCE  no fence between raising a flag and the last look
 *          F_DRAIN          the doorbell is drained between the last look and the sleep
 *          F_WAKE_BY_LOAD   whom to wake is decided by a load, not by the exchange
 *          F_NO_DRAIN_LOOK  starving is not raised for what drains when nobody waits any more (CLAIM, DEATH)
 */
#ifndef BUFFERS
#define BUFFERS 1
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef OTHER_ROUNDS
#define OTHER_ROUNDS ROUNDS
#endif
#define CELLS     2
#define CONSUMERS 2
#define CONDUCTOR CONSUMERS
#define WRITERS   (CONSUMERS + 1)
#define DEPTH     3

/* shared words */
#define CELL(c, i)   ((c) * CELLS + (i))
#define STATE(c)     (CONSUMERS * CELLS + (c))
#define PENDING(c)   (CONSUMERS * (CELLS + 1) + (c))
#define ASLEEP       (CONSUMERS * (CELLS + 2))
#define STARVING     (CONSUMERS * (CELLS + 2) + 1)
#define RESIDENCY(s) (CONSUMERS * (CELLS + 2) + 2 + (s))
#define ADDRESSES    RESIDENCY(BLOCKS)
#include "store_buffer.inc"

#define WORD(b)  (1 + (b))
#define STALE    (1 + BUFFERS)
#define TICKET   (2 + BUFFERS)
#define FRESH(v) ((v) != 0 && (v) <= BUFFERS)

/* slot state: a free slot is DONE */
#define DONE  0
#define WAIT  1
#define SLEEP 2

#define NONE 255
bit event;                      /* of the doorbells, at epoll */
bit sleeping[CONSUMERS];        /* in futex_wait */
bit gone[CONSUMERS];
byte word[CONSUMERS];           /* consumer: between the load and the re-load of residency */
byte want[CONSUMERS];           /* the slot's block, plus 1 */
byte block[BUFFERS];            /* conductor: what each buffer holds */

/* ---- consumer --------------------------------------------------------------------------------- */

#ifdef DEATH
#define OR_DIE :: goto dead
#else
#define OR_DIE
#endif
#ifdef F_PLAIN_RELEASE
#define RELEASE STR(c, CELL(c, i), 0)
#else
#define RELEASE atomic { LOCKED(c) -> mem[CELL(c, i)] = 0 }
#endif
#ifdef F_PLAIN_POST
#define POST STR(c, PENDING(c), 1)
#else
#define POST atomic { LOCKED(c) -> mem[PENDING(c)] = 1 }
#endif

/* A write to an eventfd is a system call: a full fence. */
#define RING_IF(flag) \
	if \
	:: LD(c, flag) == 0 \
	:: atomic { LD(c, flag) == 1 && LOCKED(c) -> event = 1 } \
	OR_DIE \
	fi

#define WANTS(b_) b = b_; word[c] = LD(c, RESIDENCY(b_))

proctype Consumer(byte c)
{
	byte n, b, i;

	if
	:: c == 1 -> n = ROUNDS - OTHER_ROUNDS
	:: c == 0
	fi;
life:	do
	:: atomic { n < ROUNDS ->
		n++;
		if
		:: WANTS(0)
		:: WANTS(1)
#if BLOCKS > 2
		:: WANTS(2)
#endif
		fi;
		if
		:: word[c] == 0 -> goto miss
		:: else
		fi };
		if
		:: atomic { LOCKED(c) -> mem[CELL(c, i)] = word[c] }
		OR_DIE
		fi;
		if
		:: atomic { LD(c, RESIDENCY(b)) == word[c] -> word[c] = 0; goto use }
		:: atomic { LD(c, RESIDENCY(b)) != word[c] ->
			word[c] = 0;
			STR(c, CELL(c, i), 0)
#ifdef F_GIVE_UP
			; goto over
#endif
			}
		OR_DIE
		fi;
miss:		atomic { LOCKED(c) ->
			mem[STATE(c)] = WAIT;
			mem[CELL(c, i)] = TICKET;
			want[c] = b + 1 };
		POST;
		RING_IF(ASLEEP);
		do
		:: LD(c, STATE(c)) == DONE -> break
		:: atomic { LOCKED(c) && mem[STATE(c)] == WAIT -> mem[STATE(c)] = SLEEP }
		:: atomic { LOCKED(c) && mem[STATE(c)] == SLEEP -> sleeping[c] = 1 };
			if
			:: !sleeping[c]
			OR_DIE
			fi
		OR_DIE
		od;
		assert(FRESH(LD(c, CELL(c, i))));
use:
#ifdef HOLDING
		if
		:: c == 0 && n < ROUNDS -> goto over
		:: c == 0 && n == ROUNDS -> i = 1 - i; RELEASE; RING_IF(STARVING); i = 1 - i
		:: c != 0
		fi;
#endif
		if
		:: RELEASE
		OR_DIE
		fi;
		RING_IF(STARVING);
over:		atomic { b = 0; i = 1 - i }
	:: n == ROUNDS -> goto end
	od;
#ifdef DEATH
dead:	atomic { LOCKED(c) -> gone[c] = 1; sleeping[c] = 0; word[c] = 0; b = 0; i = 0 };
	atomic { !gone[c] -> goto life };
#endif
end:	skip
}

/* ---- conductor -------------------------------------------------------------------------------- */

#define LAST (BUFFERS - 1)
#ifdef CLAIM
bit draining[BUFFERS];
#define DRAINS(b) draining[b]
#define ANY_DRAINS (draining[0] || draining[LAST])
#else
#define DRAINS(b) 0
#define ANY_DRAINS 0
#endif
#define SERVES(k, b) (block[k] == (b) && !DRAINS(k))
#define HAS(b) (SERVES(0, b) || SERVES(LAST, b))
#define WHERE(b) (SERVES(0, b) -> 0 : LAST)
#define ROOM (block[0] == NONE || block[LAST] == NONE)
#define AGE(x) if :: x == WORD(b) -> x = STALE :: else fi

inline drop(c)
{
	if
	:: atomic { gone[c] ->
		mem[CELL(c, 0)] = 0;
		mem[CELL(c, 1)] = 0;
		mem[STATE(c)] = DONE;
		mem[PENDING(c)] = 0;
		want[c] = 0;
		queue[c] = 0;
		gone[c] = 0 }
	:: !gone[c]
	fi
}

inline take(c)
{
	if
	:: LD(CONDUCTOR, PENDING(c)) == 0
	:: atomic { LD(CONDUCTOR, PENDING(c)) == 1 && LOCKED(CONDUCTOR) ->
		mem[PENDING(c)] = 0;
		queue[c] = want[c];
		want[c] = 0;
		moved = 1 }
	fi
}

inline clear(b)
{
	if
	:: block[b] != NONE && !DRAINS(b) -> STR(CONDUCTOR, RESIDENCY(block[b]), 0)
	:: else
	fi
}

inline scan(j)
{
	atomic { LOCKED(CONDUCTOR) ->
		if
		:: FRESH(mem[j]) -> refs[mem[j] - 1] = 1
		:: else
		fi }
}

#ifdef CLAIM
#define KEEP(b) draining[b] = 1
#else
#define KEEP(b) STR(CONDUCTOR, RESIDENCY(block[b]), WORD(b))
#endif

inline retire(b)
{
	AGE(mem[0]);
	AGE(mem[1]);
	AGE(mem[2]);
	AGE(mem[3]);
	AGE(word[0]);
	AGE(word[1]);
#ifdef CLAIM
	draining[b] = 0;
#endif
	block[b] = NONE
}

inline settle(b)
{
	if
	:: block[b] != NONE && refs[b] -> KEEP(b)
	:: block[b] != NONE && !refs[b] -> retire(b)
	:: block[b] == NONE
	fi;
	refs[b] = 0
}

inline evict_pass()
{
	atomic {
		clear(0);
#if BUFFERS > 1
		clear(LAST)
#endif
	};
	scan(0);
	scan(1);
	scan(2);
	scan(3);
	atomic {
		settle(0);
#if BUFFERS > 1
		settle(LAST)
#endif
	}
}

/* stoup_evict_scan: only what drains can go. */
#ifdef CLAIM
inline settle_draining(b)
{
	if
	:: draining[b] && !refs[b] -> retire(b)
	:: !(draining[b] && !refs[b])
	fi;
	refs[b] = 0
}

inline evict_scan()
{
	scan(0);
	scan(1);
	scan(2);
	scan(3);
	atomic {
		settle_draining(0);
#if BUFFERS > 1
		settle_draining(LAST)
#endif
	}
}
#endif

inline grant()
{
	atomic { LOCKED(CONDUCTOR) ->
		k = (mem[CELL(x, 0)] == TICKET -> CELL(x, 0) : CELL(x, 1));
		assert(mem[k] == TICKET);
		mem[k] = WORD(WHERE(queue[x] - 1));
		queue[x] = 0;
		k = 0;
		moved = 1 };
#ifdef F_WAKE_BY_LOAD
	woken = (mem[STATE(x)] == SLEEP);
	mem[STATE(x)] = DONE;
#else
	atomic { woken = (mem[STATE(x)] == SLEEP); mem[STATE(x)] = DONE };
#endif
	if
	:: atomic { woken -> sleeping[x] = 0; woken = 0 }
	:: !woken
	fi
}

/* A waiter that was not tried in this turn, in any order; none: served. */
inline next()
{
	if
	:: atomic { queue[0] != 0 && !(tried & 1) -> x = 0; tried = tried | 1 }
	:: atomic { queue[1] != 0 && !(tried & 2) -> x = 1; tried = tried | 2 }
	:: atomic { (queue[0] == 0 || (tried & 1)) && (queue[1] == 0 || (tried & 2)) ->
		x = 0;
		tried = 0;
		goto served }
	fi
}

/* Its block is there, or is loaded into a buffer that is free or can be evicted; else it waits. */
inline serve()
{
	if
	:: HAS(queue[x] - 1) || ROOM
	:: else -> evict_pass()
	fi;
	atomic {
		if
		:: HAS(queue[x] - 1)
		:: !HAS(queue[x] - 1) && ROOM ->
			k = (block[0] == NONE -> 0 : LAST);
			STR(CONDUCTOR, RESIDENCY(queue[x] - 1), WORD(k));
			block[k] = queue[x] - 1;
			k = 0
		:: !HAS(queue[x] - 1) && !ROOM -> goto each
		fi };
	grant()
}

#ifdef F_NO_FLAG_FENCE
#define RAISE(flag) ST(CONDUCTOR, flag, 1)
#else
#define RAISE(flag) atomic { LOCKED(CONDUCTOR) -> mem[flag] = 1 }
#endif
#ifdef F_NO_DRAIN_LOOK
#define STILL true
#else
#define STILL !ANY_DRAINS
#endif
#define LOOK(c) \
	if \
	:: LD(CONDUCTOR, PENDING(c)) == 1 -> goto lower \
	:: LD(CONDUCTOR, PENDING(c)) == 0 \
	fi

proctype Conductor()
{
	byte queue[CONSUMERS], tried, x, k;
	bit refs[BUFFERS], moved, last, woken;

turn:
#ifdef DEATH
	drop(0);
	drop(1);
#endif
	take(0);
	take(1);
each:	next();
	serve();
	goto each;
served:	if
	:: moved && last -> goto lower
	:: atomic { moved && !last -> event = 0; moved = 0; goto turn }
	:: !moved && last -> goto sleep
	:: !moved && !last
	fi;
	RAISE(ASLEEP);
#ifndef F_NO_LAST_LOOK
	LOOK(0);
	LOOK(1);
#endif
	if
	:: queue[0] == 0 && queue[1] == 0 && STILL -> goto sleep
	:: else
	fi;
	RAISE(STARVING);
#if defined(CLAIM) && !defined(F_NO_LAST_SCAN)
	evict_scan();
#endif
#ifndef F_NO_LAST_SCAN
	last = 1;
	goto each;
#endif
sleep:
#ifdef F_DRAIN
	event = 0;
#endif
end:	atomic { event || gone[0] || gone[1] -> event = 0 };
lower:	atomic {
		moved = 0;
		last = 0;
		ST(CONDUCTOR, ASLEEP, 0);
		ST(CONDUCTOR, STARVING, 0);
		goto turn }
}

init {
	atomic {
		block[0] = 0;
		mem[RESIDENCY(0)] = WORD(0);
#if BUFFERS > 1
		block[LAST] = LAST;
		mem[RESIDENCY(LAST)] = WORD(LAST);
#endif
		run Drain(0);
		run Drain(1);
		run Drain(CONDUCTOR);
		run Conductor();
		run Consumer(0);
		run Consumer(1)
	}
	timeout;
	assert(!ANY_DRAINS && want[0] == 0 && want[1] == 0 && !sleeping[0] && !sleeping[1])
}
