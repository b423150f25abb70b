/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - walking two series beside each other. */
#include "producer/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "producer/runs.h"
#include "producer/sums.h"

/* Where one side stands. */
struct side {
	struct stoup_block_cache *cache;
	const struct stoup_parts *parts;
	size_t part_at, part_end;
	uint32_t segment_at;   /* of the part */
	uint32_t left;         /* records of the segment from `record` on */
	const uint8_t *record; /* NULL: the segment's block is not loaded */
};

uint64_t stoup_diff_record_cnt(const struct stoup_parts *parts, size_t group_idx)
{
	const struct stoup_part_group *group = &parts->groups[group_idx];
	uint64_t cnt = 0;
	size_t p;

	for (p = 0; p < group->cnt; p++)
		cnt += parts->parts[group->first + p].series->record_cnt;
	return cnt;
}

static int at_end(const struct side *side)
{
	return side->part_at == side->part_end;
}

static const struct stoup_part *side_part(const struct side *side)
{
	return &side->parts->parts[side->part_at];
}

static uint32_t side_segment_idx(const struct side *side)
{
	return side_part(side)->series->segment_first + side->segment_at;
}

static const struct stoup_vol_segment *side_segment(const struct side *side)
{
	return &side_part(side)->volume->index->segments[side_segment_idx(side)];
}

static void side_init(struct side *side, struct stoup_block_cache *cache,
	const struct stoup_parts *parts, size_t group_idx)
{
	const struct stoup_part_group *group = &parts->groups[group_idx];

	*side = (struct side){.cache = cache,
		.parts = parts,
		.part_at = group->first,
		.part_end = group->first + group->cnt};
	side->left = side_segment(side)->record_cnt;
}

static void side_unload(struct side *side)
{
	if (side->record)
		stoup_block_cache_put(
			side->cache, side_part(side)->volume, side_segment(side)->block_idx);
	side->record = NULL;
}

/* To the next segment. */
static void side_next(struct side *side)
{
	side_unload(side);
	if (++side->segment_at == side_part(side)->series->segment_cnt) {
		side->segment_at = 0;
		side->part_at++;
	}
	if (!at_end(side))
		side->left = side_segment(side)->record_cnt;
}

static int block_error(const struct stoup_part *part, uint32_t block_idx, int code,
	const char *what, struct stoup_error *err)
{
	const char *name = strrchr(part->volume->path, '/');

	return stoup_error_set(err, code, "%.60s: block %" PRIu32 ": %.100s",
		name ? name + 1 : part->volume->path, block_idx, what);
}

/* Have the segment's records in memory. */
static int side_load(struct side *side, struct stoup_error *err)
{
	const struct stoup_part *part = side_part(side);
	const struct stoup_vol_segment *segment = side_segment(side);
	struct stoup_vol_fault fault;
	struct stoup_error run;
	const uint8_t *raw;
	int rc;

	if (side->record)
		return 0;
	rc = stoup_block_cache_get(side->cache, part->volume, segment->block_idx, &raw, &fault);
	if (rc < 0)
		return block_error(part, segment->block_idx, rc, fault.what, err);
	if (stoup_part_schema(part)->stride == 0 &&
		stoup_run_check(part->volume->index, side_segment_idx(side), raw, &run) < 0) {
		stoup_block_cache_put(side->cache, part->volume, segment->block_idx);
		return block_error(part, segment->block_idx, -EBADMSG, run.text, err);
	}
	side->record = raw + segment->raw_off;
	return 0;
}

static void side_take(struct side *side, uint32_t cnt, size_t len)
{
	side->record += len;
	side->left -= cnt;
	if (side->left == 0)
		side_next(side);
}

/* The block of a segment that has it alone and is not begun, else NULL. */
static const struct stoup_vol_block *whole_block(const struct side *side)
{
	const struct stoup_vol_segment *segment = side_segment(side);
	const struct stoup_vol_block *block =
		&side_part(side)->volume->index->blocks[segment->block_idx];

	return side->left == segment->record_cnt && segment->raw_len == block->raw_len ? block
	                                                                               : NULL;
}

/* Both stand before blocks of equal length and hash. */
static int skips(const struct side *a, const struct side *b)
{
	const struct stoup_vol_block *block_a = whole_block(a), *block_b = whole_block(b);

	return block_a && block_b && block_a->raw_len == block_b->raw_len &&
	       block_a->raw_hash == block_b->raw_hash &&
	       side_segment(a)->record_cnt == side_segment(b)->record_cnt;
}

static int record_copy(const struct stoup_schema *schema, const uint8_t *record,
	uint8_t **ret_record, uint32_t *ret_len, int64_t *ret_key)
{
	*ret_len = stoup_sums_record_len(schema, record);
	*ret_key = stoup_sums_key(schema, record);
	*ret_record = malloc(*ret_len);
	if (!*ret_record)
		return -ENOMEM;
	memcpy(*ret_record, record, *ret_len);
	return 0;
}

/* Note the first difference. */
static int first_note(struct stoup_diff_series *found, const struct stoup_schema *schema,
	const struct side *a, const struct side *b, uint64_t ordinal, struct stoup_error *err)
{
	int rc = 0;

	if (!found->equal)
		return 0;
	found->equal = 0;
	found->ordinal = ordinal;
	if (!at_end(a))
		rc = record_copy(schema, a->record, &found->record_a, &found->len_a, &found->key_a);
	if (rc == 0 && !at_end(b))
		rc = record_copy(schema, b->record, &found->record_b, &found->len_b, &found->key_b);
	return rc < 0 ? stoup_error_set(err, rc, "no memory for a record") : 0;
}

/* Compare what both have in memory. */
static int span_compare(struct stoup_diff_series *found, const struct stoup_schema *schema,
	struct side *a, struct side *b, uint64_t *ordinal, struct stoup_error *err)
{
	uint32_t cnt = a->left < b->left ? a->left : b->left, len_a, len_b;
	size_t len = (size_t)cnt * schema->stride;
	int rc = 0;

	if (schema->stride > 0 && memcmp(a->record, b->record, len) == 0) {
		*ordinal += cnt;
		side_take(a, cnt, len);
		side_take(b, cnt, len);
		return 0;
	}
	for (; cnt > 0 && rc == 0; cnt--, (*ordinal)++) {
		len_a = stoup_sums_record_len(schema, a->record);
		len_b = stoup_sums_record_len(schema, b->record);
		if (len_a != len_b || memcmp(a->record, b->record, len_a) != 0) {
			found->differ_cnt++;
			rc = first_note(found, schema, a, b, *ordinal, err);
		}
		side_take(a, 1, len_a);
		side_take(b, 1, len_b);
	}
	return rc;
}

int stoup_diff_series(struct stoup_block_cache *cache, const struct stoup_parts *parts_a,
	size_t group_a, const struct stoup_parts *parts_b, size_t group_b,
	struct stoup_diff_series *ret, struct stoup_error *err)
{
	struct side a, b;
	struct stoup_schema schema;
	uint64_t ordinal = 0;
	int rc = 0;

	*ret = (struct stoup_diff_series){.equal = 1,
		.cnt_a = stoup_diff_record_cnt(parts_a, group_a),
		.cnt_b = stoup_diff_record_cnt(parts_b, group_b)};
	side_init(&a, cache, parts_a, group_a);
	side_init(&b, cache, parts_b, group_b);
	stoup_part_schema_view(side_part(&a), &schema);
	while (rc == 0 && !at_end(&a) && !at_end(&b)) {
		if (skips(&a, &b)) {
			ordinal += a.left;
			side_next(&a);
			side_next(&b);
			continue;
		}
		/* With other lengths a difference is a shift as a rule: counting ends here. */
		if (!ret->equal && ret->cnt_a != ret->cnt_b)
			break;
		rc = side_load(&a, err);
		if (rc == 0)
			rc = side_load(&b, err);
		if (rc == 0)
			rc = span_compare(ret, &schema, &a, &b, &ordinal, err);
	}
	if (rc == 0 && at_end(&a) != at_end(&b) && ret->equal) {
		rc = side_load(at_end(&a) ? &b : &a, err);
		if (rc == 0)
			rc = first_note(ret, &schema, &a, &b, ordinal, err);
	}
	if (!at_end(&a))
		side_unload(&a);
	if (!at_end(&b))
		side_unload(&b);
	if (rc < 0)
		stoup_diff_series_fini(ret);
	return rc;
}

void stoup_diff_series_fini(struct stoup_diff_series *found)
{
	free(found->record_a);
	free(found->record_b);
	found->record_a = found->record_b = NULL;
}
