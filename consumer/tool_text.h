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

/* A column of records; `field` NULL: these have none, and it prints as undefined. */
struct stoup_text_column {
	const char *name;
	const struct stoup_field *field;
};

struct stoup_text {
	FILE *out;
	const struct stoup_schema *schema;
	int json;
	int lines; /* messages of JSON as `stoup ingest` reads them; set after stoup_text_init */
	struct stoup_tool_frame frame;     /* around each line; may be set after stoup_text_init */
	struct stoup_text_column *columns; /* of records: the fields, or those that were chosen */
	uint32_t column_cnt;
	char *field; /* room for one field */
	size_t field_cap;
	struct stoup_tool_docs
		docs; /* set after stoup_text_init: paths. Ended by stoup_text_fini */
};

/* Make ready for records of `schema`, which stays the caller's. 0 or -ENOMEM. */
int stoup_text_init(
	struct stoup_text *text, FILE *out, int json, const struct stoup_schema *schema);

/* Print these columns of records, which are copied, instead of all. 0 or -ENOMEM. */
int stoup_text_choose(
	struct stoup_text *text, const struct stoup_text_column *columns, uint32_t cnt);

/* CSV's names of columns, without an end of line. */
void stoup_text_names(const struct stoup_text *text);

/* CSV's line of names; nothing for JSON and lines. */
void stoup_text_header(const struct stoup_text *text);

/* RFC 4180: quoted where the text holds a delimiter, a quote or a line end. */
void stoup_text_csv(FILE *out, const char *text);

/* The idx-th record, or message, of a span of that schema: 1; 0 where it was left out because it is no document
 * (docs.broken_cnt counts those); -ENOMEM. NULL: a line whose columns are all undefined. */
int stoup_text_span(struct stoup_text *text, const struct stoup_span *span, uint64_t idx);

void stoup_text_fini(struct stoup_text *text);

#endif
