/* SPDX-License-Identifier: Apache-2.0 */
/* What a service manager is told, as datagrams: plain texts, and a watchdog that is fed however short it is. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "producer/service.h"

#define MS UINT64_C(1000000)

static int manager;
static char got[1024];

static void setup(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(addr);

	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	/* An abstract name that the kernel chooses. */
	ck_assert_int_eq(bind(manager, (struct sockaddr *)&addr, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(getsockname(manager, (struct sockaddr *)&addr, &len), 0);
	snprintf(
		got, sizeof(got), "@%.*s", (int)(len - sizeof(sa_family_t) - 1), addr.sun_path + 1);
	setenv("NOTIFY_SOCKET", got, 1);
}

static void teardown(void)
{
	close(manager);
}

/* The next datagram; "" where there is none. */
static const char *next(void)
{
	ssize_t len = recv(manager, got, sizeof(got) - 1, 0);

	got[len > 0 ? len : 0] = 0;
	return got;
}

START_TEST(a_watchdog_is_fed_however_short_it_is)
{
	const struct {
		const char *usec;
		uint64_t wait_ns;
	} known[] = {{"30000000", 500 * MS}, {"1500000", 500 * MS}, {"900000", 300 * MS},
		{"60000", 20 * MS}, {"1", 5 * MS}, {"0", 500 * MS}, {"x", 500 * MS},
		{"18446744073709551615", 500 * MS}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct stoup_service service;
		char path[sizeof(got)];

		snprintf(path, sizeof(path), "%s", getenv("NOTIFY_SOCKET"));
		setenv("WATCHDOG_USEC", known[i].usec, 1);
		ck_assert_int_eq(stoup_service_init(&service), 0);
		ck_assert_uint_eq(stoup_service_wait(&service, 500 * MS), known[i].wait_ns);
		setenv("NOTIFY_SOCKET", path, 1);
		/* At each of these waits it is fed, unless there is none. */
		for (uint64_t now = 1000 * MS; service.watchdog_ns > 0 && i > 1 && now < 3000 * MS;
			now += known[i].wait_ns) {
			stoup_service_tick(&service, now);
			ck_assert_str_eq(next(), "WATCHDOG=1");
		}
		if (service.watchdog_ns == 0) {
			stoup_service_tick(&service, 1000 * MS);
			ck_assert_str_eq(next(), "");
		}
		stoup_service_fini(&service);
	}
}
END_TEST

START_TEST(a_status_is_one_line_of_utf8)
{
	struct stoup_service service;
	char line[96];

	ck_assert_int_eq(stoup_service_init(&service), 0);
	ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
	stoup_service_ready(&service, "a\nREADY=0\xff\xc3\xa9");
	snprintf(line, sizeof(line), "READY=1\nSTATUS=a?READY=0?\xc3\xa9\nMAINPID=%d",
		(int)getpid());
	ck_assert_str_eq(next(), line);
	stoup_service_failed(&service, -12, "b\x9bMAINPID=1\n");
	ck_assert_str_eq(next(), "STATUS=b?MAINPID=1?\nERRNO=12");
	stoup_service_fini(&service);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("service");
	TCase *tc = tcase_create("service");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_watchdog_is_fed_however_short_it_is);
	tcase_add_test(tc, a_status_is_one_line_of_utf8);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
