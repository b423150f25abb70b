/* SPDX-License-Identifier: Apache-2.0 */
/* counters.h - every counter of a pool, declared once: identifier, name, unit, kind, one sentence.
 *
 * The table fills the control object's self-describing counters (so that a tool of another version
 * shows them all) and the manual. The conductor alone writes counters; readers load them relaxed and
 * may see two counters of slightly different moments.
 *
 * A new one goes to the end: a reader finds those that it knows by their place, in daemons that are older or newer.
 *
 * kind: C counts up for ever, G is a gauge.
 */
#ifndef STOUP_SHM_COUNTERS_H
#define STOUP_SHM_COUNTERS_H

/* clang-format off */
#define STOUP_COUNTERS(X) \
	X(REQUESTS,        "requests",          "requests", C, "Demand requests that the conductor took from consumers.") \
	X(GRANTS,          "grants",            "leases",   C, "Leases granted by request; hits without a request are counted by the consumers.") \
	X(GRANTS_LOST,     "grants_lost",       "requests", C, "Grants that came after the consumer had given up; nothing is owed for them.") \
	X(REQUESTS_FAILED, "requests_failed",   "requests", C, "Requests that ended in an error.") \
	X(REQUESTS_JOINED, "requests_joined",   "requests", C, "Requests that waited for a load which another request had started.") \
	X(LOADS,           "loads",             "blocks",   C, "Blocks loaded into the pool: read and decoded.") \
	X(LOADS_DISTINCT,  "loads_distinct",    "blocks",   G, "Different blocks loaded since the start; loads above it were repeated.") \
	X(LOADS_MAX,       "loads_max",         "times",    G, "Most times that any one block was loaded.") \
	X(LOADS_INLINE,    "loads_inline",      "blocks",   C, "Loads that the conductor did itself: a lone miss with its bytes in the page cache.") \
	X(LOADS_FAILED,    "loads_failed",      "blocks",   C, "Loads that failed: read errors and damaged blocks.") \
	X(LOAD_RAW_BYTES,  "load_raw_bytes",    "bytes",    C, "Decoded bytes put into the pool.") \
	X(LOAD_STORED_BYTES, "load_stored_bytes", "bytes",  C, "Stored bytes read for them.") \
	X(DECODE_NS,       "decode_ns",         "ns",       C, "Time spent decoding, summed over threads.") \
	X(AHEAD_ASKED,     "ahead_asked",       "blocks",   C, "Blocks that cursors asked to have read ahead.") \
	X(AHEAD_LOADED,    "ahead_loaded",      "blocks",   C, "Blocks loaded ahead of their use.") \
	X(AHEAD_WASTED,    "ahead_wasted",      "blocks",   C, "Blocks loaded ahead and evicted unread.") \
	X(AHEAD_REFUSED,   "ahead_refused",     "blocks",   C, "Read-ahead dropped: no room in its share of the pool, or the queue was full.") \
	X(EVICT_PASSES,    "evict_passes",      "passes",   C, "Eviction passes: clear, fence, scan of all cells.") \
	X(EVICTIONS,       "evictions",         "blocks",   C, "Blocks evicted.") \
	X(EVICT_KEPT,      "evict_kept",        "blocks",   C, "Candidates that turned out to be leased and stayed.") \
	X(CLAIMS,          "claims",            "requests", C, "Large requests that had to claim a window and wait for its leases.") \
	X(STARVED,         "starved",           "times",    C, "Times that nothing could be evicted for the oldest request.") \
	X(STARVED_FAILED,  "starved_failed",    "requests", C, "Requests that reached their deadline while nothing could be evicted (ENOBUFS).") \
	X(READS,           "reads",             "reads",    C, "Reads completed by io_uring or the pread pool.") \
	X(READ_BYTES,      "read_bytes",        "bytes",    C, "Bytes of those reads.") \
	X(READS_CACHED,    "reads_cached",      "reads",    C, "Reads answered from the page cache without waiting.") \
	X(READS_DIRECT,    "reads_direct",      "reads",    C, "Reads past the page cache (O_DIRECT).") \
	X(READS_IN_FLIGHT_MAX, "reads_in_flight_max", "reads", G, "Most reads in flight at once.") \
	X(READ_ERRORS,     "read_errors",       "reads",    C, "Reads that failed.") \
	X(ATTACHES,        "attaches",          "consumers", C, "Consumers attached.") \
	X(ATTACHES_REFUSED, "attaches_refused", "consumers", C, "Attach attempts refused: credentials, version, limit.") \
	X(DETACHES,        "detaches",          "consumers", C, "Consumers that said goodbye.") \
	X(DEATHS,          "deaths",            "consumers", C, "Consumers that ended without detaching; their leases fell away.") \
	X(CONSUMERS,       "consumers",         "consumers", G, "Consumers attached now.") \
	X(QUOTA_DROPPED,   "quota_dropped",     "consumers", C, "Consumers disconnected because they held more than their share.") \
	X(LAGGARDS_CUT,    "laggards_cut",      "consumers", C, "Consumers disconnected because their old snapshots kept the places that new volumes needed.") \
	X(LEASES,          "leases",            "leases",   G, "Lease cells that name a buffer, at the last look.") \
	X(LEASED_BYTES,    "leased_bytes",      "bytes",    G, "Bytes of buffers that at least one cell names, at the last look.") \
	X(RESIDENT_BLOCKS, "resident_blocks",   "blocks",   G, "Blocks in the pool.") \
	X(RESIDENT_BYTES,  "resident_bytes",    "bytes",    G, "Bytes of the pool that hold blocks.") \
	X(FREE_BYTES,      "free_bytes",        "bytes",    G, "Bytes of the pool that hold nothing.") \
	X(LARGEST_FREE,    "largest_free",      "bytes",    G, "Longest free run.") \
	X(UNREAD_BYTES,    "unread_bytes",      "bytes",    G, "Bytes read ahead and not used yet.") \
	X(LIMIT_CELLS,     "limit_cells",       "times",    G, "Times that consumers attached now had no free lease cell (--cells).") \
	X(LIMIT_BYTES,     "limit_bytes",       "times",    G, "Times that consumers attached now held their share of the pool (--lease-bytes).") \
	X(LIMIT_REQUESTS,  "limit_requests",    "times",    C, "Requests beyond what one consumer may have in flight (--requests).") \
	X(LIMIT_CONSUMERS, "limit_consumers",   "times",    C, "Attach attempts when all places were taken (--consumers).") \
	X(SOCKETS_REMADE,  "sockets_remade",    "times",    C, "Times that the attach socket was made again after somebody removed it.") \
	X(MONITORS,        "monitors",          "monitors", C, "Monitors that were given the control object.") \
	X(DIRECT_FILES,    "direct_files",      "files",    C, "Files of volumes given to consumers that map them themselves (direct mode).") \
	X(FORKS,           "forks",             "consumers", C, "Lease sets copied for a child before a fork.") \
	X(FORKS_EXPIRED,   "forks_expired",     "consumers", C, "Of those: given up, or not asked for in time.") \
	X(SNAPSHOT,        "snapshot",          "snapshot", G, "Number of the snapshot that new consumers get.") \
	X(RESCANS,         "rescans",           "rescans",  C, "Rescans of the stores (SIGHUP, or a change that inotify told).") \
	X(RESCANS_FAILED,  "rescans_failed",    "rescans",  C, "Rescans that could not read a store; what was served is served on.") \
	X(VOLUMES_RETIRED, "volumes_retired",   "volumes",  G, "Volumes that the newest snapshot no longer has and an older one still uses.") \
	X(STALE,           "stale",             "requests", C, "Requests for a volume that is no longer served (ESTALE).") \
	X(VOLUMES,         "volumes",           "volumes",  G, "Volumes served.") \
	X(VOLUMES_REFUSED, "volumes_refused",   "volumes",  G, "Volumes refused because they are damaged or of another version.") \
	X(WAKEUPS,         "wakeups",           "times",    C, "Times that the conductor woke up.") \
	X(ERRORS,          "errors",            "errors",   C, "Errors reported in the error log, repetitions counted.") \
	X(HITS,            "hits",              "blocks",   C, "Blocks that consumers, those that ended included, found in the pool by themselves.") \
	X(MISSES,          "misses",            "blocks",   C, "Blocks that they had to ask for.") \
	X(TIMEOUTS,        "timeouts",          "requests", C, "Requests that they gave up at their deadline.") \
	X(RECORDS,         "records",           "records",  C, "Records that they were handed out.") \
	X(WAIT_NS,         "wait_ns",           "ns",       C, "Time that they spent waiting for blocks, summed over threads.") \
	X(PINS,            "pins",              "pins",     G, "Pins in force: ranges of series whose blocks are kept (stoup pin).") \
	X(PIN_BYTES,       "pin_bytes",         "bytes",    G, "Bytes of the pool that they keep when all of their blocks are loaded; at most --pin-max.") \
	X(PINNED_BLOCKS,   "pinned_blocks",     "blocks",   G, "Blocks in the pool that a pin keeps.") \
	X(PINNED_BYTES,    "pinned_bytes",      "bytes",    G, "Bytes of the pool that these take.") \
	X(PINS_YIELDED,    "pins_yielded",      "blocks",   C, "Pinned blocks that gave way to a request which nothing else could serve.") \
	X(LIMIT_QUOTA,     "limit_quota",       "times",    C, "Requests that found the quota of their group used up (--quota): they waited, or were refused.")
/* clang-format on */

enum stoup_counter {
#define STOUP_COUNTER_ENUM(id, name, unit, kind, text) STOUP_COUNTER_##id,
	STOUP_COUNTERS(STOUP_COUNTER_ENUM)
#undef STOUP_COUNTER_ENUM
	STOUP_COUNTER_CNT
};

#define STOUP_COUNTER_BASE_CNT (STOUP_COUNTER_ERRORS + 1u) /* those that minor 0 and 1 have */

#endif
