/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_doc.c - JSON texts to documents: which form a number takes, what strings become, what is refused. */
#include "producer/json_doc.h"

#include <check.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Encode a text that stands in memory of exactly its length, into room of exactly what is promised. */
static int64_t encode(const char *json, size_t len, uint8_t **ret, struct stoup_json_fault *fault)
{
	char *copy = malloc(len ? len : 1);
	int64_t rc;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, json, len);
	*ret = malloc(STOUP_JSON_DOC_CAP(len));
	ck_assert_ptr_nonnull(*ret);
	rc = stoup_json_to_doc(copy, len, *ret, fault);
	free(copy);
	return rc;
}

/* What a text comes back as; the document is valid. */
static void back(const char *json, char *dst, size_t cap, uint8_t *ret_type)
{
	struct stoup_json_fault fault = {0, ""};
	struct stoup_error err = {0};
	struct stoup_doc doc;
	uint8_t *bytes;
	int64_t len = encode(json, strlen(json), &bytes, &fault), n;

	ck_assert_msg(len > 0, "%s: offset %zu: %s", json, fault.off, fault.what);
	ck_assert_msg(stoup_doc_valid(bytes, (size_t)len, &err) == 0, "%s: %s", json, err.text);
	ck_assert_int_eq(stoup_doc_open(bytes, (size_t)len, &doc), 0);
	n = stoup_doc_json(&doc, dst, cap - 1);
	ck_assert_int_ge(n, 0);
	ck_assert_int_lt(n, (int64_t)cap);
	dst[n] = 0;
	*ret_type = doc.type == STOUP_DOC_EXTENDED ? (uint8_t)(0x70 | doc.payload[0]) : doc.type;
	free(bytes);
}

#define I64     (0x70 | STOUP_DOC_EXTENDED_I64)
#define U64     (0x70 | STOUP_DOC_EXTENDED_U64)
#define DECIMAL (0x70 | STOUP_DOC_EXTENDED_DECIMAL)

START_TEST(a_number_takes_the_shortest_form_that_is_exact)
{
	static const struct {
		const char *json;
		unsigned type;
		const char *back; /* NULL: as it was */
	} cases[] = {
		{"0", STOUP_DOC_INT, NULL},
		{"-2147483648", STOUP_DOC_INT, NULL},
		{"2147483647", STOUP_DOC_INT, NULL},
		{"2147483648", I64, NULL},
		{"-2147483649", I64, NULL},
		{"9223372036854775807", I64, NULL},
		{"-9223372036854775808", I64, NULL},
		{"9223372036854775808", U64, NULL},
		{"18446744073709551609", U64, NULL},
		{"18446744073709551610", U64, NULL},
		{"18446744073709551615", U64, NULL},
		{"18446744073709551616", DECIMAL, NULL},
		{"18446744073709551620", DECIMAL, NULL},
		{"-9223372036854775809", DECIMAL, NULL},
		{"123456789012345678901234567890", DECIMAL, NULL},
		{"-0", STOUP_DOC_DOUBLE, "-0.0"},
		{"-0.0", STOUP_DOC_DOUBLE, NULL},
		{"0.0", STOUP_DOC_DOUBLE, NULL},
		{"0e99999999999999999999", STOUP_DOC_DOUBLE, "0.0"},
		{"1.0", STOUP_DOC_DOUBLE, NULL},
		{"1.50", STOUP_DOC_DOUBLE, "1.5"},
		{"1e5", STOUP_DOC_DOUBLE, "100000.0"},
		{"1E+2", STOUP_DOC_DOUBLE, "100.0"},
		{"0.1", STOUP_DOC_DOUBLE, NULL},
		{"0.00012340", STOUP_DOC_DOUBLE, "0.0001234"},
		{"123456789.012345", STOUP_DOC_DOUBLE, NULL},
		{"1.00000000000000000000000000", STOUP_DOC_DOUBLE, "1.0"},
		{"0.30000000000000004", STOUP_DOC_DOUBLE, NULL},
		{"0.1000000000000000055", DECIMAL, NULL},
		{"0.10000000000000001", DECIMAL, NULL}, /* prints as 0.1 */
		{"9007199254740993.0", DECIMAL, NULL},
		{"9007199254740995.0", DECIMAL, NULL},
		{"5.684341886080802e-14", DECIMAL, NULL}, /* 2^-44: printers differ */
		{"1e22", STOUP_DOC_DOUBLE, "1e+22"},
		{"1e23", STOUP_DOC_DOUBLE, "1e+23"},
		{"1e308", STOUP_DOC_DOUBLE, "1e+308"},
		{"1.7976931348623157e308", STOUP_DOC_DOUBLE, "1.7976931348623157e+308"},
		{"1e309", DECIMAL, NULL},
		{"1e-400", DECIMAL, NULL},
		{"5e-324", DECIMAL, NULL}, /* not normal: fewer digits than others */
		{"2.2250738585072014e-308", DECIMAL, NULL}, /* a power of two */
		{"1e99999999999999999999", DECIMAL, NULL},
		{"1.5e-7", STOUP_DOC_DOUBLE, "1.5e-07"},
	};
	char text[128];
	uint8_t type;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *want = cases[i].back ? cases[i].back : cases[i].json;

		back(cases[i].json, text, sizeof(text), &type);
		ck_assert_msg(type == cases[i].type, "%s: type 0x%x", cases[i].json, type);
		ck_assert_msg(strcmp(text, want) == 0, "%s: %s", cases[i].json, text);
	}
}
END_TEST

START_TEST(numbers_do_not_depend_on_the_locale)
{
	static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
	char text[64];
	uint8_t type;

	for (size_t i = 0; i < 3; i++)
		setlocale(LC_ALL, names[i]);
	back("[0.30000000000000004,1e23,0.10000000000000001]", text, sizeof(text), &type);
	setlocale(LC_ALL, "C");
	ck_assert_str_eq(text, "[0.30000000000000004,1e+23,0.10000000000000001]");
}
END_TEST

START_TEST(strings_are_unescaped_and_come_back)
{
	static const struct {
		const char *json, *back; /* NULL: as it was */
	} cases[] = {
		{"\"\"", NULL},
		{"\"1234567\"", NULL},
		{"\"12345678\"", NULL},
		{"\"123456789012345\"", NULL},
		{"\"1234567890123456\"", NULL},
		{"\"12345678901234567\"", NULL},
		{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
		{"\"\\u0000\\u001F\\u0020\"", "\"\\u0000\\u001f \""},
		{"\"\\u00e9\\u20AC\"", "\"\xc3\xa9\xe2\x82\xac\""},
		{"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
		{"\"\\uD83D\\uDE00\"", "\"\xf0\x9f\x98\x80\""},
		{"\"\xf0\x9f\x98\x80\"", NULL},
		{"\"\xf4\x8f\xbf\xbf\"", NULL},
		{"\"abcdefg\\nhijklmnop\\nqrstuvwxyz\"", NULL}, /* the tag grows behind an escape */
		{"{\"\\u0061\":1,\"a\":2,\"a\":3}", "{\"a\":1,\"a\":2,\"a\":3}"},
		{" \t\r\n[ 1 , { \"a\" : null } , [ ] , { } ] ", "[1,{\"a\":null},[],{}]"},
	};
	char text[256];
	uint8_t type;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		back(cases[i].json, text, sizeof(text), &type);
		ck_assert_str_eq(text, cases[i].back ? cases[i].back : cases[i].json);
	}
}
END_TEST

START_TEST(lengths_around_every_border_of_a_tag_hold)
{
	static const size_t lens[] = {0, 1, 14, 15, 16, 17, 2046, 2047, 2048, 2049, 262143, 262144};
	static char json[262144 + 32], text[262144 + 32];
	uint8_t type;

	/* As a string, with an escape in it, and inside of an object. */
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t at;

		at = (size_t)sprintf(json, "{\"k\":\"");
		memset(json + at, 'x', lens[i]);
		strcpy(json + at + lens[i], "\"}");
		back(json, text, sizeof(text), &type);
		ck_assert_str_eq(text, json);
		at = (size_t)sprintf(json, "[\"\\n");
		memset(json + at, 'x', lens[i]);
		strcpy(json + at + lens[i], "\",1]");
		back(json, text, sizeof(text), &type);
		ck_assert_str_eq(text, json);
	}
}
END_TEST

START_TEST(only_what_a_buffer_prints_as_becomes_a_buffer)
{
	static const struct {
		const char *json;
		uint8_t type;
	} cases[] = {
		{"{\"type\":\"Buffer\",\"data\":[0,255]}", STOUP_DOC_BUFFER},
		{"{\"type\":\"Buffer\",\"data\":[]}", STOUP_DOC_BUFFER},
		{"{\"type\":\"Buffer\",\"data\":[256]}", STOUP_DOC_OBJECT},
		{"{\"type\":\"Buffer\",\"data\":[-1]}", STOUP_DOC_OBJECT},
		{"{\"type\":\"Buffer\",\"data\":[1.0]}", STOUP_DOC_OBJECT},
		{"{\"type\":\"Buffer\",\"data\":[\"abcd\"]}", STOUP_DOC_OBJECT},
		{"{\"type\":\"Buffer\",\"data\":[1],\"more\":1}", STOUP_DOC_OBJECT},
		{"{\"data\":[1],\"type\":\"Buffer\"}", STOUP_DOC_OBJECT},
		{"{\"type\":\"Buffer\",\"data\":{}}", STOUP_DOC_OBJECT},
		{"{\"type\":\"Buffer\"}", STOUP_DOC_OBJECT},
	};
	char text[256];
	uint8_t type;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		back(cases[i].json, text, sizeof(text), &type);
		ck_assert_str_eq(text, cases[i].json);
		ck_assert_uint_eq(type, cases[i].type);
	}
}
END_TEST

START_TEST(what_is_no_json_is_told_with_its_place)
{
	static const struct {
		const char *json;
		size_t len; /* 0: strlen */
		size_t off;
		int rc;
		const char *what;
	} cases[] = {
		{"", 0, 0, -ENODATA, "it ends inside of the value"},
		{"  ", 0, 2, -ENODATA, "it ends inside of the value"},
		{"[1,", 0, 3, -ENODATA, "it ends inside of the value"},
		{"{\"a\"", 0, 4, -ENODATA, "it ends inside of the value"},
		{"\"abc", 0, 4, -ENODATA, "it ends inside of a string"},
		{"\"abc\\", 0, 5, -ENODATA, "it ends inside of the value"},
		{"\"abc\\u12", 0, 8, -ENODATA, "it ends inside of the value"},
		{"\"\\ud83d", 0, 7, -ENODATA, "it ends inside of the value"},
		{"\"\\ud83d\\", 0, 8, -ENODATA, "it ends inside of the value"},
		{"tru", 0, 3, -ENODATA, "it ends inside of the value"},
		{"-", 0, 1, -ENODATA, "it ends inside of the value"},
		{"1.", 0, 2, -ENODATA, "it ends inside of the value"},
		{"1e+", 0, 3, -ENODATA, "it ends inside of the value"},
		{"[1,]", 0, 3, -EBADMSG, "a value is missing"},
		{"[,1]", 0, 1, -EBADMSG, "a value is missing"},
		{"[1 2]", 0, 3, -EBADMSG, "a comma or ] is missing"},
		{"[1}", 0, 2, -EBADMSG, "a comma or ] is missing"},
		{"{\"a\":1]", 0, 6, -EBADMSG, "a comma or } is missing"},
		{"{\"a\" 1}", 0, 5, -EBADMSG, "a colon is missing behind the key"},
		{"{\"a\":}", 0, 5, -EBADMSG, "a value is missing"},
		{"{\"a\":1,}", 0, 7, -EBADMSG, "a key is missing: a string in double quotes"},
		{"{a:1}", 0, 1, -EBADMSG, "a key is missing: a string in double quotes"},
		{"{'a':1}", 0, 1, -EBADMSG, "a key is missing: a string in double quotes"},
		{"['a']", 0, 1, -EBADMSG, "JSON's strings have double quotes"},
		{"{} {}", 0, 3, -EBADMSG, "more behind the value"},
		{"1 ]", 0, 2, -EBADMSG, "more behind the value"},
		{"01", 0, 0, -EBADMSG, "a number of JSON has no leading zero"},
		{"-01", 0, 1, -EBADMSG, "a number of JSON has no leading zero"},
		{"+1", 0, 0, -EBADMSG, "a number begins with a digit or a minus"},
		{".5", 0, 0, -EBADMSG, "a number begins with a digit or a minus"},
		{"[1.]", 0, 3, -EBADMSG, "a digit is missing behind the point"},
		{"[-]", 0, 2, -EBADMSG, "a digit is missing"},
		{"[1e]", 0, 3, -EBADMSG, "a digit is missing in the exponent"},
		{"0x10", 0, 1, -EBADMSG, "more behind the value"},
		{"NaN", 0, 0, -EBADMSG, "NaN and Infinity are no numbers of JSON"},
		{"-Infinity", 0, 1, -EBADMSG, "a digit is missing"},
		{"trUe", 0, 0, -EBADMSG, "no value of JSON begins so"},
		{"nul]", 0, 0, -EBADMSG, "no value of JSON begins so"},
		{"\"a\tb\"", 0, 2, -EBADMSG, "a control character in a string is written \\u00XX"},
		{"\"a\0b\"", 5, 2, -EBADMSG, "a NUL byte"},
		{"[\0]", 3, 1, -EBADMSG, "a NUL byte"},
		{"\"\\x41\"", 0, 2, -EBADMSG, "an escape that JSON does not have"},
		{"\"\\u12G4\"", 0, 5, -EBADMSG, "\\u wants four hexadecimal digits"},
		{"\"\\ud800\"", 0, 1, -EBADMSG, "half of a surrogate pair is no character"},
		{"\"\\udc00\"", 0, 1, -EBADMSG, "half of a surrogate pair is no character"},
		{"\"\\ud800\\ud800\"", 0, 1, -EBADMSG, "half of a surrogate pair is no character"},
		{"\"\\ud800\\n12345\"", 0, 1, -EBADMSG, "half of a surrogate pair is no character"},
		{"\"a\xff\"", 0, 2, -EBADMSG, "bytes that are not UTF-8"},
		{"\"\xc0\x80\"", 0, 1, -EBADMSG, "bytes that are not UTF-8"},
		{"\"\xed\xa0\x80\"", 0, 1, -EBADMSG, "bytes that are not UTF-8"},
		{"\"\xf4\x90\x80\x80\"", 0, 1, -EBADMSG, "bytes that are not UTF-8"},
		{"[\xc3\xa9]", 0, 1, -EBADMSG, "a byte that is no ASCII, outside of a string"},
		{"// a\n1", 0, 0, -EBADMSG, "no value of JSON begins so"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stoup_json_fault fault = {99, ""};
		uint8_t *bytes;
		size_t len = cases[i].len ? cases[i].len : strlen(cases[i].json);
		int64_t rc = encode(cases[i].json, len, &bytes, &fault);

		ck_assert_msg(rc == cases[i].rc, "%s: %lld", cases[i].json, (long long)rc);
		ck_assert_msg(strcmp(fault.what, cases[i].what) == 0, "%s: %s", cases[i].json,
			fault.what);
		ck_assert_msg(
			fault.off == cases[i].off, "%s: offset %zu", cases[i].json, fault.off);
		free(bytes);
	}
}
END_TEST

START_TEST(every_cut_of_a_text_is_one_that_ends_inside)
{
	static const char json[] =
		"{\"a\":[\"x\\u00e9\\ud83d\\ude00\xc3\xa9\",true,null,-1.5e-3],\"b\":{}}";

	for (size_t cut = 0; cut < sizeof(json) - 1; cut++) {
		struct stoup_json_fault fault;
		uint8_t *bytes;
		int64_t rc = encode(json, cut, &bytes, &fault);

		ck_assert_msg(rc == -ENODATA, "cut at %zu: %lld", cut, (long long)rc);
		free(bytes);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("json_doc");
	TCase *tcase = tcase_create("json_doc");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, a_number_takes_the_shortest_form_that_is_exact);
	tcase_add_test(tcase, numbers_do_not_depend_on_the_locale);
	tcase_add_test(tcase, strings_are_unescaped_and_come_back);
	tcase_add_test(tcase, lengths_around_every_border_of_a_tag_hold);
	tcase_add_test(tcase, only_what_a_buffer_prints_as_becomes_a_buffer);
	tcase_add_test(tcase, what_is_no_json_is_told_with_its_place);
	tcase_add_test(tcase, every_cut_of_a_text_is_one_that_ends_inside);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
