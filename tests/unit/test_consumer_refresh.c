/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_refresh.c - newer snapshots: what a cursor keeps, what a new one sees, what the daemon is
 * told of both.
 *
 *      snapshot 1   volume 0: A/x [10 20]
 *      snapshot 2   volume 0, volume 1: A/x [30]  B/x [5]
 *      snapshot 3   volume 1
 */
#include "tests/unit/test_consumer_fake.h"

static const struct fake_series first[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 1, {10}}, {1, 1, {20}}}},
};

static const struct fake_series second[] = {
	{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {30}}}},
	{.name = "B/x", .schema = "pair", .segment_cnt = 1, .segments = {{1, 1, {5}}}},
};

static struct fake fake;
static struct stoup *st;

static void begin(void)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.ahead_cnt = UINT32_MAX;
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 2, first, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", &opt);
}

static void end(void)
{
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

static uint64_t oldest(void)
{
	const struct stoup_page *page = fake.peers[0].page.base;

	return atomic_load(&page->snapshot_seq);
}

static void refresh(int expected)
{
	struct stoup_error err = {0};
	int rc = stoup_refresh(st, &err);

	ck_assert_msg(rc == expected, "%d: %s", rc, err.text);
}

/* Keys up to the end. */
static void expect_keys(struct stoup_cursor *cur, const int64_t *keys, uint32_t cnt)
{
	struct stoup_span span;
	uint32_t at = 0;
	int rc;

	while ((rc = stoup_next(cur, &span)) > 0)
		for (uint64_t i = 0; i < span.record_cnt; i++) {
			ck_assert_uint_lt(at, cnt);
			ck_assert_int_eq(((const struct pair *)span.base)[i].key, keys[at++]);
		}
	ck_assert_msg(rc == 0, "%d: %s", rc, stoup_cursor_error(cur)->text);
	ck_assert_uint_eq(at, cnt);
}

START_TEST(without_news_nothing_is_asked_and_nothing_changes)
{
	begin();
	refresh(0);
	refresh(0);
	ck_assert_uint_eq(oldest(), 1);
	ck_assert_uint_eq(fake.pull_cnt, 0);
	end();
}
END_TEST

START_TEST(a_cursor_keeps_its_snapshot_and_a_new_one_gets_the_newest)
{
	const int64_t all[] = {10, 20, 30};
	struct stoup_cursor *before, *after;
	struct stoup_series old, new, other;
	struct stoup_span span;

	begin();
	ck_assert_int_eq(stoup_series_find(st, "A/x", &old, NULL), 0);
	before = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(before, &span), 1);
	fake_volume(&fake, 2, 0, 2, second, 2);
	fake_rescan(&fake);
	ck_assert_int_eq(stoup_series_find(st, "B/x", &other, NULL), -ENOENT);
	refresh(1);
	refresh(0);
	ck_assert_int_eq(stoup_series_find(st, "B/x", &other, NULL), 0);
	ck_assert_int_eq(stoup_series_cnt(st), 2);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &new, NULL), 0);
	ck_assert_uint_eq(old.record_cnt, 2);
	ck_assert_uint_eq(new.record_cnt, 3);
	ck_assert_uint_eq(new.id, old.id);
	/* What was found before may be scanned: in the newest snapshot. */
	ck_assert_int_eq(stoup_scan(st, &old, NULL, &after, NULL), 0);
	expect_keys(after, all, 3);
	stoup_cursor_close(after);
	ck_assert_uint_eq(oldest(), 1);
	expect_keys(before, all + 1, 1);
	ck_assert_uint_eq(oldest(), 1);
	stoup_cursor_close(before);
	ck_assert_uint_eq(oldest(), 2);
	end();
}
END_TEST

START_TEST(a_retired_volume_is_read_to_its_end_and_missing_afterwards)
{
	const int64_t later[] = {20}, now[] = {30};
	struct stoup_cursor *before, *after;
	struct stoup_span span;

	begin();
	before = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(before, &span), 1);
	fake_volume(&fake, 2, 0, 2, second, 2);
	fake_rescan(&fake);
	fake_retire(&fake, 0);
	fake_rescan(&fake);
	refresh(1);
	ck_assert_uint_eq(st->current->newest->seq, 3);
	after = fake_scan(st, "A/x", 0, 0);
	expect_keys(after, now, 1);
	expect_keys(before, later, 1);
	stoup_cursor_close(before);
	ck_assert_uint_eq(oldest(), 3);
	stoup_cursor_close(after);
	end();
}
END_TEST

START_TEST(a_series_that_the_newest_snapshot_lacks_can_not_be_scanned)
{
	struct stoup_error err = {0};
	struct stoup_series series;
	struct stoup_cursor *cur;

	begin();
	fake_volume(&fake, 2, 0, 2, second, 2);
	fake_rescan(&fake);
	refresh(1);
	ck_assert_int_eq(stoup_series_find(st, "B/x", &series, NULL), 0);
	fake_retire(&fake, 1);
	fake_rescan(&fake);
	refresh(1);
	ck_assert_int_eq(stoup_scan(st, &series, NULL, &cur, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, "no longer"));
	ck_assert_str_eq(series.name, "B/x");
	end();
}
END_TEST

START_TEST(a_snapshot_of_many_volumes_is_pulled_whole)
{
	static struct fake_series one = {.name = "A/x", .schema = "pair", .segment_cnt = 1};
	struct stoup_series series;

	begin();
	for (uint32_t v = 0; v < 69; v++) {
		one.segments[0] = (struct fake_segment){0, 1, {1000 + v}};
		fake_volume(&fake, 2 + v, 0, 1, &one, 1);
	}
	fake_rescan(&fake);
	refresh(1);
	ck_assert_uint_eq(fake.pull_cnt, 3);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
	ck_assert_uint_eq(series.record_cnt, 71);
	ck_assert_uint_eq(series.volume_cnt, 70);
	end();
}
END_TEST

START_TEST(a_refusal_and_a_time_out_leave_the_snapshot_and_a_late_answer_is_thrown_away)
{
	struct stoup_error err = {0};

	begin();
	fake_volume(&fake, 2, 0, 2, second, 2);
	fake_rescan(&fake);
	fake.refuse_volumes = -ESTALE;
	ck_assert_int_eq(stoup_refresh(st, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.text, "no longer served"));
	fake.refuse_volumes = 0;
	st->opt.timeout_ns = 30000000;
	fake.late = 1;
	ck_assert_int_eq(stoup_refresh(st, &err), -ETIMEDOUT);
	ck_assert_ptr_nonnull(strstr(err.text, "no answer in time"));
	ck_assert_int_eq(st->current->owed, 1);
	ck_assert_uint_eq(st->current->newest->seq, 1);
	/* The answer comes after all, to the question that nobody waits for. */
	{
		struct stoup_wire_volumes late = {
			.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_VOLUMES, .snapshot_seq = 7};

		ck_assert_int_eq(
			stoup_wire_send(fake.peers[0].sock_fd, &late, sizeof(late), NULL, 0), 0);
	}
	st->opt.timeout_ns = 60000000000;
	refresh(1);
	ck_assert_uint_eq(st->current->newest->seq, 2);
	end();
}
END_TEST

START_TEST(a_silent_daemon_is_called_silent)
{
	struct stoup_error err = {0};

	begin();
	atomic_store(&fake.control->heartbeat_ns, stoup_client_now() - 5000000000);
	ck_assert_int_eq(stoup_refresh(st, &err), -ETIME);
	ck_assert_ptr_nonnull(strstr(err.text, "silent"));
	end();
}
END_TEST

START_TEST(after_the_daemons_end_the_next_one_is_attached_to_and_cursors_stay_where_they_are)
{
	const int64_t all[] = {10, 20, 30}, later[] = {20, 30};
	struct stoup_cursor *before, *after;
	struct stoup_span span;

	begin();
	before = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(before, &span), 1);
	fake_kill(&fake);
	fake.control->daemon_start = 1;
	fake_reset(&fake);
	fake_volume(&fake, 1, 0, 2, first, 1);
	fake_volume(&fake, 2, 0, 2, second, 2);
	fake_start(&fake, "p");
	refresh(1);
	refresh(0);
	ck_assert_int_eq(((const struct pair *)span.base)->key, 10);
	after = fake_scan(st, "A/x", 0, 0);
	expect_keys(after, all, 3);
	expect_keys(before, later, 2);
	stoup_cursor_close(before);
	stoup_cursor_close(after);
	end();
}
END_TEST

START_TEST(without_going_on_the_daemons_end_is_told)
{
	struct stoup_error err = {0};

	begin();
	st->opt.flags = STOUP_NO_RECONNECT;
	atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
	ck_assert_int_eq(stoup_refresh(st, &err), -EPIPE);
	ck_assert_ptr_nonnull(strstr(err.text, "was stopped"));
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_refresh");
	TCase *news = tcase_create("news"), *fails = tcase_create("fails");

	tcase_add_test(news, without_news_nothing_is_asked_and_nothing_changes);
	tcase_add_test(news, a_cursor_keeps_its_snapshot_and_a_new_one_gets_the_newest);
	tcase_add_test(news, a_retired_volume_is_read_to_its_end_and_missing_afterwards);
	tcase_add_test(news, a_series_that_the_newest_snapshot_lacks_can_not_be_scanned);
	tcase_add_test(news, a_snapshot_of_many_volumes_is_pulled_whole);
	tcase_add_test(fails,
		a_refusal_and_a_time_out_leave_the_snapshot_and_a_late_answer_is_thrown_away);
	tcase_add_test(fails, a_silent_daemon_is_called_silent);
	tcase_add_test(fails,
		after_the_daemons_end_the_next_one_is_attached_to_and_cursors_stay_where_they_are);
	tcase_add_test(fails, without_going_on_the_daemons_end_is_told);
	suite_add_tcase(suite, news);
	suite_add_tcase(suite, fails);
	return fake_main(suite);
}
