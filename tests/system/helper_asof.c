/* SPDX-License-Identifier: Apache-2.0 */
/* helper_asof.c - as-of lookups against a naive reference: a series is copied out by one plain scan, each lookup is
 * compared with a walk over the copy.
 *
 * usage: helper_asof POOL SERIES QUERIES [direct] [pause] [from NS] [to NS]
 *        helper_asof many POOL TIMES SERIES...    stoup_asof_all over all of them
 *
 * QUERIES lookups at random times, then in ascending, then in descending order; half of them strictly before. `pause`
 * waits for a line on stdin in the middle of the random ones, which the caller uses to end the daemon.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/stoup.h"

#define MANY_CAP 64

static struct stoup_error err;
static uint64_t seed = 88172645463325252u;

static _Noreturn void die(const char *what, const char *text)
{
	fprintf(stderr, "helper_asof: %s: %s\n", what, text);
	exit(1);
}

static uint64_t rnd(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* ---- the reference --------------------------------------------------------------------------- */

struct naive {
	struct stoup_series series;
	int64_t *keys;  /* running maxima */
	uint64_t *sums; /* of the records' bytes */
	uint64_t cnt;
	int64_t later_ns, from_ns, to_ns;
};

static uint64_t sum_of(const uint8_t *bytes, uint64_t len)
{
	uint64_t sum = 1469598103934665603u;

	for (uint64_t i = 0; i < len; i++)
		sum = (sum ^ bytes[i]) * 1099511628211u;
	return sum;
}

static int64_t record_key(const struct stoup_span *span, uint64_t i)
{
	int64_t key;

	if (span->schema->flags & STOUP_SCHEMA_VARIABLE)
		return stoup_message_at(span, i).key;
	memcpy(&key, (const uint8_t *)span->base + i * span->stride + span->schema->key_off, 8);
	return key;
}

static uint64_t record_sum(const struct stoup_span *span, uint64_t i)
{
	struct stoup_message message;

	if (!(span->schema->flags & STOUP_SCHEMA_VARIABLE))
		return sum_of((const uint8_t *)span->base + i * span->stride, span->stride);
	message = stoup_message_at(span, i);
	return sum_of(message.bytes, message.len) + (uint64_t)message.key;
}

static void naive_read(struct stoup *st, const char *name, struct naive *ret)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	int64_t highest = 0;
	int rc;

	if (stoup_series_find(st, name, &ret->series, &err) < 0 ||
		stoup_scan(st, &ret->series, NULL, &cur, &err) < 0)
		die(name, err.text);
	ret->cnt = 0;
	ret->keys = malloc((ret->series.record_cnt + 1) * sizeof(*ret->keys));
	ret->sums = malloc((ret->series.record_cnt + 1) * sizeof(*ret->sums));
	ret->later_ns = ret->series.schema->flags & STOUP_SCHEMA_BAR
	                        ? (int64_t)ret->series.schema->interval_ns
	                        : 0;
	if (!ret->keys || !ret->sums)
		die(name, "no memory");
	while ((rc = stoup_next(cur, &span)) > 0)
		for (uint64_t i = 0; i < span.record_cnt; i++) {
			int64_t key = record_key(&span, i);

			/* A value beyond the last key is an undefined time. */
			if (key > highest && key <= span.last_key)
				highest = key;
			ret->keys[ret->cnt] = highest;
			ret->sums[ret->cnt++] = record_sum(&span, i);
		}
	if (rc < 0)
		die(name, stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
}

/* Ordinal of the answer, or -1. */
static int64_t naive_find(const struct naive *naive, int64_t time_ns, int strict)
{
	int64_t found = -1;

	for (uint64_t i = 0; i < naive->cnt; i++) {
		int64_t key = naive->keys[i], known = key + naive->later_ns;

		if (known > time_ns || (strict && known == time_ns) ||
			(naive->to_ns != 0 && key >= naive->to_ns))
			break;
		if (key >= naive->from_ns)
			found = (int64_t)i;
	}
	return found;
}

/* ---- lookups --------------------------------------------------------------------------------- */

static int64_t time_of(const struct naive *naive)
{
	int64_t first = naive->keys[0], last = naive->keys[naive->cnt - 1];
	uint64_t way = rnd(10);

	if (way == 0)
		return rnd(2) ? first - (int64_t)rnd(3) : last + naive->later_ns + (int64_t)rnd(3);
	if (way == 1)
		return rnd(50) == 0 ? INT64_MAX
		                    : first + (int64_t)rnd((uint64_t)(last - first) + 1);
	return naive->keys[rnd(naive->cnt)] + naive->later_ns - 1 + (int64_t)rnd(3);
}

static void compare(const struct naive *naive, int64_t time_ns, int strict, int rc,
	const struct stoup_span *span)
{
	int64_t expected = naive_find(naive, time_ns, strict);

	if (rc == (expected >= 0) &&
		(rc == 0 || (span->ordinal == (uint64_t)expected && span->record_cnt == 1 &&
				    record_sum(span, 0) == naive->sums[expected])))
		return;
	fprintf(stderr,
		"helper_asof: %s, time %" PRId64 "%s: %d, record %" PRIu64 ", expected %" PRId64
		"\n",
		naive->series.name, time_ns, strict ? ", before it" : "", rc,
		rc > 0 ? span->ordinal : 0, expected);
	exit(1);
}

static void look(struct stoup_cursor *cur, const struct naive *naive, int64_t time_ns)
{
	int strict = (int)rnd(2);
	struct stoup_span span;
	int rc = strict ? stoup_asof_before(cur, time_ns, &span) : stoup_asof(cur, time_ns, &span);

	if (rc < 0)
		die(naive->series.name, stoup_cursor_error(cur)->text);
	compare(naive, time_ns, strict, rc, &span);
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void wait_line(void)
{
	char line[16];

	printf("middle\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		die("stdin", "no line");
}

static void look_all(struct stoup_cursor *cur, const struct naive *naive, uint64_t cnt, int pause)
{
	int64_t *times = malloc(cnt * sizeof(*times));

	if (!times)
		die("times", "no memory");
	for (uint64_t i = 0; i < cnt; i++)
		times[i] = time_of(naive);
	for (uint64_t i = 0; i < cnt; i++) {
		if (pause && i == cnt / 2)
			wait_line();
		look(cur, naive, times[i]);
	}
	qsort(times, cnt, sizeof(times[0]), ascending);
	for (uint64_t i = 0; i < cnt; i++)
		look(cur, naive, times[i]);
	for (uint64_t i = cnt; i-- > 0;)
		look(cur, naive, times[i]);
	free(times);
}

static void many(struct stoup *st, uint64_t time_cnt, char **names, int cnt)
{
	static struct naive naive[MANY_CAP];
	struct stoup_cursor *curs[MANY_CAP];
	struct stoup_span spans[MANY_CAP];
	int64_t found, expected;

	for (int i = 0; i < cnt; i++) {
		naive_read(st, names[i], &naive[i]);
		if (stoup_scan(st, &naive[i].series, NULL, &curs[i], &err) < 0)
			die(names[i], err.text);
	}
	for (uint64_t q = 0; q < time_cnt; q++) {
		int64_t time_ns = time_of(&naive[rnd((uint64_t)cnt)]);

		found = stoup_asof_all(curs, (size_t)cnt, time_ns, spans);
		expected = 0;
		for (int i = 0; i < cnt; i++) {
			compare(&naive[i], time_ns, 0, spans[i].record_cnt > 0, &spans[i]);
			expected += naive_find(&naive[i], time_ns, 0) >= 0;
		}
		if (found != expected)
			die("many", found < 0 ? "it failed" : "another count");
	}
	for (int i = 0; i < cnt; i++) {
		stoup_cursor_close(curs[i]);
		free(naive[i].keys);
		free(naive[i].sums);
	}
}

static void one(struct stoup *st, char **argv)
{
	struct stoup_range range = {0};
	struct naive naive = {0};
	struct stoup_cursor *cur;
	int pause = 0;

	for (char **arg = argv + 2; *arg; arg++) {
		if (strcmp(*arg, "direct") == 0)
			range.flags = STOUP_DIRECT;
		else if (strcmp(*arg, "pause") == 0)
			pause = 1;
		else if (strcmp(*arg, "from") == 0 && arg[1])
			range.from_ns = strtoll(*++arg, NULL, 10);
		else if (strcmp(*arg, "to") == 0 && arg[1])
			range.to_ns = strtoll(*++arg, NULL, 10);
		else
			die(*arg, "no such option");
	}
	naive_read(st, argv[0], &naive);
	naive.from_ns = range.from_ns;
	naive.to_ns = range.to_ns;
	if (stoup_scan(st, &naive.series, &range, &cur, &err) < 0)
		die(argv[0], err.text);
	look_all(cur, &naive, strtoull(argv[1], NULL, 10), pause);
	stoup_cursor_close(cur);
	free(naive.keys);
	free(naive.sums);
}

int main(int argc, char **argv)
{
	int all = argc > 4 && strcmp(argv[1], "many") == 0;
	struct stoup *st;

	if (argc < 4 || (all && argc - 4 > MANY_CAP))
		die("usage",
			"helper_asof POOL SERIES QUERIES [OPTIONS] | many POOL TIMES SERIES...");
	if (stoup_attach(argv[1 + all], NULL, &st, &err) < 0)
		die("attach", err.text);
	if (all)
		many(st, strtoull(argv[3], NULL, 10), argv + 4, argc - 4);
	else
		one(st, argv + 2);
	if (stoup_detach(st) < 0)
		die("detach", "something is held");
	printf("good\n");
	return 0;
}
