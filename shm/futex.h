/* SPDX-License-Identifier: Apache-2.0 */
/* futex.h - wait for a change of a word in shared memory: asleep, or spinning (works on read-only mappings too). */
#ifndef STOUP_SHM_FUTEX_H
#define STOUP_SHM_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleep while *word == value, at most timeout_ns (>= 0). 0 woken or changed, -ETIMEDOUT, -EINTR. */
int stoup_futex_wait(const _Atomic uint32_t *word, uint32_t value, int64_t timeout_ns);

/* Wake up to cnt sleepers. Returns how many, or a negative errno. */
int stoup_futex_wake(_Atomic uint32_t *word, uint32_t cnt);

/* Between two looks of a spinning loop: leaves the core's units to its other thread, and the word to its writer. */
static inline void stoup_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
