/* SPDX-License-Identifier: Apache-2.0 */
/* json_check.c - is a text one JSON value (RFC 8259)?
 *
 *      value --scalar--> after --','--> value, in an object: name ':' value
 *        |                 |
 *        '{' '['           '}' ']'      one bit a level: object or array
 *
 * Without recursion: depth is bounded by the bits. A text that is nested deeper counts as none.
 */
#include "shm/json.h"

#include <stdint.h>
#include <string.h>

#define DEPTH_CAP 512u /* what other parsers take: 512 to 1024 */

struct check {
	const unsigned char *at, *end;
	uint32_t depth;
	uint8_t objects[DEPTH_CAP / 8];
};

static void blanks(struct check *c)
{
	while (c->at < c->end &&
		(*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
		c->at++;
}

static int take(struct check *c, unsigned char byte)
{
	if (c->at == c->end || *c->at != byte)
		return 0;
	c->at++;
	return 1;
}

static int digits(struct check *c)
{
	const unsigned char *begin = c->at;

	while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
		c->at++;
	return c->at > begin;
}

static int number(struct check *c)
{
	(void)take(c, '-');
	if (!take(c, '0') && !digits(c))
		return 0;
	if (take(c, '.') && !digits(c))
		return 0;
	if (!take(c, 'e') && !take(c, 'E'))
		return 1;
	if (!take(c, '-'))
		(void)take(c, '+');
	return digits(c);
}

static int escape(struct check *c)
{
	if (c->at == c->end)
		return 0;
	if (*c->at != 'u')
		return *c->at != '\0' && strchr("\"\\/bfnrt", *c->at++) != NULL;
	c->at++;
	for (int i = 0; i < 4; i++, c->at++) {
		if (c->at == c->end || *c->at == '\0' || !strchr("0123456789abcdefABCDEF", *c->at))
			return 0;
	}
	return 1;
}

/* Behind the opening quote. */
static int string(struct check *c)
{
	while (c->at < c->end && *c->at != '"') {
		size_t len = stoup_utf8_len(c->at, (size_t)(c->end - c->at));

		if (len == 0 || *c->at < 0x20)
			return 0;
		c->at += len;
		if (c->at[-1] == '\\' && len == 1 && !escape(c))
			return 0;
	}
	return take(c, '"');
}

static int literal(struct check *c, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0)
		return 0;
	c->at += len;
	return 1;
}

static int scalar(struct check *c)
{
	if (c->at == c->end)
		return 0;
	if (take(c, '"'))
		return string(c);
	if (*c->at == 't')
		return literal(c, "true");
	if (*c->at == 'f')
		return literal(c, "false");
	return *c->at == 'n' ? literal(c, "null") : number(c);
}

static int in_object(const struct check *c)
{
	uint32_t level = c->depth - 1;

	return c->objects[level / 8] >> (level % 8) & 1;
}

static int name(struct check *c)
{
	blanks(c);
	if (!take(c, '"') || !string(c))
		return 0;
	blanks(c);
	return take(c, ':');
}

/* An opening bracket was taken: 1 to go on with a value, 2 it was closed at once, 0 an error. */
static int open_level(struct check *c, int object)
{
	uint32_t level = c->depth;

	if (c->depth == DEPTH_CAP)
		return 0;
	c->depth++;
	c->objects[level / 8] = (uint8_t)((c->objects[level / 8] & ~(1u << level % 8)) |
					  (unsigned)object << level % 8);
	blanks(c);
	if (take(c, object ? '}' : ']')) {
		c->depth--;
		return 2;
	}
	return object ? name(c) : 1;
}

/* A value has ended: 1 another one follows, 2 the text is one value, 0 an error. */
static int after(struct check *c)
{
	for (;;) {
		blanks(c);
		if (c->depth == 0)
			return c->at == c->end ? 2 : 0;
		if (take(c, ','))
			return in_object(c) ? name(c) : 1;
		if (!take(c, in_object(c) ? '}' : ']'))
			return 0;
		c->depth--;
	}
}

int stoup_json_valid(const void *text, size_t len)
{
	struct check c = {.at = text, .end = (const unsigned char *)text + len};
	int rc;

	for (;;) {
		blanks(&c);
		if (take(&c, '{'))
			rc = open_level(&c, 1);
		else if (take(&c, '['))
			rc = open_level(&c, 0);
		else
			rc = scalar(&c) ? 2 : 0;
		if (rc == 2)
			rc = after(&c);
		if (rc != 1)
			return rc == 2;
	}
}
