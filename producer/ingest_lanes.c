/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_lanes.c - see ingest_lanes.h. */
#include "producer/ingest_lanes.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "producer/lane.h"

#define LANES_PER_READER 2u
#define LANE_LEN_MIN     (512u << 10)

struct state {
	const struct stoup_lanes *lanes;
	size_t window; /* lanes that may be open */
	size_t lane_len;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct stoup_lane **open; /* by file index modulo window; NULL: not yet, or done */
	size_t begun, done;       /* files */
	int stopped;
};

/* ---- readers ----------------------------------------------------------------------------------- */

/* The next file to read, with a lane of its own; the number of files: none is left. */
static size_t file_begin(struct state *state, struct stoup_lane **ret_lane)
{
	size_t idx = state->lanes->file_cnt;
	struct stoup_error err;

	pthread_mutex_lock(&state->lock);
	while (!state->stopped && state->begun < state->lanes->file_cnt &&
		state->begun >= state->done + state->window)
		pthread_cond_wait(&state->changed, &state->lock);
	if (!state->stopped && state->begun < state->lanes->file_cnt) {
		if (stoup_lane_create(state->lane_len, ret_lane, &err) == 0) {
			idx = state->begun++;
			state->open[idx % state->window] = *ret_lane;
		} else {
			state->stopped = -ENOMEM;
		}
		pthread_cond_broadcast(&state->changed);
	}
	pthread_mutex_unlock(&state->lock);
	return idx;
}

static void *reader_run(void *arg)
{
	struct state *state = arg;
	struct stoup_lane *lane = NULL;
	size_t idx;

	while ((idx = file_begin(state, &lane)) < state->lanes->file_cnt) {
		const struct stoup_sink sink = stoup_lane_sink(lane);
		struct stoup_error err = {0};
		int rc = state->lanes->read(state->lanes->arg, idx, &sink, &err);

		stoup_lane_end(lane, rc, &err);
	}
	return NULL;
}

/* ---- the order of the files -------------------------------------------------------------------- */

/* Wait for the lane of the next file: NULL where readers found no memory for one. */
static struct stoup_lane *lane_wait(struct state *state, size_t idx)
{
	struct stoup_lane *lane;

	pthread_mutex_lock(&state->lock);
	while (state->begun <= idx && !state->stopped)
		pthread_cond_wait(&state->changed, &state->lock);
	lane = state->begun > idx ? state->open[idx % state->window] : NULL;
	pthread_mutex_unlock(&state->lock);
	return lane;
}

/* A reader puts into a lane until it has ended it: only then it may be freed. */
static void lane_done(struct state *state, size_t idx, struct stoup_lane *lane)
{
	pthread_mutex_lock(&state->lock);
	state->open[idx % state->window] = NULL;
	state->done = idx + 1;
	pthread_cond_broadcast(&state->changed);
	pthread_mutex_unlock(&state->lock);
	stoup_lane_destroy(lane);
}

static int replay_all(struct state *state, const struct stoup_sink *sink, struct stoup_error *err)
{
	for (size_t i = 0; i < state->lanes->file_cnt; i++) {
		struct stoup_lane *lane = lane_wait(state, i);
		int rc;

		if (!lane)
			return stoup_error_set(err, -ENOMEM, "no memory to read files");
		rc = stoup_lane_replay(lane, sink, err);
		if (rc < 0)
			return rc;
		lane_done(state, i, lane);
	}
	return 0;
}

/* Have the readers end: what they put fails from now on. */
static void stop(struct state *state)
{
	pthread_mutex_lock(&state->lock);
	state->stopped = 1;
	for (size_t i = 0; i < state->window; i++)
		if (state->open[i])
			stoup_lane_cancel(state->open[i]);
	pthread_cond_broadcast(&state->changed);
	pthread_mutex_unlock(&state->lock);
}

static int threads_run(struct state *state, pthread_t *threads, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	uint32_t cnt = 0;
	int rc = 0;

	while (cnt < state->lanes->threads && rc == 0) {
		rc = -pthread_create(&threads[cnt], NULL, reader_run, state);
		cnt += rc == 0;
	}
	rc = cnt > 0 ? replay_all(state, sink, err)
	             : stoup_error_set(err, rc, "no thread to read files can be started");
	stop(state);
	for (uint32_t i = 0; i < cnt; i++)
		pthread_join(threads[i], NULL);
	return rc;
}

int stoup_lanes_run(
	const struct stoup_lanes *lanes, const struct stoup_sink *sink, struct stoup_error *err)
{
	struct state state = {.lanes = lanes, .window = (size_t)lanes->threads * LANES_PER_READER};
	pthread_t *threads = calloc(lanes->threads, sizeof(*threads));
	int rc;

	state.open = calloc(state.window, sizeof(struct stoup_lane *));
	state.lane_len = STOUP_LANES_LEN / state.window;
	if (state.lane_len < LANE_LEN_MIN)
		state.lane_len = LANE_LEN_MIN;
	pthread_mutex_init(&state.lock, NULL);
	pthread_cond_init(&state.changed, NULL);
	if (threads && state.open)
		rc = threads_run(&state, threads, sink, err);
	else
		rc = stoup_error_set(err, -ENOMEM, "no memory to read files");
	for (size_t i = 0; state.open && i < state.window; i++)
		stoup_lane_destroy(state.open[i]);
	pthread_cond_destroy(&state.changed);
	pthread_mutex_destroy(&state.lock);
	free(state.open);
	free(threads);
	return rc;
}
