/* SPDX-License-Identifier: Apache-2.0 */
/* tool_ranges.h - what `stoup warm`, `pin` and `unpin` have in common: their command line, and the series that it means.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_RANGES_H
#define STOUP_CONSUMER_TOOL_RANGES_H

#include "consumer/tool_blocks.h"

struct stoup_ranges_args {
	const char *tool, *pool; /* "stoup warm" */
	char *const *names;
	size_t name_cnt;
	struct stoup_range range;
	int pin, best_effort, all, list, json;
};

/* Read a command line; `allowed`: letters of the options that the command has (f t p b a l j). 0, or exit status + 1:
 * help was printed, or what is wrong. */
int stoup_ranges_parse(int argc, char **argv, const char *usage, const char *allowed,
	struct stoup_ranges_args *ret);

/* A pool that was attached to, the series that the names mean, and their blocks. */
struct stoup_ranges {
	struct stoup *st;
	struct stoup_series *series;
	size_t series_cnt;
	struct stoup_session *ses;
	struct stoup_snapshot *snap;
	int entered;
	struct stoup_tool_blocks blocks;
};

/* 0, or a negative errno with text. Ended by stoup_ranges_end in any case. */
int stoup_ranges_begin(
	const struct stoup_ranges_args *args, struct stoup_ranges *ret, struct stoup_error *err);
void stoup_ranges_end(struct stoup_ranges *ranges);

/* Bytes for people. */
static inline double stoup_ranges_mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

#endif
