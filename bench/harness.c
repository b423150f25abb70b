/* SPDX-License-Identifier: Apache-2.0 */
/* harness.c - clocks, files, contenders in turn, JSON lines. */
#include "bench/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "shm/json.h"

#define HUGE_LEN ((size_t)2 << 20)

struct bench_settings bench_settings;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t bench_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t bench_cpu(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void bench_die(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fputs("stoup-bench: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void *bench_alloc(size_t len)
{
	size_t whole = (len + HUGE_LEN - 1) & ~(HUGE_LEN - 1);
	uint8_t *at = mmap(
		NULL, whole + HUGE_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		bench_die("no memory for %zu bytes", len);
	at = (uint8_t *)(((uintptr_t)at + HUGE_LEN - 1) & ~(uintptr_t)(HUGE_LEN - 1));
	madvise(at, whole, MADV_HUGEPAGE);
	memset(at, 0, whole);
	return at;
}

/* The slack in front of it was never touched: addresses, no memory. */
void bench_free(void *at, size_t len)
{
	if (at)
		munmap(at, (len + HUGE_LEN - 1) & ~(HUGE_LEN - 1));
}

/* ---- files ----------------------------------------------------------------------------------- */

const char *bench_path(const char *name)
{
	static char texts[4][4096];
	static unsigned next;
	char *text = texts[next++ % 4];

	if (snprintf(text, sizeof(texts[0]), "%s/%s", bench_settings.work, name) >=
		(int)sizeof(texts[0]))
		bench_die("%s/%s is too long", bench_settings.work, name);
	return text;
}

void bench_write_file(const char *path, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		bench_die("%s: %s", path, strerror(errno));
	while (len > 0) {
		ssize_t n = write(fd, at, len < ((size_t)1 << 30) ? len : (size_t)1 << 30);

		if (n <= 0)
			bench_die("%s: %s", path, n < 0 ? strerror(errno) : "nothing written");
		at += n;
		len -= (size_t)n;
	}
	if (close(fd) < 0)
		bench_die("%s: %s", path, strerror(errno));
}

const void *bench_map_file(const char *path, size_t *ret_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *base;

	if (fd < 0 || fstat(fd, &st) < 0)
		bench_die("%s: %s", path, strerror(errno));
	base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		bench_die("mapping %s: %s", path, strerror(errno));
	close(fd);
	*ret_len = (size_t)st.st_size;
	return base;
}

void bench_unmap(const void *base, size_t len)
{
	munmap((void *)(uintptr_t)base, len);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

void bench_remove(const char *path)
{
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
		bench_die("removing %s: %s", path, strerror(errno));
}

/* ---- contenders in turn ---------------------------------------------------------------------- */

static uint64_t sample(const struct bench_contender *c, uint64_t *ret_result)
{
	uint32_t pass_cnt = c->pass_cnt ? c->pass_cnt : 1;
	uint64_t began, ns;

	if (c->before)
		c->before(c->arg);
	began = bench_now();
	for (uint32_t i = 0; i < pass_cnt; i++)
		*ret_result = c->pass(c->arg);
	ns = bench_now() - began;
	if (c->after)
		c->after(c->arg);
	return ns / pass_cnt;
}

static void compare(const struct bench_case *what, const struct bench_contender *contenders,
	size_t idx, uint64_t result, uint64_t *expected, size_t *expected_idx)
{
	if (contenders[idx].unchecked)
		return;
	if (*expected_idx == SIZE_MAX) {
		*expected_idx = idx;
		*expected = result;
	} else if (result != *expected) {
		bench_die("%s, %s: %s computed %" PRIu64 ", %s %" PRIu64, what->row, what->name,
			contenders[idx].name, result, contenders[*expected_idx].name, *expected);
	}
}

static void print_samples(const struct bench_contender *contenders, size_t cnt, uint32_t rounds,
	const uint64_t *samples)
{
	const char *sep = "";

	for (size_t i = 0; i < cnt; i++) {
		if (!contenders[i].pass)
			continue;
		fputs(sep, stdout);
		stoup_json_string(stdout, contenders[i].name);
		putchar(':');
		putchar('[');
		for (uint32_t r = 0; r < rounds; r++) {
			fputs(r ? "," : "", stdout);
			if (samples[i * rounds + r])
				printf("%" PRIu64, samples[i * rounds + r]);
			else
				fputs("null", stdout);
		}
		putchar(']');
		sep = ",";
	}
}

static void print_case(const struct bench_case *what, const struct bench_contender *contenders,
	size_t cnt, uint32_t rounds, const uint64_t *samples)
{
	const char *sep = "";

	fputs("{\"kind\":\"samples\",\"row\":", stdout);
	stoup_json_string(stdout, what->row);
	fputs(",\"case\":", stdout);
	stoup_json_string(stdout, what->name);
	fputs(",\"data\":", stdout);
	stoup_json_string(stdout, what->data ? what->data : "");
	fputs(",\"reference\":", stdout);
	stoup_json_string(stdout, what->reference ? what->reference : "");
	printf(",\"records\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"ns\":{", what->record_cnt,
		what->byte_cnt);
	print_samples(contenders, cnt, rounds, samples);
	fputs("},\"passes\":{", stdout);
	for (size_t i = 0; i < cnt; i++) {
		if (!contenders[i].pass)
			continue;
		fputs(sep, stdout);
		stoup_json_string(stdout, contenders[i].name);
		printf(":%u", contenders[i].pass_cnt ? contenders[i].pass_cnt : 1);
		sep = ",";
	}
	fputs("},\"absent\":{", stdout);
	sep = "";
	for (size_t i = 0; i < cnt; i++) {
		if (contenders[i].pass)
			continue;
		fputs(sep, stdout);
		stoup_json_string(stdout, contenders[i].name);
		putchar(':');
		stoup_json_string(stdout, contenders[i].absent ? contenders[i].absent : "absent");
		sep = ",";
	}
	fputs("}}\n", stdout);
	fflush(stdout);
}

void bench_interleave(const struct bench_case *what, const struct bench_contender *contenders,
	size_t cnt, uint32_t rounds)
{
	uint64_t *samples = calloc(cnt * rounds, sizeof(*samples));
	uint64_t result = 0, expected = 0;
	size_t expected_idx = SIZE_MAX;

	if (!samples)
		bench_die("no memory for samples");
	for (size_t i = 0; i < cnt; i++) {
		struct bench_contender once = contenders[i];

		once.pass_cnt = 1;
		if (!once.pass)
			continue;
		sample(&once, &result);
		compare(what, contenders, i, result, &expected, &expected_idx);
	}
	for (uint32_t r = 0; r < rounds; r++) {
		for (size_t i = 0; i < cnt; i++) {
			const struct bench_contender *c = &contenders[i];

			if (!c->pass || (c->every && r % c->every))
				continue;
			samples[i * rounds + r] = sample(c, &result);
			compare(what, contenders, i, result, &expected, &expected_idx);
		}
	}
	print_case(what, contenders, cnt, rounds, samples);
	free(samples);
}

/* ---- other results --------------------------------------------------------------------------- */

static int cmp_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_head(const char *kind, const char *row, const char *name)
{
	printf("{\"kind\":\"%s\",\"row\":", kind);
	stoup_json_string(stdout, row);
	fputs(",\"case\":", stdout);
	stoup_json_string(stdout, name);
}

void bench_latency(const char *row, const char *name, uint64_t *samples, size_t cnt)
{
	if (cnt == 0)
		bench_die("%s, %s: no samples", row, name);
	qsort(samples, cnt, sizeof(*samples), cmp_u64);
	print_head("latency", row, name);
	printf(",\"count\":%zu,\"p50\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"p999\":%" PRIu64
	       ",\"max\":%" PRIu64 "}\n",
		cnt, samples[cnt / 2], samples[cnt * 99 / 100], samples[cnt * 999 / 1000],
		samples[cnt - 1]);
	fflush(stdout);
}

void bench_values(
	const char *row, const char *name, const struct bench_value *values, size_t value_cnt)
{
	print_head("values", row, name);
	fputs(",\"values\":{", stdout);
	for (size_t i = 0; i < value_cnt; i++) {
		fputs(i ? "," : "", stdout);
		stoup_json_string(stdout, values[i].name);
		printf(":%.9g", values[i].value);
	}
	fputs("}}\n", stdout);
	fflush(stdout);
}

void bench_absent(const char *row, const char *name, const char *why)
{
	print_head("absent", row, name);
	fputs(",\"why\":", stdout);
	stoup_json_string(stdout, why);
	fputs("}\n", stdout);
	fflush(stdout);
}

void bench_note(const char *row, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	printf("{\"kind\":\"note\",\"row\":");
	stoup_json_string(stdout, row);
	fputs(",\"text\":", stdout);
	stoup_json_string(stdout, text);
	fputs("}\n", stdout);
	fflush(stdout);
}
