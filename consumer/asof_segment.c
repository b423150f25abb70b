/* SPDX-License-Identifier: Apache-2.0 */
/* asof_segment.c - from a time to a leased segment, and to the record in it.
 *
 *      borders    [k0][k1][k2]...  first keys, copied out of the index: bisected, or the next one
 *      lease      release the one of before -> hit, else request and wait -> check its place -> keys
 *      keys       asof_search.c; marks where lookups come from nowhere
 *
 * Read-ahead: only where answers come out of segments one after the other, either way; the window grows from
 * two segments as in a scan. A look here and there loads what it needs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/asof.h"
#include "consumer/direct.h"

#define WINDOW_FIRST 2u
#define VISIT_CNT    4u         /* lookups from nowhere before a segment gets marks */
#define MARK_CAP     (4u << 20) /* marks of one cursor: 32 MiB */

/* ---- borders --------------------------------------------------------------------------------- */

static const struct stoup_catalog_segment *segment_of(
	const struct stoup_cursor *cur, struct stoup_border at)
{
	const struct stoup_part *part = &cur->parts[at.part];

	return part->vol->segments + part->series->segment_first + at.seg;
}

/* Has the segment records that the range's ordinals have? */
static int is_met(const struct stoup_lookup *look, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg)
{
	uint64_t ordinal = part->ordinal + seg->ordinal;

	return seg->record_cnt > 0 && ordinal < look->end &&
	       ordinal + seg->record_cnt > look->begin;
}

/* Count the segments that the range meets, and write them down where there is room. */
static uint64_t borders_walk(
	const struct stoup_cursor *cur, int64_t *keys, struct stoup_border *borders)
{
	const struct stoup_lookup *look = cur->lookup;
	uint64_t cnt = 0;

	for (uint32_t p = 0; p < cur->part_cnt; p++) {
		const struct stoup_part *part = &cur->parts[p];
		int64_t to_ns = look->last_ns == INT64_MAX ? 0 : look->last_ns + 1;
		uint32_t end = stoup_part_end(part, to_ns);

		for (uint32_t s = stoup_part_begin(part, look->from_ns); s < end; s++) {
			struct stoup_border at = {.part = p, .seg = s};
			const struct stoup_catalog_segment *seg = segment_of(cur, at);

			if (!is_met(look, part, seg))
				continue;
			if (keys) {
				keys[cnt] = seg->first_key;
				borders[cnt] = at;
			}
			cnt++;
		}
	}
	return cnt;
}

/* What was known of the borders goes. */
void stoup_borders_clear(struct stoup_lookup *look)
{
	for (uint32_t i = 0; look->marks && i < look->border_cnt; i++)
		free(look->marks[i]);
	free(look->border_keys);
	free(look->borders);
	free(look->checked);
	free(look->visits);
	free(look->marks);
	look->border_keys = NULL;
	look->borders = NULL;
	look->checked = look->visits = NULL;
	look->marks = NULL;
	look->border_cnt = 0;
	look->mark_cnt = 0;
	look->snap = NULL;
}

/* What the cursor's range says, in keys and ordinals. */
static void range_read(const struct stoup_cursor *cur, struct stoup_lookup *look)
{
	const struct stoup_schema *schema = cur->schema;

	look->from_ns = cur->range.from_ns;
	look->last_ns = cur->range.to_ns ? cur->range.to_ns - 1 : INT64_MAX;
	look->begin = cur->low;
	look->end = cur->high;
	look->shift = 0;
	if (schema->flags & STOUP_SCHEMA_BAR)
		look->shift =
			schema->interval_ns < INT64_MAX ? (int64_t)schema->interval_ns : INT64_MAX;
}

/* The borders of the cursor's snapshot. */
static int borders_make(struct stoup_cursor *cur)
{
	struct stoup_lookup *look = cur->lookup;
	uint64_t cnt;

	stoup_lookup_forget(look);
	look->before = STOUP_ASOF_NONE;
	stoup_borders_clear(look);
	range_read(cur, look);
	look->key_stride = cur->stride;
	look->mark_step = stoup_marks_step(cur->stride);
	cnt = borders_walk(cur, NULL, NULL);
	if (cnt >= STOUP_ASOF_NONE)
		return stoup_error_set(
			&cur->error, -EFBIG, "'%.100s' has too many segments", cur->name);
	look->border_keys = malloc((size_t)(cnt + 1) * sizeof(*look->border_keys));
	look->borders = malloc((size_t)(cnt + 1) * sizeof(*look->borders));
	look->checked = calloc((size_t)cnt + 1, 1);
	look->visits = calloc((size_t)cnt + 1, 1);
	look->marks = calloc((size_t)cnt + 1, sizeof(*look->marks));
	if (!look->border_keys || !look->borders || !look->checked || !look->visits ||
		!look->marks) {
		stoup_borders_clear(look);
		return stoup_error_set(&cur->error, -ENOMEM,
			"no memory for the borders of %llu segments of '%.100s'",
			(unsigned long long)cnt, cur->name);
	}
	look->border_cnt = (uint32_t)borders_walk(cur, look->border_keys, look->borders);
	look->snap = cur->snap;
	look->snap_seq = cur->snap->seq;
	look->session_no = cur->ses->no;
	return 0;
}

/* What the cursor's snapshot and range are now: 0, or a negative errno with text. */
int stoup_borders_check(struct stoup_cursor *cur)
{
	const struct stoup_lookup *look = cur->lookup;

	if (look->snap == cur->snap && look->snap_seq == cur->snap->seq &&
		look->session_no == cur->ses->no && look->begin == cur->low &&
		look->end == cur->high)
		return 0;
	return borders_make(cur);
}

/* The last segment that begins at or before key_ns; STOUP_ASOF_NONE where all begin later. */
uint32_t stoup_border_find(const struct stoup_lookup *look, int64_t key_ns)
{
	const int64_t *keys = look->border_keys;
	uint32_t cnt = look->border_cnt, low = 0, at = look->border;

	if (cnt == 0 || keys[0] > key_ns)
		return STOUP_ASOF_NONE;
	/* The next one, as a rule. */
	if (at < cnt - 1 && keys[at + 1] <= key_ns && (at + 2 == cnt || keys[at + 2] > key_ns))
		return at + 1;
	for (uint32_t n = cnt; n > 1;) {
		uint32_t half = n / 2;

		low += half & -(uint32_t)(keys[low + half] <= key_ns);
		n -= half;
	}
	return low;
}

/* ---- leasing --------------------------------------------------------------------------------- */

static const struct stoup_snapshot_volume *border_volume(
	const struct stoup_cursor *cur, uint32_t border)
{
	return cur->parts[cur->lookup->borders[border].part].vol;
}

static int is_absent(const struct stoup_snapshot_volume *vol, uint32_t block_idx)
{
	return atomic_load_explicit(&vol->residency[block_idx], memory_order_relaxed) == 0;
}

/* How many segments may be read ahead: as a scan's. */
static uint32_t window_cap(const struct stoup_cursor *cur, uint64_t raw_len)
{
	uint64_t len = (raw_len + STOUP_OS_PAGE_LEN - 1) & ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
	uint64_t fit = len > 0 ? cur->ses->control->ahead_bytes_cap / len : 0;

	return fit < cur->st->opt.ahead_cnt ? (uint32_t)fit : cur->st->opt.ahead_cnt;
}

/* Add the segment's block to the run: 1; 0 the run ends before it. */
static int ahead_add(const struct stoup_cursor *cur, int64_t border, struct stoup_ahead *run)
{
	const struct stoup_snapshot_volume *vol = border_volume(cur, (uint32_t)border);
	uint32_t block = segment_of(cur, cur->lookup->borders[border])->block_idx;
	int64_t off = ((int64_t)block - run->block_idx) * run->step;

	if (!is_absent(vol, block))
		return run->cnt == 0;
	if (run->cnt > 0 && (run->volume_idx != vol->catalog->volume_idx || off != run->cnt))
		return 0;
	if (run->cnt++ == 0) {
		run->volume_idx = vol->catalog->volume_idx;
		run->block_idx = block;
	}
	return run->cnt <= STOUP_AHEAD_CAP;
}

/* The run of blocks to be read ahead beyond `border`, in the direction of run->step. */
static void ahead_collect(struct stoup_cursor *cur, uint32_t border, struct stoup_ahead *run)
{
	struct stoup_lookup *look = cur->lookup;
	const struct stoup_catalog_segment *seg = segment_of(cur, look->borders[border]);
	uint32_t cap = window_cap(cur, border_volume(cur, border)->blocks[seg->block_idx].raw_len);
	int64_t lead = (look->asked - (int64_t)border) * run->step - 1;

	look->window = look->window ? look->window * 2 : WINDOW_FIRST;
	if (look->window > cap)
		look->window = cap;
	if (lead < 0) {
		look->asked = (int64_t)border + run->step;
		lead = 0;
	}
	if (lead * 2 >= look->window)
		return;
	for (; lead < look->window && run->cnt < STOUP_AHEAD_CAP; lead++) {
		if (look->asked < 0 || look->asked >= look->border_cnt ||
			!ahead_add(cur, look->asked, run))
			return;
		look->asked += run->step;
	}
}

/* 1 or -1 where `border` is a neighbour of `from`, else 0. */
static int32_t direction(uint32_t border, uint32_t from)
{
	if (from == STOUP_ASOF_NONE)
		return 0;
	return border == from + 1 ? 1 : border + 1 == from ? -1 : 0;
}

static int lease(struct stoup_cursor *cur, uint32_t border, int32_t step)
{
	struct stoup_lookup *look = cur->lookup;
	const struct stoup_snapshot_volume *vol = border_volume(cur, border);
	const struct stoup_catalog_segment *seg = segment_of(cur, look->borders[border]);
	uint32_t block = seg->block_idx;
	struct stoup_ahead run = {.step = step ? step : 1};
	int64_t asked = look->asked;
	int rc;

	stoup_grip_release(cur->ses, &look->hand, &look->grip);
	if (step == 0) {
		look->window = 0;
		look->asked = border;
	} else {
		ahead_collect(cur, border, &run);
	}
	rc = stoup_grip_hit(cur->ses, &look->hand, vol, block, &look->grip, &cur->error);
	if (rc == 0) {
		rc = stoup_grip_wait(
			cur->ses, &look->hand, vol, block, &run, &look->grip, &cur->error);
		if (rc == 0)
			stoup_grip_tell(cur->ses, &look->grip, seg->series_idx);
		return rc;
	}
	cur->hit_cnt += rc > 0;
	if (rc > 0)
		stoup_grip_tell(cur->ses, &look->grip, seg->series_idx);
	if (rc > 0 && run.cnt > 0 && !stoup_wait_ahead(cur->ses, &run))
		look->asked = asked;
	return rc;
}

/* ---- one segment ----------------------------------------------------------------------------- */

/* Where the segment's records are: 0 with *ret; -EPROTO with text. */
static int base_of(
	struct stoup_cursor *cur, const struct stoup_catalog_segment *seg, const uint8_t **ret)
{
	const struct stoup_grip *grip = &cur->lookup->grip;
	const uint8_t *base = grip->base + seg->raw_off;

	if (seg->raw_off > grip->raw_len ||
		(uint64_t)seg->record_cnt * cur->stride > grip->raw_len - seg->raw_off ||
		((uintptr_t)base & (stoup_cursor_align(cur) - 1)) != 0)
		return stoup_error_set(&cur->error, -EPROTO,
			"pool '%s': a segment at byte %u of block %u does not lie within it, or "
			"not aligned",
			cur->ses->pool, seg->raw_off, seg->block_idx);
	*ret = base;
	return 0;
}

/* The segment's bytes, leased or mapped. */
static int segment_open(
	struct stoup_cursor *cur, uint32_t border, int32_t step, const uint8_t **ret)
{
	struct stoup_lookup *look = cur->lookup;
	const struct stoup_part *part = &cur->parts[look->borders[border].part];
	const struct stoup_catalog_segment *seg = segment_of(cur, look->borders[border]);
	int rc;

	if (cur->direct) {
		if (!part->bytes)
			return stoup_error_set(&cur->error, -ESTALE,
				"'%.100s': a volume that came later is not mapped: open a new cursor",
				cur->name);
		*ret = part->bytes + part->vol->blocks[seg->block_idx].stored_off + seg->raw_off;
		if (cur->schema->stride != 0 || look->checked[border])
			return 0;
		rc = stoup_direct_look(cur, part, seg, ret);
		look->checked[border] = rc == 0;
		return rc;
	}
	rc = lease(cur, border, step);
	if (rc < 0)
		return rc;
	return base_of(cur, seg, ret);
}

/* What a span of this segment has. */
static void span_make(struct stoup_cursor *cur, const struct stoup_catalog_segment *seg,
	const uint8_t *base, uint64_t ordinal)
{
	struct stoup_lookup *look = cur->lookup;

	look->span = (struct stoup_span){
		.base = base,
		.record_cnt = 1,
		.stride = cur->stride,
		.ordinal = ordinal,
		.first_key = seg->first_key,
		.last_key = seg->last_key,
		.schema = cur->schema,
		.client = cur->st,
		.cell_use = cur->direct ? 0 : look->grip.use,
		.cell_idx = cur->direct ? STOUP_CELL_NONE : look->grip.cell_idx,
		.session_no = cur->direct ? STOUP_SESSION_NONE : cur->ses->no,
	};
}

/* Make the segment the one that lookups end in: 0, or a negative errno with text and nothing known. */
int stoup_border_enter(struct stoup_cursor *cur, uint32_t border)
{
	struct stoup_lookup *look = cur->lookup;
	const struct stoup_part *part = &cur->parts[look->borders[border].part];
	const struct stoup_catalog_segment *seg = segment_of(cur, look->borders[border]);
	uint64_t ordinal = part->ordinal + seg->ordinal, cnt = seg->record_cnt;
	int32_t step = direction(border, look->before);
	struct stoup_keys *keys = &look->keys;
	const uint8_t *base = NULL;
	int rc;

	stoup_lookup_forget(look);
	rc = segment_open(cur, border, step, &base);
	if (rc < 0)
		return rc;
	span_make(cur, seg, base, ordinal);
	if (cnt > look->end - ordinal)
		cnt = look->end - ordinal;
	*keys = (struct stoup_keys){
		.base = base,
		.cnt = cnt,
		.stride = cur->stride,
		.key_off = cur->schema->key_off,
		.messages = cur->schema->stride == 0,
		.kept = (part->series->flags & STOUP_CATALOG_KEEP_ORDER) != 0,
		.first_key = seg->first_key,
		.last_key = seg->last_key,
		.marks = look->marks[border],
		.mark_step = look->mark_step,
		.key_max = seg->last_key,
	};
	if (cnt < seg->record_cnt)
		keys->last_key =
			keys->kept ? INT64_MAX : stoup_record_key(base, cnt - 1, cur->schema);
	look->least = look->begin > ordinal ? look->begin - ordinal : 0;
	look->key_base = base + (keys->messages ? 0 : keys->key_off);
	look->border = look->before = border;
	look->hint = step > 0 ? 0 : step < 0 ? cnt - 1 : UINT64_MAX;
	look->seg_low = seg->first_key > look->from_ns ? seg->first_key : look->from_ns;
	look->seg_until = INT64_MAX;
	if (border + 1 < look->border_cnt)
		look->seg_until = look->border_keys[border + 1] - 1;
	else if (cur->range.flags & STOUP_FOLLOW)
		look->seg_until = seg->last_key - 1; /* later data may begin with that key */
	return 0;
}

/* Marks of the leased segment, when a lookup came from nowhere often enough: the walk over the segment must pay. */
static void marks_make(struct stoup_lookup *look)
{
	struct stoup_keys *keys = &look->keys;
	uint64_t cnt = stoup_marks_cnt(keys->cnt, look->mark_step);
	void *marks;

	if (++look->visits[look->border] < (keys->kept ? 1 : VISIT_CNT) ||
		look->mark_cnt + cnt > MARK_CAP)
		return;
	look->visits[look->border] = 0;
	if (posix_memalign(&marks, 64, (size_t)cnt * sizeof(int64_t)) != 0)
		return;
	stoup_marks_fill(keys, look->mark_step, marks);
	look->marks[look->border] = marks;
	look->mark_cnt += cnt;
	keys->marks = marks;
}

/* Where times go on evenly, the answer is as far from the last one as that was from the one before. */
static inline uint64_t paced(const struct stoup_lookup *look, int64_t key_ns, uint64_t hint)
{
	if (hint >= look->keys.cnt || key_ns <= look->until)
		return hint;
	return look->pace < look->keys.cnt - hint ? hint + look->pace : hint;
}

/* The leased segment has the answer, or none is in the range: 1 with *ret, or 0. */
int stoup_border_read(struct stoup_cursor *cur, int64_t key_ns, struct stoup_span *ret)
{
	struct stoup_lookup *look = cur->lookup;
	const struct stoup_keys *keys = &look->keys;
	struct stoup_spot spot = {.key = look->low};
	uint64_t hint = look->hint;

	if (look->low <= look->until)
		hint = look->idx;
	else
		spot.key = hint == 0 ? keys->first_key : INT64_MAX;
	look->hint = UINT64_MAX;
	if (!keys->marks && (hint == UINT64_MAX || (keys->kept && spot.key > key_ns)))
		marks_make(look);
	if (keys->kept)
		stoup_keys_search_kept(keys, key_ns, hint, &spot);
	else
		stoup_keys_search(keys, key_ns, paced(look, key_ns, hint), &spot);
	look->pace = hint < spot.idx ? spot.idx - hint : 0;
	look->low = INT64_MAX;
	look->until = INT64_MIN;
	look->key_at = look->key_end = NULL;
	if (spot.idx < look->least || spot.key < look->from_ns)
		return 0;
	look->idx = spot.idx;
	look->low = spot.key;
	look->until = spot.idx + 1 < keys->cnt ? stoup_time_below(spot.next_key) : look->seg_until;
	look->key_at = look->key_base + spot.idx * look->key_stride;
	look->key_end = keys->kept || keys->messages
	                        ? look->key_at
	                        : look->key_base + (keys->cnt - 1) * look->key_stride;
	*ret = look->span;
	ret->base = keys->base + spot.idx * look->key_stride;
	ret->ordinal += spot.idx;
	return 1;
}

/* Have the block of the answer loaded, without waiting for it: those of many series then come side by side. */
void stoup_border_ask(struct stoup_cursor *cur, int64_t time_ns)
{
	struct stoup_lookup *look = cur->lookup;
	struct stoup_ahead run = {.cnt = 1, .step = 1};
	const struct stoup_snapshot_volume *vol;
	uint32_t border;

	if (!look || !look->ses || look->snap != cur->snap || look->snap_seq != cur->snap->seq ||
		time_ns <= look->shift || time_ns - look->shift < look->from_ns ||
		cur->st->opt.ahead_cnt == 0)
		return;
	border = stoup_border_find(look,
		time_ns - look->shift < look->last_ns ? time_ns - look->shift : look->last_ns);
	if (border == STOUP_ASOF_NONE || border == look->border)
		return;
	vol = border_volume(cur, border);
	run.volume_idx = vol->catalog->volume_idx;
	run.block_idx = segment_of(cur, look->borders[border])->block_idx;
	if (is_absent(vol, run.block_idx))
		stoup_wait_ahead(cur->ses, &run);
}
