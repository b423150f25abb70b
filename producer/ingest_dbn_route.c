/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_dbn_route.c - kinds, cache, symbols and series names of one DBN file. */
#include "producer/ingest_dbn_route.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_NS     UINT64_C(86400000000000)
#define SLOTS_MIN  1024u
#define SLOTS_MAX  (512u * 1024u) /* half of them used */
#define LIVE_MIN   1024u
#define LIVE_CAP   (4u << 20) /* instruments of one live session */
#define SYMBOL_CAP 256u       /* with the NUL; a live symbol has at most 71 bytes */
#define ANY_SYMBOL "ALL"
#define NO_DATASET "UNKNOWN"

/* One cached answer: 24 bytes. */
struct slot {
	uint32_t instrument_id;
	uint32_t day;   /* days since the epoch */
	uint32_t gen;   /* of the live symbols when it was resolved */
	uint32_t first; /* index into targets */
	uint16_t cnt;
	uint16_t rtype;
	uint8_t is_used;
	uint8_t is_unmapped;
	uint16_t zero;
};

/* A symbol learned from a symbol mapping record; text NULL: unused. */
struct live {
	uint32_t instrument_id;
	char *text;
};

struct stoup_dbn_route {
	struct stoup_sink sink;
	const struct stoup_dbn_options *options;
	struct stoup_dbn_meta meta;
	struct stoup_dbn_kind kinds[256];
	const struct stoup_dbn_kind *only; /* the one kind of --series */
	char dataset[STOUP_SERIES_NAME_CAP];
	uint32_t versions; /* of a fragment: bit v while version v is possible; else 0 */
	bool has_ts_out_known;
	uint32_t gen;
	struct slot *slots;
	const struct slot *last;
	uint32_t slot_cap; /* a power of two */
	uint32_t slot_cnt;
	uint32_t *targets;
	size_t target_cnt;
	size_t target_cap;
	struct live *live;
	uint32_t live_cap; /* a power of two, or 0 */
	uint32_t live_cnt;
	uint64_t unmapped_cnt;
	uint32_t unmapped_id;
};

static uint32_t hash_of(uint32_t instrument_id, uint32_t day, uint32_t rtype)
{
	uint64_t mixed = (uint64_t)instrument_id | (uint64_t)(day << 8 ^ rtype) << 32;
	return (uint32_t)(mixed * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static const char *versions_text(uint32_t versions)
{
	static const char *const texts[] = {
		"none", "1", "2", "1 or 2", "3", "1 or 3", "2 or 3", "1 to 3"};
	return texts[versions >> 1 & 7];
}

/* A fragment's record tells by its length which version it is of, and whether ts_out is there. */
static int meet_shape(struct stoup_dbn_route *route, const struct stoup_dbn_record *record,
	const struct stoup_schema **ret, struct stoup_error *err)
{
	struct stoup_dbn_shape shape = {0};
	int rc = stoup_dbn_shape(record->rtype, record->len, &shape);
	if (rc < 0)
		return stoup_error_set(err, rc,
			"is %u bytes long, which records of type 0x%02x are in no version of DBN: the "
			"file is damaged",
			record->len, record->rtype);
	*ret = shape.schema;
	if (rc == 0)
		return 0;
	if (route->has_ts_out_known && route->meta.has_ts_out != shape.has_ts_out)
		return stoup_error_set(err, -EBADMSG,
			"is %u bytes long, a %s record %s ts_out, unlike those before it: the file is "
			"damaged",
			record->len, shape.schema->name, shape.has_ts_out ? "with" : "without");
	if (!(route->versions & shape.versions))
		return stoup_error_set(err, -EBADMSG,
			"is %u bytes long, a %s record of DBN version %s, but %s version %s",
			record->len, shape.schema->name, versions_text(shape.versions),
			route->options->version ? "--dbn-version says" : "those before it are of",
			versions_text(route->versions));
	route->has_ts_out_known = true;
	route->meta.has_ts_out = shape.has_ts_out;
	route->versions &= shape.versions;
	route->meta.version = (uint8_t)__builtin_ctz(route->versions);
	return 0;
}

static int meet_kind(struct stoup_dbn_route *route, const struct stoup_dbn_record *record,
	struct stoup_error *err)
{
	uint8_t rtype = record->rtype;
	struct stoup_dbn_kind *kind = &route->kinds[rtype];
	const struct stoup_schema *schema = NULL;
	if (route->versions) {
		int rc = meet_shape(route, record, &schema, err);
		if (rc < 0)
			return rc;
	} else {
		schema = stoup_dbn_schema(rtype, route->meta.version, route->meta.schema);
	}
	if (schema && route->meta.has_ts_out) {
		int rc = stoup_dbn_ts_out(schema, &kind->with_ts_out, err);
		if (rc < 0)
			return rc;
		schema = &kind->with_ts_out;
	}
	kind->is_met = true;
	kind->schema = schema;
	if (!schema)
		return 0;
	kind->len = schema->stride;
	kind->key_off = schema->key_off;
	kind->is_of_session = rtype == STOUP_DBN_RTYPE_ERROR || rtype == STOUP_DBN_RTYPE_SYSTEM;
	if (!route->options->series)
		return 0;
	if (route->only)
		return stoup_error_set(err, -EINVAL,
			"holds %s and %s records, and one series has one schema: leave out "
			"--series, or give "
			"--one-stream",
			route->only->schema->name, schema->name);
	route->only = kind;
	return 0;
}

uint32_t stoup_dbn_route_versions(const struct stoup_dbn_route *route)
{
	return route->versions;
}

int stoup_dbn_route_kind(struct stoup_dbn_route *route, const struct stoup_dbn_record *record,
	const struct stoup_dbn_kind **ret, struct stoup_error *err)
{
	struct stoup_dbn_kind *kind = &route->kinds[record->rtype];
	if (!kind->is_met) {
		int rc = meet_kind(route, record, err);
		if (rc < 0)
			return rc;
	}
	*ret = kind;
	return 0;
}

/* ---- live symbols ---------------------------------------------------------------------------- */

static struct live *live_slot(const struct stoup_dbn_route *route, uint32_t instrument_id)
{
	uint32_t mask = route->live_cap - 1;
	uint32_t i = hash_of(instrument_id, 0, 0) & mask;
	while (route->live[i].text && route->live[i].instrument_id != instrument_id)
		i = (i + 1) & mask;
	return &route->live[i];
}

static int grow_live(struct stoup_dbn_route *route, struct stoup_error *err)
{
	struct live *old = route->live;
	uint32_t old_cap = route->live_cap;
	uint32_t cap = old_cap ? old_cap * 2 : LIVE_MIN;
	if (cap / 2 > LIVE_CAP)
		return stoup_error_set(err, -E2BIG,
			"symbol mapping records for more than %u instruments: split the file",
			LIVE_CAP);
	struct live *grown = calloc(cap, sizeof(*grown));
	if (!grown)
		return stoup_error_set(
			err, -ENOMEM, "no memory for the symbols of %u instruments", cap);
	route->live = grown;
	route->live_cap = cap;
	for (uint32_t i = 0; i < old_cap; i++) {
		if (old[i].text)
			*live_slot(route, old[i].instrument_id) = old[i];
	}
	free(old);
	return 0;
}

int stoup_dbn_route_learn(struct stoup_dbn_route *route, const struct stoup_dbn_record *record,
	struct stoup_error *err)
{
	char symbol[SYMBOL_CAP];
	if (stoup_dbn_mapped_symbol(record, route->meta.version, symbol, sizeof(symbol)) < 0 ||
		!*symbol)
		return 0;
	if (route->live_cnt * 2 >= route->live_cap) {
		int rc = grow_live(route, err);
		if (rc < 0)
			return rc;
	}
	struct live *live = live_slot(route, record->instrument_id);
	if (live->text && strcmp(live->text, symbol) == 0)
		return 0;
	char *text = strdup(symbol);
	if (!text)
		return stoup_error_set(err, -ENOMEM, "no memory for the symbol %s", symbol);
	route->live_cnt += !live->text;
	free(live->text);
	live->instrument_id = record->instrument_id;
	live->text = text;
	route->gen++;
	route->last = NULL;
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int add_target(struct stoup_dbn_route *route, uint32_t series_idx, struct slot *slot,
	struct stoup_error *err)
{
	for (uint32_t i = 0; i < slot->cnt; i++) {
		if (route->targets[slot->first + i] == series_idx)
			return 0; /* the same symbol twice in the mapping */
	}
	if (slot->cnt == STOUP_DBN_ALIAS_CAP)
		return stoup_error_set(err, -E2BIG,
			"instrument %u has more than %u symbols at once: give --one-stream",
			slot->instrument_id, STOUP_DBN_ALIAS_CAP);
	if (route->target_cnt == route->target_cap) {
		size_t cap = route->target_cap ? route->target_cap * 2 : SLOTS_MIN;
		uint32_t *grown = realloc(route->targets, cap * sizeof(*grown));
		if (!grown)
			return stoup_error_set(err, -ENOMEM, "no memory for %zu series", cap);
		route->targets = grown;
		route->target_cap = cap;
	}
	route->targets[route->target_cnt++] = series_idx;
	slot->cnt++;
	return 0;
}

static int open_series(struct stoup_dbn_route *route, const char *name,
	const struct stoup_schema *schema, struct slot *slot, struct stoup_error *err)
{
	int64_t idx = route->sink.series(route->sink.arg, name, schema, err);
	if (idx < 0)
		return (int)idx;
	return add_target(route, (uint32_t)idx, slot, err);
}

/* The one series of all symbols. */
static int open_only(struct stoup_dbn_route *route, const struct stoup_schema *schema,
	struct slot *slot, struct stoup_error *err)
{
	char name[STOUP_SERIES_NAME_CAP * 3];
	if (route->options->series)
		return open_series(route, route->options->series, schema, slot, err);
	int len =
		snprintf(name, sizeof(name), "%s/" ANY_SYMBOL "/%s", route->dataset, schema->name);
	if (len < 0 || len >= STOUP_SERIES_NAME_CAP)
		return stoup_error_set(err, -ENAMETOOLONG,
			"the dataset %.60s... is too long a name", route->dataset);
	return open_series(route, name, schema, slot, err);
}

static int add_symbol(struct stoup_dbn_route *route, const char *symbol,
	const struct stoup_schema *schema, struct slot *slot, struct stoup_error *err)
{
	char escaped[STOUP_SERIES_NAME_CAP];
	char name[STOUP_SERIES_NAME_CAP * 3];
	if (!stoup_intake_symbol(route->options->filter, symbol))
		return 0;
	if (route->options->series || route->options->one_stream)
		return open_only(route, schema, slot, err);
	int len = stoup_symbol_escape(symbol, escaped, sizeof(escaped));
	if (len >= 0)
		len = snprintf(
			name, sizeof(name), "%s/%s/%s", route->dataset, escaped, schema->name);
	if (len < 0 || len >= STOUP_SERIES_NAME_CAP)
		return stoup_error_set(err, -ENAMETOOLONG,
			"the symbol %.40s... of instrument %u makes a series name of more than %d "
			"bytes: give "
			"--one-stream or --series",
			symbol, slot->instrument_id, STOUP_SERIES_NAME_CAP - 1);
	return open_series(route, name, schema, slot, err);
}

/* All symbols of an instrument: those of the metadata, else what a mapping record said, else none:
 * its number. */
static int add_symbols(struct stoup_dbn_route *route, const struct stoup_schema *schema,
	struct slot *slot, struct stoup_error *err)
{
	uint32_t date = stoup_dbn_date(slot->day * DAY_NS);
	const char *symbol;
	char number[16];
	bool is_mapped = false;
	size_t pos = 0;
	while ((symbol = stoup_dbn_symbol_next(&route->meta, slot->instrument_id, date, &pos))) {
		int rc = add_symbol(route, symbol, schema, slot, err);
		if (rc < 0)
			return rc;
		is_mapped = true;
	}
	if (is_mapped)
		return 0;
	if (route->live_cap > 0 && live_slot(route, slot->instrument_id)->text)
		return add_symbol(
			route, live_slot(route, slot->instrument_id)->text, schema, slot, err);
	snprintf(number, sizeof(number), "%" PRIu32, slot->instrument_id);
	int rc = add_symbol(route, number, schema, slot, err);
	if (rc < 0 || slot->cnt == 0)
		return rc;
	slot->is_unmapped = 1;
	if (route->unmapped_cnt == 0)
		route->unmapped_id = slot->instrument_id;
	return 0;
}

static int resolve(struct stoup_dbn_route *route, struct slot *slot, struct stoup_error *err)
{
	const struct stoup_dbn_kind *kind = &route->kinds[slot->rtype];
	bool is_filtered = route->options->filter && route->options->filter->symbols;
	slot->first = (uint32_t)route->target_cnt;
	if ((route->options->series || route->options->one_stream) && !is_filtered)
		return open_only(route, kind->schema, slot, err);
	if (kind->is_of_session)
		return add_symbol(route, ANY_SYMBOL, kind->schema, slot, err);
	return add_symbols(route, kind->schema, slot, err);
}

/* ---- cache ----------------------------------------------------------------------------------- */

static struct slot *cache_slot(
	struct slot *slots, uint32_t cap, uint32_t instrument_id, uint32_t day, uint32_t rtype)
{
	uint32_t i = hash_of(instrument_id, day, rtype) & (cap - 1);
	while (slots[i].is_used && (slots[i].instrument_id != instrument_id ||
					   slots[i].day != day || slots[i].rtype != rtype))
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static void forget(struct stoup_dbn_route *route)
{
	memset(route->slots, 0, route->slot_cap * sizeof(*route->slots));
	route->slot_cnt = 0;
	route->target_cnt = 0;
	route->last = NULL;
}

/* Make room for one more entry: twice the table, or an empty one. */
static int make_room(struct stoup_dbn_route *route, struct stoup_error *err)
{
	uint32_t cap = route->slot_cap * 2;
	if (cap > SLOTS_MAX) {
		forget(route);
		return 0;
	}
	struct slot *grown = calloc(cap, sizeof(*grown));
	if (!grown)
		return stoup_error_set(err, -ENOMEM, "no memory for %u instruments", cap);
	for (uint32_t i = 0; i < route->slot_cap; i++) {
		const struct slot *old = &route->slots[i];
		if (old->is_used)
			*cache_slot(grown, cap, old->instrument_id, old->day, old->rtype) = *old;
	}
	free(route->slots);
	route->slots = grown;
	route->slot_cap = cap;
	route->last = NULL;
	return 0;
}

/* Find or make the entry; a stale one is resolved again in place (its old targets stay behind until
 * the cache is emptied, which happens before they grow beyond bounds). */
static int look_up(struct stoup_dbn_route *route, const struct stoup_dbn_record *record,
	uint32_t day, const struct slot **ret, struct stoup_error *err)
{
	struct slot *slot = cache_slot(
		route->slots, route->slot_cap, record->instrument_id, day, record->rtype);
	if (slot->is_used && slot->gen == route->gen) {
		*ret = slot;
		return 0;
	}
	if (route->target_cnt > 2 * SLOTS_MAX)
		forget(route);
	if (route->slot_cnt * 2 >= route->slot_cap) {
		int rc = make_room(route, err);
		if (rc < 0)
			return rc;
	}
	struct slot fresh = {
		.instrument_id = record->instrument_id,
		.day = day,
		.gen = route->gen,
		.rtype = record->rtype,
		.is_used = 1,
	};
	int rc = resolve(route, &fresh, err);
	if (rc < 0)
		return rc;
	slot = cache_slot(route->slots, route->slot_cap, record->instrument_id, day, record->rtype);
	route->slot_cnt += !slot->is_used;
	*slot = fresh;
	*ret = slot;
	return 0;
}

int stoup_dbn_route_find(struct stoup_dbn_route *route, const struct stoup_dbn_record *record,
	uint64_t key, struct stoup_dbn_targets *ret, struct stoup_error *err)
{
	uint32_t day = (uint32_t)(key / DAY_NS);
	const struct slot *slot = route->last;
	if (!slot || slot->instrument_id != record->instrument_id || slot->day != day ||
		slot->rtype != record->rtype) {
		int rc = look_up(route, record, day, &slot, err);
		if (rc < 0)
			return rc;
		route->last = slot;
	}
	route->unmapped_cnt += slot->is_unmapped;
	ret->series = route->targets + slot->first;
	ret->cnt = slot->cnt;
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

int stoup_dbn_route_create(const struct stoup_sink *sink, const struct stoup_dbn_options *options,
	struct stoup_dbn_meta *meta, struct stoup_dbn_route **ret, struct stoup_error *err)
{
	struct stoup_dbn_route *route = calloc(1, sizeof(*route));
	const char *dataset = *meta->dataset     ? meta->dataset
	                      : options->dataset ? options->dataset
	                                         : NO_DATASET;
	if (!route) {
		stoup_dbn_meta_fini(meta);
		return stoup_error_set(err, -ENOMEM, "no memory for the series of the file");
	}
	route->sink = *sink;
	route->options = options;
	route->meta = *meta;
	if (meta->version == 0) {
		route->versions = options->version ? 1u << options->version : 0xeu;
		route->meta.version = (uint8_t)__builtin_ctz(route->versions);
	}
	route->slot_cap = SLOTS_MIN;
	route->slots = calloc(SLOTS_MIN, sizeof(*route->slots));
	if (!route->slots) {
		stoup_dbn_route_destroy(route);
		return stoup_error_set(err, -ENOMEM, "no memory for the series of the file");
	}
	if (stoup_symbol_escape(dataset, route->dataset, sizeof(route->dataset)) < 0) {
		stoup_dbn_route_destroy(route);
		return stoup_error_set(err, -EINVAL,
			"--dataset %.60s...: a series name has at most %d bytes", dataset,
			STOUP_SERIES_NAME_CAP - 1);
	}
	*ret = route;
	return 0;
}

void stoup_dbn_route_destroy(struct stoup_dbn_route *route)
{
	if (!route)
		return;
	for (size_t i = 0; i < sizeof(route->kinds) / sizeof(route->kinds[0]); i++)
		stoup_dbn_ts_out_fini(&route->kinds[i].with_ts_out);
	for (uint32_t i = 0; i < route->live_cap; i++)
		free(route->live[i].text);
	stoup_dbn_meta_fini(&route->meta);
	free(route->live);
	free(route->targets);
	free(route->slots);
	free(route);
}

uint64_t stoup_dbn_route_unmapped(const struct stoup_dbn_route *route, uint32_t *ret_first_id)
{
	*ret_first_id = route->unmapped_id;
	return route->unmapped_cnt;
}
