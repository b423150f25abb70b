/* SPDX-License-Identifier: Apache-2.0 */
/* board.h - what the storm's controller and its workers write down for each other, in a memfd.
 *
 *      controller: phase, limits of what may be read       worker i: its tallies, where it is
 *
 *      phase   RUN --> PAUSE (every worker gives back all that it holds, and parks) --> RUN ... --> END
 *
 * Invariant: a tally is added to after what it counts has happened, and a worker that is killed leaves
 * it as it was: the board outlives everybody who writes on it.
 */
#ifndef STOUP_TESTS_STORM_BOARD_H
#define STOUP_TESTS_STORM_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#define STORM_WORKER_CAP 32u
#define STORM_SERIES_CAP 64u
#define STORM_RESUME_CAP 4096u /* per worker: more than daemon kills */

enum storm_phase {
	STORM_RUN,
	STORM_PAUSE,
	STORM_END
};

/* One going-on after the end of a daemon: CLOCK_MONOTONIC. */
struct storm_resume {
	uint64_t asked_ns;   /* the call that met the end began */
	uint64_t resumed_ns; /* it came back with records */
};

struct storm_tally {
	_Atomic uint64_t spans, records, bytes;
	_Atomic uint64_t scans;               /* that were read to their end */
	_Atomic uint64_t held;                /* spans that were held on, and looked at again */
	_Atomic uint64_t wrong;               /* spans with a byte that is not what it must be */
	_Atomic uint64_t held_wrong;          /* of held ones, at the second look */
	_Atomic uint64_t lost, doubled;       /* records */
	_Atomic uint64_t failed;              /* calls that returned what they must not */
	_Atomic uint64_t waits;               /* calls that ran into a time-out, or starved */
	_Atomic uint64_t orphaned;            /* calls that waited in vain for another daemon */
	_Atomic uint64_t stale;               /* scans given up because the store had changed */
	_Atomic uint64_t refreshes, children; /* snapshots taken anew; children that inherited */
	_Atomic uint64_t reattaches;          /* by hand, after -EPIPE, or for no reason */
	_Atomic uint64_t late;                /* calls that took much longer than they may */
};

struct storm_worker {
	struct storm_tally tally;
	_Atomic uint64_t progress_ns; /* last step */
	_Atomic uint32_t parked;      /* holds nothing, and waits for another phase */
	_Atomic uint32_t resume_cnt;
	struct storm_resume resumes[STORM_RESUME_CAP];
};

struct storm_board {
	_Atomic uint32_t phase; /* enum storm_phase */
	uint32_t series_cnt;
	uint32_t shift_cnt; /* series that are replaced meanwhile */
	uint32_t forks;     /* many forks, and several threads to a worker */
	_Atomic uint64_t record_cnt[STORM_SERIES_CAP]; /* at least so many are in the store */
	struct storm_tally victims;                    /* of all of them together */
	struct storm_worker workers[STORM_WORKER_CAP];
};

static inline void storm_add(_Atomic uint64_t *tally, uint64_t n)
{
	atomic_fetch_add_explicit(tally, n, memory_order_relaxed);
}

static inline uint64_t storm_get(const _Atomic uint64_t *tally)
{
	return atomic_load_explicit(tally, memory_order_relaxed);
}

#endif
