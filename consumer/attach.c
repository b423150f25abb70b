/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - join a running pool: find its socket, trust its owner; by name, or by a store's path.
 *
 *      NAME.sock in a runtime directory --connect--> credentials --> hello (hello.c) --> session
 *            |              |                             |
 *         ENOENT      EACCES, ECONNREFUSED          somebody else's
 *
 * Trust: a pool hands out bytes that a strategy acts upon, so only a daemon of root, of the own
 * user, or of the owner of /run/stoup (which root made) is believed.
 *
 * Invariant: every descriptor is close-on-exec. Of those that came only the socket and the doorbell
 * stay open; all else lives on as mappings.
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
			"%s: permission denied; its owner (uid %u) alone may use it; mend: that "
			"user starts stoupd with --group or --allow-user",
			what, (unsigned int)st.st_uid);
	if (getgrgid_r(st.st_gid, &group, space, sizeof(space), &found) != 0 || !found)
		return stoup_error_set(err, -EACCES,
			"%s: permission denied; it may be used by the group with number %u", what,
			st.st_gid);
	return stoup_error_set(err, -EACCES,
		"%s: permission denied; it may be used by group '%s': usermod -aG %s USER, then "
		"log in again",
		what, found->gr_name, found->gr_name);
}

/* A store's directory that was named like a pool, without the slash? */
static int is_directory(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

static int explain_connect(
	int code, const char *pool, const char *dir, const char *path, struct stoup_error *err)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		if (is_directory(pool))
			return stoup_error_set(err, -ENOENT,
				"no pool '%s' is running; the directory '%s' here is meant by '%s/', with a slash",
				pool, pool, pool);
		return stoup_error_set(err, -ENOENT,
			"no pool '%s' is running, or its socket was removed (%s/%s.sock); start "
			"it: stoupd --store DIR --pool %s",
			pool, dir, pool, pool);
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

int stoup_sock_open(const char *pool, uint32_t dir_idx, uint64_t deadline_ns, int *ret_fd,
	struct stoup_error *err)
{
	char dir[256], path[384];
	int rc = stoup_runtime_dir(dir_idx, dir, sizeof(dir)), fd;

	if (rc < 0)
		return stoup_error_set(err, rc, "the path of the runtime directory is too long");
	snprintf(path, sizeof(path), "%s/%s.sock", dir, pool);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return stoup_client_errno(err, "socket");
	rc = sock_connect(fd, path, deadline_ns);
	if (rc < 0)
		rc = explain_connect(rc, pool, dir, path, err);
	else
		rc = peer_trusted(fd, dir, dir_idx, path, err);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

/* ---- a session ------------------------------------------------------------------------------- */

/* May this be the daemon that comes after the current session's? Two directories may each have a pool of
 * one name, of two users; one user has a name but once. */
static int may_follow(struct stoup_session *ses, struct stoup_error *err)
{
	const struct stoup_session *old = ses->client->current;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(ses->sock_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return stoup_error_set(
			err, -errno, "credentials of pool '%s': %s", ses->pool, strerror(errno));
	ses->daemon_uid = peer.uid;
	if (!old || old->dir_idx == ses->dir_idx || old->daemon_uid == ses->daemon_uid)
		return 0;
	return stoup_error_set(err, -ENOENT,
		"the daemon of user %u is not running; that of user %u is another pool",
		(unsigned int)old->daemon_uid, (unsigned int)ses->daemon_uid);
}

/* One try. */
static int connect_once(struct stoup *st, const char *pool, uint32_t dir_idx, uint64_t deadline_ns,
	struct stoup_session **ret, struct stoup_error *err)
{
	struct stoup_session *ses;
	int rc = stoup_session_make(st, pool, dir_idx, &ses, err);

	if (rc < 0)
		return rc;
	rc = stoup_sock_open(pool, dir_idx, deadline_ns, &ses->sock_fd, err);
	if (rc == 0)
		rc = may_follow(ses, err);
	if (rc == 0)
		rc = stoup_hello(ses, deadline_ns, err);
	if (rc == 0)
		rc = stoup_cells_init(ses, err);
	if (rc < 0) {
		stoup_session_destroy(ses);
		return rc;
	}
	ses->daemon_seen = stoup_control_alive(ses->control);
	atomic_store_explicit(&ses->pulse_ns, stoup_client_now(), memory_order_relaxed);
	*ret = ses;
	return 0;
}

int stoup_session_connect(struct stoup *st, const char *pool, uint32_t dir_idx,
	uint64_t deadline_ns, struct stoup_session **ret, struct stoup_error *err)
{
	int rc = -ECONNRESET;

	/* Cut off: this process had no processor for the time that a hello may take, or its snapshot was too old
	 * before all of it was here and the next is the newest. A daemon that is ending is not there next time. */
	for (int i = 0; i < STOUP_TRY_CNT && (rc == -ECONNRESET || rc == -ESTALE); i++)
		rc = connect_once(st, pool, dir_idx, deadline_ns, ret, err);
	return rc;
}

/* By name: the private directory first, then the machine's, then those of the user's other sessions. What the first
 * one says counts, unless it only says that nothing is there. */
static int attach_name(
	struct stoup *st, uint64_t deadline_ns, struct stoup_session **ret, struct stoup_error *err)
{
	struct stoup_error here = {0};
	int rc, first = 0;

	for (uint32_t i = 0; i < STOUP_RUNTIME_DIR_CNT; i++) {
		rc = stoup_session_connect(st, st->target, i, deadline_ns, ret, &here);
		if (rc == 0)
			return 0;
		/* What lies in the others may be anybody's: it counts where it is a daemon of ours. */
		if (i < 2 && (first == 0 || first == -ENOENT)) {
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

int stoup_session_attach(
	struct stoup *st, uint64_t deadline_ns, struct stoup_session **ret, struct stoup_error *err)
{
	return st->automatic ? stoup_auto_attach(st, deadline_ns, ret, err)
	                     : attach_name(st, deadline_ns, ret, err);
}

int stoup_attach(const char *pool, const struct stoup_options *opt, struct stoup **ret,
	struct stoup_error *err)
{
	struct stoup_session *ses;
	struct stoup_options read;
	uint64_t deadline_ns;
	struct stoup *st;
	int rc;

	if (!pool || !ret)
		return stoup_error_set(err, -EINVAL, "no pool was named");
	rc = stoup_options_read(opt, &read, err);
	if (rc == 0 && !strchr(pool, '/'))
		rc = stoup_pool_name_valid(pool, err);
	if (rc < 0)
		return rc;
	deadline_ns = stoup_client_now() + read.timeout_ns;
	rc = stoup_client_make(pool, &read, &st, err);
	if (rc < 0)
		return rc;
	st->timeout_open = !opt || opt->timeout_ns == 0;
	rc = stoup_session_attach(st, deadline_ns, &ses, err);
	if (rc < 0) {
		stoup_client_destroy(st);
		return rc;
	}
	stoup_session_install(st, ses);
	*ret = st;
	return 0;
}
