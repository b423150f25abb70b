/* SPDX-License-Identifier: Apache-2.0 */
/* hold.c - leases that outlive a cursor's step.
 *
 *      stoup_hold:     span {session, cell, use} --still leased?--> reference on the shared cell
 *      stoup_release:  lease {entry, use} --still ours?----------> one reference less
 *
 * Private and shared: a cursor's own cell needs no count, since one thread has it. stoup_hold turns
 * it into a shared one (rule 2 of lease.h: the lease stays in its cell, only our record changes),
 * and the cursor takes another for its next block.
 *
 * A span in direct mode lies in a file that stays mapped with the handle: holding it costs an entry here
 * and nothing else, so that both kinds of spans are kept and given back alike.
 *
 * Invariant: an entry's number is never used twice, so a second release finds nothing. A hold counts
 * as a reference to its session and as a user of its memory: bytes of a daemon that ended stay.
 */
#include <errno.h>
#include <stdlib.h>
#include "consumer/client.h"

/* Under the mutex: room for one more entry. */
static int hold_take(struct stoup *st, uint32_t *ret)
{
	uint32_t cap = st->hold_cap ? st->hold_cap * 2 : 64;
	struct stoup_hold *more;

	if (st->hold_free == STOUP_CELL_NONE) {
		if (st->hold_cap > UINT32_MAX / 4)
			return -ENOMEM;
		more = realloc(st->holds, (size_t)cap * sizeof(*more));
		if (!more)
			return -ENOMEM;
		for (uint32_t i = st->hold_cap; i < cap; i++)
			more[i] =
				(struct stoup_hold){.next = i + 1 < cap ? i + 1 : STOUP_CELL_NONE};
		st->hold_free = st->hold_cap;
		st->holds = more;
		st->hold_cap = cap;
	}
	*ret = st->hold_free;
	st->hold_free = st->holds[*ret].next;
	return 0;
}

static void hold_give(struct stoup *st, uint32_t idx)
{
	st->holds[idx].use = 0;
	st->holds[idx].next = st->hold_free;
	st->hold_free = idx;
}

/* Under the mutex: the session of a span whose bytes are still held there, or NULL. */
static struct stoup_session *span_session(struct stoup *st, const struct stoup_span *span)
{
	struct stoup_session *ses = st->sessions;

	while (ses && ses->no != span->session_no)
		ses = ses->next;
	if (!ses || !ses->page || span->cell_idx >= ses->cell_cap || !(span->cell_use & 1) ||
		atomic_load_explicit(&ses->cells[span->cell_idx].use, memory_order_relaxed) !=
			span->cell_use)
		return NULL;
	return ses;
}

int stoup_hold(const struct stoup_span *span, struct stoup_lease *ret)
{
	return stoup_hold_from(span, NULL, NULL, ret);
}

int stoup_hold_from(const struct stoup_span *span, struct stoup_hand *hand,
	const struct stoup_promise *own, struct stoup_lease *ret)
{
	struct stoup *st = span ? span->client : NULL;
	struct stoup_session *ses = NULL;
	uint32_t hold_idx, cell_idx = STOUP_CELL_NONE;
	uint64_t reserved = hand ? hand->reserved : 0;
	int rc = -EINVAL, direct;

	if (!st || !ret)
		return -EINVAL;
	if (!stoup_client_own(st))
		return -ECHILD;
	pthread_mutex_lock(&st->mutex);
	direct = span->session_no == STOUP_SESSION_NONE && span->cell_idx == STOUP_CELL_NONE;
	if (!direct && !(ses = span_session(st, span)))
		goto out_unlock;
	rc = hold_take(st, &hold_idx);
	if (rc < 0)
		goto out_unlock;
	if (ses) {
		if (hand) {
			ses->reserved_bytes -= reserved;
			hand->reserved = 0;
		}
		rc = stoup_cell_share(ses, span->cell_idx, own, &cell_idx);
		if (rc < 0) {
			if (hand) {
				ses->reserved_bytes += reserved;
				hand->reserved = reserved;
			}
			hold_give(st, hold_idx);
			goto out_unlock;
		}
		ses->refs++;
		ses->users++;
	}
	st->holds[hold_idx].use = ++st->hold_seq;
	st->holds[hold_idx].session = ses;
	st->holds[hold_idx].cell_idx = cell_idx;
	st->hold_cnt++;
	*ret = (struct stoup_lease){.client = st, .use = st->hold_seq, .idx = hold_idx};
out_unlock:
	pthread_mutex_unlock(&st->mutex);
	return rc;
}

int stoup_release(struct stoup_lease *lease)
{
	struct stoup_session *ses = NULL;
	struct stoup *st;
	int ring = 0, found = 0, last;

	if (!lease)
		return 0;
	st = lease->client;
	if (!st)
		return -EINVAL;
	if (!stoup_client_own(st))
		return -ECHILD;
	pthread_mutex_lock(&st->mutex);
	if (lease->idx < st->hold_cap && lease->use != 0 &&
		st->holds[lease->idx].use == lease->use) {
		ses = st->holds[lease->idx].session;
		if (ses)
			ring = stoup_cell_drop(ses, st->holds[lease->idx].cell_idx);
		hold_give(st, lease->idx);
		found = 1;
	}
	pthread_mutex_unlock(&st->mutex);
	if (!found)
		return -EINVAL;
	if (ring)
		stoup_wait_ring(ses);
	if (ses)
		stoup_session_leave(ses);
	stoup_session_release(ses);
	/* Counted out last: after the last lease another thread may detach, and nothing of the handle is
	 * left for us. */
	pthread_mutex_lock(&st->mutex);
	st->hold_cnt--;
	last = stoup_client_idle(st) && st->leaving;
	pthread_mutex_unlock(&st->mutex);
	if (last)
		stoup_client_destroy(st);
	*lease = (struct stoup_lease){0};
	return 0;
}
