/* SPDX-License-Identifier: Apache-2.0 */
/* region.c - shared memory objects: create, reserve, touch, collapse, seal, map. */
#include "shm/region.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "shm/abi.h"
#include "shm/hook.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21U << 26) /* log2 of 2 MiB in the flags' upper bits */
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define HUGE_LEN  ((size_t)2 << 20)
#define TOUCH_CAP 16u /* threads that touch pages; more only fight for the zone lock */

static void region_none(struct stoup_region *region)
{
	memset(region, 0, sizeof(*region));
	region->fd = -1;
	region->ro_fd = -1;
}

/* Map at an address that agrees with the file's 2 MiB pages (both begin at 0 of them), so that they can
 * be mapped as such: the kernel places long mappings at any 4 KiB. MAP_FAILED with errno. */
static void *map_aligned(int fd, size_t len, int prot)
{
	char *area, *at;

	if (len < HUGE_LEN)
		return mmap(NULL, len, prot, MAP_SHARED, fd, 0);
	area = mmap(NULL, len + HUGE_LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (area == MAP_FAILED)
		return MAP_FAILED;
	at = (char *)(((uintptr_t)area + HUGE_LEN - 1) & ~(uintptr_t)(HUGE_LEN - 1));
	if (mmap(at, len, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(area, len + HUGE_LEN);
		return MAP_FAILED;
	}
	if (at > area)
		munmap(area, (size_t)(at - area));
	len = (len + STOUP_OS_PAGE_LEN - 1) & ~(size_t)(STOUP_OS_PAGE_LEN - 1);
	munmap(at + len, (size_t)(area + HUGE_LEN - at));
	return at;
}

/* ---- creating --------------------------------------------------------------------------------- */

static uint64_t huge_number(const char *name)
{
	char path[96];
	unsigned long long value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-2048kB/%s", name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%llu", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

/* Pages that are free and promised to nobody. */
static uint64_t huge_free(void)
{
	uint64_t free = huge_number("free_hugepages"), reserved = huge_number("resv_hugepages");

	return free > reserved ? free - reserved : 0;
}

uint64_t stoup_region_available(uint32_t backing)
{
	struct statvfs vfs;

	if (backing == STOUP_BACKING_HUGETLB)
		return huge_free() * HUGE_LEN;
	/* A tmpfs without a limit shows no blocks at all. */
	if (backing == STOUP_BACKING_POSIX && statvfs("/dev/shm", &vfs) == 0 && vfs.f_blocks > 0)
		return (uint64_t)vfs.f_bavail * vfs.f_frsize;
	return UINT64_MAX;
}

static int shortage(uint32_t backing, size_t len, struct stoup_error *err)
{
	unsigned long long need = len, avail = stoup_region_available(backing), pages, whole;
	struct statvfs vfs;

	if (backing == STOUP_BACKING_HUGETLB) {
		pages = (need + HUGE_LEN - 1) / HUGE_LEN;
		return stoup_error_set(err, -ENOSPC,
			"too few huge pages of 2 MiB: needed %llu, available %llu; mend: sysctl "
			"vm.nr_hugepages=%llu (a container: its hugetlb limit), or a smaller --size",
			pages, avail / HUGE_LEN,
			(unsigned long long)huge_number("nr_hugepages") + pages - avail / HUGE_LEN);
	}
	if (backing == STOUP_BACKING_MEMFD)
		return stoup_error_set(err, -ENOSPC,
			"not enough memory for %llu bytes of memfd; mend: a smaller --size, or "
			"raise the memory limit of the container or cgroup",
			need);
	whole = need;
	/* What others have there stays theirs. */
	if (statvfs("/dev/shm", &vfs) == 0)
		whole += (unsigned long long)(vfs.f_blocks - vfs.f_bavail) * vfs.f_frsize;
	whole = whole / (1 << 20) + 64;
	return stoup_error_set(err, -ENOSPC,
		"/dev/shm is too small: needed %llu bytes, available %llu; mend: mount -o "
		"remount,size=%lluM /dev/shm (container: --shm-size=%llum), a smaller --size, or "
		"--backing memfd",
		need, avail, whole, whole);
}

/* The kernel makes memfds 0777: whoever is passed a read-only descriptor could open it for writing
 * through /proc. Seals forbid the writing, but not to change times and attributes or to page it out. */
static int memfd_mode(int fd, uint32_t mode, struct stoup_error *err)
{
	return fchmod(fd, (mode_t)mode) < 0
	               ? stoup_error_set(err, -errno, "chmod of a memfd: %s", strerror(errno))
	               : 0;
}

/* The name is taken, and not ours to remove: /dev/shm is sticky. */
static int name_taken(const char *name, struct stoup_error *err)
{
	char path[160];
	struct stat st = {0};

	snprintf(path, sizeof(path), "/dev/shm%s", name);
	if (lstat(path, &st) < 0)
		return stoup_error_set(err, -EEXIST, "shm_open %s: it is there already", name);
	return stoup_error_set(err, -EEXIST,
		"%s is there already and belongs to user %u; mend: as root, rm %s, or another --pool "
		"name",
		path, (unsigned int)st.st_uid, path);
}

static int open_object(struct stoup_region *region, uint32_t backing, const char *name,
	uint32_t mode, int unlink_now, struct stoup_error *err)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;

	if (backing != STOUP_BACKING_POSIX) {
		if (backing == STOUP_BACKING_HUGETLB)
			flags |= MFD_HUGETLB | MFD_HUGE_2MB;
		region->fd = memfd_create(name + 1, flags);
		if (region->fd < 0)
			return stoup_error_set(err, -errno, "memfd_create: %s%s", strerror(errno),
				backing == STOUP_BACKING_HUGETLB
					? " (huge pages of 2 MiB are not available)"
					: "");
		return memfd_mode(region->fd, mode, err);
	}
	shm_unlink(name);
	region->fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
	if (region->fd < 0 && errno == EEXIST)
		return name_taken(name, err);
	if (region->fd < 0)
		return stoup_error_set(err, -errno, "shm_open %s: %s", name, strerror(errno));
	STOUP_HOOK("region.named");
	/* Gone at once, so that a process that is killed while it reserves leaves nothing behind. */
	if (unlink_now)
		shm_unlink(name);
	/* umask must not decide who may look. */
	if (fchmod(region->fd, (mode_t)mode) < 0)
		return stoup_error_set(err, -errno, "chmod %s: %s", name, strerror(errno));
	return 0;
}

static int reserve(struct stoup_region *region, uint32_t backing, struct stoup_error *err)
{
	int rc;

	/* Known before pages are filled and given back, so that trying again costs nothing. */
	if (backing == STOUP_BACKING_POSIX && region->len > stoup_region_available(backing))
		return shortage(backing, region->len, err);
	if (ftruncate(region->fd, (off_t)region->len) < 0)
		return stoup_error_set(
			err, -errno, "ftruncate to %zu bytes: %s", region->len, strerror(errno));
	/* ftruncate alone succeeds on a full tmpfs and the first touch dies of SIGBUS. */
	do
		rc = posix_fallocate(region->fd, 0, (off_t)region->len);
	while (rc == EINTR);
	if (rc == ENOSPC || rc == ENOMEM)
		return shortage(backing, region->len, err);
	if (rc != 0)
		return stoup_error_set(err, -rc, "posix_fallocate: %s", strerror(rc));
	return 0;
}

struct touch {
	pthread_t thread;
	char *base;
	size_t len, huge_len;
	int collapse, huge_error;
};

/* Collapse into 2 MiB pages where the kernel allows: before the touch, so that there is one fault per 2 MiB
 * left. A part begins at such a page. */
static void collapse(struct touch *part)
{
	for (size_t at = 0; at + HUGE_LEN <= part->len; at += HUGE_LEN) {
		if (madvise(part->base + at, HUGE_LEN, MADV_COLLAPSE) == 0) {
			part->huge_len += HUGE_LEN;
			continue;
		}
		part->huge_error = errno;
		/* These are passing shortages of one window; any other reason holds for all of them. */
		if (errno != EAGAIN && errno != ENOMEM && errno != EBUSY)
			return;
	}
}

static void *touch_run(void *arg)
{
	struct touch *part = arg;

	if (part->collapse)
		collapse(part);
	/* One call instead of a fault per page, where the kernel knows it (5.14). */
	if (madvise(part->base, part->len, MADV_POPULATE_WRITE) == 0)
		return NULL;
	for (size_t off = 0; off < part->len; off += STOUP_OS_PAGE_LEN)
		*(volatile char *)(part->base + off) = 0;
	return NULL;
}

static void touch_all(struct stoup_region *region, int collapse, uint32_t threads)
{
	struct touch parts[TOUCH_CAP];
	uint32_t cnt = threads == 0 ? 1 : threads > TOUCH_CAP ? TOUCH_CAP : threads;
	size_t step = (region->len / cnt + HUGE_LEN - 1) & ~(HUGE_LEN - 1);
	size_t off = 0;
	uint32_t i;

	for (i = 0; i < cnt && off < region->len; i++, off += step) {
		parts[i] = (struct touch){.base = (char *)region->base + off, .collapse = collapse};
		parts[i].len = region->len - off < step ? region->len - off : step;
		if (i == 0 || pthread_create(&parts[i].thread, NULL, touch_run, &parts[i]) != 0) {
			parts[i].thread = 0;
			if (i > 0)
				touch_run(&parts[i]);
		}
	}
	touch_run(&parts[0]);
	region->huge_len = 0;
	region->huge_reason[0] = 0;
	while (i-- > 0) {
		if (parts[i].thread)
			pthread_join(parts[i].thread, NULL);
		region->huge_len += parts[i].huge_len;
		if (parts[i].huge_error)
			snprintf(region->huge_reason, sizeof(region->huge_reason),
				"MADV_COLLAPSE: %s", strerror(parts[i].huge_error));
	}
	if (region->len < HUGE_LEN)
		snprintf(region->huge_reason, sizeof(region->huge_reason),
			"the region is smaller than 2 MiB");
}

static int read_only_fd(struct stoup_region *region, struct stoup_error *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", region->fd);
	region->ro_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (region->ro_fd < 0)
		return stoup_error_set(err, -errno,
			"re-opening a shared memory object read-only: %s", strerror(errno));
	return 0;
}

int stoup_region_create(struct stoup_region *region, uint32_t backing, const char *name,
	uint32_t mode, size_t len, int unlink_now, int want_ro, uint32_t threads,
	struct stoup_error *err)
{
	struct stoup_region made;
	int named = backing == STOUP_BACKING_POSIX;
	int rc;

	region_none(&made);
	if (backing == STOUP_BACKING_HUGETLB)
		len = (len + HUGE_LEN - 1) & ~(HUGE_LEN - 1);
	made.len = len;
	rc = open_object(&made, backing, name, mode, unlink_now, err);
	if (rc < 0)
		goto out_fini;
	rc = reserve(&made, backing, err);
	if (rc < 0)
		goto out_fini;
	made.base = map_aligned(made.fd, len, PROT_READ | PROT_WRITE);
	if (made.base == MAP_FAILED) {
		made.base = NULL;
		rc = stoup_error_set(err, -errno, "mmap of %zu bytes: %s", len, strerror(errno));
		goto out_fini;
	}
	madvise(made.base, len, MADV_DONTDUMP);
	touch_all(&made, backing != STOUP_BACKING_HUGETLB, threads);
	if (backing == STOUP_BACKING_HUGETLB)
		made.huge_len = len;
	if (want_ro && (rc = read_only_fd(&made, err)) < 0)
		goto out_fini;
	/* Our own writable mapping stays; nobody can make another, resize or punch. */
	if (!named &&
		fcntl(made.fd, F_ADD_SEALS,
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0) {
		rc = stoup_error_set(err, -errno, "sealing a memfd: %s", strerror(errno));
		goto out_fini;
	}
	*region = made;
	return 0;
out_fini:
	if (named && made.fd >= 0 && !unlink_now)
		shm_unlink(name);
	stoup_region_fini(&made);
	return rc;
}

int stoup_region_create_page(
	struct stoup_region *region, const char *label, size_t len, struct stoup_error *err)
{
	struct stoup_region made;
	int rc;

	region_none(&made);
	made.len = len;
	made.fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (made.fd < 0)
		return stoup_error_set(err, -errno, "memfd_create: %s", strerror(errno));
	rc = memfd_mode(made.fd, 0600, err);
	if (rc == 0)
		rc = reserve(&made, STOUP_BACKING_MEMFD, err);
	if (rc < 0)
		goto out_fini;
	if (fcntl(made.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		rc = stoup_error_set(err, -errno, "sealing a consumer page: %s", strerror(errno));
		goto out_fini;
	}
	made.base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
	if (made.base == MAP_FAILED) {
		made.base = NULL;
		rc = stoup_error_set(err, -errno, "mmap of a consumer page: %s", strerror(errno));
		goto out_fini;
	}
	madvise(made.base, len, MADV_DONTDUMP);
	*region = made;
	return 0;
out_fini:
	stoup_region_fini(&made);
	return rc;
}

/* ---- mapping ---------------------------------------------------------------------------------- */

int stoup_region_map(int fd, size_t min_len, int writable, int dont_fork, struct stoup_region *ret,
	struct stoup_error *err)
{
	struct stoup_region made;
	struct stat st;

	region_none(&made);
	if (fstat(fd, &st) < 0)
		return stoup_error_set(
			err, -errno, "fstat of a shared memory object: %s", strerror(errno));
	if (st.st_size <= 0 || (uint64_t)st.st_size < min_len)
		return stoup_error_set(err, -EPROTO,
			"a shared memory object has %lld bytes, expected %zu",
			(long long)st.st_size, min_len);
	made.len = (size_t)st.st_size;
	made.base = map_aligned(fd, made.len, writable ? PROT_READ | PROT_WRITE : PROT_READ);
	if (made.base == MAP_FAILED)
		return stoup_error_set(err, -errno, "mmap of %zu bytes of shared memory: %s",
			made.len, strerror(errno));
	madvise(made.base, made.len, MADV_DONTDUMP);
	if (dont_fork)
		madvise(made.base, made.len, MADV_DONTFORK);
	*ret = made;
	return 0;
}

void stoup_region_fini(struct stoup_region *region)
{
	if (region->base)
		munmap(region->base, region->len);
	if (region->fd >= 0)
		close(region->fd);
	if (region->ro_fd >= 0)
		close(region->ro_fd);
	region_none(region);
}

int stoup_region_unlink_stale(uint32_t uid, const char *pool)
{
	char prefix[128], name[NAME_MAX + 2];
	const struct dirent *entry;
	int cnt = 0, len;
	DIR *dir;

	len = snprintf(prefix, sizeof(prefix), "stoup.%u.%s.", uid, pool);
	dir = opendir("/dev/shm");
	if (!dir)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		/* Pool names may hold dots, so the rest must be one word: "ctl", "data", "v7". */
		if (strncmp(entry->d_name, prefix, (size_t)len) != 0 ||
			strchr(entry->d_name + len, '.'))
			continue;
		snprintf(name, sizeof(name), "/%s", entry->d_name);
		if (shm_unlink(name) == 0)
			cnt++;
	}
	closedir(dir);
	return cnt;
}
