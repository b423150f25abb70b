/* SPDX-License-Identifier: Apache-2.0 */
/* check_memory.c - room for the pool: /dev/shm, machine and cgroups, locked memory, huge pages, swap, overcommit. */
#include "producer/check.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "producer/cmd.h"
#include "producer/memory.h"
#include "shm/region.h"

#define MIB          (UINT64_C(1) << 20)
#define HUGE_LEN     (2 * MIB)
#define PROBE_LEN    (4 * MIB)  /* of memory in 2 MiB pages: one is certain to lie inside */
#define SHM_SLACK    MIB        /* the control object */
#define DAEMON_SLACK (96 * MIB) /* staging region, catalogs, the program itself */
#define HUGE_DIR     "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define SHMEM_THP    "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

struct size_text {
	char text[STOUP_SIZE_TEXT_CAP];
};

static struct size_text size(uint64_t len)
{
	struct size_text ret;

	stoup_size_format(len, ret.text);
	return ret;
}

static uint64_t mib_up(uint64_t len)
{
	return (len + MIB - 1) / MIB;
}

/* What the pool to be takes of memory that it has not yet. */
static uint64_t needed(const struct stoup_check *c)
{
	return c->pool_lives ? 0 : c->pool_len;
}

/* The same with what else the daemon takes. */
static uint64_t daemon_needs(const struct stoup_check *c)
{
	return c->pool_lives ? 0 : c->pool_len + DAEMON_SLACK;
}

/* ---- /dev/shm --------------------------------------------------------------------------------- */

static void shm_mend(const struct stoup_check *c, struct stoup_check_line *line, uint64_t whole_mib)
{
	if (strcmp(c->container, "kubernetes") == 0)
		stoup_check_mend(line,
			"mount an emptyDir of medium: Memory and sizeLimit: %" PRIu64
			"Mi at /dev/shm, or stoupd --backing memfd, or a smaller --size",
			whole_mib);
	else if (c->container[0])
		stoup_check_mend(line,
			"start the container with --shm-size=%" PRIu64
			"m, or stoupd --backing memfd, "
			"or a smaller --size",
			whole_mib);
	else
		stoup_check_mend(line,
			"mount -o remount,size=%" PRIu64
			"M /dev/shm; or stoupd --backing memfd, or a "
			"smaller --size",
			whole_mib);
}

static void check_shm(struct stoup_check *c)
{
	uint64_t want = SHM_SLACK + (c->backing == STOUP_BACKING_POSIX ? needed(c) : 0);
	struct stoup_check_line *line = stoup_check_line(c, "shm", STOUP_CHECK_OK);
	uint64_t free_len, whole_len;
	char path[PATH_MAX];
	struct statvfs vfs;

	stoup_check_wanted(line, "%s", size(want).text);
	if (statvfs(stoup_check_path(c, "/dev/shm", path), &vfs) < 0 || access(path, W_OK) < 0) {
		line->level = STOUP_CHECK_PROBLEM;
		stoup_check_found(line, "/dev/shm is not there, or you may not write into it");
		stoup_check_mend(
			line, "mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
		return;
	}
	if (vfs.f_blocks == 0) {
		stoup_check_found(line, "/dev/shm has no limit of its own");
		return;
	}
	free_len = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	whole_len = (uint64_t)vfs.f_blocks * vfs.f_frsize;
	stoup_check_found(
		line, "/dev/shm has %s free of %s", size(free_len).text, size(whole_len).text);
	if (free_len >= want)
		return;
	line->level = STOUP_CHECK_PROBLEM;
	shm_mend(c, line, mib_up(whole_len - free_len + want));
}

/* ---- memory ----------------------------------------------------------------------------------- */

static void check_available(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "memory", STOUP_CHECK_OK);
	uint64_t want = daemon_needs(c), avail;
	char what[160];

	/* Pages of the huge page pool are counted elsewhere. */
	if (c->backing == STOUP_BACKING_HUGETLB)
		want -= needed(c);
	avail = stoup_memory_available_in(c->root, what, sizeof(what));
	stoup_check_wanted(line, "%s", size(want).text);
	if (avail == UINT64_MAX) {
		line->level = STOUP_CHECK_WARNING;
		stoup_check_found(line, "/proc/meminfo does not tell what is available");
		stoup_check_mend(line, "mount -t proc proc /proc");
		return;
	}
	stoup_check_found(line, "%s has %s available", what, size(avail).text);
	if (avail >= want)
		return;
	line->level = STOUP_CHECK_PROBLEM;
	if (strncmp(what, "cgroup", 6) != 0)
		stoup_check_mend(line, "stoupd --size %" PRIu64 "M, or end what else takes memory",
			avail > DAEMON_SLACK + MIB ? (avail - DAEMON_SLACK) / MIB : 1);
	else
		stoup_check_mend(line,
			"raise its limit by %" PRIu64 "M (%s), or stoupd --size %" PRIu64
			"M: the pool is charged to the daemon's cgroup",
			mib_up(want - avail),
			c->container[0] ? "docker update --memory, resources.limits.memory"
					: "systemctl set-property UNIT MemoryMax=",
			avail > DAEMON_SLACK + MIB ? (avail - DAEMON_SLACK) / MIB : 1);
}

/* May this process lock as it likes (CAP_IPC_LOCK)? */
static int may_lock(const struct stoup_check *c)
{
	char text[4096], *at;

	if (stoup_check_read(c, "/proc/self/status", text, sizeof(text)) < 0)
		return geteuid() == 0;
	at = strstr(text, "\nCapEff:");
	return at ? (int)(strtoull(at + 8, NULL, 16) >> 14 & 1) : geteuid() == 0;
}

static void check_memlock(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "memlock", STOUP_CHECK_OK);
	uint64_t want = c->pool_len + MIB;
	struct rlimit limit = {0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (c->mlock)
		stoup_check_wanted(line, "%s, for --mlock", size(want).text);
	if (limit.rlim_max == RLIM_INFINITY || may_lock(c)) {
		stoup_check_found(line, "no limit of locked memory binds you");
		return;
	}
	stoup_check_found(line, "at most %s of locked memory%s", size(limit.rlim_max).text,
		c->mlock ? "" : " (more is needed for --mlock alone)");
	/* The daemon raises the soft limit itself. */
	if (!c->mlock || limit.rlim_max >= want)
		return;
	line->level = STOUP_CHECK_PROBLEM;
	stoup_check_mend(line,
		"ulimit -l %" PRIu64 " as root before stoupd; systemd: LimitMEMLOCK=%" PRIu64
		"M; container: --ulimit memlock=%" PRIu64,
		want / 1024, mib_up(want), want);
}

/* ---- huge pages ------------------------------------------------------------------------------- */

static void check_hugetlb(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "huge_pages", STOUP_CHECK_OK);
	uint64_t free_cnt = stoup_check_number(c, HUGE_DIR "free_hugepages", "");
	uint64_t resv_cnt = stoup_check_number(c, HUGE_DIR "resv_hugepages", "");
	uint64_t all_cnt = stoup_check_number(c, HUGE_DIR "nr_hugepages", "");
	uint64_t want = (needed(c) + HUGE_LEN - 1) / HUGE_LEN;

	if (all_cnt == UINT64_MAX)
		all_cnt = free_cnt = 0;
	free_cnt = free_cnt == UINT64_MAX ? 0 : free_cnt;
	free_cnt -= resv_cnt != UINT64_MAX && resv_cnt < free_cnt ? resv_cnt : 0;
	stoup_check_found(line, "%" PRIu64 " pages of 2 MiB are reserved, %" PRIu64 " free%s",
		all_cnt, free_cnt,
		c->backing == STOUP_BACKING_HUGETLB ? "" : " (for --backing hugetlb alone)");
	if (c->backing != STOUP_BACKING_HUGETLB)
		return;
	stoup_check_wanted(line, "%" PRIu64 " free, for --backing hugetlb", want);
	if (free_cnt >= want)
		return;
	line->level = STOUP_CHECK_PROBLEM;
	stoup_check_mend(line, "sysctl vm.nr_hugepages=%" PRIu64 "%s", all_cnt + want - free_cnt,
		c->container[0] ? " on the host" : "");
}

/* The word in brackets of "always [never] deny". */
static void chosen_word(const char *text, char *dst, size_t cap)
{
	const char *from = strchr(text, '['), *to = from ? strchr(from, ']') : NULL;

	if (to)
		snprintf(dst, cap, "%.*s", (int)(to - from - 1), from + 1);
	else
		snprintf(dst, cap, "?");
}

/* Asked by doing it: settings are many, and what counts is that MADV_COLLAPSE goes. */
static void check_thp(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "thp_shmem", STOUP_CHECK_OK);
	struct stoup_region region = {.fd = -1, .ro_fd = -1};
	struct stoup_error err = {0};
	char text[160], word[16];
	int rc, deny;

	stoup_check_read(c, SHMEM_THP, text, sizeof(text));
	chosen_word(text, word, sizeof(word));
	deny = strcmp(word, "deny") == 0;
	stoup_check_wanted(line, "shared memory in 2 MiB pages");
	rc = stoup_region_create(
		&region, STOUP_BACKING_MEMFD, "/stoup-check", 0600, PROBE_LEN, 0, 0, 1, &err);
	if (rc == 0 && region.huge_len > 0 && !deny) {
		stoup_check_found(line, "2 MiB pages are to be had (shmem_enabled: %s)", word);
		stoup_region_fini(&region);
		return;
	}
	line->level = STOUP_CHECK_WARNING;
	stoup_check_found(line,
		"none (shmem_enabled: %s; %.200s): each process needs 2 MiB of page "
		"tables for each GiB of the pool",
		word,
		rc < 0                  ? err.text
		: region.huge_reason[0] ? region.huge_reason
					: "refused");
	if (deny)
		stoup_check_mend(line, "echo never > %s%s", SHMEM_THP,
			c->container[0] ? " on the host" : "");
	else
		stoup_check_mend(line,
			"Linux 6.1 or later with CONFIG_TRANSPARENT_HUGEPAGE, free "
			"memory in one piece (echo 1 > /proc/sys/vm/compact_memory), or "
			"stoupd --backing hugetlb");
	if (rc == 0)
		stoup_region_fini(&region);
}

/* ---- swap, overcommit ------------------------------------------------------------------------- */

static void check_swap(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "swap", STOUP_CHECK_OK);
	uint64_t total = stoup_check_number(c, "/proc/meminfo", "SwapTotal");
	uint64_t eager = stoup_check_number(c, "/proc/sys/vm/swappiness", "");

	if (total == UINT64_MAX || total == 0) {
		stoup_check_found(line, "no swap space");
		return;
	}
	total *= 1024;
	stoup_check_found(line, "%s of swap space, vm.swappiness %d", size(total).text,
		eager == UINT64_MAX ? -1 : (int)eager);
	if (c->mlock || c->backing == STOUP_BACKING_HUGETLB || eager <= 10)
		return;
	line->level = STOUP_CHECK_WARNING;
	stoup_check_wanted(line, "a pool that is not swapped out");
	stoup_check_mend(line, "stoupd --mlock, or sysctl vm.swappiness=10; systemd: "
			       "MemorySwapMax=0");
}

static void check_overcommit(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "overcommit", STOUP_CHECK_OK);
	uint64_t mode = stoup_check_number(c, "/proc/sys/vm/overcommit_memory", "");
	uint64_t limit = stoup_check_number(c, "/proc/meminfo", "CommitLimit");
	uint64_t taken = stoup_check_number(c, "/proc/meminfo", "Committed_AS");
	uint64_t want = daemon_needs(c), left;

	if (mode != 2 || limit == UINT64_MAX || taken == UINT64_MAX) {
		stoup_check_found(line, "vm.overcommit_memory %d: the pool is not refused",
			mode == UINT64_MAX ? -1 : (int)mode);
		return;
	}
	left = limit > taken ? (limit - taken) * 1024 : 0;
	stoup_check_found(line, "vm.overcommit_memory 2 leaves %s", size(left).text);
	stoup_check_wanted(line, "%s", size(want).text);
	if (left >= want)
		return;
	line->level = STOUP_CHECK_PROBLEM;
	stoup_check_mend(line, "sysctl vm.overcommit_memory=0, or a larger vm.overcommit_ratio");
}

void stoup_check_memory(struct stoup_check *c)
{
	check_shm(c);
	check_available(c);
	check_memlock(c);
	check_hugetlb(c);
	check_thp(c);
	check_swap(c);
	check_overcommit(c);
}
