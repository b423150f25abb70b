/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_bars.h - bars by time, trades, volume or notional, made of the trades that a cursor yields.
 *
 *      spans of a cursor --trades among the records--> pending bar --complete--> stoup_bars_next
 *                                                        \--end of the data--> kept; told with STOUP_BARS_LAST
 *
 *      struct stoup_bars_spec spec = {.struct_len = sizeof(spec)};
 *      struct stoup_bar_record bar;
 *
 *      if (stoup_bars_spec_parse("1m", &spec, &err) < 0 || stoup_scan(st, &series, NULL, &cur, &err) < 0 ||
 *              stoup_bars_open(cur, &spec, &bars, &err) < 0)
 *              die(err.text);
 *      while ((rc = stoup_bars_next(bars, &bar)) > 0)
 *              use(&bar);
 *      if (rc < 0)
 *              die(stoup_bars_error(bars)->text);
 *      stoup_bars_close(bars);
 *      stoup_cursor_close(cur);
 *
 * Invariant: nothing looks ahead. A bar is yielded when it is complete, and available_ns is the time from which on
 * it could be known:
 *
 *      kind       complete                                                open_ns, close_ns         available_ns
 *      time       a record, trade or not, has a key of close_ns or more   [open_ns, close_ns)       close_ns
 *      tick       with the trade that is the step-th                      first and last trade      key of the last
 *      volume     with the trade that brings the volume to the step       the same                  the same
 *      notional   the same of the sum of |price| x size                   the same                  the same
 *
 * A trade is never split: what it has above the step stays in its bar, and the next one begins with the next trade.
 * A record whose key is close_ns exactly belongs to the next bar. Trades of one key stay in the order of the cursor.
 * In a series with STOUP_SERIES_KEEP_ORDER, whose times may step back, the time of a record is the greatest key so
 * far: when it was there.
 *
 * Which records are trades, and what their fields are called, is known of these schemas:
 *
 *      schema                                price  size      a trade is                        buyer began
 *      mbo mbp-1 mbp-10 trades tbbo          price  size      action T                          side B (A: seller)
 *      cmbp-1 tcbbo                          price  size      action T                          side B (A)
 *      tick                                  price  size      every record                      -
 *      event64                               px     qty       kind 2 with the local bit         bit 29 (28)
 *      binance-trades                        price  qty       every record                      not is_buyer_maker
 *      binance-aggtrades                     price  quantity  every record                      not is_buyer_maker
 *      tardis-trades tardis-liquidations     price  amount    every record                      side B (S)
 *      lobster                               price  size      type 4, 5 and 6                   direction -1 (1) of 4, 5
 *      itch-trade                            price  size      printable Y and shares            resting side S (B) of E, C
 *      itch-mbo                              price  size      type E and C, printable Y         resting side S (B)
 *
 * Of mbo, F (fill) is the resting order's side of a trade that T tells already: it does not count. What is not
 * printable in ITCH is told again by the cross; trades that are broken later stay in. Other schemas: `price` or `px`;
 * `size`, `qty`, `quantity`, `amount` or `volume`; `side` (text: B, S or A); every record. The spec may name other
 * fields. Records whose price is undefined (or no finite double) are left out, a size that is undefined counts as 0.
 *
 * Integer prices and sizes stay exact. Where one of the two fields is a float, all is done in doubles: values are
 * those of the records (an integer field times its scale), sums are added in the order of the trades.
 *
 * Concurrency: of one thread at a time, as its cursor. Several bars objects want several cursors.
 */
#ifndef STOUP_BARS_H
#define STOUP_BARS_H

#include <stddef.h>
#include <stdint.h>
#include "stoup.h"

#ifdef __cplusplus
extern "C" {
#endif

struct stoup_bars;

/* Kinds of bars. */
#define STOUP_BARS_TIME     1u /* step: nanoseconds */
#define STOUP_BARS_TICK     2u /* step: trades */
#define STOUP_BARS_VOLUME   3u /* step: of the size's own unit, step * 10^step_exp10 */
#define STOUP_BARS_NOTIONAL 4u /* step: of price x size, step * 10^step_exp10 */

#define STOUP_BARS_FILL                                                                            \
	0x1u /* time: an interval without trades, behind the first one, is a bar as well */
#define STOUP_BARS_LAST                                                                            \
	0x2u /* at the end of the data the pending bar comes too, with `partial` 1 */

/* What bars are wanted: struct_len, kind and step; all else may be 0. */
struct stoup_bars_spec {
	size_t struct_len;  /* sizeof(struct stoup_bars_spec) */
	uint32_t kind;      /* STOUP_BARS_TIME ... */
	uint32_t flags;     /* STOUP_BARS_FILL, STOUP_BARS_LAST, or 0 */
	uint64_t step;      /* at least 1 */
	int32_t step_exp10; /* volume, notional: -18 to 18; else 0 */
	uint32_t zero;
	/* Time: bars open at offset_ns + n * step since 1970-01-01T00:00:00Z: the begin of any session will do, such as
	 * 22 hours for days that begin at 22:00 UTC. There is no calendar: where sessions begin an hour later in
	 * winter, scan summer and winter apart. */
	int64_t offset_ns;
	/* Time: the data are known to be complete up to there (such as the range's to_ns, in the past). Bars that
	 * close by then are complete at the end of the cursor; a record that comes after all counts as of that time. 0 =
	 * only what the records themselves tell. */
	int64_t end_ns;
	const char *price, *size, *side; /* fields; NULL = see above, "" = none (not of price) */
	const char *action;              /* field that tells a trade, NULL and "" likewise */
	const char *action_values;       /* its bytes for trades ("T"), with `action`; else NULL */
};

/* One bar. Prices are integers of the price field's scale, volumes of the size field's, exactly as in the records
 * (stoup_bars_schema tells the scales). */
struct stoup_bar_record {
	int64_t open_ns, close_ns; /* time: of the interval; else keys of first and last trade */
	int64_t available_ns;      /* from when on it is known */
	int64_t open, high, low, close;
	uint64_t volume;
	uint64_t buy_volume, sell_volume; /* by who began; UINT64_MAX where no field tells */
	uint64_t count;                   /* trades */
	uint64_t notional_low;            /* sum of price x size, exact, in two's complement: */
	int64_t notional_high;            /* high * 2^64 + low */
	int64_t vwap; /* to the nearest, halves away from 0; INT64_MAX: no volume */
	uint64_t first_ordinal,
		last_ordinal; /* of its trades; filled: of the trade before, twice */
	uint8_t partial;      /* 1: not complete, may come again with more in it */
	uint8_t filled;       /* 1: no trade; open to close are the close before */
	uint8_t zero[6];
};

/* The same in doubles: prices and volumes in their natural units. Undefined: NaN. */
struct stoup_bar_record_f64 {
	int64_t open_ns, close_ns;
	int64_t available_ns;
	double open, high, low, close;
	double volume;
	double buy_volume, sell_volume;
	uint64_t count;
	double notional;
	double vwap;
	uint64_t first_ordinal, last_ordinal;
	uint8_t partial;
	uint8_t filled;
	uint8_t zero[6];
};

/* Read a text into kind, step and step_exp10 of `spec`, whose struct_len is set; the rest stays as it is:
 *
 *      1m 90s 500ms 10us 1ns 4h 1d 1w    time
 *      1h+30m 1d+13h                     time, and where bars open: half past each hour, 13:00 UTC each day (offset_ns)
 *      100t                              trades
 *      5000v 0.25v                       volume, in the size's own unit (shares, contracts, coins)
 *      1000000n                          notional
 *
 * 0, or -EINVAL with a text that says what is wrong. Thread-safe. */
STOUP_API int stoup_bars_spec_parse(
	const char *text, struct stoup_bars_spec *spec, struct stoup_error *err);

/* Bars of what `cur` yields from its place on. The cursor stays the caller's, must be forward, and is used by the
 * bars alone (but for stoup_cursor_skip after an error) until stoup_bars_close; close it after that. Its series may
 * be of several names and schemas (a merge), of one scale. `spec` is copied. Needs no block.
 * -EINVAL with text: a spec that is not understood, a backward cursor, messages, bars, a field that is not there or
 * not a number, a step finer than the size's scale; -ENOMEM. */
STOUP_API int stoup_bars_open(struct stoup_cursor *cur, const struct stoup_bars_spec *spec,
	struct stoup_bars **ret, struct stoup_error *err);

/* The next bar: 1; 0 at the end; a negative errno of stoup_next, or of the records:
 *
 *      -EBADMSG     a size below zero; the next call goes on behind that record
 *      -EOVERFLOW   a bar's volume is above 64 bits, or its notional above 127: it stays so
 *      -EDOM        prices or sizes are floats: call stoup_bars_next_f64
 *      -EINVAL      a merge brought records that the spec does not fit; it stays so
 *
 * After 0 a cursor with STOUP_FOLLOW may have more later: the pending bar is kept, and goes on. May block as
 * stoup_next. Outputs are untouched unless 1. */
STOUP_API int stoup_bars_next(struct stoup_bars *bars, struct stoup_bar_record *ret);

/* The same in doubles, of any fields: integers are turned into doubles when the bar is complete. Each bar comes
 * once, by whichever of the calls is made. */
STOUP_API int stoup_bars_next_f64(struct stoup_bars *bars, struct stoup_bar_record_f64 *ret);

/* The same as a span of one record for generic code such as printing, by the schema of stoup_bars_schema. Valid until
 * the next call on `bars`; it is no span of the pool, and can not be held. */
STOUP_API int stoup_bars_next_span(struct stoup_bars *bars, struct stoup_span *ret);

/* What stoup_bars_next_span yields: "trade-bar" (struct stoup_bar_record), or "trade-bar-f64" where a field is a
 * float. Scales are those of the records. Time bars have STOUP_SCHEMA_BAR and the interval, and their key is the open
 * time; the key of others is the close. NULL with a merge that has not yielded yet. Lives as long as `bars`. */
STOUP_API const struct stoup_schema *stoup_bars_schema(const struct stoup_bars *bars);

/* The reason behind the last negative return of the calls above; valid until the next one. */
STOUP_API const struct stoup_error *stoup_bars_error(const struct stoup_bars *bars);

/* notional / volume as a double, in units of the price's scale as open is; NaN where there is no volume.
 * Thread-safe. */
STOUP_API double stoup_bar_vwap(const struct stoup_bar_record *bar);

/* Free the bars, not the cursor. NULL is allowed. */
STOUP_API void stoup_bars_close(struct stoup_bars *bars);

#ifdef __cplusplus
}
#endif

#ifndef __cplusplus
_Static_assert(sizeof(struct stoup_bar_record) == 136, "a bar has no holes");
_Static_assert(sizeof(struct stoup_bar_record_f64) == 128, "a bar has no holes");
#endif

#endif
