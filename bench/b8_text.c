/* SPDX-License-Identifier: Apache-2.0 */
/* b8_text.c - B8: what a text costs, by how one takes it out of its message.
 *
 *      view                 pointer and length, in the pool
 *      thread-local buffer  copied into a buffer that is there, with a zero at its end
 *      allocate and copy    malloc, copied, with a zero at its end, and freed
 *
 * All take the length, the first and the last byte. The texts of one length are some hundred: they and their
 * copies stay in the caches, so that it is the way of taking them that is measured, and not the memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/harness.h"
#include "bench/rig_text.h"

#define TEXT_CNT 500u
#define LEN_CAP  1120u
#define PASS_CNT 200u

static const uint32_t lens[] = {35, 70, 140, 280, 560, 1120};

struct scan {
	struct stoup *st;
	struct stoup_series series;
};

/* What the program does with a text. The compiler knows nothing of it, so that no copy is left out. */
static inline uint64_t use(const char *text, size_t len)
{
	__asm__ volatile("" : "+r"(text), "+r"(len) : : "memory");
	return len + (uint8_t)text[0] + (uint8_t)text[len - 1];
}

typedef uint64_t (*text_fn)(const struct stoup_message *message);

static inline uint64_t spans_pass(const struct scan *scan, text_fn text)
{
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint64_t sum = 0;
	int rc;

	if (stoup_scan(scan->st, &scan->series, NULL, &cur, &err) < 0)
		bench_die("%s", err.text);
	while ((rc = stoup_next(cur, &span)) > 0)
		for (uint64_t i = 0; i < span.record_cnt; i++) {
			struct stoup_message message = stoup_message_at(&span, i);

			sum += text(&message);
		}
	if (rc < 0)
		bench_die("%s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	return sum;
}

static inline uint64_t text_view(const struct stoup_message *message)
{
	return use(message->bytes, message->len);
}

static inline uint64_t text_buffer(const struct stoup_message *message)
{
	static _Thread_local char buffer[LEN_CAP + 1];

	memcpy(buffer, message->bytes, message->len);
	buffer[message->len] = 0;
	return use(buffer, message->len);
}

static inline uint64_t text_allocated(const struct stoup_message *message)
{
	char *copy = malloc(message->len + 1);
	uint64_t value;

	if (!copy)
		bench_die("no memory for a text");
	memcpy(copy, message->bytes, message->len);
	copy[message->len] = 0;
	value = use(copy, message->len);
	free(copy);
	return value;
}

static uint64_t view_pass(void *scan)
{
	return spans_pass(scan, text_view);
}

static uint64_t buffer_pass(void *scan)
{
	return spans_pass(scan, text_buffer);
}

static uint64_t allocate_pass(void *scan)
{
	return spans_pass(scan, text_allocated);
}

static void run_len(uint32_t len)
{
	struct bench_texts texts = bench_texts_make(TEXT_CNT, len, len);
	const char *store = bench_path("b8.store");
	struct bench_daemon daemon;
	struct scan scan;
	uint32_t pass_cnt = (uint32_t)bench_scale(PASS_CNT, 2);
	struct bench_contender contenders[] = {
		{.name = "view", .pass = view_pass, .arg = &scan, .pass_cnt = pass_cnt},
		{.name = "thread-local buffer and copy",
			.pass = buffer_pass,
			.arg = &scan,
			.pass_cnt = pass_cnt},
		{.name = "allocate and copy",
			.pass = allocate_pass,
			.arg = &scan,
			.pass_cnt = pass_cnt},
	};
	char name[32];
	struct bench_case what = {.row = "B8",
		.name = name,
		.data = "texts in the pool, each taken once",
		.record_cnt = texts.cnt,
		.byte_cnt = bench_texts_len(&texts),
		.reference = "allocate and copy"};

	snprintf(name, sizeof(name), "%u bytes", len);
	bench_texts_store(store, "BENCH/ONE/frames", "frames", &texts);
	bench_daemon_start(&daemon, store, 32u << 20, NULL);
	scan.st = bench_attach(daemon.pool, NULL, "BENCH/ONE/frames", &scan.series);
	bench_interleave(
		&what, contenders, sizeof(contenders) / sizeof(contenders[0]), bench_rounds());
	stoup_detach(scan.st);
	bench_daemon_stop(&daemon);
	bench_remove(store);
	bench_texts_free(&texts);
}

void bench_b8_text(void)
{
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		run_len(lens[i]);
}
