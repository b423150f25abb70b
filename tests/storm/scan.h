/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - a scan that knows what must come: every record in its place, every byte as it was made.
 *
 *      open --step--> span: looked at whole, perhaps held on --step--> ... --> end: nothing is missing
 *                       \--> a held span is looked at again when it is given back, steps later
 *
 * Invariant: `next` is the ordinal that has to come; whatever a daemon's end does to the attachment, the
 * record after it is this one. What is found otherwise is said on stderr and counted, never put right.
 *
 * Concurrency: a run and its scans belong to one thread; runs of several threads may share an attachment.
 */
#ifndef STOUP_TESTS_STORM_SCAN_H
#define STOUP_TESTS_STORM_SCAN_H

#include <stdint.h>
#include "consumer/stoup.h"
#include "storm/board.h"

#define STORM_HOLD_CAP 4u
#define STORM_LATE_NS  UINT64_C(5000000000) /* what a call may take beyond its time */

/* What one thread works with. */
struct storm_run {
	const char *pool;
	struct storm_board *board;
	struct storm_tally *tally;
	struct storm_worker *self; /* NULL: a victim, of which nothing is expected */
	struct stoup *st;
	uint64_t seed, random;
	uint64_t reconnect_cnt;      /* as of the last look */
	uint64_t fork_reconnect_cnt; /* as of the last fork that was for another session */
	uint64_t asked_ns;           /* by hand: the call that met the end; 0 = none */
	uint64_t longest_ns;         /* that one call may take */
	uint32_t slot;               /* for messages */
	uint32_t steps_left;         /* of a child; 0 = no end */
	int formerly;                /* the next child has leases of the session before */
	uint32_t child_cnt;          /* at most so many live */
	_Atomic uint32_t *end;       /* of a second thread: set when it is to end */
	int by_hand; /* attaches anew by itself instead of leaving it to the library */
};

struct storm_held {
	struct stoup_span span;
	struct stoup_lease lease;
	int busy;
};

struct storm_scan {
	struct storm_run *run;
	struct stoup_cursor *cur; /* NULL: to be opened again, at `next` */
	uint32_t series;
	uint32_t edition; /* UINT32_MAX: the first record tells */
	uint64_t next, end;
	int whole; /* no range was given: the end may move on when the store grows */
	uint32_t hold_cnt, hold_permille;
	struct storm_held held[STORM_HOLD_CAP];
};

uint64_t storm_now(void); /* CLOCK_MONOTONIC */

/* A call that began at `asked_ns` has returned: did it keep its time? */
void storm_call_took(struct storm_run *run, const char *call, uint64_t asked_ns);

/* Something went on: a worker that says this for too long no more hangs. */
void storm_progress(struct storm_run *run, uint64_t now_ns);

/* Count and say that something is not as it must be. */
void storm_violation(struct storm_run *run, _Atomic uint64_t *tally, uint64_t n, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* Open a scan of the ordinals [from, end); whole: of the whole series. 0; a negative errno: the daemon's
 * end, or a violation that was said. */
int storm_scan_open(struct storm_scan *scan);

/* One span: 1; 0 at the end; -EAGAIN: nothing came, try again; -EPIPE: the daemon ended, and the run
 * attaches by hand; another negative errno: the scan is given up. */
int storm_scan_step(struct storm_scan *scan);

/* Look at all that is held again and give it back; keep the place. */
void storm_scan_suspend(struct storm_scan *scan);

#endif
