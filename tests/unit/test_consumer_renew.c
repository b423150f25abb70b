/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_renew.c - scans that go on with the daemon that comes after one that died.
 *
 *      A/x  [10 20][20 20 30][40]     values 0 to 5, whatever the blocks
 *
 * Each test reads some spans, kills the small conductor, starts another one of the same name over
 * the same or other volumes, and says which records must follow.
 */
#include <dirent.h>
#include "consumer/cursor.h"
#include "tests/unit/test_consumer_fake.h"

static const struct fake_series plain[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 3,
		.segments = {{0, 2, {10, 20}}, {1, 3, {20, 20, 30}}, {2, 1, {40}}}},
};

static struct fake fake;
static struct stoup *st;
static struct stoup_cursor *cur;
static struct stoup_span span;

static void begin_with(const struct fake_series *series, uint64_t reconnect_ns)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.ahead_cnt = UINT32_MAX;
	opt.reconnect_ns = reconnect_ns;
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 4, series, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", &opt);
	cur = fake_scan(st, "A/x", 0, 0);
}

static void begin(void)
{
	begin_with(plain, 20000000000);
}

/* The daemon is killed, and its memory is forgotten. */
static void die(void)
{
	fake_kill(&fake);
	fake.control->daemon_start = 1; /* no process began then */
	fake_reset(&fake);
}

static void again(const struct fake_series *series)
{
	fake_volume(&fake, 1, 0, 4, series, 1);
	fake_start(&fake, "p");
}

static void end(void)
{
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

/* The next records, up to the end: their values are first, first + 1, .. last; their ordinals begin
 * with `ordinal`. */
static void rest(uint64_t first, uint64_t last, uint64_t ordinal)
{
	int rc;

	while ((rc = stoup_next(cur, &span)) > 0) {
		const struct pair *pairs = span.base;

		ck_assert_uint_eq(span.ordinal, ordinal);
		for (uint64_t i = 0; i < span.record_cnt; i++)
			ck_assert_uint_eq(pairs[i].value, first++);
		ordinal += span.record_cnt;
	}
	ck_assert_msg(rc == 0, "%d: %s", rc, stoup_cursor_error(cur)->text);
	ck_assert_uint_eq(first, last + 1);
}

static void spans(uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		int rc = stoup_next(cur, &span);

		ck_assert_msg(rc == 1, "%d: %s", rc, stoup_cursor_error(cur)->text);
	}
}

static void expect_error(int code, const char *words)
{
	int rc = stoup_next(cur, &span);

	ck_assert_int_eq(rc, code);
	ck_assert_int_eq(stoup_cursor_error(cur)->code, code);
	ck_assert_msg(strstr(stoup_cursor_error(cur)->text, words) != NULL, "'%s' lacks '%s'",
		stoup_cursor_error(cur)->text, words);
}

/* ---- where it goes on ------------------------------------------------------------------------ */

START_TEST(a_scan_goes_on_at_the_next_record_of_the_same_store)
{
	for (uint32_t cnt = 0; cnt <= 3; cnt++) {
		static const uint64_t next[] = {0, 2, 5, 6};

		begin();
		spans(cnt);
		die();
		again(plain);
		rest(next[cnt], 5, next[cnt]);
		end();
	}
}
END_TEST

START_TEST(a_compacted_store_has_the_records_in_other_blocks_and_none_is_lost_or_doubled)
{
	static const struct fake_series one[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 6, {10, 20, 20, 20, 30, 40}}}}};
	static const struct fake_series cut[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 4,
		.segments = {{0, 1, {10}}, {1, 1, {20}}, {2, 1, {20}}, {3, 3, {20, 30, 40}}}}};

	for (uint32_t i = 0; i < 2; i++) {
		begin();
		spans(1); /* the second of four in a row that have key 20 is out next */
		die();
		again(i ? cut : one);
		rest(2, 5, 2);
		end();
		begin();
		spans(2);
		die();
		again(i ? cut : one);
		rest(5, 5, 5);
		end();
	}
}
END_TEST

START_TEST(records_of_one_key_are_told_apart_by_their_number_in_a_row)
{
	static const struct fake_series ties[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 4,
		.segments = {{0, 2, {10, 20}}, {1, 2, {20, 20}}, {2, 1, {20}}, {3, 2, {20, 20}}}}};
	static const struct fake_series other[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 5, {10, 20, 20, 20, 20}}, {1, 2, {20, 20}}}}};

	for (uint32_t cnt = 1; cnt <= 4; cnt++) {
		static const uint64_t next[] = {0, 2, 4, 5, 7};

		begin_with(ties, 20000000000);
		spans(cnt);
		die();
		again(other);
		rest(next[cnt], 6, next[cnt]);
		end();
	}
}
END_TEST

START_TEST(an_earlier_and_a_later_day_move_the_ordinals_and_nothing_else)
{
	static const struct fake_series before[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 3, {1, 2, 3}}}}};
	static const struct fake_series after[] = {
		{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {50}}}}};
	uint64_t values[] = {5, 2000000};

	begin();
	spans(2);
	die();
	fake_volume(&fake, 1, 0, 4, plain, 1);
	fake_volume(&fake, 2, 0, 1, before, 1);
	fake_volume(&fake, 3, 0, 1, after, 1);
	fake_start(&fake, "p");
	for (uint32_t i = 0; i < 2; i++) {
		spans(1);
		ck_assert_uint_eq(span.record_cnt, 1);
		ck_assert_uint_eq(((const struct pair *)span.base)->value, values[i]);
		ck_assert_uint_eq(span.ordinal, 8 + i);
	}
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	end();
}
END_TEST

START_TEST(a_range_stays_what_it_was)
{
	begin();
	stoup_cursor_close(cur);
	cur = fake_scan(st, "A/x", 20, 40);
	spans(1);
	ck_assert_uint_eq(span.ordinal, 1);
	die();
	again(plain);
	rest(2, 4, 2);
	/* Before its first record as well. */
	stoup_cursor_close(cur);
	cur = fake_scan(st, "A/x", 30, 0);
	die();
	again(plain);
	rest(4, 5, 4);
	end();
}
END_TEST

START_TEST(a_series_that_kept_its_order_goes_on_by_ordinal)
{
	static const struct fake_series kept[] = {{.name = "A/x",
		.schema = "pair",
		.flags = STOUP_CATALOG_KEEP_ORDER,
		.segment_cnt = 2,
		.segments = {{0, 3, {10, 30, 20}}, {1, 3, {40, 35, 50}}}}};
	static const struct fake_series other[] = {{.name = "A/x",
		.schema = "pair",
		.flags = STOUP_CATALOG_KEEP_ORDER,
		.segment_cnt = 2,
		.segments = {{0, 5, {10, 30, 20, 40, 35}}, {1, 1, {50}}}}};
	static const struct fake_series moved[] = {{.name = "A/x",
		.schema = "pair",
		.flags = STOUP_CATALOG_KEEP_ORDER,
		.segment_cnt = 1,
		.segments = {{0, 6, {10, 20, 30, 40, 35, 50}}}}};

	begin_with(kept, 20000000000);
	spans(1);
	die();
	again(other);
	rest(3, 5, 3);
	end();
	begin_with(kept, 20000000000);
	spans(1);
	die();
	again(moved);
	expect_error(-ESTALE, "'A/x': record 2 (key 20), the last one read, is another one");
	end();
}
END_TEST

START_TEST(what_was_left_out_before_the_end_stays_left_out)
{
	static const struct fake_series before[] = {
		{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 2, {1, 2}}}}};

	begin();
	atomic_store(&fake.volumes[0].blocks[1].error, -EBADMSG);
	atomic_store(&fake.volumes[0].blocks[1].act, FAKE_FAIL);
	spans(1);
	ck_assert_int_eq(stoup_next(cur, &span), -EBADMSG);
	ck_assert_int_eq(stoup_cursor_skip(cur), 3);
	die();
	fake_volume(&fake, 1, 0, 4, plain, 1);
	fake_volume(&fake, 2, 0, 1, before, 1);
	fake_start(&fake, "p");
	rest(5, 5, 7);
	end();
}
END_TEST

/* Resumed within a segment that then can not be read: what was handed out before does not count. */
START_TEST(only_what_was_not_handed_out_counts_as_left_out)
{
	begin();
	atomic_store(&fake.volumes[0].blocks[1].error, -EBADMSG);
	atomic_store(&fake.volumes[0].blocks[1].act, FAKE_FAIL);
	spans(1);
	cur->begin_ordinal = 3;
	ck_assert_int_eq(stoup_next(cur, &span), -EBADMSG);
	ck_assert_int_eq(stoup_cursor_skip(cur), 2);
	rest(5, 5, 5);
	end();
}
END_TEST

/* ---- where it can not ------------------------------------------------------------------------ */

static void stale(const struct fake_series *series, const char *words)
{
	begin();
	spans(2);
	die();
	again(series);
	expect_error(-ESTALE, words);
	expect_error(-ESTALE, words); /* for good */
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	end();
}

START_TEST(a_store_that_lost_or_changed_the_record_is_told)
{
	static const struct fake_series gone[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 2, {10, 20}}}}};
	static const struct fake_series hole[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 5, {10, 20, 20, 20, 40}}}}};
	static const struct fake_series fewer[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 5, {10, 20, 20, 30, 40}}}}};

	stale(gone, "'A/x': record 4 (key 30), the last one read, is gone");
	stale(hole, "'A/x': record 4 (key 30), the last one read, is gone");
	/* The key is there, but one record before it is not: other bytes. */
	stale(fewer, "record 4 (key 30), the last one read, is another one");
}
END_TEST

START_TEST(a_series_that_is_gone_or_laid_out_anew_is_told)
{
	static const struct fake_series other[] = {
		{.name = "B/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {10}}}}};
	static const struct fake_series layout[] = {
		{.name = "A/x", .schema = "other", .segment_cnt = 1, .segments = {{0, 1, {10}}}}};

	stale(other, "series 'A/x' is gone");
	stale(layout, "the layout of series 'A/x' is another one");
}
END_TEST

START_TEST(when_none_comes_both_the_end_and_the_reason_are_told_and_a_later_one_is_taken)
{
	begin_with(plain, 50000000);
	spans(1);
	die();
	expect_error(-EPIPE, "and none came after it within 0.");
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "the daemon of pool 'p'"));
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "start it again"));
	ck_assert_int_eq(stoup_health(st, NULL), -EPIPE);
	st->opt.reconnect_ns = 60000000000;
	again(plain);
	rest(2, 5, 2);
	ck_assert_int_eq(stoup_health(st, NULL), 0);
	end();
}
END_TEST

START_TEST(a_refusal_that_waiting_can_not_mend_ends_at_once)
{
	begin_with(plain, UINT64_C(1) << 59);
	spans(1);
	die();
	fake.bad_fingerprint = 1;
	again(plain);
	expect_error(-EPIPE, "use one release");
	end();
}
END_TEST

/* ---- when it ends ---------------------------------------------------------------------------- */

/* Takes over a reference to the session whose end it waits for. */
static void *restart(void *arg)
{
	struct stoup_session *ses = arg;

	while (atomic_load(&ses->ended) == 0)
		usleep(200);
	stoup_session_release(ses);
	fake_kill(&fake);
	fake_reset(&fake);
	again(plain);
	return NULL;
}

START_TEST(a_daemon_that_dies_under_a_waiting_call_is_followed_by_it)
{
	pthread_t thread;

	begin();
	spans(1);
	atomic_store(&fake.volumes[0].blocks[1].act, FAKE_HANG_UP);
	ck_assert_int_eq(pthread_create(&thread, NULL, restart, stoup_session_current(st)), 0);
	rest(2, 5, 2);
	pthread_join(thread, NULL);
	end();
}
END_TEST

START_TEST(a_daemon_that_dies_while_the_place_is_looked_for_is_followed_as_well)
{
	pthread_t thread;

	begin();
	spans(1);
	die();
	fake_volume(&fake, 1, 0, 4, plain, 1);
	atomic_store(&fake.volumes[0].blocks[0].act, FAKE_HANG_UP);
	fake_start(&fake, "p");
	/* Attach to the second one by another cursor, so that its session can be watched. */
	ck_assert_int_eq(stoup_refresh(st, NULL), 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, restart, stoup_session_current(st)), 0);
	rest(2, 5, 2);
	pthread_join(thread, NULL);
	end();
}
END_TEST

START_TEST(a_stopped_daemon_is_followed)
{
	begin();
	spans(1);
	atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
	die();
	again(plain);
	rest(2, 5, 2);
	end();
}
END_TEST

START_TEST(a_socket_that_this_process_closed_itself_is_replaced)
{
	begin();
	spans(1);
	close(st->current->sock_fd);
	st->current->sock_fd = 1 << 19;
	usleep(20000); /* a look at the socket is due */
	rest(2, 5, 2);
	end();
}
END_TEST

START_TEST(a_silent_daemon_is_waited_for_and_not_left)
{
	struct stoup_session *before;

	begin();
	spans(1);
	before = st->current;
	st->opt.timeout_ns = 30000000;
	atomic_store(&fake.volumes[0].blocks[1].act, FAKE_NEVER);
	atomic_store(&fake.control->heartbeat_ns, stoup_client_now() - 5000000000);
	expect_error(-ETIME, "silent for ");
	ck_assert_ptr_eq(st->current, before);
	end();
}
END_TEST

/* ---- what stays and what goes ---------------------------------------------------------------- */

/* Memory objects of the small conductor have labels without their first letter. */
static uint32_t lines_of(const char *path, const char *word)
{
	FILE *file = fopen(path, "re");
	char line[512];
	uint32_t cnt = 0;

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		cnt += strstr(line, word) != NULL;
	fclose(file);
	return cnt;
}

static uint32_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t cnt = 0;

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

START_TEST(bytes_of_a_dead_daemon_stay_until_the_last_hold_goes)
{
	struct stoup_lease a, b;
	struct stoup_cursor *other;
	struct stoup_span held, more;

	begin();
	spans(1);
	held = span;
	other = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(other, &more), 1);
	ck_assert_int_eq(stoup_hold(&held, &a), 0);
	die();
	again(plain);
	spans(1);
	ck_assert_uint_eq(span.ordinal, 2);
	/* Mapped by the new daemon and us; of the old one we alone. */
	ck_assert_uint_eq(lines_of("/proc/self/maps", "ake-data"), 3);
	ck_assert_uint_eq(((const struct pair *)held.base)[1].value, 1);
	/* A span of an ended session can still be held while its bytes are. */
	ck_assert_int_eq(stoup_hold(&more, &b), 0);
	stoup_cursor_close(other);
	ck_assert_int_eq(stoup_release(&a), 0);
	ck_assert_int_eq(((const struct pair *)more.base)[1].key, 20);
	ck_assert_uint_eq(lines_of("/proc/self/maps", "ake-data"), 3);
	ck_assert_int_eq(stoup_release(&b), 0);
	ck_assert_int_eq(stoup_release(&b), -EINVAL);
	ck_assert_int_eq(stoup_hold(&held, &a), -EINVAL);
	ck_assert_int_eq(stoup_hold(&more, &a), -EINVAL);
	ck_assert_uint_eq(lines_of("/proc/self/maps", "ake-data"), 2);
	ck_assert_uint_eq(lines_of("/proc/self/maps", "fake-page"), 2);
	rest(5, 5, 5);
	end();
}
END_TEST

/* The thread sanitizer is slow with maps that come and go, and looks for other faults. */
#if defined(__SANITIZE_THREAD__)
#define RESTARTS 20u
#else
#define RESTARTS 500u
#endif

START_TEST(hundreds_of_restarts_leak_no_memory_and_no_descriptor)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_cursor *idle;
	uint32_t maps = 0, fds = 0;

	begin();
	idle = fake_scan(st, "A/x", 0, 0);
	for (uint32_t i = 0; i < RESTARTS; i++) {
		stoup_cursor_close(cur);
		cur = fake_scan(st, "A/x", 0, 0);
		spans(1);
		/* Seen at the next call, whatever is in the pool already. */
		atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
		die();
		again(plain);
		rest(2, 5, 2);
		if (i == 10) {
			maps = lines_of("/proc/self/maps", "memfd:");
			fds = open_fds();
		}
	}
	ck_assert_uint_eq(lines_of("/proc/self/maps", "memfd:"), maps);
	ck_assert_uint_eq(open_fds(), fds);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.reconnect_cnt, RESTARTS);
	stoup_cursor_close(idle);
	end();
}
END_TEST

START_TEST(series_and_counts_outlive_their_daemon)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_series before, now;

	begin();
	ck_assert_int_eq(stoup_series_find(st, "A/x", &before, NULL), 0);
	spans(2);
	die();
	again(plain);
	rest(5, 5, 5);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &now, NULL), 0);
	ck_assert_uint_eq(now.id, before.id);
	ck_assert_ptr_eq(now.name, before.name);
	ck_assert_ptr_eq(now.schema, before.schema);
	ck_assert_str_eq(before.schema->fields[1].name, "value");
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_scan(st, &before, NULL, &cur, NULL), 0);
	rest(0, 5, 0);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.reconnect_cnt, 1);
	ck_assert_uint_eq(stats.record_cnt, 12);
	ck_assert_uint_eq(stats.lease_cnt, 0);
	end();
}
END_TEST

/* ---- many threads ---------------------------------------------------------------------------- */

#define THREAD_CNT 6

static _Atomic uint32_t wrong_cnt;
static pthread_barrier_t barrier;

static void *read_over_the_end(void *arg)
{
	struct stoup_cursor *own = fake_scan(st, "A/x", 0, 0);
	struct stoup_span s;
	uint64_t next = 0;
	int rc;

	(void)arg;
	while ((rc = stoup_next(own, &s)) > 0) {
		const struct pair *pairs = s.base;

		for (uint64_t i = 0; i < s.record_cnt; i++)
			wrong_cnt += pairs[i].value != next++;
		if (next == 2) {
			pthread_barrier_wait(&barrier); /* all hold the first span */
			pthread_barrier_wait(&barrier); /* the daemon is another one */
		}
	}
	wrong_cnt += rc != 0 || next != 6;
	stoup_cursor_close(own);
	return NULL;
}

START_TEST(threads_attach_anew_once_and_each_goes_on_at_its_record)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	pthread_t threads[THREAD_CNT];

	begin();
	pthread_barrier_init(&barrier, NULL, THREAD_CNT + 1);
	for (uint32_t i = 0; i < THREAD_CNT; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_over_the_end, NULL), 0);
	pthread_barrier_wait(&barrier);
	die();
	again(plain);
	pthread_barrier_wait(&barrier);
	for (uint32_t i = 0; i < THREAD_CNT; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	ck_assert_uint_eq(wrong_cnt, 0);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.reconnect_cnt, 1);
	ck_assert_uint_eq(lines_of("/proc/self/maps", "ake-data"), 2);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_renew");
	TCase *place = tcase_create("place"), *lost = tcase_create("lost"),
	      *ends = tcase_create("ends"), *stays = tcase_create("stays");

	tcase_add_test(place, a_scan_goes_on_at_the_next_record_of_the_same_store);
	tcase_add_test(place,
		a_compacted_store_has_the_records_in_other_blocks_and_none_is_lost_or_doubled);
	tcase_add_test(place, records_of_one_key_are_told_apart_by_their_number_in_a_row);
	tcase_add_test(place, an_earlier_and_a_later_day_move_the_ordinals_and_nothing_else);
	tcase_add_test(place, a_range_stays_what_it_was);
	tcase_add_test(place, a_series_that_kept_its_order_goes_on_by_ordinal);
	tcase_add_test(place, what_was_left_out_before_the_end_stays_left_out);
	tcase_add_test(place, only_what_was_not_handed_out_counts_as_left_out);
	tcase_add_test(lost, a_store_that_lost_or_changed_the_record_is_told);
	tcase_add_test(lost, a_series_that_is_gone_or_laid_out_anew_is_told);
	tcase_add_test(lost,
		when_none_comes_both_the_end_and_the_reason_are_told_and_a_later_one_is_taken);
	tcase_add_test(lost, a_refusal_that_waiting_can_not_mend_ends_at_once);
	tcase_add_test(ends, a_daemon_that_dies_under_a_waiting_call_is_followed_by_it);
	tcase_add_test(ends, a_daemon_that_dies_while_the_place_is_looked_for_is_followed_as_well);
	tcase_add_test(ends, a_stopped_daemon_is_followed);
	tcase_add_test(ends, a_socket_that_this_process_closed_itself_is_replaced);
	tcase_add_test(ends, a_silent_daemon_is_waited_for_and_not_left);
	tcase_add_test(stays, bytes_of_a_dead_daemon_stay_until_the_last_hold_goes);
	tcase_add_test(stays, hundreds_of_restarts_leak_no_memory_and_no_descriptor);
	tcase_add_test(stays, series_and_counts_outlive_their_daemon);
	tcase_add_test(stays, threads_attach_anew_once_and_each_goes_on_at_its_record);
	suite_add_tcase(suite, place);
	suite_add_tcase(suite, lost);
	suite_add_tcase(suite, ends);
	suite_add_tcase(suite, stays);
	return fake_main(suite);
}
