/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top.h - what `stoup top` shows, apart from how it gets to a terminal.
 *
 *      looks (tool_watch.h) --+                    +--> cells --> a terminal (tool_top_term.c)
 *      history of rates ------+--> top_draw() -----+
 *      settings <-- keys -----+                    +--> lines of plain text (--once)
 *
 * Promise: all but tool_top_term.c are functions of (looks, history, settings, size) to cells: no clock, terminal or
 * descriptor inside. A cell holds one printable character: control characters, C1 controls, directional marks and bytes
 * that are no UTF-8 are '?', so that no text of a pool commands a terminal. What does not fit is cut and marked '~'.
 *
 * The map: a cell stands for a run of bytes of the pool. By state it shows the state of most of its bytes, but for a lease
 * in it, which is shown however small. By holders: the most leases on any of its blocks. By heat: the most consumers that
 * used one of its blocks.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_TOP_H
#define STOUP_CONSUMER_TOOL_TOP_H

#include <stdint.h>
#include <stdio.h>
#include "consumer/tool_watch.h"

#define STOUP_TOP_COLS_MIN 60u
#define STOUP_TOP_ROWS_MIN 18u
#define STOUP_TOP_COLS_CAP 1000u /* a larger terminal stays empty beyond */
#define STOUP_TOP_ROWS_CAP 500u

/* ---- a screen --------------------------------------------------------------------------------- */

enum stoup_top_style {
	STOUP_TOP_PLAIN,
	STOUP_TOP_DIM,
	STOUP_TOP_BOLD,
	STOUP_TOP_REVERSE,
	STOUP_TOP_BLUE,
	STOUP_TOP_CYAN,
	STOUP_TOP_GREEN,
	STOUP_TOP_YELLOW,
	STOUP_TOP_RED,
	STOUP_TOP_MAGENTA,
	STOUP_TOP_ALERT, /* what is wrong */
	STOUP_TOP_STYLE_CNT
};

struct stoup_top_cell {
	uint32_t glyph; /* a code point; 0: the right half of the wide one before it */
	uint8_t style;
};

struct stoup_top_screen {
	uint32_t rows, cols;
	int utf8; /* 0: ASCII alone, others are '?' */
	struct stoup_top_cell *cells;
};

/* All blank. 0; -ENOMEM. Sizes are cut to the caps. */
int stoup_top_screen_init(struct stoup_top_screen *screen, uint32_t rows, uint32_t cols, int utf8);
void stoup_top_screen_fini(struct stoup_top_screen *screen);

/* Columns that a text takes. */
uint32_t stoup_top_width(const struct stoup_top_screen *screen, const char *text);

/* Put a text at (row, col), cut to `width` columns and to the screen; '~' stands where it was cut: at its end, or with
 * `middle` within it. Outside of the screen nothing happens. Returns the column behind it. */
uint32_t stoup_top_put(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t width,
	enum stoup_top_style style, const char *text);
uint32_t stoup_top_put_middle(struct stoup_top_screen *screen, uint32_t row, uint32_t col,
	uint32_t width, enum stoup_top_style style, const char *text);
/* A line from `col` to the right edge. */
uint32_t stoup_top_putf(struct stoup_top_screen *screen, uint32_t row, uint32_t col,
	enum stoup_top_style style, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* One character; and the style of a whole row. */
void stoup_top_glyph(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t glyph,
	enum stoup_top_style style);
void stoup_top_row_style(struct stoup_top_screen *screen, uint32_t row, enum stoup_top_style style);

/* A text over several rows, broken at blanks, at most `rows`. Returns how many it took. */
uint32_t stoup_top_wrap(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t rows,
	enum stoup_top_style style, const char *text);

/* A cell's character in UTF-8, with a NUL. Returns its length; 0 for a right half. */
#define STOUP_TOP_GLYPH_CAP 5
uint32_t stoup_top_glyph_text(uint32_t glyph, char dst[STOUP_TOP_GLYPH_CAP]);

/* As lines, without blanks at their ends. */
void stoup_top_screen_print(const struct stoup_top_screen *screen, FILE *out);

/* ---- numbers for people ----------------------------------------------------------------------- */

#define STOUP_TOP_NUMBER_CAP 24
/* "812 B", "64.0 KiB", "3.1 GiB". Returns dst. */
const char *stoup_top_bytes(double bytes, char dst[STOUP_TOP_NUMBER_CAP]);
/* As it is below ten millions, then "12.3M", "4.5G". Returns dst. */
const char *stoup_top_count(double count, char dst[STOUP_TOP_NUMBER_CAP]);

/* ---- history ---------------------------------------------------------------------------------- */

enum stoup_top_line {
	STOUP_TOP_LINE_RATIO, /* 0 to 1; the others are scaled by their highest value */
	STOUP_TOP_LINE_DECODE,
	STOUP_TOP_LINE_MISSES,
	STOUP_TOP_LINE_READ,
	STOUP_TOP_LINE_EVICTIONS,
	STOUP_TOP_LINE_HITS,
	STOUP_TOP_LINE_LEASED,
	STOUP_TOP_LINE_WAITING,
	STOUP_TOP_LINE_CNT
};

#define STOUP_TOP_MARK_NS   UINT64_C(4000000000) /* time of one mark of a sparkline, at least */
#define STOUP_TOP_MARKS     512u                 /* over half an hour, wider than screens are */
#define STOUP_TOP_MISSES    16u                  /* marks whose histogram is kept: a minute */
#define STOUP_TOP_RECENT_NS UINT64_C(60000000000)

struct stoup_top_mark {
	uint64_t number;                /* moment / length of a mark */
	double sum[STOUP_TOP_LINE_CNT]; /* of `cnt` values */
	uint32_t cnt[STOUP_TOP_LINE_CNT];
};

struct stoup_top_history {
	uint64_t mark_ns;                             /* 0: nothing yet */
	struct stoup_top_mark marks[STOUP_TOP_MARKS]; /* at number % MARKS */
	uint64_t newest;                              /* its number */
	/* Misses at the first look of the latest marks. */
	struct stoup_watch_histogram misses[STOUP_TOP_MISSES];
	uint64_t misses_number[STOUP_TOP_MISSES], misses_ns[STOUP_TOP_MISSES];
	uint8_t instance[16]; /* whose misses these are */
};

/* Take up what changed from one look to the next. A longer interval than that of a mark starts anew. */
void stoup_top_history_add(struct stoup_top_history *history, uint64_t interval_ns,
	const struct stoup_watch *before, const struct stoup_watch *now);

/* Value of the mark `back` before the newest; negative where there is none. */
double stoup_top_history_value(
	const struct stoup_top_history *history, enum stoup_top_line line, uint32_t back);

/* The misses of the last minute; since the daemon's start where there were none, or it is not watched longer. Returns the
 * seconds that it covers, 0 = since the start. *ret has count 0 where nothing is known. */
double stoup_top_history_misses(const struct stoup_top_history *history,
	const struct stoup_watch *now, struct stoup_watch_histogram *ret);

/* Draw a line of `width` marks, the newest on the right. */
void stoup_top_spark(struct stoup_top_screen *screen, uint32_t row, uint32_t col, uint32_t width,
	const struct stoup_top_history *history, enum stoup_top_line line);

/* ---- settings --------------------------------------------------------------------------------- */

enum stoup_top_view {
	STOUP_TOP_CONSUMERS,
	STOUP_TOP_SERIES,
	STOUP_TOP_MAP,
	STOUP_TOP_ERRORS,
	STOUP_TOP_VIEW_CNT
};

enum stoup_top_map_mode {
	STOUP_TOP_BY_STATE,
	STOUP_TOP_BY_HOLDERS,
	STOUP_TOP_BY_HEAT,
	STOUP_TOP_MODE_CNT
};

enum stoup_top_key {
	STOUP_TOP_KEY_ENTER = '\n',
	STOUP_TOP_KEY_TAB = '\t',
	STOUP_TOP_KEY_ESCAPE = 27,
	STOUP_TOP_KEY_ERASE = 127,
	STOUP_TOP_KEY_UP = 0x110000, /* beyond all characters */
	STOUP_TOP_KEY_DOWN,
	STOUP_TOP_KEY_PAGE_UP,
	STOUP_TOP_KEY_PAGE_DOWN,
	STOUP_TOP_KEY_HOME,
	STOUP_TOP_KEY_END,
	STOUP_TOP_KEY_BACK_TAB,
	STOUP_TOP_KEY_OTHER
};

#define STOUP_TOP_FILTER_CAP 64

/* Which series lie in a block, told by who can read the store. */
struct stoup_top_names {
	/* The first series of a block and, if there are more, how many; NULL: not known. Texts stay where they are while
	 * a table is made. */
	const char *(*series)(void *arg, const struct stoup_watch_volume *volume,
		uint32_t block_idx, uint32_t *ret_cnt);
	void *arg;
};

struct stoup_top {
	struct stoup_watch looks[2];
	uint32_t now; /* which of them is the newer one */
	struct stoup_top_history history;
	struct stoup_top_names names; /* series NULL: the store is not read */
	double interval;
	enum stoup_top_view view;
	enum stoup_top_map_mode map_mode;
	uint32_t sort[STOUP_TOP_VIEW_CNT]; /* column */
	int reverse, frozen, help, quit, look_now;
	int typing;                        /* the filter is being typed */
	int plain;                         /* no keys: --once */
	uint32_t scroll, page, scroll_max; /* rows; of the table as it was drawn last */
	char filter[STOUP_TOP_FILTER_CAP], typed[STOUP_TOP_FILTER_CAP];
	char notice[160];   /* what has happened: a new daemon */
	uint64_t notice_ns; /* taken_ns of the look that told it */
	char clock[16];     /* wall time of the look */
};

/* Take a key. */
void stoup_top_key(struct stoup_top *top, uint32_t key);

/* After a look was read into looks[now]: history, what happened. */
void stoup_top_looked(struct stoup_top *top);

/* ---- tables ----------------------------------------------------------------------------------- */

struct stoup_top_series_row {
	char name[144];
	uint64_t resident_bytes, leased_bytes, oldest_ns;
	uint32_t resident_blocks, lease_cnt, holder_cnt;
	char command[17]; /* who holds it longest */
	uint32_t pid;
};

/* Indices of the consumers that the filter leaves, in order. 0 or -ENOMEM; the caller frees. */
int stoup_top_consumers(const struct stoup_top *top, uint32_t **ret, uint32_t *ret_cnt);
/* The same of series; *ret_named: the resident bytes are known. */
int stoup_top_series(const struct stoup_top *top, struct stoup_top_series_row **ret,
	uint32_t *ret_cnt, int *ret_named);
const char *stoup_top_sort_name(enum stoup_top_view view, uint32_t column);
uint32_t stoup_top_sort_cnt(enum stoup_top_view view);

/* The tables drawn, in rows [row, row + rows). */
void stoup_top_draw_consumers(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows);
void stoup_top_draw_series(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows);
void stoup_top_draw_errors(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows);

/* Scrolling: keeps top->scroll within `cnt` rows of which `page` are seen. Returns the first one to show. */
uint32_t stoup_top_scroll(struct stoup_top *top, uint32_t cnt, uint32_t page);

/* ---- the map ---------------------------------------------------------------------------------- */

enum stoup_top_run {
	STOUP_TOP_FREE,
	STOUP_TOP_LOADING,
	STOUP_TOP_UNREAD, /* read ahead, used by nobody yet */
	STOUP_TOP_RESIDENT,
	STOUP_TOP_LEASED,
	STOUP_TOP_DRAINING,
	STOUP_TOP_RUN_CNT
};

/* What an extent counts as. */
enum stoup_top_run stoup_top_run_of(const struct stoup_watch_extent *extent);

struct stoup_top_map_cell {
	uint64_t bytes[STOUP_TOP_RUN_CNT];
	uint32_t refs, used; /* the most of any extent */
};

/* The pool in `cnt` runs of *ret_run bytes (the last may be shorter, and some at the end empty). */
void stoup_top_map_fill(const struct stoup_watch *watch, struct stoup_top_map_cell *cells,
	uint32_t cnt, uint64_t *ret_run);

/* Legend in one row, the map in the others. */
void stoup_top_draw_map(
	struct stoup_top *top, struct stoup_top_screen *screen, uint32_t row, uint32_t rows);

/* ---- the whole -------------------------------------------------------------------------------- */

void stoup_top_draw(struct stoup_top *top, struct stoup_top_screen *screen);
void stoup_top_draw_head(struct stoup_top *top, struct stoup_top_screen *screen, uint32_t *row);
void stoup_top_draw_rates(struct stoup_top *top, struct stoup_top_screen *screen, uint32_t *row);
void stoup_top_draw_help(struct stoup_top *top, struct stoup_top_screen *screen);

/* ---- names of series -------------------------------------------------------------------------- */

/* Volumes that were read: stoup_top_store_series is the `series` of struct stoup_top_names, with the store as `arg`. */
struct stoup_top_store;
int stoup_top_store_create(struct stoup_top_store **ret); /* 0 or -ENOMEM */
void stoup_top_store_destroy(struct stoup_top_store *store);
/* Before the tables of a look are made: allows a tenth of a second for volumes that were not read yet. */
void stoup_top_store_look(struct stoup_top_store *store, const struct stoup_watch *watch);
const char *stoup_top_store_series(
	void *arg, const struct stoup_watch_volume *volume, uint32_t block_idx, uint32_t *ret_cnt);

/* ---- the terminal ----------------------------------------------------------------------------- */

struct stoup_top_args {
	const char *pool;
	double interval; /* 0: none was given */
	uint64_t count;  /* 0 = for ever */
	int once, colour;
	char chosen[STOUP_POOL_NAME_CAP]; /* where the command line names no pool */
};

/* Look into top->looks, with the clock. 0, or a negative errno with text. */
int stoup_top_look(struct stoup_top *top, struct stoup_watcher *watcher, struct stoup_error *err);

/* Show it until `q`, a signal or --count; exit status. The terminal is as it was before at every end. */
int stoup_top_terminal(
	struct stoup_top *top, struct stoup_watcher *watcher, const struct stoup_top_args *args);

#endif
