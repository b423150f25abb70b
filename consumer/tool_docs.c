/* SPDX-License-Identifier: Apache-2.0 */
/* tool_docs.c - see tool_docs.h. */
#include "consumer/tool_docs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "shm/format.h"
#include "shm/json.h"

int stoup_tool_docs_are(const struct stoup_schema *schema)
{
	return (schema->flags & STOUP_SCHEMA_VARIABLE) && strcmp(schema->name, "bipf") == 0;
}

int stoup_tool_docs_broken(const struct stoup_span *span, uint64_t idx)
{
	struct stoup_message message;

	if (!stoup_tool_docs_are(span->schema))
		return 0;
	message = stoup_message_at(span, idx);
	return stoup_doc_valid(message.bytes, message.len, NULL) < 0;
}

int stoup_tool_json_is(const struct stoup_schema *schema)
{
	return stoup_tool_docs_are(schema) ||
	       ((schema->flags & STOUP_SCHEMA_VARIABLE) && strcmp(schema->name, "json") == 0);
}

int stoup_tool_docs_path(struct stoup_tool_docs *docs, const char *text, struct stoup_error *err)
{
	int rc;

	if (docs->path_cnt == STOUP_TOOL_PATH_CAP)
		return stoup_error_set(err, -E2BIG, "more than %u paths", STOUP_TOOL_PATH_CAP);
	rc = stoup_doc_path_create(text, &docs->paths[docs->path_cnt], err);
	if (rc == 0)
		docs->names[docs->path_cnt++] = text;
	return rc;
}

void stoup_tool_docs_fini(struct stoup_tool_docs *docs)
{
	for (uint32_t i = 0; i < docs->path_cnt; i++)
		stoup_doc_path_destroy(docs->paths[i]);
	free(docs->json);
	*docs = (struct stoup_tool_docs){0};
}

/* ---- texts --------------------------------------------------------------------------------------------- */

/* The value as JSON in docs->json: its length; -EBADMSG for what is no document, -ENOMEM. */
static int64_t json_of(struct stoup_tool_docs *docs, const struct stoup_doc *value)
{
	int64_t len = stoup_doc_json(value, docs->json, docs->json_cap);

	if (len > (int64_t)docs->json_cap) {
		free(docs->json);
		docs->json_cap = 2 * (size_t)len;
		docs->json = malloc(docs->json_cap);
		if (!docs->json) {
			docs->json_cap = 0;
			return -ENOMEM;
		}
		len = stoup_doc_json(value, docs->json, docs->json_cap);
	}
	return len == -EMSGSIZE ? -EBADMSG : len;
}

static void csv_text(FILE *out, const char *text, size_t len)
{
	const char *end = text + len;

	fputc('"', out);
	for (; text < end; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static int is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] == ',' || text[i] == '"' || (unsigned char)text[i] < 0x20)
			return 0;
	return len > 0;
}

static void csv_value(FILE *out, const char *text, size_t len)
{
	if (is_plain(text, len))
		fwrite(text, 1, len, out);
	else
		csv_text(out, text, len);
}

void stoup_tool_docs_names(const struct stoup_tool_docs *docs, FILE *out)
{
	fputs(docs->path_cnt ? "key" : "key,message", out);
	for (uint32_t i = 0; i < docs->path_cnt; i++) {
		fputc(',', out);
		csv_value(out, docs->names[i], strlen(docs->names[i]));
	}
}

/* ---- one message ----------------------------------------------------------------------------------------- */

/* The value at each path. 0, -EBADMSG or -ENOMEM; then a part of a line may be out. */
static int print_paths(struct stoup_tool_docs *docs, FILE *out, const struct stoup_doc *doc,
	enum stoup_tool_form form)
{
	struct stoup_doc value;
	const char *text;
	size_t text_len;
	int64_t len;
	int rc;

	for (uint32_t i = 0; i < docs->path_cnt; i++) {
		fputc(',', out);
		if (form == STOUP_TOOL_JSONL) {
			stoup_json_string(out, docs->names[i]);
			fputc(':', out);
		}
		rc = stoup_doc_seek(doc, docs->paths[i], &value);
		if (rc < 0)
			return rc;
		if (rc == 0) {
			fputs(form == STOUP_TOOL_JSONL ? "null" : "", out);
			continue;
		}
		if (form == STOUP_TOOL_CSV && stoup_doc_string(&value, &text, &text_len) == 0) {
			csv_value(out, text, text_len);
			continue;
		}
		len = json_of(docs, &value);
		if (len < 0)
			return (int)len;
		if (form == STOUP_TOOL_CSV)
			csv_value(out, docs->json, (size_t)len);
		else
			fwrite(docs->json, 1, (size_t)len, out);
	}
	return 0;
}

static int print_whole(struct stoup_tool_docs *docs, FILE *out, int64_t key,
	const struct stoup_doc *doc, enum stoup_tool_form form,
	const struct stoup_tool_frame *frame)
{
	char time[STOUP_FORMAT_CAP];
	int64_t len = json_of(docs, doc);

	if (len < 0)
		return (int)len;
	stoup_format_time(key, time);
	if (form == STOUP_TOOL_LINES) {
		fprintf(out, "%" PRId64 " ", key);
	} else {
		fprintf(out, "%s%s", frame->lead, frame->open);
		fprintf(out, form == STOUP_TOOL_CSV ? "%s," : "\"key\":\"%s\",\"message\":", time);
	}
	if (form == STOUP_TOOL_CSV)
		csv_text(out, docs->json, (size_t)len);
	else
		fwrite(docs->json, 1, (size_t)len, out);
	fputs(form == STOUP_TOOL_LINES ? "\n" : frame->close, out);
	return 0;
}

static int print(struct stoup_tool_docs *docs, FILE *out, const struct stoup_message *message,
	const struct stoup_doc *doc, enum stoup_tool_form form,
	const struct stoup_tool_frame *frame)
{
	char time[STOUP_FORMAT_CAP];
	int rc;

	/* Before a part of the line is out; and what is no document is left out in all forms. */
	if (stoup_doc_valid(doc->payload - doc->tag_len, doc->tag_len + doc->payload_len, NULL))
		return -EBADMSG;
	if (docs->path_cnt == 0)
		return print_whole(docs, out, message->key, doc, form, frame);
	stoup_format_time(message->key, time);
	fprintf(out, "%s%s", frame->lead, frame->open);
	fprintf(out, form == STOUP_TOOL_CSV ? "%s" : "\"key\":\"%s\"", time);
	rc = print_paths(docs, out, doc, form);
	fputs(frame->close, out);
	return rc;
}

static void print_none(const struct stoup_tool_docs *docs, FILE *out, enum stoup_tool_form form,
	const struct stoup_tool_frame *frame)
{
	fprintf(out, "%s%s%s", frame->lead, frame->open,
		form == STOUP_TOOL_CSV ? "" : "\"key\":null");
	if (docs->path_cnt == 0)
		fputs(form == STOUP_TOOL_CSV ? "," : ",\"message\":null", out);
	for (uint32_t i = 0; i < docs->path_cnt; i++) {
		fputc(',', out);
		if (form == STOUP_TOOL_CSV)
			continue;
		stoup_json_string(out, docs->names[i]);
		fputs(":null", out);
	}
	fputs(frame->close, out);
}

int stoup_tool_docs_print(struct stoup_tool_docs *docs, FILE *out,
	const struct stoup_message *message, enum stoup_tool_form form,
	const struct stoup_tool_frame *frame)
{
	struct stoup_doc doc;
	int rc;

	if (!message) {
		print_none(docs, out, form, frame);
		return 1;
	}
	rc = stoup_doc_open(message->bytes, message->len, &doc);
	if (rc >= 0)
		rc = print(docs, out, message, &doc, form, frame);
	if (rc == -ENOMEM)
		return rc;
	docs->broken_cnt += rc < 0;
	return rc == 0;
}
