/* SPDX-License-Identifier: Apache-2.0 */
/* itch_orders.h - the orders that are open: reference -> price, shares left, side, stock.
 *
 *      slots   [ref 17][      ][ref 4][ref 9 ][      ] ...     open addressing, linear probing;
 *                               ^ hash(ref)                    a removal moves later ones up: no graves
 *
 * Invariant: every order stands between its hash's slot and the first free slot behind it; at most three
 * quarters of the slots are used.
 *
 * Concurrency: one thread's.
 *
 * Limits: `cap` open orders (STOUP_ITCH_ORDER_CAP if the caller has no reason of its own): 24 bytes a
 * slot, 384 MiB when full and half as much again while growing to that. A day of all US stocks has some
 * millions open at once.
 */
#ifndef STOUP_PRODUCER_ITCH_ORDERS_H
#define STOUP_PRODUCER_ITCH_ORDERS_H

#include <stddef.h>
#include <stdint.h>

#define STOUP_ITCH_ORDER_CAP (12u << 20)

struct stoup_itch_order {
	uint64_t ref;
	uint32_t price; /* 4 decimals */
	uint32_t left;  /* shares; never 0 in a used slot */
	char mpid[4];   /* NUL: without attribution */
	uint16_t locate;
	char side; /* 'B', 'S' */
	char zero;
};

struct stoup_itch_orders {
	struct stoup_itch_order *slots;
	size_t mask; /* slots - 1 */
	size_t cnt, cap;
	unsigned shift;
};

/* 0 or -ENOMEM. */
int stoup_itch_orders_init(struct stoup_itch_orders *orders, size_t cap);
void stoup_itch_orders_fini(struct stoup_itch_orders *orders);

static inline size_t stoup_itch_orders_slot(const struct stoup_itch_orders *orders, uint64_t ref)
{
	return (size_t)((ref * UINT64_C(0x9e3779b97f4a7c15)) >> orders->shift);
}

/* Ask for the memory that a look-up will need. */
static inline void stoup_itch_orders_prefetch(const struct stoup_itch_orders *orders, uint64_t ref)
{
	__builtin_prefetch(&orders->slots[stoup_itch_orders_slot(orders, ref)]);
}

/* The open order, or NULL. Valid until the next add or remove. */
struct stoup_itch_order *stoup_itch_orders_find(
	const struct stoup_itch_orders *orders, uint64_t ref);

/* Keep a new order with shares left. 0; -EEXIST where the reference is open, -E2BIG at the limit,
 * -ENOMEM. */
int stoup_itch_orders_add(struct stoup_itch_orders *orders, const struct stoup_itch_order *order);

/* Forget an order that find returned. */
void stoup_itch_orders_remove(struct stoup_itch_orders *orders, struct stoup_itch_order *order);

#endif
