/* SPDX-License-Identifier: Apache-2.0 */
/* preset_path.h - what the name of a file says: symbol, date, length of bars, exchange.
 *
 *      BTCUSDT-1m-2024-01.zip                                   %s-%i-*
 *      AAPL_2012-06-21_34200000_57600000_message_10.csv         %s_%d_*_message_*
 *
 * In a pattern %s is a symbol, %e an exchange (1 or more characters, as few as fit), %d a date (2012-06-21,
 * 20120621, or a month), %i a length of time (1m, 15min, m1, 1d, 1mo), * anything; all else stands for
 * itself. The endings of text and packing (.csv, .txt, .zip, .gz, ...) do not count.
 *
 * Concurrency: pure functions.
 */
#ifndef STOUP_PRODUCER_PRESET_PATH_H
#define STOUP_PRODUCER_PRESET_PATH_H

#include <stddef.h>
#include <stdint.h>

#define STOUP_PRESET_TEXT_CAP 128 /* of a symbol or an exchange, with the NUL */

struct stoup_preset_path {
	char symbol[STOUP_PRESET_TEXT_CAP];   /* empty: not told */
	char exchange[STOUP_PRESET_TEXT_CAP]; /* likewise */
	int64_t day;                          /* since 1970; with has_day */
	int has_day;
	int64_t interval_ns; /* with has_interval; 0: of no fixed length (a month) */
	int has_interval;
};

/* Match the last part of `path`. 1: it matches, `*ret` is set; 0: it does not, `*ret` is cleared. */
int stoup_preset_path_match(const char *pattern, const char *path, struct stoup_preset_path *ret);

/* Read a date, YYYY-MM-DD or YYYYMMDD. 0 or -EINVAL. */
int stoup_preset_date_parse(const char *text, size_t len, int64_t *ret_day);

/* Print a length of time as one number and unit: 1m, 15m, 1h, 1d. */
#define STOUP_PRESET_INTERVAL_CAP 24
void stoup_preset_interval(int64_t ns, char dst[STOUP_PRESET_INTERVAL_CAP]);

#endif
