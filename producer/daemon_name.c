/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_name.c - whose name a pool is: runtime directory, lock file, group, the control object's name.
 *
 * One daemon per name: an open-file-description lock on a private file decides, never a pid. Where two
 * users' sessions do not share a runtime directory, the living daemon of the control object counts too.
 * The lock file stays: unlinking it would let two daemons lock two files of one name.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_LOOK_NS UINT64_C(1000000000) /* how often the control object's name is looked at */

/* ---- directory, lock, group --------------------------------------------------------------------------------- */

/* A directory of ours: made with `mode` when absent; another's or a link is refused. */
static int own_dir(const char *path, mode_t mode, struct stoup_error *err)
{
	struct stat st;

	/* The mode is what is said here, whatever the umask: others must pass, or must not. */
	if (mkdir(path, mode) == 0) {
		if (chmod(path, mode) < 0)
			return stoup_error_set(err, -errno, "chmod %s: %s", path, strerror(errno));
	} else if (errno != EEXIST) {
		return stoup_error_set(err, -errno, "mkdir %s: %s", path, strerror(errno));
	}
	if (lstat(path, &st) < 0)
		return stoup_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0022))
		return stoup_error_set(err, -EPERM,
			"%s must be a directory of uid %u that nobody else can write; mend: rm or "
			"chown it",
			path, (unsigned int)geteuid());
	return 0;
}

/* The machine's runtime directory, where it was made for our user: a system user's pool is for others. */
static int owns_system_dir(void)
{
	struct stat st;
	char dir[96];

	return stoup_runtime_dir(1, dir, sizeof(dir)) == 0 && lstat(dir, &st) == 0 &&
	       S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

int stoup_name_paths(struct stoup_daemon *d, struct stoup_error *err)
{
	/* The automatic daemon is one user's own: its socket is nobody else's business. */
	uint32_t which = (geteuid() == 0 || owns_system_dir()) && !d->opt.automatic ? 1 : 0;
	char dir[96];
	int rc = -ENAMETOOLONG;

	if (stoup_runtime_dir(which, dir, sizeof(dir)) == 0)
		rc = own_dir(dir, which == 1 ? 0755 : 0700, err);
	if (rc < 0 && which == 1 && stoup_runtime_dir(0, dir, sizeof(dir)) == 0)
		rc = own_dir(dir, 0700, err);
	if (rc == -ENAMETOOLONG)
		return stoup_error_set(err, rc,
			"the runtime directory's path is too long; mend: a shorter XDG_RUNTIME_DIR");
	if (rc < 0)
		return rc;
	/* At most 48 bytes of name behind at most 95 of directory. */
	snprintf(d->sock_path, sizeof(d->sock_path), "%.70s/%s.sock", dir, d->opt.pool);
	snprintf(d->lock_path, sizeof(d->lock_path), "%.70s/%s.lock", dir, d->opt.pool);
	return strlen(dir) <= 70
	               ? 0
	               : stoup_error_set(err, -ENAMETOOLONG,
				 "%s: the path is too long (at most 70 bytes); mend: a shorter XDG_RUNTIME_DIR",
				 dir);
}

/* The name is another living daemon's. */
int stoup_name_held(struct stoup_daemon *d, uint32_t owner, struct stoup_error *err)
{
	d->held = 1;
	if (owner == 0)
		return stoup_error_set(err, -EEXIST,
			"pool '%s' is served already by another process; mend: another --pool name",
			d->opt.pool);
	return stoup_error_set(err, -EEXIST,
		"pool '%s' is served already by process %u; mend: another --pool name, or stop it: kill %u",
		d->opt.pool, owner, owner);
}

int stoup_name_lock(struct stoup_daemon *d, struct stoup_error *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char text[32] = {0};
	uint32_t owner = 0;

	d->lock_fd = open(d->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (d->lock_fd < 0 || fchmod(d->lock_fd, 0600) < 0)
		return stoup_error_set(err, -errno, "%s: %s", d->lock_path, strerror(errno));
	/* Held by the open file description: no other process can release it, and death does. */
	if (fcntl(d->lock_fd, F_OFD_SETLK, &lock) < 0) {
		/* The number is a help for people, written a moment after the lock was taken. */
		for (int try = 0; try < 20 && owner == 0; try++) {
			if (pread(d->lock_fd, text, sizeof(text) - 1, 0) > 0)
				owner = (uint32_t)strtoul(text, NULL, 10);
			if (owner && kill((pid_t)owner, 0) < 0 && errno == ESRCH)
				owner = 0;
			if (owner == 0)
				usleep(5000);
		}
		return stoup_name_held(d, owner, err);
	}
	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(d->lock_fd, 0) < 0 || pwrite(d->lock_fd, text, strlen(text), 0) < 0)
		return stoup_error_set(err, -errno, "%s: %s", d->lock_path, strerror(errno));
	return 0;
}

int stoup_name_group(struct stoup_daemon *d, struct stoup_error *err)
{
	const char *name = d->opt.group ? d->opt.group : "stoup";
	const struct group *group = getgrnam(name);

	d->group_gid = (gid_t)-1;
	if (!group)
		return d->opt.group ? stoup_error_set(err, -ENOENT,
					      "there is no group '%s'; mend: groupadd --system %s",
					      name, name)
		                    : 0;
	/* The group stoup admits by default where the administrator made it; only for the system's pools. */
	if (!d->opt.group && geteuid() != 0)
		return 0;
	d->group_gid = group->gr_gid;
	snprintf(d->group_name, sizeof(d->group_name), "%s", name);
	return 0;
}

/* Is the name that lies there the object that we made? */
static int name_ours(const struct stoup_daemon *d)
{
	struct stat named, own;
	char path[128];

	snprintf(path, sizeof(path), "/dev/shm%s", d->control_name);
	return lstat(path, &named) == 0 && fstat(d->control_region.fd, &own) == 0 &&
	       named.st_ino == own.st_ino && named.st_dev == own.st_dev;
}

/* An object without a name can not be given one again: the kernel refuses a link to what was unlinked. */
void stoup_name_tick(struct stoup_daemon *d)
{
	if (d->name_lost || d->now_ns < d->name_look_ns)
		return;
	d->name_look_ns = d->now_ns + NAME_LOOK_NS;
	if (name_ours(d))
		return;
	d->name_lost = 1;
	stoup_log_error(d, -ENOENT,
		"/dev/shm%s was removed: consumers go on, stoup stat asks the socket; mend: loginctl "
		"enable-linger USER, RemoveIPC=no in logind.conf, or a system user for stoupd",
		d->control_name);
}

/* Remove the control object's name, if it still is ours. */
void stoup_name_unlink(const struct stoup_daemon *d)
{
	if (name_ours(d))
		shm_unlink(d->control_name);
}
