/* SPDX-License-Identifier: Apache-2.0 */
/* diff.h - two series, record by record, however their blocks are cut.
 *
 * Concurrency: one thread; both sides share a cache of blocks.
 */
#ifndef STOUP_PRODUCER_DIFF_H
#define STOUP_PRODUCER_DIFF_H

#include <stdint.h>
#include "producer/block_cache.h"
#include "producer/parts.h"

struct stoup_diff_series {
	int equal;
	uint64_t cnt_a, cnt_b; /* records */
	uint64_t differ_cnt;   /* that differ, where both have as many */
	uint64_t ordinal;      /* of the first one that differs */
	/* Copies of both, until stoup_diff_series_fini; NULL: that side has ended. */
	uint8_t *record_a, *record_b;
	uint32_t len_a, len_b;
	int64_t key_a, key_b; /* their key fields */
};

/* Records of a series. */
uint64_t stoup_diff_record_cnt(const struct stoup_parts *parts, size_t group_idx);

/* Compare two groups of the same name and schema. 0; -EBADMSG and others for a block that can not be read. */
int stoup_diff_series(struct stoup_block_cache *cache, const struct stoup_parts *a, size_t group_a,
	const struct stoup_parts *b, size_t group_b, struct stoup_diff_series *ret,
	struct stoup_error *err);
void stoup_diff_series_fini(struct stoup_diff_series *found);

#endif
