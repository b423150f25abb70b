/* SPDX-License-Identifier: Apache-2.0 */
/* test_dbn_files.c - real DBN files give the totals that an independent reader computed. */
#include "producer/ingest_dbn.h"
#include "tests/unit/dbn_sink.h"
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

struct total {
	const char *file;
	int versions; /* 0: the file has no version in its name */
	size_t record_cnt;
	unsigned record_lens[3]; /* by version; the first if there is none */
	unsigned price_off;      /* 0: not summed */
	unsigned amount_off;
	unsigned amount_len;
	uint64_t price_sum;
	uint64_t amount_sum;
	int64_t first_key;
	int64_t last_key;
	const char *series; /* NULL: several; of version 3 */
};

/* The table of the data's own README; %d stands for the version. Definitions are listed there by
 * ts_event and keyed by ts_recv: their keys, and those that the table leaves out, were read from
 * the files with an independent script. */
static const struct total totals[] = {
	{"esh4-glbx-mdp3-20231225.mbo.dbn.zst", 0, 68792, {56}, 24, 32, 4, 330362247500000000,
		192312, 1703462400000000000, 1703548799446821072, "GLBX.MDP3/ESH4/mbo"},
	{"futures-20240701.mbp-1.dbn.zst", 0, 2288, {80}, 16, 24, 4, 12650284250000000, 3147,
		1719878281218485389, 1719878519824434324, NULL},
	{"futures-20240701.trades.dbn.zst", 0, 120, {48}, 16, 24, 4, 663482000000000, 253,
		1719878281218485389, 1719878512813670786, NULL},
	{"futures-20240701.ohlcv-1m.dbn.zst", 0, 60, {56}, 40, 48, 8, 766407250000000, 2742,
		1719877200000000000, 1719878940000000000, NULL},
	{"mbo.v%d.dbn.zst", 3, 2, {56, 56, 56}, 24, 32, 4, 7445750000000, 2, 1609160400000704060,
		1609160400000711344, "GLBX.MDP3/ESH1/mbo"},
	{"mbo.v3.dbn", 0, 2, {56}, 24, 32, 4, 7445750000000, 2, 1609160400000704060,
		1609160400000711344, "GLBX.MDP3/ESH1/mbo"},
	{"mbp-1.v%d.dbn.zst", 3, 2, {80, 80, 80}, 16, 24, 4, 7441000000000, 2, 1609160400006136329,
		1609160400006246513, "GLBX.MDP3/ESH1/mbp-1"},
	{"mbp-10.v%d.dbn.zst", 3, 2, {368, 368, 368}, 16, 24, 4, 7442750000000, 2,
		1609160400000704060, 1609160400000750544, "GLBX.MDP3/ESH1/mbp-10"},
	{"trades.v%d.dbn.zst", 3, 2, {48, 48, 48}, 16, 24, 4, 7440500000000, 26,
		1609160400099150057, 1609160400108142648, "GLBX.MDP3/ESH1/trades"},
	{"tbbo.v%d.dbn.zst", 3, 2, {80, 80, 80}, 16, 24, 4, 7440500000000, 26, 1609160400099150057,
		1609160400108142648, "GLBX.MDP3/ESH1/tbbo"},
	{"ohlcv-1m.v%d.dbn.zst", 3, 2, {56, 56, 56}, 40, 48, 8, 744250000000000, 505,
		1609160400000000000, 1609160460000000000, "GLBX.MDP3/ESH1/ohlcv-1m"},
	{"bbo-1s.v3.dbn.zst", 0, 4, {80}, 16, 24, 4, 14810000000000, 6, 1609113600000000000,
		1609113603000000000, "GLBX.MDP3/ESH1/bbo-1s"},
	{"definition.v%d.dbn.zst", 3, 2, {360, 400, 520}, 0, 0, 0, 0, 0, 1633331241618029519,
		1633417621703120931, "XNAS.ITCH/MSFT/definition"},
	{"statistics.v3.dbn.zst", 0, 2, {80}, 0, 0, 0, 0, 0, 1682269536040124325,
		1682269536121890092, "GLBX.MDP3/146945/statistics"},
	{"status.v3.dbn.zst", 0, 4, {40}, 0, 0, 0, 0, 0, 1609113600000000000, 1609191000007282029,
		"GLBX.MDP3/ESH1/status"},
};

static bool real_path(const char *file, char *ret, size_t cap)
{
	const char *dir = getenv("STOUP_DATA");
	snprintf(ret, cap, "%s/dbn/%s", dir ? dir : "../shared/data", file);
	return access(ret, R_OK) == 0;
}

static uint64_t load(const uint8_t *at, unsigned len)
{
	uint64_t value = 0;
	memcpy(&value, at, len);
	return value;
}

static void check_total(const struct total *total, const char *path, int version)
{
	uint64_t price_sum = 0;
	uint64_t amount_sum = 0;
	ck_assert_msg(sink.put_cnt == total->record_cnt, "%s: %zu records", path, sink.put_cnt);
	for (size_t i = 0; i < sink.put_cnt; i++) {
		const uint8_t *record = sink.bytes + sink.puts[i].at;
		ck_assert_uint_eq(record[0] * 4u, total->record_lens[version ? version - 1 : 0]);
		price_sum += total->price_off ? load(record + total->price_off, 8) : 0;
		amount_sum += load(record + total->amount_off, total->amount_len);
	}
	ck_assert_msg(price_sum == total->price_sum, "%s: price sum %llu", path,
		(unsigned long long)price_sum);
	ck_assert_msg(amount_sum == total->amount_sum, "%s: amount sum %llu", path,
		(unsigned long long)amount_sum);
	ck_assert_int_eq(sink.puts[0].key, total->first_key);
	ck_assert_int_eq(sink.puts[sink.put_cnt - 1].key, total->last_key);
	if (total->series) {
		ck_assert_uint_eq(sink.series_cnt, 1);
		ck_assert_int_eq(strncmp(sink.names[0], total->series, strlen(total->series)), 0);
	}
}

static void check_file(const struct total *total, int version)
{
	struct stoup_error err = {0};
	char file[64];
	char path[512];
	char *mark = strstr(total->file, "%d");
	if (mark)
		snprintf(file, sizeof(file), "%.*s%d%s", (int)(mark - total->file), total->file,
			version, mark + 2);
	else
		snprintf(file, sizeof(file), "%s", total->file);
	if (!real_path(file, path, sizeof(path)))
		return;
	sink_reset();
	ck_assert_msg(ingest_path(path, NULL, &err) == 0, "%s", err.text);
	check_total(total, path, version);
}

START_TEST(real_files_give_the_published_totals)
{
	const struct total *total = &totals[_i];
	if (total->versions == 0)
		check_file(total, 0);
	for (int version = 1; version <= total->versions; version++)
		check_file(total, version);
}
END_TEST

START_TEST(a_real_file_without_mapping_is_told)
{
	char path[512];
	if (!real_path("statistics.v3.dbn.zst", path, sizeof(path)))
		return;
	ck_assert_int_eq(ingest_path(path, NULL, NULL), 0);
	ck_assert_ptr_nonnull(strstr(sink.notes, "2 records of instruments without a symbol"));
}
END_TEST

START_TEST(real_files_with_mapping_tell_nothing)
{
	static const char *const files[] = {"esh4-glbx-mdp3-20231225.mbo.dbn.zst",
		"futures-20240701.mbp-1.dbn.zst", "definition.v1.dbn.zst", "bbo-1s.v3.dbn.zst"};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[512];
		if (!real_path(files[i], path, sizeof(path)))
			return;
		ck_assert_int_eq(ingest_path(path, NULL, NULL), 0);
		ck_assert_str_eq(sink.notes, "");
	}
}
END_TEST

START_TEST(the_three_versions_of_one_day_hold_the_same_records)
{
	static const char *const names[] = {"mbo", "mbp-1", "mbp-10", "trades", "tbbo", "ohlcv-1m"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint8_t first[1024];
		size_t first_len = 0;
		for (int version = 1; version <= 3; version++) {
			char file[64];
			char path[512];
			snprintf(file, sizeof(file), "%s.v%d.dbn.zst", names[i], version);
			if (!real_path(file, path, sizeof(path)))
				return;
			sink_reset();
			ck_assert_int_eq(ingest_path(path, NULL, NULL), 0);
			ck_assert_uint_le(sink.bytes_len, sizeof(first));
			if (version == 1) {
				first_len = sink.bytes_len;
				memcpy(first, sink.bytes, first_len);
			}
			ck_assert_uint_eq(sink.bytes_len, first_len);
			ck_assert_mem_eq(sink.bytes, first, first_len);
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dbn_files");
	TCase *tcase = tcase_create("dbn_files");
	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, sink_reset);
	tcase_add_loop_test(tcase, real_files_give_the_published_totals, 0,
		(int)(sizeof(totals) / sizeof(totals[0])));
	tcase_add_test(tcase, a_real_file_without_mapping_is_told);
	tcase_add_test(tcase, real_files_with_mapping_tell_nothing);
	tcase_add_test(tcase, the_three_versions_of_one_day_hold_the_same_records);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed_cnt = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed_cnt == 0 ? 0 : 1;
}
