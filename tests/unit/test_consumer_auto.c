/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_auto.c - the automatic daemon: started once by many, unnoticed by its host.
 *
 * This program is its own stoupd: called with --ready-fd it serves the small conductor's pool under
 * the given name for a second after its last consumer, and notes each start in $FAKE_STARTS. What
 * it does instead is told by $FAKE_STOUPD: "refuse" writes a reason, "die" ends without a word,
 * "held" says until its start number $FAKE_HELD that another process has the name.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>
#include "tests/unit/test_consumer_fake.h"

static const struct fake_series one[] = {
	{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 2, {10, 20}}}},
};

static struct fake fake;
static char run_dir[64], store[96], starts[96], self[PATH_MAX];

/* ---- as the daemon --------------------------------------------------------------------------- */

static const char *argument(int argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	}
	return NULL;
}

static void note_start(int argc, char **argv)
{
	const char *path = getenv("FAKE_STARTS");
	int fd = open(path ? path : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0600);
	char line[512];
	int len = snprintf(line, sizeof(line), "%d %d", getpid(), getsid(0));

	for (int i = 1; i < argc; i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, " %s", argv[i]);
	line[len++] = '\n';
	if (write(fd, line, (size_t)len) != len)
		_exit(1);
	close(fd);
}

/* Descriptors beyond the ready pipe would have come from the host. */
static int stray_fds(void)
{
	int cnt = 0;

	for (int fd = 4; fd < 1024; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
}

static uint32_t start_cnt(char *last, size_t cap);

/* Has this start come too early? */
static int held(void)
{
	const char *until = getenv("FAKE_HELD"), *path = getenv("FAKE_STARTS");
	char line[512];

	snprintf(starts, sizeof(starts), "%s", path ? path : "");
	return start_cnt(line, sizeof(line)) < (until ? (uint32_t)atoi(until) : UINT32_MAX);
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The conductor's turn: a second without a consumer ends it. It runs in the daemon's only thread. */
static void end_when_idle(struct fake *f)
{
	static uint64_t busy_ns;
	const uint64_t bell = 1, now_ns = monotonic_ns();

	if (busy_ns == 0 || (f->peer_cnt > 0 && f->peers[f->peer_cnt - 1].sock_fd >= 0))
		busy_ns = now_ns;
	if (now_ns - busy_ns >= 1000000000)
		FAKE_MUST(write(f->stop_fd, &bell, 8) == 8);
}

static int daemon_main(int argc, char **argv)
{
	const char *mode = getenv("FAKE_STOUPD"), *pool = argument(argc, argv, "--pool");
	int ready_fd = atoi(argument(argc, argv, "--ready-fd"));
	sigset_t mask;
	char *dir;

	note_start(argc, argv);
	if (mode && strcmp(mode, "refuse") == 0) {
		dprintf(ready_fd, "the store is not a store\n");
		return 1;
	}
	if (mode && strcmp(mode, "held") == 0 && held()) {
		dprintf(ready_fd, "held\n");
		dprintf(ready_fd, "pool '%s' is served already by process 4711", pool);
		return 1;
	}
	if (mode && strcmp(mode, "die") == 0) {
		fprintf(stderr, "first line\nno space left for the pool\n");
		return 1;
	}
	sigprocmask(SIG_BLOCK, NULL, &mask);
	if (stray_fds() || sigismember(&mask, SIGUSR1) || getsid(0) == getpid()) {
		dprintf(ready_fd,
			"stray descriptors, a blocked signal or a session of its own leader\n");
		return 1;
	}
	dir = strdup(getenv("XDG_RUNTIME_DIR"));
	fake_init(
		&fake); /* sets another runtime directory; the socket belongs into the given one */
	fake_volume(&fake, 1, 0, 1, one, 1);
	rmdir(fake.dir);
	snprintf(fake.dir, sizeof(fake.dir), "%s", dir);
	free(dir);
	fake.turn = end_when_idle;
	fake_listen(&fake, pool);
	dprintf(ready_fd, "ready\n");
	close(ready_fd);
	fake_run(&fake);
	return 0;
}

/* ---- as the test ----------------------------------------------------------------------------- */

static void begin(void)
{
	strcpy(run_dir, "/tmp/stoup-auto-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(run_dir));
	snprintf(store, sizeof(store), "%s/store", run_dir);
	snprintf(starts, sizeof(starts), "%s/starts", run_dir);
	ck_assert_int_eq(mkdir(store, 0755), 0);
	setenv("XDG_RUNTIME_DIR", run_dir, 1);
	setenv("FAKE_STARTS", starts, 1);
	setenv("STOUPD", self, 1);
	unsetenv("FAKE_STOUPD");
}

/* Kill the daemons that this test started: their numbers are in the file that they wrote. */
static void end(void)
{
	FILE *file = fopen(starts, "re");
	char line[512], command[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (atoi(line) > 1)
			kill(atoi(line), SIGKILL);
	}
	if (file)
		fclose(file);
	snprintf(command, sizeof(command), "rm -rf %s", run_dir);
	ck_assert_int_eq(system(command), 0);
}

static uint32_t start_cnt(char *last, size_t cap)
{
	FILE *file = fopen(starts, "re");
	uint32_t cnt = 0;

	while (file && fgets(last, (int)cap, file))
		cnt++;
	if (file)
		fclose(file);
	return cnt;
}

static struct stoup *attach(const char *path)
{
	struct stoup_error err;
	struct stoup *st = NULL;
	int rc = stoup_attach(path, NULL, &st, &err);

	fake_check(rc, &err);
	return st;
}

static _Atomic int child_signals;

static void on_child(int sig)
{
	(void)sig;
	atomic_fetch_add(&child_signals, 1);
}

static uint32_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t cnt = 0;

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

START_TEST(the_first_attach_starts_the_daemon_and_the_host_notices_nothing)
{
	struct sigaction action = {.sa_handler = on_child}, old;
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup *st;
	struct stat store_st;
	char line[512], pool[64];
	sigset_t set;
	uint32_t before;

	begin();
	sigaction(SIGCHLD, &action, &old);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	before = open_fds();
	st = attach(store);
	ck_assert_uint_eq(open_fds(), before + 2);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	ck_assert_int_eq(atomic_load(&child_signals), 0);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	ck_assert_int_eq(errno, ECHILD);
	sigaction(SIGCHLD, &old, NULL);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(((const struct pair *)span.base)[1].key, 20);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	ck_assert_uint_eq(start_cnt(line, sizeof(line)), 1);
	ck_assert_int_eq(stat(store, &store_st), 0);
	snprintf(pool, sizeof(pool), "--pool auto-%llx-%llx --auto --backing memfd --ready-fd 3\n",
		(unsigned long long)store_st.st_dev, (unsigned long long)store_st.st_ino);
	ck_assert_msg(strstr(line, pool) != NULL, "%s", line);
	ck_assert_ptr_nonnull(strstr(line, store));
	end();
}
END_TEST

START_TEST(two_paths_of_one_store_share_a_daemon)
{
	char line[512], other[128];
	struct stoup *a, *b;

	begin();
	snprintf(other, sizeof(other), "%s/link", run_dir);
	ck_assert_int_eq(symlink("store", other), 0);
	strcat(other, "/");
	a = attach(store);
	b = attach(other);
	ck_assert_uint_eq(start_cnt(line, sizeof(line)), 1);
	ck_assert_int_eq(stoup_detach(a), 0);
	ck_assert_int_eq(stoup_detach(b), 0);
	end();
}
END_TEST

START_TEST(a_refresh_goes_over_to_the_store_that_took_the_path)
{
	char line[512], away[128], pool[64];
	struct stat seen;
	struct stoup *st;

	begin();
	snprintf(away, sizeof(away), "%s/away", run_dir);
	st = attach(store);
	ck_assert_int_eq(stoup_refresh(st, NULL), 0);
	ck_assert_int_eq(rename(store, away), 0);
	ck_assert_int_eq(stoup_refresh(st, NULL), 0); /* gone: what is served is served on */
	ck_assert_int_eq(mkdir(store, 0755), 0);
	ck_assert_int_eq(stoup_refresh(st, NULL), 1);
	ck_assert_int_eq(stoup_refresh(st, NULL), 0);
	ck_assert_uint_eq(start_cnt(line, sizeof(line)), 2);
	ck_assert_int_eq(stat(store, &seen), 0);
	snprintf(pool, sizeof(pool), "--pool auto-%llx-%llx ", (unsigned long long)seen.st_dev,
		(unsigned long long)seen.st_ino);
	ck_assert_msg(strstr(line, pool) != NULL, "%s", line);
	ck_assert_int_eq(stoup_detach(st), 0);
	end();
}
END_TEST

START_TEST(processes_that_come_at_once_start_one_daemon)
{
	char line[512];
	pid_t pids[6];
	int status;

	begin();
	for (uint32_t i = 0; i < 6; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct stoup *st = NULL;
			int rc = stoup_attach(store, NULL, &st, NULL);

			usleep(300000);
			_exit(rc == 0 && stoup_detach(st) == 0 ? 0 : 1);
		}
	}
	for (uint32_t i = 0; i < 6; i++) {
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert(WIFEXITED(status));
		ck_assert_int_eq(WEXITSTATUS(status), 0);
	}
	ck_assert_uint_eq(start_cnt(line, sizeof(line)), 1);
	end();
}
END_TEST

START_TEST(a_daemon_that_ended_is_started_anew_over_its_socket)
{
	char line[512];
	struct stoup *st;
	int pid;

	begin();
	st = attach(store);
	ck_assert_int_eq(stoup_detach(st), 0);
	ck_assert_uint_eq(start_cnt(line, sizeof(line)), 1);
	pid = atoi(line);
	ck_assert_int_gt(pid, 1);
	kill(pid, SIGKILL);
	{
		/* The real daemon removes a stale socket under its own lock; this one cannot bind
		 * over it. */
		char command[160];

		snprintf(command, sizeof(command), "rm -f %s/stoup/*.sock", run_dir);
		ck_assert_int_eq(system(command), 0);
	}
	st = attach(store);
	ck_assert_int_eq(stoup_detach(st), 0);
	ck_assert_uint_eq(start_cnt(line, sizeof(line)), 2);
	end();
}
END_TEST

static void refused(const char *path, const struct stoup_options *opt, int code, const char *words)
{
	struct stoup *st = NULL;
	struct stoup_error err = {0};

	ck_assert_int_eq(stoup_attach(path, opt, &st, &err), code);
	ck_assert_int_eq(err.code, code);
	ck_assert_msg(strstr(err.text, words) != NULL, "'%s' lacks '%s'", err.text, words);
}

START_TEST(a_daemon_that_cannot_start_tells_why)
{
	begin();
	setenv("FAKE_STOUPD", "refuse", 1);
	refused(store, NULL, -ECONNABORTED, "stoupd did not start: the store is not a store");
	setenv("FAKE_STOUPD", "die", 1);
	refused(store, NULL, -ECONNABORTED, "no space left for the pool");
	end();
}
END_TEST

START_TEST(a_name_that_another_process_holds_is_waited_for)
{
	char line[512];
	struct stoup *st;

	begin();
	setenv("FAKE_STOUPD", "held", 1);
	setenv("FAKE_HELD", "4", 1);
	st = attach(store);
	ck_assert_int_eq(stoup_detach(st), 0);
	ck_assert_uint_eq(start_cnt(line, sizeof(line)), 4);
	end();
}
END_TEST

START_TEST(a_name_that_stays_held_until_the_deadline_is_told_in_the_daemons_words)
{
	struct stoup_options opt;
	char line[512];

	begin();
	setenv("FAKE_STOUPD", "held", 1);
	unsetenv("FAKE_HELD");
	stoup_options_init(&opt);
	opt.timeout_ns =
		5000000000; /* a busy machine with sanitizers starts a process in seconds */
	refused(store, &opt, -ETIMEDOUT, "is served already by process 4711");
	refused(store, &opt, -ETIMEDOUT, "not attached within 5.0 s");
	ck_assert_uint_ge(start_cnt(line, sizeof(line)), 2);
	end();
}
END_TEST

/* Who began to start the daemon is stopped, and another one's start got through. */
START_TEST(a_holder_of_the_start_lock_that_is_stopped_keeps_nobody_from_a_running_daemon)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char pool[STOUP_POOL_NAME_CAP], real[PATH_MAX], path[256], line[512];
	struct stoup_options opt;
	struct stoup_error err;
	struct stoup *st;
	int fd, status;
	pid_t pid;

	begin();
	ck_assert_int_eq(stoup_auto_name(store, pool, sizeof(pool), real, NULL), 0);
	snprintf(path, sizeof(path), "%s/stoup", run_dir);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/stoup/%s.start", run_dir, pool);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	stoup_options_init(&opt);
	opt.timeout_ns = 100000000;
	refused(store, &opt, -ETIMEDOUT, "another process is starting the daemon and holds");
	pid = fork();
	if (pid == 0) {
		usleep(100000);
		close_range(3, ~0U, 0);
		fd = open("/dev/null", O_WRONLY); /* the ready pipe's place */
		execl(self, self, "--pool", pool, "--ready-fd", "3", (char *)NULL);
		_exit(1);
	}
	opt.timeout_ns = 60000000000;
	fake_check(stoup_attach(store, &opt, &st, &err), &err);
	ck_assert_int_eq(stoup_detach(st), 0);
	ck_assert_uint_eq(start_cnt(line, sizeof(line)), 1);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	close(fd);
	end();
}
END_TEST

START_TEST(the_log_of_daemons_before_is_kept_and_not_quoted)
{
	char pool[STOUP_POOL_NAME_CAP], real[PATH_MAX], path[256], text[256] = {0};
	int fd;

	begin();
	ck_assert_int_eq(stoup_auto_name(store, pool, sizeof(pool), real, NULL), 0);
	setenv("FAKE_STOUPD", "die", 1);
	for (uint32_t i = 0; i < 2; i++)
		refused(store, NULL, -ECONNABORTED,
			"stoupd did not start: no space left for the pool");
	snprintf(path, sizeof(path), "%s/stoup/%s.log", run_dir, pool);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
	ck_assert_str_eq(text, "first line\nno space left for the pool\n"
			       "first line\nno space left for the pool\n");
	close(fd);
	setenv("STOUPD", "/bin/false", 1);
	refused(store, NULL, -ECONNABORTED, "it ended without a word");
	end();
}
END_TEST

START_TEST(a_missing_store_or_daemon_is_named)
{
	struct stoup_options opt;
	char path[128];

	begin();
	snprintf(path, sizeof(path), "%s/nowhere/", run_dir);
	refused(path, NULL, -ENOENT, path);
	snprintf(path, sizeof(path), "%s/file", run_dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	refused(path, NULL, -ENOTDIR, "not a directory");
	setenv("STOUPD", "/nonexistent/stoupd", 1);
	refused(store, NULL, -ENOENT, "/nonexistent/stoupd");
	stoup_options_init(&opt);
	opt.daemon = run_dir;
	refused(store, &opt, -ENOENT, run_dir);
	end();
}
END_TEST

START_TEST(a_runtime_directory_that_others_can_write_is_refused)
{
	char path[128];

	begin();
	snprintf(path, sizeof(path), "%s/stoup", run_dir);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(chmod(path, 0777), 0);
	refused(store, NULL, -EACCES, "only you can write");
	end();
}
END_TEST

START_TEST(the_size_of_the_pool_is_passed_on)
{
	struct stoup_options opt;
	struct stoup_error err;
	struct stoup *st;
	char line[512];

	begin();
	stoup_options_init(&opt);
	opt.pool_len = 64 << 20;
	opt.daemon = self;
	setenv("STOUPD", "/nonexistent", 1);
	fake_check(stoup_attach(store, &opt, &st, &err), &err);
	ck_assert_int_eq(stoup_detach(st), 0);
	ck_assert_uint_eq(start_cnt(line, sizeof(line)), 1);
	ck_assert_ptr_nonnull(strstr(line, "--size 67108864"));
	end();
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite;
	TCase *tcase;

	if (argument(argc, argv, "--ready-fd"))
		return daemon_main(argc, argv);
	if (!realpath("/proc/self/exe", self))
		return 1;
	suite = suite_create("consumer_auto");
	tcase = tcase_create("auto");
	tcase_add_test(tcase, the_first_attach_starts_the_daemon_and_the_host_notices_nothing);
	tcase_add_test(tcase, two_paths_of_one_store_share_a_daemon);
	tcase_add_test(tcase, a_refresh_goes_over_to_the_store_that_took_the_path);
	tcase_add_test(tcase, processes_that_come_at_once_start_one_daemon);
	tcase_add_test(tcase, a_daemon_that_ended_is_started_anew_over_its_socket);
	tcase_add_test(tcase, a_daemon_that_cannot_start_tells_why);
	tcase_add_test(tcase, a_name_that_another_process_holds_is_waited_for);
	tcase_add_test(
		tcase, a_name_that_stays_held_until_the_deadline_is_told_in_the_daemons_words);
	tcase_add_test(tcase,
		a_holder_of_the_start_lock_that_is_stopped_keeps_nobody_from_a_running_daemon);
	tcase_add_test(tcase, the_log_of_daemons_before_is_kept_and_not_quoted);
	tcase_add_test(tcase, a_missing_store_or_daemon_is_named);
	tcase_add_test(tcase, a_runtime_directory_that_others_can_write_is_refused);
	tcase_add_test(tcase, the_size_of_the_pool_is_passed_on);
	suite_add_tcase(suite, tcase);
	return fake_main(suite);
}
