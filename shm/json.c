/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - JSON strings. */
#include "shm/json.h"

#include <stddef.h>

/* Bytes of the UTF-8 sequence at p, or 0 for bytes that are none. */
static size_t utf8_len(const unsigned char *p)
{
	size_t len = p[0] < 0x80   ? 1
	             : p[0] < 0xc2 ? 0
	             : p[0] < 0xe0 ? 2
	             : p[0] < 0xf0 ? 3
	             : p[0] < 0xf5 ? 4
	                           : 0;
	size_t i;

	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
		return 0;
	return len;
}

void stoup_json_string(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	fputc('"', out);
	while (*p) {
		size_t len = utf8_len(p);

		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\u%04x", *p);
		else if (len == 0)
			fputs("\\ufffd", out);
		else
			fwrite(p, 1, len, out);
		p += len ? len : 1;
	}
	fputc('"', out);
}
