/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - a store: a directory of immutable volumes, and the rules by which they are one whole.
 *
 *      STORE/.lock                        the writer's lock (open-file-description lock)
 *      STORE/.tmp-<id>.stoup              a volume that is being written; readers skip dotted names
 *      STORE/00000007-00-1f2e3d4c.stoup   ingest_seq 7, batch_idx 0, first 8 hex digits of the id
 *
 *      write .tmp, fsync --> rename each --> fsync directory --> unlink what they supersede
 *                        ^ crash: old contents               ^ crash: new contents
 *
 * Which files count: every file named *.stoup, except
 *  - volumes that an intact volume's superseded list names (their contents live on in that volume);
 *  - volumes of an incomplete batch. The volumes of one ingest share ingest_seq; their ids are
 *    equal but for the last two bytes, which hold batch_idx (little-endian). A batch is complete
 *    when each of its batch_cnt ids is there (intact or damaged) or is superseded. While its ingest
 *    runs, or where one of its temporary files proves that it was cut short, such a batch is
 *    unfinished and no fault: the next ingest removes it;
 *  - damaged volumes: each is refused alone and stands in the list of faults;
 *  - of two volumes whose ranges of a series overlap, the later one (ingest_seq, batch_idx): it
 *    stands in the list of faults, too. No ingest makes such a pair; copying files in does.
 *
 * Order: volumes are sorted by (ingest_seq, batch_idx). The parts of one series (same name and
 * schema hash in several volumes) follow each other by (first_key, last_key, ingest_seq,
 * batch_idx): their key ranges may touch and never overlap, so this is key order
 * (stoup_store_part_cmp). Equal keys stand in the order of ingest, because an ingest may begin at
 * the last key of an older part and may not end at the first key of one: that is refused as an
 * overlap, and --replace replaces the records of that key.
 *
 * Invariant: a reader sees the old or the new contents of a store, whenever the writer dies.
 *
 * Concurrency: any number of readers without a lock; one writer, who holds the lock. An open store
 * is a snapshot: immutable, to be used by one thread at a time for open, rescan and close; reading
 * it needs no lock. A volume stays readable through its descriptor after it was unlinked.
 *
 * Limits: one descriptor per volume (RLIMIT_NOFILE); 65,536 volumes per ingest (two bytes of the
 * id).
 */
#ifndef STOUP_PRODUCER_STORE_H
#define STOUP_PRODUCER_STORE_H

#include <stddef.h>
#include <stdint.h>
#include "codec/volume.h"
#include "shm/stoup_types.h"

#define STOUP_STORE_LOCK_NAME   ".lock"
#define STOUP_STORE_TEMP_PREFIX ".tmp-"
#define STOUP_STORE_NAME_CAP    64u    /* bytes of a volume's file name with the NUL */
#define STOUP_STORE_BATCH_CAP   65536u /* volumes of one ingest */
/* What there is to say of a snapshot with unfinished files. */
#define STOUP_STORE_UNFINISHED_TEXT                                                                \
	"an ingest is running or was cut short; the next ingest removes what it left"
/* Two paths, a series and two ranges with the advice. */
#define STOUP_STORE_FAULT_TEXT_CAP 1024u

/* One volume that is served. Shared by snapshots (refs); ends with its last release. */
struct stoup_store_volume {
	char *path;    /* "STORE/NAME", for messages and for opening it again (O_DIRECT) */
	int fd;        /* O_RDONLY | O_CLOEXEC */
	uint32_t refs; /* snapshots that hold it */
	uint64_t dev, ino, file_len; /* of fd, when it was opened */
	int64_t mtime_ns;
	struct stoup_vol_index *index;
};

/* A file of the store that is not served, and why. */
struct stoup_store_fault {
	char *path;
	struct stoup_vol_fault
		fault; /* region 0: the file could not be opened or is left out whole */
	/* "STORE/NAME: footer at offset 1234: checksum ...; remove NAME and ..." */
	char text[STOUP_STORE_FAULT_TEXT_CAP];
};

/* A snapshot of a store. */
struct stoup_store {
	char *path;
	int dir_fd;
	uint32_t volume_cnt;
	uint32_t fault_cnt;
	uint32_t stale_cnt;                  /* superseded files that still lie there */
	uint64_t next_seq;                   /* ingest_seq of the next ingest */
	struct stoup_store_volume **volumes; /* sorted by (ingest_seq, batch_idx) */
	struct stoup_store_fault *faults;
	char **stale;      /* names of superseded files, oldest ingest first */
	char **unfinished; /* names of the files of a batch that is not yet, or never will be, whole */
	uint32_t unfinished_cnt;
	int writing; /* a writer held the store, or left temporary files */
	/* Whole volumes that are faults because they overlap served ones: a --replace of all that
	 * they hold supersedes them. */
	struct stoup_store_volume **overlaps;
	uint32_t overlap_cnt;
};

/* Open the store in directory `path`: parse every volume's index. A damaged volume is a fault of
 * the snapshot, not an error of the call. 0; -ENOENT or -ENOTDIR with a text that says what to do,
 * -EACCES, -EMFILE, -ENOMEM. An empty directory is a store without volumes. */
int stoup_store_open(const char *path, struct stoup_store **ret, struct stoup_error *err);

/* Whether a snapshot has neither a volume nor a fault: 1 with a text that asks whether the directory
 * is a store at all, else 0. For commands to whom "nothing found" would look like "all is well". */
int stoup_store_holds_nothing(const struct stoup_store *store, struct stoup_error *err);

/* Open the same directory again as a new snapshot, by its path, or, where `dir_fd` is not -1, by that; volumes that `old` holds (same device, inode,
 * length and modification time) are shared, not parsed again, and their structs stay where they
 * are. `old` stays valid and is closed on its own. Returns as stoup_store_open. */
int stoup_store_rescan(const struct stoup_store *old, int dir_fd, struct stoup_store **ret,
	struct stoup_error *err);

/* End a snapshot; NULL is allowed. Volumes acquired beyond that stay. */
void stoup_store_close(struct stoup_store *store);

/* Keep a volume beyond its snapshot, and let it go (the last release closes and frees it). */
void stoup_store_volume_acquire(struct stoup_store_volume *volume);
void stoup_store_volume_release(struct stoup_store_volume *volume);

/* A series of that name in another layout, or NULL. Bisects. */
const struct stoup_vol_series *stoup_store_series_other(
	const struct stoup_vol_index *index, const char *name, uint64_t schema_hash);

/* The series of that name and schema hash in a volume, or NULL. Bisects. */
const struct stoup_vol_series *stoup_store_series_find(
	const struct stoup_vol_index *index, const char *name, uint64_t schema_hash);

/* Which of two parts of one series comes first: <0, 0, >0, by (first_key, last_key, ingest_seq,
 * batch_idx). */
int stoup_store_part_cmp(const struct stoup_vol_index *a_index, const struct stoup_vol_series *a,
	const struct stoup_vol_index *b_index, const struct stoup_vol_series *b);

/* 1 where the key ranges overlap. Ranges that only touch (one ends at the key where the other
 * begins) do not, unless they are the same single key: that is the same data again. */
int stoup_store_range_overlaps(int64_t a_first, int64_t a_last, int64_t b_first, int64_t b_last);

/* ---- the writer's side ----------------------------------------------------------------------- */

/* The right to change a store. */
struct stoup_store_lock {
	int dir_fd;
	int lock_fd;
	int created; /* this lock made the directory */
	char *path;
};

/* Take the writer's lock of directory `path`, which is created when absent (its parent must exist).
 * 0; -EBUSY when another writer holds the store, -EACCES, -ENOENT, -ENOTDIR, -ENOSPC, -ENOMEM, each
 * with a text. Never blocks. The lock ends with the process, too. */
int stoup_store_lock(const char *path, struct stoup_store_lock *ret, struct stoup_error *err);

/* Release. With `undo`, a directory that this lock created is removed again if it holds nothing. */
void stoup_store_unlock(struct stoup_store_lock *lock, int undo);

/* Remove what earlier writers left: stale temporary files, the files of a batch whose publishing
 * was cut short (its temporary files prove that), and superseded volumes, oldest first. Under the
 * lock. Best effort: what can not be removed stays ignored. */
void stoup_store_sweep(const struct stoup_store_lock *lock);

/* A fresh random volume id for batch_idx 0 (the last two bytes are 0). 0 or negative errno. */
int stoup_store_id_make(uint8_t ret_id[16]);

/* The file name of a volume, from its header. */
void stoup_store_name(const struct stoup_vol_header *header, char ret_name[STOUP_STORE_NAME_CAP]);

/* The name of its temporary file. */
void stoup_store_temp_name(
	const struct stoup_vol_header *header, char ret_name[STOUP_STORE_NAME_CAP]);

/* Publish finished temporary files (complete and fsynced): rename each, in order, and fsync the
 * directory. On failure the renamed ones are removed again, and so are the temporary files: the
 * store is as it was. 0 or negative errno with a text that names the file. */
int stoup_store_publish(const struct stoup_store_lock *lock, const struct stoup_vol_header *headers,
	size_t cnt, struct stoup_error *err);

#endif
