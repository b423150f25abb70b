/* SPDX-License-Identifier: Apache-2.0 */
/* sums.h - what tells that records are the same: count, first and last key, sums, and a hash of all bytes.
 *
 * The hash depends on the order of the records and on each byte, not on how they lie in blocks. Sums of price and
 * size are for people, who have them from elsewhere.
 *
 * Concurrency: plain data.
 */
#ifndef STOUP_PRODUCER_SUMS_H
#define STOUP_PRODUCER_SUMS_H

#include <stddef.h>
#include <stdint.h>
#include "producer/cmd.h"
#include "shm/stoup_types.h"

/* Sums of the defined values, and how many there are. */
struct stoup_sums_values {
	uint64_t price_cnt, size_cnt;
	stoup_int128 price, size;
};

struct stoup_sums {
	uint64_t record_cnt, raw_len;
	int64_t first_key, last_key;
	struct stoup_sums_values values;
	uint64_t hash;
};

/* The fields that are summed: price, else close; size, else volume, qty, quantity or amount; NULL where the schema has none that is an integer. */
struct stoup_sums_fields {
	const struct stoup_field *price, *size;
};

void stoup_sums_fields(const struct stoup_schema *schema, struct stoup_sums_fields *ret);

/* Add the values of one record. */
void stoup_sums_values_add(struct stoup_sums_values *values, const struct stoup_sums_fields *fields,
	const void *record);

/* Bytes of a record: the schema's stride, or of a message its head, bytes and padding. */
uint32_t stoup_sums_record_len(const struct stoup_schema *schema, const uint8_t *record);

/* Its key field. */
int64_t stoup_sums_key(const struct stoup_schema *schema, const uint8_t *record);

/* Add records or messages, the next ones in order, of keys first_key to last_key. */
void stoup_sums_add(struct stoup_sums *sums, const struct stoup_sums_fields *fields,
	const struct stoup_schema *schema, const uint8_t *records, uint64_t cnt, int64_t first_key,
	int64_t last_key);

/* "-" for no value. */
void stoup_sums_price_format(const struct stoup_sums_values *values,
	const struct stoup_sums_fields *fields, char ret_text[STOUP_DECIMAL_TEXT_CAP]);
void stoup_sums_size_format(const struct stoup_sums_values *values,
	const struct stoup_sums_fields *fields, char ret_text[STOUP_DECIMAL_TEXT_CAP]);

#endif
