/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_input.c - packed files: any bytes, and files of known contents with a byte changed or cut off.
 *
 *      bytes[0]   0 to 3: the rest is the file
 *                 4 zstd, 5 lz4, 6 gzip: [damage: u16 place, u8 mask, u16 cut][frame] ...
 *      frame      [kind][u8 length][payload]      zstd: kind & 1 is a skippable frame
 *
 * Checked: the stream and its end are the same however it is read; a whole file gives exactly what
 * was packed; a damaged or cut one never ends well with other bytes than those, since each frame
 * carries a checksum.
 */
#include <errno.h>
#include <lz4frame.h>
#include <zstd.h>
#include "producer/input.h"
#include "tests/fuzz/fuzz.h"

#define STREAM_CAP (4u << 20) /* bytes: look no further, an input may unpack to gigabytes */
#define FILE_CAP   (64u << 10)

struct bytes {
	uint8_t *at;
	size_t len, cap;
};

static void bytes_add(struct bytes *bytes, const void *more, size_t len)
{
	if (bytes->len + len > bytes->cap) {
		bytes->cap = (bytes->len + len) * 2;
		bytes->at = realloc(bytes->at, bytes->cap);
		MUST(bytes->at != NULL);
	}
	if (len > 0)
		memcpy(bytes->at + bytes->len, more, len);
	bytes->len += len;
}

/* ---- packing ---------------------------------------------------------------------------------- */

static void zstd_frame(
	struct bytes *file, struct bytes *stream, unsigned kind, const uint8_t *payload, size_t len)
{
	uint8_t packed[1024], head[8] = {0x50, 0x2a, 0x4d, 0x18, (uint8_t)len};
	ZSTD_CCtx *ctx;
	size_t got;

	if (kind & 1) {
		head[0] = (uint8_t)(head[0] | (kind >> 4 & 15));
		bytes_add(file, head, sizeof(head));
		bytes_add(file, payload, len);
		return;
	}
	ctx = ZSTD_createCCtx();
	MUST(ctx != NULL);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, kind >> 1 & 1);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, 1 + (int)(kind >> 4 & 3));
	got = ZSTD_compress2(ctx, packed, sizeof(packed), payload, len);
	MUST(!ZSTD_isError(got));
	ZSTD_freeCCtx(ctx);
	bytes_add(file, packed, got);
	bytes_add(stream, payload, len);
}

static void lz4_frame(
	struct bytes *file, struct bytes *stream, unsigned kind, const uint8_t *payload, size_t len)
{
	LZ4F_preferences_t how = {.frameInfo = {.contentChecksumFlag = LZ4F_contentChecksumEnabled,
					  .blockChecksumFlag = kind & 1,
					  .blockMode = kind >> 1 & 1,
					  .contentSize = kind & 4 ? len : 0}};
	uint8_t packed[1024];
	size_t got = LZ4F_compressFrame(packed, sizeof(packed), payload, len, &how);

	MUST(!LZ4F_isError(got));
	bytes_add(file, packed, got);
	bytes_add(stream, payload, len);
}

static uint32_t crc32_slow(const uint8_t *bytes, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* RFC 1952 with one stored block (RFC 1951). */
static void gzip_member(
	struct bytes *file, struct bytes *stream, unsigned kind, const uint8_t *payload, size_t len)
{
	uint8_t head[10] = {0x1f, 0x8b, 8, kind & 1 ? 8 : 0, 1, 2, 3, 4, 0, 3};
	uint8_t block[5] = {
		1, (uint8_t)len, (uint8_t)(len >> 8), (uint8_t)~len, (uint8_t)(~len >> 8)};
	uint32_t tail[2] = {crc32_slow(payload, len), (uint32_t)len};

	bytes_add(file, head, sizeof(head));
	if (kind & 1)
		bytes_add(file, "name", 5);
	bytes_add(file, block, sizeof(block));
	bytes_add(file, payload, len);
	bytes_add(file, tail, sizeof(tail));
	bytes_add(stream, payload, len);
}

/* ---- reading ---------------------------------------------------------------------------------- */

/* Read all of a file in pieces of `piece` bytes, looking ahead at times. The stream, and how it
 * ended: 0, a negative errno, or 1 where it is longer than one looks. */
static int read_all(const struct bytes *file, size_t piece, struct bytes *stream)
{
	static uint8_t buf[64 << 10], head[4096];
	struct stoup_error err = {0};
	struct stoup_input *input;
	const uint8_t *ahead;
	int64_t got = 0, seen;
	char path[64];
	int fd = fuzz_file(file->at, file->len), rc;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = stoup_input_open(path, &input, &err);
	close(fd);
	MUST(rc == 0 || (rc < 0 && err.code == rc && err.text[0]));
	while (rc == 0 && stream->len < STREAM_CAP) {
		MUST(stoup_input_stream_off(input) == stream->len);
		seen = piece & 1 ? stoup_input_peek(input, piece % 4096 + 1, &ahead, &err) : 0;
		MUST(seen <= (int64_t)sizeof(head));
		if (seen > 0)
			memcpy(head, ahead, (size_t)seen);
		got = stoup_input_read(input, buf, piece, &err);
		if (piece & 1)
			MUST((seen > 0) == (got > 0) && (got > 0 || seen == got));
		if (got <= 0)
			break;
		MUST((size_t)got <= piece);
		if (seen > 0)
			MUST(memcmp(head, buf, (size_t)(seen < got ? seen : got)) == 0);
		bytes_add(stream, buf, (size_t)got);
	}
	if (rc == 0) {
		MUST(got >= 0 || (err.code == got && err.text[0]));
		/* It stays at its end. */
		if (got <= 0)
			MUST(stoup_input_read(input, buf, piece, &err) == got);
		stoup_input_close(input);
	}
	return rc ? rc : got > 0 ? 1 : (int)got;
}

/* Read twice, and compare; how it ended. */
static int read_twice(const struct bytes *file, size_t piece, struct bytes *stream)
{
	struct bytes again = {0};
	int rc = read_all(file, 64 << 10, stream);
	int rc_again = read_all(file, piece, &again);
	size_t common = again.len < stream->len ? again.len : stream->len;

	/* How much comes ahead of damage may depend on the pieces, but not what. */
	MUST(common == 0 || memcmp(again.at, stream->at, common) == 0);
	MUST((rc >= 0) == (rc_again >= 0));
	MUST(rc != 0 || again.len == stream->len);
	free(again.at);
	return rc;
}

static void try_packed(struct fuzz_in *in, unsigned packing, size_t piece)
{
	struct bytes file = {0}, expected = {0}, stream = {0};
	uint16_t place = fuzz_u16(in);
	uint8_t mask = fuzz_u8(in);
	uint16_t cut = fuzz_u16(in);
	int rc, damaged;

	for (int i = 0; (i == 0 || in->left > 0) && file.len < FILE_CAP; i++) {
		unsigned kind = fuzz_u8(in);
		const uint8_t *payload;
		size_t len = fuzz_take(in, fuzz_u8(in), &payload);

		if (packing == 4)
			zstd_frame(&file, &expected, kind, payload, len);
		else if (packing == 5)
			lz4_frame(&file, &expected, kind, payload, len);
		else
			gzip_member(&file, &expected, kind, payload, len);
	}
	damaged = mask != 0 && place < file.len;
	if (damaged)
		file.at[place] ^= mask;
	if (cut < file.len && cut > 0) {
		file.len = cut;
		damaged = 1;
	}
	rc = read_twice(&file, piece, &stream);
	/* A skippable frame of that name begins an older format of Databento's, which is told. */
	if (rc == -EPROTONOSUPPORT && file.len > 11 && memcmp(file.at + 8, "DBZ", 3) == 0)
		damaged = 1;
	MUST(damaged || rc == 0);
	/* Changed in its first bytes, or cut there, it is a file of another kind. Elsewhere a change can hide a frame, and a
	 * cut between two leaves the first ones, but nothing can put other bytes in their place. */
	if (rc == 0 && !(mask != 0 && place < 4) && file.len >= 4) {
		MUST(damaged ? stream.len <= expected.len : stream.len == expected.len);
		MUST(stream.len < expected.len || stream.len == 0 ||
			memcmp(stream.at, expected.at, stream.len) == 0);
	}
	free(stream.at);
	free(expected.at);
	free(file.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len};
	unsigned packing = fuzz_u8(&in) % 7;
	size_t piece = (size_t)fuzz_u8(&in) * 5 + 1;

	if (packing >= 4) {
		try_packed(&in, packing, piece);
	} else {
		struct bytes file = {0}, stream = {0};

		bytes_add(&file, in.at, in.left);
		read_twice(&file, piece, &stream);
		free(stream.at);
		free(file.at);
	}
	return 0;
}
