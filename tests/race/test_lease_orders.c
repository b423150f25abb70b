/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease_orders.c - the functions of shm/lease.h, interleaved in every order at each of their atomic
 * operations, with stores that are seen late (lease_steps.h), and each end checked.
 *
 *      hit     : evict, once and twice; the block back under a new generation
 *      release : the starving look            post  : the last look
 *      time-out: grant, slots used again      sleep : done
 *
 * Where the models of tests/race/model follow the code by hand, this is the code, in shorter scripts, and
 * where test_lease_steps.c draws schedules of longer ones at random, this leaves none out. The first test
 * pins which operations in which memory order each function is made of: who changes one changes the
 * models and docs/memory-model.md as well.
 */
#include "tests/race/lease_steps.h"

#define OLD_BYTES UINT64_C(0x01d)
#define NEW_BYTES UINT64_C(0x2e3)
#define NOISE     UINT64_C(0xeee)
#define GEN       UINT64_C(5)

static struct {
	_Atomic uint64_t residency[2];
	_Atomic uint32_t asleep, starving;
	_Atomic uint64_t bytes; /* of the one buffer */
} pool;

static struct stoup_page *pages[2];
static struct steps_state first;
static const uint64_t old_word = GEN << STOUP_WORD_IDX_BITS;       /* buffer 0 */
static const uint64_t new_word = (GEN + 1) << STOUP_WORD_IDX_BITS; /* buffer 0, evicted once */

static void setup(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		pages[i] = calloc(1, stoup_page_footprint(2));
		ck_assert_ptr_nonnull(pages[i]);
	}
	steps_begin(&first);
	steps_set(&first, &pool.residency[0], old_word);
	steps_set(&first, &pool.bytes, OLD_BYTES);
}

static void teardown(void)
{
	free(pages[0]);
	free(pages[1]);
}

/* ---- orders ----------------------------------------------------------------------------------- */

static void trace_acquire(void)
{
	stoup_lease_acquire(&pool.residency[0], &pages[0]->cells[0]);
}

static void trace_consumer(void)
{
	stoup_lease_release(&pages[0]->cells[0], old_word, &pool.starving);
	stoup_lease_cell_reach(pages[0], 0);
	stoup_lease_ticket(&pages[0]->cells[0], stoup_ticket(1, 1));
	stoup_lease_cancel(&pages[0]->cells[0], stoup_ticket(1, 1));
	stoup_request_post(pages[0], 1, &pool.asleep);
}

static void trace_evict(void)
{
	stoup_residency_publish(&pool.residency[0], old_word);
	stoup_residency_clear(&pool.residency[0]);
	stoup_evict_fence();
	stoup_cell_high(pages[0], 2);
	stoup_cell_read(&pages[0]->cells[0]);
}

static void trace_answer(void)
{
	stoup_request_take(pages[0]);
	stoup_lease_grant(&pages[0]->cells[0], stoup_ticket(1, 1), old_word);
	stoup_request_done(&pages[0]->slots[1], -5, 0);
	stoup_flag_raise(&pool.asleep);
	stoup_flag_lower(&pool.asleep);
}

/* Run a script alone and compare what it did with `expected`. */
static void expect(struct steps_state *state, void (*script)(void),
	const struct steps_trace *expected, uint32_t cnt)
{
	ck_assert(steps_run(state, 0, script, STEPS_LOG_CAP));
	ck_assert_uint_eq(steps.trace_cnt, cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct steps_trace *did = &steps.trace[i];

		ck_assert_msg(did->op == expected[i].op && did->word == expected[i].word &&
				      did->order == expected[i].order &&
				      did->failure == expected[i].failure,
			"operation %u: kind %d, order %d/%d instead of kind %d, order %d/%d", i,
			(int)did->op, did->order, did->failure, (int)expected[i].op,
			expected[i].order, expected[i].failure);
	}
	memset(&state->sides[0], 0, sizeof(state->sides[0]));
}

START_TEST(each_function_is_the_operations_that_the_memory_model_argues_with)
{
	const void *cell = &pages[0]->cells[0], *slot_state = &pages[0]->slots[1].state;
	const void *residency = &pool.residency[0];
	const struct steps_trace acquire[] = {
		{STEPS_LOAD, residency, memory_order_acquire, 0}, /* [L2] */
		{STEPS_EXCHANGE, cell, memory_order_seq_cst, 0},  /* [L1] */
		{STEPS_LOAD, residency, memory_order_seq_cst, 0}, /* [L1] */
	};
	const struct steps_trace consumer[] = {
		{STEPS_EXCHANGE, cell, memory_order_seq_cst, 0},       /* [R1] [R2] */
		{STEPS_LOAD, &pool.starving, memory_order_seq_cst, 0}, /* [R1] */
		{STEPS_LOAD, &pages[0]->cell_high, memory_order_relaxed, 0},
		{STEPS_STORE, &pages[0]->cell_high, memory_order_seq_cst, 0}, /* [L4] */
		{STEPS_STORE, cell, memory_order_release, 0},
		{STEPS_CAS, cell, memory_order_acq_rel, memory_order_acquire}, /* [G1] */
		{STEPS_OR, &pages[0]->pending, memory_order_seq_cst, 0},       /* [M1] [S1] */
		{STEPS_LOAD, &pool.asleep, memory_order_seq_cst, 0},           /* [S1] */
	};
	const struct steps_trace evict[] = {
		{STEPS_STORE, residency, memory_order_release, 0},           /* [L2] */
		{STEPS_STORE, residency, memory_order_release, 0},           /* [E1] */
		{STEPS_FENCE, NULL, memory_order_seq_cst, 0},                /* [E1] */
		{STEPS_LOAD, &pages[0]->cell_high, memory_order_acquire, 0}, /* [L4] */
		{STEPS_LOAD, cell, memory_order_acquire, 0},                 /* [E1] [R2] */
	};
	const struct steps_trace answer[] = {
		{STEPS_LOAD, &pages[0]->pending, memory_order_seq_cst, 0},     /* [S1] */
		{STEPS_EXCHANGE, &pages[0]->pending, memory_order_seq_cst, 0}, /* [M1] */
		{STEPS_CAS, cell, memory_order_acq_rel, memory_order_acquire}, /* [G1] [L2] */
		{STEPS_STORE, &pages[0]->slots[1].detail, memory_order_relaxed, 0},
		{STEPS_STORE, &pages[0]->slots[1].error, memory_order_relaxed, 0},
		{STEPS_EXCHANGE, slot_state, memory_order_acq_rel, 0}, /* [M2] */
		{STEPS_STORE, &pool.asleep, memory_order_seq_cst, 0},  /* [S1] [R1] */
		{STEPS_FENCE, NULL, memory_order_seq_cst, 0},          /* [S1] [R1] */
		{STEPS_STORE, &pool.asleep, memory_order_relaxed, 0},
	};
	const struct steps_trace missed[] = {
		{STEPS_LOAD, residency, memory_order_seq_cst, 0},
		{STEPS_STORE, cell, memory_order_release, 0},
	};

	expect(&first, trace_acquire, acquire, 3);
	expect(&first, trace_consumer, consumer, 8);
	expect(&first, trace_answer, answer, 9); /* finds the bit that was just posted */
	expect(&first, trace_evict, evict, 5);
	/* Cleared between exchange and re-load. */
	steps_set(&first, residency, old_word);
	ck_assert(!steps_run(&first, 0, trace_acquire, 2));
	steps_set(&first, residency, 0);
	expect(&first, trace_acquire, missed, 2);
}
END_TEST

/* ---- hits against eviction -------------------------------------------------------------------- */

static struct hit {
	uint64_t word, bytes[2];
	int ring;
} hits[2][2]; /* of each consumer: two tries */

static uint32_t evicted_cnt, kept_cnt;

/* Lease the block through a cell used for the first time, read twice, give back. */
static void hit(uint32_t consumer, uint32_t try)
{
	struct hit *h = &hits[consumer][try];
	struct stoup_page *page = pages[consumer];

	stoup_lease_cell_reach(page, try);
	h->word = stoup_lease_acquire(&pool.residency[0], &page->cells[try]);
	if (h->word == 0)
		return;
	h->bytes[0] = atomic_load_explicit(&pool.bytes, memory_order_relaxed);
	h->bytes[1] = atomic_load_explicit(&pool.bytes, memory_order_relaxed);
	h->ring = stoup_lease_release(&page->cells[try], h->word, &pool.starving);
}

static void hit_once(void)
{
	hit(0, 0);
}

static void hit_once_other(void)
{
	hit(1, 0);
}

static void hit_twice(void)
{
	hit(0, 0);
	hit(0, 1);
}

/* Is the buffer leased under `word`, by any cell of `page_cnt` pages? */
static int named(uint64_t word, uint32_t page_cnt)
{
	int found = 0;

	for (uint32_t i = 0; i < page_cnt; i++) {
		uint32_t high = stoup_cell_high(pages[i], 2);

		for (uint32_t j = 0; j < high; j++) {
			uint64_t v = stoup_cell_read(&pages[i]->cells[j]);

			found |= stoup_cell_leased(v) && v == word;
		}
	}
	return found;
}

/* As evict_pass: 1 = the bytes are ours. */
static int evict(uint64_t word, uint32_t page_cnt)
{
	int held;

	stoup_residency_clear(&pool.residency[0]);
	stoup_evict_fence();
	held = named(word, page_cnt);
	if (held)
		stoup_residency_publish(&pool.residency[0], word);
	else
		atomic_store_explicit(&pool.bytes, NOISE, memory_order_relaxed);
	kept_cnt += (uint32_t)held;
	evicted_cnt += !held;
	return !held;
}

static void evict_once(void)
{
	kept_cnt = evicted_cnt = 0;
	evict(old_word, 1);
}

static void evict_from_two(void)
{
	kept_cnt = evicted_cnt = 0;
	evict(old_word, 2);
}

static void evict_until_free(void)
{
	kept_cnt = evicted_cnt = 0;
	if (!evict(old_word, 1))
		evict(old_word, 1);
}

/* The same block comes back into the same buffer, as another generation. */
static void evict_and_refill(void)
{
	kept_cnt = evicted_cnt = 0;
	if (!evict(old_word, 1))
		return;
	atomic_store_explicit(&pool.bytes, NEW_BYTES, memory_order_relaxed);
	stoup_residency_publish(&pool.residency[0], new_word);
}

static uint64_t seen_hits, seen_misses, seen_kept, seen_evicted, seen_new;

static void check_hit(const struct hit *h)
{
	seen_hits += h->word != 0;
	seen_misses += h->word == 0;
	seen_new += h->word == new_word;
	if (h->word == 0)
		return;
	ck_assert(h->word == old_word || h->word == new_word);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_uint_eq(h->bytes[i], h->word == old_word ? OLD_BYTES : NEW_BYTES);
	ck_assert(!h->ring);
}

/* No cell leases anything once all is given back. */
static void check_cells(void)
{
	for (uint32_t i = 0; i < 4; i++)
		ck_assert(!stoup_cell_leased(steps_peek(&pages[i / 2]->cells[i % 2])));
	seen_kept += kept_cnt;
	seen_evicted += evicted_cnt;
}

static void check_one(void)
{
	check_hit(&hits[0][0]);
	check_cells();
}

static void check_two(void)
{
	check_hit(&hits[0][0]);
	check_hit(&hits[1][0]);
	check_cells();
}

static void check_both_tries(void)
{
	check_hit(&hits[0][0]);
	check_hit(&hits[0][1]);
	check_cells();
}

static void explore_hits(const struct steps_case *c)
{
	seen_hits = seen_misses = seen_kept = seen_evicted = seen_new = 0;
	steps_explore(&first, c);
	ck_assert_uint_gt(seen_hits, 0);
	ck_assert_uint_gt(seen_misses, 0);
	ck_assert_uint_gt(seen_kept, 0);
	ck_assert_uint_gt(seen_evicted, 0);
}

START_TEST(a_hit_and_an_eviction_never_share_the_bytes)
{
	const struct steps_case c = {"hit : evict", 2, {hit_once, evict_once, NULL}, check_one};

	explore_hits(&c);
}
END_TEST

START_TEST(two_hits_and_an_eviction_never_share_the_bytes)
{
	const struct steps_case c = {
		"hit : hit : evict", 3, {hit_once, hit_once_other, evict_from_two}, check_two};

	explore_hits(&c);
}
END_TEST

START_TEST(a_second_pass_finds_what_the_first_one_put_back)
{
	const struct steps_case c = {"two hits : evict, evict", 2,
		{hit_twice, evict_until_free, NULL}, check_both_tries};

	explore_hits(&c);
}
END_TEST

START_TEST(a_block_that_comes_back_is_another_generation_with_whole_bytes)
{
	const struct steps_case c = {"two hits : evict, refill", 2,
		{hit_twice, evict_and_refill, NULL}, check_both_tries};

	explore_hits(&c);
	ck_assert_uint_gt(seen_new, 0);
}
END_TEST

/* ---- the looks before sleep ------------------------------------------------------------------- */

static int user_ring, looked_at_held, sleeps;
static uint64_t user_word, user_bytes, taken, slot_block, slot_ticket;

/* Both outcomes of a check were met. */
static void explore_both(const struct steps_case *c)
{
	seen_kept = seen_evicted = 0;
	steps_explore(&first, c);
	ck_assert_uint_gt(seen_kept, 0);
	ck_assert_uint_gt(seen_evicted, 0);
}

static void release_held(void)
{
	user_bytes = atomic_load_explicit(&pool.bytes, memory_order_relaxed);
	user_ring = stoup_lease_release(&pages[0]->cells[0], old_word, &pool.starving);
}

static void starving_look(void)
{
	stoup_flag_raise(&pool.starving);
	looked_at_held = stoup_cell_leased(stoup_cell_read(&pages[0]->cells[0]));
	if (!looked_at_held)
		atomic_store_explicit(&pool.bytes, NOISE, memory_order_relaxed);
}

static void check_release(void)
{
	ck_assert(user_ring || !looked_at_held);
	ck_assert_uint_eq(user_bytes, OLD_BYTES);
	seen_kept += (uint64_t)looked_at_held;
	seen_evicted += (uint64_t)!looked_at_held;
}

START_TEST(a_release_is_found_by_the_starving_look_or_rings)
{
	const struct steps_case c = {
		"release : starving look", 2, {release_held, starving_look, NULL}, check_release};

	steps_set(&first, &pages[0]->cells[0], old_word);
	explore_both(&c);
}
END_TEST

static int post(uint32_t slot_idx, uint32_t block_idx, uint64_t seq)
{
	struct stoup_slot *slot = &pages[0]->slots[slot_idx];

	atomic_store_explicit(&slot->block_idx, block_idx, memory_order_relaxed);
	atomic_store_explicit(&slot->seq, seq, memory_order_relaxed);
	atomic_store_explicit(&slot->state, STOUP_SLOT_WAIT, memory_order_relaxed);
	stoup_lease_ticket(&pages[0]->cells[0], stoup_ticket(slot_idx, seq));
	return stoup_request_post(pages[0], slot_idx, &pool.asleep);
}

static void post_one(void)
{
	user_ring = post(1, 7, 1);
}

static void last_look(void)
{
	stoup_flag_raise(&pool.asleep);
	taken = stoup_request_take(pages[0]);
	slot_block = slot_ticket = 0;
	if (!taken)
		return;
	slot_block = atomic_load_explicit(&pages[0]->slots[1].block_idx, memory_order_relaxed);
	slot_ticket = atomic_load_explicit(&pages[0]->cells[0], memory_order_relaxed);
}

static void check_post(void)
{
	ck_assert(user_ring || taken);
	if (taken) {
		ck_assert_uint_eq(slot_block, 7);
		ck_assert_uint_eq(slot_ticket, stoup_ticket(1, 1));
	}
	seen_kept += taken != 0;
	seen_evicted += taken == 0;
}

START_TEST(a_request_is_found_whole_by_the_last_look_or_rings)
{
	const struct steps_case c = {
		"post : last look", 2, {post_one, last_look, NULL}, check_post};

	explore_both(&c);
}
END_TEST

/* A failed acquire does not ring; the request that follows does. */
static void hit_or_ask(void)
{
	user_word = stoup_lease_acquire(&pool.residency[0], &pages[0]->cells[0]);
	if (user_word)
		user_ring = stoup_lease_release(&pages[0]->cells[0], user_word, &pool.starving);
	else
		user_ring = post(1, 0, 1);
}

/* The last look of a conductor that needs the buffer: it sleeps when it finds nothing. */
static void starving_pass(void)
{
	sleeps = 0;
	stoup_flag_raise(&pool.asleep);
	if (atomic_load_explicit(&pages[0]->pending, memory_order_seq_cst))
		return;
	stoup_flag_raise(&pool.starving);
	kept_cnt = evicted_cnt = 0;
	sleeps = !evict(old_word, 1);
}

static void check_transient(void)
{
	ck_assert(!sleeps || user_ring);
	seen_kept += sleeps && user_word == 0;
	seen_evicted += sleeps && user_word != 0;
}

START_TEST(a_cell_that_named_the_buffer_in_passing_is_followed_by_a_ring)
{
	const struct steps_case c = {"hit or ask : starving pass", 2,
		{hit_or_ask, starving_pass, NULL}, check_transient};

	steps_set(&first, &pages[0]->cell_high, 1);
	explore_both(&c);
}
END_TEST

/* ---- grants ----------------------------------------------------------------------------------- */

static int cancelled, reused, granted[2], wake, slept;
static uint32_t served_cnt;
static int32_t error;

/* Ask for block 1; give up at once; if that won, ask for block 2 with the slot if it is free, else with the
 * next one. */
static void ask_and_give_up(void)
{
	reused = 0;
	post(1, 1, 1);
	cancelled = stoup_lease_cancel(&pages[0]->cells[0], stoup_ticket(1, 1));
	if (!cancelled) {
		user_word = atomic_load_explicit(&pages[0]->cells[0], memory_order_acquire);
		return;
	}
	reused = atomic_load_explicit(&pages[0]->slots[1].state, memory_order_acquire) ==
	         STOUP_SLOT_DONE;
	post(reused ? 1 : 2, 2, reused ? 2 : 1);
}

/* The word of block b is of generation b. */
static void serve(uint32_t slot_idx)
{
	struct stoup_slot *slot = &pages[0]->slots[slot_idx];
	uint64_t block_idx = atomic_load_explicit(&slot->block_idx, memory_order_relaxed);
	uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_relaxed);

	granted[served_cnt++] = stoup_lease_grant(
		&pages[0]->cells[0], stoup_ticket(slot_idx, seq), stoup_word(block_idx, 0));
	stoup_request_done(slot, 0, 0);
}

static void take_and_serve(void)
{
	granted[0] = granted[1] = 0;
	served_cnt = 0;
	for (uint32_t turn = 0; turn < 2; turn++)
		for (uint64_t bits = stoup_request_take(pages[0]); bits; bits &= bits - 1)
			serve((uint32_t)__builtin_ctzll(bits));
}

static void check_grants(void)
{
	uint64_t cell = steps_peek(&pages[0]->cells[0]);

	if (!cancelled) {
		/* The first grant won: it is the lease, and nothing touched it afterwards. */
		ck_assert(granted[0] && !granted[1]);
		ck_assert_uint_eq(user_word, stoup_word(1, 0));
		ck_assert_uint_eq(cell, stoup_word(1, 0));
		seen_hits++;
		return;
	}
	/* Whatever was granted since is the second request's, or nothing was yet. */
	ck_assert(cell == stoup_word(2, 0) || cell == stoup_ticket(reused ? 1 : 2, reused ? 2 : 1));
	ck_assert_int_eq(granted[0] + granted[1], cell == stoup_word(2, 0));
	seen_misses += (uint64_t)!reused;
	seen_new += (uint64_t)reused;
	seen_kept += cell == stoup_word(2, 0);
}

START_TEST(a_grant_meets_only_the_request_that_it_answers)
{
	const struct steps_case c = {"ask, time out, ask : grant", 2,
		{ask_and_give_up, take_and_serve, NULL}, check_grants};

	seen_hits = seen_misses = seen_new = seen_kept = 0;
	steps_explore(&first, &c);
	ck_assert_uint_gt(seen_hits, 0);
	ck_assert_uint_gt(seen_misses, 0);
	ck_assert_uint_gt(seen_new, 0);
	ck_assert_uint_gt(seen_kept, 0);
}
END_TEST

static void fall_asleep(void)
{
	struct stoup_slot *slot = &pages[0]->slots[1];
	uint32_t expected = STOUP_SLOT_WAIT;

	slept = atomic_compare_exchange_strong_explicit(&slot->state, &expected, STOUP_SLOT_SLEEP,
		memory_order_acq_rel, memory_order_acquire);
	error = slept ? 0 : atomic_load_explicit(&slot->error, memory_order_relaxed);
}

static void end_request(void)
{
	wake = stoup_request_done(&pages[0]->slots[1], -5, 0);
}

static void check_sleep(void)
{
	ck_assert_int_eq(slept, wake);
	ck_assert_int_eq(error, slept ? 0 : -5);
	seen_kept += (uint64_t)slept;
	seen_evicted += (uint64_t)!slept;
}

START_TEST(who_falls_asleep_is_woken_and_who_does_not_has_the_result)
{
	const struct steps_case c = {
		"fall asleep : done", 2, {fall_asleep, end_request, NULL}, check_sleep};

	steps_set(&first, &pages[0]->slots[1].state, STOUP_SLOT_WAIT);
	explore_both(&c);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lease_orders");
	TCase *tcase = tcase_create("orders");
	SRunner *runner;
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, each_function_is_the_operations_that_the_memory_model_argues_with);
	tcase_add_test(tcase, a_hit_and_an_eviction_never_share_the_bytes);
	tcase_add_test(tcase, two_hits_and_an_eviction_never_share_the_bytes);
	tcase_add_test(tcase, a_second_pass_finds_what_the_first_one_put_back);
	tcase_add_test(tcase, a_block_that_comes_back_is_another_generation_with_whole_bytes);
	tcase_add_test(tcase, a_release_is_found_by_the_starving_look_or_rings);
	tcase_add_test(tcase, a_request_is_found_whole_by_the_last_look_or_rings);
	tcase_add_test(tcase, a_cell_that_named_the_buffer_in_passing_is_followed_by_a_ring);
	tcase_add_test(tcase, a_grant_meets_only_the_request_that_it_answers);
	tcase_add_test(tcase, who_falls_asleep_is_woken_and_who_does_not_has_the_result);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
