/* SPDX-License-Identifier: Apache-2.0 */
/* jsonl_lines.c - see jsonl_lines.h. */
#include "producer/jsonl_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_LEN (1u << 20)

/* UTF-16 or UTF-32, with a mark or with zeros around an ASCII character. */
static int is_wide(const uint8_t *bytes, size_t len)
{
	if (len < 2)
		return 0;
	return (bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff) ||
	       (bytes[0] == 0 && bytes[1] != 0) || (bytes[0] != 0 && bytes[1] == 0) ||
	       (len >= 4 && bytes[0] == 0 && bytes[1] == 0 &&
		       (bytes[2] == 0xfe || (bytes[2] == 0 && bytes[3] != 0)));
}

int stoup_lines_init(struct stoup_lines *lines, struct stoup_input *input, struct stoup_error *err)
{
	static const uint8_t mark[] = {0xef, 0xbb, 0xbf};
	const uint8_t *bytes;
	int64_t n;

	*lines = (struct stoup_lines){.input = input};
	n = stoup_input_peek(input, 4, &bytes, err);
	if (n < 0)
		return (int)n;
	if (is_wide(bytes, (size_t)n))
		return stoup_error_set(err, -EBADMSG,
			"%s is UTF-16 or UTF-32, not UTF-8 (convert: iconv -f UTF-16 -t UTF-8)",
			stoup_input_name(input));
	lines->cap = CHUNK_LEN;
	lines->buf = malloc(lines->cap);
	if (!lines->buf)
		return stoup_error_set(
			err, -ENOMEM, "no memory to read %s", stoup_input_name(input));
	if (n >= 3 && memcmp(bytes, mark, sizeof(mark)) == 0) {
		n = stoup_input_read(input, lines->buf, sizeof(mark), err);
		if (n < 0)
			return (int)n;
		lines->file_off = (uint64_t)n;
	}
	return 0;
}

/* Room behind buf[..to): move what is left to the front, or take more. */
static int room(struct stoup_lines *lines, struct stoup_error *err)
{
	char *buf;

	if (lines->from > 0) {
		memmove(lines->buf, lines->buf + lines->from, lines->to - lines->from);
		lines->to -= lines->from;
		lines->from = 0;
	}
	if (lines->to < lines->cap / 2)
		return 0;
	buf = realloc(lines->buf, lines->cap * 2);
	if (!buf)
		return stoup_error_set(err, -ENOMEM, "no memory for line %" PRIu64 " of %s",
			lines->number + 1, stoup_input_name(lines->input));
	lines->buf = buf;
	lines->cap *= 2;
	return 0;
}

static int fill(struct stoup_lines *lines, struct stoup_error *err)
{
	int64_t n;
	int rc = room(lines, err);

	if (rc < 0)
		return rc;
	n = stoup_input_read(
		lines->input, lines->buf + lines->to, lines->cap - lines->to, &lines->err);
	if (n > 0)
		lines->to += (size_t)n;
	else
		lines->end = n < 0 ? (int)n : 1;
	return 0;
}

/* The last bytes without a line end, or the end. */
static int last(struct stoup_lines *lines, struct stoup_line *ret, struct stoup_error *err)
{
	size_t len = lines->to - lines->from;

	if (len == 0 || lines->end < 0) {
		if (lines->end < 0 && err)
			*err = lines->err;
		return lines->end < 0 ? lines->end : 0;
	}
	*ret = (struct stoup_line){.text = lines->buf + lines->from,
		.len = len,
		.number = ++lines->number,
		.file_off = lines->file_off};
	lines->from = lines->to;
	lines->file_off += len;
	return 1;
}

int stoup_lines_next(struct stoup_lines *lines, struct stoup_line *ret, struct stoup_error *err)
{
	size_t seen = 0; /* bytes behind `from` without a line end */

	for (;;) {
		char *text = lines->buf + lines->from;
		size_t left = lines->to - lines->from, len;
		char *found = left > seen ? memchr(text + seen, '\n', left - seen) : NULL;
		int rc;

		len = found ? (size_t)(found - text) : left;
		if (len > STOUP_LINE_LEN_CAP)
			return stoup_error_set(err, -EMSGSIZE,
				"%s: line %" PRIu64
				" is longer than %u MiB: is it text, one message a line?",
				stoup_input_name(lines->input), lines->number + 1,
				STOUP_LINE_LEN_CAP >> 20);
		if (found) {
			lines->from += len + 1;
			*ret = (struct stoup_line){.text = text,
				.len = len > 0 && text[len - 1] == '\r' ? len - 1 : len,
				.number = ++lines->number,
				.file_off = lines->file_off,
				.ended = 1};
			lines->file_off += len + 1;
			return 1;
		}
		if (lines->end)
			return last(lines, ret, err);
		seen = left;
		rc = fill(lines, err);
		if (rc < 0)
			return rc;
	}
}

void stoup_lines_fini(struct stoup_lines *lines)
{
	free(lines->buf);
	lines->buf = NULL;
}
