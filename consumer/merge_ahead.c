/* SPDX-License-Identifier: Apache-2.0 */
/* merge_ahead.c - which blocks a merge has read ahead: those that it will want first.
 *
 *      lane 0   [ in work ][ 1 ][  4  ][
 *      lane 1   [ in work      ][ 3 ][
 *      lane 2   [in work][ 2    ][ 5
 *                        ^ its due: the place of the last record in front of it
 *
 * A block is wanted when the record in front of it has been handed out, and the index has that record's key. So
 * blocks are asked for in the order of those keys, over all series: a merge of hundreds keeps no more of them unread
 * than one scan does, where a window per cursor would fill a pool with blocks that are wanted much later.
 *
 * Limit: as many as options.ahead_cnt says, as many as the pool keeps unread for all, and no more than there is room
 * for beside what the merge holds; none in a pool that has only that.
 */
#include "consumer/merge.h"

static int64_t place_of(const struct stoup_lane *lane, const struct stoup_catalog_segment *seg)
{
	int64_t key = lane->step > 0 ? seg->last_key : seg->first_key;
	int64_t at = stoup_lane_later(key, lane->add);

	return lane->step > 0 ? at : ~at;
}

/* The lane's cursor stands behind a segment with these keys: what was asked for of it is still to come, unless it
 * went over to another daemon. */
static void lane_moved(struct stoup_merge *m, struct stoup_lane *lane)
{
	const struct stoup_cursor *cur = lane->cur;
	uint64_t cnt = 0;

	if (cur->ses == lane->ahead_session && lane->ahead.pos > cur->at.pos)
		cnt = lane->ahead.pos - cur->at.pos;
	m->ahead_cnt = m->ahead_cnt + (uint32_t)cnt - (uint32_t)lane->ahead_cnt;
	lane->ahead_cnt = cnt;
	if (cnt > 0)
		return;
	lane->ahead = cur->at;
	lane->ahead_session = cur->ses;
	lane->ahead_over = 0;
	lane->ahead_due = lane->last;
}

/* Lanes of one session, which is in use: the one whose next block is wanted first. */
static struct stoup_lane *lane_first(struct stoup_merge *m, struct stoup_session *ses)
{
	struct stoup_lane *best = NULL;

	for (uint32_t i = 0; i < m->cnt; i++) {
		struct stoup_lane *lane = &m->lanes[i];

		if (lane->cur->ses != ses || lane->cur->direct || lane->cur->pending)
			continue;
		if (lane->ahead_session != ses) {
			lane->ahead = lane->cur->at;
			lane->ahead_session = ses;
			lane->ahead_due = INT64_MIN;
		}
		if (!lane->ahead_over && (!best || lane->ahead_due < best->ahead_due))
			best = lane;
	}
	return best;
}

/* Ask for the lane's next block: 0, the daemon takes no more now. */
static int ask(struct stoup_merge *m, struct stoup_session *ses, struct stoup_lane *lane)
{
	const struct stoup_catalog_segment *seg = stoup_place_segment(lane->cur, &lane->ahead);
	const struct stoup_snapshot_volume *vol;
	struct stoup_ahead run = {.cnt = 1, .step = lane->step};

	if (!seg) {
		lane->ahead_over = 1;
		return 1;
	}
	vol = lane->cur->parts[lane->ahead.part].vol;
	run.volume_idx = vol->catalog->volume_idx;
	run.block_idx = seg->block_idx;
	if (atomic_load_explicit(&vol->residency[seg->block_idx], memory_order_relaxed) == 0 &&
		!stoup_wait_ahead(ses, &run))
		return 0;
	lane->ahead_due = place_of(lane, seg);
	lane->ahead.seg += (uint32_t)lane->step;
	lane->ahead.pos++;
	lane->ahead_cnt++;
	m->ahead_cnt++;
	return 1;
}

void stoup_merge_ahead(struct stoup_merge *m, uint32_t idx)
{
	struct stoup_lane *lane = &m->lanes[idx];
	struct stoup_session *ses = lane->cur->ses;

	if (m->ahead_cap == 0 || lane->cur->direct)
		return;
	lane_moved(m, lane);
	while (m->ahead_cnt < m->ahead_cap && (lane = lane_first(m, ses)) != NULL)
		if (!ask(m, ses, lane))
			return;
}
