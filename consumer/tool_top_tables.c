/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top_tables.c - consumers, series and errors on the screen. See tool_top.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_stat.h"
#include "consumer/tool_top.h"
#include "shm/format.h"

/* One number, right-justified in `width` columns; returns the column behind it. */
static uint32_t right(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t width,
	enum stoup_top_style style, const char *text)
{
	uint32_t len = stoup_top_width(screen, text);

	if (len < width)
		stoup_top_put(screen, row, col + width - len, len, style, text);
	else
		stoup_top_put(screen, row, col, width, style, text);
	return col + width + 1;
}

static void nothing(const struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row,
	const char *what)
{
	if (top->filter[0])
		stoup_top_putf(
			screen, row, 2, STOUP_TOP_DIM, "none that /%s lets through", top->filter);
	else
		stoup_top_put(screen, row, 2, screen->cols, STOUP_TOP_DIM, what);
}

/* ---- consumers -------------------------------------------------------------------------------- */

struct column {
	const char *name;
	uint32_t width;
	uint32_t from; /* shown on screens that are so wide */
};

static const struct column consumer_columns[] = {{"leases", 6, 0}, {"held", 10, 0},
	{"oldest", 8, 0}, {"hits", 8, 0}, {"misses", 7, 0}, {"wait", 4, 0}, {"hits/s", 8, 92},
	{"miss/s", 7, 100}, {"records", 9, 110}, {"timeouts", 8, 120}};

#define CONSUMER_COLUMN_CNT (sizeof(consumer_columns) / sizeof(consumer_columns[0]))

static void consumer_cell(const struct stoup_top *top, const struct stoup_watch_consumer *c,
	uint32_t column, char text[STOUP_TOP_NUMBER_CAP])
{
	const struct stoup_watch *before = &top->looks[1 - top->now], *now = &top->looks[top->now];
	const struct stoup_watch_consumer *then = stoup_watch_same(before, c);
	double seconds = then ? stoup_watch_seconds(before, now) : 0;
	const double counts[CONSUMER_COLUMN_CNT] = {c->lease_cnt, 0, 0, (double)c->hit_cnt,
		(double)c->miss_cnt, c->waiting_cnt,
		then ? stoup_watch_per_second(then->hit_cnt, c->hit_cnt, seconds) : 0,
		then ? stoup_watch_per_second(then->miss_cnt, c->miss_cnt, seconds) : 0,
		(double)c->record_cnt, (double)c->timeout_cnt};

	if (column == 1)
		stoup_top_bytes((double)c->leased_bytes, text);
	else if (column == 2 && c->oldest_ns == 0)
		strcpy(text, "-");
	else if (column == 2)
		stoup_stat_time(c->oldest_ns, text);
	else
		stoup_top_count(counts[column], text);
}

static void draw_consumer(struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row,
	const struct stoup_watch_consumer *c)
{
	const char *word = stoup_watch_consumer_word(c);
	int well = c->state == STOUP_CONSUMER_ATTACHED && !c->suspended && !c->gone;
	enum stoup_top_style style = well ? STOUP_TOP_PLAIN : STOUP_TOP_YELLOW;
	char text[STOUP_TOP_NUMBER_CAP];
	uint32_t col;

	snprintf(text, sizeof(text), "%u", c->pid);
	col = right(screen, row, 0, 7, style, text);
	stoup_top_put(screen, row, col, 13, style, c->command);
	stoup_top_put(screen, row, col + 14, 9, style, word);
	col += 24;
	for (uint32_t i = 0; i < CONSUMER_COLUMN_CNT; i++) {
		if (screen->cols < consumer_columns[i].from)
			break;
		consumer_cell(top, c, i, text);
		col = right(screen, row, col, consumer_columns[i].width, style, text);
	}
}

void stoup_top_draw_consumers(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows)
{
	const struct stoup_watch *watch = &top->looks[top->now];
	uint32_t *order, cnt, col, first;

	if (rows < 2)
		return;
	stoup_top_row_style(screen, row, STOUP_TOP_REVERSE);
	right(screen, row, 0, 7, STOUP_TOP_REVERSE, "pid");
	stoup_top_put(screen, row, 8, 13, STOUP_TOP_REVERSE, "command");
	stoup_top_put(screen, row, 22, 9, STOUP_TOP_REVERSE, "state");
	col = 32;
	for (uint32_t i = 0; i < CONSUMER_COLUMN_CNT && screen->cols >= consumer_columns[i].from;
		i++)
		col = right(screen, row, col, consumer_columns[i].width, STOUP_TOP_REVERSE,
			consumer_columns[i].name);
	if (stoup_top_consumers(top, &order, &cnt) < 0) {
		stoup_top_put(screen, row + 1, 2, screen->cols, STOUP_TOP_ALERT, "no memory");
		return;
	}
	first = stoup_top_scroll(top, cnt, rows - 1);
	for (uint32_t i = 0; i + 1 < rows && first + i < cnt; i++)
		draw_consumer(top, screen, row + 1 + i, &watch->consumers[order[first + i]]);
	if (cnt == 0)
		nothing(top, screen, row + 1, "nobody is attached");
	free(order);
}

/* ---- series ----------------------------------------------------------------------------------- */

static const struct column series_columns[] = {{"resident", 10, 0}, {"leased", 10, 0},
	{"leases", 6, 0}, {"holders", 7, 0}, {"oldest", 8, 0}};

#define SERIES_COLUMN_CNT (sizeof(series_columns) / sizeof(series_columns[0]))

static void draw_series(struct stoup_top_screen *screen, uint32_t row, uint32_t name_width,
	const struct stoup_top_series_row *r, int named)
{
	char text[STOUP_TOP_NUMBER_CAP];
	uint32_t col = name_width + 1;

	stoup_top_put_middle(screen, row, 0, name_width, STOUP_TOP_PLAIN, r->name);
	col = right(screen, row, col, 10, STOUP_TOP_PLAIN,
		named || r->resident_blocks ? stoup_top_bytes((double)r->resident_bytes, text)
					    : "?");
	col = right(screen, row, col, 10, STOUP_TOP_PLAIN,
		stoup_top_bytes((double)r->leased_bytes, text));
	col = right(screen, row, col, 6, STOUP_TOP_PLAIN, stoup_top_count(r->lease_cnt, text));
	col = right(screen, row, col, 7, STOUP_TOP_PLAIN, stoup_top_count(r->holder_cnt, text));
	col = right(screen, row, col, 8, STOUP_TOP_PLAIN,
		r->holder_cnt ? stoup_stat_time(r->oldest_ns, text) : "-");
	if (screen->cols >= 100 && r->holder_cnt)
		stoup_top_putf(screen, row, col, STOUP_TOP_PLAIN, "%u %s", r->pid, r->command);
}

void stoup_top_draw_series(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows)
{
	uint32_t numbers = 46, cnt, first, col, width;
	struct stoup_top_series_row *table;
	int named;

	if (rows < 2)
		return;
	if (screen->cols >= 100)
		numbers += 24;
	width = screen->cols > numbers + 14 ? screen->cols - numbers : 14;
	stoup_top_row_style(screen, row, STOUP_TOP_REVERSE);
	stoup_top_put(screen, row, 0, width, STOUP_TOP_REVERSE, "series");
	col = width + 1;
	for (uint32_t i = 0; i < SERIES_COLUMN_CNT; i++)
		col = right(screen, row, col, series_columns[i].width, STOUP_TOP_REVERSE,
			series_columns[i].name);
	if (screen->cols >= 100)
		stoup_top_put(screen, row, col, screen->cols, STOUP_TOP_REVERSE, "held longest by");
	if (stoup_top_series(top, &table, &cnt, &named) < 0) {
		stoup_top_put(screen, row + 1, 2, screen->cols, STOUP_TOP_ALERT, "no memory");
		return;
	}
	first = stoup_top_scroll(top, cnt, rows - 1);
	for (uint32_t i = 0; i + 1 < rows && first + i < cnt; i++)
		draw_series(screen, row + 1 + i, width, &table[first + i], named);
	if (cnt == 0)
		nothing(top, screen, row + 1, "nothing in the pool, nobody holds anything");
	free(table);
}

/* ---- errors ----------------------------------------------------------------------------------- */

void stoup_top_draw_errors(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows)
{
	const struct stoup_watch *watch = &top->looks[top->now];
	char last[STOUP_FORMAT_CAP];
	uint32_t end = row + rows, first;

	if (rows < 2)
		return;
	stoup_top_row_style(screen, row, STOUP_TOP_REVERSE);
	stoup_top_put(screen, row++, 0, screen->cols, STOUP_TOP_REVERSE,
		"errors of the daemon, the latest first");
	/* How many rows a text takes is not known ahead: one error moves out at a time. */
	first = stoup_top_scroll(top, watch->error_cnt, 1);
	top->page = 4;
	for (uint32_t i = first; i < watch->error_cnt && row < end; i++) {
		const struct stoup_watch_error *e = &watch->errors[i];

		stoup_format_time(e->last_ns, last);
		stoup_top_putf(screen, row++, 0, STOUP_TOP_BOLD, "%s  %" PRIu64 " time%s", last,
			e->count, STOUP_PLURAL(e->count));
		row += stoup_top_wrap(screen, row, 2, end - row, STOUP_TOP_PLAIN, e->text);
	}
	if (watch->error_cnt == 0)
		stoup_top_put(screen, row, 2, screen->cols, STOUP_TOP_DIM, "no errors");
}
