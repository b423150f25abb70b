/* SPDX-License-Identifier: Apache-2.0 */
/* test_records.c - the structs of stoup_records.h and the schema table are the same layout, member
 * by member: every field of a schema is a member with the same name, offset and length, and every
 * member is a field. What differs is how levels and the header nest.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "shm/stoup_records.h"
#include "shm/stoup_types.h"

struct member {
	const char *name;
	size_t off;
	size_t len;
};

struct record {
	const char *schema;
	size_t len;
	size_t align;
	const struct member *members;
	size_t member_cnt;
};

#define MEMBER_AS(s, name, m)                                                                      \
	{                                                                                          \
		name, offsetof(struct s, m), sizeof(((struct s *)NULL)->m)                         \
	}
#define MEMBER(s, m) MEMBER_AS(s, #m, m)
#define HEADER(s)                                                                                  \
	MEMBER_AS(s, "length", hd.length), MEMBER_AS(s, "rtype", hd.rtype),                        \
		MEMBER_AS(s, "publisher_id", hd.publisher_id),                                     \
		MEMBER_AS(s, "instrument_id", hd.instrument_id),                                   \
		MEMBER_AS(s, "ts_event", hd.ts_event)
#define PRICES(s, i, n)                                                                            \
	MEMBER_AS(s, "bid_px_" n, levels[i].bid_px), MEMBER_AS(s, "ask_px_" n, levels[i].ask_px),  \
		MEMBER_AS(s, "bid_sz_" n, levels[i].bid_sz),                                       \
		MEMBER_AS(s, "ask_sz_" n, levels[i].ask_sz)
#define LEVEL(s, i, n)                                                                             \
	PRICES(s, i, n), MEMBER_AS(s, "bid_ct_" n, levels[i].bid_ct),                              \
		MEMBER_AS(s, "ask_ct_" n, levels[i].ask_ct)
#define CLEVEL(s, i, n)                                                                            \
	PRICES(s, i, n), MEMBER_AS(s, "bid_pb_" n, levels[i].bid_pb),                              \
		MEMBER_AS(s, "_reserved_bid_" n, levels[i]._reserved1),                            \
		MEMBER_AS(s, "ask_pb_" n, levels[i].ask_pb),                                       \
		MEMBER_AS(s, "_reserved_ask_" n, levels[i]._reserved2)

static const struct member mbo_members[] = {
	HEADER(stoup_mbo),
	MEMBER(stoup_mbo, order_id),
	MEMBER(stoup_mbo, price),
	MEMBER(stoup_mbo, size),
	MEMBER(stoup_mbo, flags),
	MEMBER(stoup_mbo, channel_id),
	MEMBER(stoup_mbo, action),
	MEMBER(stoup_mbo, side),
	MEMBER(stoup_mbo, ts_recv),
	MEMBER(stoup_mbo, ts_in_delta),
	MEMBER(stoup_mbo, sequence),
};

static const struct member trade_members[] = {
	HEADER(stoup_trade),
	MEMBER(stoup_trade, price),
	MEMBER(stoup_trade, size),
	MEMBER(stoup_trade, action),
	MEMBER(stoup_trade, side),
	MEMBER(stoup_trade, flags),
	MEMBER(stoup_trade, depth),
	MEMBER(stoup_trade, ts_recv),
	MEMBER(stoup_trade, ts_in_delta),
	MEMBER(stoup_trade, sequence),
};

static const struct member mbp1_members[] = {
	HEADER(stoup_mbp1),
	MEMBER(stoup_mbp1, price),
	MEMBER(stoup_mbp1, size),
	MEMBER(stoup_mbp1, action),
	MEMBER(stoup_mbp1, side),
	MEMBER(stoup_mbp1, flags),
	MEMBER(stoup_mbp1, depth),
	MEMBER(stoup_mbp1, ts_recv),
	MEMBER(stoup_mbp1, ts_in_delta),
	MEMBER(stoup_mbp1, sequence),
	LEVEL(stoup_mbp1, 0, "00"),
};

static const struct member mbp10_members[] = {
	HEADER(stoup_mbp10),
	MEMBER(stoup_mbp10, price),
	MEMBER(stoup_mbp10, size),
	MEMBER(stoup_mbp10, action),
	MEMBER(stoup_mbp10, side),
	MEMBER(stoup_mbp10, flags),
	MEMBER(stoup_mbp10, depth),
	MEMBER(stoup_mbp10, ts_recv),
	MEMBER(stoup_mbp10, ts_in_delta),
	MEMBER(stoup_mbp10, sequence),
	LEVEL(stoup_mbp10, 0, "00"),
	LEVEL(stoup_mbp10, 1, "01"),
	LEVEL(stoup_mbp10, 2, "02"),
	LEVEL(stoup_mbp10, 3, "03"),
	LEVEL(stoup_mbp10, 4, "04"),
	LEVEL(stoup_mbp10, 5, "05"),
	LEVEL(stoup_mbp10, 6, "06"),
	LEVEL(stoup_mbp10, 7, "07"),
	LEVEL(stoup_mbp10, 8, "08"),
	LEVEL(stoup_mbp10, 9, "09"),
};

static const struct member bbo_members[] = {
	HEADER(stoup_bbo),
	MEMBER(stoup_bbo, price),
	MEMBER(stoup_bbo, size),
	MEMBER(stoup_bbo, _reserved1),
	MEMBER(stoup_bbo, side),
	MEMBER(stoup_bbo, flags),
	MEMBER(stoup_bbo, _reserved2),
	MEMBER(stoup_bbo, ts_recv),
	MEMBER(stoup_bbo, _reserved3),
	MEMBER(stoup_bbo, sequence),
	LEVEL(stoup_bbo, 0, "00"),
};

static const struct member cmbp1_members[] = {
	HEADER(stoup_cmbp1),
	MEMBER(stoup_cmbp1, price),
	MEMBER(stoup_cmbp1, size),
	MEMBER(stoup_cmbp1, action),
	MEMBER(stoup_cmbp1, side),
	MEMBER(stoup_cmbp1, flags),
	MEMBER(stoup_cmbp1, _reserved1),
	MEMBER(stoup_cmbp1, ts_recv),
	MEMBER(stoup_cmbp1, ts_in_delta),
	MEMBER(stoup_cmbp1, _reserved2),
	CLEVEL(stoup_cmbp1, 0, "00"),
};

static const struct member cbbo_members[] = {
	HEADER(stoup_cbbo),
	MEMBER(stoup_cbbo, price),
	MEMBER(stoup_cbbo, size),
	MEMBER(stoup_cbbo, _reserved1),
	MEMBER(stoup_cbbo, side),
	MEMBER(stoup_cbbo, flags),
	MEMBER(stoup_cbbo, _reserved2),
	MEMBER(stoup_cbbo, ts_recv),
	MEMBER(stoup_cbbo, _reserved3),
	CLEVEL(stoup_cbbo, 0, "00"),
};

static const struct member ohlcv_members[] = {
	HEADER(stoup_ohlcv),
	MEMBER(stoup_ohlcv, open),
	MEMBER(stoup_ohlcv, high),
	MEMBER(stoup_ohlcv, low),
	MEMBER(stoup_ohlcv, close),
	MEMBER(stoup_ohlcv, volume),
};

static const struct member status_msg_members[] = {
	HEADER(stoup_status_msg),
	MEMBER(stoup_status_msg, ts_recv),
	MEMBER(stoup_status_msg, action),
	MEMBER(stoup_status_msg, reason),
	MEMBER(stoup_status_msg, trading_event),
	MEMBER(stoup_status_msg, is_trading),
	MEMBER(stoup_status_msg, is_quoting),
	MEMBER(stoup_status_msg, is_short_sell_restricted),
	MEMBER(stoup_status_msg, _reserved),
};

static const struct member imbalance_members[] = {
	HEADER(stoup_imbalance),
	MEMBER(stoup_imbalance, ts_recv),
	MEMBER(stoup_imbalance, ref_price),
	MEMBER(stoup_imbalance, auction_time),
	MEMBER(stoup_imbalance, cont_book_clr_price),
	MEMBER(stoup_imbalance, auct_interest_clr_price),
	MEMBER(stoup_imbalance, ssr_filling_price),
	MEMBER(stoup_imbalance, ind_match_price),
	MEMBER(stoup_imbalance, upper_collar),
	MEMBER(stoup_imbalance, lower_collar),
	MEMBER(stoup_imbalance, paired_qty),
	MEMBER(stoup_imbalance, total_imbalance_qty),
	MEMBER(stoup_imbalance, market_imbalance_qty),
	MEMBER(stoup_imbalance, unpaired_qty),
	MEMBER(stoup_imbalance, auction_type),
	MEMBER(stoup_imbalance, side),
	MEMBER(stoup_imbalance, auction_status),
	MEMBER(stoup_imbalance, freeze_status),
	MEMBER(stoup_imbalance, num_extensions),
	MEMBER(stoup_imbalance, unpaired_side),
	MEMBER(stoup_imbalance, significant_imbalance),
	MEMBER(stoup_imbalance, _reserved),
};

static const struct member definition_v1_members[] = {
	HEADER(stoup_definition_v1),
	MEMBER(stoup_definition_v1, ts_recv),
	MEMBER(stoup_definition_v1, min_price_increment),
	MEMBER(stoup_definition_v1, display_factor),
	MEMBER(stoup_definition_v1, expiration),
	MEMBER(stoup_definition_v1, activation),
	MEMBER(stoup_definition_v1, high_limit_price),
	MEMBER(stoup_definition_v1, low_limit_price),
	MEMBER(stoup_definition_v1, max_price_variation),
	MEMBER(stoup_definition_v1, trading_reference_price),
	MEMBER(stoup_definition_v1, unit_of_measure_qty),
	MEMBER(stoup_definition_v1, min_price_increment_amount),
	MEMBER(stoup_definition_v1, price_ratio),
	MEMBER(stoup_definition_v1, inst_attrib_value),
	MEMBER(stoup_definition_v1, underlying_id),
	MEMBER(stoup_definition_v1, raw_instrument_id),
	MEMBER(stoup_definition_v1, market_depth_implied),
	MEMBER(stoup_definition_v1, market_depth),
	MEMBER(stoup_definition_v1, market_segment_id),
	MEMBER(stoup_definition_v1, max_trade_vol),
	MEMBER(stoup_definition_v1, min_lot_size),
	MEMBER(stoup_definition_v1, min_lot_size_block),
	MEMBER(stoup_definition_v1, min_lot_size_round_lot),
	MEMBER(stoup_definition_v1, min_trade_vol),
	MEMBER(stoup_definition_v1, _reserved2),
	MEMBER(stoup_definition_v1, contract_multiplier),
	MEMBER(stoup_definition_v1, decay_quantity),
	MEMBER(stoup_definition_v1, original_contract_size),
	MEMBER(stoup_definition_v1, _reserved3),
	MEMBER(stoup_definition_v1, trading_reference_date),
	MEMBER(stoup_definition_v1, appl_id),
	MEMBER(stoup_definition_v1, maturity_year),
	MEMBER(stoup_definition_v1, decay_start_date),
	MEMBER(stoup_definition_v1, channel_id),
	MEMBER(stoup_definition_v1, currency),
	MEMBER(stoup_definition_v1, settl_currency),
	MEMBER(stoup_definition_v1, secsubtype),
	MEMBER(stoup_definition_v1, raw_symbol),
	MEMBER(stoup_definition_v1, group),
	MEMBER(stoup_definition_v1, exchange),
	MEMBER(stoup_definition_v1, asset),
	MEMBER(stoup_definition_v1, cfi),
	MEMBER(stoup_definition_v1, security_type),
	MEMBER(stoup_definition_v1, unit_of_measure),
	MEMBER(stoup_definition_v1, underlying),
	MEMBER(stoup_definition_v1, strike_price_currency),
	MEMBER(stoup_definition_v1, instrument_class),
	MEMBER(stoup_definition_v1, _reserved4),
	MEMBER(stoup_definition_v1, strike_price),
	MEMBER(stoup_definition_v1, _reserved5),
	MEMBER(stoup_definition_v1, match_algorithm),
	MEMBER(stoup_definition_v1, md_security_trading_status),
	MEMBER(stoup_definition_v1, main_fraction),
	MEMBER(stoup_definition_v1, price_display_format),
	MEMBER(stoup_definition_v1, settl_price_type),
	MEMBER(stoup_definition_v1, sub_fraction),
	MEMBER(stoup_definition_v1, underlying_product),
	MEMBER(stoup_definition_v1, security_update_action),
	MEMBER(stoup_definition_v1, maturity_month),
	MEMBER(stoup_definition_v1, maturity_day),
	MEMBER(stoup_definition_v1, maturity_week),
	MEMBER(stoup_definition_v1, user_defined_instrument),
	MEMBER(stoup_definition_v1, contract_multiplier_unit),
	MEMBER(stoup_definition_v1, flow_schedule_type),
	MEMBER(stoup_definition_v1, tick_rule),
	MEMBER(stoup_definition_v1, _dummy),
};

static const struct member definition_v2_members[] = {
	HEADER(stoup_definition_v2),
	MEMBER(stoup_definition_v2, ts_recv),
	MEMBER(stoup_definition_v2, min_price_increment),
	MEMBER(stoup_definition_v2, display_factor),
	MEMBER(stoup_definition_v2, expiration),
	MEMBER(stoup_definition_v2, activation),
	MEMBER(stoup_definition_v2, high_limit_price),
	MEMBER(stoup_definition_v2, low_limit_price),
	MEMBER(stoup_definition_v2, max_price_variation),
	MEMBER(stoup_definition_v2, trading_reference_price),
	MEMBER(stoup_definition_v2, unit_of_measure_qty),
	MEMBER(stoup_definition_v2, min_price_increment_amount),
	MEMBER(stoup_definition_v2, price_ratio),
	MEMBER(stoup_definition_v2, strike_price),
	MEMBER(stoup_definition_v2, inst_attrib_value),
	MEMBER(stoup_definition_v2, underlying_id),
	MEMBER(stoup_definition_v2, raw_instrument_id),
	MEMBER(stoup_definition_v2, market_depth_implied),
	MEMBER(stoup_definition_v2, market_depth),
	MEMBER(stoup_definition_v2, market_segment_id),
	MEMBER(stoup_definition_v2, max_trade_vol),
	MEMBER(stoup_definition_v2, min_lot_size),
	MEMBER(stoup_definition_v2, min_lot_size_block),
	MEMBER(stoup_definition_v2, min_lot_size_round_lot),
	MEMBER(stoup_definition_v2, min_trade_vol),
	MEMBER(stoup_definition_v2, contract_multiplier),
	MEMBER(stoup_definition_v2, decay_quantity),
	MEMBER(stoup_definition_v2, original_contract_size),
	MEMBER(stoup_definition_v2, trading_reference_date),
	MEMBER(stoup_definition_v2, appl_id),
	MEMBER(stoup_definition_v2, maturity_year),
	MEMBER(stoup_definition_v2, decay_start_date),
	MEMBER(stoup_definition_v2, channel_id),
	MEMBER(stoup_definition_v2, currency),
	MEMBER(stoup_definition_v2, settl_currency),
	MEMBER(stoup_definition_v2, secsubtype),
	MEMBER(stoup_definition_v2, raw_symbol),
	MEMBER(stoup_definition_v2, group),
	MEMBER(stoup_definition_v2, exchange),
	MEMBER(stoup_definition_v2, asset),
	MEMBER(stoup_definition_v2, cfi),
	MEMBER(stoup_definition_v2, security_type),
	MEMBER(stoup_definition_v2, unit_of_measure),
	MEMBER(stoup_definition_v2, underlying),
	MEMBER(stoup_definition_v2, strike_price_currency),
	MEMBER(stoup_definition_v2, instrument_class),
	MEMBER(stoup_definition_v2, match_algorithm),
	MEMBER(stoup_definition_v2, md_security_trading_status),
	MEMBER(stoup_definition_v2, main_fraction),
	MEMBER(stoup_definition_v2, price_display_format),
	MEMBER(stoup_definition_v2, settl_price_type),
	MEMBER(stoup_definition_v2, sub_fraction),
	MEMBER(stoup_definition_v2, underlying_product),
	MEMBER(stoup_definition_v2, security_update_action),
	MEMBER(stoup_definition_v2, maturity_month),
	MEMBER(stoup_definition_v2, maturity_day),
	MEMBER(stoup_definition_v2, maturity_week),
	MEMBER(stoup_definition_v2, user_defined_instrument),
	MEMBER(stoup_definition_v2, contract_multiplier_unit),
	MEMBER(stoup_definition_v2, flow_schedule_type),
	MEMBER(stoup_definition_v2, tick_rule),
	MEMBER(stoup_definition_v2, _reserved),
};

static const struct member definition_members[] = {
	HEADER(stoup_definition),
	MEMBER(stoup_definition, ts_recv),
	MEMBER(stoup_definition, min_price_increment),
	MEMBER(stoup_definition, display_factor),
	MEMBER(stoup_definition, expiration),
	MEMBER(stoup_definition, activation),
	MEMBER(stoup_definition, high_limit_price),
	MEMBER(stoup_definition, low_limit_price),
	MEMBER(stoup_definition, max_price_variation),
	MEMBER(stoup_definition, unit_of_measure_qty),
	MEMBER(stoup_definition, min_price_increment_amount),
	MEMBER(stoup_definition, price_ratio),
	MEMBER(stoup_definition, strike_price),
	MEMBER(stoup_definition, raw_instrument_id),
	MEMBER(stoup_definition, leg_price),
	MEMBER(stoup_definition, leg_delta),
	MEMBER(stoup_definition, inst_attrib_value),
	MEMBER(stoup_definition, underlying_id),
	MEMBER(stoup_definition, market_depth_implied),
	MEMBER(stoup_definition, market_depth),
	MEMBER(stoup_definition, market_segment_id),
	MEMBER(stoup_definition, max_trade_vol),
	MEMBER(stoup_definition, min_lot_size),
	MEMBER(stoup_definition, min_lot_size_block),
	MEMBER(stoup_definition, min_lot_size_round_lot),
	MEMBER(stoup_definition, min_trade_vol),
	MEMBER(stoup_definition, contract_multiplier),
	MEMBER(stoup_definition, decay_quantity),
	MEMBER(stoup_definition, original_contract_size),
	MEMBER(stoup_definition, leg_instrument_id),
	MEMBER(stoup_definition, leg_ratio_price_numerator),
	MEMBER(stoup_definition, leg_ratio_price_denominator),
	MEMBER(stoup_definition, leg_ratio_qty_numerator),
	MEMBER(stoup_definition, leg_ratio_qty_denominator),
	MEMBER(stoup_definition, leg_underlying_id),
	MEMBER(stoup_definition, appl_id),
	MEMBER(stoup_definition, maturity_year),
	MEMBER(stoup_definition, decay_start_date),
	MEMBER(stoup_definition, channel_id),
	MEMBER(stoup_definition, leg_count),
	MEMBER(stoup_definition, leg_index),
	MEMBER(stoup_definition, currency),
	MEMBER(stoup_definition, settl_currency),
	MEMBER(stoup_definition, secsubtype),
	MEMBER(stoup_definition, raw_symbol),
	MEMBER(stoup_definition, group),
	MEMBER(stoup_definition, exchange),
	MEMBER(stoup_definition, asset),
	MEMBER(stoup_definition, cfi),
	MEMBER(stoup_definition, security_type),
	MEMBER(stoup_definition, unit_of_measure),
	MEMBER(stoup_definition, underlying),
	MEMBER(stoup_definition, strike_price_currency),
	MEMBER(stoup_definition, leg_raw_symbol),
	MEMBER(stoup_definition, instrument_class),
	MEMBER(stoup_definition, match_algorithm),
	MEMBER(stoup_definition, main_fraction),
	MEMBER(stoup_definition, price_display_format),
	MEMBER(stoup_definition, sub_fraction),
	MEMBER(stoup_definition, underlying_product),
	MEMBER(stoup_definition, security_update_action),
	MEMBER(stoup_definition, maturity_month),
	MEMBER(stoup_definition, maturity_day),
	MEMBER(stoup_definition, maturity_week),
	MEMBER(stoup_definition, user_defined_instrument),
	MEMBER(stoup_definition, contract_multiplier_unit),
	MEMBER(stoup_definition, flow_schedule_type),
	MEMBER(stoup_definition, tick_rule),
	MEMBER(stoup_definition, leg_instrument_class),
	MEMBER(stoup_definition, leg_side),
	MEMBER(stoup_definition, _reserved),
};

static const struct member statistics_v1_members[] = {
	HEADER(stoup_statistics_v1),
	MEMBER(stoup_statistics_v1, ts_recv),
	MEMBER(stoup_statistics_v1, ts_ref),
	MEMBER(stoup_statistics_v1, price),
	MEMBER(stoup_statistics_v1, quantity),
	MEMBER(stoup_statistics_v1, sequence),
	MEMBER(stoup_statistics_v1, ts_in_delta),
	MEMBER(stoup_statistics_v1, stat_type),
	MEMBER(stoup_statistics_v1, channel_id),
	MEMBER(stoup_statistics_v1, update_action),
	MEMBER(stoup_statistics_v1, stat_flags),
	MEMBER(stoup_statistics_v1, _reserved),
};

static const struct member statistics_members[] = {
	HEADER(stoup_statistics),
	MEMBER(stoup_statistics, ts_recv),
	MEMBER(stoup_statistics, ts_ref),
	MEMBER(stoup_statistics, price),
	MEMBER(stoup_statistics, quantity),
	MEMBER(stoup_statistics, sequence),
	MEMBER(stoup_statistics, ts_in_delta),
	MEMBER(stoup_statistics, stat_type),
	MEMBER(stoup_statistics, channel_id),
	MEMBER(stoup_statistics, update_action),
	MEMBER(stoup_statistics, stat_flags),
	MEMBER(stoup_statistics, _reserved),
};

static const struct member error_msg_v1_members[] = {
	HEADER(stoup_error_msg_v1),
	MEMBER(stoup_error_msg_v1, err),
};

static const struct member error_msg_members[] = {
	HEADER(stoup_error_msg),
	MEMBER(stoup_error_msg, err),
	MEMBER(stoup_error_msg, code),
	MEMBER(stoup_error_msg, is_last),
};

static const struct member symbol_mapping_msg_v1_members[] = {
	HEADER(stoup_symbol_mapping_msg_v1),
	MEMBER(stoup_symbol_mapping_msg_v1, stype_in_symbol),
	MEMBER(stoup_symbol_mapping_msg_v1, stype_out_symbol),
	MEMBER(stoup_symbol_mapping_msg_v1, _dummy),
	MEMBER(stoup_symbol_mapping_msg_v1, start_ts),
	MEMBER(stoup_symbol_mapping_msg_v1, end_ts),
};

static const struct member symbol_mapping_msg_members[] = {
	HEADER(stoup_symbol_mapping_msg),
	MEMBER(stoup_symbol_mapping_msg, stype_in),
	MEMBER(stoup_symbol_mapping_msg, stype_in_symbol),
	MEMBER(stoup_symbol_mapping_msg, stype_out),
	MEMBER(stoup_symbol_mapping_msg, stype_out_symbol),
	MEMBER(stoup_symbol_mapping_msg, start_ts),
	MEMBER(stoup_symbol_mapping_msg, end_ts),
};

static const struct member system_msg_v1_members[] = {
	HEADER(stoup_system_msg_v1),
	MEMBER(stoup_system_msg_v1, msg),
};

static const struct member system_msg_members[] = {
	HEADER(stoup_system_msg),
	MEMBER(stoup_system_msg, msg),
	MEMBER(stoup_system_msg, code),
};

static const struct member itch_mbo_members[] = {
	MEMBER(stoup_itch_mbo, ts),
	MEMBER(stoup_itch_mbo, seq),
	MEMBER(stoup_itch_mbo, order_ref),
	MEMBER(stoup_itch_mbo, prev_ref),
	MEMBER(stoup_itch_mbo, match),
	MEMBER(stoup_itch_mbo, price),
	MEMBER(stoup_itch_mbo, order_price),
	MEMBER(stoup_itch_mbo, size),
	MEMBER(stoup_itch_mbo, left),
	MEMBER(stoup_itch_mbo, before),
	MEMBER(stoup_itch_mbo, mpid),
	MEMBER(stoup_itch_mbo, locate),
	MEMBER(stoup_itch_mbo, tracking),
	MEMBER(stoup_itch_mbo, type),
	MEMBER(stoup_itch_mbo, side),
	MEMBER(stoup_itch_mbo, printable),
	MEMBER(stoup_itch_mbo, _reserved1),
};

static const struct member itch_trade_members[] = {
	MEMBER(stoup_itch_trade, ts),
	MEMBER(stoup_itch_trade, seq),
	MEMBER(stoup_itch_trade, match),
	MEMBER(stoup_itch_trade, order_ref),
	MEMBER(stoup_itch_trade, size),
	MEMBER(stoup_itch_trade, price),
	MEMBER(stoup_itch_trade, mpid),
	MEMBER(stoup_itch_trade, locate),
	MEMBER(stoup_itch_trade, tracking),
	MEMBER(stoup_itch_trade, type),
	MEMBER(stoup_itch_trade, side),
	MEMBER(stoup_itch_trade, printable),
	MEMBER(stoup_itch_trade, cross),
};

static const struct member event64_members[] = {
	MEMBER(stoup_event64, ev),
	MEMBER(stoup_event64, exch_ts),
	MEMBER(stoup_event64, local_ts),
	MEMBER(stoup_event64, px),
	MEMBER(stoup_event64, qty),
	MEMBER(stoup_event64, order_id),
	MEMBER(stoup_event64, ival),
	MEMBER(stoup_event64, fval),
};

static const struct member tick_members[] = {
	MEMBER(stoup_tick, ts),
	MEMBER(stoup_tick, price),
	MEMBER(stoup_tick, size),
	MEMBER(stoup_tick, flags),
};

static const struct member bar_members[] = {
	MEMBER(stoup_bar, ts),
	MEMBER(stoup_bar, open),
	MEMBER(stoup_bar, high),
	MEMBER(stoup_bar, low),
	MEMBER(stoup_bar, close),
	MEMBER(stoup_bar, volume),
};

#define RECORD(n, s, list)                                                                         \
	{                                                                                          \
		n, sizeof(struct s), _Alignof(struct s), list, sizeof(list) / sizeof(list)[0]      \
	}

static const struct record records[] = {
	RECORD("mbo", stoup_mbo, mbo_members),
	RECORD("trades", stoup_trade, trade_members),
	RECORD("mbp-1", stoup_mbp1, mbp1_members),
	RECORD("tbbo", stoup_mbp1, mbp1_members),
	RECORD("mbp-10", stoup_mbp10, mbp10_members),
	RECORD("bbo-1s", stoup_bbo, bbo_members),
	RECORD("bbo-1m", stoup_bbo, bbo_members),
	RECORD("cmbp-1", stoup_cmbp1, cmbp1_members),
	RECORD("tcbbo", stoup_cmbp1, cmbp1_members),
	RECORD("cbbo-1s", stoup_cbbo, cbbo_members),
	RECORD("cbbo-1m", stoup_cbbo, cbbo_members),
	RECORD("ohlcv-1s", stoup_ohlcv, ohlcv_members),
	RECORD("ohlcv-1m", stoup_ohlcv, ohlcv_members),
	RECORD("ohlcv-1h", stoup_ohlcv, ohlcv_members),
	RECORD("ohlcv-1d", stoup_ohlcv, ohlcv_members),
	RECORD("ohlcv-eod", stoup_ohlcv, ohlcv_members),
	RECORD("status", stoup_status_msg, status_msg_members),
	RECORD("imbalance", stoup_imbalance, imbalance_members),
	RECORD("definition-v1", stoup_definition_v1, definition_v1_members),
	RECORD("definition-v2", stoup_definition_v2, definition_v2_members),
	RECORD("definition", stoup_definition, definition_members),
	RECORD("statistics-v1", stoup_statistics_v1, statistics_v1_members),
	RECORD("statistics", stoup_statistics, statistics_members),
	RECORD("error-v1", stoup_error_msg_v1, error_msg_v1_members),
	RECORD("error", stoup_error_msg, error_msg_members),
	RECORD("symbol-mapping-v1", stoup_symbol_mapping_msg_v1, symbol_mapping_msg_v1_members),
	RECORD("symbol-mapping", stoup_symbol_mapping_msg, symbol_mapping_msg_members),
	RECORD("system-v1", stoup_system_msg_v1, system_msg_v1_members),
	RECORD("system", stoup_system_msg, system_msg_members),
	RECORD("event64", stoup_event64, event64_members),
	RECORD("itch-mbo", stoup_itch_mbo, itch_mbo_members),
	RECORD("itch-trade", stoup_itch_trade, itch_trade_members),
	RECORD("tick", stoup_tick, tick_members),
	RECORD("bar", stoup_bar, bar_members),
};

#define RECORD_CNT (sizeof records / sizeof records[0])

static const struct member *member_find(const struct record *record, const char *name)
{
	for (size_t i = 0; i < record->member_cnt; i++) {
		if (strcmp(record->members[i].name, name) == 0)
			return &record->members[i];
	}
	return NULL;
}

START_TEST(every_schema_has_a_struct)
{
	size_t cnt = 0, struct_cnt = 0;

	while (stoup_schema_builtin(cnt)) {
		size_t found = 0, expected = stoup_schema_builtin(cnt)->stride > 0;

		for (size_t i = 0; i < RECORD_CNT; i++)
			found += strcmp(records[i].schema, stoup_schema_builtin(cnt)->name) == 0;
		ck_assert_msg(found == expected, "schema %s has %zu structs",
			stoup_schema_builtin(cnt)->name, found);
		struct_cnt += expected;
		cnt++;
	}
	ck_assert_uint_eq(struct_cnt, RECORD_CNT);
}
END_TEST

START_TEST(struct_and_schema_are_the_same_layout)
{
	const struct record *record = &records[_i];
	const struct stoup_schema *schema = stoup_schema_by_name(record->schema);

	ck_assert_ptr_nonnull(schema);
	ck_assert_uint_eq(schema->stride, record->len);
	ck_assert_uint_eq(schema->align, record->align);
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];
		const struct member *member = member_find(record, field->name);

		ck_assert_msg(member != NULL, "%s has no member %s", schema->name, field->name);
		ck_assert_msg(member->off == field->off, "%s.%s: member at %zu, field at %u",
			schema->name, field->name, member->off, field->off);
		ck_assert_msg(member->len == (size_t)stoup_type_len(field->type) * field->cnt,
			"%s.%s: member of %zu bytes, field of %u elements", schema->name,
			field->name, member->len, field->cnt);
	}
	ck_assert_uint_eq(schema->field_cnt, record->member_cnt);
}
END_TEST

START_TEST(fields_fill_the_record_without_a_gap)
{
	const struct stoup_schema *schema = stoup_schema_by_name(records[_i].schema);
	uint32_t end = 0;

	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];

		ck_assert_msg(field->off == end,
			"%s.%s starts at %u, the field before it ends at %u", schema->name,
			field->name, field->off, end);
		end += stoup_type_len(field->type) * field->cnt;
	}
	ck_assert_uint_eq(end, schema->stride);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("records");
	TCase *tcase = tcase_create("layout");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, every_schema_has_a_struct);
	tcase_add_loop_test(tcase, struct_and_schema_are_the_same_layout, 0, (int)RECORD_CNT);
	tcase_add_loop_test(tcase, fields_fill_the_record_without_a_gap, 0, (int)RECORD_CNT);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
