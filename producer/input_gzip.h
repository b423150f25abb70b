/* SPDX-License-Identifier: Apache-2.0 */
/* input_gzip.h - check the checksums of a gzip stream that another one unpacks.
 *
 *      raw      [hdr|deflate|crc32|length][hdr|deflate|crc32|length]
 *                            ^ p                              ^ p
 *      stream   [-- member --------------][-- member ------------]
 *               ^ member_off              ^ member_off + length
 *
 * libarchive drops each member's trailer unread. Where a trailer lies is not told, but it can be
 * found: the unpacker consumes it in the same step in which it gives the member's last bytes, so it
 * is one of the few raw positions of that step whose `length` names a stream offset inside of it;
 * and of those the one whose crc32 is that of the stream since member_off.
 *
 * Invariant: member_off is the end of the last member whose trailer was found; if the last one of
 * the file is not where unpacking ended, some checksum or length is wrong.
 *
 * Concurrency: none; plain memory.
 */
#ifndef STOUP_PRODUCER_INPUT_GZIP_H
#define STOUP_PRODUCER_INPUT_GZIP_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

struct stoup_gzip_check;

/* NULL: no memory. */
struct stoup_gzip_check *stoup_gzip_check_create(void);
void stoup_gzip_check_destroy(struct stoup_gzip_check *check);

/* `len` further raw bytes have been given to the unpacker. */
void stoup_gzip_check_raw(struct stoup_gzip_check *check, const uint8_t *raw, size_t len);

/* The unpacker has given `len` further bytes and consumed all raw bytes before `raw_off`. */
void stoup_gzip_check_block(
	struct stoup_gzip_check *check, const uint8_t *block, size_t len, uint64_t raw_off);

/* The unpacker is at its end and has consumed all raw bytes before `raw_off`. 0, or -EBADMSG with a
 * text that names file and member. */
int stoup_gzip_check_end(struct stoup_gzip_check *check, uint64_t raw_off, const char *name,
	struct stoup_error *err);

/* CRC-32 (IEEE) of `len` more bytes; `crc` is 0 at first. */
uint32_t stoup_gzip_crc32(
	const struct stoup_gzip_check *check, uint32_t crc, const uint8_t *bytes, size_t len);

#endif
