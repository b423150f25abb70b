/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - available memory: of the machine and of the cgroups; locked memory. */
#include "producer/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

uint64_t stoup_memory_number(const char *path, const char *key)
{
	uint64_t value = UINT64_MAX;
	char line[256];
	FILE *file = fopen(path, "re");

	if (!file)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), file)) {
		const char *at = line + strlen(key);
		char *end;

		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		at += strspn(at, " \t:");
		value = strtoull(at, &end, 10);
		if (end == at)
			value = UINT64_MAX;
		break;
	}
	fclose(file);
	return value;
}

/* What one cgroup leaves: its limit, less what it uses and can not give back. */
static uint64_t left_in(const char *dir, const char *limit_name, const char *usage_name)
{
	char path[2 * PATH_MAX + 64];
	uint64_t limit, usage, cold, warm;

	snprintf(path, sizeof(path), "%s/%s", dir, limit_name);
	limit = stoup_memory_number(path, "");
	/* Version 1 writes "no limit" as a number near 2^63. */
	if (limit > UINT64_C(1) << 60)
		return UINT64_MAX;
	snprintf(path, sizeof(path), "%s/%s", dir, usage_name);
	usage = stoup_memory_number(path, "");
	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	cold = stoup_memory_number(
		path, strstr(limit_name, "max") ? "inactive_file" : "total_inactive_file");
	warm = stoup_memory_number(
		path, strstr(limit_name, "max") ? "active_file" : "total_active_file");
	if (usage == UINT64_MAX)
		return UINT64_MAX;
	usage -= cold != UINT64_MAX && cold < usage ? cold : 0;
	usage -= warm != UINT64_MAX && warm < usage ? warm : 0;
	return limit > usage ? limit - usage : 0;
}

/* The least that the cgroups from `group` up to the root leave. */
static void walk(const char *root, const char *group, const char *limit_name,
	const char *usage_name, uint64_t *best, char *what, uint32_t what_cap)
{
	char at[PATH_MAX], dir[2 * PATH_MAX];
	char *slash;

	snprintf(at, sizeof(at), "%s", group);
	for (;;) {
		uint64_t left;

		snprintf(dir, sizeof(dir), "%s%s", root, at);
		left = left_in(dir, limit_name, usage_name);
		if (left < *best) {
			*best = left;
			snprintf(what, what_cap, "cgroup %.80s", at[0] ? at : "/");
		}
		slash = strrchr(at, '/');
		if (!slash)
			return;
		*slash = 0;
	}
}

uint64_t stoup_memory_available_in(const char *root, char *what, uint32_t what_cap)
{
	char line[PATH_MAX + 128], path[PATH_MAX];
	uint64_t best;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	best = stoup_memory_number(path, "MemAvailable");

	snprintf(what, what_cap, "the machine");
	if (best != UINT64_MAX)
		best *= 1024;
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *group = strrchr(line, ':');

		if (!group)
			continue;
		line[strcspn(line, "\n")] = 0;
		group++;
		snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s", root,
			strstr(line, ":memory:") ? "/memory" : "");
		if (strncmp(line, "0::", 3) == 0)
			walk(path, group, "memory.max", "memory.current", &best, what, what_cap);
		else if (strstr(line, ":memory:"))
			walk(path, group, "memory.limit_in_bytes", "memory.usage_in_bytes", &best,
				what, what_cap);
	}
	if (file)
		fclose(file);
	return best;
}

uint64_t stoup_memory_available(char *what, uint32_t what_cap)
{
	return stoup_memory_available_in("", what, what_cap);
}

int stoup_memory_lock(void *base, uint64_t len, uint64_t all_len, struct stoup_error *err)
{
	struct rlimit limit;
	int rc;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &limit);
	}
	if (mlock(base, len) == 0)
		return 0;
	rc = -errno;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur >= all_len)
		return stoup_error_set(err, rc,
			"--mlock of %llu bytes: %s; mend: a smaller --size, or no --mlock",
			(unsigned long long)all_len, strerror(-rc));
	return stoup_error_set(err, rc,
		"--mlock: needed %llu bytes, available %llu (RLIMIT_MEMLOCK); mend: ulimit -l %llu (systemd: "
		"LimitMEMLOCK=%llu), or no --mlock",
		(unsigned long long)all_len, (unsigned long long)limit.rlim_cur,
		(unsigned long long)(all_len / 1024 + 64), (unsigned long long)(all_len + 65536));
}
