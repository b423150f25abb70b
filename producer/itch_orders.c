/* SPDX-License-Identifier: Apache-2.0 */
/* itch_orders.c - see itch_orders.h. */
#include "producer/itch_orders.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS_LOG_MIN 12u /* 96 KiB: a few stocks */

_Static_assert(sizeof(struct stoup_itch_order) == 24, "an order is 24 bytes");

int stoup_itch_orders_init(struct stoup_itch_orders *orders, size_t cap)
{
	*orders = (struct stoup_itch_orders){
		.mask = ((size_t)1 << SLOTS_LOG_MIN) - 1, .shift = 64 - SLOTS_LOG_MIN, .cap = cap};
	orders->slots = calloc(orders->mask + 1, sizeof(*orders->slots));
	return orders->slots ? 0 : -ENOMEM;
}

void stoup_itch_orders_fini(struct stoup_itch_orders *orders)
{
	free(orders->slots);
	orders->slots = NULL;
}

/* Where the reference stands, or the free slot in which it would. */
static struct stoup_itch_order *probe(const struct stoup_itch_orders *orders, uint64_t ref)
{
	size_t i = stoup_itch_orders_slot(orders, ref);

	while (orders->slots[i].left > 0 && orders->slots[i].ref != ref)
		i = (i + 1) & orders->mask;
	return &orders->slots[i];
}

struct stoup_itch_order *stoup_itch_orders_find(
	const struct stoup_itch_orders *orders, uint64_t ref)
{
	struct stoup_itch_order *order = probe(orders, ref);

	return order->left > 0 ? order : NULL;
}

static int grow(struct stoup_itch_orders *orders)
{
	struct stoup_itch_order *old = orders->slots;
	size_t old_cnt = orders->mask + 1;
	struct stoup_itch_order *slots = calloc(old_cnt * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	orders->slots = slots;
	orders->mask = old_cnt * 2 - 1;
	orders->shift--;
	for (size_t i = 0; i < old_cnt; i++)
		if (old[i].left > 0)
			*probe(orders, old[i].ref) = old[i];
	free(old);
	return 0;
}

int stoup_itch_orders_add(struct stoup_itch_orders *orders, const struct stoup_itch_order *order)
{
	struct stoup_itch_order *slot = probe(orders, order->ref);

	if (slot->left > 0)
		return -EEXIST;
	if (orders->cnt >= orders->cap)
		return -E2BIG;
	if (orders->cnt >= (orders->mask + 1) / 4 * 3) {
		int rc = grow(orders);

		if (rc < 0)
			return rc;
		slot = probe(orders, order->ref);
	}
	*slot = *order;
	orders->cnt++;
	return 0;
}

void stoup_itch_orders_remove(struct stoup_itch_orders *orders, struct stoup_itch_order *order)
{
	size_t hole = (size_t)(order - orders->slots), i = hole;

	for (;;) {
		size_t home;

		i = (i + 1) & orders->mask;
		if (orders->slots[i].left == 0)
			break;
		home = stoup_itch_orders_slot(orders, orders->slots[i].ref);
		/* It may move into the hole unless its home lies behind the hole. */
		if (((i - home) & orders->mask) < ((i - hole) & orders->mask))
			continue;
		orders->slots[hole] = orders->slots[i];
		hole = i;
	}
	orders->slots[hole].left = 0;
	orders->cnt--;
}
