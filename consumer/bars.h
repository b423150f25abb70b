/* SPDX-License-Identifier: Apache-2.0 */
/* bars.h - the inside of stoup_bars.h: what the fields of a schema mean (bars_source.c), the trades of a span a batch
 * at a time (bars_batch.c), the bars that become of them (bars.c), and their forms (bars_out.c).
 *
 *      span ---512 records---> batch: key, price, size, side of the trades, column by column
 *                                 |
 *                              runs, each up to where the pending bar ends
 *
 * Columns are taken out of the records in one loop for each field, which the field's type is chosen outside of; a
 * run is then found and added up over plain arrays. A batch fits the first-level cache.
 *
 * Concurrency: one thread, as the cursor.
 */
#ifndef STOUP_CONSUMER_BARS_H
#define STOUP_CONSUMER_BARS_H

#include <string.h>
#include "consumer/cursor.h"
#include "consumer/stoup_bars.h"

#define STOUP_BARS_BATCH 512
#define STOUP_BARS_SOURCE_CAP                                                                      \
	8 /* schemas of a merge that are remembered; more are looked up again */
#define STOUP_BARS_VALUE_CAP 4 /* values that a rule accepts */

__extension__ typedef __int128 stoup_wide;
__extension__ typedef unsigned __int128 stoup_uwide;

struct stoup_bars_column {
	uint32_t off;
	uint8_t type;
	int8_t exp10;
	uint8_t has_null;
	int64_t null;   /* of integers, extended as the column's type is */
	double divisor; /* integers as doubles: value / divisor * factor */
	double factor;
};

/* A code out of one field, or out of two of one byte, the second one in the bits from 8 on. */
struct stoup_bars_code {
	struct stoup_bars_column columns[2];
	uint32_t column_cnt; /* 0: there is none */
	uint64_t mask;
};

struct stoup_bars_set {
	uint64_t values[STOUP_BARS_VALUE_CAP];
	uint32_t cnt;
};

/* What a schema's fields are to bars. */
struct stoup_bars_source {
	const struct stoup_schema *schema;
	struct stoup_bars_column price, size;
	int has_size, is_float;
	int skip_zero; /* without a size it is no trade */
	struct stoup_bars_code action, side;
	struct stoup_bars_set trades, buys, sells;
};

/* Trades, in the order of the cursor. */
struct stoup_bars_batch {
	uint32_t cnt, at; /* at: the first one that is not in a bar yet */
	int64_t keys[STOUP_BARS_BATCH];
	union {
		int64_t prices[STOUP_BARS_BATCH];
		double f_prices[STOUP_BARS_BATCH];
	};
	union {
		uint64_t sizes[STOUP_BARS_BATCH];
		double f_sizes[STOUP_BARS_BATCH];
	};
	int8_t sides[STOUP_BARS_BATCH]; /* 1 buy, -1 sell, 0 not known */
	uint16_t idx[STOUP_BARS_BATCH]; /* record of the batch */
	uint64_t ordinal;               /* of its first record */
	uint32_t record_cnt;
	int bad_size; /* the batch ends in front of a size below zero, whose record is the last */
};

/* A bar in the making, or done. */
struct stoup_bars_bar {
	int64_t open_ns, close_ns, last_ns;
	int64_t open, high, low, close;
	double f_open, f_high, f_low, f_close;
	uint64_t volume, buy, sell;
	double f_volume, f_buy, f_sell;
	stoup_wide notional;
	double f_notional;
	stoup_uwide progress; /* volume, notional: so far */
	double f_progress;
	uint64_t count, first_ordinal, last_ordinal;
	int partial, filled;
};

/* The caller's spec, in the library's own memory. */
struct stoup_bars_wish {
	uint32_t kind, flags;
	uint64_t step;
	int32_t step_exp10;
	int64_t offset_ns, end_ns;
	int named[5]; /* price, size, side, action, action_values: not NULL */
	char names[5][STOUP_FIELD_NAME_CAP];
};

#define STOUP_BARS_PRICE  0
#define STOUP_BARS_SIZE   1
#define STOUP_BARS_SIDE   2
#define STOUP_BARS_ACTION 3
#define STOUP_BARS_VALUES 4

struct stoup_bars {
	struct stoup_cursor *cur;
	struct stoup_bars_wish wish;
	struct stoup_bars_source sources[STOUP_BARS_SOURCE_CAP];
	uint32_t source_cnt, source_at; /* the source of `span` */
	int has_side;
	/* step in the sums' own unit */
	stoup_uwide step;
	double f_step;
	struct stoup_schema schema; /* what comes out; no name: not known yet */
	struct stoup_field fields[24];
	struct stoup_span span;
	uint64_t pos;  /* of the span: first record that no batch had */
	int64_t clock; /* greatest key so far */
	struct stoup_bars_batch batch;
	struct stoup_bars_bar bar;  /* pending; count 0: none */
	struct stoup_bars_bar last; /* yielded last; count 0: none was */
	int64_t fill_next;          /* open time of the interval behind it */
	uint64_t told_cnt;          /* trades of the pending bar when it was told last */
	uint64_t bar_cnt;
	int failed; /* for ever, with the error */
	union {
		struct stoup_bar_record record;
		struct stoup_bar_record_f64 record_f64;
	} out;
	struct stoup_error error;
};

/* ---- bars_spec.c ------------------------------------------------------------------------------ */

/* Check and copy a spec: 0, or -EINVAL with text. */
int stoup_bars_wish_take(
	const struct stoup_bars_spec *spec, struct stoup_bars_wish *ret, struct stoup_error *err);

/* ---- bars_source.c ---------------------------------------------------------------------------- */

/* Find what a schema's fields are: 0, or -EINVAL with text. */
int stoup_bars_source_find(const struct stoup_schema *schema, const struct stoup_bars_wish *wish,
	struct stoup_bars_source *ret, struct stoup_error *err);

/* Fill bars->schema and the step by the first source: 0, or -EINVAL with text. */
int stoup_bars_scale(struct stoup_bars *bars, struct stoup_error *err);

/* ---- bars.c ----------------------------------------------------------------------------------- */

#define TIME(bars) ((bars)->wish.kind == STOUP_BARS_TIME)

/* The cursor's next span into bars->span, and what its schema means: 1, 0, or a negative errno with text. */
int stoup_bars_span(struct stoup_bars *bars);

/* The next bar: as stoup_bars_next. */
int stoup_bars_step(struct stoup_bars *bars, struct stoup_bars_bar *ret);

/* ---- bars_batch.c ----------------------------------------------------------------------------- */

/* Take the next records of bars->span, at least one, into the batch. */
void stoup_bars_gather(struct stoup_bars *bars);

#endif
