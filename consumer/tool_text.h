/* SPDX-License-Identifier: Apache-2.0 */
/* tool_text.h - records as lines of CSV or JSON, for `stoup cat` and `stoup export`.
 *
 * Numbers are exact decimals, times ISO 8601 with nanoseconds, undefined values print as nothing (CSV) or
 * null (JSON). Reserved bytes (hidden fields) are not printed. Messages print as tool_messages.h says,
 * documents as tool_docs.h does.
 *
 * Concurrency: one thread. Errors of the stream stay in it (ferror).
 */
#ifndef STOUP_CONSUMER_TOOL_TEXT_H
#define STOUP_CONSUMER_TOOL_TEXT_H

#include <stddef.h>
#include <stdio.h>
#include "consumer/stoup.h"
#include "consumer/tool_docs.h"

struct stoup_text {
	FILE *out;
	const struct stoup_schema *schema;
	int json;
	int lines;   /* messages of JSON as `stoup ingest` reads them; set after stoup_text_init */
	char *field; /* room for one field */
	size_t field_cap;
	struct stoup_tool_docs
		docs; /* set after stoup_text_init: filter and paths. Ended by stoup_text_fini */
};

/* Make ready for records of `schema`, which stays the caller's. 0 or -ENOMEM. */
int stoup_text_init(
	struct stoup_text *text, FILE *out, int json, const struct stoup_schema *schema);

/* CSV's line of names; nothing for JSON and lines. */
void stoup_text_header(const struct stoup_text *text);

/* The idx-th record, or message, of a span of that schema: 1; 0 where it was left out, by docs.filter or because
 * it is no document (docs.broken_cnt counts those); -ENOMEM. */
int stoup_text_span(struct stoup_text *text, const struct stoup_span *span, uint64_t idx);

void stoup_text_fini(struct stoup_text *text);

#endif
