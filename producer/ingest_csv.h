/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_csv.h - text tables to records: any CSV whose columns are told by options.
 *
 *      file --input--> bytes --csv--> rows of fields --plan--> record --put--> import
 *                                                     |
 *                 options or schema, header names ----+   which column fills which field, and how
 *
 * Three ways to say what the columns are:
 *
 *      --columns "ts:time,bid:price,ask:price,-"       by position, each with its type; - skips
 *      --time timestamp --map "bid:price=Bid,..."      by header name, each with its type
 *      --schema bar --time timestamp --map volume=vol  by header name, types from a schema;
 *                                                      columns named as fields need no --map
 *
 * Invariant: numbers are exact or refused: decimals become integers of the field's scale without a
 * double in between, and a digit too many is an error. Any error names file, line, column and text.
 *
 * Concurrency: one call, one thread; the import has worker threads of its own.
 *
 * Limits: a row of 1 MiB and 4,096 columns (an unclosed quote must not swallow the file).
 */
#ifndef STOUP_PRODUCER_INGEST_CSV_H
#define STOUP_PRODUCER_INGEST_CSV_H

#include <stdint.h>
#include "producer/intake.h"
#include "producer/input.h"
#include "producer/sink.h"
#include "shm/timestamp.h"
#include "shm/stoup_types.h"

#define STOUP_CSV_SCALE_DEFAULT      9 /* decimals of a price column: DBN's */
#define STOUP_CSV_SIZE_SCALE_DEFAULT 8 /* of a preset's sizes: a hundred millionth of a coin */

enum stoup_csv_header {
	STOUP_CSV_HEADER_AUTO, /* a first row without a number or time in what is read */
	STOUP_CSV_HEADER_YES,
	STOUP_CSV_HEADER_NO,
};

/* Set by stoup_csv_option; texts are the caller's and must outlive the struct (argv does). */
struct stoup_csv_options {
	const char *series;  /* name of the series; required */
	const char *schema;  /* built-in schema or file; NULL: made from columns or map */
	const char *columns; /* by position */
	const char *time;    /* header name of the key column */
	const char *map;     /* by header name */
	struct stoup_timestamp_format time_format;
	int64_t interval_ns; /* bars; -1: not given */
	int scale;           /* decimals of price columns; -1: not given (9) */
	enum stoup_csv_header header;
	char delimiter;
	uint32_t threads; /* that read one text; 0: one */
	int delimiter_given, zone_given;
	/* Of presets (preset.h): */
	const char *format;                /* --format: a preset's name, "csv", or NULL: find out */
	const char *exchange;              /* NULL: of the data, the path or the preset */
	const char *symbol;                /* NULL: of the data or the path */
	int64_t day;                       /* since 1970; -1: not given */
	int size_scale;                    /* decimals of sizes; -1: not given (8) */
	const struct stoup_intake *filter; /* whose symbols to take; NULL: all */
};

/* Comma, header auto, times auto in UTC, nothing else set. */
void stoup_csv_options_init(struct stoup_csv_options *options);

/* Set one option by its name without dashes ("time-format") and its value. 0; -ENOENT for a name
 * that is none of these (the caller reports it as unknown), -EINVAL with text for a bad value. */
int stoup_csv_option(struct stoup_csv_options *options, const char *name, const char *value,
	struct stoup_error *err);

/* Help text of these options, a line each. Static. */
const char *stoup_csv_usage(void);

/* Put the rows of an open input, which stays the caller's, into `sink`. 0, or a negative errno with
 * text: -EINVAL for options that do not fit the file, -EBADMSG for a mangled row, and what input and
 * sink give. Blocks. */
int stoup_ingest_csv(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_csv_options *options, struct stoup_error *err);

#endif
