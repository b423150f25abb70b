/* SPDX-License-Identifier: Apache-2.0 */
/* demo_driver.c - run N workers at once and measure them.
 *
 *      stoup-demo-driver [--daemon PID] N COMMAND [ARGUMENT...]
 *
 *      driver --fork, exec--> worker 1..N --result line--> driver   wall time: to the last line
 *             |  all wait on stdin: PSS of each from /proc/PID/smaps_rollup
 *             +--closes stdin--> workers end --wait4--> CPU time
 *
 * With --daemon the memory and the CPU time of that process during the run are counted in: the
 * daemon works for the workers. Prints one line of NAME=VALUE pairs, without the sums of fields that
 * no record has (they are 0); fails where a worker fails or where two workers' results differ.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKER_CAP 256
#define RESULT_CAP 128    /* bytes: four numbers of at most 20 digits */
#define TIMEOUT_MS 300000 /* of one run: a hung worker is an error, not a hung demo */

struct worker {
	pid_t pid;
	int result_fd;
	char result[RESULT_CAP];
	size_t result_len;
	int done;
};

static struct worker workers[WORKER_CAP];

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts = {0};

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* CPU time of a process so far, all its threads; 0 where it cannot be read. */
static uint64_t cpu_ns(pid_t pid)
{
	clockid_t clock;

	return pid > 0 && !clock_getcpuclockid(pid, &clock) ? now_ns(clock) : 0;
}

/* Proportional set size of a process in KiB, or -1. */
static int64_t pss_kib(pid_t pid)
{
	char path[64], line[256];
	long long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Pss: %lld kB", &value) == 1)
			break;
	fclose(file);
	return value;
}

static void kill_all(int worker_cnt)
{
	for (int i = 0; i < worker_cnt; i++)
		if (workers[i].pid > 0)
			kill(workers[i].pid, SIGKILL);
}

/* Start one worker with its stdout in a pipe of its own and its stdin from the common one. */
static int start(struct worker *worker, int stdin_fd, char **command)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC)) /* else a worker would hold its sisters' pipes open */
		return -errno;
	worker->pid = fork();
	if (worker->pid < 0)
		return -errno;
	if (worker->pid == 0) {
		dup2(stdin_fd, STDIN_FILENO);
		dup2(fds[1], STDOUT_FILENO);
		execvp(command[0], command);
		fprintf(stderr, "stoup-demo-driver: %s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	close(fds[1]);
	worker->result_fd = fds[0];
	return 0;
}

/* Take what a worker wrote. 0, or -EPIPE when it ended without a result. */
static int take(struct worker *worker)
{
	ssize_t got = read(worker->result_fd, worker->result + worker->result_len,
		RESULT_CAP - 1 - worker->result_len);

	if (got <= 0)
		return -EPIPE;
	worker->result_len += (size_t)got;
	worker->done = worker->result[worker->result_len - 1] == '\n';
	if (worker->done)
		worker->result[worker->result_len - 1] = '\0';
	return 0;
}

/* Wait until every worker has written its result line. */
static int gather(int worker_cnt)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + TIMEOUT_MS * 1000000ull;
	struct pollfd fds[WORKER_CAP];
	int left = worker_cnt;

	while (left) {
		for (int i = 0; i < worker_cnt; i++)
			fds[i] = (struct pollfd){
				workers[i].done ? -1 : workers[i].result_fd, POLLIN, 0};
		if (now_ns(CLOCK_MONOTONIC) > until || poll(fds, (nfds_t)worker_cnt, 1000) < 0)
			return -ETIMEDOUT;
		for (int i = 0; i < worker_cnt; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			if (take(&workers[i]))
				return -EPIPE;
			left -= workers[i].done;
		}
	}
	return 0;
}

/* End all workers; their CPU time in ns. A worker that failed makes it -ECHILD. */
static int reap(int worker_cnt, uint64_t *cpu)
{
	int rc = 0;

	for (int i = 0; i < worker_cnt; i++) {
		struct rusage usage;
		int status = 0;

		if (workers[i].pid <= 0)
			continue;
		if (wait4(workers[i].pid, &status, 0, &usage) < 0 || status)
			rc = -ECHILD;
		*cpu += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
		        (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
	}
	return rc;
}

static int agree(int worker_cnt)
{
	int rc = 0;

	for (int i = 1; i < worker_cnt; i++) {
		if (strcmp(workers[i].result, workers[0].result) == 0)
			continue;
		fprintf(stderr, "stoup-demo-driver: worker %d found %s, worker 0 found %s\n", i,
			workers[i].result, workers[0].result);
		rc = -EBADMSG;
	}
	return rc;
}

struct measure {
	uint64_t wall_ns, cpu_ns;
	int64_t pss_kib, daemon_pss_kib;
};

static int run(int worker_cnt, pid_t daemon, char **command, struct measure *ret)
{
	int hold[2], rc = 0;
	uint64_t began, daemon_cpu = cpu_ns(daemon);

	if (pipe2(hold, O_CLOEXEC)) /* so that the driver alone keeps their stdin open */
		return -errno;
	began = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < worker_cnt && !rc; i++)
		rc = start(&workers[i], hold[0], command);
	if (!rc)
		rc = gather(worker_cnt);
	ret->wall_ns = now_ns(CLOCK_MONOTONIC) - began;
	for (int i = 0; i < worker_cnt && !rc; i++)
		ret->pss_kib += pss_kib(workers[i].pid);
	ret->daemon_pss_kib = daemon > 0 ? pss_kib(daemon) : 0;
	if (rc)
		kill_all(worker_cnt);
	close(hold[1]);
	close(hold[0]);
	if (reap(worker_cnt, &ret->cpu_ns) && !rc)
		rc = -ECHILD;
	ret->cpu_ns += cpu_ns(daemon) - daemon_cpu;
	return rc ? rc : agree(worker_cnt);
}

/* A field that no record has sums to 0, which would read as a statement about the data. */
static void print_sum(const char *name, unsigned long long sum)
{
	if (sum)
		printf(" %s=%llu", name, sum);
}

int main(int argc, char **argv)
{
	struct measure measure = {0};
	unsigned long long sums[4];
	pid_t daemon = 0;
	long worker_cnt;
	int rc;

	if (argc > 2 && strcmp(argv[1], "--daemon") == 0) {
		daemon = (pid_t)strtol(argv[2], NULL, 10);
		argc -= 2;
		argv += 2;
	}
	worker_cnt = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
	if (worker_cnt < 1 || worker_cnt > WORKER_CAP) {
		fprintf(stderr,
			"Usage: stoup-demo-driver [--daemon PID] N COMMAND [ARGUMENT...]\n");
		return 2;
	}
	rc = run((int)worker_cnt, daemon, argv + 2, &measure);
	if (!rc && sscanf(workers[0].result, "%llu %llu %llu %llu", &sums[0], &sums[1], &sums[2],
			   &sums[3]) != 4)
		rc = -EBADMSG;
	if (rc) {
		fprintf(stderr, "stoup-demo-driver: %s: %s\n", argv[2],
			rc == -EPIPE ? "a worker ended without a result" : strerror(-rc));
		return 1;
	}
	printf("wall_ns=%" PRIu64 " cpu_ns=%" PRIu64 " pss_kib=%" PRId64 " daemon_pss_kib=%" PRId64
	       " records=%llu",
		measure.wall_ns, measure.cpu_ns, measure.pss_kib, measure.daemon_pss_kib, sums[0]);
	print_sum("price", sums[1]);
	print_sum("size", sums[2]);
	printf(" check=%llu\n", sums[3]);
	return 0;
}
