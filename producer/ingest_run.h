/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_run.h - one call of `stoup ingest`: files, importers and the import brought together.
 *
 *      files --open--> input --importer--> sink --> import --finish--> volumes in the store
 *
 * Invariant: all files are stored, or nothing is; the result is that of reading them one after the other
 * in the order in which they were given.
 *
 * Concurrency: one call, one thread.
 */
#ifndef STOUP_PRODUCER_INGEST_RUN_H
#define STOUP_PRODUCER_INGEST_RUN_H

#include "producer/import.h"
#include "producer/importer.h"

#define STOUP_GIVEN_CAP 48 /* more than all importers have */

struct stoup_ingest {
	struct stoup_import_options import;
	struct stoup_ingest_options options;
	uint64_t options_hash;         /* of all that changes the records */
	int again;                     /* read files that the store has, too */
	int to_event64;                /* make events of hftbacktest of the files */
	const char *include, *exclude; /* of directories: lists of patterns, or NULL */
	const char **args;             /* files and directories */
	size_t arg_cnt;
	const char
		*given[STOUP_GIVEN_CAP]; /* options of single formats that were given, each once */
	size_t given_cnt;
};

/* 0, or a negative errno with text; the store is then as it was. Blocks. */
int stoup_ingest_run(const struct stoup_ingest *ingest, struct stoup_error *err);

#endif
