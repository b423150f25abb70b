/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pick.h - a filter over spans of one series, of records and of documents alike.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_PICK_H
#define STOUP_CONSUMER_TOOL_PICK_H

#include "consumer/stoup.h"

#define STOUP_PICK_CAP 1024u /* records looked at in one go */

struct stoup_pick;

/* Of `cnt` texts all must hold, 1 at least. 0; -EINVAL with a text that says what is wrong in which filter, -ENOTSUP
 * for messages that are no documents, -ENOMEM. */
int stoup_pick_create(const struct stoup_series *series, const char *const *texts, size_t cnt,
	struct stoup_pick **ret, struct stoup_error *err);

/* Which of records [from, from + cnt), cnt at most STOUP_PICK_CAP, are meant: their number, and where they are in the
 * span, ascending. *broken counts messages that are no documents: none of them is meant. */
int64_t stoup_pick_span(const struct stoup_pick *pick, const struct stoup_span *span, uint64_t from,
	uint64_t cnt, uint64_t *idx, uint64_t *broken);

/* The filter of records, for stoup_scan_where; it stays the pick's. NULL of documents, and without a pick. */
struct stoup_filter;
struct stoup_filter *stoup_pick_filter(const struct stoup_pick *pick);

void stoup_pick_destroy(struct stoup_pick *pick);

#endif
