/* SPDX-License-Identifier: Apache-2.0 */
/* doc_json.c - a document as JSON, without blanks (see stoup_doc.h).
 *
 * Invariant: reading the text again gives the same document, but for buffers, undefined values, and
 * documents that stoup_doc_valid refuses.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "shm/doc_read.h"

struct out {
	char *dst;
	size_t cap;
	size_t len; /* of the whole text, written or not */
};

static void put(struct out *out, const void *bytes, size_t len)
{
	if (out->len < out->cap) {
		size_t room = out->cap - out->len;

		memcpy(out->dst + out->len, bytes, len < room ? len : room);
	}
	out->len += len;
}

static void put_char(struct out *out, char c)
{
	if (out->len < out->cap)
		out->dst[out->len] = c;
	out->len++;
}

/* ---- strings ------------------------------------------------------------------------------------- */

/* Bytes up to the first that must be escaped: a quote, a backslash, a control character. */
static size_t plain_len(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *from = at;

	while (at < end && *at >= 0x20 && *at != '"' && *at != '\\')
		at++;
	return (size_t)(at - from);
}

static void put_escape(struct out *out, uint8_t c)
{
	static const char hex[] = "0123456789abcdef";
	static const char *const named[] = {
		['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r"};

	if (c == '"' || c == '\\') {
		put_char(out, '\\');
		put_char(out, (char)c);
	} else if (c < sizeof(named) / sizeof(named[0]) && named[c]) {
		put(out, named[c], 2);
	} else {
		put(out, "\\u00", 4);
		put_char(out, hex[c >> 4]);
		put_char(out, hex[c & 15]);
	}
}

static int put_string(struct out *out, const struct stoup_doc *value)
{
	const uint8_t *at = value->payload, *end = stoup_doc_end(value);

	put_char(out, '"');
	while (at < end) {
		size_t len = plain_len(at, end);

		for (size_t i = 0; i < len;) { /* what is no UTF-8 would be no JSON */
			size_t one = at[i] < 0x80 ? 1 : stoup_doc_utf8(at + i, end);

			if (one == 0)
				return -EBADMSG;
			i += one;
		}
		put(out, at, len);
		at += len;
		if (at < end)
			put_escape(out, *at++);
	}
	put_char(out, '"');
	return 0;
}

/* ---- other values --------------------------------------------------------------------------------- */

static int put_number(struct out *out, const struct stoup_doc *value)
{
	char room[STOUP_DOC_NUMBER_CAP];
	struct stoup_doc_number number;

	stoup_doc_number(value, &number);
	if (number.form == STOUP_DOC_FORM_NONE ||
		(number.form == STOUP_DOC_FORM_F64 && !isfinite(number.f64)) ||
		(number.form == STOUP_DOC_FORM_TEXT &&
			!stoup_doc_number_is(number.text, number.text_len)))
		return -EBADMSG;
	stoup_doc_number_text(&number, room);
	put(out, number.text, number.text_len);
	return 0;
}

static int put_atom(struct out *out, const struct stoup_doc *value)
{
	static const char *const texts[] = {"false", "true", "null"};
	const char *text = "null";

	if (value->payload_len > 1 || (value->payload_len == 1 && value->payload[0] > 2))
		return -EBADMSG;
	if (value->payload_len == 1)
		text = texts[value->payload[0]];
	put(out, text, strlen(text));
	return 0;
}

/* As JavaScript has it. */
static int put_buffer(struct out *out, const struct stoup_doc *value)
{
	static const char head[] = "{\"type\":\"Buffer\",\"data\":[";
	char text[8];

	put(out, head, sizeof(head) - 1);
	for (uint32_t i = 0; i < value->payload_len; i++)
		put(out, text,
			(size_t)snprintf(text, sizeof(text), i ? ",%u" : "%u", value->payload[i]));
	put(out, "]}", 2);
	return 0;
}

static int put_leaf(struct out *out, const struct stoup_doc *value)
{
	switch (value->type) {
	case STOUP_DOC_STRING:
		return put_string(out, value);
	case STOUP_DOC_BUFFER:
		return put_buffer(out, value);
	case STOUP_DOC_ATOM:
		return put_atom(out, value);
	default:
		return put_number(out, value);
	}
}

/* ---- containers ------------------------------------------------------------------------------------ */

struct level {
	struct stoup_doc_iter iter;
	int more; /* something was printed in it */
};

static int is_container(const struct stoup_doc *value)
{
	return value->type == STOUP_DOC_ARRAY || value->type == STOUP_DOC_OBJECT;
}

static int level_enter(struct out *out, struct level *level, const struct stoup_doc *value)
{
	level->more = 0;
	put_char(out, value->type == STOUP_DOC_OBJECT ? '{' : '[');
	return stoup_doc_iterate(value, &level->iter);
}

/* The next value of the innermost container, its key printed: as stoup_doc_next. */
static int level_next(struct out *out, struct level *level, struct stoup_doc *ret)
{
	struct stoup_doc key;
	int rc = stoup_doc_next(&level->iter, &key, ret);

	if (rc <= 0)
		return rc;
	if (level->more)
		put_char(out, ',');
	level->more = 1;
	if (level->iter.keyed) {
		rc = put_string(out, &key);
		put_char(out, ':');
	}
	return rc < 0 ? rc : 1;
}

int64_t stoup_doc_json(const struct stoup_doc *doc, char *dst, size_t cap)
{
	struct level levels[STOUP_DOC_DEPTH_CAP];
	struct out out = {.dst = dst, .cap = cap};
	struct stoup_doc value = *doc;
	uint32_t depth = 0;
	int rc;

	for (;;) {
		if (!is_container(&value))
			rc = put_leaf(&out, &value);
		else if (depth == STOUP_DOC_DEPTH_CAP)
			rc = -EMSGSIZE;
		else
			rc = level_enter(&out, &levels[depth++], &value);
		if (rc < 0)
			return rc;
		while (depth > 0 && (rc = level_next(&out, &levels[depth - 1], &value)) == 0)
			put_char(&out, levels[--depth].iter.keyed ? '}' : ']');
		if (rc < 0)
			return rc;
		if (depth == 0)
			return (int64_t)out.len;
	}
}
