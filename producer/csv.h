/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - rows and fields of a delimited text (RFC 4180), from a stream, in bounded memory.
 *
 *      buffer   |....row....\n|....row....\n|....cut|            |
 *                              ^row_off            ^fill_len     ^cap
 *               the cut row moves to the front when more is read
 *
 * A field is bare or in double quotes, where it may hold delimiters, line ends and "" for a quote.
 * Lines end with LF or CR LF, the last one also without. A UTF-8 mark at the start is passed over,
 * lines without any character are skipped.
 *
 * Invariant: the fields of a row are the bytes of the file, unescaped in place; what is not in the
 * grammar (a quote in a bare field, bytes behind a closing quote, an unclosed quote, NUL bytes,
 * UTF-16) is an error with its line, never a guess.
 *
 * Concurrency: one reader, one thread. Fields are valid until the next call.
 * Limits: a row of STOUP_CSV_ROW_CAP bytes and STOUP_CSV_COLUMN_CAP columns, so that an unclosed
 * quote does not swallow a file of gigabytes.
 */
#ifndef STOUP_PRODUCER_CSV_H
#define STOUP_PRODUCER_CSV_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

#define STOUP_CSV_ROW_CAP    (1u << 20)
#define STOUP_CSV_COLUMN_CAP 4096u

/* Where the bytes come from: returns how many were written to `dst` (0: the end), or a negative
 * errno with text. stoup_input_read fits. */
typedef int64_t stoup_csv_read_fn(void *source, void *dst, size_t len, struct stoup_error *err);

struct stoup_csv_field {
	const char *text; /* not NUL-terminated */
	uint32_t len;
	uint32_t quoted;
};

struct stoup_csv_row {
	const struct stoup_csv_field *fields;
	uint32_t field_cnt; /* at least 1 */
	uint64_t line;      /* 1-based line of the file where the row starts */
	uint64_t file_off;  /* bytes into the stream, likewise */
};

struct stoup_csv;

/* 0; -EINVAL for a delimiter that cannot be one (a quote, CR, LF, a letter, digit, '.', '-', '+'),
 * -ENOMEM. `source` must outlive the reader. */
int stoup_csv_create(stoup_csv_read_fn *read, void *source, char delimiter, struct stoup_csv **ret,
	struct stoup_error *err);

/* The next row: 1; 0 at the end; -EBADMSG for a text outside the grammar, -EMSGSIZE for a row
 * beyond the limits (texts begin with "line N"), or what `read` gave. After an error only destroy
 * is allowed. */
int stoup_csv_next(struct stoup_csv *csv, struct stoup_csv_row *ret, struct stoup_error *err);

/* Go on with another part of the same text, which begins with a row at this line and offset: what `read`
 * gives from now on. No mark is looked for. For a reader that came to its end, or has read nothing. */
void stoup_csv_restart(struct stoup_csv *csv, uint64_t line, uint64_t file_off);

/* Did the last row end without a line end? */
int stoup_csv_unended(const struct stoup_csv *csv);

/* Copy a row and its texts into one block on the heap, which free(3) ends; NULL without memory. */
struct stoup_csv_row *stoup_csv_row_copy(const struct stoup_csv_row *row);

/* NULL is allowed. */
void stoup_csv_destroy(struct stoup_csv *csv);

#endif
