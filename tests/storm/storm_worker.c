/* SPDX-License-Identifier: Apache-2.0 */
/* storm_worker.c - the consumers of the storm: workers that live through it, and victims.
 *
 * usage: storm_worker POOL BOARD_FD SLOT SEED [option...]
 *   --victim     attach, scan and hold in one or several threads until the process is killed; now and
 *                then with a child that has inherited everything
 *   --flood      connect and say nothing, or nonsense, as often as it can, until it is killed
 *   --by-hand    attach anew by itself after -EPIPE, without the library's going on
 *
 *      worker:  attach --> scan of a series, of a range, of two at a time --> next one ...
 *               PAUSE: give all back, park; END: detach, exit 0
 *
 * A worker ends with status 1 when the pool can not be attached any more; what it finds is on the board.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "shm/wire.h"
#include "storm/record.h"
#include "storm/scan.h"

#define ATTACH_NS     UINT64_C(60000000000) /* longest time without a daemon */
#define NAP_NS        200000
#define FLOOD_CNT     100
#define THREAD_CAP    3u
#define FORK_PART     1500u               /* one of so many steps of a soak is a fork */
#define FORKS_PART    40u                 /* ... of a storm of forks */
#define CHILD_CAP     6u                  /* of one worker at a time */
#define FORMER_NAP_NS UINT64_C(150000000) /* what the parent gives back is used again by then */
#define CHILD_STEPS   30u
#define BURST_CNT     6u /* jobs beside those of a second thread */
#define AGAIN_PART    4u /* one of so many bursts is followed by an attach anew */
#define REFRESH_PART  8u
#define VICTIM_NAP    400u /* microseconds, at most, between two steps of a victim */

static void nap(uint64_t ns)
{
	struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)ns};

	nanosleep(&ts, NULL);
}

static uint32_t phase(const struct storm_run *run)
{
	return atomic_load_explicit(&run->board->phase, memory_order_acquire);
}

/* ---- attaching -------------------------------------------------------------------------------- */

static int attach_once(struct storm_run *run, struct stoup_error *err)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.flags = run->by_hand ? STOUP_NO_RECONNECT : 0;
	opt.timeout_ns = run->self ? UINT64_C(1000000) << storm_below(&run->random, 12)
	                           : UINT64_C(50000) << storm_below(&run->random, 10);
	opt.ahead_cnt = storm_below(&run->random, 4) == 0 ? UINT32_MAX : 0;
	if (run->board->forks)
		opt.reconnect_ns = UINT64_C(2000000000) << storm_below(&run->random, 3);
	/* A call waits for another daemon once, and for its own blocks, and those that show its place. */
	run->longest_ns =
		4 * opt.timeout_ns + (opt.reconnect_ns ? opt.reconnect_ns : UINT64_C(30000000000));
	return stoup_attach(run->pool, &opt, &run->st, err);
}

/* Attach to the pool, or to the one that comes in its place. */
static int attach(struct storm_run *run)
{
	uint64_t until_ns = storm_now() + ATTACH_NS;
	struct stoup_error err = {0};
	int rc;

	for (;;) {
		uint64_t asked_ns = storm_now();

		run->st = NULL;
		rc = attach_once(run, &err);
		storm_call_took(run, "stoup_attach", asked_ns);
		if (rc == 0)
			break;
		if (storm_now() > until_ns)
			break;
		nap(NAP_NS);
	}
	if (rc < 0)
		storm_violation(run, &run->tally->failed, 1, "attach: %d: %s", rc, err.text);
	return rc;
}

static void detach(struct storm_run *run)
{
	int rc = stoup_detach(run->st);

	if (rc < 0)
		storm_violation(run, &run->tally->failed, 1, "detach: %d", rc);
	run->st = NULL;
}

/* The daemon has ended: go on at the same places of the next one. Who attaches by hand can not know that
 * a series is not the same any more, and begins it anew. */
static int go_on(struct storm_run *run, struct storm_scan *scans, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		storm_scan_suspend(&scans[i]);
		if (scans[i].series >= STORM_SHIFT_IDX) {
			scans[i].edition = UINT32_MAX;
			scans[i].next = 0;
		}
	}
	if (!run->self)
		return -EPIPE;
	detach(run);
	storm_add(&run->tally->reattaches, 1);
	return attach(run);
}

/* ---- children --------------------------------------------------------------------------------- */

static int job(struct storm_run *run, struct storm_scan *scans, uint32_t cnt);

/* The scans of the parent are ours now, at the same places, with what they hold. */
static void child(struct storm_run *run, struct storm_scan *scans, uint32_t cnt,
	struct stoup_fork *fork_state)
{
	struct stoup_error err = {0};
	uint64_t asked_ns = storm_now();
	int rc = stoup_fork_child(fork_state, &err);

	storm_call_took(run, "stoup_fork_child", asked_ns);
	run->self = NULL;
	run->steps_left = CHILD_STEPS;
	if (rc == 0) {
		/* Time for the parent to give back what both hold. */
		nap(run->formerly ? FORMER_NAP_NS : 1000 * storm_below(&run->random, 20000));
		rc = job(run, scans, cnt);
		/* Cursors of the parent's other thread are open for ever. */
		if (rc != -EPIPE && !run->board->forks)
			detach(run);
		storm_add(&run->tally->children, 1);
	} else if (rc != -EPIPE && rc != -ETIMEDOUT && rc != -ETIME && rc != -ESTALE &&
		   rc != -ECONNREFUSED && rc != -ENOENT) {
		storm_violation(
			run, &run->tally->failed, 1, "stoup_fork_child: %d: %s", rc, err.text);
	}
	_exit(0);
}

/* Fork in the middle of a job; half of the children are killed, some before they come for their leases. */
static void fork_off(struct storm_run *run, struct storm_scan *scans, uint32_t cnt)
{
	struct stoup_error err = {0};
	struct stoup_fork fork_state;
	uint64_t asked_ns = storm_now();
	int rc = stoup_fork_prepare(run->st, &fork_state, &err);
	pid_t pid;

	storm_call_took(run, "stoup_fork_prepare", asked_ns);
	if (rc < 0) {
		storm_add(&run->tally->waits, 1);
		if (rc != -EPIPE && rc != -EUSERS && rc != -ETIMEDOUT && rc != -ETIME)
			storm_violation(run, &run->tally->failed, 1, "stoup_fork_prepare: %d: %s",
				rc, err.text);
		return;
	}
	pid = fork();
	if (pid == 0)
		child(run, scans, cnt, &fork_state);
	rc = stoup_fork_parent(&fork_state, pid > 0);
	if (rc < 0)
		storm_violation(run, &run->tally->failed, 1, "stoup_fork_parent: %d", rc);
	run->child_cnt += pid > 0;
	if (pid > 0 && !run->formerly && storm_below(&run->random, 2)) {
		nap(1000 * storm_below(&run->random, 3000));
		kill(pid, SIGKILL);
	}
}

static void children_end(struct storm_run *run, int flags)
{
	int status;

	while (waitpid(-1, &status, flags) > 0)
		run->child_cnt -= run->child_cnt > 0;
}

/* Is it time for a child? */
static int fork_due(struct storm_run *run)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};

	if (!run->self || run->board->shift_cnt == 0)
		return 0;
	if (!run->board->forks)
		return storm_below(&run->random, FORK_PART) == 0;
	children_end(run, WNOHANG);
	run->formerly = 0;
	/* While something is held of the session before, which is to be inherited as well. */
	stoup_stats(run->st, &stats);
	if (stats.reconnect_cnt != run->fork_reconnect_cnt && run->child_cnt < 2 * CHILD_CAP) {
		run->fork_reconnect_cnt = stats.reconnect_cnt;
		run->formerly = 1;
		return 1;
	}
	return run->child_cnt < CHILD_CAP && storm_below(&run->random, FORKS_PART) == 0;
}

/* ---- jobs ------------------------------------------------------------------------------------- */

static void choose(struct storm_run *run, struct storm_scan *scan)
{
	uint64_t *random = &run->random, cnt;

	*scan = (struct storm_scan){.run = run};
	scan->series = (uint32_t)storm_below(random, run->board->series_cnt);
	/* What was ingested meanwhile is read as soon as it is seen. */
	cnt = storm_get(&run->board->record_cnt[scan->series]);
	scan->end = cnt;
	scan->whole = storm_below(random, 2) == 0;
	if (!scan->whole) {
		uint64_t a = storm_below(random, cnt), b = storm_below(random, cnt);

		scan->next = a < b ? a : b;
		scan->end = a < b ? b : a;
		/* A range without a key in it is none. */
		if (storm_key(scan->series, scan->end) == storm_key(scan->series, scan->next) ||
			scan->next == 0)
			*scan = (struct storm_scan){
				.run = run, .series = scan->series, .end = cnt, .whole = 1};
	}
	scan->hold_cnt = (uint32_t)storm_below(random, STORM_HOLD_CAP);
	scan->hold_permille = storm_below(random, 3) ? 300 : 900;
	if (run->board->forks && storm_below(random, 2))
		scan->hold_permille = 100;
}

/* The series that are replaced under the readers: whichever edition it is, it is one. */
static void choose_shifting(struct storm_run *run, struct storm_scan *scan)
{
	uint32_t at = (uint32_t)storm_below(&run->random, run->board->shift_cnt);

	*scan = (struct storm_scan){.run = run,
		.series = STORM_SHIFT_IDX + at,
		.edition = UINT32_MAX,
		.whole = 1,
		.hold_cnt = 1,
		.hold_permille = 500};
}

/* Open what is not open. */
static int open_all(struct storm_scan *scans, uint32_t cnt)
{
	int rc = 0;

	for (uint32_t i = 0; i < cnt && rc == 0; i++)
		if (!scans[i].cur)
			rc = storm_scan_open(&scans[i]);
	return rc;
}

/* Step the scans in turn, each to its end. 0; -EPIPE of a victim: its daemon is gone; -ECANCELED. */
static int job(struct storm_run *run, struct storm_scan *scans, uint32_t cnt)
{
	uint32_t left = cnt;
	int rc = 0;

	while (left > 0 && rc == 0) {
		uint32_t at = (uint32_t)storm_below(&run->random, left);

		rc = open_all(scans, left);
		if (rc == 0)
			rc = storm_scan_step(&scans[at]);
		if (rc == -EPIPE) {
			rc = go_on(run, scans, left);
		} else if (rc == 0) {
			storm_scan_suspend(&scans[at]);
			scans[at] = scans[--left];
		} else if (rc > 0 || rc == -EAGAIN) {
			rc = 0;
		}
		if (phase(run) != STORM_RUN)
			rc = -ECANCELED;
		if (run->steps_left && --run->steps_left == 0)
			rc = -ECANCELED;
		if (rc == 0 && left > 0 && fork_due(run))
			fork_off(run, scans, left);
		if (!run->self && storm_below(&run->random, 2))
			nap(1000 * storm_below(&run->random, VICTIM_NAP));
	}
	for (uint32_t i = 0; i < left; i++)
		storm_scan_suspend(&scans[i]);
	return rc;
}

static int random_job(struct storm_run *run)
{
	struct storm_scan scans[2];
	uint32_t cnt = storm_below(&run->random, 4) == 0 ? 2 : 1;

	for (uint32_t i = 0; i < cnt; i++)
		choose(run, &scans[i]);
	if (run->board->shift_cnt > 0 && storm_below(&run->random, 8) == 0)
		choose_shifting(run, &scans[0]);
	return job(run, scans, cnt);
}

/* Take what was ingested since. */
static void refresh(struct storm_run *run)
{
	struct stoup_error err = {0};
	uint64_t asked_ns = storm_now();
	int rc = stoup_refresh(run->st, &err);

	storm_call_took(run, "stoup_refresh", asked_ns);
	if (rc > 0)
		storm_add(&run->tally->refreshes, 1);
	if (rc == -EPIPE && run->by_hand)
		go_on(run, NULL, 0);
	else if (rc == -ETIMEDOUT || rc == -ETIME || rc == -EPIPE)
		storm_add(rc == -EPIPE ? &run->tally->orphaned : &run->tally->waits, 1);
	else if (rc < 0)
		storm_violation(run, &run->tally->failed, 1, "stoup_refresh: %d: %s", rc, err.text);
}

/* ---- workers ---------------------------------------------------------------------------------- */

/* Reach the daemon of this moment, hold nothing, and wait for what is next. */
static void park(struct storm_run *run)
{
	struct storm_scan scan = {.run = run, .whole = 1};
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	int rc;

	children_end(run, 0);
	/* An attachment whose daemon ended unnoticed still has the memory of that one. */
	do {
		rc = open_all(&scan, 1);
		if (rc == 0)
			rc = storm_scan_step(&scan);
		if (rc == -EPIPE && go_on(run, &scan, 1) < 0)
			exit(1);
	} while (rc == -EPIPE || rc == -EAGAIN);
	storm_scan_suspend(&scan);
	if (stoup_stats(run->st, &stats) < 0 || stats.lease_cnt || stats.leased_bytes)
		storm_violation(run, &run->tally->failed, 1,
			"%" PRIu64 " leases on %" PRIu64 " bytes after all was given back",
			stats.lease_cnt, stats.leased_bytes);
	atomic_store_explicit(&run->self->parked, 1, memory_order_release);
	while (phase(run) == STORM_PAUSE) {
		storm_progress(run, storm_now());
		nap(1000000);
	}
	atomic_store_explicit(&run->self->parked, 0, memory_order_release);
}

/* Beside the jobs of the first thread, and under its forks. */
static void *second_thread(void *arg)
{
	struct storm_run *run = arg;

	while (phase(run) == STORM_RUN && !atomic_load(run->end))
		random_job(run);
	return NULL;
}

/* Some jobs in two threads; then now and then another attachment. */
static int burst(struct storm_run *run)
{
	struct storm_run other = *run;
	_Atomic uint32_t end = 0;
	pthread_t thread;

	/* Of a second thread the library's going on is not expected: -EPIPE ends its job. */
	other.self = NULL;
	other.random = storm_random(&run->random);
	other.end = &end;
	if (run->by_hand || pthread_create(&thread, NULL, second_thread, &other) != 0)
		return random_job(run);
	for (uint32_t i = 0; i < BURST_CNT && phase(run) == STORM_RUN; i++)
		random_job(run);
	atomic_store(&end, 1);
	pthread_join(thread, NULL);
	if (storm_below(&run->random, AGAIN_PART) != 0)
		return 0;
	detach(run);
	storm_add(&run->tally->reattaches, 1);
	return attach(run);
}

static int worker(struct storm_run *run)
{
	if (attach(run) < 0)
		return 1;
	while (phase(run) != STORM_END) {
		if (phase(run) == STORM_PAUSE)
			park(run);
		else if (run->board->forks)
			burst(run);
		else
			random_job(run);
		if (run->st && storm_below(&run->random, REFRESH_PART) == 0)
			refresh(run);
		if (!run->st)
			return 1;
		children_end(run, WNOHANG);
	}
	children_end(run, 0);
	detach(run);
	return 0;
}

/* ---- victims ---------------------------------------------------------------------------------- */

/* A child has the descriptors and the data, and must keep nothing alive. It ends by itself. */
static void leave_child(struct storm_run *run)
{
	pid_t pid = fork();

	if (pid != 0)
		return;
	if (stoup_health(run->st, NULL) != -ECHILD)
		storm_violation(
			run, &run->tally->failed, 1, "a child uses its parent's attachment");
	nap(1000000 * storm_below(&run->random, 60));
	_exit(0);
}

static void *victim_thread(void *arg)
{
	struct storm_run *run = arg;

	while (random_job(run) != -EPIPE)
		;
	return NULL;
}

/* Attach, work, detach, and so on, until the end comes from outside. */
static int victim(struct storm_run *run)
{
	struct storm_run runs[THREAD_CAP];
	pthread_t threads[THREAD_CAP];
	uint32_t cnt = (uint32_t)storm_below(&run->random, THREAD_CAP) + 1;

	if (attach(run) < 0)
		return 1;
	if (storm_below(&run->random, 8) == 0) {
		detach(run);
		if (attach(run) < 0)
			return 1;
	}
	if (storm_below(&run->random, 24) == 0)
		leave_child(run);
	for (uint32_t i = 0; i < cnt; i++) {
		runs[i] = *run;
		runs[i].random = storm_random(&run->random);
		if (pthread_create(&threads[i], NULL, victim_thread, &runs[i]) != 0)
			return 1;
	}
	for (;;)
		pause();
}

/* ---- a flood ---------------------------------------------------------------------------------- */

/* Hold as many connections as there are descriptors, say something that is no hello in every other, and
 * begin anew. */
static int flood(const struct storm_run *run)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const char *dir = getenv("XDG_RUNTIME_DIR");
	int fds[FLOOD_CNT];

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/stoup/%s.sock", dir ? dir : "",
		run->pool);
	for (;;) {
		for (int i = 0; i < FLOOD_CNT; i++) {
			fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
			if (connect(fds[i], (const struct sockaddr *)&addr, sizeof(addr)) == 0 &&
				i % 2)
				send(fds[i], &addr, 40, MSG_NOSIGNAL | MSG_DONTWAIT);
		}
		nap(1000000);
		for (int i = 0; i < FLOOD_CNT; i++)
			close(fds[i]);
	}
	return 0;
}

/* ---- the program ------------------------------------------------------------------------------ */

static const struct option options[] = {
	{"victim", no_argument, NULL, 'v'},
	{"flood", no_argument, NULL, 'f'},
	{"by-hand", no_argument, NULL, 'b'},
	{NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
	struct storm_run run = {0};
	int which, is_victim = 0, is_flood = 0;

	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == '?')
			return 2;
		is_victim |= which == 'v';
		is_flood |= which == 'f';
		run.by_hand |= which == 'b';
	}
	if (argc - optind != 4)
		return 2;
	run.pool = argv[optind];
	run.slot = (uint32_t)strtoul(argv[optind + 2], NULL, 10);
	run.seed = run.random = strtoull(argv[optind + 3], NULL, 10);
	run.board = mmap(NULL, sizeof(*run.board), PROT_READ | PROT_WRITE, MAP_SHARED,
		(int)strtol(argv[optind + 1], NULL, 10), 0);
	if (run.board == MAP_FAILED || run.slot >= STORM_WORKER_CAP)
		return 2;
	/* Nobody is left to end us. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (is_flood)
		return flood(&run);
	if (is_victim) {
		run.tally = &run.board->victims;
		return victim(&run);
	}
	run.self = &run.board->workers[run.slot];
	run.tally = &run.self->tally;
	return worker(&run);
}
