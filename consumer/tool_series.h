/* SPDX-License-Identifier: Apache-2.0 */
/* tool_series.h - the series that a command line means: names, and patterns (* ? []) for all series that they match.
 *
 * Concurrency: plain functions. */
#ifndef STOUP_CONSUMER_TOOL_SERIES_H
#define STOUP_CONSUMER_TOOL_SERIES_H

#include <stddef.h>
#include "consumer/stoup.h"

/* Each series once, in the order in which they are said; those of a pattern by name. A name that is there is no
 * pattern. *ret is for free(), also of a failure; *ret_named: do rows name their series, being of a pattern or of
 * several? 0, or a negative errno with text. */
int stoup_tool_series(struct stoup *st, char *const *names, size_t name_cnt,
	struct stoup_series **ret, size_t *ret_cnt, int *ret_named, struct stoup_error *err);

#endif
