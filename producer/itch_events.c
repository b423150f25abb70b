/* SPDX-License-Identifier: Apache-2.0 */
/* itch_events.c - orders and trades of ITCH: each event with the order that it is about.
 *
 *      A F   price, shares                 -> open it
 *      E C   ref, shares, match [, price]  -> fewer left    (also a trade)
 *      X     ref, shares                   -> fewer left
 *      D     ref                           -> closed
 *      U     old ref, new ref, ...         -> old one closed, new one open: one record with both
 *
 * A replacement is one record and not a cancel and an add: the feed makes it at once, and between the two
 * a book would show a level that nobody ever saw.
 */
#include "producer/itch_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define REF_OFF 11u

static struct stoup_itch_mbo mbo_start(
	const struct stoup_itch *itch, const struct stoup_itch_at *at)
{
	return (struct stoup_itch_mbo){.ts = at->key,
		.seq = itch->seq,
		.order_ref = stoup_be64(at->bytes + REF_OFF),
		.prev_ref = UINT64_MAX,
		.match = UINT64_MAX,
		.locate = at->locate,
		.tracking = at->tracking,
		.type = (char)at->bytes[0]};
}

static int mbo_put(struct stoup_itch *itch, const struct stoup_itch_at *at,
	const struct stoup_itch_mbo *record, struct stoup_error *err)
{
	int64_t idx = stoup_itch_stock_series(itch, at, STOUP_ITCH_MBO, itch->mbo, err);

	return idx < 0 ? (int)idx : stoup_itch_put(itch, at, (uint32_t)idx, record, err);
}

static int trade_put(struct stoup_itch *itch, const struct stoup_itch_at *at,
	struct stoup_itch_trade *record, struct stoup_error *err)
{
	int64_t idx = stoup_itch_stock_series(itch, at, STOUP_ITCH_TRADE, itch->trade, err);

	record->ts = at->key;
	record->seq = itch->seq;
	record->locate = at->locate;
	record->tracking = at->tracking;
	record->type = (char)at->bytes[0];
	return idx < 0 ? (int)idx : stoup_itch_put(itch, at, (uint32_t)idx, record, err);
}

/* ---- open orders ------------------------------------------------------------------------------- */

/* The order that the message names: 1; 0 where a partial file may lack it; or an error. */
static int order_find(struct stoup_itch *itch, const struct stoup_itch_at *at, uint64_t ref,
	struct stoup_itch_order **ret, struct stoup_error *err)
{
	struct stoup_itch_order *order = stoup_itch_orders_find(&itch->orders, ref);

	if (order && order->locate == at->locate) {
		*ret = order;
		return 1;
	}
	if (order)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"order %" PRIu64
			" is of stock locate %u, the message of %u: the file is damaged",
			ref, order->locate, at->locate);
	if (!itch->setup.allow_partial)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"order %" PRIu64
			" is not open: the file does not begin with its day, or is damaged "
			"(--allow-partial leaves such events out)",
			ref);
	if (itch->orphan_cnt++ == 0) {
		itch->orphan_off = at->off;
		itch->orphan_ref = ref;
	}
	return 0;
}

static int order_open(struct stoup_itch *itch, const struct stoup_itch_at *at,
	const struct stoup_itch_order *order, struct stoup_error *err)
{
	int rc;

	if (order->side != 'B' && order->side != 'S')
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"order %" PRIu64
			" has the side 0x%02x, neither B nor S: the file is damaged",
			order->ref, (unsigned)(unsigned char)order->side);
	if (order->left == 0)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"order %" PRIu64 " has no shares: the file is damaged", order->ref);
	rc = stoup_itch_orders_add(&itch->orders, order);
	if (rc == -EEXIST)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"order %" PRIu64
			" is open already: a message twice, two days in one file, or damage",
			order->ref);
	if (rc == -E2BIG)
		return stoup_itch_bad(itch, at, rc, err,
			"%zu orders are open at once, the most that are kept: take fewer stocks in one "
			"call (--symbols)",
			itch->orders.cap);
	if (rc < 0)
		return stoup_itch_bad(itch, at, rc, err, "no memory for %zu open orders",
			stoup_itch_order_cnt(itch));
	return 0;
}

/* Take shares off an order; it may be gone afterwards. */
static int order_take(struct stoup_itch *itch, const struct stoup_itch_at *at,
	struct stoup_itch_order *order, uint32_t shares, struct stoup_error *err)
{
	if (shares > order->left)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"takes %" PRIu32 " shares of order %" PRIu64 ", which has %" PRIu32
			" left: the file is damaged",
			shares, order->ref, order->left);
	if (shares == order->left)
		stoup_itch_orders_remove(&itch->orders, order);
	else
		order->left -= shares;
	return 0;
}

/* ---- order events ------------------------------------------------------------------------------ */

static int add(struct stoup_itch *itch, const struct stoup_itch_at *at, struct stoup_error *err)
{
	struct stoup_itch_mbo record = mbo_start(itch, at);
	struct stoup_itch_order order = {.ref = record.order_ref,
		.price = stoup_be32(at->bytes + 32),
		.left = stoup_be32(at->bytes + 20),
		.locate = at->locate,
		.side = (char)at->bytes[19]};
	int rc;

	if (at->bytes[0] == 'F')
		stoup_itch_text(at->bytes + 36, sizeof(order.mpid), order.mpid);
	rc = order_open(itch, at, &order, err);
	if (rc < 0)
		return rc;
	record.price = record.order_price = order.price;
	record.size = record.left = order.left;
	memcpy(record.mpid, order.mpid, sizeof(record.mpid));
	record.side = order.side;
	return mbo_put(itch, at, &record, err);
}

/* E and C are a trade as well. */
static int execution_trade(struct stoup_itch *itch, const struct stoup_itch_at *at,
	const struct stoup_itch_mbo *event, struct stoup_error *err)
{
	struct stoup_itch_trade trade = {.match = event->match,
		.order_ref = event->order_ref,
		.size = event->size,
		.price = event->price,
		.side = event->side,
		.printable = event->printable};

	memcpy(trade.mpid, event->mpid, sizeof(trade.mpid));
	return trade_put(itch, at, &trade, err);
}

/* E, C, X, D: shares go. */
static int reduce(struct stoup_itch *itch, const struct stoup_itch_at *at, struct stoup_error *err)
{
	struct stoup_itch_mbo record = mbo_start(itch, at);
	struct stoup_itch_order *order = NULL;
	uint8_t type = at->bytes[0];
	int is_execution = type == 'E' || type == 'C';
	int rc = order_find(itch, at, record.order_ref, &order, err);

	if (rc <= 0)
		return rc;
	record.before = order->left;
	record.size = type == 'D' ? order->left : stoup_be32(at->bytes + 19);
	record.left = order->left - record.size;
	record.order_price = order->price;
	record.price = type == 'C' ? stoup_be32(at->bytes + 32) : order->price;
	record.side = order->side;
	memcpy(record.mpid, order->mpid, sizeof(record.mpid));
	if (is_execution) {
		record.match = stoup_be64(at->bytes + 23);
		record.printable = type == 'C' ? (char)at->bytes[31] : 'Y';
	}
	rc = order_take(itch, at, order, record.size, err);
	if (rc == 0)
		rc = mbo_put(itch, at, &record, err);
	return rc == 0 && is_execution ? execution_trade(itch, at, &record, err) : rc;
}

static int replace(struct stoup_itch *itch, const struct stoup_itch_at *at, struct stoup_error *err)
{
	struct stoup_itch_mbo record = mbo_start(itch, at);
	struct stoup_itch_order *old = NULL, order;
	int rc = order_find(itch, at, record.order_ref, &old, err);

	if (rc <= 0)
		return rc;
	record.prev_ref = record.order_ref;
	record.order_ref = stoup_be64(at->bytes + 19);
	record.order_price = old->price;
	record.before = old->left;
	/* The new order keeps side, stock and attribution. */
	order = *old;
	order.ref = record.order_ref;
	order.left = stoup_be32(at->bytes + 27);
	order.price = stoup_be32(at->bytes + 31);
	stoup_itch_orders_remove(&itch->orders, old);
	rc = order_open(itch, at, &order, err);
	if (rc < 0)
		return rc;
	record.price = order.price;
	record.size = record.left = order.left;
	record.side = order.side;
	memcpy(record.mpid, order.mpid, sizeof(record.mpid));
	return mbo_put(itch, at, &record, err);
}

/* ---- trades ------------------------------------------------------------------------------------ */

static int hidden_trade(
	struct stoup_itch *itch, const struct stoup_itch_at *at, struct stoup_error *err)
{
	struct stoup_itch_trade trade = {.match = stoup_be64(at->bytes + 36),
		.order_ref = stoup_be64(at->bytes + REF_OFF),
		.size = stoup_be32(at->bytes + 20),
		.price = stoup_be32(at->bytes + 32),
		.side = (char)at->bytes[19],
		.printable = 'Y'};

	return trade_put(itch, at, &trade, err);
}

static int cross_trade(
	struct stoup_itch *itch, const struct stoup_itch_at *at, struct stoup_error *err)
{
	struct stoup_itch_trade trade = {.match = stoup_be64(at->bytes + 31),
		.order_ref = UINT64_MAX,
		.size = stoup_be64(at->bytes + 11),
		.price = stoup_be32(at->bytes + 27),
		.printable = 'Y',
		.cross = (char)at->bytes[39]};

	return trade_put(itch, at, &trade, err);
}

static int broken_trade(
	struct stoup_itch *itch, const struct stoup_itch_at *at, struct stoup_error *err)
{
	struct stoup_itch_trade trade = {.match = stoup_be64(at->bytes + 11),
		.order_ref = UINT64_MAX,
		.size = UINT64_MAX,
		.price = UINT32_MAX};

	if (at->stock->state == STOUP_ITCH_UNKNOWN)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"match %" PRIu64
			" of stock locate %u, which no message before has named: the "
			"file does not begin with its day, or is damaged",
			trade.match, at->locate);
	return trade_put(itch, at, &trade, err);
}

int stoup_itch_event(
	struct stoup_itch *itch, const struct stoup_itch_at *at, struct stoup_error *err)
{
	switch (at->bytes[0]) {
	case 'A':
	case 'F':
		return add(itch, at, err);
	case 'U':
		return replace(itch, at, err);
	case 'P':
		return hidden_trade(itch, at, err);
	case 'Q':
		return cross_trade(itch, at, err);
	case 'B':
		return broken_trade(itch, at, err);
	default: /* E, C, X, D */
		return reduce(itch, at, err);
	}
}
