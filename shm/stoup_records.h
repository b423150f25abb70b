/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_records.h - the records of the built-in schemas as C structs.
 *
 *      span.base ---> [ struct stoup_mbo ][ struct stoup_mbo ][ struct stoup_mbo ] ...
 *                       stride bytes each
 *
 * Check once that a series has the layout (stoup_schema_require), then read through a pointer to
 * the struct: the loop body is a plain load. Names, order and layout of the DBN kinds are
 * Databento's (github.com/databento/dbn, versions 1 to 3), those of event64 are hftbacktest's.
 *
 * Units, where a field says nothing else: prices are integers of 1e-9, undefined = INT64_MAX; times
 * are nanoseconds since 1970-01-01T00:00:00Z, undefined = UINT64_MAX; sizes are undefined at
 * UINT32_MAX. Texts are padded with NUL bytes and have one at least, but for fields of one byte.
 *
 * Invariant: each struct has the size and offsets of its schema; they are asserted here, and a
 * test compares them with the schema table.
 *
 * Concurrency: records in a pool are read-only; a span's records stay as long as its lease.
 */
#ifndef STOUP_RECORDS_H
#define STOUP_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define STOUP_RECORD_ASSERT(condition, text) static_assert(condition, text)
#else
#define STOUP_RECORD_ASSERT(condition, text) _Static_assert(condition, text)
#endif
#define STOUP_RECORD_SIZE(name, len)                                                               \
	STOUP_RECORD_ASSERT(sizeof(struct name) == (len), "size of " #name)
#define STOUP_RECORD_AT(name, member, off)                                                         \
	STOUP_RECORD_ASSERT(offsetof(struct name, member) == (off), "offset of " #name "." #member)
#define STOUP_RECORD_AT2(name, m1, o1, m2, o2)                                                     \
	STOUP_RECORD_AT(name, m1, o1);                                                             \
	STOUP_RECORD_AT(name, m2, o2)
#define STOUP_RECORD_AT3(name, m1, o1, m2, o2, m3, o3)                                             \
	STOUP_RECORD_AT2(name, m1, o1, m2, o2);                                                    \
	STOUP_RECORD_AT(name, m3, o3)

/* ---- DBN: shared parts ----------------------------------------------------------------------- */

/* The header of every DBN record. Source: dbn RecordHeader. */
struct stoup_dbn_header {
	uint8_t length;         /* of the record, in words of 4 bytes */
	uint8_t rtype;          /* kind of record */
	uint16_t publisher_id;  /* venue and dataset */
	uint32_t instrument_id; /* unique within a dataset and day */
	uint64_t ts_event;      /* time of the matching engine */
};
STOUP_RECORD_SIZE(stoup_dbn_header, 16);
STOUP_RECORD_AT3(stoup_dbn_header, length, 0, rtype, 1, publisher_id, 2);
STOUP_RECORD_AT2(stoup_dbn_header, instrument_id, 4, ts_event, 8);

/* One level of a book. Source: dbn BidAskPair. */
struct stoup_level {
	int64_t bid_px;
	int64_t ask_px;
	uint32_t bid_sz;
	uint32_t ask_sz;
	uint32_t bid_ct; /* orders */
	uint32_t ask_ct;
};
STOUP_RECORD_SIZE(stoup_level, 32);
STOUP_RECORD_AT3(stoup_level, bid_px, 0, ask_px, 8, bid_sz, 16);
STOUP_RECORD_AT3(stoup_level, ask_sz, 20, bid_ct, 24, ask_ct, 28);

/* One level of a book of several venues. Source: dbn ConsolidatedBidAskPair. */
struct stoup_clevel {
	int64_t bid_px;
	int64_t ask_px;
	uint32_t bid_sz;
	uint32_t ask_sz;
	uint16_t bid_pb; /* publisher of the bid */
	uint8_t _reserved1[2];
	uint16_t ask_pb; /* publisher of the ask */
	uint8_t _reserved2[2];
};
STOUP_RECORD_SIZE(stoup_clevel, 32);
STOUP_RECORD_AT3(stoup_clevel, bid_px, 0, ask_px, 8, bid_sz, 16);
STOUP_RECORD_AT3(stoup_clevel, ask_sz, 20, bid_pb, 24, _reserved1, 26);
STOUP_RECORD_AT2(stoup_clevel, ask_pb, 28, _reserved2, 30);

/* ---- DBN: orders, trades, books -------------------------------------------------------------- */

/* mbo: one event of one order. Source: dbn MboMsg. */
struct stoup_mbo {
	struct stoup_dbn_header hd;
	uint64_t order_id;
	int64_t price;
	uint32_t size;
	uint8_t flags; /* bits: 0x80 last of the event, 0x20 snapshot */
	uint8_t channel_id;
	char action;         /* A add, C cancel, M modify, R clear, T trade, F fill, N none */
	char side;           /* B bid, A ask, N none */
	uint64_t ts_recv;    /* time of capture: the key */
	int32_t ts_in_delta; /* ts_recv - time of sending, ns */
	uint32_t sequence;   /* number of the venue */
};
STOUP_RECORD_SIZE(stoup_mbo, 56);
STOUP_RECORD_AT3(stoup_mbo, hd, 0, order_id, 16, price, 24);
STOUP_RECORD_AT3(stoup_mbo, size, 32, flags, 36, channel_id, 37);
STOUP_RECORD_AT3(stoup_mbo, action, 38, side, 39, ts_recv, 40);
STOUP_RECORD_AT2(stoup_mbo, ts_in_delta, 48, sequence, 52);

/* trades: one trade. Source: dbn TradeMsg. The order of the fields is not that of mbo. */
struct stoup_trade {
	struct stoup_dbn_header hd;
	int64_t price;
	uint32_t size;
	char action;         /* as mbo; T in trades */
	char side;           /* as mbo; of the aggressor */
	uint8_t flags;       /* as mbo */
	uint8_t depth;       /* level that changed */
	uint64_t ts_recv;    /* the key */
	int32_t ts_in_delta; /* ns */
	uint32_t sequence;
};
STOUP_RECORD_SIZE(stoup_trade, 48);
STOUP_RECORD_AT3(stoup_trade, hd, 0, price, 16, size, 24);
STOUP_RECORD_AT3(stoup_trade, action, 28, side, 29, flags, 30);
STOUP_RECORD_AT3(stoup_trade, depth, 31, ts_recv, 32, ts_in_delta, 40);
STOUP_RECORD_AT(stoup_trade, sequence, 44);

/* mbp-1 and tbbo: an event and the best level after it (tbbo: before the trade). Source: dbn
 * Mbp1Msg. */
struct stoup_mbp1 {
	struct stoup_dbn_header hd;
	int64_t price;
	uint32_t size;
	char action;         /* as mbo; T in trades */
	char side;           /* as mbo; of the aggressor */
	uint8_t flags;       /* as mbo */
	uint8_t depth;       /* level that changed */
	uint64_t ts_recv;    /* the key */
	int32_t ts_in_delta; /* ns */
	uint32_t sequence;
	struct stoup_level levels[1];
};
STOUP_RECORD_SIZE(stoup_mbp1, 80);
STOUP_RECORD_AT3(stoup_mbp1, hd, 0, price, 16, size, 24);
STOUP_RECORD_AT3(stoup_mbp1, action, 28, side, 29, flags, 30);
STOUP_RECORD_AT3(stoup_mbp1, depth, 31, ts_recv, 32, ts_in_delta, 40);
STOUP_RECORD_AT2(stoup_mbp1, sequence, 44, levels, 48);

/* mbp-10: an event and ten levels after it. Source: dbn Mbp10Msg. */
struct stoup_mbp10 {
	struct stoup_dbn_header hd;
	int64_t price;
	uint32_t size;
	char action;         /* as mbo; T in trades */
	char side;           /* as mbo; of the aggressor */
	uint8_t flags;       /* as mbo */
	uint8_t depth;       /* level that changed */
	uint64_t ts_recv;    /* the key */
	int32_t ts_in_delta; /* ns */
	uint32_t sequence;
	struct stoup_level levels[10];
};
STOUP_RECORD_SIZE(stoup_mbp10, 368);
STOUP_RECORD_AT3(stoup_mbp10, hd, 0, price, 16, size, 24);
STOUP_RECORD_AT3(stoup_mbp10, action, 28, side, 29, flags, 30);
STOUP_RECORD_AT3(stoup_mbp10, depth, 31, ts_recv, 32, ts_in_delta, 40);
STOUP_RECORD_AT2(stoup_mbp10, sequence, 44, levels, 48);

/* bbo-1s, bbo-1m: the best level at the end of an interval. Source: dbn BboMsg. */
struct stoup_bbo {
	struct stoup_dbn_header hd;
	int64_t price; /* of the last trade */
	uint32_t size; /* of the last trade */
	uint8_t _reserved1;
	char side; /* of the last trade */
	uint8_t flags;
	uint8_t _reserved2;
	uint64_t ts_recv; /* end of the interval: the key */
	uint8_t _reserved3[4];
	uint32_t sequence;
	struct stoup_level levels[1];
};
STOUP_RECORD_SIZE(stoup_bbo, 80);
STOUP_RECORD_AT3(stoup_bbo, hd, 0, price, 16, size, 24);
STOUP_RECORD_AT3(stoup_bbo, _reserved1, 28, side, 29, flags, 30);
STOUP_RECORD_AT3(stoup_bbo, _reserved2, 31, ts_recv, 32, _reserved3, 40);
STOUP_RECORD_AT2(stoup_bbo, sequence, 44, levels, 48);

/* cmbp-1 and tcbbo: an event and the best level of several venues. Source: dbn Cmbp1Msg. */
struct stoup_cmbp1 {
	struct stoup_dbn_header hd;
	int64_t price;
	uint32_t size;
	char action;
	char side;
	uint8_t flags;
	uint8_t _reserved1;
	uint64_t ts_recv;    /* the key */
	int32_t ts_in_delta; /* ns */
	uint8_t _reserved2[4];
	struct stoup_clevel levels[1];
};
STOUP_RECORD_SIZE(stoup_cmbp1, 80);
STOUP_RECORD_AT3(stoup_cmbp1, hd, 0, price, 16, size, 24);
STOUP_RECORD_AT3(stoup_cmbp1, action, 28, side, 29, flags, 30);
STOUP_RECORD_AT3(stoup_cmbp1, _reserved1, 31, ts_recv, 32, ts_in_delta, 40);
STOUP_RECORD_AT2(stoup_cmbp1, _reserved2, 44, levels, 48);

/* cbbo-1s, cbbo-1m: the best level of several venues at the end of an interval. Source: dbn
 * CbboMsg. */
struct stoup_cbbo {
	struct stoup_dbn_header hd;
	int64_t price; /* of the last trade */
	uint32_t size; /* of the last trade */
	uint8_t _reserved1;
	char side; /* of the last trade */
	uint8_t flags;
	uint8_t _reserved2;
	uint64_t ts_recv; /* end of the interval: the key */
	uint8_t _reserved3[8];
	struct stoup_clevel levels[1];
};
STOUP_RECORD_SIZE(stoup_cbbo, 80);
STOUP_RECORD_AT3(stoup_cbbo, hd, 0, price, 16, size, 24);
STOUP_RECORD_AT3(stoup_cbbo, _reserved1, 28, side, 29, flags, 30);
STOUP_RECORD_AT3(stoup_cbbo, _reserved2, 31, ts_recv, 32, _reserved3, 40);
STOUP_RECORD_AT(stoup_cbbo, levels, 48);

/* ohlcv-1s, -1m, -1h, -1d, -eod: one bar. hd.ts_event is its open time and the key: the bar is
 * known one interval later. Source: dbn OhlcvMsg. */
struct stoup_ohlcv {
	struct stoup_dbn_header hd;
	int64_t open;
	int64_t high;
	int64_t low;
	int64_t close;
	uint64_t volume;
};
STOUP_RECORD_SIZE(stoup_ohlcv, 56);
STOUP_RECORD_AT3(stoup_ohlcv, hd, 0, open, 16, high, 24);
STOUP_RECORD_AT3(stoup_ohlcv, low, 32, close, 40, volume, 48);

/* ---- DBN: the venue about an instrument ------------------------------------------------------ */

/* status: trading begins, halts, ends. Source: dbn StatusMsg. */
struct stoup_status_msg {
	struct stoup_dbn_header hd;
	uint64_t ts_recv; /* the key */
	uint16_t action;
	uint16_t reason;
	uint16_t trading_event;
	char is_trading; /* Y, N, ~ unknown */
	char is_quoting;
	char is_short_sell_restricted;
	uint8_t _reserved[7];
};
STOUP_RECORD_SIZE(stoup_status_msg, 40);
STOUP_RECORD_AT3(stoup_status_msg, hd, 0, ts_recv, 16, action, 24);
STOUP_RECORD_AT3(stoup_status_msg, reason, 26, trading_event, 28, is_trading, 30);
STOUP_RECORD_AT3(stoup_status_msg, is_quoting, 31, is_short_sell_restricted, 32, _reserved, 33);

/* imbalance: of an auction. Source: dbn ImbalanceMsg. */
struct stoup_imbalance {
	struct stoup_dbn_header hd;
	uint64_t ts_recv; /* the key */
	int64_t ref_price;
	uint64_t auction_time;
	int64_t cont_book_clr_price;
	int64_t auct_interest_clr_price;
	int64_t ssr_filling_price;
	int64_t ind_match_price;
	int64_t upper_collar;
	int64_t lower_collar;
	uint32_t paired_qty;
	uint32_t total_imbalance_qty;
	uint32_t market_imbalance_qty;
	uint32_t unpaired_qty;
	char auction_type;
	char side;
	uint8_t auction_status;
	uint8_t freeze_status;
	uint8_t num_extensions;
	char unpaired_side;
	char significant_imbalance;
	uint8_t _reserved[1];
};
STOUP_RECORD_SIZE(stoup_imbalance, 112);
STOUP_RECORD_AT3(stoup_imbalance, hd, 0, ts_recv, 16, ref_price, 24);
STOUP_RECORD_AT2(stoup_imbalance, auction_time, 32, cont_book_clr_price, 40);
STOUP_RECORD_AT2(stoup_imbalance, auct_interest_clr_price, 48, ssr_filling_price, 56);
STOUP_RECORD_AT3(stoup_imbalance, ind_match_price, 64, upper_collar, 72, lower_collar, 80);
STOUP_RECORD_AT2(stoup_imbalance, paired_qty, 88, total_imbalance_qty, 92);
STOUP_RECORD_AT3(stoup_imbalance, market_imbalance_qty, 96, unpaired_qty, 100, auction_type, 104);
STOUP_RECORD_AT3(stoup_imbalance, side, 105, auction_status, 106, freeze_status, 107);
STOUP_RECORD_AT2(stoup_imbalance, num_extensions, 108, unpaired_side, 109);
STOUP_RECORD_AT2(stoup_imbalance, significant_imbalance, 110, _reserved, 111);

/* definition-v1: an instrument, DBN version 1. Source: dbn v1::InstrumentDefMsg. */
struct stoup_definition_v1 {
	struct stoup_dbn_header hd;
	uint64_t ts_recv;            /* the key */
	int64_t min_price_increment; /* the tick */
	int64_t display_factor;
	uint64_t expiration;
	uint64_t activation;
	int64_t high_limit_price;
	int64_t low_limit_price;
	int64_t max_price_variation;
	int64_t trading_reference_price;
	int64_t unit_of_measure_qty;
	int64_t min_price_increment_amount;
	int64_t price_ratio;
	int32_t inst_attrib_value;
	uint32_t underlying_id;
	uint32_t raw_instrument_id;
	int32_t market_depth_implied;
	int32_t market_depth;
	uint32_t market_segment_id;
	uint32_t max_trade_vol;
	int32_t min_lot_size;
	int32_t min_lot_size_block;
	int32_t min_lot_size_round_lot;
	uint32_t min_trade_vol;
	uint8_t _reserved2[4];
	int32_t contract_multiplier;
	int32_t decay_quantity;
	int32_t original_contract_size;
	uint8_t _reserved3[4];
	uint16_t trading_reference_date; /* days since 1970 */
	int16_t appl_id;
	uint16_t maturity_year;
	uint16_t decay_start_date; /* days since 1970 */
	uint16_t channel_id;
	char currency[4];
	char settl_currency[4];
	char secsubtype[6];
	char raw_symbol[22];
	char group[21];
	char exchange[5];
	char asset[7];
	char cfi[7];
	char security_type[7];
	char unit_of_measure[31];
	char underlying[21];
	char strike_price_currency[4];
	char instrument_class; /* K stock, F future, C call, P put, S and T their spreads, B, X */
	uint8_t _reserved4[2];
	int64_t strike_price;
	uint8_t _reserved5[6];
	char match_algorithm;
	uint8_t md_security_trading_status;
	uint8_t main_fraction;
	uint8_t price_display_format;
	uint8_t settl_price_type;
	uint8_t sub_fraction;
	uint8_t underlying_product;
	char security_update_action; /* A add, M modify, D delete */
	uint8_t maturity_month;
	uint8_t maturity_day;
	uint8_t maturity_week;
	char user_defined_instrument; /* Y, N */
	int8_t contract_multiplier_unit;
	int8_t flow_schedule_type;
	uint8_t tick_rule;
	uint8_t _dummy[3];
};
STOUP_RECORD_SIZE(stoup_definition_v1, 360);
STOUP_RECORD_AT3(stoup_definition_v1, hd, 0, ts_recv, 16, min_price_increment, 24);
STOUP_RECORD_AT3(stoup_definition_v1, display_factor, 32, expiration, 40, activation, 48);
STOUP_RECORD_AT2(stoup_definition_v1, high_limit_price, 56, low_limit_price, 64);
STOUP_RECORD_AT2(stoup_definition_v1, max_price_variation, 72, trading_reference_price, 80);
STOUP_RECORD_AT2(stoup_definition_v1, unit_of_measure_qty, 88, min_price_increment_amount, 96);
STOUP_RECORD_AT3(stoup_definition_v1, price_ratio, 104, inst_attrib_value, 112, underlying_id, 116);
STOUP_RECORD_AT2(stoup_definition_v1, raw_instrument_id, 120, market_depth_implied, 124);
STOUP_RECORD_AT2(stoup_definition_v1, market_depth, 128, market_segment_id, 132);
STOUP_RECORD_AT2(stoup_definition_v1, max_trade_vol, 136, min_lot_size, 140);
STOUP_RECORD_AT2(stoup_definition_v1, min_lot_size_block, 144, min_lot_size_round_lot, 148);
STOUP_RECORD_AT2(stoup_definition_v1, min_trade_vol, 152, _reserved2, 156);
STOUP_RECORD_AT2(stoup_definition_v1, contract_multiplier, 160, decay_quantity, 164);
STOUP_RECORD_AT2(stoup_definition_v1, original_contract_size, 168, _reserved3, 172);
STOUP_RECORD_AT2(stoup_definition_v1, trading_reference_date, 176, appl_id, 178);
STOUP_RECORD_AT3(stoup_definition_v1, maturity_year, 180, decay_start_date, 182, channel_id, 184);
STOUP_RECORD_AT3(stoup_definition_v1, currency, 186, settl_currency, 190, secsubtype, 194);
STOUP_RECORD_AT3(stoup_definition_v1, raw_symbol, 200, group, 222, exchange, 243);
STOUP_RECORD_AT3(stoup_definition_v1, asset, 248, cfi, 255, security_type, 262);
STOUP_RECORD_AT2(stoup_definition_v1, unit_of_measure, 269, underlying, 300);
STOUP_RECORD_AT2(stoup_definition_v1, strike_price_currency, 321, instrument_class, 325);
STOUP_RECORD_AT3(stoup_definition_v1, _reserved4, 326, strike_price, 328, _reserved5, 336);
STOUP_RECORD_AT2(stoup_definition_v1, match_algorithm, 342, md_security_trading_status, 343);
STOUP_RECORD_AT2(stoup_definition_v1, main_fraction, 344, price_display_format, 345);
STOUP_RECORD_AT2(stoup_definition_v1, settl_price_type, 346, sub_fraction, 347);
STOUP_RECORD_AT2(stoup_definition_v1, underlying_product, 348, security_update_action, 349);
STOUP_RECORD_AT3(stoup_definition_v1, maturity_month, 350, maturity_day, 351, maturity_week, 352);
STOUP_RECORD_AT2(stoup_definition_v1, user_defined_instrument, 353, contract_multiplier_unit, 354);
STOUP_RECORD_AT3(stoup_definition_v1, flow_schedule_type, 355, tick_rule, 356, _dummy, 357);

/* definition-v2: an instrument, DBN version 2. Source: dbn v2::InstrumentDefMsg. */
struct stoup_definition_v2 {
	struct stoup_dbn_header hd;
	uint64_t ts_recv;            /* the key */
	int64_t min_price_increment; /* the tick */
	int64_t display_factor;
	uint64_t expiration;
	uint64_t activation;
	int64_t high_limit_price;
	int64_t low_limit_price;
	int64_t max_price_variation;
	int64_t trading_reference_price;
	int64_t unit_of_measure_qty;
	int64_t min_price_increment_amount;
	int64_t price_ratio;
	int64_t strike_price;
	int32_t inst_attrib_value;
	uint32_t underlying_id;
	uint32_t raw_instrument_id;
	int32_t market_depth_implied;
	int32_t market_depth;
	uint32_t market_segment_id;
	uint32_t max_trade_vol;
	int32_t min_lot_size;
	int32_t min_lot_size_block;
	int32_t min_lot_size_round_lot;
	uint32_t min_trade_vol;
	int32_t contract_multiplier;
	int32_t decay_quantity;
	int32_t original_contract_size;
	uint16_t trading_reference_date; /* days since 1970 */
	int16_t appl_id;
	uint16_t maturity_year;
	uint16_t decay_start_date; /* days since 1970 */
	uint16_t channel_id;
	char currency[4];
	char settl_currency[4];
	char secsubtype[6];
	char raw_symbol[71];
	char group[21];
	char exchange[5];
	char asset[7];
	char cfi[7];
	char security_type[7];
	char unit_of_measure[31];
	char underlying[21];
	char strike_price_currency[4];
	char instrument_class; /* K stock, F future, C call, P put, S and T their spreads, B, X */
	char match_algorithm;
	uint8_t md_security_trading_status;
	uint8_t main_fraction;
	uint8_t price_display_format;
	uint8_t settl_price_type;
	uint8_t sub_fraction;
	uint8_t underlying_product;
	char security_update_action; /* A add, M modify, D delete */
	uint8_t maturity_month;
	uint8_t maturity_day;
	uint8_t maturity_week;
	char user_defined_instrument; /* Y, N */
	int8_t contract_multiplier_unit;
	int8_t flow_schedule_type;
	uint8_t tick_rule;
	uint8_t _reserved[10];
};
STOUP_RECORD_SIZE(stoup_definition_v2, 400);
STOUP_RECORD_AT3(stoup_definition_v2, hd, 0, ts_recv, 16, min_price_increment, 24);
STOUP_RECORD_AT3(stoup_definition_v2, display_factor, 32, expiration, 40, activation, 48);
STOUP_RECORD_AT2(stoup_definition_v2, high_limit_price, 56, low_limit_price, 64);
STOUP_RECORD_AT2(stoup_definition_v2, max_price_variation, 72, trading_reference_price, 80);
STOUP_RECORD_AT2(stoup_definition_v2, unit_of_measure_qty, 88, min_price_increment_amount, 96);
STOUP_RECORD_AT3(stoup_definition_v2, price_ratio, 104, strike_price, 112, inst_attrib_value, 120);
STOUP_RECORD_AT2(stoup_definition_v2, underlying_id, 124, raw_instrument_id, 128);
STOUP_RECORD_AT2(stoup_definition_v2, market_depth_implied, 132, market_depth, 136);
STOUP_RECORD_AT2(stoup_definition_v2, market_segment_id, 140, max_trade_vol, 144);
STOUP_RECORD_AT2(stoup_definition_v2, min_lot_size, 148, min_lot_size_block, 152);
STOUP_RECORD_AT2(stoup_definition_v2, min_lot_size_round_lot, 156, min_trade_vol, 160);
STOUP_RECORD_AT2(stoup_definition_v2, contract_multiplier, 164, decay_quantity, 168);
STOUP_RECORD_AT2(stoup_definition_v2, original_contract_size, 172, trading_reference_date, 176);
STOUP_RECORD_AT3(stoup_definition_v2, appl_id, 178, maturity_year, 180, decay_start_date, 182);
STOUP_RECORD_AT3(stoup_definition_v2, channel_id, 184, currency, 186, settl_currency, 190);
STOUP_RECORD_AT3(stoup_definition_v2, secsubtype, 194, raw_symbol, 200, group, 271);
STOUP_RECORD_AT3(stoup_definition_v2, exchange, 292, asset, 297, cfi, 304);
STOUP_RECORD_AT3(stoup_definition_v2, security_type, 311, unit_of_measure, 318, underlying, 349);
STOUP_RECORD_AT2(stoup_definition_v2, strike_price_currency, 370, instrument_class, 374);
STOUP_RECORD_AT2(stoup_definition_v2, match_algorithm, 375, md_security_trading_status, 376);
STOUP_RECORD_AT2(stoup_definition_v2, main_fraction, 377, price_display_format, 378);
STOUP_RECORD_AT2(stoup_definition_v2, settl_price_type, 379, sub_fraction, 380);
STOUP_RECORD_AT2(stoup_definition_v2, underlying_product, 381, security_update_action, 382);
STOUP_RECORD_AT3(stoup_definition_v2, maturity_month, 383, maturity_day, 384, maturity_week, 385);
STOUP_RECORD_AT2(stoup_definition_v2, user_defined_instrument, 386, contract_multiplier_unit, 387);
STOUP_RECORD_AT3(stoup_definition_v2, flow_schedule_type, 388, tick_rule, 389, _reserved, 390);

/* definition: an instrument, DBN version 3; a spread has one record for each leg. Source: dbn
 * InstrumentDefMsg. */
struct stoup_definition {
	struct stoup_dbn_header hd;
	uint64_t ts_recv;            /* the key */
	int64_t min_price_increment; /* the tick */
	int64_t display_factor;
	uint64_t expiration;
	uint64_t activation;
	int64_t high_limit_price;
	int64_t low_limit_price;
	int64_t max_price_variation;
	int64_t unit_of_measure_qty;
	int64_t min_price_increment_amount;
	int64_t price_ratio;
	int64_t strike_price;
	uint64_t raw_instrument_id;
	int64_t leg_price;
	int64_t leg_delta;
	int32_t inst_attrib_value;
	uint32_t underlying_id;
	int32_t market_depth_implied;
	int32_t market_depth;
	uint32_t market_segment_id;
	uint32_t max_trade_vol;
	int32_t min_lot_size;
	int32_t min_lot_size_block;
	int32_t min_lot_size_round_lot;
	uint32_t min_trade_vol;
	int32_t contract_multiplier;
	int32_t decay_quantity;
	int32_t original_contract_size;
	uint32_t leg_instrument_id;
	int32_t leg_ratio_price_numerator;
	int32_t leg_ratio_price_denominator;
	int32_t leg_ratio_qty_numerator;
	int32_t leg_ratio_qty_denominator;
	uint32_t leg_underlying_id;
	int16_t appl_id;
	uint16_t maturity_year;
	uint16_t decay_start_date; /* days since 1970 */
	uint16_t channel_id;
	uint16_t leg_count;
	uint16_t leg_index;
	char currency[4];
	char settl_currency[4];
	char secsubtype[6];
	char raw_symbol[71];
	char group[21];
	char exchange[5];
	char asset[11];
	char cfi[7];
	char security_type[7];
	char unit_of_measure[31];
	char underlying[21];
	char strike_price_currency[4];
	char leg_raw_symbol[71];
	char instrument_class; /* K stock, F future, C call, P put, S and T their spreads, B, X */
	char match_algorithm;
	uint8_t main_fraction;
	uint8_t price_display_format;
	uint8_t sub_fraction;
	uint8_t underlying_product;
	char security_update_action; /* A add, M modify, D delete */
	uint8_t maturity_month;
	uint8_t maturity_day;
	uint8_t maturity_week;
	char user_defined_instrument; /* Y, N */
	int8_t contract_multiplier_unit;
	int8_t flow_schedule_type;
	uint8_t tick_rule;
	char leg_instrument_class;
	char leg_side;
	uint8_t _reserved[17];
};
STOUP_RECORD_SIZE(stoup_definition, 520);
STOUP_RECORD_AT3(stoup_definition, hd, 0, ts_recv, 16, min_price_increment, 24);
STOUP_RECORD_AT3(stoup_definition, display_factor, 32, expiration, 40, activation, 48);
STOUP_RECORD_AT2(stoup_definition, high_limit_price, 56, low_limit_price, 64);
STOUP_RECORD_AT2(stoup_definition, max_price_variation, 72, unit_of_measure_qty, 80);
STOUP_RECORD_AT2(stoup_definition, min_price_increment_amount, 88, price_ratio, 96);
STOUP_RECORD_AT3(stoup_definition, strike_price, 104, raw_instrument_id, 112, leg_price, 120);
STOUP_RECORD_AT3(stoup_definition, leg_delta, 128, inst_attrib_value, 136, underlying_id, 140);
STOUP_RECORD_AT2(stoup_definition, market_depth_implied, 144, market_depth, 148);
STOUP_RECORD_AT3(stoup_definition, market_segment_id, 152, max_trade_vol, 156, min_lot_size, 160);
STOUP_RECORD_AT2(stoup_definition, min_lot_size_block, 164, min_lot_size_round_lot, 168);
STOUP_RECORD_AT2(stoup_definition, min_trade_vol, 172, contract_multiplier, 176);
STOUP_RECORD_AT2(stoup_definition, decay_quantity, 180, original_contract_size, 184);
STOUP_RECORD_AT2(stoup_definition, leg_instrument_id, 188, leg_ratio_price_numerator, 192);
STOUP_RECORD_AT2(stoup_definition, leg_ratio_price_denominator, 196, leg_ratio_qty_numerator, 200);
STOUP_RECORD_AT2(stoup_definition, leg_ratio_qty_denominator, 204, leg_underlying_id, 208);
STOUP_RECORD_AT3(stoup_definition, appl_id, 212, maturity_year, 214, decay_start_date, 216);
STOUP_RECORD_AT3(stoup_definition, channel_id, 218, leg_count, 220, leg_index, 222);
STOUP_RECORD_AT3(stoup_definition, currency, 224, settl_currency, 228, secsubtype, 232);
STOUP_RECORD_AT3(stoup_definition, raw_symbol, 238, group, 309, exchange, 330);
STOUP_RECORD_AT3(stoup_definition, asset, 335, cfi, 346, security_type, 353);
STOUP_RECORD_AT2(stoup_definition, unit_of_measure, 360, underlying, 391);
STOUP_RECORD_AT2(stoup_definition, strike_price_currency, 412, leg_raw_symbol, 416);
STOUP_RECORD_AT3(stoup_definition, instrument_class, 487, match_algorithm, 488, main_fraction, 489);
STOUP_RECORD_AT2(stoup_definition, price_display_format, 490, sub_fraction, 491);
STOUP_RECORD_AT2(stoup_definition, underlying_product, 492, security_update_action, 493);
STOUP_RECORD_AT3(stoup_definition, maturity_month, 494, maturity_day, 495, maturity_week, 496);
STOUP_RECORD_AT2(stoup_definition, user_defined_instrument, 497, contract_multiplier_unit, 498);
STOUP_RECORD_AT2(stoup_definition, flow_schedule_type, 499, tick_rule, 500);
STOUP_RECORD_AT3(stoup_definition, leg_instrument_class, 501, leg_side, 502, _reserved, 503);

/* statistics-v1: settlement, open interest and the like, DBN versions 1 and 2. Source: dbn
 * v1::StatMsg. */
struct stoup_statistics_v1 {
	struct stoup_dbn_header hd;
	uint64_t ts_recv; /* the key */
	uint64_t ts_ref;
	int64_t price;
	int32_t quantity; /* undefined: INT32_MAX */
	uint32_t sequence;
	int32_t ts_in_delta; /* ns */
	uint16_t stat_type;
	uint16_t channel_id;
	uint8_t update_action; /* 1 new, 2 delete */
	uint8_t stat_flags;
	uint8_t _reserved[6];
};
STOUP_RECORD_SIZE(stoup_statistics_v1, 64);
STOUP_RECORD_AT3(stoup_statistics_v1, hd, 0, ts_recv, 16, ts_ref, 24);
STOUP_RECORD_AT3(stoup_statistics_v1, price, 32, quantity, 40, sequence, 44);
STOUP_RECORD_AT3(stoup_statistics_v1, ts_in_delta, 48, stat_type, 52, channel_id, 54);
STOUP_RECORD_AT3(stoup_statistics_v1, update_action, 56, stat_flags, 57, _reserved, 58);

/* statistics: the same of DBN version 3. Source: dbn StatMsg. */
struct stoup_statistics {
	struct stoup_dbn_header hd;
	uint64_t ts_recv; /* the key */
	uint64_t ts_ref;
	int64_t price;
	int64_t quantity; /* undefined: INT64_MAX */
	uint32_t sequence;
	int32_t ts_in_delta; /* ns */
	uint16_t stat_type;
	uint16_t channel_id;
	uint8_t update_action; /* 1 new, 2 delete */
	uint8_t stat_flags;
	uint8_t _reserved[18];
};
STOUP_RECORD_SIZE(stoup_statistics, 80);
STOUP_RECORD_AT3(stoup_statistics, hd, 0, ts_recv, 16, ts_ref, 24);
STOUP_RECORD_AT3(stoup_statistics, price, 32, quantity, 40, sequence, 48);
STOUP_RECORD_AT3(stoup_statistics, ts_in_delta, 52, stat_type, 56, channel_id, 58);
STOUP_RECORD_AT3(stoup_statistics, update_action, 60, stat_flags, 61, _reserved, 62);

/* ---- DBN: messages of a live session --------------------------------------------------------- */

/* error-v1, DBN version 1. Source: dbn v1::ErrorMsg. (stoup_error is the library's own.) */
struct stoup_error_msg_v1 {
	struct stoup_dbn_header hd;
	char err[64];
};
STOUP_RECORD_SIZE(stoup_error_msg_v1, 80);
STOUP_RECORD_AT2(stoup_error_msg_v1, hd, 0, err, 16);

/* error. Source: dbn ErrorMsg. */
struct stoup_error_msg {
	struct stoup_dbn_header hd;
	char err[302];
	uint8_t code;
	uint8_t is_last;
};
STOUP_RECORD_SIZE(stoup_error_msg, 320);
STOUP_RECORD_AT3(stoup_error_msg, hd, 0, err, 16, code, 318);
STOUP_RECORD_AT(stoup_error_msg, is_last, 319);

/* symbol-mapping-v1, DBN version 1. Source: dbn v1::SymbolMappingMsg. */
struct stoup_symbol_mapping_msg_v1 {
	struct stoup_dbn_header hd;
	char stype_in_symbol[22];
	char stype_out_symbol[22];
	uint8_t _dummy[4];
	uint64_t start_ts;
	uint64_t end_ts;
};
STOUP_RECORD_SIZE(stoup_symbol_mapping_msg_v1, 80);
STOUP_RECORD_AT3(stoup_symbol_mapping_msg_v1, hd, 0, stype_in_symbol, 16, stype_out_symbol, 38);
STOUP_RECORD_AT3(stoup_symbol_mapping_msg_v1, _dummy, 60, start_ts, 64, end_ts, 72);

/* symbol-mapping. Source: dbn SymbolMappingMsg. */
struct stoup_symbol_mapping_msg {
	struct stoup_dbn_header hd;
	uint8_t stype_in;
	char stype_in_symbol[71];
	uint8_t stype_out;
	char stype_out_symbol[71];
	uint64_t start_ts;
	uint64_t end_ts;
};
STOUP_RECORD_SIZE(stoup_symbol_mapping_msg, 176);
STOUP_RECORD_AT3(stoup_symbol_mapping_msg, hd, 0, stype_in, 16, stype_in_symbol, 17);
STOUP_RECORD_AT3(stoup_symbol_mapping_msg, stype_out, 88, stype_out_symbol, 89, start_ts, 160);
STOUP_RECORD_AT(stoup_symbol_mapping_msg, end_ts, 168);

/* system-v1, DBN version 1. Source: dbn v1::SystemMsg. */
struct stoup_system_msg_v1 {
	struct stoup_dbn_header hd;
	char msg[64];
};
STOUP_RECORD_SIZE(stoup_system_msg_v1, 80);
STOUP_RECORD_AT2(stoup_system_msg_v1, hd, 0, msg, 16);

/* system: heartbeats and notes of the gateway. Source: dbn SystemMsg. */
struct stoup_system_msg {
	struct stoup_dbn_header hd;
	char msg[303];
	uint8_t code; /* 0 heartbeat, 255 none */
};
STOUP_RECORD_SIZE(stoup_system_msg, 320);
STOUP_RECORD_AT3(stoup_system_msg, hd, 0, msg, 16, code, 319);

/* ---- not DBN --------------------------------------------------------------------------------- */

/* event64: what hftbacktest reads from a raw pointer, aligned to 64 bytes. Prices and quantities
 * are floating-point. Source: hftbacktest Event. */
struct stoup_event64 {
	uint64_t ev;      /* kind in the low byte; bits 31 exchange, 30 local, 29 buy, 28 sell */
	int64_t exch_ts;  /* ns since the epoch */
	int64_t local_ts; /* ns since the epoch: the key */
	double px;
	double qty;
	uint64_t order_id;
	int64_t ival;
	double fval;
} __attribute__((aligned(64)));
STOUP_RECORD_SIZE(stoup_event64, 64);
STOUP_RECORD_AT3(stoup_event64, ev, 0, exch_ts, 8, local_ts, 16);
STOUP_RECORD_AT3(stoup_event64, px, 24, qty, 32, order_id, 40);
STOUP_RECORD_AT2(stoup_event64, ival, 48, fval, 56);

/* tick: a time, a price, a size: the least that a strategy needs. */
struct stoup_tick {
	int64_t ts;     /* ns since the epoch: the key */
	int64_t price;  /* 1e-9; undefined: INT64_MAX */
	uint32_t size;  /* undefined: UINT32_MAX */
	uint32_t flags; /* the user's own */
};
STOUP_RECORD_SIZE(stoup_tick, 24);
STOUP_RECORD_AT3(stoup_tick, ts, 0, price, 8, size, 16);
STOUP_RECORD_AT(stoup_tick, flags, 20);

/* bar: one bar of any length; the schema has its interval. Known at ts + interval. */
struct stoup_bar {
	int64_t ts;   /* open time, ns since the epoch: the key */
	int64_t open; /* 1e-9; undefined: INT64_MAX */
	int64_t high;
	int64_t low;
	int64_t close;
	uint64_t volume; /* undefined: UINT64_MAX */
};
STOUP_RECORD_SIZE(stoup_bar, 48);
STOUP_RECORD_AT3(stoup_bar, ts, 0, open, 8, high, 16);
STOUP_RECORD_AT3(stoup_bar, low, 24, close, 32, volume, 40);

/* ---- ITCH 5.0 -------------------------------------------------------------------------------- */

/* itch-mbo: an event of an order, one record for each message; prices are integers of 1e-4. Whatever the
 * type, level order_price loses what `before` has more than `left` (U: all of `before`), and level price
 * gains `size` if the type is A, F or U. */
struct stoup_itch_mbo {
	int64_t ts;           /* the key */
	uint64_t seq;         /* number of the message in its file, from 1 */
	uint64_t order_ref;   /* U: the new order */
	uint64_t prev_ref;    /* U: the order that was replaced; else UINT64_MAX */
	uint64_t match;       /* E, C; else UINT64_MAX */
	uint32_t price;       /* of the event: C: of the execution, U: of the new order */
	uint32_t order_price; /* of the order before the event; A, F: price */
	uint32_t size;        /* shares added, executed, cancelled, deleted; U: of the new order */
	uint32_t left;        /* shares of order_ref after the event */
	uint32_t before;      /* shares of the order before it (U: of the old one); A, F: 0 */
	char mpid[4];         /* attribution of the order; NUL: none */
	uint16_t locate, tracking;
	char type, side;            /* A F E C X D U; B, S: of the order */
	char printable, _reserved1; /* E: Y, C: as sent, else NUL */
};
STOUP_RECORD_SIZE(stoup_itch_mbo, 72);
STOUP_RECORD_AT3(stoup_itch_mbo, ts, 0, order_ref, 16, match, 32);
STOUP_RECORD_AT3(stoup_itch_mbo, price, 40, size, 48, mpid, 60);
STOUP_RECORD_AT3(stoup_itch_mbo, locate, 64, type, 68, printable, 70);

/* itch-trade: a trade, or that one was broken; prices as above. */
struct stoup_itch_trade {
	int64_t ts; /* the key */
	uint64_t seq;
	uint64_t match;     /* B: of the trade that is broken */
	uint64_t order_ref; /* E, C: the resting order; P: as sent; Q, B: UINT64_MAX */
	uint64_t size;      /* B: UINT64_MAX */
	uint32_t price;     /* B: UINT32_MAX */
	char mpid[4];       /* E, C: attribution of the resting order */
	uint16_t locate, tracking;
	char type, side;       /* E C P Q B; E, C: of the resting order, P: as sent, else NUL */
	char printable, cross; /* E, P, Q: Y, C: as sent, B: NUL; Q: kind of cross, else NUL */
};
STOUP_RECORD_SIZE(stoup_itch_trade, 56);
STOUP_RECORD_AT3(stoup_itch_trade, ts, 0, match, 16, size, 32);
STOUP_RECORD_AT3(stoup_itch_trade, price, 40, locate, 48, cross, 55);

#undef STOUP_RECORD_AT3
#undef STOUP_RECORD_AT2
#undef STOUP_RECORD_AT
#undef STOUP_RECORD_SIZE
#undef STOUP_RECORD_ASSERT

#ifdef __cplusplus
}
#endif

#endif
