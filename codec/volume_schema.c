/* SPDX-License-Identifier: Apache-2.0 */
/* volume_schema.c - the rules inside one schema of a volume, and its hash.
 *
 *      record   |<------------------ stride ------------------>|
 *      fields   [name off cnt type ...] each inside the record, none over another
 *
 * The rules are those of a record schema everywhere in stoup; they are written here a second time
 * because codec knows nothing of shared memory, and the numbers of types and flags are part of the
 * volume format. A test holds both against each other.
 *
 * Invariant: of a schema that passed, each field can be read from each record without a check.
 *
 * Concurrency: pure functions.
 */
#include "codec/volume_private.h"

#include <errno.h>
#include <string.h>

/* Numbers of the format: docs/volume-format.md, "Fields". */
#define TYPE_U8    1u
#define TYPE_I64   8u
#define TYPE_CHAR  11u
#define TYPE_BYTES 12u
#define TYPE_LAST  12u

#define FIELD_NULL     0x01u
#define FIELD_TIME     0x02u
#define FIELD_KEY      0x04u
#define FIELD_HIDDEN   0x08u
#define FIELD_DURATION 0x10u
#define FIELD_FLAGS    0x1fu

#define SCHEMA_VARIABLE 0x01u
#define SCHEMA_BAR      0x02u
#define SCHEMA_FLAGS    0x03u

#define ALIGN_CAP 64u
#define EXP10_CAP 18 /* 10^18 is the largest power of ten in an i64 */

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

uint32_t stoup_vol_type_len(uint32_t type)
{
	static const uint8_t lens[TYPE_LAST + 1] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 1};

	return type <= TYPE_LAST ? lens[type] : 0;
}

int stoup_vol_type_is_int(uint32_t type)
{
	return type >= TYPE_U8 && type <= TYPE_I64;
}

/* ---- names ----------------------------------------------------------------------------------- */

int stoup_vol_name_valid(const char *name, size_t len, size_t cap)
{
	if (!len || len >= cap)
		return 0;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c < 0x20 || c == 0x7f)
			return 0;
	}
	return 1;
}

static int identifier_valid(const char *name, size_t cap, int upper, const char *extra)
{
	size_t len = strnlen(name, cap);

	if (!len || len == cap)
		return 0;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		int ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || strchr(extra, c) ||
		         (upper && c >= 'A' && c <= 'Z');

		if (!ok)
			return 0;
	}
	return 1;
}

/* Text without control bytes, then NUL bytes to the end; it may fill the whole array. */
static int padded_text_valid(const char *text, size_t cap)
{
	size_t len = strnlen(text, cap);

	if (len && !stoup_vol_name_valid(text, len, cap + 1))
		return 0;
	for (size_t i = len; i < cap; i++) {
		if (text[i])
			return 0;
	}
	return 1;
}

static int padding_valid(const struct stoup_vol_field *field)
{
	for (size_t i = strlen(field->name); i < sizeof(field->name); i++) {
		if (field->name[i])
			return 0;
	}
	return !field->zero[0] && !field->zero[1] && !field->zero[2];
}

/* ---- hash ------------------------------------------------------------------------------------ */

static uint64_t hash_int(uint64_t hash, uint64_t value, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		hash = (hash ^ ((value >> (8 * i)) & 0xff)) * FNV_PRIME;
	return hash;
}

/* The bytes of a name and one NUL. */
static uint64_t hash_name(uint64_t hash, const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = hash_int(hash, (unsigned char)name[i], 1);
	return hash_int(hash, 0, 1);
}

uint64_t stoup_vol_schema_hash(
	const struct stoup_vol_schema *schema, const struct stoup_vol_field *fields)
{
	uint64_t hash = hash_name(FNV_BASIS, schema->name, strlen(schema->name));

	hash = hash_int(hash, schema->stride, 4);
	hash = hash_int(hash, schema->key_off, 4);
	hash = hash_int(hash, schema->flags, 4);
	hash = hash_int(hash, schema->interval_ns, 8);
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_vol_field *field = &fields[i];

		hash = hash_name(hash, field->name, strnlen(field->name, sizeof(field->name)));
		hash = hash_int(hash, field->off, 4);
		hash = hash_int(hash, field->cnt, 2);
		hash = hash_int(hash, field->type, 1);
		hash = hash_int(hash, field->flags, 1);
		hash = hash_int(hash, (uint8_t)field->exp10, 1);
		hash = hash_int(hash, field->null_bits, 8);
	}
	return hash ? hash : 1;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const char *field_flags_fault(const struct stoup_vol_field *field)
{
	uint32_t flags = field->flags, width = stoup_vol_type_len(field->type);
	int is_int = stoup_vol_type_is_int(field->type);

	if (flags & ~FIELD_FLAGS)
		return "the field has unknown flags";
	if ((flags & FIELD_TIME) && (flags & FIELD_DURATION))
		return "the field is both a time and a duration";
	if ((flags & (FIELD_TIME | FIELD_KEY)) && (!is_int || width != 8))
		return "a time or key field is not a 64-bit integer";
	if ((flags & FIELD_DURATION) && !is_int)
		return "a duration field is not an integer";
	if (field->exp10 && (!is_int || (flags & (FIELD_TIME | FIELD_DURATION))))
		return "a field that is not a plain integer has a scale";
	if (field->exp10 < -EXP10_CAP || field->exp10 > EXP10_CAP)
		return "the field's scale is outside 10^-18 to 10^18";
	if (!(flags & FIELD_NULL))
		return field->null_bits ? "a null value without the flag for it" : NULL;
	if (field->cnt != 1)
		return "an array field has a null value";
	if (width < 8 && field->null_bits >> (8 * width))
		return "the field's null value is wider than the field";
	return NULL;
}

static const char *field_fault(
	const struct stoup_vol_schema *schema, const struct stoup_vol_field *field, int strict)
{
	uint32_t width = stoup_vol_type_len(field->type);

	if (!identifier_valid(field->name, sizeof(field->name), 1, "_.[]-"))
		return "the field's name is empty, unterminated or has other characters than "
		       "[A-Za-z0-9_.[]-]";
	if (!padded_text_valid(field->unit, sizeof(field->unit)))
		return "the field's unit is not text padded with NUL bytes";
	if (strict && !padding_valid(field))
		return "the field's reserved bytes are not zero";
	if (!width)
		return "the field's type is unknown";
	if (!field->cnt ||
		(field->cnt > 1 && field->type != TYPE_CHAR && field->type != TYPE_BYTES))
		return "the field's element count is 0, or above 1 for a type without arrays";
	if (field->off > schema->stride || width * field->cnt > schema->stride - field->off)
		return "the field reaches beyond the record";
	return field_flags_fault(field);
}

/* Field `idx` against those before it, which passed. */
static const char *field_pairs_fault(const struct stoup_vol_field *fields, uint32_t idx)
{
	const struct stoup_vol_field *field = &fields[idx];
	uint32_t end = field->off + stoup_vol_type_len(field->type) * field->cnt;

	for (uint32_t i = 0; i < idx; i++) {
		const struct stoup_vol_field *other = &fields[i];
		uint32_t other_end = other->off + stoup_vol_type_len(other->type) * other->cnt;

		if (field->off < other_end && other->off < end)
			return "the field overlaps another";
		if (!strcmp(field->name, other->name))
			return "the field has another one's name";
	}
	return NULL;
}

static const char *schema_head_fault(const struct stoup_vol_schema *schema)
{
	uint32_t align = schema->align;

	if (!identifier_valid(schema->name, STOUP_VOL_SCHEMA_NAME_CAP, 0, "_.-"))
		return "the name is not 1 to 31 of the characters [a-z0-9_.-]";
	if (!align || align > ALIGN_CAP || (align & (align - 1)))
		return "the alignment is no power of two from 1 to 64";
	if (schema->flags & ~SCHEMA_FLAGS)
		return "unknown flags";
	if ((schema->interval_ns && !(schema->flags & SCHEMA_BAR)) ||
		schema->interval_ns > INT64_MAX)
		return "an interval without the flag for bars, or beyond an i64";
	return NULL;
}

static const char *schema_shape_fault(const struct stoup_vol_schema *schema)
{
	if (schema->flags & SCHEMA_VARIABLE)
		return schema->stride || schema->key_off || schema->field_cnt
		               ? "a schema of messages has a stride, a key offset or fields"
		               : NULL;
	if (!schema->stride || schema->stride > STOUP_VOL_RECORD_LEN_CAP)
		return "the stride is not within 1 to 65535";
	if (schema->stride % schema->align)
		return "the stride is no multiple of the alignment";
	if (schema->align < 8 || schema->key_off % 8)
		return "the key is not aligned to 8 bytes";
	if (!schema->field_cnt || schema->field_cnt > STOUP_VOL_FIELD_CAP)
		return "the number of fields is not within 1 to 512";
	return NULL;
}

static int schema_fields_check(const struct stoup_vol_schema *schema,
	const struct stoup_vol_field *fields, int strict, struct stoup_vol_schema_fault *ret)
{
	uint32_t key_cnt = 0;

	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_vol_field *field = &fields[i];

		ret->field = i;
		ret->what = field_fault(schema, field, strict);
		if (!ret->what)
			ret->what = field_pairs_fault(fields, i);
		if (!ret->what && (field->flags & FIELD_KEY) && field->off != schema->key_off)
			ret->what = "the field is marked as key, but is not at the key's offset";
		if (ret->what)
			return -EBADMSG;
		key_cnt += !!(field->flags & FIELD_KEY);
	}
	if (key_cnt != 1 && !(schema->flags & SCHEMA_VARIABLE)) {
		ret->field = -1;
		ret->what = "no field is marked as the key";
		return -EBADMSG;
	}
	return 0;
}

int stoup_vol_schema_check(const struct stoup_vol_schema *schema,
	const struct stoup_vol_field *fields, int strict, struct stoup_vol_schema_fault *ret)
{
	ret->field = -1;
	ret->what = schema_head_fault(schema);
	if (!ret->what)
		ret->what = schema_shape_fault(schema);
	if (ret->what || schema_fields_check(schema, fields, strict, ret))
		return -EBADMSG;
	if (stoup_vol_schema_hash(schema, fields) != schema->hash) {
		ret->field = -1;
		ret->what = "the hash is not the one of its name and fields";
		return -EBADMSG;
	}
	return 0;
}
