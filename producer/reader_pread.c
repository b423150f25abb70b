/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's backend on a pool of threads that call pread: for kernels and containers that refuse
 * io_uring. Same bandwidth, two to three times the processor time.
 *
 *      begin -> batch --flush--> queue --threads--> done --reap-->
 *               (caller's)       [      under one mutex     ]
 *
 * One mutex guards queue and results: a turn under it is tens of nanoseconds, a read at least tens
 * of microseconds, so that lock-free queues would save nothing that can be measured.
 *
 * The eventfd is written when the first result comes after a reap (`rung`), and read by the reap
 * that empties the list, both under the mutex: so it is readable exactly while results wait.
 */
#include "producer/reader_backend.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK_LEN ((size_t)256 << 10) /* a thread calls pread and no more */

struct pool_state {
	uint32_t depth;
	uint32_t thread_cnt;
	pthread_t *threads;
	int event_fd;

	const struct stoup_read_op *
		*ops;    /* by op_idx; set by begin, read by the thread that serves it */
	uint32_t *batch; /* caller's thread alone */
	uint32_t batch_cnt;

	pthread_mutex_t mutex;
	pthread_cond_t work;
	uint32_t *queue; /* ring of op_idx, depth entries: an operation is in it at most once */
	uint32_t queue_head, queue_cnt;
	uint32_t idle_cnt;
	int stop;
	struct stoup_read_result *done;
	uint32_t done_cnt;
	/* 1 while results wait. Written under the mutex; read without it by reap to come back
	 * early: relaxed is enough, the mutex orders the results, and a 1 missed now is seen by the
	 * next reap (the eventfd stays readable). */
	_Atomic int rung;
};

static int32_t read_one(const struct stoup_read_op *op)
{
	ssize_t got = pread(op->fd, op->dst, op->len, (off_t)op->file_off);
	return got < 0 ? -errno : (int32_t)got;
}

/* Under the mutex. */
static void result_push(struct pool_state *pool, uint32_t op_idx, int32_t result)
{
	const uint64_t one = 1;
	pool->done[pool->done_cnt++] = (struct stoup_read_result){op_idx, result};
	if (atomic_load_explicit(&pool->rung, memory_order_relaxed))
		return;
	atomic_store_explicit(&pool->rung, 1, memory_order_relaxed);
	/* Cannot fail: the counter was 0, and 1 more does not overflow it. */
	if (write(pool->event_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		abort();
}

static void *thread_main(void *arg)
{
	struct pool_state *pool = arg;
	pthread_mutex_lock(&pool->mutex);
	while (!pool->stop) {
		if (pool->queue_cnt == 0) {
			pool->idle_cnt++;
			pthread_cond_wait(&pool->work, &pool->mutex);
			pool->idle_cnt--;
			continue;
		}
		uint32_t op_idx = pool->queue[pool->queue_head];
		pool->queue_head = (pool->queue_head + 1) % pool->depth;
		pool->queue_cnt--;
		const struct stoup_read_op *op = pool->ops[op_idx];
		pthread_mutex_unlock(&pool->mutex);
		int32_t result = read_one(op);
		pthread_mutex_lock(&pool->mutex);
		result_push(pool, op_idx, result);
	}
	pthread_mutex_unlock(&pool->mutex);
	return NULL;
}

/* No signal is ever delivered to a thread of the pool: the daemon's main thread takes them all.
 * Fewer threads than asked for are enough; none is an error. */
static int threads_start(struct pool_state *pool, uint32_t wanted)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);
	if (rc != 0)
		return -rc;
	pthread_attr_setstacksize(&attr, STACK_LEN);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (pool->thread_cnt < wanted) {
		rc = pthread_create(&pool->threads[pool->thread_cnt], &attr, thread_main, pool);
		if (rc != 0)
			break;
		(void)pthread_setname_np(pool->threads[pool->thread_cnt], "stoup-read");
		pool->thread_cnt++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return pool->thread_cnt > 0 ? 0 : -rc;
}

static void pool_destroy(void *arg)
{
	struct pool_state *pool = arg;
	pthread_mutex_lock(&pool->mutex);
	pool->stop = 1;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->mutex);
	/* What is queued is dropped; a thread inside pread comes back when the disk answers. */
	for (uint32_t i = 0; i < pool->thread_cnt; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->mutex);
	if (pool->event_fd >= 0)
		close(pool->event_fd);
	free(pool->threads);
	free(pool->ops);
	free(pool->batch);
	free(pool->queue);
	free(pool->done);
	free(pool);
}

static int pool_create(const struct stoup_reader_options *opt, uint32_t *depth, void **ret,
	char reason[STOUP_READER_REASON_CAP])
{
	int rc = -ENOMEM;
	struct pool_state *pool = calloc(1, sizeof(*pool));
	if (!pool)
		goto out_reason;
	pool->depth = *depth;
	pthread_mutex_init(&pool->mutex, NULL);
	pthread_cond_init(&pool->work, NULL);
	pool->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pool->event_fd < 0) {
		rc = -errno;
		goto out_destroy;
	}
	pool->threads = calloc(opt->threads, sizeof(pthread_t));
	pool->ops = calloc(pool->depth, sizeof(*pool->ops));
	pool->batch = calloc(pool->depth, sizeof(*pool->batch));
	pool->queue = calloc(pool->depth, sizeof(*pool->queue));
	pool->done = calloc(pool->depth, sizeof(*pool->done));
	if (!pool->threads || !pool->ops || !pool->batch || !pool->queue || !pool->done)
		goto out_destroy;
	rc = threads_start(pool, opt->threads);
	if (rc < 0)
		goto out_destroy;
	snprintf(reason, STOUP_READER_REASON_CAP, "%u threads", pool->thread_cnt);
	*ret = pool;
	return 0;

out_destroy:
	pool_destroy(pool);
out_reason:
	snprintf(reason, STOUP_READER_REASON_CAP, "reader: pool of %u threads for pread: %s",
		opt->threads, strerror(-rc));
	return rc;
}

static int pool_file_set(void *arg, uint32_t file_idx, int fd_buffered, int fd_direct)
{
	(void)arg, (void)file_idx, (void)fd_buffered, (void)fd_direct;
	return 0; /* operations name the descriptor */
}

static void pool_begin(void *arg, uint32_t op_idx, const struct stoup_read_op *op)
{
	struct pool_state *pool = arg;
	pool->ops[op_idx] = op;
	pool->batch[pool->batch_cnt++] = op_idx;
}

static int pool_flush(void *arg)
{
	struct pool_state *pool = arg;
	if (pool->batch_cnt == 0)
		return 0;
	pthread_mutex_lock(&pool->mutex);
	for (uint32_t i = 0; i < pool->batch_cnt; i++) {
		uint32_t at = (pool->queue_head + pool->queue_cnt) % pool->depth;
		pool->queue[at] = pool->batch[i];
		pool->queue_cnt++;
	}
	uint32_t wake_cnt = pool->batch_cnt < pool->idle_cnt ? pool->batch_cnt : pool->idle_cnt;
	for (uint32_t i = 0; i < wake_cnt; i++)
		pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->mutex);
	pool->batch_cnt = 0;
	return 1;
}

static size_t pool_reap(void *arg, struct stoup_read_result *out, size_t cap)
{
	struct pool_state *pool = arg;
	uint64_t count;
	if (!atomic_load_explicit(&pool->rung, memory_order_relaxed))
		return 0;
	pthread_mutex_lock(&pool->mutex);
	size_t cnt = pool->done_cnt < cap ? pool->done_cnt : cap; /* cap >= depth: all of them */
	memcpy(out, pool->done, cnt * sizeof(*out));
	pool->done_cnt = 0;
	atomic_store_explicit(&pool->rung, 0, memory_order_relaxed);
	if (read(pool->event_fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
		abort(); /* rung and not readable: somebody else reads our eventfd */
	pthread_mutex_unlock(&pool->mutex);
	return cnt;
}

static int pool_poll_fd(const void *arg)
{
	const struct pool_state *pool = arg;
	return pool->event_fd;
}

const struct stoup_reader_backend stoup_reader_backend_pread = {
	.name = "pread",
	.create = pool_create,
	.destroy = pool_destroy,
	.file_set = pool_file_set,
	.begin = pool_begin,
	.flush = pool_flush,
	.reap = pool_reap,
	.poll_fd = pool_poll_fd,
};
