/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_fork.c - a child of a fork that inherits the leases of its parent.
 *
 *      parent: cursor on block 0, hold on block 1 --prepare--> copy --fork--> child: the same cells
 *
 * The small conductor runs in a thread of the parent; what the child found comes back as its exit
 * status: the line of the check that failed, or 0.
 */
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

/* In the child: the first check that fails ends it, naming its line. */
#define CHILD_MUST(condition)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "child: line %d: not so: %s\n", __LINE__, #condition);     \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void begin(void)
{
	struct stoup_options opt;

	stoup_options_init(&opt);
	opt.ahead_cnt = UINT32_MAX;
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 4, series, 1);
	fake_start(&fake, "p");
	st = fake_attach("p", &opt);
	cur = fake_scan(st, "A/x", 0, 0);
}

static void end(void)
{
	stoup_cursor_close(cur);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

static void prepare(struct stoup_fork *state)
{
	struct stoup_error err = {0};
	int rc = stoup_fork_prepare(st, state, &err);

	ck_assert_msg(rc == 0, "%d: %s", rc, err.text);
}

static void wait_child(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* Cells of a page that lease a buffer. */
static uint32_t leased_in(const struct stoup_page *page)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < page->cell_cap; i++)
		cnt += stoup_cell_leased(atomic_load(&page->cells[i])) != 0;
	return cnt;
}

/* The same of a page that the conductor made for another process, whose order with us a thread
 * sanitizer does not see: the conductor made it under the mutex. */
static uint32_t leased_at(const struct fake_peer *peer)
{
	uint32_t cnt;

	pthread_mutex_lock(&fake.mutex);
	cnt = leased_in(peer->page.base);
	pthread_mutex_unlock(&fake.mutex);
	return cnt;
}

static uint64_t ticket_at(const struct fake_peer *copy)
{
	uint64_t ticket;

	pthread_mutex_lock(&fake.mutex);
	ticket = copy->ticket;
	pthread_mutex_unlock(&fake.mutex);
	return ticket;
}

START_TEST(the_child_goes_on_with_cursors_spans_and_holds_of_its_own)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_error err = {0};
	struct stoup_fork state;
	struct stoup_lease lease;
	struct stoup_span held;
	pid_t pid;

	begin();
	ck_assert_int_eq(stoup_next(cur, &held), 1);
	ck_assert_int_eq(stoup_hold(&held, &lease), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	prepare(&state);
	fake_cut_hello(&fake, 2); /* as for a child that says hello too late */
	pid = fork();
	if (pid == 0) {
		struct stoup_cursor *more;
		struct stoup_span other;

		CHILD_MUST(stoup_health(st, &err) == -ECHILD);
		CHILD_MUST(stoup_fork_child(&state, &err) == 0);
		CHILD_MUST(leased_in(st->current->page) == 2);
		CHILD_MUST(((const struct pair *)held.base)[1].key == 20);
		CHILD_MUST(stoup_health(st, &err) == 0);
		CHILD_MUST(stoup_detach(st) == -EBUSY);
		CHILD_MUST(stoup_stats(st, &stats) == 0 && stats.miss_cnt == 0);
		CHILD_MUST(stats.lease_cnt == 2);
		CHILD_MUST(stoup_next(cur, &other) == 1 && other.ordinal == 4);
		CHILD_MUST(stoup_release(&lease) == 0);
		CHILD_MUST(stoup_release(&lease) != 0);
		CHILD_MUST(leased_in(st->current->page) == 1);
		more = fake_scan(st, "A/x", 30, 0);
		CHILD_MUST(stoup_next(more, &other) == 1 && other.first_key == 30);
		stoup_cursor_close(more);
		stoup_cursor_close(cur);
		CHILD_MUST(leased_in(st->current->page) == 0);
		CHILD_MUST(atomic_load(&st->current->page->snapshot_seq) == 1);
		CHILD_MUST(stoup_detach(st) == 0);
		_exit(0);
	}
	ck_assert_int_eq(stoup_fork_parent(&state, pid > 0), 0);
	wait_child(pid);
	/* Nothing of that changed what the parent has. */
	ck_assert_uint_eq(fake_leased(&fake), 2);
	ck_assert_int_eq(stoup_health(st, NULL), 0);
	ck_assert_int_eq(stoup_release(&lease), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 4);
	end();
}
END_TEST

START_TEST(what_the_parent_releases_stays_leased_for_the_child)
{
	struct stoup_error err = {0};
	struct stoup_fork state;
	int ready[2], go[2];
	char byte = 0;
	pid_t pid;

	begin();
	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(go), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	prepare(&state);
	/* From the copy on, before the child comes. */
	ck_assert_uint_eq(leased_at(&fake.copies[0]), 1);
	pid = fork();
	if (pid == 0) {
		CHILD_MUST(stoup_fork_child(&state, &err) == 0);
		CHILD_MUST(write(ready[1], &byte, 1) == 1);
		CHILD_MUST(read(go[0], &byte, 1) == 1);
		stoup_cursor_close(cur);
		CHILD_MUST(stoup_detach(st) == 0);
		_exit(0);
	}
	ck_assert_int_eq(stoup_fork_parent(&state, 1), 0);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	stoup_cursor_close(cur);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_uint_eq(leased_at(&fake.peers[1]), 1);
	ck_assert_int_eq(write(go[1], &byte, 1), 1);
	wait_child(pid);
	ck_assert_uint_eq(leased_at(&fake.peers[1]), 0);
	for (uint32_t i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
	cur = fake_scan(st, "A/x", 0, 0);
	end();
}
END_TEST

START_TEST(a_fork_that_failed_gives_the_copy_up)
{
	struct stoup_fork state;

	begin();
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	prepare(&state);
	ck_assert_uint_ne(ticket_at(&fake.copies[0]), 0);
	ck_assert_int_eq(stoup_fork_parent(&state, 0), 0);
	ck_assert_uint_eq(ticket_at(&fake.copies[0]), 0);
	ck_assert_int_eq(stoup_fork_parent(&state, 0), -EINVAL);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	end();
}
END_TEST

START_TEST(no_place_for_a_child_is_said_with_the_option_and_nothing_is_held)
{
	struct stoup_error err = {0};
	struct stoup_fork state;

	begin();
	fake.refuse_fork = -EUSERS;
	ck_assert_int_eq(stoup_fork_prepare(st, &state, &err), -EUSERS);
	ck_assert_ptr_nonnull(strstr(err.text, "all its 8 consumers"));
	ck_assert_ptr_nonnull(strstr(err.text, "--consumers"));
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	end();
}
END_TEST

START_TEST(a_child_whose_copy_is_gone_is_told_and_can_only_leave)
{
	struct stoup_error err = {0};
	struct stoup_fork state;
	pid_t pid;

	begin();
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	prepare(&state);
	pid = fork();
	if (pid == 0) {
		state.ticket++;
		CHILD_MUST(stoup_fork_child(&state, &err) == -ENOENT);
		CHILD_MUST(strstr(err.text, "no such ticket"));
		CHILD_MUST(stoup_next(cur, &span) == -ECHILD);
		stoup_cursor_close(cur);
		CHILD_MUST(stoup_detach(st) == 0);
		_exit(0);
	}
	ck_assert_int_eq(stoup_fork_parent(&state, 1), 0);
	wait_child(pid);
	ck_assert_int_eq(stoup_health(st, NULL), 0);
	end();
}
END_TEST

START_TEST(a_parent_that_calls_the_childs_part_is_told)
{
	struct stoup_error err = {0};
	struct stoup_fork state;

	begin();
	prepare(&state);
	ck_assert_int_eq(stoup_fork_child(&state, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "not the child"));
	ck_assert_int_eq(stoup_fork_parent(&state, 0), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	end();
}
END_TEST

START_TEST(bytes_of_a_daemon_that_ended_before_are_inherited_and_the_childs_to_release)
{
	struct stoup_error err = {0};
	struct stoup_fork state;
	struct stoup_lease lease;
	struct stoup_span held;
	pid_t pid;

	begin();
	ck_assert_int_eq(stoup_next(cur, &held), 1);
	ck_assert_int_eq(stoup_hold(&held, &lease), 0);
	fake_kill(&fake);
	fake.control->daemon_start = 1;
	fake_reset(&fake);
	fake_volume(&fake, 1, 0, 4, series, 1);
	fake_start(&fake, "p");
	/* The end is found here. */
	prepare(&state);
	pid = fork();
	if (pid == 0) {
		CHILD_MUST(stoup_fork_child(&state, &err) == 0);
		CHILD_MUST(((const struct pair *)held.base)[0].key == 10);
		CHILD_MUST(stoup_release(&lease) == 0);
		CHILD_MUST(stoup_next(cur, &span) == 1 && span.ordinal == 2);
		stoup_cursor_close(cur);
		CHILD_MUST(stoup_detach(st) == 0);
		_exit(0);
	}
	ck_assert_int_eq(stoup_fork_parent(&state, 1), 0);
	wait_child(pid);
	ck_assert_int_eq(((const struct pair *)held.base)[1].key, 20);
	ck_assert_int_eq(stoup_release(&lease), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	end();
}
END_TEST

START_TEST(without_a_daemon_a_fork_waits_for_none_and_the_child_has_its_leases)
{
	struct stoup_error err = {0};
	struct stoup_fork state;
	struct stoup_lease lease;
	struct stoup_span held;
	uint64_t begin_ns;
	pid_t pid;

	begin();
	ck_assert_int_eq(stoup_next(cur, &held), 1);
	ck_assert_int_eq(stoup_hold(&held, &lease), 0);
	fake_kill(&fake);
	fake.control->daemon_start = 1;
	begin_ns = stoup_client_now();
	prepare(&state);
	/* Not options.reconnect_ns, which is 30 s here. */
	ck_assert_uint_lt(stoup_client_now() - begin_ns, 10000000000u);
	pid = fork();
	if (pid == 0) {
		CHILD_MUST(stoup_fork_child(&state, &err) == 0);
		CHILD_MUST(((const struct pair *)held.base)[0].key == 10);
		CHILD_MUST(stoup_use_cnt(st) == 2);
		CHILD_MUST(stoup_release(&lease) == 0);
		CHILD_MUST(stoup_release(&lease) == -EINVAL);
		stoup_cursor_close(cur);
		CHILD_MUST(stoup_detach(st) == 0);
		_exit(0);
	}
	ck_assert_int_eq(stoup_fork_parent(&state, 1), 0);
	wait_child(pid);
	ck_assert_int_eq(((const struct pair *)held.base)[1].key, 20);
	ck_assert_int_eq(stoup_release(&lease), 0);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_child_survives_its_daemon_as_its_parent_does)
{
	struct stoup_error err = {0};
	struct stoup_fork state;
	int ready[2], go[2];
	char byte = 0;
	pid_t pid;

	begin();
	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(go), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	prepare(&state);
	pid = fork();
	if (pid == 0) {
		CHILD_MUST(stoup_fork_child(&state, &err) == 0);
		CHILD_MUST(write(ready[1], &byte, 1) == 1);
		CHILD_MUST(read(go[0], &byte, 1) == 1);
		CHILD_MUST(stoup_next(cur, &span) == 1 && span.ordinal == 2);
		stoup_cursor_close(cur);
		CHILD_MUST(stoup_detach(st) == 0);
		_exit(0);
	}
	ck_assert_int_eq(stoup_fork_parent(&state, 1), 0);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	fake_kill(&fake);
	fake.control->daemon_start = 1;
	fake_reset(&fake);
	fake_volume(&fake, 1, 0, 4, series, 1);
	fake_start(&fake, "p");
	ck_assert_int_eq(write(go[1], &byte, 1), 1);
	wait_child(pid);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(span.ordinal, 2);
	for (uint32_t i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic int stop;
static _Atomic uint32_t wrong_cnt;
static struct stoup_cursor *cursors[3];

static void *read_on(void *arg)
{
	struct stoup_cursor **own = arg;
	struct stoup_lease lease;
	struct stoup_span s;
	uint64_t next;

	while (!atomic_load(&stop)) {
		*own = fake_scan(st, "A/x", 0, 0);
		for (next = 0; stoup_next(*own, &s) > 0; next += s.record_cnt) {
			wrong_cnt += ((const struct pair *)s.base)->value != next;
			wrong_cnt += stoup_hold(&s, &lease) != 0;
			wrong_cnt += stoup_release(&lease) != 0;
		}
		wrong_cnt += next != 6;
		stoup_cursor_close(*own);
	}
	return NULL;
}

START_TEST(a_child_of_a_process_with_threads_has_what_its_own_thread_has)
{
	struct stoup_error err = {0};
	struct stoup_fork state;
	pthread_t threads[3];
	uint64_t word;
	pid_t pid;

	begin();
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	word = atomic_load(&fake.volumes[0].residency[0]);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, read_on, (void *)&cursors[i]), 0);
	for (uint32_t i = 0; i < 30; i++) {
		prepare(&state);
		pid = fork();
		if (pid == 0) {
			uint32_t mine = 0;

			CHILD_MUST(stoup_fork_child(&state, &err) == 0);
			for (uint32_t c = 0; c < STOUP_CELL_CAP; c++)
				mine += atomic_load(&st->current->page->cells[c]) == word;
			CHILD_MUST(mine >= 1);
			CHILD_MUST(((const struct pair *)span.base)->value == 0);
			CHILD_MUST(stoup_next(cur, &span) == 1 && span.ordinal == 2);
			stoup_cursor_close(cur);
			_exit(0);
		}
		ck_assert_int_eq(stoup_fork_parent(&state, pid > 0), 0);
		wait_child(pid);
	}
	atomic_store(&stop, 1);
	for (uint32_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(wrong_cnt, 0);
	end();
}
END_TEST

/* ---- by itself ------------------------------------------------------------------------------- */

START_TEST(a_plain_fork_is_prepared_where_it_was_asked_for)
{
	struct stoup_lease lease;
	struct stoup_span held;
	pid_t pid;

	begin();
	ck_assert_int_eq(stoup_fork_auto(st), 0);
	ck_assert_int_eq(stoup_fork_auto(st), 0);
	ck_assert_int_eq(stoup_next(cur, &held), 1);
	ck_assert_int_eq(stoup_hold(&held, &lease), 0);
	pid = fork();
	if (pid == 0) {
		CHILD_MUST(stoup_use_cnt(st) == 2);
		CHILD_MUST(((const struct pair *)held.base)[0].key == 10);
		CHILD_MUST(stoup_next(cur, &span) == 1 && span.ordinal == 2);
		CHILD_MUST(stoup_release(&lease) == 0);
		stoup_cursor_close(cur);
		CHILD_MUST(stoup_detach(st) == 0);
		_exit(0);
	}
	wait_child(pid);
	ck_assert_int_eq(stoup_release(&lease), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	end();
}
END_TEST

START_TEST(a_child_that_got_no_copy_cannot_read_what_it_inherited)
{
	struct stoup_lease lease;
	struct stoup_span held;
	int status;
	pid_t pid;

	begin();
	ck_assert_int_eq(stoup_fork_auto(st), 0);
	ck_assert_int_eq(stoup_next(cur, &held), 1);
	ck_assert_int_eq(stoup_hold(&held, &lease), 0);
	fake.refuse_fork = -EUSERS;
	pid = fork();
	if (pid == 0) {
		CHILD_MUST(stoup_use_cnt(st) == -ECHILD);
		CHILD_MUST(stoup_leave(st) == 1);
		signal(SIGSEGV, SIG_DFL);
		_exit(((const volatile struct pair *)held.base)[0].key == 10 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
	ck_assert_int_eq(((const struct pair *)held.base)[0].key, 10);
	ck_assert_int_eq(stoup_release(&lease), 0);
	end();
}
END_TEST

START_TEST(what_has_nothing_is_not_copied_and_what_is_gone_is_not_looked_at)
{
	pid_t pid;

	begin();
	ck_assert_int_eq(stoup_fork_auto(NULL), -EINVAL);
	ck_assert_int_eq(stoup_fork_auto(st), 0);
	stoup_cursor_close(cur);
	pid = fork();
	if (pid == 0) {
		CHILD_MUST(stoup_use_cnt(st) == -ECHILD);
		CHILD_MUST(stoup_fork_auto(st) == -ECHILD);
		CHILD_MUST(stoup_leave(st) == 0);
		pid = fork();
		CHILD_MUST(pid >= 0);
		if (pid > 0)
			CHILD_MUST(waitpid(pid, NULL, 0) == pid);
		_exit(0);
	}
	wait_child(pid);
	ck_assert_int_eq(stoup_detach(st), 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	wait_child(pid);
	fake_stop(&fake);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_fork");
	TCase *child = tcase_create("child"), *refused = tcase_create("refused"),
	      *ends = tcase_create("ends"), *thread = tcase_create("thread");

	tcase_add_test(child, the_child_goes_on_with_cursors_spans_and_holds_of_its_own);
	tcase_add_test(child, what_the_parent_releases_stays_leased_for_the_child);
	tcase_add_test(refused, a_fork_that_failed_gives_the_copy_up);
	tcase_add_test(refused, no_place_for_a_child_is_said_with_the_option_and_nothing_is_held);
	tcase_add_test(refused, a_child_whose_copy_is_gone_is_told_and_can_only_leave);
	tcase_add_test(refused, a_parent_that_calls_the_childs_part_is_told);
	tcase_add_test(
		ends, bytes_of_a_daemon_that_ended_before_are_inherited_and_the_childs_to_release);
	tcase_add_test(ends, without_a_daemon_a_fork_waits_for_none_and_the_child_has_its_leases);
	tcase_add_test(ends, a_plain_fork_is_prepared_where_it_was_asked_for);
	tcase_add_test(ends, a_child_that_got_no_copy_cannot_read_what_it_inherited);
	tcase_add_test(ends, what_has_nothing_is_not_copied_and_what_is_gone_is_not_looked_at);
	tcase_add_test(ends, a_child_survives_its_daemon_as_its_parent_does);
	tcase_add_test(thread, a_child_of_a_process_with_threads_has_what_its_own_thread_has);
	suite_add_tcase(suite, child);
	suite_add_tcase(suite, refused);
	suite_add_tcase(suite, ends);
	suite_add_tcase(suite, thread);
	return fake_main(suite);
}
