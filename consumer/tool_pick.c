/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pick.c - see tool_pick.h. */
#include "consumer/tool_pick.h"
#include <errno.h>
#include <stdlib.h>
#include "consumer/tool_docs.h"
#include "shm/stoup_doc.h"

struct stoup_pick {
	struct stoup_doc_filter **docs; /* of documents: each must hold */
	size_t cnt;
};

void stoup_pick_destroy(struct stoup_pick *pick)
{
	if (!pick)
		return;
	for (size_t i = 0; i < pick->cnt; i++)
		stoup_doc_filter_destroy(pick->docs[i]);
	free(pick->docs);
	free(pick);
}

int stoup_pick_create(const struct stoup_series *series, const char *const *texts, size_t cnt,
	struct stoup_pick **ret, struct stoup_error *err)
{
	struct stoup_pick *pick;
	int rc = 0;

	if (!stoup_tool_docs_are(series->schema))
		return stoup_error_set(err, -ENOTSUP,
			"%.150s has nothing that --where could look into: its schema is %s",
			series->name, series->schema->name);
	pick = calloc(1, sizeof(*pick));
	if (pick)
		pick->docs = calloc(cnt, sizeof(struct stoup_doc_filter *));
	if (!pick || !pick->docs)
		rc = stoup_error_set(err, -ENOMEM, "no memory for filters");
	for (; rc == 0 && pick->cnt < cnt; pick->cnt += rc == 0)
		rc = stoup_doc_filter_create(texts[pick->cnt], &pick->docs[pick->cnt], err);
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

int64_t stoup_pick_span(const struct stoup_pick *pick, const struct stoup_span *span, uint64_t from,
	uint64_t cnt, uint64_t *idx, uint64_t *broken)
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
