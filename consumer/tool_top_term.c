/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top_term.c - `stoup top` on a terminal, by ncurses: cells out, keys in. See tool_top.h.
 *
 *      look --> draw --> ppoll(keys, until the next look) --> key --> draw ...
 *
 * Signals are let through in ppoll alone, so that none is missed between a check and the wait. SIGTERM, SIGINT, SIGHUP and
 * SIGQUIT end the loop; the terminal is put back, and the signal is raised again as it would have been. A fault (SIGBUS
 * of a control object that was cut short beneath the map) puts the terminal back in its handler.
 */
#include <stdio.h>
#include "consumer/tool_top.h"

#ifndef STOUP_NCURSES

int stoup_top_terminal(
	struct stoup_top *top, struct stoup_watcher *watcher, const struct stoup_top_args *args)
{
	(void)top;
	(void)watcher;
	(void)args;
	fprintf(stderr,
		"stoup: built without ncurses: `stoup top` can print a screen (--once), not show one; build it "
		"with ncurses (Debian: libncurses-dev)\n");
	return 1;
}

#else

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include "shm/clock.h"

/* ---- the end, of whatever kind ---------------------------------------------------------------- */

static volatile sig_atomic_t ended; /* signal, 0: none */
static struct termios modes;        /* before */
static char way_back[256];          /* what a terminal is told at the end */
static size_t way_back_len;

static const int endings[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
static const int faults[] = {SIGBUS, SIGSEGV, SIGABRT, SIGFPE, SIGILL};

static void on_end(int number)
{
	ended = number;
}

static void on_fault(int number)
{
	static const char text[] =
		"stoup top: a fault: was the pool's control object cut short? The terminal is put back.\n";
	ssize_t rc = write(STDOUT_FILENO, way_back, way_back_len);

	tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
	rc = rc < 0 ? rc : write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)rc;
	raise(number); /* the handler is gone by SA_RESETHAND */
}

/* Signals of the terminal are blocked but in ppoll; *ret: the mask there. */
static void signals_take(sigset_t *ret)
{
	struct sigaction action = {.sa_handler = on_end};
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGWINCH);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		struct sigaction old;

		/* nohup and background shells: what was ignored stays so. */
		if (sigaction(endings[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(endings[i], &action, NULL);
		sigaddset(&blocked, endings[i]);
	}
	action.sa_handler = on_fault;
	action.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigaction(faults[i], &action, NULL);
	sigprocmask(SIG_BLOCK, &blocked, ret);
}

/* What the terminal needs to hear in a fault, when ncurses may not be called. */
static void way_back_note(void)
{
	static const char *const names[] = {"sgr0", "cnorm", "rmkx", "rmcup"};

	way_back_len = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = tigetstr(names[i]);
		size_t len = text && text != (const char *)-1 ? strlen(text) : 0;

		if (way_back_len + len > sizeof(way_back))
			continue;
		memcpy(way_back + way_back_len, text ? text : "", len);
		way_back_len += len;
	}
}

/* ---- beginning -------------------------------------------------------------------------------- */

/* A terminal that a cursor can be placed on. */
static int terminal_check(void)
{
	const char *name = getenv("TERM");
	const char *place;
	int why = 0, can;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fprintf(stderr,
			"stoup top: standard input and output are not both a terminal; `stoup top --once POOL` prints "
			"a screen without one\n");
		return 0;
	}
	if (!name || !*name) {
		fprintf(stderr,
			"stoup top: TERM is not set: set it to the kind of your terminal (xterm-256color, vt100), or "
			"use --once\n");
		return 0;
	}
	if (setupterm(NULL, STDOUT_FILENO, &why) == ERR) {
		fprintf(stderr,
			"stoup top: terminal TERM=%s is not known here: set TERM to a kind that is (xterm, vt100), "
			"or use --once\n",
			name);
		return 0;
	}
	place = tigetstr("cup");
	can = place && place != (const char *)-1;
	del_curterm(cur_term); /* newterm() makes one of its own */
	if (!can) {
		fprintf(stderr,
			"stoup top: on a terminal TERM=%s no cursor can be placed: set TERM to what it is (xterm, "
			"vt100), or use --once\n",
			name);
		return 0;
	}
	return 1;
}

/* Where keys are asked for: asking stdscr would draw what it held before a change of size. */
static WINDOW *keys;

static attr_t attributes[STOUP_TOP_STYLE_CNT];

static void styles_set(int colour)
{
	static const short colours[STOUP_TOP_STYLE_CNT] = {[STOUP_TOP_BLUE] = COLOR_BLUE,
		[STOUP_TOP_CYAN] = COLOR_CYAN,
		[STOUP_TOP_GREEN] = COLOR_GREEN,
		[STOUP_TOP_YELLOW] = COLOR_YELLOW,
		[STOUP_TOP_RED] = COLOR_RED,
		[STOUP_TOP_MAGENTA] = COLOR_MAGENTA,
		[STOUP_TOP_ALERT] = COLOR_RED};

	memset(attributes, 0, sizeof(attributes));
	attributes[STOUP_TOP_BOLD] = A_BOLD;
	attributes[STOUP_TOP_REVERSE] = A_REVERSE;
	attributes[STOUP_TOP_ALERT] = A_BOLD | A_REVERSE;
	if (!colour || !has_colors() || start_color() == ERR)
		return;
	use_default_colors();
	attributes[STOUP_TOP_ALERT] = A_BOLD;
	attributes[STOUP_TOP_DIM] = A_DIM;
	for (short i = 0; i < STOUP_TOP_STYLE_CNT; i++) {
		if (colours[i] == 0)
			continue;
		init_pair(i, colours[i], -1);
		attributes[i] |= (attr_t)COLOR_PAIR(i);
	}
}

/* ---- cells and keys --------------------------------------------------------------------------- */

static int show(struct stoup_top *top, int utf8)
{
	struct stoup_top_screen screen;
	char text[STOUP_TOP_GLYPH_CAP];

	if (stoup_top_screen_init(&screen, (uint32_t)LINES, (uint32_t)COLS, utf8) < 0)
		return -ENOMEM;
	stoup_top_draw(top, &screen);
	erase();
	for (uint32_t row = 0; row < screen.rows; row++) {
		move((int)row, 0);
		for (uint32_t col = 0; col < screen.cols; col++) {
			const struct stoup_top_cell *cell =
				&screen.cells[(size_t)row * screen.cols + col];

			attrset((int)attributes[cell->style]);
			if (stoup_top_glyph_text(cell->glyph, text) > 0)
				addstr(text);
		}
	}
	refresh();
	stoup_top_screen_fini(&screen);
	return 0;
}

static uint32_t key_of(int rc, wint_t key)
{
	static const struct {
		wint_t code;
		uint32_t key;
	} codes[] = {{KEY_UP, STOUP_TOP_KEY_UP}, {KEY_DOWN, STOUP_TOP_KEY_DOWN},
		{KEY_PPAGE, STOUP_TOP_KEY_PAGE_UP}, {KEY_NPAGE, STOUP_TOP_KEY_PAGE_DOWN},
		{KEY_HOME, STOUP_TOP_KEY_HOME}, {KEY_END, STOUP_TOP_KEY_END},
		{KEY_BTAB, STOUP_TOP_KEY_BACK_TAB}, {KEY_ENTER, STOUP_TOP_KEY_ENTER},
		{KEY_BACKSPACE, STOUP_TOP_KEY_ERASE}};

	if (rc != KEY_CODE_YES)
		return key == '\r'                      ? (uint32_t)STOUP_TOP_KEY_ENTER
		       : key < (wint_t)STOUP_TOP_KEY_UP ? (uint32_t)key
		                                        : (uint32_t)STOUP_TOP_KEY_OTHER;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == key)
			return codes[i].key;
	return STOUP_TOP_KEY_OTHER;
}

/* All keys that were pressed. Returns how many came; KEY_RESIZE, which ncurses makes itself, is one. */
static int keys_take(struct stoup_top *top)
{
	int cnt = 0, rc;
	wint_t key;

	while ((rc = wget_wch(keys, &key)) != ERR) {
		cnt++;
		/* What a terminal keeps when its size changes is its own affair: all is drawn anew. */
		if ((rc == KEY_CODE_YES && key == KEY_RESIZE) || (rc == OK && key == 'L' - '@'))
			clearok(curscr, TRUE);
		if (rc == KEY_CODE_YES && key == KEY_RESIZE)
			continue;
		stoup_top_key(top, key_of(rc, key));
	}
	return cnt;
}

/* Wait for a key, a signal or the moment `until_ns`. 0; -EPIPE: the terminal is gone. */
static int wait_until(struct stoup_top *top, uint64_t until_ns, const sigset_t *mask)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t now_ns = stoup_clock_ns(), left = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec limit = {
		.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
	int rc = ppoll(&fd, 1, &limit, mask), came;

	if (rc < 0 && errno != EINTR)
		return -errno;
	came = keys_take(top);
	if (rc > 0 && (fd.revents & (POLLHUP | POLLERR | POLLNVAL) || came == 0))
		return -EPIPE;
	return 0;
}

/* ---- the loop --------------------------------------------------------------------------------- */

static int run(struct stoup_top *top, struct stoup_watcher *watcher,
	const struct stoup_top_args *args, const sigset_t *mask, struct stoup_error *err)
{
	int utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0, rc = show(top, utf8);
	uint64_t last_ns = stoup_clock_ns();
	uint64_t looks = 1;

	while (rc == 0 && !ended && !top->quit) {
		uint64_t next_ns = last_ns + (uint64_t)(top->interval * 1e9);

		/* A frozen screen wants no look; it wakes up for keys alone. */
		rc = wait_until(top,
			top->frozen ? stoup_clock_ns() + UINT64_C(3600000000000) : next_ns, mask);
		if (rc < 0 || ended || top->quit)
			break;
		/* The interval may have changed. */
		next_ns = last_ns + (uint64_t)(top->interval * 1e9);
		if (top->look_now || (!top->frozen && stoup_clock_ns() >= next_ns)) {
			if (args->count > 0 && looks++ >= args->count)
				break;
			top->look_now = 0;
			last_ns = stoup_clock_ns();
			rc = stoup_top_look(top, watcher, err);
		}
		if (rc == 0)
			rc = show(top, utf8);
	}
	return rc;
}

static SCREEN *begin(const struct stoup_top_args *args)
{
	SCREEN *screen = newterm(NULL, stdout, stdin);

	if (!screen) {
		fprintf(stderr, "stoup top: the terminal TERM=%s could not be opened; use --once\n",
			getenv("TERM"));
		return NULL;
	}
	way_back_note();
	cbreak();
	noecho();
	nonl();
	keys = newpad(1, 1);
	if (!keys) {
		endwin();
		delscreen(screen);
		fprintf(stderr, "stoup top: no memory\n");
		return NULL;
	}
	keypad(keys, TRUE);
	nodelay(keys, TRUE);
	set_escdelay(50);
	curs_set(0);
	styles_set(args->colour);
	return screen;
}

int stoup_top_terminal(
	struct stoup_top *top, struct stoup_watcher *watcher, const struct stoup_top_args *args)
{
	struct stoup_error err = {0};
	SCREEN *screen;
	sigset_t mask;
	int rc;

	if (!terminal_check())
		return 1;
	if (stoup_top_look(top, watcher, &err) < 0) {
		fprintf(stderr, "stoup top: %s\n", err.text);
		return 1;
	}
	tcgetattr(STDIN_FILENO, &modes);
	screen = begin(args);
	if (!screen)
		return 1;
	signals_take(&mask);
	rc = run(top, watcher, args, &mask, &err);
	endwin();
	tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
	delwin(keys);
	delscreen(screen);
	if (ended) {
		signal(ended, SIG_DFL);
		raise(ended);
		sigprocmask(SIG_SETMASK, &mask, NULL);
	}
	if (rc < 0 && rc != -EPIPE)
		fprintf(stderr, "stoup top: %s\n", err.text[0] ? err.text : strerror(-rc));
	return rc < 0;
}

#endif
