/* SPDX-License-Identifier: Apache-2.0 */
/* block.h - one block of records to stored bytes and back.
 *
 * A block is the unit of compression: `raw_len` bytes of records, at most 16 MiB. Stored, it is the
 * output of a *codec* (none, lz4, lz4hc, zstd), in front of which a *transform* may have rearranged
 * the bytes (fields.h). Lengths come from the volume's index, never from a frame header.
 *
 *      raw records --transform--> rearranged --codec--> stored bytes
 *
 * Invariant: a decoder writes inside [dst, dst + raw_len), reads inside [src, src + src_len),
 * allocates nothing, and returns an error for whatever does not decode to exactly raw_len bytes.
 *
 * Concurrency: pure functions; a scratch area belongs to one thread at a time.
 */
#ifndef STOUP_CODEC_BLOCK_H
#define STOUP_CODEC_BLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Numbers as stored in a volume. lz4hc decodes as lz4: it is an encoder's choice, stored as LZ4. */
#define STOUP_CODEC_NONE 0u
#define STOUP_CODEC_LZ4  1u
#define STOUP_CODEC_ZSTD 2u
#define STOUP_CODEC_LAST 2u

#define STOUP_TRANSFORM_NONE   0u
#define STOUP_TRANSFORM_FIELDS 1u /* columns, residuals, byte planes; the codec packs planes */
#define STOUP_TRANSFORM_LAST   1u

/* A block decodes to at most this much: it bounds the memory that a hostile file can ask for. */
#define STOUP_BLOCK_RAW_CAP (16u << 20)

/* Bytes of scratch that a decoder needs (the planes of a tile, a zstd context made in place), at
 * least 64-byte aligned; the same for every block. */
size_t stoup_block_scratch_len(void);

/* Once, before the first block is decoded with this scratch; it holds nothing that needs an end. */
void stoup_block_scratch_init(void *scratch);

/* Decode `src_len` stored bytes into exactly `raw_len` bytes at `dst`. `scratch` has
 * stoup_block_scratch_len() bytes and was initialised. 0; -EBADMSG for bytes that do not decode
 * to raw_len bytes; -ENOTSUP for an unknown codec or transform; -EINVAL for lengths beyond the
 * caps. Writes nothing outside dst[0..raw_len), whose contents are undefined after an error. */
int stoup_block_decode(uint32_t codec, uint32_t transform, const void *src, size_t src_len,
	void *dst, size_t raw_len, void *scratch);

/* What an encoder is asked for. Users' names: the levels "fast" (lz4), "default" (lz4hc) and
 * "small" (zstd) of the field transform, and beside them the codecs alone: "none", "lz4",
 * "lz4hc", "zstd". */
struct stoup_encoding {
	uint32_t codec;     /* STOUP_CODEC_* */
	uint32_t hc;        /* lz4 only: 1 = high compression */
	int32_t level;      /* lz4: acceleration 1-65537; lz4hc: 1-12; zstd: 1-22 (and negative) */
	uint32_t transform; /* STOUP_TRANSFORM_*: tried for records whose layout is given */
};

/* Parse a name and an optional level ("" or NULL: the name's default) into `ret`.
 * 0 or -EINVAL (unknown name, level out of range; the caller prints which names there are). */
int stoup_encoding_parse(const char *name, const char *level, struct stoup_encoding *ret);

/* The transform that records of `stride` bytes are given: none for messages (0) and for longer ones than it knows. */
uint32_t stoup_encoding_transform(const struct stoup_encoding *encoding, uint32_t stride);

/* The layout of fixed-length records, as in a volume's index: their fields inside `stride`
 * bytes, none over another. */
struct stoup_vol_field;
struct stoup_block_layout {
	uint32_t stride;
	uint32_t field_cnt;
	const struct stoup_vol_field *fields;
};

/* Upper bound of the stored length of raw_len bytes under any encoding. */
size_t stoup_block_encode_cap(size_t raw_len);

/* An encoder: the reusable contexts of one thread. Heap; destroy accepts NULL. */
struct stoup_encoder;
int stoup_encoder_create(const struct stoup_encoding *encoding, struct stoup_encoder **ret);
void stoup_encoder_destroy(struct stoup_encoder *encoder);

/* Encode raw_len bytes: by the field transform if the encoding asks for it and `layout` is given
 * (NULL for bytes that are no records), else by the codec alone. Data that does not shrink is
 * stored with codec none: the codec and the transform that were used come back. The result
 * depends on nothing but the encoding, the layout, the bytes and the versions of lz4 and zstd.
 * dst_cap >= stoup_block_encode_cap(raw_len). 0, -EINVAL, -ENOMEM. `dst` may not overlap `src`. */
int stoup_block_encode(struct stoup_encoder *encoder, const struct stoup_block_layout *layout,
	const void *src, size_t raw_len, void *dst, size_t dst_cap, size_t *ret_len,
	uint32_t *ret_codec, uint32_t *ret_transform);

#endif
