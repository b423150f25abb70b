/* SPDX-License-Identifier: Apache-2.0 */
/* volume_parse.c - header, trailer and footer of a volume to an index on the heap.
 *
 *      bytes --frame and hash--> footer --section table--> tables --copy--> index --rules--> ret
 *                                                                    (volume_check.c)
 *
 * Counts are believed only after they were held against the length of their section, and the index
 * is sized from them, so a file cannot ask for more memory than a small multiple of its footer.
 *
 * Concurrency: pure functions; the parser lives on the caller's stack.
 */
#include "codec/volume_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_ALIGN 16u

static const struct {
	const char *text;
	uint32_t entry_len;
} section_infos[STOUP_VOL_SECTION_LAST + 1] = {
#define SECTION_INFO(number, name, text, len) [number] = {text, len},
	STOUP_VOL_SECTIONS(SECTION_INFO)};

/* ---- faults ---------------------------------------------------------------------------------- */

/* -EBADMSG, region FOOTER, `off` bytes into it. */
#define FOOTER_FAULT(parser, off, ...)                                                             \
	stoup_vol_fault_set((parser)->fault, -EBADMSG, STOUP_VOL_REGION_FOOTER,                    \
		(parser)->footer_off + (off), __VA_ARGS__)
#define SECTION_AT(member) (at + offsetof(struct stoup_vol_disk_section, member))

int stoup_vol_entry_fault(const struct stoup_vol_parser *parser, uint32_t kind, uint64_t idx,
	uint64_t member_off, const char *fmt, ...)
{
	const struct stoup_vol_table *table = &parser->tables[kind];
	char text[sizeof(parser->fault->what)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return stoup_vol_fault_set(parser->fault, -EBADMSG, STOUP_VOL_REGION_FOOTER,
		parser->footer_off + table->off + idx * table->entry_len + member_off,
		"%s %" PRIu64 ": %s", section_infos[kind].text, idx, text);
}

/* ---- section table --------------------------------------------------------------------------- */

/* First byte of [from, to) that is not zero, or `to`. */
static uint64_t footer_nonzero(const struct stoup_vol_parser *parser, uint64_t from, uint64_t to)
{
	while (from < to && !parser->footer[from])
		from++;
	return from;
}

static int section_known(
	struct stoup_vol_parser *parser, uint64_t at, const struct stoup_vol_disk_section *section)
{
	int is_sources = section->kind == STOUP_VOL_SECTION_SOURCES;
	int is_zones = section->kind == STOUP_VOL_SECTION_ZONES;
	struct stoup_vol_table *table = is_sources ? &parser->sources
	                                : is_zones ? &parser->zones
	                                           : &parser->tables[section->kind];
	uint32_t least = is_sources ? (uint32_t)sizeof(struct stoup_vol_disk_source)
	                 : is_zones ? STOUP_VOL_ZONE_ENTRY_LEN
	                            : section_infos[section->kind].entry_len;
	int exact = parser->strict || least == 1;

	/* Of rows the words can not grow: another length is another thing of a later minor. */
	if (is_zones && !parser->strict && section->entry_len != least)
		return 0;
	if (table->present)
		return FOOTER_FAULT(
			parser, SECTION_AT(kind), "section %u is present twice", section->kind);
	if (section->entry_len < least || (exact && section->entry_len != least) ||
		(least > 1 && section->entry_len % 8))
		return FOOTER_FAULT(parser, SECTION_AT(entry_len),
			"section %u: entries of %u bytes instead of %u", section->kind,
			section->entry_len, least);
	if (section->cnt >= UINT32_MAX)
		return FOOTER_FAULT(parser, SECTION_AT(cnt),
			"section %u: too many entries, %" PRIu64, section->kind, section->cnt);
	table->off = section->off;
	table->cnt = section->cnt;
	table->entry_len = section->entry_len;
	table->present = 1;
	return 0;
}

/* One entry of the table at `at`; `prev_end` is the end of the section before. */
static int section_parse(struct stoup_vol_parser *parser, uint64_t at, uint64_t *prev_end)
{
	struct stoup_vol_disk_section section;
	uint64_t gap;

	memcpy(&section, parser->footer + at, sizeof(section));
	if (section.len > parser->footer_len || section.off > parser->footer_len - section.len)
		return FOOTER_FAULT(parser, SECTION_AT(off),
			"section %u: offset %" PRIu64 " and length %" PRIu64
			" reach beyond the footer of %" PRIu64,
			section.kind, section.off, section.len, parser->footer_len);
	if (section.off % 8 || section.off < *prev_end)
		return FOOTER_FAULT(parser, SECTION_AT(off),
			"section %u: offset %" PRIu64
			" is not 8-aligned, or begins before the end of what precedes it, %" PRIu64,
			section.kind, section.off, *prev_end);
	if (!section.entry_len || section.entry_len > STOUP_VOL_ENTRY_LEN_CAP ||
		section.len % section.entry_len || section.len / section.entry_len != section.cnt)
		return FOOTER_FAULT(parser, SECTION_AT(cnt),
			"section %u: %" PRIu64 " entries of %u bytes do not make %" PRIu64 " bytes",
			section.kind, section.cnt, section.entry_len, section.len);
	gap = footer_nonzero(parser, *prev_end, section.off);
	if (gap != section.off)
		return FOOTER_FAULT(
			parser, gap, "padding in front of section %u is not zero", section.kind);
	*prev_end = section.off + section.len;
	if ((section.kind && section.kind <= STOUP_VOL_SECTION_LAST) ||
		section.kind == STOUP_VOL_SECTION_ZONES ||
		section.kind == STOUP_VOL_SECTION_SOURCES)
		return section_known(parser, at, &section);
	return 0;
}

static int sections_complete(const struct stoup_vol_parser *parser)
{
	uint64_t schema_cnt = parser->tables[STOUP_VOL_SECTION_SCHEMAS].cnt;

	for (uint32_t kind = 1; kind <= STOUP_VOL_SECTION_LAST; kind++) {
		if (!parser->tables[kind].present)
			return FOOTER_FAULT(parser, 0, "section %u is missing", kind);
	}
	if (schema_cnt > STOUP_VOL_SCHEMA_CAP)
		return FOOTER_FAULT(parser, 0, "%" PRIu64 " schemas; allowed are %u", schema_cnt,
			STOUP_VOL_SCHEMA_CAP);
	return 0;
}

/* The head of the footer; the end of the section table goes to *ret_end. */
static int sections_head(const struct stoup_vol_parser *parser, struct stoup_vol_disk_footer *head,
	uint64_t *ret_end)
{
	memcpy(head, parser->footer, sizeof(*head));
	if (head->section_cnt > STOUP_VOL_SECTION_CAP)
		return FOOTER_FAULT(parser, 0, "%u sections; allowed are %u", head->section_cnt,
			STOUP_VOL_SECTION_CAP);
	if (head->section_len < sizeof(struct stoup_vol_disk_section) || head->section_len % 8 ||
		head->section_len > STOUP_VOL_ENTRY_LEN_CAP ||
		(parser->strict && head->section_len != sizeof(struct stoup_vol_disk_section)))
		return FOOTER_FAULT(parser, offsetof(struct stoup_vol_disk_footer, section_len),
			"entries of the section table have %u bytes instead of %zu",
			head->section_len, sizeof(struct stoup_vol_disk_section));
	if (parser->strict && head->zero)
		return FOOTER_FAULT(parser, offsetof(struct stoup_vol_disk_footer, zero),
			"reserved bytes are not zero");
	*ret_end = sizeof(*head) + (uint64_t)head->section_cnt * head->section_len;
	if (*ret_end > parser->footer_len)
		return FOOTER_FAULT(parser, 0,
			"the section table of %" PRIu64
			" bytes reaches beyond the footer of %" PRIu64,
			*ret_end, parser->footer_len);
	return 0;
}

static int sections_parse(struct stoup_vol_parser *parser)
{
	struct stoup_vol_disk_footer head;
	uint64_t end = 0, gap;
	int rc = sections_head(parser, &head, &end);

	for (uint32_t i = 0; !rc && i < head.section_cnt; i++)
		rc = section_parse(parser, sizeof(head) + (uint64_t)i * head.section_len, &end);
	if (rc)
		return rc;
	gap = footer_nonzero(parser, end, parser->footer_len);
	if (gap != parser->footer_len)
		return FOOTER_FAULT(parser, gap, "padding behind the last section is not zero");
	return sections_complete(parser);
}

/* ---- the index's memory ---------------------------------------------------------------------- */

/* The index while it is filled: the same arrays, writable. */
struct index_arrays {
	struct stoup_vol_schema *schemas;
	struct stoup_vol_field *fields;
	struct stoup_vol_series *series;
	struct stoup_vol_block *blocks;
	struct stoup_vol_segment *segments;
	uint8_t (*superseded)[16];
	struct stoup_vol_source *sources;
	uint32_t *zone_words;
	uint8_t *zones;
	char *strings;
};

static size_t index_reserve(size_t *total, uint64_t cnt, size_t entry_len)
{
	size_t off = *total;

	/* A footer has at most 2^30 bytes, so counts and products stay far below 2^63. */
	*total = (size_t)stoup_vol_align_up(off + cnt * entry_len, INDEX_ALIGN);
	return off;
}

static struct stoup_vol_index *index_alloc(
	const struct stoup_vol_parser *parser, struct index_arrays *ret)
{
	const struct stoup_vol_table *tables = parser->tables;
	size_t total = 0, at[STOUP_VOL_SECTION_LAST + 1], sources_at, zone_words_at, zones_at;
	struct stoup_vol_index *index;
	char *base;

#define RESERVE(kind, type)                                                                        \
	(at[STOUP_VOL_SECTION_##kind] =                                                            \
			index_reserve(&total, tables[STOUP_VOL_SECTION_##kind].cnt, sizeof(type)))
	index_reserve(&total, 1, sizeof(*index));
	RESERVE(SCHEMAS, *ret->schemas);
	RESERVE(FIELDS, *ret->fields);
	RESERVE(SERIES, *ret->series);
	RESERVE(BLOCKS, *ret->blocks);
	RESERVE(SEGMENTS, *ret->segments);
	RESERVE(SUPERSEDED, *ret->superseded);
	sources_at = index_reserve(&total, parser->sources.cnt, sizeof(*ret->sources));
	zone_words_at = index_reserve(&total,
		parser->zones.present ? tables[STOUP_VOL_SECTION_SEGMENTS].cnt : 0,
		sizeof(*ret->zone_words));
	zones_at = index_reserve(&total, parser->zones.cnt, STOUP_VOL_ZONE_ENTRY_LEN);
	RESERVE(STRINGS, char);
#undef RESERVE
	base = malloc(total);
	if (!base)
		return NULL;
	index = (void *)base;
	memset(index, 0, sizeof(*index));
	ret->schemas = (void *)(base + at[STOUP_VOL_SECTION_SCHEMAS]);
	ret->fields = (void *)(base + at[STOUP_VOL_SECTION_FIELDS]);
	ret->series = (void *)(base + at[STOUP_VOL_SECTION_SERIES]);
	ret->blocks = (void *)(base + at[STOUP_VOL_SECTION_BLOCKS]);
	ret->segments = (void *)(base + at[STOUP_VOL_SECTION_SEGMENTS]);
	ret->superseded = (void *)(base + at[STOUP_VOL_SECTION_SUPERSEDED]);
	ret->sources = (void *)(base + sources_at);
	ret->zone_words = (void *)(base + zone_words_at);
	ret->zones = (void *)(base + zones_at);
	ret->strings = base + at[STOUP_VOL_SECTION_STRINGS];
	index->schemas = ret->schemas;
	index->fields = ret->fields;
	index->series = ret->series;
	index->blocks = ret->blocks;
	index->segments = ret->segments;
	index->superseded = (const uint8_t(*)[16])ret->superseded;
	index->sources = ret->sources;
	index->schema_cnt = (uint32_t)tables[STOUP_VOL_SECTION_SCHEMAS].cnt;
	index->field_cnt = (uint32_t)tables[STOUP_VOL_SECTION_FIELDS].cnt;
	index->series_cnt = (uint32_t)tables[STOUP_VOL_SECTION_SERIES].cnt;
	index->block_cnt = (uint32_t)tables[STOUP_VOL_SECTION_BLOCKS].cnt;
	index->segment_cnt = (uint32_t)tables[STOUP_VOL_SECTION_SEGMENTS].cnt;
	index->superseded_cnt = (uint32_t)tables[STOUP_VOL_SECTION_SUPERSEDED].cnt;
	index->source_cnt = (uint32_t)parser->sources.cnt;
	if (parser->zones.present) {
		index->zone_words = ret->zone_words;
		index->zones = ret->zones;
		index->zone_len = parser->zones.cnt * STOUP_VOL_ZONE_ENTRY_LEN;
	}
	return index;
}

/* ---- sections to arrays ---------------------------------------------------------------------- */

static const uint8_t *entry_at(const struct stoup_vol_parser *parser, uint32_t kind, uint64_t idx)
{
	const struct stoup_vol_table *table = &parser->tables[kind];

	return parser->footer + table->off + idx * table->entry_len;
}

/* A string is inside the strings section, ends with a NUL there and has none inside. */
static int string_check(const struct stoup_vol_parser *parser, uint32_t kind, uint64_t idx,
	const char *strings, uint32_t off, uint32_t len, uint32_t cap)
{
	uint64_t total = parser->tables[STOUP_VOL_SECTION_STRINGS].cnt;

	if (!len || len >= cap)
		return stoup_vol_entry_fault(parser, kind, idx, 4,
			"the name has %u bytes; allowed are 1 to %u", len, cap - 1);
	if (off >= total || len >= total - off)
		return stoup_vol_entry_fault(parser, kind, idx, 0,
			"the name at %u with %u bytes and a NUL reaches beyond the %" PRIu64
			" bytes of strings",
			off, len, total);
	if (strings[off + len])
		return stoup_vol_entry_fault(parser, kind, idx, 0,
			"the name at %u with %u bytes is not followed by a NUL", off, len);
	if (!stoup_vol_name_valid(strings + off, len, cap))
		return stoup_vol_entry_fault(
			parser, kind, idx, 0, "the name at %u has a control byte", off);
	return 0;
}

static int copy_schemas(const struct stoup_vol_parser *parser, const struct index_arrays *to)
{
	for (uint32_t i = 0; i < parser->index->schema_cnt; i++) {
		struct stoup_vol_disk_schema disk;
		int rc;

		memcpy(&disk, entry_at(parser, STOUP_VOL_SECTION_SCHEMAS, i), sizeof(disk));
		rc = string_check(parser, STOUP_VOL_SECTION_SCHEMAS, i, to->strings, disk.name_off,
			disk.name_len, STOUP_VOL_SCHEMA_NAME_CAP);
		if (rc)
			return rc;
		to->schemas[i] = (struct stoup_vol_schema){
			.name = to->strings + disk.name_off,
			.stride = disk.stride,
			.align = disk.align,
			.key_off = disk.key_off,
			.flags = disk.flags,
			.field_first = disk.field_first,
			.field_cnt = disk.field_cnt,
			.interval_ns = disk.interval_ns,
			.hash = disk.hash,
		};
	}
	return 0;
}

static int copy_series(const struct stoup_vol_parser *parser, const struct index_arrays *to)
{
	for (uint32_t i = 0; i < parser->index->series_cnt; i++) {
		struct stoup_vol_disk_series disk;
		int rc;

		memcpy(&disk, entry_at(parser, STOUP_VOL_SECTION_SERIES, i), sizeof(disk));
		rc = string_check(parser, STOUP_VOL_SECTION_SERIES, i, to->strings, disk.name_off,
			disk.name_len, STOUP_VOL_NAME_CAP);
		if (rc)
			return rc;
		to->series[i] = (struct stoup_vol_series){
			.name = to->strings + disk.name_off,
			.name_len = disk.name_len,
			.schema_idx = disk.schema_idx,
			.segment_first = disk.segment_first,
			.segment_cnt = disk.segment_cnt,
			.flags = disk.flags,
			.record_cnt = disk.record_cnt,
			.first_key = disk.first_key,
			.last_key = disk.last_key,
		};
	}
	return 0;
}

static int copy_blocks(const struct stoup_vol_parser *parser, const struct index_arrays *to)
{
	for (uint32_t i = 0; i < parser->index->block_cnt; i++) {
		struct stoup_vol_disk_block disk;

		memcpy(&disk, entry_at(parser, STOUP_VOL_SECTION_BLOCKS, i), sizeof(disk));
		if (parser->strict && disk.zero)
			return stoup_vol_entry_fault(parser, STOUP_VOL_SECTION_BLOCKS, i,
				offsetof(struct stoup_vol_disk_block, zero),
				"reserved bytes are not zero");
		to->blocks[i] = (struct stoup_vol_block){
			.schema_idx = disk.schema_idx,
			.raw_len = disk.raw_len,
			.stored_off = disk.stored_off,
			.stored_len = disk.stored_len,
			.codec = disk.codec,
			.transform = disk.transform,
			.stored_hash = disk.stored_hash,
			.raw_hash = disk.raw_hash,
		};
	}
	return 0;
}

static int copy_segments(const struct stoup_vol_parser *parser, const struct index_arrays *to)
{
	for (uint32_t i = 0; i < parser->index->segment_cnt; i++) {
		struct stoup_vol_disk_segment disk;

		memcpy(&disk, entry_at(parser, STOUP_VOL_SECTION_SEGMENTS, i), sizeof(disk));
		if (parser->strict && disk.zero)
			return stoup_vol_entry_fault(parser, STOUP_VOL_SECTION_SEGMENTS, i,
				offsetof(struct stoup_vol_disk_segment, zero),
				"reserved bytes are not zero");
		to->segments[i] = (struct stoup_vol_segment){
			.series_idx = disk.series_idx,
			.block_idx = disk.block_idx,
			.raw_off = disk.raw_off,
			.raw_len = disk.raw_len,
			.record_cnt = disk.record_cnt,
			.ordinal = disk.ordinal,
			.first_key = disk.first_key,
			.last_key = disk.last_key,
		};
	}
	return 0;
}

static int copy_sources(const struct stoup_vol_parser *parser, const struct index_arrays *to)
{
	const struct stoup_vol_table *table = &parser->sources;

	for (uint32_t i = 0; i < parser->index->source_cnt; i++) {
		uint64_t off = table->off + (uint64_t)i * table->entry_len;

		memcpy(&to->sources[i], parser->footer + off, sizeof(to->sources[i]));
		if (!stoup_vol_source_name_valid(to->sources[i].name))
			return FOOTER_FAULT(parser,
				off + offsetof(struct stoup_vol_disk_source, name),
				"source %u: the name is empty, or is no text with NUL bytes behind it",
				i);
	}
	return 0;
}

static int copy_all(const struct stoup_vol_parser *parser, const struct index_arrays *to)
{
	const struct stoup_vol_index *index = parser->index;
	uint64_t string_len = parser->tables[STOUP_VOL_SECTION_STRINGS].cnt;
	int rc;

	if (string_len)
		memcpy(to->strings, entry_at(parser, STOUP_VOL_SECTION_STRINGS, 0), string_len);
	for (uint32_t i = 0; i < index->field_cnt; i++)
		memcpy(&to->fields[i], entry_at(parser, STOUP_VOL_SECTION_FIELDS, i),
			sizeof(to->fields[i]));
	for (uint32_t i = 0; i < index->superseded_cnt; i++)
		memcpy(to->superseded[i], entry_at(parser, STOUP_VOL_SECTION_SUPERSEDED, i),
			sizeof(to->superseded[i]));
	rc = copy_schemas(parser, to);
	if (!rc)
		rc = copy_series(parser, to);
	if (!rc)
		rc = copy_blocks(parser, to);
	if (!rc)
		rc = copy_segments(parser, to);
	if (!rc)
		rc = copy_sources(parser, to);
	return rc;
}

_Static_assert(sizeof(struct stoup_vol_source) == sizeof(struct stoup_vol_disk_source), "copied");

_Static_assert(sizeof(struct stoup_vol_field) == sizeof(struct stoup_vol_disk_field), "copied");

/* ---- all together ---------------------------------------------------------------------------- */

/* Header, trailer and footer belong together: copy of the checksum, places, hash. */
static int frame_check(const uint8_t *trailer_bytes, const uint8_t *header_bytes,
	const struct stoup_vol_parser *parser, uint64_t file_len)
{
	struct stoup_vol_disk_trailer trailer;
	struct stoup_vol_disk_header header;
	uint64_t at = file_len - STOUP_VOL_TRAILER_LEN, hash;

	memcpy(&trailer, trailer_bytes, sizeof(trailer));
	memcpy(&header, header_bytes, sizeof(header));
	if (trailer.header_checksum != header.checksum)
		return stoup_vol_fault_set(parser->fault, -EBADMSG, STOUP_VOL_REGION_TRAILER,
			at + offsetof(struct stoup_vol_disk_trailer, header_checksum),
			"header and trailer are of two different volumes: the header's checksum is "
			"0x%016" PRIx64 ", the trailer's copy 0x%016" PRIx64,
			header.checksum, trailer.header_checksum);
	if (parser->strict && trailer.zero)
		return stoup_vol_fault_set(parser->fault, -EBADMSG, STOUP_VOL_REGION_TRAILER,
			at + offsetof(struct stoup_vol_disk_trailer, zero),
			"reserved bytes are not zero");
	hash = stoup_vol_hash(parser->footer, (size_t)parser->footer_len);
	if (trailer.footer_hash != hash)
		return stoup_vol_fault_set(parser->fault, -EBADMSG, STOUP_VOL_REGION_FOOTER,
			parser->footer_off,
			"damaged: the trailer says hash 0x%016" PRIx64 ", but the %" PRIu64
			" bytes give 0x%016" PRIx64,
			trailer.footer_hash, parser->footer_len, hash);
	return 0;
}

static int index_build(struct stoup_vol_parser *parser, const struct stoup_vol_header *header,
	uint64_t file_len, struct stoup_vol_index **ret)
{
	struct index_arrays arrays;
	struct stoup_vol_index *index;
	int rc;

	index = index_alloc(parser, &arrays);
	if (!index)
		return stoup_vol_fault_set(parser->fault, -ENOMEM, STOUP_VOL_REGION_FOOTER,
			parser->footer_off, "no memory for the index of %" PRIu64 " bytes",
			parser->footer_len);
	index->header = *header;
	index->footer_off = parser->footer_off;
	index->footer_len = parser->footer_len;
	index->file_len = file_len;
	parser->index = index;
	rc = copy_all(parser, &arrays);
	if (!rc)
		rc = stoup_vol_index_check(parser);
	if (!rc)
		rc = stoup_vol_zones_parse(parser, arrays.zone_words, arrays.zones);
	if (rc) {
		free(index);
		return rc;
	}
	*ret = index;
	return 0;
}

int stoup_vol_index_parse(const uint8_t header[STOUP_VOL_HEADER_LEN],
	const uint8_t trailer[STOUP_VOL_TRAILER_LEN], const uint8_t *footer, size_t footer_len,
	uint64_t file_len, struct stoup_vol_index **ret, struct stoup_vol_fault *fault)
{
	struct stoup_vol_parser parser = {.footer = footer, .fault = fault};
	struct stoup_vol_header head;
	int rc;

	rc = stoup_vol_header_parse(header, &head, fault);
	if (!rc)
		rc = stoup_vol_trailer_parse(
			trailer, file_len, &parser.footer_off, &parser.footer_len, fault);
	if (rc)
		return rc;
	if (parser.footer_len != footer_len)
		return stoup_vol_fault_set(fault, -EBADMSG, STOUP_VOL_REGION_TRAILER,
			file_len - STOUP_VOL_TRAILER_LEN,
			"the trailer was read anew and gives another footer length: the file "
			"changed while it was read");
	parser.strict = head.minor <= STOUP_VOL_MINOR;
	rc = frame_check(trailer, header, &parser, file_len);
	if (!rc)
		rc = sections_parse(&parser);
	if (!rc)
		rc = index_build(&parser, &head, file_len, ret);
	return rc;
}

void stoup_vol_index_destroy(struct stoup_vol_index *index)
{
	free(index);
}
