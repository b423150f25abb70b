/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - what request.c and quota.c have in common: one request, read once, and the ways to end it. */
#ifndef STOUP_PRODUCER_REQUEST_H
#define STOUP_PRODUCER_REQUEST_H

#include "producer/daemon.h"

struct stoup_request {
	uint32_t kind, slot_idx, cell_idx, volume_idx, block_idx;
	uint32_t ahead_cnt, ahead_volume_idx, ahead_block_idx;
	int32_t ahead_step;
	uint64_t ticket, deadline_ns;
};

/* ---- request.c -------------------------------------------------------------------------------- */

/* Why a demand can not be served whatever happens, or 0. */
int stoup_request_check(
	struct stoup_daemon *d, const struct stoup_request *r, uint64_t *ret_detail);
/* Grant it, or let it wait for a load. 0, or an error that it has not been told yet. */
int stoup_request_serve(
	struct stoup_daemon *d, uint32_t consumer_idx, const struct stoup_request *r);
/* End it with an error. */
void stoup_request_fail(struct stoup_daemon *d, uint32_t consumer_idx, uint32_t slot_idx, int error,
	uint64_t detail);
/* Its consumer gave it up, if it lives: the slot is free again. */
void stoup_waiter_left(struct stoup_daemon *d, const struct stoup_waiter *w);
/* A waiter of that request, in no list; there is one for each slot. */
uint32_t stoup_waiter_take(
	struct stoup_daemon *d, uint32_t consumer_idx, const struct stoup_request *r);
void stoup_waiter_put(struct stoup_daemon *d, uint32_t idx);
/* Its consumer, or NULL when that ended since: the page is gone and nothing is owed. */
struct stoup_consumer *stoup_waiter_consumer(struct stoup_daemon *d, const struct stoup_waiter *w);
/* Does its consumer live and still wait? Who gave up took the ticket out of the cell. */
int stoup_waiter_stands(struct stoup_daemon *d, const struct stoup_waiter *w);
/* Is it so near to its deadline that it is to be told the reason now? */
int stoup_waiter_expired(const struct stoup_daemon *d, const struct stoup_waiter *w);

/* ---- quota.c ---------------------------------------------------------------------------------- */

/* May the consumer lease `len` bytes more? Where its group has no quota, always. */
int stoup_quota_admits(struct stoup_daemon *d, uint32_t consumer_idx, uint64_t len);
/* It waits until it may: 0, or -EBUSY. */
int stoup_quota_wait(struct stoup_daemon *d, uint32_t consumer_idx, const struct stoup_request *r);

#endif
