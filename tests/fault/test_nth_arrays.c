/* SPDX-License-Identifier: Apache-2.0 */
/* test_nth_arrays.c - the first, second, third ... call for memory fails: of Arrow columns, of an array that is
 * ingested, of JSON lines, of files that become events. Each time a clean error, and nothing left behind.
 */
#include <sys/stat.h>
#include "consumer/stoup_arrow.h"
#include "producer/event64_build.h"
#include "producer/intake.h"
#include "producer/ingest_jsonl.h"
#include "producer/ingest_npy.h"
#include "shm/stoup_doc.h"
#include "tests/fault/countdown.h"
#include "tests/unit/import_fixture.h"

#define NTH_CAP 5000
#define ROW_CNT 600u

static char path[300];
static struct stoup_mbo rows[ROW_CNT];
static struct stoup_error err;

static void setup(void)
{
	fx_setup();
	snprintf(path, sizeof(path), "%s/in", fx_root);
	for (uint32_t i = 0; i < ROW_CNT; i++)
		rows[i] = (struct stoup_mbo){.price = i % 7 ? (int64_t)i * 1000 : INT64_MAX,
			.ts_recv = UINT64_C(1700000000000000000) + i,
			.action = 'A',
			.side = 'B'};
}

static void teardown(void)
{
	unlink(path);
	fx_teardown();
}

static void write_file(const char *text, size_t len)
{
	FILE *out = fopen(path, "wb");

	ck_assert_ptr_nonnull(out);
	ck_assert_uint_eq(fwrite(text, 1, len, out), len);
	ck_assert_int_eq(fclose(out), 0);
}

/* Let each call for memory of a scenario fail. */
static void check(const char *name, int (*scenario)(void))
{
	struct countdown c;
	long nth, failed = 0;
	int rc = 0, fired = 1;

	for (nth = 1; nth < NTH_CAP && fired; nth++) {
		memset(&err, 0, sizeof(err));
		countdown_begin(&c, COUNTDOWN_MEMORY, nth);
		rc = scenario();
		fired = countdown_end(&c);
		ck_assert_msg(rc == 0 || rc == -ENOMEM, "call %ld: %d %s", nth, rc, err.text);
		ck_assert_msg(rc == 0 || err.text[0], "call %ld: no text", nth);
		failed += rc < 0;
		fx_remove(fx_store);
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_gt(failed, 3);
	fprintf(stderr, "%s: %ld calls, %ld errors\n", name, nth - 2, failed);
}

/* ---- scenarios --------------------------------------------------------------------------------- */

static int columns(void)
{
	const struct stoup_span span = {.base = rows,
		.record_cnt = ROW_CNT,
		.stride = sizeof(rows[0]),
		.schema = stoup_schema_by_name("mbo")};
	struct ArrowSchema schema = {.n_children = 77};
	struct ArrowArray array = {.length = 77};
	int rc = stoup_arrow_schema(span.schema, 0, &schema, &err);

	COUNTDOWN_MUST(rc == 0 || schema.n_children == 77);
	if (rc < 0)
		return rc;
	schema.release(&schema);
	rc = stoup_arrow_array(&span, 0, &array, &err);
	COUNTDOWN_MUST(rc == 0 || array.length == 77);
	if (rc == 0)
		array.release(&array);
	return rc;
}

static int with_import(int (*ingest)(struct stoup_import *import, struct stoup_input *input))
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = NULL;
	struct stoup_input *input = NULL;
	int rc = stoup_import_begin(&options, &import, &err);

	if (rc == 0)
		rc = stoup_input_open(path, &input, &err);
	if (rc == 0)
		rc = ingest(import, input);
	stoup_input_close(input);
	stoup_import_destroy(import);
	return rc;
}

static int npy_ingest(struct stoup_import *import, struct stoup_input *input)
{
	struct stoup_csv_options options;
	struct stoup_sink sink;

	stoup_csv_options_init(&options);
	options.series = "A/B/c";
	options.time = "t";
	sink = stoup_import_sink(import);
	return stoup_ingest_npy(&sink, input, &options, &err);
}

static int npy(void)
{
	return with_import(npy_ingest);
}

static void no_note(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static int csv_ingest(struct stoup_import *import, struct stoup_input *input)
{
	struct stoup_event64_build *build = NULL;
	struct stoup_event64_options options;
	int rc;

	stoup_event64_options_init(&options);
	options.note = no_note;
	rc = stoup_event64_build_create(import, &options, &build, &err);
	if (rc == 0)
		rc = stoup_event64_csv(build, input, &options, &err);
	if (rc == 0)
		rc = stoup_event64_build_finish(build, &err);
	stoup_event64_build_destroy(build);
	return rc;
}

static int events(void)
{
	return with_import(csv_ingest);
}

static int one_series; /* all rows in one, else one for each symbol */

static int feed_ingest(struct stoup_import *import, struct stoup_input *input)
{
	struct stoup_csv_options options;
	struct stoup_sink sink = stoup_import_sink(import);

	sink.note = no_note;
	stoup_csv_options_init(&options);
	options.series = one_series ? "A/B/c" : NULL;
	return stoup_ingest_csv(&sink, input, &options, &err);
}

static int feed(void)
{
	return with_import(feed_ingest);
}

/* Paths and a filter as a tool makes them, and lines whose room grows. */
static int jsonl_ingest(struct stoup_import *import, struct stoup_input *input)
{
	struct stoup_csv_options csv;
	struct stoup_intake filter = {0};
	struct stoup_jsonl_options options = {
		.series = "A", .series_path = "s", .csv = &csv, .filter = &filter};
	struct stoup_sink sink = stoup_import_sink(import);
	struct stoup_doc_filter *question = NULL;
	int rc = stoup_doc_filter_create("a = 'b' and (c > 1 or not d exists)", &question, &err);

	stoup_doc_filter_destroy(question);
	if (rc < 0)
		return rc;
	sink.note = no_note;
	stoup_csv_options_init(&csv);
	csv.time = "t";
	return stoup_ingest_jsonl(&sink, input, &options, &err);
}

static int jsonl(void)
{
	return with_import(jsonl_ingest);
}

/* ---- tests ------------------------------------------------------------------------------------- */

START_TEST(columns_are_whole_or_not_made)
{
	check("columns", columns);
}
END_TEST

START_TEST(an_array_is_ingested_or_refused)
{
	static const char text[] =
		"{'descr': [('a', '|i1'), ('t', '<i8')], 'fortran_order': False, "
		"'shape': (3,), }\n";
	char file[200] = "\x93NUMPY\1";
	size_t len = sizeof(text) - 1;

	file[8] = (char)len;
	memcpy(file + 10, text, len);
	for (int i = 0; i < 3; i++)
		memcpy(file + 10 + len + 9 * (size_t)i, "\1\0\0\0\0\0\0\0\1", 9);
	write_file(file, 10 + len + 27);
	check("array", npy);
}
END_TEST

START_TEST(json_lines_are_ingested_or_refused)
{
	static char text[200000];
	size_t len = 0;

	for (int i = 0; i < 20; i++) {
		len += (size_t)sprintf(
			text + len, "{\"t\":%d,\"s\":\"%c\",\"x\":\"", 1700000000 + i, "XY"[i % 2]);
		memset(text + len, 'x', 200u << i / 3);
		len += 200u << i / 3;
		len += (size_t)sprintf(text + len, "\"}\n");
		ck_assert_uint_lt(len, sizeof(text) - (60u << 10));
	}
	write_file(text, len);
	check("JSON lines", jsonl);
}
END_TEST

START_TEST(events_are_made_or_not)
{
	char text[40000];
	size_t len = (size_t)sprintf(
		text, "exchange,symbol,timestamp,local_timestamp,is_snapshot,side,price,amount\n");

	/* Snapshots that grow, two series, an order that steps back. */
	for (int i = 0; i < 600; i++)
		len += (size_t)sprintf(text + len, "d,%c,%d,%d,%s,bid,%d,1\n", "XY"[i > 400],
			1700000000 - i % 3, 1700000001 + i / 200, i < 200 ? "true" : "false", i);
	write_file(text, len);
	check("events", events);
}
END_TEST

/* More symbols than there is room for at first. */
START_TEST(a_feed_is_ingested_or_refused)
{
	char text[8000];
	size_t len = (size_t)sprintf(
		text, "exchange,symbol,timestamp,local_timestamp,is_snapshot,side,price,amount\n");

	one_series = _i;
	for (int i = 0; i < 40; i++)
		len += (size_t)sprintf(text + len,
			"d,S%d,1585699200245000,1585699200355684,true,bid,%d,1\n",
			one_series ? 0 : i % 20, i);
	write_file(text, len);
	check("feed", feed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nth_arrays");
	TCase *tc = tcase_create("nth_arrays");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, columns_are_whole_or_not_made);
	tcase_add_loop_test(tc, a_feed_is_ingested_or_refused, 0, 2);
	tcase_add_test(tc, an_array_is_ingested_or_refused);
	tcase_add_test(tc, json_lines_are_ingested_or_refused);
	tcase_add_test(tc, events_are_made_or_not);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
