/* SPDX-License-Identifier: Apache-2.0 */
/* fields_rows.c - the portable kernel: planes to rows, 32 records and one column at a time.
 *
 *      bytes of the planes --> u --> s (sign out of bit 0, tick) --> value --> + reference --> row
 *
 * It is what the other kernels are compared with. All arithmetic is unsigned,
 * modulo 2^64; a sign is bit 63.
 *
 * Concurrency: none; it writes the columns' bases of its tile.
 */
#include "codec/fields.h"

#include <string.h>

static void gather(const struct stoup_fields_word *word, const struct stoup_fields_column *column,
	uint32_t first, uint64_t *ret)
{
	uint64_t constants = word->constants >> column->shift & column->mask;
	uint32_t plane = column->shift / 8u;

	for (uint32_t r = 0; r < STOUP_FIELDS_GROUP; r++)
		ret[r] = constants;
	for (uint32_t i = 0; i < column->width; i++) {
		const uint8_t *at = word->at[plane + i] + (first & word->step[plane + i]);

		if (!(word->live >> (plane + i) & 1))
			continue;
		for (uint32_t r = 0; r < STOUP_FIELDS_GROUP; r++)
			ret[r] |= (uint64_t)at[r] << (8 * i);
	}
}

/* u = 0, 1, 2, 3, ... as 0, -1, 1, -2, ... */
static uint64_t unfold(uint64_t u)
{
	return u >> 1 ^ (0 - (u & 1));
}

/* From u to values before the reference is added. An undefined value (u = 0 - 1) leaves the
 * base. */
static void restore(struct stoup_fields_column *column, uint64_t *values)
{
	uint64_t base = column->base, minus = column->flags & STOUP_FIELDS_NULL ? 1 : 0;

	if (column->mode == STOUP_FIELDS_OFFSET) {
		for (uint32_t r = 0; r < STOUP_FIELDS_GROUP; r++)
			values[r] = base + (values[r] - minus) * column->tick;
		return;
	}
	for (uint32_t r = 0; r < STOUP_FIELDS_GROUP; r++) {
		uint64_t s = unfold(values[r] - (values[r] ? minus : 0)) * column->tick;

		values[r] = base + s;
		if (column->mode == STOUP_FIELDS_STEP || !(s >> 63))
			base += s;
	}
	column->base = base;
}

/* Add what the rows hold already in the reference column. */
static void ref_add(const struct stoup_fields_column *column, uint32_t stride, const uint8_t *rows,
	uint64_t *values)
{
	const uint8_t *at = rows + column->ref_off;

	for (uint32_t r = 0; r < STOUP_FIELDS_GROUP; r++, at += stride) {
		uint64_t ref = 0;

		memcpy(&ref, at, column->width);
		values[r] += ref;
	}
}

/* The copies have constant lengths, so each is one store. */
static void scatter(const uint64_t *values, uint32_t width, uint32_t stride, uint8_t *at)
{
	for (uint32_t r = 0; r < STOUP_FIELDS_GROUP; r++, at += stride) {
		switch (width) {
		case 8:
			memcpy(at, &values[r], 8);
			break;
		case 4:
			memcpy(at, &values[r], 4);
			break;
		case 2:
			memcpy(at, &values[r], 2);
			break;
		default:
			*at = (uint8_t)values[r];
		}
	}
}

static void column_rows(struct stoup_fields_tile *tile, const struct stoup_fields_word *word,
	struct stoup_fields_column *column, uint32_t first, uint8_t *rows)
{
	uint64_t values[STOUP_FIELDS_GROUP], nulls = 0;

	gather(word, column, first, values);
	for (uint32_t r = 0; (column->flags & STOUP_FIELDS_NULL) && r < STOUP_FIELDS_GROUP; r++)
		nulls |= (uint64_t)!values[r] << r;
	if (column->flags || column->mode)
		restore(column, values);
	if (column->flags & STOUP_FIELDS_REF)
		ref_add(column, tile->stride, rows, values);
	for (uint32_t r = 0; nulls && r < STOUP_FIELDS_GROUP; r++)
		values[r] = nulls >> r & 1 ? column->null : values[r];
	scatter(values, column->width, tile->stride, rows + column->off);
}

void stoup_fields_rows(struct stoup_fields_tile *tile, uint32_t first, uint32_t cnt, uint8_t *rows)
{
	size_t stride = tile->stride;

	for (; cnt; cnt -= STOUP_FIELDS_GROUP, rows += STOUP_FIELDS_GROUP * stride) {
		for (uint32_t w = 0; w < tile->word_cnt; w++) {
			const struct stoup_fields_word *word = &tile->words[w];

			for (uint32_t i = 0; i < word->column_cnt; i++)
				column_rows(tile, word, &tile->columns[word->column_first + i],
					first, rows);
		}
		first += STOUP_FIELDS_GROUP;
	}
}
