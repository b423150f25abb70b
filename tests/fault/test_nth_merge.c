/* SPDX-License-Identifier: Apache-2.0 */
/* test_nth_merge.c - the first, second, third ... call for memory or for a descriptor fails while series are merged and
 * replayed: a clean error each time, the call can be repeated, nothing is left behind and the share is whole.
 */
#include "consumer/merge.h"
#include "tests/fault/countdown.h"
#include "tests/unit/test_consumer_fake.h"

#define NTH_CAP 500

/* A/1 and B/1 lie in one block, K/1 kept its order. What they hold at once fills the share only where common blocks are
 * counted once, so that both bounds are looked for. */
static const struct fake_series three[] = {
	{.name = "A/1",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 2, {10, 14}}, {1, 1, {19}}}},
	{.name = "B/1", .schema = "pair", .segment_cnt = 1, .segments = {{0, 2, {11, 12}}}},
	{.name = "K/1",
		.schema = "pair",
		.flags = STOUP_CATALOG_KEEP_ORDER,
		.segment_cnt = 2,
		.segments = {{2, 3, {10, 13, 12}}, {3, 3, {13, 20, 15}}}},
};

static struct fake fake;
static struct stoup *st;
static struct stoup_series series[3];
static struct stoup_error err;

static void begin(void)
{
	static const struct stoup_options opt = {.struct_len = sizeof(struct stoup_options),
		.ahead_cnt = UINT32_MAX,
		.timeout_ns = 60000000000};

	fake_init_cells(&fake, 3 * 4096, 8);
	fake_volume(&fake, 1, 0, 4, three, 3);
	fake_start(&fake, "p");
	st = fake_attach("p", &opt);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(stoup_series_find(st, three[i].name, &series[i], &err), 0);
	for (uint32_t b = 0; b < 4; b++)
		fake_load(&fake, 0, b);
}

static void end(void)
{
	ck_assert_int_eq(stoup_use_cnt(st), 0);
	ck_assert_uint_eq(st->current->reserved_bytes, 0);
	ck_assert_uint_eq(st->current->shared_bytes, 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

/* All records, over calls that failed: each but the last of these is repeated. */
static int drain(struct stoup_cursor *cur, struct stoup_replay *replay)
{
	uint64_t seen = 0;
	struct stoup_span span;
	int rc, failed = 0;

	for (;;) {
		rc = replay ? stoup_replay_next(replay, STOUP_REPLAY_WAIT, &span)
		            : stoup_next(cur, &span);
		if (rc == 0)
			break;
		COUNTDOWN_MUST(rc == 1 || (rc == -ENOMEM && failed++ == 0));
		if (rc > 0)
			seen += span.record_cnt;
		else
			COUNTDOWN_MUST(stoup_cursor_error(cur)->text[0]);
	}
	COUNTDOWN_MUST(seen == (cur->merge ? 11 : 6));
	return 0;
}

static int merged(void)
{
	struct stoup_cursor *cur = NULL;
	/* The longest blocks of four series are more than the share: room is found where the common one counts once. */
	const struct stoup_series four[4] = {series[0], series[1], series[2], series[1]};
	int rc = stoup_merge(st, four, 3, NULL, &cur, &err);

	if (rc == 0)
		rc = drain(cur, NULL);
	stoup_cursor_close(cur);
	cur = NULL;
	if (rc == 0)
		rc = stoup_merge(st, four, 4, NULL, &cur, &err);
	stoup_cursor_close(cur);
	return rc;
}

static int replayed(void)
{
	const struct stoup_replay_options opt = {
		.struct_len = sizeof(opt), .speed = __builtin_inf()};
	struct stoup_cursor *cur = NULL;
	struct stoup_replay *replay = NULL;
	int rc = stoup_scan(st, &series[2], NULL, &cur, &err);

	if (rc == 0)
		rc = stoup_replay_open(cur, &opt, &replay, &err);
	if (rc == 0)
		rc = drain(cur, replay);
	stoup_replay_close(replay);
	stoup_cursor_close(cur);
	return rc;
}

/* Let each call of a kind fail. */
static void check(int (*scenario)(void), enum countdown_kind kind, int code, long least)
{
	struct countdown c;
	long nth, calls = 0;
	int rc = 0, fired = 1;

	begin();
	for (nth = 1; nth < NTH_CAP && fired; nth++) {
		memset(&err, 0, sizeof(err));
		countdown_begin(&c, kind, nth);
		rc = scenario();
		fired = countdown_end(&c);
		ck_assert_msg(rc == 0 || rc == code, "call %ld: %d %s", nth, rc, err.text);
		ck_assert_msg(rc == 0 || err.text[0], "call %ld: no text", nth);
		calls += fired;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_ge(calls, least);
	end();
}

START_TEST(each_call_for_memory_of_a_merge_may_fail)
{
	check(merged, COUNTDOWN_MEMORY, -ENOMEM, 20);
}
END_TEST

START_TEST(each_call_for_memory_of_a_replay_may_fail)
{
	check(replayed, COUNTDOWN_MEMORY, -ENOMEM, 4);
}
END_TEST

START_TEST(the_descriptor_of_a_replay_may_fail)
{
	check(replayed, COUNTDOWN_FILES, -EMFILE, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nth merge");
	TCase *tcase = tcase_create("nth merge");

	tcase_set_timeout(tcase, 100);
	tcase_add_test(tcase, each_call_for_memory_of_a_merge_may_fail);
	tcase_add_test(tcase, each_call_for_memory_of_a_replay_may_fail);
	tcase_add_test(tcase, the_descriptor_of_a_replay_may_fail);
	suite_add_tcase(suite, tcase);
	return fake_main(suite);
}
