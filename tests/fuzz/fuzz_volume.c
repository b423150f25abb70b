/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_volume.c - hostile volumes and hostile stored blocks.
 *
 *      first byte 0x89   a volume: opened as it is, then once more with all checksums made right;
 *                        what opens is walked and decoded
 *      any other         [codec][raw length, 2 bytes][stored bytes]: one block
 *
 * Checksums would keep every mutation out, hence the second opening. Of an index that was accepted,
 * the target checks again, by its own arithmetic, what users rely on; a breach aborts.
 */
#include "tests/unit/volume_fixture.h"

#define BLOCK_RAW_CAP (1u << 20) /* bytes: decode no more, to keep one input fast */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int holds)
{
	if (!holds)
		abort();
}

static void walk_segments(
	const struct stoup_vol_index *index, const struct stoup_vol_series *series)
{
	uint64_t ordinal = 0;
	int64_t key = 1;

	must(series->segment_first <= index->segment_cnt &&
		series->segment_cnt <= index->segment_cnt - series->segment_first);
	for (uint32_t i = 0; i < series->segment_cnt; i++) {
		const struct stoup_vol_segment *segment =
			&index->segments[series->segment_first + i];
		uint64_t stride = index->schemas[series->schema_idx].stride;

		must(segment->block_idx < index->block_cnt && segment->ordinal == ordinal);
		must((uint64_t)segment->raw_off + segment->raw_len <=
			index->blocks[segment->block_idx].raw_len);
		must(!stride || segment->record_cnt * stride == segment->raw_len);
		must(index->blocks[segment->block_idx].schema_idx == series->schema_idx);
		must(segment->first_key >= key && segment->last_key >= segment->first_key);
		ordinal += segment->record_cnt;
		key = segment->last_key;
	}
	must(series->record_cnt == ordinal && series->last_key == key);
}

static void walk_schemas(const struct stoup_vol_index *index)
{
	for (uint32_t i = 0; i < index->schema_cnt; i++) {
		const struct stoup_vol_schema *schema = &index->schemas[i];

		must(strlen(schema->name) < 32);
		must(schema->field_first <= index->field_cnt &&
			schema->field_cnt <= index->field_cnt - schema->field_first);
		for (uint32_t at = 0; at < schema->field_cnt; at++) {
			const struct stoup_vol_field *field =
				&index->fields[schema->field_first + at];

			must(memchr(field->name, 0, sizeof(field->name)) != NULL);
			must((uint64_t)field->off + field->cnt <= schema->stride);
		}
		must(!schema->stride || schema->key_off + 8 <= schema->stride);
	}
}

static void walk_blocks(const uint8_t *bytes, const struct stoup_vol_index *index)
{
	for (uint32_t i = 0; i < index->block_cnt; i++) {
		const struct stoup_vol_block *block = &index->blocks[i];
		uint8_t *raw;

		must(block->stored_off >= 64 && block->stored_off < index->footer_off);
		must(block->stored_len <= index->footer_off - block->stored_off);
		if (block->raw_len > BLOCK_RAW_CAP)
			continue;
		raw = malloc(block->raw_len);
		if (raw)
			stoup_block_decode(block->codec, block->transform,
				bytes + block->stored_off, block->stored_len, raw, block->raw_len,
				image_scratch());
		free(raw);
	}
}

static void walk(const uint8_t *bytes, const struct stoup_vol_index *index)
{
	uint64_t segment_cnt = 0, off, gap;

	walk_schemas(index);
	for (uint32_t i = 0; i < index->series_cnt; i++) {
		const struct stoup_vol_series *series = &index->series[i];

		must(series->schema_idx < index->schema_cnt);
		must(strlen(series->name) == series->name_len && series->name_len < 512);
		must(!i || strcmp(index->series[i - 1].name, series->name) <= 0);
		walk_segments(index, series);
		segment_cnt += series->segment_cnt;
	}
	must(segment_cnt == index->segment_cnt);
	walk_blocks(bytes, index);
	for (uint32_t i = 0; stoup_vol_padding(index, i, &off, &gap); i++)
		must(off <= index->footer_off && gap <= index->footer_off - off);
}

static void try_volume(const uint8_t *bytes, size_t len)
{
	struct stoup_vol_fault fault = {0};
	struct stoup_vol_index *index;
	struct image image = {malloc(len), len};

	if (!image.bytes)
		return;
	memcpy(image.bytes, bytes, len);
	must(image_verify(image.bytes, len, &fault) == fault.code);
	image_reseal(&image);
	memset(&fault, 0, sizeof(fault));
	if (image_open(image.bytes, len, &index, &fault)) {
		must(fault.code < 0 && fault.what[0] && fault.file_off <= len);
	} else {
		walk(image.bytes, index);
		stoup_vol_index_destroy(index);
	}
	image_free(&image);
}

static void try_block(const uint8_t *bytes, size_t len)
{
	uint8_t *stored, *raw;
	size_t raw_len;
	int rc;

	if (len < 4)
		return;
	raw_len = (size_t)image_get(bytes + 1, 2);
	stored = malloc(len - 3);
	raw = malloc(raw_len ? raw_len : 1);
	if (stored && raw) {
		memcpy(stored, bytes + 3, len - 3);
		rc = stoup_block_decode(
			bytes[0] & 3, 0, stored, len - 3, raw, raw_len, image_scratch());
		must(rc == 0 || rc == -EBADMSG || rc == -EINVAL || rc == -ENOTSUP);
	}
	free(raw);
	free(stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len && bytes[0] == 0x89)
		try_volume(bytes, len);
	else
		try_block(bytes, len);
	return 0;
}
