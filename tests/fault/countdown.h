/* SPDX-License-Identifier: Apache-2.0 */
/* countdown.h - the nth call that acquires something fails, and whatever was acquired is accounted for.
 *
 *      for (n = 1; countdown_next(&c, COUNTDOWN_MEMORY, n); n++)     until n is beyond the last such call
 *              rc = scenario();
 *
 *      countdown_begin --> calls count down --nth--> that one fails, once --> countdown_end
 *           |                                                                     |
 *      what lives now                                                   must live again: no more, no less
 *
 * The linker sends the tested code's calls here (--wrap, tests/CMakeLists.txt): its own and its static
 * libraries', not those inside of shared libraries.
 *
 * Invariant: between begin and end exactly one call fails, or none when n is beyond the last.
 *
 * Concurrency: any thread may call; begin and end are for one thread while no other runs.
 */
#ifndef STOUP_TEST_COUNTDOWN_H
#define STOUP_TEST_COUNTDOWN_H

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum countdown_kind {
	COUNTDOWN_NONE,
	COUNTDOWN_MEMORY, /* ENOMEM: heap, mappings, threads */
	COUNTDOWN_FILES,  /* EMFILE: whatever makes a descriptor */
	COUNTDOWN_SPACE,  /* ENOSPC: whatever reserves space for bytes */
};

/* As ck_assert, which calls for memory itself when all is well. */
#define COUNTDOWN_MUST(condition)                                                                  \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			atomic_store(&countdown_kind, COUNTDOWN_NONE);                             \
			ck_abort_msg("%s", #condition);                                            \
		}                                                                                  \
	} while (0)

#define LIVE_CAP (1u << 18) /* blocks of the heap at once; a power of two */

static _Atomic int countdown_kind;
static _Atomic long countdown_left;
static _Atomic int countdown_fired;

/* Does this call fail? */
static int countdown_hit(enum countdown_kind kind)
{
	if (atomic_load(&countdown_kind) != (int)kind)
		return 0;
	if (atomic_fetch_sub(&countdown_left, 1) != 1)
		return 0;
	atomic_store(&countdown_fired, 1);
	return 1;
}

/* ---- the heap --------------------------------------------------------------------------------- */

/* An open-addressed set of the blocks that live; a freed place keeps 1, so that searches go on. */
static uintptr_t live_set[LIVE_CAP];
static size_t live_cnt;
static pthread_mutex_t live_mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t live_slot(uintptr_t at)
{
	return (size_t)((at >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (LIVE_CAP - 1);
}

static void *live_add(void *block)
{
	size_t i;

	if (!block)
		return NULL;
	pthread_mutex_lock(&live_mutex);
	for (i = live_slot((uintptr_t)block); live_set[i] > 1; i = (i + 1) & (LIVE_CAP - 1))
		;
	live_set[i] = (uintptr_t)block;
	live_cnt++;
	pthread_mutex_unlock(&live_mutex);
	return block;
}

/* Blocks that a shared library made are not in it. */
static void live_remove(void *block)
{
	size_t i;

	if (!block)
		return;
	pthread_mutex_lock(&live_mutex);
	for (i = live_slot((uintptr_t)block); live_set[i]; i = (i + 1) & (LIVE_CAP - 1))
		if (live_set[i] == (uintptr_t)block) {
			live_set[i] = 1;
			live_cnt--;
			break;
		}
	pthread_mutex_unlock(&live_mutex);
}

void *__real_malloc(size_t len);
void *__real_calloc(size_t cnt, size_t len);
void *__real_realloc(void *old, size_t len);
void *__real_aligned_alloc(size_t align, size_t len);
int __real_posix_memalign(void **ret, size_t align, size_t len);
char *__real_strdup(const char *text);
void __real_free(void *block);

void *__wrap_malloc(size_t len);
void *__wrap_calloc(size_t cnt, size_t len);
void *__wrap_realloc(void *old, size_t len);
void *__wrap_aligned_alloc(size_t align, size_t len);
int __wrap_posix_memalign(void **ret, size_t align, size_t len);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

void *__wrap_malloc(size_t len)
{
	return countdown_hit(COUNTDOWN_MEMORY) ? no_memory() : live_add(__real_malloc(len));
}

void *__wrap_calloc(size_t cnt, size_t len)
{
	return countdown_hit(COUNTDOWN_MEMORY) ? no_memory() : live_add(__real_calloc(cnt, len));
}

void *__wrap_realloc(void *old, size_t len)
{
	void *block;

	if (countdown_hit(COUNTDOWN_MEMORY))
		return no_memory();
	/* Out first: another thread may be given the old place at once. */
	live_remove(old);
	block = __real_realloc(old, len);
	return block ? live_add(block) : (live_add(old), NULL);
}

void *__wrap_aligned_alloc(size_t align, size_t len)
{
	return countdown_hit(COUNTDOWN_MEMORY) ? no_memory()
	                                       : live_add(__real_aligned_alloc(align, len));
}

int __wrap_posix_memalign(void **ret, size_t align, size_t len)
{
	int rc = countdown_hit(COUNTDOWN_MEMORY) ? ENOMEM : __real_posix_memalign(ret, align, len);

	if (rc == 0)
		live_add(*ret);
	return rc;
}

char *__wrap_strdup(const char *text)
{
	return countdown_hit(COUNTDOWN_MEMORY) ? no_memory() : live_add(__real_strdup(text));
}

void __wrap_free(void *block)
{
	live_remove(block);
	__real_free(block);
}

/* ---- mappings and threads ---------------------------------------------------------------------- */

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
int __real_pthread_create(
	pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg);
int __wrap_pthread_create(
	pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	if (countdown_hit(COUNTDOWN_MEMORY)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(at, len, prot, flags, fd, off);
}

int __wrap_pthread_create(
	pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	return countdown_hit(COUNTDOWN_MEMORY) ? EAGAIN
	                                       : __real_pthread_create(ret, attr, run, arg);
}

/* ---- descriptors ------------------------------------------------------------------------------- */

static int no_files(void)
{
	errno = EMFILE;
	return -1;
}

#define WRAP_FD(name, params, args)                                                                \
	int __real_##name params;                                                                  \
	int __wrap_##name params;                                                                  \
	int __wrap_##name params                                                                   \
	{                                                                                          \
		return countdown_hit(COUNTDOWN_FILES) ? no_files() : __real_##name args;           \
	}

WRAP_FD(socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP_FD(eventfd, (unsigned int value, int flags), (value, flags))
WRAP_FD(timerfd_create, (int clock, int flags), (clock, flags))
WRAP_FD(epoll_create1, (int flags), (flags))
WRAP_FD(signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags))
WRAP_FD(memfd_create, (const char *name, unsigned int flags), (name, flags))
WRAP_FD(shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);

static mode_t mode_of(int flags, va_list ap)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return countdown_hit(COUNTDOWN_FILES) ? no_files() : __real_open(path, flags, mode);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return countdown_hit(COUNTDOWN_FILES) ? no_files() : __real_openat(dir, path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return countdown_hit(COUNTDOWN_FILES) ? (no_files(), NULL) : __real_fopen(path, mode);
}

DIR *__wrap_opendir(const char *path)
{
	return countdown_hit(COUNTDOWN_FILES) ? (no_files(), NULL) : __real_opendir(path);
}

/* ---- space ------------------------------------------------------------------------------------- */

int __real_posix_fallocate(int fd, off_t off, off_t len);
int __wrap_posix_fallocate(int fd, off_t off, off_t len);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
ssize_t __real_pwrite(int fd, const void *buf, size_t len, off_t off);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t off);

int __wrap_posix_fallocate(int fd, off_t off, off_t len)
{
	return countdown_hit(COUNTDOWN_SPACE) ? ENOSPC : __real_posix_fallocate(fd, off, len);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	if (!countdown_hit(COUNTDOWN_SPACE))
		return __real_mkdir(path, mode);
	errno = ENOSPC;
	return -1;
}

ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	if (!countdown_hit(COUNTDOWN_SPACE))
		return __real_pwrite(fd, buf, len, off);
	errno = ENOSPC;
	return -1;
}

/* ---- the account ------------------------------------------------------------------------------- */

struct countdown {
	long nth;
	size_t live, fds, maps, threads;
};

static inline size_t count_entries(const char *path)
{
	size_t cnt = 0;
	DIR *dir = __real_opendir(path);

	while (dir && readdir(dir))
		cnt++;
	if (dir)
		closedir(dir);
	return cnt;
}

/* Mappings of shared memory: regions, pages. */
static inline size_t count_maps(void)
{
	FILE *file = __real_fopen("/proc/self/maps", "re");
	char line[1024];
	size_t cnt = 0;

	while (file && fgets(line, sizeof(line), file))
		cnt += strstr(line, "stoup.") != NULL;
	if (file)
		fclose(file);
	return cnt;
}

static inline void countdown_look(struct countdown *c)
{
	c->live = live_cnt;
	c->fds = count_entries("/proc/self/fd");
	c->maps = count_maps();
	c->threads = count_entries("/proc/self/task");
}

/* Threads that were joined show for a moment more, at the begin as well, so that there may be fewer at the end; who
 * was not waited for frees what it has later. */
static inline void countdown_settle(const struct countdown *c, struct countdown *now)
{
	for (int try = 0; try < 60000; try++) {
		countdown_look(now);
		if (now->live == c->live && now->fds == c->fds && now->maps == c->maps &&
			now->threads <= c->threads)
			return;
		usleep(1000);
	}
}

static inline void countdown_begin(struct countdown *c, enum countdown_kind kind, long nth)
{
	countdown_look(c);
	c->nth = nth;
	atomic_store(&countdown_fired, 0);
	atomic_store(&countdown_left, nth);
	atomic_store(&countdown_kind, (int)kind);
}

/* 1: the nth call was reached, and failed. Nothing that was acquired since the begin is left. */
static inline int countdown_end(const struct countdown *c)
{
	struct countdown now;

	atomic_store(&countdown_kind, COUNTDOWN_NONE);
	countdown_settle(c, &now);
	ck_assert_msg(now.live == c->live, "call %ld: %zd blocks of the heap are left", c->nth,
		(ssize_t)(now.live - c->live));
	ck_assert_msg(now.fds == c->fds, "call %ld: %zd descriptors are left", c->nth,
		(ssize_t)(now.fds - c->fds));
	ck_assert_msg(now.maps == c->maps, "call %ld: %zd mappings are left", c->nth,
		(ssize_t)(now.maps - c->maps));
	ck_assert_msg(now.threads <= c->threads, "call %ld: %zd threads are left", c->nth,
		(ssize_t)(now.threads - c->threads));
	return atomic_load(&countdown_fired);
}

#endif
