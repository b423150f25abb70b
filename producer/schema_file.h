/* SPDX-License-Identifier: Apache-2.0 */
/* schema_file.h - record schemas that a user declares: in a small text file, or field by field.
 *
 *      # quotes of one pair
 *      schema quote
 *      key    ts
 *      ts     i64  time
 *      bid    i64  scale=-5 null=max unit=USD
 *      ask    i64  scale=-5 null=max unit=USD
 *      size   u32  null=max
 *      venue  char[4]
 *
 *      text --parse--> draft: fields in order --finish--> offsets, stride, hash, checked schema
 *
 * docs/schemas.md is the reference of the language. A field without an offset of its own comes
 * after the one before it, at a multiple of its type's length.
 *
 * Invariant: a finished draft holds a schema that stoup_schema_valid accepts, with its hash.
 *
 * Concurrency: a draft belongs to one thread; a finished one is immutable and may be shared.
 * Limits: STOUP_SCHEMA_FIELD_CAP fields, a file of 256 KiB (512 fields of the longest lines).
 */
#ifndef STOUP_PRODUCER_SCHEMA_FILE_H
#define STOUP_PRODUCER_SCHEMA_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

#define STOUP_SCHEMA_FILE_LEN_CAP (256u << 10)

/* Offset of a field that stands where the one before it ends. */
#define STOUP_FIELD_OFF_NATURAL UINT32_MAX

/* A schema under construction, on the heap in one piece: schema.fields points to `fields`. */
struct stoup_schema_draft {
	struct stoup_schema schema;
	struct stoup_field fields[STOUP_SCHEMA_FIELD_CAP];
};

/* An empty draft with alignment 8. 0, -ENOMEM, or -EINVAL for a name that is too long. */
int stoup_schema_draft_create(
	const char *name, struct stoup_schema_draft **ret, struct stoup_error *err);

/* Append a copy of `field`; an offset of STOUP_FIELD_OFF_NATURAL is computed. 0; -E2BIG when full,
 * -EINVAL for a type or count without a length, each with text. */
int stoup_schema_draft_add(
	struct stoup_schema_draft *draft, const struct stoup_field *field, struct stoup_error *err);

/* Make field `key` the key (and a time), set the stride unless it was set, check and hash. 0, or
 * -EINVAL with text. */
int stoup_schema_draft_finish(
	struct stoup_schema_draft *draft, const char *key, struct stoup_error *err);

/* NULL is allowed. */
void stoup_schema_draft_destroy(struct stoup_schema_draft *draft);

/* Read a type word of len bytes: u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 char char[N] bytes[N], or
 * price (i64 scale=-9 null=max) and time (i64 time null=max). Sets type, cnt, flags, exp10 and
 * null_bits of `ret`. 0 or -EINVAL. */
int stoup_schema_type_parse(const char *word, size_t len, struct stoup_field *ret);

/* Parse a file's text. `name` is for messages ("NAME: line 3: ..."). 0; -EINVAL, -ENOMEM. */
int stoup_schema_text_parse(const char *text, size_t len, const char *name,
	struct stoup_schema_draft **ret, struct stoup_error *err);

/* Read and parse a file. Besides those: what open(2) and read(2) give, -EFBIG. */
int stoup_schema_file_load(
	const char *path, struct stoup_schema_draft **ret, struct stoup_error *err);

#endif
