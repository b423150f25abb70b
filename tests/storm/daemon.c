/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - the storm's daemon: started, killed at any moment of its life, started anew at once. */
#include "storm/storm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "storm/record.h"

#define START_PART    8u /* one of so many kills meets a daemon that is still starting */
#define START_KILL_NS UINT64_C(25000000)
#define DELAY_NS                                                                                   \
	UINT64_C(8000000) /* between the consumer's kill that is its turn and the daemon's */
#define LAST_PART 10u /* a tenth of the consumers die under one daemon, at the end: leaks add up */

static void control_close(struct storm_daemon *d)
{
	if (d->control)
		stoup_control_close(d->control, d->control_len);
	d->control = NULL;
}

void storm_daemon_plan(struct storm *s)
{
	uint32_t left = s->opt.daemon_kills - s->daemon_kills;
	uint32_t last = s->opt.consumer_kills / LAST_PART, ahead;

	if (s->opt.daemon_kills <= s->daemon_kills || s->opt.soak_s > 0) {
		s->kills_to_daemon = UINT32_MAX;
		return;
	}
	ahead = s->opt.consumer_kills - last > s->consumer_kills
	                ? s->opt.consumer_kills - last - s->consumer_kills
	                : 0;
	s->kills_to_daemon = (uint32_t)storm_below(&s->random, 2 * (uint64_t)ahead / left + 1);
}

void storm_daemon_start(struct storm *s)
{
	struct storm_daemon *d = &s->daemon;
	char ready[] = "3";
	char rows[STORM_ROW_CNT][512];
	char *argv[12 + STORM_ROW_CNT] = {(char[]){"stoupd"}, (char[]){"--store"},
		(char *)(uintptr_t)s->opt.store, (char[]){"--pool"}, (char *)(uintptr_t)s->opt.pool,
		(char[]){"--size"}, (char *)(uintptr_t)s->opt.size, (char[]){"--ready-fd"}, ready,
		(char[]){"--quiet"}};
	int fds[2];

	for (uint32_t i = 0; s->opt.crowd && i < STORM_ROW_CNT; i++) {
		snprintf(rows[i], sizeof(rows[i]), "--store=%s/../row%u", s->opt.store, i);
		argv[10 + i] = rows[i];
	}

	if (s->gen + 1 == STORM_GEN_CAP || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		storm_fail(s, "the daemon can not be started: %s", strerror(errno));
		return;
	}
	s->gen++;
	s->cut_seen = 0;
	s->gens[s->gen] = (struct storm_gen){.spawn_ns = storm_clock()};
	*d = (struct storm_daemon){.state = STORM_STARTING, .ready_fd = fds[0], .pid_fd = -1};
	d->pid = storm_spawn(s, "stoupd", argv, fds[1], s->opt.log);
	close(fds[1]);
	d->pid_fd = storm_pidfd(d->pid);
	if (s->opt.daemon_nice)
		setpriority(PRIO_PROCESS, (id_t)d->pid, s->opt.daemon_nice);
	if (s->quiet || s->opt.soak_s > 0 || s->daemon_kills >= s->opt.daemon_kills)
		return;
	if (s->kills_to_daemon != UINT32_MAX && storm_below(&s->random, START_PART) == 0)
		d->kill_at_ns = s->gens[s->gen].spawn_ns + storm_below(&s->random, START_KILL_NS);
}

void storm_daemon_ready(struct storm *s)
{
	struct storm_daemon *d = &s->daemon;
	ssize_t len =
		read(d->ready_fd, d->ready + d->ready_len, sizeof(d->ready) - 1 - d->ready_len);
	struct stoup_error err = {0};

	if (len < 0 && errno == EAGAIN)
		return;
	if (len > 0)
		d->ready_len += (size_t)len;
	if (d->state != STORM_UP && strcmp(d->ready, "ready\n") == 0) {
		s->gens[s->gen].up_ns = storm_clock();
		d->state = STORM_UP;
		if (stoup_control_open(s->opt.pool, &d->control, &d->control_len, &err) < 0 &&
			!d->killed)
			storm_fail(s, "the control object of a ready daemon: %s", err.text);
	}
	if (len > 0)
		return;
	close(d->ready_fd);
	d->ready_fd = -1;
}

void storm_daemon_kill(struct storm *s)
{
	struct storm_daemon *d = &s->daemon;

	if (d->state == STORM_DOWN || d->killed)
		return;
	d->killed = 1;
	d->kill_at_ns = 0;
	storm_signal(d->pid_fd, SIGKILL);
	s->gens[s->gen].down_ns = storm_clock();
	s->daemon_kills++;
	s->start_kills += d->state == STORM_STARTING;
	storm_daemon_plan(s);
}

void storm_daemon_ended(struct storm *s)
{
	struct storm_daemon *d = &s->daemon;
	int status = 0;

	waitpid(d->pid, &status, 0);
	if (d->ready_fd >= 0)
		storm_daemon_ready(s);
	if (!d->killed && (s->opt.soak_s <= 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1))
		storm_fail(
			s, "the daemon ended by itself: status %x: %s", (unsigned)status, d->ready);
	if (d->ready_fd >= 0)
		close(d->ready_fd);
	close(d->pid_fd);
	control_close(d);
	d->state = STORM_DOWN;
	d->pid_fd = d->ready_fd = -1;
}

int storm_daemon_stop(struct storm *s)
{
	struct storm_daemon *d = &s->daemon;
	int status = -1;

	if (d->state == STORM_DOWN)
		return -1;
	storm_signal(d->pid_fd, SIGTERM);
	waitpid(d->pid, &status, 0);
	if (d->ready_fd >= 0)
		close(d->ready_fd);
	close(d->pid_fd);
	control_close(d);
	d->state = STORM_DOWN;
	d->pid_fd = d->ready_fd = -1;
	return status;
}
