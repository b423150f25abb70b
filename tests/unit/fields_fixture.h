/* SPDX-License-Identifier: Apache-2.0 */
/* fields_fixture.h - layouts and records for tests of the field transform, and a slow decoder.
 *
 *      random layout --> records of a pattern per field --encode--> stored --decode--> records
 *
 * fx_decode follows docs/volume-format.md, "The field transform", one value at a time, and shares
 * no code with the one that is tested; it knows streams without packed planes.
 */
#ifndef STOUP_TESTS_FIELDS_FIXTURE_H
#define STOUP_TESTS_FIELDS_FIXTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "codec/block.h"
#include "codec/fields.h"
#include "codec/volume.h"

#define FX_FIELD_CAP 64u

/* xorshift64: the same numbers in each run. */
static inline uint64_t fx_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

struct fx_layout {
	struct stoup_vol_field fields[FX_FIELD_CAP];
	struct stoup_block_layout layout;
};

static const uint8_t fx_widths[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 1};

/* Fields of all types at any offsets, with gaps, in any order. */
static inline void fx_layout_random(struct fx_layout *ret, uint64_t *state, uint32_t field_cnt)
{
	uint32_t off = 0, cnt = 0;

	memset(ret, 0, sizeof(*ret));
	while (cnt < field_cnt) {
		struct stoup_vol_field *field = &ret->fields[cnt++];

		off += fx_random(state) % 4 ? 0 : (uint32_t)(fx_random(state) % 5);
		field->type = (uint8_t)(1 + fx_random(state) % 12);
		field->cnt = (uint16_t)(field->type > 10 ? 1 + fx_random(state) % 11 : 1);
		field->off = off;
		if (field->type <= 8 && fx_random(state) % 2) {
			field->flags = 0x01;
			field->null_bits = UINT64_MAX >> (64 - 8 * fx_widths[field->type]);
			if (field->type % 2 == 0)
				field->null_bits >>= 1;
		}
		if (field->type >= 7 && field->type <= 8)
			field->flags |= fx_random(state) % 2 ? 0x02 : 0;
		if (field->type <= 8 && !(field->flags & 0x02))
			field->exp10 = (int8_t)(fx_random(state) % 2 ? -9 : 0);
		off += (uint32_t)fx_widths[field->type] * field->cnt;
	}
	off += fx_random(state) % 3 ? 0 : (uint32_t)(fx_random(state) % 9);
	if (cnt > 1 && fx_random(state) % 2) {
		struct stoup_vol_field swapped = ret->fields[0];

		ret->fields[0] = ret->fields[cnt - 1];
		ret->fields[cnt - 1] = swapped;
	}
	ret->layout = (struct stoup_block_layout){off, cnt, ret->fields};
}

enum fx_pattern {
	FX_CONSTANT,
	FX_SMALL,   /* few values */
	FX_TICKS,   /* multiples of 250, near each other */
	FX_CLOCK,   /* steps of up to 1000 */
	FX_COUNTER, /* a maximum that grows, and looks back */
	FX_NOISE,
	FX_EXTREME, /* 0, all ones, the greatest and the least signed number */
	FX_JUMPS,   /* steps of half the range */
	FX_PATTERN_CNT
};

static inline uint64_t fx_value(
	enum fx_pattern pattern, uint64_t *last, uint64_t *state, uint32_t width)
{
	static const uint64_t extremes[] = {0, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN};

	switch (pattern) {
	case FX_CONSTANT:
		return 0x0102030405060708u;
	case FX_SMALL:
		return fx_random(state) % 5;
	case FX_TICKS:
		return *last += (fx_random(state) % 7 - 3) * 250;
	case FX_CLOCK:
		return *last += fx_random(state) % 1000;
	case FX_COUNTER:
		if (fx_random(state) % 2)
			return *last - fx_random(state) % 1000;
		return *last += fx_random(state) % 3;
	case FX_NOISE:
		return fx_random(state);
	case FX_EXTREME:
		return extremes[fx_random(state) % 4] >>
		       (fx_random(state) % 2 ? 0 : 64 - 8 * width);
	case FX_JUMPS:
		return *last += (1ull << (8 * width - 1)) - fx_random(state) % 2;
	case FX_PATTERN_CNT:
		break;
	}
	return 0;
}

/* Records of the layout; each field has its own pattern, or all `pattern` if that is one. */
static inline uint8_t *fx_records(const struct stoup_block_layout *layout, uint32_t cnt,
	enum fx_pattern pattern, uint64_t *state)
{
	uint8_t *records = calloc(cnt + 1, layout->stride);

	ck_assert_ptr_nonnull(records);
	for (uint32_t f = 0; f < layout->field_cnt; f++) {
		const struct stoup_vol_field *field = &layout->fields[f];
		enum fx_pattern own =
			pattern < FX_PATTERN_CNT
				? pattern
				: (enum fx_pattern)(fx_random(state) % FX_PATTERN_CNT);
		uint32_t width = fx_widths[field->type];
		uint64_t last = fx_random(state);
		int nulls = (field->flags & 0x01) && fx_random(state) % 2;

		for (uint32_t r = 0; r < cnt; r++) {
			for (uint32_t i = 0; i < field->cnt; i++) {
				uint64_t value = fx_value(own, &last, state, width);

				if (nulls && fx_random(state) % 9 == 0)
					value = field->null_bits;
				memcpy(records + r * layout->stride + field->off + i * width,
					&value, width);
			}
		}
	}
	return records;
}

/* ---- the slow decoder ------------------------------------------------------------------------ */

struct fx_column {
	uint32_t off, width, op, ref;
	uint64_t tick, base, null;
	const uint8_t *raw[8];
	uint8_t constants[8];
	uint32_t kinds[8];
};

static inline uint64_t fx_number(const uint8_t **at, uint32_t len)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < len; i++)
		value |= (uint64_t) * (*at)++ << (8 * i);
	return value;
}

static inline int64_t fx_unfold(uint64_t u)
{
	return u & 1 ? -(int64_t)(u >> 1) - 1 : (int64_t)(u >> 1);
}

static inline uint64_t fx_decode_value(struct fx_column *column, uint64_t u, uint64_t ref)
{
	uint64_t s;

	if (column->op & 0x20) {
		if (!u)
			return column->null;
		u--;
	}
	switch (column->op & 3) {
	case 0:
		return column->base + u * column->tick + ref;
	case 1:
		column->base += (uint64_t)fx_unfold(u) * column->tick;
		return column->base + ref;
	default:
		s = (uint64_t)fx_unfold(u) * column->tick;
		if ((int64_t)s <= 0)
			return column->base + s + ref;
		column->base += s;
		return column->base + ref;
	}
}

/* Decode a stream that is known to be well-formed and has no packed planes. */
static inline void fx_decode(const uint8_t *at, size_t raw_len, uint8_t *rows)
{
	uint32_t stride = (uint32_t)fx_number(&at, 2), column_cnt = (uint32_t)fx_number(&at, 2);
	uint32_t record_cnt = (uint32_t)fx_number(&at, 4), off = 0;
	uint32_t tile_cnt = (uint32_t)fx_number(&at, 4);
	struct fx_column *columns = calloc(column_cnt, sizeof(*columns));
	size_t left = raw_len / stride;

	ck_assert_ptr_nonnull(columns);
	ck_assert_uint_eq(record_cnt, left);
	for (uint32_t i = 0; i < column_cnt; i++) {
		columns[i].off = off;
		columns[i].width = *at++;
		off += columns[i].width;
	}
	for (; left; left -= tile_cnt) {
		tile_cnt = left < tile_cnt ? (uint32_t)left : tile_cnt;
		for (uint32_t i = 0; i < column_cnt; i++) {
			struct fx_column *c = &columns[i];
			uint64_t kinds;

			c->op = *at++;
			c->ref = c->op & 0x04 ? (uint32_t)fx_number(&at, 2) : UINT32_MAX;
			c->tick = c->op & 0x08 ? fx_number(&at, c->width) : 1;
			c->base = c->op & 0x10 ? fx_number(&at, c->width) : 0;
			c->null = c->op & 0x20 ? fx_number(&at, c->width) : 0;
			kinds = fx_number(&at, (c->width + 3) / 4);
			for (uint32_t p = 0; p < c->width; p++) {
				c->kinds[p] = kinds >> (2 * p) & 3;
				if (c->kinds[p] > 1)
					ck_abort_msg("a packed plane");
				if (!c->kinds[p])
					c->constants[p] = *at++;
			}
		}
		for (uint32_t i = 0; i < column_cnt; i++) {
			for (uint32_t p = 0; p < columns[i].width; p++) {
				columns[i].raw[p] = at;
				at += columns[i].kinds[p] ? tile_cnt : 0;
			}
		}
		for (uint32_t r = 0; r < tile_cnt; r++, rows += stride) {
			for (uint32_t i = 0; i < column_cnt; i++) {
				struct fx_column *c = &columns[i];
				uint64_t u = 0, ref = 0, value;

				for (uint32_t p = 0; p < c->width; p++)
					u |= (uint64_t)(c->kinds[p] ? c->raw[p][r]
								    : c->constants[p])
					     << (8 * p);
				if (c->ref != UINT32_MAX)
					memcpy(&ref, rows + columns[c->ref].off, c->width);
				value = fx_decode_value(c, u, ref);
				memcpy(rows + c->off, &value, c->width);
			}
		}
	}
	free(columns);
}

#endif
