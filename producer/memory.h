/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - how much memory this process may still take, before it takes it.
 *
 * Reserving shared memory does not fail at the limit of a cgroup: the kernel kills somebody instead. So
 * the pool's size is compared first with what the machine has available and with the limit of each
 * cgroup above this process (version 2 and 1), page cache not counted as used.
 *
 * Concurrency: reads files under /proc and /sys; thread-safe.
 */
#ifndef STOUP_PRODUCER_MEMORY_H
#define STOUP_PRODUCER_MEMORY_H

#include <stdint.h>

/* Bytes that can be taken now, UINT64_MAX where nothing tells; `what` gets what limits them
 * ("the machine", "cgroup /docker/1234"). */
uint64_t stoup_memory_available(char *what, uint32_t what_cap);

#endif
