/* SPDX-License-Identifier: Apache-2.0 */
/* preset_shape.h - how the cells of a preset's columns are read, and whether a row could be one of it.
 *
 * Concurrency: pure functions.
 */
#ifndef STOUP_PRODUCER_PRESET_SHAPE_H
#define STOUP_PRODUCER_PRESET_SHAPE_H

#include "producer/csv_plan.h"
#include "producer/preset.h"

/* The field of a column (level of a book: `level`), without an offset. */
void stoup_preset_field(const struct stoup_csv_options *options,
	const struct stoup_preset_column *column, uint32_t level, struct stoup_field *ret);

/* Set up how the cells of a column are read into `field`. `ret->field` is `field`, or `as`, which then is
 * filled with what differs and must live as long. `format` is what stoup_preset_format gave. */
void stoup_preset_bind(const struct stoup_preset *preset, const struct stoup_csv_options *options,
	const struct stoup_preset_column *column, const struct stoup_field *field,
	const struct stoup_timestamp_format *format, struct stoup_field *as,
	struct stoup_csv_bind *ret);

/* How texts of time are read. */
struct stoup_timestamp_format stoup_preset_format(
	const struct stoup_preset *preset, const struct stoup_csv_options *options);

/* Could a row without a header be one of the preset's? UINT32_MAX: yes; else the first column whose cell
 * could not, and why. The row has bare_min to bare_max cells. */
uint32_t stoup_preset_shape(const struct stoup_csv_options *options,
	const struct stoup_preset *preset, const struct stoup_csv_row *row, const char **ret_why);

/* Names of the columns for people: "id, price, qty, ...". Static per call and thread. */
const char *stoup_preset_columns(const struct stoup_preset *preset);

/* The column of a file without a header: index into preset->columns, and its level. */
uint32_t stoup_preset_column_at(
	const struct stoup_preset *preset, uint32_t place, uint32_t *ret_level);

#endif
