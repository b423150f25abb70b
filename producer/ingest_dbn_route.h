/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_dbn_route.h - which series a DBN record belongs to.
 *
 *      rtype --> kind {schema, length, key offset}      one per rtype and file, made when first met
 *      (instrument, day, rtype) --> targets             open-addressing cache in front of mapping
 *                                                       and names
 *
 * Invariant: a cached entry is what resolving it anew would give; a symbol mapping record that
 * changes a symbol raises the generation, which makes older entries stale.
 *
 * Concurrency: one route belongs to one thread.
 */
#ifndef STOUP_PRODUCER_INGEST_DBN_ROUTE_H
#define STOUP_PRODUCER_INGEST_DBN_ROUTE_H

#include <stdbool.h>
#include "producer/dbn.h"
#include "producer/ingest_dbn.h"

struct stoup_dbn_kind {
	const struct stoup_schema *schema; /* NULL: not known, to be skipped */
	uint32_t len;
	uint32_t key_off;
	bool is_met;
	bool is_of_session;              /* belongs to no instrument */
	struct stoup_schema with_ts_out; /* schema points here in files that have it */
};

struct stoup_dbn_targets {
	const uint32_t *series; /* valid until the next call */
	uint32_t cnt;           /* 0: left out by the filter */
};

struct stoup_dbn_route;

/* Make a route for one file. Takes over `meta` (also on failure); their version is 0 for a fragment,
 * which has no metadata. */
int stoup_dbn_route_create(const struct stoup_sink *sink, const struct stoup_dbn_options *options,
	struct stoup_dbn_meta *meta, struct stoup_dbn_route **ret, struct stoup_error *err);
void stoup_dbn_route_destroy(struct stoup_dbn_route *route);

/* The kind of a record, by its type (of a fragment's first of that type, by its length as well); valid
 * as long as the route. */
int stoup_dbn_route_kind(struct stoup_dbn_route *route, const struct stoup_dbn_record *record,
	const struct stoup_dbn_kind **ret, struct stoup_error *err);

/* The versions that the records of a fragment can be of: bit v for version v. */
uint32_t stoup_dbn_route_versions(const struct stoup_dbn_route *route);

/* The series of a whole record of a known kind, with its key. */
int stoup_dbn_route_find(struct stoup_dbn_route *route, const struct stoup_dbn_record *record,
	uint64_t key, struct stoup_dbn_targets *ret, struct stoup_error *err);

/* Learn what a symbol mapping record says. */
int stoup_dbn_route_learn(struct stoup_dbn_route *route, const struct stoup_dbn_record *record,
	struct stoup_error *err);

/* How many records had no symbol, and the first such instrument. */
uint64_t stoup_dbn_route_unmapped(const struct stoup_dbn_route *route, uint32_t *ret_first_id);

#endif
