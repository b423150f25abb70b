/* SPDX-License-Identifier: Apache-2.0 */
/* tool_export.h - series as files of other programs: what `stoup export` does once it knows what.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_EXPORT_H
#define STOUP_CONSUMER_TOOL_EXPORT_H

#include <stddef.h>
#include "consumer/stoup.h"

enum stoup_export_format {
	STOUP_EXPORT_NONE,
	STOUP_EXPORT_CSV,
	STOUP_EXPORT_JSONL,
	STOUP_EXPORT_DBN,
	STOUP_EXPORT_NPY,
	STOUP_EXPORT_NPZ,
	STOUP_EXPORT_LINES /* messages of JSON as `stoup ingest` reads them */
};

struct stoup_export {
	struct stoup *st;
	struct stoup_range range;
	enum stoup_export_format format;
	const char *output;    /* a file; NULL: standard output, or `directory` */
	const char *directory; /* a file for each series, or (DBN) for each dataset */
	int dbn_version;       /* 0: the newest that has the layouts */
	int header, zstd, force, quiet;
	struct stoup_series *series; /* sorted by name, without repeats */
	size_t series_cnt;
	char **written; /* files that this call made */
	size_t written_cnt;
};

/* Write all. 0, or a negative errno with text: then no file that this call made is left (those that it
 * replaced by force stay replaced). */
int stoup_export_run(struct stoup_export *export, struct stoup_error *err);

/* The ending of a format's files, with its dot. */
const char *stoup_export_ending(enum stoup_export_format format);

#endif
