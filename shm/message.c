/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - write and check message runs (message.h). */
#include "shm/message.h"

#include <errno.h>
#include <inttypes.h>

#define HEAD_LEN ((uint32_t)sizeof(struct stoup_message_head))

/* ---- writing --------------------------------------------------------------------------------- */

uint32_t stoup_message_write(void *dst, int64_t key, const void *bytes, uint32_t len)
{
	struct stoup_message_head head = {.key = key, .len = len};
	uint32_t unit_len = stoup_message_unit_len(len);
	uint8_t *at = dst;

	memcpy(at, &head, HEAD_LEN);
	if (len > 0)
		memcpy(at + HEAD_LEN, bytes, len);
	memset(at + HEAD_LEN + len, 0, unit_len - HEAD_LEN - len);
	return unit_len;
}

uint32_t stoup_message_run_end(void *base, uint32_t len, uint32_t cnt)
{
	uint32_t table_len = cnt * STOUP_MESSAGE_STRIDE, off = 0, i;
	uint32_t table_off = len + stoup_message_table_len(cnt) - table_len;
	uint8_t *at = base;

	memset(at + len, 0, table_off - len);
	for (i = 0; i < cnt; i++) {
		uint32_t entry_off = table_off + i * STOUP_MESSAGE_STRIDE;
		uint32_t distance = entry_off - off;
		struct stoup_message_head head;

		memcpy(&head, at + off, HEAD_LEN);
		memcpy(at + entry_off, &distance, sizeof(distance));
		off += stoup_message_unit_len(head.len);
	}
	return table_off + table_len;
}

/* Eight bytes a step: the padding is zero, and the length counts as well. */
uint64_t stoup_message_hash(const struct stoup_message_head *head)
{
	const uint8_t *at = (const uint8_t *)(head + 1),
		      *end = at + stoup_message_unit_len(head->len) - HEAD_LEN;
	uint64_t hash = head->len ^ UINT64_C(0x9e3779b97f4a7c15), word;

	for (; at < end; at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
		hash ^= hash >> 29;
	}
	hash *= UINT64_C(0x94d049bb133111eb);
	return hash ^ hash >> 31;
}

/* ---- checking -------------------------------------------------------------------------------- */

static int not_zero(const uint8_t *bytes, uint64_t len)
{
	uint64_t i;

	for (i = 0; i < len; i++) {
		if (bytes[i])
			return 1;
	}
	return 0;
}

/* The message whose head is to stand at `off`: 0 with the bytes it takes. */
static int unit_check(const struct stoup_message_run *run, uint64_t idx, uint64_t off,
	uint64_t table_off, struct stoup_message_head *ret_head, uint64_t *ret_len,
	struct stoup_error *err)
{
	const uint8_t *base = run->base;
	uint64_t entry_off = table_off + idx * STOUP_MESSAGE_STRIDE, room = table_off - off, end;
	uint32_t distance;

	memcpy(&distance, base + entry_off, sizeof(distance));
	if (distance != entry_off - off)
		return stoup_error_set(err, -EBADMSG,
			"message %" PRIu64 " of %" PRIu64 " is to begin at byte %" PRIu64
			" of its run, but its table entry leads %" PRIu32
			" bytes back, not %" PRIu64,
			idx, run->cnt, off, distance, entry_off - off);
	if (room < HEAD_LEN)
		return stoup_error_set(err, -EBADMSG,
			"message %" PRIu64 " at byte %" PRIu64
			" of its run: no room for its head before the table at %" PRIu64,
			idx, off, table_off);
	memcpy(ret_head, base + off, HEAD_LEN);
	if (ret_head->len > room - HEAD_LEN || stoup_message_unit_len(ret_head->len) > room)
		return stoup_error_set(err, -EBADMSG,
			"message %" PRIu64 " at byte %" PRIu64 " of its run: %" PRIu32
			" bytes reach into the table at %" PRIu64,
			idx, off, ret_head->len, table_off);
	*ret_len = stoup_message_unit_len(ret_head->len);
	end = off + HEAD_LEN + ret_head->len;
	if (ret_head->zero || not_zero(base + end, off + *ret_len - end))
		return stoup_error_set(err, -EBADMSG,
			"message %" PRIu64 " at byte %" PRIu64 " of its run: %s is not zero", idx,
			off, ret_head->zero ? "the end of its head" : "its padding");
	return 0;
}

static int key_check(const struct stoup_message_run *run, uint64_t idx, uint64_t off, int64_t key,
	int64_t *highest, struct stoup_error *err)
{
	if (run->keeps_order) {
		*highest = key > *highest ? key : *highest;
		return 0;
	}
	if (key < *highest)
		return stoup_error_set(err, -EBADMSG,
			"message %" PRIu64 " at byte %" PRIu64 " of its run: key %" PRId64
			" is before %" PRId64,
			idx, off, key, *highest);
	*highest = key;
	return 0;
}

int stoup_message_run_check(const struct stoup_message_run *run, struct stoup_error *err)
{
	struct stoup_message_head head = {0};
	uint64_t off = 0, len = 0, table_off, i;
	int64_t highest = run->first_key;
	int rc;

	if (run->len % STOUP_MESSAGE_ALIGN || (uintptr_t)run->base % STOUP_MESSAGE_ALIGN)
		return stoup_error_set(err, -EBADMSG,
			"a run of messages of %" PRIu64
			" bytes does not begin and end at a multiple of 8",
			run->len);
	if (run->cnt == 0 || run->cnt > run->len / (HEAD_LEN + STOUP_MESSAGE_STRIDE))
		return stoup_error_set(err, -EBADMSG,
			"a run of %" PRIu64 " bytes has no room for %" PRIu64 " messages", run->len,
			run->cnt);
	table_off = run->len - run->cnt * STOUP_MESSAGE_STRIDE;
	for (i = 0; i < run->cnt; i++, off += len) {
		rc = unit_check(run, i, off, table_off, &head, &len, err);
		if (rc == 0 && i == 0 &&
			(run->keeps_order ? head.key > run->first_key : head.key != run->first_key))
			return stoup_error_set(err, -EBADMSG,
				"the first message of a run has key %" PRId64
				", the index says %" PRId64,
				head.key, run->first_key);
		if (rc == 0)
			rc = key_check(run, i, off, head.key, &highest, err);
		if (rc < 0)
			return rc;
	}
	if (highest != run->last_key)
		return stoup_error_set(err, -EBADMSG,
			"the last message of a run has key %" PRId64 ", the index says %" PRId64,
			highest, run->last_key);
	if (off + (run->cnt & 1) * STOUP_MESSAGE_STRIDE != table_off)
		return stoup_error_set(err, -EBADMSG,
			"%" PRIu64 " messages of a run end at byte %" PRIu64
			", but their table begins at %" PRIu64,
			run->cnt, off, table_off);
	if (not_zero((const uint8_t *)run->base + off, table_off - off))
		return stoup_error_set(err, -EBADMSG,
			"the padding before a run's table, at byte %" PRIu64 ", is not zero", off);
	return 0;
}

int stoup_message_table_check(
	const struct stoup_message_run *block, uint64_t table_off, struct stoup_error *err)
{
	struct stoup_message_run run = *block;
	uint64_t table_len;
	uint32_t distance;

	if (table_off > block->len || block->cnt == 0 ||
		block->cnt > (block->len - table_off) / STOUP_MESSAGE_STRIDE)
		return stoup_error_set(err, -EBADMSG,
			"a table of %" PRIu64 " messages at byte %" PRIu64
			" is not inside its block",
			block->cnt, table_off);
	table_len = block->cnt * STOUP_MESSAGE_STRIDE;
	memcpy(&distance, (const uint8_t *)block->base + table_off, sizeof(distance));
	if (distance > table_off)
		return stoup_error_set(err, -EBADMSG,
			"the first table entry of a run, at byte %" PRIu64
			" of its block, leads %" PRIu32 " bytes back, to before the block",
			table_off, distance);
	run.base = (const uint8_t *)block->base + table_off - distance;
	run.len = distance + table_len;
	return stoup_message_run_check(&run, err);
}
