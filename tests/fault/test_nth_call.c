/* SPDX-License-Identifier: Apache-2.0 */
/* test_nth_call.c - the first, second, third ... call for memory, descriptors or space fails: each time a
 * clean error or a way around, nothing left behind, and the store as before.
 *
 * Of a consumer (attach, find, scan, detach), of an import, of opening a store, of a daemon's start.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "consumer/stoup.h"
#include "producer/daemon.h"
#include "tests/fault/countdown.h"
#include "tests/unit/import_fixture.h"

#define RECORD_CNT 6000u
#define POOL_LEN   (1u << 20)
#define NTH_CAP    5000

static char pool[48];
static struct stoup_schema schema; /* made once: its making asserts */

/* ---- a store and a daemon ---------------------------------------------------------------------- */

static int ingest(uint64_t first_id, int64_t first_key, struct stoup_error *err)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = NULL;
	int64_t series = 0;
	int rc = stoup_encoding_parse("default", "", &options.encoding);

	if (rc == 0)
		rc = stoup_import_begin(&options, &import, err);
	if (rc == 0) {
		series = stoup_import_series(import, "A", &schema, err);
		rc = series < 0 ? (int)series : 0;
	}
	for (uint32_t i = 0; i < RECORD_CNT && rc == 0; i++)
		rc = fx_try_put(import, (uint32_t)series, first_id + i, first_key + i, err);
	if (rc == 0)
		rc = stoup_import_finish(import, err);
	stoup_import_destroy(import);
	return rc;
}

static void setup(void)
{
	fx_setup();
	schema = fx_schema();
	setenv("XDG_RUNTIME_DIR", fx_root, 1);
	snprintf(pool, sizeof(pool), "nth%d", (int)getpid());
	ck_assert_int_eq(ingest(0, 1000, NULL), 0);
}

static void teardown(void)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/stoup", fx_root);
	fx_remove(path);
	fx_teardown();
}

static struct stoup_daemon_options daemon_options(uint32_t backing)
{
	struct stoup_daemon_options opt = {.store_path = {fx_store},
		.store_cnt = 1,
		.pool = pool,
		.pool_len = POOL_LEN,
		.backing = backing,
		.consumer_cap = 64, /* who failed to attach is deaf for a moment */
		.cell_cap = 64,
		.request_cap = STOUP_SLOT_CNT,
		.decode_threads = 2,
		.request_timeout_ns = UINT64_C(30000000000),
		.automatic = 1, /* the private runtime directory, whoever runs this */
		.linger_ns = UINT64_C(600000000000),
		.ready_fd = -1,
		.quiet = 1};

	return opt;
}

static pid_t daemon_start(uint32_t backing)
{
	struct stoup_daemon_options opt = daemon_options(backing);
	char text[256] = {0};
	int fds[2];
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		opt.ready_fd = fds[1];
		_exit(stoup_daemon_run(&opt, NULL) < 0);
	}
	close(fds[1]);
	ck_assert_int_gt(read(fds[0], text, sizeof(text) - 1), 0);
	ck_assert_str_eq(text, "ready\n");
	close(fds[0]);
	return pid;
}

static void daemon_stop(pid_t pid)
{
	int status;

	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- a consumer -------------------------------------------------------------------------------- */

static int read_all(struct stoup *st, struct stoup_error *err)
{
	struct stoup_cursor *cur = NULL;
	struct stoup_series series;
	struct stoup_lease lease = {0};
	struct stoup_span span;
	uint64_t cnt = 0;
	int rc = stoup_series_find(st, "A", &series, err);

	if (rc == 0)
		rc = stoup_scan(st, &series, NULL, &cur, err);
	while (rc == 0 && (rc = stoup_next(cur, &span)) > 0) {
		const struct fx_record *records = span.base;

		for (uint64_t i = 0; i < span.record_cnt; i++, cnt++) {
			struct fx_record expected = fx_record_make(cnt, (int64_t)(1000 + cnt));

			COUNTDOWN_MUST(memcmp(&records[i], &expected, sizeof(expected)) == 0);
		}
		rc = lease.client ? 0 : stoup_hold(&span, &lease);
		if (rc < 0)
			stoup_error_set(err, rc, "stoup_hold");
	}
	if (rc == 0)
		COUNTDOWN_MUST(cnt == RECORD_CNT);
	else if (cur && stoup_cursor_error(cur)->text[0])
		*err = *stoup_cursor_error(cur);
	if (lease.client)
		COUNTDOWN_MUST(stoup_release(&lease) == 0);
	stoup_cursor_close(cur);
	return rc;
}

static int consume(struct stoup_error *err)
{
	struct stoup_options opt;
	struct stoup *st = NULL;
	int rc;

	stoup_options_init(&opt);
	opt.reconnect_ns = 1;
	rc = stoup_attach(pool, &opt, &st, err);
	if (rc < 0) {
		COUNTDOWN_MUST(!st);
		return rc;
	}
	rc = read_all(st, err);
	COUNTDOWN_MUST(stoup_detach(st) == 0);
	return rc;
}

static void check_consumer(enum countdown_kind kind, int code, uint32_t backing)
{
	struct stoup_error err = {0};
	struct countdown c;
	pid_t pid = daemon_start(backing);
	long nth, failed = 0;
	int rc, fired = 1;

	ck_assert_int_eq(consume(&err), 0);
	for (nth = 1; nth < NTH_CAP && fired; nth++) {
		memset(&err, 0, sizeof(err));
		countdown_begin(&c, kind, nth);
		rc = consume(&err);
		fired = countdown_end(&c);
		ck_assert_msg(rc == 0 || rc == -code, "call %ld: %d %s", nth, rc, err.text);
		ck_assert_msg(rc == 0 || err.text[0], "call %ld: no text", nth);
		failed += rc < 0;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_gt(failed, 0);
	fprintf(stderr, "consumer: %ld calls, %ld errors\n", nth - 2, failed);
	daemon_stop(pid);
}

START_TEST(a_consumer_survives_that_any_call_for_memory_fails)
{
	check_consumer(COUNTDOWN_MEMORY, ENOMEM, STOUP_BACKING_POSIX);
}
END_TEST

START_TEST(a_consumer_survives_that_any_call_for_a_descriptor_fails)
{
	check_consumer(COUNTDOWN_FILES, EMFILE, STOUP_BACKING_MEMFD);
}
END_TEST

/* There was a way around, or the error is the one; threads are refused with EAGAIN. */
static int is_clean(int rc, int code)
{
	return rc == 0 || rc == -code || (code == ENOMEM && rc == -EAGAIN);
}

/* ---- an import --------------------------------------------------------------------------------- */

/* Records of the store, which must be whole. */
static uint64_t store_records(void)
{
	struct stoup_store *store;
	uint64_t cnt = 0;

	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->fault_cnt, 0);
	for (uint32_t i = 0; i < store->volume_cnt; i++)
		for (uint32_t s = 0; s < store->volumes[i]->index->series_cnt; s++)
			cnt += store->volumes[i]->index->series[s].record_cnt;
	stoup_store_close(store);
	return cnt;
}

static void check_import(enum countdown_kind kind, int code)
{
	struct stoup_error err = {0};
	struct countdown c;
	long nth, failed = 0;
	int rc, fired = 1;

	for (nth = 1; nth < NTH_CAP && fired; nth++) {
		memset(&err, 0, sizeof(err));
		countdown_begin(&c, kind, nth);
		rc = ingest(RECORD_CNT, 1000 + RECORD_CNT, &err);
		fired = countdown_end(&c);
		ck_assert_msg(is_clean(rc, code), "call %ld: %d %s", nth, rc, err.text);
		ck_assert_msg(rc == 0 || err.text[0], "call %ld: no text", nth);
		ck_assert_int_eq(fx_file_cnt(".tmp-"), 0);
		ck_assert_uint_eq(store_records(), rc == 0 ? 2 * RECORD_CNT : RECORD_CNT);
		failed += rc < 0;
		if (rc == 0 && fired) {
			/* There was a way around: again from the old contents. */
			fx_remove(fx_store);
			ck_assert_int_eq(ingest(0, 1000, NULL), 0);
		}
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_gt(failed, 1);
	fprintf(stderr, "import: %ld calls, %ld errors\n", nth - 2, failed);
}

START_TEST(an_import_survives_that_any_call_for_memory_fails)
{
	check_import(COUNTDOWN_MEMORY, ENOMEM);
}
END_TEST

START_TEST(an_import_survives_that_any_call_for_a_descriptor_fails)
{
	check_import(COUNTDOWN_FILES, EMFILE);
}
END_TEST

START_TEST(an_import_survives_that_any_call_for_space_fails)
{
	check_import(COUNTDOWN_SPACE, ENOSPC);
}
END_TEST

/* ---- opening a store ---------------------------------------------------------------------------- */

static void check_open(enum countdown_kind kind, int code)
{
	struct stoup_error err = {0};
	struct stoup_store *store;
	struct countdown c;
	long nth, failed = 0;
	int rc, fired = 1;

	for (nth = 1; nth < NTH_CAP && fired; nth++) {
		store = NULL;
		memset(&err, 0, sizeof(err));
		countdown_begin(&c, kind, nth);
		rc = stoup_store_open(fx_store, &store, &err);
		/* A want of ours is no fault of a volume. */
		if (rc == 0) {
			COUNTDOWN_MUST(store->volume_cnt == 2);
			COUNTDOWN_MUST(store->fault_cnt == 0);
			stoup_store_close(store);
		}
		fired = countdown_end(&c);
		ck_assert_msg(rc == 0 || rc == -code, "call %ld: %d %s", nth, rc, err.text);
		ck_assert_msg(rc == 0 || err.text[0], "call %ld: no text", nth);
		failed += rc < 0;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_gt(failed, 1);
}

START_TEST(a_store_is_whole_or_not_opened_when_any_call_fails)
{
	ck_assert_int_eq(ingest(RECORD_CNT, 1000 + RECORD_CNT, NULL), 0);
	check_open(COUNTDOWN_MEMORY, ENOMEM);
	check_open(COUNTDOWN_FILES, EMFILE);
}
END_TEST

/* ---- a daemon's start --------------------------------------------------------------------------- */

static size_t names_left(void)
{
	const struct dirent *entry;
	DIR *dir = opendir("/dev/shm");
	size_t cnt = 0;

	while ((entry = readdir(dir)))
		cnt += strstr(entry->d_name, pool) != NULL;
	closedir(dir);
	return cnt;
}

/* It finds SIGTERM pending as soon as it runs, and so ends in order. */
static int start_and_stop(const struct stoup_daemon_options *opt, struct stoup_error *err)
{
	struct timespec none = {0, 0};
	sigset_t term;
	int rc;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	raise(SIGTERM);
	rc = stoup_daemon_run(opt, err);
	sigtimedwait(&term, NULL, &none);
	return rc;
}

static void check_daemon(
	enum countdown_kind kind, int code, uint32_t backing, enum stoup_reader_kind reader)
{
	struct stoup_daemon_options opt = daemon_options(backing);
	struct stoup_error err = {0};
	struct countdown c;
	long nth, failed = 0;
	int rc, fired = 1;

	opt.reader.kind = reader;
	ck_assert_int_eq(start_and_stop(&opt, &err), 0);
	for (nth = 1; nth < NTH_CAP && fired; nth++) {
		memset(&err, 0, sizeof(err));
		countdown_begin(&c, kind, nth);
		rc = start_and_stop(&opt, &err);
		fired = countdown_end(&c);
		ck_assert_msg(is_clean(rc, code), "call %ld: %d %s", nth, rc, err.text);
		ck_assert_msg(rc == 0 || err.text[0], "call %ld: no text", nth);
		ck_assert_msg(names_left() == 0, "call %ld: names are left", nth);
		failed += rc < 0;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_gt(failed, 0);
	fprintf(stderr, "daemon: %ld calls, %ld errors\n", nth - 2, failed);
	ck_assert_uint_eq(store_records(), RECORD_CNT);
}

START_TEST(a_daemon_starts_or_says_why_when_any_call_for_memory_fails)
{
	check_daemon(COUNTDOWN_MEMORY, ENOMEM, STOUP_BACKING_POSIX, STOUP_READER_AUTO);
	check_daemon(COUNTDOWN_MEMORY, ENOMEM, STOUP_BACKING_MEMFD, STOUP_READER_PREAD);
}
END_TEST

START_TEST(a_daemon_starts_or_says_why_when_any_call_for_a_descriptor_fails)
{
	check_daemon(COUNTDOWN_FILES, EMFILE, STOUP_BACKING_POSIX, STOUP_READER_AUTO);
	check_daemon(COUNTDOWN_FILES, EMFILE, STOUP_BACKING_MEMFD, STOUP_READER_PREAD);
}
END_TEST

START_TEST(a_daemon_starts_or_says_why_when_any_call_for_space_fails)
{
	check_daemon(COUNTDOWN_SPACE, ENOSPC, STOUP_BACKING_POSIX, STOUP_READER_AUTO);
	check_daemon(COUNTDOWN_SPACE, ENOSPC, STOUP_BACKING_MEMFD, STOUP_READER_PREAD);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nth_call");
	TCase *tc = tcase_create("nth_call");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_consumer_survives_that_any_call_for_memory_fails);
	tcase_add_test(tc, a_consumer_survives_that_any_call_for_a_descriptor_fails);
	tcase_add_test(tc, an_import_survives_that_any_call_for_memory_fails);
	tcase_add_test(tc, an_import_survives_that_any_call_for_a_descriptor_fails);
	tcase_add_test(tc, an_import_survives_that_any_call_for_space_fails);
	tcase_add_test(tc, a_store_is_whole_or_not_opened_when_any_call_fails);
	tcase_add_test(tc, a_daemon_starts_or_says_why_when_any_call_for_memory_fails);
	tcase_add_test(tc, a_daemon_starts_or_says_why_when_any_call_for_a_descriptor_fails);
	tcase_add_test(tc, a_daemon_starts_or_says_why_when_any_call_for_space_fails);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
