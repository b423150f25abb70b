/* SPDX-License-Identifier: Apache-2.0 */
/* tool_docs.h - messages that are JSON, for `stoup cat`: documents printed whole, or cut to paths.
 *
 *      csv     key,message                     the JSON text, quoted
 *      csv     key,data.p,data.q               with paths: texts as they are, what is not there empty
 *      jsonl   {"key":"2024-...Z","message":{...}}, {"key":"2024-...Z","data.p":"61800.30"}
 *      lines   1723161255088176367 {...}       what `stoup ingest` reads
 *
 * Concurrency: one thread. A failure to write is left to the stream.
 */
#ifndef STOUP_CONSUMER_TOOL_DOCS_H
#define STOUP_CONSUMER_TOOL_DOCS_H

#include <stdio.h>
#include "consumer/stoup.h"
#include "consumer/tool_messages.h"
#include "shm/stoup_doc.h"

#define STOUP_TOOL_PATH_CAP 32u

enum stoup_tool_form {
	STOUP_TOOL_CSV,
	STOUP_TOOL_JSONL,
	STOUP_TOOL_LINES,
};

/* All zero: everything is printed whole. Texts are the caller's. */
struct stoup_tool_docs {
	struct stoup_doc_path *paths[STOUP_TOOL_PATH_CAP];
	const char *names[STOUP_TOOL_PATH_CAP];
	uint32_t path_cnt;
	char *json; /* room for one text */
	size_t json_cap;
	uint64_t broken_cnt; /* messages that were no documents: left out */
};

/* Are records of this schema documents? */
int stoup_tool_docs_are(const struct stoup_schema *schema);

/* Is message `idx` of a span one that should be a document and is none? 1 or 0: it will not be printed. */
int stoup_tool_docs_broken(const struct stoup_span *span, uint64_t idx);

/* Are they JSON: documents, or texts of schema json? */
int stoup_tool_json_is(const struct stoup_schema *schema);

/* Print the value at a path, and no more of the document; may be said several times. 0; -E2BIG, or as
 * stoup_doc_path_create. */
int stoup_tool_docs_path(struct stoup_tool_docs *docs, const char *text, struct stoup_error *err);

/* The columns' names of csv: key,message, or key and the paths. */
void stoup_tool_docs_names(const struct stoup_tool_docs *docs, FILE *out);

/* Print a message of schema bipf as a line: 1; 0 where it is no document and was left out; -ENOMEM. NULL: there is
 * none, its columns are empty. Lines have no frame. */
int stoup_tool_docs_print(struct stoup_tool_docs *docs, FILE *out,
	const struct stoup_message *message, enum stoup_tool_form form,
	const struct stoup_tool_frame *frame);

void stoup_tool_docs_fini(struct stoup_tool_docs *docs);

#endif
