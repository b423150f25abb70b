/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - the attach socket: connections, hellos, and what consumers ask of it later.
 *
 *      accept -> pending --hello--> checked --+--> page, doorbell --reply--> a consumer (life.c)
 *                   \--2 s, junk--> closed    +--> monitor: control object --reply--> closed
 *                                             +--> child: the copy under its ticket (fork.c)
 *
 * Invariant: nothing here waits for a peer. Sockets do not block; a packet with descriptors is not even
 * received, since letting go of them may wait; a peer that does not read what it asked for is dropped.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <linux/sockios.h>
#include <unistd.h>
#include "producer/chores.h"

#define PLACES_KEPT_PART 16u                /* of the places: kept for users who have few */
#define PENDING_GRACE_NS UINT64_C(50000000) /* libstoup says hello at once */

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

/* ---- accepting -------------------------------------------------------------------------------- */

/* The last descriptor is kept for telling who comes when there is no other. */
static void spare_keep(struct stoup_daemon *d)
{
	if (d->spare_fd < 0)
		d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int stoup_attach_listen(struct stoup_daemon *d, struct stoup_error *err)
{
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++)
		d->pending[i].fd = -1;
	spare_keep(d);
	return stoup_listen(d, err);
}

static void pending_end(struct stoup_daemon *d, uint32_t slot)
{
	epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, d->pending[slot].fd, NULL);
	stoup_chores_close(d->closer, d->pending[slot].fd);
	d->pending[slot].fd = -1;
}

static void hello(struct stoup_daemon *d, uint32_t slot);

/* The time of a connection is over: what it said before is heard, since it may be the daemon that was late. */
static void pending_late(struct stoup_daemon *d, uint32_t slot)
{
	hello(d, slot);
	if (d->pending[slot].fd >= 0)
		pending_end(d, slot);
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
	pending_late(d, oldest);
	return oldest;
}

static void refuse(struct stoup_daemon *d, int fd, const struct stoup_error *err)
{
	struct stoup_wire_reply reply = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_REPLY,
		.error = err->code,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR};

	if (err->code == -EPIPE || err->code == -ECONNRESET)
		return; /* it gave up meanwhile */
	memcpy(reply.text, err->text, sizeof(reply.text));
	/* Before the answer: who has it finds it counted. */
	stoup_counter_add(d, STOUP_COUNTER_ATTACHES_REFUSED, 1);
	stoup_log_peer(d, err->code, "attach refused: %s", err->text);
	stoup_wire_send(fd, &reply, sizeof(reply), NULL, 0);
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

/* accept failed for want of a descriptor. 1 = the one who came was told why. */
static int spare_refuse(struct stoup_daemon *d)
{
	struct stoup_error err;
	int fd;

	if (d->spare_fd < 0)
		return 0;
	close(d->spare_fd);
	d->spare_fd = -1;
	fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		files_explain(d, &err);
		refuse(d, fd, &err);
		stoup_chores_close(d->closer, fd);
	}
	return fd >= 0;
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
			stoup_listen_watch(d, 0); /* they wait in the backlog */
			return;
		}
		fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && errno == EMFILE && spare_refuse(d))
			continue;
		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
				stoup_log_error(d, -errno, "accept: %s%s", strerror(errno),
					errno == EMFILE ? "; mend: raise the daemon's ulimit -n"
							: "");
				stoup_listen_watch(d, 0);
			}
			return;
		}
		d->pending[slot].fd = fd;
		d->pending[slot].since_ns = d->now_ns;
		if (stoup_epoll_add(d, fd, EPOLLIN | EPOLLRDHUP, STOUP_TAG(STOUP_TAG_HELLO, slot)) <
			0) {
			stoup_chores_close(d->closer, fd);
			d->pending[slot].fd = -1;
		}
	}
}

/* ---- hello ------------------------------------------------------------------------------------ */

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

static int reply_send(struct stoup_daemon *d, int fd, const struct stoup_consumer *c, uint32_t idx)
{
	struct stoup_wire_reply reply = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_REPLY,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR,
		.fingerprint = d->control->fingerprint,
		.attach_no = c->attach_no,
		.consumer_idx = idx,
		.volume_cnt = stoup_snapshot_cnt(d, c->snapshot_seq),
		.flags = stoup_quota_reply(c),
		.snapshot_seq = c->snapshot_seq};
	int fds[STOUP_WIRE_FD_CAP];

	memcpy(reply.instance, d->control->instance, sizeof(reply.instance));
	/* Descriptors that a peer does not read count against the daemon's limit, so that only a few come
	 * unasked; the rest is pulled by who reads. */
	fds[STOUP_WIRE_FD_CONTROL] = d->control_region.ro_fd;
	fds[STOUP_WIRE_FD_DATA] = d->data_region.ro_fd;
	fds[STOUP_WIRE_FD_PAGE] = c->page.fd;
	fds[STOUP_WIRE_FD_DOORBELL] = c->bell_fd;
	if (reply.volume_cnt <= STOUP_WIRE_VOLUME_UNASKED)
		reply.volume_here = stoup_snapshot_fds(d, c->snapshot_seq, 0,
			STOUP_WIRE_VOLUME_UNASKED, fds + STOUP_WIRE_FD_FIXED);
	return stoup_wire_send(
		fd, &reply, sizeof(reply), fds, STOUP_WIRE_FD_FIXED + reply.volume_here);
}

/* Make the page and the doorbell of consumer idx and answer. Takes over sock_fd when it returns 0. */
static int consumer_make(struct stoup_daemon *d, uint32_t idx, int sock_fd,
	const struct ucred *cred, struct stoup_error *err)
{
	struct stoup_consumer *c = &d->consumers[idx];
	int rc;

	rc = stoup_consumer_place(d, idx, err);
	if (rc < 0)
		return rc;
	c->pid = (uint32_t)cred->pid;
	c->uid = (uint32_t)cred->uid;
	c->quota = stoup_quota_of(d, sock_fd, cred);
	rc = stoup_consumer_join(d, idx, sock_fd, cred, err);
	if (rc < 0)
		goto out_page;
	stoup_snapshot_give(d, c);
	STOUP_HOOK("attach.page");
	rc = reply_send(d, sock_fd, c, idx);
	STOUP_HOOK("attach.replied");
	if (rc < 0) {
		stoup_error_set(err, rc, "the answer could not be sent: %s%s", strerror(-rc),
			rc == -ETOOMANYREFS
				? " (others do not read theirs; mend: raise the daemon's ulimit -n)"
				: "");
		goto out_part;
	}
	stoup_consumer_enter(d, idx);
	return 0;
out_part:
	stoup_consumer_part(d, idx);
out_page:
	stoup_region_fini(&c->page);
	return rc;
}

static int consumer_new(
	struct stoup_daemon *d, int fd, const struct ucred *cred, struct stoup_error *err)
{
	uint32_t idx = STOUP_IDX_NONE;
	int rc = stoup_consumer_find_place(d, (uint32_t)cred->uid, &idx, err);

	return rc < 0 ? rc : consumer_make(d, idx, fd, cred, err);
}

/* A monitor gets the control object and holds nothing of ours: the caller hangs up. */
static int monitor_answer(struct stoup_daemon *d, int fd, struct stoup_error *err)
{
	struct stoup_wire_reply reply = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_REPLY,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR,
		.fingerprint = d->control->fingerprint};
	int rc;

	memcpy(reply.instance, d->control->instance, sizeof(reply.instance));
	rc = stoup_wire_send(fd, &reply, sizeof(reply), &d->control_region.ro_fd, 1);
	if (rc < 0)
		return stoup_error_set(err, rc, "the answer could not be sent: %s", strerror(-rc));
	stoup_counter_add(d, STOUP_COUNTER_MONITORS, 1);
	return 0;
}

/* Has the store of an automatic daemon left the path that we read it by? It was moved, or removed; then another
 * directory may have its path, or its inode, and who comes by either means that one. */
static int store_left(const struct stoup_daemon *d)
{
	struct stat st;

	if (!stoup_has_home(d))
		return 0;
	if (stat(d->opt.store_path[0], &st) < 0)
		return errno == ENOENT || errno == ENOTDIR;
	return !stoup_home_is(d, st.st_dev, st.st_ino);
}

static void hello(struct stoup_daemon *d, uint32_t slot)
{
	struct stoup_pending *pending = &d->pending[slot];
	struct stoup_wire_hello msg;
	struct stoup_error err = {0};
	struct ucred cred;
	socklen_t cred_len = sizeof(cred);
	int64_t len;
	int rc, monitor, fd = pending->fd;

	len = stoup_wire_recv_plain(fd, &msg, sizeof(msg));
	if (len == -EAGAIN)
		return;
	if (len <= 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) < 0) {
		pending_end(d, slot);
		return;
	}
	pending->fd = -1;
	epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	monitor = len == sizeof(msg) && (msg.flags & STOUP_HELLO_MONITOR);
	rc = stoup_access_check(d, fd, &cred, monitor, &err);
	if (rc == 0)
		rc = hello_check(d, &msg, len, &err);
	if (rc == 0 && !(msg.flags & (STOUP_HELLO_MONITOR | STOUP_HELLO_CHILD))) {
		/* Without an answer: it starts the daemon of the store that it means, when we are gone. */
		if (store_left(d)) {
			stoup_daemon_end(d, "its store was moved, removed or replaced");
			rc = -ECONNRESET;
		} else {
			stoup_rescan_fresh(d);
		}
	}
	if (rc == 0 && monitor)
		rc = monitor_answer(d, fd, &err);
	else if (rc == 0 && (msg.flags & STOUP_HELLO_CHILD))
		rc = stoup_fork_redeem(d, msg.ticket, fd, &cred, &err);
	else if (rc == 0)
		rc = consumer_new(d, fd, &cred, &err);
	if (rc == -EMFILE)
		files_explain(d, &err);
	if (rc < 0 && !err.text[0])
		stoup_error_set(&err, rc, "the daemon failed to attach it: %s", strerror(-rc));
	if (rc < 0)
		refuse(d, fd, &err);
	if (rc < 0 || monitor)
		stoup_chores_close(d->closer, fd);
}

/* ---- messages after the hello ----------------------------------------------------------------- */

/* Answer a pull. A peer that asks again without having read the answer before is none of ours. */
static int volumes_send(
	struct stoup_daemon *d, struct stoup_consumer *c, const struct stoup_wire_volumes *asked)
{
	struct stoup_wire_volumes msg = {
		.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_VOLUMES, .first = asked->first};
	int fds[STOUP_WIRE_VOLUME_CAP];
	int unread = 0;

	if (ioctl(c->sock_fd, SIOCOUTQ, &unread) == 0 && unread > 0)
		return -EPROTO;
	if (asked->flags & STOUP_VOLUMES_NEWEST) {
		stoup_rescan_fresh(d);
		/* That may have cut it off, or shown that it is gone. */
		if (c->state != STOUP_CONSUMER_ATTACHED)
			return 0;
		c->snapshot_seq = d->snapshot_seq;
	}
	msg.snapshot_seq = c->snapshot_seq;
	msg.volume_cnt = stoup_snapshot_cnt(d, c->snapshot_seq);
	if (stoup_snapshot_stale(d, c->snapshot_seq))
		msg.error = -ESTALE;
	else
		msg.cnt = stoup_snapshot_fds(
			d, c->snapshot_seq, asked->first, STOUP_WIRE_VOLUME_CAP, fds);
	return stoup_wire_send(c->sock_fd, &msg, sizeof(msg), fds, msg.cnt);
}

static void socket_event(struct stoup_daemon *d, uint32_t idx)
{
	struct stoup_consumer *c = &d->consumers[idx];
	union {
		struct {
			uint64_t magic;
			uint32_t kind;
		} head;
		struct stoup_wire_volumes volumes;
		struct stoup_wire_fork fork;
		struct stoup_wire_file file;
		struct stoup_wire_pin pin;
	} msg;
	int64_t len;

	if (c->state == STOUP_CONSUMER_DEAF)
		stoup_consumer_deaf_event(d, idx);
	/* A tag may be of the consumer that had this number before: the socket itself says what is new. */
	if (c->state != STOUP_CONSUMER_ATTACHED)
		return;
	len = stoup_wire_recv_plain(c->sock_fd, &msg, sizeof(msg));
	if (len == -EAGAIN)
		return;
	if (len == 0 || len == -ECONNRESET) {
		stoup_consumer_hang_up(d, idx);
		return;
	}
	if (len >= (int64_t)sizeof(msg.head) && msg.head.magic != STOUP_HELLO_MAGIC)
		len = -EPROTO;
	else if (len == sizeof(msg.volumes) && msg.head.kind == STOUP_WIRE_VOLUMES)
		len = volumes_send(d, c, &msg.volumes);
	else if (len == sizeof(msg.fork) &&
		 (msg.head.kind == STOUP_WIRE_FORK || msg.head.kind == STOUP_WIRE_FORMER))
		len = stoup_fork_message(d, idx, &msg.fork);
	else if (len == sizeof(msg.file) && msg.head.kind == STOUP_WIRE_FILE)
		len = stoup_give_message(d, idx, &msg.file);
	else if (len == sizeof(msg.pin) && msg.head.kind == STOUP_WIRE_PIN)
		len = stoup_pin_message(d, idx, &msg.pin);
	else
		len = -EPROTO;
	if (len < 0)
		stoup_consumer_dismiss(d, idx);
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
		stoup_consumer_pid_event(d, idx);
		break;
	default:
		break;
	}
}

/* ---- now and then ----------------------------------------------------------------------------- */

void stoup_attach_tick(struct stoup_daemon *d)
{
	stoup_listen_watch(d, 1);
	stoup_listen_tick(d);
	spare_keep(d);
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++)
		if (d->pending[i].fd >= 0 &&
			d->now_ns - d->pending[i].since_ns > STOUP_HELLO_TIMEOUT_NS)
			pending_late(d, i);
	stoup_fork_tick(d);
	stoup_consumer_tick(d);
}

void stoup_attach_fini(struct stoup_daemon *d)
{
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++)
		if (d->pending[i].fd >= 0)
			pending_end(d, i);
	for (uint32_t i = 0; d->consumers && i < d->opt.consumer_cap; i++)
		stoup_consumer_drop(d, i,
			d->consumers[i].state == STOUP_CONSUMER_TICKET ? STOUP_COUNTER_FORKS_EXPIRED
								       : STOUP_COUNTER_DETACHES);
	if (d->spare_fd >= 0)
		close(d->spare_fd);
	d->spare_fd = -1;
	stoup_listen_fini(d);
}
