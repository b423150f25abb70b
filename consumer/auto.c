/* SPDX-License-Identifier: Apache-2.0 */
/* auto.c - attach to a store by its path: one automatic daemon per user and store, started on
 * demand.
 *
 *      path --device, inode--> pool auto-DEV-INO in the user's private runtime directory
 *
 *      +--> connect --there--> done
 *      |       | ENOENT, ECONNREFUSED, hang-up (its linger ended in this moment)
 *      |       v
 *      |    start lock auto-DEV-INO.start? --another process has it--> nap --+
 *      |       | ours                                                        |
 *      |       v                                                             |
 *      |    spawn --"held": another daemon starts, or still ends--> nap -----+
 *      |       | ready                                                       |
 *      +<------+<------------------------------------------------------------+   until the deadline
 *
 * Invariant: of any number of processes that come at once, one at a time tries to start the daemon,
 * and the daemon's own lock decides whether a second one may run. The start lock is an
 * open-file-description lock: it goes with its holder, however that one ends. The daemon outlives
 * who started it, so whoever comes while it starts waits for it like the first. Who waits for the
 * start lock goes on connecting, so that a holder that is stopped keeps nobody from a daemon that
 * runs.
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

#define NAP_FIRST_NS 2000000L   /* between two tries, doubling ... */
#define NAP_LAST_NS  100000000L /* ... up to here: 64 that wait cost a few per cent of a core */
#define ENDING_NS                                                                                  \
	UINT64_C(1000000000) /* that long a failed start beside an ending daemon is tried again */
#define START_TRIES 20       /* daemons that start and end before anybody got in */

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
	snprintf(pool, pool_cap, STOUP_AUTO_POOL_FMT, (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	return 0;
}

static int lock_open(const char *path, struct stoup_error *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? stoup_client_errno(err, path) : fd;
}

/* 0: the start lock is ours; 1 with text: another process has it; or a negative errno. */
static int lock_try(int fd, const char *path, struct stoup_error *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	if (errno != EAGAIN && errno != EACCES && errno != EINTR)
		return stoup_client_errno(err, path);
	stoup_error_set(err, -EAGAIN, "another process is starting the daemon and holds %s", path);
	return 1;
}

/* Is there nobody to attach to (any more)? */
static int nobody(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED || rc == -ECONNRESET;
}

/* Another process has the start lock, or the pool's name: its daemon starts (and who started it may
 * be gone) or ends. */
static int busy(int rc)
{
	return rc > 0 || rc == -EEXIST;
}

/* May a start that failed beside an ending daemon succeed later? What that one had, such as memory,
 * is not free yet. */
static int passes(int rc, int ending, uint64_t begin_ns)
{
	return ending && rc != -ETIMEDOUT && rc != -ENOENT &&
	       stoup_client_now() < begin_ns + ENDING_NS;
}

/* A daemon of the store that this session's directory shows, or one that another session of the user started in its
 * own: a job of cron has no XDG_RUNTIME_DIR, a login has. */
static int connect_own(struct stoup *st, const char *pool, uint64_t deadline_ns,
	struct stoup_session **ret, struct stoup_error *err)
{
	static const uint32_t others[] = {2, 3};
	int rc = stoup_session_connect(st, pool, 0, deadline_ns, ret, err);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && nobody(rc); i++)
		if (stoup_session_connect(st, pool, others[i], deadline_ns, ret, NULL) == 0)
			return 0;
	return rc;
}

/* Connect; else, with the start lock, start the daemon and connect; until the deadline. */
static int join(struct stoup *st, const struct stoup_spawn *how, int lock_fd, const char *lock_path,
	uint64_t deadline_ns, struct stoup_session **ret, struct stoup_error *err)
{
	uint64_t begin_ns = stoup_client_now();
	int rc, locked = 0, ending = 0, started_cnt = 0;
	struct stoup_error why = {0}, last = {0}; /* what we wait for; what a try brought */
	long nap_ns = NAP_FIRST_NS;

	for (;;) {
		rc = connect_own(st, how->pool, deadline_ns, ret, err);
		if (!nobody(rc))
			return rc;
		if (stoup_client_now() >= deadline_ns)
			return stoup_error_set(err, -ETIMEDOUT, "not attached within %.1f s: %s",
				(double)(deadline_ns - begin_ns) / 1e9,
				why.text[0] ? why.text : err->text);
		ending |= rc != -ENOENT;
		rc = locked ? 0 : lock_try(lock_fd, lock_path, &last);
		if (rc == 0) {
			if (!locked)
				why.text[0] = 0;
			locked = 1;
			rc = stoup_spawn(how, deadline_ns, &last);
		}
		if (rc == 0 && ++started_cnt < START_TRIES)
			continue;
		if (rc == 0)
			return stoup_error_set(err, -ETIMEDOUT,
				"the automatic daemon of %.90s starts and ends at once; see %.60s",
				how->store_path, how->log_path);
		if (busy(rc))
			why = last;
		else if (!passes(rc, ending, begin_ns) && (rc != -ETIMEDOUT || !why.text[0]))
			return stoup_error_set(err, rc, "%s", last.text);
		nap(nap_ns);
		nap_ns = nap_ns * 2 < NAP_LAST_NS ? nap_ns * 2 : NAP_LAST_NS;
	}
}

int stoup_auto_attach(
	struct stoup *st, uint64_t deadline_ns, struct stoup_session **ret, struct stoup_error *err)
{
	char dir[256], pool[STOUP_POOL_NAME_CAP], lock_path[384], log_path[384], real[PATH_MAX];
	struct stoup_error found = {0};
	struct stoup_spawn how;
	int rc, lock_fd;

	/* Anew each time: another directory may have taken the store's place. */
	rc = stoup_auto_name(st->target, pool, sizeof(pool), real, err);
	if (rc == 0)
		rc = private_dir(dir, sizeof(dir), err);
	if (rc < 0)
		return rc;
	snprintf(lock_path, sizeof(lock_path), "%s/%s.start", dir, pool);
	snprintf(log_path, sizeof(log_path), "%s/%s.log", dir, pool);
	how = (struct stoup_spawn){
		.daemon = st->opt.daemon,
		.store_path = real,
		.pool = pool,
		.log_path = log_path,
		.pool_len = st->opt.pool_len,
	};
	rc = connect_own(st, pool, deadline_ns, ret, &found);
	if (!nobody(rc))
		return rc < 0 ? stoup_error_set(err, rc, "%s", found.text) : 0;
	lock_fd = lock_open(lock_path, err);
	if (lock_fd < 0)
		return lock_fd;
	rc = join(st, &how, lock_fd, lock_path, deadline_ns, ret, &found);
	close(lock_fd);
	return rc < 0 ? stoup_error_set(err, rc, "%s", found.text) : 0;
}
