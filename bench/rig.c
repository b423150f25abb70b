/* SPDX-License-Identifier: Apache-2.0 */
/* rig.c - daemons, programs, scans. */
#include "bench/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/harness.h"
#include "shm/control.h"

#define ARG_CAP   32
#define READY_FD  3
#define READY_CAP 512
#define HELP_CAP  65536

/* ---- programs -------------------------------------------------------------------------------- */

static void program_path(const char *name, char dst[4096])
{
	snprintf(dst, 4096, "%s/%s", bench_settings.bin, name);
}

/* In the child: stdout and stderr to fds, then the program. */
_Noreturn static void child_run(const char *name, const char *const *args, int out_fd, int err_fd)
{
	char path[4096];
	char *argv[ARG_CAP] = {0};
	size_t cnt = 1;

	program_path(name, path);
	argv[0] = path;
	for (; args && *args && cnt + 1 < ARG_CAP; args++)
		argv[cnt++] = strdup(*args);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(out_fd, STDOUT_FILENO);
	dup2(err_fd, STDERR_FILENO);
	execv(path, argv);
	dprintf(err_fd, "%s: %s\n", path, strerror(errno));
	_exit(127);
}

static int log_open(void)
{
	const char *path = bench_path("log");
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		bench_die("%s: %s", path, strerror(errno));
	return fd;
}

int bench_run_program(const char *program, const char *const *args)
{
	int log_fd = log_open(), status = 0;
	pid_t pid = fork();

	if (pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid == 0)
		child_run(program, args, log_fd, log_fd);
	close(log_fd);
	if (waitpid(pid, &status, 0) < 0)
		bench_die("waiting for %s: %s", program, strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

pid_t bench_program_start(const char *program, const char *const *args, const char *out_path)
{
	int log_fd = log_open();
	int out_fd = open(out_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid_t pid;

	if (out_fd < 0)
		bench_die("%s: %s", out_path, strerror(errno));
	pid = fork();
	if (pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid == 0)
		child_run(program, args, out_fd, log_fd);
	close(out_fd);
	close(log_fd);
	return pid;
}

/* What a program prints on stdout. */
static void output_of(const char *program, const char *const *args, char dst[HELP_CAP])
{
	size_t at = 0;
	ssize_t n;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		bench_die("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid == 0)
		child_run(program, args, fds[1], fds[1]);
	close(fds[1]);
	while (at < HELP_CAP - 1 && (n = read(fds[0], dst + at, HELP_CAP - 1 - at)) > 0)
		at += (size_t)n;
	dst[at] = 0;
	close(fds[0]);
	waitpid(pid, NULL, 0);
}

int bench_codec_known(const char *name)
{
	static const char *const help[] = {"help", "ingest", NULL};
	static char text[HELP_CAP];
	const char *at;
	size_t len = strlen(name);

	output_of("stoup", help, text);
	at = strstr(text, "--codec");
	/* The names stand on the option's own lines, up to the next option; "zstd (default)" is no name. */
	for (const char *end = at ? strstr(at + 2, " --") : NULL; at && (!end || at < end); at++) {
		if (strncmp(at, name, len) == 0 && strchr(" ,.)\n", at[len]) && at[len] &&
			strchr(" ,", at[-1]))
			return 1;
	}
	return 0;
}

const char *bench_codec_default(void)
{
	return bench_codec_known("default") ? "default" : "zstd";
}

int bench_daemon_option_known(const char *option)
{
	static const char *const help[] = {"--help", NULL};
	static char text[HELP_CAP];

	output_of("stoupd", help, text);
	return strstr(text, option) != NULL;
}

/* ---- daemons --------------------------------------------------------------------------------- */

static void ready_wait(const struct bench_daemon *daemon, int fd)
{
	char text[READY_CAP];
	size_t at = 0;
	ssize_t n;

	while (at < sizeof(text) - 1 && (n = read(fd, text + at, sizeof(text) - 1 - at)) > 0) {
		at += (size_t)n;
		text[at] = 0;
		if (strcmp(text, "ready\n") == 0)
			return;
	}
	text[at] = 0;
	bench_die("stoupd (pool %s) did not start: %s", daemon->pool,
		at ? text : "see the log in the work directory");
}

void bench_daemon_start(
	struct bench_daemon *daemon, const char *store, uint64_t len, const char *const *options)
{
	static unsigned count;
	const char *args[ARG_CAP] = {"--store", store, "--pool", daemon->pool, "--size", NULL,
		"--backing", "memfd", "--quiet", "--ready-fd", "3"};
	size_t cnt = 11;
	char size[32];
	int fds[2];

	snprintf(size, sizeof(size), "%" PRIu64, len);
	args[5] = size;
	snprintf(daemon->pool, sizeof(daemon->pool), "bench-%d-%u", (int)getpid(), count++);
	for (; options && *options && cnt + 1 < ARG_CAP; options++)
		args[cnt++] = *options;
	if (pipe2(fds, O_CLOEXEC) < 0)
		bench_die("pipe: %s", strerror(errno));
	daemon->pid = fork();
	if (daemon->pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (daemon->pid == 0) {
		int log_fd = fcntl(log_open(), F_DUPFD_CLOEXEC, 10);
		int ready_fd = fcntl(fds[1], F_DUPFD_CLOEXEC, 10);

		dup2(ready_fd, READY_FD);
		child_run("stoupd", args, log_fd, log_fd);
	}
	close(fds[1]);
	ready_wait(daemon, fds[0]);
	close(fds[0]);
}

void bench_daemon_stop(struct bench_daemon *daemon)
{
	int status;

	if (daemon->pid <= 0)
		return;
	kill(daemon->pid, SIGTERM);
	waitpid(daemon->pid, &status, 0);
	daemon->pid = 0;
}

uint64_t bench_counter(const char *pool, const char *name)
{
	const struct stoup_control *control;
	struct stoup_control_counter *counters;
	struct stoup_error err = {0};
	uint64_t value = 0;
	size_t len;
	uint32_t i;

	if (stoup_control_open(pool, &control, &len, &err) < 0)
		bench_die("%s", err.text);
	counters = stoup_control_counters(control);
	for (i = 0; i < control->counter_cnt && strcmp(counters[i].name, name) != 0; i++)
		;
	if (i == control->counter_cnt)
		bench_die("pool %s has no counter %s", pool, name);
	value = atomic_load_explicit(&counters[i].value, memory_order_relaxed);
	stoup_control_close(control, len);
	return value;
}

/* ---- scans ----------------------------------------------------------------------------------- */

struct stoup *bench_attach(const char *pool, const struct stoup_options *opt, const char *series,
	struct stoup_series *ret)
{
	struct stoup_error err = {0};
	struct stoup *st;

	if (stoup_attach(pool, opt, &st, &err) < 0 || stoup_series_find(st, series, ret, &err) < 0)
		bench_die("%s", err.text);
	return st;
}

uint64_t bench_scan_pass(void *arg)
{
	const struct bench_scan *scan = arg;
	struct bench_loop loop = bench_loop_begin(scan->backward);
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc;

	if (stoup_scan(scan->st, &scan->series, &scan->range, &cur, &err) < 0)
		bench_die("%s", err.text);
	while ((rc = stoup_next(cur, &span)) > 0)
		scan->loop(&loop, span.base, span.record_cnt);
	if (rc < 0)
		bench_die("%s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	return bench_loop_result(&loop);
}
