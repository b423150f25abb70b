/* SPDX-License-Identifier: Apache-2.0 */
/* volume_small.h - the small volume that the volume tests write, read and damage.
 *
 *      block 0  lz4   tick16  [B/X 12][A/Y 8]
 *      block 1  zstd  tick16  [B/X 10]
 *      block 2  none  wide24  [A/Y 4]
 *      series   A/Y of one schema, A/Y of the other (by schema hash), B/X: number 2
 *      segments of B/X: numbers 2 and 3
 */
#ifndef STOUP_TESTS_VOLUME_SMALL_H
#define STOUP_TESTS_VOLUME_SMALL_H

#include <check.h>
#include "codec/volume_layout.h"
#include "codec/volume_private.h"
#include "tests/unit/volume_fixture.h"

#define KEY0 INT64_C(1700000000000000000)

struct tick16 {
	int64_t key;
	int32_t price;
	uint32_t qty;
};
struct wide24 {
	uint64_t id;
	int64_t key;
	double price;
};

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
	{.name = "price", .off = 16, .cnt = 1, .type = 10},
};
static const struct stoup_vol_header head = {
	.id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	.created_ns = KEY0,
	.ingest_seq = 42,
	.batch_idx = 1,
	.batch_cnt = 3,
};

static inline int add_schema(struct stoup_vol_writer *writer, const char *name, uint32_t stride,
	uint32_t key_off, uint32_t flags, const struct stoup_vol_field *fields, uint32_t field_cnt)
{
	struct stoup_vol_schema schema = {
		.name = name,
		.stride = stride,
		.align = 8,
		.key_off = key_off,
		.flags = flags,
		.field_cnt = field_cnt,
	};

	schema.hash = stoup_vol_schema_hash(&schema, fields);
	return stoup_vol_add_schema(writer, &schema, fields);
}

static inline void add_both_schemas(struct stoup_vol_writer *writer)
{
	ck_assert_int_eq(add_schema(writer, "tick16", 16, 0, 0, tick16_fields, 3), 0);
	ck_assert_int_eq(add_schema(writer, "wide24", 24, 8, 0, wide24_fields, 3), 1);
}

static inline void ticks_fill(struct tick16 *ticks, uint32_t cnt, int64_t key, int32_t price)
{
	for (uint32_t i = 0; i < cnt; i++)
		ticks[i] = (struct tick16){key + 1000 * (int64_t)i, price, 1};
}

static const struct stoup_vol_source small_sources[] = {
	{.hash = {1, 2, 3},
		.file_len = 77,
		.options_hash = 5,
		.ingested_ns = KEY0,
		.name = "days/b.csv"},
	{.hash = {255, 2, 3}, .file_len = 1, .name = "a.dbn.zst"},
};

static inline struct stoup_vol_writer *small_writer(struct image *image)
{
	struct stoup_vol_writer *writer;
	struct tick16 ticks[20];
	struct wide24 wides[4];

	ck_assert_int_eq(stoup_vol_writer_create(&head, &writer), 0);
	add_both_schemas(writer);
	ck_assert_int_eq(stoup_vol_add_series(writer, "B/X", 0, 0), 0);
	ck_assert_int_eq(stoup_vol_add_series(writer, "A/Y", 1, 0), 1);
	ck_assert_int_eq(stoup_vol_add_series(writer, "A/Y", 0, STOUP_VOL_SERIES_KEEP_ORDER), 2);
	ticks_fill(ticks, 12, KEY0, 100);
	ticks_fill(ticks + 12, 8, KEY0 + 500, -7);
	ck_assert_int_eq(image_add_block(image, writer, 0, ticks, 320, "lz4", ""), 0);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 0, 0, 0, 12, KEY0, KEY0 + 11000), 0);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 2, 0, 192, 8, KEY0 + 500, KEY0 + 7500), 0);
	ticks_fill(ticks, 10, KEY0 + 11000, 101);
	ck_assert_int_eq(image_add_block(image, writer, 0, ticks, 160, "zstd", ""), 1);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 0, 1, 0, 10, KEY0 + 11000, KEY0 + 20000), 0);
	for (int i = 0; i < 4; i++)
		wides[i] = (struct wide24){(uint64_t)i, KEY0 + i, 0.5};
	ck_assert_int_eq(image_add_block(image, writer, 1, wides, 96, "none", ""), 2);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 1, 2, 0, 4, KEY0, KEY0 + 3), 0);
	ck_assert_int_eq(stoup_vol_add_superseded(writer, (const uint8_t *)"zzzzzzzzzzzzzzzz"), 0);
	ck_assert_int_eq(stoup_vol_add_superseded(writer, (const uint8_t *)"aaaaaaaaaaaaaaaa"), 0);
	ck_assert_int_eq(stoup_vol_add_superseded(writer, (const uint8_t *)"zzzzzzzzzzzzzzzz"), 0);
	ck_assert_int_eq(stoup_vol_add_source(writer, &small_sources[0]), 0);
	ck_assert_int_eq(stoup_vol_add_source(writer, &small_sources[1]), 0);
	return writer;
}

static inline struct image small_image(void)
{
	struct image image = {NULL, 0};
	struct stoup_vol_writer *writer = small_writer(&image);

	ck_assert_int_eq(image_finish(&image, writer, NULL), 0);
	stoup_vol_writer_destroy(writer);
	return image;
}

static inline struct stoup_vol_index *must_open(const struct image *image)
{
	struct stoup_vol_index *index = NULL;
	struct stoup_vol_fault fault = {0};

	if (image_open(image->bytes, image->len, &index, &fault))
		ck_abort_msg("%s", fault.what);
	return index;
}

#endif
