/* SPDX-License-Identifier: Apache-2.0 */
/* lease_steps.h - runs the very functions of shm/lease.h one atomic operation at a time, in every order.
 *
 *      script of side 0   load . exchange . load . store        each dot is a place where
 *      script of side 1   store . fence . load                  any other side may go on
 *
 * The atomic operations are replaced before shm/lease.h is included, so that what is stepped is its own
 * text. Memory is a table of values here, and late: a store that is not seq_cst waits in its side's store
 * buffer until a separate step lets it out, oldest first; a relaxed store may also pass older ones to
 * other words. A seq_cst or releasing read-modify-write, a seq_cst store and a seq_cst fence empty the
 * buffer first. (Loads are not reordered.)
 *
 * A side has no stack of its own: each step runs its script again from the beginning, with the results of
 * the operations that are done, and leaves it by longjmp before the one after the next. Scripts therefore
 * depend on nothing but those results.
 *
 * steps_explore visits every reachable state once, calls `check` at each end, and counts the orders.
 *
 * Concurrency: none. Included by one test program, hence static.
 */
#ifndef STOUP_TEST_LEASE_STEPS_H
#define STOUP_TEST_LEASE_STEPS_H

#include <check.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "shm/page.h"

#define STEPS_WORD_CAP   24u
#define STEPS_LOG_CAP    28u
#define STEPS_BUFFER_CAP 6u
#define STEPS_SIDE_CAP   3u
#define STEPS_SEEN_CAP   (1u << 20) /* a power of two; one exploration fills half of it at most */

struct steps_store {
	uint64_t value;
	uint32_t word, order;
};

struct steps_side {
	uint64_t log[STEPS_LOG_CAP]; /* result of each operation that is done */
	struct steps_store buffer[STEPS_BUFFER_CAP];
	uint32_t done_cnt, buffer_cnt, ended, zero;
};

struct steps_state {
	uint64_t mem[STEPS_WORD_CAP];
	struct steps_side sides[STEPS_SIDE_CAP];
};

/* What an operation was, for traces. */
enum steps_op {
	STEPS_LOAD,
	STEPS_STORE,
	STEPS_EXCHANGE,
	STEPS_CAS,
	STEPS_OR,
	STEPS_FENCE
};

struct steps_trace {
	enum steps_op op;
	const volatile void *word; /* NULL of a fence */
	int order, failure;        /* failure: of a compare-and-swap, else relaxed */
};

static struct {
	struct steps_state *state;
	const volatile void *words[STEPS_WORD_CAP];
	uint32_t word_cnt, side, at, budget;
	jmp_buf leave;
	struct steps_trace trace[STEPS_LOG_CAP];
	uint32_t trace_cnt;
} steps;

/* ---- operations ------------------------------------------------------------------------------- */

static inline struct steps_side *steps_me(void)
{
	return &steps.state->sides[steps.side];
}

static inline uint32_t steps_word(const volatile void *p)
{
	for (uint32_t i = 0; i < steps.word_cnt; i++)
		if (steps.words[i] == p)
			return i;
	ck_assert_uint_lt(steps.word_cnt, STEPS_WORD_CAP);
	steps.words[steps.word_cnt] = p;
	return steps.word_cnt++;
}

/* 1: the operation is done already, *ret is its result. Otherwise it is the next one to do. */
static inline int steps_replayed(
	enum steps_op op, const volatile void *word, int order, uint64_t *ret)
{
	if (steps.at < steps_me()->done_cnt) {
		*ret = steps_me()->log[steps.at++];
		return 1;
	}
	if (steps.budget == 0)
		longjmp(steps.leave, 1);
	steps.budget--;
	steps.trace[steps.trace_cnt++] =
		(struct steps_trace){.op = op, .word = word, .order = order};
	return 0;
}

static inline uint64_t steps_did(uint64_t result)
{
	struct steps_side *side = steps_me();

	ck_assert_uint_lt(side->done_cnt, STEPS_LOG_CAP);
	side->log[side->done_cnt++] = result;
	steps.at++;
	return result;
}

/* The side's store number k becomes visible. */
static inline void steps_let_out(struct steps_state *state, uint32_t side_idx, uint32_t k)
{
	struct steps_side *side = &state->sides[side_idx];

	state->mem[side->buffer[k].word] = side->buffer[k].value;
	side->buffer_cnt--;
	memmove(&side->buffer[k], &side->buffer[k + 1],
		(side->buffer_cnt - k) * sizeof(side->buffer[0]));
	memset(&side->buffer[side->buffer_cnt], 0, sizeof(side->buffer[0]));
}

static inline void steps_flush(int order)
{
	while (order != memory_order_relaxed && order != memory_order_acquire &&
		steps_me()->buffer_cnt > 0)
		steps_let_out(steps.state, steps.side, 0);
}

static inline uint64_t steps_value(uint32_t word)
{
	const struct steps_side *side = steps_me();

	for (uint32_t k = side->buffer_cnt; k > 0; k--)
		if (side->buffer[k - 1].word == word)
			return side->buffer[k - 1].value;
	return steps.state->mem[word];
}

static inline uint64_t steps_load(const volatile void *p, int order)
{
	uint64_t result;

	if (steps_replayed(STEPS_LOAD, p, order, &result))
		return result;
	return steps_did(steps_value(steps_word(p)));
}

static inline void steps_store(const volatile void *p, uint64_t value, int order)
{
	struct steps_side *side = steps_me();
	uint64_t result;

	if (steps_replayed(STEPS_STORE, p, order, &result))
		return;
	if (order == memory_order_seq_cst) {
		steps_flush(order);
		steps.state->mem[steps_word(p)] = value;
	} else {
		ck_assert_uint_lt(side->buffer_cnt, STEPS_BUFFER_CAP);
		side->buffer[side->buffer_cnt++] = (struct steps_store){
			.value = value, .word = steps_word(p), .order = (uint32_t)order};
	}
	steps_did(0);
}

/* Exchange, or fetch_or. */
static inline uint64_t steps_modify(
	enum steps_op op, const volatile void *p, uint64_t value, int order)
{
	uint64_t result;
	uint32_t word;

	if (steps_replayed(op, p, order, &result))
		return result;
	steps_flush(order);
	word = steps_word(p);
	result = steps.state->mem[word];
	steps.state->mem[word] = op == STEPS_OR ? result | value : value;
	return steps_did(result);
}

/* The value met; it was exchanged when it is `expected`. */
static inline uint64_t steps_cas(
	const volatile void *p, uint64_t expected, uint64_t value, int order, int failure)
{
	uint64_t result;
	uint32_t word;

	if (steps_replayed(STEPS_CAS, p, order, &result))
		return result;
	steps_flush(order);
	word = steps_word(p);
	result = steps.state->mem[word];
	if (result == expected)
		steps.state->mem[word] = value;
	steps.trace[steps.trace_cnt - 1].failure = failure;
	return steps_did(result);
}

static inline int steps_cas64(
	_Atomic uint64_t *p, uint64_t *expected, uint64_t value, int order, int failure)
{
	uint64_t met = steps_cas(p, *expected, value, order, failure);
	int won = met == *expected;

	*expected = met;
	return won;
}

static inline int steps_cas32(
	_Atomic uint32_t *p, uint32_t *expected, uint32_t value, int order, int failure)
{
	uint32_t met = (uint32_t)steps_cas(p, *expected, value, order, failure);
	int won = met == *expected;

	*expected = met;
	return won;
}

static inline void steps_fence(int order)
{
	uint64_t result;

	if (steps_replayed(STEPS_FENCE, NULL, order, &result))
		return;
	if (order == memory_order_seq_cst)
		steps_flush(order);
	steps_did(0);
}

static inline uint64_t steps_load64(const _Atomic uint64_t *p, int order)
{
	return steps_load(p, order);
}

static inline uint32_t steps_load32(const _Atomic uint32_t *p, int order)
{
	return (uint32_t)steps_load(p, order);
}

static inline int32_t steps_load_i32(const _Atomic int32_t *p, int order)
{
	return (int32_t)(uint32_t)steps_load(p, order);
}

static inline uint64_t steps_exchange64(_Atomic uint64_t *p, uint64_t value, int order)
{
	return steps_modify(STEPS_EXCHANGE, p, value, order);
}

static inline uint32_t steps_exchange32(_Atomic uint32_t *p, uint32_t value, int order)
{
	return (uint32_t)steps_modify(STEPS_EXCHANGE, p, value, order);
}

/* clang-format off */
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_or_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_thread_fence
#define atomic_load_explicit(p, order) \
	_Generic((p), \
		const _Atomic uint64_t *: steps_load64, _Atomic uint64_t *: steps_load64, \
		const _Atomic uint32_t *: steps_load32, _Atomic uint32_t *: steps_load32, \
		const _Atomic int32_t *: steps_load_i32, _Atomic int32_t *: steps_load_i32)(p, order)
/* A negative value keeps its 32 bits: it comes back through steps_load_i32. */
#define atomic_store_explicit(p, value, order) \
	steps_store(p, sizeof(*(p)) == 8 ? (uint64_t)(value) : (uint32_t)(value), order)
#define atomic_exchange_explicit(p, value, order) \
	_Generic((p), _Atomic uint64_t *: steps_exchange64, _Atomic uint32_t *: steps_exchange32)( \
		p, value, order)
#define atomic_fetch_or_explicit(p, value, order) steps_modify(STEPS_OR, p, value, order)
#define atomic_compare_exchange_strong_explicit(p, expected, value, order, failure) \
	_Generic((p), _Atomic uint64_t *: steps_cas64, _Atomic uint32_t *: steps_cas32)( \
		p, expected, value, order, failure)
#define atomic_thread_fence(order) steps_fence(order)
/* clang-format on */

#include "shm/lease.h"

/* ---- exploration ------------------------------------------------------------------------------ */

struct steps_case {
	const char *name;
	uint32_t side_cnt;
	void (*scripts[STEPS_SIDE_CAP])(void);
	void (*check)(void); /* all scripts have ended, and ran again to leave their results */
};

struct steps_seen {
	uint64_t hash, order_cnt;
};

static struct steps_seen *steps_table;
static uint64_t steps_state_cnt, steps_end_cnt;

/* Value of a word in the state at hand. */
static inline uint64_t steps_peek(const volatile void *p)
{
	return steps.state->mem[steps_word(p)];
}

static inline void steps_set(struct steps_state *state, const volatile void *p, uint64_t value)
{
	state->mem[steps_word(p)] = value;
}

/* Do up to `budget` operations of a side's script, and what follows the last one. 1: it ended. */
static inline int steps_run(
	struct steps_state *state, uint32_t side, void (*script)(void), uint32_t budget)
{
	steps.state = state;
	steps.side = side;
	steps.at = 0;
	steps.budget = budget;
	steps.trace_cnt = 0;
	if (setjmp(steps.leave) != 0)
		return 0;
	script();
	return 1;
}

static inline uint64_t steps_hash(const struct steps_state *state)
{
	const unsigned char *bytes = (const unsigned char *)state;
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < sizeof(*state); i += 8) {
		uint64_t part;

		memcpy(&part, bytes + i, 8);
		hash = (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash ? hash : 1;
}

static inline int steps_may_leave(const struct steps_side *side, uint32_t k)
{
	if (k > 0 && side->buffer[k].order == memory_order_release)
		return 0;
	for (uint32_t older = 0; older < k; older++)
		if (side->buffer[older].word == side->buffer[k].word)
			return 0;
	return 1;
}

static inline void steps_end(struct steps_state *state, const struct steps_case *c)
{
	for (uint32_t i = 0; i < c->side_cnt; i++)
		ck_assert(steps_run(state, i, c->scripts[i], 0));
	steps_end_cnt++;
	c->check();
}

/* Number of orders in which the rest can happen. */
static inline uint64_t steps_visit(const struct steps_state *from, const struct steps_case *c)
{
	uint64_t hash = steps_hash(from), order_cnt = 0;
	uint32_t at = (uint32_t)hash & (STEPS_SEEN_CAP - 1);
	struct steps_state next;

	while (steps_table[at].hash && steps_table[at].hash != hash)
		at = (at + 1) & (STEPS_SEEN_CAP - 1);
	if (steps_table[at].hash)
		return steps_table[at].order_cnt;
	steps_table[at].hash = hash;
	ck_assert_uint_lt(++steps_state_cnt, STEPS_SEEN_CAP / 2);
	for (uint32_t i = 0; i < c->side_cnt; i++) {
		const struct steps_side *side = &from->sides[i];

		for (uint32_t k = 0; k < side->buffer_cnt; k++) {
			if (!steps_may_leave(side, k))
				continue;
			next = *from;
			steps_let_out(&next, i, k);
			order_cnt += steps_visit(&next, c);
		}
		if (side->ended)
			continue;
		next = *from;
		next.sides[i].ended = (uint32_t)steps_run(&next, i, c->scripts[i], 1);
		order_cnt += steps_visit(&next, c);
	}
	if (order_cnt == 0) {
		next = *from;
		steps_end(&next, c);
		order_cnt = 1;
	}
	steps_table[at].order_cnt = order_cnt;
	return order_cnt;
}

static inline void steps_begin(struct steps_state *state)
{
	memset(&steps, 0, sizeof(steps));
	memset(state, 0, sizeof(*state));
}

static inline void steps_explore(const struct steps_state *first, const struct steps_case *c)
{
	uint64_t order_cnt;

	steps_table = calloc(STEPS_SEEN_CAP, sizeof(*steps_table));
	ck_assert_ptr_nonnull(steps_table);
	steps_state_cnt = steps_end_cnt = 0;
	order_cnt = steps_visit(first, c);
	free(steps_table);
	printf("orders: %-27s %13" PRIu64 " interleavings, %4" PRIu64 " states, %2" PRIu64
	       " ends\n",
		c->name, order_cnt, steps_state_cnt, steps_end_cnt);
	ck_assert_uint_gt(order_cnt, 1);
}

#endif
