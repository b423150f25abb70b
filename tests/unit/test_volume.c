/* SPDX-License-Identifier: Apache-2.0 */
/* test_volume.c - volumes written and parsed in memory: contents, order, limits of the writer, and
 * agreement of the volume's schema rules with those of the pool.
 */
#include "shm/stoup_types.h"
#include "tests/unit/volume_small.h"

/* ---- what is written is what is read --------------------------------------------------------- */

START_TEST(a_volume_reads_back_sorted_and_numbered)
{
	static const struct {
		const char *name;
		uint32_t schema_idx, flags, segment_first, segment_cnt;
		uint64_t record_cnt;
		int64_t first_key, last_key;
	} series[2 + 1] = {
		{"A/Y", 0, 1, 0, 1, 8, KEY0 + 500, KEY0 + 7500},
		{"A/Y", 1, 0, 1, 1, 4, KEY0, KEY0 + 3},
		{"B/X", 0, 0, 2, 2, 22, KEY0, KEY0 + 20000},
	};
	struct image image = small_image();
	struct stoup_vol_index *index = must_open(&image);
	int swapped = index->schemas[0].hash > index->schemas[1].hash;

	ck_assert_uint_eq(index->header.major, STOUP_VOL_MAJOR);
	ck_assert_mem_eq(index->header.id, head.id, 16);
	ck_assert_int_eq(index->header.created_ns, KEY0);
	ck_assert_uint_eq(index->header.ingest_seq, 42);
	ck_assert_uint_eq(index->header.batch_idx, 1);
	ck_assert_uint_eq(index->header.batch_cnt, 3);
	ck_assert_uint_eq(index->file_len, image.len);
	ck_assert_uint_eq(index->schema_cnt, 2);
	ck_assert_str_eq(index->schemas[1].name, "wide24");
	ck_assert_uint_eq(index->schemas[1].field_first, 3);
	ck_assert_mem_eq(index->fields, tick16_fields, sizeof(tick16_fields));
	ck_assert_mem_eq(index->fields + 3, wide24_fields, sizeof(wide24_fields));
	ck_assert_uint_eq(index->series_cnt, 3);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t at = i < 2 && swapped ? 1 - i : i;

		ck_assert_str_eq(index->series[i].name, series[at].name);
		ck_assert_uint_eq(index->series[i].name_len, 3);
		ck_assert_uint_eq(index->series[i].schema_idx, series[at].schema_idx);
		ck_assert_uint_eq(index->series[i].flags, series[at].flags);
		ck_assert_uint_eq(index->series[i].segment_first, i);
		ck_assert_uint_eq(index->series[i].segment_cnt, series[at].segment_cnt);
		ck_assert_uint_eq(index->series[i].record_cnt, series[at].record_cnt);
		ck_assert_int_eq(index->series[i].first_key, series[at].first_key);
		ck_assert_int_eq(index->series[i].last_key, series[at].last_key);
	}
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

START_TEST(segments_and_blocks_read_back_with_ordinals_and_places)
{
	struct image image = small_image();
	struct stoup_vol_index *index = must_open(&image);
	const struct stoup_vol_segment *last = &index->segments[3];

	ck_assert_uint_eq(index->segment_cnt, 4);
	ck_assert_uint_eq(index->segments[2].ordinal, 0);
	ck_assert_uint_eq(index->segments[2].raw_len, 192);
	ck_assert_uint_eq(last->series_idx, 2);
	ck_assert_uint_eq(last->block_idx, 1);
	ck_assert_uint_eq(last->raw_off, 0);
	ck_assert_uint_eq(last->raw_len, 160);
	ck_assert_uint_eq(last->record_cnt, 10);
	ck_assert_uint_eq(last->ordinal, 12);
	ck_assert_int_eq(last->first_key, KEY0 + 11000);
	ck_assert_int_eq(last->last_key, KEY0 + 20000);
	ck_assert_uint_eq(index->block_cnt, 3);
	ck_assert_uint_eq(index->blocks[0].codec, STOUP_CODEC_LZ4);
	ck_assert_uint_eq(index->blocks[0].stored_off, 64);
	ck_assert_uint_eq(index->blocks[1].codec, STOUP_CODEC_ZSTD);
	ck_assert_uint_eq(index->blocks[1].stored_off % 64, 0);
	ck_assert_uint_eq(index->blocks[2].codec, STOUP_CODEC_NONE);
	ck_assert_uint_eq(index->blocks[2].stored_off, 4096);
	ck_assert_uint_eq(index->blocks[2].stored_len, 96);
	ck_assert_uint_eq(index->superseded_cnt, 2);
	ck_assert_mem_eq(index->superseded[0], "aaaaaaaaaaaaaaaa", 16);
	ck_assert_mem_eq(index->superseded[1], "zzzzzzzzzzzzzzzz", 16);
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

START_TEST(blocks_decode_to_the_records_that_were_put)
{
	struct image image = small_image();
	struct stoup_vol_index *index = must_open(&image);
	struct stoup_vol_fault fault;
	struct tick16 expected[20];
	uint8_t *raw;

	ticks_fill(expected, 12, KEY0, 100);
	ticks_fill(expected + 12, 8, KEY0 + 500, -7);
	ck_assert_int_eq(image_block(image.bytes, index, 0, &raw, &fault), 0);
	ck_assert_mem_eq(raw, expected, 320);
	free(raw);
	ticks_fill(expected, 10, KEY0 + 11000, 101);
	ck_assert_int_eq(image_block(image.bytes, index, 1, &raw, &fault), 0);
	ck_assert_mem_eq(raw, expected, 160);
	free(raw);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), 0);
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

START_TEST(the_gaps_between_header_blocks_and_footer_are_listed)
{
	struct image image = small_image();
	struct stoup_vol_index *index = must_open(&image);
	uint64_t off, len, end = 64;

	for (uint32_t i = 0; i < 4; i++) {
		uint64_t next = i < 3 ? index->blocks[i].stored_off : index->footer_off;

		ck_assert_int_eq(stoup_vol_padding(index, i, &off, &len), 1);
		ck_assert_uint_eq(off, end);
		ck_assert_uint_eq(off + len, next);
		end = next + (i < 3 ? index->blocks[i].stored_len : 0);
	}
	ck_assert_int_eq(stoup_vol_padding(index, 4, &off, &len), 0);
	ck_assert_int_eq(stoup_vol_padding(index, UINT32_MAX, &off, &len), 0);
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

START_TEST(a_writer_is_finished_again_with_another_header)
{
	struct image first = {NULL, 0}, second = {NULL, 0};
	struct stoup_vol_writer *writer = small_writer(&first);
	struct stoup_vol_header other = head;
	struct stoup_vol_fault fault;
	struct stoup_vol_index *index;

	ck_assert_int_eq(image_reserve(&second, first.len), 0);
	memcpy(second.bytes, first.bytes, first.len);
	ck_assert_int_eq(image_finish(&first, writer, NULL), 0);
	other.batch_cnt = 9;
	ck_assert_int_eq(image_finish(&second, writer, &other), 0);
	ck_assert_int_eq(image_verify(first.bytes, first.len, &fault), 0);
	ck_assert_int_eq(image_verify(second.bytes, second.len, &fault), 0);
	index = must_open(&second);
	ck_assert_uint_eq(index->header.batch_cnt, 9);
	stoup_vol_index_destroy(index);
	memcpy(second.bytes, first.bytes, 64);
	ck_assert_int_eq(image_verify(second.bytes, second.len, &fault), -EBADMSG);
	ck_assert_uint_eq(fault.region, STOUP_VOL_REGION_TRAILER);
	ck_assert_ptr_nonnull(strstr(fault.what, "two different volumes"));
	stoup_vol_writer_destroy(writer);
	image_free(&first);
	image_free(&second);
}
END_TEST

START_TEST(files_that_a_volume_was_made_of_read_back)
{
	struct image image = small_image();
	struct stoup_vol_index *index = must_open(&image);

	ck_assert_uint_eq(index->source_cnt, 2);
	ck_assert_mem_eq(index->sources, small_sources, sizeof(small_sources));
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

START_TEST(a_file_without_a_proper_name_is_refused)
{
	struct image image = {NULL, 0};
	struct stoup_vol_writer *writer = small_writer(&image);
	struct stoup_vol_source bad[4] = {
		{.name = ""}, {.name = "a\nb"}, {.name = "a"}, {.name = "a"}};

	memset(bad[2].name, 'x', sizeof(bad[2].name)); /* no NUL */
	bad[3].name[5] = 'b';                          /* bytes behind the NUL */
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(stoup_vol_add_source(writer, &bad[i]), -EINVAL);
	stoup_vol_writer_destroy(writer);
	image_free(&image);
}
END_TEST

START_TEST(a_volume_that_only_supersedes_others_has_no_blocks)
{
	struct image image = {NULL, 0};
	struct stoup_vol_writer *writer;
	struct stoup_vol_index *index;
	struct stoup_vol_fault fault;

	ck_assert_int_eq(stoup_vol_writer_create(&head, &writer), 0);
	ck_assert_int_eq(stoup_vol_add_superseded(writer, (const uint8_t *)"0123456789abcdef"), 0);
	ck_assert_int_eq(image_finish(&image, writer, NULL), 0);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), 0);
	index = must_open(&image);
	ck_assert_uint_eq(index->block_cnt + index->series_cnt + index->schema_cnt, 0);
	ck_assert_mem_eq(index->superseded[0], "0123456789abcdef", 16);
	ck_assert_uint_eq(index->footer_off, 64);
	stoup_vol_index_destroy(index);
	stoup_vol_writer_destroy(writer);
	image_free(&image);
}
END_TEST

START_TEST(a_series_without_segments_is_left_out)
{
	struct image image = {NULL, 0};
	struct stoup_vol_writer *writer = small_writer(&image);
	struct stoup_vol_index *index;

	ck_assert_int_eq(stoup_vol_add_series(writer, "A/empty", 0, 0), 3);
	ck_assert_int_eq(image_finish(&image, writer, NULL), 0);
	index = must_open(&image);
	ck_assert_uint_eq(index->series_cnt, 3);
	ck_assert_str_eq(index->series[2].name, "B/X");
	ck_assert_ptr_null(memmem(image.bytes, image.len, "empty", 5));
	stoup_vol_index_destroy(index);
	stoup_vol_writer_destroy(writer);
	image_free(&image);
}
END_TEST

START_TEST(segments_of_messages_reach_to_the_next_one)
{
	uint8_t raw[100] = {0};
	struct image image = {NULL, 0};
	struct stoup_vol_writer *writer;
	struct stoup_vol_index *index;

	ck_assert_int_eq(stoup_vol_writer_create(&head, &writer), 0);
	ck_assert_int_eq(add_schema(writer, "json", 0, 0, 1, NULL, 0), 0);
	ck_assert_int_eq(stoup_vol_add_series(writer, "b", 0, 0), 0);
	ck_assert_int_eq(stoup_vol_add_series(writer, "a", 0, 0), 1);
	ck_assert_int_eq(image_add_block(&image, writer, 0, raw, 100, "lz4", ""), 0);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 0, 0, 0, 3, 5, 9), 0);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 1, 0, 24, 1, 7, 7), 0);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 0, 0, 24, 1, 9, 9), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 0, 0, 48, 2, 9, 11), 0);
	ck_assert_int_eq(image_finish(&image, writer, NULL), 0);
	index = must_open(&image);
	ck_assert_uint_eq(index->segments[0].raw_len, 24);
	ck_assert_uint_eq(index->segments[1].raw_len, 24);
	ck_assert_uint_eq(index->segments[2].raw_off, 48);
	ck_assert_uint_eq(index->segments[2].raw_len, 52);
	ck_assert_uint_eq(index->segments[2].ordinal, 3);
	stoup_vol_index_destroy(index);
	stoup_vol_writer_destroy(writer);
	image_free(&image);
}
END_TEST

/* ---- the writer refuses ---------------------------------------------------------------------- */

START_TEST(the_writer_refuses_what_the_format_does_not_allow)
{
	struct image image = {NULL, 0};
	struct stoup_vol_writer *w = small_writer(&image);
	char longest[STOUP_VOL_NAME_CAP + 1];
	uint64_t off = 77;

	memset(longest, 'n', sizeof(longest));
	longest[STOUP_VOL_NAME_CAP] = 0;
	ck_assert_int_eq(add_schema(w, "tick16", 16, 0, 0, tick16_fields, 3), -EEXIST);
	ck_assert_int_eq(add_schema(w, "Tick", 16, 0, 0, tick16_fields, 3), -EINVAL);
	ck_assert_ptr_nonnull(strstr(stoup_vol_writer_fault(w)->what, "a-z0-9_.-"));
	ck_assert_int_eq(add_schema(w, "tick", 17, 0, 0, tick16_fields, 3), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_series(w, "B/X", 0, 0), -EEXIST);
	ck_assert_int_eq(stoup_vol_add_series(w, "", 0, 0), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_series(w, "a\nb", 0, 0), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_series(w, "a\x7f", 0, 0), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_series(w, longest, 0, 0), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_series(w, longest + 1, 0, 0), 3);
	ck_assert_int_eq(stoup_vol_add_series(w, "c", 2, 0), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_series(w, "c", 0, 2), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_block(w, 2, 16, 0, 0, 0, 0, 16, &off), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_block(w, 0, 0, 0, 0, 0, 0, 0, &off), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_block(w, 0, 24, 0, 0, 0, 0, 24, &off), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_block(w, 0, 32, 0, 0, 0, 0, 31, &off), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_block(w, 0, 32, 1, 0, 0, 0, 33, &off), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_block(w, 0, 32, 1, 0, 0, 0, 0, &off), -EINVAL);
	ck_assert_int_eq(
		stoup_vol_add_block(w, 0, STOUP_BLOCK_RAW_CAP + 16, 1, 0, 0, 0, 8, &off), -EINVAL);
	ck_assert_uint_eq(off, 77);
	ck_assert_int_eq(stoup_vol_add_segment(w, 9, 0, 0, 1, 1, 1), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(w, 0, 9, 0, 1, 1, 1), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(w, 3, 2, 0, 1, 1, 1), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(w, 3, 0, 0, 0, 1, 1), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(w, 3, 0, 320, 1, 1, 1), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(w, 3, 0, 304, 2, 1, 1), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(w, 3, 0, 0, UINT32_MAX, 1, 1), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(w, 3, 0, 0, 1, 0, 1), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(w, 3, 0, 0, 1, 2, 1), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(w, 0, 0, 0, 1, KEY0, KEY0), -EINVAL);
	ck_assert_int_eq(image_finish(&image, w, NULL), 0);
	stoup_vol_writer_destroy(w);
	stoup_vol_writer_destroy(NULL);
	image_free(&image);
}
END_TEST

START_TEST(a_block_that_is_not_covered_is_refused_at_the_end)
{
	struct image image = {NULL, 0};
	struct stoup_vol_writer *writer = small_writer(&image);
	uint8_t header[64];
	const uint8_t *tail;
	size_t tail_len;
	uint64_t off;

	ck_assert_int_eq(stoup_vol_add_block(writer, 0, 32, 1, 0, 0, 0, 8, &off), 3);
	ck_assert_int_eq(stoup_vol_finish(writer, NULL, header, &tail, &tail_len, &off), -EINVAL);
	ck_assert_str_eq(
		stoup_vol_writer_fault(writer)->what, "block 3: segments cover 0 of its 32 bytes");
	ck_assert_int_eq(stoup_vol_add_segment(writer, 0, 3, 16, 1, KEY0 * 2, KEY0 * 2), 0);
	ck_assert_int_eq(stoup_vol_finish(writer, NULL, header, &tail, &tail_len, &off), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 0, 3, 0, 1, KEY0 * 2, KEY0 * 2), 0);
	ck_assert_int_eq(stoup_vol_finish(writer, NULL, header, &tail, &tail_len, &off), 0);
	ck_assert_int_eq(stoup_vol_add_segment(writer, 0, 3, 0, 1, KEY0 * 2, KEY0 * 2), 0);
	ck_assert_int_eq(stoup_vol_finish(writer, NULL, header, &tail, &tail_len, &off), -EINVAL);
	stoup_vol_writer_destroy(writer);
	image_free(&image);
}
END_TEST

START_TEST(a_header_without_id_or_with_a_wrong_batch_is_refused_at_the_end)
{
	struct image image = {NULL, 0};
	struct stoup_vol_writer *writer = small_writer(&image);
	struct stoup_vol_header bad[4] = {head, head, head, head};

	memset(bad[0].id, 0, 16);
	bad[1].batch_idx = 3;
	bad[2].batch_cnt = 0;
	bad[3].flags = 0x10000;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(image_finish(&image, writer, &bad[i]), -EINVAL);
	ck_assert_int_eq(stoup_vol_add_superseded(writer, head.id), 0);
	ck_assert_int_eq(image_finish(&image, writer, NULL), -EINVAL);
	stoup_vol_writer_destroy(writer);
	image_free(&image);
}
END_TEST

/* ---- scale ----------------------------------------------------------------------------------- */

/* 100,000 series, ten rounds of one segment each, all sharing blocks of 4,096 records. */
START_TEST(a_hundred_thousand_series_and_a_million_segments_are_written_and_read)
{
	enum {
		SERIES = 100000,
		ROUNDS = 10,
		PER_BLOCK = 4096
	};
	struct image image = {NULL, 0};
	struct stoup_vol_writer *writer;
	struct stoup_vol_index *index;
	uint64_t off, total = (uint64_t)SERIES * ROUNDS;
	uint32_t wrong = 0; /* counted: a million assertions would take most of the time */
	int64_t block = -1;
	char name[32];

	ck_assert_int_eq(stoup_vol_writer_create(&head, &writer), 0);
	add_both_schemas(writer);
	for (uint32_t i = 0; i < SERIES; i++) {
		snprintf(name, sizeof(name), "U/%06u/x", i * 7919u % SERIES);
		wrong += stoup_vol_add_series(writer, name, 0, 0) != i;
	}
	ck_assert_int_eq(stoup_vol_add_series(writer, "U/004711/x", 0, 0), -EEXIST);
	for (uint64_t i = 0; i < total; i++) {
		uint64_t left = total - i < PER_BLOCK ? total - i : PER_BLOCK;
		int64_t key = KEY0 + (int64_t)i;

		if (i % PER_BLOCK == 0)
			block = stoup_vol_add_block(
				writer, 0, (uint32_t)left * 16, 1, 0, 0, 0, 100, &off);
		wrong += stoup_vol_add_segment(writer, (uint32_t)(i % SERIES), (uint32_t)block,
				 (uint32_t)(i % PER_BLOCK) * 16, 1, key, key) != 0;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_int_eq(image_finish(&image, writer, NULL), 0);
	stoup_vol_writer_destroy(writer);
	index = must_open(&image);
	ck_assert_uint_eq(index->series_cnt, SERIES);
	ck_assert_uint_eq(index->segment_cnt, total);
	for (uint32_t i = 0; i < SERIES; i++) {
		snprintf(name, sizeof(name), "U/%06u/x", i);
		wrong += strcmp(index->series[i].name, name) != 0;
		wrong += index->series[i].record_cnt != ROUNDS;
		wrong += index->segments[i * ROUNDS + 9].ordinal != 9;
	}
	ck_assert_uint_eq(wrong, 0);
	/* Name 7919 was the second one added, so its third record is number 200,001 of all. */
	ck_assert_int_eq(index->segments[7919 * ROUNDS + 2].first_key, KEY0 + 200001);
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

/* ---- agreement with the record schemas of shm ------------------------------------------------ */

_Static_assert(sizeof(struct stoup_vol_field) == sizeof(struct stoup_field), "one field");
_Static_assert(offsetof(struct stoup_vol_field, off) == offsetof(struct stoup_field, off), "");
_Static_assert(offsetof(struct stoup_vol_field, cnt) == offsetof(struct stoup_field, cnt), "");
_Static_assert(offsetof(struct stoup_vol_field, type) == offsetof(struct stoup_field, type), "");
_Static_assert(offsetof(struct stoup_vol_field, flags) == offsetof(struct stoup_field, flags), "");
_Static_assert(offsetof(struct stoup_vol_field, exp10) == offsetof(struct stoup_field, exp10), "");
_Static_assert(
	offsetof(struct stoup_vol_field, null_bits) == offsetof(struct stoup_field, null_bits), "");
_Static_assert(offsetof(struct stoup_vol_field, unit) == offsetof(struct stoup_field, unit), "");
_Static_assert(STOUP_VOL_SCHEMA_NAME_CAP == STOUP_SCHEMA_NAME_CAP, "");
_Static_assert(STOUP_VOL_FIELD_CAP == STOUP_SCHEMA_FIELD_CAP, "");
_Static_assert(STOUP_VOL_RECORD_LEN_CAP == STOUP_RECORD_LEN_CAP, "");

static struct stoup_vol_schema as_vol(const struct stoup_schema *schema)
{
	return (struct stoup_vol_schema){
		.name = schema->name,
		.stride = schema->stride,
		.align = schema->align,
		.key_off = schema->key_off,
		.flags = schema->flags,
		.field_cnt = schema->field_cnt,
		.interval_ns = schema->interval_ns,
		.hash = schema->hash,
	};
}

static void as_vol_fields(const struct stoup_schema *schema, struct stoup_vol_field *ret)
{
	if (schema->field_cnt)
		memcpy(ret, schema->fields, schema->field_cnt * sizeof(*ret));
}

START_TEST(every_built_in_schema_can_be_stored_and_has_one_hash)
{
	struct stoup_vol_field fields[STOUP_SCHEMA_FIELD_CAP];
	struct stoup_vol_writer *writer;
	const struct stoup_schema *schema;
	int cnt = 0;

	ck_assert_int_eq(stoup_vol_writer_create(&head, &writer), 0);
	for (; (schema = stoup_schema_builtin((size_t)cnt)); cnt++) {
		struct stoup_vol_schema vol = as_vol(schema);

		as_vol_fields(schema, fields);
		ck_assert_uint_eq(stoup_vol_schema_hash(&vol, fields), stoup_schema_hash(schema));
		vol.hash = stoup_schema_hash(schema);
		ck_assert_int_eq(stoup_vol_add_schema(writer, &vol, fields), cnt);
	}
	ck_assert_int_gt(cnt, 5);
	stoup_vol_writer_destroy(writer);
}
END_TEST

/* Change one byte of a schema or of its fields in every way that matters: both sets of rules must
 * give the same verdict. */
START_TEST(volumes_and_pools_agree_on_which_schemas_are_valid)
{
	static const uint8_t values[] = {
		0, 1, 2, 3, 7, 8, 9, 12, 13, 16, 0x20, 'a', 'A', '[', 0x7f, 0x80, 0xff};
	struct stoup_field fields[3];
	struct stoup_vol_field vol_fields[3];
	int verdicts[2] = {0, 0};

	for (size_t at = 0; at < sizeof(fields) + 24; at++) {
		for (size_t i = 0; i < sizeof(values); i++) {
			struct stoup_schema schema = {"tick16", 16, 8, 0, 0, 0, 0, 3, 0, fields};
			uint32_t *numbers[] = {
				&schema.stride, &schema.align, &schema.key_off, &schema.flags};
			struct stoup_vol_schema vol;
			struct stoup_vol_schema_fault fault;
			int valid;

			memcpy(fields, tick16_fields, sizeof(fields));
			if (at < sizeof(fields))
				((uint8_t *)fields)[at] = values[i];
			else if (at < sizeof(fields) + 16)
				((uint8_t *)numbers[(at - sizeof(fields)) / 4])[at % 4] = values[i];
			else
				((uint8_t *)&schema.interval_ns)[at % 8] = values[i];
			schema.hash = stoup_schema_hash(&schema);
			valid = stoup_schema_valid(&schema, NULL) == 0;
			vol = as_vol(&schema);
			as_vol_fields(&schema, vol_fields);
			if (valid != !stoup_vol_schema_check(&vol, vol_fields, 1, &fault) &&
				/* Only volumes ask for zeros behind the end of a field's name. */
				strcmp(fault.what, "the field's reserved bytes are not zero"))
				ck_abort_msg("byte %zu = %u: pool says %d, volume \"%s\"", at,
					values[i], valid, fault.what ? fault.what : "valid");
			verdicts[valid]++;
		}
	}
	ck_assert_int_gt(verdicts[0], 100);
	ck_assert_int_gt(verdicts[1], 100);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, a_volume_reads_back_sorted_and_numbered);
	tcase_add_test(tests, segments_and_blocks_read_back_with_ordinals_and_places);
	tcase_add_test(tests, blocks_decode_to_the_records_that_were_put);
	tcase_add_test(tests, the_gaps_between_header_blocks_and_footer_are_listed);
	tcase_add_test(tests, a_writer_is_finished_again_with_another_header);
	tcase_add_test(tests, files_that_a_volume_was_made_of_read_back);
	tcase_add_test(tests, a_file_without_a_proper_name_is_refused);
	tcase_add_test(tests, a_volume_that_only_supersedes_others_has_no_blocks);
	tcase_add_test(tests, a_series_without_segments_is_left_out);
	tcase_add_test(tests, segments_of_messages_reach_to_the_next_one);
	tcase_add_test(tests, the_writer_refuses_what_the_format_does_not_allow);
	tcase_add_test(tests, a_block_that_is_not_covered_is_refused_at_the_end);
	tcase_add_test(tests, a_header_without_id_or_with_a_wrong_batch_is_refused_at_the_end);
	tcase_add_test(
		tests, a_hundred_thousand_series_and_a_million_segments_are_written_and_read);
	tcase_add_test(tests, every_built_in_schema_can_be_stored_and_has_one_hash);
	tcase_add_test(tests, volumes_and_pools_agree_on_which_schemas_are_valid);
}

int main(void)
{
	Suite *suite = suite_create("volume");
	TCase *tests = tcase_create("volume");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 300);
	suite_add_tcase(suite, tests);
	add_tests(tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
