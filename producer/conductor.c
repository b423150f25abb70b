/* SPDX-License-Identifier: Apache-2.0 */
/* conductor.c - the loop of the one thread that decides.
 *
 *      take requests, reap reads and decodes, start loads --moved?--> again
 *                                      | nothing
 *      spin, where it was asked for (--spin)       --found?--> again
 *                                      | nothing
 *      asleep = 1 [S1] (starving = 1 [R1]), fence, last look --found?--> again
 *                                      | nothing
 *      epoll_wait --> asleep = 0, starving = 0 --> events
 *
 * Whatever wakes the conductor, it looks at everything: a doorbell says only that there is something.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "shm/futex.h"
#include "shm/lease.h"

#define EVENT_CAP    64
#define TICK_NS      UINT64_C(200000000) /* publish: lease counts are right well within a second */
#define TICK_IDLE_NS UINT64_C(500000000) /* without consumers: the heartbeat alone */
#define STARVE_MS    10                  /* longest sleep while somebody waits for a release */
#define AHEAD_BATCH  4u                  /* blocks read ahead that wake the conductor once */
#define SPIN_LOOKS   16u                 /* at shared words, between two looks at the clock */
#define SPIN_POLL_NS UINT64_C(5000)      /* a spinning conductor asks the kernel that often */

static int work(struct stoup_daemon *d)
{
	uint32_t cnt = stoup_requests_take(d);

	cnt += stoup_loads_reap(d);
	cnt += (uint32_t)stoup_quota_pump(d);
	return stoup_loads_pump(d) || cnt > 0;
}

void stoup_daemon_end(struct stoup_daemon *d, const char *why)
{
	if (d->stopping)
		return;
	stoup_log_info(d, "%s: stopping", why);
	stoup_service_stopping(&d->service);
	d->stopping = 1;
	d->stop_by_ns = d->now_ns + STOUP_STOP_NS;
	/* Consumers see this at their next call or within a wait slice. */
	atomic_store_explicit(&d->control->state, STOUP_STATE_STOPPED, memory_order_release);
	stoup_requests_fail_all(d, -ESHUTDOWN);
}

static void signal_event(struct stoup_daemon *d)
{
	struct signalfd_siginfo info;

	while (read(d->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			stoup_service_reloading(&d->service, d->now_ns);
			stoup_rescan_ask(d);
		} else {
			stoup_daemon_end(d, info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
		}
	}
}

static void events(struct stoup_daemon *d, const struct epoll_event *event, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		uint64_t tag = event[i].data.u64;

		if (tag >> 32 == STOUP_TAG_SIGNAL)
			signal_event(d);
		else if (tag >> 32 == STOUP_TAG_WATCH)
			stoup_rescan_event(d);
		else
			stoup_attach_event(d, tag, event[i].events);
	}
}

static void tick(struct stoup_daemon *d)
{
	uint32_t cnt = stoup_attach_cnt(d);

	stoup_publish(d);
	stoup_attach_tick(d);
	stoup_name_tick(d);
	stoup_rescan_tick(d);
	if (d->rescan_due_ns == 0)
		stoup_service_reloaded(&d->service);
	stoup_service_tick(&d->service, d->now_ns);
	stoup_log_tick(d->log, d->now_ns);
	d->tick_ns = d->now_ns + stoup_service_wait(&d->service, cnt > 0 ? TICK_NS : TICK_IDLE_NS);
	if (d->rescan_due_ns > 0 && d->rescan_due_ns < d->tick_ns)
		d->tick_ns = d->rescan_due_ns;
	if (cnt > 0)
		d->idle_since_ns = 0;
	else if (d->idle_since_ns == 0)
		d->idle_since_ns = d->now_ns;
	/* The automatic daemon ends a while after its last consumer. */
	if (d->opt.automatic && d->idle_since_ns &&
		d->now_ns - d->idle_since_ns >= d->opt.linger_ns)
		stoup_daemon_end(d, "no consumer any more");
}

/* Does somebody wait that another one releases, for room in the pool or in a quota? */
static int waits_for_release(const struct stoup_daemon *d)
{
	return d->starving || d->quota_first != STOUP_IDX_NONE;
}

/* The last look. 1 = there is something after all. */
static int last_look(struct stoup_daemon *d)
{
	stoup_flag_raise(&d->control->asleep); /* [S1] */
	if (stoup_requests_pending(d) || stoup_reader_ready(d->reader) > 0 ||
		stoup_decode_sleep(d->decode, d->waiter_cnt > 0 ? 1 : AHEAD_BATCH))
		return 1;
	/* What drains for another reason than a claim is in nobody's way: the tick's look will do, and no
	 * release has to ring. */
	if (!waits_for_release(d) && !stoup_ring_claim_active(d->ring))
		return 0;
	/* [R1] A lease released before the flag was seen is found by this scan; one released after it
	 * rings. */
	stoup_flag_raise(&d->control->starving);
	stoup_evict_scan(d);
	return stoup_quota_pump(d) | stoup_loads_pump(d);
}

static int timeout_ms(const struct stoup_daemon *d)
{
	uint64_t left = d->tick_ns > d->now_ns ? d->tick_ns - d->now_ns : 0;

	if (waits_for_release(d) && left > STARVE_MS * UINT64_C(1000000))
		return STARVE_MS;
	return (int)((left + 999999) / 1000000);
}

static void sleep_turn(struct stoup_daemon *d)
{
	struct epoll_event event[EVENT_CAP];
	int cnt = 0;

	if (!last_look(d))
		cnt = epoll_wait(d->epoll_fd, event, EVENT_CAP, timeout_ms(d));
	stoup_flag_lower(&d->control->asleep);
	stoup_flag_lower(&d->control->starving);
	stoup_decode_awake(d->decode);
	d->now_ns = stoup_now_ns();
	stoup_counter_add(d, STOUP_COUNTER_WAKEUPS, 1);
	events(d, event, cnt);
}

/* Nothing moved: poll until --spin has passed since something did. `asleep` stays down, so that who asks makes no
 * system call. 1 = there is something. Releases are not looked at: a starving conductor sleeps. */
static int spin(struct stoup_daemon *d)
{
	uint64_t until_ns = d->moved_ns + d->opt.spin_ns, poll_ns = d->now_ns;
	struct epoll_event event[EVENT_CAP];
	int cnt;

	if (until_ns > d->tick_ns)
		until_ns = d->tick_ns;
	while (d->now_ns < until_ns && !waits_for_release(d)) {
		for (uint32_t i = 0; i < SPIN_LOOKS; i++) {
			if (stoup_requests_pending(d) || stoup_reader_ready(d->reader) > 0 ||
				stoup_decode_ready(d->decode))
				return 1;
			stoup_cpu_relax();
		}
		d->now_ns = stoup_now_ns();
		if (d->now_ns - poll_ns < SPIN_POLL_NS)
			continue;
		poll_ns = d->now_ns;
		cnt = epoll_wait(d->epoll_fd, event, EVENT_CAP, 0);
		events(d, event, cnt);
		if (cnt > 0)
			return 1;
	}
	return 0;
}

void stoup_conductor_run(struct stoup_daemon *d)
{
	/* What is in flight is finished, so that no thread or kernel writes into memory that goes away;
	 * leases are not waited for: their holders keep the mapping. */
	while (!(d->stopping && (d->in_flight == 0 || d->now_ns > d->stop_by_ns))) {
		int moved;

		d->now_ns = stoup_now_ns();
		moved = work(d);
		if (d->starving)
			stoup_requests_expire(d);
		if (d->now_ns >= d->tick_ns)
			tick(d);
		if (moved)
			d->moved_ns = d->now_ns;
		else if (d->opt.spin_ns == 0 || !spin(d))
			sleep_turn(d);
		if (!moved)
			continue;
		/* Busy turns must still see sockets, deaths and signals. */
		struct epoll_event event[EVENT_CAP];
		int cnt = epoll_wait(d->epoll_fd, event, EVENT_CAP, 0);

		events(d, event, cnt);
	}
}
