/* SPDX-License-Identifier: Apache-2.0 */
/* store_choose.c - which of a directory's files make up the store.
 *
 * Batches are judged from the newest to the oldest, because only a newer volume can supersede an
 * older one: when a batch is judged, everything that could supersede its members is known. A batch
 * that is not complete supersedes nothing, so that a crash between two renames leaves the old
 * contents.
 *
 * An incomplete batch is no fault while its ingest may still be at work, or where a temporary file
 * proves that it was cut short: the next ingest sweeps it away.
 */
#include "producer/store_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_LEN        16u
#define ID_PREFIX_LEN 14u /* the last two bytes are batch_idx */

/* ---- a sorted set of ids --------------------------------------------------------------------- */

struct id_set {
	uint8_t (*ids)[ID_LEN];
	size_t cnt, cap;
};

static size_t set_place(const struct id_set *set, const uint8_t id[ID_LEN])
{
	size_t lo = 0, hi = set->cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (memcmp(set->ids[mid], id, ID_LEN) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int set_has(const struct id_set *set, const uint8_t id[ID_LEN])
{
	size_t at = set_place(set, id);

	return at < set->cnt && memcmp(set->ids[at], id, ID_LEN) == 0;
}

static int set_add(struct id_set *set, const uint8_t id[ID_LEN])
{
	size_t at = set_place(set, id);

	if (at < set->cnt && memcmp(set->ids[at], id, ID_LEN) == 0)
		return 0;
	if (set->cnt == set->cap) {
		size_t cap = set->cap ? set->cap * 2 : 64;
		void *ids = realloc(set->ids, cap * ID_LEN);

		if (!ids)
			return -ENOMEM;
		set->ids = ids;
		set->cap = cap;
	}
	memmove(set->ids[at + 1], set->ids[at], (set->cnt - at) * ID_LEN);
	memcpy(set->ids[at], id, ID_LEN);
	set->cnt++;
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int u64_cmp(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By (ingest_seq, batch, batch_idx, name); what could not be identified comes last. */
static int candidate_cmp(const void *pa, const void *pb)
{
	const struct stoup_store_candidate *a = pa, *b = pb;
	int cmp = b->identified - a->identified;

	if (cmp == 0 && a->identified) {
		cmp = u64_cmp(a->header.ingest_seq, b->header.ingest_seq);
		if (cmp == 0)
			cmp = u64_cmp(a->header.batch_idx, b->header.batch_idx);
		if (cmp == 0)
			cmp = memcmp(a->header.id, b->header.id, ID_LEN);
	}
	return cmp ? cmp : strcmp(a->name, b->name);
}

int stoup_store_same_batch(const struct stoup_vol_header *a, const struct stoup_vol_header *b)
{
	return a->ingest_seq == b->ingest_seq && memcmp(a->id, b->id, ID_PREFIX_LEN) == 0;
}

/* ---- judging --------------------------------------------------------------------------------- */

/* A damaged file counts as a present member of its batch: from its name only four bytes of the id
 * are known, the rest is zero. */
static int is_member(const struct stoup_store_candidate *candidate,
	const struct stoup_vol_header *header, uint32_t batch_idx)
{
	if (!candidate->identified || candidate->header.batch_idx != batch_idx)
		return 0;
	if (candidate->volume)
		return stoup_store_same_batch(&candidate->header, header);
	return candidate->header.ingest_seq == header->ingest_seq &&
	       memcmp(candidate->header.id, header->id, 4) == 0;
}

/* How many members of the batch of `header` are present or superseded. group: the candidates of its
 * ingest_seq. */
static uint32_t members_cnt(const struct stoup_store_candidate *group, size_t group_cnt,
	const struct stoup_vol_header *header, const struct id_set *superseded)
{
	uint32_t found = 0, idx;
	uint8_t id[ID_LEN];
	size_t i;

	memcpy(id, header->id, ID_LEN);
	for (idx = 0; idx < header->batch_cnt; idx++) {
		id[14] = (uint8_t)idx;
		id[15] = (uint8_t)(idx >> 8);
		for (i = 0; i < group_cnt && !is_member(&group[i], header, idx); i++)
			;
		found += i < group_cnt || set_has(superseded, id);
	}
	return found;
}

static void leave_out(struct stoup_store_candidate *candidate, int code, const char *what)
{
	candidate->fate = STOUP_STORE_FAULTY;
	candidate->fault = (struct stoup_vol_fault){.code = code};
	snprintf(candidate->fault.what, sizeof(candidate->fault.what), "%s", what);
}

/* Is the batch of `header` being published, or was that cut short? Only the newest ingest can be at
 * work; a temporary file has the id in its name. */
static int is_unfinished(
	const struct stoup_store_traces *traces, const struct stoup_vol_header *header, int newest)
{
	size_t prefix = sizeof(STOUP_STORE_TEMP_PREFIX) - 1 + (size_t)2 * ID_PREFIX_LEN, i;
	char name[STOUP_STORE_NAME_CAP];

	if (newest && traces->locked)
		return 1;
	stoup_store_temp_name(header, name);
	for (i = 0; i < traces->temps.cnt; i++) {
		if (strncmp(traces->temps.names[i], name, prefix) == 0)
			return 1;
	}
	return 0;
}

/* A volume of an incomplete batch. */
static void leave_out_incomplete(struct stoup_store_candidate *candidate, uint32_t found,
	const struct stoup_store_traces *traces, int newest)
{
	char what[sizeof(candidate->fault.what)];

	if (is_unfinished(traces, &candidate->header, newest)) {
		candidate->fate = STOUP_STORE_UNFINISHED;
		return;
	}
	snprintf(what, sizeof(what),
		"left out: its ingest wrote %" PRIu32 " volumes, of which %" PRIu32
		" are here; bring the others or remove it",
		candidate->header.batch_cnt, found);
	leave_out(candidate, -ENODATA, what);
}

/* group: the candidates of one ingest_seq; newest: no later ingest is there. */
static void judge_volume(struct stoup_store_candidate *group, size_t group_cnt, size_t at,
	const struct id_set *superseded, const struct stoup_store_traces *traces, int newest)
{
	struct stoup_store_candidate *self = &group[at];
	char what[sizeof(self->fault.what)];
	uint32_t found;

	if (set_has(superseded, self->header.id)) {
		self->fate = STOUP_STORE_STALE;
		return;
	}
	if (at > 0 && group[at - 1].volume &&
		memcmp(group[at - 1].header.id, self->header.id, ID_LEN) == 0) {
		snprintf(what, sizeof(what),
			"left out: the same volume as %.60s; remove one of them",
			group[at - 1].name);
		leave_out(self, -EEXIST, what);
		return;
	}
	if (self->header.batch_cnt <= 1)
		return;
	found = self->header.batch_cnt > STOUP_STORE_BATCH_CAP
	                ? 0
	                : members_cnt(group, group_cnt, &self->header, superseded);
	if (found < self->header.batch_cnt)
		leave_out_incomplete(self, found, traces, newest);
}

static int add_superseded(const struct stoup_store_candidate *candidate, struct id_set *superseded)
{
	const struct stoup_vol_index *index;
	uint32_t i;
	int rc = 0;

	if (!candidate->volume || candidate->fate != STOUP_STORE_SERVED)
		return 0;
	index = candidate->volume->index;
	for (i = 0; i < index->superseded_cnt && rc == 0; i++)
		rc = set_add(superseded, index->superseded[i]);
	return rc;
}

int stoup_store_choose(struct stoup_store_candidate *candidates, size_t cnt,
	const struct stoup_store_traces *traces)
{
	struct id_set superseded = {0};
	size_t end, first, i;
	int newest = 1;
	int rc = 0;

	if (cnt > 0)
		qsort(candidates, cnt, sizeof(*candidates), candidate_cmp);
	for (i = 0; i < cnt; i++)
		candidates[i].fate = candidates[i].volume ? STOUP_STORE_SERVED : STOUP_STORE_FAULTY;
	for (end = cnt; end > 0 && rc == 0; end = first) {
		first = end - 1;
		if (!candidates[first].identified)
			continue;
		while (first > 0 && candidates[first - 1].identified &&
			candidates[first - 1].header.ingest_seq ==
				candidates[end - 1].header.ingest_seq)
			first--;
		for (i = first; i < end; i++) {
			if (candidates[i].volume)
				judge_volume(&candidates[first], end - first, i - first,
					&superseded, traces, newest);
		}
		newest = 0;
		for (i = first; i < end && rc == 0; i++)
			rc = add_superseded(&candidates[i], &superseded);
	}
	free(superseded.ids);
	return rc < 0 ? rc : stoup_store_refuse_overlaps(candidates, cnt);
}
