/* SPDX-License-Identifier: Apache-2.0 */
/* bars_batch.c - the trades of a run of records as columns.
 *
 *      records   [..][T ][..][..][T ]        idx 1 4
 *      columns   keys, prices, sizes, sides  of 1 4
 *
 * Each step narrows idx down: first to the trades by their action, then to those with a price. What a record of no
 * trade costs is its key and its action.
 */
#include <math.h>
#include "consumer/bars.h"

struct rows {
	const uint8_t *base;
	uint64_t stride;
	const uint16_t *idx;
	uint32_t cnt;
};

/* dst[i] = the field of record idx[i]. A type of its own for each loop. */
#define LOOP(from, to)                                                                             \
	do {                                                                                       \
		for (uint32_t i = 0; i < rows->cnt; i++) {                                         \
			from value;                                                                \
                                                                                                   \
			memcpy(&value, base + rows->idx[i] * rows->stride, sizeof(value));         \
			dst[i] = (to)value;                                                        \
		}                                                                                  \
	} while (0)

static void load_ints(const struct rows *rows, const struct stoup_bars_column *column, int64_t *dst)
{
	const uint8_t *base = rows->base + column->off;

	switch (column->type) {
	case STOUP_TYPE_CHAR:
	case STOUP_TYPE_U8:
		LOOP(uint8_t, int64_t);
		break;
	case STOUP_TYPE_I8:
		LOOP(int8_t, int64_t);
		break;
	case STOUP_TYPE_U16:
		LOOP(uint16_t, int64_t);
		break;
	case STOUP_TYPE_I16:
		LOOP(int16_t, int64_t);
		break;
	case STOUP_TYPE_U32:
		LOOP(uint32_t, int64_t);
		break;
	case STOUP_TYPE_I32:
		LOOP(int32_t, int64_t);
		break;
	default:
		LOOP(int64_t, int64_t);
	}
}

/* Floats as they are, integers times their scale; undefined: NaN. */
static void load_doubles(
	const struct rows *rows, const struct stoup_bars_column *column, double *dst)
{
	const uint8_t *base = rows->base + column->off;
	int64_t ints[STOUP_BARS_BATCH];

	if (column->type == STOUP_TYPE_F32) {
		LOOP(float, double);
		return;
	}
	if (column->type == STOUP_TYPE_F64) {
		LOOP(double, double);
		return;
	}
	load_ints(rows, column, ints);
	for (uint32_t i = 0; i < rows->cnt; i++) {
		double value = column->type == STOUP_TYPE_U64 ? (double)(uint64_t)ints[i]
		                                              : (double)ints[i];

		dst[i] = column->has_null && ints[i] == column->null
		                 ? NAN
		                 : value / column->divisor * column->factor;
	}
}

/* The codes of the rows; of a second field in the bits from 8 on. */
static void load_codes(const struct rows *rows, const struct stoup_bars_code *code, int64_t *dst)
{
	int64_t second[STOUP_BARS_BATCH];

	load_ints(rows, &code->columns[0], dst);
	if (code->column_cnt == 2) {
		load_ints(rows, &code->columns[1], second);
		for (uint32_t i = 0; i < rows->cnt; i++)
			dst[i] = (dst[i] & 0xff) | (second[i] & 0xff) << 8;
	}
	for (uint32_t i = 0; i < rows->cnt; i++)
		dst[i] &= (int64_t)code->mask;
}

static int in_set(const struct stoup_bars_set *set, int64_t value)
{
	int found = 0;

	for (uint32_t i = 0; i < set->cnt; i++)
		found |= (int64_t)set->values[i] == value;
	return found;
}

/* Times of the batch's records: the greatest key so far. A key above the segment's last is an undefined time. */
static void clock_take(struct stoup_bars *bars, const uint8_t *base, uint32_t cnt, int64_t *clocks)
{
	const struct stoup_span *span = &bars->span;
	int64_t clock = bars->clock, key;

	for (uint32_t i = 0; i < cnt; i++) {
		memcpy(&key, base + i * span->stride + span->schema->key_off, sizeof(key));
		clock = key > clock && key <= span->last_key ? key : clock;
		clocks[i] = clock;
	}
	bars->clock = clock;
}

/* Keep those of idx that are trades. */
static void choose_trades(const struct stoup_bars_source *source, struct rows *rows, uint16_t *idx)
{
	int64_t codes[STOUP_BARS_BATCH];
	uint32_t kept = 0;

	if (source->action.column_cnt == 0)
		return;
	load_codes(rows, &source->action, codes);
	for (uint32_t i = 0; i < rows->cnt; i++) {
		idx[kept] = idx[i];
		kept += (uint32_t)in_set(&source->trades, codes[i]);
	}
	rows->cnt = kept;
}

/* Keep those with a price. */
static void choose_priced(
	const struct stoup_bars_source *source, struct rows *rows, struct stoup_bars_batch *batch)
{
	int64_t null = source->price.null;
	uint32_t kept = 0;

	if (source->is_float) {
		load_doubles(rows, &source->price, batch->f_prices);
		for (uint32_t i = 0; i < rows->cnt; i++) {
			batch->idx[kept] = batch->idx[i];
			batch->f_prices[kept] = batch->f_prices[i];
			kept += isfinite(batch->f_prices[i]) ? 1 : 0;
		}
		rows->cnt = kept;
		return;
	}
	load_ints(rows, &source->price, batch->prices);
	if (!source->price.has_null)
		return;
	for (uint32_t i = 0; i < rows->cnt; i++) {
		batch->idx[kept] = batch->idx[i];
		batch->prices[kept] = batch->prices[i];
		kept += batch->prices[kept] != null;
	}
	rows->cnt = kept;
}

/* Sizes, undefined ones 0. Returns the number of rows in front of the first that is below zero. */
static uint32_t load_sizes(const struct stoup_bars_source *source, const struct rows *rows,
	struct stoup_bars_batch *batch)
{
	const struct stoup_bars_column *column = &source->size;
	int64_t *sizes = (int64_t *)(void *)batch->sizes;
	uint32_t i;

	if (!source->has_size) {
		memset(batch->sizes, 0, rows->cnt * sizeof(batch->sizes[0]));
		return rows->cnt;
	}
	if (source->is_float) {
		load_doubles(rows, column, batch->f_sizes);
		for (i = 0; i < rows->cnt; i++)
			batch->f_sizes[i] = isfinite(batch->f_sizes[i]) ? batch->f_sizes[i] : 0;
		for (i = 0; i < rows->cnt && batch->f_sizes[i] >= 0; i++)
			;
		return i;
	}
	load_ints(rows, column, sizes);
	for (i = 0; column->has_null && i < rows->cnt; i++)
		sizes[i] = sizes[i] == column->null ? 0 : sizes[i];
	if (column->type == STOUP_TYPE_U64)
		return rows->cnt;
	for (i = 0; i < rows->cnt && sizes[i] >= 0; i++)
		;
	return i;
}

/* Leave out those without a size. */
static void choose_sized(struct rows *rows, struct stoup_bars_batch *batch)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < rows->cnt; i++) {
		uint64_t bits = batch->sizes[i]; /* of a double 0 as well */

		batch->idx[kept] = batch->idx[i];
		batch->prices[kept] = batch->prices[i];
		batch->sizes[kept] = bits;
		kept += bits != 0;
	}
	rows->cnt = kept;
}

static void load_sides(const struct stoup_bars_source *source, const struct rows *rows,
	struct stoup_bars_batch *batch)
{
	int64_t codes[STOUP_BARS_BATCH];

	if (source->side.column_cnt == 0) {
		memset(batch->sides, 0, rows->cnt);
		return;
	}
	load_codes(rows, &source->side, codes);
	for (uint32_t i = 0; i < rows->cnt; i++)
		batch->sides[i] = (int8_t)(in_set(&source->buys, codes[i]) -
					   in_set(&source->sells, codes[i]));
}

void stoup_bars_gather(struct stoup_bars *bars)
{
	const struct stoup_bars_source *source = &bars->sources[bars->source_at];
	const struct stoup_span *span = &bars->span;
	struct stoup_bars_batch *batch = &bars->batch;
	uint64_t left = span->record_cnt - bars->pos;
	uint32_t cnt = left < STOUP_BARS_BATCH ? (uint32_t)left : STOUP_BARS_BATCH, good;
	int64_t clocks[STOUP_BARS_BATCH];
	struct rows rows = {.base = (const uint8_t *)span->base + bars->pos * span->stride,
		.stride = span->stride,
		.idx = batch->idx,
		.cnt = cnt};

	batch->ordinal = span->ordinal + bars->pos;
	batch->bad_size = 0;
	batch->at = 0;
	clock_take(bars, rows.base, cnt, clocks);
	for (uint32_t i = 0; i < cnt; i++)
		batch->idx[i] = (uint16_t)i;
	choose_trades(source, &rows, batch->idx);
	choose_priced(source, &rows, batch);
	good = load_sizes(source, &rows, batch);
	if (good < rows.cnt) {
		batch->bad_size = 1;
		cnt = batch->idx[good] + 1u;
		bars->clock = clocks[cnt - 1];
		rows.cnt = good;
	}
	if (source->skip_zero)
		choose_sized(&rows, batch);
	load_sides(source, &rows, batch);
	for (uint32_t i = 0; i < rows.cnt; i++)
		batch->keys[i] = clocks[batch->idx[i]];
	batch->cnt = rows.cnt;
	batch->record_cnt = cnt;
	bars->pos += cnt;
}
