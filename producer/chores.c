/* SPDX-License-Identifier: Apache-2.0 */
/* chores.c - the thread that may wait: closes peers' sockets, reads memory maps. */
#include "producer/chores.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "shm/control.h"

#define END_WAIT_NS 200000000L /* destroy waits so long for what is under way */

enum look_state {
	LOOK_NONE,
	LOOK_ASKED,
	LOOK_MAPPED,
	LOOK_GONE
};

struct chore {
	int fd; /* to close; -1: a look */
	uint32_t idx, pid;
	uint64_t attach_no;
};

struct look {
	uint64_t attach_no;
	enum look_state state;
};

struct stoup_chores {
	pthread_mutex_t mutex; /* held for moments, never while a chore is done */
	pthread_cond_t more, done;
	pthread_t thread;
	uint32_t daemon_pid, look_cap;
	uint32_t first, cnt;
	int quit, ended;
	int orphan; /* destroy did not wait any longer: the thread frees all of this */
	struct chore queue[STOUP_CHORE_CAP];
	struct look looks[];
};

/* Does the process still map its page? 1 also when that can not be known. */
static int page_mapped(uint32_t daemon_pid, uint32_t pid, uint64_t attach_no)
{
	char path[64], label[64], line[512];
	FILE *maps;
	int found = 0;

	/* A process of another PID namespace has no number here (0), or a stranger has it in our /proc. */
	if (pid == 0 || !stoup_proc_ours())
		return 1;
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	snprintf(label, sizeof(label), "/memfd:stoup.page.%u.%llu ", daemon_pid,
		(unsigned long long)attach_no);
	maps = fopen(path, "re");
	if (!maps)
		return 1;
	while (!found && fgets(line, sizeof(line), maps))
		found = strstr(line, label) != NULL;
	if (ferror(maps))
		found = 1;
	fclose(maps);
	return found;
}

static void look_done(struct stoup_chores *c, const struct chore *chore, int mapped)
{
	struct look *look = &c->looks[chore->idx];

	pthread_mutex_lock(&c->mutex);
	/* The place may be another consumer's by now. */
	if (look->attach_no == chore->attach_no)
		look->state = mapped ? LOOK_MAPPED : LOOK_GONE;
	pthread_mutex_unlock(&c->mutex);
}

static void chores_free(struct stoup_chores *c)
{
	pthread_cond_destroy(&c->more);
	pthread_cond_destroy(&c->done);
	pthread_mutex_destroy(&c->mutex);
	free(c);
}

static void *run(void *arg)
{
	struct stoup_chores *c = arg;
	int orphan;

	pthread_mutex_lock(&c->mutex);
	for (;;) {
		struct chore chore;

		while (c->cnt == 0 && !c->quit)
			pthread_cond_wait(&c->more, &c->mutex);
		if (c->cnt == 0)
			break;
		chore = c->queue[c->first];
		c->first = (c->first + 1) % STOUP_CHORE_CAP;
		c->cnt--;
		pthread_mutex_unlock(&c->mutex);
		if (chore.fd >= 0)
			close(chore.fd);
		else
			look_done(
				c, &chore, page_mapped(c->daemon_pid, chore.pid, chore.attach_no));
		pthread_mutex_lock(&c->mutex);
	}
	c->ended = 1;
	orphan = c->orphan;
	pthread_cond_signal(&c->done);
	pthread_mutex_unlock(&c->mutex);
	if (orphan)
		chores_free(c);
	return NULL;
}

int stoup_chores_create(uint32_t look_cap, uint32_t daemon_pid, struct stoup_chores **ret)
{
	struct stoup_chores *c = calloc(1, sizeof(*c) + look_cap * sizeof(c->looks[0]));
	pthread_condattr_t attr;
	int rc;

	if (!c)
		return -ENOMEM;
	c->look_cap = look_cap;
	c->daemon_pid = daemon_pid;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->more, NULL);
	/* The wall clock may jump while destroy waits. */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->done, &attr);
	pthread_condattr_destroy(&attr);
	rc = pthread_create(&c->thread, NULL, run, c);
	if (rc != 0) {
		chores_free(c);
		return -rc;
	}
	*ret = c;
	return 0;
}

void stoup_chores_destroy(struct stoup_chores *c)
{
	struct timespec until;
	pthread_t thread;
	int ended;

	if (!c)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += END_WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&c->mutex);
	c->quit = 1;
	pthread_cond_signal(&c->more);
	while (!c->ended && pthread_cond_timedwait(&c->done, &c->mutex, &until) != ETIMEDOUT)
		;
	ended = c->ended;
	thread = c->thread;
	/* Whoever waits longer frees all of this when it comes back. */
	c->orphan = !ended;
	pthread_mutex_unlock(&c->mutex);
	if (!ended) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	chores_free(c);
}

/* Under the mutex. 0 or -EAGAIN: too many wait. */
static int push(struct stoup_chores *c, const struct chore *chore)
{
	if (c->cnt == STOUP_CHORE_CAP)
		return -EAGAIN;
	c->queue[(c->first + c->cnt++) % STOUP_CHORE_CAP] = *chore;
	pthread_cond_signal(&c->more);
	return 0;
}

void stoup_chores_close(struct stoup_chores *c, int fd)
{
	struct chore chore = {.fd = fd};

	/* The peer learns it at once, whatever the closing waits for. */
	shutdown(fd, SHUT_RDWR);
	pthread_mutex_lock(&c->mutex);
	push(c, &chore);
	pthread_mutex_unlock(&c->mutex);
}

void stoup_chores_look(struct stoup_chores *c, uint32_t idx, uint32_t pid, uint64_t attach_no)
{
	struct chore chore = {.fd = -1, .idx = idx, .pid = pid, .attach_no = attach_no};

	if (idx >= c->look_cap)
		return;
	pthread_mutex_lock(&c->mutex);
	c->looks[idx].attach_no = attach_no;
	c->looks[idx].state = push(c, &chore) == 0 ? LOOK_ASKED : LOOK_NONE;
	pthread_mutex_unlock(&c->mutex);
}

int stoup_chores_looked(struct stoup_chores *c, uint32_t idx, uint64_t attach_no)
{
	enum look_state state = LOOK_NONE;

	if (idx >= c->look_cap)
		return -ENOENT;
	pthread_mutex_lock(&c->mutex);
	if (c->looks[idx].attach_no == attach_no)
		state = c->looks[idx].state;
	pthread_mutex_unlock(&c->mutex);
	if (state == LOOK_ASKED)
		return -EAGAIN;
	return state == LOOK_NONE ? -ENOENT : state == LOOK_MAPPED;
}
