/* SPDX-License-Identifier: Apache-2.0 */
/* dbn_meta.c - DBN's metadata: a parser that is fed, and the lookup of symbols.
 *
 *      FIXED -> COUNT -> SKIP -> COUNT -> SKIP -> COUNT -> SKIP -> MAPPINGS -> MAPPING -> INTERVAL
 *               symbols          partial          not found       (count) |      ^         | ^ |
 *                                                                         |      +---------+ +-+
 *                                                                         +--> TAIL <------+
 *
 * Each state wants a fixed number of bytes, takes them whole and says what comes next; a count is
 * compared with the bytes that the metadata have left before it is believed.
 */
#include "producer/dbn.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIXED_LEN     104u /* up to and with schema_definition_length */
#define V1_SYMBOL_LEN 22u
#define NO_SYMBOL     UINT32_MAX

enum state {
	STATE_FIXED,
	STATE_COUNT,
	STATE_SKIP,
	STATE_MAPPINGS,
	STATE_MAPPING,
	STATE_INTERVAL,
	STATE_TAIL,
};

struct stoup_dbn_parser {
	struct stoup_dbn_meta meta;
	uint32_t meta_len;
	uint32_t left;    /* bytes behind the current row, or not consumed between rows */
	uint64_t want;    /* bytes of the current state; SKIP and TAIL take them piecewise */
	uint64_t row_off; /* where the current row begins, from the start of the stream */
	enum state state;
	uint32_t tables; /* plain symbol tables already seen, of three */
	uint32_t mappings_left;
	uint32_t intervals_left; /* of the current mapping */
	uint32_t mapping_id;     /* the current mapping's own symbol as a number */
	uint32_t mapping_off;    /* and its text; NO_SYMBOL: not stored yet */
	bool mapping_is_id;
	size_t interval_cap;
	size_t symbols_cap;
	char *mapping_text; /* symbol_len + 1 bytes */
};

static uint32_t load_u32(const uint8_t *bytes)
{
	uint32_t value;
	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* ---- storage --------------------------------------------------------------------------------- */

static int add_symbol(struct stoup_dbn_parser *parser, const char *text, size_t len, uint32_t *ret,
	struct stoup_error *err)
{
	struct stoup_dbn_meta *meta = &parser->meta;
	if (meta->symbols_len + len + 1 > STOUP_DBN_TEXT_CAP)
		return stoup_error_set(err, -E2BIG,
			"more than %u MiB of symbols in the mapping at offset %llu: split the file",
			STOUP_DBN_TEXT_CAP >> 20, (unsigned long long)parser->row_off);
	if (meta->symbols_len + len + 1 > parser->symbols_cap) {
		size_t cap = (meta->symbols_len + len + 1) * 2;
		char *grown = realloc(meta->symbols, cap);
		if (!grown)
			return stoup_error_set(
				err, -ENOMEM, "no memory for %zu bytes of symbols", cap);
		meta->symbols = grown;
		parser->symbols_cap = cap;
	}
	*ret = (uint32_t)meta->symbols_len;
	memcpy(meta->symbols + meta->symbols_len, text, len);
	meta->symbols[meta->symbols_len + len] = 0;
	meta->symbols_len += len + 1;
	return 0;
}

static int add_interval(struct stoup_dbn_parser *parser, const struct stoup_dbn_interval *interval,
	struct stoup_error *err)
{
	struct stoup_dbn_meta *meta = &parser->meta;
	if (meta->interval_cnt == STOUP_DBN_INTERVAL_CAP)
		return stoup_error_set(err, -E2BIG,
			"more than %u intervals in the symbol mapping at offset %llu: split the "
			"file",
			STOUP_DBN_INTERVAL_CAP, (unsigned long long)parser->row_off);
	if (meta->interval_cnt == parser->interval_cap) {
		size_t cap = parser->interval_cap ? parser->interval_cap * 2 : 64;
		struct stoup_dbn_interval *grown = realloc(meta->intervals, cap * sizeof(*grown));
		if (!grown)
			return stoup_error_set(err, -ENOMEM, "no memory for %zu intervals", cap);
		meta->intervals = grown;
		parser->interval_cap = cap;
	}
	meta->intervals[meta->interval_cnt++] = *interval;
	return 0;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void enter(struct stoup_dbn_parser *parser, enum state state, uint64_t want)
{
	parser->state = state;
	parser->want = want;
}

static void enter_mapping(struct stoup_dbn_parser *parser)
{
	if (parser->intervals_left > 0)
		enter(parser, STATE_INTERVAL, 8u + parser->meta.symbol_len);
	else if (parser->mappings_left > 0)
		enter(parser, STATE_MAPPING, 4u + parser->meta.symbol_len);
	else
		enter(parser, STATE_TAIL, parser->left);
}

static int take_fixed(
	struct stoup_dbn_parser *parser, const uint8_t *bytes, struct stoup_error *err)
{
	struct stoup_dbn_meta *meta = &parser->meta;
	/* Version 1 has a record count of 8 bytes between limit and stype_in. */
	size_t base = meta->version == 1 ? 50 : 42;
	memcpy(meta->dataset, bytes, STOUP_DBN_DATASET_LEN);
	memcpy(&meta->schema, bytes + 16, 2);
	memcpy(&meta->start_ns, bytes + 18, 8);
	memcpy(&meta->end_ns, bytes + 26, 8);
	meta->stype_in = bytes[base];
	meta->stype_out = bytes[base + 1];
	meta->has_ts_out = bytes[base + 2] != 0;
	meta->symbol_len = V1_SYMBOL_LEN;
	if (meta->version > 1)
		memcpy(&meta->symbol_len, bytes + base + 3, 2);
	if (meta->symbol_len == 0)
		return stoup_error_set(err, -EBADMSG,
			"symbol length of 0 in the metadata, at offset %zu",
			STOUP_DBN_PRELUDE_LEN + base + 3);
	if (load_u32(bytes + 100) != 0)
		return stoup_error_set(err, -EBADMSG,
			"schema definition of %u bytes at offset 108: no DBN version up to %d has "
			"one",
			load_u32(bytes + 100), STOUP_DBN_VERSION_MAX);
	parser->mapping_text = malloc(meta->symbol_len + 1u);
	if (!parser->mapping_text)
		return stoup_error_set(err, -ENOMEM, "no memory for the metadata");
	enter(parser, STATE_COUNT, 4);
	return 0;
}

/* `cnt` rows of `row_len` bytes at least must lie before the end of the metadata. */
static int check_room(const struct stoup_dbn_parser *parser, uint32_t cnt, uint32_t row_len,
	const char *what, struct stoup_error *err)
{
	if ((uint64_t)cnt * row_len <= parser->left)
		return 0;
	return stoup_error_set(err, -EBADMSG,
		"the metadata row at offset %llu claims %u %s, but there is room for %u: the file "
		"is "
		"damaged",
		(unsigned long long)parser->row_off, cnt, what, parser->left / row_len);
}

static int take_count(
	struct stoup_dbn_parser *parser, const uint8_t *bytes, struct stoup_error *err)
{
	static const char *const names[] = {"symbols", "partial symbols", "symbols not found"};
	uint32_t cnt = load_u32(bytes);
	int rc = check_room(parser, cnt, parser->meta.symbol_len, names[parser->tables], err);
	if (rc < 0)
		return rc;
	parser->tables++;
	enter(parser, STATE_SKIP, (uint64_t)cnt * parser->meta.symbol_len);
	return 0;
}

static int take_mappings(
	struct stoup_dbn_parser *parser, const uint8_t *bytes, struct stoup_error *err)
{
	uint32_t cnt = load_u32(bytes);
	int rc = check_room(parser, cnt, 4u + parser->meta.symbol_len, "mappings", err);
	if (rc < 0)
		return rc;
	parser->mappings_left = cnt;
	enter_mapping(parser);
	return 0;
}

/* A text of decimal digits that fits an instrument id. */
static bool id_of(const char *text, size_t len, uint32_t *ret)
{
	uint64_t value = 0;
	if (len == 0 || len > 10)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	*ret = (uint32_t)value;
	return value <= UINT32_MAX;
}

static int take_mapping(
	struct stoup_dbn_parser *parser, const uint8_t *bytes, struct stoup_error *err)
{
	uint32_t symbol_len = parser->meta.symbol_len;
	uint32_t cnt = load_u32(bytes + symbol_len);
	int rc = check_room(parser, cnt, 8u + symbol_len, "intervals of a mapping", err);
	if (rc < 0)
		return rc;
	size_t len = strnlen((const char *)bytes, symbol_len);
	memcpy(parser->mapping_text, bytes, len);
	parser->mapping_text[len] = 0;
	parser->mapping_off = NO_SYMBOL;
	parser->mapping_is_id = id_of(parser->mapping_text, len, &parser->mapping_id);
	parser->mappings_left--;
	parser->intervals_left = cnt;
	enter_mapping(parser);
	return 0;
}

/* Which side of a mapping is the instrument id depends on the request: symbols were asked for and
 * resolved to ids (the normal case), or ids to symbols. Rows in which that side is no number (an
 * interval without a result is empty) say nothing about any instrument. */
static int take_interval(
	struct stoup_dbn_parser *parser, const uint8_t *bytes, struct stoup_error *err)
{
	const struct stoup_dbn_meta *meta = &parser->meta;
	const char *text = (const char *)bytes + 8;
	size_t len = strnlen(text, meta->symbol_len);
	struct stoup_dbn_interval interval = {
		.start_date = load_u32(bytes),
		.end_date = load_u32(bytes + 4),
	};
	int rc = 0;
	parser->intervals_left--;
	enter_mapping(parser);
	if (interval.start_date > interval.end_date)
		return stoup_error_set(err, -EBADMSG,
			"the mapping of %.80s has an interval that ends (%u) before it begins (%u), at "
			"offset %llu: the file is damaged",
			parser->mapping_text, interval.end_date, interval.start_date,
			(unsigned long long)parser->row_off);
	if (interval.start_date == interval.end_date)
		return 0;
	if (meta->stype_out == STOUP_DBN_STYPE_INSTRUMENT_ID) {
		if (!id_of(text, len, &interval.instrument_id) || !*parser->mapping_text)
			return 0;
		if (parser->mapping_off == NO_SYMBOL)
			rc = add_symbol(parser, parser->mapping_text, strlen(parser->mapping_text),
				&parser->mapping_off, err);
		interval.symbol_off = parser->mapping_off;
	} else if (meta->stype_in == STOUP_DBN_STYPE_INSTRUMENT_ID) {
		if (!parser->mapping_is_id || len == 0)
			return 0;
		interval.instrument_id = parser->mapping_id;
		rc = add_symbol(parser, text, len, &interval.symbol_off, err);
	} else {
		return 0;
	}
	return rc < 0 ? rc : add_interval(parser, &interval, err);
}

/* ---- feeding --------------------------------------------------------------------------------- */

static int take(struct stoup_dbn_parser *parser, const uint8_t *bytes, struct stoup_error *err)
{
	switch (parser->state) {
	case STATE_FIXED:
		return take_fixed(parser, bytes, err);
	case STATE_COUNT:
		return take_count(parser, bytes, err);
	case STATE_MAPPINGS:
		return take_mappings(parser, bytes, err);
	case STATE_MAPPING:
		return take_mapping(parser, bytes, err);
	case STATE_INTERVAL:
		return take_interval(parser, bytes, err);
	case STATE_SKIP:
	case STATE_TAIL:
		break;
	}
	return 0;
}

/* Behind the tables there is padding at most: anything else was written for other tables than those of
 * the version that the file claims. */
static int check_padding(const struct stoup_dbn_parser *parser, const uint8_t *bytes, size_t len,
	struct stoup_error *err)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i])
			return stoup_error_set(err, -EBADMSG,
				"the metadata's tables end at offset %u, but what follows them up to "
				"offset %u is no padding: the file is damaged, or is not of version %u as "
				"it says",
				STOUP_DBN_PRELUDE_LEN + parser->meta_len - parser->left,
				STOUP_DBN_PRELUDE_LEN + parser->meta_len, parser->meta.version);
	}
	return 0;
}

static int64_t skip(
	struct stoup_dbn_parser *parser, const uint8_t *bytes, size_t len, struct stoup_error *err)
{
	if (len > parser->want)
		len = (size_t)parser->want;
	int rc = parser->state == STATE_TAIL ? check_padding(parser, bytes, len, err) : 0;
	if (rc < 0)
		return rc;
	parser->want -= len;
	parser->left -= (uint32_t)len;
	if (parser->want == 0 && parser->state == STATE_SKIP)
		enter(parser, parser->tables < 3 ? STATE_COUNT : STATE_MAPPINGS, 4);
	return (int64_t)len;
}

static int refuse_short(const struct stoup_dbn_parser *parser, struct stoup_error *err)
{
	return stoup_error_set(err, -EBADMSG,
		"the metadata end at offset %u, inside their tables: the file is damaged",
		STOUP_DBN_PRELUDE_LEN + parser->meta_len);
}

/* One state, or a piece of a skipped one. Returns bytes consumed, 0: more are needed, or the state
 * was an empty one. */
static int64_t step(
	struct stoup_dbn_parser *parser, const uint8_t *bytes, size_t len, struct stoup_error *err)
{
	if (parser->state == STATE_SKIP || parser->state == STATE_TAIL)
		return skip(parser, bytes, len, err);
	uint32_t want = (uint32_t)parser->want;
	if (want > parser->left)
		return refuse_short(parser, err);
	if (len < want)
		return 0;
	parser->row_off = STOUP_DBN_PRELUDE_LEN + (uint64_t)(parser->meta_len - parser->left);
	parser->left -= want;
	int rc = take(parser, bytes, err);
	return rc < 0 ? rc : (int64_t)want;
}

int64_t stoup_dbn_parser_feed(
	struct stoup_dbn_parser *parser, const uint8_t *bytes, size_t len, struct stoup_error *err)
{
	size_t used = 0;
	while (parser->left > 0) {
		enum state before = parser->state;
		int64_t got = step(parser, bytes + used, len - used, err);
		if (got < 0)
			return got;
		used += (size_t)got;
		if (got == 0 && parser->state == before)
			break;
	}
	if (parser->left == 0 && parser->state != STATE_TAIL)
		return refuse_short(parser, err);
	return (int64_t)used;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct stoup_dbn_parser *stoup_dbn_parser_create(const struct stoup_dbn_prelude *prelude)
{
	struct stoup_dbn_parser *parser = calloc(1, sizeof(*parser));
	if (!parser)
		return NULL;
	parser->meta.version = prelude->version;
	parser->meta_len = prelude->meta_len;
	parser->left = prelude->meta_len;
	enter(parser, STATE_FIXED, FIXED_LEN);
	return parser;
}

uint32_t stoup_dbn_parser_left(const struct stoup_dbn_parser *parser)
{
	return parser->left;
}

/* By instrument; the order of the file (that of symbol_off or of the row) among equal ones. */
static int compare(const void *lhs, const void *rhs)
{
	const struct stoup_dbn_interval *a = lhs;
	const struct stoup_dbn_interval *b = rhs;
	if (a->instrument_id != b->instrument_id)
		return a->instrument_id < b->instrument_id ? -1 : 1;
	if (a->symbol_off != b->symbol_off)
		return a->symbol_off < b->symbol_off ? -1 : 1;
	return (a->start_date > b->start_date) - (a->start_date < b->start_date);
}

/* By mapping, then by time. The mapping is its symbol, or the instrument where those were asked for. */
static int compare_symbol(const void *lhs, const void *rhs)
{
	const struct stoup_dbn_interval *a = lhs;
	const struct stoup_dbn_interval *b = rhs;
	if (a->symbol_off != b->symbol_off)
		return a->symbol_off < b->symbol_off ? -1 : 1;
	return (a->start_date > b->start_date) - (a->start_date < b->start_date);
}

static int compare_instrument(const void *lhs, const void *rhs)
{
	const struct stoup_dbn_interval *a = lhs;
	const struct stoup_dbn_interval *b = rhs;
	if (a->instrument_id != b->instrument_id)
		return a->instrument_id < b->instrument_id ? -1 : 1;
	return (a->start_date > b->start_date) - (a->start_date < b->start_date);
}

static int refuse_overlap(const struct stoup_dbn_meta *meta, const struct stoup_dbn_interval *a,
	const struct stoup_dbn_interval *b, struct stoup_error *err)
{
	const char *symbol = meta->symbols + a->symbol_off;
	if (meta->stype_out == STOUP_DBN_STYPE_INSTRUMENT_ID)
		return stoup_error_set(err, -EBADMSG,
			"the mapping of %.70s has intervals that overlap: %u to %u is instrument %u, %u "
			"to %u is %u: the file is damaged",
			symbol, a->start_date, a->end_date, a->instrument_id, b->start_date,
			b->end_date, b->instrument_id);
	return stoup_error_set(err, -EBADMSG,
		"the mapping of instrument %u has intervals that overlap: %u to %u is %.40s, %u to %u "
		"is %.40s: the file is damaged",
		a->instrument_id, a->start_date, a->end_date, symbol, b->start_date, b->end_date,
		meta->symbols + b->symbol_off);
}

/* Two answers for one day are none. A parent stands for all its children at once, and mixed types of
 * symbols may have parents among them. */
static int check_overlaps(struct stoup_dbn_meta *meta, struct stoup_error *err)
{
	struct stoup_dbn_interval *rows = meta->intervals;
	bool by_symbol = meta->stype_out == STOUP_DBN_STYPE_INSTRUMENT_ID;
	size_t latest = 0; /* of this mapping, the interval that ends last */
	if (meta->stype_in == STOUP_DBN_STYPE_PARENT || meta->stype_in == STOUP_DBN_STYPE_MIXED)
		return 0;
	qsort(rows, meta->interval_cnt, sizeof(*rows),
		by_symbol ? compare_symbol : compare_instrument);
	for (size_t i = 1; i < meta->interval_cnt; i++) {
		bool is_same = by_symbol ? rows[i].symbol_off == rows[latest].symbol_off
		                         : rows[i].instrument_id == rows[latest].instrument_id;
		if (is_same && rows[i].start_date < rows[latest].end_date)
			return refuse_overlap(meta, &rows[latest], &rows[i], err);
		if (!is_same || rows[i].end_date > rows[latest].end_date)
			latest = i;
	}
	return 0;
}

int stoup_dbn_parser_take(
	struct stoup_dbn_parser *parser, struct stoup_dbn_meta *ret, struct stoup_error *err)
{
	struct stoup_dbn_meta *meta = &parser->meta;
	if (meta->interval_cnt > 0) {
		int rc = check_overlaps(meta, err);
		if (rc < 0)
			return rc;
		qsort(meta->intervals, meta->interval_cnt, sizeof(*meta->intervals), compare);
	}
	*ret = *meta;
	*meta = (struct stoup_dbn_meta){0};
	return 0;
}

void stoup_dbn_parser_destroy(struct stoup_dbn_parser *parser)
{
	if (!parser)
		return;
	stoup_dbn_meta_fini(&parser->meta);
	free(parser->mapping_text);
	free(parser);
}

void stoup_dbn_meta_fini(struct stoup_dbn_meta *meta)
{
	free(meta->intervals);
	free(meta->symbols);
	meta->intervals = NULL;
	meta->symbols = NULL;
	meta->interval_cnt = 0;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static size_t first_of(const struct stoup_dbn_meta *meta, uint32_t instrument_id)
{
	size_t lo = 0;
	size_t hi = meta->interval_cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (meta->intervals[mid].instrument_id < instrument_id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const char *stoup_dbn_symbol_next(
	const struct stoup_dbn_meta *meta, uint32_t instrument_id, uint32_t date, size_t *pos)
{
	size_t i = *pos ? *pos : first_of(meta, instrument_id);
	for (; i < meta->interval_cnt; i++) {
		const struct stoup_dbn_interval *interval = &meta->intervals[i];
		if (interval->instrument_id != instrument_id)
			break;
		if (date < interval->start_date || date >= interval->end_date)
			continue;
		*pos = i + 1;
		return meta->symbols + interval->symbol_off;
	}
	*pos = meta->interval_cnt;
	return NULL;
}
