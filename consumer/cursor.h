/* SPDX-License-Identifier: Apache-2.0 */
/* cursor.h - the inside of a scan, shared by its steps (cursor.c) and its going on after the daemon's
 * end (resume.c).
 *
 *      at rest --stoup_next--> at work: counts as a user of its session's memory
 *         ^                        |  1: holds a span, goes on at work
 *         +---- 0, or an error ----+
 *
 *      daemon ends --> another session, parts anew --> looks for its anchor --> at work
 *                                                          \--not there--> failed: -ESTALE
 *
 *      forward    ... k k K K K | n n n ...
 *                             ^anchor: last record handed out; the third of its key in a row
 *      backward   ... p p p | K K K k k ...
 *                             ^anchor: the first record of the last span
 *
 * Both directions walk the same segments and cut them alike; `step` says which one comes next. What was
 * handed out already lies before begin_ordinal (forward) or from end_ordinal on (backward).
 *
 * Invariant: the anchor is a copy, so that it outlives the span. The border between what was passed and
 * what comes next lies next_off records from the anchor: behind it 1, in front of it 0, and more only
 * when stoup_cursor_skip left something out.
 */
#ifndef STOUP_CONSUMER_CURSOR_H
#define STOUP_CONSUMER_CURSOR_H

#include <string.h>
#include "consumer/client.h"
#include "shm/message.h"

/* A place in the sequence of all segments. */
struct stoup_place {
	uint32_t part, seg; /* seg counts within its part; backward, UINT32_MAX is in front of 0 */
	uint64_t pos;       /* segments before it, since the start of the scan */
	uint64_t left_out;  /* segments that it moved over because the filter has nothing there */
};

/* A record that stood at the border of what was read: how to find it again in another snapshot. */
struct stoup_anchor {
	int valid;
	int exact;    /* `ties` is known */
	int from_end; /* `ties` counts from the last record of that key down, else from the first up */
	int64_t key;
	uint64_t ties;    /* records of that key up to it, itself included */
	uint64_t front;   /* backward: records of that key in front of it in its segment */
	uint64_t ordinal; /* in the cursor's snapshot */
	uint8_t *bytes;   /* stoup_record_copy of it; NULL: nobody will ask */
};

/* What a scan was asked for, in keys and ordinals of its series. */
struct stoup_bounds {
	int64_t from_ns, to_ns; /* keys [from_ns, to_ns); 0 = open */
	uint64_t begin, end;    /* ordinals [begin, end); UINT64_MAX = open */
	uint64_t limit;         /* UINT64_MAX = none */
	int64_t later_ns;       /* STOUP_AVAILABLE: from a key to the time that was asked for */
	uint32_t flags;         /* STOUP_BACKWARD and so on */
	uint32_t settle;        /* STOUP_SETTLE_* */
};

/* What is to be known before the first span. */
#define STOUP_SETTLE_NONE  0u
#define STOUP_SETTLE_LIMIT 1u /* which records the limit leaves */
#define STOUP_SETTLE_BOTH  2u /* the ordinals of both ends, in `low` and `high` */

/* What is to be done before the next span: stoup_cursor_settle. */
#define STOUP_PENDING_ANCHOR 0x1u /* in a new snapshot, where the anchor is not found yet */
#define STOUP_PENDING_EDGES  0x2u /* ordinals of the range are not known yet */
#define STOUP_PENDING_FILES                                                                        \
	0x4u /* in a new snapshot, whose files are not mapped yet (direct mode) */

struct stoup_cursor {
	struct stoup *st;
	struct stoup_session *ses;
	struct stoup_snapshot *snap;
	const char *name;
	const struct stoup_schema *schema;
	uint32_t stride; /* from record to record; of messages, from table entry to table entry */
	struct stoup_part *parts;
	uint32_t part_cnt;
	uint32_t window, window_cap; /* segments to be read ahead: now, and at most; 0 = none */
	int64_t from_ns, to_ns;      /* of the range, or of the last seek within it; 0 = open */
	struct stoup_place at;       /* the next segment */
	struct stoup_place asked;    /* the first one not asked for */
	int32_t step;                /* 1 forward, -1 backward */
	struct stoup_filter *where;  /* NULL: all; of stoup_scan_where */
	uint64_t left_out;           /* segments, before the scan went over to another daemon */
	int bounded;                 /* the scan ends before the series does: stoup_cursor_edge */
	/* What is to come lies in [begin_ordinal, end_ordinal). Forward: records before begin_ordinal were handed out
	 * already, or are not of the range; backward: those from end_ordinal on. */
	uint64_t begin_ordinal, end_ordinal;
	uint64_t
		limit; /* of records, from the first one on; UINT64_MAX: none, or it is an ordinal by now */
	struct stoup_grip grip;
	struct stoup_hand hand;
	int active;       /* counts as a user of the session's memory */
	uint32_t pending; /* STOUP_PENDING_* */
	int failed;       /* for ever, with the error */
	int direct;       /* reads the parts' files, needs no session (direct.c) */
	int hasty;        /* a miss is -EAGAIN, and nothing is asked for (held.c) */
	int no_ahead;     /* whoever has it reads ahead (merge_ahead.c) */
	struct stoup_merge
		*merge; /* it is many cursors: of all else here only st, owed and error count */
	int owed;       /* stoup_next returned owed_span, which could not be held: it comes again */
	/* the span that is out: its last record (backward: its first) becomes the anchor */
	const uint8_t *span_base;
	uint64_t span_cnt, span_ordinal; /* 0 records: none is out */
	uint64_t
		span_low; /* records in front of it that lie there too: of its segment, or its run */
	struct stoup_anchor anchor;
	/* what was passed last: its key, and how many records in a row have it */
	int64_t tail_key;
	uint64_t tail_ties;
	uint64_t tail_next; /* ordinal of the border; 0 = nothing was passed, or nothing follows */
	int tail_exact;
	uint64_t hit_cnt, record_cnt; /* not yet in the page */
	uint64_t look_ns;             /* last look at the clock */
	uint32_t look_in, look_every; /* calls until the next one; calls between two */
	struct stoup_error error;
	/* What a hit does not read lies behind the text. */
	struct stoup_bounds range;
	uint64_t low,
		high; /* the range's ordinals in the cursor's snapshot, as far as they are known */
	int64_t until; /* the limit as an ordinal, end or (backward) begin, maybe below 0; where `limited` */
	int limited;
	int bare; /* STOUP_FOLLOW: at the last end nothing had been handed out since the begin, or the last seek */
	int followed; /* the snapshot is a newer one of the same daemon, or of the one after it */
	uint64_t next_off; /* resuming: records between the anchor and the border */
	struct stoup_span owed_span;
	int lookup_failed;           /* the error is a lookup's, not the scan's */
	struct stoup_lookup *lookup; /* of stoup_asof; NULL: never called */
};

/* Records of the series in the cursor's snapshot. */
static inline uint64_t stoup_cursor_total(const struct stoup_cursor *cur)
{
	const struct stoup_part *last = cur->parts + cur->part_cnt;

	return cur->part_cnt > 0 ? last[-1].ordinal + last[-1].series->record_cnt : 0;
}

/* ---- range.c --------------------------------------------------------------------------------- */

/* Can the user's range (NULL: everything) be? 0, or -EINVAL with text. */
int stoup_bounds_check(const struct stoup_range *range, struct stoup_error *err);

/* What a range that was checked says of records of `schema`. */
void stoup_bounds_make(const struct stoup_range *range, const struct stoup_schema *schema,
	struct stoup_bounds *ret);

/* The scan of cur->range begins. */
void stoup_cursor_bound(struct stoup_cursor *cur);

/* The cursor's parts are those of another snapshot: to look for the anchor, or to begin again. */
void stoup_cursor_again(struct stoup_cursor *cur);

/* The anchor was found `by` records further on (modulo 2^64): the range's ordinals move with it. */
void stoup_cursor_shift(struct stoup_cursor *cur, uint64_t by);

/* Lease the segment at `place`, in direct mode map it: 0 with its first record, until stoup_grip_release; as
 * stoup_next. cur->at is the place then. */
int stoup_cursor_look(struct stoup_cursor *cur, struct stoup_place place,
	const struct stoup_catalog_segment *seg, const uint8_t **ret);

/* The first segment with a key of at least key_ns, and the ordinal of its first record: 1, the first record with
 * such a key lies inside, behind the first one; 0, it is the first one, or there is none and the ordinal that of
 * the end. */
int stoup_cursor_key_place(const struct stoup_cursor *cur, int64_t key_ns, struct stoup_place *ret,
	uint64_t *ret_ordinal);

/* Ordinal of the first record whose key is at least key_ns, or of the end: 0, or as stoup_next. Reads a block at
 * most. */
int stoup_cursor_key_ordinal(struct stoup_cursor *cur, int64_t key_ns, uint64_t *ret);

/* Ordinals of the range's first record, and of the one behind its last; the first may be greater where there is
 * none. */
int stoup_cursor_begin_edge(struct stoup_cursor *cur, uint64_t *ret);
int stoup_cursor_end_edge(struct stoup_cursor *cur, uint64_t *ret);

/* At work: do what is pending. 0, or as stoup_next. */
int stoup_cursor_settle(struct stoup_cursor *cur);

/* from_ns, to_ns or the ordinals have changed: does the far end of the scan need a look at each segment? */
static inline void stoup_cursor_edge(struct stoup_cursor *cur)
{
	cur->bounded = cur->step > 0 ? cur->to_ns != 0 || cur->end_ordinal != UINT64_MAX
	                             : cur->from_ns != 0 || cur->begin_ordinal != 0;
}

/* The first records are [*low, *high): let nothing come after the limit that counts from them. */
void stoup_cursor_limit(struct stoup_cursor *cur, uint64_t ordinal, uint64_t *low, uint64_t *high);

/* ---- scan.c ---------------------------------------------------------------------------------- */

/* Have the cursor read the volumes' files, over the ends of daemons: 0, also where its range may do without
 * (STOUP_DIRECT_OR_POOL) and they can not be had; else as stoup_direct_open, with text. */
int stoup_cursor_files(struct stoup_cursor *cur, struct stoup_error *err);

/* ---- follow.c -------------------------------------------------------------------------------- */

/* A cursor with STOUP_FOLLOW stands at its end, at rest: 1, it went over to a newer snapshot; 0, there is none; a
 * negative errno with text. */
int stoup_follow(struct stoup_cursor *cur);

/* ---- cursor.c -------------------------------------------------------------------------------- */

/* At rest: do what is pending, over the ends of daemons, but yield nothing. 0, or as stoup_next. */
int stoup_cursor_ready(struct stoup_cursor *cur);

/* The first segment of a part that reaches from_ns (0: the first of all). */
uint32_t stoup_part_begin(const struct stoup_part *part, int64_t from_ns);

/* The one behind its last segment that begins before to_ns (0: behind the last of all). */
uint32_t stoup_part_end(const struct stoup_part *part, int64_t to_ns);

/* The first segment of a part that ends behind the record `ordinal`; segment_cnt where there is none. */
uint32_t stoup_part_holds(const struct stoup_part *part, uint64_t ordinal);

/* Segments [*begin, *end) of a part may have records of the range. */
void stoup_part_range(const struct stoup_cursor *cur, const struct stoup_part *part,
	uint32_t *begin, uint32_t *end);

/* To where the scan of the cursor's parts begins, with nothing handed out yet. */
void stoup_cursor_rewind(struct stoup_cursor *cur);

/* The segment at a place, which moves over ends of parts and empty segments; NULL at the end. */
const struct stoup_catalog_segment *stoup_place_segment(
	const struct stoup_cursor *cur, struct stoup_place *place);

/* The same whatever the range is; NULL at the end. */
static inline const struct stoup_catalog_segment *stoup_segment_at(
	const struct stoup_cursor *cur, struct stoup_place place)
{
	const struct stoup_part *part = &cur->parts[place.part];

	if (place.part >= cur->part_cnt || place.seg >= part->series->segment_cnt)
		return NULL;
	return part->vol->segments + part->series->segment_first + place.seg;
}

/* What every record of the cursor is aligned to. */
static inline uint32_t stoup_cursor_align(const struct stoup_cursor *cur)
{
	return cur->schema->stride ? cur->schema->align : STOUP_MESSAGE_STRIDE;
}

/* Lease the block of the segment at cur->at: positive, 0, or a negative errno with text. */
int stoup_segment_lease(struct stoup_cursor *cur, const struct stoup_catalog_segment *seg);

/* Where the leased segment's records are: 0, or -EPROTO with text. */
int stoup_segment_base(
	struct stoup_cursor *cur, const struct stoup_catalog_segment *seg, const uint8_t **ret);

/* The first record of a segment at `base` whose key is at least key_ns; record_cnt where there is none. Of a
 * series that kept its order: whose greatest key so far is. */
uint64_t stoup_segment_bound(const struct stoup_part *part, const uint8_t *base,
	const struct stoup_catalog_segment *seg, const struct stoup_schema *schema, int64_t key_ns);

/* Records [*low, *high) of a segment at `base` are those whose keys the range has. */
void stoup_segment_cut(const struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg, const uint8_t *base, uint64_t *low,
	uint64_t *high);

/* Of records [*low, *high) behind `ordinal`: those that are still to come. */
static inline void stoup_cursor_clip(
	const struct stoup_cursor *cur, uint64_t ordinal, uint64_t *low, uint64_t *high)
{
	if (ordinal + *low < cur->begin_ordinal)
		*low = cur->begin_ordinal - ordinal;
	if (ordinal + *high > cur->end_ordinal)
		*high = cur->end_ordinal > ordinal ? cur->end_ordinal - ordinal : 0;
}

/* Records [*low, *high), at least one, are handed out: those beyond the limit are cut away. */
static inline void stoup_cursor_count(
	struct stoup_cursor *cur, uint64_t ordinal, uint64_t *low, uint64_t *high)
{
	if (cur->limit != UINT64_MAX)
		stoup_cursor_limit(cur, ordinal, low, high);
}

/* Remember where the span that is out ends, and give its block back. */
void stoup_cursor_let_go(struct stoup_cursor *cur);

/* Look for the daemon as each call does: 0, or -EPIPE. */
int stoup_cursor_pulse(struct stoup_cursor *cur);

/* Bring the counters into the page. */
void stoup_cursor_flush(struct stoup_cursor *cur);

/* A record as its schema's length, or a message as head and hash of its bytes, which may be millions: what tells
 * it from any other, in stoup_record_copy_len bytes at `dst`. */
size_t stoup_record_copy_len(const struct stoup_schema *schema);
void stoup_record_copy(
	const uint8_t *base, uint64_t idx, const struct stoup_schema *schema, uint8_t *dst);

/* Key of a record; the first of cnt records whose key is at least key_ns, and the first whose key is
 * above it. */
static inline int64_t stoup_record_key(
	const uint8_t *base, uint64_t idx, const struct stoup_schema *schema)
{
	int64_t key;

	if (schema->stride == 0)
		return stoup_message_head_of(base + idx * STOUP_MESSAGE_STRIDE)->key;
	memcpy(&key, base + idx * schema->stride + schema->key_off, sizeof(key));
	return key;
}
uint64_t stoup_record_bound(
	const uint8_t *base, uint64_t cnt, const struct stoup_schema *schema, int64_t key_ns);
uint64_t stoup_record_above(
	const uint8_t *base, uint64_t cnt, const struct stoup_schema *schema, int64_t key_ns);

/* ---- where.c --------------------------------------------------------------------------------- */

/* Does the filter of the cursor, which has one, have nothing in that segment? */
int stoup_where_excludes(const struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg);

/* ---- resume.c -------------------------------------------------------------------------------- */

/* A span ends: remember its last record; backward, its first. */
void stoup_anchor_take(struct stoup_cursor *cur);

/* The segment `seg` at cur->at is left out. */
void stoup_anchor_skip(struct stoup_cursor *cur, const struct stoup_catalog_segment *seg);

/* The session has ended: go over to another one. 0; -EPIPE, -ESTALE, -ENOMEM with text. The cursor
 * is at rest. */
int stoup_cursor_renew(struct stoup_cursor *cur, uint64_t deadline_ns);

/* Go over to a snapshot, whose references become the cursor's. 0; -ESTALE, -ENOMEM with text. At rest. */
int stoup_cursor_move(struct stoup_cursor *cur, struct stoup_snapshot *snap);

/* At work in the new snapshot: find the anchor, and what comes next. 0, or as stoup_next. */
int stoup_cursor_locate(struct stoup_cursor *cur);

#endif
