/* SPDX-License-Identifier: Apache-2.0 */
/* b3_worker.c - stoup-bench-worker: one process of B3, in one of its modes (worker.h).
 *
 * A program of its own, so that it carries no library but those of its mode: its memory is counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>
#include "bench/loops.h"
#include "bench/worker.h"
#include "consumer/stoup.h"

#define STREAM_LEN (1u << 20) /* decoded bytes at a time: fits the L2 cache */
#define STRIDE     56u

static struct bench_loop loop;
static unsigned long long exec_ns, first_ns;

static unsigned long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000u + (unsigned long long)ts.tv_nsec;
}

_Noreturn static void die(const char *what, const char *why)
{
	fprintf(stderr, "stoup-bench-worker: %s: %s\n", what, why);
	exit(1);
}

static void take(const void *base, size_t cnt)
{
	if (first_ns == 0 && cnt > 0) {
		*(volatile const char *)base;
		first_ns = now() - exec_ns;
	}
	bench_loop_of(BENCH_MBO, 0)(&loop, base, cnt);
}

static void run_pool(const char *pool, const char *name)
{
	struct stoup_series series;
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup *st;
	int rc;

	if (stoup_attach(pool, NULL, &st, &err) < 0 ||
		stoup_series_find(st, name, &series, &err) < 0 ||
		stoup_scan(st, &series, NULL, &cur, &err) < 0)
		die(pool, err.text);
	while ((rc = stoup_next(cur, &span)) > 0)
		take(span.base, span.record_cnt);
	if (rc < 0)
		die(pool, stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
}

static void run_mmap(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	const void *base;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path, strerror(errno));
	base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		die(path, strerror(errno));
	take(base, (size_t)st.st_size / STRIDE);
}

/* ---- private decoding ------------------------------------------------------------------------ */

struct source {
	const char *path;
	int fd;
	ZSTD_DCtx *zstd;
	void *in;
	size_t in_cap;
	ZSTD_inBuffer pending;
};

static void source_open(struct source *s, const char *path)
{
	*s = (struct source){.path = path, .fd = open(path, O_RDONLY), .zstd = ZSTD_createDCtx()};
	s->in_cap = ZSTD_DStreamInSize();
	s->in = malloc(s->in_cap);
	if (s->fd < 0 || !s->zstd || !s->in)
		die(path, s->fd < 0 ? strerror(errno) : "no memory");
	s->pending.src = s->in;
}

/* Fill dst as far as the input goes. */
static size_t source_read(struct source *s, void *dst, size_t len)
{
	ZSTD_outBuffer out = {dst, len, 0};

	while (out.pos < out.size) {
		size_t rc;

		if (s->pending.pos == s->pending.size) {
			ssize_t n = read(s->fd, s->in, s->in_cap);

			if (n < 0)
				die(s->path, strerror(errno));
			if (n == 0)
				break;
			s->pending.size = (size_t)n;
			s->pending.pos = 0;
		}
		rc = ZSTD_decompressStream(s->zstd, &out, &s->pending);
		if (ZSTD_isError(rc))
			die(s->path, ZSTD_getErrorName(rc));
	}
	return out.pos;
}

static void run_stream(const char *path)
{
	static _Alignas(64) unsigned char piece[STREAM_LEN - STREAM_LEN % STRIDE];
	struct source source;
	size_t n;

	source_open(&source, path);
	while ((n = source_read(&source, piece, sizeof(piece))) > 0)
		take(piece, n / STRIDE);
}

/* All of it decoded first, in 2 MiB pages, as a program with several passes has it. */
static void run_resident(const char *path)
{
	struct source source;
	size_t cap = ZSTD_CONTENTSIZE_UNKNOWN, len;
	unsigned char head[18];
	unsigned char *bytes;

	source_open(&source, path);
	if (pread(source.fd, head, sizeof(head), 0) == (ssize_t)sizeof(head))
		cap = ZSTD_getFrameContentSize(head, sizeof(head));
	if (cap == ZSTD_CONTENTSIZE_UNKNOWN || cap == ZSTD_CONTENTSIZE_ERROR)
		die(path, "does not say how long it is");
	bytes = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		die(path, "no memory for the decoded records");
	madvise(bytes, cap, MADV_HUGEPAGE);
	len = source_read(&source, bytes, cap);
	take(bytes, len / STRIDE);
}

int main(int argc, char **argv)
{
	char byte;

	if (argc != 5) {
		fprintf(stderr, "usage: stoup-bench-worker MODE PATH SERIES EXEC_NS\n");
		return 2;
	}
	exec_ns = strtoull(argv[4], NULL, 10);
	loop = bench_loop_begin(0);
	if (strcmp(argv[1], "pool") == 0)
		run_pool(argv[2], argv[3]);
	else if (strcmp(argv[1], "mmap") == 0)
		run_mmap(argv[2]);
	else if (strcmp(argv[1], "stream") == 0)
		run_stream(argv[2]);
	else if (strcmp(argv[1], "resident") == 0)
		run_resident(argv[2]);
	else
		die(argv[1], "is no mode");
	printf(BENCH_WORKER_LINE, first_ns, now() - exec_ns,
		(unsigned long long)bench_loop_result(&loop));
	if (fflush(stdout))
		return 1;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	return 0;
}
