/* SPDX-License-Identifier: Apache-2.0 */
/* tool_load.c - see tool_load.h. */
#include "consumer/tool_load.h"

#include <errno.h>
#include <stdlib.h>

#define WINDOW_CAP 32u /* blocks ahead: more than the daemon reads at once by default */

struct run {
	struct stoup_tool_load *load;
	struct stoup_hand hand;
	size_t asked;   /* blocks before it were asked for */
	uint8_t *there; /* a bit for each block that was in the pool at the beginning */
};

static const struct stoup_snapshot_volume *volume_of(const struct stoup_tool_load *load, size_t at)
{
	return &load->set->snap->volumes[load->set->blocks[at].volume];
}

static uint64_t raw_len(const struct stoup_tool_load *load, size_t at)
{
	return volume_of(load, at)->blocks[load->set->blocks[at].block_idx].raw_len;
}

/* How many blocks like this one the share for read-ahead holds. */
static size_t window_of(const struct stoup_tool_load *load, size_t at)
{
	uint64_t fit = load->ses->control->ahead_bytes_cap / stoup_tool_block_bytes(load->set, at);

	return fit < WINDOW_CAP ? (size_t)fit : WINDOW_CAP;
}

/* The next consecutive blocks of one volume that are to be asked for ahead of `at`. */
static void collect(struct run *run, size_t at, struct stoup_ahead *ret)
{
	const struct stoup_tool_load *load = run->load;
	size_t window = window_of(load, at), end = at + 1 + window, from;

	*ret = (struct stoup_ahead){.step = 1};
	if (run->asked < at + 1)
		run->asked = at + 1;
	/* Half of the window is still to come: later, and more at once. */
	if (window == 0 || run->asked - at - 1 > window / 2)
		return;
	from = run->asked;
	for (; run->asked < load->cnt && run->asked < end && ret->cnt < STOUP_AHEAD_CAP;
		run->asked++) {
		const struct stoup_tool_block *b = &load->set->blocks[run->asked];
		const struct stoup_tool_block *first = &load->set->blocks[from];

		if (b->volume != first->volume || b->block_idx != first->block_idx + ret->cnt)
			break;
		ret->cnt++;
	}
	ret->volume_idx = volume_of(load, from < load->cnt ? from : at)->catalog->volume_idx;
	ret->block_idx = load->set->blocks[from < load->cnt ? from : at].block_idx;
}

/* 1: it was in the pool; 0: it is now; or a negative errno with text. */
static int lease(struct run *run, size_t at, struct stoup_error *err)
{
	struct stoup_session *ses = run->load->ses;
	const struct stoup_snapshot_volume *vol = volume_of(run->load, at);
	uint32_t block_idx = run->load->set->blocks[at].block_idx;
	struct stoup_grip grip = {.cell_idx = STOUP_CELL_NONE};
	size_t before = run->asked;
	struct stoup_ahead ahead;
	int rc = stoup_grip_hit(ses, &run->hand, vol, block_idx, &grip, err);

	if (rc >= 0)
		collect(run, at, &ahead);
	if (rc > 0 && ahead.cnt > 0 && !stoup_wait_ahead(ses, &ahead))
		run->asked = before;
	if (rc > 0)
		atomic_fetch_add_explicit(&ses->page->hit_cnt, 1, memory_order_relaxed);
	else if (rc == 0)
		rc = stoup_grip_wait(ses, &run->hand, vol, block_idx, &ahead, &grip, err);
	if (rc >= 0)
		stoup_grip_release(ses, &run->hand, &grip);
	return rc;
}

/* Is it this block's own fault, so that the next one may be had? */
static int of_block(int rc)
{
	return rc == -EBADMSG || rc == -EIO || rc == -EFBIG;
}

static int one(struct run *run, size_t at, struct stoup_error *err)
{
	struct stoup_tool_load *load = run->load;
	int was_there = run->there[at / 8] >> (at & 7) & 1, rc;
	uint64_t len = raw_len(load, at);

	if (was_there && load->missing_only)
		return 0;
	rc = lease(run, at, err);
	if (of_block(rc)) {
		if (load->failed_cnt++ == 0)
			load->first = *err;
		return 0;
	}
	if (rc < 0)
		return rc;
	load->resident_cnt += (size_t)was_there;
	load->resident_bytes += was_there ? len : 0;
	load->loaded_cnt += !was_there;
	load->loaded_bytes += was_there ? 0 : len;
	return 0;
}

int stoup_tool_load_run(struct stoup_tool_load *load, struct stoup_error *err)
{
	struct run run = {.load = load, .there = calloc(load->cnt / 8 + 1, 1)};
	uint64_t done = 0;
	int rc = 0;

	if (!run.there)
		return stoup_error_set(
			err, -ENOMEM, "no memory for a list of %zu blocks", load->cnt);
	for (size_t i = 0; i < load->cnt; i++)
		if (stoup_tool_block_resident(load->set, i))
			run.there[i / 8] |= (uint8_t)(1u << (i & 7));
	for (size_t i = 0; i < load->cnt && rc == 0; i++) {
		rc = stoup_session_check(load->ses, STOUP_LOOK_PULSE);
		if (rc < 0) {
			rc = stoup_session_explain(load->ses, NULL, err);
			break;
		}
		rc = one(&run, i, err);
		done += stoup_tool_block_bytes(load->set, i);
		if (load->step)
			load->step(load->arg, done);
	}
	stoup_hand_fini(load->ses, &run.hand);
	free(run.there);
	return rc;
}
