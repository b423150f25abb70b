/* SPDX-License-Identifier: Apache-2.0 */
/* import_fixture.h - records whose bytes tell what they are, a store in a temporary directory, and
 * a reader of stores that goes through the volume format only.
 *
 * Include in one file of a test program. Concurrency: one thread.
 */
#ifndef STOUP_TEST_IMPORT_FIXTURE_H
#define STOUP_TEST_IMPORT_FIXTURE_H

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "codec/block.h"
#include "producer/cmd.h"
#include "producer/import.h"
#include "producer/store.h"
#include "producer/volume_file.h"

#define FX_STRIDE  56u
#define FX_KEY_OFF 8u

/* order_id, key, price, size, and bytes that depend on all of them. */
static const struct stoup_field fx_fields[] = {
	{.name = "order_id", .off = 0, .cnt = 1, .type = STOUP_TYPE_U64},
	{.name = "ts",
		.off = 8,
		.cnt = 1,
		.type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_KEY | STOUP_FIELD_TIME},
	{.name = "price",
		.off = 16,
		.cnt = 1,
		.type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_NULL,
		.exp10 = -9,
		.null_bits = INT64_MAX},
	{.name = "size", .off = 24, .cnt = 1, .type = STOUP_TYPE_U32},
	{.name = "rest", .off = 28, .cnt = 28, .type = STOUP_TYPE_BYTES},
};

struct fx_record {
	uint64_t order_id;
	int64_t key, price;
	uint32_t size;
	uint8_t rest[28];
};

_Static_assert(sizeof(struct fx_record) == FX_STRIDE, "as fx_fields says");

static char fx_root[256];  /* removed at the end */
static char fx_store[300]; /* inside it; absent at first */

static inline struct stoup_schema fx_schema_named(const char *name)
{
	struct stoup_schema schema = {.stride = FX_STRIDE,
		.align = 8,
		.key_off = FX_KEY_OFF,
		.field_cnt = sizeof(fx_fields) / sizeof(fx_fields[0]),
		.fields = fx_fields};

	snprintf(schema.name, sizeof(schema.name), "%s", name);
	schema.hash = stoup_schema_hash(&schema);
	ck_assert_int_eq(stoup_schema_valid(&schema, NULL), 0);
	return schema;
}

static inline struct stoup_schema fx_schema(void)
{
	return fx_schema_named("fx");
}

static inline void fx_setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(fx_root, sizeof(fx_root), "%s/stoup-import-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(fx_root));
	snprintf(fx_store, sizeof(fx_store), "%s/store", fx_root);
}

static inline void fx_remove(const char *path)
{
	struct dirent *entry;
	char file[700];
	DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir))) {
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		unlink(file);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

static inline void fx_teardown(void)
{
	fx_remove(fx_store);
	ck_assert_int_eq(rmdir(fx_root), 0);
}

/* splitmix64 of a number: records and keys that look random and can be computed again. */
static inline uint64_t fx_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* The record `order_id` at `key`: all of its bytes follow from the two. */
static inline struct fx_record fx_record_make(uint64_t order_id, int64_t key)
{
	struct fx_record record = {.order_id = order_id,
		.key = key,
		.price = (int64_t)(fx_mix(order_id) % 100000) * 250000000,
		.size = (uint32_t)(order_id % 17 + 1)};

	memset(record.rest, (int)(fx_mix(order_id ^ (uint64_t)key) & 15), sizeof(record.rest));
	return record;
}

static inline struct stoup_import_options fx_options(void)
{
	return (struct stoup_import_options){.store_path = fx_store,
		.encoding = {.codec = STOUP_CODEC_LZ4, .level = 1},
		.block_len = 64 << 10,
		.quiet = 1,
		.threads = 2};
}

static inline struct stoup_import *fx_begin(const struct stoup_import_options *options)
{
	struct stoup_import *import = NULL;
	struct stoup_error err = {0};

	ck_assert_msg(stoup_import_begin(options, &import, &err) == 0, "%s", err.text);
	return import;
}

static inline uint32_t fx_series(struct stoup_import *import, const char *name)
{
	struct stoup_schema schema = fx_schema();
	struct stoup_error err = {0};
	int64_t idx = stoup_import_series(import, name, &schema, &err);

	ck_assert_msg(idx >= 0, "%s", err.text);
	return (uint32_t)idx;
}

static inline int fx_try_put(struct stoup_import *import, uint32_t series, uint64_t order_id,
	int64_t key, struct stoup_error *err)
{
	struct fx_record record = fx_record_make(order_id, key);
	struct stoup_where where = {.file = "in.csv", .line = order_id};

	return stoup_import_put(import, series, key, &record, &where, err);
}

static inline void fx_put(
	struct stoup_import *import, uint32_t series, uint64_t order_id, int64_t key)
{
	struct stoup_error err = {0};

	ck_assert_msg(fx_try_put(import, series, order_id, key, &err) == 0, "%s", err.text);
}

static inline void fx_finish(struct stoup_import *import)
{
	struct stoup_error err = {0};

	ck_assert_msg(stoup_import_finish(import, &err) == 0, "%s", err.text);
	stoup_import_destroy(import);
}

/* ---- reading back ---------------------------------------------------------------------------- */

struct fx_part {
	const struct stoup_store_volume *volume;
	const struct stoup_vol_series *series;
};

static inline int fx_part_cmp(const void *pa, const void *pb)
{
	const struct fx_part *a = pa, *b = pb;

	return stoup_store_part_cmp(a->volume->index, a->series, b->volume->index, b->series);
}

static inline void fx_part_read(const struct fx_part *part, struct fx_record **records, size_t *cnt)
{
	static uint8_t stored[4 << 20], raw[4 << 20];
	const struct stoup_vol_index *index = part->volume->index;
	void *scratch = aligned_alloc(64, (stoup_block_scratch_len() + 63) / 64 * 64);
	struct stoup_vol_fault fault;
	uint32_t i;

	ck_assert_ptr_nonnull(scratch);
	stoup_block_scratch_init(scratch);
	for (i = 0; i < part->series->segment_cnt; i++) {
		const struct stoup_vol_segment *segment =
			&index->segments[part->series->segment_first + i];

		ck_assert_uint_le(index->blocks[segment->block_idx].raw_len, sizeof(raw));
		ck_assert_int_eq(stoup_volume_block_read(part->volume->fd, index,
					 segment->block_idx, stored, &fault),
			0);
		ck_assert_int_eq(stoup_vol_block_decode(
					 index, segment->block_idx, stored, raw, scratch, &fault),
			0);
		*records = realloc(*records, (*cnt + segment->record_cnt) * FX_STRIDE);
		memcpy(*records + *cnt, raw + segment->raw_off, segment->record_cnt * FX_STRIDE);
		*cnt += segment->record_cnt;
	}
	free(scratch);
}

/* All records of a series in the order of its parts, which may not overlap; the caller frees. */
static inline size_t fx_read_schema(
	const char *name, const struct stoup_schema *schema, struct fx_record **ret)
{
	struct fx_part parts[512];
	struct stoup_store *store = NULL;
	size_t part_cnt = 0, cnt = 0, i;
	struct fx_record *records = NULL;

	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->fault_cnt, 0);
	for (i = 0; i < store->volume_cnt; i++) {
		const struct stoup_vol_series *series =
			stoup_store_series_find(store->volumes[i]->index, name, schema->hash);

		ck_assert_uint_lt(part_cnt, 512);
		if (series)
			parts[part_cnt++] = (struct fx_part){store->volumes[i], series};
	}
	qsort(parts, part_cnt, sizeof(parts[0]), fx_part_cmp);
	for (i = 0; i < part_cnt; i++) {
		if (i > 0)
			ck_assert_int_ge(parts[i].series->first_key, parts[i - 1].series->last_key);
		fx_part_read(&parts[i], &records, &cnt);
	}
	stoup_store_close(store);
	*ret = records;
	return cnt;
}

static inline size_t fx_read(const char *name, struct fx_record **ret)
{
	struct stoup_schema schema = fx_schema();

	return fx_read_schema(name, &schema, ret);
}

/* Every checksum, padding and key of the store. */
static inline void fx_verify(void)
{
	char command[] = "verify", quiet[] = "--quiet";
	char *argv[] = {command, quiet, fx_store, NULL};

	ck_assert_int_eq(stoup_cmd_verify(3, argv), 0);
}

/* A stream of the process that goes into a file for a while. */
struct fx_capture {
	FILE *stream;
	int fd, saved;
};

static inline struct fx_capture fx_capture_begin(FILE *stream)
{
	struct fx_capture capture = {.stream = stream};
	char path[400];

	snprintf(path, sizeof(path), "%s/out", fx_root);
	capture.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ck_assert_int_ge(capture.fd, 0);
	unlink(path);
	fflush(stream);
	capture.saved = dup(fileno(stream));
	dup2(capture.fd, fileno(stream));
	return capture;
}

static inline void fx_capture_end(const struct fx_capture *capture, char *text, size_t cap)
{
	ssize_t len;

	fflush(capture->stream);
	dup2(capture->saved, fileno(capture->stream));
	close(capture->saved);
	len = pread(capture->fd, text, cap - 1, 0);
	close(capture->fd);
	ck_assert_int_ge(len, 0);
	text[len] = '\0';
}

static char fx_stderr[4096]; /* what the last command of fx_run said there */

/* Run a command with its stdout and stderr in files; returns its exit status and the text of stdout
 * (static). */
static inline int fx_run(int (*command)(int, char **), char **argv, const char **ret_text)
{
	static char text[1 << 20];
	struct fx_capture out = fx_capture_begin(stdout), said = fx_capture_begin(stderr);
	int argc = 0, status;

	while (argv[argc])
		argc++;
	status = command(argc, argv);
	fx_capture_end(&said, fx_stderr, sizeof(fx_stderr));
	fx_capture_end(&out, text, sizeof(text));
	*ret_text = text;
	return status;
}

static inline int fx_file_cnt(const char *prefix)
{
	struct dirent *entry;
	DIR *dir = opendir(fx_store);
	int cnt = 0;

	while (dir && (entry = readdir(dir)))
		cnt += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	if (dir)
		closedir(dir);
	return cnt;
}

#endif
