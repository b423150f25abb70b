/* SPDX-License-Identifier: Apache-2.0 */
/* docs.c - filters over spans of documents (see stoup_docs.h). */
#include "consumer/stoup_docs.h"

#include <errno.h>
#include "shm/doc_match.h"

int64_t stoup_doc_filter_span(const struct stoup_doc_filter *filter, const struct stoup_span *span,
	uint64_t from, uint32_t *idx, size_t cap, uint64_t *broken_cnt)
{
	uint64_t broken = 0, end = span->record_cnt;
	uint32_t found_cnt;

	if (!(span->schema->flags & STOUP_SCHEMA_VARIABLE))
		return -EINVAL;
	if (from >= end)
		return 0;
	/* A run of messages has less than 4 GiB: distances in its table have 32 bits. So have their numbers. */
	found_cnt = stoup_doc_match_run(filter, span->base, (uint32_t)from, (uint32_t)end, idx,
		cap < UINT32_MAX ? (uint32_t)cap : UINT32_MAX, &broken);
	if (broken_cnt)
		*broken_cnt += broken;
	return found_cnt;
}
