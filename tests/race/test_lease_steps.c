/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease_steps.c - the functions of shm/lease.h, one atomic operation at a time, with a store
 * buffer for each process: every schedule is drawn from a seed, and a failing seed is printed.
 *
 *      actor (coroutine)  --each atomic operation is a step-->  scheduler: who goes on, whose oldest
 *                                                               buffered store reaches memory
 *
 *      consumer 0 wants block 0, consumer 1 wants block 1; one buffer holds either
 *      conductor: take requests, evict, overwrite, publish, grant, sleep
 *
 * The header is compiled here with its atomics replaced, so what runs is its own code. Stores that
 * are not seq_cst wait in the buffer (x86-TSO); exchanges, compare-and-swaps, fences and seq_cst
 * stores drain it. What is checked: no foreign or half-written byte is read under a lease; a
 * request ends in a grant or a time-out, never both; nobody waits for ever (a lost wake-up is a
 * schedule in which no one can go on).
 *
 * Faults that this finds within its default schedules, each tried by changing the header: no
 * re-check after the exchange; the exchange, the release, the grant, the cancel, or DONE as plain
 * stores; no fence before the scan; none after a flag is raised. STOUP_SEED repeats one schedule,
 * STOUP_SCHEDULES sets their number.
 */
#include <check.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static uint64_t step_load(const volatile void *at, size_t len);
static void step_store(volatile void *at, size_t len, uint64_t value, int order);
static uint64_t step_exchange(volatile void *at, size_t len, uint64_t value);
static uint64_t step_or(volatile void *at, size_t len, uint64_t value);
static int step_cas(volatile void *at, size_t len, void *expected, uint64_t value);
static void step_fence(int order);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_or_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_thread_fence
#define STEP_TYPE(p)                          __typeof__((void)0, *(p))
#define atomic_load_explicit(p, order)        ((STEP_TYPE(p))step_load((p), sizeof(*(p))))
#define atomic_store_explicit(p, v, order)    step_store((p), sizeof(*(p)), (uint64_t)(v), (order))
#define atomic_exchange_explicit(p, v, order) ((STEP_TYPE(p))step_exchange((p), sizeof(*(p)), (v)))
#define atomic_fetch_or_explicit(p, v, order) ((STEP_TYPE(p))step_or((p), sizeof(*(p)), (v)))
#define atomic_compare_exchange_strong_explicit(p, expected, v, won, lost)                         \
	step_cas((p), sizeof(*(p)), (expected), (v))
#define atomic_thread_fence(order) step_fence(order)

#include "shm/lease.h"

#define ACTOR_CNT  3
#define CONDUCTOR  2
#define BUFFER_CAP 8
#define STACK_LEN  65536
#define ROUNDS     3 /* leases that a consumer wants, at most */
#define SCHEDULES  5000
#define STEP_CAP   20000 /* of one schedule: more is a livelock */

struct pending_store {
	volatile void *at;
	size_t len;
	uint64_t value;
};

struct actor {
	ucontext_t context;
	char stack[STACK_LEN];
	struct pending_store stores[BUFFER_CAP];
	uint32_t store_cnt;
	int ended;
	int (*blocked)(uint32_t idx); /* NULL: may go on */
};

static struct actor actors[ACTOR_CNT];
static ucontext_t scheduler;
static uint32_t now_running;
static uint64_t random_state;
static uint32_t laziness;        /* of this schedule's store buffers: the longer, the stranger */
static uint32_t slow[ACTOR_CNT]; /* of this schedule: an actor that gets few turns */
static const char *failure;

/* ---- memory ---------------------------------------------------------------------------------- */

static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 33) % below;
}

static uint64_t memory_read(const volatile void *at, size_t len)
{
	return len == 8 ? *(const volatile uint64_t *)at : *(const volatile uint32_t *)at;
}

static void memory_write(volatile void *at, size_t len, uint64_t value)
{
	if (len == 8)
		*(volatile uint64_t *)at = value;
	else
		*(volatile uint32_t *)at = (uint32_t)value;
}

/* The oldest store of an actor reaches memory. */
static void drain_one(struct actor *a)
{
	memory_write(a->stores[0].at, a->stores[0].len, a->stores[0].value);
	a->store_cnt--;
	memmove(a->stores, a->stores + 1, a->store_cnt * sizeof(a->stores[0]));
}

static void drain(struct actor *a)
{
	while (a->store_cnt > 0)
		drain_one(a);
}

/* Let the scheduler decide who goes on. */
static struct actor *step(void)
{
	struct actor *a = &actors[now_running];

	swapcontext(&a->context, &scheduler);
	return a;
}

static uint64_t step_load(const volatile void *at, size_t len)
{
	struct actor *a = step();

	for (uint32_t i = a->store_cnt; i > 0; i--) {
		if (a->stores[i - 1].at == at)
			return a->stores[i - 1].value;
	}
	return memory_read(at, len);
}

static void step_store(volatile void *at, size_t len, uint64_t value, int order)
{
	struct actor *a = step();

	if (a->store_cnt == BUFFER_CAP)
		drain_one(a);
	a->stores[a->store_cnt++] = (struct pending_store){at, len, value};
	if (order == memory_order_seq_cst)
		drain(a);
}

static uint64_t step_exchange(volatile void *at, size_t len, uint64_t value)
{
	struct actor *a = step();
	uint64_t before;

	drain(a);
	before = memory_read(at, len);
	memory_write(at, len, value);
	return before;
}

static uint64_t step_or(volatile void *at, size_t len, uint64_t value)
{
	struct actor *a = step();
	uint64_t before;

	drain(a);
	before = memory_read(at, len);
	memory_write(at, len, before | value);
	return before;
}

static int step_cas(volatile void *at, size_t len, void *expected, uint64_t value)
{
	struct actor *a = step();

	drain(a);
	if (memory_read(at, len) != memory_read(expected, len)) {
		memory_write(expected, len, memory_read(at, len));
		return 0;
	}
	memory_write(at, len, value);
	return 1;
}

static void step_fence(int order)
{
	struct actor *a = step();

	if (order == memory_order_seq_cst)
		drain(a);
}

/* ---- the pool: two blocks, one buffer -------------------------------------------------------- */

static struct {
	_Atomic uint64_t residency[2];
	_Atomic uint64_t bytes; /* of the buffer: BYTES(block), or 0 while being written */
	_Atomic uint32_t asleep, starving;
	struct stoup_page *page[2];
	int bell;     /* doorbells since the conductor's last look */
	int woken[2]; /* futex wakes */
	uint64_t gen;
	int held_block;           /* what the buffer holds, or -1 */
	uint64_t ticket[2];       /* requests that wait for the buffer */
	uint32_t ended;           /* consumers that have had enough */
	uint32_t grants, granted; /* counted by the consumers, by the conductor */
	uint32_t timeouts;
} pool;

#define BYTES(block) (UINT64_C(0xa0) + (block))

static void found_fault(const char *what)
{
	if (!failure)
		failure = what;
}

/* ---- consumer -------------------------------------------------------------------------------- */

static void ring(void)
{
	struct actor *a = step();

	drain(a); /* a system call */
	pool.bell = 1;
}

/* The bytes under a lease, read twice. */
static void read_bytes(uint32_t idx)
{
	for (int i = 0; i < 2; i++) {
		if (atomic_load_explicit(&pool.bytes, memory_order_relaxed) != BYTES(idx))
			found_fault("foreign bytes were read under a lease");
	}
}

static int sleeps(uint32_t idx)
{
	return !pool.woken[idx];
}

/* Wait for slot 0 of the own page: 1 done, 0 gave up. */
static int wait_slot(uint32_t idx)
{
	struct stoup_slot *slot = &pool.page[idx]->slots[0];
	uint32_t expected = STOUP_SLOT_WAIT;

	for (uint32_t i = draw(4); i > 0; i--) {
		if (atomic_load_explicit(&slot->state, memory_order_acquire) == STOUP_SLOT_DONE)
			return 1;
	}
	if (draw(4) == 0)
		return 0;
	pool.woken[idx] = 0;
	atomic_compare_exchange_strong_explicit(&slot->state, &expected, STOUP_SLOT_SLEEP,
		memory_order_acq_rel, memory_order_acquire);
	/* futex: sleeps only where the word still says so */
	if (atomic_load_explicit(&slot->state, memory_order_acquire) == STOUP_SLOT_SLEEP) {
		actors[idx].blocked = sleeps;
		step();
		actors[idx].blocked = NULL;
	}
	if (atomic_load_explicit(&slot->state, memory_order_acquire) != STOUP_SLOT_DONE)
		found_fault("a waiter was woken before its request was done");
	return 1;
}

static int not_done(uint32_t idx)
{
	return memory_read(&pool.page[idx]->slots[0].state, 4) != STOUP_SLOT_DONE;
}

/* Ask for the block. The word leased, or 0 after a time-out. */
static uint64_t request(uint32_t idx, uint64_t seq)
{
	struct stoup_page *page = pool.page[idx];
	struct stoup_slot *slot = &page->slots[0];
	uint64_t ticket = stoup_ticket(0, seq), word;

	atomic_store_explicit(&slot->seq, seq, memory_order_relaxed);
	atomic_store_explicit(&slot->state, STOUP_SLOT_WAIT, memory_order_relaxed);
	stoup_lease_ticket(&page->cells[0], ticket);
	if (stoup_request_post(page, 0, &pool.asleep))
		ring();
	if (!wait_slot(idx)) {
		if (stoup_lease_cancel(&page->cells[0], ticket)) {
			pool.timeouts++;
			/* The slot is used again only after the conductor acknowledged it. */
			actors[idx].blocked = not_done;
			step();
			actors[idx].blocked = NULL;
			if (atomic_load_explicit(&page->cells[0], memory_order_acquire) != 0)
				found_fault("a request that was given up was granted");
			return 0;
		}
	}
	word = atomic_load_explicit(&page->cells[0], memory_order_acquire);
	if (!stoup_cell_leased(word))
		found_fault("a request was done without a grant");
	pool.grants++;
	return word;
}

static void consumer_main(uint32_t idx)
{
	_Atomic uint64_t *cell = &pool.page[idx]->cells[0];
	uint32_t wanted = 1 + draw(ROUNDS);
	uint64_t seq = 0, word;

	stoup_lease_cell_reach(pool.page[idx], 0);
	for (uint32_t got = 0; got < wanted && !failure;) {
		word = stoup_lease_acquire(&pool.residency[idx], cell);
		if (word == 0)
			word = request(idx, ++seq);
		if (word == 0)
			continue;
		read_bytes(idx);
		if (stoup_lease_release(cell, word, &pool.starving))
			ring();
		got++;
	}
	pool.ended++;
}

/* ---- conductor ------------------------------------------------------------------------------- */

static int no_bell(uint32_t idx)
{
	(void)idx;
	return !pool.bell && pool.ended < 2;
}

static void await_bell(void)
{
	actors[CONDUCTOR].blocked = no_bell;
	step();
	actors[CONDUCTOR].blocked = NULL;
	pool.bell = 0;
}

static int held(uint64_t word)
{
	for (uint32_t c = 0; c < 2; c++) {
		if (stoup_cell_high(pool.page[c], 1) > 0 &&
			stoup_cell_read(&pool.page[c]->cells[0]) == word)
			return 1;
	}
	return 0;
}

/* 1: the buffer is free. */
static int evict(void)
{
	uint64_t word = stoup_word(pool.gen, 0);
	_Atomic uint64_t *residency;

	if (pool.held_block < 0)
		return 1;
	residency = &pool.residency[pool.held_block];
	stoup_residency_clear(residency);
	stoup_evict_fence();
	if (held(word)) {
		stoup_residency_publish(residency, word);
		return 0;
	}
	pool.held_block = -1;
	pool.gen = stoup_gen_next(pool.gen);
	return 1;
}

static void load(uint32_t block)
{
	atomic_store_explicit(&pool.bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&pool.bytes, BYTES(block), memory_order_relaxed);
	pool.held_block = (int)block;
	stoup_residency_publish(&pool.residency[block], stoup_word(pool.gen, 0));
}

static void take_requests(void)
{
	for (uint32_t c = 0; c < 2; c++) {
		if (stoup_request_take(pool.page[c]) & 1)
			pool.ticket[c] =
				stoup_ticket(0, atomic_load_explicit(&pool.page[c]->slots[0].seq,
							memory_order_relaxed));
	}
}

static void answer(uint32_t c)
{
	pool.granted += (uint32_t)stoup_lease_grant(
		&pool.page[c]->cells[0], pool.ticket[c], stoup_word(pool.gen, 0));
	pool.ticket[c] = 0;
	if (stoup_request_done(&pool.page[c]->slots[0], 0, 0))
		pool.woken[c] = 1;
}

/* Serve what waits: 1 when somebody was served or nobody waits, 0 when the buffer is held. */
static int serve(void)
{
	uint32_t first = draw(2);

	if (!pool.ticket[0] && !pool.ticket[1])
		return 1;
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t c = (first + i) % 2;

		if (!pool.ticket[c])
			continue;
		if (pool.held_block != (int)c && !evict())
			continue;
		if (pool.held_block != (int)c)
			load(c);
		answer(c);
		return 1;
	}
	return 0;
}

static void conductor_main(void)
{
	while (pool.ended < 2 && !failure) {
		take_requests();
		if (!serve()) {
			/* [R1] the last look comes after the flag. Pending bits are seen by then as
			 * well. */
			stoup_flag_raise(&pool.starving);
			stoup_flag_raise(&pool.asleep);
			take_requests();
			if (!serve())
				await_bell();
			stoup_flag_lower(&pool.starving);
			stoup_flag_lower(&pool.asleep);
			continue;
		}
		if (pool.ticket[0] || pool.ticket[1])
			continue;
		/* Now and then evict what nobody asked for. */
		if (draw(3) == 0)
			evict();
		stoup_flag_raise(&pool.asleep);
		if (atomic_load_explicit(&pool.page[0]->pending, memory_order_seq_cst) == 0 &&
			atomic_load_explicit(&pool.page[1]->pending, memory_order_seq_cst) == 0)
			await_bell();
		stoup_flag_lower(&pool.asleep);
	}
}

/* ---- scheduler ------------------------------------------------------------------------------- */

static void actor_main(int idx)
{
	if (idx == CONDUCTOR)
		conductor_main();
	else
		consumer_main((uint32_t)idx);
	actors[idx].ended = 1; /* its last stores may still be on their way */
	swapcontext(&actors[idx].context, &scheduler);
}

/* On its own: getcontext returns twice as far as the compiler knows. */
static void actor_begin(uint32_t idx)
{
	struct actor *a = &actors[idx];

	a->store_cnt = 0;
	a->ended = 0;
	a->blocked = NULL;
	getcontext(&a->context);
	a->context.uc_stack.ss_sp = a->stack;
	a->context.uc_stack.ss_size = sizeof(a->stack);
	a->context.uc_link = &scheduler;
	makecontext(&a->context, (void (*)(void))(uintptr_t)actor_main, 1, (int)idx);
}

static void begin(uint64_t seed)
{
	random_state = seed * 2654435761u + 88172645463325252u;
	failure = NULL;
	for (uint32_t c = 0; c < 2; c++)
		memset(pool.page[c], 0, stoup_page_footprint(8));
	memset(&pool.residency, 0, sizeof(pool.residency));
	pool.bytes = 0;
	pool.asleep = pool.starving = 0;
	pool.bell = 0;
	pool.gen = 1;
	pool.held_block = -1;
	pool.ticket[0] = pool.ticket[1] = 0;
	pool.ended = 0;
	for (uint32_t i = 0; i < ACTOR_CNT; i++)
		actor_begin(i);
	/* Draw off the first words of the generator, which resemble the seed. */
	for (uint32_t i = 0; i < 4; i++)
		draw(2);
}

static int can_run(uint32_t idx)
{
	return !actors[idx].ended && (!actors[idx].blocked || !actors[idx].blocked(idx));
}

/* One turn: an actor's step, or a store that reaches memory. 0 when neither is possible. */
static int turn(void)
{
	uint32_t first = draw(2 * ACTOR_CNT);

	for (uint32_t i = 0; i < 2 * ACTOR_CNT; i++) {
		uint32_t at = (first + i) % (2 * ACTOR_CNT), idx = at % ACTOR_CNT;

		if (at < ACTOR_CNT && can_run(idx) && draw(1 + slow[idx]) == 0) {
			now_running = idx;
			swapcontext(&scheduler, &actors[idx].context);
			return 1;
		}
		if (at >= ACTOR_CNT && actors[idx].store_cnt > 0 && draw(1 + laziness) == 0) {
			drain_one(&actors[idx]);
			return 1;
		}
	}
	return 0;
}

/* Stores reach memory in the end, however lazy the buffers are. */
static int drain_any(void)
{
	for (uint32_t i = 0; i < ACTOR_CNT; i++) {
		if (actors[i].store_cnt > 0) {
			drain_one(&actors[i]);
			return 1;
		}
	}
	return 0;
}

static int anybody(void)
{
	return can_run(0) || can_run(1) || can_run(CONDUCTOR);
}

static void run_schedule(uint64_t seed)
{
	uint32_t steps = 0;

	begin(seed);
	laziness = 8 * draw(4);
	for (uint32_t i = 0; i < ACTOR_CNT; i++)
		slow[i] = draw(3) == 0 ? 20 : 0;
	while (!failure && !(actors[0].ended && actors[1].ended && actors[2].ended)) {
		if (!turn() && !anybody() && !drain_any())
			found_fault("nobody can go on: a wake-up was lost");
		if (++steps > STEP_CAP)
			found_fault("no end within the allowed steps");
	}
	if (pool.grants != pool.granted)
		found_fault("conductor and consumers count different grants");
}

START_TEST(every_schedule_of_the_lease_protocol_is_right)
{
	const char *given = getenv("STOUP_SEED");
	const char *many = getenv("STOUP_SCHEDULES");
	uint64_t first = given ? strtoull(given, NULL, 10) : 1;
	uint64_t cnt = given ? 1 : many ? strtoull(many, NULL, 10) : SCHEDULES;

	for (uint32_t c = 0; c < 2; c++)
		ck_assert_ptr_nonnull(pool.page[c] = calloc(1, stoup_page_footprint(8)));
	for (uint64_t seed = first; seed < first + cnt; seed++) {
		run_schedule(seed);
		ck_assert_msg(!failure, "%s; repeat with STOUP_SEED=%llu", failure,
			(unsigned long long)seed);
	}
	if (!given && !many) {
		ck_assert_uint_gt(pool.grants, SCHEDULES);
		ck_assert_uint_gt(pool.timeouts, SCHEDULES / 10);
	}
	for (uint32_t c = 0; c < 2; c++)
		free(pool.page[c]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("race_lease_steps");
	TCase *tcase = tcase_create("steps");
	SRunner *runner;
	int failed;

#if defined(__SANITIZE_THREAD__)
	return 77; /* that sanitizer does not follow coroutines */
#endif
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, every_schedule_of_the_lease_protocol_is_right);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
