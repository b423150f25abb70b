/* SPDX-License-Identifier: Apache-2.0 */
/* input_zstd.c - concatenated zstd frames as one stream.
 *
 *      [frame][skippable][frame]...        frame_off = file offset of the one being read
 *
 * libzstd passes over skippable frames and checks checksums by itself; what it does not do is say
 * where a frame began, and to refuse what follows the last one. Content sizes are not looked at:
 * streamed files have none, and a wrong one is libzstd's to refuse.
 */
#include "producer/input_internal.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

struct zstd_state {
	struct stoup_input_raw *raw;
	ZSTD_DStream *stream;
	uint64_t frame_off;
	bool in_frame;
};

static int zstd_open(struct stoup_input_raw *raw, void **ret, struct stoup_error *err)
{
	struct zstd_state *state = calloc(1, sizeof(*state));
	if (!state)
		return stoup_error_set(err, -ENOMEM, "no memory to unpack %s", raw->name);
	state->raw = raw;
	state->stream = ZSTD_createDStream();
	if (!state->stream) {
		free(state);
		return stoup_error_set(err, -ENOMEM, "no memory to unpack %s", raw->name);
	}
	ZSTD_DCtx_setParameter(state->stream, ZSTD_d_windowLogMax, STOUP_INPUT_WINDOW_LOG_CAP);
	*ret = state;
	return 0;
}

static void zstd_close(void *arg)
{
	struct zstd_state *state = arg;
	ZSTD_freeDStream(state->stream);
	free(state);
}

static int refuse(const struct zstd_state *state, size_t code, struct stoup_error *err)
{
	const char *name = state->raw->name;
	unsigned long long off = state->frame_off;
	ZSTD_ErrorCode why = ZSTD_getErrorCode(code);
	if (why == ZSTD_error_frameParameter_windowTooLarge)
		return stoup_error_set(err, -EFBIG,
			"%s: the zstd frame that begins at offset %llu needs a window of more than "
			"%u MiB, "
			"which stoup does not give: compress it again without --ultra or --long",
			name, off, (1u << STOUP_INPUT_WINDOW_LOG_CAP) >> 20);
	if (why == ZSTD_error_checksum_wrong)
		return stoup_error_set(err, -EBADMSG,
			"%s: the checksum of the zstd frame that begins at offset %llu does not "
			"match: the "
			"file is damaged",
			name, off);
	if (why == ZSTD_error_memory_allocation)
		return stoup_error_set(err, -ENOMEM, "no memory to unpack %s", name);
	if (why == ZSTD_error_dictionary_wrong)
		return stoup_error_set(err, -EBADMSG,
			"%s: the zstd frame that begins at offset %llu needs a dictionary: unpack "
			"it first",
			name, off);
	return stoup_error_set(err, -EBADMSG,
		"%s: the zstd frame that begins at offset %llu is damaged near offset %llu: %s",
		name, off, (unsigned long long)state->raw->off, ZSTD_getErrorName(code));
}

/* Look at the next frame's first bytes. 1: there is a frame, 0: the file ends here. */
static int next_frame(struct zstd_state *state, struct stoup_error *err)
{
	struct stoup_input_raw *raw = state->raw;
	int64_t have = stoup_input_raw_need(raw, 4, err);
	if (have <= 0)
		return (int)have;
	const uint8_t *bytes = raw->buf + raw->pos;
	bool is_frame = have >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0;
	bool is_skip =
		have >= 4 && (bytes[0] & 0xf0) == 0x50 && !memcmp(bytes + 1, "\x2a\x4d\x18", 3);
	if (!is_frame && !is_skip)
		return stoup_error_set(err, -EBADMSG,
			"%s: garbage behind the last zstd frame, at offset %llu", raw->name,
			(unsigned long long)raw->off);
	state->frame_off = raw->off;
	state->in_frame = true;
	return 1;
}

/* One call of the decoder. Returns the bytes that it gave (0: it needs more), or an error. */
static int64_t step(struct zstd_state *state, void *buf, size_t len, struct stoup_error *err)
{
	struct stoup_input_raw *raw = state->raw;
	int64_t have = stoup_input_raw_need(raw, 1, err);
	if (have < 0)
		return have;
	ZSTD_inBuffer in = {raw->buf + raw->pos, (size_t)have, 0};
	ZSTD_outBuffer out = {buf, len, 0};
	size_t code = ZSTD_decompressStream(state->stream, &out, &in);
	stoup_input_raw_take(raw, in.pos);
	if (ZSTD_isError(code))
		return refuse(state, code, err);
	state->in_frame = code != 0;
	/* At the end of the file the decoder may still hold output; only silence means cut. */
	if (state->in_frame && have == 0 && out.pos == 0)
		return stoup_error_set(err, -ENODATA,
			"%s ends at offset %llu inside a zstd frame that begins at offset %llu: "
			"the file is "
			"cut short",
			raw->name, (unsigned long long)raw->off,
			(unsigned long long)state->frame_off);
	return (int64_t)out.pos;
}

static int64_t zstd_read(void *arg, void *buf, size_t len, struct stoup_error *err)
{
	struct zstd_state *state = arg;
	for (;;) {
		int more = state->in_frame ? 1 : next_frame(state, err);
		if (more <= 0)
			return more;
		int64_t got = step(state, buf, len, err);
		if (got != 0)
			return got;
	}
}

const struct stoup_input_decoder stoup_input_zstd = {"zstd", zstd_open, zstd_read, zstd_close};
