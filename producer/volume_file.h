/* SPDX-License-Identifier: Apache-2.0 */
/* volume_file.h - one volume as a file: reading its index and blocks, writing a new one.
 *
 *      create ---> block, segment ... ---> finish          (complete, fsynced, still a dotted name)
 *         |             |                    |
 *         +-------------+---- abort <--------+             (the temporary file is removed)
 *
 * The bytes are codec/volume.h's; here is only the I/O: positioned reads and writes that go on
 * after EINTR and short transfers, and error texts that name the file.
 *
 * Invariant: until stoup_store_publish renames it, nothing of a new volume is visible in the store.
 *
 * Concurrency: a file that is being written belongs to one thread. The read functions keep no
 * state.
 */
#ifndef STOUP_PRODUCER_VOLUME_FILE_H
#define STOUP_PRODUCER_VOLUME_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "producer/store.h"

/* ---- positioned I/O -------------------------------------------------------------------------- */

/* Read exactly len bytes at off. 0, -ENODATA at the end of the file, or the errno of pread. */
int stoup_file_read(int fd, void *dst, size_t len, uint64_t off);

/* Write exactly len bytes at off. 0 or the errno of pwrite; -EIO where it writes nothing. */
int stoup_file_write(int fd, const void *src, size_t len, uint64_t off);

/* The file behind `fd`, opened read-only once more, with `flags` such as O_DIRECT: flags and position belong
 * to an open file description, and that of `fd` stays as it is. By `path` (or NULL) where there is no
 * procfs, if that still names the file. The descriptor, or a negative errno. */
int stoup_file_reopen(int fd, const char *path, int flags);

/* ---- reading --------------------------------------------------------------------------------- */

/* Read and check header, trailer and footer of an open file of file_len bytes. 0, or the code of
 * `fault`, which is filled; the index belongs to the caller (stoup_vol_index_destroy). */
int stoup_volume_index_read(
	int fd, uint64_t file_len, struct stoup_vol_index **ret, struct stoup_vol_fault *fault);

/* Read the stored bytes of a block into dst (stored_len bytes). 0, or the code of `fault`. */
int stoup_volume_block_read(int fd, const struct stoup_vol_index *index, uint32_t block_idx,
	void *dst, struct stoup_vol_fault *fault);

/* "PATH: block 3 at offset 4096: ..." into dst. */
void stoup_volume_fault_text(
	const char *path, const struct stoup_vol_fault *fault, char *dst, size_t dst_cap);

/* ---- writing --------------------------------------------------------------------------------- */

struct stoup_volume_file {
	int dir_fd;                      /* borrowed from the lock */
	int fd;                          /* -1: finished or aborted */
	const char *dir_path;            /* borrowed from the lock */
	char name[STOUP_STORE_NAME_CAP]; /* of the temporary file */
	struct stoup_vol_header header;
	struct stoup_vol_writer *writer;
	uint64_t raw_len;  /* decoded bytes of the blocks so far */
	uint64_t file_len; /* bytes of the file so far */
};

/* One encoded block. */
struct stoup_volume_block {
	uint32_t schema_idx; /* of the writer */
	uint32_t raw_len;
	uint32_t codec, transform;
	uint32_t stored_len;
	uint64_t stored_hash, raw_hash;
	const void *stored;
};

/* Create the temporary file of a volume; `header` is final (batch_cnt is known). Schemas, series
 * and superseded ids are declared at file->writer. 0 or negative errno with a text. */
int stoup_volume_file_create(const struct stoup_store_lock *lock,
	const struct stoup_vol_header *header, struct stoup_volume_file *ret,
	struct stoup_error *err);

/* Place and write a block. Returns its index in the volume or negative errno with a text. */
int64_t stoup_volume_file_block(struct stoup_volume_file *file,
	const struct stoup_volume_block *block, struct stoup_error *err);

/* Write tail and header, fsync, close. The temporary file stays, ready to be published. */
int stoup_volume_file_finish(struct stoup_volume_file *file, struct stoup_error *err);

/* Close, where still open, and remove the temporary file. */
void stoup_volume_file_abort(struct stoup_volume_file *file);

/* For an error text: what mends -ENOSPC, -EDQUOT or -EFBIG. */
const char *stoup_volume_room_advice(int code);

#endif
