/* SPDX-License-Identifier: Apache-2.0 */
/* One mutex guards both queues and the results. A turn under it takes some tens of nanoseconds (a
 * job is copied), and each job takes two of them against 50 us and more of decoding: with a worker
 * per core it is free 99 times of 100, and a lock-free queue would buy nothing but its proof.
 *
 * A bell is due when the first result comes after the last was reaped (`rung`), which is decided under
 * the mutex. It is rung behind it: who is woken reaps at once, and would run into the mutex of a worker
 * that is still in the kernel. So a bell may come when its result is reaped already; the eventfd is never
 * read, and watched by its edges. A conductor that is awake looks at the
 * results by itself and says so (`ring_at` 0, under the mutex as well): then nothing is written, and
 * its last look before it sleeps is the call that says how many results shall wake it. So neither
 * side can miss the other. Results that nobody waits for come in batches; the last of a queue always
 * rings, so that none is left lying.
 */
#include "producer/decode.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "codec/block.h"
#include "codec/volume.h"
#include "shm/clock.h"
#include "shm/futex.h"

#define SCRATCH_ALIGN 64u
#define LINE_PAIR     128u /* workers write their own counters only: no line is shared */

/* Who decodes: a worker, or the conductor on its inline path. Counters are written by that one
 * thread and read by anyone: relaxed, each is a number of its own. */
struct decoder {
	_Alignas(LINE_PAIR) void *scratch;
	_Atomic uint64_t jobs, errors, bytes_in, bytes_out, busy_ns;
	struct stoup_decode *pool;
	pthread_t thread;
};

struct job_ring {
	struct stoup_decode_job *jobs; /* job_cap entries */
	uint32_t head, cnt;
};

struct stoup_decode {
	struct decoder *decoders; /* thread_cnt workers, then the inline one */
	uint32_t thread_cnt;      /* started */
	uint32_t thread_cap;
	uint32_t job_cap;
	uint32_t spin_ns;
	int event_fd;

	/* the submitting thread's */
	uint32_t pending;
	uint64_t queue_max, refused;

	pthread_mutex_t mutex;
	pthread_cond_t work;
	struct job_ring demand, ahead;
	uint32_t idle_cnt; /* workers that sleep on `work` */
	int stop;
	struct stoup_decode_result *results; /* job_cap entries, used as a ring */
	uint32_t result_head, result_cnt;
	int rung;
	uint32_t ring_at; /* results that ring; 0: the conductor reaps without */
	/* Hints to look at the queue or the results, without the mutex: written under it, relaxed.
	 * A spinning worker that misses one sees it in the next turn; a reap that misses one is
	 * called again, because the eventfd is readable. */
	_Atomic uint32_t queued_hint;
	_Atomic uint32_t result_hint;
};

/* ---- one job --------------------------------------------------------------------------------- */

static enum stoup_decode_detail detail_of(int rc)
{
	if (rc == 0)
		return STOUP_DECODE_OK;
	if (rc == -ENOTSUP)
		return STOUP_DECODE_UNKNOWN;
	return rc == -EINVAL ? STOUP_DECODE_LENGTH : STOUP_DECODE_CONTENT;
}

/* A block that was read straight into its place is complete once its hash is right. */
static int in_place(const struct stoup_decode_job *job)
{
	return job->src == job->dst && job->codec == STOUP_CODEC_NONE &&
	       job->transform == STOUP_TRANSFORM_NONE && job->src_len == job->raw_len;
}

static int job_decode(const struct stoup_decode_job *job, void *scratch)
{
	if (in_place(job))
		return 0;
	if (job->src == job->dst) /* no decoder works in place */
		return -EINVAL;
	return stoup_block_decode(job->codec, job->transform, job->src, job->src_len, job->dst,
		job->raw_len, scratch);
}

static void count(_Atomic uint64_t *counter, uint64_t add)
{
	/* One writer: a plain add, without the locked instruction. */
	uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, value + add, memory_order_relaxed);
}

static void job_run(struct decoder *decoder, const struct stoup_decode_job *job,
	struct stoup_decode_result *ret)
{
	uint64_t begin_ns = stoup_clock_ns();
	ret->cookie = job->cookie;
	ret->found_hash = stoup_vol_hash(job->src, job->src_len);
	if (ret->found_hash != job->stored_hash) {
		ret->result = -EBADMSG;
		ret->detail = STOUP_DECODE_HASH;
	} else {
		ret->result = job_decode(job, decoder->scratch);
		ret->detail = detail_of(ret->result);
	}
	if (ret->result == 0) {
		ret->result = stoup_runs_block_check(job->runs, job->block_idx, job->dst, NULL);
		ret->detail = ret->result < 0 ? STOUP_DECODE_RUN : STOUP_DECODE_OK;
	}
	ret->busy_ns = stoup_clock_ns() - begin_ns;
	count(&decoder->jobs, 1);
	count(&decoder->bytes_in, job->src_len);
	count(&decoder->busy_ns, ret->busy_ns);
	if (ret->result == 0)
		count(&decoder->bytes_out, job->raw_len);
	else
		count(&decoder->errors, 1);
}

const char *stoup_decode_detail_text(enum stoup_decode_detail detail)
{
	switch (detail) {
	case STOUP_DECODE_OK:
		return "ok";
	case STOUP_DECODE_HASH:
		return "stored bytes do not match their checksum";
	case STOUP_DECODE_CONTENT:
		return "stored bytes do not decode to the length in the index";
	case STOUP_DECODE_UNKNOWN:
		return "codec or transform unknown to this version";
	case STOUP_DECODE_LENGTH:
		return "lengths beyond the limits of a block";
	case STOUP_DECODE_RUN:
		return "decodes to messages that are damaged";
	}
	return "?";
}

/* ---- workers --------------------------------------------------------------------------------- */

static void ring_push(struct job_ring *ring, uint32_t cap, const struct stoup_decode_job *job)
{
	ring->jobs[(ring->head + ring->cnt) % cap] = *job;
	ring->cnt++;
}

/* Under the mutex. 1 with *ret filled, or 0. */
static int job_pop(struct stoup_decode *pool, struct stoup_decode_job *ret)
{
	struct job_ring *ring = pool->demand.cnt > 0 ? &pool->demand : &pool->ahead;
	if (ring->cnt == 0)
		return 0;
	*ret = ring->jobs[ring->head];
	ring->head = (ring->head + 1) % pool->job_cap;
	ring->cnt--;
	atomic_store_explicit(
		&pool->queued_hint, pool->demand.cnt + pool->ahead.cnt, memory_order_relaxed);
	return 1;
}

/* Under the mutex. 1: the bell is due. */
static int result_push(struct stoup_decode *pool, const struct stoup_decode_result *result)
{
	uint32_t at = (pool->result_head + pool->result_cnt) % pool->job_cap;
	pool->results[at] = *result;
	pool->result_cnt++;
	atomic_store_explicit(&pool->result_hint, pool->result_cnt, memory_order_relaxed);
	if (pool->rung || pool->ring_at == 0)
		return 0;
	/* Whoever takes the next job comes here again. */
	if (pool->result_cnt < pool->ring_at && pool->demand.cnt + pool->ahead.cnt > 0)
		return 0;
	pool->rung = 1;
	return 1;
}

static void ring_bell(struct stoup_decode *pool)
{
	const uint64_t one = 1;

	/* Cannot fail: at a bell a nanosecond the counter is full after centuries. */
	if (write(pool->event_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		abort();
}

/* Look for work without the mutex for a while. 1: there seems to be some. */
static int spin(struct stoup_decode *pool)
{
	uint64_t end_ns = stoup_clock_ns() + pool->spin_ns;
	do {
		for (int i = 0; i < 32; i++) {
			if (atomic_load_explicit(&pool->queued_hint, memory_order_relaxed) > 0)
				return 1;
			stoup_cpu_relax();
		}
	} while (stoup_clock_ns() < end_ns);
	return 0;
}

/* Under the mutex, which is let go meanwhile: come back when there may be work, or the end. */
static void wait_for_work(struct stoup_decode *pool)
{
	if (pool->spin_ns > 0) {
		pthread_mutex_unlock(&pool->mutex);
		int found = spin(pool);
		pthread_mutex_lock(&pool->mutex);
		if (found || pool->stop || pool->demand.cnt + pool->ahead.cnt > 0)
			return;
	}
	pool->idle_cnt++;
	pthread_cond_wait(&pool->work, &pool->mutex);
	pool->idle_cnt--;
}

static void *worker_main(void *arg)
{
	struct decoder *decoder = arg;
	struct stoup_decode *pool = decoder->pool;
	struct stoup_decode_job job;
	struct stoup_decode_result result;
	int due = 0;

	pthread_mutex_lock(&pool->mutex);
	while (!pool->stop) {
		int popped = job_pop(pool, &job);

		if (!popped && !due) {
			wait_for_work(pool);
			continue;
		}
		pthread_mutex_unlock(&pool->mutex);
		if (due)
			ring_bell(pool);
		due = 0;
		if (popped)
			job_run(decoder, &job, &result);
		pthread_mutex_lock(&pool->mutex);
		if (popped)
			due = result_push(pool, &result);
	}
	pthread_mutex_unlock(&pool->mutex);
	/* Stopped with a bell due: nobody reaps any more. */
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static uint32_t cores_usable(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (uint32_t)CPU_COUNT(&set);
	long cnt = sysconf(_SC_NPROCESSORS_ONLN);
	return cnt > 0 ? (uint32_t)cnt : 1;
}

static int options_apply(
	struct stoup_decode *pool, const struct stoup_decode_options *opt, struct stoup_error *err)
{
	/* One for each, the conductor's and the consumers' included: these sleep while they wait for a block,
	 * and workers sleep while nothing is asked for. */
	pool->thread_cap = opt->thread_cnt ? opt->thread_cnt : cores_usable();
	if (opt->thread_cnt == 0 && pool->thread_cap > STOUP_DECODE_THREAD_CAP)
		pool->thread_cap = STOUP_DECODE_THREAD_CAP;
	pool->job_cap = opt->job_cap ? opt->job_cap : STOUP_DECODE_JOB_CAP_DEFAULT;
	pool->spin_ns = opt->spin_ns;
	if (pool->thread_cap > STOUP_DECODE_THREAD_CAP)
		return stoup_error_set(err, -EINVAL, "decode: %u threads, must be 1 to %u",
			opt->thread_cnt, STOUP_DECODE_THREAD_CAP);
	if (pool->job_cap > STOUP_DECODE_JOB_CAP)
		return stoup_error_set(err, -EINVAL, "decode: %u jobs, must be 1 to %u",
			opt->job_cap, STOUP_DECODE_JOB_CAP);
	if (pool->spin_ns > STOUP_DECODE_SPIN_CAP_NS)
		return stoup_error_set(err, -EINVAL, "decode: spin of %u ns, must be 0 to %u",
			opt->spin_ns, STOUP_DECODE_SPIN_CAP_NS);
	for (uint32_t i = 0; i < opt->cpu_cnt; i++)
		if (opt->cpus[i] >= CPU_SETSIZE)
			return stoup_error_set(
				err, -EINVAL, "decode: cpu %u does not exist", opt->cpus[i]);
	return 0;
}

static int memory_make(struct stoup_decode *pool)
{
	size_t scratch_len =
		(stoup_block_scratch_len() + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
	size_t decoder_cnt = (size_t)pool->thread_cap + 1;
	pool->demand.jobs = calloc(pool->job_cap, sizeof(*pool->demand.jobs));
	pool->ahead.jobs = calloc(pool->job_cap, sizeof(*pool->ahead.jobs));
	pool->results = calloc(pool->job_cap, sizeof(*pool->results));
	pool->decoders = aligned_alloc(LINE_PAIR, decoder_cnt * sizeof(*pool->decoders));
	/* First of all: the destructor frees what it finds in it. */
	if (pool->decoders)
		memset(pool->decoders, 0, decoder_cnt * sizeof(*pool->decoders));
	if (!pool->demand.jobs || !pool->ahead.jobs || !pool->results || !pool->decoders)
		return -ENOMEM;
	for (size_t i = 0; i < decoder_cnt; i++) {
		struct decoder *decoder = &pool->decoders[i];
		decoder->pool = pool;
		decoder->scratch =
			aligned_alloc(SCRATCH_ALIGN, scratch_len ? scratch_len : SCRATCH_ALIGN);
		if (!decoder->scratch)
			return -ENOMEM;
		/* Touched here: no page fault in the first job. */
		memset(decoder->scratch, 0, scratch_len);
		stoup_block_scratch_init(decoder->scratch);
	}
	return 0;
}

static int worker_start(
	struct decoder *decoder, const struct stoup_decode_options *opt, uint32_t worker_idx)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int rc = pthread_attr_init(&attr);
	if (rc != 0)
		return -rc;
	if (opt->cpu_cnt > 0) {
		CPU_ZERO(&set);
		CPU_SET(opt->cpus[worker_idx % opt->cpu_cnt], &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	rc = pthread_create(&decoder->thread, &attr, worker_main, decoder);
	if (rc == 0)
		(void)pthread_setname_np(decoder->thread, "stoup-decode");
	pthread_attr_destroy(&attr);
	return -rc;
}

/* The mask is inherited: all signals are blocked in the workers before they exist. */
static int workers_start(
	struct stoup_decode *pool, const struct stoup_decode_options *opt, struct stoup_error *err)
{
	sigset_t all, before;
	int rc = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (pool->thread_cnt < pool->thread_cap && rc == 0) {
		rc = worker_start(&pool->decoders[pool->thread_cnt], opt, pool->thread_cnt);
		if (rc == 0)
			pool->thread_cnt++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == -EINVAL && opt->cpu_cnt > 0)
		return stoup_error_set(err, rc,
			"decode: worker %u cannot be pinned to cpu %u: it does not exist here",
			pool->thread_cnt, opt->cpus[pool->thread_cnt % opt->cpu_cnt]);
	if (pool->thread_cnt == 0)
		return stoup_error_set(err, rc, "decode: no worker thread: %s", strerror(-rc));
	return 0;
}

int stoup_decode_create(
	const struct stoup_decode_options *opt, struct stoup_decode **ret, struct stoup_error *err)
{
	struct stoup_decode *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return stoup_error_set(err, -ENOMEM, "decode: no memory");
	pthread_mutex_init(&pool->mutex, NULL);
	pthread_cond_init(&pool->work, NULL);
	pool->event_fd = -1;
	pool->ring_at = 1;
	int rc = options_apply(pool, opt, err);
	if (rc < 0)
		goto out_destroy;
	rc = memory_make(pool);
	if (rc < 0) {
		stoup_error_set(err, rc, "decode: no memory for %u workers and %u jobs",
			pool->thread_cap, pool->job_cap);
		goto out_destroy;
	}
	pool->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pool->event_fd < 0) {
		rc = stoup_error_set(err, -errno, "decode: eventfd: %s", strerror(errno));
		goto out_destroy;
	}
	rc = workers_start(pool, opt, err);
	if (rc < 0)
		goto out_destroy;
	*ret = pool;
	return 0;

out_destroy:
	stoup_decode_destroy(pool);
	return rc;
}

void stoup_decode_destroy(struct stoup_decode *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->mutex);
	pool->stop = 1;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->mutex);
	for (uint32_t i = 0; i < pool->thread_cnt; i++)
		pthread_join(pool->decoders[i].thread, NULL);
	for (uint32_t i = 0; pool->decoders && i <= pool->thread_cap; i++)
		free(pool->decoders[i].scratch);
	if (pool->event_fd >= 0)
		close(pool->event_fd);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->mutex);
	free(pool->decoders);
	free(pool->results);
	free(pool->ahead.jobs);
	free(pool->demand.jobs);
	free(pool);
}

/* ---- the conductor's side -------------------------------------------------------------------- */

int stoup_decode_submit(struct stoup_decode *pool, const struct stoup_decode_job *job)
{
	if (pool->pending == pool->job_cap) {
		pool->refused++;
		return -EAGAIN;
	}
	pool->pending++;
	pthread_mutex_lock(&pool->mutex);
	ring_push(job->flags & STOUP_DECODE_DEMAND ? &pool->demand : &pool->ahead, pool->job_cap,
		job);
	uint32_t queued = pool->demand.cnt + pool->ahead.cnt;
	atomic_store_explicit(&pool->queued_hint, queued, memory_order_relaxed);
	int wake = pool->idle_cnt > 0;
	pthread_mutex_unlock(&pool->mutex);
	/* Outside the mutex, so that the woken worker does not run into it. */
	if (wake)
		pthread_cond_signal(&pool->work);
	if (queued > pool->queue_max)
		pool->queue_max = queued;
	return 0;
}

size_t stoup_decode_reap(struct stoup_decode *pool, struct stoup_decode_result *out, size_t cap)
{
	size_t cnt = 0;
	if (atomic_load_explicit(&pool->result_hint, memory_order_relaxed) == 0)
		return 0;
	pthread_mutex_lock(&pool->mutex);
	while (cnt < cap && pool->result_cnt > 0) {
		out[cnt++] = pool->results[pool->result_head];
		pool->result_head = (pool->result_head + 1) % pool->job_cap;
		pool->result_cnt--;
	}
	atomic_store_explicit(&pool->result_hint, pool->result_cnt, memory_order_relaxed);
	if (pool->result_cnt == 0)
		pool->rung = 0;
	pthread_mutex_unlock(&pool->mutex);
	pool->pending -= (uint32_t)cnt;
	return cnt;
}

void stoup_decode_awake(struct stoup_decode *pool)
{
	pthread_mutex_lock(&pool->mutex);
	pool->ring_at = 0;
	pthread_mutex_unlock(&pool->mutex);
}

int stoup_decode_sleep(struct stoup_decode *pool, uint32_t batch)
{
	int waits;

	pthread_mutex_lock(&pool->mutex);
	pool->ring_at = batch;
	waits = pool->result_cnt > 0;
	pthread_mutex_unlock(&pool->mutex);
	return waits;
}

int stoup_decode_ready(const struct stoup_decode *pool)
{
	return atomic_load_explicit(&pool->result_hint, memory_order_relaxed) > 0;
}

int stoup_decode_poll_fd(const struct stoup_decode *pool)
{
	return pool->event_fd;
}

void stoup_decode_inline(struct stoup_decode *pool, const struct stoup_decode_job *job,
	struct stoup_decode_result *ret)
{
	job_run(&pool->decoders[pool->thread_cap], job, ret);
}

uint32_t stoup_decode_thread_cnt(const struct stoup_decode *pool)
{
	return pool->thread_cnt;
}

uint32_t stoup_decode_pending(const struct stoup_decode *pool)
{
	return pool->pending;
}

void stoup_decode_counters(const struct stoup_decode *pool, struct stoup_decode_counters *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i <= pool->thread_cap; i++) {
		const struct decoder *decoder = &pool->decoders[i];
		uint64_t jobs = atomic_load_explicit(&decoder->jobs, memory_order_relaxed);
		ret->jobs += jobs;
		if (i == pool->thread_cap)
			ret->jobs_inline = jobs;
		ret->errors += atomic_load_explicit(&decoder->errors, memory_order_relaxed);
		ret->bytes_in += atomic_load_explicit(&decoder->bytes_in, memory_order_relaxed);
		ret->bytes_out += atomic_load_explicit(&decoder->bytes_out, memory_order_relaxed);
		ret->busy_ns += atomic_load_explicit(&decoder->busy_ns, memory_order_relaxed);
	}
	ret->queued = atomic_load_explicit(&pool->queued_hint, memory_order_relaxed);
	ret->queue_max = pool->queue_max;
	ret->refused = pool->refused;
}

uint64_t stoup_decode_worker_busy_ns(const struct stoup_decode *pool, uint32_t worker_idx)
{
	if (worker_idx >= pool->thread_cnt)
		return 0;
	return atomic_load_explicit(&pool->decoders[worker_idx].busy_ns, memory_order_relaxed);
}
