/* SPDX-License-Identifier: Apache-2.0 */
/* volume_file.c - positioned I/O for volumes. */
#include "producer/volume_file.h"
#include "shm/hook.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One transfer of Linux moves at most 2 GiB less a page; a round number below that. */
#define TRANSFER_CAP (1u << 30)

/* ---- positioned I/O -------------------------------------------------------------------------- */

int stoup_file_read(int fd, void *dst, size_t len, uint64_t off)
{
	char *p = dst;

	while (len > 0) {
		ssize_t n = pread(fd, p, len < TRANSFER_CAP ? len : TRANSFER_CAP, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int stoup_file_write(int fd, const void *src, size_t len, uint64_t off)
{
	const char *p = src;

	while (len > 0) {
		ssize_t n = pwrite(fd, p, len < TRANSFER_CAP ? len : TRANSFER_CAP, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int stoup_file_reopen(int fd, const char *path, int flags)
{
	struct stat a, b;
	char link[64];
	int again;

	/* Through procfs it is the very file, renamed or unlinked or not. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	again = open(link, O_RDONLY | O_CLOEXEC | flags);
	if (again >= 0)
		return again;
	if ((errno != ENOENT && errno != EACCES) || !path)
		return -errno;
	again = open(path, O_RDONLY | O_CLOEXEC | flags);
	if (again < 0)
		return -errno;
	if (fstat(fd, &a) < 0 || fstat(again, &b) < 0 || a.st_dev != b.st_dev ||
		a.st_ino != b.st_ino) {
		close(again);
		return -ESTALE;
	}
	return again;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int fault_set(struct stoup_vol_fault *fault, int code, uint32_t region, uint64_t file_off,
	const char *what)
{
	*fault = (struct stoup_vol_fault){.code = code, .region = region, .file_off = file_off};
	snprintf(fault->what, sizeof(fault->what), "%s", what);
	return code;
}

/* Read a part of the file; an error becomes a fault of that region. */
static int region_read(
	int fd, void *dst, size_t len, uint64_t off, uint32_t region, struct stoup_vol_fault *fault)
{
	char what[sizeof(fault->what)];
	int rc = stoup_file_read(fd, dst, len, off);

	if (rc == 0)
		return 0;
	if (rc == -ENODATA)
		snprintf(what, sizeof(what), "the file ends inside these %zu bytes", len);
	else
		snprintf(what, sizeof(what), "reading %zu bytes failed: %s", len, strerror(-rc));
	return fault_set(fault, rc, region, off, what);
}

int stoup_volume_index_read(
	int fd, uint64_t file_len, struct stoup_vol_index **ret, struct stoup_vol_fault *fault)
{
	uint8_t header_bytes[STOUP_VOL_HEADER_LEN], trailer[STOUP_VOL_TRAILER_LEN];
	struct stoup_vol_header header;
	uint64_t footer_off = 0, footer_len = 0;
	uint8_t *footer;
	int rc;

	if (file_len < STOUP_VOL_HEADER_LEN)
		return fault_set(fault, -ENODATA, STOUP_VOL_REGION_HEADER, file_len,
			"the file ends inside its header");
	rc = region_read(fd, header_bytes, sizeof(header_bytes), 0, STOUP_VOL_REGION_HEADER, fault);
	if (rc == 0)
		rc = stoup_vol_header_parse(header_bytes, &header, fault);
	if (rc < 0)
		return rc;
	if (file_len < STOUP_VOL_HEADER_LEN + STOUP_VOL_TRAILER_LEN)
		return fault_set(fault, -ENODATA, STOUP_VOL_REGION_TRAILER, file_len,
			"the file ends before its trailer");
	rc = region_read(fd, trailer, sizeof(trailer), file_len - sizeof(trailer),
		STOUP_VOL_REGION_TRAILER, fault);
	if (rc == 0)
		rc = stoup_vol_trailer_parse(trailer, file_len, &footer_off, &footer_len, fault);
	if (rc < 0)
		return rc;
	footer = malloc(footer_len ? (size_t)footer_len : 1);
	if (!footer)
		return fault_set(fault, -ENOMEM, STOUP_VOL_REGION_FOOTER, footer_off,
			"no memory for the footer");
	rc = region_read(fd, footer, footer_len, footer_off, STOUP_VOL_REGION_FOOTER, fault);
	if (rc == 0)
		rc = stoup_vol_index_parse(
			header_bytes, trailer, footer, footer_len, file_len, ret, fault);
	if (rc == -ENOMEM)
		fault_set(
			fault, rc, STOUP_VOL_REGION_FOOTER, footer_off, "no memory for the index");
	free(footer);
	return rc;
}

int stoup_volume_block_read(int fd, const struct stoup_vol_index *index, uint32_t block_idx,
	void *dst, struct stoup_vol_fault *fault)
{
	const struct stoup_vol_block *block = &index->blocks[block_idx];
	int rc = region_read(
		fd, dst, block->stored_len, block->stored_off, STOUP_VOL_REGION_BLOCK, fault);

	if (rc < 0)
		fault->block_idx = block_idx;
	return rc;
}

void stoup_volume_fault_text(
	const char *path, const struct stoup_vol_fault *fault, char *dst, size_t dst_cap)
{
	if (fault->region == 0)
		snprintf(dst, dst_cap, "%s: %s", path, fault->what);
	else if (fault->region == STOUP_VOL_REGION_BLOCK)
		snprintf(dst, dst_cap, "%s: block %" PRIu32 " at offset %" PRIu64 ": %s", path,
			fault->block_idx, fault->file_off, fault->what);
	else
		snprintf(dst, dst_cap, "%s: %s at offset %" PRIu64 ": %s", path,
			stoup_vol_region_name(fault->region), fault->file_off, fault->what);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* What mends it when bytes find no room. */
const char *stoup_volume_room_advice(int code)
{
	/* The file system's largest file, or the process's (RLIMIT_FSIZE). */
	return code == -EFBIG ? "raise the largest size of files: ulimit -f, or use another --store"
	                      : "free space there, or use another --store";
}

/* Say which file could not be written, and for a full disk what would mend it. */
static int write_error(
	const struct stoup_volume_file *file, int code, const char *step, struct stoup_error *err)
{
	if (code == -ENOSPC || code == -EDQUOT || code == -EFBIG)
		return stoup_error_set(err, code,
			"%s/%s: %s after %" PRIu64 " bytes: %s; the store is unchanged; %s",
			file->dir_path, file->name, step, file->file_len, strerror(-code),
			stoup_volume_room_advice(code));
	return stoup_error_set(err, code, "%s/%s: %s: %s; the store is unchanged", file->dir_path,
		file->name, step, strerror(-code));
}

int stoup_volume_file_create(const struct stoup_store_lock *lock,
	const struct stoup_vol_header *header, struct stoup_volume_file *ret,
	struct stoup_error *err)
{
	struct stoup_volume_file file = {.dir_fd = lock->dir_fd,
		.dir_path = lock->path,
		.header = *header,
		.file_len = STOUP_VOL_HEADER_LEN};
	int rc;

	stoup_store_temp_name(header, file.name);
	rc = stoup_vol_writer_create(header, &file.writer);
	if (rc < 0)
		return stoup_error_set(err, rc, "%s/%s: %s", lock->path, file.name, strerror(-rc));
	file.fd = openat(
		lock->dir_fd, file.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (file.fd < 0) {
		rc = -errno;
		stoup_vol_writer_destroy(file.writer);
		return write_error(&file, rc, "creating the volume failed", err);
	}
	STOUP_HOOK("ingest.created");
	*ret = file;
	return 0;
}

int64_t stoup_volume_file_block(struct stoup_volume_file *file,
	const struct stoup_volume_block *block, struct stoup_error *err)
{
	uint64_t off = 0;
	int64_t idx = stoup_vol_add_block(file->writer, block->schema_idx, block->raw_len,
		block->codec, block->transform, block->stored_hash, block->raw_hash,
		block->stored_len, &off);
	int rc;

	if (idx < 0)
		return write_error(file, (int)idx, "placing a block failed", err);
	/* What lies between two blocks is a hole, which reads as the zeros that padding must be. */
	rc = stoup_file_write(file->fd, block->stored, block->stored_len, off);
	if (rc < 0)
		return write_error(file, rc, "writing a block failed", err);
	file->raw_len += block->raw_len;
	file->file_len = off + block->stored_len;
	return idx;
}

int stoup_volume_file_finish(struct stoup_volume_file *file, struct stoup_error *err)
{
	uint8_t header[STOUP_VOL_HEADER_LEN];
	const uint8_t *tail;
	uint64_t off;
	size_t tail_len;
	int rc = stoup_vol_finish(file->writer, &file->header, header, &tail, &tail_len, &off);

	if (rc < 0)
		return write_error(file, rc, "building the index failed", err);
	rc = stoup_file_write(file->fd, tail, tail_len, off);
	if (rc == 0)
		rc = stoup_file_write(file->fd, header, sizeof(header), 0);
	if (rc < 0)
		return write_error(file, rc, "writing the index failed", err);
	file->file_len = off + tail_len;
	STOUP_HOOK("ingest.headed");
	if (fsync(file->fd) < 0)
		return write_error(file, -errno, "fsync failed", err);
	STOUP_HOOK("ingest.synced");
	rc = close(file->fd) < 0 ? -errno : 0;
	file->fd = -1;
	stoup_vol_writer_destroy(file->writer);
	file->writer = NULL;
	/* NFS and FUSE report late write errors here. */
	return rc < 0 ? write_error(file, rc, "close failed", err) : 0;
}

void stoup_volume_file_abort(struct stoup_volume_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	stoup_vol_writer_destroy(file->writer);
	file->writer = NULL;
	if (file->name[0])
		unlinkat(file->dir_fd, file->name, 0);
	file->name[0] = '\0';
}
