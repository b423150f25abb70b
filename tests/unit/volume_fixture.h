/* SPDX-License-Identifier: Apache-2.0 */
/* volume_fixture.h - volumes in memory for tests: build, open, verify whole, damage and seal again.
 *
 *      writer calls --> image (the bytes of a file) --edit--> reseal --> open, verify
 *
 * An image is sealed again after an edit (all checksums made right), so that a test reaches the
 * rule behind the checksum. Everything here works on bytes at offsets of its own reading, not
 * through the writer's structures.
 */
#ifndef STOUP_TESTS_VOLUME_FIXTURE_H
#define STOUP_TESTS_VOLUME_FIXTURE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codec/block.h"
#include "codec/volume.h"
#include "shm/message.h"

struct image {
	uint8_t *bytes;
	size_t len;
};

/* ---- numbers at offsets ---------------------------------------------------------------------- */

static inline uint64_t image_get(const uint8_t *at, size_t len)
{
	uint64_t value = 0;

	for (size_t i = len; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

static inline void image_put(uint8_t *at, size_t len, uint64_t value)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static inline uint64_t image_footer_off(const struct image *image)
{
	return image_get(image->bytes + image->len - 64, 8);
}

/* File offset of entry `idx` of section `kind`; 0 where there is no such section. */
static inline uint64_t image_entry(const struct image *image, uint32_t kind, uint64_t idx)
{
	uint64_t footer = image_footer_off(image);
	uint64_t cnt = image_get(image->bytes + footer, 4);
	uint64_t len = image_get(image->bytes + footer + 4, 4);

	for (uint64_t i = 0; i < cnt; i++) {
		const uint8_t *at = image->bytes + footer + 16 + i * len;

		if (image_get(at, 4) == kind)
			return footer + image_get(at + 8, 8) + idx * image_get(at + 4, 4);
	}
	return 0;
}

/* File offset of the section table's entry for `kind`. */
static inline uint64_t image_section(const struct image *image, uint32_t kind)
{
	uint64_t footer = image_footer_off(image);
	uint64_t at = footer + 16;

	while (image_get(image->bytes + at, 4) != kind)
		at += image_get(image->bytes + footer + 4, 4);
	return at;
}

/* Make all checksums right again. Trusts the trailer's footer place if it is inside the image. */
static inline void image_reseal(struct image *image)
{
	uint8_t *trailer;
	uint64_t off, len;

	if (image->len < 128)
		return;
	trailer = image->bytes + image->len - 64;
	off = image_get(trailer, 8);
	len = image_get(trailer + 8, 8);
	image_put(image->bytes + 56, 8, stoup_vol_hash(image->bytes, 56));
	if (off <= image->len && len <= image->len - off)
		image_put(trailer + 16, 8, stoup_vol_hash(image->bytes + off, len));
	image_put(trailer + 32, 8, image_get(image->bytes + 56, 8));
	image_put(trailer + 48, 8, stoup_vol_hash(trailer, 48));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Open an image as a program opens a file: header, trailer, footer, each from its own exact copy,
 * so that a sanitizer sees a read beyond it. */
static inline int image_open(const uint8_t *bytes, size_t len, struct stoup_vol_index **ret,
	struct stoup_vol_fault *fault)
{
	uint8_t header[64], trailer[64], *footer;
	struct stoup_vol_header parsed;
	uint64_t off, footer_len;
	int rc;

	if (len < 64) {
		memset(fault, 0, sizeof(*fault));
		fault->region = STOUP_VOL_REGION_HEADER;
		fault->file_off = len;
		snprintf(fault->what, sizeof(fault->what), "too short for a header");
		return fault->code = -ENODATA;
	}
	memcpy(header, bytes, 64);
	memcpy(trailer, bytes + len - 64, 64);
	rc = stoup_vol_header_parse(header, &parsed, fault);
	if (rc)
		return rc;
	rc = stoup_vol_trailer_parse(trailer, len, &off, &footer_len, fault);
	if (rc)
		return rc;
	footer = malloc((size_t)footer_len);
	if (!footer)
		return -ENOMEM;
	memcpy(footer, bytes + off, (size_t)footer_len);
	rc = stoup_vol_index_parse(header, trailer, footer, (size_t)footer_len, len, ret, fault);
	free(footer);
	return rc;
}

/* One scratch area for all decoding of a test program; it stays until its end. */
static inline void *image_scratch(void)
{
	static void *scratch;

	if (!scratch) {
		scratch = aligned_alloc(64, stoup_block_scratch_len());
		if (scratch)
			stoup_block_scratch_init(scratch);
	}
	return scratch;
}

/* Decode block `idx` of an image into a new buffer of exactly its raw length, from a copy of
 * exactly its stored length. */
static inline int image_block(const uint8_t *bytes, const struct stoup_vol_index *index,
	uint32_t idx, uint8_t **ret, struct stoup_vol_fault *fault)
{
	const struct stoup_vol_block *block = &index->blocks[idx];
	uint8_t *stored = malloc(block->stored_len), *raw = malloc(block->raw_len);
	void *scratch = image_scratch();
	int rc = -ENOMEM;

	*ret = NULL;
	if (stored && raw && scratch) {
		memcpy(stored, bytes + block->stored_off, block->stored_len);
		rc = stoup_vol_block_decode(index, idx, stored, raw, scratch, fault);
	}
	free(stored);
	if (rc)
		free(raw);
	else
		*ret = raw;
	return rc;
}

/* The message runs of a decoded block. */
static inline int image_runs(const struct stoup_vol_index *index, uint32_t idx, const uint8_t *raw,
	struct stoup_vol_fault *fault)
{
	for (uint32_t i = 0; i < index->segment_cnt; i++) {
		const struct stoup_vol_segment *segment = &index->segments[i];
		struct stoup_message_run run = {.base = raw + segment->raw_off,
			.len = segment->raw_len,
			.cnt = segment->record_cnt,
			.first_key = segment->first_key,
			.last_key = segment->last_key,
			.keeps_order = (index->series[segment->series_idx].flags &
					       STOUP_VOL_SERIES_KEEP_ORDER) != 0};
		struct stoup_error err;

		if (segment->block_idx != idx || stoup_message_run_check(&run, &err) == 0)
			continue;
		*fault = (struct stoup_vol_fault){.code = err.code,
			.region = STOUP_VOL_REGION_BLOCK,
			.file_off = index->blocks[idx].stored_off,
			.block_idx = idx};
		snprintf(fault->what, sizeof(fault->what), "%.*s", (int)sizeof(fault->what) - 1,
			err.text);
		return err.code;
	}
	return 0;
}

/* Everything that `verify` looks at: index, all blocks, all padding. Returns the first fault. */
static inline int image_verify(const uint8_t *bytes, size_t len, struct stoup_vol_fault *fault)
{
	struct stoup_vol_index *index = NULL;
	uint64_t off, gap;
	int rc = image_open(bytes, len, &index, fault);

	if (rc)
		return rc;
	for (uint32_t i = 0; !rc && i < index->block_cnt; i++) {
		uint8_t *raw = NULL;

		rc = image_block(bytes, index, i, &raw, fault);
		if (rc == 0 && index->schemas[index->blocks[i].schema_idx].stride == 0)
			rc = image_runs(index, i, raw, fault);
		free(raw);
	}
	for (uint32_t i = 0; !rc && stoup_vol_padding(index, i, &off, &gap); i++)
		rc = stoup_vol_padding_check(off, bytes + off, (size_t)gap, fault);
	stoup_vol_index_destroy(index);
	return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

static inline int image_reserve(struct image *image, size_t len)
{
	uint8_t *bytes;

	if (len <= image->len)
		return 0;
	bytes = realloc(image->bytes, len);
	if (!bytes)
		return -ENOMEM;
	memset(bytes + image->len, 0, len - image->len);
	image->bytes = bytes;
	image->len = len;
	return 0;
}

static inline void image_free(struct image *image)
{
	free(image->bytes);
	image->bytes = NULL;
	image->len = 0;
}

/* Encode raw records with `codec` and `level` (names as for ingest) and place them. `layout` is
 * for the levels of the field transform; NULL: without it. Returns the block's index or a
 * negative errno. */
static inline int64_t image_add_records(struct image *image, struct stoup_vol_writer *writer,
	uint32_t schema_idx, const struct stoup_block_layout *layout, const void *raw,
	uint32_t raw_len, const char *codec, const char *level)
{
	struct stoup_encoding encoding;
	struct stoup_encoder *encoder = NULL;
	uint8_t *stored = malloc(stoup_block_encode_cap(raw_len));
	size_t stored_len = 0;
	uint32_t used = 0, transform = 0;
	uint64_t off = 0;
	int64_t rc = -ENOMEM;

	if (!stored)
		return rc;
	rc = stoup_encoding_parse(codec, level, &encoding);
	if (!rc)
		rc = stoup_encoder_create(&encoding, &encoder);
	if (!rc)
		rc = stoup_block_encode(encoder, layout, raw, raw_len, stored,
			stoup_block_encode_cap(raw_len), &stored_len, &used, &transform);
	if (!rc)
		rc = stoup_vol_add_block(writer, schema_idx, raw_len, used, transform,
			stoup_vol_hash(stored, stored_len), stoup_vol_hash(raw, raw_len),
			(uint32_t)stored_len, &off);
	if (rc >= 0 && image_reserve(image, (size_t)off + stored_len))
		rc = -ENOMEM;
	if (rc >= 0)
		memcpy(image->bytes + off, stored, stored_len);
	stoup_encoder_destroy(encoder);
	free(stored);
	return rc;
}

static inline int64_t image_add_block(struct image *image, struct stoup_vol_writer *writer,
	uint32_t schema_idx, const void *raw, uint32_t raw_len, const char *codec,
	const char *level)
{
	return image_add_records(image, writer, schema_idx, NULL, raw, raw_len, codec, level);
}

/* Finish the writer into the image. */
static inline int image_finish(
	struct image *image, struct stoup_vol_writer *writer, const struct stoup_vol_header *header)
{
	uint8_t head[64];
	const uint8_t *tail;
	size_t tail_len;
	uint64_t off;
	int rc = stoup_vol_finish(writer, header, head, &tail, &tail_len, &off);

	if (rc)
		return rc;
	image->len = image->len < off ? image->len : (size_t)off;
	if (image_reserve(image, (size_t)off + tail_len))
		return -ENOMEM;
	memcpy(image->bytes + off, tail, tail_len);
	memcpy(image->bytes, head, 64);
	return 0;
}

#endif
