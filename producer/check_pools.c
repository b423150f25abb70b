/* SPDX-License-Identifier: Apache-2.0 */
/* check_pools.c - sockets and control objects: which daemons live, and what dead ones left.
 *
 *      control object   socket             said
 *      of a living one  answers            ok; problem when its heartbeat stopped
 *      of a dead one    refuses, or none   warning: stale
 *      none             refuses            warning: stale
 *      none             answers            warning: the object's name was removed
 *
 * Objects are read, not mapped: whoever cuts one short meanwhile harms nobody.
 */
#include "producer/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "shm/clock.h"
#include "shm/control.h"
#include "shm/format.h"
#include "shm/wire.h"

#define SEEN_CAP  4096u /* pools that are told apart; bounds what a full /dev/shm costs */
#define SILENT_NS UINT64_C(3000000000) /* as `stoup stat` has it */
#define NAME_CAP  64u
#define SOCKET_CAP                                                                                 \
	sizeof(((struct sockaddr_un *)0)->sun_path) /* nobody can listen at a longer path */

/* What is said of pools. Of hundreds the first are named and the others counted: the machine's lines keep their room. */
enum say {
	SAY_STALE,
	SAY_ODD,
	SAY_SILENT,
	SAY_NAMELESS,
	SAY_CNT
};

#define SAY_LINES 4u

enum socket_state {
	SOCKET_NONE,
	SOCKET_ANSWERS,
	SOCKET_REFUSES, /* nobody listens */
	SOCKET_CLOSED,  /* we may not connect */
};

enum control_state {
	CONTROL_NONE,
	CONTROL_LIVES,
	CONTROL_SILENT,
	CONTROL_DEAD,
	CONTROL_ODD,    /* of another release, or not one at all */
	CONTROL_HIDDEN, /* may not be read */
};

struct seen {
	char name[NAME_CAP];
	uint32_t uid, pid;
	uint64_t data_len;
	int unseen; /* of the daemon's life nothing is known: it ran in another PID namespace */
	enum control_state control;
	enum socket_state socket;
	char socket_path[SOCKET_CAP]; /* without the root */
	struct stat socket_stat;
};

struct pools {
	uint32_t cnt;
	int full;                  /* there are more than SEEN_CAP */
	uint32_t said[SAY_CNT];    /* of how many pools */
	char more_dir[SOCKET_CAP]; /* where those that are counted have sockets */
	int strange;               /* somebody else has a pool of the name that was asked for */
	uint32_t stranger;
	struct seen seen[SEEN_CAP];
};

/* Is it one of the users in whose places programs of this user look for a pool? */
static int looked_at(const struct stoup_check *c, uint32_t uid)
{
	char dir[256], full[PATH_MAX];
	struct stat st;

	return uid == (uint32_t)geteuid() || uid == 0 ||
	       (stoup_runtime_dir(1, dir, sizeof(dir)) == 0 &&
		       stat(stoup_check_path(c, dir, full), &st) == 0 && st.st_uid == uid);
}

/* The entry of that pool of that user; NULL where there is no room, or it is not asked for. Everybody may make names
 * in /dev/shm: what is no pool's name is not repeated, least of all in a command. */
static struct seen *entry(
	const struct stoup_check *c, struct pools *p, const char *text, size_t len, uint32_t uid)
{
	char name[NAME_CAP] = "";

	if (len >= NAME_CAP)
		return NULL;
	memcpy(name, text, len);
	if (stoup_pool_name_valid(name, NULL) < 0 || (c->pool && strcmp(c->pool, name) != 0) ||
		(!c->pool && geteuid() != 0 && uid != (uint32_t)geteuid()))
		return NULL;
	if (c->pool && !looked_at(c, uid)) {
		p->strange = 1;
		p->stranger = uid;
		return NULL;
	}
	for (uint32_t i = 0; i < p->cnt; i++)
		if (p->seen[i].uid == uid && strcmp(p->seen[i].name, name) == 0)
			return &p->seen[i];
	if (p->cnt == SEEN_CAP) {
		p->full = 1;
		return NULL;
	}
	strcpy(p->seen[p->cnt].name, name);
	p->seen[p->cnt].uid = uid;
	return &p->seen[p->cnt++];
}

/* ---- control objects -------------------------------------------------------------------------- */

static enum control_state control_state(int fd, struct seen *seen)
{
	struct stoup_control control;
	uint64_t beat, now = stoup_clock_ns();
	int life;

	memset(&control, 0, sizeof(control));
	/* Of one that still starts, or never did, the magic is 0; what stands before it is there. */
	if (pread(fd, &control, sizeof(control), 0) != (ssize_t)sizeof(control) ||
		control.fingerprint != stoup_abi_fingerprint())
		return CONTROL_ODD;
	seen->pid = control.daemon_pid;
	seen->data_len = control.data_len;
	life = stoup_control_life(&control);
	if (life == 0 ||
		atomic_load_explicit(&control.state, memory_order_relaxed) == STOUP_STATE_STOPPED)
		return CONTROL_DEAD;
	seen->unseen = life < 0;
	beat = atomic_load_explicit(&control.heartbeat_ns, memory_order_relaxed);
	return beat != 0 && now > beat && now - beat > SILENT_NS ? CONTROL_SILENT : CONTROL_LIVES;
}

static void see_control(struct stoup_check *c, struct pools *p, int dir_fd, const char *file)
{
	const char *pool;
	struct seen *seen;
	struct stat st;
	uint32_t uid;
	size_t len;
	int fd;

	if (!stoup_control_name_parse(file, &uid, &pool, &len))
		return;
	seen = entry(c, p, pool, len, uid);
	if (!seen)
		return;
	fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0) {
		seen->control = errno == EACCES ? CONTROL_HIDDEN : CONTROL_ODD;
		return;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_uid != 0 && st.st_uid != uid))
		seen->control = CONTROL_ODD;
	else
		seen->control = control_state(fd, seen);
	close(fd);
}

/* ---- sockets ---------------------------------------------------------------------------------- */

static enum socket_state socket_state(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, rc;

	if (strlen(path) >= sizeof(addr.sun_path))
		return SOCKET_NONE;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return SOCKET_NONE;
	rc = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? errno : 0;
	close(fd);
	if (rc == 0 || rc == EAGAIN) /* its queue is full: somebody has it open */
		return SOCKET_ANSWERS;
	return rc == ECONNREFUSED ? SOCKET_REFUSES : rc == EACCES ? SOCKET_CLOSED : SOCKET_NONE;
}

static void see_socket(struct stoup_check *c, struct pools *p, const char *dir, const char *file)
{
	char path[SOCKET_CAP], full[PATH_MAX];
	size_t len = strlen(file);
	struct seen *seen;
	struct stat st;

	if (len < 6 || strcmp(file + len - 5, ".sock") != 0 ||
		snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path) ||
		lstat(stoup_check_path(c, path, full), &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	seen = entry(c, p, file, len - 5, (uint32_t)st.st_uid);
	if (!seen || seen->socket != SOCKET_NONE)
		return;
	seen->socket = socket_state(full);
	seen->socket_stat = st;
	snprintf(seen->socket_path, sizeof(seen->socket_path), "%s", path);
}

static void see_all(struct stoup_check *c, struct pools *p)
{
	char dir[256], full[PATH_MAX];
	const struct dirent *found;
	DIR *stream = opendir(stoup_check_path(c, "/dev/shm", full));

	while (stream && (found = readdir(stream)) != NULL)
		see_control(c, p, dirfd(stream), found->d_name);
	if (stream)
		closedir(stream);
	for (uint32_t i = 0; stoup_runtime_dir(i, dir, sizeof(dir)) == 0; i++) {
		stream = opendir(stoup_check_path(c, dir, full));
		while (stream && (found = readdir(stream)) != NULL)
			see_socket(c, p, dir, found->d_name);
		if (stream)
			closedir(stream);
	}
}

/* ---- what is said ----------------------------------------------------------------------------- */

static void say_stale(struct stoup_check *c, const struct seen *seen)
{
	struct stoup_check_line *line = stoup_check_line(c, "stale", STOUP_CHECK_WARNING);
	char names[SOCKET_CAP + 128];
	int automatic = strncmp(seen->name, STOUP_AUTO_POOL_PREFIX,
				sizeof(STOUP_AUTO_POOL_PREFIX) - 1) == 0;

	snprintf(names, sizeof(names), "%s%s", seen->socket_path,
		seen->socket != SOCKET_NONE && seen->control == CONTROL_DEAD ? " " : "");
	if (seen->control == CONTROL_DEAD)
		snprintf(names + strlen(names), sizeof(names) - strlen(names),
			"/dev/shm/stoup.%u.%s.ctl", seen->uid, seen->name);
	if (seen->control == CONTROL_DEAD)
		stoup_check_found(line,
			"the daemon of pool '%s' (uid %u, process %u) died without an orderly end",
			seen->name, seen->uid, seen->pid);
	else
		stoup_check_found(line, "nobody listens at %.300s any more", seen->socket_path);
	if (automatic)
		stoup_check_mend(line, "rm %.400s", names);
	else
		stoup_check_mend(line,
			"start it again (stoupd --store DIR --pool %s), or rm %.400s", seen->name,
			names);
}

static void say_more(struct stoup_check *c, const struct pools *p, enum say what)
{
	static const struct {
		const char *name, *text;
	} words[] = {[SAY_STALE] = {"stale", "of which dead daemons left something"},
		[SAY_ODD] = {"control",
			"with an object of another release, or not made by its user"},
		[SAY_SILENT] = {"daemon", "that gave no sign for 3 s"},
		[SAY_NAMELESS] = {"control", "that answer, and whose objects are gone"}};
	struct stoup_check_line *line = stoup_check_line(c, words[what].name, STOUP_CHECK_WARNING);
	uint32_t cnt = p->said[what] - SAY_LINES;

	stoup_check_found(line, "%u%s more pool%s %s", cnt, p->full ? " or" : "", STOUP_PLURAL(cnt),
		words[what].text);
	stoup_check_mend(line, "for each: stoup check POOL (ls /dev/shm/stoup.*.ctl%s%s%s)",
		p->more_dir[0] ? " " : "", p->more_dir, p->more_dir[0] ? "/*.sock" : "");
}

static void say_nameless(struct stoup_check *c, const struct seen *seen)
{
	struct stoup_check_line *line = stoup_check_line(c, "control", STOUP_CHECK_WARNING);

	stoup_check_found(line,
		"pool '%s' answers, but /dev/shm/stoup.%u.%s.ctl is gone: removed at a logout "
		"(RemoveIPC), or this is another container",
		seen->name, seen->uid, seen->name);
	stoup_check_mend(line,
		"loginctl enable-linger USER, RemoveIPC=no in "
		"/etc/systemd/logind.conf, or a system user for stoupd; then restart it");
}

static void say_odd(struct stoup_check *c, const struct seen *seen)
{
	struct stoup_check_line *line = stoup_check_line(c, "control", STOUP_CHECK_WARNING);

	stoup_check_found(line,
		"/dev/shm/stoup.%u.%s.ctl is of another release, or not made by user %u", seen->uid,
		seen->name, seen->uid);
	stoup_check_mend(line,
		"use programs of one release; where no daemon runs: rm /dev/shm/stoup.%u.%s.ctl",
		seen->uid, seen->name);
}

static void say_silent(struct stoup_check *c, const struct seen *seen)
{
	/* Of a pool that was not asked for it keeps nobody from starting another one. */
	struct stoup_check_line *line =
		stoup_check_line(c, "daemon", c->pool ? STOUP_CHECK_PROBLEM : STOUP_CHECK_WARNING);

	/* Its number is of another namespace: here it may be anybody's. */
	if (seen->unseen) {
		stoup_check_found(line,
			"pool '%s' gave no sign for 3 s: process %u, of another PID namespace (a container) or hidden by "
			"/proc (hidepid), is stopped, overloaded, or dead",
			seen->name, seen->pid);
		stoup_check_mend(line, "in that container, or as root: stoup check %s", seen->name);
		return;
	}
	stoup_check_found(line,
		"process %u of pool '%s' lives and gave no sign for 3 s: stopped, or overloaded",
		seen->pid, seen->name);
	stoup_check_mend(line, "kill -CONT %u", seen->pid);
}

/* Who may connect follows from the socket's mode; with 0666 the daemon's lists decide. */
static void say_attach(struct stoup_check *c, const struct seen *seen)
{
	struct stoup_check_line *line = stoup_check_line(c, "attach", STOUP_CHECK_OK);
	const struct group *group = getgrgid(seen->socket_stat.st_gid);
	const struct passwd *self = getpwuid(geteuid());
	unsigned int mode = seen->socket_stat.st_mode & 0777;
	const char *user = self ? self->pw_name : "USER";
	char gid[16];

	snprintf(gid, sizeof(gid), "%u", (unsigned int)seen->socket_stat.st_gid);
	if (mode & S_IWOTH)
		stoup_check_found(line,
			"%.200s (%04o): whom the options of stoupd name; others are told who may",
			seen->socket_path, mode);
	else if (mode & S_IWGRP)
		stoup_check_found(line, "%.200s (%04o): root, uid %u, and members of group %s",
			seen->socket_path, mode, seen->uid, group ? group->gr_name : gid);
	else
		stoup_check_found(line, "%.200s (%04o): root and uid %u alone", seen->socket_path,
			mode, seen->uid);
	if (seen->socket != SOCKET_CLOSED)
		return;
	line->level = STOUP_CHECK_PROBLEM;
	stoup_check_wanted(line, "you, %s", user);
	if (mode & S_IWGRP)
		stoup_check_mend(line, "usermod -aG %s %s, then log in again",
			group ? group->gr_name : gid, user);
	else
		stoup_check_mend(line, "start stoupd with --allow-user %s, or --group GROUP", user);
}

/* Is there a line for one more pool of which this is to be said? */
static int say_one(struct pools *p, const struct seen *seen, enum say what)
{
	const char *slash = strrchr(seen->socket_path, '/');

	if (++p->said[what] <= SAY_LINES)
		return 1;
	if (slash)
		snprintf(p->more_dir, sizeof(p->more_dir), "%.*s", (int)(slash - seen->socket_path),
			seen->socket_path);
	return 0;
}

/* 1 = a daemon serves it. */
static int say_pool(struct stoup_check *c, struct pools *p, const struct seen *seen)
{
	int answers = seen->socket == SOCKET_ANSWERS || seen->socket == SOCKET_CLOSED;
	int lives = seen->control == CONTROL_LIVES || seen->control == CONTROL_SILENT;

	if (seen->control == CONTROL_ODD && say_one(p, seen, SAY_ODD))
		say_odd(c, seen);
	if (seen->control == CONTROL_SILENT && say_one(p, seen, SAY_SILENT))
		say_silent(c, seen);
	if (!lives && !answers &&
		(seen->control == CONTROL_DEAD || seen->socket == SOCKET_REFUSES) &&
		say_one(p, seen, SAY_STALE))
		say_stale(c, seen);
	if (seen->control == CONTROL_NONE && answers && say_one(p, seen, SAY_NAMELESS))
		say_nameless(c, seen);
	return lives || answers;
}

static void say_named(struct stoup_check *c, const struct seen *seen)
{
	struct stoup_check_line *line = stoup_check_line(c, "pool", STOUP_CHECK_OK);

	c->pool_lives = 1;
	stoup_check_found(line, "pool '%s' is served (process %u, uid %u): its memory is reserved",
		seen->name, seen->pid, seen->uid);
	if (seen->socket != SOCKET_NONE) {
		say_attach(c, seen);
		return;
	}
	line = stoup_check_line(c, "attach", STOUP_CHECK_PROBLEM);
	stoup_check_found(line, "its socket is in none of the directories where you look for it");
	stoup_check_mend(line,
		"set XDG_RUNTIME_DIR as it is for the daemon (tr '\\0' '\\n' </proc/%u/environ | grep "
		"XDG), or run as uid %u",
		seen->pid, seen->uid);
}

void stoup_check_pools(struct stoup_check *c)
{
	struct pools *p = calloc(1, sizeof(*p));
	struct stoup_check_line *line;
	uint32_t served = 0, before = c->line_cnt;

	if (!p)
		return;
	see_all(c, p);
	for (uint32_t i = 0; i < p->cnt; i++) {
		int serves = say_pool(c, p, &p->seen[i]);

		served += (uint32_t)serves;
		if (c->pool && serves && served == 1)
			say_named(c, &p->seen[i]);
	}
	for (uint32_t i = 0; i < SAY_CNT; i++)
		if (p->said[i] > SAY_LINES)
			say_more(c, p, (enum say)i);
	if (c->pool && served == 0) {
		line = stoup_check_line(c, "pool", STOUP_CHECK_PROBLEM);
		stoup_check_found(line, "no daemon serves pool '%s' for you", c->pool);
		stoup_check_mend(line, "stoupd --store DIR --pool %s", c->pool);
		if (p->strange)
			stoup_check_found(line,
				"no daemon serves pool '%s' for you: that of user %u is for that user alone",
				c->pool, p->stranger);
	} else if (c->line_cnt == before) {
		line = stoup_check_line(c, "pools", STOUP_CHECK_OK);
		stoup_check_found(line, "%u served, nothing left by dead daemons", served);
	}
	free(p);
}
