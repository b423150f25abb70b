/* SPDX-License-Identifier: Apache-2.0 */
/* tool_watch.h - a control object read into a plain struct: what `stat`, `top` and the exporter show.
 *
 *      control object (shared, changes, not to be trusted) --look--> struct stoup_watch (private, whole)
 *                                                                       |
 *      an earlier one of the same daemon ------------------------------+--> rates
 *
 * Promise: a look makes no system call that can wait, asks no daemon, and fails on nothing that the object may hold:
 * every offset, count, state and text is bounded by what is mapped and by the limits of abi.h. Texts end in
 * a NUL, are UTF-8 and hold no control characters ('?' in the place of what is not). An object that is cut short while
 * it is mapped makes the look fail, not the process.
 *
 * The parts of one look are of slightly different moments; the daemon counts with relaxed stores. Sums over consumers
 * and over extents are made here, from the very rows that are shown, so that they agree with these.
 *
 * If the daemon dies: the last that it wrote stays readable, and `state` says DEAD. A successor of the same name has
 * another object, which the next look takes up.
 *
 * Concurrency: one thread per struct.
 */
#ifndef STOUP_CONSUMER_TOOL_WATCH_H
#define STOUP_CONSUMER_TOOL_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include "shm/control.h"
#include "shm/stoup_types.h"

#define STOUP_WATCH_SILENT_NS UINT64_C(3000000000) /* the heartbeat comes at least once a second */

enum stoup_watch_state {
	STOUP_WATCH_RUNNING,
	STOUP_WATCH_STARTING,
	STOUP_WATCH_SILENT,    /* lives, or is not seen, and its heartbeat stands still */
	STOUP_WATCH_SUSPENDED, /* stopped by a signal (SIGSTOP, a debugger) */
	STOUP_WATCH_STOPPED,   /* ended in order */
	STOUP_WATCH_DEAD,      /* ended without a word */
	STOUP_WATCH_STATE_CNT
};

struct stoup_watch_counter {
	char name[32], unit[16], text[128];
	char kind; /* 'C' counts up, 'G' gauge */
	uint64_t value;
};

struct stoup_watch_consumer {
	uint32_t idx;   /* its place in the pool: with attach_no it is this attachment alone */
	uint32_t state; /* STOUP_CONSUMER_* but NONE */
	uint32_t pid, uid;
	uint64_t attach_no, attached_ns; /* age of the attachment */
	char command[17];
	uint32_t lease_cnt, waiting_cnt;
	uint64_t leased_bytes, oldest_ns; /* age of what it holds longest; 0 = holds nothing */
	uint64_t hit_cnt, miss_cnt, timeout_cnt, wait_ns, record_cnt;
	uint32_t cells_refused_cnt, bytes_refused_cnt, requests_refused_cnt;
	int suspended; /* its process is stopped by a signal */
	int gone; /* its process has ended, and the daemon has not noticed: it is dead or hangs */
	uint64_t page_table_bytes; /* of its process, all of its maps; 0 = not known */
};

/* A buffer in use: bytes [off, off + len) of the pool, within its size. */
struct stoup_watch_extent {
	uint64_t off;
	uint32_t len;
	uint32_t state;    /* STOUP_BUFFER_* but FREE */
	uint32_t refs;     /* leases on it */
	uint32_t used_cnt; /* consumers that used it */
	uint32_t buffer_idx, volume_idx, block_idx;
	int pinned;         /* kept without leases */
	uint64_t loaded_ns; /* age */
};

struct stoup_watch_volume {
	uint32_t idx, state; /* STOUP_VOLUME_* but ABSENT */
	uint32_t block_cnt, series_cnt;
	uint64_t record_cnt, raw_len, stored_len, born_seq, retired_seq;
	char path[128];
};

struct stoup_watch_error {
	int32_t code;
	uint64_t count;
	int64_t first_ns, last_ns; /* CLOCK_REALTIME */
	char text[STOUP_ERROR_TEXT_CAP];
};

/* The values of one kind, since the daemon's start. */
struct stoup_watch_histogram {
	char name[32], unit[16], text[128];
	uint64_t count, sum, max;
	uint64_t buckets[STOUP_HISTOGRAM_BUCKETS]; /* see shm/histogram.h */
};

/* What one consumer holds of one series. */
struct stoup_watch_holder {
	uint32_t consumer_idx, pid, lease_cnt;
	uint32_t state; /* of the consumer, STOUP_CONSUMER_*; NONE: it ended since */
	int suspended;  /* as of the consumer */
	uint32_t
		shared_cnt; /* series that lie in its blocks: above 1, `series` is but the first of them */
	uint64_t bytes, oldest_ns; /* age of the oldest lease */
	char command[17];
	char series[144]; /* empty: of several, there was no room to tell them apart */
};

/* What the consumers of a group or user lease together. */
struct stoup_watch_quota {
	char name[64];     /* as stoupd was given it: "research", "user:alice" */
	uint32_t kind, id; /* STOUP_QUOTA_*; gid or uid */
	uint32_t consumer_cnt, waiting_cnt;
	uint64_t bytes_cap, leased_bytes, limit_cnt;
};

/* What the extents and consumers of this look add up to. */
struct stoup_watch_sums {
	uint64_t leases, leased_bytes; /* of extents: a block that two hold counts once in bytes */
	uint64_t resident_blocks, resident_bytes;
	uint64_t hits, misses, records, waiting; /* of the consumers attached now */
	uint64_t oldest_ns;                      /* of all consumers */
	uint32_t oldest_pid;
};

struct stoup_watch {
	uint64_t taken_ns; /* CLOCK_MONOTONIC */
	enum stoup_watch_state state;
	uint64_t heartbeat_ns; /* age of the last heartbeat */
	uint64_t uptime_ns;    /* since the object was made */
	int life;              /* as stoup_control_life */
	uint64_t snapshot_seq;
	uint8_t instance[16]; /* of this start of the daemon */
	uint32_t daemon_pid, uid;
	char pool_name[STOUP_POOL_NAME_CAP], store_path[256], version[32];
	char backing[16], reader_kind[16], reader_reason[160], huge_reason[96], lock_reason[64];
	char decode_cpus[64];
	uint64_t data_len, page_len, huge_len, locked_len;
	uint64_t pin_bytes_cap; /* that pins may keep; 0 also from an older daemon */
	uint64_t lease_bytes_cap, ahead_bytes_cap, request_timeout_ns, spin_ns;
	uint32_t block_len_max, consumer_cap, cell_cap, request_cap, buffer_cap, volume_cap;
	uint32_t decode_threads, reader_depth;

	struct stoup_watch_counter *counters;
	struct stoup_watch_consumer *consumers;
	struct stoup_watch_extent *extents; /* by offset */
	struct stoup_watch_volume *volumes;
	struct stoup_watch_error *errors; /* the latest first */
	struct stoup_watch_histogram *histograms;
	struct stoup_watch_holder *holders; /* the oldest lease first */
	struct stoup_watch_quota *quotas;   /* in the order of stoupd's command line */
	uint32_t counter_cnt, consumer_cnt, extent_cnt, volume_cnt, error_cnt;
	uint32_t histogram_cnt, holder_cnt, quota_cnt; /* 0 from an older daemon */
	size_t mapped_len;
	struct stoup_watch_sums sums;
};

/* Read a mapped control object of `len` bytes into *ret, which is empty (all 0) or of an earlier look, whose memory is
 * freed. 0; -ENOMEM; -EPROTO: it is not one of this release, or its file became shorter than `len`, with a text. *ret is
 * empty after an error. The first call sets a handler for SIGBUS, which sends on what is not of a look. */
int stoup_watch_read(const struct stoup_control *control, size_t len, struct stoup_watch *ret,
	struct stoup_error *err);

/* Free what a look holds; it is empty then. */
void stoup_watch_fini(struct stoup_watch *watch);

/* A pool that is looked at again and again. */
struct stoup_watcher {
	const char *pool; /* as stoup_pool_resolve takes it; outlives the watcher */
	const struct stoup_control *control;
	size_t len;
};

/* Look at the pool: opens its control object at the first call, and that of a successor once the daemon is dead or
 * has stopped. 0, or as stoup_pool_resolve and stoup_watch_read. */
int stoup_watcher_look(
	struct stoup_watcher *watcher, struct stoup_watch *ret, struct stoup_error *err);
void stoup_watcher_fini(struct stoup_watcher *watcher);

/* "running", "starting", "silent", "suspended", "stopped", "dead". */
const char *stoup_watch_state_name(enum stoup_watch_state state);

/* One sentence that says what is wrong and what mends it; "" where the daemon runs. Returns dst. */
const char *stoup_watch_state_text(const struct stoup_watch *watch, char *dst, size_t cap);

const char *stoup_watch_consumer_name(uint32_t state); /* "attached", "deaf", "forking" */
/* The same, or "ended", or "suspended". */
const char *stoup_watch_consumer_word(const struct stoup_watch_consumer *consumer);
const char *stoup_watch_buffer_name(uint32_t state); /* "loading", "resident", "draining" */
const char *stoup_watch_volume_name(uint32_t state); /* "served", "retired" */

/* A counter's value; 0 where the daemon is older and does not have it. */
uint64_t stoup_watch_value(const struct stoup_watch *watch, enum stoup_counter id);

/* The consumer's hits in all its block uses, 0 to 1; negative where there were none. */
double stoup_watch_ratio(uint64_t hits, uint64_t misses);

/* Seconds between two looks; 0 where they are not of one daemon or not in this order: there are no rates then. */
double stoup_watch_seconds(const struct stoup_watch *before, const struct stoup_watch *now);

/* What a value that counts up grew by in a second; 0 where there are no rates, or it fell. */
double stoup_watch_per_second(uint64_t before, uint64_t now, double seconds);

/* The same of a counter. */
double stoup_watch_rate(
	const struct stoup_watch *before, const struct stoup_watch *now, enum stoup_counter id);

/* The value that the part `q` (0 to 1) of all values is not above: at most an eighth too high, never above the
 * maximum. 0 where there are none. */
uint64_t stoup_watch_quantile(const struct stoup_watch_histogram *histogram, double q);

/* The same attachment in another look, or NULL. */
const struct stoup_watch_consumer *stoup_watch_same(
	const struct stoup_watch *watch, const struct stoup_watch_consumer *consumer);

#endif
