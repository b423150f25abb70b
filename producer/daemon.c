/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - start and stop of stoupd: lock, stores, memory, threads, socket, announcement.
 *
 *      lock --> stale names away --> stores --> control, data reserved and touched --> reader, workers
 *           --> catalogs --> socket --> announce (magic last) --> conductor --> STOPPED, names away
 *
 * If it dies before the announcement: nothing was promised; the names go with the next start under the
 * lock. If it dies later: the control object stays as a witness, everything else is unnamed.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "producer/chores.h"
#include "producer/cpu_list.h"
#include "producer/memory.h"
#include "producer/takeover.h"
#include "shm/alive.h"
#include "shm/format.h"

#ifndef STOUP_VERSION
#define STOUP_VERSION "0.1.0"
#endif

#define POOL_LEN_DEFAULT                                                                           \
	(UINT64_C(512) << 20) /* when --size is not given; the automatic daemon: 128 MiB */
#define POOL_LEN_AUTO  (UINT64_C(128) << 20)
#define POOL_LEN_MIN   (UINT64_C(64) << 10) /* sixteen pages: below that nothing of use fits */
#define EXTENT_TYPICAL (UINT64_C(32) << 10) /* buffers are planned for pools of extents this long */
#define HUGE_LEN       (UINT64_C(2) << 20)
#define BLOCK_LEN_USUAL                                                                            \
	(512u << 10) /* that ingest makes by default: what a rescan brings is served */

/* Descriptors: one per volume and its catalog, three per consumer. The soft limit is a default for
 * programs that use select; the hard one is what the administrator meant. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static const char *const backing_words[] = {"posix", "memfd", "hugetlb"};

/* ---- memory ----------------------------------------------------------------------------------- */

static int size_pool(struct stoup_daemon *d, uint64_t *ret, struct stoup_error *err)
{
	uint64_t cap = d->opt.automatic ? POOL_LEN_AUTO : POOL_LEN_DEFAULT;
	uint64_t len = d->opt.pool_len;
	uint64_t least = POOL_LEN_MIN;

	if (len == 0) {
		/* Room for everything and a free reserve, or the default; never below what serves at all. */
		len = stoup_volumes_raw_len(d);
		len += len / 16;
		if (len > cap)
			len = cap;
		if (len < (uint64_t)d->block_len_max * 8)
			len = (uint64_t)d->block_len_max * 8;
		/* What is ingested later, as by default, shall not find the pool too small. */
		if (len < (uint64_t)BLOCK_LEN_USUAL * 8)
			len = (uint64_t)BLOCK_LEN_USUAL * 8;
		len = (len + HUGE_LEN - 1) & ~(HUGE_LEN - 1);
	}
	len = (len + STOUP_OS_PAGE_LEN - 1) & ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
	/* A store without volumes, or with none that can be served, is served all the same: empty. */
	if (len < least && d->opt.pool_len == 0)
		len = least;
	if (len < least)
		return stoup_error_set(err, -EINVAL,
			"--size %llu is too small: at least %llu bytes", (unsigned long long)len,
			(unsigned long long)least);
	/* Some blocks too large are refused one by one; a pool that can serve none at all is a mistake. */
	if (d->block_len_min > len / STOUP_POOL_PART)
		return stoup_error_set(err, -EINVAL,
			"--size %llu is too small for this store: its blocks decode to %u bytes and more, and a block may "
			"fill a quarter of the pool; mend: --size %llu or more",
			(unsigned long long)len, d->block_len_min,
			(unsigned long long)d->block_len_max * STOUP_POOL_PART);
	*ret = len;
	return 0;
}

static uint32_t core_cnt(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

/* Who may read the control object by its name: the monitors' group, else the pool's. All others that are
 * admitted get it from the socket, as do these where the group can not be given. */
static void share_control(const struct stoup_daemon *d)
{
	const struct stoup_access_list *look = &d->opt.access.monitor;
	gid_t gid = look->gid_cnt > 0 ? (gid_t)look->gids[0] : d->group_gid;

	if (gid == (gid_t)-1)
		return;
	if (fchown(d->control_region.fd, (uid_t)-1, gid) < 0 ||
		fchmod(d->control_region.fd, 0640) < 0)
		stoup_log_info(d,
			"the control object could not be given to group %u (%s): its members are "
			"served by the socket",
			(unsigned int)gid, strerror(errno));
}

static int make_control(struct stoup_daemon *d, struct stoup_error *err)
{
	struct stoup_control_config config = {.consumer_cap = d->opt.consumer_cap,
		.cell_cap = d->opt.cell_cap,
		.buffer_cap = d->buffer_cap,
		.volume_cap = d->volume_cap};
	int rc;

	/* Always POSIX and named: monitors must find it when the daemon hangs or is dead. */
	rc = stoup_region_create(&d->control_region, STOUP_BACKING_POSIX, d->control_name, 0600,
		stoup_control_footprint(&config), 0, 1, 1, err);
	if (rc == -ENOSPC && d->opt.backing != STOUP_BACKING_POSIX)
		return stoup_error_set(err, rc,
			"/dev/shm is too small for the control object, which lies there whatever "
			"the --backing: needed %zu bytes; mend: free some of it (ls -l /dev/shm), "
			"or mount -o remount,size=64M /dev/shm (container: --shm-size=64m)",
			stoup_control_footprint(&config));
	if (rc < 0)
		return rc;
	share_control(d);
	rc = stoup_control_lock(d->control_region.fd);
	if (rc < 0)
		return stoup_error_set(err, rc, "locking the control object: %s", strerror(-rc));
	d->control = d->control_region.base;
	stoup_control_format(d->control, &config);
	d->control->daemon_pid = (uint32_t)getpid();
	d->control->daemon_start = stoup_process_start((uint32_t)getpid());
	d->control->pid_ns = stoup_pid_ns();
	/* Where the kernel has no such list, consumers ask their sockets instead. */
	(void)stoup_alive_own(&d->control->alive);
	d->counters = stoup_control_counters(d->control);
	d->histograms = stoup_control_histograms(d->control);
	d->table = stoup_control_buffers(d->control);
	return 0;
}

static void copy_tail(char *dst, size_t cap, const char *src)
{
	size_t len = strlen(src);

	snprintf(dst, cap, "%s", len < cap ? src : src + len - (cap - 1));
}

/* Everything of the superblock that never changes; the magic comes with the announcement. */
static void fill_control(struct stoup_daemon *d)
{
	struct stoup_control *c = d->control;
	uint64_t share = d->data_region.len / 4, least;
	int whole = stoup_volumes_raw_len(d) <= d->data_region.len;
	struct timespec ts;

	while (getrandom(c->instance, sizeof(c->instance), 0) != (ssize_t)sizeof(c->instance))
		;
	clock_gettime(CLOCK_REALTIME, &ts);
	c->created_ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	c->uid = (uint32_t)d->uid;
	c->data_len = d->data_region.len;
	c->block_len_max = (uint32_t)(d->data_region.len / STOUP_POOL_PART < UINT32_MAX
					      ? d->data_region.len / STOUP_POOL_PART
					      : UINT32_MAX);
	/* Where the pool holds everything, nobody's lease is in anybody's way. */
	if (whole)
		share = d->data_region.len;
	if (d->opt.lease_bytes_cap)
		share = d->opt.lease_bytes_cap;
	/* At least one of the longest blocks that are served, or nothing could be read. */
	least = d->block_len_max < c->block_len_max ? d->block_len_max : c->block_len_max;
	c->lease_bytes_cap = share > least ? share : least;
	c->ahead_bytes_cap = d->data_region.len / STOUP_RING_UNREAD_PART;
	c->request_timeout_ns = d->opt.request_timeout_ns;
	c->request_cap = d->opt.request_cap;
	c->page_len = d->opt.backing == STOUP_BACKING_HUGETLB ? HUGE_LEN : STOUP_OS_PAGE_LEN;
	c->huge_len = d->data_region.huge_len;
	snprintf(c->huge_reason, sizeof(c->huge_reason), "%s", d->data_region.huge_reason);
	snprintf(c->pool_name, sizeof(c->pool_name), "%s", d->opt.pool);
	copy_tail(
		c->store_path, sizeof(c->store_path), d->opt.store_cnt ? d->opt.store_path[0] : "");
	snprintf(c->backing, sizeof(c->backing), "%s", backing_words[d->opt.backing]);
	snprintf(c->version, sizeof(c->version), "%s", STOUP_VERSION);
}

/* Huge pages are set aside already; for all else the kernel would kill a process instead of failing. */
static int check_memory(const struct stoup_daemon *d, uint64_t len, struct stoup_error *err)
{
	uint64_t available;
	char what[128];

	available = stoup_memory_available(what, sizeof(what));
	if (d->opt.backing == STOUP_BACKING_HUGETLB || len <= available)
		return 0;
	return stoup_error_set(err, -ENOMEM,
		"not enough memory: needed %llu bytes, %s has %llu available; mend: a smaller --size, or "
		"raise the memory limit of the container or cgroup",
		(unsigned long long)len, what, (unsigned long long)available);
}

static int make_data(struct stoup_daemon *d, struct stoup_takeover *takeover, uint64_t len,
	struct stoup_error *err)
{
	char name[128];
	int rc;

	snprintf(name, sizeof(name), "/stoup.%u.%s.data", (unsigned int)d->uid, d->opt.pool);
	for (;;) {
		rc = stoup_region_create(
			&d->data_region, d->opt.backing, name, 0600, len, 1, 1, core_cnt(), err);
		if (rc != -ENOSPC)
			return rc;
		rc = stoup_takeover_wait(takeover, d, len, rc, err);
		if (rc < 0)
			return rc;
	}
}

static int lock_memory(struct stoup_daemon *d, struct stoup_error *err)
{
	struct stoup_control *c = d->control;
	int huge = d->opt.backing == STOUP_BACKING_HUGETLB, rc;
	uint64_t all = d->control_region.len + (huge ? 0 : d->data_region.len);

	rc = stoup_memory_lock(c, d->control_region.len, all, err);
	if (rc == 0 && !huge)
		rc = stoup_memory_lock(d->data_region.base, d->data_region.len, all, err);
	if (rc < 0)
		return rc;
	c->locked_len = d->control_region.len + d->data_region.len;
	snprintf(c->lock_reason, sizeof(c->lock_reason), "%s",
		huge ? "huge pages are never swapped out" : "");
	return 0;
}

static int make_memory(struct stoup_daemon *d, struct stoup_error *err)
{
	struct stoup_takeover takeover;
	uint64_t len = 0, cnt;
	int rc;

	rc = size_pool(d, &len, err);
	if (rc < 0)
		return rc;
	stoup_takeover_begin(&takeover, d->opt.takeover_ns);
	while ((rc = check_memory(d, len, err)) < 0) {
		rc = stoup_takeover_wait(&takeover, d, len, rc, err);
		if (rc < 0)
			return rc;
	}
	cnt = len / EXTENT_TYPICAL;
	d->buffer_cap = (uint32_t)(cnt < 64 ? 64 : cnt > STOUP_BUFFER_CAP ? STOUP_BUFFER_CAP : cnt);
	stoup_log_info(d, "reserving %llu bytes of memory (%s)", (unsigned long long)len,
		backing_words[d->opt.backing]);
	rc = make_control(d, err);
	if (rc < 0)
		return rc;
	STOUP_HOOK("start.control");
	rc = make_data(d, &takeover, len, err);
	if (rc < 0)
		return rc;
	fill_control(d);
	stoup_quotas_init(d);
	rc = stoup_pins_init(d, err);
	if (rc < 0)
		return rc;
	return d->opt.mlock ? lock_memory(d, err) : 0;
}

static int make_tables(struct stoup_daemon *d, struct stoup_error *err)
{
	uint32_t waiter_cap = d->opt.consumer_cap * STOUP_SLOT_CNT;
	struct stoup_ring_config config = {.region_len = d->data_region.len,
		.largest_len = d->block_len_max ? d->block_len_max : STOUP_OS_PAGE_LEN,
		.buffer_cap = d->buffer_cap,
		.reserve_len = UINT64_MAX,
		.next_use = stoup_evict_next_use,
		.next_use_arg = d};
	int rc;

	/* Blocks too large for this pool are refused one by one; the ring never sees them. */
	if (config.largest_len > d->control->block_len_max)
		config.largest_len = d->control->block_len_max;
	/* A queued demand has a waiter, a queued read-ahead a place in its queue, the rest is in flight. */
	d->load_cap = waiter_cap + STOUP_AHEAD_QUEUE_CAP + STOUP_READER_DEPTH_CAP;
	d->buffers = calloc(d->buffer_cap, sizeof(d->buffers[0]));
	d->refs = calloc(d->buffer_cap, sizeof(d->refs[0]));
	d->leased = calloc(d->buffer_cap, sizeof(d->leased[0]));
	d->draining = calloc(d->buffer_cap, sizeof(d->draining[0]));
	d->consumers = calloc(d->opt.consumer_cap, sizeof(d->consumers[0]));
	d->loads = calloc(d->load_cap, sizeof(d->loads[0]));
	d->waiters = calloc(waiter_cap, sizeof(d->waiters[0]));
	if (!d->buffers || !d->refs || !d->leased || !d->draining || !d->consumers || !d->loads ||
		!d->waiters)
		return stoup_error_set(err, -ENOMEM, "out of memory for the tables of the pool");
	for (uint32_t i = 0; i < d->buffer_cap; i++)
		d->buffers[i].gen = d->opt.gen_first ? d->opt.gen_first : 1;
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		d->consumers[i].seen = calloc(d->opt.cell_cap, sizeof(d->consumers[i].seen[0]));
		d->consumers[i].since_ns =
			calloc(d->opt.cell_cap, sizeof(d->consumers[i].since_ns[0]));
		if (!d->consumers[i].seen || !d->consumers[i].since_ns)
			return stoup_error_set(
				err, -ENOMEM, "out of memory for the tables of the pool");
	}
	rc = stoup_chores_create(d->opt.consumer_cap, d->control->daemon_pid, &d->closer);
	if (rc == 0)
		rc = stoup_chores_create(d->opt.consumer_cap, d->control->daemon_pid, &d->looker);
	if (rc < 0)
		return stoup_error_set(err, rc, "a thread could not be started: %s", strerror(-rc));
	rc = stoup_ring_create(&config, &d->ring);
	if (rc < 0)
		return stoup_error_set(err, rc, "the ring could not be made: %s", strerror(-rc));
	stoup_requests_init(d);
	return 0;
}

/* ---- threads and reading ---------------------------------------------------------------------- */

/* A slot holds the longest stored block that is there, and what later ingests make by default (a
 * stored block is no longer than a decoded one). Staging can not grow: io_uring knows its memory. */
static size_t stored_len_max(const struct stoup_daemon *d)
{
	size_t max = d->control->block_len_max < BLOCK_LEN_USUAL ? d->control->block_len_max
	                                                         : BLOCK_LEN_USUAL;

	for (uint32_t i = 0; i < d->opt.store_cnt; i++)
		for (uint32_t v = 0; v < d->stores[i]->volume_cnt; v++) {
			const struct stoup_vol_index *index = d->stores[i]->volumes[v]->index;

			for (uint32_t b = 0; b < index->block_cnt; b++)
				if (index->blocks[b].stored_len > max)
					max = index->blocks[b].stored_len;
		}
	return max;
}

/* The processors of pinned workers are theirs: this thread, and those that it starts from now on, keep off them
 * where there are others. The scheduler wakes the conductor where it ran last, also beside an idle processor, and a
 * worker that it runs over stands still. */
static void leave_to_workers(const struct stoup_daemon *d)
{
	cpu_set_t set;

	if (d->opt.cpu_cnt == 0 || sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (uint32_t i = 0; i < d->opt.cpu_cnt; i++)
		CPU_CLR(d->opt.cpus[i], &set);
	if (CPU_COUNT(&set) > 0)
		(void)sched_setaffinity(0, sizeof(set), &set);
}

static int make_engines(struct stoup_daemon *d, struct stoup_error *err)
{
	uint32_t depth = d->opt.reader.depth ? d->opt.reader.depth : STOUP_READER_DEPTH_DEFAULT;
	struct stoup_staging_options staging = {
		.slot_cnt = depth, .stored_len_cap = stored_len_max(d)};
	struct stoup_decode_options decode = {.thread_cnt = d->opt.decode_threads,
		.job_cap = depth + 1,
		.cpu_cnt = d->opt.cpu_cnt,
		.cpus = d->opt.cpus};
	int rc;

	if (d->opt.cpu_cnt > 0) {
		if (decode.thread_cnt == 0)
			decode.thread_cnt = d->opt.cpu_cnt;
		/* Processors of their own: they may spin as the conductor does. */
		decode.spin_ns = d->opt.spin_ns < STOUP_DECODE_SPIN_CAP_NS
		                         ? (uint32_t)d->opt.spin_ns
		                         : STOUP_DECODE_SPIN_CAP_NS;
	}
	rc = stoup_staging_create(&staging, &d->staging, err);
	if (rc < 0)
		return rc;
	d->opt.reader.depth = depth;
	d->opt.reader.staging = d->staging;
	d->opt.reader.file_cap = d->volume_cap;
	rc = stoup_decode_create(&decode, &d->decode, err);
	if (rc < 0)
		return rc;
	leave_to_workers(d);
	rc = stoup_reader_create(&d->opt.reader, &d->reader, err);
	if (rc < 0)
		return rc;
	d->control->decode_threads = stoup_decode_thread_cnt(d->decode);
	d->control->spin_ns = d->opt.spin_ns;
	stoup_cpu_list_text(d->opt.cpus, d->opt.cpu_cnt, d->control->decode_cpus,
		sizeof(d->control->decode_cpus));
	d->control->reader_depth = stoup_reader_depth(d->reader);
	return 0;
}

static void describe_reader(struct stoup_daemon *d)
{
	struct stoup_control *c = d->control;
	const char *direct = stoup_reader_direct_reason(d->reader);

	snprintf(c->reader_kind, sizeof(c->reader_kind), "%s", stoup_reader_kind(d->reader));
	snprintf(c->reader_reason, sizeof(c->reader_reason), "%s%s%s",
		stoup_reader_reason(d->reader), direct[0] ? "; buffered reads: " : "", direct);
}

static int make_loop(struct stoup_daemon *d, struct stoup_error *err)
{
	sigset_t set;
	int rc;

	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll_fd < 0)
		return stoup_error_set(err, -errno, "epoll: %s", strerror(errno));
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signal_fd < 0)
		return stoup_error_set(err, -errno, "signalfd: %s", strerror(errno));
	rc = stoup_epoll_add(d, d->signal_fd, EPOLLIN, STOUP_TAG(STOUP_TAG_SIGNAL, 0));
	if (rc == 0)
		rc = stoup_epoll_add(d, stoup_reader_poll_fd(d->reader), EPOLLIN,
			STOUP_TAG(STOUP_TAG_READER, 0));
	if (rc == 0)
		rc = stoup_epoll_add(d, stoup_decode_poll_fd(d->decode), EPOLLIN | EPOLLET,
			STOUP_TAG(STOUP_TAG_DECODE, 0));
	return rc < 0 ? stoup_error_set(err, rc, "epoll: %s", strerror(-rc)) : 0;
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int start(struct stoup_daemon *d, struct stoup_error *err)
{
	uint32_t owner;
	int rc;

	raise_file_limit();
	rc = stoup_name_paths(d, err);

	if (rc == 0)
		rc = stoup_name_group(d, err);
	if (rc == 0)
		rc = stoup_name_lock(d, err);
	if (rc < 0)
		return rc;
	stoup_access_describe(d);
	STOUP_HOOK("start.locked");
	stoup_control_name((uint32_t)d->uid, d->opt.pool, d->control_name, sizeof(d->control_name));
	owner = stoup_control_owner(d->control_name);
	if (owner) {
		d->control_name[0] = 0;
		rc = stoup_name_held(d, owner == STOUP_OWNER_UNSEEN ? 0 : owner, err);
		/* In another runtime directory: whoever waits for it here would wait in vain. */
		d->held = 0;
		return rc;
	}
	/* Only the owner of the lock may do this: what lies there is of a daemon that was killed. */
	stoup_pins_look_back(d);
	stoup_region_unlink_stale((uint32_t)d->uid, d->opt.pool);
	rc = stoup_volumes_open(d, err);
	if (rc == 0)
		rc = make_memory(d, err);
	if (rc == 0)
		rc = make_tables(d, err);
	if (rc == 0)
		rc = make_engines(d, err);
	if (rc == 0)
		rc = stoup_volumes_make(d, err);
	if (rc == 0)
		rc = make_loop(d, err);
	if (rc == 0)
		rc = stoup_attach_listen(d, err);
	if (rc < 0)
		return rc;
	STOUP_HOOK("start.bound");
	describe_reader(d);
	d->now_ns = stoup_now_ns();
	stoup_rescan_watch(d);
	stoup_publish(d);
	stoup_control_announce(d->control); /* [A1] */
	STOUP_HOOK("start.announced");
	return 0;
}

static void stop(struct stoup_daemon *d)
{
	if (d->control) {
		atomic_store_explicit(
			&d->control->state, STOUP_STATE_STOPPED, memory_order_release);
		STOUP_HOOK("stop.marked");
		stoup_name_unlink(d);
		STOUP_HOOK("stop.unlinked");
	}
	stoup_rescan_fini(d);
	stoup_reader_destroy(d->reader);
	stoup_decode_destroy(d->decode);
	stoup_attach_fini(d);
	stoup_chores_destroy(d->closer);
	stoup_chores_destroy(d->looker);
	stoup_staging_destroy(d->staging);
	stoup_pins_fini(d);
	stoup_volumes_fini(d);
	stoup_ring_destroy(d->ring);
	for (uint32_t i = 0; d->consumers && i < d->opt.consumer_cap; i++) {
		free(d->consumers[i].seen);
		free(d->consumers[i].since_ns);
	}
	free(d->consumers);
	free(d->buffers);
	free(d->refs);
	free(d->leased);
	free(d->draining);
	free(d->loads);
	free(d->waiters);
	stoup_region_fini(&d->data_region);
	stoup_region_fini(&d->control_region);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
	if (d->signal_fd >= 0)
		close(d->signal_fd);
	/* While the name is ours no other directory may have its number. */
	if (d->home_fd >= 0)
		close(d->home_fd);
	/* The lock file stays: unlinking it would let two daemons lock two files of one name. */
	if (d->lock_fd >= 0)
		close(d->lock_fd);
}

static void tell_ready(const struct stoup_daemon *d, int rc, const struct stoup_error *err)
{
	const char *text = rc < 0 ? err->text : "ready\n";

	if (d->opt.ready_fd < 0)
		return;
	/* Whoever starts the automatic daemon waits for the one that holds the name, instead of failing. */
	if (d->held && write(d->opt.ready_fd, "held\n", 5) < 0)
		return;
	if (write(d->opt.ready_fd, text, strlen(text)) < 0)
		stoup_log_info(d, "telling readiness: %s", strerror(errno));
	close(d->opt.ready_fd);
}

static void tell_manager(struct stoup_daemon *d)
{
	char status[160];

	snprintf(status, sizeof(status), "pool %s: %u volume%s, %llu MiB, reads by %s", d->opt.pool,
		d->volume_cnt, STOUP_PLURAL(d->volume_cnt),
		(unsigned long long)(d->data_region.len >> 20), d->control->reader_kind);
	stoup_service_ready(&d->service, status);
}

/* Whatever it was that found no descriptor: the limit is what mends it. */
static void explain_files(int rc, struct stoup_error *err)
{
	struct stoup_error found = *err;
	struct rlimit limit = {0};

	if (rc != -EMFILE || strstr(found.text, "ulimit"))
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	stoup_error_set(err, rc, "%.120s; the daemon may have %llu; mend: raise it: ulimit -n",
		found.text, (unsigned long long)limit.rlim_cur);
}

int stoup_daemon_run(const struct stoup_daemon_options *opt, struct stoup_error *err)
{
	struct stoup_error own = {0};
	struct stoup_daemon *d = calloc(1, sizeof(*d));
	sigset_t set;
	int rc;

	if (!d)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	d->opt = *opt;
	d->log = &d->log_own;
	stoup_log_init(d->log, d->opt.pool,
		d->opt.log_level == STOUP_LOG_DEFAULT && d->opt.quiet ? STOUP_LOG_WARNING
								      : d->opt.log_level);
	d->service.fd = -1;
	/* That of the program which started an automatic daemon is not ours to tell. */
	rc = d->opt.automatic ? 0 : stoup_service_init(&d->service);
	if (rc < 0)
		stoup_log_error(
			d, rc, "NOTIFY_SOCKET: %s: the service manager is not told", strerror(-rc));
	d->uid = geteuid();
	d->lock_fd = d->home_fd = d->spare_fd = d->listen_fd = d->epoll_fd = d->signal_fd =
		d->watch_fd = -1;
	d->control_region.fd = d->control_region.ro_fd = -1;
	d->data_region.fd = d->data_region.ro_fd = -1;
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++)
		d->pending[i].fd = -1;
	/* All threads inherit this; the conductor reads signals from its descriptor. */
	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGBUS);
	sigdelset(&set, SIGABRT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	rc = start(d, &own);
	explain_files(rc, &own);
	tell_ready(d, rc, &own);
	if (rc < 0)
		stoup_service_failed(&d->service, rc, own.text);
	if (rc == 0 && d->opt.spin_ns > 0 && core_cnt() < 3)
		stoup_log_info(d,
			"--spin with %u processor%s: while the conductor polls, decode workers and consumers wait for the "
			"rest; it is made for a processor of its own",
			core_cnt(), STOUP_PLURAL(core_cnt()));
	if (rc == 0) {
		stoup_log_info(d,
			"serving %u volume%s from a pool of %llu bytes (%s, %llu in huge pages), "
			"reads by %s",
			d->volume_cnt, STOUP_PLURAL(d->volume_cnt),
			(unsigned long long)d->data_region.len, d->control->backing,
			(unsigned long long)d->control->huge_len, d->control->reader_kind);
		tell_manager(d);
		stoup_conductor_run(d);
	}
	stop(d);
	stoup_service_fini(&d->service);
	free(d);
	if (rc < 0)
		return stoup_error_set(err, rc, "%s", own.text);
	return 0;
}
