/* SPDX-License-Identifier: Apache-2.0 */
/* csv_value.h - the text of one column to the bytes of one field.
 *
 *      "1.12170" --field: i64, scale -9--> 1121700000, little-endian, at record + off
 *
 * Integers are read as exact decimals of the field's scale, times by the time format; u8 also takes
 * true and false. Blanks around a number or time do not count. An empty text is the field's null
 * value, or an error where it has none; for char fields it is the empty text.
 *
 * Invariant: what is written means exactly the text, and is never the null value unless the text is
 * empty.
 *
 * Concurrency: pure functions.
 */
#ifndef STOUP_PRODUCER_CSV_VALUE_H
#define STOUP_PRODUCER_CSV_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include "shm/timestamp.h"
#include "shm/stoup_types.h"

/* 0, or a negative errno and a static `*ret_why` that follows the quoted text ("is not a decimal
 * number"); the record may then hold anything in that field. */
int stoup_csv_value_parse(const struct stoup_field *field,
	const struct stoup_timestamp_format *format, const char *text, size_t len, uint8_t *record,
	const char **ret_why);

/* Write the bits of a value: 0, or -ERANGE and a why where they are the field's null value. */
int stoup_csv_value_store(
	const struct stoup_field *field, uint64_t bits, uint8_t *record, const char **ret_why);

/* Write the null value: 0, or -EINVAL and a why where the field has none. */
int stoup_csv_value_null(const struct stoup_field *field, uint8_t *record, const char **ret_why);

/* Write the null value of every field that has one into a record of zeros: what a field without a
 * column holds. */
void stoup_csv_value_blank(const struct stoup_schema *schema, uint8_t *record);

#endif
