/* SPDX-License-Identifier: Apache-2.0 */
/* lane.h - a sink that keeps what it is given, in order, until another thread puts it into another sink.
 *
 *      importer --put--> lane |batch|batch|batch| --replay--> import
 *      (one thread)            at most cap bytes              (another thread)
 *
 * Files are read by several threads, each into a lane of its own, and the lanes are replayed one after the
 * other: so the import sees what it would see if one thread read the files in their order, and its errors
 * and notes come in that order, too.
 *
 * Invariant: what is replayed is what was put, in order. A lane holds at most `cap` bytes and one entry:
 * who puts more waits for the replay.
 *
 * Concurrency: one thread puts, one replays. Batches change hands under a lock, entries do not: a batch
 * belongs to one of both.
 */
#ifndef STOUP_PRODUCER_LANE_H
#define STOUP_PRODUCER_LANE_H

#include <stddef.h>
#include "producer/sink.h"

struct stoup_lane;

/* 0 or -ENOMEM. */
int stoup_lane_create(size_t cap_len, struct stoup_lane **ret, struct stoup_error *err);
/* Nobody uses it any more; NULL is allowed. */
void stoup_lane_destroy(struct stoup_lane *lane);

/* ---- who puts ---------------------------------------------------------------------------------- */

/* The lane as a sink. Its calls return -ECANCELED once the replay was ended by an error. */
struct stoup_sink stoup_lane_sink(struct stoup_lane *lane);

/* Nothing more comes: `rc` is 0 or the error that ended it, with its text. Once, as the last call. */
void stoup_lane_end(struct stoup_lane *lane, int rc, const struct stoup_error *err);

/* ---- who replays ------------------------------------------------------------------------------- */

/* Put everything into `sink`, waiting for what is still to come. 0; what the lane ended with, or what the
 * sink gives, with text: the lane is cancelled then. */
int stoup_lane_replay(
	struct stoup_lane *lane, const struct stoup_sink *sink, struct stoup_error *err);

/* Have who puts fail with -ECANCELED from now on. Any thread. */
void stoup_lane_cancel(struct stoup_lane *lane);

#endif
