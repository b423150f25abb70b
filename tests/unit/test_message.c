/* SPDX-License-Identifier: Apache-2.0 */
/* test_message.c - message runs: what is written passes the check, and no change of a byte that means
 * something does. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include "shm/message.h"

#define CNT_CAP 64u

/* A run on the heap, of exactly its length: a read beyond it is seen by a sanitizer. */
struct made {
	struct stoup_message_run run;
	uint8_t *bytes;
};

static struct made make(uint32_t cnt, const uint32_t *lens, const int64_t *keys)
{
	struct made made = {0};
	uint32_t len = 0;

	for (uint32_t i = 0; i < cnt; i++)
		len += stoup_message_unit_len(lens[i]);
	made.run.len = len + stoup_message_table_len(cnt);
	made.bytes = aligned_alloc(8, made.run.len);
	memset(made.bytes, 0xee, made.run.len);
	len = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		uint8_t *text = malloc(lens[i] + 1);

		memset(text, 'a' + (int)(i % 26), lens[i] + 1);
		len += stoup_message_write(made.bytes + len, keys[i], text, lens[i]);
		free(text);
	}
	ck_assert_uint_eq(stoup_message_run_end(made.bytes, len, cnt), made.run.len);
	made.run.base = made.bytes;
	made.run.cnt = cnt;
	made.run.first_key = keys[0];
	made.run.last_key = keys[cnt - 1];
	return made;
}

static const uint32_t lens[] = {3, 0, 8, 1, 17};
static const int64_t keys[] = {5, 5, 6, 9, 9};

static struct made make_five(void)
{
	return make(5, lens, keys);
}

/* ---- what is right --------------------------------------------------------------------------- */

START_TEST(what_was_written_passes_and_is_read_back)
{
	uint32_t some[CNT_CAP];
	int64_t times[CNT_CAP];
	uint64_t state = 7;

	for (uint32_t cnt = 1; cnt <= CNT_CAP; cnt++) {
		struct made made;
		struct stoup_error err;
		uint32_t table;

		for (uint32_t i = 0; i < cnt; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			some[i] = (uint32_t)(state >> 33) % 40;
			times[i] = 100 + i / 2;
		}
		made = make(cnt, some, times);
		ck_assert_uint_eq(made.run.len % 8, 0);
		ck_assert_msg(stoup_message_run_check(&made.run, &err) == 0, "%s", err.text);
		table = (uint32_t)made.run.len - 4 * cnt;
		for (uint32_t i = 0; i < cnt; i++) {
			const struct stoup_message_head *head =
				stoup_message_head_of(made.bytes + table + 4 * i);

			ck_assert_int_eq(head->key, times[i]);
			ck_assert_uint_eq(head->len, some[i]);
			for (uint32_t b = 0; b < some[i]; b++)
				ck_assert_uint_eq(((const uint8_t *)(head + 1))[b], 'a' + i % 26);
		}
		free(made.bytes);
	}
}
END_TEST

/* The layout of docs/volume-format.md, byte for byte. */
START_TEST(a_run_is_laid_out_as_documented)
{
	static const uint8_t expected[] = {5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'a',
		'a', 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0,
		0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 0, 0, 0, 0,
		68, 0, 0, 0, 48, 0, 0, 0, 36, 0, 0, 0};
	struct made made = make(3, lens, keys);

	ck_assert_uint_eq(made.run.len, sizeof(expected));
	ck_assert_mem_eq(made.bytes, expected, sizeof(expected));
	free(made.bytes);
}
END_TEST

START_TEST(a_run_is_found_by_its_table_in_a_block)
{
	struct made made = make_five();
	struct stoup_message_run block = made.run;
	uint8_t *bytes = aligned_alloc(8, 48 + made.run.len + 16);
	struct stoup_error err = {0};
	uint64_t table = 48 + made.run.len - 20;

	memset(bytes, 0x11, 48 + made.run.len + 16);
	memcpy(bytes + 48, made.bytes, made.run.len);
	block.base = bytes;
	block.len = 48 + made.run.len + 16;
	ck_assert_msg(stoup_message_table_check(&block, table, &err) == 0, "%s", err.text);
	ck_assert_int_eq(stoup_message_table_check(&block, table + 4, NULL), -EBADMSG);
	ck_assert_int_eq(stoup_message_table_check(&block, block.len - 8, NULL), -EBADMSG);
	ck_assert_int_eq(stoup_message_table_check(&block, UINT64_MAX, NULL), -EBADMSG);
	block.cnt = 0;
	ck_assert_int_eq(stoup_message_table_check(&block, table, NULL), -EBADMSG);
	block.cnt = UINT64_MAX;
	ck_assert_int_eq(stoup_message_table_check(&block, table, NULL), -EBADMSG);
	block.cnt = 5;
	memset(bytes + table, 0xff, 4);
	ck_assert_int_eq(stoup_message_table_check(&block, table, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.text, "to before the block"));
	free(bytes);
	free(made.bytes);
}
END_TEST

START_TEST(kept_order_takes_the_greatest_key_so_far)
{
	static const int64_t wild[] = {4, 9, 2, 9, 7};
	struct made made = make(5, lens, wild);

	made.run.last_key = 9;
	ck_assert_int_eq(stoup_message_run_check(&made.run, NULL), -EBADMSG);
	made.run.keeps_order = 1;
	ck_assert_int_eq(stoup_message_run_check(&made.run, NULL), 0);
	made.run.first_key = 5; /* of a segment behind others */
	ck_assert_int_eq(stoup_message_run_check(&made.run, NULL), 0);
	made.run.first_key = 3;
	ck_assert_int_eq(stoup_message_run_check(&made.run, NULL), -EBADMSG);
	made.run.first_key = 5;
	made.run.last_key = 10;
	ck_assert_int_eq(stoup_message_run_check(&made.run, NULL), -EBADMSG);
	free(made.bytes);
}
END_TEST

/* ---- what is damaged ------------------------------------------------------------------------- */

static int is_content(uint32_t off)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < 5; at += stoup_message_unit_len(lens[i++]))
		if (off >= at + 16 && off < at + 16 + lens[i])
			return 1;
	return 0;
}

/* A length may grow into its own padding: zeros that were put are not told from zeros that were added. The hash
 * of the block is there for that. */
static int is_longer(const struct made *made, uint32_t off)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < 5; at += stoup_message_unit_len(lens[i++])) {
		uint32_t len;

		memcpy(&len, made->bytes + at + 8, sizeof(len));
		if (off == at + 8)
			return len > lens[i] &&
			       stoup_message_unit_len(len) == stoup_message_unit_len(lens[i]);
	}
	return 0;
}

/* Bytes of the messages are free; of keys between others only what keeps their order. */
START_TEST(no_other_byte_can_change)
{
	struct made made = make_five();

	for (uint32_t off = 0; off < made.run.len; off++)
		for (uint32_t bit = 0; bit < 8; bit++) {
			int rc, longer;

			made.bytes[off] ^= (uint8_t)(1u << bit);
			longer = is_longer(&made, off);
			rc = stoup_message_run_check(&made.run, NULL);
			made.bytes[off] ^= (uint8_t)(1u << bit);
			if (is_content(off) || longer)
				ck_assert_int_eq(rc, 0);
			/* The keys 5 (second), 6 and 9 may become others between 5 and 9. */
			else if ((off == 24 || off == 40 || off == 64) && rc == 0)
				continue;
			else
				ck_assert_msg(rc == -EBADMSG, "bit %u of byte %u", bit, off);
		}
	free(made.bytes);
}
END_TEST

static const struct {
	uint32_t off, len;
	uint32_t value;
	const char *text;
} faults[] = {
	{0, 4, 105,
		"message 0 of 5 is to begin at byte 0 of its run, but its table entry leads 105 bytes "
		"back, not 132"},
	{8, 4, 200, "message 0 at byte 0 of its run: 200 bytes reach into the table at 132"},
	{8, 4, UINT32_MAX,
		"message 0 at byte 0 of its run: 4294967295 bytes reach into the table at 132"},
	{12, 4, 1, "message 0 at byte 0 of its run: the end of its head is not zero"},
	{20, 1, 1, "message 0 at byte 0 of its run: its padding is not zero"},
	{24, 1, 4, "message 1 at byte 24 of its run: key 4 is before 5"},
	{0, 1, 4, "the first message of a run has key 4, the index says 5"},
	{88, 1, 10, "the last message of a run has key 10, the index says 9"},
	{0, 1, 1, ""},
};

START_TEST(faults_are_named)
{
	struct made made = make_five();
	struct stoup_error err = {0};
	uint32_t table = (uint32_t)made.run.len - 20;
	uint32_t off = _i == 0 ? table : faults[_i].off;

	if (_i == 8) { /* the padding in front of the table */
		made.bytes[table - 4] = 1;
		ck_assert_int_eq(stoup_message_run_check(&made.run, &err), -EBADMSG);
		ck_assert_ptr_nonnull(strstr(err.text, "the padding before a run's table"));
	} else {
		memcpy(made.bytes + off, &faults[_i].value, faults[_i].len);
		ck_assert_int_eq(stoup_message_run_check(&made.run, &err), -EBADMSG);
		ck_assert_str_eq(err.text, faults[_i].text);
	}
	free(made.bytes);
}
END_TEST

START_TEST(lengths_and_counts_are_not_believed)
{
	struct made made = make_five();

	for (uint64_t cnt = 0; cnt < 40; cnt++) {
		made.run.cnt = cnt;
		ck_assert_int_eq(stoup_message_run_check(&made.run, NULL), cnt == 5 ? 0 : -EBADMSG);
	}
	made.run.cnt = UINT64_MAX / 4;
	ck_assert_int_eq(stoup_message_run_check(&made.run, NULL), -EBADMSG);
	made.run.cnt = 5;
	for (uint64_t len = 0; len < made.run.len; len++) {
		struct stoup_message_run cut = made.run;

		cut.len = len;
		ck_assert_int_eq(stoup_message_run_check(&cut, NULL), -EBADMSG);
	}
	free(made.bytes);
}
END_TEST

START_TEST(hashes_tell_messages_apart)
{
	static const uint32_t some[] = {0, 1, 2, 8, 9};
	struct made made = make(5, some, keys), other;
	uint64_t hash[5];
	uint32_t table = (uint32_t)made.run.len - 20;

	for (uint32_t i = 0; i < 5; i++)
		hash[i] = stoup_message_hash(stoup_message_head_of(made.bytes + table + 4 * i));
	for (uint32_t i = 0; i < 5; i++)
		for (uint32_t k = 0; k < i; k++)
			ck_assert_uint_ne(hash[i], hash[k]);
	other = make(5, some, keys);
	for (uint32_t i = 0; i < 5; i++)
		ck_assert_uint_eq(hash[i],
			stoup_message_hash(stoup_message_head_of(other.bytes + table + 4 * i)));
	free(made.bytes);
	free(other.bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("message runs");
	TCase *tests = tcase_create("message runs");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_test(tests, what_was_written_passes_and_is_read_back);
	tcase_add_test(tests, a_run_is_laid_out_as_documented);
	tcase_add_test(tests, a_run_is_found_by_its_table_in_a_block);
	tcase_add_test(tests, kept_order_takes_the_greatest_key_so_far);
	tcase_add_test(tests, no_other_byte_can_change);
	tcase_add_loop_test(tests, faults_are_named, 0, (int)(sizeof(faults) / sizeof(faults[0])));
	tcase_add_test(tests, lengths_and_counts_are_not_believed);
	tcase_add_test(tests, hashes_tell_messages_apart);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
