/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - rows and fields of a delimited text (see csv.h).
 *
 * Two paths: a line without any quote, found with memchr, is cut at its delimiters in one pass over
 * its bytes; a line with a quote goes through the quoted path, which also finds the row's real end
 * (a quoted field may hold line ends) and removes the quotes in place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/csv.h"

/* Two rows of the greatest length: what is read at once is at least one row's worth. */
#define BUFFER_CAP (2u * STOUP_CSV_ROW_CAP)

static const char text_nul[] =
	"line %llu has a NUL byte: not a text file, or UTF-16 (convert: iconv -f UTF-16 -t UTF-8)";

struct stoup_csv {
	stoup_csv_read_fn *read;
	void *source;
	char *buffer;
	size_t row_off;    /* of the next row in the buffer */
	size_t fill_len;   /* bytes in the buffer */
	uint64_t base_off; /* stream offset of the buffer's first byte */
	uint64_t line;     /* of the next row */
	int started;
	int ended;   /* the source has no more */
	int unended; /* the last line ended with the file */
	char delimiter;
	struct stoup_csv_field fields[STOUP_CSV_COLUMN_CAP];
};

/* ---- life ------------------------------------------------------------------------------------ */

static int delimiter_valid(char c)
{
	static const char not [] = "\"\r\n.-+:";

	return c != '\0' && !strchr(not, c) && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
	       !(c >= 'A' && c <= 'Z');
}

int stoup_csv_create(stoup_csv_read_fn *read, void *source, char delimiter, struct stoup_csv **ret,
	struct stoup_error *err)
{
	struct stoup_csv *csv;

	if (!delimiter_valid(delimiter))
		return stoup_error_set(err, -EINVAL,
			"'%c' cannot separate columns; use a comma, semicolon, tab, blank or '|'",
			delimiter > ' ' ? delimiter : '?');
	csv = calloc(1, sizeof *csv);
	if (csv)
		csv->buffer = malloc(BUFFER_CAP);
	if (!csv || !csv->buffer) {
		free(csv);
		return stoup_error_set(err, -ENOMEM, "out of memory");
	}
	csv->read = read;
	csv->source = source;
	csv->delimiter = delimiter;
	csv->line = 1;
	*ret = csv;
	return 0;
}

void stoup_csv_destroy(struct stoup_csv *csv)
{
	if (!csv)
		return;
	free(csv->buffer);
	free(csv);
}

void stoup_csv_restart(struct stoup_csv *csv, uint64_t line, uint64_t file_off)
{
	csv->row_off = csv->fill_len = 0;
	csv->base_off = file_off;
	csv->line = line;
	csv->started = 1;
	csv->ended = 0;
}

/* ---- buffer ---------------------------------------------------------------------------------- */

/* Move the unread bytes to the front and read behind them. 0, or a negative errno. */
static int fill(struct stoup_csv *csv, struct stoup_error *err)
{
	size_t keep_len = csv->fill_len - csv->row_off;
	int64_t got;

	if (csv->row_off) {
		memmove(csv->buffer, csv->buffer + csv->row_off, keep_len);
		csv->base_off += csv->row_off;
		csv->row_off = 0;
		csv->fill_len = keep_len;
	}
	got = csv->read(csv->source, csv->buffer + csv->fill_len, BUFFER_CAP - csv->fill_len, err);
	if (got < 0)
		return (int)got;
	csv->ended = got == 0;
	csv->fill_len += (size_t)got;
	return 0;
}

/* Read the first bytes, pass over a UTF-8 mark, refuse UTF-16. */
static int start(struct stoup_csv *csv, struct stoup_error *err)
{
	const unsigned char *bytes = (const unsigned char *)csv->buffer;

	while (csv->fill_len < 3 && !csv->ended) {
		int rc = fill(csv, err);

		if (rc)
			return rc;
	}
	csv->started = 1;
	if (csv->fill_len >= 2 &&
		((bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff)))
		return stoup_error_set(err, -EBADMSG,
			"line 1: the text is UTF-16; convert it (iconv -f UTF-16 -t UTF-8)");
	if (csv->fill_len >= 3 && bytes[0] == 0xef && bytes[1] == 0xbb && bytes[2] == 0xbf)
		csv->row_off = 3;
	return 0;
}

static int too_long(const struct stoup_csv *csv, struct stoup_error *err)
{
	return stoup_error_set(err, -EMSGSIZE,
		"line %llu: the row that starts here is longer than %u bytes; is a quote not "
		"closed, or "
		"is this not a table?",
		(unsigned long long)csv->line, STOUP_CSV_ROW_CAP);
}

/* A text whose lines end with CR alone is one line, and its first one has CRs. */
static int only_cr(const struct stoup_csv *csv, struct stoup_error *err)
{
	return stoup_error_set(err, -EBADMSG,
		"line %llu: a CR inside the line: do lines end with CR alone? convert it (tr '\\r' "
		"'\\n')",
		(unsigned long long)csv->line);
}

/* Find the end of the next line: its bytes are [*ret, *ret + *ret_len) with the line end taken off,
 * and `row_off` is behind it. 1; 0 at the end of the stream; or a negative errno. */
static int next_line(struct stoup_csv *csv, char **ret, size_t *ret_len, struct stoup_error *err)
{
	size_t scanned = 0; /* bytes known to hold no line end */

	for (;;) {
		size_t have = csv->fill_len - csv->row_off;
		char *line = csv->buffer + csv->row_off;
		char *newline = memchr(line + scanned, '\n', have - scanned);
		int rc;

		if (newline || (csv->ended && have)) {
			size_t len = newline ? (size_t)(newline - line) : have;

			if (len > STOUP_CSV_ROW_CAP)
				return memchr(line, '\r', len - 1) ? only_cr(csv, err)
				                                   : too_long(csv, err);
			csv->row_off += len + (newline != NULL);
			csv->unended = newline == NULL;
			*ret = line;
			*ret_len = len - (len && line[len - 1] == '\r');
			return 1;
		}
		if (csv->ended)
			return 0;
		if (have > STOUP_CSV_ROW_CAP)
			return memchr(line, '\r', have) ? only_cr(csv, err) : too_long(csv, err);
		scanned = have;
		rc = fill(csv, err);
		if (rc)
			return rc;
	}
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int too_wide(const struct stoup_csv *csv, struct stoup_error *err)
{
	return stoup_error_set(err, -EMSGSIZE, "line %llu: more than %u columns",
		(unsigned long long)csv->line, STOUP_CSV_COLUMN_CAP);
}

/* Cut a line that has no quote. Returns the number of fields or a negative errno. */
static int64_t split_bare(struct stoup_csv *csv, char *line, size_t len, struct stoup_error *err)
{
	const char delimiter = csv->delimiter;
	char *field = line, *end = line + len;
	uint32_t cnt = 0;

	for (char *at = line; at < end; at++) {
		if (*at != delimiter)
			continue;
		if (cnt == STOUP_CSV_COLUMN_CAP - 1)
			return too_wide(csv, err);
		csv->fields[cnt++] = (struct stoup_csv_field){field, (uint32_t)(at - field), 0};
		field = at + 1;
	}
	csv->fields[cnt++] = (struct stoup_csv_field){field, (uint32_t)(end - field), 0};
	return cnt;
}

/* Walk over one quoted row in a buffer that may end before it does. */
enum quote_state {
	FIELD_START,
	BARE,
	QUOTED,
	QUOTE_CLOSED, /* behind a quote that closes the field or is the first of two */
};

/* Find the end of a row that starts at buffer[row_off] and holds quotes: its length with the line
 * end, or 0 if the buffer ends before it. Quotes alone decide whether an LF ends the row. */
static size_t quoted_row_len(const struct stoup_csv *csv)
{
	const char *row = csv->buffer + csv->row_off;
	const char *end = csv->buffer + csv->fill_len;
	enum quote_state state = FIELD_START;

	for (const char *at = row; at < end; at++) {
		if (state == QUOTED) {
			at = memchr(at, '"', (size_t)(end - at));
			if (!at)
				return 0;
			state = QUOTE_CLOSED;
		} else if (*at == '"') {
			state = state == BARE ? BARE : QUOTED;
		} else if (*at == '\n') {
			return (size_t)(at - row) + 1;
		} else {
			state = *at == csv->delimiter ? FIELD_START : BARE;
		}
	}
	return 0;
}

static int bad_quote(
	const struct stoup_csv *csv, uint32_t column, const char *what, struct stoup_error *err)
{
	return stoup_error_set(err, -EBADMSG, "line %llu, column %u: %s",
		(unsigned long long)csv->line, column + 1, what);
}

/* Unescape the quoted field at `*at` in place and move `*at` behind its closing quote. */
static int unquote(
	struct stoup_csv *csv, char **at, char *end, uint32_t column, struct stoup_error *err)
{
	char *text = *at + 1;
	char *out = text;
	char *in = text;

	for (;;) {
		char *quote = in < end ? memchr(in, '"', (size_t)(end - in)) : NULL;
		size_t len;

		if (!quote)
			return bad_quote(
				csv, column, "the quote that starts here is not closed", err);
		len = (size_t)(quote - in);
		memmove(out, in, len);
		out += len;
		in = quote + 1;
		if (in == end || *in != '"')
			break;
		*out++ = '"';
		in++;
	}
	csv->fields[column] = (struct stoup_csv_field){text, (uint32_t)(out - text), 1};
	*at = in;
	return 0;
}

/* Cut a row of `len` bytes without its line end. Returns the number of fields or a negative
 * errno. */
static int64_t split_quoted(struct stoup_csv *csv, char *row, size_t len, struct stoup_error *err)
{
	char *at = row, *end = row + len;
	uint32_t cnt = 0;

	for (;;) {
		char *field = at;
		int rc;

		if (cnt == STOUP_CSV_COLUMN_CAP)
			return too_wide(csv, err);
		if (at < end && *at == '"') {
			rc = unquote(csv, &at, end, cnt, err);
			if (rc)
				return rc;
			if (at < end && *at != csv->delimiter)
				return bad_quote(csv, cnt, "text behind a closing quote", err);
		} else {
			while (at < end && *at != csv->delimiter && *at != '"')
				at++;
			if (at < end && *at == '"')
				return bad_quote(csv, cnt,
					"a quote inside a field that does not start with one", err);
			csv->fields[cnt] =
				(struct stoup_csv_field){field, (uint32_t)(at - field), 0};
		}
		cnt++;
		if (at == end)
			return cnt;
		at++;
	}
}

/* The row whose first line, which has a quote, starts `first_off` bytes after the buffer's start;
 * it may go on over several lines. */
static int quoted_row(
	struct stoup_csv *csv, size_t first_off, struct stoup_csv_row *ret, struct stoup_error *err)
{
	size_t len, text_len;
	char *row;
	int64_t cnt;
	uint64_t line_cnt = 0;

	csv->row_off = first_off;
	for (;;) {
		len = quoted_row_len(csv);
		if (len || csv->ended || csv->fill_len - csv->row_off > STOUP_CSV_ROW_CAP)
			break;
		cnt = fill(csv, err);
		if (cnt)
			return (int)cnt;
	}
	if (len == 0)
		len = csv->fill_len - csv->row_off;
	if (len > STOUP_CSV_ROW_CAP)
		return too_long(csv, err);
	row = csv->buffer + csv->row_off;
	for (size_t i = 0; i < len; i++)
		line_cnt += row[i] == '\n';
	text_len = len;
	csv->unended = row[text_len - 1] != '\n';
	if (!csv->unended)
		text_len--;
	if (text_len && row[text_len - 1] == '\r')
		text_len--;
	if (memchr(row, '\0', text_len))
		return stoup_error_set(err, -EBADMSG, text_nul, (unsigned long long)csv->line);
	cnt = split_quoted(csv, row, text_len, err);
	if (cnt < 0)
		return (int)cnt;
	*ret = (struct stoup_csv_row){
		csv->fields, (uint32_t)cnt, csv->line, csv->base_off + csv->row_off};
	csv->row_off += len;
	csv->line += line_cnt;
	return 1;
}

int stoup_csv_next(struct stoup_csv *csv, struct stoup_csv_row *ret, struct stoup_error *err)
{
	char *line;
	size_t len;
	int64_t cnt;
	int rc;

	if (!csv->started) {
		rc = start(csv, err);
		if (rc)
			return rc;
	}
	for (;;) {
		rc = next_line(csv, &line, &len, err);
		if (rc <= 0)
			return rc;
		if (len)
			break;
		csv->line++;
	}
	if (memchr(line, '"', len))
		return quoted_row(csv, (size_t)(line - csv->buffer), ret, err);
	if (memchr(line, '\0', len))
		return stoup_error_set(err, -EBADMSG, text_nul, (unsigned long long)csv->line);
	if (csv->line == 1 && memchr(line, '\r', len))
		return only_cr(csv, err);
	cnt = split_bare(csv, line, len, err);
	if (cnt < 0)
		return (int)cnt;
	*ret = (struct stoup_csv_row){csv->fields, (uint32_t)cnt, csv->line,
		csv->base_off + (uint64_t)(line - csv->buffer)};
	csv->line++;
	return 1;
}

/* ---- rows --------------------------------------------------------------------------------------- */

int stoup_csv_unended(const struct stoup_csv *csv)
{
	return csv->unended;
}

struct stoup_csv_row *stoup_csv_row_copy(const struct stoup_csv_row *row)
{
	size_t len = sizeof(struct stoup_csv_row) + row->field_cnt * sizeof(struct stoup_csv_field);
	struct stoup_csv_field *fields;
	struct stoup_csv_row *copy;
	char *text;

	for (uint32_t i = 0; i < row->field_cnt; i++)
		len += row->fields[i].len + 1u;
	copy = malloc(len);
	if (!copy)
		return NULL;
	fields = (struct stoup_csv_field *)(copy + 1);
	text = (char *)(fields + row->field_cnt);
	*copy = *row;
	copy->fields = fields;
	for (uint32_t i = 0; i < row->field_cnt; i++) {
		fields[i] = row->fields[i];
		fields[i].text = text;
		memcpy(text, row->fields[i].text, row->fields[i].len);
		text[row->fields[i].len] = '\0';
		text += row->fields[i].len + 1u;
	}
	return copy;
}
