/* SPDX-License-Identifier: Apache-2.0 */
/* import_state.h - between the files of the sink: what one import knows.
 *
 *      put --> arena --full--> sort by (schema, series[, key]) --> run of the spill file
 *                                                                      |  (all runs beside
 *      affected old volumes (--replace) --decode--> one run each ------+   each other)
 *                                                                      v
 *                     per schema, per series in name order: merge --> block --> encoders --> volume
 *
 *      arena   |records ............ ->|  sorted offsets  |<- ............ entries|
 *               0                 used                                        cap
 *
 * Runs are sorted by (schema in order of appearance, name), an order that series which appear
 * later do not change. So the final pass reads every run from front to back: an import is an
 * external merge sort, and its memory does not grow with the length of the input.
 *
 * Memory: the arena (memory_len, 64 MiB) is given back before the windows (STOUP_IMPORT_WINDOW_LEN)
 * and the encoders' slots are allocated; a series costs about 250 bytes and its name.
 *
 * Invariant: the number of records per schema is known before the first volume is created, and with
 * it the number of volumes, because a block's cut depends on lengths alone.
 *
 * Concurrency: one thread, except for the encoders (import_encode.h).
 */
#ifndef STOUP_PRODUCER_IMPORT_STATE_H
#define STOUP_PRODUCER_IMPORT_STATE_H

#include "producer/cmd.h"
#include "producer/event64.h"
#include "producer/import.h"
#include "producer/progress.h"
#include "producer/spill.h"
#include "producer/store.h"
#include "producer/sums.h"
#include "shm/message.h"

#define STOUP_IMPORT_BLOCK_LEN_MIN  (64u << 10)
#define STOUP_IMPORT_BLOCK_LEN_MAX  (2u << 20)
#define STOUP_IMPORT_BLOCK_LEN      (512u << 10)
#define STOUP_IMPORT_VOLUME_LEN     (4ull << 30)
#define STOUP_IMPORT_MEMORY_LEN     (64ull << 20)
#define STOUP_IMPORT_MEMORY_LEN_MIN (256ull << 10) /* a few records of the largest stride */
#define STOUP_IMPORT_MEMORY_LEN_MAX (2ull << 30)   /* offsets in the arena are 32 bits */
#define STOUP_IMPORT_WINDOW_LEN     (32u << 20)    /* all windows of the final pass together */

#define STOUP_SPILL_OLD 1u /* flag of a slice: from a volume that is being replaced */

struct stoup_import_schema {
	struct stoup_schema schema; /* fields point to `fields` */
	struct stoup_field *fields;
	struct stoup_sums_fields sums;
	uint32_t block_len;  /* decoded bytes of a full block: a multiple of the stride */
	uint64_t record_cnt; /* new and kept */
	uint64_t record_len; /* their bytes; messages: with heads, padding and table entries */
	uint32_t unit_max;   /* messages: the longest one, with head and padding */
	uint32_t volume_mark, volume_schema_idx; /* in volume volume_mark - 1: the writer's index */
};

struct stoup_import_series {
	char *name;
	uint32_t schema_idx;
	uint32_t flags;              /* STOUP_VOL_SERIES_* */
	uint64_t record_cnt;         /* put */
	uint64_t kept_cnt;           /* taken over from replaced volumes */
	uint64_t step_back_cnt;      /* order KEEP: records whose key is below the one before */
	int64_t first_key, last_key; /* of the put ones: smallest and largest */
	int64_t prev_key;            /* key field of the record put last */
	int check_events;            /* event64: are both of its orders right? */
	struct stoup_event64_order events;
	int64_t overlap_key; /* a put beyond this key overlaps the store */
	int64_t hull_first,
		hull_last; /* replacing: all that this series will span; 0: not involved */
	struct stoup_sums_values sums; /* of the put ones */
	uint32_t part_cnt;             /* records in the arena */
	uint32_t part_first;           /* while sorting: index of the first of them */
	int64_t part_first_key; /* keys of the first and the last of them; with order KEEP the */
	int64_t part_last_key;  /*   running maximum */
	uint32_t volume_mark, volume_series_idx;
	uint8_t *samples; /* --dry-run: the first records */
	uint32_t sample_cnt;
};

/* An entry per record, growing down from the arena's end. */
struct stoup_import_entry {
	uint32_t off; /* of the record in the arena */
	uint32_t series_idx;
};

struct stoup_import_arena {
	uint8_t *base; /* mapped: only what is touched costs memory */
	size_t cap, used;
	uint32_t record_cnt;
	uint32_t *active; /* series with records in the arena */
	uint32_t active_cnt, active_cap;
};

/* A published volume, for the summary. */
struct stoup_import_volume {
	struct stoup_vol_header header;
	uint64_t raw_len, file_len;
};

struct stoup_import {
	struct stoup_import_options options; /* completed with the defaults */
	struct stoup_store_lock lock;
	struct stoup_store *store; /* as it is under the lock */
	struct stoup_import_schema *schemas;
	uint32_t schema_cnt, schema_cap;
	struct stoup_import_series *series;
	uint32_t series_cnt, series_cap;
	uint32_t *buckets;   /* series_idx + 1 by hash of (name, schema); 0: empty */
	uint32_t bucket_cap; /* a power of two */
	struct stoup_import_arena arena;
	struct stoup_spill *spill;
	struct stoup_progress progress;
	int64_t begin_ns;                /* monotonic */
	uint64_t record_cnt, record_len; /* put */
	uint64_t filtered_cnt;           /* outside the range that was asked for */
	uint32_t *affected;              /* indexes of store volumes that are replaced */
	uint32_t affected_cnt;
	uint32_t
		old_run_first; /* of the spill file: the runs of the affected ones follow each other */
	uint32_t *refused;     /* indexes of store->overlaps: superseded, nothing of them is kept */
	uint32_t refused_cnt;
	struct stoup_import_volume *volumes;
	uint32_t volume_cnt;
	struct stoup_vol_source *sources;
	uint32_t source_cnt, source_cap;
	int finished;
};

/* The 64-bit key field of a record. Inside the sink a message is a record of its own length that begins
 * with its head (shm/message.h), and so with its key. */
int64_t stoup_import_key(const struct stoup_schema *schema, const void *record);

/* Bytes of a record as it stands in memory and in the spill file. */
static inline uint32_t stoup_import_record_len(
	const struct stoup_schema *schema, const void *record)
{
	return schema->stride
	               ? schema->stride
	               : stoup_message_unit_len(((const struct stoup_message_head *)record)->len);
}

/* Count cnt records of len bytes as what will be stored. */
void stoup_import_schema_count(struct stoup_import_schema *schema, uint64_t cnt, uint64_t len);

/* import_series.c: find or add a series; as stoup_import_series, without checking the name. */
int64_t stoup_import_series_add(struct stoup_import *import, const char *name,
	const struct stoup_schema *schema, struct stoup_error *err);
/* The index of a series, or -1. */
int64_t stoup_import_series_lookup(
	const struct stoup_import *import, const char *name, uint64_t schema_hash);
/* Order of series in runs and volumes: by schema, then name. */
int stoup_import_series_cmp(const struct stoup_import *import, uint32_t a, uint32_t b);
/* Series indexes in that order; the caller frees. NULL: no memory. */
uint32_t *stoup_import_series_sorted(const struct stoup_import *import);
void stoup_import_series_fini(struct stoup_import *import);
/* Decoded bytes of a full block of records of `stride` bytes, where block_len was asked for. */
uint32_t stoup_import_block_len(uint32_t block_len, uint32_t codec, uint32_t stride);

/* import_arena.c: keep a record; a full arena becomes a run of the spill file. */
int stoup_import_arena_create(struct stoup_import *import, struct stoup_error *err);
void stoup_import_arena_destroy(struct stoup_import *import);
int stoup_import_arena_put(struct stoup_import *import, uint32_t series_idx, int64_t key,
	const void *record, struct stoup_error *err);
/* The same for a message: its place in the order, and what is stored. */
int stoup_import_arena_put_message(struct stoup_import *import, uint32_t series_idx, int64_t place,
	int64_t key, const void *bytes, uint32_t len, struct stoup_error *err);
int stoup_import_arena_flush(struct stoup_import *import, struct stoup_error *err);

/* import_replace.c: refuse an overlap with the store, or choose and spill what is replaced. */
int stoup_import_overlap_check(struct stoup_import *import, struct stoup_error *err);
/* The key beyond which a series that begins at first_key overlaps the store. */
int64_t stoup_import_overlap_key(
	const struct stoup_import *import, uint32_t series_idx, int64_t first_key);
/* -EEXIST where that range overlaps the store, or ends where a part of it begins; names the volume
 * and the ranges. */
int stoup_import_overlap_error(const struct stoup_import *import, uint32_t series_idx,
	int64_t first_key, int64_t last_key, struct stoup_error *err);

/* import_write.c: merge, encode, write and publish. Fills import->volumes. */
int stoup_import_write(struct stoup_import *import, struct stoup_error *err);

/* import_dry.c: --dry-run. Open the store where there is one; keep a sample; show them. */
int stoup_import_dry_begin(struct stoup_import *import, struct stoup_error *err);
void stoup_import_dry_put(struct stoup_import *import, uint32_t series_idx, const void *record);
void stoup_import_dry_message(struct stoup_import *import, uint32_t series_idx, int64_t key,
	const void *bytes, uint32_t len);
void stoup_import_dry_summary(const struct stoup_import *import);

/* import_summary.c */
void stoup_import_summary(const struct stoup_import *import);

#endif
