/* SPDX-License-Identifier: Apache-2.0 */
/* storm.h - the controller of the storm: its state, and what its parts call of each other.
 *
 *      daemon.c   start, announcement, kill, start anew     look.c     processes, pool, names: what is left
 *      victims.c  spawn, kill, time until leases are free   report.c   the table at the end
 *      turn.c     one turn of the loop, checkpoints         faults.c   what the soak adds
 *      crowd.c    volumes that come and go until places run short
 *
 *      daemon:  DOWN --spawn--> STARTING --"ready"--> UP --SIGKILL--> DOWN ...
 *      victim:  NONE --spawn--> RUNNING --SIGKILL--> KILLED --pidfd--> DEAD --its entry is free--> NONE
 *
 * Invariant: one thread; every process is a descendant and known by a pidfd, so that the end finds none
 * left. All that is random comes from one seed, which is printed.
 */
#ifndef STOUP_TESTS_STORM_H
#define STOUP_TESTS_STORM_H

#include <stdint.h>
#include <sys/types.h>
#include "shm/control.h"
#include "storm/board.h"

#define STORM_VICTIM_CAP 16u
#define STORM_ROW_CNT    8u    /* stores beside the one that is read: for the crowd */
#define STORM_GEN_CAP    8192u /* starts of the daemon */
#define STORM_STUCK_NS   UINT64_C(90000000000) /* a worker that does nothing for so long hangs */

struct storm_options {
	const char *bin; /* directory of stoupd, stoup and the workers */
	const char *store;
	const char *pool;
	const char *log;  /* of the daemon's messages, or NULL */
	const char *size; /* of the pool, as stoupd takes it */
	uint64_t seed;
	uint32_t consumer_kills, daemon_kills;
	uint32_t worker_cnt, victim_cnt, by_hand_cnt;
	uint32_t series_cnt, record_cnt, small_cnt, small_record_cnt;
	uint32_t shift_cnt, shift_record_cnt; /* series that are replaced */
	const char
		*crowd; /* directory of volumes that come and go until places run short, or NULL */
	int forks;      /* a storm of forks */
	double soak_s;  /* 0: a storm, by number of kills */
	int daemon_nice;
	int own_shm; /* /dev/shm is this run's alone: what is used there is its own, and it may be filled */
	int verbose;
};

enum storm_daemon_state {
	STORM_DOWN,
	STORM_STARTING,
	STORM_UP
};

struct storm_daemon {
	enum storm_daemon_state state;
	pid_t pid;
	int pid_fd, ready_fd;
	int killed;          /* by us, so that its end is no violation */
	int stopped;         /* SIGSTOP */
	uint64_t kill_at_ns; /* 0: not planned */
	char ready[256];
	size_t ready_len;
	const struct stoup_control *control;
	size_t control_len;
};

struct storm_gen { /* one start of the daemon */
	uint64_t spawn_ns, up_ns, down_ns;
};

enum storm_victim_state {
	STORM_NONE,
	STORM_RUNNING,
	STORM_KILLED,
	STORM_DEAD
};

struct storm_victim {
	enum storm_victim_state state;
	pid_t pid;
	int pid_fd;
	int awaited;  /* its life is counted from when the daemon lists it */
	int attached; /* when it was killed */
	uint32_t gen; /* of the daemon then */
	uint64_t kill_at_ns, killed_ns, dead_ns;
};

struct storm_process {
	pid_t pid;
	int pid_fd;
	int ended, stopped;
	uint32_t fd_cnt, map_cnt; /* at the first checkpoint */
};

struct storm_samples {
	uint64_t *ns;
	uint32_t cnt, cap;
};

struct storm {
	struct storm_options opt;
	uint64_t random, begin_ns, now_ns;
	struct storm_board *board;
	int board_fd;
	struct storm_daemon daemon;
	struct storm_gen *gens;
	uint32_t gen;         /* of gens: the one that runs, counted from 1 */
	uint64_t start_at_ns; /* of the next daemon, after one that could not start */
	struct storm_victim victims[STORM_VICTIM_CAP];
	struct storm_process workers[STORM_WORKER_CAP];
	uint64_t victim_seq;
	int quiet;                /* no new victims, no kills of the daemon */
	uint32_t kills_to_daemon; /* consumer kills until the next kill of the daemon */
	uint32_t daemon_fd_cnt, daemon_map_cnt; /* without consumers */
	uint64_t shm_used;                      /* bytes of /dev/shm, then */
	/* results */
	uint32_t consumer_kills, early_kills, daemon_kills, start_kills, checkpoints;
	uint32_t leaked_leases, names_left, processes_left;
	uint64_t bytes_left;
	uint32_t violations;
	uint64_t shmem_before;
	double busy_before_s;
	struct storm_samples free_dead, free_killed; /* until a dead consumer's entry is free */
	struct storm_samples resume_wait, resume_late;
	/* the soak */
	uint64_t fault_at_ns, fault_end_ns;
	uint32_t fault;
	uint64_t fault_cnt[16];
	pid_t ingest_pid, flood_pid;
	uint32_t ingest_kind, ingest_series, ingest_step, edition;
	uint64_t ingest_to, ingest_kill_ns;
	uint64_t grown[STORM_SERIES_CAP]; /* records that are in the store for certain */
	struct storm_victim *stopped_victim;
	int full_fd;
	uint64_t cut_cnt;  /* consumers that were cut off, as far as daemons lived to tell */
	uint64_t cut_seen; /* of the present daemon */
};

/* ---- small things ----------------------------------------------------------------------------- */

uint64_t storm_clock(void);
void storm_fail(struct storm *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void storm_sample(struct storm_samples *samples, uint64_t ns);
int storm_pidfd(pid_t pid);
void storm_signal(int pid_fd, int signo);
/* Start a program of the bin directory; descriptor `fd` becomes its number 3 (-1: none), `log` (NULL: ours)
 * its standard error. Its pid. */
pid_t storm_spawn(
	const struct storm *s, const char *program, char *const argv[], int fd, const char *log);

/* ---- daemon.c --------------------------------------------------------------------------------- */

void storm_daemon_start(struct storm *s);
void storm_daemon_ready(struct storm *s); /* its pipe is readable */
void storm_daemon_kill(struct storm *s);
void storm_daemon_ended(struct storm *s); /* its pidfd is readable */
void storm_daemon_plan(struct storm *s);  /* when it is killed next */
int storm_daemon_stop(struct storm *s);   /* SIGTERM, and wait. Its exit status */

/* ---- victims.c -------------------------------------------------------------------------------- */

void storm_victim_start(struct storm *s, struct storm_victim *v);
void storm_victim_await(struct storm *s, struct storm_victim *v); /* is it attached? */
void storm_victim_kill(struct storm *s, struct storm_victim *v);
void storm_victim_died(struct storm *s, struct storm_victim *v); /* its pidfd is readable */
void storm_victim_look(struct storm *s, struct storm_victim *v); /* are its leases free? */
uint32_t storm_victim_cnt(const struct storm *s);
void storm_worker_start(struct storm *s, uint32_t idx);

/* ---- turn.c ----------------------------------------------------------------------------------- */

/* Wait for what comes next, and do what is due. */
void storm_turn(struct storm *s);
/* Turn until `done` says so; a violation after `seconds`. */
int storm_turn_until(
	struct storm *s, int (*done)(const struct storm *s), double seconds, const char *what);
int storm_worker_ended(const struct storm *s); /* before it was told to */
/* Everybody gives back what he holds: then nothing may be left. */
void storm_checkpoint(struct storm *s);
/* The workers detach and end, the daemon is stopped: then nothing at all may be left. */
void storm_end(struct storm *s);

/* ---- look.c ----------------------------------------------------------------------------------- */

uint64_t storm_counter(const struct storm *s, const char *name);
/* Descriptors of a process, and its mappings of stoup's memory. */
void storm_look_process(pid_t pid, uint32_t *ret_fd_cnt, uint32_t *ret_map_cnt);
/* Bytes of the pool that are in extents or free: all of it, when nothing is under way. */
uint64_t storm_pool_bytes(const struct storm *s);
uint64_t storm_shmem(void);    /* of the machine, bytes */
double storm_busy_s(void);     /* processor seconds of the machine, since boot */
uint64_t storm_shm_used(void); /* of /dev/shm, bytes */
uint32_t storm_shm_names(const struct storm *s);
void storm_look_parked(struct storm *s);
void storm_look_end(struct storm *s);

/* ---- report.c --------------------------------------------------------------------------------- */

/* Print the table; 0 when there is no violation. */
int storm_report(struct storm *s);

/* ---- faults.c --------------------------------------------------------------------------------- */

void storm_fault_turn(struct storm *s);
int storm_crowd_begin(struct storm *s); /* 0: not now */
void storm_crowd_end(struct storm *s);
uint64_t storm_fault_due(const struct storm *s);
void storm_fault_end(struct storm *s); /* undo the one that lasts */
void storm_fault_report(const struct storm *s);

#endif
