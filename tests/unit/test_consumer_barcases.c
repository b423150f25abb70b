/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_barcases.c - bars, case by case: values written out by hand, what is refused, what goes on after an
 * error, and specs as texts. The spans come from bars_feed.h. */
#include <math.h>
#include <stdio.h>
#include "tests/unit/bars_feed.h"

static struct stoup_bars_spec parsed(const char *text)
{
	struct stoup_bars_spec spec = {.struct_len = sizeof(spec)};
	struct stoup_error err = {0};

	ck_assert_msg(stoup_bars_spec_parse(text, &spec, &err) == 0, "%s", err.text);
	return spec;
}

/* Hand out `cnt` records of a schema. */
static struct stoup_cursor *feed_of(
	const char *name, const void *records, uint32_t cnt, int64_t first, int64_t last)
{
	first_key = first;
	last_key = last;
	return feed(stoup_schema_by_name(name), records, cnt, 3);
}

static const struct stoup_tick ticks[] = {
	{.ts = 59, .price = 10, .size = 1},
	{.ts = 60, .price = -7, .size = 2},
	{.ts = 60, .price = 30, .size = 3},
	{.ts = 119, .price = INT64_MAX, .size = 100},
	{.ts = 120, .price = 5, .size = UINT32_MAX},
	{.ts = 400, .price = 6, .size = 4},
};

START_TEST(a_record_at_the_close_belongs_to_the_next_bar)
{
	struct stoup_bars_spec spec = {
		.struct_len = sizeof(spec), .kind = STOUP_BARS_TIME, .step = 60};
	struct stoup_bars *bars = open_bars(feed_of("tick", ticks, 6, 59, 400), &spec);
	struct stoup_bar_record bar;

	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_int_eq(bar.open_ns, 0);
	ck_assert_int_eq(bar.close_ns, 60);
	ck_assert_uint_eq(bar.count, 1);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_int_eq(bar.open_ns, 60);
	ck_assert_int_eq(bar.available_ns, 120);
	ck_assert_int_eq(bar.open, -7);
	ck_assert_int_eq(bar.high, 30);
	ck_assert_int_eq(bar.low, -7);
	ck_assert_int_eq(bar.close, 30);
	ck_assert_uint_eq(bar.volume, 5);
	ck_assert_uint_eq(bar.buy_volume, UINT64_MAX);
	ck_assert_int_eq((int64_t)bar.notional_low, 76);
	ck_assert_int_eq(bar.vwap, 15); /* 15.2 */
	ck_assert_double_eq_tol(stoup_bar_vwap(&bar), 15.2, 1e-12);
	ck_assert_uint_eq(bar.last_ordinal, 1002);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_int_eq(bar.open_ns, 120); /* the size is undefined: 0 */
	ck_assert_uint_eq(bar.volume, 0);
	ck_assert_int_eq(bar.vwap, INT64_MAX);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 0);
	close_bars(bars);
}
END_TEST

START_TEST(a_time_that_is_known_completes_the_last_bar)
{
	struct stoup_bars_spec spec = {.struct_len = sizeof(spec),
		.kind = STOUP_BARS_TIME,
		.flags = STOUP_BARS_FILL | STOUP_BARS_LAST,
		.step = 100,
		.end_ns = 700};
	struct stoup_bars *bars = open_bars(feed_of("tick", ticks, 6, 59, 500), &spec);
	const int64_t opens[] = {0, 100, 200, 300, 400, 500, 600};
	const int filled[] = {0, 0, 1, 1, 1, 1, 1};
	struct stoup_bar_record bar;

	feed_end = 5;
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	for (int i = 1; i < 7; i++) {
		if (i == 2) /* later after all: as of the time that was known */
			feed_end = 6;
		ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
		ck_assert_int_eq(bar.open_ns, opens[i]);
		ck_assert_int_eq(bar.filled, filled[i]);
		ck_assert_int_eq(bar.available_ns, opens[i] + 100);
	}
	ck_assert_int_eq(bar.close, 5);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_int_eq(bar.open_ns, 700);
	ck_assert_uint_eq(bar.partial, 1);
	ck_assert_int_eq(bar.close, 6);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 0);
	close_bars(bars);
}
END_TEST

START_TEST(an_error_loses_nothing)
{
	struct stoup_bars_spec spec = parsed("3t");
	struct stoup_bars *bars;
	struct stoup_bar_record bar = {.count = 99};

	spec.flags = STOUP_BARS_LAST;
	bars = open_bars(feed_of("tick", ticks, 6, 59, 400), &spec);
	feed_error = -ETIMEDOUT;
	ck_assert_int_eq(stoup_bars_next(bars, &bar), -ETIMEDOUT);
	ck_assert_str_eq(stoup_bars_error(bars)->text, "as the test wants");
	ck_assert_uint_eq(bar.count, 99);
	feed_end = 2;
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_uint_eq(bar.partial, 1);
	ck_assert_uint_eq(bar.count, 2);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 0);
	feed_end = 6;
	feed_error = -ENOBUFS;
	ck_assert_int_eq(stoup_bars_next(bars, &bar), -ENOBUFS);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_uint_eq(bar.partial, 0);
	ck_assert_uint_eq(bar.count, 3);
	ck_assert_int_eq(bar.open_ns, 59);
	ck_assert_int_eq(bar.close_ns, 60);
	ck_assert_int_eq(bar.available_ns, 60);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_uint_eq(bar.partial, 1);
	ck_assert_int_eq(bar.available_ns, 400);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 0);
	close_bars(bars);
}
END_TEST

/* 8-byte sizes, for sums that leave 64 bits, and sizes below zero. */
static struct stoup_field wide_fields[] = {
	{.name = "ts",
		.cnt = 1,
		.type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_KEY | STOUP_FIELD_TIME},
	{.name = "price", .off = 8, .cnt = 1, .type = STOUP_TYPE_I64},
	{.name = "amount", .off = 16, .cnt = 1, .type = STOUP_TYPE_I64},
};
static const struct stoup_schema wide_schema = {
	.name = "wide", .stride = 24, .align = 8, .field_cnt = 3, .fields = wide_fields};

struct wide_trade {
	int64_t ts, price, amount;
};

START_TEST(sums_that_leave_their_types_are_refused_for_good)
{
	const struct wide_trade trades[] = {
		{1, INT64_MAX, INT64_MAX}, {2, INT64_MIN, INT64_MAX}, {3, INT64_MIN, 2}, {4, 1, 1}};
	const struct wide_trade steep[] = {
		{1, INT64_MIN, INT64_MAX}, {2, INT64_MIN, INT64_MAX}, {3, INT64_MIN, 3}};
	struct stoup_bars_spec spec = parsed("10t");
	struct stoup_bar_record bar;
	struct stoup_bars *bars;

	feed_of("tick", trades, 4, 1, 4);
	cursor.schema = feed_schema = &wide_schema;
	bars = open_bars(&cursor, &spec);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(stoup_bars_next(bars, &bar), -EOVERFLOW);
		ck_assert_ptr_nonnull(strstr(stoup_bars_error(bars)->text, "above 64 bits"));
	}
	close_bars(bars);

	spec.step = 1; /* each for itself fits */
	feed_at = 0;
	bars = open_bars(&cursor, &spec);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
		ck_assert_int_eq(bar.vwap, trades[i].price);
		ck_assert_uint_eq(bar.volume, (uint64_t)trades[i].amount);
	}
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 0);
	close_bars(bars);

	spec.step = 2; /* the volume fits 64 bits, the notional just so */
	feed_of("tick", steep, 3, 1, 3);
	cursor.schema = feed_schema = &wide_schema;
	bars = open_bars(&cursor, &spec);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_int_eq(bar.vwap, INT64_MIN);
	ck_assert_int_eq(bar.notional_high, INT64_MIN + 1);
	close_bars(bars);
}
END_TEST

START_TEST(a_size_below_zero_is_told_and_left_out)
{
	const struct wide_trade trades[] = {{1, 5, 1}, {2, 6, -1}, {3, 7, 3}, {4, 8, -2}};
	struct stoup_bars_spec spec = parsed("1t");
	struct stoup_bar_record bar;
	struct stoup_bars *bars;

	feed_of("tick", trades, 4, 1, 4);
	cursor.schema = feed_schema = &wide_schema;
	bars = open_bars(&cursor, &spec);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(stoup_bars_error(bars)->text, "record 1001 "));
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_int_eq(bar.close, 7);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), -EBADMSG);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 0);
	close_bars(bars);
}
END_TEST

static const struct stoup_event64 floats[] = {
	{.ev = 0x60000002, .local_ts = 10, .px = 1.5, .qty = 2},
	{.ev = 0x40000001, .local_ts = 11, .px = 99, .qty = 2}, /* depth */
	{.ev = 0x90000002, .local_ts = 12, .px = 98, .qty = 2}, /* not seen by the local side */
	{.ev = 0xd0000002, .local_ts = 13, .px = -0.5, .qty = 1},
	{.ev = 0x40000002, .local_ts = 14, .px = NAN, .qty = 1},
	{.ev = 0x40000002, .local_ts = 20, .px = 2, .qty = 0.25},
};

START_TEST(floats_are_added_as_doubles)
{
	struct stoup_bars_spec spec = {.struct_len = sizeof(spec),
		.kind = STOUP_BARS_TIME,
		.step = 10,
		.flags = STOUP_BARS_LAST};
	struct stoup_bars *bars = open_bars(feed_of("event64", floats, 6, 10, 20), &spec);
	struct stoup_bar_record_f64 bar;
	struct stoup_bar_record ints;
	struct stoup_error err;

	ck_assert_int_eq(stoup_bars_next(bars, &ints), -EDOM);
	ck_assert_ptr_nonnull(strstr(stoup_bars_error(bars)->text, "stoup_bars_next_f64"));
	ck_assert_int_eq(stoup_bars_next_f64(bars, &bar), 1);
	ck_assert(bar.open == 1.5 && bar.high == 1.5 && bar.low == -0.5 && bar.close == -0.5);
	ck_assert(bar.volume == 3 && bar.buy_volume == 2 && bar.sell_volume == 1);
	ck_assert(bar.notional == 2.5 && bar.vwap == 2.5 / 3);
	ck_assert_uint_eq(bar.count, 2);
	ck_assert_int_eq(stoup_schema_valid(stoup_bars_schema(bars), &err), 0);
	ck_assert_str_eq(stoup_bars_schema(bars)->name, "trade-bar-f64");
	ck_assert_int_eq(stoup_bars_next_f64(bars, &bar), 1);
	ck_assert(bar.partial && bar.volume == 0.25 && bar.sell_volume == 0);
	ck_assert_int_eq(stoup_bars_next_f64(bars, &bar), 0);
	close_bars(bars);
	spec = parsed("3v");
	bars = open_bars(feed_of("event64", floats, 6, 10, 20), &spec);
	ck_assert_int_eq(stoup_bars_next_f64(bars, &bar), 1);
	ck_assert(bar.volume == 3 && bar.close_ns == 13);
	ck_assert_int_eq(stoup_bars_next_f64(bars, &bar), 0);
	close_bars(bars);
}
END_TEST

START_TEST(integers_come_as_doubles_of_their_scale)
{
	struct stoup_bars_spec spec = {
		.struct_len = sizeof(spec), .kind = STOUP_BARS_TIME, .step = 60};
	struct stoup_bars *bars = open_bars(feed_of("tick", ticks, 6, 59, 400), &spec);
	struct stoup_bar_record_f64 bar;

	ck_assert_int_eq(stoup_bars_next_f64(bars, &bar), 1);
	ck_assert_int_eq(stoup_bars_next_f64(bars, &bar), 1);
	ck_assert(bar.open == -7e-9 && bar.high == 30e-9 && bar.volume == 5);
	ck_assert(isnan(bar.buy_volume) && isnan(bar.sell_volume));
	ck_assert_double_eq_tol(bar.notional, 76e-9, 1e-20);
	close_bars(bars);
}
END_TEST

START_TEST(a_span_of_a_bar_has_the_schema_of_bars)
{
	struct stoup_bars_spec spec = {
		.struct_len = sizeof(spec), .kind = STOUP_BARS_TIME, .step = 60};
	struct stoup_bars *bars = open_bars(feed_of("tick", ticks, 6, 59, 400), &spec);
	const struct stoup_schema *of = stoup_bars_schema(bars);
	const struct stoup_bar_record *bar;
	struct stoup_lease lease;
	struct stoup_span span;
	struct stoup_error err;

	ck_assert_int_eq(stoup_bars_next_span(bars, &span), 1);
	ck_assert_int_eq(stoup_bars_next_span(bars, &span), 1);
	bar = span.base;
	ck_assert_int_eq(bar->high, 30);
	ck_assert_uint_eq(span.ordinal, 1);
	ck_assert_int_eq(span.first_key, 60);
	ck_assert_ptr_eq(span.schema, of);
	ck_assert_uint_eq(of->stride, sizeof(*bar));
	ck_assert_int_eq(stoup_schema_valid(of, &err), 0);
	ck_assert_uint_eq(of->flags, STOUP_SCHEMA_BAR);
	ck_assert_uint_eq(of->interval_ns, 60);
	ck_assert_uint_eq(of->key_off, offsetof(struct stoup_bar_record, open_ns));
	ck_assert_int_eq(stoup_schema_field(of, "high")->exp10, -9);
	ck_assert_uint_eq(
		stoup_schema_field(of, "vwap")->off, offsetof(struct stoup_bar_record, vwap));
	ck_assert_int_eq(stoup_hold(&span, &lease), -EINVAL);
	close_bars(bars);
	spec = parsed("2t");
	bars = open_bars(feed_of("tick", ticks, 6, 59, 400), &spec);
	of = stoup_bars_schema(bars);
	ck_assert_uint_eq(of->flags, 0);
	ck_assert_uint_eq(of->key_off, offsetof(struct stoup_bar_record, close_ns));
	ck_assert_int_eq(stoup_schema_valid(of, &err), 0);
	close_bars(bars);
}
END_TEST

/* ---- specs ------------------------------------------------------------------------------------- */

static void refused(struct stoup_cursor *cur, const struct stoup_bars_spec *spec, const char *part)
{
	struct stoup_bars *bars = NULL;
	struct stoup_error err = {0};

	ck_assert_int_eq(stoup_bars_open(cur, spec, &bars, &err), -EINVAL);
	ck_assert_msg(strstr(err.text, part) != NULL, "'%s' is not in: %s", part, err.text);
	ck_assert_int_eq(err.code, -EINVAL);
	ck_assert_ptr_null(bars);
}

START_TEST(texts_of_specs)
{
	static const struct {
		const char *text;
		uint32_t kind;
		uint64_t step;
		int32_t exp10;
	} good[] = {
		{"1m", STOUP_BARS_TIME, UINT64_C(60000000000), 0},
		{"90s", STOUP_BARS_TIME, UINT64_C(90000000000), 0},
		{"1ns", STOUP_BARS_TIME, 1, 0},
		{"10us", STOUP_BARS_TIME, 10000, 0},
		{"500ms", STOUP_BARS_TIME, 500000000, 0},
		{"1d", STOUP_BARS_TIME, UINT64_C(86400000000000), 0},
		{"2h", STOUP_BARS_TIME, UINT64_C(7200000000000), 0},
		{"1w", STOUP_BARS_TIME, UINT64_C(604800000000000), 0},
		{"9223372036854775807ns", STOUP_BARS_TIME, INT64_MAX, 0},
		{"100t", STOUP_BARS_TICK, 100, 0},
		{"5000v", STOUP_BARS_VOLUME, 5000, 0},
		{"0.250v", STOUP_BARS_VOLUME, 250, -3},
		{"1000000n", STOUP_BARS_NOTIONAL, 1000000, 0},
		{"18446744073709551615v", STOUP_BARS_VOLUME, UINT64_MAX, 0},
	};
	static const char *const bad[] = {"", "m", "1", "1M", "1mo", "0m", "0.0v", "1.5m", "1.5t",
		"1.2.3v", "-1m", "1 m", "1min", ".v", "9223372036854775808ns", "200000w",
		"18446744073709551616v", "0.0000000000000000001v", "1e3t", "+1m", "1m+1h", "1h+1h",
		"1h+", "+", "1h+5t", "100t+1m", "1h+30m+5s", "1h+-1m"};
	struct stoup_bars_spec spec = {.struct_len = sizeof(spec)}, before;
	struct stoup_error err;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		spec = parsed(good[i].text);
		ck_assert_uint_eq(spec.kind, good[i].kind);
		ck_assert_uint_eq(spec.step, good[i].step);
		ck_assert_int_eq(spec.step_exp10, good[i].exp10);
	}
	spec = parsed("1d+13h");
	ck_assert_uint_eq(spec.step, UINT64_C(86400000000000));
	ck_assert_int_eq(spec.offset_ns, INT64_C(46800000000000));
	spec.flags = STOUP_BARS_LAST;
	before = spec;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(stoup_bars_spec_parse(bad[i], &spec, &err) == -EINVAL, "%s", bad[i]);
		ck_assert_ptr_nonnull(strstr(err.text, "100t trades"));
		ck_assert_int_eq(memcmp(&spec, &before, sizeof(spec)), 0);
	}
	ck_assert_int_eq(stoup_bars_spec_parse("0.0000000000000000001v", &spec, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "it has more than 18 decimals"));
	ck_assert_int_eq(stoup_bars_spec_parse("1m", NULL, &err), -EINVAL);
	ck_assert_int_eq(stoup_bars_spec_parse(NULL, &spec, &err), -EINVAL);
	spec.struct_len = 8;
	ck_assert_int_eq(stoup_bars_spec_parse("1m", &spec, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "struct_len is 8"));
}
END_TEST

START_TEST(what_does_not_fit_is_refused_with_a_reason)
{
	static const struct stoup_field quote_fields[] = {
		{.name = "ts",
			.cnt = 1,
			.type = STOUP_TYPE_U64,
			.flags = STOUP_FIELD_KEY | STOUP_FIELD_TIME},
		{.name = "bid", .off = 8, .cnt = 1, .type = STOUP_TYPE_U64},
		{.name = "venue", .off = 16, .cnt = 8, .type = STOUP_TYPE_CHAR},
		{.name = "px", .off = 24, .cnt = 1, .type = STOUP_TYPE_I64, .exp10 = -2},
	};
	static const struct stoup_schema quote = {
		.name = "quote", .stride = 32, .align = 8, .field_cnt = 4, .fields = quote_fields};
	struct stoup_bars_spec spec = parsed("1m");
	struct stoup_cursor *cur = feed_of("tick", ticks, 6, 59, 400);
	const char long_name[] = "a_name_that_no_field_can_have_of_37_by";
	struct stoup_bars *bars;

	cur->step = -1;
	refused(cur, &spec, "STOUP_BACKWARD");
	refused(NULL, &spec, "a cursor");
	cur->step = 1;
	refused(cur, NULL, "no spec");
	cur->schema = stoup_schema_by_name("json");
	refused(cur, &spec, "messages");
	cur->schema = stoup_schema_by_name("ohlcv-1m");
	refused(cur, &spec, "one of bars");
	cur->schema = stoup_schema_by_name("statistics");
	refused(cur, &spec, "not known to be trades");
	cur->schema = &quote;
	bars = open_bars(cur, &spec); /* px */
	close_bars(bars);
	spec.price = "bid";
	refused(cur, &spec, "is a u64");
	spec.price = "venue";
	refused(cur, &spec, "no number");
	spec.price = "ts";
	refused(cur, &spec, "no number");
	spec.price = "nowhere";
	refused(cur, &spec, "no field 'nowhere' for the price");
	spec.price = "";
	refused(cur, &spec, "need a price");
	spec.price = long_name;
	refused(cur, &spec, "at most 35 bytes");
	spec.price = "px";
	spec.side = "bid";
	refused(cur, &spec, "tells sides");
	spec.side = NULL;
	spec.action = "venue";
	refused(cur, &spec, "belong together");
	spec.action_values = "ABCDE";
	refused(cur, &spec, "at most 4");
	spec.action = "bid";
	spec.action_values = "A";
	refused(cur, &spec, "of one byte");
	spec = parsed("5v");
	refused(cur, &spec, "need a size");
	spec = parsed("0.001n");
	spec.size = "bid";
	refused(cur, &spec, "finer than the records, which count 10^-2");
	spec.step = UINT64_MAX;
	spec.step_exp10 = 18;
	cur->schema = stoup_schema_by_name("tick");
	spec.size = NULL;
	refused(cur, &spec, "126 bits");
	spec = parsed("1t");
	spec.flags = STOUP_BARS_FILL;
	refused(cur, &spec, "bars by time");
	spec.flags = 8;
	refused(cur, &spec, "flags 0x8");
	spec.flags = 0;
	spec.step = 0;
	refused(cur, &spec, "spec.step 0");
	spec.kind = 9;
	refused(cur, &spec, "kind 9");
	ck_assert_ptr_null(stoup_bars_schema(NULL));
	ck_assert_int_eq(stoup_bars_error(NULL)->code, -EINVAL);
	stoup_bars_close(NULL);
}
END_TEST

/* A merge has no schema of its own: the spans tell. */
START_TEST(a_merge_is_of_one_scale)
{
	struct stoup_bars_spec spec = parsed("2t");
	struct stoup_bars *bars;
	struct stoup_bar_record bar;
	const struct stoup_itch_trade others[5] = {0};
	struct stoup_cursor *cur = feed_of("tick", ticks, 3, 59, 400);

	cur->schema = NULL;
	bars = open_bars(cur, &spec);
	ck_assert_ptr_null(stoup_bars_schema(bars));
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_ptr_nonnull(stoup_bars_schema(bars));
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 0);
	feed_schema = stoup_schema_by_name("itch-trade");
	feed_records = (const uint8_t *)others;
	feed_end = 5;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(stoup_bars_next(bars, &bar), -EINVAL);
		ck_assert_ptr_nonnull(strstr(stoup_bars_error(bars)->text, "would mix units"));
	}
	close_bars(bars);

	cur = feed_of("event64", floats, 6, 10, 20);
	cur->schema = NULL;
	bars = open_bars(cur, &spec);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), -EDOM);
	close_bars(bars);
}
END_TEST

START_TEST(fields_of_the_callers_choice)
{
	struct stoup_mbp1 quotes[3] = {0};
	struct stoup_bars_spec spec = {.struct_len = sizeof(spec),
		.kind = STOUP_BARS_TICK,
		.step = 3,
		.price = "bid_px_00",
		.size = "",
		.side = "",
		.action = ""};
	struct stoup_bars *bars;
	struct stoup_bar_record bar;

	for (int i = 0; i < 3; i++) {
		quotes[i].ts_recv = 10 + (uint64_t)i;
		quotes[i].levels[0].bid_px = 5 - i;
		quotes[i].action = "AMT"[i];
		quotes[i].size = 7;
		quotes[i].side = 'B';
	}
	bars = open_bars(feed_of("mbp-1", quotes, 3, 10, 12), &spec);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_int_eq(bar.open, 5);
	ck_assert_int_eq(bar.close, 3);
	ck_assert_uint_eq(bar.volume, 0);
	ck_assert_uint_eq(bar.buy_volume, UINT64_MAX);
	close_bars(bars);
	spec.action = "action";
	spec.action_values = "AM";
	spec.size = NULL;
	spec.step = 2;
	spec.side = NULL;
	bars = open_bars(feed_of("mbp-1", quotes, 3, 10, 12), &spec);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 1);
	ck_assert_int_eq(bar.close, 4);
	ck_assert_uint_eq(bar.buy_volume, 14);
	ck_assert_uint_eq(bar.sell_volume, 0);
	ck_assert_int_eq(stoup_bars_next(bars, &bar), 0);
	close_bars(bars);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bars_cases");
	TCase *tc = tcase_create("cases");

	tcase_add_test(tc, a_record_at_the_close_belongs_to_the_next_bar);
	tcase_add_test(tc, a_time_that_is_known_completes_the_last_bar);
	tcase_add_test(tc, an_error_loses_nothing);
	tcase_add_test(tc, sums_that_leave_their_types_are_refused_for_good);
	tcase_add_test(tc, a_size_below_zero_is_told_and_left_out);
	tcase_add_test(tc, floats_are_added_as_doubles);
	tcase_add_test(tc, integers_come_as_doubles_of_their_scale);
	tcase_add_test(tc, a_span_of_a_bar_has_the_schema_of_bars);
	tcase_add_test(tc, texts_of_specs);
	tcase_add_test(tc, what_does_not_fit_is_refused_with_a_reason);
	tcase_add_test(tc, a_merge_is_of_one_scale);
	tcase_add_test(tc, fields_of_the_callers_choice);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
