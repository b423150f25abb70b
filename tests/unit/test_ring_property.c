/* SPDX-License-Identifier: Apache-2.0 */
/* test_ring_property.c - random sequences of everything that a conductor may do, against a model
 * that is too simple to be wrong: one owner per page, and the true leases, which the ring only
 * learns from scans. Each run prints its seed when it fails; STOUP_SEED=<seed> repeats it.
 *
 *      model   page owner  [0 0 . . 2 2 2 . 1 . . .]     lease[idx], pins[idx], state[idx]
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "producer/ring.h"

#define PAGE       ((uint64_t)STOUP_RING_PAGE_LEN)
#define PAGE_CAP   128u
#define BUFFER_CAP 128u
#define STEP_CNT   400000u
#define NOBODY     UINT32_MAX

static struct stoup_ring *ring;
static struct stoup_ring_plan plan;
static uint64_t seed, rng;
static uint32_t page_cnt, buffer_cap, longest;

static uint32_t owner[PAGE_CAP];
static struct model_buffer {
	enum stoup_ring_state state; /* FREE: none */
	uint32_t pages;
	uint32_t leases; /* the truth */
	uint32_t pins;
	int draining;
} buf[BUFFER_CAP];

/* As ck_assert_msg, which writes to a pipe each time that it is reached, but only when it fails. */
#define must(cond, ...)                                                                            \
	do {                                                                                       \
		if (!(cond))                                                                       \
			ck_abort_msg(__VA_ARGS__);                                                 \
	} while (0)

static uint32_t roll(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng >> 11) % n);
}

static uint64_t next_use(void *arg, uint32_t idx)
{
	(void)arg;
	must(buf[idx].state != STOUP_RING_FREE, "seed %lu: asks about no buffer", seed);
	return roll(2) ? STOUP_RING_USE_UNKNOWN : roll(3 * page_cnt) * PAGE;
}

static void begin(uint64_t run_seed, uint32_t pages, uint32_t buffers, uint32_t longest_pages)
{
	struct stoup_ring_config config = {pages * PAGE, longest_pages * PAGE, buffers,
		roll(2) ? UINT64_MAX : pages / 8 * PAGE, next_use, NULL};

	seed = run_seed;
	page_cnt = pages;
	buffer_cap = buffers;
	longest = longest_pages;
	memset(buf, 0, sizeof(buf));
	for (uint32_t i = 0; i < PAGE_CAP; i++)
		owner[i] = NOBODY;
	ck_assert_int_eq(stoup_ring_create(&config, &ring), 0);
}

static void end(void)
{
	stoup_ring_destroy(ring);
	ring = NULL;
}

/* ---- model ---- */

static void model_put(void)
{
	uint64_t off = plan.off / PAGE, cnt = plan.len / PAGE;

	must(buf[plan.idx].state == STOUP_RING_FREE, "seed %lu: index in use", seed);
	must(off + cnt <= page_cnt, "seed %lu: past the end", seed);
	for (uint64_t i = off; i < off + cnt; i++) {
		must(owner[i] == NOBODY, "seed %lu: page %lu given twice", seed, i);
		owner[i] = plan.idx;
	}
	memset(&buf[plan.idx], 0, sizeof(buf[plan.idx]));
	buf[plan.idx].state = STOUP_RING_LOADING;
	buf[plan.idx].pages = (uint32_t)cnt;
}

static void model_drop(uint32_t idx)
{
	must(!buf[idx].leases && !buf[idx].pins, "seed %lu: a held buffer goes", seed);
	for (uint32_t i = 0; i < page_cnt; i++)
		if (owner[i] == idx)
			owner[i] = NOBODY;
	buf[idx].state = STOUP_RING_FREE;
}

static uint32_t any(enum stoup_ring_state state)
{
	uint32_t start = roll(buffer_cap);

	for (uint32_t i = 0; i < buffer_cap; i++)
		if (buf[(start + i) % buffer_cap].state == state)
			return (start + i) % buffer_cap;
	return NOBODY;
}

/* The whole truth about leases; draining buffers that nobody holds any more go. */
static void scan(void)
{
	stoup_ring_scan_begin(ring);
	for (uint32_t i = 0; i < buffer_cap; i++)
		for (uint32_t k = 0; k < buf[i].leases; k++)
			stoup_ring_scan_lease(ring, i);
	for (uint32_t i = 0; i < buffer_cap; i++)
		if (buf[i].draining && buf[i].state == STOUP_RING_READY && !buf[i].leases &&
			!buf[i].pins) {
			stoup_ring_evicted(ring, i);
			model_drop(i);
		}
}

/* What the conductor's clear, fence and scan do to the candidates. */
static void settle(int draining)
{
	for (uint32_t i = 0; i < plan.evict_cnt; i++) {
		uint32_t idx = plan.evict[i];

		must(buf[idx].state == STOUP_RING_READY && !buf[idx].pins && !buf[idx].draining,
			"seed %lu: candidate %u is loading, pinned or draining", seed, idx);
		buf[idx].draining = draining;
		if (buf[idx].leases) {
			stoup_ring_kept(ring, idx, buf[idx].leases);
			continue;
		}
		stoup_ring_evicted(ring, idx);
		model_drop(idx);
	}
}

static void check_map(void)
{
	struct stoup_ring_extent extent;
	uint64_t pos = 0, at = 0;
	const char *rule = "";

	must(stoup_ring_verify(ring, &rule) == 0, "seed %lu: %s", seed, rule);
	while (stoup_ring_next(ring, &pos, &extent)) {
		must(extent.off == at, "seed %lu: wrong value", seed);
		for (; at < extent.off + extent.len; at += PAGE)
			must(owner[at / PAGE] == extent.idx, "seed %lu: page %lu", seed, at / PAGE);
	}
	must(at == page_cnt * PAGE, "seed %lu: wrong value", seed);
}

/* ---- steps ---- */

static int in_claim(uint64_t off)
{
	uint64_t claim_off, claim_len;

	return stoup_ring_claim_window(ring, &claim_off, &claim_len) && off >= claim_off &&
	       off < claim_off + claim_len;
}

static enum stoup_ring_outcome allocate(uint32_t pages, enum stoup_ring_class class)
{
	enum stoup_ring_outcome outcome = STOUP_RING_EVICT;

	stoup_ring_upper_set(ring, (int)roll(2));
	for (uint32_t round = 0; outcome == STOUP_RING_EVICT; round++) {
		must(round <= 2 * buffer_cap, "seed %lu: plans without end", seed);
		outcome = stoup_ring_alloc(ring, pages * PAGE, class, &plan);
		if (outcome != STOUP_RING_EVICT)
			break;
		must(plan.evict_cnt > 0, "seed %lu: an empty plan", seed);
		for (uint32_t i = 0; i < plan.evict_cnt; i++)
			must(stoup_ring_refs(ring, plan.evict[i]) == 0, "seed %lu: wrong value",
				seed);
		settle(0);
	}
	if (outcome == STOUP_RING_FIT) {
		must(!in_claim(plan.off), "seed %lu: room inside the claim", seed);
		must(plan.len == pages * PAGE, "seed %lu: wrong value", seed);
		model_put();
	}
	return outcome;
}

/* A demand, after a scan: the bound decides when it must be met. */
static void step_demand(void)
{
	uint32_t pages = 1 + roll(roll(3) ? longest : (longest + 3) / 4), held = 0, cnt = 0,
		 all = 0;
	int claim = stoup_ring_claim_active(ring);
	enum stoup_ring_outcome outcome;

	if (roll(2))
		scan();
	for (uint32_t i = 0; i < buffer_cap; i++) {
		int is_held = buf[i].state == STOUP_RING_LOADING || buf[i].leases || buf[i].pins ||
		              buf[i].draining || stoup_ring_refs(ring, i);

		all += buf[i].state != STOUP_RING_FREE;
		cnt += buf[i].state != STOUP_RING_FREE && is_held;
		held += buf[i].state != STOUP_RING_FREE && is_held ? buf[i].pages : 0;
	}
	outcome = allocate(pages, STOUP_RING_DEMAND);
	if (claim || (all == buffer_cap && cnt == buffer_cap))
		return;
	if (stoup_ring_fits_certain(page_cnt * PAGE, pages * PAGE, held * PAGE, cnt))
		must(outcome == STOUP_RING_FIT,
			"seed %lu: %u pages must fit beside %u pages in %u buffers", seed, pages,
			held, cnt);
}

static void step_readahead(void)
{
	uint64_t before = stoup_ring_unread_len(ring);
	uint32_t pages = 1 + roll(longest);
	enum stoup_ring_outcome outcome = allocate(pages, STOUP_RING_READAHEAD);

	if (outcome == STOUP_RING_FIT)
		must(stoup_ring_unread_len(ring) <= page_cnt * PAGE / 4, "seed %lu: unread", seed);
	if (page_cnt < 8 * longest || before + pages * PAGE > page_cnt * PAGE / 4)
		must(outcome == STOUP_RING_NONE, "seed %lu: read-ahead over its limit", seed);
}

static void step_lease(void)
{
	uint32_t idx = any(STOUP_RING_READY);

	if (idx == NOBODY || buf[idx].draining)
		return;
	buf[idx].leases++;
	if (roll(2)) /* granted; else a hit, of which the ring knows nothing yet */
		stoup_ring_granted(ring, idx, roll(256));
	else if (roll(2))
		stoup_ring_used(ring, idx, roll(256));
}

static void step_release(void)
{
	uint32_t idx = any(STOUP_RING_READY);

	if (idx != NOBODY && buf[idx].leases)
		buf[idx].leases -= 1 + roll(buf[idx].leases);
}

static void step_load(void)
{
	uint32_t idx = any(STOUP_RING_LOADING);

	if (idx == NOBODY)
		return;
	if (roll(16) || buf[idx].pins) {
		stoup_ring_loaded(ring, idx);
		buf[idx].state = STOUP_RING_READY;
	} else {
		stoup_ring_free(ring, idx);
		model_drop(idx);
	}
}

static void step_pin(void)
{
	uint32_t idx = any(roll(2) ? STOUP_RING_READY : STOUP_RING_LOADING);

	if (idx == NOBODY)
		return;
	if (buf[idx].pins) {
		stoup_ring_unpin(ring, idx);
		buf[idx].pins--;
	} else if (!buf[idx].draining && !roll(4)) {
		stoup_ring_pin(ring, idx);
		buf[idx].pins++;
	}
}

/* One buffer of the window still in somebody's hands? */
static int window_held(void)
{
	uint64_t off, len;

	if (!stoup_ring_claim_window(ring, &off, &len))
		return 0;
	for (uint64_t i = off / PAGE; i < (off + len) / PAGE; i++) {
		const struct model_buffer *b = owner[i] == NOBODY ? NULL : &buf[owner[i]];

		if (b && (b->state == STOUP_RING_LOADING || b->leases || b->pins))
			return 1;
	}
	return 0;
}

static void step_claim(void)
{
	int was_held;

	if (!stoup_ring_claim_active(ring)) {
		if (!roll(8))
			ck_assert_int_eq(stoup_ring_claim(ring, (1 + roll(longest)) * PAGE), 0);
		return;
	}
	if (!roll(200)) {
		stoup_ring_claim_cancel(ring);
		return;
	}
	while (stoup_ring_claim_plan(ring, &plan))
		settle(1);
	was_held = window_held();
	scan();
	must(stoup_ring_claim_ready(ring) == !was_held, "seed %lu: claim ready %d, held %d", seed,
		stoup_ring_claim_ready(ring), was_held);
	if (stoup_ring_claim_ready(ring)) {
		stoup_ring_claim_take(ring, STOUP_RING_DEMAND, &plan);
		model_put();
	}
}

static void step_rest(void)
{
	uint32_t idx = any(STOUP_RING_READY);

	switch (roll(4)) {
	case 0:
		if (stoup_ring_reserve(ring, &plan) == STOUP_RING_EVICT)
			settle(0);
		break;
	case 1:
		stoup_ring_consumer_gone(ring, roll(256));
		break;
	case 2:
		if (idx != NOBODY)
			stoup_ring_unwanted(ring, idx);
		break;
	default: /* a retired volume's block */
		if (idx != NOBODY && !buf[idx].leases && !buf[idx].pins && !roll(8)) {
			stoup_ring_free(ring, idx);
			model_drop(idx);
		}
		break;
	}
}

static void step(void)
{
	uint32_t what = roll(100);

	if (what < 22)
		step_demand();
	else if (what < 30)
		step_readahead();
	else if (what < 48)
		step_lease();
	else if (what < 66)
		step_release();
	else if (what < 84)
		step_load();
	else if (what < 88)
		step_pin();
	else if (what < 93)
		step_claim();
	else if (what < 96)
		scan();
	else
		step_rest();
}

static uint64_t start_seed(uint64_t given)
{
	const char *text = getenv("STOUP_SEED");
	uint64_t value = text ? strtoull(text, NULL, 0) : given;

	rng = value * UINT64_C(0x9e3779b97f4a7c15) + 1;
	return value;
}

static const struct {
	uint32_t pages, buffers, longest;
} shapes[] = {{64, 64, 8}, {128, 128, 16}, {16, 16, 4}, {128, 12, 16}, {32, 5, 32}, {9, 9, 9}};

START_TEST(random_steps_keep_every_promise)
{
	uint64_t s = start_seed((uint64_t)_i + 1);
	const struct stoup_ring_counters *c;

	begin(s, shapes[_i].pages, shapes[_i].buffers, shapes[_i].longest);
	for (uint32_t i = 0; i < STEP_CNT; i++) {
		step();
		if (i % 8 == 0)
			check_map();
	}
	/* The sequence went everywhere. */
	c = stoup_ring_counters(ring);
	ck_assert_uint_gt(c->evict_cnt, 1000);
	ck_assert_uint_gt(c->kept_cnt, 100);
	ck_assert_uint_gt(c->claim_taken_cnt, 100);
	if (shapes[_i].pages >= 8 * shapes[_i].longest)
		ck_assert_uint_gt(c->readahead_cnt, 1000);
	end();
}
END_TEST

/* ---- progress ---- */

/* The adversary: the region is full of one-page buffers, and each stretch of `longest` pages has a
 * lease on its last one. A lease lasts at most HOLD_MAX rounds, but whenever one ends, the next is
 * taken: on the same page if that still takes leases, else on any new buffer. */
#define HOLD_MAX   9u
#define HOLDER_CNT 8u

struct holder {
	uint32_t idx, until;
};

static void hold(struct holder *h, uint32_t idx, uint32_t round)
{
	h->idx = idx;
	h->until = round + 1 + roll(HOLD_MAX);
	buf[idx].leases++;
	stoup_ring_granted(ring, idx, roll(256));
}

static void hold_again(struct holder *h, uint32_t page, uint32_t round)
{
	uint32_t idx = owner[page];

	if (h->idx != NOBODY && round < h->until)
		return;
	if (h->idx != NOBODY)
		buf[h->idx].leases--;
	h->idx = NOBODY;
	if (idx == NOBODY || buf[idx].draining || buf[idx].state != STOUP_RING_READY) {
		if (allocate(1, STOUP_RING_DEMAND) != STOUP_RING_FIT)
			return;
		idx = plan.idx;
		stoup_ring_loaded(ring, idx);
		buf[idx].state = STOUP_RING_READY;
	}
	hold(h, idx, round);
}

static void fill_with_pages(void)
{
	struct stoup_ring_usage usage;

	for (stoup_ring_usage(ring, &usage); usage.free_len; stoup_ring_usage(ring, &usage)) {
		must(allocate(1, STOUP_RING_DEMAND) == STOUP_RING_FIT, "seed %lu: no page", seed);
		stoup_ring_loaded(ring, plan.idx);
		buf[plan.idx].state = STOUP_RING_READY;
	}
}

/* All holders' leases end and move to the last page of their stretch; then `longest` pages are
 * asked for, and have to come once every lease that the claim found has ended. */
static void large_request(struct holder *h, uint32_t *claims)
{
	enum stoup_ring_outcome outcome;

	fill_with_pages();
	for (uint32_t i = 0; i < HOLDER_CNT; i++)
		hold_again(&h[i], i * longest + longest - 1, UINT32_MAX - 2 * HOLD_MAX);
	for (uint32_t i = 0; i < HOLDER_CNT; i++)
		h[i].until = 1 + roll(HOLD_MAX);
	outcome = allocate(longest, STOUP_RING_DEMAND);
	for (uint32_t round = 0; outcome != STOUP_RING_FIT; round++) {
		must(round <= HOLD_MAX + 1, "seed %lu: the large request starves", seed);
		if (!stoup_ring_claim_active(ring)) {
			must(stoup_ring_claim(ring, longest * PAGE) == 0, "no claim");
			++*claims;
		}
		while (stoup_ring_claim_plan(ring, &plan))
			settle(1);
		for (uint32_t i = 0; i < HOLDER_CNT; i++)
			hold_again(&h[i], i * longest + longest - 1, round);
		scan();
		if (stoup_ring_claim_ready(ring)) {
			stoup_ring_claim_take(ring, STOUP_RING_DEMAND, &plan);
			model_put();
			outcome = STOUP_RING_FIT;
		}
	}
	stoup_ring_free(ring, plan.idx);
	model_drop(plan.idx);
	check_map();
}

START_TEST(spread_leases_never_starve_a_large_request)
{
	struct holder h[HOLDER_CNT];
	uint32_t claims = 0;

	begin(start_seed((uint64_t)_i + 100), 64, 64, 8);
	for (uint32_t i = 0; i < HOLDER_CNT; i++)
		h[i].idx = NOBODY;
	for (uint32_t times = 0; times < 500; times++)
		large_request(h, &claims);
	/* The adversary is good enough to make most of them claim. */
	ck_assert_uint_gt(claims, 250);
	end();
}
END_TEST

/* Three requesters, each holding at most one extent and releasing it before it asks, in a region of
 * four largest extents; lengths vary. The one that waits longest claims. */
START_TEST(a_pool_of_four_blocks_serves_three_requesters)
{
	struct holder h[3];
	uint32_t got[3] = {0}, waits[3] = {0}, wait_max = 0, claimant = NOBODY, need[3];

	begin(start_seed((uint64_t)_i + 200), 64, 64, 16);
	for (uint32_t i = 0; i < 3; i++) {
		h[i].idx = NOBODY;
		need[i] = 9 + roll(8);
	}
	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t i = round % 3;
		int fits = 0;

		ck_assert_int_eq(
			stoup_ring_alloc(ring, PAGE, STOUP_RING_READAHEAD, &plan), STOUP_RING_NONE);
		scan();
		if (h[i].idx != NOBODY) {
			if (round >= h[i].until) {
				buf[h[i].idx].leases--;
				h[i].idx = NOBODY;
				need[i] = 9 + roll(8);
			}
			continue;
		}
		if (claimant == i) {
			while (stoup_ring_claim_plan(ring, &plan))
				settle(1);
			scan();
			fits = stoup_ring_claim_ready(ring);
			if (fits) {
				stoup_ring_claim_take(ring, STOUP_RING_DEMAND, &plan);
				model_put();
				claimant = NOBODY;
			}
		} else {
			fits = allocate(need[i], STOUP_RING_DEMAND) == STOUP_RING_FIT;
			if (!fits && claimant == NOBODY) {
				ck_assert_int_eq(stoup_ring_claim(ring, need[i] * PAGE), 0);
				claimant = i;
			}
		}
		waits[i] = fits ? 0 : waits[i] + 1;
		wait_max = waits[i] > wait_max ? waits[i] : wait_max;
		if (!fits)
			continue;
		got[i]++;
		h[i].idx = plan.idx;
		h[i].until = round + roll(12);
		stoup_ring_loaded(ring, plan.idx);
		buf[plan.idx].state = STOUP_RING_READY;
		buf[plan.idx].leases = 1;
		check_map();
	}
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_uint_gt(got[i], 1000);
	ck_assert_uint_le(wait_max, 20);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_property");
	TCase *tcase = tcase_create("random");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, random_steps_keep_every_promise, 0,
		(int)(sizeof(shapes) / sizeof(shapes[0])));
	tcase_add_loop_test(tcase, spread_leases_never_starve_a_large_request, 0, 4);
	tcase_add_loop_test(tcase, a_pool_of_four_blocks_serves_three_requesters, 0, 4);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
