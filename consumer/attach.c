/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - join a running pool: find its socket, trust its owner, say hello, map what comes.
 *
 *      NAME.sock in a runtime directory --connect--> credentials --hello--> reply + descriptors
 *            |              |                             |                    |
 *         ENOENT      EACCES, ECONNREFUSED          somebody else's      maps, volumes
 *
 * Trust: a pool hands out bytes that a strategy acts upon, so only a daemon of root, of the own
 * user, or of the owner of /run/stoup (which root made) is believed.
 *
 * Invariant: every descriptor is close-on-exec. Of those that came only the socket and the doorbell
 * stay open; all else lives on as mappings.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include "consumer/client.h"
#include "shm/wire.h"

#define RETRY_NS 5000000 /* the daemon's queue of connections is full: try again that late */

/* ---- the socket ------------------------------------------------------------------------------ */

static int explain_denied(const char *dir, const char *path, struct stoup_error *err)
{
	char space[2048];
	const char *what = path;
	struct group group, *found = NULL;
	struct stat st;

	if (stat(path, &st) < 0) {
		what = dir;
		if (stat(dir, &st) < 0)
			return stoup_error_set(err, -EACCES, "%s: permission denied", path);
	}
	/* Closed to its group as well: membership would not help, and that of root would harm. */
	if (!(st.st_mode & S_IRWXG))
		return stoup_error_set(err, -EACCES,
			"%s: permission denied; its owner (uid %u) alone may use it", what,
			(unsigned int)st.st_uid);
	if (getgrgid_r(st.st_gid, &group, space, sizeof(space), &found) != 0 || !found)
		return stoup_error_set(err, -EACCES,
			"%s: permission denied; it may be used by the group with number %u", what,
			st.st_gid);
	return stoup_error_set(err, -EACCES,
		"%s: permission denied; it may be used by group '%s': usermod -aG %s USER, then "
		"log in again",
		what, found->gr_name, found->gr_name);
}

static int explain_connect(
	int code, const char *pool, const char *dir, const char *path, struct stoup_error *err)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		return stoup_error_set(err, -ENOENT,
			"no pool '%s' is running; start it: stoupd --store DIR --pool %s", pool,
			pool);
	case -ECONNREFUSED:
		return stoup_error_set(err, code,
			"the daemon of pool '%s' is dead (socket %s left behind): start it again",
			pool, path);
	case -EACCES:
	case -EPERM:
		return explain_denied(dir, path, err);
	case -ETIMEDOUT:
		return stoup_error_set(err, code,
			"the daemon of pool '%s' is silent: it did not accept the connection to %s",
			pool, path);
	default:
		return stoup_error_set(err, code, "connect to %s: %s", path, strerror(-code));
	}
}

static int sock_connect(int sock_fd, const char *path, uint64_t deadline_ns)
{
	const struct timespec nap = {.tv_nsec = RETRY_NS};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	while (connect(sock_fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (stoup_client_now() >= deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	return 0;
}

static int peer_trusted(
	int sock_fd, const char *dir, uint32_t dir_idx, const char *path, struct stoup_error *err)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;

	if (getsockopt(sock_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return stoup_error_set(err, -errno, "credentials of %s: %s", path, strerror(errno));
	if (peer.uid == 0 || peer.uid == geteuid())
		return 0;
	/* The private directory may stand in /tmp, where its owner proves nothing. */
	if (dir_idx == 1 && stat(dir, &st) == 0 && st.st_uid == peer.uid)
		return 0;
	return stoup_error_set(err, -EACCES,
		"%s belongs to user %u, who is neither root, nor you, nor the owner of /run/stoup: "
		"not trusted",
		path, peer.uid);
}

/* ---- hello ----------------------------------------------------------------------------------- */

/* Receive one packet until the deadline. Its length, -ECONNRESET for hang-up, or another error. */
static int64_t receive(
	int sock_fd, void *msg, size_t cap, int *fds, uint32_t *ret_fd_cnt, uint64_t deadline_ns)
{
	int64_t len;

	for (;;) {
		struct pollfd p = {.fd = sock_fd, .events = POLLIN};
		uint64_t now = stoup_client_now();
		uint64_t left_ms = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;

		*ret_fd_cnt = 0;
		len = stoup_wire_recv(sock_fd, msg, cap, fds, STOUP_WIRE_FD_CAP, ret_fd_cnt);
		if (len != -EAGAIN)
			return len == 0 || len == -EPIPE ? -ECONNRESET : len;
		if (left_ms == 0)
			return -ETIMEDOUT;
		poll(&p, 1, left_ms > 1000 ? 1000 : (int)left_ms);
	}
}

static void close_all(const int *fds, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		close(fds[i]);
}

static int explain_receive(const struct stoup *st, int code, struct stoup_error *err)
{
	char what[STOUP_POOL_NAME_CAP + 16];

	switch (code) {
	case -ETIMEDOUT:
		return stoup_error_set(err, code,
			"the daemon of pool '%s' is silent: no answer to hello in time (stopped or "
			"stuck?)",
			st->pool);
	case -ECONNRESET:
		return stoup_error_set(
			err, code, "the daemon of pool '%s' hung up: it is ending", st->pool);
	case -EPROTO:
		return stoup_error_set(
			err, code, "pool '%s' answers in another protocol", st->pool);
	default:
		snprintf(what, sizeof(what), "pool '%s', hello", st->pool);
		errno = -code;
		return stoup_client_errno(err, what);
	}
}

static int reply_check(const struct stoup *st, struct stoup_wire_reply *reply, int64_t len,
	uint32_t fd_cnt, struct stoup_error *err)
{
	if (len != (int64_t)sizeof(*reply) || reply->magic != STOUP_HELLO_MAGIC ||
		reply->kind != STOUP_WIRE_REPLY)
		return stoup_error_set(
			err, -EPROTO, "pool '%s' answers in another protocol", st->pool);
	reply->text[sizeof(reply->text) - 1] = 0;
	if (reply->error != 0)
		return stoup_error_set(err,
			reply->error < 0 && reply->error > -4096 ? reply->error : -EPROTO, "%s",
			reply->text);
	if (reply->abi_major != STOUP_ABI_MAJOR || reply->fingerprint != stoup_abi_fingerprint())
		return stoup_error_set(err, -EPROTO,
			"the daemon of pool '%s' speaks ABI %u.%u, this library %u.%u, or was laid "
			"out "
			"differently: use one release of both",
			st->pool, reply->abi_major, reply->abi_minor, STOUP_ABI_MAJOR,
			STOUP_ABI_MINOR);
	if (reply->volume_here > STOUP_WIRE_VOLUME_CAP ||
		fd_cnt != STOUP_WIRE_FD_FIXED + reply->volume_here)
		return stoup_error_set(err, -EPROTO, "pool '%s' sent %u descriptors, announced %u",
			st->pool, fd_cnt, STOUP_WIRE_FD_FIXED + reply->volume_here);
	return 0;
}

/* ---- maps ------------------------------------------------------------------------------------ */

static int map_fixed(struct stoup *st, const struct stoup_wire_reply *reply, const int *fds,
	struct stoup_error *err)
{
	int rc;

	rc = stoup_region_map(fds[STOUP_WIRE_FD_CONTROL], sizeof(struct stoup_control), 0, 0,
		&st->control_region, err);
	if (rc < 0)
		return rc;
	st->control = st->control_region.base;
	rc = stoup_control_verify(st->control, st->control_region.len, err);
	if (rc < 0)
		return rc;
	if (memcmp(st->control->instance, reply->instance, sizeof(reply->instance)) != 0)
		return stoup_error_set(
			err, -EPROTO, "pool '%s' sent another instance's memory", st->pool);
	st->buffers = stoup_control_buffers(st->control);
	/* Lazily: page tables grow with what is read, so 64 workers do not pay for all of it. */
	rc = stoup_region_map(fds[STOUP_WIRE_FD_DATA], (size_t)st->control->data_len, 0, 0,
		&st->data_region, err);
	if (rc < 0)
		return rc;
	rc = stoup_region_map(fds[STOUP_WIRE_FD_PAGE], stoup_page_footprint(st->control->cell_cap),
		1, 1, &st->page_region, err);
	if (rc < 0)
		return rc;
	st->page = st->page_region.base;
	if (stoup_page_verify(st->page, st->page_region.len, reply->instance, reply->attach_no) < 0)
		return stoup_error_set(
			err, -EPROTO, "pool '%s' sent a consumer page that is malformed", st->pool);
	st->cell_cap = st->page->cell_cap;
	st->lease_bytes_cap = st->control->lease_bytes_cap;
	return 0;
}

/* Add volumes; closes all cnt descriptors in any case. */
static int add_volumes(struct stoup *st, const int *fds, uint32_t cnt, struct stoup_error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		if (rc == 0)
			rc = stoup_snapshot_add(st, fds[i], err);
		else
			close(fds[i]);
	}
	return rc;
}

/* Ask for the volumes from `first` on, until all are here; one question at a time. `first` is 0 where
 * there are many: the daemon lays few descriptors into a socket unasked, since nobody may read it. */
static int pull_volumes(
	struct stoup *st, uint32_t first, uint64_t deadline_ns, struct stoup_error *err)
{
	int fds[STOUP_WIRE_FD_CAP];
	struct stoup_wire_volumes msg;
	uint32_t fd_cnt;
	int64_t len;
	int rc;

	do {
		msg = (struct stoup_wire_volumes){
			.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_VOLUMES, .first = first};
		rc = stoup_wire_send(st->sock_fd, &msg, sizeof(msg), NULL, 0);
		if (rc < 0)
			return explain_receive(st, rc == -EPIPE ? -ECONNRESET : rc, err);
		len = receive(st->sock_fd, &msg, sizeof(msg), fds, &fd_cnt, deadline_ns);
		if (len < 0)
			return explain_receive(st, (int)len, err);
		if (len != (int64_t)sizeof(msg) || msg.magic != STOUP_HELLO_MAGIC ||
			msg.kind != STOUP_WIRE_VOLUMES || msg.error != 0 || fd_cnt != msg.cnt ||
			msg.first != first || (fd_cnt == 0 && first < msg.volume_cnt)) {
			close_all(fds, fd_cnt);
			return stoup_error_set(err, -EPROTO,
				"pool '%s' answered badly when asked for volume %u", st->pool,
				first);
		}
		rc = add_volumes(st, fds, fd_cnt, err);
		first += fd_cnt;
	} while (rc == 0 && first < msg.volume_cnt);
	return rc;
}

static int say_hello(struct stoup *st, uint64_t deadline_ns, struct stoup_error *err)
{
	struct stoup_wire_hello hello = {
		.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_HELLO,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR,
		.fingerprint = stoup_abi_fingerprint(),
	};
	int fds[STOUP_WIRE_FD_CAP];
	struct stoup_wire_reply reply;
	uint32_t fd_cnt;
	int64_t len;
	int rc;

	rc = stoup_wire_send(st->sock_fd, &hello, sizeof(hello), NULL, 0);
	if (rc < 0)
		return explain_receive(st, rc == -EPIPE ? -ECONNRESET : rc, err);
	len = receive(st->sock_fd, &reply, sizeof(reply), fds, &fd_cnt, deadline_ns);
	if (len < 0)
		return explain_receive(st, (int)len, err);
	rc = reply_check(st, &reply, len, fd_cnt, err);
	if (rc < 0) {
		close_all(fds, fd_cnt);
		return rc;
	}
	rc = map_fixed(st, &reply, fds, err);
	close(fds[STOUP_WIRE_FD_CONTROL]);
	close(fds[STOUP_WIRE_FD_DATA]);
	close(fds[STOUP_WIRE_FD_PAGE]);
	st->bell_fd = fds[STOUP_WIRE_FD_DOORBELL];
	if (rc < 0) {
		close_all(fds + STOUP_WIRE_FD_FIXED, reply.volume_here);
		return rc;
	}
	rc = add_volumes(st, fds + STOUP_WIRE_FD_FIXED, reply.volume_here, err);
	if (rc == 0 && reply.volume_here < reply.volume_cnt)
		rc = pull_volumes(st, reply.volume_here, deadline_ns, err);
	return rc;
}

/* ---- a client -------------------------------------------------------------------------------- */

/* The page that tells a child of a fork that it is one. */
static int mark_own(struct stoup *st, struct stoup_error *err)
{
	void *page = mmap(NULL, STOUP_OS_PAGE_LEN, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return stoup_error_set(err, -ENOMEM, "no memory for a page");
	st->own = page;
	st->pid = getpid();
	atomic_store_explicit(st->own,
		madvise(page, STOUP_OS_PAGE_LEN, MADV_WIPEONFORK) == 0 ? 1 : 2,
		memory_order_relaxed);
	return 0;
}

static struct stoup *client_new(const char *pool, const struct stoup_options *opt)
{
	struct stoup *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	st->sock_fd = st->bell_fd = -1;
	st->control_region.fd = st->control_region.ro_fd = -1;
	st->data_region.fd = st->data_region.ro_fd = -1;
	st->page_region.fd = st->page_region.ro_fd = -1;
	st->opt = *opt;
	st->opt.daemon = NULL; /* the caller's text need not live on */
	snprintf(st->pool, sizeof(st->pool), "%s", pool);
	pthread_mutex_init(&st->mutex, NULL);
	return st;
}

int stoup_client_connect(const char *pool, uint32_t dir_idx, const struct stoup_options *opt,
	uint64_t deadline_ns, struct stoup **ret, struct stoup_error *err)
{
	char dir[256], path[384];
	struct stoup *st;
	int rc = stoup_runtime_dir(dir_idx, dir, sizeof(dir));

	if (rc < 0)
		return stoup_error_set(err, rc, "the path of the runtime directory is too long");
	snprintf(path, sizeof(path), "%s/%s.sock", dir, pool);
	st = client_new(pool, opt);
	if (!st)
		return stoup_error_set(err, -ENOMEM, "no memory to attach");
	st->sock_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (st->sock_fd < 0) {
		rc = stoup_client_errno(err, "socket");
		goto out_destroy;
	}
	rc = sock_connect(st->sock_fd, path, deadline_ns);
	if (rc < 0) {
		rc = explain_connect(rc, pool, dir, path, err);
		goto out_destroy;
	}
	rc = peer_trusted(st->sock_fd, dir, dir_idx, path, err);
	if (rc == 0)
		rc = mark_own(st, err);
	if (rc == 0)
		rc = say_hello(st, deadline_ns, err);
	if (rc == 0)
		rc = stoup_snapshot_finish(st, err);
	if (rc == 0)
		rc = stoup_cells_init(st, err);
	if (rc < 0)
		goto out_destroy;
	st->daemon_seen = stoup_control_alive(st->control);
	atomic_store_explicit(&st->pulse_ns, stoup_client_now(), memory_order_relaxed);
	*ret = st;
	return 0;
out_destroy:
	stoup_client_destroy(st);
	return rc;
}

/* By name: the private directory first, then the machine's. What the first one says counts, unless
 * it only says that nothing is there. */
static int attach_name(const char *pool, const struct stoup_options *opt, uint64_t deadline_ns,
	struct stoup **ret, struct stoup_error *err)
{
	struct stoup_error here = {0};
	int rc = stoup_pool_name_valid(pool, err), first = 0;

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < 2; i++) {
		rc = stoup_client_connect(pool, i, opt, deadline_ns, ret, &here);
		if (rc == 0)
			return 0;
		if (first == 0 || first == -ENOENT) {
			first = rc;
			stoup_error_set(err, rc, "%s", here.text);
		}
	}
	if (first == -ECONNRESET) {
		first = -ECONNREFUSED;
		if (err)
			err->code = first;
	}
	return first;
}

int stoup_attach(const char *pool, const struct stoup_options *opt, struct stoup **ret,
	struct stoup_error *err)
{
	struct stoup_options read;
	uint64_t deadline_ns;
	int rc;

	if (!pool || !ret)
		return stoup_error_set(err, -EINVAL, "no pool was named");
	rc = stoup_options_read(opt, &read, err);
	if (rc < 0)
		return rc;
	deadline_ns = stoup_client_now() + read.timeout_ns;
	if (strchr(pool, '/'))
		return stoup_auto_attach(pool, &read, deadline_ns, ret, err);
	return attach_name(pool, &read, deadline_ns, ret, err);
}
