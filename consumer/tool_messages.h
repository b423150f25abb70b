/* SPDX-License-Identifier: Apache-2.0 */
/* tool_messages.h - messages of variable length as text, for `stoup cat`.
 *
 *      csv     key,message      the text of a schema of texts, else hexadecimal digits
 *      jsonl   {"key":"2024-...Z","message":...}    a JSON text as the value that it is
 *
 * In csv a byte that is no UTF-8, or a control byte other than tab and line ends, prints as \xNN, a backslash
 * of such a text is not marked. In jsonl a json message that is no JSON prints as a string, bytes that are no
 * UTF-8 in it as U+FFFD: what is printed then is not all that was stored.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_MESSAGES_H
#define STOUP_CONSUMER_TOOL_MESSAGES_H

#include <stdint.h>
#include <stdio.h>
#include "consumer/stoup.h"

/* What stands around the columns of a line: "" and "\n" of CSV, "{" and "}\n" of JSON, with more where a line says
 * more, such as its series. Texts are the caller's. */
struct stoup_tool_frame {
	const char *lead; /* of this line */
	const char *open; /* behind it, of all lines of a series */
	const char *close;
};

/* One message of a series of `schema`, as a line; NULL: there is none, its columns are empty. */
void stoup_tool_message_print(FILE *out, const struct stoup_schema *schema,
	const struct stoup_message *message, int json, const struct stoup_tool_frame *frame);

#endif
