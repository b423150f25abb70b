/* SPDX-License-Identifier: Apache-2.0 */
/* event64_claim.h - which files an array of events is made of, so that nothing in it is told twice.
 *
 *      file 1  trades  |-------|                    of one source (a symbol, an instrument)
 *      file 2  trades          |-------|            one feed tells of the trades, one of the book
 *      file 3  book    |---------------|            files of one feed may touch, but not overlap
 *
 * Invariant: what passed the checks has each trade and each change of the book from one file alone. Two
 * files that only seem apart (rows of one file given under another time) are not told.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_PRODUCER_EVENT64_CLAIM_H
#define STOUP_PRODUCER_EVENT64_CLAIM_H

#include <stdint.h>
#include "shm/stoup_types.h"

/* What a feed tells of. */
#define STOUP_EVENT64_TRADES 1u
#define STOUP_EVENT64_BOOK   2u

#define STOUP_EVENT64_FEED_CAP   64
#define STOUP_EVENT64_SOURCE_CAP 160

/* A file's part of a series. */
struct stoup_event64_part {
	char feed[STOUP_EVENT64_FEED_CAP];
	char *file;
	uint32_t file_no;
	uint32_t tells;            /* STOUP_EVENT64_TRADES, STOUP_EVENT64_BOOK */
	int64_t first_ns, last_ns; /* local times; first > last: no event yet */
};

/* Of one series; begin with a zeroed one. */
struct stoup_event64_claims {
	struct stoup_event64_part *parts;
	uint32_t part_cnt, part_cap;
	char source[STOUP_EVENT64_SOURCE_CAP]; /* empty: not named yet */
	const char *source_file;               /* that of a part */
};

void stoup_event64_claims_fini(struct stoup_event64_claims *claims);

/* From here on a file, the `file_no`-th of the ingest, adds to the series. May be said again. 0; -EINVAL
 * with text where another feed tells of the same; -ENOMEM. */
int stoup_event64_claims_file(struct stoup_event64_claims *claims, const char *series,
	const char *file, uint32_t file_no, const char *feed, uint32_t tells,
	struct stoup_error *err);

/* The file in hand tells of this symbol or instrument. 0; -EINVAL with text where one before told of another. */
int stoup_event64_claims_source(struct stoup_event64_claims *claims, const char *series,
	const char *source, struct stoup_error *err);

/* The file in hand added an event. With `anew`, its only one before took the same time. */
void stoup_event64_claims_time(struct stoup_event64_claims *claims, int64_t local_ts, int anew);

/* All files were read. 0; -EINVAL with text where two of one feed overlap in time. Sorts the parts. */
int stoup_event64_claims_check(
	struct stoup_event64_claims *claims, const char *series, struct stoup_error *err);

#endif
