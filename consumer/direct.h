/* SPDX-License-Identifier: Apache-2.0 */
/* direct.h - volumes' files as a consumer maps them itself: for series whose blocks are not compressed.
 *
 *      volume      [head][ block 0 ][ block 1 ][ block 2 ]  pad  [ block 3 ] ... [index]
 *      segments           r0 .. r9   r10 .. r19 r20 .. r29         r30 ..
 *      spans              |<------------ one ------------>|        |<-- the next
 *
 * A span is as long as records lie one behind the other in the file, whatever the blocks: the records of
 * one series of one volume, cut to the range. It takes no lease cell and no buffer of the pool.
 *
 * Invariant: a mapping is read-only, checked once, and stays until the handle is detached; so does each
 * span. A volume has one mapping per handle: sessions come and go, a volume's 128-bit id stays.
 *
 * Concurrency: mappings are added under `question` and `mutex`, and only taken away with the handle.
 *
 * Death: the bytes are the file's, not the daemon's. What is mapped is read on without one.
 */
#ifndef STOUP_CONSUMER_DIRECT_H
#define STOUP_CONSUMER_DIRECT_H

#include "consumer/cursor.h"

/* What a volume's file begins with, as far as it is looked at here: docs/volume-format.md. */
#define STOUP_DIRECT_MAGIC     "\x89STOUP\r\n"
#define STOUP_DIRECT_MAGIC_LEN 8u
#define STOUP_DIRECT_ID_OFF    16u
#define STOUP_DIRECT_HEAD_LEN  64u

/* One volume's file. */
struct stoup_direct {
	struct stoup_direct *next;
	uint8_t id[16];
	const uint8_t *base;
	size_t len;
};

/* Find or map the files of all parts of the cursor that its range meets: 0, cur->direct is set. -ENOTSUP:
 * some of it is compressed; -EPIPE: the session has ended before all were there; -EIO, -ESTALE, -EACCES,
 * -EMFILE, -ENOMEM, -ETIMEDOUT, -ETIME, -EPROTO. Each but -EPIPE with text. */
int stoup_direct_open(struct stoup_cursor *cur, uint64_t deadline_ns, struct stoup_error *err);

/* stoup_next of such a cursor: 1 or 0, or a negative errno with text. `ret` NULL: only what is pending. Asks nobody and
 * waits for nobody but the disk. */
int stoup_direct_next(struct stoup_cursor *cur, struct stoup_span *ret);

/* The records of one segment, checked: 0, or -EBADMSG with text. */
int stoup_direct_look(struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg, const uint8_t **ret);

/* Does a daemon serve the handle? Looked for as in a scan of the pool, at most a hundred times a second. */
int stoup_direct_served(struct stoup *st);

/* Count spans and records that were handed out. */
void stoup_direct_count(struct stoup *st, uint64_t span_cnt, uint64_t record_cnt);

/* Unmap all: with the handle. */
void stoup_direct_fini(struct stoup *st);

#endif
