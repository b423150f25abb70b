/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - the inside of a replay that tests reach for: another clock.
 *
 * Concurrency: to be set before the first call of stoup_replay_next.
 */
#ifndef STOUP_CONSUMER_REPLAY_H
#define STOUP_CONSUMER_REPLAY_H

#include "consumer/stoup.h"

struct stoup_replay_clock {
	uint64_t (*now)(void *arg);
	/* Until due_ns (UINT64_MAX: until somebody turns the replay on again), not beyond until_ns. 0, or -EINTR. */
	int (*wait)(void *arg, uint64_t due_ns, uint64_t until_ns);
	void *arg;
};

void stoup_replay_clock(struct stoup_replay *replay, const struct stoup_replay_clock *clock);

#endif
