/* SPDX-License-Identifier: Apache-2.0 */
/* import_block.c - filling blocks, and writing the encoded ones into volumes. */
#include "producer/import_block.h"

#include "producer/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* With two blocks of 2 MiB per slot this many use 72 MiB; more cores do not help, since the input
 * is read by one thread. The strongest levels of zstd need tens of MiB each. */
#define THREAD_CNT_CAP       16u
#define THREAD_CNT_CAP_HEAVY 4u
#define ZSTD_LEVEL_HEAVY     16

/* ---- planning -------------------------------------------------------------------------------- */

/* Which volume the next block of raw_len bytes belongs to. The only place that decides it: for the
 * plan and for the blocks. */
static void volume_advance(const struct stoup_import *import, uint32_t *volume_idx,
	uint64_t *volume_raw_len, uint64_t len)
{
	if (*volume_raw_len > 0 && *volume_raw_len + len > import->options.volume_len) {
		(*volume_idx)++;
		*volume_raw_len = 0;
	}
	*volume_raw_len += len;
}

/* The same for messages of `len` bytes in all, one or many: each belongs to the volume in which it ends,
 * counted from the first one without regard to blocks. So the sum of lengths alone tells how many
 * volumes there are. */
static void volume_advance_messages(const struct stoup_import *import,
	const struct stoup_import_schema *schema, uint32_t *volume_idx, uint64_t *volume_raw_len,
	uint64_t len)
{
	uint64_t cap = import->options.volume_len;
	uint64_t longest = (uint64_t)schema->unit_max + STOUP_MESSAGE_STRIDE, steps;

	if (len == 0)
		return;
	/* No message skips a volume. */
	if (cap < longest)
		cap = longest;
	if (*volume_raw_len > cap)
		*volume_raw_len = cap;
	*volume_raw_len += len;
	steps = (*volume_raw_len - 1) / cap;
	*volume_idx += (uint32_t)steps;
	*volume_raw_len -= steps * cap;
}

static int plan(struct stoup_import_builder *builder, struct stoup_error *err)
{
	const struct stoup_import *import = builder->import;
	uint64_t volume_raw_len = 0;
	uint32_t volume_idx = 0, i;

	for (i = 0; i < import->schema_cnt; i++) {
		const struct stoup_import_schema *schema = &import->schemas[i];
		uint64_t left = schema->record_len;

		builder->raw_total += left;
		if (schema->schema.stride == 0) {
			volume_advance_messages(import, schema, &volume_idx, &volume_raw_len, left);
			continue;
		}
		while (left > 0) {
			uint64_t len = left < schema->block_len ? left : schema->block_len;

			volume_advance(import, &volume_idx, &volume_raw_len, len);
			left -= len;
		}
	}
	if (volume_idx >= STOUP_STORE_BATCH_CAP)
		return stoup_error_set(err, -EFBIG,
			"this ingest would make more than %u volumes; raise the volume length",
			STOUP_STORE_BATCH_CAP);
	builder->batch_cnt = volume_idx + 1;
	return 0;
}

static int id_cmp(const void *a, const void *b)
{
	return memcmp(a, b, 16);
}

/* The volumes that the new ones supersede: the affected ones, then the refused ones. */
static const struct stoup_vol_index *superseded_index(const struct stoup_import *import, size_t i)
{
	if (i < import->affected_cnt)
		return import->store->volumes[import->affected[i]]->index;
	return import->store->overlaps[import->refused[i - import->affected_cnt]]->index;
}

/* What the new volumes supersede: these, and what those superseded. */
static int superseded_collect(struct stoup_import_builder *builder)
{
	const struct stoup_import *import = builder->import;
	size_t volume_cnt = (size_t)import->affected_cnt + import->refused_cnt, cnt = 0, i,
	       kept = 0;

	for (i = 0; i < volume_cnt; i++)
		cnt += 1u + superseded_index(import, i)->superseded_cnt;
	builder->superseded = calloc(cnt + 1, sizeof(*builder->superseded));
	if (!builder->superseded)
		return -ENOMEM;
	for (cnt = 0, i = 0; i < volume_cnt; i++) {
		const struct stoup_vol_index *index = superseded_index(import, i);

		memcpy(builder->superseded[cnt++], index->header.id, 16);
		if (index->superseded_cnt > 0)
			memcpy(builder->superseded[cnt], index->superseded,
				(size_t)index->superseded_cnt * 16);
		cnt += index->superseded_cnt;
	}
	qsort(builder->superseded, cnt, 16, id_cmp);
	for (i = 0; i < cnt; i++) {
		if (kept == 0 ||
			memcmp(builder->superseded[kept - 1], builder->superseded[i], 16) != 0)
			memcpy(builder->superseded[kept++], builder->superseded[i], 16);
	}
	builder->superseded_cnt = kept;
	return 0;
}

static uint32_t thread_cnt(const struct stoup_import_options *options)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t cnt = options->threads ? options->threads : cores > 0 ? (uint32_t)cores : 1;
	uint32_t cap = options->encoding.codec == STOUP_CODEC_ZSTD &&
	                               options->encoding.level >= ZSTD_LEVEL_HEAVY
	                       ? THREAD_CNT_CAP_HEAVY
	                       : THREAD_CNT_CAP;

	return cnt < cap ? cnt : cap;
}

/* Decoded bytes of the longest block: a message that is longer than a block has one for itself. */
static size_t block_cap(const struct stoup_import_schema *schema)
{
	size_t alone = schema->unit_max + (size_t)stoup_message_table_len(1);

	return alone > schema->block_len ? alone : schema->block_len;
}

int stoup_import_builder_init(
	struct stoup_import_builder *builder, struct stoup_import *import, struct stoup_error *err)
{
	struct timespec now;
	size_t raw_cap = 0;
	uint32_t i;
	int rc;

	*builder = (struct stoup_import_builder){.import = import};
	clock_gettime(CLOCK_REALTIME, &now);
	builder->created_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	rc = plan(builder, err);
	if (rc < 0)
		return rc;
	for (i = 0; i < import->schema_cnt; i++) {
		size_t len = block_cap(&import->schemas[i]);

		raw_cap = len > raw_cap ? len : raw_cap;
	}
	rc = stoup_store_id_make(builder->id);
	if (rc == 0)
		rc = superseded_collect(builder);
	import->volumes = calloc(builder->batch_cnt, sizeof(*import->volumes));
	if (rc == 0 && !import->volumes)
		rc = -ENOMEM;
	if (rc == 0)
		rc = stoup_encode_create(&import->options.encoding, thread_cnt(&import->options),
			raw_cap, &builder->encode);
	if (rc < 0)
		return stoup_error_set(err, rc, "starting the encoders failed: %s", strerror(-rc));
	return 0;
}

void stoup_import_builder_fini(struct stoup_import_builder *builder, int published)
{
	struct stoup_import *import = builder->import;
	char name[STOUP_STORE_NAME_CAP];
	uint32_t i;

	if (builder->file_open)
		stoup_volume_file_abort(&builder->file);
	for (i = 0; !published && i < import->volume_cnt; i++) {
		stoup_store_temp_name(&import->volumes[i].header, name);
		unlinkat(import->lock.dir_fd, name, 0);
	}
	stoup_encode_destroy(builder->encode);
	free(builder->superseded);
}

/* ---- volumes --------------------------------------------------------------------------------- */

/* A full disk: say how much more is needed, judging by what was written so far. */
static int write_failed(
	const struct stoup_import_builder *builder, int code, struct stoup_error *err)
{
	char written[STOUP_SIZE_TEXT_CAP], more[STOUP_SIZE_TEXT_CAP];
	uint64_t left = builder->raw_total - builder->raw_len;
	double ratio =
		builder->raw_len > 0 ? (double)builder->written_len / (double)builder->raw_len : 1;

	if (code != -ENOSPC && code != -EDQUOT)
		return code;
	stoup_size_format(builder->written_len, written);
	stoup_size_format((uint64_t)((double)left * ratio) + 1, more);
	return stoup_error_set(err, code,
		"%s/%s: %s: %s written, about %s more needed; free that there or use another "
		"--store; the store is unchanged",
		builder->file.dir_path ? builder->file.dir_path : builder->import->lock.path,
		builder->file.name, strerror(-code), written, more);
}

static int volume_open(struct stoup_import_builder *builder, struct stoup_error *err)
{
	struct stoup_import *import = builder->import;
	struct stoup_vol_header header = {
		.major = STOUP_VOL_MAJOR,
		.minor = STOUP_VOL_MINOR,
		.created_ns = builder->created_ns,
		.ingest_seq = import->store->next_seq,
		.batch_idx = import->volume_cnt,
		.batch_cnt = builder->batch_cnt,
	};
	size_t i;
	int rc;

	memcpy(header.id, builder->id, 16);
	header.id[14] = (uint8_t)header.batch_idx;
	header.id[15] = (uint8_t)(header.batch_idx >> 8);
	rc = stoup_volume_file_create(&import->lock, &header, &builder->file, err);
	if (rc < 0)
		return rc;
	builder->file_open = 1;
	for (i = 0; i < builder->superseded_cnt && rc == 0; i++)
		rc = stoup_vol_add_superseded(builder->file.writer, builder->superseded[i]);
	for (i = 0; i < builder->import->source_cnt && rc == 0; i++)
		rc = stoup_vol_add_source(builder->file.writer, &builder->import->sources[i]);
	if (rc < 0)
		return stoup_error_set(err, rc, "%s/%s: listing what it supersedes failed: %s",
			import->lock.path, builder->file.name, strerror(-rc));
	return 0;
}

static int volume_finish(struct stoup_import_builder *builder, struct stoup_error *err)
{
	struct stoup_import *import = builder->import;
	int rc = stoup_volume_file_finish(&builder->file, err);

	if (rc < 0)
		return write_failed(builder, rc, err);
	import->volumes[import->volume_cnt++] = (struct stoup_import_volume){
		.header = builder->file.header,
		.raw_len = builder->file.raw_len,
		.file_len = builder->file.file_len,
	};
	builder->file_open = 0;
	return 0;
}

/* The writer's index of a schema, declared at its first use in this volume. */
static int schema_declare(struct stoup_import_builder *builder, struct stoup_import_schema *schema)
{
	const struct stoup_schema *s = &schema->schema;
	struct stoup_vol_schema declared = {
		.name = s->name,
		.stride = s->stride,
		.align = s->align,
		.key_off = s->key_off,
		.flags = s->flags,
		.field_cnt = s->field_cnt,
		.interval_ns = s->interval_ns,
		.hash = s->hash,
	};
	struct stoup_vol_field *fields;
	int idx;

	if (schema->volume_mark == builder->import->volume_cnt + 1)
		return 0;
	fields = calloc(s->field_cnt + 1u, sizeof(*fields));
	if (!fields)
		return -ENOMEM;
	memcpy(fields, s->fields, s->field_cnt * sizeof(*fields));
	idx = stoup_vol_add_schema(builder->file.writer, &declared, fields);
	free(fields);
	if (idx < 0)
		return idx;
	schema->volume_schema_idx = (uint32_t)idx;
	schema->volume_mark = builder->import->volume_cnt + 1;
	return 0;
}

static int series_declare(struct stoup_import_builder *builder, struct stoup_import_series *series)
{
	struct stoup_import *import = builder->import;
	int64_t idx;

	if (series->volume_mark == import->volume_cnt + 1)
		return 0;
	idx = stoup_vol_add_series(builder->file.writer, series->name,
		import->schemas[series->schema_idx].volume_schema_idx, series->flags);
	if (idx < 0)
		return (int)idx;
	series->volume_series_idx = (uint32_t)idx;
	series->volume_mark = import->volume_cnt + 1;
	return 0;
}

static int segments_write(struct stoup_import_builder *builder,
	const struct stoup_encode_slot *slot, uint32_t block_idx)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < slot->segment_cnt && rc == 0; i++) {
		const struct stoup_encode_segment *segment = &slot->segments[i];
		struct stoup_import_series *series = &builder->import->series[segment->series_idx];

		rc = series_declare(builder, series);
		if (rc == 0)
			rc = stoup_vol_add_segment(builder->file.writer, series->volume_series_idx,
				block_idx, segment->raw_off, segment->record_cnt,
				segment->first_key, segment->last_key);
		if (rc == 0)
			rc = stoup_encode_zone_write(slot, segment, builder->file.writer);
	}
	return rc;
}

/* Write one encoded block into its volume. */
static int slot_write(struct stoup_import_builder *builder, const struct stoup_encode_slot *slot,
	struct stoup_error *err)
{
	struct stoup_import_schema *schema = &builder->import->schemas[slot->schema_idx];
	struct stoup_volume_block block;
	uint64_t before;
	int64_t idx;
	int rc = stoup_stop_asked(err);

	if (rc == 0)
		rc = stoup_encode_block(slot, &block, err);
	if (rc < 0)
		return rc;
	if (builder->file_open && slot->volume_idx != builder->import->volume_cnt)
		rc = volume_finish(builder, err);
	if (rc == 0 && !builder->file_open)
		rc = volume_open(builder, err);
	if (rc < 0)
		return write_failed(builder, rc, err);
	rc = schema_declare(builder, schema);
	if (rc < 0)
		goto out_index;
	block.schema_idx = schema->volume_schema_idx;
	before = builder->file.file_len;
	idx = stoup_volume_file_block(&builder->file, &block, err);
	if (idx < 0)
		return write_failed(builder, (int)idx, err);
	builder->written_len += builder->file.file_len - before;
	builder->raw_len += slot->raw_len;
	stoup_progress_step(&builder->import->progress, builder->raw_len, 0);
	rc = segments_write(builder, slot, (uint32_t)idx);
	if (rc == 0)
		return 0;
out_index:
	return stoup_error_set(err, rc, "%s/%s: adding to the index failed: %s",
		builder->import->lock.path, builder->file.name, strerror(-rc));
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The fields stay where they are until the import ends. */
static struct stoup_block_layout layout_of(const struct stoup_import_builder *builder)
{
	const struct stoup_schema *schema = &builder->import->schemas[builder->schema_idx].schema;

	return (struct stoup_block_layout){
		.stride = schema->stride,
		.field_cnt = schema->field_cnt,
		.fields = (const void *)schema->fields, /* the same 64 bytes */
	};
}

/* Write the table of the open run. */
static void run_end(struct stoup_import_builder *builder)
{
	struct stoup_encode_slot *slot = builder->slot;

	if (builder->run_cnt == 0)
		return;
	slot->raw_len =
		builder->run_off + stoup_message_run_end(slot->raw + builder->run_off,
					   slot->raw_len - builder->run_off, builder->run_cnt);
	builder->run_cnt = 0;
}

static void block_submit(struct stoup_import_builder *builder)
{
	struct stoup_encode_slot *slot = builder->slot;

	run_end(builder);
	/* A block of messages has the volume of its messages. */
	if (builder->import->schemas[builder->schema_idx].schema.stride) {
		volume_advance(builder->import, &builder->volume_idx, &builder->volume_raw_len,
			slot->raw_len);
		slot->volume_idx = builder->volume_idx;
	}
	slot->schema_idx = builder->schema_idx;
	slot->layout = layout_of(builder);
	builder->slot = NULL;
	stoup_encode_submit(builder->encode);
}

/* Have a slot to fill, writing the oldest block where all are in use. */
static int block_begin(struct stoup_import_builder *builder, struct stoup_error *err)
{
	int rc = 0;

	while (!builder->slot && rc == 0) {
		builder->slot = stoup_encode_next(builder->encode);
		if (!builder->slot)
			rc = slot_write(builder, stoup_encode_retire(builder->encode), err);
	}
	return rc;
}

void stoup_import_builder_series(struct stoup_import_builder *builder, uint32_t series_idx)
{
	uint32_t schema_idx = builder->import->series[series_idx].schema_idx;

	run_end(builder);
	if (builder->slot && schema_idx != builder->schema_idx)
		block_submit(builder);
	builder->schema_idx = schema_idx;
	builder->series_idx = series_idx;
	builder->key = 0;
}

/* The effective key of the last of cnt records, which continue at builder->key. For a series whose
 * record order was kept it is the running maximum. */
static int64_t last_key(const struct stoup_import_builder *builder, const uint8_t *records,
	uint64_t cnt, int64_t first_key)
{
	const struct stoup_import_series *series = &builder->import->series[builder->series_idx];
	const struct stoup_schema *schema = &builder->import->schemas[series->schema_idx].schema;
	int64_t key = first_key;
	uint64_t i;

	if (!(series->flags & STOUP_VOL_SERIES_KEEP_ORDER))
		return stoup_import_key(schema, records + (cnt - 1) * schema->stride);
	for (i = 0; i < cnt; i++) {
		int64_t next = stoup_import_key(schema, records + i * schema->stride);

		key = next > key ? next : key;
	}
	return key;
}

/* Note cnt records at the end of the slot: more of its last segment, or a new one. */
static int segment_note(struct stoup_encode_slot *slot, uint32_t series_idx, uint32_t cnt,
	int64_t first_key, int64_t key)
{
	struct stoup_encode_segment *last =
		slot->segment_cnt ? &slot->segments[slot->segment_cnt - 1] : NULL;

	if (last && last->series_idx == series_idx) {
		last->record_cnt += cnt;
		last->last_key = key;
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
		.series_idx = series_idx,
		.raw_off = slot->raw_len,
		.record_cnt = cnt,
		.first_key = first_key,
		.last_key = key,
	};
	return 0;
}

/* Cannot be for what put checked; an old volume may hold anything. */
static int steps_back_error(const struct stoup_import_builder *builder, struct stoup_error *err)
{
	return stoup_error_set(err, -EBADMSG,
		"series %.100s: keys step back in a volume of the store; `stoup verify` names it",
		builder->import->series[builder->series_idx].name);
}

static int no_memory_error(
	const struct stoup_import_builder *builder, int rc, struct stoup_error *err)
{
	return stoup_error_set(err, rc, "series %.100s: no memory for its index",
		builder->import->series[builder->series_idx].name);
}

/* Have a slot with room for a message of the builder's volume. */
static int message_begin(
	struct stoup_import_builder *builder, uint32_t unit_len, struct stoup_error *err)
{
	const struct stoup_import_schema *schema = &builder->import->schemas[builder->schema_idx];
	struct stoup_encode_slot *slot = builder->slot;
	uint64_t len;
	int rc;

	volume_advance_messages(builder->import, schema, &builder->volume_idx,
		&builder->volume_raw_len, (uint64_t)unit_len + STOUP_MESSAGE_STRIDE);
	if (slot && slot->raw_len > 0) {
		len = (uint64_t)slot->raw_len + unit_len +
		      stoup_message_table_len(builder->run_cnt + 1);
		if (len > schema->block_len || slot->volume_idx != builder->volume_idx)
			block_submit(builder);
	}
	rc = block_begin(builder, err);
	if (rc == 0)
		builder->slot->volume_idx = builder->volume_idx;
	return rc;
}

static int message_put(
	struct stoup_import_builder *builder, const uint8_t *unit, struct stoup_error *err)
{
	const struct stoup_import_series *series = &builder->import->series[builder->series_idx];
	const struct stoup_schema *schema = &builder->import->schemas[builder->schema_idx].schema;
	uint32_t unit_len = stoup_import_record_len(schema, unit);
	int64_t key = stoup_import_key(schema, unit);
	struct stoup_encode_slot *slot;
	int rc;

	if (key < builder->key && !(series->flags & STOUP_VOL_SERIES_KEEP_ORDER))
		return steps_back_error(builder, err);
	key = key > builder->key ? key : builder->key;
	rc = message_begin(builder, unit_len, err);
	if (rc < 0)
		return rc;
	slot = builder->slot;
	rc = segment_note(slot, builder->series_idx, 1, key, key);
	if (rc < 0)
		return no_memory_error(builder, rc, err);
	if (builder->run_cnt++ == 0)
		builder->run_off = slot->raw_len;
	memcpy(slot->raw + slot->raw_len, unit, unit_len);
	slot->raw_len += unit_len;
	builder->key = key;
	return 0;
}

static int messages_put(struct stoup_import_builder *builder, const uint8_t *units, uint64_t cnt,
	struct stoup_error *err)
{
	const struct stoup_schema *schema = &builder->import->schemas[builder->schema_idx].schema;
	int rc = 0;

	for (; cnt > 0 && rc == 0; cnt--) {
		rc = message_put(builder, units, err);
		units += stoup_import_record_len(schema, units);
	}
	return rc;
}

int stoup_import_builder_put(struct stoup_import_builder *builder, const uint8_t *records,
	uint64_t cnt, struct stoup_error *err)
{
	const struct stoup_import_schema *schema = &builder->import->schemas[builder->schema_idx];
	uint32_t stride = schema->schema.stride;
	int rc;

	if (stride == 0)
		return messages_put(builder, records, cnt, err);
	while (cnt > 0) {
		int64_t first = stoup_import_key(&schema->schema, records), last;
		uint64_t n;

		rc = block_begin(builder, err);
		if (rc < 0)
			return rc;
		n = (schema->block_len - builder->slot->raw_len) / stride;
		n = n < cnt ? n : cnt;
		first = first > builder->key ? first : builder->key;
		last = last_key(builder, records, n, first);
		if (last < first)
			return steps_back_error(builder, err);
		rc = segment_note(builder->slot, builder->series_idx, (uint32_t)n, first, last);
		if (rc < 0)
			return no_memory_error(builder, rc, err);
		memcpy(builder->slot->raw + builder->slot->raw_len, records, n * stride);
		builder->slot->raw_len += (uint32_t)n * stride;
		builder->key = last;
		records += n * stride;
		cnt -= n;
		if (builder->slot->raw_len + stride > schema->block_len)
			block_submit(builder);
	}
	return 0;
}

int stoup_import_builder_finish(struct stoup_import_builder *builder, struct stoup_error *err)
{
	struct stoup_encode_slot *slot;
	int rc = 0;

	if (builder->slot && builder->slot->raw_len > 0)
		block_submit(builder);
	while (rc == 0 && (slot = stoup_encode_retire(builder->encode)) != NULL)
		rc = slot_write(builder, slot, err);
	if (rc == 0 && builder->file_open)
		rc = volume_finish(builder, err);
	if (rc == 0 && builder->import->volume_cnt != builder->batch_cnt)
		rc = stoup_error_set(err, -EPROTO,
			"%" PRIu32 " volumes were planned, %" PRIu32
			" were written: a fault of this program",
			builder->batch_cnt, builder->import->volume_cnt);
	return rc;
}
