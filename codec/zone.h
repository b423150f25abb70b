/* SPDX-License-Identifier: Apache-2.0 */
/* zone.h - zone maps: of one segment, for each field the least and the greatest value that are defined, and whether
 * some are not.
 *
 *      row   | segment | zero | flags | pad | least, greatest | least, greatest | ~ | pad |
 *               u32      u32    u8     to 8    of the field's    of the next        to 8
 *                               each           own width         field
 *
 * A row has the fields with one element that are no opaque and no reserved bytes, in the order of the schema. NaN and a
 * field's null value are not defined. Floats are in the order of numbers, -0 in front of 0.
 *
 * Invariant: the place of a field in a row follows from the schema alone.
 *
 * Concurrency: pure functions.
 * Limits: a segment of fewer than STOUP_ZONE_RECORDS_MIN records gets no row from a writer of ours, since the row
 * would weigh as much as what it saves.
 */
#ifndef STOUP_CODEC_ZONE_H
#define STOUP_CODEC_ZONE_H

#include <stddef.h>
#include <stdint.h>

#define STOUP_ZONE_RECORDS_MIN 64u
#define STOUP_ZONE_HEAD_LEN    8u

#define STOUP_ZONE_HAS_NULL   0x1u /* a value is not defined */
#define STOUP_ZONE_HAS_VALUES 0x2u /* a value is: least and greatest are set, else they are zero */

struct stoup_vol_field;

/* Bytes of a row, a multiple of 8; 0 where the schema has no such field (messages). */
uint32_t stoup_zone_len(const struct stoup_vol_field *fields, uint32_t field_cnt);

/* Write the row of `record_cnt` records, at least 1, with 0 for the segment's number. `fields` are of a schema that was
 * checked; `row` has stoup_zone_len bytes. */
void stoup_zone_make(const struct stoup_vol_field *fields, uint32_t field_cnt, uint32_t stride,
	const void *records, uint32_t record_cnt, uint8_t *row);

/* Is the row well-formed? NULL, or what is wrong, and in *ret_field with which field (or field_cnt). */
const char *stoup_zone_check(const struct stoup_vol_field *fields, uint32_t field_cnt,
	const uint8_t *row, uint32_t *ret_field);

/* Does `row` allow all that the row `found` of the same segment has? The number of the first field of which it excludes
 * a value that is there, or field_cnt. */
uint32_t stoup_zone_excludes(const struct stoup_vol_field *fields, uint32_t field_cnt,
	const uint8_t *row, const uint8_t *found);

#endif
