/* SPDX-License-Identifier: Apache-2.0 */
/* asof.c - the last record that was known at a time: the calls, and which segment has it.
 *
 *      stoup_asof --time in [low, until]--> the record of before                 some compares
 *          |------some records on---------> step from key to key                 no call
 *          |------in the leased segment---> stoup_keys_search
 *          +------elsewhere---------------> border, lease, stoup_keys_search     may wait
 *
 * What a call looks at before it answers out of what it has: is this the process that attached, do the words
 * of the daemon say that it runs, and is a look at the clock due. So the daemon's end is noticed as it is in
 * a scan, by loads alone.
 *
 * Bars count from when they were known: their key is the time of their opening, so that interval_ns is taken from the
 * time that is looked up. "Strictly before" is "at or before", one nanosecond earlier.
 */
#include "consumer/asof.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/direct.h"

#define STEP_CNT  8u    /* records that a call steps on before it gallops */
#define FOUND_CNT 1024u /* lookups of direct mode between two counts */
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* ---- nothing known --------------------------------------------------------------------------- */

/* Direct mode: the counters are the handle's, and shared by all threads. */
static void found_flush(struct stoup_cursor *cur)
{
	struct stoup_lookup *look = cur->lookup;

	if (look->found_cnt > 0)
		stoup_direct_count(cur->st, look->found_cnt, look->found_cnt);
	look->found_cnt = 0;
}

static inline void found_count(struct stoup_cursor *cur, uint64_t cnt)
{
	struct stoup_lookup *look = cur->lookup;

	if (!cur->direct)
		cur->record_cnt += cnt;
	else if ((look->found_cnt += cnt) >= FOUND_CNT)
		found_flush(cur);
}

void stoup_lookup_drop(struct stoup_cursor *cur)
{
	struct stoup_lookup *look = cur->lookup;

	if (!look)
		return;
	stoup_lookup_forget(look);
	look->before = STOUP_ASOF_NONE;
	found_flush(cur);
	if (!look->ses)
		return;
	stoup_cursor_flush(cur);
	stoup_grip_release(look->ses, &look->hand, &look->grip);
	stoup_hand_fini(look->ses, &look->hand);
	stoup_session_leave(look->ses);
	look->ses = NULL;
}

void stoup_lookup_fini(struct stoup_cursor *cur)
{
	struct stoup_lookup *look = cur->lookup;

	if (!look)
		return;
	/* In a child of a fork that inherited nothing there is nothing to give back. */
	if (stoup_client_own(cur->st))
		stoup_lookup_drop(cur);
	stoup_borders_clear(look);
	free(look);
	cur->lookup = NULL;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* Find it wherever it is: 1, 0, or a negative errno with text. */
static int find(struct stoup_cursor *cur, int64_t time_ns, struct stoup_span *ret)
{
	struct stoup_lookup *look = cur->lookup;
	int64_t key_ns;
	uint32_t border;
	int rc = 0;

	if (!cur->direct && !look->ses) {
		if (stoup_session_enter(cur->ses) < 0)
			return -EPIPE;
		look->ses = cur->ses;
	}
	if (!cur->direct)
		rc = stoup_cursor_pulse(cur);
	if (rc == 0)
		rc = stoup_borders_check(cur);
	if (rc < 0 || time_ns <= look->shift)
		return rc;
	key_ns = time_ns - look->shift;
	if (key_ns > look->last_ns)
		key_ns = look->last_ns;
	if (key_ns < look->from_ns)
		return 0;
	border = stoup_border_find(look, key_ns);
	if (border == STOUP_ASOF_NONE)
		return 0;
	if (border != look->border)
		rc = stoup_border_enter(cur, border);
	return rc < 0 ? rc : stoup_border_read(cur, key_ns, ret);
}

/* The scan gives back what it has of a session that has ended. */
static int scan_rest(struct stoup_cursor *cur)
{
	if (cur->owed)
		return stoup_error_set(&cur->error, -EBUSY,
			"the daemon has ended, and a span that stoup_next_held could not keep is still to be "
			"taken: call stoup_next first");
	stoup_cursor_let_go(cur);
	stoup_hand_fini(cur->ses, &cur->hand);
	stoup_cursor_flush(cur);
	if (cur->active)
		stoup_session_leave(cur->ses);
	cur->active = 0;
	return 0;
}

/* Lookups with STOUP_FOLLOW behind all that the snapshot has: take a newer one. 0, or a negative errno with text. */
static int follow(struct stoup_cursor *cur, int64_t time_ns)
{
	const struct stoup_part *last = cur->parts + cur->part_cnt;
	int rc;

	if (!(cur->range.flags & STOUP_FOLLOW) || cur->owed ||
		(cur->part_cnt > 0 && time_ns < last[-1].series->last_key))
		return 0;
	rc = stoup_follow_due(cur);
	if (rc <= 0)
		return rc;
	stoup_lookup_drop(cur);
	rc = scan_rest(cur);
	if (rc == 0)
		rc = stoup_follow(cur);
	return rc < 0 ? rc : 0;
}

/* Do what is to be known before anything is looked up: 0, or a negative errno with text. */
static int prepare(struct stoup_cursor *cur, int64_t time_ns)
{
	int rc = 0;

	if (cur->range.limit != UINT64_MAX)
		return stoup_error_set(&cur->error, -EINVAL,
			"a range with a limit has no as-of: a limit counts what a scan yields");
	rc = follow(cur, time_ns);
	/* Ordinals of another snapshot, or files that are not mapped yet. */
	if (rc == 0 && (cur->pending & STOUP_PENDING_FILES ||
			       (cur->pending && cur->range.flags & STOUP_ORDINALS)))
		rc = stoup_cursor_ready(cur);
	return rc;
}

static struct stoup_lookup *lookup_make(struct stoup_cursor *cur)
{
	struct stoup_lookup *look = calloc(1, sizeof(*look));

	if (!look) {
		stoup_error_set(
			&cur->error, -ENOMEM, "no memory for lookups in '%.100s'", cur->name);
		return NULL;
	}
	look->grip.cell_idx = STOUP_CELL_NONE;
	cur->lookup = look;
	stoup_lookup_forget(look);
	look->before = STOUP_ASOF_NONE;
	return look;
}

/* One try in the snapshot that the cursor has by now. */
static int attempt(struct stoup_cursor *cur, int64_t time_ns, struct stoup_span *ret)
{
	int rc = prepare(cur, time_ns);

	return rc < 0 ? rc : find(cur, time_ns, ret);
}

/* What is not answered out of what the cursor has. */
static __attribute__((noinline)) int look_up(
	struct stoup_cursor *cur, int64_t time_ns, struct stoup_span *ret)
{
	uint64_t deadline_ns = 0;
	int rc;

	if (!cur)
		return -EINVAL;
	if (!stoup_client_own(cur->st)) {
		cur->error.text[0] = 0;
		return stoup_client_refused(cur->st, &cur->error);
	}
	if (cur->failed)
		return cur->error.code;
	cur->error.code = 0;
	cur->error.text[0] = 0;
	if (cur->merge)
		return stoup_error_set(&cur->error, -EINVAL,
			"a merge has no records as of a time: stoup_asof_all takes a cursor of each series");
	cur->lookup_failed = 1;
	if (!cur->snap)
		return stoup_error_set(&cur->error, -EINVAL,
			"a cursor over many series has no as-of: stoup_asof_all, with a cursor of each");
	if (!cur->lookup && !lookup_make(cur))
		return -ENOMEM;
	while ((rc = attempt(cur, time_ns, ret)) == -EPIPE) {
		stoup_lookup_drop(cur);
		rc = scan_rest(cur);
		if (rc < 0)
			break;
		if (deadline_ns == 0)
			deadline_ns = stoup_client_now() + cur->st->opt.reconnect_ns;
		rc = stoup_cursor_renew(cur, deadline_ns);
		if (rc < 0)
			break;
	}
	if (rc == -EDQUOT)
		stoup_hand_fini(cur->ses, &cur->lookup->hand);
	cur->lookup_failed = rc < 0;
	if (rc >= 0) {
		cur->error.code = 0;
		found_count(cur, (uint64_t)rc);
	}
	return rc;
}

/* Does nothing forbid to answer out of what the cursor has? Loads alone. */
static inline int is_ready(struct stoup_cursor *cur, const struct stoup_lookup *look)
{
	const struct stoup_session *ses = look->ses;

	/* 2: the kernel could not mark the page, so that the pid would have to be asked for. */
	if (atomic_load_explicit(cur->st->own, memory_order_relaxed) != 1)
		return 0;
	if (!ses)
		return cur->direct;
	if (cur->look_in <= 1 || atomic_load_explicit(&ses->ended, memory_order_relaxed) != 0 ||
		atomic_load_explicit(&ses->control->state, memory_order_relaxed) !=
			STOUP_STATE_RUNNING ||
		stoup_alive_look(&ses->control->alive) == STOUP_ALIVE_NO)
		return 0;
	cur->look_in--;
	return 1;
}

static inline int64_t key_load(const uint8_t *at)
{
	int64_t key;

	memcpy(&key, at, sizeof(key));
	return key;
}

/* From the record that is known to the last one whose key is at most key_ns: 1 it is known then, 0 too far. */
static inline int step_on(struct stoup_lookup *look, int64_t key_ns)
{
	const uint8_t *at = look->key_at, *end = look->key_end;
	uint64_t stride = look->key_stride;
	int64_t next;

	for (uint32_t i = 0; i < STEP_CNT && at != end; i++) {
		at += stride;
		next = at == end ? look->seg_until : stoup_time_below(key_load(at + stride));
		if (key_ns <= next) {
			look->idx += i + 1;
			look->low = key_load(at);
			look->until = next;
			look->key_at = at;
			return 1;
		}
	}
	return 0;
}

/* 1 or 0 with the outcome, or -1: not to be told from here. */
static inline __attribute__((always_inline)) int glance(
	struct stoup_cursor *cur, int64_t time_ns, struct stoup_span *ret)
{
	struct stoup_lookup *look = cur->lookup;
	int64_t key_ns;

	if (!look || time_ns <= look->shift)
		return -1;
	key_ns = time_ns - look->shift;
	if (key_ns > look->last_ns)
		key_ns = look->last_ns;
	if (key_ns < look->seg_low || key_ns > look->seg_until || !is_ready(cur, look))
		return -1;
	if (!LIKELY(key_ns >= look->low && (key_ns <= look->until || step_on(look, key_ns)))) {
		if (!stoup_border_read(cur, key_ns, ret))
			return 0;
	} else {
		*ret = look->span;
		ret->base = look->keys.base + (look->key_at - look->key_base);
		ret->ordinal = look->span.ordinal + look->idx;
	}
	found_count(cur, 1);
	return 1;
}

int stoup_asof(struct stoup_cursor *cur, int64_t key_ns, struct stoup_span *ret)
{
	int rc = cur ? glance(cur, key_ns, ret) : -1;

	return LIKELY(rc >= 0) ? rc : look_up(cur, key_ns, ret);
}

int stoup_asof_before(struct stoup_cursor *cur, int64_t key_ns, struct stoup_span *ret)
{
	/* Keys are positive: nothing lies before the least time. */
	return stoup_asof(cur, key_ns > INT64_MIN ? key_ns - 1 : key_ns, ret);
}

/* ---- many series ----------------------------------------------------------------------------- */

int64_t stoup_asof_all(
	struct stoup_cursor *const *curs, size_t cnt, int64_t key_ns, struct stoup_span *rets)
{
	int64_t found = 0, failed = 0;
	size_t left = 0;
	int rc;

	if (cnt > 0 && (!curs || !rets))
		return -EINVAL;
	for (size_t i = 0; i < cnt; i++) {
		rc = curs[i] ? glance(curs[i], key_ns, &rets[i]) : -1;
		if (rc == 1) {
			found++;
			continue;
		}
		rets[i].record_cnt = 0;
		left += rc < 0;
	}
	if (left == 0)
		return found;
	found = 0;
	for (size_t i = 0; i < cnt && left > 1; i++)
		if (rets[i].record_cnt == 0 && curs[i] && !curs[i]->merge)
			stoup_border_ask(curs[i], key_ns);
	for (size_t i = 0; i < cnt; i++) {
		if (rets[i].record_cnt == 0) {
			rc = look_up(curs[i], key_ns, &rets[i]);
			if (rc < 0 && failed == 0)
				failed = rc;
		}
		found += rets[i].record_cnt != 0;
	}
	return failed < 0 ? failed : found;
}
