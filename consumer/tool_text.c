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

void stoup_text_csv(FILE *out, const char *text)
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

/* Is a field all of its line of CSV? Readers take an empty line for none. */
static int is_alone(const struct stoup_text *text)
{
	return text->column_cnt == 1 && !*text->frame.lead && !*text->frame.open &&
	       strcmp(text->frame.close, "\n") == 0;
}

static void print_field(
	const struct stoup_text *text, const struct stoup_field *field, const char *record)
{
	if (text->json && stoup_field_is_null(field, record)) {
		fputs("null", text->out);
		return;
	}
	stoup_format_field(field, record, text->field, text->field_cap);
	if (!text->json && !*text->field && is_alone(text))
		fputs("\"\"", text->out);
	else if (!text->json && field->type == STOUP_TYPE_CHAR)
		stoup_text_csv(text->out, text->field);
	else if (!text->json)
		fputs(text->field, text->out); /* has none of CSV's own characters */
	else if (is_text(field) ||
		 strpbrk(text->field, "ni")) /* nan and inf are no numbers of JSON */
		stoup_json_string(text->out, text->field);
	else
		fputs(text->field, text->out);
}

/* Of one series there is mostly nothing in front of a row. */
static void put_frame(FILE *out, const char *text)
{
	if (*text)
		fputs(text, out);
}

/* `record` NULL: there is none. */
static void record_print(const struct stoup_text *text, const void *record)
{
	put_frame(text->out, text->frame.lead);
	put_frame(text->out, text->frame.open);
	for (uint32_t i = 0; i < text->column_cnt; i++) {
		const struct stoup_text_column *column = &text->columns[i];

		if (i > 0)
			putc(',', text->out);
		if (text->json) {
			stoup_json_string(text->out, column->name);
			putc(':', text->out);
		}
		if (record && column->field)
			print_field(text, column->field, record);
		else if (text->json)
			fputs("null", text->out);
	}
	fputs(text->frame.close, text->out);
}

void stoup_text_names(const struct stoup_text *text)
{
	if (stoup_tool_docs_are(text->schema))
		stoup_tool_docs_names(&text->docs, text->out);
	else if (text->schema->flags & STOUP_SCHEMA_VARIABLE)
		fputs("key,message", text->out);
	else
		for (uint32_t i = 0; i < text->column_cnt; i++)
			fprintf(text->out, "%s%s", i ? "," : "", text->columns[i].name);
}

void stoup_text_header(const struct stoup_text *text)
{
	if (text->json || text->lines)
		return;
	stoup_text_names(text);
	putc('\n', text->out);
}

static uint32_t shown_columns(const struct stoup_schema *schema, struct stoup_text_column *ret)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < schema->field_cnt; i++)
		if (!(schema->fields[i].flags & STOUP_FIELD_HIDDEN))
			ret[cnt++] = (struct stoup_text_column){
				schema->fields[i].name, &schema->fields[i]};
	return cnt;
}

int stoup_text_init(struct stoup_text *text, FILE *out, int json, const struct stoup_schema *schema)
{
	size_t cap = STOUP_FORMAT_CAP;

	for (uint32_t i = 0; i < schema->field_cnt; i++)
		if (cap < stoup_format_cap(&schema->fields[i]))
			cap = stoup_format_cap(&schema->fields[i]);
	*text = (struct stoup_text){.out = out, .schema = schema, .json = json, .field_cap = cap};
	text->frame = (struct stoup_tool_frame){"", json ? "{" : "", json ? "}\n" : "\n"};
	text->field = malloc(cap);
	text->columns = calloc((size_t)schema->field_cnt + 1, sizeof(*text->columns));
	if (!text->field || !text->columns) {
		stoup_text_fini(text);
		return -ENOMEM;
	}
	text->column_cnt = shown_columns(schema, text->columns);
	return 0;
}

int stoup_text_choose(
	struct stoup_text *text, const struct stoup_text_column *columns, uint32_t cnt)
{
	struct stoup_text_column *copy = calloc((size_t)cnt + 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (cnt > 0)
		memcpy(copy, columns, cnt * sizeof(*copy));
	free(text->columns);
	text->columns = copy;
	text->column_cnt = cnt;
	return 0;
}

void stoup_text_fini(struct stoup_text *text)
{
	free(text->field);
	free(text->columns);
	text->field = NULL;
	text->columns = NULL;
	stoup_tool_docs_fini(&text->docs);
}

static int print_message(struct stoup_text *text, const struct stoup_message *message)
{
	if (stoup_tool_docs_are(text->schema))
		return stoup_tool_docs_print(&text->docs, text->out, message,
			text->lines  ? STOUP_TOOL_LINES
			: text->json ? STOUP_TOOL_JSONL
				     : STOUP_TOOL_CSV,
			&text->frame);
	if (text->lines) {
		fprintf(text->out, "%" PRId64 " ", message->key);
		fwrite(message->bytes, 1, message->len, text->out);
		putc('\n', text->out);
	} else {
		stoup_tool_message_print(
			text->out, text->schema, message, text->json, &text->frame);
	}
	return 1;
}

int stoup_text_span(struct stoup_text *text, const struct stoup_span *span, uint64_t idx)
{
	struct stoup_message message;

	if (text->schema->flags & STOUP_SCHEMA_VARIABLE) {
		if (span)
			message = stoup_message_at(span, idx);
		return print_message(text, span ? &message : NULL);
	}
	record_print(text, span ? (const char *)span->base + idx * span->stride : NULL);
	return 1;
}
