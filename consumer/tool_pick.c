/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pick.c - see tool_pick.h. */
#include "consumer/tool_pick.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "consumer/stoup_docs.h"
#include "consumer/stoup_filter.h"
#include "consumer/tool_docs.h"

/* All texts in one filter: the index can rule out segments by each, a document is walked once. */
struct stoup_pick {
	struct stoup_doc_filter *docs; /* of documents, else NULL */
	struct stoup_filter *records;  /* of records, else NULL */
};

void stoup_pick_destroy(struct stoup_pick *pick)
{
	if (!pick)
		return;
	stoup_doc_filter_destroy(pick->docs);
	stoup_filter_destroy(pick->records);
	free(pick);
}

struct stoup_filter *stoup_pick_filter(const struct stoup_pick *pick)
{
	return pick ? pick->records : NULL;
}

static int filter_make(struct stoup_pick *pick, const struct stoup_schema *schema, const char *text,
	struct stoup_error *err)
{
	stoup_doc_filter_destroy(pick->docs);
	stoup_filter_destroy(pick->records);
	pick->docs = NULL;
	pick->records = NULL;
	return stoup_tool_docs_are(schema) ? stoup_doc_filter_create(text, &pick->docs, err)
	                                   : stoup_filter_create(schema, text, &pick->records, err);
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
static int filters_make(struct stoup_pick *pick, const struct stoup_schema *schema,
	const char *const *texts, size_t cnt, struct stoup_error *err)
{
	char *joined;
	int rc = 0;

	for (size_t i = 0; i < cnt && rc == 0; i++) {
		rc = filter_make(pick, schema, texts[i], err);
		if (rc == -EINVAL && cnt > 1)
			stoup_error_prefix(err, "'%.40s'", texts[i]);
	}
	if (rc < 0 || cnt == 1)
		return rc;
	joined = join(texts, cnt);
	rc = joined ? filter_make(pick, schema, joined, err)
	            : stoup_error_set(err, -ENOMEM, "no memory for filters");
	free(joined);
	return rc;
}

int stoup_pick_create(const struct stoup_series *series, const char *const *texts, size_t cnt,
	struct stoup_pick **ret, struct stoup_error *err)
{
	struct stoup_pick *pick;
	int rc;

	if (!stoup_tool_docs_are(series->schema) && (series->schema->flags & STOUP_SCHEMA_VARIABLE))
		return stoup_error_set(err, -ENOTSUP,
			"%.150s has nothing that --where could look into: its schema is %s%s",
			series->name, series->schema->name,
			stoup_tool_json_is(series->schema)
				? "; `stoup ingest --as document` makes documents of JSON"
				: "");
	pick = calloc(1, sizeof(*pick));
	if (!pick)
		return stoup_error_set(err, -ENOMEM, "no memory for filters");
	rc = filters_make(pick, series->schema, texts, cnt, err);
	if (rc < 0) {
		stoup_pick_destroy(pick);
		return rc;
	}
	*ret = pick;
	return 0;
}

int64_t stoup_pick_span(const struct stoup_pick *pick, const struct stoup_span *span, uint64_t from,
	uint64_t cnt, uint64_t *idx, uint64_t *broken)
{
	struct stoup_span part = *span;
	uint32_t found[STOUP_PICK_CAP];
	int64_t found_cnt;

	part.base = (const uint8_t *)span->base + from * span->stride;
	part.record_cnt = cnt;
	found_cnt = pick->docs ? stoup_doc_filter_span(
					 pick->docs, &part, 0, found, STOUP_PICK_CAP, broken)
	                       : stoup_filter_span(pick->records, &part, 0, found, STOUP_PICK_CAP);
	for (int64_t i = 0; i < found_cnt; i++)
		idx[i] = from + found[i];
	return found_cnt;
}
