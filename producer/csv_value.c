/* SPDX-License-Identifier: Apache-2.0 */
/* csv_value.c - the text of one column to the bytes of one field (see csv_value.h). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "producer/csv_value.h"
#include "shm/decimal.h"

/* A double needs 17 digits; longer texts exist but not beyond this. */
#define FLOAT_TEXT_CAP 128

static void store_bits(const struct stoup_field *field, uint64_t bits, uint8_t *record)
{
	uint32_t len = stoup_type_len(field->type);

	for (uint32_t i = 0; i < len; i++)
		record[field->off + i] = (uint8_t)(bits >> (8 * i));
}

int stoup_csv_value_store(
	const struct stoup_field *field, uint64_t bits, uint8_t *record, const char **ret_why)
{
	uint32_t width = 8 * stoup_type_len(field->type);

	bits &= UINT64_MAX >> (64 - width);
	if ((field->flags & STOUP_FIELD_NULL) && bits == field->null_bits) {
		*ret_why = "is the value that stands for \"undefined\" in this field";
		return -ERANGE;
	}
	store_bits(field, bits, record);
	return 0;
}

int stoup_csv_value_null(const struct stoup_field *field, uint8_t *record, const char **ret_why)
{
	*ret_why = "is empty, and the field has no value for \"undefined\"";
	if (!(field->flags & STOUP_FIELD_NULL))
		return -EINVAL;
	store_bits(field, field->null_bits, record);
	return 0;
}

static const char *decimal_why(const struct stoup_field *field, int rc)
{
	if (rc == -ERANGE)
		return "does not fit the field's type";
	if (rc == -EDOM)
		return field->exp10 < 0 ? "has more decimals than the field's scale"
		                        : "is not a whole multiple of the field's scale";
	return "is not a decimal number";
}

static int parse_unsigned(const struct stoup_field *field, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	uint32_t width = 8 * stoup_type_len(field->type);
	uint64_t value;
	int rc;

	if (field->type == STOUP_TYPE_U8 && len == 4 && strncasecmp(text, "true", 4) == 0)
		return stoup_csv_value_store(field, 1, record, ret_why);
	if (field->type == STOUP_TYPE_U8 && len == 5 && strncasecmp(text, "false", 5) == 0)
		return stoup_csv_value_store(field, 0, record, ret_why);
	rc = stoup_decimal_parse_u64(text, len, field->exp10, &value);
	if (!rc && value > UINT64_MAX >> (64 - width))
		rc = -ERANGE;
	if (rc) {
		*ret_why = decimal_why(field, rc);
		return rc;
	}
	return stoup_csv_value_store(field, value, record, ret_why);
}

static int parse_signed(const struct stoup_field *field, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	uint32_t width = 8 * stoup_type_len(field->type);
	int64_t greatest = INT64_MAX >> (64 - width);
	int64_t value;
	int rc = stoup_decimal_parse(text, len, field->exp10, &value);

	if (!rc && (value > greatest || value < -greatest - 1))
		rc = -ERANGE;
	if (rc) {
		*ret_why = decimal_why(field, rc);
		return rc;
	}
	return stoup_csv_value_store(field, (uint64_t)value, record, ret_why);
}

static int parse_time(const struct stoup_field *field, const struct stoup_timestamp_format *format,
	const char *text, size_t len, uint8_t *record, const char **ret_why)
{
	int64_t ns;
	int rc = stoup_timestamp_parse(format, text, len, &ns, ret_why);

	if (rc)
		return rc;
	if (ns < 0 && field->type == STOUP_TYPE_U64) {
		*ret_why = "is before 1970, which the field's unsigned type does not reach";
		return -ERANGE;
	}
	return stoup_csv_value_store(field, (uint64_t)ns, record, ret_why);
}

/* strtod takes more than decimals ("inf", "0x1p3"), so the characters are checked first. The
 * programs never set a locale: '.' is the decimal point. */
static int parse_float(const struct stoup_field *field, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	char copy[FLOAT_TEXT_CAP];
	char *end;
	double f64;
	float f32;
	uint64_t bits = 0;

	*ret_why = "is not a decimal number";
	if (len == 0 || len >= sizeof copy)
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (strspn(copy, "0123456789+-.eE") != len)
		return -EINVAL;
	f64 = strtod(copy, &end);
	f32 = field->type == STOUP_TYPE_F32 ? strtof(copy, &end) : 0;
	if (*end != '\0')
		return -EINVAL;
	*ret_why = "does not fit the field's type";
	if (!isfinite(f64) || !isfinite(f32))
		return -ERANGE;
	if (field->type == STOUP_TYPE_F32)
		memcpy(&bits, &f32, sizeof f32);
	else
		memcpy(&bits, &f64, sizeof f64);
	return stoup_csv_value_store(field, bits, record, ret_why);
}

static int store_text(const struct stoup_field *field, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	if (len > field->cnt) {
		*ret_why = "is longer than the field";
		return -ERANGE;
	}
	memset(record + field->off, 0, field->cnt);
	memcpy(record + field->off, text, len);
	return 0;
}

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

int stoup_csv_value_parse(const struct stoup_field *field,
	const struct stoup_timestamp_format *format, const char *text, size_t len, uint8_t *record,
	const char **ret_why)
{
	if (field->type == STOUP_TYPE_CHAR)
		return store_text(field, text, len, record, ret_why);
	while (len && is_blank(text[0])) {
		text++;
		len--;
	}
	while (len && is_blank(text[len - 1]))
		len--;
	if (len == 0)
		return stoup_csv_value_null(field, record, ret_why);
	if (field->flags & STOUP_FIELD_TIME)
		return parse_time(field, format, text, len, record, ret_why);
	switch (field->type) {
	case STOUP_TYPE_U8:
	case STOUP_TYPE_U16:
	case STOUP_TYPE_U32:
	case STOUP_TYPE_U64:
		return parse_unsigned(field, text, len, record, ret_why);
	case STOUP_TYPE_F32:
	case STOUP_TYPE_F64:
		return parse_float(field, text, len, record, ret_why);
	case STOUP_TYPE_BYTES:
		*ret_why = "is for a field of opaque bytes, which no text fills";
		return -EINVAL;
	default:
		return parse_signed(field, text, len, record, ret_why);
	}
}

void stoup_csv_value_blank(const struct stoup_schema *schema, uint8_t *record)
{
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		if (schema->fields[i].flags & STOUP_FIELD_NULL)
			store_bits(&schema->fields[i], schema->fields[i].null_bits, record);
	}
}
