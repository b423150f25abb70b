/* SPDX-License-Identifier: Apache-2.0 */
/* preset_tardis.c - Tardis' downloadable files: a header always, times in microseconds.
 *
 * The key is local_timestamp, when the message came: exchanges' own times step back. Cells of a side
 * that has no order are empty. Names of columns decide, never their places: quotes have the ask first,
 * and its amount before its price.
 */
#include "producer/preset.h"

#define COMMON                                                                                     \
	{.names = "exchange", .type = STOUP_PRESET_EXCHANGE},                                      \
		{.names = "symbol", .type = STOUP_PRESET_SYMBOL},                                  \
		{.names = "timestamp", .type = STOUP_PRESET_TIME},                                 \
	{                                                                                          \
		.names = "local_timestamp", .type = STOUP_PRESET_KEY                               \
	}

#define LAST                                                                                       \
	{                                                                                          \
		.names = NULL                                                                      \
	}

#define TARDIS(preset, title, series_kind, table, path_list)                                       \
	.name = preset, .what = title, .schema = preset, .kind = series_kind, .columns = table,    \
	.paths = path_list, .units = STOUP_PRESET_UNIT_US

/* An exchange's id of a trade is a number, a UUID (36) or a hash. */
#define ID_LEN 64

static const struct stoup_preset_column trades[] = {
	COMMON,
	{.names = "id", .type = STOUP_PRESET_TEXT, .len = ID_LEN},
	{.names = "side",
		.type = STOUP_PRESET_WORD,
		.words = "buy|sell|unknown",
		.why = "is not buy, sell or unknown"},
	{.names = "price", .type = STOUP_PRESET_PRICE, .flags = STOUP_PRESET_FULL},
	{.names = "amount", .type = STOUP_PRESET_SIZE, .flags = STOUP_PRESET_FULL},
	LAST,
};

static const char *const trades_paths[] = {"%e_trades_*", NULL};
static const char *const liquidations_paths[] = {"%e_liquidations_*", NULL};

const struct stoup_preset stoup_preset_tardis_trades = {
	TARDIS("tardis-trades", "Tardis trades", "trades", trades, trades_paths)};

/* The same columns as trades. */
const struct stoup_preset stoup_preset_tardis_liquidations = {TARDIS(
	"tardis-liquidations", "Tardis liquidations", "liquidations", trades, liquidations_paths)};

static const struct stoup_preset_column l2[] = {
	COMMON,
	{.names = "is_snapshot", .type = STOUP_PRESET_BOOL},
	{.names = "side",
		.type = STOUP_PRESET_WORD,
		.words = "bid|ask",
		.why = "is not bid or ask"},
	{.names = "price", .type = STOUP_PRESET_PRICE, .flags = STOUP_PRESET_FULL},
	{.names = "amount", .type = STOUP_PRESET_SIZE, .flags = STOUP_PRESET_FULL},
	LAST,
};

static const char *const l2_paths[] = {"%e_incremental_book_L2_*", NULL};

const struct stoup_preset stoup_preset_tardis_l2 = {
	TARDIS("tardis-l2", "Tardis incremental_book_L2", "incremental_book_L2", l2, l2_paths)};

static const struct stoup_preset_column quotes[] = {
	COMMON,
	{.names = "ask_amount", .type = STOUP_PRESET_SIZE},
	{.names = "ask_price", .type = STOUP_PRESET_PRICE},
	{.names = "bid_price", .type = STOUP_PRESET_PRICE},
	{.names = "bid_amount", .type = STOUP_PRESET_SIZE},
	LAST,
};

static const char *const quotes_paths[] = {"%e_quotes_*", "%e_book_ticker_*", NULL};

const struct stoup_preset stoup_preset_tardis_quotes = {
	TARDIS("tardis-quotes", "Tardis quotes", "quotes", quotes, quotes_paths)};

static const struct stoup_preset_column book[] = {
	COMMON,
	{.names = "asks[%u].price", .type = STOUP_PRESET_PRICE, .flags = STOUP_PRESET_LEVEL},
	{.names = "asks[%u].amount", .type = STOUP_PRESET_SIZE, .flags = STOUP_PRESET_LEVEL},
	{.names = "bids[%u].price", .type = STOUP_PRESET_PRICE, .flags = STOUP_PRESET_LEVEL},
	{.names = "bids[%u].amount", .type = STOUP_PRESET_SIZE, .flags = STOUP_PRESET_LEVEL},
	LAST,
};

static const char *const book_paths[] = {"%e_book_snapshot_*", NULL};

const struct stoup_preset stoup_preset_tardis_book = {
	TARDIS("tardis-book", "Tardis book_snapshot", "book_snapshot", book, book_paths)};

/* Rates need more decimals than prices: 0.0000012345. */
#define RATE_SCALE 15

static const struct stoup_preset_column derivative[] = {
	COMMON,
	{.names = "funding_timestamp", .type = STOUP_PRESET_TIME},
	{.names = "funding_rate", .type = STOUP_PRESET_PRICE, .scale = RATE_SCALE},
	{.names = "predicted_funding_rate", .type = STOUP_PRESET_PRICE, .scale = RATE_SCALE},
	{.names = "open_interest", .type = STOUP_PRESET_SIZE},
	{.names = "last_price", .type = STOUP_PRESET_PRICE},
	{.names = "index_price", .type = STOUP_PRESET_PRICE},
	{.names = "mark_price", .type = STOUP_PRESET_PRICE},
	LAST,
};

static const char *const derivative_paths[] = {"%e_derivative_ticker_*", NULL};

const struct stoup_preset stoup_preset_tardis_derivative = {TARDIS("tardis-derivative",
	"Tardis derivative_ticker", "derivative_ticker", derivative, derivative_paths)};
