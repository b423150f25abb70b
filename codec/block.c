/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - block.h over lz4 and zstd.
 *
 *      encode   raw --> codec, into raw_len - 1 bytes --fits--> stored as that codec
 *                                      |
 *                                      +--does not fit--> stored as it is, codec none
 *
 * So a block under a codec is always shorter than its raw bytes, which bounds the staging memory of
 * a reader by the raw length, and stoup_block_encode_cap is raw_len itself.
 *
 * Invariant: `dst` of a decoder is given to the libraries with exactly raw_len bytes of room, and
 * only by their bounds-checked functions.
 *
 * Concurrency: none of its own; zstd's decoding context is made anew in the scratch of each call.
 */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_initStaticDCtx, ZSTD_estimateDCtxSize */
#include "codec/block.h"

#include <errno.h>
#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#define BLOCK_LZ4_ACCELERATION_CAP 65537 /* lz4 itself clamps there */
#define BLOCK_LZ4_DEFAULT          1
#define BLOCK_LZ4HC_DEFAULT        4 /* 96 % of level 9's ratio at four times its encode speed */
#define BLOCK_ZSTD_DEFAULT         3
#define BLOCK_SCRATCH_ALIGN        64u

/* ---- decoding -------------------------------------------------------------------------------- */

size_t stoup_block_scratch_len(void)
{
	size_t len = ZSTD_estimateDCtxSize();

	return (len + BLOCK_SCRATCH_ALIGN - 1) & ~(size_t)(BLOCK_SCRATCH_ALIGN - 1);
}

static int block_decode_lz4(const void *src, size_t src_len, void *dst, size_t raw_len)
{
	/* Both lengths are at most STOUP_BLOCK_RAW_CAP here, so the casts lose nothing. */
	int got = LZ4_decompress_safe(src, dst, (int)src_len, (int)raw_len);

	return got >= 0 && (size_t)got == raw_len ? 0 : -EBADMSG;
}

/* The stored bytes must be one zstd frame and nothing else. Without the checks in front, the
 * library would also accept several frames, skippable frames and (by build option) formats of the
 * past. */
static int block_decode_zstd(
	const void *src, size_t src_len, void *dst, size_t raw_len, void *scratch)
{
	static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
	unsigned long long claimed;
	ZSTD_DCtx *ctx;
	size_t got;

	if (src_len < sizeof(magic) || memcmp(src, magic, sizeof(magic)))
		return -EBADMSG;
	claimed = ZSTD_getFrameContentSize(src, src_len);
	if (claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != raw_len)
		return -EBADMSG;
	if (ZSTD_findFrameCompressedSize(src, src_len) != src_len)
		return -EBADMSG;
	ctx = ZSTD_initStaticDCtx(scratch, stoup_block_scratch_len());
	if (!ctx)
		return -EINVAL;
	got = ZSTD_decompressDCtx(ctx, dst, raw_len, src, src_len);
	return !ZSTD_isError(got) && got == raw_len ? 0 : -EBADMSG;
}

int stoup_block_decode(uint32_t codec, uint32_t transform, const void *src, size_t src_len,
	void *dst, size_t raw_len, void *scratch)
{
	if (transform > STOUP_TRANSFORM_LAST || codec > STOUP_CODEC_LAST)
		return -ENOTSUP;
	if (!raw_len || raw_len > STOUP_BLOCK_RAW_CAP || !src_len || src_len > STOUP_BLOCK_RAW_CAP)
		return -EINVAL;
	switch (codec) {
	case STOUP_CODEC_LZ4:
		return block_decode_lz4(src, src_len, dst, raw_len);
	case STOUP_CODEC_ZSTD:
		return block_decode_zstd(src, src_len, dst, raw_len, scratch);
	default:
		if (src_len != raw_len)
			return -EBADMSG;
		memcpy(dst, src, raw_len);
		return 0;
	}
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
		{"none", {STOUP_CODEC_NONE, 0, 0}, 1, 0},
		{"lz4", {STOUP_CODEC_LZ4, 0, BLOCK_LZ4_DEFAULT}, 1, BLOCK_LZ4_ACCELERATION_CAP},
		{"lz4hc", {STOUP_CODEC_LZ4, 1, BLOCK_LZ4HC_DEFAULT}, 1, LZ4HC_CLEVEL_MAX},
		{"zstd", {STOUP_CODEC_ZSTD, 0, BLOCK_ZSTD_DEFAULT}, ZSTD_minCLevel(),
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

/* ---- encoding -------------------------------------------------------------------------------- */

struct stoup_encoder {
	struct stoup_encoding encoding;
	void *lz4_state;
	ZSTD_CCtx *zstd_ctx;
};

size_t stoup_block_encode_cap(size_t raw_len)
{
	return raw_len;
}

static int encoder_zstd_create(struct stoup_encoder *encoder)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();

	if (!ctx)
		return -ENOMEM;
	encoder->zstd_ctx = ctx;
	/* No zstd checksum: the volume's own hashes cover stored and raw bytes. */
	if (ZSTD_isError(ZSTD_CCtx_setParameter(
		    ctx, ZSTD_c_compressionLevel, encoder->encoding.level)) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 0)) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 1)))
		return -EINVAL;
	return 0;
}

static int encoder_lz4_create(struct stoup_encoder *encoder)
{
	int len = encoder->encoding.hc ? LZ4_sizeofStateHC() : LZ4_sizeofState();

	encoder->lz4_state = malloc((size_t)len);
	return encoder->lz4_state ? 0 : -ENOMEM;
}

int stoup_encoder_create(const struct stoup_encoding *encoding, struct stoup_encoder **ret)
{
	struct stoup_encoder *encoder;
	int rc = 0;

	if (!encoding || encoding->codec > STOUP_CODEC_LAST)
		return -EINVAL;
	encoder = calloc(1, sizeof(*encoder));
	if (!encoder)
		return -ENOMEM;
	encoder->encoding = *encoding;
	if (encoding->codec == STOUP_CODEC_ZSTD)
		rc = encoder_zstd_create(encoder);
	else if (encoding->codec == STOUP_CODEC_LZ4)
		rc = encoder_lz4_create(encoder);
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
	ZSTD_freeCCtx(encoder->zstd_ctx);
	free(encoder->lz4_state);
	free(encoder);
}

/* Bytes written, 0 where the result does not fit in dst_cap, negative errno. */
static int64_t encoder_zstd(
	struct stoup_encoder *encoder, const void *src, size_t raw_len, void *dst, size_t dst_cap)
{
	size_t got = ZSTD_compress2(encoder->zstd_ctx, dst, dst_cap, src, raw_len);

	if (!ZSTD_isError(got))
		return (int64_t)got;
	switch ((int)ZSTD_getErrorCode(got)) {
	case ZSTD_error_dstSize_tooSmall:
		return 0;
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	default:
		return -EINVAL;
	}
}

static int64_t encoder_lz4(
	struct stoup_encoder *encoder, const void *src, size_t raw_len, void *dst, size_t dst_cap)
{
	int32_t level = encoder->encoding.level;

	if (encoder->encoding.hc)
		return LZ4_compress_HC_extStateHC(
			encoder->lz4_state, src, dst, (int)raw_len, (int)dst_cap, level);
	return LZ4_compress_fast_extState(
		encoder->lz4_state, src, dst, (int)raw_len, (int)dst_cap, level);
}

int stoup_block_encode(struct stoup_encoder *encoder, const void *src, size_t raw_len, void *dst,
	size_t dst_cap, size_t *ret_len, uint32_t *ret_codec, uint32_t *ret_transform)
{
	uint32_t codec = encoder->encoding.codec;
	int64_t got = 0;

	if (!raw_len || raw_len > STOUP_BLOCK_RAW_CAP || dst_cap < stoup_block_encode_cap(raw_len))
		return -EINVAL;
	if (codec == STOUP_CODEC_ZSTD)
		got = encoder_zstd(encoder, src, raw_len, dst, raw_len - 1);
	else if (codec == STOUP_CODEC_LZ4 && raw_len > 1)
		got = encoder_lz4(encoder, src, raw_len, dst, raw_len - 1);
	if (got < 0)
		return (int)got;
	if (!got) {
		memcpy(dst, src, raw_len);
		codec = STOUP_CODEC_NONE;
		got = (int64_t)raw_len;
	}
	*ret_len = (size_t)got;
	*ret_codec = codec;
	*ret_transform = STOUP_TRANSFORM_NONE;
	return 0;
}
