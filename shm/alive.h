/* SPDX-License-Identifier: Apache-2.0 */
/* alive.h - a word in shared memory that the kernel itself marks when its owner ends, however that ends.
 *
 *      0 --stoup_alive_own--> id of the owner's thread --exit, exec, SIGKILL--> FUTEX_OWNER_DIED set
 *
 * Who maps the word, read-only as well and in whatever PID namespace, learns of the end by a load: no system
 * call, no timeout. It is the list of robust futexes that the kernel walks when a thread ends (set_robust_list),
 * with this one word in it. The C library keeps the robust mutexes of a thread in the same list: the owner
 * gives it up, and must lock none.
 *
 * 0 means that nothing is known: the kernel has no such list, or refused it. Marked is certain. Not marked is
 * nearly so: where the kernel cannot write to the page of the word any more it gives up without a word, so
 * that who waits for long looks elsewhere as well.
 */
#ifndef STOUP_SHM_ALIVE_H
#define STOUP_SHM_ALIVE_H

#include <stdatomic.h>
#include <stdint.h>

enum stoup_alive {
	STOUP_ALIVE_UNKNOWN, /* nobody said */
	STOUP_ALIVE_YES,
	STOUP_ALIVE_NO /* certain */
};

/* The calling thread owns `word`, which is shared, 4-byte aligned, and mapped until that thread ends. One word per
 * process. 0 or a negative errno; then the word stays 0. */
int stoup_alive_own(_Atomic uint32_t *word);

/* What the word says. Relaxed: nothing that the owner wrote is ordered by its end. */
static inline enum stoup_alive stoup_alive_look(const _Atomic uint32_t *word)
{
	uint32_t value = atomic_load_explicit(word, memory_order_relaxed);

	if (value & UINT32_C(0x40000000)) /* FUTEX_OWNER_DIED */
		return STOUP_ALIVE_NO;
	return value != 0 ? STOUP_ALIVE_YES : STOUP_ALIVE_UNKNOWN;
}

#endif
