/* SPDX-License-Identifier: Apache-2.0 */
/* lobster_book.c - see lobster_book.h. */
#include "producer/lobster_book.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/preset.h"

#define LINE_CAP (64u << 10) /* of a row: 127 levels have 8 KiB */

/* Lines of a stream. */
struct lines {
	struct stoup_input *input;
	char *buffer; /* LINE_CAP bytes */
	size_t at, end;
	uint64_t line;
	int ended;
};

struct stoup_lobster_book {
	struct lines book, messages;
	char *row; /* the joined row, LINE_CAP + the time */
	size_t row_at, row_len;
	int ended;
};

int stoup_lobster_book_is(const struct stoup_csv_options *options, const char *path)
{
	if (!stoup_preset_wanted(options))
		return 0;
	if (options->format)
		return strcmp(options->format, stoup_preset_lobster_book.name) == 0;
	return stoup_preset_path_is(&stoup_preset_lobster_book, path);
}

/* ---- lines ---------------------------------------------------------------------------------------- */

/* The next line without its end: 1, or 0 at the end. */
static int line_next(
	struct lines *lines, const char **ret, size_t *ret_len, struct stoup_error *err)
{
	for (;;) {
		char *start = lines->buffer + lines->at;
		char *newline = memchr(start, '\n', lines->end - lines->at);
		int64_t got;

		if (newline || (lines->ended && lines->end > lines->at)) {
			size_t len = newline ? (size_t)(newline - start) : lines->end - lines->at;

			lines->at += len + (newline != NULL);
			lines->line++;
			*ret = start;
			*ret_len = len - (len && start[len - 1] == '\r');
			return 1;
		}
		if (lines->ended)
			return 0;
		memmove(lines->buffer, start, lines->end - lines->at);
		lines->end -= lines->at;
		lines->at = 0;
		if (lines->end == LINE_CAP)
			return stoup_error_set(err, -EMSGSIZE,
				"%s: line %llu is longer than %u bytes",
				stoup_input_name(lines->input), (unsigned long long)lines->line + 1,
				LINE_CAP);
		got = stoup_input_read(
			lines->input, lines->buffer + lines->end, LINE_CAP - lines->end, err);
		if (got < 0)
			return (int)got;
		lines->ended = got == 0;
		lines->end += (size_t)got;
	}
}

/* ---- the pair ------------------------------------------------------------------------------------- */

/* "orderbook" in the last part of the name becomes "message". */
char *stoup_lobster_book_messages(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *mark = strstr(slash ? slash : path, "orderbook_");
	size_t len = strlen(path);
	char *out = mark ? malloc(len) : NULL;

	if (out)
		sprintf(out, "%.*smessage_%s", (int)(mark - path), path,
			mark + strlen("orderbook_"));
	return out;
}

int stoup_lobster_book_open(
	struct stoup_input *input, struct stoup_lobster_book **ret, struct stoup_error *err)
{
	const char *name = stoup_input_name(input);
	char *path = stoup_lobster_book_messages(name);
	struct stoup_lobster_book *book;
	int rc;

	if (!path)
		return stoup_error_set(err, -EINVAL,
			"%s: the times of a LOBSTER book are in the message file beside it, which is found "
			"by name: ..._orderbook_10.csv has ..._message_10.csv",
			name);
	book = calloc(1, sizeof(*book));
	rc = book ? 0 : -ENOMEM;
	if (book) {
		book->book = (struct lines){.input = input, .buffer = malloc(LINE_CAP)};
		book->messages.buffer = malloc(LINE_CAP);
		book->row = malloc(2 * LINE_CAP);
		if (!book->book.buffer || !book->messages.buffer || !book->row)
			rc = -ENOMEM;
	}
	if (rc < 0)
		(void)stoup_error_set(err, rc, "no memory to read %s", name);
	else
		rc = stoup_input_open(path, &book->messages.input, err);
	free(path);
	if (rc < 0) {
		if (rc == -ENOTDIR)
			(void)stoup_error_set(err, rc,
				"%s: the times of a LOBSTER book are in the message file beside it: unpack "
				"the archive, and give the files",
				name);
		else if (rc != -ENOMEM)
			stoup_error_prefix(err, "%s needs its message file", name);
		stoup_lobster_book_close(book);
		return rc;
	}
	*ret = book;
	return 0;
}

void stoup_lobster_book_close(struct stoup_lobster_book *book)
{
	if (!book)
		return;
	stoup_input_close(book->messages.input);
	free(book->book.buffer);
	free(book->messages.buffer);
	free(book->row);
	free(book);
}

/* The last part of the path: the whole may leave no room for what is the matter. */
static int prefixed(const struct stoup_lobster_book *book, int rc, struct stoup_error *err)
{
	const char *name = stoup_input_name(book->book.input), *slash = strrchr(name, '/');

	if (err && strncmp(err->text, "line ", 5) == 0)
		stoup_error_prefix(err, "%.90s", slash ? slash + 1 : name);
	return rc;
}

static int count_error(const struct stoup_lobster_book *book, int has_book, struct stoup_error *err)
{
	if (has_book)
		return stoup_error_set(err, -EBADMSG,
			"line %llu: no message of this row: both files must have as many rows",
			(unsigned long long)book->book.line);
	return stoup_error_set(err, -EBADMSG,
		"line %llu: a message, and no row of it here: both files must have as many rows",
		(unsigned long long)book->messages.line);
}

/* Join the next rows: 1; 0 at the end of both. */
static int row_next(struct stoup_lobster_book *book, struct stoup_error *err)
{
	const char *row, *message;
	size_t row_len, message_len, time_len;
	int has_row = line_next(&book->book, &row, &row_len, err), has_message;
	const char *comma;

	if (has_row < 0)
		return has_row;
	has_message = line_next(&book->messages, &message, &message_len, err);
	if (has_message < 0)
		return has_message;
	if (has_row != has_message)
		return count_error(book, has_row, err);
	if (!has_row)
		return 0;
	comma = memchr(message, ',', message_len);
	time_len = comma ? (size_t)(comma - message) : message_len;
	if (row_len == 0)
		return stoup_error_set(err, -EBADMSG, "line %llu: an empty row",
			(unsigned long long)book->book.line);
	memcpy(book->row, message, time_len);
	book->row[time_len] = ',';
	memcpy(book->row + time_len + 1, row, row_len);
	book->row[time_len + 1 + row_len] = '\n';
	book->row_len = time_len + row_len + 2;
	book->row_at = 0;
	return 1;
}

int64_t stoup_lobster_book_read(void *arg, void *dst, size_t len, struct stoup_error *err)
{
	struct stoup_lobster_book *book = arg;
	char *out = dst;
	size_t got = 0;

	while (got < len) {
		size_t have = book->row_len - book->row_at;

		if (have == 0) {
			struct stoup_error failure = {0};
			int rc = book->ended ? 0 : row_next(book, &failure);

			book->ended = rc <= 0;
			if (rc < 0 && err)
				*err = failure;
			if (rc < 0)
				return prefixed(book, rc, err);
			if (rc == 0)
				break;
			continue;
		}
		have = have < len - got ? have : len - got;
		memcpy(out + got, book->row + book->row_at, have);
		book->row_at += have;
		got += have;
	}
	return (int64_t)got;
}
