/* SPDX-License-Identifier: Apache-2.0 */
/* test_rewrite.c - what no ingest of this version makes: volumes and blocks of a later one. They are no damage, and are
 * neither rewritten nor dropped.
 */
#include <check.h>
#include "import_fixture.h"
#include "producer/rewrite.h"
#include "producer/verify.h"

static struct stoup_error err;

/* A store of one volume of two series. */
static void store_make(void)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import = fx_begin(&options);
	uint32_t a = fx_series(import, "X/A/t"), b = fx_series(import, "X/B/t");

	for (uint32_t i = 0; i < 3000; i++)
		fx_put(import, i % 3 ? a : b, i, 1000 + i);
	fx_finish(import);
}

static struct stoup_store *store_open(void)
{
	struct stoup_store *store = NULL;

	ck_assert_msg(stoup_store_open(fx_store, &store, &err) == 0, "%s", err.text);
	return store;
}

static int all_rewrite(void)
{
	struct stoup_rewrite_options options = {
		.store_path = fx_store, .label = "test", .quiet = 1, .threads = 1};
	struct stoup_rewrite *rewrite = NULL;
	int rc = stoup_rewrite_begin(&options, &rewrite, &err);

	for (uint32_t i = 0; rc == 0 && i < stoup_rewrite_store(rewrite)->volume_cnt; i++)
		stoup_rewrite_choose(rewrite, i);
	if (rc == 0)
		rc = stoup_rewrite_draw_in(rewrite, &err);
	if (rc == 0)
		rc = stoup_rewrite_run(rewrite, NULL, &err);
	stoup_rewrite_end(rewrite);
	return rc;
}

/* Change a region of the volume's file and the checksums of header, footer and trailer. */
static void volume_change(
	const struct stoup_store_volume *volume, uint64_t off, uint32_t value, uint32_t len)
{
	uint64_t footer_off = volume->index->footer_off, footer_len = volume->index->footer_len;
	uint64_t file_len = volume->index->file_len, hash;
	uint8_t *bytes = malloc(file_len);
	int fd = open(volume->path, O_RDWR);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(stoup_file_read(fd, bytes, file_len, 0), 0);
	memcpy(bytes + off, &value, len);
	hash = stoup_vol_hash(bytes, 56);
	memcpy(bytes + 56, &hash, 8);
	memcpy(bytes + file_len - 32, &hash, 8);
	hash = stoup_vol_hash(bytes + footer_off, footer_len);
	memcpy(bytes + file_len - 64 + 16, &hash, 8);
	hash = stoup_vol_hash(bytes + file_len - 64, 48);
	memcpy(bytes + file_len - 16, &hash, 8);
	ck_assert_int_eq(stoup_file_write(fd, bytes, file_len, 0), 0);
	close(fd);
	free(bytes);
}

/* Footer offset of the section of that kind. */
static uint64_t section_off(const struct stoup_store_volume *volume, uint32_t kind)
{
	for (uint64_t at = volume->index->footer_off + 16;; at += 32) {
		uint32_t found;
		uint64_t off;

		ck_assert_int_eq(stoup_file_read(volume->fd, &found, 4, at), 0);
		ck_assert_int_eq(stoup_file_read(volume->fd, &off, 8, at + 8), 0);
		if (found == kind)
			return volume->index->footer_off + off;
	}
}

/* Nothing was changed: all records but those of `lost_blocks` are there, in the one volume that there was. */
static void untouched(const uint8_t id[16])
{
	struct stoup_store *store = store_open();

	ck_assert_uint_eq(store->volume_cnt, 1);
	ck_assert_mem_eq(store->volumes[0]->index->header.id, id, 16);
	ck_assert_int_eq(fx_file_cnt(".tmp-"), 0);
	stoup_store_close(store);
}

START_TEST(a_block_of_a_later_codec_is_neither_rewritten_nor_dropped)
{
	struct stoup_store *store;
	uint8_t id[16];

	store_make();
	store = store_open();
	memcpy(id, store->volumes[0]->index->header.id, 16);
	volume_change(store->volumes[0], section_off(store->volumes[0], 5) + 20, 9, 4);
	stoup_store_close(store);
	ck_assert_int_eq(all_rewrite(), -ENOTSUP);
	ck_assert_msg(strstr(err.text, "later version") != NULL, "%s", err.text);
	untouched(id);
	ck_assert_int_eq(stoup_repair(fx_store, 0, 1, &err), -EUCLEAN);
	ck_assert_msg(strstr(err.text, "not mended") != NULL, "%s", err.text);
	untouched(id);
}
END_TEST

START_TEST(a_volume_of_a_later_minor_version_is_not_rewritten)
{
	struct stoup_store *store;
	uint8_t id[16];

	store_make();
	store = store_open();
	memcpy(id, store->volumes[0]->index->header.id, 16);
	volume_change(store->volumes[0], 10, STOUP_VOL_MINOR + 1, 2);
	stoup_store_close(store);
	ck_assert_int_eq(all_rewrite(), -ENOTSUP);
	ck_assert_msg(strstr(err.text, "rewrite it with a later version") != NULL, "%s", err.text);
	untouched(id);
	/* It is whole. */
	ck_assert_msg(stoup_repair(fx_store, 0, 1, &err) == 0, "%s", err.text);
	untouched(id);
}
END_TEST

START_TEST(a_rewrite_reads_back_what_it_read)
{
	struct fx_record *before, *after;
	size_t cnt;

	store_make();
	cnt = fx_read("X/A/t", &before);
	ck_assert_msg(all_rewrite() == 0, "%s", err.text);
	ck_assert_uint_eq(cnt, 2000);
	ck_assert_uint_eq(fx_read("X/A/t", &after), cnt);
	ck_assert_mem_eq(before, after, cnt * sizeof(*before));
	free(before);
	free(after);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rewrite");
	TCase *tc = tcase_create("rewrite");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, fx_setup, fx_teardown);
	tcase_add_test(tc, a_block_of_a_later_codec_is_neither_rewritten_nor_dropped);
	tcase_add_test(tc, a_volume_of_a_later_minor_version_is_not_rewritten);
	tcase_add_test(tc, a_rewrite_reads_back_what_it_read);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
