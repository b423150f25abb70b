/* SPDX-License-Identifier: Apache-2.0 */
/* preset_lobster.c - LOBSTER's pairs of files: messages, and the book after each of them.
 *
 * Neither has a header. The date is in the file's name, times are seconds after the midnight of New York,
 * prices count 1/10000 dollar. Of a halt (type 7) the price says which: -1, 0 or 1, and is kept so.
 */
#include "producer/preset.h"

#define PRICE_SCALE 4

static const struct stoup_preset_column message[] = {
	{.names = "time", .type = STOUP_PRESET_KEY},
	{.names = "type", .type = STOUP_PRESET_BYTE},
	{.names = "order_id", .type = STOUP_PRESET_ID},
	{.names = "size", .type = STOUP_PRESET_SIZE, .flags = STOUP_PRESET_FULL},
	{.names = "price",
		.type = STOUP_PRESET_PRICE,
		.flags = STOUP_PRESET_FULL | STOUP_PRESET_COUNTS,
		.scale = PRICE_SCALE},
	{.names = "direction", .type = STOUP_PRESET_SIGN},
	/* Whose order it is: "null" in what is sold since some years. */
	{.names = "mpid", .type = STOUP_PRESET_LEFT, .flags = STOUP_PRESET_OPTIONAL},
	{.names = NULL},
};

static const char *const message_paths[] = {"%s_%d_*_message_*", "lobster-%s-%d-message_*", NULL};

const struct stoup_preset stoup_preset_lobster = {
	.name = "lobster",
	.what = "LOBSTER messages",
	.schema = "lobster",
	.kind = "message",
	.exchange = "lobster",
	.columns = message,
	.paths = message_paths,
	.bare_min = 6,
	.bare_max = 7,
	.clock = STOUP_PRESET_CLOCK_DAY,
	.flags = STOUP_PRESET_BY_NAME,
};

/* The time is the message's of the same row: lobster_book.c puts it in front. Dummies fill levels that the
 * book does not have. */
static const struct stoup_preset_column book[] = {
	{.names = "time", .type = STOUP_PRESET_KEY},
	{.names = "ask_price_%u",
		.type = STOUP_PRESET_PRICE,
		.flags = STOUP_PRESET_LEVEL | STOUP_PRESET_COUNTS | STOUP_PRESET_DUMMY,
		.scale = PRICE_SCALE},
	{.names = "ask_size_%u",
		.type = STOUP_PRESET_SIZE,
		.flags = STOUP_PRESET_LEVEL | STOUP_PRESET_FULL},
	{.names = "bid_price_%u",
		.type = STOUP_PRESET_PRICE,
		.flags = STOUP_PRESET_LEVEL | STOUP_PRESET_COUNTS | STOUP_PRESET_DUMMY,
		.scale = PRICE_SCALE},
	{.names = "bid_size_%u",
		.type = STOUP_PRESET_SIZE,
		.flags = STOUP_PRESET_LEVEL | STOUP_PRESET_FULL},
	{.names = NULL},
};

static const char *const book_paths[] = {"%s_%d_*_orderbook_*", "lobster-%s-%d-orderbook_*", NULL};

const struct stoup_preset stoup_preset_lobster_book = {
	.name = "lobster-book",
	.what = "a LOBSTER order book",
	.schema = "lobster-book",
	.kind = "orderbook",
	.exchange = "lobster",
	.columns = book,
	.paths = book_paths,
	.bare_min = 5,
	.bare_max = 509,
	.level_base = 1,
	.clock = STOUP_PRESET_CLOCK_DAY,
	.flags = STOUP_PRESET_BY_NAME | STOUP_PRESET_ALONE,
};
