/* SPDX-License-Identifier: Apache-2.0 */
/* tool_watch.c - see tool_watch.h.
 *
 * The superblock is copied first, and only the copy is believed: whoever writes the object can change it between a check
 * and a use. Tables are then read row by row at places that the copy gave and that lie within the mapping.
 */
#include "consumer/tool_watch.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "consumer/tool_watch_private.h"
#include "shm/clock.h"

/* ---- superblock ------------------------------------------------------------------------------- */

static int head_check(const struct stoup_control *head, size_t len)
{
	return head->consumer_cap <= STOUP_CONSUMER_CAP && head->buffer_cap <= STOUP_BUFFER_CAP &&
	       head->volume_cap <= STOUP_VOLUME_CAP && head->error_cap <= STOUP_ERROR_CAP &&
	       head->counter_cnt <= STOUP_WATCH_COUNTER_CAP &&
	       fits(head->consumer_off, head->consumer_cap, sizeof(struct stoup_control_consumer),
		       len) &&
	       fits(head->buffer_off, head->buffer_cap, sizeof(struct stoup_control_buffer), len) &&
	       fits(head->volume_off, head->volume_cap, sizeof(struct stoup_control_volume), len) &&
	       fits(head->counter_off, head->counter_cnt, sizeof(struct stoup_control_counter),
		       len) &&
	       fits(head->error_off, head->error_cap, sizeof(struct stoup_control_error), len);
}

/* A copy of the superblock that was checked. 0 or -EPROTO. */
static int head_read(const struct stoup_control *control, size_t len, struct stoup_control *ret,
	struct stoup_error *err)
{
	if (len < sizeof(*ret))
		return stoup_error_set(
			err, -EPROTO, "the control object has %zu bytes, too few", len);
	memcpy(ret, control, sizeof(*ret));
	/* Nothing below may be read from the shared one again. */
	__asm__ volatile("" : : "r"(ret) : "memory");
	if (LOAD(ret->magic) != STOUP_CONTROL_MAGIC || ret->abi_major != STOUP_ABI_MAJOR ||
		ret->fingerprint != stoup_abi_fingerprint())
		return stoup_error_set(err, -EPROTO, "not a control object of this release");
	if (!head_check(ret, len))
		return stoup_error_set(err, -EPROTO, "the control object is malformed");
	return 0;
}

static void head_show(const struct stoup_control *head, struct stoup_watch *watch)
{
	struct timespec ts;
	int64_t wall_ns;

	clock_gettime(CLOCK_REALTIME, &ts);
	wall_ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	watch->uptime_ns = head->created_ns > 0 && wall_ns > head->created_ns
	                           ? (uint64_t)(wall_ns - head->created_ns)
	                           : 0;
	memcpy(watch->instance, head->instance, sizeof(watch->instance));
	watch->daemon_pid = head->daemon_pid;
	watch->uid = head->uid;
	TEXT(watch->pool_name, head->pool_name);
	TEXT(watch->store_path, head->store_path);
	TEXT(watch->version, head->version);
	TEXT(watch->backing, head->backing);
	TEXT(watch->reader_kind, head->reader_kind);
	TEXT(watch->reader_reason, head->reader_reason);
	TEXT(watch->huge_reason, head->huge_reason);
	TEXT(watch->lock_reason, head->lock_reason);
	TEXT(watch->decode_cpus, head->decode_cpus);
	watch->data_len = head->data_len;
	watch->page_len = head->page_len;
	watch->huge_len = head->huge_len;
	watch->locked_len = head->locked_len;
	watch->lease_bytes_cap = head->lease_bytes_cap;
	watch->pin_bytes_cap = head->pin_bytes_cap;
	watch->ahead_bytes_cap = head->ahead_bytes_cap;
	watch->request_timeout_ns = head->request_timeout_ns;
	watch->spin_ns = head->spin_ns;
	watch->block_len_max = head->block_len_max;
	watch->consumer_cap = head->consumer_cap;
	watch->cell_cap = head->cell_cap;
	watch->request_cap = head->request_cap;
	watch->buffer_cap = head->buffer_cap;
	watch->volume_cap = head->volume_cap;
	watch->decode_threads = head->decode_threads;
	watch->reader_depth = head->reader_depth;
	watch->snapshot_seq = LOAD(head->snapshot_seq);
}

/* ---- state ------------------------------------------------------------------------------------ */

static enum stoup_watch_state state_of(const struct stoup_watch *watch, uint32_t state)
{
	char letter;

	if (state == STOUP_STATE_STOPPED)
		return STOUP_WATCH_STOPPED;
	if (watch->life == 0)
		return STOUP_WATCH_DEAD;
	letter = watch->life == 1 ? stoup_process_letter(watch->daemon_pid) : 0;
	if (letter == 'T' || letter == 't')
		return STOUP_WATCH_SUSPENDED;
	if (state == STOUP_STATE_STARTING)
		return STOUP_WATCH_STARTING;
	return watch->heartbeat_ns > STOUP_WATCH_SILENT_NS ? STOUP_WATCH_SILENT
	                                                   : STOUP_WATCH_RUNNING;
}

/* ---- sums ------------------------------------------------------------------------------------- */

static void sum_up(struct stoup_watch *watch)
{
	struct stoup_watch_sums *sums = &watch->sums;

	for (uint32_t i = 0; i < watch->extent_cnt; i++) {
		const struct stoup_watch_extent *e = &watch->extents[i];

		if (e->state < STOUP_BUFFER_RESIDENT)
			continue;
		sums->resident_blocks++;
		sums->resident_bytes += e->len;
		sums->leases += e->refs;
		sums->leased_bytes += e->refs ? e->len : 0;
	}
	for (uint32_t i = 0; i < watch->consumer_cnt; i++) {
		const struct stoup_watch_consumer *c = &watch->consumers[i];

		sums->hits += c->hit_cnt;
		sums->misses += c->miss_cnt;
		sums->records += c->record_cnt;
		sums->waiting += c->waiting_cnt;
		if (c->oldest_ns > sums->oldest_ns) {
			sums->oldest_ns = c->oldest_ns;
			sums->oldest_pid = c->pid;
		}
	}
}

/* ---- a look ----------------------------------------------------------------------------------- */

void stoup_watch_fini(struct stoup_watch *watch)
{
	free(watch->counters);
	free(watch->consumers);
	free(watch->extents);
	free(watch->volumes);
	free(watch->errors);
	free(watch->histograms);
	free(watch->holders);
	free(watch->quotas);
	memset(watch, 0, sizeof(*watch));
}

static int look(const struct stoup_control *control, size_t len, struct stoup_watch *ret,
	struct stoup_error *err)
{
	static int (*const parts[])(const struct stoup_control *, const struct stoup_control *,
		struct stoup_watch *) = {stoup_watch_counters_read, stoup_watch_consumers_read,
		stoup_watch_extents_read, stoup_watch_volumes_read, stoup_watch_errors_read,
		stoup_watch_histograms_read, stoup_watch_holders_read, stoup_watch_quotas_read};
	struct stoup_control head;
	int rc;

	stoup_watch_fini(ret);
	rc = head_read(control, len, &head, err);
	if (rc < 0)
		return rc;
	ret->taken_ns = stoup_clock_ns();
	ret->mapped_len = len;
	head_show(&head, ret);
	ret->heartbeat_ns = age_ns(ret, LOAD(head.heartbeat_ns));
	ret->life = stoup_control_life(&head);
	ret->state = state_of(ret, LOAD(head.state));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i](control, &head, ret) < 0) {
			stoup_watch_fini(ret);
			return stoup_error_set(err, -ENOMEM, "no memory for what the pool shows");
		}
	sum_up(ret);
	return 0;
}

/* ---- an object that is cut short -------------------------------------------------------------- */

/* The look that this thread is at: whoever may write the object can shorten it at any moment. */
static _Thread_local struct guard {
	const char *base; /* NULL: at none */
	size_t len;
	sigjmp_buf back;
} guard;

static void bus_error(int signo, siginfo_t *info, void *context)
{
	const char *at = info->si_addr;

	(void)context;
	/* A look holds no lock and no unfinished memory where it loads from the object. */
	if (guard.base && at >= guard.base && at < guard.base + guard.len)
		siglongjmp(guard.back, 1);
	/* Not ours: met again, with what it does by itself. */
	signal(signo, SIG_DFL);
}

static void guard_set(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};

	action.sa_sigaction = bus_error;
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

int stoup_watch_read(const struct stoup_control *control, size_t len, struct stoup_watch *ret,
	struct stoup_error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc;

	pthread_once(&once, guard_set);
	if (sigsetjmp(guard.back, 1) == 0) {
		guard.base = (const char *)control;
		guard.len = len;
		rc = look(control, len, ret, err);
	} else {
		stoup_watch_fini(ret);
		rc = stoup_error_set(err, -EPROTO,
			"the control object was cut short by another program: start the daemon again");
	}
	guard.base = NULL;
	return rc;
}
