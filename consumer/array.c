/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - a whole range as one array, where its records lie one behind the other.
 *
 *      scan, direct if it can be --> first span --> is there another? --no--> hold it: the array
 *           | from the pool                              | yes
 *           v                                            v
 *      one segment in the index? --no--> -EFBIG with the numbers, before a block is read
 *
 * Invariant: an array that is given out is all of the range.
 */
#include <errno.h>
#include <string.h>
#include "consumer/cursor.h"
#include "consumer/direct.h"

/* What the index says of a range: an upper bound at its two ends, exact between. */
struct extent {
	uint64_t segment_cnt, record_cnt;
	uint32_t volume_cnt;
};

static struct extent extent_of(const struct stoup_cursor *cur)
{
	struct extent ret = {0};

	for (uint32_t p = 0; p < cur->part_cnt; p++) {
		const struct stoup_part *part = &cur->parts[p];
		uint64_t before = ret.record_cnt;
		uint32_t i, end;

		stoup_part_range(cur, part, &i, &end);
		for (; i < end; i++) {
			const struct stoup_catalog_segment *seg =
				part->vol->segments + part->series->segment_first + i;

			ret.segment_cnt += seg->record_cnt > 0;
			ret.record_cnt += seg->record_cnt;
		}
		ret.volume_cnt += ret.record_cnt > before;
	}
	return ret;
}

static int too_long(const struct stoup_cursor *cur, struct stoup_error *err)
{
	struct extent extent = extent_of(cur);
	unsigned long long records = (unsigned long long)extent.record_cnt;
	unsigned long long kib =
		(unsigned long long)((extent.record_cnt * cur->schema->stride + 1023) / 1024);

	if (cur->direct)
		return stoup_error_set(err, -EFBIG,
			"'%.60s': %llu records (%llu KiB) lie in %u volume%s, in parts: no one array; ingest the "
			"range in one go (--codec none --replace, --volume above its size), with records that "
			"fill pages",
			cur->name, records, kib, extent.volume_cnt,
			extent.volume_cnt == 1 ? "" : "s");
	return stoup_error_set(err, -EFBIG,
		"'%.70s': %llu records (%llu KiB) in %llu blocks: no one array in the pool; ingest it with "
		"--codec none, or ask for a range that one block holds",
		cur->name, records, kib, (unsigned long long)extent.segment_cnt);
}

/* A limit may leave one block of many: which one is not in the index alone. */
static int limit_settle(struct stoup_cursor *cur)
{
	if (cur->range.limit == UINT64_MAX)
		return 0;
	cur->range.settle = STOUP_SETTLE_LIMIT;
	cur->pending |= STOUP_PENDING_EDGES;
	return stoup_cursor_ready(cur);
}

/* The one span of the cursor, held. */
static int take(struct stoup_cursor *cur, struct stoup_array *ret, struct stoup_error *err)
{
	struct stoup_array array = {.stride = cur->schema->stride, .schema = cur->schema};
	struct stoup_span span, more;
	int rc = limit_settle(cur);

	if (rc < 0)
		return stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	if (!cur->direct && extent_of(cur).segment_cnt > 1)
		return too_long(cur, err);
	rc = stoup_next(cur, &span);
	if (rc < 0)
		return stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	if (rc > 0) {
		array.base = span.base;
		array.record_cnt = span.record_cnt;
		array.direct = (uint32_t)cur->direct;
		rc = stoup_hold(&span, &array.lease);
		if (rc < 0)
			return stoup_error_set(err, rc, "'%.70s': no lease for its records: %s",
				cur->name, strerror(-rc));
		rc = stoup_next(cur, &more);
		if (rc != 0) {
			stoup_release(&array.lease);
			return rc > 0 ? too_long(cur, err)
			              : stoup_error_set(
						err, rc, "%s", stoup_cursor_error(cur)->text);
		}
	}
	*ret = array;
	return 0;
}

int stoup_array(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, struct stoup_array *ret, struct stoup_error *err)
{
	struct stoup_range mine = range ? *range : (struct stoup_range){0};
	struct stoup_cursor *cur;
	int rc;

	if (series && series->schema && series->schema->stride == 0)
		return stoup_error_set(err, -ENOTSUP,
			"%.120s holds messages of variable length, which are no array: scan it",
			series->name);
	if (mine.flags & STOUP_BACKWARD)
		return stoup_error_set(
			err, -EINVAL, "an array has the order of the series: no STOUP_BACKWARD");
	if (mine.flags & STOUP_FOLLOW)
		return stoup_error_set(err, -EINVAL,
			"an array does not grow: no STOUP_FOLLOW; make another one after stoup_refresh");
	if (!(mine.flags & STOUP_DIRECT))
		mine.flags |= STOUP_DIRECT_OR_POOL;
	rc = stoup_scan(st, series, &mine, &cur, err);
	if (rc < 0)
		return rc;
	rc = take(cur, ret, err);
	stoup_cursor_close(cur);
	return rc;
}

int stoup_array_release(struct stoup_array *array)
{
	int rc;

	if (!array || array->record_cnt == 0)
		return 0;
	rc = stoup_release(&array->lease);
	if (rc == 0)
		*array = (struct stoup_array){0};
	return rc;
}
