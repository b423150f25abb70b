/* SPDX-License-Identifier: Apache-2.0 */
/* test_alive.c - a word in shared memory that the kernel marks when its owner ends: killed, ended, replaced by
 * another program; and not before. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shm/alive.h"

static void *map;
static _Atomic uint32_t *word;

static void setup(void)
{
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(map != MAP_FAILED);
	word = map;
}

static void teardown(void)
{
	munmap(map, 4096);
}

static void owner_ends(int how)
{
	if (how == 0)
		pause();
	if (how == 1)
		_exit(0);
	if (how == 2)
		exit(0);
	execl("/bin/sleep", "sleep", "10", (char *)NULL);
	_exit(1);
}

/* A child that owns the word and ends when a byte comes. */
static pid_t owner(int how, int *ret_fd)
{
	int say[2], tell[2];
	char byte;
	pid_t pid;

	ck_assert(pipe(say) == 0 && pipe(tell) == 0);
	pid = fork();
	ck_assert(pid >= 0);
	if (pid == 0) {
		if (stoup_alive_own(word) < 0 || write(say[1], "", 1) != 1 ||
			read(tell[0], &byte, 1) != 1)
			_exit(1);
		owner_ends(how);
	}
	ck_assert_int_eq(read(say[0], &byte, 1), 1);
	close(say[0]);
	close(say[1]);
	close(tell[0]);
	*ret_fd = tell[1];
	return pid;
}

static void until_marked(void)
{
	while (stoup_alive_look(word) != STOUP_ALIVE_NO)
		usleep(100);
}

START_TEST(nothing_is_known_of_a_word_that_nobody_owns)
{
	ck_assert_int_eq(stoup_alive_look(word), STOUP_ALIVE_UNKNOWN);
}
END_TEST

START_TEST(the_end_of_the_owner_is_marked_however_it_comes)
{
	int fd, status;
	pid_t pid = owner(_i, &fd);

	ck_assert_int_eq(stoup_alive_look(word), STOUP_ALIVE_YES);
	ck_assert_uint_eq(atomic_load(word), (uint32_t)pid);
	ck_assert_int_eq(write(fd, "", 1), 1);
	if (_i == 0)
		kill(pid, SIGKILL);
	/* Of a zombie as well: nobody has waited for it. Of one that goes on as another program, too. */
	until_marked();
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(stoup_alive_look(word), STOUP_ALIVE_NO);
	close(fd);
}
END_TEST

START_TEST(a_stopped_owner_is_alive)
{
	int fd, status;
	pid_t pid = owner(0, &fd);

	kill(pid, SIGSTOP);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(stoup_alive_look(word), STOUP_ALIVE_YES);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(stoup_alive_look(word), STOUP_ALIVE_NO);
	close(fd);
}
END_TEST

/* The child is not the owner: its end means nothing, and it takes no list along. */
START_TEST(the_end_of_a_child_is_not_that_of_its_parent)
{
	int status;
	pid_t pid;

	ck_assert_int_eq(stoup_alive_own(word), 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(stoup_alive_look(word), STOUP_ALIVE_YES);
}
END_TEST

static void *own_and_end(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)stoup_alive_own(word);
}

START_TEST(a_thread_that_ends_is_an_owner_that_ends)
{
	pthread_t thread;
	void *rc;

	ck_assert_int_eq(pthread_create(&thread, NULL, own_and_end, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, &rc), 0);
	ck_assert_ptr_null(rc);
	until_marked();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("alive");
	TCase *tcase = tcase_create("alive");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, nothing_is_known_of_a_word_that_nobody_owns);
	tcase_add_loop_test(tcase, the_end_of_the_owner_is_marked_however_it_comes, 0, 4);
	tcase_add_test(tcase, a_stopped_owner_is_alive);
	tcase_add_test(tcase, the_end_of_a_child_is_not_that_of_its_parent);
	tcase_add_test(tcase, a_thread_that_ends_is_an_owner_that_ends);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
