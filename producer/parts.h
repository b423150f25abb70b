/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the series of several volumes: each with its parts, in the order in which they are read.
 *
 *      volume 1: A B      groups: A {1, 2}  B {1}  C {2}       a group is one series: name and schema hash
 *      volume 2: A C
 *
 * Invariant: the parts of a group follow each other as readers see them (stoup_store_part_cmp).
 *
 * Concurrency: plain data of one thread; names and indexes are borrowed from the volumes.
 */
#ifndef STOUP_PRODUCER_PARTS_H
#define STOUP_PRODUCER_PARTS_H

#include <stddef.h>
#include <stdint.h>
#include "producer/store.h"
#include "shm/stoup_types.h"

struct stoup_part {
	const struct stoup_store_volume *volume;
	const struct stoup_vol_series *series;
	uint32_t volume_idx; /* as it was given to stoup_parts_add */
	int left_out;        /* of a volume that the store refuses because it overlaps others */
};

struct stoup_part_group {
	size_t first, cnt; /* parts[first .. first + cnt) */
};

struct stoup_parts {
	struct stoup_part *parts;
	size_t cnt, cap;
	struct stoup_part_group *groups;
	size_t group_cnt;
};

/* Add the parts of one volume whose names match the glob `pattern` (NULL: all). 0 or -ENOMEM. */
int stoup_parts_add(struct stoup_parts *parts, const struct stoup_store_volume *volume,
	uint32_t volume_idx, int left_out, const char *pattern);

/* Sort and group what was added: by name, or with `by_schema` by schema hash, then name. 0 or -ENOMEM. */
int stoup_parts_group(struct stoup_parts *parts, int by_schema);

/* All served volumes of a store, added and grouped by name. 0 or -ENOMEM. */
int stoup_parts_of_store(
	struct stoup_parts *parts, const struct stoup_store *store, const char *pattern);

void stoup_parts_fini(struct stoup_parts *parts);

const struct stoup_part *stoup_parts_first(const struct stoup_parts *parts, size_t group_idx);
const struct stoup_vol_schema *stoup_part_schema(const struct stoup_part *part);

/* The schema as users know it; name and fields are those of the index. */
void stoup_part_schema_view(const struct stoup_part *part, struct stoup_schema *ret);

/* Compare two groups of possibly different parts by (name, schema hash). */
int stoup_part_series_cmp(const struct stoup_part *a, const struct stoup_part *b);

#endif
