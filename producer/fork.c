/* SPDX-License-Identifier: Apache-2.0 */
/* fork.c - leases copied for a child: before a fork the parent asks, after it the child comes.
 *
 *      parent -- fork, ticket 0 --> a free place: own page, the parent's leases in it --> TICKET
 *      child  -- hello, CHILD, ticket --> socket, doorbell, process of the child      --> ATTACHED
 *      parent -- fork, ticket -->  |  (given up)
 *      nobody for STOUP_FORK_NS    +--> dropped (forks_expired)
 *      the daemon stops            |
 *
 * The copy stands in cells of the same numbers, so that what the child inherited of the library's private
 * records fits the page that it gets. Every scan counts it from the moment it is made: the parent may
 * release, end or be killed between its fork and the child's hello.
 *
 * Invariant: a word is copied only while the conductor knows its buffer as resident with that generation;
 * eviction is the conductor's own, so the copy keeps what the word names.
 *
 * A process that was cut off, or closed its connection, and attached again has leases in its former place,
 * which is DEAF: those are copied as well, each place under a ticket of its own, for the daemon reuses what the
 * parent releases there. Such a copy asks nothing and uses no snapshot.
 *
 * If the daemon dies: the copy dies with it, as every page; the child finds no daemon, and its mapping
 * still holds the bytes.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include "shm/lease.h"

/* Never 0, and not to be guessed: whoever shows it gets the leases. */
static uint64_t ticket_new(void)
{
	uint64_t ticket = 0;

	while (ticket == 0)
		if (getrandom(&ticket, sizeof(ticket), 0) != (ssize_t)sizeof(ticket))
			ticket = 0;
	return ticket;
}

uint32_t stoup_fork_find(const struct stoup_daemon *d, uint64_t ticket)
{
	for (uint32_t i = 0; ticket != 0 && i < d->opt.consumer_cap; i++)
		if (d->consumers[i].state == STOUP_CONSUMER_TICKET &&
			d->consumers[i].fork_ticket == ticket)
			return i;
	return STOUP_IDX_NONE;
}

static void copy_leases(
	struct stoup_daemon *d, const struct stoup_consumer *from, struct stoup_consumer *to)
{
	struct stoup_page *old = from->page.base, *new = to->page.base;
	uint32_t high = stoup_cell_high(old, d->opt.cell_cap);
	_Atomic uint32_t *old_series = stoup_page_series(old, from->page.len, d->opt.cell_cap),
			 *new_series = stoup_page_series(new, to->page.len, d->opt.cell_cap);

	for (uint32_t i = 0; i < high; i++) {
		uint64_t v = stoup_cell_read(&old->cells[i]);

		if (!stoup_evict_leased(d, v))
			continue;
		atomic_store_explicit(&new->cells[i], v, memory_order_relaxed);
		atomic_store_explicit(&new_series[i],
			atomic_load_explicit(&old_series[i], memory_order_relaxed),
			memory_order_relaxed);
		to->seen[i] = v; /* a copy is no use of the block */
		/* At once, not from the next look on: a quota has so much less room for all others. */
		to->lease_cnt++;
		to->leased_bytes += atomic_load_explicit(
			&d->table[stoup_word_idx(v)].len, memory_order_relaxed);
	}
	atomic_store_explicit(&new->cell_high, high, memory_order_relaxed);
	atomic_store_explicit(&new->snapshot_seq,
		atomic_load_explicit(&old->snapshot_seq, memory_order_relaxed),
		memory_order_relaxed);
}

int stoup_fork_copy(struct stoup_daemon *d, uint32_t idx, uint32_t asker, uint64_t *ret_ticket)
{
	const struct stoup_consumer *from = &d->consumers[idx];
	uint32_t place = STOUP_IDX_NONE;
	struct stoup_error err = {0};
	struct stoup_consumer *to;
	int rc;

	if (d->stopping)
		return -ESHUTDOWN;
	rc = stoup_consumer_find_place(d, from->uid, &place, &err);
	if (rc < 0) {
		stoup_log_peer(
			d, rc, "leases of process %u for its child: %s", from->pid, err.text);
		return rc;
	}
	rc = stoup_consumer_place(d, place, &err);
	if (rc < 0) {
		stoup_log_peer(
			d, rc, "leases of process %u for its child: %s", from->pid, err.text);
		return rc;
	}
	to = &d->consumers[place];
	to->pid = from->pid;
	to->uid = from->uid;
	/* The copy is not asked for: it counts, and is granted. */
	to->quota = from->quota;
	to->asked_bytes = UINT64_MAX / 2;
	to->snapshot_seq = from->snapshot_seq;
	to->fork_parent_no = d->consumers[asker].attach_no;
	to->cut = from->cut || idx != asker;
	to->fork_until_ns = d->now_ns + STOUP_FORK_NS;
	to->fork_ticket = ticket_new();
	copy_leases(d, from, to);
	to->state = STOUP_CONSUMER_TICKET;
	stoup_counter_add(d, STOUP_COUNTER_FORKS, 1);
	stoup_consumer_show(d, place);
	*ret_ticket = to->fork_ticket;
	STOUP_HOOK("fork.copied");
	return 0;
}

/* Only who had it made may give it up. */
static int give_up(struct stoup_daemon *d, uint32_t idx, uint64_t ticket)
{
	uint32_t place = stoup_fork_find(d, ticket);

	if (place == STOUP_IDX_NONE ||
		d->consumers[place].fork_parent_no != d->consumers[idx].attach_no)
		return -ENOENT;
	stoup_consumer_drop(d, place, STOUP_COUNTER_FORKS_EXPIRED);
	return 0;
}

/* The place of a former attachment of the process that asks; STOUP_IDX_NONE. */
static uint32_t former_find(const struct stoup_daemon *d, uint32_t asker, uint64_t attach_no)
{
	const struct stoup_consumer *own = &d->consumers[asker];

	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		const struct stoup_consumer *c = &d->consumers[i];

		/* ATTACHED: its hang-up is not heard yet. */
		if ((c->state == STOUP_CONSUMER_DEAF || c->state == STOUP_CONSUMER_ATTACHED) &&
			i != asker && c->attach_no == attach_no && c->pid == own->pid &&
			c->uid == own->uid)
			return i;
	}
	return STOUP_IDX_NONE;
}

static int copy_former(
	struct stoup_daemon *d, uint32_t asker, uint64_t attach_no, uint64_t *ret_ticket)
{
	uint32_t idx = former_find(d, asker, attach_no);

	return idx == STOUP_IDX_NONE ? -ENOENT : stoup_fork_copy(d, idx, asker, ret_ticket);
}

int stoup_fork_message(struct stoup_daemon *d, uint32_t idx, const struct stoup_wire_fork *msg)
{
	struct stoup_wire_fork answer = {
		.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_FORK, .ticket = msg->ticket};
	int unread = 0, sock_fd = d->consumers[idx].sock_fd;

	/* A peer that asks again without having read the answer before is none of ours. */
	if (ioctl(sock_fd, SIOCOUTQ, &unread) == 0 && unread > 0)
		return -EPROTO;
	if (msg->kind == STOUP_WIRE_FORMER)
		answer.error = copy_former(d, idx, msg->ticket, &answer.ticket);
	else if (msg->ticket == 0)
		answer.error = stoup_fork_copy(d, idx, idx, &answer.ticket);
	else
		answer.error = give_up(d, idx, msg->ticket);
	return stoup_wire_send(sock_fd, &answer, sizeof(answer), NULL, 0);
}

static int answer_child(const struct stoup_daemon *d, uint32_t idx)
{
	const struct stoup_consumer *c = &d->consumers[idx];
	struct stoup_wire_reply reply = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_REPLY,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR,
		.fingerprint = d->control->fingerprint,
		.attach_no = c->attach_no,
		.consumer_idx = idx,
		.flags = stoup_quota_reply(c),
		.snapshot_seq = c->snapshot_seq};
	int fds[STOUP_WIRE_FD_FIXED];

	memcpy(reply.instance, d->control->instance, sizeof(reply.instance));
	fds[STOUP_WIRE_FD_CONTROL] = d->control_region.ro_fd;
	fds[STOUP_WIRE_FD_DATA] = d->data_region.ro_fd;
	fds[STOUP_WIRE_FD_PAGE] = c->page.fd;
	fds[STOUP_WIRE_FD_DOORBELL] = c->bell_fd;
	return stoup_wire_send(c->sock_fd, &reply, sizeof(reply), fds, STOUP_WIRE_FD_FIXED);
}

int stoup_fork_redeem(struct stoup_daemon *d, uint64_t ticket, int sock_fd,
	const struct ucred *cred, struct stoup_error *err)
{
	uint32_t idx = stoup_fork_find(d, ticket);
	struct stoup_consumer *c;
	int rc;

	if (idx == STOUP_IDX_NONE)
		return stoup_error_set(err, -ENOENT,
			"no leases wait under this ticket: they were fetched already, given up, or "
			"not asked for within %u s; mend: attach anew",
			(unsigned int)(STOUP_FORK_NS / 1000000000));
	c = &d->consumers[idx];
	rc = stoup_consumer_join(d, idx, sock_fd, cred, err);
	if (rc < 0)
		return rc;
	c->quota = stoup_quota_of(d, sock_fd, cred);
	rc = answer_child(d, idx);
	if (rc < 0) {
		/* The leases still wait: the child may come again. */
		stoup_consumer_part(d, idx);
		return stoup_error_set(err, rc, "the answer could not be sent: %s", strerror(-rc));
	}
	STOUP_HOOK("fork.answered");
	c->pid = (uint32_t)cred->pid;
	c->uid = (uint32_t)cred->uid;
	c->fork_ticket = 0;
	stoup_consumer_enter(d, idx);
	if (c->cut)
		stoup_consumer_dismiss(d, idx);
	return 0;
}

void stoup_fork_tick(struct stoup_daemon *d)
{
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (d->consumers[i].state == STOUP_CONSUMER_TICKET &&
			d->now_ns >= d->consumers[i].fork_until_ns)
			stoup_consumer_drop(d, i, STOUP_COUNTER_FORKS_EXPIRED);
}
