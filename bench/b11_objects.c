/* SPDX-License-Identifier: Apache-2.0 */
/* b11_objects.c - a maker thread, a queue of batches, a strategy that frees what it has seen. */
#include "bench/b11_objects.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "bench/harness.h"

#define BATCH_CNT 1024u
#define QUEUE_CAP 16u

struct batch {
	struct stoup_trade *objects[BATCH_CNT];
	size_t cnt; /* 0: the end */
};

struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct batch batches[QUEUE_CAP];
	uint64_t made, used; /* batches */
	const struct bench_pieces *pieces;
};

/* The batch to fill next: nobody else touches it until it is given. */
static struct batch *batch_free(struct queue *q)
{
	pthread_mutex_lock(&q->mutex);
	while (q->made - q->used == QUEUE_CAP)
		pthread_cond_wait(&q->changed, &q->mutex);
	pthread_mutex_unlock(&q->mutex);
	return &q->batches[q->made % QUEUE_CAP];
}

static void batch_give(struct queue *q)
{
	pthread_mutex_lock(&q->mutex);
	q->made++;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->mutex);
}

static void make_objects(void *arg, const void *base, size_t cnt)
{
	const struct stoup_trade *trades = base;
	struct queue *q = arg;

	while (cnt > 0) {
		struct batch *batch = batch_free(q);
		size_t n = cnt < BATCH_CNT ? cnt : BATCH_CNT;

		for (size_t i = 0; i < n; i++) {
			batch->objects[i] = malloc(sizeof(*trades));
			if (!batch->objects[i])
				bench_die("no memory for objects");
			*batch->objects[i] = trades[i];
		}
		batch->cnt = n;
		batch_give(q);
		trades += n;
		cnt -= n;
	}
}

static void *maker(void *arg)
{
	struct bench_piece_reader reader;
	struct queue *q = arg;

	bench_piece_reader_make(&reader);
	reader.take = make_objects;
	reader.arg = q;
	bench_pieces_walk(q->pieces, &reader);
	bench_piece_reader_free(&reader);
	batch_free(q)->cnt = 0;
	batch_give(q);
	return NULL;
}

static struct batch *batch_wait(struct queue *q)
{
	pthread_mutex_lock(&q->mutex);
	while (q->made == q->used)
		pthread_cond_wait(&q->changed, &q->mutex);
	pthread_mutex_unlock(&q->mutex);
	return &q->batches[q->used % QUEUE_CAP];
}

static void batch_done(struct queue *q)
{
	pthread_mutex_lock(&q->mutex);
	q->used++;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->mutex);
}

void bench_objects_run(struct bench_strategy *strategy, const struct bench_pieces *pieces)
{
	struct queue *q = calloc(1, sizeof(*q));
	struct batch *batch;
	pthread_t thread;

	if (!q)
		bench_die("no memory for a queue");
	pthread_mutex_init(&q->mutex, NULL);
	pthread_cond_init(&q->changed, NULL);
	q->pieces = pieces;
	if (pthread_create(&thread, NULL, maker, q) != 0)
		bench_die("no thread");
	for (batch = batch_wait(q); batch->cnt > 0; batch = batch_wait(q)) {
		for (size_t i = 0; i < batch->cnt; i++) {
			bench_strategy_step(strategy, batch->objects[i]);
			free(batch->objects[i]);
		}
		batch_done(q);
	}
	pthread_join(thread, NULL);
	pthread_mutex_destroy(&q->mutex);
	pthread_cond_destroy(&q->changed);
	free(q);
}
