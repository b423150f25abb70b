/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_dbn.h - import a DBN file: each record into the series of its symbol and kind.
 *
 *      input --1 MiB--> prelude, metadata, records --(instrument, day, kind)--> cache --> series
 *                                                          | miss                          |
 *                                                          +--> mapping, sink.series       v
 *                                                                                      sink.put
 *
 * The name of a series is DATASET/SYMBOL/schema, with dataset and symbol escaped; the symbol is the
 * one that the file's own mapping gives the instrument on the UTC day of the record's key. A record
 * whose instrument has several symbols goes to each (of those that --symbols asks for). Error and system messages of a live session
 * belong to no instrument: DATASET/ALL/system.
 *
 * Invariant: a record reaches the sink byte for byte as the file has it, in the file's order.
 *
 * Concurrency: one import is one thread's.
 *
 * Limits: a cache of 256 Ki (instrument, day, kind) triples, emptied when full (6 MiB; a file of
 * one day has one per instrument), 64 symbols of one instrument at one time.
 */
#ifndef STOUP_PRODUCER_INGEST_DBN_H
#define STOUP_PRODUCER_INGEST_DBN_H

#include <stddef.h>
#include <stdint.h>
#include "producer/intake.h"
#include "producer/sink.h"
#include "producer/input.h"

#define STOUP_DBN_ALIAS_CAP 64u

struct stoup_dbn_options {
	const char *series;  /* put all records into this series; NULL: by symbol and schema */
	int one_stream;      /* DATASET/ALL/schema, whatever the symbol */
	int allow_partial;   /* a file cut at its end: import the whole records */
	const char *dataset; /* of records without metadata, or whose metadata name none */
	int version;         /* of records without metadata, 1 to 3; 0: as their lengths say */
	const struct stoup_intake *filter; /* symbols and keys; NULL: all */
};

/* Set "dataset" or "dbn-version". 0; -ENOENT for another name, -EINVAL with text. */
int stoup_dbn_option(struct stoup_dbn_options *options, const char *name, const char *value,
	struct stoup_error *err);

/* Put the records of an open input, which stays the caller's, into `sink`.
 *
 * The stream may hold several DBN files one after the other, and may be a fragment: records without
 * metadata, as a live session or a cut-out leaves them. A fragment's version shows in the lengths of
 * definitions, statistics and messages of the session where it has some (all others are the same in
 * all versions), ts_out in those of all; its symbols are those of its symbol mapping records, else
 * the instruments' numbers. It needs `dataset` or `series`.
 *
 * 0; what the input and the sink give (input.h, sink.h); -EPROTONOSUPPORT for another version than 1
 * to 3 and for DBZ; -EBADMSG for what is no DBN, damaged metadata, a record length under 4 words or
 * not that of its kind, lengths of two versions in one fragment; -ENODATA for a record cut at the end
 * (allow_partial: a note instead); -EINVAL where `series` meets a second schema, for options that
 * exclude each other or contradict the file, and for a fragment without a name; -E2BIG for the limits
 * above. Texts name file and offset in the decompressed stream. Records put before an error stay in
 * the sink, whose owner drops them. May block on disk or pipe. */
int stoup_ingest_dbn(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_dbn_options *options, struct stoup_error *err);

#endif
