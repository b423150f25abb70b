/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_follow.c - cursors over a store that changes: those that follow, and bounded ones whose daemon ends.
 *
 *      rescan     volumes of a random pool are shown one after the other
 *      restart    the next daemon has volumes before and behind those of the first one as well
 */
#include "tests/unit/test_consumer_random.h"

static struct fake fake;
static struct stoup *st;
static struct stoup_cursor *cur;
static struct stoup_span span;
static uint32_t expected[NAIVE_CAP];

static void attach(uint32_t flags)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.flags = flags;
	opt.ahead_cnt = 4;
	opt.timeout_ns = opt.reconnect_ns = 60000000000;
	st = fake_attach("p", &opt);
}

static struct stoup_cursor *scan(const char *name, struct stoup_range range)
{
	struct stoup_cursor *ret = NULL;
	struct stoup_series series;
	struct stoup_error err = {0};

	fake_check(stoup_series_find(st, name, &series, &err), &err);
	fake_check(stoup_scan(st, &series, &range, &ret, &err), &err);
	return ret;
}

/* ---- written down ---------------------------------------------------------------------------- */

static const struct fake_series days[][1] = {
	{{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 1, {10}}, {1, 2, {20, 20}}}}},
	{{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 2, {20, 30}}}}},
	{{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {40}}}}},
};

/* Day i has the values from i * 1,000,000 on. */
static void day(uint32_t i)
{
	fake_volume(&fake, i + 1, 0, 2, days[i], 1);
}

static void begin(struct stoup_range range)
{
	fake_init(&fake);
	day(0);
	fake_start(&fake, "p");
	attach(0);
	cur = scan("A/x", range);
}

static void next_day(uint32_t i)
{
	day(i);
	fake_rescan(&fake);
}

static void end(void)
{
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

/* Up to the end come records with these values. */
static void expect(uint32_t cnt, const uint64_t *values)
{
	uint32_t at = 0;
	int rc;

	while ((rc = stoup_next(cur, &span)) > 0)
		for (uint64_t i = 0; i < span.record_cnt; i++, at++) {
			ck_assert_uint_lt(at, cnt);
			ck_assert_uint_eq(value_at(&span, i), values[at]);
		}
	ck_assert_msg(rc == 0, "%d: %s", rc, stoup_cursor_error(cur)->text);
	ck_assert_uint_eq(at, cnt);
}

static const uint64_t day0[] = {0, 1, 2}, day1[] = {1000000, 1000001}, day2[] = {2000000};

START_TEST(a_cursor_goes_on_with_what_a_rescan_adds_and_other_cursors_do_not)
{
	struct stoup_cursor *other;

	begin((struct stoup_range){.flags = STOUP_FOLLOW});
	other = scan("A/x", (struct stoup_range){0});
	expect(3, day0);
	next_day(1);
	expect(2, day1);
	expect(0, NULL);
	next_day(2);
	expect(1, day2);
	stoup_cursor_close(cur);
	cur = other;
	expect(3, day0);
	expect(0, NULL);
	end();
}
END_TEST

START_TEST(a_cursor_that_had_nothing_yet_begins_with_what_is_added)
{
	begin((struct stoup_range){.from_ns = 21, .flags = STOUP_FOLLOW});
	expect(0, NULL);
	next_day(1);
	expect(1, day1 + 1);
	next_day(2);
	expect(1, day2);
	end();
}
END_TEST

START_TEST(a_limit_ends_what_is_followed_for_good)
{
	begin((struct stoup_range){.flags = STOUP_FOLLOW, .limit = 4});
	expect(3, day0);
	next_day(1);
	expect(1, day1);
	next_day(2);
	expect(0, NULL);
	end();
}
END_TEST

START_TEST(the_last_ones_are_followed_by_all_that_comes)
{
	begin((struct stoup_range){.flags = STOUP_FOLLOW | STOUP_LAST, .limit = 1});
	expect(1, day0 + 2);
	next_day(1);
	expect(2, day1);
	ck_assert_int_eq(stoup_seek(cur, 0), 0);
	next_day(2);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(value_at(&span, 0), 2);
	end();
}
END_TEST

START_TEST(the_end_of_the_range_stays_the_end)
{
	begin((struct stoup_range){.to_ns = 20, .flags = STOUP_FOLLOW | STOUP_TO_INCLUDED});
	expect(3, day0);
	next_day(1);
	expect(1, day1);
	next_day(2);
	expect(0, NULL);
	end();
}
END_TEST

START_TEST(a_compacted_store_is_followed_at_the_same_record)
{
	static const struct fake_series whole[] = {
		{.name = "A/x",
			.schema = "pair",
			.segment_cnt = 2,
			.segments = {{0, 4, {10, 20, 20, 20}}, {1, 2, {30, 40}}}},
	};

	begin((struct stoup_range){.flags = STOUP_FOLLOW});
	expect(3, day0);
	/* The same records, written anew; values tell them apart, so they are made equal. */
	fake_volume(&fake, 9, 0, 2, whole, 1);
	for (uint32_t i = 0; i < 4; i++)
		((struct pair *)(void *)fake.volumes[1].blocks[0].bytes)[i].value = i;
	fake_retire(&fake, 0);
	fake_rescan(&fake);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 3);
	ck_assert_uint_eq(value_at(&span, 0), 3);
	end();
}
END_TEST

START_TEST(a_store_that_lost_the_record_is_told_of)
{
	begin((struct stoup_range){.flags = STOUP_FOLLOW});
	expect(3, day0);
	fake_retire(&fake, 0);
	next_day(1);
	ck_assert_int_eq(stoup_next(cur, &span), -ESTALE);
	ck_assert_msg(strstr(stoup_cursor_error(cur)->text, "rescanned") != NULL, "%s",
		stoup_cursor_error(cur)->text);
	ck_assert_int_eq(stoup_next(cur, &span), -ESTALE);
	ck_assert_int_eq(stoup_seek(cur, 1), -ESTALE);
	end();
}
END_TEST

START_TEST(without_going_on_after_daemons_a_cursor_follows_all_the_same)
{
	begin((struct stoup_range){0});
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	attach(STOUP_NO_RECONNECT);
	cur = scan("A/x", (struct stoup_range){.flags = STOUP_FOLLOW});
	expect(3, day0);
	next_day(1);
	expect(2, day1);
	end();
}
END_TEST

START_TEST(files_of_later_volumes_are_mapped_and_a_compressed_one_is_told_of)
{
	static const uint32_t ways[] = {STOUP_DIRECT, STOUP_DIRECT_OR_POOL};
	struct stoup_catalog_block *blocks;

	for (uint32_t w = 0; w < 2; w++) {
		begin((struct stoup_range){0});
		stoup_cursor_close(cur);
		fake_file(&fake, 0, 0);
		cur = scan("A/x", (struct stoup_range){.flags = STOUP_FOLLOW | ways[w]});
		expect(3, day0);
		ck_assert_uint_eq(span.session_no, STOUP_SESSION_NONE);
		day(1);
		fake_file(&fake, 1, 0);
		fake_rescan(&fake);
		expect(2, day1);
		ck_assert_uint_eq(span.session_no, STOUP_SESSION_NONE);
		day(2);
		blocks = (void *)((char *)fake.volumes[2].catalog +
				  fake.volumes[2].catalog->block_off);
		blocks[0].codec = 1;
		fake_rescan(&fake);
		if (ways[w] == STOUP_DIRECT) {
			ck_assert_int_eq(stoup_next(cur, &span), -ENOTSUP);
			ck_assert_int_eq(stoup_next(cur, &span), -ENOTSUP);
			ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
			blocks[0].codec = 0;
			fake_file(&fake, 2, 0);
		}
		expect(1, day2);
		ck_assert_int_eq(span.session_no == STOUP_SESSION_NONE, ways[w] == STOUP_DIRECT);
		end();
	}
}
END_TEST

/* Nothing was handed out: nothing has to be found again in the pool. */
START_TEST(lookups_go_over_to_the_pool_where_a_later_file_cannot_be_mapped)
{
	struct stoup_catalog_block *blocks;

	begin((struct stoup_range){0});
	stoup_cursor_close(cur);
	fake_file(&fake, 0, 0);
	cur = scan("A/x", (struct stoup_range){.flags = STOUP_FOLLOW | STOUP_DIRECT_OR_POOL});
	ck_assert_int_eq(stoup_asof(cur, 100, &span), 1);
	ck_assert_uint_eq(value_at(&span, 0), 2);
	day(1);
	blocks = (void *)((char *)fake.volumes[1].catalog + fake.volumes[1].catalog->block_off);
	blocks[0].codec = 1;
	fake_rescan(&fake);
	ck_assert_int_eq(stoup_asof(cur, 100, &span), 1);
	ck_assert_uint_eq(value_at(&span, 0), 1000001);
	ck_assert_int_eq(stoup_seek(cur, 20), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(value_at(&span, 0), 1);
	end();
}
END_TEST

/* It reads files without a daemon; what is later, only a daemon tells. */
START_TEST(one_that_follows_in_files_notices_the_end_of_its_daemon)
{
	for (uint32_t looks_up = 0; looks_up < 2; looks_up++) {
		begin((struct stoup_range){0});
		stoup_cursor_close(cur);
		fake_file(&fake, 0, 0);
		cur = scan("A/x", (struct stoup_range){.flags = STOUP_FOLLOW | STOUP_DIRECT});
		expect(3, day0);
		ck_assert_int_eq(stoup_asof(cur, 100, &span), 1);
		atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
		fake_kill(&fake);
		fake.control->daemon_start = 1; /* no process began then */
		st->opt.flags |= STOUP_NO_RECONNECT;
		ck_assert_int_eq(stoup_asof(cur, 19, &span), 1);
		ck_assert_int_eq(stoup_asof(cur, 100, &span), -EPIPE);
		ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "stopped"));
		ck_assert_int_eq(stoup_next(cur, &span), -EPIPE);
		ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "stopped"));
		st->opt.flags &= ~STOUP_NO_RECONNECT;
		fake_reset(&fake);
		day(0);
		day(1);
		fake_file(&fake, 0, 0);
		fake_file(&fake, 1, 0);
		fake_start(&fake, "p");
		if (looks_up) {
			ck_assert_int_eq(stoup_asof(cur, 100, &span), 1);
			ck_assert_uint_eq(value_at(&span, 0), 1000001);
		}
		expect(2, day1);
		end();
	}
}
END_TEST

/* ---- waiting for news ------------------------------------------------------------------------ */

static void *rescan_later(void *unused)
{
	(void)unused;
	usleep(50000);
	next_day(1);
	return NULL;
}

static void news(uint64_t timeout_ns, int wanted)
{
	struct stoup_error err = {0};
	int rc = stoup_wait_news(st, timeout_ns, &err);

	ck_assert_msg(rc == wanted, "%d: %s", rc, err.text);
}

START_TEST(a_wait_ends_with_news_or_in_time)
{
	const uint64_t long_ns = UINT64_C(60000000000);
	pthread_t thread;

	begin((struct stoup_range){.flags = STOUP_FOLLOW});
	expect(3, day0);
	news(0, 0);
	news(1000000, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, rescan_later, NULL), 0);
	news(long_ns, 1);
	pthread_join(thread, NULL);
	/* It was only told. */
	news(UINT64_MAX, 1);
	expect(2, day1);
	news(0, 0);
	/* Taken by somebody else, and not yet looked at here. */
	next_day(2);
	ck_assert_int_eq(stoup_refresh(st, NULL), 1);
	news(long_ns, 1);
	expect(1, day2);
	news(0, 0);
	end();
}
END_TEST

START_TEST(the_next_daemon_is_news)
{
	begin((struct stoup_range){.flags = STOUP_FOLLOW});
	expect(3, day0);
	fake_kill(&fake);
	fake.control->daemon_start = 1; /* no process began then */
	fake_reset(&fake);
	day(0);
	day(1);
	fake_start(&fake, "p");
	news(UINT64_C(60000000000), 1);
	expect(2, day1);
	news(0, 0);
	end();
}
END_TEST

START_TEST(a_daemon_that_ended_or_is_silent_is_told_of)
{
	struct stoup_error err = {0};

	begin((struct stoup_range){.flags = STOUP_FOLLOW});
	atomic_store(&fake.control->heartbeat_ns, stoup_client_now() - 5000000000);
	ck_assert_int_eq(stoup_wait_news(st, 1000000000, &err), -ETIME);
	ck_assert_ptr_nonnull(strstr(err.text, "silent"));
	atomic_store(&fake.control->heartbeat_ns, stoup_client_now());
	st->opt.flags |= STOUP_NO_RECONNECT;
	atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
	ck_assert_int_eq(stoup_wait_news(st, 1000000000, &err), -EPIPE);
	ck_assert_ptr_nonnull(strstr(err.text, "stopped"));
	ck_assert_int_eq(stoup_wait_news(NULL, 0, &err), -EINVAL);
	end();
}
END_TEST

/* ---- random ---------------------------------------------------------------------------------- */

/* Span by span: at most `spans` of them; *at counts on. 0 at the end. */
static int take(const struct naive *n, uint64_t first, const struct stoup_range *range,
	uint32_t cnt, uint32_t spans, uint32_t *at)
{
	int rc = 1;

	while (spans-- > 0 && (rc = stoup_next(cur, &span)) > 0)
		expect_part_from(n, first, range, &span, expected, cnt, at);
	ck_assert_msg(rc >= 0, "%s: %s", random_text(n, range), stoup_cursor_error(cur)->text);
	return rc;
}

/* Volumes appear one by one; the cursor looks at some of the times, and has all in the end. */
static void follow_one(uint64_t seed)
{
	int64_t highs[RANDOM_SERIES_CNT] = {0};
	uint32_t shown, before, cnt, at = 0;
	const struct naive *n;
	struct stoup_range range;

	random_begin(seed);
	fake_init(&fake);
	random_volumes(&fake, 2 + random_below(4), seed % 2, highs);
	for (uint32_t v = 0; v < fake.volume_cnt; v++)
		fake.volumes[v].born_seq = v + 1;
	fake_start(&fake, "p");
	attach(0);
	n = &naives[random_below(RANDOM_SERIES_CNT - 1)];
	range = random_range(n);
	range.flags = (range.flags | STOUP_FOLLOW) & ~STOUP_BACKWARD;
	cnt = naive_scan(naive_without(n, ~1u), &range, expected);
	if (range.flags & STOUP_LAST) {
		/* The last ones of volume 0, and then all that follow. */
		uint32_t kept = cnt;
		struct stoup_range open = range;

		open.limit = 0;
		before = naive_scan(naive_without(n, ~1u), &open, expected) - kept;
		cnt = naive_scan(n, &open, expected) - before;
		memmove(expected, expected + before, cnt * sizeof(*expected));
	} else {
		cnt = naive_scan(n, &range, expected);
	}
	cur = scan(n->name, range);
	/* Which ones are the last is settled here. */
	take(n, 0, &range, cnt, random_below(2) + ((range.flags & STOUP_LAST) != 0), &at);
	for (shown = 1; shown < fake.volume_cnt; shown++) {
		fake_rescan(&fake);
		take(n, 0, &range, cnt, random_below(6), &at);
	}
	ck_assert_int_eq(take(n, 0, &range, cnt, UINT32_MAX, &at), 0);
	ck_assert_msg(at == cnt, "%s: %u of %u", random_text(n, &range), at, cnt);
	end();
}

START_TEST(what_is_followed_is_the_whole_range_whenever_one_looks)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		follow_one(seed);
}
END_TEST

/* All volumes of a seed; those whose bits are in `hidden` are not served. */
static void pool_of(uint64_t seed, uint32_t hidden)
{
	int64_t highs[RANDOM_SERIES_CNT] = {0};

	random_begin(seed);
	random_volumes(&fake, 4, 0, highs);
	for (uint32_t v = 0; v < fake.volume_cnt; v++)
		fake.volumes[v].born_seq = hidden >> v & 1 ? 100 : 1;
	fake_start(&fake, "p");
}

/* What a scan has that handed something out before the daemon's end (or nothing). */
static uint32_t unseen(const struct stoup_range *range, uint32_t hidden, int handed)
{
	int last = (range->flags & STOUP_LAST) != 0, back = (range->flags & STOUP_BACKWARD) != 0;
	uint32_t before = hidden & 1, behind = hidden & 8;

	if (!handed)
		return 0;
	/* Forward, what came to stand before it is passed; which ones are the last is settled. */
	if (!back)
		return before | (last ? behind : 0);
	return behind | (last || (range->flags & STOUP_ORDINALS) ? before : 0);
}

static uint32_t stale_cnt;

/* Where ordinals cut between ties of several segments, records that come to stand before them move what is counted: the
 * one case in which the cursor can not tell its place, and says so. */
static int may_be_stale(const struct stoup_range *range, uint32_t hidden, uint32_t handed)
{
	return handed > 0 && (hidden & 1) && (range->flags & (STOUP_LAST | STOUP_ORDINALS));
}

static void restart_one(uint64_t seed)
{
	const uint32_t hides[] = {0, 1, 8, 9};
	uint32_t hidden = hides[seed % 4]; /* volumes, as bits */
	uint32_t cnt, at = 0, spans, again = 0;
	uint64_t first;
	const struct naive *n, *part;
	struct stoup_range range;
	int64_t key = 0;
	int seeks, rc;

	fake_init(&fake);
	pool_of(seed, hidden);
	attach(0);
	/* Records of a series that kept its order are found by number: nothing may come before them. */
	n = &naives[random_below(hidden & 1 ? 3 : 4)];
	part = naive_without(n, hidden);
	range = random_range(part);
	range.flags &= ~(STOUP_DIRECT | STOUP_DIRECT_OR_POOL);
	cur = scan(n->name, range);
	seeks = random_below(3) == 0;
	if (seeks) {
		key = random_key(part);
		cnt = naive_scan(part, &range, expected);
		take(part, 0, &range, cnt, random_below(3), &again);
		ck_assert_int_eq(stoup_seek(cur, key), 0);
	}
	cnt = seeks ? naive_seek(part, &range, key, expected) : naive_scan(part, &range, expected);
	spans = random_below(4);
	take(part, 0, &range, cnt, spans, &at);
	/* Else the end of the scan may be told before the daemon's is seen. */
	atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
	fake_kill(&fake);
	fake.control->daemon_start = 1; /* no process began then */
	fake_reset(&fake);
	pool_of(seed, 0);
	first = unseen(&range, hidden, at > 0) & 1 ? n->cnt - naive_without(n, 1)->cnt : 0;
	part = naive_without(n, unseen(&range, hidden, at > 0));
	cnt = seeks ? naive_seek(part, &range, key, expected) : naive_scan(part, &range, expected);
	rc = stoup_next(cur, &span);
	if (rc == -ESTALE && may_be_stale(&range, hidden, at)) {
		stale_cnt++;
		end();
		return;
	}
	if (rc > 0)
		expect_part_from(part, first, &range, &span, expected, cnt, &at);
	ck_assert_int_eq(take(part, first, &range, cnt, UINT32_MAX, &at), 0);
	ck_assert_msg(at == cnt, "%s: %u of %u", random_text(n, &range), at, cnt);
	end();
}

START_TEST(a_bounded_scan_goes_on_after_its_daemons_end_and_keeps_its_bounds)
{
	random_gap = 1;
	for (uint64_t seed = 1; seed <= 500; seed++)
		restart_one(seed);
	random_gap = 0;
	ck_assert_uint_le(stale_cnt, 8);
}
END_TEST

START_TEST(what_is_settled_first_outlives_the_daemon_as_well)
{
	struct stoup_series series;
	struct stoup_count count;
	struct stoup_array array;
	struct stoup_error err = {0};
	const struct stoup_range middle = {.from_ns = 15, .to_ns = 40, .limit = 1};

	begin((struct stoup_range){0});
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
	for (uint32_t i = 0; i < 2; i++) {
		fake_kill(&fake);
		fake.control->daemon_start = 1;
		fake_reset(&fake);
		day(0);
		day(1);
		fake_start(&fake, "p");
		if (i == 0) {
			fake_check(stoup_count(st, &series, &middle, 1, &count, &err), &err);
			ck_assert_uint_eq(count.record_min, 1);
			continue;
		}
		fake_check(stoup_array(st, &series, &middle, &array, &err), &err);
		ck_assert_uint_eq(array.record_cnt, 1);
		ck_assert_uint_eq(((const struct pair *)array.base)->value, 1);
		ck_assert_int_eq(stoup_array_release(&array), 0);
	}
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_follow");
	TCase *follow = tcase_create("follow"), *wait = tcase_create("wait"),
	      *naive = tcase_create("naive");

	tcase_set_timeout(wait, 90);
	tcase_set_timeout(naive, 120);
	tcase_add_test(follow, a_cursor_goes_on_with_what_a_rescan_adds_and_other_cursors_do_not);
	tcase_add_test(follow, a_cursor_that_had_nothing_yet_begins_with_what_is_added);
	tcase_add_test(follow, a_limit_ends_what_is_followed_for_good);
	tcase_add_test(follow, the_last_ones_are_followed_by_all_that_comes);
	tcase_add_test(follow, the_end_of_the_range_stays_the_end);
	tcase_add_test(follow, a_compacted_store_is_followed_at_the_same_record);
	tcase_add_test(follow, a_store_that_lost_the_record_is_told_of);
	tcase_add_test(follow, without_going_on_after_daemons_a_cursor_follows_all_the_same);
	tcase_add_test(follow, files_of_later_volumes_are_mapped_and_a_compressed_one_is_told_of);
	tcase_add_test(follow, lookups_go_over_to_the_pool_where_a_later_file_cannot_be_mapped);
	tcase_add_test(follow, one_that_follows_in_files_notices_the_end_of_its_daemon);
	tcase_add_test(wait, a_wait_ends_with_news_or_in_time);
	tcase_add_test(wait, the_next_daemon_is_news);
	tcase_add_test(wait, a_daemon_that_ended_or_is_silent_is_told_of);
	tcase_add_test(naive, what_is_followed_is_the_whole_range_whenever_one_looks);
	tcase_add_test(naive, a_bounded_scan_goes_on_after_its_daemons_end_and_keeps_its_bounds);
	tcase_add_test(naive, what_is_settled_first_outlives_the_daemon_as_well);
	suite_add_tcase(suite, follow);
	suite_add_tcase(suite, wait);
	suite_add_tcase(suite, naive);
	return fake_main(suite);
}
