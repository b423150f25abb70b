/* SPDX-License-Identifier: Apache-2.0 */
/* volume_finish.c - the writer's end: sort, number, serialise, read back.
 *
 *      series --sort by (name, schema hash)--> rank
 *      segments --counting sort by rank, stable: so in key order--> consecutive per series
 *      [zero to 64][head][section table][strings][schemas] ... [superseded][zones][sources][trailer]   = the tail
 *
 * The tail is parsed before it is handed out. That costs about as much as making it, and gives one
 * place for the rules of the format: the reader's.
 *
 * Concurrency: a writer belongs to one thread.
 */
#include "codec/volume_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_CNT STOUP_VOL_SECTION_LAST

/* A series on its way to its number in the file. */
struct finish_order {
	const char *name;
	uint64_t hash;
	uint32_t series_idx;
};

struct finish {
	struct stoup_vol_writer *writer;
	struct finish_order *order; /* [rank] */
	uint32_t *ranks;            /* [series as added] */
	uint32_t *places;           /* [rank]: where its next segment goes */
	uint32_t series_cnt;        /* those with segments */
	uint32_t *added;            /* [segment in the file]: as added */
	/* [kind]; behind them those that may be there, in order */
	struct stoup_vol_disk_section sections[SECTION_CNT + 3];
	uint32_t zones_at, sources_at; /* 0: not there */
	uint32_t section_cnt;
	uint64_t footer_off, footer_len;
	uint8_t *footer; /* inside the tail */
};

/* ---- order ----------------------------------------------------------------------------------- */

static int order_compare(const void *a, const void *b)
{
	const struct finish_order *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->hash > y->hash) - (x->hash < y->hash);
}

static int id_compare(const void *a, const void *b)
{
	return memcmp(a, b, 16);
}

static int finish_sort(struct finish *finish)
{
	const struct stoup_vol_writer *writer = finish->writer;
	const struct stoup_vol_writer_schema *schemas = writer->schemas.at;
	const struct stoup_vol_writer_series *series = writer->series.at;
	const char *names = writer->names.at;
	size_t cnt = (size_t)writer->series.cnt + 1; /* never an empty allocation */
	uint32_t place = 0;

	finish->order = calloc(cnt, sizeof(*finish->order));
	finish->ranks = calloc(cnt, sizeof(*finish->ranks));
	finish->places = calloc(cnt, sizeof(*finish->places));
	finish->added = calloc((size_t)writer->segments.cnt + 1, sizeof(*finish->added));
	if (!finish->order || !finish->ranks || !finish->places || !finish->added)
		return -ENOMEM;
	for (uint32_t i = 0; i < writer->series.cnt; i++) {
		if (series[i].segment_cnt)
			finish->order[finish->series_cnt++] = (struct finish_order){
				.name = names + series[i].name_off,
				.hash = schemas[series[i].schema_idx].schema.hash,
				.series_idx = i,
			};
	}
	qsort(finish->order, finish->series_cnt, sizeof(*finish->order), order_compare);
	for (uint32_t rank = 0; rank < finish->series_cnt; rank++) {
		uint32_t idx = finish->order[rank].series_idx;

		finish->ranks[idx] = rank;
		finish->places[rank] = place;
		place += series[idx].segment_cnt;
	}
	return 0;
}

/* Sort the superseded ids and drop repeated ones. */
static void superseded_sort(struct stoup_vol_array *array)
{
	uint8_t(*ids)[16] = array->at;
	uint32_t cnt = 0;

	if (!array->cnt)
		return;
	qsort(ids, array->cnt, sizeof(*ids), id_compare);
	for (uint32_t i = 0; i < array->cnt; i++) {
		if (cnt && !memcmp(ids[cnt - 1], ids[i], sizeof(*ids)))
			continue;
		memmove(ids[cnt++], ids[i], sizeof(*ids));
	}
	array->cnt = cnt;
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint64_t string_len(const struct finish *finish)
{
	const struct stoup_vol_writer_schema *schemas = finish->writer->schemas.at;
	const struct stoup_vol_writer_series *series = finish->writer->series.at;
	uint64_t len = 0;

	for (uint32_t i = 0; i < finish->writer->schemas.cnt; i++)
		len += strlen(schemas[i].name) + 1;
	for (uint32_t i = 0; i < finish->series_cnt; i++)
		len += series[finish->order[i].series_idx].name_len + 1u;
	return len;
}

/* Entry `at` of the section table, whose section begins at `off`: where the next one does. */
static uint64_t place(struct finish *finish, uint32_t at, uint32_t kind, uint32_t entry_len,
	uint64_t cnt, uint64_t off)
{
	finish->sections[at] = (struct stoup_vol_disk_section){
		.kind = kind,
		.entry_len = entry_len,
		.off = off,
		.len = cnt * entry_len,
		.cnt = cnt,
	};
	return stoup_vol_align_up(off + cnt * entry_len, 8);
}

/* Fill the section table. -EFBIG where the footer would be longer than readers accept. */
static int finish_places(struct finish *finish)
{
	const struct stoup_vol_writer *writer = finish->writer;
	const uint64_t counts[SECTION_CNT + 1] = {
		[STOUP_VOL_SECTION_STRINGS] = string_len(finish),
		[STOUP_VOL_SECTION_SCHEMAS] = writer->schemas.cnt,
		[STOUP_VOL_SECTION_FIELDS] = writer->fields.cnt,
		[STOUP_VOL_SECTION_SERIES] = finish->series_cnt,
		[STOUP_VOL_SECTION_BLOCKS] = writer->blocks.cnt,
		[STOUP_VOL_SECTION_SEGMENTS] = writer->segments.cnt,
		[STOUP_VOL_SECTION_SUPERSEDED] = writer->superseded.cnt,
	};
	static const uint32_t entry_lens[SECTION_CNT + 1] = {
#define ENTRY_LEN(number, name, text, len) [number] = len,
		STOUP_VOL_SECTIONS(ENTRY_LEN)};
	uint32_t at = SECTION_CNT;
	uint64_t off;

	finish->section_cnt = SECTION_CNT + (writer->zones.cnt > 0) + (writer->sources.cnt > 0);
	off = sizeof(struct stoup_vol_disk_footer) +
	      finish->section_cnt * sizeof(struct stoup_vol_disk_section);

	for (uint32_t kind = 1; kind <= SECTION_CNT; kind++)
		off = place(finish, kind, kind, entry_lens[kind], counts[kind], off);
	if (writer->zones.cnt > 0) {
		finish->zones_at = ++at;
		off = place(finish, at, STOUP_VOL_SECTION_ZONES, STOUP_VOL_ZONE_ENTRY_LEN,
			writer->zones.cnt / STOUP_VOL_ZONE_ENTRY_LEN, off);
	}
	if (writer->sources.cnt > 0) {
		finish->sources_at = ++at;
		off = place(finish, at, STOUP_VOL_SECTION_SOURCES, sizeof(struct stoup_vol_source),
			writer->sources.cnt, off);
	}
	finish->footer_len = off;
	return off <= STOUP_VOL_FOOTER_CAP ? 0 : -EFBIG;
}

/* ---- serialise ------------------------------------------------------------------------------- */

static void *section_at(const struct finish *finish, uint32_t kind, uint32_t idx)
{
	const struct stoup_vol_disk_section *section = &finish->sections[kind];

	return finish->footer + section->off + (uint64_t)idx * section->entry_len;
}

static void put_head(const struct finish *finish)
{
	struct stoup_vol_disk_footer head = {
		.section_cnt = finish->section_cnt,
		.section_len = sizeof(struct stoup_vol_disk_section),
	};

	memcpy(finish->footer, &head, sizeof(head));
	memcpy(finish->footer + sizeof(head), &finish->sections[1],
		finish->section_cnt * sizeof(finish->sections[1]));
}

/* Append a string; returns its offset. */
static uint32_t put_string(
	const struct finish *finish, uint32_t *string_off, const char *text, size_t len)
{
	uint32_t off = *string_off;

	memcpy(section_at(finish, STOUP_VOL_SECTION_STRINGS, off), text, len + 1);
	*string_off = off + (uint32_t)len + 1;
	return off;
}

static void put_schemas(const struct finish *finish, uint32_t *string_off)
{
	const struct stoup_vol_writer *writer = finish->writer;
	const struct stoup_vol_writer_schema *schemas = writer->schemas.at;

	for (uint32_t i = 0; i < writer->schemas.cnt; i++) {
		const struct stoup_vol_schema *schema = &schemas[i].schema;
		size_t len = strlen(schemas[i].name);
		struct stoup_vol_disk_schema disk = {
			.name_off = put_string(finish, string_off, schemas[i].name, len),
			.name_len = (uint32_t)len,
			.stride = schema->stride,
			.align = schema->align,
			.key_off = schema->key_off,
			.flags = schema->flags,
			.field_first = schema->field_first,
			.field_cnt = schema->field_cnt,
			.interval_ns = schema->interval_ns,
			.hash = schema->hash,
		};

		memcpy(section_at(finish, STOUP_VOL_SECTION_SCHEMAS, i), &disk, sizeof(disk));
	}
	if (writer->fields.cnt)
		memcpy(section_at(finish, STOUP_VOL_SECTION_FIELDS, 0), writer->fields.at,
			writer->fields.cnt * sizeof(struct stoup_vol_field));
}

static void put_series(const struct finish *finish, uint32_t *string_off)
{
	const struct stoup_vol_writer_series *all = finish->writer->series.at;

	for (uint32_t rank = 0; rank < finish->series_cnt; rank++) {
		const struct finish_order *order = &finish->order[rank];
		const struct stoup_vol_writer_series *series = &all[order->series_idx];
		struct stoup_vol_disk_series disk = {
			.name_off = put_string(finish, string_off, order->name, series->name_len),
			.name_len = series->name_len,
			.schema_idx = series->schema_idx,
			.flags = series->flags,
			.segment_first = finish->places[rank],
			.segment_cnt = series->segment_cnt,
			.record_cnt = series->record_cnt,
			.first_key = series->first_key,
			.last_key = series->last_key,
		};

		memcpy(section_at(finish, STOUP_VOL_SECTION_SERIES, rank), &disk, sizeof(disk));
	}
}

/* After put_series, because it moves the places on; before the zone maps, which follow the same order. */
static void put_segments(const struct finish *finish)
{
	const struct stoup_vol_disk_segment *segments = finish->writer->segments.at;

	for (uint32_t i = 0; i < finish->writer->segments.cnt; i++) {
		struct stoup_vol_disk_segment disk = segments[i];
		uint32_t rank = finish->ranks[disk.series_idx];

		disk.series_idx = rank;
		finish->added[finish->places[rank]] = i;
		memcpy(section_at(finish, STOUP_VOL_SECTION_SEGMENTS, finish->places[rank]++),
			&disk, sizeof(disk));
	}
}

static void put_rest(const struct finish *finish)
{
	const struct stoup_vol_writer *writer = finish->writer;
	const struct stoup_vol_writer_block *blocks = writer->blocks.at;

	for (uint32_t i = 0; i < writer->blocks.cnt; i++)
		memcpy(section_at(finish, STOUP_VOL_SECTION_BLOCKS, i), &blocks[i].disk,
			sizeof(blocks[i].disk));
	if (writer->superseded.cnt)
		memcpy(section_at(finish, STOUP_VOL_SECTION_SUPERSEDED, 0), writer->superseded.at,
			(size_t)writer->superseded.cnt * 16);
	if (finish->zones_at)
		stoup_vol_zones_put(writer, finish->added, section_at(finish, finish->zones_at, 0));
	if (finish->sources_at)
		memcpy(section_at(finish, finish->sources_at, 0), writer->sources.at,
			writer->sources.cnt * sizeof(struct stoup_vol_source));
}

/* ---- all together ---------------------------------------------------------------------------- */

/* Read the result as a reader would. A fault is what the caller did not keep to: -EINVAL. */
static int finish_check(const struct finish *finish, const uint8_t *header, const uint8_t *trailer)
{
	struct stoup_vol_fault *fault = &finish->writer->fault;
	struct stoup_vol_index *index = NULL;
	uint64_t file_len = finish->footer_off + finish->footer_len + STOUP_VOL_TRAILER_LEN;
	int rc = stoup_vol_index_parse(header, trailer, finish->footer, (size_t)finish->footer_len,
		file_len, &index, fault);

	stoup_vol_index_destroy(index);
	return rc && rc != -ENOMEM ? -EINVAL : rc;
}

static int finish_make(struct finish *finish, const struct stoup_vol_header *header,
	uint8_t *ret_header, size_t *ret_tail_len)
{
	struct stoup_vol_writer *writer = finish->writer;
	uint64_t pad_len;
	uint32_t string_off = 0;
	uint8_t *trailer;
	int rc = finish_sort(finish);

	if (rc)
		return rc;
	superseded_sort(&writer->superseded);
	rc = finish_places(finish);
	if (rc)
		return rc;
	finish->footer_off = stoup_vol_align_up(writer->end_off, STOUP_VOL_BLOCK_ALIGN);
	pad_len = finish->footer_off - writer->end_off;
	*ret_tail_len = (size_t)(pad_len + finish->footer_len + STOUP_VOL_TRAILER_LEN);
	writer->tail = calloc(1, *ret_tail_len);
	if (!writer->tail)
		return -ENOMEM;
	finish->footer = writer->tail + pad_len;
	trailer = finish->footer + finish->footer_len;
	put_head(finish);
	put_schemas(finish, &string_off);
	put_series(finish, &string_off);
	put_segments(finish);
	put_rest(finish);
	stoup_vol_header_build(header, ret_header);
	stoup_vol_trailer_build(
		ret_header, finish->footer_off, finish->footer, finish->footer_len, trailer);
	return finish_check(finish, ret_header, trailer);
}

int stoup_vol_finish(struct stoup_vol_writer *writer, const struct stoup_vol_header *header,
	uint8_t ret_header[STOUP_VOL_HEADER_LEN], const uint8_t **ret_tail, size_t *ret_tail_len,
	uint64_t *ret_off)
{
	struct finish finish = {.writer = writer};
	uint8_t bytes[STOUP_VOL_HEADER_LEN];
	size_t tail_len = 0;
	int rc;

	free(writer->tail);
	writer->tail = NULL;
	rc = finish_make(&finish, header ? header : &writer->header, bytes, &tail_len);
	free(finish.order);
	free(finish.ranks);
	free(finish.places);
	free(finish.added);
	if (rc)
		return rc;
	memcpy(ret_header, bytes, sizeof(bytes));
	*ret_tail = writer->tail;
	*ret_tail_len = tail_len;
	*ret_off = writer->end_off;
	return 0;
}
