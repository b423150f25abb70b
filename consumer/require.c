/* SPDX-License-Identifier: Apache-2.0 */
/* require.c - may records of a series be overlaid by this struct? Asked once, before the loop.
 *
 *      struct (as compiled)   sizeof, offsetof, types
 *            must equal
 *      schema (as stored)     stride, offsets, types
 *
 * Invariant: after a 0, record i of a span is a valid object of the struct at base + i * stride,
 * and stride equals its sizeof, so that indexing an array of it is right.
 */
#include <errno.h>
#include <string.h>
#include "consumer/stoup.h"

/* As schema files and --columns write them. */
static const char *type_name(uint32_t type)
{
	static const char *const names[] = {[STOUP_TYPE_U8] = "u8",
		[STOUP_TYPE_I8] = "i8",
		[STOUP_TYPE_U16] = "u16",
		[STOUP_TYPE_I16] = "i16",
		[STOUP_TYPE_U32] = "u32",
		[STOUP_TYPE_I32] = "i32",
		[STOUP_TYPE_U64] = "u64",
		[STOUP_TYPE_I64] = "i64",
		[STOUP_TYPE_F32] = "f32",
		[STOUP_TYPE_F64] = "f64",
		[STOUP_TYPE_CHAR] = "char",
		[STOUP_TYPE_BYTES] = "bytes"};

	return type >= STOUP_TYPE_U8 && type <= STOUP_TYPE_LAST ? names[type] : "an unknown type";
}

static int require_len(
	const struct stoup_series *series, size_t record_len, struct stoup_error *err)
{
	const struct stoup_schema *schema = series->schema;

	if (schema->flags & STOUP_SCHEMA_VARIABLE)
		return stoup_error_set(err, -EINVAL,
			"%.120s holds messages of schema %s, which no struct overlays",
			series->name, schema->name);
	if (schema->stride != record_len)
		return stoup_error_set(err, -EINVAL,
			"%.120s has records of %u bytes (schema %s), the struct has %zu",
			series->name, schema->stride, schema->name, record_len);
	return 0;
}

/* The first field in which two layouts differ, as text. */
static int explain_difference(const struct stoup_series *series, const struct stoup_schema *wanted,
	struct stoup_error *err)
{
	const struct stoup_schema *schema = series->schema;

	for (uint32_t i = 0; i < wanted->field_cnt; i++) {
		const struct stoup_field *w = &wanted->fields[i];
		const struct stoup_field *f = stoup_schema_field(schema, w->name);

		if (w->flags & STOUP_FIELD_HIDDEN)
			continue;
		if (!f)
			return stoup_error_set(err, -EINVAL, "%.100s has no field %s, which %s has",
				series->name, w->name, wanted->name);
		if (f->off != w->off || f->type != w->type || f->cnt != w->cnt)
			return stoup_error_set(err, -EINVAL,
				"%.100s: field %s is %s[%u] at offset %u; %s wants %s[%u] at %u",
				series->name, w->name, type_name(f->type), f->cnt, f->off,
				wanted->name, type_name(w->type), w->cnt, w->off);
		if (f->exp10 != w->exp10)
			return stoup_error_set(err, -EINVAL,
				"%.100s: field %s is scaled by 10^%d; %s wants 10^%d", series->name,
				w->name, f->exp10, wanted->name, w->exp10);
	}
	return stoup_error_set(err, -EINVAL,
		"%.100s is laid out as %s, which differs from the built-in %s", series->name,
		schema->name, wanted->name);
}

/* Is the series laid out as `wanted`? Where that leaves the interval to whoever stores bars (`bar`), bars
 * of any length are. */
static int same_layout(const struct stoup_series *series, const struct stoup_schema *wanted)
{
	struct stoup_schema copy = *wanted;

	if ((copy.flags & STOUP_SCHEMA_BAR) && copy.interval_ns == 0)
		copy.interval_ns = series->schema->interval_ns;
	return stoup_schema_hash(&copy) == series->schema->hash;
}

int stoup_schema_require(const struct stoup_series *series, const char *schema_name,
	size_t record_len, struct stoup_error *err)
{
	const struct stoup_schema *wanted;

	if (schema_name) {
		wanted = stoup_schema_by_name(schema_name);
		if (!wanted)
			return stoup_error_set(
				err, -EINVAL, "'%.60s' is no built-in schema", schema_name);
		if (strcmp(series->schema->name, wanted->name) != 0)
			return stoup_error_set(err, -EINVAL, "%.120s has schema %s, not %s",
				series->name, series->schema->name, wanted->name);
		if (!same_layout(series, wanted))
			return explain_difference(series, wanted, err);
	}
	return require_len(series, record_len, err);
}

int stoup_schema_require_fields(const struct stoup_series *series, size_t record_len,
	const struct stoup_require *fields, size_t field_cnt, struct stoup_error *err)
{
	int rc = require_len(series, record_len, err);

	for (size_t i = 0; rc == 0 && i < field_cnt; i++) {
		const struct stoup_field *f = stoup_schema_field(series->schema, fields[i].name);

		if (!f)
			rc = stoup_error_set(err, -EINVAL, "%.100s (schema %s) has no field %.36s",
				series->name, series->schema->name, fields[i].name);
		else if (f->off != fields[i].off || f->type != fields[i].type)
			rc = stoup_error_set(err, -EINVAL,
				"%.100s: field %s is %s at offset %u; the struct has %s at %u",
				series->name, f->name, type_name(f->type), f->off,
				type_name(fields[i].type), fields[i].off);
	}
	return rc;
}
