/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - options, life and health of one attachment.
 *
 *      attached --state STOPPED, or the socket hung up--> ended (for ever): -EPIPE
 *          \----- no heartbeat for 3 s -----------------> silent: -ETIME, may come back
 *
 * Invariant: `ended` is set once and never reset; leases held stay readable, since the mappings
 * live until stoup_detach.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "consumer/client.h"
#include "shm/lease.h"

#ifndef STOUP_VERSION
#define STOUP_VERSION "0.1.0"
#endif

#define TIMEOUT_NS UINT64_C(30000000000)
#define SPIN_NS    UINT64_C(20000)
#define AHEAD_CNT                                                                                  \
	16u /* half of it is asked for at a time: at least 8 reads in flight in a cold scan */
#define TIMEOUT_MAX_NS (UINT64_C(1) << 60) /* 36 years: sums with the clock stay in 64 bits */

uint64_t stoup_client_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

const char *stoup_version(void)
{
	return STOUP_VERSION;
}

/* ---- options --------------------------------------------------------------------------------- */

void stoup_options_init(struct stoup_options *opt)
{
	*opt = (struct stoup_options){
		.struct_len = sizeof(*opt),
		.wait = STOUP_WAIT_SLEEP,
		.timeout_ns = TIMEOUT_NS,
		.spin_ns = SPIN_NS,
		.ahead_cnt = AHEAD_CNT,
	};
}

int stoup_options_read(
	const struct stoup_options *opt, struct stoup_options *ret, struct stoup_error *err)
{
	struct stoup_options read = {0};
	size_t len = opt ? opt->struct_len : 0;

	/* The first version's length is the least; a program of a later header may bring more. */
	if (opt && len < sizeof(read))
		return stoup_error_set(err, -EINVAL,
			"options.struct_len is %zu: set it with stoup_options_init", len);
	if (opt)
		read = *opt;
	if (read.wait > STOUP_WAIT_SPIN || read.flags != 0)
		return stoup_error_set(err, -EINVAL,
			"options.wait %u or options.flags %#x is unknown", read.wait, read.flags);
	read.struct_len = sizeof(read);
	if (read.timeout_ns == 0)
		read.timeout_ns = TIMEOUT_NS;
	if (read.timeout_ns > TIMEOUT_MAX_NS)
		read.timeout_ns = TIMEOUT_MAX_NS;
	if (read.spin_ns == 0)
		read.spin_ns = SPIN_NS;
	if (read.spin_ns > TIMEOUT_MAX_NS)
		read.spin_ns = TIMEOUT_MAX_NS;
	if (read.ahead_cnt == 0)
		read.ahead_cnt = AHEAD_CNT;
	else if (read.ahead_cnt == UINT32_MAX)
		read.ahead_cnt = 0;
	if (read.ahead_cnt > STOUP_AHEAD_CAP)
		read.ahead_cnt = STOUP_AHEAD_CAP;
	*ret = read;
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

void stoup_client_destroy(struct stoup *st)
{
	if (!st)
		return;
	/* A child of a fork has no page: its mapping was not inherited. */
	if (st->own && !stoup_client_own(st))
		st->page_region.base = NULL;
	stoup_cells_fini(st);
	stoup_snapshot_fini(st);
	stoup_region_fini(&st->page_region);
	stoup_region_fini(&st->data_region);
	stoup_region_fini(&st->control_region);
	if (st->sock_fd >= 0)
		close(st->sock_fd);
	if (st->bell_fd >= 0)
		close(st->bell_fd);
	if (st->own)
		munmap((void *)(uintptr_t)st->own, STOUP_OS_PAGE_LEN);
	free(st->listing);
	pthread_mutex_destroy(&st->mutex);
	free(st);
}

int stoup_detach(struct stoup *st)
{
	int busy;

	if (!st)
		return 0;
	if (stoup_client_own(st)) {
		pthread_mutex_lock(&st->mutex);
		busy = st->cursor_cnt > 0 || st->hold_cnt > 0;
		pthread_mutex_unlock(&st->mutex);
		if (busy)
			return -EBUSY;
		/* Release, for the conductor's acquire load: all our reads of the pool come before.
		 * The hang-up makes the daemon look; a page that says DETACHED needs no proof of
		 * death. */
		atomic_store_explicit(&st->page->state, STOUP_PAGE_DETACHED, memory_order_release);
	}
	stoup_client_destroy(st);
	return 0;
}

int stoup_client_inherited(struct stoup_error *err)
{
	return stoup_error_set(err, -ECHILD,
		"this attachment belongs to the parent process: after fork, call stoup_attach in "
		"the child");
}

/* ---- health ---------------------------------------------------------------------------------- */

uint64_t stoup_client_silence(const struct stoup *st, uint64_t now_ns)
{
	uint64_t beat = atomic_load_explicit(&st->control->heartbeat_ns, memory_order_relaxed);

	return now_ns > beat ? now_ns - beat : 0;
}

static int hung_up(const struct stoup *st)
{
	struct pollfd p = {.fd = st->sock_fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static int explain_end(const struct stoup *st, struct stoup_error *err)
{
	uint32_t state = atomic_load_explicit(&st->control->state, memory_order_acquire);

	if (state != STOUP_STATE_RUNNING)
		return stoup_error_set(err, -EPIPE,
			"the daemon of pool '%s' was stopped: start it again and attach anew",
			st->pool);
	if (stoup_control_alive(st->control))
		return stoup_error_set(err, -EPIPE,
			"the daemon of pool '%s' (pid %u) closed this connection; its log says "
			"why, such as more "
			"than %llu bytes leased: attach anew",
			st->pool, st->control->daemon_pid, (unsigned long long)st->lease_bytes_cap);
	return stoup_error_set(err, -EPIPE,
		"the daemon of pool '%s' (pid %u) is dead: start it again and attach anew",
		st->pool, st->control->daemon_pid);
}

int stoup_client_check(struct stoup *st, int look, struct stoup_error *err)
{
	if (atomic_load_explicit(&st->ended, memory_order_relaxed) == 0) {
		if (atomic_load_explicit(&st->control->state, memory_order_relaxed) ==
				STOUP_STATE_RUNNING &&
			(!look || !hung_up(st)))
			return 0;
		atomic_store_explicit(&st->ended, -EPIPE, memory_order_relaxed);
	}
	return explain_end(st, err);
}

int stoup_health(struct stoup *st, struct stoup_error *err)
{
	uint64_t silent;
	int rc;

	if (!stoup_client_own(st))
		return stoup_client_inherited(err);
	rc = stoup_client_check(st, 1, err);
	if (rc < 0)
		return rc;
	silent = stoup_client_silence(st, stoup_client_now());
	if (silent > STOUP_SILENT_NS)
		return stoup_error_set(err, -ETIME,
			"the daemon of pool '%s' (pid %u) lives but is silent for %.1f s", st->pool,
			st->control->daemon_pid, (double)silent / 1e9);
	return 0;
}

int stoup_stats(struct stoup *st, struct stoup_stats *ret)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	const struct stoup_page *page = st->page;
	uint32_t high;

	if (ret->struct_len < sizeof(stats))
		return -EINVAL;
	if (!stoup_client_own(st))
		return -ECHILD;
	stats.hit_cnt = atomic_load_explicit(&page->hit_cnt, memory_order_relaxed);
	stats.miss_cnt = atomic_load_explicit(&page->miss_cnt, memory_order_relaxed);
	stats.timeout_cnt = atomic_load_explicit(&page->timeout_cnt, memory_order_relaxed);
	stats.wait_ns = atomic_load_explicit(&page->wait_ns, memory_order_relaxed);
	stats.record_cnt = atomic_load_explicit(&page->record_cnt, memory_order_relaxed);
	stats.doorbell_cnt = atomic_load_explicit(&page->doorbell_cnt, memory_order_relaxed);
	high = stoup_cell_high(page, st->cell_cap);
	for (uint32_t i = 0; i < high; i++) {
		uint64_t word = stoup_cell_read(&page->cells[i]);

		if (!stoup_cell_leased(word) || stoup_word_idx(word) >= st->control->buffer_cap)
			continue;
		stats.lease_cnt++;
		stats.leased_bytes += atomic_load_explicit(
			&st->buffers[stoup_word_idx(word)].len, memory_order_relaxed);
	}
	*ret = stats;
	return 0;
}
