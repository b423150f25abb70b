/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - requests: post one, wait for its grant, give up.
 *
 *      slot free --post--> WAIT --spun enough (CAS)--> SLEEP --futex, slices of 20 ms--+
 *                           |                            |                             |
 *                           +-------- DONE by the conductor                 hang-up, deadline
 *                           |                            |                             |
 *                      result read: free            result read: free      CAS(cell, ticket -> 0)
 *                                                                 won: left, free once DONE
 *                                                                 lost: granted after all
 *
 * Invariant: a slot is written again only after the conductor acknowledged its sequence (DONE), so
 * the conductor never reads a request half old, half new. A read-ahead has no waiter: its slot is
 * left from the start.
 *
 * The slot carries our deadline; the daemon, which knows the reason of a delay, gives up a little
 * before.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <time.h>
#include "consumer/client.h"
#include "shm/futex.h"
#include "shm/lease.h"
#include "shm/sample.h"

#define SPIN_CNT      64u               /* pauses between two looks at the clock */
#define LOOK_NS       UINT64_C(1000000) /* of a spinning waiter at the daemon's health */
#define SLOT_RETRY_NS 200000            /* more than 64 threads wait: try again that late */

void stoup_wait_ring(struct stoup_session *ses)
{
	const uint64_t one = 1;

	/* EAGAIN: the count is full, which only a consumer that fills its own doorbell brings
	 * about; its request is then found by the conductor at its next look. */
	if (write(ses->bell_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		return;
	atomic_fetch_add_explicit(&ses->page->doorbell_cnt, 1, memory_order_relaxed);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Under the mutex: slots that nobody waits for and that the conductor has acknowledged are free. */
static void slots_sweep(struct stoup_session *ses)
{
	uint64_t left = ses->slot_left;

	while (left) {
		uint32_t idx = (uint32_t)__builtin_ctzll(left);

		left &= left - 1;
		/* [M2] the conductor has read this slot for the last time. */
		if (atomic_load_explicit(&ses->page->slots[idx].state, memory_order_acquire) !=
			STOUP_SLOT_DONE)
			continue;
		ses->slot_left &= ~(UINT64_C(1) << idx);
		ses->slot_busy &= ~(UINT64_C(1) << idx);
	}
}

/* A free slot with a new sequence, or STOUP_SLOT_CNT. `spare` stay free. */
static uint32_t slot_take(struct stoup_session *ses, int spare, uint64_t *ret_seq)
{
	uint32_t idx = STOUP_SLOT_CNT;

	pthread_mutex_lock(&ses->client->mutex);
	slots_sweep(ses);
	if ((int)ses->request_cap - __builtin_popcountll(ses->slot_busy) > spare) {
		idx = (uint32_t)__builtin_ctzll(~ses->slot_busy);
		ses->slot_busy |= UINT64_C(1) << idx;
		*ret_seq = ++ses->slot_seq[idx];
	}
	pthread_mutex_unlock(&ses->client->mutex);
	return idx;
}

/* The waiter is done with the slot; `acknowledged`: the conductor as well. */
static void slot_give(struct stoup_session *ses, uint32_t idx, int acknowledged)
{
	pthread_mutex_lock(&ses->client->mutex);
	if (acknowledged)
		ses->slot_busy &= ~(UINT64_C(1) << idx);
	else
		ses->slot_left |= UINT64_C(1) << idx;
	pthread_mutex_unlock(&ses->client->mutex);
}

static void slot_write_ahead(struct stoup_slot *slot, const struct stoup_ahead *ahead)
{
	uint32_t cnt = ahead ? ahead->cnt : 0;

	atomic_store_explicit(&slot->ahead_cnt, cnt, memory_order_relaxed);
	atomic_store_explicit(
		&slot->ahead_volume_idx, ahead ? ahead->volume_idx : 0, memory_order_relaxed);
	atomic_store_explicit(
		&slot->ahead_block_idx, ahead ? ahead->block_idx : 0, memory_order_relaxed);
	atomic_store_explicit(&slot->ahead_step, ahead ? ahead->step : 1, memory_order_relaxed);
}

static void slot_write(struct stoup_slot *slot, uint32_t kind, uint64_t seq, uint64_t deadline_ns)
{
	atomic_store_explicit(&slot->kind, kind, memory_order_relaxed);
	atomic_store_explicit(&slot->seq, seq, memory_order_relaxed);
	atomic_store_explicit(&slot->deadline_ns, deadline_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->error, 0, memory_order_relaxed);
	/* `detail` may hold the sample of the slot's last wait, which the conductor takes. */
	/* Ordered before the conductor's reads by the pending bit [M1]. */
	atomic_store_explicit(&slot->state, STOUP_SLOT_WAIT, memory_order_relaxed);
}

static void slot_post(struct stoup_session *ses, uint32_t slot_idx)
{
	if (stoup_request_post(ses->page, slot_idx, &ses->control->asleep))
		stoup_wait_ring(ses);
}

int stoup_wait_ahead(struct stoup_session *ses, const struct stoup_ahead *ahead)
{
	struct stoup_slot *slot;
	uint64_t seq;
	/* Read-ahead may not take the last slots. */
	uint32_t idx = slot_take(ses, (int)ses->request_cap / 2, &seq);

	if (idx == STOUP_SLOT_CNT)
		return 0;
	slot = &ses->page->slots[idx];
	atomic_store_explicit(&slot->cell_idx, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->volume_idx, ahead->volume_idx, memory_order_relaxed);
	atomic_store_explicit(&slot->block_idx, ahead->block_idx, memory_order_relaxed);
	slot_write_ahead(slot, ahead);
	slot_write(slot, STOUP_REQUEST_AHEAD, seq, 0);
	slot_post(ses, idx);
	slot_give(ses, idx, 0);
	return 1;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static inline int is_done(const struct stoup_slot *slot)
{
	/* [M2] acquires error, detail and what the grant published. */
	return atomic_load_explicit(&slot->state, memory_order_acquire) == STOUP_SLOT_DONE;
}

/* Spin until done (1), until_ns (0), or the daemon's end (negative). */
static int spin(struct stoup_session *ses, const struct stoup_slot *slot, uint64_t until_ns)
{
	uint64_t now = stoup_client_now(), look_ns = now + LOOK_NS;
	int rc;

	while (now < until_ns) {
		for (uint32_t i = 0; i < SPIN_CNT; i++) {
			if (is_done(slot))
				return 1;
			stoup_cpu_relax();
		}
		now = stoup_client_now();
		if (now < look_ns)
			continue;
		rc = stoup_session_check(ses, STOUP_LOOK_ASK);
		if (rc < 0)
			return rc;
		look_ns = now + LOOK_NS;
	}
	return is_done(slot);
}

/* Sleep in slices until done (1), the deadline (0), or the daemon's end (negative). */
static int doze(struct stoup_session *ses, struct stoup_slot *slot, uint64_t deadline_ns)
{
	uint32_t expected = STOUP_SLOT_WAIT;
	uint64_t now = stoup_client_now();
	int64_t slice;
	int rc;

	/* Lost only to DONE. From here on the conductor's exchange tells it to wake us [M2]. */
	atomic_compare_exchange_strong_explicit(&slot->state, &expected, STOUP_SLOT_SLEEP,
		memory_order_acq_rel, memory_order_acquire);
	while (!is_done(slot)) {
		if (now >= deadline_ns)
			return 0;
		slice = deadline_ns - now < (uint64_t)STOUP_SLICE_NS ? (int64_t)(deadline_ns - now)
		                                                     : STOUP_SLICE_NS;
		stoup_futex_wait(&slot->state, STOUP_SLOT_SLEEP, slice);
		if (is_done(slot))
			break;
		rc = stoup_session_check(ses, STOUP_LOOK_ASK);
		if (rc < 0)
			return rc;
		now = stoup_client_now();
	}
	return 1;
}

static int wait_done(
	struct stoup_session *ses, struct stoup_slot *slot, uint64_t start_ns, uint64_t deadline_ns)
{
	uint64_t spin_until = start_ns + ses->client->opt.spin_ns;
	uint32_t mode = ses->client->opt.wait;
	int rc;

	if (mode == STOUP_WAIT_BLOCK)
		spin_until = start_ns;
	else if (mode == STOUP_WAIT_SPIN || spin_until > deadline_ns)
		spin_until = deadline_ns;
	rc = spin(ses, slot, spin_until);
	if (rc != 0 || spin_until == deadline_ns)
		return rc;
	return doze(ses, slot, deadline_ns);
}

/* Wait for a free slot: needed only when more threads wait at once than may have requests. */
static int slot_wait(struct stoup_session *ses, uint64_t deadline_ns, uint32_t *ret,
	uint64_t *ret_seq, struct stoup_error *err)
{
	const struct timespec nap = {.tv_nsec = SLOT_RETRY_NS};
	int rc;

	for (int tries = 0; (*ret = slot_take(ses, 0, ret_seq)) == STOUP_SLOT_CNT; tries++) {
		if (tries == 0)
			atomic_fetch_add_explicit(
				&ses->page->requests_refused_cnt, 1, memory_order_relaxed);
		rc = stoup_session_check(ses, STOUP_LOOK_ASK);
		if (rc < 0)
			return rc;
		if (stoup_client_now() >= deadline_ns)
			return stoup_error_set(err, -ETIMEDOUT,
				"all %u request slots of this process were waiting for the daemon "
				"of pool '%s': read with fewer threads, or start stoupd with more "
				"--requests (at most %u)",
				ses->request_cap, ses->pool, STOUP_SLOT_CNT);
		nanosleep(&nap, NULL);
	}
	return 0;
}

/* The slot is done: what did it bring? */
static int result(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, uint32_t cell_idx, const struct stoup_slot *slot, uint64_t ticket,
	uint64_t *ret_word, struct stoup_error *err)
{
	int32_t error = atomic_load_explicit(&slot->error, memory_order_relaxed);
	uint64_t detail = atomic_load_explicit(&slot->detail, memory_order_relaxed), word;

	/* [G1] [L2] the grant's CAS released the bytes. */
	word = atomic_load_explicit(&ses->page->cells[cell_idx], memory_order_acquire);
	if (stoup_cell_leased(word)) {
		*ret_word = word;
		return 0;
	}
	if (!stoup_lease_cancel(&ses->page->cells[cell_idx], ticket))
		error = -EPROTO;
	return stoup_explain_request(ses, vol, block_idx, error, detail, err);
}

/* Leave in the slot how long a grant took, for the daemon's histograms. The slot is still ours. */
static void sample_leave(struct stoup_slot *slot, uint64_t start_ns, uint64_t now_ns)
{
	uint64_t done_ns = atomic_load_explicit(&slot->detail, memory_order_relaxed);

	/* An older daemon does not tell when it answered. */
	if (done_ns >= start_ns && done_ns <= now_ns)
		atomic_store_explicit(&slot->detail,
			stoup_sample_make(now_ns - start_ns, now_ns - done_ns),
			memory_order_relaxed);
}

int stoup_wait_grant(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, uint32_t cell_idx, const struct stoup_ahead *ahead, uint64_t *ret_word,
	struct stoup_error *err)
{
	uint64_t start = stoup_client_now(), deadline = start + stoup_session_timeout(ses);
	uint64_t seq, ticket;
	_Atomic uint64_t *cell = &ses->page->cells[cell_idx];
	struct stoup_slot *slot;
	uint32_t slot_idx;
	int rc = slot_wait(ses, deadline, &slot_idx, &seq, err);

	if (rc < 0)
		return rc;
	slot = &ses->page->slots[slot_idx];
	ticket = stoup_ticket(slot_idx, seq);
	atomic_store_explicit(&slot->cell_idx, cell_idx, memory_order_relaxed);
	atomic_store_explicit(&slot->volume_idx, vol->catalog->volume_idx, memory_order_relaxed);
	atomic_store_explicit(&slot->block_idx, block_idx, memory_order_relaxed);
	slot_write_ahead(slot, ahead);
	slot_write(slot, STOUP_REQUEST_DEMAND, seq, deadline);
	stoup_lease_ticket(cell, ticket);
	slot_post(ses, slot_idx);
	atomic_fetch_add_explicit(&ses->page->miss_cnt, 1, memory_order_relaxed);

	rc = wait_done(ses, slot, start, deadline);
	if (rc == 1) {
		STOUP_HOOK("request.done");
		rc = result(ses, vol, block_idx, cell_idx, slot, ticket, ret_word, err);
		if (rc == 0)
			sample_leave(slot, start, stoup_client_now());
		slot_give(ses, slot_idx, 1);
	} else {
		if (!stoup_lease_cancel(cell, ticket)) {
			*ret_word = atomic_load_explicit(cell, memory_order_acquire);
			rc = 0;
		} else if (rc == 0) {
			STOUP_HOOK("request.cancelled");
			atomic_fetch_add_explicit(&ses->page->timeout_cnt, 1, memory_order_relaxed);
			rc = stoup_explain_timeout(ses, vol, block_idx, err);
		}
		slot_give(ses, slot_idx, 0);
	}
	atomic_fetch_add_explicit(
		&ses->page->wait_ns, stoup_client_now() - start, memory_order_relaxed);
	return rc;
}
