/* SPDX-License-Identifier: Apache-2.0 */
/* test_wake.c - waiters that are woken for nothing, all the time, by wakes and by signals.
 *
 * A thread wakes every slot of the consumer's page without pause, and a timer interrupts every call,
 * while others scan a pool that is far too small: each wait must end with its own block.
 */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "consumer/client.h"
#include "producer/daemon.h"
#include "shm/futex.h"
#include "tests/unit/import_fixture.h"

#define RECORD_CNT 30000u
#define SCAN_CNT   3
#define ROUND_CNT  100 /* at most */
#define THREAD_CNT 3

static char pool[48];
static struct stoup *st;
static struct stoup_series series;
static _Atomic int done;
static pid_t daemon_pid;

static void store_make(void)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	uint32_t idx = fx_series(import, "A");

	for (uint32_t i = 0; i < RECORD_CNT; i++)
		fx_put(import, idx, i, 1000 + i);
	fx_finish(import);
}

static void daemon_start(void)
{
	struct stoup_daemon_options opt = {.store_path = {fx_store},
		.store_cnt = 1,
		.pool = pool,
		.pool_len = 512 << 10,
		.backing = STOUP_BACKING_MEMFD,
		.consumer_cap = 4,
		.cell_cap = 64,
		.request_cap = STOUP_SLOT_CNT,
		.decode_threads = 1,
		.lease_bytes_cap = 512 << 10,
		.request_timeout_ns = UINT64_C(30000000000),
		.automatic = 1, /* the private runtime directory, whoever runs this */
		.linger_ns = UINT64_C(600000000000),
		.quiet = 1};
	char text[256] = {0};
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	daemon_pid = fork();
	if (daemon_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		opt.ready_fd = fds[1];
		_exit(stoup_daemon_run(&opt, NULL) < 0);
	}
	close(fds[1]);
	ck_assert_int_gt(read(fds[0], text, sizeof(text) - 1), 0);
	ck_assert_str_eq(text, "ready\n");
	close(fds[0]);
}

static void setup(void)
{
	struct stoup_options opt;

	fx_setup();
	setenv("XDG_RUNTIME_DIR", fx_root, 1);
	snprintf(pool, sizeof(pool), "wake%d", (int)getpid());
	store_make();
	daemon_start();
	stoup_options_init(&opt);
	opt.spin_ns = 1; /* to sleep at once */
	opt.ahead_cnt = UINT32_MAX;
	ck_assert_int_eq(stoup_attach(pool, &opt, &st, NULL), 0);
	ck_assert_int_eq(stoup_series_find(st, "A", &series, NULL), 0);
	atomic_store(&done, 0);
}

static void teardown(void)
{
	char path[400];
	int status;

	ck_assert_int_eq(stoup_detach(st), 0);
	kill(daemon_pid, SIGTERM);
	ck_assert_int_eq(waitpid(daemon_pid, &status, 0), daemon_pid);
	ck_assert_int_eq(status, 0);
	snprintf(path, sizeof(path), "%s/stoup", fx_root);
	fx_remove(path);
	fx_teardown();
}

/* The number of wrong records of one scan, or -1 for an error. */
static long scan(void)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint64_t cnt = 0;
	long wrong = 0;
	int rc;

	if (stoup_scan(st, &series, NULL, &cur, NULL) < 0)
		return -1;
	while ((rc = stoup_next(cur, &span)) > 0)
		for (uint64_t i = 0; i < span.record_cnt; i++, cnt++) {
			struct fx_record expected = fx_record_make(cnt, (int64_t)(1000 + cnt));
			const char *at = (const char *)span.base + i * span.stride;

			wrong += memcmp(at, &expected, sizeof(expected)) != 0;
		}
	if (rc < 0)
		fprintf(stderr, "%s\n", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	return rc < 0 || cnt != RECORD_CNT ? -1 : wrong;
}

static void *scan_run(void *arg)
{
	long *ret = arg;

	for (int i = 0; i < SCAN_CNT && *ret == 0; i++)
		*ret = scan();
	return NULL;
}

static void *wake_run(void *arg)
{
	_Atomic uint64_t *woken = arg;

	while (!atomic_load(&done))
		for (uint32_t i = 0; i < STOUP_SLOT_CNT; i++) {
			int rc = stoup_futex_wake(&st->current->page->slots[i].state, 64);

			atomic_fetch_add(woken, rc > 0 ? (uint64_t)rc : 0);
		}
	return NULL;
}

static void scan_all(void)
{
	pthread_t threads[THREAD_CNT];
	long results[THREAD_CNT] = {0};

	for (int i = 0; i < THREAD_CNT; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, scan_run, &results[i]), 0);
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREAD_CNT; i++)
		ck_assert_int_eq(results[i], 0);
}

START_TEST(waits_that_are_woken_for_nothing_end_with_their_own_block)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	_Atomic uint64_t woken = 0;
	pthread_t waker;

	ck_assert_int_eq(pthread_create(&waker, NULL, wake_run, &woken), 0);
	/* The waker may find no processor while others scan; again until it woke somebody. */
	for (int i = 0; i < ROUND_CNT && (i == 0 || atomic_load(&woken) == 0); i++)
		scan_all();
	atomic_store(&done, 1);
	pthread_join(waker, NULL);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_gt(atomic_load(&woken), 0);
	ck_assert_uint_eq(stats.timeout_cnt, 0);
	fprintf(stderr, "%llu false wakes, %llu waits\n", (unsigned long long)atomic_load(&woken),
		(unsigned long long)stats.miss_cnt);
}
END_TEST

static _Atomic uint64_t signal_cnt;

static void signal_hit(int signo)
{
	(void)signo;
	atomic_fetch_add(&signal_cnt, 1);
}

START_TEST(waits_that_are_interrupted_by_signals_end_with_their_own_block)
{
	const struct sigaction action = {.sa_handler = signal_hit};
	const struct itimerval timer = {{.tv_usec = 100}, {.tv_usec = 100}}, none = {{0}, {0}};
	struct stoup_stats stats = {.struct_len = sizeof(stats)};

	ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
	scan_all();
	/* Attach and detach as well. */
	for (int i = 0; i < 20; i++) {
		struct stoup_error err = {0};
		struct stoup *other = NULL;

		ck_assert_msg(stoup_attach(pool, NULL, &other, &err) == 0, "%s", err.text);
		ck_assert_int_eq(stoup_detach(other), 0);
	}
	ck_assert_int_eq(setitimer(ITIMER_REAL, &none, NULL), 0);
	ck_assert_uint_gt(atomic_load(&signal_cnt), 10);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.timeout_cnt, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wake");
	TCase *tc = tcase_create("wake");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 100);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, waits_that_are_woken_for_nothing_end_with_their_own_block);
	tcase_add_test(tc, waits_that_are_interrupted_by_signals_end_with_their_own_block);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
