/* SPDX-License-Identifier: Apache-2.0 */
/* catalog.c - footprint, format, verify and look-up of a volume's catalog. */
#include "shm/catalog.h"

#include <errno.h>
#include <string.h>

#define ZONE_LEN_CAP (UINT64_C(1) << 30) /* as a volume's footer */

static uint64_t page_up(uint64_t len)
{
	return (len + STOUP_OS_PAGE_LEN - 1) & ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
}

/* Lay the tables out one after the other. Counts are 32 bits and entries below 256 bytes, so that the
 * sums stay far below 2^64; strings are bounded by the caller's 2^40. */
static void lay_out(struct stoup_catalog *c, const struct stoup_catalog_counts *n)
{
	uint64_t off = sizeof(*c);

	c->schema_off = off;
	off += (uint64_t)n->schema_cnt * sizeof(struct stoup_catalog_schema);
	c->field_off = off;
	off += (uint64_t)n->field_cnt * sizeof(struct stoup_field);
	c->series_off = off;
	off += (uint64_t)n->series_cnt * sizeof(struct stoup_catalog_series);
	c->block_off = off;
	off += (uint64_t)n->block_cnt * sizeof(struct stoup_catalog_block);
	c->segment_off = off;
	off += (uint64_t)n->segment_cnt * sizeof(struct stoup_catalog_segment);
	c->string_off = off;
	c->string_len = n->string_len;
	off += n->string_len;
	c->residency_off = page_up(off);
	c->total_len = page_up(c->residency_off + (uint64_t)n->block_cnt * sizeof(uint64_t));
	c->zone_off = n->zone_len ? c->total_len : 0;
	c->zone_len = n->zone_len;
}

size_t stoup_catalog_footprint(const struct stoup_catalog_counts *counts)
{
	struct stoup_catalog c;

	if (counts->string_len > UINT64_C(1) << 40 || counts->zone_len > ZONE_LEN_CAP ||
		counts->zone_len % 8)
		return 0;
	memset(&c, 0, sizeof(c));
	c.segment_cnt = counts->segment_cnt;
	lay_out(&c, counts);
	return (size_t)(c.zone_len ? page_up(stoup_catalog_zone_rows_off(&c) + c.zone_len)
				   : c.total_len);
}

void stoup_catalog_format(struct stoup_catalog *catalog, const struct stoup_catalog_counts *counts,
	uint32_t volume_idx)
{
	catalog->abi_major = STOUP_ABI_MAJOR;
	catalog->volume_idx = volume_idx;
	catalog->schema_cnt = counts->schema_cnt;
	catalog->field_cnt = counts->field_cnt;
	catalog->series_cnt = counts->series_cnt;
	catalog->block_cnt = counts->block_cnt;
	catalog->segment_cnt = counts->segment_cnt;
	lay_out(catalog, counts);
	catalog->magic = STOUP_CATALOG_MAGIC;
}

static int bad(struct stoup_error *err, const char *what, uint64_t idx)
{
	return stoup_error_set(err, -EPROTO,
		"the daemon's catalog is malformed (%s %llu): daemon and library do not fit "
		"together",
		what, (unsigned long long)idx);
}

static int verify_schemas(const struct stoup_catalog *c, struct stoup_error *err)
{
	const struct stoup_catalog_schema *schemas = stoup_catalog_schemas(c);

	for (uint32_t i = 0; i < c->schema_cnt; i++) {
		const struct stoup_catalog_schema *s = &schemas[i];

		if (memchr(s->name, 0, sizeof(s->name)) == NULL)
			return bad(err, "schema name", i);
		if (s->field_first > c->field_cnt || s->field_cnt > c->field_cnt - s->field_first)
			return bad(err, "schema fields", i);
		if (!(s->flags & STOUP_SCHEMA_VARIABLE) &&
			(s->stride < sizeof(int64_t) || s->key_off > s->stride - sizeof(int64_t)))
			return bad(err, "schema key", i);
	}
	return 0;
}

static int verify_series(const struct stoup_catalog *c, struct stoup_error *err)
{
	const struct stoup_catalog_series *series = stoup_catalog_series(c);
	const char *strings = stoup_catalog_at(c, c->string_off);

	for (uint32_t i = 0; i < c->series_cnt; i++) {
		const struct stoup_catalog_series *s = &series[i];

		if (s->name_off >= c->string_len || s->name_len >= c->string_len - s->name_off ||
			strings[s->name_off + s->name_len] != 0)
			return bad(err, "series name", i);
		/* Else a series that is listed would not be found. */
		if (i > 0 && strcmp(strings + series[i - 1].name_off, strings + s->name_off) > 0)
			return bad(err, "order of series", i);
		if (s->schema_idx >= c->schema_cnt)
			return bad(err, "series schema", i);
		if (s->segment_first > c->segment_cnt ||
			s->segment_cnt > c->segment_cnt - s->segment_first)
			return bad(err, "series segments", i);
	}
	return 0;
}

static int verify_segments(const struct stoup_catalog *c, struct stoup_error *err)
{
	const struct stoup_catalog_segment *segments = stoup_catalog_segments(c);
	const struct stoup_catalog_series *series = stoup_catalog_series(c);
	const struct stoup_catalog_block *blocks = stoup_catalog_blocks(c);
	const struct stoup_catalog_schema *schemas = stoup_catalog_schemas(c);
	uint64_t cnt = 0;

	/* Each segment lies among those of the series that it names, and the series together have as many as
	 * there are: so no series has one of another, whose records may be shorter. */
	for (uint32_t i = 0; i < c->series_cnt; i++)
		cnt += series[i].segment_cnt;
	if (cnt != c->segment_cnt)
		return bad(err, "segments of all series", cnt);
	for (uint32_t i = 0; i < c->segment_cnt; i++) {
		const struct stoup_catalog_segment *s = &segments[i];
		uint64_t stride;

		if (s->block_idx >= c->block_cnt || s->series_idx >= c->series_cnt ||
			i - series[s->series_idx].segment_first >=
				series[s->series_idx].segment_cnt)
			return bad(err, "segment reference", i);
		stride = schemas[series[s->series_idx].schema_idx].stride;
		if (s->raw_off > blocks[s->block_idx].raw_len ||
			s->record_cnt * stride > blocks[s->block_idx].raw_len - s->raw_off)
			return bad(err, "segment bounds", i);
	}
	return 0;
}

/* Rows begin inside. What they say may be anything: it is compared, never followed. */
static int verify_zones(const struct stoup_catalog *c, struct stoup_error *err)
{
	const uint32_t *words = stoup_catalog_zone_words(c);

	for (uint32_t i = 0; words && i < c->segment_cnt; i++)
		if (words[i] > c->zone_len / 8)
			return bad(err, "zone map of segment", i);
	return 0;
}

int stoup_catalog_verify(
	const struct stoup_catalog *catalog, size_t map_len, struct stoup_error *err)
{
	struct stoup_catalog expected;
	struct stoup_catalog_counts counts;
	int rc;

	if (map_len < sizeof(*catalog) || catalog->magic != STOUP_CATALOG_MAGIC ||
		catalog->abi_major != STOUP_ABI_MAJOR)
		return bad(err, "header", 0);
	counts.schema_cnt = catalog->schema_cnt;
	counts.field_cnt = catalog->field_cnt;
	counts.series_cnt = catalog->series_cnt;
	counts.block_cnt = catalog->block_cnt;
	counts.segment_cnt = catalog->segment_cnt;
	counts.string_len = catalog->string_len;
	counts.zone_len = catalog->zone_len;
	if (stoup_catalog_footprint(&counts) == 0 || stoup_catalog_footprint(&counts) > map_len)
		return bad(err, "length", map_len);
	/* The offsets must be the ones that these counts give: no other arrangement is ever made. */
	expected = *catalog;
	lay_out(&expected, &counts);
	if (memcmp(&expected, catalog, sizeof(expected)) != 0)
		return bad(err, "offsets", 0);
	rc = verify_schemas(catalog, err);
	if (rc == 0)
		rc = verify_series(catalog, err);
	if (rc == 0)
		rc = verify_segments(catalog, err);
	if (rc == 0)
		rc = verify_zones(catalog, err);
	return rc;
}

int64_t stoup_catalog_find(const struct stoup_catalog *catalog, const char *name)
{
	const struct stoup_catalog_series *series = stoup_catalog_series(catalog);
	uint32_t low = 0, high = catalog->series_cnt;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (strcmp(stoup_catalog_string(catalog, series[mid].name_off), name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == catalog->series_cnt ||
		strcmp(stoup_catalog_string(catalog, series[low].name_off), name) != 0)
		return -1;
	return low;
}
