/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_range.c - ranges by key and by ordinal, limits, seeks, counts and arrays against the naive answer:
 * 10,000 random queries of each form over random series, forward and backward, from the pool and from files. */
#include "tests/unit/test_consumer_random.h"

#define SEED_CNT  40
#define QUERY_CNT 10000

static struct fake fake;
static struct stoup *st;
static uint32_t expected[NAIVE_CAP];

static const struct stoup_options options = {
	.struct_len = sizeof(struct stoup_options), .ahead_cnt = 4, .timeout_ns = 60000000000};

static void begin(uint64_t seed)
{
	int64_t highs[RANDOM_SERIES_CNT] = {0};

	random_begin(seed);
	fake_init(&fake);
	random_volumes(&fake, 1 + random_below(4), seed % 2, highs);
	fake_start(&fake, "p");
	st = fake_attach("p", &options);
}

static void end(void)
{
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

static void find(const struct naive *n, struct stoup_series *ret)
{
	struct stoup_error err;

	fake_check(stoup_series_find(st, n->name, ret, &err), &err);
	ck_assert_uint_eq(ret->record_cnt, n->cnt);
}

static struct stoup_cursor *scan(const struct naive *n, const struct stoup_range *range)
{
	struct stoup_cursor *cur = NULL;
	struct stoup_series series;
	struct stoup_error err = {0};
	int rc;

	find(n, &series);
	rc = stoup_scan(st, &series, range, &cur, &err);
	ck_assert_msg(rc == 0, "%s: %s", random_text(n, range), err.text);
	return cur;
}

/* The cursor hands out `expected`, all or the first `stop` records and a little. */
static uint32_t drain(const struct naive *n, const struct stoup_range *range,
	struct stoup_cursor *cur, uint32_t cnt, uint32_t stop)
{
	struct stoup_span span;
	uint32_t at = 0;
	int rc = 1;

	while (at < stop && (rc = stoup_next(cur, &span)) > 0)
		expect_part(n, range, &span, expected, cnt, &at);
	ck_assert_msg(rc >= 0, "%s: %s", random_text(n, range), stoup_cursor_error(cur)->text);
	if (at < stop)
		ck_assert_msg(
			at == cnt, "%s: %u records instead of %u", random_text(n, range), at, cnt);
	return at;
}

typedef void query_fn(const struct naive *n, const struct stoup_range *range);

/* Queries of one form, over all seeds. */
static void ask(query_fn *query)
{
	for (uint64_t seed = 1; seed <= SEED_CNT; seed++) {
		begin(seed);
		for (uint32_t q = 0; q < QUERY_CNT / SEED_CNT; q++) {
			const struct naive *n = &naives[random_below(RANDOM_SERIES_CNT)];
			struct stoup_range range = random_range(n);

			query(n, &range);
		}
		end();
	}
}

/* ---- scans ----------------------------------------------------------------------------------- */

static void query_scan(const struct naive *n, const struct stoup_range *range)
{
	struct stoup_cursor *cur = scan(n, range);
	struct stoup_span span;

	drain(n, range, cur, naive_scan(n, range, expected), UINT32_MAX);
	/* The end stays the end. */
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	stoup_cursor_close(cur);
}

START_TEST(a_scan_has_the_records_of_its_range)
{
	ask(query_scan);
}
END_TEST

static void query_seek(const struct naive *n, const struct stoup_range *range)
{
	struct stoup_cursor *cur = scan(n, range);

	drain(n, range, cur, naive_scan(n, range, expected), random_below(20));
	for (uint32_t i = 0; i < 3; i++) {
		int64_t key = random_below(20)  ? random_key(n)
		              : random_below(2) ? INT64_MAX
		                                : INT64_MIN;

		ck_assert_int_eq(stoup_seek(cur, key), 0);
		drain(n, range, cur, naive_seek(n, range, key, expected),
			random_below(3) ? UINT32_MAX : random_below(20));
	}
	stoup_cursor_close(cur);
}

START_TEST(a_seek_goes_to_its_key_within_the_range)
{
	ask(query_seek);
}
END_TEST

/* ---- counts ---------------------------------------------------------------------------------- */

static void check_count(const struct naive *n, const struct stoup_range *range,
	const struct stoup_count *count, uint32_t cnt)
{
	uint32_t first = UINT32_MAX, segments = 0, volumes = 0;
	const struct naive_record *before = NULL;

	ck_assert_msg(count->record_min <= cnt && cnt <= count->record_max,
		"%s: %u records are not within %llu to %llu", random_text(n, range), cnt,
		(unsigned long long)count->record_min, (unsigned long long)count->record_max);
	if (count->exact)
		ck_assert_uint_eq(count->record_min, count->record_max);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct naive_record *r = &n->records[expected[i]];

		first = expected[i] < first ? expected[i] : first;
		segments += !before || r->segment != before->segment;
		volumes += !before || r->volume != before->volume;
		before = r;
		ck_assert_msg(count->first_key <= r->high && r->high <= count->last_key,
			"%s: key %lld is not within %lld to %lld", random_text(n, range),
			(long long)r->high, (long long)count->first_key,
			(long long)count->last_key);
	}
	if (cnt > 0)
		ck_assert_msg(count->ordinal_min <= first && first <= count->ordinal_max,
			"%s: ordinal %u is not within %llu to %llu", random_text(n, range), first,
			(unsigned long long)count->ordinal_min,
			(unsigned long long)count->ordinal_max);
	ck_assert_uint_ge(count->segment_cnt, segments);
	ck_assert_uint_ge(count->volume_cnt, volumes);
	ck_assert(count->raw_len > 0 || segments == 0);
	/* What the index knows no better is two segments at most. */
	ck_assert_uint_le(count->segment_cnt, segments + (range->limit ? 4 : 2));
}

static void query_count(const struct naive *n, const struct stoup_range *range)
{
	struct stoup_count rough, exact;
	struct stoup_series series;
	struct stoup_error err = {0};
	uint32_t cnt = naive_scan(n, range, expected), loads = fake_log_cnt(&fake);
	int rc;

	find(n, &series);
	fake_check(stoup_count(st, &series, range, 0, &rough, &err), &err);
	ck_assert_uint_eq(fake_log_cnt(&fake), loads);
	check_count(n, range, &rough, cnt);
	/* Ordinals need no block, nor does a range that ends where it begins. */
	if ((range->flags & STOUP_ORDINALS) ||
		(range->from_ns > 0 && range->from_ns == range->to_ns &&
			!(range->flags & STOUP_TO_INCLUDED)))
		ck_assert_int_eq(rough.exact, 1);
	rc = stoup_count(st, &series, range, 1, &exact, &err);
	ck_assert_msg(rc == 0, "%s: %s", random_text(n, range), err.text);
	ck_assert_int_eq(exact.exact, 1);
	check_count(n, range, &exact, cnt);
	if (cnt > 0) {
		ck_assert_uint_eq(exact.ordinal_min, exact.ordinal_max);
		ck_assert_uint_le(exact.segment_cnt, rough.segment_cnt);
	}
}

START_TEST(a_count_is_right_or_says_how_far)
{
	ask(query_count);
}
END_TEST

/* ---- arrays ---------------------------------------------------------------------------------- */

static void query_array(const struct naive *n, const struct stoup_range *asked)
{
	struct stoup_range range = *asked;
	struct stoup_array array = {0};
	struct stoup_series series;
	struct stoup_error err = {0};
	uint32_t cnt, one = 1;
	int rc;

	range.flags &= ~STOUP_BACKWARD;
	cnt = naive_scan(n, &range, expected);
	for (uint32_t i = 1; i < cnt; i++)
		one &= n->records[expected[i]].segment == n->records[expected[0]].segment;
	find(n, &series);
	rc = stoup_array(st, &series, &range, &array, &err);
	if (series.schema->stride == 0) {
		ck_assert_int_eq(rc, -ENOTSUP);
		return;
	}
	if (rc == -EFBIG && !one)
		return;
	ck_assert_msg(rc == 0, "%s: %s", random_text(n, &range), err.text);
	ck_assert_uint_eq(array.record_cnt, cnt);
	/* Only a file has more than a block in one piece. */
	ck_assert(one || array.direct);
	for (uint32_t i = 0; i < cnt; i++)
		ck_assert_msg(
			((const struct pair *)array.base)[i].value == n->records[expected[i]].value,
			"%s: record %u is another one", random_text(n, &range), i);
	ck_assert_int_eq(stoup_array_release(&array), 0);
}

START_TEST(an_array_is_all_of_its_range_or_none)
{
	ask(query_array);
}
END_TEST

/* ---- spans ----------------------------------------------------------------------------------- */

START_TEST(a_span_is_bisected_for_the_first_key_at_and_above)
{
	for (uint64_t seed = 1; seed <= SEED_CNT; seed++) {
		begin(seed);
		/* Not where the order was kept: keys are in none there. */
		for (uint32_t s = 0; s < 3; s++) {
			const struct stoup_range all = {0};
			struct stoup_cursor *cur = scan(&naives[s], &all);
			const struct naive_record *r;
			struct stoup_span span;

			while (stoup_next(cur, &span) > 0) {
				r = &naives[s].records[span.ordinal];
				for (int64_t key = r[0].key - 1;
					key <= r[span.record_cnt - 1].key + 1; key++) {
					uint64_t at = 0, above = 0;

					while (at < span.record_cnt && r[at].key < key)
						at++;
					while (above < span.record_cnt && r[above].key <= key)
						above++;
					ck_assert_uint_eq(stoup_span_bound(&span, key), at);
					ck_assert_uint_eq(stoup_span_above(&span, key), above);
				}
				ck_assert_uint_eq(
					stoup_span_above(&span, INT64_MAX), span.record_cnt);
				ck_assert_uint_eq(stoup_span_bound(&span, INT64_MIN), 0);
			}
			stoup_cursor_close(cur);
		}
		end();
	}
}
END_TEST

/* ---- what can not be ------------------------------------------------------------------------- */

static void refused(struct stoup_range range, const char *words)
{
	struct stoup_cursor *cur = NULL;
	struct stoup_count count;
	struct stoup_series series;
	struct stoup_error err = {0};

	find(&naives[0], &series);
	ck_assert_int_eq(stoup_scan(st, &series, &range, &cur, &err), -EINVAL);
	ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
	ck_assert_ptr_null(cur);
	ck_assert_int_eq(stoup_count(st, &series, &range, 0, &count, &err), -EINVAL);
}

START_TEST(a_range_that_contradicts_itself_is_refused)
{
	struct stoup_array array;
	struct stoup_series series;
	struct stoup_error err = {0};
	struct stoup_range range = {.flags = STOUP_FOLLOW};

	begin(1);
	refused((struct stoup_range){.flags = STOUP_LAST}, "range.limit");
	refused((struct stoup_range){.flags = STOUP_FOLLOW | STOUP_BACKWARD}, "STOUP_BACKWARD");
	refused((struct stoup_range){.flags = STOUP_ORDINALS | STOUP_FROM_AFTER}, "add 1");
	refused((struct stoup_range){.flags = STOUP_ORDINALS | STOUP_TO_INCLUDED}, "add 1");
	refused((struct stoup_range){.from_ns = -1, .flags = STOUP_ORDINALS}, "ordinal -1");
	refused((struct stoup_range){.from_ns = 9, .to_ns = 8, .flags = STOUP_ORDINALS}, "at 8");
	refused((struct stoup_range){.flags = 0x200}, "0x200");
	find(&naives[0], &series);
	ck_assert_int_eq(stoup_array(st, &series, &range, &array, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "STOUP_FOLLOW"));
	ck_assert_int_eq(stoup_seek(NULL, 1), -EINVAL);
	end();
}
END_TEST

START_TEST(bounds_at_the_ends_of_time_hold)
{
	const struct stoup_range after_all = {.from_ns = INT64_MAX, .flags = STOUP_FROM_AFTER};
	const struct stoup_range to_all = {.to_ns = INT64_MAX, .flags = STOUP_TO_INCLUDED};
	const struct stoup_range before_all = {.to_ns = 3, .flags = STOUP_AVAILABLE};
	const struct stoup_range none = {
		.from_ns = 20, .to_ns = 20, .flags = STOUP_FROM_AFTER, .limit = 3};

	begin(1);
	for (uint32_t s = 0; s < RANDOM_SERIES_CNT; s++) {
		query_scan(&naives[s], &after_all);
		query_scan(&naives[s], &to_all);
		query_scan(&naives[s], &before_all);
		query_scan(&naives[s], &none);
		query_count(&naives[s], &after_all);
		query_count(&naives[s], &to_all);
	}
	end();
}
END_TEST

/* ---- what is read ---------------------------------------------------------------------------- */

/* Four blocks of four records each. */
static void four_blocks(void)
{
	static struct fake_series one = {.name = "A/x", .schema = "pair", .segment_cnt = 4};

	for (uint32_t i = 0; i < 4; i++)
		one.segments[i] = (struct fake_segment){
			i, 4, {40 * i + 10, 40 * i + 20, 40 * i + 30, 40 * i + 40}};
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 4, &one, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", &options);
}

/* Blocks that a query reads, as bits; it hands out cnt records. */
static uint32_t blocks_read(struct stoup_range range, uint32_t cnt)
{
	struct stoup_series series;
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint32_t found = 0, bits = 0;

	four_blocks();
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
	ck_assert_int_eq(stoup_scan(st, &series, &range, &cur, NULL), 0);
	while (stoup_next(cur, &span) > 0)
		found += (uint32_t)span.record_cnt;
	ck_assert_uint_eq(found, cnt);
	stoup_cursor_close(cur);
	for (uint32_t i = 0; i < fake_log_cnt(&fake); i++) {
		struct fake_request request = fake_log(&fake, i);

		if (request.kind == STOUP_REQUEST_DEMAND)
			bits |= 1u << request.block_idx;
		for (uint32_t a = 0; a < request.ahead_cnt; a++)
			bits |= 1u << (request.ahead_step < 0 ? request.ahead_block_idx - a
							      : request.ahead_block_idx + a);
	}
	end();
	return bits;
}

START_TEST(a_limit_reads_no_block_that_it_can_not_reach)
{
	ck_assert_uint_eq(blocks_read((struct stoup_range){.limit = 3}, 3), 1);
	ck_assert_uint_eq(blocks_read((struct stoup_range){.limit = 4}, 4), 1);
	ck_assert_uint_eq(blocks_read((struct stoup_range){.limit = 5}, 5), 3);
	ck_assert_uint_eq(
		blocks_read((struct stoup_range){.limit = 4, .flags = STOUP_BACKWARD}, 4), 8);
	/* The end of everything is in the index. */
	ck_assert_uint_eq(blocks_read((struct stoup_range){.limit = 4, .flags = STOUP_LAST}, 4), 8);
	ck_assert_uint_eq(
		blocks_read((struct stoup_range){.to_ns = 95, .limit = 2, .flags = STOUP_LAST}, 2),
		6);
	ck_assert_uint_eq(
		blocks_read(
			(struct stoup_range){.from_ns = 4, .to_ns = 8, .flags = STOUP_ORDINALS}, 4),
		2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_range");
	TCase *naive = tcase_create("naive"), *rest = tcase_create("rest");

	tcase_set_timeout(naive, 120);
	tcase_add_test(naive, a_scan_has_the_records_of_its_range);
	tcase_add_test(naive, a_seek_goes_to_its_key_within_the_range);
	tcase_add_test(naive, a_count_is_right_or_says_how_far);
	tcase_add_test(naive, an_array_is_all_of_its_range_or_none);
	tcase_add_test(naive, a_span_is_bisected_for_the_first_key_at_and_above);
	tcase_add_test(rest, a_range_that_contradicts_itself_is_refused);
	tcase_add_test(rest, bounds_at_the_ends_of_time_hold);
	tcase_add_test(rest, a_limit_reads_no_block_that_it_can_not_reach);
	suite_add_tcase(suite, naive);
	suite_add_tcase(suite, rest);
	return fake_main(suite);
}
