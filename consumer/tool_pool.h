/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pool.h - which control object a tool's POOL argument means. */
#ifndef STOUP_CONSUMER_TOOL_POOL_H
#define STOUP_CONSUMER_TOOL_POOL_H

#include <stddef.h>
#include "shm/control.h"
#include "shm/stoup_types.h"

/* Open the control object of a pool by name, or (a text with a slash) of a store's automatic daemon,
 * which is not started. Where the name is gone or may not be read, the daemon is asked for it through its
 * socket, as a monitor: at most 0.9 s. Returns as stoup_control_open, or -ETIMEDOUT; the caller closes it. */
int stoup_pool_resolve(const char *pool, const struct stoup_control **ret, size_t *ret_len,
	struct stoup_error *err);

/* The path of a stoupd in the directory of this program: 1 when there is one. */
int stoup_daemon_beside(char *dst, size_t cap);

#endif
