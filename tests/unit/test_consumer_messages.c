/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_messages.c - a span of messages without a pool: access, search, and columns of Arrow. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include "consumer/stoup_arrow.h"
#include "shm/message.h"

#define CNT 7u

static const char *const texts[CNT] = {
	"{}", "", "[1,2,3]", "\"\xc3\xa9\"", "0", "", "{\"a\":\"long enough\"}"};
static const int64_t keys[CNT] = {10, 10, 20, 20, 20, 30, 40};

static _Alignas(8) uint8_t run[1024];
static struct stoup_span span;
static struct stoup_error err;

static void make(const char *schema)
{
	uint32_t len = 0;

	for (uint32_t i = 0; i < CNT; i++)
		len += stoup_message_write(
			run + len, keys[i], texts[i], (uint32_t)strlen(texts[i]));
	len = stoup_message_run_end(run, len, CNT);
	span = (struct stoup_span){.base = run + len - 4 * CNT,
		.record_cnt = CNT,
		.stride = STOUP_MESSAGE_STRIDE,
		.ordinal = 100,
		.schema = stoup_schema_by_name(schema)};
}

/* A pointer to the exported function: it is not inlined. */
static struct stoup_message (*const volatile exported)(
	const struct stoup_span *, uint64_t) = stoup_message_at;

START_TEST(messages_are_read_inlined_and_exported)
{
	make("json");
	for (uint32_t i = 0; i < CNT; i++) {
		struct stoup_message message = stoup_message_at(&span, i),
				     other = exported(&span, i);

		ck_assert_int_eq(message.key, keys[i]);
		ck_assert_uint_eq(message.len, strlen(texts[i]));
		ck_assert_mem_eq(message.bytes, texts[i], message.len);
		ck_assert_ptr_eq(message.bytes, other.bytes);
		ck_assert_int_eq(message.key, other.key);
		ck_assert_uint_eq(message.len, other.len);
	}
}
END_TEST

START_TEST(a_span_is_cut_by_base_and_count)
{
	make("json");
	for (uint32_t first = 0; first < CNT; first++)
		for (uint32_t cnt = 0; first + cnt <= CNT; cnt++) {
			struct stoup_span part = span;

			part.base = (const uint8_t *)span.base + first * span.stride;
			part.record_cnt = cnt;
			for (int64_t key = 9; key <= 41; key++) {
				uint64_t i = 0;

				while (i < cnt && keys[first + i] < key)
					i++;
				ck_assert_uint_eq(stoup_message_bound(&part, key), i);
			}
			if (cnt > 0)
				ck_assert_int_eq(stoup_message_at(&part, 0).key, keys[first]);
		}
}
END_TEST

/* ---- Arrow ----------------------------------------------------------------------------------- */

static void check_array(const struct ArrowArray *array)
{
	const int64_t *times = array->children[0]->buffers[1];
	const int64_t *offsets = array->children[1]->buffers[1];
	const char *bytes = array->children[1]->buffers[2];

	ck_assert_int_eq(array->length, CNT);
	ck_assert_int_eq(array->n_children, 2);
	ck_assert_int_eq(array->children[0]->n_buffers, 2);
	ck_assert_int_eq(array->children[1]->n_buffers, 3);
	for (uint32_t i = 0; i < CNT; i++) {
		ck_assert_int_eq(times[i], keys[i]);
		ck_assert_int_eq(offsets[i + 1] - offsets[i], (int64_t)strlen(texts[i]));
		ck_assert_mem_eq(bytes + offsets[i], texts[i], strlen(texts[i]));
	}
}

START_TEST(messages_are_two_columns)
{
	static const struct {
		const char *schema;
		uint32_t flags;
		const char *key, *message;
	} forms[] = {{"json", 0, "tsn:UTC", "U"}, {"json", STOUP_ARROW_TEXT_BYTES, "tsn:UTC", "Z"},
		{"frames", STOUP_ARROW_TIME_INT, "l", "Z"}};
	struct ArrowSchema schema;
	struct ArrowArray array, moved;

	for (uint32_t i = 0; i < 3; i++) {
		make(forms[i].schema);
		ck_assert_int_eq(stoup_arrow_schema(span.schema, forms[i].flags, &schema, &err), 0);
		ck_assert_str_eq(schema.format, "+s");
		ck_assert_int_eq(schema.n_children, 2);
		ck_assert_str_eq(schema.children[0]->format, forms[i].key);
		ck_assert_str_eq(schema.children[1]->format, forms[i].message);
		ck_assert_str_eq(schema.children[0]->name, "key");
		ck_assert_str_eq(schema.children[1]->name, "message");
		schema.release(&schema);
		ck_assert_int_eq(stoup_arrow_array(&span, forms[i].flags, &array, &err), 0);
		check_array(&array);
		memset(run, 0xee, sizeof(run)); /* the columns are copies */
		check_array(&array);
		moved = *array.children[1];
		array.children[1]->release = NULL;
		array.release(&array);
		ck_assert(array.release == NULL);
		ck_assert_mem_eq(moved.buffers[2], "{}[1", 4);
		moved.release(&moved);
	}
}
END_TEST

START_TEST(what_is_no_text_is_no_column_of_texts)
{
	struct ArrowArray array = {.length = 77};

	make("json");
	run[24 + 16 + 16] ^= 0x80; /* the first byte of message 2 */
	ck_assert_int_eq(stoup_arrow_array(&span, 0, &array, &err), -EILSEQ);
	ck_assert_str_eq(
		err.text, "message 102 is not UTF-8; STOUP_ARROW_TEXT_BYTES gives its bytes");
	ck_assert_int_eq(array.length, 77);
	ck_assert_int_eq(stoup_arrow_array(&span, STOUP_ARROW_TEXT_BYTES, &array, &err), 0);
	array.release(&array);
	ck_assert_int_eq(stoup_arrow_array(&span, STOUP_ARROW_RECORDS, &array, &err), -ENOTSUP);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("messages of a span");
	TCase *tests = tcase_create("messages of a span");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_test(tests, messages_are_read_inlined_and_exported);
	tcase_add_test(tests, a_span_is_cut_by_base_and_count);
	tcase_add_test(tests, messages_are_two_columns);
	tcase_add_test(tests, what_is_no_text_is_no_column_of_texts);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
