/* SPDX-License-Identifier: Apache-2.0 */
/* reader_fixture.h - what the tests of the reader share: a file of known bytes, a staging area, a
 * reader with that file, and how to sleep for completions as the conductor does.
 *
 * Invariant: one file, one staging area and one reader per test, gone after teardown_file.
 *
 * Concurrency: Check runs each test in a process of its own.
 */
#ifndef STOUP_TESTS_READER_FIXTURE_H
#define STOUP_TESTS_READER_FIXTURE_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "producer/reader.h"

#define FILE_LEN   ((8u << 20) + 12345u)
#define STORED_CAP (512u << 10)
#define DEPTH      16u

static char dir[256], path[300];
static int file_fd = -1;
static int direct_works;
static struct stoup_staging *staging;
static struct stoup_reader *reader;
static int file_idx;

/* ---- a file of known bytes ------------------------------------------------------------------- */

static inline uint8_t byte_at(uint64_t off)
{
	uint64_t x = (off / 8 + 1) * 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	return (uint8_t)(x >> (off % 8 * 8));
}

static inline size_t first_wrong(const uint8_t *bytes, uint64_t off, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != byte_at(off + i))
			return i;
	return len;
}

static inline void cache_drop(void)
{
	ck_assert_int_eq(fsync(file_fd), 0);
	ck_assert_int_eq(posix_fadvise(file_fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

static inline size_t cache_pages(void)
{
	static unsigned char vec[FILE_LEN / 4096 + 1];
	size_t cnt = 0;
	void *map = mmap(NULL, FILE_LEN, PROT_READ, MAP_SHARED, file_fd, 0);
	ck_assert(map != MAP_FAILED);
	ck_assert_int_eq(mincore(map, FILE_LEN, vec), 0);
	for (size_t i = 0; i < sizeof(vec); i++)
		cnt += vec[i] & 1;
	munmap(map, FILE_LEN);
	return cnt;
}

static inline void setup_empty(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(dir, sizeof(dir), "%s/stoup-reader-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/volume", dir);
	file_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(file_fd, 0);
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	direct_works = fd >= 0;
	if (fd >= 0)
		close(fd);
}

static inline void setup_file(void)
{
	static uint8_t bytes[FILE_LEN];
	setup_empty();
	for (size_t i = 0; i < FILE_LEN; i++)
		bytes[i] = byte_at(i);
	for (size_t off = 0; off < FILE_LEN;) {
		ssize_t put = write(file_fd, bytes + off, FILE_LEN - off);
		ck_assert_int_gt(put, 0);
		off += (size_t)put;
	}
	cache_drop();
}

static inline void teardown_file(void)
{
	stoup_reader_destroy(reader);
	reader = NULL;
	stoup_staging_destroy(staging);
	staging = NULL;
	close(file_fd);
	unlink(path);
	rmdir(dir);
}

/* ---- helpers --------------------------------------------------------------------------------- */

static inline void setup_staging(uint32_t slot_cnt)
{
	struct stoup_staging_options opt = {.slot_cnt = slot_cnt, .stored_len_cap = STORED_CAP};
	ck_assert_int_eq(stoup_staging_create(&opt, &staging, NULL), 0);
}

/* 0: this machine has no io_uring, so the case of it has nothing to run. */
static inline int setup_reader(struct stoup_reader_options opt)
{
	struct stoup_error err = {0};
	if (!staging)
		setup_staging(32);
	opt.staging = staging;
	int rc = stoup_reader_create(&opt, &reader, &err);
	if (rc < 0 && opt.kind == STOUP_READER_URING) {
		fprintf(stderr, "no io_uring here, case left out: %s\n", err.text);
		return 0;
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	file_idx = stoup_reader_file_add(reader, file_fd, path, &err);
	ck_assert_msg(file_idx >= 0, "%s", err.text);
	return 1;
}

static inline int submit_slot(uint64_t cookie, uint64_t off, uint32_t len)
{
	struct stoup_read req = {
		.cookie = cookie,
		.file_off = off,
		.len = len,
		.file_idx = (uint32_t)file_idx,
		.slot_idx = stoup_staging_take(staging),
	};
	ck_assert_int_ge(req.slot_idx, 0);
	int rc = stoup_reader_submit(reader, &req);
	if (rc < 0)
		stoup_staging_put(staging, req.slot_idx);
	return rc;
}

/* 1 if something woke the sleeper. A poll that runs into its time-out looks once more and may say
 * "readable" then: to be found at the end of a time-out is not to be woken. */
static inline int woken(int timeout_ms)
{
	struct timespec begin, end;
	struct pollfd pfd = {.fd = stoup_reader_poll_fd(reader), .events = POLLIN};
	clock_gettime(CLOCK_MONOTONIC, &begin);
	int rc = poll(&pfd, 1, timeout_ms);
	clock_gettime(CLOCK_MONOTONIC, &end);
	int64_t ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
	return ms < timeout_ms && (rc == 1 || (rc < 0 && errno == EINTR));
}

/* Sleeps in poll as the conductor does, and only when the reader says that it may. */
static inline size_t reap_wait(struct stoup_read_done *done, size_t cap)
{
	for (int turn = 0; turn < 1000; turn++) {
		size_t cnt = stoup_reader_reap(reader, done, cap);
		if (cnt > 0)
			return cnt;
		if (stoup_reader_ready(reader) > 0)
			continue;
		ck_assert_msg(woken(120000), "the descriptor never woke");
	}
	ck_abort_msg("polled readable a thousand times without a completion");
	return 0;
}

static inline struct stoup_read_done reap_one(void)
{
	struct stoup_read_done done = {0};
	ck_assert_uint_eq(reap_wait(&done, 1), 1);
	return done;
}

#endif
