/* SPDX-License-Identifier: Apache-2.0 */
/* merge.h - the inside of a merge: cursors of many series, and whose record comes next.
 *
 *      lane 0   cursor --span-->  [. . . . | p p p p]      p: to come; the first of them is the lane's head
 *      lane 1   cursor --span-->  [| p p p p p p p p]
 *      lane n   cursor, over
 *                       heads {place in time, rank} --> loser tree --> lane whose run comes next
 *
 *      run: the records of that lane that come before the head of the lane that is next best
 *
 * The place of a record in time is its key; of a bar, its close; of a series that kept its order, the greatest key
 * so far. Backward, places are complemented and ranks reversed, so that one code finds both orders, and one is the
 * other's reverse.
 *
 * Invariant: every lane but the winner's holds at most the block that its head lies in. The winner's block stays
 * until the next call, since the run that was handed out lies in it: only then the lane steps.
 *
 * Concurrency: one thread at a time, as a cursor. What a death leaves is what cursors leave.
 */
#ifndef STOUP_CONSUMER_MERGE_H
#define STOUP_CONSUMER_MERGE_H

#include <string.h>
#include "consumer/cursor.h"
#include "shm/message.h"

/* ---- lane.c ---------------------------------------------------------------------------------- */

/* The span of one series, and the places of its records. */
struct stoup_lane {
	struct stoup_cursor *cur;
	struct stoup_range range; /* that the cursor scans */
	struct stoup_span span;   /* of the cursor */
	uint64_t low, high;       /* records [low, high) of it are to come */
	uint64_t from,
		to; /* of them, those in the piece whose places are known: all, or one segment's */
	const uint8_t *keys; /* of record key_first; NULL: messages */
	uint64_t key_first, key_stride;
	int64_t *kept; /* places of a segment that kept its order */
	uint64_t kept_cap;
	int64_t add; /* from key to place */
	int64_t last; /* place of the record of the piece that comes last, as stoup_lane_place has it */
	int32_t step; /* 1 forward, -1 backward */
	/* read-ahead (merge_ahead.c): the first segment that was not asked for, and how many were */
	struct stoup_place ahead;
	struct stoup_session *ahead_session;
	uint64_t ahead_cnt;
	int64_t ahead_due; /* place of the record in front of it */
	int ahead_over;
};

/* How far the place of a record of `schema` lies behind its key: bars count from their close. */
int64_t stoup_lane_add(const struct stoup_schema *schema, int at_open);

static inline int64_t stoup_lane_later(int64_t key, int64_t add)
{
	int64_t at;

	return __builtin_add_overflow(key, add, &at) ? INT64_MAX : at;
}

/* Take a span, all of whose records are to come, and the places of its first piece. 0, -ENOMEM. */
int stoup_lane_load(struct stoup_lane *lane, const struct stoup_span *span);

/* The piece is over, the span is not: the next one's places. 0, -ENOMEM. */
int stoup_lane_piece(struct stoup_lane *lane);

void stoup_lane_fini(struct stoup_lane *lane);

/* No later than the place of the first record of a span that `cur` has just yielded, and no earlier than the greatest key
 * in front of it in its series. Not of messages. */
int64_t stoup_span_place(const struct stoup_cursor *cur, const struct stoup_span *span);

/* Records of the piece that are to come. */
static inline uint64_t stoup_lane_left(const struct stoup_lane *lane)
{
	return lane->to - lane->from;
}

/* The place of record i of the span, which is in the piece. */
static inline int64_t stoup_lane_at(const struct stoup_lane *lane, uint64_t i)
{
	int64_t key;

	if (lane->keys)
		memcpy(&key, lane->keys + (i - lane->key_first) * lane->key_stride, sizeof(key));
	else
		key = stoup_message_head_of(
			(const uint8_t *)lane->span.base + i * STOUP_MESSAGE_STRIDE)
		              ->key;
	return stoup_lane_later(key, lane->add);
}

/* The j-th of the records to come, as it is compared: never less than the one before. */
static inline int64_t stoup_lane_place(const struct stoup_lane *lane, uint64_t j)
{
	return lane->step > 0 ? stoup_lane_at(lane, lane->from + j)
	                      : ~stoup_lane_at(lane, lane->to - 1 - j);
}

/* How many of the records to come in the piece have a place of at most `bound`, found by galloping; the first one
 * is known to. */
uint64_t stoup_lane_run(const struct stoup_lane *lane, int64_t bound);

/* The next `cnt` records of the piece as a span, which are passed. */
void stoup_lane_cut(struct stoup_lane *lane, uint64_t cnt, struct stoup_span *ret);

/* ---- merge.c --------------------------------------------------------------------------------- */

struct stoup_head {
	int64_t place;
	uint64_t rank; /* among equal places; beyond all others when the lane is over */
};

struct stoup_merge {
	struct stoup *st;
	struct stoup_lane *lanes;
	struct stoup_head *heads;
	uint32_t *losers;    /* [0]: the winner; [1, cnt): who lost there */
	uint32_t cnt, begun; /* lanes; of those, how many have had their first span */
	uint32_t source;     /* of the run that is out */
	uint32_t failed;     /* lane whose cursor failed in the last call */
	int32_t step;
	int stale;            /* the winner's run was handed out: its head is not its next record */
	int over;             /* nothing comes any more, and nothing is held */
	int opened;           /* the run that is out is the first of its span */
	uint64_t limit, left; /* records to be handed out at most, and still; UINT64_MAX: all */
	struct stoup_promise promise;
	int promised;
	uint64_t block_bytes_max; /* longest block that it reads, whole pages */
	uint32_t ahead_cap, ahead_cnt;
};

int stoup_merge_next(struct stoup_cursor *cur, struct stoup_span *ret);

/* The place of the first record of the run that is out. */
int64_t stoup_merge_place(const struct stoup_cursor *cur, const struct stoup_span *run);
int64_t stoup_merge_skip(struct stoup_cursor *cur);
void stoup_merge_close(struct stoup_cursor *cur);

/* As stoup_seek, for a cursor that is this process's own. */
int stoup_merge_seek(struct stoup_cursor *cur, int64_t key_ns);

/* The session of its series. */
struct stoup_session *stoup_merge_session(const struct stoup_cursor *cur);

/* Bytes that the run which is out adds to what its holder keeps: of its block, once. */
uint64_t stoup_merge_span_bytes(const struct stoup_cursor *cur, const struct stoup_span *span);

/* ---- merge_need.c ---------------------------------------------------------------------------- */

/* What the lanes hold at once is found in the index, compared with the pool, and kept: 0; -EDQUOT, -EMFILE, -ENOBUFS,
 * -EFBIG, -ENOMEM with text. */
int stoup_merge_reserve(struct stoup_merge *merge, struct stoup_error *err);

/* ---- merge_ahead.c --------------------------------------------------------------------------- */

/* Lane `idx` has a new span: ask for the blocks that will be wanted next, whichever series they are of. */
void stoup_merge_ahead(struct stoup_merge *merge, uint32_t idx);

#endif
