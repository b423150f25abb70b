/* SPDX-License-Identifier: Apache-2.0 */
/* volume_private.h - what the files of the volume reader and writer share.
 *
 *      volume_frame.c   header and trailer: bytes <-> structure, fault texts, the hash
 *      volume_parse.c   section table, and sections copied into the index
 *      volume_check.c   the rules that hold between the entries of an index
 *      volume_schema.c  the rules inside one schema, and its hash
 *      volume_zones.c   zone maps, read and written
 *      volume_block.c   a block's bytes against the index, padding
 *      volume_write.c   the writer's state: what is appended
 *      volume_finish.c  the writer's end: sort, number, serialise
 *
 * Invariant: a parser's tables lie inside its footer, so that entry addresses need no check.
 *
 * Concurrency: none; a parser lives on the stack of stoup_vol_index_parse.
 */
#ifndef STOUP_CODEC_VOLUME_PRIVATE_H
#define STOUP_CODEC_VOLUME_PRIVATE_H

#include <stddef.h>
#include <stdint.h>
#include "codec/volume.h"
#include "codec/volume_layout.h"

/* ---- faults ---------------------------------------------------------------------------------- */

/* Fill `fault` (may be NULL) and return `code`. `what` is cut at its end if it is too long. */
int stoup_vol_fault_set(struct stoup_vol_fault *fault, int code, uint32_t region, uint64_t file_off,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* ---- frame ----------------------------------------------------------------------------------- */

/* Write 64 bytes with version and checksum of this program. */
void stoup_vol_header_build(
	const struct stoup_vol_header *header, uint8_t ret[STOUP_VOL_HEADER_LEN]);
void stoup_vol_trailer_build(const uint8_t header[STOUP_VOL_HEADER_LEN], uint64_t footer_off,
	const uint8_t *footer, uint64_t footer_len, uint8_t ret[STOUP_VOL_TRAILER_LEN]);

/* ---- parser ---------------------------------------------------------------------------------- */

struct stoup_vol_table {
	uint64_t off; /* bytes from the footer's start */
	uint64_t cnt;
	uint32_t entry_len;
	uint32_t present;
};

struct stoup_vol_parser {
	const uint8_t *footer;
	uint64_t footer_off, footer_len;
	/* The file's minor is known: reserved bytes are zero, entries have exactly known
	 * lengths. */
	int strict;
	struct stoup_vol_table tables[STOUP_VOL_SECTION_LAST + 1];
	struct stoup_vol_table sources, zones;
	struct stoup_vol_index *index;
	struct stoup_vol_fault *fault;
};

/* -EBADMSG, region FOOTER, at member_off of an entry; the text begins with "<section> <idx>: ". */
int stoup_vol_entry_fault(const struct stoup_vol_parser *parser, uint32_t kind, uint64_t idx,
	uint64_t member_off, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Check all rules between entries. 0, -EBADMSG with the parser's fault filled, -ENOMEM. */
int stoup_vol_index_check(const struct stoup_vol_parser *parser);

/* Copy the rows of an index that was checked and say where they begin (volume_zones.c). 0, or -EBADMSG. */
int stoup_vol_zones_parse(const struct stoup_vol_parser *parser, uint32_t *words, uint8_t *zones);

/* ---- schemas --------------------------------------------------------------------------------- */

/* Bytes of one element of a field type; 0 for a type that there is not. */
uint32_t stoup_vol_type_len(uint32_t type);
int stoup_vol_type_is_int(uint32_t type);

/* What is wrong in one schema: the words, and in which field (or -1: in the schema itself). */
struct stoup_vol_schema_fault {
	const char *what;
	int64_t field;
};

/* 0, or -EBADMSG with `ret` filled. The schema's name is NUL-terminated; `fields` are its own. */
int stoup_vol_schema_check(const struct stoup_vol_schema *schema,
	const struct stoup_vol_field *fields, int strict, struct stoup_vol_schema_fault *ret);

uint64_t stoup_vol_schema_hash(
	const struct stoup_vol_schema *schema, const struct stoup_vol_field *fields);

/* A name of 1 to cap - 1 bytes without control bytes. */
int stoup_vol_name_valid(const char *name, size_t len, size_t cap);

/* ---- writer ---------------------------------------------------------------------------------- */

/* A growing array of entries of one length; `at` is NULL while it is empty. */
struct stoup_vol_array {
	void *at;
	uint32_t cnt, cap;
};

struct stoup_vol_writer_schema {
	struct stoup_vol_schema schema; /* .name points into writer memory only while it is used */
	char name[STOUP_VOL_SCHEMA_NAME_CAP];
};

struct stoup_vol_writer_series {
	uint64_t name_off; /* into names */
	uint32_t name_len, schema_idx, flags, segment_cnt;
	uint64_t record_cnt;
	int64_t first_key, last_key;
};

struct stoup_vol_writer_block {
	struct stoup_vol_disk_block disk;
	uint32_t segment_cnt;  /* so far */
	uint32_t segment_last; /* the one added last, if segment_cnt > 0 */
};

struct stoup_vol_writer {
	struct stoup_vol_header header;
	struct stoup_vol_fault fault;
	struct stoup_vol_array schemas;    /* struct stoup_vol_writer_schema */
	struct stoup_vol_array fields;     /* struct stoup_vol_field */
	struct stoup_vol_array series;     /* struct stoup_vol_writer_series */
	struct stoup_vol_array blocks;     /* struct stoup_vol_writer_block */
	struct stoup_vol_array segments;   /* struct stoup_vol_disk_segment, series_idx as added */
	struct stoup_vol_array superseded; /* 16 bytes each */
	struct stoup_vol_array sources;    /* struct stoup_vol_source */
	struct stoup_vol_array names;      /* bytes: series names with their NUL */
	struct stoup_vol_array zones; /* bytes: rows, in the order of their segments as added */
	struct stoup_vol_array zone_words; /* uint32_t, as many as segments: as in an index */
	uint32_t *slots;   /* hash map of (name, schema) to series index + 1; 0 = free */
	uint32_t slot_cnt; /* a power of two, above 4/3 of the series */
	uint64_t end_off;  /* file offset behind the last block */
	uint8_t *tail;     /* what stoup_vol_finish made */
};

/* Room for `cnt` (at least 1) more entries; the first of them is returned, zeroed, and counted. NULL: no memory, or more
 * entries than any footer holds. */
void *stoup_vol_array_append(struct stoup_vol_array *array, uint32_t cnt, size_t entry_len);

/* Write the rows in the order of segments in the file: order[number] is a segment as added. */
void stoup_vol_zones_put(
	const struct stoup_vol_writer *writer, const uint32_t *order, uint8_t *ret);

/* ---- small rules that the reader and the writer share ---------------------------------------- */

static inline uint64_t stoup_vol_align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

/* A source's name is text, then NUL bytes to the end: one of them at least. */
static inline int stoup_vol_source_name_valid(const char *name)
{
	uint32_t len = 0;

	while (len < STOUP_VOL_SOURCE_NAME_CAP && name[len]) {
		if ((unsigned char)name[len] < 0x20 || name[len] == 0x7f)
			return 0;
		len++;
	}
	if (len == 0 || len == STOUP_VOL_SOURCE_NAME_CAP)
		return 0;
	while (len < STOUP_VOL_SOURCE_NAME_CAP && !name[len])
		len++;
	return len == STOUP_VOL_SOURCE_NAME_CAP;
}

/* Alignment of a block in the file: raw records can be mapped, so they begin on a page. */
static inline uint64_t stoup_vol_block_align(uint32_t codec, uint32_t transform)
{
	return !codec && !transform ? STOUP_VOL_BLOCK_ALIGN_RAW : STOUP_VOL_BLOCK_ALIGN;
}

/* Stored lengths: equal for raw records; else the codec must have made the block shorter, which
 * bounds what a reader must stage. */
static inline int stoup_vol_stored_len_valid(
	uint32_t codec, uint32_t transform, uint32_t stored_len, uint32_t raw_len)
{
	if (!codec && !transform)
		return stored_len == raw_len;
	return stored_len && stored_len <= raw_len;
}

#endif
