/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_filter.c - values and filters over records that lie in memory: examples by hand, and random filters over
 * random records against filter_model.h. */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include "tests/unit/filter_model.h"

#define RECORD_CNT 2600u /* more than two chunks and a half */

static uint8_t records[RECORD_CNT * MODEL_STRIDE + 1];

static struct stoup_span span_of(
	const struct stoup_schema *schema, const uint8_t *base, uint64_t cnt)
{
	return (struct stoup_span){
		.base = base, .record_cnt = cnt, .stride = MODEL_STRIDE, .schema = schema};
}

static const struct stoup_field *field_of(const char *name)
{
	const struct stoup_schema schema = model_schema();
	const struct stoup_field *field = stoup_schema_field(&schema, name);

	ck_assert_ptr_nonnull(field);
	return field;
}

static void put(uint8_t *record, const char *name, uint64_t bits)
{
	const struct stoup_field *field = field_of(name);

	memcpy(record + field->off, &bits, stoup_type_len(field->type));
}

/* Does one record match? */
static int ask(const char *text, const uint8_t *record)
{
	struct stoup_schema schema = model_schema();
	struct stoup_span span = span_of(&schema, record, 1);
	struct stoup_filter *filter = NULL;
	struct stoup_error err = {0};
	uint32_t idx = 7;
	int64_t cnt;

	ck_assert_msg(
		stoup_filter_create(&schema, text, &filter, &err) == 0, "%s: %s", text, err.text);
	cnt = stoup_filter_span(filter, &span, 0, &idx, 1);
	ck_assert_int_eq(cnt, stoup_filter_match(filter, record));
	ck_assert_uint_eq(idx, cnt ? 0 : 7);
	stoup_filter_destroy(filter);
	return (int)cnt;
}

START_TEST(decimals_are_compared_exactly_with_scaled_integers)
{
	uint8_t record[MODEL_STRIDE] = {0};

	put(record, "price", 123456789);
	ck_assert(ask("price = 0.123456789", record));
	ck_assert(!ask("price > 0.1234567890", record));
	ck_assert(!ask("price = 0.1234567891", record));
	ck_assert(ask("price != 0.1234567891", record));
	ck_assert(ask("price < 0.1234567891", record));
	ck_assert(ask("price <= 0.1234567891", record));
	ck_assert(!ask("price >= 0.1234567891", record));
	ck_assert(ask("price > 0.1234567889999999999999999999999999999999", record));
	ck_assert(ask("price between 123.456788e-3 and 1234567890e-10", record));
	put(record, "price", (uint64_t)-123456789);
	ck_assert(ask("price > -0.1234567891", record));
	ck_assert(ask("price < -0.1234567889", record));
	ck_assert(ask("price > -1e400 and price < 1e400", record));
	put(record, "u64", UINT64_MAX - 1);
	ck_assert(ask("u64 > 9223372036854775807 and u64 = 18446744073709551614", record));
	ck_assert(ask("u64 < 18446744073709551614.5 and u64 > -1", record));
	ck_assert(!ask("u64 = -2", record));
	put(record, "i16", 5); /* of 10^3 */
	ck_assert(ask("i16 = 5000 and i16 < 5000.1 and i16 > 4999 and i16 != 5001", record));
}
END_TEST

START_TEST(undefined_values_are_found_by_is_null_alone)
{
	static const char *const none[] = {"price = 1", "price != 1", "price < 1", "price >= 1",
		"not price = 1", "not (price < 1 or price >= 1)", "price in (1)",
		"price not in (1)", "price between -1e30 and 1e30", "not price between 1 and 2",
		"price is not null", "not price is null"};
	uint8_t record[MODEL_STRIDE] = {0};

	put(record, "price", INT64_MAX);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_msg(!ask(none[i], record), "%s", none[i]);
	ck_assert(ask("price is null", record));
	ck_assert(ask("price is NULL and u8 is not null and not u8 is null", record));
	ck_assert(ask("price = 1 or u8 = 0", record)); /* unknown or true */
	put(record, "f32", 0xffc00001u);
	ck_assert(ask("f32 is null and not f32 is not null", record));
	ck_assert(!ask("f32 != 1 or f32 = 1 or f32 <= inf or f32 >= -inf", record));
	put(record, "f32", 0x7f800000u);
	ck_assert(ask("f32 = inf and f32 >= 1e99 and f32 > 3.4e38", record));
	ck_assert(!ask("f32 > inf or f32 is null", record));
}
END_TEST

START_TEST(floats_are_compared_as_their_own_type_has_the_value)
{
	uint8_t record[MODEL_STRIDE] = {0};
	const float tenth = 0.1f;
	const double tenth_wide = 0.1, minus_zero = -0.0;
	uint64_t bits = 0;

	memcpy(&bits, &tenth, 4);
	put(record, "f32", bits);
	memcpy(&bits, &tenth_wide, 8);
	put(record, "f64", bits);
	ck_assert(ask("f32 = 0.1 and f64 = 0.1 and not f32 > 0.1 and not f64 < 0.1", record));
	memcpy(&bits, &minus_zero, 8);
	put(record, "f64", bits);
	ck_assert(
		ask("f64 = 0 and f64 >= 0 and f64 <= -0 and not f64 < 0 and not f64 > -0", record));
	put(record, "f64", 1); /* the least there is */
	ck_assert(ask("f64 > 0 and f64 < 1e-320", record));
	/* By way of a double this would become 1 + 2^-23: it lies just below the middle. */
	put(record, "f32", 0x3f800000u);
	ck_assert(ask("f32 = 1.00000005960464477538", record));
}
END_TEST

START_TEST(texts_and_times)
{
	uint8_t record[MODEL_STRIDE] = {0};

	put(record, "side", 'B');
	memcpy(record + field_of("sym.bol[0]")->off, "AB\0zz", 5);
	ck_assert(ask("side = 'B' and side == B and side = \"B\" and side < 'Bx' and side > 'A'",
		record));
	ck_assert(!ask("side = 'Bx' or side = '' or side >= 'Bx'", record));
	ck_assert(ask(
		"sym.bol[0] = 'AB' and sym.bol[0] < ABA and sym.bol[0] > A and sym.bol[0] != 'ABzzzzzzz'",
		record));
	ck_assert(ask("sym.bol[0] in ('X', 'AB') and sym.bol[0] not between 'AC' and 'B'", record));
	put(record, "side", '\'');
	ck_assert(ask("side = '''' and side = '\\'' and side = \"'\"", record));
	put(record, "ts_event", UINT64_C(1700000000000000000));
	ck_assert(ask(
		"ts_event = 2023-11-14T22:13:20Z and ts_event < '2023-11-14 22:13:20.000000001' and ts_event > "
		"2023-11-14 and ts_event = 1700000000",
		record));
	put(record, "ts_event", UINT64_MAX - 1);
	ck_assert(ask("ts_event > 2262-04-11 and ts_event > 1960-01-01", record));
}
END_TEST

/* Refused, with that in the text. */
static void refused(const char *text, const char *expected)
{
	struct stoup_schema schema = model_schema();
	struct stoup_filter *filter = (void *)&schema;
	struct stoup_error err = {0};

	ck_assert_msg(stoup_filter_create(&schema, text, &filter, &err) == -EINVAL, "%s", text);
	ck_assert_int_eq(err.code, -EINVAL);
	ck_assert_msg(strstr(err.text, expected) != NULL, "%s: %s", text, err.text);
	ck_assert_ptr_eq(filter, &schema);
}

START_TEST(errors_say_what_is_wrong_in_which_column)
{
	char text[20000];

	refused("", "column 1: the filter ends");
	refused("price", "column 6: one of =");
	refused("price >", "column 8: a value is missing");
	refused("u8 = 1 and pric > 1", "column 12: schema model has no field 'pric'; near: price");
	refused("xyz = 1", "no field 'xyz'; it has key, u8, i8");
	refused("spare = 1", "no field 'spare'");
	refused("opaque = 1", "column 10: opaque holds opaque bytes");
	refused("price > abc", "column 9: price is a number: 'abc'");
	refused("price > 0x10", "is a number");
	refused("f64 > nan", "column 7: f64 is a number: 'nan'");
	refused("delta > 1s", "delta is a duration in nanoseconds: '1s'");
	refused("ts_event > 2023-13-01", "column 12: ts_event is a time: '2023-13-01'");
	refused("side = 'B", "column 8: the quote has no end");
	refused("(u8 = 1", "column 8: a closing parenthesis");
	refused("u8 = 1)", "column 7: `and` or `or` is missing");
	refused("u8 = 1 u8 = 2", "column 8: `and` or `or` is missing");
	refused("u8 in 1", "column 7: `in` wants");
	refused("u8 in (1 2)", "column 10: a comma");
	refused("u8 between 1 or 2", "column 14: `between` wants");
	refused("u8 is nil", "column 7: `is` wants");
	memset(text, '(', sizeof(text));
	text[200] = 0;
	refused(text, "column 65: more than 64 parentheses");
	strcpy(text, "u8 = 1");
	for (int i = 0; i < 520; i++)
		strcat(text, " or u8 = 2");
	refused(text, "more than 512 comparisons");
	memset(text, ' ', sizeof(text));
	text[sizeof(text) - 1] = 0;
	refused(text, "longer than 16383 bytes");
	for (int i = 0; i < 16383; i++)
		text[i] = i % 2 ? '(' : ' ';
	text[16383] = 0;
	refused(text, "more than 64");
}
END_TEST

START_TEST(messages_and_other_spans_are_refused)
{
	const struct stoup_schema *json = stoup_schema_by_name("json"),
				  *mbo = stoup_schema_by_name("mbo");
	struct stoup_schema schema = model_schema();
	struct stoup_filter *filter = NULL;
	struct stoup_span span = span_of(mbo, records, 1);
	struct stoup_error err;
	uint32_t idx[1];

	ck_assert_int_eq(stoup_filter_create(json, "key = 1", &filter, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "stoup_doc_filter_create"));
	ck_assert_int_eq(stoup_filter_create(NULL, "key = 1", &filter, &err), -EINVAL);
	ck_assert_int_eq(stoup_filter_create(&schema, "u8 = 1", &filter, &err), 0);
	ck_assert_int_eq(stoup_filter_span(filter, &span, 0, idx, 1), -EINVAL);
	span = span_of(&schema, records, (UINT64_C(1) << 32) + 1);
	ck_assert_int_eq(stoup_filter_span(filter, &span, 0, idx, 1), -EFBIG);
	span = span_of(&schema, records, 1);
	ck_assert_int_eq(stoup_filter_span(filter, &span, 1, idx, 1), 0);
	ck_assert_int_eq(stoup_filter_span(filter, &span, 0, idx, 0), 0);
	stoup_filter_destroy(filter);
	stoup_filter_destroy(NULL);
}
END_TEST

/* One random filter over records [first, cnt): in pieces of `cap`, as a caller would ask. */
static void try_filter(const struct stoup_schema *schema, const uint8_t *base, uint64_t cnt,
	uint32_t cap, const struct model_node *node, const char *text)
{
	struct stoup_span span = span_of(schema, base, cnt);
	struct stoup_filter *filter = NULL;
	struct stoup_error err = {0};
	uint32_t *idx = malloc(((size_t)cap + 1) * sizeof(*idx));
	uint64_t from = 0;

	ck_assert_ptr_nonnull(idx);
	ck_assert_msg(
		stoup_filter_create(schema, text, &filter, &err) == 0, "%s: %s", text, err.text);
	while (from < cnt) {
		uint64_t next;
		int64_t got;

		idx[cap] = 77;
		got = stoup_filter_span(filter, &span, from, idx, cap);
		ck_assert_int_ge(got, 0);
		ck_assert_int_le(got, cap);
		ck_assert_uint_eq(idx[cap], 77);
		next = got == cap ? idx[cap - 1] + UINT64_C(1) : cnt;
		for (int64_t i = 0; from < next; from++) {
			int is_in = i < got && idx[i] == from;

			ck_assert_msg((model_truth(node, base + from * MODEL_STRIDE) == 1) == is_in,
				"record %" PRIu64 " of %" PRIu64 ": %s", from, cnt, text);
			i += is_in;
		}
	}
	stoup_filter_destroy(filter);
	free(idx);
}

START_TEST(random_filters_find_what_a_slow_reference_finds)
{
	struct stoup_schema schema = model_schema();
	struct model_text text;

	for (uint32_t i = 0; i < RECORD_CNT; i++)
		model_record(records + 1 + i * MODEL_STRIDE);
	for (uint32_t i = 0; i < 12000; i++) {
		uint32_t cnt = i % 100 == 0 ? RECORD_CNT : 1 + model_below(90);
		uint32_t first = model_below(RECORD_CNT - cnt + 1),
			 cap = 1 + model_below(i % 3 ? 200 : 8);
		struct model_node *node;

		text.len = 0;
		node = model_filter(&text, model_below(4));
		try_filter(&schema, records + 1 + first * MODEL_STRIDE, cnt, cap, node, text.at);
		model_free(node);
	}
}
END_TEST

START_TEST(values_are_read_whatever_their_place_and_type)
{
	uint8_t record[MODEL_STRIDE] = {0};
	struct stoup_value value;
	char text[64];

	put(record, "price", (uint64_t)-1500000000);
	stoup_value_at(field_of("price"), record, &value);
	ck_assert(value.kind == STOUP_VALUE_INT && value.i64 == -1500000000 && value.exp10 == -9);
	ck_assert_int_eq(stoup_value_text(field_of("price"), record, text, sizeof(text)), 4);
	ck_assert_str_eq(text, "-1.5");
	put(record, "i8", 0x80);
	stoup_value_at(field_of("i8"), record, &value);
	ck_assert(value.kind == STOUP_VALUE_NULL && value.i64 == 0);
	put(record, "i8", 0xff);
	stoup_value_at(field_of("i8"), record, &value);
	ck_assert(value.kind == STOUP_VALUE_INT && value.i64 == -1);
	put(record, "i32", 0x80000000u);
	stoup_value_at(field_of("i32"), record, &value);
	ck_assert(value.kind == STOUP_VALUE_INT && value.i64 == INT32_MIN);
	put(record, "u64", UINT64_MAX - 1);
	stoup_value_at(field_of("u64"), record, &value);
	ck_assert(value.kind == STOUP_VALUE_UINT && value.u64 == UINT64_MAX - 1);
	put(record, "f32", 0x3fc00000u);
	stoup_value_at(field_of("f32"), record, &value);
	ck_assert(value.kind == STOUP_VALUE_FLOAT && !(value.f64 < 1.5) && !(value.f64 > 1.5));
	put(record, "f32", 0x7fc00001u);
	stoup_value_at(field_of("f32"), record, &value);
	ck_assert_uint_eq(value.kind, STOUP_VALUE_NULL);
	memcpy(record + field_of("sym.bol[0]")->off, "AB\0zz", 5);
	stoup_value_at(field_of("sym.bol[0]"), record, &value);
	ck_assert(value.kind == STOUP_VALUE_TEXT && value.text_len == 2 &&
		  memcmp(value.text, "AB", 2) == 0);
	stoup_value_at(field_of("opaque"), record, &value);
	ck_assert(value.kind == STOUP_VALUE_BYTES && value.text_len == 4);
	put(record, "ts_event", UINT64_C(1700000000000000001));
	stoup_value_at(field_of("ts_event"), record, &value);
	ck_assert(value.kind == STOUP_VALUE_UINT && (value.flags & STOUP_FIELD_TIME));
	ck_assert_int_eq(stoup_value_text(field_of("ts_event"), record, text, sizeof(text)), 30);
	ck_assert_str_eq(text, "2023-11-14T22:13:20.000000001Z");
	ck_assert_int_eq(stoup_value_text(field_of("price"), record, text, 3), -ENOSPC);
	ck_assert_uint_ge(stoup_value_text_cap(field_of("price")), 48);
	ck_assert_uint_eq(stoup_value_text_cap(stoup_schema_field(
				  stoup_schema_by_name("definition"), "raw_symbol")),
		4 * 71 + 1);
}
END_TEST

START_TEST(fields_are_walked_without_those_that_are_hidden)
{
	struct stoup_schema schema = model_schema();
	const struct stoup_field *field = NULL;
	uint32_t cnt = 0;

	while ((field = stoup_field_next(&schema, field)) != NULL) {
		ck_assert_str_ne(field->name, "spare");
		cnt++;
	}
	ck_assert_uint_eq(cnt, MODEL_FIELD_CNT - 1);
	ck_assert_ptr_null(stoup_field_next(stoup_schema_by_name("json"), NULL));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("filter");
	TCase *tcase = tcase_create("filter");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, decimals_are_compared_exactly_with_scaled_integers);
	tcase_add_test(tcase, undefined_values_are_found_by_is_null_alone);
	tcase_add_test(tcase, floats_are_compared_as_their_own_type_has_the_value);
	tcase_add_test(tcase, texts_and_times);
	tcase_add_test(tcase, errors_say_what_is_wrong_in_which_column);
	tcase_add_test(tcase, messages_and_other_spans_are_refused);
	tcase_add_test(tcase, random_filters_find_what_a_slow_reference_finds);
	tcase_add_test(tcase, values_are_read_whatever_their_place_and_type);
	tcase_add_test(tcase, fields_are_walked_without_those_that_are_hidden);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
