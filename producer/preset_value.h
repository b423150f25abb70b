/* SPDX-License-Identifier: Apache-2.0 */
/* preset_value.h - cells of presets that are read in their own ways.
 *
 *      1704067200000     epoch in a unit that the feed has, and a year from 1990 to 2099
 *      34200.004241176   seconds after midnight
 *      buy, sell         a word: its first letter
 *      True, false, 1    booleans
 *      9999999999        a price that is none
 *
 * Invariant: as csv_value.h: what is written means exactly the text.
 *
 * Concurrency: pure functions.
 */
#ifndef STOUP_PRODUCER_PRESET_VALUE_H
#define STOUP_PRODUCER_PRESET_VALUE_H

#include "producer/csv_plan.h"

/* Epochs by magnitude; each allows some units (STOUP_PRESET_UNIT_*). */
int stoup_preset_read_ms_us(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why);
int stoup_preset_read_us(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why);

int stoup_preset_read_day(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why);
int stoup_preset_read_word(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why);
int stoup_preset_read_bool(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why);
int stoup_preset_read_dummy(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why);

/* As stoup_csv_value_parse, and the null value may stand there as a number, as DBN has it. */
int stoup_preset_read_dbn(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why);

/* The unit of a count since 1970 by its magnitude, where that is a time from 1990 to 2099:
 * STOUP_PRESET_UNIT_*, else 0. */
uint8_t stoup_preset_unit(const char *text, size_t len);

/* "seconds", "milliseconds", ... */
const char *stoup_preset_unit_name(uint8_t unit);

#endif
