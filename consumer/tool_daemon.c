/* SPDX-License-Identifier: Apache-2.0 */
/* tool_daemon.c - start and stop a stoupd of one's own. */
#include "consumer/tool_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "consumer/tool_pool.h"

#define READY_FD 3

/* What the child needs, made before the fork. */
struct child {
	const char *store, *pool;
	char program[PATH_MAX], size[32];
	int ready_fd;
	pid_t parent;
};

_Noreturn static void child_exec(struct child *child)
{
	const char *args[] = {child->program, "--store", child->store, "--pool", child->pool,
		"--size", child->size, "--backing", "memfd", "--quiet", "--ready-fd", "3", NULL};
	char *argv[sizeof(args) / sizeof(args[0])];
	int fd = fcntl(child->ready_fd, F_DUPFD, READY_FD + 1), null_fd;

	memcpy(argv, args, sizeof(args));
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (fd < 0 || getppid() != child->parent)
		_exit(127);
	/* Its complaints come through the ready pipe. */
	null_fd = open("/dev/null", O_RDWR);
	dup2(null_fd, STDIN_FILENO);
	dup2(null_fd, STDOUT_FILENO);
	dup2(null_fd, STDERR_FILENO);
	dup2(fd, READY_FD);
	close(fd);
	execvp(child->program, argv);
	dprintf(READY_FD, "%s: %s", child->program, strerror(errno));
	_exit(127);
}

static void find_program(char dst[PATH_MAX])
{
	const char *env = getenv("STOUPD");

	if (env && *env)
		snprintf(dst, PATH_MAX, "%s", env);
	else if (!stoup_daemon_beside(dst, PATH_MAX))
		snprintf(dst, PATH_MAX, "stoupd");
}

/* "ready\n", or why not. */
static int wait_ready(int fd, struct stoup_error *err)
{
	char text[STOUP_ERROR_TEXT_CAP];
	size_t at = 0;
	ssize_t n;

	while (at < sizeof(text) - 1) {
		n = read(fd, text + at, sizeof(text) - 1 - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
		text[at] = 0;
		if (strcmp(text, "ready\n") == 0)
			return 0;
	}
	while (at > 0 && text[at - 1] == '\n')
		at--;
	text[at] = 0;
	return stoup_error_set(err, -ECONNABORTED, "stoupd did not start: %.200s",
		at ? text : "it ended without a word");
}

int stoup_tool_daemon_start(const char *store, uint64_t pool_len, struct stoup_tool_daemon *ret,
	struct stoup_error *err)
{
	static unsigned count;
	struct child child = {.store = store, .pool = ret->pool, .parent = getpid()};
	int fds[2], rc;

	snprintf(ret->pool, sizeof(ret->pool), "bench-%d-%u", (int)getpid(), count++);
	snprintf(child.size, sizeof(child.size), "%llu", (unsigned long long)pool_len);
	find_program(child.program);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return stoup_error_set(err, -errno, "a pipe: %s", strerror(errno));
	child.ready_fd = fds[1];
	fflush(NULL);
	ret->pid = fork();
	if (ret->pid == 0)
		child_exec(&child);
	rc = ret->pid < 0 ? stoup_error_set(err, -errno, "fork: %s", strerror(errno)) : 0;
	close(fds[1]);
	if (rc == 0)
		rc = wait_ready(fds[0], err);
	close(fds[0]);
	if (rc < 0)
		stoup_tool_daemon_stop(ret);
	return rc;
}

void stoup_tool_daemon_stop(struct stoup_tool_daemon *daemon)
{
	if (daemon->pid > 0) {
		kill(daemon->pid, SIGTERM);
		while (waitpid(daemon->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	daemon->pid = 0;
}
