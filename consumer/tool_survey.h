/* SPDX-License-Identifier: Apache-2.0 */
/* tool_survey.h - which instruments each symbol was on which days, found in the records themselves.
 *
 *      (day, instrument, series) -> {records, hash of their bytes}      one pass over all records
 *           |
 *           +--> rows of the mapping: symbol, instrument, days
 *           +--> what stands in several series (an instrument with several symbols): written once
 *
 * DBN maps whole days. So an instrument that is under two symbols on one day must have the very same records
 * under both, or the file would give each symbol the other's records as well: refused.
 *
 * Concurrency: one thread. Memory: 40 bytes for each triple.
 */
#ifndef STOUP_CONSUMER_TOOL_SURVEY_H
#define STOUP_CONSUMER_TOOL_SURVEY_H

#include "consumer/tool_dbn.h"

struct stoup_survey_day {
	uint32_t day, instrument_id;
	uint32_t source;
	uint32_t is_dropped; /* the same records are in a series before it */
	uint64_t record_cnt; /* 0: unused */
	uint64_t hash;
};

struct stoup_survey {
	struct stoup_survey_day *days; /* open addressing */
	uint32_t cap, cnt;
	struct stoup_survey_day *last;
	struct stoup_dbn_row *rows;
	size_t row_cnt;
	int64_t first_key, last_key;
	uint64_t record_cnt, dropped_cnt;
};

/* Read all records of the range once. 0; -EINVAL with text for what DBN can not say; what scans give; -ENOMEM.
 * End with fini, also on failure. */
int stoup_survey_make(struct stoup *st, const struct stoup_dbn_plan *plan,
	const struct stoup_range *range, struct stoup_survey *ret, struct stoup_error *err);

/* Is this record one that stands in a series before its own? */
int stoup_survey_is_dropped(struct stoup_survey *survey, const struct stoup_dbn_plan *plan,
	size_t source, const void *record);

void stoup_survey_fini(struct stoup_survey *survey);

#endif
