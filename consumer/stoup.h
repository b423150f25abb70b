/* SPDX-License-Identifier: Apache-2.0 */
/* stoup.h - read market data that one daemon decoded once, in place, from any number of processes.
 *
 * A pool holds decoded blocks of records in shared memory. A consumer attaches, finds a series, and
 * scans it: each call of stoup_next yields a span, a pointer to consecutive records inside the pool.
 * Nothing is copied or parsed. The bytes of a span stay while its lease is held, whatever else happens:
 * other consumers, eviction, even the death of the daemon.
 *
 *      struct stoup *st;
 *      struct stoup_cursor *cur;
 *      struct stoup_series series;
 *      struct stoup_error err;
 *      struct stoup_span span;
 *      __int128 sum = 0;              // 64 bits overflow soon
 *      int rc;
 *
 *      if (stoup_attach("prices", NULL, &st, &err) < 0)          // or "path/to/store/"
 *              die(err.text);                                    // yours: print it and exit(1)
 *      if (stoup_series_find(st, "GLBX.MDP3/ESH4/mbo", &series, &err) < 0 ||
 *          stoup_schema_require(&series, "mbo", sizeof(struct stoup_mbo), &err) < 0 ||
 *          stoup_scan(st, &series, NULL, &cur, &err) < 0)
 *              die(err.text);
 *      while ((rc = stoup_next(cur, &span)) > 0) {
 *              const struct stoup_mbo *mbo = span.base;
 *              for (uint64_t i = 0; i < span.record_cnt; i++)
 *                      if (mbo[i].price != INT64_MAX)             // undefined
 *                              sum += (__int128)mbo[i].price * mbo[i].size;
 *      }
 *      if (rc < 0)                    // no sum. The cursor stays: after -ETIMEDOUT call stoup_next again
 *              die(stoup_cursor_error(cur)->text);
 *      stoup_cursor_close(cur);       // releases what the cursor holds
 *      stoup_detach(st);
 *
 * Errors: functions return 0 or a positive count, or a negative errno; outputs are written last and
 * untouched on failure. `err` may be NULL. The library never prints, exits or installs signal handlers.
 *
 * Threads: a `struct stoup` may be used by all threads. A cursor, a span and a lease belong to one
 * thread at a time.
 *
 * Restart: when the daemon dies or is stopped, what is held stays readable, and the next call that needs
 * a block attaches to the daemon that comes after it and goes on at the same record: nothing is lost,
 * nothing comes twice. Only when none comes within options.reconnect_ns it fails with -EPIPE.
 *
 * Caveats first: a span is valid until the next call on its cursor (stoup_hold keeps it longer). The
 * memory is read-only: writing to it faults, in the writer alone. After fork() the child must attach
 * anew, unless the parent prepared the fork (stoup_fork_prepare). A consumer that holds leases and does
 * nothing keeps its buffers from being reused.
 *
 * Symbols and layouts here are stable within SOVERSION; structures given by the caller carry their
 * length where they may grow.
 */
#ifndef STOUP_H
#define STOUP_H

#include <stddef.h>
#include <stdint.h>
#if __has_include("stoup_types.h")
#include "stoup_types.h"
#include "stoup_records.h"
#else
#include "shm/stoup_types.h"
#include "shm/stoup_records.h"
#endif

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"         /* stoup_stats is a struct and a function */
#pragma GCC diagnostic ignored "-Wold-style-cast" /* in what C inlines */
#endif

#define STOUP_API __attribute__((visibility("default")))

struct stoup;        /* one attachment of this process to one pool */
struct stoup_cursor; /* a position in a scan */

/* How stoup_next waits for a block that is not in the pool. */
#define STOUP_WAIT_SLEEP 0u /* spin for spin_ns, then sleep; the default */
#define STOUP_WAIT_SPIN  1u /* spin only: for isolated cores */
#define STOUP_WAIT_BLOCK 2u /* sleep at once: for more processes than cores */

#define STOUP_NO_RECONNECT 0x1u /* flag: -EPIPE at once when the daemon ends */
#define STOUP_POPULATE     0x2u /* flag: map all of the pool while attaching, so that no read faults */

struct stoup_options {
	size_t struct_len;   /* sizeof(struct stoup_options); all other fields: 0 = the default */
	uint32_t wait;       /* STOUP_WAIT_* */
	uint32_t flags;      /* STOUP_NO_RECONNECT, STOUP_POPULATE, or 0 */
	uint64_t timeout_ns; /* longest wait of one call; 0 = stoupd's --request-timeout (30 s) */
	uint64_t spin_ns;   /* of STOUP_WAIT_SLEEP: time to spin before sleeping; 0 = 20 us, none on
	                        two processors or one */
	uint32_t ahead_cnt; /* blocks that a cursor has read ahead; 0 = 16, UINT32_MAX = none */
	uint32_t zero;
	uint64_t pool_len; /* automatic daemon only: bytes of its pool; 0 = its default */
	const char *
		daemon; /* automatic daemon only: its path; NULL = $STOUPD, the installed one, $PATH */
	uint64_t reconnect_ns; /* longest wait for another daemon after one ended; 0 = 30 s */
};

/* Fill `opt` with the defaults. */
STOUP_API void stoup_options_init(struct stoup_options *opt);

/* Attach to the pool named `pool`. A text with a slash is the path of a store: joins the automatic
 * daemon of that store and user, starts it when there is none, and waits for one that still starts or
 * ends. `opt` may be NULL.
 * May block up to opt->timeout_ns (30 s). Thread-safe. The result is freed by stoup_detach.
 * -ENOENT no such pool or store; -ECONNREFUSED the daemon is dead; -EACCES refused (names the group);
 * -EPROTO another ABI; -EUSERS too many consumers; -ENOMEM; -EMFILE too few descriptors (ulimit -n);
 * -ETIMEDOUT the daemon is silent, or the automatic one did not get ready in time; -ECONNABORTED the
 * automatic daemon did not start; the text says why. */
STOUP_API int stoup_attach(const char *pool, const struct stoup_options *opt, struct stoup **ret,
	struct stoup_error *err);

/* Release everything and leave. All cursors must be closed and all leases released: -EBUSY otherwise,
 * and nothing happens. NULL is allowed. Mappings are gone afterwards. */
STOUP_API int stoup_detach(struct stoup *st);

/* Take the newest snapshot of the store: 1 there is news, 0 there is none, or a negative errno as of
 * stoup_next. A snapshot is what the store held at one moment; an attachment keeps its own until it asks.
 * Cursors opened before keep theirs until they are closed; series found before stay valid, their counts
 * are of the snapshot in which they were found. Nothing that is held moves. Thread-safe. May block up to
 * options.timeout_ns, or reconnect_ns when the daemon has ended. */
STOUP_API int stoup_refresh(struct stoup *st, struct stoup_error *err);

/* A series as a consumer sees it: all records of one schema and layout under one name, over all volumes
 * of the snapshot. `name` and `schema` live until stoup_detach. */
struct stoup_series {
	uint64_t id;      /* private */
	const char *name; /* "DATASET/SYMBOL/schema" */
	const struct stoup_schema *schema;
	uint64_t record_cnt;
	int64_t first_key, last_key; /* ns since the epoch; both 0 where record_cnt is 0 */
	uint32_t flags;              /* STOUP_SERIES_* */
	uint32_t volume_cnt;         /* volumes that hold some of it */
};

#define STOUP_SERIES_KEEP_ORDER 0x1u /* ingested with --order=keep: key = running maximum */

/* Number of series, sorted by name. Thread-safe. */
STOUP_API int64_t stoup_series_cnt(struct stoup *st);

/* The idx-th series by name. -ENOENT past the end. Thread-safe. */
STOUP_API int stoup_series_at(struct stoup *st, uint64_t idx, struct stoup_series *ret);

/* Find a series by its full name. -ENOENT: the text names near ones; -ENOTUNIQ: the name stands for
 * several layouts. Thread-safe. */
STOUP_API int stoup_series_find(
	struct stoup *st, const char *name, struct stoup_series *ret, struct stoup_error *err);

/* Check once that records of `series` can be overlaid by a struct: `schema_name` is the built-in schema
 * that the struct was written for (NULL: only the length is checked), record_len its sizeof. 0, or
 * -EINVAL with a text that says what differs. Thread-safe. */
STOUP_API int stoup_schema_require(const struct stoup_series *series, const char *schema_name,
	size_t record_len, struct stoup_error *err);

/* The same for a struct of one's own: each field by name, offset and type. Thread-safe. */
struct stoup_require {
	const char *name;
	uint32_t off;  /* offsetof */
	uint32_t type; /* STOUP_TYPE_* */
};
STOUP_API int stoup_schema_require_fields(const struct stoup_series *series, size_t record_len,
	const struct stoup_require *fields, size_t field_cnt, struct stoup_error *err);

/* Which part of a series: keys in [from_ns, to_ns), or as the flags say. 0 = open at that end. Without flags, records
 * whose key equals from_ns are in, those whose key equals to_ns are out.
 *
 *      {.from_ns = t, .flags = STOUP_FROM_AFTER, .limit = n}      the first n after t
 *      {.to_ns = t, .limit = n, .flags = STOUP_LAST}              the last n before t, in time order
 *      {.to_ns = t, .limit = n, .flags = STOUP_BACKWARD}          the same, newest first
 *      {.from_ns = 1000, .to_ns = 2000, .flags = STOUP_ORDINALS}  records 1000 to 1999 of the series
 *      {.limit = n, .flags = STOUP_LAST | STOUP_FOLLOW}           the last n, then what is added later
 *
 * Backward, the same spans come in the opposite order, from the end of the range to its begin. Inside a
 * span the records lie in memory as ever, so that the loop over them runs from the last to the first:
 *
 *      const struct stoup_range latest_first = {.flags = STOUP_BACKWARD};
 *
 *      while ((rc = stoup_next(cur, &span)) > 0) {
 *              const struct stoup_mbo *mbo = span.base;
 *              for (uint64_t i = span.record_cnt; i-- > 0;)
 *                      look_at(&mbo[i]);
 *      } */
struct stoup_range {
	int64_t from_ns, to_ns; /* ns since the epoch; with STOUP_ORDINALS record numbers from 0 */
	uint32_t flags;         /* those below, or 0 */
	uint32_t limit; /* at most so many records from the first one on, over all spans; 0 = all */
};

#define STOUP_BACKWARD       0x1u  /* from the end of the range to its begin */
#define STOUP_DIRECT         0x2u  /* map the volumes themselves: see stoup_scan */
#define STOUP_DIRECT_OR_POOL 0x4u  /* the same where it can be, else from the pool */
#define STOUP_FROM_AFTER     0x8u  /* records whose key equals from_ns are out */
#define STOUP_TO_INCLUDED    0x10u /* records whose key equals to_ns are in, all of them */
/* from_ns and to_ns are ordinals (stoup_span.ordinal): records [from, to) of the series as the snapshot has it; to 0 =
 * open. Not together with the two above. */
#define STOUP_ORDINALS 0x20u
/* With limit: of the records of the range those that the scan would reach last, in the order of the scan. Which ones
 * they are is settled when the first one is asked for, which may read one block more. Together with STOUP_FOLLOW the
 * limit counts what is there already. */
#define STOUP_LAST 0x40u
/* At the end stoup_next returns 0, and goes on behind the last record when a later snapshot has more there. Forward
 * only. See stoup_wait_news. */
#define STOUP_FOLLOW 0x80u
/* Of bars (STOUP_SCHEMA_BAR): from_ns, to_ns and the key of stoup_seek are compared with the time from which on a bar
 * was known, key + schema->interval_ns, so that nothing looks ahead. No effect on other schemas. */
#define STOUP_AVAILABLE 0x100u

/* A run of records inside the pool: record i is at base + i * stride. Valid until the next call on the
 * cursor. Fields from `client` on are private. Of messages (schema->flags has STOUP_SCHEMA_VARIABLE) only
 * stoup_message_at reads a record: the bytes lie in front of the table that base points to. */
struct stoup_span {
	const void *base;
	uint64_t record_cnt; /* at least 1 */
	uint64_t stride;     /* bytes per record */
	uint64_t ordinal;    /* of the first record, from the start of the series, 0-based */
	int64_t first_key, last_key; /* of the segment that the span is cut from */
	const struct stoup_schema *schema;
	struct stoup *client;
	uint64_t cell_use;
	uint32_t cell_idx, session_no;
};

/* A message: its key and its bytes in place, as long as the span they are read from. `bytes` is aligned to 8,
 * and not followed by a zero byte that one may count on. */
struct stoup_message {
	int64_t key;       /* as put; of a series with STOUP_SERIES_KEEP_ORDER it may step back */
	const void *bytes; /* never NULL, also where len is 0 */
	uint32_t len, zero;
};

/* Message i (below record_cnt) of a span of messages: two loads. All was checked before the span was handed
 * out, so nothing here can fail:
 *
 *      while ((rc = stoup_next(cur, &span)) > 0)
 *              for (uint64_t i = 0; i < span.record_cnt; i++) {
 *                      struct stoup_message m = stoup_message_at(&span, i);
 *                      printf("%lld %.*s\n", (long long)m.key, (int)m.len, (const char *)m.bytes);
 *              } */
STOUP_API struct stoup_message stoup_message_at(const struct stoup_span *span, uint64_t i);

/* The first message of a span whose key is at least key_ns, record_cnt where there is none: bisected. Not for a
 * series with STOUP_SERIES_KEEP_ORDER, whose keys are in no order. Thread-safe, as the one above. */
STOUP_API uint64_t stoup_message_bound(const struct stoup_span *span, int64_t key_ns);

/* The calls that are worth inlining. The library exports them as well, for bindings, whose parsers set
 * STOUP_NO_INLINE. */
#ifndef STOUP_NO_INLINE
extern inline __attribute__((gnu_inline)) struct stoup_message stoup_message_at(
	const struct stoup_span *span, uint64_t i)
{
	const uint32_t *entry = (const uint32_t *)span->base + i;
	const struct stoup_message_head *head =
		(const struct stoup_message_head *)(const void *)((const uint8_t *)entry - *entry);
	struct stoup_message ret = {head->key, head + 1, head->len, 0};

	return ret;
}
#endif

/* Start a scan, forward or backward. `range` NULL = everything, forward. The cursor is freed by
 * stoup_cursor_close. Needs no block: never waits, but where STOUP_DIRECT asks the daemon for a file that
 * is not mapped yet. -EINVAL for a range that ends before it begins, or whose flags are unknown or contradict each
 * other; -ENOENT for a series that was found through another attachment, or that the store has no more. Thread-safe.
 * Series of variable-length messages are scanned like those of records; their spans are read by stoup_message_at.
 *
 * STOUP_DIRECT, for series that are not compressed (ingest --codec none): the cursor reads the volumes' own
 * files, mapped read-only into this process once per volume, through the page cache of the machine. A span is
 * as long as the records lie one behind the other in the file. It takes no lease, no buffer and no room of the
 * pool, stays valid until stoup_detach, and needs the daemon only until stoup_scan has returned, with
 * STOUP_FOLLOW at its end as well: what is later is asked of a daemon. Messages are
 * checked when their segment is handed out, so that a span is as safe as one of the pool. Checksums
 * are not looked at (stoup verify does that), and a file that somebody truncates takes its bytes away with
 * SIGBUS: volumes are immutable, replace them by renaming. -ENOTSUP where some of the range is compressed, -EIO
 * where a file is shorter than its index says or another one; the other errors of stoup_next. */
STOUP_API int stoup_scan(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, struct stoup_cursor **ret, struct stoup_error *err);

/* The next span: 1; 0 at the end of the range; a negative errno with the text in stoup_cursor_error:
 * -ETIMEDOUT   nothing came in time; the cursor stays, call again
 * -ENOBUFS     the pool starves: nothing could be evicted until the deadline; the text names the holders
 * -EBADMSG     the block is damaged: file and offset in the text; stoup_cursor_skip goes on behind it
 * -EIO         the block could not be read: likewise
 * -EFBIG       the block is larger than this pool serves; the text has the numbers
 * -EDQUOT      this process holds its share of the pool already: release something
 * -EMFILE      all lease cells of this process are in use: likewise
 * -EBUSY       more requests are in flight than the daemon takes; the cursor stays, call again
 * -ESTALE      the store changed underneath: after a restart or (STOUP_FOLLOW) a rescan the records before the cursor's place are no
 *              longer the same, or the cursor's snapshot is so old that it is no longer served; the text
 *              says which. Open a new cursor
 * -EPIPE       the daemon is dead or was stopped, or the connection is closed, and no other one came within
 *              options.reconnect_ns (STOUP_NO_RECONNECT: at once); spans and leases held stay readable; the
 *              cursor stays, call again
 * -ETIME       the daemon lives but is silent (no heartbeat)
 * -EPROTO      the daemon's shared memory is inconsistent
 * -ECHILD      the cursor belongs to a parent process
 * Releases the span before, then acquires. A hit makes no system call. */
STOUP_API int stoup_next(struct stoup_cursor *cur, struct stoup_span *ret);

/* Step over the segment at which stoup_next failed. Returns the number of records left out: exact, but
 * where the range begins or ends inside the segment an upper bound, which can be 0 (its keys cannot be
 * read). -EINVAL when the last call did not fail; -ECHILD after a fork. When the daemon ends before any
 * span was handed out, the scan begins anew: what was stepped over fails again. */
STOUP_API int64_t stoup_cursor_skip(struct stoup_cursor *cur);

/* The next span begins with the first record whose key is at least key_ns; backward, ends with the last one whose
 * key is at most key_ns: within the range, whatever was read before. The limit counts anew from there; of a range with
 * STOUP_LAST the records stay those that it had. Only moves: reads no block, waits for nothing, and the span that is
 * out is released. 0; -EINVAL without a cursor; -ECHILD; the code of a cursor that has failed for good. Bars of a
 * range with STOUP_AVAILABLE count from when they were known. Of a series that kept its order
 * (STOUP_SERIES_KEEP_ORDER) the key is the greatest one so far. */
STOUP_API int stoup_seek(struct stoup_cursor *cur, int64_t key_ns);

/* The reason behind the last negative return of stoup_next; valid until the next call on the cursor. */
STOUP_API const struct stoup_error *stoup_cursor_error(const struct stoup_cursor *cur);

/* Release the span and free the cursor. NULL is allowed. */
STOUP_API void stoup_cursor_close(struct stoup_cursor *cur);

/* The first record (or message) of a span whose key is at least key_ns, and the first whose key is above it;
 * record_cnt where there is none: bisected. Those with the key itself lie in [bound, above). Not for a series with
 * STOUP_SERIES_KEEP_ORDER, whose keys are in no order. Thread-safe. */
STOUP_API uint64_t stoup_span_bound(const struct stoup_span *span, int64_t key_ns);
STOUP_API uint64_t stoup_span_above(const struct stoup_span *span, int64_t key_ns);

/* How much a range has. */
struct stoup_count {
	uint64_t record_min, record_max;   /* a scan yields at least and at most so many records */
	uint64_t ordinal_min, ordinal_max; /* of the first one: between these two */
	uint64_t
		segment_cnt; /* segments that may have some: spans that a scan of the pool yields at most */
	uint64_t raw_len; /* bytes of their blocks, decoded: what a pool needs to keep all of it */
	int64_t first_key,
		last_key; /* no record of it has an earlier or a later key; 0 where record_max is 0 */
	uint32_t volume_cnt; /* volumes that may have some */
	uint32_t exact;      /* 1: record_min is record_max */
};

/* Count the records of `range` (NULL = all) in the newest snapshot that the attachment has. `exact` 0: from the index
 * alone, in the time of two bisections and a walk over the index of what is in the range; never waits, and is exact by
 * itself where the range begins and ends between segments, or by ordinals. `exact` 1: reads two blocks at most, those in
 * which the range begins and ends. Limit, STOUP_LAST and STOUP_BACKWARD count as of stoup_scan, STOUP_FOLLOW counts
 * what is there; STOUP_DIRECT reads the volume's file instead of the pool. 0; the codes of stoup_scan, and where `exact`
 * is 1 those of stoup_next. Thread-safe. */
STOUP_API int stoup_count(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, int exact, struct stoup_count *ret,
	struct stoup_error *err);

/* Wait until the store has a newer snapshot: 1 there is one, 0 not within timeout_ns (0: only look). What is new is
 * told from the snapshot at whose end a cursor with STOUP_FOLLOW stood in this thread (stoup_next returned 0), else
 * from the newest one of the attachment. Nothing is taken: the next stoup_next of such a cursor does that, or
 * stoup_refresh:
 *
 *      while ((rc = stoup_next(cur, &span)) >= 0) {
 *              if (rc > 0)
 *                      take(&span);
 *              else if (stoup_wait_news(st, 1000000000, &err) < 0)
 *                      die(err.text);
 *      }
 *
 * Sleeps; the daemon wakes it. When the daemon ends, waits for the next one, up to options.reconnect_ns, which is news
 * as well. -EPIPE, -ETIME, -ECHILD as of stoup_next. Thread-safe. */
STOUP_API int stoup_wait_news(struct stoup *st, uint64_t timeout_ns, struct stoup_error *err);
/* ---- as of ----
 * The last record that was known at a time. A cursor of stoup_scan looks up within its range, at any times, forward
 * and back, besides being scanned: a lookup does not move the scan, and stoup_next does not move the lookups.
 *
 *      while ((rc = stoup_next(trades, &span)) > 0) {
 *              const struct stoup_trade *trade = span.base;
 *              for (uint64_t i = 0; i < span.record_cnt; i++) {
 *                      struct stoup_span at;
 *                      rc = stoup_asof(quotes, (int64_t)trade[i].ts_recv, &at);
 *                      if (rc < 0)
 *                              die(stoup_cursor_error(quotes)->text);
 *                      if (rc > 0)                            // 0: no quote yet
 *                              compare(&trade[i], at.base);   // a struct of its own schema
 *              }
 *      }
 *
 * Never a later one: a record counts from its key on, a bar (STOUP_SCHEMA_BAR) from its close, key + interval_ns, since
 * nobody knew it before. Of several records with one key the last. Of a series that kept its order
 * (STOUP_SERIES_KEEP_ORDER), where a key is the greatest so far, the last record in the order of the file that stands
 * before each one that exceeds the time. The range bounds what is found: a time behind its end is answered by its last
 * record, and a time before its first record by none. STOUP_BACKWARD, stoup_seek and the filter of stoup_scan_where do not matter; with
 * STOUP_FOLLOW a time at or behind the last record is answered by the newest snapshot that there is. A range with a limit
 * has no as-of (-EINVAL), nor has a cursor over several series: stoup_asof_all looks up in each.
 *
 * Speed: a time at the last answer or some records behind it costs some compares; others gallop, or bisect the index
 * and one segment. The cursor keeps one block leased from one lookup to the next (and one for the scan), until it is
 * closed, and its index: 26 bytes per segment of the range, and at most
 * 32 MiB of marks for segments that are looked up here and there. */

/* The last record available at or before key_ns (ns since the epoch): 1 and a span of that one record, valid until the
 * next call on the cursor, with stoup_hold for longer; 0 there is none, *ret is untouched; a negative errno as of
 * stoup_next, with the text in stoup_cursor_error. An error leaves the cursor as it was: the same call may be
 * repeated, others may succeed; stoup_cursor_skip is for scans alone. When the daemon ends, the lookup goes on
 * with the next one, in its snapshot. -EBUSY also when the daemon ended while a span of stoup_next_held was still to be
 * taken. May block as stoup_next. */
STOUP_API int stoup_asof(struct stoup_cursor *cur, int64_t key_ns, struct stoup_span *ret);

/* The same strictly before key_ns. */
STOUP_API int stoup_asof_before(struct stoup_cursor *cur, int64_t key_ns, struct stoup_span *ret);

/* As-of of many series: cursor i answers in rets[i], where record_cnt is 0 when it has none. A cursor may stand there
 * once. What is not in the pool is asked for together, then waited for. Returns how many have a record; where some
 * fail, the code of the first that does: the others are answered all the same, those that failed have record_cnt 0,
 * and stoup_cursor_error tells of each. Each cursor keeps a block leased: see --lease-bytes of stoupd. -EINVAL for a
 * cursor or an array that is NULL. May block as stoup_next for each. */
STOUP_API int64_t stoup_asof_all(
	struct stoup_cursor *const *curs, size_t cnt, int64_t key_ns, struct stoup_span *rets);

/* Keep the bytes of a span beyond the next call on its cursor. */
struct stoup_lease {
	struct stoup *client; /* private, like the rest */
	uint64_t use;
	uint32_t idx, source;
};

/* 0; -EINVAL when the bytes of the span are no longer held; -EDQUOT when the process holds its share of
 * the pool; -ENOMEM; -ECHILD after a fork. All leases of one block share one cell and count its bytes
 * once; those of spans in direct mode cost neither. */
STOUP_API int stoup_hold(const struct stoup_span *span, struct stoup_lease *ret);

/* Give a lease back, from any thread. -EINVAL, and nothing changes, for a lease that was released already,
 * copies of it included. NULL is allowed. */
STOUP_API int stoup_release(struct stoup_lease *lease);

/* A span with a lease of its own. A pointer to it is also one to its lease. */
struct stoup_held {
	struct stoup_lease lease;
	struct stoup_span span;
};

/* The next spans at once, each with its lease: for bindings, where a call costs more than a hit. Waits for the
 * first one like stoup_next, then adds those that follow as long as they are in the pool already, at most cnt,
 * and until their blocks reach `bytes` (0 = an eighth of what this process may lease). Writes *ret[0], *ret[1]
 * and so on, each as a whole; what is not written stays untouched. The leases are given back by stoup_release,
 * in any order; the cursor itself keeps nothing between two calls. Of a merge lease.source is what stoup_cursor_source
 * says of that run.
 * Returns the number of spans, 0 at the end, or a negative errno as of stoup_next and stoup_hold: nothing was
 * handed out then, and nothing is lost, a later call yields the same span. May be mixed with stoup_next. Runs of a
 * merge cost nothing of what this process may lease while the merge stands in their blocks; those of blocks that it has
 * passed do, and a call may be -EDQUOT then: release some, and call again. */
STOUP_API int64_t stoup_next_held(
	struct stoup_cursor *cur, struct stoup_held *const *ret, size_t cnt, uint64_t bytes);

/* Detach as soon as nothing is in use: at once, or with the last cursor that is closed and the last lease that
 * is released, by whichever thread does it. Spans that are held stay readable until then. For owners that are
 * collected in no certain order. Nothing else may be done with `st` after the call. 0 gone, 1 later. NULL is
 * allowed. In a child without leases of its own what it inherited stays mapped. */
STOUP_API int stoup_leave(struct stoup *st);

/* Cursors that are open and leases that are held, those in direct mode too; -ECHILD after a fork.
 * Thread-safe. */
STOUP_API int64_t stoup_use_cnt(struct stoup *st);

/* Bytes of a public struct ("stoup_span") in this library, so that a binding without a compiler can compare;
 * 0 for an unknown one. Thread-safe. */
STOUP_API size_t stoup_struct_len(const char *name);

/* What this attachment did so far; thread-safe, approximate. */
struct stoup_stats {
	/* In: sizeof(struct stoup_stats). Filled as far as it goes, what the library does not know is 0; -EINVAL
	 * where it is shorter than in the first release. */
	size_t struct_len;
	uint64_t hit_cnt, miss_cnt, timeout_cnt;
	uint64_t wait_ns;                 /* spent waiting for blocks */
	uint64_t record_cnt;              /* records in the spans handed out, direct ones as well */
	uint64_t doorbell_cnt;            /* system calls to wake the daemon */
	uint64_t lease_cnt, leased_bytes; /* held now */
	uint64_t reconnect_cnt;           /* daemons that this attachment went on to */
	uint64_t direct_cnt;              /* spans handed out of volumes' own files */
	uint64_t direct_alone_cnt;        /* of those: while no daemon served this attachment */
};
STOUP_API int stoup_stats(struct stoup *st, struct stoup_stats *ret);

/* Is the pool alive? 0; -EPIPE the daemon is dead or stopped, or the connection closed; -ETIME silent;
 * -ECHILD after a fork. Thread-safe. */
STOUP_API int stoup_health(struct stoup *st, struct stoup_error *err);

/* A whole range as one array, for programs that take a pointer and a count: hftbacktest, or a loop of
 * one's own over years. `base` is aligned as the schema says (event64: 64 bytes), read-only, and stays
 * until stoup_array_release. */
struct stoup_array {
	const void *base;    /* record i is at base + i * stride; NULL where record_cnt is 0 */
	uint64_t record_cnt; /* may be 0 */
	uint64_t stride;
	const struct stoup_schema *schema;
	uint32_t direct, zero;    /* direct 1: in the volume's own file, 0: in the pool */
	struct stoup_lease lease; /* private */
};

/* The records of `range` (NULL = all) as one array, without a copy: shared by all processes that ask for it.
 * That can be done where they lie one behind the other:
 *
 *   in the volume's file, mapped as with STOUP_DIRECT: the range is uncompressed and in one volume
 *      (stoup ingest --codec none, with records that fill whole pages such as those of event64);
 *   else in the pool, if one block holds all of it: the block stays leased.
 *
 * All else is -EFBIG, found in the index before a block is read; the text has the numbers and what mends it.
 * range.flags: STOUP_DIRECT for the first way alone; those that bound it as of stoup_scan. May block as stoup_scan
 * and stoup_next, and returns their codes; -EINVAL also for STOUP_BACKWARD and STOUP_FOLLOW. With a limit a block at
 * its end may be read first. Thread-safe. */
STOUP_API int stoup_array(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, struct stoup_array *ret, struct stoup_error *err);

/* Give it back, from any thread. 0; as stoup_release. An array without records holds nothing. */
STOUP_API int stoup_array_release(struct stoup_array *array);

/* What was known of an instrument at a time: its tick, expiry, multiplier... of the definition records of DBN 1, 2
 * and 3 alike. Values are those of the record, undefined ones (named below) included; a field that the record's
 * version has not is undefined. */
struct stoup_instrument {
	size_t struct_len; /* in: sizeof(struct stoup_instrument) */
	int64_t key;       /* of the definition: ts_recv, from when on it was known */
	uint64_t ts_event;
	uint64_t expiration, activation;    /* undefined: UINT64_MAX */
	int64_t min_price_increment;        /* the tick; prices are of 1e-9, undefined: INT64_MAX */
	int64_t min_price_increment_amount; /* its value in currency */
	int64_t display_factor;             /* of 1e-9: shown price = price * factor */
	int64_t unit_of_measure_qty;        /* of 1e-9: the contract's size */
	int64_t strike_price, price_ratio;
	int64_t high_limit_price, low_limit_price, max_price_variation;
	int64_t trading_reference_price; /* DBN 1 and 2; else undefined */
	uint64_t raw_instrument_id;      /* of the venue */
	uint32_t instrument_id;          /* of the records, on that day */
	uint32_t underlying_id;
	int32_t contract_multiplier, original_contract_size; /* undefined: INT32_MAX */
	int32_t market_depth, market_depth_implied;
	int32_t min_lot_size, min_lot_size_block, min_lot_size_round_lot;
	uint32_t min_trade_vol, max_trade_vol; /* undefined: UINT32_MAX */
	uint32_t market_segment_id;
	int32_t inst_attrib_value;
	uint16_t publisher_id, channel_id;
	uint16_t maturity_year; /* undefined: UINT16_MAX */
	uint16_t leg_count,
		leg_index; /* DBN 3: of spreads, of which the last leg is found; else 0 */
	uint8_t maturity_month, maturity_day, maturity_week; /* undefined: UINT8_MAX */
	uint8_t main_fraction, sub_fraction, price_display_format;
	uint8_t version;       /* of DBN: 1 to 3 */
	char instrument_class; /* K stock, F future, C call, P put, S and T their spreads, B, X */
	char security_update_action; /* A add, M modify, D delete */
	char match_algorithm;
	char user_defined_instrument; /* Y, N */
	int8_t contract_multiplier_unit;
	char raw_symbol[72]; /* texts end with a NUL */
	char underlying[24];
	char group[24];
	char asset[16];
	char exchange[8];
	char currency[8], settl_currency[8], strike_price_currency[8];
	char security_type[8], secsubtype[8], cfi[8];
	char unit_of_measure[32];
};

/* The last definition at or before `key_ns` (INT64_MAX: the last of all) of `symbol`, "DATASET/SYMBOL" as in names of
 * series: of its series definition, definition-v2 and definition-v1, with or without ts_out, whichever is the latest.
 * Never one that came later than `key_ns`. Look up once, not for each record: it scans. *ret is filled as far as
 * ret->struct_len goes. 0; -ENOENT: the symbol has no definitions; -ENODATA: it has, all later than key_ns; -EINVAL;
 * or what stoup_scan and stoup_next return. May block as they do. Thread-safe. */
STOUP_API int stoup_definition_at(struct stoup *st, const char *symbol, int64_t key_ns,
	struct stoup_instrument *ret, struct stoup_error *err);

/* Fork with leases. A child of fork() shares the mapping of the data but holds nothing: the daemon does
 * not know it, and what its parent releases is reused under its eyes. With these three calls it inherits
 * the leases as well:
 *
 *      struct stoup_fork fork_state;
 *      pid_t pid;
 *
 *      if (stoup_fork_prepare(st, &fork_state, &err) < 0)   // the daemon copies this process's leases
 *              die(err.text);
 *      pid = fork();
 *      if (pid == 0)
 *              rc = stoup_fork_child(&fork_state, &err);    // 0: cursors, spans, leases are its own now
 *      else
 *              stoup_fork_parent(&fork_state, pid > 0);     // also when fork failed: pid > 0 is 0
 *
 * Between prepare and parent or child, other threads that use `st` wait. In the child, cursors that other
 * threads of the parent were using can only be closed. A child that does not call stoup_fork_child must
 * not touch inherited spans; its handles return -ECHILD. The copy waits 10 s for its child. */
struct stoup_fork {
	struct stoup *client; /* private, like the rest */
	uint64_t ticket;
	uint64_t cell_high, zero;
};

/* 0; -EUSERS no free place for another consumer; -EPIPE, -ETIME, -ETIMEDOUT as of stoup_next; -EMFILE;
 * -ECHILD. Nothing is held on failure. */
STOUP_API int stoup_fork_prepare(struct stoup *st, struct stoup_fork *ret, struct stoup_error *err);

/* In the parent. `forked` 0: the fork failed, the copy is given up. Returns 0. */
STOUP_API int stoup_fork_parent(struct stoup_fork *fork_state, int forked);

/* In the child, before anything else is done with the attachment. 0; a negative errno: nothing is held,
 * inherited spans must not be touched, and all handles return -ECHILD. */
STOUP_API int stoup_fork_child(struct stoup_fork *fork_state, struct stoup_error *err);

/* Do all that at each fork of this process, whoever forks (pthread_atfork): for hosts that do not call fork
 * themselves, such as interpreters. Where nothing is in use nothing is copied: the child attaches anew when it
 * needs to; its handle returns -ECHILD. In a child whose leases could not be copied (no free place, a daemon that is
 * silent), spans that it inherited are made unreadable: SIGSEGV instead of other records. Until the handle goes; not
 * together with stoup_fork_prepare. 0; -EINVAL; -ENOMEM; -ECHILD. Thread-safe. */
STOUP_API int stoup_fork_auto(struct stoup *st);

/* Version of the library, "MAJOR.MINOR.PATCH". */
STOUP_API const char *stoup_version(void);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#include "stoup_merge.h"

#endif
