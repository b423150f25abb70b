/* SPDX-License-Identifier: Apache-2.0 */
/* sim_flow.c - the events of one simulated symbol, from measured chances. */
#include "bench/sim_flow.h"
#include <string.h>

#define PUBLISHER_ID 1u

/* Chance in permille that a gap is inside a burst, after one that was and after one that was not:
 * what makes events cluster. Measured: 0.726 and 0.36. */
#define NEAR_AFTER_NEAR 726u
#define NEAR_AFTER_IDLE 360u

/* Chance in permille that an event does the same kind of thing as the one before, that a new price
 * is the one placed last on that side, that a deep one is a round number of ticks away, and that an
 * event right behind another (below SHARE_GAP_NS) travels in the same packet: traders and the
 * exchange's gateway act in runs. */
#define SAME_KIND      500u
#define SAME_TICK      330u
#define ROUND_DEPTH    500u
#define SHARE_PACKET   600u
#define SHARE_GAP_NS   8000u
#define LATENCY_MIN_NS 79000u
#define DEEP_TICKS     9u

/* A dice of 0 to 999 says what an event does: below the first number it adds, below the second it
 * cancels, below the third it modifies, else it trades. Trades do not repeat (SAME_KIND), so their
 * share is twice the measured 6 %. */
#define DICE_ADD_MORE 450u /* while the book is below its target */
#define DICE_ADD_LESS 350u
#define DICE_CANCEL   650u
#define DICE_MODIFY   885u

#define HOUR_NS 3600000000000u

/* Idle gaps by hour of the day (UTC), in 1/16: busy at the open and the close of a US session. */
static const uint8_t hour_gap[24] = {
	20, 20, 20, 20, 20, 20, 18, 16, 14, 14, 14, 14, 12, 9, 7, 9, 11, 12, 12, 9, 8, 16, 24, 20};

/* ---- records -------------------------------------------------------------------------------- */

static struct stoup_sim_mbo *emit(
	struct stoup_sim_symbol *symbol, char action, uint32_t side, uint32_t tick)
{
	struct stoup_sim_mbo *mbo = &symbol->pending[symbol->pending_cnt++];

	mbo->length = sizeof(*mbo) / 4;
	mbo->rtype = STOUP_SIM_RTYPE_MBO;
	mbo->publisher_id = PUBLISHER_ID;
	mbo->instrument_id = symbol->instrument_id;
	mbo->ts_event = symbol->now_ns;
	mbo->price = symbol->base_price + (int64_t)tick * symbol->tick_price;
	mbo->flags = 0;
	mbo->channel_id = 0;
	mbo->action = action;
	mbo->side = side == STOUP_SIM_BID ? 'B' : 'A';
	mbo->ts_recv = symbol->recv_ns;
	mbo->ts_in_delta = symbol->in_delta;
	mbo->sequence = symbol->sequence;
	return mbo;
}

static void emit_order(struct stoup_sim_symbol *symbol, char action, uint32_t slot, uint32_t size)
{
	const struct stoup_sim_order *order = &symbol->book.orders[slot];
	struct stoup_sim_mbo *mbo = emit(symbol, action, order->side, order->tick);

	mbo->order_id = order->id;
	mbo->size = size;
}

/* Begin a packet: its receive time is `earliest`, or later while the one before is being served. */
static void packet_begin(
	struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws, uint64_t earliest)
{
	uint64_t served = symbol->recv_ns + stoup_sim_sample(&laws->service_ns, &symbol->rng);

	symbol->recv_ns = earliest > served ? earliest : served;
	symbol->in_delta = (int32_t)stoup_sim_sample(&laws->delta_ns, &symbol->rng);
	symbol->sequence += stoup_sim_sample(&laws->seq_step, &symbol->rng);
}

/* ---- choices -------------------------------------------------------------------------------- */

/* A tick for a new order of a side: the last one again, or at or behind the best price, at times
 * inside the spread. */
static uint32_t place(
	struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws, uint32_t side)
{
	const struct stoup_sim_book *book = &symbol->book;
	uint32_t depth = stoup_sim_sample(&laws->depth_tick, &symbol->rng);
	uint32_t spread = book->best_ask - book->best_bid;
	uint32_t again = symbol->last_tick[side];

	if (stoup_sim_chance(&symbol->rng, SAME_TICK) &&
		(side == STOUP_SIM_BID ? again < book->best_ask : again > book->best_bid))
		return again;
	if (depth > DEEP_TICKS && stoup_sim_chance(&symbol->rng, ROUND_DEPTH))
		depth -= depth % 10;
	if (spread > 1 && stoup_sim_chance(&symbol->rng, spread > 3 ? 600 : 250))
		return side == STOUP_SIM_BID ? book->best_bid + 1 : book->best_ask - 1;
	if (side == STOUP_SIM_BID)
		return book->best_bid > depth ? book->best_bid - depth : 0;
	return book->best_ask + depth < book->tick_cnt ? book->best_ask + depth
	                                               : book->tick_cnt - 1;
}

/* The fair price walks a tick now and then, with a pull to the middle of the window that keeps it,
 * and the book around it, inside. */
static void fair_step(struct stoup_sim_symbol *symbol)
{
	uint32_t mid = symbol->book.tick_cnt / 2;
	uint32_t reach = symbol->book.tick_cnt / 4;
	uint32_t up = 500 + 500 * mid / reach - 500 * symbol->fair_tick / reach;

	if (stoup_sim_below(&symbol->rng, 100) >= 2)
		return;
	symbol->fair_tick += stoup_sim_chance(&symbol->rng, up) ? 1u : UINT32_MAX;
}

/* The side of an order that takes: towards the fair price more often than not. */
static uint32_t take_side(struct stoup_sim_symbol *symbol)
{
	uint32_t buy = 500;

	if (symbol->book.best_ask <= symbol->fair_tick)
		buy = 750;
	else if (symbol->book.best_bid >= symbol->fair_tick)
		buy = 250;
	return stoup_sim_chance(&symbol->rng, buy) ? STOUP_SIM_BID : STOUP_SIM_ASK;
}

/* ---- events --------------------------------------------------------------------------------- */

static void event_add(struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws)
{
	struct stoup_sim_book *book = &symbol->book;
	uint32_t fewer = book->side_cnt[STOUP_SIM_BID] > book->side_cnt[STOUP_SIM_ASK];
	uint32_t side = stoup_sim_chance(&symbol->rng, 550) ? fewer : !fewer;
	uint32_t size = stoup_sim_sample(&laws->size_cnt, &symbol->rng);
	uint32_t slot;

	symbol->last_tick[side] = place(symbol, laws, side);
	symbol->last_id += stoup_sim_sample(&laws->id_step, &symbol->rng);
	slot = stoup_sim_book_add(book, symbol->last_id, side, symbol->last_tick[side], size);
	emit_order(symbol, 'A', slot, size);
}

static void event_cancel(struct stoup_sim_symbol *symbol, uint32_t slot)
{
	emit_order(symbol, 'C', slot, symbol->book.orders[slot].size);
	stoup_sim_book_remove(&symbol->book, slot);
}

static void event_modify(
	struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws, uint32_t slot)
{
	const struct stoup_sim_order *order = &symbol->book.orders[slot];
	uint32_t size = order->size;

	if (stoup_sim_chance(&symbol->rng, 150))
		size = stoup_sim_sample(&laws->size_cnt, &symbol->rng);
	symbol->last_tick[order->side] = place(symbol, laws, order->side);
	stoup_sim_book_move(&symbol->book, slot, symbol->last_tick[order->side], size);
	emit_order(symbol, 'M', slot, size);
}

/* A trade takes from the front of the best level, in time order, and stays inside that level. */
static void event_trade(struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws)
{
	struct stoup_sim_book *book = &symbol->book;
	uint32_t taker = take_side(symbol);
	uint32_t tick = taker == STOUP_SIM_BID ? book->best_ask : book->best_bid;
	uint32_t left = stoup_sim_sample(&laws->take_cnt, &symbol->rng);
	uint32_t slots[STOUP_SIM_FILL_CAP], sizes[STOUP_SIM_FILL_CAP], fill_cnt = 0, taken = 0;
	struct stoup_sim_mbo *trade = emit(symbol, 'T', taker, tick);

	for (uint32_t slot = book->levels[tick].head;
		slot != STOUP_SIM_NONE && left && fill_cnt < STOUP_SIM_FILL_CAP;
		slot = book->orders[slot].next) {
		uint32_t size = book->orders[slot].size < left ? book->orders[slot].size : left;

		slots[fill_cnt] = slot;
		sizes[fill_cnt++] = size;
		left -= size;
		taken += size;
		emit_order(symbol, 'F', slot, size);
	}
	symbol->last_id += stoup_sim_sample(&laws->id_step, &symbol->rng);
	trade->order_id = symbol->last_id;
	trade->size = taken;
	packet_begin(symbol, laws, 0);
	for (uint32_t i = 0; i < fill_cnt; i++) {
		struct stoup_sim_order *order = &book->orders[slots[i]];

		order->size -= sizes[i];
		if (order->size) {
			emit_order(symbol, 'M', slots[i], order->size);
			continue;
		}
		emit_order(symbol, 'C', slots[i], sizes[i]);
		stoup_sim_book_remove(book, slots[i]);
	}
}

/* Which side may lose an order: a level that a trade empties must leave SIDE_MIN behind it. */
static int side_is_deep(const struct stoup_sim_book *book, uint32_t side, uint32_t loss)
{
	return book->side_cnt[side] >= STOUP_SIM_SIDE_MIN + loss;
}

static void event_kind(struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws)
{
	struct stoup_sim_book *book = &symbol->book;
	uint32_t dice = stoup_sim_below(&symbol->rng, 1000);
	uint32_t add = book->live_cnt < symbol->target_cnt ? DICE_ADD_MORE : DICE_ADD_LESS;
	uint32_t slot;

	if (symbol->last_dice < DICE_MODIFY && stoup_sim_chance(&symbol->rng, SAME_KIND))
		dice = symbol->last_dice;
	symbol->last_dice = dice;
	if (book->live_cnt == book->order_cap)
		add = 0;
	if (dice < add || !side_is_deep(book, STOUP_SIM_BID, STOUP_SIM_FILL_CAP) ||
		!side_is_deep(book, STOUP_SIM_ASK, STOUP_SIM_FILL_CAP)) {
		event_add(symbol, laws);
		return;
	}
	if (dice >= DICE_MODIFY) {
		event_trade(symbol, laws);
		return;
	}
	slot = stoup_sim_book_pick(
		book, stoup_sim_sample(&laws->age_cnt, &symbol->rng), &symbol->rng);
	if (dice < DICE_CANCEL)
		event_cancel(symbol, slot);
	else
		event_modify(symbol, laws, slot);
}

void stoup_sim_flow_event(struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws)
{
	uint64_t gap_ns;

	symbol->pending_cnt = 0;
	symbol->pending_at = 0;
	symbol->near = (uint32_t)stoup_sim_chance(
		&symbol->rng, symbol->near ? NEAR_AFTER_NEAR : NEAR_AFTER_IDLE);
	if (symbol->near) {
		gap_ns = stoup_sim_sample(&laws->near_ns, &symbol->rng);
	} else {
		gap_ns = stoup_sim_sample(&laws->idle_ns, &symbol->rng);
		gap_ns =
			(gap_ns * symbol->slowness * hour_gap[symbol->now_ns / HOUR_NS % 24]) >> 12;
		gap_ns += STOUP_SIM_NEAR_NS + stoup_sim_below(&symbol->rng, 4096);
	}
	symbol->now_ns += gap_ns;
	fair_step(symbol);
	if (gap_ns >= SHARE_GAP_NS || symbol->recv_ns < symbol->now_ns + LATENCY_MIN_NS ||
		!stoup_sim_chance(&symbol->rng, SHARE_PACKET))
		packet_begin(symbol, laws,
			symbol->now_ns + stoup_sim_sample(&laws->latency_ns, &symbol->rng));
	event_kind(symbol, laws);
	symbol->pending[symbol->pending_cnt - 1].flags = STOUP_SIM_FLAG_LAST | 2;
}

/* ---- opening -------------------------------------------------------------------------------- */

void stoup_sim_flow_open(struct stoup_sim_symbol *symbol, const struct stoup_sim_laws *laws)
{
	struct stoup_sim_book *book = &symbol->book;

	symbol->fair_tick = book->tick_cnt / 2;
	for (uint32_t i = 0; i < symbol->target_cnt; i++) {
		uint32_t side = i & 1;
		uint32_t depth = stoup_sim_sample(&laws->depth_tick, &symbol->rng);
		uint32_t size = stoup_sim_sample(&laws->size_cnt, &symbol->rng);
		uint32_t tick = side == STOUP_SIM_BID ? symbol->fair_tick - 1 : symbol->fair_tick;

		depth += stoup_sim_below(&symbol->rng, 16);
		if (depth >= tick || tick + depth >= book->tick_cnt)
			depth = stoup_sim_below(&symbol->rng, book->tick_cnt / 4);
		tick = side == STOUP_SIM_BID ? tick - depth : tick + depth;
		symbol->last_id += stoup_sim_sample(&laws->id_step, &symbol->rng);
		stoup_sim_book_add(book, symbol->last_id, side, tick, size);
	}
}

void stoup_sim_flow_snapshot(
	const struct stoup_sim_symbol *symbol, uint32_t slot, struct stoup_sim_mbo *dst)
{
	const struct stoup_sim_order *order = &symbol->book.orders[slot];

	memset(dst, 0, sizeof(*dst));
	dst->length = sizeof(*dst) / 4;
	dst->rtype = STOUP_SIM_RTYPE_MBO;
	dst->publisher_id = PUBLISHER_ID;
	dst->instrument_id = symbol->instrument_id;
	dst->ts_event = symbol->now_ns;
	dst->order_id = order->id;
	dst->price = symbol->base_price + (int64_t)order->tick * symbol->tick_price;
	dst->size = order->size;
	dst->flags = STOUP_SIM_FLAG_SNAPSHOT | 8;
	dst->action = 'A';
	dst->side = order->side == STOUP_SIM_BID ? 'B' : 'A';
	dst->ts_recv = symbol->recv_ns;
	dst->sequence = symbol->sequence;
}
