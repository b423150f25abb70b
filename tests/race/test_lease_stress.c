/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease_stress.c - the functions of shm/lease.h at full speed, between processes that are killed at
 * any instruction, and between threads.
 *
 *      conductor (this thread)                       consumers (forked, or threads)
 *      take requests, grant, fail some               hit, or request and wait: spin, sleep, give up
 *      evict: clear, fence, scan, retire             read every word twice under each lease
 *      overwrite with noise, fill, publish           keep some leases over the next request
 *      kill; drop the page once waitpid says so      die, or leave everything where it stands
 *
 * The bytes of a buffer are a function of block and generation, so that a reader knows each word that it
 * must see. The conductor sleeps as the daemon does, on doorbells that nobody reads, but without its
 * timer: when it wakes by time-out and finds work that nobody rang for, a wake-up was lost.
 *
 * In the thread runs the bytes are plain memory, ordered by the protocol alone, for ThreadSanitizer: it does
 * not know fences, but each overwriting is also ordered by an acquire load of the cell that a reader
 * released [R2], each reading by the acquire load of the word [L2].
 *
 * Bounded by counts and, on a slow machine, by a second and a half a run. STOUP_SEED repeats the printed seed,
 * STOUP_ROUNDS multiplies counts and time.
 */
#include "stress_consumer.h"

/* ---- conductor: attachments ------------------------------------------------------------------- */

static void watch(const struct conductor *d, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events};

	ck_assert_int_eq(epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
}

static void attach(struct conductor *d, uint32_t idx)
{
	static const uint8_t instance[16] = {1};
	struct peer *p = &d->peers[idx];
	uint64_t random = next_random(&d->random);

	memset(p, 0, sizeof(*p));
	p->attach_no = ++d->attach_seq;
	p->page = shared(stoup_page_footprint(CELL_CNT));
	stoup_page_format(p->page, instance, p->attach_no, idx, CELL_CNT);
	p->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_ge(p->bell_fd, 0);
	watch(d, p->bell_fd, EPOLLIN | EPOLLET);
	p->consumer = (struct consumer){.arena = d->arena,
		.page = p->page,
		.random = random | 1,
		.bell_fd = p->bell_fd,
		.keeps = d->keeps,
		.leave_in = d->deadly && !d->processes ? 1 + (uint32_t)(random >> 8) % 512 : 0};
	p->pid_fd = -1;
	if (!d->processes) {
		ck_assert_int_eq(pthread_create(&p->thread, NULL, consumer_thread, p), 0);
		return;
	}
	p->pid = fork();
	ck_assert_int_ge(p->pid, 0);
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		consumer_run(&p->consumer);
		_exit(0);
	}
	p->pid_fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	ck_assert_int_ge(p->pid_fd, 0);
	watch(d, p->pid_fd, EPOLLIN);
}

/* Its end is confirmed: the page goes as a whole. Who ended in order left no lease behind. */
static void drop(struct conductor *d, uint32_t idx, int in_order)
{
	struct peer *p = &d->peers[idx];

	for (uint32_t i = 0; in_order && i < CELL_CNT; i++)
		ck_assert(!stoup_cell_leased(stoup_cell_read(&p->page->cells[i])));
	munmap(p->page, stoup_page_footprint(CELL_CNT));
	p->page = NULL;
	p->attach_no = 0;
	close(p->bell_fd);
	if (p->pid_fd >= 0)
		close(p->pid_fd);
}

/* Ended consumers make room for new ones. Returns how many are attached. */
static uint32_t reap(struct conductor *d, int again)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < CONSUMER_CNT; i++) {
		struct peer *p = &d->peers[i];
		int status = 0, in_order = 0, ended = 0;

		if (!p->page)
			continue;
		if (d->processes) {
			ended = waitpid(p->pid, &status, WNOHANG) == p->pid;
			in_order = ended && WIFEXITED(status);
			ck_assert(!ended || in_order || WTERMSIG(status) == SIGKILL);
		} else if (atomic_load_explicit(&p->ended, memory_order_acquire)) {
			pthread_join(p->thread, NULL);
			ended = 1;
			in_order = !p->consumer.leave_in && !d->deadly;
			d->kills += (uint64_t)d->deadly;
		}
		if (ended)
			drop(d, i, in_order);
		if (ended && again)
			attach(d, i);
		cnt += p->page != NULL;
	}
	return cnt;
}

/* The kill is only sent here: the consumer may read on for a while. */
static void kill_one(struct conductor *d)
{
	struct peer *p = &d->peers[next_random(&d->random) % CONSUMER_CNT];

	if (!p->page || p->killed)
		return;
	kill(p->pid, SIGKILL);
	p->killed = 1;
	d->kills++;
}

/* ---- conductor: buffers ----------------------------------------------------------------------- */

static void scan(struct conductor *d)
{
	memset(d->refs, 0, sizeof(d->refs));
	for (uint32_t i = 0; i < CONSUMER_CNT; i++) {
		struct stoup_page *page = d->peers[i].page;
		uint32_t high = page ? stoup_cell_high(page, CELL_CNT) : 0;

		for (uint32_t j = 0; j < high; j++) {
			uint64_t v = stoup_cell_read(&page->cells[j]);

			if (stoup_cell_leased(v) && stoup_word_idx(v) < d->buffer_cnt &&
				d->buffers[stoup_word_idx(v)].gen == stoup_word_gen(v))
				d->refs[stoup_word_idx(v)]++;
		}
	}
}

static void overwrite(struct conductor *d, uint32_t idx, uint64_t with)
{
	for (uint32_t i = 0; i < WORD_CNT; i++)
		d->arena->bytes[idx][i] = with;
}

/* As evict_pass of the daemon; `mask` are the candidates. */
static void evict_pass(struct conductor *d, uint32_t mask)
{
	struct arena *a = d->arena;

	for (uint32_t b = 0; b < d->buffer_cnt; b++)
		if (d->buffers[b].resident && mask >> b & 1)
			stoup_residency_clear(&a->residency[d->buffers[b].block_idx]);
	stoup_evict_fence();
	scan(d);
	for (uint32_t b = 0; b < d->buffer_cnt; b++) {
		struct buffer *buf = &d->buffers[b];

		if (!buf->resident || !(mask >> b & 1))
			continue;
		if (d->refs[b] > 0) {
			stoup_residency_publish(
				&a->residency[buf->block_idx], stoup_word(buf->gen, b));
			d->kept++;
			continue;
		}
		buf->resident = 0;
		buf->gen = stoup_gen_next(buf->gen);
		overwrite(d, b, NOISE);
		d->evictions++;
	}
}

static uint32_t free_buffer(const struct conductor *d)
{
	uint32_t b = 0;

	while (b < d->buffer_cnt && d->buffers[b].resident)
		b++;
	return b;
}

/* The word of a block, loading it where there is room; 0: all buffers are held. */
static uint64_t word_for(struct conductor *d, uint32_t block_idx)
{
	_Atomic uint64_t *residency = &d->arena->residency[block_idx];
	uint64_t w = atomic_load_explicit(residency, memory_order_relaxed);
	uint32_t b = free_buffer(d);

	if (w != 0)
		return w;
	if (b == d->buffer_cnt)
		evict_pass(d, (uint32_t)next_random(&d->random));
	b = free_buffer(d);
	if (b == d->buffer_cnt)
		evict_pass(d, UINT32_MAX);
	b = free_buffer(d);
	if (b == d->buffer_cnt)
		return 0;
	for (uint32_t i = 0; i < WORD_CNT; i++)
		d->arena->bytes[b][i] = byte_word(block_idx, d->buffers[b].gen, i);
	d->buffers[b].block_idx = block_idx;
	d->buffers[b].resident = 1;
	w = stoup_word(d->buffers[b].gen, b);
	stoup_residency_publish(residency, w);
	return w;
}

/* ---- conductor: requests ---------------------------------------------------------------------- */

static void slot_end(struct stoup_page *page, uint32_t slot_idx, int32_t error)
{
	if (stoup_request_done(&page->slots[slot_idx], error, 0))
		stoup_futex_wake(&page->slots[slot_idx].state, 1);
}

/* 1: ended, or its consumer did. */
static int serve(struct conductor *d, const struct waiter *w)
{
	const struct peer *p = &d->peers[w->peer_idx];
	uint64_t word;

	if (!p->page || p->attach_no != w->attach_no)
		return 1;
	if (next_random(&d->random) % 64 == 0) {
		d->failures++;
		slot_end(p->page, w->slot_idx, -EIO);
		return 1;
	}
	word = word_for(d, w->block_idx);
	if (word == 0)
		return 0;
	if (stoup_lease_grant(&p->page->cells[w->cell_idx], w->ticket, word))
		d->grants++;
	else
		d->grants_lost++;
	slot_end(p->page, w->slot_idx, 0);
	return 1;
}

static uint32_t take_from(struct conductor *d, uint32_t idx)
{
	struct stoup_page *page = d->peers[idx].page;
	uint64_t bits = stoup_request_take(page);
	uint32_t cnt = 0;

	for (; bits; bits &= bits - 1, cnt++) {
		uint32_t s = (uint32_t)__builtin_ctzll(bits);
		struct stoup_slot *slot = &page->slots[s];

		ck_assert_uint_lt(d->waiter_cnt, WAITER_CAP);
		d->waiters[d->waiter_cnt++] = (struct waiter){.attach_no = d->peers[idx].attach_no,
			.ticket = stoup_ticket(
				s, atomic_load_explicit(&slot->seq, memory_order_relaxed)),
			.peer_idx = idx,
			.slot_idx = s,
			.cell_idx = atomic_load_explicit(&slot->cell_idx, memory_order_relaxed),
			.block_idx = atomic_load_explicit(&slot->block_idx, memory_order_relaxed)};
	}
	return cnt;
}

/* In order of arrival. Returns how many ended. */
static uint32_t serve_all(struct conductor *d)
{
	uint32_t kept = 0, cnt;

	for (uint32_t i = 0; i < d->waiter_cnt; i++)
		if (!serve(d, &d->waiters[i]))
			d->waiters[kept++] = d->waiters[i];
	cnt = d->waiter_cnt - kept;
	d->waiter_cnt = kept;
	return cnt;
}

static int pending(const struct conductor *d)
{
	for (uint32_t i = 0; i < CONSUMER_CNT; i++) {
		struct stoup_page *page = d->peers[i].page;

		if (page && atomic_load_explicit(&page->pending, memory_order_seq_cst) != 0)
			return 1;
	}
	return 0;
}

/* ---- conductor: sleep ------------------------------------------------------------------------- */

/* Is there something that somebody should have rung for? Nothing is changed by the look. */
static int missed(struct conductor *d)
{
	if (pending(d))
		return 1;
	if (d->waiter_cnt == 0)
		return 0;
	scan(d);
	for (uint32_t b = 0; b < d->buffer_cnt; b++)
		if (d->refs[b] == 0)
			return 1;
	return 0;
}

static void doze(struct conductor *d)
{
	struct epoll_event events[8];

	d->sleeps++;
	while (epoll_wait(d->epoll_fd, events, 8, QUIET_MS) <= 0) {
		/* Whoever holds what is waited for may just not run; whoever rings may be late. */
		if (!missed(d))
			continue;
		if (epoll_wait(d->epoll_fd, events, 8, LATE_MS) <= 0)
			d->lost++;
		return;
	}
}

/* 1: found something after all. */
static int last_look(struct conductor *d)
{
	stoup_flag_raise(&d->arena->asleep);
	if (pending(d))
		return 1;
	if (d->waiter_cnt == 0)
		return 0;
	d->starved++;
	stoup_flag_raise(&d->arena->starving);
	return serve_all(d) > 0;
}

static void turn(struct conductor *d)
{
	struct epoll_event events[8];
	uint32_t moved = 0;

	for (uint32_t i = 0; i < CONSUMER_CNT; i++)
		if (d->peers[i].page)
			moved += take_from(d, i);
	moved += serve_all(d);
	if (next_random(&d->random) % 4 == 0)
		evict_pass(d, (uint32_t)next_random(&d->random));
	if (moved) {
		epoll_wait(d->epoll_fd, events, 8, 0);
		return;
	}
	if (!last_look(d))
		doze(d);
	stoup_flag_lower(&d->arena->asleep);
	stoup_flag_lower(&d->arena->starving);
}

/* ---- the runs --------------------------------------------------------------------------------- */

static int enough(const struct conductor *d)
{
	const struct tally *t = &d->arena->tally;
	uint64_t rounds = from_env("STOUP_ROUNDS", 1);

	if (atomic_load(&t->hits) == 0 || atomic_load(&t->cancelled) == 0 || d->evictions == 0 ||
		d->grants == 0 || (d->deadly && d->kills == 0) ||
		(d->buffer_cnt < CONSUMER_CNT && d->starved == 0))
		return 0;
	return now_ns() > d->until_ns ||
	       (d->grants >= GRANT_GOAL * rounds && (!d->deadly || d->kills >= KILL_GOAL * rounds));
}

/* All leases are gone with their holders: every buffer comes free. */
static void nothing_leaked(struct conductor *d)
{
	evict_pass(d, UINT32_MAX);
	for (uint32_t b = 0; b < d->buffer_cnt; b++)
		ck_assert(!d->buffers[b].resident);
}

static void report(const struct conductor *d)
{
	const struct tally *t = &d->arena->tally;

	printf("      %" PRIu64 " hits, %" PRIu64 " misses, %" PRIu64 " got, %" PRIu64
	       " granted late, %" PRIu64 " failed, %" PRIu64 " cancelled, %" PRIu64 " reads\n",
		t->hits, t->misses, t->got, t->late, t->failed, t->cancelled, t->reads);
	printf("      %" PRIu64 " grants, %" PRIu64 " too late, %" PRIu64 " evictions, %" PRIu64
	       " kept, %" PRIu64 " deaths, %" PRIu64 " starved, %" PRIu64 " sleeps\n",
		d->grants, d->grants_lost, d->evictions, d->kept, d->kills, d->starved, d->sleeps);
	ck_assert_uint_eq(t->foreign, 0);
	ck_assert_uint_eq(t->empty, 0);
	ck_assert_uint_eq(t->lost, 0);
	ck_assert_uint_eq(d->lost, 0);
	ck_assert_uint_gt(t->hits, 0);
	ck_assert_uint_gt(t->misses, 0);
	ck_assert_uint_gt(t->cancelled, 0);
	ck_assert_uint_gt(t->reads, 0);
	ck_assert_uint_gt(d->grants, 0);
	ck_assert_uint_gt(d->evictions, 0);
	if (d->deadly)
		ck_assert_uint_gt(d->kills, 0);
	if (d->buffer_cnt < CONSUMER_CNT)
		ck_assert_uint_gt(d->starved, 0);
	/* Each request ended once; the dead do not tell how theirs would have. */
	if (!d->deadly)
		ck_assert_uint_eq(t->misses, t->got + t->late + t->failed + t->cancelled);
}

/* With a buffer more than there are consumers each may keep one lease while it asks for the next. */
static void run(int processes, int deadly, uint32_t buffer_cnt)
{
	uint64_t seed = from_env("STOUP_SEED", now_ns() ^ (uint64_t)getpid() << 32) | 1;
	struct conductor *d = calloc(1, sizeof(*d));

	printf("stress: %s, %s, %u buffers, seed %" PRIu64 "\n",
		processes ? "processes" : "threads", deadly ? "dying" : "living", buffer_cnt, seed);
	ck_assert_ptr_nonnull(d);
	d->arena = shared(sizeof(*d->arena));
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ck_assert_int_ge(d->epoll_fd, 0);
	d->processes = processes;
	d->deadly = deadly;
	d->buffer_cnt = buffer_cnt;
	d->keeps = buffer_cnt > CONSUMER_CNT;
	d->random = seed;
	d->until_ns = now_ns() + RUN_NS * from_env("STOUP_ROUNDS", 1);
	for (uint32_t b = 0; b < buffer_cnt; b++)
		d->buffers[b].gen = b == 0 ? STOUP_WORD_GEN_MASK : 1; /* one comes round at once */
	for (uint32_t i = 0; i < CONSUMER_CNT; i++)
		attach(d, i);
	while (!enough(d)) {
		turn(d);
		if (processes && deadly && next_random(&d->random) % 256 == 0)
			kill_one(d);
		reap(d, 1);
	}
	atomic_store(&d->arena->stop, 1);
	while (reap(d, 0) > 0)
		turn(d);
	nothing_leaked(d);
	report(d);
	close(d->epoll_fd);
	munmap(d->arena, sizeof(*d->arena));
	free(d);
}

START_TEST(threads_read_one_generation_under_a_lease_and_each_request_ends_once)
{
	run(0, 0, CONSUMER_CNT + 1);
}
END_TEST

START_TEST(threads_that_stop_with_leases_in_their_cells_leave_nothing_behind)
{
	run(0, 1, CONSUMER_CNT - 1);
}
END_TEST

START_TEST(processes_that_keep_leases_may_be_killed_at_any_instruction)
{
	run(1, 1, CONSUMER_CNT + 1);
}
END_TEST

START_TEST(a_starved_pool_misses_no_release_and_no_death)
{
	run(1, 1, CONSUMER_CNT - 1);
}
END_TEST

START_TEST(processes_that_share_one_buffer_take_turns)
{
	run(1, 0, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lease_stress");
	TCase *tcase = tcase_create("stress");
	SRunner *runner;
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, threads_read_one_generation_under_a_lease_and_each_request_ends_once);
	tcase_add_test(tcase, threads_that_stop_with_leases_in_their_cells_leave_nothing_behind);
	if (PROCESSES) {
		tcase_add_test(tcase, processes_that_keep_leases_may_be_killed_at_any_instruction);
		tcase_add_test(tcase, a_starved_pool_misses_no_release_and_no_death);
		tcase_add_test(tcase, processes_that_share_one_buffer_take_turns);
	}
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
