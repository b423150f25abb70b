/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_merge.c - merges of generated series against a stable sort of all their records.
 *
 *      twelve series over two volumes: plain ones, bars, ones that kept their order, an empty one; few keys, so that
 *      most are equal; segments of one record; several series in one block
 *
 * The sort knows nothing of the merge: records are copied out by plain scans, each with its place in time.
 */
#include "consumer/cursor.h"
#include "tests/unit/test_consumer_fake.h"

#define SERIES_CNT 12
#define RECORD_CAP 6000
#define INTERVAL   7
#define EMPTY      5 /* this series has no records */

struct ref {
	int64_t place;
	uint64_t value, ordinal;
	uint32_t lane;
};

static struct fake fake;
static struct stoup *st;
static struct stoup_series series[SERIES_CNT];
static struct ref all[SERIES_CNT][RECORD_CAP];
static uint64_t all_cnt[SERIES_CNT];
static uint64_t state;

static uint32_t below(uint32_t cnt)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % cnt);
}

static int is_bar(uint32_t i)
{
	return i % 4 == 1;
}

static int is_kept(uint32_t i)
{
	return i % 4 == 2;
}

/* ---- making ---------------------------------------------------------------------------------- */

static struct fake_series made[SERIES_CNT];
static char names[SERIES_CNT][8];

static void segment_make(struct fake_segment *seg, uint32_t idx, int64_t *key, uint32_t *room)
{
	seg->block = below(16);
	while (room[seg->block] < 16)
		seg->block = (seg->block + 1) % 16;
	seg->cnt = below(4) == 0 ? 1 : 1 + below(15);
	room[seg->block] -= seg->cnt;
	for (uint32_t i = 0; i < seg->cnt; i++) {
		if (below(3) == 0)
			*key += below(4) == 0 ? below(200) : below(3);
		seg->keys[i] = *key;
		if (is_kept(idx) && i > 0 && below(3) == 0)
			seg->keys[i] -= below(9);
	}
}

/* A volume of all series, keys from `key` on. */
static void volume_make(uint64_t ingest_seq, int64_t key)
{
	uint32_t room[16];

	for (uint32_t b = 0; b < 16; b++)
		room[b] = 255;
	for (uint32_t i = 0; i < SERIES_CNT; i++) {
		int64_t at = key + below(40);

		snprintf(names[i], sizeof(names[i]), "S/%02u", i);
		made[i].name = names[i];
		made[i].schema = is_bar(i) ? "other" : "pair";
		made[i].flags = is_kept(i) ? STOUP_CATALOG_KEEP_ORDER : 0;
		made[i].segment_cnt = i == EMPTY ? 0 : 1 + below(20);
		for (uint32_t s = 0; s < made[i].segment_cnt; s++)
			segment_make(&made[i].segments[s], i, &at, room);
	}
	fake_volume(&fake, ingest_seq, 0, 16, made, SERIES_CNT);
}

/* The second layout is one of bars. */
static void bars_make(struct fake_volume *v)
{
	struct stoup_catalog_schema *row = (void *)((char *)v->catalog + v->catalog->schema_off);
	struct stoup_schema schema = {.stride = 16,
		.align = 8,
		.field_cnt = 2,
		.flags = STOUP_SCHEMA_BAR,
		.interval_ns = INTERVAL};

	strcpy(schema.name, "other");
	schema.fields =
		(struct stoup_field *)(void *)((char *)v->catalog + v->catalog->field_off) + 2;
	row[1].flags = schema.flags;
	row[1].interval_ns = schema.interval_ns;
	row[1].hash = stoup_schema_hash(&schema);
}

static void volumes_make(uint64_t seed)
{
	state = seed;
	volume_make(1, 1000);
	volume_make(2, 100000);
	bars_make(&fake.volumes[0]);
	bars_make(&fake.volumes[1]);
}

/* Copy a series out. */
static void copy(uint32_t idx)
{
	struct stoup_cursor *own = fake_scan(st, names[idx], 0, 0);
	int64_t highest = 0;
	struct stoup_span span;
	int rc;

	all_cnt[idx] = 0;
	while ((rc = stoup_next(own, &span)) > 0)
		for (uint64_t i = 0; i < span.record_cnt; i++) {
			const struct pair *pair = (const struct pair *)span.base + i;

			if (pair->key > highest)
				highest = pair->key;
			ck_assert_uint_lt(all_cnt[idx], RECORD_CAP);
			all[idx][all_cnt[idx]++] =
				(struct ref){.place = is_kept(idx) ? highest : pair->key,
					.value = pair->value,
					.ordinal = span.ordinal + i};
		}
	ck_assert_int_eq(rc, 0);
	stoup_cursor_close(own);
}

static const struct stoup_options quick = {.struct_len = sizeof(struct stoup_options),
	.timeout_ns = 60000000000,
	.reconnect_ns = 60000000000};

static void begin(uint64_t seed, uint64_t lease_cap, uint32_t cell_cap)
{
	struct stoup_error err;

	fake_init_cells(&fake, lease_cap, cell_cap);
	volumes_make(seed);
	atomic_store(&fake.load_ahead, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", &quick);
	for (uint32_t i = 0; i < SERIES_CNT; i++) {
		int rc = stoup_series_find(st, names[i], &series[i], &err);

		fake_check(rc, &err);
		copy(i);
	}
}

static void end(void)
{
	ck_assert_int_eq(stoup_use_cnt(st), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

/* ---- the sort -------------------------------------------------------------------------------- */

static struct ref expected[SERIES_CNT * RECORD_CAP];
static uint64_t expected_cnt;

static int ref_compare(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static int is_in(const struct stoup_range *range, const struct ref *ref)
{
	if (range->flags & STOUP_ORDINALS)
		return (int64_t)ref->ordinal >= range->from_ns &&
		       (range->to_ns == 0 || (int64_t)ref->ordinal < range->to_ns);
	return (range->from_ns == 0 || ref->place > range->from_ns ||
		       (ref->place == range->from_ns && !(range->flags & STOUP_FROM_AFTER))) &&
	       (range->to_ns == 0 || ref->place < range->to_ns ||
		       (ref->place == range->to_ns && (range->flags & STOUP_TO_INCLUDED)));
}

static void expect(const uint32_t *lanes, uint32_t cnt, const struct stoup_range *range)
{
	expected_cnt = 0;
	for (uint32_t l = 0; l < cnt; l++)
		for (uint64_t i = 0; i < all_cnt[lanes[l]]; i++) {
			struct ref ref = all[lanes[l]][i];

			if (is_bar(lanes[l]) && !(range->flags & STOUP_AT_OPEN))
				ref.place += INTERVAL;
			ref.lane = l;
			if (is_in(range, &ref))
				expected[expected_cnt++] = ref;
		}
	qsort(expected, expected_cnt, sizeof(*expected), ref_compare);
	if (!(range->flags & STOUP_BACKWARD))
		return;
	for (uint64_t i = 0; i < expected_cnt / 2; i++) {
		struct ref ref = expected[i];

		expected[i] = expected[expected_cnt - 1 - i];
		expected[expected_cnt - 1 - i] = ref;
	}
}

/* Of what is expected the first `limit` from the first record at or after `key` (backward: before) on. */
static void expect_from(int64_t key, uint64_t limit, int backward)
{
	uint64_t at = 0;

	while (at < expected_cnt &&
		(backward ? expected[at].place > key : expected[at].place < key))
		at++;
	expected_cnt -= at;
	memmove(expected, expected + at, expected_cnt * sizeof(*expected));
	if (limit > 0 && expected_cnt > limit)
		expected_cnt = limit;
}

/* The records of a run are those that are expected from `at` on; where the next ones are. */
static uint64_t check_run(const struct stoup_span *span, uint32_t lane, int backward, uint64_t at)
{
	const struct pair *pairs = span->base;

	for (uint64_t j = 0; j < span->record_cnt; j++, at++) {
		uint64_t i = backward ? span->record_cnt - 1 - j : j;

		ck_assert_uint_lt(at, expected_cnt);
		ck_assert_uint_eq(lane, expected[at].lane);
		ck_assert_uint_eq(span->ordinal + i, expected[at].ordinal);
		ck_assert_uint_eq(pairs[i].value, expected[at].value);
	}
	return at;
}

static struct stoup_cursor *merge(
	const uint32_t *lanes, uint32_t cnt, const struct stoup_range *range)
{
	struct stoup_series chosen[SERIES_CNT];
	struct stoup_cursor *cur = NULL;
	struct stoup_error err;
	int rc;

	for (uint32_t i = 0; i < cnt; i++)
		chosen[i] = series[lanes[i]];
	rc = stoup_merge(st, chosen, cnt, range, &cur, &err);
	fake_check(rc, &err);
	return cur;
}

static void drain(struct stoup_cursor *cur, int backward, uint64_t at)
{
	struct stoup_span span;
	int rc;

	while ((rc = stoup_next(cur, &span)) > 0)
		at = check_run(&span, stoup_cursor_source(cur), backward, at);
	ck_assert_msg(rc == 0, "%d: %s", rc, stoup_cursor_error(cur)->text);
	ck_assert_uint_eq(at, expected_cnt);
}

static void drain_held(struct stoup_cursor *cur, int backward)
{
	struct stoup_held held[6], *to[6];
	uint32_t order[6];
	uint64_t at = 0;
	int64_t cnt;

	for (uint32_t i = 0; i < 6; i++)
		to[i] = &held[i];
	/* Sources are asked for one by one; the spans are read when all are there. */
	for (;;) {
		uint32_t n = 0;

		while (n < 6 && (cnt = stoup_next_held(cur, &to[n], 1, 0)) > 0)
			order[n++] = stoup_cursor_source(cur);
		for (uint32_t i = 0; i < n; i++) {
			at = check_run(&held[i].span, order[i], backward, at);
			ck_assert_int_eq(stoup_release(&held[i].lease), 0);
		}
		if (n < 6)
			break;
	}
	ck_assert_msg(cnt == 0, "%lld: %s", (long long)cnt, stoup_cursor_error(cur)->text);
	ck_assert_uint_eq(at, expected_cnt);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static uint32_t choose(uint32_t *lanes)
{
	uint32_t cnt = 1 + below(SERIES_CNT);

	for (uint32_t i = 0; i < cnt; i++)
		lanes[i] = below(SERIES_CNT);
	return cnt;
}

static int64_t some_time(void)
{
	const struct ref *refs;
	uint32_t lane = below(SERIES_CNT);

	if (all_cnt[lane] == 0 || below(5) == 0)
		return below(2) ? 0 : 900 + (int64_t)below(110000);
	refs = all[lane];
	return refs[below((uint32_t)all_cnt[lane])].place + below(3) - 1;
}

static void range_make(struct stoup_range *range)
{
	range->flags = (below(2) ? STOUP_BACKWARD : 0) | (below(4) ? 0 : STOUP_AT_OPEN) |
	               (below(3) ? 0 : STOUP_FROM_AFTER) | (below(3) ? 0 : STOUP_TO_INCLUDED) |
	               (below(9) ? 0 : STOUP_AVAILABLE);
	range->limit = below(3) ? 0 : 1 + below(300);
	if (range->to_ns && range->to_ns < range->from_ns)
		range->to_ns = range->from_ns + below(50);
	if (below(8) > 0)
		return;
	range->flags &= ~(STOUP_FROM_AFTER | STOUP_TO_INCLUDED | STOUP_AVAILABLE);
	range->flags |= STOUP_ORDINALS;
	range->from_ns = below(200);
	range->to_ns = below(4) ? range->from_ns + below(200) : 0;
}

START_TEST(a_merge_is_a_stable_sort_of_all_forward_and_backward)
{
	uint64_t seen = 0, seed_cnt = getenv("STOUP_SANITIZED") ? 2 : 5;

	/* Ten thousand queries; a sanitizer has seen what it can see of the code after four. */
	for (uint64_t seed = 1; seed <= seed_cnt; seed++) {
		begin(seed, 1 << 20, STOUP_CELL_CAP);
		for (uint32_t query = 0; query < 2000; query++) {
			struct stoup_range range = {.from_ns = some_time(), .to_ns = some_time()};
			uint32_t lanes[SERIES_CNT], cnt = choose(lanes);
			struct stoup_cursor *cur;
			int held = below(8) == 0, backward;

			range_make(&range);
			expect(lanes, cnt, &range);
			cur = merge(lanes, cnt, &range);
			backward = (range.flags & STOUP_BACKWARD) != 0;
			if (below(4) == 0) {
				int64_t key = 900 + (int64_t)below(110000);
				uint32_t steps = below(20);
				struct stoup_span span;

				while (steps-- > 0 && stoup_next(cur, &span) > 0)
					;
				ck_assert_int_eq(stoup_seek(cur, key), 0);
				expect_from(key, range.limit, backward);
			} else {
				expect_from(backward ? INT64_MAX : 0, range.limit, backward);
			}
			if (held)
				drain_held(cur, backward);
			else
				drain(cur, backward, 0);
			stoup_cursor_close(cur);
			seen += expected_cnt;
		}
		end();
	}
	/* The queries are not all empty. */
	ck_assert_uint_gt(seen, 100000 * seed_cnt);
}
END_TEST

static const uint32_t every[SERIES_CNT] = {3, 0, 1, 2, 11, 5, 6, 4, 8, 9, 10, 7};

static void next_and_check(struct stoup_cursor *cur, int backward, uint64_t *at)
{
	struct stoup_span span;
	int rc = stoup_next(cur, &span);

	ck_assert_msg(rc == 1, "%d: %s", rc, stoup_cursor_error(cur)->text);
	*at = check_run(&span, stoup_cursor_source(cur), backward, *at);
}

START_TEST(a_merge_goes_on_with_the_daemon_that_comes_after_one_that_died)
{
	for (uint32_t turn = 0; turn < 12; turn++) {
		struct stoup_range range = {.flags = turn % 2 ? STOUP_BACKWARD : 0};
		struct stoup_cursor *cur;
		uint64_t at = 0;

		begin(77, 1 << 20, STOUP_CELL_CAP);
		expect(every, SERIES_CNT, &range);
		cur = merge(every, SERIES_CNT, &range);
		for (int deaths = 0; deaths < 2; deaths++) {
			for (uint32_t i = 0; i < turn * turn * 2 && at < expected_cnt; i++)
				next_and_check(cur, turn % 2, &at);
			fake_kill(&fake);
			fake.control->daemon_start = 1; /* no process began then */
			fake_reset(&fake);
			volumes_make(77);
			fake_start(&fake, "p");
		}
		drain(cur, turn % 2, at);
		stoup_cursor_close(cur);
		end();
	}
}
END_TEST

/* Series A: 10 and 30, B: 20. The other volumes lie in front of these and behind. */
static void grown_make(uint32_t volumes)
{
	static const int64_t keys[][2][2] = {
		{{10, 30}, {20, 20}}, {{40, 42}, {41, 43}}, {{4, 6}, {5, 7}}};
	static const char *const pair[] = {"A/x", "B/x"};

	for (uint32_t v = 0; v < 3; v++) {
		struct fake_series grown[2] = {{0}};

		for (uint32_t s = 0; s < 2; s++) {
			grown[s].name = pair[s];
			grown[s].schema = "pair";
			grown[s].segment_cnt = 2;
			for (uint32_t g = 0; g < 2; g++) {
				grown[s].segments[g].block = 2 * s + g;
				grown[s].segments[g].cnt = 1;
				grown[s].segments[g].keys[0] = keys[v][s][g];
			}
		}
		if (volumes >> v & 1)
			fake_volume(&fake, v + 1, 0, 4, grown, 2);
	}
}

START_TEST(a_merge_stays_with_the_times_of_its_snapshot_whatever_the_next_daemon_has)
{
	static const int64_t keys[] = {10, 20, 20, 30};

	for (uint32_t turn = 0; turn < 20; turn++) {
		uint32_t back = turn % 2, limit = turn % 4 / 2, at = 0;
		struct stoup_range range = {.flags = back ? STOUP_BACKWARD : 0};
		struct stoup_cursor *cur = NULL;
		struct stoup_series both[2];
		struct stoup_error err;
		struct stoup_span span;
		int rc;

		if (limit)
			range.flags |= STOUP_ORDINALS;
		fake_init(&fake);
		grown_make(1);
		fake_start(&fake, "p");
		st = fake_attach("p", &quick);
		fake_check(stoup_series_find(st, "A/x", &both[0], &err), &err);
		fake_check(stoup_series_find(st, "B/x", &both[1], &err), &err);
		fake_check(stoup_merge(st, both, 2, &range, &cur, &err), &err);
		for (;; at++) {
			if (at == turn / 4) {
				atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
				fake_kill(&fake);
				fake.control->daemon_start = 1; /* no process began then */
				fake_reset(&fake);
				grown_make(
					limit ? 3
					      : 7); /* ordinals count from the first record there is */
				fake_start(&fake, "p");
			}
			rc = stoup_next(cur, &span);
			if (rc <= 0)
				break;
			ck_assert_uint_eq(span.record_cnt, 1);
			ck_assert_uint_lt(at, 4);
			ck_assert_int_eq(*(const int64_t *)span.base, keys[back ? 3 - at : at]);
		}
		ck_assert_msg(rc == 0, "%d: %s", rc, stoup_cursor_error(cur)->text);
		ck_assert_uint_eq(at, 4);
		stoup_cursor_close(cur);
		end();
	}
}
END_TEST

START_TEST(merges_of_the_same_blocks_each_have_what_was_promised_to_them)
{
	static const struct stoup_range range;
	struct stoup_cursor *curs[3];
	struct stoup_series both[2];
	struct stoup_span span;
	struct stoup_error err;
	uint32_t cnts[3] = {0};
	int rc;

	fake_init_cells(&fake, 3 * 2 * 4096, 3 * 2);
	grown_make(7);
	fake_start(&fake, "p");
	st = fake_attach("p", &quick);
	fake_check(stoup_series_find(st, "A/x", &both[0], &err), &err);
	fake_check(stoup_series_find(st, "B/x", &both[1], &err), &err);
	for (uint32_t i = 0; i < 3; i++)
		fake_check(stoup_merge(st, both, 2, &range, &curs[i], &err), &err);
	state = 3;
	while (cnts[0] + cnts[1] + cnts[2] < 3 * 12) {
		uint32_t i = below(3);

		rc = stoup_next(curs[i], &span);
		ck_assert_msg(rc >= 0, "%s", stoup_cursor_error(curs[i])->text);
		ck_assert_int_eq(rc, cnts[i] < 12);
		cnts[i] += (uint32_t)rc;
	}
	for (uint32_t i = 0; i < 3; i++)
		stoup_cursor_close(curs[i]);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	/* All of it can be had again. */
	for (uint32_t i = 0; i < 3; i++)
		fake_check(stoup_merge(st, both, 2, &range, &curs[i], &err), &err);
	for (uint32_t i = 0; i < 3; i++)
		stoup_cursor_close(curs[i]);
	end();
}
END_TEST

START_TEST(a_damaged_block_is_stepped_over_and_the_rest_comes_in_order)
{
	const struct stoup_range range = {0};
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint64_t cnt = 0, left = 0, fails = 0;
	int64_t last = 0;
	int rc;

	begin(5, 1 << 20, STOUP_CELL_CAP);
	expect(every, SERIES_CNT, &range);
	for (uint32_t b = 0; b < 16; b += 3) {
		fake_evict(&fake, 0, b);
		atomic_store(&fake.volumes[0].blocks[b].error, -EBADMSG);
		atomic_store(&fake.volumes[0].blocks[b].act, FAKE_FAIL);
	}
	atomic_store(&fake.load_ahead, 0);
	cur = merge(every, SERIES_CNT, &range);
	while ((rc = stoup_next(cur, &span)) != 0) {
		if (rc < 0) {
			ck_assert_int_eq(rc, -EBADMSG);
			left += (uint64_t)stoup_cursor_skip(cur);
			fails++;
			ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
			continue;
		}
		for (uint64_t i = 0; i < span.record_cnt; i++) {
			const struct ref *ref =
				&all[every[stoup_cursor_source(cur)]][span.ordinal + i];
			int64_t place = ref->place +
			                (is_bar(every[stoup_cursor_source(cur)]) ? INTERVAL : 0);

			ck_assert_uint_eq(((const struct pair *)span.base)[i].value, ref->value);
			ck_assert_int_ge(place, last);
			last = place;
		}
		cnt += span.record_cnt;
	}
	ck_assert_uint_gt(fails, 5);
	ck_assert_uint_eq(cnt + left, expected_cnt);
	stoup_cursor_close(cur);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("merge");
	TCase *tcase = tcase_create("merge");

	tcase_set_timeout(tcase, 100);
	tcase_add_test(tcase, a_merge_is_a_stable_sort_of_all_forward_and_backward);
	tcase_add_test(tcase, a_merge_goes_on_with_the_daemon_that_comes_after_one_that_died);
	tcase_add_test(
		tcase, a_merge_stays_with_the_times_of_its_snapshot_whatever_the_next_daemon_has);
	tcase_add_test(tcase, merges_of_the_same_blocks_each_have_what_was_promised_to_them);
	tcase_add_test(tcase, a_damaged_block_is_stepped_over_and_the_rest_comes_in_order);
	suite_add_tcase(suite, tcase);
	return fake_main(suite);
}
