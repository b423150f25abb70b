/* SPDX-License-Identifier: Apache-2.0 */
/* test_zone.c - zone maps: rows against a search by hand, their way through a volume, and rows that are refused. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include "codec/zone.h"
#include "shm/catalog.h"
#include "tests/unit/filter_model.h"
#include "tests/unit/volume_small.h"

#define CNT_CAP 1500u

static uint8_t records[CNT_CAP * MODEL_STRIDE + 1];
static uint8_t row[1024];

static const struct stoup_vol_field *fields(void)
{
	return (const void *)model_fields; /* the same 64 bytes */
}

/* Of one field: least and greatest of those that are defined, as long doubles, which hold every 64-bit integer, every
 * float, and no -0 apart; whether there are others. */
struct naive {
	long double least, greatest;
	int has_null, has_values;
};

static long double number(const struct stoup_field *field, const uint8_t *at, int *ret_null)
{
	uint64_t bits = 0;
	double f64;
	float f32;

	memcpy(&bits, at, stoup_type_len(field->type));
	*ret_null = (field->flags & STOUP_FIELD_NULL) && bits == field->null_bits;
	memcpy(&f64, &bits, 8);
	memcpy(&f32, &bits, 4);
	switch (field->type) {
	case STOUP_TYPE_I8:
		return (int8_t)bits;
	case STOUP_TYPE_I16:
		return (int16_t)bits;
	case STOUP_TYPE_I32:
		return (int32_t)bits;
	case STOUP_TYPE_I64:
		return (int64_t)bits;
	case STOUP_TYPE_F32:
		*ret_null |= f32 != f32;
		return f32;
	case STOUP_TYPE_F64:
		*ret_null |= f64 != f64;
		return f64;
	default:
		return bits;
	}
}

static struct naive search(const struct stoup_field *field, const uint8_t *base, uint32_t cnt)
{
	struct naive found = {.least = INFINITY, .greatest = -INFINITY};

	for (uint32_t i = 0; i < cnt; i++) {
		int is_null;
		long double value = number(field, base + i * MODEL_STRIDE + field->off, &is_null);

		found.has_null |= is_null;
		if (is_null)
			continue;
		found.has_values = 1;
		found.least = value < found.least ? value : found.least;
		found.greatest = value > found.greatest ? value : found.greatest;
	}
	return found;
}

/* Places in a row, as docs/volume-format.md has them. */
static void compare(const uint8_t *base, uint32_t cnt)
{
	uint32_t zoned = 0, at, number_of = 0;
	int unused;

	for (size_t i = 0; i < MODEL_FIELD_CNT; i++)
		zoned += model_fields[i].cnt == 1;
	at = 8 + (zoned + 7) / 8 * 8;
	for (size_t i = 0; i < MODEL_FIELD_CNT; i++) {
		const struct stoup_field *field = &model_fields[i];
		uint32_t len = stoup_type_len(field->type);
		struct naive found;

		if (field->cnt != 1)
			continue;
		found = search(field, base, cnt);
		ck_assert_msg(row[8 + number_of] == (found.has_null | found.has_values << 1),
			"%s: flags %u of %u records", field->name, row[8 + number_of], cnt);
		if (found.has_values) {
			ck_assert_msg(number(field, row + at, &unused) == found.least, "least %s",
				field->name);
			ck_assert_msg(number(field, row + at + len, &unused) == found.greatest,
				"greatest %s", field->name);
		}
		at += 2 * len;
		number_of++;
	}
	ck_assert_uint_eq(stoup_zone_len(fields(), MODEL_FIELD_CNT), (at + 7) / 8 * 8);
}

START_TEST(rows_have_the_least_and_the_greatest_value_of_each_field)
{
	uint32_t len = stoup_zone_len(fields(), MODEL_FIELD_CNT), field;

	ck_assert_uint_lt(len, sizeof(row));
	for (uint32_t round = 0; round < 3000; round++) {
		uint32_t cnt = 1 + model_below(round % 20 ? 40 : CNT_CAP);
		uint8_t *base = records + 1; /* not aligned */

		for (uint32_t i = 0; i < cnt; i++) {
			/* Few values, so that some fields have none that are defined. */
			if (i == 0 || model_below(3) == 0)
				model_record(base + i * MODEL_STRIDE);
			else
				memcpy(base + i * MODEL_STRIDE, base, MODEL_STRIDE);
		}
		memset(row, 0xee, sizeof(row));
		stoup_zone_make(fields(), MODEL_FIELD_CNT, MODEL_STRIDE, base, cnt, row);
		ck_assert_uint_eq(row[len], 0xee);
		compare(base, cnt);
		ck_assert_ptr_null(stoup_zone_check(fields(), MODEL_FIELD_CNT, row, &field));
		ck_assert_uint_eq(
			stoup_zone_excludes(fields(), MODEL_FIELD_CNT, row, row), MODEL_FIELD_CNT);
	}
}
END_TEST

START_TEST(a_row_of_more_records_allows_those_of_fewer_and_not_the_other_way_round)
{
	uint8_t less[sizeof(row)];
	uint8_t *base = records;

	for (uint32_t i = 0; i < 100; i++)
		model_record(base + i * MODEL_STRIDE);
	stoup_zone_make(fields(), MODEL_FIELD_CNT, MODEL_STRIDE, base, 100, row);
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t excluded;

		stoup_zone_make(
			fields(), MODEL_FIELD_CNT, MODEL_STRIDE, base + i * MODEL_STRIDE, 1, less);
		ck_assert_uint_eq(
			stoup_zone_excludes(fields(), MODEL_FIELD_CNT, row, less), MODEL_FIELD_CNT);
		excluded = stoup_zone_excludes(fields(), MODEL_FIELD_CNT, less, row);
		ck_assert_uint_eq(excluded, 0); /* the key */
	}
}
END_TEST

/* ---- in a volume ----------------------------------------------------------------------------- */

/* The small volume with rows on the segment of wide24 and on a further one of B/X. */
static struct image zoned_image(uint8_t wide_row[72], uint8_t tick_row[48])
{
	struct image image = {NULL, 0};
	struct stoup_vol_writer *writer = small_writer(&image);
	struct wide24 wides[4];
	struct tick16 ticks[6];

	for (int i = 0; i < 4; i++)
		wides[i] = (struct wide24){(uint64_t)i, KEY0 + i, 0.5};
	ck_assert_uint_eq(stoup_zone_len(wide24_fields, 3), 64);
	ck_assert_uint_eq(stoup_zone_len(tick16_fields, 3), 48);
	stoup_zone_make(wide24_fields, 3, 24, wides, 4, wide_row);
	ck_assert_int_eq(stoup_vol_add_zone(writer, wide_row, 48), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_zone(writer, wide_row, 64), 0);
	ck_assert_int_eq(stoup_vol_add_zone(writer, wide_row, 64), -EINVAL); /* it has one */
	ticks_fill(ticks, 6, KEY0 + 20000, 0x7fffffff);
	ticks[3].price = -5;
	ck_assert_int_eq(image_add_block(&image, writer, 0, ticks, 96, "lz4", ""), 3);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 0, 3, 0, 6, KEY0 + 20000, KEY0 + 25000), 0);
	stoup_zone_make(tick16_fields, 3, 16, ticks, 6, tick_row);
	ck_assert_int_eq(stoup_vol_add_zone(writer, tick_row, 48), 0);
	ck_assert_int_eq(image_finish(&image, writer, NULL), 0);
	stoup_vol_writer_destroy(writer);
	return image;
}

START_TEST(rows_come_back_at_their_segments)
{
	uint8_t wide_row[72], tick_row[48];
	struct image image = zoned_image(wide_row, tick_row);
	struct stoup_vol_index *index = must_open(&image);
	uint32_t wide =
		strcmp(index->schemas[index->series[0].schema_idx].name, "wide24") == 0 ? 0 : 1;

	ck_assert_uint_eq(index->segment_cnt, 5);
	ck_assert_uint_eq(index->zone_len, 64 + 48);
	for (uint32_t i = 0; i < 5; i++)
		ck_assert_int_eq(stoup_vol_zone(index, i) != NULL, i == wide || i == 4);
	ck_assert_mem_eq(stoup_vol_zone(index, wide) + 4, wide_row + 4, 60);
	ck_assert_mem_eq(stoup_vol_zone(index, 4) + 4, tick_row + 4, 44);
	ck_assert_uint_eq(image_get(stoup_vol_zone(index, wide), 4), wide);
	ck_assert_uint_eq(image_get(stoup_vol_zone(index, 4), 4), 4);
	/* key, price with undefined values and one that is, qty */
	ck_assert_mem_eq(tick_row + 8, "\2\3\2\0\0\0\0\0", 8);
	ck_assert_uint_eq(image_get(tick_row + 32, 4), (uint32_t)-5);
	ck_assert_uint_eq(image_get(tick_row + 36, 4), (uint32_t)-5);
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

START_TEST(a_volume_without_rows_has_no_section_and_is_read)
{
	struct image image = small_image();
	struct stoup_vol_index *index = must_open(&image);

	ck_assert_ptr_null(index->zone_words);
	ck_assert_ptr_null(stoup_vol_zone(index, 0));
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

/* Bytes of the section (or at TABLE + x of its entry in the table) that are changed. */
#define TABLE 1000

static const struct {
	uint32_t off, len;
	uint64_t value;
	const char *text;
} damages[] = {
	{0, 4, 9, "a row of segment 9 of 5 stands behind that of -1"},
	{64, 4, 0, "zones: a row of segment 0 of 5 stands behind"},
	{0, 4, 2, "zones: "}, /* a row of another schema's length */
	{4, 4, 1, "reserved bytes are not zero"},
	{8, 1, 0, "field id: its flags say neither"},
	{8, 1, 4, "field id: its flags say neither"},
	{8, 1, 1, "field id: it has no values, but its bytes are not zero"},
	{11, 1, 1, "padding behind the flags"},
	{16, 8, 77, "field id: its least value is above its greatest one"},
	{32, 8, (uint64_t)INT64_MAX, "field ts_recv: its least value is above"},
	{48, 8, UINT64_C(0x7ff8000000000000),
		"field price: its least value is above its greatest one, or one of them is no"},
	{48, 8, UINT64_C(0xfff8000000000000), "field price: its least value"},
	{64 + 32, 4, 6, "field price: its least value"},
	{TABLE + 4, 4, 16, "section 8: "},
	{TABLE, 4, 7, "section 7 is present twice"},
};

START_TEST(rows_that_break_the_rules_refuse_the_volume)
{
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		uint8_t wide_row[72], tick_row[48];
		struct image image = zoned_image(wide_row, tick_row);
		uint64_t entry = image_section(&image, 8), at = entry + damages[i].off - TABLE;
		struct stoup_vol_index *index = NULL;
		struct stoup_vol_fault fault = {0};

		if (damages[i].off < TABLE)
			at = image_footer_off(&image) + image_get(image.bytes + entry + 8, 8) +
			     damages[i].off;
		image_put(image.bytes + at, damages[i].len, damages[i].value);
		image_reseal(&image);
		ck_assert_msg(image_open(image.bytes, image.len, &index, &fault) == -EBADMSG,
			"damage %zu", i);
		ck_assert_msg(strstr(fault.what, damages[i].text) != NULL, "damage %zu: %s", i,
			fault.what);
		ck_assert_uint_eq(fault.region, STOUP_VOL_REGION_FOOTER);
		image_free(&image);
	}
}
END_TEST

/* The last row's bytes are not all there. */
START_TEST(a_row_that_is_cut_refuses_the_volume)
{
	uint8_t wide_row[72], tick_row[48];
	struct image image = zoned_image(wide_row, tick_row);
	uint64_t entry = image_section(&image, 8);
	struct stoup_vol_index *index = NULL;
	struct stoup_vol_fault fault = {0};
	uint64_t at = image_footer_off(&image) + image_get(image.bytes + entry + 8, 8);

	image_put(image.bytes + entry + 16, 8, 104);
	image_put(image.bytes + entry + 24, 8, 13);
	image_put(image.bytes + at + 104, 8, 0);
	image_reseal(&image);
	ck_assert_int_eq(image_open(image.bytes, image.len, &index, &fault), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.what, "the row of segment 4 has 48 bytes"));
	image_free(&image);
}
END_TEST

/* ---- in a catalog ---------------------------------------------------------------------------- */

START_TEST(a_reader_of_minor_0_finds_the_catalog_as_ever_and_words_are_bounded)
{
	struct stoup_catalog_counts counts = {.schema_cnt = 1,
		.field_cnt = 2,
		.series_cnt = 1,
		.block_cnt = 1,
		.segment_cnt = 3,
		.string_len = 8};
	size_t plain = stoup_catalog_footprint(&counts), len;
	struct stoup_catalog *c;
	struct stoup_catalog_schema *schema;
	struct stoup_catalog_series *series;
	struct stoup_error err;
	uint32_t *words;
	uint64_t left = 0;

	counts.zone_len = 40;
	len = stoup_catalog_footprint(&counts);
	ck_assert_uint_eq(len, plain + STOUP_OS_PAGE_LEN);
	c = calloc(1, len);
	ck_assert_ptr_nonnull(c);
	stoup_catalog_format(c, &counts, 0);
	ck_assert_uint_eq(c->total_len, plain);
	ck_assert_uint_eq(c->zone_off, plain);
	schema = (void *)((char *)c + c->schema_off);
	series = (void *)((char *)c + c->series_off);
	schema->stride = 16;
	series->name_len = 1;
	series->segment_cnt = 3;
	*((char *)c + c->string_off) = 'x';
	ck_assert_int_eq(stoup_catalog_verify(c, len, &err), 0);
	ck_assert_int_eq(stoup_catalog_verify(c, plain, &err), -EPROTO);
	words = (void *)((char *)c + c->zone_off);
	ck_assert_ptr_null(stoup_catalog_zone(c, 2, &left));
	words[2] = 5; /* the last word */
	ck_assert_int_eq(stoup_catalog_verify(c, len, &err), 0);
	ck_assert_ptr_eq(stoup_catalog_zone(c, 2, &left), (uint8_t *)c + c->zone_off + 16 + 32);
	ck_assert_uint_eq(left, 8);
	words[2] = 6;
	ck_assert_int_eq(stoup_catalog_verify(c, len, &err), -EPROTO);
	words[2] = 0;
	c->zone_len = 44; /* no multiple of 8 */
	ck_assert_int_eq(stoup_catalog_verify(c, len, &err), -EPROTO);
	c->zone_len = UINT64_MAX - 7;
	ck_assert_int_eq(stoup_catalog_verify(c, len, &err), -EPROTO);
	c->zone_len = 40;
	c->zone_off += 8;
	ck_assert_int_eq(stoup_catalog_verify(c, len, &err), -EPROTO);
	free(c);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("zone");
	TCase *tcase = tcase_create("zone");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, rows_have_the_least_and_the_greatest_value_of_each_field);
	tcase_add_test(
		tcase, a_row_of_more_records_allows_those_of_fewer_and_not_the_other_way_round);
	tcase_add_test(tcase, rows_come_back_at_their_segments);
	tcase_add_test(tcase, a_volume_without_rows_has_no_section_and_is_read);
	tcase_add_test(tcase, rows_that_break_the_rules_refuse_the_volume);
	tcase_add_test(tcase, a_row_that_is_cut_refuses_the_volume);
	tcase_add_test(tcase, a_reader_of_minor_0_finds_the_catalog_as_ever_and_words_are_bounded);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
