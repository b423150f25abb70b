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

#include "consumer/client.h"

/* A place in the sequence of all segments. */
struct stoup_place {
	uint32_t part, seg; /* seg counts within its part; backward, UINT32_MAX is in front of 0 */
	uint64_t pos;       /* segments before it, since the start of the scan */
};

/* A record that stood at the border of what was read: how to find it again in another snapshot. */
struct stoup_anchor {
	int valid;
	int exact;    /* `ties` is known */
	int from_end; /* `ties` counts from the last record of that key down, else from the first up */
	int64_t key;
	uint64_t ties;    /* records of that key up to it, itself included */
	uint64_t ordinal; /* in the cursor's snapshot */
	uint8_t *bytes;   /* stoup_record_copy of it; NULL: nobody will ask */
};

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
	int64_t from_ns, to_ns;      /* 0 = open */
	struct stoup_place at;       /* the next segment */
	struct stoup_place asked;    /* the first one not asked for */
	int32_t step;                /* 1 forward, -1 backward */
	/* forward: records before begin_ordinal were handed out already; backward: those from end_ordinal on */
	uint64_t begin_ordinal, end_ordinal;
	struct stoup_grip grip;
	struct stoup_hand hand;
	int active;   /* counts as a user of the session's memory */
	int resuming; /* in a new snapshot, where the anchor is not found yet */
	int failed;   /* for ever, with the error */
	int direct;   /* reads the parts' files, needs no session (direct.c) */
	int hasty;    /* a miss is -EAGAIN, and nothing is asked for (held.c) */
	int no_ahead; /* whoever has it reads ahead (merge_ahead.c) */
	struct stoup_merge
		*merge; /* it is many cursors: of all else here only st, owed and error count */
	int owed;       /* stoup_next returned owed_span, which could not be held: it comes again */
	struct stoup_span owed_span;
	/* the span that is out: its last record (backward: its first) becomes the anchor */
	const uint8_t *span_base;
	uint64_t span_cnt, span_ordinal; /* 0 records: none is out */
	struct stoup_anchor anchor;
	uint64_t next_off; /* resuming: records between the anchor and the border */
	/* what was passed last: its key, and how many records in a row have it */
	int64_t tail_key;
	uint64_t tail_ties;
	uint64_t tail_next; /* ordinal of the border; 0 = nothing was passed, or nothing follows */
	int tail_exact;
	uint64_t hit_cnt, record_cnt; /* not yet in the page */
	uint64_t look_ns;             /* last look at the clock */
	uint32_t look_in, look_every; /* calls until the next one; calls between two */
	struct stoup_error error;
};

/* ---- cursor.c -------------------------------------------------------------------------------- */

/* The first segment of a part that reaches from_ns (0: the first of all). */
uint32_t stoup_part_begin(const struct stoup_part *part, int64_t from_ns);

/* The one behind its last segment that begins before to_ns (0: behind the last of all). */
uint32_t stoup_part_end(const struct stoup_part *part, int64_t to_ns);

/* To where the scan of the cursor's parts begins, with nothing handed out yet. */
void stoup_cursor_rewind(struct stoup_cursor *cur);

/* The segment at a place, which moves over ends of parts and empty segments; NULL at the end. */
const struct stoup_catalog_segment *stoup_place_segment(
	const struct stoup_cursor *cur, struct stoup_place *place);

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

/* Records [*low, *high) of a segment at `base` are those that the range has. */
void stoup_segment_cut(const struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg, const uint8_t *base, uint64_t *low,
	uint64_t *high);

/* Remember where the span that is out ends, and give its block back. */
void stoup_cursor_let_go(struct stoup_cursor *cur);

/* A record as its schema's length, or a message as head and hash of its bytes, which may be millions: what tells
 * it from any other, in stoup_record_copy_len bytes at `dst`. */
size_t stoup_record_copy_len(const struct stoup_schema *schema);
void stoup_record_copy(
	const uint8_t *base, uint64_t idx, const struct stoup_schema *schema, uint8_t *dst);

/* Key of a record; the first of cnt records whose key is at least key_ns, and the first whose key is
 * above it. */
int64_t stoup_record_key(const uint8_t *base, uint64_t idx, const struct stoup_schema *schema);
uint64_t stoup_record_bound(
	const uint8_t *base, uint64_t cnt, const struct stoup_schema *schema, int64_t key_ns);
uint64_t stoup_record_above(
	const uint8_t *base, uint64_t cnt, const struct stoup_schema *schema, int64_t key_ns);

/* ---- resume.c -------------------------------------------------------------------------------- */

/* A span ends: remember its last record; backward, its first. */
void stoup_anchor_take(struct stoup_cursor *cur);

/* The segment `seg` at cur->at is left out. */
void stoup_anchor_skip(struct stoup_cursor *cur, const struct stoup_catalog_segment *seg);

/* The session has ended: go over to another one. 0; -EPIPE, -ESTALE, -ENOMEM with text. The cursor
 * is at rest. */
int stoup_cursor_renew(struct stoup_cursor *cur, uint64_t deadline_ns);

/* At work in the new snapshot: find the anchor, and what comes next. 0, or as stoup_next. */
int stoup_cursor_locate(struct stoup_cursor *cur);

#endif
