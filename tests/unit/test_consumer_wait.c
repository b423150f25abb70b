/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_wait.c - what a wait of libstoup ends in: grants, errors with their texts,
 * time-outs, late grants, hang-up, a stopped or silent daemon, a fork; and many threads at once. */
#include <sys/wait.h>
#include "tests/unit/test_consumer_fake.h"

static const struct fake_series series[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 4,
		.segments = {{0, 2, {10, 20}}, {1, 2, {30, 40}}, {2, 1, {50}}, {3, 1, {60}}}},
};

static struct fake fake;
static struct stoup *st;
static struct stoup_cursor *cur;
static struct stoup_span span;

static void begin(uint64_t timeout_ns)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.ahead_cnt = UINT32_MAX;
	opt.flags = STOUP_NO_RECONNECT; /* test_consumer_renew.c is about going on */
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 4, series, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", &opt);
	st->opt.timeout_ns =
		timeout_ns; /* of waits only: attaching may take its time on a busy machine */
	cur = fake_scan(st, "A/x", 0, 0);
}

static void end(void)
{
	stoup_cursor_close(cur);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

static void act(uint32_t block, enum fake_act what, int error, uint64_t detail)
{
	struct fake_block *b = &fake.volumes[0].blocks[block];

	atomic_store(&b->error, error);
	atomic_store(&b->detail, detail);
	atomic_store(&b->act, (int)what);
}

/* The next call fails with `code` and a text that holds `words`; nothing is leased afterwards. */
static void expect_error(int code, const char *words)
{
	struct stoup_span untouched = {.ordinal = 4711};
	int rc = stoup_next(cur, &untouched);

	ck_assert_int_eq(rc, code);
	ck_assert_int_eq(stoup_cursor_error(cur)->code, code);
	ck_assert_msg(strstr(stoup_cursor_error(cur)->text, words) != NULL, "'%s' lacks '%s'",
		stoup_cursor_error(cur)->text, words);
	ck_assert_uint_eq(untouched.ordinal, 4711);
	ck_assert_uint_eq(fake_leased(&fake), 0);
}

START_TEST(a_damaged_block_fails_with_the_daemons_own_text_and_can_be_skipped)
{
	struct stoup_control_error *entry;

	begin(60000000000);
	entry = &stoup_control_errors(fake.control)[3];
	strcpy(entry->text, "/data/fake.svol: block 1 at offset 4160: checksum");
	atomic_store(&entry->seq, 2);
	act(1, FAKE_FAIL, -EBADMSG, 4);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	expect_error(-EBADMSG, "block 1 at offset 4160: checksum");
	expect_error(-EBADMSG, "block 1 at offset 4160: checksum");
	ck_assert_int_eq(stoup_cursor_skip(cur), 2);
	ck_assert_int_eq(stoup_cursor_skip(cur), -EINVAL);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 4);
	ck_assert_int_eq(span.first_key, 50);
	end();
}
END_TEST

START_TEST(an_error_without_a_log_entry_names_file_and_offset)
{
	begin(60000000000);
	act(0, FAKE_FAIL, -EIO, 0);
	expect_error(-EIO, "/data/fake.svol: block 0 at offset 64");
	act(0, FAKE_FAIL, -EIO, 99999);
	expect_error(-EIO, "could not be read");
	act(0, FAKE_FAIL, -EFBIG, 0);
	expect_error(-EFBIG, "at most 4096");
	act(0, FAKE_FAIL, -ESTALE, 0);
	expect_error(-ESTALE, "no longer served");
	act(0, FAKE_FAIL, -ESHUTDOWN, 0);
	expect_error(-EPIPE, "was stopped");
	act(0, FAKE_FAIL, -EBUSY, 0);
	expect_error(
		-EBUSY, "too many requests are in flight in pool 'p' (one process may have 64)");
	act(0, FAKE_FAIL, 12345678, 0);
	expect_error(-EPROTO, "block 0");
	act(0, FAKE_GRANT, 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 0);
	end();
}
END_TEST

START_TEST(a_starved_pool_names_its_largest_holders)
{
	struct stoup_control_consumer *c;

	begin(60000000000);
	c = stoup_control_consumers(fake.control);
	for (uint32_t i = 0; i < 5; i++) {
		atomic_store(&c[i].state, STOUP_CONSUMER_ATTACHED);
		atomic_store(&c[i].pid, 1000 + i);
		atomic_store(&c[i].lease_cnt, i);
		atomic_store(&c[i].leased_bytes, (uint64_t)i << 20);
		atomic_store(&c[i].oldest_lease_ns,
			stoup_client_now() -
				(uint64_t)i * 3 * 1000000000); /* not before the boot */
		memcpy(&c[i].comm, "worker\0\0\0\0\0\0\0\0\0", 16);
	}
	act(0, FAKE_FAIL, -ENOBUFS, 0);
	expect_error(-ENOBUFS, "held by 4: 1004 (worker) 4 leases, 4.0 MiB, for 1");
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "; 1003 (worker) 3 leases"));
	ck_assert_ptr_null(strstr(stoup_cursor_error(cur)->text, "1001"));
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "or a larger --size"));
	end();
}
END_TEST

START_TEST(a_time_out_leaves_the_cursor_where_it_was_and_a_late_answer_frees_the_slot)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_page *page;

	begin(30000000);
	page = fake.peers[0].page.base;
	act(0, FAKE_NEVER, 0, 0);
	for (uint32_t i = 0; i < 3; i++)
		expect_error(-ETIMEDOUT, "did not come within 0.030 s");
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.timeout_cnt, 3);
	ck_assert_uint_eq(stats.miss_cnt, 3);
	ck_assert_uint_ge(stats.wait_ns, 90000000);
	/* Not acknowledged: three different slots. */
	ck_assert_uint_eq(fake_log_cnt(&fake), 3);
	for (uint32_t s = 0; s < 3; s++)
		ck_assert_uint_ne(atomic_load(&page->slots[s].state), STOUP_SLOT_FREE);
	ck_assert_uint_eq(atomic_load(&page->slots[3].state), STOUP_SLOT_FREE);
	/* The answers come late: the grants fail, the slots are taken again from the first on. */
	for (uint32_t s = 0; s < 3; s++) {
		uint32_t cell = atomic_load(&page->slots[s].cell_idx);
		uint64_t ticket = stoup_ticket(s, atomic_load(&page->slots[s].seq));

		ck_assert_int_eq(
			stoup_lease_grant(&page->cells[cell], ticket, fake_load(&fake, 0, 0)), 0);
		fake_done(&page->slots[s], 0, 0);
	}
	fake_evict(&fake, 0, 0);
	act(0, FAKE_GRANT, 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 0);
	ck_assert_uint_eq(atomic_load(&page->slots[0].seq), 2);
	ck_assert_uint_eq(atomic_load(&page->slots[3].state), STOUP_SLOT_FREE);
	end();
}
END_TEST

START_TEST(sixty_four_unanswered_requests_use_up_the_slots_and_the_next_one_says_so)
{
	begin(1000000);
	act(0, FAKE_NEVER, 0, 0);
	for (uint32_t i = 0; i < 64; i++)
		expect_error(-ETIMEDOUT, "did not come");
	expect_error(-ETIMEDOUT, "all 64 request slots");
	ck_assert_uint_eq(atomic_load(&st->current->page->requests_refused_cnt), 1);
	end();
}
END_TEST

START_TEST(a_pool_that_takes_fewer_requests_of_one_process_is_asked_for_no_more)
{
	fake_init(&fake);
	fake.control->request_cap = 3;
	fake_volume(&fake, 1, 0, 4, series, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", NULL);
	st->opt.timeout_ns = 1000000;
	st->opt.ahead_cnt = 0;
	cur = fake_scan(st, "A/x", 0, 0);
	act(0, FAKE_NEVER, 0, 0);
	for (uint32_t i = 0; i < 3; i++)
		expect_error(-ETIMEDOUT, "did not come");
	expect_error(-ETIMEDOUT, "all 3 request slots");
	ck_assert_ptr_nonnull(
		strstr(stoup_cursor_error(cur)->text, "more --requests (at most 64)"));
	ck_assert_uint_eq(atomic_load(&st->current->page->requests_refused_cnt), 1);
	/* The waits are short: the daemon's thread may come to look only now. */
	for (uint32_t i = 0; i < 100000 && fake_log_cnt(&fake) < 3; i++)
		usleep(1000);
	ck_assert_uint_eq(fake_log_cnt(&fake), 3);
	end();
}
END_TEST

START_TEST(a_done_without_a_grant_and_a_grant_of_a_buffer_that_is_none_are_refused)
{
	begin(60000000000);
	act(0, FAKE_EMPTY, 0, 0);
	expect_error(-EPROTO, "without granting");
	act(0, FAKE_BAD_BUFFER, 0, 0);
	expect_error(-EPROTO, "does not fit");
	act(0, FAKE_GRANT, 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	end();
}
END_TEST

START_TEST(a_buffer_outside_the_region_is_refused_on_a_hit)
{
	struct stoup_control_buffer *buffer;

	begin(60000000000);
	buffer = &stoup_control_buffers(fake.control)[stoup_word_idx(fake_load(&fake, 0, 0))];
	atomic_store(&buffer->off, fake.data_region.len - 16);
	expect_error(-EPROTO, "does not fit");
	atomic_store(&buffer->off, UINT64_MAX - 8);
	expect_error(-EPROTO, "does not fit");
	atomic_store(&buffer->off, 0);
	atomic_store(&buffer->len, 1u << 30);
	expect_error(-EPROTO, "does not fit");
	atomic_store(&buffer->len, 32);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	/* Misplaced by four bytes: the records would not be aligned. */
	stoup_cursor_close(cur);
	cur = fake_scan(st, "A/x", 0, 0);
	atomic_store(&buffer->off, 4);
	expect_error(-EPROTO, "not aligned");
	end();
}
END_TEST

START_TEST(a_hang_up_while_waiting_ends_the_wait)
{
	begin(60000000000);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	fake.control->daemon_start = 1; /* no process began then: the daemon is dead */
	act(1, FAKE_HANG_UP, 0, 0);
	expect_error(-EPIPE, "is dead");
	/* For ever, hits included. */
	fake_load(&fake, 0, 1);
	expect_error(-EPIPE, "is dead");
	ck_assert_int_eq(stoup_health(st, NULL), -EPIPE);
	end();
}
END_TEST

/* Scans of what is there, for longer than the daemon is not looked for: the last result. */
static int scan_for_a_while(void)
{
	int rc = 1;

	for (uint32_t i = 0; rc >= 0 && i < 30; i++) {
		stoup_cursor_close(cur);
		cur = fake_scan(st, "A/x", 0, 0);
		while ((rc = stoup_next(cur, &span)) > 0)
			;
		usleep(1000);
	}
	return rc;
}

/* No system call tells that the fake's sockets are closed: its words say that all is well. */
START_TEST(while_the_daemons_words_are_right_the_kernel_is_not_asked)
{
	struct stoup_control_consumer *entry;

	begin(60000000000);
	for (uint32_t b = 0; b < 4; b++)
		fake_load(&fake, 0, b);
	entry = &stoup_control_consumers(fake.control)[0];
	atomic_store(&entry->attach_no, fake.attach_seq);
	atomic_store(&entry->state, STOUP_CONSUMER_ATTACHED);
	atomic_store(&fake.control->alive, 1);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	fake_kill(&fake);
	fake.control->daemon_start = 1;
	ck_assert_int_eq(scan_for_a_while(), 0);
	ck_assert_int_eq(stoup_health(st, NULL), -EPIPE);
	end();
}
END_TEST

/* Each of the words alone ends it. */
START_TEST(one_word_that_is_wrong_and_the_end_is_known)
{
	struct stoup_control_consumer *entry;

	begin(60000000000);
	for (uint32_t b = 0; b < 4; b++)
		fake_load(&fake, 0, b);
	entry = &stoup_control_consumers(fake.control)[0];
	atomic_store(&entry->attach_no, fake.attach_seq + (_i == 1));
	atomic_store(&entry->state, _i == 2 ? STOUP_CONSUMER_DEAF : STOUP_CONSUMER_ATTACHED);
	atomic_store(&fake.control->alive, _i == 3 ? 0 : 1);
	if (_i == 4)
		atomic_store(&fake.control->heartbeat_ns, stoup_client_now() - 5000000000);
	ck_assert_int_eq(scan_for_a_while(), 0);
	fake_kill(&fake);
	fake.control->daemon_start = 1;
	if (_i == 0) {
		/* What the kernel marks is seen at the very next call. */
		atomic_store(&fake.control->alive, 1 | UINT32_C(0x40000000));
		ck_assert_int_eq(stoup_next(cur, &span), -EPIPE);
	} else {
		ck_assert_int_eq(scan_for_a_while(), -EPIPE);
	}
	end();
}
END_TEST

START_TEST(held_bytes_outlive_the_daemon)
{
	struct stoup_lease lease;
	const struct pair *pairs;
	int rc = 1;

	begin(60000000000);
	for (uint32_t b = 0; b < 4; b++)
		fake_load(&fake, 0, b);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	pairs = span.base;
	ck_assert_int_eq(stoup_hold(&span, &lease), 0);
	fake_kill(&fake);
	fake.control->daemon_start = 1;
	/* Hits end within some calls: the socket is asked now and then. */
	for (uint32_t i = 0; rc >= 0; i++) {
		ck_assert_uint_lt(i, 1000);
		stoup_cursor_close(cur);
		cur = fake_scan(st, "A/x", 0, 0);
		for (uint32_t j = 0; j < 20 && rc >= 0; j++)
			rc = stoup_next(cur, &span);
		usleep(1000);
	}
	ck_assert_int_eq(rc, -EPIPE);
	ck_assert_int_eq(pairs[1].key, 20);
	ck_assert_uint_eq(pairs[1].value, 1);
	ck_assert_int_eq(stoup_release(&lease), 0);
	end();
}
END_TEST

START_TEST(a_stopped_pool_says_so_at_the_next_call)
{
	struct stoup_error err;

	begin(60000000000);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_health(st, &err), 0);
	atomic_store(&fake.control->state, STOUP_STATE_STOPPED);
	expect_error(-EPIPE, "was stopped");
	ck_assert_int_eq(stoup_health(st, &err), -EPIPE);
	end();
}
END_TEST

START_TEST(a_silent_daemon_is_not_a_dead_one)
{
	struct stoup_error err;

	begin(30000000);
	act(0, FAKE_NEVER, 0, 0);
	atomic_store(&fake.control->heartbeat_ns, stoup_client_now() - 5000000000);
	expect_error(-ETIME, "silent for ");
	ck_assert_int_eq(stoup_health(st, &err), -ETIME);
	ck_assert_ptr_nonnull(strstr(err.text, "silent"));
	atomic_store(&fake.control->heartbeat_ns, stoup_client_now());
	ck_assert_int_eq(stoup_health(st, &err), 0);
	end();
}
END_TEST

/* The daemon had no processor at the deadline: the consumer finds the reason itself, and no other one. */
START_TEST(who_gives_up_tells_the_reason_that_the_daemon_would_have_told)
{
	struct stoup_control_quota *quota;

	begin(30000000);
	quota = stoup_control_quotas(fake.control) + 3;
	act(0, FAKE_NEVER, 0, 0);
	/* A release must ring, for whomever; room is not what this one lacks. */
	atomic_store(&fake.control->starving, 1);
	expect_error(-ETIMEDOUT, "did not come within 0.030 s");
	atomic_store(&fake.control->starving, 0);
	atomic_store(&fake.control->starved, 1);
	expect_error(-ENOBUFS, "nobody at the last look");
	/* Others wait for a quota that is not ours, then for ours. */
	strcpy(quota->name, "research");
	quota->kind = STOUP_QUOTA_GROUP;
	quota->bytes_cap = 4096;
	atomic_store(&quota->leased_bytes, 4000);
	atomic_store(&quota->waiting_cnt, 2);
	expect_error(-ENOBUFS, "nobody at the last look");
	st->current->asks = 1;
	st->current->quota_idx = 2;
	expect_error(-ENOBUFS, "nobody at the last look");
	st->current->quota_idx = 3;
	expect_error(-EDQUOT, "group 'research' leases 4000 of the 4096 bytes of its quota");
	/* What is not in the object is not looked for there. */
	st->current->quota_idx = STOUP_QUOTA_CAP;
	expect_error(-ENOBUFS, "nobody at the last look");
	st->current->quota_idx = 3;
	fake.control->quota_off = UINT64_MAX & ~UINT64_C(63);
	expect_error(-ENOBUFS, "nobody at the last look");
	/* A daemon of minor 2 has no such word. */
	fake.control->abi_minor = 2;
	expect_error(-ETIMEDOUT, "did not come within 0.030 s");
	atomic_store(&fake.control->starving, 1);
	expect_error(-ENOBUFS, "nobody at the last look");
	end();
}
END_TEST

/* A daemon that was killed: its socket is closed, and /proc shows its death some moments later. */
static void *die_after_the_hang_up_was_seen(void *arg)
{
	(void)arg;
	while (atomic_load(&st->current->ended) == 0)
		usleep(500);
	fake.control->daemon_start = 1;
	return NULL;
}

START_TEST(a_daemon_that_is_just_dying_is_called_dead)
{
	pthread_t thread;

	begin(60000000000);
	ck_assert_int_eq(pthread_create(&thread, NULL, die_after_the_hang_up_was_seen, NULL), 0);
	act(0, FAKE_HANG_UP, 0, 0);
	expect_error(-EPIPE, "is dead");
	pthread_join(thread, NULL);
	end();
}
END_TEST

START_TEST(a_daemon_that_hung_up_and_lives_is_not_called_dead)
{
	begin(60000000000);
	act(0, FAKE_HANG_UP, 0, 0);
	expect_error(-EPIPE, "closed this connection; its log says why, such as more than 1048576");
	expect_error(-EPIPE, "closed this connection");
	end();
}
END_TEST

/* Close the socket behind the library's back; the number that it has then belongs to nothing. */
static void lose_socket(void)
{
	close(st->current->sock_fd);
	st->current->sock_fd = 1 << 19;
}

START_TEST(a_process_that_closed_the_librarys_socket_is_told_so)
{
	struct stoup_error err;

	begin(60000000000);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	lose_socket();
	ck_assert_int_eq(stoup_health(st, &err), -EPIPE);
	ck_assert_msg(
		strstr(err.text, "this process closed the descriptor") != NULL, "%s", err.text);
	expect_error(-EPIPE, "this process closed the descriptor");
	end();
}
END_TEST

START_TEST(the_death_of_the_daemon_is_known_without_a_socket)
{
	struct stoup_error err;

	begin(60000000000);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	lose_socket();
	fake.control->daemon_start = 1;
	ck_assert_int_eq(stoup_health(st, &err), -EPIPE);
	ck_assert_msg(strstr(err.text, "is dead") != NULL, "%s", err.text);
	expect_error(-EPIPE, "is dead");
	end();
}
END_TEST

START_TEST(a_silent_daemon_whose_process_is_gone_is_dead_where_processes_can_be_seen)
{
	struct stoup_error err;
	int quiet, sock_fd;

	begin(30000000);
	/* Our socket's number is another file's by now, which never hangs up. */
	quiet = eventfd(0, EFD_CLOEXEC);
	sock_fd = st->current->sock_fd;
	st->current->sock_fd = quiet;
	act(0, FAKE_NEVER, 0, 0);
	atomic_store(&fake.control->heartbeat_ns, stoup_client_now() - 5000000000);
	fake.control->daemon_start = 1;
	expect_error(-EPIPE, "is dead");
	ck_assert_int_eq(stoup_health(st, &err), -EPIPE);
	ck_assert_msg(strstr(err.text, "is dead") != NULL, "%s", err.text);
	/* In another PID namespace /proc never showed it, so it proves nothing. */
	st->current->daemon_seen = 0;
	expect_error(-ETIME, "silent for ");
	ck_assert_int_eq(stoup_health(st, &err), -ETIME);
	st->current->sock_fd = sock_fd;
	close(quiet);
	end();
}
END_TEST

START_TEST(a_skip_counts_what_the_index_knows_to_lie_in_the_range)
{
	static const struct fake_series five[] = {{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 3,
		.segments = {{0, 1, {5}}, {1, 5, {10, 20, 20, 30, 40}}, {2, 1, {50}}}}};
	/* from, to, records of the middle segment: whole; one end cut off; both. */
	static const int64_t cases[][3] = {{0, 0, 5}, {6, 41, 5}, {10, 41, 5}, {11, 0, 4},
		{30, 0, 4}, {0, 40, 4}, {0, 11, 4}, {11, 40, 3}, {21, 29, 3}};

	fake_init(&fake);
	fake_volume(&fake, 1, 0, 3, five, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", NULL);
	act(1, FAKE_FAIL, -EBADMSG, 0);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cur = fake_scan(st, "A/x", cases[i][0], cases[i][1]);
		while (stoup_next(cur, &span) > 0)
			;
		ck_assert_int_eq(stoup_cursor_error(cur)->code, -EBADMSG);
		ck_assert_msg(stoup_cursor_skip(cur) == cases[i][2], "case %u", i);
		stoup_cursor_close(cur);
	}
	cur = fake_scan(st, "A/x", 0, 0);
	end();
}
END_TEST

START_TEST(a_wait_without_a_time_out_of_its_own_has_the_daemons)
{
	struct stoup_options opt;

	begin(60000000000);
	fake.control->request_timeout_ns = 40000000;
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	stoup_options_init(&opt);
	opt.ahead_cnt = UINT32_MAX;
	st = fake_attach("p", &opt);
	cur = fake_scan(st, "A/x", 0, 0);
	act(0, FAKE_NEVER, 0, 0);
	expect_error(-ETIMEDOUT, "did not come within 0.040 s");
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);

	opt.timeout_ns = 3000000000;
	st = fake_attach("p", &opt);
	ck_assert_uint_eq(stoup_session_timeout(st->current), 3000000000);
	fake.control->request_timeout_ns = UINT64_MAX; /* not believed */
	ck_assert_int_eq(stoup_detach(st), 0);
	opt.timeout_ns = 0;
	st = fake_attach("p", &opt);
	ck_assert_uint_eq(stoup_session_timeout(st->current), 30000000000);
	cur = fake_scan(st, "A/x", 0, 0);
	end();
}
END_TEST

START_TEST(a_spinning_wait_is_granted_and_times_out_without_sleeping)
{
	struct stoup_options opt;
	struct stoup_page *page;

	begin(60000000000);
	stoup_options_init(&opt);
	opt.wait = STOUP_WAIT_SPIN;
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	st = fake_attach("p", &opt);
	page = fake.peers[1].page.base;
	cur = fake_scan(st, "A/x", 0, 0);
	act(1, FAKE_NEVER, 0, 0);
	st->opt.timeout_ns = 60000000000;
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	st->opt.timeout_ns = 100000000;
	ck_assert_int_eq(stoup_next(cur, &span), -ETIMEDOUT);
	for (uint32_t s = 0; s < 64; s++)
		ck_assert_uint_ne(atomic_load(&page->slots[s].state), STOUP_SLOT_SLEEP);
	end();
}
END_TEST

START_TEST(a_blocking_wait_sleeps_at_once_however_long_it_might_spin)
{
	struct stoup_options opt;
	struct stoup_page *page;
	uint32_t sleeps = 0;

	begin(60000000000);
	stoup_options_init(&opt);
	opt.wait = STOUP_WAIT_BLOCK;
	opt.spin_ns = 1000000000000;
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	st = fake_attach("p", &opt);
	page = fake.peers[1].page.base;
	cur = fake_scan(st, "A/x", 0, 0);
	act(1, FAKE_NEVER, 0, 0);
	st->opt.timeout_ns = 60000000000;
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	st->opt.timeout_ns = 100000000;
	ck_assert_int_eq(stoup_next(cur, &span), -ETIMEDOUT);
	for (uint32_t s = 0; s < 64; s++)
		sleeps += atomic_load(&page->slots[s].state) == STOUP_SLOT_SLEEP;
	ck_assert_uint_eq(sleeps, 1);
	end();
}
END_TEST

START_TEST(a_forked_child_is_told_to_attach_anew_and_disturbs_nothing)
{
	struct stoup_lease lease;
	int status;
	pid_t pid;

	begin(60000000000);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_hold(&span, &lease), 0);
	pid = fork();
	if (pid == 0) {
		struct stoup_error err = {0};
		struct stoup_series found;
		struct stoup_span other;
		struct stoup_cursor *more;
		struct stoup_lease again;
		int ok = stoup_next(cur, &other) == -ECHILD &&
		         strstr(stoup_cursor_error(cur)->text, "in the child") != NULL &&
		         stoup_hold(&span, &again) == -ECHILD && stoup_release(&lease) == -ECHILD &&
		         stoup_series_find(st, "A/x", &found, &err) == -ECHILD &&
		         stoup_series_cnt(st) == -ECHILD && stoup_health(st, &err) == -ECHILD &&
		         stoup_scan(st, &found, NULL, &more, &err) == -ECHILD &&
		         stoup_cursor_skip(cur) == -ECHILD;

		stoup_cursor_close(cur);
		ok = ok && stoup_detach(st) == 0;
		_exit(ok ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	/* The child's detach did not hang up for us. */
	ck_assert_int_eq(stoup_health(st, NULL), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_release(&lease), 0);
	end();
}
END_TEST

/* ---- many threads ---------------------------------------------------------------------------- */

#define THREAD_CNT 8
#define ROUND_CNT  150

static _Atomic uint32_t wrong_cnt;

static void *read_all(void *arg)
{
	struct stoup_lease kept[4] = {{0}};
	uint32_t number = *(uint32_t *)arg;

	for (uint32_t r = 0; r < ROUND_CNT; r++) {
		struct stoup_cursor *own = fake_scan(st, "A/x", 0, 0);
		struct stoup_span s;
		uint64_t next = 0;
		int rc;

		while ((rc = stoup_next(own, &s)) > 0) {
			const struct pair *pairs = s.base;

			for (uint64_t i = 0; i < s.record_cnt; i++)
				wrong_cnt += pairs[i].value != next++;
			if ((r + number) % 3 == 0) {
				if (kept[r % 4].client)
					wrong_cnt += stoup_release(&kept[r % 4]) != 0;
				wrong_cnt += stoup_hold(&s, &kept[r % 4]) != 0;
			}
		}
		wrong_cnt += rc != 0 || next != 6;
		if (number == 0)
			fake_evict(&fake, 0, r % 4);
		stoup_cursor_close(own);
	}
	for (uint32_t i = 0; i < 4; i++)
		wrong_cnt += kept[i].client && stoup_release(&kept[i]) != 0;
	return NULL;
}

START_TEST(threads_share_an_attachment_while_blocks_come_and_go)
{
	uint32_t numbers[THREAD_CNT];
	pthread_t threads[THREAD_CNT];

	begin(60000000000);
	for (uint32_t i = 0; i < THREAD_CNT; i++) {
		numbers[i] = i;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_all, &numbers[i]), 0);
	}
	for (uint32_t i = 0; i < THREAD_CNT; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(wrong_cnt, 0);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_wait");
	TCase *error = tcase_create("error"), *daemon = tcase_create("daemon"),
	      *thread = tcase_create("thread");

	tcase_add_test(error, a_damaged_block_fails_with_the_daemons_own_text_and_can_be_skipped);
	tcase_add_test(error, an_error_without_a_log_entry_names_file_and_offset);
	tcase_add_test(error, a_skip_counts_what_the_index_knows_to_lie_in_the_range);
	tcase_add_test(error, a_wait_without_a_time_out_of_its_own_has_the_daemons);
	tcase_add_test(error, a_starved_pool_names_its_largest_holders);
	tcase_add_test(
		error, a_time_out_leaves_the_cursor_where_it_was_and_a_late_answer_frees_the_slot);
	tcase_add_test(
		error, sixty_four_unanswered_requests_use_up_the_slots_and_the_next_one_says_so);
	tcase_add_test(error, a_pool_that_takes_fewer_requests_of_one_process_is_asked_for_no_more);
	tcase_add_test(
		error, a_done_without_a_grant_and_a_grant_of_a_buffer_that_is_none_are_refused);
	tcase_add_test(error, a_buffer_outside_the_region_is_refused_on_a_hit);
	tcase_add_test(daemon, a_hang_up_while_waiting_ends_the_wait);
	tcase_add_test(daemon, while_the_daemons_words_are_right_the_kernel_is_not_asked);
	tcase_add_loop_test(daemon, one_word_that_is_wrong_and_the_end_is_known, 0, 5);
	tcase_add_test(daemon, held_bytes_outlive_the_daemon);
	tcase_add_test(daemon, a_stopped_pool_says_so_at_the_next_call);
	tcase_add_test(daemon, a_silent_daemon_is_not_a_dead_one);
	tcase_add_test(daemon, who_gives_up_tells_the_reason_that_the_daemon_would_have_told);
	tcase_add_test(daemon, a_daemon_that_is_just_dying_is_called_dead);
	tcase_add_test(daemon, a_daemon_that_hung_up_and_lives_is_not_called_dead);
	tcase_add_test(daemon, a_process_that_closed_the_librarys_socket_is_told_so);
	tcase_add_test(daemon, the_death_of_the_daemon_is_known_without_a_socket);
	tcase_add_test(
		daemon, a_silent_daemon_whose_process_is_gone_is_dead_where_processes_can_be_seen);
	tcase_add_test(daemon, a_spinning_wait_is_granted_and_times_out_without_sleeping);
	tcase_add_test(daemon, a_blocking_wait_sleeps_at_once_however_long_it_might_spin);
	tcase_add_test(daemon, a_forked_child_is_told_to_attach_anew_and_disturbs_nothing);
	tcase_add_test(thread, threads_share_an_attachment_while_blocks_come_and_go);
	suite_add_tcase(suite, error);
	suite_add_tcase(suite, daemon);
	suite_add_tcase(suite, thread);
	return fake_main(suite);
}
