/* SPDX-License-Identifier: Apache-2.0 */
/* victims.c - consumers that are killed at any instant, and how long their leases outlive them.
 *
 *      killed_ns      dead_ns                       the conductor has dropped its page
 *         |--- exit ----|---- the daemon hears of it ----|
 *         kill sent     pidfd readable                   entry of the control object is NONE
 *
 * The time until the leases are free is taken from both: the moment of death lies between them, and the
 * controller may be late in seeing the second.
 */
#include "storm/storm.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "storm/record.h"

#define LEAK_NS UINT64_C(30000000000) /* leases that a dead consumer has for so long are leaked */

#define EARLY_PART 5u                 /* one of so many is killed at any time from its birth on */
#define EARLY_NS   UINT64_C(20000000) /* ... within so long: in the exec, in the attach */
#define BORN_NS    UINT64_C(2000000000)

/* What is left of a life when the daemon has listed it. */
static uint64_t life_ns(struct storm *s)
{
	static const uint64_t cap_ms[] = {1, 2, 5, 10, 20, 60};

	return storm_below(&s->random, 1000000 * cap_ms[storm_below(&s->random, 6)]);
}

static pid_t spawn(struct storm *s, int is_victim, int by_hand, uint32_t slot)
{
	char fd[] = "3", slot_text[16], seed[24], by_hand_text[] = "--by-hand",
	     victim[] = "--victim";
	char program[] = "storm_worker", *argv[8] = {program};
	int cnt = 1;

	if (is_victim)
		argv[cnt++] = victim;
	if (by_hand)
		argv[cnt++] = by_hand_text;
	argv[cnt++] = (char *)(uintptr_t)s->opt.pool;
	argv[cnt++] = fd;
	argv[cnt++] = slot_text;
	argv[cnt++] = seed;
	snprintf(slot_text, sizeof(slot_text), "%u", slot);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)storm_random(&s->random));
	return storm_spawn(s, program, argv, s->board_fd, NULL);
}

void storm_victim_start(struct storm *s, struct storm_victim *v)
{
	uint32_t slot = (uint32_t)(v - s->victims);

	v->pid = spawn(s, 1, (int)storm_below(&s->random, 2), slot);
	v->pid_fd = storm_pidfd(v->pid);
	v->state = STORM_RUNNING;
	v->awaited = storm_below(&s->random, EARLY_PART) != 0;
	v->kill_at_ns = storm_clock() + (v->awaited ? BORN_NS : storm_below(&s->random, EARLY_NS));
	s->victim_seq++;
}

void storm_worker_start(struct storm *s, uint32_t idx)
{
	struct storm_process *w = &s->workers[idx];

	w->pid = spawn(s, 0, idx < s->opt.by_hand_cnt, idx);
	w->pid_fd = storm_pidfd(w->pid);
	atomic_store(&s->board->workers[idx].progress_ns, storm_clock());
}

/* Does the daemon list this process among its consumers? */
static int listed(const struct storm *s, pid_t pid)
{
	const struct stoup_control *control = s->daemon.control;
	const struct stoup_control_consumer *entry;

	if (s->daemon.state != STORM_UP || !control)
		return 0;
	entry = stoup_control_consumers(control);
	for (uint32_t i = 0; i < control->consumer_cap; i++)
		if (atomic_load_explicit(&entry[i].state, memory_order_acquire) !=
				STOUP_CONSUMER_NONE &&
			atomic_load_explicit(&entry[i].pid, memory_order_relaxed) == (uint32_t)pid)
			return 1;
	return 0;
}

void storm_victim_await(struct storm *s, struct storm_victim *v)
{
	if (v->state != STORM_RUNNING || !v->awaited || !listed(s, v->pid))
		return;
	v->awaited = 0;
	v->kill_at_ns = storm_clock() + life_ns(s);
}

void storm_victim_kill(struct storm *s, struct storm_victim *v)
{
	v->attached = listed(s, v->pid);
	v->gen = s->gen;
	v->killed_ns = storm_clock();
	storm_signal(v->pid_fd, SIGKILL);
	v->state = STORM_KILLED;
}

static void reap(struct storm *s, struct storm_victim *v)
{
	int status = 0;

	waitpid(v->pid, &status, 0);
	close(v->pid_fd);
	v->state = STORM_NONE;
	/* With the daemon dead, or its places taken, a victim may give up before it is killed. */
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		storm_fail(
			s, "victim %d ended by itself: status %x", (int)v->pid, (unsigned)status);
}

void storm_victim_died(struct storm *s, struct storm_victim *v)
{
	v->dead_ns = storm_clock();
	if (v->state != STORM_KILLED) {
		reap(s, v);
		return;
	}
	v->state = STORM_DEAD;
	if (v->attached) {
		s->consumer_kills++;
		if (s->kills_to_daemon != UINT32_MAX && s->kills_to_daemon > 0)
			s->kills_to_daemon--;
	} else {
		s->early_kills++;
	}
	storm_victim_look(s, v);
}

void storm_victim_look(struct storm *s, struct storm_victim *v)
{
	uint64_t now_ns;

	/* Its pid stays its own as long as it is not waited for. */
	if (v->gen == s->gen && listed(s, v->pid)) {
		if (storm_clock() - v->dead_ns < LEAK_NS || s->daemon.stopped)
			return;
		s->leaked_leases++;
		storm_fail(
			s, "victim %d is dead for 30 s, and its leases are not free", (int)v->pid);
	}
	now_ns = storm_clock();
	if (v->attached && v->gen == s->gen && s->daemon.state == STORM_UP && !s->daemon.killed &&
		s->fault == 0) {
		storm_sample(&s->free_dead, now_ns - v->dead_ns);
		storm_sample(&s->free_killed, now_ns - v->killed_ns);
	}
	reap(s, v);
}

uint32_t storm_victim_cnt(const struct storm *s)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < STORM_VICTIM_CAP; i++)
		cnt += s->victims[i].state != STORM_NONE;
	return cnt;
}
