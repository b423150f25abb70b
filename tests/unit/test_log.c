/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's lines: levels, marks for the journal, one line per event, a bound on their rate. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "producer/log.h"

#define SECOND UINT64_C(1000000000)

static FILE *file;
static int old_stderr;
static char text[65536];

static void setup(void)
{
	unsetenv("JOURNAL_STREAM");
	file = tmpfile();
	ck_assert_ptr_nonnull(file);
	fflush(stderr);
	old_stderr = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
}

static void teardown(void)
{
	dup2(old_stderr, STDERR_FILENO);
	close(old_stderr);
	fclose(file);
}

/* All that was written. */
static const char *written(void)
{
	ssize_t len = pread(fileno(file), text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = 0;
	return text;
}

static unsigned lines(void)
{
	unsigned cnt = 0;

	for (const char *at = written(); *at; at++)
		cnt += *at == '\n';
	return cnt;
}

START_TEST(lines_beyond_the_level_are_not_written)
{
	struct stoup_log log;

	stoup_log_init(&log, "p", STOUP_LOG_WARNING);
	stoup_log_line(&log, STOUP_LOG_DEBUG, SECOND, "d");
	stoup_log_line(&log, STOUP_LOG_INFO, SECOND, "i");
	stoup_log_line(&log, STOUP_LOG_WARNING, SECOND, "w");
	stoup_log_line(&log, STOUP_LOG_ERROR, SECOND, "e");
	ck_assert_str_eq(written(), "stoupd[p]: warning: w\nstoupd[p]: error: e\n");
}
END_TEST

START_TEST(the_default_level_is_info_whose_lines_have_no_word)
{
	struct stoup_log log;

	stoup_log_init(&log, "p", STOUP_LOG_DEFAULT);
	stoup_log_line(&log, STOUP_LOG_DEBUG, SECOND, "d");
	stoup_log_line(&log, STOUP_LOG_INFO, SECOND, "i");
	ck_assert_str_eq(written(), "stoupd[p]: i\n");
}
END_TEST

START_TEST(the_journal_gets_the_numbers_of_syslog)
{
	struct stoup_log log;
	struct stat st;
	char stream[64];

	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	stoup_log_init(&log, "p", STOUP_LOG_DEBUG);
	stoup_log_line(&log, STOUP_LOG_ERROR, SECOND, "e");
	stoup_log_line(&log, STOUP_LOG_WARNING, SECOND, "w");
	stoup_log_line(&log, STOUP_LOG_INFO, SECOND, "i");
	stoup_log_line(&log, STOUP_LOG_DEBUG, SECOND, "d");
	ck_assert_str_eq(written(),
		"<3>stoupd[p]: error: e\n<4>stoupd[p]: warning: w\n<6>stoupd[p]: i\n"
		"<7>stoupd[p]: debug: d\n");
}
END_TEST

START_TEST(another_stream_than_the_journal_gets_no_marks)
{
	struct stoup_log log;

	setenv("JOURNAL_STREAM", "1:1", 1);
	stoup_log_init(&log, "p", STOUP_LOG_DEFAULT);
	stoup_log_line(&log, STOUP_LOG_INFO, SECOND, "i");
	ck_assert_str_eq(written(), "stoupd[p]: i\n");
}
END_TEST

START_TEST(an_event_is_one_line_whatever_its_text)
{
	struct stoup_log log;
	char longest[2000];

	stoup_log_init(&log, "p", STOUP_LOG_DEFAULT);
	stoup_log_line(&log, STOUP_LOG_INFO, SECOND, "a\nb\033[2Jc\x7f");
	ck_assert_str_eq(written(), "stoupd[p]: a?b?[2Jc?\n");
	/* A path is bytes: C1 commands terminals, too. */
	stoup_log_line(&log, STOUP_LOG_INFO, SECOND,
		"d\x9b"
		"e\xc2\x9b\xc3\xa9");
	ck_assert_ptr_nonnull(strstr(written(), "]: d?e??\xc3\xa9\n"));
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	stoup_log_line(&log, STOUP_LOG_INFO, SECOND, longest);
	ck_assert_uint_eq(lines(), 3);
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
}
END_TEST

START_TEST(of_a_flood_the_first_lines_are_written_and_the_rest_is_counted)
{
	struct stoup_log log;
	char line[16];

	stoup_log_init(&log, "p", STOUP_LOG_DEFAULT);
	for (int i = 0; i < 50; i++) {
		snprintf(line, sizeof(line), "%d", i);
		stoup_log_line(&log, STOUP_LOG_WARNING, 5 * SECOND + (uint64_t)i, line);
	}
	ck_assert_uint_eq(lines(), STOUP_LOG_LINE_CAP);
	/* A flood of one level takes no line from another. */
	stoup_log_line(&log, STOUP_LOG_ERROR, 5 * SECOND + 60, "e");
	ck_assert_uint_eq(lines(), STOUP_LOG_LINE_CAP + 1);
	stoup_log_line(&log, STOUP_LOG_WARNING, 6 * SECOND, "later");
	ck_assert_ptr_nonnull(
		strstr(written(), "\nstoupd[p]: warning: lines left out: 30; stoup log p shows"));
	ck_assert_ptr_nonnull(strstr(text, "\nstoupd[p]: warning: later\n"));
	ck_assert_uint_eq(lines(), STOUP_LOG_LINE_CAP + 3);
}
END_TEST

START_TEST(a_flood_that_nothing_follows_is_counted_as_well)
{
	struct stoup_log log;

	stoup_log_init(&log, "p", STOUP_LOG_DEFAULT);
	for (int i = 0; i < 25; i++)
		stoup_log_line(&log, STOUP_LOG_ERROR, 5 * SECOND, "e");
	stoup_log_tick(&log, 5 * SECOND + 1);
	ck_assert_uint_eq(lines(), STOUP_LOG_LINE_CAP);
	for (int i = 0; i < 3; i++)
		stoup_log_tick(&log, 6 * SECOND);
	ck_assert_uint_eq(lines(), STOUP_LOG_LINE_CAP + 1);
	ck_assert_ptr_nonnull(strstr(written(), "\nstoupd[p]: error: lines left out: 5; "));
	stoup_log_line(&log, STOUP_LOG_ERROR, 6 * SECOND, "later");
	ck_assert_uint_eq(lines(), STOUP_LOG_LINE_CAP + 2);
}
END_TEST

START_TEST(levels_have_names)
{
	enum stoup_log_level level = STOUP_LOG_DEFAULT;

	ck_assert_int_eq(stoup_log_parse("warning", &level), 0);
	ck_assert_int_eq(level, STOUP_LOG_WARNING);
	ck_assert_int_lt(stoup_log_parse("warn", &level), 0);
	ck_assert_int_lt(stoup_log_parse("", &level), 0);
	ck_assert_int_eq(level, STOUP_LOG_WARNING);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("log");
	TCase *tc = tcase_create("log");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, lines_beyond_the_level_are_not_written);
	tcase_add_test(tc, the_default_level_is_info_whose_lines_have_no_word);
	tcase_add_test(tc, the_journal_gets_the_numbers_of_syslog);
	tcase_add_test(tc, another_stream_than_the_journal_gets_no_marks);
	tcase_add_test(tc, an_event_is_one_line_whatever_its_text);
	tcase_add_test(tc, of_a_flood_the_first_lines_are_written_and_the_rest_is_counted);
	tcase_add_test(tc, a_flood_that_nothing_follows_is_counted_as_well);
	tcase_add_test(tc, levels_have_names);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
