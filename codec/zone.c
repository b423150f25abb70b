/* SPDX-License-Identifier: Apache-2.0 */
/* zone.c - zone maps: rows out of records, and rows against the rules.
 *
 *      records --256 at a time, a field each--> values[256] --vectors--> least, greatest, is one undefined?
 *
 * A tile of records stays in the cache while its fields are gone through. A float is looked at as an integer that has
 * its order (the bits below the sign turned round where it is negative), so that all types are alike.
 *
 * The loops are written once and compiled twice on x86, where vectors of 64-bit integers have no comparison before AVX2.
 *
 * Concurrency: pure functions.
 */
#include "codec/zone.h"

#include <string.h>
#include "codec/volume_private.h"

#define TILE 256u

#define FIELD_NULL   0x01u
#define FIELD_HIDDEN 0x08u

enum type {
	TYPE_U8 = 1,
	TYPE_I8,
	TYPE_U16,
	TYPE_I16,
	TYPE_U32,
	TYPE_I32,
	TYPE_U64,
	TYPE_I64,
	TYPE_F32,
	TYPE_F64,
	TYPE_CHAR,
	TYPE_BYTES,
};

/* What was found of one field: numbers as u64, or i64 and the keys of floats as their bits. */
struct found {
	uint64_t least, greatest;
	int has_null, has_values;
};

/* ---- places ---------------------------------------------------------------------------------- */

static int is_zoned(const struct stoup_vol_field *field)
{
	return field->cnt == 1 && field->type >= TYPE_U8 && field->type <= TYPE_CHAR &&
	       !(field->flags & FIELD_HIDDEN);
}

static uint32_t zoned_cnt(const struct stoup_vol_field *fields, uint32_t field_cnt)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < field_cnt; i++)
		cnt += (uint32_t)is_zoned(&fields[i]);
	return cnt;
}

static uint32_t values_off(uint32_t cnt)
{
	return STOUP_ZONE_HEAD_LEN + (uint32_t)stoup_vol_align_up(cnt, 8);
}

uint32_t stoup_zone_len(const struct stoup_vol_field *fields, uint32_t field_cnt)
{
	uint32_t cnt = zoned_cnt(fields, field_cnt), len = values_off(cnt);

	if (cnt == 0)
		return 0;
	for (uint32_t i = 0; i < field_cnt; i++)
		if (is_zoned(&fields[i]))
			len += 2 * stoup_vol_type_len(fields[i].type);
	return (uint32_t)stoup_vol_align_up(len, 8);
}

/* ---- order ----------------------------------------------------------------------------------- */

static int is_unsigned(uint32_t type)
{
	return type == TYPE_U8 || type == TYPE_U16 || type == TYPE_U32 || type == TYPE_U64 ||
	       type == TYPE_CHAR;
}

/* The bits of a value of `type` as a number that is compared, signed or not; and back. */
static uint64_t number_of(uint32_t type, uint64_t bits)
{
	switch (type) {
	case TYPE_I8:
		return (uint64_t)(int64_t)(int8_t)bits;
	case TYPE_I16:
		return (uint64_t)(int64_t)(int16_t)bits;
	case TYPE_I32:
		return (uint64_t)(int64_t)(int32_t)bits;
	case TYPE_F32:
		return (uint64_t)(int64_t)(int32_t)(bits >> 31 ? bits ^ 0x7fffffffu : bits);
	case TYPE_F64:
		return bits >> 63 ? bits ^ (UINT64_MAX >> 1) : bits;
	default:
		return bits;
	}
}

static uint64_t bits_of(uint32_t type, uint64_t number)
{
	if (type == TYPE_F32)
		return number >> 63 ? (uint32_t)number ^ 0x7fffffffu : (uint32_t)number;
	return type == TYPE_F64 ? number_of(type, number) : number;
}

static int less(uint32_t type, uint64_t a, uint64_t b)
{
	return is_unsigned(type) ? a < b : (int64_t)a < (int64_t)b;
}

static int is_nan(uint32_t type, uint64_t bits)
{
	return (type == TYPE_F32 && (bits & 0x7fffffffu) > 0x7f800000u) ||
	       (type == TYPE_F64 && (bits & (UINT64_MAX >> 1)) > UINT64_C(0x7ff0000000000000));
}

/* ---- records --------------------------------------------------------------------------------- */

#define INLINE static inline __attribute__((always_inline))

/* The first value again behind the last one changes nothing, and gives the loops one length. */
#define GATHER(type)                                                                               \
	type values[TILE];                                                                         \
                                                                                                   \
	for (uint32_t i = 0; i < cnt; i++)                                                         \
		memcpy(&values[i], at + (size_t)i * stride, sizeof(type));                         \
	for (uint32_t i = cnt; i < TILE; i++)                                                      \
	values[i] = values[0]

#define MERGE(type)                                                                                \
	if (least <= greatest) {                                                                   \
		type before_least = (type)found->least, before_greatest = (type)found->greatest;   \
                                                                                                   \
		if (!found->has_values || least < before_least)                                    \
			found->least = (uint64_t)least;                                            \
		if (!found->has_values || greatest > before_greatest)                              \
			found->greatest = (uint64_t)greatest;                                      \
		found->has_values = 1;                                                             \
	}                                                                                          \
	found->has_null |= nulls != 0

#define TILE_INT(name, type, wide, low, high)                                                      \
	INLINE void name(const uint8_t *at, uint32_t stride, uint32_t cnt,                         \
		const struct stoup_vol_field *field, struct found *found)                          \
	{                                                                                          \
		const type undefined = (type)field->null_bits;                                     \
		const type any = (field->flags & FIELD_NULL) ? (type)-1 : 0;                       \
		type least = (high), greatest = (low), nulls = 0;                                  \
		GATHER(type);                                                                      \
                                                                                                   \
		for (uint32_t i = 0; i < TILE; i++) {                                              \
			type is_null = (type)((type) - (values[i] == undefined) & any);            \
			type small = (type)((values[i] & (type)~is_null) | (is_null & (high)));    \
			type great = (type)((values[i] & (type)~is_null) | (is_null & (low)));     \
                                                                                                   \
			least = small < least ? small : least;                                     \
			greatest = great > greatest ? great : greatest;                            \
			nulls |= is_null;                                                          \
		}                                                                                  \
		MERGE(wide);                                                                       \
	}

TILE_INT(tile_u8, uint8_t, uint64_t, 0, UINT8_MAX)
TILE_INT(tile_i8, int8_t, int64_t, INT8_MIN, INT8_MAX)
TILE_INT(tile_u16, uint16_t, uint64_t, 0, UINT16_MAX)
TILE_INT(tile_i16, int16_t, int64_t, INT16_MIN, INT16_MAX)
TILE_INT(tile_u32, uint32_t, uint64_t, 0, UINT32_MAX)
TILE_INT(tile_i32, int32_t, int64_t, INT32_MIN, INT32_MAX)
TILE_INT(tile_u64, uint64_t, uint64_t, 0, UINT64_MAX)
TILE_INT(tile_i64, int64_t, int64_t, INT64_MIN, INT64_MAX)

#define TILE_FLOAT(name, type, sign_bit, magnitude, infinity, low, high)                           \
	INLINE void name(const uint8_t *at, uint32_t stride, uint32_t cnt,                         \
		const struct stoup_vol_field *field, struct found *found)                          \
	{                                                                                          \
		const type undefined = (type)field->null_bits;                                     \
		const type any = (field->flags & FIELD_NULL) ? -1 : 0;                             \
		type least = (high), greatest = (low), nulls = 0;                                  \
		GATHER(type);                                                                      \
                                                                                                   \
		for (uint32_t i = 0; i < TILE; i++) {                                              \
			type bits = values[i];                                                     \
			type key = bits ^ ((bits >> (sign_bit)) & (magnitude));                    \
			type is_null = (-(type)(bits == undefined) & any) |                        \
			               -(type)((bits & (magnitude)) > (infinity));                 \
			type small = (key & ~is_null) | (is_null & (high));                        \
			type great = (key & ~is_null) | (is_null & (low));                         \
                                                                                                   \
			least = small < least ? small : least;                                     \
			greatest = great > greatest ? great : greatest;                            \
			nulls |= is_null;                                                          \
		}                                                                                  \
		MERGE(int64_t);                                                                    \
	}

/* Right shifts of negative numbers bring the sign in, as every compiler for these machines has it. */
TILE_FLOAT(tile_f32, int32_t, 31, INT32_MAX, 0x7f800000, INT32_MIN, INT32_MAX)
TILE_FLOAT(tile_f64, int64_t, 63, INT64_MAX, INT64_C(0x7ff0000000000000), INT64_MIN, INT64_MAX)

INLINE void tile_field(const uint8_t *records, uint32_t stride, uint32_t cnt,
	const struct stoup_vol_field *field, struct found *found)
{
	const uint8_t *at = records + field->off;

	switch (field->type) {
	case TYPE_I8:
		tile_i8(at, stride, cnt, field, found);
		return;
	case TYPE_U16:
		tile_u16(at, stride, cnt, field, found);
		return;
	case TYPE_I16:
		tile_i16(at, stride, cnt, field, found);
		return;
	case TYPE_U32:
		tile_u32(at, stride, cnt, field, found);
		return;
	case TYPE_I32:
		tile_i32(at, stride, cnt, field, found);
		return;
	case TYPE_U64:
		tile_u64(at, stride, cnt, field, found);
		return;
	case TYPE_I64:
		tile_i64(at, stride, cnt, field, found);
		return;
	case TYPE_F32:
		tile_f32(at, stride, cnt, field, found);
		return;
	case TYPE_F64:
		tile_f64(at, stride, cnt, field, found);
		return;
	default:
		tile_u8(at, stride, cnt, field, found);
	}
}

INLINE void all_tiles(const struct stoup_vol_field *fields, uint32_t field_cnt, uint32_t stride,
	const uint8_t *records, uint32_t record_cnt, struct found *found)
{
	for (uint32_t first = 0; first < record_cnt; first += TILE) {
		uint32_t cnt = record_cnt - first < TILE ? record_cnt - first : TILE;
		const uint8_t *tile = records + (size_t)first * stride;
		struct found *to = found;

		for (uint32_t i = 0; i < field_cnt; i++)
			if (is_zoned(&fields[i]))
				tile_field(tile, stride, cnt, &fields[i], to++);
	}
}

static void scan(const struct stoup_vol_field *fields, uint32_t field_cnt, uint32_t stride,
	const uint8_t *records, uint32_t record_cnt, struct found *found)
{
	all_tiles(fields, field_cnt, stride, records, record_cnt, found);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void scan_avx2(const struct stoup_vol_field *fields,
	uint32_t field_cnt, uint32_t stride, const uint8_t *records, uint32_t record_cnt,
	struct found *found)
{
	all_tiles(fields, field_cnt, stride, records, record_cnt, found);
}

static int has_avx2(void)
{
	return __builtin_cpu_supports("avx2") != 0;
}
#else
#define scan_avx2 scan

static int has_avx2(void)
{
	return 0;
}
#endif

void stoup_zone_make(const struct stoup_vol_field *fields, uint32_t field_cnt, uint32_t stride,
	const void *records, uint32_t record_cnt, uint8_t *row)
{
	struct found all[STOUP_VOL_FIELD_CAP] = {0}, *found = all;
	uint8_t *flags = row + STOUP_ZONE_HEAD_LEN;
	uint8_t *values = row + values_off(zoned_cnt(fields, field_cnt));

	memset(row, 0, stoup_zone_len(fields, field_cnt));
	(has_avx2() ? scan_avx2 : scan)(fields, field_cnt, stride, records, record_cnt, all);
	for (uint32_t i = 0; i < field_cnt; i++) {
		uint32_t len = stoup_vol_type_len(fields[i].type);
		uint64_t least, greatest;

		if (!is_zoned(&fields[i]))
			continue;
		*flags++ = (uint8_t)((found->has_null ? STOUP_ZONE_HAS_NULL : 0) |
				     (found->has_values ? STOUP_ZONE_HAS_VALUES : 0));
		least = bits_of(fields[i].type, found->least);
		greatest = bits_of(fields[i].type, found->greatest);
		if (found->has_values) {
			memcpy(values, &least, len);
			memcpy(values + len, &greatest, len);
		}
		values += 2 * len;
		found++;
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Walks the fields of a row. */
struct walk {
	const uint8_t *flags, *values;
};

static struct walk walk_begin(
	const struct stoup_vol_field *fields, uint32_t field_cnt, const uint8_t *row)
{
	return (struct walk){
		row + STOUP_ZONE_HEAD_LEN, row + values_off(zoned_cnt(fields, field_cnt))};
}

/* The bits of least and greatest of the next field; its flags. */
static uint8_t walk_next(struct walk *walk, uint32_t type, uint64_t bits[2])
{
	uint32_t len = stoup_vol_type_len(type);

	bits[0] = bits[1] = 0;
	memcpy(&bits[0], walk->values, len);
	memcpy(&bits[1], walk->values + len, len);
	walk->values += 2 * len;
	return *walk->flags++;
}

const char *stoup_zone_check(const struct stoup_vol_field *fields, uint32_t field_cnt,
	const uint8_t *row, uint32_t *ret_field)
{
	struct walk walk = walk_begin(fields, field_cnt, row);
	const uint8_t *values = walk.values, *end = row + stoup_zone_len(fields, field_cnt);
	uint32_t zero;

	for (uint32_t i = 0; i < field_cnt; i++) {
		uint32_t type = fields[i].type;
		uint64_t bits[2];
		uint8_t flags;

		if (!is_zoned(&fields[i]))
			continue;
		*ret_field = i;
		flags = walk_next(&walk, type, bits);
		if (flags == 0 || flags > (STOUP_ZONE_HAS_NULL | STOUP_ZONE_HAS_VALUES))
			return "its flags say neither values nor undefined ones, or more than that";
		if (!(flags & STOUP_ZONE_HAS_VALUES) && (bits[0] || bits[1]))
			return "it has no values, but its bytes are not zero";
		if ((flags & STOUP_ZONE_HAS_VALUES) &&
			(is_nan(type, bits[0]) || is_nan(type, bits[1]) ||
				less(type, number_of(type, bits[1]), number_of(type, bits[0]))))
			return "its least value is above its greatest one, or one of them is no number";
	}
	*ret_field = field_cnt;
	memcpy(&zero, row + 4, sizeof(zero));
	if (zero)
		return "reserved bytes are not zero";
	for (; walk.flags < values; walk.flags++)
		if (*walk.flags)
			return "padding behind the flags is not zero";
	for (; walk.values < end; walk.values++)
		if (*walk.values)
			return "padding behind the values is not zero";
	return NULL;
}

uint32_t stoup_zone_excludes(const struct stoup_vol_field *fields, uint32_t field_cnt,
	const uint8_t *row, const uint8_t *found)
{
	struct walk walk = walk_begin(fields, field_cnt, row);
	struct walk other = walk_begin(fields, field_cnt, found);

	for (uint32_t i = 0; i < field_cnt; i++) {
		uint32_t type = fields[i].type;
		uint64_t bits[2], is[2];
		uint8_t flags, has;

		if (!is_zoned(&fields[i]))
			continue;
		flags = walk_next(&walk, type, bits);
		has = walk_next(&other, type, is);
		if (has & ~flags)
			return i;
		if ((has & STOUP_ZONE_HAS_VALUES) &&
			(less(type, number_of(type, is[0]), number_of(type, bits[0])) ||
				less(type, number_of(type, bits[1]), number_of(type, is[1]))))
			return i;
	}
	return field_cnt;
}
