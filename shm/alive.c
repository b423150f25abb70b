/* SPDX-License-Identifier: Apache-2.0 */
/* alive.c - see alive.h. */
#include "shm/alive.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(FUTEX_OWNER_DIED == 0x40000000, "as stoup_alive_look has it");

/* The list and its one entry lie in private memory: the kernel reads them when the thread ends. */
static struct robust_list_head head;
static struct robust_list entry;

int stoup_alive_own(_Atomic uint32_t *word)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	entry.next = &head.list;
	head.list.next = &entry;
	head.futex_offset = (long)((uintptr_t)word - (uintptr_t)&entry);
	head.list_op_pending = NULL;
	/* The list first: an end in between leaves the word 0, which the kernel does not take for this thread's,
	 * never the name of one that is gone. */
	if (syscall(SYS_set_robust_list, &head, sizeof(head)) < 0)
		return -errno;
	atomic_store_explicit(word, tid, memory_order_release);
	return 0;
}
