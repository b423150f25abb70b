/* SPDX-License-Identifier: Apache-2.0 */
/* dbn.h - read Databento's binary encoding, versions 1 to 3: bytes to facts, without I/O.
 *
 *      0         8                                  8 + length
 *      +---------+----------------------------------+--------+--------+----
 *      | prelude | metadata: fixed part, symbol     | record | record | ...
 *      | DBN v n |   tables, mappings               |        |        |
 *      +---------+----------------------------------+--------+--------+----
 *       stoup_dbn_prelude   stoup_dbn_meta_feed       stoup_dbn_record_next
 *
 * The metadata are parsed as they come, a table row at a time: an option parent has megabytes of
 * them, and their length field is only a claim. What stays in memory is one interval of 16 bytes
 * and one symbol per row of the mapping.
 *
 *      interval {instrument_id, first day, day after the last, symbol}   sorted by instrument_id
 *
 * Invariant: no count, length or offset found in the bytes is used before it was compared with what
 * the metadata's length leaves room for.
 *
 * Concurrency: plain memory. Lookups in parsed metadata are thread-safe.
 *
 * Limits: 4 Mi intervals and 128 MiB of symbols (all US options of a day are about a million).
 */
#ifndef STOUP_PRODUCER_DBN_H
#define STOUP_PRODUCER_DBN_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

#define STOUP_DBN_VERSION_MAX  3
#define STOUP_DBN_PRELUDE_LEN  8u
#define STOUP_DBN_HEADER_LEN   16u
#define STOUP_DBN_DATASET_LEN  16u
#define STOUP_DBN_INTERVAL_CAP (4u << 20)
#define STOUP_DBN_TEXT_CAP     (128u << 20)
#define STOUP_DBN_FEED_LEN     (65535u + 8u) /* the longest table row: what feed may ask for */

#define STOUP_DBN_SCHEMA_MIXED 0xffffu

#define STOUP_DBN_STYPE_INSTRUMENT_ID 0
#define STOUP_DBN_STYPE_RAW_SYMBOL    1
#define STOUP_DBN_STYPE_PARENT        4
#define STOUP_DBN_STYPE_MIXED         0xff

/* Record types that matter beyond their layout. */
#define STOUP_DBN_RTYPE_ERROR          0x15
#define STOUP_DBN_RTYPE_SYMBOL_MAPPING 0x16
#define STOUP_DBN_RTYPE_SYSTEM         0x17

/* ---- prelude --------------------------------------------------------------------------------- */

struct stoup_dbn_prelude {
	uint8_t version;   /* 1 to 3 */
	uint32_t meta_len; /* bytes of metadata behind the prelude */
};

/* Read the first `len` bytes of a decompressed stream (8 are enough). 0; -EPROTONOSUPPORT for a
 * version that is not 1 to 3, for DBZ, and for a stream packed twice; -EBADMSG for another kind of
 * file, or for a length that can not be. */
int stoup_dbn_prelude(
	const uint8_t *bytes, size_t len, struct stoup_dbn_prelude *ret, struct stoup_error *err);

/* ---- metadata -------------------------------------------------------------------------------- */

struct stoup_dbn_interval {
	uint32_t instrument_id;
	uint32_t start_date; /* YYYYMMDD */
	uint32_t end_date;   /* YYYYMMDD, exclusive */
	uint32_t symbol_off; /* into symbols */
};

struct stoup_dbn_meta {
	uint8_t version;
	uint8_t stype_in;
	uint8_t stype_out;
	uint8_t has_ts_out;
	uint16_t schema;     /* Databento's number; STOUP_DBN_SCHEMA_MIXED */
	uint16_t symbol_len; /* bytes of one symbol in the tables */
	uint64_t start_ns;
	uint64_t end_ns; /* UINT64_MAX: none */
	char dataset[STOUP_DBN_DATASET_LEN + 1];
	struct stoup_dbn_interval *intervals;
	size_t interval_cnt;
	char *symbols; /* NUL-terminated, one after the other */
	size_t symbols_len;
};

struct stoup_dbn_parser;

/* Begin with the metadata that `prelude` announces. NULL: no memory. */
struct stoup_dbn_parser *stoup_dbn_parser_create(const struct stoup_dbn_prelude *prelude);

/* Feed bytes of the metadata, in order: `len` of them, the first one not yet consumed. Returns how
 * many were consumed (>= 0); the caller hands the rest again, with more behind it, and may need up
 * to STOUP_DBN_FEED_LEN bytes for progress. Never consumes bytes beyond the metadata. Errors, with
 * the offset from the start of the stream: -EBADMSG for tables that do not fit, -E2BIG for the
 * limits above, -ENOMEM. */
int64_t stoup_dbn_parser_feed(
	struct stoup_dbn_parser *parser, const uint8_t *bytes, size_t len, struct stoup_error *err);

/* Bytes of the metadata that have not been consumed yet; 0: complete. */
uint32_t stoup_dbn_parser_left(const struct stoup_dbn_parser *parser);

/* Take the parsed metadata out of a complete parser (once); end them with stoup_dbn_meta_fini. 0, or
 * -EBADMSG where intervals of one mapping overlap, so that a day has two answers (but for symbols
 * that stand for many instruments at once: parents). */
int stoup_dbn_parser_take(
	struct stoup_dbn_parser *parser, struct stoup_dbn_meta *ret, struct stoup_error *err);

void stoup_dbn_parser_destroy(struct stoup_dbn_parser *parser);
void stoup_dbn_meta_fini(struct stoup_dbn_meta *meta);

/* Iterate over the symbols that `instrument_id` has on `date` (YYYYMMDD): start with `*pos` = 0,
 * NULL means no more. Symbols come in the order of the file and may repeat. */
const char *stoup_dbn_symbol_next(
	const struct stoup_dbn_meta *meta, uint32_t instrument_id, uint32_t date, size_t *pos);

/* The UTC day of a time (nanoseconds since the epoch) as YYYYMMDD. */
uint32_t stoup_dbn_date(uint64_t time_ns);

/* ---- records --------------------------------------------------------------------------------- */

struct stoup_dbn_record {
	const uint8_t *bytes; /* not aligned */
	uint32_t len;         /* 16 to 1020, a multiple of 4 */
	uint8_t rtype;
	uint16_t publisher_id;
	uint32_t instrument_id;
	uint64_t ts_event;
};

/* Read the record header at `bytes`. Returns 1 and the record if it is whole, 0 if it needs more
 * than `len` bytes (`ret->len` then says how many, or is 0 where not even that is there), -EBADMSG
 * for a length under 4 words. */
int stoup_dbn_record_next(const uint8_t *bytes, size_t len, struct stoup_dbn_record *ret);

/* The built-in schema of the records of type `rtype` in a file of `version` whose metadata name
 * schema `file_schema`; NULL for a type that is not known. Version 1's own layouts have schemas of
 * their own; `ts_out` is not looked at. 0x01 is tbbo only in a file of that schema: in a mixed one
 * nothing tells a tbbo record from an mbp-1 record. */
const struct stoup_schema *stoup_dbn_schema(uint8_t rtype, uint8_t version, uint16_t file_schema);

/* What a record says of itself where no metadata do: which of the layouts it has, told by its length,
 * and so of which versions it can be. */
struct stoup_dbn_shape {
	const struct stoup_schema *schema; /* without ts_out */
	uint32_t versions;                 /* bit v: version v */
	uint8_t has_ts_out;
};

/* 1 and the shape of a record of `len` bytes; 0 for a type that is not known (0x11 among them: only
 * metadata tell which bars those are), or -EBADMSG for a length that this type has in no version. */
int stoup_dbn_shape(uint8_t rtype, uint32_t len, struct stoup_dbn_shape *ret);

/* Do these bytes begin with a record? 1: a whole header of a known type with a length that it has. */
int stoup_dbn_is_fragment(const uint8_t *bytes, size_t len);

/* Databento's name of a schema number ("mbp-1"), "mixed", or NULL. */
const char *stoup_dbn_schema_name(uint16_t schema);

/* Make the schema `<name>.ts_out`: `base` and, behind it, the u64 that a live session adds to each
 * record. Fills `*ret`; its fields are on the heap, to be freed by stoup_dbn_ts_out_fini. 0,
 * -ENAMETOOLONG, -ENOMEM. */
int stoup_dbn_ts_out(
	const struct stoup_schema *base, struct stoup_schema *ret, struct stoup_error *err);
void stoup_dbn_ts_out_fini(struct stoup_schema *schema);

/* What a symbol mapping record of `version` says: the symbol that its instrument has from now on.
 * Copies at most `cap` - 1 bytes and a NUL into `ret`. 0, or -EBADMSG for a record too short. */
int stoup_dbn_mapped_symbol(
	const struct stoup_dbn_record *record, uint8_t version, char *ret, size_t cap);

#endif
