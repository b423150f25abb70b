/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the clock that all times between processes are told in: CLOCK_MONOTONIC, in nanoseconds. */
#ifndef STOUP_SHM_CLOCK_H
#define STOUP_SHM_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t stoup_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
