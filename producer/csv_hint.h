/* SPDX-License-Identifier: Apache-2.0 */
/* csv_hint.h - what may be the matter with a text that was refused, and what mends it.
 *
 * Only for messages: nothing here is on the way of good rows.
 *
 * Concurrency: pure functions.
 */
#ifndef STOUP_PRODUCER_CSV_HINT_H
#define STOUP_PRODUCER_CSV_HINT_H

#include "producer/csv_plan.h"

#define STOUP_CSV_HINT_CAP 120

/* Of a cell that a field did not take: " (a decimal comma? ...)", or an empty text. */
void stoup_csv_hint_value(const struct stoup_csv_plan *plan, const struct stoup_csv_bind *bind,
	const struct stoup_csv_field *cell, int code, char dst[STOUP_CSV_HINT_CAP]);

/* Of a row with another number of columns than the first. `ends`: it ends with the file, without a line
 * end. */
void stoup_csv_hint_columns(const struct stoup_csv_row *row, uint32_t column_cnt, char delimiter,
	int ends, char dst[STOUP_CSV_HINT_CAP]);

/* Of a first row that fits nothing: which delimiter it seems to have, or an empty text. */
void stoup_csv_hint_delimiter(
	const struct stoup_csv_row *row, char delimiter, char dst[STOUP_CSV_HINT_CAP]);

#endif
