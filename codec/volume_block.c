/* SPDX-License-Identifier: Apache-2.0 */
/* volume_block.c - the bytes between header and footer, held against the index.
 *
 *      stored bytes --stored hash--> decode --raw hash--> records
 *      gaps between blocks: zero
 *
 * A fault here concerns one block: the rest of its volume is served.
 *
 * Concurrency: pure functions on an immutable index.
 */
#include "codec/volume_private.h"

#include <errno.h>
#include <inttypes.h>
#include "codec/block.h"

int stoup_vol_block_check(const struct stoup_vol_index *index, uint32_t block_idx,
	const void *stored, struct stoup_vol_fault *fault)
{
	const struct stoup_vol_block *block = &index->blocks[block_idx];
	uint64_t hash = stoup_vol_hash(stored, block->stored_len);

	if (hash == block->stored_hash)
		return 0;
	stoup_vol_fault_set(fault, -EBADMSG, STOUP_VOL_REGION_BLOCK, block->stored_off,
		"damaged: block %u of %u stored bytes has hash 0x%016" PRIx64
		", the index says 0x%016" PRIx64,
		block_idx, block->stored_len, hash, block->stored_hash);
	if (fault)
		fault->block_idx = block_idx;
	return -EBADMSG;
}

/* The words for an error of stoup_block_decode. */
static int decode_fault(const struct stoup_vol_block *block, uint32_t block_idx, int code,
	struct stoup_vol_fault *fault)
{
	int of_codec = block->codec > STOUP_CODEC_LAST;

	if (code == -ENOTSUP)
		stoup_vol_fault_set(fault, code, STOUP_VOL_REGION_BLOCK, block->stored_off,
			"block %u: %s %u is unknown to this program: use a newer one", block_idx,
			of_codec ? "codec" : "transform",
			of_codec ? block->codec : block->transform);
	else
		stoup_vol_fault_set(fault, code, STOUP_VOL_REGION_BLOCK, block->stored_off,
			"block %u: its %u stored bytes do not decode to %u bytes under codec %u%s",
			block_idx, block->stored_len, block->raw_len, block->codec,
			block->transform ? " and the field transform" : "");
	if (fault)
		fault->block_idx = block_idx;
	return code;
}

int stoup_vol_block_decode(const struct stoup_vol_index *index, uint32_t block_idx,
	const void *stored, void *raw, void *scratch, struct stoup_vol_fault *fault)
{
	const struct stoup_vol_block *block = &index->blocks[block_idx];
	uint64_t hash;
	int rc = stoup_vol_block_check(index, block_idx, stored, fault);

	if (rc)
		return rc;
	rc = stoup_block_decode(block->codec, block->transform, stored, block->stored_len, raw,
		block->raw_len, scratch);
	if (rc)
		return decode_fault(block, block_idx, rc, fault);
	hash = stoup_vol_hash(raw, block->raw_len);
	if (hash == block->raw_hash)
		return 0;
	stoup_vol_fault_set(fault, -EBADMSG, STOUP_VOL_REGION_BLOCK, block->stored_off,
		"block %u decodes to bytes with hash 0x%016" PRIx64
		", the index says 0x%016" PRIx64,
		block_idx, hash, block->raw_hash);
	if (fault)
		fault->block_idx = block_idx;
	return -EBADMSG;
}

int stoup_vol_padding(
	const struct stoup_vol_index *index, uint32_t pad_idx, uint64_t *off, uint64_t *len)
{
	const struct stoup_vol_block *before;
	uint64_t from = STOUP_VOL_HEADER_LEN, to;

	if (pad_idx > index->block_cnt)
		return 0;
	if (pad_idx) {
		before = &index->blocks[pad_idx - 1];
		from = before->stored_off + before->stored_len;
	}
	to = pad_idx < index->block_cnt ? index->blocks[pad_idx].stored_off : index->footer_off;
	*off = from;
	*len = to - from;
	return 1;
}

int stoup_vol_padding_check(
	uint64_t file_off, const void *bytes, size_t len, struct stoup_vol_fault *fault)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < len; i++) {
		if (at[i])
			return stoup_vol_fault_set(fault, -EBADMSG, STOUP_VOL_REGION_PADDING,
				file_off + i, "padding is 0x%02x but must be zero", at[i]);
	}
	return 0;
}
