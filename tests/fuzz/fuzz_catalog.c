/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_catalog.c - any bytes as the catalog of a volume: what verify accepts must be safe to walk.
 *
 *      bytes[0]      flags: 1 a mapping a page too short, 2 change a byte of the header; above them words of zone maps
 *      bytes[1..5]   counts of schemas, fields, series, blocks, segments; bytes[6..7] of string bytes
 *      bytes[8..10]  the change: offset, mask
 *      the rest      the tables, one after the other
 *
 * Readers check nothing after verify (shm/catalog.h), so this walks everything as series, cursors and
 * texts of errors do, with the bounds of the object as its only help: a heap buffer of that length.
 */
#include <errno.h>
#include "shm/catalog.h"
#include "tests/fuzz/fuzz.h"

static uint64_t sum; /* of what was read, so that it is read */

static void read_text(const char *text, size_t cap)
{
	size_t len = strnlen(text, cap);

	MUST(len < cap);
	sum += len;
}

static void walk_schemas(const struct stoup_catalog *c)
{
	for (uint32_t i = 0; i < c->schema_cnt; i++) {
		const struct stoup_catalog_schema *row = &stoup_catalog_schemas(c)[i];
		struct stoup_schema schema = {.stride = row->stride,
			.align = row->align,
			.key_off = row->key_off,
			.flags = row->flags,
			.interval_ns = row->interval_ns,
			.field_cnt = row->field_cnt,
			.fields = stoup_catalog_fields(c) + row->field_first};
		struct stoup_error err = {0};

		read_text(row->name, sizeof(row->name));
		memcpy(schema.name, row->name, sizeof(schema.name));
		sum += stoup_schema_hash(&schema);
		if (stoup_schema_valid(&schema, &err) < 0)
			continue;
		for (uint32_t at = 0; at < schema.field_cnt; at++) {
			const struct stoup_field *field = &schema.fields[at];
			uint64_t end =
				field->off + (uint64_t)field->cnt * stoup_type_len(field->type);

			read_text(field->name, sizeof(field->name));
			MUST(schema.flags & STOUP_SCHEMA_VARIABLE || end <= schema.stride);
		}
	}
}

/* The records of a segment lie inside its block, as long as the series says a record is. */
static void walk_segments(const struct stoup_catalog *c, const struct stoup_catalog_series *series)
{
	const struct stoup_catalog_segment *segments =
		stoup_catalog_segments(c) + series->segment_first;
	uint64_t stride = stoup_catalog_schemas(c)[series->schema_idx].stride;

	for (uint32_t i = 0; i < series->segment_cnt; i++) {
		const struct stoup_catalog_segment *seg = &segments[i];
		const struct stoup_catalog_block *block;

		MUST(seg->block_idx < c->block_cnt);
		block = &stoup_catalog_blocks(c)[seg->block_idx];
		MUST(seg->raw_off <= block->raw_len);
		MUST(seg->record_cnt * stride <= block->raw_len - seg->raw_off);
		sum += seg->ordinal + (uint64_t)seg->first_key + (uint64_t)seg->last_key;
		sum += atomic_load(&stoup_catalog_residency_ro(c)[seg->block_idx]);
	}
}

/* A row begins inside, and what is said to lie there lies there. */
static void walk_zones(const struct stoup_catalog *c)
{
	for (uint32_t i = 0; i < c->segment_cnt; i++) {
		uint64_t len = 0;
		const uint8_t *row = stoup_catalog_zone(c, i, &len);

		if (!row)
			continue;
		MUST(len >= 8 && len <= c->zone_len);
		for (uint64_t at = 0; at < len; at++)
			sum += row[at];
	}
}

static void walk(const struct stoup_catalog *c)
{
	walk_schemas(c);
	for (uint32_t i = 0; i < c->series_cnt; i++) {
		const struct stoup_catalog_series *series = &stoup_catalog_series(c)[i];
		const char *name = stoup_catalog_string(c, series->name_off);
		int64_t found;

		MUST(series->name_off < c->string_len);
		read_text(name, c->string_len - series->name_off);
		MUST(series->schema_idx < c->schema_cnt);
		found = stoup_catalog_find(c, name);
		MUST(found >= 0 && found <= i);
		MUST(strcmp(stoup_catalog_string(c, stoup_catalog_series(c)[found].name_off),
			     name) == 0);
		walk_segments(c, series);
	}
	for (uint32_t i = 0; i < c->block_cnt; i++)
		sum += stoup_catalog_blocks(c)[i].stored_len;
	walk_zones(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len};
	uint8_t flags = fuzz_u8(&in), mask;
	struct stoup_catalog_counts counts = {0};
	struct stoup_catalog *catalog;
	size_t total, tables;
	struct stoup_error err = {0};
	const uint8_t *table;
	uint16_t off;
	int rc;

	counts.schema_cnt = fuzz_u8(&in);
	counts.field_cnt = fuzz_u8(&in);
	counts.series_cnt = fuzz_u8(&in);
	counts.block_cnt = fuzz_u8(&in);
	counts.segment_cnt = fuzz_u8(&in);
	counts.string_len = fuzz_u16(&in);
	off = fuzz_u16(&in);
	counts.zone_len = (uint64_t)(flags >> 2) * 8;
	total = stoup_catalog_footprint(&counts);
	catalog = aligned_alloc(64, total);
	MUST(catalog != NULL && total >= sizeof(*catalog));
	memset(catalog, 0, total);
	stoup_catalog_format(catalog, &counts, 0);
	mask = fuzz_u8(&in);
	if (flags & 2)
		((uint8_t *)catalog)[off % sizeof(*catalog)] ^= mask;
	tables = fuzz_take(&in, total - sizeof(*catalog), &table);
	memcpy((uint8_t *)catalog + sizeof(*catalog), table, tables);
	if (flags & 1 && total > STOUP_OS_PAGE_LEN)
		total -= STOUP_OS_PAGE_LEN;
	rc = stoup_catalog_verify(catalog, total, &err);
	MUST(rc == 0 || (rc == -EPROTO && err.code == rc && err.text[0]));
	MUST(rc < 0 || !(flags & 1) || total == STOUP_OS_PAGE_LEN);
	if (rc == 0)
		walk(catalog);
	free(catalog);
	return 0;
}
