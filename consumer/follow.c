/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - cursors that go on when the store grows, and waiting for that.
 *
 *      stoup_next: the end --newer snapshot?--> take it, look for the anchor, go on behind it
 *                     ^          | no
 *                     |          +--> 0
 *      stoup_wait_news: asleep on control->snapshot_seq, in slices; the daemon wakes whoever sleeps there
 *
 * What is news? A thread that was told of an end has seen the snapshot whose end it was: whatever came since is
 * news to it, also when another thread has taken that snapshot for the handle already. So no thread sleeps over
 * records that its cursors have not looked for. A mark that is out of date costs one wait that returns at once.
 *
 * Memory order: the daemon stores the number (release) before it wakes, the kernel compares the number again before it
 * lets anybody sleep on it, so that no wake-up is lost; the acquire load makes the volumes' entries visible that were
 * stored before.
 *
 * Death: a slice ends with a look at the daemon; after its end the wait goes over to the next one, which is news.
 */
#include <errno.h>
#include "consumer/cursor.h"
#include "shm/futex.h"

/* One snapshot of one session of a handle. */
struct mark {
	const struct stoup *st; /* NULL: none */
	uint64_t seq;
	uint32_t session_no;
};

/* The oldest one at whose end a cursor of this thread stood since the last news. */
static _Thread_local struct mark seen __attribute__((tls_model("initial-exec")));

/* The newest snapshot of the handle, and how the daemon counts. */
static struct mark newest(struct stoup *st, uint64_t *ret_daemon_seq)
{
	struct mark ret = {.st = st};

	pthread_mutex_lock(&st->mutex);
	ret.seq = st->current->newest->seq;
	ret.session_no = st->current->no;
	*ret_daemon_seq =
		atomic_load_explicit(&st->current->control->snapshot_seq, memory_order_acquire);
	pthread_mutex_unlock(&st->mutex);
	return ret;
}

int stoup_follow(struct stoup_cursor *cur)
{
	struct stoup *st = cur->st;
	struct stoup_snapshot *snap;
	struct stoup_session *ses;
	uint64_t daemon_seq;
	int rc;

	cur->bare = !cur->anchor.valid;
	/* The limit was reached; or a batch ends here, and the next call looks. */
	if ((cur->limited && cur->until <= (int64_t)stoup_cursor_total(cur)) || cur->hasty)
		return 0;
	if (newest(st, &daemon_seq).seq < daemon_seq) {
		rc = stoup_refresh(st, &cur->error);
		if (rc < 0)
			return rc;
	}
	snap = stoup_snapshot_current(st);
	ses = snap->session;
	if (snap == cur->snap) {
		if (seen.st != st)
			seen = (struct mark){st, snap->seq, ses->no};
		stoup_snapshot_release(snap);
		stoup_session_release(ses);
		return 0;
	}
	rc = stoup_cursor_move(cur, snap);
	return rc < 0 ? rc : 1;
}

/* Is there news since `mark`? */
static int is_news(struct stoup *st, const struct mark *mark)
{
	uint64_t daemon_seq;
	struct mark now = newest(st, &daemon_seq);

	return now.session_no != mark->session_no || now.seq != mark->seq || daemon_seq > now.seq;
}

/* Sleep a slice. 0; -EPIPE: the session has ended; -ETIME with text. */
static int doze(struct stoup_session *ses, uint64_t seq, uint64_t left_ns, struct stoup_error *err)
{
	const _Atomic uint64_t *word = &ses->control->snapshot_seq;
	uint64_t slice = left_ns < (uint64_t)STOUP_SLICE_NS ? left_ns : (uint64_t)STOUP_SLICE_NS;
	int rc = stoup_session_check(ses, STOUP_LOOK_ASK);

	if (rc == 0)
		rc = stoup_session_silent(ses, ": stopped, or stuck", err);
	/* The low half of the number. */
	if (rc == 0)
		stoup_futex_wait(
			(const _Atomic uint32_t *)(uintptr_t)word, (uint32_t)seq, (int64_t)slice);
	return rc;
}

int stoup_wait_news(struct stoup *st, uint64_t timeout_ns, struct stoup_error *err)
{
	uint64_t until_ns, now, daemon_seq;
	struct stoup_session *ses;
	struct mark mark;
	int rc = 0;

	if (!stoup_client_own(st))
		return stoup_client_refused(st, err);
	if (err)
		err->code = 0; /* stoup_renew asks whether there is a text already */
	mark = seen.st == st ? seen : newest(st, &daemon_seq);
	until_ns = stoup_client_now() +
	           (timeout_ns < STOUP_TIMEOUT_MAX_NS ? timeout_ns : STOUP_TIMEOUT_MAX_NS);
	while (rc == 0 && !is_news(st, &mark)) {
		now = stoup_client_now();
		if (now >= until_ns)
			return 0;
		ses = stoup_session_current(st);
		rc = doze(ses, mark.seq, until_ns - now, err);
		if (rc == -EPIPE)
			rc = stoup_renew(st, ses, stoup_client_now() + st->opt.reconnect_ns, err);
		stoup_session_release(ses);
	}
	if (rc < 0)
		return rc;
	seen.st = NULL;
	return 1;
}
