/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - search by key inside a span, of records and of messages alike.
 *
 *      keys     10 20 20 20 30         bound(20) = 1, above(20) = 4, bound(31) = above(31) = 5
 *
 * Pure functions over bytes that the caller holds.
 */
#include "consumer/cursor.h"

uint64_t stoup_span_bound(const struct stoup_span *span, int64_t key_ns)
{
	return stoup_record_bound(span->base, span->record_cnt, span->schema, key_ns);
}

uint64_t stoup_span_above(const struct stoup_span *span, int64_t key_ns)
{
	return stoup_record_above(span->base, span->record_cnt, span->schema, key_ns);
}
