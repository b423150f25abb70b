/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_out.c - records to blocks, blocks to volumes.
 *
 *      full block of the old volume     copied as it is stored: not decoded for it, not encoded
 *      all else                         slot -> encoders -> volume
 *
 * A copied block needs an empty slot before it. Where the slot holds the rest of the part before, the rest and the
 * block become two blocks of half their sum: so a series does not fall apart into small blocks, whatever the number
 * of volumes that it came from, and what follows is copied again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "producer/rewrite_private.h"
#include "producer/stop.h"
#include "shm/message.h"

#define THREAD_CNT_CAP       16u
#define THREAD_CNT_CAP_HEAVY 4u /* the strongest levels of zstd need tens of MiB each */
#define ZSTD_LEVEL_HEAVY     16

/* ---- life ------------------------------------------------------------------------------------ */

static uint32_t thread_cnt(const struct stoup_rewrite *rewrite)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t cnt = rewrite->options.threads ? rewrite->options.threads
	               : cores > 0              ? (uint32_t)cores
	                                        : 1;
	uint32_t cap = rewrite->encoding.codec == STOUP_CODEC_ZSTD &&
	                               rewrite->encoding.level >= ZSTD_LEVEL_HEAVY
	                       ? THREAD_CNT_CAP_HEAVY
	                       : THREAD_CNT_CAP;

	return cnt < cap ? cnt : cap;
}

int stoup_rewrite_out_init(struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	struct timespec now;
	int rc;

	*out = (struct stoup_rewrite_out){0};
	clock_gettime(CLOCK_REALTIME, &now);
	out->created_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	rc = stoup_store_id_make(out->id);
	if (rc == 0)
		rc = stoup_encode_create(&rewrite->encoding, thread_cnt(rewrite),
			rewrite->raw_cap ? rewrite->raw_cap : 1, &out->encode);
	return rc < 0 ? stoup_error_set(err, rc, "starting the encoders failed: %s", strerror(-rc))
	              : 0;
}

void stoup_rewrite_out_fini(struct stoup_rewrite *rewrite, int published)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	uint32_t i;

	for (i = 0; i < out->file_cnt && !published; i++)
		stoup_volume_file_abort(&out->files[i]);
	stoup_encode_destroy(out->encode);
	free(out->files);
	free(out->block_cnts);
	*out = (struct stoup_rewrite_out){0};
}

/* ---- volumes --------------------------------------------------------------------------------- */

/* A full disk: what is needed, judging by what was written so far, or before that by the old volumes. */
static int write_failed(const struct stoup_rewrite *rewrite, int code, struct stoup_error *err)
{
	const struct stoup_rewrite_out *out = &rewrite->out;
	char written[STOUP_SIZE_TEXT_CAP], more[STOUP_SIZE_TEXT_CAP];
	uint64_t left = rewrite->raw_total > out->raw_len ? rewrite->raw_total - out->raw_len : 0;
	double ratio = out->raw_len > 0 ? (double)out->stored_len / (double)out->raw_len
	               : rewrite->raw_total > 0
	                       ? (double)rewrite->stored_total / (double)rewrite->raw_total
	                       : 1;

	if (code != -ENOSPC && code != -EDQUOT)
		return code;
	stoup_size_format(out->stored_len, written);
	stoup_size_format((uint64_t)((double)left * ratio) + 4096, more);
	return stoup_error_set(err, code,
		"%.120s: %s: %s written, about %s more needed beside the old volumes: free that there; "
		"the store is unchanged",
		rewrite->lock.path, strerror(-code), written, more);
}

static int file_grow(struct stoup_rewrite_out *out)
{
	uint32_t cap = out->file_cap ? out->file_cap * 2 : 4;
	void *files, *cnts;

	if (out->file_cnt < out->file_cap)
		return 0;
	files = realloc(out->files, cap * sizeof(*out->files));
	if (files)
		out->files = files;
	cnts = realloc(out->block_cnts, cap * sizeof(*out->block_cnts));
	if (cnts)
		out->block_cnts = cnts;
	if (!files || !cnts)
		return -ENOMEM;
	out->file_cap = cap;
	return 0;
}

static int volume_open(struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	struct stoup_vol_header header = {
		.major = STOUP_VOL_MAJOR,
		.minor = STOUP_VOL_MINOR,
		.created_ns = out->created_ns,
		.ingest_seq = rewrite->store->next_seq,
		.batch_idx = out->file_cnt,
		.batch_cnt = out->file_cnt + 1, /* until all are known */
	};
	struct stoup_volume_file *file;
	size_t i;
	int rc = out->file_cnt < STOUP_STORE_BATCH_CAP ? file_grow(out) : -EFBIG;

	if (rc < 0)
		return stoup_error_set(err, rc, "%.120s: one volume more: %s; raise --volume",
			rewrite->lock.path, strerror(-rc));
	memcpy(header.id, out->id, 16);
	header.id[14] = (uint8_t)header.batch_idx;
	header.id[15] = (uint8_t)(header.batch_idx >> 8);
	file = &out->files[out->file_cnt];
	rc = stoup_volume_file_create(&rewrite->lock, &header, file, err);
	if (rc < 0)
		return write_failed(rewrite, rc, err);
	out->block_cnts[out->file_cnt++] = 0;
	out->volume_raw_len = 0;
	for (i = 0; i < rewrite->superseded_cnt && rc == 0; i++)
		rc = stoup_vol_add_superseded(file->writer, rewrite->superseded[i]);
	for (i = 0; i < rewrite->source_cnt && rc == 0; i++)
		rc = stoup_vol_add_source(file->writer, &rewrite->sources[i]);
	return rc < 0 ? stoup_error_set(err, rc, "%.120s: listing what it replaces failed: %s",
				rewrite->lock.path, strerror(-rc))
	              : 0;
}

/* The writer's index of a schema, declared at its first use in this volume. */
static int schema_declare(struct stoup_rewrite *rewrite, struct stoup_rewrite_schema *schema)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	int idx;

	if (schema->volume_mark == out->file_cnt)
		return 0;
	idx = stoup_vol_add_schema(out->files[out->file_cnt - 1].writer, schema->vol,
		&schema->index->fields[schema->vol->field_first]);
	if (idx < 0)
		return idx;
	schema->volume_schema_idx = (uint32_t)idx;
	schema->volume_mark = out->file_cnt;
	return 0;
}

static int series_declare(struct stoup_rewrite *rewrite, uint32_t series_idx)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	struct stoup_rewrite_series *series = &rewrite->series[series_idx];
	int64_t idx;

	if (series->volume_mark == out->file_cnt)
		return 0;
	idx = stoup_vol_add_series(out->files[out->file_cnt - 1].writer,
		stoup_parts_first(&rewrite->parts, series_idx)->series->name,
		rewrite->schemas[series->schema_idx].volume_schema_idx, series->flags);
	if (idx < 0)
		return (int)idx;
	series->volume_series_idx = (uint32_t)idx;
	series->volume_mark = out->file_cnt;
	return 0;
}

static int segments_write(
	struct stoup_rewrite *rewrite, const struct stoup_encode_slot *slot, uint32_t block_idx)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < slot->segment_cnt && rc == 0; i++) {
		const struct stoup_encode_segment *segment = &slot->segments[i];

		rc = series_declare(rewrite, segment->series_idx);
		if (rc == 0)
			rc = stoup_vol_add_segment(out->files[out->file_cnt - 1].writer,
				rewrite->series[segment->series_idx].volume_series_idx, block_idx,
				segment->raw_off, segment->record_cnt, segment->first_key,
				segment->last_key);
		if (rc == 0)
			rc = stoup_encode_zone_write(
				slot, segment, out->files[out->file_cnt - 1].writer);
	}
	return rc;
}

/* Write one encoded block into the volume that it belongs to. */
static int slot_write(struct stoup_rewrite *rewrite, const struct stoup_encode_slot *slot,
	struct stoup_error *err)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	struct stoup_rewrite_schema *schema = &rewrite->schemas[slot->schema_idx];
	struct stoup_volume_block block;
	int64_t idx;
	int rc = stoup_stop_asked(err);

	if (rc == 0)
		rc = stoup_encode_block(slot, &block, err);
	if (rc < 0)
		return rc;
	if (out->file_cnt == 0 || (out->volume_raw_len > 0 && out->volume_raw_len + slot->raw_len >
								      rewrite->options.volume_len))
		rc = volume_open(rewrite, err);
	if (rc < 0)
		return rc;
	out->volume_raw_len += slot->raw_len;
	rc = schema_declare(rewrite, schema);
	if (rc < 0)
		goto out_index;
	block.schema_idx = schema->volume_schema_idx;
	idx = stoup_volume_file_block(&out->files[out->file_cnt - 1], &block, err);
	if (idx < 0)
		return write_failed(rewrite, (int)idx, err);
	out->block_cnts[out->file_cnt - 1]++;
	out->stored_len += slot->stored_len;
	out->raw_len += slot->raw_len;
	stoup_progress_step(&rewrite->progress, out->raw_len, 0);
	rc = segments_write(rewrite, slot, (uint32_t)idx);
	if (rc == 0)
		return 0;
out_index:
	return stoup_error_set(err, rc, "%.120s: adding to a volume's index failed: %s",
		rewrite->lock.path, strerror(-rc));
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Write the table of the open run of messages. */
static void run_end(struct stoup_rewrite_out *out)
{
	struct stoup_encode_slot *slot = out->slot;

	if (out->run_cnt == 0)
		return;
	slot->raw_len = out->run_off + stoup_message_run_end(slot->raw + out->run_off,
					       slot->raw_len - out->run_off, out->run_cnt);
	out->run_cnt = 0;
}

static void layout_set(struct stoup_rewrite *rewrite)
{
	const struct stoup_schema *schema = &rewrite->schemas[rewrite->out.schema_idx].schema;

	rewrite->out.slot->layout = (struct stoup_block_layout){
		.stride = schema->stride,
		.field_cnt = schema->field_cnt,
		.fields = (const void *)schema->fields, /* the same 64 bytes */
	};
}

static void block_submit(struct stoup_rewrite *rewrite)
{
	struct stoup_encode_slot *slot = rewrite->out.slot;

	run_end(&rewrite->out);
	slot->schema_idx = rewrite->out.schema_idx;
	layout_set(rewrite);
	rewrite->out.slot = NULL;
	stoup_encode_submit(rewrite->out.encode);
}

/* Have a slot to fill, writing the oldest block where all are in use. */
static int block_begin(struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	int rc = 0;

	while (!out->slot && rc == 0) {
		out->slot = stoup_encode_next(out->encode);
		if (!out->slot)
			rc = slot_write(rewrite, stoup_encode_retire(out->encode), err);
	}
	return rc;
}

void stoup_rewrite_out_series(struct stoup_rewrite *rewrite, uint32_t series_idx)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	uint32_t schema_idx = rewrite->series[series_idx].schema_idx;

	run_end(out);
	if (out->slot && out->slot->raw_len > 0 && schema_idx != out->schema_idx)
		block_submit(rewrite);
	out->schema_idx = schema_idx;
	out->series_idx = series_idx;
	out->key = 0;
}

/* Note cnt records at the end of the slot: more of its last segment, or a new one. */
static int segment_note(
	struct stoup_rewrite_out *out, uint32_t cnt, int64_t first_key, int64_t last_key)
{
	struct stoup_encode_slot *slot = out->slot;
	struct stoup_encode_segment *last =
		slot->segment_cnt ? &slot->segments[slot->segment_cnt - 1] : NULL;

	if (last && last->series_idx == out->series_idx) {
		last->record_cnt += cnt;
		last->last_key = last_key;
		return 0;
	}
	if (slot->segment_cnt == slot->segment_cap) {
		uint32_t cap = slot->segment_cap ? slot->segment_cap * 2 : 16;
		struct stoup_encode_segment *grown = realloc(slot->segments, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		slot->segments = grown;
		slot->segment_cap = cap;
	}
	slot->segments[slot->segment_cnt++] = (struct stoup_encode_segment){
		.series_idx = out->series_idx,
		.raw_off = slot->raw_len,
		.record_cnt = cnt,
		.first_key = first_key,
		.last_key = last_key,
	};
	return 0;
}

static int no_index_memory(const struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	return stoup_error_set(err, -ENOMEM, "series %.100s: no memory for its index",
		stoup_parts_first(&rewrite->parts, rewrite->out.series_idx)->series->name);
}

static int steps_back(const struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	return stoup_error_set(err, -EBADMSG,
		"series %.100s: keys step back in a volume of the store; `stoup verify` names it",
		stoup_parts_first(&rewrite->parts, rewrite->out.series_idx)->series->name);
}

/* The effective key of the last of cnt records; -1 where keys step back and may not. */
static int64_t last_key_of(
	const struct stoup_rewrite *rewrite, const uint8_t *records, uint64_t cnt, int64_t key)
{
	const struct stoup_rewrite_series *series = &rewrite->series[rewrite->out.series_idx];
	const struct stoup_schema *schema = &rewrite->schemas[series->schema_idx].schema;
	int keeps = (series->flags & STOUP_VOL_SERIES_KEEP_ORDER) != 0;
	uint64_t i;

	for (i = 0; i < cnt; i++) {
		int64_t next = stoup_sums_key(schema, records + i * schema->stride);

		if (next < key && !keeps)
			return -1;
		key = next > key ? next : key;
	}
	return key;
}

/* Put records as long as the block is shorter than `limit` bytes; returns how many, or a negative errno. */
static int64_t records_fill(struct stoup_rewrite *rewrite, const uint8_t *records, uint64_t cnt,
	uint64_t limit, struct stoup_error *err)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	struct stoup_rewrite_series *series = &rewrite->series[out->series_idx];
	const struct stoup_schema *schema = &rewrite->schemas[series->schema_idx].schema;
	int64_t first, last;
	uint64_t n;
	int rc = block_begin(rewrite, err);

	if (rc < 0)
		return rc;
	n = (limit - out->slot->raw_len) / schema->stride;
	n = n < cnt ? n : cnt;
	if (n == 0)
		return 0;
	first = stoup_sums_key(schema, records);
	first = first > out->key ? first : out->key;
	last = last_key_of(rewrite, records, n, out->key);
	if (last < first)
		return steps_back(rewrite, err);
	if (segment_note(out, (uint32_t)n, first, last) < 0)
		return no_index_memory(rewrite, err);
	memcpy(out->slot->raw + out->slot->raw_len, records, n * schema->stride);
	out->slot->raw_len += (uint32_t)(n * schema->stride);
	out->key = last;
	stoup_sums_add(&series->put, &series->fields, schema, records, n, first, last);
	return (int64_t)n;
}

/* Put one message into the open run. */
static int message_put(struct stoup_rewrite *rewrite, const uint8_t *unit, struct stoup_error *err)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	struct stoup_rewrite_series *series = &rewrite->series[out->series_idx];
	const struct stoup_rewrite_schema *schema = &rewrite->schemas[series->schema_idx];
	uint32_t len = stoup_sums_record_len(&schema->schema, unit);
	int64_t key = last_key_of(rewrite, unit, 1, out->key);
	int rc;

	if (key < 0)
		return steps_back(rewrite, err);
	if (out->slot && out->slot->raw_len > 0 &&
		(uint64_t)out->slot->raw_len + len + stoup_message_table_len(out->run_cnt + 1) >
			schema->block_len)
		block_submit(rewrite);
	rc = block_begin(rewrite, err);
	if (rc < 0)
		return rc;
	if (segment_note(out, 1, key, key) < 0)
		return no_index_memory(rewrite, err);
	if (out->run_cnt++ == 0)
		out->run_off = out->slot->raw_len;
	memcpy(out->slot->raw + out->slot->raw_len, unit, len);
	out->slot->raw_len += len;
	out->key = key;
	stoup_sums_add(&series->put, &series->fields, &schema->schema, unit, 1, key, key);
	return 0;
}

static int messages_put(
	struct stoup_rewrite *rewrite, const uint8_t *units, uint64_t cnt, struct stoup_error *err)
{
	const struct stoup_schema *schema = &rewrite->schemas[rewrite->out.schema_idx].schema;
	int rc = 0;

	for (; cnt > 0 && rc == 0; cnt--) {
		rc = message_put(rewrite, units, err);
		units += stoup_sums_record_len(schema, units);
	}
	return rc;
}

int stoup_rewrite_out_records(struct stoup_rewrite *rewrite, const uint8_t *records, uint64_t cnt,
	struct stoup_error *err)
{
	const struct stoup_rewrite_schema *schema = &rewrite->schemas[rewrite->out.schema_idx];
	uint32_t stride = schema->schema.stride;

	if (stride == 0)
		return messages_put(rewrite, records, cnt, err);
	while (cnt > 0) {
		int64_t n = records_fill(rewrite, records, cnt, schema->block_len, err);

		if (n < 0)
			return (int)n;
		records += (uint64_t)n * stride;
		cnt -= (uint64_t)n;
		if (rewrite->out.slot->raw_len + stride > schema->block_len)
			block_submit(rewrite);
	}
	return 0;
}

/* ---- copying --------------------------------------------------------------------------------- */

int stoup_rewrite_out_takes(
	const struct stoup_rewrite *rewrite, const struct stoup_vol_block *block)
{
	const struct stoup_rewrite_schema *schema = &rewrite->schemas[rewrite->out.schema_idx];

	return stoup_rewrite_is_stored_so(rewrite, block, schema->schema.stride) &&
	       block->raw_len <= schema->block_len &&
	       block->raw_len >= schema->block_len - schema->block_len / 4;
}

/* What stands in the slot and the block to come, in two blocks of half their sum. */
static int share_out(struct stoup_rewrite *rewrite, const uint8_t *raw, uint32_t raw_len,
	struct stoup_error *err)
{
	uint32_t stride = rewrite->schemas[rewrite->out.schema_idx].schema.stride;
	uint64_t cnt = raw_len / stride, half = (rewrite->out.slot->raw_len + raw_len) / 2;
	int64_t n = records_fill(rewrite, raw, cnt, half, err);

	if (n < 0)
		return (int)n;
	block_submit(rewrite);
	n = records_fill(rewrite, raw + (uint64_t)n * stride, cnt - (uint64_t)n, raw_len, err);
	if (n < 0)
		return (int)n;
	block_submit(rewrite);
	return 0;
}

int stoup_rewrite_out_block(struct stoup_rewrite *rewrite, const struct stoup_vol_block *block,
	const struct stoup_vol_segment *segment, const uint8_t *raw, const uint8_t *stored,
	struct stoup_error *err)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	struct stoup_rewrite_series *series = &rewrite->series[out->series_idx];
	const struct stoup_rewrite_schema *schema = &rewrite->schemas[series->schema_idx];
	struct stoup_encode_slot *slot;
	int rc = 0;

	if (out->slot && out->slot->raw_len > 0 && schema->schema.stride > 0 &&
		out->slot->raw_len < schema->block_len / 2)
		return share_out(rewrite, raw, block->raw_len, err);
	if (out->slot && out->slot->raw_len > 0)
		block_submit(rewrite);
	if (segment->first_key < out->key)
		return steps_back(rewrite, err);
	rc = block_begin(rewrite, err);
	if (rc == 0 &&
		segment_note(out, segment->record_cnt, segment->first_key, segment->last_key) < 0)
		rc = no_index_memory(rewrite, err);
	if (rc < 0)
		return rc;
	slot = out->slot;
	/* The block that is copied may come from a volume without zone maps. */
	layout_set(rewrite);
	if (stoup_encode_zones(slot, raw) < 0)
		return no_index_memory(rewrite, err);
	slot->is_encoded = 1;
	slot->raw_len = block->raw_len;
	slot->stored_len = block->stored_len;
	slot->codec = block->codec;
	slot->transform = block->transform;
	slot->stored_hash = block->stored_hash;
	slot->raw_hash = block->raw_hash;
	memcpy(slot->stored, stored, block->stored_len);
	out->key = segment->last_key;
	stoup_sums_add(&series->put, &series->fields, &schema->schema, raw, segment->record_cnt,
		segment->first_key, segment->last_key);
	block_submit(rewrite);
	return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int volumes_finish(struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	uint32_t i;
	int rc = 0;

	rewrite->volumes = calloc(out->file_cnt, sizeof(*rewrite->volumes));
	if (!rewrite->volumes)
		return stoup_error_set(err, -ENOMEM, "no memory to publish the volumes");
	for (i = 0; i < out->file_cnt && rc == 0; i++) {
		struct stoup_volume_file *file = &out->files[i];

		file->header.batch_cnt = out->file_cnt;
		rc = stoup_volume_file_finish(file, err);
		rewrite->volumes[i] = (struct stoup_rewrite_volume){.header = file->header,
			.raw_len = file->raw_len,
			.file_len = file->file_len,
			.block_cnt = out->block_cnts[i]};
	}
	rewrite->volume_cnt = out->file_cnt;
	return rc < 0 ? write_failed(rewrite, rc, err) : 0;
}

int stoup_rewrite_out_finish(struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	struct stoup_rewrite_out *out = &rewrite->out;
	struct stoup_encode_slot *slot;
	int rc = 0;

	if (out->slot && out->slot->raw_len > 0)
		block_submit(rewrite);
	while (rc == 0 && (slot = stoup_encode_retire(out->encode)) != NULL)
		rc = slot_write(rewrite, slot, err);
	/* Nothing is left of the old volumes: one without blocks supersedes them. */
	if (rc == 0 && out->file_cnt == 0)
		rc = volume_open(rewrite, err);
	return rc < 0 ? rc : volumes_finish(rewrite, err);
}
