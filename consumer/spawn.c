/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - start stoupd out of a host process that must not notice.
 *
 *      host --clone--> middle --setsid, clone--> daemon --exec--> stoupd
 *       |                |                          |
 *       | waits for it   | ends at once             | 0, 1 /dev/null, 2 its log, 3 the ready pipe
 *       v                                           v
 *      reads the pipe  <------------- "ready\n", or why not ---------------
 *
 * "held\n" before that text: another process has the pool's name, it runs, starts or ends.
 *
 * The clones carry no exit signal, so that the host gets no SIGCHLD, and they run no handlers of
 * pthread_atfork: the host may be a Python interpreter with threads. Between clone and exec only
 * async-signal-safe calls are made; everything that needs memory is computed before.
 *
 * The daemon does not inherit the host's signal mask, its descriptors, its session or its pinning
 * to processors: it serves others, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "consumer/client.h"

#ifndef STOUP_INSTALL_DAEMON
#define STOUP_INSTALL_DAEMON "/usr/local/bin/stoupd"
#endif

#define READY_FD    3
#define ARG_CAP     16
#define FD_SCAN_CAP 65536     /* without close_range(2): descriptors that are tried one by one */
#define LOG_CAP     (1 << 20) /* a longer log of daemons before is emptied */
#define HELD        "held\n"

/* All that the child needs, made before the clone. */
struct child {
	char *args[ARG_CAP];
	char size[32];
	int pipe_fd; /* to write */
	int log_fd, null_fd;
	int fd_limit;
};

/* ---- the program ----------------------------------------------------------------------------- */

static int runnable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int in_path(char *dst, size_t cap)
{
	const char *at = secure_getenv("PATH");

	while (at && *at) {
		size_t len = strcspn(at, ":");
		int used = snprintf(dst, cap, "%.*s/stoupd", (int)len, at);

		if (len > 0 && used > 0 && (size_t)used < cap && runnable(dst))
			return 1;
		at += len + (at[len] == ':');
	}
	return 0;
}

/* Path of stoupd: the option, $STOUPD, the installed one, $PATH. A named one is not replaced by
 * another. */
static int find_daemon(const char *named, char dst[PATH_MAX], struct stoup_error *err)
{
	const char *env = secure_getenv("STOUPD");

	if (!named && env && *env)
		named = env;
	if (named) {
		/* Absolute, since the daemon leaves the working directory. */
		if (!runnable(named) || !realpath(named, dst))
			return stoup_error_set(err, -ENOENT,
				"%.150s (options.daemon or $STOUPD) is not a program that can be "
				"run",
				named);
		return 0;
	}
	if (runnable(STOUP_INSTALL_DAEMON)) {
		snprintf(dst, PATH_MAX, "%s", STOUP_INSTALL_DAEMON);
		return 0;
	}
	if (in_path(dst, PATH_MAX))
		return 0;
	return stoup_error_set(err, -ENOENT,
		"stoupd was not found (%s, $PATH): install it, or set STOUPD=/path/to/stoupd",
		STOUP_INSTALL_DAEMON);
}

/* ---- in the child: async-signal-safe calls only ---------------------------------------------- */

/* Like fork, but without a signal at its end and without handlers. The two clones' sum of effects
 * is an orphan that init reaps. */
static pid_t clone_quietly(void)
{
	return (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL);
}

static void close_from(int first, int limit)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, (unsigned int)first, ~0U, 0U) == 0)
		return;
#endif
	for (int fd = first; fd < limit; fd++)
		close(fd);
}

static void reset_process(void)
{
	struct sigaction action;
	cpu_set_t all;
	sigset_t none;

	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_DFL;
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	umask(022);
}

/* A descriptor of ours may have any number, 0 to 3 included: lift all above them before placing
 * them. */
static int place_fds(const struct child *c)
{
	int ready = fcntl(c->pipe_fd, F_DUPFD, READY_FD + 1);
	int log = fcntl(c->log_fd, F_DUPFD, READY_FD + 1);
	int null = fcntl(c->null_fd, F_DUPFD, READY_FD + 1);

	if (ready < 0 || log < 0 || null < 0)
		return -1;
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0 || dup2(ready, READY_FD) < 0)
		return -1;
	close_from(READY_FD + 1, c->fd_limit);
	return 0;
}

static void say(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) < 0)
		return;
}

static void daemon_exec(const struct child *c) __attribute__((noreturn));
static void daemon_exec(const struct child *c)
{
	reset_process();
	if (chdir("/") < 0 || place_fds(c) < 0) {
		say(c->pipe_fd, "the descriptors of the daemon could not be set up\n");
		_exit(127);
	}
	execv(c->args[0], c->args);
	say(READY_FD, "stoupd could not be executed: ");
	say(READY_FD, c->args[0]);
	_exit(127);
}

static void middle_run(const struct child *c) __attribute__((noreturn));
static void middle_run(const struct child *c)
{
	pid_t pid;

	setsid();
	pid = clone_quietly();
	if (pid == 0)
		daemon_exec(c);
	_exit(pid < 0 ? 1 : 0);
}

/* ---- in the host ----------------------------------------------------------------------------- */

/* Read until the pipe's end or a whole "ready" line. Bytes read, or a negative errno. */
static int read_ready(int fd, char *dst, size_t cap, uint64_t deadline_ns)
{
	size_t used = 0;

	while (used + 1 < cap) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = stoup_client_now();
		uint64_t left_ms = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;
		ssize_t len;

		if (left_ms == 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, left_ms > 1000 ? 1000 : (int)left_ms) <= 0)
			continue;
		len = read(fd, dst + used, cap - 1 - used);
		if (len < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (len == 0)
			break;
		if (len > 0)
			used += (size_t)len;
		if (used >= 6 && memcmp(dst, "ready\n", 6) == 0)
			break;
	}
	dst[used] = 0;
	return (int)used;
}

/* Open the log to append to. It is not emptied: a daemon that runs or ends may still write to it.
 * *ret_end: what comes behind that is news. */
static int log_open(const char *path, off_t *ret_end)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return fd;
	*ret_end = lseek(fd, 0, SEEK_END);
	if (*ret_end > LOG_CAP && ftruncate(fd, 0) == 0)
		*ret_end = 0;
	return fd;
}

/* The last line of the log behind `begin`, for a daemon that ended without a word. */
static void log_tail(const char *path, off_t begin, char *dst, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t end;
	ssize_t len;
	char *line;

	dst[0] = 0;
	if (fd < 0)
		return;
	end = lseek(fd, 0, SEEK_END);
	if (end - begin > (off_t)(cap - 1))
		begin = end - (off_t)(cap - 1);
	len = pread(fd, dst, cap - 1, begin);
	close(fd);
	dst[len > 0 ? len : 0] = 0;
	while (len > 0 && dst[len - 1] == '\n')
		dst[--len] = 0;
	line = strrchr(dst, '\n');
	if (line)
		memmove(dst, line + 1, strlen(line + 1) + 1);
}

static int wait_ready(const struct stoup_spawn *how, int fd, off_t log_end, uint64_t deadline_ns,
	struct stoup_error *err)
{
	char text[STOUP_ERROR_TEXT_CAP];
	int len = read_ready(fd, text, sizeof(text), deadline_ns);

	if (len == -ETIMEDOUT)
		return stoup_error_set(err, len,
			"the automatic daemon of %.120s was not ready in time; its log: %.90s",
			how->store_path, how->log_path);
	if (len < 0)
		return stoup_error_set(err, len, "pipe to stoupd: %s", strerror(-len));
	if (strncmp(text, "ready\n", 6) == 0)
		return 0;
	while (len > 0 && text[len - 1] == '\n')
		text[--len] = 0;
	if (strncmp(text, HELD, strlen(HELD)) == 0)
		return stoup_error_set(err, -EEXIST, "%s", text + strlen(HELD));
	if (len == 0)
		log_tail(how->log_path, log_end, text, sizeof(text));
	return stoup_error_set(err, -ECONNABORTED, "stoupd did not start: %s",
		text[0] ? text : "it ended without a word");
}

static void child_args(struct child *c, char *daemon, char *ready, const struct stoup_spawn *how)
{
	/* execv does not write to its arguments; its type predates const. */
	const char *args[] = {daemon, "--store", how->store_path, "--pool", how->pool, "--auto",
		"--backing", "memfd", "--ready-fd", ready, how->pool_len ? "--size" : NULL, c->size,
		NULL};

	snprintf(c->size, sizeof(c->size), "%llu", (unsigned long long)how->pool_len);
	memcpy(c->args, args, sizeof(args));
}

/* Clone, and reap the middle child. 0 or a negative errno. */
static int child_start(const struct child *c)
{
	pid_t pid = clone_quietly();
	int status = 0;

	if (pid == 0)
		middle_run(c);
	if (pid < 0)
		return -errno;
	/* __WALL: a child without exit signal. A host that ignores SIGCHLD is told ECHILD at its
	 * end. */
	while (waitpid(pid, &status, __WALL) < 0) {
		if (errno != EINTR)
			return 0;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EAGAIN;
}

int stoup_spawn(const struct stoup_spawn *how, uint64_t deadline_ns, struct stoup_error *err)
{
	char daemon[PATH_MAX], ready[] = {'0' + READY_FD, 0};
	int fds[2], rc = find_daemon(how->daemon, daemon, err);
	long limit = sysconf(_SC_OPEN_MAX);
	off_t log_end = 0;
	struct child c;

	if (rc < 0)
		return rc;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return stoup_client_errno(err, "pipe to stoupd");
	c.pipe_fd = fds[1];
	c.fd_limit = limit > 0 && limit < FD_SCAN_CAP ? (int)limit : FD_SCAN_CAP;
	c.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	c.log_fd = c.null_fd < 0 ? -1 : log_open(how->log_path, &log_end);
	if (c.log_fd < 0) {
		rc = stoup_client_errno(err, c.null_fd < 0 ? "/dev/null" : how->log_path);
		goto out_close;
	}
	child_args(&c, daemon, ready, how);
	rc = child_start(&c);
	close(fds[1]);
	fds[1] = -1;
	if (rc < 0)
		rc = stoup_error_set(
			err, rc, "a process for stoupd could not be made: %s", strerror(-rc));
	else
		rc = wait_ready(how, fds[0], log_end, deadline_ns, err);
out_close:
	close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	if (c.null_fd >= 0)
		close(c.null_fd);
	if (c.log_fd >= 0)
		close(c.log_fd);
	return rc;
}
