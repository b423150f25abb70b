/* SPDX-License-Identifier: Apache-2.0 */
/* tool_stat.h - what `stoup stat`, `holders` and `log` share: how a look is printed.
 *
 * Everything is printed from a struct stoup_watch to a stream; nothing here reads shared memory. A line that goes to a
 * terminal holds no control characters, JSON is valid whatever the object held.
 */
#ifndef STOUP_CONSUMER_TOOL_STAT_H
#define STOUP_CONSUMER_TOOL_STAT_H

#include <stdio.h>
#include "consumer/tool_watch.h"

/* One JSON object, docs/stat-json.md says of what; with `line` on one line. */
void stoup_stat_json(FILE *out, const struct stoup_watch *watch, int line);
void stoup_stat_json_holders(FILE *out, const struct stoup_watch *watch, const char *series);
void stoup_stat_json_log(FILE *out, const struct stoup_watch *watch);

/* Who and what state, and what is wrong if something is. */
void stoup_stat_words_state(FILE *out, const struct stoup_watch *watch);
/* The whole page. */
void stoup_stat_words(FILE *out, const struct stoup_watch *watch);
void stoup_stat_words_counters(FILE *out, const struct stoup_watch *watch);
void stoup_stat_words_histograms(FILE *out, const struct stoup_watch *watch);
void stoup_stat_words_errors(FILE *out, const struct stoup_watch *watch);

/* A line of `stat --watch`: rates since `before`, which may be empty; `head`: the names of the columns first. */
void stoup_stat_words_rates(
	FILE *out, const struct stoup_watch *before, const struct stoup_watch *now, int head);

/* Is this row of the series, or may it be? `series` is a name, a pattern (* ? [), or NULL: all. 1; 2: its
 * blocks hold several series, and it is not told whether this is one of them; 0. */
int stoup_stat_holds(const struct stoup_watch_holder *holder, const char *series);

/* A time in nanoseconds for people: "812 ns", "8.4 us", "12.0 ms", "31.5 s", "2.1 h". Returns dst. */
#define STOUP_STAT_TIME_CAP 24
const char *stoup_stat_time(uint64_t ns, char dst[STOUP_STAT_TIME_CAP]);

/* Parse [options] [POOL [OPERAND...]] for one command; without a POOL it is chosen (tool_choose.h). */
struct stoup_stat_args {
	const char *pool, *operand; /* operand NULL: none */
	int json, all, counters, histograms, watch;
	double interval;
	uint64_t count;                   /* 0 = for ever */
	char chosen[STOUP_POOL_NAME_CAP]; /* where the command line names no pool */
};

/* `allowed`: letters of the options that this command has (j a c h w); operand_max: operands behind POOL. 0, or exit
 * status + 1: help was printed, or what is wrong. */
int stoup_stat_parse(int argc, char **argv, const char *usage, const char *allowed, int operand_max,
	struct stoup_stat_args *ret);

/* Look once; exit status 0, or 1 with a line on stderr. */
int stoup_stat_look(const char *command, const char *pool, struct stoup_watch *ret);

#endif
