/* SPDX-License-Identifier: Apache-2.0 */
/* test_sim.c - the market simulator: its bytes compress like real ones, its orders live real lives,
 * and its files are DBN.
 */
#include <check.h>
#include <errno.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include "bench/sim.h"
#include "bench/sim_dbn.h"

#define START_NS  1718582400000000000
#define DAY_NS    86400000000000
#define PIECE_CNT 4681u /* records of 56 bytes in 256 KiB */

/* The real file (esh4-glbx-mdp3-20231225.mbo), measured: 68,792 records in pieces of 256 KiB are
 * 1,031,510 bytes under zstd 3, and 2.50 times smaller under lz4. */
#define REAL_ZSTD_BYTES_PER_RECORD 14.995
#define REAL_LZ4_BYTES_PER_RECORD  (56 / 2.50)
#define TOLERANCE                  0.15

/* ---- helpers -------------------------------------------------------------------------------- */

static struct stoup_sim_mbo *simulate(uint64_t seed, uint32_t symbol_cnt, uint64_t cnt)
{
	struct stoup_sim_options options = {seed, symbol_cnt, START_NS};
	struct stoup_sim_mbo *records = calloc(cnt, sizeof(*records));
	struct stoup_sim *sim;

	ck_assert_ptr_nonnull(records);
	ck_assert_int_eq(stoup_sim_create(&options, &sim), 0);
	stoup_sim_next(sim, records, cnt);
	stoup_sim_destroy(sim);
	return records;
}

/* Bytes per record of whole pieces, compressed one by one; lz4 where level is 0. */
static double bytes_per_record(const struct stoup_sim_mbo *records, uint64_t cnt, int level)
{
	size_t piece_len = PIECE_CNT * sizeof(*records);
	size_t cap = ZSTD_compressBound(piece_len) + 4096;
	char *out = malloc(cap);
	uint64_t total = 0, at = 0;

	ck_assert_ptr_nonnull(out);
	for (; at < cnt; at += PIECE_CNT) {
		size_t len = (cnt - at < PIECE_CNT ? cnt - at : PIECE_CNT) * sizeof(*records);
		const char *src = (const char *)&records[at];

		if (level)
			total += ZSTD_compress(out, cap, src, len, level);
		else
			total += (uint64_t)LZ4_compress_default(src, out, (int)len, (int)cap);
	}
	free(out);
	return (double)total / (double)cnt;
}

static void assert_near(double value, double expected)
{
	ck_assert_double_ge(value, expected * (1 - TOLERANCE));
	ck_assert_double_le(value, expected * (1 + TOLERANCE));
}

/* Whole file in memory; *len bytes. */
static uint8_t *slurp(const char *path, size_t *len)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;
	long end;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
	end = ftell(file);
	ck_assert_int_gt(end, 0);
	rewind(file);
	bytes = malloc((size_t)end);
	ck_assert_ptr_nonnull(bytes);
	ck_assert_uint_eq(fread(bytes, 1, (size_t)end, file), (size_t)end);
	fclose(file);
	*len = (size_t)end;
	return bytes;
}

/* Decompress all frames; *frame_cnt says how many there were. */
static uint8_t *unzstd(const uint8_t *src, size_t len, size_t cap, size_t *ret_len, int *frame_cnt)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	uint8_t *dst = malloc(cap);
	ZSTD_inBuffer in = {src, len, 0};
	ZSTD_outBuffer out = {dst, cap, 0};

	ck_assert_ptr_nonnull(zstd);
	ck_assert_ptr_nonnull(dst);
	*frame_cnt = 0;
	while (in.pos < in.size) {
		size_t left = ZSTD_decompressStream(zstd, &out, &in);

		ck_assert(!ZSTD_isError(left));
		ck_assert_uint_lt(out.pos, out.size);
		*frame_cnt += left == 0;
	}
	ZSTD_freeDCtx(zstd);
	*ret_len = out.pos;
	return dst;
}

static uint32_t load_u32(const uint8_t *src)
{
	uint32_t value;

	memcpy(&value, src, sizeof(value));
	return value;
}

/* ---- compression ---------------------------------------------------------------------------- */

START_TEST(a_symbol_compresses_like_the_real_file)
{
	struct stoup_sim_mbo *records = simulate((uint64_t)_i + 1, 1, 200000);

	assert_near(bytes_per_record(records, 200000, 3), REAL_ZSTD_BYTES_PER_RECORD);
	assert_near(bytes_per_record(records, 200000, 0), REAL_LZ4_BYTES_PER_RECORD);
	free(records);
}
END_TEST

START_TEST(each_of_eight_symbols_compresses_like_the_real_file)
{
	uint64_t cnt = 1000000, picked;
	struct stoup_sim_mbo *records = simulate(7, 8, cnt);
	struct stoup_sim_mbo *one = calloc(cnt, sizeof(*one));

	ck_assert_ptr_nonnull(one);
	for (uint32_t id = STOUP_SIM_FIRST_ID; id < STOUP_SIM_FIRST_ID + 8; id++) {
		picked = 0;
		for (uint64_t i = 0; i < cnt; i++)
			if (records[i].instrument_id == id)
				one[picked++] = records[i];
		assert_near(bytes_per_record(one, picked, 3), REAL_ZSTD_BYTES_PER_RECORD);
	}
	free(one);
	free(records);
}
END_TEST

START_TEST(the_real_file_compresses_as_the_constants_say)
{
	const char *folder = getenv("STOUP_DATA");
	char path[4096];
	size_t packed_len, len, begin;
	int frame_cnt;
	uint8_t *packed, *bytes;
	struct stoup_sim_mbo *records;
	uint64_t cnt;

	if (!folder)
		return; /* the constants stand in for the file */
	snprintf(path, sizeof(path), "%s/dbn/esh4-glbx-mdp3-20231225.mbo.dbn.zst", folder);
	if (access(path, R_OK))
		return;
	packed = slurp(path, &packed_len);
	bytes = unzstd(packed, packed_len, 8u << 20, &len, &frame_cnt);
	begin = 8 + load_u32(bytes + 4);
	cnt = (len - begin) / sizeof(*records);
	ck_assert_uint_eq(cnt, 68792);
	records = malloc(cnt * sizeof(*records));
	ck_assert_ptr_nonnull(records);
	memcpy(records, bytes + begin, cnt * sizeof(*records));
	/* Two per cent: versions of the compressors differ a little. */
	ck_assert_double_eq_tol(bytes_per_record(records, cnt, 3), REAL_ZSTD_BYTES_PER_RECORD, 0.3);
	ck_assert_double_eq_tol(bytes_per_record(records, cnt, 0), REAL_LZ4_BYTES_PER_RECORD, 0.5);
	free(records);
	free(bytes);
	free(packed);
}
END_TEST

/* ---- behaviour ------------------------------------------------------------------------------ */

START_TEST(equal_seeds_give_equal_records_and_other_seeds_others)
{
	struct stoup_sim_mbo *a = simulate(5, 3, 100000);
	struct stoup_sim_mbo *b = simulate(5, 3, 100000);
	struct stoup_sim_mbo *c = simulate(6, 3, 100000);

	ck_assert_mem_eq(a, b, 100000 * sizeof(*a));
	ck_assert_mem_ne(a, c, 100000 * sizeof(*a));
	free(a);
	free(b);
	free(c);
}
END_TEST

START_TEST(receive_times_never_step_back_and_events_end_with_the_last_flag)
{
	uint64_t cnt = 500000, last_cnt = 0;
	struct stoup_sim_mbo *records = simulate(11, 20, cnt);

	for (uint64_t i = 0; i < cnt; i++) {
		const struct stoup_sim_mbo *mbo = &records[i];
		int good = mbo->length == 14 && mbo->rtype == 0xa0 &&
		           mbo->ts_recv > mbo->ts_event &&
		           (mbo->flags == 0 || mbo->flags == 130 || mbo->flags == 40) &&
		           (!i || mbo->ts_recv >= records[i - 1].ts_recv);

		if (!good)
			ck_abort_msg("record %llu is wrong", (unsigned long long)i);
		last_cnt += mbo->flags == 130;
	}
	ck_assert_uint_gt(last_cnt, cnt / 2);
	free(records);
}
END_TEST

struct resting {
	int64_t price;
	uint32_t size; /* 0: not in the book */
	char side;
};

/* Apply one record to the book by its id. 0 where the stream says something else than the book. */
static int replay(struct resting *order, const struct stoup_sim_mbo *mbo)
{
	int same = order->price == mbo->price && order->side == mbo->side;

	switch (mbo->action) {
	case 'A':
		same = !order->size;
		*order = (struct resting){mbo->price, mbo->size, mbo->side};
		return same && mbo->size;
	case 'C':
		same = same && order->size == mbo->size;
		order->size = 0;
		return same;
	case 'M':
		same = order->size && order->side == mbo->side;
		*order = (struct resting){mbo->price, mbo->size, mbo->side};
		return same && mbo->size;
	case 'F':
		return same && order->size >= mbo->size;
	default:
		return mbo->action == 'T';
	}
}

START_TEST(every_change_names_a_living_order_with_its_price_side_and_size)
{
	uint64_t cnt = 400000, lowest = UINT64_MAX, highest = 0;
	uint64_t kinds[128] = {0};
	struct stoup_sim_mbo *records = simulate(3, 1, cnt);
	struct resting *book;

	for (uint64_t i = 0; i < cnt; i++) {
		lowest = records[i].order_id < lowest ? records[i].order_id : lowest;
		highest = records[i].order_id > highest ? records[i].order_id : highest;
	}
	ck_assert_uint_lt(highest - lowest, cnt * 2);
	book = calloc(highest - lowest + 1, sizeof(*book));
	ck_assert_ptr_nonnull(book);
	for (uint64_t i = 0; i < cnt; i++) {
		if (!replay(&book[records[i].order_id - lowest], &records[i]))
			ck_abort_msg("record %llu does not fit the book", (unsigned long long)i);
		kinds[(unsigned char)records[i].action & 127]++;
	}
	/* Shares of the real file: A 34 %, C 30 %, M 20 %, F 11 %, T 5 %. */
	ck_assert_uint_gt(kinds['A'], cnt / 4);
	ck_assert_uint_gt(kinds['C'], cnt / 4);
	ck_assert_uint_gt(kinds['M'], cnt / 8);
	ck_assert_uint_gt(kinds['F'], cnt / 20);
	ck_assert_uint_gt(kinds['T'], cnt / 40);
	free(book);
	free(records);
}
END_TEST

START_TEST(the_fills_of_a_trade_add_up_to_it)
{
	uint64_t cnt = 200000, trade_cnt = 0;
	struct stoup_sim_mbo *records = simulate(4, 1, cnt);

	for (uint64_t i = 0; i < cnt; i++) {
		uint64_t filled = 0, at = i + 1;

		if (records[i].action != 'T')
			continue;
		for (; at < cnt && records[at].action == 'F'; at++) {
			if (records[at].price != records[i].price ||
				records[at].side == records[i].side)
				ck_abort_msg(
					"fill %llu is not the trade's", (unsigned long long)at);
			filled += records[at].size;
		}
		if (at == cnt) /* the stream was cut inside a trade */
			break;
		if (filled != records[i].size)
			ck_abort_msg("trade %llu is not filled", (unsigned long long)i);
		trade_cnt++;
	}
	ck_assert_uint_gt(trade_cnt, 1000);
	free(records);
}
END_TEST

START_TEST(events_cluster_and_symbols_differ_in_activity)
{
	uint64_t cnt = 400000, gap_cnt = 0, near_cnt = 0, pair_cnt = 0, last_ns = 0;
	uint64_t per_symbol[8] = {0};
	int near = 0;
	struct stoup_sim_mbo *records = simulate(9, 8, cnt);

	for (uint64_t i = 0; i < cnt; i++) {
		const struct stoup_sim_mbo *mbo = &records[i];
		int now;

		per_symbol[mbo->instrument_id - STOUP_SIM_FIRST_ID]++;
		if (mbo->instrument_id != STOUP_SIM_FIRST_ID || mbo->flags == 40 ||
			mbo->ts_event == last_ns)
			continue;
		now = last_ns && mbo->ts_event - last_ns < 200000;
		gap_cnt++;
		near_cnt += (uint64_t)now;
		pair_cnt += (uint64_t)(now && near);
		near = now;
		last_ns = mbo->ts_event;
	}
	/* Independent gaps would make a short one after a short one as likely as any short one. */
	ck_assert_double_gt(
		(double)pair_cnt / (double)near_cnt, 1.15 * (double)near_cnt / (double)gap_cnt);
	ck_assert_uint_gt(per_symbol[0], 4 * per_symbol[7]);
	ck_assert_uint_gt(per_symbol[7], 1000);
	free(records);
}
END_TEST

/* ---- files ---------------------------------------------------------------------------------- */

static char folder[1024];

static void make_folder(void)
{
	const char *base = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/stoup-test-XXXXXX", base && *base ? base : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
	rmdir(folder);
}

/* Write the records in two pieces and read the file's bytes back. */
static uint8_t *file_of(const struct stoup_sim_mbo *records, uint64_t cnt, uint32_t version,
	int level, int thread_cnt, size_t *len)
{
	char path[sizeof(folder) + 16];
	struct stoup_sim_dbn_options options = {.path = path,
		.version = version,
		.symbol_cnt = 12,
		.start_ns = START_NS,
		.end_ns = START_NS + 3 * DAY_NS,
		.zstd_level = level,
		.thread_cnt = thread_cnt};
	struct stoup_sim_dbn *dbn;
	uint8_t *bytes;

	snprintf(path, sizeof(path), "%s/file.dbn", folder);
	ck_assert_int_eq(stoup_sim_dbn_create(&options, &dbn), 0);
	ck_assert_int_eq(stoup_sim_dbn_write(dbn, records, cnt / 3), 0);
	ck_assert_int_eq(stoup_sim_dbn_write(dbn, &records[cnt / 3], cnt - cnt / 3), 0);
	ck_assert_int_eq(stoup_sim_dbn_close(dbn), 0);
	bytes = slurp(path, len);
	unlink(path);
	return bytes;
}

START_TEST(a_plain_file_has_the_metadata_of_its_version_and_the_records)
{
	uint64_t cnt = 50000;
	uint32_t version = _i ? 3 : 1;
	size_t symbol_len = _i ? 71 : 22, len, begin;
	struct stoup_sim_mbo *records = simulate(2, 12, cnt);
	uint8_t *bytes = file_of(records, cnt, version, 0, 0, &len);
	const uint8_t *mapping;

	ck_assert_mem_eq(bytes, "DBN", 3);
	ck_assert_uint_eq(bytes[3], version);
	begin = 8 + load_u32(bytes + 4);
	if (version == 3)
		ck_assert_uint_eq(begin % 8, 0);
	ck_assert_uint_eq(len, begin + cnt * sizeof(*records));
	ck_assert_mem_eq(bytes + begin, records, cnt * sizeof(*records));
	ck_assert_str_eq((const char *)bytes + 8, "XSIM.STOUP");
	ck_assert_uint_eq(load_u32(bytes + 108), 0);
	ck_assert_uint_eq(load_u32(bytes + 112), 12);
	/* Behind the symbols, two empty lists; then the mappings: symbol 0 stands for id 1000. */
	mapping = bytes + 116 + 12 * symbol_len;
	ck_assert_uint_eq(load_u32(mapping), 0);
	ck_assert_uint_eq(load_u32(mapping + 4), 0);
	ck_assert_uint_eq(load_u32(mapping + 8), 12);
	mapping += 12;
	ck_assert_str_eq((const char *)mapping, "ESM5");
	ck_assert_uint_eq(load_u32(mapping + symbol_len), 1);
	ck_assert_uint_eq(load_u32(mapping + symbol_len + 4), 20240617);
	ck_assert_uint_eq(load_u32(mapping + symbol_len + 8), 20240621);
	ck_assert_str_eq((const char *)mapping + symbol_len + 12, "1000");
	free(bytes);
	free(records);
}
END_TEST

START_TEST(a_compressed_file_holds_the_plain_one_in_a_frame_for_metadata_and_one_per_day)
{
	uint64_t cnt = 50000;
	struct stoup_sim_mbo *records = simulate(2, 12, cnt);
	size_t plain_len, packed_len, len;
	int frame_cnt;
	uint8_t *plain, *packed, *bytes;

	records[cnt - 1].ts_recv = START_NS + DAY_NS; /* the first moment of the next day */
	plain = file_of(records, cnt, 1, 0, 0, &plain_len);
	packed = file_of(records, cnt, 1, 3, _i, &packed_len);
	bytes = unzstd(packed, packed_len, plain_len + 1, &len, &frame_cnt);
	ck_assert_int_eq(frame_cnt, 3);
	ck_assert_uint_eq(len, plain_len);
	ck_assert_mem_eq(bytes, plain, len);
	ck_assert_uint_lt(packed_len, plain_len / 2);
	free(bytes);
	free(packed);
	free(plain);
	free(records);
}
END_TEST

START_TEST(bad_options_are_refused)
{
	struct stoup_sim_options market = {1, 0, START_NS};
	struct stoup_sim_dbn_options file = {.path = folder, .version = 2, .symbol_cnt = 1};
	struct stoup_sim *sim = NULL;
	struct stoup_sim_dbn *dbn = NULL;

	ck_assert_int_eq(stoup_sim_create(&market, &sim), -EINVAL);
	market.symbol_cnt = STOUP_SIM_SYMBOL_CAP + 1;
	ck_assert_int_eq(stoup_sim_create(&market, &sim), -EINVAL);
	market.symbol_cnt = 1;
	market.start_ns = 0;
	ck_assert_int_eq(stoup_sim_create(&market, &sim), -EINVAL);
	ck_assert_ptr_null(sim);
	ck_assert_int_eq(stoup_sim_dbn_create(&file, &dbn), -EINVAL);
	file.version = 1;
	ck_assert_int_eq(stoup_sim_dbn_create(&file, &dbn), -EISDIR);
	ck_assert_ptr_null(dbn);
}
END_TEST

START_TEST(a_full_disk_is_reported)
{
	struct stoup_sim_dbn_options file = {.path = "/dev/full",
		.version = 1,
		.symbol_cnt = 1,
		.start_ns = START_NS,
		.end_ns = START_NS,
		.zstd_level = _i};
	struct stoup_sim_mbo *records = simulate(2, 1, 20000);
	struct stoup_sim_dbn *dbn;
	int rc;

	ck_assert_int_eq(stoup_sim_dbn_create(&file, &dbn), 0);
	rc = stoup_sim_dbn_write(dbn, records, 20000);
	ck_assert(rc == 0 || rc == -ENOSPC); /* what is small may wait for the end */
	ck_assert_int_eq(stoup_sim_dbn_close(dbn), -ENOSPC);
	free(records);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim");
	TCase *market = tcase_create("market");
	TCase *files = tcase_create("files");
	SRunner *runner;
	int failed;

	tcase_set_timeout(market, 120);
	tcase_set_timeout(files, 120);
	tcase_add_loop_test(market, a_symbol_compresses_like_the_real_file, 0, 3);
	tcase_add_test(market, each_of_eight_symbols_compresses_like_the_real_file);
	tcase_add_test(market, the_real_file_compresses_as_the_constants_say);
	tcase_add_test(market, equal_seeds_give_equal_records_and_other_seeds_others);
	tcase_add_test(market, receive_times_never_step_back_and_events_end_with_the_last_flag);
	tcase_add_test(market, every_change_names_a_living_order_with_its_price_side_and_size);
	tcase_add_test(market, the_fills_of_a_trade_add_up_to_it);
	tcase_add_test(market, events_cluster_and_symbols_differ_in_activity);
	suite_add_tcase(suite, market);
	tcase_add_unchecked_fixture(files, make_folder, remove_folder);
	tcase_add_loop_test(
		files, a_plain_file_has_the_metadata_of_its_version_and_the_records, 0, 2);
	tcase_add_loop_test(files,
		a_compressed_file_holds_the_plain_one_in_a_frame_for_metadata_and_one_per_day, 0,
		3);
	tcase_add_test(files, bad_options_are_refused);
	tcase_add_loop_test(files, a_full_disk_is_reported, 0, 2);
	suite_add_tcase(suite, files);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
