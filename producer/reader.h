/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h - reads of volumes: asked for in batches, done beside the caller, reported by a
 * descriptor.
 *
 * Two kinds behind one interface: io_uring, and a pool of threads that call pread where io_uring is
 * refused (container profiles, sysctl, RLIMIT_MEMLOCK) or was not wanted. AUTO tries io_uring with
 * a self-test first and keeps the reason when it is not to be had.
 *
 *      submit --bytes are in the page cache--------------------> ready --reap--> caller
 *         |                                                        ^
 *         +--> batch --flush--> in flight (kernel or threads) --+--+
 *                                  ^                            |
 *                                  +-- short, EINTR, refused ---+   continued inside the reader
 *                                      O_DIRECT: the rest again
 *
 * Where bytes come from: first the page cache (a copy on the caller's thread, up to cached_len_cap
 * bytes), else the device with O_DIRECT. Where the file system refuses that: buffered, beside the
 * caller, and the page cache is used there.
 *
 * What is cached is asked first (cachestat, else mincore), because RWF_NOWAIT does start
 * read-ahead, and that on the caller's thread: 200-300 us for a cold range of 512 KiB, which the
 * device then reads twice. It does so also at the end of a cached range, and so drives itself
 * through the whole file: a scan behind 16 MiB of warm prefix fell from 2.5 to 0.14 GB/s. So a
 * range counts as cached only if the next read-ahead windows behind it are (or the file ends
 * there).
 *
 * Invariant: each accepted request gives exactly one completion, with all of its bytes or an error.
 *
 * Concurrency: a reader belongs to the thread that created it: every call from that one thread, and
 * after any fork (io_uring's single issuer is fixed at creation). No call blocks, but create and
 * destroy.
 *
 * How a conductor uses it:
 *
 *	while (want_more && stoup_reader_submit(reader, &req) == 0)
 *		...;
 *	stoup_reader_flush(reader);
 *	while ((cnt = stoup_reader_reap(reader, done, DONE_CAP)) > 0)
 *		...;                              // may submit; then flush again
 *	if (stoup_reader_ready(reader) == 0)      // else: flush and reap again, do not sleep
 *		epoll_wait(...);                  // with stoup_reader_poll_fd; EINTR: go round
 *
 * Limits: `depth` requests are accepted at once, from submit until reap (beyond that -EAGAIN): what
 * keeps a device busy is 8 to 32, and each may hold a staging slot. Files: file_cap.
 */
#ifndef STOUP_PRODUCER_READER_H
#define STOUP_PRODUCER_READER_H

#include <stddef.h>
#include <stdint.h>
#include "producer/staging.h"
#include "shm/stoup_types.h"

enum stoup_reader_kind {
	STOUP_READER_AUTO = 0,
	STOUP_READER_URING,
	STOUP_READER_PREAD,
};

enum stoup_reader_switch {
	STOUP_READER_SWITCH_AUTO = 0, /* where it works */
	STOUP_READER_SWITCH_ON,       /* as AUTO, but a refusal at create or file_add is an error */
	STOUP_READER_SWITCH_OFF,
};

#define STOUP_READER_DEPTH_DEFAULT    16u
#define STOUP_READER_DEPTH_CAP        1024u
#define STOUP_READER_THREADS_DEFAULT  4u
#define STOUP_READER_THREADS_CAP      64u
#define STOUP_READER_FILE_CAP_DEFAULT 4096u
#define STOUP_READER_FILE_CAP         65536u

/* Bytes of one copy on the caller's thread: 25-60 us. */
#define STOUP_READER_CACHED_LEN_DEFAULT (512u << 10)
#define STOUP_READER_CACHED_LEN_CAP     (2u << 20)

/* Zero means the default everywhere. */
struct stoup_reader_options {
	enum stoup_reader_kind kind;
	uint32_t depth;          /* requests accepted at once; 1 to 1024 */
	uint32_t threads;        /* of the pread pool; 1 to 64 */
	uint32_t file_cap;       /* files added at once */
	uint32_t cached_len_cap; /* bytes: longer requests are not looked for in the page cache */
	enum stoup_reader_switch direct; /* O_DIRECT */
	enum stoup_reader_switch cached; /* page cache first, of files read directly; ON is AUTO */
	enum stoup_reader_switch fixed;  /* register the staging region (io_uring only) */
	struct stoup_staging *staging;   /* outlives the reader; NULL: no slots */
};

/* One request. With slot_idx >= 0 the bytes go to that staging slot, somewhere behind its start
 * (the completion says where); with slot_idx < 0 to dst. A dst is read with O_DIRECT only if file
 * offset and dst are aligned and dst_cap has room for the length rounded up to the alignment: bytes
 * between len and dst_cap may then be written (with what follows in the file). */
struct stoup_read {
	uint64_t cookie;   /* comes back in the completion */
	uint64_t file_off; /* bytes from the start of the file */
	uint32_t len;      /* bytes; at least 1 */
	uint32_t file_idx;
	int32_t slot_idx; /* staging slot, or < 0 */
	uint32_t zero;
	uint8_t *dst;
	size_t dst_cap; /* bytes that may be written at dst; at least len */
};

enum stoup_read_source {
	STOUP_READ_CACHED = 1, /* copied from the page cache on the caller's thread */
	STOUP_READ_DIRECT,
	STOUP_READ_BUFFERED,
};

struct stoup_read_done {
	uint64_t cookie;
	int64_t result;   /* len, or a negative errno; -ENODATA: file ends early, at end_off */
	uint64_t end_off; /* after -ENODATA: bytes from the start of the file, else 0 */
	uint8_t *bytes;   /* the first byte asked for, in the slot or dst; NULL after an error */
	int32_t slot_idx; /* as in the request: the caller puts it back */
	uint32_t file_idx;
	enum stoup_read_source source;
};

/* Since create. `in_flight` is a gauge: what kernel or threads hold now; the rest only grows. */
struct stoup_reader_counters {
	uint64_t reads;        /* completions without an error */
	uint64_t bytes;        /* bytes of those, as asked for */
	uint64_t device_bytes; /* bytes that direct (widened) and buffered reads returned */
	uint64_t in_flight;
	uint64_t in_flight_max;
	uint64_t cached_reads; /* completions per source */
	uint64_t direct_reads;
	uint64_t buffered_reads;
	uint64_t cached_misses;  /* looked for in the page cache and not, or not wholly, found */
	uint64_t short_reads;    /* reads that were continued */
	uint64_t retries;        /* EINTR, EAGAIN, O_DIRECT refused by a read */
	uint64_t errors;         /* completions with an error */
	uint64_t refused;        /* requests answered with -EAGAIN: depth reached */
	uint64_t submits;        /* batches handed over; io_uring: system calls */
	uint64_t files_buffered; /* files added without O_DIRECT although it was wanted */
};

struct stoup_reader;

/* 0; -EINVAL for an option out of range; for kind URING whatever refused the ring; -ENOMEM, -EAGAIN
 * (no thread). AUTO fails only where the pread pool fails too. */
int stoup_reader_create(
	const struct stoup_reader_options *opt, struct stoup_reader **ret, struct stoup_error *err);

/* Let go of all requests, finished or not. Blocks until kernel and threads have let go of the
 * callers' memory. Files stay open (they are the caller's). NULL is allowed. */
void stoup_reader_destroy(struct stoup_reader *reader);

/* Add a file: `fd_buffered` stays the caller's and open until the file is removed; a second
 * descriptor for O_DIRECT is opened here (through /proc/self/fd, else `path`, which is also the
 * file's name in texts). Returns the file's index; -ENFILE at file_cap; with direct ON the error of
 * the refusal. May block in open(). */
int stoup_reader_file_add(
	struct stoup_reader *reader, int fd_buffered, const char *path, struct stoup_error *err);

/* Remove a file. 0; -EBUSY while requests of it are accepted and not reaped; -ENOENT. */
int stoup_reader_file_remove(struct stoup_reader *reader, uint32_t file_idx);

/* Accept a request. 0; -EAGAIN: depth reached (reap first); -EINVAL: unknown file or slot, len 0,
 * dst_cap below len; -EMSGSIZE: longer than a slot can hold. Starts at the next flush or reap. */
int stoup_reader_submit(struct stoup_reader *reader, const struct stoup_read *req);

/* Hand the batch over: one system call for io_uring, one lock for the pool. 0, or a negative errno
 * (-EAGAIN, -ENOMEM: the kernel is short of memory): nothing is lost, call again soon. */
int stoup_reader_flush(struct stoup_reader *reader);

/* Take up to `cap` completions, in any order; returns their count. Continues what is unfinished
 * (and flushes that). Never blocks. */
size_t stoup_reader_reap(struct stoup_reader *reader, struct stoup_read_done *out, size_t cap);

/* Completions that wait in the reader for the next reap (from the page cache, or more than `cap`),
 * and a batch that is not handed over counts as one. The poll descriptor does NOT announce these:
 * sleep only when this is 0. */
size_t stoup_reader_ready(const struct stoup_reader *reader);

/* A descriptor that polls readable (level-triggered) while kernel or threads have completions; a
 * few reaps may also find nothing behind it. Owned by the reader; never read from it. */
int stoup_reader_poll_fd(const struct stoup_reader *reader);

/* Copy `len` bytes from the page cache, at once: `len`, or -EAGAIN when they are not all there or
 * cannot be had without waiting (also: this cannot be asked here), -EINVAL for an unknown file. No
 * request is involved; what dst holds after -EAGAIN is undefined. Works with cached OFF too, and
 * without cached_len_cap. */
int64_t stoup_reader_try_cached(
	struct stoup_reader *reader, uint32_t file_idx, uint64_t file_off, size_t len, void *dst);

/* "io_uring" or "pread". */
const char *stoup_reader_kind(const struct stoup_reader *reader);

/* Why this kind, in words: "io_uring_setup: Operation not permitted (...)", or for io_uring which
 * flags, files and buffers it got. Valid until destroy. */
const char *stoup_reader_reason(const struct stoup_reader *reader);

/* Why the first file that was refused O_DIRECT was; "" if none was. Valid until destroy. */
const char *stoup_reader_direct_reason(const struct stoup_reader *reader);

/* Requests accepted at once: less than asked for where the ring had to be smaller. */
uint32_t stoup_reader_depth(const struct stoup_reader *reader);

const struct stoup_reader_counters *stoup_reader_counters(const struct stoup_reader *reader);

#endif
