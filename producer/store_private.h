/* SPDX-License-Identifier: Apache-2.0 */
/* store_private.h - between the files of the store: candidates, and the choice among them.
 *
 *      directory --list--> names --open, parse--> candidates --choose--> volumes, faults, stale
 *
 * The choice is a function of the candidates and the traces of a writer alone, without I/O.
 *
 * Concurrency: plain data of one call.
 */
#ifndef STOUP_PRODUCER_STORE_PRIVATE_H
#define STOUP_PRODUCER_STORE_PRIVATE_H

#include <dirent.h>
#include "producer/store.h"

/* What becomes of a file. */
enum stoup_store_fate {
	STOUP_STORE_SERVED,
	STOUP_STORE_FAULTY,
	STOUP_STORE_STALE,
	STOUP_STORE_UNFINISHED,
};

/* One file of the directory. */
struct stoup_store_candidate {
	char *name;
	struct stoup_store_volume *volume; /* NULL: damaged, see fault */
	struct stoup_vol_fault fault;
	int identified; /* header below is known (from the file, else from its name) */
	struct stoup_vol_header header;
	enum stoup_store_fate fate;
	int overlaps; /* faulty, because it overlaps another: the volume is whole */
	char *advice; /* NULL, or what is said in place of fault.what */
};

/* Sorted list of names. */
struct stoup_store_names {
	char **names;
	size_t cnt;
};

/* What tells that a batch may be incomplete because its ingest publishes it, or died doing so. */
struct stoup_store_traces {
	struct stoup_store_names temps; /* temporary files */
	int locked;                     /* a writer holds the store */
};

/* List the directory's volumes (temp = 0) or temporary files (temp = 1), by name. */
int stoup_store_list(int dir_fd, int temp, struct stoup_store_names *ret);
void stoup_store_names_fini(struct stoup_store_names *names);

/* Open and parse one file of the directory. 0 also for a damaged one (fault filled); -ENOENT when
 * it has gone, -EMFILE, -ENFILE, -ENOMEM. */
int stoup_store_candidate_open(int dir_fd, const char *dir_path, const char *name,
	const struct stoup_store *old, struct stoup_store_candidate *ret);
void stoup_store_candidate_fini(struct stoup_store_candidate *candidate);

/* Sort the candidates by (ingest_seq, batch_idx, id, name) and set each one's fate; a volume that
 * is left out whole gets a fault with region 0. 0 or -ENOMEM. */
int stoup_store_choose(struct stoup_store_candidate *candidates, size_t cnt,
	const struct stoup_store_traces *traces);

/* store_overlap.c: of two served volumes whose ranges of a series overlap, refuse the later one.
 * `candidates` are sorted. 0 or -ENOMEM. */
int stoup_store_refuse_overlaps(struct stoup_store_candidate *candidates, size_t cnt);

/* store_write.c: whether a writer (also one of this process) holds the store. */
int stoup_store_is_locked(int dir_fd);

/* 1 where both belong to one batch: same ingest and ids that differ in the last two bytes only. */
int stoup_store_same_batch(const struct stoup_vol_header *a, const struct stoup_vol_header *b);

#endif
