/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - what is left: leases, extents, descriptors, mappings, names, bytes, processes.
 *
 * While everybody is parked the numbers are exact: the daemon has three descriptors and one mapping more
 * per consumer than it had without any, a worker those that it had at the first checkpoint, and every
 * byte of the pool is in an extent or free. At the end all processes have ended, so that memory can be
 * left under a name alone; the bytes in use in /dev/shm are the proof where it is this run's own.
 */
#include "storm/storm.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define FDS_PER_CONSUMER 3u                    /* socket, pidfd, doorbell */
#define SETTLE_NS        UINT64_C(15000000000) /* leases copied for a child that died wait 10 s */

uint64_t storm_counter(const struct storm *s, const char *name)
{
	const struct stoup_control *control = s->daemon.control;
	const struct stoup_control_counter *counters = stoup_control_counters(control);

	for (uint32_t i = 0; i < control->counter_cnt; i++)
		if (strcmp(counters[i].name, name) == 0)
			return atomic_load_explicit(&counters[i].value, memory_order_relaxed);
	return UINT64_MAX;
}

void storm_look_process(pid_t pid, uint32_t *ret_fd_cnt, uint32_t *ret_map_cnt)
{
	char path[64], line[512];
	DIR *dir;
	FILE *maps;

	*ret_fd_cnt = *ret_map_cnt = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		++*ret_fd_cnt;
	if (dir)
		closedir(dir);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		*ret_map_cnt += strstr(line, "/dev/shm/stoup.") || strstr(line, "/memfd:stoup.");
	if (maps)
		fclose(maps);
}

uint64_t storm_pool_bytes(const struct storm *s)
{
	const struct stoup_control *control = s->daemon.control;
	const struct stoup_control_buffer *buffers = stoup_control_buffers(control);
	uint64_t bytes = storm_counter(s, "free_bytes");

	for (uint32_t i = 0; i < control->buffer_cap; i++) {
		uint64_t len = atomic_load_explicit(&buffers[i].len, memory_order_relaxed);

		if (atomic_load_explicit(&buffers[i].state, memory_order_acquire) ==
			STOUP_BUFFER_RESIDENT)
			bytes += (len + STOUP_OS_PAGE_LEN - 1) & ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
	}
	return bytes;
}

uint64_t storm_shmem(void)
{
	FILE *info = fopen("/proc/meminfo", "re");
	char line[128];
	uint64_t kib = 0;

	while (info && fgets(line, sizeof(line), info))
		if (sscanf(line, "Shmem: %" SCNu64, &kib) == 1)
			break;
	if (info)
		fclose(info);
	return kib * 1024;
}

double storm_busy_s(void)
{
	uint64_t user = 0, nice = 0, system = 0, idle, wait, irq = 0, soft = 0;
	FILE *stat = fopen("/proc/stat", "re");
	int cnt = 0;

	if (stat)
		cnt = fscanf(stat,
			"cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			" %" SCNu64,
			&user, &nice, &system, &idle, &wait, &irq, &soft);
	if (stat)
		fclose(stat);
	return cnt == 7 ? (double)(user + nice + system + irq + soft) / (double)sysconf(_SC_CLK_TCK)
	                : 0;
}

uint64_t storm_shm_used(void)
{
	struct statvfs fs;

	return statvfs("/dev/shm", &fs) == 0 ? (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize
	                                     : 0;
}

uint32_t storm_shm_names(const struct storm *s)
{
	char prefix[96];
	struct dirent *entry;
	DIR *dir = opendir("/dev/shm");
	uint32_t cnt = 0;

	snprintf(prefix, sizeof(prefix), "stoup.%u.%s.", (unsigned)getuid(), s->opt.pool);
	while (dir && (entry = readdir(dir)))
		cnt += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	if (dir)
		closedir(dir);
	return cnt;
}

/* ---- at a checkpoint -------------------------------------------------------------------------- */

static int settled(const struct storm *s)
{
	if (s->daemon.state != STORM_UP || !s->daemon.control)
		return 0;
	return storm_counter(s, "leases") == 0 && storm_counter(s, "leased_bytes") == 0 &&
	       storm_counter(s, "consumers") == s->opt.worker_cnt &&
	       storm_pool_bytes(s) == s->daemon.control->data_len;
}

static void look_consumers(struct storm *s)
{
	const struct stoup_control *control = s->daemon.control;
	const struct stoup_control_consumer *entry = stoup_control_consumers(control);
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < control->consumer_cap; i++) {
		uint32_t leases = atomic_load_explicit(&entry[i].lease_cnt, memory_order_relaxed);

		if (atomic_load_explicit(&entry[i].state, memory_order_acquire) ==
			STOUP_CONSUMER_NONE)
			continue;
		cnt++;
		s->leaked_leases += leases;
		if (leases)
			storm_fail(s, "consumer %u holds %u leases while parked",
				atomic_load_explicit(&entry[i].pid, memory_order_relaxed), leases);
	}
	if (cnt != s->opt.worker_cnt)
		storm_fail(s, "%u consumers while %u workers are parked", cnt, s->opt.worker_cnt);
}

static void look_workers(struct storm *s)
{
	for (uint32_t i = 0; i < s->opt.worker_cnt; i++) {
		struct storm_process *w = &s->workers[i];
		uint32_t fds, maps;

		storm_look_process(w->pid, &fds, &maps);
		if (w->fd_cnt == 0) {
			w->fd_cnt = fds;
			w->map_cnt = maps;
		}
		if (fds > w->fd_cnt || (maps > w->map_cnt && s->opt.soak_s <= 0))
			storm_fail(s,
				"worker %u has %u descriptors and %u mappings; it had %u and %u", i,
				fds, maps, w->fd_cnt, w->map_cnt);
	}
}

void storm_look_parked(struct storm *s)
{
	uint64_t until_ns = storm_clock() + SETTLE_NS;
	uint32_t fds, maps, names;

	while (!settled(s) && storm_clock() < until_ns)
		storm_turn(s);
	if (!settled(s)) {
		s->leaked_leases += (uint32_t)storm_counter(s, "leases");
		storm_fail(s,
			"parked, and %" PRIu64 " leases on %" PRIu64 " bytes, %" PRIu64
			" consumers, %" PRIu64 " of %" PRIu64 " bytes of the pool accounted for",
			storm_counter(s, "leases"), storm_counter(s, "leased_bytes"),
			storm_counter(s, "consumers"), storm_pool_bytes(s),
			s->daemon.control->data_len);
	}
	look_consumers(s);
	look_workers(s);
	storm_look_process(s->daemon.pid, &fds, &maps);
	if (s->opt.soak_s <= 0 && (fds != s->daemon_fd_cnt + FDS_PER_CONSUMER * s->opt.worker_cnt ||
					  maps != s->daemon_map_cnt + s->opt.worker_cnt))
		storm_fail(s,
			"the daemon has %u descriptors and %u mappings for %u consumers; without any "
			"it had %u and %u",
			fds, maps, s->opt.worker_cnt, s->daemon_fd_cnt, s->daemon_map_cnt);
	names = storm_shm_names(s);
	if (names != 1)
		storm_fail(s,
			"%u names in /dev/shm beside a running daemon, 1 is its control object",
			names);
	if (s->opt.own_shm && s->opt.soak_s <= 0 && storm_shm_used() != s->shm_used)
		storm_fail(s,
			"%" PRIu64 " bytes in use in /dev/shm; with the first daemon alone it was "
			"%" PRIu64,
			storm_shm_used(), s->shm_used);
}

/* ---- at the end ------------------------------------------------------------------------------- */

void storm_look_end(struct storm *s)
{
	int status;

	/* Children of victims, which came to us when those died. */
	while (waitpid(-1, &status, WNOHANG) > 0)
		;
	for (int i = 0; i < 200 && waitpid(-1, &status, WNOHANG) >= 0; i++)
		usleep(1000);
	s->processes_left = waitpid(-1, &status, WNOHANG) == 0;
	s->names_left = storm_shm_names(s);
	s->bytes_left = s->opt.own_shm ? storm_shm_used() : 0;
	if (s->processes_left || s->names_left || s->bytes_left)
		storm_fail(s,
			"left at the end: %u processes, %u names and %" PRIu64 " bytes in /dev/shm",
			s->processes_left, s->names_left, s->bytes_left);
}
