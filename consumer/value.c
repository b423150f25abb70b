/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - values of records by their fields' descriptions, see stoup_filter.h.
 *
 * Concurrency: pure functions. */
#include <string.h>
#include "consumer/stoup_filter.h"
#include "shm/format.h"

/* An f32's value is a double's as well. */
static void float_value(uint32_t type, uint64_t bits, struct stoup_value *ret)
{
	float narrow;

	if (type == STOUP_TYPE_F32) {
		memcpy(&narrow, &bits, sizeof(narrow));
		ret->f64 = (double)narrow;
	} else {
		memcpy(&ret->f64, &bits, sizeof(ret->f64));
	}
	ret->kind = STOUP_VALUE_FLOAT;
	if (ret->f64 != ret->f64) {
		ret->kind = STOUP_VALUE_NULL;
		ret->f64 = 0;
	}
}

static void text_value(const struct stoup_field *field, const void *record, struct stoup_value *ret)
{
	int is_text = field->type == STOUP_TYPE_CHAR;

	ret->text = (const char *)record + field->off;
	ret->text_len = field->cnt;
	if (is_text)
		ret->text_len = (uint32_t)strnlen(ret->text, field->cnt);
	ret->kind = is_text ? STOUP_VALUE_TEXT : STOUP_VALUE_BYTES;
}

static void int_value(uint32_t type, uint64_t bits, struct stoup_value *ret)
{
	ret->kind = STOUP_VALUE_INT;
	switch (type) {
	case STOUP_TYPE_I8:
		ret->i64 = (int8_t)bits;
		break;
	case STOUP_TYPE_I16:
		ret->i64 = (int16_t)bits;
		break;
	case STOUP_TYPE_I32:
		ret->i64 = (int32_t)bits;
		break;
	case STOUP_TYPE_I64:
		ret->i64 = (int64_t)bits;
		break;
	default:
		ret->kind = STOUP_VALUE_UINT;
		ret->u64 = bits;
	}
}

void stoup_value_at(const struct stoup_field *field, const void *record, struct stoup_value *ret)
{
	struct stoup_value value = {.flags = field->flags, .exp10 = field->exp10};
	uint64_t bits;

	if (stoup_field_is_null(field, record)) {
		value.kind = STOUP_VALUE_NULL;
	} else if (field->type == STOUP_TYPE_CHAR || field->type == STOUP_TYPE_BYTES) {
		text_value(field, record, &value);
	} else {
		bits = stoup_field_bits(field, record);
		if (field->type == STOUP_TYPE_F32 || field->type == STOUP_TYPE_F64)
			float_value(field->type, bits, &value);
		else
			int_value(field->type, bits, &value);
	}
	*ret = value;
}

int64_t stoup_value_text(const struct stoup_field *field, const void *record, char *dst, size_t cap)
{
	return stoup_format_field(field, record, dst, cap);
}

size_t stoup_value_text_cap(const struct stoup_field *field)
{
	return stoup_format_cap(field);
}

const struct stoup_field *stoup_field_next(
	const struct stoup_schema *schema, const struct stoup_field *field)
{
	const struct stoup_field *end = schema->fields + schema->field_cnt;

	for (field = field ? field + 1 : schema->fields; field && field < end; field++)
		if (!(field->flags & STOUP_FIELD_HIDDEN))
			return field;
	return NULL;
}
