/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_direct.c - scans that map the volumes' files: the records of a scan from the pool, in spans as
 * long as they lie one behind the other, with a daemon and without.
 *
 *      A/x  [10 20][20 20 30][40]     values 0 to 5
 */
#include "consumer/cursor.h"
#include "consumer/direct.h"
#include "tests/unit/test_consumer_days.h"

static struct fake fake;
static struct stoup *st;
static struct stoup_cursor *cur;
static struct stoup_span span;
static struct stoup_stats stats = {.struct_len = sizeof(stats)};

static const struct fake_series plain[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 3,
		.segments = {{0, 2, {10, 20}}, {1, 3, {20, 20, 30}}, {2, 1, {40}}}},
};

static void begin_with(uint32_t gaps, uint32_t flags)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.flags = flags;
	opt.reconnect_ns = 60000000000;
	opt.ahead_cnt = UINT32_MAX;
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 3, plain, 1);
	fake_file(&fake, 0, gaps);
	fake_start(&fake, "p");
	st = fake_attach("p", &opt);
}

static void end(void)
{
	stoup_cursor_close(cur);
	cur = NULL;
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

/* The next span begins with `ordinal` and has `cnt` records, whose values are their ordinals. */
static void expect_span(uint64_t ordinal, uint64_t cnt)
{
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, ordinal);
	ck_assert_uint_eq(span.record_cnt, cnt);
	for (uint64_t i = 0; i < cnt; i++)
		ck_assert_uint_eq(((const struct pair *)span.base)[i].value, ordinal + i);
}

static int scan_fails(const char *name, uint32_t flags, struct stoup_error *err)
{
	const struct stoup_range range = {.flags = flags};
	struct stoup_series series;
	struct stoup_cursor *none = NULL;
	int rc;

	ck_assert_int_eq(stoup_series_find(st, name, &series, NULL), 0);
	rc = stoup_scan(st, &series, &range, &none, err);
	ck_assert_ptr_null(none);
	return rc;
}

/* ---- spans ------------------------------------------------------------------------------------- */

START_TEST(records_that_lie_one_behind_the_other_are_one_span)
{
	begin_with(0, 0);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT);
	expect_span(0, 6);
	ck_assert_int_eq(span.first_key, 10);
	ck_assert_int_eq(span.last_key, 40);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	stoup_cursor_close(cur);
	cur = fake_scan_flags(st, "A/x", 20, 40, STOUP_DIRECT | STOUP_BACKWARD);
	expect_span(1, 4);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	/* Neither a request, nor a cell, nor a second question for the file. */
	ck_assert_uint_eq(fake_log_cnt(&fake), 0);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_uint_eq(fake.file_cnt, 1);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.direct_cnt, 2);
	ck_assert_uint_eq(stats.direct_alone_cnt, 0);
	ck_assert_uint_eq(stats.record_cnt, 10);
	ck_assert_uint_eq(stats.hit_cnt + stats.miss_cnt, 0);
	end();
}
END_TEST

START_TEST(a_gap_in_the_file_ends_a_span_in_both_directions)
{
	begin_with(1, 0);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT);
	expect_span(0, 2);
	expect_span(2, 4);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	stoup_cursor_close(cur);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT | STOUP_BACKWARD);
	expect_span(2, 4);
	expect_span(0, 2);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	end();
}
END_TEST

START_TEST(every_range_has_the_records_of_a_scan_from_the_pool)
{
	static const char *const names[] = {"A/x", "K/x", "S/1"};
	static const uint32_t ways[] = {0, STOUP_BACKWARD};
	struct seen pool, direct;

	fake_init(&fake);
	fake_volume(&fake, 2, 0, 3, late, 2);
	fake_volume(&fake, 1, 0, 4, early, 3);
	fake_file(&fake, 0, 0);
	fake_file(&fake, 1, 2);
	fake_start(&fake, "p");
	st = fake_attach("p", NULL);
	for (uint32_t n = 0; n < 6; n++)
		for (int64_t from = 0; from <= 62; from++)
			for (int64_t to = from ? from : 1; to <= 63; to++) {
				int64_t until = to == 63 ? 0 : to;

				collect(st, names[n % 3], from, until, ways[n / 3], &pool);
				collect(st, names[n % 3], from, until, ways[n / 3] | STOUP_DIRECT,
					&direct);
				ck_assert_uint_eq(pool.cnt, direct.cnt);
				ck_assert_mem_eq(pool.values, direct.values, pool.cnt * 8);
				ck_assert_mem_eq(pool.ordinals, direct.ordinals, pool.cnt * 8);
			}
	ck_assert_uint_eq(fake.file_cnt, 2);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

/* ---- what can not be mapped -------------------------------------------------------------------- */

START_TEST(what_is_compressed_is_told_or_read_from_the_pool)
{
	struct stoup_catalog_block *blocks;
	struct stoup_error err;

	begin_with(0, 0);
	blocks = (void *)((char *)fake.volumes[0].catalog + fake.volumes[0].catalog->block_off);
	blocks[1].codec = 2;
	ck_assert_int_eq(scan_fails("A/x", STOUP_DIRECT, &err), -ENOTSUP);
	ck_assert_msg(strstr(err.text, "'A/x': block 1 of fake.svol is compressed (zstd)") &&
			      strstr(err.text, "--codec none"),
		"%s", err.text);
	blocks[1].codec = 0;
	blocks[1].transform = 1;
	ck_assert_int_eq(scan_fails("A/x", STOUP_DIRECT, &err), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(err.text, "a field transform"));
	blocks[1].codec = 1;
	ck_assert_int_eq(scan_fails("A/x", STOUP_DIRECT, &err), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(err.text, "(a field transform and lz4)"));
	blocks[1].codec = 77;
	ck_assert_int_eq(scan_fails("A/x", STOUP_DIRECT, &err), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(err.text, "unknown"));
	/* Where the range does not meet it, nobody minds. */
	cur = fake_scan_flags(st, "A/x", 0, 20, STOUP_DIRECT);
	expect_span(0, 1);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.direct_cnt, 1);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT_OR_POOL);
	expect_span(0, 2);
	expect_span(2, 3);
	expect_span(5, 1);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.direct_cnt, 1);
	ck_assert_uint_eq(stats.miss_cnt, 3);
	stoup_cursor_close(cur);
	blocks[1].codec = blocks[1].transform = 0;
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT_OR_POOL);
	expect_span(0, 6);
	end();
}
END_TEST

START_TEST(a_file_that_is_short_or_another_one_is_told)
{
	struct stoup_error err;

	begin_with(0, 0);
	ck_assert_int_eq(ftruncate(fake.volumes[0].file_fd, 64 + 5 * 16), 0);
	ck_assert_int_eq(scan_fails("A/x", STOUP_DIRECT, &err), -EIO);
	ck_assert_msg(
		strstr(err.text, "fake.svol ends at byte 144, before its block 2 does") != NULL,
		"%s", err.text);
	ck_assert_int_eq(ftruncate(fake.volumes[0].file_fd, 4096), 0);
	ck_assert_int_eq(pwrite(fake.volumes[0].file_fd, "x", 1, 16), 1);
	ck_assert_int_eq(scan_fails("A/x", STOUP_DIRECT, &err), -EIO);
	ck_assert_ptr_nonnull(strstr(err.text, "no longer the volume"));
	fake.refuse_file = -ESTALE;
	ck_assert_int_eq(scan_fails("A/x", STOUP_DIRECT, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.text, "stoup_refresh"));
	fake.refuse_file = -EMFILE;
	ck_assert_int_eq(scan_fails("A/x", STOUP_DIRECT, &err), -EMFILE);
	ck_assert_ptr_nonnull(strstr(err.text, "ulimit -n"));
	/* The pool serves all the same. */
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT_OR_POOL);
	expect_span(0, 2);
	end();
}
END_TEST

/* ---- how long it lives ------------------------------------------------------------------------- */

START_TEST(holding_costs_nothing_and_is_counted_like_any_lease)
{
	struct stoup_lease a, b, copy;
	const struct pair *pairs;

	begin_with(0, 0);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT);
	expect_span(0, 6);
	ck_assert_int_eq(stoup_hold(&span, &a), 0);
	ck_assert_int_eq(stoup_hold(&span, &b), 0);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	stoup_cursor_close(cur);
	cur = NULL;
	pairs = span.base; /* without any hold as well */
	copy = a;
	ck_assert_int_eq(stoup_release(&a), 0);
	ck_assert_int_eq(stoup_release(&a), -EINVAL);
	ck_assert_int_eq(stoup_release(&copy), -EINVAL);
	ck_assert_int_eq(stoup_detach(st), -EBUSY);
	ck_assert_int_eq(stoup_release(&b), 0);
	ck_assert_uint_eq(pairs[5].value, 5);
	end();
}
END_TEST

static void die(void)
{
	fake_kill(&fake);
	fake.control->daemon_start = 1; /* no process began then */
	fake_reset(&fake);
}

START_TEST(what_is_mapped_is_read_on_without_a_daemon)
{
	struct stoup_error err;

	begin_with(1, STOUP_NO_RECONNECT);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT);
	expect_span(0, 2);
	atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
	die();
	expect_span(2, 4);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	stoup_cursor_close(cur);
	/* Another scan as well: all that it needs is here. */
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT | STOUP_BACKWARD);
	expect_span(2, 4);
	expect_span(0, 2);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.direct_cnt, 4);
	ck_assert_uint_eq(stats.direct_alone_cnt, 3);
	ck_assert_int_eq(stoup_health(st, &err), -EPIPE);
	end();
}
END_TEST

START_TEST(a_scan_that_needs_a_file_goes_to_the_daemon_that_comes_after)
{
	begin_with(0, 0);
	ck_assert_int_eq(stoup_health(st, NULL), 0);
	die();
	fake_volume(&fake, 1, 0, 3, plain, 1);
	fake_file(&fake, 0, 1);
	fake_start(&fake, "p");
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT);
	expect_span(0, 2);
	expect_span(2, 4);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	ck_assert_uint_eq(fake.file_cnt, 1);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.reconnect_cnt, 1);
	ck_assert_uint_eq(stats.direct_alone_cnt, 0);
	end();
}
END_TEST

START_TEST(a_volume_is_mapped_once_whatever_daemon_serves_it)
{
	begin_with(0, 0);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT);
	expect_span(0, 6);
	stoup_cursor_close(cur);
	die();
	fake_volume(&fake, 1, 0, 3, plain, 1);
	fake_file(&fake, 0, 0);
	fake_start(&fake, "p");
	ck_assert_int_eq(stoup_refresh(st, NULL), 1);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_DIRECT);
	expect_span(0, 6);
	ck_assert_uint_eq(fake.file_cnt, 1);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_direct");
	TCase *spans = tcase_create("spans"), *refused = tcase_create("refused"),
	      *life = tcase_create("life");

	tcase_add_test(spans, records_that_lie_one_behind_the_other_are_one_span);
	tcase_add_test(spans, a_gap_in_the_file_ends_a_span_in_both_directions);
	tcase_add_test(spans, every_range_has_the_records_of_a_scan_from_the_pool);
	tcase_add_test(refused, what_is_compressed_is_told_or_read_from_the_pool);
	tcase_add_test(refused, a_file_that_is_short_or_another_one_is_told);
	tcase_add_test(life, holding_costs_nothing_and_is_counted_like_any_lease);
	tcase_add_test(life, what_is_mapped_is_read_on_without_a_daemon);
	tcase_add_test(life, a_scan_that_needs_a_file_goes_to_the_daemon_that_comes_after);
	tcase_add_test(life, a_volume_is_mapped_once_whatever_daemon_serves_it);
	suite_add_tcase(suite, spans);
	suite_add_tcase(suite, refused);
	suite_add_tcase(suite, life);
	return fake_main(suite);
}
