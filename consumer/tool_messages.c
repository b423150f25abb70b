/* SPDX-License-Identifier: Apache-2.0 */
/* tool_messages.c - print one message (tool_messages.h). */
#include "consumer/tool_messages.h"

#include <string.h>
#include "shm/format.h"
#include "shm/json.h"

static int is_text(const struct stoup_schema *schema)
{
	return strcmp(schema->name, "json") == 0;
}

static void print_hex(FILE *out, const struct stoup_message *message)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *bytes = message->bytes;

	for (uint32_t i = 0; i < message->len; i++) {
		fputc(digits[bytes[i] >> 4], out);
		fputc(digits[bytes[i] & 15], out);
	}
}

/* Quoted in any case: a JSON text nearly always holds a quote or a comma. */
static void print_csv_text(FILE *out, const struct stoup_message *message)
{
	const unsigned char *p = message->bytes, *end = p + message->len;

	fputc('"', out);
	while (p < end) {
		size_t len = stoup_utf8_len(p, (size_t)(end - p));

		if (len == 0 || (*p < 0x20 && *p != '\t' && *p != '\n' && *p != '\r') || *p == 0x7f)
			fprintf(out, "\\x%02x", *p);
		else if (*p == '"')
			fputs("\"\"", out);
		else
			fwrite(p, 1, len, out);
		p += len ? len : 1;
	}
	fputc('"', out);
}

/* The value itself. Line ends of a JSON text stand between its tokens: blanks do as well there, and the line
 * stays one. */
static void print_value(FILE *out, const struct stoup_message *message)
{
	const char *at = message->bytes, *end = at + message->len;

	while (at < end) {
		const char *stop = at;

		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		fwrite(at, 1, (size_t)(stop - at), out);
		if (stop < end)
			fputc(' ', out);
		at = stop + 1;
	}
}

void stoup_tool_message_print(FILE *out, const struct stoup_schema *schema,
	const struct stoup_message *message, int json, const struct stoup_tool_frame *frame)
{
	char key[STOUP_FORMAT_CAP];

	fprintf(out, "%s%s", frame->lead, frame->open);
	if (!message) {
		fprintf(out, "%s%s", json ? "\"key\":null,\"message\":null" : ",", frame->close);
		return;
	}
	stoup_format_time(message->key, key);
	if (!json) {
		fprintf(out, "%s,", key);
		if (is_text(schema))
			print_csv_text(out, message);
		else
			print_hex(out, message);
		fputs(frame->close, out);
		return;
	}
	fprintf(out, "\"key\":\"%s\",\"message\":", key);
	if (!is_text(schema)) {
		fputc('"', out);
		print_hex(out, message);
		fputc('"', out);
	} else if (stoup_json_valid(message->bytes, message->len)) {
		print_value(out, message);
	} else {
		stoup_json_string_of(out, message->bytes, message->len);
	}
	fputs(frame->close, out);
}
