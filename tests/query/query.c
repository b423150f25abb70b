/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - chance, and what is said when a query finds something else. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "query/query.h"

_Noreturn void query_fail(const struct query_run *run, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "%s:%llu: ", run->form, (unsigned long long)run->no);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr,
		"\n  query: %s\n  again: helper_oracle --seed %llu --only %s:%llu%s ... %s\n",
		run->what, (unsigned long long)run->seed, run->form, (unsigned long long)run->no,
		run->direct ? " --direct" : "", run->pool);
	exit(1);
}

void query_say(struct query_run *run, const char *fmt, ...)
{
	size_t len = strlen(run->what);
	va_list args;

	va_start(args, fmt);
	vsnprintf(run->what + len, sizeof(run->what) - len, fmt, args);
	va_end(args);
}

/* splitmix64 */
uint64_t query_bits(struct query_run *run)
{
	uint64_t z = run->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t query_below(struct query_run *run, uint64_t n)
{
	return query_bits(run) % n;
}

int query_one_in(struct query_run *run, uint64_t n)
{
	return query_below(run, n) == 0;
}

struct query_series *query_series_pick(struct query_run *run)
{
	return &run->all[query_below(run, run->series_cnt)];
}

struct query_series *query_filled_pick(struct query_run *run)
{
	struct query_series *s;

	do
		s = query_series_pick(run);
	while (s->cnt == 0);
	return s;
}

static int64_t beside(int64_t key, int64_t by)
{
	if ((by > 0 && key > INT64_MAX - by) || (by < 0 && key < INT64_MIN - by))
		return key;
	return key + by;
}

/* The next record at which a span began, seen from a record. */
static uint64_t border(struct query_run *run, const struct query_series *s, uint64_t i)
{
	while (i + 1 < s->cnt && !s->begins[i])
		i++;
	return i > 0 && query_one_in(run, 2) ? i - 1 : i;
}

int64_t query_key_pick(struct query_run *run, const struct query_series *s)
{
	static const int64_t extremes[] = {0, 1, 2, INT64_MAX, INT64_MAX - 1, -1, INT64_MIN};
	uint64_t i;
	int64_t key;

	if (s->cnt == 0 || query_one_in(run, 12))
		return extremes[query_below(run, sizeof(extremes) / sizeof(extremes[0]))];
	i = query_below(run, s->cnt);
	if (query_one_in(run, 3))
		i = border(run, s, i);
	if (query_one_in(run, 16))
		i = query_one_in(run, 2) ? 0 : s->cnt - 1;
	key = s->order[i];
	if (query_one_in(run, 8)) /* somewhere between two */
		key = (int64_t)((uint64_t)s->order[0] +
				query_below(run, (uint64_t)s->order[s->cnt - 1] -
							 (uint64_t)s->order[0] + 1));
	if (s->later_ns && query_one_in(run, 2))
		key = beside(key, s->later_ns);
	if (query_one_in(run, 3))
		key = beside(key, query_one_in(run, 2) ? 1 : -1);
	return key;
}
