/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - see pace.h. */
#include "consumer/pace.h"

#define SPEED_ONE 4294967296.0

__extension__ typedef unsigned __int128 wide;

uint64_t stoup_pace_speed(double speed)
{
	return speed > STOUP_PACE_SPEED_MAX ? 0 : (uint64_t)(speed * SPEED_ONE);
}

int64_t stoup_pace_limit(const struct stoup_pace *pace, uint64_t mono_ns)
{
	wide gone;

	if (pace->paused)
		return INT64_MIN;
	if (mono_ns < pace->mono_ns)
		return pace->data_ns - 1;
	if (pace->speed == 0)
		return INT64_MAX;
	gone = (wide)(mono_ns - pace->mono_ns) * pace->speed >> 32;
	if (gone > (wide)(INT64_MAX - pace->data_ns))
		return INT64_MAX;
	return pace->data_ns + (int64_t)gone;
}

uint64_t stoup_pace_due(const struct stoup_pace *pace, int64_t data_ns)
{
	wide wait;

	if (pace->paused)
		return UINT64_MAX;
	/* What lies in front of the line is due whatever the clock is. */
	if (data_ns < pace->data_ns)
		return 0;
	if (pace->speed == 0)
		return pace->mono_ns;
	wait = (((wide)(uint64_t)(data_ns - pace->data_ns) << 32) + (pace->speed - 1)) /
	       pace->speed;
	if (wait > (wide)(UINT64_MAX - pace->mono_ns))
		return UINT64_MAX;
	return pace->mono_ns + (uint64_t)wait;
}

void stoup_pace_turn(struct stoup_pace *pace, uint64_t mono_ns, uint64_t speed, int paused)
{
	/* As fast as can be: the data has no time between two records. */
	if (!pace->paused && pace->speed != 0 && mono_ns > pace->mono_ns)
		pace->data_ns = stoup_pace_limit(pace, mono_ns);
	if (mono_ns > pace->mono_ns)
		pace->mono_ns = mono_ns;
	pace->speed = speed;
	pace->paused = paused;
}

/* ---- how late ---------------------------------------------------------------------------------- */

uint32_t stoup_late_bucket(uint64_t ns)
{
	uint32_t shift;

	if (ns < STOUP_LATE_STEPS)
		return (uint32_t)ns;
	shift = 59 - (uint32_t)__builtin_clzll(ns);
	return (shift + 1) * STOUP_LATE_STEPS + (uint32_t)(ns >> shift & (STOUP_LATE_STEPS - 1));
}

uint64_t stoup_late_high(uint32_t bucket)
{
	uint32_t shift;

	if (bucket < STOUP_LATE_STEPS)
		return bucket;
	shift = bucket / STOUP_LATE_STEPS - 1;
	return (((uint64_t)STOUP_LATE_STEPS + bucket % STOUP_LATE_STEPS) << shift) +
	       ((UINT64_C(1) << shift) - 1);
}

void stoup_late_add(struct stoup_late *late, uint64_t ns, uint64_t cnt)
{
	late->cnt += cnt;
	late->max_ns = ns > late->max_ns ? ns : late->max_ns;
	late->buckets[stoup_late_bucket(ns)] += cnt;
}

uint64_t stoup_late_part(const struct stoup_late *late, uint32_t part)
{
	wide want = ((wide)late->cnt * part + 999) / 1000, seen = 0;
	uint64_t high;

	for (uint32_t i = 0; i < STOUP_LATE_BUCKETS && late->cnt > 0; i++) {
		seen += late->buckets[i];
		if (seen >= want && seen > 0) {
			high = stoup_late_high(i);
			return high < late->max_ns ? high : late->max_ns;
		}
	}
	return late->max_ns;
}
