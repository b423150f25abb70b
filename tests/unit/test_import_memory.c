/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_memory.c - 8,000 interleaved symbols in bounded memory, in blocks that are full.
 *
 * The import runs in a child process, whose largest resident size the parent reads. Sanitizers keep
 * freed memory and shadow memory: there the size says nothing and only the contents are checked.
 */
#include <check.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "import_fixture.h"

#define SYMBOL_CNT     8000u
#define MEMORY_CAP_KIB (256 * 1024)

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RECORD_CNT  1000000u
#define MEMORY_TOLD 0
#else
#define RECORD_CNT  6000000u
#define MEMORY_TOLD 1
#endif

static uint32_t symbol_of(uint32_t i)
{
	return (uint32_t)(fx_mix(i) % SYMBOL_CNT);
}

static void child(void)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	uint32_t *idx = calloc(SYMBOL_CNT, sizeof(*idx)), i;
	char name[32];

	for (i = 0; i < SYMBOL_CNT; i++) {
		snprintf(name, sizeof(name), "XNAS/S%05u/fx", i);
		idx[i] = fx_series(import, name);
	}
	for (i = 0; i < RECORD_CNT; i++)
		fx_put(import, idx[symbol_of(i)], i, 1 + i);
	fx_finish(import);
	free(idx);
}

static void check_blocks(const struct stoup_vol_index *index, uint32_t block_len)
{
	uint64_t raw_len = 0;
	uint32_t i;

	for (i = 0; i < index->block_cnt; i++) {
		raw_len += index->blocks[i].raw_len;
		if (i + 1 < index->block_cnt)
			ck_assert_uint_ge(index->blocks[i].raw_len, block_len / 10 * 9);
	}
	ck_assert_uint_eq(raw_len, (uint64_t)RECORD_CNT * FX_STRIDE);
	ck_assert_uint_eq(index->series_cnt, SYMBOL_CNT);
}

/* A few symbols record by record; the others by their counts, and all by verify. */
static void check_symbol(uint32_t symbol)
{
	struct fx_record *records;
	size_t cnt, at = 0;
	uint32_t i;
	char name[32];

	snprintf(name, sizeof(name), "XNAS/S%05u/fx", symbol);
	cnt = fx_read(name, &records);
	for (i = 0; i < RECORD_CNT; i++) {
		struct fx_record expected;

		if (symbol_of(i) != symbol)
			continue;
		expected = fx_record_make(i, 1 + i);
		ck_assert_uint_lt(at, cnt);
		ck_assert_mem_eq(&records[at++], &expected, sizeof(expected));
	}
	ck_assert_uint_eq(at, cnt);
	free(records);
}

START_TEST(eight_thousand_interleaved_symbols_need_bounded_memory)
{
	struct stoup_import_options options = fx_options();
	struct stoup_store *store;
	struct rusage usage;
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		child();
		_exit(0);
	}
	ck_assert_int_eq(wait4(pid, &status, 0, &usage), pid);
	ck_assert_int_eq(status, 0);
	printf("%u records of %u symbols: %ld MiB resident at most\n", RECORD_CNT, SYMBOL_CNT,
		usage.ru_maxrss / 1024);
	if (MEMORY_TOLD)
		ck_assert_int_lt(usage.ru_maxrss, MEMORY_CAP_KIB);
	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->volume_cnt, 1);
	check_blocks(store->volumes[0]->index, options.block_len);
	stoup_store_close(store);
	check_symbol(0);
	check_symbol(4321);
	check_symbol(SYMBOL_CNT - 1);
	fx_verify();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("import_memory");
	TCase *tc = tcase_create("import_memory");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 300);
	tcase_add_checked_fixture(tc, fx_setup, fx_teardown);
	tcase_add_test(tc, eight_thousand_interleaved_symbols_need_bounded_memory);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
