/* SPDX-License-Identifier: Apache-2.0 */
/* futex.h - wait on and wake a 32-bit word in shared memory (works on read-only mappings too). */
#ifndef STOUP_SHM_FUTEX_H
#define STOUP_SHM_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleep while *word == value, at most timeout_ns (>= 0). 0 woken or changed, -ETIMEDOUT, -EINTR. */
int stoup_futex_wait(const _Atomic uint32_t *word, uint32_t value, int64_t timeout_ns);

/* Wake up to cnt sleepers. Returns how many, or a negative errno. */
int stoup_futex_wake(_Atomic uint32_t *word, uint32_t cnt);

#endif
