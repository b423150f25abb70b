/* SPDX-License-Identifier: Apache-2.0 */
/* test_import.c - the sink: what was put is what is stored, in the right order, or nothing is. */
#include <check.h>
#include <sys/stat.h>
#include "import_fixture.h"

/* Compare a stored series with order ids and keys told by the caller. */
static void check_series(
	const char *name, const uint64_t *order_ids, const int64_t *keys, size_t cnt)
{
	struct fx_record *records;
	size_t i;

	ck_assert_uint_eq(fx_read(name, &records), cnt);
	for (i = 0; i < cnt; i++) {
		struct fx_record expected = fx_record_make(order_ids[i], keys[i]);

		ck_assert_msg(memcmp(&records[i], &expected, sizeof(expected)) == 0,
			"%s: record %zu is %llu at %lld, not %llu at %lld", name, i,
			(unsigned long long)records[i].order_id, (long long)records[i].key,
			(unsigned long long)order_ids[i], (long long)keys[i]);
	}
	free(records);
}

/* Put records of one series, order ids counting from `id`, at these keys. */
static void ingest_keys(const struct stoup_import_options *options, const char *name, uint64_t id,
	const int64_t *keys, size_t cnt)
{
	struct stoup_import *import = fx_begin(options);
	uint32_t series = fx_series(import, name);
	size_t i;

	for (i = 0; i < cnt; i++)
		fx_put(import, series, id + i, keys[i]);
	fx_finish(import);
}

/* Keys first, first + step ... last. */
static void ingest_range(const struct stoup_import_options *options, const char *name, uint64_t id,
	int64_t first, int64_t last, int64_t step)
{
	struct stoup_import *import = fx_begin(options);
	uint32_t series = fx_series(import, name);
	int64_t key;

	for (key = first; key <= last; key += step)
		fx_put(import, series, id++, key);
	fx_finish(import);
}

/* ---- storing --------------------------------------------------------------------------------- */

START_TEST(records_come_back_byte_for_byte)
{
	struct stoup_import_options options = fx_options();
	static const int64_t keys[] = {5, 5, 6, 1000000000000000000, INT64_MAX - 1};
	static const uint64_t ids[] = {1, 2, 3, 4, 5};
	char name[STOUP_STORE_NAME_CAP];
	struct stoup_store *store;

	ingest_keys(&options, "D/S/fx", 1, keys, 5);
	check_series("D/S/fx", ids, keys, 5);
	fx_verify();
	ck_assert_int_eq(fx_file_cnt(".tmp-"), 0);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->volume_cnt, 1);
	stoup_store_name(&store->volumes[0]->index->header, name);
	ck_assert_str_eq(strrchr(store->volumes[0]->path, '/') + 1, name);
	ck_assert_int_eq(strncmp(name, "00000001-00-", 12), 0);
	stoup_store_close(store);
}
END_TEST

/* Interleave `series_cnt` series at random; series s gets records s, s + series_cnt ... */
static void ingest_interleaved(
	const struct stoup_import_options *options, uint32_t series_cnt, uint32_t record_cnt)
{
	struct stoup_import *import = fx_begin(options);
	uint32_t *idx = calloc(series_cnt, sizeof(*idx)), i;
	char name[32];

	for (i = 0; i < record_cnt; i++) {
		uint32_t s = (uint32_t)(fx_mix(i) % series_cnt);

		if (idx[s] == 0) {
			snprintf(name, sizeof(name), "D/S%05u/fx", s);
			idx[s] = fx_series(import, name) + 1;
		}
		fx_put(import, idx[s] - 1, i, 1000 + i / 3);
	}
	fx_finish(import);
	free(idx);
}

static void check_interleaved(uint32_t series_cnt, uint32_t record_cnt)
{
	struct fx_record **records = calloc(series_cnt, sizeof(*records));
	size_t *cnt = calloc(series_cnt, sizeof(*cnt)), *at = calloc(series_cnt, sizeof(*at));
	uint32_t i;
	char name[32];

	for (i = 0; i < series_cnt; i++) {
		snprintf(name, sizeof(name), "D/S%05u/fx", i);
		cnt[i] = fx_read(name, &records[i]);
	}
	for (i = 0; i < record_cnt; i++) {
		uint32_t s = (uint32_t)(fx_mix(i) % series_cnt);
		struct fx_record expected = fx_record_make(i, 1000 + i / 3);

		ck_assert_uint_lt(at[s], cnt[s]);
		ck_assert_mem_eq(&records[s][at[s]++], &expected, sizeof(expected));
	}
	for (i = 0; i < series_cnt; i++) {
		ck_assert_uint_eq(at[i], cnt[i]);
		free(records[i]);
	}
	free(records);
	free(cnt);
	free(at);
}

START_TEST(interleaved_series_are_partitioned_through_many_runs)
{
	struct stoup_import_options options = fx_options();

	options.memory_len = 256 << 10; /* about 4000 records: 20 runs */
	ingest_interleaved(&options, 97, 80000);
	check_interleaved(97, 80000);
	fx_verify();
}
END_TEST

/* Every block but the last one of its schema is at least nine tenths full. */
static void check_full(const struct stoup_vol_index *index, uint32_t block_len)
{
	uint32_t i, j;

	for (i = 0; i < index->block_cnt; i++) {
		int last = 1;

		for (j = i + 1; j < index->block_cnt; j++)
			last &= index->blocks[j].schema_idx != index->blocks[i].schema_idx;
		ck_assert_uint_le(index->blocks[i].raw_len, block_len);
		if (!last)
			ck_assert_uint_ge(index->blocks[i].raw_len, block_len / 10 * 9);
	}
}

START_TEST(small_series_share_full_blocks)
{
	struct stoup_import_options options = fx_options();
	struct stoup_store *store;
	uint32_t bytes = 3000 * FX_STRIDE;

	ingest_interleaved(&options, 1000, 3000);
	check_interleaved(1000, 3000);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	check_full(store->volumes[0]->index, options.block_len);
	ck_assert_uint_eq(store->volumes[0]->index->block_cnt,
		(bytes + options.block_len - 1) / options.block_len);
	stoup_store_close(store);
	fx_verify();
}
END_TEST

/* A schema of one key and padding, with any stride. */
static void ingest_stride(const struct stoup_import_options *options, uint32_t stride, uint32_t cnt)
{
	struct stoup_field fields[] = {
		{.name = "ts", .cnt = 1, .type = STOUP_TYPE_I64, .flags = STOUP_FIELD_KEY},
		{.name = "pad", .off = 8, .cnt = (uint16_t)(stride - 8), .type = STOUP_TYPE_BYTES},
	};
	struct stoup_schema schema = {
		.name = "wide", .stride = stride, .align = 8, .field_cnt = 2, .fields = fields};
	struct stoup_import *import = fx_begin(options);
	struct stoup_error err = {0};
	uint8_t *record = calloc(1, stride);
	int64_t series, key;

	schema.hash = stoup_schema_hash(&schema);
	series = stoup_import_series(import, "wide", &schema, &err);
	ck_assert_msg(series >= 0, "%s", err.text);
	for (key = 1; key <= cnt; key++) {
		memcpy(record, &key, sizeof(key));
		ck_assert_int_eq(
			stoup_import_put(import, (uint32_t)series, key, record, NULL, &err), 0);
	}
	free(record);
	fx_finish(import);
}

START_TEST(blocks_of_large_records_are_full_too)
{
	struct stoup_import_options options = fx_options();
	struct stoup_store *store;
	uint32_t i;

	/* One record fills 61 % of the block that was asked for. */
	ingest_stride(&options, 40000, 35);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->volumes[0]->index->block_cnt, 4);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(store->volumes[0]->index->blocks[i].raw_len, 400000);
	stoup_store_close(store);
	fx_verify();
}
END_TEST

START_TEST(uncompressed_blocks_follow_each_other_as_one_array)
{
	struct stoup_import_options options = fx_options();
	struct stoup_store *store;
	const struct stoup_vol_block *blocks;
	uint32_t i;

	options.encoding = (struct stoup_encoding){.codec = STOUP_CODEC_NONE};
	options.block_len = 512 << 10;
	ingest_stride(&options, 56, 60000);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	blocks = store->volumes[0]->index->blocks;
	ck_assert_uint_gt(store->volumes[0]->index->block_cnt, 5);
	for (i = 1; i < store->volumes[0]->index->block_cnt; i++)
		ck_assert_uint_eq(
			blocks[i].stored_off, blocks[i - 1].stored_off + blocks[i - 1].raw_len);
	check_full(store->volumes[0]->index, options.block_len);
	stoup_store_close(store);
}
END_TEST

START_TEST(a_long_input_becomes_a_batch_of_volumes)
{
	struct stoup_import_options options = fx_options();
	struct stoup_store *store;
	uint32_t i;

	options.volume_len = 300 << 10;
	ingest_interleaved(&options, 5, 30000); /* 1.6 MiB */
	check_interleaved(5, 30000);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->volume_cnt, 7); /* 26 blocks, four to a volume */
	for (i = 0; i < store->volume_cnt; i++) {
		const struct stoup_vol_header *header = &store->volumes[i]->index->header;

		ck_assert_uint_eq(header->ingest_seq, 1);
		ck_assert_uint_eq(header->batch_idx, i);
		ck_assert_uint_eq(header->batch_cnt, 7);
		ck_assert_mem_eq(header->id, store->volumes[0]->index->header.id, 14);
		ck_assert_uint_eq(header->id[14], i);
	}
	stoup_store_close(store);
	fx_verify();
}
END_TEST

START_TEST(one_name_with_two_layouts_is_two_series)
{
	struct stoup_import_options options = fx_options();
	struct stoup_schema other = fx_schema_named("fx2");
	static const int64_t keys[] = {10, 20};
	static const uint64_t ids[] = {1, 2};
	struct stoup_import *import;
	struct fx_record record = fx_record_make(9, 15), *records;
	int64_t series;

	ingest_keys(&options, "N", 1, keys, 2);
	import = fx_begin(&options);
	series = stoup_import_series(import, "N", &other, NULL);
	ck_assert_int_ge(series, 0);
	ck_assert_int_eq(stoup_import_put(import, (uint32_t)series, 15, &record, NULL, NULL), 0);
	fx_finish(import);
	check_series("N", ids, keys, 2);
	ck_assert_uint_eq(fx_read_schema("N", &other, &records), 1);
	ck_assert_mem_eq(records, &record, sizeof(record));
	free(records);
}
END_TEST

START_TEST(an_import_without_records_stores_nothing)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	struct stat st;

	fx_series(import, "N");
	fx_finish(import);
	ck_assert_int_eq(stat(fx_store, &st), -1);
}
END_TEST

/* ---- keys and order -------------------------------------------------------------------------- */

START_TEST(keys_that_are_no_time_are_refused)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	static const int64_t bad[] = {0, -1, -5, INT64_MIN, INT64_MAX};
	struct stoup_error err;
	struct fx_record record = fx_record_make(1, 7);
	uint32_t series = fx_series(import, "N");
	struct stat st;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char value[32];

		ck_assert_int_eq(fx_try_put(import, series, 77, bad[i], &err), -ERANGE);
		snprintf(value, sizeof(value), "key %lld ", (long long)bad[i]);
		ck_assert_ptr_nonnull(strstr(err.text, "in.csv:77: "));
		ck_assert_ptr_nonnull(strstr(err.text, value));
	}
	/* A key that is not the record's own would be lost with the partition. */
	ck_assert_int_eq(stoup_import_put(import, series, 8, &record, NULL, &err), -EINVAL);
	stoup_import_destroy(import);
	ck_assert_int_eq(stat(fx_store, &st), -1);
}
END_TEST

START_TEST(a_step_back_is_refused_with_row_keys_and_advice)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	struct stoup_error err = {0};
	uint32_t a = fx_series(import, "A"), b = fx_series(import, "B");

	fx_put(import, a, 1, 1700000000000000005);
	fx_put(import, b, 2, 1700000000000000001); /* another series has its own order */
	fx_put(import, a, 3, 1700000000000000005); /* an equal key is no step back */
	ck_assert_int_eq(fx_try_put(import, a, 4, 1700000000000000004, &err), -EILSEQ);
	ck_assert_ptr_nonnull(strstr(err.text, "in.csv:4: 2023-11-14T22:13:20.000000004Z"));
	ck_assert_ptr_nonnull(strstr(err.text, "2023-11-14T22:13:20.000000005Z"));
	ck_assert_ptr_nonnull(strstr(err.text, "--sort"));
	ck_assert_ptr_nonnull(strstr(err.text, "--order=keep"));
	stoup_import_destroy(import);
}
END_TEST

/* Insertion by hand: the reference of a stable sort. */
static void stable_sort(uint64_t *ids, int64_t *keys, size_t cnt)
{
	size_t i, j;

	for (i = 1; i < cnt; i++) {
		uint64_t id = ids[i];
		int64_t key = keys[i];

		for (j = i; j > 0 && keys[j - 1] > key; j--) {
			keys[j] = keys[j - 1];
			ids[j] = ids[j - 1];
		}
		keys[j] = key;
		ids[j] = id;
	}
}

static void check_sorted(uint64_t memory_len, size_t cnt, uint64_t span)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import;
	uint64_t *ids = calloc(cnt, sizeof(*ids));
	int64_t *keys = calloc(cnt, sizeof(*keys));
	uint32_t series, other;
	size_t i;

	options.order = STOUP_ORDER_SORT;
	options.memory_len = memory_len;
	import = fx_begin(&options);
	series = fx_series(import, "M");
	other = fx_series(import, "L");
	for (i = 0; i < cnt; i++) {
		ids[i] = i;
		keys[i] = (int64_t)(fx_mix(i) % span) + 1;
		fx_put(import, series, ids[i], keys[i]);
		fx_put(import, other, i, (int64_t)i + 1);
	}
	fx_finish(import);
	stable_sort(ids, keys, cnt);
	check_series("M", ids, keys, cnt);
	fx_verify();
	free(ids);
	free(keys);
}

START_TEST(sorting_is_stable_in_memory)
{
	check_sorted(0, 3000, 500);
}
END_TEST

START_TEST(sorting_is_stable_across_runs)
{
	check_sorted(256 << 10, 15000, 300);
}
END_TEST

START_TEST(kept_order_stores_the_rows_as_they_came_and_the_running_maximum)
{
	static const int64_t keys[] = {10, 30, 20, 25, 30, 40, 5};
	static const uint64_t ids[] = {1, 2, 3, 4, 5, 6, 7};
	struct stoup_import_options options = fx_options();
	struct stoup_store *store;
	const struct stoup_vol_series *series;

	options.order = STOUP_ORDER_KEEP;
	ingest_keys(&options, "K", 1, keys, 7);
	check_series("K", ids, keys, 7);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	series = &store->volumes[0]->index->series[0];
	ck_assert_uint_eq(series->flags, STOUP_VOL_SERIES_KEEP_ORDER);
	ck_assert_int_eq(series->first_key, 10);
	ck_assert_int_eq(series->last_key, 40);
	stoup_store_close(store);
	fx_verify();
}
END_TEST

START_TEST(kept_order_survives_runs_and_blocks)
{
	struct stoup_import_options options = fx_options();
	size_t cnt = 20000, i;
	uint64_t *ids = calloc(cnt, sizeof(*ids));
	int64_t *keys = calloc(cnt, sizeof(*keys));

	options.order = STOUP_ORDER_KEEP;
	options.memory_len = 256 << 10;
	for (i = 0; i < cnt; i++) {
		ids[i] = i;
		keys[i] = (int64_t)(i * 10 + fx_mix(i) % 1000) + 1;
	}
	ingest_keys(&options, "K", 0, keys, cnt);
	check_series("K", ids, keys, cnt);
	fx_verify();
	free(ids);
	free(keys);
}
END_TEST

/* ---- overlap and replacement ----------------------------------------------------------------- */

/* A second ingest of this range must be refused, naming all that matters, and change nothing. */
static void check_refused(int64_t first, int64_t last)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	struct stoup_error err = {0};
	uint32_t series = fx_series(import, "N");
	int rc = fx_try_put(import, series, 1, first, &err);

	if (rc == 0 && last > first)
		rc = fx_try_put(import, series, 2, last, &err);
	if (rc == 0)
		rc = stoup_import_finish(import, &err);
	stoup_import_destroy(import);
	ck_assert_int_eq(rc, -EEXIST);
	ck_assert_ptr_nonnull(strstr(err.text, "N: "));
	ck_assert_ptr_nonnull(strstr(err.text, "1970-01-01T00:00:00.000000100Z to "
					       "1970-01-01T00:00:00.000000200Z in 00000001-00-"));
	ck_assert_ptr_nonnull(strstr(err.text, "--replace"));
	ck_assert_int_eq(fx_file_cnt("0"), 1);
	ck_assert_int_eq(fx_file_cnt(".tmp-"), 0);
}

START_TEST(an_overlap_is_refused_and_a_touch_is_not)
{
	struct stoup_import_options options = fx_options();
	static const int64_t keys[] = {50, 99, 100, 200, 200, 300};
	static const uint64_t ids[] = {30, 31, 10, 11, 20, 21};

	ingest_range(&options, "N", 10, 100, 200, 100);
	check_refused(100, 200);
	check_refused(150, 150);
	check_refused(50, 101);
	check_refused(199, 300);
	check_refused(1, 1000);
	/* At the front: the new 100 would come to stand before the old one. */
	check_refused(50, 100);
	check_refused(100, 100);
	ingest_range(&options, "N", 20, 200, 300, 100);
	ingest_range(&options, "N", 30, 50, 99, 49);
	check_series("N", ids, keys, 6);
	ingest_range(&options, "OTHER", 1, 100, 200, 100);
}
END_TEST

START_TEST(a_single_record_is_not_stored_twice)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import;

	ingest_range(&options, "N", 1, 100, 100, 1);
	import = fx_begin(&options);
	fx_put(import, fx_series(import, "N"), 2, 100);
	ck_assert_int_eq(stoup_import_finish(import, NULL), -EEXIST);
	stoup_import_destroy(import);
}
END_TEST

START_TEST(replacing_takes_the_range_and_keeps_the_rest)
{
	struct stoup_import_options options = fx_options();
	static const int64_t keys[] = {10, 20, 25, 35, 50, 60}, others[] = {5, 15};
	static const uint64_t ids[] = {1, 2, 101, 102, 5, 6}, other_ids[] = {7, 8};
	static const int64_t old[] = {10, 20, 30, 35, 50, 60}, new[] = {25, 35};
	struct stoup_import *import = fx_begin(&options);
	uint32_t n = fx_series(import, "N"), o = fx_series(import, "O"), i;

	for (i = 0; i < 6; i++)
		fx_put(import, n, 1 + i, old[i]);
	fx_put(import, o, 7, 5);
	fx_put(import, o, 8, 15);
	fx_finish(import);
	options.replace = 1;
	ingest_keys(&options, "N", 101, new, 2); /* the ends belong to it: the old 35 goes */
	check_series("N", ids, keys, 6);
	check_series("O", other_ids, others, 2);
	ck_assert_int_eq(fx_file_cnt("00000001"), 0);
	ck_assert_int_eq(fx_file_cnt("00000002"), 1);
	fx_verify();
}
END_TEST

START_TEST(replacing_draws_in_the_volumes_between)
{
	struct stoup_import_options options = fx_options();
	static const int64_t x[] = {10, 20, 30}, y[] = {11, 31};
	static const uint64_t x_ids[] = {1, 3, 4}, y_ids[] = {90, 91};
	struct stoup_import *import;
	struct stoup_store *store;

	/* Volumes 1 and 3 hold X and Y, volume 2 only X. Replacing Y across 1 and 3 brings their X
	 * into one volume, which would span that of volume 2. */
	import = fx_begin(&options);
	fx_put(import, fx_series(import, "X"), 1, 10);
	fx_put(import, fx_series(import, "Y"), 2, 11);
	fx_finish(import);
	ingest_keys(&options, "X", 3, &x[1], 1);
	import = fx_begin(&options);
	fx_put(import, fx_series(import, "X"), 4, 30);
	fx_put(import, fx_series(import, "Y"), 5, 31);
	fx_finish(import);
	options.replace = 1;
	ingest_keys(&options, "Y", 90, y, 2);
	check_series("X", x_ids, x, 3);
	check_series("Y", y_ids, y, 2);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->volume_cnt, 1);
	ck_assert_uint_eq(store->volumes[0]->index->superseded_cnt, 3);
	stoup_store_close(store);
	fx_verify();
}
END_TEST

/* Flip a bit of the first block of the only volume of ingest 1. */
static void block_damage(void)
{
	struct stoup_store *store = NULL;
	uint8_t byte;
	int fd;

	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	fd = open(store->volumes[0]->path, O_RDWR);
	ck_assert_int_eq(pread(fd, &byte, 1, 70), 1);
	byte ^= 1;
	ck_assert_int_eq(pwrite(fd, &byte, 1, 70), 1);
	close(fd);
	stoup_store_close(store);
}

START_TEST(a_damaged_block_is_mended_by_replacing_all_that_it_holds)
{
	struct stoup_import_options options = fx_options();
	static const int64_t keys[] = {10, 11, 12};
	static const uint64_t ids[] = {100, 101, 102};
	struct stoup_error err = {0};
	struct stoup_import *import;

	ingest_range(&options, "N", 1, 10, 12, 1);
	block_damage();
	options.replace = 1;
	import = fx_begin(&options);
	fx_put(import, fx_series(import, "N"), 100, 10);
	fx_put(import, fx_series(import, "N"), 101, 11);
	ck_assert_int_lt(stoup_import_finish(import, &err), 0);
	stoup_import_destroy(import);
	ck_assert_ptr_nonnull(strstr(err.text, "can not rewrite 00000001-00-"));
	ck_assert_ptr_nonnull(strstr(err.text, "010Z to 1970-01-01T00:00:00.000000012Z would be "
					       "lost: ingest this range, too, or remove the"));
	ingest_range(&options, "N", 100, 10, 12, 1);
	check_series("N", ids, keys, 3);
	fx_verify();
}
END_TEST

/* Some records of X, and two of Z. */
static void touching_make(const int64_t *keys, uint64_t first, uint64_t cnt, int64_t z)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);

	for (uint64_t i = first; i < first + cnt; i++)
		fx_put(import, fx_series(import, "X"), i, keys[i]);
	fx_put(import, fx_series(import, "Z"), 9000, z);
	fx_put(import, fx_series(import, "Z"), 9001, z + 1);
	fx_finish(import);
}

START_TEST(replacing_keeps_the_order_of_equal_keys_of_parts_that_touch)
{
	struct stoup_import_options options = fx_options();
	static int64_t keys[6001];
	static uint64_t ids[6001];

	/* X touches at key 5 across volumes 1 and 2, whose Z are the other way round. Volume 2 is met
	 * by the new range itself, and volume 1 is drawn in by Z only: it comes second. */
	for (size_t i = 0; i < 6001; i++) {
		ids[i] = i;
		keys[i] = i == 0 ? 1 : i == 5999 ? 7 : i == 6000 ? 20 : 5;
	}
	touching_make(keys, 0, 3000, 4);
	touching_make(keys, 3000, 3000, 1);
	touching_make(keys, 6000, 1, 8);
	ids[5999] = 7000;
	ids[6000] = 7001;
	options.replace = 1;
	ingest_keys(&options, "X", 7000, &keys[5999], 2);
	check_series("X", ids, keys, 6001);
	fx_verify();
}
END_TEST

/* Two volumes whose ranges of N overlap: one of this store, one brought from another. */
static void overlap_make(void)
{
	struct stoup_import_options options = fx_options(), other = fx_options();
	char other_path[400], to[700];
	struct stoup_store *store = NULL;

	ingest_range(&options, "N", 1, 10, 20, 10);
	snprintf(other_path, sizeof(other_path), "%s/other", fx_root);
	other.store_path = other_path;
	ingest_range(&other, "M", 1, 1, 2, 1);
	ingest_range(&other, "N", 5, 15, 30, 15);
	ck_assert_int_eq(stoup_store_open(other_path, &store, NULL), 0);
	snprintf(to, sizeof(to), "%s/copied.stoup", fx_store);
	ck_assert_int_eq(rename(store->volumes[1]->path, to), 0);
	stoup_store_close(store);
	fx_remove(other_path);
}

START_TEST(replacing_all_of_an_overlapping_volume_takes_its_place)
{
	struct stoup_import_options options = fx_options();
	static const int64_t keys[] = {10, 20, 30};
	static const uint64_t ids[] = {100, 101, 102};
	struct stoup_error err = {0};
	struct stoup_import *import;

	overlap_make();
	options.replace = 1;
	/* The old volume only: without it the copied one would be served and this one refused. */
	import = fx_begin(&options);
	fx_put(import, fx_series(import, "N"), 50, 10);
	fx_put(import, fx_series(import, "N"), 51, 20);
	ck_assert_int_eq(stoup_import_finish(import, &err), -EEXIST);
	stoup_import_destroy(import);
	ck_assert_ptr_nonnull(strstr(err.text, "/copied.stoup overlaps another volume and holds "));
	ingest_range(&options, "N", 100, 10, 30, 10);
	check_series("N", ids, keys, 3);
	ck_assert_int_eq(fx_file_cnt("copied"), 0);
	fx_verify();
}
END_TEST

START_TEST(what_a_superseded_volume_superseded_is_inherited)
{
	struct stoup_import_options options = fx_options();
	struct stoup_store *store;
	int i;

	options.replace = 1;
	for (i = 0; i < 4; i++)
		ingest_range(&options, "N", (uint64_t)i * 100, 10, 20, 1);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->volume_cnt, 1);
	ck_assert_uint_eq(store->volumes[0]->index->superseded_cnt, 3);
	ck_assert_uint_eq(store->volumes[0]->index->header.ingest_seq, 4);
	stoup_store_close(store);
}
END_TEST

START_TEST(replacing_a_kept_order_keeps_what_is_outside)
{
	struct stoup_import_options options = fx_options();
	static const int64_t old[] = {10, 30, 20, 40, 35, 60, 50};
	static const int64_t new[] = {38, 42};
	static const int64_t keys[] = {10, 30, 20, 38, 42, 60, 50};
	static const uint64_t ids[] = {1, 2, 3, 101, 102, 6, 7};

	options.order = STOUP_ORDER_KEEP;
	ingest_keys(&options, "K", 1, old, 7);
	options.replace = 1;
	/* 40 and the 35 behind it (running maximum 40) lie inside 38 to 42. */
	ingest_keys(&options, "K", 101, new, 2);
	check_series("K", ids, keys, 7);
	fx_verify();
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

START_TEST(names_are_checked)
{
	static const char *const bad[] = {"", "/A", "A/", "A//B", "A\nB", "A\x7f"};
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	struct stoup_schema schema = fx_schema();
	char name[STOUP_SERIES_NAME_CAP + 1];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(stoup_import_series(import, bad[i], &schema, NULL), -EINVAL);
	memset(name, 'x', sizeof(name));
	name[STOUP_SERIES_NAME_CAP] = '\0';
	ck_assert_int_eq(stoup_import_series(import, name, &schema, NULL), -EINVAL);
	name[STOUP_SERIES_NAME_CAP - 1] = '\0';
	ck_assert_int_ge(stoup_import_series(import, name, &schema, NULL), 0);
	ck_assert_int_eq(stoup_import_series(import, name, &schema, NULL), 0);
	stoup_import_destroy(import);
}
END_TEST

START_TEST(symbols_are_escaped)
{
	char dst[16];

	ck_assert_int_eq(stoup_symbol_escape("ESH4", dst, sizeof(dst)), 4);
	ck_assert_str_eq(dst, "ESH4");
	ck_assert_int_eq(stoup_symbol_escape("BRK/B 5%\n", dst, sizeof(dst)), 15);
	ck_assert_str_eq(dst, "BRK%2FB 5%25%0A");
	ck_assert_int_eq(stoup_symbol_escape("BRK/B 5%\n1", dst, sizeof(dst)), -ENAMETOOLONG);
	ck_assert_int_eq(stoup_symbol_escape("", dst, 1), 0);
	ck_assert_int_eq(stoup_symbol_escape("A", dst, 1), -ENAMETOOLONG);
}
END_TEST

START_TEST(a_second_import_is_refused_while_one_runs)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *one = fx_begin(&options), *two = NULL;
	struct stoup_error err = {0};

	ck_assert_int_eq(stoup_import_begin(&options, &two, &err), -EBUSY);
	ck_assert_ptr_nonnull(strstr(err.text, "another writer"));
	ck_assert_ptr_null(two);
	stoup_import_destroy(one);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("import");
	TCase *tc = tcase_create("import");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, fx_setup, fx_teardown);
	tcase_add_test(tc, records_come_back_byte_for_byte);
	tcase_add_test(tc, interleaved_series_are_partitioned_through_many_runs);
	tcase_add_test(tc, small_series_share_full_blocks);
	tcase_add_test(tc, blocks_of_large_records_are_full_too);
	tcase_add_test(tc, uncompressed_blocks_follow_each_other_as_one_array);
	tcase_add_test(tc, a_long_input_becomes_a_batch_of_volumes);
	tcase_add_test(tc, one_name_with_two_layouts_is_two_series);
	tcase_add_test(tc, an_import_without_records_stores_nothing);
	tcase_add_test(tc, keys_that_are_no_time_are_refused);
	tcase_add_test(tc, a_step_back_is_refused_with_row_keys_and_advice);
	tcase_add_test(tc, sorting_is_stable_in_memory);
	tcase_add_test(tc, sorting_is_stable_across_runs);
	tcase_add_test(tc, kept_order_stores_the_rows_as_they_came_and_the_running_maximum);
	tcase_add_test(tc, kept_order_survives_runs_and_blocks);
	tcase_add_test(tc, an_overlap_is_refused_and_a_touch_is_not);
	tcase_add_test(tc, a_single_record_is_not_stored_twice);
	tcase_add_test(tc, replacing_takes_the_range_and_keeps_the_rest);
	tcase_add_test(tc, replacing_draws_in_the_volumes_between);
	tcase_add_test(tc, a_damaged_block_is_mended_by_replacing_all_that_it_holds);
	tcase_add_test(tc, replacing_keeps_the_order_of_equal_keys_of_parts_that_touch);
	tcase_add_test(tc, replacing_all_of_an_overlapping_volume_takes_its_place);
	tcase_add_test(tc, what_a_superseded_volume_superseded_is_inherited);
	tcase_add_test(tc, replacing_a_kept_order_keeps_what_is_outside);
	tcase_add_test(tc, names_are_checked);
	tcase_add_test(tc, symbols_are_escaped);
	tcase_add_test(tc, a_second_import_is_refused_while_one_runs);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
