/* SPDX-License-Identifier: Apache-2.0 */
/* make_golden.c - writes the volumes of this directory, their expected contents and damaged copies.
 *
 *      the tables below --writer--> NAME.stoup
 *                       --printf--> CONTENT.txt          (not through the reader)
 *      NAME.stoup --one edit--> damaged/NAME.stoup, and the reader's words to damaged/faults.txt
 *
 * The files are committed and never written again: volumes of old programs must be readable for
 * ever. The program is kept to show how they came about, and to add files for a new minor version.
 * See README.md for the command.
 */
#include "tests/unit/volume_fixture.h"

#include <inttypes.h>

#include "codec/zone.h"
#include "codec/volume_layout.h"
#include "codec/volume_private.h"

#define KEY0       INT64_C(1735689600000000000) /* 2025-01-01T00:00:00Z */
#define BLOCK_CNT  64u                          /* records per block */
#define BLOCK_CAP  600u                         /* of a content with larger ones */
#define RECORD_CAP 64u

static const struct stoup_vol_field tick16_fields[] = {
	{.name = "ts_event", .off = 0, .cnt = 1, .type = 8, .flags = 0x06, .unit = "ns"},
	{.name = "price",
		.off = 8,
		.cnt = 1,
		.type = 6,
		.flags = 0x01,
		.exp10 = -2,
		.null_bits = 0x7fffffff,
		.unit = "USD"},
	{.name = "qty", .off = 12, .cnt = 1, .type = 5},
};
static const struct stoup_vol_field wide24_fields[] = {
	{.name = "id", .off = 0, .cnt = 1, .type = 7},
	{.name = "ts_recv", .off = 8, .cnt = 1, .type = 8, .flags = 0x06},
	{.name = "venue", .off = 16, .cnt = 4, .type = 11},
	{.name = "rsv", .off = 20, .cnt = 4, .type = 12, .flags = 0x08},
};
/* Every width, a time from another, and what each operation of the field transform is for. */
static const struct stoup_vol_field order56_fields[] = {
	{.name = "venue", .off = 0, .cnt = 4, .type = 11},
	{.name = "kind", .off = 4, .cnt = 1, .type = 1},
	{.name = "book", .off = 6, .cnt = 1, .type = 3},
	{.name = "ts_event", .off = 8, .cnt = 1, .type = 7, .flags = 0x02, .unit = "ns"},
	{.name = "order_id", .off = 16, .cnt = 1, .type = 7},
	{.name = "price",
		.off = 24,
		.cnt = 1,
		.type = 8,
		.flags = 0x01,
		.exp10 = -9,
		.null_bits = INT64_MAX},
	{.name = "size", .off = 32, .cnt = 1, .type = 5},
	{.name = "side", .off = 36, .cnt = 1, .type = 11},
	{.name = "ts_recv", .off = 40, .cnt = 1, .type = 8, .flags = 0x06, .unit = "ns"},
	{.name = "latency", .off = 48, .cnt = 1, .type = 6, .flags = 0x10},
	{.name = "change", .off = 52, .cnt = 1, .type = 4},
};
static const struct stoup_vol_schema schemas[] = {
	{.name = "tick16", .stride = 16, .align = 8, .key_off = 0, .field_cnt = 3},
	{.name = "wide24", .stride = 24, .align = 8, .key_off = 8, .field_cnt = 4},
	{.name = "order56", .stride = 56, .align = 8, .key_off = 40, .field_cnt = 11},
};
static const struct stoup_vol_field *const schema_fields[] = {
	tick16_fields, wide24_fields, order56_fields};

struct series_plan {
	const char *name;
	uint32_t schema_idx, flags, record_cnt;
};

struct content {
	const char *text; /* file with the expected contents */
	struct stoup_vol_header header;
	uint32_t schema_first, schema_cnt, series_cnt, superseded_cnt;
	uint32_t block_cnt;           /* records per block; 0: BLOCK_CNT */
	struct series_plan series[8]; /* in file order: by name, then schema hash */
	uint8_t superseded[2][16];
};

/* tick16: 3 blocks of 64 records for 100 + 20 + 72; wide24: one of 48 for 40 + 8. */
static const struct content ticks = {
	.text = "ticks.txt",
	.header = {.id = "golden-ticks-001",
		.created_ns = KEY0,
		.ingest_seq = 7,
		.batch_idx = 1,
		.batch_cnt = 2},
	.schema_cnt = 2,
	.series_cnt = 5,
	.series =
		{
			{"TEST/AAA/tick16", 0, 0, 100},
			{"TEST/B%2FB/tick16", 0, STOUP_VOL_SERIES_KEEP_ORDER, 20},
			{"TEST/BBB/wide24", 1, 0, 40},
			{"TEST/\xc3\xa9/tick16", 0, 0, 72},
			{"TEST/\xc3\xa9/wide24", 1, 0, 8},
		},
	.superseded_cnt = 2,
	.superseded = {"golden-older-001", "golden-older-002"},
};
static const struct content tiny = {
	.text = "tiny.txt",
	.header = {.id = "golden-tiny-0001", .created_ns = KEY0, .ingest_seq = 1, .batch_cnt = 1},
	.schema_cnt = 1,
	.series_cnt = 1,
	.series = {{"TEST/AAA/tick16", 0, 0, 2}},
};
static const struct content orders = {
	.text = "orders.txt",
	.header = {.id = "golden-orders-01", .created_ns = KEY0, .ingest_seq = 2, .batch_cnt = 1},
	.schema_first = 2,
	.schema_cnt = 1,
	.series_cnt = 2,
	.block_cnt = BLOCK_CAP,
	.series = {{"TEST/AAA/order56", 2, 0, 1000}, {"TEST/BBB/order56", 2, 0, 111}},
};
static const struct content none = {
	.text = "empty.txt",
	.header = {.id = "golden-empty-001", .created_ns = KEY0, .ingest_seq = 8, .batch_cnt = 1},
	.superseded_cnt = 1,
	.superseded = {"golden-ticks-001"},
};

static const struct golden {
	const char *name;
	const struct content *content;
	const char *codec, *level;
	int zones; /* with a zone map for every segment */
} goldens[] = {
	{"tiny", &tiny, "none", ""},
	{"empty", &none, "none", ""},
	{"ticks-none", &ticks, "none", ""},
	{"ticks-lz4", &ticks, "lz4", ""},
	{"ticks-lz4hc", &ticks, "lz4hc", "12"},
	{"ticks-zstd", &ticks, "zstd", ""},
	{"ticks-zstd19", &ticks, "zstd", "19"},
	{"ticks-default", &ticks, "default", ""},
	{"ticks-zones", &ticks, "lz4", "", 1},
	{"orders-fast", &orders, "fast", ""},
	{"orders-default", &orders, "default", ""},
	{"orders-small", &orders, "small", ""},
};

/* ---- records --------------------------------------------------------------------------------- */

/* A number below `below` that depends on its place alone. */
static uint64_t scatter(uint32_t ordinal, uint32_t what, uint64_t below)
{
	uint64_t value = ((uint64_t)ordinal * 8 + what + 1) * UINT64_C(0x9e3779b97f4a7c15);

	value ^= value >> 29;
	value *= UINT64_C(0xbf58476d1ce4e5b9);
	return (value >> 32) % below;
}

/* Times with noise, order ids that grow and look back, prices on a grid and undefined ones. */
static int64_t order_make(uint32_t series_idx, uint32_t ordinal, uint8_t *ret)
{
	int64_t event = KEY0 + (int64_t)ordinal * 1000000 + (int64_t)scatter(ordinal, 0, 900000);
	int64_t key = event + 20000 + (int64_t)scatter(ordinal, 1, 50000);
	uint64_t id = 7000000000 + ordinal * 3;
	uint64_t price = 4800000000000 + (scatter(ordinal, 2, 9) + ordinal / 100) * 250000000;

	memcpy(ret, "XCME", 4);
	image_put(ret + 4, 1, 160);
	image_put(ret + 6, 2, 40000 + series_idx);
	image_put(ret + 8, 8, (uint64_t)event);
	image_put(ret + 16, 8, ordinal % 3 ? id - scatter(ordinal, 3, 500) : id);
	image_put(ret + 24, 8, ordinal % 50 == 7 ? (uint64_t)INT64_MAX : price);
	image_put(ret + 32, 4, 1 + scatter(ordinal, 4, 4));
	image_put(ret + 36, 1, ordinal % 5 < 2 ? 'A' : 'B');
	image_put(ret + 40, 8, (uint64_t)key);
	image_put(ret + 48, 4, (uint64_t)((int64_t)scatter(ordinal, 5, 5000) - 1000) & 0xffffffff);
	image_put(ret + 52, 2, (uint64_t)((int64_t)scatter(ordinal, 6, 7) - 3) & 0xffff);
	return key;
}

/* Record `ordinal` of series `series_idx`; returns its key. Keys come in pairs of equal ones. */
static int64_t record_make(
	const struct content *content, uint32_t series_idx, uint32_t ordinal, uint8_t *ret)
{
	int64_t key = KEY0 + (int64_t)series_idx * 1000 + (int64_t)(ordinal / 2) * 1000000;

	memset(ret, 0, RECORD_CAP);
	if (content->series[series_idx].schema_idx == 2)
		return order_make(series_idx, ordinal, ret);
	if (content->series[series_idx].schema_idx == 0) {
		image_put(ret, 8, (uint64_t)key);
		image_put(ret + 8, 4, ordinal % 10 == 9 ? 0x7fffffff : 10000 - ordinal % 7);
		image_put(ret + 12, 4, 1 + ordinal % 3);
	} else {
		image_put(ret, 8, series_idx * 1000 + ordinal);
		image_put(ret + 8, 8, (uint64_t)key);
		memcpy(ret + 16, ordinal % 2 ? "XNAS" : "XCME", 4);
	}
	return key;
}

static void print_records(FILE *file, const struct content *content, uint32_t idx)
{
	const struct series_plan *plan = &content->series[idx];
	uint32_t stride = schemas[plan->schema_idx].stride;
	uint8_t record[RECORD_CAP];

	for (uint32_t i = 0; i < plan->record_cnt; i++) {
		int64_t key = record_make(content, idx, i, record);

		fprintf(file, "record %u %" PRId64 " ", i, key);
		for (uint32_t at = 0; at < stride; at++)
			fprintf(file, "%02x", record[at]);
		fputc('\n', file);
	}
}

static void print_schema(FILE *file, uint32_t idx)
{
	const struct stoup_vol_schema *schema = &schemas[idx];

	fprintf(file,
		"schema %s stride %u align %u key %u flags 0x%x interval %" PRIu64
		" hash %016" PRIx64 "\n",
		schema->name, schema->stride, schema->align, schema->key_off, schema->flags,
		schema->interval_ns, stoup_vol_schema_hash(schema, schema_fields[idx]));
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_vol_field *field = &schema_fields[idx][i];

		fprintf(file,
			"field %s off %u cnt %u type %u flags 0x%x exp10 %d null %" PRIx64
			" unit '%.8s'\n",
			field->name, field->off, field->cnt, field->type, field->flags,
			field->exp10, field->null_bits, field->unit);
	}
}

static void print_id(FILE *file, const char *word, const uint8_t *id)
{
	fprintf(file, "%s ", word);
	for (int i = 0; i < 16; i++)
		fprintf(file, "%02x", id[i]);
	fputc('\n', file);
}

/* The expected contents, from the tables. */
static int print_content(const char *dir, const struct content *content)
{
	const struct stoup_vol_header *header = &content->header;
	uint8_t first[RECORD_CAP], last[RECORD_CAP];
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, content->text);
	file = fopen(path, "w");
	if (!file)
		return -errno;
	print_id(file, "volume", header->id);
	fprintf(file, "created %" PRId64 " ingest %" PRIu64 " batch %u of %u\n", header->created_ns,
		header->ingest_seq, header->batch_idx, header->batch_cnt);
	for (uint32_t i = 0; i < content->superseded_cnt; i++)
		print_id(file, "superseded", content->superseded[i]);
	for (uint32_t i = 0; i < content->schema_cnt; i++)
		print_schema(file, content->schema_first + i);
	for (uint32_t i = 0; i < content->series_cnt; i++) {
		const struct series_plan *plan = &content->series[i];

		fprintf(file,
			"series %s schema %s flags 0x%x records %u keys %" PRId64 " %" PRId64 "\n",
			plan->name, schemas[plan->schema_idx].name, plan->flags, plan->record_cnt,
			record_make(content, i, 0, first),
			record_make(content, i, plan->record_cnt - 1, last));
		print_records(file, content, i);
	}
	return fclose(file) ? -EIO : 0;
}

/* ---- volumes --------------------------------------------------------------------------------- */

/* A block being filled: its records, and the segments to declare once it is placed. */
struct filling {
	uint8_t raw[BLOCK_CAP * RECORD_CAP];
	uint32_t raw_len, segment_cnt;
	struct {
		uint32_t series_idx, raw_off, record_cnt;
		int64_t first_key, last_key;
	} segments[8];
};

static int put_zone(struct stoup_vol_writer *writer, uint32_t schema_idx, const uint8_t *records,
	uint32_t record_cnt)
{
	const struct stoup_vol_field *fields = schema_fields[schema_idx];
	uint32_t field_cnt = schemas[schema_idx].field_cnt;
	uint8_t row[1024];

	stoup_zone_make(fields, field_cnt, schemas[schema_idx].stride, records, record_cnt, row);
	return stoup_vol_add_zone(writer, row, stoup_zone_len(fields, field_cnt));
}

static int fill_flush(struct image *image, struct stoup_vol_writer *writer,
	const struct golden *golden, uint32_t schema_idx, struct filling *fill)
{
	struct stoup_block_layout layout;
	int64_t block;

	if (!fill->raw_len)
		return 0;
	layout = (struct stoup_block_layout){schemas[schema_idx].stride,
		schemas[schema_idx].field_cnt, schema_fields[schema_idx]};
	block = image_add_records(image, writer, schema_idx - golden->content->schema_first,
		&layout, fill->raw, fill->raw_len, golden->codec, golden->level);
	if (block < 0)
		return (int)block;
	for (uint32_t i = 0; i < fill->segment_cnt; i++) {
		int rc = stoup_vol_add_segment(writer, fill->segments[i].series_idx,
			(uint32_t)block, fill->segments[i].raw_off, fill->segments[i].record_cnt,
			fill->segments[i].first_key, fill->segments[i].last_key);

		if (!rc && golden->zones)
			rc = put_zone(writer, schema_idx, fill->raw + fill->segments[i].raw_off,
				fill->segments[i].record_cnt);
		if (rc)
			return rc;
	}
	memset(fill, 0, sizeof(*fill));
	return 0;
}

static void fill_record(const struct content *content, struct filling *fill, uint32_t series_idx,
	uint32_t ordinal, uint32_t stride)
{
	uint8_t record[RECORD_CAP];
	int64_t key = record_make(content, series_idx, ordinal, record);
	uint32_t at = fill->segment_cnt;

	if (!at || fill->segments[at - 1].series_idx != series_idx) {
		fill->segments[at].series_idx = series_idx;
		fill->segments[at].raw_off = fill->raw_len;
		fill->segments[at].first_key = key;
		fill->segment_cnt = ++at;
	}
	fill->segments[at - 1].record_cnt++;
	fill->segments[at - 1].last_key = key;
	memcpy(fill->raw + fill->raw_len, record, stride);
	fill->raw_len += stride;
}

static int put_schema_records(struct image *image, struct stoup_vol_writer *writer,
	const struct golden *golden, uint32_t schema_idx)
{
	const struct content *content = golden->content;
	uint32_t stride = schemas[schema_idx].stride;
	uint32_t block_cnt = content->block_cnt ? content->block_cnt : BLOCK_CNT;
	struct filling fill = {.raw_len = 0};

	for (uint32_t i = 0; i < content->series_cnt; i++) {
		if (content->series[i].schema_idx != schema_idx)
			continue;
		for (uint32_t at = 0; at < content->series[i].record_cnt; at++) {
			int rc = 0;

			fill_record(content, &fill, i, at, stride);
			if (fill.raw_len == block_cnt * stride)
				rc = fill_flush(image, writer, golden, schema_idx, &fill);
			if (rc)
				return rc;
		}
	}
	return fill_flush(image, writer, golden, schema_idx, &fill);
}

static int declare(struct stoup_vol_writer *writer, const struct content *content)
{
	for (uint32_t i = 0; i < content->schema_cnt; i++) {
		uint32_t idx = content->schema_first + i;
		struct stoup_vol_schema schema = schemas[idx];
		int rc;

		schema.hash = stoup_vol_schema_hash(&schema, schema_fields[idx]);
		rc = stoup_vol_add_schema(writer, &schema, schema_fields[idx]);
		if (rc < 0)
			return rc;
	}
	for (uint32_t i = 0; i < content->series_cnt; i++) {
		const struct series_plan *plan = &content->series[i];
		int64_t rc = stoup_vol_add_series(
			writer, plan->name, plan->schema_idx - content->schema_first, plan->flags);

		if (rc < 0)
			return (int)rc;
	}
	for (uint32_t i = 0; i < content->superseded_cnt; i++) {
		int rc = stoup_vol_add_superseded(writer, content->superseded[i]);

		if (rc)
			return rc;
	}
	return 0;
}

static int make_image(const struct golden *golden, struct image *image)
{
	struct stoup_vol_writer *writer;
	int rc = stoup_vol_writer_create(&golden->content->header, &writer);

	if (rc)
		return rc;
	rc = declare(writer, golden->content);
	for (uint32_t i = 0; !rc && i < golden->content->schema_cnt; i++)
		rc = put_schema_records(image, writer, golden, golden->content->schema_first + i);
	if (!rc)
		rc = image_finish(image, writer, NULL);
	if (rc)
		fprintf(stderr, "%s: %s\n", golden->name, stoup_vol_writer_fault(writer)->what);
	stoup_vol_writer_destroy(writer);
	return rc;
}

static int write_file(const char *dir, const char *name, const struct image *image)
{
	char path[4096];
	FILE *file;
	size_t put;

	snprintf(path, sizeof(path), "%s/%s.stoup", dir, name);
	file = fopen(path, "wb");
	if (!file)
		return -errno;
	put = fwrite(image->bytes, 1, image->len, file);
	return fclose(file) || put != image->len ? -EIO : 0;
}

/* ---- damaged copies -------------------------------------------------------------------------- */

enum {
	SEAL = 1,
	FLIP = 2,
	CUT = 4,
	STORED = 8 /* inside block idx, whose hash is made right again */
};

/* One edit: `len` bytes at `off` of entry `idx` of section `kind` (0: of the file; 100: of the
 * trailer) become `value`, or are flipped by it; sealed again or not. With STORED `off` counts
 * from the block's first stored byte. */
static const struct damage {
	const char *name, *base;
	int how;
	uint32_t kind, idx;
	size_t off, len;
	uint64_t value;
} damages[] = {
	{"header-bit", "ticks-lz4", FLIP, 0, 0, 20, 1, 0x10},
	{"header-magic", "ticks-lz4", FLIP, 0, 0, 0, 1, 0x80},
	{"major-9", "ticks-lz4", SEAL, 0, 0, 8, 2, 9},
	{"cut-at-1000", "ticks-lz4", CUT, 0, 0, 1000, 0, 0},
	{"cut-at-100", "ticks-lz4", CUT, 0, 0, 100, 0, 0},
	{"trailer-bit", "ticks-lz4", FLIP, 100, 0, 9, 1, 0x02},
	{"footer-bit", "ticks-lz4", FLIP, STOUP_VOL_SECTION_SEGMENTS, 2, 24, 1, 0x01},
	{"block-bit", "ticks-zstd", FLIP, 0, 0, 100, 1, 0x01},
	{"padding-byte", "tiny", FLIP, 0, 0, 2048, 1, 0x55},
	{"section-missing", "ticks-lz4", SEAL, 101, STOUP_VOL_SECTION_SEGMENTS, 0, 4, 77},
	{"stride-changed", "ticks-lz4", SEAL, STOUP_VOL_SECTION_SCHEMAS, 0, 8, 4, 24},
	{"field-outside", "ticks-lz4", SEAL, STOUP_VOL_SECTION_FIELDS, 2, 36, 4, 16},
	{"series-unsorted", "ticks-lz4", SEAL, STOUP_VOL_SECTION_STRINGS, 19, 0, 1, 'Z'},
	{"blocks-overlap", "ticks-none", SEAL, STOUP_VOL_SECTION_BLOCKS, 1, 8, 8, 4096},
	{"block-too-long", "ticks-lz4", SEAL, STOUP_VOL_SECTION_BLOCKS, 0, 4, 4, 0x01000010},
	{"block-uncovered", "ticks-lz4", SEAL, STOUP_VOL_SECTION_BLOCKS, 0, 4, 4, 1040},
	{"block-lies", "ticks-zstd", SEAL, STOUP_VOL_SECTION_BLOCKS, 0, 40, 8, 1},
	{"codec-unknown", "ticks-lz4", SEAL, STOUP_VOL_SECTION_BLOCKS, 1, 20, 4, 9},
	{"segment-overlap", "ticks-lz4", SEAL, STOUP_VOL_SECTION_SEGMENTS, 2, 8, 4, 560},
	{"ordinal-gap", "ticks-lz4", SEAL, STOUP_VOL_SECTION_SEGMENTS, 1, 24, 8, 65},
	{"key-back", "ticks-lz4", SEAL, STOUP_VOL_SECTION_SEGMENTS, 1, 32, 8, KEY0},
	{"fields-stride", "orders-default", STORED, 0, 0, 0, 2, 48},
	{"fields-count", "orders-default", STORED, 0, 0, 4, 4, 599},
	{"fields-tile", "orders-default", STORED, 0, 0, 8, 4, 0},
	{"fields-width", "orders-default", STORED, 0, 0, 12, 1, 3},
	{"fields-op", "orders-default", STORED, 0, 0, 26, 1, 0x40},
	{"fields-kind", "orders-default", STORED, 0, 0, 27, 1, 0x03},
	{"fields-base", "orders-default", STORED | FLIP, 0, 0, 46, 1, 0x01},
	{"fields-stream", "orders-default", STORED, 0, 0, 162, 4, 0xffffff},
	{"fields-lz4", "orders-default", STORED, 0, 0, 6940, 8, UINT64_MAX},
	{"fields-frame", "orders-small", STORED | FLIP, 0, 0, 174, 1, 0x01},
	{"fields-zstd", "orders-small", STORED, 0, 0, 190, 8, UINT64_MAX},
	{"superseded-twice", "ticks-lz4", SEAL, STOUP_VOL_SECTION_SUPERSEDED, 1, 15, 1, '1'},
};

static const struct golden *golden_find(const char *name)
{
	const struct golden *golden = goldens;

	while (strcmp(golden->name, name))
		golden++;
	return golden;
}

static void damage_apply(const struct damage *damage, struct image *image)
{
	uint64_t at = damage->off, value = damage->value, block_entry = 0;

	if (damage->how & CUT) {
		image->len = damage->off;
		return;
	}
	if (damage->how & STORED)
		block_entry = image_entry(image, STOUP_VOL_SECTION_BLOCKS, damage->idx);
	if (damage->kind == 100)
		at += image->len - 64;
	else if (damage->kind == 101)
		at += image_section(image, damage->idx);
	else if (damage->how & STORED)
		at += image_get(image->bytes + block_entry + 8, 8);
	else if (damage->kind)
		at += image_entry(image, damage->kind, damage->idx);
	if (damage->how & FLIP)
		value ^= image_get(image->bytes + at, damage->len);
	image_put(image->bytes + at, damage->len, value);
	if (damage->how & STORED)
		image_put(image->bytes + block_entry + 32, 8,
			stoup_vol_hash(image->bytes + image_get(image->bytes + block_entry + 8, 8),
				image_get(image->bytes + block_entry + 16, 4)));
	if (damage->how & (SEAL | STORED))
		image_reseal(image);
}

static int make_damaged(const char *dir)
{
	char path[4096];
	FILE *file;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/damaged/faults.txt", dir);
	file = fopen(path, "w");
	if (!file)
		return -errno;
	for (size_t i = 0; !rc && i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct image image = {NULL, 0};
		struct stoup_vol_fault fault = {0};

		rc = make_image(golden_find(damages[i].base), &image);
		if (rc)
			break;
		damage_apply(&damages[i], &image);
		if (!image_verify(image.bytes, image.len, &fault))
			rc = -EINVAL;
		fprintf(file, "%s\t%s\t%s\t%" PRIu64 "\t%s\n", damages[i].name,
			fault.code == -ENOTSUP   ? "ENOTSUP"
			: fault.code == -ENODATA ? "ENODATA"
						 : "EBADMSG",
			stoup_vol_region_name(fault.region), fault.file_off, fault.what);
		snprintf(path, sizeof(path), "%s/damaged", dir);
		if (!rc)
			rc = write_file(path, damages[i].name, &image);
		image_free(&image);
	}
	return fclose(file) && !rc ? -EIO : rc;
}

int main(int argc, char **argv)
{
	const char *dir = argc == 2 ? argv[1] : NULL;
	int rc = dir ? 0 : -EINVAL;

	for (size_t i = 0; !rc && i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		struct image image = {NULL, 0};

		rc = make_image(&goldens[i], &image);
		if (!rc)
			rc = write_file(dir, goldens[i].name, &image);
		if (!rc)
			rc = print_content(dir, goldens[i].content);
		image_free(&image);
	}
	if (!rc)
		rc = make_damaged(dir);
	if (rc)
		fprintf(stderr,
			"usage: make_golden DIRECTORY (which has a directory `damaged`): %s\n",
			strerror(-rc));
	return rc ? 1 : 0;
}
