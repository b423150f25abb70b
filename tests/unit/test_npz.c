/* SPDX-License-Identifier: Apache-2.0 */
/* test_npz.c - NumPy files as `stoup cat` writes them: headers and the zip around them, byte for byte, also
 * beyond 4 GiB, where no test writes a file.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_npy.h"
#include "producer/npy.h"

#define NPY_LEN   UINT64_C(0x123456789)
#define HEAD_LEN  58u
#define ENTRY_LEN 54u /* of the directory: 46 and the name */

static uint64_t get(const uint8_t *at, size_t len)
{
	uint64_t value = 0;

	while (len-- > 0)
		value = value << 8 | at[len];
	return value;
}

START_TEST(the_checksum_is_that_of_zip_however_it_is_cut)
{
	static const char text[] = "123456789 and some more bytes than eight";
	uint32_t whole = stoup_npz_crc(0, text, sizeof(text) - 1);

	ck_assert_uint_eq(stoup_npz_crc(0, "123456789", 9), 0xcbf43926);
	ck_assert_uint_eq(stoup_npz_crc(0, "", 0), 0);
	for (size_t cut = 0; cut < sizeof(text); cut++)
		ck_assert_uint_eq(stoup_npz_crc(stoup_npz_crc(0, text, cut), text + cut,
					  sizeof(text) - 1 - cut),
			whole);
}
END_TEST

START_TEST(a_small_file_has_its_sizes_in_the_old_places)
{
	uint8_t zip[STOUP_NPZ_CAP];
	size_t len = stoup_npz_head(1000, 0xaabbccdd, zip);

	ck_assert_uint_eq(len, HEAD_LEN);
	ck_assert_mem_eq(zip, "PK\3\4", 4);
	ck_assert_uint_eq(get(zip + 8, 2), 0); /* stored */
	ck_assert_uint_eq(get(zip + 14, 4), 0xaabbccdd);
	ck_assert_mem_eq(zip + 30, "data.npy", 8);
	ck_assert_uint_eq(get(zip + 38, 2), 1); /* zip64: the sizes */
	ck_assert_uint_eq(get(zip + 42, 8), 1000);
	ck_assert_uint_eq(get(zip + 50, 8), 1000);
	len = stoup_npz_tail(1000, 0xaabbccdd, zip);
	ck_assert_uint_eq(len, ENTRY_LEN + 22);
	ck_assert_mem_eq(zip, "PK\1\2", 4);
	ck_assert_uint_eq(get(zip + 16, 4), 0xaabbccdd);
	ck_assert_uint_eq(get(zip + 20, 4), 1000);
	ck_assert_uint_eq(get(zip + 24, 4), 1000);
	ck_assert_uint_eq(get(zip + 42, 4), 0);
	ck_assert_mem_eq(zip + ENTRY_LEN, "PK\5\6", 4);
	ck_assert_uint_eq(get(zip + ENTRY_LEN + 12, 4), ENTRY_LEN);
	ck_assert_uint_eq(get(zip + ENTRY_LEN + 16, 4), HEAD_LEN + 1000);
}
END_TEST

START_TEST(from_4_gib_on_sizes_and_offsets_have_64_bits)
{
	uint8_t zip[STOUP_NPZ_CAP];
	const uint8_t *end64 = zip + ENTRY_LEN + 20, *locator = end64 + 56, *end = locator + 20;
	size_t len = stoup_npz_tail(NPY_LEN, 1, zip);

	ck_assert_uint_eq(len, (size_t)(end + 22 - zip));
	ck_assert_uint_eq(get(zip + 20, 4), 0xffffffff);
	ck_assert_uint_eq(get(zip + 24, 4), 0xffffffff);
	ck_assert_uint_eq(get(zip + 30, 2), 20);
	ck_assert_uint_eq(get(zip + ENTRY_LEN, 2), 1);
	ck_assert_uint_eq(get(zip + ENTRY_LEN + 4, 8), NPY_LEN);
	ck_assert_uint_eq(get(zip + ENTRY_LEN + 12, 8), NPY_LEN);
	ck_assert_mem_eq(end64, "PK\6\6", 4);
	ck_assert_uint_eq(get(end64 + 4, 8), 44);
	ck_assert_uint_eq(get(end64 + 24, 8), 1);
	ck_assert_uint_eq(get(end64 + 32, 8), 1);
	ck_assert_uint_eq(get(end64 + 40, 8), ENTRY_LEN + 20);
	ck_assert_uint_eq(get(end64 + 48, 8), HEAD_LEN + NPY_LEN);
	ck_assert_mem_eq(locator, "PK\6\7", 4);
	ck_assert_uint_eq(get(locator + 8, 8), HEAD_LEN + NPY_LEN + ENTRY_LEN + 20);
	ck_assert_uint_eq(get(locator + 16, 4), 1);
	ck_assert_mem_eq(end, "PK\5\6", 4);
	ck_assert_uint_eq(get(end + 16, 4), 0xffffffff);
}
END_TEST

/* What is written is what is read: each built-in schema, and one with so many fields that 16 bits are too
 * few for the header. */
START_TEST(the_header_of_each_schema_reads_as_its_fields)
{
	static struct stoup_field many[STOUP_SCHEMA_FIELD_CAP];
	static struct stoup_npy npy;
	struct stoup_schema long_one = {.name = "long", .align = 8, .fields = many};
	const struct stoup_schema *schema;
	struct stoup_error err;
	int wide = 0;

	for (uint32_t i = 0; i < STOUP_SCHEMA_FIELD_CAP; i++) {
		many[i] = (struct stoup_field){.off = 8 * i, .cnt = 1, .type = STOUP_TYPE_F64};
		snprintf(many[i].name, sizeof(many[i].name), "a_name_of_thirty_five_characters_%u",
			i % 100);
		if (i >= 100)
			snprintf(many[i].name, sizeof(many[i].name), "another_of_as_many_%013u", i);
	}
	long_one.field_cnt = STOUP_SCHEMA_FIELD_CAP;
	long_one.stride = 8 * STOUP_SCHEMA_FIELD_CAP;
	for (size_t i = 0; !wide; i++) {
		struct stoup_npy_prelude prelude;
		uint32_t found = 0;
		int64_t len;
		char *head;

		schema = stoup_schema_builtin(i);
		if (schema && schema->stride == 0) /* messages have no columns */
			continue;
		wide = schema == NULL;
		schema = schema ? schema : &long_one;
		len = stoup_npy_head(schema, 12345678901234, &head);
		ck_assert_int_eq(len % 64, 0);
		ck_assert_int_eq(
			stoup_npy_prelude((const uint8_t *)head, (size_t)len, &prelude, &err), 0);
		ck_assert_int_eq(prelude.header_off + prelude.header_len, len);
		ck_assert_int_eq(head[len - 1], '\n');
		ck_assert_msg(stoup_npy_header(head + prelude.header_off, prelude.header_len, 10,
				      &npy, &err) == 0,
			"%s: %s", schema->name, err.text);
		ck_assert_uint_eq(npy.row_cnt, 12345678901234);
		ck_assert_uint_eq(npy.stride, schema->stride);
		for (uint32_t f = 0; f < npy.field_cnt; f++) {
			const struct stoup_field *field;

			if (!npy.fields[f].name[0])
				continue;
			field = stoup_schema_field(schema, npy.fields[f].name);
			ck_assert_ptr_nonnull(field);
			ck_assert_uint_eq(field->off, npy.fields[f].off);
			ck_assert_uint_eq(field->type, npy.fields[f].type);
			ck_assert_uint_eq(field->cnt, npy.fields[f].cnt);
			found++;
		}
		ck_assert_uint_eq(found, schema->field_cnt);
		free(head);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("npz");
	TCase *tcase = tcase_create("npz");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, the_checksum_is_that_of_zip_however_it_is_cut);
	tcase_add_test(tcase, a_small_file_has_its_sizes_in_the_old_places);
	tcase_add_test(tcase, from_4_gib_on_sizes_and_offsets_have_64_bits);
	tcase_add_test(tcase, the_header_of_each_schema_reads_as_its_fields);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
