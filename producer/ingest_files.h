/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_files.h - which files an ingest reads: those that were named, and those below directories.
 *
 *      ticks/            all files below it whose names end like data of a known format (packed or not),
 *        2024/a.csv.gz   in the order of their paths, numbers by their value: part2 before part10
 *        2024/b.dbn.zst
 *        notes.txt       left out, and told
 *      days.zip          its files, chosen alike, one after the other
 *
 * Invariant: a file (or a file of an archive) is in the list once: one that is named twice, also by another path, is an error.
 *
 * Concurrency: plain data of one caller.
 */
#ifndef STOUP_PRODUCER_INGEST_FILES_H
#define STOUP_PRODUCER_INGEST_FILES_H

#include <stddef.h>
#include "producer/importer.h"

struct stoup_file {
	char *path;
	char *name; /* for messages, and for who reads names: the path; of a file in a zip PATH/MEMBER */
	int64_t member; /* its number in the zip, where that has several; -1: the file itself */
	int found;      /* below a directory: --exclude leaves it out */
};

struct stoup_files {
	struct stoup_file *at;
	size_t cnt, cap;
	uint64_t file_len; /* bytes of all regular files as they lie on disk */
};

/* What is taken of directories. */
struct stoup_files_options {
	const char *format;            /* that of --format, or NULL */
	const char *include, *exclude; /* lists of patterns, or NULL; see filter.h */
};

/* Expand `args`. 0; what stat(2) and reading directories give,
 * -EINVAL for a file that is there twice, -ENOENT for a directory without data; with text. What is left
 * out is told through `sink`. */
int stoup_files_expand(const char *const *args, size_t arg_cnt,
	const struct stoup_files_options *options, const struct stoup_sink *sink,
	struct stoup_files *ret, struct stoup_error *err);
void stoup_files_fini(struct stoup_files *files);

#endif
