/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - consumers come and go: the socket, who may attach, their pages, their end.
 *
 *      accept -> pending --hello--> checked --> page, doorbell --reply--> ATTACHED
 *                   \--2 s, junk--> closed                                  |
 *               page says DETACHED, or its process is gone  <---------------+--hang-up, process lives--> DEAF
 *                   -> dropped: page unmapped, cells fall away                                            |
 *                                                      its memory map no longer shows the page -> dropped +
 *
 * Death is what the kernel says (pidfd), never a pid that was looked up later. A hang-up of a living
 * process frees nothing by itself: it may have closed its descriptors and still read the bytes.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <linux/sockios.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define DEAF_LOOK_NS     UINT64_C(250000000) /* how often a deaf consumer's memory map is read */
#define DEAF_WAIT_CAP_NS UINT64_C(4000000000)
#define OVER_LOOK_NS     UINT64_C(1000000000) /* two looks a second apart above the share: dropped */
#define PENDING_GRACE_NS UINT64_C(50000000)   /* libstoup says hello at once */
#define GROUPS_CAP       1024 /* supplementary groups of a peer that are looked at */

int stoup_epoll_add(const struct stoup_daemon *d, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event event = {.events = events, .data.u64 = tag};

	return epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

uint32_t stoup_attach_cnt(const struct stoup_daemon *d)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		cnt += d->consumers[i].state != STOUP_CONSUMER_NONE;
	return cnt;
}

/* ---- listening -------------------------------------------------------------------------------- */

int stoup_attach_listen(struct stoup_daemon *d, struct stoup_error *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int rc;

	if (strlen(d->sock_path) >= sizeof(addr.sun_path))
		return stoup_error_set(err, -ENAMETOOLONG,
			"%s: longer than a socket's path may be (%zu); mend: a shorter "
			"XDG_RUNTIME_DIR",
			d->sock_path, sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, d->sock_path, strlen(d->sock_path) + 1);
	/* We hold the pool's lock: a socket that lies there belongs to nobody. */
	unlink(d->sock_path);
	d->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->listen_fd < 0)
		return stoup_error_set(err, -errno, "socket: %s", strerror(errno));
	/* Nobody may connect before modes are set: umask keeps all but the owner out until then. */
	mode_t old = umask(0177);
	rc = bind(d->listen_fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	umask(old);
	if (rc < 0)
		return stoup_error_set(err, rc, "bind %s: %s", d->sock_path, strerror(-rc));
	if (d->group_gid != (gid_t)-1 &&
		(chown(d->sock_path, (uid_t)-1, d->group_gid) < 0 || chmod(d->sock_path, 0660) < 0))
		return stoup_error_set(err, -errno, "%s: giving the socket to group '%s': %s",
			d->sock_path, d->group_name, strerror(errno));
	if (listen(d->listen_fd, (int)STOUP_PENDING_CAP) < 0)
		return stoup_error_set(err, -errno, "listen %s: %s", d->sock_path, strerror(errno));
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++)
		d->pending[i].fd = -1;
	rc = stoup_epoll_add(d, d->listen_fd, EPOLLIN, STOUP_TAG(STOUP_TAG_LISTEN, 0));
	return rc < 0 ? stoup_error_set(err, rc, "epoll: %s", strerror(-rc)) : 0;
}

/* Watch the listening socket or, while nothing can be accepted, do not: it would wake the loop for ever.
 * The tick watches it again. */
static void listen_watch(struct stoup_daemon *d, int on)
{
	struct epoll_event event = {
		.events = on ? EPOLLIN : 0, .data.u64 = STOUP_TAG(STOUP_TAG_LISTEN, 0)};

	if (d->listen_off == !on)
		return;
	d->listen_off = !on;
	epoll_ctl(d->epoll_fd, EPOLL_CTL_MOD, d->listen_fd, &event);
}

/* Make room: the connection that has been silent longest goes, if it had the time to speak. */
static uint32_t pending_oldest(struct stoup_daemon *d)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < STOUP_PENDING_CAP; i++)
		if (d->pending[i].since_ns < d->pending[oldest].since_ns)
			oldest = i;
	if (d->now_ns - d->pending[oldest].since_ns < PENDING_GRACE_NS)
		return STOUP_PENDING_CAP;
	close(d->pending[oldest].fd);
	d->pending[oldest].fd = -1;
	return oldest;
}

static void accept_all(struct stoup_daemon *d)
{
	/* At most as many as may be pending: a flood of connections can not keep the conductor here. */
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++) {
		uint32_t slot = 0;
		int fd;

		while (slot < STOUP_PENDING_CAP && d->pending[slot].fd >= 0)
			slot++;
		if (slot == STOUP_PENDING_CAP && (slot = pending_oldest(d)) == STOUP_PENDING_CAP) {
			listen_watch(d, 0); /* they wait in the backlog */
			return;
		}
		fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
				stoup_log_error(d, -errno, "accept: %s%s", strerror(errno),
					errno == EMFILE ? "; mend: raise the daemon's ulimit -n"
							: "");
				listen_watch(d, 0);
			}
			return;
		}
		d->pending[slot].fd = fd;
		d->pending[slot].since_ns = d->now_ns;
		if (stoup_epoll_add(d, fd, EPOLLIN | EPOLLRDHUP, STOUP_TAG(STOUP_TAG_HELLO, slot)) <
			0) {
			close(fd);
			d->pending[slot].fd = -1;
		}
	}
}

/* ---- who may attach --------------------------------------------------------------------------- */

static int in_group(int fd, const struct ucred *cred, gid_t gid)
{
	gid_t groups[GROUPS_CAP];
	socklen_t len = sizeof(groups);

	if (cred->gid == gid)
		return 1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return 0;
	for (size_t i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == gid)
			return 1;
	return 0;
}

static int may_attach(
	const struct stoup_daemon *d, int fd, const struct ucred *cred, struct stoup_error *err)
{
	if (cred->uid == 0 || cred->uid == d->uid)
		return 0;
	if (d->group_gid != (gid_t)-1 && in_group(fd, cred, d->group_gid))
		return 0;
	if (d->group_gid == (gid_t)-1)
		return stoup_error_set(err, -EACCES,
			"pool '%s' admits its owner (uid %u) alone; mend: start stoupd with "
			"--group GROUP",
			d->opt.pool, (unsigned int)d->uid);
	return stoup_error_set(err, -EACCES,
		"pool '%s' admits group '%s', and uid %u is not in it; mend: usermod -aG %s USER, "
		"then log in again",
		d->opt.pool, d->group_name, (unsigned int)cred->uid, d->group_name);
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

static int hello_check(const struct stoup_daemon *d, const struct stoup_wire_hello *hello,
	int64_t len, struct stoup_error *err)
{
	if (len != sizeof(*hello) || hello->magic != STOUP_HELLO_MAGIC ||
		hello->kind != STOUP_WIRE_HELLO)
		return stoup_error_set(err, -EPROTO, "this is not a hello of libstoup");
	if (hello->abi_major != STOUP_ABI_MAJOR || hello->fingerprint != d->control->fingerprint)
		return stoup_error_set(err, -EPROTO,
			"the daemon (version %s) speaks ABI %u.%u, the library %u.%u: use programs "
			"of one release",
			d->control->version, STOUP_ABI_MAJOR, STOUP_ABI_MINOR, hello->abi_major,
			hello->abi_minor);
	if (d->stopping)
		return stoup_error_set(
			err, -ECONNREFUSED, "pool '%s' is being stopped", d->opt.pool);
	return 0;
}

/* ---- attaching -------------------------------------------------------------------------------- */

static uint32_t consumer_free(const struct stoup_daemon *d)
{
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (d->consumers[i].state == STOUP_CONSUMER_NONE)
			return i;
	return STOUP_IDX_NONE;
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

static void show_consumer(struct stoup_daemon *d, uint32_t idx)
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
}

static int reply_send(struct stoup_daemon *d, int fd, const struct stoup_consumer *c, uint32_t idx)
{
	struct stoup_wire_reply reply = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_REPLY,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR,
		.fingerprint = d->control->fingerprint,
		.attach_no = c->attach_no,
		.consumer_idx = idx,
		.volume_cnt = d->volume_cnt};
	int fds[STOUP_WIRE_FD_CAP];

	memcpy(reply.instance, d->control->instance, sizeof(reply.instance));
	/* Descriptors that a peer does not read count against the daemon's limit, so that only a few come
	 * unasked; the rest is pulled by who reads. */
	reply.volume_here = d->volume_cnt <= STOUP_WIRE_VOLUME_UNASKED ? d->volume_cnt : 0;
	fds[STOUP_WIRE_FD_CONTROL] = d->control_region.ro_fd;
	fds[STOUP_WIRE_FD_DATA] = d->data_region.ro_fd;
	fds[STOUP_WIRE_FD_PAGE] = c->page.fd;
	fds[STOUP_WIRE_FD_DOORBELL] = c->bell_fd;
	for (uint32_t i = 0; i < reply.volume_here; i++)
		fds[STOUP_WIRE_FD_FIXED + i] = d->volumes[i].catalog.ro_fd;
	return stoup_wire_send(
		fd, &reply, sizeof(reply), fds, STOUP_WIRE_FD_FIXED + reply.volume_here);
}

/* Make the page and the doorbell of consumer idx and answer. Takes over sock_fd when it returns 0. */
static int consumer_make(struct stoup_daemon *d, uint32_t idx, int sock_fd,
	const struct ucred *cred, struct stoup_error *err)
{
	struct stoup_consumer *c = &d->consumers[idx];
	uint64_t *seen = c->seen;
	char label[64];
	int rc;

	memset(c, 0, sizeof(*c));
	c->seen = seen;
	memset(seen, 0, d->opt.cell_cap * sizeof(seen[0]));
	c->page.fd = c->page.ro_fd = c->pid_fd = c->bell_fd = -1;
	c->sock_fd = sock_fd;
	c->pid = (uint32_t)cred->pid;
	c->uid = (uint32_t)cred->uid;
	c->attach_no = ++d->attach_seq;
	c->attach_ns = d->now_ns;
	/* The label is how a memory map tells whether the page is still there. */
	snprintf(label, sizeof(label), "stoup.page.%u.%llu", d->control->daemon_pid,
		(unsigned long long)c->attach_no);
	rc = stoup_region_create_page(&c->page, label, stoup_page_footprint(d->opt.cell_cap), err);
	if (rc < 0)
		return rc;
	stoup_page_format(c->page.base, d->control->instance, c->attach_no, idx, d->opt.cell_cap);
	c->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->bell_fd < 0) {
		rc = stoup_error_set(err, -errno, "eventfd: %s", strerror(errno));
		goto out_page;
	}
	c->pid_fd = pidfd_of(sock_fd, cred->pid);
	/* A want of descriptors passes: it must not leave a consumer whose hang-up alone ends its leases. */
	if (c->pid_fd == -EMFILE || c->pid_fd == -ENFILE) {
		rc = stoup_error_set(err, c->pid_fd, "pidfd_open: %s", strerror(-c->pid_fd));
		goto out_page;
	}
	STOUP_HOOK("attach.page");
	rc = reply_send(d, sock_fd, c, idx);
	STOUP_HOOK("attach.replied");
	if (rc < 0) {
		stoup_error_set(err, rc, "the answer could not be sent: %s%s", strerror(-rc),
			rc == -ETOOMANYREFS
				? " (others do not read theirs; mend: raise the daemon's ulimit -n)"
				: "");
		goto out_page;
	}
	/* The mapping stays; the consumer has the only descriptor. */
	close(c->page.fd);
	c->page.fd = -1;
	stoup_epoll_add(d, sock_fd, EPOLLIN | EPOLLRDHUP, STOUP_TAG(STOUP_TAG_SOCKET, idx));
	stoup_epoll_add(d, c->bell_fd, EPOLLIN | EPOLLET, STOUP_TAG(STOUP_TAG_BELL, idx));
	if (c->pid_fd >= 0)
		stoup_epoll_add(d, c->pid_fd, EPOLLIN, STOUP_TAG(STOUP_TAG_PID, idx));
	c->state = STOUP_CONSUMER_ATTACHED;
	return 0;
out_page:
	if (c->bell_fd >= 0)
		close(c->bell_fd);
	if (c->pid_fd >= 0)
		close(c->pid_fd);
	stoup_region_fini(&c->page);
	return rc;
}

static void refuse(struct stoup_daemon *d, int fd, const struct stoup_error *err)
{
	struct stoup_wire_reply reply = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_REPLY,
		.error = err->code,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR};

	memcpy(reply.text, err->text, sizeof(reply.text));
	stoup_wire_send(fd, &reply, sizeof(reply), NULL, 0);
	stoup_count(d, STOUP_COUNTER_ATTACHES_REFUSED, 1);
	stoup_log_error(d, err->code, "attach refused: %s", err->text);
}

static void files_explain(const struct stoup_daemon *d, struct stoup_error *err)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	stoup_error_set(err, -EMFILE,
		"the daemon of pool '%s' has used up its %llu descriptors, for %u consumers and %u volumes; mend: "
		"raise its ulimit -n",
		d->opt.pool, (unsigned long long)limit.rlim_cur, stoup_attach_cnt(d),
		d->volume_cnt);
}

static void hello(struct stoup_daemon *d, uint32_t slot)
{
	struct stoup_pending *pending = &d->pending[slot];
	struct stoup_wire_hello msg;
	struct stoup_error err = {0};
	struct ucred cred;
	socklen_t cred_len = sizeof(cred);
	uint32_t fd_cnt, idx = STOUP_IDX_NONE;
	int64_t len;
	int rc, fd = pending->fd;

	len = stoup_wire_recv(fd, &msg, sizeof(msg), NULL, 0, &fd_cnt);
	if (len == -EAGAIN)
		return;
	pending->fd = -1;
	epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	if (len <= 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) < 0) {
		close(fd);
		return;
	}
	rc = may_attach(d, fd, &cred, &err);
	if (rc == 0)
		rc = hello_check(d, &msg, len, &err);
	/* Hung up without a word: the library takes that for an ending daemon and starts the next. */
	if (rc == 0 && d->opt.automatic && stoup_attach_cnt(d) == 0 && stoup_volumes_changed(d)) {
		close(fd);
		stoup_daemon_end(d, "the store has changed");
		return;
	}
	if (rc == 0 && (idx = consumer_free(d)) == STOUP_IDX_NONE)
		rc = stoup_error_set(&err, -EUSERS,
			"pool '%s' has its %u consumers already; mend: stoupd --consumers N (at "
			"most %u)",
			d->opt.pool, d->opt.consumer_cap, STOUP_CONSUMER_CAP);
	if (rc == 0)
		rc = consumer_make(d, idx, fd, &cred, &err);
	if (rc == -EMFILE)
		files_explain(d, &err);
	if (rc < 0) {
		refuse(d, fd, &err);
		close(fd);
		return;
	}
	stoup_count(d, STOUP_COUNTER_ATTACHES, 1);
	stoup_gauge(d, STOUP_COUNTER_CONSUMERS, stoup_attach_cnt(d));
	show_consumer(d, idx);
	d->tick_ns = d->now_ns; /* seen at once */
}

/* ---- the end of a consumer -------------------------------------------------------------------- */

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

static void consumer_drop(struct stoup_daemon *d, uint32_t idx, enum stoup_counter why)
{
	struct stoup_consumer *c = &d->consumers[idx];
	struct stoup_control_consumer *entry = &stoup_control_consumers(d->control)[idx];

	if (c->state == STOUP_CONSUMER_NONE)
		return;
	stoup_evict_last_look(d, idx);
	/* With the page go all its cells at once; its waiters carry attach_no and find it gone. */
	stoup_region_fini(&c->page);
	stoup_requests_forget(d, idx);
	watch_end(d, &c->sock_fd);
	watch_end(d, &c->pid_fd);
	watch_end(d, &c->bell_fd);
	c->state = STOUP_CONSUMER_NONE;
	c->lease_cnt = 0;
	c->leased_bytes = 0;
	c->attach_no = 0;
	stoup_ring_consumer_gone(d->ring, idx);
	atomic_store_explicit(&entry->lease_cnt, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->leased_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->waiting_cnt, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->state, STOUP_CONSUMER_NONE, memory_order_release);
	stoup_count(d, why, 1);
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

static void hang_up(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];
	struct stoup_control_consumer *entry = &stoup_control_consumers(d->control)[idx];

	if (detached(c)) {
		consumer_drop(d, idx, STOUP_COUNTER_DETACHES);
		return;
	}
	/* Last rung: no pidfd to be had, the hang-up alone has to do. */
	if (c->pid_fd < 0 || process_gone(c)) {
		consumer_drop(d, idx, STOUP_COUNTER_DEATHS);
		return;
	}
	watch_end(d, &c->sock_fd);
	c->state = STOUP_CONSUMER_DEAF;
	c->deaf_wait_ns = DEAF_LOOK_NS;
	c->deaf_look_ns = d->now_ns + DEAF_LOOK_NS;
	atomic_store_explicit(&entry->state, STOUP_CONSUMER_DEAF, memory_order_release);
}

/* Does the process still map its page? 1 also when that can not be known. */
static int page_mapped(const struct stoup_daemon *d, const struct stoup_consumer *c)
{
	char path[64], label[64], line[512];
	FILE *maps;
	int found = 0;

	/* A process of another PID namespace has no number here (0), or another one in our /proc. */
	if (c->pid == 0 || !stoup_proc_ours())
		return 1;
	snprintf(path, sizeof(path), "/proc/%u/maps", c->pid);
	snprintf(label, sizeof(label), "/memfd:stoup.page.%u.%llu ", d->control->daemon_pid,
		(unsigned long long)c->attach_no);
	maps = fopen(path, "re");
	if (!maps)
		return 1;
	while (!found && fgets(line, sizeof(line), maps))
		found = strstr(line, label) != NULL;
	if (ferror(maps))
		found = 1;
	fclose(maps);
	return found;
}

/* ---- messages after the hello ----------------------------------------------------------------- */

/* Answer a pull. A peer that asks again without having read the answer before is none of ours. */
static int volumes_send(struct stoup_daemon *d, int fd, uint32_t first)
{
	struct stoup_wire_volumes msg = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_VOLUMES,
		.first = first,
		.volume_cnt = d->volume_cnt};
	int fds[STOUP_WIRE_VOLUME_CAP];
	int unread = 0;

	if (ioctl(fd, SIOCOUTQ, &unread) == 0 && unread > 0)
		return -EPROTO;
	for (uint32_t i = first; i < d->volume_cnt && msg.cnt < STOUP_WIRE_VOLUME_CAP; i++)
		fds[msg.cnt++] = d->volumes[i].catalog.ro_fd;
	return stoup_wire_send(fd, &msg, sizeof(msg), fds, msg.cnt);
}

static void socket_event(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];
	struct stoup_wire_volumes msg;
	uint32_t fd_cnt;
	int64_t len;

	/* A tag may be of the consumer that had this number before: the socket itself says what is new. */
	if (c->state != STOUP_CONSUMER_ATTACHED)
		return;
	len = stoup_wire_recv(c->sock_fd, &msg, sizeof(msg), NULL, 0, &fd_cnt);
	if (len == -EAGAIN)
		return;
	if (len == sizeof(msg) && msg.magic == STOUP_HELLO_MAGIC && msg.kind == STOUP_WIRE_VOLUMES)
		len = volumes_send(d, c->sock_fd, msg.first);
	else
		len = -EPROTO;
	if (len < 0)
		hang_up(d, idx);
}

void stoup_attach_event(struct stoup_daemon *d, uint64_t tag, uint32_t events)
{
	uint32_t idx = (uint32_t)tag;

	(void)events;
	switch (tag >> 32) {
	case STOUP_TAG_LISTEN:
		accept_all(d);
		break;
	case STOUP_TAG_HELLO:
		if (d->pending[idx].fd >= 0)
			hello(d, idx);
		break;
	case STOUP_TAG_SOCKET:
		socket_event(d, idx);
		break;
	case STOUP_TAG_PID:
		if (d->consumers[idx].state != STOUP_CONSUMER_NONE &&
			process_gone(&d->consumers[idx]))
			consumer_drop(d, idx,
				detached(&d->consumers[idx]) ? STOUP_COUNTER_DETACHES
							     : STOUP_COUNTER_DEATHS);
		break;
	default:
		break;
	}
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
	stoup_log_error(d, -EDQUOT,
		"process %u holds %llu bytes, more than the %llu of one consumer: disconnected; "
		"mend: stoupd --lease-bytes N",
		c->pid, (unsigned long long)c->leased_bytes,
		(unsigned long long)d->control->lease_bytes_cap);
	consumer_drop(d, idx, STOUP_COUNTER_QUOTA_DROPPED);
}

static void deaf_look(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];

	if (d->now_ns < c->deaf_look_ns)
		return;
	/* Reading a long memory map takes time, so the looks grow rarer. */
	if (c->deaf_wait_ns < DEAF_WAIT_CAP_NS)
		c->deaf_wait_ns *= 2;
	c->deaf_look_ns = d->now_ns + c->deaf_wait_ns;
	if (process_gone(c) || detached(c) || !page_mapped(d, c))
		consumer_drop(d, idx, detached(c) ? STOUP_COUNTER_DETACHES : STOUP_COUNTER_DEATHS);
}

void stoup_attach_tick(struct stoup_daemon *d)
{
	listen_watch(d, 1);
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++)
		if (d->pending[i].fd >= 0 &&
			d->now_ns - d->pending[i].since_ns > STOUP_HELLO_TIMEOUT_NS) {
			close(d->pending[i].fd);
			d->pending[i].fd = -1;
		}
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		if (d->consumers[i].state == STOUP_CONSUMER_DEAF)
			deaf_look(d, i);
		/* A forked child may keep the socket open: the page says it as well. */
		if (d->consumers[i].state == STOUP_CONSUMER_ATTACHED && detached(&d->consumers[i]))
			consumer_drop(d, i, STOUP_COUNTER_DETACHES);
		if (d->consumers[i].state != STOUP_CONSUMER_NONE)
			quota_look(d, i);
	}
}

void stoup_attach_fini(struct stoup_daemon *d)
{
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++)
		if (d->pending[i].fd >= 0)
			close(d->pending[i].fd);
	for (uint32_t i = 0; d->consumers && i < d->opt.consumer_cap; i++)
		consumer_drop(d, i, STOUP_COUNTER_DETACHES);
	if (d->listen_fd >= 0) {
		close(d->listen_fd);
		unlink(d->sock_path);
	}
}
