/* SPDX-License-Identifier: Apache-2.0 */
/* tool_text.h - records as lines of CSV or JSON, for `stoup cat` and `stoup export`.
 *
 * Numbers are exact decimals, times ISO 8601 with nanoseconds, undefined values print as nothing (CSV) or
 * null (JSON). Reserved bytes (hidden fields) are not printed. Messages print as tool_messages.h says.
 *
 * Concurrency: one thread. Errors of the stream stay in it (ferror).
 */
#ifndef STOUP_CONSUMER_TOOL_TEXT_H
#define STOUP_CONSUMER_TOOL_TEXT_H

#include <stddef.h>
#include <stdio.h>
#include "consumer/stoup.h"

struct stoup_text {
	FILE *out;
	const struct stoup_schema *schema;
	int json;
	char *field; /* room for one field */
	size_t field_cap;
};

/* Make ready for records of `schema`, which stays the caller's. 0 or -ENOMEM. */
int stoup_text_init(
	struct stoup_text *text, FILE *out, int json, const struct stoup_schema *schema);

/* CSV's line of names; nothing for JSON. */
void stoup_text_header(const struct stoup_text *text);

/* The idx-th record, or message, of a span of that schema. */
void stoup_text_span(const struct stoup_text *text, const struct stoup_span *span, uint64_t idx);

void stoup_text_fini(struct stoup_text *text);

#endif
