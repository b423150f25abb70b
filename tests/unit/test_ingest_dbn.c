/* SPDX-License-Identifier: Apache-2.0 */
/* test_ingest_dbn.c - DBN files made by hand: where their records go, and what is refused. */
#include "producer/ingest_dbn.h"
#include "tests/unit/dbn_file.h"
#include "tests/unit/dbn_sink.h"
#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include <zstd.h>

#define DAY1   1609160400000000000u /* 2020-12-28 13:00 UTC */
#define DAY_NS 86400000000000u

static void assert_refused(
	struct dbn_bytes *dbn, const struct stoup_dbn_options *options, int code, const char *text)
{
	struct stoup_error err = {0};
	ck_assert_int_eq(ingest(dbn, options, &err), code);
	ck_assert_int_eq(err.code, code);
	ck_assert_msg(strstr(err.text, text), "'%s' lacks '%s'", err.text, text);
	ck_assert_msg(strstr(err.text, file_path), "'%s' does not name the file", err.text);
}

static void assert_note(const char *text)
{
	ck_assert_msg(strstr(sink.notes, text), "notes '%s' lack '%s'", sink.notes, text);
}

/* An MBO record with ts_recv = `key`. */
static uint8_t *add_mbo(struct dbn_bytes *dbn, uint32_t instrument_id, uint64_t key)
{
	uint8_t *at = dbn_record(dbn, 0xa0, 56, instrument_id, key - 1000);
	dbn_int(at + 40, 8, key);
	return at;
}

/* ---- routing --------------------------------------------------------------------------------- */

START_TEST(records_stay_byte_for_byte_what_they_were)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, _i, 0);
	size_t first_off = dbn.len;
	for (uint64_t i = 0; i < 5; i++)
		add_mbo(&dbn, 5482, DAY1 + i);
	uint8_t *copy = malloc(5 * 56);
	memcpy(copy, dbn.bytes + first_off, 5 * 56);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.series_cnt, 1);
	ck_assert_str_eq(sink.names[0], "TEST.SET/ESH1/mbo");
	ck_assert_uint_eq(sink.put_cnt, 5);
	ck_assert_mem_eq(sink.bytes, copy, 5 * 56);
	for (size_t i = 0; i < 5; i++) {
		ck_assert_int_eq(sink.puts[i].key, (int64_t)(DAY1 + i));
		ck_assert_uint_eq(sink.puts[i].file_off, first_off + i * 56);
	}
	ck_assert_str_eq(sink.notes, "");
	free(copy);
}
END_TEST

/* Record types with their length by version and where their key is. */
static const struct {
	unsigned rtype;
	unsigned lens[3];
	unsigned key_off;
	const char *names[3];
} kinds[] = {
	{0x00, {48, 48, 48}, 32, {"trades", "trades", "trades"}},
	{0x01, {80, 80, 80}, 32, {"mbp-1", "mbp-1", "mbp-1"}},
	{0x0a, {368, 368, 368}, 32, {"mbp-10", "mbp-10", "mbp-10"}},
	{0x20, {56, 56, 56}, 8, {"ohlcv-1s", "ohlcv-1s", "ohlcv-1s"}},
	{0x21, {56, 56, 56}, 8, {"ohlcv-1m", "ohlcv-1m", "ohlcv-1m"}},
	{0x22, {56, 56, 56}, 8, {"ohlcv-1h", "ohlcv-1h", "ohlcv-1h"}},
	{0x23, {56, 56, 56}, 8, {"ohlcv-1d", "ohlcv-1d", "ohlcv-1d"}},
	{0x24, {56, 56, 56}, 8, {"ohlcv-eod", "ohlcv-eod", "ohlcv-eod"}},
	{0x12, {40, 40, 40}, 16, {"status", "status", "status"}},
	{0x13, {360, 400, 520}, 16, {"definition-v1", "definition-v2", "definition"}},
	{0x14, {112, 112, 112}, 16, {"imbalance", "imbalance", "imbalance"}},
	{0x15, {80, 320, 320}, 8, {"error-v1", "error", "error"}},
	{0x16, {80, 176, 176}, 8, {"symbol-mapping-v1", "symbol-mapping", "symbol-mapping"}},
	{0x17, {80, 320, 320}, 8, {"system-v1", "system", "system"}},
	{0x18, {64, 64, 80}, 16, {"statistics-v1", "statistics-v1", "statistics"}},
	{0xa0, {56, 56, 56}, 40, {"mbo", "mbo", "mbo"}},
	{0xb1, {80, 80, 80}, 32, {"cmbp-1", "cmbp-1", "cmbp-1"}},
	{0xc0, {80, 80, 80}, 32, {"cbbo-1s", "cbbo-1s", "cbbo-1s"}},
	{0xc1, {80, 80, 80}, 32, {"cbbo-1m", "cbbo-1m", "cbbo-1m"}},
	{0xc2, {80, 80, 80}, 32, {"tcbbo", "tcbbo", "tcbbo"}},
	{0xc3, {80, 80, 80}, 32, {"bbo-1s", "bbo-1s", "bbo-1s"}},
	{0xc4, {80, 80, 80}, 32, {"bbo-1m", "bbo-1m", "bbo-1m"}},
};

#define KIND_CNT (sizeof(kinds) / sizeof(kinds[0]))

static void check_every_kind(unsigned version, unsigned ts_out)
{
	struct dbn_bytes dbn;
	dbn_begin(&dbn, (int)version, 0xffff, 1, 0, ts_out);
	dbn_symbol_tables(&dbn, "ESH1");
	dbn_mapping(&dbn, "ESH1");
	dbn_interval(&dbn, 20201228, 20201229, "5482");
	dbn_end_meta(&dbn);
	for (unsigned i = 0; i < KIND_CNT; i++) {
		unsigned len = kinds[i].lens[version - 1] + ts_out * 8;
		uint8_t *at = dbn_record(&dbn, kinds[i].rtype, len, 5482, DAY1 + 1000 + i);
		if (kinds[i].key_off != 8)
			dbn_int(at + kinds[i].key_off, 8, DAY1 + i);
	}
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, KIND_CNT);
	for (unsigned i = 0; i < KIND_CNT; i++) {
		const struct put *put = &sink.puts[i];
		bool is_session = kinds[i].rtype == 0x15 || kinds[i].rtype == 0x17;
		char name[64];
		snprintf(name, sizeof(name), "TEST.SET/%s/%s%s", is_session ? "ALL" : "ESH1",
			kinds[i].names[version - 1], ts_out ? ".ts_out" : "");
		ck_assert_str_eq(sink.names[put->series_idx], name);
		ck_assert_uint_eq(
			sink.strides[put->series_idx], kinds[i].lens[version - 1] + ts_out * 8);
		ck_assert_int_eq(
			put->key, (int64_t)(DAY1 + i + (kinds[i].key_off == 8 ? 1000 : 0)));
	}
}

START_TEST(every_kind_of_every_version_goes_to_its_series_by_its_key)
{
	for (unsigned version = 1; version <= 3; version++) {
		check_every_kind(version, 0);
		sink_reset();
		check_every_kind(version, 1);
		sink_reset();
	}
}
END_TEST

START_TEST(an_instrument_changes_its_symbol_with_the_day_of_the_key)
{
	struct dbn_bytes dbn;
	dbn_begin(&dbn, 3, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, "ESH1");
	dbn_mapping(&dbn, "ESH1");
	dbn_interval(&dbn, 20201228, 20201229, "5482");
	dbn_mapping(&dbn, "ESM1");
	dbn_interval(&dbn, 20201229, 20201230, "5482");
	dbn_end_meta(&dbn);
	uint64_t midnight = 1609200000000000000u; /* 2020-12-29 */
	add_mbo(&dbn, 5482, midnight - 1);        /* ts_event is on the 28th for all three */
	add_mbo(&dbn, 5482, midnight);
	add_mbo(&dbn, 5482, midnight + 1);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 3);
	ck_assert_str_eq(sink.names[sink.puts[0].series_idx], "TEST.SET/ESH1/mbo");
	ck_assert_str_eq(sink.names[sink.puts[1].series_idx], "TEST.SET/ESM1/mbo");
	ck_assert_str_eq(sink.names[sink.puts[2].series_idx], "TEST.SET/ESM1/mbo");
}
END_TEST

START_TEST(a_record_goes_to_each_symbol_of_its_instrument_once)
{
	static const char *const symbols[] = {"ESH1", "ES.c.0", "ESH1"};
	struct dbn_bytes dbn;
	dbn_begin(&dbn, 3, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, "ESH1");
	for (size_t i = 0; i < 3; i++) {
		dbn_mapping(&dbn, symbols[i]);
		dbn_interval(&dbn, 20201228, 20201229, "5482");
	}
	dbn_end_meta(&dbn);
	add_mbo(&dbn, 5482, DAY1);
	add_mbo(&dbn, 5482, DAY1 + 1);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.series_cnt, 2);
	ck_assert_uint_eq(sink.put_cnt, 4);
	ck_assert_uint_ne(sink.puts[0].series_idx, sink.puts[1].series_idx);
	ck_assert_uint_eq(sink.puts[0].series_idx, sink.puts[2].series_idx);
	ck_assert_uint_eq(sink.puts[0].file_off, sink.puts[1].file_off);
}
END_TEST

START_TEST(symbols_are_escaped_in_series_names)
{
	struct dbn_bytes dbn;
	dbn_begin(&dbn, 3, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, "BRK/B 50%");
	dbn_mapping(&dbn, "BRK/B 50%");
	dbn_interval(&dbn, 20201228, 20201229, "1");
	dbn_end_meta(&dbn);
	add_mbo(&dbn, 1, DAY1);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_str_eq(sink.names[0], "TEST.SET/BRK%2FB 50%25/mbo");
}
END_TEST

START_TEST(an_instrument_without_a_symbol_is_named_by_its_number_and_told)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0);
	add_mbo(&dbn, 5482, DAY1);
	add_mbo(&dbn, 77, DAY1 + 1);
	add_mbo(&dbn, 77, DAY1 + 2);
	add_mbo(&dbn, 5482, DAY1 + DAY_NS); /* outside of its interval */
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_str_eq(sink.names[sink.puts[1].series_idx], "TEST.SET/77/mbo");
	ck_assert_str_eq(sink.names[sink.puts[3].series_idx], "TEST.SET/5482/mbo");
	assert_note("3 records of instruments without a symbol");
	assert_note("the first: 77");
	ck_assert_ptr_eq(strchr(sink.notes, '\n'), sink.notes + strlen(sink.notes) - 1);
}
END_TEST

START_TEST(one_stream_keeps_all_instruments_together)
{
	struct stoup_dbn_options options = {.one_stream = 1};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0);
	add_mbo(&dbn, 5482, DAY1);
	add_mbo(&dbn, 77, DAY1 + 1);
	ck_assert_int_eq(ingest(&dbn, &options, NULL), 0);
	ck_assert_uint_eq(sink.series_cnt, 1);
	ck_assert_str_eq(sink.names[0], "TEST.SET/ALL/mbo");
	ck_assert_uint_eq(sink.put_cnt, 2);
	ck_assert_str_eq(sink.notes, "");
}
END_TEST

START_TEST(a_named_series_takes_all_records_of_one_schema)
{
	struct stoup_dbn_options options = {.series = "my/own"};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0);
	add_mbo(&dbn, 5482, DAY1);
	add_mbo(&dbn, 77, DAY1 + 1);
	ck_assert_int_eq(ingest(&dbn, &options, NULL), 0);
	ck_assert_uint_eq(sink.series_cnt, 1);
	ck_assert_str_eq(sink.names[0], "my/own");
	ck_assert_uint_eq(sink.put_cnt, 2);
}
END_TEST

START_TEST(a_named_series_refuses_a_second_schema)
{
	struct stoup_dbn_options options = {.series = "my/own"};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0xffff);
	add_mbo(&dbn, 5482, DAY1);
	dbn_int(dbn_record(&dbn, 0x00, 48, 5482, DAY1) + 32, 8, DAY1);
	assert_refused(&dbn, &options, -EINVAL, "mbo and trades");
}
END_TEST

START_TEST(a_named_series_and_one_stream_exclude_each_other)
{
	struct stoup_dbn_options options = {.series = "my/own", .one_stream = 1};
	struct stoup_error err = {0};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0);
	ck_assert_int_eq(ingest(&dbn, &options, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "exclude"));
}
END_TEST

START_TEST(symbol_mapping_records_name_the_instruments_of_a_live_file)
{
	struct dbn_bytes dbn;
	dbn_begin(&dbn, 3, 0xffff, 0xff, 0, 0);
	dbn_symbol_tables(&dbn, "ES.FUT");
	dbn_end_meta(&dbn);
	for (uint32_t id = 1; id <= 2000; id++) {
		uint8_t *at = dbn_record(&dbn, 0x16, 176, id, DAY1);
		memset(at + 89, 0, 71);
		snprintf((char *)at + 89, 71, "S%u", id % 20);
	}
	add_mbo(&dbn, 1999, DAY1 + 1);
	memcpy(dbn_record(&dbn, 0x16, 176, 1999, DAY1 + 2) + 89, "NEW\0", 4);
	add_mbo(&dbn, 1999, DAY1 + 3);
	add_mbo(&dbn, 9999, DAY1 + 4);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 2004);
	ck_assert_str_eq(sink.names[sink.puts[3].series_idx], "TEST.SET/S4/symbol-mapping");
	ck_assert_str_eq(sink.names[sink.puts[2000].series_idx], "TEST.SET/S19/mbo");
	ck_assert_str_eq(sink.names[sink.puts[2001].series_idx], "TEST.SET/NEW/symbol-mapping");
	ck_assert_str_eq(sink.names[sink.puts[2002].series_idx], "TEST.SET/NEW/mbo");
	ck_assert_str_eq(sink.names[sink.puts[2003].series_idx], "TEST.SET/9999/mbo");
}
END_TEST

START_TEST(the_cache_asks_for_a_series_once_per_instrument_and_day)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0);
	for (uint64_t day = 0; day < 3; day++) {
		for (uint32_t i = 0; i < 4000; i++)
			add_mbo(&dbn, i % 50, DAY1 + day * DAY_NS + i);
	}
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 12000);
	ck_assert_uint_eq(sink.series_calls, 150);
}
END_TEST

START_TEST(more_instrument_days_than_the_cache_holds_stay_right)
{
	struct stoup_dbn_options options = {.one_stream = 1};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0);
	for (uint32_t i = 0; i < 300000; i++)
		dbn_int(dbn_record(&dbn, 0x12, 40, i, DAY1) + 16, 8, DAY1 + i);
	ck_assert_int_eq(ingest(&dbn, &options, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 300000);
	ck_assert_uint_eq(sink.series_cnt, 1);
	for (uint32_t i = 0; i < 300000; i++) {
		uint32_t id;
		memcpy(&id, sink.bytes + sink.puts[i].at + 4, 4);
		ck_assert_uint_eq(id, i);
	}
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

START_TEST(unknown_record_types_are_skipped_by_length_and_told_once)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 2, 0);
	unsigned long long first_off = dbn.len;
	char expected[64];
	dbn_record(&dbn, 0x42, 32, 5482, DAY1);
	add_mbo(&dbn, 5482, DAY1);
	dbn_record(&dbn, 0x43, 1020, 5482, DAY1);
	add_mbo(&dbn, 5482, DAY1 + 1);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 2);
	snprintf(expected, sizeof(expected), "the first at offset %llu)", first_off);
	assert_note("2 records of unknown types skipped (1 of 0x42, 1 of 0x43; ");
	assert_note(expected);
}
END_TEST

START_TEST(a_record_shorter_than_its_header_is_refused_with_its_offset)
{
	for (unsigned words = 0; words < 4; words++) {
		struct dbn_bytes dbn;
		dbn_simple(&dbn, 1, 0);
		add_mbo(&dbn, 5482, DAY1);
		add_mbo(&dbn, 5482, DAY1)[0] = (uint8_t)words;
		assert_refused(&dbn, NULL, -EBADMSG, "offset 262 claims");
	}
}
END_TEST

START_TEST(a_record_of_another_length_than_its_kind_is_refused_with_both)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	add_mbo(&dbn, 5482, DAY1);
	dbn_record(&dbn, 0xa0, 64, 5482, DAY1);
	assert_refused(
		&dbn, NULL, -EBADMSG, "offset 262 is 64 bytes long, but a mbo record has 56");
}
END_TEST

START_TEST(a_layout_of_another_version_is_refused)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 2, 9);
	dbn_record(&dbn, 0x13, 360, 5482, DAY1);
	assert_refused(
		&dbn, NULL, -EBADMSG, "is 360 bytes long, but a definition-v2 record has 400");
}
END_TEST

START_TEST(a_record_cut_at_the_end_is_an_error_that_counts_what_is_missing)
{
	for (unsigned have = 1; have < 56; have++) {
		struct dbn_bytes dbn;
		char expected[64];
		dbn_simple(&dbn, 1, 0);
		add_mbo(&dbn, 5482, DAY1);
		add_mbo(&dbn, 5482, DAY1 + 1);
		dbn.len -= 56 - have;
		snprintf(expected, sizeof(expected), "offset 262 is cut short: %u of its 56",
			56 - have);
		assert_refused(&dbn, NULL, -ENODATA, expected);
	}
}
END_TEST

START_TEST(allow_partial_keeps_the_whole_records_and_says_so)
{
	struct stoup_dbn_options options = {.allow_partial = 1};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	add_mbo(&dbn, 5482, DAY1);
	add_mbo(&dbn, 5482, DAY1 + 1);
	dbn.len -= 20;
	ck_assert_int_eq(ingest(&dbn, &options, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 1);
	assert_note("offset 262 is cut short (36 of its 56 bytes)");
}
END_TEST

/* A zstd file of two frames, metadata and records, as the historical service makes them. */
static void write_frames(struct dbn_bytes *dbn, size_t meta_len, size_t cut)
{
	size_t cap = ZSTD_compressBound(dbn->len) + 64;
	uint8_t *packed = malloc(cap);
	size_t len = ZSTD_compress(packed, cap, dbn->bytes, meta_len, 3);
	len += ZSTD_compress(
		packed + len, cap - len, dbn->bytes + meta_len, dbn->len - meta_len, 3);
	ck_assert_uint_lt(len, cap);
	write_file(packed, len - cut);
	free(packed);
}

START_TEST(allow_partial_reads_a_cut_zstd_file_as_far_as_it_goes)
{
	struct stoup_dbn_options options = {.allow_partial = 1};
	struct stoup_error err = {0};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	size_t meta_len = dbn.len;
	for (uint64_t i = 0; i < 20000; i++)
		add_mbo(&dbn, 5482, DAY1 + i * i * 977);
	write_frames(&dbn, meta_len, 2000);
	dbn_free(&dbn);
	ck_assert_int_eq(ingest_path(file_path, NULL, &err), -ENODATA);
	ck_assert_ptr_nonnull(strstr(err.text, "inside a zstd frame that begins at offset"));
	sink_reset();
	ck_assert_int_eq(ingest_path(file_path, &options, NULL), 0);
	ck_assert_uint_gt(sink.put_cnt, 1000);
	ck_assert_uint_lt(sink.put_cnt, 20000);
	assert_note("inside a zstd frame");
}
END_TEST

START_TEST(metadata_cut_short_are_an_error_even_with_allow_partial)
{
	struct stoup_dbn_options options = {.allow_partial = 1};
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0);
	size_t missing = dbn.len - 200;
	char expected[64];
	dbn.len = 200;
	snprintf(expected, sizeof(expected), "offset 200 inside the metadata, of which %zu",
		missing);
	assert_refused(&dbn, &options, -ENODATA, expected);
}
END_TEST

START_TEST(an_undefined_key_reaches_the_sink_as_not_positive)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	add_mbo(&dbn, 5482, DAY1);
	add_mbo(&dbn, 5482, UINT64_MAX);
	assert_refused(&dbn, NULL, -ERANGE, "offset 262 refused");
	dbn_simple(&dbn, 1, 0);
	add_mbo(&dbn, 5482, 0);
	assert_refused(&dbn, NULL, -ERANGE, "offset 206 refused");
}
END_TEST

START_TEST(a_refusing_sink_ends_the_import)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	for (uint64_t i = 0; i < 5; i++)
		add_mbo(&dbn, 5482, DAY1 + i);
	sink.fail_at = 3;
	assert_refused(&dbn, NULL, -ERANGE, "offset 318 refused");
	ck_assert_uint_eq(sink.put_cnt, 2);
}
END_TEST

START_TEST(a_file_without_records_is_told)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	ck_assert_int_eq(ingest(&dbn, NULL, NULL), 0);
	ck_assert_uint_eq(sink.put_cnt, 0);
	assert_note("holds no records");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ingest_dbn");
	TCase *tcase = tcase_create("ingest_dbn");
	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, records_stay_byte_for_byte_what_they_were, 1, 4);
	tcase_add_test(tcase, every_kind_of_every_version_goes_to_its_series_by_its_key);
	tcase_add_test(tcase, an_instrument_changes_its_symbol_with_the_day_of_the_key);
	tcase_add_test(tcase, a_record_goes_to_each_symbol_of_its_instrument_once);
	tcase_add_test(tcase, symbols_are_escaped_in_series_names);
	tcase_add_test(tcase, an_instrument_without_a_symbol_is_named_by_its_number_and_told);
	tcase_add_test(tcase, one_stream_keeps_all_instruments_together);
	tcase_add_test(tcase, a_named_series_takes_all_records_of_one_schema);
	tcase_add_test(tcase, a_named_series_refuses_a_second_schema);
	tcase_add_test(tcase, a_named_series_and_one_stream_exclude_each_other);
	tcase_add_test(tcase, symbol_mapping_records_name_the_instruments_of_a_live_file);
	tcase_add_test(tcase, the_cache_asks_for_a_series_once_per_instrument_and_day);
	tcase_add_test(tcase, more_instrument_days_than_the_cache_holds_stay_right);
	tcase_add_test(tcase, unknown_record_types_are_skipped_by_length_and_told_once);
	tcase_add_test(tcase, a_record_shorter_than_its_header_is_refused_with_its_offset);
	tcase_add_test(tcase, a_record_of_another_length_than_its_kind_is_refused_with_both);
	tcase_add_test(tcase, a_layout_of_another_version_is_refused);
	tcase_add_test(tcase, a_record_cut_at_the_end_is_an_error_that_counts_what_is_missing);
	tcase_add_test(tcase, allow_partial_keeps_the_whole_records_and_says_so);
	tcase_add_test(tcase, allow_partial_reads_a_cut_zstd_file_as_far_as_it_goes);
	tcase_add_test(tcase, metadata_cut_short_are_an_error_even_with_allow_partial);
	tcase_add_test(tcase, an_undefined_key_reaches_the_sink_as_not_positive);
	tcase_add_test(tcase, a_refusing_sink_ends_the_import);
	tcase_add_test(tcase, a_file_without_records_is_told);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed_cnt = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed_cnt == 0 ? 0 : 1;
}
