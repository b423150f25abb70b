/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_list.c - lists of processors: what is one, what is not and why. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/cpu_list.h"

#define CAP 8u

static const uint64_t allowed[] = {0x0ffe, 0x3}; /* 1 to 11, 64, 65 */
static uint32_t cpus[CAP], cnt;
static struct stoup_error err;

static int parse(const char *text)
{
	cnt = 99;
	return stoup_cpu_list_parse(text, allowed, 2, cpus, CAP, &cnt, &err);
}

static void expect(const char *text, uint32_t expected_cnt, const uint32_t *expected)
{
	ck_assert_msg(parse(text) == 0, "%s: %s", text, err.text);
	ck_assert_uint_eq(cnt, expected_cnt);
	for (uint32_t i = 0; i < cnt; i++)
		ck_assert_uint_eq(cpus[i], expected[i]);
}

static void refused(const char *text, const char *words)
{
	ck_assert_int_eq(parse(text), -EINVAL);
	ck_assert_msg(
		strstr(err.text, words) != NULL, "'%s': '%s' lacks '%s'", text, err.text, words);
	ck_assert_uint_eq(cnt, 99);
}

START_TEST(numbers_and_ranges_are_taken_in_their_order)
{
	expect("3", 1, (const uint32_t[]){3});
	expect("7,1-3,65", 5, (const uint32_t[]){7, 1, 2, 3, 65});
	expect("4-4", 1, (const uint32_t[]){4});
	expect("1-8", 8, (const uint32_t[]){1, 2, 3, 4, 5, 6, 7, 8});
}
END_TEST

START_TEST(what_is_no_list_is_told_as_it_was_given)
{
	static const char *const texts[] = {"", ",", "1,", ",1", "a", "1-", "-1", "3-2", "1 2",
		"1;2", "1--2", "0x1", " 1", "99999999999999999999999"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		refused(texts[i], "a list of processors is wanted, such as 2,5-7");
		ck_assert_ptr_nonnull(strstr(err.text, texts[i]));
	}
}
END_TEST

START_TEST(a_processor_that_is_not_ours_twice_or_too_many_is_told)
{
	refused("0", "processor 0 is none that this process may use, which are 1-11,64-65");
	refused("1,12", "processor 12 is none");
	refused("1-18446744073709551615", "more than 8 processors");
	refused("64-66", "processor 66 is none");
	refused("100000", "processor 100000 is none");
	refused("1,2,1", "processor 1 is named twice");
	refused("1-3,2", "processor 2 is named twice");
	refused("1-9", "more than 8 processors");
}
END_TEST

START_TEST(without_a_set_the_kernel_says_which_are_ours)
{
	uint32_t first = 0;
	cpu_set_t set;
	char text[32];

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(first, &set))
		first++;
	snprintf(text, sizeof(text), "%u", first);
	ck_assert_int_eq(stoup_cpu_list_parse(text, NULL, 0, cpus, CAP, &cnt, &err), 0);
	ck_assert_uint_eq(cnt, 1);
	ck_assert_uint_eq(cpus[0], first);
}
END_TEST

START_TEST(a_list_is_printed_as_it_is_read_and_cut_where_it_does_not_fit)
{
	const uint32_t some[] = {7, 1, 2, 3, 65}, many[] = {10, 20, 30, 40, 50};
	char text[64];

	stoup_cpu_list_text(some, 5, text, sizeof(text));
	ck_assert_str_eq(text, "7,1-3,65");
	stoup_cpu_list_text(some, 0, text, sizeof(text));
	ck_assert_str_eq(text, "");
	stoup_cpu_list_text(many, 5, text, 10);
	ck_assert_str_eq(text, "10,20...");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cpu_list");
	TCase *tcase = tcase_create("cpu_list");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, numbers_and_ranges_are_taken_in_their_order);
	tcase_add_test(tcase, what_is_no_list_is_told_as_it_was_given);
	tcase_add_test(tcase, a_processor_that_is_not_ours_twice_or_too_many_is_told);
	tcase_add_test(tcase, without_a_set_the_kernel_says_which_are_ours);
	tcase_add_test(tcase, a_list_is_printed_as_it_is_read_and_cut_where_it_does_not_fit);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
