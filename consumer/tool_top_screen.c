/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top_screen.c - cells, and texts in them: see tool_top.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "consumer/tool_top.h"

#define CUT '~' /* where a text was cut; of each character set */

/* ---- characters ------------------------------------------------------------------------------- */

/* Length of the UTF-8 sequence that a byte begins, 0: none. */
static uint32_t sequence_len(unsigned char first)
{
	return first < 0x80   ? 1
	       : first < 0xC2 ? 0
	       : first < 0xE0 ? 2
	       : first < 0xF0 ? 3
	       : first < 0xF5 ? 4
	                      : 0;
}

/* The code point at *at, which moves behind it; '?' for a byte that is none. */
static uint32_t code_point(const char **at)
{
	static const uint32_t lowest[5] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *text = (const unsigned char *)*at;
	uint32_t len = sequence_len(text[0]), point = text[0];

	(*at)++;
	if (len == 1)
		return point;
	if (len == 0)
		return '?';
	point &= 0xFFu >> (len + 1);
	for (uint32_t i = 1; i < len; i++) {
		if ((text[i] & 0xC0) != 0x80)
			return '?';
		point = point << 6 | (text[i] & 0x3F);
	}
	if (point < lowest[len] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
		return '?';
	*at += len - 1;
	return point;
}

/* What is shown for it, and in how many columns. */
static uint32_t shown(const struct stoup_top_screen *screen, const char **at, uint32_t *ret_width)
{
	uint32_t point = code_point(at);
	int width = 1;

	if (point < ' ' || point == 127 || (point > 127 && !screen->utf8))
		point = '?';
	else if (point > 127)
		width = wcwidth((wchar_t)point);
	if (width <= 0) { /* controls, marks that join or turn what stands beside them */
		point = '?';
		width = 1;
	}
	*ret_width = (uint32_t)width;
	return point;
}

uint32_t stoup_top_glyph_text(uint32_t glyph, char dst[STOUP_TOP_GLYPH_CAP])
{
	uint32_t len = glyph == 0        ? 0
	               : glyph < 0x80    ? 1
	               : glyph < 0x800   ? 2
	               : glyph < 0x10000 ? 3
	                                 : 4;

	dst[len] = 0;
	if (len == 1)
		dst[0] = (char)glyph;
	if (len < 2)
		return len;
	for (uint32_t i = len - 1; i > 0; i--) {
		dst[i] = (char)(0x80 | (glyph & 0x3F));
		glyph >>= 6;
	}
	dst[0] = (char)((0xF00u >> len & 0xF0) | glyph);
	return len;
}

/* ---- screens ---------------------------------------------------------------------------------- */

int stoup_top_screen_init(struct stoup_top_screen *screen, uint32_t rows, uint32_t cols, int utf8)
{
	rows = rows < STOUP_TOP_ROWS_CAP ? rows : STOUP_TOP_ROWS_CAP;
	cols = cols < STOUP_TOP_COLS_CAP ? cols : STOUP_TOP_COLS_CAP;
	screen->cells = calloc((size_t)rows * cols + 1, sizeof(*screen->cells));
	if (!screen->cells)
		return -ENOMEM;
	screen->rows = rows;
	screen->cols = cols;
	screen->utf8 = utf8;
	for (size_t i = 0; i < (size_t)rows * cols; i++)
		screen->cells[i].glyph = ' ';
	return 0;
}

void stoup_top_screen_fini(struct stoup_top_screen *screen)
{
	free(screen->cells);
	memset(screen, 0, sizeof(*screen));
}

void stoup_top_glyph(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t glyph,
	enum stoup_top_style style)
{
	struct stoup_top_cell *cell;

	if (row >= screen->rows || col >= screen->cols)
		return;
	cell = &screen->cells[(size_t)row * screen->cols + col];
	cell->glyph = glyph;
	cell->style = (uint8_t)style;
}

void stoup_top_row_style(struct stoup_top_screen *screen, uint32_t row, enum stoup_top_style style)
{
	for (uint32_t col = 0; row < screen->rows && col < screen->cols; col++)
		screen->cells[(size_t)row * screen->cols + col].style = (uint8_t)style;
}

void stoup_top_screen_print(const struct stoup_top_screen *screen, FILE *out)
{
	char text[STOUP_TOP_GLYPH_CAP];

	for (uint32_t row = 0; row < screen->rows; row++) {
		const struct stoup_top_cell *cells = &screen->cells[(size_t)row * screen->cols];
		uint32_t end = screen->cols;

		while (end > 0 && cells[end - 1].glyph == ' ')
			end--;
		for (uint32_t col = 0; col < end; col++) {
			stoup_top_glyph_text(cells[col].glyph, text);
			fputs(text, out);
		}
		fputc('\n', out);
	}
}

/* ---- texts ------------------------------------------------------------------------------------ */

uint32_t stoup_top_width(const struct stoup_top_screen *screen, const char *text)
{
	uint32_t sum = 0, width;

	while (*text) {
		shown(screen, &text, &width);
		sum += width;
	}
	return sum;
}

/* `head` columns of it, CUT, and its end from column `tail` on. */
static uint32_t put_cut(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t head,
	uint32_t tail, enum stoup_top_style style, const char *text)
{
	uint32_t at = 0, width, glyph;
	int cut = 0;

	for (; *text; at += width) {
		glyph = shown(screen, &text, &width);
		if (at + width > head && at < tail) {
			if (!cut)
				stoup_top_glyph(screen, row, col++, CUT, style);
			cut = 1;
			continue;
		}
		stoup_top_glyph(screen, row, col++, glyph, style);
		if (width == 2)
			stoup_top_glyph(screen, row, col++, 0, style);
	}
	return col;
}

static uint32_t put(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t width,
	enum stoup_top_style style, const char *text, int middle)
{
	uint32_t whole = stoup_top_width(screen, text), head, tail;

	if (col >= screen->cols)
		return col;
	if (width > screen->cols - col)
		width = screen->cols - col;
	if (width == 0)
		return col;
	if (whole <= width)
		return put_cut(screen, row, col, whole, whole, style, text);
	tail = middle ? width / 2 : 0;
	head = width - 1 - tail;
	return put_cut(screen, row, col, head, whole - tail, style, text);
}

uint32_t stoup_top_put(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t width,
	enum stoup_top_style style, const char *text)
{
	return put(screen, row, col, width, style, text, 0);
}

uint32_t stoup_top_put_middle(struct stoup_top_screen *screen, uint32_t row, uint32_t col,
	uint32_t width, enum stoup_top_style style, const char *text)
{
	return put(screen, row, col, width, style, text, 1);
}

uint32_t stoup_top_putf(struct stoup_top_screen *screen, uint32_t row, uint32_t col,
	enum stoup_top_style style, const char *format, ...)
{
	char text[2048];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	return stoup_top_put(screen, row, col, screen->cols, style, text);
}

/* Bytes of `text` that fit into `width` columns, up to a blank where there is one. */
static size_t fitting(const struct stoup_top_screen *screen, const char *text, uint32_t width)
{
	const char *at = text, *blank = NULL, *last;
	uint32_t sum = 0, one;

	while (*at) {
		last = at;
		if (*at == ' ')
			blank = at;
		shown(screen, &at, &one);
		if (sum + one > width)
			return blank ? (size_t)(blank - text) : (size_t)(last - text);
		sum += one;
	}
	return (size_t)(at - text);
}

uint32_t stoup_top_wrap(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t rows,
	enum stoup_top_style style, const char *text)
{
	uint32_t used = 0, width = col < screen->cols ? screen->cols - col : 0;
	char line[1024];
	size_t len;

	while (*text && used < rows && width > 1) {
		len = fitting(screen, text, width);
		/* The last row holds what is left, cut. */
		if (used + 1 == rows || len >= sizeof(line) || len == 0) {
			stoup_top_put(screen, row + used, col, width, style, text);
			return used + 1;
		}
		memcpy(line, text, len);
		line[len] = 0;
		stoup_top_put(screen, row + used++, col, width, style, line);
		text += len;
		while (*text == ' ')
			text++;
	}
	return used;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

const char *stoup_top_bytes(double bytes, char dst[STOUP_TOP_NUMBER_CAP])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(dst, STOUP_TOP_NUMBER_CAP, "%.0f B", bytes);
		return dst;
	}
	for (bytes /= 1024; bytes >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		bytes /= 1024;
	/* A hostile object may tell of more than there is. */
	snprintf(dst, STOUP_TOP_NUMBER_CAP, "%.1f %s", bytes > 99999 ? 99999 : bytes, units[unit]);
	return dst;
}

const char *stoup_top_count(double count, char dst[STOUP_TOP_NUMBER_CAP])
{
	static const char units[] = "kMGTPE";
	size_t unit = 0;

	if (count < 1e7) {
		snprintf(dst, STOUP_TOP_NUMBER_CAP, "%.0f", count);
		return dst;
	}
	for (count /= 1000; count >= 999.95 && unit + 2 < sizeof(units); unit++)
		count /= 1000;
	snprintf(dst, STOUP_TOP_NUMBER_CAP, "%.1f%c", count, units[unit]);
	return dst;
}
