/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - find and check the message runs of a block (runs.h). */
#include "producer/runs.h"

#include <stdlib.h>
#include <errno.h>
#include "shm/message.h"

int stoup_runs_needed(const struct stoup_vol_index *index)
{
	for (uint32_t i = 0; i < index->schema_cnt; i++) {
		if (index->schemas[i].stride == 0)
			return 1;
	}
	return 0;
}

int stoup_runs_create(const struct stoup_vol_index *index, struct stoup_runs **ret)
{
	struct stoup_runs *runs;
	uint32_t i;

	*ret = NULL;
	if (!stoup_runs_needed(index))
		return 0;
	runs = calloc(1, sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	runs->index = index;
	runs->order = calloc((size_t)index->segment_cnt + 1, sizeof(*runs->order));
	runs->first = calloc((size_t)index->block_cnt + 2, sizeof(*runs->first));
	if (!runs->order || !runs->first) {
		stoup_runs_destroy(runs);
		return -ENOMEM;
	}
	/* A counting sort; `first` is one place ahead of itself until it has been filled. */
	for (i = 0; i < index->segment_cnt; i++)
		runs->first[index->segments[i].block_idx + 2]++;
	for (i = 2; i < index->block_cnt + 2; i++)
		runs->first[i] += runs->first[i - 1];
	for (i = 0; i < index->segment_cnt; i++)
		runs->order[runs->first[index->segments[i].block_idx + 1]++] = i;
	*ret = runs;
	return 0;
}

void stoup_runs_destroy(struct stoup_runs *runs)
{
	if (!runs)
		return;
	free(runs->order);
	free(runs->first);
	free(runs);
}

int stoup_run_check(const struct stoup_vol_index *index, uint32_t segment_idx, const void *raw,
	struct stoup_error *err)
{
	const struct stoup_vol_segment *segment = &index->segments[segment_idx];
	const struct stoup_vol_series *series = &index->series[segment->series_idx];
	const struct stoup_message_run run = {
		.base = (const uint8_t *)raw + segment->raw_off,
		.len = segment->raw_len,
		.cnt = segment->record_cnt,
		.first_key = segment->first_key,
		.last_key = segment->last_key,
		.keeps_order = (series->flags & STOUP_VOL_SERIES_KEEP_ORDER) != 0,
	};
	int rc = stoup_message_run_check(&run, err);

	if (rc < 0)
		stoup_error_prefix(err, "%.60s", series->name);
	return rc;
}

int stoup_runs_block_check(
	const struct stoup_runs *runs, uint32_t block_idx, const void *raw, struct stoup_error *err)
{
	const struct stoup_vol_index *index;
	int rc = 0;

	if (!runs)
		return 0;
	index = runs->index;
	if (index->schemas[index->blocks[block_idx].schema_idx].stride)
		return 0;
	for (uint32_t i = runs->first[block_idx]; i < runs->first[block_idx + 1] && rc == 0; i++)
		rc = stoup_run_check(index, runs->order[i], raw, err);
	return rc;
}
