/* SPDX-License-Identifier: Apache-2.0 */
/* test_pace.c - times of the data and of the clock, and how late things were, without a clock. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include "consumer/pace.h"

#define DAY INT64_C(86400000000000)
#define T0  (INT64_C(19700) * DAY)

static uint64_t state = 9;

static uint64_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 20;
}

static struct stoup_pace line(double speed)
{
	return (struct stoup_pace){
		.data_ns = T0, .mono_ns = 5000000000, .speed = stoup_pace_speed(speed)};
}

START_TEST(a_record_is_due_when_the_clock_has_come_as_far)
{
	struct stoup_pace pace = line(2);

	ck_assert_uint_eq(stoup_pace_due(&pace, T0), 5000000000);
	ck_assert_uint_eq(stoup_pace_due(&pace, T0 + 1000), 5000000500);
	ck_assert_uint_eq(stoup_pace_due(&pace, T0 + 1001), 5000000501);
	ck_assert_int_eq(stoup_pace_limit(&pace, 5000000000), T0);
	ck_assert_int_eq(stoup_pace_limit(&pace, 5000000001), T0 + 2);
	pace = line(0.25);
	ck_assert_uint_eq(stoup_pace_due(&pace, T0 + 1000), 5000004000);
	ck_assert_int_eq(stoup_pace_limit(&pace, 5000000003), T0);
	ck_assert_int_eq(stoup_pace_limit(&pace, 5000000004), T0 + 1);
	/* Before the begin, what lies in front is due and nothing else. */
	ck_assert_int_eq(stoup_pace_limit(&pace, 4999999999), T0 - 1);
	ck_assert_uint_eq(stoup_pace_due(&pace, T0 - 1), 0);
	pace = line(INFINITY);
	ck_assert_uint_eq(stoup_pace_due(&pace, INT64_MAX), 5000000000);
	ck_assert_int_eq(stoup_pace_limit(&pace, 5000000000), INT64_MAX);
	ck_assert_int_eq(stoup_pace_limit(&pace, 4999999999), T0 - 1);
}
END_TEST

START_TEST(due_and_limit_say_the_same_at_every_speed)
{
	static const double speeds[] = {0.001, 0.1, 0.7, 1, 1.0 / 3, 3, 59.94, 1e6, 1e9};

	for (uint32_t s = 0; s < sizeof(speeds) / sizeof(speeds[0]); s++) {
		struct stoup_pace pace = line(speeds[s]);

		for (uint32_t i = 0; i < 20000; i++) {
			int64_t data = T0 + (int64_t)(draw() >> draw() % 44);
			uint64_t due = stoup_pace_due(&pace, data);
			double exact = (double)(data - T0) / speeds[s];

			/* Not a nanosecond early, nor more than one late. */
			ck_assert_int_ge(stoup_pace_limit(&pace, due), data);
			if (due > pace.mono_ns)
				ck_assert_int_lt(stoup_pace_limit(&pace, due - 1), data);
			/* The speed is what was asked for, to a part in ten thousand of 2^32 times it. */
			ck_assert_double_le(
				fabs((double)(due - pace.mono_ns) - exact), 2 + exact * 1e-6);
		}
	}
}
END_TEST

START_TEST(the_ends_of_time_are_met_without_overflow)
{
	struct stoup_pace pace = line(1e9);

	ck_assert_int_eq(stoup_pace_limit(&pace, UINT64_MAX), INT64_MAX);
	pace = line(0.001);
	ck_assert_uint_eq(stoup_pace_due(&pace, INT64_MAX), UINT64_MAX);
	pace = line(1.0 / 128);
	ck_assert_int_eq(stoup_pace_limit(&pace, INT64_MAX), T0 + (INT64_MAX - 5000000000) / 128);
	pace.data_ns = 0;
	pace.speed = stoup_pace_speed(1);
	ck_assert_uint_eq(stoup_pace_due(&pace, INT64_MAX), (uint64_t)INT64_MAX + 5000000000);
	ck_assert_int_eq(stoup_pace_limit(&pace, (uint64_t)INT64_MAX + 5000000000), INT64_MAX);
}
END_TEST

START_TEST(a_pause_and_a_change_of_speed_go_on_where_the_data_stood)
{
	struct stoup_pace pace = line(10);

	stoup_pace_turn(&pace, 5000000007, pace.speed, 1);
	ck_assert_int_eq(pace.data_ns, T0 + 70);
	ck_assert_uint_eq(stoup_pace_due(&pace, T0), UINT64_MAX);
	ck_assert_int_eq(stoup_pace_limit(&pace, 9000000000), INT64_MIN);
	stoup_pace_turn(&pace, 5000000100, stoup_pace_speed(2), 1);
	stoup_pace_turn(&pace, 5000001000, pace.speed, 0);
	ck_assert_int_eq(stoup_pace_limit(&pace, 5000001000), T0 + 70);
	ck_assert_uint_eq(stoup_pace_due(&pace, T0 + 70), 5000001000);
	ck_assert_uint_eq(stoup_pace_due(&pace, T0 + 80), 5000001005);
	ck_assert_uint_eq(stoup_pace_due(&pace, T0 + 69), 0);
	/* Turned before the begin: it begins when it was to. */
	pace = line(1);
	stoup_pace_turn(&pace, 1000, stoup_pace_speed(4), 0);
	ck_assert_uint_eq(stoup_pace_due(&pace, T0 + 8), 5000000002);
}
END_TEST

START_TEST(buckets_are_sixteen_to_a_power_of_two_without_a_gap)
{
	uint32_t last = 0;

	for (uint64_t ns = 0; ns < 100000; ns++) {
		uint32_t bucket = stoup_late_bucket(ns);

		ck_assert_uint_le(bucket - last, 1);
		ck_assert_uint_ge(stoup_late_high(bucket), ns);
		if (bucket > 0)
			ck_assert_uint_lt(stoup_late_high(bucket - 1), ns);
		ck_assert_uint_le(stoup_late_high(bucket) - ns, ns / 16);
		last = bucket;
	}
	ck_assert_uint_eq(stoup_late_bucket(UINT64_MAX), STOUP_LATE_BUCKETS - 1);
	ck_assert_uint_eq(stoup_late_high(STOUP_LATE_BUCKETS - 1), UINT64_MAX);
}
END_TEST

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

START_TEST(percentiles_are_those_of_the_sorted_values)
{
	static uint64_t values[5000];
	struct stoup_late *late = calloc(1, sizeof(*late));

	ck_assert_ptr_nonnull(late);
	ck_assert_uint_eq(stoup_late_part(late, 500), 0);
	for (uint32_t i = 0; i < 5000; i++) {
		values[i] = draw() >> draw() % 44;
		stoup_late_add(late, values[i], 1);
	}
	qsort(values, 5000, sizeof(*values), by_value);
	ck_assert_uint_eq(late->max_ns, values[4999]);
	for (uint32_t part = 1; part <= 1000; part++) {
		uint64_t exact = values[part * 5 - 1], got = stoup_late_part(late, part);

		ck_assert_uint_ge(got, exact);
		ck_assert_uint_le(got - exact, exact / 16);
	}
	free(late);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pace");
	TCase *tcase = tcase_create("pace");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, a_record_is_due_when_the_clock_has_come_as_far);
	tcase_add_test(tcase, due_and_limit_say_the_same_at_every_speed);
	tcase_add_test(tcase, the_ends_of_time_are_met_without_overflow);
	tcase_add_test(tcase, a_pause_and_a_change_of_speed_go_on_where_the_data_stood);
	tcase_add_test(tcase, buckets_are_sixteen_to_a_power_of_two_without_a_gap);
	tcase_add_test(tcase, percentiles_are_those_of_the_sorted_values);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
