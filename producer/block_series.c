/* SPDX-License-Identifier: Apache-2.0 */
/* block_series.c - which series lie in the blocks of a volume file: for `stoup top`, which may not know volumes.
 *
 * The path comes from a control object that anybody may have written: what is no regular file is not read, and nothing
 * waits for it. Of the index only names and one number for each block are kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "producer/cmd.h"
#include "producer/volume_file.h"

struct stoup_block_series {
	uint32_t block_cnt;
	uint32_t *first, *cnt; /* of each block: its first series, and how many */
	char **names;
	uint32_t name_cnt;
};

void stoup_block_series_close(struct stoup_block_series *series)
{
	if (!series)
		return;
	for (uint32_t i = 0; i < series->name_cnt; i++)
		free(series->names[i]);
	free(series->names);
	free(series->first);
	free(series->cnt);
	free(series);
}

static int fill(struct stoup_block_series *to, const struct stoup_vol_index *index)
{
	uint32_t *last = calloc(index->block_cnt + 1, sizeof(*last));

	to->first = calloc(index->block_cnt + 1, sizeof(*to->first));
	to->cnt = calloc(index->block_cnt + 1, sizeof(*to->cnt));
	to->names = calloc(index->series_cnt + 1, sizeof(*to->names));
	if (!last || !to->first || !to->cnt || !to->names) {
		free(last);
		return -ENOMEM;
	}
	to->block_cnt = index->block_cnt;
	/* Segments are sorted by series: those of one that lie in one block follow each other. */
	for (uint32_t i = 0; i < index->segment_cnt; i++) {
		const struct stoup_vol_segment *s = &index->segments[i];

		if (to->cnt[s->block_idx] == 0)
			to->first[s->block_idx] = s->series_idx;
		else if (last[s->block_idx] == s->series_idx)
			continue;
		to->cnt[s->block_idx]++;
		last[s->block_idx] = s->series_idx;
	}
	free(last);
	for (; to->name_cnt < index->series_cnt; to->name_cnt++) {
		to->names[to->name_cnt] = strdup(index->series[to->name_cnt].name);
		if (!to->names[to->name_cnt])
			return -ENOMEM;
	}
	return 0;
}

/* The file of a volume, opened without waiting for whatever it may be. */
static int file_open(const char *path, uint64_t *ret_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = -EINVAL;
	if (rc < 0) {
		close(fd);
		return rc;
	}
	*ret_len = (uint64_t)st.st_size;
	return fd;
}

int stoup_block_series_open(
	const char *path, uint32_t block_cnt, uint32_t series_cnt, struct stoup_block_series **ret)
{
	struct stoup_vol_index *index = NULL;
	struct stoup_block_series *series;
	struct stoup_vol_fault fault;
	uint64_t len = 0;
	int fd = file_open(path, &len), rc;

	if (fd < 0)
		return fd;
	rc = stoup_volume_index_read(fd, len, &index, &fault);
	close(fd);
	if (rc < 0)
		return rc;
	series = calloc(1, sizeof(*series));
	if (index->block_cnt != block_cnt || index->series_cnt != series_cnt)
		rc = -ESTALE; /* another volume of that name */
	else
		rc = series ? fill(series, index) : -ENOMEM;
	stoup_vol_index_destroy(index);
	if (rc < 0) {
		stoup_block_series_close(series);
		return rc;
	}
	*ret = series;
	return 0;
}

const char *stoup_block_series_name(
	const struct stoup_block_series *series, uint32_t block_idx, uint32_t *ret_cnt)
{
	if (block_idx >= series->block_cnt || series->cnt[block_idx] == 0)
		return NULL;
	*ret_cnt = series->cnt[block_idx];
	return series->names[series->first[block_idx]];
}
