/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_shared.c - what a consumer and a monitor accept of a daemon's catalog and control object. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "shm/catalog.h"
#include "shm/control.h"

/* ---- catalogs --------------------------------------------------------------------------------- */

static struct stoup_catalog *catalog;
static struct stoup_catalog_schema *schemas;
static struct stoup_catalog_series *series;
static struct stoup_catalog_segment *segments;
static size_t catalog_len;

/* A/A: records of 16 bytes, segments 0 and 1; B/B: records of 24 bytes, segment 2; one block of 192. */
static void catalog_setup(void)
{
	const struct stoup_catalog_counts counts = {.schema_cnt = 2,
		.field_cnt = 2,
		.series_cnt = 2,
		.block_cnt = 1,
		.segment_cnt = 3,
		.string_len = 8};

	catalog_len = stoup_catalog_footprint(&counts);
	catalog = aligned_alloc(STOUP_OS_PAGE_LEN, catalog_len);
	memset(catalog, 0, catalog_len);
	stoup_catalog_format(catalog, &counts, 0);
	schemas = (void *)((char *)catalog + catalog->schema_off);
	series = (void *)((char *)catalog + catalog->series_off);
	segments = (void *)((char *)catalog + catalog->segment_off);
	memcpy((char *)catalog + catalog->string_off, "A/A\0B/B", 8);
	((struct stoup_catalog_block *)(void *)((char *)catalog + catalog->block_off))->raw_len =
		192;
	for (uint32_t i = 0; i < 2; i++) {
		schemas[i] = (struct stoup_catalog_schema){.name = "x",
			.stride = 16 + 8 * i,
			.align = 8,
			.field_first = i,
			.field_cnt = 1};
		series[i] = (struct stoup_catalog_series){.name_off = 4 * i,
			.name_len = 3,
			.schema_idx = i,
			.segment_first = 2 * i,
			.segment_cnt = 2 - i};
	}
	segments[0] = (struct stoup_catalog_segment){.record_cnt = 8};
	segments[1] = (struct stoup_catalog_segment){.record_cnt = 4, .raw_off = 128};
	segments[2] = (struct stoup_catalog_segment){.record_cnt = 8, .series_idx = 1};
}

static void catalog_teardown(void)
{
	free(catalog);
}

static void catalog_refused(const char *part)
{
	struct stoup_error err = {0};

	ck_assert_int_eq(stoup_catalog_verify(catalog, catalog_len, &err), -EPROTO);
	ck_assert_msg(strstr(err.text, part), "'%s' lacks '%s'", err.text, part);
}

START_TEST(a_catalog_as_the_daemon_makes_it_is_accepted)
{
	struct stoup_error err = {0};

	ck_assert_msg(stoup_catalog_verify(catalog, catalog_len, &err) == 0, "%s", err.text);
}
END_TEST

/* Its records are longer, so that the last ones would lie behind the block. */
START_TEST(a_series_may_not_have_a_segment_of_another)
{
	series[1].segment_first = 0;
	catalog_refused("segment reference 2");
	series[1].segment_cnt = 3;
	catalog_refused("segments of all series 5");
}
END_TEST

START_TEST(each_segment_belongs_to_the_series_that_it_names)
{
	segments[1].series_idx = 1;
	catalog_refused("segment reference 1");
	segments[1].series_idx = 2;
	catalog_refused("segment reference 1");
}
END_TEST

START_TEST(no_segment_belongs_to_nobody)
{
	series[0].segment_cnt = 1;
	catalog_refused("segments of all series 2");
}
END_TEST

START_TEST(a_segment_lies_inside_its_block)
{
	segments[2].record_cnt = 9;
	catalog_refused("segment bounds 2");
	segments[2].record_cnt = 0;
	segments[2].raw_off = 193;
	catalog_refused("segment bounds 2");
}
END_TEST

/* It is looked for by bisection. */
START_TEST(series_are_in_the_order_of_their_names)
{
	char *strings = (char *)catalog + catalog->string_off;

	ck_assert_int_eq(stoup_catalog_find(catalog, "B/B"), 1);
	strings[0] = 'C';
	catalog_refused("order of series 1");
	memcpy(strings, "B/B", 3);
	ck_assert_int_eq(stoup_catalog_verify(catalog, catalog_len, NULL), 0);
	ck_assert_int_eq(stoup_catalog_find(catalog, "B/B"), 0);
}
END_TEST

/* ---- control objects -------------------------------------------------------------------------- */

static struct stoup_control *control;
static size_t control_len;

static void control_setup(void)
{
	const struct stoup_control_config config = {
		.consumer_cap = 2, .cell_cap = 64, .buffer_cap = 4, .volume_cap = 3};

	control_len = stoup_control_footprint(&config);
	control = aligned_alloc(STOUP_OS_PAGE_LEN, control_len);
	memset(control, 0, control_len);
	stoup_control_format(control, &config);
	stoup_control_announce(control);
}

static void control_teardown(void)
{
	free(control);
}

static int control_verify(void)
{
	struct stoup_error err = {0};
	int rc = stoup_control_verify(control, control_len, &err);

	ck_assert(rc == 0 || (err.code == rc && err.text[0]));
	return rc;
}

START_TEST(a_control_object_as_the_daemon_makes_it_is_accepted)
{
	ck_assert_int_eq(control_verify(), 0);
	atomic_store(&control->magic, 0);
	ck_assert_int_eq(control_verify(), -EAGAIN);
}
END_TEST

/* Whoever prints one reads to its NUL. */
START_TEST(every_text_ends_inside_its_field)
{
	struct stoup_control_counter *counter = &stoup_control_counters(control)[5];
	const struct {
		char *text;
		size_t cap;
	} texts[] = {{control->pool_name, sizeof(control->pool_name)},
		{control->store_path, sizeof(control->store_path)},
		{control->backing, sizeof(control->backing)},
		{control->reader_kind, sizeof(control->reader_kind)},
		{control->reader_reason, sizeof(control->reader_reason)},
		{control->huge_reason, sizeof(control->huge_reason)},
		{control->lock_reason, sizeof(control->lock_reason)},
		{control->version, sizeof(control->version)},
		{stoup_control_volumes(control)[2].path,
			sizeof(stoup_control_volumes(control)->path)},
		{counter->name, sizeof(counter->name)}, {counter->unit, sizeof(counter->unit)},
		{counter->text, sizeof(counter->text)}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		memset(texts[i].text, 'x', texts[i].cap);
		ck_assert_msg(control_verify() == -EPROTO, "text %zu", i);
		texts[i].text[texts[i].cap - 1] = 0;
		ck_assert_msg(control_verify() == 0, "text %zu", i);
	}
}
END_TEST

START_TEST(the_version_of_another_release_commands_no_terminal)
{
	struct stoup_error err = {0};

	control->abi_major++;
	memset(control->version, 'v', sizeof(control->version));
	memcpy(control->version, "1\x1b[2J\xc2\x9b", 7);
	ck_assert_int_eq(stoup_control_verify(control, control_len, &err), -EPROTO);
	ck_assert_ptr_nonnull(strstr(err.text, "(version 1?[2J??vvv"));
	ck_assert_ptr_nonnull(strstr(err.text, "vvv) speaks ABI"));
}
END_TEST

/* The object of a daemon that has `fewer` counters. */
static void counters_fewer(uint32_t fewer)
{
	control->counter_cnt -= fewer;
	control->error_off -= fewer * sizeof(struct stoup_control_counter);
	control->total_len =
		(control->error_off + control->error_cap * sizeof(struct stoup_control_error) +
			STOUP_OS_PAGE_LEN - 1) &
		~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
}

START_TEST(a_control_object_has_at_least_the_counters_of_the_first_daemon)
{
	/* As an older daemon has it: those that it lacks are at the end. */
	counters_fewer(STOUP_COUNTER_CNT - STOUP_COUNTER_BASE_CNT);
	ck_assert_int_eq(control_verify(), 0);
	counters_fewer(1);
	ck_assert_int_eq(control_verify(), -EPROTO);
}
END_TEST

START_TEST(a_counter_has_a_plain_name)
{
	strcpy(stoup_control_counters(control)[0].name, "a\"b");
	ck_assert_int_eq(control_verify(), -EPROTO);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verify_shared");
	TCase *catalogs = tcase_create("catalogs"), *controls = tcase_create("controls");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, catalogs);
	tcase_add_checked_fixture(catalogs, catalog_setup, catalog_teardown);
	tcase_add_test(catalogs, a_catalog_as_the_daemon_makes_it_is_accepted);
	tcase_add_test(catalogs, a_series_may_not_have_a_segment_of_another);
	tcase_add_test(catalogs, each_segment_belongs_to_the_series_that_it_names);
	tcase_add_test(catalogs, no_segment_belongs_to_nobody);
	tcase_add_test(catalogs, a_segment_lies_inside_its_block);
	tcase_add_test(catalogs, series_are_in_the_order_of_their_names);
	suite_add_tcase(suite, controls);
	tcase_add_checked_fixture(controls, control_setup, control_teardown);
	tcase_add_test(controls, a_control_object_as_the_daemon_makes_it_is_accepted);
	tcase_add_test(controls, every_text_ends_inside_its_field);
	tcase_add_test(controls, the_version_of_another_release_commands_no_terminal);
	tcase_add_test(controls, a_control_object_has_at_least_the_counters_of_the_first_daemon);
	tcase_add_test(controls, a_counter_has_a_plain_name);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
