/* SPDX-License-Identifier: Apache-2.0 */
/* life.c - the places of consumers: their pages, whose process it is, and how each of them ends.
 *
 *      NONE --place, join, answer, enter--> ATTACHED --page says DETACHED, or its process is gone--> dropped
 *       |                                      |                                                      ^
 *       |                                      +--hang-up, process lives--> DEAF --map shows no page--+
 *       +--leases copied--> TICKET --join, answer, enter--> ATTACHED                                  |
 *                              +--given up, nobody came, the daemon stops ----------------------------+
 *
 * Death is what the kernel says (pidfd), never a pid that was looked up later. A hang-up of a living
 * process frees nothing by itself: it may have closed its descriptors and still read the bytes. Where no
 * pidfd is to be had, its own hang-up has to do; so when we end the talk, our half of the connection is
 * closed alone, and the other half still tells of its end.
 *
 * Invariant: a place with a page is looked at by every scan, whatever its state; with the page go all
 * cells at once.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "producer/chores.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define DEAF_LOOK_NS     UINT64_C(250000000) /* how often a deaf consumer's memory map is read */
#define DEAF_WAIT_CAP_NS UINT64_C(4000000000)
#define PLACES_KEPT_PART 16u                  /* of the places: kept for users who have few */
#define OVER_LOOK_NS     UINT64_C(1000000000) /* two looks a second apart above the share: dropped */

/* May `uid` take one more place? No user shuts all others out: the last places are not for one who has
 * more than half of all. The pool's owner and root are not kept short in their own house. */
static int place_fair(const struct stoup_daemon *d, uint32_t uid, struct stoup_error *err)
{
	uint32_t kept = d->opt.consumer_cap / PLACES_KEPT_PART, taken = 0, own = 0;

	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		taken += d->consumers[i].state != STOUP_CONSUMER_NONE;
		own += d->consumers[i].state != STOUP_CONSUMER_NONE && d->consumers[i].uid == uid;
	}
	if (uid == 0 || uid == d->uid || taken < d->opt.consumer_cap - kept ||
		own <= d->opt.consumer_cap / 2)
		return 0;
	return stoup_error_set(err, -EUSERS,
		"pool '%s' keeps the last %u of its %u places for others than uid %u, who has %u; mend: stoupd "
		"--consumers N (at most %u)",
		d->opt.pool, kept, d->opt.consumer_cap, uid, own, STOUP_CONSUMER_CAP);
}

int stoup_consumer_find_place(
	struct stoup_daemon *d, uint32_t uid, uint32_t *ret, struct stoup_error *err)
{
	int rc = place_fair(d, uid, err);

	for (uint32_t i = 0; rc == 0 && i < d->opt.consumer_cap; i++)
		if (d->consumers[i].state == STOUP_CONSUMER_NONE) {
			*ret = i;
			return 0;
		}
	stoup_counter_add(d, STOUP_COUNTER_LIMIT_CONSUMERS, 1);
	if (rc < 0)
		return rc;
	return stoup_error_set(err, -EUSERS,
		"pool '%s' has its %u consumers already; mend: stoupd --consumers N (at "
		"most %u)",
		d->opt.pool, d->opt.consumer_cap, STOUP_CONSUMER_CAP);
}

/* ---- begin ------------------------------------------------------------------------------------ */

int stoup_consumer_place(struct stoup_daemon *d, uint32_t idx, struct stoup_error *err)
{
	struct stoup_consumer *c = &d->consumers[idx];
	uint64_t *seen = c->seen, *since_ns = c->since_ns;
	char label[64];
	int rc;

	memset(c, 0, sizeof(*c));
	c->seen = seen;
	c->since_ns = since_ns;
	memset(seen, 0, d->opt.cell_cap * sizeof(seen[0]));
	memset(since_ns, 0, d->opt.cell_cap * sizeof(since_ns[0]));
	c->page.fd = c->page.ro_fd = c->sock_fd = c->pid_fd = c->bell_fd = -1;
	c->quota = STOUP_IDX_NONE;
	c->attach_no = ++d->attach_seq;
	c->attach_ns = d->now_ns;
	/* The label is how a memory map tells whether the page is still there. */
	snprintf(label, sizeof(label), "stoup.page.%u.%llu", d->control->daemon_pid,
		(unsigned long long)c->attach_no);
	rc = stoup_region_create_page(&c->page, label, stoup_page_total(d->opt.cell_cap), err);
	if (rc == 0)
		stoup_page_format(
			c->page.base, d->control->instance, c->attach_no, idx, d->opt.cell_cap);
	return rc;
}

/* A descriptor of the peer's process, or a negative errno: only hang-up will tell. */
static int pidfd_of(int sock_fd, pid_t pid)
{
	socklen_t len = sizeof(int);
	uint64_t start;
	int fd;

	/* First rung: the kernel's own answer for this very socket. */
	if (getsockopt(sock_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
	/* Second: by number, and the same process before and after. */
	start = stoup_process_start((uint32_t)pid);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	if (start == 0 || stoup_process_start((uint32_t)pid) != start) {
		close(fd);
		return -ESRCH;
	}
	return fd;
}

/* Stop watching a descriptor and close it: another process may hold a copy, so that closing alone would
 * leave it in the epoll set. */
static void watch_end(struct stoup_daemon *d, int *fd)
{
	if (*fd < 0)
		return;
	epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	close(*fd);
	*fd = -1;
}

/* The same for a socket, in which its peer may have left what is slow to close. */
static void socket_end(struct stoup_daemon *d, int *fd)
{
	if (*fd < 0)
		return;
	epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	stoup_chores_close(d->closer, *fd);
	*fd = -1;
}

int stoup_consumer_join(struct stoup_daemon *d, uint32_t idx, int sock_fd, const struct ucred *cred,
	struct stoup_error *err)
{
	struct stoup_consumer *c = &d->consumers[idx];
	int rc;

	c->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->bell_fd < 0)
		return stoup_error_set(err, -errno, "eventfd: %s", strerror(errno));
	c->pid_fd = pidfd_of(sock_fd, cred->pid);
	/* A want of descriptors passes: it must not leave a consumer whose hang-up alone ends its leases. */
	if (c->pid_fd == -EMFILE || c->pid_fd == -ENFILE) {
		rc = c->pid_fd;
		stoup_consumer_part(d, idx);
		return stoup_error_set(err, rc, "pidfd_open: %s", strerror(-rc));
	}
	c->sock_fd = sock_fd;
	rc = stoup_epoll_add(d, sock_fd, EPOLLIN | EPOLLRDHUP, STOUP_TAG(STOUP_TAG_SOCKET, idx));
	if (rc == 0)
		rc = stoup_epoll_add(
			d, c->bell_fd, EPOLLIN | EPOLLET, STOUP_TAG(STOUP_TAG_BELL, idx));
	if (rc == 0 && c->pid_fd >= 0)
		rc = stoup_epoll_add(d, c->pid_fd, EPOLLIN, STOUP_TAG(STOUP_TAG_PID, idx));
	if (rc < 0) {
		stoup_consumer_part(d, idx);
		return stoup_error_set(err, rc, "epoll: %s", strerror(-rc));
	}
	return 0;
}

void stoup_consumer_part(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];

	watch_end(d, &c->bell_fd);
	watch_end(d, &c->pid_fd);
	if (c->sock_fd >= 0)
		epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, c->sock_fd, NULL);
	c->sock_fd = -1;
}

static void comm_of(uint32_t pid, uint64_t ret[2])
{
	char path[64], text[16] = {0};
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < len; i++)
		if (text[i] == '\n')
			text[i] = 0;
	memcpy(ret, text, sizeof(text));
}

void stoup_consumer_show(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_control_consumer *entry = &stoup_control_consumers(d->control)[idx];
	const struct stoup_consumer *c = &d->consumers[idx];
	uint64_t comm[2];

	comm_of(c->pid, comm);
	atomic_store_explicit(&entry->pid, c->pid, memory_order_relaxed);
	atomic_store_explicit(&entry->uid, c->uid, memory_order_relaxed);
	atomic_store_explicit(&entry->attach_no, c->attach_no, memory_order_relaxed);
	atomic_store_explicit(&entry->attach_ns, c->attach_ns, memory_order_relaxed);
	atomic_store_explicit(&entry->comm[0], comm[0], memory_order_relaxed);
	atomic_store_explicit(&entry->comm[1], comm[1], memory_order_relaxed);
	atomic_store_explicit(&entry->state, c->state, memory_order_release);
	stoup_gauge(d, STOUP_COUNTER_CONSUMERS, stoup_attach_cnt(d));
	d->tick_ns = d->now_ns; /* seen at once */
}

void stoup_consumer_enter(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];

	/* The mapping stays; the consumer has the only descriptor. */
	close(c->page.fd);
	c->page.fd = -1;
	c->state = STOUP_CONSUMER_ATTACHED;
	stoup_counter_add(d, STOUP_COUNTER_ATTACHES, 1);
	stoup_consumer_show(d, idx);
	stoup_log_debug(d, "consumer %u attached: process %u of user %u", idx, c->pid, c->uid);
}

/* ---- end -------------------------------------------------------------------------------------- */

void stoup_consumer_drop(struct stoup_daemon *d, uint32_t idx, enum stoup_counter why)
{
	struct stoup_consumer *c = &d->consumers[idx];
	struct stoup_control_consumer *entry = &stoup_control_consumers(d->control)[idx];

	if (c->state == STOUP_CONSUMER_NONE)
		return;
	stoup_log_debug(d, "consumer %u left (%s): process %u of user %u", idx,
		d->counters[why].name, c->pid, c->uid);
	stoup_evict_look(d, idx);
	stoup_publish_refused(d, idx);
	stoup_publish_past(d, idx);
	/* With the page go all its cells at once; its waiters carry attach_no and find it gone. */
	stoup_region_fini(&c->page);
	STOUP_HOOK("drop.page");
	stoup_requests_forget(d, idx);
	socket_end(d, &c->sock_fd);
	watch_end(d, &c->pid_fd);
	watch_end(d, &c->bell_fd);
	c->state = STOUP_CONSUMER_NONE;
	c->lease_cnt = 0;
	c->leased_bytes = 0;
	c->attach_no = 0;
	c->fork_ticket = 0;
	stoup_ring_consumer_gone(d->ring, idx);
	atomic_store_explicit(&entry->lease_cnt, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->leased_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->waiting_cnt, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->state, STOUP_CONSUMER_NONE, memory_order_release);
	stoup_counter_add(d, why, 1);
	stoup_gauge(d, STOUP_COUNTER_CONSUMERS, stoup_attach_cnt(d));
	d->tick_ns = d->now_ns;
}

static int process_gone(const struct stoup_consumer *c)
{
	struct pollfd fd = {.fd = c->pid_fd, .events = POLLIN};

	return c->pid_fd >= 0 && poll(&fd, 1, 0) == 1;
}

static int detached(const struct stoup_consumer *c)
{
	struct stoup_page *page = c->page.base;

	return atomic_load_explicit(&page->state, memory_order_acquire) == STOUP_PAGE_DETACHED;
}

/* How a consumer ended whose process or page is gone. */
static enum stoup_counter end_of(const struct stoup_consumer *c)
{
	return detached(c) ? STOUP_COUNTER_DETACHES : STOUP_COUNTER_DEATHS;
}

void stoup_consumer_pid_event(struct stoup_daemon *d, uint32_t idx)
{
	const struct stoup_consumer *c = &d->consumers[idx];

	if (c->state != STOUP_CONSUMER_NONE && process_gone(c))
		stoup_consumer_drop(d, idx, end_of(c));
}

void stoup_consumer_hang_up(struct stoup_daemon *d, uint32_t idx)
{
	const struct stoup_consumer *c = &d->consumers[idx];

	if (c->state == STOUP_CONSUMER_NONE)
		return;
	/* Last rung: no pidfd to be had, the hang-up alone has to do. */
	if (c->pid_fd < 0)
		stoup_consumer_drop(d, idx, end_of(c));
	else
		stoup_consumer_dismiss(d, idx);
}

/* Hear no more from it but its hang-up. */
static void half_close(struct stoup_daemon *d, uint32_t idx)
{
	struct epoll_event event = {
		.events = EPOLLRDHUP, .data.u64 = STOUP_TAG(STOUP_TAG_SOCKET, idx)};

	shutdown(d->consumers[idx].sock_fd, SHUT_WR);
	epoll_ctl(d->epoll_fd, EPOLL_CTL_MOD, d->consumers[idx].sock_fd, &event);
}

void stoup_consumer_dismiss(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];
	struct stoup_control_consumer *entry = &stoup_control_consumers(d->control)[idx];

	if (c->state != STOUP_CONSUMER_ATTACHED)
		return;
	if (detached(c) || process_gone(c)) {
		stoup_consumer_drop(d, idx, end_of(c));
		return;
	}
	if (c->pid_fd >= 0)
		socket_end(d, &c->sock_fd);
	else
		half_close(d, idx);
	c->state = STOUP_CONSUMER_DEAF;
	c->deaf_wait_ns = DEAF_LOOK_NS;
	c->deaf_look_ns = d->now_ns + DEAF_LOOK_NS;
	atomic_store_explicit(&entry->state, STOUP_CONSUMER_DEAF, memory_order_release);
}

void stoup_consumer_deaf_event(struct stoup_daemon *d, uint32_t idx)
{
	const struct stoup_consumer *c = &d->consumers[idx];
	struct pollfd fd = {.fd = c->sock_fd, .events = POLLRDHUP};

	/* The event may be of the consumer that had this place before. */
	if (c->sock_fd >= 0 && poll(&fd, 1, 0) == 1)
		stoup_consumer_drop(d, idx, end_of(c));
}

void stoup_consumer_cut(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];

	stoup_counter_add(d, STOUP_COUNTER_LAGGARDS_CUT, 1);
	c->cut = 1;
	/* What it waits for is not answered: it learns of its end instead, and goes on in a newer snapshot. */
	stoup_requests_forget(d, idx);
	stoup_log_peer(d, -ESTALE,
		"process %u uses an old snapshot while places for new volumes run short: disconnected; mend: "
		"let it call stoup_refresh() and end old cursors",
		c->pid);
	/* A copy stays: its child gets the leases, and is cut off then. */
	stoup_consumer_dismiss(d, idx);
}

/* ---- now and then ----------------------------------------------------------------------------- */

/* The library keeps to its share; a page that names more in two looks a second apart is not its work. */
static void quota_look(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];

	/* One lease is always allowed: the library grants it whatever the share is. */
	if (c->lease_cnt <= 1 || c->leased_bytes <= d->control->lease_bytes_cap) {
		c->over_since_ns = 0;
		return;
	}
	if (c->over_since_ns == 0) {
		c->over_since_ns = d->now_ns;
		return;
	}
	if (d->now_ns - c->over_since_ns < OVER_LOOK_NS)
		return;
	stoup_log_peer(d, -EDQUOT,
		"process %u holds %llu bytes, more than the %llu of one consumer: disconnected; "
		"mend: stoupd --lease-bytes N",
		c->pid, (unsigned long long)c->leased_bytes,
		(unsigned long long)d->control->lease_bytes_cap);
	stoup_consumer_drop(d, idx, STOUP_COUNTER_QUOTA_DROPPED);
}

static void deaf_look(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];
	int mapped;

	if (process_gone(c) || detached(c)) {
		stoup_consumer_drop(d, idx, end_of(c));
		return;
	}
	/* Without a pidfd its number may be another process's by now: its connection tells. */
	if (c->pid_fd < 0)
		return;
	if (c->deaf_asked) {
		mapped = stoup_chores_looked(d->looker, idx, c->attach_no);
		if (mapped == -EAGAIN)
			return;
		c->deaf_asked = 0;
		if (mapped == 0) {
			stoup_consumer_drop(d, idx, STOUP_COUNTER_DEATHS);
			return;
		}
	}
	if (d->now_ns < c->deaf_look_ns)
		return;
	/* Reading a long memory map takes time, so the looks grow rarer. */
	if (c->deaf_wait_ns < DEAF_WAIT_CAP_NS)
		c->deaf_wait_ns *= 2;
	c->deaf_look_ns = d->now_ns + c->deaf_wait_ns;
	stoup_chores_look(d->looker, idx, c->pid, c->attach_no);
	c->deaf_asked = 1;
}

void stoup_consumer_tick(struct stoup_daemon *d)
{
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		if (d->consumers[i].state == STOUP_CONSUMER_DEAF)
			deaf_look(d, i);
		/* A forked child may keep the socket open: the page says it as well. */
		if (d->consumers[i].state == STOUP_CONSUMER_ATTACHED && detached(&d->consumers[i]))
			stoup_consumer_drop(d, i, STOUP_COUNTER_DETACHES);
		if (d->consumers[i].state != STOUP_CONSUMER_NONE)
			quota_look(d, i);
		if (d->consumers[i].state != STOUP_CONSUMER_NONE)
			stoup_quota_look(d, i);
	}
}
