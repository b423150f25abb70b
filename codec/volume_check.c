/* SPDX-License-Identifier: Apache-2.0 */
/* volume_check.c - the rules that hold between the entries of a volume's index.
 *
 *      schema  <-- block <-- segment --> series --> schema      one schema for all four
 *      block   |seg|  seg  |seg|                                covered exactly, once
 *      series  seg seg seg                                      ordinals and keys ascend
 *
 * Every reference is bounded before it is followed. The order of the checks matters: each relies on
 * those before it (schemas, blocks, series with their segments, cover of the blocks).
 *
 * Invariant: of an index that passed, each user may follow every reference without a check.
 *
 * Concurrency: pure functions.
 */
#include "codec/volume_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "codec/block.h"

#define SERIES_FLAGS STOUP_VOL_SERIES_KEEP_ORDER

/* A fault in `member` of entry `idx` of a section. */
#define ENTRY_FAULT(parser, kind, structure, member, idx, ...)                                     \
	stoup_vol_entry_fault((parser), STOUP_VOL_SECTION_##kind, (idx),                           \
		offsetof(struct stoup_vol_disk_##structure, member), __VA_ARGS__)
#define SCHEMA_FAULT(member, ...)  ENTRY_FAULT(parser, SCHEMAS, schema, member, idx, __VA_ARGS__)
#define BLOCK_FAULT(member, ...)   ENTRY_FAULT(parser, BLOCKS, block, member, idx, __VA_ARGS__)
#define SERIES_FAULT(member, ...)  ENTRY_FAULT(parser, SERIES, series, member, idx, __VA_ARGS__)
#define SEGMENT_FAULT(member, ...) ENTRY_FAULT(parser, SEGMENTS, segment, member, idx, __VA_ARGS__)

/* ---- schemas --------------------------------------------------------------------------------- */

static int schema_check(const struct stoup_vol_parser *parser, uint32_t idx, uint64_t field_first)
{
	const struct stoup_vol_index *index = parser->index;
	const struct stoup_vol_schema *schema = &index->schemas[idx];
	struct stoup_vol_schema_fault fault;

	if (schema->field_first != field_first ||
		schema->field_cnt > index->field_cnt - field_first)
		return SCHEMA_FAULT(field_first,
			"its fields are %u from number %u on, but the next free one is %" PRIu64
			" of %u",
			schema->field_cnt, schema->field_first, field_first, index->field_cnt);
	if (stoup_vol_schema_check(schema, index->fields + field_first, parser->strict, &fault)) {
		if (fault.field < 0)
			return SCHEMA_FAULT(name_off, "%s", fault.what);
		return stoup_vol_entry_fault(parser, STOUP_VOL_SECTION_FIELDS,
			field_first + (uint64_t)fault.field, 0, "%s (schema %u)", fault.what, idx);
	}
	for (uint32_t i = 0; i < idx; i++) {
		if (schema->hash == index->schemas[i].hash &&
			!strcmp(schema->name, index->schemas[i].name))
			return SCHEMA_FAULT(name_off, "the same as schema %u", i);
	}
	return 0;
}

static int schemas_check(const struct stoup_vol_parser *parser)
{
	uint64_t field_first = 0;

	for (uint32_t i = 0; i < parser->index->schema_cnt; i++) {
		int rc = schema_check(parser, i, field_first);

		if (rc)
			return rc;
		field_first += parser->index->schemas[i].field_cnt;
	}
	if (field_first != parser->index->field_cnt)
		return stoup_vol_entry_fault(
			parser, STOUP_VOL_SECTION_FIELDS, field_first, 0, "belongs to no schema");
	return 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int block_place_check(const struct stoup_vol_parser *parser, uint32_t idx, uint64_t prev_end)
{
	const struct stoup_vol_block *block = &parser->index->blocks[idx];
	uint64_t align = stoup_vol_block_align(block->codec, block->transform);

	if (block->stored_off % align)
		return BLOCK_FAULT(stored_off, "offset %" PRIu64 " is not aligned to %" PRIu64,
			block->stored_off, align);
	if (block->stored_off < prev_end)
		return BLOCK_FAULT(stored_off,
			"offset %" PRIu64 " is before the end of what precedes it, %" PRIu64,
			block->stored_off, prev_end);
	if (block->stored_off > parser->footer_off ||
		block->stored_len > parser->footer_off - block->stored_off)
		return BLOCK_FAULT(stored_off,
			"offset %" PRIu64 " and length %u reach beyond the footer at %" PRIu64,
			block->stored_off, block->stored_len, parser->footer_off);
	return 0;
}

static int block_check(const struct stoup_vol_parser *parser, uint32_t idx, uint64_t prev_end)
{
	const struct stoup_vol_index *index = parser->index;
	const struct stoup_vol_block *block = &index->blocks[idx];
	uint32_t stride;

	if (block->schema_idx >= index->schema_cnt)
		return BLOCK_FAULT(
			schema_idx, "schema %u of %u", block->schema_idx, index->schema_cnt);
	if (!block->raw_len || block->raw_len > STOUP_BLOCK_RAW_CAP)
		return BLOCK_FAULT(raw_len, "raw length %u is not within 1 to %u", block->raw_len,
			STOUP_BLOCK_RAW_CAP);
	stride = index->schemas[block->schema_idx].stride;
	if (stride && block->raw_len % stride)
		return BLOCK_FAULT(raw_len, "raw length %u is no multiple of the stride %u",
			block->raw_len, stride);
	if (!stoup_vol_stored_len_valid(
		    block->codec, block->transform, block->stored_len, block->raw_len))
		return BLOCK_FAULT(stored_len,
			"stored length %u is impossible for raw length %u under codec %u",
			block->stored_len, block->raw_len, block->codec);
	return block_place_check(parser, idx, prev_end);
}

static int blocks_check(const struct stoup_vol_parser *parser)
{
	uint64_t end = STOUP_VOL_HEADER_LEN;

	for (uint32_t i = 0; i < parser->index->block_cnt; i++) {
		const struct stoup_vol_block *block = &parser->index->blocks[i];
		int rc = block_check(parser, i, end);

		if (rc)
			return rc;
		end = block->stored_off + block->stored_len;
	}
	return 0;
}

/* ---- series and segments --------------------------------------------------------------------- */

/* What the next segment of a series must continue. */
struct series_state {
	uint64_t ordinal;
	int64_t last_key;
};

static int segment_place_check(const struct stoup_vol_parser *parser, uint32_t idx)
{
	const struct stoup_vol_index *index = parser->index;
	const struct stoup_vol_segment *segment = &index->segments[idx];
	const struct stoup_vol_block *block = &index->blocks[segment->block_idx];
	const struct stoup_vol_schema *schema = &index->schemas[block->schema_idx];

	if (segment->raw_off >= block->raw_len || !segment->raw_len ||
		segment->raw_len > block->raw_len - segment->raw_off)
		return SEGMENT_FAULT(raw_off,
			"bytes %u to %" PRIu64 " are not inside block %u of %u bytes",
			segment->raw_off, (uint64_t)segment->raw_off + segment->raw_len,
			segment->block_idx, block->raw_len);
	if (segment->raw_off % (schema->stride ? schema->stride : schema->align))
		return SEGMENT_FAULT(raw_off, "offset %u is no multiple of the stride %u",
			segment->raw_off, schema->stride ? schema->stride : schema->align);
	if (!segment->record_cnt)
		return SEGMENT_FAULT(record_cnt, "no records");
	if (schema->stride ? (uint64_t)segment->record_cnt * schema->stride != segment->raw_len
			   : segment->record_cnt > segment->raw_len)
		return SEGMENT_FAULT(record_cnt,
			"%u records with a stride of %u do not make %u bytes", segment->record_cnt,
			schema->stride, segment->raw_len);
	return 0;
}

static int segment_check(const struct stoup_vol_parser *parser, uint32_t idx, uint32_t series_idx,
	struct series_state *state)
{
	const struct stoup_vol_index *index = parser->index;
	const struct stoup_vol_segment *segment = &index->segments[idx];
	int rc;

	if (segment->series_idx != series_idx)
		return SEGMENT_FAULT(series_idx, "it is of series %u, but stands among those of %u",
			segment->series_idx, series_idx);
	if (segment->block_idx >= index->block_cnt)
		return SEGMENT_FAULT(
			block_idx, "block %u of %u", segment->block_idx, index->block_cnt);
	if (index->blocks[segment->block_idx].schema_idx != index->series[series_idx].schema_idx)
		return SEGMENT_FAULT(block_idx, "block %u holds another schema than series %u",
			segment->block_idx, series_idx);
	rc = segment_place_check(parser, idx);
	if (rc)
		return rc;
	if (segment->ordinal != state->ordinal)
		return SEGMENT_FAULT(ordinal,
			"first record has ordinal %" PRIu64 ", but the series is at %" PRIu64,
			segment->ordinal, state->ordinal);
	if (segment->first_key <= 0 || segment->first_key < state->last_key ||
		segment->last_key < segment->first_key)
		return SEGMENT_FAULT(first_key,
			"keys %" PRId64 " to %" PRId64 " are not positive and ascending after "
			"%" PRId64,
			segment->first_key, segment->last_key, state->last_key);
	state->ordinal += segment->record_cnt;
	state->last_key = segment->last_key;
	return 0;
}

/* -1, 0, 1 as the two series compare by (name, schema hash); names as unsigned bytes. */
static int series_compare(const struct stoup_vol_index *index, uint32_t a, uint32_t b)
{
	uint64_t hash_a = index->schemas[index->series[a].schema_idx].hash;
	uint64_t hash_b = index->schemas[index->series[b].schema_idx].hash;
	int order = strcmp(index->series[a].name, index->series[b].name);

	return order ? order : (hash_a > hash_b) - (hash_a < hash_b);
}

static int series_head_check(
	const struct stoup_vol_parser *parser, uint32_t idx, uint64_t segment_first)
{
	const struct stoup_vol_index *index = parser->index;
	const struct stoup_vol_series *series = &index->series[idx];

	if (series->schema_idx >= index->schema_cnt)
		return SERIES_FAULT(
			schema_idx, "schema %u of %u", series->schema_idx, index->schema_cnt);
	if (idx && series_compare(index, idx - 1, idx) >= 0)
		return SERIES_FAULT(
			name_off, "not behind its predecessor in the order of (name, schema hash)");
	if (parser->strict && (series->flags & ~SERIES_FLAGS))
		return SERIES_FAULT(flags, "unknown flags 0x%x", series->flags);
	if (series->segment_first != segment_first || !series->segment_cnt ||
		series->segment_cnt > index->segment_cnt - segment_first)
		return SERIES_FAULT(segment_first,
			"its segments are %u from number %u on, but the next free one is %" PRIu64
			" of %u",
			series->segment_cnt, series->segment_first, segment_first,
			index->segment_cnt);
	return 0;
}

static int series_check(const struct stoup_vol_parser *parser, uint32_t idx, uint64_t segment_first)
{
	const struct stoup_vol_index *index = parser->index;
	const struct stoup_vol_series *series = &index->series[idx];
	struct series_state state = {0, 0};
	int rc = series_head_check(parser, idx, segment_first);

	for (uint32_t i = 0; !rc && i < series->segment_cnt; i++)
		rc = segment_check(parser, series->segment_first + i, idx, &state);
	if (rc)
		return rc;
	if (series->record_cnt != state.ordinal)
		return SERIES_FAULT(record_cnt,
			"%" PRIu64 " records, but its segments have %" PRIu64, series->record_cnt,
			state.ordinal);
	if (series->first_key != index->segments[segment_first].first_key ||
		series->last_key != state.last_key)
		return SERIES_FAULT(first_key,
			"keys %" PRId64 " to %" PRId64 " are not those of its segments",
			series->first_key, series->last_key);
	return 0;
}

static int all_series_check(const struct stoup_vol_parser *parser)
{
	uint64_t segment_first = 0;

	for (uint32_t i = 0; i < parser->index->series_cnt; i++) {
		int rc = series_check(parser, i, segment_first);

		if (rc)
			return rc;
		segment_first += parser->index->series[i].segment_cnt;
	}
	if (segment_first != parser->index->segment_cnt)
		return stoup_vol_entry_fault(parser, STOUP_VOL_SECTION_SEGMENTS, segment_first, 0,
			"belongs to no series");
	return 0;
}

/* ---- cover of the blocks --------------------------------------------------------------------- */

/* A segment as seen from its block. */
struct cover {
	uint32_t raw_off, segment_idx;
};

static int cover_compare(const void *a, const void *b)
{
	const struct cover *x = a, *y = b;

	return (x->raw_off > y->raw_off) - (x->raw_off < y->raw_off);
}

/* Sort one block's covers, unless they ascend already, as a writer makes them. */
static void cover_sort(struct cover *covers, size_t cnt)
{
	for (size_t i = 1; i < cnt; i++) {
		if (covers[i].raw_off >= covers[i - 1].raw_off)
			continue;
		qsort(covers, cnt, sizeof(*covers), cover_compare);
		return;
	}
}

static int cover_block(
	const struct stoup_vol_parser *parser, uint32_t idx, struct cover *covers, size_t cnt)
{
	uint32_t raw_len = parser->index->blocks[idx].raw_len, end = 0;

	cover_sort(covers, cnt);
	for (size_t i = 0; i < cnt; i++) {
		uint32_t segment_idx = covers[i].segment_idx;

		if (covers[i].raw_off != end)
			return ENTRY_FAULT(parser, SEGMENTS, segment, raw_off, segment_idx,
				"begins at byte %u of block %u, where %u is the next uncovered one",
				covers[i].raw_off, idx, end);
		end += parser->index->segments[segment_idx].raw_len;
	}
	if (end != raw_len)
		return BLOCK_FAULT(raw_len, "segments cover %u of its %u bytes", end, raw_len);
	return 0;
}

/* Bucket the segments by block (a counting sort), then look at each bucket. */
static int covers_check(const struct stoup_vol_parser *parser)
{
	const struct stoup_vol_index *index = parser->index;
	uint32_t *ends = calloc((size_t)index->block_cnt + 1, sizeof(*ends));
	struct cover *covers = calloc((size_t)index->segment_cnt + 1, sizeof(*covers));
	int rc = 0;

	if (!ends || !covers) {
		rc = stoup_vol_fault_set(parser->fault, -ENOMEM, STOUP_VOL_REGION_FOOTER,
			parser->footer_off, "no memory to check %u segments", index->segment_cnt);
		goto out_free;
	}
	for (uint32_t i = 0; i < index->segment_cnt; i++)
		ends[index->segments[i].block_idx + 1]++;
	for (uint32_t i = 0; i < index->block_cnt; i++)
		ends[i + 1] += ends[i];
	/* Now ends[b] is where bucket b begins; filling it moves ends[b] to its end. */
	for (uint32_t i = 0; i < index->segment_cnt; i++) {
		const struct stoup_vol_segment *segment = &index->segments[i];

		covers[ends[segment->block_idx]++] = (struct cover){segment->raw_off, i};
	}
	for (uint32_t i = 0; !rc && i < index->block_cnt; i++) {
		uint32_t first = i ? ends[i - 1] : 0;

		rc = cover_block(parser, i, covers + first, ends[i] - first);
	}
out_free:
	free(covers);
	free(ends);
	return rc;
}

/* ---- superseded ids -------------------------------------------------------------------------- */

static int superseded_check(const struct stoup_vol_parser *parser)
{
	static const uint8_t no_id[16];
	const uint8_t *before = no_id;

	for (uint32_t i = 0; i < parser->index->superseded_cnt; i++) {
		const uint8_t *id = parser->index->superseded[i];

		if (memcmp(id, before, sizeof(no_id)) <= 0)
			return stoup_vol_entry_fault(parser, STOUP_VOL_SECTION_SUPERSEDED, i, 0,
				"the id is zero, or not behind its predecessor in byte order");
		if (!memcmp(id, parser->index->header.id, sizeof(no_id)))
			return stoup_vol_entry_fault(parser, STOUP_VOL_SECTION_SUPERSEDED, i, 0,
				"the volume supersedes itself");
		before = id;
	}
	return 0;
}

int stoup_vol_index_check(const struct stoup_vol_parser *parser)
{
	int rc = schemas_check(parser);

	if (!rc)
		rc = blocks_check(parser);
	if (!rc)
		rc = all_series_check(parser);
	if (!rc)
		rc = covers_check(parser);
	if (!rc)
		rc = superseded_check(parser);
	return rc;
}
