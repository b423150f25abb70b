/* SPDX-License-Identifier: Apache-2.0 */
/* doc_match.h - a filter over a run of messages, as they lie in a segment (stoup_message_head).
 *
 *      [head][bytes] [head][bytes] ...   table: [distance back to head 0][to head 1] ...
 *
 * Invariant: reads the heads that the table points to, their bytes, and nothing else. The table and the
 * heads were checked by whoever handed the run out.
 *
 * Concurrency: pure, of bytes that nobody changes.
 */
#ifndef STOUP_SHM_DOC_MATCH_H
#define STOUP_SHM_DOC_MATCH_H

#include "shm/stoup_doc.h"

/* Which of messages [from, end) are documents that the filter holds of: their numbers into `idx`, ascending,
 * until there are `cap` of them; how many there are. Fewer than `cap`: all were looked at. Messages that are no
 * documents are left out and added to *broken_cnt. */
uint32_t stoup_doc_match_run(const struct stoup_doc_filter *filter, const uint32_t *table,
	uint32_t from, uint32_t end, uint32_t *idx, uint32_t cap, uint64_t *broken_cnt);

#endif
