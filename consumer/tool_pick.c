/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pick.c - see tool_pick.h. */
#include "consumer/tool_pick.h"
#include <errno.h>
#include <stdlib.h>
#include "consumer/stoup_filter.h"
#include "consumer/tool_docs.h"
#include "shm/stoup_doc.h"

/* One filter for each text: of documents, or of records; each must hold. */
struct stoup_pick {
	struct stoup_doc_filter **docs; /* NULL: of records */
	struct stoup_filter **records;
	size_t cnt;
};

void stoup_pick_destroy(struct stoup_pick *pick)
{
	if (!pick)
		return;
	for (size_t i = 0; i < pick->cnt; i++)
		if (pick->docs)
			stoup_doc_filter_destroy(pick->docs[i]);
		else
			stoup_filter_destroy(pick->records[i]);
	free(pick->docs);
	free(pick->records);
	free(pick);
}

int stoup_pick_create(const struct stoup_series *series, const char *const *texts, size_t cnt,
	struct stoup_pick **ret, struct stoup_error *err)
{
	int are_docs = stoup_tool_docs_are(series->schema), rc = 0;
	struct stoup_pick *pick;

	if (!are_docs && (series->schema->flags & STOUP_SCHEMA_VARIABLE))
		return stoup_error_set(err, -ENOTSUP,
			"%.150s has nothing that --where could look into: its schema is %s",
			series->name, series->schema->name);
	pick = calloc(1, sizeof(*pick));
	if (pick && are_docs)
		pick->docs = calloc(cnt, sizeof(struct stoup_doc_filter *));
	else if (pick)
		pick->records = calloc(cnt, sizeof(struct stoup_filter *));
	if (!pick || (!pick->docs && !pick->records))
		rc = stoup_error_set(err, -ENOMEM, "no memory for filters");
	for (; rc == 0 && pick->cnt < cnt; pick->cnt += rc == 0)
		rc = are_docs ? stoup_doc_filter_create(
					texts[pick->cnt], &pick->docs[pick->cnt], err)
		              : stoup_filter_create(series->schema, texts[pick->cnt],
					&pick->records[pick->cnt], err);
	if (rc < 0) {
		stoup_pick_destroy(pick);
		return rc;
	}
	*ret = pick;
	return 0;
}

static int doc_match(const struct stoup_pick *pick, const struct stoup_message *message)
{
	struct stoup_doc doc;
	int rc = stoup_doc_open(message->bytes, message->len, &doc);

	if (rc < 0)
		return rc;
	rc = 1;
	for (size_t i = 0; i < pick->cnt && rc == 1; i++)
		rc = stoup_doc_match(pick->docs[i], &doc);
	return rc;
}

static int64_t docs_span(const struct stoup_pick *pick, const struct stoup_span *span,
	uint64_t from, uint64_t cnt, uint64_t *idx, uint64_t *broken)
{
	int64_t ret = 0;

	for (uint64_t i = from; i < from + cnt; i++) {
		struct stoup_message message = stoup_message_at(span, i);
		int rc = doc_match(pick, &message);

		*broken += rc < 0;
		if (rc == 1)
			idx[ret++] = i;
	}
	return ret;
}

int64_t stoup_pick_span(const struct stoup_pick *pick, const struct stoup_span *span, uint64_t from,
	uint64_t cnt, uint64_t *idx, uint64_t *broken)
{
	struct stoup_span part = *span;
	uint32_t found[STOUP_PICK_CAP];
	int64_t found_cnt, ret = 0;

	if (pick->docs)
		return docs_span(pick, span, from, cnt, idx, broken);
	part.base = (const uint8_t *)span->base + from * span->stride;
	part.record_cnt = cnt;
	found_cnt = stoup_filter_span(pick->records[0], &part, 0, found, STOUP_PICK_CAP);
	if (found_cnt < 0)
		return found_cnt;
	for (int64_t i = 0; i < found_cnt; i++) {
		const uint8_t *record = (const uint8_t *)part.base + found[i] * part.stride;
		int holds = 1;

		for (size_t k = 1; k < pick->cnt && holds; k++)
			holds = stoup_filter_match(pick->records[k], record);
		if (holds)
			idx[ret++] = from + found[i];
	}
	return ret;
}
