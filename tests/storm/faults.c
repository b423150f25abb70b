/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c - what the soak adds to killed consumers: one fault after the other, at random.
 *
 *      lasting:   a worker, a victim or the daemon stopped; /dev/shm full; a flood of connections
 *      at once:   the daemon killed, or ended by SIGTERM
 *                 a crowd of volumes, until the daemon's places for them run short
 *      beside:    series that grow and series that are replaced, now and then with a writer killed
 *
 * A fault that lasts is undone at the time that was fixed when it began, and before each checkpoint.
 */
#include "storm/storm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "storm/record.h"

#define PAUSE_NS   UINT64_C(800000000) /* longest time between two faults */
#define GROW_CNT   UINT64_C(2000)      /* most records that one ingest adds to a series */
#define FULL_NAME  "/dev/shm/full"
#define FULL_LEN   (UINT64_C(1) << 30) /* more than a /dev/shm of one's own has */
#define START_PART 8u /* one of so many kills that meet a starting daemon is done */
#define WRITE_PART 4u /* one of so many writers is killed */

enum fault {
	FAULT_NONE,
	FAULT_DAEMON_KILL,
	FAULT_DAEMON_TERM,
	FAULT_DAEMON_STOP,
	FAULT_WORKER_STOP,
	FAULT_VICTIM_STOP,
	FAULT_SHM_FULL,
	FAULT_FLOOD,
	FAULT_GROW,
	FAULT_REPLACE,
	FAULT_CROWD,
	FAULT_WRITER_KILL, /* not chosen: a writer's fate */
	FAULT_CNT
};

static const char *const names[FAULT_CNT] = {"", "daemon killed", "daemon ended by SIGTERM",
	"daemon stopped", "worker stopped", "victim stopped", "/dev/shm full",
	"flood of connections", "series grown", "series replaced", "crowd of volumes",
	"writer killed"};

/* How often each, and how long it lasts at most. */
static const struct {
	uint32_t weight, last_ms;
} kinds[FAULT_CNT] = {
	[FAULT_DAEMON_KILL] = {6, 0},
	[FAULT_DAEMON_TERM] = {2, 0},
	[FAULT_DAEMON_STOP] = {2, 1500},
	[FAULT_WORKER_STOP] = {4, 1000},
	[FAULT_VICTIM_STOP] = {3, 500},
	[FAULT_SHM_FULL] = {2, 400},
	[FAULT_FLOOD] = {2, 300},
	[FAULT_GROW] = {3, 0},
	[FAULT_REPLACE] = {2, 0},
	[FAULT_CROWD] = {24, 200},
};

static uint32_t weight(const struct storm *s, uint32_t fault)
{
	return fault == FAULT_CROWD && !s->opt.crowd ? 0 : kinds[fault].weight;
}

static enum fault choose(struct storm *s)
{
	uint32_t sum = 0, at;

	for (uint32_t i = 0; i < FAULT_CNT; i++)
		sum += weight(s, i);
	at = (uint32_t)storm_below(&s->random, sum);
	for (uint32_t i = 0; i < FAULT_CNT; i++) {
		if (at < weight(s, i))
			return (enum fault)i;
		at -= weight(s, i);
	}
	return FAULT_NONE;
}

/* ---- writers ---------------------------------------------------------------------------------- */

static char *word(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* First the file, then its ingest; one writer at a time. */
static void writer_begin(struct storm *s, enum fault kind)
{
	char part[2][64] = {"", ""}, edition[16], path[512];
	char *argv[] = {word("storm_data"), path, edition, part[0], part[1], NULL};

	if (s->ingest_pid || s->opt.shift_cnt == 0)
		return;
	s->ingest_kind = kind;
	s->ingest_series = (uint32_t)storm_below(&s->random, s->opt.series_cnt);
	/* Beyond the run of equal keys: two parts of one and the same key are refused as the same file again. */
	s->ingest_to = s->grown[s->ingest_series] + storm_tie(s->ingest_series) +
	               storm_below(&s->random, GROW_CNT);
	if (kind == FAULT_GROW) {
		snprintf(part[0], sizeof(part[0]), "%u:%" PRIu64 ":%" PRIu64, s->ingest_series,
			s->grown[s->ingest_series], s->ingest_to);
		argv[4] = NULL;
	} else {
		s->edition = s->edition % 255 + 1;
		for (uint32_t i = 0; i < 2; i++)
			snprintf(part[i], sizeof(part[i]), "%u:0:%u", STORM_SHIFT_IDX + i,
				s->opt.shift_record_cnt);
	}
	snprintf(edition, sizeof(edition), "%u", kind == FAULT_GROW ? 0 : s->edition);
	snprintf(path, sizeof(path), "%s/../grow.dbn", s->opt.store);
	s->ingest_step = 0;
	s->ingest_pid = storm_spawn(s, "storm_data", argv, -1, s->opt.log);
}

static void writer_ingest(struct storm *s)
{
	char path[512];
	char *argv[] = {word("stoup"), word("ingest"), word("--quiet"), word("--store"),
		word(s->opt.store), word("--block"), word(s->ingest_to % 2 ? "64K" : "128K"),
		word("--codec"), word(s->ingest_to % 3 ? "lz4" : "zstd"), path,
		s->ingest_kind == FAULT_REPLACE ? word("--replace") : NULL, NULL};

	snprintf(path, sizeof(path), "%s/../grow.dbn", s->opt.store);
	s->ingest_step++;
	s->ingest_pid = storm_spawn(s, "stoup", argv, -1, s->opt.log);
	s->ingest_kill_ns = 0;
	if (storm_below(&s->random, WRITE_PART) == 0)
		s->ingest_kill_ns = storm_clock() + storm_below(&s->random, 40000000);
}

static void writer_end(struct storm *s, int status)
{
	/* A writer that was killed may have published: then it is refused now, as what it brings is there. */
	int was_killed = s->ingest_step > 1;

	s->ingest_pid = 0;
	if (WIFSIGNALED(status) && s->ingest_step > 0) {
		s->fault_cnt[FAULT_WRITER_KILL]++;
		writer_ingest(s);
		return;
	}
	if (status != 0 && !(was_killed && WIFEXITED(status) && WEXITSTATUS(status) == 1)) {
		storm_fail(s, "%s: its %s ended with status %x", names[s->ingest_kind],
			s->ingest_step ? "ingest" : "file", (unsigned)status);
		return;
	}
	if (s->ingest_step == 0) {
		writer_ingest(s);
		return;
	}
	if (s->ingest_kind == FAULT_GROW)
		s->grown[s->ingest_series] = s->ingest_to;
	s->fault_cnt[s->ingest_kind]++;
	/* The daemon is told, or finds out by itself. */
	if (s->daemon.state == STORM_UP && storm_below(&s->random, 2))
		storm_signal(s->daemon.pid_fd, SIGHUP);
}

static void writer_turn(struct storm *s)
{
	int status = 0;

	if (!s->ingest_pid)
		return;
	if (waitpid(s->ingest_pid, &status, WNOHANG) == s->ingest_pid) {
		writer_end(s, status);
	} else if (s->ingest_step > 0 && s->ingest_kill_ns && s->now_ns >= s->ingest_kill_ns) {
		s->ingest_kill_ns = 0;
		kill(s->ingest_pid, SIGKILL);
	}
}

/* ---- faults that last ------------------------------------------------------------------------- */

static int shm_fill(struct storm *s)
{
	static char bytes[1 << 16];

	if (!s->opt.own_shm)
		return 0;
	s->full_fd = open(FULL_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (uint64_t len = 0; s->full_fd >= 0 && len < FULL_LEN; len += sizeof(bytes))
		if (write(s->full_fd, bytes, sizeof(bytes)) <= 0)
			break;
	return s->full_fd >= 0;
}

static void shm_empty(struct storm *s)
{
	close(s->full_fd);
	unlink(FULL_NAME);
	s->full_fd = -1;
}

static int stop_worker(struct storm *s)
{
	struct storm_process *w = &s->workers[storm_below(&s->random, s->opt.worker_cnt)];

	if (w->ended)
		return 0;
	w->stopped = 1;
	storm_signal(w->pid_fd, SIGSTOP);
	return 1;
}

/* It may be killed while it is stopped. */
static int stop_victim(struct storm *s)
{
	struct storm_victim *v = &s->victims[storm_below(&s->random, s->opt.victim_cnt)];

	if (v->state != STORM_RUNNING)
		return 0;
	storm_signal(v->pid_fd, SIGSTOP);
	s->stopped_victim = v;
	return 1;
}

static int stop_daemon(struct storm *s)
{
	if (s->daemon.state != STORM_UP || s->daemon.killed)
		return 0;
	s->daemon.stopped = 1;
	storm_signal(s->daemon.pid_fd, SIGSTOP);
	return 1;
}

static int flood(struct storm *s)
{
	char fd[] = "3", slot[] = "0", seed[] = "1";
	char *argv[] = {
		word("storm_worker"), word("--flood"), word(s->opt.pool), fd, slot, seed, NULL};

	s->flood_pid = storm_spawn(s, "storm_worker", argv, s->board_fd, s->opt.log);
	return 1;
}

static int daemon_term(struct storm *s)
{
	if (s->daemon.state != STORM_UP || s->daemon.killed)
		return 0;
	s->daemon.killed = 1;
	storm_signal(s->daemon.pid_fd, SIGTERM);
	return 1;
}

static int fault_begin(struct storm *s, enum fault fault)
{
	switch (fault) {
	case FAULT_DAEMON_KILL:
		/* On a slow machine none would ever get ready. */
		if (s->daemon.state != STORM_UP && storm_below(&s->random, START_PART))
			return 0;
		storm_daemon_kill(s);
		return 1;
	case FAULT_DAEMON_TERM:
		return daemon_term(s);
	case FAULT_DAEMON_STOP:
		return stop_daemon(s);
	case FAULT_WORKER_STOP:
		return stop_worker(s);
	case FAULT_VICTIM_STOP:
		return stop_victim(s);
	case FAULT_SHM_FULL:
		/* Half of them meet a daemon that has to start. */
		if (shm_fill(s) && storm_below(&s->random, 2))
			storm_daemon_kill(s);
		return s->full_fd >= 0;
	case FAULT_FLOOD:
		return flood(s);
	case FAULT_GROW:
	case FAULT_REPLACE:
		writer_begin(s, fault);
		return 0;
	case FAULT_CROWD:
		return storm_crowd_begin(s);
	case FAULT_NONE:
	case FAULT_WRITER_KILL:
	case FAULT_CNT:
		break;
	}
	return 0;
}

void storm_fault_end(struct storm *s)
{
	int status;

	switch ((enum fault)s->fault) {
	case FAULT_DAEMON_STOP:
		s->daemon.stopped = 0;
		storm_signal(s->daemon.pid_fd, SIGCONT);
		break;
	case FAULT_WORKER_STOP:
		for (uint32_t i = 0; i < s->opt.worker_cnt; i++)
			if (s->workers[i].stopped) {
				s->workers[i].stopped = 0;
				atomic_store(&s->board->workers[i].progress_ns, storm_clock());
				storm_signal(s->workers[i].pid_fd, SIGCONT);
			}
		break;
	case FAULT_VICTIM_STOP:
		if (s->stopped_victim->state == STORM_RUNNING)
			storm_signal(s->stopped_victim->pid_fd, SIGCONT);
		break;
	case FAULT_SHM_FULL:
		shm_empty(s);
		break;
	case FAULT_FLOOD:
		kill(s->flood_pid, SIGKILL);
		waitpid(s->flood_pid, &status, 0);
		break;
	case FAULT_CROWD:
		storm_crowd_end(s);
		break;
	case FAULT_NONE:
	case FAULT_DAEMON_KILL:
	case FAULT_DAEMON_TERM:
	case FAULT_GROW:
	case FAULT_REPLACE:
	case FAULT_WRITER_KILL:
	case FAULT_CNT:
		break;
	}
	s->fault = FAULT_NONE;
}

/* ---- when ------------------------------------------------------------------------------------- */

void storm_fault_turn(struct storm *s)
{
	enum fault fault;

	if (s->opt.soak_s <= 0)
		return;
	writer_turn(s);
	if (s->fault) {
		if (s->now_ns >= s->fault_end_ns)
			storm_fault_end(s);
		return;
	}
	if (s->quiet || s->now_ns < s->fault_at_ns)
		return;
	s->fault_at_ns = s->now_ns + storm_below(&s->random, PAUSE_NS);
	fault = choose(s);
	if (!fault_begin(s, fault))
		return;
	s->fault_cnt[fault]++;
	if (kinds[fault].last_ms == 0)
		return;
	s->fault = fault;
	s->fault_end_ns =
		s->now_ns + storm_below(&s->random, kinds[fault].last_ms * UINT64_C(1000000));
}

uint64_t storm_fault_due(const struct storm *s)
{
	if (s->opt.soak_s <= 0)
		return 0;
	return s->fault ? s->fault_end_ns : s->quiet ? 0 : s->fault_at_ns;
}

void storm_fault_report(const struct storm *s)
{
	for (uint32_t i = 1; i < FAULT_CNT; i++)
		printf("  %-44s %14" PRIu64 "\n", names[i], s->fault_cnt[i]);
}
