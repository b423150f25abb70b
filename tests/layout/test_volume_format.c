/* SPDX-License-Identifier: Apache-2.0 */
/* test_volume_format.c - docs/volume-format.md against the code: each structure's table, the
 * sections, codecs, limits and magics, and the worked example against the file that it shows.
 *
 *      "### `NAME`, LEN bytes"  + table  <--compare-->  X lists of codec/volume_layout.h
 *      hex dump                          <--compare-->  tests/golden/tiny.stoup
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codec/block.h"
#include "codec/fields.h"
#include "codec/volume.h"
#include "codec/volume_layout.h"
#include "consumer/direct.h"
#include "shm/message.h"

static char *doc;

/* A whole file of the source tree with a NUL behind it. */
static char *source_read(const char *name, size_t *ret_len)
{
	const char *source = getenv("STOUP_SOURCE_DIR");
	char path[4096] = __FILE__, *bytes, *cut = strstr(path, "tests/layout/");
	FILE *file;
	long len;

	if (source)
		snprintf(path, sizeof(path), "%s/%s", source, name);
	else if (cut)
		strcpy(cut, name);
	file = fopen(path, "rb");
	if (!file)
		ck_abort_msg("cannot open %s", path);
	fseek(file, 0, SEEK_END);
	len = ftell(file);
	rewind(file);
	bytes = calloc(1, (size_t)len + 1);
	ck_assert_uint_eq(fread(bytes, 1, (size_t)len, file), (size_t)len);
	fclose(file);
	*ret_len = (size_t)len;
	return bytes;
}

static void doc_setup(void)
{
	size_t len;

	doc = source_read("docs/volume-format.md", &len);
}

static void doc_teardown(void)
{
	free(doc);
}

/* The first row of the table behind `heading` (rows begin with '|'; two lines of head). */
static const char *table_rows(const char *heading)
{
	const char *at = strstr(doc, heading);

	if (!at)
		ck_abort_msg("the document has no \"%s\"", heading);
	at = strstr(at, "\n|");
	ck_assert_ptr_nonnull(at);
	for (int i = 0; i < 2; i++) {
		at = strchr(at + 1, '\n');
		ck_assert_ptr_nonnull(at);
	}
	return at + 1;
}

static const char *row_next(const char *row)
{
	const char *end = strchr(row, '\n');

	return end && end[1] == '|' ? end + 1 : NULL;
}

/* ---- structures ------------------------------------------------------------------------------ */

struct member {
	const char *type, *name;
	size_t off, len;
};

#define MEMBER(type, name, suffix, off, len) {#type, #name, off, len},
#define MEMBERS(name, members, len)                                                                \
	static const struct member name##_members[] = {members(MEMBER){NULL, NULL, 0, 0}};
STOUP_VOL_DISK_ALL(MEMBERS)
MEMBERS(fields, STOUP_FIELDS_DISK_HEAD, STOUP_FIELDS_HEAD_LEN)
MEMBERS(head, STOUP_MESSAGE_HEAD, STOUP_MESSAGE_HEAD_LEN)

#define STRUCTURE(name, members, len) {#name, len, name##_members},
static const struct {
	const char *name;
	size_t len;
	const struct member *members;
} structures[] = {STOUP_VOL_DISK_ALL(STRUCTURE) STRUCTURE(fields, STOUP_FIELDS_DISK_HEAD,
	STOUP_FIELDS_HEAD_LEN) STRUCTURE(head, STOUP_MESSAGE_HEAD, STOUP_MESSAGE_HEAD_LEN)};
#define STRUCTURE_CNT (sizeof(structures) / sizeof(structures[0]))

/* "u32" for "uint32_t": single numbers must be named so at the beginning of their meaning. */
static int type_named(const struct member *member, const char *meaning)
{
	char word[8];
	int is_signed = member->type[0] == 'i';

	if (member->len > 8 || (!strncmp(member->type, "uint8_t", 7) && member->len != 1) ||
		!strcmp(member->name, "zero"))
		return 1;
	snprintf(word, sizeof(word), "%c%zu", is_signed ? 'i' : 'u', member->len * 8);
	return !strncmp(meaning, word, strlen(word));
}

static void structure_check(size_t idx)
{
	const struct member *member = structures[idx].members;
	char heading[128], name[64], meaning[16];
	const char *row;
	size_t off, len, end = 0;

	snprintf(heading, sizeof(heading), "\n### `%s`, %zu bytes\n", structures[idx].name,
		structures[idx].len);
	for (row = table_rows(heading); row; row = row_next(row), member++) {
		if (sscanf(row, "| %zu | %zu | %63s | %15[^\n]", &off, &len, name, meaning) != 4)
			ck_abort_msg("%s: a row is not \"offset, size, name, meaning\": %.60s",
				structures[idx].name, row);
		if (!member->name)
			ck_abort_msg("%s: the code has no %s", structures[idx].name, name);
		if (strcmp(name, member->name) || off != member->off || len != member->len)
			ck_abort_msg("%s: the document says %s at %zu with %zu, the code %s at %zu "
				     "with %zu",
				structures[idx].name, name, off, len, member->name, member->off,
				member->len);
		if (!type_named(member, meaning))
			ck_abort_msg("%s.%s: the type is %s, the document says %s",
				structures[idx].name, name, member->type, meaning);
		ck_assert_uint_eq(off, end);
		end = off + len;
	}
	if (member->name)
		ck_abort_msg("%s: the document has no %s", structures[idx].name, member->name);
	ck_assert_uint_eq(end, structures[idx].len);
}

START_TEST(each_structure_of_the_document_is_the_one_of_the_code)
{
	for (size_t i = 0; i < STRUCTURE_CNT; i++)
		structure_check(i);
}
END_TEST

START_TEST(the_document_has_no_structure_that_the_code_does_not_know)
{
	size_t cnt = 0;

	for (const char *at = doc; (at = strstr(at, "\n### `")); at++)
		cnt++;
	ck_assert_uint_eq(cnt, STRUCTURE_CNT);
}
END_TEST

/* ---- numbers --------------------------------------------------------------------------------- */

START_TEST(the_sections_are_those_of_the_code)
{
#define SECTION(number, name, text, len) {number, #name, len},
	static const struct {
		unsigned kind;
		const char *name;
		unsigned len;
	} sections[] = {STOUP_VOL_SECTIONS(SECTION)};
	const char *row = table_rows("Bytes of the footer that are in no\nsection");
	unsigned kind, len;
	char name[32];

	for (size_t i = 0; i < STOUP_VOL_SECTION_LAST; i++, row = row_next(row)) {
		ck_assert_ptr_nonnull(row);
		ck_assert_int_eq(sscanf(row, "| %u | %31s | %u |", &kind, name, &len), 3);
		ck_assert_uint_eq(kind, sections[i].kind);
		ck_assert_str_eq(name, sections[i].name);
		ck_assert_uint_eq(len, sections[i].len);
	}
	ck_assert_ptr_null(row);
}
END_TEST

static void numbered_names(const char *heading, const char *const *names, unsigned name_cnt)
{
	unsigned number, cnt = 0;
	char name[32];

	for (const char *row = table_rows(heading); row; row = row_next(row), cnt++) {
		ck_assert_uint_lt(cnt, name_cnt);
		ck_assert_int_eq(sscanf(row, "| %u | %31s |", &number, name), 2);
		ck_assert_uint_eq(number, cnt);
		ck_assert_str_eq(name, names[cnt]);
	}
	ck_assert_uint_eq(cnt, name_cnt);
}

START_TEST(the_codecs_and_transforms_are_those_of_the_code)
{
	static const char *const transforms[STOUP_TRANSFORM_LAST + 1] = {
		[STOUP_TRANSFORM_NONE] = "none", [STOUP_TRANSFORM_FIELDS] = "fields"};
	static const char *const modes[STOUP_FIELDS_MODE_LAST + 1] = {
		[STOUP_FIELDS_OFFSET] = "offset",
		[STOUP_FIELDS_STEP] = "step",
		[STOUP_FIELDS_PEAK] = "peak"};
	static const char *const kinds[4] = {[STOUP_FIELDS_PLANE_CONST] = "const",
		[STOUP_FIELDS_PLANE_RAW] = "raw",
		[STOUP_FIELDS_PLANE_PACKED] = "packed",
		[STOUP_FIELDS_PLANE_MORE] = "more"};
	static const char *const codecs[STOUP_CODEC_LAST + 1] = {[STOUP_CODEC_NONE] = "none",
		[STOUP_CODEC_LZ4] = "lz4",
		[STOUP_CODEC_ZSTD] = "zstd"};

	numbered_names("\n| codec |", codecs, STOUP_CODEC_LAST + 1);
	numbered_names("\n| transform |", transforms, STOUP_TRANSFORM_LAST + 1);
	numbered_names("\n| op | name |", modes, STOUP_FIELDS_MODE_LAST + 1);
	numbered_names("\n| kind | name | data", kinds, 4);
}
END_TEST

/* The rows of the parts of a column name the flags that ask for them. */
START_TEST(the_flags_of_an_op_are_those_of_the_code)
{
	static const struct {
		const char *part;
		unsigned flag;
	} parts[] = {{"ref", STOUP_FIELDS_REF}, {"tick", STOUP_FIELDS_TICK},
		{"base", STOUP_FIELDS_BASE}, {"null", STOUP_FIELDS_NULL}};
	const char *row = row_next(table_rows("\n| part | bytes |"));
	char part[32];
	unsigned len, flag, all = 0;

	for (size_t i = 0; i < 4; i++, row = row_next(row)) {
		ck_assert_ptr_nonnull(row);
		ck_assert_int_eq(sscanf(row, "| %31s |", part), 1);
		ck_assert_str_eq(part, parts[i].part);
		if (sscanf(strchr(row, ','), ", if op has %x", &flag) != 1)
			ck_abort_msg("no flag in: %.40s", row);
		ck_assert_uint_eq(flag, parts[i].flag);
		all |= flag;
	}
	ck_assert_uint_eq(all | STOUP_FIELDS_MODE_MASK, STOUP_FIELDS_OP_MASK);
	ck_assert_int_eq(sscanf(table_rows("\n| part | bytes |"), "| op | %u |", &len), 1);
	ck_assert_uint_eq(len, 1);
}
END_TEST

static void must_say(const char *before, unsigned number, const char *after)
{
	char words[256];

	snprintf(words, sizeof(words), "%s%u%s", before, number, after);
	if (!strstr(doc, words))
		ck_abort_msg("the document does not say \"%s\"", words);
}

START_TEST(the_limits_are_those_of_the_code)
{
	must_say("entries of the section table, at most ", STOUP_VOL_SECTION_CAP, "");
	must_say("bytes of one entry of this section, 1 to ", STOUP_VOL_ENTRY_LEN_CAP, "");
	must_say("record layouts, at most ", STOUP_VOL_SCHEMA_CAP, "");
	must_say("string: 1 to ", STOUP_VOL_SCHEMA_NAME_CAP - 1, " of the characters");
	must_say("bytes of one record, 1 to ", STOUP_VOL_RECORD_LEN_CAP, "");
	must_say("u32, fields, 1 to ", STOUP_VOL_FIELD_CAP, "");
	must_say("u32, string of 1 to ", STOUP_VOL_NAME_CAP - 1, " bytes");
	must_say("bytes when decoded, 1 to ", STOUP_BLOCK_RAW_CAP, "");
	must_say("stored_off is a multiple of ", STOUP_VOL_BLOCK_ALIGN_RAW, " for codec none");
	must_say("so that records can be mapped; else of ", STOUP_VOL_BLOCK_ALIGN, "");
	must_say("a multiple of 8, from 16 to 2^", 30, "");
	ck_assert_uint_eq(STOUP_VOL_FOOTER_CAP, 1u << 30);
	must_say("u16, bytes of one record, 1 to ", STOUP_FIELDS_STRIDE_CAP, ": the sum");
	must_say("u16, columns, 1 to ", STOUP_FIELDS_COLUMN_CAP, "");
	must_say("each tile but the last, 1 to ", STOUP_FIELDS_TILE_CNT_CAP, "");
	must_say("tile_cnt * stride is at most ", STOUP_FIELDS_TILE_LEN_CAP, "");
	must_say("# The stoup volume format, version 1.", STOUP_VOL_MINOR, "");
	must_say("# The stoup volume format, version ", STOUP_VOL_MAJOR, ".");
	must_say("u16, version: ", STOUP_VOL_MAJOR, "");
	must_say("u16, version: ", STOUP_VOL_MINOR, "");
}
END_TEST

START_TEST(the_magics_are_those_of_the_code)
{
	static const char *const magics[] = {STOUP_VOL_MAGIC, STOUP_VOL_TRAILER_MAGIC};

	for (size_t i = 0; i < 2; i++) {
		char hex[32];
		int at = 0;

		ck_assert_uint_eq(strlen(magics[i]), STOUP_VOL_MAGIC_LEN);
		for (size_t k = 0; k < STOUP_VOL_MAGIC_LEN; k++)
			at += snprintf(hex + at, sizeof(hex) - (size_t)at, "%s%02X", k ? " " : "`",
				(unsigned char)magics[i][k]);
		if (!strstr(doc, hex))
			ck_abort_msg("the document does not show %s", hex);
	}
}
END_TEST

/* ---- the example ----------------------------------------------------------------------------- */

/* One line of the dump: its 16 (or fewer) bytes at its offset. Returns the offset behind it. */
static size_t dump_line(const char *line, const char *bytes, size_t len, size_t prev_end, int gap)
{
	size_t off, at;
	unsigned byte;
	int used;

	ck_assert_int_eq(sscanf(line, "%zx%n", &off, &used), 1);
	for (at = prev_end; gap && at < off; at++)
		ck_assert_int_eq(bytes[at], bytes[at - 16]);
	ck_assert_uint_eq(at, off);
	for (line += used; sscanf(line, " %2x%n", &byte, &used) == 1; at++, line += used) {
		ck_assert_uint_lt(at, len);
		if ((unsigned char)bytes[at] != byte)
			ck_abort_msg("the dump has %02x at %zx, the file %02x", byte, at,
				(unsigned char)bytes[at]);
	}
	return at;
}

START_TEST(the_dump_of_the_example_is_the_golden_file)
{
	const char *line = strstr(doc, "\n00000000  89 53");
	size_t len, end = 0;
	char *bytes = source_read("tests/golden/tiny.stoup", &len);
	int gap = 0;

	ck_assert_ptr_nonnull(line);
	for (line++; end < len; line = strchr(line, '\n') + 1) {
		if (line[0] == '*') {
			gap = 1;
			continue;
		}
		end = dump_line(line, bytes, len, end, gap);
		gap = 0;
	}
	ck_assert_uint_eq(end, len);
	free(bytes);
}
END_TEST

/* libstoup looks at the head of a file that it maps, and knows nothing of codec. */
START_TEST(direct_mode_reads_the_head_that_volumes_have)
{
	ck_assert_uint_eq(STOUP_DIRECT_MAGIC_LEN, STOUP_VOL_MAGIC_LEN);
	ck_assert_mem_eq(STOUP_DIRECT_MAGIC, STOUP_VOL_MAGIC, STOUP_VOL_MAGIC_LEN);
	ck_assert_uint_eq(STOUP_DIRECT_ID_OFF, offsetof(struct stoup_vol_disk_header, id));
	ck_assert_uint_eq(STOUP_DIRECT_HEAD_LEN, sizeof(struct stoup_vol_disk_header));
	ck_assert_uint_eq(STOUP_CATALOG_CODEC_NONE, STOUP_CODEC_NONE);
	ck_assert_uint_eq(STOUP_CATALOG_TRANSFORM_NONE, STOUP_TRANSFORM_NONE);
	ck_assert_uint_eq(STOUP_CODEC_LZ4, 1); /* the names in its error text */
	ck_assert_uint_eq(STOUP_CODEC_ZSTD, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("volume format");
	TCase *tests = tcase_create("volume format");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_unchecked_fixture(tests, doc_setup, doc_teardown);
	suite_add_tcase(suite, tests);
	tcase_add_test(tests, each_structure_of_the_document_is_the_one_of_the_code);
	tcase_add_test(tests, the_document_has_no_structure_that_the_code_does_not_know);
	tcase_add_test(tests, the_sections_are_those_of_the_code);
	tcase_add_test(tests, the_codecs_and_transforms_are_those_of_the_code);
	tcase_add_test(tests, the_flags_of_an_op_are_those_of_the_code);
	tcase_add_test(tests, the_limits_are_those_of_the_code);
	tcase_add_test(tests, the_magics_are_those_of_the_code);
	tcase_add_test(tests, the_dump_of_the_example_is_the_golden_file);
	tcase_add_test(tests, direct_mode_reads_the_head_that_volumes_have);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
