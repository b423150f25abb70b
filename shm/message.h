/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - the inside of a message run: how it is laid out, made and checked.
 *
 *      | head 0 | bytes, zeros to 8 | head 1 | bytes, zeros to 8 | ~ | zeros to 8 | table |
 *         16                           16                              0 or 4       4 * cnt
 *          ^                                                                     |
 *          +------------------------ table[0] bytes back ------------------------+
 *
 * A run is one segment of a schema of messages, in a decoded block, at a multiple of 8. Its last
 * 4 * cnt bytes are a table of distances, each from its own place back to the head of its message. So a
 * pointer to entry i is all that is needed to read message i: a span of messages can be cut, walked
 * backward and bisected as one of records of 4 bytes, and needs no pointer beside its base.
 *
 * Invariant: of a run that was checked once, every distance leads to a head inside the run, whose
 * bytes lie before the table. Readers then check nothing.
 *
 * Concurrency: pure functions over the caller's memory.
 */
#ifndef STOUP_SHM_MESSAGE_H
#define STOUP_SHM_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "shm/stoup_types.h"

#define STOUP_MESSAGE_ALIGN 8u

/* A head as volumes have it: X(type, name, suffix, offset, bytes). */
#define STOUP_MESSAGE_HEAD(X)                                                                      \
	X(int64_t, key, , 0, 8)                                                                    \
	X(uint32_t, len, , 8, 4)                                                                   \
	X(uint32_t, zero, , 12, 4)
#define STOUP_MESSAGE_HEAD_LEN 16u

#define STOUP_MESSAGE_HEAD_AT(type, name, suffix, off, len)                                        \
	_Static_assert(offsetof(struct stoup_message_head, name) == (off), "offset of " #name);
STOUP_MESSAGE_HEAD(STOUP_MESSAGE_HEAD_AT)
_Static_assert(sizeof(struct stoup_message_head) == STOUP_MESSAGE_HEAD_LEN, "length of a head");

/* Bytes of a message of `len` bytes in a run: head, bytes, padding. */
static inline uint32_t stoup_message_unit_len(uint32_t len)
{
	return (uint32_t)sizeof(struct stoup_message_head) +
	       (len + STOUP_MESSAGE_ALIGN - 1) / STOUP_MESSAGE_ALIGN * STOUP_MESSAGE_ALIGN;
}

/* Bytes behind the last message of cnt: the table, and what makes it end at a multiple of 8. */
static inline uint32_t stoup_message_table_len(uint32_t cnt)
{
	return (cnt + (cnt & 1)) * STOUP_MESSAGE_STRIDE;
}

/* The head that a table entry leads to. */
static inline const struct stoup_message_head *stoup_message_head_of(const void *entry)
{
	uint32_t distance;

	memcpy(&distance, entry, sizeof(distance));
	return (const void *)((const uint8_t *)entry - distance);
}

/* Write a message at `dst`, which has stoup_message_unit_len(len) bytes; returns those. */
uint32_t stoup_message_write(void *dst, int64_t key, const void *bytes, uint32_t len);

/* End a run: write padding and table behind cnt messages of `len` bytes in all at `base`. Returns the
 * bytes of the run, len + stoup_message_table_len(cnt). */
uint32_t stoup_message_run_end(void *base, uint32_t len, uint32_t cnt);

/* A hash of a checked message's bytes: for telling messages apart, nothing that is stored. */
uint64_t stoup_message_hash(const struct stoup_message_head *head);

/* What an index says of a run, and where it is. */
struct stoup_message_run {
	const void *base; /* aligned to 8 */
	uint64_t len;
	uint64_t cnt; /* messages, at least 1 */
	int64_t first_key, last_key;
	int keeps_order; /* a message's key is the greatest so far */
};

/* Check a run, trusting nothing: heads without gap or overlap from its first byte to the table, all
 * distances, lengths, zero bytes, keys in order, the first and the last one as told. O(len) at most;
 * of the messages' bytes only the padding is read. 0, or -EBADMSG with a text that names message and
 * offset in the run. */
int stoup_message_run_check(const struct stoup_message_run *run, struct stoup_error *err);

/* The same where only the table's place in a block is known (a catalog): *run->base is then the block,
 * and the run begins where the first entry says, at or behind `base`, and ends with the table. */
int stoup_message_table_check(
	const struct stoup_message_run *block, uint64_t table_off, struct stoup_error *err);

#endif
