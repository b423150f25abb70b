/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_arrow.c - records as Arrow columns: formats, buffers and null bitmaps are compared with
 * Arrow's specification by hand, what is not copied with the pool's own bytes, leases with its cells.
 *
 *      A/x  [10 20][20 20 30][40]     values 0 to 5
 */
#include "consumer/stoup_arrow.h"
#include "consumer/cursor.h"
#include "shm/decimal.h"
#include "tests/unit/test_consumer_fake.h"

#define CNT 1003 /* four tiles, the last one cut, and no multiple of eight */

/* One field of each form. */
struct odd {
	int64_t ts;
	uint64_t event;
	int32_t delta;
	uint32_t qty;
	int64_t px;
	uint64_t lots;
	char side, name[3];
	uint8_t rsv, raw[3];
	float ratio;
	int16_t small;
	uint8_t tiny;
	int8_t sign;
};
_Static_assert(sizeof(struct odd) == 56, "as odd_fields says");

#define AT(n, member, t)                                                                           \
	.name = n, .off = offsetof(struct odd, member), .cnt = 1, .type = STOUP_TYPE_##t
static const struct stoup_field odd_fields[] = {
	{AT("ts", ts, I64), .flags = STOUP_FIELD_KEY | STOUP_FIELD_TIME, .unit = "ns"},
	{AT("event", event, U64), .flags = STOUP_FIELD_NULL | STOUP_FIELD_TIME,
		.null_bits = UINT64_MAX},
	{AT("delta", delta, I32), .flags = STOUP_FIELD_DURATION},
	{AT("qty", qty, U32), .flags = STOUP_FIELD_NULL, .exp10 = -2, .null_bits = UINT32_MAX},
	{AT("px", px, I64), .flags = STOUP_FIELD_NULL, .exp10 = -9, .null_bits = INT64_MAX,
		.unit = "USD"},
	{AT("lots", lots, U64), .exp10 = 2},
	{AT("side", side, CHAR)},
	{.name = "name", .off = offsetof(struct odd, name), .cnt = 3, .type = STOUP_TYPE_CHAR},
	{AT("rsv", rsv, U8), .flags = STOUP_FIELD_HIDDEN},
	{.name = "raw", .off = offsetof(struct odd, raw), .cnt = 3, .type = STOUP_TYPE_BYTES},
	{AT("ratio", ratio, F32), .flags = STOUP_FIELD_NULL, .null_bits = 0x7fc00000},
	{AT("small", small, I16)},
	{AT("tiny", tiny, U8), .flags = STOUP_FIELD_NULL, .null_bits = 200},
	{AT("sign", sign, I8)},
};

static struct stoup_schema odd = {.name = "odd",
	.stride = sizeof(struct odd),
	.align = 8,
	.field_cnt = sizeof(odd_fields) / sizeof(odd_fields[0]),
	.fields = odd_fields};

static struct odd rows[CNT];
static struct stoup_span odd_span;
static struct stoup_error err;

static const char *const names[] = {"", "a", "ab", "abc"};

static void odd_setup(void)
{
	ck_assert_int_eq(stoup_schema_valid(&odd, &err), 0);
	for (int i = 0; i < CNT; i++) {
		struct odd *r = &rows[i];

		*r = (struct odd){.ts = 1700000000000000000 + i,
			.event = i % 5 == 2 ? UINT64_MAX : (uint64_t)i * 1000,
			.delta = i % 2 ? -i : i,
			.qty = i % 11 == 0 ? UINT32_MAX : (uint32_t)i + 4000000000u,
			.px = i % 7 == 3 ? INT64_MAX : (int64_t)i * 250000000 - 100000000000,
			.lots = UINT64_MAX - (uint64_t)i,
			.side = "BAN"[i % 3],
			.rsv = (uint8_t)i,
			.raw = {1, 0, (uint8_t)i},
			.ratio = (float)i / 4,
			.small = (int16_t)(i - 500),
			.tiny = (uint8_t)i,
			.sign = (int8_t)(i % 100 - 50)};
		memcpy(r->name, names[i % 4], strlen(names[i % 4]));
	}
	odd_span = (struct stoup_span){.base = rows,
		.record_cnt = CNT,
		.stride = sizeof(rows[0]),
		.ordinal = 70,
		.schema = &odd};
}

static int bit(const struct ArrowArray *array, int idx)
{
	const uint8_t *bits = array->buffers[0];

	return !bits || (bits[idx / 8] >> (idx % 8) & 1);
}

/* ---- schemas ----------------------------------------------------------------------------------- */

static void expect_formats(uint32_t flags, const char *const *expected, int64_t cnt)
{
	struct ArrowSchema schema;

	ck_assert_int_eq(stoup_arrow_schema(&odd, flags, &schema, &err), 0);
	ck_assert_str_eq(schema.format, "+s");
	ck_assert_int_eq(schema.n_children, cnt);
	for (int64_t i = 0; i < cnt; i++) {
		ck_assert_str_eq(schema.children[i]->format, expected[i]);
		ck_assert_ptr_null(schema.children[i]->dictionary);
		ck_assert_int_eq(schema.children[i]->n_children, 0);
	}
	schema.release(&schema);
	ck_assert(!schema.release);
}

START_TEST(each_form_of_a_field_has_its_format)
{
	static const char *const plain[] = {"tsn:UTC", "tsn:UTC", "tDn", "d:38,2", "d:38,9",
		"d:38,0", "u", "u", "w:3", "f", "s", "C", "c"};
	static const char *const integers[] = {
		"l", "L", "i", "I", "l", "L", "w:1", "w:3", "C", "w:3", "f", "s", "C", "c"};
	static const char *const floats[] = {
		"tsn:UTC", "tsn:UTC", "tDn", "g", "g", "g", "u", "u", "w:3", "f", "s", "C", "c"};
	static const char *const records[] = {"w:56"};

	odd_setup();
	expect_formats(0, plain, 13);
	expect_formats(STOUP_ARROW_PRICE_INT | STOUP_ARROW_TIME_INT | STOUP_ARROW_TEXT_BYTES |
			       STOUP_ARROW_HIDDEN,
		integers, 14);
	expect_formats(STOUP_ARROW_PRICE_F64, floats, 13);
	expect_formats(STOUP_ARROW_RECORDS, records, 1);
}
END_TEST

/* The value of a key in the interface's metadata, or NULL. */
static const char *metadata(const struct ArrowSchema *schema, const char *key)
{
	static char value[64];
	const char *at = schema->metadata;
	int32_t cnt, len;

	if (!at)
		return NULL;
	memcpy(&cnt, at, 4);
	at += 4;
	while (cnt-- > 0) {
		int found;

		memcpy(&len, at, 4);
		found = (size_t)len == strlen(key) && memcmp(at + 4, key, (size_t)len) == 0;
		at += 4 + len;
		memcpy(&len, at, 4);
		if (found) {
			ck_assert_int_lt(len, 64);
			memcpy(value, at + 4, (size_t)len);
			value[len] = 0;
			return value;
		}
		at += 4 + len;
	}
	return NULL;
}

START_TEST(names_nullability_and_metadata_tell_what_the_format_can_not)
{
	struct ArrowSchema schema, bar_schema, moved;
	struct stoup_schema bar = *stoup_schema_by_name("bar");

	odd_setup();
	ck_assert_int_eq(stoup_arrow_schema(&odd, STOUP_ARROW_PRICE_INT, &schema, &err), 0);
	ck_assert_str_eq(schema.children[4]->name, "px");
	ck_assert_int_eq(schema.children[4]->flags, ARROW_FLAG_NULLABLE);
	ck_assert_int_eq(schema.children[0]->flags, 0);
	ck_assert_str_eq(metadata(schema.children[4], "stoup.scale"), "-9");
	ck_assert_str_eq(metadata(schema.children[4], "stoup.unit"), "USD");
	ck_assert_str_eq(metadata(schema.children[5], "stoup.scale"), "2");
	ck_assert_ptr_null(metadata(schema.children[11], "stoup.scale"));
	ck_assert_str_eq(metadata(&schema, "stoup.schema"), "odd");
	ck_assert_str_eq(metadata(&schema, "stoup.key"), "ts");
	ck_assert_ptr_null(metadata(&schema, "stoup.interval_ns"));
	/* A child that is moved out outlives its parent. */
	moved = *schema.children[4];
	schema.children[4]->release = NULL;
	schema.release(&schema);
	ck_assert_str_eq(moved.name, "px");
	moved.release(&moved);
	ck_assert(!moved.release);
	bar.interval_ns = 60000000000;
	ck_assert_int_eq(stoup_arrow_schema(&bar, 0, &bar_schema, &err), 0);
	ck_assert_str_eq(metadata(&bar_schema, "stoup.interval_ns"), "60000000000");
	bar_schema.release(&bar_schema);
}
END_TEST

START_TEST(what_can_not_be_said_in_columns_is_refused)
{
	struct ArrowSchema schema = {.n_children = 77};
	struct ArrowArray array = {.length = 77};

	odd_setup();
	ck_assert_int_eq(stoup_arrow_schema(&odd, 0x80, &schema, &err), -EINVAL);
	ck_assert_int_eq(stoup_arrow_array(&odd_span, STOUP_ARROW_PRICE_INT | STOUP_ARROW_PRICE_F64,
				 &array, &err),
		-EINVAL);
	ck_assert_int_eq(stoup_arrow_schema(
				 stoup_schema_by_name("json"), STOUP_ARROW_RECORDS, &schema, &err),
		-ENOTSUP);
	ck_assert_int_eq(schema.n_children, 77);
	ck_assert_int_eq(array.length, 77);
}
END_TEST

/* ---- arrays ------------------------------------------------------------------------------------ */

START_TEST(each_column_has_the_values_of_its_field)
{
	struct ArrowArray array;
	struct ArrowArray **c;
	__extension__ typedef __int128 wide;

	odd_setup();
	ck_assert_int_eq(stoup_arrow_array(&odd_span, 0, &array, &err), 0);
	ck_assert_int_eq(array.length, CNT);
	ck_assert_int_eq(array.null_count, 0);
	ck_assert_int_eq(array.offset, 0);
	ck_assert_int_eq(array.n_buffers, 1);
	ck_assert_ptr_null(array.buffers[0]);
	ck_assert_int_eq(array.n_children, 13);
	c = array.children;
	for (int i = 0; i < 13; i++) {
		ck_assert_int_eq(c[i]->length, CNT);
		ck_assert_int_eq(c[i]->offset, 0);
		ck_assert_int_eq(c[i]->n_buffers, i == 6 || i == 7 ? 3 : 2);
		for (int b = 0; b < c[i]->n_buffers; b++)
			ck_assert_uint_eq((uintptr_t)c[i]->buffers[b] % 64, 0);
	}
	for (int i = 0; i < CNT; i++) {
		wide price, lots;

		ck_assert_int_eq(((const int64_t *)c[0]->buffers[1])[i], rows[i].ts);
		ck_assert_int_eq(bit(c[1], i), i % 5 != 2);
		if (i % 5 != 2)
			ck_assert_int_eq(((const int64_t *)c[1]->buffers[1])[i], i * 1000);
		ck_assert_int_eq(((const int64_t *)c[2]->buffers[1])[i], rows[i].delta);
		ck_assert_int_eq(bit(c[3], i), i % 11 != 0);
		memcpy(&price, (const char *)c[3]->buffers[1] + 16 * i, 16);
		ck_assert(i % 11 == 0 || price == rows[i].qty);
		ck_assert_int_eq(bit(c[4], i), i % 7 != 3);
		memcpy(&price, (const char *)c[4]->buffers[1] + 16 * i, 16);
		ck_assert(i % 7 == 3 || price == rows[i].px);
		memcpy(&lots, (const char *)c[5]->buffers[1] + 16 * i, 16);
		ck_assert(lots == (wide)rows[i].lots * 100);
		ck_assert_mem_eq((const char *)c[8]->buffers[1] + 3 * i, rows[i].raw, 3);
		ck_assert(((const float *)c[9]->buffers[1])[i] == rows[i].ratio);
		ck_assert_int_eq(((const int16_t *)c[10]->buffers[1])[i], rows[i].small);
		ck_assert_int_eq(bit(c[11], i), (uint8_t)i != 200);
		ck_assert_uint_eq(((const uint8_t *)c[11]->buffers[1])[i], rows[i].tiny);
		ck_assert_int_eq(((const int8_t *)c[12]->buffers[1])[i], rows[i].sign);
	}
	ck_assert_int_eq(c[1]->null_count, 201); /* 2, 7 ... 1002 */
	ck_assert_int_eq(c[3]->null_count, 92);
	ck_assert_int_eq(c[4]->null_count, 143);
	ck_assert_int_eq(c[11]->null_count, 4);
	/* No bitmap where nothing is undefined: no null value, or none of it among the rows. */
	ck_assert_ptr_null(c[0]->buffers[0]);
	ck_assert_ptr_null(c[9]->buffers[0]);
	ck_assert_int_eq(c[9]->null_count, 0);
	/* Bits beyond the end are zero. */
	ck_assert_int_eq(((const uint8_t *)c[4]->buffers[0])[125] >> 3, 0);
	array.release(&array);
	ck_assert(!array.release);
}
END_TEST

START_TEST(texts_are_cut_at_their_first_nul)
{
	struct ArrowArray array;
	const int32_t *offsets;
	const char *text;

	odd_setup();
	ck_assert_int_eq(stoup_arrow_array(&odd_span, 0, &array, &err), 0);
	offsets = array.children[7]->buffers[1];
	text = array.children[7]->buffers[2];
	ck_assert_int_eq(offsets[0], 0);
	for (int i = 0; i < CNT; i++) {
		ck_assert_int_eq(offsets[i + 1] - offsets[i], i % 4);
		ck_assert_mem_eq(text + offsets[i], names[i % 4], (size_t)(i % 4));
	}
	offsets = array.children[6]->buffers[1];
	text = array.children[6]->buffers[2];
	ck_assert_int_eq(offsets[CNT], CNT);
	for (int i = 0; i < CNT; i++)
		ck_assert_int_eq(text[i], "BAN"[i % 3]);
	array.release(&array);
}
END_TEST

START_TEST(flags_give_integers_floats_bytes_and_hidden_fields)
{
	struct ArrowArray array;

	odd_setup();
	ck_assert_int_eq(stoup_arrow_array(&odd_span,
				 STOUP_ARROW_PRICE_INT | STOUP_ARROW_TIME_INT |
					 STOUP_ARROW_TEXT_BYTES | STOUP_ARROW_HIDDEN,
				 &array, &err),
		0);
	ck_assert_int_eq(array.n_children, 14);
	for (int i = 0; i < CNT; i++) {
		ck_assert_uint_eq(
			((const uint64_t *)array.children[1]->buffers[1])[i], rows[i].event);
		ck_assert_int_eq(
			((const int32_t *)array.children[2]->buffers[1])[i], rows[i].delta);
		ck_assert_uint_eq(
			((const uint32_t *)array.children[3]->buffers[1])[i], rows[i].qty);
		ck_assert_int_eq(((const int64_t *)array.children[4]->buffers[1])[i], rows[i].px);
		ck_assert_mem_eq(
			(const char *)array.children[7]->buffers[1] + 3 * i, rows[i].name, 3);
		ck_assert_uint_eq(((const uint8_t *)array.children[8]->buffers[1])[i], (uint8_t)i);
	}
	ck_assert_int_eq(array.children[4]->null_count, 143);
	array.release(&array);
	ck_assert_int_eq(stoup_arrow_array(&odd_span, STOUP_ARROW_PRICE_F64, &array, &err), 0);
	for (int i = 0; i < CNT; i++)
		if (i % 7 != 3)
			ck_assert(((const double *)array.children[4]->buffers[1])[i] ==
				  (double)rows[i].px / 1e9);
	ck_assert(((const double *)array.children[5]->buffers[1])[0] == 18446744073709551615e2);
	array.release(&array);
}
END_TEST

START_TEST(a_price_becomes_the_nearest_double)
{
	/* A decimal beyond 2^53 that two roundings would bring to the wrong side. */
	ck_assert(stoup_decimal_double(9007199254740993, -9) == 9007199.254740993);
	ck_assert(stoup_decimal_double(-9223372036854775807 - 1, -9) == -9223372036.854775808);
	ck_assert(stoup_decimal_double_u64(UINT64_MAX, -18) == 18.446744073709551615);
	ck_assert(stoup_decimal_double(1, -18) == 1e-18);
	ck_assert(stoup_decimal_double(-4743250000000, -9) == -4743.25);
	ck_assert(stoup_decimal_double(7, 18) == 7e18);
	ck_assert(stoup_decimal_double(INT64_MAX, 18) == 9223372036854775807e18);
}
END_TEST

START_TEST(what_arrow_can_not_hold_is_told_with_record_and_field)
{
	struct ArrowArray array = {.length = 77};

	odd_setup();
	rows[600].event = UINT64_MAX - 1;
	ck_assert_int_eq(stoup_arrow_array(&odd_span, 0, &array, &err), -ERANGE);
	ck_assert_ptr_nonnull(strstr(err.text, "record 670, field event"));
	ck_assert_ptr_nonnull(strstr(err.text, "STOUP_ARROW_TIME_INT"));
	ck_assert_int_eq(stoup_arrow_array(&odd_span, STOUP_ARROW_TIME_INT, &array, &err), 0);
	array.release(&array);
	array.length = 77;
	odd_setup();
	memcpy(rows[1002].name, "\xed\xa0\x80", 3); /* a surrogate */
	ck_assert_int_eq(stoup_arrow_array(&odd_span, 0, &array, &err), -EILSEQ);
	ck_assert_ptr_nonnull(strstr(err.text, "record 1072, field name"));
	memcpy(rows[1002].name, "\xc3\xa4\xc3", 3); /* cut */
	ck_assert_int_eq(stoup_arrow_array(&odd_span, 0, &array, &err), -EILSEQ);
	ck_assert_int_eq(array.length, 77);
	memcpy(rows[1002].name, "\xe2\x82\xac", 3); /* the euro sign */
	ck_assert_int_eq(stoup_arrow_array(&odd_span, 0, &array, &err), 0);
	array.release(&array);
}
END_TEST

START_TEST(a_moved_child_lives_on_alone)
{
	struct ArrowArray array, moved;

	odd_setup();
	ck_assert_int_eq(stoup_arrow_array(&odd_span, 0, &array, &err), 0);
	moved = *array.children[4];
	array.children[4]->release = NULL;
	array.release(&array);
	ck_assert_int_eq(moved.null_count, 143);
	ck_assert_int_eq(((const int64_t *)moved.buffers[1])[2], rows[1].px);
	moved.release(&moved);
	ck_assert(!moved.release);
}
END_TEST

/* ---- not copied: leases ------------------------------------------------------------------------ */

static struct fake fake;
static struct stoup *st;
static struct stoup_cursor *cur;
static struct stoup_span span;

static const struct fake_series plain[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 3,
		.segments = {{0, 2, {10, 20}}, {1, 3, {20, 20, 30}}, {2, 1, {40}}}},
};
static const struct stoup_options no_ahead = {.struct_len = sizeof(struct stoup_options),
	.ahead_cnt = UINT32_MAX,
	.timeout_ns = 60000000000};

/* gaps: of fake_file; UINT32_MAX: no file, the pool alone */
static void begin(uint32_t gaps)
{
	fake_init(&fake);
	fake_volume(&fake, 1, 0, 3, plain, 1);
	if (gaps != UINT32_MAX) {
		fake_file(&fake, 0, gaps);
	} else {
		struct stoup_catalog *c = fake.volumes[0].catalog;
		struct stoup_catalog_block *blocks = (void *)((char *)c + c->block_off);

		for (uint32_t b = 0; b < 3; b++)
			blocks[b].codec = 1;
	}
	fake_start(&fake, "p");
	st = fake_attach("p", &no_ahead);
}

static void end(void)
{
	ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

static uint64_t leases(void)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};

	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	return stats.lease_cnt;
}

START_TEST(records_as_one_column_are_the_pool_s_own_bytes_under_a_lease)
{
	struct ArrowArray array, moved;

	begin(UINT32_MAX);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_arrow_array(&span, STOUP_ARROW_RECORDS, &array, &err), 0);
	ck_assert_int_eq(array.n_children, 1);
	ck_assert_int_eq(array.children[0]->length, 2);
	ck_assert_ptr_null(array.children[0]->buffers[0]);
	ck_assert_ptr_eq(array.children[0]->buffers[1], span.base);
	stoup_cursor_close(cur);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	ck_assert_int_eq(stoup_detach(st), -EBUSY);
	/* The lease goes with the child, wherever it is, and once. */
	moved = *array.children[0];
	array.children[0]->release = NULL;
	array.release(&array);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	ck_assert_uint_eq(((const struct pair *)moved.buffers[1])[1].value, 1);
	moved.release(&moved);
	ck_assert(!moved.release);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	end();
}
END_TEST

START_TEST(a_schema_of_one_field_is_not_copied_either)
{
	static const struct stoup_field field = {.name = "t",
		.cnt = 1,
		.type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_KEY | STOUP_FIELD_TIME | STOUP_FIELD_NULL,
		.null_bits = 1};
	static const struct stoup_schema one = {
		.name = "one", .stride = 8, .align = 8, .field_cnt = 1, .fields = &field};
	struct ArrowArray array;

	begin(UINT32_MAX);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	/* The same bytes, as if each half of a pair were a record: 10 0 20 1. */
	span.schema = &one;
	span.stride = 8;
	span.record_cnt = 4;
	ck_assert_int_eq(stoup_arrow_array(&span, 0, &array, &err), 0);
	ck_assert_ptr_eq(array.children[0]->buffers[1], span.base);
	ck_assert_int_eq(array.children[0]->null_count, 1);
	ck_assert_uint_eq(*(const uint8_t *)array.children[0]->buffers[0], 7);
	ck_assert_uint_eq(leases(), 1);
	array.release(&array);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(copied_columns_hold_nothing_and_outlive_the_pool)
{
	struct ArrowArray array;

	begin(UINT32_MAX);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_arrow_array(&span, 0, &array, &err), 0);
	stoup_cursor_close(cur);
	end();
	ck_assert_int_eq(array.n_children, 2);
	ck_assert_int_eq(((const int64_t *)array.children[0]->buffers[1])[1], 20);
	ck_assert_uint_eq(((const uint64_t *)array.children[1]->buffers[1])[1], 1);
	array.release(&array);
}
END_TEST

START_TEST(a_span_that_is_no_longer_held_is_refused)
{
	struct ArrowArray array;
	struct stoup_span first;

	begin(UINT32_MAX);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &first), 1);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_arrow_array(&first, STOUP_ARROW_RECORDS, &array, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "no longer held"));
	ck_assert_uint_eq(leases(), 1); /* the cursor's */
	stoup_cursor_close(cur);
	end();
}
END_TEST

/* ---- streams ----------------------------------------------------------------------------------- */

START_TEST(a_stream_gives_the_schema_each_span_and_then_its_end)
{
	static const int64_t lens[] = {2, 3, 1};
	struct ArrowArrayStream stream;
	struct ArrowSchema schema;
	struct ArrowArray array;
	uint64_t value = 0;

	begin(UINT32_MAX);
	ck_assert_int_eq(stoup_arrow_stream(fake_scan(st, "A/x", 0, 0), 0, &stream, &err), 0);
	ck_assert_ptr_null(stream.get_last_error(&stream));
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(stream.get_schema(&stream, &schema), 0);
		ck_assert_str_eq(schema.children[1]->format, "L");
		schema.release(&schema);
		ck_assert_int_eq(stream.get_next(&stream, &array), 0);
		ck_assert_int_eq(array.length, lens[i]);
		for (int64_t j = 0; j < lens[i]; j++)
			ck_assert_uint_eq(
				((const uint64_t *)array.children[1]->buffers[1])[j], value++);
		array.release(&array);
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(stream.get_next(&stream, &array), 0);
		ck_assert(!array.release);
	}
	stream.release(&stream);
	ck_assert(!stream.release);
	end();
}
END_TEST

START_TEST(a_batch_that_fails_is_told_and_comes_when_asked_again)
{
	struct ArrowArrayStream stream;
	struct ArrowArray array;

	begin(UINT32_MAX);
	atomic_store(&fake.volumes[0].blocks[0].error, -EBADMSG);
	atomic_store(&fake.volumes[0].blocks[0].act, FAKE_FAIL);
	ck_assert_int_eq(stoup_arrow_stream(fake_scan(st, "A/x", 0, 0), 0, &stream, &err), 0);
	ck_assert_int_eq(stream.get_next(&stream, &array), EBADMSG);
	ck_assert_ptr_nonnull(strstr(stream.get_last_error(&stream), "block 0"));
	atomic_store(&fake.volumes[0].blocks[0].act, FAKE_GRANT);
	ck_assert_int_eq(stream.get_next(&stream, &array), 0);
	ck_assert_int_eq(array.length, 2);
	array.release(&array);
	stream.release(&stream);
	end();
}
END_TEST

START_TEST(a_stream_wants_a_forward_scan_and_leaves_another_to_its_owner)
{
	struct ArrowArrayStream stream;

	begin(UINT32_MAX);
	cur = fake_scan_flags(st, "A/x", 0, 0, STOUP_BACKWARD);
	ck_assert_int_eq(stoup_arrow_stream(cur, 0, &stream, &err), -EINVAL);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	stoup_cursor_close(cur);
	end();
}
END_TEST

/* ---- whole arrays ------------------------------------------------------------------------------ */

static int array_of(int64_t from, int64_t to, uint32_t flags, struct stoup_array *ret)
{
	const struct stoup_range range = {.from_ns = from, .to_ns = to, .flags = flags};
	struct stoup_series series;

	ck_assert_int_eq(stoup_series_find(st, "A/x", &series, NULL), 0);
	return stoup_array(st, &series, &range, ret, &err);
}

START_TEST(a_range_in_one_file_is_one_array)
{
	struct stoup_array array;

	begin(0);
	ck_assert_int_eq(array_of(0, 0, 0, &array), 0);
	ck_assert_uint_eq(array.record_cnt, 6);
	ck_assert_uint_eq(array.stride, 16);
	ck_assert_uint_eq(array.direct, 1);
	ck_assert_str_eq(array.schema->name, "pair");
	for (uint64_t i = 0; i < 6; i++)
		ck_assert_uint_eq(((const struct pair *)array.base)[i].value, i);
	ck_assert_int_eq(stoup_detach(st), -EBUSY);
	ck_assert_int_eq(stoup_array_release(&array), 0);
	ck_assert_ptr_null(array.base);
	ck_assert_int_eq(stoup_array_release(&array), 0);
	ck_assert_int_eq(array_of(20, 40, STOUP_DIRECT, &array), 0);
	ck_assert_uint_eq(array.record_cnt, 4);
	ck_assert_int_eq(stoup_array_release(&array), 0);
	ck_assert_uint_eq(fake_log_cnt(&fake), 0);
	end();
}
END_TEST

START_TEST(a_range_in_parts_is_refused_with_the_numbers)
{
	struct stoup_array array = {.record_cnt = 77};

	begin(1);
	ck_assert_int_eq(array_of(0, 0, 0, &array), -EFBIG);
	ck_assert_ptr_nonnull(strstr(err.text, "6 records"));
	ck_assert_ptr_nonnull(strstr(err.text, "--codec none"));
	ck_assert_uint_eq(array.record_cnt, 77);
	ck_assert_uint_eq(leases(), 0);
	/* Behind the gap all is one. */
	ck_assert_int_eq(array_of(21, 0, 0, &array), 0);
	ck_assert_uint_eq(array.record_cnt, 2);
	ck_assert_int_eq(stoup_array_release(&array), 0);
	end();
}
END_TEST

START_TEST(in_the_pool_one_block_is_an_array_and_more_are_told_before_any_is_read)
{
	struct stoup_array array;

	begin(UINT32_MAX);
	ck_assert_int_eq(array_of(0, 0, 0, &array), -EFBIG);
	ck_assert_ptr_nonnull(strstr(err.text, "6 records"));
	ck_assert_ptr_nonnull(strstr(err.text, "3 blocks"));
	ck_assert_uint_eq(fake_log_cnt(&fake), 0);
	ck_assert_int_eq(array_of(0, 0, STOUP_DIRECT, &array), -ENOTSUP);
	ck_assert_int_eq(array_of(21, 40, STOUP_DIRECT_OR_POOL, &array), 0);
	ck_assert_uint_eq(array.record_cnt, 1);
	ck_assert_uint_eq(array.direct, 0);
	ck_assert_int_eq(((const struct pair *)array.base)->key, 30);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	ck_assert_int_eq(stoup_array_release(&array), 0);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	end();
}
END_TEST

START_TEST(an_empty_range_is_an_array_without_records)
{
	struct stoup_array array;

	begin(0);
	ck_assert_int_eq(array_of(41, 0, 0, &array), 0);
	ck_assert_uint_eq(array.record_cnt, 0);
	ck_assert_ptr_null(array.base);
	ck_assert_int_eq(stoup_array_release(&array), 0);
	ck_assert_int_eq(array_of(0, 0, STOUP_BACKWARD, &array), -EINVAL);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_arrow");
	TCase *schemas = tcase_create("schemas"), *arrays = tcase_create("arrays"),
	      *held = tcase_create("held"), *streams = tcase_create("streams"),
	      *whole = tcase_create("whole");

	tcase_add_test(schemas, each_form_of_a_field_has_its_format);
	tcase_add_test(schemas, names_nullability_and_metadata_tell_what_the_format_can_not);
	tcase_add_test(schemas, what_can_not_be_said_in_columns_is_refused);
	tcase_add_test(arrays, each_column_has_the_values_of_its_field);
	tcase_add_test(arrays, texts_are_cut_at_their_first_nul);
	tcase_add_test(arrays, flags_give_integers_floats_bytes_and_hidden_fields);
	tcase_add_test(arrays, a_price_becomes_the_nearest_double);
	tcase_add_test(arrays, what_arrow_can_not_hold_is_told_with_record_and_field);
	tcase_add_test(arrays, a_moved_child_lives_on_alone);
	tcase_add_test(held, records_as_one_column_are_the_pool_s_own_bytes_under_a_lease);
	tcase_add_test(held, a_schema_of_one_field_is_not_copied_either);
	tcase_add_test(held, copied_columns_hold_nothing_and_outlive_the_pool);
	tcase_add_test(held, a_span_that_is_no_longer_held_is_refused);
	tcase_add_test(streams, a_stream_gives_the_schema_each_span_and_then_its_end);
	tcase_add_test(streams, a_batch_that_fails_is_told_and_comes_when_asked_again);
	tcase_add_test(streams, a_stream_wants_a_forward_scan_and_leaves_another_to_its_owner);
	tcase_add_test(whole, a_range_in_one_file_is_one_array);
	tcase_add_test(whole, a_range_in_parts_is_refused_with_the_numbers);
	tcase_add_test(
		whole, in_the_pool_one_block_is_an_array_and_more_are_told_before_any_is_read);
	tcase_add_test(whole, an_empty_range_is_an_array_without_records);
	suite_add_tcase(suite, schemas);
	suite_add_tcase(suite, arrays);
	suite_add_tcase(suite, held);
	suite_add_tcase(suite, streams);
	suite_add_tcase(suite, whole);
	return fake_main(suite);
}
