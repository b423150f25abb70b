/* SPDX-License-Identifier: Apache-2.0 */
/* test_dbn.c - DBN's prelude, metadata, mappings, record headers and schemas. */
#include "producer/dbn.h"
#include "tests/unit/dbn_build.h"
#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

/* Feed metadata in pieces of `piece_len` bytes, each in a buffer of its exact length, as a reader
 * with a small buffer does. Returns 0 or the parser's error. */
static int parse_pieces(const struct dbn_bytes *dbn, size_t piece_len, struct stoup_dbn_meta *ret,
	struct stoup_error *err)
{
	struct stoup_dbn_prelude prelude;
	int rc = stoup_dbn_prelude(dbn->bytes, dbn->len, &prelude, err);
	if (rc < 0)
		return rc;
	struct stoup_dbn_parser *parser = stoup_dbn_parser_create(&prelude);
	size_t off = STOUP_DBN_PRELUDE_LEN;
	size_t have = piece_len;
	while (stoup_dbn_parser_left(parser) > 0) {
		size_t len = have < dbn->len - off ? have : dbn->len - off;
		uint8_t *piece = malloc(len ? len : 1);
		memcpy(piece, dbn->bytes + off, len);
		int64_t got = stoup_dbn_parser_feed(parser, piece, len, err);
		free(piece);
		if (got < 0) {
			stoup_dbn_parser_destroy(parser);
			return (int)got;
		}
		ck_assert_int_le(got, (int64_t)len);
		off += (size_t)got;
		have = got > 0 ? piece_len : have + piece_len;
		if (got == 0 && len == dbn->len - off)
			break; /* cut short: left says so */
	}
	rc = -ENODATA;
	if (stoup_dbn_parser_left(parser) == 0)
		rc = stoup_dbn_parser_take(parser, ret, err);
	stoup_dbn_parser_destroy(parser);
	return rc;
}

static int parse(const struct dbn_bytes *dbn, struct stoup_dbn_meta *ret, struct stoup_error *err)
{
	return parse_pieces(dbn, 1u << 20, ret, err);
}

static const char *symbol_of(
	const struct stoup_dbn_meta *meta, uint32_t instrument_id, uint32_t date)
{
	size_t pos = 0;
	return stoup_dbn_symbol_next(meta, instrument_id, date, &pos);
}

/* ---- prelude --------------------------------------------------------------------------------- */

static void assert_prelude_refused(const char *bytes, size_t len, int code, const char *text)
{
	struct stoup_dbn_prelude prelude;
	struct stoup_error err = {0};
	ck_assert_int_eq(stoup_dbn_prelude((const uint8_t *)bytes, len, &prelude, &err), code);
	ck_assert_int_eq(err.code, code);
	ck_assert_msg(strstr(err.text, text), "'%s' lacks '%s'", err.text, text);
}

START_TEST(a_prelude_gives_version_and_length)
{
	struct stoup_dbn_prelude prelude;
	ck_assert_int_eq(
		stoup_dbn_prelude((const uint8_t *)"DBN\x02\x59\x01\0\0", 8, &prelude, NULL), 0);
	ck_assert_uint_eq(prelude.version, 2);
	ck_assert_uint_eq(prelude.meta_len, 0x159);
}
END_TEST

START_TEST(versions_other_than_1_to_3_are_refused_by_name)
{
	assert_prelude_refused("DBN\x04\x00\x01\0\0", 8, -EPROTONOSUPPORT, "version 4");
	assert_prelude_refused("DBN\x00\x00\x01\0\0", 8, -EPROTONOSUPPORT, "version 0");
	assert_prelude_refused("DBN\xff\x00\x01\0\0", 8, -EPROTONOSUPPORT, "1 to 3");
}
END_TEST

START_TEST(a_prelude_that_is_cut_or_too_short_is_refused)
{
	assert_prelude_refused("DBN\x01\x63", 5, -EBADMSG, "offset 5");
	assert_prelude_refused("DBN\x01\x77\0\0\0", 8, -EBADMSG, "119 bytes");
	assert_prelude_refused("DBN\x01\0\0\0\0", 8, -EBADMSG, "0 bytes");
	assert_prelude_refused("DB", 2, -EBADMSG, "no DBN: it begins");
}
END_TEST

START_TEST(what_is_no_dbn_is_refused_with_its_reason)
{
	assert_prelude_refused("\x28\xb5\x2f\xfd\0\0\0\0", 8, -EPROTONOSUPPORT, "packed twice");
	assert_prelude_refused("DBZ\x01\0\0\0\0", 8, -EPROTONOSUPPORT, "dbn old.dbz -o new.dbn");
	assert_prelude_refused("time,price\n", 11, -EBADMSG, "no DBN: it begins neither");
}
END_TEST

/* ---- metadata -------------------------------------------------------------------------------- */

START_TEST(metadata_of_each_version_give_the_same_facts)
{
	struct dbn_bytes dbn;
	struct stoup_dbn_meta meta;
	struct stoup_error err = {0};
	dbn_begin(&dbn, _i, 18, 4, 0, 1);
	dbn_symbol_tables(&dbn, "ES.FUT");
	dbn_mapping(&dbn, "ESH1");
	dbn_interval(&dbn, 20201228, 20210103, "5482");
	dbn_end_meta(&dbn);
	ck_assert_msg(parse(&dbn, &meta, &err) == 0, "%s", err.text);
	ck_assert_int_eq(meta.version, _i);
	ck_assert_str_eq(meta.dataset, "TEST.SET");
	ck_assert_uint_eq(meta.schema, 18);
	ck_assert_uint_eq(meta.stype_in, 4);
	ck_assert_uint_eq(meta.stype_out, 0);
	ck_assert_uint_eq(meta.has_ts_out, 1);
	ck_assert_uint_eq(meta.symbol_len, _i == 1 ? 22 : 71);
	ck_assert_uint_eq(meta.start_ns, 1609160400000000000u);
	ck_assert_uint_eq(meta.end_ns, UINT64_MAX);
	ck_assert_uint_eq(meta.interval_cnt, 1);
	ck_assert_str_eq(symbol_of(&meta, 5482, 20201228), "ESH1");
	stoup_dbn_meta_fini(&meta);
	dbn_free(&dbn);
}
END_TEST

START_TEST(an_interval_holds_from_its_first_day_to_before_its_last)
{
	struct dbn_bytes dbn;
	struct stoup_dbn_meta meta;
	dbn_begin(&dbn, 3, 0, 3, 0, 0);
	dbn_symbol_tables(&dbn, "ES.c.0");
	dbn_mapping(&dbn, "ES.c.0");
	dbn_interval(&dbn, 20240101, 20240315, "1");
	dbn_interval(&dbn, 20240315, 20240401, "2");
	dbn_interval(&dbn, 20240401, 20240402, "");
	dbn_end_meta(&dbn);
	ck_assert_int_eq(parse(&dbn, &meta, NULL), 0);
	ck_assert_uint_eq(meta.interval_cnt, 2);
	ck_assert_ptr_null(symbol_of(&meta, 1, 20231231));
	ck_assert_str_eq(symbol_of(&meta, 1, 20240101), "ES.c.0");
	ck_assert_str_eq(symbol_of(&meta, 1, 20240314), "ES.c.0");
	ck_assert_ptr_null(symbol_of(&meta, 1, 20240315));
	ck_assert_ptr_null(symbol_of(&meta, 2, 20240314));
	ck_assert_str_eq(symbol_of(&meta, 2, 20240331), "ES.c.0");
	ck_assert_ptr_null(symbol_of(&meta, 2, 20240401));
	ck_assert_ptr_null(symbol_of(&meta, 3, 20240101));
	stoup_dbn_meta_fini(&meta);
	dbn_free(&dbn);
}
END_TEST

START_TEST(all_symbols_of_an_instrument_come_in_file_order)
{
	static const char *const expected[] = {"ESH1", "ES.c.0", "ES.v.0"};
	struct dbn_bytes dbn;
	struct stoup_dbn_meta meta;
	size_t pos = 0;
	dbn_begin(&dbn, 2, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, "ESH1");
	for (size_t i = 0; i < 3; i++) {
		dbn_mapping(&dbn, expected[i]);
		dbn_interval(&dbn, 20201228, 20201229, "5482");
	}
	dbn_end_meta(&dbn);
	ck_assert_int_eq(parse(&dbn, &meta, NULL), 0);
	for (size_t i = 0; i < 3; i++)
		ck_assert_str_eq(stoup_dbn_symbol_next(&meta, 5482, 20201228, &pos), expected[i]);
	ck_assert_ptr_null(stoup_dbn_symbol_next(&meta, 5482, 20201228, &pos));
	stoup_dbn_meta_fini(&meta);
	dbn_free(&dbn);
}
END_TEST

START_TEST(a_mapping_from_instrument_ids_is_read_the_other_way_round)
{
	struct dbn_bytes dbn;
	struct stoup_dbn_meta meta;
	dbn_begin(&dbn, 3, 0, 0, 1, 0);
	dbn_symbol_tables(&dbn, "5482");
	dbn_mapping(&dbn, "5482");
	dbn_interval(&dbn, 20201228, 20201229, "ESH1");
	dbn_interval(&dbn, 20201229, 20201230, "ESM1");
	dbn_end_meta(&dbn);
	ck_assert_int_eq(parse(&dbn, &meta, NULL), 0);
	ck_assert_str_eq(symbol_of(&meta, 5482, 20201228), "ESH1");
	ck_assert_str_eq(symbol_of(&meta, 5482, 20201229), "ESM1");
	stoup_dbn_meta_fini(&meta);
	dbn_free(&dbn);
}
END_TEST

START_TEST(symbols_that_are_no_instrument_id_map_nothing)
{
	static const char *const texts[] = {
		"ESH1", "4294967296", "12345678901", "-1", "1 ", "0x10"};
	struct dbn_bytes dbn;
	struct stoup_dbn_meta meta;
	dbn_begin(&dbn, 3, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, "A");
	dbn_mapping(&dbn, "A");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		dbn_interval(&dbn, 20201228, 20201229, texts[i]);
	dbn_interval(&dbn, 20201228, 20201229, "4294967295");
	dbn_end_meta(&dbn);
	ck_assert_int_eq(parse(&dbn, &meta, NULL), 0);
	ck_assert_uint_eq(meta.interval_cnt, 1);
	ck_assert_str_eq(symbol_of(&meta, UINT32_MAX, 20201228), "A");
	stoup_dbn_meta_fini(&meta);
	dbn_free(&dbn);
}
END_TEST

START_TEST(a_symbol_that_fills_its_place_needs_no_nul)
{
	static const char text[] = "ABCDEFGHIJKLMNOPQRSTUV"; /* 22 bytes */
	struct dbn_bytes dbn;
	struct stoup_dbn_meta meta;
	dbn_begin(&dbn, 1, 0, 1, 0, 0);
	dbn_symbol_tables(&dbn, text);
	dbn_mapping(&dbn, text);
	dbn_interval(&dbn, 20201228, 20201229, "7");
	dbn_end_meta(&dbn);
	ck_assert_int_eq(parse(&dbn, &meta, NULL), 0);
	ck_assert_str_eq(symbol_of(&meta, 7, 20201228), text);
	stoup_dbn_meta_fini(&meta);
	dbn_free(&dbn);
}
END_TEST

static void build_large(struct dbn_bytes *dbn, unsigned cnt)
{
	char symbol[16];
	char id[16];
	dbn_begin(dbn, 2, 9, 4, 0, 0);
	dbn_symbol_tables(dbn, "SPX.OPT");
	for (unsigned i = 0; i < cnt; i++) {
		snprintf(symbol, sizeof(symbol), "OPT%u", i);
		snprintf(id, sizeof(id), "%u", (i * 2654435761u) % 1000003u);
		dbn_mapping(dbn, symbol);
		dbn_interval(dbn, 20240102, 20240103, id);
	}
	dbn_end_meta(dbn);
}

START_TEST(metadata_of_megabytes_map_every_symbol)
{
	struct dbn_bytes dbn;
	struct stoup_dbn_meta meta;
	char symbol[16];
	unsigned wrong_cnt = 0;
	build_large(&dbn, 13492);
	ck_assert_uint_gt(dbn.len, 2000000);
	ck_assert_int_eq(parse_pieces(&dbn, 100000, &meta, NULL), 0);
	ck_assert_uint_eq(meta.interval_cnt, 13492);
	for (unsigned i = 0; i < 13492; i++) {
		uint32_t id = (i * 2654435761u) % 1000003u;
		size_t pos = 0;
		bool is_found = false;
		const char *got;
		snprintf(symbol, sizeof(symbol), "OPT%u", i);
		while ((got = stoup_dbn_symbol_next(&meta, id, 20240102, &pos)))
			is_found |= strcmp(got, symbol) == 0;
		wrong_cnt += !is_found;
	}
	ck_assert_uint_eq(wrong_cnt, 0);
	stoup_dbn_meta_fini(&meta);
	dbn_free(&dbn);
}
END_TEST

START_TEST(metadata_may_come_in_pieces_of_any_length)
{
	struct dbn_bytes dbn;
	build_large(&dbn, 40);
	for (size_t piece_len = 1; piece_len < 300; piece_len += 7) {
		struct stoup_dbn_meta meta;
		ck_assert_int_eq(parse_pieces(&dbn, piece_len, &meta, NULL), 0);
		ck_assert_uint_eq(meta.interval_cnt, 40);
		stoup_dbn_meta_fini(&meta);
	}
	dbn_free(&dbn);
}
END_TEST

/* ---- damaged metadata ------------------------------------------------------------------------ */

static void assert_meta_refused(struct dbn_bytes *dbn, const char *text)
{
	struct stoup_dbn_meta meta;
	struct stoup_error err = {0};
	ck_assert_int_eq(parse(dbn, &meta, &err), -EBADMSG);
	ck_assert_msg(strstr(err.text, text), "'%s' lacks '%s'", err.text, text);
	dbn_free(dbn);
}

START_TEST(counts_beyond_the_metadata_are_refused_with_their_offset)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 3, 0);
	dbn_int(dbn.bytes + 112, 4, 0xffffffff);
	assert_meta_refused(&dbn, "offset 112 claims 4294967295 symbols");
	dbn_simple(&dbn, 3, 0);
	dbn_int(dbn.bytes + 187, 4, 99); /* behind one symbol of 71 bytes */
	assert_meta_refused(&dbn, "offset 187 claims 99 partial");
	dbn_simple(&dbn, 3, 0);
	dbn_int(dbn.bytes + 191, 4, 99);
	assert_meta_refused(&dbn, "offset 191 claims 99 symbols not found");
	dbn_simple(&dbn, 3, 0);
	dbn_int(dbn.bytes + 195, 4, 3);
	assert_meta_refused(&dbn, "offset 195 claims 3 mappings");
	dbn_simple(&dbn, 3, 0);
	dbn_int(dbn.bytes + 270, 4, 2);
	assert_meta_refused(&dbn, "offset 199 claims 2 intervals");
}
END_TEST

START_TEST(metadata_that_end_inside_their_tables_are_refused)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 1, 0);
	dbn_int(dbn.bytes + 146, 4,
		2); /* two mappings: room for their rows, not for the interval */
	assert_meta_refused(&dbn, "end at offset 206, inside their tables");
	for (uint32_t meta_len = 120; meta_len < 8 + 120 + 22; meta_len++) {
		struct stoup_dbn_meta meta;
		dbn_simple(&dbn, 1, 0);
		dbn_int(dbn.bytes + 4, 4, meta_len);
		ck_assert_int_eq(parse(&dbn, &meta, NULL), -EBADMSG);
		dbn_free(&dbn);
	}
}
END_TEST

START_TEST(a_schema_definition_is_refused)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 2, 0);
	dbn_int(dbn.bytes + 108, 4, 8);
	assert_meta_refused(&dbn, "schema definition of 8 bytes");
}
END_TEST

START_TEST(a_symbol_length_of_zero_is_refused)
{
	struct dbn_bytes dbn;
	dbn_simple(&dbn, 2, 0);
	dbn_int(dbn.bytes + 53, 2, 0);
	assert_meta_refused(&dbn, "symbol length of 0");
}
END_TEST

START_TEST(a_symbol_length_of_65535_is_read)
{
	struct dbn_bytes dbn;
	struct stoup_dbn_meta meta;
	dbn_begin(&dbn, 3, 0, 1, 0, 0);
	dbn.symbol_len = 65535;
	dbn_int(dbn.bytes + 53, 2, 65535);
	dbn_symbol_tables(&dbn, "A");
	dbn_mapping(&dbn, "A");
	dbn_interval(&dbn, 20240102, 20240103, "9");
	dbn_end_meta(&dbn);
	ck_assert_int_eq(parse(&dbn, &meta, NULL), 0);
	ck_assert_str_eq(symbol_of(&meta, 9, 20240102), "A");
	stoup_dbn_meta_fini(&meta);
	dbn_free(&dbn);
}
END_TEST

/* ---- records --------------------------------------------------------------------------------- */

START_TEST(a_record_header_is_read_from_any_alignment)
{
	uint8_t bytes[64 + 1];
	struct stoup_dbn_record record;
	struct dbn_bytes dbn = {0};
	dbn_record(&dbn, 0xa0, 56, 0x01020304, 0x1122334455667788u);
	memcpy(bytes + 1, dbn.bytes, 56);
	ck_assert_int_eq(stoup_dbn_record_next(bytes + 1, 56, &record), 1);
	ck_assert_ptr_eq(record.bytes, bytes + 1);
	ck_assert_uint_eq(record.len, 56);
	ck_assert_uint_eq(record.rtype, 0xa0);
	ck_assert_uint_eq(record.publisher_id, 1);
	ck_assert_uint_eq(record.instrument_id, 0x01020304);
	ck_assert_uint_eq(record.ts_event, 0x1122334455667788u);
	dbn_free(&dbn);
}
END_TEST

START_TEST(a_record_is_whole_or_says_what_it_needs)
{
	struct stoup_dbn_record record;
	uint8_t bytes[16] = {4};
	ck_assert_int_eq(stoup_dbn_record_next(bytes, 0, &record), 0);
	ck_assert_uint_eq(record.len, 0);
	ck_assert_int_eq(stoup_dbn_record_next(bytes, 15, &record), 0);
	ck_assert_uint_eq(record.len, 16);
	ck_assert_int_eq(stoup_dbn_record_next(bytes, 16, &record), 1);
	for (bytes[0] = 0; bytes[0] < 4; bytes[0]++)
		ck_assert_int_eq(stoup_dbn_record_next(bytes, 16, &record), -EBADMSG);
	bytes[0] = 255;
	ck_assert_int_eq(stoup_dbn_record_next(bytes, 16, &record), 0);
	ck_assert_uint_eq(record.len, 1020);
}
END_TEST

/* The published table: bytes and the offset of the index time, by version. */
static const struct {
	unsigned rtype;
	unsigned file_schema;
	const char *names[3];
	unsigned lens[3];
	unsigned key_off;
} kinds[] = {
	{0x00, 4, {"trades", "trades", "trades"}, {48, 48, 48}, 32},
	{0x01, 1, {"mbp-1", "mbp-1", "mbp-1"}, {80, 80, 80}, 32},
	{0x01, 3, {"tbbo", "tbbo", "tbbo"}, {80, 80, 80}, 32},
	{0x01, 0xffff, {"mbp-1", "mbp-1", "mbp-1"}, {80, 80, 80}, 32},
	{0x0a, 2, {"mbp-10", "mbp-10", "mbp-10"}, {368, 368, 368}, 32},
	{0x20, 5, {"ohlcv-1s", "ohlcv-1s", "ohlcv-1s"}, {56, 56, 56}, 8},
	{0x21, 6, {"ohlcv-1m", "ohlcv-1m", "ohlcv-1m"}, {56, 56, 56}, 8},
	{0x22, 7, {"ohlcv-1h", "ohlcv-1h", "ohlcv-1h"}, {56, 56, 56}, 8},
	{0x23, 8, {"ohlcv-1d", "ohlcv-1d", "ohlcv-1d"}, {56, 56, 56}, 8},
	{0x24, 13, {"ohlcv-eod", "ohlcv-eod", "ohlcv-eod"}, {56, 56, 56}, 8},
	{0x11, 6, {"ohlcv-1m", "ohlcv-1m", "ohlcv-1m"}, {56, 56, 56}, 8},
	{0x11, 13, {"ohlcv-eod", "ohlcv-eod", "ohlcv-eod"}, {56, 56, 56}, 8},
	{0x12, 11, {"status", "status", "status"}, {40, 40, 40}, 16},
	{0x13, 9, {"definition-v1", "definition-v2", "definition"}, {360, 400, 520}, 16},
	{0x14, 12, {"imbalance", "imbalance", "imbalance"}, {112, 112, 112}, 16},
	{0x15, 0xffff, {"error-v1", "error", "error"}, {80, 320, 320}, 8},
	{0x16, 0xffff, {"symbol-mapping-v1", "symbol-mapping", "symbol-mapping"}, {80, 176, 176},
		8},
	{0x17, 0xffff, {"system-v1", "system", "system"}, {80, 320, 320}, 8},
	{0x18, 10, {"statistics-v1", "statistics-v1", "statistics"}, {64, 64, 80}, 16},
	{0xa0, 0, {"mbo", "mbo", "mbo"}, {56, 56, 56}, 40},
	{0xb1, 14, {"cmbp-1", "cmbp-1", "cmbp-1"}, {80, 80, 80}, 32},
	{0xc0, 15, {"cbbo-1s", "cbbo-1s", "cbbo-1s"}, {80, 80, 80}, 32},
	{0xc1, 16, {"cbbo-1m", "cbbo-1m", "cbbo-1m"}, {80, 80, 80}, 32},
	{0xc2, 17, {"tcbbo", "tcbbo", "tcbbo"}, {80, 80, 80}, 32},
	{0xc3, 18, {"bbo-1s", "bbo-1s", "bbo-1s"}, {80, 80, 80}, 32},
	{0xc4, 19, {"bbo-1m", "bbo-1m", "bbo-1m"}, {80, 80, 80}, 32},
};

START_TEST(every_record_type_has_the_schema_of_its_version)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (unsigned version = 1; version <= 3; version++) {
			const struct stoup_schema *schema =
				stoup_dbn_schema((uint8_t)kinds[i].rtype, (uint8_t)version,
					(uint16_t)kinds[i].file_schema);
			ck_assert_ptr_nonnull(schema);
			ck_assert_str_eq(schema->name, kinds[i].names[version - 1]);
			ck_assert_uint_eq(schema->stride, kinds[i].lens[version - 1]);
			ck_assert_uint_eq(schema->key_off, kinds[i].key_off);
		}
	}
}
END_TEST

START_TEST(unknown_record_types_have_no_schema)
{
	ck_assert_ptr_null(stoup_dbn_schema(0x42, 1, 0));
	ck_assert_ptr_null(stoup_dbn_schema(0xff, 3, 0));
	ck_assert_ptr_null(stoup_dbn_schema(0x11, 1, 0)); /* an old bar outside of a file of bars */
	ck_assert_ptr_null(stoup_dbn_schema(0x11, 1, 0xffff));
}
END_TEST

START_TEST(schema_numbers_have_databento_s_names)
{
	ck_assert_str_eq(stoup_dbn_schema_name(0), "mbo");
	ck_assert_str_eq(stoup_dbn_schema_name(13), "ohlcv-eod");
	ck_assert_str_eq(stoup_dbn_schema_name(19), "bbo-1m");
	ck_assert_str_eq(stoup_dbn_schema_name(0xffff), "mixed");
	ck_assert_ptr_null(stoup_dbn_schema_name(20));
}
END_TEST

START_TEST(ts_out_makes_every_schema_eight_bytes_longer)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct stoup_schema schema;
		struct stoup_error err = {0};
		const struct stoup_schema *base = stoup_dbn_schema(
			(uint8_t)kinds[i].rtype, 1, (uint16_t)kinds[i].file_schema);
		ck_assert_int_eq(stoup_dbn_ts_out(base, &schema, &err), 0);
		ck_assert_uint_eq(schema.stride, base->stride + 8);
		ck_assert_uint_eq(schema.key_off, base->key_off);
		ck_assert_str_eq(schema.name + strlen(base->name), ".ts_out");
		ck_assert_uint_ne(schema.hash, base->hash);
		const struct stoup_field *field = stoup_schema_field(&schema, "ts_out");
		ck_assert_ptr_nonnull(field);
		ck_assert_uint_eq(field->off, base->stride);
		ck_assert_uint_eq(field->type, STOUP_TYPE_U64);
		ck_assert_msg(stoup_schema_valid(&schema, &err) == 0, "%s", err.text);
		stoup_dbn_ts_out_fini(&schema);
	}
}
END_TEST

START_TEST(a_symbol_mapping_record_names_the_symbol)
{
	struct dbn_bytes dbn = {0};
	struct stoup_dbn_record record;
	char symbol[80];
	uint8_t *at = dbn_record(&dbn, 0x16, 80, 5, 1);
	memcpy(at + 38, "ESH1\0", 5);
	ck_assert_int_eq(stoup_dbn_record_next(at, 80, &record), 1);
	ck_assert_int_eq(stoup_dbn_mapped_symbol(&record, 1, symbol, sizeof(symbol)), 0);
	ck_assert_str_eq(symbol, "ESH1");
	ck_assert_int_eq(stoup_dbn_mapped_symbol(&record, 2, symbol, sizeof(symbol)), -EBADMSG);
	dbn.len = 0;
	at = dbn_record(&dbn, 0x16, 176, 5, 1);
	memset(at + 89, 'X', 71);
	ck_assert_int_eq(stoup_dbn_record_next(at, 176, &record), 1);
	ck_assert_int_eq(stoup_dbn_mapped_symbol(&record, 3, symbol, sizeof(symbol)), 0);
	ck_assert_uint_eq(strlen(symbol), 71);
	ck_assert_int_eq(stoup_dbn_mapped_symbol(&record, 3, symbol, 4), 0);
	ck_assert_str_eq(symbol, "XXX");
	dbn_free(&dbn);
}
END_TEST

START_TEST(dates_are_those_of_the_calendar)
{
	const uint64_t day_ns = 86400000000000u;
	ck_assert_uint_eq(stoup_dbn_date(0), 19700101);
	ck_assert_uint_eq(stoup_dbn_date(day_ns - 1), 19700101);
	ck_assert_uint_eq(stoup_dbn_date(day_ns), 19700102);
	ck_assert_uint_eq(stoup_dbn_date(951782400000000000u), 20000229);
	ck_assert_uint_eq(stoup_dbn_date(951868800000000000u), 20000301);
	ck_assert_uint_eq(stoup_dbn_date(1609160400000704060u), 20201228);
	ck_assert_uint_eq(stoup_dbn_date(1609459199999999999u), 20201231);
	ck_assert_uint_eq(stoup_dbn_date(1609459200000000000u), 20210101);
	ck_assert_uint_eq(stoup_dbn_date(4107542400000000000u), 21000301);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dbn");
	TCase *tcase = tcase_create("dbn");
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, a_prelude_gives_version_and_length);
	tcase_add_test(tcase, versions_other_than_1_to_3_are_refused_by_name);
	tcase_add_test(tcase, a_prelude_that_is_cut_or_too_short_is_refused);
	tcase_add_test(tcase, what_is_no_dbn_is_refused_with_its_reason);
	tcase_add_loop_test(tcase, metadata_of_each_version_give_the_same_facts, 1, 4);
	tcase_add_test(tcase, an_interval_holds_from_its_first_day_to_before_its_last);
	tcase_add_test(tcase, all_symbols_of_an_instrument_come_in_file_order);
	tcase_add_test(tcase, a_mapping_from_instrument_ids_is_read_the_other_way_round);
	tcase_add_test(tcase, symbols_that_are_no_instrument_id_map_nothing);
	tcase_add_test(tcase, a_symbol_that_fills_its_place_needs_no_nul);
	tcase_add_test(tcase, metadata_of_megabytes_map_every_symbol);
	tcase_add_test(tcase, metadata_may_come_in_pieces_of_any_length);
	tcase_add_test(tcase, counts_beyond_the_metadata_are_refused_with_their_offset);
	tcase_add_test(tcase, metadata_that_end_inside_their_tables_are_refused);
	tcase_add_test(tcase, a_schema_definition_is_refused);
	tcase_add_test(tcase, a_symbol_length_of_zero_is_refused);
	tcase_add_test(tcase, a_symbol_length_of_65535_is_read);
	tcase_add_test(tcase, a_record_header_is_read_from_any_alignment);
	tcase_add_test(tcase, a_record_is_whole_or_says_what_it_needs);
	tcase_add_test(tcase, every_record_type_has_the_schema_of_its_version);
	tcase_add_test(tcase, unknown_record_types_have_no_schema);
	tcase_add_test(tcase, schema_numbers_have_databento_s_names);
	tcase_add_test(tcase, ts_out_makes_every_schema_eight_bytes_longer);
	tcase_add_test(tcase, a_symbol_mapping_record_names_the_symbol);
	tcase_add_test(tcase, dates_are_those_of_the_calendar);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed_cnt = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed_cnt == 0 ? 0 : 1;
}
