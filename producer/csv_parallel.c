/* SPDX-License-Identifier: Apache-2.0 */
/* csv_parallel.c - see csv_parallel.h. */
#include "producer/csv_parallel.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "producer/csv_cut.h"
#include "producer/lane.h"

#define PIECES_PER_WORKER 2u

/* A piece as a source of bytes. */
struct source {
	struct stoup_csv_piece piece;
	size_t at;
};

/* A piece on its way: its lane is ended by the worker, replayed by the caller. */
struct job {
	struct stoup_csv_piece piece;
	struct stoup_lane *lane;
};

struct state {
	const struct stoup_csv_parallel *what;
	const struct stoup_csv_table *bound;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job *jobs; /* by number modulo job_cap */
	size_t job_cap, begun, taken, done;
	int stopped;
	struct stoup_csv_seen seen; /* by workers that ended */
	pthread_t *threads;
	uint32_t thread_cnt;
};

static int64_t piece_read(void *arg, void *dst, size_t len, struct stoup_error *err)
{
	struct source *source = arg;
	size_t left = source->piece.len - source->at, n = left < len ? left : len;

	(void)err;
	if (n > 0) /* a text without a piece has no bytes to point to */
		memcpy(dst, source->piece.text + source->at, n);
	source->at += n;
	return (int64_t)n;
}

/* ---- workers ----------------------------------------------------------------------------------- */

/* The next piece; NULL: there will be none. */
static struct job *job_take(struct state *state)
{
	struct job *job = NULL;

	pthread_mutex_lock(&state->lock);
	while (state->taken == state->begun && !state->stopped)
		pthread_cond_wait(&state->changed, &state->lock);
	if (state->taken < state->begun)
		job = &state->jobs[state->taken++ % state->job_cap];
	pthread_mutex_unlock(&state->lock);
	return job;
}

static void *worker_run(void *arg)
{
	struct state *state = arg;
	struct source source = {0};
	struct stoup_csv_table *table = NULL;
	struct stoup_error failed = {0};
	int rc = stoup_csv_table_share(state->bound, piece_read, &source, &table, &failed);
	struct job *job;

	while ((job = job_take(state))) {
		const struct stoup_sink sink = stoup_lane_sink(job->lane);
		struct stoup_error err = failed;
		int job_rc = rc;

		source = (struct source){.piece = job->piece};
		if (rc == 0) {
			stoup_csv_table_restart(table, source.piece.line, source.piece.file_off);
			job_rc = state->what->put(state->what->arg, table, &sink, &err);
		}
		free(source.piece.text);
		job->piece.text = NULL;
		stoup_lane_end(job->lane, job_rc, &err);
	}
	if (rc == 0) {
		const struct stoup_csv_seen seen = stoup_csv_table_seen(table);

		pthread_mutex_lock(&state->lock);
		state->seen.row_cnt += seen.row_cnt;
		state->seen.skipped |= seen.skipped;
		pthread_mutex_unlock(&state->lock);
	}
	stoup_csv_table_destroy(table);
	return NULL;
}

static int workers_start(struct state *state, struct stoup_error *err)
{
	uint32_t want = state->what->threads;
	int rc = 0;

	state->job_cap = (size_t)want * PIECES_PER_WORKER;
	state->jobs = calloc(state->job_cap, sizeof(*state->jobs));
	state->threads = calloc(want, sizeof(*state->threads));
	if (!state->jobs || !state->threads)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	while (state->thread_cnt < want && rc == 0) {
		rc = -pthread_create(&state->threads[state->thread_cnt], NULL, worker_run, state);
		state->thread_cnt += rc == 0;
	}
	return state->thread_cnt > 0
	               ? 0
	               : stoup_error_set(
				 err, rc, "no thread to read %s can be started", state->what->name);
}

static void workers_stop(struct state *state)
{
	pthread_mutex_lock(&state->lock);
	state->stopped = 1;
	for (size_t i = state->done; i < state->begun; i++)
		stoup_lane_cancel(state->jobs[i % state->job_cap].lane);
	pthread_cond_broadcast(&state->changed);
	pthread_mutex_unlock(&state->lock);
	for (uint32_t i = 0; i < state->thread_cnt; i++)
		pthread_join(state->threads[i], NULL);
	for (size_t i = state->done; i < state->begun; i++) {
		free(state->jobs[i % state->job_cap].piece.text);
		stoup_lane_destroy(state->jobs[i % state->job_cap].lane);
	}
	free(state->jobs);
	free(state->threads);
}

/* ---- the caller -------------------------------------------------------------------------------- */

/* A worker must never wait for the caller, which may wait for it: its lane holds all of a piece. */
static int job_begin(
	struct state *state, const struct stoup_csv_piece *piece, struct stoup_error *err)
{
	struct job job = {.piece = *piece};
	int rc = stoup_lane_create(SIZE_MAX / 2, &job.lane, err);

	if (rc < 0) {
		free(piece->text);
		return rc;
	}
	pthread_mutex_lock(&state->lock);
	state->jobs[state->begun++ % state->job_cap] = job;
	pthread_cond_broadcast(&state->changed);
	pthread_mutex_unlock(&state->lock);
	return 0;
}

static int job_replay(struct state *state, const struct stoup_sink *sink, struct stoup_error *err)
{
	struct job *job = &state->jobs[state->done % state->job_cap];
	int rc = stoup_lane_replay(job->lane, sink, err);

	if (rc < 0)
		return rc;
	stoup_lane_destroy(job->lane);
	state->done++;
	return 0;
}

/* All pieces behind the first. */
static int pieces_run(struct state *state, struct stoup_csv_cut *cut, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	struct stoup_csv_piece piece;
	struct stoup_error cut_err = {0};
	int rc = 0, cut_rc = stoup_csv_cut_next(cut, &piece, &cut_err);

	if (cut_rc > 0) {
		rc = workers_start(state, err);
		if (rc < 0)
			free(piece.text);
	}
	while (rc == 0 && cut_rc > 0) {
		if (state->begun - state->done == state->job_cap)
			rc = job_replay(state, sink, err);
		if (rc < 0) {
			free(piece.text);
			break;
		}
		rc = job_begin(state, &piece, err);
		if (rc == 0)
			cut_rc = stoup_csv_cut_next(cut, &piece, &cut_err);
	}
	while (rc == 0 && state->done < state->begun)
		rc = job_replay(state, sink, err);
	/* What ended the stream lies behind all rows before it. */
	if (rc == 0 && cut_rc < 0)
		rc = stoup_error_set(err, cut_rc, "%s", cut_err.text);
	return rc;
}

/* The first row, and with it the rest of its piece. */
static int first_piece(const struct stoup_csv_parallel *what, struct source *source,
	struct stoup_csv_cut *cut, struct stoup_csv_table *table, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	int rc, more;

	/* A piece of empty lines binds nothing. An empty text is the table's to tell of. */
	do {
		more = rc = stoup_csv_cut_next(cut, &source->piece, err);
		if (rc < 0)
			return rc;
		source->at = 0;
		if (more && source->piece.line > 1)
			stoup_csv_table_restart(table, source->piece.line, source->piece.file_off);
		rc = what->put(what->arg, table, sink, err);
		free(source->piece.text);
		source->piece = (struct stoup_csv_piece){0};
	} while (rc == 0 && more && !stoup_csv_table_bound(table));
	return rc;
}

int stoup_csv_parallel(const struct stoup_csv_parallel *what, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	struct state state = {.what = what};
	struct source source = {0};
	struct stoup_csv_table *table = NULL;
	struct stoup_csv_cut *cut = NULL;
	int rc =
		stoup_csv_table_create(piece_read, &source, what->name, what->options, &table, err);

	if (rc == 0)
		rc = stoup_csv_cut_create(what->read, what->source, &cut, err);
	if (rc == 0)
		rc = first_piece(what, &source, cut, table, sink, err);
	if (rc == 0) {
		pthread_mutex_init(&state.lock, NULL);
		pthread_cond_init(&state.changed, NULL);
		state.bound = table;
		rc = pieces_run(&state, cut, sink, err);
		workers_stop(&state);
		if (rc == 0)
			stoup_csv_table_finish(table, &state.seen);
		pthread_cond_destroy(&state.changed);
		pthread_mutex_destroy(&state.lock);
	}
	stoup_csv_cut_destroy(cut);
	stoup_csv_table_destroy(table);
	return rc;
}
