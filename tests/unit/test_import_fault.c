/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_fault.c - an import that fails or dies at any place leaves the old or the new
 * contents.
 *
 * The store holds series A (keys 100 to 200) and B; the import under test replaces a part of A, in
 * two volumes, so that spilling, encoding, several files, renames and removals all happen.
 */
#include <check.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "import_fixture.h"
#include "inject.h"

#define OLD_CNT 3000u
#define NEW_CNT 1500u
#define NEW_ID  1000000u

/* ---- the two states -------------------------------------------------------------------------- */

static void old_make(void)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	uint32_t a = fx_series(import, "A"), b = fx_series(import, "B"), i;

	for (i = 0; i < OLD_CNT; i++) {
		fx_put(import, a, i, 1000 + i);
		fx_put(import, b, i, 5000 + i);
	}
	fx_finish(import);
}

/* Replace keys 1500 to 2249 of A by two records each. */
static int new_ingest(struct stoup_error *err)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = NULL;
	int64_t series = 0;
	uint32_t i;
	int rc;

	options.replace = 1;
	options.volume_len = 200 << 10;
	options.memory_len = 256 << 10;
	rc = stoup_import_begin(&options, &import, err);
	if (rc == 0) {
		struct stoup_schema schema = fx_schema();

		series = stoup_import_series(import, "A", &schema, err);
		rc = series < 0 ? (int)series : 0;
	}
	for (i = 0; i < NEW_CNT && rc == 0; i++)
		rc = fx_try_put(import, (uint32_t)series, NEW_ID + i, 1500 + i / 2, err);
	if (rc == 0)
		rc = stoup_import_finish(import, err);
	stoup_import_destroy(import);
	return rc;
}

static int is_record(const struct fx_record *record, uint64_t order_id, int64_t key)
{
	struct fx_record expected = fx_record_make(order_id, key);

	return memcmp(record, &expected, sizeof(expected)) == 0;
}

static int is_old(const struct fx_record *records, size_t cnt)
{
	uint32_t i;

	for (i = 0; i < OLD_CNT; i++) {
		if (cnt != OLD_CNT || !is_record(&records[i], i, 1000 + i))
			return 0;
	}
	return 1;
}

static int is_new(const struct fx_record *records, size_t cnt)
{
	uint32_t removed = NEW_CNT / 2, i, at = 0;

	if (cnt != OLD_CNT - removed + NEW_CNT)
		return 0;
	for (i = 0; i < 500; i++) {
		if (!is_record(&records[at++], i, 1000 + i))
			return 0;
	}
	for (i = 0; i < NEW_CNT; i++) {
		if (!is_record(&records[at++], NEW_ID + i, 1500 + i / 2))
			return 0;
	}
	for (i = 500 + removed; i < OLD_CNT; i++) {
		if (!is_record(&records[at++], i, 1000 + i))
			return 0;
	}
	return 1;
}

/* 0: the store has the old contents, 1: the new ones; anything else fails the test. */
static int state(void)
{
	struct stoup_store *store;
	struct fx_record *records = NULL;
	struct stoup_schema schema = fx_schema();
	size_t cnt = 0, b_cnt = 0, i;
	int now;

	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	for (i = 0; i < store->volume_cnt; i++) {
		struct fx_part part = {store->volumes[i],
			stoup_store_series_find(store->volumes[i]->index, "A", schema.hash)};
		const struct stoup_vol_series *b =
			stoup_store_series_find(store->volumes[i]->index, "B", schema.hash);

		/* One batch: the order of volumes is that of keys. */
		if (part.series)
			fx_part_read(&part, &records, &cnt);
		b_cnt += b ? b->record_cnt : 0;
	}
	stoup_store_close(store);
	ck_assert_uint_eq(b_cnt, OLD_CNT);
	now = is_old(records, cnt) ? 0 : is_new(records, cnt) ? 1 : -1;
	free(records);
	ck_assert_int_ge(now, 0);
	return now;
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Let the nth call of a kind fail, for n = 1, 2 ... until an import gets through. */
static void check_failures(enum inject_call kind, int code, int sticky, const char *words)
{
	struct stoup_error err;
	long nth;
	int rc;

	old_make();
	for (nth = 1; nth < 1000; nth++) {
		memset(&err, 0, sizeof(err));
		inject_after(kind, nth, code, sticky);
		rc = new_ingest(&err);
		inject_stop();
		if (rc == 0)
			break;
		ck_assert_int_eq(rc, -code);
		ck_assert_msg(strstr(err.text, words) != NULL, "call %ld: %s", nth, err.text);
		ck_assert_msg(strstr(err.text, fx_store) != NULL, "call %ld: %s", nth, err.text);
		ck_assert_int_eq(state(), 0);
		ck_assert_int_eq(fx_file_cnt(".tmp-"), 0);
		ck_assert_int_eq(fx_file_cnt("0"), 1);
	}
	ck_assert_int_gt(nth, 1);
	ck_assert_int_eq(state(), 1);
	fx_verify();
}

START_TEST(a_full_disk_at_any_write_leaves_the_old_contents)
{
	check_failures(INJECT_WRITE, ENOSPC, 1, "free");
}
END_TEST

START_TEST(an_output_error_at_any_write_leaves_the_old_contents)
{
	check_failures(INJECT_WRITE, EIO, 0, "the store is unchanged");
}
END_TEST

START_TEST(an_error_at_any_fsync_leaves_the_old_contents)
{
	check_failures(INJECT_FSYNC, EIO, 0, "the store is unchanged");
}
END_TEST

START_TEST(an_error_at_any_rename_leaves_the_old_contents)
{
	check_failures(INJECT_RENAME, EIO, 0, "the store is unchanged");
}
END_TEST

START_TEST(a_full_disk_is_told_with_the_need)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	struct stoup_error err = {0};
	uint32_t series = fx_series(import, "A"), i;
	struct stat st;

	for (i = 0; i < 60000; i++)
		fx_put(import, series, i, 1 + i);
	/* The spill file takes four writes of 1 MiB; the tenth is a block of the volume. */
	inject_after(INJECT_WRITE, 10, ENOSPC, 1);
	ck_assert_int_eq(stoup_import_finish(import, &err), -ENOSPC);
	inject_stop();
	stoup_import_destroy(import);
	ck_assert_ptr_nonnull(strstr(err.text, ".tmp-"));
	ck_assert_ptr_nonnull(strstr(err.text, "more needed"));
	ck_assert_int_eq(stat(fx_store, &st), -1);
}
END_TEST

/* ---- deaths ---------------------------------------------------------------------------------- */

START_TEST(a_death_at_any_call_leaves_the_old_or_the_new_contents)
{
	int seen[2] = {0, 0}, status = -1;
	long nth;

	for (nth = 1; nth < 1000 && status != 0; nth++) {
		int before;
		pid_t pid;

		fx_remove(fx_store);
		old_make();
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			inject_die_after(nth);
			_exit(new_ingest(NULL) == 0 ? 0 : 1);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFEXITED(status));
		ck_assert_int_ne(WEXITSTATUS(status), 1);
		before = state();
		seen[before] = 1;
		/* The next writer cleans up and changes nothing. */
		if (before == 0) {
			struct stoup_import_options options = fx_options();

			stoup_import_destroy(fx_begin(&options));
			ck_assert_int_eq(fx_file_cnt(".tmp-"), 0);
			ck_assert_int_eq(fx_file_cnt("0"), 1);
			ck_assert_int_eq(state(), 0);
			ck_assert_int_eq(new_ingest(NULL), 0);
		} else {
			struct stoup_import_options options = fx_options();

			stoup_import_destroy(fx_begin(&options));
			ck_assert_int_eq(fx_file_cnt("00000001"), 0);
		}
		ck_assert_int_eq(state(), 1);
	}
	ck_assert(seen[0] && seen[1]);
	ck_assert_int_gt(nth, 10);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("import_fault");
	TCase *tc = tcase_create("import_fault");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 100);
	tcase_add_checked_fixture(tc, fx_setup, fx_teardown);
	tcase_add_test(tc, a_full_disk_at_any_write_leaves_the_old_contents);
	tcase_add_test(tc, an_output_error_at_any_write_leaves_the_old_contents);
	tcase_add_test(tc, an_error_at_any_fsync_leaves_the_old_contents);
	tcase_add_test(tc, an_error_at_any_rename_leaves_the_old_contents);
	tcase_add_test(tc, a_full_disk_is_told_with_the_need);
	tcase_add_test(tc, a_death_at_any_call_leaves_the_old_or_the_new_contents);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
