/* SPDX-License-Identifier: Apache-2.0 */
/* restart.pml - the daemon dies or is stopped, another one starts, cursors go on.
 *
 *      Thread (a cursor)                         Daemon: one instance after the other
 *      hit in the session's pool, or             take, load, evict, grant: CAS, then DONE
 *      ask: slot, ticket, pending; wait          stop: waiters fail, exit     (not the last one)
 *        DONE, FAILED, or hang-up: CAS           killed between any two steps (not the last one)
 *      release, or keep an old lease             start: fresh instance, pool, pages; nothing repaired
 *      no daemon: attach to the next one
 *      last use of an old mapping ends: unmap
 *
 * Two consumers: process 0 is two threads with a cell each, which share a session; process 1 is one thread
 * with two cells. A cursor of process 0 reads POS positions, that of process 1 OTHER_POS. Follows consumer/
 * (session, reconnect, wait) and producer/daemon.c, conductor.c, request.c. A hit and an eviction pass are
 * one step each here (lease.pml takes them apart), and so is the futex wake (wake.pml); the stores of a
 * request are seen late. All instances count generations, cells, slots and attachments from the same start,
 * so that their words are equal numbers: only the session tells them apart.
 *
 * Holds (assertions): bytes under a lease stay what they are, mapped, and of the block that was asked for,
 * whoever died since; no buffer is reused while it is held; each position is read once, in order; nobody
 * touches memory that was unmapped. At the end (timeout) every request ended, every position was read, no
 * cell names anything, no old mapping is left.
 *
 * Sizes:   LIVES of daemons, POS, OTHER_POS, BUFFERS, THREADS (2: process 0 alone)
 * Faults:  F_NO_LOOK       who waits does not look at the socket
 *          F_UNMAP_EARLY   the old mapping goes at the reconnect, leases or not
 *          F_UNMAP_WAITER  it goes with the last lease, though a thread still waits in it
 *          F_WORD_JOIN     a lease is joined by its word, whatever its session
 *          F_SESSION_LATE  a grant is booked to the session of the moment, not to that of its request
 *          F_TWO_LOADS     slot and pending bit of one request are found by two loads of the session
 *          F_IN_PLACE      the next daemon takes over the memory of the last one
 *          F_ADVANCE       the cursor moves on when it asks, not when it is granted
 *          F_REPLAY        the cursor goes back after a reconnect
 */
#ifndef LIVES
#define LIVES 2
#endif
#ifndef POS
#define POS 2
#endif
#ifndef OTHER_POS
#define OTHER_POS POS
#endif
#ifndef BUFFERS
#define BUFFERS 1
#endif
#ifndef THREADS
#define THREADS 3
#endif
#define BLOCKS    (BUFFERS + 1)
#define PROCESSES 2
#define CELLS     2
#define SLOTS     2
#define WRITERS   THREADS
#define DEPTH     3

/* shared words of instance i */
#define WORDS          (BLOCKS + PROCESSES * (CELLS + 2 * SLOTS + 1))
#define RESIDENCY(i,b) ((i) * WORDS + (b))
#define CELL(i,p,c)    ((i) * WORDS + BLOCKS + (p) * CELLS + (c))
#define REQUEST(i,p,s) ((i) * WORDS + BLOCKS + PROCESSES * CELLS + (p) * SLOTS + (s))
#define STATE(i,p,s)   ((i) * WORDS + BLOCKS + PROCESSES * (CELLS + SLOTS) + (p) * SLOTS + (s))
#define PENDING(i,p)   ((i) * WORDS + BLOCKS + PROCESSES * (CELLS + 2 * SLOTS) + (p))
#define ADDRESSES      (LIVES * WORDS)
#include "store_buffer.inc"

#define WORD(k)   (1 + (k))
#define FRESH(v)  ((v) != 0 && (v) <= BUFFERS)
#define INDEX(v)  ((v) - 1)
#define TICKET(s) (10 + (s))
#define ASK(b, c) (1 + (b) + 4 * (c))
#define ASK_BLOCK(r) (((r) - 1) % 4)
#define ASK_CELL(r)  (((r) - 1) / 4)
#define DONE   0 /* of a slot; free ones are DONE */
#define FAILED 1
#define WAIT   2

#define NONE 255
byte up = NONE;                  /* the instance that serves */
bit hung[LIVES];                 /* hang-up of its sockets */
byte bytes[LIVES * BUFFERS];     /* of the regions: block, plus 1 */
byte block[BUFFERS] = NONE;      /* daemon: what each buffer holds */
byte waiter[PROCESSES * SLOTS];  /* daemon: the request taken from each slot */

byte session[PROCESSES];         /* instance, plus 1 */
bit mapped[PROCESSES * LIVES];
byte held[THREADS], kept[THREADS]; /* leases: of the cursor's place, of an earlier session */
byte waits[THREADS];             /* instance in whose page a thread waits, plus 1 */
byte seen[THREADS];              /* positions that were read, a bit each */

#ifdef F_IN_PLACE
#define REGION(i) 0
#else
#define REGION(i) (i)
#endif
#define MAPPED(p, i)    mapped[(p) * LIVES + (i)]
#define BYTES(i, k)     bytes[REGION(i) * BUFFERS + (k)]
#define HOLD(i, k, b)   (1 + (b) + 4 * (k) + 8 * (i))
#define HOLD_BLOCK(h)   (((h) - 1) % 4)
#define HOLD_BUFFER(h)  (((h) - 1) / 4 % 2)
#define HOLD_LIFE(h)    (((h) - 1) / 8)
#define IN(h, i)        ((h) != 0 && HOLD_LIFE(h) == (i))
#define OWNER(t)        ((t) / 2)
#define SLOT(t)         ((t) % 2)
#define CELL_OF(t, b)   ((t) < 2 -> (t) : (b) % 2)
#define END(t)          ((t) < 2 -> POS : OTHER_POS)

/* ---- consumer --------------------------------------------------------------------------------- */

#ifdef F_UNMAP_WAITER
#define WAITS(t, i) false
#else
#define WAITS(t, i) (waits[t] == (i) + 1)
#endif
#ifdef F_UNMAP_EARLY
#define USES(t, i) WAITS(t, i)
#else
#define USES(t, i) (IN(held[t], i) || IN(kept[t], i) || WAITS(t, i))
#endif
#define USED(p, i) ((p) == 0 -> (USES(0, i) || USES(1, i)) : USES(THREADS - 1, i))

/* An old mapping goes with its last use. */
inline unmap(i_)
{
	if
	:: MAPPED(p, i_) && session[p] != i_ + 1 && !USED(p, i_) -> MAPPED(p, i_) = 0
	:: else
	fi
}

inline unmap_all()
{
	unmap(0);
	unmap(1);
#if LIVES > 2
	unmap(2)
#endif
}

inline give_back(h)
{
	i = HOLD_LIFE(h);
	b = HOLD_BLOCK(h);
	assert(MAPPED(p, i));
	assert(BYTES(i, HOLD_BUFFER(h)) == b + 1);
	mem[CELL(i, p, CELL_OF(t, b))] = 0;
	h = 0;
	unmap_all();
	i = 0;
	b = 0
}

inline attach()
{
	session[p] = up + 1;
	MAPPED(p, up) = 1;
#ifdef F_REPLAY
	if
	:: pos > 0 -> pos--
	:: else
	fi;
#endif
	unmap_all()
}

/* The lease is there: the cursor moves on. */
inline got()
{
	assert(!(seen[t] & (1 << pos)) && (pos == 0 || (seen[t] & (1 << (pos - 1)))));
	seen[t] = seen[t] | (1 << pos);
#ifdef F_ADVANCE
	pos = pos + !waits[t];
#else
	pos++;
#endif
#ifdef F_SESSION_LATE
	i = session[p] - 1;
#endif
	held[t] = HOLD(i, INDEX(k), b);
	waits[t] = 0;
	unmap_all();
	i = 0;
	b = 0;
	k = 0
}

inline not_got()
{
	waits[t] = 0;
	unmap_all();
	i = 0;
	b = 0;
	k = 0
}

#define SESSION_DEAD (session[p] == 0 || hung[session[p] - 1])
#ifdef F_WORD_JOIN
#define JOINED(w) ((held[0] != 0 && WORD(HOLD_BUFFER(held[0])) == w) || \
	(held[1] != 0 && WORD(HOLD_BUFFER(held[1])) == w) || (kept[t] != 0 && WORD(HOLD_BUFFER(kept[t])) == w))
#else
#define JOINED(w) false
#endif
/* The cell of a kept lease is not free for the next. */
#define KEPT_HERE IN(kept[t], session[p] - 1)
#ifdef F_TWO_LOADS
#define POSTED (session[p] - 1)
#else
#define POSTED i
#endif

proctype Thread(byte t; byte p)
{
	byte pos, i, b, k;

life:	do
	:: atomic { held[t] != 0 && LOCKED(t) -> give_back(held[t]) }
	:: atomic { kept[t] != 0 && LOCKED(t) -> give_back(kept[t]) }
	:: atomic { held[t] != 0 && kept[t] == 0 && hung[HOLD_LIFE(held[t])] -> kept[t] = held[t]; held[t] = 0 }
	:: atomic { held[t] == 0 && kept[t] == 0 && pos == END(t) -> break }
	:: atomic { held[t] == 0 && pos < END(t) && SESSION_DEAD && up != NONE && LOCKED(t) -> attach() }
	:: atomic { held[t] == 0 && pos < END(t) && session[p] != 0 && !KEPT_HERE && LOCKED(t) ->
		b = (pos + t) % BLOCKS;
		i = session[p] - 1;
		k = mem[RESIDENCY(i, b)];
		if
		:: k != 0 ->
			if
			:: JOINED(k)
			:: else -> mem[CELL(i, p, CELL_OF(t, b))] = k
			fi;
			got()
		:: else ->
			waits[t] = i + 1;
			PUSH(t, REQUEST(i, p, SLOT(t)), ASK(b, CELL_OF(t, b)), 0);
			PUSH(t, STATE(i, p, SLOT(t)), WAIT, 0);
			PUSH(t, CELL(i, p, CELL_OF(t, b)), TICKET(SLOT(t)), 1);
#ifdef F_ADVANCE
			pos++;
#endif
			goto posting
		fi }
	od;
	goto over;
posting:
	atomic { LOCKED(t) -> mem[PENDING(POSTED, p)] = mem[PENDING(POSTED, p)] | (1 << SLOT(t)) };
	if
	:: atomic { mem[STATE(i, p, SLOT(t))] == DONE ->
		assert(MAPPED(p, i));
		k = mem[CELL(i, p, CELL_OF(t, b))];
		assert(FRESH(k));
		got() }
	:: atomic { mem[STATE(i, p, SLOT(t))] == FAILED ->
		assert(MAPPED(p, i));
		mem[CELL(i, p, CELL_OF(t, b))] = 0;
		mem[STATE(i, p, SLOT(t))] = DONE;
		not_got() }
#ifndef F_NO_LOOK
	:: atomic { hung[i] && LOCKED(t) ->
		assert(MAPPED(p, i));
		k = mem[CELL(i, p, CELL_OF(t, b))];
		mem[STATE(i, p, SLOT(t))] = DONE;
		if
		:: k == TICKET(SLOT(t)) -> mem[CELL(i, p, CELL_OF(t, b))] = 0; not_got()
		:: else -> assert(FRESH(k)); got()
		fi }
#endif
	fi;
	goto life;
over:	skip
}

/* ---- daemon ----------------------------------------------------------------------------------- */

#define LAST (BUFFERS - 1)
#define HAS(b) (block[0] == (b) || block[LAST] == (b))
#define WHERE(b) (block[0] == (b) -> 0 : LAST)
#define NAMED(w) (mem[CELL(up, 0, 0)] == w || mem[CELL(up, 0, 1)] == w || \
	mem[CELL(up, 1, 0)] == w || mem[CELL(up, 1, 1)] == w)
#define COVERS(h) ((h) != 0 && REGION(HOLD_LIFE(h)) == REGION(up) && HOLD_BUFFER(h) == k)
#if THREADS > 2
#define COVERED (COVERS(held[0]) || COVERS(held[1]) || COVERS(held[2]) || \
	COVERS(kept[0]) || COVERS(kept[1]) || COVERS(kept[2]))
#else
#define COVERED (COVERS(held[0]) || COVERS(held[1]) || COVERS(kept[0]) || COVERS(kept[1]))
#endif
#define ANSWER CELL(up, p, ASK_CELL(r))
#define MORTAL (up < LIVES - 1)

#define TAKE(p_, s_) atomic { mem[PENDING(up, p_)] & (1 << s_) -> \
	mem[PENDING(up, p_)] = mem[PENDING(up, p_)] - (1 << s_); \
	waiter[(p_) * SLOTS + (s_)] = mem[REQUEST(up, p_, s_)] }
#define WAITING(p_, s_) waiter[(p_) * SLOTS + (s_)] != 0 -> p = p_; s = s_; r = waiter[(p_) * SLOTS + (s_)]

/* Room for r's block, if a buffer is free or no cell names it. */
inline room()
{
	if
	:: block[0] == NONE || block[LAST] == NONE ->
		k = (block[0] == NONE -> 0 : LAST);
		load()
	:: block[0] != NONE && block[LAST] != NONE ->
		if
		:: !NAMED(WORD(0)) -> k = 0; evict(); load()
#if BUFFERS > 1
		:: !NAMED(WORD(1)) -> k = 1; evict(); load()
#endif
		:: NAMED(WORD(0)) && NAMED(WORD(LAST))
		fi
	fi
}

inline evict()
{
	mem[RESIDENCY(up, block[k])] = 0
}

inline load()
{
	assert(!COVERED);
	block[k] = ASK_BLOCK(r);
	BYTES(up, k) = ASK_BLOCK(r) + 1;
	mem[RESIDENCY(up, ASK_BLOCK(r))] = WORD(k)
}

inline fail(p_, s_)
{
	if
	:: waiter[(p_) * SLOTS + (s_)] != 0 -> mem[STATE(up, p_, s_)] = FAILED
	:: else
	fi
}

proctype Daemon()
{
	byte p, s, r, k, life;

start:	atomic {
		up = life;
		life++ };
end:	do
	:: TAKE(0, 0)
	:: TAKE(0, 1)
#if THREADS > 2
	:: TAKE(1, 0)
#endif
	:: atomic {
		if
		:: WAITING(0, 0)
		:: WAITING(0, 1)
#if THREADS > 2
		:: WAITING(1, 0)
#endif
		fi;
		if
		:: HAS(ASK_BLOCK(r)) -> waiter[p * SLOTS + s] = 0; goto granting
		:: else -> room()
		fi;
		goto served };
granting:
	   if
	   :: atomic { true ->
		if
		:: mem[ANSWER] == TICKET(s) -> mem[ANSWER] = WORD(WHERE(ASK_BLOCK(r)))
		:: else
		fi }
	   :: MORTAL -> goto dead
	   fi;
	   if
	   :: atomic { true -> mem[STATE(up, p, s)] = DONE }
	   :: MORTAL -> goto dead
	   fi;
served:	   atomic { p = 0; s = 0; r = 0; k = 0 }
	:: atomic { MORTAL -> /* SIGTERM */
		fail(0, 0);
		fail(0, 1);
		fail(1, 0);
		goto dead }
	:: MORTAL -> goto dead /* SIGKILL */
	od;
dead:	atomic {
		hung[up] = 1;
		up = NONE;
		waiter[0] = 0;
		waiter[1] = 0;
		waiter[2] = 0;
		block[0] = NONE;
		block[LAST] = NONE;
		p = 0;
		s = 0;
		r = 0;
		k = 0;
		goto start }
}

/* ---- the end ---------------------------------------------------------------------------------- */

#define EMPTY(i, p) (mem[CELL(i, p, 0)] == 0 && mem[CELL(i, p, 1)] == 0)
#define ALL(t) ((1 << END(t)) - 1)

init {
	atomic {
#if THREADS > 2
		run Drain(2);
		run Thread(2, 1);
#endif
		run Drain(0);
		run Drain(1);
		run Daemon();
		run Thread(0, 0);
		run Thread(1, 0)
	}
	timeout;
	assert(seen[0] == ALL(0) && seen[1] == ALL(1) && seen[THREADS - 1] == ALL(THREADS - 1));
	assert(waits[0] == 0 && waits[1] == 0);
	assert(EMPTY(LIVES - 1, 0) && EMPTY(LIVES - 1, 1));
	assert(mem[PENDING(LIVES - 1, 0)] == 0 && waiter[0] == 0 && waiter[1] == 0);
	assert(!MAPPED(0, 0) || session[0] == 1)
}
