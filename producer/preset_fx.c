/* SPDX-License-Identifier: Apache-2.0 */
/* preset_fx.c - quotes and bars of currencies and futures: TrueFX, HistData, FXCM, and tables like theirs.
 *
 * HistData writes New York's time without summer time: UTC-05:00 all year.
 */
#include "producer/preset.h"

#define EST_S (-5 * 3600)

/* ---- quotes ------------------------------------------------------------------------------------ */

/* TrueFX' own files: EUR/USD,20120101 22:00:00.123,1.29,1.30, and the same with a header. */
static const struct stoup_preset_column truefx[] = {
	{.names = "pair|symbol", .type = STOUP_PRESET_SYMBOL, .flags = STOUP_PRESET_OPTIONAL},
	{.names = "timestamp|time", .field = "timestamp", .type = STOUP_PRESET_KEY},
	{.names = "bid", .type = STOUP_PRESET_PRICE, .flags = STOUP_PRESET_FULL},
	{.names = "ask", .type = STOUP_PRESET_PRICE, .flags = STOUP_PRESET_FULL},
	{.names = NULL},
};

static const char *const truefx_paths[] = {"truefx-%s-*", "%s-%d", NULL};

const struct stoup_preset stoup_preset_truefx = {
	.name = "truefx",
	.what = "TrueFX quotes",
	.schema = "truefx",
	.kind = "quotes",
	.exchange = "truefx",
	.columns = truefx,
	.paths = truefx_paths,
	.bare_min = 4,
	.bare_max = 4,
	.clock = STOUP_PRESET_CLOCK_TEXT,
};

static const struct stoup_preset_column quotes[] = {
	{.names = "timestamp|time|ts|datetime|timestamp_utc",
		.field = "ts",
		.type = STOUP_PRESET_KEY},
	{.names = "bid|bid_price|bid_px", .field = "bid", .type = STOUP_PRESET_PRICE},
	{.names = "ask|ask_price|ask_px", .field = "ask", .type = STOUP_PRESET_PRICE},
	{.names = "bid_size|bid_sz|bid_qty|bid_volume",
		.field = "bid_size",
		.type = STOUP_PRESET_SIZE,
		.flags = STOUP_PRESET_OPTIONAL},
	{.names = "ask_size|ask_sz|ask_qty|ask_volume",
		.field = "ask_size",
		.type = STOUP_PRESET_SIZE,
		.flags = STOUP_PRESET_OPTIONAL},
	{.names = "symbol|Symbol|ticker|Ticker",
		.type = STOUP_PRESET_SYMBOL,
		.flags = STOUP_PRESET_OPTIONAL},
	{.names = NULL},
};

static const char *const no_paths[] = {NULL};

const struct stoup_preset stoup_preset_quotes = {
	.name = "quotes",
	.what = "quotes",
	.schema = "quotes",
	.kind = "quotes",
	.columns = quotes,
	.paths = no_paths,
	.flags = STOUP_PRESET_ANYONES,
	.clock = STOUP_PRESET_CLOCK_TEXT,
};

static const struct stoup_preset_column histdata[] = {
	{.names = "timestamp", .type = STOUP_PRESET_KEY},
	{.names = "bid", .type = STOUP_PRESET_PRICE, .flags = STOUP_PRESET_FULL},
	{.names = "ask", .type = STOUP_PRESET_PRICE, .flags = STOUP_PRESET_FULL},
	{.names = "volume", .type = STOUP_PRESET_SIZE, .flags = STOUP_PRESET_FULL},
	{.names = NULL},
};

static const char *const histdata_paths[] = {"DAT_ASCII_%s_T_*", NULL};

const struct stoup_preset stoup_preset_histdata = {
	.name = "histdata",
	.what = "HistData ticks",
	.schema = "histdata",
	.kind = "quotes",
	.exchange = "histdata",
	.columns = histdata,
	.paths = histdata_paths,
	.bare_min = 4,
	.bare_max = 4,
	.clock = STOUP_PRESET_CLOCK_TEXT,
	.flags = STOUP_PRESET_BY_NAME,
	.zone_s = EST_S,
};

/* ---- bars --------------------------------------------------------------------------------------- */

static const struct stoup_preset_column bars[] = {
	{.names = "timestamp|timestamp_utc|time|ts|date|datetime|open_time|Date|Time|Timestamp",
		.field = "ts",
		.type = STOUP_PRESET_KEY},
	{.names = "open|Open", .type = STOUP_PRESET_PRICE},
	{.names = "high|High", .type = STOUP_PRESET_PRICE},
	{.names = "low|Low", .type = STOUP_PRESET_PRICE},
	{.names = "close|Close", .type = STOUP_PRESET_PRICE},
	{.names = "volume|Volume", .type = STOUP_PRESET_SIZE, .flags = STOUP_PRESET_OPTIONAL},
	{.names = "symbol|Symbol|ticker|Ticker",
		.type = STOUP_PRESET_SYMBOL,
		.flags = STOUP_PRESET_OPTIONAL},
	{.names = NULL},
};

#define BARS(preset, title, venue, path_list)                                                      \
	.name = preset, .what = title, .schema = "bar", .kind = "bars", .exchange = venue,         \
	.columns = bars, .paths = path_list, .clock = STOUP_PRESET_CLOCK_TEXT

static const char *const bars_paths[] = {"%s-%i-bars-*", "%s-%i", NULL};
static const char *const fxcm_paths[] = {"fxcm-%s-%i-*", NULL};
static const char *const histdata_bars_paths[] = {"DAT_ASCII_%s_%i_*", NULL};

const struct stoup_preset stoup_preset_bars = {
	BARS("bars", "bars", NULL, bars_paths), .flags = STOUP_PRESET_BARS | STOUP_PRESET_BUILTIN};

const struct stoup_preset stoup_preset_fxcm_bars = {
	BARS("fxcm-bars", "FXCM bars", "fxcm", fxcm_paths),
	.flags = STOUP_PRESET_BARS | STOUP_PRESET_BUILTIN | STOUP_PRESET_BY_NAME};

const struct stoup_preset stoup_preset_histdata_bars = {
	BARS("histdata-bars", "HistData bars", "histdata", histdata_bars_paths), .bare_min = 6,
	.bare_max = 6, .delimiter = ';', .zone_s = EST_S,
	.flags = STOUP_PRESET_BARS | STOUP_PRESET_BUILTIN | STOUP_PRESET_BY_NAME};
