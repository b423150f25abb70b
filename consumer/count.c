/* SPDX-License-Identifier: Apache-2.0 */
/* count.c - how much a range has: from the index alone, or exact with a look at the blocks at its two ends.
 *
 *      index      [10 .. 20][20 .. 30][31 .. 40][45 .. 50]
 *      range          [15 ..                 38)
 *      begin      0 < ? < 4                              a key between a segment's first and last: bounds
 *      end                               8 < ? < 12      exact: that segment is read and bisected
 *
 * Invariant: record_min <= the records of a scan of the same range in the same snapshot <= record_max.
 */
#include <errno.h>
#include "consumer/cursor.h"

/* An ordinal as far as it is known. */
struct edge {
	uint64_t min, max;
};

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The first record with a key of at least key_ns. */
static struct edge edge_of(const struct stoup_cursor *cur, int64_t key_ns)
{
	struct stoup_place place;
	struct edge ret;

	if (stoup_cursor_key_place(cur, key_ns, &place, &ret.min) == 0) {
		ret.max = ret.min;
		return ret;
	}
	/* Its first record is earlier, its last one is not. */
	ret.max = ret.min + stoup_segment_at(cur, place)->record_cnt - 1;
	ret.min++;
	return ret;
}

/* The range's two ends; exact where cur->low and cur->high were settled. */
static void edges_of(
	const struct stoup_cursor *cur, int exact, struct edge *ret_begin, struct edge *ret_end)
{
	struct edge begin = {0, 0}, end = {stoup_cursor_total(cur), stoup_cursor_total(cur)};

	if (!exact && cur->range.from_ns != 0)
		begin = edge_of(cur, cur->range.from_ns);
	if (!exact && cur->range.to_ns != 0)
		end = edge_of(cur, cur->range.to_ns);
	ret_begin->min = greater(begin.min, cur->low);
	ret_begin->max = greater(begin.max, cur->low);
	ret_end->min = lesser(end.min, cur->high);
	ret_end->max = lesser(end.max, cur->high);
}

/* The limit takes from one end. */
static void limit_edges(uint64_t limit, int from_end, struct edge *begin, struct edge *end)
{
	if (from_end) {
		begin->min = greater(begin->min, end->min > limit ? end->min - limit : 0);
		begin->max = greater(begin->max, end->max > limit ? end->max - limit : 0);
	} else if (limit < UINT64_MAX - begin->max) {
		end->min = lesser(end->min, begin->min + limit);
		end->max = lesser(end->max, begin->max + limit);
	}
}

/* What the index says of the segments that have records [begin, end). */
static void survey(
	const struct stoup_cursor *cur, uint64_t begin, uint64_t end, struct stoup_count *ret)
{
	int64_t from_ns = cur->range.from_ns, to_ns = cur->range.to_ns;

	for (uint32_t p = 0; p < cur->part_cnt; p++) {
		const struct stoup_part *part = &cur->parts[p];
		struct stoup_place place = {.part = p, .seg = stoup_part_holds(part, begin)};
		const struct stoup_catalog_segment *seg;
		uint32_t block_idx = UINT32_MAX, met = 0;

		for (; (seg = stoup_segment_at(cur, place)) != NULL &&
			part->ordinal + seg->ordinal < end;
			place.seg++) {
			if (seg->record_cnt == 0)
				continue;
			if (ret->segment_cnt++ == 0)
				ret->first_key =
					seg->first_key > from_ns ? seg->first_key : from_ns;
			ret->last_key =
				to_ns != 0 && seg->last_key >= to_ns ? to_ns - 1 : seg->last_key;
			if (seg->block_idx != block_idx)
				ret->raw_len += part->vol->blocks[seg->block_idx].raw_len;
			block_idx = seg->block_idx;
			met = 1;
		}
		ret->volume_cnt += met;
	}
}

static void count(const struct stoup_cursor *cur, const struct stoup_range *range, int exact,
	struct stoup_count *ret)
{
	struct edge begin, end;
	uint32_t flags = range ? range->flags : 0;
	int from_end = !(flags & STOUP_LAST) != !(flags & STOUP_BACKWARD);
	uint64_t limit = range && range->limit ? range->limit : UINT64_MAX;

	*ret = (struct stoup_count){.exact = exact != 0};
	edges_of(cur, exact, &begin, &end);
	ret->record_min = lesser(end.min > begin.max ? end.min - begin.max : 0, limit);
	ret->record_max = lesser(end.max > begin.min ? end.max - begin.min : 0, limit);
	/* From a key to itself: of the two edges, which are one, the index knows no more than of each. */
	if (cur->range.to_ns != 0 && cur->range.from_ns >= cur->range.to_ns)
		ret->record_max = 0;
	if (ret->record_min == ret->record_max)
		ret->exact = 1;
	if (limit != UINT64_MAX)
		limit_edges(limit, from_end, &begin, &end);
	ret->ordinal_min = begin.min;
	ret->ordinal_max = begin.max;
	if (ret->record_max > 0)
		survey(cur, begin.min, end.max, ret);
}

int stoup_count(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, int exact, struct stoup_count *ret,
	struct stoup_error *err)
{
	struct stoup_range mine = range ? *range : (struct stoup_range){0};
	struct stoup_cursor *cur;
	int rc = stoup_bounds_check(range, err);

	if (rc < 0)
		return rc;
	/* The limit is applied to the counts; the order does not matter to them. */
	mine.limit = 0;
	mine.flags &= ~(STOUP_LAST | STOUP_FOLLOW | STOUP_BACKWARD);
	if (!exact)
		mine.flags &= ~(STOUP_DIRECT | STOUP_DIRECT_OR_POOL);
	rc = stoup_scan(st, series, &mine, &cur, err);
	if (rc < 0)
		return rc;
	if (exact) {
		cur->range.settle = STOUP_SETTLE_BOTH;
		cur->pending |= STOUP_PENDING_EDGES;
		rc = stoup_cursor_ready(cur);
	}
	if (rc < 0)
		stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	else
		count(cur, range, exact, ret);
	stoup_cursor_close(cur);
	return rc < 0 ? rc : 0;
}
