/* SPDX-License-Identifier: Apache-2.0 */
/* tool_text.c - see tool_text.h. */
#include "consumer/tool_text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_messages.h"
#include "shm/format.h"
#include "shm/json.h"

static int is_text(const struct stoup_field *field)
{
	return field->type == STOUP_TYPE_CHAR || field->type == STOUP_TYPE_BYTES ||
	       (field->flags & STOUP_FIELD_TIME);
}

/* RFC 4180: quoted where the text holds a delimiter, a quote or a line end. */
static void csv_text(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

static void print_field(
	const struct stoup_text *text, const struct stoup_field *field, const char *record)
{
	if (text->json && stoup_field_is_null(field, record)) {
		fputs("null", text->out);
		return;
	}
	stoup_format_field(field, record, text->field, text->field_cap);
	if (!text->json)
		csv_text(text->out, text->field);
	else if (is_text(field) ||
		 strpbrk(text->field, "ni")) /* nan and inf are no numbers of JSON */
		stoup_json_string(text->out, text->field);
	else
		fputs(text->field, text->out);
}

static void record_print(const struct stoup_text *text, const void *record)
{
	const struct stoup_schema *schema = text->schema;
	const char *sep = "";

	if (text->json)
		putc('{', text->out);
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];

		if (field->flags & STOUP_FIELD_HIDDEN)
			continue;
		fputs(sep, text->out);
		if (text->json) {
			stoup_json_string(text->out, field->name);
			putc(':', text->out);
		}
		print_field(text, field, record);
		sep = ",";
	}
	fputs(text->json ? "}\n" : "\n", text->out);
}

void stoup_text_header(const struct stoup_text *text)
{
	const struct stoup_schema *schema = text->schema;
	const char *sep = "";

	if (text->json || text->lines)
		return;
	if (stoup_tool_docs_are(schema)) {
		stoup_tool_docs_header(&text->docs, text->out);
		return;
	}
	if (schema->flags & STOUP_SCHEMA_VARIABLE) {
		stoup_tool_messages_header(text->out);
		return;
	}
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		if (schema->fields[i].flags & STOUP_FIELD_HIDDEN)
			continue;
		fprintf(text->out, "%s%s", sep, schema->fields[i].name);
		sep = ",";
	}
	putc('\n', text->out);
}

int stoup_text_init(struct stoup_text *text, FILE *out, int json, const struct stoup_schema *schema)
{
	size_t cap = STOUP_FORMAT_CAP;

	for (uint32_t i = 0; i < schema->field_cnt; i++)
		if (cap < stoup_format_cap(&schema->fields[i]))
			cap = stoup_format_cap(&schema->fields[i]);
	*text = (struct stoup_text){.out = out, .schema = schema, .json = json, .field_cap = cap};
	text->field = malloc(cap);
	return text->field ? 0 : -ENOMEM;
}

void stoup_text_fini(struct stoup_text *text)
{
	free(text->field);
	text->field = NULL;
	stoup_tool_docs_fini(&text->docs);
}

static int print_message(struct stoup_text *text, const struct stoup_message *message)
{
	if (stoup_tool_docs_are(text->schema))
		return stoup_tool_docs_print(&text->docs, text->out, message,
			text->lines  ? STOUP_TOOL_LINES
			: text->json ? STOUP_TOOL_JSONL
				     : STOUP_TOOL_CSV);
	if (text->lines) {
		fprintf(text->out, "%" PRId64 " ", message->key);
		fwrite(message->bytes, 1, message->len, text->out);
		putc('\n', text->out);
	} else {
		stoup_tool_message_print(text->out, text->schema, message, text->json);
	}
	return 1;
}

int stoup_text_span(struct stoup_text *text, const struct stoup_span *span, uint64_t idx)
{
	struct stoup_message message;

	if (text->schema->flags & STOUP_SCHEMA_VARIABLE) {
		message = stoup_message_at(span, idx);
		return print_message(text, &message);
	}
	record_print(text, (const char *)span->base + idx * span->stride);
	return 1;
}
