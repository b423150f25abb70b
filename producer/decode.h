/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - worker threads that turn stored bytes into the records of a buffer.
 *
 *      submit --> [demand    ]  --+                          +--> [results] --reap-->
 *                 [read-ahead]  --+--> worker: check XXH3-64, |
 *                  bounded queues      decode into the pool --+    poll descriptor
 *
 * A worker only computes and reports: it writes into the destination that the job names and nowhere
 * else, and knows neither buffer table nor residency. Demand jobs (somebody waits) are taken before
 * all read-ahead jobs.
 *
 * Invariant: each accepted job gives exactly one result; after it the worker touches neither source
 * nor destination.
 *
 * Concurrency: one thread (the conductor) creates, submits, reaps and destroys; the workers are the
 * pool's own. No call blocks, but create and destroy. Nothing is allocated after create.
 *
 * Limits: `job_cap` jobs are accepted at once, from submit until reap (beyond that -EAGAIN): so
 * that results always have room, and the staging slots that jobs hold are bounded.
 */
#ifndef STOUP_PRODUCER_DECODE_H
#define STOUP_PRODUCER_DECODE_H

#include <stddef.h>
#include <stdint.h>
#include "producer/runs.h"
#include "shm/stoup_types.h"

#define STOUP_DECODE_THREAD_CAP      256u
#define STOUP_DECODE_JOB_CAP_DEFAULT 64u
#define STOUP_DECODE_JOB_CAP         4096u
#define STOUP_DECODE_SPIN_CAP_NS     1000000u /* longer than that a sleeping thread costs less */

/* Zero means the default everywhere. */
struct stoup_decode_options {
	uint32_t thread_cnt; /* default: cores that this process may use - 1, at least 1 */
	uint32_t job_cap;    /* jobs accepted at once */
	uint32_t spin_ns; /* an idle worker looks for work this long before it sleeps; default 0: a
	                        wake-up costs 8-15 us, a spinning core takes it from a strategy */
	uint32_t cpu_cnt; /* > 0: worker i is pinned to cpus[i % cpu_cnt] */
	const uint32_t *cpus;
};

#define STOUP_DECODE_DEMAND 0x1u /* somebody waits: before all jobs without this flag */

struct stoup_decode_job {
	uint64_t cookie;      /* comes back in the result */
	uint64_t stored_hash; /* XXH3-64 that the stored bytes must have */
	const void *src;      /* src_len stored bytes; may be dst if codec and transform are none */
	void *dst;            /* raw_len bytes */
	uint32_t src_len;
	uint32_t raw_len;
	uint32_t codec;                /* STOUP_CODEC_* */
	uint32_t transform;            /* STOUP_TRANSFORM_* */
	uint32_t flags;                /* STOUP_DECODE_* */
	uint32_t block_idx;            /* for `runs` */
	const struct stoup_runs *runs; /* whose messages are checked as well (runs.h), or NULL */
};

enum stoup_decode_detail {
	STOUP_DECODE_OK = 0,
	STOUP_DECODE_HASH,    /* -EBADMSG: the stored bytes are not those that were written */
	STOUP_DECODE_CONTENT, /* -EBADMSG: right hash, but they do not decode to raw_len bytes */
	STOUP_DECODE_UNKNOWN, /* -ENOTSUP: codec or transform of a later version */
	STOUP_DECODE_LENGTH,  /* -EINVAL: lengths beyond the caps */
	STOUP_DECODE_RUN,     /* -EBADMSG: decoded, but its messages are damaged; dst holds them */
};

struct stoup_decode_result {
	uint64_t cookie;
	uint64_t found_hash; /* XXH3-64 of the stored bytes: for the text after STOUP_DECODE_HASH */
	uint64_t busy_ns;    /* time of checking and decoding */
	int result;          /* 0 or a negative errno; after an error but RUN dst holds anything */
	enum stoup_decode_detail detail;
};

/* Words for a detail: "stored bytes do not match their checksum". */
const char *stoup_decode_detail_text(enum stoup_decode_detail detail);

/* Since create; inline jobs included. `queued` is a gauge, the rest only grows. */
struct stoup_decode_counters {
	uint64_t jobs;        /* finished, with and without an error */
	uint64_t jobs_inline; /* of those: by stoup_decode_inline */
	uint64_t errors;      /* of those: with an error */
	uint64_t bytes_in;    /* stored bytes of finished jobs */
	uint64_t bytes_out;   /* raw bytes of jobs that ended well */
	uint64_t busy_ns;     /* sum over workers and the inline path */
	uint64_t queued;      /* jobs that wait for a worker now */
	uint64_t queue_max;   /* most jobs that waited for a worker */
	uint64_t refused;     /* submits answered with -EAGAIN */
};

struct stoup_decode;

/* Start the workers, all signals blocked in them. 0; -EINVAL (an option out of range, or a cpu that
 * does not exist, named in the text); -ENOMEM; -EAGAIN (no thread at all; fewer than asked for are
 * enough). */
int stoup_decode_create(
	const struct stoup_decode_options *opt, struct stoup_decode **ret, struct stoup_error *err);

/* End: jobs that no worker has begun are dropped without a result, those begun are waited for (at
 * most the time of one block). NULL is allowed. */
void stoup_decode_destroy(struct stoup_decode *pool);

/* Accept a job (copied; src and dst must live until its result is reaped). 0, or -EAGAIN. */
int stoup_decode_submit(struct stoup_decode *pool, const struct stoup_decode_job *job);

/* Take up to `cap` results, in any order; returns their count. Never blocks. */
size_t stoup_decode_reap(struct stoup_decode *pool, struct stoup_decode_result *out, size_t cap);

/* An eventfd that is written when the first result comes after the last was reaped, but for what
 * stoup_decode_awake and _sleep say; it may be written a moment after that result can be reaped. The pool owns it
 * and never reads it: watch its edges (EPOLLET). */
int stoup_decode_poll_fd(const struct stoup_decode *pool);

/* The caller is awake and reaps by itself: from now on results write nothing to the poll descriptor. */
void stoup_decode_awake(struct stoup_decode *pool);

/* It is about to sleep on the poll descriptor: 1 when results wait already, so that it had better not. Else the
 * descriptor becomes readable with the batch-th result, or earlier with one behind which no job is queued: one
 * wake-up for several results that nobody waits for. As at first: batch 1. */
int stoup_decode_sleep(struct stoup_decode *pool, uint32_t batch);

/* Do results seem to wait? One load, for a caller that spins: it may miss the newest for a moment. */
int stoup_decode_ready(const struct stoup_decode *pool);

/* Check and decode at once, on the calling thread, which is the one that submits: for a lone miss,
 * where two wake-ups would cost more than the decoding. */
void stoup_decode_inline(struct stoup_decode *pool, const struct stoup_decode_job *job,
	struct stoup_decode_result *ret);

uint32_t stoup_decode_thread_cnt(const struct stoup_decode *pool);

/* Jobs accepted and not reaped yet: up to job_cap. */
uint32_t stoup_decode_pending(const struct stoup_decode *pool);

/* Each number is right by itself; they are not one moment's while workers run. */
void stoup_decode_counters(const struct stoup_decode *pool, struct stoup_decode_counters *ret);

/* Busy time of one worker, 0 past the last. */
uint64_t stoup_decode_worker_busy_ns(const struct stoup_decode *pool, uint32_t worker_idx);

#endif
