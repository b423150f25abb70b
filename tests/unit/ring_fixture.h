/* SPDX-License-Identifier: Apache-2.0 */
/* ring_fixture.h - one ring of a few pages and the steps that the tests of its rules share: put,
 * read, expect a plan, settle it. The ring is verified after each step. For test_ring*.c alone. */
#ifndef RING_FIXTURE_H
#define RING_FIXTURE_H

#include <check.h>

#include "producer/ring.h"

#define PAGE ((uint64_t)STOUP_RING_PAGE_LEN)

static struct stoup_ring *ring;
static struct stoup_ring_plan plan;
static uint64_t next_use_of[64];

static inline uint64_t next_use(void *arg, uint32_t idx)
{
	ck_assert_ptr_eq(arg, next_use_of);
	return next_use_of[idx];
}

static inline void make(
	uint64_t pages, uint64_t largest_pages, uint32_t buffer_cap, uint64_t reserve_pages)
{
	struct stoup_ring_config config = {pages * PAGE, largest_pages * PAGE, buffer_cap,
		reserve_pages * PAGE, next_use, next_use_of};

	for (int i = 0; i < 64; i++)
		next_use_of[i] = STOUP_RING_USE_UNKNOWN;
	ck_assert_int_eq(stoup_ring_create(&config, &ring), 0);
}

static inline void sound(void)
{
	const char *rule = "";

	ck_assert_msg(stoup_ring_verify(ring, &rule) == 0, "%s", rule);
}

static inline void teardown(void)
{
	if (ring)
		sound();
	stoup_ring_destroy(ring);
	ring = NULL;
}

/* Room that has to be there. */
static inline uint32_t put(uint64_t pages, enum stoup_ring_class class)
{
	ck_assert_int_eq(stoup_ring_alloc(ring, pages * PAGE, class, &plan), STOUP_RING_FIT);
	sound();
	return plan.idx;
}

/* A demanded buffer of `pages`, loaded, read once by consumer 0 and released. */
static inline uint32_t put_read(uint64_t pages)
{
	uint32_t idx = put(pages, STOUP_RING_DEMAND);

	stoup_ring_loaded(ring, idx);
	stoup_ring_granted(ring, idx, 0);
	stoup_ring_leased(ring, idx, 0);
	return idx;
}

static inline void fill_read(uint32_t *idx, uint32_t cnt, uint64_t pages)
{
	for (uint32_t i = 0; i < cnt; i++)
		idx[i] = put_read(pages);
}

static inline void expect_evict(
	uint64_t pages, enum stoup_ring_class class, uint32_t cnt, const uint32_t *victims)
{
	ck_assert_int_eq(stoup_ring_alloc(ring, pages * PAGE, class, &plan), STOUP_RING_EVICT);
	ck_assert_uint_eq(plan.evict_cnt, cnt);
	for (uint32_t i = 0; i < cnt; i++)
		ck_assert_uint_eq(plan.evict[i], victims[i]);
	sound();
}

static inline void expect_evict_one(uint64_t pages, enum stoup_ring_class class, uint32_t victim)
{
	expect_evict(pages, class, 1, &victim);
}

static inline void evict_all(void)
{
	for (uint32_t i = 0; i < plan.evict_cnt; i++)
		stoup_ring_evicted(ring, plan.evict[i]);
	sound();
}

static inline void keep_all(void)
{
	for (uint32_t i = 0; i < plan.evict_cnt; i++)
		stoup_ring_kept(ring, plan.evict[i], 1);
	sound();
}

static inline uint64_t off_of(uint32_t idx)
{
	struct stoup_ring_extent extent;

	ck_assert_int_eq(stoup_ring_buffer(ring, idx, &extent), 0);
	return extent.off / PAGE;
}

static inline enum stoup_ring_state state_of(uint32_t idx)
{
	struct stoup_ring_extent extent;

	ck_assert_int_eq(stoup_ring_buffer(ring, idx, &extent), 0);
	return extent.state;
}

static inline struct stoup_ring_usage usage(void)
{
	struct stoup_ring_usage u;

	stoup_ring_usage(ring, &u);
	return u;
}

#endif
