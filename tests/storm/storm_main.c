/* SPDX-License-Identifier: Apache-2.0 */
/* storm_main.c - kill consumers and daemons by the thousand under workers that check every byte.
 *
 * usage: storm --bin DIR --store DIR --pool NAME --series N --records N [option...]
 *   --size SIZE            of the pool (8M)
 *   --consumer-kills N     (10000)     --daemon-kills N   (500)
 *   --workers N            (8)         --victims N        at a time (4)
 *   --by-hand N            workers that attach anew by themselves after -EPIPE (1)
 *   --small N              further series, of --small-records each, that share blocks
 *   --shifting N           series of --shifting-records each that a soak replaces (0 or 2)
 *   --soak SECONDS         random faults for so long instead of a number of kills
 *   --forks                many forks, and several threads to a worker
 *   --crowd DIR            volumes that a soak lets come and go until places run short
 *   --daemon-nice N        priority of the daemon, -20 to 19 (0)
 *   --own-shm              nobody else uses this /dev/shm
 *   --log FILE             where the daemon's own messages go
 *   --seed N               (random; printed)
 *
 * tests/storm.sh and tests/soak.sh make the store and call this. Exit status 1 on any violation.
 */
#include "storm/storm.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "storm/record.h"

#define CHECKPOINT_CNT 10u /* in a storm; a soak has one a minute */
#define CHECKPOINT_NS  UINT64_C(60000000000)
#define FAIL_CAP       200u /* violations that are printed */

extern char **environ;

uint64_t storm_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void storm_fail(struct storm *s, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (++s->violations <= FAIL_CAP)
		fprintf(stderr, "storm: at %.3f s, seed %" PRIu64 ": %s\n",
			(double)(storm_clock() - s->begin_ns) / 1e9, s->opt.seed, text);
}

void storm_sample(struct storm_samples *samples, uint64_t ns)
{
	if (samples->cnt == samples->cap) {
		samples->cap = samples->cap ? samples->cap * 2 : 1024;
		samples->ns = realloc(samples->ns, samples->cap * sizeof(*samples->ns));
		if (!samples->ns)
			abort();
	}
	samples->ns[samples->cnt++] = ns;
}

int storm_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0) {
		fprintf(stderr, "storm: pidfd_open: %s\n", strerror(errno));
		exit(2);
	}
	return fd;
}

void storm_signal(int pid_fd, int signo)
{
	syscall(SYS_pidfd_send_signal, pid_fd, signo, NULL, 0);
}

pid_t storm_spawn(
	const struct storm *s, const char *program, char *const argv[], int fd, const char *log)
{
	posix_spawn_file_actions_t actions;
	char path[512];
	pid_t pid = 0;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", s->opt.bin, program);
	posix_spawn_file_actions_init(&actions);
	if (fd >= 0)
		posix_spawn_file_actions_adddup2(&actions, fd, 3);
	if (log)
		posix_spawn_file_actions_addopen(
			&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	rc = posix_spawn(&pid, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (rc != 0) {
		fprintf(stderr, "storm: %s: %s\n", path, strerror(rc));
		exit(2);
	}
	return pid;
}

/* ---- options ---------------------------------------------------------------------------------- */

static const struct option options[] = {
	{"bin", required_argument, NULL, 'b'},
	{"store", required_argument, NULL, 's'},
	{"pool", required_argument, NULL, 'p'},
	{"size", required_argument, NULL, 'z'},
	{"consumer-kills", required_argument, NULL, 'c'},
	{"daemon-kills", required_argument, NULL, 'd'},
	{"workers", required_argument, NULL, 'w'},
	{"victims", required_argument, NULL, 'v'},
	{"by-hand", required_argument, NULL, 'H'},
	{"series", required_argument, NULL, 'n'},
	{"records", required_argument, NULL, 'r'},
	{"small", required_argument, NULL, 'm'},
	{"small-records", required_argument, NULL, 'M'},
	{"shifting", required_argument, NULL, 'x'},
	{"shifting-records", required_argument, NULL, 'X'},
	{"soak", required_argument, NULL, 'k'},
	{"forks", no_argument, NULL, 'f'},
	{"crowd", required_argument, NULL, 'C'},
	{"own-shm", no_argument, NULL, 'o'},
	{"daemon-nice", required_argument, NULL, 'N'},
	{"log", required_argument, NULL, 'l'},
	{"seed", required_argument, NULL, 'S'},
	{NULL, 0, NULL, 0},
};

static uint32_t number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

static int set_option(struct storm_options *opt, int which)
{
	switch (which) {
	case 'b':
		opt->bin = optarg;
		break;
	case 's':
		opt->store = optarg;
		break;
	case 'p':
		opt->pool = optarg;
		break;
	case 'z':
		opt->size = optarg;
		break;
	case 'c':
		opt->consumer_kills = number(optarg);
		break;
	case 'd':
		opt->daemon_kills = number(optarg);
		break;
	case 'w':
		opt->worker_cnt = number(optarg);
		break;
	case 'v':
		opt->victim_cnt = number(optarg);
		break;
	case 'H':
		opt->by_hand_cnt = number(optarg);
		break;
	case 'n':
		opt->series_cnt = number(optarg);
		break;
	case 'r':
		opt->record_cnt = number(optarg);
		break;
	case 'm':
		opt->small_cnt = number(optarg);
		break;
	case 'M':
		opt->small_record_cnt = number(optarg);
		break;
	case 'x':
		opt->shift_cnt = number(optarg);
		break;
	case 'X':
		opt->shift_record_cnt = number(optarg);
		break;
	case 'k':
		opt->soak_s = strtod(optarg, NULL);
		break;
	case 'f':
		opt->forks = 1;
		break;
	case 'C':
		opt->crowd = optarg;
		break;
	case 'N':
		opt->daemon_nice = (int)strtol(optarg, NULL, 10);
		break;
	case 'l':
		opt->log = optarg;
		break;
	case 'o':
		opt->own_shm = 1;
		break;
	case 'S':
		opt->seed = strtoull(optarg, NULL, 10);
		break;
	default:
		return -1;
	}
	return 0;
}

static int options_valid(const struct storm_options *opt)
{
	return opt->bin && opt->store && opt->pool && opt->series_cnt > 0 && opt->record_cnt > 0 &&
	       opt->series_cnt + opt->small_cnt <= STORM_SERIES_CAP && opt->worker_cnt > 0 &&
	       opt->worker_cnt <= STORM_WORKER_CAP && opt->victim_cnt > 0 &&
	       opt->victim_cnt <= STORM_VICTIM_CAP && opt->by_hand_cnt <= opt->worker_cnt &&
	       (opt->shift_cnt == 0 || opt->shift_cnt == 2) &&
	       opt->daemon_kills < STORM_GEN_CAP / 2;
}

/* A signal ends the run in order: what was done until then is reported. */
static volatile sig_atomic_t told_to_end;

static void end_told(int signo)
{
	(void)signo;
	told_to_end = 1;
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int board_make(struct storm *s)
{
	s->board_fd = memfd_create("storm.board", MFD_CLOEXEC);
	if (s->board_fd < 0 || ftruncate(s->board_fd, sizeof(*s->board)) < 0)
		return -1;
	s->board =
		mmap(NULL, sizeof(*s->board), PROT_READ | PROT_WRITE, MAP_SHARED, s->board_fd, 0);
	if (s->board == MAP_FAILED)
		return -1;
	s->board->series_cnt = s->opt.series_cnt + s->opt.small_cnt;
	s->board->shift_cnt = s->opt.shift_cnt;
	s->board->forks = (uint32_t)s->opt.forks;
	for (uint32_t i = 0; i < s->board->series_cnt; i++) {
		s->grown[i] = i < s->opt.series_cnt ? s->opt.record_cnt : s->opt.small_record_cnt;
		atomic_store(&s->board->record_cnt[i], s->grown[i]);
	}
	s->gens = calloc(STORM_GEN_CAP, sizeof(*s->gens));
	return s->gens ? 0 : -1;
}

static int up(const struct storm *s)
{
	/* It has closed its end of the pipe, too: its descriptors are counted. */
	return s->daemon.state == STORM_UP && s->daemon.control && s->daemon.ready_fd < 0;
}

static void begin(struct storm *s)
{
	s->quiet = 1;
	storm_daemon_start(s);
	if (!storm_turn_until(s, up, 60, "the first daemon"))
		exit(1);
	storm_look_process(s->daemon.pid, &s->daemon_fd_cnt, &s->daemon_map_cnt);
	s->shm_used = storm_shm_used();
	for (uint32_t i = 0; i < s->opt.worker_cnt; i++)
		storm_worker_start(s, i);
	storm_checkpoint(s);
	storm_daemon_plan(s);
}

static int finished(const struct storm *s)
{
	if (s->violations > FAIL_CAP || told_to_end)
		return 1;
	/* What is counted at checkpoints is counted for all of them. */
	if (storm_worker_ended(s))
		return 1;
	if (s->opt.soak_s > 0)
		return (double)(s->now_ns - s->begin_ns) >= s->opt.soak_s * 1e9;
	return s->consumer_kills >= s->opt.consumer_kills && s->daemon_kills >= s->opt.daemon_kills;
}

static void run(struct storm *s)
{
	uint32_t every = s->opt.consumer_kills / CHECKPOINT_CNT + 1, next = every;
	uint64_t next_ns = s->now_ns + CHECKPOINT_NS;

	while (!finished(s)) {
		storm_turn(s);
		if (s->opt.soak_s > 0 ? s->now_ns < next_ns : s->consumer_kills < next)
			continue;
		next += every;
		next_ns = s->now_ns + CHECKPOINT_NS;
		storm_checkpoint(s);
		fprintf(stderr,
			"storm: %.0f s, %u consumers and %u daemons killed, %u violations\n",
			(double)(s->now_ns - s->begin_ns) / 1e9, s->consumer_kills, s->daemon_kills,
			s->violations);
	}
}

int main(int argc, char **argv)
{
	static struct storm s = {.opt = {.size = "8M",
					 .consumer_kills = 10000,
					 .daemon_kills = 500,
					 .worker_cnt = 8,
					 .victim_cnt = 4,
					 .by_hand_cnt = 1},
		.full_fd = -1};
	int which;

	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (set_option(&s.opt, which) < 0)
			return 2;
	if (!options_valid(&s.opt)) {
		fprintf(stderr, "storm: wrong options; see tests/storm.sh --help\n");
		return 2;
	}
	if (s.opt.seed == 0 && getrandom(&s.opt.seed, 4, 0) != 4)
		return 2;
	s.random = s.opt.seed;
	s.begin_ns = s.now_ns = storm_clock();
	s.shmem_before = storm_shmem();
	s.busy_before_s = storm_busy_s();
	/* What victims leave behind becomes ours, and must have ended at the end. The measuring process
	 * should not wait for those that it measures; they run at the usual priority. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = end_told}, NULL);
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = end_told}, NULL);
	if (sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &(struct sched_param){0}) <
			0 ||
		setpriority(PRIO_PROCESS, 0, -10) < 0)
		fprintf(stderr,
			"storm: without the right to a higher priority, times are less exact\n");
	if (board_make(&s) < 0)
		return 2;
	printf("storm: seed %" PRIu64 "\n", s.opt.seed);
	fflush(stdout);
	begin(&s);
	run(&s);
	storm_end(&s);
	if (told_to_end)
		printf("storm: ended by a signal before its time\n");
	return storm_report(&s);
}
