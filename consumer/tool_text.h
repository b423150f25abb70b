/* SPDX-License-Identifier: Apache-2.0 */
/* tool_text.h - records as lines of CSV or JSON, for `stoup cat` and `stoup export`.
 *
 * Numbers are exact decimals, times ISO 8601 with nanoseconds, undefined values print as nothing (CSV) or
 * null (JSON). Reserved bytes (hidden fields) are not printed.
 *
 * Concurrency: one thread. Errors of the stream stay in it (ferror).
 */
#ifndef STOUP_CONSUMER_TOOL_TEXT_H
#define STOUP_CONSUMER_TOOL_TEXT_H

#include <stddef.h>
#include <stdio.h>
#include "shm/stoup_types.h"

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

void stoup_text_record(const struct stoup_text *text, const void *record);

void stoup_text_fini(struct stoup_text *text);

#endif
