/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - records as they fall due.
 *
 *      cursor --stoup_next--> run [ . . . | d d d | w w w ]      d: due, the span of this call; w: to wait for
 *                                                  ^head: its due time arms the timer
 *
 * What is due is asked of pace.h, which has no clock. Long gaps of the data are cut by counting what was skipped: a
 * record's time is its place less that, and only grows apart from it, so that the order stays.
 *
 * Waiting is one timer of an absolute time, behind the descriptor that the user may watch as well: whoever turns the
 * replay (pause, resume, speed) sets it anew, so that a waiting thread needs no other call.
 *
 * Concurrency: `mutex` guards the pace, the head and what is counted; the cursor, the lane and the run belong to the
 * thread in stoup_replay_next, which holds no lock while it waits. A death leaves nothing: the timer goes with the process.
 */
#include "consumer/replay.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include "consumer/merge.h"
#include "consumer/pace.h"

#define FIRST_STATE_LEN offsetof(struct stoup_replay_state, zero)
#define SECOND          UINT64_C(1000000000)

struct stoup_replay {
	struct stoup_cursor *cur;
	struct stoup_lane
		lane; /* of a cursor that is no merge; its own cursor is not closed with it */
	struct stoup_span run; /* records [pos, record_cnt) of it are to come */
	uint64_t pos;
	const struct stoup_lane *places; /* that has the run's records, from record `first` on */
	uint64_t first;
	struct stoup_replay_options opt;
	struct stoup_replay_clock clock; /* now NULL: the machine's */
	int timer_fd;

	pthread_mutex_t mutex;
	struct stoup_pace pace;
	int begun;
	int has_head;
	int64_t head_ns; /* time of the next record, gaps cut */
	int64_t last_ns; /* place of the record before it */
	uint64_t skipped_ns;
	uint64_t record_cnt, span_cnt;
	struct stoup_late late;
};

/* ---- the clock --------------------------------------------------------------------------------- */

static uint64_t now_of(const struct stoup_replay *r)
{
	return r->clock.now ? r->clock.now(r->clock.arg) : stoup_client_now();
}

/* With the mutex: the descriptor is readable from the head's due time on. */
static void arm(struct stoup_replay *r)
{
	uint64_t due = r->has_head && r->begun ? stoup_pace_due(&r->pace, r->head_ns) : UINT64_MAX;
	struct itimerspec at = {0};

	/* All zero disarms; a time that has passed fires at once. */
	if (due < (uint64_t)INT64_MAX) {
		at.it_value.tv_sec = (time_t)(due / SECOND);
		at.it_value.tv_nsec = (long)(due % SECOND) + (due == 0);
	}
	timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Until the head may be due, or until_ns: 0; -EINTR. */
static int wait_head(struct stoup_replay *r, uint64_t until_ns)
{
	struct pollfd p = {.fd = r->timer_fd, .events = POLLIN};
	struct timespec rest;
	uint64_t fired, now, due;

	if (r->clock.wait) {
		pthread_mutex_lock(&r->mutex);
		due = stoup_pace_due(&r->pace, r->head_ns);
		pthread_mutex_unlock(&r->mutex);
		return r->clock.wait(r->clock.arg, due, until_ns);
	}
	now = stoup_client_now();
	now = until_ns > now ? until_ns - now : 0;
	rest = (struct timespec){.tv_sec = (time_t)(now / SECOND), .tv_nsec = (long)(now % SECOND)};
	if (ppoll(&p, 1, until_ns == UINT64_MAX ? NULL : &rest, NULL) < 0)
		return -errno;
	/* Non-blocking: nothing there is as good. */
	return p.revents && read(r->timer_fd, &fired, sizeof(fired)) < 0 && errno != EAGAIN ? -errno
	                                                                                    : 0;
}

/* ---- the run ------------------------------------------------------------------------------------ */

static int64_t place_at(const struct stoup_replay *r, uint64_t i)
{
	return stoup_lane_at(r->places, r->first + i);
}

/* With the mutex: the time of the record at pos, which comes next. */
static void head_set(struct stoup_replay *r)
{
	int64_t place = place_at(r, r->pos);
	uint64_t gap;

	if (!r->begun) {
		r->pace.data_ns = r->last_ns = r->opt.start_ns ? r->opt.start_ns : place;
		r->pace.mono_ns = r->opt.begin_ns ? r->opt.begin_ns : now_of(r);
		r->begun = 1;
	}
	gap = place > r->last_ns ? (uint64_t)(place - r->last_ns) : 0;
	if (r->opt.max_gap_ns > 0 && gap > r->opt.max_gap_ns)
		r->skipped_ns += gap - r->opt.max_gap_ns;
	r->last_ns = place > r->last_ns ? place : r->last_ns;
	r->head_ns = place - (int64_t)r->skipped_ns;
	r->has_head = 1;
}

/* The next run of a plain cursor: a piece of its span whose places are known. 1, 0, or as stoup_next. */
static int fetch_lane(struct stoup_replay *r)
{
	struct stoup_lane *lane = &r->lane;
	struct stoup_span span;
	int rc;

	if (lane->low == lane->high) {
		rc = stoup_next(r->cur, &span);
		if (rc <= 0)
			return rc;
		rc = stoup_lane_load(lane, &span);
	} else {
		rc = stoup_lane_piece(lane);
	}
	if (rc < 0) {
		stoup_error_set(&r->cur->error, rc, "no memory to time the records of '%.100s'",
			r->cur->name);
		/* The cursor itself did not fail, and has nothing to step over: the next call tries again. */
		r->cur->error.code = 0;
		return rc;
	}
	stoup_lane_cut(lane, stoup_lane_left(lane), &r->run);
	return 1;
}

/* 1 with a run, 0 at the end, or as stoup_next. */
static int fetch(struct stoup_replay *r)
{
	int rc;

	if (r->cur->merge) {
		rc = stoup_next(r->cur, &r->run);
		if (rc > 0)
			r->places = &r->cur->merge->lanes[stoup_cursor_source(r->cur)];
	} else {
		rc = fetch_lane(r);
		r->places = &r->lane;
	}
	if (rc <= 0)
		return rc;
	r->first = r->run.ordinal - r->places->span.ordinal;
	r->pos = 0;
	pthread_mutex_lock(&r->mutex);
	head_set(r);
	arm(r);
	pthread_mutex_unlock(&r->mutex);
	return 1;
}

/* ---- what is due -------------------------------------------------------------------------------- */

static void measure(struct stoup_replay *r, int64_t time_ns, uint64_t now, int64_t start_ns)
{
	uint64_t due = stoup_pace_due(&r->pace, time_ns);

	/* In front of the line: overdue when it was turned, or history. */
	if (due < r->pace.mono_ns)
		due = r->pace.mono_ns;
	if (r->pace.speed != 0 && time_ns >= start_ns)
		stoup_late_add(&r->late, now > due ? now - due : 0, 1);
}

/* With the mutex: count the records that are due now, from pos on, and pass them: the head is the one behind. */
static uint64_t take(struct stoup_replay *r, uint64_t now)
{
	int64_t limit = stoup_pace_limit(&r->pace, now);
	int64_t start_ns = r->opt.start_ns ? r->opt.start_ns : INT64_MIN;
	uint64_t from = r->pos;

	while (r->has_head && r->head_ns <= limit) {
		measure(r, r->head_ns, now, start_ns);
		r->has_head = 0;
		if (++r->pos < r->run.record_cnt)
			head_set(r);
	}
	return r->pos - from;
}

/* The due records of the run as a span: 1, or 0 there are none. */
static int yield_due(struct stoup_replay *r, struct stoup_span *ret)
{
	uint64_t from = r->pos, cnt;

	pthread_mutex_lock(&r->mutex);
	cnt = take(r, now_of(r));
	if (cnt > 0) {
		r->record_cnt += cnt;
		r->span_cnt++;
		arm(r);
	}
	pthread_mutex_unlock(&r->mutex);
	if (cnt == 0)
		return 0;
	*ret = r->run;
	ret->base = (const uint8_t *)r->run.base + from * r->run.stride;
	ret->ordinal += from;
	ret->record_cnt = cnt;
	return 1;
}

int stoup_replay_next(struct stoup_replay *r, uint64_t timeout_ns, struct stoup_span *ret)
{
	uint64_t until_ns = UINT64_MAX, now;
	int rc;

	if (!r)
		return -EINVAL;
	if (r->pos == r->run.record_cnt) {
		rc = fetch(r);
		if (rc <= 0)
			return rc;
	}
	if (timeout_ns != STOUP_REPLAY_WAIT) {
		now = now_of(r);
		until_ns = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
	}
	for (;;) {
		if (yield_due(r, ret))
			return 1;
		if (timeout_ns == 0 || (until_ns != UINT64_MAX && now_of(r) >= until_ns))
			return STOUP_REPLAY_LATER;
		rc = wait_head(r, until_ns);
		if (rc < 0)
			return rc;
	}
}

/* ---- life --------------------------------------------------------------------------------------- */

static int speed_valid(double speed)
{
	return speed >= STOUP_PACE_SPEED_MIN &&
	       (speed <= STOUP_PACE_SPEED_MAX || __builtin_isinf(speed));
}

static int options_read(const struct stoup_cursor *cur, const struct stoup_replay_options *opt,
	struct stoup_replay_options *ret, struct stoup_error *err)
{
	*ret = (struct stoup_replay_options){.struct_len = sizeof(*ret)};
	if (!cur)
		return stoup_error_set(err, -EINVAL, "no cursor to replay was given");
	if (!stoup_client_own(cur->st))
		return stoup_client_refused(cur->st, err);
	if (cur->step < 0)
		return stoup_error_set(err, -EINVAL,
			"a backward cursor cannot be replayed: leave out STOUP_BACKWARD");
	if (opt && opt->struct_len < sizeof(*opt))
		return stoup_error_set(err, -EINVAL,
			"stoup_replay_options.struct_len is %zu: set it to its sizeof",
			opt->struct_len);
	if (opt)
		memcpy(ret, opt, sizeof(*ret));
	if (ret->speed == 0)
		ret->speed = 1;
	if (!speed_valid(ret->speed))
		return stoup_error_set(err, -EINVAL,
			"a speed of %g: 0.001 to 1e9, or INFINITY for as fast as can be",
			ret->speed);
	if (ret->start_ns < 0 || ret->max_gap_ns > (uint64_t)INT64_MAX)
		return stoup_error_set(err, -EINVAL,
			"start_ns %lld, max_gap_ns %llu: from 0 to 2^63 - 1",
			(long long)ret->start_ns, (unsigned long long)ret->max_gap_ns);
	if (ret->flags & ~STOUP_REPLAY_PAUSED)
		return stoup_error_set(err, -EINVAL,
			"options.flags %#x are unknown: set the whole struct, unused members to 0",
			ret->flags);
	return 0;
}

int stoup_replay_open(struct stoup_cursor *cur, const struct stoup_replay_options *opt,
	struct stoup_replay **ret, struct stoup_error *err)
{
	struct stoup_replay_options read;
	struct stoup_replay *r;
	int rc = options_read(cur, opt, &read, err);

	if (rc < 0)
		return rc;
	r = calloc(1, sizeof(*r));
	if (!r)
		return stoup_error_set(err, -ENOMEM, "no memory for a replay");
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->timer_fd < 0) {
		rc = stoup_client_errno(err, "a timer");
		free(r);
		return rc;
	}
	r->cur = cur;
	r->opt = read;
	r->pace.speed = stoup_pace_speed(read.speed);
	r->pace.paused = (read.flags & STOUP_REPLAY_PAUSED) != 0;
	r->lane.step = 1;
	if (!cur->merge) {
		r->lane.cur = cur;
		r->lane.add = stoup_lane_add(cur->schema, 0);
	}
	pthread_mutex_init(&r->mutex, NULL);
	*ret = r;
	return 0;
}

void stoup_replay_clock(struct stoup_replay *r, const struct stoup_replay_clock *clock)
{
	r->clock = *clock;
}

int stoup_replay_fd(const struct stoup_replay *r)
{
	return r ? r->timer_fd : -EINVAL;
}

/* ---- turning ------------------------------------------------------------------------------------ */

/* speed UINT64_MAX, paused -1: as it is. */
static int turn(struct stoup_replay *r, uint64_t speed, int paused)
{
	if (!r)
		return -EINVAL;
	pthread_mutex_lock(&r->mutex);
	if (speed == UINT64_MAX)
		speed = r->pace.speed;
	if (paused < 0)
		paused = r->pace.paused;
	if (r->begun) {
		/* Without a speed the data stands where its last record was. */
		if (r->pace.speed == 0 && r->last_ns - (int64_t)r->skipped_ns > r->pace.data_ns)
			r->pace.data_ns = r->last_ns - (int64_t)r->skipped_ns;
		stoup_pace_turn(&r->pace, now_of(r), speed, paused);
	}
	r->pace.speed = speed;
	r->pace.paused = paused;
	arm(r);
	pthread_mutex_unlock(&r->mutex);
	return 0;
}

int stoup_replay_pause(struct stoup_replay *r)
{
	return turn(r, UINT64_MAX, 1);
}

int stoup_replay_resume(struct stoup_replay *r)
{
	return turn(r, UINT64_MAX, 0);
}

int stoup_replay_speed(struct stoup_replay *r, double speed)
{
	return speed_valid(speed) ? turn(r, stoup_pace_speed(speed), -1) : -EINVAL;
}

/* With the mutex. */
static int64_t data_now(const struct stoup_replay *r)
{
	if (!r->begun)
		return 0;
	if (r->pace.speed == 0)
		return r->last_ns;
	if (r->pace.paused)
		return r->pace.data_ns + (int64_t)r->skipped_ns;
	return stoup_lane_later(stoup_pace_limit(&r->pace, now_of(r)), (int64_t)r->skipped_ns);
}

int stoup_replay_stats(struct stoup_replay *r, struct stoup_replay_state *ret)
{
	struct stoup_replay_state state = {0};
	size_t len = ret ? ret->struct_len : 0;
	uint64_t due;

	if (!r || len < FIRST_STATE_LEN)
		return -EINVAL;
	pthread_mutex_lock(&r->mutex);
	due = r->has_head ? stoup_pace_due(&r->pace, r->head_ns) : UINT64_MAX;
	state.record_cnt = r->record_cnt;
	state.span_cnt = r->span_cnt;
	state.late_cnt = r->late.cnt;
	state.late_max_ns = r->late.max_ns;
	state.late_p50_ns = stoup_late_part(&r->late, 500);
	state.late_p99_ns = stoup_late_part(&r->late, 990);
	state.data_ns = data_now(r);
	state.skipped_ns = r->skipped_ns;
	state.due_ns = due == UINT64_MAX ? 0 : due;
	state.paused = (uint32_t)r->pace.paused;
	pthread_mutex_unlock(&r->mutex);
	state.struct_len = len;
	memset(ret, 0, len);
	memcpy(ret, &state, len < sizeof(state) ? len : sizeof(state));
	return 0;
}

void stoup_replay_close(struct stoup_replay *r)
{
	if (!r)
		return;
	close(r->timer_fd);
	free(r->lane.kept);
	pthread_mutex_destroy(&r->mutex);
	free(r);
}
