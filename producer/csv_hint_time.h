/* SPDX-License-Identifier: Apache-2.0 */
/* csv_hint_time.h - which pattern would have read a time that was refused.
 *
 *      04.03.2024 09:00:00.364  ->  --time-format '%d.%m.%Y %H:%M:%S.%f'
 *      03/04/2024               ->  --time-format '%d/%m/%Y' or '%m/%d/%Y'
 *      09:00                    ->  a time of day alone
 *
 * Only for messages. What is proposed has read the text; two patterns are named where both have.
 *
 * Concurrency: pure functions.
 */
#ifndef STOUP_PRODUCER_CSV_HINT_TIME_H
#define STOUP_PRODUCER_CSV_HINT_TIME_H

#include <stddef.h>

#include "producer/csv_hint.h"
#include "shm/timestamp.h"

/* Of a text that `format` did not read: what it is, as words that follow the quoted text, or an empty text where
 * that can not be told, or where the user named the format. */
void stoup_csv_hint_time(const struct stoup_timestamp_format *format, const char *text, size_t len,
	char dst[STOUP_CSV_HINT_CAP]);

#endif
