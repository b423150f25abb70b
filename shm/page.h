/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - the consumer page: the only shared memory that a consumer can write.
 *
 *      0     identity          daemon, before the descriptor is passed; never changed
 *      128   consumer's words  consumer writes: state, highest used cell, snapshot in use
 *      256   its counters      consumer writes, conductor reads
 *      512   pending bitmap    consumer fetch_or, conductor exchange 0
 *      1024  64 request slots  one cache line each
 *      5120  lease cells       consumer writes; the conductor only by the CAS of a grant
 *      page_len  series of each cell, for monitors   consumer writes (minor 2)
 *
 * Life of a slot (the consumer moves it, except where it says conductor):
 *
 *      FREE --request--> WAIT --spun enough (CAS)--> SLEEP
 *                         |                            |
 *                         +--- conductor (exchange) ---+--> DONE --result read--> FREE
 *
 * Invariant: nothing here is needed by any other consumer, and the daemon believes none of it: it
 * reads each word once, masks and bounds it, and never waits on it. A page serves one attachment only.
 *
 * If the consumer dies on any line, its page is dropped as a whole once its death is confirmed: cells
 * fall away, requests in flight fail to be granted, no other object was written by it.
 */
#ifndef STOUP_SHM_PAGE_H
#define STOUP_SHM_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "shm/abi.h"

/* States of a slot: the futex word of its waiter. */
#define STOUP_SLOT_FREE  0u
#define STOUP_SLOT_WAIT  1u
#define STOUP_SLOT_SLEEP 2u
#define STOUP_SLOT_DONE  3u

/* Kinds of request. */
#define STOUP_REQUEST_DEMAND 1u /* grant block into the cell that holds the ticket */
#define STOUP_REQUEST_AHEAD  2u /* no waiter: only the read-ahead part counts */

/* States of the page. */
#define STOUP_PAGE_ATTACHED 1u
#define STOUP_PAGE_DETACHED 2u /* said by an orderly detach: all its cells are void */

/* One request, one cache line. Written by the consumer before it sets the pending bit [M1]; `error`
 * and `state` DONE by the conductor [M2]. */
struct stoup_slot {
	_Atomic uint32_t state;      /* STOUP_SLOT_*, futex word */
	_Atomic uint32_t kind;       /* STOUP_REQUEST_* */
	_Atomic uint64_t seq;        /* of this use of the slot; the ticket carries it */
	_Atomic uint32_t cell_idx;   /* the cell that holds the ticket */
	_Atomic uint32_t volume_idx; /* the block asked for */
	_Atomic uint32_t block_idx;
	_Atomic uint32_t ahead_cnt; /* blocks to read ahead, at most STOUP_AHEAD_CAP; 0 = none */
	_Atomic uint32_t ahead_volume_idx;
	_Atomic uint32_t ahead_block_idx; /* the first of them */
	_Atomic int32_t ahead_step; /* +1 or -1: the direction of the scan, also with ahead_cnt 0 */
	_Atomic int32_t error;      /* 0, or why not: a negative errno; conductor, before DONE */
	_Atomic uint64_t detail;    /* of the error: a number that its text names; conductor */
	_Atomic uint64_t
		deadline_ns; /* CLOCK_MONOTONIC after which nobody waits; conductor gives up then */
};

struct stoup_page {
	/* identity */
	uint64_t magic;
	uint32_t abi_major, abi_minor;
	uint64_t page_len;    /* bytes of the object up to the series of the cells */
	uint8_t instance[16]; /* of the daemon */
	uint64_t attach_no;   /* unique in the life of the daemon */
	uint32_t consumer_idx;
	uint32_t slot_cnt;
	uint32_t cell_cap;
	uint32_t zero0;
	uint8_t pad0[STOUP_APART_LEN - 64];
	/* the consumer's words */
	_Atomic uint32_t state; /* STOUP_PAGE_* */
	_Atomic uint32_t
		cell_high; /* cells [0, cell_high) have been used: raised before the first use [L4] */
	_Atomic uint64_t
		snapshot_seq; /* oldest snapshot in use: raised (release) when nothing older is [V1] */
	uint8_t pad1[STOUP_APART_LEN - 16];
	/* its counters, relaxed */
	_Atomic uint64_t hit_cnt;
	_Atomic uint64_t miss_cnt;
	_Atomic uint64_t timeout_cnt;
	_Atomic uint64_t wait_ns;      /* spent waiting for grants */
	_Atomic uint64_t record_cnt;   /* records handed out in spans */
	_Atomic uint64_t doorbell_cnt; /* system calls to wake the conductor */
	/* times that this process met one of its limits */
	_Atomic uint64_t cells_refused_cnt;    /* no free lease cell */
	_Atomic uint64_t bytes_refused_cnt;    /* its share of the pool is held */
	_Atomic uint64_t requests_refused_cnt; /* no free request slot */
	uint8_t pad2[2 * STOUP_APART_LEN - 72];
	/* both */
	_Atomic uint64_t pending; /* bit s: slot s holds a new request */
	uint8_t pad3[4 * STOUP_APART_LEN - 8];
	struct stoup_slot slots[STOUP_SLOT_CNT];
	_Atomic uint64_t cells[]; /* cell_cap of them */
};

/* Bytes of a page with cell_cap cells, whole OS pages. */
static inline size_t stoup_page_footprint(uint32_t cell_cap)
{
	size_t len = sizeof(struct stoup_page) + (size_t)cell_cap * sizeof(uint64_t);
	return (len + STOUP_OS_PAGE_LEN - 1) & ~(size_t)(STOUP_OS_PAGE_LEN - 1);
}

/* Bytes of the whole object: with a word for each cell behind page_len, where readers of minor 1 do not look. */
static inline size_t stoup_page_total(uint32_t cell_cap)
{
	size_t len = stoup_page_footprint(cell_cap) + (size_t)cell_cap * sizeof(uint32_t);
	return (len + STOUP_OS_PAGE_LEN - 1) & ~(size_t)(STOUP_OS_PAGE_LEN - 1);
}

/* Those words: the index of the series, in the volume of the block that the cell leases, plus 1; 0 = not told. Of a
 * block of several series it is the one that the cell was last taken for. NULL: a daemon of minor 1 has none. */
static inline _Atomic uint32_t *stoup_page_series(
	struct stoup_page *page, size_t map_len, uint32_t cell_cap)
{
	return map_len >= stoup_page_total(cell_cap)
	               ? (void *)((char *)page + stoup_page_footprint(cell_cap))
	               : NULL;
}

/* Make a zeroed mapping of stoup_page_footprint(cell_cap) bytes into a page. Called by the daemon
 * before anybody else can see it. */
void stoup_page_format(struct stoup_page *page, const uint8_t instance[16], uint64_t attach_no,
	uint32_t consumer_idx, uint32_t cell_cap);

/* Check a received page of map_len bytes against what the daemon's reply said; 0 or -EPROTO. */
int stoup_page_verify(const struct stoup_page *page, size_t map_len, const uint8_t instance[16],
	uint64_t attach_no);

_Static_assert(sizeof(struct stoup_slot) == 64, "a slot is one cache line");
_Static_assert(offsetof(struct stoup_page, state) == 128, "consumer's words");
_Static_assert(offsetof(struct stoup_page, hit_cnt) == 256, "counters");
_Static_assert(offsetof(struct stoup_page, pending) == 512, "pending");
_Static_assert(offsetof(struct stoup_page, slots) == 1024, "slots");
_Static_assert(offsetof(struct stoup_page, cells) == 5120, "cells");

#endif
