/* SPDX-License-Identifier: Apache-2.0 */
/* store_write.c - the writer's side of a store: lock, names, publishing, sweeping. */
#include "producer/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "producer/store_private.h"
#include "producer/volume_file.h"
#include "shm/hook.h"

/* ---- lock ------------------------------------------------------------------------------------ */

static int lock_error(const char *path, int code, struct stoup_error *err)
{
	if (code == -EBUSY)
		return stoup_error_set(err, code,
			"another writer holds store '%s' (lock file %s/" STOUP_STORE_LOCK_NAME
			"); wait until it has ended",
			path, path);
	if (code == -ENOENT)
		return stoup_error_set(err, code,
			"can not create store '%s': the directory above it does not exist", path);
	if (code == -ENOTDIR || code == -EEXIST)
		return stoup_error_set(err, -ENOTDIR, "store '%s' is no directory", path);
	return stoup_error_set(err, code, "can not write to store '%s': %s", path, strerror(-code));
}

/* Take the lock of an open directory. A writer that undoes the making of a store unlinks the lock
 * file, so that the file locked must be proved to be the one that has the name. */
static int lock_take(int dir_fd, int *ret_fd)
{
	struct flock flock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat locked, named;
	int rc, fd = openat(dir_fd, STOUP_STORE_LOCK_NAME,
			O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return -errno;
	if (fcntl(fd, F_OFD_SETLK, &flock) < 0) {
		rc = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
		goto out_close;
	}
	rc = -EBUSY;
	if (fstat(fd, &locked) < 0 ||
		fstatat(dir_fd, STOUP_STORE_LOCK_NAME, &named, AT_SYMLINK_NOFOLLOW) < 0)
		goto out_close;
	if (locked.st_ino != named.st_ino || locked.st_dev != named.st_dev)
		goto out_close;
	*ret_fd = fd;
	return 0;
out_close:
	close(fd);
	return rc;
}

int stoup_store_is_locked(int dir_fd)
{
	struct flock flock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int rc, fd = openat(dir_fd, STOUP_STORE_LOCK_NAME,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return 0;
	rc = fcntl(fd, F_OFD_GETLK, &flock) == 0 && flock.l_type != F_UNLCK;
	close(fd);
	return rc;
}

int stoup_store_lock(const char *path, struct stoup_store_lock *ret, struct stoup_error *err)
{
	struct stoup_store_lock lock = {.dir_fd = -1, .lock_fd = -1};
	size_t len = strlen(path);
	int rc;

	while (len > 1 && path[len - 1] == '/')
		len--;
	lock.path = strndup(path, len);
	if (!lock.path)
		return lock_error(path, -ENOMEM, err);
	if (mkdir(lock.path, 0777) == 0)
		lock.created = 1;
	else if (errno != EEXIST) {
		rc = -errno;
		goto out_undo;
	}
	lock.dir_fd = open(lock.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = lock.dir_fd < 0 ? -errno : lock_take(lock.dir_fd, &lock.lock_fd);
	if (rc < 0)
		goto out_undo;
	STOUP_HOOK("ingest.locked");
	*ret = lock;
	return 0;
out_undo:
	lock_error(lock.path, rc, err);
	/* No rmdir here: where another writer was faster, the directory is its own. */
	if (lock.dir_fd >= 0)
		close(lock.dir_fd);
	free(lock.path);
	return rc == -EEXIST ? -ENOTDIR : rc;
}

void stoup_store_unlock(struct stoup_store_lock *lock, int undo)
{
	if (!lock->path)
		return;
	if (undo && lock->created) {
		struct stoup_store_names names = {0};

		if (stoup_store_list(lock->dir_fd, 0, &names) == 0 && names.cnt == 0) {
			unlinkat(lock->dir_fd, STOUP_STORE_LOCK_NAME, 0);
			rmdir(lock->path);
		}
		stoup_store_names_fini(&names);
	}
	close(lock->lock_fd);
	close(lock->dir_fd);
	free(lock->path);
	*lock = (struct stoup_store_lock){.dir_fd = -1, .lock_fd = -1};
}

/* ---- names ----------------------------------------------------------------------------------- */

int stoup_store_id_make(uint8_t ret_id[16])
{
	ssize_t n;

	do {
		n = getrandom(ret_id, 14, 0);
	} while (n < 0 && errno == EINTR);
	if (n != 14)
		return n < 0 ? -errno : -EIO;
	ret_id[14] = ret_id[15] = 0;
	return 0;
}

void stoup_store_name(const struct stoup_vol_header *header, char ret_name[STOUP_STORE_NAME_CAP])
{
	snprintf(ret_name, STOUP_STORE_NAME_CAP, "%08llu-%02u-%02x%02x%02x%02x" STOUP_VOL_SUFFIX,
		(unsigned long long)header->ingest_seq, header->batch_idx, header->id[0],
		header->id[1], header->id[2], header->id[3]);
}

void stoup_store_temp_name(
	const struct stoup_vol_header *header, char ret_name[STOUP_STORE_NAME_CAP])
{
	char hex[33];
	size_t i;

	for (i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", header->id[i]);
	snprintf(
		ret_name, STOUP_STORE_NAME_CAP, STOUP_STORE_TEMP_PREFIX "%s" STOUP_VOL_SUFFIX, hex);
}

/* ---- publishing ------------------------------------------------------------------------------ */

int stoup_store_publish(const struct stoup_store_lock *lock, const struct stoup_vol_header *headers,
	size_t cnt, struct stoup_error *err)
{
	char temp[STOUP_STORE_NAME_CAP], name[STOUP_STORE_NAME_CAP];
	size_t done, i;
	int rc = 0;

	name[0] = '\0';
	for (done = 0; done < cnt; done++) {
		stoup_store_temp_name(&headers[done], temp);
		stoup_store_name(&headers[done], name);
		/* Never over another file: a name that is taken is somebody's data. */
		rc = renameat2(lock->dir_fd, temp, lock->dir_fd, name, RENAME_NOREPLACE) < 0
		             ? -errno
		             : 0;
		if (rc == -EINVAL && faccessat(lock->dir_fd, name, F_OK, 0) < 0)
			rc = renameat(lock->dir_fd, temp, lock->dir_fd, name) < 0 ? -errno : 0;
		if (rc < 0)
			break;
		STOUP_HOOK("ingest.renamed");
	}
	if (rc == 0 && fsync(lock->dir_fd) < 0)
		rc = -errno;
	STOUP_HOOK("ingest.published");
	if (rc == 0)
		return 0;
	stoup_error_set(err, rc, "%s/%s: publishing the volume failed: %s; the store is unchanged",
		lock->path, name, strerror(-rc));
	/* Newest first: a reader that comes between sees an incomplete batch, which it leaves out. */
	for (i = done; i > 0; i--) {
		stoup_store_name(&headers[i - 1], name);
		unlinkat(lock->dir_fd, name, 0);
	}
	for (i = done; i < cnt; i++) {
		stoup_store_temp_name(&headers[i], temp);
		unlinkat(lock->dir_fd, temp, 0);
	}
	return rc;
}

/* ---- sweeping -------------------------------------------------------------------------------- */

/* A temporary file is complete only if its header, which is written last, is there. */
static int temp_header(int dir_fd, const char *name, struct stoup_vol_header *ret)
{
	uint8_t bytes[STOUP_VOL_HEADER_LEN];
	struct stoup_vol_fault ignored;
	int rc, fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	rc = stoup_file_read(fd, bytes, sizeof(bytes), 0);
	if (rc == 0)
		rc = stoup_vol_header_parse(bytes, ret, &ignored);
	close(fd);
	return rc;
}

/* Remove the published members of the batch that a temporary file belongs to: its writer died
 * between two renames. In descending order of names, so that it stays incomplete until the end. */
static void sweep_batch(
	int dir_fd, const struct stoup_store_names *volumes, const struct stoup_vol_header *header)
{
	size_t i;

	for (i = volumes->cnt; i > 0; i--) {
		struct stoup_vol_header other;

		if (temp_header(dir_fd, volumes->names[i - 1], &other) == 0 &&
			stoup_store_same_batch(header, &other)) {
			unlinkat(dir_fd, volumes->names[i - 1], 0);
			STOUP_HOOK("sweep.member");
		}
	}
}

/* Temporary files go after the members of their batch: they are the proof that it was cut short. */
static void sweep_temps(const struct stoup_store_lock *lock)
{
	struct stoup_store_names temps = {0}, volumes = {0};
	struct stoup_vol_header header;
	size_t i;

	if (stoup_store_list(lock->dir_fd, 1, &temps) < 0)
		return;
	if (temps.cnt > 0 && stoup_store_list(lock->dir_fd, 0, &volumes) < 0)
		goto out_temps;
	for (i = 0; i < temps.cnt; i++) {
		if (temp_header(lock->dir_fd, temps.names[i], &header) == 0 && header.batch_cnt > 1)
			sweep_batch(lock->dir_fd, &volumes, &header);
	}
	for (i = 0; i < temps.cnt; i++) {
		unlinkat(lock->dir_fd, temps.names[i], 0);
		STOUP_HOOK("sweep.temporary");
	}
	stoup_store_names_fini(&volumes);
out_temps:
	stoup_store_names_fini(&temps);
}

void stoup_store_sweep(const struct stoup_store_lock *lock)
{
	struct stoup_store *store;
	uint32_t i;

	sweep_temps(lock);
	if (stoup_store_open(lock->path, &store, NULL) < 0)
		return;
	for (i = 0; i < store->stale_cnt; i++) {
		unlinkat(lock->dir_fd, store->stale[i], 0);
		STOUP_HOOK("sweep.superseded");
	}
	stoup_store_close(store);
}
