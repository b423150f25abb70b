/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_replay.c - replays by a clock that the test moves: what is due when, in which order, how late.
 *
 * The reference has the records as a plain scan gives them, and the line from the clock to the data in whole numbers:
 * speeds are whole or one over a whole number. Nothing here waits.
 */
#include <math.h>
#include <sys/timerfd.h>
#include "consumer/merge.h"
#include "consumer/pace.h"
#include "consumer/replay.h"
#include "tests/unit/test_consumer_fake.h"

#define BEGIN 7000000

static const struct fake_series some[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 3,
		.segments = {{0, 4, {1000, 1010, 1010, 1500}}, {1, 1, {1500}},
			{2, 5, {9000, 9001, 9001, 9002, 20000}}}},
	{.name = "K/x",
		.schema = "pair",
		.flags = STOUP_CATALOG_KEEP_ORDER,
		.segment_cnt = 2,
		.segments = {{3, 6, {1005, 1200, 1100, 1490, 1300, 1495}},
			{4, 3, {1495, 9001, 9000}}}},
};

static const struct stoup_options quick = {
	.struct_len = sizeof(struct stoup_options), .timeout_ns = 60000000000};

static struct fake fake;
static struct stoup *st;
static struct stoup_series series[2];
static struct stoup_cursor *cur;
static struct stoup_replay *replay;
static struct stoup_error err;

/* ---- the clock -------------------------------------------------------------------------------- */

static uint64_t now_ns, asked_due, state;
static uint32_t late_by; /* each wait ends up to as much late */
static int signals;

static uint32_t below(uint32_t cnt)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % cnt);
}

static uint64_t clock_now(void *arg)
{
	(void)arg;
	return now_ns;
}

static int clock_wait(void *arg, uint64_t due_ns, uint64_t until_ns)
{
	(void)arg;
	asked_due = due_ns;
	if (signals > 0 && signals-- > 0)
		return -EINTR;
	ck_assert(due_ns != UINT64_MAX || until_ns != UINT64_MAX);
	ck_assert_uint_gt(due_ns, now_ns);
	now_ns = (due_ns < until_ns ? due_ns : until_ns) + (late_by ? below(late_by) : 0);
	return 0;
}

static void begin(uint32_t cnt, const struct stoup_replay_options *opt)
{
	const struct stoup_replay_clock clock = {clock_now, clock_wait, NULL};
	int rc;

	fake_init(&fake);
	fake_volume(&fake, 1, 0, 5, some, 2);
	fake_start(&fake, "p");
	st = fake_attach("p", &quick);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_int_eq(stoup_series_find(st, some[i].name, &series[i], &err), 0);
	rc = cnt == 1 ? stoup_scan(st, series, NULL, &cur, &err)
	              : stoup_merge(st, series, cnt, NULL, &cur, &err);
	fake_check(rc, &err);
	rc = stoup_replay_open(cur, opt, &replay, &err);
	fake_check(rc, &err);
	stoup_replay_clock(replay, &clock);
	now_ns = BEGIN;
	late_by = 0;
	signals = 0;
	state = 5;
}

static void end(void)
{
	stoup_replay_close(replay);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

static struct stoup_replay_state state_of(void)
{
	struct stoup_replay_state ret = {.struct_len = sizeof(ret)};

	ck_assert_int_eq(stoup_replay_stats(replay, &ret), 0);
	return ret;
}

static struct stoup_replay_options at_speed(double speed)
{
	return (struct stoup_replay_options){
		.struct_len = sizeof(struct stoup_replay_options), .speed = speed};
}

/* Wait for the next span: its records are `cnt`, at `clock`. */
static void expect(uint64_t cnt, uint64_t clock, int64_t key)
{
	struct stoup_span span;
	int rc = stoup_replay_next(replay, STOUP_REPLAY_WAIT, &span);

	ck_assert_int_eq(rc, 1);
	ck_assert_uint_eq(now_ns, BEGIN + clock);
	ck_assert_uint_eq(span.record_cnt, cnt);
	ck_assert_int_eq(((const struct pair *)span.base)->key, key);
}

static void expect_end(void)
{
	struct stoup_span span;

	ck_assert_int_eq(stoup_replay_next(replay, STOUP_REPLAY_WAIT, &span), 0);
	ck_assert_int_eq(stoup_replay_next(replay, 0, &span), 0);
}

/* ---- tests ------------------------------------------------------------------------------------ */

START_TEST(records_come_when_they_are_due_and_those_of_one_time_together)
{
	struct stoup_replay_options opt = at_speed(10);

	begin(1, &opt);
	expect(1, 0, 1000);
	expect(2, 1, 1010);
	expect(1, 50, 1500);
	expect(1, 50, 1500); /* of the next segment */
	expect(1, 800, 9000);
	expect(3, 801, 9001); /* at 800.1, 800.1 and 800.2 */
	now_ns += 5000;
	expect(1, 5801, 20000);
	expect_end();
	ck_assert_uint_eq(state_of().record_cnt, 10);
	ck_assert_uint_eq(state_of().span_cnt, 7);
	ck_assert_uint_eq(state_of().late_cnt, 10);
	ck_assert_uint_eq(state_of().late_max_ns, 5801 - 1900);
	end();
}
END_TEST

START_TEST(a_merge_is_replayed_in_its_order_at_the_places_that_it_gives)
{
	struct stoup_replay_options opt = at_speed(1);

	begin(2, &opt);
	expect(1, 0, 1000);
	expect(1, 5, 1005);
	ck_assert_uint_eq(stoup_cursor_source(cur), 1);
	expect(2, 10, 1010);
	/* 1200, then 1100 that stands there as well. */
	expect(2, 200, 1200);
	expect(2, 490, 1490);
	expect(1, 495, 1495);
	expect(1, 495, 1495);
	expect(1, 500, 1500);
	expect(1, 500, 1500);
	expect(1, 8000, 9000);
	expect(2, 8001, 9001);
	expect(2, 8001, 9001);
	ck_assert_uint_eq(stoup_cursor_source(cur), 1);
	expect(1, 8002, 9002);
	expect(1, 19000, 20000);
	expect_end();
	end();
}
END_TEST

START_TEST(long_gaps_are_cut_and_only_those)
{
	struct stoup_replay_options opt = at_speed(1);

	opt.max_gap_ns = 490;
	begin(1, &opt);
	expect(1, 0, 1000);
	expect(2, 10, 1010);
	expect(1, 500, 1500);
	expect(1, 500, 1500);
	expect(1, 990, 9000);
	ck_assert_uint_eq(state_of().skipped_ns, 7500 - 490);
	ck_assert_int_eq(state_of().data_ns, 9000);
	expect(2, 991, 9001);
	expect(1, 992, 9002);
	/* Late is counted from the time that the cut gave. */
	now_ns += 600;
	expect(1, 1592, 20000);
	ck_assert_uint_eq(state_of().late_max_ns, 1592 - 992 - 490);
	ck_assert_uint_eq(state_of().skipped_ns, 7500 - 490 + 10998 - 490);
	expect_end();
	end();
}
END_TEST

START_TEST(what_lies_before_the_start_is_history_and_comes_at_once)
{
	struct stoup_replay_options opt = at_speed(1);

	opt.start_ns = 1400;
	opt.begin_ns = BEGIN + 10;
	begin(1, &opt);
	expect(3, 0, 1000);
	expect(1, 110, 1500);
	expect(1, 110, 1500);
	ck_assert_uint_eq(state_of().late_cnt, 2);
	ck_assert_uint_eq(state_of().record_cnt, 5);
	end();
}
END_TEST

START_TEST(a_pause_holds_everything_back_and_the_data_goes_on_where_it_stood)
{
	struct stoup_replay_options opt = at_speed(1);
	struct stoup_span span;

	opt.flags = STOUP_REPLAY_PAUSED;
	begin(1, &opt);
	ck_assert_int_eq(stoup_replay_next(replay, 100, &span), STOUP_REPLAY_LATER);
	ck_assert_uint_eq(now_ns, BEGIN + 100);
	ck_assert_uint_eq(asked_due, UINT64_MAX);
	ck_assert_int_eq(stoup_replay_resume(replay), 0);
	expect(1, 100, 1000);
	expect(2, 110, 1010);
	now_ns += 90; /* data: 1100 */
	ck_assert_int_eq(stoup_replay_pause(replay), 0);
	ck_assert_uint_eq(state_of().paused, 1);
	ck_assert_int_eq(state_of().data_ns, 1100);
	ck_assert_uint_eq(state_of().due_ns, 0);
	now_ns += 100000;
	ck_assert_int_eq(stoup_replay_next(replay, 0, &span), STOUP_REPLAY_LATER);
	ck_assert_int_eq(stoup_replay_speed(replay, 0.5), 0);
	ck_assert_int_eq(stoup_replay_resume(replay), 0);
	ck_assert_int_eq(state_of().data_ns, 1100);
	ck_assert_uint_eq(state_of().due_ns, BEGIN + 200 + 100000 + 800);
	expect(1, 200 + 100000 + 800, 1500);
	/* A change of speed while it waits: 7500 are left, 1000 of them pass at 0.5. */
	expect(1, 200 + 100000 + 800, 1500);
	now_ns += 2000;
	ck_assert_int_eq(stoup_replay_speed(replay, 100), 0);
	expect(1, 200 + 100000 + 800 + 2000 + 65, 9000);
	ck_assert_uint_eq(state_of().late_max_ns, 0);
	end();
}
END_TEST

START_TEST(as_fast_as_can_be_yields_whole_spans_and_measures_nothing)
{
	struct stoup_replay_options opt = at_speed(INFINITY);

	opt.max_gap_ns = 1;
	begin(1, &opt);
	expect(4, 0, 1000);
	expect(1, 0, 1500);
	expect(5, 0, 9000);
	expect_end();
	ck_assert_uint_eq(state_of().late_cnt, 0);
	ck_assert_int_eq(state_of().data_ns, 20000);
	end();
}
END_TEST

START_TEST(a_signal_ends_the_wait_and_nothing_is_lost)
{
	struct stoup_replay_options opt = at_speed(1);
	struct stoup_span span;

	begin(1, &opt);
	expect(1, 0, 1000);
	signals = 2;
	ck_assert_int_eq(stoup_replay_next(replay, STOUP_REPLAY_WAIT, &span), -EINTR);
	ck_assert_int_eq(stoup_replay_next(replay, 3, &span), -EINTR);
	/* The cursor did not fail: there is nothing to step over. */
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	expect(2, 10, 1010);
	end();
}
END_TEST

START_TEST(a_damaged_block_is_told_and_can_be_stepped_over)
{
	struct stoup_replay_options opt = at_speed(1);
	struct stoup_span span;

	begin(1, &opt);
	atomic_store(&fake.volumes[0].blocks[1].error, -EBADMSG);
	atomic_store(&fake.volumes[0].blocks[1].act, FAKE_FAIL);
	expect(1, 0, 1000);
	expect(2, 10, 1010);
	expect(1, 500, 1500);
	ck_assert_int_eq(stoup_replay_next(replay, STOUP_REPLAY_WAIT, &span), -EBADMSG);
	ck_assert_int_eq(stoup_cursor_skip(cur), 1);
	expect(1, 8000, 9000);
	end();
}
END_TEST

/* ---- against a reference ----------------------------------------------------------------------- */

struct line {
	int64_t data, mul, div; /* speed mul / div */
	uint64_t mono;
	int paused;
};

static int64_t data_at(const struct line *l)
{
	return l->paused ? l->data : l->data + (int64_t)(now_ns - l->mono) * l->mul / l->div;
}

START_TEST(whatever_the_clock_and_the_user_do_all_that_is_due_comes_and_nothing_else)
{
	/* Places of the merge in order, as the two series above have them. */
	static const int64_t places[] = {1000, 1005, 1010, 1010, 1200, 1200, 1490, 1490, 1495, 1495,
		1500, 1500, 9000, 9001, 9001, 9001, 9001, 9002, 20000};
	static const int64_t muls[] = {1, 2, 7, 100, 1, 1}, divs[] = {1, 1, 1, 1, 4, 2};

	for (uint64_t seed = 1; seed <= 120; seed++) {
		int64_t gap = seed % 3 == 0 ? 100 : 0, skipped = 0;
		struct stoup_replay_options opt = at_speed(1);
		struct line l = {1000, 1, 1, BEGIN, 0};
		uint64_t done = 0, late[19], late_cnt = 0, late_max = 0;
		struct stoup_span span;

		opt.max_gap_ns = (uint64_t)gap;
		begin(2, &opt);
		state = seed;
		while (done < 19) {
			int rc = stoup_replay_next(replay, 0, &span);
			uint64_t before = done, cnt = rc == 1 ? span.record_cnt : 0;

			for (; done < before + cnt; done++) {
				int64_t step = done ? places[done] - places[done - 1] : 0, at;
				uint64_t due;

				skipped += gap && step > gap ? step - gap : 0;
				at = places[done] - skipped;
				ck_assert_int_le(at, data_at(&l));
				ck_assert(!l.paused);
				due = at <= l.data ? l.mono
				                   : l.mono + (uint64_t)(((at - l.data) * l.div +
										 l.mul - 1) /
									 l.mul);
				late[late_cnt++] = now_ns - due;
				late_max = now_ns - due > late_max ? now_ns - due : late_max;
			}
			if (rc == STOUP_REPLAY_LATER && !l.paused) {
				int64_t step = places[done] - places[done ? done - 1 : 0];

				/* Nothing that is due was kept back. */
				ck_assert_int_gt(places[done] - skipped -
							 (gap && step > gap ? step - gap : 0),
					data_at(&l));
			}
			if (rc == 1)
				continue;
			ck_assert_int_eq(rc, STOUP_REPLAY_LATER);
			now_ns += below(900);
			if (below(3) > 0)
				continue;
			l.data = data_at(&l);
			l.mono = now_ns;
			if (below(2)) {
				uint32_t s = below(6);

				l.mul = muls[s];
				l.div = divs[s];
				ck_assert_int_eq(
					stoup_replay_speed(replay, (double)l.mul / (double)l.div),
					0);
			} else {
				l.paused = !l.paused;
				ck_assert_int_eq(l.paused ? stoup_replay_pause(replay)
							  : stoup_replay_resume(replay),
					0);
			}
		}
		ck_assert_int_eq(stoup_replay_next(replay, 0, &span), 0);
		ck_assert_uint_eq(state_of().late_cnt, late_cnt);
		ck_assert_uint_eq(state_of().late_max_ns, late_max);
		for (uint32_t i = 0, above = 0; i < late_cnt; i++) {
			above += late[i] > state_of().late_p50_ns;
			ck_assert_uint_le(above, 9);
		}
		end();
	}
}
END_TEST

/* ---- the descriptor, with the machine's clock ---------------------------------------------------- */

START_TEST(the_descriptor_is_armed_for_the_next_record_and_disarmed_by_a_pause)
{
	const struct stoup_replay_clock machine = {0};
	struct stoup_replay_options opt = at_speed(1);
	struct itimerspec at;
	struct stoup_span span;
	int rc;

	/* The first record is due in an hour. */
	opt.begin_ns = stoup_client_now() + 3600 * UINT64_C(1000000000);
	begin(1, &opt);
	stoup_replay_clock(replay, &machine);
	ck_assert_int_eq(stoup_replay_next(replay, 0, &span), STOUP_REPLAY_LATER);
	ck_assert_uint_eq(state_of().due_ns, opt.begin_ns);
	ck_assert_int_eq(timerfd_gettime(stoup_replay_fd(replay), &at), 0);
	ck_assert_int_gt(at.it_value.tv_sec, 3000);
	ck_assert_int_eq(stoup_replay_next(replay, 1000, &span), STOUP_REPLAY_LATER);
	ck_assert_int_eq(stoup_replay_pause(replay), 0);
	ck_assert_int_eq(timerfd_gettime(stoup_replay_fd(replay), &at), 0);
	ck_assert_int_eq(at.it_value.tv_sec, 0);
	ck_assert_int_eq(at.it_value.tv_nsec, 0);
	ck_assert_int_eq(stoup_replay_resume(replay), 0);
	ck_assert_int_eq(timerfd_gettime(stoup_replay_fd(replay), &at), 0);
	ck_assert_int_gt(at.it_value.tv_sec, 3000);
	end();
	/* And really waits, a little. */
	opt.begin_ns = stoup_client_now() + 2000000;
	begin(1, &opt);
	stoup_replay_clock(replay, &machine);
	while ((rc = stoup_replay_next(replay, STOUP_REPLAY_WAIT, &span)) == 1)
		ck_assert_uint_ge(stoup_client_now(), opt.begin_ns);
	ck_assert_int_eq(rc, 0);
	ck_assert_uint_eq(state_of().late_cnt, 10);
	end();
}
END_TEST

static void *resume_soon(void *arg)
{
	usleep(2000);
	ck_assert_int_eq(stoup_replay_resume(arg), 0);
	return NULL;
}

START_TEST(another_thread_resumes_a_replay_that_waits)
{
	const struct stoup_replay_clock machine = {0};
	struct stoup_replay_options opt = at_speed(1);
	struct stoup_span span;
	pthread_t thread;

	opt.flags = STOUP_REPLAY_PAUSED;
	begin(1, &opt);
	stoup_replay_clock(replay, &machine);
	ck_assert_int_eq(pthread_create(&thread, NULL, resume_soon, replay), 0);
	ck_assert_int_eq(stoup_replay_next(replay, STOUP_REPLAY_WAIT, &span), 1);
	pthread_join(thread, NULL);
	end();
}
END_TEST

START_TEST(wrong_use_is_refused)
{
	static const double speeds[] = {-1, 0.0009, 1.1e9, -INFINITY, NAN};
	struct stoup_replay_options opt = at_speed(1);
	struct stoup_replay_state short_state = {.struct_len = 8};
	struct stoup_replay *other = NULL;
	struct stoup_cursor *back;
	struct stoup_span span;

	begin(1, &opt);
	back = fake_scan_flags(st, "A/x", 0, 0, STOUP_BACKWARD);
	ck_assert_int_eq(stoup_replay_open(back, NULL, &other, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "STOUP_BACKWARD"));
	stoup_cursor_close(back);
	ck_assert_int_eq(stoup_replay_open(NULL, NULL, &other, &err), -EINVAL);
	for (uint32_t i = 0; i < 5; i++) {
		opt = at_speed(speeds[i]);
		ck_assert_int_eq(stoup_replay_open(cur, &opt, &other, &err), -EINVAL);
		ck_assert_int_eq(stoup_replay_speed(replay, speeds[i]), -EINVAL);
	}
	ck_assert_int_eq(stoup_replay_speed(replay, 0), -EINVAL);
	opt = at_speed(1);
	opt.flags = 2;
	ck_assert_int_eq(stoup_replay_open(cur, &opt, &other, &err), -EINVAL);
	opt.flags = 0;
	opt.struct_len = 8;
	ck_assert_int_eq(stoup_replay_open(cur, &opt, &other, &err), -EINVAL);
	opt = at_speed(1);
	opt.start_ns = -1;
	ck_assert_int_eq(stoup_replay_open(cur, &opt, &other, &err), -EINVAL);
	ck_assert_ptr_null(other);
	ck_assert_int_eq(stoup_replay_stats(replay, &short_state), -EINVAL);
	ck_assert_int_eq(stoup_replay_next(NULL, 0, &span), -EINVAL);
	ck_assert_int_eq(stoup_replay_pause(NULL), -EINVAL);
	ck_assert_int_eq(stoup_replay_fd(NULL), -EINVAL);
	stoup_replay_close(NULL);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("replay");
	TCase *tcase = tcase_create("replay");

	tcase_set_timeout(tcase, 100);
	tcase_add_test(tcase, records_come_when_they_are_due_and_those_of_one_time_together);
	tcase_add_test(tcase, a_merge_is_replayed_in_its_order_at_the_places_that_it_gives);
	tcase_add_test(tcase, long_gaps_are_cut_and_only_those);
	tcase_add_test(tcase, what_lies_before_the_start_is_history_and_comes_at_once);
	tcase_add_test(tcase, a_pause_holds_everything_back_and_the_data_goes_on_where_it_stood);
	tcase_add_test(tcase, as_fast_as_can_be_yields_whole_spans_and_measures_nothing);
	tcase_add_test(tcase, a_signal_ends_the_wait_and_nothing_is_lost);
	tcase_add_test(tcase, a_damaged_block_is_told_and_can_be_stepped_over);
	tcase_add_test(
		tcase, whatever_the_clock_and_the_user_do_all_that_is_due_comes_and_nothing_else);
	tcase_add_test(tcase, the_descriptor_is_armed_for_the_next_record_and_disarmed_by_a_pause);
	tcase_add_test(tcase, another_thread_resumes_a_replay_that_waits);
	tcase_add_test(tcase, wrong_use_is_refused);
	suite_add_tcase(suite, tcase);
	return fake_main(suite);
}
