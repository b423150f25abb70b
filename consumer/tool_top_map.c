/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top_map.c - the pool as a map of cells: letters and colours, both of which tell all. See tool_top.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_top.h"

enum stoup_top_run stoup_top_run_of(const struct stoup_watch_extent *extent)
{
	if (extent->state == STOUP_BUFFER_LOADING)
		return STOUP_TOP_LOADING;
	if (extent->state == STOUP_BUFFER_DRAINING)
		return STOUP_TOP_DRAINING;
	if (extent->refs > 0)
		return STOUP_TOP_LEASED;
	return extent->used_cnt == 0 ? STOUP_TOP_UNREAD : STOUP_TOP_RESIDENT;
}

/* The bytes of one extent in each cell that it touches. */
static void extent_fill(const struct stoup_watch_extent *extent, struct stoup_top_map_cell *cells,
	uint32_t cnt, uint64_t run)
{
	enum stoup_top_run kind = stoup_top_run_of(extent);
	uint64_t off = extent->off, end = off + extent->len;

	while (off < end && off / run < cnt) {
		struct stoup_top_map_cell *cell = &cells[off / run];
		uint64_t next = (off / run + 1) * run;

		next = next < end ? next : end;
		cell->bytes[kind] += next - off;
		if (extent->refs > cell->refs)
			cell->refs = extent->refs;
		if (extent->used_cnt > cell->used)
			cell->used = extent->used_cnt;
		off = next;
	}
}

void stoup_top_map_fill(const struct stoup_watch *watch, struct stoup_top_map_cell *cells,
	uint32_t cnt, uint64_t *ret_run)
{
	uint64_t run = watch->data_len / cnt + (watch->data_len % cnt != 0);

	memset(cells, 0, cnt * sizeof(*cells));
	/* More than half of what can be counted is no pool. */
	*ret_run = watch->data_len > UINT64_MAX / 2 ? 0 : run;
	if (*ret_run == 0)
		return;
	for (uint32_t i = 0; i < watch->extent_cnt; i++)
		extent_fill(&watch->extents[i], cells, cnt, run);
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t begin = i * run, used = 0, len;

		if (begin >= watch->data_len)
			continue;
		len = watch->data_len - begin < run ? watch->data_len - begin : run;
		for (uint32_t k = STOUP_TOP_LOADING; k < STOUP_TOP_RUN_CNT; k++)
			used += cells[i].bytes[k];
		cells[i].bytes[STOUP_TOP_FREE] = used < len ? len - used : 0;
	}
}

/* ---- letters and colours ---------------------------------------------------------------------- */

struct look {
	char letter;
	enum stoup_top_style style;
	const char *name;
};

static const struct look states[STOUP_TOP_RUN_CNT] = {
	[STOUP_TOP_FREE] = {'.', STOUP_TOP_DIM, "free"},
	[STOUP_TOP_LOADING] = {'o', STOUP_TOP_YELLOW, "loading"},
	[STOUP_TOP_UNREAD] = {'u', STOUP_TOP_CYAN, "unread"},
	[STOUP_TOP_RESIDENT] = {'r', STOUP_TOP_BLUE, "resident"},
	[STOUP_TOP_LEASED] = {'L', STOUP_TOP_GREEN, "leased"},
	[STOUP_TOP_DRAINING] = {'d', STOUP_TOP_RED, "draining"},
};

static enum stoup_top_run most(const struct stoup_top_map_cell *cell)
{
	enum stoup_top_run best = STOUP_TOP_FREE;

	for (uint32_t k = 1; k < STOUP_TOP_RUN_CNT; k++)
		if (cell->bytes[k] > cell->bytes[best])
			best = (enum stoup_top_run)k;
	return best;
}

static struct look by_state(const struct stoup_top_map_cell *cell)
{
	enum stoup_top_run kind = most(cell);

	if (kind != STOUP_TOP_LEASED && cell->bytes[STOUP_TOP_LEASED] > 0)
		return (struct look){'l', STOUP_TOP_GREEN, ""};
	return states[kind];
}

/* 1 to 9, and + for more. */
static struct look by_number(uint32_t number)
{
	static const enum stoup_top_style styles[] = {STOUP_TOP_PLAIN, STOUP_TOP_BLUE,
		STOUP_TOP_CYAN, STOUP_TOP_GREEN, STOUP_TOP_GREEN, STOUP_TOP_YELLOW,
		STOUP_TOP_YELLOW, STOUP_TOP_MAGENTA, STOUP_TOP_MAGENTA, STOUP_TOP_RED,
		STOUP_TOP_RED};
	uint32_t at = number < 10 ? number : 10;

	return (struct look){"-123456789+"[at], styles[at], ""};
}

static struct look look_of(const struct stoup_top_map_cell *cell, enum stoup_top_map_mode mode)
{
	uint64_t used = 0;

	if (mode == STOUP_TOP_BY_STATE)
		return by_state(cell);
	for (uint32_t k = STOUP_TOP_LOADING; k < STOUP_TOP_RUN_CNT; k++)
		used += cell->bytes[k];
	if (used == 0)
		return states[STOUP_TOP_FREE];
	return by_number(mode == STOUP_TOP_BY_HOLDERS ? cell->refs : cell->used);
}

/* ---- drawing ---------------------------------------------------------------------------------- */

static void draw_legend(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint64_t run)
{
	char text[STOUP_TOP_NUMBER_CAP];
	uint32_t col;

	col = stoup_top_putf(screen, row, 0, STOUP_TOP_BOLD, "by %s",
		top->map_mode == STOUP_TOP_BY_STATE     ? "state"
		: top->map_mode == STOUP_TOP_BY_HOLDERS ? "holders"
							: "heat");
	col = stoup_top_putf(screen, row, col + 1, STOUP_TOP_DIM,
		      "(%s):", stoup_top_bytes((double)run, text)) +
	      1;
	if (top->map_mode != STOUP_TOP_BY_STATE) {
		stoup_top_putf(screen, row, col, STOUP_TOP_PLAIN,
			". free  - %s  1-9, + for more: %s",
			top->map_mode == STOUP_TOP_BY_HOLDERS ? "not held" : "not used yet",
			top->map_mode == STOUP_TOP_BY_HOLDERS ? "leases on a block"
							      : "consumers that used it");
		return;
	}
	for (uint32_t k = 0; k < STOUP_TOP_RUN_CNT; k++) {
		if (k == STOUP_TOP_LEASED)
			col = stoup_top_put(screen, row, col, 2, states[k].style, "l/");
		col = stoup_top_putf(screen, row, col, states[k].style, "%c %s", states[k].letter,
			      states[k].name) +
		      1;
	}
}

void stoup_top_draw_map(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows)
{
	const struct stoup_watch *watch = &top->looks[top->now];
	struct stoup_top_map_cell *cells;
	uint32_t cnt;
	uint64_t run;

	if (rows < 2)
		return;
	cnt = (rows - 1) * screen->cols;
	cells = calloc(cnt, sizeof(*cells));
	if (!cells) {
		stoup_top_put(
			screen, row, 0, screen->cols, STOUP_TOP_ALERT, "no memory for the map");
		return;
	}
	stoup_top_map_fill(watch, cells, cnt, &run);
	draw_legend(top, screen, row, run);
	for (uint32_t i = 0; i < cnt && run > 0 && i * run < watch->data_len; i++) {
		struct look look = look_of(&cells[i], top->map_mode);

		stoup_top_glyph(screen, row + 1 + i / screen->cols, i % screen->cols,
			(uint32_t)look.letter, look.style);
	}
	free(cells);
}
