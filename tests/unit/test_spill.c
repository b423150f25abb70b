/* SPDX-License-Identifier: Apache-2.0 */
/* test_spill.c - what is written into runs is what is read back. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "inject.h"
#include "producer/spill.h"

static char dir_path[256];
static int dir_fd;
static struct stoup_spill *spill;

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir_path, sizeof(dir_path), "%s/stoup-spill-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir_path));
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(dir_fd, 0);
	ck_assert_int_eq(stoup_spill_create(dir_fd, dir_path, &spill, NULL), 0);
}

static void teardown(void)
{
	inject_stop();
	stoup_spill_destroy(spill);
	close(dir_fd);
	ck_assert_int_eq(rmdir(dir_path), 0); /* it also proves that no file is left */
}

/* The byte at a place of a run's data: differs by run and place. */
static uint8_t byte_of(uint32_t run, uint64_t at)
{
	return (uint8_t)((at * 2654435761u >> 7) + run * 31);
}

/* A run of slices of one series each: series s has (s % 7 + 1) * scale records. */
static void run_write(uint32_t run, uint32_t series_cnt, uint32_t stride, uint32_t scale)
{
	uint64_t at = 0, i;
	uint8_t piece[97]; /* no multiple of anything */
	uint32_t s;

	ck_assert_int_eq(stoup_spill_run_begin(spill, NULL), 0);
	for (s = 0; s < series_cnt; s++) {
		struct stoup_spill_slice slice = {.series_idx = s,
			.flags = run,
			.record_cnt = (s % 7 + 1) * scale,
			.first_key = s,
			.last_key = run};

		slice.len = slice.record_cnt * stride;
		ck_assert_int_eq(stoup_spill_slice_begin(spill, &slice, NULL), 0);
		for (i = 0; i < slice.len; i++) {
			piece[i % sizeof(piece)] = byte_of(run, at++);
			if (i % sizeof(piece) == sizeof(piece) - 1 || i + 1 == slice.len)
				ck_assert_int_eq(stoup_spill_write(
							 spill, piece, i % sizeof(piece) + 1, NULL),
					0);
		}
	}
}

/* Read one series of one run to its end, at most `most` records at a time. */
static void slice_read(
	uint32_t run, uint32_t series, uint32_t stride, uint32_t scale, uint64_t most, uint64_t *at)
{
	const struct stoup_spill_slice *head = stoup_spill_head(spill, run);
	uint64_t left = (series % 7 + 1) * scale, i;

	ck_assert_ptr_nonnull(head);
	ck_assert_uint_eq(head->series_idx, series);
	ck_assert_uint_eq(head->record_cnt, left);
	ck_assert_uint_eq(head->flags, run);
	ck_assert_int_eq(head->first_key, series);
	ck_assert_int_eq(head->last_key, run);
	while (left > 0) {
		const uint8_t *records;
		uint64_t cnt;

		ck_assert_int_eq(stoup_spill_view(spill, run, stride, &records, &cnt, NULL), 0);
		ck_assert_uint_ge(cnt, 1);
		ck_assert_uint_le(cnt, left);
		cnt = cnt < most ? cnt : most;
		for (i = 0; i < cnt * stride; i++) {
			if (records[i] != byte_of(run, (*at)++))
				ck_abort_msg("run %u series %u differs", run, series);
		}
		ck_assert_int_eq(stoup_spill_take(spill, run, cnt, cnt * stride, NULL), 0);
		left -= cnt;
	}
}

static void check_runs(uint32_t run_cnt, uint32_t series_cnt, uint32_t stride, uint32_t scale,
	size_t memory, uint64_t most)
{
	uint64_t *at = calloc(run_cnt, sizeof(*at));
	uint32_t run, s;

	for (run = 0; run < run_cnt; run++)
		run_write(run, series_cnt, stride, scale);
	ck_assert_int_eq(stoup_spill_rewind(spill, memory, stride, NULL), 0);
	ck_assert_uint_eq(stoup_spill_run_cnt(spill), run_cnt);
	for (s = 0; s < series_cnt; s++) {
		for (run = 0; run < run_cnt; run++)
			slice_read(run, s, stride, scale, most, &at[run]);
	}
	for (run = 0; run < run_cnt; run++)
		ck_assert_ptr_null(stoup_spill_head(spill, run));
	free(at);
}

START_TEST(runs_are_read_beside_each_other_through_the_smallest_windows)
{
	check_runs(9, 60, 56, 3, 1, UINT64_MAX);
}
END_TEST

START_TEST(slices_longer_than_a_window_come_in_pieces)
{
	check_runs(3, 10, 24, 700, 1, 11);
}
END_TEST

START_TEST(a_record_larger_than_the_smallest_window_fits)
{
	check_runs(2, 8, 65535, 1, 1, UINT64_MAX);
}
END_TEST

START_TEST(an_empty_spill_has_no_runs)
{
	ck_assert_int_eq(stoup_spill_rewind(spill, 1 << 20, 8, NULL), 0);
	ck_assert_uint_eq(stoup_spill_run_cnt(spill), 0);
}
END_TEST

static int write_until_error(struct stoup_error *err)
{
	static const uint8_t bytes[65536];
	int rc = stoup_spill_run_begin(spill, err), i;

	for (i = 0; i < 64 && rc == 0; i++)
		rc = stoup_spill_write(spill, bytes, sizeof(bytes), err);
	return rc;
}

START_TEST(a_full_disk_names_the_directory_and_the_need)
{
	struct stoup_error err = {0};

	inject_after(INJECT_WRITE, 2, ENOSPC, 1);
	ck_assert_int_eq(write_until_error(&err), -ENOSPC);
	ck_assert_int_eq(err.code, -ENOSPC);
	ck_assert_ptr_nonnull(strstr(err.text, dir_path));
	ck_assert_ptr_nonnull(strstr(err.text, "2.0 MiB"));
	ck_assert_ptr_nonnull(strstr(err.text, "free space"));
}
END_TEST

START_TEST(an_input_error_while_reading_back_is_told)
{
	struct stoup_error err = {0};

	run_write(0, 10, 56, 100);
	inject_after(INJECT_READ, 1, EIO, 1);
	ck_assert_int_eq(stoup_spill_rewind(spill, 4096, 56, &err), -EIO);
	ck_assert_ptr_nonnull(strstr(err.text, "reading failed"));
}
END_TEST

START_TEST(an_interrupted_write_goes_on)
{
	inject_after(INJECT_WRITE, 1, EINTR, 0);
	check_runs(2, 10, 56, 50, 1 << 20, UINT64_MAX);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spill");
	TCase *tc = tcase_create("spill");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, runs_are_read_beside_each_other_through_the_smallest_windows);
	tcase_add_test(tc, slices_longer_than_a_window_come_in_pieces);
	tcase_add_test(tc, a_record_larger_than_the_smallest_window_fits);
	tcase_add_test(tc, an_empty_spill_has_no_runs);
	tcase_add_test(tc, a_full_disk_names_the_directory_and_the_need);
	tcase_add_test(tc, an_input_error_while_reading_back_is_told);
	tcase_add_test(tc, an_interrupted_write_goes_on);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
