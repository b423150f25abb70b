/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pick.c - see tool_pick.h. */
#include "consumer/tool_pick.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "consumer/stoup_filter.h"
#include "consumer/tool_docs.h"
#include "shm/stoup_doc.h"

struct stoup_pick {
	struct stoup_doc_filter **docs; /* of documents: each must hold */
	size_t cnt;
	struct stoup_filter *
		records; /* of records: all texts in one, so that the index can rule out segments by each */
};

void stoup_pick_destroy(struct stoup_pick *pick)
{
	if (!pick)
		return;
	for (size_t i = 0; i < pick->cnt; i++)
		stoup_doc_filter_destroy(pick->docs[i]);
	free(pick->docs);
	stoup_filter_destroy(pick->records);
	free(pick);
}

struct stoup_filter *stoup_pick_filter(const struct stoup_pick *pick)
{
	return pick ? pick->records : NULL;
}

static int docs_create(
	struct stoup_pick *pick, const char *const *texts, size_t cnt, struct stoup_error *err)
{
	int rc = 0;

	pick->docs = calloc(cnt, sizeof(struct stoup_doc_filter *));
	if (!pick->docs)
		return stoup_error_set(err, -ENOMEM, "no memory for filters");
	for (; rc == 0 && pick->cnt < cnt; pick->cnt += rc == 0)
		rc = stoup_doc_filter_create(texts[pick->cnt], &pick->docs[pick->cnt], err);
	return rc;
}

/* (a) and (b), for free(); NULL: no memory. */
static char *join(const char *const *texts, size_t cnt)
{
	char *ret = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&ret, &len);

	if (!out)
		return NULL;
	for (size_t i = 0; i < cnt; i++)
		fprintf(out, "%s(%s)", i ? " and " : "", texts[i]);
	if (fclose(out) == 0)
		return ret;
	free(ret);
	return NULL;
}

/* Each by itself first, so that what is said of one counts its own columns. */
static int records_create(struct stoup_pick *pick, const struct stoup_schema *schema,
	const char *const *texts, size_t cnt, struct stoup_error *err)
{
	char *joined;
	int rc = 0;

	for (size_t i = 0; i < cnt && rc == 0; i++) {
		stoup_filter_destroy(pick->records);
		pick->records = NULL;
		rc = stoup_filter_create(schema, texts[i], &pick->records, err);
	}
	if (rc < 0 || cnt == 1)
		return rc;
	stoup_filter_destroy(pick->records);
	pick->records = NULL;
	joined = join(texts, cnt);
	rc = joined ? stoup_filter_create(schema, joined, &pick->records, err)
	            : stoup_error_set(err, -ENOMEM, "no memory for filters");
	free(joined);
	return rc;
}

int stoup_pick_create(const struct stoup_series *series, const char *const *texts, size_t cnt,
	struct stoup_pick **ret, struct stoup_error *err)
{
	int are_docs = stoup_tool_docs_are(series->schema), rc;
	struct stoup_pick *pick;

	if (!are_docs && (series->schema->flags & STOUP_SCHEMA_VARIABLE))
		return stoup_error_set(err, -ENOTSUP,
			"%.150s has nothing that --where could look into: its schema is %s",
			series->name, series->schema->name);
	pick = calloc(1, sizeof(*pick));
	if (!pick)
		return stoup_error_set(err, -ENOMEM, "no memory for filters");
	rc = are_docs ? docs_create(pick, texts, cnt, err)
	              : records_create(pick, series->schema, texts, cnt, err);
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
	int64_t found_cnt;

	if (pick->docs)
		return docs_span(pick, span, from, cnt, idx, broken);
	part.base = (const uint8_t *)span->base + from * span->stride;
	part.record_cnt = cnt;
	found_cnt = stoup_filter_span(pick->records, &part, 0, found, STOUP_PICK_CAP);
	for (int64_t i = 0; i < found_cnt; i++)
		idx[i] = from + found[i];
	return found_cnt;
}
