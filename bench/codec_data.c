/* SPDX-License-Identifier: Apache-2.0 */
/* codec_data.c - records for the benchmark of the codecs, see codec_data.h. */
#include "bench/codec_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "codec/block.h"
#include "producer/dbn.h"
#include "producer/input.h"
#include "producer/store.h"
#include "producer/volume_file.h"

void codec_data_free(struct codec_data *data, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		free(data[i].fields);
		free(data[i].records);
	}
}

static int append(struct codec_data *data, const void *bytes, size_t len)
{
	if (data->len + len > data->cap) {
		size_t cap = (data->len + len) * 2;
		uint8_t *grown = realloc(data->records, cap);

		if (!grown)
			return -ENOMEM;
		data->records = grown;
		data->cap = cap;
	}
	memcpy(data->records + data->len, bytes, len);
	data->len += len;
	return 0;
}

/* The entry of a schema, made where there is none. Its index or a negative errno. */
static int entry(struct codec_data *data, int *cnt, const char *name, uint32_t stride,
	const void *fields, uint32_t field_cnt)
{
	size_t len = field_cnt * sizeof(struct stoup_vol_field);

	for (int i = 0; i < *cnt; i++) {
		if (!strcmp(data[i].name, name) && data[i].stride == stride)
			return i;
	}
	if (*cnt == (int)CODEC_DATA_CAP)
		return -E2BIG;
	memset(&data[*cnt], 0, sizeof(*data));
	strncpy(data[*cnt].name, name, sizeof(data->name) - 1);
	data[*cnt].stride = stride;
	data[*cnt].field_cnt = field_cnt;
	data[*cnt].fields = malloc(len + 1);
	if (!data[*cnt].fields)
		return -ENOMEM;
	memcpy(data[*cnt].fields, fields, len);
	return (*cnt)++;
}

/* ---- a store --------------------------------------------------------------------------------- */

static int block_read(const struct stoup_store_volume *volume, uint32_t idx,
	struct codec_data *data, int *cnt, struct stoup_error *err)
{
	const struct stoup_vol_index *index = volume->index;
	const struct stoup_vol_block *block = &index->blocks[idx];
	const struct stoup_vol_schema *schema = &index->schemas[block->schema_idx];
	uint8_t *stored = malloc(block->stored_len), *raw = malloc(block->raw_len);
	void *scratch = aligned_alloc(64, stoup_block_scratch_len());
	struct stoup_vol_fault fault = {.what = "no memory"};
	int rc = stored && raw && scratch ? 0 : -ENOMEM, at;

	if (rc == 0)
		stoup_block_scratch_init(scratch);
	if (rc == 0)
		rc = stoup_volume_block_read(volume->fd, index, idx, stored, &fault);
	if (rc == 0)
		rc = stoup_vol_block_decode(index, idx, stored, raw, scratch, &fault);
	if (rc)
		stoup_error_set(err, rc, "%s: %s", volume->path, fault.what);
	if (rc == 0 && schema->stride) {
		at = entry(data, cnt, schema->name, schema->stride,
			index->fields + schema->field_first, schema->field_cnt);
		rc = at < 0 ? at : append(&data[at], raw, block->raw_len);
	}
	free(stored);
	free(raw);
	free(scratch);
	return rc;
}

static int store_read(const char *path, struct codec_data *data, struct stoup_error *err)
{
	struct stoup_store *store;
	int cnt = 0, rc = stoup_store_open(path, &store, err);

	if (rc)
		return rc;
	for (uint32_t v = 0; v < store->volume_cnt && rc == 0; v++)
		for (uint32_t i = 0; i < store->volumes[v]->index->block_cnt && rc == 0; i++)
			rc = block_read(store->volumes[v], i, data, &cnt, err);
	stoup_store_close(store);
	if (rc)
		codec_data_free(data, cnt);
	return rc ? rc : cnt;
}

/* ---- a DBN file ------------------------------------------------------------------------------ */

/* Behind the metadata: the next byte is the first record's. */
static int metadata_skip(
	struct stoup_input *input, struct stoup_dbn_prelude *prelude, struct stoup_error *err)
{
	uint8_t bytes[4096];
	int64_t got = stoup_input_read(input, bytes, STOUP_DBN_PRELUDE_LEN, err);
	uint32_t left;
	int rc;

	if (got < 0)
		return (int)got;
	rc = stoup_dbn_prelude(bytes, (size_t)got, prelude, err);
	if (rc)
		return rc;
	for (left = prelude->meta_len; left; left -= (uint32_t)got) {
		got = stoup_input_read(
			input, bytes, left < sizeof(bytes) ? left : sizeof(bytes), err);
		if (got <= 0)
			return got < 0 ? (int)got : -ENODATA;
	}
	return 0;
}

static int records_read(struct stoup_input *input, uint8_t version, struct codec_data *data,
	int *cnt, struct stoup_error *err)
{
	static uint8_t bytes[(1u << 20) + 1024];
	size_t have = 0, at;
	int64_t got;

	while ((got = stoup_input_read(input, bytes + have, 1u << 20, err)) > 0) {
		struct stoup_dbn_record record;

		have += (size_t)got;
		for (at = 0; stoup_dbn_record_next(bytes + at, have - at, &record) == 1;
			at += record.len) {
			const struct stoup_schema *schema =
				stoup_dbn_schema(record.rtype, version, STOUP_DBN_SCHEMA_MIXED);
			int idx;

			if (!schema || schema->stride != record.len)
				continue;
			idx = entry(data, cnt, schema->name, schema->stride, schema->fields,
				schema->field_cnt);
			if (idx < 0 || append(&data[idx], record.bytes, record.len))
				return -ENOMEM;
		}
		memmove(bytes, bytes + at, have - at);
		have -= at;
	}
	return (int)got;
}

/* By instrument; the records of one keep their order. */
static int instrument_cmp(const void *a, const void *b)
{
	const uint8_t *const *x = a, *const *y = b;
	uint32_t p, q;

	memcpy(&p, *x + 4, 4);
	memcpy(&q, *y + 4, 4);
	if (p != q)
		return p < q ? -1 : 1;
	return *x < *y ? -1 : 1;
}

/* As an ingest cuts them into series. */
static int by_instrument(struct codec_data *data)
{
	size_t cnt = data->len / data->stride;
	const uint8_t **order = malloc((cnt + 1) * sizeof(*order));
	uint8_t *sorted = malloc(data->len + 1);

	if (!order || !sorted) {
		free(order);
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cnt; i++)
		order[i] = data->records + i * data->stride;
	qsort(order, cnt, sizeof(*order), instrument_cmp);
	for (size_t i = 0; i < cnt; i++)
		memcpy(sorted + i * data->stride, order[i], data->stride);
	free(data->records);
	data->records = sorted;
	data->cap = data->len;
	free(order);
	return 0;
}

static int dbn_read(const char *path, struct codec_data *data, struct stoup_error *err)
{
	struct stoup_dbn_prelude prelude;
	struct stoup_input *input;
	int cnt = 0, rc = stoup_input_open(path, &input, err);

	if (rc)
		return rc;
	rc = metadata_skip(input, &prelude, err);
	if (rc == 0)
		rc = records_read(input, prelude.version, data, &cnt, err);
	stoup_input_close(input);
	for (int i = 0; i < cnt && rc == 0; i++)
		rc = by_instrument(&data[i]);
	if (rc)
		codec_data_free(data, cnt);
	return rc ? rc : cnt;
}

int codec_data_read(
	const char *path, struct codec_data ret[CODEC_DATA_CAP], struct stoup_error *err)
{
	struct stat st;

	if (stat(path, &st))
		return stoup_error_set(err, -errno, "%s: %s", path, strerror(errno));
	return S_ISDIR(st.st_mode) ? store_read(path, ret, err) : dbn_read(path, ret, err);
}
