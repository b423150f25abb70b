/* SPDX-License-Identifier: Apache-2.0 */
/* test_ls.c - `stoup ls`: one row per series, whatever its volumes, and gaps that claim nothing. */
#include <check.h>
#include "import_fixture.h"

#define HOUR_NS 3600000000000ll
#define DAY0    1700006400000000000ll /* 2023-11-15T00:00:00Z */

static int ls(const char **text, char *a, char *b, char *c)
{
	char command[] = "ls";
	char *argv[] = {command, a, b, c, NULL};

	return fx_run(stoup_cmd_ls, argv, text);
}

static void ingest(const char *name, int64_t first, int64_t last)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	uint32_t series = fx_series(import, name);

	fx_put(import, series, 1, first);
	fx_put(import, series, 2, last);
	fx_finish(import);
}

static void store_setup(void)
{
	fx_setup();
	/* The later day first: rows go by key, not by ingest. */
	ingest("D/ES/fx", DAY0 + 30 * HOUR_NS, DAY0 + 31 * HOUR_NS);
	ingest("D/ES/fx", DAY0, DAY0 + HOUR_NS);
	ingest("D/NQ%2FX/fx", DAY0, DAY0 + 1);
}

START_TEST(a_series_of_two_volumes_is_one_row)
{
	const char *text, *row;

	ck_assert_int_eq(ls(&text, fx_store, NULL, NULL), STOUP_EXIT_OK);
	row = strstr(text, "D/ES/fx");
	ck_assert_ptr_nonnull(row);
	ck_assert_ptr_null(strstr(row + 1, "D/ES/fx"));
	ck_assert_ptr_nonnull(strstr(row, " 4  2023-11-15T00:00:00.000000000Z  "
					  "2023-11-16T07:00:00.000000000Z"));
	ck_assert_ptr_nonnull(strstr(text, "D/NQ%2FX/fx"));
}
END_TEST

START_TEST(a_pattern_matches_the_whole_name)
{
	char all[] = "D/*/fx", some[] = "*NQ*", none[] = "ES";
	const char *text;

	ls(&text, fx_store, all, NULL);
	ck_assert(strstr(text, "D/ES") && strstr(text, "D/NQ"));
	ls(&text, fx_store, some, NULL);
	ck_assert(!strstr(text, "D/ES") && strstr(text, "D/NQ"));
	ls(&text, fx_store, none, NULL);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(gaps_longer_than_asked_for_are_no_data)
{
	char gaps[] = "--gaps=2h", wide[] = "--gaps=30h";
	const char *text;

	ls(&text, gaps, fx_store, NULL);
	ck_assert_ptr_nonnull(strstr(text, "no data from 2023-11-15T01:00:00.000000000Z to "
					   "2023-11-16T06:00:00.000000000Z (1 d 05:00:00)"));
	ck_assert_ptr_null(strstr(text, "empty"));
	ck_assert_ptr_nonnull(strstr(text, "segment"));
	ls(&text, wide, fx_store, NULL);
	ck_assert_ptr_null(strstr(text, "no data"));
}
END_TEST

START_TEST(json_has_the_same_numbers)
{
	char json[] = "--json", gaps[] = "--gaps=2h";
	const char *text, *series;

	ck_assert_int_eq(ls(&text, json, gaps, fx_store), STOUP_EXIT_OK);
	series = strstr(text, "\"series\": [\n  {\"name\": \"D/ES/fx\", \"schema\": \"fx\"");
	ck_assert_ptr_nonnull(series);
	ck_assert_ptr_nonnull(strstr(series, "\"records\": 4"));
	ck_assert_ptr_nonnull(strstr(series, "\"first_key\": 1700006400000000000"));
	ck_assert_ptr_nonnull(strstr(series, "\"last_key\": 1700118000000000000"));
	ck_assert_ptr_nonnull(strstr(series, "\"volumes\": 2"));
	ck_assert_ptr_nonnull(strstr(series, "\"after_key\": 1700010000000000000, "
					     "\"before_key\": 1700114400000000000, "
					     "\"length_ns\": 104400000000000"));
	ck_assert_ptr_nonnull(strstr(text, "{\"name\": \"D/NQ%2FX/fx\""));
	ck_assert_ptr_nonnull(strstr(text, "\"faults\": []}"));
}
END_TEST

START_TEST(wrong_usage_and_absent_stores_have_their_own_status)
{
	char absent[] = "/nonexistent", bad[] = "--gaps=2", unknown[] = "--all";
	const char *text;

	ck_assert_int_eq(ls(&text, NULL, NULL, NULL), STOUP_EXIT_USAGE);
	ck_assert_str_eq(fx_stderr, "stoup ls: STORE is missing; see `stoup help ls`\n");
	ck_assert_int_eq(ls(&text, bad, fx_store, NULL), STOUP_EXIT_USAGE);
	ck_assert_int_eq(ls(&text, unknown, fx_store, NULL), STOUP_EXIT_USAGE);
	ck_assert_int_eq(ls(&text, absent, NULL, NULL), STOUP_EXIT_FAIL);
}
END_TEST

START_TEST(a_directory_without_volumes_is_no_store)
{
	char json[] = "--json";
	const char *text;

	ck_assert_int_eq(ls(&text, fx_root, NULL, NULL), STOUP_EXIT_FAIL);
	ck_assert_str_eq(text, "");
	ck_assert_ptr_nonnull(strstr(fx_stderr, "' holds no volumes: is it a store?\n"));
	ck_assert_int_eq(ls(&text, json, fx_root, NULL), STOUP_EXIT_FAIL);
	ck_assert_str_eq(text, "");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ls");
	TCase *tc = tcase_create("ls");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, store_setup, fx_teardown);
	tcase_add_test(tc, a_series_of_two_volumes_is_one_row);
	tcase_add_test(tc, a_pattern_matches_the_whole_name);
	tcase_add_test(tc, gaps_longer_than_asked_for_are_no_data);
	tcase_add_test(tc, json_has_the_same_numbers);
	tcase_add_test(tc, a_directory_without_volumes_is_no_store);
	tcase_add_test(tc, wrong_usage_and_absent_stores_have_their_own_status);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
