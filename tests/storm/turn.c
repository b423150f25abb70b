/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c - the loop: what is due, what has ended, what waits; and the checkpoints. */
#include "storm/storm.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "storm/record.h"

#define LOOK_NS  UINT64_C(100000) /* how often a dead consumer's entry is looked at */
#define AWAIT_NS UINT64_C(500000) /* ... and one that attaches */
#define IDLE_NS  UINT64_C(20000000)
#define FD_CAP   (STORM_VICTIM_CAP + STORM_WORKER_CAP + 2)

/* ---- when is the next turn -------------------------------------------------------------------- */

static void sooner(uint64_t *at_ns, uint64_t due_ns)
{
	if (due_ns && due_ns < *at_ns)
		*at_ns = due_ns;
}

static uint64_t next_ns(const struct storm *s)
{
	uint64_t at_ns = s->now_ns + IDLE_NS;

	sooner(&at_ns, s->daemon.kill_at_ns);
	sooner(&at_ns, storm_fault_due(s));
	for (uint32_t i = 0; i < STORM_VICTIM_CAP; i++) {
		const struct storm_victim *v = &s->victims[i];

		if (v->state == STORM_RUNNING)
			sooner(&at_ns, v->kill_at_ns);
		if (v->state == STORM_DEAD)
			sooner(&at_ns, s->now_ns + LOOK_NS);
		if (v->state == STORM_RUNNING && v->awaited)
			sooner(&at_ns, s->now_ns + AWAIT_NS);
	}
	return at_ns;
}

/* ---- what is due ------------------------------------------------------------------------------ */

static int wanted(const struct storm *s)
{
	return s->opt.soak_s > 0 || s->consumer_kills < s->opt.consumer_kills ||
	       s->daemon_kills < s->opt.daemon_kills;
}

static void due_victims(struct storm *s)
{
	for (uint32_t i = 0; i < s->opt.victim_cnt; i++) {
		struct storm_victim *v = &s->victims[i];

		storm_victim_await(s, v);
		if (v->state == STORM_NONE && !s->quiet && wanted(s) && s->daemon.state == STORM_UP)
			storm_victim_start(s, v);
		else if (v->state == STORM_RUNNING && (s->now_ns >= v->kill_at_ns || s->quiet))
			storm_victim_kill(s, v);
		else if (v->state == STORM_DEAD)
			storm_victim_look(s, v);
	}
}

static void due_daemon(struct storm *s)
{
	struct storm_daemon *d = &s->daemon;

	if (d->state == STORM_DOWN) {
		if (s->now_ns >= s->start_at_ns)
			storm_daemon_start(s);
		return;
	}
	if (s->quiet || d->killed)
		return;
	if (d->state == STORM_UP && d->kill_at_ns == 0 && s->kills_to_daemon == 0 &&
		s->daemon_kills < s->opt.daemon_kills)
		d->kill_at_ns = s->now_ns + storm_below(&s->random, 8000000);
	if (d->kill_at_ns && s->now_ns >= d->kill_at_ns)
		storm_daemon_kill(s);
}

static void due_workers(struct storm *s)
{
	for (uint32_t i = 0; i < s->opt.worker_cnt; i++) {
		struct storm_process *w = &s->workers[i];
		uint64_t at_ns = atomic_load_explicit(
			&s->board->workers[i].progress_ns, memory_order_relaxed);

		if (w->ended || w->pid == 0 || w->stopped || at_ns + STORM_STUCK_NS > s->now_ns)
			continue;
		storm_fail(s, "worker %u (pid %d) does nothing for %" PRIu64 " s", i, (int)w->pid,
			(s->now_ns - at_ns) / 1000000000);
		storm_signal(w->pid_fd, SIGABRT);
		w->stopped = 1; /* said once */
	}
}

/* ---- what has ended --------------------------------------------------------------------------- */

static void worker_ended(struct storm *s, uint32_t idx)
{
	struct storm_process *w = &s->workers[idx];
	int status = 0;

	waitpid(w->pid, &status, 0);
	close(w->pid_fd);
	w->pid_fd = -1;
	w->ended = 1;
	if (status != 0 || atomic_load(&s->board->phase) != STORM_END)
		storm_fail(s, "worker %u ended: status %x", idx, (unsigned)status);
}

void storm_turn(struct storm *s)
{
	struct pollfd fds[FD_CAP];
	struct timespec ts;
	uint64_t at_ns;
	nfds_t cnt = 0;

	for (uint32_t i = 0; i < STORM_VICTIM_CAP; i++) {
		int open =
			s->victims[i].state == STORM_RUNNING || s->victims[i].state == STORM_KILLED;

		fds[cnt++] = (struct pollfd){open ? s->victims[i].pid_fd : -1, POLLIN, 0};
	}
	for (uint32_t i = 0; i < STORM_WORKER_CAP; i++)
		fds[cnt++] = (struct pollfd){
			s->workers[i].pid && !s->workers[i].ended ? s->workers[i].pid_fd : -1,
			POLLIN, 0};
	fds[cnt++] = (struct pollfd){s->daemon.ready_fd, POLLIN, 0};
	fds[cnt++] = (struct pollfd){s->daemon.pid_fd, POLLIN, 0};
	s->now_ns = storm_clock();
	at_ns = next_ns(s);
	at_ns = at_ns > s->now_ns ? at_ns - s->now_ns : 0;
	ts = (struct timespec){.tv_sec = 0, .tv_nsec = (long)at_ns};
	if (ppoll(fds, cnt, &ts, NULL) < 0 && errno != EINTR)
		storm_fail(s, "ppoll: %s", strerror(errno));
	s->now_ns = storm_clock();
	/* First what is measured. */
	if (fds[cnt - 2].revents)
		storm_daemon_ready(s);
	for (uint32_t i = 0; i < STORM_VICTIM_CAP; i++)
		if (fds[i].revents)
			storm_victim_died(s, &s->victims[i]);
	for (uint32_t i = 0; i < STORM_WORKER_CAP; i++)
		if (fds[STORM_VICTIM_CAP + i].revents)
			worker_ended(s, i);
	if (fds[cnt - 1].revents)
		storm_daemon_ended(s);
	due_victims(s);
	due_daemon(s);
	due_workers(s);
	storm_fault_turn(s);
}

int storm_turn_until(
	struct storm *s, int (*done)(const struct storm *s), double seconds, const char *what)
{
	uint64_t until_ns = storm_clock() + (uint64_t)(seconds * 1e9);

	while (!done(s)) {
		if (storm_clock() > until_ns) {
			storm_fail(s, "%s: not within %.0f s", what, seconds);
			return 0;
		}
		storm_turn(s);
	}
	return 1;
}

/* ---- checkpoints ------------------------------------------------------------------------------ */

static int calm(const struct storm *s)
{
	return storm_victim_cnt(s) == 0 && s->daemon.state == STORM_UP && !s->daemon.killed &&
	       s->daemon.control && s->fault == 0 && s->ingest_pid == 0;
}

static int parked(const struct storm *s)
{
	uint32_t cnt = 0, alive = 0;

	for (uint32_t i = 0; i < s->opt.worker_cnt; i++) {
		alive += !s->workers[i].ended;
		cnt += !s->workers[i].ended &&
		       atomic_load_explicit(&s->board->workers[i].parked, memory_order_acquire);
	}
	return cnt == alive;
}

static int all_ended(const struct storm *s)
{
	for (uint32_t i = 0; i < s->opt.worker_cnt; i++)
		if (!s->workers[i].ended)
			return 0;
	return 1;
}

int storm_worker_ended(const struct storm *s)
{
	for (uint32_t i = 0; i < s->opt.worker_cnt; i++)
		if (s->workers[i].ended)
			return 1;
	return 0;
}

static int unparked(const struct storm *s)
{
	for (uint32_t i = 0; i < s->opt.worker_cnt; i++)
		if (!s->workers[i].ended && atomic_load(&s->board->workers[i].parked))
			return 0;
	return 1;
}

static void phase(struct storm *s, uint32_t phase)
{
	atomic_store_explicit(&s->board->phase, phase, memory_order_release);
}

static int quiet_down(struct storm *s)
{
	s->quiet = 1;
	s->daemon.kill_at_ns = 0;
	storm_fault_end(s);
	if (!storm_turn_until(s, calm, 60, "victims ended, daemon running"))
		return 0;
	/* What was ingested meanwhile is served by a daemon that starts after it, for certain. */
	if (s->opt.soak_s > 0) {
		storm_daemon_kill(s);
		storm_turn_until(s, calm, 60, "another daemon running");
	}
	phase(s, STORM_PAUSE);
	return storm_turn_until(s, parked, 90, "all workers hold nothing");
}

void storm_checkpoint(struct storm *s)
{
	if (quiet_down(s)) {
		storm_look_parked(s);
		s->checkpoints++;
		for (uint32_t i = 0; i < s->board->series_cnt; i++)
			atomic_store(&s->board->record_cnt[i], s->grown[i]);
	}
	phase(s, STORM_RUN);
	storm_turn_until(s, unparked, 30, "workers go on");
	s->quiet = 0;
}

void storm_end(struct storm *s)
{
	int status;

	if (quiet_down(s) && !storm_worker_ended(s))
		storm_look_parked(s);
	s->checkpoints++;
	phase(s, STORM_END);
	if (storm_turn_until(s, all_ended, 60, "all workers ended") && s->daemon.control) {
		uint64_t until_ns = storm_clock() + 2000000000u;

		while ((storm_counter(s, "consumers") || storm_counter(s, "leases")) &&
			storm_clock() < until_ns)
			storm_turn(s);
		s->leaked_leases += (uint32_t)storm_counter(s, "leases");
		if (storm_counter(s, "consumers") || storm_counter(s, "leases"))
			storm_fail(s,
				"%" PRIu64 " consumers and %" PRIu64 " leases without a process",
				storm_counter(s, "consumers"), storm_counter(s, "leases"));
	}
	for (uint32_t i = 0; i < s->opt.worker_cnt; i++)
		if (!s->workers[i].ended) {
			storm_signal(s->workers[i].pid_fd, SIGKILL);
			waitpid(s->workers[i].pid, &status, 0);
		}
	status = storm_daemon_stop(s);
	if (status != 0)
		storm_fail(s, "the daemon's end at SIGTERM: status %x", (unsigned)status);
	storm_look_end(s);
}
