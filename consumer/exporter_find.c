/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_find.c - names of the pools that this user's programs can look at.
 *
 *      /dev/shm/stoup.UID.NAME.ctl   of this user, root, the owner of /run/stoup: what stoup_control_open opens
 *      NAME.sock                     in the directories of sockets: the object has no name any more, or may not be read
 *
 * Everybody may make names in /dev/shm: what is no pool's name, or not its user's file, is not taken.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "consumer/exporter.h"
#include "shm/control.h"
#include "shm/wire.h"

#define NAME_CAP 4096u /* names that are kept of one look; bounds what a full /dev/shm costs */

struct names {
	char **at;
	uint32_t cnt, cap;
	int rc;
};

static void name_add(struct names *names, const char *text, size_t len)
{
	char *name, **at;

	if (names->rc < 0 || names->cnt == NAME_CAP)
		return;
	name = strndup(text, len);
	if (name && stoup_pool_name_valid(name, NULL) < 0) {
		free(name);
		return;
	}
	at = names->cnt < names->cap ? names->at
	                             : realloc(names->at, (names->cap + 64) * sizeof(*at));
	if (!name || !at) {
		free(name);
		names->rc = -ENOMEM;
		return;
	}
	if (names->cnt == names->cap)
		names->cap += 64;
	names->at = at;
	names->at[names->cnt++] = name;
}

/* Is it one of the users whose objects stoup_control_open believes? */
static int looked_at(uint32_t uid)
{
	char dir[256];
	struct stat st;

	return uid == (uint32_t)geteuid() || uid == 0 ||
	       (stoup_runtime_dir(1, dir, sizeof(dir)) == 0 && stat(dir, &st) == 0 &&
		       st.st_uid == uid);
}

static void control_add(struct names *names, int dir_fd, const char *file)
{
	const char *pool;
	struct stat st;
	uint32_t uid;
	size_t len;

	if (!stoup_control_name_parse(file, &uid, &pool, &len) || !looked_at(uid))
		return;
	if (fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		(st.st_uid != 0 && st.st_uid != uid))
		return;
	name_add(names, pool, len);
}

static void socket_add(struct names *names, int dir_fd, const char *file)
{
	size_t len = strlen(file);
	struct stat st;

	if (len > 5 && strcmp(file + len - 5, ".sock") == 0 &&
		fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode))
		name_add(names, file, len - 5);
}

static void each_file(
	struct names *names, const char *dir, void (*add)(struct names *, int, const char *))
{
	DIR *stream = opendir(dir);
	const struct dirent *found;

	if (!stream) {
		/* Not looked at, which is not the same as empty. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			names->rc = -errno;
		return;
	}
	while ((found = readdir(stream)) != NULL)
		add(names, dirfd(stream), found->d_name);
	closedir(stream);
}

static int automatic(const char *name)
{
	return strncmp(name, STOUP_AUTO_POOL_PREFIX, sizeof(STOUP_AUTO_POOL_PREFIX) - 1) == 0;
}

/* Does somebody listen at its socket? Asks nothing, and does not wait. 1 where it cannot be told. */
static int answers(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char dir[256];

	for (uint32_t i = 0; stoup_runtime_dir(i, dir, sizeof(dir)) == 0; i++) {
		int fd, rc;

		if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s.sock", dir,
			    name) >= sizeof(addr.sun_path))
			continue;
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			return 1;
		rc = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? errno : 0;
		close(fd);
		if (rc == 0 || rc == EAGAIN) /* its queue is full */
			return 1;
	}
	return 0;
}

enum life {
	LIVES,
	DEAD,
	NOTHING
};

/* Told by objects; by the socket where there is none, since names can be removed. A socket alone at which nobody listens
 * is no pool. */
static enum life life_of(const char *name)
{
	uint32_t uids[3] = {(uint32_t)geteuid(), 0, 0}, cnt = 2;
	char dir[256], path[160] = "/dev/shm";
	char *object = path + strlen(path);
	struct stat st;
	int found = 0;

	if (stoup_runtime_dir(1, dir, sizeof(dir)) == 0 && stat(dir, &st) == 0)
		uids[cnt++] = (uint32_t)st.st_uid;
	for (uint32_t i = 0; i < cnt; i++) {
		if (stoup_control_name(uids[i], name, object, sizeof(path) - 8) < 0)
			continue;
		if (stoup_control_owner(object) != 0)
			return LIVES;
		found |= lstat(path, &st) == 0;
	}
	return found ? DEAD : answers(name) ? LIVES : NOTHING;
}

static int by_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	return strcmp(x, y);
}

/* Those that are left out when there are too many come last: first of all those of dead daemons. What is no pool is
 * dropped, and not counted among them. */
static int rank(char **names, uint32_t *cnt)
{
	char **sorted = malloc(*cnt * sizeof(*sorted));
	uint8_t *ranks = malloc(*cnt);
	uint32_t at = 0;

	if (!sorted || !ranks) {
		free(ranks);
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < *cnt; i++)
		ranks[i] = (uint8_t)(2 * (int)life_of(names[i]) + automatic(names[i]));
	for (uint8_t r = 0; r < 2 * NOTHING; r++)
		for (uint32_t i = 0; i < *cnt; i++)
			if (ranks[i] == r)
				sorted[at++] = names[i];
	for (uint32_t i = 0; i < *cnt; i++)
		if (ranks[i] >= 2 * NOTHING)
			free(names[i]);
	memcpy(names, sorted, at * sizeof(*sorted));
	*cnt = at;
	free(ranks);
	free(sorted);
	return 0;
}

int stoup_exporter_find(char ***ret, uint32_t *ret_cnt)
{
	struct names names = {.rc = 0};
	uint32_t kept = 0;
	char dir[256];

	each_file(&names, "/dev/shm", control_add);
	for (uint32_t i = 0; stoup_runtime_dir(i, dir, sizeof(dir)) == 0; i++)
		each_file(&names, dir, socket_add);
	if (names.cnt > 1)
		qsort(names.at, names.cnt, sizeof(*names.at), by_name);
	for (uint32_t i = 0; i < names.cnt; i++) {
		if (kept > 0 && strcmp(names.at[kept - 1], names.at[i]) == 0)
			free(names.at[i]);
		else
			names.at[kept++] = names.at[i];
	}
	if (names.rc == 0 && kept > STOUP_EXPORTER_POOLS)
		names.rc = rank(names.at, &kept);
	*ret = names.at;
	*ret_cnt = kept;
	return names.rc;
}
