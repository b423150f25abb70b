/* SPDX-License-Identifier: Apache-2.0 */
/* helper_bars.c - bars of a series, a line each: all members of struct stoup_bar_record in their order, or the names
 * and values of the double form.
 *
 * usage: helper_bars POOL SERIES[,SERIES] SPEC [fill] [last] [f64] [backward] [offset NS] [end NS] [pause N] [follow N]
 *
 * `pause` waits for a line on stdin behind N bars, which the caller uses to end the daemon. `follow` goes on N times
 * behind the end: it says so, waits for a line, which the caller writes when the store has more, and for the news.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/stoup_bars.h"

static _Noreturn void die(const char *what, const char *text)
{
	fprintf(stderr, "helper_bars: %s: %s\n", what, text);
	exit(1);
}

static void print(const struct stoup_bar_record *bar)
{
	printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
	       " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64
	       " %" PRIu64 " %" PRIu64 " %u %u\n",
		bar->open_ns, bar->close_ns, bar->available_ns, bar->open, bar->high, bar->low,
		bar->close, bar->volume, bar->buy_volume, bar->sell_volume, bar->count,
		bar->notional_low, bar->notional_high, bar->vwap, bar->first_ordinal,
		bar->last_ordinal, bar->partial, bar->filled);
}

static void print_f64(const struct stoup_bar_record_f64 *bar)
{
	printf("%" PRId64 " %" PRId64 " %" PRId64
	       " %.17g %.17g %.17g %.17g %.17g %.17g %.17g %" PRIu64 " %.17g %.17g %u %u\n",
		bar->open_ns, bar->close_ns, bar->available_ns, bar->open, bar->high, bar->low,
		bar->close, bar->volume, bar->buy_volume, bar->sell_volume, bar->count,
		bar->notional, bar->vwap, bar->partial, bar->filled);
}

static void pause_for(const char *why)
{
	char line[8];

	printf("%s\n", why);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		die(why, "no line on stdin");
}

static void run(
	struct stoup *st, struct stoup_bars *bars, int in_double, long pause_at, long follow)
{
	struct stoup_bar_record_f64 bar_f64;
	struct stoup_bar_record bar;
	struct stoup_error err;
	int rc;

	for (long cnt = 0;; cnt++) {
		if (cnt == pause_at)
			pause_for("paused");
		rc = in_double ? stoup_bars_next_f64(bars, &bar_f64) : stoup_bars_next(bars, &bar);
		if (rc < 0)
			die("bars", stoup_bars_error(bars)->text);
		if (rc == 0) {
			if (follow-- == 0)
				return;
			pause_for("end");
			if (stoup_wait_news(st, UINT64_C(120000000000), &err) != 1)
				die("follow", "no news");
			continue;
		}
		if (in_double)
			print_f64(&bar_f64);
		else
			print(&bar);
	}
}

int main(int argc, char **argv)
{
	struct stoup_bars_spec spec = {.struct_len = sizeof(spec)};
	struct stoup_range range = {0};
	struct stoup_series series[2];
	struct stoup_cursor *cur;
	struct stoup_bars *bars;
	struct stoup_error err;
	struct stoup *st;
	int in_double = 0;
	char *second;
	long pause_at = -1, follow = 0;

	if (argc < 4 || stoup_bars_spec_parse(argv[3], &spec, &err) < 0)
		die("spec", argc < 4 ? "POOL SERIES SPEC" : err.text);
	for (int i = 4; i < argc; i++) {
		if (strcmp(argv[i], "fill") == 0)
			spec.flags |= STOUP_BARS_FILL;
		else if (strcmp(argv[i], "last") == 0)
			spec.flags |= STOUP_BARS_LAST;
		else if (strcmp(argv[i], "f64") == 0)
			in_double = 1;
		else if (strcmp(argv[i], "backward") == 0)
			range.flags |= STOUP_BACKWARD;
		else if (i + 1 < argc && strcmp(argv[i], "offset") == 0)
			spec.offset_ns = strtoll(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "end") == 0)
			spec.end_ns = strtoll(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "pause") == 0)
			pause_at = strtol(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "follow") == 0) {
			follow = strtol(argv[++i], NULL, 10);
			range.flags |= STOUP_FOLLOW;
		} else
			die("unknown", argv[i]);
	}
	second = strchr(argv[2], ',');
	if (second)
		*second++ = 0;
	if (stoup_attach(argv[1], NULL, &st, &err) < 0 ||
		stoup_series_find(st, argv[2], &series[0], &err) < 0 ||
		(second && stoup_series_find(st, second, &series[1], &err) < 0) ||
		(second ? stoup_merge(st, series, 2, &range, &cur, &err)
			: stoup_scan(st, &series[0], &range, &cur, &err)) < 0)
		die(argv[2], err.text);
	if (stoup_bars_open(cur, &spec, &bars, &err) < 0)
		die("open", err.text);
	run(st, bars, in_double, pause_at, follow);
	stoup_bars_close(bars);
	stoup_cursor_close(cur);
	return stoup_detach(st) < 0;
}
