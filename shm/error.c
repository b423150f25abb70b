/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - the caller-owned error text (see stoup_types.h).
 *
 * Texts are formatted into a local buffer first, so that an argument may point into the very error
 * that is being filled. errno is left as it was: callers often report it afterwards.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shm/stoup_types.h"

int stoup_error_set(struct stoup_error *err, int code, const char *fmt, ...)
{
	char text[STOUP_ERROR_TEXT_CAP];
	int saved = errno;
	va_list args;

	if (!err)
		return code;
	va_start(args, fmt);
	if (vsnprintf(text, sizeof text, fmt, args) < 0)
		text[0] = '\0';
	va_end(args);
	err->code = code;
	memcpy(err->text, text, sizeof text);
	errno = saved;
	return code;
}

void stoup_error_prefix(struct stoup_error *err, const char *fmt, ...)
{
	char text[STOUP_ERROR_TEXT_CAP];
	int saved = errno;
	int len;
	size_t used, room, tail_len;
	va_list args;

	if (!err)
		return;
	va_start(args, fmt);
	len = vsnprintf(text, sizeof text - 2, fmt, args);
	va_end(args);
	if (len < 0)
		goto out_errno;
	used = strlen(text);
	text[used++] = ':';
	text[used++] = ' ';
	room = sizeof text - 1 - used;
	tail_len = strnlen(err->text, sizeof err->text);
	if (tail_len > room)
		tail_len = room;
	memcpy(text + used, err->text, tail_len);
	text[used + tail_len] = '\0';
	memcpy(err->text, text, used + tail_len + 1);
out_errno:
	errno = saved;
}
