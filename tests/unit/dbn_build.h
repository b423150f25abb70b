/* SPDX-License-Identifier: Apache-2.0 */
/* dbn_build.h - write DBN bytes by hand, from the published layout alone, for tests.
 *
 *      begin -> symbol_tables -> mapping, interval ... -> end_meta -> record ...   (dbn_*)
 *
 * Nothing here comes from producer/dbn.h, so that a wrong offset there can not hide.
 */
#ifndef STOUP_TESTS_DBN_BUILD_H
#define STOUP_TESTS_DBN_BUILD_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct dbn_bytes {
	uint8_t *bytes;
	size_t len;
	size_t cap;
	int version;
	size_t symbol_len;
	size_t count_off; /* of the mapping count */
	size_t interval_count_off;
};

static inline uint8_t *dbn_room(struct dbn_bytes *dbn, size_t len)
{
	if (dbn->len + len > dbn->cap) {
		dbn->cap = (dbn->len + len) * 2;
		dbn->bytes = realloc(dbn->bytes, dbn->cap);
		if (!dbn->bytes)
			abort();
	}
	uint8_t *at = dbn->bytes + dbn->len;
	memset(at, 0, len);
	dbn->len += len;
	return at;
}

static inline void dbn_int(uint8_t *at, size_t len, uint64_t value)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static inline void dbn_add(struct dbn_bytes *dbn, size_t len, uint64_t value)
{
	dbn_int(dbn_room(dbn, len), len, value);
}

static inline void dbn_text(struct dbn_bytes *dbn, size_t len, const char *text)
{
	size_t text_len = strlen(text);
	memcpy(dbn_room(dbn, len), text, text_len < len ? text_len : len);
}

static inline void dbn_begin(struct dbn_bytes *dbn, int version, unsigned schema, unsigned stype_in,
	unsigned stype_out, unsigned ts_out)
{
	*dbn = (struct dbn_bytes){.version = version, .symbol_len = version == 1 ? 22 : 71};
	dbn_text(dbn, 3, "DBN");
	dbn_add(dbn, 1, (uint64_t)version);
	dbn_add(dbn, 4, 0);
	dbn_text(dbn, 16, "TEST.SET");
	dbn_add(dbn, 2, schema);
	dbn_add(dbn, 8, 1609160400000000000u);
	dbn_add(dbn, 8, UINT64_MAX);
	dbn_add(dbn, 8, 0);
	if (version == 1)
		dbn_add(dbn, 8, UINT64_MAX);
	dbn_add(dbn, 1, stype_in);
	dbn_add(dbn, 1, stype_out);
	dbn_add(dbn, 1, ts_out);
	if (version > 1)
		dbn_add(dbn, 2, dbn->symbol_len);
	dbn_room(dbn, version == 1 ? 47 : 53);
	dbn_add(dbn, 4, 0); /* at 108: length of the schema definition */
}

/* The tables of symbols (one row), partial and not found symbols, and the mapping count. */
static inline void dbn_symbol_tables(struct dbn_bytes *dbn, const char *symbol)
{
	dbn_add(dbn, 4, 1);
	dbn_text(dbn, dbn->symbol_len, symbol);
	dbn_add(dbn, 4, 0);
	dbn_add(dbn, 4, 0);
	dbn->count_off = dbn->len;
	dbn_add(dbn, 4, 0);
}

static inline void dbn_increment(struct dbn_bytes *dbn, size_t off)
{
	uint32_t cnt;
	memcpy(&cnt, dbn->bytes + off, 4);
	dbn_int(dbn->bytes + off, 4, cnt + 1);
}

static inline void dbn_mapping(struct dbn_bytes *dbn, const char *raw_symbol)
{
	dbn_text(dbn, dbn->symbol_len, raw_symbol);
	dbn->interval_count_off = dbn->len;
	dbn_add(dbn, 4, 0);
	dbn_increment(dbn, dbn->count_off);
}

static inline void dbn_interval(
	struct dbn_bytes *dbn, uint32_t start_date, uint32_t end_date, const char *symbol)
{
	dbn_add(dbn, 4, start_date);
	dbn_add(dbn, 4, end_date);
	dbn_text(dbn, dbn->symbol_len, symbol);
	dbn_increment(dbn, dbn->interval_count_off);
}

static inline void dbn_end_meta(struct dbn_bytes *dbn)
{
	if (dbn->version == 3)
		dbn_room(dbn, (8 - dbn->len % 8) % 8);
	dbn_int(dbn->bytes + 4, 4, dbn->len - 8);
}

/* A record of `len` bytes whose body is a pattern; the caller sets what matters. */
static inline uint8_t *dbn_record(struct dbn_bytes *dbn, unsigned rtype, size_t len,
	uint32_t instrument_id, uint64_t ts_event)
{
	uint8_t *at = dbn_room(dbn, len);
	for (size_t i = 16; i < len; i++)
		at[i] = (uint8_t)(i * 7 + rtype);
	at[0] = (uint8_t)(len / 4);
	at[1] = (uint8_t)rtype;
	dbn_int(at + 2, 2, 1);
	dbn_int(at + 4, 4, instrument_id);
	dbn_int(at + 8, 8, ts_event);
	return at;
}

/* The whole head of a file with one mapping, ESH1 -> 5482 on 2020-12-28 alone. */
static inline void dbn_simple(struct dbn_bytes *dbn, int version, unsigned schema)
{
	dbn_begin(dbn, version, schema, 1, 0, 0);
	dbn_symbol_tables(dbn, "ESH1");
	dbn_mapping(dbn, "ESH1");
	dbn_interval(dbn, 20201228, 20201229, "5482");
	dbn_end_meta(dbn);
}

static inline void dbn_free(struct dbn_bytes *dbn)
{
	free(dbn->bytes);
	dbn->bytes = NULL;
}

#endif
