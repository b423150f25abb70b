/* SPDX-License-Identifier: Apache-2.0 */
/* test_itch.c - what stands below the ITCH import: midnights of New York, dates in names, the map of open
 * orders, and what the first bytes say. */
#include "producer/bi5.h"
#include "producer/ingest_itch.h"
#include "producer/itch.h"
#include "producer/new_york.h"
#include "shm/timestamp.h"
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Asked some hundred thousand times, where ck_assert would take seconds. */
#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s", #condition);                                            \
	} while (0)

#define HOUR_NS INT64_C(3600000000000)

/* ---- midnights --------------------------------------------------------------------------------- */

/* The same rules, as the C library knows them: no table of zones is needed for that. */
static int64_t library_midnight(int year, int month, int day)
{
	struct tm tm = {
		.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_isdst = -1};

	return (int64_t)mktime(&tm) * 1000000000;
}

START_TEST(every_midnight_from_1987_to_2100_is_that_of_the_c_library)
{
	for (unsigned year = 1987; year <= 2100; year++) {
		setenv("TZ", year >= 2007 ? "EST5EDT,M3.2.0,M11.1.0" : "EST5EDT,M4.1.0,M10.5.0", 1);
		tzset();
		for (unsigned month = 1; month <= 12; month++) {
			for (unsigned day = 1; day <= stoup_month_days(year, month); day++) {
				int64_t midnight, len, of_count,
					next = library_midnight(
						(int)year, (int)month, (int)day + 1);

				must(stoup_new_york_day(year, month, day, &midnight, &len) == 0);
				must(midnight == library_midnight((int)year, (int)month, (int)day));
				must(midnight + len == next);
				must(stoup_new_york_midnight(stoup_timestamp_days(year, month, day),
					     &of_count) == 0);
				must(of_count == midnight);
			}
		}
	}
	unsetenv("TZ");
	tzset();
}
END_TEST

START_TEST(a_date_that_does_not_exist_is_refused)
{
	static const char *const bad[] = {"2019-02-29", "2019-13-01", "2019-00-01", "2019-01-00",
		"2019-01-32", "2019-1-1", "20190230", "1900-02-29", "", "2019/01/01", "201901012"};
	unsigned year, month, day;
	int64_t midnight, len;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(stoup_date_parse(bad[i], &year, &month, &day), -EINVAL);
	ck_assert_int_eq(stoup_date_parse("2000-02-29", &year, &month, &day), 0);
	ck_assert_uint_eq(year * 10000 + month * 100 + day, 20000229);
	ck_assert_int_eq(stoup_new_york_day(2019, 2, 29, &midnight, &len), -EINVAL);
	ck_assert_int_eq(stoup_new_york_day(1986, 1, 1, &midnight, &len), -ERANGE);
	ck_assert_int_eq(stoup_new_york_day(2262, 1, 1, &midnight, &len), -ERANGE);
	ck_assert_int_eq(
		stoup_new_york_midnight(stoup_timestamp_days(1986, 12, 31), &midnight), -ERANGE);
	ck_assert_int_eq(
		stoup_new_york_midnight(stoup_timestamp_days(2262, 1, 1), &midnight), -ERANGE);
	ck_assert_int_eq(stoup_new_york_midnight(-1, &midnight), -ERANGE);
}
END_TEST

START_TEST(names_of_files_tell_their_date)
{
	static const struct {
		const char *path;
		unsigned date; /* 0: none */
	} cases[] = {
		{"01302019.NASDAQ_ITCH50.gz", 20190130},
		{"/a/b/12312012.NASDAQ_ITCH50", 20121231},
		{"20190130.BX_ITCH_50", 20190130},
		{"S010220-v50.txt.gz", 20200102},
		{"13302019.NASDAQ_ITCH50", 0},
		{"S023020-v50.txt", 0},
		{"itch.bin", 0},
		{"1302019.NASDAQ_ITCH50", 0},
		{"01302019/itch.bin", 0},
		{"", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned year = 0, month = 0, day = 0;
		int rc = stoup_itch_name_date(cases[i].path, &year, &month, &day);

		ck_assert_int_eq(rc, cases[i].date ? 0 : -EINVAL);
		if (rc == 0)
			ck_assert_uint_eq(year * 10000 + month * 100 + day, cases[i].date);
	}
}
END_TEST

START_TEST(paths_of_bi5_tell_symbol_date_and_hour)
{
	struct stoup_bi5_path path;

	ck_assert_int_eq(stoup_bi5_path_parse("/x/EURUSD/2020/00/15/10h_ticks.bi5", &path), 0);
	ck_assert_str_eq(path.symbol, "EURUSD");
	ck_assert_uint_eq(path.year * 10000 + path.month * 100 + path.day, 20200115);
	ck_assert_int_eq(path.hour, 10);
	ck_assert_int_eq(stoup_bi5_path_parse("EURUSD/2020/11/31/00h_ticks.bi5", &path), 0);
	ck_assert_uint_eq(path.year * 10000 + path.month * 100 + path.day, 20201231);
	ck_assert_int_eq(stoup_bi5_path_parse("EURUSD/2020/12/01/00h_ticks.bi5", &path), -EINVAL);
	ck_assert_int_eq(stoup_bi5_path_parse("EURUSD/2019/01/29/00h_ticks.bi5", &path), -EINVAL);
	ck_assert_int_eq(stoup_bi5_path_parse("2020/00/15/10h_ticks.bi5", &path), 0);
	ck_assert_str_eq(path.symbol, "");
	ck_assert_int_eq(stoup_bi5_path_parse("10h_ticks.bi5", &path), 0);
	ck_assert_uint_eq(path.year, 0);
	ck_assert_int_eq(stoup_bi5_path_parse("ticks.bi5", &path), 0);
	ck_assert_int_eq(path.hour, -1);
	ck_assert_int_eq(stoup_bi5_path_parse("", &path), 0);
}
END_TEST

START_TEST(decimals_are_known_or_refused)
{
	static const struct {
		const char *symbol;
		int point;
	} cases[] = {{"EURUSD", 5}, {"USDJPY", 3}, {"XAUUSD", 3}, {"XAGUSD", 3}, {"AUDNZD", 5},
		{"USDHUF", -1}, {"BTCUSD", -1}, {"EUR", -1}, {"AUD CA", -1}, {"UD CAD", -1},
		{"EURUSDX", -1}, {"", -1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_int_eq(stoup_bi5_point(cases[i].symbol), cases[i].point);
}
END_TEST

/* ---- the map of orders ------------------------------------------------------------------------- */

#define REF_CNT 6000u

START_TEST(the_map_holds_what_was_added_and_not_removed)
{
	static uint32_t left[REF_CNT]; /* the model: 0 is not open */
	struct stoup_itch_orders orders;
	uint64_t seed = 1;
	size_t cnt = 0;

	ck_assert_int_eq(stoup_itch_orders_init(&orders, STOUP_ITCH_ORDER_CAP), 0);
	for (unsigned step = 0; step < 400000; step++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		/* Phases that fill and phases that empty: the map grows, and holes close. */
		uint32_t i = (uint32_t)(seed >> 33) % REF_CNT;
		/* References far apart and close together. */
		uint64_t ref = i % 2 ? i : (uint64_t)i << 40;
		struct stoup_itch_order *found = stoup_itch_orders_find(&orders, ref);

		must((found != NULL) == (left[i] > 0));
		if (found) {
			must(found->left == left[i]);
			must(found->ref == ref);
		}
		if (found && step / 50000 % 2 == 1) {
			stoup_itch_orders_remove(&orders, found);
			left[i] = 0;
			cnt--;
		} else {
			struct stoup_itch_order order = {.ref = ref, .left = step + 1, .side = 'B'};

			ck_assert_int_eq(
				stoup_itch_orders_add(&orders, &order), left[i] > 0 ? -EEXIST : 0);
			cnt += left[i] == 0;
			left[i] = left[i] > 0 ? left[i] : step + 1;
		}
		must(orders.cnt == cnt);
	}
	stoup_itch_orders_fini(&orders);
}
END_TEST

/* ---- the limit --------------------------------------------------------------------------------- */

static int64_t any_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	(void)arg;
	(void)name;
	(void)schema;
	(void)err;
	return 0;
}

static int any_put(void *arg, uint32_t series_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	(void)series_idx;
	(void)key;
	(void)record;
	(void)where;
	(void)err;
	++*(unsigned *)arg;
	return 0;
}

START_TEST(too_many_open_orders_are_refused_with_the_number)
{
	unsigned put_cnt = 0;
	const struct stoup_sink sink = {.arg = &put_cnt, .series = any_series, .put = any_put};
	const struct stoup_itch_setup setup = {.file = "day",
		.dataset = "X",
		.midnight_ns = 5 * HOUR_NS,
		.day_len_ns = 24 * HOUR_NS,
		.order_cap = 100};
	uint8_t message[36] = "A\0\1";
	struct stoup_error err = {0};
	struct stoup_itch *itch;

	memcpy(message + 24, "AAPL    ", 8);
	message[19] = 'B';
	message[23] = 9;
	ck_assert_int_eq(stoup_itch_create(&sink, &setup, &itch, &err), 0);
	for (unsigned i = 0; i < 100; i++) {
		message[18] = (uint8_t)i;
		ck_assert_int_eq(stoup_itch_message(itch, message, 36, i * 38 + 2, &err), 0);
	}
	message[18] = 100;
	ck_assert_int_eq(stoup_itch_message(itch, message, 36, 3802, &err), -E2BIG);
	ck_assert_str_eq(err.text,
		"day: the message at offset 3802 (type A): 100 orders are open at once, the most that are "
		"kept: take fewer stocks in one call (--symbols)");
	ck_assert_uint_eq(put_cnt, 100);
	ck_assert_uint_eq(stoup_itch_order_cnt(itch), 100);
	stoup_itch_destroy(itch);
}
END_TEST

START_TEST(first_bytes_tell_how_messages_are_framed)
{
	static const uint8_t event[14] = "\0\x0cS\0\0\0\0\0\0\0\0\0\x09O";
	uint8_t bytes[140];
	uint32_t cnt;

	for (unsigned i = 0; i < 10; i++)
		memcpy(bytes + i * 14, event, 14);
	ck_assert_int_eq(stoup_itch_probe(bytes, 140, &cnt), STOUP_ITCH_FRAMED);
	ck_assert_uint_eq(cnt, 10);
	ck_assert_int_eq(stoup_itch_probe(bytes, 20, &cnt), STOUP_ITCH_FRAMED);
	bytes[28] = 1;
	ck_assert_int_eq(stoup_itch_probe(bytes, 140, &cnt), STOUP_ITCH_FRAMED);
	ck_assert_uint_eq(cnt, 2);
	bytes[0] = 1;
	ck_assert_int_eq(stoup_itch_probe(bytes, 140, &cnt), STOUP_ITCH_NONE);
	for (unsigned i = 0; i < 10; i++)
		memcpy(bytes + i * 12, event + 2, 12);
	ck_assert_int_eq(stoup_itch_probe(bytes, 120, &cnt), STOUP_ITCH_BARE);
	ck_assert_int_eq(
		stoup_itch_probe((const uint8_t *)"S,1,2,3\nS,1,2,3\n", 16, &cnt), STOUP_ITCH_NONE);
	ck_assert_int_eq(stoup_itch_probe(bytes, 0, &cnt), STOUP_ITCH_NONE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("itch");
	TCase *tcase = tcase_create("itch");

	tcase_add_test(tcase, every_midnight_from_1987_to_2100_is_that_of_the_c_library);
	tcase_add_test(tcase, a_date_that_does_not_exist_is_refused);
	tcase_add_test(tcase, names_of_files_tell_their_date);
	tcase_add_test(tcase, paths_of_bi5_tell_symbol_date_and_hour);
	tcase_add_test(tcase, decimals_are_known_or_refused);
	tcase_add_test(tcase, the_map_holds_what_was_added_and_not_removed);
	tcase_add_test(tcase, too_many_open_orders_are_refused_with_the_number);
	tcase_add_test(tcase, first_bytes_tell_how_messages_are_framed);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed_cnt = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed_cnt == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
