/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - files that a store has already.
 *
 *      file --XXH3-128, length, options--> source --is it listed by each volume of a batch?--> known
 *
 * A volume lists the files that its batch was made of (codec/volume.h, SOURCES), so that the same file is
 * known again, whatever its name and place are: a directory that grows can be ingested again and again.
 *
 * Invariant: a file that is known was stored whole, with the same options, and nothing of it was removed
 * or replaced since: who does that writes volumes without the list.
 *
 * Concurrency: plain functions.
 */
#ifndef STOUP_PRODUCER_SOURCE_H
#define STOUP_PRODUCER_SOURCE_H

#include <sys/stat.h>
#include "producer/store.h"

/* A file as it was looked at. */
struct stoup_source {
	struct stoup_vol_source entry;
	struct stat st; /* when it was looked at */
};

/* Read a file and make its source: 1; 0 for what is no regular file (a pipe is not read); a negative errno with
 * text. */
int stoup_source_of(
	const char *path, uint64_t options_hash, struct stoup_source *ret, struct stoup_error *err);

/* Is the file still what it was when it was looked at? A file that changes while it is read is not listed. */
int stoup_source_same(const char *path, const struct stoup_source *source);

/* Does the store have the file? Returns the volume that lists it, or NULL. */
const struct stoup_store_volume *stoup_source_known(
	const struct stoup_store *store, const struct stoup_vol_source *source);

#endif
