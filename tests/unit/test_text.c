/* SPDX-License-Identifier: Apache-2.0 */
/* test_text.c - views of texts, at the edge of what may be read, against plain loops.
 *
 *      [ page that may be read ....... text][ page that may not ]
 *                                          ^ a view ends here, so that one byte too many is a fault
 *
 * Views also begin at the first byte of a page behind one that may not be read.
 */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "shm/stoup_doc.h"
#include "shm/stoup_text.h"

#define PAGE 4096u

/* Pages: closed, open, closed. */
static char *page_open(void)
{
	static char *pages;

	if (!pages) {
		pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ck_assert(pages != MAP_FAILED);
		ck_assert_int_eq(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	}
	return pages + PAGE;
}

/* The text at the end of the page; at its start. */
static struct stoup_text_view at_end(const char *text, size_t len)
{
	char *at = page_open() + PAGE - len;

	memcpy(at, text, len);
	return stoup_text_make(at, len);
}

static struct stoup_text_view at_start(const char *text, size_t len)
{
	memcpy(page_open(), text, len);
	return stoup_text_make(page_open(), len);
}

static struct stoup_text_view view(const char *text)
{
	return stoup_text_cstr(text);
}

static int is(struct stoup_text_view found, const char *text)
{
	return found.len == strlen(text) &&
	       (found.len == 0 || memcmp(found.ptr, text, found.len) == 0);
}

static uint64_t seed = 5;

static unsigned rnd(unsigned below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 40) % below;
}

START_TEST(texts_at_the_edges_of_pages_compare_as_their_bytes)
{
	char a[64], b[64];

	for (int i = 0; i < 100000; i++) {
		int fine = 1;
		size_t a_len = rnd(40), b_len = rnd(4) ? a_len : rnd(40), common = 0, at;
		struct stoup_text_view first, second;
		int equal, order, found = -1;

		for (size_t k = 0; k < sizeof(a); k++) {
			a[k] = "aAbB\0\xff"[rnd(6)];
			b[k] = rnd(30) ? a[k] : "aAbB\0\xff"[rnd(6)];
		}
		first = at_start(a, a_len);
		second = at_end(b, b_len);
		while (common < a_len && common < b_len && a[common] == b[common])
			common++;
		equal = a_len == b_len && common == a_len;
		fine &= stoup_text_equal(first, second) == equal;
		order = common == a_len || common == b_len
		                ? (a_len > b_len) - (a_len < b_len)
		                : (unsigned char)a[common] - (unsigned char)b[common];
		fine &= (stoup_text_compare(first, second) > 0) == (order > 0);
		fine &= (stoup_text_compare(first, second) < 0) == (order < 0);
		fine &= stoup_text_starts(first, second) == (common == b_len);
		fine &= stoup_text_ends(second, first) ==
		        (a_len <= b_len && memcmp(a, b + b_len - a_len, a_len) == 0);
		fine &= !equal || stoup_text_hash(first) == stoup_text_hash(second);
		for (at = 0; at + 3 <= b_len && found < 0; at++)
			found = memcmp(b + at, a, 3) == 0 ? (int)at : -1;
		if (a_len >= 3)
			fine &= stoup_text_find(second, stoup_text_slice(first, 0, 3)) == found;
		fine &= stoup_text_padded(second.ptr, second.len).len == strnlen(b, b_len);
		fine &= stoup_text_padded(first.ptr, first.len).len == strnlen(a, a_len);
		ck_assert_msg(fine, "round %d: '%.*s' and '%.*s'", i, (int)a_len, a, (int)b_len, b);
	}
}
END_TEST

static int by_value(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

START_TEST(hashes_of_near_texts_differ)
{
	/* 65,536 texts of each length that differ in two bytes: no two hashes of 64 bits agree, and the low
	 * 16 bits take most values. */
	static uint64_t found[65536];
	static unsigned char low[65536];
	char text[32];

	for (size_t len = 2; len <= 32; len += 3) {
		unsigned used = 0, twice = 0;

		memset(low, 0, sizeof(low));
		memset(text, 'x', sizeof(text));
		for (unsigned i = 0; i < 65536; i++) {
			text[0] = (char)i;
			text[len - 1] = (char)(i >> 8);
			found[i] = stoup_text_hash(stoup_text_make(text, len));
			used += !low[found[i] & 0xffff];
			low[found[i] & 0xffff] = 1;
		}
		/* Of random ones 1 - 1/e: 41,427. */
		ck_assert_msg(used > 38000, "length %zu: %u low halves", len, used);
		qsort(found, 65536, sizeof(found[0]), by_value);
		for (unsigned i = 1; i < 65536; i++)
			twice += found[i] == found[i - 1];
		ck_assert_msg(twice == 0, "length %zu: %u hashes twice", len, twice);
	}
	ck_assert_uint_ne(stoup_text_hash(view("")), stoup_text_hash(stoup_text_make("", 1)));
	ck_assert_uint_ne(stoup_text_hash(stoup_text_make("\0", 1)),
		stoup_text_hash(stoup_text_make("\0\0", 2)));
}
END_TEST

START_TEST(case_is_that_of_ascii)
{
	ck_assert_int_eq(stoup_text_equal_case(view("BtcUsdT"), view("BTCusdt")), 1);
	ck_assert_int_eq(stoup_text_equal_case(view("@[`{"), view("`{@[")), 0);
	ck_assert_int_eq(stoup_text_equal_case(view("\xc4"), view("\xe4")), 0);
	ck_assert_int_eq(stoup_text_equal_case(view("ab"), view("abc")), 0);
	ck_assert_int_eq(stoup_text_equal_case(at_end("Zz", 2), view("zZ")), 1);
	ck_assert_int_eq(stoup_text_equal_case(view(NULL), view("")), 1);
}
END_TEST

START_TEST(views_of_fields_and_strings)
{
	const struct stoup_field *symbol =
		stoup_schema_field(stoup_schema_by_name("definition"), "raw_symbol");
	const struct stoup_field *price = stoup_schema_field(stoup_schema_by_name("mbo"), "price");
	const struct stoup_field side = {.off = 2, .cnt = 1, .type = STOUP_TYPE_CHAR};
	const uint8_t doc_bytes[] = {0x18, 'a', 'b', 'c'}, number[] = {0x22, 1, 0, 0, 0};
	struct stoup_doc doc;
	char record[520] = {0};

	memcpy(record + symbol->off, "ESH4", 4);
	ck_assert(is(stoup_text_field(symbol, record), "ESH4"));
	memset(record + symbol->off, 'x', symbol->cnt);
	ck_assert_uint_eq(stoup_text_field(symbol, record).len, symbol->cnt);
	ck_assert_ptr_null(stoup_text_field(price, record).ptr);
	ck_assert_ptr_null(stoup_text_field(NULL, record).ptr);
	ck_assert_ptr_null(stoup_text_field(symbol, NULL).ptr);
	ck_assert(is(stoup_text_field(&side, at_end("..B", 3).ptr), "B"));
	ck_assert(is(stoup_text_field(&side, at_end("..\0", 3).ptr), ""));
	ck_assert_int_eq(stoup_doc_open(doc_bytes, 4, &doc), 0);
	ck_assert(is(stoup_text_doc(&doc), "abc"));
	ck_assert_int_eq(stoup_doc_open(number, 5, &doc), 0);
	ck_assert_ptr_null(stoup_text_doc(&doc).ptr);
	ck_assert_ptr_null(stoup_text_doc(NULL).ptr);
	ck_assert_uint_eq(stoup_text_padded("abc", 0).len, 0);
}
END_TEST

START_TEST(parts_of_texts)
{
	struct stoup_text_view rest = at_end("a,,bc,", 6), part;
	char room[4] = "zzz";

	ck_assert(stoup_text_split(&rest, ',', &part) == 1 && is(part, "a"));
	ck_assert(stoup_text_split(&rest, ',', &part) == 1 && is(part, ""));
	ck_assert(stoup_text_split(&rest, ',', &part) == 1 && is(part, "bc"));
	ck_assert(stoup_text_split(&rest, ',', &part) == 1 && is(part, ""));
	part = view("as it was");
	ck_assert(stoup_text_split(&rest, ',', &part) == 0 && is(part, "as it was"));
	ck_assert(rest.ptr == NULL && rest.len == 0);
	rest = view("");
	ck_assert(stoup_text_split(&rest, ',', &part) == 1 && part.len == 0);
	ck_assert(stoup_text_split(&rest, ',', &part) == 0);
	rest = stoup_text_make("a\0b", 3);
	ck_assert(stoup_text_split(&rest, 0, &part) == 1 && is(part, "a"));
	ck_assert(stoup_text_split(&rest, 0, &part) == 1 && is(part, "b"));

	ck_assert(is(stoup_text_trim(at_end(" \t\v\f\r\n a b \n", 11)), "a b"));
	ck_assert(is(stoup_text_trim(view(" \n ")), ""));
	ck_assert(is(stoup_text_trim(view(NULL)), ""));
	ck_assert(is(stoup_text_slice(view("abcdef"), 2, 4), "cd"));
	ck_assert(is(stoup_text_slice(view("abcdef"), 2, SIZE_MAX), "cdef"));
	ck_assert(is(stoup_text_slice(view("abcdef"), 9, 12), ""));
	ck_assert(is(stoup_text_slice(view("abcdef"), 4, 2), ""));
	ck_assert_int_eq(stoup_text_find(view("abc"), view("")), 0);
	ck_assert_int_eq(stoup_text_find(view(""), view("a")), -1);
	ck_assert_int_eq(stoup_text_find(view("aabaab"), view("baa")), 2);
	ck_assert_int_eq(stoup_text_find_byte(at_end("abc", 3), 'c'), 2);
	ck_assert_int_eq(stoup_text_find_byte(at_end("abc", 3), 'd'), -1);
	ck_assert_int_eq(stoup_text_find_byte(view("a\xff"), '\xff'), 1);
	ck_assert_int_eq(stoup_text_starts(view(NULL), view("")), 1);
	ck_assert_int_eq(stoup_text_ends(view(NULL), view("")), 1);

	ck_assert_uint_eq(stoup_text_copy(at_end("abcdef", 6), room, 4), 6);
	ck_assert_str_eq(room, "abc");
	ck_assert_uint_eq(stoup_text_copy(view("ab"), room, 4), 2);
	ck_assert_str_eq(room, "ab");
	ck_assert_uint_eq(stoup_text_copy(view("abc"), room, 4), 3);
	ck_assert_str_eq(room, "abc");
	ck_assert_uint_eq(stoup_text_copy(view("xyz"), room, 1), 3);
	ck_assert_str_eq(room, "");
	room[0] = 'k';
	ck_assert_uint_eq(stoup_text_copy(view("xyz"), room, 0), 3);
	ck_assert_int_eq(room[0], 'k');
}
END_TEST

START_TEST(integers)
{
	static const struct {
		const char *text;
		int rc, u_rc;
		int64_t value;
		uint64_t u_value;
	} samples[] = {
		{"0", 0, 0, 0, 0},
		{"-0", 0, 0, 0, 0},
		{"+7", 0, 0, 7, 7},
		{"007", 0, 0, 7, 7},
		{"-7", 0, -ERANGE, -7, 0},
		{"9223372036854775807", 0, 0, INT64_MAX, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0, 0, UINT64_C(9223372036854775808)},
		{"-9223372036854775808", 0, -ERANGE, INT64_MIN, 0},
		{"-9223372036854775809", -ERANGE, -ERANGE, 0, 0},
		{"18446744073709551615", -ERANGE, 0, 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, -ERANGE, 0, 0},
		{"99999999999999999999999999", -ERANGE, -ERANGE, 0, 0},
		{"99999999999999999999999999x", -EINVAL, -EINVAL, 0, 0},
		{"", -EINVAL, -EINVAL, 0, 0},
		{"-", -EINVAL, -EINVAL, 0, 0},
		{"+", -EINVAL, -EINVAL, 0, 0},
		{"+-1", -EINVAL, -EINVAL, 0, 0},
		{" 1", -EINVAL, -EINVAL, 0, 0},
		{"1 ", -EINVAL, -EINVAL, 0, 0},
		{"1.0", -EINVAL, -EINVAL, 0, 0},
		{"1e3", -EINVAL, -EINVAL, 0, 0},
		{"0x1", -EINVAL, -EINVAL, 0, 0},
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct stoup_text_view text = at_end(samples[i].text, strlen(samples[i].text));
		uint64_t u_value = 77;
		int64_t value = 77;

		ck_assert_msg(stoup_text_i64(text, &value) == samples[i].rc, "%s", samples[i].text);
		ck_assert_int_eq(value, samples[i].rc ? 77 : samples[i].value);
		ck_assert_msg(
			stoup_text_u64(text, &u_value) == samples[i].u_rc, "%s", samples[i].text);
		ck_assert_uint_eq(u_value, samples[i].u_rc ? 77 : samples[i].u_value);
	}
	ck_assert_int_eq(stoup_text_i64(view(NULL), &(int64_t){0}), -EINVAL);
}
END_TEST

START_TEST(decimals)
{
	static const struct {
		const char *text;
		int rc;
		int64_t value;
		int exp10;
	} samples[] = {
		{"61800.30", 0, 618003, -1},
		{"1.50", 0, 15, -1},
		{"1200", 0, 12, 2},
		{"-0.000", 0, 0, 0},
		{"0e99", 0, 0, 0},
		{"0e99999999999999999999", 0, 0, 0},
		{".5", 0, 5, -1},
		{"5.", 0, 5, 0},
		{"007.0070", 0, 7007, -3},
		{"1e3", 0, 1, 3},
		{"12.5E-20", 0, 125, -21},
		{"-9223372036854775808", 0, INT64_MIN, 0},
		{"9223372036854775807e5", 0, INT64_MAX, 5},
		{"92233720368547758070000", 0, INT64_MAX, 4},
		{"9223372036854775808", -ERANGE, 0, 0},
		{"0.18446744073709551616", -ERANGE, 0, 0},
		{"1e2147483647", 0, 1, INT_MAX},
		{"10e2147483647", -ERANGE, 0, 0},
		{"1e-2147483648", 0, 1, INT_MIN},
		{"0.1e-2147483648", -ERANGE, 0, 0},
		{"1e99999999999999999999", -ERANGE, 0, 0},
		{"", -EINVAL, 0, 0},
		{".", -EINVAL, 0, 0},
		{"1e", -EINVAL, 0, 0},
		{"1,5", -EINVAL, 0, 0},
		{"1.2.3", -EINVAL, 0, 0},
		{"nan", -EINVAL, 0, 0},
	};
	int64_t value = 77;
	double number;
	int exp10 = 77;

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct stoup_text_view text = at_end(samples[i].text, strlen(samples[i].text));

		value = exp10 = 77;
		ck_assert_msg(stoup_text_decimal_any(text, &value, &exp10) == samples[i].rc, "%s",
			samples[i].text);
		ck_assert_msg(value == (samples[i].rc ? 77 : samples[i].value) &&
				      exp10 == (samples[i].rc ? 77 : samples[i].exp10),
			"%s: %lld %d", samples[i].text, (long long)value, exp10);
	}
	ck_assert_int_eq(stoup_text_decimal(at_end("42010.50", 8), -2, &value), 0);
	ck_assert_int_eq(value, 4201050);
	ck_assert_int_eq(stoup_text_decimal(at_end("42010.505", 9), -2, &value), -EDOM);
	ck_assert_int_eq(stoup_text_decimal(at_end("1e30", 4), -2, &value), -ERANGE);
	ck_assert_int_eq(stoup_text_decimal(at_end("1", 1), 19, &value), -EINVAL);
	ck_assert_int_eq(stoup_text_decimal(view(NULL), 0, &value), -EINVAL);
	ck_assert_int_eq(value, 4201050);
	ck_assert_int_eq(stoup_text_double(at_end("0.1", 3), &number), 0);
	ck_assert(number == 0.1);
	ck_assert_int_eq(stoup_text_double(at_end("-1e309", 6), &number), -ERANGE);
	ck_assert_int_eq(stoup_text_double(at_end("1e-400", 6), &number), 0);
	ck_assert(number == 0);
	ck_assert_int_eq(stoup_text_double(at_end("1e", 2), &number), -EINVAL);
}
END_TEST

START_TEST(times)
{
	static const struct {
		const char *text;
		int rc;
		int64_t ns;
	} samples[] = {
		{"2024-01-02T03:04:05.123456789Z", 0, INT64_C(1704164645123456789)},
		{"1704164645", 0, INT64_C(1704164645000000000)},
		{"1704164645123", 0, INT64_C(1704164645123000000)},
		{"1704164645123456", 0, INT64_C(1704164645123456000)},
		{"2024-01-02", 0, INT64_C(1704153600000000000)},
		{"2024-02-30", -EINVAL, 0},
		{"2024-01-02T03:04:05.1234567891Z", -EDOM, 0},
		{"2500-01-01", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"now", -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		int64_t ns = 77;

		ck_assert_msg(stoup_text_time(at_end(samples[i].text, strlen(samples[i].text)),
				      &ns) == samples[i].rc,
			"%s", samples[i].text);
		ck_assert_int_eq(ns, samples[i].rc ? 77 : samples[i].ns);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("text");
	TCase *tc = tcase_create("text");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, texts_at_the_edges_of_pages_compare_as_their_bytes);
	tcase_add_test(tc, hashes_of_near_texts_differ);
	tcase_add_test(tc, case_is_that_of_ascii);
	tcase_add_test(tc, views_of_fields_and_strings);
	tcase_add_test(tc, parts_of_texts);
	tcase_add_test(tc, integers);
	tcase_add_test(tc, decimals);
	tcase_add_test(tc, times);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
