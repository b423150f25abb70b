/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_messages.c - the sink with messages of any length: what was put is what is stored. */
#include <check.h>
#include "message_fixture.h"

/* ---- storing --------------------------------------------------------------------------------- */

START_TEST(messages_come_back_byte_for_byte)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	uint32_t series = mx_series_of(import, "X/btc/json", "json");
	struct mx_list list;

	for (uint64_t id = 0; id < 40000; id++)
		mx_put(import, series, id, (int64_t)(1000 + id / 3));
	fx_finish(import);
	fx_verify();
	list = mx_read("X/btc/json", "json");
	ck_assert_uint_eq(list.cnt, 40000);
	for (uint64_t id = 0; id < 40000; id++)
		mx_check(&list.at[id], id, (int64_t)(1000 + id / 3), mx_len(id));
	ck_assert_uint_gt(list.block_cnt, 20);
	ck_assert_uint_eq(list.segment_cnt, list.block_cnt);
	ck_assert_uint_le(list.raw_len_max, options.block_len);
	ck_assert_uint_gt(list.raw_len_max, options.block_len / 10 * 9);
	mx_free(&list);
}
END_TEST

/* The longest, one beyond it, those around the length of a block, and none. */
START_TEST(a_message_may_be_as_long_as_a_block_and_longer)
{
	static const uint32_t lens[] = {0, 1, 7, 8, 9, (64 << 10) - 25, (64 << 10) - 24,
		(64 << 10) - 23, 64 << 10, 1 << 20, STOUP_MESSAGE_LEN_CAP - 1,
		STOUP_MESSAGE_LEN_CAP, 0, 3};
	const size_t cnt = sizeof(lens) / sizeof(lens[0]);
	struct stoup_import_options options = fx_options();
	struct stoup_import *import;
	struct stoup_error err = {0};
	struct mx_list list;
	uint32_t series;

	options.memory_len = 256 << 10; /* less than one of them */
	options.encoding = (struct stoup_encoding){
		.codec = _i ? STOUP_CODEC_NONE : STOUP_CODEC_ZSTD, .level = _i ? 0 : 1};
	import = fx_begin(&options);
	series = mx_series_of(import, "X/y/frames", "frames");
	for (size_t i = 0; i < cnt; i++)
		mx_put_len(import, series, i, 77, lens[i]);
	ck_assert_int_eq(
		mx_try_put(import, series, 9, 77, STOUP_MESSAGE_LEN_CAP + 1, &err), -EMSGSIZE);
	ck_assert_str_eq(err.text,
		"in.jsonl:9: a message of 4194241 bytes; at most 4194240 are stored: split it, or "
		"leave it out");
	fx_finish(import);
	fx_verify();
	list = mx_read("X/y/frames", "frames");
	ck_assert_uint_eq(list.cnt, cnt);
	for (size_t i = 0; i < cnt; i++)
		mx_check(&list.at[i], i, 77, lens[i]);
	ck_assert_uint_le(list.raw_len_max, 4u << 20);
	mx_free(&list);
}
END_TEST

/* Series of messages of two schemas and of records, mixed, through many runs and several volumes. */
START_TEST(messages_and_records_share_an_ingest)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import;
	uint64_t cnt = 60000, at[8] = {0};
	uint32_t series[8], s;
	struct mx_list lists[8];
	char name[32];

	options.memory_len = 256 << 10;
	options.volume_len = 300 << 10;
	import = fx_begin(&options);
	for (s = 0; s < 8; s++) {
		snprintf(name, sizeof(name), "X/s%u/a", s);
		series[s] = s % 3 == 2 ? fx_series(import, name)
		                       : mx_series_of(import, name, s % 3 ? "frames" : "json");
	}
	for (uint64_t id = 0; id < cnt; id++) {
		s = (uint32_t)(fx_mix(id) % 8);
		if (s % 3 == 2)
			fx_put(import, series[s], id, (int64_t)(5 + id / 7));
		else
			mx_put(import, series[s], id, (int64_t)(5 + id / 7));
	}
	fx_finish(import);
	fx_verify();
	for (s = 0; s < 8; s++) {
		snprintf(name, sizeof(name), "X/s%u/a", s);
		if (s % 3 != 2)
			lists[s] = mx_read(name, s % 3 ? "frames" : "json");
	}
	for (uint64_t id = 0; id < cnt; id++) {
		s = (uint32_t)(fx_mix(id) % 8);
		if (s % 3 == 2)
			continue;
		ck_assert_uint_lt(at[s], lists[s].cnt);
		mx_check(&lists[s].at[at[s]++], id, (int64_t)(5 + id / 7), mx_len(id));
	}
	for (s = 0; s < 8; s++) {
		if (s % 3 == 2)
			continue;
		ck_assert_uint_eq(at[s], lists[s].cnt);
		mx_free(&lists[s]);
	}
	ck_assert_int_gt(fx_file_cnt("00000001-"), 5);
}
END_TEST

/* A thousand small series: their runs share blocks. */
START_TEST(small_series_of_messages_share_blocks)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	struct stoup_store *store;
	uint32_t block_cnt = 0;
	char name[32];

	for (uint64_t id = 0; id < 3000; id++) {
		snprintf(name, sizeof(name), "X/s%03u/frames", (unsigned)(id % 1000));
		mx_put(import, mx_series_of(import, name, "frames"), id, (int64_t)id + 1);
	}
	fx_finish(import);
	fx_verify();
	for (unsigned s = 0; s < 1000; s += 37) {
		struct mx_list list;

		snprintf(name, sizeof(name), "X/s%03u/frames", s);
		list = mx_read(name, "frames");
		ck_assert_uint_eq(list.cnt, 3);
		for (uint64_t i = 0; i < 3; i++)
			mx_check(&list.at[i], s + i * 1000, (int64_t)(s + i * 1000) + 1,
				mx_len(s + i * 1000));
		mx_free(&list);
	}
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	for (uint32_t v = 0; v < store->volume_cnt; v++)
		block_cnt += store->volumes[v]->index->block_cnt;
	stoup_store_close(store);
	ck_assert_uint_lt(block_cnt, 12);
}
END_TEST

/* ---- order ----------------------------------------------------------------------------------- */

static int64_t wild_key(uint64_t id)
{
	return (int64_t)(fx_mix(id) % 500) + 1;
}

START_TEST(a_step_back_is_refused_sorted_or_kept)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	uint32_t series = mx_series_of(import, "X/y/json", "json");
	struct stoup_error err = {0};

	mx_put(import, series, 1, 20);
	ck_assert_int_eq(mx_try_put(import, series, 2, 19, 5, &err), -EILSEQ);
	ck_assert_ptr_nonnull(
		strstr(err.text, "in.jsonl:2: 1970-01-01T00:00:00.000000019Z is before"));
	ck_assert_int_eq(mx_try_put(import, series, 2, 0, 5, &err), -ERANGE);
	ck_assert_int_eq(mx_try_put(import, series, 2, INT64_MAX, 5, &err), -ERANGE);
	stoup_import_destroy(import);
	ck_assert_int_eq(fx_file_cnt("0000"), 0);
}
END_TEST

/* Against a stable sort of all, through merges of many runs. */
START_TEST(sorting_is_stable_over_runs)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import;
	struct mx_list list;
	size_t at = 0;
	uint32_t series;

	options.memory_len = 256 << 10;
	options.order = STOUP_ORDER_SORT;
	import = fx_begin(&options);
	series = mx_series_of(import, "X/y/json", "json");
	for (uint64_t id = 0; id < 20000; id++)
		mx_put(import, series, id, wild_key(id));
	fx_finish(import);
	fx_verify();
	list = mx_read("X/y/json", "json");
	ck_assert_uint_eq(list.cnt, 20000);
	for (int64_t key = 1; key <= 500; key++)
		for (uint64_t id = 0; id < 20000; id++)
			if (wild_key(id) == key)
				mx_check(&list.at[at++], id, key, mx_len(id));
	ck_assert_uint_eq(at, 20000);
	mx_free(&list);
}
END_TEST

START_TEST(kept_order_keeps_messages_and_their_keys)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import;
	struct stoup_store *store;
	struct mx_list list;
	uint32_t series;

	options.order = STOUP_ORDER_KEEP;
	options.memory_len = 256 << 10;
	import = fx_begin(&options);
	series = mx_series_of(import, "X/y/json", "json");
	for (uint64_t id = 0; id < 20000; id++)
		mx_put(import, series, id, wild_key(id));
	fx_finish(import);
	fx_verify();
	list = mx_read("X/y/json", "json");
	ck_assert_uint_eq(list.cnt, 20000);
	for (uint64_t id = 0; id < 20000; id++)
		mx_check(&list.at[id], id, wild_key(id), mx_len(id));
	mx_free(&list);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->volumes[0]->index->series[0].flags, STOUP_VOL_SERIES_KEEP_ORDER);
	ck_assert_int_eq(store->volumes[0]->index->series[0].last_key, 500);
	stoup_store_close(store);
}
END_TEST

/* ---- replacing ------------------------------------------------------------------------------- */

static void ingest_range(
	const struct stoup_import_options *options, uint64_t id, int64_t first, int64_t last)
{
	struct stoup_import *import = fx_begin(options);
	uint32_t series = mx_series_of(import, "X/y/json", "json");
	uint32_t other = mx_series_of(import, "X/z/json", "json");

	for (int64_t key = first; key <= last; key++) {
		mx_put(import, series, id + (uint64_t)key, key);
		if (!options->replace)
			mx_put(import, other, id + 3 * (uint64_t)key, key);
	}
	fx_finish(import);
}

START_TEST(replacing_keeps_old_messages_outside_of_the_range)
{
	struct stoup_import_options options = fx_options();
	struct mx_list list;
	struct stoup_error err = {0};
	struct stoup_import *import;

	ingest_range(&options, 0, 1, 9000);
	import = fx_begin(&options);
	ck_assert_int_eq(
		mx_try_put(import, mx_series_of(import, "X/y/json", "json"), 1, 3000, 4, &err),
		-EEXIST);
	stoup_import_destroy(import);
	options.replace = 1;
	ingest_range(&options, 100000, 3000, 5000);
	fx_verify();
	list = mx_read("X/y/json", "json");
	ck_assert_uint_eq(list.cnt, 9000);
	for (int64_t key = 1; key <= 9000; key++) {
		uint64_t id = (uint64_t)key + (key >= 3000 && key <= 5000 ? 100000 : 0);

		mx_check(&list.at[key - 1], id, key, mx_len(id));
	}
	mx_free(&list);
	list = mx_read("X/z/json", "json");
	ck_assert_uint_eq(list.cnt, 9000);
	for (int64_t key = 1; key <= 9000; key++)
		mx_check(&list.at[key - 1], 3 * (uint64_t)key, key, mx_len(3 * (uint64_t)key));
	mx_free(&list);
	ck_assert_int_eq(fx_file_cnt("00000001-"), 0);
}
END_TEST

/* ---- what does not fit ----------------------------------------------------------------------- */

START_TEST(records_and_messages_are_not_confused)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	struct stoup_where where = {.file = "in.x", .line = 4};
	struct stoup_error err = {0};
	struct stoup_schema odd = *stoup_schema_by_name("json");
	int64_t record[8] = {5, 5, 5, 5, 5, 5, 5, 5};

	ck_assert_int_eq(stoup_import_put(import, mx_series_of(import, "A/b/json", "json"), 5,
				 record, &where, &err),
		-EINVAL);
	ck_assert_str_eq(err.text, "in.x:4: schema 'json' is one of messages, not of records");
	ck_assert_int_eq(stoup_import_put_message(
				 import, fx_series(import, "A/b/fx"), 5, record, 8, &where, &err),
		-EINVAL);
	ck_assert_str_eq(err.text, "in.x:4: schema 'fx' is one of records, not of messages");
	snprintf(odd.name, sizeof(odd.name), "odd");
	odd.align = 1;
	odd.hash = stoup_schema_hash(&odd);
	ck_assert_int_eq(stoup_import_series(import, "A/b/odd", &odd, &err), -EINVAL);
	stoup_import_destroy(import);
}
END_TEST

/* ---- the plan of volumes --------------------------------------------------------------------- */

/* The number of volumes is known before the first is written: lengths of all kinds against small
 * volumes, also shorter than a message. */
START_TEST(as_many_volumes_are_written_as_were_planned)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import;
	struct mx_list list;
	uint32_t series;
	uint64_t seed = (uint64_t)_i * 1000003, cnt = 200 + seed % 400;

	options.volume_len = 1 + fx_mix(seed) % (200 << 10);
	options.order = _i % 2 ? STOUP_ORDER_SORT : STOUP_ORDER_REFUSE;
	import = fx_begin(&options);
	series = mx_series_of(import, "X/y/json", "json");
	if (_i % 3 == 0)
		fx_put(import, fx_series(import, "X/y/fx"), 1, 1);
	for (uint64_t id = 0; id < cnt; id++)
		mx_put_len(import, series, id, _i % 2 ? wild_key(id) : (int64_t)id + 1,
			(uint32_t)(fx_mix(seed + id) % (_i % 5 ? 900 : 30000)));
	if (_i % 4 == 0)
		fx_put(import, fx_series(import, "X/y/fx"), 2, 2);
	fx_finish(import); /* fails where plan and volumes differ */
	fx_verify();
	list = mx_read("X/y/json", "json");
	ck_assert_uint_eq(list.cnt, cnt);
	mx_free(&list);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("import of messages");
	TCase *tests = tcase_create("messages");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, fx_setup, fx_teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, messages_come_back_byte_for_byte);
	tcase_add_loop_test(tests, a_message_may_be_as_long_as_a_block_and_longer, 0, 2);
	tcase_add_test(tests, messages_and_records_share_an_ingest);
	tcase_add_test(tests, small_series_of_messages_share_blocks);
	tcase_add_test(tests, a_step_back_is_refused_sorted_or_kept);
	tcase_add_test(tests, sorting_is_stable_over_runs);
	tcase_add_test(tests, kept_order_keeps_messages_and_their_keys);
	tcase_add_test(tests, replacing_keeps_old_messages_outside_of_the_range);
	tcase_add_test(tests, records_and_messages_are_not_confused);
	tcase_add_loop_test(tests, as_many_volumes_are_written_as_were_planned, 0, 24);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
