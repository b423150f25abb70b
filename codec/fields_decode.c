/* SPDX-License-Identifier: Apache-2.0 */
/* fields_decode.c - stored bytes of the field transform to records: the checks, and the frame
 * around a kernel.
 *
 *      head, widths --once--> words and columns
 *      tile --> ops, kinds, lengths checked --> streams into `planes` --> kernel --> rows
 *
 * Every length is compared with what is left before it is followed, and a tile is parsed to its end
 * before a kernel sees it. What a kernel reads are planes of exactly as many bytes as the tile has
 * records: in the stored bytes (raw), in the scratch (packed), or 32 equal bytes (const).
 *
 * Raw planes are fetched into the cache while the tile is parsed: the kernel reads up to some
 * twenty of them side by side, which is more than a processor's prefetchers follow.
 *
 * Concurrency: pure functions.
 */
#include "codec/fields.h"

#include <errno.h>
#include <string.h>
#include "codec/block_private.h"

#define FIELDS_LINE 64u

#define FIELDS_AT(type, name, suffix, off, len)                                                    \
	_Static_assert(offsetof(struct fields_head, name) == (off), "offset of " #name);           \
	_Static_assert(sizeof(((struct fields_head *)0)->name) == (len), "length of " #name);
#define FIELDS_MEMBER(type, name, suffix, off, len) type name suffix;
struct fields_head {
	STOUP_FIELDS_DISK_HEAD(FIELDS_MEMBER)
};
STOUP_FIELDS_DISK_HEAD(FIELDS_AT)
_Static_assert(sizeof(struct fields_head) == STOUP_FIELDS_HEAD_LEN, "length of the head");

struct fields_in {
	const uint8_t *at;
	size_t left;
};

/* Kinds of the planes of a tile while it is parsed: behind the tile in the scratch. */
struct fields_scratch {
	struct stoup_fields_tile tile;
	uint8_t kinds[STOUP_FIELDS_STRIDE_CAP];
	uint8_t values[STOUP_FIELDS_STRIDE_CAP]; /* of const planes */
	uint8_t tail_planes[STOUP_FIELDS_STRIDE_CAP][STOUP_FIELDS_GROUP];
	uint8_t tail_rows[STOUP_FIELDS_STRIDE_CAP * STOUP_FIELDS_GROUP];
	uint8_t planes[STOUP_FIELDS_TILE_LEN_CAP];
};

#define FIELDS_SCRATCH_ALIGN 64u

size_t stoup_fields_scratch_len(void)
{
	return (sizeof(struct fields_scratch) + FIELDS_SCRATCH_ALIGN - 1) &
	       ~(size_t)(FIELDS_SCRATCH_ALIGN - 1);
}

/* NULL where fewer than `len` bytes are left. */
static const uint8_t *in_take(struct fields_in *in, size_t len)
{
	const uint8_t *at = in->at;

	if (len > in->left)
		return NULL;
	in->at += len;
	in->left -= len;
	return at;
}

static int in_number(struct fields_in *in, size_t len, uint64_t *ret)
{
	const uint8_t *at = in_take(in, len);

	if (!at)
		return -EBADMSG;
	*ret = 0;
	memcpy(ret, at, len);
	return 0;
}

/* ---- head ------------------------------------------------------------------------------------ */

/* Put the next column into the last word, or begin another one. */
static void word_add(struct stoup_fields_tile *tile, uint32_t idx)
{
	struct stoup_fields_column *column = &tile->columns[idx];
	struct stoup_fields_word *word = &tile->words[idx ? tile->word_cnt - 1 : 0];

	if (!idx || word->len + column->width > STOUP_FIELDS_PLANE_CAP) {
		word = &tile->words[tile->word_cnt++];
		word->off = column->off;
		word->column_first = (uint16_t)idx;
		word->column_cnt = 0;
		word->len = 0;
	}
	column->shift = (uint8_t)(word->len * 8);
	word->len = (uint8_t)(word->len + column->width);
	word->column_cnt++;
}

/* Columns follow each other without a gap, so that their widths say where they are. */
static int widths_parse(struct stoup_fields_tile *tile, const uint8_t *widths)
{
	uint32_t off = 0;

	tile->word_cnt = 0;
	for (uint32_t i = 0; i < tile->column_cnt; i++) {
		uint8_t width = widths[i];

		if (width != 1 && width != 2 && width != 4 && width != 8)
			return -EBADMSG;
		if (width > tile->stride - off)
			return -EBADMSG;
		tile->columns[i].off = (uint16_t)off;
		tile->columns[i].width = width;
		tile->columns[i].mask = UINT64_MAX >> (64 - 8 * width);
		word_add(tile, i);
		off += width;
	}
	return off == tile->stride ? 0 : -EBADMSG;
}

static int head_parse(
	struct fields_in *in, struct stoup_fields_tile *tile, size_t raw_len, uint32_t *ret_cnt)
{
	const uint8_t *bytes = in_take(in, STOUP_FIELDS_HEAD_LEN), *widths;
	struct fields_head head;

	if (!bytes)
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	if (!head.stride || head.stride > STOUP_FIELDS_STRIDE_CAP ||
		(uint64_t)head.record_cnt * head.stride != raw_len)
		return -EBADMSG;
	if (!head.column_cnt || head.column_cnt > STOUP_FIELDS_COLUMN_CAP)
		return -EBADMSG;
	if (!head.tile_cnt || head.tile_cnt > STOUP_FIELDS_TILE_CNT_CAP ||
		head.tile_cnt * head.stride > STOUP_FIELDS_TILE_LEN_CAP)
		return -EBADMSG;
	widths = in_take(in, head.column_cnt);
	if (!widths)
		return -EBADMSG;
	tile->stride = head.stride;
	tile->column_cnt = head.column_cnt;
	*ret_cnt = head.tile_cnt;
	return widths_parse(tile, widths);
}

/* ---- one tile -------------------------------------------------------------------------------- */

static int op_parse(struct fields_in *in, struct stoup_fields_tile *tile, uint32_t idx)
{
	struct stoup_fields_column *column = &tile->columns[idx];
	uint64_t op, ref = 0;

	if (in_number(in, 1, &op) || (op & ~(uint64_t)STOUP_FIELDS_OP_MASK) ||
		(op & STOUP_FIELDS_MODE_MASK) > STOUP_FIELDS_MODE_LAST)
		return -EBADMSG;
	column->mode = (uint8_t)(op & STOUP_FIELDS_MODE_MASK);
	column->flags = (uint8_t)(op & ~(uint64_t)STOUP_FIELDS_MODE_MASK);
	column->tick = 1;
	column->base = 0;
	column->null = 0;
	column->ref_off = 0;
	if (op & STOUP_FIELDS_REF) {
		if (in_number(in, 2, &ref) || ref >= idx ||
			tile->columns[ref].width != column->width)
			return -EBADMSG;
		column->ref_off = tile->columns[ref].off;
	}
	if ((op & STOUP_FIELDS_TICK) && in_number(in, column->width, &column->tick))
		return -EBADMSG;
	if ((op & STOUP_FIELDS_BASE) && in_number(in, column->width, &column->base))
		return -EBADMSG;
	if ((op & STOUP_FIELDS_NULL) && in_number(in, column->width, &column->null))
		return -EBADMSG;
	return 0;
}

static int kinds_parse(struct fields_in *in, struct fields_scratch *scratch, uint32_t idx)
{
	const struct stoup_fields_column *column = &scratch->tile.columns[idx];
	uint64_t bits, value;

	if (in_number(in, (column->width + 3u) / 4, &bits))
		return -EBADMSG;
	for (uint32_t i = column->off; i < column->off + (uint32_t)column->width; i++, bits >>= 2) {
		scratch->kinds[i] = bits & 3;
		if (scratch->kinds[i] != STOUP_FIELDS_PLANE_CONST)
			continue;
		if (in_number(in, 1, &value))
			return -EBADMSG;
		scratch->values[i] = (uint8_t)value;
	}
	return bits ? -EBADMSG : 0;
}

static void prefetch(const uint8_t *at, size_t len)
{
	for (size_t i = 0; i < len; i += FIELDS_LINE)
		__builtin_prefetch(at + i);
}

/* One stream into `dst`, for `cnt` bytes of each of its `plane_cnt` planes. */
static int stream_unpack(struct fields_in *in, const uint8_t *len_at, uint32_t codec, uint8_t *dst,
	size_t raw_len, void *codec_scratch)
{
	const uint8_t *bytes;
	uint32_t len;

	memcpy(&len, len_at, sizeof(len));
	bytes = len ? in_take(in, len) : NULL;
	if (!bytes)
		return -EBADMSG;
	return stoup_block_unpack(codec, bytes, len, dst, raw_len, codec_scratch);
}

/* Planes of the stream that begins at plane `first`: it and the MORE ones behind it, wherever. */
static uint32_t stream_plane_cnt(const struct fields_scratch *scratch, uint32_t first)
{
	uint32_t cnt = 1;

	for (uint32_t i = first + 1; i < scratch->tile.stride; i++) {
		if (scratch->kinds[i] == STOUP_FIELDS_PLANE_PACKED)
			break;
		cnt += scratch->kinds[i] == STOUP_FIELDS_PLANE_MORE;
	}
	return cnt;
}

static void plane_set(struct fields_scratch *scratch, struct stoup_fields_word *word, uint32_t at,
	const uint8_t *bytes)
{
	uint32_t i = at - word->off;

	if (bytes) {
		word->at[i] = bytes;
		word->step[i] = UINT64_MAX;
		word->live = (uint8_t)(word->live | 1u << i);
		return;
	}
	memset(scratch->tile.splat[scratch->values[at]], scratch->values[at], STOUP_FIELDS_GROUP);
	word->at[i] = scratch->tile.splat[scratch->values[at]];
	word->step[i] = 0;
	word->constants |= (uint64_t)scratch->values[at] << (8 * i);
}

/* The places of all planes; streams are decompressed on the way. */
static int planes_place(struct fields_in *in, struct fields_scratch *scratch, const uint8_t *lens,
	uint32_t cnt, uint32_t codec, void *codec_scratch)
{
	struct stoup_fields_tile *tile = &scratch->tile;
	struct stoup_fields_word *word = tile->words;
	uint8_t *packed = scratch->planes; /* the next packed plane; they fit: cnt * stride */
	uint8_t *unpacked = scratch->planes;

	for (uint32_t i = 0; i < tile->stride; i++) {
		const uint8_t *bytes = NULL;

		word += i == (uint32_t)word->off + word->len;
		if (scratch->kinds[i] == STOUP_FIELDS_PLANE_RAW) {
			bytes = in_take(in, cnt);
			if (!bytes)
				return -EBADMSG;
			prefetch(bytes, cnt);
		} else if (scratch->kinds[i] == STOUP_FIELDS_PLANE_PACKED) {
			size_t raw_len = (size_t)stream_plane_cnt(scratch, i) * cnt;

			if (stream_unpack(in, lens, codec, unpacked, raw_len, codec_scratch))
				return -EBADMSG;
			lens += 4;
			unpacked += raw_len;
		}
		if (scratch->kinds[i] >= STOUP_FIELDS_PLANE_PACKED) {
			if (packed == unpacked) /* MORE of no stream */
				return -EBADMSG;
			bytes = packed;
			packed += cnt;
		}
		plane_set(scratch, word, i, bytes);
	}
	return 0;
}

/* What the kernels ask of a word beside its planes. */
static void word_begin(struct stoup_fields_tile *tile, struct stoup_fields_word *word)
{
	word->live = 0;
	word->constants = 0;
	word->raw_mask = 0;
	word->plain = 1;
	for (uint32_t i = 0; i < STOUP_FIELDS_PLANE_CAP; i++) {
		word->at[i] = tile->splat[0];
		word->step[i] = 0;
	}
	for (uint32_t i = word->column_first; i < word->column_first + (uint32_t)word->column_cnt;
		i++) {
		const struct stoup_fields_column *column = &tile->columns[i];

		if (column->flags || column->mode)
			word->plain = 0;
		else
			word->raw_mask |= column->mask << column->shift;
	}
}

static int tile_parse(struct fields_in *in, struct fields_scratch *scratch, uint32_t cnt,
	uint32_t codec, void *codec_scratch)
{
	struct stoup_fields_tile *tile = &scratch->tile;
	const uint8_t *lens;
	size_t stream_cnt = 0;

	for (uint32_t i = 0; i < tile->column_cnt; i++) {
		if (op_parse(in, tile, i) || kinds_parse(in, scratch, i))
			return -EBADMSG;
	}
	for (uint32_t i = 0; i < tile->stride; i++)
		stream_cnt += scratch->kinds[i] == STOUP_FIELDS_PLANE_PACKED;
	lens = in_take(in, stream_cnt * 4);
	if (!lens || (stream_cnt && codec == STOUP_CODEC_NONE))
		return -EBADMSG;
	for (uint32_t i = 0; i < tile->word_cnt; i++)
		word_begin(tile, &tile->words[i]);
	return planes_place(in, scratch, lens, cnt, codec, codec_scratch);
}

/* The last records of a tile, fewer than a group: planes are padded with zeros and rows written
 * beside, so that a kernel knows whole groups only. The tile ends with it: its words are
 * changed. */
static void tail_rows(struct fields_scratch *scratch, uint32_t first, uint32_t cnt, uint8_t *rows,
	stoup_fields_kernel *kernel)
{
	struct stoup_fields_tile *tile = &scratch->tile;

	for (uint32_t w = 0; w < tile->word_cnt; w++) {
		struct stoup_fields_word *word = &tile->words[w];

		for (uint32_t i = 0; i < word->len; i++) {
			uint8_t *plane = scratch->tail_planes[word->off + i];

			if (!(word->live >> i & 1))
				continue;
			memset(plane, 0, STOUP_FIELDS_GROUP);
			memcpy(plane, word->at[i] + first, cnt);
			word->at[i] = plane;
			word->step[i] = 0;
		}
	}
	kernel(tile, first, STOUP_FIELDS_GROUP, scratch->tail_rows);
	memcpy(rows, scratch->tail_rows, (size_t)cnt * tile->stride);
}

static void tile_rows(
	struct fields_scratch *scratch, uint32_t cnt, uint8_t *rows, stoup_fields_kernel *kernel)
{
	uint32_t whole = cnt / STOUP_FIELDS_GROUP * STOUP_FIELDS_GROUP;

	if (whole)
		kernel(&scratch->tile, 0, whole, rows);
	if (cnt > whole)
		tail_rows(scratch, whole, cnt - whole, rows + (size_t)whole * scratch->tile.stride,
			kernel);
}

int stoup_fields_decode(uint32_t codec, const uint8_t *src, size_t src_len, uint8_t *dst,
	size_t raw_len, void *scratch_area, stoup_fields_kernel *kernel)
{
	struct fields_scratch *scratch = scratch_area;
	void *codec_scratch = (uint8_t *)scratch_area + stoup_fields_scratch_len();
	struct fields_in in = {src, src_len};
	uint32_t tile_cnt;
	size_t left;
	int rc = head_parse(&in, &scratch->tile, raw_len, &tile_cnt);

	if (rc)
		return rc;
	memset(scratch->tile.splat[0], 0, STOUP_FIELDS_GROUP);
	for (left = raw_len / scratch->tile.stride; left;) {
		uint32_t cnt = left < tile_cnt ? (uint32_t)left : tile_cnt;

		rc = tile_parse(&in, scratch, cnt, codec, codec_scratch);
		if (rc)
			return rc;
		tile_rows(scratch, cnt, dst, kernel);
		dst += (size_t)cnt * scratch->tile.stride;
		left -= cnt;
	}
	return in.left ? -EBADMSG : 0;
}
