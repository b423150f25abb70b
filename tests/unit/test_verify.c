/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify.c - `stoup verify` sees any byte that changed, and any that is missing. */
#include <check.h>
#include <sys/stat.h>
#include "import_fixture.h"

static char volume_path[600];
static uint8_t *good;
static size_t good_len;

/* A small volume with compressed and uncompressed blocks, several series, and padding. */
static void volume_setup(void)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import;
	struct stoup_store *store;
	uint32_t a, b, i;
	struct stat st;
	int fd;

	fx_setup();
	import = fx_begin(&options);
	a = fx_series(import, "A/B/fx");
	b = fx_series(import, "A/C/fx");
	for (i = 0; i < 30; i++)
		fx_put(import, i % 3 ? a : b, i, 1000 + i);
	fx_finish(import);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	snprintf(volume_path, sizeof(volume_path), "%s", store->volumes[0]->path);
	stoup_store_close(store);
	fd = open(volume_path, O_RDONLY);
	ck_assert_int_eq(fstat(fd, &st), 0);
	good_len = (size_t)st.st_size;
	good = malloc(good_len);
	ck_assert_int_eq(stoup_file_read(fd, good, good_len, 0), 0);
	close(fd);
}

static void volume_teardown(void)
{
	free(good);
	fx_teardown();
}

static void volume_write(const uint8_t *bytes, size_t len)
{
	int fd = open(volume_path, O_WRONLY | O_TRUNC | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(stoup_file_write(fd, bytes, len, 0), 0);
	close(fd);
}

static int verify(char *path, const char **text)
{
	char command[] = "verify";
	char *argv[] = {command, path, NULL};

	return fx_run(stoup_cmd_verify, argv, text);
}

START_TEST(a_good_volume_is_good)
{
	const char *text;

	ck_assert_int_eq(verify(volume_path, &text), STOUP_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(text, "good (2 series, 1 block, "));
	ck_assert_ptr_nonnull(strstr(text, "1 volume, 1 block, 0 faults\n"));
	ck_assert_int_eq(verify(fx_store, &text), STOUP_EXIT_OK);
}
END_TEST

START_TEST(any_flipped_byte_is_told_with_file_region_and_offset)
{
	size_t off;
	uint8_t bytes[3] = {0x01, 0x80, 0xff};

	for (off = 0; off < good_len; off++) {
		const char *text;

		good[off] ^= bytes[off % 3];
		volume_write(good, good_len);
		good[off] ^= bytes[off % 3];
		ck_assert_msg(verify(volume_path, &text) == STOUP_EXIT_FAIL, "byte %zu", off);
		ck_assert_msg(strncmp(text, volume_path, strlen(volume_path)) == 0, "%s", text);
		ck_assert_msg(strstr(text, " at offset ") != NULL, "byte %zu: %s", off, text);
		ck_assert_msg(strstr(text, "header at") || strstr(text, "block 0 at") ||
				      strstr(text, "padding at") || strstr(text, "footer at") ||
				      strstr(text, "trailer at"),
			"byte %zu: %s", off, text);
	}
}
END_TEST

START_TEST(any_missing_end_is_told)
{
	size_t len;

	for (len = 0; len < good_len; len++) {
		const char *text;

		volume_write(good, len);
		ck_assert_msg(verify(volume_path, &text) == STOUP_EXIT_FAIL, "length %zu", len);
		ck_assert_msg(strstr(text, " at offset ") != NULL, "length %zu: %s", len, text);
	}
}
END_TEST

START_TEST(an_added_byte_is_told)
{
	uint8_t *longer = calloc(1, good_len + 1);
	const char *text;

	memcpy(longer, good, good_len);
	volume_write(longer, good_len + 1);
	ck_assert_int_eq(verify(volume_path, &text), STOUP_EXIT_FAIL);
	free(longer);
}
END_TEST

START_TEST(after_damage_the_other_volumes_are_still_checked)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	const char *text;

	fx_put(import, fx_series(import, "LATER"), 1, 1);
	fx_finish(import);
	good[0] ^= 1;
	volume_write(good, good_len);
	ck_assert_int_eq(verify(fx_store, &text), STOUP_EXIT_FAIL);
	ck_assert_ptr_nonnull(strstr(text, "header at offset 0"));
	ck_assert_ptr_nonnull(strstr(text, "00000002-00-"));
	ck_assert_ptr_nonnull(strstr(text, "good (1 series"));
	ck_assert_ptr_nonnull(strstr(text, "2 volumes, 1 block, 1 fault\n"));
}
END_TEST

START_TEST(wrong_usage_and_absent_files_have_their_own_status)
{
	char command[] = "verify", bad[] = "--fast", absent[] = "/nonexistent.stoup";
	char *none[] = {command, NULL}, *unknown[] = {command, bad, NULL};
	const char *text;

	ck_assert_int_eq(fx_run(stoup_cmd_verify, none, &text), STOUP_EXIT_USAGE);
	ck_assert_str_eq(
		fx_stderr, "stoup verify: STORE or FILE is missing; see `stoup help verify`\n");
	ck_assert_int_eq(fx_run(stoup_cmd_verify, unknown, &text), STOUP_EXIT_USAGE);
	ck_assert_str_eq(
		fx_stderr, "stoup verify: unknown option --fast; see `stoup help verify`\n");
	ck_assert_int_eq(verify(absent, &text), STOUP_EXIT_FAIL);
	ck_assert_str_eq(text, ""); /* no line of zeros, which would read as a result */
}
END_TEST

START_TEST(a_directory_without_volumes_is_not_good)
{
	const char *text;

	ck_assert_int_eq(unlink(volume_path), 0);
	ck_assert_int_eq(verify(fx_store, &text), STOUP_EXIT_FAIL);
	ck_assert_str_eq(text, "");
	ck_assert_ptr_nonnull(strstr(fx_stderr, "/store' holds no volumes: is it a store?\n"));
	volume_write(good, good_len);
	ck_assert_int_eq(verify(fx_store, &text), STOUP_EXIT_OK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verify");
	TCase *tc = tcase_create("verify");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 100);
	tcase_add_checked_fixture(tc, volume_setup, volume_teardown);
	tcase_add_test(tc, a_good_volume_is_good);
	tcase_add_test(tc, any_flipped_byte_is_told_with_file_region_and_offset);
	tcase_add_test(tc, any_missing_end_is_told);
	tcase_add_test(tc, an_added_byte_is_told);
	tcase_add_test(tc, after_damage_the_other_volumes_are_still_checked);
	tcase_add_test(tc, a_directory_without_volumes_is_not_good);
	tcase_add_test(tc, wrong_usage_and_absent_files_have_their_own_status);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
