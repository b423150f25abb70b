/* SPDX-License-Identifier: Apache-2.0 */
/* The reader where the kernel refuses what it would like to have: io_uring or a part of it (a
 * seccomp filter, RLIMIT_MEMLOCK), questions about the page cache, options. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/reader_fixture.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same on every architecture that has it, but alpha */
#endif

#define CHILD_SKIPS 77 /* the machine cannot play this case: said on stderr */

/* ---- children -------------------------------------------------------------------------------- */

/* A filter or a limit stays for the life of a process, so each case gets one of its own. A failed
 * assertion in it ends it with another status. */
static void in_child(void (*body)(void))
{
	int status = 0;
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPS) {
		fprintf(stderr, "this machine cannot refuse that, case left out\n");
		return;
	}
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		"the child ended with status 0x%x", (unsigned)status);
}

/* From now on the system call `nr` fails with `code` in this process. */
static void refuse(long nr, int code)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)code & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = 4, .filter = filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		_exit(CHILD_SKIPS);
}

/* No more than `len` bytes of locked memory. The limit binds nobody who has CAP_IPC_LOCK: root
 * becomes somebody else. */
static void limit_locked_memory(rlim_t len)
{
	struct rlimit limit = {len, len};
	if (geteuid() == 0 && (fchown(file_fd, 65534, 65534) < 0 || chown(dir, 65534, 65534) < 0 ||
				      setgid(65534) < 0 || setuid(65534) < 0))
		_exit(CHILD_SKIPS);
	if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		_exit(CHILD_SKIPS);
}

static void reads_go_well(void)
{
	for (uint32_t i = 0; i < 8; i++)
		ck_assert_int_eq(submit_slot(i, i * 70001, 70000), 0);
	for (uint32_t i = 0; i < 8; i++) {
		struct stoup_read_done done = reap_one();
		ck_assert_int_eq(done.result, 70000);
		ck_assert_uint_eq(first_wrong(done.bytes, done.cookie * 70001, 70000), 70000);
		stoup_staging_put(staging, done.slot_idx);
	}
}

/* AUTO became the pool, for a reason with these words, and reads. */
static void auto_is_the_pool(const char *word, const char *second_word)
{
	struct stoup_reader_options opt = {.cached = STOUP_READER_SWITCH_OFF};
	ck_assert_int_eq(setup_reader(opt), 1);
	ck_assert_str_eq(stoup_reader_kind(reader), "pread");
	ck_assert_msg(strstr(stoup_reader_reason(reader), word) &&
			      strstr(stoup_reader_reason(reader), second_word),
		"reason: %s", stoup_reader_reason(reader));
	reads_go_well();
}

static void uring_fails(int code, const char *word)
{
	struct stoup_reader_options opt = {.kind = STOUP_READER_URING};
	struct stoup_error err = {0};
	ck_assert_int_eq(stoup_reader_create(&opt, &reader, &err), -code);
	ck_assert_int_eq(err.code, -code);
	ck_assert_msg(strstr(err.text, word) != NULL, "text: %s", err.text);
	ck_assert_ptr_null(reader);
}

/* ---- io_uring -------------------------------------------------------------------------------- */

static void setup_forbidden(void)
{
	refuse(SYS_io_uring_setup, EPERM);
	uring_fails(EPERM, "io_uring_setup: Operation not permitted");
	auto_is_the_pool("io_uring_setup: Operation not permitted", "io_uring_disabled");
}

START_TEST(a_profile_that_forbids_io_uring_leads_to_the_pool_with_the_reason)
{
	in_child(setup_forbidden);
}
END_TEST

static void setup_unknown(void)
{
	refuse(SYS_io_uring_setup, ENOSYS);
	uring_fails(ENOSYS, "io_uring_setup: Function not implemented");
	auto_is_the_pool("io_uring_setup: Function not implemented", "without io_uring");
}

START_TEST(a_kernel_without_io_uring_leads_to_the_pool_with_the_reason)
{
	in_child(setup_unknown);
}
END_TEST

static void enter_forbidden(void)
{
	struct stoup_reader_options opt = {.kind = STOUP_READER_URING};
	if (stoup_reader_create(&opt, &reader, NULL) < 0)
		_exit(CHILD_SKIPS);
	stoup_reader_destroy(reader);
	reader = NULL;
	refuse(SYS_io_uring_enter, EPERM);
	uring_fails(EPERM, "self-test");
	auto_is_the_pool("self-test", "Operation not permitted");
}

START_TEST(a_ring_that_can_be_made_but_not_used_leads_to_the_pool)
{
	in_child(enter_forbidden);
}
END_TEST

static void register_forbidden(void)
{
	struct stoup_reader_options opt = {.kind = STOUP_READER_URING};
	if (stoup_reader_create(&opt, &reader, NULL) < 0)
		_exit(CHILD_SKIPS);
	stoup_reader_destroy(reader);
	refuse(SYS_io_uring_register, EPERM);
	opt.kind = STOUP_READER_AUTO;
	opt.cached = STOUP_READER_SWITCH_OFF;
	ck_assert_int_eq(setup_reader(opt), 1);
	ck_assert_str_eq(stoup_reader_kind(reader), "io_uring");
	ck_assert_ptr_nonnull(
		strstr(stoup_reader_reason(reader), " 0 fixed files, fixed buffers off"));
	reads_go_well();
}

START_TEST(a_ring_without_registration_reads_by_descriptor)
{
	in_child(register_forbidden);
}
END_TEST

static void no_locked_memory(void)
{
	struct stoup_reader_options opt = {.kind = STOUP_READER_URING};
	struct stoup_error err = {0};
	limit_locked_memory(0);
	if (stoup_reader_create(&opt, &reader, &err) == 0)
		_exit(CHILD_SKIPS); /* a kernel that charges rings to somebody else */
	if (err.code != -ENOMEM)
		_exit(CHILD_SKIPS); /* no io_uring here, for another reason */
	auto_is_the_pool("io_uring_setup: Cannot allocate memory", "RLIMIT_MEMLOCK is 0");
}

START_TEST(without_locked_memory_the_pool_serves_and_the_limit_is_named)
{
	in_child(no_locked_memory);
}
END_TEST

static void little_locked_memory(void)
{
	struct stoup_reader_options opt = {
		.kind = STOUP_READER_URING, .cached = STOUP_READER_SWITCH_OFF};
	struct stoup_error err = {0};
	limit_locked_memory(256u << 10); /* room for rings, not for 17 MiB of staging */
	if (!setup_reader(opt))
		_exit(CHILD_SKIPS);
	ck_assert_ptr_nonnull(strstr(stoup_reader_reason(reader), "fixed buffers off (refused"));
	reads_go_well();
	stoup_reader_destroy(reader);
	reader = NULL;
	opt.fixed = STOUP_READER_SWITCH_ON;
	opt.staging = staging;
	ck_assert_int_eq(stoup_reader_create(&opt, &reader, &err), -ENOMEM);
	ck_assert_ptr_nonnull(strstr(err.text, "RLIMIT_MEMLOCK"));
	ck_assert_ptr_null(reader);
}

START_TEST(little_locked_memory_gives_a_ring_without_registered_buffers)
{
	in_child(little_locked_memory);
}
END_TEST

/* ---- the page cache -------------------------------------------------------------------------- */

static void file_warm(void)
{
	static uint8_t buf[65536];
	for (uint64_t off = 0; off < FILE_LEN; off += sizeof(buf))
		ck_assert_int_gt(pread(file_fd, buf, sizeof(buf), (off_t)off), 0);
}

/* A reader for which RWF_NOWAIT works on this file, with everything allowed. */
static void setup_cached(void)
{
	struct stoup_reader_options opt = {.kind = STOUP_READER_PREAD};
	uint8_t byte;
	ck_assert_int_eq(setup_reader(opt), 1);
	file_warm();
	if (stoup_reader_try_cached(reader, (uint32_t)file_idx, 0, 1, &byte) != 1)
		_exit(CHILD_SKIPS);
}

static void cachestat_unknown(void)
{
	static uint8_t bytes[300000];
	setup_cached();
	refuse(SYS_cachestat, ENOSYS);
	int64_t got = stoup_reader_try_cached(reader, (uint32_t)file_idx, 4001, 300000, bytes);
	ck_assert_int_eq(got, 300000);
	ck_assert_uint_eq(first_wrong(bytes, 4001, 300000), 300000);
	cache_drop();
	if (cache_pages() != 0)
		_exit(CHILD_SKIPS);
	got = stoup_reader_try_cached(reader, (uint32_t)file_idx, 4001, 300000, bytes);
	ck_assert_int_eq(got, -EAGAIN);
	usleep(20000); /* read-ahead would arrive now */
	ck_assert_uint_eq(cache_pages(), 0);
}

START_TEST(a_kernel_without_cachestat_is_asked_by_mincore)
{
	in_child(cachestat_unknown);
}
END_TEST

static void nothing_can_be_asked(void)
{
	uint8_t byte;
	setup_cached();
	refuse(SYS_cachestat, EPERM);
	refuse(SYS_mincore, EPERM);
	int64_t got = stoup_reader_try_cached(reader, (uint32_t)file_idx, 0, 1, &byte);
	ck_assert_int_eq(got, -EAGAIN);
	reads_go_well();
	ck_assert_uint_eq(stoup_reader_counters(reader)->cached_reads, 0);
}

START_TEST(a_page_cache_that_cannot_be_asked_is_not_tried)
{
	in_child(nothing_can_be_asked);
}
END_TEST

/* ---- options --------------------------------------------------------------------------------- */

START_TEST(automatic_choice_is_io_uring_where_that_can_be_had)
{
	struct stoup_reader_options opt = {.kind = STOUP_READER_URING};
	struct stoup_error err = {0};
	int rc = stoup_reader_create(&opt, &reader, &err);
	const char *expected = rc == 0 ? "io_uring" : "pread";
	if (rc == 0)
		stoup_reader_destroy(reader);
	opt.kind = STOUP_READER_AUTO;
	ck_assert_int_eq(stoup_reader_create(&opt, &reader, &err), 0);
	ck_assert_str_eq(stoup_reader_kind(reader), expected);
	ck_assert_uint_eq(stoup_reader_depth(reader), 16);
	if (rc < 0)
		ck_assert_str_eq(stoup_reader_reason(reader), err.text);
	stoup_reader_destroy(reader);
	opt.kind = STOUP_READER_PREAD;
	ck_assert_int_eq(stoup_reader_create(&opt, &reader, &err), 0);
	ck_assert_str_eq(stoup_reader_kind(reader), "pread");
	ck_assert_str_eq(stoup_reader_reason(reader), "asked for by option");
}
END_TEST

START_TEST(options_out_of_range_are_refused_by_name)
{
	struct stoup_error err = {0};
	struct stoup_reader_options opt = {.depth = 1025};
	ck_assert_int_eq(stoup_reader_create(&opt, &reader, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "depth is 1025"));
	opt = (struct stoup_reader_options){.threads = 65};
	ck_assert_int_eq(stoup_reader_create(&opt, &reader, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "threads"));
	opt = (struct stoup_reader_options){.cached_len_cap = (2u << 20) + 1};
	ck_assert_int_eq(stoup_reader_create(&opt, &reader, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "cached_len_cap"));
	ck_assert_ptr_null(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reader_refusal");
	TCase *tcase = tcase_create("reader_refusal");
	tcase_add_checked_fixture(tcase, setup_file, teardown_file);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_profile_that_forbids_io_uring_leads_to_the_pool_with_the_reason);
	tcase_add_test(tcase, a_kernel_without_io_uring_leads_to_the_pool_with_the_reason);
	tcase_add_test(tcase, a_ring_that_can_be_made_but_not_used_leads_to_the_pool);
	tcase_add_test(tcase, a_ring_without_registration_reads_by_descriptor);
	tcase_add_test(tcase, without_locked_memory_the_pool_serves_and_the_limit_is_named);
	tcase_add_test(tcase, little_locked_memory_gives_a_ring_without_registered_buffers);
	tcase_add_test(tcase, a_kernel_without_cachestat_is_asked_by_mincore);
	tcase_add_test(tcase, a_page_cache_that_cannot_be_asked_is_not_tried);
	tcase_add_test(tcase, automatic_choice_is_io_uring_where_that_can_be_had);
	tcase_add_test(tcase, options_out_of_range_are_refused_by_name);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
