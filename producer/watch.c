/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - when the stores are read again: inotify, SIGHUP, and a look now and then.
 *
 *      a volume renamed into a store, or removed --inotify--> 50 ms after the last such event,
 *                                                             500 ms after the first at most
 *      SIGHUP ----------------------------------------------> at once
 *      the path leads elsewhere, or changed without an event -> found by a look every 2 s
 *
 * The watch is on the directory that was opened. A store that was removed and made again, or a link that
 * leads to another one now, is another directory: no event tells of it, the look does.
 *
 * File systems tell nothing of what other machines do (NFS), and a machine may have no watch left: the look
 * compares the directory's time as well. While rescans fail, looks grow rarer.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALM_NS     UINT64_C(50000000)  /* an ingest renames one volume after the other */
#define CALM_CAP_NS UINT64_C(500000000) /* and other writers must not put it off for ever */
#define LOOK_NS     UINT64_C(2000000000)
#define LOOK_CAP_NS UINT64_C(64000000000)
#define MASK                                                                                       \
	(IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_MOVE_SELF |     \
		IN_DELETE_SELF | IN_ONLYDIR)

/* ---- asking ----------------------------------------------------------------------------------- */

static void due(struct stoup_daemon *d, uint64_t at_ns)
{
	d->rescan_due_ns = at_ns;
	if (d->tick_ns > at_ns)
		d->tick_ns = at_ns;
}

void stoup_rescan_ask(struct stoup_daemon *d)
{
	due(d, d->now_ns);
}

static void event_came(struct stoup_daemon *d)
{
	uint64_t calm_ns = d->now_ns + CALM_NS;

	if (d->rescan_asked_ns == 0)
		d->rescan_asked_ns = d->now_ns;
	if (calm_ns > d->rescan_asked_ns + CALM_CAP_NS)
		calm_ns = d->rescan_asked_ns + CALM_CAP_NS;
	due(d, calm_ns);
}

/* ---- watches ---------------------------------------------------------------------------------- */

static void tell_once(struct stoup_daemon *d, int code, const char *path)
{
	if (d->watch_told)
		return;
	d->watch_told = 1;
	stoup_log_error(d, code,
		"store %.100s is not watched: %s%s; changes are seen within seconds, or at once by SIGHUP",
		path, strerror(-code),
		code == -ENOSPC   ? "; mend: sysctl fs.inotify.max_user_watches=524288"
		: code == -EMFILE ? "; mend: sysctl fs.inotify.max_user_instances=512"
				  : "");
}

static int watch_used(const struct stoup_daemon *d, int wd)
{
	for (uint32_t i = 0; i < d->opt.store_cnt; i++)
		if (d->watches[i] == wd)
			return 1;
	return 0;
}

static void watch_store(struct stoup_daemon *d, uint32_t idx)
{
	char link[64];
	int old = d->watches[idx], wd;

	/* The very directory that was opened, wherever its path leads by now. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", d->stores[idx]->dir_fd);
	wd = inotify_add_watch(d->watch_fd, link, MASK);
	if (wd < 0 && errno == ENOENT)
		wd = inotify_add_watch(d->watch_fd, d->stores[idx]->path, MASK);
	if (wd < 0)
		tell_once(d, -errno, d->stores[idx]->path);
	d->watches[idx] = wd;
	if (old >= 0 && !watch_used(d, old))
		inotify_rm_watch(d->watch_fd, old);
}

void stoup_watch_follow(struct stoup_daemon *d)
{
	for (uint32_t i = 0; d->watch_fd >= 0 && i < d->opt.store_cnt; i++)
		watch_store(d, i);
}

void stoup_rescan_watch(struct stoup_daemon *d)
{
	for (uint32_t i = 0; i < STOUP_STORE_CAP; i++)
		d->watches[i] = -1;
	d->watch_wait_ns = LOOK_NS;
	d->watch_look_ns = d->now_ns + LOOK_NS;
	if (!d->opt.watch || d->opt.store_cnt == 0)
		return;
	d->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (d->watch_fd < 0) {
		tell_once(d, -errno, d->opt.store_path[0]);
		return;
	}
	stoup_watch_follow(d);
	if (stoup_epoll_add(d, d->watch_fd, EPOLLIN, STOUP_TAG(STOUP_TAG_WATCH, 0)) < 0)
		tell_once(d, -ENOMEM, d->opt.store_path[0]);
	/* What came between the reading of a store and its watch. */
	if (stoup_stores_changed(d, d->store_marks))
		stoup_rescan_ask(d);
}

void stoup_rescan_fini(struct stoup_daemon *d)
{
	if (d->watch_fd >= 0)
		close(d->watch_fd);
	d->watch_fd = -1;
}

/* ---- events ----------------------------------------------------------------------------------- */

/* A file that is created is written next, and closed; a link is whole at once. */
static int whole_at_once(const struct stoup_daemon *d, const struct inotify_event *event)
{
	struct stat st;

	for (uint32_t i = 0; i < d->opt.store_cnt; i++)
		if (d->watches[i] == event->wd &&
			fstatat(d->stores[i]->dir_fd, event->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return st.st_nlink > 1 || S_ISLNK(st.st_mode);
	return 0;
}

/* Writers work on dotted names: those say nothing. */
static int of_volume(const struct inotify_event *event)
{
	size_t len = event->len ? strlen(event->name) : 0, suffix = sizeof(STOUP_VOL_SUFFIX) - 1;

	return len > suffix && event->name[0] != '.' &&
	       strcmp(event->name + len - suffix, STOUP_VOL_SUFFIX) == 0;
}

static int tells(struct stoup_daemon *d, const struct inotify_event *event)
{
	if (event->mask & IN_IGNORED) {
		/* Its directory is gone, or its file system. */
		for (uint32_t i = 0; i < d->opt.store_cnt; i++)
			if (d->watches[i] == event->wd)
				d->watches[i] = -1;
		return 0;
	}
	if (event->mask & (IN_Q_OVERFLOW | IN_MOVE_SELF | IN_DELETE_SELF))
		return 1;
	if (!of_volume(event))
		return 0;
	return !(event->mask & IN_CREATE) || whole_at_once(d, event);
}

void stoup_rescan_event(struct stoup_daemon *d)
{
	_Alignas(struct inotify_event) char text[4096];
	ssize_t len = read(d->watch_fd, text, sizeof(text));
	int told = 0;

	/* One read per turn: a store that changes all the time must not keep the conductor here. */
	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *event = (const void *)(text + at);

		told |= tells(d, event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	if (told)
		event_came(d);
}

/* ---- the look --------------------------------------------------------------------------------- */

int stoup_stores_changed(const struct stoup_daemon *d, const struct stoup_store_mark *marks)
{
	for (uint32_t i = 0; i < d->opt.store_cnt; i++) {
		const struct stoup_store_mark *then = &marks[i];
		struct stoup_store_mark now;

		/* A store that is gone: what was served is served on, until one is there again. */
		if (stoup_store_mark(d, i, &now) == 0 &&
			(then->ctime.tv_sec == 0 || now.dev != then->dev || now.ino != then->ino ||
				now.ctime.tv_sec != then->ctime.tv_sec ||
				now.ctime.tv_nsec != then->ctime.tv_nsec))
			return 1;
	}
	return 0;
}

void stoup_watch_look(struct stoup_daemon *d)
{
	if (!d->opt.watch || d->now_ns < d->watch_look_ns)
		return;
	/* One that failed is tried again, ever more rarely: it is logged each time. */
	d->watch_wait_ns = d->rescan_quiet_ns == 0          ? LOOK_NS
	                   : d->watch_wait_ns < LOOK_CAP_NS ? d->watch_wait_ns * 2
	                                                    : LOOK_CAP_NS;
	d->watch_look_ns = d->now_ns + d->watch_wait_ns;
	if (d->rescan_due_ns == 0 && stoup_stores_changed(d, d->store_marks))
		stoup_rescan_ask(d);
}
