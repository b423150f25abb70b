/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h - the field transform: records split into columns and byte planes, and back.
 *
 *      records   |len|rt|pub|inst|   ts_event    |   order_id    | ...   stride bytes each
 *      columns   every byte of a record belongs to one, of 1, 2, 4 or 8 bytes
 *      values    column - reference column, as offset from a base, step from the value before, or
 *                distance to the running maximum; divided by the tick; sign folded into bit 0
 *      planes    byte 0 of all values, byte 1 of all values, ...: const, raw, or packed
 *
 *      stored    [head][widths][tile][tile] ... [tile]
 *      tile      [column ops and plane kinds][lengths of streams][raw planes and streams]
 *
 * A tile is a run of records, by default a whole block of 512 KiB: what of its planes is packed (a
 * fifth to a half of the records' bytes) lies in the second-level cache while it is decoded.
 * docs/volume-format.md specifies each byte.
 *
 * Arithmetic is modulo 2^64 and cut to the width of the column, so that every value comes back
 * exactly, also undefined ones (INT64_MAX, UINT64_MAX) and what overflows.
 *
 * Decoding a tile: streams are decompressed into the scratch, then 32 records at a time the planes
 * are put together, undone and written row by row (a *kernel*: portable C, or AVX2). A record is
 * cut into *words*, runs of columns of at most 8 bytes that are loaded and stored as one.
 *
 * Invariant: after stoup_fields_tile_parse every pointer of every word may be read at each record
 * of the tile, so a kernel checks nothing.
 *
 * Concurrency: pure functions; a scratch belongs to one thread at a time.
 *
 * Private to codec, its tests and the benchmark: others use block.h.
 */
#ifndef STOUP_CODEC_FIELDS_H
#define STOUP_CODEC_FIELDS_H

#include <stddef.h>
#include <stdint.h>
#include "codec/block.h"

#define STOUP_FIELDS_STRIDE_CAP   2048u   /* bytes: longer records are left to the codec alone */
#define STOUP_FIELDS_COLUMN_CAP   1024u   /* columns of a record */
#define STOUP_FIELDS_TILE_LEN_CAP 557056u /* bytes of records in a tile: a block and its rounding */
#define STOUP_FIELDS_TILE_CNT_CAP 32768u  /* records in a tile: bounds the encoder's arrays */
#define STOUP_FIELDS_GROUP        32u     /* records that a kernel takes at once */
#define STOUP_FIELDS_PLANE_CAP    8u      /* planes of a column, bytes of a word */

/* The head of stored bytes: X(type, name, offset, length), as in volume_layout.h. */
#define STOUP_FIELDS_DISK_HEAD(X)                                                                  \
	X(uint16_t, stride, , 0, 2)                                                                \
	X(uint16_t, column_cnt, , 2, 2)                                                            \
	X(uint32_t, record_cnt, , 4, 4)                                                            \
	X(uint32_t, tile_cnt, , 8, 4)

#define STOUP_FIELDS_HEAD_LEN 12u

/* The op byte of a column: a mode and what follows it. */
#define STOUP_FIELDS_OFFSET    0u /* value = base + u */
#define STOUP_FIELDS_STEP      1u /* value = value before + s; the one before the first: base */
#define STOUP_FIELDS_PEAK      2u /* value = maximum so far + s; that before the first: base */
#define STOUP_FIELDS_MODE_LAST 2u
#define STOUP_FIELDS_MODE_MASK 0x03u
#define STOUP_FIELDS_REF       0x04u /* + the column u16, of the same width, before this one */
#define STOUP_FIELDS_TICK      0x08u /* times the tick that follows */
#define STOUP_FIELDS_BASE      0x10u /* the base follows; else 0 */
#define STOUP_FIELDS_NULL      0x20u /* u = 0 is the value that follows, others are u - 1 */
#define STOUP_FIELDS_OP_MASK   0x3fu

/* Two bits per plane. */
#define STOUP_FIELDS_PLANE_CONST  0u /* one byte, behind the kinds of its column */
#define STOUP_FIELDS_PLANE_RAW    1u
#define STOUP_FIELDS_PLANE_PACKED 2u /* begins a stream of the block's codec */
#define STOUP_FIELDS_PLANE_MORE   3u /* goes on in the stream of the packed plane before */

/* ---- decoding -------------------------------------------------------------------------------- */

struct stoup_fields_column {
	uint64_t tick, base, null; /* base: while decoding the value before, or the maximum */
	uint64_t mask;             /* the low bits of a value that the column keeps */
	uint16_t off, ref_off;     /* in the record */
	uint8_t width, shift;      /* bytes; bits from the word's start */
	uint8_t mode, flags;
};

struct stoup_fields_word {
	/* Plane i at record r of the tile: at[i][r & step[i]]; a const plane has 32 equal bytes and
	 * step 0. Beyond len it is a plane of zeros. */
	const uint8_t *at[STOUP_FIELDS_PLANE_CAP];
	uint64_t step[STOUP_FIELDS_PLANE_CAP];
	uint64_t raw_mask;  /* bits of the columns that are taken as they are */
	uint64_t constants; /* bytes of the const planes */
	uint16_t off;       /* in the record */
	uint16_t column_first;
	uint8_t column_cnt, len;
	uint8_t live;  /* bit i: plane i is not const */
	uint8_t plain; /* all columns are taken as they are */
};

/* What decodes the records of a tile: in the scratch of the decoder. */
struct stoup_fields_tile {
	uint32_t stride, column_cnt, word_cnt;
	struct stoup_fields_column columns[STOUP_FIELDS_COLUMN_CAP];
	struct stoup_fields_word words[STOUP_FIELDS_COLUMN_CAP];
	uint8_t splat[256][STOUP_FIELDS_GROUP]; /* what const planes point to */
};

/* Undo the planes of `cnt` records from number `first` on into `rows`; both are multiples of 32.
 * All kernels give the same bytes. */
typedef void stoup_fields_kernel(
	struct stoup_fields_tile *tile, uint32_t first, uint32_t cnt, uint8_t *rows);
stoup_fields_kernel stoup_fields_rows, stoup_fields_rows_avx2;

/* The fastest kernel of this machine. stoup_fields_rows_avx2 may be called only where it is this
 * one. */
stoup_fields_kernel *stoup_fields_kernel_best(void);

/* Bytes of scratch beside those of the codec, a multiple of 64. */
size_t stoup_fields_scratch_len(void);

/* As stoup_block_decode of this transform, with a chosen kernel. */
int stoup_fields_decode(uint32_t codec, const uint8_t *src, size_t src_len, uint8_t *dst,
	size_t raw_len, void *scratch, stoup_fields_kernel *kernel);

/* ---- encoding -------------------------------------------------------------------------------- */

/* Exchange bits of two words of a matrix of bytes: one step of its transposition. */
static inline void stoup_fields_swap(uint64_t *a, uint64_t *b, unsigned shift, uint64_t mask)
{
	uint64_t diff = (*a >> shift ^ *b) & mask;

	*b ^= diff;
	*a ^= diff << shift;
}

/* Eight values to eight bytes of each of eight planes. */
static inline void stoup_fields_transpose(uint64_t m[8])
{
	for (int i = 0; i < 4; i++)
		stoup_fields_swap(&m[i], &m[i + 4], 32, 0x00000000ffffffffULL);
	for (int i = 0; i < 8; i += 1 + 2 * (i % 4 == 1))
		stoup_fields_swap(&m[i], &m[i + 2], 16, 0x0000ffff0000ffffULL);
	for (int i = 0; i < 8; i += 2)
		stoup_fields_swap(&m[i], &m[i + 1], 8, 0x00ff00ff00ff00ffULL);
}

/* One column of a record as an encoder sees it. */
struct stoup_fields_plan {
	uint64_t null_bits;
	uint16_t off;
	uint8_t width;
	uint8_t is_int; /* else its bytes are taken as they are */
	uint8_t has_null;
	uint8_t family; /* columns of one family may be taken from each other; 0: of none */
	uint8_t zero[2];
};

/* Cut a record of this layout into columns. Returns how many, or 0: not for this transform. */
uint32_t stoup_fields_plan(const struct stoup_block_layout *layout,
	struct stoup_fields_plan plan[STOUP_FIELDS_COLUMN_CAP]);

/* How a column of a tile is stored, as the op byte and what follows it say. */
struct stoup_fields_op {
	uint64_t tick, base, null;
	uint16_t ref; /* column */
	uint8_t mode, flags;
};

/* One column's values of a tile, each zero-extended. */
struct stoup_fields_values {
	const uint64_t *own, *ref; /* ref: NULL where the op has none */
	uint32_t cnt;
	uint8_t width;
};

/* Complete an op of which mode, ref, null and the flags REF and NULL are set: base, tick and their
 * flags as these values want them. 0, or -ERANGE: the op cannot store them. */
int stoup_fields_op_fit(struct stoup_fields_op *op, const struct stoup_fields_values *values);

/* The values as the op stores them. Returns the bits in which not all of them agree. */
uint64_t stoup_fields_residuals(
	const struct stoup_fields_op *op, const struct stoup_fields_values *values, uint64_t *ret);

#define STOUP_FIELDS_SAMPLE_CAP 1024u
#define STOUP_FIELDS_COST_SHIFT 12 /* costs are in units of 2^-12 bit */

/* Bits that planes of these residuals take, by the order-0 entropy of each plane. `costly`: under a
 * codec without entropy coding (lz4), for which it is an estimate. */
uint64_t stoup_fields_cost(const uint64_t *residuals, uint32_t cnt, uint64_t varying, int costly);

/* The same for one plane of any length. */
uint64_t stoup_fields_plane_cost(const uint8_t *plane, uint32_t cnt);

/* Choose the op of column `idx` by a sample of `cnt` rows (at most the cap above) that lie
 * `row_len` bytes apart; fields_choose.c has the rule. `nulls`: some value of the tile is the
 * column's null. The op is complete for the sample. */
void stoup_fields_choose(const struct stoup_fields_plan *plan, uint32_t idx, const uint8_t *rows,
	size_t row_len, uint32_t cnt, int nulls, int costly, struct stoup_fields_op *ret);

/* Column values of rows that lie `row_len` bytes apart. */
void stoup_fields_column_get(const struct stoup_fields_plan *column, const uint8_t *rows,
	size_t row_len, uint32_t cnt, uint64_t *ret);

#endif
