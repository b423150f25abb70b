/* SPDX-License-Identifier: Apache-2.0 */
#include "producer/reader_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>
#include "producer/volume_file.h"

#define VEC_CAP 512u /* pages that one mincore is asked about */

/* The kernel reads ahead by at most the device's read-ahead or the length of the request, whichever
 * is more, and may look one such window beyond the last: two windows must be cached for nothing to
 * be started. */
#define AHEAD_WINDOWS    2u
#define AHEAD_WINDOW_MIN ((uint64_t)STOUP_READER_CACHED_LEN_DEFAULT)
#define AHEAD_WINDOW_CAP ((uint64_t)8 << 20) /* to ask about more would cost more than it saves */
#define AHEAD_UNKNOWN    ((uint64_t)4 << 20)

/* What was seen in the page cache is relied on this often: it may have been evicted since, and then
 * costs one read-ahead. Kept by chunk, so that misses here and there in a file ask as seldom as a scan: a
 * question about 16 MiB in 4 KiB pages takes 50 to 200 us, one about 512 KiB 2 us. */
#define SEEN_CAP   64u
#define SEEN_CHUNK ((uint64_t)2 << 20)

/* cachestat has one number on all architectures; Debian 12's headers do not know it yet. */
#ifdef SYS_cachestat
#define CACHESTAT_NR SYS_cachestat
#elif !defined(__alpha__)
#define CACHESTAT_NR 451
#endif

struct cachestat_range_arg {
	uint64_t off, len;
};

struct cachestat_result {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/* ---- a file is added ------------------------------------------------------------------------- */

/* The read-ahead of the file's device, from sysfs; a partition's is its disk's. */
static uint64_t ahead_window(dev_t dev)
{
	const char *places[][2] = {
		{"/sys/dev/block", "queue/"},
		{"/sys/dev/block", "../queue/"},
		{"/sys/class/bdi", ""},
	};
	uint64_t window = AHEAD_UNKNOWN;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[128];
		unsigned kib = 0;
		snprintf(path, sizeof(path), "%s/%u:%u/%sread_ahead_kb", places[i][0], major(dev),
			minor(dev), places[i][1]);
		FILE *stream = fopen(path, "re");
		if (!stream)
			continue;
		if (fscanf(stream, "%u", &kib) == 1)
			window = (uint64_t)kib << 10;
		fclose(stream);
		break;
	}
	if (window < AHEAD_WINDOW_MIN)
		return AHEAD_WINDOW_MIN;
	return window < AHEAD_WINDOW_CAP ? window : AHEAD_WINDOW_CAP;
}

void stoup_reader_file_init(struct stoup_reader_file *file, int fd)
{
	struct stat st;
	memset(file, 0, sizeof(*file));
	file->used = 1;
	file->fd = fd;
	file->fd_direct = -1;
	file->nowait = 1;
	file->offset_align = 1;
	file->memory_align = 1;
	file->ahead_len = AHEAD_WINDOWS * AHEAD_UNKNOWN;
	if (fstat(fd, &st) < 0)
		return;
	file->file_len = st.st_size > 0 ? (uint64_t)st.st_size : 0;
	file->ahead_len = AHEAD_WINDOWS * ahead_window(st.st_dev);
	/* Without memory each question is asked. */
	file->seen = calloc(file->file_len / SEEN_CHUNK + 1, 1);
	file->seen_cnt = file->seen ? file->file_len / SEEN_CHUNK + 1 : 0;
}

/* ---- O_DIRECT -------------------------------------------------------------------------------- */

static int alignment_usable(uint32_t align)
{
	return align > 0 && align <= STOUP_READ_ALIGN_CAP && (align & (align - 1)) == 0;
}

/* Ask the file for its alignments. A kernel that cannot tell (before 6.1, or many file systems)
 * leaves 4096, which every block device satisfies. -EINVAL: it says that it does no direct I/O. */
static int alignments_get(int fd, uint32_t *ret_offset_align, uint32_t *ret_memory_align)
{
	*ret_offset_align = STOUP_READ_ALIGN_CAP;
	*ret_memory_align = STOUP_READ_ALIGN_CAP;
#ifdef STATX_DIOALIGN
	struct statx stx;
	memset(&stx, 0, sizeof(stx));
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) < 0)
		return 0;
	if (!(stx.stx_mask & STATX_DIOALIGN))
		return 0;
	if (!alignment_usable(stx.stx_dio_offset_align) || !alignment_usable(stx.stx_dio_mem_align))
		return -EINVAL;
	*ret_offset_align = stx.stx_dio_offset_align;
	*ret_memory_align = stx.stx_dio_mem_align;
#else
	(void)fd;
#endif
	return 0;
}

int stoup_reader_file_direct(
	struct stoup_reader_file *file, const char *path, char reason[STOUP_READER_REASON_CAP])
{
	const char *name = path ? path : "(file)";
	file->direct = 0;
	file->fd_direct = -1;
	int rc = alignments_get(file->fd, &file->offset_align, &file->memory_align);
	if (rc < 0) {
		snprintf(reason, STOUP_READER_REASON_CAP,
			"%s: the file system offers no O_DIRECT with alignment up to %u", name,
			STOUP_READ_ALIGN_CAP);
		return rc;
	}
	rc = stoup_file_reopen(file->fd, path, O_DIRECT);
	if (rc < 0) {
		snprintf(reason, STOUP_READER_REASON_CAP, "%s: open with O_DIRECT: %s", name,
			strerror(-rc));
		return rc;
	}
	file->fd_direct = rc;
	file->direct = 1;
	return 0;
}

void stoup_reader_file_fini(struct stoup_reader_file *file)
{
	if (file->fd_direct >= 0)
		close(file->fd_direct);
	if (file->map)
		munmap(file->map, file->map_len);
	free(file->seen);
	memset(file, 0, sizeof(*file));
	file->fd = -1;
	file->fd_direct = -1;
}

/* ---- what the page cache holds --------------------------------------------------------------- */

/* 1 all there, 0 not, negative errno: this probe does not work for this file. */
static int probe_cachestat(const struct stoup_reader_file *file, uint64_t off, uint64_t len)
{
#ifdef CACHESTAT_NR
	struct cachestat_range_arg range = {.off = off, .len = len};
	struct cachestat_result result = {0};
	if (syscall(CACHESTAT_NR, (unsigned)file->fd, &range, &result, 0u) < 0)
		return -errno;
	uint64_t page_len = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t page_cnt = (off + len - 1) / page_len - off / page_len + 1;
	return result.cached >= page_cnt;
#else
	(void)file, (void)off, (void)len;
	return -ENOSYS;
#endif
}

/* mincore says "resident" for everything to a process that neither owns the file nor may write it
 * (the kernel hides what others read), so the answer counts only for one that does or may. */
static int mincore_truthful(int fd)
{
	struct stat st;
	char link[64];
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid())
		return 1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return faccessat(AT_FDCWD, link, W_OK, AT_EACCESS) == 0;
}

static int mincore_map(struct stoup_reader_file *file)
{
	struct stat st;
	if (!mincore_truthful(file->fd))
		return -EPERM;
	if (fstat(file->fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0)
		return -EINVAL;
	void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	file->map = map;
	file->map_len = (size_t)st.st_size;
	return 0;
}

static int probe_mincore(struct stoup_reader_file *file, uint64_t off, uint64_t len)
{
	unsigned char vec[VEC_CAP];
	int rc = file->map ? 0 : mincore_map(file);
	if (rc < 0)
		return rc;
	if (off + len > file->map_len)
		return 0;
	size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
	for (size_t at = (size_t)off / page_len * page_len; at < off + len;) {
		size_t part = (size_t)(off + len) - at;
		if (part > VEC_CAP * page_len)
			part = VEC_CAP * page_len;
		if (mincore((uint8_t *)file->map + at, part, vec) < 0)
			return -errno;
		for (size_t i = 0; i < (part + page_len - 1) / page_len; i++)
			if (!(vec[i] & 1))
				return 0;
		at += part;
	}
	return 1;
}

static int probe(struct stoup_reader_file *file, uint64_t off, uint64_t len)
{
	if (file->probe == STOUP_READ_PROBE_CACHESTAT) {
		int rc = probe_cachestat(file, off, len);
		if (rc >= 0)
			return rc;
		file->probe = STOUP_READ_PROBE_MINCORE;
	}
	if (file->probe == STOUP_READ_PROBE_MINCORE) {
		int rc = probe_mincore(file, off, len);
		if (rc >= 0)
			return rc;
		file->probe = STOUP_READ_PROBE_NONE;
	}
	return 0;
}

/* Is a chunk of the file cached, by what was seen of it lately or by a look? */
static int chunk_cached(struct stoup_reader_file *file, uint64_t chunk)
{
	uint64_t off = chunk * SEEN_CHUNK, len = SEEN_CHUNK;
	if (off + len > file->file_len)
		len = file->file_len - off;
	if (chunk < file->seen_cnt && file->seen[chunk] > 0) {
		file->seen[chunk]--;
		return 1;
	}
	if (probe(file, off, len) != 1)
		return 0;
	if (chunk < file->seen_cnt)
		file->seen[chunk] = SEEN_CAP;
	return 1;
}

/* The range, and what read-ahead might want behind it. */
static int cached(struct stoup_reader_file *file, uint64_t off, uint64_t len)
{
	uint64_t end = off + len, ahead = end + file->ahead_len;
	if (ahead > file->file_len)
		ahead = file->file_len;
	if (probe(file, off, len) != 1)
		return 0;
	for (uint64_t chunk = end / SEEN_CHUNK; chunk * SEEN_CHUNK < ahead; chunk++)
		if (!chunk_cached(file, chunk))
			return 0;
	return 1;
}

int64_t stoup_reader_file_cached(
	struct stoup_reader_file *file, uint64_t file_off, size_t len, void *dst)
{
	if (!file->nowait || len == 0 || !cached(file, file_off, len))
		return -EAGAIN;
	struct iovec iov = {.iov_base = dst, .iov_len = len};
	ssize_t got = preadv2(file->fd, &iov, 1, (off_t)file_off, RWF_NOWAIT);
	if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
		file->nowait = 0;
	/* Any other error, and a part: the read proper will say it, or get the whole. */
	return got == (ssize_t)len ? got : -EAGAIN;
}
