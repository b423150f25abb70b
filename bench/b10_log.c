/* SPDX-License-Identifier: Apache-2.0 */
/* b10_log.c - B10: messages of 130 to 160 bytes as a log, one stream and ten processes over the same bytes.
 *
 *      stoup pool    a cursor over a pool that holds all of it
 *      stoup direct  a cursor over the volume itself
 *      mapped file   [length][bytes][length][bytes] ... in the page cache, walked in place
 *      read file     the same through a buffer of 256 KiB, as a log is usually read
 *
 * Of each message the length and its first and last eight bytes are taken, so that all of it was there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench/harness.h"
#include "bench/rig_text.h"

#define SERIES      "BENCH/ONE/frames"
#define FULL_CNT    1000000u
#define FROM_LEN    130u
#define TO_LEN      160u
#define PROCESS_CNT 10u
#define BUFFER_LEN  (256u << 10)

static inline uint64_t take(const uint8_t *bytes, uint32_t len)
{
	uint64_t first, last;

	memcpy(&first, bytes, sizeof(first));
	memcpy(&last, bytes + len - sizeof(last), sizeof(last));
	return len + (first ^ last);
}

/* ---- the pool --------------------------------------------------------------------------------- */

struct scan {
	struct stoup *st;
	struct stoup_series series;
	struct stoup_range range;
};

static void *scan_make(const void *pool)
{
	struct scan *scan = calloc(1, sizeof(*scan));

	if (!scan)
		bench_die("no memory");
	scan->st = bench_attach(pool, NULL, SERIES, &scan->series);
	return scan;
}

static void *direct_make(const void *pool)
{
	struct scan *scan = scan_make(pool);

	scan->range.flags = STOUP_DIRECT;
	return scan;
}

static void scan_free(struct scan *scan)
{
	stoup_detach(scan->st);
	free(scan);
}

static uint64_t scan_pass(void *arg)
{
	const struct scan *scan = arg;
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint64_t sum = 0;
	int rc;

	if (stoup_scan(scan->st, &scan->series, &scan->range, &cur, &err) < 0)
		bench_die("%s", err.text);
	while ((rc = stoup_next(cur, &span)) > 0)
		for (uint64_t i = 0; i < span.record_cnt; i++) {
			struct stoup_message message = stoup_message_at(&span, i);

			sum += take(message.bytes, message.len);
		}
	if (rc < 0)
		bench_die("%s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	return sum;
}

/* ---- a plain file ----------------------------------------------------------------------------- */

struct file {
	int fd;
	const uint8_t *base;
	size_t len;
	uint8_t *buffer;
};

static void file_write(const char *path, const struct bench_texts *texts)
{
	size_t len = bench_texts_len(texts) + texts->cnt * sizeof(uint32_t), at = 0;
	uint8_t *bytes = bench_alloc(len);

	for (uint64_t i = 0; i < texts->cnt; i++) {
		uint32_t text_len = (uint32_t)(texts->off[i + 1] - texts->off[i]);

		memcpy(bytes + at, &text_len, sizeof(text_len));
		memcpy(bytes + at + sizeof(text_len), texts->bytes + texts->off[i], text_len);
		at += sizeof(text_len) + text_len;
	}
	bench_write_file(path, bytes, len);
	bench_free(bytes, len);
}

static void *file_make(const void *path)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		bench_die("no memory");
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	file->buffer = malloc(BUFFER_LEN);
	if (file->fd < 0 || !file->buffer)
		bench_die("%s: %s", (const char *)path, strerror(errno));
	file->base = bench_map_file(path, &file->len);
	return file;
}

static void file_free(struct file *file)
{
	bench_unmap(file->base, file->len);
	close(file->fd);
	free(file->buffer);
	free(file);
}

/* The whole messages of bytes[0..len): what they come to; *ret_used is behind the last one. */
static inline uint64_t frames_take(const uint8_t *bytes, size_t len, size_t *ret_used)
{
	uint64_t sum = 0;
	size_t at = 0;
	uint32_t frame_len;

	while (len - at >= sizeof(frame_len)) {
		memcpy(&frame_len, bytes + at, sizeof(frame_len));
		if (frame_len > len - at - sizeof(frame_len))
			break;
		if (frame_len < 8)
			bench_die("a frame of %u bytes", frame_len);
		sum += take(bytes + at + sizeof(frame_len), frame_len);
		at += sizeof(frame_len) + frame_len;
	}
	*ret_used = at;
	return sum;
}

static uint64_t mapped_pass(void *arg)
{
	const struct file *file = arg;
	size_t used;

	return frames_take(file->base, file->len, &used);
}

static uint64_t read_pass(void *arg)
{
	const struct file *file = arg;
	size_t have = 0, used;
	uint64_t sum = 0;
	off_t at = 0;
	ssize_t n;

	while ((n = pread(file->fd, file->buffer + have, BUFFER_LEN - have, at)) > 0) {
		at += n;
		have += (size_t)n;
		sum += frames_take(file->buffer, have, &used);
		have -= used;
		memmove(file->buffer, file->buffer + used, have);
	}
	return sum;
}

/* ---- the row ---------------------------------------------------------------------------------- */

#define CONTENDER_CNT 4

static const struct {
	const char *name;
	bench_worker_make make;
	bench_pass pass;
	int file;
} ways[CONTENDER_CNT] = {
	{"stoup pool", scan_make, scan_pass, 0},
	{"stoup direct", direct_make, scan_pass, 0},
	{"mapped file", file_make, mapped_pass, 1},
	{"read file", file_make, read_pass, 1},
};

static void one_stream(struct bench_case *what, const char *pool, const char *path)
{
	struct bench_contender contenders[CONTENDER_CNT];

	for (size_t i = 0; i < CONTENDER_CNT; i++)
		contenders[i] = (struct bench_contender){.name = ways[i].name,
			.pass = ways[i].pass,
			.arg = ways[i].make(ways[i].file ? path : pool)};
	what->name = "one stream";
	bench_interleave(what, contenders, CONTENDER_CNT, bench_rounds());
	for (size_t i = 0; i < CONTENDER_CNT; i++) {
		if (ways[i].file)
			file_free(contenders[i].arg);
		else
			scan_free(contenders[i].arg);
	}
}

static void ten_streams(struct bench_case *what, const char *pool, const char *path)
{
	struct bench_team teams[CONTENDER_CNT];
	struct bench_contender contenders[CONTENDER_CNT];

	for (size_t i = 0; i < CONTENDER_CNT; i++) {
		bench_team_start(&teams[i], PROCESS_CNT, ways[i].make, ways[i].file ? path : pool,
			ways[i].pass);
		contenders[i] = (struct bench_contender){
			.name = ways[i].name, .pass = bench_team_pass, .arg = &teams[i]};
	}
	what->name = "ten streams";
	what->record_cnt *= PROCESS_CNT;
	what->byte_cnt *= PROCESS_CNT;
	bench_interleave(what, contenders, CONTENDER_CNT, bench_rounds());
	for (size_t i = 0; i < CONTENDER_CNT; i++)
		bench_team_end(&teams[i]);
}

void bench_b10_log(void)
{
	struct bench_texts texts = bench_texts_make(bench_scale(FULL_CNT, 5000), FROM_LEN, TO_LEN);
	struct bench_case what = {.row = "B10",
		.data = "messages of 130 to 160 bytes, length and sixteen bytes of each taken",
		.record_cnt = texts.cnt,
		.byte_cnt = bench_texts_len(&texts),
		.reference = "mapped file"};
	const char *store = bench_path("b10.store"), *path = bench_path("b10.log");
	struct bench_daemon daemon;

	bench_texts_store(store, SERIES, "frames", &texts);
	file_write(path, &texts);
	bench_daemon_start(
		&daemon, store, bench_texts_len(&texts) + texts.cnt * 40 + (64u << 20), NULL);
	one_stream(&what, daemon.pool, path);
	ten_streams(&what, daemon.pool, path);
	bench_daemon_stop(&daemon);
	bench_remove(store);
	bench_remove(path);
	bench_texts_free(&texts);
}
