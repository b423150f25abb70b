/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_message.c - any bytes as a block with a message run: what the check accepts must be safe to read, and be
 * what the format says.
 *
 *      bytes[0]      1 kept order, 2 found by the table's place, 4 keys of the index from the run itself
 *      bytes[1..2]   messages;  bytes[3..4] place of the table (with 2), in units of 4
 *      bytes[5..20]  first and last key (without 4)
 *      the rest      the run, or the block
 *
 * Beside it the same bytes go through the check of JSON texts, which knows no more of them than a length.
 */
#include <errno.h>
#include "shm/json.h"
#include "shm/message.h"
#include "tests/fuzz/fuzz.h"

static uint64_t sum; /* of what was read, so that it is read */

/* Read as a consumer does: through the table alone. */
static void read_all(
	const uint8_t *begin, const uint8_t *table, const struct stoup_message_run *run)
{
	const uint8_t *next = begin ? begin : (const uint8_t *)stoup_message_head_of(table);
	int64_t highest = run->first_key;

	for (uint64_t i = 0; i < run->cnt; i++) {
		const struct stoup_message_head *head = stoup_message_head_of(table + 4 * i);
		const uint8_t *bytes = (const uint8_t *)(head + 1);

		MUST((const uint8_t *)head == next);
		MUST(bytes + head->len <= table);
		next += stoup_message_unit_len(head->len);
		for (uint32_t b = 0; b < head->len; b++)
			sum += bytes[b];
		MUST(run->keeps_order || head->key >= highest);
		highest = head->key > highest ? head->key : highest;
		sum += stoup_message_hash(head);
	}
	MUST(highest == run->last_key);
	MUST(next <= table && table - next < 8);
}

/* With bit 4 the index agrees with the run, so that the check goes on to what lies behind the keys. */
static void keys_of(struct stoup_message_run *run)
{
	const uint8_t *base = run->base;
	uint64_t at = 0;

	run->first_key = run->last_key = 0;
	for (uint64_t i = 0; i < run->cnt && at + 16 <= run->len; i++) {
		struct stoup_message_head head;

		memcpy(&head, base + at, sizeof(head));
		if (i == 0)
			run->first_key = run->last_key = head.key;
		if (head.key > run->last_key)
			run->last_key = head.key;
		at += 16 + ((uint64_t)head.len + 7) / 8 * 8;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len};
	uint8_t how = fuzz_u8(&in);
	struct stoup_message_run run = {.cnt = fuzz_u16(&in), .keeps_order = how & 1};
	uint64_t table_off = 4u * (uint64_t)fuzz_u16(&in);
	struct stoup_error err = {0};
	const uint8_t *rest;
	uint8_t *block;

	run.first_key = (int64_t)fuzz_int(&in, 8);
	run.last_key = (int64_t)fuzz_int(&in, 8);
	run.len = fuzz_take(&in, in.left, &rest);
	/* Blocks are aligned, and exactly as long as they are. */
	block = aligned_alloc(8, (run.len + 7) / 8 * 8 + 8);
	MUST(block != NULL);
	run.base = run.len % 8 ? block : block + 8;
	memcpy((uint8_t *)(uintptr_t)run.base, rest, run.len);
	if (how & 4)
		keys_of(&run);
	if (how & 2) {
		if (stoup_message_table_check(&run, table_off, &err) == 0)
			read_all(NULL, (const uint8_t *)run.base + table_off, &run);
	} else if (stoup_message_run_check(&run, &err) == 0) {
		read_all(run.base, (const uint8_t *)run.base + run.len - 4 * run.cnt, &run);
	}
	MUST(err.code == 0 || (err.code == -EBADMSG && strlen(err.text) > 10));
	sum += (uint64_t)stoup_json_valid(rest, run.len);
	free(block);
	return 0;
}
