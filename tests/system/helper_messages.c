/* SPDX-License-Identifier: Apache-2.0 */
/* helper_messages.c - series of messages that follow from their numbers: stored, and scanned against a naive
 * reference.
 *
 * usage: helper_messages put STORE CODEC BLOCK ORDER SERIES SCHEMA SEED FIRST CNT [SERIES SCHEMA ...]
 *        helper_messages scan POOL SERIES SCHEMA SEED CNT [direct] [queries N] [pause] [fork] [backward]
 *        helper_messages count POOL SERIES [direct]    what can be read, over what is damaged
 *
 * Message i of a seed has the key KEY0 + i / 3 * 1000 (ties of three, over all borders) and bytes by its
 * schema. A scan compares every message with what it must be; `pause` waits for a line on stdin after the
 * second span, which the caller uses to end the daemon, and keeps that span to look at it again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "consumer/stoup.h"
#include "producer/import.h"

#define KEY0    INT64_C(1700000000000000000)
#define LEN_CAP 70000u

static uint8_t bytes[LEN_CAP + 64];

static _Noreturn void die(const char *what, const char *text)
{
	fprintf(stderr, "helper_messages: %s: %s\n", what, text);
	exit(1);
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static int64_t key_of(uint64_t i)
{
	return KEY0 + (int64_t)(i / 3) * 1000;
}

/* Message i into `bytes`; its length. */
static uint32_t make(const char *schema, uint64_t seed, uint64_t i)
{
	uint64_t r = mix(seed * 1000003 + i);
	uint32_t len = 0;

	if (strcmp(schema, "json") == 0)
		return (uint32_t)snprintf((char *)bytes, LEN_CAP,
			"{\"n\":%" PRIu64 ",\"p\":\"%" PRIu64 ".%02u\",\"l\":[%.*s0]}", i,
			r % 90000, (unsigned)(r >> 20) % 100, (int)(2 * (r >> 30) % 60),
			"1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,");
	/* None, short ones, and now and then one as long as a block. */
	if (r % 11 > 0)
		len = r % 997 == 1 ? LEN_CAP : (uint32_t)(r >> 32) % 50;
	for (uint32_t b = 0; b < len; b += 8) {
		uint64_t word = mix(r + b);

		memcpy(bytes + b, &word, 8);
	}
	return len;
}

/* ---- storing ---------------------------------------------------------------------------------- */

static int put_all(int argc, char **argv)
{
	struct stoup_import_options options = {.store_path = argv[0], .quiet = 1, .threads = 2};
	struct stoup_import *import;
	struct stoup_error err = {0};
	int rc = stoup_encoding_parse(argv[1], NULL, &options.encoding);

	options.block_len = (uint32_t)strtoul(argv[2], NULL, 10);
	options.order = strcmp(argv[3], "keep") == 0 ? STOUP_ORDER_KEEP : STOUP_ORDER_REFUSE;
	options.replace = strcmp(argv[3], "replace") == 0;
	if (rc < 0 || stoup_import_begin(&options, &import, &err) < 0)
		die("begin", err.text);
	for (int a = 4; a + 4 < argc; a += 5) {
		uint64_t seed = strtoull(argv[a + 2], NULL, 10);
		uint64_t first = strtoull(argv[a + 3], NULL, 10),
			 end = first + strtoull(argv[a + 4], NULL, 10);
		int64_t series = stoup_import_series(
			import, argv[a], stoup_schema_by_name(argv[a + 1]), &err);

		for (uint64_t i = first; series >= 0 && i < end; i++) {
			uint32_t len = make(argv[a + 1], seed, i);

			if (stoup_import_put_message(import, (uint32_t)series, key_of(i), bytes,
				    len, NULL, &err) < 0)
				die("put", err.text);
		}
		if (series < 0)
			die("series", err.text);
	}
	if (stoup_import_finish(import, &err) < 0)
		die("finish", err.text);
	stoup_import_destroy(import);
	return 0;
}

/* ---- scanning --------------------------------------------------------------------------------- */

struct job {
	struct stoup *st;
	struct stoup_series series;
	const char *schema;
	uint64_t seed, cnt;
	uint32_t flags;
};

static void check_message(const struct job *job, const struct stoup_span *span, uint64_t i)
{
	struct stoup_message message = stoup_message_at(span, i);
	uint64_t no = span->ordinal + i;
	uint32_t len = make(job->schema, job->seed, no);
	char text[100];

	if (message.key == key_of(no) && message.len == len &&
		memcmp(message.bytes, bytes, len) == 0 && (uintptr_t)message.bytes % 8 == 0)
		return;
	snprintf(text, sizeof(text), "message %" PRIu64 ": key %" PRId64 ", %u bytes, not %u", no,
		message.key, message.len, len);
	die("other bytes", text);
}

static void check_span(const struct job *job, const struct stoup_span *span)
{
	for (uint64_t i = 0; i < span->record_cnt; i++)
		check_message(job, span, i);
}

/* The naive way: look at all. */
static void check_bound(const struct job *job, const struct stoup_span *span, int64_t key)
{
	uint64_t i = 0;

	while (i < span->record_cnt && key_of(span->ordinal + i) < key)
		i++;
	if (stoup_message_bound(span, key) != i)
		die(job->series.name, "stoup_message_bound is not the first one at or after");
}

/* Messages that the range has, all of them: from `*low` on to `*high`. */
static void naive(const struct job *job, int64_t from, int64_t to, uint64_t *low, uint64_t *high)
{
	*low = 0;
	while (*low < job->cnt && from && key_of(*low) < from)
		(*low)++;
	*high = *low;
	while (*high < job->cnt && (!to || key_of(*high) < to))
		(*high)++;
}

static void one_range(const struct job *job, int64_t from, int64_t to, uint32_t flags)
{
	struct stoup_range range = {.from_ns = from, .to_ns = to, .flags = job->flags | flags};
	struct stoup_cursor *cur;
	struct stoup_error err = {0};
	struct stoup_span span;
	uint64_t low, high;
	int rc;

	naive(job, from, to, &low, &high);
	if (stoup_scan(job->st, &job->series, &range, &cur, &err) < 0)
		die("scan", err.text);
	while ((rc = stoup_next(cur, &span)) > 0) {
		if (span.stride != STOUP_MESSAGE_STRIDE || low + span.record_cnt > high ||
			(flags ? span.ordinal + span.record_cnt != high : span.ordinal != low))
			die("a span", "is not what comes next");
		check_span(job, &span);
		check_bound(job, &span, from ? from + 1000 : key_of(span.ordinal + 1));
		if (flags)
			high = span.ordinal;
		else
			low += span.record_cnt;
	}
	if (rc < 0)
		die("next", stoup_cursor_error(cur)->text);
	if (low != high)
		die("a range", "messages are missing");
	stoup_cursor_close(cur);
}

static void queries(const struct job *job, uint64_t cnt)
{
	for (uint64_t q = 0; q < cnt; q++) {
		uint64_t a = mix(q) % (job->cnt + 6),
			 b = a + mix(q + cnt) % (q % 4 ? 40 : job->cnt);
		int64_t off = (int64_t)(mix(q * 7) % 3) - 1;

		one_range(job, q % 13 ? key_of(a) + off : 0, q % 17 ? key_of(b) + off : 0,
			q % 2 ? STOUP_BACKWARD : 0);
	}
}

/* In a child with the parent's leases. */
static void in_child(const struct job *job, const struct stoup_span *span)
{
	struct stoup_fork fork_state;
	struct stoup_error err = {0};
	int status;
	pid_t pid;

	if (stoup_fork_prepare(job->st, &fork_state, &err) < 0)
		die("fork", err.text);
	pid = fork();
	if (pid == 0) {
		if (stoup_fork_child(&fork_state, &err) < 0)
			die("child", err.text);
		check_span(job, span);
		one_range(job, 0, 0, 0);
		_exit(0);
	}
	stoup_fork_parent(&fork_state, pid > 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die("child", "did not end well");
}

/* A scan that is stopped after its second span, while the caller does something to the daemon. */
static void paused(const struct job *job, uint32_t flags, int forks)
{
	struct stoup_range range = {.flags = job->flags | flags};
	struct stoup_cursor *cur;
	struct stoup_error err = {0};
	struct stoup_span span, kept;
	struct stoup_lease lease;
	uint64_t seen = 0, span_cnt = 0;
	int rc;

	if (stoup_scan(job->st, &job->series, &range, &cur, &err) < 0)
		die("scan", err.text);
	while ((rc = stoup_next(cur, &span)) > 0) {
		if (span.ordinal != (flags ? job->cnt - seen - span.record_cnt : seen))
			die("a span", "is not what comes next");
		check_span(job, &span);
		seen += span.record_cnt;
		if (++span_cnt != 2)
			continue;
		kept = span;
		if (stoup_hold(&span, &lease) < 0)
			die("hold", "failed");
		if (forks)
			in_child(job, &kept);
		puts("middle");
		fflush(stdout);
		(void)getchar();
	}
	if (rc < 0)
		die("next", stoup_cursor_error(cur)->text);
	if (seen != job->cnt || span_cnt < 3)
		die("a scan", "messages are missing");
	check_span(job, &kept);
	stoup_release(&lease);
	stoup_cursor_close(cur);
}

static int scan_all(int argc, char **argv)
{
	struct job job = {.schema = argv[2],
		.seed = strtoull(argv[3], NULL, 10),
		.cnt = strtoull(argv[4], NULL, 10)};
	struct stoup_error err = {0};
	uint32_t backward = 0;
	uint64_t query_cnt = 0;
	int pauses = 0, forks = 0;

	for (int a = 5; a < argc; a++) {
		if (strcmp(argv[a], "direct") == 0)
			job.flags = STOUP_DIRECT;
		else if (strcmp(argv[a], "backward") == 0)
			backward = STOUP_BACKWARD;
		else if (strcmp(argv[a], "queries") == 0 && a + 1 < argc)
			query_cnt = strtoull(argv[++a], NULL, 10);
		pauses |= strcmp(argv[a], "pause") == 0;
		forks |= strcmp(argv[a], "fork") == 0;
	}
	if (stoup_attach(argv[0], NULL, &job.st, &err) < 0 ||
		stoup_series_find(job.st, argv[1], &job.series, &err) < 0)
		die("attach", err.text);
	if (job.series.record_cnt != job.cnt || job.series.first_key != key_of(0) ||
		job.series.last_key != key_of(job.cnt - 1))
		die(argv[1], "counts or keys of the series are not right");
	if (pauses)
		paused(&job, backward, forks);
	else {
		one_range(&job, 0, 0, 0);
		one_range(&job, 0, 0, STOUP_BACKWARD);
		queries(&job, query_cnt);
	}
	if (stoup_detach(job.st) < 0)
		die("detach", "something is held");
	puts("good");
	return 0;
}

/* Go on behind damage, tell each, and count what is good and what was left out. */
static int count_all(int argc, char **argv)
{
	struct stoup_range range = {.flags = argc > 2 ? STOUP_DIRECT : 0};
	struct stoup_series series;
	struct stoup_cursor *cur;
	struct stoup_error err = {0};
	struct stoup_span span;
	struct stoup *st;
	uint64_t seen = 0, len = 0;
	int64_t left_out = 0;
	int rc;

	if (stoup_attach(argv[0], NULL, &st, &err) < 0 ||
		stoup_series_find(st, argv[1], &series, &err) < 0 ||
		stoup_scan(st, &series, &range, &cur, &err) < 0)
		die("count", err.text);
	while ((rc = stoup_next(cur, &span)) != 0) {
		if (rc < 0) {
			printf("%d %s\n", rc, stoup_cursor_error(cur)->text);
			left_out += stoup_cursor_skip(cur);
			continue;
		}
		seen += span.record_cnt;
		for (uint64_t i = 0; i < span.record_cnt; i++)
			len += stoup_message_at(&span, i).len;
	}
	printf("%" PRIu64 " %" PRId64 " %" PRIu64 "\n", seen, left_out, len);
	stoup_cursor_close(cur);
	stoup_detach(st);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && strcmp(argv[1], "count") == 0)
		return count_all(argc - 2, argv + 2);
	if (argc > 10 && strcmp(argv[1], "put") == 0)
		return put_all(argc - 2, argv + 2);
	if (argc > 6 && strcmp(argv[1], "scan") == 0)
		return scan_all(argc - 2, argv + 2);
	fputs("usage: see the head of helper_messages.c\n", stderr);
	return 2;
}
