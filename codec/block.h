/* SPDX-License-Identifier: Apache-2.0 */
/* block.h - one block of records to stored bytes and back.
 *
 * A block is the unit of compression: `raw_len` bytes of records, at most 16 MiB. Stored, it is the
 * output of a *codec* (none, lz4, lz4hc, zstd), in front of which a *transform* may have rearranged
 * the bytes. Lengths come from the volume's index, never from a frame header.
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

#define STOUP_TRANSFORM_NONE 0u
#define STOUP_TRANSFORM_LAST 0u

/* A block decodes to at most this much: it bounds the memory that a hostile file can ask for. */
#define STOUP_BLOCK_RAW_CAP (16u << 20)

/* Bytes of scratch that a decoder needs (a zstd context made in place), at least 64-byte aligned;
 * the same for every block. */
size_t stoup_block_scratch_len(void);

/* Decode `src_len` stored bytes into exactly `raw_len` bytes at `dst`. `scratch` has
 * stoup_block_scratch_len() bytes. 0; -EBADMSG for bytes that do not decode to raw_len bytes;
 * -ENOTSUP for an unknown codec or transform; -EINVAL for lengths beyond the caps. Writes nothing
 * outside dst[0..raw_len), whose contents are undefined after an error. */
int stoup_block_decode(uint32_t codec, uint32_t transform, const void *src, size_t src_len,
	void *dst, size_t raw_len, void *scratch);

/* What an encoder is asked for: "none", "lz4", "lz4hc" and "zstd" with a level each. */
struct stoup_encoding {
	uint32_t codec; /* STOUP_CODEC_* */
	uint32_t hc;    /* lz4 only: 1 = high compression */
	int32_t level;  /* lz4: acceleration 1-65537; lz4hc: 1-12; zstd: 1-22 (and negative) */
};

/* Parse a codec's name and an optional level ("" or NULL: the codec's default) into `ret`.
 * 0 or -EINVAL (unknown name, level out of range; the caller prints which names there are). */
int stoup_encoding_parse(const char *name, const char *level, struct stoup_encoding *ret);

/* Upper bound of the stored length of raw_len bytes under any encoding. */
size_t stoup_block_encode_cap(size_t raw_len);

/* An encoder: the reusable contexts of one thread. Heap; destroy accepts NULL. */
struct stoup_encoder;
int stoup_encoder_create(const struct stoup_encoding *encoding, struct stoup_encoder **ret);
void stoup_encoder_destroy(struct stoup_encoder *encoder);

/* Encode raw_len bytes. Data that does not shrink is stored with codec none: the codec and the
 * transform that were used come back. dst_cap >= stoup_block_encode_cap(raw_len).
 * 0, -EINVAL, -ENOMEM. `dst` may not overlap `src`. */
int stoup_block_encode(struct stoup_encoder *encoder, const void *src, size_t raw_len, void *dst,
	size_t dst_cap, size_t *ret_len, uint32_t *ret_codec, uint32_t *ret_transform);

#endif
