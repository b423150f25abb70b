/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_mixed.c - all calls of one cursor in any order, against what one knows of the records.
 *
 *      next, next_held, seek, asof, hold, release, errors, rescans, restarts --> the same records, once each
 *
 * The daemon that comes after one has the same volumes, so that nothing may be stale. All follows from the seed.
 */
#include "consumer/cursor.h"
#include "tests/unit/test_consumer_random.h"

#define VOLUMES  4
#define HELD_CAP 64

static struct fake fake;
static struct stoup *st;
static struct stoup_cursor *cur;
static struct stoup_span span;
static const struct naive *n;
static struct stoup_range range;
static uint32_t expected[NAIVE_CAP], expected_cnt, at;
static uint32_t shown; /* volumes */
static uint64_t op_state, pool_seed;
static uint32_t refused_cnt, failed_cnt;
static int with_files, tight; /* tight: little may be leased */

/* A span that was held, and what it has. */
static struct stoup_held held[HELD_CAP];
static uint64_t held_value[HELD_CAP];
static uint32_t held_cnt;

/* Not the generator of the records, which begins anew with each daemon. */
static uint32_t op_below(uint32_t cap)
{
	op_state = op_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(op_state >> 33) % cap;
}

static void pool_make(void)
{
	int64_t highs[RANDOM_SERIES_CNT] = {0};

	random_begin(pool_seed);
	random_volumes(&fake, VOLUMES, with_files, highs);
	for (uint32_t v = 0; v < VOLUMES; v++)
		fake.volumes[v].born_seq = v < shown ? 1 : v - shown + 2;
	fake_start(&fake, "p");
}

static void restart(void)
{
	atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
	fake_kill(&fake);
	fake.control->daemon_start = 1; /* no process began then */
	fake_reset(&fake);
	pool_make();
}

static void expect_anew(int seeks, int64_t key)
{
	at = 0;
	expected_cnt =
		seeks ? naive_seek(n, &range, key, expected) : naive_scan(n, &range, expected);
}

/* Of what is expected, what there is by now. */
static uint32_t there(void)
{
	uint32_t cnt = 0;

	while (cnt < expected_cnt && n->records[expected[cnt]].volume < shown)
		cnt++;
	return cnt;
}

static void took(int rc)
{
	ck_assert_msg(
		rc >= 0, "%s: %d: %s", random_text(n, &range), rc, stoup_cursor_error(cur)->text);
	if (rc == 0)
		ck_assert_msg(at == there(), "%s: %u of %u", random_text(n, &range), at, there());
}

static void release(uint32_t i)
{
	ck_assert_uint_eq(value_at(&held[i].span, 0), held_value[i]);
	ck_assert_int_eq(stoup_release(&held[i].lease), 0);
	held[i] = held[--held_cnt];
	held_value[i] = held_value[held_cnt];
}

static void op_release(void)
{
	if (held_cnt > 0)
		release(op_below(held_cnt));
}

/* 1: a block fails for now, or too much is held; all of that is over when the call is repeated. */
static int failed(int64_t rc)
{
	if (rc == -EDQUOT || rc == -EMFILE) {
		ck_assert_int_eq(stoup_cursor_error(cur)->code, (int)rc);
		ck_assert(tight);
		refused_cnt++;
		while (held_cnt > 0)
			release(0);
		return 1;
	}
	if (rc != -EBADMSG)
		return 0;
	failed_cnt++;
	ck_assert_int_eq(stoup_cursor_error(cur)->code, -EBADMSG);
	for (uint32_t v = 0; v < fake.volume_cnt; v++)
		for (uint32_t b = 0; b < FAKE_BLOCK_CAP; b++)
			atomic_store(&fake.volumes[v].blocks[b].act, FAKE_GRANT);
	return 1;
}

static void hold(const struct stoup_span *it)
{
	int rc;

	if (held_cnt == HELD_CAP)
		return;
	rc = stoup_hold(it, &held[held_cnt].lease);
	if (tight && (rc == -EDQUOT || rc == -EMFILE))
		return;
	ck_assert_int_eq(rc, 0);
	held[held_cnt].span = *it;
	held_value[held_cnt++] = value_at(it, 0);
}

/* Step over the segment that failed: what it has of the range does not come any more. */
static void skip(void)
{
	int pending = cur->pending != 0;
	int64_t cnt = stoup_cursor_skip(cur);
	uint32_t left = 0, segment;

	if (pending) {
		ck_assert_int_eq(cnt, -EINVAL);
		return;
	}
	ck_assert_int_ge(cnt, 0);
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	if (at == there())
		return;
	segment = n->records[expected[at]].segment;
	while (at + left < there() && n->records[expected[at + left]].segment == segment)
		left++;
	ck_assert_int_ge(cnt, left);
	expected_cnt -= left;
	memmove(expected + at, expected + at + left, (expected_cnt - at) * sizeof(*expected));
}

static void op_next(void)
{
	int rc = stoup_next(cur, &span);

	/* Before the first record the next daemon's scan would meet it again; limits count what comes. */
	if (failed(rc)) {
		if (rc == -EBADMSG && at > 0 && range.limit == 0 && op_below(2))
			skip();
		return;
	}
	took(rc);
	if (rc == 0)
		return;
	expect_part(n, &range, &span, expected, there(), &at);
	if (op_below(4) == 0)
		hold(&span);
}

static void op_held(void)
{
	struct stoup_held *to[4];
	uint32_t cnt = 1 + op_below(4);
	int64_t got;

	if (held_cnt + cnt > HELD_CAP)
		return;
	for (uint32_t i = 0; i < cnt; i++)
		to[i] = &held[held_cnt + i];
	got = stoup_next_held(cur, to, cnt, op_below(2) ? 0 : 1 + op_below(9000));
	if (failed(got))
		return;
	took((int)got);
	for (int64_t i = 0; i < got; i++) {
		expect_part(n, &range, &held[held_cnt].span, expected, there(), &at);
		held_value[held_cnt] = value_at(&held[held_cnt].span, 0);
		held_cnt++;
	}
}

static void op_asof(void)
{
	int before = op_below(3) == 0, rc;
	int64_t time_ns, best = -1;
	struct stoup_span found = {0};

	time_ns = (n->cnt && op_below(8) ? n->records[op_below(n->cnt)].high + op_below(3) - 1
					 : op_below(RANDOM_KEYS)) +
	          op_below(2) * n->later;
	rc = before ? stoup_asof_before(cur, time_ns, &found) : stoup_asof(cur, time_ns, &found);
	if (range.limit) {
		ck_assert_int_eq(rc, -EINVAL);
		ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
		return;
	}
	if (failed(rc)) {
		ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
		return;
	}
	for (uint32_t i = 0; i < n->cnt; i++)
		if (n->records[i].volume < shown && naive_has(n, &range, i) &&
			n->records[i].high + n->later <= time_ns - before)
			best = i;
	ck_assert_msg(rc == (best >= 0), "%s: as of %lld: %d (%s), not %lld",
		random_text(n, &range), (long long)time_ns, rc, stoup_cursor_error(cur)->text,
		(long long)best);
	if (rc == 1)
		ck_assert_msg(found.ordinal == (uint64_t)best &&
				      value_at(&found, 0) == n->records[best].value,
			"%s: as of %lld: ordinal %llu, not %lld", random_text(n, &range),
			(long long)time_ns, (unsigned long long)found.ordinal, (long long)best);
	if (rc == 1 && op_below(4) == 0)
		hold(&found);
}

/* Half of a volume's blocks are evicted, and fail now and then. */
static void op_trouble(void)
{
	uint32_t v = op_below(VOLUMES), first = op_below(2), fails = op_below(2);

	for (uint32_t b = first; b < FAKE_BLOCK_CAP; b += 2) {
		pthread_mutex_lock(&fake.mutex);
		if (fake.buffer_next < FAKE_BUFFER_CAP - 64)
			fake_evict(&fake, v, b);
		pthread_mutex_unlock(&fake.mutex);
		atomic_store(&fake.volumes[v].blocks[b].error, -EBADMSG);
		if (fails)
			atomic_store(&fake.volumes[v].blocks[b].act, FAKE_FAIL);
	}
}

/* Cells of all pages that still lease something. */
static uint32_t leased(void)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < fake.peer_cnt; i++) {
		struct stoup_page *page = fake.peers[i].page.base;

		for (uint32_t c = 0; page && c < fake.control->cell_cap; c++)
			cnt += stoup_cell_leased(atomic_load(&page->cells[c])) != 0;
	}
	return cnt;
}

static void one(uint64_t seed, int follows)
{
	struct stoup_options opt;
	struct stoup_series series;
	struct stoup_error err = {0};
	int64_t key;

	op_state = pool_seed = seed;
	with_files = seed % 3 == 0;
	held_cnt = 0;
	shown = follows ? 1 + op_below(2) : VOLUMES;
	tight = seed % 4 == 1;
	fake_init_cells(&fake, tight ? 3 * 4096 : 1 << 20, tight ? 8 : STOUP_CELL_CAP);
	pool_make();
	stoup_options_init(&opt);
	opt.ahead_cnt = op_below(2) ? 4 : UINT32_MAX;
	opt.timeout_ns = opt.reconnect_ns = 60000000000;
	st = fake_attach("p", &opt);
	n = &naives[op_below(RANDOM_SERIES_CNT)];
	range = random_range(n);
	if (follows)
		range.flags = (range.flags | STOUP_FOLLOW) & ~(STOUP_BACKWARD | STOUP_LAST);
	if (op_below(2) && !(range.flags & STOUP_LAST))
		range.limit = 0;
	fake_check(stoup_series_find(st, n->name, &series, &err), &err);
	fake_check(stoup_scan(st, &series, &range, &cur, &err), &err);
	expect_anew(0, 0);
	for (uint32_t i = 0; i < 60; i++) {
		switch (op_below(12)) {
		case 0:
		case 1:
			op_next();
			break;
		case 2:
			op_held();
			break;
		case 3:
		case 4:
		case 5:
			op_asof();
			break;
		case 6:
			op_release();
			break;
		case 7:
			key = n->cnt ? n->records[op_below(n->cnt)].high + op_below(3) - 1 : 5;
			ck_assert_int_eq(stoup_seek(cur, key), 0);
			expect_anew(1, key);
			break;
		case 8:
		case 9:
			op_trouble();
			break;
		case 10:
			if (op_below(5) == 0)
				restart();
			break;
		default:
			if (shown < VOLUMES) {
				shown++;
				fake_rescan(&fake);
			}
		}
	}
	while (held_cnt > 0)
		op_release();
	ck_assert_int_eq(stoup_use_cnt(st), 1);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_use_cnt(st), 0);
	ck_assert_uint_eq(leased(), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

START_TEST(calls_in_any_order_yield_each_record_once)
{
	for (uint64_t seed = 1; seed <= 150; seed++)
		one(seed, 0);
	ck_assert_uint_gt(refused_cnt, 5);
	ck_assert_uint_gt(failed_cnt, 50);
}
END_TEST

START_TEST(calls_in_any_order_over_a_store_that_grows)
{
	for (uint64_t seed = 1; seed <= 150; seed++)
		one(seed, 1);
	ck_assert_uint_gt(refused_cnt, 5);
	ck_assert_uint_gt(failed_cnt, 50);
}
END_TEST

int main(void)
{
	TCase *calls = tcase_create("mixed");
	Suite *suite = suite_create("consumer_mixed");

	tcase_set_timeout(calls, 120);
	tcase_add_test(calls, calls_in_any_order_yield_each_record_once);
	tcase_add_test(calls, calls_in_any_order_over_a_store_that_grows);
	suite_add_tcase(suite, calls);
	return fake_main(suite);
}
