/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - who may attach, who may look, and what a refusal says.
 *
 *      root, the daemon's own user -----------------------------------> attach, look
 *      --group, --allow-group, --allow-user --------------------------> attach, look
 *      --monitor-group, --monitor-user -------------------------------> look: the control object alone
 *      everybody else ------------------------------------------------> a text that says who may
 *
 * What counts are the credentials that the kernel has for the socket, with all supplementary groups; the
 * socket's mode only keeps out whom no list could admit.
 *
 * Invariant: no user database is asked after the start: that may wait for a server.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define GROUPS_CAP 1024 /* supplementary groups of a peer that are looked at */

/* ---- the lists -------------------------------------------------------------------------------- */

static int unknown(const char *name, int group, struct stoup_error *err)
{
	return group ? stoup_error_set(err, -ENOENT,
			       "there is no group '%.64s'; mend: groupadd --system %.64s, or a number",
			       name, name)
	             : stoup_error_set(err, -ENOENT,
			       "there is no user '%.64s'; mend: a name that `getent passwd` shows, or a number",
			       name);
}

int stoup_access_add(
	struct stoup_access_list *list, const char *name, int group, struct stoup_error *err)
{
	uint32_t *cnt = group ? &list->gid_cnt : &list->uid_cnt;
	uint32_t *ids = group ? list->gids : list->uids;
	const struct passwd *passwd;
	const struct group *found;
	unsigned long id;
	char *end;

	if (*cnt == STOUP_ACCESS_CAP)
		return stoup_error_set(err, -ENOSPC,
			"more than %u %s; mend: put them into one group and name that",
			STOUP_ACCESS_CAP, group ? "groups" : "users");
	errno = 0;
	id = strtoul(name, &end, 10);
	/* The highest number means "nobody in particular" to the kernel. */
	if (name[0] >= '0' && name[0] <= '9' && *end == 0) {
		if (errno || id >= UINT32_MAX)
			return stoup_error_set(
				err, -EINVAL, "'%.64s' is no number of a user or group", name);
	} else if (group) {
		found = getgrnam(name);
		if (!found)
			return unknown(name, 1, err);
		id = found->gr_gid;
	} else {
		passwd = getpwnam(name);
		if (!passwd)
			return unknown(name, 0, err);
		id = passwd->pw_uid;
	}
	ids[(*cnt)++] = (uint32_t)id;
	return 0;
}

static int listed(const uint32_t *ids, uint32_t cnt, uint32_t id)
{
	for (uint32_t i = 0; i < cnt; i++)
		if (ids[i] == id)
			return 1;
	return 0;
}

static int empty(const struct stoup_access_list *list)
{
	return list->uid_cnt == 0 && list->gid_cnt == 0;
}

/* ---- in words --------------------------------------------------------------------------------- */

/* Add one name behind the others; those that do not fit are counted. */
static void add_word(
	char *dst, size_t cap, uint32_t *left_out, const char *kind, const char *name, uint32_t id)
{
	size_t used = strlen(dst);
	char word[80];
	int len;

	if (name)
		len = snprintf(word, sizeof(word), "%s%s '%.40s'", used ? ", " : "", kind, name);
	else
		len = snprintf(word, sizeof(word), "%s%s %u", used ? ", " : "", kind, id);
	/* Room for " and 32 more". */
	if (len < 0 || *left_out > 0 || used + (size_t)len + 14 > cap) {
		(*left_out)++;
		return;
	}
	memcpy(dst + used, word, (size_t)len + 1);
}

static void describe(
	const struct stoup_access_list *list, const char *first_group, char *dst, size_t cap)
{
	uint32_t left_out = 0;

	dst[0] = 0;
	if (first_group)
		add_word(dst, cap, &left_out, "group", first_group, 0);
	for (uint32_t i = 0; i < list->gid_cnt; i++) {
		const struct group *group = getgrgid(list->gids[i]);

		add_word(
			dst, cap, &left_out, "group", group ? group->gr_name : NULL, list->gids[i]);
	}
	for (uint32_t i = 0; i < list->uid_cnt; i++) {
		const struct passwd *passwd = getpwuid(list->uids[i]);

		add_word(dst, cap, &left_out, "user", passwd ? passwd->pw_name : NULL,
			list->uids[i]);
	}
	if (left_out > 0)
		snprintf(dst + strlen(dst), cap - strlen(dst), " and %u more", left_out);
}

void stoup_access_describe(struct stoup_daemon *d)
{
	describe(&d->opt.access.attach, d->group_gid != (gid_t)-1 ? d->group_name : NULL, d->admits,
		sizeof(d->admits));
	describe(&d->opt.access.monitor, NULL, d->looks, sizeof(d->looks));
}

/* ---- the check -------------------------------------------------------------------------------- */

static int refused(const struct stoup_daemon *d, const struct ucred *cred, int monitor,
	int may_look, struct stoup_error *err)
{
	unsigned int uid = (unsigned int)cred->uid;
	char mend[112];

	if (d->group_gid != (gid_t)-1)
		snprintf(mend, sizeof(mend), "usermod -aG %s USER, then log in again",
			d->group_name);
	else
		snprintf(mend, sizeof(mend), "start stoupd with --%s-user %u, or %s GROUP",
			monitor ? "monitor" : "allow", uid,
			monitor ? "--monitor-group" : "--group");
	if (may_look)
		return stoup_error_set(err, -EACCES,
			"pool '%s' lets uid %u look (stoup stat), not attach: it admits %s; mend: %s",
			d->opt.pool, uid, d->admits[0] ? d->admits : "its owner alone", mend);
	if (d->admits[0] == 0 && !(monitor && d->looks[0]))
		return stoup_error_set(err, -EACCES,
			"pool '%s' admits its owner (uid %u) alone, not uid %u; mend: %s",
			d->opt.pool, (unsigned int)d->uid, uid, mend);
	return stoup_error_set(err, -EACCES, "pool '%s' admits %s%s%s, not uid %u; mend: %s",
		d->opt.pool, d->admits, monitor && d->admits[0] && d->looks[0] ? ", " : "",
		monitor ? d->looks : "", uid, mend);
}

int stoup_access_check(const struct stoup_daemon *d, int sock_fd, const struct ucred *cred,
	int monitor, struct stoup_error *err)
{
	const struct stoup_access_list *attach = &d->opt.access.attach;
	const struct stoup_access_list *look = &d->opt.access.monitor;
	int may_attach = cred->uid == 0 || cred->uid == d->uid;
	int may_look;
	gid_t groups[GROUPS_CAP + 1];
	socklen_t len = GROUPS_CAP * sizeof(groups[0]);
	size_t cnt = 0;

	if (may_attach)
		return 0;
	if (getsockopt(sock_fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0)
		cnt = len / sizeof(groups[0]);
	groups[cnt++] = cred->gid;
	may_attach = listed(attach->uids, attach->uid_cnt, cred->uid);
	may_look = listed(look->uids, look->uid_cnt, cred->uid);
	for (size_t i = 0; i < cnt; i++) {
		may_attach |= d->group_gid != (gid_t)-1 && groups[i] == d->group_gid;
		may_attach |= listed(attach->gids, attach->gid_cnt, groups[i]);
		may_look |= listed(look->gids, look->gid_cnt, groups[i]);
	}
	if (may_attach || (monitor && may_look))
		return 0;
	return refused(d, cred, monitor, may_look, err);
}

/* ---- what lies in the file system ------------------------------------------------------------- */

uint32_t stoup_access_socket_mode(const struct stoup_daemon *d)
{
	if (d->opt.access.socket_mode)
		return d->opt.access.socket_mode;
	/* A file has one group: where more is admitted, everybody may connect and the credentials decide. */
	if (!empty(&d->opt.access.attach) || !empty(&d->opt.access.monitor))
		return 0666;
	return d->group_gid != (gid_t)-1 ? 0660 : 0600;
}

int stoup_access_reach(const struct stoup_daemon *d, struct stoup_error *err)
{
	char path[sizeof(d->sock_path)];
	struct stat st;

	/* Root's group `stoup` that nobody asked for is no promise. */
	if (!d->opt.group && empty(&d->opt.access.attach) && empty(&d->opt.access.monitor))
		return 0;
	snprintf(path, sizeof(path), "%s", d->sock_path);
	for (char *slash = strrchr(path, '/'); slash && slash > path; slash = strrchr(path, '/')) {
		*slash = 0;
		if (stat(path, &st) < 0)
			return 0;
		if (st.st_mode & S_IXOTH || (st.st_mode & S_IXGRP && d->group_gid != (gid_t)-1 &&
						    st.st_gid == d->group_gid))
			continue;
		return stoup_error_set(err, -EACCES,
			"nobody else can enter %.60s, where the socket lies: whom the options admit could not "
			"attach; mend: as root, install -d -o %u /run/stoup (systemd: "
			"RuntimeDirectory=stoup)",
			path, (unsigned int)d->uid);
	}
	return 0;
}
