/* SPDX-License-Identifier: Apache-2.0 */
/* test_csv.c - the grammar of delimited texts: rows and fields out of a stream that comes in pieces
 * of any length. What columns mean is in test_csv_table.c.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "producer/csv.h"

/* A source that hands out a text in pieces of at most `piece_len` bytes and then fails or ends. */
struct source {
	const char *text;
	size_t len, off, piece_len;
	int fail;
};

static int64_t source_read(void *arg, void *dst, size_t len, struct stoup_error *err)
{
	struct source *source = arg;
	size_t left = source->len - source->off;

	if (left == 0 && source->fail)
		return stoup_error_set(err, source->fail, "the source fails");
	if (len > source->piece_len)
		len = source->piece_len;
	if (len > left)
		len = left;
	memcpy(dst, source->text + source->off, len);
	source->off += len;
	return (int64_t)len;
}

/* Read all rows into one text: fields as they are, between <>, rows as "LINE:<a><b>;". Returns what
 * the last call returned. */
static int drain(const char *text, size_t len, size_t piece_len, char delimiter, char *out,
	struct stoup_error *err)
{
	struct source source = {text, len, 0, piece_len, 0};
	struct stoup_csv *csv;
	struct stoup_csv_row row;
	int rc;

	*out = '\0';
	if (stoup_csv_create(source_read, &source, delimiter, &csv, err))
		ck_abort_msg("%s", err->text);
	while ((rc = stoup_csv_next(csv, &row, err)) > 0) {
		out += sprintf(out, "%llu:", (unsigned long long)row.line);
		for (uint32_t i = 0; i < row.field_cnt; i++)
			out += sprintf(out, "<%.*s>", (int)row.fields[i].len, row.fields[i].text);
		out += sprintf(out, ";");
	}
	stoup_csv_destroy(csv);
	return rc;
}

static const struct {
	const char *text, *rows;
} good[] = {
	{"", ""},
	{"\n\r\n\n", ""},
	{"a", "1:<a>;"},
	{"a\n", "1:<a>;"},
	{"a,b\n", "1:<a><b>;"},
	{"a,b\r\nc,d\r\n", "1:<a><b>;2:<c><d>;"},
	{"a,b\nc,d", "1:<a><b>;2:<c><d>;"},
	{"a,b\nc,d\r", "1:<a><b>;2:<c><d>;"},
	{",\n", "1:<><>;"},
	{",,\n\n,", "1:<><><>;3:<><>;"},
	{" a , b \n", "1:< a >< b >;"},
	{"\xef\xbb\xbf"
	 "a,b\n",
		"1:<a><b>;"},
	{"\xef\xbb\xbf", ""},
	{"\xef\xbb", "1:<\xef\xbb>;"},
	{"\"a\",\"b\"\n", "1:<a><b>;"},
	{"\"a,b\",c\n", "1:<a,b><c>;"},
	{"\"a \"\"b\"\"\",c\n", "1:<a \"b\"><c>;"},
	{"\"\"\"\"\n", "1:<\">;"},
	{"\"\",\"\"\n", "1:<><>;"},
	{"\"a\nb\",c\nd,e\n", "1:<a\nb><c>;3:<d><e>;"},
	{"\"a\r\nb\",c\r\nd,e\r\n", "1:<a\r\nb><c>;3:<d><e>;"},
	{"x,\"a\n\n\nb\"\ny,z", "1:<x><a\n\n\nb>;5:<y><z>;"},
	{"a,\"b\"", "1:<a><b>;"},
	{"a,\"b\"\r\n", "1:<a><b>;"},
	{"\xef\xbb\xbf\"a\",b\n", "1:<a><b>;"},
	{"a;b\n", "1:<a;b>;"},
	{"caf\xc3\xa9,\xe2\x82\xac\n", "1:<caf\xc3\xa9><\xe2\x82\xac>;"},
};

START_TEST(rows_and_fields_are_those_of_rfc_4180)
{
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		for (size_t piece_len = 1; piece_len < 12; piece_len++) {
			struct stoup_error err;
			char out[256];
			int rc;

			rc = drain(good[i].text, strlen(good[i].text), piece_len, ',', out, &err);
			ck_assert_msg(rc == 0, "%zu: %s", i, err.text);
			ck_assert_msg(strcmp(out, good[i].rows) == 0, "%zu in pieces of %zu: %s", i,
				piece_len, out);
		}
	}
}
END_TEST

static const struct {
	const char *text;
	size_t len;
	const char *rows, *message;
} bad[] = {
	{"a,b\"c\n", 6, "", "line 1, column 2: a quote inside a field"},
	{"x\na,b\"c\"\n", 9, "1:<x>;", "line 2, column 2: a quote inside a field"},
	{"a,\"b\"c\n", 7, "", "line 1, column 2: text behind a closing quote"},
	{"\"a\" ,b\n", 7, "", "line 1, column 1: text behind a closing quote"},
	{"x\n\"a,b\nc,d\n", 11, "1:<x>;",
		"line 2, column 1: the quote that starts here is not closed"},
	{"\"", 1, "", "line 1, column 1: the quote that starts here is not closed"},
	{"\"a\"\"", 4, "", "line 1, column 1: the quote that starts here is not closed"},
	{"a\0b\n", 4, "", "line 1 has a NUL byte"},
	{"x\n\"a\0\"\n", 7, "1:<x>;", "line 2 has a NUL byte"},
	{"\xff\xfe"
	 "a\0,\0",
		6, "", "line 1: the text is UTF-16"},
	{"\xfe\xff\0a", 4, "", "line 1: the text is UTF-16"},
	{"a\0,\0b\0\n\0", 8, "", "line 1 has a NUL byte: not a text file, or UTF-16"},
};

START_TEST(texts_outside_the_grammar_are_refused_with_their_line)
{
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		for (size_t piece_len = 1; piece_len < 12; piece_len++) {
			struct stoup_error err = {0};
			char out[256];
			int rc;

			rc = drain(bad[i].text, bad[i].len, piece_len, ',', out, &err);
			ck_assert_int_eq(rc, -EBADMSG);
			ck_assert_msg(
				strncmp(err.text, bad[i].message, strlen(bad[i].message)) == 0,
				"%zu: %s", i, err.text);
			ck_assert_str_eq(out, bad[i].rows);
		}
	}
}
END_TEST

START_TEST(semicolons_tabs_blanks_and_bars_separate_too)
{
	static const char delimiters[] = {';', '\t', ' ', '|'};
	struct stoup_error err;
	char out[64], text[] = "a?\"b?c\"?d\n";

	for (size_t i = 0; i < sizeof delimiters; i++) {
		char expected[] = "1:<a><b?c><d>;";

		for (char *at = text; *at; at++) {
			if (strchr("?;\t |", *at))
				*at = delimiters[i];
		}
		*strchr(expected, '?') = delimiters[i];
		ck_assert_int_eq(drain(text, strlen(text), 3, delimiters[i], out, &err), 0);
		ck_assert_str_eq(out, expected);
	}
}
END_TEST

START_TEST(what_numbers_are_made_of_cannot_separate)
{
	static const char not [] = "\"\n\r.-+:05aZ";
	struct stoup_csv *csv = NULL;

	for (size_t i = 0; i < sizeof not ; i++)
		ck_assert_int_eq(stoup_csv_create(source_read, NULL, not [i], &csv, NULL), -EINVAL);
	ck_assert_ptr_null(csv);
	stoup_csv_destroy(NULL);
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

/* A row of one field of `len` bytes, quoted or not, behind a first row. */
static int long_row(size_t len, int quoted, size_t piece_len, struct stoup_error *err)
{
	struct source source = {NULL, 0, 0, piece_len, 0};
	char *text = malloc(len + 16);
	struct stoup_csv *csv;
	struct stoup_csv_row row;
	int rc;

	memcpy(text, "a,b\n", 4);
	memset(text + 4, 'x', len);
	if (quoted)
		text[4] = text[4 + len - 1] = '"';
	memcpy(text + 4 + len, "\nc\n", 3);
	source.text = text;
	source.len = 4 + len + 3;
	ck_assert_int_eq(stoup_csv_create(source_read, &source, ',', &csv, err), 0);
	ck_assert_int_eq(stoup_csv_next(csv, &row, err), 1);
	rc = stoup_csv_next(csv, &row, err);
	if (rc == 1) {
		ck_assert_uint_eq(row.fields[0].len, len - (quoted ? 2 : 0));
		ck_assert_uint_eq(row.line, 2);
		ck_assert_uint_eq(row.file_off, 4);
		ck_assert_int_eq(stoup_csv_next(csv, &row, err), 1);
		ck_assert_uint_eq(row.line, 3);
		ck_assert_uint_eq(row.file_off, 4 + len + 1);
		ck_assert_int_eq(stoup_csv_next(csv, &row, err), 0);
		ck_assert_int_eq(stoup_csv_next(csv, &row, err), 0);
	}
	stoup_csv_destroy(csv);
	free(text);
	return rc;
}

START_TEST(a_row_may_have_a_mebibyte_and_no_more)
{
	static const size_t pieces[] = {4096, 100000, 8u << 20};

	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		struct stoup_error err = {0};

		ck_assert_int_eq(long_row(STOUP_CSV_ROW_CAP, 0, pieces[i], &err), 1);
		ck_assert_int_eq(long_row(STOUP_CSV_ROW_CAP - 1, 1, pieces[i], &err), 1);
		ck_assert_int_eq(long_row(STOUP_CSV_ROW_CAP + 1, 0, pieces[i], &err), -EMSGSIZE);
		ck_assert_ptr_nonnull(
			strstr(err.text, "line 2: the row that starts here is longer"));
		ck_assert_int_eq(long_row(STOUP_CSV_ROW_CAP + 1, 1, pieces[i], &err), -EMSGSIZE);
		ck_assert_int_eq(long_row(6 * STOUP_CSV_ROW_CAP, 0, pieces[i], &err), -EMSGSIZE);
		ck_assert_int_eq(long_row(6 * STOUP_CSV_ROW_CAP, 1, pieces[i], &err), -EMSGSIZE);
	}
}
END_TEST

START_TEST(a_row_may_have_4096_columns_and_no_more)
{
	char text[2 * STOUP_CSV_COLUMN_CAP + 8], *out = malloc(100000);
	struct stoup_error err;

	memset(text, ',', sizeof text);
	ck_assert_int_eq(drain(text, STOUP_CSV_COLUMN_CAP - 1, 999, ',', out, &err), 0);
	ck_assert_uint_eq(strlen(out), 2 + 2 * STOUP_CSV_COLUMN_CAP + 1);
	ck_assert_int_eq(drain(text, STOUP_CSV_COLUMN_CAP, 999, ',', out, &err), -EMSGSIZE);
	memcpy(text, "\"\"", 2);
	ck_assert_int_eq(drain(text, STOUP_CSV_COLUMN_CAP + 1, 999, ',', out, &err), 0);
	ck_assert_int_eq(drain(text, STOUP_CSV_COLUMN_CAP + 2, 999, ',', out, &err), -EMSGSIZE);
	ck_assert_ptr_nonnull(strstr(err.text, "line 1: more than 4096 columns"));
	free(out);
}
END_TEST

START_TEST(a_failing_source_is_reported_behind_the_good_rows)
{
	struct source source = {"a,b\nc,d\ne", 9, 0, 4, -EIO};
	struct stoup_csv *csv;
	struct stoup_csv_row row;
	struct stoup_error err = {0};

	ck_assert_int_eq(stoup_csv_create(source_read, &source, ',', &csv, &err), 0);
	ck_assert_int_eq(stoup_csv_next(csv, &row, &err), 1);
	ck_assert_int_eq(stoup_csv_next(csv, &row, &err), 1);
	ck_assert_int_eq(stoup_csv_next(csv, &row, &err), -EIO);
	ck_assert_str_eq(err.text, "the source fails");
	stoup_csv_destroy(csv);
}
END_TEST

/* Random texts of the bytes that matter: the rows must not depend on where the stream is cut. */
START_TEST(the_rows_do_not_depend_on_the_pieces)
{
	static const char bytes[] = "ab,,\"\"\n\r";
	uint32_t state = 12345;

	for (int i = 0; i < 1500; i++) {
		char text[24], whole[512], cut[512];
		struct stoup_error whole_err = {0}, cut_err = {0};
		size_t len;
		int rc;

		state = state * 1664525u + 1013904223u;
		len = (state >> 16) % sizeof text;
		for (size_t j = 0; j < len; j++) {
			state = state * 1664525u + 1013904223u;
			text[j] = bytes[(state >> 16) % (sizeof bytes - 1)];
		}
		rc = drain(text, len, sizeof text, ',', whole, &whole_err);
		for (size_t piece_len = 1; piece_len < 4; piece_len++) {
			if (drain(text, len, piece_len, ',', cut, &cut_err) != rc ||
				strcmp(whole, cut) != 0 ||
				strcmp(whole_err.text, cut_err.text) != 0)
				ck_abort_msg("\"%.*s\" in pieces of %zu: %s and %s", (int)len, text,
					piece_len, whole, cut);
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("csv");
	TCase *tcase = tcase_create("csv");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, rows_and_fields_are_those_of_rfc_4180);
	tcase_add_test(tcase, texts_outside_the_grammar_are_refused_with_their_line);
	tcase_add_test(tcase, semicolons_tabs_blanks_and_bars_separate_too);
	tcase_add_test(tcase, what_numbers_are_made_of_cannot_separate);
	tcase_add_test(tcase, a_row_may_have_a_mebibyte_and_no_more);
	tcase_add_test(tcase, a_row_may_have_4096_columns_and_no_more);
	tcase_add_test(tcase, a_failing_source_is_reported_behind_the_good_rows);
	tcase_add_test(tcase, the_rows_do_not_depend_on_the_pieces);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
