/* SPDX-License-Identifier: Apache-2.0 */
/* futex.c - futex system calls: shared between processes, so never FUTEX_PRIVATE. */
#include "shm/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int stoup_futex_wait(const _Atomic uint32_t *word, uint32_t value, int64_t timeout_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000),
	};

	if (syscall(SYS_futex, word, FUTEX_WAIT, value, &ts, NULL, 0) == 0)
		return 0;
	return errno == EAGAIN ? 0 : -errno;
}

int stoup_futex_wake(_Atomic uint32_t *word, uint32_t cnt)
{
	long rc = syscall(
		SYS_futex, word, FUTEX_WAKE, cnt > INT_MAX ? INT_MAX : (int)cnt, NULL, NULL, 0);

	return rc < 0 ? -errno : (int)rc;
}
