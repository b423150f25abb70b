/* SPDX-License-Identifier: Apache-2.0 */
/* merge_need.c - what a merge holds at once, found before its first block is read.
 *
 * It leases one block per series. From the index alone:
 *
 *      simple   the longest block of each series in the range, added up
 *      shared   where that is more than there is: blocks that several of the series lie in count once each,
 *               with all of them, and of each series the longest of those it has alone
 *
 * Both are bounds; the less is promised (cells.c). Memory for the second: 4 bytes per block of each volume.
 *
 * A pool that has as many bytes free need not have them in one piece: n leases leave up to n gaps between them, each
 * a page shorter than the block that is wanted. So a place is certain from `bytes + (n - 1) * (longest - page)` on,
 * whatever lay where before, or where the pool holds the whole store. The default share, a quarter of the pool,
 * is always within it; a share that was given by --lease-bytes may not be.
 */
#include <errno.h>
#include <stdlib.h>
#include "consumer/merge.h"

#define OWNER_NONE 0u
#define OWNER_MANY UINT32_MAX

struct need {
	uint64_t bytes;
	uint32_t leases;
};

static uint64_t pages(uint64_t len)
{
	return (len + STOUP_OS_PAGE_LEN - 1) & ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
}

/* Segments [*begin, *end) of a part may be read by the lane. */
static void segments_of(const struct stoup_lane *lane, const struct stoup_part *part,
	uint32_t *begin, uint32_t *end)
{
	int64_t to = lane->range.to_ns;

	*begin = 0;
	*end = part->series->segment_cnt;
	if (lane->range.flags & STOUP_ORDINALS)
		return;
	if ((lane->range.flags & STOUP_TO_INCLUDED) && to != 0 && to != INT64_MAX)
		to++;
	*begin = stoup_part_begin(part, lane->range.from_ns > 0 ? lane->range.from_ns : 0);
	*end = stoup_part_end(part, to);
}

/* What the lane does with each of its blocks. */
typedef void (*block_call)(void *arg, const struct stoup_part *part, uint32_t block_idx);

static void each_block(const struct stoup_lane *lane, block_call call, void *arg)
{
	for (uint32_t p = 0; p < lane->cur->part_cnt && !lane->cur->direct; p++) {
		const struct stoup_part *part = &lane->cur->parts[p];
		const struct stoup_catalog_segment *seg =
			part->vol->segments + part->series->segment_first;
		uint32_t begin, end;

		segments_of(lane, part, &begin, &end);
		for (uint32_t i = begin; i < end; i++)
			if (seg[i].record_cnt > 0)
				call(arg, part, seg[i].block_idx);
	}
}

/* ---- the simple bound ------------------------------------------------------------------------- */

static void longest(void *arg, const struct stoup_part *part, uint32_t block_idx)
{
	uint64_t *max = arg, len = pages(part->vol->blocks[block_idx].raw_len);

	if (len > *max)
		*max = len;
}

static struct need need_simple(struct stoup_merge *m)
{
	struct need need = {0};

	for (uint32_t i = 0; i < m->cnt; i++) {
		uint64_t max = 0;

		each_block(&m->lanes[i], longest, &max);
		need.bytes += max;
		need.leases += max > 0;
		if (max > m->block_bytes_max)
			m->block_bytes_max = max;
	}
	return need;
}

/* ---- the bound where series share blocks ------------------------------------------------------ */

struct owners {
	const struct stoup_snapshot *snap;
	uint32_t **blocks; /* per volume and block: lane + 1, OWNER_NONE, OWNER_MANY */
	uint32_t lane;
	uint64_t alone; /* longest block that the lane has alone */
};

static void own(void *arg, const struct stoup_part *part, uint32_t block_idx)
{
	struct owners *o = arg;
	uint32_t *owner = &o->blocks[part->vol - o->snap->volumes][block_idx];

	*owner = *owner == OWNER_NONE || *owner == o->lane + 1 ? o->lane + 1 : OWNER_MANY;
}

static void alone(void *arg, const struct stoup_part *part, uint32_t block_idx)
{
	struct owners *o = arg;

	if (o->blocks[part->vol - o->snap->volumes][block_idx] != OWNER_MANY)
		longest(&o->alone, part, block_idx);
}

static void owners_fini(struct owners *o)
{
	for (uint32_t v = 0; o->blocks && v < o->snap->volume_cnt; v++)
		free(o->blocks[v]);
	free(o->blocks);
}

static int owners_init(struct owners *o, const struct stoup_snapshot *snap)
{
	*o = (struct owners){.snap = snap};
	o->blocks = calloc(snap->volume_cnt + 1u, sizeof(*o->blocks));
	for (uint32_t v = 0; o->blocks && v < snap->volume_cnt; v++) {
		o->blocks[v] = calloc(snap->volumes[v].catalog->block_cnt + 1u, sizeof(uint32_t));
		if (!o->blocks[v])
			return -ENOMEM;
	}
	return o->blocks ? 0 : -ENOMEM;
}

static int need_shared(struct stoup_merge *m, struct need *ret)
{
	struct need need = {0};
	struct owners o;
	int rc = owners_init(&o, m->lanes[0].cur->snap);

	for (o.lane = 0; o.lane < m->cnt && rc == 0; o.lane++)
		each_block(&m->lanes[o.lane], own, &o);
	for (o.lane = 0; o.lane < m->cnt && rc == 0; o.lane++) {
		o.alone = 0;
		each_block(&m->lanes[o.lane], alone, &o);
		need.bytes += o.alone;
		need.leases += o.alone > 0;
	}
	for (uint32_t v = 0; v < o.snap->volume_cnt && rc == 0; v++)
		for (uint32_t b = 0; b < o.snap->volumes[v].catalog->block_cnt; b++)
			if (o.blocks[v][b] == OWNER_MANY) {
				need.bytes += pages(o.snap->volumes[v].blocks[b].raw_len);
				need.leases++;
			}
	owners_fini(&o);
	if (rc == 0)
		*ret = need;
	return rc;
}

/* ---- the pool --------------------------------------------------------------------------------- */

/* Does the pool hold the whole store? Then nothing is ever evicted. */
static int holds_all(const struct stoup_session *ses)
{
	const struct stoup_control_volume *vol = stoup_control_volumes(ses->control);
	uint32_t cnt = atomic_load_explicit(&ses->control->volume_cnt, memory_order_acquire);
	uint64_t all = 0;

	for (uint32_t i = 0; i < cnt && i < ses->control->volume_cap; i++)
		if (atomic_load_explicit(&vol[i].state, memory_order_acquire) !=
			STOUP_VOLUME_ABSENT)
			all += vol[i].raw_len + (uint64_t)vol[i].block_cnt * STOUP_OS_PAGE_LEN;
	return all <= ses->control->data_len;
}

static uint64_t pool_len(const struct stoup_merge *m, const struct need *need)
{
	if (need->leases == 0)
		return 0;
	return need->bytes + (need->leases - 1) * (m->block_bytes_max - STOUP_OS_PAGE_LEN);
}

static int pool_check(struct stoup_merge *m, const struct stoup_session *ses,
	const struct need *need, struct stoup_error *err)
{
	uint64_t len = pool_len(m, need), has = ses->control->data_len;

	if (need->bytes > 0 && pages(ses->control->block_len_max) < m->block_bytes_max)
		return stoup_error_set(err, -EFBIG,
			"a merge of %u series reads blocks of %llu bytes, pool '%.48s' serves up to %u: start "
			"stoupd with a larger --size, or ingest with a smaller --block",
			m->cnt, (unsigned long long)m->block_bytes_max, ses->pool,
			ses->control->block_len_max);
	m->ahead_cap = m->st->opt.ahead_cnt;
	if (holds_all(ses))
		return 0;
	if (len > has)
		return stoup_error_set(err, -ENOBUFS,
			"a merge of %u series holds %llu bytes, certain to fit into %llu, pool '%.48s' has "
			"%llu: merge fewer, or stoupd --size %llu --lease-bytes %llu",
			m->cnt, (unsigned long long)need->bytes, (unsigned long long)len, ses->pool,
			(unsigned long long)has, (unsigned long long)len,
			(unsigned long long)need->bytes);
	if (need->bytes > 0 && (has - len) / m->block_bytes_max < m->ahead_cap)
		m->ahead_cap = (uint32_t)((has - len) / m->block_bytes_max);
	return 0;
}

static void ahead_limit(struct stoup_merge *m, const struct stoup_session *ses)
{
	uint64_t fit =
		m->block_bytes_max > 0 ? ses->control->ahead_bytes_cap / m->block_bytes_max : 0;

	if (fit < m->ahead_cap)
		m->ahead_cap = (uint32_t)fit;
}

static int reserve(struct stoup_merge *m, struct stoup_session *ses, struct stoup_error *err)
{
	struct need need = need_simple(m);
	int rc;

	if (need.leases == 0)
		return 0;
	m->promise = (struct stoup_promise){
		.bytes = need.bytes, .cell_cnt = need.leases, .series_cnt = m->cnt};
	rc = stoup_promise_make(ses, &m->promise, err);
	if (rc == 0)
		rc = pool_check(m, ses, &need, err);
	if (rc == 0)
		return 0;
	if (m->promise.session_no)
		stoup_promise_end(m->st, &m->promise);
	if (rc != -EDQUOT && rc != -EMFILE && rc != -ENOBUFS)
		return rc;
	if (need_shared(m, &need) < 0)
		return stoup_error_set(err, -ENOMEM, "no memory to merge %u series", m->cnt);
	if (need.bytes >= m->promise.bytes && need.leases >= m->promise.cell_cnt)
		return rc;
	m->promise.bytes = need.bytes;
	m->promise.cell_cnt = need.leases;
	rc = stoup_promise_make(ses, &m->promise, err);
	if (rc == 0) {
		rc = pool_check(m, ses, &need, err);
		if (rc < 0)
			stoup_promise_end(m->st, &m->promise);
	}
	return rc;
}

int stoup_merge_reserve(struct stoup_merge *m, struct stoup_error *err)
{
	struct stoup_session *ses = m->lanes[0].cur->ses;
	/* Whose daemon has ended is found by the first call, which goes over to the next one: what is promised
	 * there is the same. */
	int rc = stoup_session_enter(ses) == 0 ? 0 : 1;

	if (rc == 0) {
		rc = reserve(m, ses, err);
		ahead_limit(m, ses);
		stoup_session_leave(ses);
	}
	if (rc < 0)
		return rc;
	m->promised = m->promise.cell_cnt > 0;
	for (uint32_t i = 0; i < m->cnt && m->promised; i++)
		m->lanes[i].cur->hand.promise = &m->promise;
	return 0;
}
