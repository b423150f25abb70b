/* SPDX-License-Identifier: Apache-2.0 */
/* input_lz4.c - concatenated lz4 frames as one stream, by liblz4.
 *
 * Not through libarchive: that one takes up to four bytes of garbage behind the last frame for the
 * end, and can not say where a frame began.
 */
#include "producer/input_internal.h"
#include <errno.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>

struct lz4_state {
	struct stoup_input_raw *raw;
	LZ4F_dctx *dctx;
	uint64_t frame_off;
	bool in_frame;
};

static int lz4_open(struct stoup_input_raw *raw, void **ret, struct stoup_error *err)
{
	if (raw->buf[raw->pos] == 0x02)
		return stoup_error_set(err, -EPROTONOSUPPORT,
			"%s is an lz4 file of the legacy format (lz4 -l): compress it again "
			"without -l",
			raw->name);
	struct lz4_state *state = calloc(1, sizeof(*state));
	if (!state || LZ4F_isError(LZ4F_createDecompressionContext(&state->dctx, LZ4F_VERSION))) {
		free(state);
		return stoup_error_set(err, -ENOMEM, "no memory to unpack %s", raw->name);
	}
	state->raw = raw;
	*ret = state;
	return 0;
}

static void lz4_close(void *arg)
{
	struct lz4_state *state = arg;
	LZ4F_freeDecompressionContext(state->dctx);
	free(state);
}

/* Look at the next frame's first bytes. 1: there is a frame, 0: the file ends here. */
static int next_frame(struct lz4_state *state, struct stoup_error *err)
{
	struct stoup_input_raw *raw = state->raw;
	int64_t have = stoup_input_raw_need(raw, 4, err);
	if (have <= 0)
		return (int)have;
	const uint8_t *bytes = raw->buf + raw->pos;
	bool is_frame = have >= 4 && memcmp(bytes, "\x04\x22\x4d\x18", 4) == 0;
	bool is_skip =
		have >= 4 && (bytes[0] & 0xf0) == 0x50 && !memcmp(bytes + 1, "\x2a\x4d\x18", 3);
	if (!is_frame && !is_skip)
		return stoup_error_set(err, -EBADMSG,
			"%s: garbage behind the last lz4 frame, at offset %llu", raw->name,
			(unsigned long long)raw->off);
	state->frame_off = raw->off;
	state->in_frame = true;
	return 1;
}

/* One call of the decoder. Returns the bytes that it gave (0: it needs more), or an error. */
static int64_t step(struct lz4_state *state, void *buf, size_t len, struct stoup_error *err)
{
	struct stoup_input_raw *raw = state->raw;
	int64_t have = stoup_input_raw_need(raw, 1, err);
	if (have < 0)
		return have;
	size_t in_len = (size_t)have;
	size_t out_len = len;
	size_t code =
		LZ4F_decompress(state->dctx, buf, &out_len, raw->buf + raw->pos, &in_len, NULL);
	if (LZ4F_isError(code))
		return stoup_error_set(err, -EBADMSG,
			"%s: the lz4 frame that begins at offset %llu is damaged near offset %llu: "
			"%s",
			raw->name, (unsigned long long)state->frame_off,
			(unsigned long long)raw->off, LZ4F_getErrorName(code));
	stoup_input_raw_take(raw, in_len);
	state->in_frame = code != 0;
	if (state->in_frame && have == 0 && out_len == 0)
		return stoup_error_set(err, -ENODATA,
			"%s ends at offset %llu inside an lz4 frame that begins at offset %llu: "
			"the file is "
			"cut short",
			raw->name, (unsigned long long)raw->off,
			(unsigned long long)state->frame_off);
	return (int64_t)out_len;
}

static int64_t lz4_read(void *arg, void *buf, size_t len, struct stoup_error *err)
{
	struct lz4_state *state = arg;
	for (;;) {
		int more = state->in_frame ? 1 : next_frame(state, err);
		if (more <= 0)
			return more;
		int64_t got = step(state, buf, len, err);
		if (got != 0)
			return got;
	}
}

const struct stoup_input_decoder stoup_input_lz4 = {"lz4", lz4_open, lz4_read, lz4_close};
