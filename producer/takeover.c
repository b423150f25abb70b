/* SPDX-License-Identifier: Apache-2.0 */
/* takeover.c - who still maps the pool of the daemon before, and waiting for them. */
#include "producer/takeover.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "producer/memory.h"

#define LOOK_MS       2000                /* longest look at all processes */
#define LOOK_EVERY_NS UINT64_C(500000000) /* memory is tried more often: that costs less */
#define TRY_NS        50000000L

struct found {
	uint32_t cnt;
	char who[96];
};

void stoup_takeover_begin(struct stoup_takeover *t, uint64_t wait_ns)
{
	memset(t, 0, sizeof(*t));
	t->begin_ns = stoup_now_ns();
	t->until_ns = t->begin_ns + wait_ns;
}

/* ---- who maps it ------------------------------------------------------------------------------ */

/* Is this line of a memory map the region `name`? A POSIX one must lie in our /dev/shm (`dev`): another
 * container has its own. */
static int is_region(const char *line, const char *name, const char *dev)
{
	const char *at = strstr(line, name);

	/* "/dev/shm/NAME (deleted)", or "/memfd:NAME (deleted)": its name went when it was made. */
	if (!at || at == line || strncmp(at + strlen(name), " (deleted)", 10) != 0)
		return 0;
	return at[-1] == ':' || (at[-1] == '/' && strstr(line, dev) != NULL);
}

static int maps_region(const char *pid, const char *name, const char *dev)
{
	char path[300], line[512];
	int found = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	maps = fopen(path, "re");
	while (maps && !found && fgets(line, sizeof(line), maps))
		found = is_region(line, name, dev);
	if (maps)
		fclose(maps);
	return found;
}

static void add_process(struct found *found, const char *pid)
{
	size_t used = strlen(found->who), left = sizeof(found->who) - used;
	char path[300], comm[20] = "?";
	FILE *file;
	int len;

	found->cnt++;
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (file && fgets(comm, sizeof(comm), file))
		comm[strcspn(comm, "\n")] = 0;
	if (file)
		fclose(file);
	len = snprintf(found->who + used, left, "%s%.10s (%s)", used ? ", " : "", pid, comm);
	if (len < 0 || (size_t)len >= left)
		found->who[used] = 0;
}

static void look_at_all(const char *name, struct found *found)
{
	const struct dirent *entry;
	struct stat st;
	char dev[32] = " none ";
	DIR *proc = opendir("/proc");

	if (stat("/dev/shm", &st) == 0)
		snprintf(dev, sizeof(dev), " %02x:%02x ", major(st.st_dev), minor(st.st_dev));
	while (proc && (entry = readdir(proc)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) &&
			maps_region(entry->d_name, name, dev))
			add_process(found, entry->d_name);
	if (proc)
		closedir(proc);
}

/* In a child, which can be ended when a process keeps it from reading. */
static void look(const struct stoup_daemon *d, struct found *found)
{
	struct pollfd end;
	char name[96];
	int pipe_fd[2];
	pid_t child;

	memset(found, 0, sizeof(*found));
	snprintf(name, sizeof(name), "stoup.%u.%s.data", (unsigned int)d->uid, d->opt.pool);
	if (pipe(pipe_fd) < 0)
		return;
	child = fork();
	if (child == 0) {
		/* The locks are the daemon's: they must not live on in here. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(d->lock_fd);
		if (d->control_region.fd >= 0)
			close(d->control_region.fd);
		look_at_all(name, found);
		_exit(write(pipe_fd[1], found, sizeof(*found)) != (ssize_t)sizeof(*found));
	}
	close(pipe_fd[1]);
	end = (struct pollfd){.fd = pipe_fd[0], .events = POLLIN};
	if (child < 0 || poll(&end, 1, LOOK_MS) != 1 ||
		read(pipe_fd[0], found, sizeof(*found)) != (ssize_t)sizeof(*found))
		memset(found, 0, sizeof(*found));
	close(pipe_fd[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static void who_text(const struct found *found, char *dst, size_t cap)
{
	uint32_t shown = found->who[0] ? 1 : 0;

	for (const char *at = found->who; (at = strstr(at, "), ")) != NULL; at++)
		shown++;
	if (found->cnt > shown)
		snprintf(dst, cap, "%.80s and %u more", found->who, found->cnt - shown);
	else
		snprintf(dst, cap, "%s", found->who);
}

/* 1 when a signal told to stop. The daemon's signals are blocked, and not read yet. */
static int pause_told(void)
{
	const struct timespec time = {.tv_nsec = TRY_NS};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	return sigtimedwait(&set, NULL, &time) > 0;
}

int stoup_takeover_wait(struct stoup_takeover *t, struct stoup_daemon *d, uint64_t len, int rc,
	struct stoup_error *err)
{
	uint64_t now = stoup_now_ns(), available, shm;
	char what[96], who[sizeof(t->who)];
	struct found found;

	if (now >= t->look_ns || now >= t->until_ns) {
		look(d, &found);
		who_text(&found, who, sizeof(who));
		t->look_ns = stoup_now_ns() + LOOK_EVERY_NS;
		if (found.cnt > 0 && now < t->until_ns && strcmp(who, t->who) != 0)
			stoup_log_error(d, rc,
				"waiting for memory, at most %.1f s: the pool of the daemon before is still "
				"mapped by %s",
				(double)(t->until_ns - now) / 1e9, who);
		t->cnt = found.cnt;
		memcpy(t->who, who, sizeof(who));
	}
	if (t->cnt == 0)
		return rc;
	if (now < t->until_ns)
		return pause_told() ? stoup_error_set(err, -EINTR,
					      "told to stop while it waited for memory")
		                    : 0;
	available = stoup_memory_available(what, sizeof(what));
	shm = stoup_region_available(d->opt.backing);
	return stoup_error_set(err, rc,
		"needed %llu bytes, available %llu: the pool of the daemon before is still mapped by %s; "
		"waited %.1f s; mend: let them detach, end them, or --takeover-wait TIME",
		(unsigned long long)len, (unsigned long long)(shm < available ? shm : available),
		t->who, (double)(now - t->begin_ns) / 1e9);
}
