/* SPDX-License-Identifier: Apache-2.0 */
/* message_fixture.h - messages that follow from their number, and a reader of stored ones that knows the
 * format from docs/volume-format.md alone. */
#ifndef STOUP_TEST_MESSAGE_FIXTURE_H
#define STOUP_TEST_MESSAGE_FIXTURE_H

#include "import_fixture.h"

/* Mostly short, now and then none or some KiB; a length of its own where the caller wants one. */
static inline uint32_t mx_len(uint64_t id)
{
	uint64_t mix = fx_mix(id);

	if (mix % 19 == 0)
		return 0;
	return (uint32_t)(mix % 61 == 0 ? mix / 61 % 6000 : mix / 64 % 90);
}

static inline void mx_fill(uint64_t id, uint8_t *bytes, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((uint8_t) "{\"e\":[0,17]}ab"[i % 14] +
				     (i % 5 == 4 ? fx_mix(id + i) % 7 : 0));
}

static inline uint32_t mx_series_of(
	struct stoup_import *import, const char *name, const char *schema)
{
	struct stoup_error err = {0};
	int64_t idx = stoup_import_series(import, name, stoup_schema_by_name(schema), &err);

	ck_assert_msg(idx >= 0, "%s", err.text);
	return (uint32_t)idx;
}

static inline int mx_try_put(struct stoup_import *import, uint32_t series, uint64_t id, int64_t key,
	uint32_t len, struct stoup_error *err)
{
	uint8_t *bytes = malloc(len + 1);
	struct stoup_where where = {.file = "in.jsonl", .line = id};
	int rc;

	mx_fill(id, bytes, len);
	rc = stoup_import_put_message(import, series, key, bytes, len, &where, err);
	free(bytes);
	return rc;
}

static inline void mx_put_len(
	struct stoup_import *import, uint32_t series, uint64_t id, int64_t key, uint32_t len)
{
	struct stoup_error err = {0};

	ck_assert_msg(mx_try_put(import, series, id, key, len, &err) == 0, "%s", err.text);
}

static inline void mx_put(struct stoup_import *import, uint32_t series, uint64_t id, int64_t key)
{
	mx_put_len(import, series, id, key, mx_len(id));
}

/* ---- reading back ---------------------------------------------------------------------------- */

struct mx_message {
	int64_t key;
	uint32_t len;
	uint8_t *bytes; /* on the heap */
};

struct mx_list {
	struct mx_message *at;
	size_t cnt;
	uint32_t block_cnt, segment_cnt, volume_cnt;
	uint32_t raw_len_max; /* of its blocks */
};

static inline void mx_run_read(
	const uint8_t *run, const struct stoup_vol_segment *segment, struct mx_list *list)
{
	uint32_t table = segment->raw_len - 4 * segment->record_cnt, i;

	for (i = 0; i < segment->record_cnt; i++) {
		struct mx_message *message;
		uint32_t distance, off;

		memcpy(&distance, run + table + 4 * i, 4);
		off = table + 4 * i - distance;
		list->at = realloc(list->at, (list->cnt + 1) * sizeof(*list->at));
		message = &list->at[list->cnt++];
		memcpy(&message->key, run + off, 8);
		memcpy(&message->len, run + off + 8, 4);
		message->bytes = malloc(message->len + 1);
		memcpy(message->bytes, run + off + 16, message->len);
	}
}

static inline void mx_part_read(const struct fx_part *part, struct mx_list *list)
{
	static uint8_t stored[STOUP_BLOCK_RAW_CAP];
	static _Alignas(64) uint8_t raw[STOUP_BLOCK_RAW_CAP];
	const struct stoup_vol_index *index = part->volume->index;
	void *scratch = aligned_alloc(64, (stoup_block_scratch_len() + 63) / 64 * 64);
	uint32_t i, before = UINT32_MAX;

	stoup_block_scratch_init(scratch);
	for (i = 0; i < part->series->segment_cnt; i++) {
		const struct stoup_vol_segment *segment =
			&index->segments[part->series->segment_first + i];
		const struct stoup_vol_block *block = &index->blocks[segment->block_idx];

		ck_assert_int_eq(stoup_volume_block_read(
					 part->volume->fd, index, segment->block_idx, stored, NULL),
			0);
		ck_assert_int_eq(stoup_vol_block_decode(
					 index, segment->block_idx, stored, raw, scratch, NULL),
			0);
		mx_run_read(raw + segment->raw_off, segment, list);
		list->segment_cnt++;
		list->block_cnt += segment->block_idx != before;
		before = segment->block_idx;
		if (block->raw_len > list->raw_len_max)
			list->raw_len_max = block->raw_len;
	}
	free(scratch);
}

static inline struct mx_list mx_read(const char *name, const char *schema)
{
	struct fx_part parts[512];
	struct stoup_store *store = NULL;
	struct mx_list list = {0};
	uint32_t i;

	ck_assert_int_eq(stoup_store_open(fx_store, &store, NULL), 0);
	ck_assert_uint_eq(store->fault_cnt, 0);
	for (i = 0; i < store->volume_cnt; i++) {
		const struct stoup_vol_series *series = stoup_store_series_find(
			store->volumes[i]->index, name, stoup_schema_by_name(schema)->hash);

		ck_assert_uint_lt(list.volume_cnt, 512);
		if (series)
			parts[list.volume_cnt++] = (struct fx_part){store->volumes[i], series};
	}
	qsort(parts, list.volume_cnt, sizeof(parts[0]), fx_part_cmp);
	for (i = 0; i < list.volume_cnt; i++)
		mx_part_read(&parts[i], &list);
	stoup_store_close(store);
	return list;
}

static inline void mx_free(struct mx_list *list)
{
	for (size_t i = 0; i < list->cnt; i++)
		free(list->at[i].bytes);
	free(list->at);
}

/* Is a message the one of this number, key and length? */
static inline void mx_check(
	const struct mx_message *message, uint64_t id, int64_t key, uint32_t len)
{
	uint8_t *expected = malloc(len + 1);

	mx_fill(id, expected, len);
	ck_assert_int_eq(message->key, key);
	ck_assert_uint_eq(message->len, len);
	ck_assert_msg(memcmp(message->bytes, expected, len) == 0, "message %llu has other bytes",
		(unsigned long long)id);
	free(expected);
}

#endif
