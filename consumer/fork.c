/* SPDX-License-Identifier: Apache-2.0 */
/* fork.c - a child that inherits the leases of its parent.
 *
 *      parent                        daemon                       child
 *        | locks; fork, please  --->  copies the cells
 *        | <--- ticket                into a page of its own
 *        | fork() ------------------------------------------------> |
 *        | unlocks                        | <--- hello, ticket ---- | connects anew
 *        |                                | --- that page --------> | maps it, sets its records right
 *        |                                                          | unlocks, is its own process
 *
 * Invariant: from the copy on, whatever the parent releases stays leased for the child. The child
 * inherits control, data and catalogs as they are mapped; it never touches the parent's page, which
 * it does not have (MADV_DONTFORK), nor the parent's socket, which it closes without hanging up.
 *
 * Other threads of the parent that hit go on between copy and fork, since a hit takes no lock. So
 * the copy may be some leases behind our records; stoup_cells_settle makes both agree. Only cursors
 * of such threads can be affected, and those the child may only close.
 *
 * A session that ended while its daemon lives on (it was cut off) has leases of its own there, and is
 * copied and joined like the current one. When the daemon has ended, nobody reuses the bytes: then there
 * is nothing to copy and nobody to ask, so that a fork waits for no daemon (ticket 0).
 *
 * If the parent dies, or the child never comes, the copy goes after 10 s.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "consumer/client.h"
#include "shm/hook.h"
#include "shm/lease.h"

static void unlock(struct stoup *st)
{
	pthread_mutex_unlock(&st->mutex);
	pthread_mutex_unlock(&st->question);
}

/* With `question` and the mutex: give up what was copied, of the current session's too when `ticket` is. */
static void uncopy(struct stoup *st, uint64_t ticket)
{
	uint64_t deadline_ns = stoup_client_now() + STOUP_SILENT_NS, none;

	/* Unsaid, copies would go by themselves, 10 s later. */
	if (ticket)
		stoup_hello_fork(st->current, ticket, deadline_ns, &none, NULL);
	for (struct stoup_session *ses = st->sessions; ses; ses = ses->next) {
		if (ses->fork_ticket)
			stoup_hello_fork(st->current, ses->fork_ticket, deadline_ns, &none, NULL);
		ses->fork_ticket = 0;
	}
}

/* Has it ended, and its daemon not? */
static int is_former(const struct stoup *st, const struct stoup_session *ses)
{
	const struct stoup_session *current = st->current;

	return ses != current && ses->page &&
	       memcmp(ses->control->instance, current->control->instance,
		       sizeof(current->control->instance)) == 0;
}

/* With `question` and the mutex: copies of what is held in former sessions. */
static int copy_formers(struct stoup *st, uint64_t deadline_ns, struct stoup_error *err)
{
	int rc = 0;

	for (struct stoup_session *ses = st->sessions; ses && rc == 0; ses = ses->next) {
		if (!is_former(st, ses))
			continue;
		rc = stoup_hello_former(st->current, ses, deadline_ns, &ses->fork_ticket, err);
		ses->fork_high = stoup_cell_high(ses->page, ses->cell_cap);
	}
	return rc;
}

/* With `question`, and on 0 with the mutex: the ticket of a copy. */
static int copy(struct stoup *st, uint64_t *ret_ticket, struct stoup_error *err)
{
	uint64_t deadline_ns = stoup_client_now() + st->opt.timeout_ns;
	struct stoup_session *ses = st->current;
	int rc = stoup_session_check(ses, STOUP_LOOK_ASK);

	if (rc < 0)
		return rc;
	/* Held over the question: holds and shared cells are those that the daemon copies. */
	pthread_mutex_lock(&st->mutex);
	*ret_ticket = 0;
	rc = stoup_hello_fork(ses, 0, deadline_ns, ret_ticket, err);
	if (rc == 0)
		rc = copy_formers(st, deadline_ns, err);
	if (rc == 0)
		return 0;
	uncopy(st, *ret_ticket);
	pthread_mutex_unlock(&st->mutex);
	return stoup_question_failed(ses, rc, err);
}

/* With `question`: is the daemon gone for certain? May wait a moment for /proc to show it. */
static int is_gone(struct stoup *st)
{
	stoup_session_explain(st->current, "", NULL);
	return stoup_session_daemon_gone(st->current);
}

int stoup_fork_prepare(struct stoup *st, struct stoup_fork *ret, struct stoup_error *err)
{
	uint64_t ticket = 0, deadline_ns;
	int rc;

	if (!st || !ret)
		return stoup_error_set(err, -EINVAL, "no attachment was given");
	if (!stoup_client_own(st))
		return stoup_client_refused(st, err);
	if (err)
		err->code = 0; /* stoup_renew_locked asks whether there is a text already */
	pthread_mutex_lock(&st->question);
	deadline_ns = stoup_client_now() + st->opt.reconnect_ns;
	while ((rc = copy(st, &ticket, err)) == -EPIPE) {
		if (is_gone(st)) {
			pthread_mutex_lock(&st->mutex);
			rc = 0;
			break;
		}
		rc = stoup_renew_locked(st, st->current, deadline_ns, err);
		if (rc < 0)
			break;
	}
	if (rc < 0) {
		pthread_mutex_unlock(&st->question);
		return rc;
	}
	STOUP_HOOK("fork.prepared");
	*ret = (struct stoup_fork){.client = st, .ticket = ticket};
	if (ticket)
		ret->cell_high = stoup_cell_high(st->current->page, st->current->cell_cap);
	return 0;
}

int stoup_fork_parent(struct stoup_fork *fork_state, int forked)
{
	struct stoup *st = fork_state ? fork_state->client : NULL;

	if (!st || !stoup_client_own(st))
		return -EINVAL;
	if (!forked)
		uncopy(st, fork_state->ticket);
	for (struct stoup_session *ses = st->sessions; ses; ses = ses->next)
		ses->fork_ticket = 0;
	*fork_state = (struct stoup_fork){0};
	unlock(st);
	return 0;
}

/* ---- the child ------------------------------------------------------------------------------- */

/* Let go what is the parent's. A session whose daemon ended keeps its bytes: nobody reuses them, so that
 * any page will do for its cells. */
static int part(struct stoup_session *ses, int copied, struct stoup_error *err)
{
	void *page = MAP_FAILED;

	if (ses->sock_fd >= 0)
		close(ses->sock_fd);
	if (ses->bell_fd >= 0)
		close(ses->bell_fd);
	ses->sock_fd = ses->bell_fd = -1;
	ses->page_region.base = NULL;
	ses->owed = 0;
	if (!ses->page)
		return 0;
	ses->page = NULL;
	if (copied)
		return 0;
	page = mmap(NULL, ses->page_region.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (page == MAP_FAILED)
		return stoup_error_set(err, -ENOMEM, "no memory for a page");
	ses->page = ses->page_region.base = page;
	return 0;
}

/* Get the page that waits under a ticket. Who was hung up on may have been late with the hello, and asks again. */
static int redeem(
	struct stoup_session *ses, uint64_t ticket, uint64_t deadline_ns, struct stoup_error *err)
{
	int rc = -ECONNRESET;

	for (int i = 0; i < STOUP_TRY_CNT && rc == -ECONNRESET; i++) {
		if (ses->sock_fd >= 0)
			close(ses->sock_fd);
		ses->sock_fd = -1;
		rc = stoup_sock_open(ses->pool, ses->dir_idx, deadline_ns, &ses->sock_fd, err);
		if (rc < 0)
			return i > 0 ? -ECONNRESET : rc; /* it was ending */
		rc = stoup_hello_child(ses, ticket, deadline_ns, err);
	}
	return rc;
}

static int redeem_formers(struct stoup *st, uint64_t deadline_ns, struct stoup_error *err)
{
	int rc = 0;

	for (struct stoup_session *ses = st->sessions; ses && rc == 0; ses = ses->next) {
		if (!ses->fork_ticket)
			continue;
		rc = redeem(ses, ses->fork_ticket, deadline_ns, err);
		if (rc == 0)
			stoup_cells_settle(ses, ses->fork_high);
	}
	return rc;
}

/* Nothing is held after a failure. */
static void let_go(struct stoup *st)
{
	for (struct stoup_session *ses = st->sessions; ses; ses = ses->next)
		if (ses->fork_ticket && ses->page)
			atomic_store_explicit(
				&ses->page->state, STOUP_PAGE_DETACHED, memory_order_release);
}

static int join(struct stoup *st, const struct stoup_fork *fork_state, struct stoup_error *err)
{
	uint64_t deadline_ns = stoup_client_now() + st->opt.timeout_ns;
	struct stoup_session *current = st->current;
	int rc = 0, failed;

	for (struct stoup_session *ses = st->sessions; ses; ses = ses->next) {
		failed = part(
			ses, ses == current ? fork_state->ticket != 0 : ses->fork_ticket != 0, err);
		rc = rc < 0 ? rc : failed;
	}
	STOUP_HOOK("fork.parted");
	if (rc == 0)
		rc = redeem_formers(st, deadline_ns, err);
	if (rc == 0 && fork_state->ticket)
		rc = redeem(current, fork_state->ticket, deadline_ns, err);
	if (rc < 0)
		let_go(st);
	for (struct stoup_session *ses = st->sessions; ses; ses = ses->next)
		ses->fork_ticket = 0;
	STOUP_HOOK("fork.joined");
	return rc;
}

int stoup_fork_child(struct stoup_fork *fork_state, struct stoup_error *err)
{
	struct stoup *st = fork_state ? fork_state->client : NULL;
	struct stoup_session *current;
	int rc;

	if (!st || stoup_client_own(st))
		return stoup_error_set(err, -EINVAL,
			"this is not the child of a fork that stoup_fork_prepare prepared");
	current = st->current;
	rc = join(st, fork_state, err);
	if (rc == 0) {
		if (fork_state->ticket)
			stoup_cells_settle(current, (uint32_t)fork_state->cell_high);
		stoup_snapshot_publish(current);
		current->slot_busy = current->slot_left = 0;
		st->past = (struct stoup_stats){0};
		st->direct_cnt = st->direct_alone_cnt = st->direct_record_cnt = 0;
		stoup_client_mark(st);
	}
	*fork_state = (struct stoup_fork){0};
	/* This thread is the one that locked them in the parent. */
	unlock(st);
	return rc < 0 && rc == -ECONNRESET ? -EPIPE : rc;
}
