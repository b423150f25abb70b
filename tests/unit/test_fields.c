/* SPDX-License-Identifier: Apache-2.0 */
/* test_fields.c - the field transform: what is encoded comes back, on every kernel, for every layout.
 *
 * Buffers are heap blocks of exactly the length that the contract names, so that a sanitizer sees a
 * byte read or written outside; without one, guards around the output do.
 */
#include "tests/unit/fields_fixture.h"

#include <errno.h>
#include "shm/stoup_types.h"

#define GUARD 64u

static const char *const levels[] = {"fast", "default", "small"};
#define LEVEL_CNT 3

static void *scratch;
static struct stoup_encoder *encoders[LEVEL_CNT];

static void setup(void)
{
	scratch = aligned_alloc(64, stoup_block_scratch_len());
	ck_assert_ptr_nonnull(scratch);
	stoup_block_scratch_init(scratch);
	for (int i = 0; i < LEVEL_CNT; i++) {
		struct stoup_encoding encoding;

		ck_assert_int_eq(stoup_encoding_parse(levels[i], "", &encoding), 0);
		ck_assert_uint_eq(encoding.transform, STOUP_TRANSFORM_FIELDS);
		ck_assert_int_eq(stoup_encoder_create(&encoding, &encoders[i]), 0);
	}
}

static void teardown(void)
{
	for (int i = 0; i < LEVEL_CNT; i++)
		stoup_encoder_destroy(encoders[i]);
	free(scratch);
}

struct stored {
	uint8_t *bytes; /* exactly len */
	size_t len, raw_len;
	uint32_t codec, transform;
};

static struct stored encode(
	int level, const struct stoup_block_layout *layout, const uint8_t *records, size_t raw_len)
{
	struct stored ret = {.raw_len = raw_len};
	uint8_t *room = malloc(raw_len);

	ck_assert_int_eq(stoup_block_encode(encoders[level], layout, records, raw_len, room,
				 raw_len, &ret.len, &ret.codec, &ret.transform),
		0);
	ck_assert_uint_le(ret.len, raw_len);
	ret.bytes = malloc(ret.len);
	memcpy(ret.bytes, room, ret.len);
	free(room);
	return ret;
}

/* Decode between guards with a kernel. The caller frees the records, GUARD bytes before them. */
static int decode(
	const struct stored *stored, size_t raw_len, stoup_fields_kernel *kernel, uint8_t **ret)
{
	uint8_t *room = malloc(raw_len + 2 * GUARD);
	int rc;

	memset(room, 0xa5, raw_len + 2 * GUARD);
	if (stored->transform == STOUP_TRANSFORM_FIELDS)
		rc = stoup_fields_decode(stored->codec, stored->bytes, stored->len, room + GUARD,
			raw_len, scratch, kernel);
	else
		rc = stoup_block_decode(stored->codec, stored->transform, stored->bytes,
			stored->len, room + GUARD, raw_len, scratch);
	for (size_t i = 0; i < GUARD; i++) {
		if (room[i] != 0xa5 || room[GUARD + raw_len + i] != 0xa5)
			ck_abort_msg("written outside of %zu bytes", raw_len);
	}
	*ret = room;
	return rc;
}

/* One after the other: the portable kernel, and the one that is used here. */
static void check_back(const struct stored *stored, const uint8_t *records)
{
	stoup_fields_kernel *const kernels[] = {stoup_fields_rows, stoup_fields_kernel_best()};

	for (int i = 0; i < 2; i++) {
		uint8_t *room;

		ck_assert_int_eq(decode(stored, stored->raw_len, kernels[i], &room), 0);
		ck_assert_mem_eq(room + GUARD, records, stored->raw_len);
		free(room);
	}
}

static void round_trip(
	int level, const struct stoup_block_layout *layout, const uint8_t *records, uint32_t cnt)
{
	struct stored stored = encode(level, layout, records, (size_t)cnt * layout->stride);

	check_back(&stored, records);
	free(stored.bytes);
}

/* ---- round trips ----------------------------------------------------------------------------- */

START_TEST(records_of_every_built_in_schema_come_back)
{
	uint64_t state = 88172645463325252u;
	const struct stoup_schema *schema;

	for (size_t i = 0; (schema = stoup_schema_builtin(i)) != NULL; i++) {
		struct stoup_block_layout layout = {
			schema->stride, schema->field_cnt, (const void *)schema->fields};

		if (schema->stride == 0) /* messages have no fields */
			continue;
		for (int pattern = 0; pattern <= FX_PATTERN_CNT; pattern++) {
			uint8_t *records =
				fx_records(&layout, 1000, (enum fx_pattern)pattern, &state);

			round_trip(_i, &layout, records, 1000);
			free(records);
		}
	}
}
END_TEST

START_TEST(records_of_any_layout_and_number_come_back)
{
	uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)_i;

	for (uint32_t cnt = 1; cnt <= 100; cnt++) {
		struct fx_layout fx;
		uint8_t *records;

		fx_layout_random(&fx, &state, 1 + cnt % 20);
		records = fx_records(&fx.layout, cnt, FX_PATTERN_CNT, &state);
		round_trip(_i, &fx.layout, records, cnt);
		free(records);
	}
}
END_TEST

START_TEST(tiles_and_their_last_records_come_back)
{
	static const uint32_t cnts[] = {1023, 1024, 4095, 20011, 65537};
	uint64_t state = 42;

	for (size_t i = 0; i < sizeof(cnts) / sizeof(cnts[0]); i++) {
		struct fx_layout fx;
		uint8_t *records;

		fx_layout_random(&fx, &state, 12);
		records = fx_records(&fx.layout, cnts[i], FX_PATTERN_CNT, &state);
		round_trip(_i, &fx.layout, records, cnts[i]);
		free(records);
	}
}
END_TEST

START_TEST(each_pattern_comes_back_in_each_width)
{
	uint64_t state = 7;

	for (uint8_t type = 1; type <= 10; type++) {
		for (int pattern = 0; pattern < FX_PATTERN_CNT; pattern++) {
			struct stoup_vol_field fields[3] = {
				{.off = 1, .cnt = 1, .type = type, .exp10 = -2},
				{.off = 9, .cnt = 1, .type = type, .exp10 = -2, .flags = 1}};
			struct stoup_block_layout layout = {17, 2, fields};
			uint8_t *records;

			fields[1].null_bits = UINT64_MAX >> (64 - 8 * fx_widths[type]);
			records = fx_records(&layout, 333, (enum fx_pattern)pattern, &state);
			round_trip(_i, &layout, records, 333);
			free(records);
		}
	}
}
END_TEST

START_TEST(the_longest_records_and_the_largest_block_come_back)
{
	static struct stoup_vol_field fields[] = {
		{.off = 0, .cnt = 1, .type = 8, .flags = 6}, {.off = 8, .cnt = 2039, .type = 12}};
	struct stoup_block_layout layout = {STOUP_FIELDS_STRIDE_CAP, 2, fields};
	uint32_t cnt = STOUP_BLOCK_RAW_CAP / STOUP_FIELDS_STRIDE_CAP;
	uint64_t state = 3;
	uint8_t *records = fx_records(&layout, cnt, FX_CLOCK, &state);
	struct stored stored = encode(_i, &layout, records, STOUP_BLOCK_RAW_CAP);

	ck_assert_uint_eq(stored.transform, STOUP_TRANSFORM_FIELDS);
	check_back(&stored, records);
	free(stored.bytes);
	/* A byte longer is left to the codec alone. */
	layout.stride++;
	stored = encode(_i, &layout, records, (size_t)layout.stride * 100);
	ck_assert_uint_eq(stored.transform, STOUP_TRANSFORM_NONE);
	check_back(&stored, records);
	free(stored.bytes);
	free(records);
}
END_TEST

/* A tile is rounded up to whole groups of records, which are long here: the rounding has to fit, too. */
START_TEST(blocks_of_long_records_come_back_whatever_their_number)
{
	static struct stoup_vol_field fields[] = {
		{.off = 0, .cnt = 1, .type = 8, .flags = 6}, {.off = 8, .cnt = 1, .type = 12}};
	uint32_t fields_cnt = 0;
	uint64_t state = 5;

	for (uint32_t i = 0; i < 6 * 20; i++) {
		uint32_t stride = STOUP_FIELDS_STRIDE_CAP - i / 20 * 208;
		struct stoup_block_layout layout = {stride, 2, fields};
		uint32_t cnt = (512u << 10) / stride * (1 + i % 2) - i % 20 / 2 + 2;
		uint8_t *records;
		struct stored stored;

		fields[1].cnt = (uint16_t)(stride - 8);
		records = fx_records(&layout, cnt, FX_PATTERN_CNT, &state);
		stored = encode(_i, &layout, records, (size_t)cnt * stride);
		fields_cnt += stored.transform == STOUP_TRANSFORM_FIELDS;
		check_back(&stored, records);
		free(stored.bytes);
		free(records);
	}
	ck_assert_uint_ge(fields_cnt, 60);
}
END_TEST

START_TEST(short_records_come_back)
{
	struct stoup_vol_field field = {.off = 0, .cnt = 1};
	uint64_t state = 11;

	for (uint8_t type = 1; type <= 8; type++) {
		struct stoup_block_layout layout = {fx_widths[type], 1, &field};
		uint8_t *records;

		field.type = type;
		records = fx_records(&layout, 300001, FX_CLOCK, &state);
		round_trip(_i, &layout, records, 300001);
		free(records);
	}
}
END_TEST

/* ---- what the encoder makes ------------------------------------------------------------------ */

START_TEST(noise_is_stored_as_it_is)
{
	struct stoup_vol_field fields[2] = {
		{.off = 0, .cnt = 1, .type = 8}, {.off = 8, .cnt = 1, .type = 7}};
	struct stoup_block_layout layout = {16, 2, fields};
	uint64_t state = 5;
	uint8_t *records = fx_records(&layout, 4096, FX_NOISE, &state);
	struct stored stored = encode(_i, &layout, records, 65536);

	ck_assert_uint_eq(stored.codec, STOUP_CODEC_NONE);
	ck_assert_uint_eq(stored.transform, STOUP_TRANSFORM_NONE);
	ck_assert_uint_eq(stored.len, 65536);
	check_back(&stored, records);
	free(stored.bytes);
	free(records);
}
END_TEST

START_TEST(bytes_without_a_layout_are_left_to_the_codec)
{
	uint8_t bytes[5000] = "not records";
	struct stored stored = encode(_i, NULL, bytes, sizeof(bytes));

	ck_assert_uint_eq(stored.transform, STOUP_TRANSFORM_NONE);
	ck_assert_uint_eq(stored.codec, _i == 2 ? STOUP_CODEC_ZSTD : STOUP_CODEC_LZ4);
	check_back(&stored, bytes);
	free(stored.bytes);
}
END_TEST

/* Prices on a grid of 25 cents, some of them undefined: the tick must not be lost by those. */
START_TEST(undefined_values_do_not_cost_the_tick)
{
	struct stoup_vol_field field = {
		.off = 0, .cnt = 1, .type = 8, .flags = 1, .exp10 = -9, .null_bits = INT64_MAX};
	struct stoup_block_layout layout = {8, 1, &field};
	uint64_t state = 17;
	int64_t records[8192];
	struct stored stored;

	for (size_t i = 0; i < 8192; i++)
		records[i] =
			fx_random(&state) % 50
				? 5000000000000 + (int64_t)(fx_random(&state) % 200) * 250000000
				: INT64_MAX;
	stored = encode(_i, &layout, (const uint8_t *)records, sizeof(records));
	ck_assert_uint_eq(stored.transform, STOUP_TRANSFORM_FIELDS);
	ck_assert_uint_le(stored.len, 8192 + 64); /* one byte a price */
	check_back(&stored, (const uint8_t *)records);
	free(stored.bytes);
}
END_TEST

/* Two noisy clocks that run beside each other: the second is the first and a little. */
START_TEST(a_time_is_taken_from_the_time_beside_it)
{
	struct stoup_vol_field fields[2] = {{.off = 0, .cnt = 1, .type = 7, .flags = 2},
		{.off = 8, .cnt = 1, .type = 7, .flags = 6}};
	struct stoup_block_layout layout = {16, 2, fields};
	uint64_t state = 23, now = 1700000000000000000;
	uint64_t records[8192][2];
	struct stored stored;

	for (size_t i = 0; i < 8192; i++) {
		now += fx_random(&state) % 1000000000;
		records[i][0] = now;
		records[i][1] = now + fx_random(&state) % 200;
	}
	stored = encode(_i, &layout, (const uint8_t *)records, sizeof(records));
	ck_assert_uint_le(
		stored.len, 8192 * 5 + 128); /* 4 bytes and 1, where alone it is 4 and 4 */
	check_back(&stored, (const uint8_t *)records);
	free(stored.bytes);
}
END_TEST

START_TEST(what_is_encoded_does_not_depend_on_what_was_before)
{
	uint64_t state = 29;
	struct fx_layout fx, other;
	uint8_t *records, *others;
	struct stored first, again;

	fx_layout_random(&fx, &state, 10);
	fx_layout_random(&other, &state, 15);
	records = fx_records(&fx.layout, 5000, FX_PATTERN_CNT, &state);
	others = fx_records(&other.layout, 7000, FX_PATTERN_CNT, &state);
	first = encode(_i, &fx.layout, records, (size_t)5000 * fx.layout.stride);
	for (int i = 0; i < 20; i++)
		round_trip(_i, &other.layout, others, 7000 - (uint32_t)i * 100);
	again = encode(_i, &fx.layout, records, (size_t)5000 * fx.layout.stride);
	ck_assert_uint_eq(again.len, first.len);
	ck_assert_mem_eq(again.bytes, first.bytes, first.len);
	free(first.bytes);
	free(again.bytes);
	free(records);
	free(others);
}
END_TEST

/* Doubles that repeat: whole values that a codec finds again, and that planes would tear apart. */
START_TEST(floats_are_stored_without_the_transform_where_that_is_shorter)
{
	struct stoup_vol_field field = {.off = 0, .cnt = 1, .type = 10};
	struct stoup_block_layout layout = {8, 1, &field};
	double values[64], records[8192];
	uint64_t state = 31;
	struct stored stored;

	for (int i = 0; i < 64; i++)
		values[i] = (double)fx_random(&state) / 3;
	for (int i = 0; i < 8192; i++)
		records[i] = values[i / 8 * 5 % 64];
	stored = encode(_i, &layout, (const uint8_t *)records, sizeof(records));
	ck_assert_uint_eq(stored.transform, STOUP_TRANSFORM_NONE);
	check_back(&stored, (const uint8_t *)records);
	free(stored.bytes);
}
END_TEST

/* ---- kernels --------------------------------------------------------------------------------- */

static void put(uint8_t **at, uint64_t number, uint32_t len)
{
	memcpy(*at, &number, len);
	*at += len;
}

/* Any op that may be written: no encoder would make most of these. */
static void op_random(uint8_t **at, const uint8_t *widths, uint32_t idx, uint64_t *state)
{
	uint32_t width = widths[idx], op = (uint32_t)(fx_random(state) % 3), ref = 0;
	uint64_t kinds = 0;
	uint8_t constants[8];
	uint32_t constant_cnt = 0;

	for (uint32_t i = 0; idx && i < 4 && !(op & 0x04); i++) {
		ref = (uint32_t)(fx_random(state) % idx);
		op |= widths[ref] == width && fx_random(state) % 2 ? 0x04 : 0;
	}
	op |= (uint32_t)(fx_random(state) & 0x38);
	if (fx_random(state) % 4 == 0)
		op = 0;
	put(at, op, 1);
	if (op & 0x04)
		put(at, ref, 2);
	for (uint32_t flag = 0x08; flag <= 0x20; flag *= 2) {
		if (op & flag)
			put(at, fx_random(state) >> (fx_random(state) % 64), width);
	}
	for (uint32_t p = 0; p < width; p++) {
		uint64_t kind = fx_random(state) % 2;

		kinds |= kind << (2 * p);
		if (!kind)
			constants[constant_cnt++] =
				(uint8_t)(fx_random(state) % 2 ? fx_random(state) : 0);
	}
	put(at, kinds, (width + 3) / 4);
	for (uint32_t i = 0; i < constant_cnt; i++)
		put(at, constants[i], 1);
}

static uint32_t raw_plane_cnt(const uint8_t *ops, const uint8_t *widths, uint32_t column_cnt)
{
	const uint8_t *at = ops;
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < column_cnt; i++) {
		uint32_t op = *at++;
		uint64_t kinds;

		at += (op & 0x04 ? 2 : 0) + widths[i] * (uint32_t)__builtin_popcount(op & 0x38);
		kinds = fx_number(&at, (widths[i] + 3u) / 4);
		for (uint32_t p = 0; p < widths[i]; p++) {
			cnt += (uint32_t)(kinds >> (2 * p) & 1);
			at += !(kinds >> (2 * p) & 1);
		}
	}
	return cnt;
}

/* A stream of several tiles with random ops and bytes. Returns its length. */
static size_t stream_random(uint8_t *bytes, uint32_t tile_cnt, uint32_t record_cnt, uint64_t *state,
	uint32_t *ret_stride)
{
	uint8_t widths[40], *at = bytes;
	uint32_t column_cnt = 1 + (uint32_t)(fx_random(state) % 40), stride = 0;

	for (uint32_t i = 0; i < column_cnt; i++) {
		widths[i] = (uint8_t)(1u << fx_random(state) % 4);
		stride += widths[i];
	}
	put(&at, stride, 2);
	put(&at, column_cnt, 2);
	put(&at, record_cnt, 4);
	put(&at, tile_cnt, 4);
	memcpy(at, widths, column_cnt);
	at += column_cnt;
	for (uint32_t left = record_cnt, cnt; left; left -= cnt) {
		uint8_t *ops = at;
		size_t len;

		cnt = left < tile_cnt ? left : tile_cnt;
		for (uint32_t i = 0; i < column_cnt; i++)
			op_random(&at, widths, i, state);
		len = (size_t)raw_plane_cnt(ops, widths, column_cnt) * cnt;
		for (size_t i = 0; i < len; i++)
			*at++ = (uint8_t)(fx_random(state) % 3 ? fx_random(state) : 0);
	}
	*ret_stride = stride;
	return (size_t)(at - bytes);
}

START_TEST(all_kernels_do_what_the_document_says)
{
	uint64_t state = 0xabcdef12345u + (uint64_t)_i;
	uint8_t *bytes = malloc(4u << 20);

	for (int i = 0; i < 150; i++) {
		uint32_t tile_cnt = 1 + (uint32_t)(fx_random(&state) % 150), stride;
		uint32_t record_cnt = 1 + (uint32_t)(fx_random(&state) % 400);
		size_t len = stream_random(bytes, tile_cnt, record_cnt, &state, &stride);
		struct stored stored = {.raw_len = (size_t)record_cnt * stride,
			.len = len,
			.transform = STOUP_TRANSFORM_FIELDS};
		uint8_t *expected = malloc(stored.raw_len);

		stored.bytes = malloc(len);
		memcpy(stored.bytes, bytes, len);
		fx_decode(stored.bytes, stored.raw_len, expected);
		check_back(&stored, expected);
		free(stored.bytes);
		free(expected);
	}
	free(bytes);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

/* A block of each level with const, raw and packed planes. */
static struct stored small_block(int level, uint8_t **ret_records)
{
	const struct stoup_schema *schema = stoup_schema_by_name("mbo");
	struct stoup_block_layout layout = {
		schema->stride, schema->field_cnt, (const void *)schema->fields};
	uint64_t state = 99;
	struct stored stored;

	*ret_records = fx_records(&layout, 300, FX_PATTERN_CNT, &state);
	stored = encode(level, &layout, *ret_records, (size_t)300 * schema->stride);
	ck_assert_uint_eq(stored.transform, STOUP_TRANSFORM_FIELDS);
	return stored;
}

static int decode_best(const struct stored *stored, size_t raw_len)
{
	uint8_t *room;
	int rc = decode(stored, raw_len, stoup_fields_kernel_best(), &room);

	free(room);
	return rc;
}

START_TEST(a_stream_cut_or_lengthened_anywhere_is_refused)
{
	uint8_t *records;
	struct stored whole = small_block(_i, &records), part = whole;

	for (size_t len = 0; len < whole.len; len++) {
		part.len = len;
		part.bytes = malloc(len ? len : 1);
		memcpy(part.bytes, whole.bytes, len);
		ck_assert_int_eq(decode_best(&part, whole.raw_len), -EBADMSG);
		free(part.bytes);
	}
	part.len = whole.len + 1;
	part.bytes = calloc(1, part.len);
	memcpy(part.bytes, whole.bytes, whole.len);
	ck_assert_int_eq(decode_best(&part, whole.raw_len), -EBADMSG);
	free(part.bytes);
	ck_assert_int_eq(decode_best(&whole, whole.raw_len - 1), -EBADMSG);
	ck_assert_int_eq(decode_best(&whole, whole.raw_len - 56), -EBADMSG);
	ck_assert_int_eq(decode_best(&whole, whole.raw_len + 56), -EBADMSG);
	ck_assert_int_eq(decode_best(&whole, whole.raw_len), 0);
	free(whole.bytes);
	free(records);
}
END_TEST

/* A flip in a raw plane or a base gives other records: hashes find that. It must stay inside. */
START_TEST(a_flip_of_any_bit_is_refused_or_gives_as_many_records)
{
	uint8_t *records;
	struct stored stored = small_block(_i, &records);
	uint32_t refused = 0;

	for (size_t at = 0; at < stored.len; at++) {
		for (int bit = 0; bit < 8; bit++) {
			int rc;

			stored.bytes[at] ^= (uint8_t)(1u << bit);
			rc = decode_best(&stored, stored.raw_len);
			if (rc && rc != -EBADMSG)
				ck_abort_msg("bit %d of byte %zu: %d", bit, at, rc);
			refused += rc != 0;
			stored.bytes[at] ^= (uint8_t)(1u << bit);
		}
	}
	ck_assert_uint_gt(refused, 300);
	check_back(&stored, records);
	free(stored.bytes);
	free(records);
}
END_TEST

/* Two columns (1 and 2 bytes) of 4 records; the byte at `at` becomes `value`. */
static const struct {
	const char *what;
	size_t at;
	uint8_t value;
	uint32_t codec;
} rules[] = {
	{"stride 0", 0, 0, 0},
	{"a stride that does not divide the length", 0, 5, 0},
	{"a record less", 4, 3, 0},
	{"many more records", 7, 1, 0},
	{"a stride that the widths do not make", 2, 1, 0},
	{"no column", 2, 0, 0},
	{"more columns than bytes", 2, 3, 0},
	{"no records in a tile", 8, 0, 0},
	{"a tile longer than all tiles", 11, 1, 0},
	{"a width of 3", 12, 3, 0},
	{"a width of 0", 12, 0, 0},
	{"a width beyond the stride", 13, 4, 0},
	{"mode 3", 14, 3, 0},
	{"an unknown bit in an op", 14, 0x40, 0},
	{"a reference to itself", 14, 0x04, 0},
	{"a reference of another width", 17, 0x04, 0},
	{"kinds of planes that there are not", 15, 0x05, 0},
	{"a packed plane without a codec", 15, 0x02, 0},
	{"a packed plane whose length is 0", 15, 0x02, 1},
	{"a plane of a stream that did not begin", 15, 0x03, 1},
	{"a stream longer than what is left", 18, 0x02, 1},
	{"a stream that is no frame", 18, 0x02, 2},
};

START_TEST(each_rule_of_the_stream_is_checked)
{
	static const uint8_t good[] = {3, 0, 2, 0, 4, 0, 0, 0, 4, 0, 0, 0, /* head */
		1, 2,                                                      /* widths */
		0x00, 0x00, 7,                                             /* column 0: const 7 */
		0x00, 0x01, 9, /* column 1: raw, const 9 */
		1, 2, 3, 4};
	static const uint8_t records[] = {7, 1, 9, 7, 2, 9, 7, 3, 9, 7, 4, 9};
	uint8_t bytes[sizeof(good)];
	struct stored stored = {.bytes = bytes,
		.len = sizeof(bytes),
		.raw_len = sizeof(records),
		.transform = STOUP_TRANSFORM_FIELDS};

	memcpy(bytes, good, sizeof(good));
	check_back(&stored, records);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		memcpy(bytes, good, sizeof(good));
		bytes[rules[i].at] = rules[i].value;
		stored.codec = rules[i].codec;
		if (decode_best(&stored, sizeof(records)) != -EBADMSG)
			ck_abort_msg("not refused: %s", rules[i].what);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("field transform");
	TCase *tests = tcase_create("field transform");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, setup, teardown);
	suite_add_tcase(suite, tests);
	tcase_add_loop_test(tests, records_of_every_built_in_schema_come_back, 0, LEVEL_CNT);
	tcase_add_loop_test(tests, records_of_any_layout_and_number_come_back, 0, LEVEL_CNT);
	tcase_add_loop_test(tests, tiles_and_their_last_records_come_back, 0, LEVEL_CNT);
	tcase_add_loop_test(tests, each_pattern_comes_back_in_each_width, 0, LEVEL_CNT);
	tcase_add_loop_test(
		tests, the_longest_records_and_the_largest_block_come_back, 0, LEVEL_CNT);
	tcase_add_loop_test(
		tests, blocks_of_long_records_come_back_whatever_their_number, 0, LEVEL_CNT);
	tcase_add_loop_test(tests, short_records_come_back, 0, LEVEL_CNT);
	tcase_add_loop_test(tests, noise_is_stored_as_it_is, 0, LEVEL_CNT);
	tcase_add_loop_test(tests, bytes_without_a_layout_are_left_to_the_codec, 0, LEVEL_CNT);
	tcase_add_loop_test(tests, undefined_values_do_not_cost_the_tick, 0, LEVEL_CNT);
	tcase_add_loop_test(tests, a_time_is_taken_from_the_time_beside_it, 0, LEVEL_CNT);
	tcase_add_loop_test(
		tests, what_is_encoded_does_not_depend_on_what_was_before, 0, LEVEL_CNT);
	tcase_add_loop_test(
		tests, floats_are_stored_without_the_transform_where_that_is_shorter, 0, LEVEL_CNT);
	tcase_add_loop_test(tests, all_kernels_do_what_the_document_says, 0, 4);
	tcase_add_loop_test(tests, a_stream_cut_or_lengthened_anywhere_is_refused, 0, LEVEL_CNT);
	tcase_add_loop_test(
		tests, a_flip_of_any_bit_is_refused_or_gives_as_many_records, 0, LEVEL_CNT);
	tcase_add_test(tests, each_rule_of_the_stream_is_checked);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
