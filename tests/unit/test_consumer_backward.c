/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_backward.c - scans from the end of a range to its begin: the forward scan reversed,
 * whatever the layout, the range, and the daemons that die meanwhile.
 *
 *      A/x  [10 20][20 20 30][40]     values 0 to 5, whatever the blocks
 */
#include "consumer/cursor.h"
#include "tests/unit/test_consumer_days.h"

static struct fake fake;
static struct stoup *st;
static struct stoup_cursor *cur;
static struct stoup_span span;

static const struct stoup_options no_ahead = {.struct_len = sizeof(struct stoup_options),
	.ahead_cnt = UINT32_MAX,
	.timeout_ns = 60000000000};

/* ---- the forward scan reversed ---------------------------------------------------------------- */

static void expect_reversed(const char *name, int64_t from, int64_t to)
{
	struct seen forward, backward;

	collect(st, name, from, to, 0, &forward);
	collect(st, name, from, to, STOUP_BACKWARD, &backward);
	ck_assert_msg(forward.cnt == backward.cnt, "%s [%lld, %lld): %u forward, %u backward", name,
		(long long)from, (long long)to, forward.cnt, backward.cnt);
	for (uint32_t i = 0; i < forward.cnt; i++) {
		ck_assert_uint_eq(forward.values[i], backward.values[forward.cnt - 1 - i]);
		ck_assert_uint_eq(forward.ordinals[i], backward.ordinals[forward.cnt - 1 - i]);
	}
}

static void every_range(const struct stoup_options *opt)
{
	static const char *const names[] = {"A/x", "K/x", "S/1", "S/2"};

	fake_init(&fake);
	fake_volume(&fake, 2, 0, 3, late, 3);
	fake_volume(&fake, 1, 0, 4, early, 4);
	fake_start(&fake, "p");
	st = fake_attach("p", opt);
	for (uint32_t n = 0; n < 4; n++)
		for (int64_t from = 0; from <= 62; from++)
			for (int64_t to = from ? from : 1; to <= 63; to++)
				expect_reversed(names[n], from, to == 63 ? 0 : to);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

START_TEST(a_backward_scan_is_the_forward_one_reversed_for_every_range)
{
	every_range(&no_ahead);
}
END_TEST

START_TEST(read_ahead_changes_nothing_of_it)
{
	every_range(NULL);
}
END_TEST

START_TEST(a_series_without_records_has_no_end_either)
{
	static const struct fake_series none[] = {
		{.name = "A/x", .schema = "pair", .segment_cnt = 0}};

	fake_init(&fake);
	fake_volume(&fake, 1, 0, 1, none, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", &no_ahead);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_BACKWARD);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

/* ---- what it asks for ------------------------------------------------------------------------- */

static void expect_request(
	uint32_t idx, uint32_t kind, uint32_t block_idx, uint32_t ahead_first, uint32_t ahead_cnt)
{
	struct fake_request r = fake_log(&fake, idx);

	ck_assert_uint_lt(idx, fake_log_cnt(&fake));
	ck_assert_uint_eq(r.kind, kind);
	if (kind == STOUP_REQUEST_DEMAND)
		ck_assert_uint_eq(r.block_idx, block_idx);
	ck_assert_uint_eq(r.ahead_cnt, ahead_cnt);
	ck_assert_int_eq(r.ahead_step, -1);
	if (ahead_cnt > 0)
		ck_assert_uint_eq(r.ahead_block_idx, ahead_first);
}

static const struct fake_series twelve[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 12,
		.segments = {{0, 1, {10}}, {1, 1, {20}}, {2, 1, {30}}, {3, 1, {40}}, {4, 1, {50}},
			{5, 1, {60}}, {6, 1, {70}}, {7, 1, {80}}, {8, 1, {90}}, {9, 1, {100}},
			{10, 1, {110}}, {11, 1, {120}}}},
};

START_TEST(read_ahead_runs_down_and_stops_at_the_begin_of_the_range)
{
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 12, twelve, 1);
	fake_start(&fake, "p");
	fake_load(&fake, 0, 10);
	st = fake_attach("p", NULL);
	cur = fake_scan_flags(st, "A/x", 90, 0, STOUP_BACKWARD);
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		ck_assert_uint_eq(span.ordinal, 11 - i);
	}
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	/* Window 2 below block 11: 10 is there, 9 is asked for. */
	expect_request(0, STOUP_REQUEST_DEMAND, 11, 9, 1);
	for (uint32_t i = 0; i < fake_log_cnt(&fake); i++) {
		struct fake_request r = fake_log(&fake, i);

		ck_assert_int_eq(r.ahead_step, -1);
		if (r.ahead_cnt > 0) /* [90, ...) begins in block 8 */
			ck_assert_uint_ge(r.ahead_block_idx + 1 - r.ahead_cnt, 8);
	}
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(what_is_read_ahead_is_loaded_once)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};

	fake_init(&fake);
	fake_volume(&fake, 1, 0, 12, twelve, 1);
	atomic_store(&fake.load_ahead, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", NULL);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_BACKWARD);
	for (uint32_t i = 0; i < 12; i++) {
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		ck_assert_uint_eq(span.ordinal, 11 - i);
	}
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.hit_cnt + stats.miss_cnt, 12);
	for (uint32_t i = 0; i < 12; i++)
		ck_assert_int_eq(atomic_load(&fake.volumes[0].blocks[i].load_cnt), 1);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

/* ---- damage ----------------------------------------------------------------------------------- */

static const struct fake_series plain[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 3,
		.segments = {{0, 2, {10, 20}}, {1, 3, {20, 20, 30}}, {2, 1, {40}}}},
};

static void begin_range(const struct fake_series *series, int64_t from, int64_t to)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.ahead_cnt = UINT32_MAX;
	opt.reconnect_ns = 60000000000;
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 4, series, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", &opt);
	cur = fake_scan_flags(st, "A/x", from, to, STOUP_BACKWARD);
}

static void begin(const struct fake_series *series)
{
	begin_range(series, 0, 0);
}

static void damage(uint32_t block_idx)
{
	atomic_store(&fake.volumes[0].blocks[block_idx].error, -EBADMSG);
	atomic_store(&fake.volumes[0].blocks[block_idx].act, FAKE_FAIL);
}

static void end(void)
{
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

/* The next records, down to the begin: their values are first, first - 1, .. last; the highest ordinal is
 * `ordinal`. */
static void rest(uint64_t first, uint64_t last, uint64_t ordinal)
{
	uint64_t next = first;
	int rc;

	while ((rc = stoup_next(cur, &span)) > 0) {
		const struct pair *pairs = span.base;

		for (uint64_t i = span.record_cnt; i-- > 0; next--, ordinal--) {
			ck_assert_uint_eq(pairs[i].value, next);
			ck_assert_uint_eq(span.ordinal + i, ordinal);
		}
	}
	ck_assert_msg(rc == 0, "%d: %s", rc, stoup_cursor_error(cur)->text);
	ck_assert_uint_eq(next, last - 1);
}

static void spans(uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		int rc = stoup_next(cur, &span);

		ck_assert_msg(rc == 1, "%d: %s", rc, stoup_cursor_error(cur)->text);
	}
}

START_TEST(a_damaged_block_is_stepped_over_and_counted)
{
	begin(plain);
	damage(1);
	spans(1);
	ck_assert_uint_eq(span.ordinal, 5);
	ck_assert_int_eq(stoup_next(cur, &span), -EBADMSG);
	ck_assert_int_eq(stoup_next(cur, &span), -EBADMSG); /* the place stays */
	ck_assert_int_eq(stoup_cursor_skip(cur), 3);
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	rest(1, 0, 1);
	end();
}
END_TEST

START_TEST(where_the_range_cuts_what_is_left_out_is_an_upper_bound)
{
	begin_range(plain, 21, 30);
	damage(1);
	ck_assert_int_eq(stoup_next(cur, &span), -EBADMSG);
	ck_assert_int_eq(stoup_cursor_skip(cur), 1); /* of three, one at each end lies outside */
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	end();
	/* Resumed within the segment: what was handed out is known exactly. */
	begin(plain);
	damage(1);
	spans(1);
	cur->end_ordinal = 4;
	ck_assert_int_eq(stoup_next(cur, &span), -EBADMSG);
	ck_assert_int_eq(stoup_cursor_skip(cur), 2);
	rest(1, 0, 1);
	end();
}
END_TEST

/* ---- the daemon ends --------------------------------------------------------------------------- */

static void die(void)
{
	fake_kill(&fake);
	fake.control->daemon_start = 1; /* no process began then */
	fake_reset(&fake);
}

static void again(const struct fake_series *series)
{
	fake_volume(&fake, 1, 0, 4, series, 1);
	fake_start(&fake, "p");
}

/* `series` in other blocks, each time after another number of spans of `from`. `next`: value and ordinal of
 * the record that must follow; UINT64_MAX: none. */
static void over_to(const struct fake_series *from, const struct fake_series *series,
	const uint64_t *next, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		begin(from);
		spans(i);
		die();
		again(series);
		if (next[i] == UINT64_MAX)
			ck_assert_int_eq(stoup_next(cur, &span), 0);
		else
			rest(next[i], 0, next[i]);
		end();
	}
}

START_TEST(a_backward_scan_goes_on_at_the_record_before_in_whatever_blocks)
{
	static const struct fake_series one[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 6, {10, 20, 20, 20, 30, 40}}}}};
	static const struct fake_series cut[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 4,
		.segments = {{0, 1, {10}}, {1, 1, {20}}, {2, 1, {20}}, {3, 3, {20, 30, 40}}}}};
	static const uint64_t next[] = {5, 4, 1, UINT64_MAX};

	over_to(plain, plain, next, 4);
	over_to(plain, one, next, 4);
	over_to(plain, cut, next, 4);
}
END_TEST

START_TEST(records_of_one_key_are_told_apart_by_their_number_in_a_row)
{
	static const struct fake_series ties[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 4,
		.segments = {{0, 2, {20, 20}}, {1, 2, {20, 20}}, {2, 1, {20}}, {3, 2, {20, 30}}}}};
	static const struct fake_series other[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 5, {20, 20, 20, 20, 20}}, {1, 2, {20, 30}}}}};
	/* In front of the run: the index can not tell how many of segment 1 have the key. */
	static const struct fake_series behind[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 4,
		.segments = {{0, 2, {5, 10}}, {1, 2, {10, 20}}, {2, 1, {20}}, {3, 2, {20, 30}}}}};
	static const struct fake_series joined[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 3, {5, 10, 10}}, {1, 4, {20, 20, 20, 30}}}}};
	static const uint64_t next[] = {6, 4, 3, 1, UINT64_MAX};

	over_to(ties, other, next, 5);
	over_to(behind, joined, next, 5);
}
END_TEST

/* Values of `plain` in the volume that is made first; other volumes hold other values. */
START_TEST(an_earlier_day_moves_the_ordinals_and_a_later_one_does_not_come)
{
	static const struct fake_series before[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 3, {1, 2, 3}}}}};
	static const struct fake_series after[] = {
		{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {50}}}}};
	const uint64_t values[] = {1, 0, 1000002, 1000001, 1000000};
	uint64_t at = 0;

	begin(plain);
	spans(2);
	die();
	fake_volume(&fake, 1, 0, 4, plain, 1);
	fake_volume(&fake, 2, 0, 1, before, 1);
	fake_volume(&fake, 3, 0, 1, after, 1);
	fake_start(&fake, "p");
	while (stoup_next(cur, &span) == 1)
		for (uint64_t i = span.record_cnt; i-- > 0; at++) {
			ck_assert_uint_eq(((const struct pair *)span.base)[i].value, values[at]);
			ck_assert_uint_eq(span.ordinal + i, 4 - at);
		}
	ck_assert_uint_eq(at, 5);
	end();
}
END_TEST

START_TEST(later_data_that_begins_with_the_key_of_the_anchor_moves_nothing)
{
	static const struct fake_series ends[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 2, {10, 30}}, {1, 2, {40, 40}}}}};
	static const struct fake_series after[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 3, {40, 40, 50}}}}};

	begin(ends);
	spans(1); /* anchor: the first record of key 40, of two, then of four */
	die();
	fake_volume(&fake, 1, 0, 4, ends, 1);
	fake_volume(&fake, 2, 0, 1, after, 1);
	fake_start(&fake, "p");
	rest(1, 0, 1);
	end();
}
END_TEST

START_TEST(a_range_stays_what_it_was)
{
	begin_range(plain, 20, 40);
	spans(1);
	ck_assert_uint_eq(span.ordinal, 2);
	ck_assert_uint_eq(span.record_cnt, 3);
	die();
	again(plain);
	rest(1, 1, 1);
	end();
	/* Cut at its begin: what lies in front in the same segment stays out. */
	begin_range(plain, 30, 0);
	spans(2);
	ck_assert_uint_eq(span.ordinal, 4);
	die();
	again(plain);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	end();
	/* Before the first span. */
	begin_range(plain, 0, 30);
	die();
	again(plain);
	rest(3, 0, 3);
	end();
}
END_TEST

START_TEST(a_series_that_kept_its_order_goes_on_by_ordinal)
{
	static const struct fake_series kept[] = {{.name = "A/x",
		.schema = "pair",
		.flags = STOUP_CATALOG_KEEP_ORDER,
		.segment_cnt = 2,
		.segments = {{0, 3, {10, 30, 20}}, {1, 3, {40, 35, 50}}}}};
	static const struct fake_series other[] = {{.name = "A/x",
		.schema = "pair",
		.flags = STOUP_CATALOG_KEEP_ORDER,
		.segment_cnt = 2,
		.segments = {{0, 5, {10, 30, 20, 40, 35}}, {1, 1, {50}}}}};
	static const uint64_t next[] = {5, 2, UINT64_MAX};

	over_to(kept, other, next, 3);
}
END_TEST

START_TEST(what_was_left_out_before_the_end_stays_left_out)
{
	static const struct fake_series before[] = {
		{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 2, {1, 2}}}}};

	begin(plain);
	damage(1);
	spans(1);
	ck_assert_int_eq(stoup_next(cur, &span), -EBADMSG);
	ck_assert_int_eq(stoup_cursor_skip(cur), 3);
	die();
	fake_volume(&fake, 1, 0, 4, plain, 1);
	fake_volume(&fake, 2, 0, 1, before, 1);
	fake_start(&fake, "p");
	spans(1);
	ck_assert_uint_eq(span.ordinal, 2);
	ck_assert_uint_eq(span.record_cnt, 2);
	ck_assert_uint_eq(((const struct pair *)span.base)[1].value, 1);
	spans(1);
	ck_assert_uint_eq(span.ordinal, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	end();
}
END_TEST

START_TEST(two_deaths_in_a_row_lose_and_double_nothing)
{
	for (uint32_t cnt = 0; cnt <= 3; cnt++) {
		static const uint64_t next[] = {5, 4, 1, UINT64_MAX};

		begin(plain);
		spans(cnt);
		die();
		again(plain);
		ck_assert_int_eq(stoup_refresh(st, NULL), 1);
		die();
		again(plain);
		if (next[cnt] == UINT64_MAX)
			ck_assert_int_eq(stoup_next(cur, &span), 0);
		else
			rest(next[cnt], 0, next[cnt]);
		end();
	}
}
END_TEST

START_TEST(a_store_that_lost_or_changed_the_record_is_told)
{
	static const struct fake_series gone[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 2, {10, 15}}}}};
	static const struct fake_series more[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 7, {5, 10, 20, 20, 20, 30, 40}}}}};
	static const struct fake_series *const stores[] = {gone, more};

	for (uint32_t i = 0; i < 2; i++) {
		begin(plain);
		spans(2);
		die();
		again(stores[i]);
		ck_assert_int_eq(stoup_next(cur, &span), -ESTALE);
		ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text,
			i ? "record 2 (key 20), the last one read, is another one"
			  : "record 2 (key 20), the last one read, is gone"));
		ck_assert_int_eq(stoup_next(cur, &span), -ESTALE);
		end();
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_backward");
	TCase *scan = tcase_create("scan"), *ahead = tcase_create("ahead"),
	      *skip = tcase_create("skip"), *ends = tcase_create("ends");

	tcase_add_test(scan, a_backward_scan_is_the_forward_one_reversed_for_every_range);
	tcase_add_test(scan, read_ahead_changes_nothing_of_it);
	tcase_add_test(scan, a_series_without_records_has_no_end_either);
	tcase_add_test(ahead, read_ahead_runs_down_and_stops_at_the_begin_of_the_range);
	tcase_add_test(ahead, what_is_read_ahead_is_loaded_once);
	tcase_add_test(skip, a_damaged_block_is_stepped_over_and_counted);
	tcase_add_test(skip, where_the_range_cuts_what_is_left_out_is_an_upper_bound);
	tcase_add_test(ends, a_backward_scan_goes_on_at_the_record_before_in_whatever_blocks);
	tcase_add_test(ends, records_of_one_key_are_told_apart_by_their_number_in_a_row);
	tcase_add_test(ends, an_earlier_day_moves_the_ordinals_and_a_later_one_does_not_come);
	tcase_add_test(ends, later_data_that_begins_with_the_key_of_the_anchor_moves_nothing);
	tcase_add_test(ends, a_range_stays_what_it_was);
	tcase_add_test(ends, a_series_that_kept_its_order_goes_on_by_ordinal);
	tcase_add_test(ends, what_was_left_out_before_the_end_stays_left_out);
	tcase_add_test(ends, two_deaths_in_a_row_lose_and_double_nothing);
	tcase_add_test(ends, a_store_that_lost_or_changed_the_record_is_told);
	suite_add_tcase(suite, scan);
	suite_add_tcase(suite, ahead);
	suite_add_tcase(suite, skip);
	suite_add_tcase(suite, ends);
	return fake_main(suite);
}
