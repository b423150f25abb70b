/* SPDX-License-Identifier: Apache-2.0 */
/* asof.h - the inside of as-of lookups: where a cursor's last lookup stands (asof.c), and how the place of a
 * key is found: which segment (asof_segment.c), which record in it (asof_search.c).
 *
 *      borders    [k0][k1][k2][k3]...   first keys of all segments that the range meets: which segment
 *                      |                without leasing any
 *                      v
 *      segment    r r r r r r r r r     leased as long as answers come from it
 *                     ^ the answer of every time in [low, until]
 *
 *      nothing known --lookup--> segment leased, place known --time in [low, until]--> the same record
 *            ^                        |  time behind until: some steps on, gallop, guess and bisect
 *            |                        |  time in another segment: lease that one instead
 *            +--- daemon ends, close -+
 *
 * A lookup has its own lease, so that the scan of the same cursor stays where it is.
 *
 * Invariant: record idx of the leased segment is the last whose key is at most t, for each t in [low, until];
 * low > until while nothing is known. Whatever the bytes of the segment are, idx lies inside of it.
 *
 * Concurrency: as the cursor's, one thread at a time.
 *
 * Death: the lease is given up before another daemon is attached to; the next lookup begins anew there. A
 * lookup depends on nothing but its time, so that nothing has to be found again.
 */
#ifndef STOUP_CONSUMER_ASOF_H
#define STOUP_CONSUMER_ASOF_H

#include "consumer/cursor.h"

#define STOUP_ASOF_NONE UINT32_MAX

/* The records of one segment that a lookup may yield. */
struct stoup_keys {
	const uint8_t *base;      /* first record, or table of messages */
	uint64_t cnt;             /* at least 1 */
	uint32_t stride, key_off; /* from record to record; of the key in it */
	uint32_t messages;        /* 1: of a table of messages */
	uint32_t kept;            /* 1: the records kept their order, keys are running maxima */
	int64_t first_key;        /* of the index */
	int64_t last_key;         /* of record cnt - 1, where that is known; else INT64_MAX */
	const int64_t *marks;     /* NULL: none */
	uint32_t mark_step;
	int64_t key_max; /* greater values are undefined times, not keys (kept) */
};

/* Where a lookup ends: record idx, its key, and the key of the one behind it (INT64_MAX: it is the last). Of
 * records that kept their order, the greatest keys so far. */
struct stoup_spot {
	uint64_t idx;
	int64_t key, next_key;
};

struct stoup_border {
	uint32_t part, seg; /* seg counts within its part */
};

struct stoup_lookup {
	/* the place; see the invariant */
	int64_t low, until;
	const uint8_t *key_at; /* key of record idx, and of the last one that steps may reach */
	const uint8_t *key_end;
	uint64_t idx;
	int64_t shift;   /* from a key to the time when the record was available */
	int64_t last_ns; /* times behind it count as this one: the range ends there */
	uint64_t key_stride;
	uint64_t found_cnt; /* records yielded in direct mode, not yet in the handle's counters */
	struct stoup_span span; /* what a found span has, but for base and ordinal */
	const uint8_t *key_base;
	/* the segment: lookups in [seg_low, seg_until] end in it, or before the range */
	int64_t seg_low, seg_until;
	struct stoup_keys keys;
	uint64_t hint;   /* the record that the first lookup in it begins at; UINT64_MAX: none */
	uint64_t pace;   /* records from the answer before to the last one, within a segment */
	uint64_t least;  /* records of the segment before it are not of the range */
	uint32_t border; /* which one; STOUP_ASOF_NONE: none is leased */
	uint32_t before; /* the one before it, for the direction */
	/* what it was made of */
	int64_t from_ns;
	uint64_t begin, end; /* ordinals */
	struct stoup_snapshot *snap;
	uint64_t snap_seq;
	uint32_t session_no;
	uint32_t border_cnt;
	int64_t *border_keys;
	struct stoup_border *borders;
	uint8_t *checked; /* direct mode: messages of this segment were checked */
	/* the lease */
	struct stoup_session *ses; /* whose memory is used; NULL: none */
	struct stoup_grip grip;
	struct stoup_hand hand;
	uint32_t window; /* segments to be read ahead */
	int64_t asked;   /* the first one not asked for */
	/* marks of segments that were looked up here and there */
	int64_t **marks;   /* of each border; NULL: none */
	uint8_t *visits;   /* how often that would have helped */
	uint64_t mark_cnt; /* keys in all of them */
	uint32_t mark_step;
};

/* ---- asof.c ---------------------------------------------------------------------------------- */

/* Give up what the cursor's lookups hold: before its session is left. */
void stoup_lookup_drop(struct stoup_cursor *cur);

/* The same, and free it: the cursor is closed. */
void stoup_lookup_fini(struct stoup_cursor *cur);

/* ---- asof_segment.c -------------------------------------------------------------------------- */

/* The time before a key, whatever its bytes are. */
static inline int64_t stoup_time_below(int64_t key)
{
	return (int64_t)((uint64_t)key - 1);
}

/* Nothing is known; what is leased stays until it is given back. */
static inline void stoup_lookup_forget(struct stoup_lookup *look)
{
	look->low = look->seg_low = INT64_MAX;
	look->until = look->seg_until = INT64_MIN;
	look->key_at = look->key_end = NULL;
	look->border = STOUP_ASOF_NONE;
}

/* Make the borders of what the cursor's snapshot and range are now, unless they are that: 0, -ENOMEM, -EFBIG with
 * text. */
int stoup_borders_check(struct stoup_cursor *cur);

/* Free what was known of them. */
void stoup_borders_clear(struct stoup_lookup *look);

/* The last segment that begins at or before key_ns; STOUP_ASOF_NONE where all begin later. */
uint32_t stoup_border_find(const struct stoup_lookup *look, int64_t key_ns);

/* Lease that segment instead of the one of before: 0, or as stoup_next with text and nothing known. */
int stoup_border_enter(struct stoup_cursor *cur, uint32_t border);

/* The leased segment has the answer, or none is in the range: 1 with *ret, or 0. */
int stoup_border_read(struct stoup_cursor *cur, int64_t key_ns, struct stoup_span *ret);

/* Have the block of the answer loaded, without waiting for it. */
void stoup_border_ask(struct stoup_cursor *cur, int64_t time_ns);

/* ---- asof_search.c --------------------------------------------------------------------------- */

/* Records from one mark to the next, for records of `stride` bytes. */
uint32_t stoup_marks_step(uint32_t stride);

/* Keys of room that marks of so many records take, at a multiple of 64 bytes. */
uint64_t stoup_marks_cnt(uint64_t record_cnt, uint32_t step);

/* Write the marks of a segment: a walk over each step-th record; where records kept their order over all of them. */
void stoup_marks_fill(const struct stoup_keys *keys, uint32_t step, int64_t *dst);

/* The last record whose key is at most key_ns, which is at least that of the first record. From `hint` on where
 * that is a record's place; UINT64_MAX: from nowhere. */
void stoup_keys_search(
	const struct stoup_keys *keys, int64_t key_ns, uint64_t hint, struct stoup_spot *ret);

/* The same where records kept their order; at `hint` the greatest key so far is ret->key. Without marks, walks. */
void stoup_keys_search_kept(
	const struct stoup_keys *keys, int64_t key_ns, uint64_t hint, struct stoup_spot *ret);

#endif
