/* SPDX-License-Identifier: Apache-2.0 */
/* input_internal.h - what the decoders behind stoup_input share: the raw file and their interface.
 *
 *      fd --fill--> raw buffer --decoder.read--> caller's buffer
 *                   [pos .. end)  off = file offset of buf[pos]
 *
 * Invariant: raw.off + (end - pos) is the file offset of the descriptor, as long as nobody seeks.
 */
#ifndef STOUP_PRODUCER_INPUT_INTERNAL_H
#define STOUP_PRODUCER_INPUT_INTERNAL_H

#include <stdbool.h>
#include "producer/input.h"

#define STOUP_INPUT_RAW_CAP  (256u * 1024u) /* one read(2): large enough to amortise its cost */
#define STOUP_INPUT_PEEK_CAP 4096u

struct stoup_input_raw {
	const char *name;
	int fd;
	bool is_seekable;
	int64_t member; /* of a zip: the file to read; -1: its only one */
	bool is_eof;
	uint64_t file_len; /* 0: unknown */
	uint64_t off;
	size_t pos;
	size_t end;
	uint8_t *buf; /* STOUP_INPUT_RAW_CAP bytes */
};

/* One way of unpacking. `read` returns 1 to `len` bytes, 0 at the end of the stream, or a negative
 * errno with text; it is not called again after 0 or an error. */
struct stoup_input_decoder {
	const char *packing;
	int (*open)(struct stoup_input_raw *raw, void **ret, struct stoup_error *err);
	int64_t (*read)(void *state, void *buf, size_t len, struct stoup_error *err);
	void (*close)(void *state);
};

extern const struct stoup_input_decoder stoup_input_zstd;
extern const struct stoup_input_decoder stoup_input_lz4;
extern const struct stoup_input_decoder stoup_input_gzip;
extern const struct stoup_input_decoder stoup_input_xz;
extern const struct stoup_input_decoder stoup_input_lzma;
extern const struct stoup_input_decoder stoup_input_zip;

/* Have at least `len` bytes in the buffer unless the file ends before. Returns how many there are
 * (maybe more than `len`), or a negative errno with text. */
int64_t stoup_input_raw_need(struct stoup_input_raw *raw, size_t len, struct stoup_error *err);

/* input_archive.c: as stoup_input_zip_members, of an open file. */
int stoup_input_zip_list(
	struct stoup_input_raw *raw, char ***ret, uint32_t *ret_cnt, struct stoup_error *err);

/* Take `len` bytes that are in the buffer. */
void stoup_input_raw_take(struct stoup_input_raw *raw, size_t len);

#endif
