/* SPDX-License-Identifier: Apache-2.0 */
/* test_schema.c - error texts, the hash, the check and the table of schemas, and the layouts of the
 * definitions against the same day in three versions of DBN.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "producer/input.h"
#include "shm/format.h"
#include "shm/stoup_types.h"

/* ---- errors ---------------------------------------------------------------------------------- */

START_TEST(an_error_returns_its_code_and_keeps_errno)
{
	struct stoup_error err = {0};

	errno = EPIPE;
	ck_assert_int_eq(stoup_error_set(&err, -EINVAL, "%s %d", "limit", 7), -EINVAL);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert_int_eq(err.code, -EINVAL);
	ck_assert_str_eq(err.text, "limit 7");
	ck_assert_int_eq(stoup_error_set(NULL, -EIO, "%s", "x"), -EIO);
	stoup_error_prefix(NULL, "x");
}
END_TEST

START_TEST(an_error_may_be_made_of_itself)
{
	struct stoup_error err;

	(void)stoup_error_set(&err, -EINVAL, "inner");
	(void)stoup_error_set(&err, -EIO, "outer %s outer", err.text);
	ck_assert_str_eq(err.text, "outer inner outer");
}
END_TEST

START_TEST(a_prefix_stands_in_front_and_the_end_is_cut)
{
	struct stoup_error err;
	char big[400];

	(void)stoup_error_set(&err, -EINVAL, "line 3");
	stoup_error_prefix(&err, "file %s", "a.csv");
	ck_assert_str_eq(err.text, "file a.csv: line 3");
	ck_assert_int_eq(err.code, -EINVAL);

	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	stoup_error_prefix(&err, "%s", big);
	ck_assert_uint_eq(strlen(err.text), STOUP_ERROR_TEXT_CAP - 1);
	(void)stoup_error_set(&err, -EINVAL, "%s", big);
	ck_assert_uint_eq(strlen(err.text), STOUP_ERROR_TEXT_CAP - 1);
	stoup_error_prefix(&err, "f");
	ck_assert_uint_eq(strlen(err.text), STOUP_ERROR_TEXT_CAP - 1);
	ck_assert_int_eq(strncmp(err.text, "f: xxx", 6), 0);
}
END_TEST

/* ---- hash ------------------------------------------------------------------------------------ */

static const struct stoup_field quote_fields[] = {
	{.name = "ts",
		.off = 0,
		.cnt = 1,
		.type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_TIME | STOUP_FIELD_KEY},
	{.name = "bid",
		.off = 8,
		.cnt = 1,
		.type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_NULL,
		.exp10 = -5,
		.null_bits = INT64_MAX,
		.unit = "USD"},
	{.name = "venue", .off = 16, .cnt = 4, .type = STOUP_TYPE_CHAR},
};

/* A schema that a test may spoil. */
struct quote {
	struct stoup_schema schema;
	struct stoup_field fields[4];
};

static void quote_init(struct quote *quote)
{
	memset(quote, 0, sizeof *quote);
	memcpy(quote->fields, quote_fields, sizeof quote_fields);
	strcpy(quote->schema.name, "quote");
	quote->schema.stride = 24;
	quote->schema.align = 8;
	quote->schema.field_cnt = 3;
	quote->schema.fields = quote->fields;
}

/* The expected value was computed by another program from the rule in stoup_types.h. */
START_TEST(the_hash_is_fnv_1a_of_the_layout)
{
	struct quote quote;

	quote_init(&quote);
	ck_assert_uint_eq(stoup_schema_hash(&quote.schema), UINT64_C(0x67f9725c8197ded3));
}
END_TEST

START_TEST(the_hash_ignores_units_alignment_and_itself)
{
	struct quote quote;
	uint64_t hash;

	quote_init(&quote);
	hash = stoup_schema_hash(&quote.schema);
	quote.schema.align = 64;
	quote.schema.hash = 99;
	strcpy(quote.fields[1].unit, "EUR");
	ck_assert_uint_eq(stoup_schema_hash(&quote.schema), hash);
}
END_TEST

START_TEST(the_hash_sees_every_part_of_the_layout)
{
	for (int part = 0; part < 13; part++) {
		struct quote quote;
		uint64_t before;

		quote_init(&quote);
		before = stoup_schema_hash(&quote.schema);
		switch (part) {
		case 0:
			quote.schema.name[0] = 'p';
			break;
		case 1:
			quote.schema.stride = 32;
			break;
		case 2:
			quote.schema.key_off = 8;
			break;
		case 3:
			quote.schema.flags = STOUP_SCHEMA_BAR;
			break;
		case 4:
			quote.schema.interval_ns = 1;
			break;
		case 5:
			quote.schema.field_cnt = 2;
			break;
		case 6:
			quote.fields[2].name[0] = 'V';
			break;
		case 7:
			quote.fields[2].off = 20;
			break;
		case 8:
			quote.fields[2].cnt = 3;
			break;
		case 9:
			quote.fields[0].type = STOUP_TYPE_U64;
			break;
		case 10:
			quote.fields[0].flags |= STOUP_FIELD_NULL;
			break;
		case 11:
			quote.fields[1].exp10 = -9;
			break;
		default:
			quote.fields[1].null_bits = 0;
			break;
		}
		ck_assert_msg(stoup_schema_hash(&quote.schema) != before, "part %d", part);
	}
}
END_TEST

/* ---- check ----------------------------------------------------------------------------------- */

static void assert_refused(const struct quote *quote, const char *text)
{
	struct stoup_error err = {0};

	ck_assert_int_eq(stoup_schema_valid(&quote->schema, &err), -EINVAL);
	ck_assert_int_eq(err.code, -EINVAL);
	ck_assert_msg(strstr(err.text, text) != NULL, "\"%s\" lacks \"%s\"", err.text, text);
}

START_TEST(a_good_schema_is_valid)
{
	struct stoup_error err;
	struct quote quote;

	quote_init(&quote);
	ck_assert_msg(stoup_schema_valid(&quote.schema, &err) == 0, "%s", err.text);
	memset(&quote.schema.name, 'n', STOUP_SCHEMA_NAME_CAP - 1);
	ck_assert_int_eq(stoup_schema_valid(&quote.schema, NULL), 0);
}
END_TEST

START_TEST(a_schema_with_a_bad_head_is_refused)
{
	static const char *const texts[] = {"1 to 31 characters", "1 to 31 characters",
		"power of two", "power of two", "multiple of its alignment", "within 1 to 65535",
		"within 1 to 65535", "unknown flags", "only bars", "fields, allowed are",
		"fields, allowed are", "aligned to 8", "aligned to 8", "marked as key, at 0",
		"messages of variable length"};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct quote quote;

		quote_init(&quote);
		switch (i) {
		case 0:
			quote.schema.name[0] = 'Q';
			break;
		case 1:
			memset(quote.schema.name, 'q', sizeof quote.schema.name);
			break;
		case 2:
			quote.schema.align = 0;
			break;
		case 3:
			quote.schema.align = 24;
			break;
		case 4:
			quote.schema.align = 16;
			break;
		case 5:
			quote.schema.stride = 0;
			break;
		case 6:
			quote.schema.stride = 65544;
			break;
		case 7:
			quote.schema.flags = 0x80;
			break;
		case 8:
			quote.schema.interval_ns = 1;
			break;
		case 9:
			quote.schema.field_cnt = 0;
			break;
		case 10:
			quote.schema.field_cnt = 513;
			break;
		case 11:
			quote.schema.align = 4;
			break;
		case 12:
			quote.schema.key_off = 4;
			break;
		case 13:
			quote.schema.key_off = 8;
			break;
		default:
			quote.schema.flags = STOUP_SCHEMA_VARIABLE;
			break;
		}
		assert_refused(&quote, texts[i]);
	}
}
END_TEST

START_TEST(a_schema_with_a_bad_field_is_refused_and_the_field_named)
{
	static const char *const texts[] = {"name of field 1", "name of field 1",
		"field bid has an unknown", "field bid has no elements", "field bid is an array",
		"field venue reaches beyond", "field venue reaches beyond",
		"field bid has reserved", "field bid has unknown flags", "field venue is a time",
		"field bid is both", "field venue has a scale", "scale outside",
		"field venue has a null", "wider than the field", "two fields are named bid",
		"field venue overlaps field bid at offset 15", "no field is marked", "has a unit"};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct quote quote;
		struct stoup_field *bid = &quote.fields[1], *venue = &quote.fields[2];

		quote_init(&quote);
		switch (i) {
		case 0:
			bid->name[0] = '\0';
			break;
		case 1:
			memset(bid->name, 'b', sizeof bid->name);
			break;
		case 2:
			bid->type = 13;
			break;
		case 3:
			bid->cnt = 0;
			break;
		case 4:
			bid->cnt = 2;
			break;
		case 5:
			venue->off = 21;
			break;
		case 6:
			venue->off = UINT32_MAX;
			break;
		case 7:
			bid->zero[1] = 1;
			break;
		case 8:
			bid->flags = 0x20;
			break;
		case 9:
			venue->flags = STOUP_FIELD_TIME;
			break;
		case 10:
			bid->exp10 = 0;
			bid->flags |= STOUP_FIELD_TIME | STOUP_FIELD_DURATION;
			break;
		case 11:
			venue->exp10 = -1;
			break;
		case 12:
			bid->exp10 = -19;
			break;
		case 13:
			venue->null_bits = 1;
			break;
		case 14:
			*venue = (struct stoup_field){.name = "venue",
				.off = 16,
				.cnt = 1,
				.type = STOUP_TYPE_U32,
				.flags = STOUP_FIELD_NULL,
				.null_bits = UINT64_C(0x100000000)};
			break;
		case 15:
			strcpy(venue->name, "bid");
			break;
		case 16:
			venue->off = 15;
			break;
		case 17:
			quote.fields[0].flags = STOUP_FIELD_TIME;
			break;
		default:
			bid->unit[1] = '\n';
			break;
		}
		assert_refused(&quote, texts[i]);
	}
}
END_TEST

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint32_t stride, key_off;
	uint64_t interval_s;
} expected[] = {
	{"mbo", 56, 40, 0},
	{"trades", 48, 32, 0},
	{"mbp-1", 80, 32, 0},
	{"tbbo", 80, 32, 0},
	{"mbp-10", 368, 32, 0},
	{"bbo-1s", 80, 32, 0},
	{"bbo-1m", 80, 32, 0},
	{"ohlcv-1s", 56, 8, 1},
	{"ohlcv-1m", 56, 8, 60},
	{"ohlcv-1h", 56, 8, 3600},
	{"ohlcv-1d", 56, 8, 86400},
	{"ohlcv-eod", 56, 8, 86400},
	{"status", 40, 16, 0},
	{"imbalance", 112, 16, 0},
	{"definition-v1", 360, 16, 0},
	{"definition-v2", 400, 16, 0},
	{"definition", 520, 16, 0},
	{"statistics-v1", 64, 16, 0},
	{"statistics", 80, 16, 0},
	{"cmbp-1", 80, 32, 0},
	{"tcbbo", 80, 32, 0},
	{"cbbo-1s", 80, 32, 0},
	{"cbbo-1m", 80, 32, 0},
	{"error-v1", 80, 8, 0},
	{"error", 320, 8, 0},
	{"symbol-mapping-v1", 80, 8, 0},
	{"symbol-mapping", 176, 8, 0},
	{"system-v1", 80, 8, 0},
	{"system", 320, 8, 0},
	{"event64", 64, 16, 0},
	{"tick", 24, 0, 0},
	{"bar", 48, 0, 0},
	{"json", 0, 0, 0},
	{"bipf", 0, 0, 0},
	{"itch50", 0, 0, 0},
	{"frames", 0, 0, 0},
	{"itch-mbo", 72, 0, 0},
	{"itch-trade", 56, 0, 0},
};

#define EXPECTED_CNT (sizeof expected / sizeof expected[0])

START_TEST(the_table_has_these_schemas)
{
	ck_assert_ptr_null(stoup_schema_builtin(EXPECTED_CNT));
	ck_assert_ptr_null(stoup_schema_by_name("mbp-2"));
	ck_assert_ptr_null(stoup_schema_by_name(""));
	for (size_t i = 0; i < EXPECTED_CNT; i++) {
		const struct stoup_schema *schema = stoup_schema_by_name(expected[i].name);

		ck_assert_msg(schema != NULL, "%s", expected[i].name);
		ck_assert_ptr_eq(schema, stoup_schema_builtin(i));
		ck_assert_uint_eq(schema->stride, expected[i].stride);
		ck_assert_uint_eq(schema->key_off, expected[i].key_off);
		ck_assert_uint_eq(schema->interval_ns, expected[i].interval_s * 1000000000u);
	}
}
END_TEST

START_TEST(every_builtin_is_valid_and_has_its_hash)
{
	const struct stoup_schema *schema = stoup_schema_builtin((size_t)_i);
	struct stoup_error err;

	ck_assert_msg(stoup_schema_valid(schema, &err) == 0, "%s", err.text);
	ck_assert_msg(schema->hash == stoup_schema_hash(schema),
		"%s: the layout changed: its hash is 0x%016llx now. A changed layout is a new "
		"schema",
		schema->name, (unsigned long long)stoup_schema_hash(schema));
	for (size_t i = 0; i < (size_t)_i; i++)
		ck_assert_uint_ne(stoup_schema_builtin(i)->hash, schema->hash);
}
END_TEST

START_TEST(fields_are_found_by_name)
{
	const struct stoup_schema *mbp10 = stoup_schema_by_name("mbp-10");

	ck_assert_uint_eq(stoup_schema_field(mbp10, "bid_px_00")->off, 48);
	ck_assert_uint_eq(stoup_schema_field(mbp10, "ask_ct_09")->off, 364);
	ck_assert_ptr_null(stoup_schema_field(mbp10, "bid_px_10"));
	ck_assert_ptr_null(stoup_schema_field(mbp10, "bid_px"));
}
END_TEST

START_TEST(types_have_their_lengths)
{
	static const uint32_t lens[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 1, 0};

	for (uint32_t type = 0; type < sizeof lens / sizeof lens[0]; type++)
		ck_assert_uint_eq(stoup_type_len(type), lens[type]);
	ck_assert_uint_eq(stoup_type_len(UINT32_MAX), 0);
}
END_TEST

/* ---- the manual ------------------------------------------------------------------------------ */

/* The row of a schema of messages: | `name` | - | what | */
static int is_message_row(const char *line)
{
	const struct stoup_schema *schema;
	char name[64];

	if (sscanf(line, "| `%63[^`]` | - |", name) != 1 || !strstr(line, "` | - |"))
		return 0;
	schema = stoup_schema_by_name(name);
	ck_assert_msg(schema != NULL, "%s is not a schema", name);
	ck_assert_uint_eq(schema->flags, STOUP_SCHEMA_VARIABLE);
	ck_assert_uint_eq(schema->align, 8);
	ck_assert_uint_eq(schema->field_cnt, 0);
	return 1;
}

/* The rows of the table in docs/schemas.md: | `name` | bytes | `key` | interval | what | `struct` | */
START_TEST(the_manual_lists_every_builtin_schema)
{
	const char *source = getenv("STOUP_SOURCE_DIR");
	char path[4096], line[1024], name[64], key[64];
	unsigned stride, row_cnt = 0;
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/docs/schemas.md", source ? source : ".");
	file = fopen(path, "r");
	ck_assert_msg(file != NULL, "%s cannot be read", path);
	while (fgets(line, sizeof line, file)) {
		const struct stoup_schema *schema;
		char interval[32] = "| |";

		row_cnt += (unsigned)is_message_row(line);
		if (sscanf(line, "| `%63[^`]` | %u | `%63[^`]` |", name, &stride, key) != 3)
			continue;
		schema = stoup_schema_by_name(name);
		ck_assert_msg(schema != NULL, "%s is not a schema", name);
		ck_assert_uint_eq(stride, schema->stride);
		ck_assert_msg(stoup_schema_field(schema, key) != NULL, "%s.%s", name, key);
		ck_assert_uint_eq(stoup_schema_field(schema, key)->off, schema->key_off);
		if (schema->interval_ns)
			(void)snprintf(interval, sizeof interval, "| %llu s |",
				(unsigned long long)(schema->interval_ns / 1000000000u));
		else if (schema->flags & STOUP_SCHEMA_BAR)
			(void)snprintf(interval, sizeof interval, "| given |");
		ck_assert_msg(strstr(line, interval) != NULL, "%s: no %s", name, interval);
		row_cnt++;
	}
	(void)fclose(file);
	ck_assert_uint_eq(row_cnt, EXPECTED_CNT);
}
END_TEST

/* ---- one day in three versions of DBN
 * --------------------------------------------------------- */

static const char *data_dir(void)
{
	static char path[4096];
	const char *dir = getenv("STOUP_DATA");
	const char *source = getenv("STOUP_SOURCE_DIR");

	if (dir)
		return dir;
	(void)snprintf(path, sizeof path, "%s/../shared/data", source ? source : ".");
	return path;
}

/* Read the two definitions of a file behind its metadata; 0 where the data is absent. */
static int definitions_read(int version, const struct stoup_schema *schema, uint8_t *records)
{
	struct stoup_input *input;
	struct stoup_error err;
	uint8_t head[8], skipped[65536];
	char path[4200];
	uint32_t len;

	(void)snprintf(path, sizeof path, "%s/dbn/definition.v%d.dbn.zst", data_dir(), version);
	if (stoup_input_open(path, &input, &err) == -ENOENT)
		return 0;
	ck_assert_int_eq(stoup_input_read(input, head, 8, &err), 8);
	ck_assert_int_eq(head[3], version);
	len = head[4] | (uint32_t)head[5] << 8 | (uint32_t)head[6] << 16;
	ck_assert_uint_le(len, sizeof skipped);
	ck_assert_int_eq(stoup_input_read(input, skipped, len, &err), len);
	len = 2 * schema->stride;
	ck_assert_int_eq(stoup_input_read(input, records, len, &err), len);
	ck_assert_int_eq(stoup_input_read(input, skipped, 1, &err), 0);
	stoup_input_close(input);
	return 1;
}

static void assert_same_text(const struct stoup_schema *a, const uint8_t *a_record,
	const struct stoup_schema *b, const uint8_t *b_record, unsigned *common_cnt)
{
	for (uint32_t i = 0; i < a->field_cnt; i++) {
		const struct stoup_field *a_field = &a->fields[i];
		const struct stoup_field *b_field = stoup_schema_field(b, a_field->name);
		char a_text[400], b_text[400];

		if (!b_field || a_field->flags & STOUP_FIELD_HIDDEN)
			continue;
		ck_assert_int_ge(stoup_format_field(a_field, a_record, a_text, sizeof a_text), 0);
		ck_assert_int_ge(stoup_format_field(b_field, b_record, b_text, sizeof b_text), 0);
		ck_assert_msg(strcmp(a_text, b_text) == 0, "%s of %s and %s: \"%s\" and \"%s\"",
			a_field->name, a->name, b->name, a_text, b_text);
		++*common_cnt;
	}
}

START_TEST(definitions_of_three_versions_say_the_same)
{
	static const char *const names[] = {"definition-v1", "definition-v2", "definition"};
	static _Alignas(8) uint8_t records[3][2 * 520];
	const struct stoup_schema *schemas[3];
	unsigned common_cnt = 0;
	char text[80];

	for (int i = 0; i < 3; i++) {
		schemas[i] = stoup_schema_by_name(names[i]);
		if (!definitions_read(i + 1, schemas[i], records[i]))
			return;
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_same_text(schemas[0], records[0] + i * 360, schemas[1], records[1] + i * 400,
			&common_cnt);
		assert_same_text(schemas[1], records[1] + i * 400, schemas[2], records[2] + i * 520,
			&common_cnt);
	}
	/* The 64 visible fields of version 1 are all in version 2; version 3 lacks four of them. */
	ck_assert_uint_eq(common_cnt, 2 * (64 + 60));
	(void)stoup_format_field(
		stoup_schema_field(schemas[2], "raw_symbol"), records[2], text, sizeof text);
	ck_assert_str_eq(text, "MSFT");
	(void)stoup_format_field(
		stoup_schema_field(schemas[2], "ts_event"), records[2], text, sizeof text);
	ck_assert_str_eq(text, "2021-10-04T07:07:21.618018154Z");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("schema");
	TCase *tcase = tcase_create("schema");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, an_error_returns_its_code_and_keeps_errno);
	tcase_add_test(tcase, an_error_may_be_made_of_itself);
	tcase_add_test(tcase, a_prefix_stands_in_front_and_the_end_is_cut);
	tcase_add_test(tcase, the_hash_is_fnv_1a_of_the_layout);
	tcase_add_test(tcase, the_hash_ignores_units_alignment_and_itself);
	tcase_add_test(tcase, the_hash_sees_every_part_of_the_layout);
	tcase_add_test(tcase, a_good_schema_is_valid);
	tcase_add_test(tcase, a_schema_with_a_bad_head_is_refused);
	tcase_add_test(tcase, a_schema_with_a_bad_field_is_refused_and_the_field_named);
	tcase_add_test(tcase, the_table_has_these_schemas);
	tcase_add_loop_test(tcase, every_builtin_is_valid_and_has_its_hash, 0, (int)EXPECTED_CNT);
	tcase_add_test(tcase, fields_are_found_by_name);
	tcase_add_test(tcase, types_have_their_lengths);
	tcase_add_test(tcase, the_manual_lists_every_builtin_schema);
	tcase_add_test(tcase, definitions_of_three_versions_say_the_same);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
