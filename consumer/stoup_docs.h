/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_docs.h - a filter over a whole series of documents: which messages of a span it holds of.
 *
 *      span     [doc 0][doc 1][doc 2][doc 3] ...      the bytes where they lie, in the pool
 *      idx      {1, 3, ...}                           a selection vector: ascending
 *
 *      uint32_t idx[1024];
 *      uint64_t broken_cnt = 0;
 *      int64_t cnt;
 *
 *      stoup_doc_filter_create("data.e = 'trade' and data.p >= 61800", &filter, &err);
 *      while ((rc = stoup_next(cur, &span)) > 0)
 *              for (uint64_t from = 0; from < span.record_cnt; from = cnt < 1024 ? span.record_cnt : idx[cnt - 1] + 1) {
 *                      cnt = stoup_doc_filter_span(filter, &span, from, idx, 1024, &broken_cnt);
 *                      for (int64_t i = 0; i < cnt; i++) {
 *                              struct stoup_message m = stoup_message_at(&span, idx[i]);
 *                              ...                     // stoup_doc_open(m.bytes, m.len, &doc)
 *                      }
 *              }
 *
 * Each document is walked once for all tests of the filter, as far as it takes: containers and members that
 * no test asks for are passed over by their lengths, and the walk ends where one test decides.
 *
 * Invariant: reads nothing outside of the span's messages, whatever their bytes are.
 *
 * Concurrency: pure, of a span that the caller holds; a filter may be used by all threads.
 */
#ifndef STOUP_DOCS_H
#define STOUP_DOCS_H

#include "stoup.h"
#if __has_include("stoup_doc.h")
#include "stoup_doc.h"
#else
#include "shm/stoup_doc.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Which of messages [from, record_cnt) of a span are documents that the filter holds of: their numbers in the
 * span, ascending, into idx[0..cap). Returns how many there are; fewer than `cap` means that the whole span was
 * looked at, else the next call goes on behind the last one found. Messages that are no documents (where the walk
 * came by) are left out and added to *broken_cnt, which may be NULL. -EINVAL for a span of records, which are no
 * messages. Never blocks. Thread-safe. */
STOUP_API int64_t stoup_doc_filter_span(const struct stoup_doc_filter *filter,
	const struct stoup_span *span, uint64_t from, uint32_t *idx, size_t cap,
	uint64_t *broken_cnt);

#ifdef __cplusplus
}
#endif

#endif
