/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_asof.c - as-of lookups against the small conductor and a naive reference: random series with ties
 * over the borders of segments, volumes and the range, one-record segments, gaps; sorted ones and those that
 * kept their order; bars; from the pool and from the volume's file; over the ends of daemons.
 *
 * The reference copies a series out by one plain scan and walks it for each time. */
#include "consumer/cursor.h"
#include "tests/unit/test_consumer_fake.h"

#define RECORD_CAP 2048u
#define QUERY_CNT  10000u
#define SERIES_CNT 12u /* random ones per test */
#define UNDEFINED  INT64_MAX
#define INTERVAL   INT64_C(7)

static struct fake fake;
static struct fake_series plan;
static struct stoup *st;
static struct stoup_cursor *cur;
static uint64_t seed;

static uint64_t rnd(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* ---- series ---------------------------------------------------------------------------------- */

enum kind {
	SORTED,
	KEPT,
	BARS
};

/* The next key: often the same. */
static int64_t key_next(int64_t key)
{
	static const int64_t steps[] = {0, 0, 0, 1, 2, 3, 50, 1000};

	return key + steps[rnd(8)];
}

/* As written in a file that kept its order: sometimes earlier, sometimes undefined. */
static int64_t key_written(enum kind kind, int64_t key, int first)
{
	if (kind != KEPT || first)
		return key;
	if (rnd(11) == 0)
		return UNDEFINED;
	return rnd(3) == 0 && key > 40 ? key - (int64_t)rnd(40) : key;
}

/* One volume whose keys go on from *key on; touching it, where chance says so. */
static struct fake_volume *volume_make(uint64_t seq, enum kind kind, int64_t *key)
{
	struct fake_volume *v;
	int first = 1;

	plan = (struct fake_series){
		.name = "A/x", .schema = "pair", .segment_cnt = 1 + (uint32_t)rnd(FAKE_BLOCK_CAP)};
	plan.flags = kind == KEPT ? STOUP_CATALOG_KEEP_ORDER : 0;
	for (uint32_t s = 0; s < plan.segment_cnt; s++) {
		static const uint32_t cnts[] = {1, 1, 1, 2, 16, 16};
		struct fake_segment *seg = &plan.segments[s];

		seg->block = s;
		seg->cnt = cnts[rnd(6)];
		for (uint32_t i = 0; i < seg->cnt; i++) {
			*key = key_next(*key);
			seg->keys[i] = key_written(kind, *key, first);
			first = 0;
		}
	}
	v = fake_volume(&fake, seq, 0, plan.segment_cnt, &plan, 1);
	return v;
}

/* What an index says of records that kept their order: running maxima, undefined keys left out. */
static void index_mend(struct fake_volume *v)
{
	struct stoup_catalog_segment *segments =
		(void *)((char *)v->catalog + v->catalog->segment_off);
	struct stoup_catalog_series *row = (void *)((char *)v->catalog + v->catalog->series_off);
	int64_t highest = 0;
	int any = 0;

	for (uint32_t s = 0; s < row->segment_cnt; s++) {
		for (uint32_t i = 0; i < plan.segments[s].cnt; i++) {
			int64_t key = plan.segments[s].keys[i];

			if (key != UNDEFINED && key > highest)
				highest = key;
			if (i == 0)
				segments[s].first_key = highest;
			segments[s].last_key = highest;
			if (!any)
				row->first_key = highest;
			row->last_key = highest;
			any = 1;
		}
	}
}

/* Its key is the time of its opening. */
static void make_bars(struct fake_volume *v)
{
	struct stoup_catalog_schema *row = (void *)((char *)v->catalog + v->catalog->schema_off);
	struct stoup_schema schema = {.stride = 16,
		.align = 8,
		.flags = STOUP_SCHEMA_BAR,
		.interval_ns = (uint64_t)INTERVAL,
		.field_cnt = 2,
		.fields = fake_fields};

	strcpy(schema.name, "pair");
	row->flags = STOUP_SCHEMA_BAR;
	row->interval_ns = (uint64_t)INTERVAL;
	row->hash = stoup_schema_hash(&schema);
}

static void series_add(enum kind kind)
{
	uint32_t cnt = 1 + (uint32_t)rnd(3);
	int64_t key = 1 + (int64_t)rnd(60);

	for (uint32_t i = 0; i < cnt; i++) {
		struct fake_volume *v = volume_make(i + 1, kind, &key);

		if (kind == KEPT)
			index_mend(v);
		if (kind == BARS)
			make_bars(v);
	}
}

static void begin_series(enum kind kind)
{
	fake_init(&fake);
	series_add(kind);
}

static void begin_pool(void)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.ahead_cnt = rnd(2) ? 4 : UINT32_MAX;
	opt.reconnect_ns = 60000000000;
	fake_start(&fake, "p");
	st = fake_attach("p", &opt);
}

static void end(void)
{
	stoup_cursor_close(cur);
	if (fake.peer_cnt > 0)
		ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

/* ---- the reference --------------------------------------------------------------------------- */

static struct {
	struct pair pairs[RECORD_CAP];
	uint64_t cnt;
	int64_t from_ns, to_ns; /* keys of the range; 0 = open */
	uint64_t begin, end;    /* ordinals of the range */
	int64_t later_ns;       /* from a key on until it is known */
} naive;

static void naive_read(int64_t later_ns)
{
	struct stoup_cursor *scan = fake_scan(st, "A/x", 0, 0);
	struct stoup_span span;
	int rc;

	naive.cnt = 0;
	naive.from_ns = naive.to_ns = 0;
	naive.begin = 0;
	naive.end = UINT64_MAX;
	naive.later_ns = later_ns;
	while ((rc = stoup_next(scan, &span)) > 0) {
		ck_assert_uint_eq(span.ordinal, naive.cnt);
		memcpy(&naive.pairs[naive.cnt], span.base, span.record_cnt * 16);
		naive.cnt += span.record_cnt;
	}
	ck_assert_int_eq(rc, 0);
	stoup_cursor_close(scan);
}

/* The last record of the range, in the order of the file, whose greatest key so far was known at time_ns (or before
 * it, `strict`): its ordinal, or -1. */
static int64_t naive_find(int64_t time_ns, int strict)
{
	int64_t highest = 0, found = -1;

	for (uint64_t i = 0; i < naive.cnt; i++) {
		int64_t key = naive.pairs[i].key;

		if (key != UNDEFINED && key > highest)
			highest = key;
		if (highest + naive.later_ns > time_ns ||
			(strict && highest + naive.later_ns == time_ns))
			break;
		if (naive.to_ns != 0 && highest >= naive.to_ns)
			break;
		if (highest >= naive.from_ns && i >= naive.begin && i < naive.end)
			found = (int64_t)i;
	}
	return found;
}

static void look(struct stoup_cursor *c, int64_t time_ns, int strict)
{
	int64_t expected = naive_find(time_ns, strict);
	struct stoup_span span = {.ordinal = 77};
	int rc = strict ? stoup_asof_before(c, time_ns, &span) : stoup_asof(c, time_ns, &span);

	ck_assert_msg(rc == (expected >= 0), "time %lld: %d (%s) instead of record %lld",
		(long long)time_ns, rc, stoup_cursor_error(c)->text, (long long)expected);
	if (rc == 0) {
		ck_assert_uint_eq(span.ordinal, 77);
		return;
	}
	ck_assert_msg(span.ordinal == (uint64_t)expected,
		"time %lld%s: record %llu instead of %lld", (long long)time_ns,
		strict ? ", before it" : "", (unsigned long long)span.ordinal, (long long)expected);
	ck_assert_uint_eq(span.record_cnt, 1);
	ck_assert_uint_eq(span.stride, 16);
	ck_assert_mem_eq(span.base, &naive.pairs[expected], 16);
}

/* Times on, beside and between keys, before the first and behind the last. */
static int64_t time_of(void)
{
	int64_t least = naive.cnt ? naive.pairs[0].key : 1, key;
	uint64_t way = rnd(8);

	if (naive.cnt == 0 || way == 0)
		return least - 3 + (int64_t)rnd(6);
	if (way == 1 && rnd(10) == 0)
		return rnd(2) ? INT64_MAX : INT64_MIN + (int64_t)rnd(2);
	key = naive.pairs[rnd(naive.cnt)].key;
	if (key == UNDEFINED)
		key = naive.from_ns + 1;
	return key + naive.later_ns - 2 + (int64_t)rnd(5);
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* QUERY_CNT in all over the series of a test: random, ascending, descending. */
static void look_all(struct stoup_cursor *c)
{
	static int64_t times[QUERY_CNT / SERIES_CNT + 1];
	uint64_t cnt = QUERY_CNT / SERIES_CNT + 1;

	for (uint64_t i = 0; i < cnt; i++)
		times[i] = time_of();
	for (uint64_t i = 0; i < cnt; i++)
		look(c, times[i], (int)(i & 1));
	qsort(times, cnt, sizeof(times[0]), ascending);
	for (uint64_t i = 0; i < cnt; i++)
		look(c, times[i], (int)rnd(2));
	for (uint64_t i = cnt; i-- > 0;)
		look(c, times[i], (int)rnd(2));
}

/* ---- no difference --------------------------------------------------------------------------- */

/* A range, and what it means in keys and ordinals. */
static struct stoup_range range_random(enum kind kind, uint32_t flags)
{
	struct stoup_range range = {.flags = flags};
	uint64_t a = naive.cnt ? rnd(naive.cnt) : 0, b = naive.cnt ? rnd(naive.cnt) : 0;

	if (naive.cnt == 0 || rnd(5) == 0)
		return range;
	if (rnd(4) == 0) {
		range.flags |= STOUP_ORDINALS;
		range.from_ns = (int64_t)a;
		range.to_ns = rnd(3) ? (int64_t)(b < a ? a + 1 : b) : 0;
		naive.begin = a;
		naive.end = range.to_ns ? (uint64_t)range.to_ns : UINT64_MAX;
		return range;
	}
	if (rnd(3) && naive.pairs[a].key != UNDEFINED)
		range.from_ns = naive.pairs[a].key + (int64_t)rnd(2);
	if (rnd(3) && naive.pairs[b].key != UNDEFINED)
		range.to_ns = naive.pairs[b].key + (int64_t)rnd(2);
	if (range.to_ns != 0 && range.to_ns < range.from_ns)
		range.to_ns = range.from_ns + (int64_t)rnd(30);
	naive.from_ns = range.from_ns;
	naive.to_ns = range.to_ns;
	if (range.from_ns != 0 && rnd(3) == 0) {
		range.flags |= STOUP_FROM_AFTER;
		naive.from_ns++;
	}
	if (range.to_ns != 0 && rnd(3) == 0) {
		range.flags |= STOUP_TO_INCLUDED;
		naive.to_ns++;
	}
	/* The same keys, said as the times of their closes. */
	if (kind == BARS && rnd(2) && range.from_ns != 0 && range.to_ns != 0) {
		range.flags |= STOUP_AVAILABLE;
		range.from_ns += INTERVAL;
		range.to_ns += INTERVAL;
	}
	return range;
}

static void scan_range(const struct stoup_range *range)
{
	struct stoup_series series;
	struct stoup_error err;

	fake_check(stoup_series_find(st, "A/x", &series, &err), &err);
	fake_check(stoup_scan(st, &series, range, &cur, &err), &err);
}

static void compare(enum kind kind, uint32_t flags)
{
	for (uint32_t i = 0; i < SERIES_CNT; i++) {
		struct stoup_range range = {.flags = flags};

		begin_series(kind);
		for (uint32_t v = 0; flags & STOUP_DIRECT && v < fake.volume_cnt; v++)
			fake_file(&fake, v, (uint32_t)rnd(65536));
		begin_pool();
		naive_read(kind == BARS ? INTERVAL : 0);
		if (i > 0)
			range = range_random(kind, flags | (i % 3 == 1      ? STOUP_BACKWARD
								   : rnd(2) ? STOUP_FOLLOW
									    : 0));
		scan_range(&range);
		look_all(cur);
		end();
	}
}

START_TEST(no_lookup_differs_from_a_walk_over_the_records)
{
	seed = 11;
	compare(SORTED, 0);
}
END_TEST

START_TEST(records_that_kept_their_order_are_looked_up_by_their_running_maximum)
{
	seed = 12;
	compare(KEPT, 0);
}
END_TEST

START_TEST(a_bar_is_never_seen_before_its_close)
{
	struct stoup_span span;

	seed = 13;
	compare(BARS, 0);
	fake_init(&fake);
	plan = (struct fake_series){.name = "A/x",
		.schema = "pair",
		.segment_cnt = 2,
		.segments = {{0, 2, {100, 107}}, {1, 1, {114}}}};
	make_bars(fake_volume(&fake, 1, 0, 2, &plan, 1));
	begin_pool();
	cur = fake_scan(st, "A/x", 0, 0);
	/* Opened at 100, closed at 107. */
	ck_assert_int_eq(stoup_asof(cur, 106, &span), 0);
	ck_assert_int_eq(stoup_asof_before(cur, 107, &span), 0);
	ck_assert_int_eq(stoup_asof(cur, 107, &span), 1);
	ck_assert_uint_eq(span.ordinal, 0);
	ck_assert_int_eq(stoup_asof(cur, 120, &span), 1);
	ck_assert_uint_eq(span.ordinal, 1);
	ck_assert_int_eq(stoup_asof_before(cur, 121, &span), 1);
	ck_assert_uint_eq(span.ordinal, 1);
	ck_assert_int_eq(stoup_asof(cur, 121, &span), 1);
	ck_assert_uint_eq(span.ordinal, 2);
	end();
}
END_TEST

START_TEST(lookups_in_the_volumes_files_are_the_same)
{
	seed = 14;
	compare(SORTED, STOUP_DIRECT);
	compare(KEPT, STOUP_DIRECT);
}
END_TEST

/* ---- leases ---------------------------------------------------------------------------------- */

static const struct fake_series three[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 3,
		.segments = {{0, 4, {10, 20, 30, 40}}, {1, 3, {40, 40, 50}}, {2, 2, {60, 70}}}},
};

static void begin_three(void)
{
	seed = 15;
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 3, three, 1);
	begin_pool();
	cur = fake_scan(st, "A/x", 0, 0);
}

static uint64_t value_at(int64_t time_ns)
{
	struct stoup_span span;

	ck_assert_int_eq(stoup_asof(cur, time_ns, &span), 1);
	return ((const struct pair *)span.base)->value;
}

START_TEST(one_block_is_leased_as_long_as_answers_come_from_it_and_none_is_asked_for_in_vain)
{
	struct stoup_span span;

	begin_three();
	ck_assert_int_eq(stoup_asof(cur, 9, &span), 0);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_uint_eq(fake_log_cnt(&fake), 0);
	ck_assert_uint_eq(value_at(39), 2);
	ck_assert_uint_eq(value_at(10), 0);
	ck_assert_uint_eq(value_at(39), 2);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	ck_assert_int_eq(fake.volumes[0].blocks[0].load_cnt, 1);
	/* Ties over the border: the last one. */
	ck_assert_uint_eq(value_at(40), 5);
	ck_assert_uint_eq(value_at(59), 6);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	ck_assert_uint_eq(value_at(1000), 8);
	ck_assert_uint_eq(value_at(INT64_MAX), 8);
	ck_assert_int_eq(stoup_asof_before(cur, 40, &span), 1);
	ck_assert_uint_eq(span.ordinal, 2);
	ck_assert_int_eq(stoup_asof_before(cur, 10, &span), 0);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	end();
}
END_TEST

START_TEST(a_series_without_records_answers_no_time)
{
	static const struct fake_series nothing[] = {{.name = "A/x", .schema = "pair"}};
	struct stoup_span span;

	fake_init(&fake);
	fake_volume(&fake, 1, 0, 1, nothing, 1);
	begin_pool();
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_asof(cur, 5, &span), 0);
	ck_assert_int_eq(stoup_asof(cur, INT64_MAX, &span), 0);
	ck_assert_int_eq(stoup_asof_before(cur, INT64_MIN, &span), 0);
	end();
}
END_TEST

START_TEST(a_lookup_moves_no_scan_and_a_scan_no_lookup)
{
	struct stoup_span span, held;
	struct stoup_lease lease;
	uint64_t ordinal = 0;

	begin_three();
	for (int64_t time_ns = 65; stoup_next(cur, &span) > 0; time_ns -= 25) {
		ck_assert_uint_eq(span.ordinal, ordinal);
		ordinal += span.record_cnt;
		ck_assert_uint_eq(value_at(time_ns), time_ns == 65 ? 7 : time_ns == 40 ? 5 : 0);
	}
	ck_assert_uint_eq(ordinal, 9);
	/* What is held stays, whatever comes next. */
	ck_assert_int_eq(stoup_asof(cur, 25, &held), 1);
	ck_assert_int_eq(stoup_hold(&held, &lease), 0);
	ck_assert_uint_eq(value_at(65), 7);
	ck_assert_uint_eq(((const struct pair *)held.base)->value, 1);
	ck_assert_int_eq(stoup_release(&lease), 0);
	ck_assert_int_eq(stoup_hold(&held, &lease), -EINVAL);
	end();
}
END_TEST

START_TEST(what_fails_is_told_and_the_cursor_stays)
{
	struct stoup_span span;

	begin_three();
	ck_assert_int_eq(stoup_asof(NULL, 5, &span), -EINVAL);
	ck_assert_int_eq(stoup_asof_before(NULL, 5, &span), -EINVAL);
	fake.volumes[0].blocks[1].error = -EBADMSG;
	fake.volumes[0].blocks[1].act = FAKE_FAIL;
	ck_assert_uint_eq(value_at(15), 0);
	ck_assert_int_eq(stoup_asof(cur, 45, &span), -EBADMSG);
	ck_assert_int_eq(stoup_cursor_error(cur)->code, -EBADMSG);
	/* It is no segment of the scan that would be left out. */
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	ck_assert_uint_eq(value_at(15), 0);
	ck_assert_uint_eq(value_at(65), 7);
	fake.volumes[0].blocks[1].act = FAKE_GRANT;
	ck_assert_uint_eq(value_at(45), 5);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 0);
	end();
}
END_TEST

START_TEST(a_limit_is_of_scans_alone)
{
	const struct stoup_range range = {.limit = 2};
	struct stoup_span span;

	begin_three();
	stoup_cursor_close(cur);
	scan_range(&range);
	ck_assert_int_eq(stoup_asof(cur, 45, &span), -EINVAL);
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "limit"));
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	end();
}
END_TEST

START_TEST(a_seek_of_the_scan_does_not_move_the_range_of_lookups)
{
	struct stoup_span span;

	begin_three();
	ck_assert_int_eq(stoup_seek(cur, 60), 0);
	ck_assert_uint_eq(value_at(25), 1);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 7);
	end();
}
END_TEST

START_TEST(lookups_that_follow_see_what_a_rescan_adds)
{
	static const struct fake_series more[] = {
		{.name = "A/x",
			.schema = "pair",
			.segment_cnt = 2,
			.segments = {{0, 2, {70, 80}}, {1, 1, {90}}}},
	};
	const struct stoup_range range = {.flags = STOUP_FOLLOW};
	struct stoup_cursor *still;
	struct stoup_span span;

	begin_three();
	still = cur;
	scan_range(&range);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(value_at(85), 8);
	ck_assert_uint_eq(value_at(85), 8);
	fake_volume(&fake, 2, 0, 2, more, 1);
	fake_rescan(&fake);
	/* Nothing that was added can be before what was there. */
	ck_assert_uint_eq(value_at(65), 7);
	/* What was added begins with the last key. */
	ck_assert_uint_eq(value_at(70), 1000000);
	ck_assert_uint_eq(value_at(85), 1000001);
	ck_assert_uint_eq(value_at(95), 1000002);
	/* The scan goes on behind its first span. */
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 4);
	ck_assert_int_eq(stoup_asof(still, 85, &span), 1);
	ck_assert_uint_eq(span.ordinal, 8);
	stoup_cursor_close(still);
	end();
}
END_TEST

START_TEST(a_cursor_counts_what_it_looks_up)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};

	begin_three();
	for (int i = 0; i < 1000; i++)
		value_at(10 + i % 30);
	stoup_cursor_close(cur);
	cur = NULL;
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.record_cnt, 1000);
	end();
}
END_TEST

/* ---- daemons --------------------------------------------------------------------------------- */

/* The daemon is killed, as the kernel marks it, and its memory is forgotten. */
static void die(void)
{
	atomic_store(&fake.control->alive, UINT32_C(0x40000000));
	fake_kill(&fake);
	fake.control->daemon_start = 1; /* no process began then */
	fake_reset(&fake);
}

START_TEST(lookups_go_on_with_the_daemon_that_comes_after)
{
	static const struct fake_series more[] = {
		{.name = "A/x",
			.schema = "pair",
			.segment_cnt = 2,
			.segments = {{0, 1, {5}}, {1, 3, {10, 20, 90}}}},
	};
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_lease lease;
	struct stoup_span held;

	begin_three();
	ck_assert_uint_eq(value_at(45), 5);
	ck_assert_int_eq(stoup_asof(cur, 45, &held), 1);
	ck_assert_int_eq(stoup_hold(&held, &lease), 0);
	die();
	fake_volume(&fake, 1, 0, 2, more, 1);
	fake_start(&fake, "p");
	/* At the time that was just answered: the old daemon's word would be 5. */
	ck_assert_uint_eq(value_at(45), 2);
	ck_assert_uint_eq(value_at(7), 0);
	ck_assert_uint_eq(((const struct pair *)held.base)->value, 5);
	ck_assert_int_eq(stoup_release(&lease), 0);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.reconnect_cnt, 1);
	end();
}
END_TEST

START_TEST(every_place_of_a_random_series_outlives_its_daemon)
{
	seed = 16;
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t again = seed;

		begin_series(i % 2 ? KEPT : SORTED);
		begin_pool();
		naive_read(0);
		cur = fake_scan(st, "A/x", 0, 0);
		look_all(cur);
		die();
		/* The same series once more. */
		seed = again;
		series_add(i % 2 ? KEPT : SORTED);
		fake_start(&fake, "p");
		look_all(cur);
		end();
	}
}
END_TEST

START_TEST(a_scan_that_goes_over_takes_the_lookups_with_it_and_the_reverse)
{
	struct stoup_span span;

	for (int first = 0; first < 2; first++) {
		begin_three();
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		ck_assert_uint_eq(value_at(65), 7);
		die();
		fake_volume(&fake, 1, 0, 3, three, 1);
		fake_start(&fake, "p");
		if (first)
			ck_assert_uint_eq(value_at(25), 1);
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		ck_assert_uint_eq(span.ordinal, 4);
		ck_assert_uint_eq(value_at(65), 7);
		end();
	}
}
END_TEST

START_TEST(ordinals_of_a_range_move_with_the_records_that_were_read)
{
	static const struct fake_series before[] = {
		{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 2, {1, 2}}}},
	};
	const struct stoup_range range = {.from_ns = 2, .to_ns = 7, .flags = STOUP_ORDINALS};
	struct stoup_span span;

	begin_three();
	stoup_cursor_close(cur);
	scan_range(&range);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 2);
	ck_assert_int_eq(stoup_asof(cur, 29, &span), 0);
	ck_assert_uint_eq(value_at(30), 2);
	ck_assert_uint_eq(value_at(99), 6);
	die();
	fake_volume(&fake, 1, 0, 3, three, 1);
	fake_volume(&fake, 2, 0, 1, before, 1);
	fake_start(&fake, "p");
	/* Two records more in front: the same ones are meant. */
	ck_assert_uint_eq(value_at(99), 6);
	ck_assert_int_eq(stoup_asof(cur, 29, &span), 0);
	ck_assert_int_eq(stoup_asof(cur, 30, &span), 1);
	ck_assert_uint_eq(span.ordinal, 4);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 6);
	end();
}
END_TEST

START_TEST(without_another_daemon_the_end_is_told_and_later_ones_are_found)
{
	struct stoup_options opt;
	struct stoup_span span;

	seed = 17;
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 3, three, 1);
	fake_start(&fake, "p");
	stoup_options_init(&opt);
	opt.flags = STOUP_NO_RECONNECT;
	st = fake_attach("p", &opt);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_uint_eq(value_at(65), 7);
	die();
	ck_assert_int_eq(stoup_asof(cur, 65, &span), -EPIPE);
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "is dead"));
	ck_assert_int_eq(stoup_asof(cur, 65, &span), -EPIPE);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_asof");
	TCase *same = tcase_create("same"), *life = tcase_create("life");

	tcase_add_test(same, no_lookup_differs_from_a_walk_over_the_records);
	tcase_add_test(same, records_that_kept_their_order_are_looked_up_by_their_running_maximum);
	tcase_add_test(same, a_bar_is_never_seen_before_its_close);
	tcase_add_test(same, lookups_in_the_volumes_files_are_the_same);
	tcase_add_test(life,
		one_block_is_leased_as_long_as_answers_come_from_it_and_none_is_asked_for_in_vain);
	tcase_add_test(life, a_series_without_records_answers_no_time);
	tcase_add_test(life, a_lookup_moves_no_scan_and_a_scan_no_lookup);
	tcase_add_test(life, what_fails_is_told_and_the_cursor_stays);
	tcase_add_test(life, a_limit_is_of_scans_alone);
	tcase_add_test(life, a_seek_of_the_scan_does_not_move_the_range_of_lookups);
	tcase_add_test(life, lookups_that_follow_see_what_a_rescan_adds);
	tcase_add_test(life, a_cursor_counts_what_it_looks_up);
	tcase_add_test(life, lookups_go_on_with_the_daemon_that_comes_after);
	tcase_add_test(life, every_place_of_a_random_series_outlives_its_daemon);
	tcase_add_test(life, a_scan_that_goes_over_takes_the_lookups_with_it_and_the_reverse);
	tcase_add_test(life, ordinals_of_a_range_move_with_the_records_that_were_read);
	tcase_add_test(life, without_another_daemon_the_end_is_told_and_later_ones_are_found);
	tcase_set_timeout(same, 120);
	suite_add_tcase(suite, same);
	suite_add_tcase(suite, life);
	return fake_main(suite);
}
