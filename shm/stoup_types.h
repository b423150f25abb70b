/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_types.h - the plain types that every part of stoup and every user of it shares: the error
 * text, the field and the record schema.
 *
 * A schema says what the bytes of one record mean: a name, a stride and a list of fields at byte
 * offsets. Two schemas are the same when name and layout hash agree (stoup_schema_hash).
 *
 *      record   |<------------------ stride ------------------>|
 *      fields   [hd][ts_event][order_id][price][size]...[ts_recv]
 *                                                        ^ key_off
 *
 * Invariant: every field lies inside the stride, no two fields overlap, names differ, and the one
 * key field is a 64-bit integer at an 8-byte-aligned offset that holds nanoseconds since the epoch:
 * the key of an aligned record is a plain load. (Other fields may be unaligned, as in DBN.)
 *
 * Concurrency: plain data. A schema that a caller got from a client stays valid and unchanged until
 * the client is closed.
 */
#ifndef STOUP_TYPES_H
#define STOUP_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------------------------- */

#define STOUP_ERROR_TEXT_CAP 256

/* The detail behind a negative return value: which file, which offset, which limit, and what mends
 * it. Owned by the caller; every function that takes one accepts NULL. `code` is the negative errno
 * that the call returned; `text` is always NUL-terminated. Untouched on success. */
struct stoup_error {
	int code;
	char text[STOUP_ERROR_TEXT_CAP];
};

/* Fill `err` (may be NULL) with `code` (negative errno) and a printf text; returns `code`, so that
 * `return stoup_error_set(err, -EINVAL, "...")` reads well. A text too long is cut at the end. */
int stoup_error_set(struct stoup_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put a printf text and ": " in front of the text that `err` holds already (context: which file). */
void stoup_error_prefix(struct stoup_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- fields ---------------------------------------------------------------------------------- */

/* Types of a field. All integers and floats are little-endian. */
#define STOUP_TYPE_U8    1u
#define STOUP_TYPE_I8    2u
#define STOUP_TYPE_U16   3u
#define STOUP_TYPE_I16   4u
#define STOUP_TYPE_U32   5u
#define STOUP_TYPE_I32   6u
#define STOUP_TYPE_U64   7u
#define STOUP_TYPE_I64   8u
#define STOUP_TYPE_F32   9u
#define STOUP_TYPE_F64   10u
#define STOUP_TYPE_CHAR  11u /* one printable byte; cnt > 1: fixed-length text, NUL-padded */
#define STOUP_TYPE_BYTES 12u /* cnt opaque bytes (reserved space) */
#define STOUP_TYPE_LAST  12u

#define STOUP_FIELD_NULL     0x01u /* null_bits means "undefined": printed empty */
#define STOUP_FIELD_TIME     0x02u /* nanoseconds since 1970-01-01T00:00:00Z */
#define STOUP_FIELD_KEY      0x04u /* the field that orders the series */
#define STOUP_FIELD_HIDDEN   0x08u /* reserved bytes: kept, never printed */
#define STOUP_FIELD_DURATION 0x10u /* nanoseconds, relative */

#define STOUP_FIELD_NAME_CAP 36
#define STOUP_FIELD_UNIT_CAP 8

/* One field: 64 bytes, the same in memory, in a catalog and in a volume. */
struct stoup_field {
	char name[STOUP_FIELD_NAME_CAP]; /* NUL-terminated, [A-Za-z0-9_.\[\]-]+ */
	uint32_t off;                    /* bytes from the start of the record */
	uint16_t cnt;                    /* elements; more than one only for CHAR and BYTES */
	uint8_t type;                    /* STOUP_TYPE_* */
	uint8_t flags;                   /* STOUP_FIELD_* */
	int8_t exp10; /* integers: value = integer * 10^exp10 (prices: -9); else 0 */
	uint8_t zero[3];
	uint64_t
		null_bits; /* with FIELD_NULL: the undefined value, zero-extended from the field's width */
	char unit[STOUP_FIELD_UNIT_CAP]; /* free text, NUL-padded, may be empty */
};

/* ---- schemas --------------------------------------------------------------------------------- */

#define STOUP_SCHEMA_VARIABLE 0x01u /* records are messages (key, length, bytes): stride is 0 */
#define STOUP_SCHEMA_BAR      0x02u /* key is the open time: available at key + interval_ns */

#define STOUP_SCHEMA_NAME_CAP  32
#define STOUP_SCHEMA_FIELD_CAP 512    /* mbp-10 has 73; a generous bound on what a file may claim */
#define STOUP_RECORD_LEN_CAP   65535u /* bytes of one fixed-length record */

struct stoup_schema {
	char name[STOUP_SCHEMA_NAME_CAP]; /* NUL-terminated, [a-z0-9_.-]+ */
	uint32_t stride;                  /* bytes per record, a multiple of align */
	uint32_t align;                   /* power of two, 1 to 64: alignment of every record */
	uint32_t key_off;                 /* offset of the 64-bit key field */
	uint32_t flags;                   /* STOUP_SCHEMA_* */
	uint64_t interval_ns;             /* bars: length of one bar, else 0 */
	uint64_t hash;                    /* of the layout: stoup_schema_hash() */
	uint32_t field_cnt;
	uint32_t zero;
	const struct stoup_field *fields;
};

/* ---- messages -------------------------------------------------------------------------------- */

/* What stands in front of a message's bytes, at a multiple of 8. Messages of one segment follow each
 * other, zero-padded to 8 bytes each, and behind the last one stands a table: entry i is the distance
 * in bytes from itself back to the head of message i. Message i of a span is so found by one load at
 * base + 4 * i (stoup_message_at in stoup.h does it). */
struct stoup_message_head {
	int64_t key;  /* nanoseconds since the epoch, positive */
	uint32_t len; /* bytes behind the head, without the padding */
	uint32_t zero;
};

/* The longest message that is stored: its block still fits a pool of 16 MiB (a block may fill a
 * quarter of its pool) together with what an importer adds to it. */
#define STOUP_MESSAGE_LEN_CAP ((4u << 20) - 64u)

#define STOUP_MESSAGE_STRIDE 4u /* of a span of messages: bytes of a table entry */

/* Hash of everything that two processes must agree on to read a record of this schema: name, stride,
 * key offset, flags, interval and every field's name, offset, count, type, flags, scale and null
 * value. FNV-1a 64 over those values in little-endian order, each as wide as it is declared here and
 * a name as its bytes and one NUL; 0 becomes 1. Ignores `hash` itself, `align` and units.
 * Thread-safe. */
uint64_t stoup_schema_hash(const struct stoup_schema *schema);

/* Check the invariants above, trusting nothing but that `fields` has field_cnt entries; `hash` is not
 * compared. 0, or -EINVAL with a text that names the schema and the field. Thread-safe. */
int stoup_schema_valid(const struct stoup_schema *schema, struct stoup_error *err);

/* The built-in schemas (DBN record kinds, event64, tick, bar, ITCH 5.0, kinds of messages): a static table that lives for ever.
 * `stoup_schema_builtin(i)` is NULL past the end. `bar` has no interval: whoever stores bars copies
 * it, sets interval_ns and computes the hash anew. Thread-safe. */
const struct stoup_schema *stoup_schema_builtin(size_t idx);

/* Find a built-in schema by name; NULL where there is none. Thread-safe. */
const struct stoup_schema *stoup_schema_by_name(const char *name);

/* Bytes of one element of a field type, 0 for an unknown type. Thread-safe. */
uint32_t stoup_type_len(uint32_t type);

/* Find a field by name; NULL where there is none. Thread-safe. */
const struct stoup_field *stoup_schema_field(const struct stoup_schema *schema, const char *name);

#ifdef __cplusplus
}
#endif

#ifndef __cplusplus
_Static_assert(sizeof(struct stoup_field) == 64, "a field is 64 bytes everywhere");
_Static_assert(sizeof(struct stoup_message_head) == 16, "a message's head has no holes");
#endif

#endif
