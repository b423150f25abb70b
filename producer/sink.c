/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - an import as a sink, notes, and symbols in names of series. */
#include "producer/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "producer/import.h"

#define NOTE_CAP 512

void stoup_sink_note(const struct stoup_sink *sink, const char *fmt, ...)
{
	char text[NOTE_CAP];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (sink->note)
		sink->note(sink->arg, text);
	else
		fprintf(stderr, "%s\n", text);
}

int stoup_symbol_escape(const char *symbol, char *dst, size_t dst_cap)
{
	static const char hex[] = "0123456789ABCDEF";
	const unsigned char *p = (const unsigned char *)symbol;
	size_t len = 0;

	for (; *p; p++) {
		int plain = *p >= 0x20 && *p != 0x7f && *p != '%' && *p != '/';

		if (len + (plain ? 1 : 3) >= dst_cap)
			return -ENAMETOOLONG;
		if (plain) {
			dst[len++] = (char)*p;
			continue;
		}
		dst[len++] = '%';
		dst[len++] = hex[*p >> 4];
		dst[len++] = hex[*p & 15];
	}
	if (dst_cap == 0)
		return -ENAMETOOLONG;
	dst[len] = '\0';
	return (int)len;
}

static int64_t import_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	return stoup_import_series(arg, name, schema, err);
}

static int import_put(void *arg, uint32_t series_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	return stoup_import_put(arg, series_idx, key, record, where, err);
}

static int import_message(void *arg, uint32_t series_idx, int64_t key, const void *bytes,
	uint32_t len, const struct stoup_where *where, struct stoup_error *err)
{
	return stoup_import_put_message(arg, series_idx, key, bytes, len, where, err);
}

struct stoup_sink stoup_import_sink(struct stoup_import *import)
{
	return (struct stoup_sink){.arg = import,
		.series = import_series,
		.put = import_put,
		.message = import_message};
}
