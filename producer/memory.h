/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - how much memory this process may still take, before it takes it; and keeping it there.
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
#include "shm/stoup_types.h"

/* The number in the line of a file of /proc or /sys that begins with `key` (the first line where key is ""); UINT64_MAX:
 * no such file, line or number ("max"). */
uint64_t stoup_memory_number(const char *path, const char *key);

/* Bytes that can be taken now, UINT64_MAX where nothing tells; `what` gets what limits them
 * ("the machine", "cgroup /docker/1234"). */
uint64_t stoup_memory_available(char *what, uint32_t what_cap);

/* The same with the files of /proc and /sys below `root`, for `stoup check`. */
uint64_t stoup_memory_available_in(const char *root, char *what, uint32_t what_cap);

/* Lock `len` bytes at `base` in memory, for --mlock; `all_len` is what will be locked in all. 0, or a negative
 * errno with needed, available and the setting that mends it. */
int stoup_memory_lock(void *base, uint64_t len, uint64_t all_len, struct stoup_error *err);

#endif
