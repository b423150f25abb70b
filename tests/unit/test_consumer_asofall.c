/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_asofall.c - as-of lookups in 64 series at once, of four volumes, against what their keys say. */
#include "tests/unit/test_consumer_fake.h"

static struct fake fake;
static struct stoup *st;
static uint64_t seed = 18;

static uint64_t rnd(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

#define MANY 64u

/* Series "S/00" to "S/63" in four volumes; number i has keys i, i + 100, i + 200... */
static void begin_many(struct stoup_cursor **curs)
{
	static struct fake_series many[FAKE_SERIES_CAP];
	static char names[MANY][8];
	struct stoup_options opt;

	fake_init(&fake);
	for (uint32_t v = 0; v < MANY / FAKE_SERIES_CAP; v++) {
		for (uint32_t i = 0; i < FAKE_SERIES_CAP; i++) {
			uint32_t no = v * FAKE_SERIES_CAP + i;

			snprintf(names[no], sizeof(names[no]), "S/%02u", no);
			many[i] = (struct fake_series){.name = names[no],
				.schema = "pair",
				.segment_cnt = 2,
				.segments = {{i, 2, {(int64_t)no + 1, (int64_t)no + 101}},
					{i, 1, {(int64_t)no + 201}}}};
		}
		fake_volume(&fake, v + 1, 0, FAKE_SERIES_CAP, many, FAKE_SERIES_CAP);
	}
	stoup_options_init(&opt);
	fake_start(&fake, "p");
	st = fake_attach("p", &opt);
	for (uint32_t i = 0; i < MANY; i++)
		curs[i] = fake_scan(st, names[i], 0, 0);
}

static void end(struct stoup_cursor **curs)
{
	for (uint32_t i = 0; i < MANY; i++)
		stoup_cursor_close(curs[i]);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

START_TEST(as_of_of_many_series_answers_for_each)
{
	static struct stoup_cursor *curs[MANY];
	static struct stoup_span spans[MANY];

	begin_many(curs);
	for (uint32_t q = 0; q < 2000; q++) {
		int64_t time_ns = q < 500 ? (int64_t)q : (int64_t)rnd(400);
		int64_t expected = 0, found = stoup_asof_all(curs, MANY, time_ns, spans);

		for (uint32_t i = 0; i < MANY; i++) {
			int64_t first = (int64_t)i + 1;

			if (time_ns < first) {
				ck_assert_uint_eq(spans[i].record_cnt, 0);
				continue;
			}
			expected++;
			ck_assert_uint_eq(spans[i].record_cnt, 1);
			ck_assert_int_eq(((const struct pair *)spans[i].base)->key,
				first + (time_ns >= first + 200          ? 200
						: time_ns >= first + 100 ? 100
									 : 0));
		}
		ck_assert_int_eq(found, expected);
	}
	ck_assert_int_eq(stoup_asof_all(curs, 0, 5, spans), 0);
	ck_assert_int_eq(stoup_asof_all(NULL, 1, 5, spans), -EINVAL);
	end(curs);
}
END_TEST

START_TEST(one_of_many_that_fails_is_told_and_the_others_answer)
{
	static struct stoup_cursor *curs[MANY];
	static struct stoup_span spans[MANY];

	begin_many(curs);
	fake.volumes[1].blocks[3].error = -EIO;
	fake.volumes[1].blocks[3].act = FAKE_FAIL;
	ck_assert_int_eq(stoup_asof_all(curs, MANY, 5000, spans), -EIO);
	for (uint32_t i = 0; i < MANY; i++) {
		ck_assert_uint_eq(spans[i].record_cnt, i != FAKE_SERIES_CAP + 3);
		ck_assert_int_eq(
			stoup_cursor_error(curs[i])->code, i != FAKE_SERIES_CAP + 3 ? 0 : -EIO);
	}
	fake.volumes[1].blocks[3].act = FAKE_GRANT;
	ck_assert_int_eq(stoup_asof_all(curs, MANY, 5000, spans), MANY);
	ck_assert_int_eq(((const struct pair *)spans[FAKE_SERIES_CAP + 3].base)->key, 220);
	end(curs);
}
END_TEST

START_TEST(a_merge_has_no_as_of_and_its_series_have)
{
	static struct stoup_cursor *curs[MANY];
	struct stoup_cursor *merged = NULL;
	struct stoup_series series[2];
	struct stoup_span span;
	struct stoup_error err;

	begin_many(curs);
	ck_assert_int_eq(stoup_series_find(st, "S/00", &series[0], &err), 0);
	ck_assert_int_eq(stoup_series_find(st, "S/01", &series[1], &err), 0);
	fake_check(stoup_merge(st, series, 2, NULL, &merged, &err), &err);
	ck_assert_int_eq(stoup_asof(merged, 50, &span), -EINVAL);
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(merged)->text, "stoup_asof_all"));
	ck_assert_int_eq(stoup_next(merged, &span), 1);
	stoup_cursor_close(merged);
	ck_assert_int_eq(stoup_asof_all(curs, 2, 50, &(struct stoup_span[2]){{0}}[0]), 2);
	end(curs);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_asofall");
	TCase *many = tcase_create("many");

	tcase_add_test(many, as_of_of_many_series_answers_for_each);
	tcase_add_test(many, one_of_many_that_fails_is_told_and_the_others_answer);
	tcase_add_test(many, a_merge_has_no_as_of_and_its_series_have);
	suite_add_tcase(suite, many);
	return fake_main(suite);
}
