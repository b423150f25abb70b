/* SPDX-License-Identifier: Apache-2.0 */
/* json_doc.c - see json_doc.h. */
#include "producer/json_doc.h"

#include <errno.h>
#include <string.h>
#include "producer/json_number.h"
#include "shm/doc_read.h"

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

struct level {
	uint8_t *start;  /* where the tag is to be */
	uint8_t tag_len; /* bytes kept for it */
	uint8_t type;
};

struct encode {
	const uint8_t *from, *at, *end;
	uint8_t *out;
	uint32_t depth;
	struct level levels[STOUP_DOC_DEPTH_CAP];
	struct stoup_json_fault *fault;
};

/* ---- faults ---------------------------------------------------------------------------------------- */

static int fail(struct encode *e, int code, const uint8_t *at, const char *what)
{
	*e->fault = (struct stoup_json_fault){.off = (size_t)(at - e->from), .what = what};
	return code;
}

/* Something else stands at `at` than what was wanted. */
static int fail_at(struct encode *e, const uint8_t *at, const char *what)
{
	if (at >= e->end)
		return fail(e, -ENODATA, e->end, "it ends inside of the value");
	if (*at == 0)
		what = "a NUL byte";
	return fail(e, -EBADMSG, at, what);
}

static int fail_value(struct encode *e)
{
	const char *what = "no value of JSON begins so";

	if (e->at < e->end) {
		if (*e->at == '\'')
			what = "JSON's strings have double quotes";
		else if (*e->at == 'N' || *e->at == 'I')
			what = "NaN and Infinity are no numbers of JSON";
		else if (*e->at == ',' || *e->at == ']' || *e->at == '}' || *e->at == ':')
			what = "a value is missing";
		else if (*e->at == '+' || *e->at == '.')
			what = "a number begins with a digit or a minus";
		else if (*e->at >= 0x80)
			what = "a byte that is no ASCII, outside of a string";
	}
	return fail_at(e, e->at, what);
}

/* ---- tags ------------------------------------------------------------------------------------------- */

static uint8_t *tag_write(uint8_t *out, uint32_t len, uint32_t type)
{
	uint32_t tag = len << 3 | type;

	while (tag >= 0x80) {
		*out++ = (uint8_t)(tag | 0x80);
		tag >>= 7;
	}
	*out++ = (uint8_t)tag;
	return out;
}

static uint32_t tag_len(uint32_t payload_len)
{
	return payload_len < 1u << 4    ? 1
	       : payload_len < 1u << 11 ? 2
	       : payload_len < 1u << 18 ? 3
	       : payload_len < 1u << 25 ? 4
	                                : 5;
}

/* Put the tag in front of a payload that begins `kept` bytes behind `start`, and move it if need be.
 * Returns the payload's end. */
static uint8_t *tag_close(uint8_t *start, uint32_t kept, uint8_t *end, uint32_t type)
{
	uint32_t len = (uint32_t)(end - start) - kept, want = tag_len(len);

	if (want != kept)
		memmove(start + want, start + kept, len);
	tag_write(start, len, type);
	return start + want + len;
}

/* ---- strings ----------------------------------------------------------------------------------------- */

/* High bits where a byte of `word` is a quote, a backslash, a control character or no ASCII; those above
 * the lowest one that is set may be wrong. */
static uint64_t specials(uint64_t word)
{
	uint64_t quote = word ^ (ONES * '"'), slash = word ^ (ONES * '\\');

	return (((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) |
		       ((word - ONES * 0x20) & ~word) | word) &
	       HIGHS;
}

/* The first byte from `at` on that is not simply a character of a string. */
static const uint8_t *plain_end(const uint8_t *at, const uint8_t *end)
{
	while (end - at >= 8) {
		uint64_t word, found;

		memcpy(&word, at, sizeof(word));
		found = specials(word);
		if (found)
			return at + __builtin_ctzll(found) / 8;
		at += 8;
	}
	while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
		at++;
	return at;
}

static int hex4(struct encode *e, const uint8_t *at, uint32_t *ret)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++, at++) {
		uint32_t c = at < e->end ? *at : 0, low = c | 0x20;

		if (c >= '0' && c <= '9')
			value = value << 4 | (c - '0');
		else if (low >= 'a' && low <= 'f')
			value = value << 4 | (low - 'a' + 10);
		else
			return fail_at(e, at, "\\u wants four hexadecimal digits");
	}
	*ret = value;
	return 0;
}

static uint8_t *utf8_write(uint8_t *out, uint32_t c)
{
	if (c < 0x80) {
		*out++ = (uint8_t)c;
	} else if (c < 0x800) {
		*out++ = (uint8_t)(0xc0 | c >> 6);
		*out++ = (uint8_t)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (uint8_t)(0xe0 | c >> 12);
		*out++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		*out++ = (uint8_t)(0x80 | (c & 0x3f));
	} else {
		*out++ = (uint8_t)(0xf0 | c >> 18);
		*out++ = (uint8_t)(0x80 | (c >> 12 & 0x3f));
		*out++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		*out++ = (uint8_t)(0x80 | (c & 0x3f));
	}
	return out;
}

/* \uXXXX at e->at, two of them for what is beyond 16 bits. */
static int unicode_escape(struct encode *e)
{
	const uint8_t *at = e->at;
	uint32_t c, low;
	int rc = hex4(e, at + 2, &c);

	if (rc < 0)
		return rc;
	e->at += 6;
	if (c >= 0xd800 && c < 0xe000) {
		if (c >= 0xdc00)
			return fail(e, -EBADMSG, at, "half of a surrogate pair is no character");
		for (int i = 0; i < 2; i++) {
			if (e->at + i >= e->end)
				return fail_at(e, e->end, NULL);
			if (e->at[i] != "\\u"[i])
				return fail(e, -EBADMSG, at,
					"half of a surrogate pair is no character");
		}
		rc = hex4(e, e->at + 2, &low);
		if (rc < 0)
			return rc;
		if (low < 0xdc00 || low >= 0xe000)
			return fail(e, -EBADMSG, at, "half of a surrogate pair is no character");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		e->at += 6;
	}
	e->out = utf8_write(e->out, c);
	return 0;
}

static int escape(struct encode *e)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (e->end - e->at < 2)
		return fail_at(e, e->end, NULL);
	if (e->at[1] == 'u')
		return unicode_escape(e);
	found = e->at[1] ? strchr(from, e->at[1]) : NULL;
	if (!found)
		return fail_at(e, e->at + 1, "an escape that JSON does not have");
	*e->out++ = (uint8_t)to[found - from];
	e->at += 2;
	return 0;
}

/* Is what stands there the begin of a character whose end is cut off? */
static int is_cut(const uint8_t *at, const uint8_t *end)
{
	size_t left = (size_t)(end - at), len = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;

	if (at[0] < 0xc2 || at[0] > 0xf4 || left >= len)
		return 0;
	for (size_t i = 1; i < left; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	return 1;
}

/* The rest of a string that has more than plain characters; e->out stands behind the plain ones. */
static int string_rest(struct encode *e)
{
	for (;;) {
		const uint8_t *plain = plain_end(e->at, e->end);
		size_t len = (size_t)(plain - e->at);
		int rc;

		memcpy(e->out, e->at, len);
		e->out += len;
		e->at = plain;
		if (plain == e->end)
			return fail(e, -ENODATA, plain, "it ends inside of a string");
		if (*plain == '"')
			return 0;
		if (*plain == '\\') {
			rc = escape(e);
			if (rc < 0)
				return rc;
			continue;
		}
		len = *plain < 0x20 ? 0 : stoup_doc_utf8(plain, e->end);
		if (len == 0 && is_cut(plain, e->end))
			return fail(e, -ENODATA, e->end, "it ends inside of a string");
		if (len == 0)
			return fail_at(e, plain,
				*plain < 0x20 ? "a control character in a string is written \\u00XX"
					      : "bytes that are not UTF-8");
		memcpy(e->out, plain, len);
		e->out += len;
		e->at += len;
	}
}

/* A string at e->at, which is its quote. */
static int string(struct encode *e)
{
	const uint8_t *text = e->at + 1, *plain = plain_end(text, e->end);
	uint32_t len = (uint32_t)(plain - text);
	uint8_t *start = e->out;
	int rc;

	if (plain < e->end && *plain == '"') {
		e->out = tag_write(start, len, STOUP_DOC_STRING);
		/* In words, where text and room have them: most strings are of one or two. */
		if (len <= 16 && e->end - text >= 16) {
			memcpy(e->out, text, 16);
		} else {
			memcpy(e->out, text, len);
		}
		e->out += len;
		e->at = plain + 1;
		return 0;
	}
	e->out = start + tag_len(len);
	e->at = text;
	rc = string_rest(e);
	if (rc < 0)
		return rc;
	e->out = tag_close(start, tag_len(len), e->out, STOUP_DOC_STRING);
	e->at++;
	return 0;
}

/* ---- values ------------------------------------------------------------------------------------------ */

static void blanks(struct encode *e)
{
	while (e->at < e->end &&
		(*e->at == ' ' || *e->at == '\t' || *e->at == '\n' || *e->at == '\r'))
		e->at++;
}

static int number(struct encode *e)
{
	size_t off;
	const char *what;
	int64_t len = stoup_json_number(
		(const char *)e->at, (size_t)(e->end - e->at), &e->out, &off, &what);

	if (len < 0)
		return fail_at(e, e->at + off, what);
	e->at += len;
	return 0;
}

static int word(struct encode *e)
{
	static const struct {
		const char *text;
		uint32_t len;
		uint32_t out_len;
		uint8_t out[2];
	} words[] = {{"null", 4, 1, {0x06}}, {"true", 4, 2, {0x0e, 1}}, {"false", 5, 2, {0x0e, 0}}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t left = (size_t)(e->end - e->at),
		       len = left < words[i].len ? left : words[i].len;

		if (len == 0 || memcmp(e->at, words[i].text, len) != 0)
			continue;
		if (len < words[i].len)
			return fail_at(e, e->end, NULL);
		memcpy(e->out, words[i].out, words[i].out_len);
		e->out += words[i].out_len;
		e->at += len;
		return 0;
	}
	return fail_value(e);
}

/* ---- containers --------------------------------------------------------------------------------------- */

static int enter(struct encode *e, uint8_t type)
{
	struct level *level;

	if (e->depth == STOUP_DOC_DEPTH_CAP)
		return fail(
			e, -EMSGSIZE, e->at, "more than 128 arrays and objects inside each other");
	level = &e->levels[e->depth++];
	level->start = e->out;
	level->type = type;
	/* Objects of messages have mostly 16 to 2,047 bytes, arrays (price, size) fewer. */
	level->tag_len = type == STOUP_DOC_OBJECT ? 2 : 1;
	e->out += level->tag_len;
	e->at++;
	return 0;
}

/* An object that is how JavaScript writes a buffer as JSON, {"type":"Buffer","data":[1,2]}: make its payload
 * the bytes. The format has a type for them, and prints them as that object again. */
static int buffer_made(struct encode *e, struct level *level)
{
	static const uint8_t head[] = "\x20type\x30"
				      "Buffer\x20"
				      "data";
	const size_t head_len = sizeof(head) - 1;
	uint8_t *payload = level->start + level->tag_len, *out = payload;
	struct stoup_doc array;

	if ((size_t)(e->out - payload) <= head_len || memcmp(payload, head, head_len) != 0)
		return 0;
	if (stoup_doc_read(payload + head_len, e->out, &array) || array.type != STOUP_DOC_ARRAY ||
		stoup_doc_end(&array) != e->out || array.payload_len % 5)
		return 0;
	for (const uint8_t *at = array.payload; at < e->out; at += 5)
		if (at[0] != (4 << 3 | STOUP_DOC_INT) || at[2] || at[3] || at[4])
			return 0;
	for (const uint8_t *at = array.payload; at < e->out; at += 5)
		*out++ = at[1];
	e->out = out;
	return 1;
}

static void leave(struct encode *e)
{
	struct level *level = &e->levels[--e->depth];

	if (level->type == STOUP_DOC_OBJECT && buffer_made(e, level))
		level->type = STOUP_DOC_BUFFER;
	e->out = tag_close(level->start, level->tag_len, e->out, level->type);
	e->at++;
}

static int key(struct encode *e)
{
	int rc;

	blanks(e);
	if (e->at == e->end || *e->at != '"')
		return fail_at(e, e->at, "a key is missing: a string in double quotes");
	rc = string(e);
	if (rc < 0)
		return rc;
	blanks(e);
	if (e->at == e->end || *e->at != ':')
		return fail_at(e, e->at, "a colon is missing behind the key");
	e->at++;
	return 0;
}

/* One value, or the begin of one that has others in it. 1: such a begin. */
static int value(struct encode *e)
{
	uint8_t c;
	int rc;

	blanks(e);
	c = e->at < e->end ? *e->at : 0;
	switch (c) {
	case '"':
		return string(e);
	case '{':
	case '[':
		rc = enter(e, c == '{' ? STOUP_DOC_OBJECT : STOUP_DOC_ARRAY);
		if (rc < 0)
			return rc;
		blanks(e);
		if (e->at < e->end && *e->at == (c == '{' ? '}' : ']')) {
			leave(e);
			return 0;
		}
		return c == '{' && (rc = key(e)) < 0 ? rc : 1;
	default:
		return c == '-' || (c >= '0' && c <= '9') ? number(e) : word(e);
	}
}

/* What follows a value: the ends of what it is in, then a comma. 1: another value comes; 0: it was the
 * whole. */
static int behind(struct encode *e)
{
	while (e->depth > 0) {
		int object = e->levels[e->depth - 1].type == STOUP_DOC_OBJECT, rc;

		blanks(e);
		if (e->at < e->end && *e->at == ',') {
			e->at++;
			rc = object ? key(e) : 0;
			return rc < 0 ? rc : 1;
		}
		if (e->at == e->end || *e->at != (object ? '}' : ']'))
			return fail_at(e, e->at,
				object ? "a comma or } is missing" : "a comma or ] is missing");
		leave(e);
	}
	return 0;
}

int64_t stoup_json_to_doc(
	const char *text, size_t len, uint8_t *dst, struct stoup_json_fault *fault)
{
	struct encode e;
	int rc;

	e.from = e.at = (const uint8_t *)text;
	e.end = e.at + len;
	e.out = dst;
	e.depth = 0;
	e.fault = fault;
	if (len > STOUP_JSON_LEN_CAP)
		return fail(&e, -EMSGSIZE, e.from, "a message of more than 16 MiB");
	do {
		rc = value(&e);
		if (rc == 0)
			rc = behind(&e);
	} while (rc > 0);
	if (rc < 0)
		return rc;
	blanks(&e);
	if (e.at != e.end)
		return fail_at(&e, e.at, "more behind the value");
	return e.out - dst;
}
