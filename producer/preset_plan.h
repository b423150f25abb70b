/* SPDX-License-Identifier: Apache-2.0 */
/* preset_plan.h - a preset meets a file: schema, binds, and the names of its series.
 *
 *      preset + first rows + path + options --> plan (csv_plan.h) + use
 *
 * Concurrency: immutable once made, but for one_symbol, which the first to come sets; tables of several
 * threads share it.
 */
#ifndef STOUP_PRODUCER_PRESET_PLAN_H
#define STOUP_PRODUCER_PRESET_PLAN_H

#include "producer/csv_plan.h"
#include "producer/preset.h"
#include "producer/preset_path.h"
#include "producer/sink.h"

struct stoup_preset_use {
	const struct stoup_preset *preset;
	uint32_t exchange_column;             /* UINT32_MAX: the file has one */
	uint32_t symbol_column;               /* likewise */
	uint32_t symbol_else_column;          /* where the symbol's cell is empty; likewise */
	char exchange[STOUP_PRESET_TEXT_CAP]; /* of the file */
	char symbol[STOUP_PRESET_TEXT_CAP];
	char kind[STOUP_SCHEMA_NAME_CAP + STOUP_PRESET_INTERVAL_CAP];
	struct stoup_preset_path path;
	/* With --series, --symbol or --exchange: what they stand for in the rows that came first; others are
	 * refused. On the heap. */
	char *_Atomic one_symbol;
	int64_t interval_ns; /* bars; 0: not known yet */
	int64_t midnight_ns;
	uint32_t level_cnt;
	struct stoup_timestamp_format format;
	uint32_t as_cnt;
	struct stoup_field as[STOUP_SCHEMA_FIELD_CAP]; /* fields as which texts are read */
};

/* Make the plan of a file whose preset was chosen. `first` is its first row, `second` the one behind it
 * (NULL: there is none). Notes go to `sink` (NULL: none are told). 0; -EINVAL with text ("line N: ..."),
 * -ENOMEM. */
int stoup_preset_plan(const struct stoup_preset *preset, const struct stoup_csv_options *options,
	const char *file, const struct stoup_csv_row *first, const struct stoup_csv_row *second,
	int header, const struct stoup_sink *sink, struct stoup_csv_plan **ret,
	struct stoup_error *err);

/* NULL is allowed. */
void stoup_preset_use_destroy(struct stoup_preset_use *use);

/* ---- parts --------------------------------------------------------------------------------------- */

/* Schema and binds of Databento's CSV. */
int stoup_preset_dbn_plan(struct stoup_csv_plan *plan, const char *file,
	const struct stoup_csv_row *header, const struct stoup_csv_row *row,
	const struct stoup_sink *sink, struct stoup_error *err);

/* Tell the columns of a header that are not used. A NULL sink is not told. */
void stoup_preset_left_note(const struct stoup_csv_row *header, const uint8_t *used,
	const char *file, const struct stoup_sink *sink);

/* Symbol, exchange, date and length of bars, from options and path. */
int stoup_preset_file(struct stoup_csv_plan *plan, const char *file,
	const struct stoup_csv_row *first, int header, const struct stoup_sink *sink,
	struct stoup_error *err);

/* The exchange that the folders of Binance's archive say: "" where they say none. */
const char *stoup_preset_binance_folder(const char *file);

/* The kind of klines that the folders say: those of mark, index and premium index have a folder each, and no
 * other sign. */
const char *stoup_preset_binance_klines_kind(const char *file);

/* The dataset that the name of a Databento file says; dst is left as it is where it says none. */
void stoup_preset_dbn_dataset(const char *file, char dst[STOUP_PRESET_TEXT_CAP]);

/* The schema that the name of a Databento file says, "" for none. */
const char *stoup_preset_dbn_kind(const char *file);

#endif
