/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - values of records to text: exact decimals, ISO 8601 times, one field of one record.
 *
 *      1121700000 with exp10 -9              ->  1.1217
 *      1703462400000000000                   ->  2023-12-25T00:00:00.000000000Z
 *      a field whose bits are its null value ->  (nothing)
 *
 * Invariant: a printed number has exactly the stored value, so that parsing it again yields the
 * same integer; a printed float yields the same bits.
 *
 * Concurrency: pure functions; the decimal point is '.' whatever the locale.
 */
#ifndef STOUP_FORMAT_H
#define STOUP_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

/* Room for any one number or time, with its NUL: an i64 of 20 characters with 18 zeros behind
 * it. */
#define STOUP_FORMAT_CAP 48

/* "1 volume", "2 volumes". */
#define STOUP_PLURAL(cnt) ((cnt) == 1 ? "" : "s")

/* integer * 10^exp10 (-18 to 18) without needless zeros: "1.1217", "-0.5", "1200", "0". Writes a
 * NUL-terminated text of fewer than STOUP_FORMAT_CAP bytes and returns its length. */
size_t stoup_format_decimal(int64_t integer, int exp10, char *dst);
size_t stoup_format_decimal_u64(uint64_t integer, int exp10, char *dst);

/* Nanoseconds since the epoch as "YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ": always 30 characters and a NUL.
 * i64 reaches from 1677 to 2262, u64 to 2554. Returns 30. */
size_t stoup_format_time(int64_t ns, char *dst);
size_t stoup_format_time_u64(uint64_t ns, char *dst);

/* The shortest decimal that reads back as the same double; "nan", "inf", "-inf". Returns its
 * length, fewer than STOUP_FORMAT_CAP bytes. */
size_t stoup_format_double(double value, char *dst);

/* The bytes of a field's first element, zero-extended to 64 bits; the record may be unaligned. */
uint64_t stoup_field_bits(const struct stoup_field *field, const void *record);

/* Bytes that the text of a field takes at most, with its NUL. */
size_t stoup_format_cap(const struct stoup_field *field);

/* Is the field's value in this record its null value? */
int stoup_field_is_null(const struct stoup_field *field, const void *record);

/* Text of one field of the record at `record` (any alignment): times as above, integers with their
 * scale, a null value as nothing, CHAR up to its first NUL with bytes that are not printable ASCII
 * as \xNN, BYTES as hexadecimal digits. Returns the length; -ENOSPC when `cap` is too small: 4 *
 * cnt + 1 for CHAR, 2 * cnt + 1 for BYTES, STOUP_FORMAT_CAP for all else is always enough. */
int64_t stoup_format_field(
	const struct stoup_field *field, const void *record, char *dst, size_t cap);

#endif
