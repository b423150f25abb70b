/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - life and health of one attachment to one daemon.
 *
 *      running --state STOPPED, or the socket hung up or closed--> ended (for ever)
 *          \----- no heartbeat for 3 s --process gone------------> -EPIPE
 *                                        \-else, or not known----> silent: -ETIME, may come back
 *
 *      ended --users 0--> data, page, socket and doorbell go --refs 0--> freed
 *
 * Invariant: `ended` is set once and never reset. Bytes that somebody holds stay readable: a hold
 * and a cursor at work count as users of the session's memory.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include "consumer/client.h"
#include "shm/hook.h"
#include "shm/lease.h"

#define DYING_NS     UINT64_C(50000000) /* a killed process shows in /proc for a moment */
#define DYING_NAP_NS 2000000

/* ---- making and freeing ---------------------------------------------------------------------- */

int stoup_session_make(struct stoup *st, const char *pool, uint32_t dir_idx,
	struct stoup_session **ret, struct stoup_error *err)
{
	struct stoup_session *ses = calloc(1, sizeof(*ses));

	if (!ses)
		return stoup_error_set(err, -ENOMEM, "no memory to attach");
	ses->client = st;
	ses->sock_fd = ses->bell_fd = -1;
	ses->control_region.fd = ses->control_region.ro_fd = -1;
	ses->data_region.fd = ses->data_region.ro_fd = -1;
	ses->page_region.fd = ses->page_region.ro_fd = -1;
	ses->dir_idx = dir_idx;
	snprintf(ses->pool, sizeof(ses->pool), "%s", pool);
	*ret = ses;
	return 0;
}

/* What a daemon's memory consists of here, taken out of the session to be given up without a lock. */
struct memory {
	struct stoup_region data, page;
	int sock_fd, bell_fd;
};

static void memory_take(struct stoup_session *ses, struct memory *ret)
{
	*ret = (struct memory){ses->data_region, ses->page_region, ses->sock_fd, ses->bell_fd};
	ses->data_region.base = ses->page_region.base = NULL;
	ses->sock_fd = ses->bell_fd = -1;
	ses->page = NULL;
}

static void memory_give_up(struct memory *mem, int own)
{
	struct stoup_page *page = mem->page.base;

	/* A child of a fork has no page: its mapping was not inherited. */
	if (!own)
		mem->page.base = NULL;
	/* Release, for the conductor's acquire load: all our reads of the pool come before. The
	 * hang-up makes the daemon look; a page that says DETACHED needs no proof of death. */
	else if (page) {
		atomic_store_explicit(&page->state, STOUP_PAGE_DETACHED, memory_order_release);
		STOUP_HOOK("detach.said");
	}
	stoup_region_fini(&mem->page);
	stoup_region_fini(&mem->data);
	/* Closing alone does not hang up while a child of a fork has a copy; and the child's close
	 * must not hang up for us. */
	if (mem->sock_fd >= 0 && own)
		shutdown(mem->sock_fd, SHUT_RDWR);
	if (mem->sock_fd >= 0)
		close(mem->sock_fd);
	if (mem->bell_fd >= 0)
		close(mem->bell_fd);
}

void stoup_session_destroy(struct stoup_session *ses)
{
	struct memory mem;

	if (!ses)
		return;
	while (ses->snapshots) {
		struct stoup_snapshot *snap = ses->snapshots;

		ses->snapshots = snap->next;
		stoup_snapshot_destroy(snap);
	}
	memory_take(ses, &mem);
	memory_give_up(&mem, !ses->client->own || stoup_client_own(ses->client));
	stoup_cells_fini(ses);
	stoup_region_fini(&ses->control_region);
	free(ses);
}

/* ---- references ------------------------------------------------------------------------------ */

/* Under the mutex: its counters stay when the page goes. */
static void past_add(struct stoup *st, const struct stoup_page *page)
{
	struct stoup_stats *past = &st->past;

	past->hit_cnt += atomic_load_explicit(&page->hit_cnt, memory_order_relaxed);
	past->miss_cnt += atomic_load_explicit(&page->miss_cnt, memory_order_relaxed);
	past->timeout_cnt += atomic_load_explicit(&page->timeout_cnt, memory_order_relaxed);
	past->wait_ns += atomic_load_explicit(&page->wait_ns, memory_order_relaxed);
	past->record_cnt += atomic_load_explicit(&page->record_cnt, memory_order_relaxed);
	past->doorbell_cnt += atomic_load_explicit(&page->doorbell_cnt, memory_order_relaxed);
}

/* Under the mutex: one user less. 1 with *mem when that was the last one. */
static int user_drop(struct stoup_session *ses, struct memory *mem)
{
	if (--ses->users > 0)
		return 0;
	past_add(ses->client, ses->page);
	memory_take(ses, mem);
	return 1;
}

/* Under the mutex: one reference less. 1 when that was the last one: destroy it. */
static int ref_drop(struct stoup_session *ses)
{
	struct stoup_session **at = &ses->client->sessions;

	if (--ses->refs > 0)
		return 0;
	while (*at != ses)
		at = &(*at)->next;
	*at = ses->next;
	return 1;
}

struct stoup_session *stoup_session_current(struct stoup *st)
{
	struct stoup_session *ses;

	pthread_mutex_lock(&st->mutex);
	ses = st->current;
	ses->refs++;
	pthread_mutex_unlock(&st->mutex);
	return ses;
}

void stoup_session_release(struct stoup_session *ses)
{
	struct stoup *st = ses ? ses->client : NULL;
	int last;

	if (!ses)
		return;
	pthread_mutex_lock(&st->mutex);
	last = ref_drop(ses);
	pthread_mutex_unlock(&st->mutex);
	if (last)
		stoup_session_destroy(ses);
}

int stoup_session_enter(struct stoup_session *ses)
{
	int rc = -EPIPE;

	pthread_mutex_lock(&ses->client->mutex);
	if (ses->page && atomic_load_explicit(&ses->ended, memory_order_relaxed) == 0) {
		ses->users++;
		rc = 0;
	}
	pthread_mutex_unlock(&ses->client->mutex);
	return rc;
}

void stoup_session_leave(struct stoup_session *ses)
{
	struct memory mem;
	int last;

	pthread_mutex_lock(&ses->client->mutex);
	last = user_drop(ses, &mem);
	pthread_mutex_unlock(&ses->client->mutex);
	if (last)
		memory_give_up(&mem, 1);
}

void stoup_session_retire(struct stoup_session *ses)
{
	struct memory mem;
	uint64_t none = 0;
	int last = 0;

	/* Whoever found that it ended need not have been the one who looked at the socket. */
	atomic_compare_exchange_strong_explicit(&ses->ended, &none, stoup_client_now() * 2,
		memory_order_relaxed, memory_order_relaxed);
	pthread_mutex_lock(&ses->client->mutex);
	if (ses->running)
		last = user_drop(ses, &mem);
	ses->running = 0;
	pthread_mutex_unlock(&ses->client->mutex);
	if (last)
		memory_give_up(&mem, 1);
}

void stoup_session_install(struct stoup *st, struct stoup_session *ses)
{
	struct stoup_session *old = st->current;
	struct stoup_snapshot *snap = NULL;

	if (old)
		stoup_session_retire(old);
	pthread_mutex_lock(&st->mutex);
	ses->no = ++st->session_seq;
	ses->refs = ses->users = 1;
	ses->running = 1;
	ses->next = st->sessions;
	st->sessions = st->current = ses;
	if (old) {
		snap = old->newest;
		old->newest = NULL;
		st->past.reconnect_cnt++;
	}
	pthread_mutex_unlock(&st->mutex);
	stoup_snapshot_release(snap);
	stoup_session_release(old);
}

/* ---- health ---------------------------------------------------------------------------------- */

/* Nanoseconds since the daemon's last heartbeat. */
static uint64_t silence(const struct stoup_session *ses, uint64_t now_ns)
{
	uint64_t beat = atomic_load_explicit(&ses->control->heartbeat_ns, memory_order_relaxed);

	return now_ns > beat ? now_ns - beat : 0;
}

/* Is the connection over? *ret_lost: our end is closed, by this process and not by us. */
static int hung_up(const struct stoup_session *ses, uint64_t *ret_lost)
{
	struct pollfd p = {.fd = ses->sock_fd, .events = POLLRDHUP};

	if (poll(&p, 1, 0) <= 0)
		return 0;
	*ret_lost = (p.revents & POLLNVAL) != 0;
	return (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

/* The kernel would have marked the daemon's end, its heart beats, and it says that it serves us: asking the socket
 * would tell no more. It changes the entry when it closes a connection; the number of an attachment is not
 * given out again. */
static int served(const struct stoup_session *ses)
{
	const struct stoup_control *c = ses->control;
	const struct stoup_control_consumer *entry;
	uint32_t idx;

	if (!ses->page || stoup_alive_look(&c->alive) != STOUP_ALIVE_YES ||
		silence(ses, stoup_client_now()) > STOUP_SILENT_NS)
		return 0;
	idx = ses->page->consumer_idx;
	if (idx >= c->consumer_cap)
		return 0;
	entry = &stoup_control_consumers(c)[idx];
	return atomic_load_explicit(&entry->state, memory_order_relaxed) ==
	               STOUP_CONSUMER_ATTACHED &&
	       atomic_load_explicit(&entry->attach_no, memory_order_relaxed) ==
	               ses->page->attach_no;
}

int stoup_session_daemon_gone(const struct stoup_session *ses)
{
	/* Not seen when we attached: /proc does not show the daemon here (another PID namespace, or
	 * mounted with hidepid). */
	if (!ses->daemon_seen)
		return 0;
	return stoup_control_life(ses->control) == 0;
}

/* The end was seen just now: a killed daemon's sockets close a moment before /proc shows that it is
 * dead. */
static void wait_for_death(const struct stoup_session *ses)
{
	const struct timespec nap = {.tv_nsec = DYING_NAP_NS};
	uint64_t until_ns = atomic_load_explicit(&ses->ended, memory_order_relaxed) / 2 + DYING_NS;

	while (!stoup_session_daemon_gone(ses) && stoup_client_now() < until_ns)
		nanosleep(&nap, NULL);
}

static int say_dead(const struct stoup_session *ses, const char *more, struct stoup_error *err)
{
	return stoup_error_set(err, -EPIPE, "the daemon of pool '%s' (pid %u) is dead%s", ses->pool,
		ses->control->daemon_pid, more ? more : ": start it again and attach anew");
}

int stoup_session_explain(struct stoup_session *ses, const char *more, struct stoup_error *err)
{
	uint32_t state = atomic_load_explicit(&ses->control->state, memory_order_acquire);
	char text[128];

	if (state != STOUP_STATE_RUNNING)
		return stoup_error_set(err, -EPIPE, "the daemon of pool '%s' was stopped%s",
			ses->pool, more ? more : ": start it again and attach anew");
	if (ses->daemon_seen)
		wait_for_death(ses);
	if (stoup_session_daemon_gone(ses))
		return say_dead(ses, more, err);
	if (atomic_load_explicit(&ses->ended, memory_order_relaxed) & 1)
		return stoup_error_set(err, -EPIPE,
			"this process closed the descriptor of its connection to pool '%s'%s",
			ses->pool,
			more ? more
			     : ": leave descriptors that are not yours open, and attach anew");
	snprintf(text, sizeof(text),
		"; its log says why, such as more than %llu bytes leased: attach anew",
		(unsigned long long)ses->lease_bytes_cap);
	return stoup_error_set(err, -EPIPE, "the daemon of pool '%s' (pid %u) %s this connection%s",
		ses->pool, ses->control->daemon_pid,
		ses->daemon_seen ? "closed" : "died, or closed", more ? more : text);
}

int stoup_session_check(struct stoup_session *ses, enum stoup_look look)
{
	uint64_t none = 0, lost = 0;

	if (atomic_load_explicit(&ses->ended, memory_order_relaxed) == 0) {
		if (atomic_load_explicit(&ses->control->state, memory_order_relaxed) ==
				STOUP_STATE_RUNNING &&
			stoup_alive_look(&ses->control->alive) != STOUP_ALIVE_NO &&
			(look == STOUP_LOOK_STATE || (look == STOUP_LOOK_PULSE && served(ses)) ||
				!hung_up(ses, &lost)))
			return 0;
		/* The first one stays: another thread's words may be out already. */
		atomic_compare_exchange_strong_explicit(&ses->ended, &none,
			stoup_client_now() * 2 + lost, memory_order_relaxed, memory_order_relaxed);
	}
	return -EPIPE;
}

int stoup_session_silent(struct stoup_session *ses, const char *more, struct stoup_error *err)
{
	uint64_t silent = silence(ses, stoup_client_now());

	if (silent <= STOUP_SILENT_NS)
		return 0;
	/* The socket did not tell: its number may be another file's by now. */
	if (stoup_session_daemon_gone(ses))
		return say_dead(ses, NULL, err);
	return stoup_error_set(err, -ETIME,
		"the daemon of pool '%s' (pid %u) lives but is silent for %.1f s%s; mend: "
		"kill -CONT %u, or kill -9 it and start another",
		ses->pool, ses->control->daemon_pid, (double)silent / 1e9, more,
		ses->control->daemon_pid);
}

int stoup_health(struct stoup *st, struct stoup_error *err)
{
	struct stoup_session *ses;
	int rc;

	if (!stoup_client_own(st))
		return stoup_client_refused(st, err);
	ses = stoup_session_current(st);
	rc = stoup_session_enter(ses);
	if (rc == 0) {
		rc = stoup_session_check(ses, STOUP_LOOK_ASK);
		if (rc == 0)
			rc = stoup_session_silent(ses, "", err);
		else
			rc = stoup_session_explain(ses, NULL, err);
		stoup_session_leave(ses);
	} else {
		rc = stoup_session_explain(ses, NULL, err);
	}
	stoup_session_release(ses);
	return rc;
}
