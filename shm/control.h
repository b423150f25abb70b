/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the control object of a pool: what it is, what it holds, who uses it, how it fares.
 *
 *      +------------+-----------+---------+---------+----------+--------+------------+---------+--------+
 *      | superblock | consumers | buffers | volumes | counters | errors | histograms | holders | quotas |
 *      | one page   |           |         |         |          |        |            |         |        |
 *      +------------+-----------+---------+---------+----------+--------+------------+---------+--------+
 *                                                              total_len ^ (minor 2)             (minor 3)
 *
 * Named `/stoup.UID.NAME.ctl` in POSIX shared memory, so that a monitor can read it while the daemon
 * hangs or is dead: mode 0640 with the monitors' or the pool's group, else 0600. The daemon's conductor alone writes it; everybody else maps it read-only.
 *
 *      state:  (magic 0) --format--> STARTING --announce--> RUNNING --SIGTERM--> STOPPED
 *                                                              \--killed--> RUNNING with a dead pid
 *
 * Invariant: `magic` is stored last (release), so who sees it sees the whole superblock; everything up
 * to the live words never changes afterwards. A buffer's `off` and `len` do not change while a lease
 * on its word is held.
 *
 * If the daemon dies: the object stays, RUNNING, with a heartbeat that no longer moves and a pid that
 * is gone; the next daemon of the name unlinks it under the lock. Nothing is repaired in place.
 */
#ifndef STOUP_SHM_CONTROL_H
#define STOUP_SHM_CONTROL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "shm/abi.h"
#include "shm/counters.h"
#include "shm/histogram.h"
#include "shm/stoup_types.h"

#define STOUP_STATE_STARTING 1u
#define STOUP_STATE_RUNNING  2u
#define STOUP_STATE_STOPPED  3u

#define STOUP_POOL_NAME_CAP 64u /* bytes with the NUL; names are at most 48 */

/* States of a buffer. */
#define STOUP_BUFFER_FREE     0u
#define STOUP_BUFFER_LOADING  1u
#define STOUP_BUFFER_RESIDENT 2u
#define STOUP_BUFFER_DRAINING 3u /* takes no new leases; goes when its last lease goes */

#define STOUP_BUFFER_PINNED 0x1u /* flag: kept without leases (`stoup pin`); minor 3 */

struct stoup_control_buffer {   /* conductor writes; a lease holder may rely on off and len */
	_Atomic uint64_t off;   /* bytes from the start of the data region */
	_Atomic uint32_t len;   /* decoded bytes */
	_Atomic uint32_t state; /* STOUP_BUFFER_* */
	_Atomic uint64_t gen;
	_Atomic uint32_t volume_idx, block_idx;
	_Atomic uint32_t refs;      /* cells that name it, at the last look */
	_Atomic uint32_t used_cnt;  /* consumers that used it */
	_Atomic uint64_t loaded_ns; /* CLOCK_MONOTONIC */
	_Atomic uint32_t flags;     /* STOUP_BUFFER_PINNED */
	uint8_t pad[64 - 52];
};

#define STOUP_CONSUMER_NONE     0u
#define STOUP_CONSUMER_ATTACHED 1u
#define STOUP_CONSUMER_DEAF     2u /* hung up, but its process lives and may hold the page */
#define STOUP_CONSUMER_TICKET   3u /* leases copied for a child that has not come for them yet */

struct stoup_control_consumer { /* conductor writes, from its looks at the page */
	_Atomic uint32_t state; /* STOUP_CONSUMER_* */
	_Atomic uint32_t pid, uid;
	_Atomic uint32_t lease_cnt;
	_Atomic uint64_t attach_no, attach_ns; /* CLOCK_MONOTONIC */
	_Atomic uint64_t leased_bytes;
	_Atomic uint64_t
		oldest_lease_ns; /* CLOCK_MONOTONIC of the look that first saw it; 0 = none */
	_Atomic uint64_t hit_cnt, miss_cnt, timeout_cnt, wait_ns, record_cnt;
	_Atomic uint32_t waiting_cnt, zero; /* requests in flight */
	_Atomic uint64_t comm[2];           /* command name, 16 bytes */
	/* times that it met a limit, as its page says; they stop at their highest value */
	_Atomic uint32_t cells_refused_cnt, bytes_refused_cnt, requests_refused_cnt;
	uint8_t pad[128 - 124];
};

#define STOUP_VOLUME_ABSENT  0u
#define STOUP_VOLUME_SERVED  1u
#define STOUP_VOLUME_RETIRED 2u

struct stoup_control_volume {
	_Atomic uint32_t state; /* STOUP_VOLUME_* */
	uint32_t block_cnt, series_cnt, segment_cnt;
	uint64_t record_cnt, raw_len, stored_len;
	uint64_t catalog_len; /* bytes of its catalog object */
	uint8_t id[16];
	_Atomic uint64_t born_seq;    /* the first snapshot that has it */
	_Atomic uint64_t retired_seq; /* the first one that no longer has it; 0 = none yet */
	uint8_t zero[128 - 80];
	char path[128]; /* the end of it when it is longer */
};

struct stoup_control_counter {
	char name[32];
	char unit[16];
	uint32_t kind; /* 'C' counts up, 'G' gauge */
	uint32_t zero;
	char text[128];
	_Atomic uint64_t value;
};

struct stoup_control_error { /* distinct errors with counts; conductor writes under `seq` (odd: in work) */
	_Atomic uint32_t seq;
	int32_t code;
	uint64_t count;
	int64_t first_ns, last_ns; /* CLOCK_REALTIME */
	char text[STOUP_ERROR_TEXT_CAP];
};

#define STOUP_HOLDER_CAP 512u /* rows of (consumer, series) */

/* What one consumer holds of one series; conductor writes under `seq` (odd: in work). lease_cnt 0: an empty row. */
struct stoup_control_holder {
	_Atomic uint32_t seq;
	uint32_t consumer_idx, pid, lease_cnt;
	uint64_t attach_no, bytes; /* of whole blocks */
	uint64_t oldest_ns;        /* CLOCK_MONOTONIC of the look that first saw the oldest */
	/* 1; above: most series that a block holds of which its consumer did not tell */
	uint32_t shared_cnt;
	uint32_t zero;
	char series
		[144]; /* the end of its name when it is longer; empty: rows ran out, these are others */
};

#define STOUP_QUOTA_GROUP 0u
#define STOUP_QUOTA_USER  1u

/* What the consumers of one group or user may lease together; conductor writes. */
struct stoup_control_quota {
	char name[64];     /* as it was given: "research", "user:alice" */
	uint32_t kind, id; /* STOUP_QUOTA_*; gid or uid */
	uint64_t bytes_cap;
	_Atomic uint64_t leased_bytes; /* a block that two of them lease counts twice */
	_Atomic uint64_t limit_cnt;    /* times that a request found it used up */
	_Atomic uint32_t consumer_cnt, waiting_cnt; /* requests that wait for it */
	uint8_t zero[128 - 104];
};

struct stoup_control {
	_Atomic uint64_t magic; /* STOUP_CONTROL_MAGIC, stored last */
	uint32_t abi_major, abi_minor;
	uint64_t fingerprint;
	uint8_t instance[16]; /* random, of this start of the daemon */
	uint64_t total_len;   /* bytes of the object up to the histograms */
	int64_t created_ns;   /* CLOCK_REALTIME */
	uint64_t
		daemon_start; /* start time of the process, clock ticks after boot (/proc/PID/stat) */
	uint32_t daemon_pid, uid;
	uint64_t data_len;        /* bytes of the data region */
	uint64_t lease_bytes_cap; /* that one consumer may hold */
	uint64_t ahead_bytes_cap; /* of unread read-ahead, all consumers together; 0 = none */
	uint32_t block_len_max;   /* longest decoded block that the pool serves */
	uint32_t consumer_cap, cell_cap, slot_cnt;
	uint32_t buffer_cap, volume_cap, counter_cnt, error_cap;
	uint64_t consumer_off, buffer_off, volume_off, counter_off, error_off;
	uint64_t request_timeout_ns; /* default deadline of a request */
	uint32_t decode_threads, reader_depth;
	char pool_name[STOUP_POOL_NAME_CAP];
	char store_path[256];    /* the end of it when it is longer */
	char backing[16];        /* "posix", "memfd", "hugetlb" */
	char reader_kind[16];    /* "io_uring", "pread" */
	char reader_reason[160]; /* why not io_uring, or why not O_DIRECT; else empty */
	uint64_t huge_len;       /* bytes of the data region in 2 MiB pages after the collapse */
	char huge_reason[96];    /* why not all */
	char version[32];        /* of the daemon */
	uint64_t page_len;       /* bytes of the pages of the data region that were asked for */
	uint64_t locked_len;     /* bytes that are locked in memory; 0 = none */
	char lock_reason[64];    /* why not all, where --mlock was given; else empty */
	uint32_t request_cap;    /* requests that one consumer may have in flight */
	uint32_t pid_ns;         /* inode of the daemon's PID namespace; 0 = not known */
	uint64_t spin_ns;        /* the conductor polls that long before it sleeps; 0 = not */
	char decode_cpus[64];    /* that decode workers are pinned to: "2,5-7"; empty: not pinned */
	/* Minor 2: tables behind total_len, which readers of minor 1 compare. All 0 from older daemons; rows may grow. */
	uint64_t histogram_off, holder_off;
	uint32_t histogram_cnt, histogram_len, holder_cap, holder_len;
	/* live words, each on its own pair of lines: consumers load `asleep` and `starving` */
	_Atomic uint32_t state;        /* STOUP_STATE_* */
	_Atomic uint32_t volume_cnt;   /* entries [0, volume_cnt) have been used */
	_Atomic uint64_t heartbeat_ns; /* CLOCK_MONOTONIC, at least once a second while RUNNING */
	_Atomic uint64_t snapshot_seq; /* grows with each rescan that changed something */
	_Atomic uint32_t alive;        /* of the conductor's thread: see alive.h */
	uint8_t pad1[STOUP_APART_LEN - 28];
	_Atomic uint32_t asleep; /* [S1] the conductor is about to sleep: a request must ring */
	uint8_t pad2[STOUP_APART_LEN - 4];
	_Atomic uint32_t starving; /* [R1] somebody waits for a release: a release must ring */
	uint8_t pad3[STOUP_APART_LEN - 4];
	/* Minor 3. Written once, before the announcement; all 0 from older daemons. */
	uint64_t pin_bytes_cap; /* that pins may keep */
	uint64_t quota_off;     /* behind the holders */
	uint32_t quota_cap, quota_len;
	/* The oldest demand finds nothing to evict. Unlike `starving` it is neither raised for other waits, nor down while
	 * the conductor works: who gives up learns from it why nothing came. */
	_Atomic uint32_t starved;
	uint32_t zero;
	uint8_t pad4[STOUP_OS_PAGE_LEN - 1024 - 3 * STOUP_APART_LEN - 32];
};

/* What a control object is made for. */
struct stoup_control_config {
	uint32_t consumer_cap, cell_cap, buffer_cap, volume_cap;
};

/* Bytes of the object, whole OS pages. */
size_t stoup_control_footprint(const struct stoup_control_config *config);

/* Write versions, offsets and counter descriptions into a zeroed mapping; state STARTING, magic still 0.
 * The daemon fills the rest and calls stoup_control_announce. */
void stoup_control_format(struct stoup_control *control, const struct stoup_control_config *config);

/* Why a request for `len` bytes found a quota used up, of which `used` are leased or being loaded: -EDQUOT with a text. The
 * daemon says it a little before the deadline; a consumer itself, where the daemon had no processor then. */
int stoup_control_quota_explain(const struct stoup_control_quota *quota, const char *pool,
	uint64_t used, uint32_t pid, uint64_t len, struct stoup_error *err);

/* Publish: state RUNNING, then the magic (release). */
void stoup_control_announce(struct stoup_control *control);

/* Check a read-only mapping of map_len bytes: magic, versions, fingerprint, every offset. 0; -EAGAIN:
 * not announced yet; -EPROTO with a text that names both versions. */
int stoup_control_verify(
	const struct stoup_control *control, size_t map_len, struct stoup_error *err);

/* Name of the control object: "/stoup.UID.NAME.ctl". */
int stoup_control_name(uint32_t uid, const char *pool, char *dst, size_t cap);

/* The same backwards, of a name in /dev/shm: 1 and *ret_pool, *ret_len (a part of `file`, which need be no valid name of a
 * pool); 0: it is not one. */
int stoup_control_name_parse(
	const char *file, uint32_t *ret_uid, const char **ret_pool, size_t *ret_len);

#define STOUP_OWNER_UNSEEN UINT32_MAX /* there is one, in another PID namespace */

/* Lock the control object for the life of this daemon: `fd` is open for writing and stays open. The lock
 * tells other daemons of the user that this one lives, in whatever PID namespace. 0 or negative errno. */
int stoup_control_lock(int fd);

/* The living daemon of a control object of that name, announced or not: its pid, STOUP_OWNER_UNSEEN,
 * or 0. Tells two daemons of one name apart from each other even where they do not share a directory for
 * their locks. An object that another user made counts for nothing. */
uint32_t stoup_control_owner(const char *name);

/* Map the control object of a running or dead pool read-only, by name, for monitors. Tries the
 * caller's own uid, then root's, then that of the owner of /run/stoup, and believes only what they, or the
 * owner of /dev/shm, made. 0; -ENOENT (no such pool), -EACCES (names the group, or whose it is instead),
 * -EPROTO. */
int stoup_control_open(const char *pool, const struct stoup_control **ret, size_t *ret_len,
	struct stoup_error *err);
void stoup_control_close(const struct stoup_control *control, size_t len);

/* Does /proc show the processes that pids mean here? 0 in a PID namespace that kept its parent's /proc:
 * there, /proc/PID is somebody else. */
int stoup_proc_ours(void);

/* Inode of this process's PID namespace, or 0. */
uint32_t stoup_pid_ns(void);

/* Start time of a process in clock ticks after boot (/proc/PID/stat, field 22): tells whether a pid still
 * means the same process. 0 when it is gone or a zombie, or where /proc is not ours. */
uint64_t stoup_process_start(uint32_t pid);

/* The letter of a process's state (/proc/PID/stat, field 3: R, S, T, Z, ...), or 0 when it is gone or /proc is not ours. */
char stoup_process_letter(uint32_t pid);

/* Is the daemon of this control object alive? 0: the kernel marked its end, or its process is gone, by pid and
 * start time through /proc; 1; -1: /proc does not show it here, since it is in another PID namespace or hidden (hidepid),
 * or no descriptor is left to look, so that only its heartbeat can tell. */
int stoup_control_life(const struct stoup_control *control);

/* Is it seen to be alive? 1 or 0. */
static inline int stoup_control_alive(const struct stoup_control *control)
{
	return stoup_control_life(control) == 1;
}

static inline struct stoup_control_consumer *stoup_control_consumers(const struct stoup_control *c)
{
	return (void *)((uintptr_t)c + c->consumer_off);
}
static inline struct stoup_control_buffer *stoup_control_buffers(const struct stoup_control *c)
{
	return (void *)((uintptr_t)c + c->buffer_off);
}
static inline struct stoup_control_volume *stoup_control_volumes(const struct stoup_control *c)
{
	return (void *)((uintptr_t)c + c->volume_off);
}
static inline struct stoup_control_counter *stoup_control_counters(const struct stoup_control *c)
{
	return (void *)((uintptr_t)c + c->counter_off);
}
static inline struct stoup_control_error *stoup_control_errors(const struct stoup_control *c)
{
	return (void *)((uintptr_t)c + c->error_off);
}

static inline struct stoup_control_histogram *stoup_control_histograms(
	const struct stoup_control *c)
{
	return (void *)((uintptr_t)c + c->histogram_off);
}
static inline struct stoup_control_holder *stoup_control_holders(const struct stoup_control *c)
{
	return (void *)((uintptr_t)c + c->holder_off);
}

static inline struct stoup_control_quota *stoup_control_quotas(const struct stoup_control *c)
{
	return (void *)((uintptr_t)c + c->quota_off);
}

/* Read one slot of the error log consistently; 1 = filled `ret`, 0 = empty or just being written. */
int stoup_control_error_read(
	const struct stoup_control *control, uint32_t idx, struct stoup_control_error *ret);

/* The same of a row that the caller found and bounded himself. */
int stoup_control_error_copy(
	const struct stoup_control_error *error, struct stoup_control_error *ret);

/* Likewise a row of the holders: 1 = filled `ret`, 0 = empty or just being written. */
int stoup_control_holder_copy(
	const struct stoup_control_holder *row, struct stoup_control_holder *ret);

_Static_assert(sizeof(struct stoup_control_buffer) == 64, "buffer");
_Static_assert(sizeof(struct stoup_control_consumer) == 128, "consumer");
_Static_assert(sizeof(struct stoup_control_volume) == 256, "volume");
_Static_assert(sizeof(struct stoup_control_counter) == 192, "counter");
_Static_assert(sizeof(struct stoup_control_holder) == 192, "holder");
_Static_assert(sizeof(struct stoup_control_quota) == 128, "quota");
_Static_assert(offsetof(struct stoup_control, pin_bytes_cap) == 1408, "where zeros were");
_Static_assert(offsetof(struct stoup_control, histogram_off) == 992, "where zeros were");
_Static_assert(offsetof(struct stoup_control, state) == 1024, "live words");
_Static_assert(offsetof(struct stoup_control, asleep) == 1152, "asleep");
_Static_assert(offsetof(struct stoup_control, starving) == 1280, "starving");
_Static_assert(offsetof(struct stoup_control, starved) == 1432, "starved");
_Static_assert(sizeof(struct stoup_control) == STOUP_OS_PAGE_LEN, "superblock");

#endif
