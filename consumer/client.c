/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - options, life and health of one attachment.
 *
 *      attached --state STOPPED, or the socket hung up or closed--> ended (for ever): -EPIPE
 *          \----- no heartbeat for 3 s --process gone-----------> -EPIPE
 *                                       \-else, or not known----> silent: -ETIME, may come back
 *
 * Invariant: `ended` is set once and never reset; leases held stay readable, since the mappings
 * live until stoup_detach.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
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
#define DYING_NS       UINT64_C(50000000)  /* a killed process shows in /proc for a moment */
#define DYING_NAP_NS   2000000

uint64_t stoup_client_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int stoup_client_errno(struct stoup_error *err, const char *what)
{
	struct rlimit limit = {0};
	int code = -errno;

	if (code != -EMFILE)
		return stoup_error_set(err, code, "%s: %s", what, strerror(-code));
	getrlimit(RLIMIT_NOFILE, &limit);
	return stoup_error_set(err, code,
		"%s: too few free descriptors in this process, which may have %llu: close some, or "
		"raise it: ulimit -n",
		what, (unsigned long long)limit.rlim_cur);
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
	int own;

	if (!st)
		return;
	own = !st->own || stoup_client_own(st);
	/* A child of a fork has no page: its mapping was not inherited. */
	if (!own)
		st->page_region.base = NULL;
	stoup_cells_fini(st);
	stoup_snapshot_fini(st);
	stoup_region_fini(&st->page_region);
	stoup_region_fini(&st->data_region);
	stoup_region_fini(&st->control_region);
	/* Closing alone does not hang up while a child of a fork has a copy; and the child's close
	 * must not hang up for us. */
	if (st->sock_fd >= 0 && own)
		shutdown(st->sock_fd, SHUT_RDWR);
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

/* Is the connection over? *ret_lost: our end is closed, by this process and not by us. */
static int hung_up(const struct stoup *st, uint64_t *ret_lost)
{
	struct pollfd p = {.fd = st->sock_fd, .events = POLLRDHUP};

	if (poll(&p, 1, 0) <= 0)
		return 0;
	*ret_lost = (p.revents & POLLNVAL) != 0;
	return (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

int stoup_client_daemon_gone(const struct stoup *st)
{
	/* Not seen when we attached: /proc does not show the daemon here (another PID namespace, or
	 * mounted with hidepid). */
	if (!st->daemon_seen)
		return 0;
	errno = 0;
	if (stoup_control_alive(st->control))
		return 0;
	/* Without a free descriptor /proc tells nothing. */
	return errno != EMFILE && errno != ENFILE;
}

int stoup_client_dead(const struct stoup *st, struct stoup_error *err)
{
	return stoup_error_set(err, -EPIPE,
		"the daemon of pool '%s' (pid %u) is dead: start it again and attach anew",
		st->pool, st->control->daemon_pid);
}

/* The end was seen just now: a killed daemon's sockets close a moment before /proc shows that it is
 * dead. */
static void wait_for_death(const struct stoup *st)
{
	const struct timespec nap = {.tv_nsec = DYING_NAP_NS};
	uint64_t until_ns = atomic_load_explicit(&st->ended, memory_order_relaxed) / 2 + DYING_NS;

	while (!stoup_client_daemon_gone(st) && stoup_client_now() < until_ns)
		nanosleep(&nap, NULL);
}

static int explain_end(const struct stoup *st, struct stoup_error *err)
{
	uint32_t state = atomic_load_explicit(&st->control->state, memory_order_acquire);

	if (state != STOUP_STATE_RUNNING)
		return stoup_error_set(err, -EPIPE,
			"the daemon of pool '%s' was stopped: start it again and attach anew",
			st->pool);
	if (st->daemon_seen)
		wait_for_death(st);
	if (stoup_client_daemon_gone(st))
		return stoup_client_dead(st, err);
	if (atomic_load_explicit(&st->ended, memory_order_relaxed) & 1)
		return stoup_error_set(err, -EPIPE,
			"this process closed the descriptor of its connection to pool '%s': leave "
			"descriptors that are not yours open, and attach anew",
			st->pool);
	return stoup_error_set(err, -EPIPE,
		"the daemon of pool '%s' (pid %u) %s this connection; its log says why, such as "
		"more than %llu bytes leased: attach anew",
		st->pool, st->control->daemon_pid, st->daemon_seen ? "closed" : "died, or closed",
		(unsigned long long)st->lease_bytes_cap);
}

int stoup_client_check(struct stoup *st, int look, struct stoup_error *err)
{
	uint64_t none = 0, lost = 0;

	if (atomic_load_explicit(&st->ended, memory_order_relaxed) == 0) {
		if (atomic_load_explicit(&st->control->state, memory_order_relaxed) ==
				STOUP_STATE_RUNNING &&
			(!look || !hung_up(st, &lost)))
			return 0;
		/* The first one stays: another thread's words may be out already. */
		atomic_compare_exchange_strong_explicit(&st->ended, &none,
			stoup_client_now() * 2 + lost, memory_order_relaxed, memory_order_relaxed);
	}
	return explain_end(st, err);
}

int stoup_client_silent(const struct stoup *st, const char *more, struct stoup_error *err)
{
	uint64_t silent = stoup_client_silence(st, stoup_client_now());

	if (silent <= STOUP_SILENT_NS)
		return 0;
	/* The socket did not tell: its number may be another file's by now. */
	if (stoup_client_daemon_gone(st))
		return stoup_client_dead(st, err);
	return stoup_error_set(err, -ETIME,
		"the daemon of pool '%s' (pid %u) lives but is silent for %.1f s%s", st->pool,
		st->control->daemon_pid, (double)silent / 1e9, more);
}

int stoup_health(struct stoup *st, struct stoup_error *err)
{
	int rc;

	if (!stoup_client_own(st))
		return stoup_client_inherited(err);
	rc = stoup_client_check(st, 1, err);
	return rc < 0 ? rc : stoup_client_silent(st, "", err);
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
