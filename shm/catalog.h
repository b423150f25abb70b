/* SPDX-License-Identifier: Apache-2.0 */
/* catalog.h - what one volume holds (immutable) and which of its blocks are in the pool (residency).
 *
 *      +--------+---------+--------+--------+--------+----------+---------+- page -+-----------+- page -+
 *      | header | schemas | fields | series | blocks | segments | strings |  zero  | residency |  zones |
 *      +--------+---------+--------+--------+--------+----------+---------+--------+-----------+--------+
 *
 * One object per volume, made once by the daemon from the volume's footer, given to consumers
 * read-only by descriptor. All references are indexes and offsets, checked once by
 * stoup_catalog_verify, so that readers need no checks.
 *
 * Invariant: everything before residency_off never changes; residency[b] is 0 or the word of the
 * buffer that holds block b, and the conductor alone writes it.
 *
 * If the daemon dies, the object stays as it was: words of buffers that are leased stay right.
 */
#ifndef STOUP_SHM_CATALOG_H
#define STOUP_SHM_CATALOG_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "shm/abi.h"
#include "shm/stoup_types.h"

struct stoup_catalog_schema {
	char name[STOUP_SCHEMA_NAME_CAP];
	uint32_t stride, align, key_off, flags;
	uint64_t interval_ns, hash;
	uint32_t field_first, field_cnt;
};

#define STOUP_CATALOG_KEEP_ORDER 0x1u /* key = running maximum of the key field */

struct stoup_catalog_series {        /* sorted by (name, schema hash) */
	uint32_t name_off, name_len; /* into strings; NUL-terminated there */
	uint32_t schema_idx, flags;
	uint32_t segment_first, segment_cnt;
	uint64_t record_cnt;
	int64_t first_key, last_key;
};

/* Values of codec and transform of a block that a consumer may read out of the volume's file as it is. */
#define STOUP_CATALOG_CODEC_NONE     0u
#define STOUP_CATALOG_TRANSFORM_NONE 0u

struct stoup_catalog_block {
	uint32_t raw_len, stored_len;
	uint16_t codec, transform; /* as in the volume; 65535: a number beyond */
	uint32_t schema_idx;
	uint64_t stored_off;
};

struct stoup_catalog_segment { /* sorted by series, then key order */
	/* raw_off: of the first record; of messages, of the table at the run's end (shm/message.h) */
	uint32_t block_idx, raw_off, record_cnt, series_idx;
	uint64_t ordinal; /* of the first record in its series, in this volume */
	int64_t first_key, last_key;
};

struct stoup_catalog {
	uint64_t magic;
	uint32_t abi_major, volume_idx;
	uint8_t volume_id[16];
	uint64_t ingest_seq;
	uint32_t batch_idx, zero;
	uint64_t total_len; /* bytes of the object up to the zone maps */
	uint32_t schema_cnt, field_cnt, series_cnt, block_cnt, segment_cnt, path_off;
	uint64_t schema_off, field_off, series_off, block_off,
		segment_off; /* from the object's start */
	uint64_t string_off, string_len;
	uint64_t residency_off; /* page-aligned */
	/* Zone maps; both 0 in a volume without, and from a daemon of minor 0. They lie behind total_len, which readers
	 * of minor 0 compare. */
	uint64_t zone_off, zone_len;
	uint8_t pad[256 - 160];
};

/* Counts that a catalog is made for. */
struct stoup_catalog_counts {
	uint32_t schema_cnt, field_cnt, series_cnt, block_cnt, segment_cnt;
	uint64_t string_len;
	uint64_t zone_len; /* bytes of all rows, a multiple of 8; 0 = no zone maps */
};

/* Bytes of the object, whole OS pages; 0 when the counts overflow. */
size_t stoup_catalog_footprint(const struct stoup_catalog_counts *counts);

/* Write header and offsets into a zeroed mapping; the caller then fills the tables. */
void stoup_catalog_format(struct stoup_catalog *catalog, const struct stoup_catalog_counts *counts,
	uint32_t volume_idx);

/* Check a mapping of map_len bytes: every offset, count and reference. 0 or -EPROTO with a text.
 * O(entries); called once per volume by a consumer. */
int stoup_catalog_verify(
	const struct stoup_catalog *catalog, size_t map_len, struct stoup_error *err);

/* The tables; valid while the mapping lives. */
static inline const void *stoup_catalog_at(const struct stoup_catalog *catalog, uint64_t off)
{
	return (const char *)catalog + off;
}
static inline const struct stoup_catalog_schema *stoup_catalog_schemas(
	const struct stoup_catalog *c)
{
	return stoup_catalog_at(c, c->schema_off);
}
static inline const struct stoup_field *stoup_catalog_fields(const struct stoup_catalog *c)
{
	return stoup_catalog_at(c, c->field_off);
}
static inline const struct stoup_catalog_series *stoup_catalog_series(const struct stoup_catalog *c)
{
	return stoup_catalog_at(c, c->series_off);
}
static inline const struct stoup_catalog_block *stoup_catalog_blocks(const struct stoup_catalog *c)
{
	return stoup_catalog_at(c, c->block_off);
}
static inline const struct stoup_catalog_segment *stoup_catalog_segments(
	const struct stoup_catalog *c)
{
	return stoup_catalog_at(c, c->segment_off);
}
static inline const char *stoup_catalog_string(const struct stoup_catalog *c, uint32_t off)
{
	return stoup_catalog_at(c, c->string_off + off);
}
/* Zone maps: a word for each segment that says where its row begins, in units of 8 bytes from the first one, plus 1 (0:
 * it has none); then the rows, as they are in the volume (docs/volume-format.md, "Zone maps"). NULL: there are none. */
static inline const uint32_t *stoup_catalog_zone_words(const struct stoup_catalog *c)
{
	return c->zone_len ? stoup_catalog_at(c, c->zone_off) : NULL;
}
static inline uint64_t stoup_catalog_zone_rows_off(const struct stoup_catalog *c)
{
	return c->zone_off + (((uint64_t)c->segment_cnt * sizeof(uint32_t) + 7) & ~UINT64_C(7));
}
/* The row of a segment of a catalog that was verified, and the bytes that lie there, which the user of a row compares
 * with what its schema has; NULL: none. */
static inline const uint8_t *stoup_catalog_zone(
	const struct stoup_catalog *c, uint32_t segment_idx, uint64_t *ret_len)
{
	const uint32_t *words = stoup_catalog_zone_words(c);
	uint64_t at;

	if (!words || words[segment_idx] == 0)
		return NULL;
	at = (uint64_t)(words[segment_idx] - 1) * 8;
	*ret_len = c->zone_len - at;
	return stoup_catalog_at(c, stoup_catalog_zone_rows_off(c) + at);
}
#define STOUP_ZONE_HAS_NULL   0x1u
#define STOUP_ZONE_HAS_VALUES 0x2u

/* Residency words: read through a const mapping by consumers, written by the conductor. */
static inline _Atomic uint64_t *stoup_catalog_residency(struct stoup_catalog *c)
{
	return (_Atomic uint64_t *)(void *)((char *)c + c->residency_off);
}
static inline const _Atomic uint64_t *stoup_catalog_residency_ro(const struct stoup_catalog *c)
{
	return stoup_catalog_at(c, c->residency_off);
}

/* Find the first series named `name` (several when layouts differ); its index, or -1. */
int64_t stoup_catalog_find(const struct stoup_catalog *catalog, const char *name);

_Static_assert(sizeof(struct stoup_catalog) == 256, "header");
_Static_assert(sizeof(struct stoup_catalog_schema) == 72, "schema");
_Static_assert(sizeof(struct stoup_catalog_series) == 48, "series");
_Static_assert(sizeof(struct stoup_catalog_block) == 24, "block");
_Static_assert(sizeof(struct stoup_catalog_segment) == 40, "segment");

#endif
