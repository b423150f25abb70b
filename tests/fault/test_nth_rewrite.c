/* SPDX-License-Identifier: Apache-2.0 */
/* test_nth_rewrite.c - the first, second, third ... call for memory, for a file, for room on the disk fails while
 * volumes are rewritten, repaired or compared. Each time a clean error with a text, nothing left behind, and the
 * store holds what it held; or it is done.
 */
#include <sys/stat.h>
#include "producer/diff.h"
#include "producer/rewrite.h"
#include "producer/verify.h"
#include "tests/fault/countdown.h"
#include "tests/unit/import_fixture.h"

#define NTH_CAP 5000

static char base[300], command[1200];
static struct stoup_error err;
static int64_t cut_key;

static void days_put(uint32_t first_day, uint32_t cnt)
{
	struct stoup_import_options options = fx_options();

	for (uint32_t day = first_day; day < first_day + cnt; day++) {
		struct stoup_import *import = fx_begin(&options);
		uint32_t a = fx_series(import, "X/A/t"), b = fx_series(import, "X/B/t");

		for (uint32_t i = 0; i < 900; i++)
			fx_put(import, i % 3 ? a : b, i, (int64_t)(1000000 * (day + 1) + i));
		fx_finish(import);
	}
	cut_key = 1000300;
}

static void setup(void)
{
	fx_setup();
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stdout));
	snprintf(base, sizeof(base), "%s/base", fx_root);
	days_put(0, 3);
	snprintf(command, sizeof(command), "cp -r %s %s", fx_store, base);
	ck_assert_int_eq(system(command), 0);
	snprintf(command, sizeof(command), "rm -rf %s && cp -r %s %s", fx_store, base, fx_store);
}

static void teardown(void)
{
	char text[700];

	snprintf(text, sizeof(text), "rm -rf %s %s", base, fx_store);
	ck_assert_int_eq(system(text), 0);
	fx_teardown();
}

/* ---- scenarios ------------------------------------------------------------------------------- */

static int rewrite_with(
	const struct stoup_rewrite_options *options, const struct stoup_rewrite_filter *filter)
{
	struct stoup_rewrite *rewrite = NULL;
	int rc = stoup_rewrite_begin(options, &rewrite, &err);
	uint32_t i;

	for (i = 0; rc == 0 && i < stoup_rewrite_store(rewrite)->volume_cnt; i++)
		stoup_rewrite_choose(rewrite, i);
	if (rc == 0)
		rc = stoup_rewrite_draw_in(rewrite, &err);
	if (rc == 0)
		rc = stoup_rewrite_run(rewrite, filter, &err);
	if (rc == 0)
		stoup_rewrite_sweep(rewrite);
	stoup_rewrite_end(rewrite);
	return rc;
}

static struct stoup_rewrite_options options_of(void)
{
	struct stoup_rewrite_options options = {.store_path = fx_store,
		.label = "test",
		.quiet = 1,
		.threads = 1,
		.has_encoding = 1,
		.volume_len = 65536};

	stoup_encoding_parse("small", NULL, &options.encoding);
	return options;
}

static int compact(void)
{
	struct stoup_rewrite_options options = options_of();

	return rewrite_with(&options, NULL);
}

static enum stoup_rewrite_keep segment_keep(
	void *arg, const struct stoup_part *part, uint32_t segment_idx)
{
	const struct stoup_vol_segment *segment = &part->volume->index->segments[segment_idx];

	(void)arg;
	return segment->last_key < cut_key    ? STOUP_REWRITE_KEEP_NONE
	       : segment->first_key < cut_key ? STOUP_REWRITE_KEEP_SOME
	                                      : STOUP_REWRITE_KEEP_ALL;
}

static int key_keep(void *arg, int64_t key)
{
	(void)arg;
	return key >= cut_key;
}

static int removal(void)
{
	struct stoup_rewrite_options options = options_of();
	struct stoup_rewrite_filter filter = {.segment = segment_keep, .key = key_keep};

	return rewrite_with(&options, &filter);
}

static int repair(void)
{
	return stoup_repair(fx_store, 0, 1, &err);
}

/* Compare store and base. */
static int diff(void)
{
	struct stoup_store *stores[2] = {NULL};
	struct stoup_parts parts[2] = {{0}};
	struct stoup_block_cache *cache = NULL;
	int side, rc = stoup_block_cache_create(65536, &cache);
	size_t g;

	if (rc < 0)
		stoup_error_set(&err, rc, "cache");
	for (side = 0; side < 2 && rc == 0; side++) {
		rc = stoup_store_open(side ? base : fx_store, &stores[side], &err);
		if (rc == 0 && (rc = stoup_parts_of_store(&parts[side], stores[side], NULL)) < 0)
			stoup_error_set(&err, rc, "parts");
	}
	if (rc == 0 && parts[0].group_cnt != parts[1].group_cnt)
		rc = 1;
	for (g = 0; rc == 0 && g < parts[0].group_cnt; g++) {
		struct stoup_diff_series found;

		rc = stoup_diff_series(cache, &parts[0], g, &parts[1], g, &found, &err);
		if (rc < 0)
			break;
		rc = !found.equal;
		stoup_diff_series_fini(&found);
	}
	for (side = 0; side < 2; side++) {
		stoup_parts_fini(&parts[side]);
		stoup_store_close(stores[side]);
	}
	stoup_block_cache_destroy(cache);
	return rc;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Let each call of a kind fail. `keeps`: a failure leaves the store as it was. */
static void check(const char *name, enum countdown_kind kind, int (*scenario)(void), int keeps)
{
	struct countdown c;
	long nth, failed = 0;
	int rc = 0, fired = 1;

	for (nth = 1; nth < NTH_CAP && fired; nth++) {
		if (rc == 0 || !keeps) /* else it is what it was, as diff says */
			ck_assert_int_eq(system(command), 0);
		memset(&err, 0, sizeof(err));
		countdown_begin(&c, kind, nth);
		rc = scenario();
		fired = countdown_end(&c);
		ck_assert_msg(rc == 0 || rc == -ENOMEM || rc == -EAGAIN || rc == -EMFILE ||
				      rc == -ENOSPC, /* EAGAIN: of a thread */
			"call %ld: %d %s", nth, rc, err.text);
		ck_assert_msg(rc == 0 || err.text[0], "call %ld: no text", nth);
		failed += rc < 0;
		if (rc < 0 && keeps)
			ck_assert_msg(diff() == 0, "call %ld: other contents (%s)", nth, err.text);
		ck_assert_int_eq(fx_file_cnt(".tmp-"), 0);
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_gt(failed, 2);
	fprintf(stderr, "%s, kind %d: %ld calls, %ld errors\n", name, (int)kind, nth - 2, failed);
}

static const enum countdown_kind kinds[] = {COUNTDOWN_MEMORY, COUNTDOWN_FILES, COUNTDOWN_SPACE};

START_TEST(a_store_is_compacted_or_stays)
{
	check("compact", kinds[_i], compact, 1);
}
END_TEST

START_TEST(records_are_removed_or_stay)
{
	check("rm", kinds[_i], removal, 1);
}
END_TEST

/* A block of the first volume is damaged; what is left of the store can not be compared with it. */
START_TEST(a_store_is_repaired_or_stays)
{
	struct stoup_store *store = NULL;
	int fd;

	ck_assert_int_eq(stoup_store_open(base, &store, NULL), 0);
	fd = open(store->volumes[0]->path, O_WRONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, "damage", 6, 300), 6);
	close(fd);
	stoup_store_close(store);
	check("repair", kinds[_i], repair, 0);
}
END_TEST

START_TEST(stores_are_compared_or_not)
{
	check("diff", kinds[_i], diff, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nth_rewrite");
	TCase *tc = tcase_create("nth_rewrite");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, a_store_is_compacted_or_stays, 0, 3);
	tcase_add_loop_test(tc, records_are_removed_or_stay, 0, 3);
	tcase_add_loop_test(tc, a_store_is_repaired_or_stays, 0, 3);
	tcase_add_loop_test(tc, stores_are_compared_or_not, 0, 2); /* it writes nothing */
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
