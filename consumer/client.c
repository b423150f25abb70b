/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - options and life of a handle, and what it did so far.
 *
 *      made --session installed--> attached --stoup_detach--> gone
 *                                    | fork without stoup_fork_*: in the child only detach works
 *
 * Invariant: the mark page holds 1 (or 2) in the process that the handle belongs to and 0 in a
 * child, so that each call can ask without a system call.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include "consumer/client.h"
#include "consumer/stoup_bars.h"
#include "consumer/direct.h"
#include "shm/clock.h"
#include "shm/lease.h"

#ifndef STOUP_VERSION
#define STOUP_VERSION "0.1.0"
#endif

#define TIMEOUT_NS   UINT64_C(30000000000)
#define RECONNECT_NS UINT64_C(30000000000)
#define SPIN_NS      UINT64_C(20000)
#define SPIN_CPUS    3 /* with fewer, who spins takes the processor of whom it waits for */
#define AHEAD_CNT                                                                                  \
	16u /* half of it is asked for at a time: at least 8 reads in flight in a cold scan */

/* Of the structs that grow, the length in the first release (docs/abi.md), and a bound on what a caller may
 * claim. */
#define OPTIONS_FIRST_LEN                                                                          \
	(offsetof(struct stoup_options, reconnect_ns) +                                            \
		sizeof(((struct stoup_options *)NULL)->reconnect_ns))
#define STATS_FIRST_LEN                                                                            \
	(offsetof(struct stoup_stats, direct_alone_cnt) +                                          \
		sizeof(((struct stoup_stats *)NULL)->direct_alone_cnt))
#define STRUCT_LEN_CAP 4096u

uint64_t stoup_client_now(void)
{
	return stoup_clock_ns();
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

size_t stoup_struct_len(const char *name)
{
	static const struct {
		const char *name;
		size_t len;
	} table[] = {
		{"stoup_count", sizeof(struct stoup_count)},
		{"stoup_bar_record", sizeof(struct stoup_bar_record)},
		{"stoup_bar_record_f64", sizeof(struct stoup_bar_record_f64)},
		{"stoup_bars_spec", sizeof(struct stoup_bars_spec)},
		{"stoup_error", sizeof(struct stoup_error)},
		{"stoup_field", sizeof(struct stoup_field)},
		{"stoup_fork", sizeof(struct stoup_fork)},
		{"stoup_held", sizeof(struct stoup_held)},
		{"stoup_instrument", sizeof(struct stoup_instrument)},
		{"stoup_lease", sizeof(struct stoup_lease)},
		{"stoup_message", sizeof(struct stoup_message)},
		{"stoup_message_head", sizeof(struct stoup_message_head)},
		{"stoup_options", sizeof(struct stoup_options)},
		{"stoup_range", sizeof(struct stoup_range)},
		{"stoup_replay_options", sizeof(struct stoup_replay_options)},
		{"stoup_replay_state", sizeof(struct stoup_replay_state)},
		{"stoup_require", sizeof(struct stoup_require)},
		{"stoup_schema", sizeof(struct stoup_schema)},
		{"stoup_series", sizeof(struct stoup_series)},
		{"stoup_span", sizeof(struct stoup_span)},
		{"stoup_stats", sizeof(struct stoup_stats)},
		{"stoup_text_view", sizeof(struct stoup_text_view)},
	};

	for (size_t i = 0; name && i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].name, name) == 0)
			return table[i].len;
	return 0;
}

/* ---- options --------------------------------------------------------------------------------- */

static uint64_t spin_default(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) >= SPIN_CPUS ? SPIN_NS : 0;
}

void stoup_options_init(struct stoup_options *opt)
{
	*opt = (struct stoup_options){
		.struct_len = sizeof(*opt),
		.wait = STOUP_WAIT_SLEEP,
		.spin_ns = spin_default(),
		.ahead_cnt = AHEAD_CNT,
		.reconnect_ns = RECONNECT_NS,
	};
}

/* Take a caller's options: of an older header, whose new fields are 0 here, or of a later one. */
static int options_copy(
	const struct stoup_options *opt, struct stoup_options *read, struct stoup_error *err)
{
	size_t len = opt->struct_len;

	if (len < OPTIONS_FIRST_LEN || len > STRUCT_LEN_CAP)
		return stoup_error_set(err, -EINVAL,
			"options.struct_len is %zu: set it with stoup_options_init", len);
	for (size_t i = sizeof(*read); i < len; i++) {
		if (((const unsigned char *)opt)[i] != 0)
			return stoup_error_set(err, -EINVAL,
				"options has a setting at byte %zu that libstoup %s does not know: use "
				"the library of your header",
				i, STOUP_VERSION);
	}
	memcpy(read, opt, len < sizeof(*read) ? len : sizeof(*read));
	return 0;
}

int stoup_options_read(
	const struct stoup_options *opt, struct stoup_options *ret, struct stoup_error *err)
{
	struct stoup_options read = {0};

	if (opt && options_copy(opt, &read, err) < 0)
		return -EINVAL;
	if (read.wait > STOUP_WAIT_BLOCK ||
		(read.flags & ~(STOUP_NO_RECONNECT | STOUP_POPULATE)) != 0)
		return stoup_error_set(err, -EINVAL,
			"options.wait %u or options.flags %#x is unknown", read.wait, read.flags);
	read.struct_len = sizeof(read);
	if (read.timeout_ns == 0)
		read.timeout_ns = TIMEOUT_NS;
	if (read.timeout_ns > STOUP_TIMEOUT_MAX_NS)
		read.timeout_ns = STOUP_TIMEOUT_MAX_NS;
	if (read.spin_ns == 0)
		read.spin_ns = spin_default();
	if (read.spin_ns > STOUP_TIMEOUT_MAX_NS)
		read.spin_ns = STOUP_TIMEOUT_MAX_NS;
	if (read.ahead_cnt == 0)
		read.ahead_cnt = AHEAD_CNT;
	else if (read.ahead_cnt == UINT32_MAX)
		read.ahead_cnt = 0;
	if (read.ahead_cnt > STOUP_AHEAD_CAP)
		read.ahead_cnt = STOUP_AHEAD_CAP;
	if (read.reconnect_ns == 0)
		read.reconnect_ns = RECONNECT_NS;
	if (read.reconnect_ns > STOUP_TIMEOUT_MAX_NS)
		read.reconnect_ns = STOUP_TIMEOUT_MAX_NS;
	*ret = read;
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The page that tells a child of a fork that it is one. */
static int mark_make(struct stoup *st, struct stoup_error *err)
{
	void *page = mmap(NULL, STOUP_OS_PAGE_LEN, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return stoup_error_set(err, -ENOMEM, "no memory for a page");
	st->own = page;
	stoup_client_mark(st);
	return 0;
}

void stoup_client_mark(struct stoup *st)
{
	st->pid = getpid();
	atomic_store_explicit(st->own,
		madvise((void *)(uintptr_t)st->own, STOUP_OS_PAGE_LEN, MADV_WIPEONFORK) == 0 ? 1
											     : 2,
		memory_order_relaxed);
}

/* What the daemon is found by later, too: the working directory may change. */
static int target_set(struct stoup *st, const char *target, struct stoup_error *err)
{
	char pool[STOUP_POOL_NAME_CAP], real[PATH_MAX];
	int rc;

	st->automatic = strchr(target, '/') != NULL;
	if (st->automatic) {
		rc = stoup_auto_name(target, pool, sizeof(pool), real, err);
		if (rc < 0)
			return rc;
		target = real;
	}
	st->target = strdup(target);
	return st->target ? 0 : stoup_error_set(err, -ENOMEM, "no memory to attach");
}

int stoup_client_make(const char *target, const struct stoup_options *opt, struct stoup **ret,
	struct stoup_error *err)
{
	struct stoup *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return stoup_error_set(err, -ENOMEM, "no memory to attach");
	st->opt = *opt;
	st->opt.daemon = NULL;
	st->hold_free = STOUP_CELL_NONE;
	pthread_mutex_init(&st->mutex, NULL);
	pthread_mutex_init(&st->question, NULL);
	rc = target_set(st, target, err);
	if (rc == 0)
		rc = mark_make(st, err);
	if (rc == 0 && opt->daemon && !(st->opt.daemon = strdup(opt->daemon)))
		rc = stoup_error_set(err, -ENOMEM, "no memory to attach");
	if (rc < 0) {
		stoup_client_destroy(st);
		return rc;
	}
	*ret = st;
	return 0;
}

void stoup_client_destroy(struct stoup *st)
{
	if (!st)
		return;
	stoup_fork_auto_fini(st);
	while (st->sessions) {
		struct stoup_session *ses = st->sessions;

		st->sessions = ses->next;
		stoup_session_destroy(ses);
	}
	stoup_direct_fini(st);
	stoup_registry_fini(st);
	if (st->own)
		munmap((void *)(uintptr_t)st->own, STOUP_OS_PAGE_LEN);
	free(st->holds);
	free(st->target);
	free((void *)(uintptr_t)st->opt.daemon);
	pthread_mutex_destroy(&st->mutex);
	pthread_mutex_destroy(&st->question);
	free(st);
}

int stoup_detach(struct stoup *st)
{
	int busy;

	if (!st)
		return 0;
	if (stoup_client_own(st)) {
		pthread_mutex_lock(&st->mutex);
		busy = !stoup_client_idle(st);
		pthread_mutex_unlock(&st->mutex);
		if (busy)
			return -EBUSY;
	}
	stoup_client_destroy(st);
	return 0;
}

int stoup_leave(struct stoup *st)
{
	int idle;

	if (!st)
		return 0;
	if (!stoup_client_own(st)) {
		/* A child without leases: its mutex may be one that another thread of the parent had. */
		idle = stoup_client_idle(st);
	} else {
		pthread_mutex_lock(&st->mutex);
		idle = stoup_client_idle(st);
		st->leaving = 1;
		pthread_mutex_unlock(&st->mutex);
	}
	if (idle)
		stoup_client_destroy(st);
	return idle ? 0 : 1;
}

int64_t stoup_use_cnt(struct stoup *st)
{
	int64_t cnt;

	if (!stoup_client_own(st))
		return stoup_client_refused(st, NULL);
	pthread_mutex_lock(&st->mutex);
	cnt = (int64_t)st->cursor_cnt + st->hold_cnt;
	pthread_mutex_unlock(&st->mutex);
	return cnt;
}

int stoup_client_refused(const struct stoup *st, struct stoup_error *err)
{
	if (!st)
		return stoup_error_set(err, -EINVAL,
			"no attachment was given: NULL, or an object that was moved from");
	return stoup_error_set(err, -ECHILD,
		"this attachment belongs to the parent process: after fork, call stoup_attach in "
		"the child, or prepare the fork with stoup_fork_prepare");
}

/* ---- what it did ----------------------------------------------------------------------------- */

/* Under the mutex. */
static void stats_add(struct stoup_session *ses, struct stoup_stats *stats)
{
	const struct stoup_page *page = ses->page;
	uint32_t high;

	if (!page)
		return;
	stats->hit_cnt += atomic_load_explicit(&page->hit_cnt, memory_order_relaxed);
	stats->miss_cnt += atomic_load_explicit(&page->miss_cnt, memory_order_relaxed);
	stats->timeout_cnt += atomic_load_explicit(&page->timeout_cnt, memory_order_relaxed);
	stats->wait_ns += atomic_load_explicit(&page->wait_ns, memory_order_relaxed);
	stats->record_cnt += atomic_load_explicit(&page->record_cnt, memory_order_relaxed);
	stats->doorbell_cnt += atomic_load_explicit(&page->doorbell_cnt, memory_order_relaxed);
	high = stoup_cell_high(page, ses->cell_cap);
	for (uint32_t i = 0; i < high; i++) {
		uint64_t word = stoup_cell_read(&page->cells[i]);

		if (!stoup_cell_leased(word) || stoup_word_idx(word) >= ses->control->buffer_cap)
			continue;
		stats->lease_cnt++;
		stats->leased_bytes += atomic_load_explicit(
			&ses->buffers[stoup_word_idx(word)].len, memory_order_relaxed);
	}
}

int stoup_stats(struct stoup *st, struct stoup_stats *ret)
{
	struct stoup_stats stats;
	size_t len = ret ? ret->struct_len : 0;

	if (len < STATS_FIRST_LEN || len > STRUCT_LEN_CAP)
		return -EINVAL;
	if (!stoup_client_own(st))
		return stoup_client_refused(st, NULL);
	pthread_mutex_lock(&st->mutex);
	stats = st->past;
	for (struct stoup_session *ses = st->sessions; ses; ses = ses->next)
		stats_add(ses, &stats);
	pthread_mutex_unlock(&st->mutex);
	stats.direct_cnt = atomic_load_explicit(&st->direct_cnt, memory_order_relaxed);
	stats.direct_alone_cnt = atomic_load_explicit(&st->direct_alone_cnt, memory_order_relaxed);
	stats.record_cnt += atomic_load_explicit(&st->direct_record_cnt, memory_order_relaxed);
	/* As much as the caller's header has; what a later one has besides is zero. */
	stats.struct_len = len;
	if (len > sizeof(stats))
		memset((char *)ret + sizeof(stats), 0, len - sizeof(stats));
	memcpy(ret, &stats, len < sizeof(stats) ? len : sizeof(stats));
	return 0;
}
