/* SPDX-License-Identifier: Apache-2.0 */
/* stress_consumer.h - the consumer's side of test_lease_stress.c, and what both sides know of each other. */
#ifndef STOUP_TESTS_STRESS_CONSUMER_H
#define STOUP_TESTS_STRESS_CONSUMER_H

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "shm/futex.h"
#include "shm/lease.h"

#define CONSUMER_CNT 3u
#define BUFFER_CAP   4u
#define BLOCK_CNT    6u
#define CELL_CNT     4u
#define SLOT_CNT     3u
#define WORD_CNT     64u
#define WAITER_CAP   64u
#define GRANT_GOAL   20000u
#define KILL_GOAL    60u
#define RUN_NS       UINT64_C(1500000000)
#define QUIET_MS     2000  /* then the conductor looks whether a wake-up was lost */
#define LATE_MS      60000 /* a ring that is only late comes within that time */
#define FOREVER_NS   INT64_C(30000000000)
#define NOISE        UINT64_C(0xeeeeeeeeeeeeeeee)

/* ThreadSanitizer sees one process only. */
#ifdef __SANITIZE_THREAD__
#define PROCESSES 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PROCESSES 0
#endif
#endif
#ifndef PROCESSES
#define PROCESSES 1
#endif

/* What consumers count: it outlives them. */
struct tally {
	_Atomic uint64_t hits, misses, got, failed, cancelled, late, reads;
	_Atomic uint64_t foreign; /* words of another block or generation */
	_Atomic uint64_t empty;   /* DONE without error and without a lease */
	_Atomic uint64_t lost;    /* slept although the request was done */
};

/* Shared by all. */
struct arena {
	_Alignas(STOUP_APART_LEN) _Atomic uint32_t asleep;
	_Alignas(STOUP_APART_LEN) _Atomic uint32_t starving;
	_Alignas(STOUP_APART_LEN) _Atomic uint32_t stop;
	_Alignas(STOUP_APART_LEN) _Atomic uint64_t residency[BLOCK_CNT];
	_Alignas(STOUP_APART_LEN) struct tally tally;
	_Alignas(STOUP_APART_LEN) uint64_t bytes[BUFFER_CAP][WORD_CNT];
};

struct consumer {
	struct arena *arena;
	struct stoup_page *page;
	uint64_t random, seq[SLOT_CNT], kept;
	uint32_t slot_left, cell_at, kept_cell, kept_block;
	uint32_t leave_in; /* leases until it ends without a word; 0 = never */
	int bell_fd, keeps;
};

/* One attachment, as the conductor knows it. */
struct peer {
	struct stoup_page *page; /* NULL: none */
	uint64_t attach_no;
	struct consumer consumer; /* of a thread */
	pthread_t thread;
	_Atomic uint32_t ended; /* by a thread, last */
	pid_t pid;
	int bell_fd, pid_fd, killed;
};

struct waiter {
	uint64_t attach_no, ticket;
	uint32_t peer_idx, slot_idx, cell_idx, block_idx;
};

struct buffer {
	uint64_t gen;
	uint32_t block_idx;
	int resident;
};

struct conductor {
	struct arena *arena;
	struct peer peers[CONSUMER_CNT];
	struct buffer buffers[BUFFER_CAP];
	struct waiter waiters[WAITER_CAP];
	uint32_t waiter_cnt, buffer_cnt, refs[BUFFER_CAP];
	int epoll_fd, processes, keeps, deadly;
	uint64_t random, attach_seq, until_ns;
	uint64_t grants, grants_lost, failures, evictions, kept, kills, starved, sleeps, lost;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t byte_word(uint32_t block_idx, uint64_t gen, uint32_t i)
{
	return (gen * BLOCK_CNT + block_idx + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void *shared(size_t len)
{
	void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert(base != MAP_FAILED);
	return base;
}

/* ---- consumer --------------------------------------------------------------------------------- */

static void ring(const struct consumer *c)
{
	const uint64_t one = 1;

	if (write(c->bell_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		abort();
}

static void release(struct consumer *c, uint32_t cell_idx, uint64_t w)
{
	if (stoup_lease_release(&c->page->cells[cell_idx], w, &c->arena->starving))
		ring(c);
}

/* A slot that is free, or was left and has been answered since. */
static uint32_t slot_take(struct consumer *c)
{
	for (uint32_t s = 0;; s = (s + 1) % SLOT_CNT) {
		uint32_t state =
			atomic_load_explicit(&c->page->slots[s].state, memory_order_acquire);

		if (!(c->slot_left >> s & 1) || state == STOUP_SLOT_DONE) {
			c->slot_left &= ~(1u << s);
			return s;
		}
		if (s == SLOT_CNT - 1)
			sched_yield();
	}
}

static int is_done(const struct stoup_slot *slot)
{
	return atomic_load_explicit(&slot->state, memory_order_acquire) == STOUP_SLOT_DONE;
}

/* 1 done, 0 the consumer gives up. */
static int wait_done(struct consumer *c, struct stoup_slot *slot)
{
	uint64_t random = next_random(&c->random);
	uint32_t expected = STOUP_SLOT_WAIT;

	if (random % 4 == 0) {
		for (uint32_t i = (uint32_t)(random >> 8) % 512; i > 0 && !is_done(slot); i--)
			;
		return is_done(slot);
	}
	for (uint32_t i = (uint32_t)(random >> 8) % 256; i > 0; i--)
		if (is_done(slot))
			return 1;
	atomic_compare_exchange_strong_explicit(&slot->state, &expected, STOUP_SLOT_SLEEP,
		memory_order_acq_rel, memory_order_acquire);
	while (!is_done(slot))
		if (stoup_futex_wait(&slot->state, STOUP_SLOT_SLEEP, FOREVER_NS) == -ETIMEDOUT &&
			is_done(slot))
			count(&c->arena->tally.lost);
	return 1;
}

/* Ask for a block: the word leased, or 0. */
static uint64_t request(struct consumer *c, uint32_t block_idx, uint32_t cell_idx)
{
	uint32_t slot_idx = slot_take(c);
	struct stoup_slot *slot = &c->page->slots[slot_idx];
	struct tally *tally = &c->arena->tally;
	_Atomic uint64_t *cell = &c->page->cells[cell_idx];
	uint64_t seq = ++c->seq[slot_idx], ticket = stoup_ticket(slot_idx, seq), w;

	atomic_store_explicit(&slot->block_idx, block_idx, memory_order_relaxed);
	atomic_store_explicit(&slot->cell_idx, cell_idx, memory_order_relaxed);
	atomic_store_explicit(&slot->seq, seq, memory_order_relaxed);
	atomic_store_explicit(&slot->state, STOUP_SLOT_WAIT, memory_order_relaxed);
	stoup_lease_ticket(cell, ticket);
	if (stoup_request_post(c->page, slot_idx, &c->arena->asleep))
		ring(c);
	if (wait_done(c, slot)) {
		w = atomic_load_explicit(cell, memory_order_acquire);
		if (stoup_cell_leased(w)) {
			count(&tally->got);
			return w;
		}
		if (!stoup_lease_cancel(cell, ticket) ||
			atomic_load_explicit(&slot->error, memory_order_relaxed) == 0)
			count(&tally->empty);
		count(&tally->failed);
		return 0;
	}
	c->slot_left |= 1u << slot_idx;
	if (stoup_lease_cancel(cell, ticket)) {
		count(&tally->cancelled);
		return 0;
	}
	count(&tally->late);
	return atomic_load_explicit(cell, memory_order_acquire);
}

static uint64_t lease(struct consumer *c, uint32_t block_idx, uint32_t cell_idx)
{
	uint64_t w;

	stoup_lease_cell_reach(c->page, cell_idx);
	w = stoup_lease_acquire(&c->arena->residency[block_idx], &c->page->cells[cell_idx]);
	count(w ? &c->arena->tally.hits : &c->arena->tally.misses);
	return w ? w : request(c, block_idx, cell_idx);
}

/* Every word twice: none may change while the lease lasts. */
static void look(struct consumer *c, uint32_t block_idx, uint64_t w)
{
	const volatile uint64_t *words;
	uint32_t idx = stoup_word_idx(w);

	if (idx >= BUFFER_CAP) {
		count(&c->arena->tally.foreign);
		return;
	}
	words = c->arena->bytes[idx];
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < WORD_CNT; i++)
			if (words[i] != byte_word(block_idx, stoup_word_gen(w), i))
				count(&c->arena->tally.foreign);
		if (turn == 0 && next_random(&c->random) % 8 == 0)
			sched_yield();
	}
	count(&c->arena->tally.reads);
}

static void kept_release(struct consumer *c)
{
	if (c->kept == 0)
		return;
	look(c, c->kept_block, c->kept);
	release(c, c->kept_cell, c->kept);
	c->kept = 0;
}

static void consumer_run(struct consumer *c)
{
	while (!atomic_load_explicit(&c->arena->stop, memory_order_relaxed)) {
		uint64_t random = next_random(&c->random), w;
		uint32_t block_idx = (uint32_t)(random >> 16) % BLOCK_CNT, cell_idx;

		if (random % 2)
			kept_release(c);
		do
			cell_idx = c->cell_at++ % CELL_CNT;
		while (c->kept && cell_idx == c->kept_cell);
		w = lease(c, block_idx, cell_idx);
		if (w == 0)
			continue;
		look(c, block_idx, w);
		if (c->leave_in && --c->leave_in == 0)
			return; /* with its leases in their cells */
		if (c->keeps && !c->kept && random >> 40 & 1) {
			c->kept = w;
			c->kept_cell = cell_idx;
			c->kept_block = block_idx;
		} else {
			release(c, cell_idx, w);
		}
	}
	kept_release(c);
}

static void *consumer_thread(void *arg)
{
	struct peer *p = arg;

	consumer_run(&p->consumer);
	atomic_store_explicit(&p->ended, 1, memory_order_release);
	ring(&p->consumer);
	return NULL;
}

#endif
