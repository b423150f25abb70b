/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_quota.c - members of two quotas and of none, who keep the rules, in any order; their daemon's account against a
 * second one, which is made of nothing but the cells of all pages.
 *
 *      input: steps      member: attach, request, release, give up, detach, hang up, say nonsense and be dismissed
 *                        copy:   for a child, fetched or left to expire
 *                        daemon: turns, rest, time, a dead member is seen to be dead
 *
 * Checked after each turn: whoever was granted something is of a group that has no more than its quota, or nothing but
 * that; what copies for children took besides keeps all else waiting. At rest: nobody waits whose turn it is and for whom
 * there is room, and the sums of the daemon are right. In the end, and without a deadline having passed, everybody has what
 * was asked for, and nothing is left.
 */
#include "producer/request.h"
#include "shm/lease.h"
#include "tests/fuzz/daemon_steps.h"

#define MEMBER_CAP 6u
#define ASK_CAP    4u /* slot i of a member asks for its cell i */
#define STEP_CAP   160
#define QUOTAS     2u
#define SHORT_NS   UINT64_C(200000000)
#define LONG_NS    UINT64_C(1000000000000000)

enum ask_state {
	ASK_NONE,
	ASK_WAITS,
	ASK_HOLDS,
	ASK_LEFT
}; /* LEFT: given up, and not acknowledged */

struct ask {
	enum ask_state state;
	uint64_t seq, order, word, deadline_ns;
	uint32_t len;
	int early; /* it was admitted before the newest copy was made */
};

struct member {
	struct steps_peer peer;
	uint32_t idx, quota; /* of the daemon's tables */
	int dismissed;       /* it may ask no more */
	struct ask asks[ASK_CAP];
};

static struct member members[MEMBER_CAP];
static uint64_t order, ticket; /* ticket: of the newest copy, 0: none */
static uint32_t ticket_quota;

/* ---- the second account ----------------------------------------------------------------------- */

struct held {
	uint64_t bytes;
	uint32_t cnt;
};

/* What the pages of a consumer name, counted anew. */
static struct held held_by(uint32_t idx)
{
	const struct stoup_daemon *d = steps_daemon;
	const struct stoup_page *page = d->consumers[idx].page.base;
	struct held ret = {0, 0};

	if (!page || atomic_load(&page->state) == STOUP_PAGE_DETACHED)
		return ret;
	for (uint32_t i = 0; i < STEPS_CELL_CAP; i++) {
		uint64_t word = atomic_load(&page->cells[i]);

		if (!stoup_cell_leased(word))
			continue;
		/* Members keep the rules: what they name is theirs. */
		MUST(stoup_word_idx(word) < d->buffer_cap);
		MUST(d->buffers[stoup_word_idx(word)].gen == stoup_word_gen(word));
		ret.bytes += atomic_load(&d->table[stoup_word_idx(word)].len);
		ret.cnt++;
	}
	return ret;
}

/* Of all consumers of a quota, without those of the bits `but`. */
static struct held held_in(uint32_t quota, uint64_t but)
{
	struct held sum = {0, 0};

	for (uint32_t i = 0; i < steps_daemon->opt.consumer_cap; i++) {
		struct held one;

		if (steps_daemon->consumers[i].quota != quota || (but >> i & 1))
			continue;
		one = held_by(i);
		sum.bytes += one.bytes;
		sum.cnt += one.cnt;
	}
	return sum;
}

static uint64_t copies(void)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < steps_daemon->opt.consumer_cap; i++)
		if (steps_daemon->consumers[i].state == STOUP_CONSUMER_TICKET)
			bits |= UINT64_C(1) << i;
	return bits;
}

static struct member *member_of(uint32_t consumer_idx)
{
	for (uint32_t at = 0; at < MEMBER_CAP; at++)
		if (members[at].peer.page && members[at].idx == consumer_idx)
			return &members[at];
	return NULL;
}

/* ---- a turn ----------------------------------------------------------------------------------- */

/* Nobody of its quota who came before it waits still. */
static void turn_check(const struct member *m, const struct ask *ask)
{
	struct stoup_daemon *d = steps_daemon;

	for (uint32_t w = d->quota_first; w != STOUP_IDX_NONE; w = d->waiters[w].next) {
		const struct member *other = member_of(d->waiters[w].consumer_idx);

		if (other && d->waiters[w].quota == m->quota &&
			stoup_waiter_stands(d, &d->waiters[w]))
			MUST(other->asks[d->waiters[w].slot_idx].order > ask->order);
	}
}

/* The request is answered: was it right? 1: granted. */
static int answered(struct member *m, uint32_t i)
{
	struct ask *ask = &m->asks[i];
	int32_t error = atomic_load(&m->peer.page->slots[i].error);
	uint64_t now_ns = steps_daemon->now_ns, word = atomic_load(&m->peer.page->cells[i]);

	if (error == 0) {
		MUST(stoup_cell_leased(word));
		turn_check(m, ask);
		ask->word = word;
		ask->state = ASK_HOLDS;
		return 1;
	}
	MUST(word == stoup_ticket(i, ask->seq));
	atomic_store(&m->peer.page->cells[i], 0);
	ask->state = ASK_NONE;
	if (ask->len > steps_daemon->control->block_len_max)
		MUST(error == -EFBIG);
	else if (m->quota == STOUP_IDX_NONE)
		MUST(error == -ENOBUFS);
	else
		MUST(error == -EDQUOT || error == -ENOBUFS);
	/* A margin, so that the reason is told in time. */
	MUST(error == -EFBIG || now_ns + SHORT_NS / 4 >= ask->deadline_ns);
	return 0;
}

/* What came in this turn. `before`: copies that there were already. */
static void look(uint64_t before)
{
	uint32_t granted = 0; /* a bit for each quota */
	uint64_t fresh = copies() & ~before;

	for (uint32_t at = 0; at < MEMBER_CAP; at++) {
		struct member *m = &members[at];

		for (uint32_t i = 0; m->peer.page && i < ASK_CAP; i++) {
			if (atomic_load(&m->peer.page->slots[i].state) != STOUP_SLOT_DONE)
				continue;
			if (m->asks[i].state == ASK_LEFT)
				m->asks[i].state = ASK_NONE;
			else if (m->asks[i].state == ASK_WAITS && answered(m, i) &&
				 m->quota != STOUP_IDX_NONE && !m->asks[i].early)
				granted |= 1u << m->quota;
		}
	}
	for (uint32_t q = 0; q < QUOTAS; q++) {
		struct held sum = held_in(q, fresh);

		if (granted >> q & 1)
			MUST(sum.bytes <= steps_daemon->quotas[q].bytes_cap || sum.cnt == 1);
	}
}

static int turn(int wait_ms)
{
	uint64_t before = copies();
	int moved = steps_turn(wait_ms);

	look(before);
	return moved;
}

/* ---- at rest ---------------------------------------------------------------------------------- */

/* The daemon's own sums, against its lists and the pages. */
static void sums_check(void)
{
	struct stoup_daemon *d = steps_daemon;
	uint64_t loading[STOUP_CONSUMER_CAP] = {0};
	uint32_t waiting[QUOTAS] = {0, 0};

	stoup_evict_scan(d);
	for (uint32_t i = 0; i < d->load_cap; i++)
		for (uint32_t w = d->loads[i].waiter_first;
			d->loads[i].state != STOUP_LOAD_FREE && w != STOUP_IDX_NONE;
			w = d->waiters[w].next)
			loading[d->waiters[w].consumer_idx] += d->waiters[w].loading_bytes;
	for (uint32_t w = d->quota_first; w != STOUP_IDX_NONE; w = d->waiters[w].next)
		waiting[d->waiters[w].quota]++;
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		if (d->consumers[i].state == STOUP_CONSUMER_NONE)
			continue;
		MUST(d->consumers[i].loading_bytes == loading[i]);
		MUST(d->consumers[i].leased_bytes == held_by(i).bytes);
		MUST(d->consumers[i].leased_bytes <= d->consumers[i].asked_bytes ||
			d->consumers[i].quota == STOUP_IDX_NONE);
	}
	for (uint32_t q = 0; q < QUOTAS; q++)
		MUST(atomic_load(&d->quotas[q].waiting_cnt) == waiting[q]);
}

/* The member's request that came before all others of its quota and waits. */
static const struct ask *first_of(uint32_t quota)
{
	const struct ask *first = NULL;

	for (uint32_t at = 0; at < MEMBER_CAP; at++)
		for (uint32_t i = 0;
			members[at].peer.page && members[at].quota == quota && i < ASK_CAP; i++)
			if (members[at].asks[i].state == ASK_WAITS &&
				(!first || members[at].asks[i].order < first->order))
				first = &members[at].asks[i];
	return first;
}

static void settle(void)
{
	struct stoup_daemon *d = steps_daemon;
	int turns = 0;

	while (turn(0) || d->in_flight > 0) {
		MUST(++turns < STEPS_TURN_CAP);
		if (d->in_flight > 0)
			turn(1);
	}
	sums_check();
	/* What was asked for and given up may still want the pool's room: then it is that which is waited for. */
	for (uint32_t q = 0; q < QUOTAS && d->demand.cnt == 0; q++) {
		const struct ask *ask = first_of(q);
		struct held sum = held_in(q, 0);

		if (ask)
			MUST(sum.cnt > 0 && sum.bytes + ask->len > d->quotas[q].bytes_cap);
	}
}

/* ---- a member --------------------------------------------------------------------------------- */

static void joined(struct member *m, uint32_t quota)
{
	m->idx = m->peer.page->consumer_idx;
	m->quota = steps_daemon->consumers[m->idx].quota = quota;
	m->dismissed = 0;
	memset(m->asks, 0, sizeof(m->asks));
}

static void enter(struct member *m, uint32_t quota)
{
	uint64_t before = copies();

	if (m->peer.page)
		return;
	if (steps_attach(&m->peer) == 0)
		joined(m, quota);
	look(before); /* it has turned meanwhile */
}

static void request(struct member *m, uint32_t i, uint32_t block, int in_a_hurry)
{
	struct stoup_slot *slot = &m->peer.page->slots[i];
	struct ask *ask = &m->asks[i];
	uint64_t seq = ask->seq + 1;

	if (ask->state != ASK_NONE || m->dismissed)
		return;
	*ask = (struct ask){.state = ASK_WAITS,
		.seq = seq,
		.order = ++order,
		.len = steps_block_len(block) / 16 * 16,
		.deadline_ns = steps_daemon->now_ns + (in_a_hurry ? SHORT_NS : LONG_NS)};
	stoup_lease_cell_reach(m->peer.page, i);
	atomic_store(&slot->kind, STOUP_REQUEST_DEMAND);
	atomic_store(&slot->seq, seq);
	atomic_store(&slot->cell_idx, i);
	atomic_store(&slot->volume_idx, order & 1);
	atomic_store(&slot->block_idx, block);
	atomic_store(&slot->ahead_cnt, 0);
	atomic_store(&slot->deadline_ns, ask->deadline_ns);
	atomic_store(&slot->state, STOUP_SLOT_WAIT);
	stoup_lease_ticket(&m->peer.page->cells[i], stoup_ticket(i, seq));
	if (stoup_request_post(m->peer.page, i, &steps_daemon->control->asleep))
		steps_ring(&m->peer);
	turn(0); /* one after the other, so that their order is known */
}

static void release(struct member *m, uint32_t i)
{
	if (m->asks[i].state != ASK_HOLDS)
		return;
	if (stoup_lease_release(
		    &m->peer.page->cells[i], m->asks[i].word, &steps_daemon->control->starving))
		steps_ring(&m->peer);
	m->asks[i].state = ASK_NONE;
}

static void give_up(struct member *m, uint32_t i)
{
	if (m->asks[i].state != ASK_WAITS)
		return;
	/* One thread: nothing is granted in this moment. */
	MUST(stoup_lease_cancel(&m->peer.page->cells[i], stoup_ticket(i, m->asks[i].seq)));
	m->asks[i].state = ASK_LEFT;
}

/* What the library does when it finds that it was hung up on. */
static void dismissed(struct member *m)
{
	const char nonsense[8] = "nonsense";

	if (m->dismissed)
		return;
	MUST(stoup_wire_send(m->peer.sock_fd, nonsense, sizeof(nonsense), NULL, 0) == 0);
	for (int i = 0; steps_daemon->consumers[m->idx].state == STOUP_CONSUMER_ATTACHED; i++) {
		MUST(i < STEPS_TURN_CAP);
		turn(0);
	}
	m->dismissed = 1;
	for (uint32_t i = 0; i < ASK_CAP; i++)
		give_up(m, i);
}

/* A process that has hung up waits for nothing more; what it holds stays until its end is known. */
static void leave(struct member *m, int orderly)
{
	for (uint32_t i = 0; i < ASK_CAP; i++)
		give_up(m, i);
	steps_leave(&m->peer, orderly);
}

/* Who hung up is found to be dead. */
static void bury(void)
{
	struct stoup_daemon *d = steps_daemon;
	uint64_t mine = 0;

	settle();
	for (uint32_t at = 0; at < MEMBER_CAP; at++)
		if (members[at].peer.page)
			mine |= UINT64_C(1) << members[at].idx;
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (d->consumers[i].state == STOUP_CONSUMER_DEAF && !(mine >> i & 1))
			atomic_store(&((struct stoup_page *)d->consumers[i].page.base)->state,
				STOUP_PAGE_DETACHED);
	steps_skip(UINT64_C(250000000));
	settle();
}

/* ---- copies for children ---------------------------------------------------------------------- */

/* What loads for somebody has its room already. */
static void early_mark(void)
{
	const struct stoup_daemon *d = steps_daemon;

	for (uint32_t i = 0; i < d->load_cap; i++)
		for (uint32_t w = d->loads[i].waiter_first;
			d->loads[i].state != STOUP_LOAD_FREE && w != STOUP_IDX_NONE;
			w = d->waiters[w].next)
			if (member_of(d->waiters[w].consumer_idx))
				member_of(d->waiters[w].consumer_idx)
					->asks[d->waiters[w].slot_idx]
					.early = 1;
}

static void copy(struct member *m)
{
	struct stoup_wire_fork msg = {.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_FORK};
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t cnt;
	int64_t len = -EAGAIN;

	if (m->dismissed)
		return;
	MUST(stoup_wire_send(m->peer.sock_fd, &msg, sizeof(msg), NULL, 0) == 0);
	for (int i = 0; len == -EAGAIN; i++) {
		MUST(i < STEPS_TURN_CAP);
		turn(0);
		len = stoup_wire_recv(
			m->peer.sock_fd, &msg, sizeof(msg), fds, STOUP_WIRE_FD_CAP, &cnt);
	}
	MUST(len == sizeof(msg) && cnt == 0);
	if (msg.error < 0)
		return;
	early_mark();
	ticket = msg.ticket;
	ticket_quota = m->quota;
}

/* A child comes for the newest copy: what it holds is its own from here on. */
static void child(struct member *m)
{
	struct stoup_wire_hello hello = steps_hello();
	struct stoup_wire_reply reply;
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t cnt;
	int64_t len = -EAGAIN;

	if (m->peer.page || ticket == 0)
		return;
	hello.flags = STOUP_HELLO_CHILD;
	hello.ticket = ticket;
	ticket = 0;
	m->peer = (struct steps_peer){.sock_fd = steps_connect(), .bell_fd = -1};
	MUST(m->peer.sock_fd >= 0);
	MUST(stoup_wire_send(m->peer.sock_fd, &hello, sizeof(hello), NULL, 0) == 0);
	for (int i = 0; len == -EAGAIN; i++) {
		MUST(i < STEPS_TURN_CAP);
		turn(0);
		len = stoup_wire_recv(
			m->peer.sock_fd, &reply, sizeof(reply), fds, STOUP_WIRE_FD_CAP, &cnt);
	}
	MUST(len == sizeof(reply));
	if (reply.error < 0) { /* expired */
		close(m->peer.sock_fd);
		m->peer.sock_fd = -1;
		return;
	}
	steps_join(&m->peer, fds, cnt);
	joined(m, ticket_quota);
	for (uint32_t i = 0; i < ASK_CAP; i++) {
		uint64_t word = atomic_load(&m->peer.page->cells[i]);

		if (stoup_cell_leased(word))
			m->asks[i] = (struct ask){.state = ASK_HOLDS, .word = word};
	}
}

/* ---- the input -------------------------------------------------------------------------------- */

static void member_step(struct member *m, unsigned what, uint8_t arg)
{
	uint32_t i = arg % ASK_CAP;

	if (what < 4)
		request(m, i, (arg >> 2) % STEPS_BLOCK_CNT, what == 3);
	else if (what < 7)
		release(m, i);
	else if (what == 7)
		give_up(m, i);
	else if (what == 8)
		dismissed(m);
	else if (what == 9)
		leave(m, arg & 1);
	else
		copy(m);
}

static void step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in), arg = fuzz_u8(in);
	uint32_t at = (what >> 4) % MEMBER_CAP;
	struct member *m = &members[at];

	what &= 15;
	if (what < 11 && m->peer.page)
		member_step(m, what, arg);
	else if (what < 11)
		enter(m, arg % (QUOTAS + 1) < QUOTAS ? arg % (QUOTAS + 1) : STOUP_IDX_NONE);
	else if (what == 11)
		child(m);
	else if (what == 12)
		turn(0);
	else if (what == 13)
		settle();
	else if (what == 14)
		steps_skip(arg * UINT64_C(4000000));
	else
		bury();
}

static void begin(struct fuzz_in *in)
{
	struct stoup_daemon *d = steps_daemon;

	/* Which of them counts a member is said at its attach: no process is of these. */
	d->opt.quota_cnt = QUOTAS;
	d->control->lease_bytes_cap = STEPS_POOL_LEN;
	for (uint32_t q = 0; q < QUOTAS; q++) {
		d->opt.quotas[q] = (struct stoup_quota_option){
			.kind = STOUP_QUOTA_USER, .id = UINT32_MAX, .bytes = 1};
		d->quotas[q].name[0] = (char)('a' + q);
		d->quotas[q].bytes_cap = (1 + fuzz_u8(in) % 24) * UINT64_C(4096);
	}
	for (uint32_t at = 0; at < MEMBER_CAP; at++)
		members[at] = (struct member){.peer = {.sock_fd = -1, .bell_fd = -1}};
	ticket = 0;
}

/* Who waits is served without any deadline: those who hold release, the first of all first. */
static void everybody_ends(void)
{
	uint32_t waits = 1;

	for (int rounds = 0; waits > 0; rounds++) {
		MUST(rounds < 4 * (int)(MEMBER_CAP * ASK_CAP));
		waits = 0;
		for (uint32_t at = 0; at < MEMBER_CAP; at++)
			for (uint32_t i = 0; members[at].peer.page && i < ASK_CAP; i++) {
				release(&members[at], i);
				waits += members[at].asks[i].state == ASK_WAITS;
			}
		settle();
	}
	for (uint32_t at = 0; at < MEMBER_CAP; at++)
		for (uint32_t i = 0; members[at].peer.page && i < ASK_CAP; i++)
			release(&members[at], i);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len};
	struct stoup_daemon *d;

	steps_start();
	d = steps_daemon;
	begin(&in);
	for (int i = 0; i < STEP_CAP && in.left > 0; i++)
		step(&in);
	/* The dead and the copies that nobody fetched hold no more. */
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (copies() >> i & 1)
			stoup_consumer_drop(d, i, STOUP_COUNTER_FORKS_EXPIRED);
	bury();
	everybody_ends();
	for (uint32_t q = 0; q < QUOTAS; q++)
		MUST(held_in(q, 0).cnt == 0 && atomic_load(&d->quotas[q].waiting_cnt) == 0);
	MUST(d->quota_first == STOUP_IDX_NONE && d->quota_last == STOUP_IDX_NONE);
	for (uint32_t at = 0; at < MEMBER_CAP; at++)
		if (members[at].peer.page)
			leave(&members[at], 1);
	steps_bury(STOUP_IDX_NONE);
	steps_check();
	MUST(d->in_flight == 0 && d->demand.cnt == 0);
	MUST(d->counters[STOUP_COUNTER_LEASES].value == 0);
	MUST(d->counters[STOUP_COUNTER_QUOTA_DROPPED].value == 0);
	return 0;
}
