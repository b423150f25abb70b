/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - what an importer puts its records into.
 *
 *      file --importer--> series(name, schema) -> index
 *                         put(index, key, record)          a record of the schema's stride
 *                         message(index, key, bytes, len)  a message, where the schema is one of messages
 *                         note(text)                       what the user should know
 *
 * Behind it stands an import (import.h), a queue that is emptied into one in the order of the files, or a
 * test. So an importer knows neither threads nor volumes.
 *
 * Concurrency: a sink is used by one thread at a time.
 */
#ifndef STOUP_PRODUCER_SINK_H
#define STOUP_PRODUCER_SINK_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

#define STOUP_SERIES_NAME_CAP 512 /* bytes with the NUL */

/* Where a record came from, for error texts: file name, and line (text, 1-based) or byte offset. */
struct stoup_where {
	const char *file;
	uint64_t line;     /* 0: none */
	uint64_t file_off; /* bytes into the decompressed stream */
};

/* The calls return as those of import.h of the same names. */
struct stoup_sink {
	void *arg;
	int64_t (*series)(void *arg, const char *name, const struct stoup_schema *schema,
		struct stoup_error *err);
	int (*put)(void *arg, uint32_t series_idx, int64_t key, const void *record,
		const struct stoup_where *where, struct stoup_error *err);
	int (*message)(void *arg, uint32_t series_idx, int64_t key, const void *bytes, uint32_t len,
		const struct stoup_where *where, struct stoup_error *err); /* NULL: takes none */
	void (*note)(void *arg, const char *text);                         /* NULL: to stderr */
};

/* Tell the user something that is no error. At most 511 bytes. */
void stoup_sink_note(const struct stoup_sink *sink, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Escape a symbol for a series name: '%' and '/' and control bytes as %XX. Returns the length, or
 * -ENAMETOOLONG. */
int stoup_symbol_escape(const char *symbol, char *dst, size_t dst_cap);

struct stoup_import;

/* The sink that puts straight into an import. */
struct stoup_sink stoup_import_sink(struct stoup_import *import);

#endif
