/* SPDX-License-Identifier: Apache-2.0 */
/* pace.h - the pure part of a replay: which time of the data it is at which time of the clock, and how late things were.
 *
 *      data        d0 -----------------.  speed 2
 *                                    .'
 *                                  .'      .- - - - pause: the data stands
 *      clock       m0 ------------'-------'--------->
 *
 *      due(d)   = m0 + ceil((d - d0) / speed)      the clock at which a record of time d may be handed out
 *      limit(m) = d0 + floor((m - m0) * speed)     the last time of the data that is due at m
 *
 * Invariant: due(d) <= m exactly when d <= limit(m): both are of integers, the speed a fraction of 2^32, so that nothing
 * is ever early by rounding. A pause, and each change of speed, begins a new line at the present point.
 *
 * Concurrency: none inside; replay.c has the lock. No clock is read here.
 */
#ifndef STOUP_CONSUMER_PACE_H
#define STOUP_CONSUMER_PACE_H

#include <stdint.h>

#define STOUP_PACE_SPEED_MIN 0.001
#define STOUP_PACE_SPEED_MAX 1e9

struct stoup_pace {
	int64_t data_ns;  /* d0 */
	uint64_t mono_ns; /* m0 */
	uint64_t speed;   /* times 2^32; 0: as fast as can be */
	int paused;
};

/* 2^32 times `speed`, which is between the two above, or INFINITY: 0. */
uint64_t stoup_pace_speed(double speed);

/* The greatest time of the data that is due; before m0 what lies in front of d0. INT64_MIN: nothing, it is paused. */
int64_t stoup_pace_limit(const struct stoup_pace *pace, uint64_t mono_ns);

/* The clock from which on a time of the data is due; UINT64_MAX: it is paused, or that is beyond the clock's end. */
uint64_t stoup_pace_due(const struct stoup_pace *pace, int64_t data_ns);

/* From now on with another speed, paused or not. */
void stoup_pace_turn(struct stoup_pace *pace, uint64_t mono_ns, uint64_t speed, int paused);

/* ---- how late -------------------------------------------------------------------------------- */

/* Log-linear: 16 steps to each power of two, so that a bucket is 6.25 % wide; exact below 16. */
#define STOUP_LATE_STEPS   16u
#define STOUP_LATE_BUCKETS (61u * STOUP_LATE_STEPS)

struct stoup_late {
	uint64_t cnt, max_ns;
	uint64_t buckets[STOUP_LATE_BUCKETS];
};

uint32_t stoup_late_bucket(uint64_t ns);

/* The greatest value of a bucket. */
uint64_t stoup_late_high(uint32_t bucket);

void stoup_late_add(struct stoup_late *late, uint64_t ns, uint64_t cnt);

/* Of all records, `part` thousandths were at most this late: the bucket's greatest value, at most max_ns. 0 where there
 * are none. */
uint64_t stoup_late_part(const struct stoup_late *late, uint32_t part);

#endif
