/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - the inside of libstoup: the handle, its sessions with daemons, snapshots, lease cells.
 *
 *      struct stoup            what the user has, from attach to detach
 *        +-- options, target, fork mark, series registry, holds
 *        +-- current --> session 3   running: maps control, data (read-only) and page (its own),
 *        |                  |        has cells (cells.c) and request slots (wait.c)
 *        |                  +-- newest --> snapshot: its volumes' catalogs (snapshot.c)
 *        |                  +-- an older snapshot, until its last cursor closes
 *        +-- session 1   its daemon ended; somebody still holds bytes or has a cursor there
 *
 *      a session:
 *
 *      attached, current --daemon ends--> ended --another daemon--> not current any more
 *                                           |                            |
 *             nobody uses its memory: data, page and socket go     no reference: all of it goes
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
 * Series ids, names and schemas are the handle's and stay until detach, whatever the sessions do.
 *
 * A session is referenced by being current, by its cursors and its holds. Its memory is used while
 * it is current and runs, by cursors between the first call and the end (or failure) of a scan, and
 * by holds; so a call that hits needs no count, and an ended daemon's memory goes when nothing is
 * held there.
 *
 * Concurrency: fields that do not change after attach, and atomic ones, are read by all. A hand and
 * its private cells belong to the thread that has the cursor. All else is under `mutex`, which is
 * held for a few dozen instructions and never while waiting; `question` is held while one thread
 * talks to the daemon over the socket, attaches anew or forks, and is taken first.
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
#include "shm/alive.h"
#include "shm/catalog.h"
#include "shm/control.h"
#include "shm/page.h"
#include "shm/region.h"

#define STOUP_HAND_CAP   16u   /* cells of one cursor */
#define STOUP_BUCKET_CNT 1024u /* of the shared cells' hash; as many as cells */
#define STOUP_CELL_NONE  UINT32_MAX
#define STOUP_TRY_CNT    8 /* hellos of one attach that may be cut off */
#define STOUP_SESSION_NONE                                                                         \
	0u /* session_no of a span that lies in a volume's own file: held by nobody */
#define STOUP_SLICE_NS   INT64_C(20000000)    /* longest sleep without a look at the daemon */
#define STOUP_SILENT_NS  UINT64_C(3000000000) /* heartbeats come once a second: three missed */
#define STOUP_PULSE_NS   UINT64_C(10000000) /* stoup_next looks for the daemon at most that often */
#define STOUP_LOOK_CALLS 16u /* and looks at the clock at least every so many calls */

/* One catalog as mapped here. */
struct stoup_snapshot_volume {
	const struct stoup_catalog *catalog;
	size_t map_len;
	const struct stoup_catalog_series *series;
	const struct stoup_catalog_segment *segments;
	const struct stoup_catalog_block *blocks;
	const _Atomic uint64_t *residency;
	const struct stoup_schema **schemas; /* per schema of the catalog: the handle's object */
};

/* The volumes that the store had at one moment. Does not change once it is made, but for `refs` and
 * the listing. */
struct stoup_snapshot {
	struct stoup_session *session;
	struct stoup_snapshot_volume *volumes; /* in the order of their ingest */
	uint32_t volume_cnt;
	uint32_t refs; /* cursors, and one while it is the session's newest */
	uint64_t seq;
	struct stoup_snapshot *next; /* of the session */
	uint64_t *listing;           /* (volume, series) by name; made when first asked for */
	uint64_t listing_cnt;
	int listing_made;
};

/* Private record of one lease cell. `use` names one lease of it for ever: odd while leased. */
struct stoup_cell {
	_Alignas(64) _Atomic uint64_t use;
	uint64_t word;
	uint64_t bytes; /* of the pool that it keeps */
	uint32_t refs;  /* shared: cursors and holders that count on it */
	uint32_t shared;
	uint32_t next;                 /* in the free list or the hash chain */
	struct stoup_promise *promise; /* its bytes are drawn from there; NULL: from the share */
};

/* A part of the share and cells that are kept for the cursors of one merge, so that none of its leases is
 * refused. Under the mutex. What is not drawn is counted in the session's reserved_bytes. */
struct stoup_promise {
	uint32_t session_no; /* where it is kept; 0: nowhere yet */
	uint32_t cell_cnt;   /* leases at the same time */
	uint64_t bytes;      /* of all of them */
	uint64_t drawn;
	uint32_t first, last; /* cells that are not drawn, oldest first */
	uint32_t series_cnt;  /* for the text of a refusal */
};

/* What stoup_hold gave out: a lease names its entry and its use. */
struct stoup_hold {
	uint64_t use;                  /* 0 = free */
	struct stoup_session *session; /* NULL: of a volume's own file, which needs none */
	uint32_t cell_idx;
	uint32_t next;
};

/* The cells of one cursor, and what it may lease without asking. */
struct stoup_hand {
	uint32_t cells[STOUP_HAND_CAP];
	uint32_t cnt, at, fresh; /* cells; the next one to use; how many of them were used */
	uint64_t reserved;       /* bytes counted in reserved_bytes for this cursor */
	struct stoup_promise
		*promise; /* of the merge that it belongs to: it leases by shared cells */
};

/* A block that a cursor has leased. */
struct stoup_grip {
	uint32_t cell_idx; /* STOUP_CELL_NONE: holds nothing */
	uint32_t raw_len;  /* bytes at base */
	uint64_t word, use;
	const uint8_t *base;
};

/* One attachment to one instance of a daemon. */
struct stoup_session {
	struct stoup *client;
	struct stoup_region control_region, data_region, page_region;
	const struct stoup_control *control;
	const struct stoup_control_buffer *buffers;
	struct stoup_page *page; /* NULL once nobody uses the session's memory any more */
	int sock_fd, bell_fd;
	int daemon_seen; /* /proc showed the daemon when we attached: it can tell of its death */
	int owed;        /* an answer that nobody took is still to come (under `question`) */
	uint32_t no;     /* of the client; spans name it */
	uint32_t dir_idx;
	uid_t daemon_uid; /* the other end of the socket */
	uint32_t cell_cap, request_cap;
	uint64_t lease_bytes_cap;
	int asks; /* its group has a quota: each lease is granted by the daemon, hits too */
	uint32_t quota_idx;  /* the quota's row in the control object */
	uint64_t timeout_ns; /* the daemon's --request-timeout, where it counts; else 0 */
	char pool[STOUP_POOL_NAME_CAP];

	/* 0; else when the end was seen (ns) * 2, + 1 when it is our own socket that is closed. Set
	 * once; time and reason in one word, so that no order is needed. */
	_Atomic uint64_t ended;
	_Atomic uint64_t pulse_ns; /* last look at the socket */
	_Atomic uint32_t free_cnt; /* cells in the free list; written under the mutex */

	/* under the client's mutex */
	struct stoup_session *next;
	uint64_t
		fork_ticket; /* between prepare and fork: of the copy of an ended session; 0 = none */
	uint32_t fork_high; /* its cells then (both under `question`) */
	uint32_t refs;      /* being current, cursors, holds */
	uint32_t users;     /* of its memory: running as the current one, cursors at work, holds */
	int running;        /* counted in users */
	struct stoup_snapshot *newest, *snapshots;
	struct stoup_cell *cells;
	uint32_t free_first, free_last;
	uint32_t buckets[STOUP_BUCKET_CNT];
	uint64_t reserved_bytes; /* by the hands of all cursors */
	uint64_t shared_bytes;   /* by shared cells */
	uint64_t slot_busy;      /* bit s: in use by a waiter, or not yet acknowledged */
	uint64_t slot_left;      /* of those: nobody waits any more; free once DONE */
	uint64_t slot_seq[STOUP_SLOT_CNT];
};

/* A series that was given out: its id is its index + 1. */
struct stoup_entry {
	char *name;
	const struct stoup_schema *schema;
	uint32_t next; /* of its bucket */
};

/* 36 years: sums with the clock stay in 64 bits */
#define STOUP_TIMEOUT_MAX_NS (UINT64_C(1) << 60)

struct stoup {
	struct stoup_options opt; /* `daemon` is our own copy */
	int timeout_open;         /* the caller gave none: waits take the daemon's */
	char *target;             /* name of the pool, or real path of the store */
	int automatic;            /* it is a path */
	_Atomic uint32_t *own;    /* one page that a fork wipes: 0 in the child */
	pid_t pid;

	pthread_mutex_t question;
	pthread_mutex_t mutex;
	struct stoup_session *current, *sessions;
	uint32_t session_seq;
	uint32_t cursor_cnt;
	int leaving;   /* stoup_leave: who is the last to go destroys the handle */
	int fork_auto; /* in the list of fork_auto.c, whose mutex guards these */
	struct stoup *fork_next;
	struct stoup_fork fork_state;
	struct stoup_hold *holds;
	uint32_t hold_cap, hold_free, hold_cnt;
	uint64_t hold_seq;
	struct stoup_direct
		*directs; /* volumes' files (direct.c); taken away with the handle alone */
	_Atomic uint64_t direct_cnt, direct_alone_cnt, direct_record_cnt;
	struct stoup_stats past;       /* of sessions whose page is gone; reconnect_cnt of all */
	struct stoup_schema **schemas; /* written under `question` */
	uint32_t schema_cnt;
	struct stoup_entry *entries;
	uint32_t entry_cnt, entry_cap;
	uint32_t *entry_buckets; /* entry_cap of them, a power of two */
};

/* How long a wait for a block may take. */
static inline uint64_t stoup_session_timeout(const struct stoup_session *ses)
{
	return ses->timeout_ns ? ses->timeout_ns : ses->client->opt.timeout_ns;
}

/* Is this the process that attached? No system call. NULL is nobody's. */
static inline int stoup_client_own(const struct stoup *st)
{
	uint32_t v = st ? atomic_load_explicit(st->own, memory_order_relaxed) : 0;

	/* 2: the kernel could not mark the page, so the pid decides. */
	return v == 1 || (v == 2 && getpid() == st->pid);
}

/* Under the mutex: is no cursor open and nothing held? */
static inline int stoup_client_idle(const struct stoup *st)
{
	return st->cursor_cnt == 0 && st->hold_cnt == 0;
}

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t stoup_client_now(void);

/* ---- client.c -------------------------------------------------------------------------------- */

/* Copy what the caller's structure has, defaults for the rest. -EINVAL with text. */
int stoup_options_read(
	const struct stoup_options *opt, struct stoup_options *ret, struct stoup_error *err);

/* A handle without a session. `target` is a pool's name or a store's path. */
int stoup_client_make(const char *target, const struct stoup_options *opt, struct stoup **ret,
	struct stoup_error *err);

/* Free a client in any state of construction; tells the daemon nothing. NULL is allowed. */
void stoup_client_destroy(struct stoup *st);

/* Say again that this is the process that attached: after a fork. */
void stoup_client_mark(struct stoup *st);

/* Of a handle that is not this process's own: -ECHILD, it is a parent's; -EINVAL, it is NULL. With text. */
int stoup_client_refused(const struct stoup *st, struct stoup_error *err);

/* -errno with text about `what`; that of EMFILE names the limit. */
int stoup_client_errno(struct stoup_error *err, const char *what);

/* ---- session.c ------------------------------------------------------------------------------- */

/* A session without memory. */
int stoup_session_make(struct stoup *st, const char *pool, uint32_t dir_idx,
	struct stoup_session **ret, struct stoup_error *err);

/* Free a session that was never installed. NULL is allowed. */
void stoup_session_destroy(struct stoup_session *ses);

/* It is the current one from now on; what was current before loses that reference. */
void stoup_session_install(struct stoup *st, struct stoup_session *ses);

/* The current session with a reference; its newest snapshot with one of each. */
struct stoup_session *stoup_session_current(struct stoup *st);
struct stoup_snapshot *stoup_snapshot_current(struct stoup *st);

/* Give a reference back; what nobody has any more goes. NULL is allowed. */
void stoup_session_release(struct stoup_session *ses);
void stoup_snapshot_release(struct stoup_snapshot *snap);

/* Begin to use the memory of a session: 0, or -EPIPE when its daemon has ended. */
int stoup_session_enter(struct stoup_session *ses);

/* The use is over, or (`running`) the session is no longer one that serves. */
void stoup_session_leave(struct stoup_session *ses);
void stoup_session_retire(struct stoup_session *ses);

/* How closely to look whether the daemon is there. */
enum stoup_look {
	STOUP_LOOK_STATE, /* at the words of the instance: stopped, or marked dead by the kernel */
	STOUP_LOOK_PULSE, /* at our entry and the heartbeat as well; no system call while all is well */
	STOUP_LOOK_ASK /* at the socket, whatever the daemon's memory says */
};

/* 0, or -EPIPE. */
int stoup_session_check(struct stoup_session *ses, enum stoup_look look);

/* -EPIPE with text: how the session ended, then `more`, or what to do when that is NULL. May wait
 * some 50 ms for /proc to show whether the daemon died. */
int stoup_session_explain(struct stoup_session *ses, const char *more, struct stoup_error *err);

/* Is it certain that the daemon's process is gone? */
int stoup_session_daemon_gone(const struct stoup_session *ses);

/* 0 while heartbeats come; -ETIME, the text ending in `more`; -EPIPE when the daemon is gone. */
int stoup_session_silent(struct stoup_session *ses, const char *more, struct stoup_error *err);

/* ---- renew.c --------------------------------------------------------------------------------- */

/* `old` has ended: attach to the daemon that comes after it, or wait for the thread that does. 0:
 * another session is current. -EPIPE with text: none came in time, or STOUP_NO_RECONNECT; a text
 * that `err` has with that code stays in the latter case. */
int stoup_renew(
	struct stoup *st, struct stoup_session *old, uint64_t deadline_ns, struct stoup_error *err);

/* The same with `question` held. */
int stoup_renew_locked(
	struct stoup *st, struct stoup_session *old, uint64_t deadline_ns, struct stoup_error *err);

/* A question over the socket failed: the code for the user, -EPIPE when the session has ended. */
int stoup_question_failed(struct stoup_session *ses, int rc, struct stoup_error *err);

/* ---- attach.c -------------------------------------------------------------------------------- */

/* Connect to the socket of `pool` in runtime directory `dir_idx` and say hello. -ENOENT: no such
 * socket, or another pool's than the handle's; -ECONNREFUSED: left behind by a dead daemon;
 * -ECONNRESET: the daemon hung up, it is ending; others as stoup_attach. */
int stoup_session_connect(struct stoup *st, const char *pool, uint32_t dir_idx,
	uint64_t deadline_ns, struct stoup_session **ret, struct stoup_error *err);

/* The same for what the handle is attached to: by name, or the automatic daemon, which is started
 * when there is none. */
int stoup_session_attach(struct stoup *st, uint64_t deadline_ns, struct stoup_session **ret,
	struct stoup_error *err);

/* ---- hello.c --------------------------------------------------------------------------------- */

/* Say hello over ses->sock_fd, map what comes, and pull the snapshot. */
int stoup_hello(struct stoup_session *ses, uint64_t deadline_ns, struct stoup_error *err);

/* Say hello over ses->sock_fd as the child of a fork: control, data and catalogs are inherited, page
 * and doorbell are new. */
int stoup_hello_child(
	struct stoup_session *ses, uint64_t ticket, uint64_t deadline_ns, struct stoup_error *err);

/* Ask for the newest snapshot. 0 with *ret; errors of the connection, -ESTALE, -ENOMEM with text. */
int stoup_hello_newest(struct stoup_session *ses, uint64_t deadline_ns, struct stoup_snapshot **ret,
	struct stoup_error *err);

/* Ask for a copy of the leases (ticket 0), or give one up. */
int stoup_hello_fork(struct stoup_session *ses, uint64_t ticket, uint64_t deadline_ns,
	uint64_t *ret_ticket, struct stoup_error *err);

/* Ask for a copy of the leases of `former`, an ended session with the same daemon. */
int stoup_hello_former(struct stoup_session *ses, const struct stoup_session *former,
	uint64_t deadline_ns, uint64_t *ret_ticket, struct stoup_error *err);

/* Ask for the file of a volume: 0 with a read-only descriptor, the caller's. */
int stoup_hello_file(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint64_t deadline_ns, int *ret_fd, struct stoup_error *err);

/* Ask about pins: *msg is the question, and then the answer. -ENOTSUP: the daemon is older; what it refused, with its
 * text; errors of the connection. */
struct stoup_wire_pin;
int stoup_hello_pin(struct stoup_session *ses, struct stoup_wire_pin *msg, uint64_t deadline_ns,
	struct stoup_error *err);

/* A connected socket whose other end is trusted. */
int stoup_sock_open(const char *pool, uint32_t dir_idx, uint64_t deadline_ns, int *ret_fd,
	struct stoup_error *err);

/* ---- snapshot.c ------------------------------------------------------------------------------ */

int stoup_snapshot_make(struct stoup_session *ses, uint64_t seq, struct stoup_snapshot **ret,
	struct stoup_error *err);

/* Map one received catalog descriptor (closes it) and add it to the volumes. */
int stoup_snapshot_add(struct stoup_snapshot *snap, int fd, struct stoup_error *err);

/* All volumes are there: order them, and find the schema object of each layout. */
int stoup_snapshot_finish(struct stoup_snapshot *snap, struct stoup_error *err);

void stoup_snapshot_destroy(struct stoup_snapshot *snap);

/* It is the session's newest from now on; the one before loses that reference. */
void stoup_snapshot_install(struct stoup_session *ses, struct stoup_snapshot *snap);

/* Write into the page which snapshot is the oldest in use. The mutex is held. */
void stoup_snapshot_publish(struct stoup_session *ses);

/* ---- auto.c ---------------------------------------------------------------------------------- */

/* Pool name of the automatic daemon of the store at `path`, and its real path (PATH_MAX bytes). */
int stoup_auto_name(
	const char *path, char *pool, size_t pool_cap, char *real, struct stoup_error *err);

/* Join the automatic daemon of the handle's store, starting it when there is none. */
int stoup_auto_attach(struct stoup *st, uint64_t deadline_ns, struct stoup_session **ret,
	struct stoup_error *err);

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

/* ---- fork_auto.c ----------------------------------------------------------------------------- */

/* The handle goes: no fork shall look at it. */
void stoup_fork_auto_fini(struct stoup *st);

/* ---- hold.c ---------------------------------------------------------------------------------- */

/* As stoup_hold, for a cursor that gives the span's block back next: what its hand (NULL: none) has reserved
 * becomes the lease's, so that the block's bytes count once. For a merge that holds its own run, `own` is its promise
 * (else NULL): the block stays drawn from it, and the share pays when the merge takes another block meanwhile. */
int stoup_hold_from(const struct stoup_span *span, struct stoup_hand *hand,
	const struct stoup_promise *own, struct stoup_lease *ret);

/* ---- cells.c --------------------------------------------------------------------------------- */

int stoup_cells_init(struct stoup_session *ses, struct stoup_error *err);
void stoup_cells_fini(struct stoup_session *ses);

/* Lease a block that is in the pool: 1 with *grip; 0 it is not; -EDQUOT, -EMFILE, -EPROTO with
 * text. */
int stoup_grip_hit(struct stoup_session *ses, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx, struct stoup_grip *grip,
	struct stoup_error *err);

/* Lease a block by request and wait for it; `ahead` may be NULL. 0, or a negative errno with text. */
struct stoup_ahead;
int stoup_grip_wait(struct stoup_session *ses, struct stoup_hand *hand,
	const struct stoup_snapshot_volume *vol, uint32_t block_idx,
	const struct stoup_ahead *ahead, struct stoup_grip *grip, struct stoup_error *err);

/* For monitors: this block was leased for that series of its volume. */
static inline void stoup_grip_tell(
	struct stoup_session *ses, const struct stoup_grip *grip, uint32_t series_idx)
{
	_Atomic uint32_t *told = stoup_page_series(ses->page, ses->page_region.len, ses->cell_cap);

	if (told)
		atomic_store_explicit(&told[grip->cell_idx], series_idx + 1, memory_order_relaxed);
}

/* Give back what `grip` holds; nothing when it holds nothing. */
void stoup_grip_release(
	struct stoup_session *ses, struct stoup_hand *hand, struct stoup_grip *grip);

/* Give back the cells and the reservation of a hand. The grip must be released. */
void stoup_hand_fini(struct stoup_session *ses, struct stoup_hand *hand);

/* A child of a fork has a page that is a copy, made some moments before the fork: make it and our
 * records of cells [0, cell_high) agree. The mutex is held. */
void stoup_cells_settle(struct stoup_session *ses, uint32_t cell_high);

/* One reference more on the bytes that cell `cell_idx` leases, under the mutex: 0 with the cell that
 * counts; -EDQUOT. A cell that was drawn from `own` (NULL: none) stays so. */
int stoup_cell_share(struct stoup_session *ses, uint32_t cell_idx, const struct stoup_promise *own,
	uint32_t *ret);

/* One reference less, under the mutex. 1: the doorbell must ring. */
int stoup_cell_drop(struct stoup_session *ses, uint32_t cell_idx);

/* Keep promise->bytes and promise->cell_cnt cells for a merge in this session: 0; -EDQUOT, -EMFILE with text, and
 * nothing is kept. Where its cursors go over to another session, the first one's next lease does it there. */
int stoup_promise_make(
	struct stoup_session *ses, struct stoup_promise *promise, struct stoup_error *err);

/* The merge goes, its cursors have gone: what was kept is free. */
void stoup_promise_end(struct stoup *st, struct stoup_promise *promise);

/* ---- wait.c ---------------------------------------------------------------------------------- */

/* Consecutive blocks of one volume to read ahead, from block_idx on up (step 1) or down (-1). With cnt 0 it
 * tells the direction of the scan alone. */
struct stoup_ahead {
	uint32_t volume_idx, block_idx, cnt;
	int32_t step;
};

/* Ask for a block through the free cell `cell_idx` and wait. 0: the cell holds *ret_word. A
 * negative errno with text: the cell is 0. */
int stoup_wait_grant(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, uint32_t cell_idx, const struct stoup_ahead *ahead, uint64_t *ret_word,
	struct stoup_error *err);

/* Post a read-ahead. 1 = posted, 0 = too many requests are under way. */
int stoup_wait_ahead(struct stoup_session *ses, const struct stoup_ahead *ahead);

/* Ring the doorbell: one system call. */
void stoup_wait_ring(struct stoup_session *ses);

/* ---- explain.c ------------------------------------------------------------------------------- */

/* Text of the error that ended a request. Returns the code for the user. */
int stoup_explain_request(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, int32_t error, uint64_t detail, struct stoup_error *err);

/* The row of this consumer's quota; NULL where it has none, or an older daemon's object has no such table. */
const struct stoup_control_quota *stoup_explain_quota(const struct stoup_session *ses);

/* A wait reached its deadline: -EPIPE, -ETIME, -ENOBUFS or -ETIMEDOUT. */
int stoup_explain_timeout(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, struct stoup_error *err);

/* ---- registry.c ------------------------------------------------------------------------------ */

/* The handle's object for a layout of a catalog; made at its first sight. Under `question`. */
int stoup_registry_schema(struct stoup *st, const struct stoup_catalog *catalog, uint32_t idx,
	const struct stoup_schema **ret, struct stoup_error *err);

/* The id of a series, made at its first sight. -ENOMEM. */
int stoup_registry_id(struct stoup *st, const char *name, const struct stoup_schema *schema,
	uint64_t *ret_id, const char **ret_name);

/* What an id names. -ENOENT. */
int stoup_registry_entry(struct stoup *st, uint64_t id, const char **ret_name,
	const struct stoup_schema **ret_schema);

void stoup_registry_fini(struct stoup *st);

/* ---- series.c -------------------------------------------------------------------------------- */

/* The parts of a series, one per volume that holds some of it, in key order. */
struct stoup_part {
	const struct stoup_snapshot_volume *vol;
	const struct stoup_catalog_series *series;
	uint64_t ordinal;     /* of its first record in the whole series */
	const uint8_t *bytes; /* the volume's file, of a cursor in direct mode */
};

/* Parts of a series in a snapshot; the caller frees *ret. -ENOENT: no volume has it; -ENOTUNIQ: one
 * has the name, in other layouts only; -ENOMEM. */
int stoup_series_parts(const struct stoup_snapshot *snap, const char *name,
	const struct stoup_schema *schema, struct stoup_part **ret, uint32_t *ret_cnt);

#endif
