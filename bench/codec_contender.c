/* SPDX-License-Identifier: Apache-2.0 */
/* codec_contender.c - ways to store a block, see codec_contender.h.
 *
 * What a contender needs to know for decoding a block (codec and transform) is kept in front of its
 * stored bytes, where a volume has it in its index; it is not counted.
 */
#include "bench/codec_contender.h"
#include "codec/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define HEAD_LEN 8u

const struct codec_contender codec_contenders[CODEC_CONTENDER_CNT] = {
	{"copy", "none", "", 0},
	{"lz4", "lz4", "", 0},
	{"lz4hc-9", "lz4hc", "9", 0},
	{"zstd-1", "zstd", "1", 0},
	{"zstd-3", "zstd", "3", 0},
	{"zstd-19", "zstd", "19", 0},
	{"shuffle+zstd-3", NULL, "3", 1},
	{"fast", "fast", "", 0},
	{"default", "default", "", 0},
	{"small", "small", "", 0},
};

struct codec_runner {
	const struct codec_contender *contender;
	struct stoup_encoder *encoder;
	ZSTD_CCtx *cctx;
	ZSTD_DCtx *dctx;
	uint8_t *planes; /* STOUP_BLOCK_RAW_CAP */
	void *scratch;
};

int codec_runner_create(const struct codec_contender *contender, struct codec_runner **ret)
{
	struct codec_runner *runner = calloc(1, sizeof(*runner));
	struct stoup_encoding encoding;
	int rc = -ENOMEM;

	if (!runner)
		return rc;
	runner->contender = contender;
	runner->scratch = aligned_alloc(64, stoup_block_scratch_len());
	if (contender->shuffle) {
		runner->cctx = ZSTD_createCCtx();
		runner->dctx = ZSTD_createDCtx();
		runner->planes = malloc(STOUP_BLOCK_RAW_CAP);
		rc = runner->cctx && runner->dctx && runner->planes ? 0 : -ENOMEM;
	} else {
		rc = stoup_encoding_parse(contender->codec, contender->level, &encoding);
		if (rc == 0)
			rc = stoup_encoder_create(&encoding, &runner->encoder);
	}
	if (runner->scratch)
		stoup_block_scratch_init(runner->scratch);
	if (rc || !runner->scratch) {
		codec_runner_destroy(runner);
		return rc ? rc : -ENOMEM;
	}
	*ret = runner;
	return 0;
}

void codec_runner_destroy(struct codec_runner *runner)
{
	if (!runner)
		return;
	stoup_encoder_destroy(runner->encoder);
	ZSTD_freeCCtx(runner->cctx);
	ZSTD_freeDCtx(runner->dctx);
	free(runner->planes);
	free(runner->scratch);
	free(runner);
}

/* ---- byte shuffle ---------------------------------------------------------------------------- */

/* Transpose a matrix of `rows` x `columns` bytes. */
static void shuffle(const uint8_t *src, size_t rows, size_t columns, uint8_t *dst)
{
	size_t r, c, i;
	uint64_t m[8];

	for (r = 0; r + 8 <= rows; r += 8) {
		for (c = 0; c + 8 <= columns; c += 8) {
			for (i = 0; i < 8; i++)
				memcpy(&m[i], src + (r + i) * columns + c, 8);
			stoup_fields_transpose(m);
			for (i = 0; i < 8; i++)
				memcpy(dst + (c + i) * rows + r, &m[i], 8);
		}
		for (; c < columns; c++)
			for (i = 0; i < 8; i++)
				dst[c * rows + r + i] = src[(r + i) * columns + c];
	}
	for (; r < rows; r++)
		for (c = 0; c < columns; c++)
			dst[c * rows + r] = src[r * columns + c];
}

/* ---- one block ------------------------------------------------------------------------------- */

int64_t codec_encode(struct codec_runner *runner, const struct stoup_block_layout *layout,
	const uint8_t *src, size_t raw_len, uint8_t *dst)
{
	uint32_t head[2];
	size_t len;
	int rc;

	if (runner->contender->shuffle) {
		shuffle(src, raw_len / layout->stride, layout->stride, runner->planes);
		len = ZSTD_compressCCtx(runner->cctx, dst + HEAD_LEN, raw_len, runner->planes,
			raw_len, atoi(runner->contender->level));
		return ZSTD_isError(len) ? -EINVAL : (int64_t)(len + HEAD_LEN);
	}
	rc = stoup_block_encode(runner->encoder, layout, src, raw_len, dst + HEAD_LEN, raw_len,
		&len, &head[0], &head[1]);
	memcpy(dst, head, HEAD_LEN);
	return rc ? rc : (int64_t)(len + HEAD_LEN);
}

int codec_decode(struct codec_runner *runner, const struct stoup_block_layout *layout,
	const uint8_t *src, size_t src_len, uint8_t *dst, size_t raw_len)
{
	uint32_t head[2];

	if (runner->contender->shuffle) {
		size_t got = ZSTD_decompressDCtx(
			runner->dctx, runner->planes, raw_len, src + HEAD_LEN, src_len - HEAD_LEN);

		if (got != raw_len)
			return -EBADMSG;
		shuffle(runner->planes, layout->stride, raw_len / layout->stride, dst);
		return 0;
	}
	memcpy(head, src, HEAD_LEN);
	return stoup_block_decode(head[0], head[1], src + HEAD_LEN, src_len - HEAD_LEN, dst,
		raw_len, runner->scratch);
}
