/* SPDX-License-Identifier: Apache-2.0 */
/* held.c - several spans in one call, each with a lease of its own.
 *
 *      first:      stoup_next, which may wait -> hold
 *      the others: stoup_next in haste -------> hold -> ... until a miss, an end, an error, or enough
 *
 * What ends the call after the first span is not told: the cursor stands where it happened, so the next call
 * meets it again. A span that could not be held is owed: the cursor keeps its block and yields it again.
 *
 * Concurrency: as stoup_next and stoup_hold. A process that dies in the middle loses its leases whole.
 */
#include <errno.h>
#include <string.h>
#include "consumer/client.h"
#include "consumer/cursor.h"
#include "consumer/merge.h"

/* The span that stoup_next returned cannot be held: why, in words. */
static int owe(struct stoup_cursor *cur, const struct stoup_span *span, int rc)
{
	cur->owed = 1;
	cur->owed_span = *span;
	return stoup_error_set(
		&cur->error, rc, "a span of '%s' cannot be kept: %s", cur->name, strerror(-rc));
}

/* One more span: 1 with *ret and the bytes that it keeps, 0, or a negative errno with text. */
static int take(struct stoup_cursor *cur, struct stoup_held *ret, uint64_t *bytes)
{
	struct stoup_held held = {0};
	int rc = stoup_next(cur, &held.span);

	if (rc <= 0)
		return rc;
	rc = stoup_hold_from(&held.span, cur->direct || cur->merge ? NULL : &cur->hand,
		cur->merge ? &cur->merge->promise : NULL, &held.lease);
	if (rc < 0)
		return owe(cur, &held.span, rc);
	if (cur->merge) {
		*bytes += stoup_merge_span_bytes(cur, &held.span);
		held.lease.source = stoup_cursor_source(cur);
		*ret = held;
		return 1;
	}
	*bytes += cur->direct ? held.span.record_cnt * held.span.stride : cur->grip.raw_len;
	if (!cur->direct)
		stoup_cursor_let_go(cur);
	*ret = held;
	return 1;
}

int64_t stoup_next_held(
	struct stoup_cursor *cur, struct stoup_held *const *ret, size_t cnt, uint64_t bytes)
{
	uint64_t held = 0;
	size_t i = 0;
	int rc = 1;

	if (!cur)
		return -EINVAL;
	if (!stoup_client_own(cur->st))
		return stoup_client_refused(cur->st, &cur->error);
	if (cnt == 0 || !ret) {
		/* No segment failed: there is nothing to step over. */
		cur->lookup_failed = 1;
		return cur->failed ? cur->error.code
		                   : stoup_error_set(&cur->error, -EINVAL, "no room for a span");
	}
	if (bytes == 0)
		bytes = (cur->merge ? stoup_merge_session(cur) : cur->ses)->lease_bytes_cap / 8;
	for (; i < cnt && (i == 0 || held < bytes) && rc > 0; i += rc > 0) {
		cur->hasty = i > 0;
		rc = take(cur, ret[i], &held);
	}
	cur->hasty = 0;
	if (i == 0)
		return rc;
	/* It comes up again, as if it had not been looked for. */
	if (!cur->failed)
		cur->error.code = 0;
	return (int64_t)i;
}
