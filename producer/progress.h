/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - one line on a terminal that says how far long work is; silent in a pipe.
 *
 *      ingest: 12.4 M records, 1.2 GiB                         (no total known)
 *      write:  37 %  431 MiB of 1.1 GiB                        (total known)
 *
 * Invariant: nothing is written to a stderr that is no terminal, and at most ten lines a second.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_PRODUCER_PROGRESS_H
#define STOUP_PRODUCER_PROGRESS_H

#include <stdint.h>

struct stoup_progress {
	const char *label;  /* borrowed */
	uint64_t total_len; /* bytes; 0: unknown */
	int64_t shown_ns;   /* when the last line was written */
	int on;             /* stderr is a terminal and the user did not ask for quiet */
	int dirty;          /* a line stands there */
};

void stoup_progress_begin(
	struct stoup_progress *progress, const char *label, uint64_t total_len, int quiet);

/* Show where the work is: bytes, and a count of records (0: not shown). Cheap when it is too early
 * for a new line, or when nobody looks. */
void stoup_progress_step(struct stoup_progress *progress, uint64_t done_len, uint64_t record_cnt);

/* Clear the line. */
void stoup_progress_end(struct stoup_progress *progress);

#endif
