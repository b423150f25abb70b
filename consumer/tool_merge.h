/* SPDX-License-Identifier: Apache-2.0 */
/* tool_merge.h - the records of many series in order of their keys, in bounded memory.
 *
 *      series 0  [copied records|........]  --+
 *      series 1  [copied records|........]  --+--> heap by (key, series) --> record
 *      series n  [copied records|........]  --+
 *
 * Each series has a piece of its records copied, and holds no block while it waits: thousands of series, whose
 * blocks together are larger than any pool, are merged. The next piece begins a scan at the last key and steps
 * to the ordinal where it stopped.
 *
 * Invariant: records of one series stay in their order; equal keys come in the order of the series.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_MERGE_H
#define STOUP_CONSUMER_TOOL_MERGE_H

#include <stddef.h>
#include <stdint.h>
#include "consumer/stoup.h"

struct stoup_tool_merge;

/* Begin; the series stay the caller's until the end. 0, or -ENOMEM and what scans give. */
int stoup_tool_merge_begin(struct stoup *st, const struct stoup_series *const *series, size_t cnt,
	const struct stoup_range *range, struct stoup_tool_merge **ret, struct stoup_error *err);

/* The next record: 1, with the index of its series; valid until the next call. 0 at the end, or a negative
 * errno with text. */
int stoup_tool_merge_next(struct stoup_tool_merge *merge, const void **ret, size_t *ret_series,
	struct stoup_error *err);

void stoup_tool_merge_end(struct stoup_tool_merge *merge);

#endif
