/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - the inside of stoupd: its state, and what the parts of the conductor call of each other.
 *
 *      attach.c   the socket, hellos, questions               request.c  requests, waiters, grants
 *      load.c     queue -> room -> read -> decode -> publish  evict.c    clear, fence, scan, claims
 *      volume.c   catalogs and residency of each volume       publish.c  what monitors see
 *      conductor.c the loop: take, pump, last look, sleep     daemon.c   start, objects, stop
 *      rescan.c   the stores are read again                   fork.c     leases copied for a child
 *      snapshot.c which volumes a snapshot has, until when    watch.c    when to read them again
 *      access.c   who may attach, who may look        holders.c  who holds which series
 *      takeover.c memory that is not free yet                 life.c     places of consumers, death, limits
 *      chores.c   what could make the loop wait         give.c     volumes' files for consumers
 *      log.c      lines on standard error               service.c  what a service manager is told
 *      pins.c     blocks that are kept                   quota.c    what groups may lease together
 *
 *      a request's way:
 *      slot (consumer) --take--> waiter --+--> resident: grant
 *                                         +--> joins a load, or queues a new one
 *      load: QUEUED --room, slot--> READING --> DECODING --> publish, grant all its waiters
 *                ^--- nothing evictable: starving, claim ---'
 *
 * Invariant: one thread, the conductor, owns everything here and alone writes residency words, buffer
 * table and ring. Decode workers and readers only fill bytes and report.
 *
 * Everything is allocated at start; waiters and loads are bounded by consumers x slots.
 */
#ifndef STOUP_PRODUCER_DAEMON_H
#define STOUP_PRODUCER_DAEMON_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>
#include "producer/decode.h"
#include "producer/log.h"
#include "producer/reader.h"
#include "producer/ring.h"
#include "producer/service.h"
#include "producer/staging.h"
#include "producer/store.h"
#include "producer/stream.h"
#include "shm/abi.h"
#include "shm/catalog.h"
#include "shm/control.h"
#include "shm/hook.h"
#include "shm/page.h"
#include "shm/region.h"
#include "shm/wire.h"

#define STOUP_STORE_CAP   16u /* --store options */
#define STOUP_PENDING_CAP 64u /* connections that have not said hello yet */
#define STOUP_AHEAD_QUEUE_CAP                                                                      \
	512u /* loads that wait without a waiter: bounds what cursors may pile up */
#define STOUP_IDX_NONE UINT32_MAX
#define STOUP_ACCESS_CAP                                                                           \
	16u /* --allow-user, --allow-group, --monitor-user, --monitor-group: each */
#define STOUP_SNAPSHOT_CAP    8u /* snapshots that are served; consumers of older ones get ESTALE */
#define STOUP_PLACE_SPARE     1024u /* places for volumes that come while the daemon runs */
#define STOUP_FORK_NS         UINT64_C(10000000000) /* a child must come for its leases by then */
#define STOUP_POOL_PART       4u /* a block may fill at most 1/4 of the pool: three others stay usable */
#define STOUP_PIN_PERCENT     50u /* of the pool: what pins may keep, unless --pin-max says another */
#define STOUP_PIN_PERCENT_MAX 75u /* the rest is one longest block, whatever is pinned */
#define STOUP_STOP_NS         INT64_C(1500000000) /* SIGTERM to exit: within 2 s with what comes after */

/* Who, besides root and the daemon's own user. Ids, not names: resolved once, at the command line. */
struct stoup_access_list {
	uint32_t uids[STOUP_ACCESS_CAP], gids[STOUP_ACCESS_CAP];
	uint32_t uid_cnt, gid_cnt;
};

struct stoup_access {
	struct stoup_access_list attach;  /* may lease, and look */
	struct stoup_access_list monitor; /* may look: the control object alone */
	uint32_t socket_mode;             /* 0 = the narrowest that lets all of the above connect */
};

/* GROUP=SIZE: what was given, resolved once. */
struct stoup_quota_option {
	char name[64];
	const char *value; /* behind the '=' */
	uint32_t kind, id; /* STOUP_QUOTA_*; gid or uid */
	uint64_t bytes;    /* 0 = `percent` of the pool */
	uint32_t percent;
};

struct stoup_daemon_options {
	const char *store_path[STOUP_STORE_CAP];
	uint32_t store_cnt;
	const char *pool;
	uint64_t pool_len; /* bytes; 0 = the smaller of the decoded stores and the default */
	uint32_t backing;  /* STOUP_BACKING_* */
	uint32_t consumer_cap, cell_cap;
	uint32_t decode_threads;                /* 0 = as many as cpus, else as cores */
	uint32_t cpus[STOUP_DECODE_THREAD_CAP]; /* decode workers are pinned to them in turn */
	uint32_t cpu_cnt;                       /* 0 = not pinned */
	uint64_t spin_ns;                       /* the conductor polls that long before it sleeps */
	uint64_t lease_bytes_cap;               /* 0 = a quarter of the pool */
	uint64_t pin_bytes_cap;                 /* 0 = pin_percent of the pool */
	uint32_t pin_percent;
	struct stoup_quota_option quotas[STOUP_QUOTA_CAP]; /* the first that fits counts */
	uint32_t quota_cnt;
	uint64_t request_timeout_ns;
	uint32_t request_cap; /* requests that one consumer may have in flight */
	uint64_t takeover_ns; /* wait so long for memory that a killed daemon's pool still has */
	int mlock;            /* lock the data region in memory */
	int watch;            /* rescan the stores when inotify tells of a change */
	const char *group;    /* name of the group that may attach, or NULL */
	struct stoup_access access;
	struct stoup_reader_options reader;
	int automatic; /* end `linger_ns` after the last consumer */
	uint64_t linger_ns;
	int ready_fd;                   /* -1, or where "ready\n" or an error text goes */
	uint64_t gen_first;             /* tests: generation that all buffers begin with; 0 = 1 */
	int quiet;                      /* errors and warnings only */
	enum stoup_log_level log_level; /* DEFAULT: info, with `quiet` warning */
};

/* One volume: of the newest snapshot, or retired and used by an older one, or an empty place.
 *
 *      (empty) --rescan finds it: born_seq--> served --rescan misses it: retired_seq--> retired
 *         ^                                                                                |
 *         +-- nothing of it is resident, loading or leased <-- closed: no snapshot in use has it
 *
 * Snapshot S is the volumes with born_seq <= S, and retired_seq 0 or above S. A place keeps its index
 * as long as anybody may name it. */
struct stoup_volume {
	struct stoup_store_volume *file; /* acquired; NULL: an empty place */
	uint64_t born_seq, retired_seq;  /* retired_seq 0: in the newest snapshot */
	int closed; /* takes no requests any more; its buffers are on their way out */
	struct stoup_region catalog; /* read-write here, ro_fd for consumers */
	_Atomic uint64_t *residency;
	uint32_t *load_idx;      /* per block: its load under way, or STOUP_IDX_NONE */
	uint16_t *load_cnt;      /* per block: times loaded, stops at UINT16_MAX */
	uint32_t *block_series;  /* per block: the first series that it holds, by index */
	uint32_t *block_shared;  /* per block: how many series it holds */
	uint32_t *block_last;    /* per block: the last series that it was found to hold */
	struct stoup_runs *runs; /* its messages by block; NULL where it holds none */
	int give_fd;    /* its file, for consumers in direct mode; negative: why there is none */
	int reader_idx; /* of the reader's file table; < 0: could not be added */
	uint32_t store_idx;     /* of the --store it lies in */
	uint32_t buffer_cnt;    /* buffers that load, hold or drain a block of it */
	uint32_t block_len_max; /* its longest decoded block */
	uint32_t leased_cnt;    /* of its buffers, at the last look for room */
	uint32_t *pin_cnt;      /* per block: segments that pins count; above 0: it is kept */
	uint8_t *pin_seen;      /* a bit per block: scratch of pins.c, all 0 between */
};

/* What the path of a store led to when it was read. */
struct stoup_store_mark {
	uint64_t dev, ino;
	struct timespec ctime; /* 0: too young to tell a later change by */
};

/* What the conductor knows of one buffer besides the control object's entry. */
struct stoup_buffer {
	uint64_t gen;
	uint32_t volume_idx, block_idx;
	uint32_t state;  /* STOUP_BUFFER_* */
	uint32_t ahead;  /* loaded without a waiter and not used yet */
	uint32_t pinned; /* in the ring, and shown so */
};

enum stoup_load_state {
	STOUP_LOAD_FREE,
	STOUP_LOAD_QUEUED,
	STOUP_LOAD_READING,
	STOUP_LOAD_DECODING,
};

struct stoup_load {
	enum stoup_load_state state;
	uint32_t volume_idx, block_idx;
	uint32_t buffer_idx;                /* READING and on */
	uint32_t waiter_first, waiter_last; /* in order of arrival */
	uint32_t prev, next;                /* in its queue, or in the free list */
	int32_t staging_slot;               /* or -1: straight into the pool */
	uint32_t ahead;                     /* nobody waited when it was queued */
	int32_t step;                       /* -1: whoever asked first goes backward */
	uint64_t off;                       /* of the extent */
	uint64_t queued_ns, read_ns;        /* begin of the wait, of the read */
};

struct stoup_waiter {
	uint32_t consumer_idx;
	uint32_t slot_idx, cell_idx;
	uint32_t next;      /* of the same load, or in the free list */
	uint64_t attach_no; /* a page is never reused, but its consumer index is */
	uint64_t ticket;
	uint64_t arrived_ns, deadline_ns;
	uint64_t loading_bytes; /* counted in its consumer's */
	/* In the queue of the quotas: what it will ask for then. */
	uint32_t volume_idx, block_idx, quota;
	int32_t step;
};

struct stoup_list { /* of loads, by index */
	uint32_t first, last, cnt;
};

struct stoup_consumer {
	uint32_t state; /* STOUP_CONSUMER_* */
	uint32_t pid, uid;
	int sock_fd, pid_fd, bell_fd;
	uint64_t attach_no, attach_ns;
	uint64_t snapshot_seq; /* the newest that it was given; the oldest in use is in its page */
	int cut; /* its snapshots are let go: it asks no more, what it has leased stays */
	uint64_t fork_ticket; /* STOUP_CONSUMER_TICKET: what the child must show */
	uint64_t fork_until_ns;
	uint64_t fork_parent_no; /* attach_no of the consumer whose leases these are */
	uint64_t refused_seen;   /* its page's requests_refused_cnt at the last look */
	struct stoup_region page;
	uint64_t *seen; /* last value of each cell, to feed changes to the ring */
	uint64_t *
		since_ns; /* per cell: the first look at which it held what it holds; 0 = nothing */
	uint32_t waiting_cnt;
	uint32_t lease_cnt;
	uint64_t leased_bytes;
	uint64_t oldest_ns;     /* of since_ns the earliest; 0 = holds nothing */
	uint64_t over_since_ns; /* first look at which it held more than its share, or 0 */
	uint32_t quota;         /* which one counts it, or STOUP_IDX_NONE */
	uint64_t
		loading_bytes; /* of blocks that are loaded for its requests, where it has a quota */
	uint64_t asked_bytes;  /* at least what it leases by grants */
	uint64_t quota_since_ns; /* first look at which it leased more, its quota used up; or 0 */
	uint64_t deaf_look_ns, deaf_wait_ns;
	int deaf_asked; /* a chore reads its memory map */
	struct stoup_stream streams[STOUP_STREAM_CNT];
};

struct stoup_pending { /* accepted, no hello yet */
	int fd;
	uint64_t since_ns;
};

#define STOUP_PAST_CNT 5u /* hits, misses, time-outs, records, time waited */

struct stoup_daemon {
	struct stoup_daemon_options opt;
	int lock_fd, listen_fd, epoll_fd, signal_fd;
	int home_fd; /* automatic: the directory that the pool's name stands for, for life; else -1 */
	int spare_fd; /* given up to accept, and to refuse, who comes when there is no other */
	char sock_path[128], lock_path[128], control_name[96];
	uint64_t sock_dev, sock_ino; /* the socket's name as we made it */
	uint64_t sock_look_ns;       /* when to look at it again */
	int sock_lost;               /* it is gone and can not be made again: said once */
	uid_t uid;
	gid_t group_gid; /* (gid_t)-1: none */
	char group_name[64];
	char admits[112], looks[112]; /* who may attach, who may look besides: in words */
	int name_lost;                /* the control object's name is gone: said once */
	uint64_t name_look_ns;        /* when to look at it again */

	struct stoup_store *stores[STOUP_STORE_CAP];
	struct stoup_store_mark store_marks[STOUP_STORE_CAP]; /* from before they were read */
	struct stoup_region control_region, data_region;
	struct stoup_control *control;
	struct stoup_control_counter *counters;
	struct stoup_control_histogram *histograms;
	uint32_t holders_used;         /* rows that the last publish wrote */
	uint64_t past[STOUP_PAST_CNT]; /* what consumers that ended had counted: see publish.c */
	struct stoup_control_buffer *table;

	struct stoup_volume *volumes;
	uint32_t volume_cnt; /* places that were ever used: indexes are below it */
	uint32_t volume_cap;
	uint64_t snapshot_seq;    /* the newest snapshot; begins with 1 */
	uint64_t rescan_due_ns;   /* 0 = none is wanted */
	uint64_t rescan_asked_ns; /* the first event that the due one is for */
	uint64_t rescan_quiet_ns; /* the last one failed: no hello tries the same again before */
	uint32_t
		places_wanted; /* the last one found no room for so many: another follows when there is */
	int places_coming; /* ... and needs nobody to be cut off any more */
	struct stoup_store_mark failed_marks[STOUP_STORE_CAP]; /* what it saw */
	int watch_fd;                                          /* inotify; -1: not watched */
	int watches[STOUP_STORE_CAP]; /* its watch of each store's directory; -1: none */
	int watch_told;               /* that it is refused was logged */
	uint64_t watch_look_ns,
		watch_wait_ns;  /* next look at the paths, and how long from look to look */
	uint32_t block_len_min; /* shortest decoded block of the stores; 0: there is none */
	uint32_t block_len_max; /* longest decoded block of the stores */

	struct stoup_ring *ring;
	struct stoup_buffer *buffers;
	uint32_t buffer_cap;
	uint32_t *refs;   /* per buffer: cells that named it at the last look */
	uint32_t *leased; /* the buffers of which that is more than 0 */
	uint32_t leased_cnt;
	uint32_t *draining; /* the buffers in state DRAINING */
	uint32_t draining_cnt;

	struct stoup_reader *reader;
	struct stoup_staging *staging;
	struct stoup_decode *decode;

	struct stoup_consumer *consumers;
	struct stoup_pending pending[STOUP_PENDING_CAP];
	struct stoup_chores *closer,
		*looker; /* apart: one that is stuck must not hold up the other */
	uint64_t attach_seq;
	int listen_off;

	struct stoup_load *loads;
	uint32_t load_cap, load_free;
	struct stoup_waiter *waiters;
	uint32_t waiter_free, waiter_cnt; /* waiter_cnt: requests that wait for a load */
	struct stoup_list demand, ahead;  /* QUEUED */
	uint32_t in_flight;               /* READING or DECODING */
	uint32_t claim_load;              /* the load that the ring's claim is for, or NONE */
	int claim_any;                    /* that claim is for what is pinned, too */

	struct stoup_control_quota *quotas;
	uint32_t quota_first, quota_last; /* waiters that their quotas keep, in order of arrival */

	struct stoup_pin *pins; /* STOUP_PIN_CAP; the oldest first */
	uint32_t pin_cnt, pins_lost;
	uint64_t pin_bytes;                   /* of blocks that pins count, loaded or not */
	uint64_t pinned_blocks, pinned_bytes; /* of those, what is in the pool and kept */
	struct {
		uint64_t block_cnt, bytes;
	} pin_sum; /* scratch of pins.c */

	struct stoup_log *log; /* log_own: also for those to whom the daemon is const */
	struct stoup_log log_own;
	struct stoup_service service; /* manager of this process, where there is one */
	uint64_t now_ns;              /* CLOCK_MONOTONIC, once per turn of the loop */
	uint64_t moved_ns;            /* the last turn that moved something */
	uint64_t tick_ns;             /* next publish */
	uint64_t idle_since_ns;       /* no consumer since, or 0 */
	int held;                     /* the name is another daemon's */
	int starving;                 /* the oldest demand found nothing evictable */
	int stopping;
	uint64_t stop_by_ns;
	uint64_t decode_ns; /* of inline decodes */
	uint64_t distinct_loads, loads_max;
};

/* ---- small things ----------------------------------------------------------------------------- */

static inline void stoup_counter_add(struct stoup_daemon *d, enum stoup_counter id, uint64_t n)
{
	atomic_fetch_add_explicit(&d->counters[id].value, n, memory_order_relaxed);
}

static inline void stoup_gauge(struct stoup_daemon *d, enum stoup_counter id, uint64_t value)
{
	atomic_store_explicit(&d->counters[id].value, value, memory_order_relaxed);
}

static inline void stoup_time(struct stoup_daemon *d, enum stoup_histogram id, uint64_t ns)
{
	stoup_histogram_add(&d->histograms[id], ns);
}

/* `percent` of a length; does not overflow. */
static inline uint64_t stoup_part_of(uint64_t len, uint32_t percent)
{
	return len / 100 * percent + len % 100 * percent / 100;
}

uint64_t stoup_now_ns(void); /* CLOCK_MONOTONIC */

/* Note an error in the control object's log (repetitions are counted) and on stderr (once a second for
 * the same text). Returns the log index + 1, for a slot's `detail`. */
uint64_t stoup_log_error(struct stoup_daemon *d, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for what a peer brought about. Peers have a part of the log and a rate on stderr of their own: what
 * they do, however varied, hides no error of the daemon's. */
uint64_t stoup_log_peer(struct stoup_daemon *d, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The end of a path that is long, so that the reason behind it fits an error text. */
const char *stoup_path_tail(const char *path);
void stoup_log_info(const struct stoup_daemon *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void stoup_log_debug(const struct stoup_daemon *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- daemon.c --------------------------------------------------------------------------------- */

/* Run until told to stop. 0, or a negative errno with a text when the pool could not be made. */
int stoup_daemon_run(const struct stoup_daemon_options *opt, struct stoup_error *err);

/* ---- daemon_name.c ---------------------------------------------------------------------------- */

int stoup_name_paths(struct stoup_daemon *d, struct stoup_error *err); /* socket and lock file */
int stoup_name_group(struct stoup_daemon *d, struct stoup_error *err); /* who may attach */
int stoup_name_lock(struct stoup_daemon *d, struct stoup_error *err);  /* one daemon per name */
/* The error text of a name that another daemon has (owner 0: not known which). Returns -EEXIST. */
int stoup_name_held(struct stoup_daemon *d, uint32_t owner, struct stoup_error *err);
void stoup_name_unlink(
	const struct stoup_daemon *d); /* the control object's, if it still is ours */
/* Say once when the control object's name was removed by somebody else. */
void stoup_name_tick(struct stoup_daemon *d);

/* ---- volume.c --------------------------------------------------------------------------------- */

int stoup_volumes_open(struct stoup_daemon *d, struct stoup_error *err); /* stores and sizes */
int stoup_has_home(
	const struct stoup_daemon *d); /* is the pool's name the number of its store's directory? */
int stoup_home_is(
	const struct stoup_daemon *d, uint64_t dev, uint64_t ino); /* of this directory? */
int stoup_volumes_make(
	struct stoup_daemon *d, struct stoup_error *err); /* catalogs, reader files */
void stoup_volumes_fini(struct stoup_daemon *d);
uint64_t stoup_volumes_raw_len(const struct stoup_daemon *d);
/* Fill an empty place: catalog, tables, reader file; it is of no snapshot before `born_seq`. 0, or the
 * place is empty again. */
int stoup_volume_make(struct stoup_daemon *d, uint32_t idx, struct stoup_store_volume *file,
	uint32_t store_idx, uint64_t born_seq, struct stoup_error *err);
/* Empty a place of which nothing is in the pool. 0, or -EBUSY while a read of it is under way. */
int stoup_volume_unmake(struct stoup_daemon *d, uint32_t idx);
void stoup_volume_show(struct stoup_daemon *d, uint32_t idx); /* to monitors: SERVED */
/* Blocks of the volumes born with snapshot `seq` that this pool can not serve: log them. */
void stoup_volumes_say_large(struct stoup_daemon *d, uint64_t seq);
/* Where a store's path leads now. 0 or negative errno. */
int stoup_store_mark(const struct stoup_daemon *d, uint32_t idx, struct stoup_store_mark *ret);

/* ---- rescan.c --------------------------------------------------------------------------------- */

/* Read the stores again at once: whoever attaches after an ingest must see it. Cheap where nothing has
 * changed since. Waits for the disk where a volume is new. */
void stoup_rescan_fresh(struct stoup_daemon *d);
/* Rescan when it is due; then close, empty and give free what nobody uses any more. */
void stoup_rescan_tick(struct stoup_daemon *d);

/* ---- watch.c ---------------------------------------------------------------------------------- */

/* Watch the stores' directories; a machine that can not is served by SIGHUP alone, and the log says so. */
void stoup_rescan_watch(struct stoup_daemon *d);
void stoup_rescan_ask(struct stoup_daemon *d);   /* SIGHUP: at the next turn */
void stoup_rescan_event(struct stoup_daemon *d); /* the inotify descriptor is readable */
void stoup_rescan_fini(struct stoup_daemon *d);
void stoup_watch_follow(struct stoup_daemon *d); /* the stores were opened anew */
void stoup_watch_look(struct stoup_daemon *d);   /* now and then: what no event told */
/* Do the stores' paths lead to something else than these marks tell? One stat each. */
int stoup_stores_changed(const struct stoup_daemon *d, const struct stoup_store_mark *marks);

/* ---- snapshot.c ------------------------------------------------------------------------------- */

/* Volumes of snapshot `seq`, in the order of their places: how many, and the first one at or behind
 * place `from` (STOUP_IDX_NONE: no more). */
uint32_t stoup_snapshot_cnt(const struct stoup_daemon *d, uint64_t seq);
uint32_t stoup_snapshot_next(const struct stoup_daemon *d, uint64_t seq, uint32_t from);
/* Read-only descriptors of at most `cap` catalogs of snapshot `seq`, from its `first` one on. Returns how
 * many. */
uint32_t stoup_snapshot_fds(
	const struct stoup_daemon *d, uint64_t seq, uint32_t first, uint32_t cap, int *fds);
/* Is it so old that some of its volumes may be closed? */
int stoup_snapshot_stale(const struct stoup_daemon *d, uint64_t seq);
/* A new consumer gets the newest. */
void stoup_snapshot_give(struct stoup_daemon *d, struct stoup_consumer *c);
/* The oldest snapshot that anybody uses; the newest where nobody is attached. */
uint64_t stoup_snapshot_oldest(const struct stoup_daemon *d);

/* What is to be done with a volume, when the newest snapshot and the oldest in use are these. Pure. */
enum stoup_volume_step {
	STOUP_VOLUME_STAY,
	STOUP_VOLUME_CLOSE, /* take no requests any more, evict what is in the pool */
	STOUP_VOLUME_EMPTY, /* nothing of it is in the pool: let go of file and catalog */
	STOUP_VOLUME_FREE,  /* nobody can name the place any more: the next volume may have it */
};
enum stoup_volume_step stoup_volume_step(
	const struct stoup_volume *v, uint64_t newest, uint64_t oldest);
/* An empty place at or behind `from`; STOUP_IDX_NONE: all volume_cap are taken. */
uint32_t stoup_place_find(const struct stoup_daemon *d, uint32_t from);
void stoup_snapshot_tick(struct stoup_daemon *d); /* take those steps */
/* Have `cnt` places free, if need be by cutting off who uses older snapshots, the oldest first; nobody where
 * leases keep too many all the same. 0; -EAGAIN: there will be as soon as reads under way have come; -E2BIG. */
int stoup_snapshot_make_room(struct stoup_daemon *d, uint32_t cnt);
void stoup_snapshot_gauges(struct stoup_daemon *d);

/* ---- access.c --------------------------------------------------------------------------------- */

/* May the peer of a socket attach (or, as a monitor, look)? 0, or -EACCES with a text that says who may. */
struct ucred;
int stoup_access_check(const struct stoup_daemon *d, int sock_fd, const struct ucred *cred,
	int monitor, struct stoup_error *err);
/* Add a user or (group 1) a group, a name or a number, to a list. 0 or -EINVAL, -ENOENT, -ENOSPC with text. */
int stoup_access_add(
	struct stoup_access_list *list, const char *name, int group, struct stoup_error *err);
/* At start: put into words who is admitted, so that a refusal asks no user database. */
void stoup_access_describe(struct stoup_daemon *d);
/* Mode of the socket: the narrowest that lets everybody connect whom the credentials admit. */
uint32_t stoup_access_socket_mode(const struct stoup_daemon *d);
/* May others than the owner reach the socket's directory, where somebody else is admitted at all? */
int stoup_access_reach(const struct stoup_daemon *d, struct stoup_error *err);

/* ---- fork.c ----------------------------------------------------------------------------------- */

/* Copy the leases of consumer idx to a page of their own, for a child that consumer `asker` (idx itself, or a
 * later attachment of its process) is about to have. 0 with *ret_ticket (never 0). */
int stoup_fork_copy(struct stoup_daemon *d, uint32_t idx, uint32_t asker, uint64_t *ret_ticket);
/* The copy that waits under a ticket, for the child that shows it or for giving it up; STOUP_IDX_NONE. */
uint32_t stoup_fork_find(const struct stoup_daemon *d, uint64_t ticket);
/* A message of consumer idx: copy, or give a copy up; answers it. Negative: the peer is to be hung up on. */
int stoup_fork_message(struct stoup_daemon *d, uint32_t idx, const struct stoup_wire_fork *msg);
/* A child shows its ticket: the copy becomes its own. Takes over sock_fd when it returns 0. */
int stoup_fork_redeem(struct stoup_daemon *d, uint64_t ticket, int sock_fd,
	const struct ucred *cred, struct stoup_error *err);
void stoup_fork_tick(struct stoup_daemon *d); /* copies that nobody came for */

/* ---- give.c --------------------------------------------------------------------------------- */

/* Open the file of a volume for consumers, if some of it can be mapped; a failure is logged. */
void stoup_give_open(struct stoup_daemon *d, uint32_t volume_idx);
void stoup_give_close(struct stoup_volume *v);
/* A message of consumer idx: answers it. Negative: the peer is to be hung up on. */
int stoup_give_message(struct stoup_daemon *d, uint32_t idx, const struct stoup_wire_file *asked);

/* ---- life.c ----------------------------------------------------------------------------------- */

/*      NONE --place--> (page) --join, answer, enter--> ATTACHED --hang-up, process lives--> DEAF
 *        ^                \--fork--> TICKET --join, answer, enter--^                            |
 *        +-------------------------------- drop <--------------------------------------------+   */
/* A free place for a consumer of that user: 0 with *ret; -EUSERS with text, counted. */
int stoup_consumer_find_place(
	struct stoup_daemon *d, uint32_t uid, uint32_t *ret, struct stoup_error *err);
/* Give place idx a page of its own. It stays NONE. */
int stoup_consumer_place(struct stoup_daemon *d, uint32_t idx, struct stoup_error *err);
/* Tie it to the process behind a socket, which stays the caller's until `enter`. */
int stoup_consumer_join(struct stoup_daemon *d, uint32_t idx, int sock_fd, const struct ucred *cred,
	struct stoup_error *err);
void stoup_consumer_part(struct stoup_daemon *d, uint32_t idx);  /* undo join */
void stoup_consumer_enter(struct stoup_daemon *d, uint32_t idx); /* it was answered: ATTACHED */
void stoup_consumer_show(struct stoup_daemon *d, uint32_t idx);
void stoup_consumer_drop(struct stoup_daemon *d, uint32_t idx, enum stoup_counter why);
void stoup_consumer_hang_up(struct stoup_daemon *d, uint32_t idx); /* it did */
/* End the talk with it: what it has leased stays until it is gone. */
void stoup_consumer_dismiss(struct stoup_daemon *d, uint32_t idx);
/* The socket of one that is DEAF, which is open yet where nothing else tells of its end, has an event. */
void stoup_consumer_deaf_event(struct stoup_daemon *d, uint32_t idx);
/* Cut one off that keeps an old snapshot: it may attach again, and gives its leases back when it likes. */
void stoup_consumer_cut(struct stoup_daemon *d, uint32_t idx);
void stoup_consumer_pid_event(struct stoup_daemon *d, uint32_t idx);
void stoup_consumer_tick(struct stoup_daemon *d); /* deaf consumers, goodbyes, shares */

/* ---- listen.c --------------------------------------------------------------------------------- */

/* Make the attach socket and its name. On an error what was made is the caller's to undo. */
int stoup_listen(struct stoup_daemon *d, struct stoup_error *err);
/* Watch it or, while nothing can be accepted, do not: it would wake the loop for ever. */
void stoup_listen_watch(struct stoup_daemon *d, int on);
void stoup_listen_tick(struct stoup_daemon *d); /* is the name still there? */
void stoup_listen_fini(struct stoup_daemon *d);

/* ---- attach.c --------------------------------------------------------------------------------- */

int stoup_attach_listen(struct stoup_daemon *d, struct stoup_error *err);
void stoup_attach_event(struct stoup_daemon *d, uint64_t tag, uint32_t events);
void stoup_attach_tick(struct stoup_daemon *d); /* hello time-outs, and all consumers' */
void stoup_attach_fini(struct stoup_daemon *d);
uint32_t stoup_attach_cnt(const struct stoup_daemon *d);
int stoup_epoll_add(const struct stoup_daemon *d, int fd, uint32_t events, uint64_t tag);

/* ---- request.c -------------------------------------------------------------------------------- */

/* Take all new requests. Returns how many. */
uint32_t stoup_requests_take(struct stoup_daemon *d);
/* 1 when a bitmap shows a request: the last look before sleep. */
int stoup_requests_pending(const struct stoup_daemon *d);
/* Grant a resident buffer to all waiters of a load, or tell them an error. */
void stoup_waiters_grant(struct stoup_daemon *d, struct stoup_load *load);
/* The load begins: so long have they waited for that. */
void stoup_waiters_time(struct stoup_daemon *d, const struct stoup_load *load);
/* Take the times that a consumer left in its slots (shm/sample.h). */
void stoup_requests_samples(struct stoup_daemon *d, uint32_t consumer_idx);
void stoup_waiters_fail(
	struct stoup_daemon *d, struct stoup_load *load, int error, uint64_t detail);
/* Fail demands whose deadline is near while the pool starves; forget those of dead consumers. */
void stoup_requests_expire(struct stoup_daemon *d);
/* A consumer is gone: its waiters with it. */
void stoup_requests_forget(struct stoup_daemon *d, uint32_t consumer_idx);
void stoup_requests_fail_all(struct stoup_daemon *d, int error);
void stoup_requests_init(struct stoup_daemon *d);

/* ---- load.c ----------------------------------------------------------------------------------- */

uint32_t stoup_load_queue(
	struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx, int32_t step, int ahead);
void stoup_load_promote(struct stoup_daemon *d, uint32_t load_idx); /* somebody waits now */
void stoup_load_drop(struct stoup_daemon *d, uint32_t load_idx); /* QUEUED, nobody waits any more */
/* Start what can be started. Returns 1 when something moved. */
int stoup_loads_pump(struct stoup_daemon *d);
/* A volume is closed: its queued loads end with -ESTALE; those under way will when they come. */
void stoup_loads_close(struct stoup_daemon *d, uint32_t volume_idx);
/* Take what readers and workers finished. Returns how many. */
uint32_t stoup_loads_reap(struct stoup_daemon *d);
void stoup_list_init(struct stoup_list *list);
void stoup_list_push(struct stoup_daemon *d, struct stoup_list *list, uint32_t load_idx);
void stoup_list_remove(struct stoup_daemon *d, struct stoup_list *list, uint32_t load_idx);

/* ---- evict.c ---------------------------------------------------------------------------------- */

/* Room for len bytes: 1 with *plan (FIT), 0 when nothing can be evicted now. */
int stoup_evict_room(struct stoup_daemon *d, uint64_t len, enum stoup_ring_class class,
	struct stoup_ring_plan *plan);
/* Look at all cells: leases of each buffer and consumer, recency, draining buffers that became free. */
void stoup_evict_scan(struct stoup_daemon *d);
/* What the cells of one consumer say about use: when it asks, and when its page is about to go. A cursor asks
 * every few blocks and its cells keep its last uses, so that what was read ahead is known as read. */
void stoup_evict_look(struct stoup_daemon *d, uint32_t consumer_idx);
/* Begin, go on with, or end the claim of a load. */
int stoup_claim_room(
	struct stoup_daemon *d, uint32_t load_idx, uint64_t len, struct stoup_ring_plan *plan);
void stoup_claim_cancel(struct stoup_daemon *d);
/* A volume is closed: its blocks go now, or with their last lease. */
void stoup_evict_volume(struct stoup_daemon *d, uint32_t volume_idx);
/* What the ring asks: bytes until the nearest scan reaches the block in a buffer. */
uint64_t stoup_evict_next_use(void *arg, uint32_t idx);
/* Is a cell's value a lease on a block that is in the pool? */
int stoup_evict_leased(const struct stoup_daemon *d, uint64_t value);
/* Put a buffer into use and out of use. */
void stoup_buffer_fill(struct stoup_daemon *d, uint32_t idx, uint64_t off, uint32_t len,
	uint32_t volume_idx, uint32_t block_idx);
void stoup_buffer_publish(struct stoup_daemon *d, uint32_t idx, int ahead);
void stoup_buffer_abandon(struct stoup_daemon *d, uint32_t idx);

/* ---- pins.c ----------------------------------------------------------------------------------- */

int stoup_pins_init(
	struct stoup_daemon *d, struct stoup_error *err); /* when the pool has its size */
void stoup_pins_fini(struct stoup_daemon *d);
/* Before the control object of a daemon that was killed goes: had it pins? */
void stoup_pins_look_back(struct stoup_daemon *d);
/* A volume left the newest snapshot, or came into it. */
void stoup_pins_retired(struct stoup_daemon *d, uint32_t volume_idx);
void stoup_pins_born(struct stoup_daemon *d, uint32_t volume_idx);
void stoup_pin_buffer_loaded(
	struct stoup_daemon *d, uint32_t idx); /* RESIDENT: kept, if a pin counts it */
void stoup_pin_buffer_end(struct stoup_daemon *d, uint32_t idx); /* kept no more */
/* A message of consumer idx: answers it. Negative: the peer is to be hung up on. */
int stoup_pin_message(struct stoup_daemon *d, uint32_t idx, const struct stoup_wire_pin *asked);

/* ---- quota.c ---------------------------------------------------------------------------------- */

/* GROUP=SIZE, group:GROUP=, user:USER=; the value is the caller's to read. 0 or -EINVAL, -ENOENT with text. */
int stoup_quota_parse(const char *text, struct stoup_quota_option *ret, struct stoup_error *err);
void stoup_quotas_init(struct stoup_daemon *d); /* when the pool has its size */
/* Which quota counts the peer of a socket: the first that names its user or one of its groups; STOUP_IDX_NONE. */
uint32_t stoup_quota_of(const struct stoup_daemon *d, int sock_fd, const struct ucred *cred);

/* What the reply to this consumer says of its quota: flags of STOUP_REPLY_*. */
uint32_t stoup_quota_reply(const struct stoup_consumer *c);
/* Let go on who waits and has room now, and fail whose deadline is near. Returns 1 when something moved. */
int stoup_quota_pump(struct stoup_daemon *d);
void stoup_quota_forget(struct stoup_daemon *d, uint32_t consumer_idx); /* it is gone */
void stoup_quota_fail_all(struct stoup_daemon *d, int error);
void stoup_quotas_publish(struct stoup_daemon *d);
/* At the tick: does it lease what it did not ask for? */
void stoup_quota_look(struct stoup_daemon *d, uint32_t consumer_idx);

/* ---- publish.c -------------------------------------------------------------------------------- */

void stoup_publish(struct stoup_daemon *d); /* gauges, consumers, heartbeat */
/* Count what consumer idx met of its limit of requests since the last look. */
void stoup_publish_refused(struct stoup_daemon *d, uint32_t idx);
/* A consumer's page is about to go: keep what it counted, note what it waited and held. */
void stoup_publish_past(struct stoup_daemon *d, uint32_t idx);

/* ---- holders.c -------------------------------------------------------------------------------- */

/* Fill a volume's block_series and block_shared. */
void stoup_holders_index(struct stoup_volume *v);
void stoup_holders_publish(struct stoup_daemon *d);

/* ---- conductor.c ------------------------------------------------------------------------------ */

/* Tags of epoll events: what in the upper, which in the lower half. */
#define STOUP_TAG(kind, idx) ((uint64_t)(kind) << 32 | (uint32_t)(idx))
enum {
	STOUP_TAG_SIGNAL = 1,
	STOUP_TAG_LISTEN,
	STOUP_TAG_HELLO,
	STOUP_TAG_SOCKET,
	STOUP_TAG_PID,
	STOUP_TAG_BELL,
	STOUP_TAG_READER,
	STOUP_TAG_DECODE,
	STOUP_TAG_WATCH
};

/* Begin the orderly stop. */
void stoup_daemon_end(struct stoup_daemon *d, const char *why);
void stoup_conductor_run(struct stoup_daemon *d);

#endif
