/* SPDX-License-Identifier: Apache-2.0 */
/* fork_auto.c - handles whose leases are copied at each fork of this process, whoever forks.
 *
 *      fork():  prepare --for each handle with cursors or leases: stoup_fork_prepare--> locks held
 *                 | parent: stoup_fork_parent
 *                 | child:  stoup_fork_child; where there is no copy: the data is made unreadable
 *
 * For hosts that do not call fork themselves: an interpreter, a framework. The hooks are libc's, so that nothing of
 * the host runs between them, no finalizer, no signal handler of an interpreter, and all that forks is seen.
 *
 * A handle that has nothing is not copied: its child attaches anew when it needs to. A child without a copy must
 * not read what its parent held, which may be reused by now. It did not ask for this fork to be prepared and is told
 * by nobody, so the bytes are taken from it: SIGSEGV instead of other records.
 *
 * Concurrency: the list is under a mutex of its own, taken before all others and held over the fork.
 */
#include <errno.h>
#include <sys/mman.h>
#include "consumer/client.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct stoup *list_first;
static int hooked;

static int in_use(const struct stoup *st)
{
	return st->cursor_cnt > 0 || st->hold_cnt > 0;
}

static void before(void)
{
	pthread_mutex_lock(&list_mutex);
	for (struct stoup *st = list_first; st; st = st->fork_next) {
		st->fork_state = (struct stoup_fork){0};
		if (stoup_use_cnt(st) > 0)
			stoup_fork_prepare(st, &st->fork_state, NULL);
	}
}

static void in_parent(void)
{
	for (struct stoup *st = list_first; st; st = st->fork_next)
		if (st->fork_state.client)
			stoup_fork_parent(&st->fork_state, 1);
	pthread_mutex_unlock(&list_mutex);
}

/* Nobody keeps these bytes for us. Those of volumes' own files stay. */
static void take_away(struct stoup *st)
{
	for (struct stoup_session *ses = st->sessions; ses; ses = ses->next)
		if (ses->data_region.base)
			mprotect(ses->data_region.base, ses->data_region.len, PROT_NONE);
}

static void in_child(void)
{
	for (struct stoup *st = list_first; st; st = st->fork_next) {
		if (st->fork_state.client) {
			if (stoup_fork_child(&st->fork_state, NULL) < 0)
				take_away(st);
		} else if (!stoup_client_own(st) && in_use(st)) {
			take_away(st);
		}
	}
	pthread_mutex_unlock(&list_mutex);
}

int stoup_fork_auto(struct stoup *st)
{
	int rc = 0;

	if (!st)
		return -EINVAL;
	if (!stoup_client_own(st))
		return -ECHILD;
	pthread_mutex_lock(&list_mutex);
	if (!hooked)
		rc = -pthread_atfork(before, in_parent, in_child);
	hooked = hooked || rc == 0;
	if (rc == 0 && !st->fork_auto) {
		st->fork_auto = 1;
		st->fork_next = list_first;
		list_first = st;
	}
	pthread_mutex_unlock(&list_mutex);
	return rc;
}

void stoup_fork_auto_fini(struct stoup *st)
{
	struct stoup **at = &list_first;

	if (!st->fork_auto)
		return;
	pthread_mutex_lock(&list_mutex);
	while (*at != st)
		at = &(*at)->fork_next;
	*at = st->fork_next;
	pthread_mutex_unlock(&list_mutex);
}
