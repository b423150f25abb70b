/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - block.h: which way a block goes, on the way in and on the way out.
 *
 *      encode   layout? --fields--> planes, into raw_len - 1 bytes --fits--> transform fields
 *                  |                               |
 *                  +-- none, or floats --codec--> raw_len - 1 bytes --fits--> stored as that codec
 *                                                                  |
 *                                                                  +--> as it is, codec none
 *
 * So a block under a codec is always shorter than its raw bytes, which bounds the staging memory of
 * a reader by the raw length, and stoup_block_encode_cap is raw_len itself.
 *
 * Concurrency: none of its own.
 */
#include "codec/block.h"

#include <errno.h>
#include <lz4hc.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "codec/block_private.h"
#include "codec/fields.h"

#define BLOCK_LZ4_ACCELERATION_CAP 65537 /* lz4 itself clamps there */
#define BLOCK_LZ4_DEFAULT          1
#define BLOCK_LZ4HC_DEFAULT        4 /* 96 % of level 9's ratio at four times its encode speed */
#define BLOCK_ZSTD_DEFAULT         3
#define BLOCK_SMALL_DEFAULT        1

/* ---- decoding -------------------------------------------------------------------------------- */

size_t stoup_block_scratch_len(void)
{
	return stoup_fields_scratch_len() + stoup_block_unpack_scratch_len();
}

/* The codec's part lies behind the transform's. */
static void *codec_scratch(void *scratch)
{
	return (uint8_t *)scratch + stoup_fields_scratch_len();
}

void stoup_block_scratch_init(void *scratch)
{
	stoup_block_unpack_scratch_init(codec_scratch(scratch));
}

int stoup_block_decode(uint32_t codec, uint32_t transform, const void *src, size_t src_len,
	void *dst, size_t raw_len, void *scratch)
{
	if (transform > STOUP_TRANSFORM_LAST || codec > STOUP_CODEC_LAST)
		return -ENOTSUP;
	if (!raw_len || raw_len > STOUP_BLOCK_RAW_CAP || !src_len || src_len > STOUP_BLOCK_RAW_CAP)
		return -EINVAL;
	if (transform == STOUP_TRANSFORM_FIELDS)
		return stoup_fields_decode(
			codec, src, src_len, dst, raw_len, scratch, stoup_fields_kernel_best());
	if (codec != STOUP_CODEC_NONE)
		return stoup_block_unpack(
			codec, src, src_len, dst, raw_len, codec_scratch(scratch));
	if (src_len != raw_len)
		return -EBADMSG;
	memcpy(dst, src, raw_len);
	return 0;
}

/* ---- what to encode with --------------------------------------------------------------------- */

struct block_encoding_name {
	const char *name;
	struct stoup_encoding preset; /* with the default level */
	int32_t level_min, level_max;
};

/* Level 0 is refused: for zstd it would mean "the default" and for lz4 nothing. */
static int block_level_parse(const char *text, int32_t level_min, int32_t level_max, int32_t *ret)
{
	char *end;
	long level;

	errno = 0;
	level = strtol(text, &end, 10);
	if (errno || end == text || *end || level < level_min || level > level_max || !level)
		return -EINVAL;
	*ret = (int32_t)level;
	return 0;
}

int stoup_encoding_parse(const char *name, const char *level, struct stoup_encoding *ret)
{
	const struct block_encoding_name table[] = {
		{"fast", {STOUP_CODEC_LZ4, 0, BLOCK_LZ4_DEFAULT, STOUP_TRANSFORM_FIELDS}, 1, 0},
		{"default", {STOUP_CODEC_LZ4, 1, BLOCK_LZ4HC_DEFAULT, STOUP_TRANSFORM_FIELDS}, 1,
			LZ4HC_CLEVEL_MAX},
		{"small", {STOUP_CODEC_ZSTD, 0, BLOCK_SMALL_DEFAULT, STOUP_TRANSFORM_FIELDS}, 1,
			ZSTD_maxCLevel()},
		{"none", {STOUP_CODEC_NONE, 0, 0, 0}, 1, 0},
		{"lz4", {STOUP_CODEC_LZ4, 0, BLOCK_LZ4_DEFAULT, 0}, 1, BLOCK_LZ4_ACCELERATION_CAP},
		{"lz4hc", {STOUP_CODEC_LZ4, 1, BLOCK_LZ4HC_DEFAULT, 0}, 1, LZ4HC_CLEVEL_MAX},
		{"zstd", {STOUP_CODEC_ZSTD, 0, BLOCK_ZSTD_DEFAULT, 0}, ZSTD_minCLevel(),
			ZSTD_maxCLevel()},
	};
	struct stoup_encoding found;

	if (!name)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(name, table[i].name))
			continue;
		found = table[i].preset;
		if (level && *level &&
			block_level_parse(
				level, table[i].level_min, table[i].level_max, &found.level))
			return -EINVAL;
		*ret = found;
		return 0;
	}
	return -EINVAL;
}

uint32_t stoup_encoding_transform(const struct stoup_encoding *encoding, uint32_t stride)
{
	return stride > 0 && stride <= STOUP_FIELDS_STRIDE_CAP ? encoding->transform
	                                                       : STOUP_TRANSFORM_NONE;
}

/* ---- encoding -------------------------------------------------------------------------------- */

struct stoup_encoder {
	struct stoup_encoding encoding;
	struct stoup_packer *packer;
	struct stoup_fields_encoder *fields; /* NULL: no transform */
	uint8_t *other; /* a second result to compare with; made when it is first wanted */
	size_t other_cap;
};

size_t stoup_block_encode_cap(size_t raw_len)
{
	return raw_len;
}

int stoup_encoder_create(const struct stoup_encoding *encoding, struct stoup_encoder **ret)
{
	struct stoup_encoder *encoder;
	int rc;

	if (!encoding || encoding->codec > STOUP_CODEC_LAST ||
		encoding->transform > STOUP_TRANSFORM_LAST)
		return -EINVAL;
	encoder = calloc(1, sizeof(*encoder));
	if (!encoder)
		return -ENOMEM;
	encoder->encoding = *encoding;
	rc = stoup_packer_create(encoding, &encoder->packer);
	if (rc == 0 && encoding->transform == STOUP_TRANSFORM_FIELDS)
		rc = stoup_fields_encoder_create(&encoder->fields);
	if (rc) {
		stoup_encoder_destroy(encoder);
		return rc;
	}
	*ret = encoder;
	return 0;
}

void stoup_encoder_destroy(struct stoup_encoder *encoder)
{
	if (!encoder)
		return;
	stoup_packer_destroy(encoder->packer);
	stoup_fields_encoder_destroy(encoder->fields);
	free(encoder->other);
	free(encoder);
}

static int other_grow(struct stoup_encoder *encoder, size_t cap)
{
	uint8_t *grown;

	if (encoder->other_cap >= cap)
		return 0;
	grown = realloc(encoder->other, cap);
	if (!grown)
		return -ENOMEM;
	encoder->other = grown;
	encoder->other_cap = cap;
	return 0;
}

/* Both ways; the transform's result stays in dst unless the codec alone is shorter. Returns the
 * shorter length (0: neither fits), or a negative errno. */
static int64_t encode_shorter(struct stoup_encoder *encoder, const void *src, size_t raw_len,
	uint8_t *dst, int64_t fields_len, uint32_t *transform)
{
	size_t cap = fields_len ? (size_t)fields_len - 1 : raw_len - 1;
	int64_t got = other_grow(encoder, raw_len);

	if (got == 0 && cap)
		got = stoup_packer_pack(encoder->packer, src, raw_len, encoder->other, cap);
	if (got <= 0)
		return got < 0 ? got : fields_len;
	memcpy(dst, encoder->other, (size_t)got);
	*transform = STOUP_TRANSFORM_NONE;
	return got;
}

/* Bytes written, 0 where nothing is shorter than the records, negative errno. */
static int64_t encode_any(struct stoup_encoder *encoder, const struct stoup_block_layout *layout,
	const void *src, size_t raw_len, uint8_t *dst, uint32_t *transform)
{
	int64_t got;

	*transform = STOUP_TRANSFORM_NONE;
	if (encoder->encoding.codec == STOUP_CODEC_NONE || raw_len < 2)
		return 0;
	if (!encoder->fields || !layout)
		return stoup_packer_pack(encoder->packer, src, raw_len, dst, raw_len - 1);
	got = stoup_fields_encode(encoder->fields, encoder->packer, &encoder->encoding, layout, src,
		raw_len, dst, raw_len - 1);
	if (got > 0)
		*transform = STOUP_TRANSFORM_FIELDS;
	if (got < 0 || (got > 0 && !stoup_fields_doubtful(layout)))
		return got;
	return encode_shorter(encoder, src, raw_len, dst, got, transform);
}

int stoup_block_encode(struct stoup_encoder *encoder, const struct stoup_block_layout *layout,
	const void *src, size_t raw_len, void *dst, size_t dst_cap, size_t *ret_len,
	uint32_t *ret_codec, uint32_t *ret_transform)
{
	uint32_t codec = encoder->encoding.codec, transform;
	int64_t got;

	if (!raw_len || raw_len > STOUP_BLOCK_RAW_CAP || dst_cap < stoup_block_encode_cap(raw_len))
		return -EINVAL;
	got = encode_any(encoder, layout, src, raw_len, dst, &transform);
	if (got < 0)
		return (int)got;
	if (!got) {
		memcpy(dst, src, raw_len);
		codec = STOUP_CODEC_NONE;
		transform = STOUP_TRANSFORM_NONE;
		got = (int64_t)raw_len;
	}
	*ret_len = (size_t)got;
	*ret_codec = codec;
	*ret_transform = transform;
	return 0;
}
