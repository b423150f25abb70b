/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - hash, check and look up record schemas (see stoup_types.h).
 *
 * A schema may come from a volume, from another process or from a user's file, so the check trusts
 * no count and no string: names are searched for their NUL inside their arrays only.
 *
 * Concurrency: pure functions over the caller's memory.
 */
#include <errno.h>
#include <string.h>

#include "shm/stoup_types.h"

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

#define SCHEMA_FLAGS (STOUP_SCHEMA_VARIABLE | STOUP_SCHEMA_BAR)
#define FIELD_FLAGS                                                                                \
	(STOUP_FIELD_NULL | STOUP_FIELD_TIME | STOUP_FIELD_KEY | STOUP_FIELD_HIDDEN |              \
		STOUP_FIELD_DURATION)

/* 10^18 is the largest power of ten that fits an i64. */
#define EXP10_CAP 18

static const uint8_t type_lens[STOUP_TYPE_LAST + 1] = {
	[STOUP_TYPE_U8] = 1,
	[STOUP_TYPE_I8] = 1,
	[STOUP_TYPE_U16] = 2,
	[STOUP_TYPE_I16] = 2,
	[STOUP_TYPE_U32] = 4,
	[STOUP_TYPE_I32] = 4,
	[STOUP_TYPE_U64] = 8,
	[STOUP_TYPE_I64] = 8,
	[STOUP_TYPE_F32] = 4,
	[STOUP_TYPE_F64] = 8,
	[STOUP_TYPE_CHAR] = 1,
	[STOUP_TYPE_BYTES] = 1,
};

uint32_t stoup_type_len(uint32_t type)
{
	return type <= STOUP_TYPE_LAST ? type_lens[type] : 0;
}

static int type_is_int(uint32_t type)
{
	return type >= STOUP_TYPE_U8 && type <= STOUP_TYPE_I64;
}

/* ---- hash ------------------------------------------------------------------------------------ */

static uint64_t hash_int(uint64_t hash, uint64_t value, unsigned len)
{
	for (unsigned i = 0; i < len; i++) {
		hash ^= (value >> (8 * i)) & 0xff;
		hash *= FNV_PRIME;
	}
	return hash;
}

/* The bytes of a name and one NUL, at most `cap` bytes in all. */
static uint64_t hash_name(uint64_t hash, const char *name, size_t cap)
{
	size_t len = strnlen(name, cap);

	for (size_t i = 0; i < len; i++)
		hash = hash_int(hash, (unsigned char)name[i], 1);
	return hash_int(hash, 0, 1);
}

uint64_t stoup_schema_hash(const struct stoup_schema *schema)
{
	uint64_t hash = hash_name(FNV_BASIS, schema->name, sizeof schema->name);

	hash = hash_int(hash, schema->stride, 4);
	hash = hash_int(hash, schema->key_off, 4);
	hash = hash_int(hash, schema->flags, 4);
	hash = hash_int(hash, schema->interval_ns, 8);
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];

		hash = hash_name(hash, field->name, sizeof field->name);
		hash = hash_int(hash, field->off, 4);
		hash = hash_int(hash, field->cnt, 2);
		hash = hash_int(hash, field->type, 1);
		hash = hash_int(hash, field->flags, 1);
		hash = hash_int(hash, (uint8_t)field->exp10, 1);
		hash = hash_int(hash, field->null_bits, 8);
	}
	return hash ? hash : 1;
}

/* ---- check ----------------------------------------------------------------------------------- */

/* A name of 1 to cap - 1 bytes of lower-case letters and digits and of `extra`; `upper` allows
 * capitals. */
static int name_valid(const char *name, size_t cap, int upper, const char *extra)
{
	size_t len = strnlen(name, cap);

	if (len == 0 || len == cap)
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

static int unit_valid(const struct stoup_field *field)
{
	size_t len = strnlen(field->unit, sizeof field->unit);

	for (size_t i = 0; i < sizeof field->unit; i++) {
		unsigned char c = (unsigned char)field->unit[i];

		if (i < len ? c < 0x20 || c == 0x7f : c != 0)
			return 0;
	}
	return 1;
}

static const char *field_flags_fault(const struct stoup_field *field)
{
	uint32_t width = stoup_type_len(field->type);
	uint32_t flags = field->flags;

	if (flags & ~FIELD_FLAGS)
		return "has unknown flags";
	if ((flags & STOUP_FIELD_KEY) && (!type_is_int(field->type) || width != 8))
		return "is the key, which must be i64 or u64 nanoseconds";
	if ((flags & STOUP_FIELD_TIME) && (!type_is_int(field->type) || width != 8))
		return "is a time, which must be i64 or u64 nanoseconds";
	if ((flags & STOUP_FIELD_DURATION) && !type_is_int(field->type))
		return "is a duration, which must be an integer of nanoseconds";
	if ((flags & STOUP_FIELD_TIME) && (flags & STOUP_FIELD_DURATION))
		return "is both a time and a duration";
	if (field->exp10 &&
		(!type_is_int(field->type) || (flags & (STOUP_FIELD_TIME | STOUP_FIELD_DURATION))))
		return "has a scale, which only plain integers have";
	if (field->exp10 < -EXP10_CAP || field->exp10 > EXP10_CAP)
		return "has a scale outside 10^-18 to 10^18";
	if (!(flags & STOUP_FIELD_NULL) && field->null_bits)
		return "has a null value but is not marked to have one";
	if ((flags & STOUP_FIELD_NULL) && field->cnt != 1)
		return "has a null value, which arrays do not have";
	if ((flags & STOUP_FIELD_NULL) && width < 8 && field->null_bits >> (8 * width))
		return "has a null value that is wider than the field";
	return NULL;
}

static const char *field_fault(const struct stoup_schema *schema, const struct stoup_field *field)
{
	uint32_t width = stoup_type_len(field->type);

	if (!width)
		return "has an unknown type";
	if (!field->cnt)
		return "has no elements";
	if (field->cnt > 1 && field->type != STOUP_TYPE_CHAR && field->type != STOUP_TYPE_BYTES)
		return "is an array, which only char and bytes may be";
	if (field->off > schema->stride || schema->stride - field->off < width * field->cnt)
		return "reaches beyond the end of the record";
	if (field->zero[0] || field->zero[1] || field->zero[2])
		return "has reserved bytes that are not zero";
	if (!unit_valid(field))
		return "has a unit that is not printable text padded with NUL bytes";
	return field_flags_fault(field);
}

static int schema_head_valid(const struct stoup_schema *schema, struct stoup_error *err)
{
	uint32_t align = schema->align;

	if (!name_valid(schema->name, sizeof schema->name, 0, "_.-"))
		return stoup_error_set(err, -EINVAL,
			"schema name must be 1 to %d characters of a-z, 0-9, '_', '.' and '-'",
			STOUP_SCHEMA_NAME_CAP - 1);
	if (align == 0 || align > 64 || (align & (align - 1)))
		return stoup_error_set(err, -EINVAL,
			"schema %s: alignment %u is not a power of two from 1 to 64", schema->name,
			align);
	if (schema->flags & ~SCHEMA_FLAGS || schema->zero)
		return stoup_error_set(
			err, -EINVAL, "schema %s: unknown flags 0x%x", schema->name, schema->flags);
	if (schema->interval_ns && !(schema->flags & STOUP_SCHEMA_BAR))
		return stoup_error_set(
			err, -EINVAL, "schema %s: only bars have an interval", schema->name);
	if (schema->interval_ns > INT64_MAX)
		return stoup_error_set(
			err, -EINVAL, "schema %s: interval is too long", schema->name);
	return 0;
}

static int variable_valid(const struct stoup_schema *schema, struct stoup_error *err)
{
	if (schema->stride || schema->key_off || schema->field_cnt)
		return stoup_error_set(err, -EINVAL,
			"schema %s: messages of variable length have no stride, key offset or "
			"fields",
			schema->name);
	return 0;
}

static int fixed_valid(const struct stoup_schema *schema, struct stoup_error *err)
{
	if (schema->stride == 0 || schema->stride > STOUP_RECORD_LEN_CAP)
		return stoup_error_set(err, -EINVAL,
			"schema %s: a record of %u bytes is not within 1 to %u bytes", schema->name,
			schema->stride, STOUP_RECORD_LEN_CAP);
	if (schema->stride % schema->align)
		return stoup_error_set(err, -EINVAL,
			"schema %s: record length %u is not a multiple of its alignment %u",
			schema->name, schema->stride, schema->align);
	if (schema->field_cnt == 0 || schema->field_cnt > STOUP_SCHEMA_FIELD_CAP || !schema->fields)
		return stoup_error_set(err, -EINVAL, "schema %s: %u fields, allowed are 1 to %d",
			schema->name, schema->field_cnt, STOUP_SCHEMA_FIELD_CAP);
	if (schema->align < 8 || schema->key_off % 8)
		return stoup_error_set(err, -EINVAL,
			"schema %s: the key at offset %u needs records and an offset aligned to 8 "
			"bytes",
			schema->name, schema->key_off);
	return 0;
}

static int fields_overlap(const struct stoup_field *a, const struct stoup_field *b)
{
	uint32_t a_end = a->off + stoup_type_len(a->type) * a->cnt;
	uint32_t b_end = b->off + stoup_type_len(b->type) * b->cnt;

	return a->off < b_end && b->off < a_end;
}

/* Compare field `idx` with those before it, which have been checked. */
static int field_pairs_valid(
	const struct stoup_schema *schema, uint32_t idx, struct stoup_error *err)
{
	const struct stoup_field *field = &schema->fields[idx];

	for (uint32_t i = 0; i < idx; i++) {
		const struct stoup_field *other = &schema->fields[i];

		if (strcmp(other->name, field->name) == 0)
			return stoup_error_set(err, -EINVAL, "schema %s: two fields are named %s",
				schema->name, field->name);
		if (fields_overlap(other, field))
			return stoup_error_set(err, -EINVAL,
				"schema %s: field %s overlaps field %s at offset %u", schema->name,
				field->name, other->name, field->off);
	}
	return 0;
}

static int fields_valid(const struct stoup_schema *schema, struct stoup_error *err)
{
	uint32_t key_cnt = 0;

	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];
		const char *fault;
		int rc;

		if (!name_valid(field->name, sizeof field->name, 1, "_.[]-"))
			return stoup_error_set(err, -EINVAL,
				"schema %s: the name of field %u must be 1 to %d characters of "
				"letters, digits, '_', '.', '[', ']' and '-'",
				schema->name, i, STOUP_FIELD_NAME_CAP - 1);
		fault = field_fault(schema, field);
		if (fault)
			return stoup_error_set(err, -EINVAL, "schema %s: field %s %s", schema->name,
				field->name, fault);
		rc = field_pairs_valid(schema, i, err);
		if (rc)
			return rc;
		if (!(field->flags & STOUP_FIELD_KEY))
			continue;
		key_cnt++;
		if (field->off != schema->key_off)
			return stoup_error_set(err, -EINVAL,
				"schema %s: the key is at offset %u but field %s, marked as key, "
				"at %u",
				schema->name, schema->key_off, field->name, field->off);
	}
	if (key_cnt != 1)
		return stoup_error_set(
			err, -EINVAL, "schema %s: no field is marked as the key", schema->name);
	return 0;
}

int stoup_schema_valid(const struct stoup_schema *schema, struct stoup_error *err)
{
	int rc = schema_head_valid(schema, err);

	if (rc)
		return rc;
	if (schema->flags & STOUP_SCHEMA_VARIABLE)
		return variable_valid(schema, err);
	rc = fixed_valid(schema, err);
	if (rc)
		return rc;
	return fields_valid(schema, err);
}

/* ---- look up --------------------------------------------------------------------------------- */

const struct stoup_schema *stoup_schema_by_name(const char *name)
{
	const struct stoup_schema *schema;

	for (size_t i = 0; (schema = stoup_schema_builtin(i)) != NULL; i++) {
		if (strcmp(schema->name, name) == 0)
			return schema;
	}
	return NULL;
}

const struct stoup_field *stoup_schema_field(const struct stoup_schema *schema, const char *name)
{
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		if (strncmp(schema->fields[i].name, name, STOUP_FIELD_NAME_CAP) == 0)
			return &schema->fields[i];
	}
	return NULL;
}
