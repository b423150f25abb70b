/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_itch.h - import a day of ITCH 5.0: the file's frames, its date, its options.
 *
 *      input --1 MiB--> frames --8 ahead: prefetch--> itch.h --> sink
 *      01302019.NASDAQ_ITCH50.gz, S010220-v50.txt.gz, --date --> midnight of New York in UTC
 *
 * Concurrency: one import is one thread's.
 */
#ifndef STOUP_PRODUCER_INGEST_ITCH_H
#define STOUP_PRODUCER_INGEST_ITCH_H

#include "producer/intake.h"
#include "producer/input.h"
#include "producer/sink.h"

#define STOUP_ITCH_DATASET "NASDAQ.ITCH"

struct stoup_itch_options {
	const char *series;  /* of raw messages, where they are all */
	const char *dataset; /* NULL: STOUP_ITCH_DATASET */
	const char *date;    /* NULL: by the file's name */
	int raw;             /* STOUP_ITCH_RAW_* */
	int has_zone;        /* zone_s is the offset of the feed's midnight; else New York's */
	int32_t zone_s;
	int allow_partial, allow_steps;
	const struct stoup_intake *filter;
};

/* The date in the name of a file, MMDDYYYY or YYYYMMDD in front or SMMDDYY. 0 or -EINVAL. */
int stoup_itch_name_date(
	const char *path, unsigned *ret_year, unsigned *ret_month, unsigned *ret_day);

/* Is the file named as Nasdaq names them? */
int stoup_itch_name_is(const char *path);

/* Put the messages of an open input into `sink`. 0, or a negative errno with a text that names file and
 * offset: what itch.h, input and sink give; -EINVAL without a date and for options that exclude each
 * other; -EBADMSG for what is no ITCH 5.0, -ENODATA for a file that is cut. Blocks. */
int stoup_ingest_itch(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_itch_options *options, struct stoup_error *err);

#endif
