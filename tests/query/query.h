/* SPDX-License-Identifier: Apache-2.0 */
/* query.h - random queries against a naive reference: what the forms share.
 *
 *      store --one plain stoup_scan--> reference: every record's bytes, key and order key
 *                                         | linear search with plain integers
 *      store --a query of some form-->  the same records, or query_fail
 *
 * Nothing here bisects, and nothing uses what the library knows of a series but its records. The order key of a
 * record is the greatest key so far: the key itself, but of series that kept their order.
 *
 * Each query has a seed of its own, made of the run's seed, the form and the query's number: --only FORM:NUMBER makes
 * one again.
 *
 * Concurrency: one thread. Death: query_fail ends the program with what is needed to make the query again.
 */
#ifndef STOUP_TEST_QUERY_H
#define STOUP_TEST_QUERY_H

#include <stdint.h>
#include "consumer/stoup.h"

#define QUERY_SERIES_CAP 512
#define QUERY_WHAT_CAP   8192

__extension__ typedef __int128 query_wide;

/* A series, copied out. */
struct query_series {
	struct stoup_series series;
	uint64_t cnt;
	uint32_t stride; /* 0: messages */
	uint8_t *bytes;  /* of all records; of messages those behind the heads */
	uint64_t *offs;  /* messages: cnt + 1 offsets into bytes */
	int64_t *keys;   /* as put */
	int64_t *order;  /* the greatest one so far */
	uint8_t *begins; /* 1: a span began here */
	uint64_t cap, bytes_len, bytes_cap;
	int64_t later_ns; /* bars: from the key to when it was known; else 0 */
	int keep;         /* kept its order */
	int direct;       /* can be mapped */
};

/* What a run is about. */
struct query_run {
	struct stoup *st;
	const char *pool, *store, *bin;
	struct query_series all[QUERY_SERIES_CAP];
	uint32_t series_cnt, compared_cnt;
	uint64_t seed;
	int direct; /* map what can be mapped */
	int small;  /* the pool holds little */
	/* the query at work */
	const char *form;
	uint64_t no, state;
	char what[QUERY_WHAT_CAP];
	/* what was done */
	uint64_t query_cnt, record_cnt, span_cnt, empty_cnt;
};

/* ---- query.c --------------------------------------------------------------------------------- */

/* Print the query and how to make it again, and exit with status 1. */
_Noreturn void query_fail(const struct query_run *run, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Describe the query at work: a printf text, after what was said before. */
void query_say(struct query_run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A number below n (at least 1); 64 random bits. */
uint64_t query_below(struct query_run *run, uint64_t n);
uint64_t query_bits(struct query_run *run);

/* One time in n. */
int query_one_in(struct query_run *run, uint64_t n);

/* A series; one that has records. */
struct query_series *query_series_pick(struct query_run *run);
struct query_series *query_filled_pick(struct query_run *run);

/* A key that is worth asking for: those of records, of borders between segments, one beside them, and the extremes. */
int64_t query_key_pick(struct query_run *run, const struct query_series *s);

/* ---- reference.c ----------------------------------------------------------------------------- */

/* Copy all series of the pool out, and compare those with a file in `expect` (may be NULL) with it. */
void query_copy(struct query_run *run, const char *expect);

/* Add a record behind the others: its key, its bytes; `begins`: a segment begins with it. */
void query_add(struct query_series *s, int64_t key, const void *bytes, uint64_t len, int begins);

/* Add a series' records from `from` on: the series grew. */
void query_copy_more(struct query_run *run, struct query_series *s, uint64_t from);

/* Bytes of record i, and how many. */
const uint8_t *query_record(const struct query_series *s, uint64_t i, uint64_t *ret_len);

/* Is record idx of the span record i of the reference? */
int query_same(
	const struct query_series *s, const struct stoup_span *span, uint64_t idx, uint64_t i);

/* Compare a whole span with the reference from its ordinal on. */
void query_span_check(
	struct query_run *run, const struct query_series *s, const struct stoup_span *span);

/* ---- range.c --------------------------------------------------------------------------------- */

/* Records [low, high) of a series: what a query must find. */
struct query_found {
	uint64_t low, high;
};

/* A range, with all flags or without those of the scan's order. */
void query_range_pick(struct query_run *run, const struct query_series *s, struct stoup_range *ret);

/* What the range's bounds leave, then what its limit leaves of that. */
struct query_found query_bounds(
	struct query_run *run, const struct query_series *s, const struct stoup_range *range);
struct query_found query_limit(const struct stoup_range *range, struct query_found found);

/* The time from which on a record was known, with bars counted from their close where `available`. */
query_wide query_known_at(const struct query_series *s, uint64_t i, int available);

/* ---- forms ----------------------------------------------------------------------------------- */

void query_scan(struct query_run *run);
void query_weave(struct query_run *run);
void query_count(struct query_run *run);
void query_asof(struct query_run *run);
void query_merge(struct query_run *run);
void query_filter(struct query_run *run);
void query_bars(struct query_run *run);
void query_follow(struct query_run *run);

/* Merge up to 64 series whole: 0; 3 where it is refused, with the text on standard output. */
int query_merge_all(struct query_run *run);

#endif
