/* SPDX-License-Identifier: Apache-2.0 */
/* test_chores.c - closing and looking, done by a thread; packets that are received without descriptors. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "producer/chores.h"
#include "shm/wire.h"

#define DAEMON_PID 77u

static void pair(int fds[2])
{
	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
}

/* The answer, when it is there. */
static int looked(struct stoup_chores *chores, uint32_t idx, uint64_t attach_no)
{
	int rc;

	while ((rc = stoup_chores_looked(chores, idx, attach_no)) == -EAGAIN)
		usleep(1000);
	return rc;
}

START_TEST(a_peer_sees_the_hang_up_of_a_socket_that_was_handed_over)
{
	struct stoup_chores *chores;
	char byte;
	int fds[2];

	ck_assert_int_eq(stoup_chores_create(1, DAEMON_PID, &chores), 0);
	pair(fds);
	stoup_chores_close(chores, fds[0]);
	/* At once: not when the thread comes to it. */
	ck_assert_int_eq(recv(fds[1], &byte, 1, MSG_DONTWAIT), 0);
	close(fds[1]);
	stoup_chores_destroy(chores);
}
END_TEST

START_TEST(everything_that_waits_is_closed_before_the_end)
{
	struct stoup_chores *chores;
	int fds[64][2];

	ck_assert_int_eq(stoup_chores_create(1, DAEMON_PID, &chores), 0);
	/* All of them first: a number that was closed must not be given out again. */
	for (int i = 0; i < 64; i++)
		pair(fds[i]);
	for (int i = 0; i < 64; i++)
		stoup_chores_close(chores, fds[i][0]);
	stoup_chores_destroy(chores);
	for (int i = 0; i < 64; i++) {
		ck_assert_int_eq(close(fds[i][0]), -1);
		ck_assert_int_eq(errno, EBADF);
		close(fds[i][1]);
	}
}
END_TEST

START_TEST(a_look_finds_the_page_while_it_is_mapped_and_not_after)
{
	struct stoup_chores *chores;
	void *page;
	int fd = memfd_create("stoup.page.77.5", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 4096), 0);
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	ck_assert_int_eq(stoup_chores_create(4, DAEMON_PID, &chores), 0);
	ck_assert_int_eq(stoup_chores_looked(chores, 2, 5), -ENOENT);
	stoup_chores_look(chores, 2, (uint32_t)getpid(), 5);
	ck_assert_int_eq(looked(chores, 2, 5), 1);
	/* Attachment 55 is another one than 5. */
	stoup_chores_look(chores, 3, (uint32_t)getpid(), 55);
	ck_assert_int_eq(looked(chores, 3, 55), 0);
	munmap(page, 4096);
	stoup_chores_look(chores, 2, (uint32_t)getpid(), 5);
	ck_assert_int_eq(looked(chores, 2, 5), 0);
	stoup_chores_destroy(chores);
	close(fd);
}
END_TEST

START_TEST(what_can_not_be_known_counts_as_mapped)
{
	struct stoup_chores *chores;

	ck_assert_int_eq(stoup_chores_create(1, DAEMON_PID, &chores), 0);
	stoup_chores_look(chores, 0, UINT32_MAX, 9); /* no such process */
	ck_assert_int_eq(looked(chores, 0, 9), 1);
	stoup_chores_destroy(chores);
}
END_TEST

START_TEST(an_answer_is_not_taken_for_that_of_a_later_consumer_of_the_place)
{
	struct stoup_chores *chores;

	ck_assert_int_eq(stoup_chores_create(1, DAEMON_PID, &chores), 0);
	stoup_chores_look(chores, 0, (uint32_t)getpid(), 1);
	ck_assert_int_eq(looked(chores, 0, 1), 0);
	ck_assert_int_eq(stoup_chores_looked(chores, 0, 2), -ENOENT);
	ck_assert_int_eq(stoup_chores_looked(chores, 7, 1), -ENOENT);
	stoup_chores_destroy(chores);
}
END_TEST

START_TEST(a_packet_with_descriptors_stays_in_the_socket)
{
	char text[8] = "hello", got[8];
	int fds[2], passed = STDIN_FILENO;
	uint32_t cnt;

	pair(fds);
	ck_assert_int_eq(stoup_wire_recv_plain(fds[0], got, sizeof(got)), -EAGAIN);
	ck_assert_int_eq(stoup_wire_send(fds[1], text, 5, NULL, 0), 0);
	ck_assert_int_eq(stoup_wire_recv_plain(fds[0], got, sizeof(got)), 5);
	ck_assert_mem_eq(got, "hello", 5);
	ck_assert_int_eq(stoup_wire_send(fds[1], text, 5, &passed, 1), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(stoup_wire_recv_plain(fds[0], got, sizeof(got)), -EPROTO);
	ck_assert_int_eq(stoup_wire_recv(fds[0], got, sizeof(got), &passed, 1, &cnt), 5);
	ck_assert_uint_eq(cnt, 1);
	close(passed);
	/* One that is longer than what is expected is refused whole. */
	ck_assert_int_eq(stoup_wire_send(fds[1], text, 6, NULL, 0), 0);
	ck_assert_int_eq(stoup_wire_recv_plain(fds[0], got, 5), -EPROTO);
	close(fds[1]);
	close(fds[0]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("chores");
	TCase *cases = tcase_create("chores");
	SRunner *runner;
	int failed;

	tcase_add_test(cases, a_peer_sees_the_hang_up_of_a_socket_that_was_handed_over);
	tcase_add_test(cases, everything_that_waits_is_closed_before_the_end);
	tcase_add_test(cases, a_look_finds_the_page_while_it_is_mapped_and_not_after);
	tcase_add_test(cases, what_can_not_be_known_counts_as_mapped);
	tcase_add_test(cases, an_answer_is_not_taken_for_that_of_a_later_consumer_of_the_place);
	tcase_add_test(cases, a_packet_with_descriptors_stays_in_the_socket);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
