/* SPDX-License-Identifier: Apache-2.0 */
/* renew.c - attach to the daemon that comes after one that ended, and take newer snapshots.
 *
 *      thread 1: step --EPIPE--> question --old is current--> retire, attach, nap, attach .. install
 *      thread 2: step --EPIPE--> question (waits) ------------> another one is current: go on
 *
 * Invariant: one thread attaches, at most one session is current, and it is replaced only once the
 * next one is complete; so whoever looks sees a whole session, if an ended one.
 *
 * Invariant: what comes after is a daemon of the same runtime directory or of the same user; a pool
 * that has the name in the other directory is somebody else's.
 *
 * The ended daemon's memory is given up before the next one is looked for: a machine may have room
 * for one pool only.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "consumer/client.h"
#include "shm/hook.h"

#define NAP_FIRST_NS 1000000L            /* between two tries, doubling ... */
#define NAP_LAST_NS  10000000L           /* ... up to here: soon at a new daemon */
#define NAP_SLOW_NS  100000000L          /* ... or here, where each try starts a process */
#define DENIED_NS    UINT64_C(200000000) /* a socket has its modes a moment after its name */

static int nobody(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED || rc == -ECONNRESET;
}

/* Will waiting not mend it? */
static int final(int rc, uint64_t since_ns)
{
	if (rc == -EACCES)
		return stoup_client_now() >= since_ns + DENIED_NS;
	return rc == -EPROTO || rc == -EINVAL || rc == -ENAMETOOLONG;
}

static void nap(long ns)
{
	const struct timespec ts = {.tv_nsec = ns};

	nanosleep(&ts, NULL);
}

/* Attach until the deadline: 0 with *ret, or the last error, whose text is in *err. */
static int attach_again(
	struct stoup *st, uint64_t deadline_ns, struct stoup_session **ret, struct stoup_error *err)
{
	long nap_ns = NAP_FIRST_NS, longest_ns;
	uint64_t since_ns = stoup_client_now(), denied_ns = 0, try_ns;
	struct stoup_error before = {0};
	int rc;

	for (;;) {
		try_ns = stoup_client_now();
		rc = stoup_session_attach(st, deadline_ns, ret, err);
		if (rc == 0)
			return 0;
		/* A try that had no time for an answer tells nothing: the reason is that of the one before. */
		if (rc == -ETIMEDOUT && before.code != 0 && try_ns + STOUP_SILENT_NS > deadline_ns)
			return stoup_error_set(err, before.code, "%s", before.text);
		before = *err;
		if (rc != -EACCES)
			denied_ns = 0;
		else if (denied_ns == 0)
			denied_ns = stoup_client_now();
		if (final(rc, denied_ns ? denied_ns : since_ns) ||
			stoup_client_now() >= deadline_ns)
			return rc;
		longest_ns = st->automatic && !nobody(rc) ? NAP_SLOW_NS : NAP_LAST_NS;
		nap(nap_ns < longest_ns ? nap_ns : longest_ns);
		nap_ns = nap_ns * 2 < NAP_SLOW_NS ? nap_ns * 2 : NAP_SLOW_NS;
	}
}

int stoup_renew_locked(
	struct stoup *st, struct stoup_session *old, uint64_t deadline_ns, struct stoup_error *err)
{
	uint64_t start_ns = stoup_client_now();
	struct stoup_session *ses;
	struct stoup_error why = {0};
	char more[STOUP_ERROR_TEXT_CAP + 64];
	int rc;

	if (st->current != old)
		return 0;
	if (st->opt.flags & STOUP_NO_RECONNECT) {
		/* What found the end may have told of it already. */
		if (err && err->code == -EPIPE)
			return -EPIPE;
		return stoup_session_explain(old, NULL, err);
	}
	stoup_session_retire(old);
	STOUP_HOOK("renew.retired");
	rc = attach_again(st, deadline_ns, &ses, &why);
	if (rc == 0) {
		STOUP_HOOK("renew.attached");
		stoup_session_install(st, ses);
		return 0;
	}
	snprintf(more, sizeof(more), ", and none came after it within %.1f s: %s",
		(double)(stoup_client_now() - start_ns) / 1e9, why.text);
	return stoup_session_explain(old, more, err);
}

int stoup_renew(
	struct stoup *st, struct stoup_session *old, uint64_t deadline_ns, struct stoup_error *err)
{
	int rc;

	pthread_mutex_lock(&st->question);
	rc = stoup_renew_locked(st, old, deadline_ns, err);
	pthread_mutex_unlock(&st->question);
	return rc;
}

/* ---- newer snapshots ------------------------------------------------------------------------- */

int stoup_question_failed(struct stoup_session *ses, int rc, struct stoup_error *err)
{
	int silent;

	if (rc == -ECONNRESET)
		return -EPIPE;
	if (rc != -ETIMEDOUT)
		return rc;
	silent = stoup_session_silent(ses, ": stopped, or stuck", err);
	return silent < 0 ? silent : rc;
}

/* With `question`: 1 there is a newer snapshot, 0 there is none, or an error. */
static int newer(struct stoup_session *ses, uint64_t deadline_ns, struct stoup_error *err)
{
	struct stoup_snapshot *snap;
	int rc = stoup_session_check(ses, STOUP_LOOK_ASK);

	if (rc < 0)
		return rc;
	/* The daemon says in shared memory when there is news: no question without. */
	if (atomic_load_explicit(&ses->control->snapshot_seq, memory_order_acquire) <=
		ses->newest->seq)
		return stoup_session_silent(ses, "", err);
	rc = stoup_hello_newest(ses, deadline_ns, &snap, err);
	if (rc < 0)
		return stoup_question_failed(ses, rc, err);
	if (snap->seq == ses->newest->seq) {
		stoup_snapshot_destroy(snap);
		return 0;
	}
	stoup_snapshot_install(ses, snap);
	return 1;
}

/* With `question`: does the path that we attached by lead to another store than the one that is served? */
static int left_behind(const struct stoup *st)
{
	char pool[STOUP_POOL_NAME_CAP], real[PATH_MAX];

	return st->automatic && !(st->opt.flags & STOUP_NO_RECONNECT) &&
	       stoup_auto_name(st->target, pool, sizeof(pool), real, NULL) == 0 &&
	       strcmp(pool, st->current->pool) != 0;
}

int stoup_refresh(struct stoup *st, struct stoup_error *err)
{
	int rc;

	if (!stoup_client_own(st))
		return stoup_client_refused(st, err);
	if (err)
		err->code = 0; /* stoup_renew_locked asks whether there is a text already */
	pthread_mutex_lock(&st->question);
	rc = left_behind(st) ? -EPIPE
	                     : newer(st->current, stoup_client_now() + st->opt.timeout_ns, err);
	if (rc == -EPIPE) {
		rc = stoup_renew_locked(
			st, st->current, stoup_client_now() + st->opt.reconnect_ns, err);
		if (rc == 0)
			rc = 1;
	}
	pthread_mutex_unlock(&st->question);
	return rc;
}
