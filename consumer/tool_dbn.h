/* SPDX-License-Identifier: Apache-2.0 */
/* tool_dbn.h - series as one DBN file: which version and schema it has, and the metadata that name its symbols.
 *
 *      series of one dataset --plan--> version, schema, ts_out
 *           |
 *           +--survey (tool_survey.h)--> which instruments each symbol was on which days --> mappings
 *           +--merge (tool_merge.h)----> records in order of time
 *
 * The file says what the records are: read by any DBN reader, or ingested again, each record goes to the series
 * that it came from, byte for byte the same. What DBN can not say is refused with what to do instead: layouts of
 * two versions, records with and without ts_out, tbbo beside others (they share their type with mbp-1), one
 * instrument under two symbols within a day.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_DBN_H
#define STOUP_CONSUMER_TOOL_DBN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "consumer/stoup.h"

#define STOUP_DBN_OUT_DATASET_LEN 16u
#define STOUP_DBN_OUT_MIXED       0xffffu

/* A kind of DBN record: one built-in schema. */
struct stoup_dbn_out_kind {
	const char *name;
	uint16_t schema;    /* Databento's number; MIXED: messages of a session */
	uint8_t rtypes[2];  /* the second one: older files' (bars), else the same */
	uint8_t versions;   /* bit v: version v has this layout */
	uint8_t is_session; /* belongs to no instrument */
};

struct stoup_dbn_source {
	struct stoup_series series;
	const struct stoup_dbn_out_kind *kind;
	char *symbol;        /* as the feed writes it; NULL: none, the file maps nothing to it */
	uint32_t symbol_idx; /* equal for the series of one symbol */
};

struct stoup_dbn_plan {
	struct stoup_dbn_source *sources; /* in the order of their names */
	size_t cnt;
	uint8_t version;
	uint8_t has_ts_out;
	uint16_t schema;
	char dataset[STOUP_DBN_OUT_DATASET_LEN + 1];
	uint64_t unnamed_cnt; /* series whose symbol the file can not name */
	const char *unnamed;  /* the first one of them */
};

/* Check that series (sorted by name, of one dataset) can be one file, and how. `version` 0: the newest that
 * has all layouts. 0; -EINVAL with what to do; -ENOMEM. On failure nothing is to be freed. */
int stoup_dbn_plan_make(const struct stoup_series *series, size_t cnt, int version,
	struct stoup_dbn_plan *ret, struct stoup_error *err);
void stoup_dbn_plan_fini(struct stoup_dbn_plan *plan);

/* The dataset of a series' name: bytes before its first slash. */
size_t stoup_dbn_dataset_len(const char *series_name);

/* Days on which a symbol was one instrument: [first, end), days since 1970. */
struct stoup_dbn_row {
	const char *symbol;
	uint32_t symbol_idx, instrument_id;
	uint32_t first_day, end_day;
};

/* Write prelude and metadata. Rows are sorted by symbol, then by first day. `start_ns`, `end_ns`: of the
 * records; end 0: none. 0, or -EINVAL with text for a symbol that the version has no room for, -ENOMEM. */
int stoup_dbn_head_write(const struct stoup_dbn_plan *plan, const struct stoup_dbn_row *rows,
	size_t row_cnt, uint64_t start_ns, uint64_t end_ns, FILE *out, struct stoup_error *err);

#endif
