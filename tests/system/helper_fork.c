/* SPDX-License-Identifier: Apache-2.0 */
/* helper_fork.c - a consumer that forks in the middle of its scan, with leases: both halves read on.
 *
 * usage: helper_fork POOL SERIES HOLD_CNT [--steps]
 *   --steps  print {"step": NAME} and wait for a line of standard input: "reading" with all leases taken,
 *            "prepared" before the fork, "joined" in the child; the parent gives all back and ends its scan
 *            before the child goes on
 *
 * Prints a line of JSON for the child, then one for the parent: records of the whole scan, sum of their
 * bytes, and whether what was held is unchanged. Exit status 1 when either could not go on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "consumer/stoup.h"

#define HOLD_CAP 16

struct half {
	struct stoup *st;
	struct stoup_cursor *cur;
	struct stoup_span spans[HOLD_CAP];
	struct stoup_lease leases[HOLD_CAP];
	uint64_t sums[HOLD_CAP];
	uint32_t hold_cnt, held_cnt;
	uint64_t records, sum;
	int steps;
};

static void step(const struct half *half, const char *name)
{
	char byte = 0;

	if (!half->steps)
		return;
	printf("{\"step\": \"%s\"}\n", name);
	fflush(stdout);
	while (byte != '\n' && read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static uint64_t sum_bytes(const struct stoup_span *span)
{
	const unsigned char *at = span->base;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (uint64_t i = 0; i < span->record_cnt * span->stride; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static int look(struct half *half, const struct stoup_span *span)
{
	uint64_t sum = sum_bytes(span);
	int rc;

	half->records += span->record_cnt;
	half->sum = half->sum * 31 + sum;
	if (half->held_cnt == half->hold_cnt)
		return 1;
	rc = stoup_hold(span, &half->leases[half->held_cnt]);
	if (rc < 0)
		return rc;
	half->spans[half->held_cnt] = *span;
	half->sums[half->held_cnt++] = sum;
	return 1;
}

/* Read until cnt blocks are held, or to the end. */
static int read_on(struct half *half, int to_the_end)
{
	struct stoup_span span;
	int rc = 1;

	while (rc > 0 && (to_the_end || half->held_cnt < half->hold_cnt)) {
		rc = stoup_next(half->cur, &span);
		if (rc > 0)
			rc = look(half, &span);
	}
	return rc;
}

static int finish(struct half *half, const char *who)
{
	int rc = read_on(half, 1), unchanged = 1;
	const char *text = rc < 0 ? stoup_cursor_error(half->cur)->text : "";

	for (uint32_t i = 0; i < half->held_cnt; i++) {
		unchanged &= sum_bytes(&half->spans[i]) == half->sums[i];
		if (stoup_release(&half->leases[i]) < 0)
			rc = -EPROTO;
	}
	printf("{\"who\": \"%s\", \"rc\": %d, \"records\": %" PRIu64 ", \"sum\": %" PRIu64
	       ", \"unchanged\": %s, \"text\": \"%s\"}\n",
		who, rc, half->records, half->sum, unchanged ? "true" : "false", text);
	fflush(stdout);
	stoup_cursor_close(half->cur);
	return stoup_detach(half->st) < 0 || rc < 0 || !unchanged;
}

static int child(struct half *half, struct stoup_fork *fork_state)
{
	struct stoup_error err = {0};
	int rc = stoup_fork_child(fork_state, &err);

	if (rc == 0) {
		step(half, "joined");
		return finish(half, "child");
	}
	printf("{\"who\": \"child\", \"rc\": %d, \"text\": \"%s\"}\n", rc, err.text);
	fflush(stdout);
	return 1;
}

static int open_all(struct half *half, char **argv, struct stoup_error *err)
{
	struct stoup_series series;
	int rc = stoup_attach(argv[1], NULL, &half->st, err);

	if (rc == 0)
		rc = stoup_series_find(half->st, argv[2], &series, err);
	if (rc == 0)
		rc = stoup_scan(half->st, &series, NULL, &half->cur, err);
	return rc;
}

int main(int argc, char **argv)
{
	static struct half half;
	struct stoup_fork fork_state;
	struct stoup_error err = {0};
	int rc, status = 0;
	pid_t pid;

	half.steps = argc == 5 && strcmp(argv[4], "--steps") == 0;
	if (argc != 4 + half.steps ||
		(half.hold_cnt = (uint32_t)strtoul(argv[3], NULL, 10)) > HOLD_CAP)
		return 2;
	rc = open_all(&half, argv, &err);
	if (rc == 0)
		rc = read_on(&half, 0);
	if (rc >= 0)
		step(&half, "reading");
	if (rc >= 0)
		rc = stoup_fork_prepare(half.st, &fork_state, &err);
	if (rc < 0) {
		printf("{\"who\": \"parent\", \"rc\": %d, \"text\": \"%s\"}\n", rc, err.text);
		return 1;
	}
	step(&half, "prepared");
	pid = fork();
	if (pid == 0)
		_exit(child(&half, &fork_state));
	if (stoup_fork_parent(&fork_state, pid > 0) < 0 || pid < 0)
		return 1;
	if (half.steps)
		rc = finish(&half, "parent");
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	if (!half.steps)
		rc = finish(&half, "parent");
	/* A child that a test killed is what it wanted. */
	return rc || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
}
