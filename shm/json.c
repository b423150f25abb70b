/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - JSON strings. */
#include "shm/json.h"

#include <stddef.h>
#include <string.h>

size_t stoup_utf8_len(const unsigned char *bytes, size_t cap)
{
	size_t len = bytes[0] < 0x80   ? 1
	             : bytes[0] < 0xc2 ? 0
	             : bytes[0] < 0xe0 ? 2
	             : bytes[0] < 0xf0 ? 3
	             : bytes[0] < 0xf5 ? 4
	                               : 0;
	size_t i;

	if (len > cap)
		return 0;
	for (i = 1; i < len; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((bytes[0] == 0xe0 && bytes[1] < 0xa0) || (bytes[0] == 0xed && bytes[1] >= 0xa0) ||
		(bytes[0] == 0xf0 && bytes[1] < 0x90) || (bytes[0] == 0xf4 && bytes[1] >= 0x90))
		return 0;
	return len;
}

void stoup_utf8_plain(char *text)
{
	unsigned char *p = (unsigned char *)text;

	while (*p) {
		size_t n = stoup_utf8_len(p, 4); /* a NUL ends a sequence, too */

		/* C0 and DEL; C1, which some terminals take for commands as well. */
		if (n == 0 || *p < 0x20 || *p == 0x7f)
			*p = '?';
		else if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0)
			p[0] = p[1] = '?';
		p += n ? n : 1;
	}
}

/* Bytes that stand for themselves; most of a text. */
static size_t plain_len(const unsigned char *p, const unsigned char *end)
{
	const unsigned char *begin = p;

	while (p < end && *p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\')
		p++;
	return (size_t)(p - begin);
}

void stoup_json_string_of(FILE *out, const void *text, size_t len)
{
	const unsigned char *p = text, *end = p + len;

	fputc('"', out);
	while (p < end) {
		size_t n = plain_len(p, end);

		if (n > 0) {
			fwrite(p, 1, n, out);
			p += n;
			continue;
		}
		n = stoup_utf8_len(p, (size_t)(end - p));
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\u%04x", *p);
		else if (n == 0)
			fputs("\\ufffd", out);
		else if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0)
			fprintf(out, "\\u%04x",
				p[1]); /* C1: the same text, and no terminal's command */
		else
			fwrite(p, 1, n, out);
		p += n ? n : 1;
	}
	fputc('"', out);
}

void stoup_json_string(FILE *out, const char *text)
{
	stoup_json_string_of(out, text, strlen(text));
}
