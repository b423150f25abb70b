/* SPDX-License-Identifier: Apache-2.0 */
/* tool_choose.h - which pool a monitoring command means where its command line names none.
 *
 * Concurrency: plain function. */
#ifndef STOUP_CONSUMER_TOOL_CHOOSE_H
#define STOUP_CONSUMER_TOOL_CHOOSE_H

#include "shm/control.h"

/* The one pool whose daemon lives, of this user, root and the owner of /run/stoup; where none lives the only one there is.
 * It is named on stderr. 0; or exit status + 1, and stderr has those that one may name, with their states. `command` is
 * "stoup stat". Waits 0.9 s at the most, for a daemon that has to be asked. */
int stoup_tool_choose_pool(const char *command, char dst[STOUP_POOL_NAME_CAP]);

/* Can that be a pool's name, or a store's path? 0; or exit status + 1, for wrong usage, told on stderr. */
int stoup_tool_pool_valid(const char *command, const char *pool);

#endif
