/* SPDX-License-Identifier: Apache-2.0 */
/* input_gzip.c - find and compare the trailers of a gzip stream. */
#include "producer/input_gzip.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TRAILER_LEN 8u
#define TABLE_CNT   8u /* slicing by eight: 1.5 GB/s, faster than any inflate */
/* Raw bytes that are kept: one step consumes no more than its output (64 KiB) and one header, which
 * the format bounds in practice; what is read ahead is one buffer of 256 KiB. */
#define HISTORY_CAP (512u * 1024u)

struct stoup_gzip_check {
	uint64_t raw_off; /* offset of history[0] */
	size_t raw_len;
	uint64_t scan_off;   /* no trailer begins before this raw offset */
	uint64_t member_off; /* stream offset where the current member began */
	uint64_t member_raw; /* raw offset where it began */
	uint64_t stream_off;
	uint32_t crc; /* of the stream from member_off to stream_off */
	uint32_t table[TABLE_CNT][256];
	uint8_t history[HISTORY_CAP];
};

/* ---- crc32 ----------------------------------------------------------------------------------- */

static void fill_table(struct stoup_gzip_check *check)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
		check->table[0][i] = crc;
	}
	for (uint32_t t = 1; t < TABLE_CNT; t++) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t crc = check->table[t - 1][i];
			check->table[t][i] = crc >> 8 ^ check->table[0][crc & 255];
		}
	}
}

static uint32_t load_u32(const uint8_t *bytes)
{
	uint32_t value;
	memcpy(&value, bytes, sizeof(value));
	return value;
}

uint32_t stoup_gzip_crc32(
	const struct stoup_gzip_check *check, uint32_t crc, const uint8_t *bytes, size_t len)
{
	const uint32_t(*t)[256] = check->table;
	crc = ~crc;
	for (; len >= 8; bytes += 8, len -= 8) {
		uint32_t lo = load_u32(bytes) ^ crc;
		uint32_t hi = load_u32(bytes + 4);
		crc = t[7][lo & 255] ^ t[6][lo >> 8 & 255] ^ t[5][lo >> 16 & 255] ^ t[4][lo >> 24] ^
		      t[3][hi & 255] ^ t[2][hi >> 8 & 255] ^ t[1][hi >> 16 & 255] ^ t[0][hi >> 24];
	}
	for (; len > 0; bytes++, len--)
		crc = crc >> 8 ^ t[0][(crc ^ *bytes) & 255];
	return ~crc;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct stoup_gzip_check *stoup_gzip_check_create(void)
{
	struct stoup_gzip_check *check = calloc(1, sizeof(*check));
	if (check)
		fill_table(check);
	return check;
}

void stoup_gzip_check_destroy(struct stoup_gzip_check *check)
{
	free(check);
}

/* ---- trailers -------------------------------------------------------------------------------- */

void stoup_gzip_check_raw(struct stoup_gzip_check *check, const uint8_t *raw, size_t len)
{
	uint64_t done = check->scan_off > check->raw_off ? check->scan_off - check->raw_off : 0;
	if (check->raw_len + len > HISTORY_CAP) {
		/* Drop what was scanned, and if that is not enough (a flood of empty members or a
		 * giant header, neither of which holds a trailer that counts) the oldest. */
		size_t drop = done < check->raw_len ? (size_t)done : check->raw_len;
		if (check->raw_len - drop + len > HISTORY_CAP)
			drop = check->raw_len + len - HISTORY_CAP;
		memmove(check->history, check->history + drop, check->raw_len - drop);
		check->raw_off += drop;
		check->raw_len -= drop;
	}
	memcpy(check->history + check->raw_len, raw, len);
	check->raw_len += len;
}

/* Behind a trailer the unpacker stopped, or went on with a member's header. Asking this first keeps
 * data that are full of plausible lengths from costing a checksum per byte. */
static bool ends_member(const struct stoup_gzip_check *check, size_t at, size_t used_len)
{
	static const uint8_t magic[3] = {0x1f, 0x8b, 8};
	size_t next = at + TRAILER_LEN;
	return next == used_len ||
	       (used_len - next >= sizeof(magic) &&
		       memcmp(check->history + next, magic, sizeof(magic)) == 0);
}

/* Take the trailer at history[at] if it fits the block; the rest of the block then belongs to the
 * next member. Returns the bytes of the block that the member took, or -1. */
static int64_t take_trailer(
	struct stoup_gzip_check *check, size_t at, const uint8_t *block, size_t len)
{
	uint32_t have = (uint32_t)(check->stream_off - check->member_off);
	uint32_t more = load_u32(check->history + at + 4) - have;
	if (more > len)
		return -1;
	if (stoup_gzip_crc32(check, check->crc, block, more) != load_u32(check->history + at))
		return -1;
	check->crc = 0;
	check->stream_off += more;
	check->member_off = check->stream_off;
	check->member_raw = check->raw_off + at + TRAILER_LEN;
	return (int64_t)more;
}

void stoup_gzip_check_block(
	struct stoup_gzip_check *check, const uint8_t *block, size_t len, uint64_t raw_off)
{
	uint64_t end_off = check->raw_off + check->raw_len;
	if (raw_off > end_off)
		raw_off = end_off;
	if (check->scan_off < check->raw_off)
		check->scan_off = check->raw_off;
	while (check->scan_off + TRAILER_LEN <= raw_off) {
		size_t at = (size_t)(check->scan_off - check->raw_off);
		int64_t took = -1;
		if (ends_member(check, at, (size_t)(raw_off - check->raw_off)))
			took = take_trailer(check, at, block, len);
		check->scan_off += took < 0 ? 1 : TRAILER_LEN;
		block += took < 0 ? 0 : took;
		len -= took < 0 ? 0 : (size_t)took;
	}
	check->crc = stoup_gzip_crc32(check, check->crc, block, len);
	check->stream_off += len;
	/* A trailer is consumed whole, in one step: none straddles this offset. */
	check->scan_off = raw_off;
}

int stoup_gzip_check_end(
	struct stoup_gzip_check *check, uint64_t raw_off, const char *name, struct stoup_error *err)
{
	static const uint8_t nothing[1];
	stoup_gzip_check_block(check, nothing, 0, raw_off);
	if (check->member_raw == raw_off && check->member_off == check->stream_off)
		return 0;
	return stoup_error_set(err, -EBADMSG,
		"%s: checksum or length of the gzip member that begins at offset %llu does not "
		"match: the "
		"file is damaged",
		name, (unsigned long long)check->member_raw);
}
