/* SPDX-License-Identifier: Apache-2.0 */
/* csv_cut.c - see csv_cut.h. */
#include "producer/csv_cut.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A piece without the end of a row is handed on when it is longer than any row may be: its reader says so. */
#define PIECE_CAP (2u * STOUP_CSV_ROW_CAP)

struct stoup_csv_cut {
	stoup_csv_read_fn *read;
	void *source;
	char *rest; /* what was read behind the last piece */
	size_t rest_len;
	uint64_t line, file_off; /* of the rest */
	int ended;
	int rc; /* reading failed behind the rest */
	struct stoup_error err;
};

int stoup_csv_cut_create(
	stoup_csv_read_fn *read, void *source, struct stoup_csv_cut **ret, struct stoup_error *err)
{
	struct stoup_csv_cut *cut = calloc(1, sizeof(*cut));

	if (!cut)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	cut->read = read;
	cut->source = source;
	cut->line = 1;
	*ret = cut;
	return 0;
}

void stoup_csv_cut_destroy(struct stoup_csv_cut *cut)
{
	if (!cut)
		return;
	free(cut->rest);
	free(cut);
}

/* Length up to the last line end that is outside of quotes; 0: there is none. */
static size_t rows_len(const char *text, size_t len)
{
	const char *at = text, *end = text + len;
	size_t last = 0;

	for (;;) {
		const char *quote = memchr(at, '"', (size_t)(end - at));
		const char *bare_end = quote ? quote : end;
		const char *newline = memrchr(at, '\n', (size_t)(bare_end - at));

		if (newline)
			last = (size_t)(newline - text) + 1;
		if (!quote)
			return last;
		quote = memchr(quote + 1, '"', (size_t)(end - quote - 1));
		if (!quote)
			return last;
		at = quote + 1;
	}
}

static uint64_t line_cnt(const char *text, size_t len)
{
	const char *at = text, *end = text + len;
	uint64_t cnt = 0;

	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		cnt++;
		at++;
	}
	return cnt;
}

/* Fill up to `cap` bytes. An error ends the stream: it is told behind the rows before it. */
static void read_full(struct stoup_csv_cut *cut, char *text, size_t *len, size_t cap)
{
	while (*len < cap && !cut->ended) {
		int64_t got = cut->read(cut->source, text + *len, cap - *len, &cut->err);

		if (got < 0)
			cut->rc = (int)got;
		else
			*len += (size_t)got;
		cut->ended = got <= 0;
	}
}

/* How much of what was read is the piece; 0: not enough was read to tell. At the end of the stream what is
 * left is a row, too, unless the stream was cut short there. */
static size_t piece_of(const struct stoup_csv_cut *cut, const char *text, size_t len)
{
	size_t whole = cut->ended && cut->rc == 0 ? len : rows_len(text, len);

	return whole == 0 && len > PIECE_CAP ? len : whole;
}

/* Keep what is behind the piece. */
static int rest_keep(struct stoup_csv_cut *cut, const char *text, size_t len)
{
	char *rest = len > 0 ? malloc(len) : NULL;

	if (len > 0 && !rest)
		return -ENOMEM;
	if (len > 0)
		memcpy(rest, text, len);
	free(cut->rest);
	cut->rest = rest;
	cut->rest_len = len;
	return 0;
}

int stoup_csv_cut_next(
	struct stoup_csv_cut *cut, struct stoup_csv_piece *ret, struct stoup_error *err)
{
	size_t len = cut->rest_len, cap = len, piece_len;
	char *text = NULL;

	do {
		char *grown = realloc(text, cap += STOUP_CSV_PIECE_LEN);

		if (!grown) {
			free(text);
			return stoup_error_set(err, -ENOMEM, "out of memory");
		}
		if (!text && len > 0)
			memcpy(grown, cut->rest, len);
		text = grown;
		read_full(cut, text, &len, cap);
		piece_len = piece_of(cut, text, len);
	} while (piece_len == 0 && !cut->ended);
	if (piece_len == 0) {
		free(text);
		return cut->rc < 0 ? stoup_error_set(err, cut->rc, "%s", cut->err.text) : 0;
	}
	if (rest_keep(cut, text + piece_len, len - piece_len) < 0) {
		free(text);
		return stoup_error_set(err, -ENOMEM, "out of memory");
	}
	*ret = (struct stoup_csv_piece){text, piece_len, cut->line, cut->file_off};
	cut->line += line_cnt(text, piece_len);
	cut->file_off += piece_len;
	return 1;
}
