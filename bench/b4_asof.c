/* SPDX-License-Identifier: Apache-2.0 */
/* b4_asof.c - B4, second part: as-of lookups over resident records, in order and at random.
 *
 *      times      in order: one between each two records, all of them; at random: anywhere
 *      stoup      stoup_asof on one cursor: steps on from the last answer, or guesses and bisects
 *      own array  the same records in private memory: one step on; at random a bisection without branches
 *
 * Records are 8-byte keys, 1 ms apart as in the published figures, and at uneven distances, where no guess is
 * right at once. Each lookup's record is read: the result is the sum of the keys.
 */
#include <inttypes.h>
#include <stdio.h>
#include "bench/harness.h"
#include "bench/rig.h"

#define SERIES     "BENCH/ONE/keys"
#define ROUNDS     11u /* rates: absolute numbers */
#define POOL_LEN   (160u << 20)
#define GAP_CAP    UINT64_C(2000000)
#define RANDOM_CNT UINT64_C(2000000)
#define FAR        100u /* records between two times in order, far apart */

struct lookups {
	const int64_t *keys; /* own array */
	uint64_t key_cnt;
	const int64_t *times;
	uint64_t time_cnt;
	struct stoup_cursor *cur;
};

static uint64_t state = 88172645463325252u;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* ---- contenders ------------------------------------------------------------------------------ */

static uint64_t asof_pass(void *arg)
{
	const struct lookups *look = arg;
	struct stoup_span span;
	uint64_t sum = 0;
	int rc;

	for (uint64_t i = 0; i < look->time_cnt; i++) {
		rc = stoup_asof(look->cur, look->times[i], &span);
		if (rc < 0)
			bench_die("B4: %s", stoup_cursor_error(look->cur)->text);
		if (rc > 0)
			sum += *(const uint64_t *)span.base;
	}
	return sum;
}

static uint64_t step_pass(void *arg)
{
	const struct lookups *look = arg;
	uint64_t sum = 0, at = 0;

	for (uint64_t i = 0; i < look->time_cnt; i++) {
		while (at + 1 < look->key_cnt && look->keys[at + 1] <= look->times[i])
			at++;
		if (look->keys[at] <= look->times[i])
			sum += (uint64_t)look->keys[at];
	}
	return sum;
}

static uint64_t bisect_pass(void *arg)
{
	const struct lookups *look = arg;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < look->time_cnt; i++) {
		const int64_t *at = look->keys;

		for (uint64_t n = look->key_cnt; n > 1;) {
			uint64_t half = n / 2;

			at += half & -(uint64_t)(at[half] <= look->times[i]);
			n -= half;
		}
		if (*at <= look->times[i])
			sum += (uint64_t)*at;
	}
	return sum;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void run_case(const char *name, const char *data, const struct lookups *look, bench_pass own)
{
	struct lookups arg = *look;
	struct bench_contender contenders[] = {
		{.name = "stoup as-of", .pass = asof_pass, .arg = &arg},
		{.name = "own array", .pass = own, .arg = &arg},
	};
	struct bench_case what = {.row = "B4",
		.name = name,
		.data = data,
		.record_cnt = look->time_cnt,
		.byte_cnt = look->time_cnt * 8,
		.reference = "stoup as-of"};

	bench_interleave(&what, contenders, 2, bench_settings.quick ? BENCH_QUICK_CNT : ROUNDS);
}

/* In order: a time behind each `every`-th key, before the next one. */
static uint64_t times_in_order(const struct lookups *look, uint64_t every, int64_t *times)
{
	uint64_t cnt = 0;

	for (uint64_t i = 0; i + 1 < look->key_cnt; i += every)
		times[cnt++] = look->keys[i] + (look->keys[i + 1] - look->keys[i]) / 2;
	return cnt;
}

static uint64_t times_at_random(const struct lookups *look, int64_t *times)
{
	uint64_t span = (uint64_t)(look->keys[look->key_cnt - 1] - look->keys[0]);
	uint64_t cnt = bench_scale(RANDOM_CNT, 20000);

	for (uint64_t i = 0; i < cnt; i++)
		times[i] = look->keys[0] + (int64_t)(rnd() % span);
	return cnt;
}

static void run_cases(struct lookups *look, const char *data, int even)
{
	int64_t *times = bench_alloc(look->key_cnt * 8 + RANDOM_CNT * 8);

	look->times = times;
	look->time_cnt = times_in_order(look, 1, times);
	run_case(even ? "as-of in order" : "as-of in order, uneven times", data, look, step_pass);
	look->time_cnt = times_in_order(look, FAR, times);
	run_case(even ? "as-of in order, each 100th record"
		      : "as-of in order, each 100th record, uneven times",
		data, look, step_pass);
	look->time_cnt = times_at_random(look, times);
	run_case(even ? "as-of at random" : "as-of at random, uneven times", data, look,
		bisect_pass);
	bench_free(times, look->key_cnt * 8 + RANDOM_CNT * 8);
}

/* The records of a daemon, all of them in its pool. */
static void run_records(const struct bench_records *records, int even)
{
	char data[96];

	struct lookups look = {
		.keys = (const int64_t *)(const void *)records->bytes, .key_cnt = records->cnt};
	struct bench_daemon daemon = {0};
	struct stoup_error err = {0};
	struct stoup_series series;
	struct stoup_span span;
	struct stoup *st;
	int rc;

	snprintf(data, sizeof(data), "%" PRIu64 " resident keys of 8 bytes %s", records->cnt,
		even ? "1 ms apart" : "at uneven distances");
	bench_store_make(bench_path("asof.store"), SERIES, "none", 0, records);
	bench_daemon_start(&daemon, bench_path("asof.store"), POOL_LEN, NULL);
	st = bench_attach(daemon.pool, NULL, SERIES, &series);
	if (stoup_scan(st, &series, NULL, &look.cur, &err) < 0)
		bench_die("B4: %s", err.text);
	while ((rc = stoup_next(look.cur, &span)) > 0)
		;
	if (rc < 0)
		bench_die("B4: %s", stoup_cursor_error(look.cur)->text);
	run_cases(&look, data, even);
	stoup_cursor_close(look.cur);
	stoup_detach(st);
	bench_daemon_stop(&daemon);
	bench_remove(bench_path("asof.store"));
}

void bench_b4_asof(void)
{
	struct bench_records records =
		bench_records_make(BENCH_KEYS, bench_scale(10000000, 200000));
	int64_t *keys = (int64_t *)(void *)records.bytes;

	run_records(&records, 1);
	for (uint64_t i = 1; i < records.cnt; i++) {
		uint64_t gap = rnd() % GAP_CAP;

		/* Most are short, some long. */
		keys[i] = keys[i - 1] + (int64_t)(rnd() % 8 ? gap / 16 : gap * 4);
	}
	run_records(&records, 0);
	bench_free(records.bytes, records.len);
}
