/* SPDX-License-Identifier: Apache-2.0 */
/* auto.c - attach to a store by its path: one automatic daemon per user and store, started on
 * demand.
 *
 *      path --device, inode--> pool auto-DEV-INO in the user's private runtime directory
 *
 *      connect --there--> done
 *         | ENOENT, ECONNREFUSED, hang-up (its linger ended in this moment)
 *         v
 *      lock auto-DEV-INO.start (one starter, others wait) --> connect again --there--> done
 *         |                                                              | not there
 *         +<------------------- spawn, wait for "ready" <----------------+
 *
 * Invariant: of any number of processes that come at once, one at a time tries to start the daemon,
 * and the daemon's own lock decides whether a second one may run. The start lock is an
 * open-file-description lock: it goes with its holder, however that one ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "consumer/client.h"
#include "shm/wire.h"

#define LOCK_RETRY_NS  2000000  /* between two looks at the start lock */
#define START_RETRY_NS 50000000 /* the old daemon is still ending */
#define START_TRIES                                                                                \
	20 /* of those: one second, longer than an orderly end takes with nobody attached */

static void nap(long ns)
{
	const struct timespec ts = {.tv_nsec = ns};

	nanosleep(&ts, NULL);
}

/* The user's private runtime directory, made where it is missing. Nobody else may own or enter it:
 * it may stand in /tmp, where everybody can make names. */
static int private_dir(char *dir, size_t cap, struct stoup_error *err)
{
	struct stat st;
	int rc = stoup_runtime_dir(0, dir, cap);

	if (rc < 0)
		return stoup_error_set(err, rc, "the path of the runtime directory is too long");
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return stoup_error_set(
			err, -errno, "mkdir %s: %s; set XDG_RUNTIME_DIR", dir, strerror(errno));
	if (lstat(dir, &st) < 0)
		return stoup_error_set(err, -errno, "%s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
		return stoup_error_set(err, -EACCES,
			"%s must be a directory that only you can write (owner %u, mode %03o): "
			"remove it, or set "
			"XDG_RUNTIME_DIR",
			dir, st.st_uid, st.st_mode & 0777);
	return 0;
}

int stoup_auto_name(
	const char *path, char *pool, size_t pool_cap, char *real, struct stoup_error *err)
{
	struct stat st;

	if (!realpath(path, real) || stat(real, &st) < 0)
		return stoup_error_set(err, -errno, "store %.150s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return stoup_error_set(
			err, -ENOTDIR, "%.150s is no store: it is not a directory", path);
	snprintf(pool, pool_cap, "auto-%llx-%llx", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	return 0;
}

/* Wait for the start lock. The descriptor that holds it, or a negative errno. */
static int lock_start(const char *path, uint64_t deadline_ns, struct stoup_error *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), rc;

	if (fd < 0)
		return stoup_error_set(err, -errno, "%s: %s", path, strerror(errno));
	while (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		rc = -errno;
		if (rc == -EAGAIN || rc == -EACCES || rc == -EINTR)
			rc = stoup_client_now() < deadline_ns ? 0 : -ETIMEDOUT;
		if (rc < 0) {
			close(fd);
			return stoup_error_set(err, rc,
				"another process is starting the daemon and holds %s: %s", path,
				strerror(-rc));
		}
		nap(LOCK_RETRY_NS);
	}
	return fd;
}

/* Is there nobody to attach to (any more)? */
static int nobody(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED || rc == -ECONNRESET;
}

/* Under the start lock: connect, else start the daemon and connect. A start can fail because the
 * daemon before holds the pool's name for a last moment, so it is tried again for a while. */
static int start_and_connect(const struct stoup_spawn *how, const struct stoup_options *opt,
	uint64_t deadline_ns, struct stoup **ret, struct stoup_error *err)
{
	int rc, ending = 0;

	for (int i = 0;; i++) {
		rc = stoup_client_connect(how->pool, 0, opt, deadline_ns, ret, err);
		if (!nobody(rc))
			return rc;
		ending |= rc != -ENOENT;
		rc = stoup_spawn(how, deadline_ns, err);
		if (rc < 0 && (!ending || i >= START_TRIES || rc == -ETIMEDOUT || rc == -ENOENT))
			return rc;
		if (i >= 2 * START_TRIES || stoup_client_now() >= deadline_ns)
			return rc < 0 ? rc
			              : stoup_error_set(err, -ETIMEDOUT,
						"the automatic daemon of %.120s starts and ends at "
						"once; see %.90s",
						how->store_path, how->log_path);
		if (rc < 0)
			nap(START_RETRY_NS);
	}
}

int stoup_auto_attach(const char *path, const struct stoup_options *opt, uint64_t deadline_ns,
	struct stoup **ret, struct stoup_error *err)
{
	char dir[256], pool[STOUP_POOL_NAME_CAP], lock_path[384], log_path[384], real[PATH_MAX];
	struct stoup_error found = {0};
	struct stoup_spawn how;
	int rc, lock_fd;

	rc = stoup_auto_name(path, pool, sizeof(pool), real, err);
	if (rc == 0)
		rc = private_dir(dir, sizeof(dir), err);
	if (rc < 0)
		return rc;
	snprintf(lock_path, sizeof(lock_path), "%s/%s.start", dir, pool);
	snprintf(log_path, sizeof(log_path), "%s/%s.log", dir, pool);
	how = (struct stoup_spawn){
		.daemon = opt->daemon,
		.store_path = real,
		.pool = pool,
		.log_path = log_path,
		.pool_len = opt->pool_len,
	};
	rc = stoup_client_connect(pool, 0, opt, deadline_ns, ret, &found);
	if (!nobody(rc))
		return rc < 0 ? stoup_error_set(err, rc, "%s", found.text) : 0;
	lock_fd = lock_start(lock_path, deadline_ns, err);
	if (lock_fd < 0)
		return lock_fd;
	rc = start_and_connect(&how, opt, deadline_ns, ret, &found);
	close(lock_fd);
	return rc < 0 ? stoup_error_set(err, rc, "%s", found.text) : 0;
}
