/* SPDX-License-Identifier: Apache-2.0 */
/* test_csv_parallel.c - a text that several threads read gives the records, places and errors of one thread. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/csv_cut.h"
#include "producer/csv_parallel.h"

#define TEXT_CAP (8u << 20)

static char *text;
static size_t text_len;
static uint64_t seed;

static uint32_t next_random(uint32_t bound)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % bound;
}

/* ---- texts ------------------------------------------------------------------------------------- */

static void add(const char *bytes)
{
	size_t len = strlen(bytes);

	ck_assert_uint_lt(text_len + len, TEXT_CAP);
	memcpy(text + text_len, bytes, len);
	text_len += len;
}

/* Rows with quoted line ends, both kinds of line ends, empty lines and long fields. */
static void text_make(uint32_t row_cnt, uint64_t with_seed)
{
	char row[128], longer[3000];

	seed = with_seed;
	text_len = 0;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	add("time,size,note\n");
	for (uint32_t i = 0; i < row_cnt; i++) {
		uint32_t kind = next_random(20);

		snprintf(row, sizeof(row), "%u,%u,", 1700000000 + i, next_random(1000000));
		add(row);
		if (kind < 4)
			add("\"a\nb \"\"q\"\" ,\r\n\"");
		else if (kind == 4)
			add(longer);
		else
			add("plain");
		add(kind % 2 ? "\r\n" : "\n");
		if (kind == 5)
			add("\n\n");
	}
}

struct source {
	size_t at, step;
	int rc_at_end;
};

static int64_t text_read(void *arg, void *dst, size_t len, struct stoup_error *err)
{
	struct source *source = arg;
	size_t left = text_len - source->at, n = left < len ? left : len;

	if (n > source->step)
		n = source->step;
	if (n == 0 && source->rc_at_end < 0)
		return stoup_error_set(err, source->rc_at_end, "text: it is cut short");
	memcpy(dst, text + source->at, n);
	source->at += n;
	return (int64_t)n;
}

/* ---- what came out ------------------------------------------------------------------------------- */

struct seen {
	uint64_t cnt, hash;
	int rc;
	struct stoup_error err;
};

static void hash_add(uint64_t *hash, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		*hash = (*hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
}

static uint32_t stride;

static int64_t take_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	(void)arg;
	(void)err;
	ck_assert_str_eq(name, "A/x");
	stride = schema->stride;
	return 0;
}

static int take_put(void *arg, uint32_t series_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct seen *seen = arg;

	(void)series_idx;
	(void)err;
	ck_assert_str_eq(where->file, "text");
	hash_add(&seen->hash, &key, sizeof(key));
	hash_add(&seen->hash, record, stride);
	hash_add(&seen->hash, &where->line, sizeof(where->line));
	hash_add(&seen->hash, &where->file_off, sizeof(where->file_off));
	seen->cnt++;
	return 0;
}

static int put_table(const void *arg, struct stoup_csv_table *table, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	struct stoup_csv_record record;
	int64_t idx = sink->series(sink->arg, "A/x", stoup_csv_table_schema(table), err);
	int rc;

	(void)arg;
	ck_assert_int_eq(idx, 0);
	while ((rc = stoup_csv_table_next(table, &record, err)) > 0) {
		rc = sink->put(sink->arg, 0, record.key, record.bytes, &record.where, err);
		if (rc < 0)
			return rc;
	}
	return rc;
}

static void options_make(struct stoup_csv_options *options)
{
	stoup_csv_options_init(options);
	options->series = "A/x";
	options->time = "time";
	options->map = "size:u64=size,note:char[4000]=note";
}

static struct seen read_plain(int rc_at_end)
{
	struct source source = {.step = SIZE_MAX, .rc_at_end = rc_at_end};
	struct seen seen = {0};
	const struct stoup_sink sink = {.arg = &seen, .series = take_series, .put = take_put};
	struct stoup_csv_options options;
	struct stoup_csv_table *table;

	options_make(&options);
	ck_assert_int_eq(
		stoup_csv_table_create(text_read, &source, "text", &options, &table, &seen.err), 0);
	seen.rc = put_table(NULL, table, &sink, &seen.err);
	stoup_csv_table_destroy(table);
	return seen;
}

static struct seen read_parallel(uint32_t threads, size_t step, int rc_at_end)
{
	struct source source = {.step = step, .rc_at_end = rc_at_end};
	struct seen seen = {0};
	const struct stoup_sink sink = {.arg = &seen, .series = take_series, .put = take_put};
	struct stoup_csv_options options;
	struct stoup_csv_parallel parallel = {.read = text_read,
		.source = &source,
		.name = "text",
		.options = &options,
		.threads = threads,
		.put = put_table};

	options_make(&options);
	seen.rc = stoup_csv_parallel(&parallel, &sink, &seen.err);
	return seen;
}

static void check_same(struct seen plain, struct seen parallel)
{
	ck_assert_int_eq(parallel.rc, plain.rc);
	ck_assert_str_eq(parallel.err.text, plain.err.text);
	if (plain.rc == 0) {
		ck_assert_uint_eq(parallel.cnt, plain.cnt);
		ck_assert_uint_eq(parallel.hash, plain.hash);
	}
}

static void setup(void)
{
	text = malloc(TEXT_CAP);
	ck_assert_ptr_nonnull(text);
}

static void teardown(void)
{
	free(text);
}

/* ---- tests --------------------------------------------------------------------------------------- */

START_TEST(records_and_their_places_are_those_of_one_thread)
{
	struct seen plain;

	text_make(16000, 1 + (uint64_t)_i);
	ck_assert_uint_gt(text_len, 3 * STOUP_CSV_PIECE_LEN);
	plain = read_plain(0);
	ck_assert_int_eq(plain.rc, 0);
	ck_assert_uint_eq(plain.cnt, 16000);
	check_same(plain, read_parallel(1, SIZE_MAX, 0));
	check_same(plain, read_parallel(3, 70001, 0));
	text_len -= text[text_len - 2] == '\r' ? 2 : 1; /* without the last line end */
	check_same(read_plain(0), read_parallel(2, SIZE_MAX, 0));
}
END_TEST

START_TEST(an_error_is_that_of_the_first_row_that_has_one)
{
	static const char *const faults[] = {"x", "\"", "\"\"\"", ",", "\0"};
	uint32_t cnt = 0;

	for (uint64_t i = 0; i < 25; i++) {
		struct seen plain;
		size_t at;

		text_make(8000, 100 + i);
		at = next_random((uint32_t)text_len - 8);
		memcpy(text + at, faults[i % 5], i % 5 == 4 ? 1 : strlen(faults[i % 5]));
		plain = read_plain(0);
		cnt += plain.rc < 0;
		check_same(plain, read_parallel((uint32_t)(1 + i % 3), SIZE_MAX, 0));
	}
	ck_assert_uint_gt(cnt, 10);
}
END_TEST

START_TEST(a_stream_that_fails_tells_so_behind_the_rows_before)
{
	text_make(8000, 7);
	text_len -= 5; /* inside the last row */
	check_same(read_plain(-ENODATA), read_parallel(2, SIZE_MAX, -ENODATA));
	ck_assert_int_eq(read_parallel(2, 4096, -ENODATA).rc, -ENODATA);
	text[text_len / 2] = '\0';
	check_same(read_plain(-ENODATA), read_parallel(2, SIZE_MAX, -ENODATA));
}
END_TEST

START_TEST(empty_lines_longer_than_a_piece_come_before_the_first_row)
{
	text_make(2000, 9);
	memmove(text + (2u << 20), text, text_len);
	memset(text, '\n', 2u << 20);
	text_len += 2u << 20;
	check_same(read_plain(0), read_parallel(2, SIZE_MAX, 0));
	text_len = 0;
	check_same(read_plain(0), read_parallel(2, SIZE_MAX, 0));
}
END_TEST

START_TEST(a_quote_that_is_not_closed_is_told_and_not_waited_for)
{
	text_make(100, 9);
	add("1800000000,5,\"");
	memset(text + text_len, 'y', 5u << 20);
	text_len += 5u << 20;
	check_same(read_plain(0), read_parallel(2, SIZE_MAX, 0));
	ck_assert_int_eq(read_plain(0).rc, -EMSGSIZE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("csv_parallel");
	TCase *tc = tcase_create("csv_parallel");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, records_and_their_places_are_those_of_one_thread, 0, 4);
	tcase_add_test(tc, an_error_is_that_of_the_first_row_that_has_one);
	tcase_add_test(tc, a_stream_that_fails_tells_so_behind_the_rows_before);
	tcase_add_test(tc, empty_lines_longer_than_a_piece_come_before_the_first_row);
	tcase_add_test(tc, a_quote_that_is_not_closed_is_told_and_not_waited_for);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
