/* SPDX-License-Identifier: Apache-2.0 */
/* test_preset_path.c - what names of files say, dates, lengths of bars, and New York's summer time. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/preset_path.h"
#include "shm/timestamp.h"

#define MINUTE INT64_C(60000000000)

static const struct {
	const char *pattern, *path;
	const char *symbol; /* NULL: no match */
	int64_t year, month, day, interval_ns;
} cases[] = {
	{"%s-trades-*", "/data/x-trades-y/BTCUSDT-trades-2024-01.zip", "BTCUSDT", 0, 0, 0, 0},
	{"%s-trades-*", "BTCUSDT-aggTrades-2024-01.zip", NULL, 0, 0, 0, 0},
	{"%s-trades-*", "-trades-2024-01.zip", NULL, 0, 0, 0, 0},
	{"%s-%i-*", "BTC-PERP-15m-2024-01-02.csv.gz", "BTC-PERP", 0, 0, 0, 15 * MINUTE},
	{"%s-%i-*", "BTCUSDT-1mo-2024.zip", "BTCUSDT", 0, 0, 0, 0},
	{"%s-%i-*", "BTCUSDT-1M-2024.zip", "BTCUSDT", 0, 0, 0, 0},
	{"%s-%i-*", "BTCUSDT-1d-2024.zip", "BTCUSDT", 0, 0, 0, 1440 * MINUTE},
	{"%s-%i-*", "BTCUSDT-0m-2024.zip", NULL, 0, 0, 0, 0},
	{"fxcm-%s-%i-*", "fxcm-gbpusd-m1-bid-2012.csv", "gbpusd", 0, 0, 0, MINUTE},
	{"DAT_ASCII_%s_%i_*", "DAT_ASCII_EURUSD_M1_2012.csv", "EURUSD", 0, 0, 0, MINUTE},
	{"%s_%d_*_message_*", "AAPL_2012-06-21_34200000_57600000_message_10.csv", "AAPL", 2012, 6,
		21, 0},
	{"%s_%d_*_message_*", "A_B_2012-06-21_1_2_message_10.CSV", "A_B", 2012, 6, 21, 0},
	{"%s_%d_*_message_*", "AAPL_2012-06-31_34200000_57600000_message_10.csv", NULL, 0, 0, 0, 0},
	{"lobster-%s-%d-message_*", "lobster-AAPL-20120621-message_10.csv.zst", "AAPL", 2012, 6, 21,
		0},
	{"%s-%d", "EURUSD-2012-01.zip", "EURUSD", 0, 0, 0, 0},
	{"%s-%d", "EURUSD-2012-13.zip", NULL, 0, 0, 0, 0},
	{"*.mbo", "glbx-mdp3-20240102.mbo.csv.zst", "", 0, 0, 0, 0},
};

START_TEST(names_of_files_say_symbol_date_and_length)
{
	struct stoup_preset_path path;
	int is = stoup_preset_path_match(cases[_i].pattern, cases[_i].path, &path);

	ck_assert_int_eq(is, cases[_i].symbol != NULL);
	if (!is)
		return;
	ck_assert_str_eq(path.symbol, cases[_i].symbol);
	ck_assert_int_eq(path.interval_ns, cases[_i].interval_ns);
	ck_assert_int_eq(path.has_day, cases[_i].year != 0);
	if (path.has_day)
		ck_assert_int_eq(
			path.day, stoup_timestamp_days(cases[_i].year, (unsigned)cases[_i].month,
					  (unsigned)cases[_i].day));
}
END_TEST

START_TEST(lengths_have_one_unit)
{
	char text[STOUP_PRESET_INTERVAL_CAP];

	stoup_preset_interval(MINUTE, text);
	ck_assert_str_eq(text, "1m");
	stoup_preset_interval(90 * MINUTE, text);
	ck_assert_str_eq(text, "90m");
	stoup_preset_interval(1440 * MINUTE, text);
	ck_assert_str_eq(text, "1d");
	stoup_preset_interval(7, text);
	ck_assert_str_eq(text, "7ns");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("preset_path");
	TCase *tcase = tcase_create("preset_path");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, names_of_files_say_symbol_date_and_length, 0,
		(int)(sizeof(cases) / sizeof(cases[0])));
	tcase_add_test(tcase, lengths_have_one_unit);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
