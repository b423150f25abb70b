/* SPDX-License-Identifier: Apache-2.0 */
/* b3_crowd.c - start workers, gather their lines, read their memory. */
#include "bench/b3_crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "bench/harness.h"
#include "bench/worker.h"

#define LINE_CAP   128
#define TIMEOUT_NS UINT64_C(300000000000) /* a hung worker is an error, not a hung benchmark */

struct worker {
	pid_t pid;
	int fd;
	char line[LINE_CAP];
	size_t len;
	int done;
};

static struct worker workers[BENCH_CROWD_CAP];

/* ---- memory ---------------------------------------------------------------------------------- */

/* Sum of the values of lines "NAME: n kB" of a file of /proc whose names begin with `name`. */
static uint64_t proc_kib(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	unsigned long long value;
	uint64_t sum = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (colon && strncmp(line, name, strlen(name)) == 0 &&
			sscanf(colon + 1, " %llu kB", &value) == 1)
			sum += value;
	}
	if (file)
		fclose(file);
	return sum;
}

/* Proportional share of memfd and POSIX objects: of a daemon its pool, without program, heap and staging. */
static uint64_t objects_kib(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long long value;
	uint64_t sum = 0;
	int shared = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		/* "7f00-7f10 rw-s ..." begins a mapping; the lines below it begin with a name. */
		if (strchr("0123456789abcdef", line[0]))
			shared = strstr(line, "memfd:") || strstr(line, "/dev/shm/");
		else if (shared && colon && strncmp(line, "Pss:", 4) == 0 &&
			 sscanf(colon + 1, " %llu kB", &value) == 1)
			sum += value;
	}
	if (file)
		fclose(file);
	return sum;
}

struct bench_memory bench_memory_of(pid_t pid)
{
	struct bench_memory m;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	m.pss = proc_kib(path, "Pss:");
	m.private = proc_kib(path, "Private_");
	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	m.objects = objects_kib(path);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	m.pte = proc_kib(path, "VmPTE:");
	return m;
}

static uint64_t number_in(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long long value = UINT64_MAX;

	if (file && fscanf(file, "%llu", &value) != 1)
		value = UINT64_MAX; /* "max" */
	if (file)
		fclose(file);
	return value;
}

uint64_t bench_memory_free(void)
{
	uint64_t machine = proc_kib("/proc/meminfo", "MemAvailable:") << 10;
	uint64_t group = number_in("/sys/fs/cgroup/memory.max");
	uint64_t used = number_in("/sys/fs/cgroup/memory.current");

	if (group == UINT64_MAX || used == UINT64_MAX || group < used)
		return machine;
	return group - used < machine ? group - used : machine;
}

/* CPU time of a living process, ns. */
static uint64_t cpu_of(pid_t pid)
{
	struct timespec ts = {0};
	clockid_t clock;

	if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0)
		return 0;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- a crowd --------------------------------------------------------------------------------- */

_Noreturn static void worker_exec(const struct bench_crowd *crowd, int stdin_fd, int stdout_fd)
{
	char path[4200], mode[16], where[4096], series[64], exec_ns[32];
	char *argv[] = {path, mode, where, series, exec_ns, NULL};

	snprintf(path, sizeof(path), "%s/stoup-bench-worker", bench_settings.bin);
	snprintf(mode, sizeof(mode), "%s", crowd->mode);
	snprintf(where, sizeof(where), "%s", crowd->path);
	snprintf(series, sizeof(series), "%s", crowd->series);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(stdin_fd, STDIN_FILENO);
	dup2(stdout_fd, STDOUT_FILENO);
	snprintf(exec_ns, sizeof(exec_ns), "%" PRIu64, bench_now());
	execv(path, argv);
	fprintf(stderr, "stoup-bench: %s: %s\n", path, strerror(errno));
	_exit(127);
}

static void worker_start(struct worker *worker, const struct bench_crowd *crowd, int stdin_fd)
{
	int fds[2];

	memset(worker, 0, sizeof(*worker));
	if (pipe2(fds, O_CLOEXEC) < 0)
		bench_die("pipe: %s", strerror(errno));
	worker->pid = fork();
	if (worker->pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (worker->pid == 0)
		worker_exec(crowd, stdin_fd, fds[1]);
	close(fds[1]);
	worker->fd = fds[0];
}

static void worker_take(struct worker *worker, const char *mode)
{
	ssize_t n = read(worker->fd, worker->line + worker->len, LINE_CAP - 1 - worker->len);

	if (n <= 0)
		bench_die("B3: a worker (%s) ended without a result", mode);
	worker->len += (size_t)n;
	worker->done = worker->line[worker->len - 1] == '\n';
}

static void gather(const struct bench_crowd *crowd)
{
	uint64_t until = bench_now() + TIMEOUT_NS;
	struct pollfd fds[BENCH_CROWD_CAP];
	uint32_t left = crowd->cnt;

	while (left > 0) {
		for (uint32_t i = 0; i < crowd->cnt; i++)
			fds[i] = (struct pollfd){workers[i].done ? -1 : workers[i].fd, POLLIN, 0};
		if (poll(fds, crowd->cnt, 1000) < 0 || bench_now() > until)
			bench_die("B3: workers (%s) do not end", crowd->mode);
		for (uint32_t i = 0; i < crowd->cnt; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			worker_take(&workers[i], crowd->mode);
			left -= (uint32_t)workers[i].done;
		}
	}
}

static void read_lines(struct bench_crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->cnt; i++) {
		unsigned long long first, end, result;

		if (sscanf(workers[i].line, BENCH_WORKER_LINE, &first, &end, &result) != 3)
			bench_die("B3: a worker said: %s", workers[i].line);
		if (i > 0 && result != crowd->result)
			bench_die("B3: two workers (%s) differ", crowd->mode);
		crowd->first_ns[i] = first;
		crowd->result = result;
	}
}

static void read_memory(struct bench_crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->cnt; i++) {
		struct bench_memory m = bench_memory_of(workers[i].pid);

		crowd->workers.pss += m.pss;
		crowd->workers.private += m.private;
		crowd->workers.pte += m.pte;
	}
	if (crowd->daemon > 0)
		crowd->daemon_memory = bench_memory_of(crowd->daemon);
}

static void reap(struct bench_crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->cnt; i++) {
		struct rusage usage;
		int status;

		if (wait4(workers[i].pid, &status, 0, &usage) < 0 || status != 0)
			bench_die("B3: a worker (%s) failed", crowd->mode);
		crowd->cpu_ns +=
			(uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
			(uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
		close(workers[i].fd);
	}
}

void bench_crowd_run(struct bench_crowd *crowd)
{
	uint64_t began, daemon_cpu = cpu_of(crowd->daemon);
	int hold[2];

	if (crowd->cnt == 0 || crowd->cnt > BENCH_CROWD_CAP || pipe2(hold, O_CLOEXEC) < 0)
		bench_die("B3: no crowd of %u", crowd->cnt);
	crowd->workers = crowd->daemon_memory = (struct bench_memory){0};
	crowd->cpu_ns = 0;
	began = bench_now();
	for (uint32_t i = 0; i < crowd->cnt; i++) {
		if (i > 0 && crowd->apart_us > 0)
			usleep(crowd->apart_us);
		worker_start(&workers[i], crowd, hold[0]);
	}
	gather(crowd);
	crowd->wall_ns = bench_now() - began;
	read_lines(crowd);
	read_memory(crowd);
	close(hold[1]);
	close(hold[0]);
	reap(crowd);
	crowd->cpu_ns += cpu_of(crowd->daemon) - daemon_cpu;
}
