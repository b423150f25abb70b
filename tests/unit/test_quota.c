/* SPDX-License-Identifier: Apache-2.0 */
/* test_quota.c - which quota counts a consumer, what a command line says, and what is admitted. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "producer/request.h"

#define MIB (UINT64_C(1) << 20)

static struct stoup_daemon d;
static struct stoup_consumer consumers[4];
static struct stoup_control_quota rows[STOUP_QUOTA_CAP];
static struct stoup_page page;

static void setup(void)
{
	memset(&d, 0, sizeof(d));
	memset(consumers, 0, sizeof(consumers));
	memset(rows, 0, sizeof(rows));
	d.opt.consumer_cap = 4;
	d.consumers = consumers;
	d.quotas = rows;
	d.quota_first = d.quota_last = STOUP_IDX_NONE;
	for (uint32_t i = 0; i < 4; i++)
		consumers[i].quota = STOUP_IDX_NONE;
}

/* ---- what is said ----------------------------------------------------------------------------- */

START_TEST(a_quota_names_a_group_or_a_user_by_name_or_number)
{
	const struct {
		const char *text, *name, *value;
		uint32_t kind, id;
	} good[] = {{"root=1M", "root", "1M", STOUP_QUOTA_GROUP, 0},
		{"group:root=25%", "group:root", "25%", STOUP_QUOTA_GROUP, 0},
		{"user:root=4G", "user:root", "4G", STOUP_QUOTA_USER, 0},
		{"4242=1", "4242", "1", STOUP_QUOTA_GROUP, 4242},
		{"user:77=", "user:77", "", STOUP_QUOTA_USER, 77}};
	struct stoup_quota_option quota;
	struct stoup_error err;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(stoup_quota_parse(good[i].text, &quota, &err), 0);
		ck_assert_str_eq(quota.name, good[i].name);
		ck_assert_str_eq(quota.value, good[i].value);
		ck_assert_uint_eq(quota.kind, good[i].kind);
		ck_assert_uint_eq(quota.id, good[i].id);
	}
}
END_TEST

START_TEST(what_is_no_quota_is_refused_with_a_text)
{
	const struct {
		const char *text;
		int code;
	} bad[] = {{"", -EINVAL}, {"games", -EINVAL}, {"=1M", -EINVAL},
		{"no such group=1M", -ENOENT}, {"user:no such user=1M", -ENOENT},
		{"4294967295=1M", -EINVAL}, {"user:=1M", -ENOENT}};
	struct stoup_quota_option quota;
	struct stoup_error err;
	char longer[128];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct stoup_error){0};
		ck_assert_int_eq(stoup_quota_parse(bad[i].text, &quota, &err), bad[i].code);
		ck_assert_int_ne(err.text[0], 0);
	}
	memset(longer, '1', sizeof(longer));
	strcpy(longer + 64, "=1M");
	ck_assert_int_eq(stoup_quota_parse(longer, &quota, &err), -EINVAL);
}
END_TEST

START_TEST(the_first_that_fits_counts)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	ck_assert_int_eq(getsockopt(fds[0], SOL_SOCKET, SO_PEERCRED, &cred, &len), 0);
	ck_assert_uint_eq(stoup_quota_of(&d, fds[0], &cred), STOUP_IDX_NONE);
	d.opt.quotas[0] = (struct stoup_quota_option){.kind = STOUP_QUOTA_GROUP, .id = 4242424};
	d.opt.quotas[1] = (struct stoup_quota_option){.kind = STOUP_QUOTA_USER, .id = 4242424};
	d.opt.quota_cnt = 2;
	ck_assert_uint_eq(stoup_quota_of(&d, fds[0], &cred), STOUP_IDX_NONE);
	d.opt.quotas[2] = (struct stoup_quota_option){.kind = STOUP_QUOTA_USER, .id = cred.uid};
	d.opt.quotas[3] = (struct stoup_quota_option){.kind = STOUP_QUOTA_GROUP, .id = cred.gid};
	d.opt.quota_cnt = 4;
	ck_assert_uint_eq(stoup_quota_of(&d, fds[0], &cred), 2);
	d.opt.quotas[1] = d.opt.quotas[3];
	ck_assert_uint_eq(stoup_quota_of(&d, fds[0], &cred), 1);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* ---- what is admitted ------------------------------------------------------------------------- */

START_TEST(what_is_leased_and_what_is_loading_count_of_all_members)
{
	rows[1].bytes_cap = 10 * MIB;
	for (uint32_t i = 0; i < 3; i++) {
		consumers[i].page.base = &page;
		consumers[i].quota = 1;
	}
	consumers[3].page.base = &page;
	consumers[3].leased_bytes = 100 * MIB; /* of none */
	ck_assert_int_eq(stoup_quota_admits(&d, 3, 100 * MIB), 1);
	ck_assert_int_eq(stoup_quota_admits(&d, 0, 10 * MIB), 1);
	consumers[0].leased_bytes = 4 * MIB;
	consumers[1].loading_bytes = 5 * MIB;
	ck_assert_int_eq(stoup_quota_admits(&d, 2, MIB), 1);
	/* Who waits is not overtaken, even where it would fit. */
	atomic_store(&rows[1].waiting_cnt, 1);
	ck_assert_int_eq(stoup_quota_admits(&d, 2, 1), 0);
	atomic_store(&rows[1].waiting_cnt, 0);
	/* A place without a page is nobody's. */
	consumers[1].page.base = NULL;
	ck_assert_int_eq(stoup_quota_admits(&d, 2, 6 * MIB), 1);
}
END_TEST

START_TEST(one_block_is_always_possible)
{
	rows[0].bytes_cap = 1;
	consumers[0].page.base = consumers[1].page.base = &page;
	consumers[0].quota = consumers[1].quota = 0;
	ck_assert_int_eq(stoup_quota_admits(&d, 0, MIB), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("quota");
	TCase *tcase = tcase_create("quota");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, a_quota_names_a_group_or_a_user_by_name_or_number);
	tcase_add_test(tcase, what_is_no_quota_is_refused_with_a_text);
	tcase_add_test(tcase, the_first_that_fits_counts);
	tcase_add_test(tcase, what_is_leased_and_what_is_loading_count_of_all_members);
	tcase_add_test(tcase, one_block_is_always_possible);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
