/* SPDX-License-Identifier: Apache-2.0 */
/* check_access.c - the group `stoup`, the directory of the sockets, and whether a logout removes shared memory. */
#include "producer/check.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shm/wire.h"

#define GROUP_NAME     "stoup"
#define SYSTEM_UID_MAX 999u /* systemd-logind removes nothing of users up to this one */
#define DIR_LEN_MAX    70u  /* of a socket's directory: sun_path is short */

static const char *user_name(char dst[48])
{
	const struct passwd *self = getpwuid(geteuid());

	if (self)
		snprintf(dst, 48, "%.47s", self->pw_name);
	else
		snprintf(dst, 48, "%u", (unsigned int)geteuid());
	return dst;
}

/* ---- the group -------------------------------------------------------------------------------- */

/* The system's, or that of the staged files. The struct is static. */
static const struct group *find_group(const struct stoup_check *c)
{
	const struct group *group;
	char path[PATH_MAX];
	FILE *file;

	if (c->root[0] == 0)
		return getgrnam(GROUP_NAME);
	file = fopen(stoup_check_path(c, "/etc/group", path), "re");
	do
		group = file ? fgetgrent(file) : NULL;
	while (group && strcmp(group->gr_name, GROUP_NAME) != 0);
	if (file)
		fclose(file);
	return group;
}

static int listed(const struct group *group, const char *user)
{
	for (char **at = group->gr_mem; at && *at; at++)
		if (strcmp(*at, user) == 0)
			return 1;
	return 0;
}

/* Does this process have the group? A session has the groups of when it began. */
static int has_group(gid_t gid)
{
	gid_t groups[1024];
	int cnt = getgroups((int)(sizeof(groups) / sizeof(groups[0])), groups);

	if (getegid() == gid)
		return 1;
	for (int i = 0; i < cnt; i++)
		if (groups[i] == gid)
			return 1;
	return 0;
}

static void check_group(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "group", STOUP_CHECK_OK);
	const struct group *group = find_group(c);
	char name[48];

	user_name(name);
	if (!group && geteuid() != 0) {
		stoup_check_found(line, "there is no group '" GROUP_NAME
					"': root's pools admit root alone, yours you alone");
	} else if (!group) {
		line->level = STOUP_CHECK_WARNING;
		stoup_check_found(
			line, "there is no group '" GROUP_NAME "': root's pools admit root alone");
		stoup_check_wanted(line, "whom they are for");
		stoup_check_mend(line,
			"groupadd --system " GROUP_NAME " && usermod -aG " GROUP_NAME " USER");
	} else if (geteuid() == 0 || has_group(group->gr_gid)) {
		stoup_check_found(line, "group '" GROUP_NAME "' (gid %u) is there%s",
			(unsigned int)group->gr_gid,
			geteuid() == 0 ? ", and admitted to root's pools"
				       : ", and you are a member");
	} else if (listed(group, name)) {
		line->level = STOUP_CHECK_WARNING;
		stoup_check_found(line,
			"you are a member of '" GROUP_NAME "', but this session began before");
		stoup_check_mend(line, "log in again, or: newgrp " GROUP_NAME);
	} else {
		line->level = STOUP_CHECK_WARNING;
		stoup_check_found(line,
			"you are no member of '" GROUP_NAME "': root's pools do not admit you");
		stoup_check_mend(line, "usermod -aG " GROUP_NAME " %s, then log in again", name);
	}
}

/* ---- the directory of the sockets ------------------------------------------------------------- */

/* Where a daemon of this user would make it, as the daemon chooses. */
static int runtime_dir(const struct stoup_check *c, char *dir, size_t cap)
{
	char full[PATH_MAX];
	struct stat st;
	int which = geteuid() == 0;

	if (stoup_runtime_dir(1, dir, cap) == 0 &&
		lstat(stoup_check_path(c, dir, full), &st) == 0 && S_ISDIR(st.st_mode) &&
		st.st_uid == geteuid())
		which = 1;
	return stoup_runtime_dir((uint32_t)which, dir, cap);
}

/* It is made at start, so that its parent must be ours to write. */
static void check_parent(struct stoup_check *c, struct stoup_check_line *line, const char *dir)
{
	char parent[256], full[PATH_MAX];

	snprintf(parent, sizeof(parent), "%s", dir);
	*strrchr(parent, '/') = 0;
	stoup_check_found(line, "%s will be made at start", dir);
	if (eaccess(stoup_check_path(c, parent, full), W_OK | X_OK) == 0)
		return;
	line->level = STOUP_CHECK_PROBLEM;
	stoup_check_found(line, "%s can not be made: %s: %s", dir, parent, strerror(errno));
	stoup_check_mend(line, "unset XDG_RUNTIME_DIR, or as root: install -d -m 0700 -o %u %s",
		(unsigned int)geteuid(), parent);
}

static void check_runtime_dir(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "runtime_dir", STOUP_CHECK_OK);
	char dir[256], full[PATH_MAX];
	struct stat st;

	if (runtime_dir(c, dir, sizeof(dir)) < 0 || strlen(dir) > DIR_LEN_MAX) {
		line->level = STOUP_CHECK_PROBLEM;
		stoup_check_found(line, "the path of the sockets' directory is too long");
		stoup_check_wanted(line, "at most %u bytes", DIR_LEN_MAX);
		stoup_check_mend(line, "a shorter XDG_RUNTIME_DIR");
		return;
	}
	if (lstat(stoup_check_path(c, dir, full), &st) < 0) {
		check_parent(c, line, dir);
		return;
	}
	stoup_check_found(line, "%s (uid %u, mode %04o)", dir, (unsigned int)st.st_uid,
		(unsigned int)st.st_mode & 07777);
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 0022))
		return;
	/* Root's daemons leave the directory of a system user alone, and make one of their own. */
	if (S_ISDIR(st.st_mode) && !(st.st_mode & 0022) && geteuid() == 0) {
		stoup_check_found(line,
			"%s is user %u's: that user's daemon makes its sockets there", dir,
			(unsigned int)st.st_uid);
		return;
	}
	line->level = STOUP_CHECK_PROBLEM;
	stoup_check_wanted(
		line, "a directory of uid %u that nobody else can write", (unsigned int)geteuid());
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid())
		stoup_check_mend(line, "chmod go-w %s", dir);
	else
		stoup_check_mend(line, "as root: rm -r %s, or chown %u %s", dir,
			(unsigned int)geteuid(), dir);
}

/* ---- RemoveIPC -------------------------------------------------------------------------------- */

/* The last RemoveIPC= of one file; `now` where it has none. */
static int setting_of(const struct stoup_check *c, const char *path, int now)
{
	char full[PATH_MAX], line[256];
	FILE *file = fopen(stoup_check_path(c, path, full), "re");

	while (file && fgets(line, sizeof(line), file)) {
		char *at = line + strspn(line, " \t");

		if (strncmp(at, "RemoveIPC", 9) != 0)
			continue;
		at += 9;
		at += strspn(at, " \t");
		if (*at++ != '=')
			continue;
		at += strspn(at, " \t");
		at[strcspn(at, " \t\n")] = 0;
		now = strcasecmp(at, "no") && strcasecmp(at, "false") && strcasecmp(at, "off") &&
		      strcasecmp(at, "n") && strcasecmp(at, "f") && strcmp(at, "0") != 0;
	}
	if (file)
		fclose(file);
	return now;
}

static int conf(const struct dirent *found)
{
	size_t len = strlen(found->d_name);

	return len > 5 && strcmp(found->d_name + len - 5, ".conf") == 0;
}

/* What logind does: yes, unless a file says otherwise; drop-ins win over the file. */
static int remove_ipc(const struct stoup_check *c)
{
	static const char *const dirs[] = {"/usr/lib/systemd/logind.conf.d",
		"/run/systemd/logind.conf.d", "/etc/systemd/logind.conf.d"};
	int now = setting_of(c, "/etc/systemd/logind.conf", 1);

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char full[PATH_MAX], path[PATH_MAX];
		struct dirent **names = NULL;
		int cnt = scandir(stoup_check_path(c, dirs[i], full), &names, conf, alphasort);

		for (int n = 0; n < cnt; n++) {
			snprintf(path, sizeof(path), "%s/%s", dirs[i], names[n]->d_name);
			now = setting_of(c, path, now);
			free(names[n]);
		}
		free(names);
	}
	return now;
}

static void check_remove_ipc(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "remove_ipc", STOUP_CHECK_OK);
	char name[48], path[PATH_MAX], full[PATH_MAX];

	snprintf(path, sizeof(path), "/var/lib/systemd/linger/%s", user_name(name));
	if (geteuid() <= SYSTEM_UID_MAX)
		stoup_check_found(line, "root's and system users' shared memory is left alone");
	else if (access(stoup_check_path(c, "/run/systemd/system", full), F_OK) < 0)
		stoup_check_found(line, "no systemd here: a logout removes nothing");
	else if (!remove_ipc(c))
		stoup_check_found(line, "RemoveIPC=no: a logout removes nothing");
	else if (access(stoup_check_path(c, path, full), F_OK) == 0)
		stoup_check_found(line, "%s lingers: a logout removes nothing", name);
	else {
		line->level = STOUP_CHECK_WARNING;
		stoup_check_found(line,
			"RemoveIPC=yes: when %s logs out, names in /dev/shm of a daemon that runs on are removed",
			name);
		stoup_check_mend(line,
			"loginctl enable-linger %s, RemoveIPC=no in /etc/systemd/logind.conf, or a "
			"system user for stoupd",
			name);
	}
}

void stoup_check_access(struct stoup_check *c)
{
	check_group(c);
	check_runtime_dir(c);
	check_remove_ipc(c);
}
