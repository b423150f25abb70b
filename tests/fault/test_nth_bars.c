/* SPDX-License-Identifier: Apache-2.0 */
/* test_nth_bars.c - each call for memory that bars make fails once: a clean error, and nothing left behind. */
#include "consumer/cursor.h"
#include "consumer/stoup_bars.h"
#include "tests/fault/countdown.h"

static struct stoup_error err;

/* Open and close; a cursor that nothing is read from. */
static int opened(void)
{
	struct stoup_cursor cursor = {.schema = stoup_schema_by_name("trades"), .step = 1};
	struct stoup_bars_spec spec = {
		.struct_len = sizeof(spec), .kind = STOUP_BARS_TIME, .step = 60};
	struct stoup_bars *bars = (struct stoup_bars *)(void *)&cursor;
	int rc = stoup_bars_open(&cursor, &spec, &bars, &err);

	if (rc < 0) {
		COUNTDOWN_MUST((void *)bars == (void *)&cursor);
		return rc;
	}
	COUNTDOWN_MUST(stoup_bars_schema(bars) != NULL);
	stoup_bars_close(bars);
	return 0;
}

/* The same where the spec is refused after memory was taken. */
static int refused(void)
{
	struct stoup_cursor cursor = {.schema = stoup_schema_by_name("statistics"), .step = 1};
	struct stoup_bars_spec spec = {
		.struct_len = sizeof(spec), .kind = STOUP_BARS_TIME, .step = 60};
	struct stoup_bars *bars;

	return stoup_bars_open(&cursor, &spec, &bars, &err);
}

static void check(int (*scenario)(void), int end)
{
	struct countdown c;
	int rc = 0, fired = 1, failed = 0;

	for (long nth = 1; nth < 100 && fired; nth++) {
		memset(&err, 0, sizeof(err));
		countdown_begin(&c, COUNTDOWN_MEMORY, nth);
		rc = scenario();
		fired = countdown_end(&c);
		ck_assert_msg(rc == (fired ? -ENOMEM : end), "call %ld: %d %s", nth, rc, err.text);
		ck_assert(rc == 0 || (err.code == rc && err.text[0]));
		failed += fired;
	}
	ck_assert_int_ge(failed, 1);
}

START_TEST(bars_are_opened_or_not)
{
	check(opened, 0);
}
END_TEST

START_TEST(a_refusal_keeps_nothing)
{
	check(refused, -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nth bars");
	TCase *tcase = tcase_create("nth bars");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, bars_are_opened_or_not);
	tcase_add_test(tcase, a_refusal_keeps_nothing);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
