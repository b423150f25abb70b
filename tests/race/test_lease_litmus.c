/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease_litmus.c - each ordering pair of shm/lease.h alone, on the machine as it is: two threads, one
 * step each, hundreds of thousands of trials, and the outcome that the pair forbids.
 *
 *      reset 256 trials --gate--> consumer's steps | conductor's steps --gate--> judge --> reset
 *                                       \--- meet before each step ---/
 *
 * In a whole run a lost wake-up is soon covered by the next ring; here it is seen. A plain store instead of
 * the exchange of a release, or a fence left out, fails within a fraction of a second on two processors.
 * One processor alone, or emulation in one thread, shows nothing: the models have the proof.
 *
 * Bounded by ROUNDS and a third of a second for each pair; STOUP_ROUNDS multiplies both.
 */
#include <check.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "shm/lease.h"

#define TRIAL_CNT 256u   /* between two gates */
#define ROUNDS    10000u /* of TRIAL_CNT trials */
#define ROUND_NS  UINT64_C(330000000)
#define STAGGER   64u    /* pauses before a step, at most */
#define MEET_CNT  2000u  /* looks at the other side before it is taken to be off its processor */
#define IDLE_CNT  20000u /* looks at a gate before the processor is given away */
#define LEAD_CNT  32u    /* rounds of which the conductor goes first in one, the consumer in one */

enum pair {
	PAIR_EVICT,
	PAIR_REACH,
	PAIR_RELEASE,
	PAIR_POST,
	PAIR_CANCEL,
	PAIR_SLEEP
};

/* What each side saw, by its own name in the code. */
struct outcome {
	uint64_t word;       /* acquire */
	uint64_t cell, bits; /* scan, take */
	uint32_t block_idx;  /* of the slot that was taken */
	int ring, cancelled, granted, slept, wake, error;
};

/* One trial, its words as far apart as in life. */
struct trial {
	_Alignas(STOUP_APART_LEN) _Atomic uint64_t residency;
	_Alignas(STOUP_APART_LEN) _Atomic uint32_t flag;
	_Alignas(STOUP_APART_LEN) struct outcome consumer;
	_Alignas(STOUP_APART_LEN) struct outcome conductor;
	struct stoup_page *page;
};

struct place {
	_Alignas(STOUP_APART_LEN) _Atomic uint64_t trial;
};

static struct {
	_Alignas(STOUP_APART_LEN) _Atomic uint32_t open;  /* the round that may begin */
	_Alignas(STOUP_APART_LEN) _Atomic uint32_t ready; /* the consumer stands at its gate */
	_Alignas(STOUP_APART_LEN) _Atomic uint32_t done;  /* the consumer is through */
	_Alignas(STOUP_APART_LEN) _Atomic uint32_t led;   /* the conductor is through */
	_Alignas(STOUP_APART_LEN) _Atomic int over;
	struct place at[2]; /* where each side stands */
	enum pair pair;
	struct trial trials[TRIAL_CNT];
} shared;

static const uint64_t word = UINT64_C(5) << STOUP_WORD_IDX_BITS | 3;

static uint64_t ticket_of(uint32_t round)
{
	return stoup_ticket(0, round);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t rounds_factor(void)
{
	const char *text = getenv("STOUP_ROUNDS");

	return text ? strtoull(text, NULL, 10) : 1;
}

/* ---- the steps -------------------------------------------------------------------------------- */

static void reset(struct trial *t, uint32_t round)
{
	struct stoup_slot *slot = &t->page->slots[0];
	uint64_t cell = 0;

	if (shared.pair == PAIR_RELEASE)
		cell = word;
	if (shared.pair == PAIR_CANCEL)
		cell = ticket_of(round);
	atomic_store(&t->residency, word);
	atomic_store(&t->flag, 0);
	atomic_store(&t->page->cells[0], cell);
	atomic_store(&t->page->cell_high, shared.pair == PAIR_REACH ? 0 : 1);
	atomic_store(&t->page->pending, 0);
	atomic_store(&slot->state, shared.pair == PAIR_SLEEP ? STOUP_SLOT_WAIT : STOUP_SLOT_FREE);
	atomic_store(&slot->error, 0);
	atomic_store(&slot->block_idx, 0);
}

static void consumer_step(struct trial *t, uint32_t round)
{
	struct stoup_slot *slot = &t->page->slots[0];
	_Atomic uint64_t *cell = &t->page->cells[0];
	uint32_t expected = STOUP_SLOT_WAIT;
	struct outcome o = {0};

	switch (shared.pair) {
	case PAIR_REACH:
		stoup_lease_cell_reach(t->page, 0);
		o.word = stoup_lease_acquire(&t->residency, cell);
		break;
	case PAIR_EVICT:
		o.word = stoup_lease_acquire(&t->residency, cell);
		break;
	case PAIR_RELEASE:
		o.ring = stoup_lease_release(cell, word, &t->flag);
		break;
	case PAIR_POST:
		atomic_store_explicit(&slot->block_idx, round, memory_order_relaxed);
		stoup_lease_ticket(cell, ticket_of(round));
		o.ring = stoup_request_post(t->page, 0, &t->flag);
		break;
	case PAIR_CANCEL:
		o.cancelled = stoup_lease_cancel(cell, ticket_of(round));
		break;
	case PAIR_SLEEP:
		o.slept = atomic_compare_exchange_strong_explicit(&slot->state, &expected,
			STOUP_SLOT_SLEEP, memory_order_acq_rel, memory_order_acquire);
		o.error = atomic_load_explicit(&slot->error, memory_order_relaxed);
		break;
	}
	t->consumer = o;
}

static void conductor_step(struct trial *t, uint32_t round)
{
	struct stoup_slot *slot = &t->page->slots[0];
	_Atomic uint64_t *cell = &t->page->cells[0];
	struct outcome o = {0};

	switch (shared.pair) {
	case PAIR_EVICT:
	case PAIR_REACH:
		stoup_residency_clear(&t->residency);
		stoup_evict_fence();
		if (stoup_cell_high(t->page, 1) > 0)
			o.cell = stoup_cell_read(cell);
		break;
	case PAIR_RELEASE:
		stoup_flag_raise(&t->flag);
		o.cell = stoup_cell_read(cell);
		break;
	case PAIR_POST:
		stoup_flag_raise(&t->flag);
		o.bits = stoup_request_take(t->page);
		o.block_idx = atomic_load_explicit(&slot->block_idx, memory_order_relaxed);
		o.cell = atomic_load_explicit(cell, memory_order_relaxed);
		break;
	case PAIR_CANCEL:
		o.granted = stoup_lease_grant(cell, ticket_of(round), word);
		break;
	case PAIR_SLEEP:
		o.wake = stoup_request_done(slot, -5, 0);
		break;
	}
	t->conductor = o;
}

/* 0: the conductor was first, 1: the consumer, 2: neither alone, -1: forbidden. */
static int judge(const struct trial *t, uint32_t round)
{
	const struct outcome *user = &t->consumer, *daemon = &t->conductor;
	uint64_t last = atomic_load(&t->page->cells[0]);

	switch (shared.pair) {
	case PAIR_EVICT:
	case PAIR_REACH:
		/* A lease that the scan did not see: its buffer would be overwritten. */
		if (user->word)
			return daemon->cell == word && last == word ? 1 : -1;
		if (last != 0)
			return -1;
		return daemon->cell == 0 ? 0 : 2;
	case PAIR_RELEASE:
		/* Nobody rings, and the look finds it leased. */
		if (stoup_cell_leased(daemon->cell))
			return user->ring ? 0 : -1;
		return user->ring ? 2 : 1;
	case PAIR_POST:
		if (!daemon->bits)
			return user->ring ? 0 : -1;
		if (daemon->block_idx != round || daemon->cell != ticket_of(round))
			return -1;
		return user->ring ? 2 : 1;
	case PAIR_CANCEL:
		if (user->cancelled == daemon->granted)
			return -1;
		return last == (user->cancelled ? 0 : word) ? user->cancelled : -1;
	case PAIR_SLEEP:
		/* Asleep and not woken; or awake, and the result is not there. */
		if (user->slept != daemon->wake || (!user->slept && user->error != -5))
			return -1;
		return user->slept;
	}
	return -1;
}

/* ---- the rounds ------------------------------------------------------------------------------- */

static void await(const _Atomic uint32_t *gate, uint32_t round)
{
	uint32_t looks = 0;

	while (atomic_load_explicit(gate, memory_order_acquire) != round &&
		!atomic_load_explicit(&shared.over, memory_order_acquire))
		if (++looks % IDLE_CNT == 0)
			sched_yield();
}

static uint32_t mix(uint32_t round, uint32_t i, uint32_t side)
{
	uint32_t x = (round * TRIAL_CNT + i) * 2 + side;

	x = (x ^ x >> 15) * 2246822519u;
	x = (x ^ x >> 13) * 3266489917u;
	return x ^ x >> 16;
}

/* Stand at a trial until the other side does too. 0: it does not run now. */
static int meet(uint64_t trial, uint32_t side)
{
	atomic_store_explicit(&shared.at[side].trial, trial, memory_order_relaxed);
	for (uint32_t looks = 0; looks < MEET_CNT; looks++)
		if (atomic_load_explicit(&shared.at[1 - side].trial, memory_order_relaxed) >= trial)
			return 1;
	return 0;
}

/* One side's steps. As long as both sides run, each step begins with a meeting and a random pause; now
 * and then a side gives its processor away. */
static void steps(void (*step)(struct trial *, uint32_t), uint32_t round, uint32_t side)
{
	int together = 1;

	if (mix(round, 0, side) % 64 == 0)
		sched_yield();
	for (uint32_t i = 0; i < TRIAL_CNT; i++) {
		together = together && meet((uint64_t)round * TRIAL_CNT + i, side);
		for (volatile uint32_t n = mix(round, i, side) % STAGGER; n > 0; n--)
			;
		step(&shared.trials[i], round);
	}
}

static void *consumer_thread(void *arg)
{
	(void)arg;
	for (uint32_t round = 1;; round++) {
		await(&shared.open, round);
		if (atomic_load_explicit(&shared.over, memory_order_acquire))
			return NULL;
		/* Both are on a processor now, as far as one can know. */
		atomic_store_explicit(&shared.ready, round, memory_order_release);
		if (round % LEAD_CNT == 1)
			await(&shared.led, round);
		steps(consumer_step, round, 0);
		atomic_store_explicit(&shared.done, round, memory_order_release);
	}
}

/* Each side its own processor, where there are two: left alone they may share one for all the rounds. */
static void part(pthread_t consumer)
{
	pthread_t sides[2] = {pthread_self(), consumer};
	cpu_set_t allowed, one;
	uint32_t side = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0 || CPU_COUNT(&allowed) < 2)
		return;
	for (size_t cpu = 0; cpu < CPU_SETSIZE && side < 2; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		pthread_setaffinity_np(sides[side++], sizeof(one), &one);
	}
}

static void begin(enum pair pair)
{
	static const uint8_t instance[16] = {1};

	memset(&shared, 0, sizeof(shared));
	shared.pair = pair;
	for (uint32_t i = 0; i < TRIAL_CNT; i++) {
		size_t len = stoup_page_footprint(1);
		void *page = aligned_alloc(STOUP_OS_PAGE_LEN, len);

		ck_assert_ptr_nonnull(page);
		memset(page, 0, len);
		stoup_page_format(page, instance, 1, 0, 1);
		shared.trials[i].page = page;
	}
}

static void run(enum pair pair, const char *name)
{
	uint64_t seen[3] = {0}, forbidden = 0, factor = rounds_factor();
	uint64_t until_ns = now_ns() + ROUND_NS * factor;
	uint32_t round = 0;
	pthread_t thread;

	begin(pair);
	ck_assert_int_eq(pthread_create(&thread, NULL, consumer_thread, NULL), 0);
	part(thread);
	while (round < 2 || (round < ROUNDS * factor && now_ns() < until_ns)) {
		round++;
		for (uint32_t i = 0; i < TRIAL_CNT; i++)
			reset(&shared.trials[i], round);
		atomic_store_explicit(&shared.open, round, memory_order_release);
		await(&shared.ready, round);
		if (round % LEAD_CNT == 2)
			await(&shared.done, round);
		steps(conductor_step, round, 1);
		atomic_store_explicit(&shared.led, round, memory_order_release);
		await(&shared.done, round);
		for (uint32_t i = 0; i < TRIAL_CNT; i++) {
			int order = judge(&shared.trials[i], round);

			if (order < 0)
				forbidden++;
			else
				seen[order]++;
		}
	}
	atomic_store_explicit(&shared.over, 1, memory_order_release);
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < TRIAL_CNT; i++)
		free(shared.trials[i].page);
	printf("litmus: %-7s %7u trials: conductor first %" PRIu64 ", consumer first %" PRIu64
	       ", at once %" PRIu64 ", forbidden %" PRIu64 "\n",
		name, round * TRIAL_CNT, seen[0], seen[1], seen[2], forbidden);
	ck_assert_uint_eq(forbidden, 0);
	/* Both orders, which the first two rounds have on any machine. */
	ck_assert_uint_gt(seen[0], 0);
	ck_assert_uint_gt(seen[1], 0);
}

START_TEST(a_lease_is_seen_by_the_scan_or_not_taken)
{
	run(PAIR_EVICT, "evict");
}
END_TEST

START_TEST(the_first_use_of_a_cell_is_within_the_bound_of_the_scan)
{
	run(PAIR_REACH, "reach");
}
END_TEST

START_TEST(a_release_is_seen_by_the_starving_look_or_rings)
{
	run(PAIR_RELEASE, "release");
}
END_TEST

START_TEST(a_request_is_seen_whole_by_the_last_look_or_rings)
{
	run(PAIR_POST, "post");
}
END_TEST

START_TEST(a_grant_and_a_time_out_never_both_win_and_one_does)
{
	run(PAIR_CANCEL, "cancel");
}
END_TEST

START_TEST(a_waiter_that_sleeps_is_woken_and_one_that_does_not_has_the_result)
{
	run(PAIR_SLEEP, "sleep");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lease_litmus");
	TCase *tcase = tcase_create("pairs");
	SRunner *runner;
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, a_lease_is_seen_by_the_scan_or_not_taken);
	tcase_add_test(tcase, the_first_use_of_a_cell_is_within_the_bound_of_the_scan);
	tcase_add_test(tcase, a_release_is_seen_by_the_starving_look_or_rings);
	tcase_add_test(tcase, a_request_is_seen_whole_by_the_last_look_or_rings);
	tcase_add_test(tcase, a_grant_and_a_time_out_never_both_win_and_one_does);
	tcase_add_test(tcase, a_waiter_that_sleeps_is_woken_and_one_that_does_not_has_the_result);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
