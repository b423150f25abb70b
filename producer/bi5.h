/* SPDX-License-Identifier: Apache-2.0 */
/* bi5.h - import Dukascopy's ticks: one hour of one instrument, rows of 20 bytes under LZMA.
 *
 *      EURUSD/2020/00/15/10h_ticks.bi5     month 0 is January; the hour is UTC
 *      [u32 ms][u32 ask][u32 bid][f32 ask volume][f32 bid volume]     big-endian
 *          --> DUKASCOPY/EURUSD/bi5:  ts, ask, bid, ask_vol, bid_vol
 *
 * Prices are counts of points: without the number of decimals (--point, or the table of currencies in
 * bi5.c) they say nothing, and are refused.
 *
 * Invariant: a record has the row's integers and the row's floats, bit for bit.
 *
 * Concurrency: one import is one thread's.
 */
#ifndef STOUP_PRODUCER_BI5_H
#define STOUP_PRODUCER_BI5_H

#include "producer/intake.h"
#include "producer/input.h"
#include "producer/sink.h"

#define STOUP_BI5_ROW_LEN 20u
#define STOUP_BI5_DATASET "DUKASCOPY"

struct stoup_bi5_options {
	const char *series;  /* NULL: DATASET/SYMBOL/bi5 */
	const char *dataset; /* NULL: STOUP_BI5_DATASET */
	const char *symbol;  /* NULL: by the path */
	const char *date;    /* NULL: by the path; a usual date, January is 01 */
	int hour;            /* UTC; -1: by the path */
	int point;           /* decimals of prices; -1: by the table */
	int allow_partial, allow_steps;
	const struct stoup_intake *filter;
};

/* What a path says. Parts that it does not have are NULL or 0. */
struct stoup_bi5_path {
	char symbol[32];           /* empty: none */
	unsigned year, month, day; /* month from 1; year 0: no date */
	int hour;                  /* -1: none */
};

/* Read a path from its end. 0; -EINVAL for a date that does not exist. */
int stoup_bi5_path_parse(const char *path, struct stoup_bi5_path *ret);

/* Decimals of an instrument's prices, or -1. */
int stoup_bi5_point(const char *symbol);

/* Put the rows of an open input into `sink`. 0, also for an empty file (an hour without ticks, told); or a
 * negative errno with text: -EINVAL for what neither path nor options say, -EBADMSG for rows that are
 * none, -ENODATA for a file that is cut, -EILSEQ for a step back, and what input and sink give. Blocks. */
int stoup_ingest_bi5(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_bi5_options *options, struct stoup_error *err);

#endif
