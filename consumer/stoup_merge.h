/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_merge.h - many series in one order of time, and their replay by the clock. Included by stoup.h.
 *
 *      const struct stoup_series both[] = {trades, quotes};
 *      struct stoup_cursor *cur;
 *      struct stoup_span run;
 *
 *      if (stoup_merge(st, both, 2, NULL, &cur, &err) < 0)
 *              die(err.text);
 *      while ((rc = stoup_next(cur, &run)) > 0)
 *              if (stoup_cursor_source(cur) == 0)
 *                      for (uint64_t i = 0; i < run.record_cnt; i++)
 *                              on_trade((const struct stoup_trades *)run.base + i);
 *              else ...
 *
 * Symbols and layouts are stable as those of stoup.h.
 */
#ifndef STOUP_MERGE_H
#define STOUP_MERGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STOUP_MERGE_CAP 65536u /* series of one merge */

/* Flag of a range, of stoup_merge alone: bars stand at their open. */
#define STOUP_AT_OPEN 0x8000u

/* The records of `cnt` series, of equal or different schemas, in one order of time: an ordinary cursor, whose spans
 * are runs. A run is records of one series (stoup_cursor_source says which) up to where another series has an earlier
 * one, at most those of one segment; it is a span like any other, in place, valid until the next call on the cursor,
 * and is kept by stoup_hold. stoup_next, stoup_next_held, stoup_seek, stoup_cursor_error,
 * stoup_cursor_skip and stoup_cursor_close are as of stoup_scan, restarts of the daemon included.
 *
 * The order: by key; equal keys in the order of `series`; of one series in its own order. A bar stands at its close,
 * key + interval_ns, when it was known, and `range` is compared with that as well; with STOUP_AT_OPEN at its key. A
 * record of a series that kept its order (STOUP_SERIES_KEEP_ORDER) stands at the greatest key so far. The order
 * depends on the store alone, so that each run of a program sees the same one, cut alike or not. Backward it is
 * exactly the reverse. No series goes beyond the times that it has when the merge is made, whatever a daemon that comes
 * later serves.
 *
 * `range` (NULL: everything, forward) is that of each series; range.limit counts records of all of them together;
 * STOUP_LAST and STOUP_FOLLOW are not taken. One series may be given several times.
 *
 * Memory: one leased block per series, at most, and read-ahead of options.ahead_cnt blocks in all, asked for in the
 * order in which they will be wanted; 8 bytes per record of one segment for each series that kept its order, and
 * under 2 KiB per series. The room for the leases is kept when the merge is made, until it is closed:
 * -EDQUOT   the blocks are more than this process may lease (stoupd --lease-bytes)
 * -ENOBUFS  the pool is too small for them to fit whatever lies in it (stoupd --size)
 * -EFBIG    a block is longer than the pool serves
 * -EMFILE   there are not as many lease cells (stoupd --cells)
 * each at once, with the numbers and what mends it. Blocks that several of the series lie in count once. What other
 * processes hold is not looked at: their shares may add up to more than the pool, and then stoup_next is -ENOBUFS.
 * After a restart it is the new daemon's pool that must have the room; stoup_next says so otherwise.
 *
 * Other errors as stoup_scan; -EINVAL also for no series or more than STOUP_MERGE_CAP; -EBUSY where another thread
 * calls stoup_refresh all the time. Waits as stoup_scan does. Thread-safe. The cursor is one of stoup_use_cnt. */
STOUP_API int stoup_merge(struct stoup *st, const struct stoup_series *series, size_t cnt,
	const struct stoup_range *range, struct stoup_cursor **ret, struct stoup_error *err);

/* Which of the series that were given to stoup_merge the last span is of: its index. 0 for any other cursor. */
STOUP_API uint32_t stoup_cursor_source(const struct stoup_cursor *cur);

/* ---- replay ---------------------------------------------------------------------------------------
 *
 * The records of a cursor as the clock makes them due, for paper trading and for demonstrations:
 *
 *      struct stoup_replay_options opt = {.struct_len = sizeof(opt), .speed = 10};
 *      struct stoup_replay *replay;
 *
 *      if (stoup_replay_open(cur, &opt, &replay, &err) < 0)
 *              die(err.text);
 *      while ((rc = stoup_replay_next(replay, STOUP_REPLAY_WAIT, &span)) == 1)
 *              on_records(stoup_cursor_source(cur), &span);
 *      stoup_replay_close(replay);
 *      stoup_cursor_close(cur);
 *
 * A record is due at the place that it has in a merge: its key, a bar at its close, one of a series that kept its order
 * at the greatest key so far. It is never handed out early; how late they were is measured. The clock is
 * CLOCK_MONOTONIC, which nobody sets, and which stands while the machine sleeps. */
struct stoup_replay;

#define STOUP_REPLAY_PAUSED 0x1u /* flag: begin paused */

struct stoup_replay_options {
	size_t struct_len; /* sizeof(struct stoup_replay_options); all other fields: 0 = the default */
	double speed; /* seconds of the data to one of the clock, 0.001 to 1e9, or INFINITY: as fast as can be, nothing
	                      is measured; 0 = 1 */
	int64_t start_ns; /* time of the data at the begin; records before it come at once, as history, and are not
	                      measured; 0 = that of the first record */
	uint64_t
		begin_ns; /* CLOCK_MONOTONIC of the begin, the same in several processes, say; 0 = the first call of
	                      stoup_replay_next */
	uint64_t
		max_gap_ns; /* nights and weekends: where the data has nothing for longer, only so long passes; 0 = all */
	uint32_t flags; /* STOUP_REPLAY_PAUSED, or 0 */
	uint32_t zero;
};

/* Begin to replay a forward cursor, of a scan or a merge, which stays the caller's, is not used for anything else but
 * stoup_cursor_source, stoup_cursor_error, stoup_cursor_skip and stoup_hold of its spans, and is closed after the replay.
 * `opt` NULL: the defaults. 0; -EINVAL with text: no cursor, a backward one, an option out of its range; -ENOMEM;
 * -EMFILE no descriptor; -ECHILD. Needs no block. */
STOUP_API int stoup_replay_open(struct stoup_cursor *cur, const struct stoup_replay_options *opt,
	struct stoup_replay **ret, struct stoup_error *err);

#define STOUP_REPLAY_WAIT  0xffffffffffffffffu /* as long as it takes */
#define STOUP_REPLAY_LATER 2                   /* nothing is due yet */

/* Records that are due: 1 with a span, all that are due of it together, valid until the next call; 0 at the end; else
 * STOUP_REPLAY_LATER when nothing became due within timeout_ns (0: do not wait, STOUP_REPLAY_WAIT: for ever; also
 * while it is paused). -EINTR: a signal came while it waited, call again or end. Other negative errnos are those of
 * stoup_next, with the text in stoup_cursor_error: after stoup_cursor_skip, say, call again. The next block is read
 * before its records are due, as soon as the one before has been handed out; that may wait as stoup_next does, whatever
 * timeout_ns is. One thread at a time, as the cursor. */
STOUP_API int stoup_replay_next(
	struct stoup_replay *replay, uint64_t timeout_ns, struct stoup_span *ret);

/* A descriptor for poll and epoll: readable when records are due, after stoup_replay_next said STOUP_REPLAY_LATER.
 * Stays the replay's; nothing is to be read from it. Thread-safe. */
STOUP_API int stoup_replay_fd(const struct stoup_replay *replay);

/* Stop the time of the data, and let it go on; another speed (as of the options) from now on. Also while another thread
 * waits in stoup_replay_next or for the descriptor. 0; -EINVAL. Thread-safe. */
STOUP_API int stoup_replay_pause(struct stoup_replay *replay);
STOUP_API int stoup_replay_resume(struct stoup_replay *replay);
STOUP_API int stoup_replay_speed(struct stoup_replay *replay, double speed);

/* How it goes. Lateness is that of each record, from the time when it was due to the call that handed it out; after a pause
 * or a change of speed at the earliest from then on. */
struct stoup_replay_state {
	size_t struct_len;                              /* in: sizeof(struct stoup_replay_state) */
	uint64_t record_cnt, span_cnt;                  /* handed out */
	uint64_t late_cnt;                              /* records that were measured */
	uint64_t late_max_ns, late_p50_ns, late_p99_ns; /* percentiles: up to 6.25 % too high */
	int64_t data_ns; /* time of the data now; 0 before the begin. With INFINITY that of the last record */
	uint64_t skipped_ns; /* of the data, left out by max_gap_ns so far */
	uint64_t due_ns; /* CLOCK_MONOTONIC when the next record is due; 0: not known, or paused */
	uint32_t paused, zero;
};

/* Filled as far as ret->struct_len goes. 0; -EINVAL. Thread-safe. */
STOUP_API int stoup_replay_stats(struct stoup_replay *replay, struct stoup_replay_state *ret);

/* End; the cursor stays. NULL is allowed. */
STOUP_API void stoup_replay_close(struct stoup_replay *replay);

#ifdef __cplusplus
}
#endif

#endif
