/* SPDX-License-Identifier: Apache-2.0 */
/* sim_book.c - levels, links and picks of the simulated book. */
#include "bench/sim_book.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PICK_TRIES 8u /* older neighbours looked at before any live order will do */

int stoup_sim_book_init(struct stoup_sim_book *book, uint32_t order_cap, uint32_t tick_cnt)
{
	memset(book, 0, sizeof(*book));
	book->order_cap = order_cap;
	book->tick_cnt = tick_cnt;
	book->recent_cap = order_cap;
	book->orders = calloc(order_cap, sizeof(*book->orders));
	book->levels = malloc(tick_cnt * sizeof(*book->levels));
	book->recent = calloc(order_cap, sizeof(*book->recent));
	book->live = malloc(order_cap * sizeof(*book->live));
	if (!book->orders || !book->levels || !book->recent || !book->live) {
		stoup_sim_book_fini(book);
		return -ENOMEM;
	}
	memset(book->levels, 0xff, tick_cnt * sizeof(*book->levels));
	for (uint32_t slot = 0; slot < order_cap; slot++)
		book->live[slot] = (uint16_t)slot;
	return 0;
}

void stoup_sim_book_fini(struct stoup_sim_book *book)
{
	free(book->orders);
	free(book->levels);
	free(book->recent);
	free(book->live);
	memset(book, 0, sizeof(*book));
}

/* Put a slot at the back of its level and let the best price follow. */
static void level_push(struct stoup_sim_book *book, uint32_t slot)
{
	struct stoup_sim_order *order = &book->orders[slot];
	struct stoup_sim_level *level = &book->levels[order->tick];

	order->next = STOUP_SIM_NONE;
	order->prev = level->tail;
	if (level->tail == STOUP_SIM_NONE)
		level->head = (uint16_t)slot;
	else
		book->orders[level->tail].next = (uint16_t)slot;
	level->tail = (uint16_t)slot;
	if (order->side == STOUP_SIM_BID) {
		if (!book->side_cnt[STOUP_SIM_BID] || order->tick > book->best_bid)
			book->best_bid = order->tick;
	} else if (!book->side_cnt[STOUP_SIM_ASK] || order->tick < book->best_ask) {
		book->best_ask = order->tick;
	}
	book->side_cnt[order->side]++;
}

/* Unlink a slot. When the best level empties, the next one of that side is searched: bids are all
 * below, asks all above, so the first level that is not empty is the one. */
static void level_pull(struct stoup_sim_book *book, uint32_t slot)
{
	struct stoup_sim_order *order = &book->orders[slot];
	struct stoup_sim_level *level = &book->levels[order->tick];

	if (order->prev == STOUP_SIM_NONE)
		level->head = order->next;
	else
		book->orders[order->prev].next = order->next;
	if (order->next == STOUP_SIM_NONE)
		level->tail = order->prev;
	else
		book->orders[order->next].prev = order->prev;
	book->side_cnt[order->side]--;
	if (!book->side_cnt[order->side])
		return;
	if (order->side == STOUP_SIM_BID)
		while (book->levels[book->best_bid].head == STOUP_SIM_NONE)
			book->best_bid--;
	else
		while (book->levels[book->best_ask].head == STOUP_SIM_NONE)
			book->best_ask++;
}

static void remember(struct stoup_sim_book *book, uint32_t slot)
{
	struct stoup_sim_recent *entry = &book->recent[book->recent_cnt++ & (book->recent_cap - 1)];

	entry->id = book->orders[slot].id;
	entry->slot = slot;
}

uint32_t stoup_sim_book_add(
	struct stoup_sim_book *book, uint64_t id, uint32_t side, uint32_t tick, uint32_t size)
{
	uint32_t slot = book->live[book->live_cnt];
	struct stoup_sim_order *order = &book->orders[slot];

	order->id = id;
	order->side = (uint16_t)side;
	order->tick = tick;
	order->size = size;
	order->live_idx = (uint16_t)book->live_cnt++;
	level_push(book, slot);
	remember(book, slot);
	return slot;
}

void stoup_sim_book_remove(struct stoup_sim_book *book, uint32_t slot)
{
	struct stoup_sim_order *order = &book->orders[slot];
	uint16_t last = book->live[--book->live_cnt];

	level_pull(book, slot);
	book->live[order->live_idx] = last;
	book->orders[last].live_idx = order->live_idx;
	book->live[book->live_cnt] = (uint16_t)slot;
	order->id = 0;
}

void stoup_sim_book_move(struct stoup_sim_book *book, uint32_t slot, uint32_t tick, uint32_t size)
{
	level_pull(book, slot);
	book->orders[slot].tick = tick;
	book->orders[slot].size = size;
	level_push(book, slot);
	remember(book, slot);
}

uint32_t stoup_sim_book_pick(
	const struct stoup_sim_book *book, uint32_t age, struct stoup_sim_rng *rng)
{
	for (uint32_t try = 0; try < PICK_TRIES && age + try < book->recent_cap; try++) {
		const struct stoup_sim_recent *entry =
			&book->recent[(book->recent_cnt - 1 - age - try) & (book->recent_cap - 1)];

		if (entry->id && book->orders[entry->slot].id == entry->id)
			return entry->slot;
	}
	return book->live[stoup_sim_below(rng, book->live_cnt)];
}
