/* SPDX-License-Identifier: Apache-2.0 */
/* tool_daemon.h - a stoupd of a tool's own: for measuring, beside all others.
 *
 *      start: fork, exec --ready pipe--> ready        stop: SIGTERM, wait
 *
 * It ends with the tool, however that ends (the kernel sends it SIGTERM).
 *
 * Concurrency: one thread starts and stops.
 */
#ifndef STOUP_CONSUMER_TOOL_DAEMON_H
#define STOUP_CONSUMER_TOOL_DAEMON_H

#include <stdint.h>
#include <sys/types.h>
#include "shm/stoup_types.h"

struct stoup_tool_daemon {
	pid_t pid; /* 0: none */
	char pool[64];
};

/* Start a daemon for the store with a pool of `pool_len` bytes (memfd: no need of /dev/shm) under a name of
 * its own, and wait until it is ready. $STOUPD, else the one beside this program, else the one in $PATH.
 * 0; -ECONNABORTED with the daemon's own text; -errno of fork and pipe. */
int stoup_tool_daemon_start(const char *store, uint64_t pool_len, struct stoup_tool_daemon *ret,
	struct stoup_error *err);

/* Stop and wait; nothing where none runs. */
void stoup_tool_daemon_stop(struct stoup_tool_daemon *daemon);

#endif
