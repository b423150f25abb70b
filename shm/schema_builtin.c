/* SPDX-License-Identifier: Apache-2.0 */
/* schema_builtin.c - the schemas that every stoup knows: the DBN record kinds, event64, tick, bar,
 * orders and trades of ITCH 5.0.
 *
 * Layouts and field names are those of Databento's DBN, versions 1 to 3 (Apache-2.0,
 * github.com/databento/dbn), and of hftbacktest's event record; where versions differ in layout
 * each is a schema of its own, and the newest has the plain name. stoup_records.h has the same
 * layouts as C structs, and tests/layout/test_records.c compares the two.
 *
 *      16 bytes: length, rtype, publisher_id, instrument_id, ts_event   then what the kind has
 *
 * Values: prices are integers of 1e-9, undefined = INT64_MAX; times are nanoseconds, undefined =
 * UINT64_MAX; sizes are undefined at UINT32_MAX; other numbers of a definition at the maximum of
 * their type. `length` is the record's own length in words of 4 bytes: structure, not data, and
 * hidden as in DBN's own text forms.
 *
 * Invariant: the hash beside each schema is stoup_schema_hash() of it. It is written down instead
 * of computed at start so that the table is read-only memory, and so that no edit changes a layout
 * unseen: the unit test computes it anew.
 */
#include "shm/stoup_types.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define SECOND_NS       UINT64_C(1000000000)

/* Undefined values: the greatest of their type. */
#define NULL_I8  0x7fu
#define NULL_U8  0xffu
#define NULL_I16 0x7fffu
#define NULL_U16 0xffffu
#define NULL_I32 0x7fffffffu
#define NULL_U32 0xffffffffu
#define NULL_I64 UINT64_C(0x7fffffffffffffff)
#define NULL_U64 UINT64_C(0xffffffffffffffff)

/* One field per macro: plain, with an undefined value (_N), and the special kinds. */
#define FIELD(n, o, t)                                                                             \
	{                                                                                          \
		.name = n, .off = o, .cnt = 1, .type = STOUP_TYPE_##t                              \
	}
#define FIELD_N(n, o, t)                                                                           \
	{                                                                                          \
		.name = n, .off = o, .cnt = 1, .type = STOUP_TYPE_##t, .flags = STOUP_FIELD_NULL,  \
		.null_bits = NULL_##t                                                              \
	}
#define PRICE(n, o)                                                                                \
	{                                                                                          \
		.name = n, .off = o, .cnt = 1, .type = STOUP_TYPE_I64, .flags = STOUP_FIELD_NULL,  \
		.exp10 = -9, .null_bits = NULL_I64                                                 \
	}
#define TIME_FLAGGED(n, o, f)                                                                      \
	{                                                                                          \
		.name = n, .off = o, .cnt = 1, .type = STOUP_TYPE_U64,                             \
		.flags = STOUP_FIELD_NULL | STOUP_FIELD_TIME | (f), .null_bits = NULL_U64,         \
		.unit = "ns"                                                                       \
	}
#define TIME(n, o) TIME_FLAGGED(n, o, 0)
#define KEY(n, o)  TIME_FLAGGED(n, o, STOUP_FIELD_KEY)
#define DELTA(n, o)                                                                                \
	{                                                                                          \
		.name = n, .off = o, .cnt = 1, .type = STOUP_TYPE_I32,                             \
		.flags = STOUP_FIELD_DURATION, .unit = "ns"                                        \
	}
#define TEXT(n, o, c)                                                                              \
	{                                                                                          \
		.name = n, .off = o, .cnt = c, .type = STOUP_TYPE_CHAR                             \
	}
#define RESERVED(n, o, c)                                                                          \
	{                                                                                          \
		.name = n, .off = o, .cnt = c, .type = STOUP_TYPE_BYTES,                           \
		.flags = STOUP_FIELD_HIDDEN                                                        \
	}

/* The DBN record header; ts_event is the key of the kinds without a ts_recv. */
#define HEADER_START                                                                               \
	{.name = "length",                                                                         \
		.off = 0,                                                                          \
		.cnt = 1,                                                                          \
		.type = STOUP_TYPE_U8,                                                             \
		.flags = STOUP_FIELD_HIDDEN},                                                      \
		FIELD("rtype", 1, U8), FIELD("publisher_id", 2, U16),                              \
		FIELD("instrument_id", 4, U32)
#define HEADER     HEADER_START, TIME("ts_event", 8)
#define HEADER_KEY HEADER_START, KEY("ts_event", 8)

/* One book level of 32 bytes; the consolidated one names the venues instead of counting orders. */
#define LEVEL(i, o)                                                                                \
	PRICE("bid_px_" i, o), PRICE("ask_px_" i, (o) + 8), FIELD_N("bid_sz_" i, (o) + 16, U32),   \
		FIELD_N("ask_sz_" i, (o) + 20, U32), FIELD("bid_ct_" i, (o) + 24, U32),            \
		FIELD("ask_ct_" i, (o) + 28, U32)
#define CLEVEL(i, o)                                                                               \
	PRICE("bid_px_" i, o), PRICE("ask_px_" i, (o) + 8), FIELD_N("bid_sz_" i, (o) + 16, U32),   \
		FIELD_N("ask_sz_" i, (o) + 20, U32), FIELD("bid_pb_" i, (o) + 24, U16),            \
		RESERVED("_reserved_bid_" i, (o) + 26, 2), FIELD("ask_pb_" i, (o) + 28, U16),      \
		RESERVED("_reserved_ask_" i, (o) + 30, 2)

/* What trades, mbp-1, mbp-10 and tbbo share. */
#define TRADE                                                                                      \
	HEADER, PRICE("price", 16), FIELD_N("size", 24, U32), TEXT("action", 28, 1),               \
		TEXT("side", 29, 1), FIELD("flags", 30, U8), FIELD("depth", 31, U8),               \
		KEY("ts_recv", 32), DELTA("ts_in_delta", 40), FIELD("sequence", 44, U32)

static const struct stoup_field mbo_fields[] = {
	HEADER,
	FIELD("order_id", 16, U64),
	PRICE("price", 24),
	FIELD_N("size", 32, U32),
	FIELD("flags", 36, U8),
	FIELD("channel_id", 37, U8),
	TEXT("action", 38, 1),
	TEXT("side", 39, 1),
	KEY("ts_recv", 40),
	DELTA("ts_in_delta", 48),
	FIELD("sequence", 52, U32),
};

static const struct stoup_field trade_fields[] = {TRADE};
static const struct stoup_field mbp1_fields[] = {TRADE, LEVEL("00", 48)};
static const struct stoup_field mbp10_fields[] = {
	TRADE,
	LEVEL("00", 48),
	LEVEL("01", 80),
	LEVEL("02", 112),
	LEVEL("03", 144),
	LEVEL("04", 176),
	LEVEL("05", 208),
	LEVEL("06", 240),
	LEVEL("07", 272),
	LEVEL("08", 304),
	LEVEL("09", 336),
};

static const struct stoup_field bbo_fields[] = {
	HEADER,
	PRICE("price", 16),
	FIELD_N("size", 24, U32),
	RESERVED("_reserved1", 28, 1),
	TEXT("side", 29, 1),
	FIELD("flags", 30, U8),
	RESERVED("_reserved2", 31, 1),
	KEY("ts_recv", 32),
	RESERVED("_reserved3", 40, 4),
	FIELD("sequence", 44, U32),
	LEVEL("00", 48),
};

static const struct stoup_field cmbp1_fields[] = {
	HEADER,
	PRICE("price", 16),
	FIELD_N("size", 24, U32),
	TEXT("action", 28, 1),
	TEXT("side", 29, 1),
	FIELD("flags", 30, U8),
	RESERVED("_reserved1", 31, 1),
	KEY("ts_recv", 32),
	DELTA("ts_in_delta", 40),
	RESERVED("_reserved2", 44, 4),
	CLEVEL("00", 48),
};

static const struct stoup_field cbbo_fields[] = {
	HEADER,
	PRICE("price", 16),
	FIELD_N("size", 24, U32),
	RESERVED("_reserved1", 28, 1),
	TEXT("side", 29, 1),
	FIELD("flags", 30, U8),
	RESERVED("_reserved2", 31, 1),
	KEY("ts_recv", 32),
	RESERVED("_reserved3", 40, 8),
	CLEVEL("00", 48),
};

static const struct stoup_field ohlcv_fields[] = {
	HEADER_KEY,
	PRICE("open", 16),
	PRICE("high", 24),
	PRICE("low", 32),
	PRICE("close", 40),
	FIELD("volume", 48, U64),
};

static const struct stoup_field status_fields[] = {
	HEADER,
	KEY("ts_recv", 16),
	FIELD("action", 24, U16),
	FIELD("reason", 26, U16),
	FIELD("trading_event", 28, U16),
	TEXT("is_trading", 30, 1),
	TEXT("is_quoting", 31, 1),
	TEXT("is_short_sell_restricted", 32, 1),
	RESERVED("_reserved", 33, 7),
};

static const struct stoup_field imbalance_fields[] = {
	HEADER,
	KEY("ts_recv", 16),
	PRICE("ref_price", 24),
	TIME("auction_time", 32),
	PRICE("cont_book_clr_price", 40),
	PRICE("auct_interest_clr_price", 48),
	PRICE("ssr_filling_price", 56),
	PRICE("ind_match_price", 64),
	PRICE("upper_collar", 72),
	PRICE("lower_collar", 80),
	FIELD_N("paired_qty", 88, U32),
	FIELD_N("total_imbalance_qty", 92, U32),
	FIELD_N("market_imbalance_qty", 96, U32),
	FIELD_N("unpaired_qty", 100, U32),
	TEXT("auction_type", 104, 1),
	TEXT("side", 105, 1),
	FIELD("auction_status", 106, U8),
	FIELD("freeze_status", 107, U8),
	FIELD("num_extensions", 108, U8),
	TEXT("unpaired_side", 109, 1),
	TEXT("significant_imbalance", 110, 1),
	RESERVED("_reserved", 111, 1),
};

/* ---- definitions: parts that repeat at shifted offsets
 * ---------------------------------------- */

#define DEFINITION_PRICES                                                                          \
	KEY("ts_recv", 16), PRICE("min_price_increment", 24), PRICE("display_factor", 32),         \
		TIME("expiration", 40), TIME("activation", 48), PRICE("high_limit_price", 56),     \
		PRICE("low_limit_price", 64), PRICE("max_price_variation", 72)

/* Eight 32-bit numbers from the depth to the least trade volume. */
#define DEFINITION_LOTS(o)                                                                         \
	FIELD_N("market_depth_implied", o, I32), FIELD_N("market_depth", (o) + 4, I32),            \
		FIELD_N("market_segment_id", (o) + 8, U32),                                        \
		FIELD_N("max_trade_vol", (o) + 12, U32), FIELD_N("min_lot_size", (o) + 16, I32),   \
		FIELD_N("min_lot_size_block", (o) + 20, I32),                                      \
		FIELD_N("min_lot_size_round_lot", (o) + 24, I32),                                  \
		FIELD_N("min_trade_vol", (o) + 28, U32)

#define DEFINITION_CONTRACT(o)                                                                     \
	FIELD_N("contract_multiplier", o, I32), FIELD_N("decay_quantity", (o) + 4, I32),           \
		FIELD_N("original_contract_size", (o) + 8, I32)

#define DEFINITION_DATES(o)                                                                        \
	FIELD_N("appl_id", o, I16), FIELD_N("maturity_year", (o) + 2, U16),                        \
		FIELD_N("decay_start_date", (o) + 4, U16), FIELD_N("channel_id", (o) + 6, U16)

/* The texts: their order never changed, the lengths of symbol (s) and asset (a) did. */
#define DEFINITION_TEXTS(o, s, a)                                                                  \
	TEXT("currency", o, 4), TEXT("settl_currency", (o) + 4, 4),                                \
		TEXT("secsubtype", (o) + 8, 6), TEXT("raw_symbol", (o) + 14, s),                   \
		TEXT("group", (o) + 14 + (s), 21), TEXT("exchange", (o) + 35 + (s), 5),            \
		TEXT("asset", (o) + 40 + (s), a), TEXT("cfi", (o) + 40 + (s) + (a), 7),            \
		TEXT("security_type", (o) + 47 + (s) + (a), 7),                                    \
		TEXT("unit_of_measure", (o) + 54 + (s) + (a), 31),                                 \
		TEXT("underlying", (o) + 85 + (s) + (a), 21),                                      \
		TEXT("strike_price_currency", (o) + 106 + (s) + (a), 4)

#define DEFINITION_TAIL(o)                                                                         \
	TEXT("security_update_action", o, 1), FIELD_N("maturity_month", (o) + 1, U8),              \
		FIELD_N("maturity_day", (o) + 2, U8), FIELD_N("maturity_week", (o) + 3, U8),       \
		TEXT("user_defined_instrument", (o) + 4, 1),                                       \
		FIELD_N("contract_multiplier_unit", (o) + 5, I8),                                  \
		FIELD_N("flow_schedule_type", (o) + 6, I8), FIELD_N("tick_rule", (o) + 7, U8)

/* Versions 1 and 2: from the matching algorithm to the end. */
#define DEFINITION_CODES(o)                                                                        \
	TEXT("match_algorithm", o, 1), FIELD_N("md_security_trading_status", (o) + 1, U8),         \
		FIELD_N("main_fraction", (o) + 2, U8),                                             \
		FIELD_N("price_display_format", (o) + 3, U8),                                      \
		FIELD_N("settl_price_type", (o) + 4, U8), FIELD_N("sub_fraction", (o) + 5, U8),    \
		FIELD_N("underlying_product", (o) + 6, U8), DEFINITION_TAIL((o) + 7)

static const struct stoup_field definition_v1_fields[] = {
	HEADER,
	DEFINITION_PRICES,
	PRICE("trading_reference_price", 80),
	PRICE("unit_of_measure_qty", 88),
	PRICE("min_price_increment_amount", 96),
	PRICE("price_ratio", 104),
	FIELD_N("inst_attrib_value", 112, I32),
	FIELD("underlying_id", 116, U32),
	FIELD("raw_instrument_id", 120, U32),
	DEFINITION_LOTS(124),
	RESERVED("_reserved2", 156, 4),
	DEFINITION_CONTRACT(160),
	RESERVED("_reserved3", 172, 4),
	FIELD_N("trading_reference_date", 176, U16),
	DEFINITION_DATES(178),
	DEFINITION_TEXTS(186, 22, 7),
	TEXT("instrument_class", 325, 1),
	RESERVED("_reserved4", 326, 2),
	PRICE("strike_price", 328),
	RESERVED("_reserved5", 336, 6),
	DEFINITION_CODES(342),
	RESERVED("_dummy", 357, 3),
};

static const struct stoup_field definition_v2_fields[] = {
	HEADER,
	DEFINITION_PRICES,
	PRICE("trading_reference_price", 80),
	PRICE("unit_of_measure_qty", 88),
	PRICE("min_price_increment_amount", 96),
	PRICE("price_ratio", 104),
	PRICE("strike_price", 112),
	FIELD_N("inst_attrib_value", 120, I32),
	FIELD("underlying_id", 124, U32),
	FIELD("raw_instrument_id", 128, U32),
	DEFINITION_LOTS(132),
	DEFINITION_CONTRACT(164),
	FIELD_N("trading_reference_date", 176, U16),
	DEFINITION_DATES(178),
	DEFINITION_TEXTS(186, 71, 7),
	TEXT("instrument_class", 374, 1),
	DEFINITION_CODES(375),
	RESERVED("_reserved", 390, 10),
};

static const struct stoup_field definition_fields[] = {
	HEADER,
	DEFINITION_PRICES,
	PRICE("unit_of_measure_qty", 80),
	PRICE("min_price_increment_amount", 88),
	PRICE("price_ratio", 96),
	PRICE("strike_price", 104),
	FIELD("raw_instrument_id", 112, U64),
	PRICE("leg_price", 120),
	PRICE("leg_delta", 128),
	FIELD_N("inst_attrib_value", 136, I32),
	FIELD("underlying_id", 140, U32),
	DEFINITION_LOTS(144),
	DEFINITION_CONTRACT(176),
	FIELD("leg_instrument_id", 188, U32),
	FIELD("leg_ratio_price_numerator", 192, I32),
	FIELD("leg_ratio_price_denominator", 196, I32),
	FIELD("leg_ratio_qty_numerator", 200, I32),
	FIELD("leg_ratio_qty_denominator", 204, I32),
	FIELD("leg_underlying_id", 208, U32),
	DEFINITION_DATES(212),
	FIELD("leg_count", 220, U16),
	FIELD("leg_index", 222, U16),
	DEFINITION_TEXTS(224, 71, 11),
	TEXT("leg_raw_symbol", 416, 71),
	TEXT("instrument_class", 487, 1),
	TEXT("match_algorithm", 488, 1),
	FIELD_N("main_fraction", 489, U8),
	FIELD_N("price_display_format", 490, U8),
	FIELD_N("sub_fraction", 491, U8),
	FIELD_N("underlying_product", 492, U8),
	DEFINITION_TAIL(493),
	TEXT("leg_instrument_class", 501, 1),
	TEXT("leg_side", 502, 1),
	RESERVED("_reserved", 503, 17),
};

/* ---- statistics and the messages of a live session
 * -------------------------------------------- */

#define STATISTICS_CODES(o)                                                                        \
	FIELD("stat_type", o, U16), FIELD_N("channel_id", (o) + 2, U16),                           \
		FIELD("update_action", (o) + 4, U8), FIELD("stat_flags", (o) + 5, U8)

static const struct stoup_field statistics_v1_fields[] = {
	HEADER,
	KEY("ts_recv", 16),
	TIME("ts_ref", 24),
	PRICE("price", 32),
	FIELD_N("quantity", 40, I32),
	FIELD("sequence", 44, U32),
	DELTA("ts_in_delta", 48),
	STATISTICS_CODES(52),
	RESERVED("_reserved", 58, 6),
};

static const struct stoup_field statistics_fields[] = {
	HEADER,
	KEY("ts_recv", 16),
	TIME("ts_ref", 24),
	PRICE("price", 32),
	FIELD_N("quantity", 40, I64),
	FIELD("sequence", 48, U32),
	DELTA("ts_in_delta", 52),
	STATISTICS_CODES(56),
	RESERVED("_reserved", 62, 18),
};

static const struct stoup_field error_v1_fields[] = {HEADER_KEY, TEXT("err", 16, 64)};
static const struct stoup_field error_fields[] = {
	HEADER_KEY,
	TEXT("err", 16, 302),
	FIELD_N("code", 318, U8),
	FIELD("is_last", 319, U8),
};

static const struct stoup_field symbol_mapping_v1_fields[] = {
	HEADER_KEY,
	TEXT("stype_in_symbol", 16, 22),
	TEXT("stype_out_symbol", 38, 22),
	RESERVED("_dummy", 60, 4),
	TIME("start_ts", 64),
	TIME("end_ts", 72),
};
static const struct stoup_field symbol_mapping_fields[] = {
	HEADER_KEY,
	FIELD("stype_in", 16, U8),
	TEXT("stype_in_symbol", 17, 71),
	FIELD("stype_out", 88, U8),
	TEXT("stype_out_symbol", 89, 71),
	TIME("start_ts", 160),
	TIME("end_ts", 168),
};

static const struct stoup_field system_v1_fields[] = {HEADER_KEY, TEXT("msg", 16, 64)};
static const struct stoup_field system_fields[] = {
	HEADER_KEY,
	TEXT("msg", 16, 303),
	FIELD_N("code", 319, U8),
};

/* ---- what is not DBN
 * -------------------------------------------------------------------------- */

#define SIGNED_TIME(n, o, f)                                                                       \
	{                                                                                          \
		.name = n, .off = o, .cnt = 1, .type = STOUP_TYPE_I64,                             \
		.flags = STOUP_FIELD_TIME | (f), .unit = "ns"                                      \
	}

/* hftbacktest's event: `ev` is a kind in its low byte and flags in the bits 28 to 31. */
static const struct stoup_field event64_fields[] = {
	FIELD("ev", 0, U64),
	SIGNED_TIME("exch_ts", 8, 0),
	SIGNED_TIME("local_ts", 16, STOUP_FIELD_KEY),
	FIELD("px", 24, F64),
	FIELD("qty", 32, F64),
	FIELD("order_id", 40, U64),
	FIELD("ival", 48, I64),
	FIELD("fval", 56, F64),
};

static const struct stoup_field tick_fields[] = {
	SIGNED_TIME("ts", 0, STOUP_FIELD_KEY),
	PRICE("price", 8),
	FIELD_N("size", 16, U32),
	FIELD("flags", 20, U32),
};

static const struct stoup_field bar_fields[] = {
	SIGNED_TIME("ts", 0, STOUP_FIELD_KEY),
	PRICE("open", 8),
	PRICE("high", 16),
	PRICE("low", 24),
	PRICE("close", 32),
	FIELD_N("volume", 40, U64),
};

/* ITCH 5.0: prices have the feed's 4 decimals. */
#define ITCH_PRICE(n, o)                                                                           \
	{                                                                                          \
		.name = n, .off = o, .cnt = 1, .type = STOUP_TYPE_U32, .exp10 = -4                 \
	}

static const struct stoup_field itch_mbo_fields[] = {
	SIGNED_TIME("ts", 0, STOUP_FIELD_KEY),
	FIELD("seq", 8, U64),
	FIELD("order_ref", 16, U64),
	FIELD_N("prev_ref", 24, U64),
	FIELD_N("match", 32, U64),
	ITCH_PRICE("price", 40),
	ITCH_PRICE("order_price", 44),
	FIELD("size", 48, U32),
	FIELD("left", 52, U32),
	FIELD("before", 56, U32),
	TEXT("mpid", 60, 4),
	FIELD("locate", 64, U16),
	FIELD("tracking", 66, U16),
	TEXT("type", 68, 1),
	TEXT("side", 69, 1),
	TEXT("printable", 70, 1),
	RESERVED("_reserved1", 71, 1),
};

static const struct stoup_field itch_trade_fields[] = {
	SIGNED_TIME("ts", 0, STOUP_FIELD_KEY),
	FIELD("seq", 8, U64),
	FIELD("match", 16, U64),
	FIELD_N("order_ref", 24, U64),
	FIELD_N("size", 32, U64),
	{.name = "price",
		.off = 40,
		.cnt = 1,
		.type = STOUP_TYPE_U32,
		.flags = STOUP_FIELD_NULL,
		.exp10 = -4,
		.null_bits = NULL_U32},
	TEXT("mpid", 44, 4),
	FIELD("locate", 48, U16),
	FIELD("tracking", 50, U16),
	TEXT("type", 52, 1),
	TEXT("side", 53, 1),
	TEXT("printable", 54, 1),
	TEXT("cross", 55, 1),
};

/* ---- the table
 * -------------------------------------------------------------------------------- */

#define SCHEMA(n, list, len, key, hash_of)                                                         \
	{                                                                                          \
		.name = n, .stride = len, .align = 8, .key_off = key, .hash = UINT64_C(hash_of),   \
		.field_cnt = COUNT_OF(list), .fields = list                                        \
	}
#define BARS(n, list, len, key, interval, hash_of)                                                 \
	{                                                                                          \
		.name = n, .stride = len, .align = 8, .key_off = key, .flags = STOUP_SCHEMA_BAR,   \
		.interval_ns = interval, .hash = UINT64_C(hash_of), .field_cnt = COUNT_OF(list),   \
		.fields = list                                                                     \
	}

#define MESSAGES(n, hash_of)                                                                       \
	{                                                                                          \
		.name = n, .align = 8, .flags = STOUP_SCHEMA_VARIABLE, .hash = UINT64_C(hash_of)   \
	}

static const struct stoup_schema builtins[] = {
	SCHEMA("mbo", mbo_fields, 56, 40, 0x91316c971859939c),
	SCHEMA("trades", trade_fields, 48, 32, 0xc79992b9fcfbeea5),
	SCHEMA("mbp-1", mbp1_fields, 80, 32, 0x69a9cb28e51b0407),
	SCHEMA("tbbo", mbp1_fields, 80, 32, 0x72f37e2e15ae2fbf),
	SCHEMA("mbp-10", mbp10_fields, 368, 32, 0x321a6137bd187882),
	SCHEMA("bbo-1s", bbo_fields, 80, 32, 0x4cd1efc654974859),
	SCHEMA("bbo-1m", bbo_fields, 80, 32, 0xae7bb583d4967e7f),
	BARS("ohlcv-1s", ohlcv_fields, 56, 8, SECOND_NS, 0x46a80bf14b3ff5ea),
	BARS("ohlcv-1m", ohlcv_fields, 56, 8, 60 * SECOND_NS, 0x1083241d820176cb),
	BARS("ohlcv-1h", ohlcv_fields, 56, 8, 3600 * SECOND_NS, 0x966df024dd77172b),
	BARS("ohlcv-1d", ohlcv_fields, 56, 8, 86400 * SECOND_NS, 0x303b2856b4c4832e),
	BARS("ohlcv-eod", ohlcv_fields, 56, 8, 86400 * SECOND_NS, 0xd2b772676a01024d),
	SCHEMA("status", status_fields, 40, 16, 0x701e290970d39dbd),
	SCHEMA("imbalance", imbalance_fields, 112, 16, 0xc52ef9241969d242),
	SCHEMA("definition-v1", definition_v1_fields, 360, 16, 0x97d3b2af6f927aaa),
	SCHEMA("definition-v2", definition_v2_fields, 400, 16, 0xd6420a82c3c10a99),
	SCHEMA("definition", definition_fields, 520, 16, 0x5a6bf2d9e92ab280),
	SCHEMA("statistics-v1", statistics_v1_fields, 64, 16, 0xb66da975edfdcd10),
	SCHEMA("statistics", statistics_fields, 80, 16, 0x43a172c1e82c898c),
	SCHEMA("cmbp-1", cmbp1_fields, 80, 32, 0x1a8a94d6c84fd216),
	SCHEMA("tcbbo", cmbp1_fields, 80, 32, 0x62cbd2632cce1402),
	SCHEMA("cbbo-1s", cbbo_fields, 80, 32, 0x8baaad992f79d4e7),
	SCHEMA("cbbo-1m", cbbo_fields, 80, 32, 0x2472fc4d7fe82b5d),
	SCHEMA("error-v1", error_v1_fields, 80, 8, 0x8f5624358e5049e6),
	SCHEMA("error", error_fields, 320, 8, 0x69f51769946fcb69),
	SCHEMA("symbol-mapping-v1", symbol_mapping_v1_fields, 80, 8, 0xb3db160034d5d6c6),
	SCHEMA("symbol-mapping", symbol_mapping_fields, 176, 8, 0x1033e0c60e3c2b8e),
	SCHEMA("system-v1", system_v1_fields, 80, 8, 0x825f0183cc45fe77),
	SCHEMA("system", system_fields, 320, 8, 0xb6e5a70397950267),
	{.name = "event64",
		.stride = 64,
		.align = 64,
		.key_off = 16,
		.hash = UINT64_C(0xa77a18a6304a9eea),
		.field_cnt = COUNT_OF(event64_fields),
		.fields = event64_fields},
	SCHEMA("tick", tick_fields, 24, 0, 0x2bf50be9681a7235),
	BARS("bar", bar_fields, 48, 0, 0, 0x12f2213eb1a2ee21),
	MESSAGES("json", 0x507bd4d7695250b8),   /* JSON texts, UTF-8 */
	MESSAGES("bipf", 0xed10a59ac968d23b),   /* documents in the tagged binary form */
	MESSAGES("itch50", 0xe4fc5713268f1dc3), /* Nasdaq ITCH 5.0 messages as they are sent */
	MESSAGES("frames", 0x97f52189e80dcd7c), /* opaque bytes */
	SCHEMA("itch-mbo", itch_mbo_fields, 72, 0, 0x0d77276492f0da70),
	SCHEMA("itch-trade", itch_trade_fields, 56, 0, 0xa4bf6f093c8bcce7),
};

const struct stoup_schema *stoup_schema_builtin(size_t idx)
{
	return idx < COUNT_OF(builtins) ? &builtins[idx] : NULL;
}
