/* SPDX-License-Identifier: Apache-2.0 */
/* test_schema_file.c - schemas that a user declares in a text file. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "producer/schema_file.h"

static struct stoup_schema_draft *parsed(const char *text)
{
	struct stoup_schema_draft *draft = NULL;
	struct stoup_error err;
	int rc = stoup_schema_text_parse(text, strlen(text), "q.schema", &draft, &err);

	ck_assert_msg(rc == 0, "%s", err.text);
	return draft;
}

static void assert_refused(const char *text, const char *message)
{
	struct stoup_schema_draft *draft = NULL;
	struct stoup_error err = {0};
	int rc = stoup_schema_text_parse(text, strlen(text), "q.schema", &draft, &err);

	ck_assert_msg(rc < 0, "accepted: %s", text);
	ck_assert_ptr_null(draft);
	ck_assert_msg(strncmp(err.text, "q.schema", 8) == 0, "%s", err.text);
	ck_assert_msg(strstr(err.text, message) != NULL, "\"%s\" lacks \"%s\"", err.text, message);
}

START_TEST(a_file_makes_a_schema)
{
	struct stoup_schema_draft *draft = parsed("# quotes of one pair\n"
						  "schema quote   # its name\n"
						  "key ts\r\n"
						  "\n"
						  "\tts i64 time\n"
						  "bid  i64 scale=-5 null=max unit=USD\n"
						  "side char\n"
						  "size u32 null=0\n"
						  "venue char[6]\n"
						  "delay i32 duration\n"
						  "_pad bytes[3] hidden");
	const struct stoup_schema *schema = &draft->schema;
	const struct stoup_field *bid = stoup_schema_field(schema, "bid");

	ck_assert_str_eq(schema->name, "quote");
	ck_assert_uint_eq(schema->field_cnt, 7);
	ck_assert_uint_eq(schema->align, 8);
	ck_assert_uint_eq(schema->flags, 0);
	ck_assert_uint_eq(schema->key_off, 0);
	ck_assert_uint_eq(schema->fields[0].flags, STOUP_FIELD_TIME | STOUP_FIELD_KEY);
	ck_assert_uint_eq(bid->off, 8);
	ck_assert_uint_eq(bid->type, STOUP_TYPE_I64);
	ck_assert_int_eq(bid->exp10, -5);
	ck_assert_uint_eq(bid->flags, STOUP_FIELD_NULL);
	ck_assert_uint_eq(bid->null_bits, INT64_MAX);
	ck_assert_str_eq(bid->unit, "USD");
	ck_assert_uint_eq(stoup_schema_field(schema, "side")->off, 16);
	ck_assert_uint_eq(stoup_schema_field(schema, "size")->off, 20);
	ck_assert_uint_eq(stoup_schema_field(schema, "size")->flags, STOUP_FIELD_NULL);
	ck_assert_uint_eq(stoup_schema_field(schema, "venue")->off, 24);
	ck_assert_uint_eq(stoup_schema_field(schema, "venue")->cnt, 6);
	ck_assert_uint_eq(stoup_schema_field(schema, "delay")->off, 32);
	ck_assert_uint_eq(stoup_schema_field(schema, "delay")->flags, STOUP_FIELD_DURATION);
	ck_assert_uint_eq(stoup_schema_field(schema, "_pad")->off, 36);
	ck_assert_uint_eq(stoup_schema_field(schema, "_pad")->flags, STOUP_FIELD_HIDDEN);
	ck_assert_uint_eq(schema->stride, 40);
	ck_assert_uint_eq(schema->hash, stoup_schema_hash(schema));
	stoup_schema_draft_destroy(draft);
}
END_TEST

START_TEST(offsets_stride_alignment_and_bars_can_be_said)
{
	struct stoup_schema_draft *draft =
		parsed("schema b.1\nkey t\nalign 64\nstride 128\nbar 1m\n"
		       "t time at=8\nc price scale=-4 at=16\n"
		       "field key u8\nfield bar f64\nfield schema u16 at=100\n");
	const struct stoup_schema *schema = &draft->schema;

	ck_assert_uint_eq(schema->align, 64);
	ck_assert_uint_eq(schema->stride, 128);
	ck_assert_uint_eq(schema->flags, STOUP_SCHEMA_BAR);
	ck_assert_uint_eq(schema->interval_ns, UINT64_C(60000000000));
	ck_assert_uint_eq(schema->key_off, 8);
	ck_assert_int_eq(stoup_schema_field(schema, "c")->exp10, -4);
	ck_assert_uint_eq(stoup_schema_field(schema, "c")->null_bits, INT64_MAX);
	ck_assert_uint_eq(stoup_schema_field(schema, "key")->off, 24);
	ck_assert_uint_eq(stoup_schema_field(schema, "bar")->off, 32);
	stoup_schema_draft_destroy(draft);
}
END_TEST

START_TEST(null_values_are_values_of_the_type)
{
	static const struct {
		const char *type, *null;
		uint64_t bits;
	} nulls[] = {
		{"u8", "max", 0xff},
		{"i8", "max", 0x7f},
		{"i8", "min", 0x80},
		{"i8", "-1", 0xff},
		{"i8", "-128", 0x80},
		{"u8", "min", 0},
		{"u16", "9999", 9999},
		{"u64", "max", UINT64_MAX},
		{"i64", "min", UINT64_C(0x8000000000000000)},
		{"u32", "max", UINT32_MAX},
		{"i64", "-9223372036854775808", UINT64_C(0x8000000000000000)},
		{"f64", "nan", UINT64_C(0x7ff8000000000000)},
		{"f32", "nan", 0x7fc00000},
		{"char", "0", 0},
	};

	for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
		char text[128];
		struct stoup_schema_draft *draft;

		(void)snprintf(text, sizeof text, "schema s\nkey ts\nts i64\nf %s null=%s\n",
			nulls[i].type, nulls[i].null);
		draft = parsed(text);
		ck_assert_msg(draft->fields[1].null_bits == nulls[i].bits, "%s null=%s: %llx",
			nulls[i].type, nulls[i].null,
			(unsigned long long)draft->fields[1].null_bits);
		ck_assert_uint_eq(draft->fields[1].flags, STOUP_FIELD_NULL);
		stoup_schema_draft_destroy(draft);
	}
}
END_TEST

START_TEST(mistakes_are_told_with_file_and_line)
{
	static const struct {
		const char *text, *message;
	} mistakes[] = {
		{"", "no line names the schema"},
		{"schema s\n", "no line names the key"},
		{"schema s\nkey ts\n", "the key ts is not one"},
		{"schema s\nkey x\nts i64\n", "the key x is not one"},
		{"schema s\nschema t\n", "line 2: a second schema"},
		{"key a\nkey b\n", "line 2: a second key"},
		{"schema S\nkey ts\nts i64\n", "schema name must be"},
		{"schema s\nkey ts\nts i63\n", "line 3: i63 is not a type"},
		{"schema s\nkey ts\nts char[0]\n", "line 3: char[0] is not a type"},
		{"schema s\nkey ts\nts char[4\n", "line 3: char[4 is not a type"},
		{"schema s\nkey ts\nts char[70000]\n", "line 3: char[70000] is not a type"},
		{"schema s\nkey ts\nts u32\n", "is the key, which must be i64 or u64"},
		{"schema s\nkey ts\nts i64 tme\n", "line 3: field ts: tme is not one of"},
		{"schema s\nkey ts\nts i64 scale\n", "line 3: field ts: scale is not one of"},
		{"schema s\nkey ts\nts i64\np i64 scale=-19\n",
			"line 4: field p: scale=-19 is not a"},
		{"schema s\nkey ts\nts i64\np i64 scale=1.5\n",
			"line 4: field p: scale=1.5 is not a"},
		{"schema s\nkey ts\nts i64\np u8 null=256\n",
			"line 4: field p: null=256 is not max"},
		{"schema s\nkey ts\nts i64\np u8 null=-1\n", "line 4: field p: null=-1 is not max"},
		{"schema s\nkey ts\nts i64\np i8 null=-129\n",
			"line 4: field p: null=-129 is not max"},
		{"schema s\nkey ts\nts i64\np i8 null=128\n",
			"line 4: field p: null=128 is not max"},
		{"schema s\nkey ts\nts i64\np f64 null=0\n", "line 4: field p: null=0 is not max"},
		{"schema s\nkey ts\nts i64\np char[2] null=0\n",
			"field p has a null value, which arrays"},
		{"schema s\nkey ts\nts i64\np i64 unit=123456789\n", "line 4: field p: unit="},
		{"schema s\nkey ts\nts i64\np i64 at=-8\n",
			"line 4: field p: at=-8 is not an offset"},
		{"schema s\nkey ts\nts i64\np i64 at=65535\n", "line 4: field p ends beyond"},
		{"schema s\nkey ts\nts i64\np i64 at=4\n", "field p overlaps field ts"},
		{"schema s\nkey ts\nts i64\nts i64\n", "two fields are named ts"},
		{"schema s\nkey ts\nts i64\nalign 3\n", "alignment 3"},
		{"schema s\nkey ts\nts i64\nalign 0\n", "line 4: 0 is not a number of bytes"},
		{"schema s\nkey ts\nts i64\nstride 12\n", "not a multiple of its alignment"},
		{"schema s\nkey ts\nts i64\nbar 1x\n", "line 4: 1x is not a length of time"},
		{"schema s\nkey ts\nts i64\nbar 0\n", "line 4: 0 is not a length of time"},
		{"schema s\nkey ts\nts\n", "line 3: \"ts\" is neither a directive"},
		{"schema s\nfield\n", "line 2: field needs"},
		{"schema s\nkey ts\nts i64 \"x\"\n", "is not one of"},
	};

	for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
		assert_refused(mistakes[i].text, mistakes[i].message);
}
END_TEST

START_TEST(long_words_names_and_lists_are_refused)
{
	char text[64000] = "schema s\nkey ts\nts i64\n";
	size_t head = strlen(text);

	memset(text + head, 'n', 36);
	strcpy(text + head + 36, " i64\n");
	assert_refused(text, "line 4: the name has more than 35");
	memset(text + head, 'n', 64);
	strcpy(text + head + 64, " i64\n");
	assert_refused(text, "line 4: has a word of more than 63");
	text[head] = '\0';
	strcpy(text + head,
		"p u8 time time time time time time time time time time time time time time time");
	assert_refused(text, "line 4: has more than 16 words");
	text[head] = '\0';
	for (int i = 0; i < 512; i++)
		(void)snprintf(text + strlen(text), 32, "f%d u8\n", i);
	assert_refused(text, "line 515: more than 512 fields");
	ck_assert_int_eq(stoup_schema_text_parse("a\0b c", 5, "q.schema", NULL, NULL), -EINVAL);
}
END_TEST

START_TEST(files_are_loaded_or_refused)
{
	static const char text[] = "schema f\nkey ts\nts i64\n";
	char dir[] = "/tmp/stoup-test-XXXXXX";
	char path[64];
	struct stoup_schema_draft *draft;
	struct stoup_error err;
	FILE *file;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof path, "%s/f.schema", dir);
	ck_assert_int_eq(stoup_schema_file_load(path, &draft, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, path));
	file = fopen(path, "w");
	ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
	(void)fclose(file);
	ck_assert_int_eq(stoup_schema_file_load(path, &draft, &err), 0);
	ck_assert_str_eq(draft->schema.name, "f");
	stoup_schema_draft_destroy(draft);
	ck_assert_int_eq(truncate(path, (256 << 10) + 1), 0);
	ck_assert_int_eq(stoup_schema_file_load(path, &draft, &err), -EFBIG);
	ck_assert_int_eq(stoup_schema_file_load(dir, &draft, &err), -EISDIR);
	(void)unlink(path);
	(void)rmdir(dir);
}
END_TEST

START_TEST(a_draft_is_built_field_by_field)
{
	struct stoup_field field = {.name = "ts", .off = STOUP_FIELD_OFF_NATURAL};
	struct stoup_schema_draft *draft;
	struct stoup_error err;

	ck_assert_int_eq(
		stoup_schema_draft_create("a-name-of-more-than-thirty-one-bytes", &draft, &err),
		-EINVAL);
	ck_assert_int_eq(stoup_schema_draft_create("q", &draft, &err), 0);
	ck_assert_int_eq(stoup_schema_draft_add(draft, &field, &err), -EINVAL);
	ck_assert_int_eq(stoup_schema_type_parse("u8x", 2, &field), 0);
	strcpy(field.name, "flag");
	ck_assert_int_eq(stoup_schema_draft_add(draft, &field, &err), 0);
	ck_assert_int_eq(stoup_schema_draft_finish(draft, "flag", &err), -EINVAL);
	draft->fields[0].flags = 0;
	draft->schema.stride = 0;
	ck_assert_int_eq(stoup_schema_type_parse("time", 4, &field), 0);
	strcpy(field.name, "ts");
	ck_assert_int_eq(stoup_schema_draft_add(draft, &field, &err), 0);
	ck_assert_int_eq(stoup_schema_draft_finish(draft, "ts", &err), 0);
	ck_assert_uint_eq(draft->schema.stride, 16);
	ck_assert_uint_eq(draft->schema.key_off, 8);
	ck_assert_int_eq(stoup_schema_type_parse("pric", 4, &field), -EINVAL);
	ck_assert_int_eq(stoup_schema_type_parse("", 0, &field), -EINVAL);
	stoup_schema_draft_destroy(draft);
	stoup_schema_draft_destroy(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("schema_file");
	TCase *tcase = tcase_create("schema_file");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, a_file_makes_a_schema);
	tcase_add_test(tcase, offsets_stride_alignment_and_bars_can_be_said);
	tcase_add_test(tcase, null_values_are_values_of_the_type);
	tcase_add_test(tcase, mistakes_are_told_with_file_and_line);
	tcase_add_test(tcase, long_words_names_and_lists_are_refused);
	tcase_add_test(tcase, files_are_loaded_or_refused);
	tcase_add_test(tcase, a_draft_is_built_field_by_field);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
