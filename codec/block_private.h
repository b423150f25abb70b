/* SPDX-License-Identifier: Apache-2.0 */
/* block_private.h - what the files of the block codec share: the libraries' calls with the rules of
 * a volume around them.
 *
 * Concurrency: none; a packer belongs to one encoder.
 */
#ifndef STOUP_CODEC_BLOCK_PRIVATE_H
#define STOUP_CODEC_BLOCK_PRIVATE_H

#include <stddef.h>
#include <stdint.h>
#include "codec/block.h"

/* ---- decoding -------------------------------------------------------------------------------- */

/* Bytes of scratch that stoup_block_unpack needs, a multiple of 64. */
size_t stoup_block_unpack_scratch_len(void);

void stoup_block_unpack_scratch_init(void *scratch);

/* Decompress exactly raw_len bytes with lz4 or zstd. 0 or -EBADMSG. Lengths are within the caps. */
int stoup_block_unpack(
	uint32_t codec, const void *src, size_t src_len, void *dst, size_t raw_len, void *scratch);

/* ---- encoding -------------------------------------------------------------------------------- */

/* The libraries' contexts for one encoding. */
struct stoup_packer;
int stoup_packer_create(const struct stoup_encoding *encoding, struct stoup_packer **ret);
void stoup_packer_destroy(struct stoup_packer *packer);

/* Compress into at most dst_cap bytes. Bytes written, 0 where they do not fit, negative errno. The
 * result depends on nothing that was packed before. */
int64_t stoup_packer_pack(
	struct stoup_packer *packer, const void *src, size_t raw_len, void *dst, size_t dst_cap);

/* zstd only: the same for several pieces of piece_len bytes each, one after the other in one
 * frame, in which each begins a block of its own and so has its own code table. `literals`:
 * without a search for matches, by the frequency of bytes alone. */
int64_t stoup_packer_pack_pieces(struct stoup_packer *packer, int literals,
	const uint8_t *const *pieces, size_t piece_cnt, size_t piece_len, void *dst,
	size_t dst_cap);

/* ---- the field transform --------------------------------------------------------------------- */

/* The encoder's arrays for tiles of the transform. */
struct stoup_fields_encoder;
int stoup_fields_encoder_create(struct stoup_fields_encoder **ret);
void stoup_fields_encoder_destroy(struct stoup_fields_encoder *encoder);

/* Encode records of a layout into at most dst_cap bytes. Bytes written; 0 where they do not fit or
 * the layout is not for this transform; negative errno. */
int64_t stoup_fields_encode(struct stoup_fields_encoder *encoder, struct stoup_packer *packer,
	const struct stoup_encoding *encoding, const struct stoup_block_layout *layout,
	const uint8_t *src, size_t raw_len, uint8_t *dst, size_t dst_cap);

/* 1: records of this layout may be smaller without the transform (they have floats). */
int stoup_fields_doubtful(const struct stoup_block_layout *layout);

#endif
