/* SPDX-License-Identifier: Apache-2.0 */
/* tool_out.h - a file that is there whole or not at all.
 *
 *      open: a file without a name --write--> publish: fsync, given its name at once
 *                                       |
 *                                       +---> discard, death: nothing was there
 *
 * Where the file system has no nameless files, a temporary name beside the target's is renamed. A pipe, a
 * device and standard output are written straight into.
 *
 * Invariant: a file that stood at the path stays as it is unless `force` was given and all went well.
 *
 * Concurrency: one thread. SIGPIPE must be ignored: a closed pipe is -EPIPE.
 */
#ifndef STOUP_CONSUMER_TOOL_OUT_H
#define STOUP_CONSUMER_TOOL_OUT_H

#include <stdint.h>
#include <stdio.h>
#include "shm/stoup_types.h"

struct stoup_pack;

struct stoup_out {
	FILE *file;       /* write here */
	const char *path; /* borrowed; NULL: standard output */
	char *temporary;  /* its name, where it has one */
	int fd;
	int is_new; /* to be given its name by publish */
	int force;
	int error;    /* errno of the first write that failed */
	uint64_t len; /* bytes written to the file */
	struct stoup_pack *pack;
};

/* Begin. `zstd`: compress what is written. 0, or a negative errno with text: -EEXIST for a file that is there,
 * what open(2) gives, -ENOMEM. */
int stoup_out_open(
	const char *path, int force, int zstd, struct stoup_out *ret, struct stoup_error *err);

/* Did a write fail already? Cheap. */
static inline int stoup_out_failed(const struct stoup_out *out)
{
	return out->error != 0;
}

/* The errno of the write that failed as a text that names the file; returns it negative. */
int stoup_out_error(const struct stoup_out *out, struct stoup_error *err);

/* All is written: make it last, and give it its name. Ends `out`, also on failure, when nothing is left. */
int stoup_out_publish(struct stoup_out *out, struct stoup_error *err);

/* End without a file. */
void stoup_out_discard(struct stoup_out *out);

#endif
