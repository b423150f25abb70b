/* SPDX-License-Identifier: Apache-2.0 */
/* inject.h - system calls that fail, or at which the process dies, by countdown.
 *
 *      inject_after(INJECT_WRITE, 3, ENOSPC)   the third pwrite from now on returns ENOSPC
 *      inject_die_after(5)                     the process ends at the fifth of all of them
 *
 * The program's own definitions of these functions come before libc's, for the library under test,
 * too. Include in one file of a test program.
 *
 * Concurrency: one thread calls them.
 */
#ifndef STOUP_TEST_INJECT_H
#define STOUP_TEST_INJECT_H

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum inject_call {
	INJECT_NONE,
	INJECT_WRITE,
	INJECT_READ,
	INJECT_FSYNC,
	INJECT_RENAME,
	INJECT_UNLINK
};

static enum inject_call inject_kind;
static long inject_left, inject_die_left;
static int inject_errno, inject_sticky;

/* The nth call of this kind from now on fails; sticky: and all later ones. */
static inline void inject_after(enum inject_call kind, long nth, int code, int sticky)
{
	inject_kind = kind;
	inject_left = nth;
	inject_errno = code;
	inject_sticky = sticky;
}

static inline void inject_stop(void)
{
	inject_kind = INJECT_NONE;
	inject_left = 0;
	inject_die_left = 0;
}

/* Die instead of the nth call of any kind that changes the disk. */
static inline void inject_die_after(long nth)
{
	inject_die_left = nth;
}

static int inject_hit(enum inject_call kind)
{
	if (kind != INJECT_READ && inject_die_left > 0 && --inject_die_left == 0)
		_exit(99);
	if (kind != inject_kind || inject_left == 0)
		return 0;
	if (inject_left > 1) {
		inject_left--;
		return 0;
	}
	if (!inject_sticky)
		inject_left = 0;
	errno = inject_errno;
	return 1;
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
	if (inject_hit(INJECT_WRITE))
		return -1;
	return syscall(SYS_pwrite64, fd, buf, len, off);
}

ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
	if (inject_hit(INJECT_READ))
		return -1;
	return syscall(SYS_pread64, fd, buf, len, off);
}

int fsync(int fd)
{
	if (inject_hit(INJECT_FSYNC))
		return -1;
	return (int)syscall(SYS_fsync, fd);
}

int renameat2(int old_fd, const char *old_name, int new_fd, const char *new_name, unsigned flags)
{
	if (inject_hit(INJECT_RENAME))
		return -1;
	return (int)syscall(SYS_renameat2, old_fd, old_name, new_fd, new_name, flags);
}

int unlinkat(int fd, const char *name, int flags)
{
	if (inject_hit(INJECT_UNLINK))
		return -1;
	return (int)syscall(SYS_unlinkat, fd, name, flags);
}

#endif
