/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_attach.c - joining a pool: what each refusal says, what is left behind, many
 * volumes. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "tests/unit/test_consumer_fake.h"

static const struct fake_series one[] = {
	{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {10}}}},
};

static struct fake fake;

static void one_volume(void)
{
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 1, one, 1);
}

static void refused(const char *name, const struct stoup_options *opt, int code, const char *words)
{
	struct stoup *st = NULL;
	struct stoup_error err = {0};

	ck_assert_int_eq(stoup_attach(name, opt, &st, &err), code);
	ck_assert_int_eq(err.code, code);
	ck_assert_msg(strstr(err.text, words) != NULL, "'%s' lacks '%s'", err.text, words);
	ck_assert_ptr_null(st);
	ck_assert_int_eq(stoup_attach(name, opt, &st, NULL), code);
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

START_TEST(a_name_that_is_none_is_refused)
{
	refused("", NULL, -EINVAL, "name");
	refused(".hidden", NULL, -EINVAL, "name");
	refused("with space", NULL, -EINVAL, "name");
	ck_assert_int_eq(stoup_attach(NULL, NULL, NULL, NULL), -EINVAL);
}
END_TEST

/* What a program brings that was compiled with a later header, or with an earlier one. */
START_TEST(options_of_a_longer_struct_are_taken_where_what_is_new_is_zero)
{
	struct {
		struct stoup_options opt;
		unsigned char more[24];
	} later = {.more = {0}};
	struct stoup_options read;
	struct stoup_error err;

	stoup_options_init(&later.opt);
	later.opt.struct_len = sizeof(later);
	later.opt.timeout_ns = 5;
	ck_assert_int_eq(stoup_options_read(&later.opt, &read, &err), 0);
	ck_assert_uint_eq(read.timeout_ns, 5);
	later.more[23] = 1;
	ck_assert_int_eq(stoup_options_read(&later.opt, &read, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "byte 87 that libstoup"));
	later.opt.struct_len = sizeof(later) - 1; /* not looked at beyond */
	ck_assert_int_eq(stoup_options_read(&later.opt, &read, &err), 0);
	later.opt.struct_len = 64; /* of 0.1.0: never refused within SOVERSION 1 */
	ck_assert_int_eq(stoup_options_read(&later.opt, &read, &err), 0);
	later.opt.struct_len = 63;
	refused("p", &later.opt, -EINVAL, "struct_len is 63");
	later.opt.struct_len = SIZE_MAX;
	refused("p", &later.opt, -EINVAL, "struct_len");
}
END_TEST

START_TEST(options_of_another_length_or_with_unknown_words_are_refused)
{
	struct stoup_options opt = {0};

	refused("p", &opt, -EINVAL, "struct_len");
	stoup_options_init(&opt);
	ck_assert_uint_eq(opt.timeout_ns, 0);
	ck_assert_uint_eq(opt.ahead_cnt, 16);
	opt.wait = 9;
	refused("p", &opt, -EINVAL, "options.wait 9");
	stoup_options_init(&opt);
	ck_assert_uint_eq(opt.reconnect_ns, 30000000000);
	opt.flags = 4;
	refused("p", &opt, -EINVAL, "options.flags 0x4");
}
END_TEST

START_TEST(no_pool_of_the_name_says_how_to_start_one)
{
	fake_init(&fake);
	fake.stop_fd = -1;
	refused("absent", NULL, -ENOENT, "stoupd --store DIR --pool absent");
	fake_stop(&fake);
}
END_TEST

START_TEST(a_socket_left_behind_means_that_the_daemon_is_dead)
{
	one_volume();
	fake_start(&fake, "p");
	fake_kill(&fake);
	refused("p", NULL, -ECONNREFUSED, "the daemon of pool 'p' is dead");
	fake_stop(&fake);
}
END_TEST

START_TEST(a_daemon_that_says_nothing_is_silent)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.timeout_ns = 30000000;
	one_volume();
	fake.mute = 1;
	fake_start(&fake, "p");
	refused("p", &opt, -ETIMEDOUT, "silent");
	fake_stop(&fake);
}
END_TEST

START_TEST(the_daemons_refusal_is_passed_on_in_its_words)
{
	one_volume();
	fake.refuse = -EUSERS;
	fake_start(&fake, "p");
	refused("p", NULL, -EUSERS, "all 8 places are taken");
	fake_stop(&fake);
}
END_TEST

START_TEST(another_layout_is_refused_and_leaves_no_descriptor)
{
	uint32_t before;

	one_volume();
	fake.bad_fingerprint = 1;
	fake_start(&fake, "p");
	before = open_fds();
	refused("p", NULL, -EPROTO, "use one release");
	/* The other ends are in this process as well, and close their sockets when they see the
	 * hang-up. Page and doorbell of two attempts stay there. */
	while (open_fds() > before + 4)
		usleep(1000);
	ck_assert_uint_eq(open_fds(), before + 4);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_catalog_that_is_malformed_is_refused)
{
	one_volume();
	((struct stoup_catalog_segment *)(void *)((char *)fake.volumes[0].catalog +
						  fake.volumes[0].catalog->segment_off))
		->block_idx = 1;
	fake_start(&fake, "p");
	refused("p", NULL, -EPROTO, "malformed");
	fake_stop(&fake);
}
END_TEST

START_TEST(an_attachment_keeps_two_descriptors_and_gives_them_back)
{
	uint32_t before;
	struct stoup *st;

	one_volume();
	fake_start(&fake, "p");
	before = open_fds();
	st = fake_attach("p", NULL);
	/* Two here; socket, page and doorbell at the other end. */
	ck_assert_uint_eq(open_fds(), before + 5);
	ck_assert_int_ne(fcntl(st->current->sock_fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_ne(fcntl(st->current->bell_fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_kill(&fake);
	stoup_region_fini(&fake.peers[0].page);
	ck_assert_uint_eq(open_fds(), before - 2); /* the listening socket and the stop event */
	fake_stop(&fake);
}
END_TEST

/* Attach to a pool of `cnt` volumes of one record each, whose reply brings none when there are more
 * than `unasked`; the volumes and the pulls that it took. */
static void pulled(uint32_t cnt, uint32_t unasked, uint32_t pull_cnt)
{
	static struct fake_series part = {.name = "A/x", .schema = "pair", .segment_cnt = 1};
	struct stoup_series series;
	struct stoup *st;

	fake_init(&fake);
	fake.unasked = unasked;
	for (uint32_t v = 0; v < cnt; v++) {
		part.segments[0] = (struct fake_segment){0, 1, {1000 + v}};
		fake_volume(&fake, v, 0, 1, &part, 1);
	}
	fake_start(&fake, "p");
	st = fake_attach("p", NULL);
	ck_assert_uint_eq(st->current->newest->volume_cnt, cnt);
	if (cnt > 0) {
		ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
		ck_assert_uint_eq(series.record_cnt, cnt);
		ck_assert_int_eq(series.last_key, 999 + cnt);
	}
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_kill(&fake);
	ck_assert_uint_eq(fake.pull_cnt, pull_cnt);
	fake_stop(&fake);
}

START_TEST(a_reply_without_volumes_is_followed_by_pulls_until_all_are_here)
{
	pulled(0, 4, 0);
	pulled(4, 4, 0);
	pulled(5, 4, 1);
	pulled(32, 4, 1);
	pulled(33, 4, 2);
	pulled(32, 32, 0);
}
END_TEST

/* In a child whose descriptors end `more` beyond those that it has: attach, expect `code`, and find
 * as many descriptors open as before. */
static int attach_with_few_fds(int more, int code)
{
	struct stoup_error err = {0};
	struct stoup *st = NULL;
	struct rlimit limit;
	int first = 0, rc, same;
	char number[32];

	/* Fill the gaps below the highest one. */
	for (int fd = 0; fd < 1024; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			first = fd;
	}
	while ((rc = dup(0)) < first)
		;
	close(rc);
	first = rc;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	limit.rlim_cur = (rlim_t)(first + more);
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	snprintf(number, sizeof(number), "may have %d:", first + more);
	rc = stoup_attach("p", NULL, &st, &err);
	if (rc != code)
		fprintf(stderr, "%d free: %d, expected %d: %s\n", more, rc, code, err.text);
	if (rc == 0)
		return code == 0 && stoup_detach(st) == 0;
	same = dup(0);
	return rc == code && err.code == code && strstr(err.text, "ulimit -n") &&
	       strstr(err.text, number) && (same == first || (more == 0 && same < 0));
}

START_TEST(too_few_free_descriptors_are_said_with_the_limit)
{
	int status;
	pid_t pid;

	one_volume();
	fake_start(&fake, "p");
	/* A socket, then four and a volume with the reply. */
	for (int more = 0; more <= 6; more++) {
		pid = fork();
		if (pid == 0)
			_exit(attach_with_few_fds(more, more < 6 ? -EMFILE : 0) ? 0 : 1);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFEXITED(status));
		ck_assert_msg(WEXITSTATUS(status) == 0, "%d free descriptors", more);
	}
	fake_stop(&fake);
}
END_TEST

START_TEST(an_attach_that_is_cut_off_in_the_middle_begins_anew)
{
	static struct fake_series part = {.name = "A/x", .schema = "pair", .segment_cnt = 1};
	struct stoup_error err;
	struct stoup *st;

	fake_init(&fake);
	for (uint32_t v = 0; v < 40; v++) {
		part.segments[0] = (struct fake_segment){0, 1, {1000 + v}};
		fake_volume(&fake, v, 0, 1, &part, 1);
	}
	fake.cut = 2;
	fake_start(&fake, "p");
	st = fake_attach("p", NULL);
	ck_assert_uint_eq(st->current->newest->volume_cnt, 40);
	ck_assert_int_eq(fake.cut, 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	/* Before it was answered: as one is that says hello too late. */
	fake_cut_hello(&fake, 3);
	st = fake_attach("p", NULL);
	ck_assert_int_eq(fake_cut_hello(&fake, 0), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	/* A daemon that always does so has another reason. */
	fake_cut_hello(&fake, 1000);
	ck_assert_int_eq(stoup_attach("p", NULL, &st, &err), -ECONNREFUSED);
	ck_assert_int_gt(fake_cut_hello(&fake, 0), 900);
	fake.cut = 1000;
	ck_assert_int_eq(stoup_attach("p", NULL, &st, &err), -ECONNREFUSED);
	fake_stop(&fake);
}
END_TEST

START_TEST(more_volumes_than_one_message_holds_are_pulled)
{
	static struct fake_series part = {.name = "A/x", .schema = "pair", .segment_cnt = 1};
	struct stoup_series series;
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup *st;

	fake_init(&fake);
	for (uint32_t v = 0; v < 70; v++) {
		/* Ingested in reverse order of their keys. */
		part.segments[0] = (struct fake_segment){0, 1, {1000 - v}};
		fake_volume(&fake, v, 0, 1, &part, 1);
	}
	fake_start(&fake, "p");
	st = fake_attach("p", NULL);
	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
	ck_assert_uint_eq(series.record_cnt, 70);
	ck_assert_uint_eq(series.volume_cnt, 70);
	ck_assert_int_eq(series.first_key, 931);
	ck_assert_int_eq(series.last_key, 1000);
	cur = fake_scan(st, "A/x", 0, 0);
	for (uint32_t i = 0; i < 70; i++) {
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		ck_assert_int_eq(((const struct pair *)span.base)->key, 931 + i);
		ck_assert_uint_eq(span.ordinal, i);
	}
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(parts_that_touch_in_one_key_keep_the_order_of_their_ingest)
{
	static const struct fake_series a[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 2, {10, 20}}}}};
	static const struct fake_series b[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 1,
		.segments = {{0, 2, {20, 20}}}}};
	static const struct fake_series c[] = {
		{.name = "A/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {20}}}}};
	const uint64_t values[] = {1000000, 1000001, 2000000, 0, 1};
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup *st;
	uint32_t cnt = 0;

	fake_init(&fake);
	fake_volume(&fake, 7, 1, 1, b, 1); /* the second batch of an ingest */
	fake_volume(&fake, 1, 0, 1, a, 1);
	fake_volume(&fake, 7, 0, 1, c, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", NULL);
	cur = fake_scan(st, "A/x", 0, 0);
	while (stoup_next(cur, &span) > 0) {
		for (uint64_t i = 0; i < span.record_cnt; i++)
			ck_assert_uint_eq(((const struct pair *)span.base)[i].value, values[cnt++]);
	}
	ck_assert_uint_eq(cnt, 5);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_socket_of_another_group_names_it_and_the_command)
{
	char dir[128], path[160];
	int status;
	pid_t pid;

	if (geteuid() != 0)
		return; /* only root can become somebody else */
	one_volume();
	fake_start(&fake, "p");
	fake_path(&fake, "p", path, sizeof(path));
	snprintf(dir, sizeof(dir), "%s/stoup", fake.dir);
	ck_assert_int_eq(chmod(fake.dir, 0755), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(chown(path, 0, 0), 0);
	ck_assert_int_eq(chmod(path, 0660), 0);
	pid = fork();
	if (pid == 0) {
		struct stoup_error err = {0};
		struct stoup *st;
		int ok = setgid(65534) == 0 && setuid(65534) == 0 &&
		         stoup_attach("p", NULL, &st, &err) == -EACCES && strstr(err.text, path) &&
		         strstr(err.text, "usermod -aG root USER");

		_exit(ok ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_daemon_of_a_stranger_is_not_trusted)
{
	char command[192];
	int status, ready[2];
	char byte;
	pid_t pid;

	if (geteuid() != 0)
		return; /* only root can start somebody else's daemon */
	one_volume();
	ck_assert_int_eq(pipe(ready), 0);
	snprintf(command, sizeof(command), "chmod 0777 %s %s/stoup", fake.dir, fake.dir);
	ck_assert_int_eq(system(command), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(1);
		fake_listen(&fake, "p");
		byte = (char)write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	refused("p", NULL, -EACCES, "not trusted");
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	close(ready[0]);
	close(ready[1]);
	fake.stop_fd = -1;
	fake_stop(&fake);
}
END_TEST

START_TEST(the_version_has_three_numbers)
{
	int a, b, c;

	ck_assert_int_eq(sscanf(stoup_version(), "%d.%d.%d", &a, &b, &c), 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_attach");
	TCase *attach = tcase_create("attach");

	tcase_add_test(attach, a_name_that_is_none_is_refused);
	tcase_add_test(attach, options_of_another_length_or_with_unknown_words_are_refused);
	tcase_add_test(attach, options_of_a_longer_struct_are_taken_where_what_is_new_is_zero);
	tcase_add_test(attach, no_pool_of_the_name_says_how_to_start_one);
	tcase_add_test(attach, a_socket_left_behind_means_that_the_daemon_is_dead);
	tcase_add_test(attach, a_daemon_that_says_nothing_is_silent);
	tcase_add_test(attach, the_daemons_refusal_is_passed_on_in_its_words);
	tcase_add_test(attach, another_layout_is_refused_and_leaves_no_descriptor);
	tcase_add_test(attach, a_catalog_that_is_malformed_is_refused);
	tcase_add_test(attach, an_attachment_keeps_two_descriptors_and_gives_them_back);
	tcase_add_test(attach, a_reply_without_volumes_is_followed_by_pulls_until_all_are_here);
	tcase_add_test(attach, too_few_free_descriptors_are_said_with_the_limit);
	tcase_add_test(attach, an_attach_that_is_cut_off_in_the_middle_begins_anew);
	tcase_add_test(attach, more_volumes_than_one_message_holds_are_pulled);
	tcase_add_test(attach, parts_that_touch_in_one_key_keep_the_order_of_their_ingest);
	tcase_add_test(attach, a_socket_of_another_group_names_it_and_the_command);
	tcase_add_test(attach, a_daemon_of_a_stranger_is_not_trusted);
	tcase_add_test(attach, the_version_has_three_numbers);
	suite_add_tcase(suite, attach);
	return fake_main(suite);
}
