/* SPDX-License-Identifier: Apache-2.0 */
/* volume_write.c - the writer's state: what has been appended to a volume so far.
 *
 *      add_schema, add_series          declare, any time before use
 *      add_block --> place in the file --> add_segment ...    (volume_finish.c makes the rest)
 *
 * Entries stay in the order in which they were added until stoup_vol_finish sorts them. Arrays grow
 * by doubling and series are found through an open-addressing hash map, so that 100,000 series and
 * a million segments cost linear time.
 *
 * Invariant: each entry by itself keeps the rules of the format; those between entries (cover of
 * the blocks, order) are checked when the writer is finished.
 *
 * Concurrency: a writer belongs to one thread.
 */
#include "codec/volume_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "codec/block.h"

#define ARRAY_CAP_MIN 16u
#define ARRAY_CNT_CAP (STOUP_VOL_FOOTER_CAP / 2u) /* entries or bytes: a footer holds fewer */
#define SLOT_CNT_MIN  64u
#define BLOCK_END_CAP ((uint64_t)INT64_MAX - 2 * (uint64_t)STOUP_VOL_FOOTER_CAP)

/* ---- arrays ---------------------------------------------------------------------------------- */

void *stoup_vol_array_append(struct stoup_vol_array *array, uint32_t cnt, size_t entry_len)
{
	uint64_t need = (uint64_t)array->cnt + cnt, cap = array->cap ? array->cap : ARRAY_CAP_MIN;
	char *at = array->at;

	if (need > ARRAY_CNT_CAP)
		return NULL;
	if (need > array->cap) {
		while (cap < need)
			cap *= 2;
		at = realloc(array->at, (size_t)cap * entry_len);
		if (!at)
			return NULL;
		array->at = at;
		array->cap = (uint32_t)cap;
	}
	at += array->cnt * entry_len;
	memset(at, 0, cnt * entry_len);
	array->cnt = (uint32_t)need;
	return at;
}

/* ---- life ------------------------------------------------------------------------------------ */

int stoup_vol_writer_create(const struct stoup_vol_header *header, struct stoup_vol_writer **ret)
{
	struct stoup_vol_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return -ENOMEM;
	writer->header = *header;
	writer->end_off = STOUP_VOL_HEADER_LEN;
	*ret = writer;
	return 0;
}

void stoup_vol_writer_destroy(struct stoup_vol_writer *writer)
{
	if (!writer)
		return;
	free(writer->schemas.at);
	free(writer->fields.at);
	free(writer->series.at);
	free(writer->blocks.at);
	free(writer->segments.at);
	free(writer->superseded.at);
	free(writer->sources.at);
	free(writer->names.at);
	free(writer->zones.at);
	free(writer->zone_words.at);
	free(writer->slots);
	free(writer->tail);
	free(writer);
}

const struct stoup_vol_fault *stoup_vol_writer_fault(const struct stoup_vol_writer *writer)
{
	return &writer->fault;
}

/* ---- schemas --------------------------------------------------------------------------------- */

static int schema_valid(struct stoup_vol_writer *writer, const struct stoup_vol_schema *schema,
	const struct stoup_vol_field *fields)
{
	struct stoup_vol_schema_fault fault;

	if (stoup_vol_schema_check(schema, fields, 1, &fault))
		return stoup_vol_fault_set(&writer->fault, -EINVAL, STOUP_VOL_REGION_FOOTER, 0,
			"schema not added: %s (field %lld)", fault.what, (long long)fault.field);
	return 0;
}

int stoup_vol_add_schema(struct stoup_vol_writer *writer, const struct stoup_vol_schema *schema,
	const struct stoup_vol_field *fields)
{
	const struct stoup_vol_writer_schema *others = writer->schemas.at;
	struct stoup_vol_writer_schema *entry;
	struct stoup_vol_field *copy = NULL;
	uint32_t field_first = writer->fields.cnt;
	int rc = schema_valid(writer, schema, fields);

	if (rc)
		return rc;
	if (writer->schemas.cnt >= STOUP_VOL_SCHEMA_CAP)
		return -E2BIG;
	for (uint32_t i = 0; i < writer->schemas.cnt; i++) {
		if (others[i].schema.hash == schema->hash && !strcmp(others[i].name, schema->name))
			return -EEXIST;
	}
	entry = stoup_vol_array_append(&writer->schemas, 1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	if (schema->field_cnt) {
		copy = stoup_vol_array_append(&writer->fields, schema->field_cnt, sizeof(*copy));
		if (!copy) {
			writer->schemas.cnt--;
			return -ENOMEM;
		}
		memcpy(copy, fields, schema->field_cnt * sizeof(*copy));
	}
	entry->schema = *schema;
	entry->schema.name = NULL;
	entry->schema.field_first = field_first;
	memcpy(entry->name, schema->name, strlen(schema->name));
	return (int)writer->schemas.cnt - 1;
}

/* ---- series ---------------------------------------------------------------------------------- */

static uint64_t series_hash(const char *name, size_t len, uint32_t schema_idx)
{
	return stoup_vol_hash(name, len) + schema_idx * UINT64_C(0x9e3779b97f4a7c15);
}

/* The slot of (name, schema_idx), or the free one where it belongs. */
static uint32_t *series_slot(
	const struct stoup_vol_writer *writer, const char *name, size_t len, uint32_t schema_idx)
{
	const struct stoup_vol_writer_series *series = writer->series.at;
	const char *names = writer->names.at;
	uint32_t mask = writer->slot_cnt - 1;
	uint32_t at = (uint32_t)series_hash(name, len, schema_idx) & mask;

	for (; writer->slots[at]; at = (at + 1) & mask) {
		const struct stoup_vol_writer_series *other = &series[writer->slots[at] - 1];

		if (other->schema_idx == schema_idx && other->name_len == len &&
			!memcmp(names + other->name_off, name, len))
			break;
	}
	return &writer->slots[at];
}

/* Keep at least a quarter of the slots free. */
static int series_slots_grow(struct stoup_vol_writer *writer)
{
	const struct stoup_vol_writer_series *series = writer->series.at;
	const char *names = writer->names.at;
	uint32_t *old = writer->slots, cnt = writer->slot_cnt;

	if (cnt && writer->series.cnt < cnt / 4 * 3)
		return 0;
	cnt = cnt ? cnt * 2 : SLOT_CNT_MIN;
	writer->slots = calloc(cnt, sizeof(*writer->slots));
	if (!writer->slots) {
		writer->slots = old;
		return -ENOMEM;
	}
	writer->slot_cnt = cnt;
	for (uint32_t i = 0; i < writer->series.cnt; i++)
		*series_slot(writer, names + series[i].name_off, series[i].name_len,
			series[i].schema_idx) = i + 1;
	free(old);
	return 0;
}

int64_t stoup_vol_add_series(
	struct stoup_vol_writer *writer, const char *name, uint32_t schema_idx, uint32_t flags)
{
	size_t len = strnlen(name, STOUP_VOL_NAME_CAP);
	struct stoup_vol_writer_series *entry;
	uint32_t *slot;
	char *copy;

	if (!stoup_vol_name_valid(name, len, STOUP_VOL_NAME_CAP) ||
		schema_idx >= writer->schemas.cnt || (flags & ~STOUP_VOL_SERIES_KEEP_ORDER))
		return -EINVAL;
	if (series_slots_grow(writer))
		return -ENOMEM;
	slot = series_slot(writer, name, len, schema_idx);
	if (*slot)
		return -EEXIST;
	entry = stoup_vol_array_append(&writer->series, 1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	copy = stoup_vol_array_append(&writer->names, (uint32_t)len + 1, 1);
	if (!copy) {
		writer->series.cnt--;
		return -ENOMEM;
	}
	memcpy(copy, name, len);
	entry->name_off = writer->names.cnt - (uint32_t)len - 1;
	entry->name_len = (uint32_t)len;
	entry->schema_idx = schema_idx;
	entry->flags = flags;
	*slot = writer->series.cnt;
	return (int64_t)writer->series.cnt - 1;
}

int stoup_vol_add_superseded(struct stoup_vol_writer *writer, const uint8_t id[16])
{
	uint8_t *entry = stoup_vol_array_append(&writer->superseded, 1, 16);

	if (!entry)
		return -ENOMEM;
	memcpy(entry, id, 16);
	return 0;
}

int stoup_vol_add_source(struct stoup_vol_writer *writer, const struct stoup_vol_source *source)
{
	struct stoup_vol_source *entry;

	if (!stoup_vol_source_name_valid(source->name))
		return -EINVAL;
	entry = stoup_vol_array_append(&writer->sources, 1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	*entry = *source;
	return 0;
}

/* ---- blocks and segments --------------------------------------------------------------------- */

int64_t stoup_vol_add_block(struct stoup_vol_writer *writer, uint32_t schema_idx, uint32_t raw_len,
	uint32_t codec, uint32_t transform, uint64_t stored_hash, uint64_t raw_hash,
	uint32_t stored_len, uint64_t *ret_off)
{
	const struct stoup_vol_writer_schema *schemas = writer->schemas.at;
	struct stoup_vol_writer_block *entry;
	uint64_t off = stoup_vol_align_up(writer->end_off, stoup_vol_block_align(codec, transform));

	if (schema_idx >= writer->schemas.cnt || !raw_len || raw_len > STOUP_BLOCK_RAW_CAP ||
		!stoup_vol_stored_len_valid(codec, transform, stored_len, raw_len))
		return -EINVAL;
	if (schemas[schema_idx].schema.stride && raw_len % schemas[schema_idx].schema.stride)
		return -EINVAL;
	if (off > BLOCK_END_CAP)
		return -EFBIG;
	entry = stoup_vol_array_append(&writer->blocks, 1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->disk = (struct stoup_vol_disk_block){
		.schema_idx = schema_idx,
		.raw_len = raw_len,
		.stored_off = off,
		.stored_len = stored_len,
		.codec = codec,
		.transform = transform,
		.stored_hash = stored_hash,
		.raw_hash = raw_hash,
	};
	writer->end_off = off + stored_len;
	*ret_off = off;
	return (int64_t)writer->blocks.cnt - 1;
}

/* Length of a segment in its block; 0 where it does not fit. Messages: up to the block's end, and
 * the segment before it in the block is cut back to where this one begins. */
static uint32_t segment_raw_len(struct stoup_vol_writer *writer,
	const struct stoup_vol_writer_block *block, uint32_t raw_off, uint32_t record_cnt)
{
	const struct stoup_vol_writer_schema *schemas = writer->schemas.at;
	uint32_t stride = schemas[block->disk.schema_idx].schema.stride;
	struct stoup_vol_disk_segment *before = writer->segments.at;
	uint32_t room = block->disk.raw_len - raw_off;
	uint64_t raw_len = (uint64_t)record_cnt * stride;

	if (stride)
		return raw_len <= room ? (uint32_t)raw_len : 0;
	if (block->segment_cnt) {
		before += block->segment_last;
		if (raw_off <= before->raw_off)
			return 0;
		before->raw_len = raw_off - before->raw_off;
	}
	return room;
}

int stoup_vol_add_segment(struct stoup_vol_writer *writer, uint32_t series_idx, uint32_t block_idx,
	uint32_t raw_off, uint32_t record_cnt, int64_t first_key, int64_t last_key)
{
	struct stoup_vol_writer_series *series = writer->series.at;
	struct stoup_vol_writer_block *block = writer->blocks.at;
	struct stoup_vol_disk_segment *entry;
	uint32_t raw_len;

	if (series_idx >= writer->series.cnt || block_idx >= writer->blocks.cnt)
		return -EINVAL;
	series += series_idx;
	block += block_idx;
	if (series->schema_idx != block->disk.schema_idx || !record_cnt ||
		raw_off >= block->disk.raw_len || first_key <= 0 || last_key < first_key ||
		(series->segment_cnt && first_key < series->last_key))
		return -EINVAL;
	entry = stoup_vol_array_append(&writer->segments, 1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	raw_len = segment_raw_len(writer, block, raw_off, record_cnt);
	if (!raw_len || !stoup_vol_array_append(&writer->zone_words, 1, sizeof(uint32_t))) {
		writer->segments.cnt--;
		return raw_len ? -ENOMEM : -EINVAL;
	}
	*entry = (struct stoup_vol_disk_segment){
		.series_idx = series_idx,
		.block_idx = block_idx,
		.raw_off = raw_off,
		.raw_len = raw_len,
		.record_cnt = record_cnt,
		.ordinal = series->record_cnt,
		.first_key = first_key,
		.last_key = last_key,
	};
	if (!series->segment_cnt)
		series->first_key = first_key;
	series->last_key = last_key;
	series->segment_cnt++;
	series->record_cnt += record_cnt;
	block->segment_last = writer->segments.cnt - 1;
	block->segment_cnt++;
	return 0;
}
