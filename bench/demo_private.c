/* SPDX-License-Identifier: Apache-2.0 */
/* demo_private.c - a worker that decodes for itself, as programs do today.
 *
 *      stoup-demo-private --resident FILE...    decode all of it into memory, then walk it
 *      stoup-demo-private --stream FILE...      decode piece by piece, walk each, keep none
 *
 * Reads DBN files, plain or zstd (several frames). Ends with an error at anything it does not
 * understand: its sums stand beside those of stoup.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <zstd.h>
#include "bench/demo_sum.h"

#define PRELUDE_LEN    8u
#define METADATA_CAP   (256u << 20) /* bytes: the largest seen is 6 MB */
#define STREAM_LEN     (1u << 20)   /* bytes of a piece: what fits the second-level cache */
#define RECORD_LEN_CAP 1020u        /* 255 words of 4 bytes */
#define HEADER_LEN     16u

struct source {
	const char *path;
	FILE *file;
	ZSTD_DCtx *zstd; /* NULL: the file is plain */
	uint8_t *in;
	size_t in_cap;
	ZSTD_inBuffer pending;
	size_t frame_left; /* 0: between two frames */
};

_Noreturn static void die(const char *path, const char *what)
{
	fprintf(stderr, "stoup-demo-private: %s: %s\n", path, what);
	exit(1);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static void source_open(struct source *source, const char *path)
{
	uint8_t magic[4];

	memset(source, 0, sizeof(*source));
	source->path = path;
	source->file = fopen(path, "rb");
	if (!source->file)
		die(path, strerror(errno));
	if (fread(magic, 1, sizeof(magic), source->file) != sizeof(magic))
		die(path, "too short");
	rewind(source->file);
	if (memcmp(magic, "DBN", 3) == 0)
		return;
	if (demo_load(magic, 4) != ZSTD_MAGICNUMBER)
		die(path, "is neither DBN nor zstd");
	source->zstd = ZSTD_createDCtx();
	source->in_cap = ZSTD_DStreamInSize();
	source->in = malloc(source->in_cap);
	if (!source->zstd || !source->in)
		die(path, "no memory");
	source->pending.src = source->in;
}

static void source_close(struct source *source)
{
	ZSTD_freeDCtx(source->zstd);
	free(source->in);
	fclose(source->file);
}

/* Fill `dst` as far as the input goes. Returns the bytes written; fewer than `len` at the end. */
static size_t source_read(struct source *source, uint8_t *dst, size_t len)
{
	ZSTD_outBuffer out = {dst, len, 0};

	if (!source->zstd)
		return fread(dst, 1, len, source->file);
	while (out.pos < out.size) {
		size_t before = out.pos;

		if (source->pending.pos == source->pending.size) {
			source->pending.size = fread(source->in, 1, source->in_cap, source->file);
			source->pending.pos = 0;
		}
		if (!source->pending.size && !source->frame_left)
			break;
		source->frame_left = ZSTD_decompressStream(source->zstd, &out, &source->pending);
		if (ZSTD_isError(source->frame_left))
			die(source->path, ZSTD_getErrorName(source->frame_left));
		if (!source->pending.size && out.pos == before)
			die(source->path, "ends inside a frame");
	}
	return out.pos;
}

/* Read over prelude and metadata; the next byte is the first record's. */
static void skip_metadata(struct source *source)
{
	uint8_t prelude[PRELUDE_LEN];
	uint8_t *metadata;
	size_t len;

	if (source_read(source, prelude, PRELUDE_LEN) != PRELUDE_LEN ||
		memcmp(prelude, "DBN", 3) != 0)
		die(source->path, "holds no DBN metadata");
	len = demo_load(prelude + 4, 4);
	metadata = len <= METADATA_CAP ? malloc(len + 1) : NULL;
	if (!metadata || source_read(source, metadata, len) != len)
		die(source->path, "its metadata is cut short or too long");
	free(metadata);
}

/* ---- records -------------------------------------------------------------------------------- */

/* Where records of a type have their price and size; 0 for a type that stoup does not import. */
static int layout_of(uint8_t rtype, struct demo_layout *ret)
{
	switch (rtype) {
	case 0xa0: /* mbo */
		*ret = (struct demo_layout){24, 32, 4};
		return 1;
	case 0x00: /* trades, mbp-1, mbp-10, bbo and the consolidated ones */
	case 0x01:
	case 0x0a:
	case 0xb1:
	case 0xc0:
	case 0xc1:
	case 0xc2:
	case 0xc3:
	case 0xc4:
		*ret = (struct demo_layout){16, 24, 4};
		return 1;
	case 0x11: /* bars: close and volume */
	case 0x20:
	case 0x21:
	case 0x22:
	case 0x23:
	case 0x24:
		*ret = (struct demo_layout){40, 48, 8};
		return 1;
	case 0x12: /* status, definition, imbalance, and a session's own: bytes only */
	case 0x13:
	case 0x14:
	case 0x15:
	case 0x16:
	case 0x17:
		*ret = (struct demo_layout){DEMO_NO_FIELD, DEMO_NO_FIELD, 0};
		return 1;
	case 0x18: /* statistics: a price, and a quantity that is no size */
		*ret = (struct demo_layout){32, DEMO_NO_FIELD, 0};
		return 1;
	default:
		return 0;
	}
}

/* Add all whole records of `src`; returns the bytes used. */
static size_t walk(struct demo_sum *sum, const char *path, const uint8_t *src, size_t len)
{
	struct demo_sum local = *sum;
	size_t at = 0;

	while (at + HEADER_LEN <= len) {
		size_t record_len = (size_t)src[at] * 4;
		struct demo_layout layout;

		if (record_len < HEADER_LEN)
			die(path, "a record says that it is shorter than its header");
		if (at + record_len > len)
			break;
		if (src[at + 1] == 0xa0 && record_len == 56)
			demo_add_mbo(&local, src + at);
		else if (layout_of(src[at + 1], &layout))
			demo_add(&local, src + at, record_len, layout.price_off, layout.size_off,
				layout.size_len);
		at += record_len;
	}
	*sum = local;
	return at;
}

/* ---- modes ---------------------------------------------------------------------------------- */

/* Ask for 2 MiB pages, as NumPy does for large arrays: the private copies get their best, too. */
static void want_huge(uint8_t *bytes, size_t cap)
{
	uintptr_t begin = ((uintptr_t)bytes + 4095) & ~(uintptr_t)4095;

	if (bytes)
		madvise((void *)begin, cap - 4096, MADV_HUGEPAGE);
}

/* All records in memory first; *ret_len bytes, never freed: it is the working set. */
static uint8_t *load(struct source *source, size_t *ret_len)
{
	size_t cap = 64u << 20, len = 0, got;
	uint8_t *bytes = malloc(cap);

	want_huge(bytes, cap);
	while (bytes && (got = source_read(source, bytes + len, cap - len)) > 0) {
		len += got;
		if (len < cap)
			break;
		cap *= 2;
		bytes = realloc(bytes, cap);
		want_huge(bytes, cap);
	}
	if (!bytes)
		die(source->path, "no memory for the decoded records");
	*ret_len = len;
	return bytes;
}

static void run_resident(struct demo_sum *sum, struct source *source)
{
	size_t len;
	uint8_t *bytes = load(source, &len);

	if (walk(sum, source->path, bytes, len) != len)
		die(source->path, "ends inside a record");
}

static void run_stream(struct demo_sum *sum, struct source *source)
{
	static uint8_t piece[STREAM_LEN + RECORD_LEN_CAP];
	size_t kept = 0, got;

	while ((got = source_read(source, piece + kept, STREAM_LEN)) > 0) {
		size_t used = walk(sum, source->path, piece, kept + got);

		kept = kept + got - used;
		memmove(piece, piece + used, kept);
	}
	if (kept)
		die(source->path, "ends inside a record");
}

int main(int argc, char **argv)
{
	struct demo_sum sum = {0};
	struct source source;
	int resident = argc > 1 && strcmp(argv[1], "--resident") == 0;

	if (argc < 3 || (!resident && strcmp(argv[1], "--stream") != 0)) {
		fprintf(stderr, "Usage: stoup-demo-private --resident|--stream FILE...\n");
		return 2;
	}
	for (int i = 2; i < argc; i++) {
		source_open(&source, argv[i]);
		skip_metadata(&source);
		if (resident)
			run_resident(&sum, &source);
		else
			run_stream(&sum, &source);
		source_close(&source);
	}
	return demo_finish(&sum);
}
