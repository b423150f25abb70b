/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pool.c - which control object a tool's POOL argument means, and two ways to it.
 *
 *      by name --found--> mapped
 *         | refused, or no such name
 *         +--> the attach socket: hello as a monitor --> its descriptor --> mapped
 *                   | refused: the daemon's text says who may
 *                   +--> not reached: what the name said stands
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "consumer/client.h"
#include "consumer/tool_pool.h"
#include "shm/json.h"
#include "shm/wire.h"

#define ANSWER_MS 900 /* longest wait for a daemon that may hang: tools answer within a second */

/* ---- through the socket ----------------------------------------------------------------------- */

static int connect_to(const char *dir, const char *pool)
{
	const struct timeval wait = {.tv_usec = ANSWER_MS * 1000};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, rc = 0;

	if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s.sock", dir, pool) >=
		sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* As when attaching: what a stranger says of a pool is not to be shown as its state. */
static int trusted(int sock_fd, const char *dir, uint32_t dir_idx)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;

	if (getsockopt(sock_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.uid == 0 || peer.uid == geteuid() ||
	       (dir_idx == 1 && stat(dir, &st) == 0 && st.st_uid == peer.uid);
}

/* The descriptor of the control object. -EACCES with the daemon's text: it was asked, and refused. */
static int ask(int sock_fd, const char *pool, struct stoup_error *err)
{
	struct stoup_wire_hello hello = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_HELLO,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR,
		.flags = STOUP_HELLO_MONITOR,
		.fingerprint = stoup_abi_fingerprint()};
	struct stoup_wire_reply reply;
	uint32_t fd_cnt = 0;
	int64_t len;
	int fd = -1, rc;

	rc = stoup_wire_send(sock_fd, &hello, sizeof(hello), NULL, 0);
	len = rc < 0 ? rc : stoup_wire_recv(sock_fd, &reply, sizeof(reply), &fd, 1, &fd_cnt);
	if (len == -EAGAIN)
		return stoup_error_set(err, -ETIMEDOUT,
			"the daemon of pool '%s' did not answer within %.1f s: stopped, or stuck?",
			pool, ANSWER_MS / 1e3);
	if (len < 0)
		return stoup_error_set(err, (int)len, "asking the daemon of pool '%s': %s", pool,
			strerror((int)-len));
	if (len != (int64_t)sizeof(reply) || reply.magic != STOUP_HELLO_MAGIC ||
		reply.kind != STOUP_WIRE_REPLY || (reply.error == 0) != (fd_cnt == 1)) {
		if (fd_cnt > 0)
			close(fd);
		return stoup_error_set(err, len == 0 ? -ECONNRESET : -EPROTO, "%s '%s' %s",
			"the daemon of pool", pool,
			len == 0 ? "hung up: it is ending" : "answers in another protocol");
	}
	if (reply.error == 0)
		return fd;
	reply.text[sizeof(reply.text) - 1] = 0;
	stoup_utf8_plain(reply.text);
	return stoup_error_set(err, reply.error < 0 && reply.error > -4096 ? reply.error : -EPROTO,
		"%s", reply.text);
}

static int map_control(
	int fd, const struct stoup_control **ret, size_t *ret_len, struct stoup_error *err)
{
	struct stoup_region region;
	int rc = stoup_region_map(fd, sizeof(struct stoup_control), 0, 0, &region, err);

	if (rc < 0)
		return rc;
	rc = stoup_control_verify(region.base, region.len, err);
	if (rc < 0) {
		stoup_region_fini(&region);
		return rc;
	}
	*ret = region.base;
	*ret_len = region.len;
	return 0;
}

/* As a monitor. -ENOENT: there is no daemon to be asked, `err` is untouched. */
static int by_socket(const char *pool, const struct stoup_control **ret, size_t *ret_len,
	struct stoup_error *err)
{
	char dir[256];

	for (uint32_t i = 0; stoup_runtime_dir(i, dir, sizeof(dir)) == 0; i++) {
		int sock_fd = connect_to(dir, pool), fd, rc;

		if (sock_fd < 0)
			continue;
		if (!trusted(sock_fd, dir, i)) {
			close(sock_fd);
			continue;
		}
		fd = ask(sock_fd, pool, err);
		close(sock_fd);
		if (fd < 0)
			return fd;
		rc = map_control(fd, ret, ret_len, err);
		close(fd);
		return rc;
	}
	return -ENOENT;
}

static int open_named(const char *pool, const struct stoup_control **ret, size_t *ret_len,
	struct stoup_error *err)
{
	struct stoup_error by_name = {0};
	int rc = stoup_pool_name_valid(pool, err), asked;

	if (rc < 0)
		return rc;
	rc = stoup_control_open(pool, ret, ret_len, &by_name);
	if (rc == -ENOENT || rc == -EACCES) {
		asked = by_socket(pool, ret, ret_len, err);
		if (asked != -ENOENT)
			return asked;
	}
	return rc < 0 ? stoup_error_set(err, rc, "%s", by_name.text) : 0;
}

/* ---- which pool ------------------------------------------------------------------------------- */

int stoup_pool_resolve(const char *pool, const struct stoup_control **ret, size_t *ret_len,
	struct stoup_error *err)
{
	char name[STOUP_POOL_NAME_CAP], real[PATH_MAX];
	int rc;

	if (!strchr(pool, '/'))
		return open_named(pool, ret, ret_len, err);
	rc = stoup_auto_name(pool, name, sizeof(name), real, err);
	if (rc < 0)
		return rc;
	rc = open_named(name, ret, ret_len, err);
	if (rc == -ENOENT)
		return stoup_error_set(err, rc,
			"the store %.150s has no automatic daemon now; it is started by whoever "
			"attaches",
			real);
	return rc;
}

int stoup_daemon_beside(char *dst, size_t cap)
{
	char own[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;
	int n;

	if (len <= 0)
		return 0;
	own[len] = 0;
	slash = strrchr(own, '/');
	if (!slash)
		return 0;
	*slash = 0;
	n = snprintf(dst, cap, "%s/stoupd", own);
	return n > 0 && (size_t)n < cap && access(dst, X_OK) == 0;
}
