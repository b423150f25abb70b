/* SPDX-License-Identifier: Apache-2.0 */
/* where.c - scans that leave out what the zone maps rule out.
 *
 *      segments   [1..5][4..9][2..3][8..9][1..2]      where price > 5:  [4..9][8..9]
 *
 * All is in stoup_place_segment, which every step of a scan asks for the segment at a place: so read-ahead, direct mode
 * and going over to another daemon leave out the same ones. Looking for the anchor after that goes by ordinals and does
 * not ask: the record that was handed out last is found whatever segment it lies in now.
 *
 * Concurrency: as the cursor; the filter is only read.
 */
#include <errno.h>
#include "consumer/cursor.h"
#include "consumer/filter.h"

int stoup_where_excludes(const struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg)
{
	const struct stoup_snapshot_volume *vol = part->vol;
	uint64_t len = 0;
	const uint8_t *row =
		stoup_catalog_zone(vol->catalog, (uint32_t)(seg - vol->segments), &len);

	return stoup_filter_zone_excludes(cur->where, row, len);
}

int stoup_scan_where(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, struct stoup_filter *filter, struct stoup_cursor **ret,
	struct stoup_error *err)
{
	struct stoup_cursor *cur = NULL;
	int rc;

	if (!filter)
		return stoup_error_set(err, -EINVAL, "no filter was given");
	/* What a limit counts would depend on how the volumes are cut into segments. */
	if (range && range->limit > 0)
		return stoup_error_set(err, -EINVAL,
			"range.limit counts records, whether they match or not: leave it 0 with a filter, "
			"and count what stoup_filter_span finds");
	rc = stoup_scan(st, series, range, &cur, err);
	if (rc < 0)
		return rc;
	if (cur->schema->hash != filter->hash || cur->schema->stride != filter->stride) {
		rc = stoup_error_set(err, -EINVAL,
			"the filter was made for another schema than %s of '%.100s'",
			cur->schema->name, cur->name);
		stoup_cursor_close(cur);
		return rc;
	}
	cur->where = stoup_filter_acquire(filter);
	*ret = cur;
	return 0;
}

uint64_t stoup_cursor_left_out(const struct stoup_cursor *cur)
{
	return cur ? cur->left_out + cur->at.left_out : 0;
}
