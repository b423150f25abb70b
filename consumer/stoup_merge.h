/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_merge.h - many series in one order of time. Included by stoup.h.
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
 * and is kept by stoup_hold. stoup_next, stoup_next_held, stoup_cursor_error, stoup_cursor_skip and
 * stoup_cursor_close are as of stoup_scan, restarts of the daemon included.
 *
 * The order: by key; equal keys in the order of `series`; of one series in its own order. A bar stands at its close,
 * key + interval_ns, when it was known, and `range` is compared with that as well; with STOUP_AT_OPEN at its key. A
 * record of a series that kept its order (STOUP_SERIES_KEEP_ORDER) stands at the greatest key so far. The order
 * depends on the store alone, so that each run of a program sees the same one, cut alike or not. Backward it is
 * exactly the reverse.
 *
 * `range` (NULL: everything, forward) is that of each series; range.limit counts records of all of them together. One
 * series may be given several times.
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

#ifdef __cplusplus
}
#endif

#endif
