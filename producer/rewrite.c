/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.c - which volumes are written anew, and in which form. */
#include "producer/rewrite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "producer/import_state.h"
#include "producer/rewrite_private.h"
#include "producer/stop.h"
#include "producer/store_private.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* What a daemon or a reader would not see must not be shut out for good: a damaged volume that is brought back
 * later would overlap what was made of its neighbours. */
static int faults_refuse(const struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	const struct stoup_store *store = rewrite->store;
	uint32_t i, v;

	for (i = 0; i < store->fault_cnt && !rewrite->options.allow_faults; i++) {
		for (v = 0; v < store->overlap_cnt; v++) {
			if (strcmp(store->overlaps[v]->path, store->faults[i].path) == 0)
				break;
		}
		if (v < store->overlap_cnt)
			continue;
		return stoup_error_set(err, -EUCLEAN,
			"not every volume is whole: %.120s; first bring it back, or `stoup verify --repair`; "
			"nothing was changed",
			store->faults[i].text);
	}
	return 0;
}

static int store_open(struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	const char *path = rewrite->options.store_path;
	int rc = stoup_store_open(path, &rewrite->store, err);

	if (rc == 0 && stoup_store_holds_nothing(rewrite->store, err))
		rc = -ENOENT;
	if (rc < 0 || rewrite->options.dry_run)
		return rc;
	/* The lock leaves a file, also where there is no store: looked at before, and once more under it. */
	stoup_store_close(rewrite->store);
	rewrite->store = NULL;
	rc = stoup_store_lock(path, &rewrite->lock, err);
	if (rc < 0)
		return rc;
	stoup_store_sweep(&rewrite->lock);
	return stoup_store_open(path, &rewrite->store, err);
}

int stoup_rewrite_begin(const struct stoup_rewrite_options *options, struct stoup_rewrite **ret,
	struct stoup_error *err)
{
	struct stoup_rewrite *rewrite = calloc(1, sizeof(*rewrite));
	int rc;

	if (!rewrite)
		return stoup_error_set(err, -ENOMEM, "no memory to rewrite volumes");
	rewrite->lock = (struct stoup_store_lock){.dir_fd = -1, .lock_fd = -1};
	rewrite->options = *options;
	if (rewrite->options.volume_len == 0)
		rewrite->options.volume_len = STOUP_IMPORT_VOLUME_LEN;
	rc = store_open(rewrite, err);
	if (rc == 0 && stoup_store_holds_nothing(rewrite->store, err))
		rc = -ENOENT;
	if (rc == 0)
		rc = faults_refuse(rewrite, err);
	if (rc < 0)
		goto out_end;
	rewrite->chosen = calloc(rewrite->store->volume_cnt + 1u, 1);
	rewrite->chosen_overlaps = calloc(rewrite->store->overlap_cnt + 1u, 1);
	rc = rewrite->chosen && rewrite->chosen_overlaps
	             ? stoup_block_cache_create(STOUP_REWRITE_MEMORY_LEN, &rewrite->cache)
	             : -ENOMEM;
	if (rc < 0) {
		stoup_error_set(err, rc, "no memory to rewrite volumes");
		goto out_end;
	}
	*ret = rewrite;
	return 0;
out_end:
	stoup_rewrite_end(rewrite);
	return rc;
}

void stoup_rewrite_sweep(struct stoup_rewrite *rewrite)
{
	if (rewrite->lock.path)
		stoup_store_sweep(&rewrite->lock);
}

void stoup_rewrite_end(struct stoup_rewrite *rewrite)
{
	if (!rewrite)
		return;
	stoup_progress_end(&rewrite->progress);
	stoup_block_cache_destroy(rewrite->cache);
	stoup_parts_fini(&rewrite->parts);
	stoup_store_close(rewrite->store);
	stoup_store_unlock(&rewrite->lock, 0);
	free(rewrite->chosen);
	free(rewrite->chosen_overlaps);
	free(rewrite->superseded);
	free(rewrite->sources);
	free(rewrite->series);
	free(rewrite->schemas);
	free(rewrite->volumes);
	free(rewrite);
}

/* ---- choosing -------------------------------------------------------------------------------- */

struct stoup_store *stoup_rewrite_store(const struct stoup_rewrite *rewrite)
{
	return rewrite->store;
}

void stoup_rewrite_choose(struct stoup_rewrite *rewrite, uint32_t volume_idx)
{
	rewrite->chosen_cnt += !rewrite->chosen[volume_idx];
	rewrite->chosen[volume_idx] = 1;
}

void stoup_rewrite_choose_overlap(struct stoup_rewrite *rewrite, uint32_t overlap_idx)
{
	rewrite->chosen_cnt += !rewrite->chosen_overlaps[overlap_idx];
	rewrite->chosen_overlaps[overlap_idx] = 1;
}

int stoup_rewrite_is_chosen(const struct stoup_rewrite *rewrite, uint32_t volume_idx)
{
	return rewrite->chosen[volume_idx];
}

uint32_t stoup_rewrite_chosen_cnt(const struct stoup_rewrite *rewrite)
{
	return rewrite->chosen_cnt;
}

int stoup_rewrite_supersede(struct stoup_rewrite *rewrite, const uint8_t id[16])
{
	if (rewrite->superseded_cnt == rewrite->superseded_cap) {
		size_t cap = rewrite->superseded_cap ? rewrite->superseded_cap * 2 : 64;
		void *grown = realloc(rewrite->superseded, cap * 16);

		if (!grown)
			return -ENOMEM;
		rewrite->superseded = grown;
		rewrite->superseded_cap = cap;
	}
	memcpy(rewrite->superseded[rewrite->superseded_cnt++], id, 16);
	return 0;
}

/* A volume, and all that it superseded. */
static int supersede_volume(struct stoup_rewrite *rewrite, const struct stoup_store_volume *volume)
{
	const struct stoup_vol_index *index = volume->index;
	int rc = stoup_rewrite_supersede(rewrite, index->header.id);
	uint32_t i;

	for (i = 0; i < index->superseded_cnt && rc == 0; i++)
		rc = stoup_rewrite_supersede(rewrite, index->superseded[i]);
	return rc;
}

static int is_chosen_part(const struct stoup_rewrite *rewrite, const struct stoup_part *part)
{
	return part->left_out ? rewrite->chosen_overlaps[part->volume_idx]
	                      : rewrite->chosen[part->volume_idx];
}

/* Does a part lie where the new stretch [first, last] of its series will be? Also a single key at its border: a new
 * volume may end up with that key alone, and would then come after it, whichever came first before. */
static int is_in_the_way(const struct stoup_vol_series *part, int64_t first_key, int64_t last_key)
{
	if (stoup_store_range_overlaps(part->first_key, part->last_key, first_key, last_key))
		return 1;
	return part->first_key == part->last_key && part->first_key >= first_key &&
	       part->last_key <= last_key;
}

/* Choose what is in the way of the chosen parts of one series. */
static void group_draw_in(struct stoup_rewrite *rewrite, const struct stoup_part *parts, size_t cnt)
{
	int64_t first_key = 0, last_key = 0;
	size_t i;

	for (i = 0; i < cnt; i++) {
		const struct stoup_vol_series *series = parts[i].series;

		if (!is_chosen_part(rewrite, &parts[i]))
			continue;
		if (first_key == 0 || series->first_key < first_key)
			first_key = series->first_key;
		if (series->last_key > last_key)
			last_key = series->last_key;
	}
	for (i = 0; i < cnt && first_key > 0; i++) {
		if (!parts[i].left_out && !is_chosen_part(rewrite, &parts[i]) &&
			is_in_the_way(parts[i].series, first_key, last_key))
			stoup_rewrite_choose(rewrite, parts[i].volume_idx);
	}
}

int stoup_rewrite_is_shared(const struct stoup_rewrite *rewrite, uint32_t volume_idx,
	uint32_t *ret_first, uint32_t *ret_end)
{
	const struct stoup_store *store = rewrite->store;
	const struct stoup_vol_index *index = store->volumes[volume_idx]->index;
	const struct stoup_vol_header *header = &index->header;
	uint32_t first = volume_idx, end = volume_idx + 1, cnt = 0, i;

	if (index->source_cnt == 0 || header->batch_cnt == 1)
		return 0;
	while (first > 0 &&
		store->volumes[first - 1]->index->header.ingest_seq == header->ingest_seq)
		first--;
	while (end < store->volume_cnt &&
		store->volumes[end]->index->header.ingest_seq == header->ingest_seq)
		end++;
	for (i = first; i < end; i++)
		cnt += stoup_store_same_batch(&store->volumes[i]->index->header, header) != 0;
	*ret_first = first;
	*ret_end = end;
	return cnt == header->batch_cnt;
}

/* Choose the other volumes of the ingests of which some are chosen. */
static void ingests_draw_in(struct stoup_rewrite *rewrite)
{
	const struct stoup_store *store = rewrite->store;
	uint32_t first, end, i, v;

	for (i = 0; i < store->volume_cnt && rewrite->options.whole_ingests; i++) {
		if (!rewrite->chosen[i] || !stoup_rewrite_is_shared(rewrite, i, &first, &end))
			continue;
		for (v = first; v < end; v++) {
			if (stoup_store_same_batch(&store->volumes[v]->index->header,
				    &store->volumes[i]->index->header))
				stoup_rewrite_choose(rewrite, v);
		}
	}
}

static int close_choice(struct stoup_rewrite *rewrite)
{
	const struct stoup_store *store = rewrite->store;
	struct stoup_parts all = {0};
	uint32_t before, i;
	size_t g;
	int rc = 0;

	for (i = 0; i < store->volume_cnt && rc == 0; i++)
		rc = stoup_parts_add(&all, store->volumes[i], i, 0, NULL);
	for (i = 0; i < store->overlap_cnt && rc == 0; i++)
		rc = stoup_parts_add(&all, store->overlaps[i], i, 1, NULL);
	if (rc == 0)
		rc = stoup_parts_group(&all, 0);
	do {
		before = rewrite->chosen_cnt;
		ingests_draw_in(rewrite);
		for (g = 0; g < all.group_cnt && rc == 0 && before > 0; g++)
			group_draw_in(rewrite, &all.parts[all.groups[g].first], all.groups[g].cnt);
	} while (rc == 0 && rewrite->chosen_cnt > before);
	stoup_parts_fini(&all);
	return rc;
}

/* ---- the form -------------------------------------------------------------------------------- */

/* By codec and transform of a block: the encoding by which it may have been made. */
static struct stoup_encoding encoding_of(uint32_t codec, uint32_t transform)
{
	static const char *const names[STOUP_TRANSFORM_LAST + 1][STOUP_CODEC_LAST + 1] = {
		{"none", "lz4hc", "zstd"}, {"default", "default", "small"}};
	struct stoup_encoding encoding = {0};

	if (codec > STOUP_CODEC_LAST || transform > STOUP_TRANSFORM_LAST)
		codec = STOUP_CODEC_LZ4, transform = STOUP_TRANSFORM_FIELDS;
	stoup_encoding_parse(names[transform][codec], NULL, &encoding);
	return encoding;
}

static const struct stoup_store_volume *chosen_volume(
	const struct stoup_rewrite *rewrite, uint32_t i)
{
	const struct stoup_store *store = rewrite->store;

	if (i < store->volume_cnt)
		return rewrite->chosen[i] ? store->volumes[i] : NULL;
	return rewrite->chosen_overlaps[i - store->volume_cnt]
	               ? store->overlaps[i - store->volume_cnt]
	               : NULL;
}

/* Sum up the chosen blocks, and take the encoding of most of their bytes where none was asked for. */
static void form_choose(struct stoup_rewrite *rewrite)
{
	uint64_t lens[STOUP_TRANSFORM_LAST + 1][STOUP_CODEC_LAST + 1] = {0}, most = 0;
	uint32_t i, b, codec = STOUP_CODEC_LZ4, transform = STOUP_TRANSFORM_FIELDS;

	for (i = 0; i < rewrite->store->volume_cnt + rewrite->store->overlap_cnt; i++) {
		const struct stoup_store_volume *volume = chosen_volume(rewrite, i);

		for (b = 0; volume && b < volume->index->block_cnt; b++) {
			const struct stoup_vol_block *block = &volume->index->blocks[b];

			rewrite->raw_total += block->raw_len;
			rewrite->stored_total += block->stored_len;
			if (block->raw_len > rewrite->raw_cap)
				rewrite->raw_cap = block->raw_len;
			if (block->codec <= STOUP_CODEC_LAST &&
				block->transform <= STOUP_TRANSFORM_LAST)
				lens[block->transform][block->codec] += block->raw_len;
		}
	}
	for (i = 0; i <= STOUP_TRANSFORM_LAST; i++) {
		for (b = 0; b <= STOUP_CODEC_LAST; b++) {
			if (lens[i][b] > most) {
				most = lens[i][b];
				transform = i;
				codec = b;
			}
		}
	}
	rewrite->encoding = rewrite->options.has_encoding ? rewrite->options.encoding
	                                                  : encoding_of(codec, transform);
}

/* The walk by series comes to a block that several series share once for each of them, in every volume: one such block of
 * each volume should stay decoded meanwhile, or each would be decoded again and again. */
static void memory_choose(struct stoup_rewrite *rewrite)
{
	uint64_t len = STOUP_REWRITE_MEMORY_LEN;
	uint32_t i, s;

	for (i = 0; i < rewrite->store->volume_cnt + rewrite->store->overlap_cnt; i++) {
		const struct stoup_store_volume *volume = chosen_volume(rewrite, i);
		uint32_t longest = 0;

		for (s = 0; volume && s < volume->index->segment_cnt; s++) {
			const struct stoup_vol_segment *segment = &volume->index->segments[s];
			uint32_t raw_len = volume->index->blocks[segment->block_idx].raw_len;

			if (segment->raw_len < raw_len && raw_len > longest)
				longest = raw_len;
		}
		len += longest;
	}
	if (len > STOUP_REWRITE_MEMORY_LEN_MAX)
		len = STOUP_REWRITE_MEMORY_LEN_MAX;
	stoup_block_cache_budget(
		rewrite->cache, rewrite->options.memory_len ? rewrite->options.memory_len : len);
}

/* Decoded bytes of a full block of a schema, as its volumes have them: the longest block that another of the same
 * schema follows in its volume. 0: there is none. */
static uint32_t full_block_len(const struct stoup_rewrite *rewrite, uint64_t hash)
{
	uint32_t len = 0, i, b;

	for (i = 0; i < rewrite->store->volume_cnt + rewrite->store->overlap_cnt; i++) {
		const struct stoup_store_volume *volume = chosen_volume(rewrite, i);
		const struct stoup_vol_block *before = NULL;

		for (b = 0; volume && b < volume->index->block_cnt; b++) {
			const struct stoup_vol_block *block = &volume->index->blocks[b];

			if (volume->index->schemas[block->schema_idx].hash != hash)
				continue;
			if (before && before->raw_len > len)
				len = before->raw_len;
			before = block;
		}
	}
	return len;
}

static int schema_add(struct stoup_rewrite *rewrite, const struct stoup_part *part)
{
	struct stoup_rewrite_schema *schema;
	struct stoup_rewrite_schema *grown =
		realloc(rewrite->schemas, (rewrite->schema_cnt + 1u) * sizeof(*grown));
	uint32_t len;

	if (!grown)
		return -ENOMEM;
	rewrite->schemas = grown;
	schema = &grown[rewrite->schema_cnt++];
	*schema = (struct stoup_rewrite_schema){
		.index = part->volume->index, .vol = stoup_part_schema(part)};
	stoup_part_schema_view(part, &schema->schema);
	len = rewrite->options.block_len;
	if (len == 0)
		len = full_block_len(rewrite, schema->schema.hash);
	if (len == 0)
		len = STOUP_IMPORT_BLOCK_LEN;
	if (schema->schema.stride > 0)
		len = stoup_import_block_len(len, rewrite->encoding.codec, schema->schema.stride);
	schema->block_len = len;
	if (len > rewrite->raw_cap)
		rewrite->raw_cap = len;
	return 0;
}

/* Group the chosen parts; an entry for each series. */
static int series_build(struct stoup_rewrite *rewrite)
{
	uint32_t i;
	size_t g, p;
	int rc = 0;

	for (i = 0; i < rewrite->store->volume_cnt + rewrite->store->overlap_cnt && rc == 0; i++) {
		const struct stoup_store_volume *volume = chosen_volume(rewrite, i);
		int left_out = i >= rewrite->store->volume_cnt;

		if (volume)
			rc = stoup_parts_add(&rewrite->parts, volume,
				left_out ? i - rewrite->store->volume_cnt : i, left_out, NULL);
		if (volume && rc == 0)
			rc = supersede_volume(rewrite, volume);
	}
	if (rc == 0)
		rc = stoup_parts_group(&rewrite->parts, 1);
	if (rc < 0)
		return rc;
	rewrite->series = calloc(rewrite->parts.group_cnt + 1, sizeof(*rewrite->series));
	if (!rewrite->series)
		return -ENOMEM;
	for (g = 0; g < rewrite->parts.group_cnt; g++) {
		const struct stoup_part_group *group = &rewrite->parts.groups[g];
		const struct stoup_part *part = &rewrite->parts.parts[group->first];
		struct stoup_rewrite_series *series = &rewrite->series[g];

		if (rewrite->schema_cnt == 0 ||
			rewrite->schemas[rewrite->schema_cnt - 1].schema.hash !=
				stoup_part_schema(part)->hash)
			rc = schema_add(rewrite, part);
		if (rc < 0)
			return rc;
		series->schema_idx = rewrite->schema_cnt - 1;
		stoup_sums_fields(&rewrite->schemas[series->schema_idx].schema, &series->fields);
		for (p = 0; p < group->cnt; p++) {
			series->flags |= part[p].series->flags;
			series->old_cnt += part[p].series->record_cnt;
		}
	}
	return 0;
}

/* A later minor version may have sections that this program would leave out. */
static int versions_refuse(const struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	uint32_t i;

	for (i = 0; i < rewrite->store->volume_cnt + rewrite->store->overlap_cnt; i++) {
		const struct stoup_store_volume *volume = chosen_volume(rewrite, i);

		if (volume && volume->index->header.minor > STOUP_VOL_MINOR)
			return stoup_error_set(err, -ENOTSUP,
				"%.120s has format %" PRIu32 ".%" PRIu32
				", of which this program knows only %u.%u: rewrite it with a later version",
				volume->path, volume->index->header.major,
				volume->index->header.minor, STOUP_VOL_MAJOR, STOUP_VOL_MINOR);
	}
	return 0;
}

int stoup_rewrite_draw_in(struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	int rc = close_choice(rewrite);

	if (rc == 0 && versions_refuse(rewrite, err) < 0)
		return -ENOTSUP;

	if (rc == 0) {
		memory_choose(rewrite);
		form_choose(rewrite);
		rc = series_build(rewrite);
	}
	return rc < 0 ? stoup_error_set(err, rc, "no memory for the list of series") : 0;
}

const struct stoup_parts *stoup_rewrite_parts(const struct stoup_rewrite *rewrite)
{
	return &rewrite->parts;
}

const struct stoup_rewrite_series *stoup_rewrite_series(const struct stoup_rewrite *rewrite)
{
	return rewrite->series;
}

struct stoup_encoding stoup_rewrite_encoding(const struct stoup_rewrite *rewrite)
{
	return rewrite->encoding;
}

uint32_t stoup_rewrite_block_len(const struct stoup_rewrite *rewrite, uint64_t schema_hash)
{
	uint32_t i;

	for (i = 0; i < rewrite->schema_cnt; i++) {
		if (rewrite->schemas[i].schema.hash == schema_hash)
			return rewrite->schemas[i].block_len;
	}
	return 0;
}

/* A block that did not become shorter is stored as it is, whatever was asked for. */
int stoup_rewrite_is_stored_so(
	const struct stoup_rewrite *rewrite, const struct stoup_vol_block *block, uint32_t stride)
{
	const struct stoup_encoding *encoding = &rewrite->encoding;

	if (rewrite->options.recode)
		return 0;
	if (block->codec == STOUP_CODEC_NONE && block->transform == STOUP_TRANSFORM_NONE)
		return encoding->codec == STOUP_CODEC_NONE || !rewrite->options.has_encoding;
	return block->codec == encoding->codec &&
	       block->transform == stoup_encoding_transform(encoding, stride);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Are all volumes of this one's batch chosen, so that all records of its files go into the new batch? */
static int batch_is_chosen(
	const struct stoup_rewrite *rewrite, const struct stoup_vol_header *header)
{
	uint32_t cnt = 0, i;

	for (i = 0; i < rewrite->store->volume_cnt + rewrite->store->overlap_cnt; i++) {
		const struct stoup_store_volume *volume = chosen_volume(rewrite, i);

		cnt += volume && stoup_store_same_batch(&volume->index->header, header);
	}
	return cnt == header->batch_cnt;
}

/* What the old volumes say of the files that they were made of holds for the new ones where no record goes. Every volume
 * of a batch says the same: the first one is asked. */
static int sources_collect(struct stoup_rewrite *rewrite)
{
	uint32_t i;

	for (i = 0; i < rewrite->store->volume_cnt + rewrite->store->overlap_cnt; i++) {
		const struct stoup_store_volume *volume = chosen_volume(rewrite, i);
		const struct stoup_vol_index *index = volume ? volume->index : NULL;
		struct stoup_vol_source *grown;

		if (!index || index->source_cnt == 0 || index->header.batch_idx > 0 ||
			!batch_is_chosen(rewrite, &index->header))
			continue;
		grown = realloc(rewrite->sources,
			(rewrite->source_cnt + index->source_cnt) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		rewrite->sources = grown;
		memcpy(grown + rewrite->source_cnt, index->sources,
			index->source_cnt * sizeof(*grown));
		rewrite->source_cnt += index->source_cnt;
	}
	return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static int publish(struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	struct stoup_vol_header *headers = calloc(rewrite->volume_cnt + 1u, sizeof(*headers));
	uint32_t i;
	int rc;

	if (!headers)
		return stoup_error_set(err, -ENOMEM, "no memory to publish the volumes");
	for (i = 0; i < rewrite->volume_cnt; i++)
		headers[i] = rewrite->volumes[i].header;
	rc = stoup_store_publish(&rewrite->lock, headers, rewrite->volume_cnt, err);
	free(headers);
	return rc;
}

int stoup_rewrite_run(struct stoup_rewrite *rewrite, const struct stoup_rewrite_filter *filter,
	struct stoup_error *err)
{
	uint32_t i;
	int rc = stoup_rewrite_out_init(rewrite, err);

	stoup_stop_catch();
	if (rc == 0 && !filter && !rewrite->options.dedup && sources_collect(rewrite) < 0)
		rc = stoup_error_set(err, -ENOMEM, "no memory for the list of files");
	rewrite->filter = filter;
	stoup_progress_begin(&rewrite->progress, rewrite->options.label, rewrite->raw_total,
		rewrite->options.quiet);
	for (i = 0; i < rewrite->parts.group_cnt && rc == 0; i++)
		rc = stoup_rewrite_put_series(rewrite, i, err);
	if (rc == 0)
		rc = stoup_rewrite_out_finish(rewrite, err);
	stoup_progress_end(&rewrite->progress);
	if (rc == 0)
		rc = stoup_rewrite_check(rewrite, err);
	if (rc == 0)
		rc = publish(rewrite, err);
	stoup_rewrite_out_fini(rewrite, rc == 0);
	return rc;
}

const struct stoup_rewrite_volume *stoup_rewrite_volumes(
	const struct stoup_rewrite *rewrite, uint32_t *ret_cnt)
{
	*ret_cnt = rewrite->volume_cnt;
	return rewrite->volumes;
}
