/* SPDX-License-Identifier: Apache-2.0 */
/* tool_args.h - what the tools that read records take alike: a pool or a store, and a range of time.
 *
 * Concurrency: plain functions. */
#ifndef STOUP_CONSUMER_TOOL_ARGS_H
#define STOUP_CONSUMER_TOOL_ARGS_H

#include <stdint.h>
#include "consumer/stoup.h"

/* A time as ISO 8601 or a number since the epoch, later than 1970. 0, or -EINVAL, told on stderr in the name
 * of `tool` ("stoup cat"). */
int stoup_tool_time(const char *tool, const char *text, int64_t *ret);

/* 0, or -EINVAL, told on stderr, for a range that ends before it begins. */
int stoup_tool_range_valid(const char *tool, const struct stoup_range *range);

/* A whole number in decimal digits alone, from min to max: 1, or 0 for any other text. */
int stoup_tool_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* Seconds with decimals, from min to max, likewise. */
int stoup_tool_seconds(const char *text, double min, double max, double *ret);

/* Sleep so many seconds, whatever signals come. */
void stoup_tool_nap(double seconds);

/* Attach to a pool or a store, with STOUP_* flags of the options. A name without a slash is a pool's; where
 * there is none and a directory is called so, it is a store. Its automatic daemon is the one that was built or
 * installed with this program, unless $STOUPD says another. As stoup_attach. */
int stoup_tool_attach(
	const char *pool, uint32_t flags, struct stoup **ret, struct stoup_error *err);

/* Write out what stdout has collected. 0; -EIO where it has failed, now or before: told on stderr in the name of `tool`,
 * once, and not where the reader has gone, such as `head`, or a signal has come. Nothing is left in it that could fail again. */
int stoup_tool_stdout(const char *tool);

/* Has the reader of stdout gone, as `head` does when it has enough? 1: the program ends by SIGPIPE before, unless that
 * is ignored. For who waits and writes nothing meanwhile. */
int stoup_tool_reader_gone(void);

#endif
