/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top_draw.c - a whole screen of `stoup top`: head, rates, sparklines, map, table, keys. See tool_top.h. */
#include <inttypes.h>
#include <string.h>
#include "consumer/tool_stat.h"
#include "consumer/tool_top.h"
#include "shm/format.h"

#define NOTICE_NS   UINT64_C(15000000000) /* how long a notice stays */
#define PROBLEM_CAP 3u                    /* rows for what is wrong */

/* ---- head ------------------------------------------------------------------------------------- */

static enum stoup_top_style state_style(enum stoup_watch_state state)
{
	return state == STOUP_WATCH_RUNNING    ? STOUP_TOP_GREEN
	       : state == STOUP_WATCH_STARTING ? STOUP_TOP_YELLOW
	                                       : STOUP_TOP_ALERT;
}

static void draw_where(
	const struct stoup_watch *watch, struct stoup_top_screen *screen, uint32_t row)
{
	char tail[160];

	snprintf(tail, sizeof(tail), "%s, %s, %u decode thread%s, %s", watch->backing,
		watch->reader_kind, watch->decode_threads, STOUP_PLURAL(watch->decode_threads),
		watch->version);
	stoup_top_put(screen, row, 0, 6, STOUP_TOP_PLAIN, "store ");
	stoup_top_put_middle(screen, row, 6,
		screen->cols > strlen(tail) + 20 ? screen->cols - (uint32_t)strlen(tail) - 8 : 12,
		STOUP_TOP_PLAIN, watch->store_path);
	if (screen->cols > strlen(tail) + 20)
		stoup_top_put(screen, row, screen->cols - (uint32_t)strlen(tail), screen->cols,
			STOUP_TOP_PLAIN, tail);
}

/* On the right of the first row what there is room for: frozen or not is told at any rate. */
static void draw_when(const struct stoup_top *top, struct stoup_top_screen *screen, uint32_t col)
{
	const char *frozen = top->frozen ? "FROZEN" : "";
	char text[3][64];
	uint32_t len;

	snprintf(text[0], sizeof(text[0]), "%s  %s  every %g s", frozen, top->clock, top->interval);
	snprintf(text[1], sizeof(text[1]), "%s  %s", frozen, top->clock);
	snprintf(text[2], sizeof(text[2]), "  %s", frozen);
	for (uint32_t i = 0; i < 3; i++) {
		len = stoup_top_width(screen, text[i]);
		if (i < 2 && col + len > screen->cols)
			continue;
		stoup_top_put(screen, 0, screen->cols - len, len,
			top->frozen ? STOUP_TOP_ALERT : STOUP_TOP_DIM, text[i]);
		return;
	}
}

void stoup_top_draw_head(struct stoup_top *top, struct stoup_top_screen *screen, uint32_t *row)
{
	const struct stoup_watch *w = &top->looks[top->now];
	char size[STOUP_TOP_NUMBER_CAP], up[STOUP_STAT_TIME_CAP], problem[512];
	uint32_t col;

	col = stoup_top_putf(screen, 0, 0, STOUP_TOP_BOLD, "%.30s: ", w->pool_name);
	col = stoup_top_put(screen, 0, col, screen->cols, state_style(w->state),
		stoup_watch_state_name(w->state));
	col = stoup_top_putf(screen, 0, col + 1, STOUP_TOP_PLAIN, "(pid %u)  %s  up %s",
		w->daemon_pid, stoup_top_bytes((double)w->data_len, size),
		stoup_stat_time(w->uptime_ns, up));
	draw_when(top, screen, col);
	*row = 1;
	stoup_watch_state_text(w, problem, sizeof(problem));
	if (problem[0])
		*row += stoup_top_wrap(screen, *row, 0, PROBLEM_CAP, STOUP_TOP_ALERT, problem);
	if (top->notice[0] && w->taken_ns - top->notice_ns < NOTICE_NS)
		*row += stoup_top_wrap(screen, *row, 0, 2, STOUP_TOP_YELLOW, top->notice);
	else if (!problem[0])
		draw_where(w, screen, (*row)++);
}

/* ---- rates ------------------------------------------------------------------------------------ */

/* "name value" at a column of its own; where the value is bad, so is the colour. */
static void pair(struct stoup_top_screen *screen, uint32_t row, uint32_t col, const char *name,
	const char *value, int bad)
{
	col = stoup_top_put(screen, row, col, screen->cols, STOUP_TOP_DIM, name);
	stoup_top_put(
		screen, row, col + 1, screen->cols, bad ? STOUP_TOP_RED : STOUP_TOP_BOLD, value);
}

static void pair_count(struct stoup_top_screen *screen, uint32_t row, uint32_t col,
	const char *name, double value, int alarming)
{
	char text[STOUP_TOP_NUMBER_CAP];

	pair(screen, row, col, name, stoup_top_count(value, text), alarming && value > 0);
}

static void pair_rate(
	struct stoup_top_screen *screen, uint32_t row, uint32_t col, const char *name, double bytes)
{
	char text[STOUP_TOP_NUMBER_CAP], value[STOUP_TOP_NUMBER_CAP + 2];

	snprintf(value, sizeof(value), "%s/s", stoup_top_bytes(bytes, text));
	pair(screen, row, col, name, value, 0);
}

static void draw_hits(const struct stoup_watch *before, const struct stoup_watch *now,
	struct stoup_top_screen *screen, uint32_t row)
{
	double hits = stoup_watch_rate(before, now, STOUP_COUNTER_HITS),
	       misses = stoup_watch_rate(before, now, STOUP_COUNTER_MISSES),
	       all = stoup_watch_ratio(stoup_watch_value(now, STOUP_COUNTER_HITS),
		       stoup_watch_value(now, STOUP_COUNTER_MISSES));
	char text[64];

	if (hits + misses > 0)
		snprintf(text, sizeof(text), "%.2f%%", 100 * hits / (hits + misses));
	else
		strcpy(text, "-");
	pair(screen, row, 0, "hits", text, 0);
	if (all >= 0)
		snprintf(text, sizeof(text), "%.2f%%", 100 * all);
	else
		strcpy(text, "-");
	pair(screen, row, 14, "of all", text, 0);
	pair_count(screen, row, 30, "hits/s", hits, 0);
	pair_count(screen, row, 46, "misses/s", misses, 0);
	pair_count(screen, row, 63, "evictions/s",
		stoup_watch_rate(before, now, STOUP_COUNTER_EVICTIONS), 0);
	if (screen->cols >= 100)
		pair_count(screen, row, 82, "requests/s",
			stoup_watch_rate(before, now, STOUP_COUNTER_REQUESTS), 0);
}

static void draw_flow(const struct stoup_watch *before, const struct stoup_watch *now,
	struct stoup_top_screen *screen, uint32_t row)
{
	char text[STOUP_STAT_TIME_CAP];
	double ns = stoup_watch_rate(before, now, STOUP_COUNTER_DECODE_NS);

	pair_rate(screen, row, 0, "decode",
		stoup_watch_rate(before, now, STOUP_COUNTER_LOAD_RAW_BYTES));
	pair_rate(screen, row, 22, "read", stoup_watch_rate(before, now, STOUP_COUNTER_READ_BYTES));
	pair_count(
		screen, row, 41, "loads/s", stoup_watch_rate(before, now, STOUP_COUNTER_LOADS), 0);
	snprintf(text, sizeof(text), "%.2f threads", ns / 1e9);
	pair(screen, row, 56, "decoding", text, 0);
	if (screen->cols >= 100)
		pair_count(screen, row, 82, "read ahead/s",
			stoup_watch_rate(before, now, STOUP_COUNTER_AHEAD_LOADED), 0);
}

static void draw_misses(const struct stoup_top *top, const struct stoup_watch *now,
	struct stoup_top_screen *screen, uint32_t row)
{
	static const struct {
		const char *name;
		double q;
	} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};
	struct stoup_watch_histogram misses;
	char text[STOUP_STAT_TIME_CAP], when[48];
	double seconds = stoup_top_history_misses(&top->history, now, &misses);

	if (now->histogram_cnt == 0) {
		stoup_top_put(screen, row, 0, screen->cols, STOUP_TOP_DIM,
			"miss latency: not told by a daemon of an older release");
		return;
	}
	stoup_top_put(screen, row, 0, 5, STOUP_TOP_PLAIN, "miss");
	for (uint32_t i = 0; i < 4; i++)
		pair(screen, row, 5 + i * 14, quantiles[i].name,
			misses.count ? stoup_stat_time(
					       stoup_watch_quantile(&misses, quantiles[i].q), text)
				     : "-",
			0);
	if (seconds > 0)
		snprintf(when, sizeof(when), "last %.0f s", seconds);
	else
		strcpy(when, misses.count ? "since start" : "no miss yet");
	stoup_top_put(screen, row, 63, screen->cols, STOUP_TOP_DIM, when);
	if (screen->cols >= 100)
		pair(screen, row, 82, "longest ever",
			misses.max ? stoup_stat_time(misses.max, text) : "-", 0);
}

static void draw_use(const struct stoup_watch *w, struct stoup_top_screen *screen, uint32_t row)
{
	char bytes[STOUP_TOP_NUMBER_CAP], text[64], age[STOUP_STAT_TIME_CAP];

	snprintf(text, sizeof(text), "%s (%.0f%%)",
		stoup_top_bytes((double)w->sums.resident_bytes, bytes),
		w->data_len ? 100 * (double)w->sums.resident_bytes / (double)w->data_len : 0);
	pair(screen, row, 0, "used", text, 0);
	pair(screen, row, 22, "leased", stoup_top_bytes((double)w->sums.leased_bytes, bytes), 0);
	pair_count(screen, row, 41, "leases", (double)w->sums.leases, 0);
	if (w->sums.oldest_ns > 0)
		snprintf(text, sizeof(text), "%s (%u)", stoup_stat_time(w->sums.oldest_ns, age),
			w->sums.oldest_pid);
	else
		strcpy(text, "-");
	pair(screen, row, 56, "oldest", text, 0);
	if (screen->cols >= 100)
		pair_count(screen, row, 82, "blocks", (double)w->sums.resident_blocks, 0);
}

static void draw_trouble(const struct stoup_watch *w, struct stoup_top_screen *screen, uint32_t row)
{
	pair_count(screen, row, 0, "waiting", (double)w->sums.waiting, 0);
	pair_count(
		screen, row, 14, "starved", (double)stoup_watch_value(w, STOUP_COUNTER_STARVED), 1);
	pair_count(screen, row, 30, "failed",
		(double)stoup_watch_value(w, STOUP_COUNTER_STARVED_FAILED), 1);
	pair_count(screen, row, 41, "timeouts",
		(double)stoup_watch_value(w, STOUP_COUNTER_TIMEOUTS), 1);
	pair_count(
		screen, row, 56, "deaths", (double)stoup_watch_value(w, STOUP_COUNTER_DEATHS), 0);
	pair_count(
		screen, row, 68, "errors", (double)stoup_watch_value(w, STOUP_COUNTER_ERRORS), 1);
	if (screen->cols >= 100)
		pair_count(screen, row, 82, "load errors",
			(double)stoup_watch_value(w, STOUP_COUNTER_LOADS_FAILED), 1);
}

void stoup_top_draw_rates(struct stoup_top *top, struct stoup_top_screen *screen, uint32_t *row)
{
	const struct stoup_watch *now = &top->looks[top->now], *before = &top->looks[1 - top->now];

	draw_hits(before, now, screen, (*row)++);
	draw_flow(before, now, screen, (*row)++);
	draw_misses(top, now, screen, (*row)++);
	draw_use(now, screen, (*row)++);
	draw_trouble(now, screen, (*row)++);
}

/* ---- sparklines ------------------------------------------------------------------------------- */

static void draw_sparks(
	const struct stoup_top *top, struct stoup_top_screen *screen, uint32_t *row, uint32_t rows)
{
	static const struct {
		enum stoup_top_line line;
		const char *name;
	} lines[STOUP_TOP_LINE_CNT] = {{STOUP_TOP_LINE_RATIO, "hit ratio"},
		{STOUP_TOP_LINE_DECODE, "decode"}, {STOUP_TOP_LINE_MISSES, "misses"},
		{STOUP_TOP_LINE_EVICTIONS, "evictions"}, {STOUP_TOP_LINE_HITS, "hits"},
		{STOUP_TOP_LINE_READ, "read"}, {STOUP_TOP_LINE_LEASED, "leased"},
		{STOUP_TOP_LINE_WAITING, "waiting"}};
	uint32_t half = screen->cols / 2;

	for (uint32_t i = 0; i < 2 * rows && i < STOUP_TOP_LINE_CNT; i++) {
		uint32_t col = i % 2 ? half : 0;

		stoup_top_put(screen, *row + i / 2, col, 9, STOUP_TOP_DIM, lines[i].name);
		stoup_top_spark(
			screen, *row + i / 2, col + 10, half - 11, &top->history, lines[i].line);
	}
	*row += rows;
}

/* ---- the table and its title ------------------------------------------------------------------ */

static void draw_title(const struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row)
{
	static const char *const names[STOUP_TOP_VIEW_CNT] = {
		"consumers", "series", "map", "errors"};
	const struct stoup_watch *w = &top->looks[top->now];
	char text[192] = "";
	uint32_t col = 0;

	for (uint32_t i = 0; i < STOUP_TOP_VIEW_CNT; i++) {
		int on = i == (uint32_t)top->view;

		col = stoup_top_putf(screen, row, col, on ? STOUP_TOP_BOLD : STOUP_TOP_DIM,
			on ? "[%s]" : " %s ", names[i]);
	}
	if (stoup_top_sort_cnt(top->view) > 0)
		snprintf(text, sizeof(text), "%u attached, by %s%s%s%s", w->consumer_cnt,
			stoup_top_sort_name(top->view, top->sort[top->view]),
			top->reverse ? " reversed" : "", top->filter[0] ? ", only /" : "",
			top->filter);
	stoup_top_put(screen, row, col + 1, screen->cols, STOUP_TOP_PLAIN, text);
}

static void draw_table(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows)
{
	if (top->view == STOUP_TOP_CONSUMERS)
		stoup_top_draw_consumers(top, screen, row, rows);
	else if (top->view == STOUP_TOP_SERIES)
		stoup_top_draw_series(top, screen, row, rows);
	else
		stoup_top_draw_errors(top, screen, row, rows);
}

/* Below few consumers the series, where there is room for both. */
static void draw_tables(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows)
{
	uint32_t first = top->looks[top->now].consumer_cnt, page, scroll, max;

	first = first > 0 ? first + 1 : 2;
	if (top->view != STOUP_TOP_CONSUMERS || rows < first + 4) {
		draw_table(top, screen, row, rows);
		return;
	}
	draw_table(top, screen, row, first);
	page = top->page;
	scroll = top->scroll;
	max = top->scroll_max;
	stoup_top_draw_series(top, screen, row + first + 1, rows - first - 1);
	top->page = page;
	top->scroll = scroll;
	top->scroll_max = max;
}

static void draw_keys(const struct stoup_top *top, struct stoup_top_screen *screen)
{
	uint32_t row = screen->rows - 1;

	if (top->typing) {
		stoup_top_putf(screen, row, 0, STOUP_TOP_BOLD,
			"/%s_  command or series; Enter takes it, Esc leaves", top->typed);
		return;
	}
	stoup_top_put(screen, row, 0, screen->cols, STOUP_TOP_DIM,
		"q quit  h help  Tab view  s/S sort  / filter  f freeze  c colour  +/- interval");
}

/* ---- help ------------------------------------------------------------------------------------- */

void stoup_top_draw_help(struct stoup_top *top, struct stoup_top_screen *screen)
{
	static const char *const lines[] = {
		"q, Ctrl-C  quit          h, ?  this page; any key goes back",
		"Tab        next view: consumers, series, map, errors (Shift-Tab: the one before)",
		"s, S       sort by the next column; the other way round",
		"/          only what has this text in its command or series; empty: all",
		"f, blank   freeze the screen, and go on    c  map by state, holders, heat",
		"+, -       look less or more often         arrows, PgUp, PgDn, Home, End: scroll",
		"", "map, by state: . free   o loading   u read ahead, unused   r resident",
		"               L leased   l leased in part   d draining: ends with its leases",
		"  by holders: leases on a block; by heat: consumers that used a block",
		"hits       part of the used blocks that was in the pool: now; since the start",
		"decoding   threads busy with it on average (stoupd --threads: how many there are)",
		"starved    nothing could be evicted; failed: until the deadline (stoup holders)",
		"oldest     age of the oldest lease, and whose; sort by it to find who forgets",
		"lines      a mark is four seconds, or the interval if that is longer"};

	for (uint32_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		stoup_top_put(screen, i + 2, 0, screen->cols, STOUP_TOP_PLAIN, lines[i]);
	stoup_top_put(screen, 0, 0, screen->cols, STOUP_TOP_BOLD, "stoup top: help");
	stoup_top_put(screen, screen->rows - 1, 0, screen->cols, STOUP_TOP_DIM,
		"any key goes back; the rest is in stoup(1)");
	(void)top;
}

/* ---- the whole -------------------------------------------------------------------------------- */

static void draw_small(struct stoup_top_screen *screen)
{
	char text[128];

	snprintf(text, sizeof(text),
		"stoup top needs %u columns and %u rows; this has %u and %u. q quits",
		STOUP_TOP_COLS_MIN, STOUP_TOP_ROWS_MIN, screen->cols, screen->rows);
	stoup_top_wrap(screen, 0, 0, screen->rows, STOUP_TOP_PLAIN, text);
}

void stoup_top_draw(struct stoup_top *top, struct stoup_top_screen *screen)
{
	uint32_t row = 0, end, rows, map;
	int tall = screen->rows >= 34;

	if (screen->cols < STOUP_TOP_COLS_MIN || screen->rows < STOUP_TOP_ROWS_MIN) {
		draw_small(screen);
		return;
	}
	if (top->help) {
		stoup_top_draw_help(top, screen);
		return;
	}
	end = top->plain ? screen->rows : screen->rows - 1;
	stoup_top_draw_head(top, screen, &row);
	stoup_top_draw_rates(top, screen, &row);
	draw_sparks(top, screen, &row, tall ? 4 : 2);
	rows = end > row ? end - row : 0;
	if (top->view == STOUP_TOP_MAP) {
		draw_title(top, screen, row);
		stoup_top_draw_map(top, screen, row + 1, rows - 1);
	} else {
		map = rows >= 14 ? 1 + rows / 3 : 4;
		stoup_top_draw_map(top, screen, row, map);
		draw_title(top, screen, row + map);
		draw_tables(top, screen, row + map + 1, rows > map + 1 ? rows - map - 1 : 0);
	}
	if (!top->plain)
		draw_keys(top, screen);
}
