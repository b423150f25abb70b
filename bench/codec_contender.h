/* SPDX-License-Identifier: Apache-2.0 */
/* codec_contender.h - ways to store a block, behind one pair of functions.
 *
 *      records --encode--> stored bytes --decode--> the same records
 *
 * stoup's own levels, the libraries alone, a copy as the limit, and what array stores do: byte
 * shuffle in front of zstd.
 *
 * Concurrency: none.
 */
#ifndef STOUP_BENCH_CODEC_CONTENDER_H
#define STOUP_BENCH_CODEC_CONTENDER_H

#include <stddef.h>
#include <stdint.h>
#include "codec/block.h"

struct codec_contender {
	const char *name;  /* shown */
	const char *codec; /* for stoup_encoding_parse, or NULL */
	const char *level;
	int shuffle; /* byte shuffle + zstd of that level */
};

#define CODEC_CONTENDER_CNT 10u
extern const struct codec_contender codec_contenders[CODEC_CONTENDER_CNT];

/* A contender with its contexts. */
struct codec_runner;
int codec_runner_create(const struct codec_contender *contender, struct codec_runner **ret);
void codec_runner_destroy(struct codec_runner *runner);

/* One block. dst has raw_len + 1024 bytes. The stored length, or a negative errno. */
int64_t codec_encode(struct codec_runner *runner, const struct stoup_block_layout *layout,
	const uint8_t *src, size_t raw_len, uint8_t *dst);

/* 0 or a negative errno. */
int codec_decode(struct codec_runner *runner, const struct stoup_block_layout *layout,
	const uint8_t *src, size_t src_len, uint8_t *dst, size_t raw_len);

#endif
