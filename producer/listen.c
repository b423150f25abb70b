/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c - the attach socket's name: made at the start, and made again when somebody removed it.
 *
 *      make --> name is ours --removed--> said, make again every second --> name is ours
 *                      \--another lies there: said, left alone
 *
 * A runtime directory may go while the daemon lives (systemd removes a user's with its last session), or be
 * swept. Consumers that are attached do not need the name; who comes does.
 *
 * If the daemon dies: the name lies there until the next daemon of the pool, which holds the lock, removes it.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "producer/chores.h"

#define LOOK_NS UINT64_C(1000000000) /* how often the name is looked at */

/* Group and mode of the socket: who may connect at all. The hello's check decides. */
static int socket_admit(const struct stoup_daemon *d, struct stoup_error *err)
{
	uint32_t mode = stoup_access_socket_mode(d);

	/* Where everybody may connect, the group need not own it. */
	if (d->group_gid != (gid_t)-1 && !(mode & S_IWOTH) &&
		chown(d->sock_path, (uid_t)-1, d->group_gid) < 0)
		return stoup_error_set(err, -errno,
			"%s: giving the socket to group '%s': %s; mend: make the daemon's user a member of "
			"it, or --allow-group %s instead of --group",
			d->sock_path, d->group_name, strerror(errno), d->group_name);
	if (chmod(d->sock_path, (mode_t)mode) < 0)
		return stoup_error_set(err, -errno, "chmod %s: %s", d->sock_path, strerror(errno));
	return stoup_access_reach(d, err);
}

int stoup_listen(struct stoup_daemon *d, struct stoup_error *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
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
	rc = socket_admit(d, err);
	if (rc < 0)
		return rc;
	if (listen(d->listen_fd, (int)STOUP_PENDING_CAP) < 0)
		return stoup_error_set(err, -errno, "listen %s: %s", d->sock_path, strerror(errno));
	if (stat(d->sock_path, &st) < 0)
		return stoup_error_set(err, -errno, "stat %s: %s", d->sock_path, strerror(errno));
	d->sock_dev = st.st_dev;
	d->sock_ino = st.st_ino;
	rc = stoup_epoll_add(d, d->listen_fd, EPOLLIN, STOUP_TAG(STOUP_TAG_LISTEN, 0));
	return rc < 0 ? stoup_error_set(err, rc, "epoll: %s", strerror(-rc)) : 0;
}

void stoup_listen_watch(struct stoup_daemon *d, int on)
{
	struct epoll_event event = {
		.events = on ? EPOLLIN : 0, .data.u64 = STOUP_TAG(STOUP_TAG_LISTEN, 0)};

	if (d->listen_off == !on)
		return;
	d->listen_off = !on;
	epoll_ctl(d->epoll_fd, EPOLL_CTL_MOD, d->listen_fd, &event);
}

/* Ours: 1; another's: 0; none: -ENOENT, or what else stands in the way. */
static int name_ours(const struct stoup_daemon *d)
{
	struct stat st;

	if (lstat(d->sock_path, &st) < 0)
		return -errno;
	return st.st_dev == d->sock_dev && st.st_ino == d->sock_ino;
}

/* It is tried again every second: what is in the way is all there is to mend. */
static void said_once(struct stoup_daemon *d, int code, const char *why, const char *mend)
{
	if (!d->sock_lost)
		stoup_log_error(d, code,
			"%s was removed, so that nobody can attach (who is attached goes on): %s; mend: %s",
			d->sock_path, why, mend);
	d->sock_lost = 1;
}

void stoup_listen_tick(struct stoup_daemon *d)
{
	struct stoup_error err = {0};
	int ours, old = d->listen_fd;

	if (d->listen_fd < 0 || d->now_ns < d->sock_look_ns)
		return;
	d->sock_look_ns = d->now_ns + LOOK_NS;
	ours = name_ours(d);
	if (ours == 1)
		return;
	if (ours == 0) {
		said_once(d, -EEXIST, "another file has the name", "remove that one");
		return;
	}
	if (ours == -ENOENT && stoup_listen(d, &err) == 0) {
		stoup_log_info(d, "%s was removed: made again", d->sock_path);
		stoup_counter_add(d, STOUP_COUNTER_SOCKETS_REMADE, 1);
		epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, old, NULL);
		stoup_chores_close(d->closer, old);
		d->sock_lost = d->listen_off = 0;
		return;
	}
	/* The old one stays: it costs nothing. */
	if (d->listen_fd >= 0 && d->listen_fd != old) {
		unlink(d->sock_path);
		close(d->listen_fd);
	}
	d->listen_fd = old;
	said_once(d, ours, err.text[0] ? err.text : strerror(-ours),
		"make its directory again (loginctl enable-linger USER keeps it)");
}

void stoup_listen_fini(struct stoup_daemon *d)
{
	if (d->listen_fd < 0)
		return;
	if (name_ours(d) == 1)
		unlink(d->sock_path);
	/* Connections that nobody accepted are closed with it. */
	stoup_chores_close(d->closer, d->listen_fd);
	d->listen_fd = -1;
}
