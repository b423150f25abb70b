/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_scan.c - series, ranges, spans and read-ahead of libstoup against a small
 * conductor.
 *
 *      volume 0 (ingested second)          volume 1 (ingested first)
 *      A/x  [40 50][60 60]                 A/x  [10 20][20 20 30]   B/y  [15]
 *
 * Expected keys, values and ordinals are written out by hand. */
#include "tests/unit/test_consumer_fake.h"

static const struct fake_series late[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 2, {40, 50}}, {1, 2, {60, 60}}}},
};

static const struct fake_series early[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 2, {10, 20}}, {1, 3, {20, 20, 30}}}},
	{.name = "B/y", .schema = "pair", .segment_cnt = 1, .segments = {{1, 1, {15}}}},
};

static struct fake fake;

static void two_volumes(void)
{
	fake_init(&fake);
	fake_volume(&fake, 2, 0, 2, late, 1);
	fake_volume(&fake, 1, 0, 2, early, 2);
	fake_start(&fake, "p");
}

static const struct stoup_options no_ahead = {.struct_len = sizeof(struct stoup_options),
	.ahead_cnt = UINT32_MAX,
	.timeout_ns = 60000000000};

/* Read everything: values into `dst`; checks ordinals against their place beyond `ordinal`. */
static uint32_t drain(struct stoup_cursor *cur, uint64_t ordinal, uint64_t *dst, uint32_t cap)
{
	struct stoup_span span;
	uint32_t cnt = 0;
	int rc;

	while ((rc = stoup_next(cur, &span)) > 0) {
		const struct pair *pairs = span.base;

		ck_assert_uint_ge(span.record_cnt, 1);
		ck_assert_uint_eq(span.ordinal, ordinal + cnt);
		ck_assert_uint_eq(span.stride, 16);
		for (uint64_t i = 0; i < span.record_cnt; i++) {
			ck_assert_uint_lt(cnt, cap);
			dst[cnt++] = pairs[i].value;
		}
	}
	ck_assert_msg(rc == 0, "%d: %s", rc, stoup_cursor_error(cur)->text);
	return cnt;
}

static void expect(int64_t from, int64_t to, uint64_t ordinal, const uint64_t *values, uint32_t cnt)
{
	struct stoup *st = fake_attach("p", &no_ahead);
	struct stoup_cursor *cur = fake_scan(st, "A/x", from, to);
	uint64_t got[32];

	ck_assert_uint_eq(drain(cur, ordinal, got, 32), cnt);
	for (uint32_t i = 0; i < cnt; i++)
		ck_assert_uint_eq(got[i], values[i]);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
}

START_TEST(a_scan_yields_every_record_once_in_key_order_over_all_volumes)
{
	const uint64_t values[] = {1000000, 1000001, 1000002, 1000003, 1000004, 0, 1, 2, 3};

	two_volumes();
	expect(0, 0, 0, values, 9);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_range_holds_ties_at_its_begin_and_leaves_out_ties_at_its_end)
{
	const uint64_t from_20[] = {1000001, 1000002, 1000003, 1000004, 0, 1, 2, 3};
	const uint64_t to_20[] = {1000000};
	const uint64_t middle[] = {1000001, 1000002, 1000003};
	const uint64_t over_border[] = {1000004, 0};
	const uint64_t last[] = {2, 3};

	two_volumes();
	expect(20, 0, 1, from_20, 8);
	expect(0, 20, 0, to_20, 1);
	expect(20, 30, 1, middle, 3);
	expect(21, 41, 4, over_border, 2);
	expect(60, 61, 7, last, 2);
	fake_stop(&fake);
}
END_TEST

START_TEST(an_empty_range_yields_nothing_and_asks_for_no_block_that_cannot_match)
{
	two_volumes();
	expect(31, 40, 0, NULL, 0);
	expect(61, 0, 0, NULL, 0);
	expect(1, 10, 0, NULL, 0);
	expect(20, 20, 0, NULL, 0);
	/* Only [20, 20) has a segment that reaches 20 and begins before it: none begins before 20
	 * but the first, whose cut is empty. */
	ck_assert_uint_le(fake_log_cnt(&fake), 1);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_cut_that_is_empty_inside_a_segment_is_skipped_without_an_empty_span)
{
	static const struct fake_series gap[] = {
		{.name = "A/x",
			.schema = "pair",
			.segment_cnt = 3,
			.segments = {{0, 2, {10, 50}}, {1, 0, {0}}, {2, 1, {60}}}},
	};
	const uint64_t values[] = {2};

	fake_init(&fake);
	fake_volume(&fake, 1, 0, 3, gap, 1);
	fake.volumes[0].blocks[1].len = 16;
	fake_start(&fake, "p");
	expect(20, 40, 0, NULL, 0);
	expect(51, 0, 2, values, 1);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_range_that_ends_before_it_begins_is_refused)
{
	struct stoup_range range = {.from_ns = 30, .to_ns = 20};
	struct stoup_series series;
	struct stoup_cursor *cur = NULL;
	struct stoup_error err;
	struct stoup *st;

	two_volumes();
	st = fake_attach("p", &no_ahead);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, &err), 0);
	ck_assert_int_eq(stoup_scan(st, &series, &range, &cur, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "30"));
	range = (struct stoup_range){.to_ns = -5};
	ck_assert_int_eq(stoup_scan(st, &series, &range, &cur, &err), -EINVAL);
	range = (struct stoup_range){.flags = 0x8000};
	ck_assert_int_eq(stoup_scan(st, &series, &range, &cur, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "0x8000"));
	series.id = 99;
	ck_assert_int_eq(stoup_scan(st, &series, NULL, &cur, &err), -ENOENT);
	ck_assert_ptr_null(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_series_that_kept_its_order_is_cut_at_the_running_maximum)
{
	/* keys     10 30 20 40 35 50; running maximum 10 30 30 40 40 50 */
	static const struct fake_series kept[] = {
		{.name = "A/x",
			.schema = "pair",
			.flags = STOUP_CATALOG_KEEP_ORDER,
			.segment_cnt = 1,
			.segments = {{0, 6, {10, 30, 20, 40, 35, 50}}}},
	};
	const uint64_t from_30[] = {1, 2, 3, 4, 5};
	const uint64_t from_31[] = {3, 4, 5};
	const uint64_t to_40[] = {0, 1, 2};
	const uint64_t between[] = {3, 4};
	struct stoup_series series;
	struct stoup *st;

	fake_init(&fake);
	fake_volume(&fake, 1, 0, 1, kept, 1);
	fake_start(&fake, "p");
	expect(30, 0, 1, from_30, 5);
	expect(31, 0, 3, from_31, 3);
	expect(0, 40, 0, to_40, 3);
	expect(31, 50, 3, between, 2);
	st = fake_attach("p", &no_ahead);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
	ck_assert_uint_eq(series.flags, STOUP_SERIES_KEEP_ORDER);
	ck_assert_int_eq(series.first_key, 10);
	ck_assert_int_eq(series.last_key, 50);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(resident_blocks_are_read_without_a_request)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_cursor *cur;
	struct stoup *st;
	uint64_t got[32];

	two_volumes();
	for (uint32_t v = 0; v < 2; v++) {
		fake_load(&fake, v, 0);
		fake_load(&fake, v, 1);
	}
	st = fake_attach("p", NULL);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_uint_eq(drain(cur, 0, got, 32), 9);
	ck_assert_uint_eq(got[8], 3);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.hit_cnt, 4);
	ck_assert_uint_eq(stats.miss_cnt, 0);
	ck_assert_uint_eq(stats.doorbell_cnt, 0);
	ck_assert_uint_eq(stats.record_cnt, 9);
	ck_assert_uint_eq(stats.lease_cnt, 0);
	ck_assert_uint_eq(fake_log_cnt(&fake), 0);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

static const struct stoup_options eight_ahead = {
	.struct_len = sizeof(struct stoup_options), .ahead_cnt = 8, .timeout_ns = 60000000000};

/* Twelve blocks of one record each. */
static void twelve_blocks(void)
{
	static struct fake_series one = {.name = "A/x", .schema = "pair", .segment_cnt = 12};

	for (uint32_t i = 0; i < 12; i++)
		one.segments[i] = (struct fake_segment){i, 1, {10 * ((int64_t)i + 1)}};
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 12, &one, 1);
	fake_start(&fake, "p");
}

static void expect_request(
	uint32_t idx, uint32_t kind, uint32_t block, uint32_t ahead, uint32_t cnt)
{
	struct fake_request request = fake_log(&fake, idx);

	ck_assert_uint_eq(request.kind, kind);
	if (kind == STOUP_REQUEST_DEMAND)
		ck_assert_uint_eq(request.block_idx, block);
	ck_assert_uint_eq(request.ahead_cnt, cnt);
	if (cnt > 0)
		ck_assert_uint_eq(request.ahead_block_idx, ahead);
}

START_TEST(read_ahead_grows_from_two_blocks_and_asks_for_none_twice)
{
	struct stoup_cursor *cur;
	struct stoup *st;
	uint64_t got[32];

	twelve_blocks();
	atomic_store(&fake.load_ahead, 0);
	st = fake_attach("p", &eight_ahead);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_uint_eq(drain(cur, 0, got, 32), 12);
	/* Nothing that was asked ahead comes, so each block is a demand. Segment 0 has window 2 and
	 * asks for 1, 2. Segment 1: window 4, one block ahead is less than half of it: asks up to
	 * 5. Segment 2: window 8, three ahead: up to 10. Segments 3 to 5 have 7, 6, 5 ahead; 6 has
	 * 4; 7 has 3: 11. */
	ck_assert_uint_eq(fake_log_cnt(&fake), 12);
	expect_request(0, STOUP_REQUEST_DEMAND, 0, 1, 2);
	expect_request(1, STOUP_REQUEST_DEMAND, 1, 3, 3);
	expect_request(2, STOUP_REQUEST_DEMAND, 2, 6, 5);
	for (uint32_t i = 3; i < 7; i++)
		expect_request(i, STOUP_REQUEST_DEMAND, i, 0, 0);
	expect_request(7, STOUP_REQUEST_DEMAND, 7, 11, 1);
	for (uint32_t i = 8; i < 12; i++)
		expect_request(i, STOUP_REQUEST_DEMAND, i, 0, 0);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

/* Wait until the conductor has loaded a block. */
static void await_block(uint32_t block_idx)
{
	while (atomic_load(&fake.volumes[0].residency[block_idx]) == 0)
		usleep(200);
}

START_TEST(read_ahead_that_arrives_turns_the_rest_into_hits)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup *st;

	twelve_blocks();
	atomic_store(&fake.load_ahead, 1);
	st = fake_attach("p", &eight_ahead);
	cur = fake_scan(st, "A/x", 0, 0);
	for (uint32_t i = 0; i < 12; i++) {
		if (i > 0)
			await_block(i);
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		ck_assert_int_eq(span.first_key, 10 * ((int64_t)i + 1));
	}
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.miss_cnt, 1);
	ck_assert_uint_eq(stats.hit_cnt, 11);
	expect_request(0, STOUP_REQUEST_DEMAND, 0, 1, 2);
	expect_request(1, STOUP_REQUEST_AHEAD, 0, 3, 3);
	expect_request(2, STOUP_REQUEST_AHEAD, 0, 6, 5);
	expect_request(3, STOUP_REQUEST_AHEAD, 0, 11, 1);
	ck_assert_uint_eq(fake_log_cnt(&fake), 4);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(read_ahead_leaves_out_what_is_resident_and_stops_at_the_range)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup *st;

	twelve_blocks();
	fake_load(&fake, 0, 1);
	st = fake_attach("p", NULL);
	cur = fake_scan(st, "A/x", 0, 40);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	/* Window 2 over segments 1 and 2: 1 is there. */
	expect_request(0, STOUP_REQUEST_DEMAND, 0, 2, 1);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	/* Nothing behind segment 2 was asked for: [10, 40) ends there. */
	for (uint32_t i = 0; i < fake_log_cnt(&fake); i++)
		ck_assert_uint_lt(
			fake_log(&fake, i).ahead_block_idx + fake_log(&fake, i).ahead_cnt, 4);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_pool_without_room_for_read_ahead_is_asked_for_none)
{
	struct stoup_cursor *cur;
	struct stoup *st;
	uint64_t got[32];

	twelve_blocks();
	fake.control->ahead_bytes_cap = 0;
	st = fake_attach("p", NULL);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_uint_eq(drain(cur, 0, got, 32), 12);
	for (uint32_t i = 0; i < 12; i++)
		expect_request(i, STOUP_REQUEST_DEMAND, i, 0, 0);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

/* ---- series ---------------------------------------------------------------------------------- */

START_TEST(series_are_listed_once_by_name_with_sums_over_volumes)
{
	struct stoup_series series;
	struct stoup *st;

	two_volumes();
	st = fake_attach("p", NULL);
	ck_assert_int_eq(stoup_series_cnt(st), 2);
	ck_assert_int_eq(stoup_series_at(st, 0, &series), 0);
	ck_assert_str_eq(series.name, "A/x");
	ck_assert_str_eq(series.schema->name, "pair");
	ck_assert_uint_eq(series.schema->field_cnt, 2);
	ck_assert_uint_eq(series.record_cnt, 9);
	ck_assert_int_eq(series.first_key, 10);
	ck_assert_int_eq(series.last_key, 60);
	ck_assert_uint_eq(series.volume_cnt, 2);
	ck_assert_uint_eq(series.flags, 0);
	ck_assert_int_eq(stoup_series_at(st, 1, &series), 0);
	ck_assert_str_eq(series.name, "B/y");
	ck_assert_uint_eq(series.record_cnt, 1);
	ck_assert_uint_eq(series.volume_cnt, 1);
	ck_assert_int_eq(stoup_series_at(st, 2, &series), -ENOENT);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(an_unknown_name_is_answered_with_near_ones)
{
	struct stoup_series series = {.id = 77};
	struct stoup_error err;
	struct stoup *st;

	two_volumes();
	st = fake_attach("p", NULL);
	ck_assert_int_eq(stoup_series_find(st, "a/X", &series, &err), -ENOENT);
	ck_assert_int_eq(err.code, -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, "'a/X'"));
	ck_assert_ptr_nonnull(strstr(err.text, "near: A/x"));
	ck_assert_uint_eq(series.id, 77);
	ck_assert_int_eq(stoup_series_find(st, "zzz", &series, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, "2 series"));
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(two_layouts_under_one_name_are_two_series)
{
	static const struct fake_series both[] = {
		{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {70}}}},
		{.name = "A/x", .schema = "other", .segment_cnt = 1, .segments = {{1, 2, {5, 6}}}},
	};
	struct stoup_series series;
	struct stoup_cursor *cur;
	struct stoup_error err;
	struct stoup *st;
	uint64_t got[32], cnt[2];

	fake_init(&fake);
	fake_volume(&fake, 1, 0, 2, late, 1);
	fake_volume(&fake, 2, 0, 2, both, 2);
	fake_start(&fake, "p");
	st = fake_attach("p", &no_ahead);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, &err), -ENOTUNIQ);
	ck_assert_int_eq(stoup_series_cnt(st), 2);
	for (uint32_t i = 0; i < 2; i++) {
		int pair;

		ck_assert_int_eq(stoup_series_at(st, i, &series), 0);
		pair = strcmp(series.schema->name, "pair") == 0;
		ck_assert_uint_eq(series.record_cnt, pair ? 5 : 2);
		ck_assert_int_eq(stoup_scan(st, &series, NULL, &cur, &err), 0);
		cnt[i] = drain(cur, 0, got, 32);
		ck_assert_uint_eq(cnt[i], pair ? 5 : 2);
		ck_assert_uint_eq(got[0], pair ? 0 : 1000001);
		stoup_cursor_close(cur);
	}
	ck_assert_uint_eq(cnt[0] + cnt[1], 7);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(figures_are_given_as_far_as_the_struct_of_the_caller_goes)
{
	struct {
		struct stoup_stats stats;
		uint64_t more[3];
	} later = {.stats = {.struct_len = sizeof(later)}, .more = {7, 7, 7}}, first;
	struct stoup *st;

	two_volumes();
	st = fake_attach("p", NULL);
	ck_assert_int_eq(stoup_stats(st, &later.stats), 0);
	ck_assert_uint_eq(later.stats.struct_len, sizeof(later));
	ck_assert_uint_eq(later.more[0] | later.more[1] | later.more[2], 0);
	memset(&first, 0x55, sizeof(first));
	first.stats.struct_len = 96; /* of 0.1.0: never refused within SOVERSION 1 */
	ck_assert_int_eq(stoup_stats(st, &first.stats), 0);
	ck_assert_uint_eq(first.stats.direct_alone_cnt, 0);
	ck_assert_uint_eq(((unsigned char *)&first)[96], 0x55); /* not a byte more */
	first.stats.struct_len = 95;
	ck_assert_int_eq(stoup_stats(st, &first.stats), -EINVAL);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_struct_is_accepted_only_where_it_overlays_the_records)
{
	const struct stoup_require good[] = {
		{"key", 0, STOUP_TYPE_I64}, {"value", 8, STOUP_TYPE_U64}};
	const struct stoup_require moved[] = {{"value", 0, STOUP_TYPE_U64}};
	const struct stoup_require unknown[] = {{"price", 8, STOUP_TYPE_I64}};
	struct stoup_series series;
	struct stoup_error err;
	struct stoup *st;

	two_volumes();
	st = fake_attach("p", NULL);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
	ck_assert_int_eq(stoup_schema_require(&series, NULL, 16, &err), 0);
	ck_assert_int_eq(stoup_schema_require(&series, NULL, 24, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "16 bytes"));
	ck_assert_int_eq(stoup_schema_require(&series, "mbo", 56, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "not mbo"));
	ck_assert_int_eq(stoup_schema_require(&series, "nonsense", 16, &err), -EINVAL);
	ck_assert_int_eq(stoup_schema_require_fields(&series, 16, good, 2, &err), 0);
	ck_assert_int_eq(stoup_schema_require_fields(&series, 8, good, 2, &err), -EINVAL);
	ck_assert_int_eq(stoup_schema_require_fields(&series, 16, moved, 1, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "offset 8"));
	ck_assert_int_eq(stoup_schema_require_fields(&series, 16, unknown, 1, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "no field price"));
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_field_that_differs_is_told_by_names_of_types)
{
	const struct stoup_require signed_value[] = {{"value", 8, STOUP_TYPE_I64}};
	const struct stoup_require later[] = {{"value", 8, 77}};
	struct stoup_series series;
	struct stoup_error err;
	struct stoup *st;

	two_volumes();
	st = fake_attach("p", NULL);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
	ck_assert_int_eq(stoup_schema_require_fields(&series, 16, signed_value, 1, &err), -EINVAL);
	ck_assert_str_eq(err.text, "A/x: field value is u64 at offset 8; the struct has i64 at 8");
	ck_assert_int_eq(stoup_schema_require_fields(&series, 16, later, 1, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "has an unknown type at 8"));
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

/* Both attachments number what they find from 1 on: the number alone names another series there. */
START_TEST(a_series_of_another_attachment_is_refused_also_when_that_one_is_gone)
{
	struct stoup_series x, y;
	struct stoup_cursor *cur = NULL;
	struct stoup_error err;
	struct stoup *one, *two;

	two_volumes();
	one = fake_attach("p", NULL);
	two = fake_attach("p", NULL);
	ck_assert_int_eq(stoup_series_find(one, "A/x", &x, NULL), 0);
	ck_assert_int_eq(stoup_series_find(two, "B/y", &y, NULL), 0);
	ck_assert_uint_eq(x.id, y.id);
	ck_assert_int_eq(stoup_scan(two, &x, NULL, &cur, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, "find it through the attachment that scans it"));
	ck_assert_ptr_null(cur);
	ck_assert_int_eq(stoup_detach(one), 0);
	ck_assert_int_eq(stoup_scan(two, &x, NULL, &cur, NULL), -ENOENT);
	ck_assert_int_eq(stoup_scan(two, &y, NULL, &cur, NULL), 0);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(two), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(no_attachment_cursor_or_name_is_an_invalid_argument)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_held *const none[1] = {NULL};
	struct stoup_series series;
	struct stoup_cursor *cur;
	struct stoup_array array;
	struct stoup_span span;
	struct stoup_error err;
	struct stoup *st;

	two_volumes();
	st = fake_attach("p", NULL);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
	ck_assert_int_eq(stoup_series_find(NULL, "A/x", &series, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "no attachment"));
	ck_assert_int_eq(stoup_series_find(st, NULL, &series, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "no name"));
	ck_assert_int_eq(stoup_scan(NULL, &series, NULL, &cur, &err), -EINVAL);
	ck_assert_int_eq(stoup_scan(st, NULL, NULL, &cur, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "no series"));
	ck_assert_int_eq(stoup_array(NULL, &series, NULL, &array, &err), -EINVAL);
	ck_assert_int_eq(stoup_series_cnt(NULL), -EINVAL);
	ck_assert_int_eq(stoup_series_at(NULL, 0, &series), -EINVAL);
	ck_assert_int_eq(stoup_refresh(NULL, &err), -EINVAL);
	ck_assert_int_eq(stoup_health(NULL, &err), -EINVAL);
	ck_assert_int_eq(stoup_stats(NULL, &stats), -EINVAL);
	ck_assert_int_eq(stoup_stats(st, NULL), -EINVAL);
	ck_assert_int_eq(stoup_use_cnt(NULL), -EINVAL);
	ck_assert_int_eq(stoup_next(NULL, &span), -EINVAL);
	ck_assert_int_eq(stoup_next_held(NULL, none, 1, 0), -EINVAL);
	ck_assert_int_eq(stoup_cursor_skip(NULL), -EINVAL);
	ck_assert_int_eq(stoup_cursor_error(NULL)->code, -EINVAL);
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(NULL)->text, "no cursor"));
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(bars_of_any_length_are_accepted_where_bar_is_asked_for_and_no_other_layout)
{
	struct stoup_schema minute = *stoup_schema_by_name("bar"),
			    eod = *stoup_schema_by_name("ohlcv-eod");
	struct stoup_series series = {.name = "FX/GBPUSD/bar", .schema = &minute};
	struct stoup_field fields[6];
	struct stoup_error err;

	minute.interval_ns = UINT64_C(60000000000);
	minute.hash = stoup_schema_hash(&minute);
	ck_assert_int_eq(stoup_schema_require(&series, "bar", sizeof(struct stoup_bar), &err), 0);
	memcpy(fields, minute.fields, sizeof(fields));
	fields[1].exp10 = -5;
	minute.fields = fields;
	minute.hash = stoup_schema_hash(&minute);
	ck_assert_int_eq(
		stoup_schema_require(&series, "bar", sizeof(struct stoup_bar), &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "open is scaled by 10^-5"));
	/* A schema with an interval of its own means that interval. */
	eod.interval_ns--;
	eod.hash = stoup_schema_hash(&eod);
	series.schema = &eod;
	ck_assert_int_eq(
		stoup_schema_require(&series, "ohlcv-eod", sizeof(struct stoup_ohlcv), &err),
		-EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_scan");
	TCase *scan = tcase_create("scan"), *ahead = tcase_create("ahead"),
	      *series = tcase_create("series");

	tcase_add_test(scan, a_scan_yields_every_record_once_in_key_order_over_all_volumes);
	tcase_add_test(scan, a_range_holds_ties_at_its_begin_and_leaves_out_ties_at_its_end);
	tcase_add_test(scan, an_empty_range_yields_nothing_and_asks_for_no_block_that_cannot_match);
	tcase_add_test(scan, a_cut_that_is_empty_inside_a_segment_is_skipped_without_an_empty_span);
	tcase_add_test(scan, a_range_that_ends_before_it_begins_is_refused);
	tcase_add_test(scan, a_series_that_kept_its_order_is_cut_at_the_running_maximum);
	tcase_add_test(scan, resident_blocks_are_read_without_a_request);
	tcase_add_test(ahead, read_ahead_grows_from_two_blocks_and_asks_for_none_twice);
	tcase_add_test(ahead, read_ahead_that_arrives_turns_the_rest_into_hits);
	tcase_add_test(ahead, read_ahead_leaves_out_what_is_resident_and_stops_at_the_range);
	tcase_add_test(ahead, a_pool_without_room_for_read_ahead_is_asked_for_none);
	tcase_add_test(series, series_are_listed_once_by_name_with_sums_over_volumes);
	tcase_add_test(series, an_unknown_name_is_answered_with_near_ones);
	tcase_add_test(series, two_layouts_under_one_name_are_two_series);
	tcase_add_test(series, figures_are_given_as_far_as_the_struct_of_the_caller_goes);
	tcase_add_test(series, a_struct_is_accepted_only_where_it_overlays_the_records);
	tcase_add_test(series, a_field_that_differs_is_told_by_names_of_types);
	tcase_add_test(
		series, a_series_of_another_attachment_is_refused_also_when_that_one_is_gone);
	tcase_add_test(series, no_attachment_cursor_or_name_is_an_invalid_argument);
	tcase_add_test(
		series, bars_of_any_length_are_accepted_where_bar_is_asked_for_and_no_other_layout);
	suite_add_tcase(suite, scan);
	suite_add_tcase(suite, ahead);
	suite_add_tcase(suite, series);
	return fake_main(suite);
}
