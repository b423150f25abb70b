/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - what the consumers of a group, or of a user, may lease together: `stoupd --quota`.
 *
 *      attach --credentials: first --quota that fits--> its consumers ask for each lease (STOUP_REPLY_ASKS)
 *
 *      request --room--> grant, or wait for the load (its bytes count from here on)
 *         |  none
 *         +--> queue of the quotas, in order of arrival --a release makes room--> as above
 *                    `--deadline--> -EDQUOT, with the group's name and numbers
 *
 * What counts is what --lease-bytes counts: the decoded bytes of each cell that names a block, so that a block which two
 * consumers lease counts twice; and the blocks that are being loaded for one of them.
 *
 * Strict: whoever asks is granted nothing beyond the quota, but for one block where the group holds nothing at all. This
 * thread alone grants, and what it knows of releases is late at most, never early. Leases copied for a child are not asked
 * for; they count from the copy on.
 * Seen at the tick: leases that were taken without asking (a library of an older release, or a page that is written by
 * hand). Who keeps more than it was granted for a second while its group is beyond the quota, is disconnected.
 * Who gave up (a ticket that is no longer in its cell) keeps nobody waiting behind it.
 *
 * Invariant: of one quota a request never overtakes another. `asked_bytes` of a consumer is at least what it leases by
 * grants alone.
 *
 * Concurrency: the conductor's. If a consumer dies, its leases and requests fall away as all do.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "producer/request.h"

#define GROUPS_CAP   1024                 /* supplementary groups of a peer that are looked at */
#define OVER_LOOK_NS UINT64_C(1000000000) /* two looks a second apart */

/* ---- options ---------------------------------------------------------------------------------- */

int stoup_quota_parse(const char *text, struct stoup_quota_option *ret, struct stoup_error *err)
{
	const char *sep = strrchr(text, '='), *name = text;
	struct stoup_access_list list = {.uid_cnt = 0};
	char word[sizeof(ret->name)];
	int group = 1;

	memset(ret, 0, sizeof(*ret));
	if (!sep || sep == text || (size_t)(sep - text) >= sizeof(word))
		return stoup_error_set(err, -EINVAL,
			"GROUP=SIZE, user:NAME=SIZE or with a part of the pool, GROUP=25%%, is wanted");
	memcpy(word, text, (size_t)(sep - text));
	word[sep - text] = 0;
	memcpy(ret->name, word, sizeof(word));
	name = word;
	if (strncmp(word, "user:", 5) == 0) {
		group = 0;
		name = word + 5;
	} else if (strncmp(word, "group:", 6) == 0) {
		name = word + 6;
	}
	ret->value = sep + 1;
	ret->kind = group ? STOUP_QUOTA_GROUP : STOUP_QUOTA_USER;
	if (stoup_access_add(&list, name, group, err) < 0)
		return err->code;
	ret->id = group ? list.gids[0] : list.uids[0];
	return 0;
}

void stoup_quotas_init(struct stoup_daemon *d)
{
	d->quotas = stoup_control_quotas(d->control);
	d->quota_first = d->quota_last = STOUP_IDX_NONE;
	for (uint32_t i = 0; i < d->opt.quota_cnt; i++) {
		const struct stoup_quota_option *opt = &d->opt.quotas[i];
		struct stoup_control_quota *row = &d->quotas[i];

		memcpy(row->name, opt->name, sizeof(row->name));
		row->kind = opt->kind;
		row->id = opt->id;
		row->bytes_cap =
			opt->bytes ? opt->bytes : stoup_part_of(d->data_region.len, opt->percent);
	}
}

/* ---- whose it is ------------------------------------------------------------------------------ */

static int has_group(const gid_t *groups, size_t cnt, uint32_t gid)
{
	for (size_t i = 0; i < cnt; i++)
		if (groups[i] == gid)
			return 1;
	return 0;
}

uint32_t stoup_quota_of(const struct stoup_daemon *d, int sock_fd, const struct ucred *cred)
{
	gid_t groups[GROUPS_CAP + 1];
	socklen_t len = GROUPS_CAP * sizeof(groups[0]);
	size_t cnt = 0;

	if (d->opt.quota_cnt == 0)
		return STOUP_IDX_NONE;
	if (getsockopt(sock_fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0)
		cnt = len / sizeof(groups[0]);
	groups[cnt++] = cred->gid;
	for (uint32_t i = 0; i < d->opt.quota_cnt; i++) {
		const struct stoup_quota_option *q = &d->opt.quotas[i];

		if (q->kind == STOUP_QUOTA_USER ? q->id == cred->uid
						: has_group(groups, cnt, q->id))
			return i;
	}
	return STOUP_IDX_NONE;
}

uint32_t stoup_quota_reply(const struct stoup_consumer *c)
{
	return c->quota == STOUP_IDX_NONE ? 0
	                                  : STOUP_REPLY_ASKS | c->quota << STOUP_REPLY_QUOTA_SHIFT;
}

/* ---- room ------------------------------------------------------------------------------------- */

/* What the consumers of a quota lease, and what is being loaded for them. */
static uint64_t used(const struct stoup_daemon *d, uint32_t quota)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (d->consumers[i].page.base && d->consumers[i].quota == quota)
			sum += d->consumers[i].leased_bytes + d->consumers[i].loading_bytes;
	return sum;
}

static int fits(const struct stoup_daemon *d, uint32_t quota, uint64_t len)
{
	uint64_t sum = used(d, quota), cap = d->quotas[quota].bytes_cap;

	/* One lease is always possible, whatever its length, as it is with --lease-bytes. */
	return sum == 0 || (sum <= cap && len <= cap - sum);
}

static uint32_t waiting(const struct stoup_daemon *d, uint32_t quota)
{
	return atomic_load_explicit(&d->quotas[quota].waiting_cnt, memory_order_relaxed);
}

int stoup_quota_admits(struct stoup_daemon *d, uint32_t consumer_idx, uint64_t len)
{
	uint32_t quota = d->consumers[consumer_idx].quota;

	if (quota == STOUP_IDX_NONE)
		return 1;
	if (waiting(d, quota) > 0)
		return 0;
	if (fits(d, quota, len))
		return 1;
	/* What is known is as old as the last look. */
	stoup_evict_scan(d);
	return fits(d, quota, len);
}

/* ---- the queue -------------------------------------------------------------------------------- */

static void waiting_add(struct stoup_daemon *d, uint32_t quota, uint32_t by)
{
	atomic_fetch_add_explicit(&d->quotas[quota].waiting_cnt, by, memory_order_relaxed);
}

int stoup_quota_wait(struct stoup_daemon *d, uint32_t consumer_idx, const struct stoup_request *r)
{
	const struct stoup_consumer *c = &d->consumers[consumer_idx];
	uint32_t idx;

	stoup_counter_add(d, STOUP_COUNTER_LIMIT_QUOTA, 1);
	atomic_fetch_add_explicit(&d->quotas[c->quota].limit_cnt, 1, memory_order_relaxed);
	if (c->waiting_cnt >= d->opt.request_cap) {
		stoup_counter_add(d, STOUP_COUNTER_LIMIT_REQUESTS, 1);
		return -EBUSY;
	}
	idx = stoup_waiter_take(d, consumer_idx, r);
	d->waiters[idx].volume_idx = r->volume_idx;
	d->waiters[idx].block_idx = r->block_idx;
	d->waiters[idx].step = r->ahead_step;
	d->waiters[idx].quota = c->quota;
	if (d->quota_last == STOUP_IDX_NONE)
		d->quota_first = idx;
	else
		d->waiters[d->quota_last].next = idx;
	d->quota_last = idx;
	waiting_add(d, c->quota, 1);
	STOUP_HOOK("quota.waits");
	return 0;
}

/* Out of the queue; `prev` is the one before it. */
static void unlink_waiter(struct stoup_daemon *d, uint32_t prev, uint32_t idx)
{
	struct stoup_waiter *w = &d->waiters[idx];

	if (prev == STOUP_IDX_NONE)
		d->quota_first = w->next;
	else
		d->waiters[prev].next = w->next;
	if (d->quota_last == idx)
		d->quota_last = prev;
	waiting_add(d, w->quota, UINT32_MAX);
}

static uint64_t refuse(struct stoup_daemon *d, const struct stoup_waiter *w, uint64_t len)
{
	struct stoup_error err;

	stoup_control_quota_explain(&d->quotas[w->quota], d->opt.pool, used(d, w->quota),
		d->consumers[w->consumer_idx].pid, len, &err);
	return stoup_log_peer(d, err.code, "%s", err.text);
}

/* It may go on, and is in no queue. */
static void resume(struct stoup_daemon *d, const struct stoup_waiter *w)
{
	struct stoup_request r = {.kind = STOUP_REQUEST_DEMAND,
		.slot_idx = w->slot_idx,
		.cell_idx = w->cell_idx,
		.volume_idx = w->volume_idx,
		.block_idx = w->block_idx,
		.ahead_step = w->step,
		.ticket = w->ticket,
		.deadline_ns = w->deadline_ns};
	uint64_t detail;
	int rc = stoup_request_check(d, &r, &detail);

	if (rc == 0)
		rc = stoup_request_serve(d, w->consumer_idx, &r);
	if (rc < 0)
		stoup_request_fail(d, w->consumer_idx, w->slot_idx, rc, detail);
}

/* Bytes of the block that it waits for; 0 where its volume has gone meanwhile: then it learns that. */
static uint64_t wanted(const struct stoup_daemon *d, const struct stoup_waiter *w)
{
	const struct stoup_volume *v = &d->volumes[w->volume_idx];

	return v->closed || !v->file ? 0 : v->file->index->blocks[w->block_idx].raw_len;
}

int stoup_quota_pump(struct stoup_daemon *d)
{
	uint32_t prev = STOUP_IDX_NONE, next, full = 0;
	int moved = 0;

	if (d->quota_first == STOUP_IDX_NONE)
		return 0;
	stoup_evict_scan(d);
	for (uint32_t i = d->quota_first; i != STOUP_IDX_NONE; i = next) {
		struct stoup_waiter w = d->waiters[i];
		int lives = stoup_waiter_consumer(d, &w) != NULL;
		int stands = stoup_waiter_stands(d, &w), expired = stoup_waiter_expired(d, &w);
		uint64_t len = lives ? wanted(d, &w) : 0;
		int room = !(full >> w.quota & 1) && fits(d, w.quota, len);

		next = w.next;
		if (stands && !room && !expired) {
			full |= 1u << w.quota;
			prev = i;
			continue;
		}
		unlink_waiter(d, prev, i);
		stoup_waiter_put(d, i);
		moved = 1;
		STOUP_HOOK("quota.left");
		if (stands && room)
			resume(d, &w);
		else if (!expired) /* given up: who comes behind must not wait for nobody */
			stoup_waiter_left(d, &w);
		else if (lives)
			stoup_request_fail(
				d, w.consumer_idx, w.slot_idx, -EDQUOT, refuse(d, &w, len));
	}
	return moved;
}

void stoup_quota_forget(struct stoup_daemon *d, uint32_t consumer_idx)
{
	uint32_t prev = STOUP_IDX_NONE, next;

	for (uint32_t i = d->quota_first; i != STOUP_IDX_NONE; i = next) {
		next = d->waiters[i].next;
		if (consumer_idx != STOUP_IDX_NONE && d->waiters[i].consumer_idx != consumer_idx) {
			prev = i;
			continue;
		}
		unlink_waiter(d, prev, i);
		stoup_waiter_put(d, i);
	}
}

void stoup_quota_fail_all(struct stoup_daemon *d, int error)
{
	for (uint32_t i = d->quota_first; i != STOUP_IDX_NONE; i = d->waiters[i].next)
		if (stoup_waiter_consumer(d, &d->waiters[i]))
			stoup_request_fail(
				d, d->waiters[i].consumer_idx, d->waiters[i].slot_idx, error, 0);
	stoup_quota_forget(d, STOUP_IDX_NONE);
}

/* ---- now and then ----------------------------------------------------------------------------- */

void stoup_quotas_publish(struct stoup_daemon *d)
{
	uint64_t bytes[STOUP_QUOTA_CAP] = {0};
	uint32_t cnt[STOUP_QUOTA_CAP] = {0};

	for (uint32_t i = 0; i < d->opt.consumer_cap; i++) {
		const struct stoup_consumer *c = &d->consumers[i];

		if (!c->page.base || c->quota == STOUP_IDX_NONE)
			continue;
		bytes[c->quota] += c->leased_bytes;
		cnt[c->quota]++;
	}
	for (uint32_t i = 0; i < d->opt.quota_cnt; i++) {
		atomic_store_explicit(&d->quotas[i].leased_bytes, bytes[i], memory_order_relaxed);
		atomic_store_explicit(&d->quotas[i].consumer_cnt, cnt[i], memory_order_relaxed);
	}
}

/* Has it leased what it was not granted, while its group is beyond the quota? */
static int is_over(const struct stoup_daemon *d, const struct stoup_consumer *c)
{
	return c->page.base && c->quota != STOUP_IDX_NONE && c->lease_cnt > 1 &&
	       c->leased_bytes > c->asked_bytes &&
	       used(d, c->quota) > d->quotas[c->quota].bytes_cap;
}

void stoup_quota_look(struct stoup_daemon *d, uint32_t consumer_idx)
{
	struct stoup_consumer *c = &d->consumers[consumer_idx];

	if (!is_over(d, c)) {
		c->quota_since_ns = 0;
		return;
	}
	if (c->quota_since_ns == 0)
		c->quota_since_ns = d->now_ns;
	if (d->now_ns - c->quota_since_ns < OVER_LOOK_NS)
		return;
	stoup_log_peer(d, -EDQUOT,
		"process %u leases %" PRIu64
		" bytes without asking, and its quota '%.40s' of %" PRIu64
		" bytes is used up: disconnected; mend: use the libstoup of this release there",
		c->pid, c->leased_bytes - c->asked_bytes, d->quotas[c->quota].name,
		d->quotas[c->quota].bytes_cap);
	stoup_consumer_drop(d, consumer_idx, STOUP_COUNTER_QUOTA_DROPPED);
}
