/* SPDX-License-Identifier: Apache-2.0 */
/* test_volume_damage.c - every rule of the volume format, every byte, every length, other versions.
 *
 * The table of damage edits one number of the small volume, makes all checksums right again, and
 * names the fault that must come out. The flips leave the checksums as they are.
 */
#include "tests/unit/volume_small.h"

/* ---- damage that no checksum finds ----------------------------------------------------------- */

enum {
	AT_FILE = 0,
	AT_TRAILER = 100,
	AT_FOOTER = 101,
	AT_SECTION = 200
};
enum {
	HEADER = STOUP_VOL_REGION_HEADER,
	FOOTER = STOUP_VOL_REGION_FOOTER,
	TRAILER = STOUP_VOL_REGION_TRAILER
};
#define MEMBER(name, member)                                                                       \
	offsetof(struct stoup_vol_disk_##name, member),                                            \
		sizeof(((struct stoup_vol_disk_##name *)0)->member)
#define AT_HEADER(member)       AT_FILE, 0, MEMBER(header, member)
#define AT_END(member)          AT_TRAILER, 0, MEMBER(trailer, member)
#define AT_HEAD(member)         AT_FOOTER, 0, MEMBER(footer, member)
#define AT_TABLE(kind, member)  AT_SECTION + STOUP_VOL_SECTION_##kind, 0, MEMBER(section, member)
#define AT_SCHEMA(idx, member)  STOUP_VOL_SECTION_SCHEMAS, idx, MEMBER(schema, member)
#define AT_FIELD(idx, member)   STOUP_VOL_SECTION_FIELDS, idx, MEMBER(field, member)
#define AT_SERIES(idx, member)  STOUP_VOL_SECTION_SERIES, idx, MEMBER(series, member)
#define AT_BLOCK(idx, member)   STOUP_VOL_SECTION_BLOCKS, idx, MEMBER(block, member)
#define AT_SEGMENT(idx, member) STOUP_VOL_SECTION_SEGMENTS, idx, MEMBER(segment, member)
#define AT_ID(idx)              STOUP_VOL_SECTION_SUPERSEDED, idx, 0, 8

/* Series 2 is B/X with segments 2 and 3; block 0 is lz4, 1 zstd, 2 none. */
static const struct {
	int where;
	uint32_t idx;
	size_t off, len;
	uint64_t value;
	int code;
	uint32_t region;
	const char *what; /* a part of the words */
} damages[] = {
	{AT_HEADER(major), 2, -ENOTSUP, HEADER,
		"format version 2.1, but this program reads version 1"},
	{AT_HEADER(flags), 0x10000, -ENOTSUP, HEADER, "feature flags 0x00010000"},
	{AT_HEADER(batch_cnt), 1, -EBADMSG, HEADER, "number 1 of a batch of 1"},
	{AT_HEADER(batch_cnt), 0, -EBADMSG, HEADER, "number 1 of a batch of 0"},
	{AT_HEADER(magic), 0, -EBADMSG, HEADER, "not a stoup volume"},
	{AT_END(footer_off), 0, -EBADMSG, TRAILER, "end at the trailer"},
	{AT_END(footer_off), UINT64_MAX - 7, -EBADMSG, TRAILER, "end at the trailer"},
	{AT_END(footer_len), 8, -EBADMSG, TRAILER, "a footer of "},
	{AT_END(footer_len), UINT64_MAX - 7, -EBADMSG, TRAILER, "a footer of "},
	{AT_END(footer_len), 1u << 30, -EBADMSG, TRAILER, "a footer of "},
	{AT_END(footer_len), 64, -EBADMSG, TRAILER, "end at the trailer"},
	{AT_END(file_len), 64, -EBADMSG, TRAILER, "but was written with"},
	{AT_END(zero), 1, -EBADMSG, TRAILER, "reserved"},
	{AT_END(magic), 0, -EBADMSG, TRAILER, "cut short"},
	{AT_HEAD(section_cnt), 65, -EBADMSG, FOOTER, "65 sections; allowed are 64"},
	{AT_HEAD(section_cnt), 64, -EBADMSG, FOOTER,
		"the section table of 2064 bytes reaches beyond"},
	{AT_HEAD(section_cnt), 6, -EBADMSG, FOOTER, "padding in front of section 1"},
	{AT_HEAD(section_len), 24, -EBADMSG, FOOTER, "entries of the section table have"},
	{AT_HEAD(section_len), 40, -EBADMSG, FOOTER, "entries of the section table have"},
	{AT_HEAD(zero), 1, -EBADMSG, FOOTER, "reserved"},
	{AT_TABLE(SERIES, kind), 3, -EBADMSG, FOOTER, "section 3 is present twice"},
	{AT_TABLE(SERIES, kind), 99, -EBADMSG, FOOTER, "section 4 is missing"},
	{AT_TABLE(SERIES, off), UINT64_MAX - 7, -EBADMSG, FOOTER, "reach beyond the footer"},
	{AT_TABLE(SERIES, off), 8, -EBADMSG, FOOTER, "begins before"},
	{AT_TABLE(SERIES, len), UINT64_MAX, -EBADMSG, FOOTER, "reach beyond the footer"},
	{AT_TABLE(SERIES, len), 48, -EBADMSG, FOOTER, "bytes do not make"},
	{AT_TABLE(SERIES, cnt), 4, -EBADMSG, FOOTER, "bytes do not make"},
	{AT_TABLE(SERIES, cnt), UINT64_MAX, -EBADMSG, FOOTER, "bytes do not make"},
	{AT_TABLE(SERIES, entry_len), 0, -EBADMSG, FOOTER, "bytes do not make"},
	{AT_TABLE(SUPERSEDED, entry_len), 8, -EBADMSG, FOOTER, "bytes do not make"},
	{AT_SCHEMA(0, name_off), 0x7fffffff, -EBADMSG, FOOTER,
		"schema 0: the name at 2147483647 with 6 bytes and a NUL reaches beyond"},
	{AT_SCHEMA(0, name_len), 5, -EBADMSG, FOOTER,
		"schema 0: the name at 0 with 5 bytes is not"},
	{AT_SCHEMA(0, name_len), 0, -EBADMSG, FOOTER, "schema 0: the name has 0 bytes"},
	{AT_SCHEMA(0, name_len), 32, -EBADMSG, FOOTER, "schema 0: the name has 32 bytes"},
	{AT_SCHEMA(0, name_len), 13, -EBADMSG, FOOTER,
		"schema 0: the name at 0 has a control byte"},
	{AT_SCHEMA(0, stride), 17, -EBADMSG, FOOTER, "schema 0: the stride is no multiple"},
	{AT_SCHEMA(0, stride), 0, -EBADMSG, FOOTER, "schema 0: the stride is not within"},
	{AT_SCHEMA(0, stride), 65536, -EBADMSG, FOOTER, "schema 0: the stride is not within"},
	{AT_SCHEMA(0, stride), 8, -EBADMSG, FOOTER, "field 1: the field reaches beyond the record"},
	{AT_SCHEMA(0, align), 3, -EBADMSG, FOOTER, "schema 0: the alignment"},
	{AT_SCHEMA(0, align), 0, -EBADMSG, FOOTER, "schema 0: the alignment"},
	{AT_SCHEMA(0, align), 4, -EBADMSG, FOOTER, "schema 0: the key is not aligned"},
	{AT_SCHEMA(0, key_off), 8, -EBADMSG, FOOTER, "field 0: the field is marked as key, but"},
	{AT_SCHEMA(0, flags), 4, -EBADMSG, FOOTER, "schema 0: unknown flags"},
	{AT_SCHEMA(0, flags), 1, -EBADMSG, FOOTER, "schema 0: a schema of messages has"},
	{AT_SCHEMA(0, interval_ns), 1, -EBADMSG, FOOTER, "schema 0: an interval without"},
	{AT_SCHEMA(0, hash), 1, -EBADMSG, FOOTER, "schema 0: the hash is not the one"},
	{AT_SCHEMA(0, field_cnt), 0, -EBADMSG, FOOTER, "schema 0: the number of fields"},
	{AT_SCHEMA(0, field_cnt), UINT32_MAX, -EBADMSG, FOOTER,
		"schema 0: its fields are 4294967295"},
	{AT_SCHEMA(1, field_first), 2, -EBADMSG, FOOTER,
		"schema 1: its fields are 3 from number 2"},
	{AT_SCHEMA(1, field_cnt), 2, -EBADMSG, FOOTER, "schema 1: the hash is not"},
	{AT_FIELD(1, name), 0, -EBADMSG, FOOTER, "field 1: the field's name is empty"},
	{AT_FIELD(1, off), 12, -EBADMSG, FOOTER, "field 2: the field overlaps another"},
	{AT_FIELD(1, off), UINT32_MAX, -EBADMSG, FOOTER, "field 1: the field reaches beyond"},
	{AT_FIELD(1, cnt), 2, -EBADMSG, FOOTER, "field 1: the field's element count"},
	{AT_FIELD(1, cnt), 0, -EBADMSG, FOOTER, "field 1: the field's element count"},
	{AT_FIELD(1, type), 13, -EBADMSG, FOOTER, "field 1: the field's type is unknown"},
	{AT_FIELD(1, type), 0, -EBADMSG, FOOTER, "field 1: the field's type is unknown"},
	{AT_FIELD(1, type), 9, -EBADMSG, FOOTER, "field 1: a field that is not a plain integer"},
	{AT_FIELD(1, flags), 0x21, -EBADMSG, FOOTER, "field 1: the field has unknown flags"},
	{AT_FIELD(1, flags), 0, -EBADMSG, FOOTER, "field 1: a null value without the flag"},
	{AT_FIELD(0, flags), 0x02, -EBADMSG, FOOTER, "schema 0: no field is marked as the key"},
	{AT_FIELD(0, type), 10, -EBADMSG, FOOTER, "field 0: a time or key field is not"},
	{AT_FIELD(1, exp10), 19, -EBADMSG, FOOTER, "field 1: the field's scale"},
	{AT_FIELD(1, zero), 1, -EBADMSG, FOOTER, "field 1: the field's reserved bytes"},
	{AT_FIELD(1, null_bits), UINT64_MAX, -EBADMSG, FOOTER, "field 1: the field's null value"},
	{AT_FIELD(1, unit), 0x4100, -EBADMSG, FOOTER, "field 1: the field's unit"},
	{AT_SERIES(2, name_off), UINT32_MAX, -EBADMSG, FOOTER, "series 2: the name at 4294967295"},
	{AT_SERIES(2, name_len), 512, -EBADMSG, FOOTER, "series 2: the name has 512 bytes"},
	{AT_SERIES(2, name_len), 2, -EBADMSG, FOOTER,
		"series 2: the name at 22 with 2 bytes is not"},
	{AT_SERIES(2, name_off), 14, -EBADMSG, FOOTER, "series 2: not behind its predecessor"},
	{AT_SERIES(0, schema_idx), 2, -EBADMSG, FOOTER, "series 0: schema 2 of 2"},
	{AT_SERIES(2, schema_idx), 1, -EBADMSG, FOOTER, "segment 2: block 0 holds another schema"},
	{AT_SERIES(2, flags), 2, -EBADMSG, FOOTER, "series 2: unknown flags 0x2"},
	{AT_SERIES(2, segment_first), 1, -EBADMSG, FOOTER,
		"series 2: its segments are 2 from number 1"},
	{AT_SERIES(2, segment_cnt), 0, -EBADMSG, FOOTER, "series 2: its segments are 0"},
	{AT_SERIES(2, segment_cnt), UINT32_MAX, -EBADMSG, FOOTER,
		"series 2: its segments are 4294967295"},
	{AT_SERIES(2, record_cnt), 23, -EBADMSG, FOOTER,
		"series 2: 23 records, but its segments have 22"},
	{AT_SERIES(2, first_key), 1, -EBADMSG, FOOTER, "series 2: keys 1 to"},
	{AT_SERIES(2, last_key), 1, -EBADMSG, FOOTER, "series 2: keys"},
	{AT_BLOCK(0, schema_idx), 2, -EBADMSG, FOOTER, "block 0: schema 2 of 2"},
	{AT_BLOCK(0, schema_idx), 1, -EBADMSG, FOOTER, "block 0: raw length 320 is no multiple"},
	{AT_BLOCK(0, raw_len), 0, -EBADMSG, FOOTER, "block 0: raw length 0"},
	{AT_BLOCK(0, raw_len), STOUP_BLOCK_RAW_CAP + 16, -EBADMSG, FOOTER,
		"block 0: raw length 16777232"},
	{AT_BLOCK(0, raw_len), 321, -EBADMSG, FOOTER, "block 0: raw length 321 is no multiple"},
	{AT_BLOCK(0, raw_len), 336, -EBADMSG, FOOTER,
		"block 0: segments cover 320 of its 336 bytes"},
	{AT_BLOCK(0, stored_off), 0, -EBADMSG, FOOTER, "block 0: offset 0 is before the end"},
	{AT_BLOCK(0, stored_off), 65, -EBADMSG, FOOTER, "block 0: offset 65 is not aligned to 64"},
	{AT_BLOCK(1, stored_off), 64, -EBADMSG, FOOTER, "block 1: offset 64 is before the end"},
	{AT_BLOCK(2, stored_off), 4096 - 64, -EBADMSG, FOOTER,
		"block 2: offset 4032 is not aligned to 4096"},
	{AT_BLOCK(2, stored_off), 8192, -EBADMSG, FOOTER,
		"block 2: offset 8192 and length 96 reach"},
	{AT_BLOCK(1, stored_off), UINT64_MAX - 63, -EBADMSG, FOOTER, "reach beyond the footer"},
	{AT_BLOCK(0, stored_len), 0, -EBADMSG, FOOTER, "block 0: stored length 0 is impossible"},
	{AT_BLOCK(0, stored_len), 321, -EBADMSG, FOOTER,
		"block 0: stored length 321 is impossible"},
	{AT_BLOCK(2, stored_len), 95, -EBADMSG, FOOTER, "block 2: stored length 95 is impossible"},
	{AT_BLOCK(2, zero), 1, -EBADMSG, FOOTER, "block 2: reserved"},
	{AT_SEGMENT(3, series_idx), 1, -EBADMSG, FOOTER, "segment 3: it is of series 1"},
	{AT_SEGMENT(3, block_idx), 3, -EBADMSG, FOOTER, "segment 3: block 3 of 3"},
	{AT_SEGMENT(3, block_idx), 2, -EBADMSG, FOOTER, "segment 3: block 2 holds another schema"},
	{AT_SEGMENT(3, block_idx), 0, -EBADMSG, FOOTER, "of block 0, where"},
	{AT_SEGMENT(3, raw_off), 16, -EBADMSG, FOOTER, "segment 3: bytes 16 to 176 are not inside"},
	{AT_SEGMENT(3, raw_off), UINT32_MAX, -EBADMSG, FOOTER, "segment 3: bytes 4294967295 to"},
	{AT_SEGMENT(2, raw_off), 8, -EBADMSG, FOOTER, "segment 2: offset 8 is no multiple"},
	{AT_SEGMENT(2, raw_off), 16, -EBADMSG, FOOTER, "segment 2: begins at byte 16 of block 0"},
	{AT_SEGMENT(3, raw_len), 0, -EBADMSG, FOOTER, "segment 3: bytes 0 to 0 are not inside"},
	{AT_SEGMENT(3, raw_len), UINT32_MAX, -EBADMSG, FOOTER, "segment 3: bytes 0 to 4294967295"},
	{AT_SEGMENT(3, raw_len), 144, -EBADMSG, FOOTER,
		"segment 3: 10 records with a stride of 16"},
	{AT_SEGMENT(3, record_cnt), 0, -EBADMSG, FOOTER, "segment 3: no records"},
	{AT_SEGMENT(3, record_cnt), 11, -EBADMSG, FOOTER, "segment 3: 11 records"},
	{AT_SEGMENT(3, zero), 1, -EBADMSG, FOOTER, "segment 3: reserved"},
	{AT_SEGMENT(3, ordinal), 11, -EBADMSG, FOOTER, "segment 3: first record has ordinal 11"},
	{AT_SEGMENT(2, ordinal), 1, -EBADMSG, FOOTER, "segment 2: first record has ordinal 1"},
	{AT_SEGMENT(2, first_key), 0, -EBADMSG, FOOTER, "segment 2: keys 0 to"},
	{AT_SEGMENT(2, first_key), UINT64_MAX, -EBADMSG, FOOTER, "segment 2: keys -1 to"},
	{AT_SEGMENT(3, first_key), KEY0, -EBADMSG, FOOTER, "segment 3: keys"},
	{AT_SEGMENT(3, last_key), KEY0, -EBADMSG, FOOTER, "segment 3: keys"},
	{AT_ID(0), 0x7b7b7b7b7b7b7b7b, -EBADMSG, FOOTER,
		"superseded 1: the id is zero, or not behind"},
};
#define DAMAGE_CNT ((int)(sizeof(damages) / sizeof(damages[0])))

static uint64_t damage_off(const struct image *image, int idx)
{
	switch (damages[idx].where) {
	case AT_FILE:
		return damages[idx].off;
	case AT_TRAILER:
		return image->len - 64 + damages[idx].off;
	case AT_FOOTER:
		return image_footer_off(image) + damages[idx].off;
	default:
		break;
	}
	if (damages[idx].where >= AT_SECTION)
		return image_section(image, (uint32_t)damages[idx].where - AT_SECTION) +
		       damages[idx].off;
	return image_entry(image, (uint32_t)damages[idx].where, damages[idx].idx) +
	       damages[idx].off;
}

static void damage_check(int idx)
{
	struct image image = small_image();
	struct stoup_vol_fault fault = {0};
	uint64_t off = damage_off(&image, idx), footer = image_footer_off(&image);
	size_t len = damages[idx].len < 8 ? damages[idx].len : 8;
	int rc;

	image_put(image.bytes + off, len, damages[idx].value);
	image_reseal(&image);
	rc = image_verify(image.bytes, image.len, &fault);
	if (rc != damages[idx].code || !strstr(fault.what, damages[idx].what))
		ck_abort_msg("damage %d (%s): %d, \"%s\"", idx, damages[idx].what, rc, fault.what);
	ck_assert_int_eq(fault.code, damages[idx].code);
	ck_assert_uint_eq(fault.region, damages[idx].region);
	if (fault.region == FOOTER) {
		ck_assert_uint_ge(fault.file_off, footer);
		ck_assert_uint_lt(fault.file_off, image.len - 64);
	} else {
		ck_assert_uint_le(fault.file_off, off);
		ck_assert_uint_ge(fault.file_off + 8, off);
	}
	image_free(&image);
}

/* One test for the whole table: a process for each row would take minutes under a sanitizer. */
START_TEST(each_rule_of_the_format_is_checked_behind_right_checksums)
{
	for (int i = 0; i < DAMAGE_CNT; i++)
		damage_check(i);
}
END_TEST

START_TEST(an_id_that_is_zero_or_the_volume_s_own_is_refused)
{
	static const uint8_t zeros[16];
	struct image image = small_image();
	struct stoup_vol_fault fault;
	uint8_t *id = image.bytes + image_entry(&image, STOUP_VOL_SECTION_SUPERSEDED, 0);

	memcpy(id, zeros, 16);
	image_reseal(&image);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), -EBADMSG);
	memcpy(id, head.id, 16);
	image_reseal(&image);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), -EBADMSG);
	ck_assert_str_eq(fault.what, "superseded 0: the volume supersedes itself");
	memset(id, 'b', 16);
	memset(image.bytes + 16, 0, 16);
	image_reseal(&image);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), -EBADMSG);
	ck_assert_uint_eq(fault.region, STOUP_VOL_REGION_HEADER);
	image_free(&image);
}
END_TEST

/* ---- damage that checksums find -------------------------------------------------------------- */

/* Where a byte of the small volume belongs. */
static uint32_t region_of(const struct stoup_vol_index *index, uint64_t off)
{
	if (off < 64)
		return STOUP_VOL_REGION_HEADER;
	if (off >= index->file_len - 64)
		return STOUP_VOL_REGION_TRAILER;
	if (off >= index->footer_off)
		return STOUP_VOL_REGION_FOOTER;
	for (uint32_t i = 0; i < index->block_cnt; i++) {
		if (off >= index->blocks[i].stored_off &&
			off - index->blocks[i].stored_off < index->blocks[i].stored_len)
			return STOUP_VOL_REGION_BLOCK;
	}
	return STOUP_VOL_REGION_PADDING;
}

START_TEST(a_flip_of_any_byte_is_reported_in_its_region)
{
	struct image image = small_image();
	struct stoup_vol_index *index = must_open(&image);
	uint64_t seen[STOUP_VOL_REGION_TRAILER + 1] = {0};

	for (uint64_t off = 0; off < image.len; off++) {
		uint8_t flip = (uint8_t)(1u << (off + (uint64_t)_i) % 8);
		struct stoup_vol_fault fault = {0};
		uint32_t region = region_of(index, off);
		int rc;

		image.bytes[off] ^= flip;
		rc = image_verify(image.bytes, image.len, &fault);
		image.bytes[off] ^= flip;
		if (rc != -EBADMSG || fault.region != region)
			ck_abort_msg("byte %llu: %d, %s, \"%s\"", (unsigned long long)off, rc,
				stoup_vol_region_name(fault.region), fault.what);
		if (region == STOUP_VOL_REGION_PADDING)
			ck_assert_uint_eq(fault.file_off, off);
		if (region == STOUP_VOL_REGION_BLOCK)
			ck_assert_uint_eq(
				fault.file_off, index->blocks[fault.block_idx].stored_off);
		seen[region]++;
	}
	for (uint32_t i = STOUP_VOL_REGION_HEADER; i <= STOUP_VOL_REGION_TRAILER; i++)
		ck_assert_uint_gt(seen[i], 0);
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

START_TEST(a_volume_cut_or_extended_at_any_length_is_refused)
{
	struct image image = small_image();
	struct stoup_vol_fault fault;
	size_t whole = image.len;

	for (size_t len = 0; len < whole; len++) {
		int rc = image_verify(image.bytes, len, &fault);

		ck_assert_int_eq(rc, len < 128 ? -ENODATA : -EBADMSG);
		ck_assert_int_ne(fault.what[0], 0);
	}
	ck_assert_int_eq(image_reserve(&image, whole + 128), 0);
	for (size_t len = whole + 1; len <= whole + 128; len++)
		ck_assert_int_eq(image_verify(image.bytes, len, &fault), -EBADMSG);
	/* The trailer once more at the new end: right but for the file's length. */
	memcpy(image.bytes + image.len - 64, image.bytes + whole - 64, 64);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.what, "but was written with"));
	image_free(&image);
}
END_TEST

START_TEST(faults_are_optional)
{
	struct image image = small_image();
	struct stoup_vol_header header;
	struct stoup_vol_index *index = must_open(&image);
	uint8_t raw[320], stored[320] = {0};
	uint64_t off, len;

	ck_assert_int_eq(stoup_vol_block_check(index, 0, stored, NULL), -EBADMSG);
	ck_assert_int_eq(stoup_vol_block_decode(index, 0, stored, raw, NULL, NULL), -EBADMSG);
	ck_assert_int_eq(stoup_vol_padding_check(64, "\1", 1, NULL), -EBADMSG);
	image.bytes[0] ^= 1;
	image.bytes[image.len - 1] ^= 1;
	ck_assert_int_eq(stoup_vol_header_parse(image.bytes, &header, NULL), -EBADMSG);
	ck_assert_int_eq(
		stoup_vol_trailer_parse(image.bytes + image.len - 64, image.len, &off, &len, NULL),
		-EBADMSG);
	stoup_vol_index_destroy(index);
	stoup_vol_index_destroy(NULL);
	image_free(&image);
}
END_TEST

/* ---- versions -------------------------------------------------------------------------------- */

START_TEST(a_flip_in_the_version_is_damage_and_not_another_version)
{
	struct image image = small_image();
	struct stoup_vol_fault fault;

	image.bytes[8] ^= 2;
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.what, "checksum"));
	image_reseal(&image);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), -ENOTSUP);
	ck_assert_str_eq(fault.what, "format version 3.1, but this program reads version 1: use a "
				     "program that reads 3.x");
	ck_assert_uint_eq(fault.file_off, 8);
	image_free(&image);
}
END_TEST

/* A volume of minor 7: entries of blocks are 16 bytes longer, a section 8 and a vendor's section
 * are there, reserved bytes and unknown compatible flags are used. */
static struct image image_of_a_later_minor(void)
{
	struct image old = small_image(), new = {NULL, 0};
	uint64_t footer = image_footer_off(&old), at = footer + 16 + 9 * 32, end;

	ck_assert_int_eq(image_reserve(&new, old.len + 4096), 0);
	memcpy(new.bytes, old.bytes, footer);
	image_put(new.bytes + 10, 2, 7);
	image_put(new.bytes + 12, 4, 0x00008001);
	image_put(new.bytes + footer, 4, 9);
	image_put(new.bytes + footer + 4, 4, 32);
	image_put(new.bytes + footer + 8, 8, 0x1234);
	for (uint32_t kind = 1; kind <= 9; kind++) {
		uint8_t *entry = new.bytes + footer + 16 + (kind - 1) * 32;
		const uint8_t *from = old.bytes + image_section(&old, kind <= 7 ? kind : 7);
		uint64_t cnt = image_get(from + 24, 8), len = image_get(from + 4, 4);
		uint64_t stride = kind == STOUP_VOL_SECTION_BLOCKS ? len + 16 : len;

		image_put(entry, 4, kind < 9 ? kind : 0x80000001);
		image_put(entry + 4, 4, stride);
		image_put(entry + 8, 8, at - footer);
		image_put(entry + 16, 8, cnt * stride);
		image_put(entry + 24, 8, cnt);
		for (uint64_t i = 0; i < cnt; i++) {
			memset(new.bytes + at, 0xee, stride);
			memcpy(new.bytes + at,
				old.bytes + image_entry(&old, kind <= 7 ? kind : 7, i), len);
			at += stride;
		}
		at = (at + 7) / 8 * 8;
	}
	end = at;
	new.len = end + 64;
	image_put(new.bytes + end, 8, footer);
	image_put(new.bytes + end + 8, 8, end - footer);
	image_put(new.bytes + end + 24, 8, new.len);
	image_put(new.bytes + end + 40, 8, 0x99);
	memcpy(new.bytes + end + 56, STOUP_VOL_TRAILER_MAGIC, 8);
	image_put(new.bytes + image_entry(&new, STOUP_VOL_SECTION_SEGMENTS, 0) + 20, 4, 5);
	image_put(new.bytes + image_entry(&new, STOUP_VOL_SECTION_SERIES, 2) + 12, 4, 0x80);
	image_reseal(&new);
	image_free(&old);
	return new;
}

START_TEST(a_later_minor_version_is_read_and_what_is_unknown_skipped)
{
	struct image image = image_of_a_later_minor();
	struct stoup_vol_fault fault;
	struct stoup_vol_index *index = must_open(&image);

	ck_assert_uint_eq(index->header.minor, 7);
	ck_assert_uint_eq(index->block_cnt, 3);
	ck_assert_uint_eq(index->blocks[2].stored_off, 4096);
	ck_assert_str_eq(index->series[2].name, "B/X");
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), 0);
	/* The same under minor 0 is damage. */
	image_put(image.bytes + 10, 2, 0);
	image_reseal(&image);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), -EBADMSG);
	stoup_vol_index_destroy(index);
	image_free(&image);
}
END_TEST

START_TEST(an_unknown_codec_or_transform_refuses_its_block_only)
{
	for (int member = 20; member <= 24; member += 4) {
		struct image image = small_image();
		struct stoup_vol_fault fault = {0};
		struct stoup_vol_index *index;
		uint8_t *raw;

		image_put(image.bytes + image_entry(&image, STOUP_VOL_SECTION_BLOCKS, 1) + member,
			4, 77);
		image_reseal(&image);
		index = must_open(&image);
		ck_assert_int_eq(image_block(image.bytes, index, 0, &raw, &fault), 0);
		free(raw);
		ck_assert_int_eq(image_block(image.bytes, index, 1, &raw, &fault), -ENOTSUP);
		ck_assert_ptr_nonnull(
			strstr(fault.what, member == 20 ? "codec 77" : "transform 77"));
		ck_assert_uint_eq(fault.block_idx, 1);
		ck_assert_uint_eq(fault.region, STOUP_VOL_REGION_BLOCK);
		ck_assert_uint_eq(fault.file_off, index->blocks[1].stored_off);
		ck_assert_int_eq(stoup_vol_block_check(index, 1,
					 image.bytes + index->blocks[1].stored_off, &fault),
			0);
		stoup_vol_index_destroy(index);
		image_free(&image);
	}
}
END_TEST

START_TEST(a_block_with_right_hash_that_does_not_decode_is_a_fault)
{
	struct image image = small_image();
	struct stoup_vol_fault fault = {0};
	uint64_t entry = image_entry(&image, STOUP_VOL_SECTION_BLOCKS, 0);
	uint64_t off = image_get(image.bytes + entry + 8, 8);
	uint64_t len = image_get(image.bytes + entry + 16, 4);

	image_put(image.bytes + entry + 40, 8, 1);
	image_reseal(&image);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.what, "block 0 decodes to bytes with hash"));
	memset(image.bytes + off, 0xff, len);
	image_put(image.bytes + entry + 32, 8, stoup_vol_hash(image.bytes + off, len));
	image_reseal(&image);
	ck_assert_int_eq(image_verify(image.bytes, image.len, &fault), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(fault.what, "do not decode to 320 bytes under codec 1"));
	image_free(&image);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, each_rule_of_the_format_is_checked_behind_right_checksums);
	tcase_add_test(tests, an_id_that_is_zero_or_the_volume_s_own_is_refused);
	tcase_add_loop_test(tests, a_flip_of_any_byte_is_reported_in_its_region, 0, 2);
	tcase_add_test(tests, a_volume_cut_or_extended_at_any_length_is_refused);
	tcase_add_test(tests, faults_are_optional);
	tcase_add_test(tests, a_flip_in_the_version_is_damage_and_not_another_version);
	tcase_add_test(tests, a_later_minor_version_is_read_and_what_is_unknown_skipped);
	tcase_add_test(tests, an_unknown_codec_or_transform_refuses_its_block_only);
	tcase_add_test(tests, a_block_with_right_hash_that_does_not_decode_is_a_fault);
}

int main(void)
{
	Suite *suite = suite_create("volume damage");
	TCase *tests = tcase_create("volume damage");
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
