/* SPDX-License-Identifier: Apache-2.0 */
/* block_pack.c - lz4 and zstd: bytes to packed bytes and back, with the rules of a volume.
 *
 * Invariant: `dst` of a decoder is given to the libraries with exactly raw_len bytes of room, and
 * only by their bounds-checked functions. What is packed depends on its bytes and the encoding
 * alone, not on what the same packer made before.
 *
 * zstd's decoding context is made once per scratch and begins anew with each frame: making it asks
 * the processor for its features, which costs 12 us in a virtual machine.
 *
 * Concurrency: none of its own.
 */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_initStaticDCtx, ZSTD_estimateDCtxSize */
#include "codec/block_private.h"

#include <errno.h>
#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#define PACK_SCRATCH_ALIGN   64u
#define PACK_LITERALS_ALWAYS 1 /* ZSTD_lcm_huffman until zstd 1.5.0, then ZSTD_ps_enable */

/* ---- decoding -------------------------------------------------------------------------------- */

/* What lies in front of zstd's context in the scratch. */
struct pack_scratch {
	_Alignas(PACK_SCRATCH_ALIGN) ZSTD_DCtx *ctx;
};

size_t stoup_block_unpack_scratch_len(void)
{
	size_t len = sizeof(struct pack_scratch) + ZSTD_estimateDCtxSize();

	return (len + PACK_SCRATCH_ALIGN - 1) & ~(size_t)(PACK_SCRATCH_ALIGN - 1);
}

void stoup_block_unpack_scratch_init(void *scratch)
{
	struct pack_scratch *head = scratch;

	head->ctx = ZSTD_initStaticDCtx(
		head + 1, stoup_block_unpack_scratch_len() - sizeof(struct pack_scratch));
}

static int unpack_lz4(const void *src, size_t src_len, void *dst, size_t raw_len)
{
	/* Both lengths are at most STOUP_BLOCK_RAW_CAP here, so the casts lose nothing. */
	int got = LZ4_decompress_safe(src, dst, (int)src_len, (int)raw_len);

	return got >= 0 && (size_t)got == raw_len ? 0 : -EBADMSG;
}

/* The stored bytes must be one zstd frame and nothing else. Without the checks in front, the
 * library would also accept several frames, skippable frames and (by build option) formats of the
 * past. */
static int unpack_zstd(const void *src, size_t src_len, void *dst, size_t raw_len, void *scratch)
{
	static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
	ZSTD_DCtx *ctx = ((struct pack_scratch *)scratch)->ctx;
	unsigned long long claimed;
	size_t got;

	if (src_len < sizeof(magic) || memcmp(src, magic, sizeof(magic)))
		return -EBADMSG;
	claimed = ZSTD_getFrameContentSize(src, src_len);
	if (claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != raw_len)
		return -EBADMSG;
	if (ZSTD_findFrameCompressedSize(src, src_len) != src_len)
		return -EBADMSG;
	if (!ctx)
		return -EINVAL;
	got = ZSTD_decompressDCtx(ctx, dst, raw_len, src, src_len);
	return !ZSTD_isError(got) && got == raw_len ? 0 : -EBADMSG;
}

int stoup_block_unpack(
	uint32_t codec, const void *src, size_t src_len, void *dst, size_t raw_len, void *scratch)
{
	if (codec == STOUP_CODEC_ZSTD)
		return unpack_zstd(src, src_len, dst, raw_len, scratch);
	return unpack_lz4(src, src_len, dst, raw_len);
}

/* ---- encoding -------------------------------------------------------------------------------- */

struct stoup_packer {
	struct stoup_encoding encoding;
	LZ4_streamHC_t *hc;
	void *lz4_state;
	ZSTD_CCtx *zstd, *literals;
};

/* No zstd checksum: the volume's own hashes cover stored and raw bytes. */
static int zstd_create(int level, ZSTD_CCtx **ret)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();

	if (!ctx)
		return -ENOMEM;
	*ret = ctx;
	if (ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level)) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 0)) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 1)))
		return -EINVAL;
	return 0;
}

static int packer_zstd_create(struct stoup_packer *packer)
{
	int rc = zstd_create(packer->encoding.level, &packer->zstd);

	if (rc || packer->encoding.transform == STOUP_TRANSFORM_NONE)
		return rc;
	/* The fastest level skips over what it does not find at once; its literals, which that
	 * level would leave as they are, are then all there is to pack. */
	rc = zstd_create(ZSTD_minCLevel(), &packer->literals);
	if (rc == 0 && ZSTD_isError(ZSTD_CCtx_setParameter(packer->literals,
			       ZSTD_c_literalCompressionMode, PACK_LITERALS_ALWAYS)))
		return -EINVAL;
	return rc;
}

static int packer_lz4_create(struct stoup_packer *packer)
{
	if (packer->encoding.hc) {
		packer->hc = LZ4_createStreamHC();
		return packer->hc ? 0 : -ENOMEM;
	}
	packer->lz4_state = malloc((size_t)LZ4_sizeofState());
	return packer->lz4_state ? 0 : -ENOMEM;
}

int stoup_packer_create(const struct stoup_encoding *encoding, struct stoup_packer **ret)
{
	struct stoup_packer *packer = calloc(1, sizeof(*packer));
	int rc = 0;

	if (!packer)
		return -ENOMEM;
	packer->encoding = *encoding;
	if (encoding->codec == STOUP_CODEC_ZSTD)
		rc = packer_zstd_create(packer);
	else if (encoding->codec == STOUP_CODEC_LZ4)
		rc = packer_lz4_create(packer);
	if (rc) {
		stoup_packer_destroy(packer);
		return rc;
	}
	*ret = packer;
	return 0;
}

void stoup_packer_destroy(struct stoup_packer *packer)
{
	if (!packer)
		return;
	ZSTD_freeCCtx(packer->zstd);
	ZSTD_freeCCtx(packer->literals);
	if (packer->hc)
		LZ4_freeStreamHC(packer->hc);
	free(packer->lz4_state);
	free(packer);
}

/* A library's count of bytes or error code, as this file's functions return it. */
static int64_t zstd_result(size_t got)
{
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

static int64_t pack_lz4(
	struct stoup_packer *packer, const void *src, size_t raw_len, void *dst, size_t dst_cap)
{
	int32_t level = packer->encoding.level;

	if (!packer->hc)
		return LZ4_compress_fast_extState(
			packer->lz4_state, src, dst, (int)raw_len, (int)dst_cap, level);
	/* The full reset of LZ4_compress_HC_extStateHC clears 256 KiB, which costs more than a
	 * plane of 5 KiB. After the fast one the tables name bytes that count as out of reach. */
	LZ4_resetStreamHC_fast(packer->hc, level);
	return LZ4_compress_HC_continue(packer->hc, src, dst, (int)raw_len, (int)dst_cap);
}

int64_t stoup_packer_pack(
	struct stoup_packer *packer, const void *src, size_t raw_len, void *dst, size_t dst_cap)
{
	if (packer->zstd)
		return zstd_result(ZSTD_compress2(packer->zstd, dst, dst_cap, src, raw_len));
	return pack_lz4(packer, src, raw_len, dst, dst_cap);
}

int64_t stoup_packer_pack_pieces(struct stoup_packer *packer, int literals,
	const uint8_t *const *pieces, size_t piece_cnt, size_t piece_len, void *dst, size_t dst_cap)
{
	ZSTD_CCtx *ctx = literals ? packer->literals : packer->zstd;
	ZSTD_outBuffer out = {dst, dst_cap, 0};
	size_t got = ZSTD_CCtx_reset(ctx, ZSTD_reset_session_only);

	if (!ZSTD_isError(got))
		got = ZSTD_CCtx_setPledgedSrcSize(ctx, piece_cnt * piece_len);
	for (size_t i = 0; i < piece_cnt && !ZSTD_isError(got); i++) {
		ZSTD_inBuffer in = {pieces[i], piece_len, 0};

		got = ZSTD_compressStream2(
			ctx, &out, &in, i + 1 < piece_cnt ? ZSTD_e_flush : ZSTD_e_end);
		if (!ZSTD_isError(got) && got) /* the room is used up */
			return 0;
	}
	return ZSTD_isError(got) ? zstd_result(got) : (int64_t)out.pos;
}
