/* SPDX-License-Identifier: Apache-2.0 */
/* test_dbn_forms.c - DBN as people have it: fragments, files one after the other, filters, and each dirty
 * form with the text that the user reads. */
#include "producer/ingest_dbn.h"
#include "tests/unit/dbn_file.h"
#include "tests/unit/dbn_sink.h"
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <zstd.h>

#define DAY1   1609160400000000000u /* 2020-12-28 13:00 UTC */
#define DAY_NS 86400000000000u

/* The whole text, in which FILE stands for the path. */
static void assert_text(const char *got, const char *want)
{
	char text[512], *at;
	snprintf(text, sizeof(text), "%s", got);
	while ((at = strstr(text, file_path)) != NULL) {
		memcpy(at, "FILE", 4);
		memmove(at + 4, at + strlen(file_path), strlen(at + strlen(file_path)) + 1);
	}
	ck_assert_str_eq(text, want);
}

static void assert_refused(
	struct dbn_bytes *dbn, const struct stoup_dbn_options *options, int code, const char *text)
{
	struct stoup_error err = {0};
	ck_assert_int_eq(ingest(dbn, options, &err), code);
	ck_assert_int_eq(err.code, code);
	assert_text(err.text, text);
}

static uint8_t *add_mbo(struct dbn_bytes *dbn, uint32_t instrument_id, uint64_t key)
{
	uint8_t *at = dbn_record(dbn, 0xa0, 56, instrument_id, key - 1000);
	dbn_int(at + 40, 8, key);
	return at;
}

static uint8_t *add_len(
	struct dbn_bytes *dbn, unsigned rtype, size_t len, size_t key_off, uint64_t key)
{
	uint8_t *at = dbn_record(dbn, rtype, len, 7, DAY1);
	dbn_int(at + key_off, 8, key);
	return at;
}

/* A symbol mapping record of version 1 (80 bytes) or 2 and 3 (176). */
static void add_symbol(
	struct dbn_bytes *dbn, int version, uint32_t id, uint64_t key, const char *symbol)
{
	size_t len = version == 1 ? 80 : 176;
	uint8_t *at = dbn_record(dbn, 0x16, len, id, key);
	memset(at + 16, 0, len - 16);
	memcpy(at + (version == 1 ? 38 : 89), symbol, strlen(symbol));
}

static void append(struct dbn_bytes *dbn, const struct dbn_bytes *more)
{
	memcpy(dbn_room(dbn, more->len), more->bytes, more->len);
}

/* ---- fragments ------------------------------------------------------------------------------- */

static const struct stoup_dbn_options named = {.dataset = "LIVE"};

/* Types whose length tells the version: {type, offset of the key, lengths by version, schemas}. */
static const struct {
	unsigned rtype, key_off;
	unsigned lens[3];
	const char *names[3];
	const char *told[3]; /* versions that such a record leaves possible */
} telling[] = {
	{0x13, 16, {360, 400, 520}, {"definition-v1", "definition-v2", "definition"},
		{"1", "2", "3"}},
	{0x15, 8, {80, 320, 320}, {"error-v1", "error", "error"}, {"1", "2 or 3", "2 or 3"}},
	{0x16, 8, {80, 176, 176}, {"symbol-mapping-v1", "symbol-mapping", "symbol-mapping"},
		{"1", "2 or 3", "2 or 3"}},
	{0x17, 8, {80, 320, 320}, {"system-v1", "system", "system"}, {"1", "2 or 3", "2 or 3"}},
	{0x18, 16, {64, 64, 80}, {"statistics-v1", "statistics-v1", "statistics"},
		{"1 or 2", "1 or 2", "3"}},
};

START_TEST(the_version_of_a_fragment_shows_in_lengths)
{
	int version = _i % 3, ts_out = _i / 3 % 2 * 8;
	size_t kind = (size_t)_i / 6;
	struct dbn_bytes dbn = {0};
	char want[128], schema[64];
	add_len(&dbn, telling[kind].rtype, telling[kind].lens[version] + (unsigned)ts_out,
		telling[kind].key_off, DAY1);
	ck_assert_int_eq(ingest(&dbn, &named, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 1);
	snprintf(schema, sizeof(schema), "%s%s", telling[kind].names[version],
		ts_out ? ".ts_out" : "");
	ck_assert_str_eq(sink.schemas[0], schema);
	ck_assert_uint_eq(sink.strides[0], telling[kind].lens[version] + (unsigned)ts_out);
	snprintf(want, sizeof(want), "records without metadata, read as DBN version %s\n",
		telling[kind].told[version]);
	ck_assert_msg(strstr(sink.notes, want), "'%s' lacks '%s'", sink.notes, want);
}
END_TEST

START_TEST(a_fragment_of_several_zstd_frames_is_one_stream)
{
	struct dbn_bytes dbn = {0};
	uint8_t packed[4096];
	size_t len = 0;
	for (uint64_t i = 0; i < 8; i++)
		add_mbo(&dbn, 7, DAY1 + i);
	for (size_t i = 0; i < 8; i++)
		len += ZSTD_compress(packed + len, sizeof(packed) - len, dbn.bytes + i * 56, 56, 3);
	write_file(packed, len);
	ck_assert_int_eq(ingest_path(file_path, &named, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 8);
	ck_assert_mem_eq(sink.bytes, dbn.bytes, dbn.len);
	ck_assert_str_eq(sink.names[0], "LIVE/7/mbo");
	assert_text(sink.notes,
		"FILE: records without metadata, read as DBN version 1, 2 or 3, in which "
		"they are the same\n"
		"FILE: 8 records of instruments without a symbol on their day (the first: "
		"7) went to series named by the instrument's number\n");
	dbn_free(&dbn);
}
END_TEST

START_TEST(symbols_of_a_fragment_come_from_its_mapping_records_and_change_with_them)
{
	int version = _i;
	struct dbn_bytes dbn = {0};
	add_mbo(&dbn, 7, DAY1);
	add_symbol(&dbn, version, 7, DAY1 + 1, "OLD");
	add_mbo(&dbn, 7, DAY1 + 2);
	add_symbol(&dbn, version, 7, DAY1 + 3, "NEW");
	add_mbo(&dbn, 7, DAY1 + 4);
	ck_assert_int_eq(ingest(&dbn, &named, NULL), 0);
	const char *want[] = {"LIVE/7/mbo", "LIVE/OLD/symbol-mapping", "LIVE/OLD/mbo",
		"LIVE/NEW/symbol-mapping", "LIVE/NEW/mbo"};
	ck_assert_uint_eq(sink.put_cnt, 5);
	for (size_t i = 0; i < 5; i++) {
		size_t len = strlen(want[i]);
		ck_assert_msg(strncmp(sink.names[sink.puts[i].series_idx], want[i], len) == 0,
			"record %zu is in %s", i, sink.names[sink.puts[i].series_idx]);
	}
}
END_TEST

START_TEST(a_fragment_needs_a_name)
{
	struct stoup_dbn_options series = {.series = "MINE/X/mbo"};
	struct dbn_bytes dbn = {0};
	add_mbo(&dbn, 7, DAY1);
	assert_refused(&dbn, NULL, -EINVAL,
		"FILE: a fragment, records without the metadata that name dataset and symbols: say --dataset "
		"NAME (series are then named by symbol mapping records, else by the instrument's number), or "
		"--series NAME");
	dbn = (struct dbn_bytes){0};
	add_mbo(&dbn, 7, DAY1);
	ck_assert_int_eq(ingest(&dbn, &series, NULL), 0);
	ck_assert_str_eq(sink.names[0], "MINE/X/mbo");
}
END_TEST

START_TEST(lengths_of_two_versions_in_one_fragment_are_refused)
{
	struct dbn_bytes dbn = {0};
	add_len(&dbn, 0x13, 360, 16, DAY1);
	add_len(&dbn, 0x18, 80, 16, DAY1 + 1);
	assert_refused(&dbn, &named, -EBADMSG,
		"FILE: the record at offset 360: is 80 bytes long, a statistics record of DBN version 3, but "
		"those before it are of version 1");
	dbn = (struct dbn_bytes){0};
	add_len(&dbn, 0x13, 400, 16, DAY1);
	add_len(&dbn, 0x13, 520, 16, DAY1 + 1);
	assert_refused(&dbn, &named, -EBADMSG,
		"FILE: the record at offset 400 is 520 bytes long, but a definition-v2 record has 400: the "
		"file is damaged");
	dbn = (struct dbn_bytes){0};
	add_mbo(&dbn, 7, DAY1);
	add_len(&dbn, 0x12, 48, 16, DAY1 + 1);
	assert_refused(&dbn, &named, -EBADMSG,
		"FILE: the record at offset 56: is 48 bytes long, a status record with ts_out, unlike those "
		"before it: the file is damaged");
}
END_TEST

START_TEST(a_said_version_must_be_that_of_the_records)
{
	struct stoup_dbn_options options = {.dataset = "LIVE", .version = 3};
	struct dbn_bytes dbn = {0};
	add_mbo(&dbn, 7, DAY1);
	add_len(&dbn, 0x17, 80, 8, DAY1 + 1);
	assert_refused(&dbn, &options, -EBADMSG,
		"FILE: the record at offset 56: is 80 bytes long, a system-v1 record of DBN version 1, but "
		"--dbn-version says version 3");
	dbn = (struct dbn_bytes){0};
	add_len(&dbn, 0x17, 320, 8, DAY1);
	sink_reset();
	ck_assert_int_eq(ingest(&dbn, &options, NULL), 0);
	ck_assert_ptr_nonnull(strstr(sink.notes, "read as DBN version 3\n"));
	dbn_simple(&dbn, 2, 0);
	assert_refused(&dbn, &options, -EINVAL,
		"FILE says itself that it is DBN version 2: --dbn-version 3 is for records without metadata, "
		"leave it out");
	dbn_simple(&dbn, 2, 0);
	assert_refused(&dbn, &named, -EINVAL,
		"FILE says itself that its dataset is TEST.SET: --dataset LIVE is for records without "
		"metadata, leave it out");
}
END_TEST

START_TEST(a_length_that_no_version_has_is_refused)
{
	struct dbn_bytes dbn = {0};
	add_mbo(&dbn, 7, DAY1);
	add_len(&dbn, 0x13, 364, 16, DAY1 + 1);
	assert_refused(&dbn, &named, -EBADMSG,
		"FILE: the record at offset 56: is 364 bytes long, which records of type 0x13 are in no "
		"version of DBN: the file is damaged");
}
END_TEST

/* ---- one after the other --------------------------------------------------------------------- */

START_TEST(dbn_files_one_after_the_other_are_each_read_by_their_own_metadata)
{
	struct dbn_bytes dbn, second;
	dbn_simple(&dbn, 1, 0);
	add_mbo(&dbn, 5482, DAY1);
	dbn_begin(&second, 3, 4, 1, 0, 1);
	dbn_symbol_tables(&second, "NQH1");
	dbn_mapping(&second, "NQH1");
	dbn_interval(&second, 20201228, 20201229, "5482");
	dbn_end_meta(&second);
	dbn_int(dbn_record(&second, 0x00, 56, 5482, DAY1) + 32, 8, DAY1 + 5);
	append(&dbn, &second);
	dbn_free(&second);
	dbn_simple(&second, 2,
		9); /* without records, and shorter than a record that begins with "DBN" */
	append(&dbn, &second);
	dbn_free(&second);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 2);
	ck_assert_str_eq(sink.names[0], "TEST.SET/ESH1/mbo");
	ck_assert_str_eq(sink.names[1], "TEST.SET/NQH1/trades.ts_out");
	assert_text(sink.notes, "FILE: holds no records to import\n"
				"FILE: 3 DBN files one after the other, all imported\n");
}
END_TEST

START_TEST(a_second_file_that_is_damaged_is_refused_with_where_it_begins)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	add_mbo(&dbn, 5482, DAY1);
	ck_assert_uint_eq(dbn.len, 262);
	memcpy(dbn_room(&dbn, 20), "DBN\x05\0\1\0\0", 8);
	assert_refused(&dbn, NULL, -EPROTONOSUPPORT,
		"the DBN file that begins at offset 262 of the stream: FILE: DBN version 5: this stoup reads "
		"versions 1 to 3");
}
END_TEST

/* ---- filters --------------------------------------------------------------------------------- */

START_TEST(symbols_that_are_not_asked_for_make_no_series)
{
	const struct stoup_intake filter = {.symbols = "ES*,77"};
	struct stoup_dbn_options options = {.filter = &filter};
	struct dbn_bytes dbn;
	dbn_begin(&dbn, 3, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, "ESH1");
	dbn_mapping(&dbn, "ESH1");
	dbn_interval(&dbn, 20201228, 20201229, "1");
	dbn_mapping(&dbn, "NQH1");
	dbn_interval(&dbn, 20201228, 20201229, "2");
	dbn_mapping(&dbn, "ES.c.0");
	dbn_interval(&dbn, 20201228, 20201229, "1");
	dbn_end_meta(&dbn);
	for (uint64_t i = 0; i < 100; i++) {
		add_mbo(&dbn, 1, DAY1 + i);
		add_mbo(&dbn, 2, DAY1 + i);
		add_mbo(&dbn, 77, DAY1 + i);
		add_mbo(&dbn, 78, DAY1 + i);
	}
	ck_assert_int_eq(ingest(&dbn, &options, NULL), 0);
	ck_assert_uint_eq(sink.series_cnt, 3);
	ck_assert_str_eq(sink.names[0], "TEST.SET/ESH1/mbo");
	ck_assert_str_eq(sink.names[1], "TEST.SET/ES.c.0/mbo");
	ck_assert_str_eq(sink.names[2], "TEST.SET/77/mbo");
	ck_assert_uint_eq(sink.put_cnt, 300);
	ck_assert_uint_eq(sink.series_calls, 3);
	assert_text(sink.notes,
		"FILE: 100 records of instruments without a symbol on their day (the "
		"first: 77) went to series named by the instrument's number\n"
		"FILE: 200 of 400 records left out by --symbols, --from or --to\n");
}
END_TEST

START_TEST(a_named_series_takes_the_symbols_that_are_asked_for)
{
	const struct stoup_intake filter = {.symbols = "ES??"};
	struct stoup_dbn_options options = {.filter = &filter, .series = "A/B/mbo"};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0);
	add_mbo(&dbn, 5482, DAY1);
	add_mbo(&dbn, 5483, DAY1);
	ck_assert_int_eq(ingest(&dbn, &options, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 1);
	ck_assert_str_eq(sink.names[0], "A/B/mbo");
}
END_TEST

START_TEST(keys_outside_the_range_are_left_out_but_their_mappings_are_learned)
{
	const struct stoup_intake filter = {
		.from_ns = (int64_t)DAY1 + 2, .to_ns = (int64_t)DAY1 + 4};
	struct stoup_dbn_options options = {.filter = &filter, .dataset = "LIVE"};
	struct dbn_bytes dbn = {0};
	add_symbol(&dbn, 2, 7, DAY1, "ESH1");
	for (uint64_t i = 0; i < 6; i++)
		add_mbo(&dbn, 7, DAY1 + i);
	ck_assert_int_eq(ingest(&dbn, &options, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 2);
	ck_assert_int_eq(sink.puts[0].key, (int64_t)DAY1 + 2);
	ck_assert_int_eq(sink.puts[1].key, (int64_t)DAY1 + 3);
	ck_assert_uint_eq(sink.series_cnt, 1);
	ck_assert_str_eq(sink.names[0], "LIVE/ESH1/mbo");
	ck_assert_ptr_nonnull(strstr(sink.notes, "5 of 7 records left out"));
}
END_TEST

/* ---- dirty forms ----------------------------------------------------------------------------- */

START_TEST(what_is_cut_says_where_and_what_is_missing)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	dbn.len = 5;
	assert_refused(
		&dbn, NULL, -EBADMSG, "FILE: ends at offset 5 inside the DBN prelude of 8 bytes");
	dbn_simple(&dbn, 1, 0);
	dbn.len = 100;
	assert_refused(&dbn, NULL, -ENODATA,
		"FILE ends at offset 100 inside the metadata, of which 106 bytes are missing: the file is cut "
		"short");
	dbn_simple(&dbn, 1, 0);
	add_mbo(&dbn, 5482, DAY1);
	dbn.len -= 6;
	assert_refused(&dbn, NULL, -ENODATA,
		"FILE: the record at offset 206 is cut short: 6 of its 56 bytes are missing; --allow-partial "
		"imports what is before it");
}
END_TEST

START_TEST(versions_and_lengths_that_can_not_be_are_told)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	dbn.bytes[3] = 0;
	assert_refused(&dbn, NULL, -EPROTONOSUPPORT,
		"FILE: DBN version 0: this stoup reads versions 1 to 3");
	dbn_simple(&dbn, 1, 0);
	dbn.bytes[3] = 4;
	assert_refused(&dbn, NULL, -EPROTONOSUPPORT,
		"FILE: DBN version 4: this stoup reads versions 1 to 3");
	dbn_simple(&dbn, 1, 0);
	dbn_int(dbn.bytes + 4, 4, 99);
	assert_refused(&dbn, NULL, -EBADMSG,
		"FILE: metadata length of 99 bytes at offset 4: the shortest possible is 120");
	dbn_simple(&dbn, 1, 0);
	dbn_int(dbn.bytes + 112, 4, 1000000);
	assert_refused(&dbn, NULL, -EBADMSG,
		"FILE: the metadata row at offset 112 claims 1000000 symbols, but there is room for 4: the "
		"file is damaged");
	dbn_simple(&dbn, 2, 0); /* version 2's tables read with 22 bytes a symbol */
	dbn.bytes[3] = 1;
	assert_refused(&dbn, NULL, -EBADMSG,
		"FILE: the metadata's tables end at offset 150, but what follows them up to offset 353 is no "
		"padding: the file is damaged, or is not of version 1 as it says");
}
END_TEST

START_TEST(mappings_that_contradict_themselves_are_refused)
{
	struct dbn_bytes dbn;
	dbn_begin(&dbn, 3, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, "ESH1");
	dbn_mapping(&dbn, "ESH1");
	dbn_interval(&dbn, 20201229, 20201228, "5482");
	dbn_end_meta(&dbn);
	assert_refused(&dbn, NULL, -EBADMSG,
		"FILE: the mapping of ESH1 has an interval that ends (20201228) before it begins (20201229), "
		"at offset 274: the file is damaged");
	dbn_begin(&dbn, 3, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, "ESH1");
	dbn_mapping(&dbn, "ESH1");
	dbn_interval(&dbn, 20210102, 20210105, "5482");
	dbn_interval(&dbn, 20201228, 20210103, "5483");
	dbn_end_meta(&dbn);
	assert_refused(&dbn, NULL, -EBADMSG,
		"FILE: the mapping of ESH1 has intervals that overlap: 20201228 to 20210103 is instrument "
		"5483, 20210102 to 20210105 is 5482: the file is damaged");
	dbn_begin(&dbn, 3, 0, 0, 1, 0);
	dbn_symbol_tables(&dbn, "5482");
	dbn_mapping(&dbn, "5482");
	dbn_interval(&dbn, 20201228, 20201231, "ESH1");
	dbn_interval(&dbn, 20201229, 20210103, "ESM1");
	dbn_end_meta(&dbn);
	assert_refused(&dbn, NULL, -EBADMSG,
		"FILE: the mapping of instrument 5482 has intervals that overlap: 20201228 to 20201231 is "
		"ESH1, 20201229 to 20210103 is ESM1: the file is damaged");
}
END_TEST

START_TEST(a_parent_may_stand_for_several_instruments_at_once)
{
	struct dbn_bytes dbn;
	dbn_begin(&dbn, 3, 0, 4, 0, 0);
	dbn_symbol_tables(&dbn, "ES.FUT");
	dbn_mapping(&dbn, "ES.FUT");
	dbn_interval(&dbn, 20201228, 20201229, "1");
	dbn_interval(&dbn, 20201228, 20201229, "2");
	dbn_end_meta(&dbn);
	add_mbo(&dbn, 1, DAY1);
	add_mbo(&dbn, 2, DAY1 + 1);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 2);
	ck_assert_uint_eq(sink.series_cnt, 1);
	ck_assert_str_eq(sink.names[0], "TEST.SET/ES.FUT/mbo");
}
END_TEST

START_TEST(intervals_that_touch_or_are_empty_do_not_overlap)
{
	struct dbn_bytes dbn;
	dbn_begin(&dbn, 2, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, "ES.c.0");
	dbn_mapping(&dbn, "ES.c.0");
	dbn_interval(&dbn, 20201228, 20201229, "1");
	dbn_interval(&dbn, 20201228, 20201228, "9");
	dbn_interval(&dbn, 20201229, 20201230, "2");
	dbn_end_meta(&dbn);
	add_mbo(&dbn, 1, DAY1);
	add_mbo(&dbn, 9, DAY1);
	add_mbo(&dbn, 2, DAY1 + DAY_NS);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.series_cnt, 2);
	ck_assert_str_eq(sink.names[0], "TEST.SET/ES.c.0/mbo");
	ck_assert_str_eq(sink.names[1], "TEST.SET/9/mbo");
}
END_TEST

START_TEST(garbage_behind_the_records_is_refused)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	add_mbo(&dbn, 5482, DAY1);
	dbn_room(&dbn, 16);
	assert_refused(&dbn, NULL, -EBADMSG,
		"FILE: the record at offset 262 claims 0 bytes, fewer than its own header of 16: the file is "
		"damaged");
	dbn_simple(&dbn, 1, 0);
	add_mbo(&dbn, 5482, DAY1);
	dbn_text(&dbn, 14, "<html>busy\r\n\r\n");
	assert_refused(&dbn, NULL, -ENODATA,
		"FILE: the record at offset 262 is cut short: 226 of its 240 bytes are missing; "
		"--allow-partial imports what is before it");
}
END_TEST

START_TEST(a_damaged_zstd_frame_is_refused_and_an_empty_file_told)
{
	struct stoup_error err = {0};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	for (uint64_t i = 0; i < 5000; i++)
		add_mbo(&dbn, 5482, DAY1 + i * i * 977);
	size_t cap = ZSTD_compressBound(dbn.len);
	uint8_t *packed = malloc(cap);
	ZSTD_CCtx *cctx = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, 1);
	size_t len = ZSTD_compress2(cctx, packed, cap, dbn.bytes, dbn.len);
	packed[len / 2] ^= 0x55;
	write_file(packed, len);
	ck_assert_int_eq(ingest_path(file_path, NULL, &err), -EBADMSG);
	ck_assert_msg(strstr(err.text, "zstd") && strstr(err.text, "offset") &&
			      strstr(err.text, file_path),
		"'%s'", err.text);
	ZSTD_freeCCtx(cctx);
	free(packed);
	dbn_free(&dbn);
	write_file("", 0);
	ck_assert_int_eq(ingest_path(file_path, NULL, &err), -ENODATA);
	assert_text(err.text, "FILE is empty: was it written whole? Get it again, or leave it out");
	write_file("time,price\n", 11);
	ck_assert_int_eq(ingest_path(file_path, NULL, &err), -EBADMSG);
	assert_text(err.text,
		"FILE: no DBN: it begins neither with \"DBN\" nor with a record of a known type and length");
	write_file("\x51\x2a\x4d\x18\x08\0\0\0DBZ\x01\0\0\0\0", 16);
	ck_assert_int_eq(ingest_path(file_path, NULL, &err), -EPROTONOSUPPORT);
	assert_text(err.text,
		"FILE is a DBZ file, Databento's format before DBN, which stoup does not read: convert it "
		"(dbn old.dbz -o new.dbn, of Databento's dbn-cli), or download it again");
}
END_TEST

START_TEST(options_are_checked_by_name_and_value)
{
	struct stoup_dbn_options options = {0};
	struct stoup_error err = {0};
	ck_assert_int_eq(stoup_dbn_option(&options, "dataset", "X", &err), 0);
	ck_assert_str_eq(options.dataset, "X");
	ck_assert_int_eq(stoup_dbn_option(&options, "dbn-version", "2", &err), 0);
	ck_assert_int_eq(options.version, 2);
	ck_assert_int_eq(stoup_dbn_option(&options, "other", "2", &err), -ENOENT);
	ck_assert_int_eq(stoup_dbn_option(&options, "dbn-version", "4", &err), -EINVAL);
	ck_assert_str_eq(err.text, "--dbn-version 4: 1, 2 or 3");
	ck_assert_int_eq(stoup_dbn_option(&options, "dbn-version", "22", &err), -EINVAL);
	ck_assert_int_eq(stoup_dbn_option(&options, "dataset", "", &err), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dbn_forms");
	TCase *tcase = tcase_create("dbn_forms");
	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, the_version_of_a_fragment_shows_in_lengths, 0, 30);
	tcase_add_test(tcase, a_fragment_of_several_zstd_frames_is_one_stream);
	tcase_add_loop_test(tcase,
		symbols_of_a_fragment_come_from_its_mapping_records_and_change_with_them, 1, 4);
	tcase_add_test(tcase, a_fragment_needs_a_name);
	tcase_add_test(tcase, lengths_of_two_versions_in_one_fragment_are_refused);
	tcase_add_test(tcase, a_said_version_must_be_that_of_the_records);
	tcase_add_test(tcase, a_length_that_no_version_has_is_refused);
	tcase_add_test(tcase, dbn_files_one_after_the_other_are_each_read_by_their_own_metadata);
	tcase_add_test(tcase, a_second_file_that_is_damaged_is_refused_with_where_it_begins);
	tcase_add_test(tcase, symbols_that_are_not_asked_for_make_no_series);
	tcase_add_test(tcase, a_named_series_takes_the_symbols_that_are_asked_for);
	tcase_add_test(tcase, keys_outside_the_range_are_left_out_but_their_mappings_are_learned);
	tcase_add_test(tcase, what_is_cut_says_where_and_what_is_missing);
	tcase_add_test(tcase, versions_and_lengths_that_can_not_be_are_told);
	tcase_add_test(tcase, mappings_that_contradict_themselves_are_refused);
	tcase_add_test(tcase, a_parent_may_stand_for_several_instruments_at_once);
	tcase_add_test(tcase, intervals_that_touch_or_are_empty_do_not_overlap);
	tcase_add_test(tcase, garbage_behind_the_records_is_refused);
	tcase_add_test(tcase, a_damaged_zstd_frame_is_refused_and_an_empty_file_told);
	tcase_add_test(tcase, options_are_checked_by_name_and_value);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed_cnt = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed_cnt == 0 ? 0 : 1;
}
