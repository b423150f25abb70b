/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_search.c - the search for a time inside one segment against a walk over its records: even and
 * uneven times, ties, hints near and far, messages, records that kept their order. */
#include <check.h>
#include <stdlib.h>
#include "consumer/asof.h"
#include "shm/message.h"

#define CNT_CAP   3000u
#define QUERY_CNT 10000u

static int64_t keys[CNT_CAP];
static _Alignas(64) uint8_t bytes[CNT_CAP * 48];
static _Alignas(64) int64_t marks[CNT_CAP];
static uint64_t seed;

static uint64_t rnd(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* Distances between keys. */
enum shape {
	EVEN,
	RANDOM,
	TIES,
	BURSTS,
	ONE_KEY,
	EXTREME,
	SHAPE_CNT
};

static int64_t distance(enum shape shape, uint64_t i)
{
	switch (shape) {
	case EVEN:
		return 1000;
	case RANDOM:
		return (int64_t)rnd(2000);
	case TIES:
		return rnd(40) == 0 ? 5 : 0;
	case BURSTS:
		return rnd(100) == 0 ? 1000000000 : (int64_t)rnd(2);
	case ONE_KEY:
		return 0;
	case EXTREME:
	case SHAPE_CNT:
	default:
		return i == 7 ? INT64_MAX / 4 : i == 90 ? INT64_MAX / 2 : (int64_t)rnd(3);
	}
}

static void make_keys(enum shape shape, uint64_t cnt)
{
	int64_t key = 1 + (int64_t)rnd(1000);

	for (uint64_t i = 0; i < cnt; i++) {
		keys[i] = key;
		key += distance(shape, i);
	}
}

/* A segment with records of `stride` bytes, their keys at the end. */
static struct stoup_keys segment(uint64_t cnt, uint32_t stride)
{
	for (uint64_t i = 0; i < cnt; i++)
		memcpy(bytes + i * stride + stride - 8, &keys[i], 8);
	return (struct stoup_keys){.base = bytes,
		.cnt = cnt,
		.stride = stride,
		.key_off = stride - 8,
		.first_key = keys[0],
		.last_key = keys[cnt - 1],
		.key_max = keys[cnt - 1]};
}

static struct stoup_keys message_segment(uint64_t cnt)
{
	uint32_t len = 0;

	for (uint64_t i = 0; i < cnt; i++)
		len += stoup_message_write(bytes + len, keys[i], "seven c", (uint32_t)rnd(8));
	len = stoup_message_run_end(bytes, len, (uint32_t)cnt);
	return (struct stoup_keys){.base = bytes + len - 4 * cnt,
		.cnt = cnt,
		.stride = STOUP_MESSAGE_STRIDE,
		.messages = 1,
		.first_key = keys[0],
		.last_key = keys[cnt - 1],
		.key_max = keys[cnt - 1]};
}

/* A time at, before, behind or between keys; never before the first. */
static int64_t query(uint64_t cnt)
{
	int64_t key = keys[rnd(cnt)];
	uint64_t way = rnd(6);

	if (way == 0)
		key = keys[0] + (int64_t)rnd((uint64_t)(keys[cnt - 1] - keys[0]) + 1);
	else if (way == 1)
		key = rnd(9) == 0 || key == INT64_MAX ? INT64_MAX : key + 1;
	else if (way == 2)
		key -= 1;
	return key < keys[0] ? keys[0] : key;
}

static uint64_t last_at(int64_t key_ns, uint64_t cnt)
{
	uint64_t i = 0;

	while (i + 1 < cnt && keys[i + 1] <= key_ns)
		i++;
	return i;
}

/* Give it marks. */
static void mark(struct stoup_keys *got)
{
	got->mark_step = stoup_marks_step(got->stride);
	ck_assert_uint_le(stoup_marks_cnt(got->cnt, got->mark_step), CNT_CAP);
	stoup_marks_fill(got, got->mark_step, marks);
	got->marks = marks;
}

static void compare(const struct stoup_keys *segment_keys, enum shape shape, uint64_t queries)
{
	uint64_t cnt = segment_keys->cnt;

	for (uint64_t q = 0; q < queries; q++) {
		int64_t key_ns = query(cnt);
		uint64_t expected = last_at(key_ns, cnt), way = rnd(4), hint = UINT64_MAX;
		struct stoup_spot spot = {0};

		if (way == 0)
			hint = rnd(cnt);
		else if (way == 1)
			hint = expected;
		else if (way == 2)
			hint = expected > 3 ? expected - rnd(3) : expected + (cnt - expected) / 2;
		if (hint != UINT64_MAX)
			hint = hint < cnt ? hint : cnt - 1;
		stoup_keys_search(segment_keys, key_ns, hint, &spot);
		ck_assert_msg(spot.idx == expected,
			"shape %d, %llu records, time %lld, from %lld: %llu instead of %llu",
			(int)shape, (unsigned long long)cnt, (long long)key_ns, (long long)hint,
			(unsigned long long)spot.idx, (unsigned long long)expected);
		ck_assert_int_eq(spot.key, keys[expected]);
		ck_assert_int_eq(
			spot.next_key, expected + 1 < cnt ? keys[expected + 1] : INT64_MAX);
	}
}

START_TEST(the_last_record_at_or_before_a_time_is_found_whatever_the_distances_are)
{
	static const uint32_t strides[] = {8, 16, 48};
	struct stoup_keys got;

	seed = 0x1234567;
	for (int shape = 0; shape < SHAPE_CNT; shape++) {
		for (uint64_t cnt = 1; cnt < CNT_CAP; cnt = cnt < 40 ? cnt + 1 : cnt * 3) {
			make_keys((enum shape)shape, cnt);
			got = segment(cnt, strides[cnt % 3]);
			compare(&got, (enum shape)shape, cnt < 40 ? 200 : 2000);
			mark(&got);
			compare(&got, (enum shape)shape, cnt < 40 ? 200 : 2000);
			if (cnt < 1000) {
				got = message_segment(cnt);
				compare(&got, (enum shape)shape, cnt < 40 ? 50 : 1000);
				mark(&got);
				compare(&got, (enum shape)shape, cnt < 40 ? 50 : 1000);
			}
		}
	}
}
END_TEST

/* ---- records that kept their order ----------------------------------------------------------- */

#define UNDEFINED INT64_MAX

/* Some keys step back, some are undefined; the index has running maxima. */
static struct stoup_keys kept_segment(enum shape shape, uint64_t cnt)
{
	int64_t highest = 0;
	struct stoup_keys got;

	make_keys(shape, cnt);
	for (uint64_t i = 1; i < cnt; i++) {
		if (rnd(3) == 0)
			keys[i] -=
				(int64_t)rnd((uint64_t)keys[i] < 5000 ? (uint64_t)keys[i] : 5000);
		if (rnd(17) == 0)
			keys[i] = UNDEFINED;
	}
	got = segment(cnt, 16);
	for (uint64_t i = 0; i < cnt; i++)
		if (keys[i] != UNDEFINED && keys[i] > highest)
			highest = keys[i];
	got.kept = 1;
	got.last_key = got.key_max = highest;
	return got;
}

/* The last in file order whose running maximum is at or before the time. */
static uint64_t last_kept(int64_t key_ns, uint64_t cnt, int64_t *ret_key)
{
	int64_t highest = keys[0];
	uint64_t i;

	*ret_key = highest;
	for (i = 0; i < cnt; i++) {
		if (keys[i] != UNDEFINED && keys[i] > highest)
			highest = keys[i];
		if (highest > key_ns)
			break;
		*ret_key = highest;
	}
	return i - 1;
}

START_TEST(records_that_kept_their_order_count_from_their_running_maximum)
{
	static const uint64_t cnts[] = {1, 2, 3, 17, 255, 256, 257, 513, 2999};

	seed = 0x7654321;
	for (size_t c = 0; c < sizeof(cnts) / sizeof(cnts[0]); c++) {
		for (int shape = 0; shape < EXTREME; shape++) {
			struct stoup_keys got = kept_segment((enum shape)shape, cnts[c]);
			struct stoup_spot spot = {0};
			int known = 0;

			for (uint64_t q = 0; q < 1000; q++) {
				int64_t key_ns = query(cnts[c]), key;
				uint64_t expected = last_kept(key_ns, cnts[c], &key);

				if (q == 500)
					mark(&got);
				stoup_keys_search_kept(
					&got, key_ns, known ? spot.idx : UINT64_MAX, &spot);
				ck_assert_uint_eq(spot.idx, expected);
				ck_assert_int_eq(spot.key, key);
				known = rnd(5) != 0;
			}
		}
	}
}
END_TEST

/* Bytes that nothing is true of: the place stays inside. */
START_TEST(keys_in_no_order_lead_nowhere_outside)
{
	seed = 99;
	for (uint32_t q = 0; q < QUERY_CNT; q++) {
		uint64_t cnt = 1 + rnd(500);
		struct stoup_spot spot = {0};
		struct stoup_keys got;

		for (uint64_t i = 0; i < cnt; i++)
			keys[i] = (int64_t)(rnd(UINT64_MAX) << 1 | rnd(2));
		got = segment(cnt, 8);
		got.first_key = INT64_MIN + (int64_t)rnd(100);
		got.last_key = INT64_MAX - (int64_t)rnd(2);
		stoup_keys_search(&got, keys[rnd(cnt)], rnd(2) ? rnd(cnt) : UINT64_MAX, &spot);
		ck_assert_uint_lt(spot.idx, cnt);
		spot.key = keys[0];
		stoup_keys_search_kept(&got, keys[rnd(cnt)], UINT64_MAX, &spot);
		ck_assert_uint_lt(spot.idx, cnt);
		mark(&got);
		stoup_keys_search(&got, keys[rnd(cnt)], UINT64_MAX, &spot);
		ck_assert_uint_lt(spot.idx, cnt);
		got.kept = 1;
		mark(&got);
		stoup_keys_search_kept(&got, keys[rnd(cnt)], UINT64_MAX, &spot);
		ck_assert_uint_lt(spot.idx, cnt);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_search");
	TCase *tcase = tcase_create("search");
	SRunner *runner;
	int failed;

	tcase_add_test(
		tcase, the_last_record_at_or_before_a_time_is_found_whatever_the_distances_are);
	tcase_add_test(tcase, records_that_kept_their_order_count_from_their_running_maximum);
	tcase_add_test(tcase, keys_in_no_order_lead_nowhere_outside);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
