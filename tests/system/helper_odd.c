/* SPDX-License-Identifier: Apache-2.0 */
/* helper_odd.c - a consumer that holds leases and then does what programs do with their processes.
 *
 * usage: helper_odd POOL SERIES MODE
 * Holds three spans, prints "holding", reads a line, does MODE, prints "done PID" (of the process that
 * MODE made, or 0), waits for the end of standard input, says whether its spans are unchanged, and ends
 * without detaching.
 *   exec     becomes another program, which sleeps: nothing more is printed
 *   close    closes all descriptors but the standard ones
 *   fork     a child that keeps all it inherited and sleeps
 *   daemon   double fork, session of its own, all descriptors closed; the first process ends at once
 *   spawn    starts another program, which sleeps
 *   pass     passes socket and doorbell to a process that was there before
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "consumer/client.h"
#include "shm/wire.h"

#define HELD_CNT 3

extern char **environ;

static struct stoup_span spans[HELD_CNT];
static struct stoup_lease leases[HELD_CNT];

static uint64_t held_sum(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (int s = 0; s < HELD_CNT; s++)
		for (uint64_t i = 0; i < spans[s].record_cnt * spans[s].stride; i++)
			hash = (hash ^ ((const unsigned char *)spans[s].base)[i]) *
			       UINT64_C(0x100000001b3);
	return hash;
}

static void die(const char *what)
{
	printf("%s\n", what);
	exit(1);
}

static struct stoup *hold(const char *pool, const char *name)
{
	struct stoup_error err = {0};
	struct stoup_series series;
	struct stoup_cursor *cur;
	struct stoup *st;

	if (stoup_attach(pool, NULL, &st, &err) < 0 ||
		stoup_series_find(st, name, &series, &err) < 0 ||
		stoup_scan(st, &series, NULL, &cur, &err) < 0)
		die(err.text);
	for (int i = 0; i < HELD_CNT; i++)
		if (stoup_next(cur, &spans[i]) != 1 || stoup_hold(&spans[i], &leases[i]) < 0)
			die(stoup_cursor_error(cur)->text);
	return st;
}

static void say_done(pid_t pid)
{
	printf("done %d\n", (int)pid);
	fflush(stdout);
}

/* All but the standard descriptors are closed there, so that only what was passed keeps anything. */
static pid_t heir_start(int *ret_fd)
{
	int fds[2], heirloom[2];
	uint32_t cnt;
	char byte;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) < 0)
		die("socketpair");
	pid = fork();
	if (pid == 0) {
		close(fds[1]);
		if (stoup_wire_recv(fds[0], &byte, 1, heirloom, 2, &cnt) != 1 || cnt != 2)
			_exit(1);
		close(0);
		close(1);
		for (;;)
			pause();
	}
	close(fds[0]);
	*ret_fd = fds[1];
	return pid;
}

static void daemonize(void)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds) < 0)
		die("pipe");
	if (fork() == 0) {
		setsid();
		pid = fork();
		if (pid == 0) {
			close_range(0, ~0U, 0);
			for (;;)
				pause();
		}
		if (write(fds[1], &pid, sizeof(pid)) < 0)
			_exit(1);
		_exit(0);
	}
	if (read(fds[0], &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		die("read");
	say_done(pid);
	_exit(0);
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		close(0);
		close(1);
		for (;;)
			pause();
	}
	return pid;
}

static pid_t spawn(void)
{
	char *argv[] = {(char[]){"sleep"}, (char[]){"1000"}, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclose(&actions, 0);
	posix_spawn_file_actions_addclose(&actions, 1);
	if (posix_spawnp(&pid, "sleep", &actions, NULL, argv, environ) != 0)
		die("posix_spawn");
	return pid;
}

static void act(struct stoup *st, const char *mode, pid_t heir, int heir_fd)
{
	if (strcmp(mode, "exec") == 0) {
		say_done(0);
		execlp("sleep", "sleep", "1000", (char *)NULL);
		die("exec");
	} else if (strcmp(mode, "close") == 0) {
		close_range(3, ~0U, 0);
		say_done(0);
	} else if (strcmp(mode, "fork") == 0) {
		say_done(child());
	} else if (strcmp(mode, "daemon") == 0) {
		daemonize();
	} else if (strcmp(mode, "spawn") == 0) {
		say_done(spawn());
	} else if (strcmp(mode, "pass") == 0) {
		const int fds[2] = {st->current->sock_fd, st->current->bell_fd};

		if (stoup_wire_send(heir_fd, "x", 1, fds, 2) < 0)
			die("sendmsg");
		say_done(heir);
	} else {
		say_done(0);
	}
}

int main(int argc, char **argv)
{
	struct stoup *st;
	pid_t heir = 0;
	int heir_fd = -1;
	uint64_t before;
	char line[64];

	if (argc != 4)
		return 2;
	if (strcmp(argv[3], "pass") == 0)
		heir = heir_start(&heir_fd);
	st = hold(argv[1], argv[2]);
	before = held_sum();
	printf("holding\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	act(st, argv[3], heir, heir_fd);
	while (read(STDIN_FILENO, line, sizeof(line)) > 0)
		;
	printf("%s\n", held_sum() == before ? "unchanged" : "CHANGED");
	fflush(stdout);
	_exit(0);
}
