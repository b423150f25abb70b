/* SPDX-License-Identifier: Apache-2.0 */
/* itch.c - the checks that every message passes, stocks, series, and messages that are taken as they are
 * (see itch.h). */
#include "producer/itch_private.h"
#include "shm/format.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOCK_CNT 65536u
#define NAME_LEN  8u
#define TEXT_CAP  256
#define MARKET    "MARKET"
#define DAY_NS    UINT64_C(86400000000000)

/* A few messages in a row without lengths might be chance, so many are not. */
#define BARE_ENOUGH 6u

struct shape {
	uint8_t len;      /* bytes of the message; 0: unknown */
	uint8_t name_off; /* of the stock's name; 0: the message has none */
	uint8_t is_market;
};

/* By type; lengths and offsets of the specification. */
static const struct shape shapes[256] = {
	['S'] = {12, 0, 1},
	['R'] = {39, 11, 0},
	['H'] = {25, 11, 0},
	['Y'] = {20, 11, 0},
	['L'] = {26, 15, 0},
	['V'] = {35, 0, 1},
	['W'] = {12, 0, 1},
	['K'] = {28, 11, 0},
	['J'] = {35, 11, 0},
	['h'] = {21, 11, 0},
	['A'] = {36, 24, 0},
	['F'] = {40, 24, 0},
	['E'] = {31, 0, 0},
	['C'] = {36, 0, 0},
	['X'] = {23, 0, 0},
	['D'] = {19, 0, 0},
	['U'] = {35, 0, 0},
	['P'] = {44, 24, 0},
	['Q'] = {40, 19, 0},
	['B'] = {19, 0, 0},
	['I'] = {50, 28, 0},
	['N'] = {20, 11, 0},
	['O'] = {48, 11, 0},
};

uint32_t stoup_itch_len(uint8_t type)
{
	return shapes[type].len;
}

/* ---- what is it? ------------------------------------------------------------------------------- */

/* Consistent messages from the front. */
static uint32_t probe(const uint8_t *bytes, size_t len, enum stoup_itch_framing framing)
{
	uint32_t frame_len = framing == STOUP_ITCH_BARE ? 0 : framing == STOUP_ITCH_SOUP ? 3 : 2;
	uint64_t ts = 0;
	uint32_t cnt = 0;

	for (size_t i = 0; i + frame_len < len; cnt++) {
		const uint8_t *message = bytes + i + frame_len;
		uint32_t want = shapes[*message].len;
		uint32_t claim = framing == STOUP_ITCH_BARE ? want
		                 : framing == STOUP_ITCH_LITTLE
		                         ? (uint32_t)(bytes[i + 1] << 8 | bytes[i])
		                         : stoup_be16(bytes + i);

		if (framing == STOUP_ITCH_SOUP) {
			if (bytes[i + 2] != 'S' || claim == 0)
				return cnt;
			claim--;
		}
		if (want == 0 || claim != want)
			return cnt;
		if (i + frame_len + STOUP_ITCH_HEAD_LEN > len)
			return cnt;
		if (stoup_be48(message + 5) < ts || stoup_be48(message + 5) > DAY_NS + DAY_NS / 24)
			return cnt;
		ts = stoup_be48(message + 5);
		i += frame_len + want;
	}
	return cnt;
}

enum stoup_itch_framing stoup_itch_probe(const uint8_t *bytes, size_t len, uint32_t *ret_cnt)
{
	enum stoup_itch_framing best = STOUP_ITCH_NONE;

	*ret_cnt = 0;
	for (enum stoup_itch_framing i = STOUP_ITCH_FRAMED; i <= STOUP_ITCH_SOUP; i++) {
		uint32_t cnt = probe(bytes, len, i);

		/* Without lengths only types are looked at: more of them, then. */
		if (cnt <= *ret_cnt || (i == STOUP_ITCH_BARE && cnt < BARE_ENOUGH))
			continue;
		*ret_cnt = cnt;
		best = i;
	}
	return best;
}

/* ---- life -------------------------------------------------------------------------------------- */

static int schemas_create(struct stoup_itch *itch, struct stoup_error *err)
{
	int rc = 0;

	itch->mbo = stoup_schema_by_name("itch-mbo");
	itch->trade = stoup_schema_by_name("itch-trade");
	for (uint32_t i = 0; i < stoup_itch_kind_cnt && rc == 0; i++) {
		rc = stoup_itch_kind_schema(&stoup_itch_kinds[i], &itch->kinds[i], err);
		itch->kind_of[(uint8_t)stoup_itch_kinds[i].type] = (uint8_t)(i + 1);
	}
	return rc;
}

int stoup_itch_create(const struct stoup_sink *sink, const struct stoup_itch_setup *setup,
	struct stoup_itch **ret, struct stoup_error *err)
{
	struct stoup_itch *itch = calloc(1, sizeof(*itch));
	int rc = -ENOMEM;

	if (itch)
		itch->stocks = calloc(STOCK_CNT, sizeof(*itch->stocks));
	if (!itch || !itch->stocks)
		goto out_memory;
	itch->sink = *sink;
	itch->setup = *setup;
	if (stoup_itch_orders_init(
		    &itch->orders, setup->order_cap ? setup->order_cap : STOUP_ITCH_ORDER_CAP) < 0)
		goto out_memory;
	rc = stoup_symbol_escape(setup->dataset, itch->dataset, sizeof(itch->dataset));
	if (rc <= 0) {
		rc = stoup_error_set(err, -EINVAL,
			"--dataset %.40s: a name of 1 to 255 bytes, as NASDAQ.ITCH",
			setup->dataset);
		goto out_destroy;
	}
	rc = schemas_create(itch, err);
	if (rc < 0)
		goto out_destroy;
	*ret = itch;
	return 0;
out_memory:
	rc = stoup_error_set(err, -ENOMEM, "no memory to read %s", setup->file);
out_destroy:
	stoup_itch_destroy(itch);
	return rc;
}

void stoup_itch_destroy(struct stoup_itch *itch)
{
	if (!itch)
		return;
	for (uint32_t i = 0; i < stoup_itch_kind_cnt; i++)
		stoup_schema_draft_destroy(itch->kinds[i]);
	stoup_itch_orders_fini(&itch->orders);
	free(itch->stocks);
	free(itch);
}

/* ---- texts ------------------------------------------------------------------------------------- */

static const char *type_text(uint8_t type, char dst[8])
{
	snprintf(dst, 8, isgraph(type) ? "%c" : "0x%02x", type);
	return dst;
}

int stoup_itch_bad(const struct stoup_itch *itch, const struct stoup_itch_at *at, int code,
	struct stoup_error *err, const char *fmt, ...)
{
	char text[TEXT_CAP], type[8];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return stoup_error_set(err, code, "%s: the message at offset %" PRIu64 " (type %s): %s",
		itch->setup.file, at->off, type_text(at->bytes[0], type), text);
}

/* ---- series ------------------------------------------------------------------------------------ */

static int64_t series_open(struct stoup_itch *itch, const char *middle,
	const struct stoup_schema *schema, struct stoup_error *err)
{
	char name[STOUP_SERIES_NAME_CAP];

	/* The dataset has 255 bytes at most, a stock's escaped name 24, a schema's 31. */
	snprintf(name, sizeof(name), "%s/%s/%s", itch->dataset, middle, schema->name);
	return itch->sink.series(itch->sink.arg, name, schema, err);
}

int64_t stoup_itch_stock_series(struct stoup_itch *itch, const struct stoup_itch_at *at,
	unsigned which, const struct stoup_schema *schema, struct stoup_error *err)
{
	char name[NAME_LEN + 1] = {0}, escaped[3 * NAME_LEN + 1];
	int64_t idx;

	if (at->stock->series[which] > 0)
		return at->stock->series[which] - 1;
	stoup_itch_text(at->stock->name, NAME_LEN, name);
	stoup_symbol_escape(name, escaped, sizeof(escaped));
	idx = series_open(itch, escaped, schema, err);
	if (idx >= 0)
		at->stock->series[which] = (uint32_t)idx + 1;
	return idx;
}

int stoup_itch_put(struct stoup_itch *itch, const struct stoup_itch_at *at, uint32_t series_idx,
	const void *record, struct stoup_error *err)
{
	const struct stoup_where where = {itch->setup.file, 0, at->off};

	return itch->sink.put(itch->sink.arg, series_idx, at->key, record, &where, err);
}

/* ---- stocks ------------------------------------------------------------------------------------ */

static int stock_learn(struct stoup_itch *itch, struct stoup_itch_at *at, const uint8_t *name,
	struct stoup_error *err)
{
	char text[NAME_LEN + 1] = {0};

	stoup_itch_text(name, NAME_LEN, text);
	for (const char *p = text; *p; p++)
		if (!isgraph((unsigned char)*p))
			return stoup_itch_bad(itch, at, -EBADMSG, err,
				"its stock is no name (byte 0x%02x): the file is damaged",
				(unsigned)(unsigned char)*p);
	if (!text[0])
		return stoup_itch_bad(
			itch, at, -EBADMSG, err, "its stock has no name: the file is damaged");
	memcpy(at->stock->name, name, NAME_LEN);
	at->stock->state = stoup_intake_symbol(itch->setup.filter, text) ? STOUP_ITCH_WANTED
	                                                                 : STOUP_ITCH_UNWANTED;
	itch->late_cnt += at->bytes[0] != 'R';
	itch->stock_cnt++;
	itch->wanted_cnt += at->stock->state == STOUP_ITCH_WANTED;
	return 0;
}

/* The message's stock: 1 wanted, 0 not, or an error. */
static int stock_check(struct stoup_itch *itch, struct stoup_itch_at *at, struct stoup_error *err)
{
	const struct shape *shape = &shapes[at->bytes[0]];
	const uint8_t *name = at->bytes + shape->name_off;

	if (shape->is_market)
		return 1;
	if (shape->name_off > 0 && at->stock->state == STOUP_ITCH_UNKNOWN) {
		int rc = stock_learn(itch, at, name, err);

		if (rc < 0)
			return rc;
	} else if (shape->name_off > 0 && memcmp(at->stock->name, name, NAME_LEN) != 0)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"stock locate %u is %.8s here and was %.8s before: two days in one file, or damage",
			at->locate, (const char *)name, (const char *)at->stock->name);
	return at->stock->state != STOUP_ITCH_UNWANTED;
}

/* ---- messages ---------------------------------------------------------------------------------- */

static int len_check(const struct stoup_itch *itch, const struct stoup_itch_at *at, uint32_t len,
	struct stoup_error *err)
{
	uint32_t want = shapes[at->bytes[0]].len;

	if (want == 0 && itch->seq == 1)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"the first message is of no type that ITCH 5.0 has: not such a file, or another "
			"version");
	if (want == 0 && (len < STOUP_ITCH_HEAD_LEN || len > STOUP_ITCH_UNKNOWN_CAP))
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"%" PRIu32 " bytes and an unknown type: the file is damaged", len);
	if (want > 0 && want != len)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"%" PRIu32 " bytes, but that type has %" PRIu32
			" in ITCH 5.0: another version, or damage",
			len, want);
	return 0;
}

static int time_check(struct stoup_itch *itch, const struct stoup_itch_at *at, uint64_t ts,
	struct stoup_error *err)
{
	if (ts >= (uint64_t)itch->setup.day_len_ns)
		return stoup_itch_bad(itch, at, -EBADMSG, err,
			"%" PRIu64 " ns since midnight is not within a day: the file is damaged",
			ts);
	if (ts >= itch->ts)
		return 0;
	if (!itch->setup.allow_steps)
		return stoup_itch_bad(itch, at, -EILSEQ, err,
			"%" PRIu64 " ns since midnight is before %" PRIu64
			" of the message before it; --sort sorts, --order=keep keeps the order (a new "
			"day is a file of its own)",
			ts, itch->ts);
	if (itch->step_cnt++ == 0)
		itch->step_off = at->off;
	return 0;
}

/* Of a type that the table of kinds has. */
static int put_kind(struct stoup_itch *itch, const struct stoup_itch_at *at, uint32_t kind_idx,
	struct stoup_error *err)
{
	const struct stoup_itch_kind *kind = &stoup_itch_kinds[kind_idx];
	const struct stoup_schema *schema = &itch->kinds[kind_idx]->schema;
	uint32_t *opened = &itch->market_series[kind_idx];
	_Alignas(8) uint8_t record[STOUP_ITCH_RECORD_CAP];
	int64_t idx;

	if (kind->is_of_stock)
		idx = stoup_itch_stock_series(itch, at, STOUP_ITCH_IMBALANCE, schema, err);
	else
		idx = *opened > 0 ? *opened - 1 : series_open(itch, MARKET, schema, err);
	if (idx < 0)
		return (int)idx;
	if (!kind->is_of_stock)
		*opened = (uint32_t)idx + 1;
	stoup_itch_kind_record(kind, schema, at->bytes, at->key, itch->seq, record);
	return stoup_itch_put(itch, at, (uint32_t)idx, record, err);
}

static int put_raw(struct stoup_itch *itch, const struct stoup_itch_at *at, uint32_t len,
	struct stoup_error *err)
{
	const struct stoup_where where = {itch->setup.file, 0, at->off};
	const struct stoup_schema *schema = stoup_schema_by_name("itch50");

	if (itch->raw_series == 0) {
		int64_t idx = itch->setup.series ? itch->sink.series(itch->sink.arg,
							   itch->setup.series, schema, err)
		                                 : series_open(itch, MARKET, schema, err);

		if (idx < 0)
			return (int)idx;
		itch->raw_series = (uint32_t)idx + 1;
	}
	return itch->sink.message(
		itch->sink.arg, itch->raw_series - 1, at->key, at->bytes, len, &where, err);
}

static void note_unknown(struct stoup_itch *itch, const struct stoup_itch_at *at)
{
	if (itch->unknown_cnt++ > 0)
		return;
	itch->unknown_off = at->off;
	itch->unknown_type = at->bytes[0];
}

int stoup_itch_message(struct stoup_itch *itch, const uint8_t *bytes, uint32_t len, uint64_t off,
	struct stoup_error *err)
{
	struct stoup_itch_at at = {.bytes = bytes, .off = off};
	uint64_t ts;
	int rc;

	itch->seq++;
	rc = len_check(itch, &at, len, err);
	if (rc < 0)
		return rc;
	at.locate = stoup_be16(bytes + 1);
	at.tracking = stoup_be16(bytes + 3);
	at.stock = &itch->stocks[at.locate];
	ts = stoup_be48(bytes + 5);
	rc = time_check(itch, &at, ts, err);
	if (rc < 0)
		return rc;
	itch->ts = ts;
	at.key = itch->setup.midnight_ns + (int64_t)ts;
	if (shapes[*bytes].len == 0)
		note_unknown(itch, &at);
	else
		rc = stock_check(itch, &at, err);
	if (rc < 0 || (rc == 0 && shapes[*bytes].len > 0))
		return rc;
	if (*bytes == 'S' && bytes[11] == 'C')
		itch->is_ended = 1;
	rc = itch->setup.raw != STOUP_ITCH_RAW_NO ? put_raw(itch, &at, len, err) : 0;
	if (rc < 0 || itch->setup.raw == STOUP_ITCH_RAW_ONLY || shapes[*bytes].len == 0)
		return rc;
	if (itch->kind_of[*bytes] > 0)
		return put_kind(itch, &at, itch->kind_of[*bytes] - 1u, err);
	return stoup_itch_event(itch, &at, err);
}

void stoup_itch_prefetch(const struct stoup_itch *itch, const uint8_t *bytes)
{
	if (itch->stocks[stoup_be16(bytes + 1)].state != STOUP_ITCH_UNWANTED)
		stoup_itch_orders_prefetch(&itch->orders, stoup_be64(bytes + STOUP_ITCH_HEAD_LEN));
}

/* ---- the end ----------------------------------------------------------------------------------- */

static void finish_left_out(const struct stoup_itch *itch)
{
	const char *file = itch->setup.file;
	char type[8];

	if (itch->unknown_cnt > 0)
		stoup_sink_note(&itch->sink,
			"%s: %" PRIu64
			" message%s of unknown types %s (the first at offset %" PRIu64
			", of type %s)",
			file, itch->unknown_cnt, STOUP_PLURAL(itch->unknown_cnt),
			itch->setup.raw == STOUP_ITCH_RAW_NO ? "skipped"
							     : "taken as raw messages only",
			itch->unknown_off, type_text(itch->unknown_type, type));
	if (itch->orphan_cnt > 0)
		stoup_sink_note(&itch->sink,
			"%s: %" PRIu64
			" event%s of orders that the file does not have left out (the first at offset "
			"%" PRIu64 ", of order %" PRIu64 ")",
			file, itch->orphan_cnt, STOUP_PLURAL(itch->orphan_cnt), itch->orphan_off,
			itch->orphan_ref);
	if (itch->step_cnt > 0)
		stoup_sink_note(&itch->sink,
			"%s: messages that are before the one before them: %" PRIu64
			" (the first at offset %" PRIu64 ")",
			file, itch->step_cnt, itch->step_off);
}

void stoup_itch_finish(const struct stoup_itch *itch, int is_ended)
{
	const char *file = itch->setup.file;

	finish_left_out(itch);
	if (itch->late_cnt > 0)
		stoup_sink_note(&itch->sink,
			"%s: %" PRIu64
			" stocks have no directory message before their first other one: the file does not "
			"begin with its day",
			file, itch->late_cnt);
	if (itch->stock_cnt > 0 && itch->wanted_cnt == 0)
		stoup_sink_note(&itch->sink, "%s: none of its %" PRIu64 " stocks was asked for",
			file, itch->stock_cnt);
	if (itch->seq == 0)
		stoup_sink_note(&itch->sink, "%s: holds no messages to import", file);
	else if (!itch->is_ended && !is_ended)
		stoup_sink_note(&itch->sink,
			"%s: the feed does not say that it ends (event C): the day may be cut between two "
			"messages",
			file);
}

uint64_t stoup_itch_message_cnt(const struct stoup_itch *itch)
{
	return itch->seq;
}

size_t stoup_itch_order_cnt(const struct stoup_itch *itch)
{
	return itch->orders.cnt;
}
