/* SPDX-License-Identifier: Apache-2.0 */
/* fields_encode.c - records to stored bytes of the field transform.
 *
 *      tile --per column--> op (fields_choose.c) --> residuals --> planes
 *           --per plane---> const | raw | packed                 --> ops, kinds, lengths, data
 *
 * The rule for planes. A plane of one value is const. Under lz4 each other plane is packed alone
 * and kept so if that saves more than 1/6 of it. Under zstd a plane is packed with matches if that
 * saves more than 1/16 of it, and 1/20 of it more than the entropy of its bytes promises; else by
 * its bytes alone if that promises to save 1/16; planes of one way that follow each other share a
 * frame. All others are raw: raw planes decode several times faster, so little gain is no gain.
 *
 * Tiles of a block are equal but for the last one, a multiple of 32 records, and not above the tile
 * length: of records above 1 KiB the most is a multiple of 32, so that rounding does not lead beyond
 * it. An encoder made for speed (lz4 without hc) chooses the ops once per block, from fewer
 * records.
 *
 * Concurrency: none; an encoder belongs to one thread.
 */
#include "codec/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "codec/block_private.h"

#define FIELDS_TILE_LEN        524288u
#define FIELDS_SAMPLE_LEN      131072u /* bytes of sampled records */
#define FIELDS_SAMPLE_CNT_FAST 256u
#define FIELDS_SAMPLE_RUNS     4u
#define FIELDS_LZ4_GAIN        6u
#define FIELDS_ZSTD_GAIN       16u
#define FIELDS_MATCH_GAIN      20u

struct stoup_fields_encoder {
	struct stoup_fields_plan plan[STOUP_FIELDS_COLUMN_CAP];
	struct stoup_fields_op ops[STOUP_FIELDS_COLUMN_CAP];
	uint32_t column_cnt, stride;
	int quick;  /* choose once per block */
	int chosen; /* ops of this block are known */
	uint8_t kinds[STOUP_FIELDS_STRIDE_CAP];
	const uint8_t *packed[STOUP_FIELDS_STRIDE_CAP]; /* planes of the frame */
	uint32_t packed_idx[STOUP_FIELDS_STRIDE_CAP];
	uint32_t lens[STOUP_FIELDS_STRIDE_CAP]; /* of streams */
	uint32_t stream_cnt, sample_cnt;
	size_t data_len;
	uint64_t own[STOUP_FIELDS_TILE_CNT_CAP], ref[STOUP_FIELDS_TILE_CNT_CAP];
	uint64_t residuals[STOUP_FIELDS_TILE_CNT_CAP + 7];
	uint8_t sample[FIELDS_SAMPLE_LEN];
	uint8_t planes[STOUP_FIELDS_TILE_LEN_CAP + STOUP_FIELDS_STRIDE_CAP * 8];
	uint8_t data[STOUP_FIELDS_TILE_LEN_CAP];
};

int stoup_fields_encoder_create(struct stoup_fields_encoder **ret)
{
	struct stoup_fields_encoder *encoder = calloc(1, sizeof(*encoder));

	if (!encoder)
		return -ENOMEM;
	*ret = encoder;
	return 0;
}

void stoup_fields_encoder_destroy(struct stoup_fields_encoder *encoder)
{
	free(encoder);
}

/* ---- writing --------------------------------------------------------------------------------- */

struct fields_out {
	uint8_t *at;
	size_t left;
	int full;
};

static void out_bytes(struct fields_out *out, const void *bytes, size_t len)
{
	if (len > out->left) {
		out->full = 1;
		return;
	}
	memcpy(out->at, bytes, len);
	out->at += len;
	out->left -= len;
}

/* The low `len` bytes of a number: little-endian machines only, as volume_layout.h demands. */
static void out_number(struct fields_out *out, uint64_t number, size_t len)
{
	out_bytes(out, &number, len);
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* Runs of records from all over the tile, one behind the other. */
static void sample_take(struct stoup_fields_encoder *encoder, const uint8_t *rows, uint32_t cnt)
{
	uint32_t cap = FIELDS_SAMPLE_LEN / encoder->stride, run;
	size_t stride = encoder->stride;
	uint32_t want = encoder->quick ? FIELDS_SAMPLE_CNT_FAST : STOUP_FIELDS_SAMPLE_CAP;

	want = want < cap ? want : cap;
	if (cnt <= want) {
		memcpy(encoder->sample, rows, cnt * stride);
		encoder->sample_cnt = cnt;
		return;
	}
	run = want / FIELDS_SAMPLE_RUNS;
	for (uint32_t i = 0; i < FIELDS_SAMPLE_RUNS; i++)
		memcpy(encoder->sample + i * run * stride,
			rows + (size_t)(cnt - run) * i / (FIELDS_SAMPLE_RUNS - 1) * stride,
			run * stride);
	encoder->sample_cnt = run * FIELDS_SAMPLE_RUNS;
}

static int holds_null(const struct stoup_fields_plan *column, const uint64_t *values, uint32_t cnt)
{
	if (!column->has_null)
		return 0;
	for (uint32_t i = 0; i < cnt; i++) {
		if (values[i] == column->null_bits)
			return 1;
	}
	return 0;
}

/* Op and residuals of a column. Returns the bits in which the residuals differ. */
static uint64_t column_encode(struct stoup_fields_encoder *encoder, uint32_t idx,
	const uint8_t *rows, uint32_t cnt, int costly)
{
	const struct stoup_fields_plan *column = &encoder->plan[idx];
	struct stoup_fields_op *op = &encoder->ops[idx];
	struct stoup_fields_values values = {encoder->own, NULL, cnt, column->width};
	int nulls;

	stoup_fields_column_get(column, rows, encoder->stride, cnt, encoder->own);
	if (!column->is_int || column->width == 1) {
		*op = (struct stoup_fields_op){.tick = 1};
		return stoup_fields_residuals(op, &values, encoder->residuals);
	}
	nulls = holds_null(column, encoder->own, cnt);
	if (!encoder->chosen)
		stoup_fields_choose(encoder->plan, idx, encoder->sample, encoder->stride,
			encoder->sample_cnt, nulls, costly, op);
	op->flags = (uint8_t)((op->flags & STOUP_FIELDS_REF) | (nulls ? STOUP_FIELDS_NULL : 0));
	op->null = nulls ? column->null_bits : 0;
	if (op->flags & STOUP_FIELDS_REF) {
		stoup_fields_column_get(
			&encoder->plan[op->ref], rows, encoder->stride, cnt, encoder->ref);
		values.ref = encoder->ref;
	}
	if (stoup_fields_op_fit(op, &values)) {
		*op = (struct stoup_fields_op){.mode = STOUP_FIELDS_OFFSET};
		values.ref = NULL;
		stoup_fields_op_fit(op, &values); /* without a null it fits */
	}
	return stoup_fields_residuals(op, &values, encoder->residuals);
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* Bytes from plane to plane: whole eights, so that they may be written without a look at the
 * end. */
static size_t plane_pitch(uint32_t cnt)
{
	return ((size_t)cnt + 7) & ~(size_t)7;
}

static uint8_t *plane_at(struct stoup_fields_encoder *encoder, uint32_t idx, uint32_t cnt)
{
	return encoder->planes + idx * plane_pitch(cnt);
}

/* The planes of a column that vary, and one value of those that do not. */
static void split(struct stoup_fields_encoder *encoder, const struct stoup_fields_plan *column,
	uint32_t cnt, uint64_t varying)
{
	uint64_t m[8];

	memset(encoder->residuals + cnt, 0, 7 * sizeof(uint64_t));
	for (uint32_t p = 0; p < column->width; p++) {
		int is_const = !(varying >> (8 * p) & 0xff);

		encoder->kinds[column->off + p] =
			(uint8_t)(is_const ? STOUP_FIELDS_PLANE_CONST : STOUP_FIELDS_PLANE_RAW);
		plane_at(encoder, column->off + p, cnt)[0] =
			(uint8_t)(encoder->residuals[0] >> (8 * p));
	}
	for (uint32_t i = 0; varying && i < cnt; i += 8) {
		memcpy(m, encoder->residuals + i, sizeof(m));
		stoup_fields_transpose(m);
		for (uint32_t p = 0; p < column->width; p++) {
			if (varying >> (8 * p) & 0xff)
				memcpy(plane_at(encoder, column->off + p, cnt) + i, &m[p], 8);
		}
	}
}

/* Each plane by itself, in its place. Negative errno or 0. */
static int pack_single(
	struct stoup_fields_encoder *encoder, struct stoup_packer *packer, uint32_t cnt)
{
	for (uint32_t i = 0; i < encoder->stride; i++) {
		uint8_t *to = encoder->data + encoder->data_len;
		const uint8_t *plane = plane_at(encoder, i, cnt);
		int64_t got;

		if (encoder->kinds[i] == STOUP_FIELDS_PLANE_CONST)
			continue;
		got = stoup_packer_pack(packer, plane, cnt, to, cnt - 1 - cnt / FIELDS_LZ4_GAIN);
		if (got < 0)
			return (int)got;
		if (got) {
			encoder->kinds[i] = STOUP_FIELDS_PLANE_PACKED;
			encoder->lens[encoder->stream_cnt++] = (uint32_t)got;
			encoder->data_len += (size_t)got;
		}
	}
	return 0;
}

/* Which way a plane of a zstd block goes. */
enum fields_way {
	WAY_NONE, /* const or raw */
	WAY_MATCHES,
	WAY_LITERALS
};

/* By trying with matches, and by the entropy without. Negative errno or a way. */
static int way_of(struct stoup_fields_encoder *encoder, struct stoup_packer *packer, uint32_t idx,
	uint32_t cnt)
{
	const uint8_t *plane = plane_at(encoder, idx, cnt);
	int64_t literals, matches, limit = cnt - 1 - cnt / FIELDS_ZSTD_GAIN;

	if (encoder->kinds[idx] == STOUP_FIELDS_PLANE_CONST)
		return WAY_NONE;
	literals = (int64_t)(stoup_fields_plane_cost(plane, cnt) >> STOUP_FIELDS_COST_SHIFT) / 8;
	if (literals < cnt / 8) /* no code is shorter than a bit */
		literals = cnt / 8;
	matches = stoup_packer_pack(packer, plane, cnt, encoder->data + encoder->data_len, cnt - 1);
	if (matches < 0)
		return (int)matches;
	if (matches && matches <= limit && matches + cnt / FIELDS_MATCH_GAIN < literals)
		return WAY_MATCHES;
	return literals <= limit ? WAY_LITERALS : WAY_NONE;
}

/* Planes packed[0..cnt) of the tile in one frame, which stands at the first of them. */
static int frame_pack(struct stoup_fields_encoder *encoder, struct stoup_packer *packer, int way,
	uint32_t plane_cnt, uint32_t cnt)
{
	uint8_t *frame = encoder->data + encoder->data_len;
	int64_t got;

	if (!plane_cnt)
		return 0;
	got = stoup_packer_pack_pieces(packer, way == WAY_LITERALS, encoder->packed, plane_cnt, cnt,
		frame, (size_t)plane_cnt * cnt - 1);
	if (got <= 0) /* not shorter: they stay raw */
		return (int)got;
	for (uint32_t i = 0; i < plane_cnt; i++)
		encoder->kinds[encoder->packed_idx[i]] =
			(uint8_t)(i ? STOUP_FIELDS_PLANE_MORE : STOUP_FIELDS_PLANE_PACKED);
	encoder->lens[encoder->stream_cnt++] = (uint32_t)got;
	encoder->data_len += (size_t)got;
	return 0;
}

/* Planes of one way that follow each other share a frame; raw and const ones between them do not
 * part them. */
static int pack_frames(
	struct stoup_fields_encoder *encoder, struct stoup_packer *packer, uint32_t cnt)
{
	int frame_way = WAY_NONE, rc = 0;
	uint32_t found = 0;

	for (uint32_t i = 0; i < encoder->stride && rc == 0; i++) {
		int way = way_of(encoder, packer, i, cnt);

		if (way < 0)
			return way;
		if (way == WAY_NONE)
			continue;
		if (way != frame_way) {
			rc = frame_pack(encoder, packer, frame_way, found, cnt);
			frame_way = way;
			found = 0;
		}
		encoder->packed_idx[found] = i;
		encoder->packed[found++] = plane_at(encoder, i, cnt);
	}
	return rc ? rc : frame_pack(encoder, packer, frame_way, found, cnt);
}

static int planes_pack(
	struct stoup_fields_encoder *encoder, struct stoup_packer *packer, uint32_t cnt, int costly)
{
	encoder->data_len = 0;
	encoder->stream_cnt = 0;
	return costly ? pack_single(encoder, packer, cnt) : pack_frames(encoder, packer, cnt);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static void column_write(
	struct stoup_fields_encoder *encoder, uint32_t idx, uint32_t cnt, struct fields_out *out)
{
	const struct stoup_fields_plan *column = &encoder->plan[idx];
	const struct stoup_fields_op *op = &encoder->ops[idx];
	uint64_t bits = 0;

	out_number(out, (uint64_t)op->mode | op->flags, 1);
	if (op->flags & STOUP_FIELDS_REF)
		out_number(out, op->ref, 2);
	if (op->flags & STOUP_FIELDS_TICK)
		out_number(out, op->tick, column->width);
	if (op->flags & STOUP_FIELDS_BASE)
		out_number(out, op->base, column->width);
	if (op->flags & STOUP_FIELDS_NULL)
		out_number(out, op->null, column->width);
	for (uint32_t p = 0; p < column->width; p++)
		bits |= (uint64_t)encoder->kinds[column->off + p] << (2 * p);
	out_number(out, bits, (column->width + 3u) / 4);
	for (uint32_t p = 0; p < column->width; p++) {
		if (encoder->kinds[column->off + p] == STOUP_FIELDS_PLANE_CONST)
			out_bytes(out, plane_at(encoder, column->off + p, cnt), 1);
	}
}

/* Streams and raw planes stand in the order of their (first) planes. */
static void data_write(struct stoup_fields_encoder *encoder, uint32_t cnt, struct fields_out *out)
{
	const uint8_t *stream = encoder->data;
	uint32_t idx = 0;

	for (uint32_t i = 0; i < encoder->stride; i++) {
		if (encoder->kinds[i] == STOUP_FIELDS_PLANE_RAW) {
			out_bytes(out, plane_at(encoder, i, cnt), cnt);
		} else if (encoder->kinds[i] == STOUP_FIELDS_PLANE_PACKED) {
			out_bytes(out, stream, encoder->lens[idx]);
			stream += encoder->lens[idx++];
		}
	}
}

static int tile_encode(struct stoup_fields_encoder *encoder, struct stoup_packer *packer,
	const uint8_t *rows, uint32_t cnt, int costly, struct fields_out *out)
{
	int rc;

	if (!encoder->chosen)
		sample_take(encoder, rows, cnt);
	for (uint32_t i = 0; i < encoder->column_cnt; i++)
		split(encoder, &encoder->plan[i], cnt,
			column_encode(encoder, i, rows, cnt, costly));
	encoder->chosen = encoder->quick;
	rc = planes_pack(encoder, packer, cnt, costly);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < encoder->column_cnt; i++)
		column_write(encoder, i, cnt, out);
	for (uint32_t i = 0; i < encoder->stream_cnt; i++)
		out_number(out, encoder->lens[i], 4);
	data_write(encoder, cnt, out);
	return 0;
}

/* Records of a tile: equal ones, whole groups, of FIELDS_TILE_LEN bytes at most before rounding, and of the cap of
 * tiles behind it. */
static uint32_t tile_cnt(uint32_t stride, uint32_t record_cnt)
{
	uint32_t cap = FIELDS_TILE_LEN / stride, tiles, cnt;
	uint32_t whole =
		STOUP_FIELDS_TILE_LEN_CAP / stride / STOUP_FIELDS_GROUP * STOUP_FIELDS_GROUP;

	cap = cap < whole ? cap : whole;
	cap = cap < STOUP_FIELDS_TILE_CNT_CAP ? cap : STOUP_FIELDS_TILE_CNT_CAP;
	tiles = (record_cnt + cap - 1) / cap;
	cnt = (record_cnt + tiles - 1) / tiles;
	return (cnt + STOUP_FIELDS_GROUP - 1) / STOUP_FIELDS_GROUP * STOUP_FIELDS_GROUP;
}

int64_t stoup_fields_encode(struct stoup_fields_encoder *encoder, struct stoup_packer *packer,
	const struct stoup_encoding *encoding, const struct stoup_block_layout *layout,
	const uint8_t *src, size_t raw_len, uint8_t *dst, size_t dst_cap)
{
	struct fields_out out = {dst, dst_cap, 0};
	uint32_t left, cnt;
	int costly = encoding->codec == STOUP_CODEC_LZ4;

	encoder->stride = layout->stride;
	encoder->column_cnt = stoup_fields_plan(layout, encoder->plan);
	encoder->quick = costly && !encoding->hc;
	encoder->chosen = 0;
	if (!encoder->column_cnt || raw_len % layout->stride)
		return 0;
	left = (uint32_t)(raw_len / layout->stride);
	cnt = tile_cnt(layout->stride, left);
	out_number(&out, layout->stride, 2);
	out_number(&out, encoder->column_cnt, 2);
	out_number(&out, left, 4);
	out_number(&out, cnt, 4);
	for (uint32_t i = 0; i < encoder->column_cnt; i++)
		out_number(&out, encoder->plan[i].width, 1);
	while (left && !out.full) {
		uint32_t now = left < cnt ? left : cnt;
		int rc = tile_encode(encoder, packer, src, now, costly, &out);

		if (rc)
			return rc;
		src += (size_t)now * layout->stride;
		left -= now;
	}
	return out.full ? 0 : (int64_t)(dst_cap - out.left);
}
