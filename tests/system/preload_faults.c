/* SPDX-License-Identifier: Apache-2.0 */
/* preload_faults.c - LD_PRELOAD: reads of volumes that fail, and a wall clock that jumps, when told so.
 *
 * $STOUP_FAULT_FILE is a file of four 32-bit numbers that a test changes while the program runs:
 *      kind   0 nothing, 1 errors, 2 short reads, 3 nothing read (end of file), 4 the wall clock jumps
 *      every  the how manieth call is struck; 1 = each
 *      code   the errno of errors
 *      hits   how often it struck: written here
 *
 * Only reads of files named *.stoup are struck.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	NOTHING,
	ERROR,
	SHORT,
	END,
	JUMP
};

struct orders {
	_Atomic uint32_t kind, every, code, hits;
};

#define JUMP_S ((time_t)10 * 365 * 86400)

static struct orders *orders;
static _Atomic uint32_t calls;

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("STOUP_FAULT_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED
	                  : mmap(NULL, sizeof(*orders), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		orders = at;
	if (fd >= 0)
		close(fd);
}

static int is_volume(int fd)
{
	char path[64], name[512];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, name, sizeof(name) - 1);
	if (len < 6)
		return 0;
	name[len] = 0;
	return strcmp(name + len - 6, ".stoup") == 0;
}

/* The kind that strikes this call, or NOTHING. */
static uint32_t strike(int fd)
{
	uint32_t kind = orders ? atomic_load(&orders->kind) : NOTHING;
	uint32_t every;

	if (kind == NOTHING || kind == JUMP || !is_volume(fd))
		return NOTHING;
	every = atomic_load(&orders->every);
	if (every > 1 && atomic_fetch_add(&calls, 1) % every != 0)
		return NOTHING;
	atomic_fetch_add(&orders->hits, 1);
	return kind;
}

__attribute__((visibility("default"))) ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
	switch (strike(fd)) {
	case ERROR:
		errno = (int)atomic_load(&orders->code);
		return -1;
	case END:
		return 0;
	case SHORT:
		len = len / 3 + 1;
		break;
	default:
		break;
	}
	return syscall(SYS_pread64, fd, buf, len, off);
}

__attribute__((visibility("default"))) ssize_t preadv2(
	int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	struct iovec first = iov[0];

	switch (strike(fd)) {
	case ERROR:
		errno = (int)atomic_load(&orders->code);
		return -1;
	case END:
		return 0;
	case SHORT:
		first.iov_len = first.iov_len / 3 + 1;
		return syscall(SYS_preadv2, fd, &first, 1, off, 0, flags);
	default:
		return syscall(SYS_preadv2, fd, iov, cnt, off, 0, flags);
	}
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, ret);

	if (rc < 0 || clock != CLOCK_REALTIME || !orders || atomic_load(&orders->kind) != JUMP)
		return rc;
	/* Ten years to and fro. */
	ret->tv_sec += atomic_fetch_add(&orders->hits, 1) & 1 ? JUMP_S : -JUMP_S;
	return 0;
}
