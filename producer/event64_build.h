/* SPDX-License-Identifier: Apache-2.0 */
/* event64_build.h - feeds to hftbacktest's events: collects a feed's events per series, and puts them
 * into an import in the order that hftbacktest needs.
 *
 *      event64_dbn.c, event64_csv.c --add--> events of a series, as they came
 *                                                 | finish
 *             1. local times before exchange times? all of the series' move later
 *             2. sorted by exchange time and by local time: neither steps back -> both flags
 *                else both sorted orders are woven into one array, and an event at which they part
 *                stands in it twice, once for each
 *
 *      exch    a b c d          woven   a+ b(exch) c+ b(local) d+        a+: both flags
 *      local   a c b d
 *
 * Equal times keep the order of the input, and of the files: a trade that is given before the depth
 * that it causes stays before it.
 *
 * Invariant: each event has each flag once; events with the EXCH flag are in the order of exch_ts,
 * those with the LOCAL flag in that of local_ts, and local_ts is never before exch_ts.
 *
 * Concurrency: one thread.
 * Limits: the events of all series of one ingest are in memory (64 bytes each, and 8 where they are
 * out of order), 2^31 of one series.
 */
#ifndef STOUP_PRODUCER_EVENT64_BUILD_H
#define STOUP_PRODUCER_EVENT64_BUILD_H

#include "producer/event64.h"
#include "producer/event64_claim.h"
#include "producer/import.h"
#include "producer/ingest_dbn.h"
#include "producer/input.h"

#define STOUP_EVENT64_SHIFT_CAP_NS INT64_C(1000000000)

struct stoup_event64_options {
	const char *series;      /* one series for all; NULL: named by the feed */
	int64_t feed_latency_ns; /* of feeds without a local time; -1: not given */
	int64_t base_latency_ns; /* added where local times are moved */
	int64_t max_shift_ns;    /* most by which they are moved */
	int allow_partial;       /* DBN */
	void (*note)(void *arg, const char *text); /* what the user should know; NULL: stderr */
	void *note_arg;
};

/* No latency given, a shift of at most a second. */
void stoup_event64_options_init(struct stoup_event64_options *options);

struct stoup_event64_build;

/* 0 or -ENOMEM. `import` and `options` must outlive the build. */
int stoup_event64_build_create(struct stoup_import *import,
	const struct stoup_event64_options *options, struct stoup_event64_build **ret,
	struct stoup_error *err);
void stoup_event64_build_destroy(struct stoup_event64_build *build);

/* Open or find a series: its index, or a negative errno with text. */
int64_t stoup_event64_build_series(
	struct stoup_event64_build *build, const char *name, struct stoup_error *err);

/* Add an event without EXCH and LOCAL flags. 0; -ERANGE for a time that is not after 1970, -ENOMEM. */
int stoup_event64_build_add(struct stoup_event64_build *build, uint32_t series_idx,
	const struct stoup_event64 *event, const struct stoup_where *where,
	struct stoup_error *err);

/* A file begins: what is said and added from here on is its own. */
void stoup_event64_build_file(struct stoup_event64_build *build, const char *file);

/* Say which feed the file has for a series, and what it tells of (event64_claim.h), before its events are
 * added: 0; -EINVAL with text where another one tells of the same, which would be there twice. */
int stoup_event64_build_claim(struct stoup_event64_build *build, uint32_t series_idx,
	const char *feed, uint32_t tells, struct stoup_error *err);

/* Say, after that, which symbol or instrument it is: 0; -EINVAL with text where it was another one. */
int stoup_event64_build_source(struct stoup_event64_build *build, uint32_t series_idx,
	const char *source, struct stoup_error *err);

/* Put all series into the import. 0; -EINVAL where files of one feed overlap in time; -ERANGE where local
 * times would move by more than max_shift_ns; or what stoup_import_put gives. */
int stoup_event64_build_finish(struct stoup_event64_build *build, struct stoup_error *err);

/* Tell the user. */
void stoup_event64_note(const struct stoup_event64_options *options, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- books ------------------------------------------------------------------------------------ */

#define STOUP_EVENT64_LEVEL_CAP 10u

/* The levels of one side that a feed showed last. */
struct stoup_event64_side {
	struct stoup_event64_level {
		double px, qty;
	} levels[STOUP_EVENT64_LEVEL_CAP];
	uint32_t cnt;
};

/* A book that is told by what changed of it has one order, that of the feed: no change may come before the one
 * in front of it, in either walk. So an event that would is moved to the time of that one, which is told at the
 * end; but -EILSEQ with text where its local time is back by more than max_shift_ns, as in files that are
 * given in the wrong order. For each event of such a book. */
int stoup_event64_book_times(struct stoup_event64_build *build, uint32_t series_idx,
	struct stoup_event64 *event, const struct stoup_where *where, struct stoup_error *err);

/* Add what turns one side of a series' book into `now`: a level that is no longer shown goes (quantity 0),
 * then the new and the changed ones. `event` has kind, side flag and times, which go through
 * stoup_event64_book_times. A book goes on from file to file. */
int stoup_event64_side_add(struct stoup_event64_build *build, uint32_t series_idx,
	const struct stoup_event64 *event, const struct stoup_event64_side *now,
	const struct stoup_where *where, struct stoup_error *err);

/* Forget both sides: a clear was added. */
void stoup_event64_book_clear(struct stoup_event64_build *build, uint32_t series_idx);

/* ---- feeds ------------------------------------------------------------------------------------ */

/* Add the events of an open DBN file (mbo, trades, tbbo, mbp-1, mbp-10). 0, or as stoup_ingest_dbn;
 * -ENOTSUP for other records that tell of prices; -EINVAL where a series would mix instruments or kinds. */
int stoup_event64_dbn(struct stoup_event64_build *build, struct stoup_input *input,
	const struct stoup_event64_options *options, struct stoup_error *err);

/* Add the events of an open text: Tardis trades and incremental_book_L2, Binance trades, aggTrades and
 * bookTicker, told apart by their columns. 0; -ENOTSUP for other columns; -EBADMSG for a mangled row;
 * -EINVAL for options that are missing, or two symbols in one series. */
int stoup_event64_csv(struct stoup_event64_build *build, struct stoup_input *input,
	const struct stoup_event64_options *options, struct stoup_error *err);

#endif
