/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top_keys.c - what a key changes, and what a look tells that was not so before. See tool_top.h. */
#include <string.h>
#include "consumer/tool_top.h"

/* ---- the filter ------------------------------------------------------------------------------- */

static void erase_last(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && ((unsigned char)text[len - 1] & 0xC0) == 0x80)
		text[--len] = 0;
	if (len > 0)
		text[len - 1] = 0;
}

static void type_key(struct stoup_top *top, uint32_t key)
{
	char glyph[STOUP_TOP_GLYPH_CAP];
	uint32_t len;

	if (key == STOUP_TOP_KEY_ESCAPE || key == STOUP_TOP_KEY_ENTER) {
		if (key == STOUP_TOP_KEY_ENTER)
			memcpy(top->filter, top->typed, sizeof(top->filter));
		top->typing = 0;
		top->scroll = 0;
	} else if (key == STOUP_TOP_KEY_ERASE || key == '\b') {
		erase_last(top->typed);
	} else if (key == 'U' - '@') {
		top->typed[0] = 0;
	} else if (key >= ' ' && key < STOUP_TOP_KEY_UP) {
		len = stoup_top_glyph_text(key, glyph);
		if (strlen(top->typed) + len < sizeof(top->typed))
			strcat(top->typed, glyph);
	}
}

/* ---- keys ------------------------------------------------------------------------------------- */

static const double intervals[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60};

#define INTERVAL_CNT (sizeof(intervals) / sizeof(intervals[0]))

/* The next longer interval, or the next shorter one. */
static void interval_step(struct stoup_top *top, int longer)
{
	size_t i = 0;

	if (longer) {
		while (i + 1 < INTERVAL_CNT && intervals[i] <= top->interval)
			i++;
	} else {
		i = INTERVAL_CNT - 1;
		while (i > 0 && intervals[i] >= top->interval)
			i--;
	}
	if (longer ? intervals[i] > top->interval : intervals[i] < top->interval)
		top->interval = intervals[i];
}

static void scroll_key(struct stoup_top *top, uint32_t key)
{
	uint32_t page = top->page > 1 ? top->page - 1 : 1;

	/* Several keys may come between two screens: each stays within the rows of the last one. */
	if (key == STOUP_TOP_KEY_DOWN || key == STOUP_TOP_KEY_PAGE_DOWN)
		top->scroll += key == STOUP_TOP_KEY_DOWN ? 1 : page;
	else if (key == STOUP_TOP_KEY_UP)
		top->scroll -= top->scroll > 0;
	else if (key == STOUP_TOP_KEY_PAGE_UP)
		top->scroll -= page < top->scroll ? page : top->scroll;
	else
		top->scroll = key == STOUP_TOP_KEY_END ? top->scroll_max : 0;
	if (top->scroll > top->scroll_max)
		top->scroll = top->scroll_max;
}

static void view_step(struct stoup_top *top, uint32_t by)
{
	top->view = (enum stoup_top_view)(((uint32_t)top->view + by) % STOUP_TOP_VIEW_CNT);
	top->scroll = 0;
}

static void freeze(struct stoup_top *top)
{
	top->frozen = !top->frozen;
	top->look_now = !top->frozen;
}

static void command_key(struct stoup_top *top, uint32_t key)
{
	uint32_t cnt = stoup_top_sort_cnt(top->view);

	switch (key) {
	case 'q':
	case 'Q':
		top->quit = 1;
		break;
	case 'h':
	case '?':
		top->help = 1;
		break;
	case 's':
		if (cnt > 0)
			top->sort[top->view] = (top->sort[top->view] + 1) % cnt;
		break;
	case 'S':
		top->reverse = !top->reverse;
		break;
	case '/':
		top->typing = 1;
		memcpy(top->typed, top->filter, sizeof(top->typed));
		break;
	case 'f':
	case ' ':
		freeze(top);
		break;
	case 'c':
		top->map_mode = (enum stoup_top_map_mode)((top->map_mode + 1) % STOUP_TOP_MODE_CNT);
		break;
	case '+':
	case '=':
	case '-':
		interval_step(top, key != '-');
		break;
	default:
		break;
	}
}

void stoup_top_key(struct stoup_top *top, uint32_t key)
{
	if (top->typing)
		type_key(top, key);
	else if (top->help)
		top->help = 0;
	else if (key == STOUP_TOP_KEY_TAB || key == STOUP_TOP_KEY_BACK_TAB)
		view_step(top, key == STOUP_TOP_KEY_TAB ? 1 : STOUP_TOP_VIEW_CNT - 1);
	else if (key >= STOUP_TOP_KEY_UP && key <= STOUP_TOP_KEY_END)
		scroll_key(top, key);
	else
		command_key(top, key);
}

/* ---- looks ------------------------------------------------------------------------------------ */

void stoup_top_looked(struct stoup_top *top)
{
	const struct stoup_watch *now = &top->looks[top->now], *before = &top->looks[1 - top->now];

	stoup_top_history_add(&top->history, (uint64_t)(top->interval * 1e9), before, now);
	if (before->taken_ns == 0 ||
		memcmp(before->instance, now->instance, sizeof(now->instance)) == 0)
		return;
	snprintf(top->notice, sizeof(top->notice),
		"%s: a new daemon (pid %u) took the place of process %u: counts begin anew",
		top->clock, now->daemon_pid, before->daemon_pid);
	top->notice_ns = now->taken_ns;
}
