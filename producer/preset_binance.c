/* SPDX-License-Identifier: Apache-2.0 */
/* preset_binance.c - what data.binance.vision has: trades, aggTrades, klines, bookTicker.
 *
 * Spot files have no header, those of futures have one since 2022. Times of spot are milliseconds until
 * the end of 2024 and microseconds since, those of futures milliseconds.
 */
#include "producer/preset.h"

#define UNITS (STOUP_PRESET_UNIT_MS | STOUP_PRESET_UNIT_US)
#define FULL  STOUP_PRESET_FULL

static const struct stoup_preset_column trades[] = {
	{.names = "id|trade_id", .type = STOUP_PRESET_ID},
	{.names = "price", .type = STOUP_PRESET_PRICE, .flags = FULL},
	{.names = "qty", .type = STOUP_PRESET_SIZE, .flags = FULL},
	{.names = "quote_qty|quoteQty|base_qty", .type = STOUP_PRESET_SIZE, .flags = FULL},
	{.names = "time", .type = STOUP_PRESET_KEY},
	{.names = "is_buyer_maker|isBuyerMaker", .type = STOUP_PRESET_BOOL},
	{.names = "is_best_match|isBestMatch",
		.type = STOUP_PRESET_BOOL,
		.flags = STOUP_PRESET_OPTIONAL},
	{.names = NULL},
};

static const char *const trades_paths[] = {"%s-trades-*", NULL};

const struct stoup_preset stoup_preset_binance_trades = {
	.name = "binance-trades",
	.what = "Binance %s trades",
	.schema = "binance-trades",
	.kind = "trades",
	.columns = trades,
	.paths = trades_paths,
	.bare_min = 6,
	.bare_max = 7,
	.units = UNITS,
	.flags = STOUP_PRESET_UNIQUE,
};

static const struct stoup_preset_column aggtrades[] = {
	{.names = "agg_trade_id|aggId", .type = STOUP_PRESET_ID},
	{.names = "price", .type = STOUP_PRESET_PRICE, .flags = FULL},
	{.names = "quantity|qty", .type = STOUP_PRESET_SIZE, .flags = FULL},
	{.names = "first_trade_id|firstId", .type = STOUP_PRESET_ID},
	{.names = "last_trade_id|lastId", .type = STOUP_PRESET_ID},
	{.names = "transact_time|time|timestamp", .type = STOUP_PRESET_KEY},
	{.names = "is_buyer_maker|isBuyerMaker|was_the_buyer_the_maker", .type = STOUP_PRESET_BOOL},
	{.names = "is_best_match|isBestMatch",
		.type = STOUP_PRESET_BOOL,
		.flags = STOUP_PRESET_OPTIONAL},
	{.names = NULL},
};

static const char *const aggtrades_paths[] = {"%s-aggTrades-*", NULL};

const struct stoup_preset stoup_preset_binance_aggtrades = {
	.name = "binance-aggtrades",
	.what = "Binance %s aggTrades",
	.schema = "binance-aggtrades",
	.kind = "aggTrades",
	.columns = aggtrades,
	.paths = aggtrades_paths,
	.bare_min = 7,
	.bare_max = 8,
	.units = UNITS,
	.flags = STOUP_PRESET_UNIQUE,
};

static const struct stoup_preset_column klines[] = {
	{.names = "open_time|openTime", .type = STOUP_PRESET_KEY},
	{.names = "open", .type = STOUP_PRESET_PRICE, .flags = FULL},
	{.names = "high", .type = STOUP_PRESET_PRICE, .flags = FULL},
	{.names = "low", .type = STOUP_PRESET_PRICE, .flags = FULL},
	{.names = "close", .type = STOUP_PRESET_PRICE, .flags = FULL},
	{.names = "volume", .type = STOUP_PRESET_SIZE, .flags = FULL},
	{.names = "close_time|closeTime", .type = STOUP_PRESET_TIME, .flags = FULL},
	{.names = "quote_volume|quoteVolume|quote_asset_volume",
		.type = STOUP_PRESET_SIZE,
		.flags = FULL},
	{.names = "count|number_of_trades", .type = STOUP_PRESET_ID},
	{.names = "taker_buy_volume|taker_buy_base_asset_volume",
		.type = STOUP_PRESET_SIZE,
		.flags = FULL},
	{.names = "taker_buy_quote_volume|taker_buy_quote_asset_volume",
		.type = STOUP_PRESET_SIZE,
		.flags = FULL},
	{.names = "ignore", .type = STOUP_PRESET_LEFT, .flags = STOUP_PRESET_OPTIONAL},
	{.names = NULL},
};

static const char *const klines_paths[] = {"%s-%i-*", NULL};

const struct stoup_preset stoup_preset_binance_klines = {
	.name = "binance-klines",
	.what = "Binance %s klines",
	.schema = "binance-klines",
	.kind = "klines",
	.columns = klines,
	.paths = klines_paths,
	.bare_min = 12,
	.bare_max = 12,
	.units = UNITS,
	.flags = STOUP_PRESET_BARS | STOUP_PRESET_UNIQUE,
};

static const struct stoup_preset_column bookticker[] = {
	{.names = "update_id|updateId", .type = STOUP_PRESET_ID},
	{.names = "best_bid_price", .type = STOUP_PRESET_PRICE},
	{.names = "best_bid_qty", .type = STOUP_PRESET_SIZE},
	{.names = "best_ask_price", .type = STOUP_PRESET_PRICE},
	{.names = "best_ask_qty", .type = STOUP_PRESET_SIZE},
	{.names = "transaction_time", .type = STOUP_PRESET_KEY},
	{.names = "event_time", .type = STOUP_PRESET_TIME},
	{.names = NULL},
};

static const char *const bookticker_paths[] = {"%s-bookTicker-*", NULL};

const struct stoup_preset stoup_preset_binance_bookticker = {
	.name = "binance-bookticker",
	.what = "Binance %s bookTicker",
	.schema = "binance-bookticker",
	.kind = "bookTicker",
	.columns = bookticker,
	.paths = bookticker_paths,
	.bare_min = 7,
	.bare_max = 7,
	.units = UNITS,
	.flags = STOUP_PRESET_UNIQUE,
};
