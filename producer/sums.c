/* SPDX-License-Identifier: Apache-2.0 */
/* sums.c - sums and an order-sensitive hash over the records of a series. */
#include "producer/sums.h"

#include <stdio.h>
#include <string.h>
#include "codec/volume.h"
#include "shm/format.h"
#include "shm/message.h"

/* Odd, so that a hash in the chain is never lost: 2^64 divided by the golden ratio. */
#define CHAIN UINT64_C(0x9E3779B97F4A7C15)

uint32_t stoup_sums_record_len(const struct stoup_schema *schema, const uint8_t *record)
{
	struct stoup_message_head head;

	if (schema->stride > 0)
		return schema->stride;
	memcpy(&head, record, sizeof(head));
	return stoup_message_unit_len(head.len);
}

int64_t stoup_sums_key(const struct stoup_schema *schema, const uint8_t *record)
{
	int64_t key;

	memcpy(&key, record + schema->key_off, sizeof(key));
	return key;
}

/* A field that can be summed exactly, by its first name that is there. */
static const struct stoup_field *integer_field(
	const struct stoup_schema *schema, const char *const *names)
{
	const struct stoup_field *field = NULL;

	for (; *names && !field; names++)
		field = stoup_schema_field(schema, *names);
	return field && field->type >= STOUP_TYPE_U8 && field->type <= STOUP_TYPE_I64 ? field
	                                                                              : NULL;
}

void stoup_sums_fields(const struct stoup_schema *schema, struct stoup_sums_fields *ret)
{
	/* As DBN, Binance and Tardis call them. */
	static const char *const prices[] = {"price", "close", NULL};
	static const char *const sizes[] = {"size", "volume", "qty", "quantity", "amount", NULL};

	ret->price = integer_field(schema, prices);
	ret->size = integer_field(schema, sizes);
}

/* Widened by its type; both signs fit. */
static stoup_int128 field_value(const struct stoup_field *field, const void *record)
{
	uint32_t len = stoup_type_len(field->type);
	unsigned shift = 64 - 8 * len;
	uint64_t bits = 0;

	memcpy(&bits, (const uint8_t *)record + field->off, len);
	switch (field->type) {
	case STOUP_TYPE_I8:
	case STOUP_TYPE_I16:
	case STOUP_TYPE_I32:
	case STOUP_TYPE_I64:
		return (int64_t)(bits << shift) >> shift;
	default:
		return bits;
	}
}

void stoup_sums_values_add(struct stoup_sums_values *values, const struct stoup_sums_fields *fields,
	const void *record)
{
	if (fields->price && !stoup_field_is_null(fields->price, record)) {
		values->price_cnt++;
		values->price += field_value(fields->price, record);
	}
	if (fields->size && !stoup_field_is_null(fields->size, record)) {
		values->size_cnt++;
		values->size += field_value(fields->size, record);
	}
}

static void keys_add(struct stoup_sums *sums, uint64_t cnt, int64_t first_key, int64_t last_key)
{
	if (sums->record_cnt == 0 || first_key < sums->first_key)
		sums->first_key = first_key;
	if (sums->record_cnt == 0 || last_key > sums->last_key)
		sums->last_key = last_key;
	sums->record_cnt += cnt;
}

void stoup_sums_add(struct stoup_sums *sums, const struct stoup_sums_fields *fields,
	const struct stoup_schema *schema, const uint8_t *records, uint64_t cnt, int64_t first_key,
	int64_t last_key)
{
	const uint8_t *record = records;
	uint64_t hash = sums->hash, i;

	keys_add(sums, cnt, first_key, last_key);
	for (i = 0; i < cnt; i++) {
		uint32_t len = stoup_sums_record_len(schema, record);

		hash = hash * CHAIN + stoup_vol_hash(record, len);
		stoup_sums_values_add(&sums->values, fields, record);
		record += len;
	}
	sums->raw_len += (uint64_t)(record - records);
	sums->hash = hash;
}

static void sum_format(
	const struct stoup_field *field, uint64_t value_cnt, stoup_int128 sum, char *ret_text)
{
	if (field && value_cnt > 0)
		stoup_decimal_format(sum, field->exp10, ret_text);
	else
		snprintf(ret_text, STOUP_DECIMAL_TEXT_CAP, "-");
}

void stoup_sums_price_format(const struct stoup_sums_values *values,
	const struct stoup_sums_fields *fields, char ret_text[STOUP_DECIMAL_TEXT_CAP])
{
	sum_format(fields->price, values->price_cnt, values->price, ret_text);
}

void stoup_sums_size_format(const struct stoup_sums_values *values,
	const struct stoup_sums_fields *fields, char ret_text[STOUP_DECIMAL_TEXT_CAP])
{
	sum_format(fields->size, values->size_cnt, values->size, ret_text);
}
