/* SPDX-License-Identifier: Apache-2.0 */
/* one_mapping.h - daemon and consumers of one process share one mapping of each object, so that a thread
 * sanitizer sees both ends of every pair.
 *
 *      daemon                      registry: inode -> address         libstoup
 *      stoup_region_create --put-->  {dev, inode, base, uses}  <--get-- stoup_region_map
 *      munmap -------------------------- uses - 1 -------------------- munmap
 *
 * In life each side maps an object at an address of its own; a sanitizer, which knows addresses only, would
 * take the two ends for different memory. The program is linked with --wrap for the functions below
 * (tests/CMakeLists.txt), so that the code under test is the code that is shipped.
 *
 * What the kernel orders and a sanitizer does not see is said here: what was written before a packet of the
 * attach socket is visible to who received it. What an uninstrumented library writes is said as well: a
 * decoder writes all of its output.
 *
 * Fences: neither gcc's nor clang's sanitizer knows them, and no replacement is needed. What a fence orders
 * here is which of two sides sees a word (E1, R1, S1: store buffering), which no sanitizer judges; that
 * bytes are reused only after their last reader is ordered by the acquire load of the cell which that
 * reader released [R2], and that they are read only when complete by the acquire load of the word [L2].
 * Without either of these two the sanitizer reports, which tests/race/test_one_process.c shows by counting
 * on nothing else.
 *
 * Include in one file of one program. Concurrency: any thread.
 */
#ifndef STOUP_TEST_ONE_MAPPING_H
#define STOUP_TEST_ONE_MAPPING_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "codec/block.h"
#include "shm/control.h"
#include "shm/region.h"
#include "shm/wire.h"

#if defined(__SANITIZE_THREAD__)
#define ONE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ONE_TSAN 1
#endif
#endif
#ifndef ONE_TSAN
#define ONE_TSAN 0
#endif

#define ONE_CAP 256 /* objects at a time: a control, a data region, volumes, pages */

struct one_object {
	dev_t dev;
	ino_t ino;
	void *base;
	size_t len;
	int uses; /* 0 = no object */
};

static struct one_object one_objects[ONE_CAP];
static pthread_mutex_t one_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t one_shared_cnt;             /* mappings that consumers were given */
static _Atomic(struct stoup_control *) one_control; /* of the latest daemon */
static _Atomic uint64_t one_packet;                 /* the order that the attach socket makes */

/* ---- registry -------------------------------------------------------------------------------- */

static void one_put(const struct stoup_region *region)
{
	struct stat st;

	if (fstat(region->fd, &st) < 0)
		abort();
	pthread_mutex_lock(&one_mutex);
	for (int i = 0; i < ONE_CAP; i++) {
		if (one_objects[i].uses > 0)
			continue;
		one_objects[i] = (struct one_object){.dev = st.st_dev,
			.ino = st.st_ino,
			.base = region->base,
			.len = region->len,
			.uses = 1};
		pthread_mutex_unlock(&one_mutex);
		return;
	}
	abort();
}

static struct one_object *one_find(dev_t dev, ino_t ino)
{
	for (int i = 0; i < ONE_CAP; i++)
		if (one_objects[i].uses > 0 && one_objects[i].dev == dev &&
			one_objects[i].ino == ino)
			return &one_objects[i];
	return NULL;
}

/* ---- what is wrapped ------------------------------------------------------------------------- */

int __real_stoup_region_create(struct stoup_region *region, uint32_t backing, const char *name,
	uint32_t mode, size_t len, int unlink_now, int want_ro, uint32_t threads,
	struct stoup_error *err);
int __wrap_stoup_region_create(struct stoup_region *region, uint32_t backing, const char *name,
	uint32_t mode, size_t len, int unlink_now, int want_ro, uint32_t threads,
	struct stoup_error *err);
int __real_stoup_region_create_page(
	struct stoup_region *region, const char *label, size_t len, struct stoup_error *err);
int __wrap_stoup_region_create_page(
	struct stoup_region *region, const char *label, size_t len, struct stoup_error *err);
int __real_stoup_region_map(int fd, size_t min_len, int writable, int dont_fork,
	struct stoup_region *ret, struct stoup_error *err);
int __wrap_stoup_region_map(int fd, size_t min_len, int writable, int dont_fork,
	struct stoup_region *ret, struct stoup_error *err);
int __real_munmap(void *base, size_t len);
int __wrap_munmap(void *base, size_t len);
int __real_stoup_wire_send(
	int sock_fd, const void *msg, size_t len, const int *fds, uint32_t fd_cnt);
int __wrap_stoup_wire_send(
	int sock_fd, const void *msg, size_t len, const int *fds, uint32_t fd_cnt);
int64_t __real_stoup_wire_recv(
	int sock_fd, void *msg, size_t cap, int *fds, uint32_t fd_cap, uint32_t *ret_fd_cnt);
int64_t __wrap_stoup_wire_recv(
	int sock_fd, void *msg, size_t cap, int *fds, uint32_t fd_cap, uint32_t *ret_fd_cnt);
int __real_stoup_block_decode(uint32_t codec, uint32_t transform, const void *src, size_t src_len,
	void *dst, size_t raw_len, void *scratch);
int __wrap_stoup_block_decode(uint32_t codec, uint32_t transform, const void *src, size_t src_len,
	void *dst, size_t raw_len, void *scratch);
#if ONE_TSAN
void __tsan_write_range(void *base, size_t len);
#endif

int __wrap_stoup_region_create(struct stoup_region *region, uint32_t backing, const char *name,
	uint32_t mode, size_t len, int unlink_now, int want_ro, uint32_t threads,
	struct stoup_error *err)
{
	size_t name_len = strlen(name);
	int rc = __real_stoup_region_create(
		region, backing, name, mode, len, unlink_now, want_ro, threads, err);

	if (rc == 0)
		one_put(region);
	if (rc == 0 && name_len > 4 && strcmp(name + name_len - 4, ".ctl") == 0)
		atomic_store(&one_control, region->base);
	return rc;
}

int __wrap_stoup_region_create_page(
	struct stoup_region *region, const char *label, size_t len, struct stoup_error *err)
{
	int rc = __real_stoup_region_create_page(region, label, len, err);

	if (rc == 0)
		one_put(region);
	return rc;
}

int __wrap_stoup_region_map(int fd, size_t min_len, int writable, int dont_fork,
	struct stoup_region *ret, struct stoup_error *err)
{
	struct one_object *object;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	pthread_mutex_lock(&one_mutex);
	object = one_find(st.st_dev, st.st_ino);
	if (object && object->len >= min_len) {
		object->uses++;
		*ret = (struct stoup_region){
			.base = object->base, .len = object->len, .fd = -1, .ro_fd = -1};
		atomic_fetch_add_explicit(&one_shared_cnt, 1, memory_order_relaxed);
		pthread_mutex_unlock(&one_mutex);
		return 0;
	}
	pthread_mutex_unlock(&one_mutex);
	return __real_stoup_region_map(fd, min_len, writable, dont_fork, ret, err);
}

int __wrap_munmap(void *base, size_t len)
{
	int last = 1;

	pthread_mutex_lock(&one_mutex);
	for (int i = 0; i < ONE_CAP; i++)
		if (one_objects[i].uses > 0 && one_objects[i].base == base)
			last = --one_objects[i].uses == 0;
	pthread_mutex_unlock(&one_mutex);
	return last ? __real_munmap(base, len) : 0;
}

int __wrap_stoup_wire_send(
	int sock_fd, const void *msg, size_t len, const int *fds, uint32_t fd_cnt)
{
	atomic_fetch_add_explicit(&one_packet, 1, memory_order_acq_rel);
	return __real_stoup_wire_send(sock_fd, msg, len, fds, fd_cnt);
}

int64_t __wrap_stoup_wire_recv(
	int sock_fd, void *msg, size_t cap, int *fds, uint32_t fd_cap, uint32_t *ret_fd_cnt)
{
	int64_t rc = __real_stoup_wire_recv(sock_fd, msg, cap, fds, fd_cap, ret_fd_cnt);

	atomic_fetch_add_explicit(&one_packet, 1, memory_order_acq_rel);
	return rc;
}

int __wrap_stoup_block_decode(uint32_t codec, uint32_t transform, const void *src, size_t src_len,
	void *dst, size_t raw_len, void *scratch)
{
#if ONE_TSAN
	__tsan_write_range(dst, raw_len);
#endif
	return __real_stoup_block_decode(codec, transform, src, src_len, dst, raw_len, scratch);
}

#endif
