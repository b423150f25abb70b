/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - collecting, sorting and grouping parts. */
#include "producer/parts.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

int stoup_parts_add(struct stoup_parts *parts, const struct stoup_store_volume *volume,
	uint32_t volume_idx, int left_out, const char *pattern)
{
	const struct stoup_vol_index *index = volume->index;
	uint32_t i;

	if (parts->cnt + index->series_cnt > parts->cap) {
		size_t cap = parts->cap * 2 > parts->cnt + index->series_cnt
		                     ? parts->cap * 2
		                     : parts->cnt + index->series_cnt;
		struct stoup_part *grown = realloc(parts->parts, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		parts->parts = grown;
		parts->cap = cap;
	}
	for (i = 0; i < index->series_cnt; i++) {
		if (pattern && fnmatch(pattern, index->series[i].name, 0) != 0)
			continue;
		parts->parts[parts->cnt++] = (struct stoup_part){.volume = volume,
			.series = &index->series[i],
			.volume_idx = volume_idx,
			.left_out = left_out};
	}
	return 0;
}

const struct stoup_vol_schema *stoup_part_schema(const struct stoup_part *part)
{
	return &part->volume->index->schemas[part->series->schema_idx];
}

static int hash_cmp(const struct stoup_part *a, const struct stoup_part *b)
{
	uint64_t ha = stoup_part_schema(a)->hash, hb = stoup_part_schema(b)->hash;

	return ha < hb ? -1 : ha > hb;
}

int stoup_part_series_cmp(const struct stoup_part *a, const struct stoup_part *b)
{
	int cmp = strcmp(a->series->name, b->series->name);

	return cmp ? cmp : hash_cmp(a, b);
}

static int part_cmp(const void *pa, const void *pb)
{
	const struct stoup_part *a = pa, *b = pb;
	int cmp = stoup_part_series_cmp(a, b);

	return cmp ? cmp
	           : stoup_store_part_cmp(a->volume->index, a->series, b->volume->index, b->series);
}

static int part_cmp_by_schema(const void *pa, const void *pb)
{
	int cmp = hash_cmp(pa, pb);

	return cmp ? cmp : part_cmp(pa, pb);
}

int stoup_parts_group(struct stoup_parts *parts, int by_schema)
{
	size_t i;

	if (parts->cnt > 0)
		qsort(parts->parts, parts->cnt, sizeof(*parts->parts),
			by_schema ? part_cmp_by_schema : part_cmp);
	parts->groups = calloc(parts->cnt + 1, sizeof(*parts->groups));
	if (!parts->groups)
		return -ENOMEM;
	for (i = 0; i < parts->cnt; i++) {
		if (i == 0 || stoup_part_series_cmp(&parts->parts[i - 1], &parts->parts[i]) != 0)
			parts->groups[parts->group_cnt++].first = i;
		parts->groups[parts->group_cnt - 1].cnt++;
	}
	return 0;
}

int stoup_parts_of_store(
	struct stoup_parts *parts, const struct stoup_store *store, const char *pattern)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < store->volume_cnt && rc == 0; i++)
		rc = stoup_parts_add(parts, store->volumes[i], i, 0, pattern);
	return rc < 0 ? rc : stoup_parts_group(parts, 0);
}

void stoup_parts_fini(struct stoup_parts *parts)
{
	free(parts->parts);
	free(parts->groups);
	*parts = (struct stoup_parts){0};
}

const struct stoup_part *stoup_parts_first(const struct stoup_parts *parts, size_t group_idx)
{
	return &parts->parts[parts->groups[group_idx].first];
}

void stoup_part_schema_view(const struct stoup_part *part, struct stoup_schema *ret)
{
	const struct stoup_vol_schema *schema = stoup_part_schema(part);
	size_t len = strnlen(schema->name, sizeof(ret->name) - 1);

	_Static_assert(sizeof(struct stoup_field) == sizeof(struct stoup_vol_field),
		"a field has one layout");
	*ret = (struct stoup_schema){
		.stride = schema->stride,
		.align = schema->align,
		.key_off = schema->key_off,
		.flags = schema->flags,
		.interval_ns = schema->interval_ns,
		.hash = schema->hash,
		.field_cnt = schema->field_cnt,
		.fields = (const void *)&part->volume->index->fields[schema->field_first],
	};
	memcpy(ret->name, schema->name, len);
}
