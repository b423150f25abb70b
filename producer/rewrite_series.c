/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_series.c - the records of one series out of its old volumes, in their new order.
 *
 *      parts   [1....5][5..9]          one after the other, segment by segment
 *              [20....30]
 *                 [25....40]           overlap: a cluster, merged by key
 *
 * In a cluster the record with the smallest key comes next; of equal keys those of the older volume (ingest_seq,
 * batch_idx) come first, and each volume's own order stays. With dedup, of a record that several *sources* hold with
 * equal bytes as many stay as the source that has most of them holds. The volumes that the store serves are one source,
 * which readers see as one, and the left out volumes of each batch are one: a file that was copied in twice leaves one
 * record, and two equal trades of one ingest stay two, also where it was cut into volumes between them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/event64.h"
#include "producer/rewrite_private.h"
#include "producer/runs.h"
#include "producer/store_private.h"

#define EQUAL_KEY_LEN_CAP (256u << 20) /* bytes of records of one key that dedup compares */

int stoup_rewrite_block_error(
	const struct stoup_part *part, const struct stoup_vol_fault *fault, struct stoup_error *err)
{
	const char *name = strrchr(part->volume->path, '/');

	if (fault->code == -ENOMEM)
		return stoup_error_set(err, -ENOMEM, "no memory for a block");
	if (fault->code == -ENOTSUP)
		return stoup_error_set(err, -ENOTSUP,
			"%.40s: block %" PRIu32
			": %.80s: use a later version of this program; nothing was "
			"changed",
			name ? name + 1 : part->volume->path, fault->block_idx, fault->what);
	return stoup_error_set(err, fault->code,
		"%.40s: block %" PRIu32
		": %.80s; bring the volume back, or `stoup verify --repair`; nothing "
		"was changed",
		name ? name + 1 : part->volume->path, fault->block_idx, fault->what);
}

static enum stoup_rewrite_keep keep_of(
	const struct stoup_rewrite *rewrite, const struct stoup_part *part, uint32_t segment_idx)
{
	return rewrite->filter ? rewrite->filter->segment(rewrite->filter->arg, part, segment_idx)
	                       : STOUP_REWRITE_KEEP_ALL;
}

int stoup_rewrite_segment_get(struct stoup_rewrite *rewrite, const struct stoup_part *part,
	uint32_t segment_idx, const uint8_t **ret_raw, struct stoup_error *err)
{
	const struct stoup_vol_index *index = part->volume->index;
	uint32_t block_idx = index->segments[segment_idx].block_idx;
	struct stoup_vol_fault fault;
	struct stoup_error run;

	if (stoup_block_cache_get(rewrite->cache, part->volume, block_idx, ret_raw, &fault) < 0)
		return stoup_rewrite_block_error(part, &fault, err);
	if (stoup_part_schema(part)->stride > 0 ||
		stoup_run_check(index, segment_idx, *ret_raw, &run) == 0)
		return 0;
	stoup_block_cache_put(rewrite->cache, part->volume, block_idx);
	fault = (struct stoup_vol_fault){
		.code = -EBADMSG, .region = STOUP_VOL_REGION_BLOCK, .block_idx = block_idx};
	snprintf(fault.what, sizeof(fault.what), "%.*s", (int)sizeof(fault.what) - 1, run.text);
	return stoup_rewrite_block_error(part, &fault, err);
}

/* ---- one segment ----------------------------------------------------------------------------- */

struct walk {
	struct stoup_rewrite *rewrite;
	struct stoup_rewrite_series *series;
	const struct stoup_schema *schema;
	const struct stoup_part *part;
	int gap; /* records of this part were left out: running maxima of the index do not hold */
};

/* Put the records of a segment of which the filter keeps some. */
static int some_put(struct walk *walk, const struct stoup_vol_segment *segment,
	const uint8_t *records, struct stoup_error *err)
{
	const struct stoup_rewrite_filter *filter = walk->rewrite->filter;
	int64_t key = segment->first_key;
	const uint8_t *end = records;
	uint32_t at = 0, cnt;
	int rc = 0;

	for (; at < segment->record_cnt && rc == 0; at += cnt, records = end) {
		int keep = filter->key(filter->arg, key);
		int64_t first_key = key, last_key = key;

		for (cnt = 0; at + cnt < segment->record_cnt; cnt++) {
			int64_t next = stoup_sums_key(walk->schema, end);

			key = next > key ? next : key;
			if (filter->key(filter->arg, key) != keep)
				break;
			last_key = key;
			end += stoup_sums_record_len(walk->schema, end);
		}
		if (!keep) {
			walk->series->removed_cnt += cnt;
			walk->gap = 1;
			continue;
		}
		stoup_sums_add(&walk->series->read, &walk->series->fields, walk->schema, records,
			cnt, first_key, last_key);
		rc = stoup_rewrite_out_records(walk->rewrite, records, cnt, err);
	}
	return rc;
}

static int all_put(struct walk *walk, const struct stoup_vol_segment *segment, const uint8_t *raw,
	struct stoup_error *err)
{
	struct stoup_rewrite *rewrite = walk->rewrite;
	const struct stoup_vol_block *block =
		&walk->part->volume->index->blocks[segment->block_idx];
	const uint8_t *records = raw + segment->raw_off, *stored;
	int keeps = (walk->series->flags & STOUP_VOL_SERIES_KEEP_ORDER) != 0;
	struct stoup_vol_fault fault;
	int rc;

	stoup_sums_add(&walk->series->read, &walk->series->fields, walk->schema, records,
		segment->record_cnt, segment->first_key, segment->last_key);
	if (segment->raw_len != block->raw_len || (keeps && walk->gap) ||
		!stoup_rewrite_out_takes(rewrite, block))
		return stoup_rewrite_out_records(rewrite, records, segment->record_cnt, err);
	rc = stoup_block_cache_stored(
		rewrite->cache, walk->part->volume, segment->block_idx, &stored, &fault);
	if (rc < 0)
		return stoup_rewrite_block_error(walk->part, &fault, err);
	return stoup_rewrite_out_block(rewrite, block, segment, raw, stored, err);
}

static int segment_put(struct walk *walk, uint32_t segment_idx, struct stoup_error *err)
{
	struct stoup_rewrite *rewrite = walk->rewrite;
	const struct stoup_vol_segment *segment = &walk->part->volume->index->segments[segment_idx];
	enum stoup_rewrite_keep keep = keep_of(rewrite, walk->part, segment_idx);
	const uint8_t *raw;
	int rc;

	if (keep == STOUP_REWRITE_KEEP_NONE) {
		walk->series->removed_cnt += segment->record_cnt;
		walk->gap = 1;
		return 0;
	}
	rc = stoup_rewrite_segment_get(rewrite, walk->part, segment_idx, &raw, err);
	if (rc < 0)
		return rc;
	rc = keep == STOUP_REWRITE_KEEP_ALL ? all_put(walk, segment, raw, err)
	                                    : some_put(walk, segment, raw + segment->raw_off, err);
	stoup_block_cache_put(rewrite->cache, walk->part->volume, segment->block_idx);
	return rc;
}

static int part_put(struct walk *walk, struct stoup_error *err)
{
	const struct stoup_vol_series *series = walk->part->series;
	uint32_t i;
	int rc = 0;

	walk->gap = 0;
	for (i = 0; i < series->segment_cnt && rc == 0; i++)
		rc = segment_put(walk, series->segment_first + i, err);
	return rc;
}

/* ---- merging --------------------------------------------------------------------------------- */

/* Where a part of a cluster stands. */
struct cursor {
	const struct stoup_part *part;
	uint32_t source;
	uint32_t segment_at; /* of the part */
	uint32_t record_at;  /* of the segment */
	const uint8_t *record;
	int64_t key;        /* effective, of the record it stands on */
	const uint8_t *raw; /* of the segment's block, pinned; NULL: at the end */
};

static const struct stoup_vol_segment *cursor_segment(const struct cursor *cursor)
{
	return &cursor->part->volume->index
	                ->segments[cursor->part->series->segment_first + cursor->segment_at];
}

static void cursor_unpin(struct walk *walk, struct cursor *cursor)
{
	if (cursor->raw)
		stoup_block_cache_put(walk->rewrite->cache, cursor->part->volume,
			cursor_segment(cursor)->block_idx);
	cursor->raw = NULL;
}

/* Stand on the first record of its segment, or at the end. */
static int cursor_load(struct walk *walk, struct cursor *cursor, struct stoup_error *err)
{
	uint32_t idx = cursor->part->series->segment_first + cursor->segment_at;
	int rc;

	if (cursor->segment_at == cursor->part->series->segment_cnt)
		return 0;
	rc = stoup_rewrite_segment_get(walk->rewrite, cursor->part, idx, &cursor->raw, err);
	if (rc < 0) {
		cursor->raw = NULL;
		return rc;
	}
	cursor->record = cursor->raw + cursor_segment(cursor)->raw_off;
	cursor->record_at = 0;
	cursor->key = cursor_segment(cursor)->first_key;
	return 0;
}

/* Go on by cnt records of the segment, to `record`. */
static int cursor_step(struct walk *walk, struct cursor *cursor, uint32_t cnt,
	const uint8_t *record, struct stoup_error *err)
{
	int64_t key;

	cursor->record_at += cnt;
	if (cursor->record_at == cursor_segment(cursor)->record_cnt) {
		cursor_unpin(walk, cursor);
		cursor->segment_at++;
		return cursor_load(walk, cursor, err);
	}
	cursor->record = record;
	key = stoup_sums_key(walk->schema, record);
	cursor->key = key > cursor->key ? key : cursor->key;
	return 0;
}

/* The cursor with the smallest key, and the next one after it; -1: none. Parts come in the order in which equal keys
 * stand. */
static void cursors_pick(
	const struct cursor *cursors, size_t cnt, int64_t *ret_first, int64_t *ret_second)
{
	int64_t first = -1, second = -1;
	size_t i;

	for (i = 0; i < cnt; i++) {
		if (!cursors[i].raw)
			continue;
		if (first < 0 || cursors[i].key < cursors[first].key) {
			second = first;
			first = (int64_t)i;
		} else if (second < 0 || cursors[i].key < cursors[second].key) {
			second = (int64_t)i;
		}
	}
	*ret_first = first;
	*ret_second = second;
}

/* Put the records of the first cursor that come before those of the second; with dedup those of its key are compared. */
static int leading_put(struct walk *walk, struct cursor *cursors, int64_t first, int64_t second,
	struct stoup_error *err)
{
	struct cursor *cursor = &cursors[first];
	uint32_t n = 1, left = cursor_segment(cursor)->record_cnt - cursor->record_at;
	const uint8_t *records = cursor->record;
	const uint8_t *end = records + stoup_sums_record_len(walk->schema, records);
	int64_t key = cursor->key;
	int rc;

	for (; n < left; n++) {
		int64_t next = stoup_sums_key(walk->schema, end);

		next = next > key ? next : key;
		if (second >= 0 &&
			(next > cursors[second].key ||
				(next == cursors[second].key &&
					(first > second || walk->rewrite->options.dedup))))
			break;
		key = next;
		end += stoup_sums_record_len(walk->schema, end);
	}
	stoup_sums_add(&walk->series->read, &walk->series->fields, walk->schema, records, n,
		cursor->key, key);
	walk->series->merged_cnt += n;
	rc = stoup_rewrite_out_records(walk->rewrite, records, n, err);
	cursor->key = key;
	return rc < 0 ? rc : cursor_step(walk, cursor, n, end, err);
}

/* ---- equal records --------------------------------------------------------------------------- */

/* A record of the key that is looked at. */
struct equal {
	size_t off; /* in bytes */
	uint32_t len;
	uint32_t source;
	uint32_t is_duplicate;
};

/* What is known of one value. */
struct value {
	size_t equal;  /* the first one with these bytes, and 1; 0: empty */
	uint64_t kept; /* by all sources so far */
	uint64_t seen; /* in `source` */
	uint32_t source;
};

/* Records of one key of all cursors, in their order, and how many of each value are kept. */
struct equals {
	uint8_t *bytes;
	size_t len, bytes_cap;
	struct equal *records;
	const struct equal **order; /* by source */
	size_t cnt, cap;
	struct value *values; /* a table, at most half full */
	size_t value_cap;
};

static void equals_fini(struct equals *equals)
{
	free(equals->bytes);
	free(equals->records);
	free(equals->order);
	free(equals->values);
}

static int equals_grow(struct equals *equals, uint32_t len, struct stoup_error *err)
{
	size_t cap = equals->cap ? equals->cap * 2 : 64;
	size_t bytes_cap = (equals->len + len) * 2;
	void *grown;

	if (equals->len + len > EQUAL_KEY_LEN_CAP)
		return stoup_error_set(err, -E2BIG,
			"more than %u MiB of records have one key: too many to compare; use "
			"--overlaps merge",
			EQUAL_KEY_LEN_CAP >> 20);
	if (equals->cnt == equals->cap) {
		grown = realloc(equals->records, cap * sizeof(*equals->records));
		if (!grown)
			goto out_memory;
		equals->records = grown;
		equals->cap = cap;
	}
	if (equals->len + len > equals->bytes_cap) {
		grown = realloc(equals->bytes, bytes_cap);
		if (!grown)
			goto out_memory;
		equals->bytes = grown;
		equals->bytes_cap = bytes_cap;
	}
	return 0;
out_memory:
	return stoup_error_set(err, -ENOMEM, "no memory to compare records");
}

static int equals_add(struct equals *equals, const uint8_t *record, uint32_t len, uint32_t source,
	struct stoup_error *err)
{
	int rc = equals_grow(equals, len, err);

	if (rc < 0)
		return rc;
	memcpy(equals->bytes + equals->len, record, len);
	equals->records[equals->cnt++] =
		(struct equal){.off = equals->len, .len = len, .source = source};
	equals->len += len;
	return 0;
}

static struct value *value_of(struct equals *equals, size_t at_record)
{
	const struct equal *record = &equals->records[at_record];
	const uint8_t *bytes = equals->bytes + record->off;
	size_t mask = equals->value_cap - 1;
	size_t at = (size_t)stoup_vol_hash(bytes, record->len) & mask;

	for (;; at = (at + 1) & mask) {
		struct value *value = &equals->values[at];
		const struct equal *other;

		if (value->equal == 0) {
			*value = (struct value){.equal = at_record + 1, .source = record->source};
			return value;
		}
		other = &equals->records[value->equal - 1];
		if (other->len == record->len &&
			memcmp(equals->bytes + other->off, bytes, record->len) == 0)
			return value;
	}
}

static int source_cmp(const void *pa, const void *pb)
{
	const struct equal *a = *(const struct equal *const *)pa;
	const struct equal *b = *(const struct equal *const *)pb;

	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	return a->off < b->off ? -1 : 1;
}

/* Is the next record of its source one that an earlier source had already? */
static int is_duplicate(struct equals *equals, size_t at_record)
{
	struct value *value = value_of(equals, at_record);

	if (value->source != equals->records[at_record].source) {
		value->source = equals->records[at_record].source;
		value->seen = 0;
	}
	if (++value->seen <= value->kept)
		return 1;
	value->kept = value->seen;
	return 0;
}

/* Mark the records that another source holds already, source by source. */
static int duplicates_mark(struct equals *equals, struct stoup_error *err)
{
	size_t i;

	equals->value_cap = 64;
	while (equals->value_cap < equals->cnt * 2)
		equals->value_cap *= 2;
	free(equals->values);
	free(equals->order);
	equals->values = calloc(equals->value_cap, sizeof(*equals->values));
	equals->order = calloc(equals->cnt, sizeof(*equals->order));
	if (!equals->values || !equals->order)
		return stoup_error_set(err, -ENOMEM, "no memory to compare records");
	for (i = 0; i < equals->cnt; i++)
		equals->order[i] = &equals->records[i];
	qsort(equals->order, equals->cnt, sizeof(*equals->order), source_cmp);
	for (i = 0; i < equals->cnt; i++) {
		size_t at = (size_t)(equals->order[i] - equals->records);

		equals->records[at].is_duplicate = (uint32_t)is_duplicate(equals, at);
	}
	return 0;
}

/* Put the records of one key, without those that another source holds already. */
static int equals_put(struct walk *walk, struct equals *equals, struct stoup_error *err)
{
	size_t i;
	int rc = duplicates_mark(equals, err);

	for (i = 0; i < equals->cnt && rc == 0; i++) {
		if (equals->records[i].is_duplicate)
			walk->series->duplicate_cnt++;
		else
			rc = stoup_rewrite_out_records(
				walk->rewrite, equals->bytes + equals->records[i].off, 1, err);
	}
	equals->cnt = equals->len = 0;
	return rc;
}

/* Take all records of the smallest key of all cursors. */
static int key_put(struct walk *walk, struct cursor *cursors, size_t cnt, int64_t key,
	struct equals *equals, struct stoup_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < cnt; i++) {
		while (rc == 0 && cursors[i].raw && cursors[i].key == key) {
			const uint8_t *record = cursors[i].record;
			uint32_t len = stoup_sums_record_len(walk->schema, record);

			stoup_sums_add(&walk->series->read, &walk->series->fields, walk->schema,
				record, 1, key, key);
			walk->series->merged_cnt++;
			rc = equals_add(equals, record, len, cursors[i].source, err);
			if (rc == 0)
				rc = cursor_step(walk, &cursors[i], 1, record + len, err);
		}
	}
	return rc < 0 ? rc : equals_put(walk, equals, err);
}

/* ---- clusters -------------------------------------------------------------------------------- */

static int cluster_refuse(
	const struct walk *walk, const struct stoup_part *parts, struct stoup_error *err)
{
	const char *name = parts[0].series->name;

	if (stoup_event64_is(walk->schema))
		return stoup_error_set(err, -EEXIST,
			"%.100s: events of hftbacktest have two orders, so that overlapping volumes of "
			"them can not be merged: remove one of them",
			name);
	return 0;
}

/* Equal keys stand in the order of ingest. */
static int ingest_cmp(const void *pa, const void *pb)
{
	const struct cursor *a = pa, *b = pb;
	const struct stoup_vol_header *ha = &a->part->volume->index->header;
	const struct stoup_vol_header *hb = &b->part->volume->index->header;

	if (ha->ingest_seq != hb->ingest_seq)
		return ha->ingest_seq < hb->ingest_seq ? -1 : 1;
	if (ha->batch_idx != hb->batch_idx)
		return ha->batch_idx < hb->batch_idx ? -1 : 1;
	return memcmp(ha->id, hb->id, sizeof(ha->id));
}

/* All that is served is source 0; of what is left out each batch is one. */
static void sources_number(struct cursor *cursors, size_t cnt)
{
	size_t i, j;

	for (i = 0; i < cnt; i++) {
		cursors[i].source = cursors[i].part->left_out ? (uint32_t)i + 1 : 0;
		for (j = 0; j < i && cursors[i].source > 0; j++) {
			if (cursors[j].source > 0 &&
				stoup_store_same_batch(&cursors[i].part->volume->index->header,
					&cursors[j].part->volume->index->header)) {
				cursors[i].source = cursors[j].source;
				break;
			}
		}
	}
}

static int cluster_put(
	struct walk *walk, const struct stoup_part *parts, size_t cnt, struct stoup_error *err)
{
	struct cursor *cursors = calloc(cnt, sizeof(*cursors));
	struct equals equals = {0};
	int64_t first, second;
	size_t i;
	int rc = cluster_refuse(walk, parts, err);

	if (!cursors)
		rc = stoup_error_set(err, -ENOMEM, "no memory to merge volumes");
	for (i = 0; i < cnt && rc == 0; i++)
		cursors[i].part = &parts[i];
	if (rc == 0)
		qsort(cursors, cnt, sizeof(*cursors), ingest_cmp);
	if (rc == 0)
		sources_number(cursors, cnt);
	for (i = 0; i < cnt && rc == 0; i++)
		rc = cursor_load(walk, &cursors[i], err);
	while (rc == 0) {
		cursors_pick(cursors, cnt, &first, &second);
		if (first < 0)
			break;
		if (walk->rewrite->options.dedup && second >= 0 &&
			cursors[first].key == cursors[second].key)
			rc = key_put(walk, cursors, cnt, cursors[first].key, &equals, err);
		else
			rc = leading_put(walk, cursors, first, second, err);
	}
	for (i = 0; cursors && i < cnt; i++)
		cursor_unpin(walk, &cursors[i]);
	equals_fini(&equals);
	free(cursors);
	return rc;
}

/* How many parts from `parts` on belong together, because each overlaps what is before it. With dedup those that
 * only touch do, too, where the store left one of them out. */
static size_t cluster_cnt(
	const struct stoup_rewrite *rewrite, const struct stoup_part *parts, size_t cnt)
{
	int64_t last_key = parts[0].series->last_key;
	int left_out = parts[0].left_out;
	size_t n;

	for (n = 1; n < cnt; n++) {
		const struct stoup_vol_series *series = parts[n].series;

		left_out |= parts[n].left_out;
		if (series->first_key > last_key ||
			(series->first_key == last_key && !(rewrite->options.dedup && left_out)))
			break;
		last_key = series->last_key > last_key ? series->last_key : last_key;
	}
	return n;
}

int stoup_rewrite_put_series(
	struct stoup_rewrite *rewrite, uint32_t series_idx, struct stoup_error *err)
{
	const struct stoup_part_group *group = &rewrite->parts.groups[series_idx];
	const struct stoup_part *parts = &rewrite->parts.parts[group->first];
	struct walk walk = {.rewrite = rewrite,
		.series = &rewrite->series[series_idx],
		.schema = &rewrite->schemas[rewrite->series[series_idx].schema_idx].schema};
	size_t at = 0, n;
	int rc = 0;

	stoup_rewrite_out_series(rewrite, series_idx);
	for (; at < group->cnt && rc == 0; at += n) {
		n = cluster_cnt(rewrite, parts + at, group->cnt - at);
		walk.part = &parts[at];
		rc = n == 1 ? part_put(&walk, err) : cluster_put(&walk, parts + at, n, err);
	}
	return rc;
}
