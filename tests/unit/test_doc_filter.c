/* SPDX-License-Identifier: Apache-2.0 */
/* test_doc_filter.c - questions to documents: what holds, and what is no question. */
#include "shm/stoup_doc.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include "producer/json_doc.h"

static const char trade[] =
	"{\"stream\":\"btcusdt@trade\",\"data\":{\"e\":\"trade\",\"T\":1723161256322,\"p\":\"61800.30\","
	"\"q\":0.006,\"m\":false,\"n\":null,\"x\":\"it's\",\"b\":[[1,\"2.50\"]],\"big\":123456789012345678901,"
	"\"a b\":1}}";

static int holds(const char *json, const char *text)
{
	static uint8_t bytes[8192];
	struct stoup_json_fault fault;
	struct stoup_doc doc;
	struct stoup_doc_filter *filter;
	struct stoup_error err = {0};
	int64_t len = stoup_json_to_doc(json, strlen(json), bytes, &fault);
	int rc;

	ck_assert_int_gt(len, 0);
	ck_assert_int_eq(stoup_doc_open(bytes, (size_t)len, &doc), 0);
	ck_assert_msg(stoup_doc_filter_create(text, &filter, &err) == 0, "%s: %s", text, err.text);
	rc = stoup_doc_match(filter, &doc);
	stoup_doc_filter_destroy(filter);
	return rc;
}

START_TEST(a_filter_holds_where_it_should)
{
	static const struct {
		const char *text;
		int holds;
	} cases[] = {
		{"data.e = \"trade\"", 1},
		{"data.e='trade'", 1},
		{"data.e == 'trades'", 0},
		{"data.e != 'trades'", 1},
		{"data.e > 'trad'", 1},
		{"data.x = 'it\\'s'", 1},
		{"data.x = \"it's\"", 1},
		{"data.T = 1723161256322", 1},
		{"data.T = 1723161256322.0", 1},
		{"data.T = 1.723161256322e12", 1},
		{"data.T = '1723161256322'", 0}, /* a text is compared with texts */
		{"data.T >= 1723161256323", 0},
		{"data.T < 1723161256322.5", 1},
		{"data.p = 61800.3", 1}, /* a number with strings that have one */
		{"data.p >= 61800 and data.p < 61801", 1},
		{"data.p > 61800.30", 0},
		{"data.p <= 9", 0}, /* by value, not by its bytes */
		{"data.p = '61800.3'", 0},
		{"data.q = 0.006", 1},
		{"data.q = 0.0060000000000000000001", 0},
		{"data.q < 0.0060000000000000000001", 1},
		{"data.big = 123456789012345678901", 1},
		{"data.big > 123456789012345678900", 1},
		{"data.big < 1e400", 1},
		{"data.m = false", 1},
		{"data.m != true", 1},
		{"data.m = 0", 0},
		{"data.n = null", 1},
		{"data.n exists", 1},
		{"data.z exists", 0},
		{"not data.z exists", 1},
		{"data.z = null", 0},
		{"data.z != 1", 0}, /* not there: no test holds */
		{"not data.z = 1", 1},
		{"data.e < 5", 0}, /* no decimal: nothing but != holds */
		{"data.e != 5", 1},
		{"data != 5", 1},
		{"data.b[0][1] = 2.5", 1},
		{"data.b[1] exists", 0},
		{"data.a\\ b = 1", 1},
		{"data.e='x' or data.e='trade' and data.m=false", 1},
		{"data.e='trade' or data.e='x' and data.m=true", 1}, /* and binds closer */
		{"(data.e='trade' or data.e='x') and data.m=true", 0},
		{"not (data.e='x' or data.m=true)", 1},
		{"not not data.e='trade'", 1},
		{"not data.e='x' and data.m=true", 0}, /* not binds closest */
		{"  data.e\n=\t'trade'  ", 1},
		{"data.e\r\n<>\r\n'trade'", 0},
		/* The words, texts and numbers of filters of records. */
		{"data.x = 'it''s'", 1},
		{"data.x = 'it''s' AND Not data.e = 'x' Or data.m = TRUE", 1},
		{"data.e EXISTS", 1},
		{"data.n = NULL", 1},
		{"data.q = +0.006 and data.q = .006 and data.q = 000.006 and data.q = 6.e-3", 1},
		{"data.big = +0123456789012345678901. and data.big > -.5", 1},
		{"data.big < +0123456789012345678901.", 0},
	};
	static const struct {
		const char *json, *text;
		int holds;
	} texts[] = {
		{"\"C:\\\\new\"", ". = 'C:\\new'",
			1}, /* a backslash in front of others is itself */
		{"\"C:\\\\new\"", ". = 'C:\\\\new'", 1},
		{"\"a\\\"b\"", ". = \"a\"\"b\"", 1},
		{"\"a\\\"b\"", ". = \"a\\\"b\"", 1},
		{"\"a\\\\\\\"b\"", ". = 'a\\\"b'", 1},
		{"\"\"", ". = ''", 1},
		{"\"'\"", ". = ''''", 1},
		{"{\"not\":2}", "not = 2", 1}, /* words that are names */
		{"{\"not\":2}", "not not = 2", 0},
		{"{\"and\":2}", "and = 2 and not and = 3", 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(holds(trade, cases[i].text) == cases[i].holds, "%s", cases[i].text);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(
			holds(texts[i].json, texts[i].text) == texts[i].holds, "%s", texts[i].text);
	ck_assert_int_eq(holds("5", ". = 5"), 1);
	ck_assert_int_eq(holds("[5,6]", "[1] = 6"), 1);
	ck_assert_int_eq(holds("[5,6]", "a = 6"), 0);
}
END_TEST

START_TEST(what_is_no_filter_says_where)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "filter, at \"\": a path is missing, such as data.p"},
		{"= 5", "filter, at \"= 5\": a path is missing, such as data.p"},
		{"a", "filter, at \"\": =, !=, <, <=, >, >= or exists is missing"},
		{"a ~ 5", "filter, at \"~ 5\": =, !=, <, <=, >, >= or exists is missing"},
		{"a = ",
			"filter, at \"\": a value is a number, true, false, null, or a text in quotes"},
		{"a = b",
			"filter, at \"b\": a value is a number, true, false, null, or a text in quotes"},
		{"a = 5e",
			"filter, at \"5e\": a value is a number, true, false, null, or a text in quotes"},
		{"a = 'b", "filter, at \"'b\": a text without its second quote"},
		{"a = 'b''", "filter, at \"'b''\": a text without its second quote"},
		{"a = 'b\\'", "filter, at \"'b\\'\": a text without its second quote"},
		{"a < null", "filter, at \"\": true, false and null are compared by = and !="},
		{"a = 1 b = 2", "filter, at \"b = 2\": and, or, or the end is missing"},
		{"(a = 1", "filter, at \"\": a bracket is missing"},
		{"a = 1)", "filter, at \")\": and, or, or the end is missing"},
		{"a = 1 and", "filter, at \"\": a path is missing, such as data.p"},
		{"a..b = 1", "path \"a..b\": a name is missing at \".b\""},
	};
	struct stoup_doc_filter *filter;
	char deep[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stoup_error err = {0};

		ck_assert_int_eq(stoup_doc_filter_create(cases[i].text, &filter, &err), -EINVAL);
		ck_assert_msg(
			strcmp(err.text, cases[i].error) == 0, "%s: %s", cases[i].text, err.text);
	}
	memset(deep, '(', 40);
	strcpy(deep + 40, "a = 1");
	ck_assert_int_eq(stoup_doc_filter_create(deep, &filter, NULL), -EINVAL);
}
END_TEST

START_TEST(a_document_that_lies_is_an_error_of_its_own)
{
	static const uint8_t lie[] = {0x25, 0x08, 'a', 0x28, 'x'};
	struct stoup_doc doc;
	struct stoup_doc_filter *filter;

	ck_assert_int_eq(stoup_doc_open(lie, sizeof(lie), &doc), 0);
	ck_assert_int_eq(stoup_doc_filter_create("not a = 1 or b = 2", &filter, NULL), 0);
	ck_assert_int_eq(stoup_doc_match(filter, &doc), -EBADMSG);
	stoup_doc_filter_destroy(filter);
	stoup_doc_filter_destroy(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("doc_filter");
	TCase *tcase = tcase_create("doc_filter");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, a_filter_holds_where_it_should);
	tcase_add_test(tcase, what_is_no_filter_says_where);
	tcase_add_test(tcase, a_document_that_lies_is_an_error_of_its_own);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
