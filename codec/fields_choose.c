/* SPDX-License-Identifier: Apache-2.0 */
/* fields_choose.c - which operation suits a column: by trying each on a sample of the tile.
 *
 *      sample --op--> residuals --split--> planes --order-0 entropy--> bits;  the fewest bits win
 *
 * The rule. Candidates are tried in this order: offset, step, peak; then, for each of the up to two
 * columns of its family before it, offset and step of the difference. A candidate takes the place
 * of the best one so far only if it saves more than 1/64 of its bits and more than 1/32 bit per
 * value, since the earlier ones decode faster. Every candidate is divided by the greatest common
 * divisor of its residuals, and has a code of its own for the column's undefined value where the
 * tile has some.
 *
 * Concurrency: pure functions.
 */
#include "codec/fields.h"

#include <string.h>
#include "codec/block_private.h"
#include "codec/volume_private.h"

#define FIELDS_REF_CNT 2 /* columns before it that one is compared with */

/* Numbers of the volume format: docs/volume-format.md, "Fields". */
#define FIELD_NULL 0x01u
#define FIELD_TIME 0x02u
#define TYPE_F32   9u
#define TYPE_F64   10u

/* ---- columns of a record --------------------------------------------------------------------- */

/* Bytes that are no integers: in the widest columns, which cost the least. */
static uint32_t plan_bytes(struct stoup_fields_plan *plan, uint32_t cnt, uint32_t off, uint32_t end)
{
	while (off < end && cnt < STOUP_FIELDS_COLUMN_CAP) {
		uint32_t left = end - off, width = left >= 8   ? 8
		                                   : left >= 4 ? 4
		                                   : left >= 2 ? 2
		                                               : 1;

		plan[cnt++] =
			(struct stoup_fields_plan){.off = (uint16_t)off, .width = (uint8_t)width};
		off += width;
	}
	return off < end ? UINT32_MAX : cnt;
}

/* Times are one family, prices of one scale another. */
static uint8_t family_of(const struct stoup_vol_field *field)
{
	if (field->flags & FIELD_TIME)
		return 1;
	return field->exp10 ? (uint8_t)(64 + field->exp10) : 0;
}

static const struct stoup_vol_field *field_after(
	const struct stoup_block_layout *layout, uint32_t off)
{
	const struct stoup_vol_field *found = NULL;

	for (uint32_t i = 0; i < layout->field_cnt; i++) {
		const struct stoup_vol_field *field = &layout->fields[i];

		if (field->off >= off && (!found || field->off < found->off))
			found = field;
	}
	return found;
}

uint32_t stoup_fields_plan(const struct stoup_block_layout *layout,
	struct stoup_fields_plan plan[STOUP_FIELDS_COLUMN_CAP])
{
	const struct stoup_vol_field *field;
	uint32_t cnt = 0, off = 0;

	if (!layout->stride || layout->stride > STOUP_FIELDS_STRIDE_CAP)
		return 0;
	while ((field = field_after(layout, off)) != NULL) {
		uint32_t width = stoup_vol_type_len(field->type),
			 end = field->off + width * field->cnt;
		int is_int = stoup_vol_type_is_int(field->type) && field->cnt == 1;

		if (!width || !field->cnt || end > layout->stride)
			return 0;
		cnt = plan_bytes(plan, cnt, off, is_int ? field->off : end);
		if (cnt >= STOUP_FIELDS_COLUMN_CAP)
			return 0;
		if (is_int)
			plan[cnt++] = (struct stoup_fields_plan){
				.null_bits = field->null_bits,
				.off = (uint16_t)field->off,
				.width = (uint8_t)width,
				.is_int = 1,
				.has_null = (field->flags & FIELD_NULL) != 0,
				.family = family_of(field),
			};
		off = end;
	}
	cnt = plan_bytes(plan, cnt, off, layout->stride);
	return cnt <= STOUP_FIELDS_COLUMN_CAP ? cnt : 0;
}

int stoup_fields_doubtful(const struct stoup_block_layout *layout)
{
	for (uint32_t i = 0; i < layout->field_cnt; i++) {
		if (layout->fields[i].type == TYPE_F32 || layout->fields[i].type == TYPE_F64)
			return 1;
	}
	return 0;
}

void stoup_fields_column_get(const struct stoup_fields_plan *column, const uint8_t *rows,
	size_t row_len, uint32_t cnt, uint64_t *ret)
{
	const uint8_t *at = rows + column->off;
	uint8_t width = column->width;

	for (uint32_t i = 0; i < cnt; i++, at += row_len) {
		uint64_t value = 0;

		switch (width) {
		case 8:
			memcpy(&value, at, 8);
			break;
		case 4:
			memcpy(&value, at, 4);
			break;
		case 2:
			memcpy(&value, at, 2);
			break;
		default:
			value = *at;
		}
		ret[i] = value;
	}
}

/* ---- candidates ------------------------------------------------------------------------------ */

struct choice {
	const struct stoup_fields_plan *plan;
	uint32_t idx;
	int nulls, costly;
	struct stoup_fields_op best;
	uint64_t best_cost;
	uint64_t own[STOUP_FIELDS_SAMPLE_CAP], ref[STOUP_FIELDS_SAMPLE_CAP];
	uint64_t residuals[STOUP_FIELDS_SAMPLE_CAP];
	struct stoup_fields_values values;
};

static void candidate_try(struct choice *choice, uint8_t mode, int64_t ref)
{
	const struct stoup_fields_plan *column = &choice->plan[choice->idx];
	struct stoup_fields_op op = {.mode = mode};
	uint64_t varying, cost;

	if (ref >= 0) {
		op.flags = STOUP_FIELDS_REF;
		op.ref = (uint16_t)ref;
	}
	if (choice->nulls) {
		op.flags |= STOUP_FIELDS_NULL;
		op.null = column->null_bits;
	}
	choice->values.ref = ref >= 0 ? choice->ref : NULL;
	if (stoup_fields_op_fit(&op, &choice->values))
		return;
	varying = stoup_fields_residuals(&op, &choice->values, choice->residuals);
	cost = stoup_fields_cost(choice->residuals, choice->values.cnt, varying, choice->costly);
	if (choice->best_cost != UINT64_MAX &&
		cost + cost / 64 + ((uint64_t)choice->values.cnt << STOUP_FIELDS_COST_SHIFT) / 32 >=
			choice->best_cost)
		return;
	choice->best = op;
	choice->best_cost = cost;
}

static void refs_try(struct choice *choice, const uint8_t *rows, size_t row_len)
{
	const struct stoup_fields_plan *column = &choice->plan[choice->idx];
	int left = FIELDS_REF_CNT;

	for (uint32_t i = choice->idx; i-- > 0 && left;) {
		if (choice->plan[i].family != column->family ||
			choice->plan[i].width != column->width)
			continue;
		left--;
		stoup_fields_column_get(
			&choice->plan[i], rows, row_len, choice->values.cnt, choice->ref);
		candidate_try(choice, STOUP_FIELDS_OFFSET, i);
		candidate_try(choice, STOUP_FIELDS_STEP, i);
	}
}

void stoup_fields_choose(const struct stoup_fields_plan *plan, uint32_t idx, const uint8_t *rows,
	size_t row_len, uint32_t cnt, int nulls, int costly, struct stoup_fields_op *ret)
{
	struct choice choice = {.plan = plan,
		.idx = idx,
		.nulls = nulls,
		.costly = costly,
		.best = {.tick = 1},
		.best_cost = UINT64_MAX,
		.values = {.cnt = cnt, .width = plan[idx].width}};

	*ret = choice.best;
	if (!plan[idx].is_int || plan[idx].width == 1)
		return;
	choice.values.own = choice.own;
	stoup_fields_column_get(&plan[idx], rows, row_len, cnt, choice.own);
	candidate_try(&choice, STOUP_FIELDS_OFFSET, -1);
	candidate_try(&choice, STOUP_FIELDS_STEP, -1);
	candidate_try(&choice, STOUP_FIELDS_PEAK, -1);
	if (plan[idx].family)
		refs_try(&choice, rows, row_len);
	*ret = choice.best;
}
