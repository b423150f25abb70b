/* SPDX-License-Identifier: Apache-2.0 */
/* jsonl_lines.h - an input as lines of text.
 *
 *      input --chunks--> buffer: [line\n][line\r\n][li...    a line that goes on moves to the front
 *
 * A byte order mark of UTF-8 is passed over, UTF-16 and UTF-32 are named and refused.
 *
 * Invariant: a line is a view of the buffer, valid until the next call. Lines that are whole come before
 * the error of a file that is cut or damaged behind them.
 *
 * Concurrency: one thread at a time. Memory: a chunk, and the longest line so far.
 */
#ifndef STOUP_PRODUCER_JSONL_LINES_H
#define STOUP_PRODUCER_JSONL_LINES_H

#include <stddef.h>
#include <stdint.h>
#include "producer/input.h"

#define STOUP_LINE_LEN_CAP (16u << 20) /* bytes: four times the longest message that is stored */

struct stoup_line {
	const char *text; /* without its end (LF, CR LF) */
	size_t len;
	uint64_t number; /* 1-based */
	uint64_t file_off;
	int ended; /* a line end follows; 0: the last one, perhaps cut */
};

struct stoup_lines {
	struct stoup_input *input;
	char *buf;
	size_t cap, from, to; /* buf[from..to) is not yet taken */
	uint64_t number, file_off;
	int end; /* the input ended: 1, or with an error: its code */
	struct stoup_error err;
};

/* Begin with an open input, which stays the caller's. 0; -ENOMEM; -EBADMSG for UTF-16; or what reading
 * gives. stoup_lines_fini ends it in any case. */
int stoup_lines_init(struct stoup_lines *lines, struct stoup_input *input, struct stoup_error *err);

/* The next line: 1; 0 at the end; -EMSGSIZE for one that is too long; or what reading gives. */
int stoup_lines_next(struct stoup_lines *lines, struct stoup_line *ret, struct stoup_error *err);

void stoup_lines_fini(struct stoup_lines *lines);

#endif
