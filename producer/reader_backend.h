/* SPDX-License-Identifier: Apache-2.0 */
/* reader_backend.h - what the reader asks of whoever does its reads: io_uring, the pread pool, a
 * test.
 *
 *      reader.c        which bytes, from which descriptor, and what a result means
 *      reader_file.c   descriptors, O_DIRECT, what is in the page cache
 *      backend         begin a read, report its result: nothing else
 *
 * An operation is one read of one descriptor into one address; the reader has at most `depth` of
 * them and numbers them 0 to depth - 1. It makes a new one from a short or retried one.
 *
 * Invariant: each operation that was begun is reported once, and its memory is not touched after.
 *
 * Concurrency: all calls come from the thread that created the backend.
 */
#ifndef STOUP_PRODUCER_READER_BACKEND_H
#define STOUP_PRODUCER_READER_BACKEND_H

#include <stddef.h>
#include <stdint.h>
#include "producer/reader.h"

#define STOUP_READER_REASON_CAP 256

struct stoup_read_op {
	void *dst;
	uint64_t file_off;
	uint32_t len;
	uint32_t file_idx;
	int fd;
	uint16_t direct; /* 1: the file's O_DIRECT descriptor */
	uint16_t staged; /* 1: dst lies in the staging region (may be registered) */
};

struct stoup_read_result {
	uint32_t op_idx;
	int32_t result; /* bytes, 0 at the end of the file, or a negative errno */
};

struct stoup_reader_backend {
	const char *name;
	/* `opt` is complete (no zeros left). *depth may be lowered, never below 1. On success
	 * `reason` says what was made, on failure why not. */
	int (*create)(const struct stoup_reader_options *opt, uint32_t *depth, void **ret,
		char reason[STOUP_READER_REASON_CAP]);
	/* Wait until no memory is in use any more, then free. */
	void (*destroy)(void *state);
	/* A file came (fds >= 0, fd_direct may be -1) or went (both -1). Returns 1 if the backend
	 * holds the descriptors by itself, so that the direct one can be closed; else 0. */
	int (*file_set)(void *state, uint32_t file_idx, int fd_buffered, int fd_direct);
	/* Put an operation into the batch. There is always room: each op_idx is in one place at a
	 * time, and the backend agreed to depth of them. `op` stays valid and unchanged until its
	 * result. */
	void (*begin)(void *state, uint32_t op_idx, const struct stoup_read_op *op);
	/* Hand the batch over. Calls or batches made (>= 0), or a negative errno: batch kept. */
	int (*flush)(void *state);
	/* Results so far, at most cap (>= depth in every call). */
	size_t (*reap)(void *state, struct stoup_read_result *out, size_t cap);
	int (*poll_fd)(const void *state);
};

extern const struct stoup_reader_backend stoup_reader_backend_uring;
extern const struct stoup_reader_backend stoup_reader_backend_pread;

/* Create a reader on this backend, whatever opt->kind says. */
int stoup_reader_create_on(const struct stoup_reader_options *opt,
	const struct stoup_reader_backend *backend, struct stoup_reader **ret,
	struct stoup_error *err);

/* ---- files ----------------------------------------------------------------------------------- */

enum stoup_read_probe {                 /* how it is found out what the page cache holds */
	STOUP_READ_PROBE_CACHESTAT = 0, /* system call of Linux 6.5 */
	STOUP_READ_PROBE_MINCORE,       /* on a mapping made for that */
	STOUP_READ_PROBE_NONE,          /* cannot be known: not tried, it would start read-ahead */
};

struct stoup_reader_file {
	int used;
	int fd;                /* the caller's */
	int fd_direct;         /* ours, or -1 */
	uint32_t direct;       /* 1: reads may be direct */
	uint32_t offset_align; /* bytes: of file offset and length of a direct read */
	uint32_t memory_align; /* bytes: of the address */
	uint32_t busy_cnt;     /* requests accepted and not reaped */
	uint32_t nowait;       /* 1: preadv2(RWF_NOWAIT) is supported */
	enum stoup_read_probe probe;
	uint64_t file_len;  /* bytes, when it was added */
	uint64_t ahead_len; /* bytes behind a range that must be cached too: no read-ahead then */
	uint8_t *
		seen; /* per chunk of the file: how often it may still be taken for cached, unasked */
	uint64_t seen_cnt; /* chunks; 0: none are kept, each is asked about */
	void *map;         /* for mincore, never read through; NULL = none */
	size_t map_len;
};

/* Begin: `fd` is the caller's. Finds length and read-ahead of the file. */
void stoup_reader_file_init(struct stoup_reader_file *file, int fd);

/* Open a file's second descriptor and find its alignments. 0 with file->direct 1, or a negative
 * errno with file->direct 0 and `reason` in words. */
int stoup_reader_file_direct(
	struct stoup_reader_file *file, const char *path, char reason[STOUP_READER_REASON_CAP]);

/* Forget a file: close and unmap what is ours. */
void stoup_reader_file_fini(struct stoup_reader_file *file);

/* Copy from the page cache; `len` or -EAGAIN. Steps down in file->probe where that is refused. */
int64_t stoup_reader_file_cached(
	struct stoup_reader_file *file, uint64_t file_off, size_t len, void *dst);

#endif
