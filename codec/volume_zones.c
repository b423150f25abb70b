/* SPDX-License-Identifier: Apache-2.0 */
/* volume_zones.c - the zone maps of a volume: rows in the footer, read and written.
 *
 *      zones   [row of segment 0][row of segment 3][row of segment 4] ...     each as long as its schema says
 *      words     1 0 0 17 40                                                  where a segment's row begins, + 1
 *
 * Rows are read after all else of the index was checked, since segment, series and schema say how long one is.
 *
 * Concurrency: pure functions; a writer belongs to one thread.
 */
#include "codec/volume_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "codec/zone.h"

/* Beyond that a writer leaves zone maps out: the footer is bounded, and they are a help only. */
#define ZONES_LEN_CAP (STOUP_VOL_FOOTER_CAP / 4u)

#define ZONE_FAULT(parser, place, ...)                                                             \
	stoup_vol_fault_set((parser)->fault, -EBADMSG, STOUP_VOL_REGION_FOOTER,                    \
		(parser)->footer_off + (parser)->zones.off + (place), __VA_ARGS__)

static const struct stoup_vol_schema *schema_of(
	const struct stoup_vol_index *index, uint32_t segment_idx)
{
	return &index->schemas[index->series[index->segments[segment_idx].series_idx].schema_idx];
}

uint32_t stoup_vol_zone_len(const struct stoup_vol_index *index, uint32_t segment_idx)
{
	const struct stoup_vol_schema *schema = schema_of(index, segment_idx);

	return schema->stride
	               ? stoup_zone_len(index->fields + schema->field_first, schema->field_cnt)
	               : 0;
}

const uint8_t *stoup_vol_zone(const struct stoup_vol_index *index, uint32_t segment_idx)
{
	uint32_t word = index->zone_words ? index->zone_words[segment_idx] : 0;

	return word ? index->zones + (uint64_t)(word - 1) * 8 : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The row at `at` of `left` bytes: its length, or a negative errno with the fault filled. */
static int64_t row_check(const struct stoup_vol_parser *parser, const uint8_t *row, uint64_t at,
	uint64_t left, int64_t before)
{
	const struct stoup_vol_index *index = parser->index;
	const struct stoup_vol_schema *schema;
	uint32_t segment_idx, len, field = 0;
	const char *what;

	memcpy(&segment_idx, row, sizeof(segment_idx));
	if (segment_idx >= index->segment_cnt || segment_idx <= before)
		return ZONE_FAULT(parser, at,
			"zones: a row of segment %u of %u stands behind that of %" PRId64,
			segment_idx, index->segment_cnt, before);
	len = stoup_vol_zone_len(index, segment_idx);
	if (len == 0 || len > left)
		return ZONE_FAULT(parser, at,
			"zones: the row of segment %u has %u bytes (0: of messages), left are "
			"%" PRIu64,
			segment_idx, len, left);
	schema = schema_of(index, segment_idx);
	what = stoup_zone_check(
		index->fields + schema->field_first, schema->field_cnt, row, &field);
	if (what && field == schema->field_cnt)
		return ZONE_FAULT(parser, at, "zones: row of segment %u: %s", segment_idx, what);
	if (what)
		return ZONE_FAULT(parser, at, "zones: row of segment %u, field %s: %s", segment_idx,
			index->fields[schema->field_first + field].name, what);
	return len;
}

int stoup_vol_zones_parse(const struct stoup_vol_parser *parser, uint32_t *words, uint8_t *zones)
{
	uint64_t len = parser->zones.cnt * 8;
	int64_t before = -1, row_len;

	if (!parser->zones.present)
		return 0;
	memcpy(zones, parser->footer + parser->zones.off, len);
	memset(words, 0, parser->index->segment_cnt * sizeof(*words));
	for (uint64_t at = 0; at < len; at += (uint64_t)row_len) {
		uint32_t segment_idx;

		row_len = row_check(parser, zones + at, at, len - at, before);
		if (row_len < 0)
			return (int)row_len;
		memcpy(&segment_idx, zones + at, sizeof(segment_idx));
		before = segment_idx;
		words[segment_idx] = (uint32_t)(at / 8) + 1;
	}
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

int stoup_vol_add_zone(struct stoup_vol_writer *writer, const uint8_t *row, uint32_t len)
{
	const struct stoup_vol_disk_segment *segments = writer->segments.at;
	const struct stoup_vol_writer_series *series = writer->series.at;
	const struct stoup_vol_writer_schema *schemas = writer->schemas.at;
	const struct stoup_vol_field *fields = writer->fields.at;
	const struct stoup_vol_schema *schema;
	uint32_t *words = writer->zone_words.at, last = writer->segments.cnt - 1;
	uint8_t *to;

	if (writer->segments.cnt == 0 || words[last] != 0)
		return -EINVAL;
	schema = &schemas[series[segments[last].series_idx].schema_idx].schema;
	if (!schema->stride || len == 0 ||
		len != stoup_zone_len(fields + schema->field_first, schema->field_cnt))
		return -EINVAL;
	if (writer->zones.cnt + (uint64_t)len > ZONES_LEN_CAP)
		return 0;
	to = stoup_vol_array_append(&writer->zones, len, 1);
	if (!to)
		return -ENOMEM;
	memcpy(to, row, len);
	words[last] = (writer->zones.cnt - len) / 8 + 1;
	return 0;
}

void stoup_vol_zones_put(const struct stoup_vol_writer *writer, const uint32_t *order, uint8_t *ret)
{
	const struct stoup_vol_disk_segment *segments = writer->segments.at;
	const struct stoup_vol_writer_series *series = writer->series.at;
	const struct stoup_vol_writer_schema *schemas = writer->schemas.at;
	const struct stoup_vol_field *fields = writer->fields.at;
	const uint32_t *words = writer->zone_words.at;
	const uint8_t *zones = writer->zones.at;

	for (uint32_t number = 0; number < writer->segments.cnt; number++) {
		uint32_t added = order[number];
		const struct stoup_vol_schema *schema =
			&schemas[series[segments[added].series_idx].schema_idx].schema;
		uint32_t len;

		if (words[added] == 0)
			continue;
		len = stoup_zone_len(fields + schema->field_first, schema->field_cnt);
		memcpy(ret, zones + (uint64_t)(words[added] - 1) * 8, len);
		memcpy(ret, &number, sizeof(number));
		ret += len;
	}
}
