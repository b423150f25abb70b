/* SPDX-License-Identifier: Apache-2.0 */
/* event64_dbn.c - DBN records to hftbacktest's events.
 *
 *      mbo             each record an order event: A add, C cancel, M modify, R clear, T trade, F fill
 *      trades, tbbo    each a trade
 *      mbp-1, mbp-10   a trade where the action is one, then what changed of the levels
 *
 * A book of N levels holds what the feed shows: a level that leaves the N is taken out of it.
 *
 * Invariant: a record whose price, size or time is undefined where its event needs it is an error, and so
 * are two instruments, or two kinds that tell of the same trades, in one series.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/event64_build.h"
#include "shm/decimal.h"
#include "shm/format.h"

#define PRICE_EXP10   (-9)
#define FLAG_SNAPSHOT 0x20u
#define TS_OUT        ".ts_out"
#define EVENT64       "event64"

enum kind {
	KIND_SKIP, /* tells of no price */
	KIND_MBO,
	KIND_TRADE,
	KIND_BOOK
};

/* A series of the DBN importer, and where its events go. */
struct source {
	enum kind kind;
	uint32_t series_idx; /* of the build */
	uint32_t level_cnt;
	uint32_t instrument_id;
	uint16_t publisher_id;
	int is_met;
	char name[STOUP_SERIES_NAME_CAP];
	char schema[STOUP_SCHEMA_NAME_CAP];
	const char *feed; /* the schema without ".ts_out" */
};

struct convert {
	struct stoup_event64_build *build;
	const struct stoup_event64_options *options;
	const char *file;
	struct source **sources;
	uint32_t source_cnt, source_cap;
	uint64_t skipped_cnt, silent_cnt;
};

/* ---- series ----------------------------------------------------------------------------------- */

static int kind_of(const char *schema, struct source *source, struct stoup_error *err)
{
	static const struct {
		const char *name;
		enum kind kind;
		uint32_t level_cnt;
	} kinds[] = {{"mbo", KIND_MBO, 0}, {"trades", KIND_TRADE, 0}, {"tbbo", KIND_TRADE, 0},
		{"mbp-1", KIND_BOOK, 1}, {"mbp-10", KIND_BOOK, 10}, {"status", KIND_SKIP, 0},
		{"definition", KIND_SKIP, 0}, {"definition-v1", KIND_SKIP, 0},
		{"definition-v2", KIND_SKIP, 0}, {"statistics", KIND_SKIP, 0},
		{"statistics-v1", KIND_SKIP, 0}, {"imbalance", KIND_SKIP, 0},
		{"error", KIND_SKIP, 0}, {"error-v1", KIND_SKIP, 0},
		{"symbol-mapping", KIND_SKIP, 0}, {"symbol-mapping-v1", KIND_SKIP, 0},
		{"system", KIND_SKIP, 0}, {"system-v1", KIND_SKIP, 0}};
	size_t len = strlen(schema);

	if (len > strlen(TS_OUT) && strcmp(schema + len - strlen(TS_OUT), TS_OUT) == 0)
		len -= strlen(TS_OUT);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i].name) != len || memcmp(kinds[i].name, schema, len) != 0)
			continue;
		source->feed = kinds[i].name;
		source->kind = kinds[i].kind;
		source->level_cnt = kinds[i].level_cnt;
		return 0;
	}
	return stoup_error_set(err, -ENOTSUP,
		"%.31s records do not become events: mbo, trades, tbbo, mbp-1 and mbp-10 do",
		schema);
}

/* DATASET/SYMBOL/mbo is DATASET/SYMBOL/event64; a name that the user gave stays. */
static void name_of(const struct convert *c, const char *name, char dst[STOUP_SERIES_NAME_CAP])
{
	const char *slash = c->options->series ? NULL : strrchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) + 1 : strlen(name);

	if (len + sizeof(EVENT64) > STOUP_SERIES_NAME_CAP)
		len = STOUP_SERIES_NAME_CAP - sizeof(EVENT64);
	memcpy(dst, name, len);
	strcpy(dst + len, slash ? EVENT64 : "");
}

/* The DBN importer asks for the same series again where its cache was emptied. */
static int64_t source_find(struct convert *c, const char *name, const char *schema)
{
	for (uint32_t i = c->source_cnt; i-- > 0;)
		if (strcmp(c->sources[i]->name, name) == 0 &&
			strcmp(c->sources[i]->schema, schema) == 0)
			return i;
	return -1;
}

static int source_add(struct convert *c, struct source *source)
{
	struct source **grown;
	uint32_t cap = c->source_cap ? c->source_cap * 2 : 16;

	if (c->source_cnt == c->source_cap) {
		grown = realloc(c->sources, cap * sizeof(struct source *));
		if (!grown)
			return -ENOMEM;
		c->sources = grown;
		c->source_cap = cap;
	}
	c->sources[c->source_cnt++] = source;
	return 0;
}

static int64_t sink_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	struct convert *c = arg;
	struct source *source;
	char events[STOUP_SERIES_NAME_CAP];
	int64_t idx = source_find(c, name, schema->name);
	int rc;

	if (idx >= 0)
		return idx;
	source = calloc(1, sizeof(*source));
	if (!source)
		return stoup_error_set(err, -ENOMEM, "no memory for a series");
	snprintf(source->name, sizeof(source->name), "%s", name);
	snprintf(source->schema, sizeof(source->schema), "%s", schema->name);
	rc = kind_of(schema->name, source, err);
	if (rc == 0 && source->kind != KIND_SKIP) {
		name_of(c, name, events);
		idx = stoup_event64_build_series(c->build, events, err);
		rc = idx < 0 ? (int)idx : 0;
		source->series_idx = (uint32_t)idx;
	}
	if (rc == 0 && source->kind != KIND_SKIP)
		rc = stoup_event64_build_claim(c->build, source->series_idx, source->feed,
			source->kind == KIND_TRADE ? STOUP_EVENT64_TRADES
						   : STOUP_EVENT64_TRADES | STOUP_EVENT64_BOOK,
			err);
	if (rc == 0 && source_add(c, source) < 0)
		rc = stoup_error_set(err, -ENOMEM, "no memory for a series");
	if (rc < 0) {
		free(source);
		return rc;
	}
	return c->source_cnt - 1;
}

/* ---- values ----------------------------------------------------------------------------------- */

static int refuse(const struct stoup_where *where, const char *what, struct stoup_error *err)
{
	return stoup_error_set(err, -EBADMSG, "%.150s, offset %llu: %s", where->file,
		(unsigned long long)where->file_off, what);
}

static int price_get(int64_t price, double *ret)
{
	if (price == INT64_MAX)
		return -EBADMSG;
	*ret = stoup_decimal_double(price, PRICE_EXP10);
	return 0;
}

static int side_get(char side, uint64_t *ev)
{
	if (side == 'B')
		*ev |= STOUP_EV_BUY;
	else if (side == 'A')
		*ev |= STOUP_EV_SELL;
	else if (side != 'N')
		return -EBADMSG;
	return 0;
}

/* What of a record becomes an event. */
struct facts {
	uint64_t ts_event, ts_recv, order_id;
	int64_t price;
	uint32_t size;
	uint8_t flags;
	char action, side;
};

/* Order events keep the record's flags, as hftbacktest's own converter does. */
static int event_make(const struct facts *facts, uint64_t kind, int has_price,
	const struct stoup_where *where, struct stoup_event64 *ret, struct stoup_error *err)
{
	struct stoup_event64 event = {.ev = kind, .order_id = facts->order_id};

	if (facts->ts_event > INT64_MAX || facts->ts_recv > INT64_MAX)
		return refuse(where, "the record has no time (ts_event, ts_recv)", err);
	event.local_ts = (int64_t)facts->ts_recv;
	/* A snapshot happens when it is sent; its ts_event are those of the orders in it. */
	event.exch_ts = facts->flags & FLAG_SNAPSHOT ? event.local_ts : (int64_t)facts->ts_event;
	if (side_get(facts->side, &event.ev) < 0)
		return refuse(where, "the side is not A, B or N", err);
	if (!has_price) {
		event.px = NAN;
	} else {
		if (price_get(facts->price, &event.px) < 0)
			return refuse(where, "the record has no price", err);
		if (facts->size == UINT32_MAX)
			return refuse(where, "the record has no size", err);
		event.qty = facts->size;
	}
	*ret = event;
	return 0;
}

static int event_add(struct convert *c, const struct source *source, const struct facts *facts,
	uint64_t kind, const struct stoup_where *where, struct stoup_error *err)
{
	struct stoup_event64 event;
	int rc = event_make(facts, kind, kind != STOUP_EV_CLEAR, where, &event, err);

	if (rc < 0)
		return rc;
	if (source->kind == KIND_MBO)
		event.ival = facts->flags;
	return stoup_event64_build_add(c->build, source->series_idx, &event, where, err);
}

/* ---- records ---------------------------------------------------------------------------------- */

static int put_mbo(struct convert *c, const struct source *source, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	static const char actions[] = "ACMRTF";
	static const uint64_t kinds[] = {STOUP_EV_ADD, STOUP_EV_CANCEL, STOUP_EV_MODIFY,
		STOUP_EV_CLEAR, STOUP_EV_TRADE, STOUP_EV_FILL};
	struct stoup_mbo mbo;
	const char *found;

	memcpy(&mbo, record, sizeof(mbo));
	if (mbo.action == 'N') {
		c->silent_cnt++;
		return 0;
	}
	found = mbo.action ? strchr(actions, mbo.action) : NULL;
	if (!found)
		return refuse(where, "the action is not one of A C M R T F N", err);
	return event_add(c, source,
		&(struct facts){mbo.hd.ts_event, mbo.ts_recv, mbo.order_id, mbo.price, mbo.size,
			mbo.flags, mbo.action, mbo.side},
		kinds[found - actions], where, err);
}

static struct facts trade_facts(const void *record)
{
	struct stoup_trade trade;

	memcpy(&trade, record, sizeof(trade));
	return (struct facts){trade.hd.ts_event, trade.ts_recv, 0, trade.price, trade.size,
		trade.flags, trade.action, trade.side};
}

/* The levels of both sides behind the part that all of these records share. */
static int levels_get(const struct source *source, const uint8_t *at,
	struct stoup_event64_side *bids, struct stoup_event64_side *asks)
{
	bids->cnt = asks->cnt = 0;
	for (uint32_t i = 0; i < source->level_cnt; i++) {
		struct stoup_level level;

		memcpy(&level, at + i * sizeof(level), sizeof(level));
		if (level.bid_px != INT64_MAX && level.bid_sz != 0) {
			if (level.bid_sz == UINT32_MAX)
				return -EBADMSG;
			bids->levels[bids->cnt++] = (struct stoup_event64_level){
				stoup_decimal_double(level.bid_px, PRICE_EXP10), level.bid_sz};
		}
		if (level.ask_px != INT64_MAX && level.ask_sz != 0) {
			if (level.ask_sz == UINT32_MAX)
				return -EBADMSG;
			asks->levels[asks->cnt++] = (struct stoup_event64_level){
				stoup_decimal_double(level.ask_px, PRICE_EXP10), level.ask_sz};
		}
	}
	return 0;
}

static int put_book(struct convert *c, struct source *source, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct facts facts = trade_facts(record), depth = facts;
	struct stoup_event64_side bids, asks;
	struct stoup_event64 event;
	int rc = 0;

	/* The trade first: hftbacktest takes it and the depth behind it off the same queue. */
	if (facts.action == 'T')
		rc = event_add(c, source, &facts, STOUP_EV_TRADE, where, err);
	if (facts.action == 'R') {
		stoup_event64_book_clear(c->build, source->series_idx);
		facts.side = 'N';
		rc = event_make(&facts, STOUP_EV_CLEAR, 0, where, &event, err);
		if (rc == 0)
			rc = stoup_event64_book_times(
				c->build, source->series_idx, &event, where, err);
		if (rc == 0)
			rc = stoup_event64_build_add(
				c->build, source->series_idx, &event, where, err);
	}
	if (rc < 0)
		return rc;
	if (levels_get(source, (const uint8_t *)record + sizeof(struct stoup_trade), &bids, &asks) <
		0)
		return refuse(where, "a level has a price and no size", err);
	depth.side = 'B';
	rc = event_make(&depth, STOUP_EV_DEPTH, 0, where, &event, err);
	if (rc == 0)
		rc = stoup_event64_side_add(
			c->build, source->series_idx, &event, &bids, where, err);
	event.ev = STOUP_EV_DEPTH | STOUP_EV_SELL;
	if (rc == 0)
		rc = stoup_event64_side_add(
			c->build, source->series_idx, &event, &asks, where, err);
	return rc;
}

/* Files of one --series tell of one instrument; without it the symbol tells them apart, whose number may be
 * another one each day. */
static int source_meet(struct convert *c, struct source *source,
	const struct stoup_dbn_header *header, struct stoup_error *err)
{
	char text[32];

	source->is_met = 1;
	source->instrument_id = header->instrument_id;
	source->publisher_id = header->publisher_id;
	if (!c->options->series)
		return 0;
	snprintf(text, sizeof(text), "instrument %u", header->instrument_id);
	return stoup_event64_build_source(c->build, source->series_idx, text, err);
}

static int instrument_check(struct convert *c, struct source *source, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct stoup_dbn_header header;

	memcpy(&header, record, sizeof(header));
	if (!source->is_met)
		return source_meet(c, source, &header, err);
	if (header.instrument_id != source->instrument_id)
		return stoup_error_set(err, -EINVAL,
			"%.150s, offset %llu: the series %.100s has records of instruments %u and %u, and a book "
			"has one: %s",
			where->file, (unsigned long long)where->file_off, source->name,
			source->instrument_id, header.instrument_id,
			c->options->series
				? "give a file of one, or leave --series out where its symbols "
				  "tell them apart"
				: "give a file of one");
	/* Trades of several venues are one tape, but their books are not one book. */
	if (source->kind != KIND_TRADE && header.publisher_id != source->publisher_id)
		return stoup_error_set(err, -EINVAL,
			"%.150s, offset %llu: the series %.100s has books of publishers %u and %u, and a book is "
			"of one venue: give a file of one",
			where->file, (unsigned long long)where->file_off, source->name,
			source->publisher_id, header.publisher_id);
	return 0;
}

static int sink_put(void *arg, uint32_t source_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct convert *c = arg;
	struct source *source = c->sources[source_idx];
	struct facts facts;
	int rc;

	(void)key;
	if (source->kind == KIND_SKIP) {
		c->skipped_cnt++;
		return 0;
	}
	rc = instrument_check(c, source, record, where, err);
	if (rc < 0)
		return rc;
	if (source->kind == KIND_MBO)
		return put_mbo(c, source, record, where, err);
	if (source->kind == KIND_BOOK)
		return put_book(c, source, record, where, err);
	facts = trade_facts(record);
	return event_add(c, source, &facts, STOUP_EV_TRADE, where, err);
}

static void sink_note(void *arg, const char *text)
{
	const struct convert *c = arg;

	stoup_event64_note(c->options, "%s", text);
}

int stoup_event64_dbn(struct stoup_event64_build *build, struct stoup_input *input,
	const struct stoup_event64_options *options, struct stoup_error *err)
{
	struct convert c = {.build = build, .options = options, .file = stoup_input_name(input)};
	const struct stoup_sink sink = {
		.arg = &c, .series = sink_series, .put = sink_put, .note = sink_note};
	const struct stoup_dbn_options dbn = {
		.series = options->series, .allow_partial = options->allow_partial};
	int rc;

	stoup_event64_build_file(build, c.file);
	rc = stoup_ingest_dbn(&sink, input, &dbn, err);
	if (rc == 0 && c.skipped_cnt > 0)
		stoup_event64_note(options,
			"%s: %llu record%s left out that tell%s of no price (definitions, status...)",
			c.file, (unsigned long long)c.skipped_cnt, STOUP_PLURAL(c.skipped_cnt),
			c.skipped_cnt == 1 ? "s" : "");
	if (rc == 0 && c.silent_cnt > 0)
		stoup_event64_note(options, "%s: %llu record%s without an action left out", c.file,
			(unsigned long long)c.silent_cnt, STOUP_PLURAL(c.silent_cnt));
	for (uint32_t i = 0; i < c.source_cnt; i++)
		free(c.sources[i]);
	free(c.sources);
	return rc;
}
