/* SPDX-License-Identifier: Apache-2.0 */
/* takeover.h - memory that the pool of the daemon before still has: wait for it, and say who holds it.
 *
 *      short of memory --> who maps that pool? --nobody--> the error stands
 *                              | somebody
 *                              +--> wait a moment --> try again ... until `wait_ns` is over --> the error names them
 *
 * Consumers of a daemon that was killed or stopped keep the mapping while they hold leases. On a machine
 * that has memory for one pool the next daemon can only start when they let go.
 *
 * Limits: processes of other users are seen by root alone; a pool in memfd or hugetlb of the same name in
 * another container is counted as well. Looking takes at most LOOK_MS: a process can keep others from
 * reading its memory map, so a child of ours reads them.
 */
#ifndef STOUP_PRODUCER_TAKEOVER_H
#define STOUP_PRODUCER_TAKEOVER_H

#include <stdint.h>
#include "producer/daemon.h"

struct stoup_takeover {
	uint64_t begin_ns, until_ns; /* CLOCK_MONOTONIC */
	uint64_t look_ns;            /* when to look again */
	uint32_t cnt;                /* processes at the last look */
	char who[112];               /* pid and command of the first of them */
};

void stoup_takeover_begin(struct stoup_takeover *t, uint64_t wait_ns);

/* Memory for `len` bytes is short: `rc` and `err` say so. 0 = waited a moment, try again. Else the error to
 * end with: the same one where nobody maps the old pool; one that names who does; -EINTR: told to stop. */
int stoup_takeover_wait(struct stoup_takeover *t, struct stoup_daemon *d, uint64_t len, int rc,
	struct stoup_error *err);

#endif
