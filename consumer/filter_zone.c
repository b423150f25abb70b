/* SPDX-License-Identifier: Apache-2.0 */
/* filter_zone.c - a filter against a row of a zone map: can any record of the segment match?
 *
 *      row   | segment | zero | flags | pad | least, greatest | least, greatest | ~
 *               u32      u32    u8     to 8    of the field's width
 *
 * Each comparison says "perhaps" or "no"; `and` and `or` of these are as those of truths, since no comparison is
 * negated (filter.h). What the row says is compared and never followed.
 *
 * Concurrency: pure functions.
 */
#include "consumer/filter.h"
#include "shm/catalog.h"

#define HEAD_LEN 8u

static int is_zoned(const struct stoup_field *field)
{
	return field->cnt == 1 && field->type != STOUP_TYPE_BYTES &&
	       !(field->flags & STOUP_FIELD_HIDDEN);
}

void stoup_filter_zone_bind(struct stoup_filter *filter, const struct stoup_schema *schema)
{
	uint32_t cnt = 0, flag = HEAD_LEN, off;

	for (uint32_t i = 0; i < schema->field_cnt; i++)
		cnt += (uint32_t)is_zoned(&schema->fields[i]);
	off = HEAD_LEN + ((cnt + 7) & ~7u);
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		if (!is_zoned(&schema->fields[i]))
			continue;
		for (uint32_t j = 0; j < filter->node_cnt; j++) {
			struct stoup_filter_node *node = &filter->nodes[j];

			if (node->op < STOUP_FILTER_AND && node->field_idx == i) {
				node->zone_flag = flag;
				node->zone_off = off;
			}
		}
		flag++;
		off += 2 * stoup_type_len(schema->fields[i].type);
	}
	filter->zone_len = off;
}

/* A value in the row, as ranges have it. */
static stoup_wide value_at(uint32_t type, const uint8_t *at)
{
	uint64_t bits = 0;

	memcpy(&bits, at, stoup_type_len(type));
	switch (type) {
	case STOUP_TYPE_I8:
		return (int8_t)bits;
	case STOUP_TYPE_I16:
		return (int16_t)bits;
	case STOUP_TYPE_I32:
		return (int32_t)bits;
	case STOUP_TYPE_I64:
		return (int64_t)bits;
	case STOUP_TYPE_F32:
		return stoup_filter_f32_key((uint32_t)bits);
	case STOUP_TYPE_F64:
		return stoup_filter_f64_key(bits);
	default:
		return bits;
	}
}

static int may_match(const struct stoup_filter_node *node, const uint8_t *row)
{
	stoup_wide least, greatest;
	uint8_t flags;

	if (node->op == STOUP_FILTER_NEVER)
		return 0;
	if (!row || node->zone_flag == 0 ||
		(node->op != STOUP_FILTER_RANGE && node->op != STOUP_FILTER_NULL))
		return 1;
	flags = row[node->zone_flag];
	if (node->op == STOUP_FILTER_NULL)
		return (flags & (node->flip ? STOUP_ZONE_HAS_VALUES : STOUP_ZONE_HAS_NULL)) != 0;
	if (!(flags & STOUP_ZONE_HAS_VALUES))
		return 0;
	least = value_at(node->type, row + node->zone_off);
	greatest = value_at(node->type, row + node->zone_off + stoup_type_len(node->type));
	if (node->flip)
		return least < node->low || greatest > node->high;
	return least <= node->high && greatest >= node->low;
}

int stoup_filter_zone_excludes(const struct stoup_filter *filter, const uint8_t *row, uint64_t len)
{
	uint8_t stack[STOUP_FILTER_STACK];
	uint32_t top = 0;

	if (len < filter->zone_len)
		row = NULL;
	for (uint32_t i = 0; i < filter->node_cnt; i++) {
		const struct stoup_filter_node *node = &filter->nodes[i];

		if (node->op < STOUP_FILTER_AND) {
			stack[top++] = (uint8_t)may_match(node, row);
			continue;
		}
		top--;
		if (node->op == STOUP_FILTER_AND)
			stack[top - 1] &= stack[top];
		else
			stack[top - 1] |= stack[top];
	}
	return !stack[0];
}
