/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_model.c - random ingests and replacements against a model that is a plain array.
 *
 * The model knows nothing of volumes: a replacement removes what lies in the range and adds the new
 * records; an overlap is refused. After each step the store is read back whole and verified.
 */
#include <check.h>
#include "import_fixture.h"

#define SERIES_CNT 5u
#define RECORD_CAP 20000u
#define SPAN       400 /* of keys: small, so that ranges meet often */

struct entry {
	int64_t key;
	uint64_t order_id;
};

static struct entry model[SERIES_CNT][RECORD_CAP];
static size_t model_cnt[SERIES_CNT];
/* The ranges that ingests put, per series: what the model needs to know of overlaps. */
static uint64_t random_state, next_order_id;

static uint32_t draw(uint32_t below)
{
	random_state = fx_mix(random_state);
	return (uint32_t)(random_state % below);
}

static int entry_cmp(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->order_id < b->order_id ? -1 : a->order_id > b->order_id;
}

/* New records of one series: sorted keys in a random range. */
static size_t entries_draw(struct entry *entries)
{
	size_t cnt = 1 + draw(120), i;
	int64_t first = 1 + draw(SPAN), width = 1 + draw(80);

	for (i = 0; i < cnt; i++)
		entries[i] =
			(struct entry){first + (int64_t)draw((uint32_t)width), next_order_id++};
	qsort(entries, cnt, sizeof(*entries), entry_cmp);
	return cnt;
}

static void model_replace(uint32_t s, const struct entry *entries, size_t cnt)
{
	int64_t first = entries[0].key, last = entries[cnt - 1].key;
	size_t kept = 0, i;

	for (i = 0; i < model_cnt[s]; i++) {
		if (model[s][i].key < first || model[s][i].key > last)
			model[s][kept++] = model[s][i];
	}
	ck_assert_uint_lt(kept + cnt, RECORD_CAP);
	memcpy(&model[s][kept], entries, cnt * sizeof(*entries));
	model_cnt[s] = kept + cnt;
	qsort(model[s], model_cnt[s], sizeof(*model[s]), entry_cmp);
}

/* Compare a series. Records of one key may come from two volumes that touch, in the order of their
 * ranges, which the model does not know: within one key the ids are compared as a set. */
static void check_series(uint32_t s)
{
	struct fx_record *records;
	struct entry *entries;
	char name[16];
	size_t cnt, i;

	snprintf(name, sizeof(name), "S%u", s);
	cnt = fx_read(name, &records);
	ck_assert_uint_eq(cnt, model_cnt[s]);
	entries = calloc(cnt + 1, sizeof(*entries));
	for (i = 0; i < cnt; i++) {
		struct fx_record expected = fx_record_make(records[i].order_id, records[i].key);

		ck_assert_mem_eq(&records[i], &expected, sizeof(expected));
		ck_assert(i == 0 || records[i].key >= records[i - 1].key);
		entries[i] = (struct entry){records[i].key, records[i].order_id};
	}
	qsort(entries, cnt, sizeof(*entries), entry_cmp);
	ck_assert_mem_eq(entries, model[s], cnt * sizeof(*entries));
	free(entries);
	free(records);
}

/* One ingest of some series. Returns 1 where it was stored. */
static int step(const struct stoup_import_options *options)
{
	static struct entry entries[SERIES_CNT][256];
	size_t cnt[SERIES_CNT] = {0};
	struct stoup_import *import = fx_begin(options);
	struct stoup_error err = {0};
	uint32_t s;
	size_t i;
	int rc = 0;

	for (s = 0; s < SERIES_CNT; s++)
		cnt[s] = draw(3) == 0 ? 0 : entries_draw(entries[s]);
	for (s = 0; s < SERIES_CNT; s++) {
		char name[16];
		uint32_t idx;

		snprintf(name, sizeof(name), "S%u", s);
		idx = fx_series(import, name);
		for (i = 0; i < cnt[s] && rc == 0; i++)
			rc = fx_try_put(
				import, idx, entries[s][i].order_id, entries[s][i].key, &err);
	}
	if (rc == 0)
		rc = stoup_import_finish(import, &err);
	stoup_import_destroy(import);
	if (rc == -EEXIST && !options->replace)
		return 0;
	ck_assert_msg(rc == 0, "%s", err.text);
	for (s = 0; s < SERIES_CNT; s++) {
		if (cnt[s] > 0)
			model_replace(s, entries[s], cnt[s]);
	}
	return 1;
}

/* Records of the model strictly inside [first, last] of series s. */
static size_t inside_cnt(uint32_t s, int64_t first, int64_t last)
{
	size_t cnt = 0, i;

	for (i = 0; i < model_cnt[s]; i++)
		cnt += model[s][i].key > first && model[s][i].key < last;
	return cnt;
}

static void run(uint64_t seed)
{
	struct stoup_import_options options = fx_options();
	int round, stored = 0, s;

	random_state = seed;
	next_order_id = 1;
	memset(model_cnt, 0, sizeof(model_cnt));
	options.memory_len = 256 << 10;
	for (round = 0; round < 25; round++) {
		options.replace = round > 2 && draw(4) != 0;
		options.volume_len = draw(2) ? 1 : 0; /* one block to a volume, or all in one */
		stored += step(&options);
		for (s = 0; s < (int)SERIES_CNT && stored > 0; s++)
			check_series((uint32_t)s);
		if (stored > 0)
			fx_verify();
		/* A store that takes ranges must have them: the check above is not of an empty one. */
		ck_assert(stored == 0 || inside_cnt(0, 0, INT64_MAX) == model_cnt[0]);
	}
	ck_assert_int_gt(stored, 10);
}

START_TEST(random_replacements_leave_what_the_model_says)
{
	run((uint64_t)_i * 7919 + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("import_model");
	TCase *tc = tcase_create("import_model");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 100);
	tcase_add_checked_fixture(tc, fx_setup, fx_teardown);
	tcase_add_loop_test(tc, random_replacements_leave_what_the_model_says, 0, 6);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
