/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - many series in one order of time: see merge.h.
 *
 *      next:  the winner's lane steps (a block at its end) -> its path in the tree is played again
 *             -> the best of those that it beat there bounds its run -> gallop -> cut
 *
 * A loser tree: who wins was compared with the losers on its own path alone, so that the best of these is the second
 * best of all. Finding it, and playing the path again, are log2(k) comparisons each; a run of any length costs no
 * more, and a gallop of twice the logarithm of its length. Heads are kept apart from lanes, so that a path touches
 * few lines.
 *
 * Invariant: a lane that could not step keeps what it has: the call is repeated as stoup_next is.
 */
#include <errno.h>
#include <stdlib.h>
#include "consumer/merge.h"

#define OPEN_TRIES 8

/* ---- the tree --------------------------------------------------------------------------------- */

static inline int is_before(const struct stoup_merge *m, uint32_t a, uint32_t b)
{
	const struct stoup_head *x = &m->heads[a], *y = &m->heads[b];

	return x->place < y->place || (x->place == y->place && x->rank < y->rank);
}

/* The lane's head has changed: play from its leaf up. Only a winner's may. */
static void play(struct stoup_merge *m, uint32_t lane)
{
	uint32_t best = lane;

	for (uint32_t node = (lane + m->cnt) / 2; node > 0; node /= 2) {
		uint32_t other = m->losers[node];

		if (is_before(m, other, best)) {
			m->losers[node] = best;
			best = other;
		}
	}
	m->losers[0] = best;
}

/* Leaves are nodes [cnt, 2 cnt); the first to come to a node waits there. */
static void build(struct stoup_merge *m)
{
	for (uint32_t i = 0; i < m->cnt; i++)
		m->losers[i] = UINT32_MAX;
	for (uint32_t i = 0; i < m->cnt; i++) {
		uint32_t best = i, node = (i + m->cnt) / 2;

		for (; node > 0; node /= 2) {
			uint32_t other = m->losers[node];

			if (other == UINT32_MAX) {
				m->losers[node] = best;
				break;
			}
			if (is_before(m, other, best)) {
				m->losers[node] = best;
				best = other;
			}
		}
		if (node == 0)
			m->losers[0] = best;
	}
}

/* The greatest place that a record of the winner may have to come before all others' heads. */
static int64_t bound_of(const struct stoup_merge *m, uint32_t winner)
{
	uint32_t second = UINT32_MAX;
	const struct stoup_head *head;

	for (uint32_t node = (winner + m->cnt) / 2; node > 0; node /= 2)
		if (second == UINT32_MAX || is_before(m, m->losers[node], second))
			second = m->losers[node];
	if (second == UINT32_MAX)
		return INT64_MAX;
	head = &m->heads[second];
	/* The winner is before it, so a place that is no greater than it with a higher rank is not the least one. */
	return m->heads[winner].rank < head->rank ? head->place : head->place - 1;
}

/* ---- lanes ------------------------------------------------------------------------------------ */

static uint64_t rank_of(const struct stoup_merge *m, uint32_t lane)
{
	return m->step > 0 ? lane : m->cnt - 1 - lane;
}

/* Step over to the lane's next record, which may be in another block: 0, or a negative errno with text. */
static int lane_step(struct stoup_cursor *cur, uint32_t idx)
{
	struct stoup_merge *m = cur->merge;
	struct stoup_lane *lane = &m->lanes[idx];
	struct stoup_span span;
	int rc = 1;

	if (lane->low == lane->high) {
		lane->cur->hasty = cur->hasty;
		rc = stoup_next(lane->cur, &span);
		lane->cur->hasty = 0;
		if (rc > 0) {
			rc = stoup_lane_load(lane, &span);
			stoup_merge_ahead(m, idx);
			rc = rc < 0 ? rc : 1;
		}
	} else if (lane->from == lane->to) {
		rc = stoup_lane_piece(lane);
		rc = rc < 0 ? rc : 1;
	}
	if (rc < 0) {
		m->failed = idx;
		if (rc == -ENOMEM && lane->cur->error.code == 0)
			return stoup_error_set(&cur->error, rc,
				"no memory to order the records of '%.100s'", lane->cur->name);
		cur->error = lane->cur->error;
		return rc;
	}
	m->heads[idx].place = rc > 0 ? stoup_lane_place(lane, 0) : INT64_MAX;
	m->heads[idx].rank = rank_of(m, idx) + (rc > 0 ? 0 : m->cnt);
	return 0;
}

/* All lanes stand at their next record: 0, or a negative errno with text. */
static int settle(struct stoup_cursor *cur)
{
	struct stoup_merge *m = cur->merge;
	uint32_t winner;
	int rc = 0;

	while (m->begun < m->cnt) {
		rc = lane_step(cur, m->begun);
		if (rc < 0)
			return rc;
		if (++m->begun == m->cnt)
			build(m);
	}
	if (!m->stale)
		return 0;
	winner = m->losers[0];
	rc = lane_step(cur, winner);
	if (rc < 0)
		return rc;
	m->stale = 0;
	play(m, winner);
	return 0;
}

/* Nothing comes any more: hold nothing. */
static int end(struct stoup_merge *m)
{
	for (uint32_t i = 0; i < m->cnt && !m->over; i++)
		if (!m->lanes[i].cur->direct)
			stoup_cursor_let_go(m->lanes[i].cur);
	m->over = 1;
	return 0;
}

int stoup_merge_next(struct stoup_cursor *cur, struct stoup_span *ret)
{
	struct stoup_merge *m = cur->merge;
	struct stoup_lane *lane;
	uint32_t winner;
	uint64_t cnt;
	int rc;

	if (m->over || m->left == 0)
		return end(m);
	rc = settle(cur);
	if (rc < 0)
		return rc;
	winner = m->losers[0];
	if (m->heads[winner].rank >= m->cnt)
		return end(m);
	lane = &m->lanes[winner];
	cnt = stoup_lane_run(lane, bound_of(m, winner));
	if (cnt > m->left)
		cnt = m->left;
	m->left -= m->left == UINT64_MAX ? 0 : cnt;
	m->opened = lane->high - lane->low == lane->span.record_cnt;
	m->source = winner;
	m->stale = 1;
	stoup_lane_cut(lane, cnt, ret);
	return 1;
}

int64_t stoup_merge_skip(struct stoup_cursor *cur)
{
	int64_t cnt = stoup_cursor_skip(cur->merge->lanes[cur->merge->failed].cur);

	if (cnt >= 0)
		cur->error.code = 0;
	return cnt;
}

/* The key at which a record of the lane stands at a place. */
static int64_t lane_key(const struct stoup_lane *lane, int64_t place)
{
	int64_t key;

	return __builtin_sub_overflow(place, lane->add, &key) ? INT64_MIN : key;
}

int stoup_merge_seek(struct stoup_cursor *cur, int64_t key_ns)
{
	struct stoup_merge *m = cur->merge;
	int rc = 0;

	cur->error.code = 0;
	cur->error.text[0] = 0;
	cur->owed = 0;
	for (uint32_t i = 0; i < m->cnt && rc == 0; i++) {
		struct stoup_lane *lane = &m->lanes[i];

		rc = stoup_seek(lane->cur, lane_key(lane, key_ns));
		if (rc < 0)
			cur->error = lane->cur->error;
		lane->cur->window = lane->cur->window_cap = 0;
		lane->low = lane->high = lane->from = lane->to = 0;
		lane->ahead_session = NULL;
		lane->ahead_cnt = 0;
	}
	m->begun = m->ahead_cnt = 0;
	m->stale = m->over = 0;
	m->left = m->limit;
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------- */

/* The range as the series of a lane has it. */
static struct stoup_range lane_range(const struct stoup_range *range, int64_t add)
{
	struct stoup_range ret = *range;

	ret.limit = 0;
	ret.flags &= ~STOUP_AT_OPEN;
	ret.flags &= ~STOUP_AVAILABLE;
	if (add == 0 || (ret.flags & STOUP_ORDINALS))
		return ret;
	/* Open stays open; an end that lies before all keys leaves nothing. */
	if (ret.from_ns > 0)
		ret.from_ns = ret.from_ns > add ? ret.from_ns - add : 0;
	if (ret.to_ns > 0 && ret.to_ns <= add) {
		ret.from_ns = ret.to_ns = 1;
		ret.flags &= ~(STOUP_FROM_AFTER | STOUP_TO_INCLUDED);
	} else if (ret.to_ns > 0)
		ret.to_ns -= add;
	return ret;
}

static int lane_open(struct stoup_merge *m, uint32_t idx, const struct stoup_series *series,
	const struct stoup_range *range, struct stoup_error *err)
{
	struct stoup_lane *lane = &m->lanes[idx];
	int at_open = (range->flags & STOUP_AT_OPEN) != 0;
	const struct stoup_schema *schema;
	const char *name;
	int rc;

	/* Not yet known to be of this attachment: stoup_scan says it. */
	if (stoup_registry_entry(m->st, series->id, &name, &schema) == 0)
		lane->add = stoup_lane_add(schema, at_open);
	lane->range = lane_range(range, lane->add);
	rc = stoup_scan(m->st, series, &lane->range, &lane->cur, err);
	if (rc < 0)
		return rc;
	lane->step = m->step;
	lane->cur->no_ahead = 1;
	lane->cur->window = lane->cur->window_cap = 0;
	return 0;
}

static int check(struct stoup *st, const struct stoup_series *series, size_t cnt,
	const struct stoup_range *range, struct stoup_error *err)
{
	if (!stoup_client_own(st))
		return stoup_client_refused(st, err);
	if (!series || cnt == 0)
		return stoup_error_set(err, -EINVAL, "no series to merge were given");
	if (cnt > STOUP_MERGE_CAP)
		return stoup_error_set(err, -EINVAL,
			"%zu series are to be merged, at most %u can be", cnt, STOUP_MERGE_CAP);
	if (range && (range->flags & (STOUP_LAST | STOUP_FOLLOW)))
		return stoup_error_set(err, -EINVAL,
			"range.flags %#x: a merge takes neither STOUP_LAST nor STOUP_FOLLOW; the last n "
			"records come by STOUP_BACKWARD with a limit, newest first",
			range->flags);
	return 0;
}

static int make(struct stoup *st, size_t cnt, const struct stoup_range *range,
	struct stoup_merge **ret, struct stoup_error *err)
{
	struct stoup_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return stoup_error_set(err, -ENOMEM, "no memory for a merge");
	m->st = st;
	m->cnt = (uint32_t)cnt;
	m->step = range->flags & STOUP_BACKWARD ? -1 : 1;
	m->limit = m->left = range->limit ? range->limit : UINT64_MAX;
	m->lanes = calloc(cnt, sizeof(*m->lanes));
	m->heads = calloc(cnt, sizeof(*m->heads));
	m->losers = calloc(cnt, sizeof(*m->losers));
	*ret = m;
	if (m->lanes && m->heads && m->losers)
		return 0;
	return stoup_error_set(err, -ENOMEM, "no memory to merge %zu series", cnt);
}

/* Its cursors are not the user's: one cursor is open, however many series it has. */
static void count(struct stoup_merge *m, uint32_t more, uint32_t less)
{
	pthread_mutex_lock(&m->st->mutex);
	m->st->cursor_cnt += more;
	m->st->cursor_cnt -= less;
	pthread_mutex_unlock(&m->st->mutex);
}

static void merge_free(struct stoup_merge *m)
{
	for (uint32_t i = 0; m->lanes && i < m->cnt; i++)
		stoup_lane_fini(&m->lanes[i]);
	if (m->promised && stoup_client_own(m->st))
		stoup_promise_end(m->st, &m->promise);
	free(m->losers);
	free(m->heads);
	free(m->lanes);
	free(m);
}

/* They were opened one after the other: has another thread refreshed in between? */
static int same_snapshot(const struct stoup_merge *m)
{
	for (uint32_t i = 1; i < m->cnt; i++)
		if (m->lanes[i].cur->snap != m->lanes[0].cur->snap)
			return 0;
	return 1;
}

static int lanes_open(struct stoup_merge *m, const struct stoup_series *series,
	const struct stoup_range *range, struct stoup_error *err)
{
	int rc = 0;

	for (int tries = 0; tries < OPEN_TRIES; tries++) {
		for (uint32_t i = 0; i < m->cnt && rc == 0; i++) {
			stoup_cursor_close(m->lanes[i].cur);
			m->lanes[i].cur = NULL;
			rc = lane_open(m, i, &series[i], range, err);
		}
		if (rc < 0 || same_snapshot(m))
			return rc;
	}
	return stoup_error_set(err, -EBUSY,
		"the snapshot changed %d times while %u series were opened: another thread calls "
		"stoup_refresh; try again",
		OPEN_TRIES, m->cnt);
}

/* The schema that all series have, for whoever makes columns or bars of them; NULL: they differ. */
static const struct stoup_schema *common_schema(const struct stoup_merge *m)
{
	for (uint32_t i = 1; i < m->cnt; i++)
		if (m->lanes[i].cur->schema != m->lanes[0].cur->schema)
			return NULL;
	return m->lanes[0].cur->schema;
}

int stoup_merge(struct stoup *st, const struct stoup_series *series, size_t cnt,
	const struct stoup_range *range, struct stoup_cursor **ret, struct stoup_error *err)
{
	static const struct stoup_range all;
	struct stoup_cursor *cur = NULL;
	struct stoup_merge *m = NULL;
	int rc = check(st, series, cnt, range, err);

	if (rc < 0)
		return rc;
	range = range ? range : &all;
	cur = calloc(1, sizeof(*cur));
	rc = cur ? make(st, cnt, range, &m, err)
	         : stoup_error_set(err, -ENOMEM, "no memory for a cursor");
	if (rc == 0)
		rc = lanes_open(m, series, range, err);
	if (rc == 0)
		rc = stoup_merge_reserve(m, err);
	if (rc < 0) {
		if (m)
			merge_free(m);
		free(cur);
		return rc;
	}
	count(m, 1, m->cnt);
	cur->st = st;
	cur->name = "a merge";
	cur->schema = common_schema(m);
	cur->step = m->step;
	cur->grip.cell_idx = STOUP_CELL_NONE;
	cur->merge = m;
	*ret = cur;
	return 0;
}

void stoup_merge_close(struct stoup_cursor *cur)
{
	struct stoup *st = cur->st;
	int own = stoup_client_own(st), last = 0;

	/* Counted until all of it has gone, so that the handle stays. */
	if (own)
		count(cur->merge, cur->merge->cnt, 0);
	merge_free(cur->merge);
	free(cur);
	if (!own)
		return;
	pthread_mutex_lock(&st->mutex);
	st->cursor_cnt--;
	last = stoup_client_idle(st) && st->leaving;
	pthread_mutex_unlock(&st->mutex);
	if (last)
		stoup_client_destroy(st);
}

struct stoup_session *stoup_merge_session(const struct stoup_cursor *cur)
{
	return cur->merge->lanes[cur->merge->source].cur->ses;
}

int64_t stoup_merge_place(const struct stoup_cursor *cur, const struct stoup_span *run)
{
	const struct stoup_lane *lane = &cur->merge->lanes[cur->merge->source];

	/* The piece stays until the next call. */
	return stoup_lane_at(lane, run->ordinal - lane->span.ordinal);
}

uint64_t stoup_merge_span_bytes(const struct stoup_cursor *cur, const struct stoup_span *span)
{
	const struct stoup_merge *m = cur->merge;
	const struct stoup_cursor *sub = m->lanes[m->source].cur;

	if (sub->direct)
		return span->record_cnt * span->stride;
	return m->opened ? sub->grip.raw_len : 0;
}

uint32_t stoup_cursor_source(const struct stoup_cursor *cur)
{
	return cur && cur->merge ? cur->merge->source : 0;
}
