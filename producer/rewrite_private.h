/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_private.h - between the files of a rewrite.
 *
 *      rewrite.c        which volumes, of which series, in which form
 *      rewrite_series.c records of one series, part by part or merged
 *      rewrite_out.c    records to blocks, blocks to volumes
 *      rewrite_check.c  the new volumes read back
 *
 * Concurrency: as rewrite.h.
 */
#ifndef STOUP_PRODUCER_REWRITE_PRIVATE_H
#define STOUP_PRODUCER_REWRITE_PRIVATE_H

#include "producer/block_cache.h"
#include "producer/import_encode.h"
#include "producer/progress.h"
#include "producer/rewrite.h"
#include "producer/volume_file.h"

/* A schema of the chosen volumes. */
struct stoup_rewrite_schema {
	struct stoup_schema schema; /* fields: of an index that stays */
	const struct stoup_vol_index *index;
	const struct stoup_vol_schema *vol;
	uint32_t block_len; /* decoded bytes of a full block */
	uint32_t volume_mark, volume_schema_idx;
};

/* The volumes that are being written: all are open until the last block is in, because each names how many there
 * are. */
struct stoup_rewrite_out {
	struct stoup_encode *encode;
	struct stoup_encode_slot *slot; /* being filled, or NULL */
	uint32_t series_idx;            /* that is being put */
	uint32_t schema_idx;            /* of the slot */
	int64_t key;                    /* effective key of the last record; 0 before the first */
	uint32_t run_off, run_cnt;      /* messages: the run at the slot's end that is still open */
	struct stoup_volume_file *files;
	uint32_t *block_cnts;
	uint32_t file_cnt, file_cap;
	uint64_t volume_raw_len; /* of the last file */
	uint8_t id[16];
	int64_t created_ns;
	uint64_t raw_len, stored_len; /* written so far */
};

struct stoup_rewrite {
	struct stoup_rewrite_options options;
	struct stoup_store_lock lock;
	struct stoup_store *store;
	uint8_t *chosen, *chosen_overlaps;
	uint32_t chosen_cnt;
	uint8_t (*superseded)[16];
	size_t superseded_cnt, superseded_cap;
	struct stoup_parts parts;
	struct stoup_rewrite_series *series;
	struct stoup_rewrite_schema *schemas;
	uint32_t schema_cnt;
	struct stoup_encoding encoding;
	uint64_t raw_total, stored_total; /* of what is read: decoded, and its share of the files */
	uint32_t raw_cap;                 /* longest block */
	struct stoup_block_cache *cache;
	struct stoup_progress progress;
	const struct stoup_rewrite_filter *filter;
	struct stoup_vol_source *sources; /* files that the new volumes hold whole */
	size_t source_cnt;
	struct stoup_rewrite_out out;
	struct stoup_rewrite_volume *volumes;
	uint32_t volume_cnt;
};

/* ---- rewrite_out.c --------------------------------------------------------------------------- */

/* 0, -ENOMEM, -EAGAIN with text. */
int stoup_rewrite_out_init(struct stoup_rewrite *rewrite, struct stoup_error *err);

/* The next records are those of this series. */
void stoup_rewrite_out_series(struct stoup_rewrite *rewrite, uint32_t series_idx);

/* Put records or messages. -EBADMSG where keys step back in a series that does not keep its order. */
int stoup_rewrite_out_records(struct stoup_rewrite *rewrite, const uint8_t *records, uint64_t cnt,
	struct stoup_error *err);

/* Can a block that is one segment of the current series be copied as it is? */
int stoup_rewrite_out_takes(
	const struct stoup_rewrite *rewrite, const struct stoup_vol_block *block);

/* Copy it. `raw` is what it decodes to. */
int stoup_rewrite_out_block(struct stoup_rewrite *rewrite, const struct stoup_vol_block *block,
	const struct stoup_vol_segment *segment, const uint8_t *raw, const uint8_t *stored,
	struct stoup_error *err);

/* Write what is left, complete all volumes. */
int stoup_rewrite_out_finish(struct stoup_rewrite *rewrite, struct stoup_error *err);

/* Stop the encoders; volumes that are not `published` are removed. */
void stoup_rewrite_out_fini(struct stoup_rewrite *rewrite, int published);

/* ---- rewrite_series.c, rewrite_check.c -------------------------------------------------------- */

int stoup_rewrite_put_series(
	struct stoup_rewrite *rewrite, uint32_t series_idx, struct stoup_error *err);
int stoup_rewrite_check(struct stoup_rewrite *rewrite, struct stoup_error *err);

/* The decoded block of a segment, pinned; messages are checked. 0 or negative errno with text. */
int stoup_rewrite_segment_get(struct stoup_rewrite *rewrite, const struct stoup_part *part,
	uint32_t segment_idx, const uint8_t **ret_raw, struct stoup_error *err);

/* A damaged block, with what is to be done. */
int stoup_rewrite_block_error(const struct stoup_part *part, const struct stoup_vol_fault *fault,
	struct stoup_error *err);

#endif
