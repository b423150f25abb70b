/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - footprint, format, verify and open of the control object. */
#include "shm/control.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shm/alive.h"
#include "shm/json.h"
#include "shm/region.h"
#include "shm/wire.h"

#define PROCESS_STAT_CAP 1024

static const struct {
	const char *name, *unit;
	char kind;
	const char *text;
} counter_table[] = {
#define C                                             'C'
#define G                                             'G'
#define STOUP_COUNTER_ROW(id, name, unit, kind, text) {name, unit, kind, text},
	STOUP_COUNTERS(STOUP_COUNTER_ROW)
#undef STOUP_COUNTER_ROW
#undef C
#undef G
};

static const struct {
	const char *name, *unit, *text;
} histogram_table[] = {
#define STOUP_HISTOGRAM_ROW(id, name, unit, text) {name, unit, text},
	STOUP_HISTOGRAMS(STOUP_HISTOGRAM_ROW)
#undef STOUP_HISTOGRAM_ROW
};

static uint64_t page_up(uint64_t len)
{
	return (len + STOUP_OS_PAGE_LEN - 1) & ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
}

static void lay_out(struct stoup_control *c)
{
	uint64_t off = sizeof(*c);

	c->consumer_off = off;
	off += (uint64_t)c->consumer_cap * sizeof(struct stoup_control_consumer);
	c->buffer_off = off;
	off += (uint64_t)c->buffer_cap * sizeof(struct stoup_control_buffer);
	c->volume_off = off;
	off += (uint64_t)c->volume_cap * sizeof(struct stoup_control_volume);
	c->counter_off = off;
	off += (uint64_t)c->counter_cnt * sizeof(struct stoup_control_counter);
	c->error_off = off;
	off += (uint64_t)c->error_cap * sizeof(struct stoup_control_error);
	c->total_len = page_up(off);
}

/* The tables of minor 2 lie behind, and are described by what they are: a reader looks only where it is told. */
static uint64_t lay_out_tail(struct stoup_control *c)
{
	uint64_t off = c->total_len;

	c->histogram_off = off;
	c->histogram_cnt = STOUP_HISTOGRAM_CNT;
	c->histogram_len = sizeof(struct stoup_control_histogram);
	off += (uint64_t)c->histogram_cnt * c->histogram_len;
	c->holder_off = off;
	c->holder_cap = STOUP_HOLDER_CAP;
	c->holder_len = sizeof(struct stoup_control_holder);
	off += (uint64_t)c->holder_cap * c->holder_len;
	c->quota_off = off;
	c->quota_cap = STOUP_QUOTA_CAP;
	c->quota_len = sizeof(struct stoup_control_quota);
	off += (uint64_t)c->quota_cap * c->quota_len;
	return page_up(off);
}

static void set_counts(struct stoup_control *c, const struct stoup_control_config *config)
{
	c->consumer_cap = config->consumer_cap;
	c->cell_cap = config->cell_cap;
	c->slot_cnt = STOUP_SLOT_CNT;
	c->buffer_cap = config->buffer_cap;
	c->volume_cap = config->volume_cap;
	c->counter_cnt = STOUP_COUNTER_CNT;
	c->error_cap = STOUP_ERROR_CAP;
}

size_t stoup_control_footprint(const struct stoup_control_config *config)
{
	struct stoup_control c;

	memset(&c, 0, sizeof(c));
	set_counts(&c, config);
	lay_out(&c);
	return (size_t)lay_out_tail(&c);
}

void stoup_control_format(struct stoup_control *control, const struct stoup_control_config *config)
{
	struct stoup_control_counter *counters;
	struct stoup_control_histogram *histograms;

	control->abi_major = STOUP_ABI_MAJOR;
	control->abi_minor = STOUP_ABI_MINOR;
	control->fingerprint = stoup_abi_fingerprint();
	set_counts(control, config);
	lay_out(control);
	lay_out_tail(control);
	histograms = stoup_control_histograms(control);
	for (uint32_t i = 0; i < STOUP_HISTOGRAM_CNT; i++) {
		snprintf(histograms[i].name, sizeof(histograms[i].name), "%s",
			histogram_table[i].name);
		snprintf(histograms[i].unit, sizeof(histograms[i].unit), "%s",
			histogram_table[i].unit);
		snprintf(histograms[i].text, sizeof(histograms[i].text), "%s",
			histogram_table[i].text);
	}
	counters = stoup_control_counters(control);
	for (uint32_t i = 0; i < STOUP_COUNTER_CNT; i++) {
		snprintf(counters[i].name, sizeof(counters[i].name), "%s", counter_table[i].name);
		snprintf(counters[i].unit, sizeof(counters[i].unit), "%s", counter_table[i].unit);
		snprintf(counters[i].text, sizeof(counters[i].text), "%s", counter_table[i].text);
		counters[i].kind = (uint32_t)(unsigned char)counter_table[i].kind;
	}
	atomic_store_explicit(&control->state, STOUP_STATE_STARTING, memory_order_relaxed);
}

void stoup_control_announce(struct stoup_control *control)
{
	atomic_store_explicit(&control->state, STOUP_STATE_RUNNING, memory_order_release);
	/* [A1] last: who loads the magic (acquire) sees every byte that was written before. */
	atomic_store_explicit(&control->magic, STOUP_CONTROL_MAGIC, memory_order_release);
}

/* Texts end in the byte that is left for it, so that who prints one needs no bound. */
#define ENDS(text) ((text)[sizeof(text) - 1] == 0)

static int texts_end(const struct stoup_control *c)
{
	if (!ENDS(c->pool_name) || !ENDS(c->store_path) || !ENDS(c->backing) ||
		!ENDS(c->decode_cpus) || !ENDS(c->reader_kind) || !ENDS(c->reader_reason) ||
		!ENDS(c->huge_reason) || !ENDS(c->lock_reason) || !ENDS(c->version))
		return 0;
	for (uint32_t i = 0; i < c->volume_cap; i++)
		if (!ENDS(stoup_control_volumes(c)[i].path))
			return 0;
	return 1;
}

/* Counters that this program knows stand where it looks for them, and their names are plain words. */
static int counters_valid(const struct stoup_control *c)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

	/* An older daemon of the same major has fewer, but these. */
	if (c->counter_cnt < STOUP_COUNTER_BASE_CNT)
		return 0;
	for (uint32_t i = 0; i < c->counter_cnt; i++) {
		const struct stoup_control_counter *counter = &stoup_control_counters(c)[i];

		if (!ENDS(counter->name) || !ENDS(counter->unit) || !ENDS(counter->text) ||
			counter->name[strspn(counter->name, word)] != 0)
			return 0;
	}
	return 1;
}

int stoup_control_verify(
	const struct stoup_control *control, size_t map_len, struct stoup_error *err)
{
	char version[sizeof(control->version) + 1];
	struct stoup_control expected;
	uint64_t magic;

	if (map_len < sizeof(*control))
		return stoup_error_set(
			err, -EPROTO, "the control object has %zu bytes, too few", map_len);
	/* [A1] */
	magic = atomic_load_explicit(&control->magic, memory_order_acquire);
	if (magic == 0)
		return stoup_error_set(err, -EAGAIN, "the daemon has not announced the pool yet");
	if (magic != STOUP_CONTROL_MAGIC)
		return stoup_error_set(err, -EPROTO, "not a control object of stoup");
	if (control->abi_major != STOUP_ABI_MAJOR ||
		control->fingerprint != stoup_abi_fingerprint()) {
		/* Of whatever release it is, or of none: no more than a text. */
		memcpy(version, control->version, sizeof(version) - 1);
		version[sizeof(version) - 1] = 0;
		stoup_utf8_plain(version);
		return stoup_error_set(err, -EPROTO,
			"the daemon (version %s) speaks ABI %u.%u, this program %u.%u: use "
			"programs of one release",
			version, control->abi_major, control->abi_minor, STOUP_ABI_MAJOR,
			STOUP_ABI_MINOR);
	}
	memset(&expected, 0, sizeof(expected));
	expected.consumer_cap = control->consumer_cap;
	expected.buffer_cap = control->buffer_cap;
	expected.volume_cap = control->volume_cap;
	expected.counter_cnt = control->counter_cnt;
	expected.error_cap = control->error_cap;
	lay_out(&expected);
	if (expected.consumer_off != control->consumer_off ||
		expected.buffer_off != control->buffer_off ||
		expected.volume_off != control->volume_off ||
		expected.counter_off != control->counter_off ||
		expected.error_off != control->error_off ||
		expected.total_len != control->total_len || control->total_len > map_len ||
		control->consumer_cap > STOUP_CONSUMER_CAP || control->cell_cap > STOUP_CELL_CAP ||
		control->buffer_cap > STOUP_BUFFER_CAP || control->volume_cap > STOUP_VOLUME_CAP ||
		!texts_end(control) || !counters_valid(control))
		return stoup_error_set(err, -EPROTO, "the control object is malformed");
	return 0;
}

int stoup_control_name(uint32_t uid, const char *pool, char *dst, size_t cap)
{
	int len = snprintf(dst, cap, "/stoup.%u.%s.ctl", uid, pool);

	return len > 0 && (size_t)len < cap ? 0 : -ENAMETOOLONG;
}

int stoup_control_quota_explain(const struct stoup_control_quota *quota, const char *pool,
	uint64_t used, uint32_t pid, uint64_t len, struct stoup_error *err)
{
	return stoup_error_set(err, -EDQUOT,
		"%s '%.40s' leases %" PRIu64 " of the %" PRIu64
		" bytes of its quota in pool '%s', and process %u needs %" PRIu64
		" more; mend: release there, or stoupd --quota %.40s=SIZE",
		quota->kind == STOUP_QUOTA_USER ? "user" : "group", quota->name, used,
		quota->bytes_cap, pool, pid, len, quota->name);
}

int stoup_control_name_parse(
	const char *file, uint32_t *ret_uid, const char **ret_pool, size_t *ret_len)
{
	unsigned long uid;
	size_t len;
	char *end;

	if (strncmp(file, "stoup.", 6) != 0 || file[6] < '0' || file[6] > '9')
		return 0;
	uid = strtoul(file + 6, &end, 10);
	len = strlen(end);
	/* ".NAME.ctl" */
	if (*end != '.' || uid > UINT32_MAX || len < 6 || strcmp(end + len - 4, ".ctl") != 0)
		return 0;
	*ret_uid = (uint32_t)uid;
	*ret_pool = end + 1;
	*ret_len = len - 5;
	return 1;
}

static int denied(const char *name, struct stoup_error *err)
{
	char path[160];
	struct stat st;
	const struct group *group;

	snprintf(path, sizeof(path), "/dev/shm%s", name);
	if (stat(path, &st) < 0)
		return stoup_error_set(err, -EACCES, "%s: permission denied", path);
	if (st.st_gid == 0 || !(st.st_mode & S_IRGRP))
		return stoup_error_set(err, -EACCES,
			"%s: permission denied: the pool admits its owner (uid %u) alone; mend: its owner starts stoupd "
			"with --group GROUP, and you are in that group",
			path, (unsigned int)st.st_uid);
	group = getgrgid(st.st_gid);
	return stoup_error_set(err, -EACCES,
		"%s: permission denied: it may be read by group '%s'; mend: usermod -aG %s USER, "
		"then log in again",
		path, group ? group->gr_name : "?", group ? group->gr_name : "?");
}

/* Whose object is it? Everybody may make names in /dev/shm: a stranger's would show a monitor what he
 * likes, and kill it by cutting the object short. `uid` is who its name says. Who owns the directory can
 * do so anyway; in a user namespace that is how root looks. 1 = trusted; else *ret_uid. */
static int owner_trusted(int fd, uint32_t uid, uid_t *ret_uid)
{
	struct stat st, dir;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	*ret_uid = st.st_uid;
	return st.st_uid == 0 || st.st_uid == uid ||
	       (stat("/dev/shm", &dir) == 0 && dir.st_uid == st.st_uid);
}

/* Open the control object of the caller's own pool, root's, or that of the user for whom the machine's
 * runtime directory was made. The descriptor, or a negative errno. */
static int open_named(const char *pool, char *name, size_t name_cap, struct stoup_error *err)
{
	uint32_t uids[3] = {(uint32_t)geteuid(), 0, 0};
	uid_t stranger = 0;
	struct stat run;
	int strange = 0;
	char dir[64];

	if (stoup_runtime_dir(1, dir, sizeof(dir)) == 0 && stat(dir, &run) == 0)
		uids[2] = (uint32_t)run.st_uid;
	for (uint32_t i = 0; i < 3; i++) {
		int fd;

		if (stoup_control_name(uids[i], pool, name, name_cap) < 0)
			return stoup_error_set(err, -ENAMETOOLONG, "pool name too long");
		fd = shm_open(name, O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0 && errno == EACCES)
			return denied(name, err);
		if (fd >= 0 && owner_trusted(fd, uids[i], &stranger))
			return fd;
		if (fd >= 0) {
			strange = 1;
			close(fd);
		}
	}
	if (strange)
		return stoup_error_set(err, -EACCES,
			"/dev/shm%s belongs to user %u, who is neither root nor you: not trusted; mend: let root "
			"remove it, and start stoupd --store DIR --pool %s",
			name, (unsigned int)stranger, pool);
	return stoup_error_set(err, -ENOENT,
		"there is no pool '%s' here; start it: stoupd --store DIR --pool %s", pool, pool);
}

int stoup_control_open(const char *pool, const struct stoup_control **ret, size_t *ret_len,
	struct stoup_error *err)
{
	struct stoup_region region;
	char name[128];
	int rc, fd = open_named(pool, name, sizeof(name), err);

	if (fd < 0)
		return fd;
	rc = stoup_region_map(fd, sizeof(struct stoup_control), 0, 0, &region, err);
	close(fd);
	if (rc < 0)
		return rc;
	rc = stoup_control_verify(region.base, region.len, err);
	if (rc == -EAGAIN) {
		uint32_t pid = stoup_control_owner(name);

		rc = pid ? stoup_error_set(err, rc,
				   "pool '%s' is starting (process %u): wait a moment", pool,
				   pid == STOUP_OWNER_UNSEEN ? 0 : pid)
		         : stoup_error_set(err, rc,
				   "the daemon of pool '%s' died while it started; start it again, nothing needs cleaning",
				   pool);
	}
	if (rc < 0) {
		stoup_region_fini(&region);
		return rc;
	}
	*ret = region.base;
	*ret_len = region.len;
	return 0;
}

void stoup_control_close(const struct stoup_control *control, size_t len)
{
	if (control)
		munmap((void *)(uintptr_t)control, len);
}

int stoup_proc_ours(void)
{
	char text[24];
	ssize_t len = readlink("/proc/self", text, sizeof(text) - 1);

	if (len <= 0)
		return 0;
	text[len] = 0;
	return strtol(text, NULL, 10) == (long)getpid();
}

uint32_t stoup_pid_ns(void)
{
	struct stat st;

	/* The kernel numbers namespaces with 32 bits. */
	return stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : 0;
}

/* /proc/PID/stat from the blank before its third field on (state; field 22 is the start time), in `text`, or NULL. The
 * command, field 2, may hold anything: what counts is its last ')'. */
static const char *process_stat(uint32_t pid, char text[static PROCESS_STAT_CAP])
{
	char path[64];
	const char *at;
	FILE *file;
	size_t len;

	if (!stoup_proc_ours())
		return NULL;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return NULL;
	len = fread(text, 1, PROCESS_STAT_CAP - 1, file);
	fclose(file);
	text[len] = 0;
	at = strrchr(text, ')');
	return at && at[1] == ' ' ? at + 1 : NULL;
}

char stoup_process_letter(uint32_t pid)
{
	char text[PROCESS_STAT_CAP];
	const char *at = process_stat(pid, text);

	return at ? at[1] : 0;
}

/* Of what process_stat gave; 0 of a zombie. */
static uint64_t start_of(const char *at)
{
	if (at[1] == 'Z' || at[1] == 'X')
		return 0;
	for (int i = 0; i < 19 && at; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

uint64_t stoup_process_start(uint32_t pid)
{
	char text[PROCESS_STAT_CAP];
	const char *at = process_stat(pid, text);

	return at ? start_of(at) : 0;
}

int stoup_control_lock(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

/* A write lock: only its maker can open the object for writing, so that nobody else can lock it so. */
static int locked(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

uint32_t stoup_control_owner(const char *name)
{
	const struct stoup_control *c;
	struct stoup_region region;
	uint32_t pid = 0;
	uid_t uid;
	int fd = shm_open(name, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return 0;
	if (owner_trusted(fd, (uint32_t)geteuid(), &uid) &&
		stoup_region_map(fd, sizeof(*c), 0, 0, &region, NULL) == 0) {
		c = region.base;
		/* Written before the magic, so that a daemon that still starts is known as well. */
		if (c->fingerprint == stoup_abi_fingerprint() && locked(fd) &&
			atomic_load_explicit(&c->state, memory_order_relaxed) !=
				STOUP_STATE_STOPPED)
			pid = stoup_control_alive(c) ? c->daemon_pid : STOUP_OWNER_UNSEEN;
		stoup_region_fini(&region);
	}
	close(fd);
	return pid;
}

/* Of a process whose /proc/PID/stat could not be read: may it live all the same? Without a free descriptor, or where /proc
 * keeps others' processes to itself (hidepid), not seen is not gone. Looking for a name wants no descriptor. */
static int may_live(const struct stoup_control *control)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u", control->daemon_pid);
	return stoup_alive_look(&control->alive) == STOUP_ALIVE_YES || access(path, F_OK) == 0;
}

int stoup_control_life(const struct stoup_control *control)
{
	char text[PROCESS_STAT_CAP];
	const char *at;
	uint64_t start;

	if (stoup_alive_look(&control->alive) == STOUP_ALIVE_NO)
		return 0;
	if (control->pid_ns != 0 &&
		(control->daemon_start == 0 || control->pid_ns != stoup_pid_ns() ||
			!stoup_proc_ours()))
		return -1;
	at = process_stat(control->daemon_pid, text);
	if (!at)
		return may_live(control) ? -1 : 0;
	start = start_of(at);
	return start != 0 && start == control->daemon_start;
}

int stoup_control_error_read(
	const struct stoup_control *control, uint32_t idx, struct stoup_control_error *ret)
{
	return stoup_control_error_copy(&stoup_control_errors(control)[idx], ret);
}

int stoup_control_error_copy(
	const struct stoup_control_error *error, struct stoup_control_error *ret)
{
	uint32_t before, after;

	for (int try = 0; try < 8; try++) {
		/* [K1] seqlock: an even number before and the same after the copy, or it is torn. */
		before = atomic_load_explicit(&error->seq, memory_order_acquire);
		if (before == 0)
			return 0;
		memcpy((char *)ret + sizeof(ret->seq), (const char *)error + sizeof(error->seq),
			sizeof(*ret) - sizeof(ret->seq));
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&error->seq, memory_order_relaxed);
		if (before == after && (before & 1) == 0) {
			ret->text[sizeof(ret->text) - 1] = 0;
			return 1;
		}
	}
	return 0;
}

int stoup_control_holder_copy(
	const struct stoup_control_holder *row, struct stoup_control_holder *ret)
{
	uint32_t before, after;

	for (int try = 0; try < 8; try++) {
		/* [K1] as above. */
		before = atomic_load_explicit(&row->seq, memory_order_acquire);
		if (before == 0)
			return 0;
		memcpy((char *)ret + sizeof(ret->seq), (const char *)row + sizeof(row->seq),
			sizeof(*ret) - sizeof(ret->seq));
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&row->seq, memory_order_relaxed);
		if (before == after && (before & 1) == 0) {
			ret->series[sizeof(ret->series) - 1] = 0;
			return ret->lease_cnt != 0;
		}
	}
	return 0;
}
