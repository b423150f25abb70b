/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.h - volumes of a store, written anew: what compact, rm and verify --repair have in common.
 *
 *      begin --> choose --> draw_in --> [filter] --> run: read, write, read back, publish --> end
 *      lock      volumes    more        what goes                              ^
 *                                                    crash before: old contents, after: new contents
 *
 * The chosen volumes become one batch that supersedes them, with all that they superseded. A series in several of
 * them becomes one stretch, its parts in the order in which readers saw them; so a volume with a part inside that
 * stretch has to come along (draw_in). Blocks that already are what is asked for are copied as they are stored; all
 * else is decoded, cut anew and encoded on all cores. Nothing goes through a temporary file: the disk needs room
 * for the new volumes beside the old ones, and no more.
 *
 * Before the new volumes are published they are read back, and each series is compared with what was read:
 * number, keys, sums, a hash of all bytes.
 *
 * Invariant: what a filter keeps is in the new volumes, in the same order, byte for byte; a rewrite that fails
 * leaves the store as it was.
 *
 * Concurrency: one thread (the encoders are inside); it holds the store's writer lock. Readers and daemons go on:
 * old volumes stay readable through their descriptors.
 * Limits: memory_len bytes of decoded blocks (by itself 64 MiB and one shared block of each volume, at most 1 GiB), two blocks per encoder, the indexes; one descriptor per new volume.
 */
#ifndef STOUP_PRODUCER_REWRITE_H
#define STOUP_PRODUCER_REWRITE_H

#include <stddef.h>
#include <stdint.h>
#include "codec/block.h"
#include "producer/parts.h"
#include "producer/sums.h"

#define STOUP_REWRITE_MEMORY_LEN (64ull << 20)
#define STOUP_REWRITE_MEMORY_LEN_MAX                                                               \
	(1ull << 30) /* where many volumes share their blocks among series */

struct stoup_rewrite_options {
	const char *store_path;
	const char *label;              /* of the progress line */
	struct stoup_encoding encoding; /* for blocks that are encoded */
	int has_encoding;               /* else: that of most of the chosen bytes */
	int recode;                     /* encode every block, also one that is stored so already */
	uint32_t block_len;             /* decoded bytes of a block; 0: as the store has them */
	uint64_t volume_len;            /* decoded bytes of a volume; 0: 4 GiB */
	uint64_t memory_len;            /* of decoded blocks; 0: by itself, see above */
	uint32_t threads;               /* encoders; 0: one per core */
	int dedup;        /* of records that are equal in two overlapping ingests, keep one */
	int allow_faults; /* damaged volumes are no reason to refuse: repair */
	int whole_ingests; /* draw in what else came with files that are known, so that they stay it */
	int dry_run;       /* no lock, nothing is written */
	int quiet;
};

enum stoup_rewrite_keep {
	STOUP_REWRITE_KEEP_ALL,
	STOUP_REWRITE_KEEP_NONE,
	STOUP_REWRITE_KEEP_SOME, /* by key */
};

/* What becomes of a segment, asked before its block is read; and of a key in one of which some is kept. */
struct stoup_rewrite_filter {
	void *arg;
	enum stoup_rewrite_keep (*segment)(
		void *arg, const struct stoup_part *part, uint32_t segment_idx);
	int (*key)(void *arg, int64_t key);
};

/* One series of the chosen volumes. */
struct stoup_rewrite_series {
	uint32_t flags;            /* STOUP_VOL_SERIES_*, of all its parts */
	struct stoup_sums read;    /* what was read of the old volumes and kept */
	struct stoup_sums put;     /* what was put into the new ones */
	struct stoup_sums written; /* what was read back of them */
	uint64_t old_cnt;          /* records of the old volumes, as their indexes say */
	uint64_t removed_cnt;      /* by the filter */
	uint64_t duplicate_cnt;    /* dropped by dedup */
	uint64_t merged_cnt;       /* records of parts that overlap, merged by key */
	struct stoup_sums_fields fields;
	uint32_t schema_idx;
	uint32_t volume_mark, volume_series_idx;
};

/* A volume that was written. */
struct stoup_rewrite_volume {
	struct stoup_vol_header header;
	uint64_t raw_len, file_len;
	uint32_t block_cnt;
};

struct stoup_rewrite;

/* Open the store that is there, take its lock and sweep (but for a dry run). -ENOENT where there is no store or it
 * holds nothing, -EUCLEAN where a volume of it is damaged or left out (unless allow_faults, or it overlaps), and
 * what stoup_store_lock returns. */
int stoup_rewrite_begin(const struct stoup_rewrite_options *options, struct stoup_rewrite **ret,
	struct stoup_error *err);

/* The store as it is; valid until the end. */
struct stoup_store *stoup_rewrite_store(const struct stoup_rewrite *rewrite);

/* Choose store->volumes[i], or store->overlaps[i]. */
void stoup_rewrite_choose(struct stoup_rewrite *rewrite, uint32_t volume_idx);
void stoup_rewrite_choose_overlap(struct stoup_rewrite *rewrite, uint32_t overlap_idx);
int stoup_rewrite_is_chosen(const struct stoup_rewrite *rewrite, uint32_t volume_idx);
uint32_t stoup_rewrite_chosen_cnt(const struct stoup_rewrite *rewrite);

/* Is store->volumes[volume_idx] one of several of an ingest whose files are known by them? They are among
 * store->volumes[*ret_first..*ret_end), with the same batch. */
int stoup_rewrite_is_shared(const struct stoup_rewrite *rewrite, uint32_t volume_idx,
	uint32_t *ret_first, uint32_t *ret_end);

/* An id more that the new volumes supersede. 0 or -ENOMEM. */
int stoup_rewrite_supersede(struct stoup_rewrite *rewrite, const uint8_t id[16]);

/* Choose, too, what may not stay beside the new volumes, and group the parts. 0, -ENOMEM, or -ENOTSUP for a volume of
 * a later version, with text. */
int stoup_rewrite_draw_in(struct stoup_rewrite *rewrite, struct stoup_error *err);

/* After draw_in: the parts, by schema and name, and one entry per group of them. */
const struct stoup_parts *stoup_rewrite_parts(const struct stoup_rewrite *rewrite);
const struct stoup_rewrite_series *stoup_rewrite_series(const struct stoup_rewrite *rewrite);

/* The encoding that is used, and the decoded bytes of a full block of schema `hash`. */
struct stoup_encoding stoup_rewrite_encoding(const struct stoup_rewrite *rewrite);
uint32_t stoup_rewrite_block_len(const struct stoup_rewrite *rewrite, uint64_t schema_hash);

/* Is a block of records of `stride` bytes (0: messages) stored as it would be anew? */
int stoup_rewrite_is_stored_so(
	const struct stoup_rewrite *rewrite, const struct stoup_vol_block *block, uint32_t stride);

/* Read, write, read back, publish. `filter` may be NULL. 0; -EBADMSG for a damaged block, -ENOSPC with the need,
 * -EEXIST for overlaps that can not be merged, -EPROTO where what was read back differs, -EINTR for Ctrl-C (the command
 * ends by stoup_stop_raise). */
int stoup_rewrite_run(struct stoup_rewrite *rewrite, const struct stoup_rewrite_filter *filter,
	struct stoup_error *err);

/* The new volumes, after run. */
const struct stoup_rewrite_volume *stoup_rewrite_volumes(
	const struct stoup_rewrite *rewrite, uint32_t *ret_cnt);

/* Remove what was superseded. */
void stoup_rewrite_sweep(struct stoup_rewrite *rewrite);

/* End it, run or not; NULL is allowed. */
void stoup_rewrite_end(struct stoup_rewrite *rewrite);

#endif
