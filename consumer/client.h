/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - the inside of libstoup: one attachment, its lease cells, its requests.
 *
 *      struct stoup --+-- maps: control, data (read-only), page (its own), one catalog per volume
 *                     +-- cells: private records of the page's lease cells     (cells.c)
 *                     +-- slots: which request slots are in use                (wait.c)
 *                     +-- schemas: one object per layout                       (series.c)
 *
 *      a cell's life:
 *
 *      free list --take--> in a cursor's hand --hit or grant--> leased --release--> idle, same hand
 *          ^                    |  (this cursor alone: no lock)   |
 *          |                    | close                           | stoup_hold
 *          +--------------------+                                 v
 *          +------------ last reference goes ------------ shared: found by its word, counted
 *
 * Invariant: a cell is in exactly one place: the free list, one cursor's hand, or shared. A shared
 * word stands in one cell, however many cursors and holders count on it. What cells can lease at
 * the same time never exceeds control->lease_bytes_cap, except that one lease is always possible.
 *
 * Concurrency: the fields up to `mutex` do not change after attach, except the atomic ones. A hand
 * and its private cells belong to the thread that has the cursor. All else is under `mutex`, which
 * is held for a few dozen instructions and never while waiting.
 *
 * Limits: STOUP_HAND_CAP cells per cursor show the daemon what the cursor used lately (a released
 * cell keeps its word); a quarter of the cells stays for cursors and holders that share.
 */
#ifndef STOUP_CONSUMER_CLIENT_H
#define STOUP_CONSUMER_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>
#include "consumer/stoup.h"
#include "shm/abi.h"
#include "shm/catalog.h"
#include "shm/control.h"
#include "shm/page.h"
#include "shm/region.h"

#define STOUP_HAND_CAP   16u   /* cells of one cursor */
#define STOUP_BUCKET_CNT 1024u /* of the shared cells' hash; as many as cells */
#define STOUP_CELL_NONE  UINT32_MAX
#define STOUP_SLICE_NS   INT64_C(20000000)    /* longest sleep without a look at the daemon */
#define STOUP_SILENT_NS  UINT64_C(3000000000) /* heartbeats come once a second: three missed */
#define STOUP_PULSE_NS   UINT64_C(10000000)   /* stoup_next asks the socket at most that often */
#define STOUP_LOOK_CALLS 16u /* and looks at the clock at least every so many calls */

/* One catalog as mapped here. */
struct stoup_snapshot_volume {
	const struct stoup_catalog *catalog;
	size_t map_len;
	const struct stoup_catalog_series *series;
	const struct stoup_catalog_segment *segments;
	const struct stoup_catalog_block *blocks;
	const _Atomic uint64_t *residency;
	const struct stoup_schema **schemas; /* per schema of the catalog: the client's object */
};

/* Private record of one lease cell. `use` names one lease of it for ever: odd while leased. */
struct stoup_cell {
	_Alignas(64) _Atomic uint64_t use;
	uint64_t word;
	uint64_t bytes; /* of the pool that it keeps */
	uint32_t refs;  /* shared: cursors and holders that count on it */
	uint32_t shared;
	uint32_t next; /* in the free list or the hash chain */
};

/* What stoup_hold gave out: a lease names its entry and its use. */
struct stoup_hold {
	uint64_t use; /* 0 = free */
	uint32_t cell_idx;
	uint32_t next;
};

/* The cells of one cursor, and what it may lease without asking. */
struct stoup_hand {
	uint32_t cells[STOUP_HAND_CAP];
	uint32_t cnt, at, fresh; /* cells; the next one to use; how many of them were used */
	uint64_t reserved;       /* bytes counted in reserved_bytes for this cursor */
};

/* A block that a cursor has leased. */
struct stoup_grip {
	uint32_t cell_idx; /* STOUP_CELL_NONE: holds nothing */
	uint32_t raw_len;  /* bytes at base */
	uint64_t word, use;
	const uint8_t *base;
};

struct stoup {
	struct stoup_region control_region, data_region, page_region;
	const struct stoup_control *control;
	const struct stoup_control_buffer *buffers;
	struct stoup_page *page;
	int sock_fd, bell_fd;
	_Atomic uint32_t *own; /* one page that a fork wipes: 0 in the child */
	pid_t pid;
	int daemon_seen; /* /proc showed the daemon when we attached: it can tell of its death */
	struct stoup_options opt;
	uint32_t cell_cap;
	uint64_t lease_bytes_cap;
	struct stoup_snapshot_volume *volumes; /* in the order of their ingest */
	uint32_t volume_cnt;
	char pool[STOUP_POOL_NAME_CAP];

	/* 0; else when the end was seen (ns) * 2, + 1 when it is our own socket that is closed. Set
	 * once; time and reason in one word, so that no order is needed. */
	_Atomic uint64_t ended;
	_Atomic uint64_t pulse_ns; /* last look at the socket */
	_Atomic uint32_t free_cnt; /* cells in the free list; written under the mutex */

	pthread_mutex_t mutex;
	struct stoup_cell *cells;
	uint32_t free_first, free_last;
	uint32_t buckets[STOUP_BUCKET_CNT];
	uint64_t reserved_bytes; /* by the hands of all cursors */
	uint64_t shared_bytes;   /* by shared cells */
	struct stoup_hold *holds;
	uint32_t hold_cap, hold_free, hold_cnt;
	uint64_t hold_seq;
	uint32_t cursor_cnt;
	uint64_t slot_busy; /* bit s: in use by a waiter, or not yet acknowledged */
	uint64_t slot_left; /* of those: nobody waits any more; free once DONE */
	uint64_t slot_seq[STOUP_SLOT_CNT];
	struct stoup_schema **schemas;
	uint32_t schema_cnt;
	uint64_t *listing; /* series ids by name; made when first asked for */
	uint64_t listing_cnt;
	int listing_made;
};

/* Is this the process that attached? No system call. */
static inline int stoup_client_own(const struct stoup *st)
{
	uint32_t v = atomic_load_explicit(st->own, memory_order_relaxed);

	/* 2: the kernel could not mark the page, so the pid decides. */
	return v == 1 || (v == 2 && getpid() == st->pid);
}

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t stoup_client_now(void);

/* ---- client.c -------------------------------------------------------------------------------- */

/* Copy what the caller's structure has, defaults for the rest. -EINVAL with text. */
int stoup_options_read(
	const struct stoup_options *opt, struct stoup_options *ret, struct stoup_error *err);

/* Free a client in any state of construction; tells the daemon nothing. NULL is allowed. */
void stoup_client_destroy(struct stoup *st);

/* -ECHILD with text: the handle of a parent process. */
int stoup_client_inherited(struct stoup_error *err);

/* -errno with text about `what`; that of EMFILE names the limit. */
int stoup_client_errno(struct stoup_error *err, const char *what);

/* Look at the instance state, and at the socket when `look` is set. 0, or -EPIPE with text. The
 * first call after the end may wait some 50 ms for /proc to show whether the daemon died. */
int stoup_client_check(struct stoup *st, int look, struct stoup_error *err);

/* Is it certain that the daemon's process is gone? */
int stoup_client_daemon_gone(const struct stoup *st);

/* -EPIPE with text. */
int stoup_client_dead(const struct stoup *st, struct stoup_error *err);

/* 0 while heartbeats come; -ETIME, the text ending in `more`; -EPIPE when the daemon is gone. */
int stoup_client_silent(const struct stoup *st, const char *more, struct stoup_error *err);

/* Nanoseconds since the daemon's last heartbeat. */
uint64_t stoup_client_silence(const struct stoup *st, uint64_t now_ns);

/* ---- attach.c -------------------------------------------------------------------------------- */

/* Connect to the socket of `pool` in runtime directory `dir_idx` and make a client of it. -ENOENT:
 * no such socket; -ECONNREFUSED: left behind by a dead daemon; -ECONNRESET: the daemon hung up, it
 * is ending; others as stoup_attach. */
int stoup_client_connect(const char *pool, uint32_t dir_idx, const struct stoup_options *opt,
	uint64_t deadline_ns, struct stoup **ret, struct stoup_error *err);

/* ---- snapshot.c ------------------------------------------------------------------------------ */

/* Map one received catalog descriptor (closes it) and add it to the volumes. */
int stoup_snapshot_add(struct stoup *st, int fd, struct stoup_error *err);

/* All volumes are there: order them, and make one schema object per layout. */
int stoup_snapshot_finish(struct stoup *st, struct stoup_error *err);

void stoup_snapshot_fini(struct stoup *st);

/* ---- auto.c ---------------------------------------------------------------------------------- */

/* Pool name of the automatic daemon of the store at `path`, and its real path (PATH_MAX bytes). */
int stoup_auto_name(
	const char *path, char *pool, size_t pool_cap, char *real, struct stoup_error *err);

/* Join the automatic daemon of the store at `path`, starting it when there is none. */
int stoup_auto_attach(const char *path, const struct stoup_options *opt, uint64_t deadline_ns,
	struct stoup **ret, struct stoup_error *err);

/* ---- spawn.c --------------------------------------------------------------------------------- */

/* Start the automatic daemon of a store and wait until it is ready. `log_path` takes its stderr. 0;
 * -EEXIST with the daemon's text: another process has the name, it starts or ends; -ECONNABORTED:
 * it did not start; -ETIMEDOUT; others. */
struct stoup_spawn {
	const char *daemon;     /* of the options, or NULL */
	const char *store_path; /* absolute */
	const char *pool;
	const char *log_path;
	uint64_t pool_len; /* 0 = its default */
};
int stoup_spawn(const struct stoup_spawn *how, uint64_t deadline_ns, struct stoup_error *err);

/* ---- cells.c --------------------------------------------------------------------------------- */

int stoup_cells_init(struct stoup *st, struct stoup_error *err);
void stoup_cells_fini(struct stoup *st);

/* Lease a block that is in the pool: 1 with *grip; 0 it is not; -EDQUOT, -EMFILE, -EPROTO with
 * text. */
int stoup_grip_hit(struct stoup *st, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx, struct stoup_grip *grip,
	struct stoup_error *err);

/* Lease a block by request and wait for it; `ahead` may be NULL. 0, or a negative errno with text. */
struct stoup_ahead;
int stoup_grip_wait(struct stoup *st, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx,
	const struct stoup_ahead *ahead, struct stoup_grip *grip, struct stoup_error *err);

/* Give back what `grip` holds; nothing when it holds nothing. */
void stoup_grip_release(struct stoup *st, struct stoup_hand *hand, struct stoup_grip *grip);

/* Give back the cells and the reservation of a hand. The grip must be released. */
void stoup_hand_fini(struct stoup *st, struct stoup_hand *hand);

/* ---- wait.c ---------------------------------------------------------------------------------- */

/* Consecutive blocks of one volume to read ahead. */
struct stoup_ahead {
	uint32_t volume_idx, block_idx, cnt;
};

/* Ask for a block through the free cell `cell_idx` and wait. 0: the cell holds *ret_word. A
 * negative errno with text: the cell is 0. */
int stoup_wait_grant(struct stoup *st, const struct stoup_snapshot_volume *vol, uint32_t block_idx,
	uint32_t cell_idx, const struct stoup_ahead *ahead, uint64_t *ret_word,
	struct stoup_error *err);

/* Post a read-ahead. 1 = posted, 0 = too many requests are under way. */
int stoup_wait_ahead(struct stoup *st, const struct stoup_ahead *ahead);

/* Ring the doorbell: one system call. */
void stoup_wait_ring(struct stoup *st);

/* ---- explain.c ------------------------------------------------------------------------------- */

/* Text of the error that ended a request. Returns the code for the user. */
int stoup_explain_request(struct stoup *st, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, int32_t error, uint64_t detail, struct stoup_error *err);

/* A wait reached its deadline: -EPIPE, -ETIME, -ENOBUFS or -ETIMEDOUT. */
int stoup_explain_timeout(struct stoup *st, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, struct stoup_error *err);

/* ---- series.c -------------------------------------------------------------------------------- */

/* The parts of a series, one per volume that holds some of it, in key order. */
struct stoup_part {
	const struct stoup_snapshot_volume *vol;
	const struct stoup_catalog_series *series;
	uint64_t ordinal; /* of its first record in the whole series */
};

/* Parts of the series that `id` names; the caller frees *ret. -ENOENT for an id that is none. */
int stoup_series_parts(struct stoup *st, uint64_t id, struct stoup_part **ret, uint32_t *ret_cnt);

#endif
