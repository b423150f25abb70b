/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_check.c - the new volumes read back before they are published.
 *
 * They still have their temporary names, and the old volumes are still what everybody sees. What is compared comes
 * from the files, through the index as a reader parses it and the decoder that a daemon uses.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "producer/rewrite_private.h"
#include "producer/stop.h"

/* The entry of a series of a new volume, or -1. The groups are sorted by schema hash, then name. */
static int64_t series_find(const struct stoup_rewrite *rewrite, const struct stoup_part *part)
{
	size_t lo = 0, hi = rewrite->parts.group_cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct stoup_part *other = stoup_parts_first(&rewrite->parts, mid);
		uint64_t ha = stoup_part_schema(other)->hash, hb = stoup_part_schema(part)->hash;
		int cmp = ha != hb ? (ha < hb ? -1 : 1)
		                   : strcmp(other->series->name, part->series->name);

		if (cmp == 0)
			return (int64_t)mid;
		if (cmp < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

static int part_read(
	struct stoup_rewrite *rewrite, const struct stoup_part *part, struct stoup_error *err)
{
	const struct stoup_vol_index *index = part->volume->index;
	int64_t series_idx = series_find(rewrite, part);
	struct stoup_rewrite_series *series;
	uint32_t i;

	if (series_idx < 0)
		return stoup_error_set(err, -EPROTO,
			"a new volume holds a series that no old one held: a fault of this program; "
			"nothing was changed");
	series = &rewrite->series[series_idx];
	for (i = 0; i < part->series->segment_cnt; i++) {
		const struct stoup_vol_segment *segment =
			&index->segments[part->series->segment_first + i];
		const uint8_t *raw;
		int rc = stoup_stop_asked(err);

		if (rc < 0)
			return rc;
		rc = stoup_rewrite_segment_get(
			rewrite, part, part->series->segment_first + i, &raw, err);
		if (rc < 0) {
			stoup_error_prefix(err, "a new volume does not read back");
			return rc;
		}
		stoup_sums_add(&series->written, &series->fields,
			&rewrite->schemas[series->schema_idx].schema, raw + segment->raw_off,
			segment->record_cnt, segment->first_key, segment->last_key);
		stoup_block_cache_put(rewrite->cache, part->volume, segment->block_idx);
	}
	return 0;
}

static int volume_read(struct stoup_rewrite *rewrite, const struct stoup_rewrite_volume *written,
	struct stoup_error *err)
{
	char name[STOUP_STORE_NAME_CAP];
	struct stoup_store_volume volume = {.path = name, .file_len = written->file_len};
	struct stoup_vol_fault fault;
	uint32_t i;
	int rc;

	stoup_store_temp_name(&written->header, name);
	volume.fd = openat(rewrite->lock.dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (volume.fd < 0)
		return stoup_error_set(err, -errno, "%.100s/%s: %s; nothing was changed",
			rewrite->lock.path, name, strerror(errno));
	rc = stoup_volume_index_read(volume.fd, volume.file_len, &volume.index, &fault);
	if (rc < 0)
		stoup_error_set(err, rc,
			"a new volume does not read back: %.100s; nothing was changed", fault.what);
	for (i = 0; rc == 0 && i < volume.index->series_cnt; i++) {
		struct stoup_part part = {.volume = &volume, .series = &volume.index->series[i]};

		rc = part_read(rewrite, &part, err);
		stoup_progress_step(&rewrite->progress, 0, 0);
	}
	stoup_block_cache_forget(rewrite->cache, &volume);
	stoup_vol_index_destroy(volume.index);
	close(volume.fd);
	return rc;
}

static int sums_differ(const struct stoup_sums *a, const struct stoup_sums *b)
{
	return a->record_cnt != b->record_cnt || a->first_key != b->first_key ||
	       a->last_key != b->last_key || a->hash != b->hash ||
	       a->values.price != b->values.price || a->values.size != b->values.size;
}

int stoup_rewrite_check(struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < rewrite->volume_cnt && rc == 0; i++)
		rc = volume_read(rewrite, &rewrite->volumes[i], err);
	for (i = 0; i < rewrite->parts.group_cnt && rc == 0; i++) {
		const struct stoup_rewrite_series *series = &rewrite->series[i];

		if (sums_differ(&series->put, &series->written) ||
			series->read.record_cnt - series->duplicate_cnt != series->put.record_cnt)
			rc = stoup_error_set(err, -EPROTO,
				"series %.80s: %" PRIu64 " records read, %" PRIu64 " put, %" PRIu64
				" read back, or others: a fault of this program or machine; nothing was "
				"changed",
				stoup_parts_first(&rewrite->parts, i)->series->name,
				series->read.record_cnt, series->put.record_cnt,
				series->written.record_cnt);
	}
	return rc;
}
