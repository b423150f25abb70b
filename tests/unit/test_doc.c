/* SPDX-License-Identifier: Apache-2.0 */
/* test_doc.c - documents read in place: the published pairs, the order, paths, and bytes that lie. */
#include "shm/stoup_doc.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/json_doc.h"

static uint8_t store[64][16384];
static unsigned store_cnt;

static size_t unhex(const char *hex, uint8_t *dst)
{
	size_t len = strlen(hex) / 2;

	for (size_t i = 0; i < len; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1], 0};

		dst[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return len;
}

/* A document of a JSON text, in memory of its own until the test ends. */
static struct stoup_doc doc_of(const char *json)
{
	struct stoup_json_fault fault;
	struct stoup_doc doc;
	uint8_t *bytes = store[store_cnt++ % 64];
	int64_t len;

	ck_assert_uint_le(STOUP_JSON_DOC_CAP(strlen(json)), sizeof(store[0]));
	len = stoup_json_to_doc(json, strlen(json), bytes, &fault);
	ck_assert_msg(len > 0, "%s: %s", json, fault.what);
	ck_assert_int_eq(stoup_doc_open(bytes, (size_t)len, &doc), 0);
	return doc;
}

static struct stoup_doc doc_of_hex(const char *hex)
{
	uint8_t *bytes = store[store_cnt++ % 64];
	struct stoup_doc doc;

	ck_assert_int_eq(stoup_doc_open(bytes, unhex(hex, bytes), &doc), 0);
	return doc;
}

static const char *json_of(const struct stoup_doc *doc)
{
	static char text[8192];
	int64_t len = stoup_doc_json(doc, text, sizeof(text) - 1);

	ck_assert_int_ge(len, 0);
	text[len] = 0;
	return text;
}

/* ---- the published pairs ---------------------------------------------------------------------------- */

/* Value and bytes of each fixture that the format's authors publish. */
static const struct {
	const char *json, *binary;
} pairs[] = {
	{"100", "2264000000"},
	{"0", "2200000000"},
	{"1", "2201000000"},
	{"-1", "22ffffffff"},
	{"true", "0e01"},
	{"false", "0e00"},
	{"null", "06"},
	{"\"\"", "00"},
	{"[]", "04"},
	{"{}", "05"},
	{"[1,2,3,4,5,6,7,8,9]",
		"ec022201000000220200000022030000002204000000220500000022060000002207"
		"00000022080000002209000000"},
	{"\"hello\"", "2868656c6c6f"},
	{"{\"foo\":true}", "3518666f6f0e01"},
	{"[-1,{\"foo\":true},{\"type\":\"Buffer\",\"data\":[222,173,190,239]}]",
		"8c0122ffffffff3518666f6f0e0121deadbeef"},
	{"{\"1\":true}", "2508310e01"},
	{"{\"name\":\"bipf\",\"description\":\"binary in-place format\",\"version\":\"1.5.1\","
	 "\"homepage\":\"https://github.com/ssbc/bipf\",\"repository\":{\"type\":\"git\",\"url\":"
	 "\"git://github.com/ssbc/bipf.git\"},\"dependencies\":{\"varint\":\"^5.0.0\"},"
	 "\"devDependencies\":{\"faker\":\"^5.5.1\",\"tape\":\"^4.9.0\"},\"scripts\":{\"test\":"
	 "\"node test/index.js && node test/compare.js && node test/fixtures.js\"},\"author\":"
	 "\"Dominic Tarr <dominic.tarr@gmail.com> (http://dominictarr.com)\",\"license\":\"MIT\"}",
		"dd18206e616d652062697066586465736372697074696f6eb00162696e61727920696e2d706c616365"
		"20666f726d61743876657273696f6e28312e352e3140686f6d6570616765e00168747470733a2f2f67"
		"69746875622e636f6d2f737362632f62697066507265706f7369746f7279ed02207479706518676974"
		"1875726cf0016769743a2f2f6769746875622e636f6d2f737362632f626970662e6769746064657065"
		"6e64656e636965737530766172696e74305e352e302e3078646576446570656e64656e63696573cd01"
		"2866616b6572305e352e352e312074617065305e342e392e303873637269707473d504207465737498"
		"046e6f646520746573742f696e6465782e6a73202626206e6f646520746573742f636f6d706172652e"
		"6a73202626206e6f646520746573742f66697874757265732e6a7330617574686f72f003446f6d696e"
		"69632054617272203c646f6d696e69632e7461727240676d61696c2e636f6d3e2028687474703a2f2f"
		"646f6d696e6963746172722e636f6d29386c6963656e7365184d4954"},
};

START_TEST(the_published_pairs_hold_both_ways)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct stoup_doc made = doc_of(pairs[i].json), given = doc_of_hex(pairs[i].binary);
		uint8_t bytes[8192];
		size_t len = unhex(pairs[i].binary, bytes);
		struct stoup_error err = {0};

		ck_assert_uint_eq(made.tag_len + made.payload_len, len);
		ck_assert_mem_eq(made.payload - made.tag_len, bytes, len);
		ck_assert_str_eq(json_of(&given), pairs[i].json);
		ck_assert_msg(stoup_doc_valid(bytes, len, &err) == 0, "%s", err.text);
	}
}
END_TEST

/* ---- what the reference implementation gets wrong ----------------------------------------------------- */

START_TEST(a_short_last_element_is_visited)
{
	struct stoup_doc array = doc_of("[1,null]"), value;
	struct stoup_doc_iter iter;

	ck_assert_int_eq(stoup_doc_iterate(&array, &iter), 0);
	ck_assert_int_eq(stoup_doc_next(&iter, NULL, &value), 1);
	ck_assert_uint_eq(value.type, STOUP_DOC_INT);
	ck_assert_int_eq(stoup_doc_next(&iter, NULL, &value), 1);
	ck_assert_int_eq(stoup_doc_is_null(&value), 1);
	ck_assert_int_eq(stoup_doc_next(&iter, NULL, &value), 0);
	ck_assert_int_eq(stoup_doc_at(&array, 1, &value), 1);
	ck_assert_int_eq(stoup_doc_at(&array, 2, &value), 0);
}
END_TEST

START_TEST(a_last_member_behind_a_long_one_is_found)
{
	static char json[3100];
	struct stoup_doc doc, value;

	memcpy(json, "{\"a\":\"", 6);
	memset(json + 6, 'x', 3000);
	memcpy(json + 3006, "\",\"z\":null}", 12);
	doc = doc_of(json);
	ck_assert_int_eq(stoup_doc_get(&doc, "z", 1, &value), 1);
	ck_assert_int_eq(stoup_doc_is_null(&value), 1);
	ck_assert_int_eq(stoup_doc_get(&doc, "y", 1, &value), 0);
}
END_TEST

START_TEST(a_value_longer_than_its_container_is_refused)
{
	/* {"a": string of 5} in an object of 4 bytes: the string reaches behind both. */
	static const uint8_t inner[] = {0x25, 0x08, 'a', 0x28, 'x', 'y', 'z', 'z', 'z'};
	/* ["abcdefg"] whose array has 3 bytes, in a larger array. */
	static const uint8_t nested[] = {0x4c, 0x1c, 0x38, 'a', 'b', 'c', 'd', 'e', 'f', 'g'};
	struct stoup_doc doc, value;
	struct stoup_doc_iter iter;

	ck_assert_int_eq(stoup_doc_open(inner, sizeof(inner), &doc), -EBADMSG);
	ck_assert_int_eq(stoup_doc_open(inner, 5, &doc), 0);
	ck_assert_int_eq(stoup_doc_get(&doc, "a", 1, &value), -EBADMSG);
	ck_assert_int_eq(stoup_doc_iterate(&doc, &iter), 0);
	ck_assert_int_eq(stoup_doc_next(&iter, NULL, &value), -EBADMSG);
	ck_assert_int_eq(stoup_doc_json(&doc, NULL, 0), -EBADMSG);

	ck_assert_int_eq(stoup_doc_open(nested, sizeof(nested), &doc), 0);
	ck_assert_int_eq(stoup_doc_at(&doc, 0, &doc), 1);
	ck_assert_int_eq(stoup_doc_at(&doc, 0, &value), -EBADMSG);
}
END_TEST

START_TEST(integers_beyond_32_bits_are_exact)
{
	static const struct {
		const char *json;
		int64_t value;
		uint8_t type;
	} cases[] = {
		{"2147483647", INT32_MAX, STOUP_DOC_INT},
		{"-2147483648", INT32_MIN, STOUP_DOC_INT},
		{"2147483648", 2147483648, STOUP_DOC_EXTENDED},
		{"-2147483649", -2147483649, STOUP_DOC_EXTENDED},
		{"1723161255030314667", 1723161255030314667, STOUP_DOC_EXTENDED},
		{"9007199254740993", 9007199254740993, STOUP_DOC_EXTENDED},
		{"9223372036854775807", INT64_MAX, STOUP_DOC_EXTENDED},
		{"-9223372036854775808", INT64_MIN, STOUP_DOC_EXTENDED},
	};
	struct stoup_doc doc = doc_of("18446744073709551615");
	int64_t value;

	ck_assert_str_eq(json_of(&doc), "18446744073709551615");
	ck_assert_int_eq(stoup_doc_int(&doc, &value), -ERANGE);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		doc = doc_of(cases[i].json);
		ck_assert_uint_eq(doc.type, cases[i].type);
		ck_assert_int_eq(stoup_doc_int(&doc, &value), 0);
		ck_assert_int_eq(value, cases[i].value);
		ck_assert_str_eq(json_of(&doc), cases[i].json);
	}
}
END_TEST

/* ---- order ---------------------------------------------------------------------------------------------- */

static int sign(int value)
{
	return (value > 0) - (value < 0);
}

START_TEST(values_have_the_published_order_and_numbers_go_by_value)
{
	struct stoup_doc docs[] = {
		doc_of("null"), doc_of("\"\""), doc_of("\"hell\""), doc_of("\"hello\""),
		doc_of_hex("19616263"), /* a buffer */
		doc_of("-1e400"), doc_of("-9223372036854775809"), doc_of("-1"), doc_of("0"),
		doc_of("0.23"), doc_of("0.230000000000000000001"), doc_of("1"),
		doc_of("9007199254740992.0"), doc_of("9007199254740993"),
		doc_of("9223372036854775807"), doc_of("9223372036854775807.5"),
		doc_of("9223372036854775808"), doc_of("1e23"), doc_of("1e400"), doc_of("[]"),
		doc_of("{}"), doc_of("false"), doc_of("true"), doc_of_hex("0e02"), /* undefined */
	};
	int cnt = sizeof(docs) / sizeof(docs[0]);

	ck_assert_int_eq(stoup_doc_compare(NULL, NULL), 0);
	for (int i = 0; i < cnt; i++) {
		ck_assert_int_lt(stoup_doc_compare(NULL, &docs[i]), 0);
		ck_assert_int_gt(stoup_doc_compare(&docs[i], NULL), 0);
		for (int j = 0; j < cnt; j++)
			ck_assert_msg(sign(stoup_doc_compare(&docs[i], &docs[j])) == sign(i - j),
				"%d and %d", i, j);
	}
}
END_TEST

START_TEST(numbers_of_one_value_are_equal_in_every_form)
{
	static const char *const ones[] = {
		"1", "1.0", "1e0", "10e-1", "1.0000000000000000000000", "0.1E1"};
	static const char *const zeros[] = {"0", "-0", "0.0", "-0.0e5", "0e999999"};

	for (size_t i = 0; i < 6; i++) {
		struct stoup_doc a = doc_of(ones[0]), b = doc_of(ones[i]);
		int64_t value = 0;

		ck_assert_int_eq(stoup_doc_compare(&a, &b), 0);
		ck_assert_int_eq(stoup_doc_int(&b, &value), 0);
		ck_assert_int_eq(value, 1);
	}
	for (size_t i = 0; i < 5; i++) {
		struct stoup_doc a = doc_of(zeros[0]), b = doc_of(zeros[i]);

		ck_assert_int_eq(stoup_doc_compare(&a, &b), 0);
	}
}
END_TEST

/* ---- paths ------------------------------------------------------------------------------------------------ */

START_TEST(a_path_leads_to_names_and_elements)
{
	static const char json[] = "{\"data\":{\"a\":[[\"1\",\"2\"],[\"3\",{\"p\":\"61800.30\"}]],"
				   "\"a.b\":7,\"\":8,\"x[0]\":9},\"data\":1}";
	static const struct {
		const char *path, *json;
	} cases[] = {
		{"data.a[0][1]", "\"2\""},
		{"data.a[1][1].p", "\"61800.30\""},
		{"data.a\\.b", "7"},
		{"data.x\\[0]", "9"},
		{"data.a[2]", NULL},
		{"data.a.p", NULL},
		{"data[0]", NULL},
		{"date", NULL},
		{"dat", NULL},
	};
	struct stoup_doc doc = doc_of(json), value;
	struct stoup_doc_path *path;
	struct stoup_error err = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(
			stoup_doc_path_create(cases[i].path, &path, &err) == 0, "%s", err.text);
		ck_assert_int_eq(stoup_doc_seek(&doc, path, &value), cases[i].json != NULL);
		if (cases[i].json)
			ck_assert_str_eq(json_of(&value), cases[i].json);
		stoup_doc_path_destroy(path);
	}
	ck_assert_int_eq(stoup_doc_path_create(".", &path, &err), 0);
	ck_assert_int_eq(stoup_doc_seek(&doc, path, &value), 1);
	ck_assert_str_eq(json_of(&value), json);
	stoup_doc_path_destroy(path);
	ck_assert_int_eq(stoup_doc_path_create("[0].p", &path, &err), 0);
	ck_assert_int_eq(stoup_doc_seek(&doc, path, &value), 0);
	stoup_doc_path_destroy(path);
}
END_TEST

START_TEST(a_path_that_is_none_says_where)
{
	static const struct {
		const char *path, *text;
	} cases[] = {
		{"", "path \"\": 1 to 4096 bytes, such as data.b[0][1]; a dot alone is the document"},
		{"a..b", "path \"a..b\": a name is missing at \".b\""},
		{".a", "path \".a\": a name is missing at \".a\""},
		{"a.", "path \"a.\": a name is missing at \"\""},
		{"a[x]",
			"path \"a[x]\": at \"[x]\": an element is a number in brackets, such as [0]"},
		{"a[1", "path \"a[1\": at \"[1\": an element is a number in brackets, such as [0]"},
		{"a[4294967296]",
			"path \"a[4294967296]\": at \"[4294967296]\": an element is a number in brackets, "
			"such as [0]"},
		{"a[0]b", "path \"a[0]b\": a dot is missing at \"b\""},
		{"a\\", "path \"a\\\": a backslash at its end"},
	};
	struct stoup_doc_path *path;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stoup_error err = {0};

		ck_assert_int_eq(stoup_doc_path_create(cases[i].path, &path, &err), -EINVAL);
		ck_assert_str_eq(err.text, cases[i].text);
	}
}
END_TEST

/* ---- values ------------------------------------------------------------------------------------------------ */

START_TEST(decimals_of_strings_and_numbers_are_exact)
{
	static const struct {
		const char *json;
		int exp10, rc;
		int64_t value;
	} cases[] = {
		{"\"42010.50\"", -2, 0, 4201050},
		{"\"42010.50\"", -1, 0, 420105},
		{"\"42010.55\"", -1, -EDOM, 0},
		{"42010.5", -9, 0, 42010500000000},
		{"42010", -2, 0, 4201000},
		{"1723161255030314667", 0, 0, 1723161255030314667},
		{"0.1", -18, 0, 100000000000000000},
		{"0.1000000000000000055", -18, -EDOM, 0},
		{"123456789.123456789", -9, 0, 123456789123456789},
		{"\"\"", -2, -EINVAL, 0},
		{"\"abc\"", -2, -EINVAL, 0},
		{"\"1.5 \"", -2, -EINVAL, 0},
		{"true", -2, -EINVAL, 0},
		{"1e30", -2, -ERANGE, 0},
		{"[1]", 0, -EINVAL, 0},
		{"1", 19, -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stoup_doc doc = doc_of(cases[i].json);
		int64_t value = 0;

		ck_assert_msg(
			stoup_doc_decimal(&doc, cases[i].exp10, &value) == cases[i].rc, "%zu", i);
		ck_assert_int_eq(value, cases[i].value);
	}
}
END_TEST

START_TEST(doubles_are_the_nearest)
{
	static const struct {
		const char *json;
		int rc;
		double value;
	} cases[] = {
		{"0.1", 0, 0.1},
		{"\"0.1\"", 0, 0.1},
		{"3", 0, 3.0},
		{"9007199254740993", 0, 9007199254740992.0},
		{"0.1000000000000000055511151231257827", 0, 0.1},
		{"2.2250738585072011e-308", 0, 2.2250738585072011e-308},
		{"1e400", -ERANGE, 0},
		{"1e-400", 0, 0.0},
		{"\"+1.5\"", 0, 1.5},
		{"\".5\"", 0, 0.5},
		{"\"-.5e1\"", 0, -5.0},
		{"\".\"", -EINVAL, 0},
		{"\"1e\"", -EINVAL, 0},
		{"\"0x10\"", -EINVAL, 0},
		{"\"nan\"", -EINVAL, 0},
		{"null", -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stoup_doc doc = doc_of(cases[i].json);
		double value = 0;

		ck_assert_msg(stoup_doc_double(&doc, &value) == cases[i].rc, "%zu", i);
		ck_assert_msg(memcmp(&value, &cases[i].value, sizeof(value)) == 0, "%zu", i);
	}
}
END_TEST

START_TEST(types_are_not_mixed_up)
{
	struct stoup_doc text = doc_of("\"true\""), yes = doc_of("true"), no = doc_of("false"),
			 null = doc_of("null"), value;
	struct stoup_doc_iter iter;
	const char *bytes;
	size_t len;

	ck_assert_int_eq(stoup_doc_bool(&yes), 1);
	ck_assert_int_eq(stoup_doc_bool(&no), 0);
	ck_assert_int_eq(stoup_doc_bool(&null), -EINVAL);
	ck_assert_int_eq(stoup_doc_bool(&text), -EINVAL);
	ck_assert_int_eq(stoup_doc_is_null(&null), 1);
	ck_assert_int_eq(stoup_doc_is_null(&no), 0);
	ck_assert_int_eq(stoup_doc_string(&text, &bytes, &len), 0);
	ck_assert_uint_eq(len, 4);
	ck_assert_mem_eq(bytes, "true", 4);
	ck_assert_int_eq(stoup_doc_string(&yes, &bytes, &len), -EINVAL);
	ck_assert_int_eq(stoup_doc_iterate(&text, &iter), -EINVAL);
	ck_assert_int_eq(stoup_doc_get(&text, "a", 1, &value), 0);
	ck_assert_int_eq(stoup_doc_at(&text, 0, &value), 0);
}
END_TEST

START_TEST(json_says_how_much_room_it_wants)
{
	struct stoup_doc doc = doc_of("{\"a\":[1,\"b\\n\"]}");
	char text[32];

	memset(text, '#', sizeof(text));
	ck_assert_int_eq(stoup_doc_json(&doc, NULL, 0), 15);
	ck_assert_int_eq(stoup_doc_json(&doc, text, 9), 15);
	ck_assert_mem_eq(text, "{\"a\":[1,\"#", 10);
	ck_assert_int_eq(stoup_doc_json(&doc, text, 15), 15);
	ck_assert_mem_eq(text, "{\"a\":[1,\"b\\n\"]}#", 16);
}
END_TEST

/* ---- bytes that lie ------------------------------------------------------------------------------------------ */

START_TEST(each_fault_of_a_document_is_told_with_its_offset)
{
	static const struct {
		const char *hex, *text;
	} cases[] = {
		{"07", "offset 0 of the document: an extended value without its kind"},
		{"0c07", "offset 1 of the document: an extended value without its kind"},
		{"28616263",
			"offset 0 of the document: a length that reaches beyond its container, or a "
			"tag that is none"},
		{"808000", "offset 0 of the document: a tag of more bytes than it needs"},
		{"ffffffffff",
			"offset 0 of the document: a length that reaches beyond its container, or "
			"a tag that is none"},
		{"2500",
			"offset 0 of the document: a length that reaches beyond its container, or a tag "
			"that is none"},
		{"0d00", "offset 1 of the document: a key without a value"},
		{"1d0e0106", "offset 1 of the document: a key that is no string"},
		{"08ff", "offset 0 of the document: a string that is not UTF-8"},
		{"18eda080", "offset 0 of the document: a string that is not UTF-8"},
		{"10c080", "offset 0 of the document: a string that is not UTF-8"},
		{"1a010203", "offset 0 of the document: an int that has not 4 bytes"},
		{"2301020304", "offset 0 of the document: a double that has not 8 bytes"},
		{"43000000000000f07f", "offset 0 of the document: a double that is no number"},
		{"0e03", "offset 0 of the document: an atom that is no null, false or true"},
		{"160000", "offset 0 of the document: null, false or true of more than one byte"},
		{"0f09", "offset 0 of the document: an extended value of an unknown kind"},
		{"4f010100000000000000",
			"offset 0 of the document: an integer of 64 bits that fits 32"},
		{"4701000000000000ff",
			"offset 0 of the document: an integer of 64 bits that has not 8 "
			"bytes"},
		{"4f02ffffffffffffff7f",
			"offset 0 of the document: an unsigned integer that fits a signed one"},
		{"17033031", "offset 3 of the document: bytes behind the document"},
		{"1f033031", "offset 0 of the document: a decimal that is no number of JSON"},
		{"0606", "offset 1 of the document: bytes behind the document"},
	};
	struct stoup_error err;
	uint8_t bytes[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = unhex(cases[i].hex, bytes);

		err = (struct stoup_error){0};
		ck_assert_msg(stoup_doc_valid(bytes, len, &err) == -EBADMSG, "%s", cases[i].hex);
		ck_assert_msg(
			strcmp(err.text, cases[i].text) == 0, "%s: \"%s\"", cases[i].hex, err.text);
	}
	ck_assert_int_eq(stoup_doc_valid(bytes, 0, &err), -EBADMSG);
	ck_assert_str_eq(err.text, "the document is empty");
}
END_TEST

START_TEST(depth_has_a_limit_in_the_same_place_everywhere)
{
	uint8_t bytes[1024], *at = bytes + sizeof(bytes);
	struct stoup_doc doc;
	char json[2 * STOUP_DOC_DEPTH_CAP + 4];
	struct stoup_json_fault fault;
	uint8_t out[STOUP_JSON_DOC_CAP(sizeof(json))];
	uint32_t len = 0;

	for (int depth = 1; depth <= STOUP_DOC_DEPTH_CAP + 1; depth++) {
		uint32_t tag = len << 3 | STOUP_DOC_ARRAY;

		if (tag >= 0x80) {
			*--at = (uint8_t)(tag >> 7);
			*--at = (uint8_t)(tag | 0x80);
			len += 2;
		} else {
			*--at = (uint8_t)tag;
			len++;
		}
		memset(json, '[', (size_t)depth);
		memset(json + depth, ']', (size_t)depth);
		ck_assert_int_eq(stoup_doc_open(at, len, &doc), 0);
		if (depth <= STOUP_DOC_DEPTH_CAP) {
			ck_assert_int_eq(stoup_doc_valid(at, len, NULL), 0);
			ck_assert_int_eq(stoup_doc_json(&doc, NULL, 0), 2 * depth);
			ck_assert_int_eq(
				stoup_json_to_doc(json, 2 * (size_t)depth, out, &fault), len);
			ck_assert_mem_eq(out, at, len);
		} else {
			ck_assert_int_eq(stoup_doc_valid(at, len, NULL), -EBADMSG);
			ck_assert_int_eq(stoup_doc_json(&doc, NULL, 0), -EMSGSIZE);
			ck_assert_int_eq(
				stoup_json_to_doc(json, 2 * (size_t)depth, out, &fault), -EMSGSIZE);
			ck_assert_uint_eq(fault.off, STOUP_DOC_DEPTH_CAP);
		}
	}
}
END_TEST

START_TEST(every_cut_of_a_document_is_refused_or_not_found)
{
	static const char json[] = "{\"e\":\"trade\",\"b\":[[\"58710.20\",\"0.014\"],[1,2.5,null]],"
				   "\"T\":1723161256322,\"q\":0.123456789012345678901,\"z\":true}";
	struct stoup_doc whole = doc_of(json), doc, value;
	const uint8_t *bytes = whole.payload - whole.tag_len;
	size_t len = whole.tag_len + whole.payload_len;

	for (size_t cut = 0; cut < len; cut++) {
		uint8_t *copy = malloc(cut + 1), *payload = malloc(cut + 1);

		memcpy(copy, bytes, cut);
		ck_assert_int_eq(stoup_doc_open(copy, cut, &doc), -EBADMSG);
		ck_assert_int_eq(stoup_doc_valid(copy, cut, NULL), -EBADMSG);
		/* The same where the object's own length lies. */
		if (cut >= whole.tag_len) {
			memcpy(payload, whole.payload, cut - whole.tag_len);
			doc = whole;
			doc.payload = payload;
			doc.payload_len = (uint32_t)(cut - whole.tag_len);
			ck_assert_int_le(stoup_doc_get(&doc, "z", 1, &value), 0);
		}
		free(payload);
		free(copy);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("doc");
	TCase *tcase = tcase_create("doc");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, the_published_pairs_hold_both_ways);
	tcase_add_test(tcase, a_short_last_element_is_visited);
	tcase_add_test(tcase, a_last_member_behind_a_long_one_is_found);
	tcase_add_test(tcase, a_value_longer_than_its_container_is_refused);
	tcase_add_test(tcase, integers_beyond_32_bits_are_exact);
	tcase_add_test(tcase, values_have_the_published_order_and_numbers_go_by_value);
	tcase_add_test(tcase, numbers_of_one_value_are_equal_in_every_form);
	tcase_add_test(tcase, a_path_leads_to_names_and_elements);
	tcase_add_test(tcase, a_path_that_is_none_says_where);
	tcase_add_test(tcase, decimals_of_strings_and_numbers_are_exact);
	tcase_add_test(tcase, doubles_are_the_nearest);
	tcase_add_test(tcase, types_are_not_mixed_up);
	tcase_add_test(tcase, json_says_how_much_room_it_wants);
	tcase_add_test(tcase, each_fault_of_a_document_is_told_with_its_offset);
	tcase_add_test(tcase, depth_has_a_limit_in_the_same_place_everywhere);
	tcase_add_test(tcase, every_cut_of_a_document_is_refused_or_not_found);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
