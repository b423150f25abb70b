/* SPDX-License-Identifier: Apache-2.0 */
/* volume_layout.h - the structures of a volume as they lie in the file, and their section table.
 *
 *      footer   [head][section table][section] ... [section]     each section 8-aligned
 *      section  [entry 0][entry 1] ...                            entry_len bytes apart
 *
 * Each structure is one list of X(type, name, array suffix, offset, length). The list makes the C
 * structure and the static asserts on every offset; a test compares the same list with the tables
 * of docs/volume-format.md, so code and document cannot differ.
 *
 * Invariant: members are in file order, without holes, little-endian, naturally aligned.
 *
 * Private to codec and its tests: users of a volume see the parsed index of volume.h.
 */
#ifndef STOUP_CODEC_VOLUME_LAYOUT_H
#define STOUP_CODEC_VOLUME_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "volumes are little-endian, and this code reads them in place: a little-endian machine only"
#endif

/* As PNG's: the high byte and the CR LF show a file that went through a text or 7-bit transfer. */
#define STOUP_VOL_MAGIC         "\x89STOUP\r\n"
#define STOUP_VOL_TRAILER_MAGIC "\x89STEND\r\n"
#define STOUP_VOL_MAGIC_LEN     8u

/* Magic, version and checksum of header and trailer keep their places in all major versions. */
#define STOUP_VOL_DISK_HEADER(X)                                                                   \
	X(uint8_t, magic, [8], 0, 8)                                                               \
	X(uint16_t, major, , 8, 2)                                                                 \
	X(uint16_t, minor, , 10, 2)                                                                \
	X(uint32_t, flags, , 12, 4)                                                                \
	X(uint8_t, id, [16], 16, 16)                                                               \
	X(int64_t, created_ns, , 32, 8)                                                            \
	X(uint64_t, ingest_seq, , 40, 8)                                                           \
	X(uint32_t, batch_idx, , 48, 4)                                                            \
	X(uint32_t, batch_cnt, , 52, 4)                                                            \
	X(uint64_t, checksum, , 56, 8)

#define STOUP_VOL_DISK_TRAILER(X)                                                                  \
	X(uint64_t, footer_off, , 0, 8)                                                            \
	X(uint64_t, footer_len, , 8, 8)                                                            \
	X(uint64_t, footer_hash, , 16, 8)                                                          \
	X(uint64_t, file_len, , 24, 8)                                                             \
	X(uint64_t, header_checksum, , 32, 8)                                                      \
	X(uint64_t, zero, , 40, 8)                                                                 \
	X(uint64_t, checksum, , 48, 8)                                                             \
	X(uint8_t, magic, [8], 56, 8)

#define STOUP_VOL_DISK_FOOTER(X)                                                                   \
	X(uint32_t, section_cnt, , 0, 4)                                                           \
	X(uint32_t, section_len, , 4, 4)                                                           \
	X(uint64_t, zero, , 8, 8)

#define STOUP_VOL_DISK_SECTION(X)                                                                  \
	X(uint32_t, kind, , 0, 4)                                                                  \
	X(uint32_t, entry_len, , 4, 4)                                                             \
	X(uint64_t, off, , 8, 8)                                                                   \
	X(uint64_t, len, , 16, 8)                                                                  \
	X(uint64_t, cnt, , 24, 8)

#define STOUP_VOL_DISK_SCHEMA(X)                                                                   \
	X(uint32_t, name_off, , 0, 4)                                                              \
	X(uint32_t, name_len, , 4, 4)                                                              \
	X(uint32_t, stride, , 8, 4)                                                                \
	X(uint32_t, align, , 12, 4)                                                                \
	X(uint32_t, key_off, , 16, 4)                                                              \
	X(uint32_t, flags, , 20, 4)                                                                \
	X(uint32_t, field_first, , 24, 4)                                                          \
	X(uint32_t, field_cnt, , 28, 4)                                                            \
	X(uint64_t, interval_ns, , 32, 8)                                                          \
	X(uint64_t, hash, , 40, 8)

#define STOUP_VOL_DISK_FIELD(X)                                                                    \
	X(uint8_t, name, [36], 0, 36)                                                              \
	X(uint32_t, off, , 36, 4)                                                                  \
	X(uint16_t, cnt, , 40, 2)                                                                  \
	X(uint8_t, type, , 42, 1)                                                                  \
	X(uint8_t, flags, , 43, 1)                                                                 \
	X(int8_t, exp10, , 44, 1)                                                                  \
	X(uint8_t, zero, [3], 45, 3)                                                               \
	X(uint64_t, null_bits, , 48, 8)                                                            \
	X(uint8_t, unit, [8], 56, 8)

#define STOUP_VOL_DISK_SERIES(X)                                                                   \
	X(uint32_t, name_off, , 0, 4)                                                              \
	X(uint32_t, name_len, , 4, 4)                                                              \
	X(uint32_t, schema_idx, , 8, 4)                                                            \
	X(uint32_t, flags, , 12, 4)                                                                \
	X(uint32_t, segment_first, , 16, 4)                                                        \
	X(uint32_t, segment_cnt, , 20, 4)                                                          \
	X(uint64_t, record_cnt, , 24, 8)                                                           \
	X(int64_t, first_key, , 32, 8)                                                             \
	X(int64_t, last_key, , 40, 8)

#define STOUP_VOL_DISK_BLOCK(X)                                                                    \
	X(uint32_t, schema_idx, , 0, 4)                                                            \
	X(uint32_t, raw_len, , 4, 4)                                                               \
	X(uint64_t, stored_off, , 8, 8)                                                            \
	X(uint32_t, stored_len, , 16, 4)                                                           \
	X(uint32_t, codec, , 20, 4)                                                                \
	X(uint32_t, transform, , 24, 4)                                                            \
	X(uint32_t, zero, , 28, 4)                                                                 \
	X(uint64_t, stored_hash, , 32, 8)                                                          \
	X(uint64_t, raw_hash, , 40, 8)

#define STOUP_VOL_DISK_SEGMENT(X)                                                                  \
	X(uint32_t, series_idx, , 0, 4)                                                            \
	X(uint32_t, block_idx, , 4, 4)                                                             \
	X(uint32_t, raw_off, , 8, 4)                                                               \
	X(uint32_t, raw_len, , 12, 4)                                                              \
	X(uint32_t, record_cnt, , 16, 4)                                                           \
	X(uint32_t, zero, , 20, 4)                                                                 \
	X(uint64_t, ordinal, , 24, 8)                                                              \
	X(int64_t, first_key, , 32, 8)                                                             \
	X(int64_t, last_key, , 40, 8)

#define STOUP_VOL_DISK_SUPERSEDED(X) X(uint8_t, id, [16], 0, 16)

#define STOUP_VOL_DISK_SOURCE(X)                                                                   \
	X(uint8_t, hash, [16], 0, 16)                                                              \
	X(uint64_t, file_len, , 16, 8)                                                             \
	X(uint64_t, options_hash, , 24, 8)                                                         \
	X(int64_t, ingested_ns, , 32, 8)                                                           \
	X(char, name, [88], 40, 88)

/* All structures: X(c name, members, bytes). */
#define STOUP_VOL_DISK_ALL(X)                                                                      \
	X(header, STOUP_VOL_DISK_HEADER, 64)                                                       \
	X(trailer, STOUP_VOL_DISK_TRAILER, 64)                                                     \
	X(footer, STOUP_VOL_DISK_FOOTER, 16)                                                       \
	X(section, STOUP_VOL_DISK_SECTION, 32)                                                     \
	X(schema, STOUP_VOL_DISK_SCHEMA, 48)                                                       \
	X(field, STOUP_VOL_DISK_FIELD, 64)                                                         \
	X(series, STOUP_VOL_DISK_SERIES, 48)                                                       \
	X(block, STOUP_VOL_DISK_BLOCK, 48)                                                         \
	X(segment, STOUP_VOL_DISK_SEGMENT, 48)                                                     \
	X(superseded, STOUP_VOL_DISK_SUPERSEDED, 16)                                               \
	X(source, STOUP_VOL_DISK_SOURCE, 128)

#define STOUP_VOL_DISK_MEMBER(type, name, suffix, off, len) type name suffix;
#define STOUP_VOL_DISK_STRUCT(name, members, len)                                                  \
	struct stoup_vol_disk_##name {                                                             \
		members(STOUP_VOL_DISK_MEMBER)                                                     \
	};
STOUP_VOL_DISK_ALL(STOUP_VOL_DISK_STRUCT)

#define STOUP_VOL_DISK_ASSERT_LEN(name, members, len)                                              \
	_Static_assert(sizeof(struct stoup_vol_disk_##name) == (len), "length of a " #name);
STOUP_VOL_DISK_ALL(STOUP_VOL_DISK_ASSERT_LEN)

#define STOUP_VOL_DISK_AT(structure, name, off, len)                                               \
	_Static_assert(offsetof(struct structure, name) == (off), "offset of " #name);             \
	_Static_assert(sizeof(((struct structure *)0)->name) == (len), "length of " #name);
#define STOUP_VOL_AT_HEADER(t, n, s, o, l)     STOUP_VOL_DISK_AT(stoup_vol_disk_header, n, o, l)
#define STOUP_VOL_AT_TRAILER(t, n, s, o, l)    STOUP_VOL_DISK_AT(stoup_vol_disk_trailer, n, o, l)
#define STOUP_VOL_AT_FOOTER(t, n, s, o, l)     STOUP_VOL_DISK_AT(stoup_vol_disk_footer, n, o, l)
#define STOUP_VOL_AT_SECTION(t, n, s, o, l)    STOUP_VOL_DISK_AT(stoup_vol_disk_section, n, o, l)
#define STOUP_VOL_AT_SCHEMA(t, n, s, o, l)     STOUP_VOL_DISK_AT(stoup_vol_disk_schema, n, o, l)
#define STOUP_VOL_AT_FIELD(t, n, s, o, l)      STOUP_VOL_DISK_AT(stoup_vol_disk_field, n, o, l)
#define STOUP_VOL_AT_SERIES(t, n, s, o, l)     STOUP_VOL_DISK_AT(stoup_vol_disk_series, n, o, l)
#define STOUP_VOL_AT_BLOCK(t, n, s, o, l)      STOUP_VOL_DISK_AT(stoup_vol_disk_block, n, o, l)
#define STOUP_VOL_AT_SEGMENT(t, n, s, o, l)    STOUP_VOL_DISK_AT(stoup_vol_disk_segment, n, o, l)
#define STOUP_VOL_AT_SUPERSEDED(t, n, s, o, l) STOUP_VOL_DISK_AT(stoup_vol_disk_superseded, n, o, l)
#define STOUP_VOL_AT_SOURCE(t, n, s, o, l)     STOUP_VOL_DISK_AT(stoup_vol_disk_source, n, o, l)
STOUP_VOL_DISK_HEADER(STOUP_VOL_AT_HEADER)
STOUP_VOL_DISK_TRAILER(STOUP_VOL_AT_TRAILER)
STOUP_VOL_DISK_FOOTER(STOUP_VOL_AT_FOOTER)
STOUP_VOL_DISK_SECTION(STOUP_VOL_AT_SECTION)
STOUP_VOL_DISK_SCHEMA(STOUP_VOL_AT_SCHEMA)
STOUP_VOL_DISK_FIELD(STOUP_VOL_AT_FIELD)
STOUP_VOL_DISK_SERIES(STOUP_VOL_AT_SERIES)
STOUP_VOL_DISK_BLOCK(STOUP_VOL_AT_BLOCK)
STOUP_VOL_DISK_SEGMENT(STOUP_VOL_AT_SEGMENT)
STOUP_VOL_DISK_SUPERSEDED(STOUP_VOL_AT_SUPERSEDED)
STOUP_VOL_DISK_SOURCE(STOUP_VOL_AT_SOURCE)

/* Sections: X(number, C name, name in texts, bytes of one entry in minor 0). All are present once.
 * A reader steps over every number that it does not know. */
#define STOUP_VOL_SECTIONS(X)                                                                      \
	X(1, STRINGS, "strings", 1)                                                                \
	X(2, SCHEMAS, "schema", 48)                                                                \
	X(3, FIELDS, "field", 64)                                                                  \
	X(4, SERIES, "series", 48)                                                                 \
	X(5, BLOCKS, "block", 48)                                                                  \
	X(6, SEGMENTS, "segment", 48)                                                              \
	X(7, SUPERSEDED, "superseded", 16)

#define STOUP_VOL_SECTION_ENUM(number, name, text, len) STOUP_VOL_SECTION_##name = (number),
enum stoup_vol_section_kind {
	STOUP_VOL_SECTIONS(STOUP_VOL_SECTION_ENUM)
};
#define STOUP_VOL_SECTION_LAST 7u

/* Zone maps (zone.h), rows of words; present where there are some, once. */
#define STOUP_VOL_SECTION_ZONES  8u
#define STOUP_VOL_ZONE_ENTRY_LEN 8u

/* Present where the volume knows of files that all its records came from; once. */
#define STOUP_VOL_SECTION_SOURCES 9u

/* Bounds on what a file may claim. Each keeps hostile bytes from costing more than they weigh. */
#define STOUP_VOL_SECTION_CAP     64u    /* sections of a footer */
#define STOUP_VOL_ENTRY_LEN_CAP   4096u  /* bytes of one entry, whatever minors add */
#define STOUP_VOL_SCHEMA_CAP      1024u  /* schemas of a volume */
#define STOUP_VOL_FIELD_CAP       512u   /* fields of a schema */
#define STOUP_VOL_RECORD_LEN_CAP  65535u /* bytes of one fixed-length record */
#define STOUP_VOL_SCHEMA_NAME_CAP 32u    /* bytes, with the NUL */

#endif
