/* SPDX-License-Identifier: Apache-2.0 */
/* check_kernel.c - kernel, C library, container, io_uring, descriptors, inotify. */
#include "producer/check.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "producer/reader.h"
#include "shm/control.h"
#include "shm/region.h"

#define CONSUMERS_DEFAULT 128u /* of stoupd */
#define VOLUMES_MORE      1024u
#define FILES_OWN         64u /* logs, sockets, rings, stores, what the C library opens */
#define FILES_CONSUMER    64u /* an attach needs about eight for a moment; the program has its own */
#define WATCHES_WANTED    64u /* a store, its parents, links: some for each store */
#define INSTANCES_WANTED  16u /* of a user: one for each daemon, beside those of other programs */
#define INOTIFY_DIR       "/proc/sys/fs/inotify/"
#define URING_SWITCH      "/proc/sys/kernel/io_uring_disabled"

/* ---- container -------------------------------------------------------------------------------- */

static int exists(const struct stoup_check *c, const char *path)
{
	char full[PATH_MAX];

	return access(stoup_check_path(c, path, full), F_OK) == 0;
}

void stoup_check_container(struct stoup_check *c)
{
	char text[4096], word[16] = "";
	int len = stoup_check_read(c, "/proc/1/environ", text, sizeof(text));

	/* Variables are separated by NUL; root alone may read them. */
	for (int at = 0; at < len; at += (int)strlen(text + at) + 1)
		if (strncmp(text + at, "container=", 10) == 0)
			snprintf(word, sizeof(word), "%.15s", text + at + 10);
	if (word[0] == 0 && stoup_check_read(c, "/run/systemd/container", text, 16) > 0)
		snprintf(word, sizeof(word), "%.15s", text);
	if (exists(c, "/var/run/secrets/kubernetes.io"))
		snprintf(c->container, sizeof(c->container), "kubernetes");
	else if (exists(c, "/.dockerenv"))
		snprintf(c->container, sizeof(c->container), "docker");
	else if (exists(c, "/run/.containerenv"))
		snprintf(c->container, sizeof(c->container), "podman");
	else
		snprintf(c->container, sizeof(c->container), "%s", word);
}

/* ---- kernel, C library ------------------------------------------------------------------------ */

static void check_kernel(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "kernel", STOUP_CHECK_OK);
	unsigned int major = 0, minor = 0, version;
	struct utsname name;
	char text[80];

	if (stoup_check_read(c, "/proc/sys/kernel/osrelease", text, sizeof(text)) <= 0)
		snprintf(text, sizeof(text), "%.79s", uname(&name) == 0 ? name.release : "?");
	sscanf(text, "%u.%u", &major, &minor);
	version = major * 1000 + minor;
	stoup_check_found(line, "Linux %s%s%s", text, c->container[0] ? ", in a container: " : "",
		c->container);
	stoup_check_wanted(line, "6.1 or later");
	if (version >= 6001)
		return;
	/* Sealing for future writes came with 5.1: without it no memory of memfd is shared. */
	line->level = version < 5001 && c->backing != STOUP_BACKING_POSIX ? STOUP_CHECK_PROBLEM
	                                                                  : STOUP_CHECK_WARNING;
	stoup_check_mend(line,
		"a kernel of 6.1 or later (Debian 12, Ubuntu 24.04, RHEL 10); before it: %s",
		version < 5001   ? "no --backing memfd, no io_uring, no 2 MiB pages"
		: version < 5003 ? "no process descriptors, no 2 MiB pages"
				 : "no 2 MiB pages of shared memory but --backing hugetlb");
}

static void check_libc(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "glibc", STOUP_CHECK_OK);
	const char *text = gnu_get_libc_version();
	unsigned int major = 0, minor = 0;

	sscanf(text, "%u.%u", &major, &minor);
	stoup_check_found(line, "glibc %s", text);
	stoup_check_wanted(line, "%d.%d or later, which this program was built with", __GLIBC__,
		__GLIBC_MINOR__);
	if (major * 1000 + minor >= __GLIBC__ * 1000 + __GLIBC_MINOR__)
		return;
	line->level = STOUP_CHECK_WARNING;
	stoup_check_mend(line, "build stoup on this system, or on an older one");
}

/* ---- io_uring --------------------------------------------------------------------------------- */

/* Is this process under a seccomp filter? */
static int filtered(const struct stoup_check *c)
{
	char text[4096], *at;

	if (stoup_check_read(c, "/proc/self/status", text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, "\nSeccomp:");
	return at && strtol(at + 9, NULL, 10) == 2;
}

static void uring_mend(
	const struct stoup_check *c, struct stoup_check_line *line, int rc, uint64_t disabled)
{
	if (disabled != UINT64_MAX && disabled > 0)
		stoup_check_mend(line, "sysctl kernel.io_uring_disabled=0%s%s",
			c->container[0] ? " on the host" : "",
			disabled == 1 ? ", or have the daemon's group be kernel.io_uring_group"
				      : "");
	else if ((rc == -EPERM || rc == -ENOSYS || rc == -EACCES) && c->container[0])
		stoup_check_mend(line,
			"a seccomp profile that allows io_uring_setup, io_uring_enter "
			"and io_uring_register: docker run --security-opt seccomp=FILE, "
			"Kubernetes: securityContext.seccompProfile");
	else if ((rc == -EPERM || rc == -ENOSYS || rc == -EACCES) && filtered(c))
		stoup_check_mend(line,
			"a seccomp filter refuses it: systemd: "
			"SystemCallFilter=@system-service @io-event @aio; container: "
			"--security-opt seccomp=FILE");
	else if (rc == -ENOMEM)
		stoup_check_mend(line, "ulimit -l unlimited; systemd: LimitMEMLOCK=infinity");
	else
		stoup_check_mend(line, "a kernel of 5.6 or later with CONFIG_IO_URING");
}

/* Refused is no problem: the daemon reads by threads, for more processor time. */
static void check_uring(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "io_uring", STOUP_CHECK_OK);
	uint64_t disabled = stoup_check_number(c, URING_SWITCH, "");
	struct stoup_reader_options opt = {.kind = STOUP_READER_URING};
	struct stoup_reader *reader = NULL;
	struct stoup_error err = {0};
	int rc = stoup_reader_create(&opt, &reader, &err);

	stoup_check_wanted(line, "a ring that reads");
	if (rc == 0 && disabled != 2) {
		stoup_check_found(line, "a ring was made and read by (%.120s)%s",
			stoup_reader_reason(reader),
			disabled == 1 ? "; kernel.io_uring_disabled is 1: not every user may" : "");
		stoup_reader_destroy(reader);
		return;
	}
	line->level = STOUP_CHECK_WARNING;
	if (rc == 0)
		stoup_check_found(line, "kernel.io_uring_disabled is 2");
	else
		stoup_check_found(line, "%.200s: reads go by threads", err.text);
	uring_mend(c, line, rc, disabled);
	stoup_reader_destroy(reader);
}

/* ---- descriptors, inotify --------------------------------------------------------------------- */

/* The daemon raises its soft limit to the hard one; programs that attach live with theirs. */
static void check_files(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "nofile", STOUP_CHECK_OK);
	uint64_t volumes = c->store ? c->store->volume_cnt : 0;
	uint64_t want = FILES_OWN + 3 * CONSUMERS_DEFAULT + 2 * (volumes + VOLUMES_MORE);
	uint64_t least = FILES_OWN + 3 * CONSUMERS_DEFAULT + 2 * volumes;
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	stoup_check_found(line, "%llu open files, at most %llu", (unsigned long long)limit.rlim_cur,
		(unsigned long long)limit.rlim_max);
	stoup_check_wanted(line,
		"at most %" PRIu64 ": three for each of %u consumers, two for each of %" PRIu64
		" volumes and those to come",
		want, CONSUMERS_DEFAULT, volumes);
	if (limit.rlim_max < want) {
		line->level = limit.rlim_max < least ? STOUP_CHECK_PROBLEM : STOUP_CHECK_WARNING;
		stoup_check_mend(line,
			"as root: ulimit -n %" PRIu64
			" before stoupd; systemd: LimitNOFILE=%" PRIu64
			"; container: --ulimit nofile=%" PRIu64,
			want, want, want);
		return;
	}
	if (limit.rlim_cur >= FILES_CONSUMER)
		return;
	line->level = STOUP_CHECK_WARNING;
	stoup_check_wanted(line, "%u for a program that attaches", FILES_CONSUMER);
	stoup_check_mend(line, "ulimit -n 1024 before it");
}

static void inotify_refused(const struct stoup_check *c, struct stoup_check_line *line,
	const char *what, const char *setting, uint64_t has, uint64_t want)
{
	line->level = STOUP_CHECK_WARNING;
	if (has == UINT64_MAX)
		stoup_check_found(line, "%s", what);
	else
		stoup_check_found(line, "%s (fs.inotify.%s is %" PRIu64 ")", what, setting, has);
	stoup_check_mend(line, "sysctl fs.inotify.%s=%" PRIu64 "%s", setting,
		has != UINT64_MAX && has >= want ? has * 2 : want,
		c->container[0] ? " on the host" : "");
}

/* Without it new volumes are seen at attaches, every two seconds, and at SIGHUP. */
static void check_inotify(struct stoup_check *c)
{
	struct stoup_check_line *line = stoup_check_line(c, "inotify", STOUP_CHECK_OK);
	uint64_t watches = stoup_check_number(c, INOTIFY_DIR "max_user_watches", "");
	uint64_t instances = stoup_check_number(c, INOTIFY_DIR "max_user_instances", "");
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), rc = fd < 0 ? -errno : 0;

	stoup_check_wanted(line, "a watch of each store");
	if (rc == 0 && inotify_add_watch(fd, c->store_path ? c->store_path : "/", IN_CREATE) < 0)
		rc = -errno;
	if (fd < 0)
		inotify_refused(c, line,
			rc == -EMFILE ? "you have no inotify instance left" : strerror(-rc),
			"max_user_instances", instances, 512);
	else if (rc == -ENOSPC)
		inotify_refused(c, line, "you have no inotify watch left", "max_user_watches",
			watches, 65536);
	else if (instances < INSTANCES_WANTED)
		inotify_refused(
			c, line, "few inotify instances", "max_user_instances", instances, 512);
	else if (watches < WATCHES_WANTED)
		inotify_refused(c, line, "few inotify watches", "max_user_watches", watches, 65536);
	else
		stoup_check_found(line, "a watch was made");
	if (fd >= 0)
		close(fd);
}

void stoup_check_kernel(struct stoup_check *c)
{
	check_uring(c);
	check_files(c);
	check_inotify(c);
	check_kernel(c);
	check_libc(c);
}
