/* SPDX-License-Identifier: Apache-2.0 */
/* The reader through its interface, on real files: each test runs for both kinds, direct and
 * buffered. What a kernel does rarely is in test_reader_script.c, what it refuses in
 * test_reader_refusal.c. */
#include <sys/resource.h>

#include "tests/unit/reader_fixture.h"

/* The four variants: io_uring and pread, direct and buffered; the page cache is left alone. */
static struct stoup_reader_options variant(int i)
{
	struct stoup_reader_options opt = {
		.kind = i & 1 ? STOUP_READER_PREAD : STOUP_READER_URING,
		.direct = i & 2 ? STOUP_READER_SWITCH_OFF : STOUP_READER_SWITCH_AUTO,
		.cached = STOUP_READER_SWITCH_OFF,
		.depth = DEPTH,
	};
	return opt;
}

static int is_direct(int i)
{
	return !(i & 2) && direct_works;
}

/* ---- both kinds, direct and buffered --------------------------------------------------------- */

START_TEST(random_reads_return_the_bytes_of_the_file)
{
	static uint64_t offs[600];
	static uint32_t lens[600];
	size_t sent = 0, back = 0;
	uint64_t bytes = 0;
	if (!setup_reader(variant(_i)))
		return;
	srand(12345u + (unsigned)_i);
	for (size_t i = 0; i < 600; i++) {
		lens[i] = 1 + (uint32_t)rand() % (i % 3 ? STORED_CAP : 5000);
		offs[i] = (uint64_t)rand() % (FILE_LEN - lens[i] + 1);
		if (i % 50 == 0)
			offs[i] = FILE_LEN -
			          lens[i]; /* up to the last byte of a file of odd length */
		bytes += lens[i];
	}
	while (back < 600) {
		while (sent < 600 && submit_slot(sent, offs[sent], lens[sent]) == 0)
			sent++;
		ck_assert_int_eq(stoup_reader_flush(reader), 0);
		struct stoup_read_done done[5];
		size_t cnt = reap_wait(done, 5);
		for (size_t i = 0; i < cnt; i++) {
			size_t k = done[i].cookie;
			ck_assert_int_eq(done[i].result, lens[k]);
			ck_assert_uint_eq(first_wrong(done[i].bytes, offs[k], lens[k]), lens[k]);
			ck_assert_int_eq(done[i].source,
				is_direct(_i) ? STOUP_READ_DIRECT : STOUP_READ_BUFFERED);
			lens[k] = 0; /* a second completion for it would be seen */
			stoup_staging_put(staging, done[i].slot_idx);
		}
		back += cnt;
	}
	const struct stoup_reader_counters *counters = stoup_reader_counters(reader);
	ck_assert_uint_eq(counters->reads, 600);
	ck_assert_uint_eq(counters->bytes, bytes);
	ck_assert_uint_eq(counters->in_flight, 0);
	ck_assert_uint_eq(counters->errors, 0);
	ck_assert_uint_gt(counters->refused, 0);
	ck_assert_uint_eq(is_direct(_i) ? counters->direct_reads : counters->buffered_reads, 600);
	ck_assert_uint_eq(stoup_staging_free_cnt(staging), 32);
}
END_TEST

START_TEST(a_scan_keeps_at_least_eight_reads_in_flight)
{
	uint64_t next = 0, back = 0;
	const uint64_t cnt = FILE_LEN / 65536;
	if (!setup_reader(variant(_i)))
		return;
	while (back < cnt) {
		while (next < cnt && submit_slot(next, next * 65536, 65536) == 0)
			next++;
		ck_assert_int_eq(stoup_reader_flush(reader), 0);
		struct stoup_read_done done = reap_one();
		ck_assert_int_eq(done.result, 65536);
		stoup_staging_put(staging, done.slot_idx);
		back++;
	}
	ck_assert_uint_ge(stoup_reader_counters(reader)->in_flight_max, 8);
	ck_assert_uint_le(stoup_reader_counters(reader)->in_flight_max, DEPTH);
	ck_assert_uint_le(stoup_reader_counters(reader)->submits, cnt + 1);
}
END_TEST

START_TEST(a_batch_is_handed_over_in_one_call)
{
	if (!setup_reader(variant(_i)))
		return;
	for (uint32_t i = 0; i < DEPTH; i++)
		ck_assert_int_eq(submit_slot(i, i * 4096, 4096), 0);
	ck_assert_int_eq(submit_slot(99, 0, 4096), -EAGAIN);
	ck_assert_uint_eq(stoup_reader_ready(reader), 1); /* a batch that waits for flush */
	ck_assert_int_eq(stoup_reader_flush(reader), 0);
	ck_assert_uint_eq(stoup_reader_ready(reader), 0);
	ck_assert_uint_eq(stoup_reader_counters(reader)->submits, 1);
	ck_assert_uint_eq(stoup_reader_counters(reader)->in_flight_max, DEPTH);
	ck_assert_uint_eq(stoup_reader_counters(reader)->refused, 1);
	for (uint32_t i = 0; i < DEPTH; i++)
		ck_assert_int_eq(reap_one().result, 4096);
	ck_assert_int_eq(submit_slot(99, 0, 4096), 0);
	ck_assert_int_eq(reap_one().result, 4096);
}
END_TEST

START_TEST(the_poll_descriptor_is_readable_only_while_completions_wait)
{
	if (!setup_reader(variant(_i)))
		return;
	struct pollfd pfd = {.fd = stoup_reader_poll_fd(reader), .events = POLLIN};
	for (int round = 0; round < 20; round++) {
		ck_assert_int_eq(poll(&pfd, 1, 0), 0);
		for (uint32_t i = 0; i < 4; i++)
			ck_assert_int_eq(submit_slot(i, i * 131072 + 7, 100000), 0);
		ck_assert_int_eq(stoup_reader_flush(reader), 0);
		while (poll(&pfd, 1, 0) == 0)
			ck_assert_msg(woken(120000), "the descriptor never woke");
		ck_assert_int_eq(poll(&pfd, 1, 0), 1); /* level-triggered */
		for (uint32_t i = 0; i < 4; i++)
			stoup_staging_put(staging, reap_one().slot_idx);
	}
	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
}
END_TEST

START_TEST(completions_left_over_by_a_small_reap_are_counted_as_ready)
{
	struct stoup_read_done done[DEPTH];
	if (!setup_reader(variant(_i)))
		return;
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_int_eq(submit_slot(i, i * 4096, 4096), 0);
	ck_assert_int_eq(stoup_reader_flush(reader), 0);
	while (stoup_reader_counters(reader)->in_flight > 0)
		(void)stoup_reader_reap(reader, done, 0);
	ck_assert_uint_eq(stoup_reader_ready(reader), 6);
	ck_assert_uint_eq(stoup_reader_reap(reader, done, 2), 2);
	ck_assert_uint_eq(stoup_reader_ready(reader), 4);
	ck_assert_uint_eq(stoup_reader_reap(reader, done, DEPTH), 4);
	ck_assert_uint_eq(stoup_reader_ready(reader), 0);
}
END_TEST

START_TEST(a_read_into_callers_memory_stays_inside_its_room)
{
	struct {
		uint64_t off;
		uint32_t len;
		size_t cap;
		int direct;
	} cases[] = {
		{8192, 65536, 65536, 1}, /* aligned all round */
		{8192, 65000, 65536, 1}, /* room for the widened length */
		{8192, 65000, 65000, 0}, /* none: through the page cache */
		{8193, 65000, 70000, 0}, /* file offset off the alignment */
		{FILE_LEN - FILE_LEN % 4096, FILE_LEN % 4096, 8192, 1}, /* runs past the end */
	};
	if (!setup_reader(variant(_i)))
		return;
	uint8_t *room = aligned_alloc(4096, 128u << 10);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stoup_read req = {
			.file_off = cases[i].off,
			.len = cases[i].len,
			.file_idx = (uint32_t)file_idx,
			.slot_idx = -1,
			.dst = room,
			.dst_cap = cases[i].cap,
		};
		memset(room, 0xa5, 128u << 10);
		ck_assert_int_eq(stoup_reader_submit(reader, &req), 0);
		struct stoup_read_done done = reap_one();
		ck_assert_int_eq(done.result, cases[i].len);
		ck_assert_ptr_eq(done.bytes, room);
		ck_assert_int_eq(done.source,
			cases[i].direct && is_direct(_i) ? STOUP_READ_DIRECT : STOUP_READ_BUFFERED);
		ck_assert_uint_eq(first_wrong(room, cases[i].off, cases[i].len), cases[i].len);
		size_t beyond = 0;
		for (size_t k = cases[i].cap; k < 128u << 10; k++)
			beyond += room[k] != 0xa5;
		ck_assert_uint_eq(beyond, 0);
	}
	free(room);
}
END_TEST

START_TEST(a_read_beyond_the_end_names_the_end)
{
	if (!setup_reader(variant(_i)))
		return;
	uint64_t offs[] = {FILE_LEN - 10000, FILE_LEN - 1, FILE_LEN, FILE_LEN + 100000};
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(submit_slot(i, offs[i], 20000), 0);
		struct stoup_read_done done = reap_one();
		ck_assert_int_eq(done.result, -ENODATA);
		ck_assert_ptr_null(done.bytes);
		/* Behind the end: where the read began, at most 4095 less. */
		ck_assert_uint_le(done.end_off, offs[i] > FILE_LEN ? offs[i] : FILE_LEN);
		if (offs[i] < FILE_LEN)
			ck_assert_uint_eq(done.end_off, FILE_LEN);
		stoup_staging_put(staging, done.slot_idx);
	}
	ck_assert_uint_eq(stoup_reader_counters(reader)->errors, 4);
}
END_TEST

START_TEST(a_file_truncated_under_way_fails_its_own_reads_only)
{
	const uint64_t cut = 3000001;
	if (!setup_reader(variant(_i)))
		return;
	ck_assert_int_eq(submit_slot(1, cut - 70000, 60000), 0);
	ck_assert_int_eq(submit_slot(2, cut - 60000, 60001), 0);
	ck_assert_int_eq(ftruncate(file_fd, (off_t)cut), 0);
	for (int i = 0; i < 2; i++) {
		struct stoup_read_done done = reap_one();
		if (done.cookie == 1) {
			ck_assert_int_eq(done.result, 60000);
			ck_assert_uint_eq(first_wrong(done.bytes, cut - 70000, 60000), 60000);
		} else {
			ck_assert_int_eq(done.result, -ENODATA);
			ck_assert_uint_eq(done.end_off, cut);
		}
	}
}
END_TEST

START_TEST(memory_is_not_written_after_destroy)
{
	size_t region_len;
	if (!setup_reader(variant(_i)))
		return;
	uint8_t *region = stoup_staging_region(staging, &region_len);
	for (int round = 0; round < 8; round++) {
		for (uint32_t i = 0; i < DEPTH; i++)
			ck_assert_int_eq(submit_slot(i, i * STORED_CAP, STORED_CAP), 0);
		if (round % 4 != 3) /* also with a batch that was never handed over */
			ck_assert_int_eq(stoup_reader_flush(reader), 0);
		stoup_reader_destroy(reader);
		reader = NULL;
		memset(region, 0x5a, region_len);
		usleep(5000);
		size_t written = 0;
		for (size_t i = 0; i < region_len; i += 64)
			written += region[i] != 0x5a;
		ck_assert_uint_eq(written, 0);
		for (int32_t i = 0; i < (int32_t)DEPTH; i++)
			stoup_staging_put(staging, i);
		cache_drop();
		ck_assert_int_eq(setup_reader(variant(_i)), 1);
	}
}
END_TEST

START_TEST(a_file_with_requests_is_busy_and_a_removed_one_unknown)
{
	if (!setup_reader(variant(_i)))
		return;
	uint32_t idx = (uint32_t)file_idx;
	ck_assert_int_eq(submit_slot(1, 0, 4096), 0);
	ck_assert_int_eq(stoup_reader_file_remove(reader, idx), -EBUSY);
	ck_assert_int_eq(reap_one().result, 4096);
	ck_assert_int_eq(stoup_reader_file_remove(reader, idx), 0);
	ck_assert_int_eq(stoup_reader_file_remove(reader, idx), -ENOENT);
	ck_assert_int_eq(submit_slot(1, 0, 4096), -EINVAL);
	ck_assert_int_eq(stoup_reader_try_cached(reader, idx, 0, 1, dir), -EINVAL);
	/* The index is used again, for the file that it names then. */
	char other[320];
	snprintf(other, sizeof(other), "%s/other", dir);
	int fd = open(other, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_eq(unlink(other), 0); /* the path need not exist any more */
	ck_assert_int_eq(write(fd, "other file", 10), 10);
	ck_assert_int_eq(stoup_reader_file_add(reader, fd, other, NULL), file_idx);
	ck_assert_int_eq(submit_slot(2, 6, 4), 0);
	struct stoup_read_done done = reap_one();
	ck_assert_int_eq(done.result, 4);
	ck_assert_mem_eq(done.bytes, "file", 4);
	ck_assert_int_eq(done.source, is_direct(_i) ? STOUP_READ_DIRECT : STOUP_READ_BUFFERED);
	close(fd);
}
END_TEST

START_TEST(bytes_in_the_page_cache_are_taken_from_there_and_announced_by_ready)
{
	struct stoup_reader_options opt = variant(_i);
	uint8_t buf[5000];
	opt.cached = STOUP_READER_SWITCH_AUTO;
	opt.cached_len_cap = 100000;
	if (!setup_reader(opt))
		return;
	for (uint64_t off = 0; off < FILE_LEN; off += sizeof(buf))
		ck_assert_int_gt(pread(file_fd, buf, sizeof(buf), (off_t)off), 0);
	if (!is_direct(_i) || stoup_reader_try_cached(reader, (uint32_t)file_idx, 0, 1, buf) != 1)
		return; /* no O_DIRECT, no RWF_NOWAIT, or a cache that cannot be asked */
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_int_eq(submit_slot(i, 1000 + i * 99999, 99999), 0);
	ck_assert_int_eq(submit_slot(9, 5, 100001), 0); /* over cached_len_cap */
	ck_assert_int_eq(stoup_reader_flush(reader), 0);
	ck_assert_uint_eq(stoup_reader_ready(reader), 4);
	for (uint32_t i = 0; i < 5; i++) {
		struct stoup_read_done done = reap_one();
		uint64_t off = done.cookie == 9 ? 5 : 1000 + done.cookie * 99999;
		ck_assert_int_gt(done.result, 0);
		ck_assert_int_eq(done.source == STOUP_READ_CACHED, done.cookie != 9);
		ck_assert_uint_eq(
			first_wrong(done.bytes, off, (size_t)done.result), (size_t)done.result);
	}
	ck_assert_uint_eq(stoup_reader_counters(reader)->cached_reads, 4);
}
END_TEST

START_TEST(a_cold_direct_read_leaves_the_page_cache_cold)
{
	struct stoup_reader_options opt = variant(_i);
	opt.cached = STOUP_READER_SWITCH_AUTO;
	if (!direct_works || !setup_reader(opt))
		return;
	uint8_t byte;
	cache_drop();
	if (cache_pages() != 0)
		return; /* a file system that does not drop, such as tmpfs */
	for (uint32_t i = 0; i < DEPTH; i++)
		ck_assert_int_eq(submit_slot(i, i * STORED_CAP, STORED_CAP - 1), 0);
	for (uint32_t i = 0; i < DEPTH; i++)
		ck_assert_int_eq(reap_one().source, STOUP_READ_DIRECT);
	ck_assert_int_eq(submit_slot(DEPTH, FILE_LEN - 1000, 1000), 0); /* nothing behind it */
	ck_assert_int_eq(reap_one().source, STOUP_READ_DIRECT);
	ck_assert_int_eq(
		stoup_reader_try_cached(reader, (uint32_t)file_idx, 77, 1, &byte), -EAGAIN);
	usleep(20000); /* read-ahead would arrive now */
	ck_assert_uint_eq(cache_pages(), 0);
	ck_assert_uint_eq(stoup_reader_counters(reader)->cached_misses, DEPTH + 1);
}
END_TEST

START_TEST(a_scan_behind_a_warm_beginning_does_not_warm_the_rest)
{
	struct stoup_reader_options opt = variant(_i);
	opt.cached = STOUP_READER_SWITCH_AUTO;
	if (!direct_works || !setup_reader(opt))
		return;
	uint8_t buf[4096];
	cache_drop();
	if (cache_pages() != 0)
		return;
	/* The reads themselves read ahead: how much becomes warm is the device's setting. */
	for (uint64_t off = 0; off < 1u << 20; off += sizeof(buf))
		ck_assert_int_eq(pread(file_fd, buf, sizeof(buf), (off_t)off), sizeof(buf));
	usleep(20000);
	size_t warm = cache_pages();
	for (uint64_t off = 0; off + 65536 <= FILE_LEN; off += 65536) {
		ck_assert_int_eq(submit_slot(off, off, 65536), 0);
		struct stoup_read_done done = reap_one();
		ck_assert_int_eq(done.result, 65536);
		ck_assert_uint_eq(first_wrong(done.bytes, off, 65536), 65536);
		stoup_staging_put(staging, done.slot_idx);
	}
	usleep(20000);
	ck_assert_uint_le(cache_pages(), warm); /* the kernel may take some away */
}
END_TEST

START_TEST(bad_requests_are_refused)
{
	uint8_t byte = 7;
	if (!setup_reader(variant(_i)))
		return;
	struct stoup_read good = {.len = 1,
		.file_idx = (uint32_t)file_idx,
		.slot_idx = -1,
		.dst = &byte,
		.dst_cap = 1};
	struct stoup_read bad = good;
	bad.len = 0;
	ck_assert_int_eq(stoup_reader_submit(reader, &bad), -EINVAL);
	bad = good;
	bad.len = 2;
	ck_assert_int_eq(stoup_reader_submit(reader, &bad), -EINVAL);
	bad = good;
	bad.file_idx = UINT32_MAX;
	ck_assert_int_eq(stoup_reader_submit(reader, &bad), -EINVAL);
	bad = good;
	bad.file_off = UINT64_MAX;
	ck_assert_int_eq(stoup_reader_submit(reader, &bad), -EINVAL);
	bad = good;
	bad.dst = NULL;
	ck_assert_int_eq(stoup_reader_submit(reader, &bad), -EINVAL);
	bad.slot_idx = 32;
	ck_assert_int_eq(stoup_reader_submit(reader, &bad), -EINVAL);
	bad.slot_idx = 0;
	bad.len = STORED_CAP + 1;
	ck_assert_int_eq(stoup_reader_submit(reader, &bad), -EMSGSIZE);
	ck_assert_int_eq(stoup_reader_submit(reader, &good), 0);
	ck_assert_int_eq(reap_one().result, 1);
	ck_assert_uint_eq(byte, byte_at(0));
}
END_TEST

START_TEST(more_files_than_the_limit_are_refused_with_the_limit)
{
	struct stoup_reader_options opt = variant(_i);
	struct stoup_error err = {0};
	opt.file_cap = 3;
	if (!setup_reader(opt))
		return;
	ck_assert_int_eq(stoup_reader_file_add(reader, file_fd, path, &err), 1);
	ck_assert_int_eq(stoup_reader_file_add(reader, file_fd, path, &err), 2);
	ck_assert_int_eq(stoup_reader_file_add(reader, file_fd, path, &err), -ENFILE);
	ck_assert_ptr_nonnull(strstr(err.text, "3 files"));
	file_idx = 2;
	ck_assert_int_eq(submit_slot(1, 3, 5), 0);
	ck_assert_uint_eq(first_wrong(reap_one().bytes, 3, 5), 5);
}
END_TEST

START_TEST(files_beyond_the_registered_table_are_read_by_descriptor)
{
	/* RLIMIT_NOFILE bounds the table of io_uring: with 8 slots the fifth file has none. */
	struct rlimit limit = {0}, before;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	struct stoup_reader_options opt = variant(_i);
	struct stoup_error err = {0};
	setup_staging(32);
	opt.staging = staging;
	limit.rlim_cur = 8;
	limit.rlim_max = before.rlim_max;
	/* The descriptors themselves need the real limit: only creation sees the small one. */
	int rc = -EMFILE, probe_fd = dup(file_fd);
	close(probe_fd);
	if (probe_fd >= 6)
		limit.rlim_cur = (rlim_t)probe_fd + 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	rc = stoup_reader_create(&opt, &reader, &err);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	if (rc < 0 && opt.kind == STOUP_READER_URING)
		return;
	ck_assert_msg(rc == 0, "%s", err.text);
	for (int i = 0; i < 40; i++) {
		file_idx = stoup_reader_file_add(reader, file_fd, path, &err);
		ck_assert_int_eq(file_idx, i);
		ck_assert_int_eq(submit_slot(1, 1000u * (unsigned)i, 999), 0);
		struct stoup_read_done done = reap_one();
		ck_assert_int_eq(done.result, 999);
		ck_assert_uint_eq(first_wrong(done.bytes, 1000u * (unsigned)i, 999), 999);
		stoup_staging_put(staging, done.slot_idx);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reader");
	TCase *tcase = tcase_create("reader");
	tcase_add_checked_fixture(tcase, setup_file, teardown_file);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, random_reads_return_the_bytes_of_the_file, 0, 4);
	tcase_add_loop_test(tcase, a_scan_keeps_at_least_eight_reads_in_flight, 0, 4);
	tcase_add_loop_test(tcase, a_batch_is_handed_over_in_one_call, 0, 4);
	tcase_add_loop_test(
		tcase, the_poll_descriptor_is_readable_only_while_completions_wait, 0, 4);
	tcase_add_loop_test(
		tcase, completions_left_over_by_a_small_reap_are_counted_as_ready, 0, 4);
	tcase_add_loop_test(tcase, a_read_into_callers_memory_stays_inside_its_room, 0, 4);
	tcase_add_loop_test(tcase, a_read_beyond_the_end_names_the_end, 0, 4);
	tcase_add_loop_test(tcase, a_file_truncated_under_way_fails_its_own_reads_only, 0, 4);
	tcase_add_loop_test(tcase, memory_is_not_written_after_destroy, 0, 4);
	tcase_add_loop_test(tcase, a_file_with_requests_is_busy_and_a_removed_one_unknown, 0, 4);
	tcase_add_loop_test(
		tcase, bytes_in_the_page_cache_are_taken_from_there_and_announced_by_ready, 0, 4);
	tcase_add_loop_test(tcase, a_cold_direct_read_leaves_the_page_cache_cold, 0, 2);
	tcase_add_loop_test(tcase, a_scan_behind_a_warm_beginning_does_not_warm_the_rest, 0, 2);
	tcase_add_loop_test(tcase, bad_requests_are_refused, 0, 4);
	tcase_add_loop_test(tcase, more_files_than_the_limit_are_refused_with_the_limit, 0, 4);
	tcase_add_loop_test(tcase, files_beyond_the_registered_table_are_read_by_descriptor, 0, 4);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
