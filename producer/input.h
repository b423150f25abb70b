/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - the bytes of a file that is to be imported, whatever it is packed with.
 *
 *      file, pipe, "-"  --read-->  by the first bytes:
 *                                    28 B5 2F FD, 5x 2A 4D 18   zstd   (libzstd)
 *                                    04 22 4D 18                lz4    (liblz4)
 *                                    1F 8B                      gzip   \
 *                                    FD 37 7A 58 5A 00          xz      | libarchive
 *                                    5D, a dictionary length    lzma    |
 *                                    50 4B 03 04                zip    /
 *                                    anything else              plain
 *                                  --stoup_input_read-->  decompressed stream
 *
 * Several frames (members) one after the other are one stream; zstd's skippable frames are passed
 * over. A zip archive must hold one file, or one of its files is opened.
 *
 * Invariant: the stream ends with 0 only if the packed file was whole and nothing followed it: a
 * cut, damaged or lengthened file ends with an error, after the bytes that were good.
 *
 * Concurrency: an input is used by one thread at a time. Two inputs share nothing.
 *
 * Limits: a zstd window, or an lzma dictionary, of at most 128 MiB (what the zstd tool accepts unasked; usual ones are 2 to
 * 8 MiB), since the decoder must hold one window. Memory otherwise stays under 2 MiB.
 */
#ifndef STOUP_PRODUCER_INPUT_H
#define STOUP_PRODUCER_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

#define STOUP_INPUT_WINDOW_LOG_CAP 27 /* 2^27 = 128 MiB */

struct stoup_input;

/* Open `path` ("-": standard input, which is not closed later) and find out how it is packed.
 * Returns 0 and an input that stoup_input_close must end, or a negative errno with text: what
 * open(2) gives, -EISDIR, -ENODATA for an empty file (not for a .bi5: an hour without ticks), -EBADMSG for a damaged start, -E2BIG for a
 * zip archive with several files (the text names them), -EPROTONOSUPPORT for Databento's old DBZ
 * and for legacy lz4. May block on a pipe. */
int stoup_input_open(const char *path, struct stoup_input **ret, struct stoup_error *err);

/* The files in a zip archive that lies on disk, in its order: 0, and the caller frees each name and the list;
 * *ret_cnt is 0 for what is no such archive, and for one that cannot be read, which opening tells. -ENOMEM. */
int stoup_input_zip_members(
	const char *path, char ***ret, uint32_t *ret_cnt, struct stoup_error *err);

/* Open the idx-th of these files, as `name` (for messages, and for who reads names). As stoup_input_open. */
int stoup_input_open_member(const char *path, uint32_t idx, const char *name,
	struct stoup_input **ret, struct stoup_error *err);

/* Read the next `len` bytes (> 0) of the decompressed stream into `buf`. Returns how many were
 * read, `len` or fewer where the stream ends or is damaged, 0 at the end of the stream. What could
 * be unpacked before the damage is returned first (zstd, lz4: all of it if the file is cut), the
 * damage by the next call and by every later one: -ENODATA for a file that ends too early,
 * -EBADMSG for damaged bytes, for garbage behind the last frame and for a failed checksum, -EFBIG
 * for a zstd window beyond the limit, -E2BIG as above (a zip archive from a pipe, which is read
 * front to back: its directory is not looked at), -ENOMEM, or what read(2) gives. The texts name
 * file and offset. A checksum stands behind what it covers: bytes that were returned are known to
 * be right only when 0 was. May block on disk or pipe. */
int64_t stoup_input_read(struct stoup_input *input, void *buf, size_t len, struct stoup_error *err);

/* Look at the next bytes of the stream without taking them: up to `len`, at most 4096. Returns how
 * many there are and sets `*ret` to them (valid until the next call on this input), 0 at the end,
 * or an error as stoup_input_read. Fewer than asked for: the stream ends there. */
int64_t stoup_input_peek(
	struct stoup_input *input, size_t len, const uint8_t **ret, struct stoup_error *err);

/* Name for messages: the path as given, or "standard input". Valid as long as the input. */
const char *stoup_input_name(const struct stoup_input *input);

/* How the file is packed: "plain", "zstd", "gzip", "xz", "lzma", "lz4", "zip". Static text. */
const char *stoup_input_packing(const struct stoup_input *input);

/* Bytes of the file as it lies on disk that have been consumed (where libarchive unpacks: up to one
 * read of 256 KiB more), and its length (0: unknown, a pipe): for progress. */
uint64_t stoup_input_file_off(const struct stoup_input *input);
uint64_t stoup_input_file_len(const struct stoup_input *input);

/* Offset in the decompressed stream of the byte that the next read returns. */
uint64_t stoup_input_stream_off(const struct stoup_input *input);

/* End an input and free it; NULL is allowed. */
void stoup_input_close(struct stoup_input *input);

#endif
