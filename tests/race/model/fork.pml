/* SPDX-License-Identifier: Apache-2.0 */
/* fork.pml - leases copied for a child: copy, ticket, fork, adoption, expiry, death.
 *
 *      Worker (parent, any thread)     Conductor                         Forker (parent), Child
 *      LOOK, exchange, re-load         evict: clear, fence, scan all     prepare: "copy my leases"
 *      RELEASE                           pages, the copy's included      fork: records as they are
 *                                      copy: each cell that leases       child: ticket -> page
 *      goes on all the time              now, into a page of its own     adopt: record == copied cell
 *                                      expire, give up, drop the dead    the rest is released
 *
 * Follows stoup_fork_copy and stoup_fork_find of producer/fork.c, stoup_fork_prepare, stoup_fork_child and
 * stoup_fork_parent of consumer/, and what lease.pml follows. Threads of the parent are not stopped here:
 * hits take no lock, so that a lease may come or go between the copy and the fork. What the child may
 * believe is therefore what its record and its page both say.
 *
 * Holds (assertions): a buffer is retired only when nobody holds it, neither the parent nor a child nor a
 * copy that waits; a copied cell names bytes that are resident; after the adoption the child's page names
 * what the child holds and nothing else; at the end no copy is left.
 *
 * With CHILDREN 2 a second one shows the ticket: of another fork, or the child's own. Words of older
 * generations are STALE, and cell i takes block i, as in lease.pml. A child that was refused touches
 * nothing. When the copy is over nothing is loaded or evicted any more: lease.pml has the rest.
 *
 * Sizes:   BUFFERS, CHILDREN
 * Faults:  F_NO_GENERATION  the copy takes cells without looking at the generation
 *          F_PARENT_COPIES  the parent copies its cells itself
 *          F_COPY_IN_PASS   the copy is made between scan and retire
 *          F_UNSCANNED      the scan passes by pages that nobody has come for yet
 *          F_CHILD_TRUSTS   the child believes its records without a look at its page
 *          F_KEEP_REST      the child leaves in its page what it has no record of
 *          F_TICKET_TWICE   a ticket is good for more than one child       (CHILDREN 2)
 *          F_EXPIRE_USED    a copy expires though its child has come
 */
#ifndef BUFFERS
#define BUFFERS   2
#endif
#ifndef CHILDREN
#define CHILDREN  1
#endif
#define BLOCKS    2
#define CELLS     2
#define WORKER    0
#define CONDUCTOR 1
#define WRITERS   2
#define DEPTH     2

/* shared words: the parent's cells, then the copy's */
#define RESIDENCY(s) (s)
#define CELL(i)      (BLOCKS + (i))
#define COPY(i)      (BLOCKS + CELLS + (i))
#define ADDRESSES    COPY(CELLS)
#include "store_buffer.inc"

#define WORD(b)  (1 + (b))
#define STALE    (1 + BUFFERS)
#define INDEX(w) ((w) - 1)
#define FRESH(w) ((w) != 0 && (w) <= BUFFERS)

/* conductor: what each buffer holds; the ticket */
#define NONE 255
byte block[BUFFERS] = NONE;
#define UNASKED  0
#define ASKED    1
#define COPIED   2
#define REDEEMED 3
#define OVER     4
byte ticket;
bit page;     /* of the copy: scanned */
bit gone;     /* a child that has redeemed is dead */

/* consumers: the word between LOOK and the re-load; what each cell leases, and the child's memory of it */
byte word;
byte held[CELLS];
byte record[CELLS];
byte forked;   /* DONE, or FAILED: the copy is given up */
#define DONE   1
#define FAILED 2
byte child_held[CHILDREN * CELLS];

inline drop_copy()
{
	page = 0;
	mem[COPY(0)] = 0;
	mem[COPY(1)] = 0
}

/* ---- parent ------------------------------------------------------------------------------------ */

#define LOOK(i_) held[i_] == 0 && LD(WORKER, RESIDENCY(i_)) != 0 -> \
	word = LD(WORKER, RESIDENCY(i_)); i = i_
#define RELEASE(i_) atomic { held[i_] != 0 && LOCKED(WORKER) -> mem[CELL(i_)] = 0; held[i_] = 0 }

proctype Worker()
{
	byte i;

end:	do
	:: atomic {
		if
		:: LOOK(0)
		:: LOOK(1)
		fi };
	   atomic { LOCKED(WORKER) -> mem[CELL(i)] = word };
	   atomic {
		if
		:: LD(WORKER, RESIDENCY(i)) == word -> held[i] = word
		:: else -> STR(WORKER, CELL(i), 0)
		fi;
		word = 0;
		i = 0 }
	:: RELEASE(0)
	:: RELEASE(1)
	od
}

#define TAKEN(i) (FRESH(mem[CELL(i)]) -> mem[CELL(i)] : 0)

proctype Forker()
{
	ticket = ASKED;
#ifdef F_PARENT_COPIES
	atomic { page = 1; mem[COPY(0)] = mem[CELL(0)] };
	atomic { mem[COPY(1)] = mem[CELL(1)]; ticket = COPIED };
#endif
	atomic { ticket >= COPIED ->
		if
		:: record[0] = held[0]; record[1] = held[1]; forked = DONE
		:: forked = FAILED;
			if
			:: ticket == COPIED -> drop_copy(); ticket = OVER
			:: else
			fi
		fi }
}

/* ---- child ------------------------------------------------------------------------------------- */

#define CHILD_HELD(c, i) child_held[(c) * CELLS + (i)]
#ifdef F_CHILD_TRUSTS
#define BELIEVED(i) (record[i] != 0)
#else
#define BELIEVED(i) (record[i] != 0 && record[i] == mem[COPY(i)])
#endif
#ifdef F_TICKET_TWICE
#define GOOD (ticket == COPIED || ticket == REDEEMED)
#else
#define GOOD (ticket == COPIED)
#endif
#define ADOPTED(c, i) (mem[COPY(i)] == CHILD_HELD(c, i))

inline adopt(c, i)
{
	if
	:: BELIEVED(i) -> CHILD_HELD(c, i) = record[i]
	:: else ->
#ifdef F_KEEP_REST
		skip
#else
		mem[COPY(i)] = 0
#endif
	fi;
#ifndef F_CHILD_TRUSTS
	assert(ADOPTED(c, i))
#endif
}

#define CHILD_RELEASE(i_) atomic { CHILD_HELD(c, i_) != 0 -> \
	mem[COPY(i_)] = 0; CHILD_HELD(c, i_) = 0 }

proctype Child(byte c)
{
	if
	:: atomic { forked == FAILED -> goto over }
	:: atomic { forked == DONE && GOOD -> ticket = REDEEMED; adopt(c, 0); adopt(c, 1) }
	:: atomic { forked == DONE && !GOOD -> goto over }
	fi;
	do
	:: CHILD_RELEASE(0)
	:: CHILD_RELEASE(1)
	:: atomic { CHILD_HELD(c, 0) == 0 && CHILD_HELD(c, 1) == 0 -> break }
	:: break /* killed */
	od;
	/* Detached or dead: its page falls away once the kernel has said so. */
	atomic { CHILD_HELD(c, 0) = 0; CHILD_HELD(c, 1) = 0; gone = 1 };
over:	skip
}

/* ---- conductor --------------------------------------------------------------------------------- */

#define LAST (BUFFERS - 1)
#if CHILDREN > 1
#define ANY_CHILD(w) (child_held[0] == w || child_held[1] == w || child_held[2] == w || child_held[3] == w)
#else
#define ANY_CHILD(w) (child_held[0] == w || child_held[1] == w)
#endif
#define HOLDERS(w) (held[0] == w || held[1] == w || ANY_CHILD(w) || \
	(page && (mem[COPY(0)] == w || mem[COPY(1)] == w)))
#define AGE(x) if :: x == WORD(b) -> x = STALE :: else fi

inline retire(b)
{
	assert(!HOLDERS(WORD(b)));
	block[b] = NONE;
	AGE(mem[CELL(0)]);
	AGE(mem[CELL(1)]);
	AGE(mem[COPY(0)]);
	AGE(mem[COPY(1)]);
	AGE(word);
	AGE(record[0]);
	AGE(record[1])
}

#ifdef F_UNSCANNED
#define SCANNED (page && ticket == REDEEMED)
#else
#define SCANNED page
#endif
#define NAMES(address, present) atomic { LOCKED(CONDUCTOR) -> \
	if \
	:: present && FRESH(mem[address]) -> refs[INDEX(mem[address])] = 1 \
	:: else \
	fi }

inline choose(b)
{
	if
	:: block[b] != NONE -> candidate[b] = 1; STR(CONDUCTOR, RESIDENCY(block[b]), 0)
	:: b == 0 || block[b] == NONE || candidate[0]
	fi
}

inline settle(b)
{
	if
	:: candidate[b] && !refs[b] -> retire(b)
	:: candidate[b] && refs[b] -> STR(CONDUCTOR, RESIDENCY(block[b]), WORD(b))
	:: !candidate[b]
	fi;
	candidate[b] = 0;
	refs[b] = 0
}

#ifdef F_NO_GENERATION
#define COPIED_CELL(i) mem[CELL(i)]
#else
#define COPIED_CELL(i) TAKEN(i)
#endif

inline copy_cell(i)
{
	atomic {
		mem[COPY(i)] = COPIED_CELL(i);
		assert(mem[COPY(i)] == 0 || FRESH(mem[COPY(i)])) }
}

inline copy()
{
	copy_cell(0);
	copy_cell(1);
	atomic { page = 1; ticket = COPIED }
}

#ifdef F_EXPIRE_USED
#define EXPIRE ticket == REDEEMED && page -> drop_copy()
#else
#define EXPIRE ticket == COPIED -> drop_copy(); ticket = OVER
#endif

#define ABSENT(s) (block[0] != (s) && block[LAST] != (s))
#define ROOM (block[0] == NONE -> 0 : LAST)
#define LOAD(s_) atomic { (block[0] == NONE || block[LAST] == NONE) && ABSENT(s_) && ticket != OVER -> \
	k = ROOM; \
	block[k] = s_; \
	STR(CONDUCTOR, RESIDENCY(s_), WORD(k)); \
	k = 0 }

proctype Conductor()
{
	bit candidate[BUFFERS], refs[BUFFERS];
	byte k;

end:	do
	:: LOAD(0)
	:: LOAD(1)
	:: atomic { ticket != OVER && (block[0] != NONE || block[LAST] != NONE) ->
		choose(0);
#if BUFFERS > 1
		choose(LAST)
#endif
	   };
	   NAMES(CELL(0), true);
	   NAMES(CELL(1), true);
	   NAMES(COPY(0), SCANNED);
	   NAMES(COPY(1), SCANNED);
#ifdef F_COPY_IN_PASS
	   if
	   :: ticket == ASKED -> copy()
	   :: true
	   fi;
#endif
	   atomic {
		settle(0);
#if BUFFERS > 1
		settle(LAST)
#endif
	   }
#ifndef F_PARENT_COPIES
	:: ticket == ASKED -> copy()
#endif
	:: atomic { EXPIRE }
	:: atomic { ticket == REDEEMED && gone -> drop_copy(); ticket = OVER }
	od
}

init {
	atomic {
		run Drain(WORKER);
		run Drain(CONDUCTOR);
		run Conductor();
		run Worker();
		run Forker();
#if CHILDREN > 1
		run Child(1);
#endif
		run Child(0)
	}
	timeout;
	assert(ticket == OVER && !page && mem[COPY(0)] == 0 && mem[COPY(1)] == 0)
}
